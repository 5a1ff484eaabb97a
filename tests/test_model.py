"""Models of opponents from hands that they played."""

from collections import Counter

import numpy as np
import pytest

from commands import answer, kilt, refused
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import actions_of
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.errors import ArtifactError, GameError, PlayError
from kilt.evaluate.observer import MUCKED, AbstractObserver, FlatObserver
from kilt.games import load_game
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.play.acpc import COMMENTS, format_log_entry, read_hand
from kilt.play.agent import BASELINES
from kilt.play.columns import LogReader, readable_hands
from kilt.play.dealer import Dealer
from kilt.runs.check import check
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.model import DecisionLayout, OpponentModel
from kilt.tree.vector import VectorGame
from written_out import tree_of

LEDUC = load_game("leduc")


def test_a_model_on_disk(tmp_path):
    """What is written is what is read; a policy adds up to 1 everywhere, and calls where nothing was seen."""
    tree = tree_of("leduc")
    counts = np.random.default_rng(1).integers(0, 3, int(tree.nodes.infoset_start[-1])).astype(float)
    model = OpponentModel.of_tree(tree, "Ann", counts, hands=7)
    model.save(tmp_path / "ann")
    found = OpponentModel.load(tmp_path / "ann")
    assert (found.player, found.figures) == ("Ann", {"hands": 7})
    assert (found.counts == counts).all()
    policy = found.policy()
    assert np.add.reduceat(policy, tree.nodes.infoset_start[:-1]) == pytest.approx(1)
    assert found.seen.sum() == counts.sum() == sum(one.decisions for one in found.rounds())
    never = np.flatnonzero(found.seen == 0)
    for where in never.tolist():
        row = policy[slice(*tree.nodes.infoset_start[where : where + 2])]
        assert row[tree.actions[where].index("c")] == 1
    assert sum(one.infosets - one.seen for one in found.rounds()) == len(never) > 0
    assert found.on("leduc", model.fingerprint, counts.shape) is found.counts
    with pytest.raises(GameError, match="build the model for the same game"):
        found.on("kuhn", "other", counts.shape)
    assert [(one.what, one.damage) for one in check(tmp_path)] == [("opponent model", "")]
    file = tmp_path / "ann" / "counts.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"\7")
    assert "counts.npy" in next(check(tmp_path)).damage
    with pytest.raises(ArtifactError, match="build the model again"):
        OpponentModel.load(tmp_path / "ann", check=True)


def test_tables_over_hands_have_the_same_decisions():
    """Those of public trees have a column for each hand, and the same kinds of information sets as flat ones."""
    game = VectorGame(LEDUC)
    layout = DecisionLayout.of_vectors(game)
    assert layout.start[-1] == game.shape[0]
    model = OpponentModel.of_vectors(game, "Ann", np.zeros(game.shape))
    policy = model.policy()
    assert model.seen.shape == (len(layout.actions), game.shape[1])
    assert np.add.reduceat(policy, layout.start[:-1], axis=0) == pytest.approx(1)
    flat = DecisionLayout.of_tree(tree_of("leduc"))
    kinds = [set(zip(*(array.tolist() for array in one), strict=True)) for one in (layout, flat)]
    assert kinds[0] == kinds[1]


# ── from logs ──


def log_of(game, hands, names, players, seed=1):
    """The log of a match, and its hands."""
    dealer, seats = Dealer(game, seed), list(zip(names, players, strict=True))
    played = []
    for number in range(hands):
        hand = dealer.play(number, tuple(player for _, player in seats))
        played.append(hand._replace(players=tuple(name for name, _ in seats)))
        seats.reverse()
    return "".join(format_log_entry(hand) for hand in played), played


def decisions_of(game, hands, player):
    """Each decision of a player with its hand, one by one."""
    for hand in hands:
        seat = hand.players.index(player)
        for before, action in game.positions.moves_to(hand.position):
            if before.actor == seat:
                yield hand, seat, before, action


@pytest.fixture(scope="module")
def leduc_log():
    return log_of(LEDUC, 400, ("Ann", "Bob"), (BASELINES["random"], BASELINES["probe"]))


def test_counts_of_a_flat_tree(leduc_log):
    text, hands = leduc_log
    tree = tree_of("leduc")
    observer = FlatObserver(LEDUC, tree, "Ann")
    half = text.index("STATE:200:")
    for part in (text[:half], text[half:]):
        assert observer.add_log(f"# a comment\n\n{part}", "ann.log") == []
    model = observer.model()
    counts = Counter()
    for hand, seat, before, action in decisions_of(LEDUC, hands, "Ann"):
        name = LEDUC.deck.name(hand.cards.holes[seat])
        counts[f"{name}|{LEDUC.board_name(hand.board[: before.round])}|{before.history}", action] += 1
    for name, labels, start in zip(tree.infosets, tree.actions, tree.nodes.infoset_start.tolist(), strict=False):
        assert model.counts[start : start + len(labels)].tolist() == [counts[name, label] for label in labels]
    assert model.figures["decisions"] == counts.total()
    assert model.figures["hands"] == 400


def test_what_is_not_shown(leduc_log):
    """Hands without a showdown are left out, or count for all that they could have been."""
    text, hands = leduc_log
    tree = tree_of("leduc")
    models = {}
    for mucked in MUCKED:
        observer = FlatObserver(LEDUC, tree, "Ann", mucked)
        observer.add_log(text, "ann.log")
        models[mucked] = observer.model()
    shown = [hand for hand in hands if hand.position.folded is None]
    whole, left, weighed = (models[mucked].counts.sum() for mucked in MUCKED)
    assert left == sum(1 for _ in decisions_of(LEDUC, shown, "Ann"))
    assert models["left-out"].figures["left_out"] == {"the cards were not shown": 400 - len(shown)}
    assert weighed == pytest.approx(whole)
    # A hand that folds to the first bet could have been any of the four that the opponent does not hold.
    observer = FlatObserver(LEDUC, tree, "Ann", "weighed")
    observer.add_log("STATE:0:crf:Kh|As:-1|1:Ann|Bob", "ann.log")
    assert sorted(set(observer.counts)) == pytest.approx([0, 0.2])
    assert observer.counts.sum() == pytest.approx(2)


def test_counts_of_an_abstract_game(leduc_log, tmp_path):
    """With buckets that lose nothing, both forms count the same; bets off the menu count by their shares."""
    text, hands = leduc_log
    deal = Deal.from_game(LEDUC)
    cards = build(AbstractionSpec.from_name("lossless", deal), tmp_path / "cards")
    abstract, flat = AbstractGame(LEDUC, cards), FlatObserver(LEDUC, tree_of("leduc"), "Bob")
    observer = AbstractObserver(abstract, "Bob")
    for one in (flat, observer):
        one.add_log(text, "bob.log")
    found, other = observer.model(), flat.model()
    assert [one.decisions for one in found.rounds()] == [one.decisions for one in other.rounds()]
    naive = np.zeros(abstract.slots)
    blueprint = Blueprint.of(abstract, np.ones(abstract.slots, np.uint8))
    nodes = {abstract.betting.history(node): node for node in range(len(abstract.betting.level))}
    for hand, seat, before, action in decisions_of(LEDUC, hands, "Bob"):
        bucket = blueprint.bucket(seat, before.round, hand.cards.holes[seat], hand.board[: before.round])
        node = nodes[before.history]
        labels = blueprint.labels(node)
        naive[abstract.first[node] + bucket * len(labels) + labels.index(action)] += 1
    assert (found.counts == naive).all()
    assert found.figures["off_tree"] == 0

    rules = "GAMEDEF\nnolimit\nnumPlayers = 2\nnumRounds = 2\nstack = 30 30\nblind = 2 1\nfirstPlayer = 2 1\n" + (
        "numSuits = 2\nnumRanks = 3\nnumHoleCards = 1\nnumBoardCards = 0 1\nEND GAMEDEF"
    )
    game = Holdem(GameDef.parse(rules), "no-limit leduc")
    text, hands = log_of(game, 300, ("Ann", "Bob"), (BASELINES["random"], BASELINES["random"]))
    observer = AbstractObserver(AbstractGame(game, cards, actions_of("1x, a; a")), "Ann")
    observer.add_log(text, "ann.log")
    counts, total = observer.counts, sum(1 for _ in decisions_of(game, hands, "Ann"))
    assert (counts % 1 > 0).any()  # bets between two of the menu
    assert counts.sum() + observer.off_tree == pytest.approx(total)
    assert 0 < observer.off_tree < 0.2 * total


def test_lines_out_of_the_ordinary(leduc_log):
    """Columns are what hands are that are read one by one, and so is what is wrong with others."""
    text, _ = leduc_log
    rng = np.random.default_rng(5)
    lines = text.splitlines()
    for at in rng.integers(20, len(lines), 120).tolist():
        line = lines[at]
        place = int(rng.integers(0, len(line)))
        lines[at] = (
            line[:place] + "".join(rng.choice(list("Ahsq:|/cr0 9é"), 1)) + line[place + int(rng.integers(0, 2)) :]
        )
    wanted, wrong = [], []
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.startswith((*COMMENTS, "SCORE")):
            try:
                wanted.append(read_hand(line, LEDUC))
            except PlayError as error:
                wrong.append(f"line {number}: {error}")
    reader = LogReader(LEDUC)
    found, faults = reader.read(lines)
    assert faults == wrong
    assert len(wrong) > 50
    assert [reader.ends[end] for end in found.end] == [hand.position for hand in wanted]
    assert [reader.players[pair] for pair in found.pair] == [hand.players for hand in wanted]
    cards = [[*hand.cards.holes[0], *hand.cards.holes[1], *hand.board] for hand in wanted]
    assert [[card for card in row if card >= 0] for row in found.cards.tolist()] == cards
    hands, faults = readable_hands("\n".join(lines), LEDUC)
    assert (list(map(format_log_entry, hands)), faults) == (list(map(format_log_entry, wanted)), wrong)


def test_the_command(tmp_path):
    text, _ = log_of(load_game("kuhn"), 40, ("Ann", "Bob"), (BASELINES["random"], BASELINES["probe"]))
    log = tmp_path / "kuhn.log"
    log.write_text(text)
    out = tmp_path / "ann"
    said = answer("model", log, log, "--player", "Ann", "--for", "kuhn", "--out", out)
    assert (said["hands"], said["player"], len(said["rounds"])) == (80, "Ann", 1)
    found = OpponentModel.load(out)
    assert found.seen.sum() == said["decisions"] == sum(one["decisions"] for one in said["rounds"])
    assert "share" in kilt("model", log, "--player", "Bob", "--for", "kuhn").stdout
    assert "is there already" in refused("model", log, "--player", "Ann", "--for", "kuhn", "--out", out)

    def fails(*arguments):
        message = refused("model", *arguments, "--out", tmp_path / "other")
        assert "\n" not in message
        assert not (tmp_path / "other").exists()
        return message

    assert "its players are Ann, Bob: say as `player`" in fails(log, "--player", "Eve", "--for", "kuhn")
    assert "kuhn.log, line 1: " in fails(log, "--player", "Ann", "--for", "leduc")
    assert "is no game and no configuration" in fails(log, "--player", "Ann", "--for", tmp_path / "nothing")
    assert "cannot be read" in fails(tmp_path / "no.log", "--player", "Ann", "--for", "kuhn")
    assert "shown, left-out, weighed" in fails(log, "--player", "Ann", "--for", "kuhn", "--mucked", "thrown")
    log.write_text(text[:-20])
    assert "or `skip` lines that cannot be read" in fails(log, "--player", "Ann", "--for", "kuhn")
    said = answer("model", log, "--player", "Ann", "--for", "kuhn", "--skip")
    assert (said["hands"], said["unreadable"]) == (39, 1)
    log.write_text("# nothing\n")
    assert "it has no hands" in fails(log, "--player", "Ann", "--for", "kuhn")
    log.write_text("STATE:0:crf:Ks|As:-1|1:Ann|Bob\n")
    assert "give more hands" in fails(log, "--player", "Ann", "--for", "kuhn", "--mucked", "left-out")
