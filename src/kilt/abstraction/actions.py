"""Parse bet sizes such as ``"1x, a"``, which choose the raises of an abstract game [Brown15 §5].

=========  ==================================================
size       raises
=========  ==================================================
``75%``    by this share of the pot after calling
``0.75x``  by this number of pots after calling
``m``      by the legal minimum
``a``      all-in
=========  ==================================================

Commas separate the sizes that a player may choose. Within a round, ``;`` separates the sizes of the first bet, of the
first raise, and so on; ``/`` separates rounds, as in ACPC histories. The last part applies to all later raises or
rounds. So ``1x, a / 50%, 1x, a; a`` raises by the pot or all-in in the first round; in later rounds it bets half the
pot, the pot or all-in, and then raises all-in only.

Sizes below the minimum raise become the minimum raise. Sizes close to all-in become all-in; see
`ActionAbstraction.all_in_level` for the threshold. Sizes that result in the same number of chips are merged. Folding
and calling are always available, so every decision has a legal action.

>>> from kilt.games import load_game
>>> sorted(actions_of("33%, 1x, a")(load_game("holdem.nolimit.2p").start()))
[200, 300, 20000]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf, isfinite
from typing import ClassVar, TypeAlias

import numpy as np

from kilt.errors import AbstractionError
from kilt.games.holdem import Betting
from kilt.tree.betting_kernels import ROUNDING, BetSizes

NEAR = 0.8  # share of the chips at which a raise becomes all-in
LARGEST = 1000.0  # pots: a larger size is probably a typing error and is refused

Sizes: TypeAlias = tuple[float, ...]  # in pots; 0 is the minimum raise, inf is all-in
Rounds: TypeAlias = tuple[tuple[Sizes, ...], ...]  # [round][raises so far]


@dataclass(frozen=True)
class ActionAbstraction:
    """A menu of bet sizes for abstract no-limit games, such as half the pot and all-in.

    It is a `Menu` of `tree.betting`.

    Parameters
    ----------
    text : tuple of str
        Bet sizes in the notation above: one text for both players, or one for each.
    near : float
        A raise becomes all-in if it takes the chips that the actor has put in, over the whole hand, to at least this
        share of the stack with which the actor began the hand. More than 0 and at most 1; 1: only a raise to the whole
        stack.

    Raises
    ------
    AbstractionError
        A text cannot be read, or a number is out of range.
    """

    REPR_NAME: ClassVar[str] = "Actions"
    OF_CHIPS_LEFT: ClassVar[bool] = False  # whether `near` is a share of the chips left, or of all chips of the hand

    text: tuple[str, ...]
    near: float = NEAR

    def __post_init__(self) -> None:
        if len(self.text) not in (1, 2):
            raise AbstractionError(
                f"bet sizes are given {len(self.text)} times: give them once, or once for each of the two players"
            )
        if not 0 < self.near <= 1:
            raise AbstractionError(
                f"`near` is {self.near:g}: it is a share of the stack, so use a number above 0 and at most 1"
            )
        assert self._rounds  # parse now, so that errors are raised here

    @cached_property
    def _rounds(self) -> tuple[Rounds, ...]:
        return tuple(_parse(text) for text in self.text)

    @property
    def rounds(self) -> tuple[int, ...]:
        """The number of betting rounds for which each player's bet sizes are given."""
        return tuple(map(len, self._rounds))

    @property
    def has_no_bets(self) -> bool:
        """Whether the abstraction has no bet sizes, so that no player can bet."""
        return not any(sizes for rounds in self._rounds for raises in rounds for sizes in raises)

    def __call__(self, position: Betting) -> set[int]:
        """Return the levels, in chips over the whole hand, to which the actor may raise."""
        bounds = position.raise_bounds()
        if bounds is None:
            return set()
        least, most = bounds
        level = max(position.spent)
        levels = set()
        for size in self.sizes_at(position):
            to = most if size == inf else max(level + round(size * 2 * level), least)
            levels.add(to if to < self.all_in_level(position) else most)
        return levels

    def all_in_level(self, position: Betting) -> float:
        """Return the smallest total bet that becomes all-in, in chips over the whole hand."""
        return self.near * position.rules.stacks[position.actor]

    def sizes_at(self, position: Betting) -> Sizes:
        """Return the bet sizes available to the player to act, as multiples of the pot.

        0 is the minimum raise, and inf is all-in.
        """
        rounds = self._rounds[min(position.actor, len(self._rounds) - 1)]
        raises = rounds[min(position.round, len(rounds) - 1)]
        return raises[min(position.raises, len(raises) - 1)]

    def sizes(self, rounds: int) -> BetSizes:
        """Return the bet sizes for a number of betting rounds, as arrays for compiled code."""
        steps = max((len(raises) for each in self._rounds for raises in each), default=1)
        size: list[float] = []
        first = np.zeros((2, rounds, steps + 1), dtype=np.int64)
        for player in (0, 1):
            each = self._rounds[min(player, len(self._rounds) - 1)]
            for r in range(rounds):
                raises = each[min(r, len(each) - 1)]
                for step in range(steps):
                    first[player, r, step] = len(size)
                    size += raises[min(step, len(raises) - 1)]
                first[player, r, steps] = len(size)
        return BetSizes(np.array(size, dtype=np.float64), first, float(self.near), self.OF_CHIPS_LEFT)


class ActionsByChipsLeft(ActionAbstraction):
    """An action abstraction that turns raises into all-ins if few chips would remain.

    The threshold `near` is a share of the chips that the actor has left, not of the actor's whole stack.

    >>> from kilt.games import load_game
    >>> position = load_game("holdem.nolimit.2p").replay("r4000c/r6000")  # player 2 has 16,000 of 20,000 chips left
    >>> ActionAbstraction(("a",), 0.8).all_in_level(position), ActionsByChipsLeft(("a",), 0.8).all_in_level(position)
    (16000.0, 16800)
    """

    REPR_NAME = "ActionsByChipsLeft"
    OF_CHIPS_LEFT = True

    def all_in_level(self, position: Betting) -> float:
        """Return the smallest total bet that becomes all-in, in chips over the whole hand."""
        stack, spent = position.rules.stacks[position.actor], position.spent[position.actor]
        return spent + ceil(self.near * (stack - spent) - ROUNDING)


def actions_of(text: str | Sequence[str], near: float = NEAR) -> ActionAbstraction:
    """Parse bet sizes such as ``"1x, a"``, as one text for both players or one text each."""
    return ActionAbstraction((text,) if isinstance(text, str) else tuple(text), near)


def _parse(text: str) -> Rounds:
    return tuple(
        tuple(tuple(_size(word.strip(), text) for word in raises.split(",") if word.strip()) for raises in part)
        for part in (part.split(";") for part in text.split("/"))
    )


def _size(word: str, text: str) -> float:
    """Parse one bet size, and return it in pots.

    >>> _size("75%", ""), _size("2x", ""), _size("a", ""), _size("m", "")
    (0.75, 2.0, inf, 0.0)
    """
    if word in ("a", "m"):
        return inf if word == "a" else 0.0
    number, unit = word[:-1], word[-1]
    try:
        size = float(number) / {"%": 100, "x": 1}[unit]
        if not (size > 0 and isfinite(size)):
            raise ValueError
    except (ValueError, KeyError):
        raise AbstractionError(
            f"bet size {word!r} in {text.lstrip('/')!r}: use a part of the pot such as 75% or 1.5x, `a` for all-in or "
            "`m` for the least raise"
        ) from None
    if size > LARGEST:
        raise AbstractionError(
            f"bet size {word!r} in {text.lstrip('/')!r} is more than {LARGEST:,.0f} pots: use `a` for all-in"
        )
    return size
