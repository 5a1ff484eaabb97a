"""Parse and write lines, such as ``b3 c / 7d``: the actions and cards that lead to a position of a spot.

=============  =====================================================================================
word           meaning
=============  =====================================================================================
``x`` ``c``    check or call
``f``          fold
``b3`` ``r9``  bet 3 chips, raise to 9 chips in this round; in limit games ``b`` and ``r``
``b50%``       bet or raise by a fraction of the pot after calling; ``b0.5x`` is the same
``a``          all-in
``/ 7d``       the next round, and its cards
=============  =====================================================================================

>>> from kilt.games import load_game
>>> from kilt.games.holdem import Betting
>>> flop = Betting.opening(load_game("holdem.nolimit.2p").rules, 1, 3 * UNIT)
>>> position = read_actions(flop, "b50% r12", None)
>>> word_of(flop, "r1200"), position.spent
('b3', (1200, 3000))
"""

from __future__ import annotations

import re
from dataclasses import replace

from kilt.abstraction.actions import ActionAbstraction, actions_of
from kilt.errors import RunError, quoted
from kilt.games.holdem import CALL, FOLD, RAISE, Betting
from kilt.tree.betting import Menu, on_menu

UNIT = 200  # chips of the game per chip of a spot, so that bets are exact to 0.01 chips, also half of the pot

_BET = re.compile(r"a|[br](?:(\d{1,9}(?:\.\d{1,9})?)(%|x?))?")


def chips(amount: float) -> str:
    """Convert an amount in the game's small chips to the spot's chips, as text.

    >>> chips(1250), chips(200_000)
    ('6.25', '1000')
    """
    return f"{amount / UNIT:.2f}".rstrip("0").rstrip(".")


def word_of(position: Betting, label: str) -> str:
    """Return an action's short notation, such as ``b3`` for a bet of 3 chips."""
    if label == FOLD:
        return "f"
    if label == CALL:
        return "c" if position.facing else "x"
    kind = "r" if position.facing else "b"
    if position.rules.betting == "limit":
        return kind
    level = int(label[1:])
    return "a" if level == position.rules.stacks[position.actor] else f"{kind}{chips(level - position.opened_at)}"


def described(position: Betting, label: str) -> str:
    """Return an action in words, for messages.

    >>> from kilt.games import load_game
    >>> from kilt.games.holdem import Betting
    >>> flop = Betting.opening(load_game("holdem.nolimit.2p").rules, 1, 3 * UNIT)
    >>> [described(flop, label) for label in ("c", "r1200", "r20000")]
    ['check', 'bet 3', 'all-in']
    """
    word = word_of(position, label)
    whole = {"f": "fold", "c": "call", "x": "check", "a": "all-in", "b": "bet", "r": "raise"}
    if word in whole:
        return whole[word]
    return f"bet {word[1:]}" if word[0] == "b" else f"raise to {word[1:]}"


def action_of(position: Betting, word: str, menu: Menu | None) -> str:
    """Return the action for a short notation such as ``b3``, a bet of 3 chips.

    Raises RunError if it is illegal or not on the menu.
    """
    free = menu is None and position.rules.betting != "limit"  # whether bets of any size are accepted
    there = position.passive_actions() if free else on_menu(position, menu)
    label = _label(position, word.lower(), menu)
    if label is None or not (label in there or (free and label.startswith(RAISE))):
        words = [*(word_of(position, one) for one in there), *(["a bet such as b50%"] if free else [])]
        raise RunError(f"{word!r} is not possible here: use one of {', '.join(words)}")
    return label


def _label(position: Betting, word: str, menu: Menu | None) -> str | None:
    """Return the legal action that a word stands for, or None. The menu is ignored."""
    if word in ("f", "x", "c"):
        return FOLD if word == "f" else CALL
    bounds, match = position.raise_bounds(), _BET.fullmatch(word)
    if bounds is None or match is None:
        return None
    if position.rules.betting == "limit":
        return RAISE if word in ("b", "r") else None
    if word == "a":
        return f"{RAISE}{bounds[1]}"
    if not match[1]:
        return None
    if match[2]:
        size = f"{match[1]}{match[2]}"
        sizes = replace(menu, text=(size,)) if isinstance(menu, ActionAbstraction) else actions_of(size, near=1.0)
        (level,) = sizes(position)
    else:
        level = position.opened_at + round(UNIT * float(match[1]))
    return f"{RAISE}{level}" if bounds[0] <= level <= bounds[1] else None


def read_actions(position: Betting, line: str, menu: Menu | None) -> Betting:
    """Return the position after one round's actions, such as ``x b3 c``."""
    for word in line.split():
        if position.actor < 0:
            raise RunError(f"{quoted(line)} continues after the end of a round: use actions of one round")
        position = position.after(action_of(position, word, menu))
    return position


def line_words(line: str) -> list[str]:
    """Split a line into its actions, slashes and cards.

    >>> line_words("b50% c/7d")
    ['b50%', 'c', '/', '7d']
    """
    return line.replace("/", " / ").split()
