"""Parse the bet sizes of a spot, and check that they are legal and used."""

from __future__ import annotations

from collections.abc import Sequence

from kilt.abstraction.actions import ActionAbstraction, ActionsByChipsLeft
from kilt.errors import RunError
from kilt.games.holdem import Betting
from kilt.spots.line import chips


def menu_of(bets: tuple[str, ...], start: int, near: float, all_in_threshold: float) -> ActionAbstraction:
    """Return the bet sizes of a spot, and when a bet becomes all-in.

    The spot begins in round `start`.
    """
    if not 1 <= len(bets) <= 2 or not all(isinstance(text, str) for text in bets):
        raise RunError(f"`bets` are {bets!r}: use sizes such as '50%, 1x, a', for both players or for each")
    sizes = tuple(f"{'/' * start}{text}" for text in bets)
    return ActionAbstraction(sizes, near) if near else ActionsByChipsLeft(sizes, all_in_threshold)


def require_given(stacks: float, bets: tuple[str, ...], example: str) -> None:
    """Raise RunError if a no-limit spot lacks stacks or bet sizes.

    Limit games need neither.
    """
    lacking = [words for words, given in (("`stacks` above 0", stacks > 0), ("`bets`", bets)) if not given]
    if lacking:
        raise RunError(
            f"a no-limit spot needs {' and '.join(lacking)}, or no player can bet: {example} shows an example"
        )


def require_legal(menu: ActionAbstraction, position: Betting) -> None:
    """Raise RunError if a bet size of the first round is below the legal minimum."""
    bounds = position.raise_bounds()
    if bounds is None:
        return
    level = max(position.spent)
    for size in menu.sizes_at(position):
        to = level + round(size * 2 * level) if size not in (0, float("inf")) else bounds[0]
        if to < bounds[0]:
            raise RunError(
                f"a bet of {size:.0%} of the pot is {chips(to - level)} chips, but the smallest legal bet is "
                f"{chips(bounds[0] - level)}: use larger bets, or `m` for the smallest"
            )


def require_used(bets: tuple[str, ...], menu: ActionAbstraction | None, names: Sequence[str], start: int) -> None:
    """Raise RunError if a spot's bet sizes are missing, or are for rounds that it does not have.

    The spot begins in round `start`. Limit games have no `menu`, and take no sizes.
    """
    if menu is None:
        if bets:
            raise RunError(f"`bets` is {bets[0]!r}, but raises of a limit game have one size: leave out `bets`")
        return
    if menu.has_no_bets:
        raise RunError("`bets` has no size, so no player can bet: use sizes such as '50%, 1x, a'")
    left = names[start:]
    for text, rounds in zip(bets, menu.rounds, strict=True):
        given = rounds - start
        if given > len(left):
            raise RunError(
                f"`bets` {text!r} has sizes for {given} rounds, but {len(left)} "
                f"{'is' if len(left) == 1 else 'are'} left ({', '.join(left)}): omit the others"
            )
