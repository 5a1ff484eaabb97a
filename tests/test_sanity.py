"""Sanity reports: what is off is said, and what is sampled agrees with what agents do."""

import json
from dataclasses import replace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import actions_of
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import CANONICAL, BucketStep, Plan, RoundPlan, plan_named
from kilt.cli import sanity as commands
from kilt.errors import PlayError
from kilt.evaluate import sanity
from kilt.evaluate.sanity import check_blueprint
from kilt.evaluate.self_play import SelfPlay, buckets_and_results, draw_deals
from kilt.games import load_game
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Dealer
from kilt.solve.external import ExternalMCCFR, SamplingOptions
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.postprocess import apply, rule_named
from kilt.strategy.translate import pseudo_harmonic
from kilt.tree.betting import FOLDS

SHORT = """GAMEDEF
nolimit
numPlayers = 2
numRounds = 4
stack = 2000 2000
blind = 100 50
firstPlayer = 2 1 1 1
numSuits = 4
numRanks = 5
numHoleCards = 2
numBoardCards = 0 3 1 1
END GAMEDEF
"""
DEALS = 4000
ACES, NUTS, UNSEEN = "aces fold preflop", "the nuts fold on the river", "self-play without a strategy"
BIG, SMALL = 0, 1  # seats

app = typer.Typer()
app.command()(commands.sanity)


def abstract_game(folder, game, plan, actions=None):
    deal = Deal.from_game(game)
    cards = build(AbstractionSpec("cards", deal, plan), folder / "cards", cache=None, threads=1)
    return AbstractGame(game, cards, actions)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("short")


@pytest.fixture(scope="module")
def solved(folder):
    """Solved for a second or two."""
    game = Holdem(GameDef.parse(SHORT), "short")
    plan = plan_named("IR-PHS-PHS 10-10-10-10", game.rules.board_cards)
    abstract = abstract_game(folder, game, plan, actions_of("1x, a; a"))
    solver = ExternalMCCFR(abstract, 1, SamplingOptions(linear=True))
    solver.step(300_000)
    return Blueprint.of(abstract, solver.average())


@pytest.fixture(scope="module")
def leduc(tmp_path_factory):
    lossless = Plan((RoundPlan(True, (BucketStep(CANONICAL),)), RoundPlan(True, (BucketStep(CANONICAL),))))
    abstract = abstract_game(tmp_path_factory.mktemp("leduc"), load_game("leduc"), lossless)
    solver = ExternalMCCFR(abstract, 1)
    solver.step(50_000)
    return Blueprint.of(abstract, solver.average())


def changed(blueprint, r, change):
    """The blueprint after `change(node, rows [bucket, action])` at each decision of a round."""
    shares = blueprint.shares.copy()
    nodes = blueprint.nodes
    for node in np.flatnonzero((nodes.actor >= 0) & (nodes.round == r)).tolist():
        part = shares[blueprint.first[node] : blueprint.first[node + 1]]
        change(node, part.reshape(-1, nodes.children[node]))
    return replace(blueprint, shares=shares)


def always(action, buckets=slice(None)):
    def change(node, rows):
        rows[buckets] = 0
        rows[buckets, action] = 255

    return change


def folds(blueprint, node):
    """Whether folding is possible: it is the first action then."""
    return int(blueprint.level[blueprint.nodes.first_child[node]] == FOLDS)


def folding(blueprint, buckets=slice(None)):
    """Fold wherever that is possible."""

    def change(node, rows):
        if folds(blueprint, node):
            always(0, buckets)(node, rows)

    return change


def found(findings, name):
    (finding,) = [this for this in findings if this.name == name]
    return finding


def random(seed=0):
    return np.random.default_rng(seed)


def aces_of(blueprint):
    return blueprint.bucket(0, 0, blueprint.game.deck.cards("AsAh"), ())


ANSWERS = (
    "profit of betting any two cards, opponent leads",
    "gain of betting over checking, agent checks",
    "raise taken for another size",
    "one answer with every hand",
)


def test_what_is_solved_is_fine(solved):
    """Except for the nuts, whose bucket of ten has hands that fold, and for answers to bets: it has two raises."""
    said = check_blueprint(solved, deals=DEALS)
    assert {this.name for this in said.off} <= {NUTS, *ANSWERS}, str(said)
    fine = replace(said, findings=tuple(this for this in said.findings if not this.off))
    assert fine.ok and str(fine) == "short, average strategy: all checks passed"
    assert [this.name for this in said.findings] == [
        ACES,
        NUTS,
        "information sets without a strategy",
        UNSEEN,
        *(f"actions {name}" for name in ("preflop", "flop", "turn", "river")),
        "value of self-play",
        "answers that are not legal",
        "larger bets taken for smaller ones",
        *ANSWERS,
    ]
    preflop = said.findings[4].figures
    assert list(preflop) == ["fold", "call", "1x", "all-in"]
    assert sum(preflop.values()) == pytest.approx(1)
    assert {row[3] for row in fine.rows()} == {"pass", ""}


@pytest.mark.parametrize("name", ["purification", "purification-after-first", "new-0.2"])
def test_the_strategy_as_played_is_checked(solved, name):
    """The report after a rule is that of a blueprint whose rows the rule was applied to, one by one."""
    rule, acted = rule_named(name), solved.acted
    shares = np.zeros(len(solved.shares))
    for node in np.flatnonzero(solved.nodes.actor >= 0).tolist():
        for bucket in range((solved.first[node + 1] - solved.first[node]) // solved.nodes.children[node]):
            if any(row := solved.row(node, bucket)):
                first = int(solved.first[node]) + bucket * len(row)
                shares[first : first + len(row)] = apply(rule, solved.labels(node), row, first=not acted[node])
    found, expected = check_blueprint(solved, 500, rule=rule), check_blueprint(replace(solved, shares=shares), 500)
    assert found.strategy == f"as played: {name}" and expected.strategy == "average strategy"
    assert [this.name for this in found.findings] == [this.name for this in expected.findings]
    for this, that in zip(found.findings, expected.findings, strict=True):
        assert this.figures == pytest.approx(that.figures, abs=1e-6)
    assert found.findings != check_blueprint(solved, 500).findings


def test_seeds_make_reports(solved):
    said = check_blueprint(solved, deals=500, seed=3)
    assert check_blueprint(solved, deals=500, seed=3) == said != check_blueprint(solved, deals=500, seed=4)
    with pytest.raises(PlayError, match=r"0 deals are too few: use 1 or more; the default is 20,000"):
        check_blueprint(solved, deals=0)


def test_aces_that_fold_are_loud(solved):
    bad = changed(solved, 0, folding(solved, aces_of(solved)))
    said = check_blueprint(bad, deals=500)
    assert not said.ok
    assert said.off[0].name == ACES
    assert said.off[0].figures["small blind"] == 1  # they open by folding
    assert str(said).startswith(f"short, average strategy: {len(said.off)} failed\naces fold preflop: ")
    assert said.rows()[0][3] == "FAIL"
    assert said.data()["ok"] is False


def naive_aces(blueprint, seat):
    """The probability that aces fold in a seat, one pair of hands after the other."""
    game, nodes = blueprint.game, blueprint.nodes
    holes = [tuple(hand) for hand in game.deck.holes().tolist()]
    mine = [hand for hand in holes if all(card // 4 == game.deck.ranks - 1 for card in hand)]
    buckets = {hand: blueprint.bucket(0, 0, hand, ()) for hand in holes}

    def folds(node, hands):
        actor = int(nodes.actor[node])
        if actor < 0:
            return 0.0
        row, child = blueprint.row(node, buckets[hands[actor]]), int(nodes.first_child[node])
        total = 0.0
        for action, p in enumerate(row):
            if blueprint.level[child + action] == FOLDS:
                total += p * (actor == seat)
            elif p:
                total += p * folds(child + action, hands)
        return total

    pairs = [(a, b) for a in mine for b in holes if not {*a} & {*b}]
    return np.mean([folds(0, (a, b) if seat == 0 else (b, a)) for a, b in pairs])


def test_aces_are_counted_exactly(solved):
    noisy = replace(solved, shares=random().integers(1, 200, len(solved.shares)).astype(np.uint8))
    figures = found(sanity.check_aces(noisy), ACES).figures
    assert figures["big blind"] == pytest.approx(naive_aces(noisy, BIG))
    assert figures["small blind"] == pytest.approx(naive_aces(noisy, SMALL))


def test_nuts_that_fold_are_loud(solved):
    finding = found(sanity.check_nuts(changed(solved, 3, folding(solved)), 100, random()), NUTS)
    assert finding.off
    assert set(finding.figures.values()) == {1.0}
    worst_only = found(sanity.check_nuts(changed(solved, 3, folding(solved, slice(0, 5))), 400, random()), NUTS)
    assert max(worst_only.figures.values()) < 0.2  # boards whose best hand is what everybody has


def test_the_nuts_are_the_nuts(solved):
    cards = sanity._with_nuts(solved, 300, random())
    assert all(len({*row}) == len(row) for row in cards.tolist())
    assert (buckets_and_results(solved, cards).outcome >= 0).all()


def test_what_was_never_reached_is_loud(solved):
    empty = replace(solved, shares=np.zeros_like(solved.shares))
    said = check_blueprint(empty, deals=500)
    assert UNSEEN in [this.name for this in said.off]
    assert {this.name: this.figures for this in said.findings}["information sets without a strategy"] == dict.fromkeys(
        ("preflop", "flop", "turn", "river"), 1.0
    )

    def forget(node, rows):
        rows[:2] = 0

    finding = found(sanity.check_self_play(changed(solved, 3, forget), DEALS, random()), UNSEEN)
    assert finding.figures["preflop"] == finding.figures["turn"] == 0
    assert 0.05 < finding.figures["river"] < 0.4


def test_large_blueprints_are_read_in_part(solved, monkeypatch):
    def forget(node, rows):
        rows[0] = 0

    monkeypatch.setattr(sanity, "LOOKED_AT", 100)
    figures = sanity.check_visits(changed(solved, 3, forget), random()).figures
    assert figures["turn"] == 0
    assert figures["river"] == pytest.approx(0.1)


def test_a_seat_that_throws_away_its_chips_is_loud(solved):
    """The small blind calls, and folds to the bet that always comes on the flop."""
    bad = changed(solved, 0, lambda node, rows: always(folds(solved, node))(node, rows))
    bad = changed(bad, 1, lambda node, rows: always(0 if folds(solved, node) else 1)(node, rows))
    finding = found(sanity.check_self_play(bad, 100, random()), "value of self-play")
    assert finding.off
    assert finding.figures == {"big blind": 1000, "small blind": -1000}
    assert finding.seen == "big blind +1,000 mbb/h, small blind -1,000 mbb/h, ± 0"


@pytest.mark.parametrize("which", ["solved", "leduc"])
def test_walks_are_what_agents_play(which, request):
    """Without chance in the strategy, hands side by side and hands through the dealer come to the same end."""
    blueprint = request.getfixturevalue(which)
    pure = blueprint
    for r in range(blueprint.game.rules.rounds):

        def likeliest(node, rows):
            best = rows.argmax(axis=1)
            rows[:] = 0
            rows[np.arange(len(rows)), best] = 255

        pure = changed(pure, r, likeliest)
    agent, dealer = BlueprintAgent("pure", pure), Dealer(pure.game, seed=5)
    dealt = [dealer.deal(number) for number in range(200)]
    cards = np.array([[*deal.holes[0], *deal.holes[1], *deal.board] for deal in dealt])
    walk = SelfPlay(pure, buckets_and_results(pure, cards), random())
    moves = sum(len(move.deal) for move in walk)
    played = [dealer.play(number, (agent, agent)) for number in range(200)]
    assert walk.winnings().tolist() == [hand.payoffs[0] for hand in played]
    assert moves == sum(sign in "fcr" for hand in played for sign in hand.position.history)


def test_walks_draw_as_often_as_agents(solved):
    agent, dealer = BlueprintAgent("it", solved), Dealer(solved.game, seed=1)
    opened = [dealer.play(number, (agent, agent)).position.history[0] for number in range(1500)]
    walk = SelfPlay(solved, buckets_and_results(solved, draw_deals(solved, 20_000, random())), random())
    first = next(iter(walk)).chance.mean(axis=0)
    for place, sign in enumerate("fc"):
        assert opened.count(sign) / 1500 == pytest.approx(first[place], abs=0.05)


def test_translation_that_turns_back_is_loud(solved):
    findings = sanity.check_translation(solved, lambda a, b, x: 1 - pseudo_harmonic(a, b, x), random())
    assert [this.off for this in findings] == [False, True]


def test_illegal_answers_are_loud(solved, monkeypatch):
    monkeypatch.setattr(BlueprintAgent, "_legal", lambda self, label, level, position: "r1")
    finding = found(sanity.check_translation(solved, pseudo_harmonic, random()), "answers that are not legal")
    assert finding.off
    assert finding.figures[""] > 100


def test_other_games_have_reports(leduc):
    said = check_blueprint(leduc, deals=DEALS)
    assert said.ok, str(said)
    names = [this.name for this in said.findings]
    assert names[:2] == ["aces fold in round 1", "the nuts fold in the last round"]
    assert "answers that are not legal" not in names
    assert list(said.findings[4].figures) == ["fold", "call", "raise"]
    value = said.findings[-1]
    assert value.figures["first to act"] == pytest.approx(-85.6, abs=value.margin + 20)  # the value of Leduc


def test_the_command(solved, leduc, folder):
    run, bad = folder / "leduc.agent", folder / "bad"
    leduc.pack(run)
    changed(solved, 0, folding(solved)).save(bad / "strategy", folder / "cards")
    runner = CliRunner()
    fine = runner.invoke(app, [str(run), "--deals", "1000"])
    assert fine.exit_code == 0, fine.output
    loud = runner.invoke(app, [str(bad), "--deals", "1000", "--json"])
    assert loud.exit_code == 1
    said = json.loads(loud.stdout)
    assert said["ok"] is False
    assert said["findings"][0]["off"] is True
    assert said["deals"] == 1000
    shown = runner.invoke(app, [str(bad), "--deals", "100", "--seed", "2"])
    assert shown.exit_code == 1
    assert "FAIL" in shown.stdout
    assert "aces fold preflop: the best private cards" in shown.stderr
