"""Blueprints on disk, and agents that play them."""

import json
import random
import shutil
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import chain, cycle, pairwise, product

import numpy as np
import pytest

from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import actions_of
from kilt.abstraction.buckets import AbstractionSpec, AsymmetricAbstraction
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import plan_named
from kilt.errors import ArtifactError, PlayError
from kilt.evaluate import head_to_head
from kilt.evaluate.aivat import BlueprintValues, EnumeratedValues
from kilt.evaluate.lbr import lower_bound
from kilt.evaluate.matchup import evaluate_matchup
from kilt.evaluate.stats import estimate_mean, played_hands, played_rate, win_rate
from kilt.games.game import CHANCE, TERMINAL
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.play import batch
from kilt.play.agent import BASELINES, Observation
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Dealer
from kilt.play.match import MatchSetup, play_match
from kilt.strategy.blueprint import Blueprint, export
from kilt.strategy.postprocess import RULES, Rule, rule_named
from kilt.strategy.translate import MAPPINGS, Deterministic, mapping_named, pseudo_harmonic

NEAREST = Deterministic(pseudo_harmonic)


def short(stacks="40 40", blinds="2 1", betting="nolimit", more=""):
    """Hold'em with twelve cards."""
    text = f"""
        GAMEDEF
        {betting}
        numPlayers = 2
        numRounds = 4
        stack = {stacks}
        blind = {blinds}
        firstPlayer = 2 1 1 1
        numSuits = 3
        numRanks = 4
        numHoleCards = 2
        numBoardCards = 0 2 1 1
        {more}
        END GAMEDEF"""
    return Holdem(GameDef.parse(text), "short")


LIMIT = short("400 400", "2 1", "limit", "raiseSize = 2 2 4 4\n maxRaises = 3 4 4 4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cards")
    deal = Deal.from_game(short())
    build(AbstractionSpec("cards", deal, plan_named("IR-PHS-PHS 4-4-4-3", deal.board_cards)), folder / "cards")
    return folder


@pytest.fixture(scope="module")
def cards(folder):
    deal = Deal.from_game(short())
    return build(AbstractionSpec("cards", deal, plan_named("IR-PHS-PHS 4-4-4-3", deal.board_cards)), folder / "cards")


def drawn(game, cards, menu, seed=0, near=0.8):
    """A random strategy: some actions are never taken, and here and there nobody has been."""
    abstract = AbstractGame(game, cards, None if menu is None else actions_of(menu, near))
    rng = np.random.default_rng(seed)
    shares = rng.integers(0, 256, abstract.slots) * rng.integers(0, 4, abstract.slots).clip(0, 1)
    return abstract, Blueprint.of(abstract, shares.astype(np.uint8))


def observation_after(game, history, key=0, hand=(0, 1), board=(2, 3, 4, 5)):
    """The position after a history, with the cards of its round."""
    position = game.start()
    moves = history.replace("c", " c ").replace("f", " f ").replace("/", " / ").replace("r", " r").split()
    for move in moves:
        position = position.after(move)
    assert position.actor >= 0
    return Observation(position, hand, board[: game.rules.board_size(position.round)], key)


# ── on disk ──


def test_saved_and_loaded(folder, cards, tmp_path):
    for menu in ("1x, a; a", ("1x", "50%, a"), None):
        game = short("12 12" if menu is None else "40 40")
        _, made = drawn(game, cards, menu, near=0.7)
        place = tmp_path / f"run {menu}"
        made.figures["seconds"] = 2.5
        made.save(place / "strategy", folder / "cards")
        for path in (place, place / "strategy"):
            found = Blueprint.load(path, check=True)
            assert (found.game, found.actions, found.fingerprint) == (made.game, made.actions, made.fingerprint)
            assert found.figures == {"seconds": 2.5}
            assert found.cards.identity == cards.identity
            acts = np.flatnonzero(made.nodes.actor >= 0)
            for node in np.random.default_rng(1).choice(acts, 200).tolist():
                assert found.labels(node) == made.labels(node)
                for bucket in range(cards.rounds[made.nodes.round[node]].buckets):
                    assert found.row(node, bucket) == made.row(node, bucket)
            hand, board = (7, 3), (11, 0, 4, 9)
            for r, size in enumerate((0, 2, 3, 4)):
                assert found.bucket(0, r, hand, board[:size]) == cards.bucket(hand, board[:size])


def test_cards_were_one_path_at_first(folder, cards, tmp_path):
    _, made = drawn(short(), cards, "1x")
    made.save(tmp_path / "strategy", folder / "cards")
    manifest = tmp_path / "strategy" / "manifest.json"
    said = json.loads(manifest.read_text())
    said["parameters"]["cards"] = said["parameters"]["cards"][0]
    del said["blake2b"]  # nor did manifests have a checksum of their own
    manifest.write_text(json.dumps(said))
    assert Blueprint.load(tmp_path).cards.fingerprint == cards.fingerprint


def test_players_may_see_different_cards(folder, cards, tmp_path):
    """Each has slots for their own buckets, is looked up in them, and takes them along."""
    game, deal = short(), Deal.from_game(short())
    other = build(
        AbstractionSpec("other", deal, plan_named("IR-PHS-PHS 3-2-5-6", deal.board_cards)), tmp_path / "other"
    )
    both = AsymmetricAbstraction((cards, other))
    abstract, made = drawn(game, both, "1x, a; a")
    nodes = abstract.betting.nodes
    acts = np.flatnonzero(nodes.actor >= 0)
    numbers = np.array([[4, 4, 4, 3], [3, 2, 5, 6]])[nodes.actor[acts], nodes.round[acts]]
    assert np.array_equal(np.diff(abstract.first)[acts], numbers * nodes.children[acts])
    assert sum(abstract.size.slots) == abstract.slots
    assert sum(abstract.size.infosets) == numbers.sum()
    assert (
        len({abstract.fingerprint, *(AbstractGame(game, one, abstract.actions).fingerprint for one in both.each)}) == 3
    )
    made.save(tmp_path / "run" / "strategy", folder / "cards", tmp_path / "other")
    export(tmp_path / "run", tmp_path / "out")
    (tmp_path / "other").rename(tmp_path / "elsewhere")
    with pytest.raises(ArtifactError, match="are missing"):
        Blueprint.load(tmp_path / "run")
    found = Blueprint.load(tmp_path / "out")
    assert found.fingerprint == made.fingerprint
    rng = np.random.default_rng(2)
    for _ in range(50):
        drawn_cards = rng.permutation(game.deck.size)[:6].tolist()
        hand, board = drawn_cards[:2], drawn_cards[2:]
        for r, size in enumerate((0, 2, 3, 4)):
            expected = [one.bucket(hand, board[:size]) for one in both.each]
            assert [found.bucket(player, r, hand, board[:size]) for player in (0, 1)] == expected
    for name in ("r", "cr", "cc/", "cc/c"):
        observation = observation_after(game, name.replace("r", "r12"))
        place = BlueprintAgent("it", found).follow(observation)
        bucket = both.each[observation.position.actor].bucket(observation.hand, observation.board)
        row = made.row(place.node, bucket)
        shares = BlueprintAgent("it", found).probabilities(observation)
        assert [share for _, share in shares] == pytest.approx(row) or (not any(row) and shares == [("c", 1.0)])


def test_rows(cards):
    abstract, made = drawn(short(), cards, "1x, a; a")
    nodes = abstract.betting.nodes
    empty = 0
    for node in np.flatnonzero(nodes.actor >= 0)[:300].tolist():
        below = range(nodes.first_child[node], nodes.first_child[node] + nodes.children[node])
        assert made.labels(node) == [abstract.betting.labels[child] for child in below]
        part = made.shares[abstract.first[node] : abstract.first[node + 1]].reshape(-1, len(below)).astype(float)
        for bucket, expected in enumerate(part):
            row = made.row(node, bucket)
            assert row == pytest.approx((expected / max(expected.sum(), 1)).tolist())
            empty += not any(row)
        assert bucket == abstract.buckets[nodes.actor[node]][nodes.round[node]] - 1
    assert empty


def test_exported(folder, cards, tmp_path):
    """What is exported needs nothing else, wherever it is put."""
    _, made = drawn(short(), cards, "1x, a; a")
    shutil.copytree(folder / "cards", tmp_path / "here" / "buckets")
    run = tmp_path / "here" / "run"
    made.save(run / "strategy", tmp_path / "here" / "buckets")
    export(run, tmp_path / "out")
    with pytest.raises(ArtifactError, match="out is there already"):
        export(run, tmp_path / "out")
    export(run / "strategy", tmp_path / "again")
    shutil.rmtree(tmp_path / "here")
    (tmp_path / "far").mkdir()
    for name in ("out", "again"):
        (tmp_path / name).rename(tmp_path / "far" / name)
        found = Blueprint.load(tmp_path / "far" / name, check=True)
        assert np.array_equal(found.shares, made.shares)
        assert found.bucket(1, 3, (7, 3), (11, 0, 4, 9)) == cards.bucket((7, 3), (11, 0, 4, 9))
        agents = BlueprintAgent("mine", found), BlueprintAgent("theirs", made)
        assert all(Dealer(found.game, 1).play(number, agents).payoffs for number in range(20))
    export(tmp_path / "far" / "out", tmp_path / "third")
    assert np.array_equal(Blueprint.load(tmp_path / "third").shares, made.shares)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_packed(cards, tmp_path):
    """One file has it all; the last round's buckets are computed from strengths, and are the same."""
    _, made = drawn(short(), cards, "1x, a; a")
    file = tmp_path / "mine.agent"
    made.pack(file)
    found = Blueprint.load(file)
    assert (found.game, found.actions, found.fingerprint) == (made.game, made.actions, made.fingerprint)
    assert np.array_equal(found.shares, made.shares)
    assert len(found.cards.rounds[3].table) == 0 < len(cards.rounds[3].table)
    holes = np.array(cards.identity.deal.deck.holes(2))
    hands = np.arange(len(holes)).reshape(-1, 1)
    for r, board in enumerate(((), (11, 0), (11, 0, 4), (11, 0, 4, 9))):
        free = ~np.isin(holes, board).any(axis=1)
        expected = cards.rounds[r].look_up_board(board)[free].tolist()
        assert found.cards.rounds[r].look_up_board(board)[free].tolist() == expected
        boards, buckets = (
            np.tile(np.array(board, dtype=np.int64), (len(holes), 1)),
            np.zeros((len(holes), 1), np.uint32),
        )
        found.cards.look_up(r, boards, hands, buckets)
        assert buckets[free, 0].tolist() == expected
    found.pack(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == file.read_bytes()
    whole = file.read_bytes()
    for damaged in (whole[:-30], b"no archive", whole[:2000] + bytes(100) + whole[2100:]):
        file.write_bytes(damaged)
        with pytest.raises(ArtifactError, match="damaged"):
            Blueprint.load(file)


def test_buckets_that_are_missing_or_others(folder, cards, tmp_path):
    _, made = drawn(short(), cards, "a")
    shutil.copytree(folder / "cards", tmp_path / "cards")
    made.save(tmp_path / "run" / "strategy", tmp_path / "cards")
    shutil.rmtree(tmp_path / "cards")
    for action in (Blueprint.load, lambda path: export(path, tmp_path / "out")):
        with pytest.raises(ArtifactError, match=r"the buckets of .*strategy are missing .* of an exported agent"):
            action(tmp_path / "run")
    deal = Deal.from_game(short())
    others = build(
        AbstractionSpec("cards", deal, plan_named("IR-PHS-PHS 4-4-4-2", deal.board_cards)), tmp_path / "cards"
    )
    with pytest.raises(
        ArtifactError, match=f"made with buckets {cards.identity.fingerprint}, and .*cards has "
    ) as said:
        Blueprint.load(tmp_path / "run")
    assert others.identity.fingerprint in str(said.value) and "copy the right buckets there" in str(said.value)
    assert not (tmp_path / "out").exists()
    with pytest.raises(ArtifactError):
        Blueprint.load(tmp_path / "nothing")


def test_another_game_is_refused(cards):
    _, made = drawn(short(), cards, "a")
    agent = BlueprintAgent("mine", made)
    other = short("41 41")
    with pytest.raises(PlayError, match="mine plays only short, and not this game"):
        agent.act(observation_after(other, "c"))
    assert agent.act(observation_after(short(), "c"))


# ── whatever the opponent does ──


@dataclass(frozen=True)
class Watched:
    """Plays what another agent plays, and looks at everything that it may do."""

    agent: BlueprintAgent
    name: str = "watched"
    places: dict = field(default_factory=dict)  # [key, seat] those of the hand so far
    seen: Counter = field(default_factory=Counter)

    def act(self, observation):
        nodes = self.agent.blueprint.nodes
        place = self.agent.follow(observation)
        shares = self.agent.probabilities(observation)
        assert sum(share for _, share in shares) == pytest.approx(1)
        assert all(share >= 0 for _, share in shares)
        for action, _ in shares:
            observation.position.after(action)  # it is legal
        if place.node is None:
            assert shares == [("c", 1.0)]
        else:
            where = observation.position
            assert nodes.actor[place.node] == where.actor and nodes.round[place.node] == where.round
        before = self.places.setdefault((observation.key, observation.position.actor), [])
        assert place.acted == bool(before)
        known = [node for node in before if node is not None]
        if known:  # what was once decided about the hand stays so
            assert place.node is None or known[-1] in ancestors(nodes, place.node)
        before.append(place.node)
        self.seen["lost" if place.node is None else "followed"] += 1
        action = self.agent.act(observation)
        assert action == self.agent.act(observation) and action in {label for label, share in shares if share > 0}
        return action


def ancestors(nodes, node):
    found = set()
    while node >= 0:
        found.add(node)
        node = int(nodes.parent[node])
    return found


@dataclass(frozen=True)
class Bold:
    """Raises often, to any level, and never folds."""

    name: str = "bold"

    def act(self, observation):
        bounds, number = observation.position.raise_bounds(), 2 * len(observation.position.history)
        if bounds is None or observation.draw(number) < 0.5:
            return "c"
        if observation.position.rules.betting == "limit":
            return "r"
        spread = observation.draw(number + 1) ** 3
        return f"r{bounds[0] + int(spread * (bounds[1] - bounds[0] + 1))}"


OPPONENTS = BASELINES["random"], BASELINES["always-raise"], BASELINES["probe"], Bold()
MANNERS = list(zip(MAPPINGS, cycle([*RULES, "new-0.2-after-first"]), strict=False))  # all mappings, and all rules
MENUS = {
    "pot": (short(), "1x, a; a"),
    "per player": (short(), ("50%, 1x", "m, 2x, a / 1x; a")),
    "by rounds": (short("200 200"), "m, 1x; 2x / 1x / 50%; a"),
    "no raises": (short(), ""),
    "no raises later": (short(), "1x; "),
    "least": (short("16 16"), "m"),
    "all-in": (short(), "a"),
    "all-in only before the flop": (short(), "a / "),
    "all": (short("9 9"), None),
    "tiny": (short("3 3"), "1x, a"),
    "two big blinds": (short("4 4"), "1x, a"),
    "all-in by the blind": (short("2 2"), "1x, a"),
    "uneven": (short("9 30"), "50%, 1x, a"),
    "uneven the other way": (short("30 5"), "1x; a"),
    "capped": (short(more="maxRaises = 1 2 1 2"), "50%, 1x, a"),
    "large blinds": (short("400 400", "100 50"), "1x, a"),
    "equal blinds": (short("40 40", "1 1"), "1x, a; a"),
    "limit": (LIMIT, None),
}


@pytest.mark.parametrize("name", MENUS)
def test_no_opponent_leads_astray(cards, name):
    game, menu = MENUS[name]
    _, made = drawn(game, cards, menu)
    seen = Counter()
    for number, (mapping, rule) in enumerate(MANNERS):
        agent = BlueprintAgent(name, made, rule_named(rule), MAPPINGS[mapping])
        for place, opponent in enumerate(OPPONENTS):
            for seat in (0, 1):
                watched, dealer = Watched(agent), Dealer(game, 8 * number + 2 * place + seat)
                agents = (watched, opponent) if seat == 0 else (opponent, watched)
                for hand in range(8):
                    payoffs = dealer.play(hand, agents).payoffs
                    assert sum(payoffs) == 0
                seen += watched.seen
    assert seen["followed"] > 200


def test_thousands_of_hands(cards):
    """One agent, many hands, against all comers and itself."""
    game, menu = MENUS["by rounds"]
    _, made = drawn(game, cards, menu, seed=1)
    agent = BlueprintAgent("mine", made)
    watched, dealer = Watched(agent), Dealer(game, 7)
    for hand in range(2000):
        opponent = (*OPPONENTS, agent)[hand % 5]
        dealer.play(hand, (watched, opponent) if hand % 2 else (opponent, watched))
    assert watched.seen["followed"] > 2000 and watched.seen["lost"] > 100


# ── in step ──


@dataclass(frozen=True)
class Within:
    """Takes the bets of a tree, all alike."""

    actions: dict  # [history] the labels there
    name: str = "within"

    def act(self, observation):
        labels = self.actions[observation.position.history]
        return labels[int(observation.draw(2 * len(observation.position.history)) * len(labels))]


@dataclass(frozen=True)
class InStep:
    """Looks whether an agent knows exactly where it is."""

    agent: BlueprintAgent
    node: dict  # [history]
    seen: set = field(default_factory=set)
    name: str = "in step"

    def act(self, observation):
        place, position = self.agent.follow(observation), observation.position
        assert place.node == self.node[position.history]
        assert self.agent.blueprint.limit or place.level == max(position.spent)
        made = self.agent.blueprint
        row = made.row(place.node, made.bucket(position.actor, position.round, observation.hand, observation.board))
        expected = list(zip(made.labels(place.node), row, strict=True)) if any(row) else [("c", 1.0)]
        assert self.agent.probabilities(observation) == expected
        self.seen.add(place.node)
        return self.agent.act(observation)


@pytest.mark.parametrize("name", ["pot", "per player", "by rounds", "all", "uneven", "capped", "no raises", "limit"])
def test_bets_of_the_tree_are_what_they_are(cards, name):
    game, menu = MENUS[name]
    abstract, made = drawn(game, cards, menu)
    betting = abstract.betting
    node = {betting.history(place): place for place in np.flatnonzero(betting.nodes.actor >= 0).tolist()}
    within = Within({history: made.labels(place) for history, place in node.items()})
    for mapping in ("pseudo-harmonic", "geometric", "deterministic-arithmetic"):
        watched = InStep(BlueprintAgent("mine", made, mapping=MAPPINGS[mapping]), node)
        for hand in range(400):
            Dealer(game, 3).play(hand, (watched, within) if hand % 2 else (within, watched))
        assert len(watched.seen) > min(40, 0.5 * len(node))


# ── bets that the tree does not have ──


def taken_for(agent, abstract, history, number=4000):
    """How often a history is taken for which one of the tree, over many keys."""
    rng, observation = random.Random(5), observation_after(abstract.game, history)
    places = (agent.follow(observation._replace(key=rng.getrandbits(64))) for _ in range(number))
    return Counter(abstract.betting.history(place.node) for place in places)


def test_chances_of_translation(cards):
    """Chance decides by the key, as the mapping says; sizes are in pots after calling."""
    abstract, made = drawn(short(), cards, "50%, 3x")
    agent = BlueprintAgent("mine", made)
    found = taken_for(agent, abstract, "r9")  # by 7/4 pots: the tree has raises to 4 and 14
    assert set(found) == {"r4", "r14"}
    near(found["r4"], pseudo_harmonic(0.5, 3, 1.75), 4000)
    found = taken_for(agent, abstract, "cc/cr5")  # a check would end the round
    assert set(found) == {"cc/cr4", "cc/cr14"}
    near(found["cc/cr4"], pseudo_harmonic(0.5, 3, 0.75), 4000)


def test_chances_of_a_check(cards):
    """The first bet of a round may be taken for a check, since the agent still has to act."""
    abstract, made = drawn(short("400 400", "20 10"), cards, "1x")
    for name in ("pseudo-harmonic", "arithmetic", "geometric"):
        found = taken_for(BlueprintAgent("mine", made, mapping=MAPPINGS[name]), abstract, "cc/r40")
        assert set(found) == ({"cc/r60"} if name == "geometric" else {"cc/c", "cc/r60"})
        near(found["cc/c"], MAPPINGS[name](0, 1, 0.5), 4000)


def test_translations_of_a_hand_are_independent(cards):
    abstract, made = drawn(short("400 400"), cards, "50%, 3x")
    found = taken_for(BlueprintAgent("mine", made), abstract, "r9c/cr40")
    first, second = pseudo_harmonic(0.5, 3, 7 / 4), pseudo_harmonic(0.5, 3, 31 / 18)
    assert set(found) == {"r4c/cr8", "r4c/cr28", "r14c/cr28", "r14c/cr98"}
    near(found["r4c/cr8"], first * second, 4000)
    near(found["r4c/cr28"], first * (1 - second), 4000)
    near(found["r14c/cr28"], (1 - first) * second, 4000)


def near(count, chance, number):
    assert abs(count - number * chance) <= 5 * (number * chance * (1 - chance)) ** 0.5


def test_the_same_key_gives_the_same_answer(cards):
    """Asked in whatever order; and each answer of a hand goes on from the one before."""
    _, made = drawn(short("200 200"), cards, "50%, 1x, 2x, a; a")
    game, nodes, ways = made.game, made.nodes, Counter()
    line = ["r7", "r7c/", "r7c/cr20", "r7c/cr20c/", "r7c/cr20c/cr90"]
    for key in range(300):
        agent, other = BlueprintAgent("one", made), BlueprintAgent("two", made)
        theirs = [observation_after(game, history, key) for history in line]
        places = [agent.follow(observation) for observation in theirs]
        assert places == [other.follow(observation) for observation in reversed(theirs)][::-1]
        assert [agent.act(observation) for observation in theirs] == [other.act(observation) for observation in theirs]
        known = [place.node for place in places]
        assert all(a in ancestors(nodes, b) for a, b in pairwise(known) if b is not None)
        ways[tuple(known)] += 1
    assert len(ways) == 8  # two for each of three bets


# ── out of step ──


def always(abstract, label):
    """A strategy that takes one action wherever it is there, and calls elsewhere."""
    nodes, labels = abstract.betting.nodes, abstract.betting.labels
    shares = np.zeros(abstract.slots, dtype=np.uint8)
    for node in np.flatnonzero(nodes.actor >= 0).tolist():
        below = labels[nodes.first_child[node] : nodes.first_child[node] + nodes.children[node]]
        place = next((a for a, name in reversed(list(enumerate(below))) if name.startswith(label)), below.index("c"))
        shares[abstract.first[node] + place : abstract.first[node + 1] : len(below)] = 255
    return Blueprint.of(abstract, shares)


def test_a_large_bet_is_taken_for_all_in_and_chips_are_left(cards):
    game = short()
    abstract = AbstractGame(game, cards, actions_of("1x, a"))
    agent = BlueprintAgent("mine", always(abstract, "r"), mapping=NEAREST)
    taken = agent.follow(observation_after(game, "r38"))
    assert (abstract.betting.history(taken.node), taken.level) == ("r40", 40)
    assert agent.blueprint.labels(taken.node) == ["f", "c"] and agent.act(observation_after(game, "r38")) == "c"
    # The abstract hand is over; in the real one there are bets of up to two chips.
    for history in ("r38c/", "r38c/cr40", "r38c/cc/", "r38c/cc/cc/", "r38c/cc/cc/cr40"):
        observation = observation_after(game, history)
        assert observation.position.actor == 0
        assert agent.follow(observation).node is None
        assert agent.probabilities(observation) == [("c", 1.0)]
    # It would fold where the strategy folds, which is legal.
    folding = BlueprintAgent("mine", always(abstract, "f"), mapping=NEAREST)
    assert folding.act(observation_after(game, "r38")) == "f"


def test_all_in_is_taken_for_a_smaller_bet(cards):
    game = short()
    abstract = AbstractGame(game, cards, actions_of("1x"))
    agent = BlueprintAgent("mine", always(abstract, "r"))
    observation = observation_after(game, "r40")
    taken = agent.follow(observation)
    assert (abstract.betting.history(taken.node), taken.level) == ("r6", 6)
    assert agent.blueprint.labels(taken.node) == ["f", "c", "r18"]
    assert agent.probabilities(observation) == [("f", 0.0), ("c", 0.0), ("c", 1.0)]  # there is nothing to raise
    assert agent.act(observation) == "c"
    folding = BlueprintAgent("mine", always(abstract, "f"))
    assert folding.act(observation) == "f"
    # Nearly all-in: a raise is legal, and it is all-in.
    observation = observation_after(game, "r36")
    assert abstract.betting.history(agent.follow(observation).node) == "r6"
    assert agent.act(observation) == "r40"


def test_a_small_bet_is_taken_for_a_check(cards):
    game = short("400 400", "20 10")
    abstract = AbstractGame(game, cards, actions_of("1x, a"))
    histories = abstract.betting.history
    small = Deterministic(lambda a, b, x: 1.0)  # always the smaller one
    agent = BlueprintAgent("mine", always(abstract, "c"), mapping=small)
    # The opponent is the big blind and bets first.
    observation = observation_after(game, "cc/r40")
    taken = agent.follow(observation)
    assert (histories(taken.node), taken.level) == ("cc/c", 20)
    assert agent.blueprint.labels(taken.node) == ["c", "r60", "r400"]
    assert agent.probabilities(observation) == [("c", 1.0), ("r120", 0.0), ("r400", 0.0)]
    # What is a check there is a call here, and the hand goes on in step, with more in the pot.
    after = agent.follow(observation_after(game, "cc/r40c/c"))
    assert (histories(after.node), after.level) == ("cc/cc/c", 20)
    # A bet of the pot there is a raise by the pot here, 80 more; when it is raised, all three are in the tree.
    after = agent.follow(observation_after(game, "cc/r40r120r360"))
    assert (histories(after.node), after.level) == ("cc/cr60r180", 180)
    # All-in is all-in, whatever is in the pot.
    assert histories(agent.follow(observation_after(game, "cc/r40r120r400")).node) == "cc/cr60r400"
    # Where a check would end the round, a bet is a bet: the agent has to answer it.
    assert histories(agent.follow(observation_after(game, "cc/cr40")).node) == "cc/cr60"
    # The agent answers a raise of its own bet; a call would end the round.
    assert histories(agent.follow(observation_after(game, "cc/cr60r110")).node) == "cc/cr60r180"


def test_a_small_raise_before_the_flop_is_taken_for_a_call(cards):
    game = short("400 400", "20 10")
    abstract = AbstractGame(game, cards, actions_of("1x, a"))
    agent = BlueprintAgent("mine", always(abstract, "c"), mapping=lambda a, b, x: 1.0)
    taken = agent.follow(observation_after(game, "r40"))
    assert (abstract.betting.history(taken.node), taken.level) == ("c", 20)
    assert agent.act(observation_after(game, "r40")) == "c"
    after = agent.follow(observation_after(game, "r40c/"))
    assert (abstract.betting.history(after.node), after.level) == ("cc/", 20)


def test_a_small_raise_that_would_end_the_round_is_called(cards):
    """The tree has all-in only, far from a raise by a third of the pot: the agent calls, and is in step afterwards."""
    game = short("4000 4000", "20 10")
    abstract = AbstractGame(game, cards, actions_of("1x; a"))
    agent = BlueprintAgent("mine", always(abstract, "f"), mapping=lambda a, b, x: 0.0)
    observation = observation_after(game, "cr60r100")
    assert agent.follow(observation).node is None
    assert agent.probabilities(observation) == [("c", 1.0)]
    after = agent.follow(observation_after(game, "cr60r100c/"))
    assert (abstract.betting.history(after.node), after.level) == ("cr60c/", 60)
    assert agent.act(observation_after(game, "cr60r3000")) == "f"  # that is all-in, nearly


def test_bets_are_as_large_in_pots(cards):
    """A raise to 46 was taken for one to 60: a third of the pot is a third of the real one."""
    game = short("1000 1000", "20 10")
    abstract = AbstractGame(game, cards, actions_of("1x / 33%, 66%, a"))
    agent = BlueprintAgent("mine", always(abstract, "r"), mapping=lambda a, b, x: 0.0)
    observation = observation_after(game, "r46c/")
    place = agent.follow(observation)
    assert (abstract.betting.history(place.node), place.level) == ("r60c/", 60)
    assert agent.blueprint.labels(place.node) == ["c", "r100", "r139", "r1000"]
    assert [label for label, _ in agent.probabilities(observation)] == ["c", "r77", "r107", "r1000"]  # whole chips
    assert agent.act(observation) == "r1000"  # all the chips, not as many pots
    # Its own bets are those that it meant, whatever the mapping makes of others.
    for own, meant in (("r77", "r100"), ("r107", "r139")):
        after = agent.follow(observation_after(game, f"r46c/{own}r1000"))
        assert abstract.betting.history(after.node) == f"r60c/{meant}r1000"


def test_no_raises_on_the_menu(cards):
    game = short()
    abstract = AbstractGame(game, cards, actions_of(""))
    agent = BlueprintAgent("mine", always(abstract, "c"))
    assert abstract.betting.history(agent.follow(observation_after(game, "r6")).node) == "c"  # the nearest there is
    assert agent.probabilities(observation_after(game, "r6")) == [("c", 1.0)]
    assert agent.follow(observation_after(game, "cc/c")).node is not None


def test_first_actions_may_be_spared(cards):
    """Post-processing knows which action is the first of a player."""
    abstract = AbstractGame(short(), cards, actions_of("1x"))
    nodes = abstract.betting.nodes
    shares = np.zeros(abstract.slots, dtype=np.uint8)
    for node in np.flatnonzero(nodes.actor >= 0).tolist():
        count = int(nodes.children[node])
        shares[abstract.first[node] : abstract.first[node + 1]].reshape(-1, count)[:] = range(1, count + 1)
    made = Blueprint.of(abstract, shares)
    agent = BlueprintAgent("mine", made, rule_named("purification-after-first"))
    for history in ("", "r6"):
        assert [share for _, share in agent.probabilities(observation_after(short(), history))] == pytest.approx(
            [1 / 6, 1 / 3, 1 / 2]
        )
    assert dict(agent.probabilities(observation_after(short(), "cr6")))["r18"] == 1
    assert dict(agent.probabilities(observation_after(short(), "cc/")))["r6"] == 1


def test_where_nobody_has_been(cards):
    abstract = AbstractGame(short(), cards, actions_of("1x"))
    agent = BlueprintAgent("mine", Blueprint.of(abstract, np.zeros(abstract.slots, dtype=np.uint8)))
    for history in ("", "r6", "cc/", "cc/cr6"):
        assert agent.probabilities(observation_after(short(), history)) == [("c", 1.0)]
    watched = Watched(agent)
    for hand in range(50):
        found = Dealer(short(), 2).play(hand, (watched, BASELINES["always-raise"]))
        assert found.position.actor == TERMINAL and found.position.folded is None


@pytest.mark.parametrize("rule", ["none", "purification-after-first", "new-0.2"])
def test_the_policy_at_a_public_state_is_what_the_agent_draws_from(cards, rule):
    """With every hand, in limit and in no-limit games, where bets that became the same count together."""
    for game, menu, histories in [
        (LIMIT, None, ("", "r", "rr", "cc/r", "crc/cc/rr", "cc/cc/cc/r")),
        (short(), "1x, a; a", ("", "c", "r6", "r40", "r6c/", "r6c/r18", "cc/r6r40")),
    ]:
        agent = BlueprintAgent("agent", drawn(game, cards, menu)[1], rule_named(rule))
        for history in histories:
            board, holes = (2, 3, 4, 5), game.deck.holes()
            one = observation_after(game, history)
            policy = agent.policy(one.position, one.board)
            assert len({*policy.actions}) == len(policy.actions)
            for number, hand in enumerate(holes.tolist()):
                if {*hand} & {*board}:
                    continue
                shares = dict.fromkeys(policy.actions, 0.0)
                for action, share in agent.probabilities(observation_after(game, history, hand=tuple(hand))):
                    shares[action] += share
                assert policy.probabilities[:, number] == pytest.approx([*shares.values()], abs=1e-15)


class Scripted:
    """A translation that takes each bet for the smaller or the larger size as it is told, and how likely that was."""

    def __init__(self, script):
        self.script, self.used, self.chance = script, 0, 1.0

    def __call__(self, a, b, x):
        smaller, share = self.script[self.used], pseudo_harmonic(a, b, x)
        self.used, self.chance = self.used + 1, self.chance * (share if smaller else 1 - share)
        return float(smaller)


@pytest.mark.parametrize("rule", ["none", "new-0.2"])
def test_a_policy_is_the_mean_over_what_bets_may_have_been_taken_for(cards, rule):
    """Hand by hand, given what the agent has done so far: as if each translation were tried."""
    game = short("120 120")
    _, blueprint = drawn(game, cards, "1x, a; 1x, a")
    agent, dealer, several = BlueprintAgent("agent", blueprint, rule_named(rule)), Dealer(game, 1), 0
    hands = [dealer.play(hand, (BASELINES["random"], agent)) for hand in range(40)]
    turns = [(hand.cards, at) for hand in hands for at, _ in game.positions.moves_to(hand.position) if at.actor == 1]
    for dealt, position in turns:
        last = Observation(position, dealt.holes[1], dealt.board[: game.rules.board_size(position.round)], key=0)
        policy = agent.policy(position, last.board)
        mine = [(at, action) for at, action in game.positions.moves_to(position) if at.actor == 1]
        found = dict.fromkeys(policy.actions, 0.0)
        for script in product((0, 1), repeat=4):
            mapping, reach = Scripted(script), 1.0
            other = BlueprintAgent("other", blueprint, rule_named(rule), mapping)
            for at, action in mine:
                seen = last._replace(position=at, board=last.board[: game.rules.board_size(at.round)])
                reach *= sum(share for taken, share in other.probabilities(seen) if taken == action)
                mapping.used, mapping.chance = 0, 1.0
            for action, share in other.probabilities(last):
                if not any(script[mapping.used :]):
                    found[action] += mapping.chance * reach * share
        several += policy.table.shape[1] == len(policy.column)
        exact = np.array([*found.values()]) / sum(found.values())
        assert policy.probabilities[:, game.deck.hole_index(last.hand)] == pytest.approx(exact, abs=1e-12)
        assert policy.probabilities.sum(axis=0) == pytest.approx(np.ones(len(policy.column)), abs=1e-12)
    assert several > 10  # branches that were weighted hand by hand


def test_a_local_best_response_bets_what_the_tree_does_not_have(cards):
    """And what it wins from an agent that translates at random is its money, less luck."""
    game = short("120 120")
    agent = BlueprintAgent("agent", drawn(game, cards, "1x, a; 1x, a")[1])
    found = lower_bound(game, agent, 60, bets="40%, 1.3x, a")
    assert abs(found.won.mean - found.money.mean) < 2 * found.money.margin
    assert 0 < found.won.margin < 0.5 * found.money.margin and found.won.mean > found.won.margin


def test_means_over_chance_of_values_learnt_from_a_blueprint(cards, tmp_path, monkeypatch):
    """In no-limit too, after bets that the tree does not have and where both are all-in: as if all cards were dealt."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path))
    game = short()
    states = BlueprintValues(drawn(game, cards, "1x, a; a")[1], groups=3, deals=2048)
    slow, board, opponent = EnumeratedValues(game, states.value), (2, 3, 4, 5), (8, 11)
    for seat in (0, 1):
        assert states.value_at_start(seat) == pytest.approx(slow.value_at_start(seat), abs=1e-4)
        for history in ("r6c", "r9c", "r40c", "r40c/", "r40c//", "r6c/cc", "r9c/cc", "cc/cc/cc"):
            position = game.replay(history)
            shown = board[: game.rules.board_size(position.round)]
            found, exact = (each.values_after_deal(position, shown, seat, opponent) for each in (states, slow))
            free = ~np.isin(game.deck.holes(), [*shown, *opponent]).any(axis=1)
            assert found[free] == pytest.approx(exact[free], abs=1e-4)


# ── batches ──


@pytest.mark.parametrize(
    ("game", "menus", "specs", "at_random"),
    [
        (LIMIT, (None, None), ("none@pseudo-harmonic", "new-0.2@pseudo-harmonic"), False),
        (short("400 400"), ("1x, a; a", "50%, 2x; 1x, a"), ("new-0.2@arithmetic", "threshold-0.15@geometric-1"), True),
        (short(), ("75%, 1.5x", "33%; 1.2x, a"), ("none@deterministic-arithmetic", "purification@geometric"), True),
        (short(), ("1x, a", "2x"), ("new-0.2-after-first@deterministic-geometric",) * 2, False),
        (short(), ("", "1x, a"), ("none@arithmetic", "none@deterministic-arithmetic"), False),
    ],
)
def test_batches_play_as_agents_do_hand_by_hand(cards, game, menus, specs, at_random):
    """Every hand and every result, in duplicate matches and in others, with bytes and with words of probabilities."""
    blueprints = [drawn(game, cards, menu, seed)[1] for seed, menu in enumerate(menus)]
    blueprints[1] = replace(blueprints[1], shares=blueprints[1].shares.astype(np.uint16) * 257)
    names = [spec.split("@") for spec in specs]
    first, second = (
        BlueprintAgent(f"{rule}-{seed}", blueprints[seed], rule_named(rule), mapping_named(mapping))
        for seed, (rule, mapping) in enumerate(names)
    )
    for duplicate in (True, False):
        table = MatchSetup(game, (first, second), seed=5, duplicate=duplicate)
        results, _, found, _ = table.play(7, 107, keep=True)
        units = [list(table.hands(unit)) for unit in range(7, 107)]
        assert found == [hand for unit in units for hand in unit]
        assert results == [sum(map(table.first_player_winnings, unit)) / len(unit) for unit in units]
        assert (table.compiled_match.tree.edges["lower"] != table.compiled_match.tree.edges["upper"]).any() == at_random


def test_large_joint_trees_are_begun_anew(cards, monkeypatch):
    monkeypatch.setattr(batch, "MOST_STATES", 20)
    agents = tuple(BlueprintAgent(name, drawn(LIMIT, cards, None)[1]) for name in "ab")
    table, again = (MatchSetup(LIMIT, agents) for _ in range(2))
    parts = [table.play(first, first + 20, keep=False)[0] for first in range(0, 60, 20)]
    assert [*chain(*parts)] == again.play(0, 60, keep=False)[0]
    assert len(table.compiled_match.tree.positions) < len(again.compiled_match.tree.positions)


def test_agents_that_are_more_than_blueprints_are_asked_hand_by_hand(cards):
    agent = BlueprintAgent("agent", drawn(short(), cards, "1x, a")[1])

    class Other(BlueprintAgent):
        pass

    own_classes = replace(agent, rule=Rule(among=0.5, classes=str.upper))
    for other in (BASELINES["probe"], Other("other", agent.blueprint), own_classes):
        assert MatchSetup(short(), (agent, other)).compiled_match is None
        assert play_match(short(), (agent, other), 20).hands == 20


# ── what is expected over all actions ──


def expected(agents, position, deal):
    """Chips that seat 0 is expected to win from a position on, where agents draw from what they tell."""
    if position.actor == CHANCE:
        return expected(agents, position.after("/"), deal)
    if position.actor == TERMINAL:
        return Dealer(Holdem(position.rules)).finish_hand(0, position, deal, ("", "")).payoffs[0]
    board = deal.board[: position.rules.board_size(position.round)]
    observation = Observation(position, deal.holes[position.actor], board, 0)
    if isinstance(agents[position.actor], BlueprintAgent):
        shares = agents[position.actor].probabilities(observation)
    else:
        shares = [(agents[position.actor].act(observation), 1.0)]
    return sum(share * expected(agents, position.after(action), deal) for action, share in shares if share)


@pytest.mark.parametrize(
    ("game", "menu", "rules"),
    [
        (LIMIT, None, ("threshold-0.15", "new-0.2-after-first")),
        (short(), "1x, a; a", ("none", "purification")),
        (short(), "1x, a", ("new-0.2", "always-call")),
    ],
)
def test_what_is_expected_over_all_actions(cards, game, menu, rules):
    """On the deals of matches, after post-processing; against a caller too."""
    agents = tuple(
        BASELINES.get(rule) or BlueprintAgent(rule, drawn(game, cards, menu, seed)[1], rule_named(rule))
        for seed, rule in enumerate(rules)
    )
    for agent in agents[: 1 + (rules[1] not in BASELINES)]:
        whole = head_to_head.blueprint_strategy(agent)
        before = whole._replace(shares=np.asarray(agent.blueprint.shares))
        assert np.array_equal(head_to_head.post_processed(before, agent.rule).shares, whole.shares)
    deals = [Dealer(game, 3).deal(unit) for unit in range(2)]
    exact = np.array(
        [[expected(agents, game.start(), deal), -expected(agents[::-1], game.start(), deal)] for deal in deals]
    )
    match = evaluate_matchup(game, agents, 4, seed=3)
    assert match.way == "expected" and match.hands == 4 and match.players == tuple(agent.name for agent in agents)
    assert match.results == pytest.approx(exact.mean(axis=1), abs=1e-4)
    assert match.played.tolist() == play_match(game, agents, 4, seed=3).results.tolist()
    alone = evaluate_matchup(game, agents, 2, seed=3, duplicate=False)
    assert alone.results == pytest.approx(exact[[0, 1], [0, 1]], abs=1e-4)


def test_players_who_bet_by_different_trees_play_hands(cards, monkeypatch):
    first, second = (BlueprintAgent(menu, drawn(short(), cards, menu)[1]) for menu in ("1x, a", "2x"))
    for other in (second, BASELINES["always-raise"], BASELINES["random"]):
        assert evaluate_matchup(short(), (first, other), 4, way="played").way == "played"
        with pytest.raises(PlayError, match="do not use one betting tree"):
            evaluate_matchup(short(), (first, other), 4, way="expected")
    assert evaluate_matchup(short(), (first, BASELINES["always-fold"]), 4).way == "expected"
    with pytest.raises(PlayError, match="played on 0 processes: use 1 or more"):
        evaluate_matchup(short(), (first, first), 4, processes=0)
    monkeypatch.setattr(head_to_head, "MOST_SLOTS", 10)
    assert evaluate_matchup(short(), (first, first), 4).way == "played"
    with pytest.raises(PlayError, match="unknown method 'guess': use one of best"):
        evaluate_matchup(short(), (first, second), 4, way="guess")


def test_how_matches_are_stopped_and_shared(cards, monkeypatch):
    """What is expected does not depend on threads, and counts as far as it went; intervals tell hands to be played."""
    monkeypatch.setattr(head_to_head, "PART", 10)
    agents = tuple(BlueprintAgent(rule, drawn(LIMIT, cards, None)[1], rule_named(rule)) for rule in ("none", "new-0.2"))
    ticks = []
    one = evaluate_matchup(LIMIT, agents, 200, tick=ticks.append)
    assert ticks == [*range(20, 201, 20)]
    assert evaluate_matchup(LIMIT, agents, 200, processes=2).results.tolist() == one.results.tolist()
    few = evaluate_matchup(LIMIT, agents, 200, stop=lambda: True)
    assert few.results.tolist() == one.results[:10].tolist()
    assert one.seconds > 0 and one.cpu_seconds > 0
    played = estimate_mean(one.played * 500)
    assert played_hands(one) == pytest.approx(200 * (played.margin / win_rate(one).margin) ** 2)
    assert played_rate(one) == played
