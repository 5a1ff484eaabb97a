"""Abstract games by joint tables, and best responses inside an abstraction, against trees that are written out."""

from itertools import permutations, product

import numpy as np
import pytest

from commands import answer, refused
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.buckets import AbstractionSpec, AsymmetricAbstraction
from kilt.abstraction.features import Deal
from kilt.abstraction.joint import JointTables, joint_tables
from kilt.abstraction.pipeline import build
from kilt.errors import AbstractionError, ArtifactError, GameError
from kilt.games import load_game
from kilt.games.game import CHANCE, TERMINAL
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.games.tilt import tilt_game
from kilt.runs.run import open_run
from kilt.solve.abstract import BucketedGame
from kilt.solve.abstract_response import abstract_responses, walks_of
from kilt.solve.cfr import Cfr
from kilt.solve.joint import JointGame
from kilt.solve.lp import solve_lp
from kilt.solve.tables.memory import TreeTables
from kilt.solve.tables.pairs import PairTables
from kilt.tree import best_response
from kilt.tree.flat import Expansion, expand_tree
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import FOLLOW
from kilt_lab.pieces.orange import RNR, CurveSetting, OrangeHoldem, observed

LEDUC = load_game("leduc")
TWELVE = """
    GAMEDEF
    limit
    numPlayers = 2
    numRounds = 3
    blind = 2 1
    raiseSize = 2 2 4
    firstPlayer = 2 1 1
    maxRaises = 2 1 1
    numSuits = 3
    numRanks = 4
    numHoleCards = 2
    numBoardCards = 0 2 1
    END GAMEDEF"""


@pytest.fixture(scope="module")
def cards_of(tmp_path_factory):
    """Card abstractions of games by name, built once."""
    built = {}

    def find(game, name):
        if (game.name, name) not in built:
            place = tmp_path_factory.mktemp("cards") / "cards"
            built[game.name, name] = build(AbstractionSpec.from_name(name, Deal.from_game(game)), place)
        return built[game.name, name]

    return find


def bucketed_tree(game, cards):
    """The abstract game written out: all cards are dealt at first, and a player sees the buckets so far."""
    sizes = Deal.from_game(game).board_sizes
    board_cards = sizes[-1]

    def seen(player, r, deal):
        own = deal[player : player + 1]
        return ".".join(str(cards.each[player].bucket(own, deal[2 : 2 + sizes[k]])) for k in range(r + 1))

    deals = list(permutations(range(game.deck.size), 2 + board_cards))

    def expand(state):
        position, deal = state
        if deal is None:
            return Expansion(CHANCE, [(1 / len(deals), (position, each)) for each in deals])
        if position.actor == TERMINAL:
            return Expansion(TERMINAL, payoff=game.payoffs(position, deal[:2], deal[2:])[0])
        after = [(1.0, (position.after(action), deal)) for action in position.actions()]
        if position.actor == CHANCE:
            return Expansion(CHANCE, after)
        name = f"{position.actor} {seen(position.actor, position.round, deal)} {position.history}"
        return Expansion(position.actor, after, name, position.actions())

    return expand_tree("bucketed", (game.start(), None), expand)


def slots_of(tree, abstract, joint, table):
    """A strategy over the slots of an abstract game with perfect recall, on the tree that is written out."""
    betting = abstract.betting
    nodes = {betting.history(node): node for node in range(len(betting.level))}
    found = []
    for name, labels in zip(tree.infosets, tree.actions, strict=True):
        player, buckets, history = name.split(" ")
        bucket, node = int(buckets.split(".")[-1]), nodes[history]
        first = abstract.first[node] + bucket * len(labels)
        found.append(table[first : first + len(labels)] / table[first : first + len(labels)].sum())
        assert betting.nodes.actor[node] == int(player)
    return np.concatenate(found)


def test_a_bucketed_game_written_out(cards_of):
    """With perfect recall: values, best responses and the equilibrium are those of the flat tree of buckets."""
    cards = cards_of(LEDUC, "PR-PHS-PHS 2-2")
    abstract, joint = AbstractGame(LEDUC, cards), joint_tables(cards)
    assert joint.perfect_recall
    game, bucketed = JointGame(abstract, joint), BucketedGame.with_abstraction(VectorGame(LEDUC), cards)
    tree = bucketed_tree(LEDUC, cards)
    strategy = np.random.default_rng(2).random(abstract.slots)
    flat = slots_of(tree, abstract, joint, strategy)
    assert game.expected_value(strategy) == pytest.approx(best_response.expected_value(tree, flat))
    values = game.response_values(strategy)
    assert values == pytest.approx(best_response.response_values(tree, flat))
    table = bucketed.table_of(abstract, strategy)
    answer, won = abstract_responses(bucketed, table)
    assert won == pytest.approx(values)
    assert walks_of(bucketed) < 12
    # A response that sees all cards wins more; what is found is a strategy that wins as much.
    assert all(np.array(bucketed.response_values(table)) >= np.array(values) - 1e-12)
    for player, mine in enumerate((game.responses(strategy), bucketed.shares_of(abstract, answer, np.uint16))):
        acts = np.repeat(abstract.betting.nodes.actor, np.diff(abstract.first)) == player
        met = game.worth(player, FOLLOW, np.where(acts, mine, game.probabilities(strategy)))
        assert met == pytest.approx(values[player])
    # CFR+ comes to the equilibrium that the linear programme finds.
    solver = Cfr(PairTables(game), "cfr+")
    solver.step(400)
    assert game.exploitability(solver.average()) < 2e-3
    assert game.expected_value(solver.average()) == pytest.approx(solve_lp(tree.nodes).value, abs=4e-3)


def test_a_view_that_loses_nothing(cards_of):
    """The best response of the abstract game is that of the game; CFR's iterates are those of walks over boards."""
    cards = cards_of(LEDUC, "lossless")
    abstract = AbstractGame(LEDUC, cards)
    game, bucketed = JointGame(abstract, joint_tables(cards)), BucketedGame.with_abstraction(VectorGame(LEDUC), cards)
    for variant in ("cfr", "pcfr+", "dcfr"):
        solver, other = Cfr(PairTables(game), variant), Cfr(TreeTables(bucketed), variant)
        solver.step(20)
        other.step(20)
        for mine, theirs in ((solver.average(), other.average()), (solver.current(), other.current())):
            assert game.exploitability(mine) == pytest.approx(bucketed.exploitability(theirs), rel=1e-6)
            assert game.expected_value(mine) == pytest.approx(bucketed.expected_value(theirs), rel=1e-6)
    state = solver.state()
    again = Cfr(PairTables(game), "dcfr")
    again.restore(state)
    again.step(2)
    solver.step(2)
    assert (again.average() == solver.average()).all()
    with pytest.raises(GameError, match="use the strategy that was made for it"):
        game.expected_value(np.ones(3))


def test_two_cards_and_two_views(cards_of):
    """Hands that share cards, rounds of several cards, imperfect recall, and players who see different buckets."""
    twelve = Holdem(GameDef.parse(TWELVE), "twelve")
    views = [cards_of(twelve, name) for name in ("PR-PHS-PHS 2-2-2", "IR-PHS-PHS 3-3-3")]
    vectors = VectorGame(twelve)
    rng = np.random.default_rng(3)
    for cards in (*views, AsymmetricAbstraction((views[1], views[0]))):
        joint = joint_tables(cards)
        abstract = AbstractGame(twelve, cards)
        game, bucketed = JointGame(abstract, joint), BucketedGame.with_abstraction(vectors, cards)
        assert joint.wins.sum() == pytest.approx(joint.loses.sum())
        assert [round(float(table.sum()), 9) for table in joint.pair_probabilities] == [1, 1, 1]
        strategy = rng.random(abstract.slots)
        table = bucketed.table_of(abstract, strategy)
        assert game.expected_value(strategy) == pytest.approx(bucketed.expected_value(table))
        assert game.response_values(strategy) == pytest.approx(abstract_responses(bucketed, table)[1])
        assert game.exploitability(strategy) < bucketed.exploitability(table)
    solver, other = Cfr(PairTables(game)), Cfr(TreeTables(bucketed))
    solver.step(12)
    other.step(12)
    shares = bucketed.shares_of(abstract, other.average(), np.uint16)
    assert solver.average() == pytest.approx(game.probabilities(shares), abs=1e-4)


def test_tilted_payoffs(cards_of):
    """Each player's case has its own factor; a tilt of all cases alike scales the game, and so CFR's iterates stay."""
    cards = cards_of(LEDUC, "PR-PHS-PHS 2-2")
    joint = joint_tables(cards)
    plain = JointGame(AbstractGame(LEDUC, cards), joint)
    strategy = np.random.default_rng(4).random(plain.abstract.slots)
    tilt = (7, -7, 3, 5)
    tilted_game = tilt_game(LEDUC, tilt)
    game = JointGame(AbstractGame(tilted_game, cards), joint)
    bucketed = BucketedGame.with_abstraction(VectorGame(tilted_game), cards)
    table = bucketed.table_of(game.abstract, strategy)
    assert game.expected_value(strategy) == pytest.approx(bucketed.expected_value(table))
    assert game.response_values(strategy) == pytest.approx(abstract_responses(bucketed, table)[1])
    scaled = JointGame(AbstractGame(tilt_game(LEDUC, (25, 25, 25, 25)), cards), joint)
    assert scaled.exploitability(strategy) == pytest.approx(1.25 * plain.exploitability(strategy))
    first, second = Cfr(PairTables(plain)), Cfr(PairTables(scaled))
    first.step(10)
    second.step(10)
    assert first.average() == pytest.approx(second.average())


def test_tables_on_disk(cards_of, tmp_path):
    cards = cards_of(LEDUC, "PR-PHS-PHS 2-2")
    joint = joint_tables(cards, threads=2)
    joint.save(tmp_path / "joint", cards.fingerprint)
    found = JointTables.load(tmp_path / "joint", cards.fingerprint)
    assert all(
        (mine == theirs).all() for mine, theirs in zip(joint.pair_probabilities, found.pair_probabilities, strict=True)
    )
    assert (found.wins == joint.wins).all()
    naive = np.zeros_like(joint.wins)
    for first, second, board in product(range(6), repeat=3):
        if len({first, second, board}) == 3:
            rows = [cards.bucket((hand,), (board,)) for hand in (first, second)]
            won = LEDUC.payoffs(LEDUC.replay("cc/cc"), (first, second), (board,))[0]
            naive[rows[0], rows[1]] += max(won, 0.0) / 120
    assert joint.wins == pytest.approx(naive)
    with pytest.raises(ArtifactError, match="delete it"):
        JointTables.load(tmp_path / "joint", "other")


def test_too_many_sequences(cards_of, monkeypatch):
    monkeypatch.setattr("kilt.abstraction.joint.MAX_SEQUENCES", 3)
    with pytest.raises(AbstractionError, match="4 buckets in a round"):
        joint_tables(cards_of(LEDUC, "PR-PHS-PHS 2-2"))
    with pytest.raises(AbstractionError, match="5 bucket sequences up to round 2"):
        joint_tables(cards_of(LEDUC, "IR-PHS-PHS 2-3"))


def test_a_run(tmp_path, monkeypatch):
    """Runs by joint tables resume, play and are judged as others; their log has both exploitabilities."""
    config = tmp_path / "my.toml"
    config.write_text('game = "leduc"\ncards = "PR-PHS-PHS 2-2"\n[solver]\nalgorithm = "joint:cfr+"\niterations = 30\n')
    whole = answer("solve", config, "--out", tmp_path / "whole")
    assert 0 < whole["abstract_exploitability"] < whole["exploitability"]
    answer("solve", config, "--out", tmp_path / "run", "--iterations", 10)
    again = answer("solve", "--resume", tmp_path / "run", "--iterations", 30)
    assert [again[key] for key in ("exploitability", "value")] == [whole[key] for key in ("exploitability", "value")]
    steps = open_run(tmp_path / "run").steps
    assert steps[-1].abstract_exploitability < steps[0].abstract_exploitability
    assert answer("match", tmp_path / "run", "always-call", "--hands", 100)["players"]
    text = config.read_text()
    config.write_text(text.replace("joint:cfr+", "cfr+"))
    walked = answer("solve", config, "--out", tmp_path / "walked")
    for key in ("exploitability", "abstract_exploitability", "value"):
        assert walked[key] == pytest.approx(whole[key], rel=1e-3)
    config.write_text(text)
    monkeypatch.setattr("kilt.abstraction.joint.MAX_SEQUENCES", 3)
    assert "use fewer buckets" in refused("solve", config, "--out", tmp_path / "large")
    assert not (tmp_path / "large").exists()
    config.write_text(f'{text}[engine]\nname = "local"\n')
    assert "omit the engine" in refused("solve", config, "--out", tmp_path / "large")


def test_answers_to_what_orange_was_seen_to_do(cards_of, tmp_path):
    """Figures 6.1 and 6.2 by joint tables: games are drawn as they come, and nobody wins more than a best response."""
    folder, tables = tmp_path / "kept", joint_tables(cards_of(LEDUC, "lossless"))
    by = ("dcfr", 60)
    contest = OrangeHoldem(LEDUC, lambda: tables, (7, 0, 0, 7), "cpu", iterations=60, orange=by, folder=folder)
    game = contest.game
    orange = game.probabilities(contest.orange)
    counts = observed(game, orange, 1, 20_000, np.random.default_rng(1))
    assert counts[np.repeat(game.layout.actor, game.layout.actions) == 0].sum() == 0
    seen = np.add.reduceat(counts, game.layout.start[:-1])
    assert 20_000 <= seen[game.layout.round == 0].sum() < 40_000  # once or twice in a round
    expected = np.repeat(seen, game.layout.actions) * orange
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected) + 5).all()
    for confidence in (RNR, "1-step"):
        points = [contest.answer(CurveSetting(confidence, 2000), share) for share in (0.0, 0.9, 1.0)]
        assert all(point.won <= contest.bound for point in points)
        assert points[0].model < points[1].model < points[2].model
    assert list(contest.ends()[1]) == pytest.approx([game.exploitability(game.responses(orange)), contest.bound])
    again = OrangeHoldem(LEDUC, lambda: tables, (7, 0, 0, 7), "cpu", iterations=60, orange=by, folder=folder)
    again._stepped = pytest.fail
    assert (again.orange == orange).all()  # it is kept, and not solved twice
