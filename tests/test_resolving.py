"""Re-solving: what an opponent's hands win in a subgame that was solved anew, and what whole strategies lose by it."""

import numpy as np
import pytest

from kilt.errors import GameError
from kilt.games import load_game
from kilt.solve.resolve import METHODS, resolve

LEDUC = load_game("leduc")
HANDS = [hand for hand in range(6) if hand != 3]  # all but the card on the board


def resolved(values, method, player=0, **options):
    given = {"iterations": 1000, **options}
    return resolve(LEDUC, LEDUC.replay("cc/"), "Ks", player, np.ones((2, 6)), values, method=method, **given)


@pytest.mark.parametrize("player", [0, 1])
def test_no_hand_wins_more_where_that_can_be_helped(player):
    """What an equilibrium leaves to the opponent is feasible, and so is more: max-margin makes the most of it."""
    fair = np.zeros(6)
    fair[HANDS] = -resolved(None, "unsafe", player).margins()
    values = fair + np.array([0.1, 0.1, 0.5, 0.0, 0.05, 0.05])
    gadget, even = (resolved(values, method, player).margins() for method in ("gadget", "max-margin"))
    assert gadget.min() > -2e-3
    assert even.min() > 0.05
    assert even.min() >= gadget.min() - 2e-3


def test_threads_and_budgets():
    """Iterations alone decide what comes out, and a budget of seconds does at least one."""
    values = np.linspace(-1, 1, 6)
    raised = LEDUC, LEDUC.replay("r"), "", 1, np.ones((2, 6)), values
    once, again, threads = (resolve(*raised, iterations=20, threads=number, dtype=np.float64) for number in (1, 1, 2))
    np.testing.assert_array_equal(once.table, again.table)
    np.testing.assert_allclose(once.table, threads.table, rtol=1e-9, atol=1e-12)
    assert resolved(values, "gadget", iterations=None).iterations == 100
    assert resolved(values, "gadget", iterations=None, seconds=1e-9).iterations == 1
    assert resolved(values, "gadget", iterations=7, seconds=60.0).iterations == 7


@pytest.mark.parametrize("method", [*METHODS[1:], "nonsense"])
def test_what_cannot_be_is_said(method):
    with pytest.raises(GameError, match=r"needs what each of 6 hands|use one of unsafe"):
        resolved([1.0, np.nan], method)
