"""Compiled leaf payoffs: the sums of `cards.equity_kernels`, in chips."""

from __future__ import annotations

from kilt.arrays import FloatArray
from kilt.cards.equity_kernels import Columns, Order, Ranking, compatible, showdown
from kilt.jit import kernel


@kernel
def fold_values(
    live: Order, cards: Columns, reach: FloatArray, won: float, by_card: FloatArray, value: FloatArray
) -> None:
    """Write to `value` what each of the `live` hands is worth where it wins `won` against every hand; 0 elsewhere."""
    compatible(live, cards, reach, by_card, value)
    for hand in live:
        value[hand] *= won


@kernel
def showdown_values(ranking: Ranking, groups: int, reach: FloatArray, stake: float, value: FloatArray) -> None:
    """Write to `value` what each hand is worth at a showdown for `stake` chips."""
    showdown(ranking, groups, reach, value)
    for hand in ranking.order[: ranking.ends[groups - 1]]:
        value[hand] *= stake
