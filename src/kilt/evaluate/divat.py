"""Compute the value of a player's cards under a fixed betting rule, for DIVAT [Zinkevich06], [Billings06].

In the papers, W after a chance event is the value of a fixed *baseline* betting of the round: each player raises and
folds by thresholds on the rank of their hand, and the resulting stake goes to the better hand as often as it wins. The
thresholds here are derived from theory, and differ from the papers':

* The rank of a hand is its percentile among all hands: before the first public card by its mean edge over the others,
  afterwards by the number of hands that it beats on the current board.
* The k-th raise of a round is made with the best r^k of all hands, r = √2 − 1: the equilibrium if ranks are uniform,
  raises are unlimited and neither player folds. With x(k) the share of hands that make the k-th raise, a hand at that
  threshold wins a bet from x(k−1) − x(k) of the hands that made the previous raise, loses one to x(k) − x(k+1) and two
  to x(k+1) that raise again: x(k−1) = 2·x(k) + x(k+1).
* A hand folds to a bet if its rank is below bet / (pot + bet), so that a bluff wins nothing. A player who has raised
  does not fold, and blinds are not bets.

Bets of later rounds are ignored. Any other thresholds would leave the mean unchanged too.

>>> [round(1 - rank, 3) for rank in MAKES]
[0.414, 0.172, 0.071, 0.029]
"""

from __future__ import annotations

from functools import lru_cache
from math import comb, sqrt

import numpy as np

from kilt.arrays import BoolArray, FloatArray, IntArray
from kilt.cards.edges import pair_edges
from kilt.cards.equity import hand_list, strengths_on_boards
from kilt.games.gamedef import GameDef

MOST_RAISES = 4  # of a round, unless the rules allow fewer: the best 3% of hands make the fourth
MAKES = tuple(1 - (sqrt(2) - 1) ** k for k in range(1, MOST_RAISES + 1))  # [raise] the minimum rank


def stakes_after_raise(rules: GameDef, level: int, r: int) -> int:
    """Return each player's chips in the pot after one more raise in a round is called.

    In limit games the raise has the size of the round, otherwise half the pot.
    """
    return level + (rules.raise_sizes[r] if rules.betting == "limit" else level)


def baseline_values(
    rules: GameDef, r: int, level: int, mine: FloatArray, theirs: FloatArray, edge: FloatArray, *, first: bool
) -> FloatArray:
    """Return a player's expected winnings in one round if both players bet by DIVAT's fixed rule.

    Winnings are in chips.

    Bets of later rounds are ignored.

    Parameters
    ----------
    rules : GameDef
        Rules of the game.
    r : int
        The round.
    level : int
        Chips of each player in the pot when the round begins; in the first round the largest blind.
    mine, theirs : ndarray of float64
        Ranks of the hands of the player and of the opponent, from 0 to 1.
    edge : ndarray of float64
        Edge of the player's hand over the opponent's: see `kilt.cards.edges`. Ranks broadcast to its shape.
    first : bool
        Whether the player acts first.

    Returns
    -------
    ndarray of float64
        Chips, in the shape of `edge`.
    """
    levels = _levels(rules, r, level)
    opener, answerer = (mine, theirs) if first else (theirs, mine)
    opens, answers = (np.searchsorted(MAKES, rank, side="right") for rank in (opener, answerer))
    raises, goes_on = np.zeros(edge.shape, dtype=np.int64), np.ones(edge.shape, dtype=bool)
    for k in range(1, len(levels)):  # the opener makes the first raise, the third and so on
        goes_on = goes_on & ((opens if k % 2 else answers) >= k)
        raises += goes_on
    checked = (opens == 0) & (answers > 0) & (len(levels) > 1)
    raises[np.broadcast_to(checked, raises.shape)] = 1
    value: FloatArray = np.array(levels, dtype=np.float64)[raises] * edge
    if len(levels) > 1:
        bet = levels[1] - level
        folds: BoolArray = (raises == 1) & (np.where(checked, opener, answerer) < bet / (2 * level + bet))
        value = np.where(folds, np.where(checked == first, -level, level), value)
    return value


def board_ranks(rules: GameDef, boards: IntArray) -> FloatArray:
    """Rank each private hand on several boards, from 0 to 1, by the share of other hands that it beats.

    The boards have the same size; the result is [board, hand]. Ties count half. Without public cards, the rank is the
    percentile of the mean edge over all other hands. Hands that share a card with the board have an arbitrary rank.
    """
    size = rules.board_size(rules.rounds - 1)
    if not boards.shape[1] and size > 0:
        return np.broadcast_to(_first_ranks(rules), (len(boards), len(_first_ranks(rules))))
    rows = strengths_on_boards(boards, rules.deck, rules.hole_cards)
    return rows / (2 * comb(rules.deck.size - boards.shape[1] - rules.hole_cards, rules.hole_cards))


@lru_cache(maxsize=16)
def mean_of_deals(rules: GameDef, seat: int) -> float:
    """Return the exact mean of DIVAT's baseline value over all deals of private cards, in chips.

    The value is a player's winnings if both players follow the baseline betting in the first round.
    """
    none = np.zeros((1, 0), dtype=np.int64)
    ranks, bits = board_ranks(rules, none)[0], hand_list(rules.deck, rules.hole_cards).bits
    edges = pair_edges(rules.deck, rules.hole_cards, rules.board_size(rules.rounds - 1))
    apart = bits[:, None] & bits == 0
    first = rules.first_player[0] == seat
    value = baseline_values(rules, 0, max(rules.blinds), ranks[:, None], ranks[None, :], edges, first=first)
    return float(value[apart].mean())


@lru_cache(maxsize=16)
def _first_ranks(rules: GameDef) -> FloatArray:
    """Return the percentile of each hand's mean edge over all hands, before any public card."""
    mean = pair_edges(rules.deck, rules.hole_cards, rules.board_size(rules.rounds - 1)).sum(axis=1).round(9)
    ranked = np.sort(mean)
    below, up_to = np.searchsorted(ranked, mean, "left"), np.searchsorted(ranked, mean, "right")
    ranks: FloatArray = (below + up_to) / (2 * len(mean))
    return ranks


def _levels(rules: GameDef, r: int, level: int) -> list[int]:
    """Return each player's chips in the pot after 0, 1, … raises of round `r` are called."""
    levels, most = [level], min(rules.stacks)
    while len(levels) <= min(rules.max_raises[r], MOST_RAISES) and levels[-1] < most:
        levels.append(min(stakes_after_raise(rules, levels[-1], r), most))
    return levels
