"""Models of opponents from hands that they played."""

import numpy as np
import pytest

from kilt.errors import ArtifactError, GameError
from kilt.games import load_game
from kilt.runs.check import check
from kilt.strategy.model import DecisionLayout, OpponentModel
from kilt.tree.flat import flat_tree
from kilt.tree.vector import VectorGame

LEDUC = load_game("leduc")


def test_a_model_on_disk(tmp_path):
    """What is written is what is read; a policy adds up to 1 everywhere, and calls where nothing was seen."""
    tree = flat_tree(LEDUC)
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
    with pytest.raises(GameError, match="make the model for the same game"):
        found.on("kuhn", "other", counts.shape)
    assert [(one.what, one.damage) for one in check(tmp_path)] == [("opponent model", "")]
    file = tmp_path / "ann" / "counts.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"\7")
    assert "counts.npy" in next(check(tmp_path)).damage
    with pytest.raises(ArtifactError, match="make the model again"):
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
    flat = DecisionLayout.of_tree(flat_tree(LEDUC))
    kinds = [set(zip(*(array.tolist() for array in one), strict=True)) for one in (layout, flat)]
    assert kinds[0] == kinds[1]
