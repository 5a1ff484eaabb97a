"""The storage of limit hold'em's solution [Johanson16 chapter 9]: subgames, tables and their compression, counted.

An entry is an action of an information set up to a renaming of suits. Bytes of the thesis are counted in units of 2⁴⁰,
its files in those of 10¹².
"""

from __future__ import annotations

from time import perf_counter

from kilt.evaluate.flops import Watcher
from kilt.games import load_game
from kilt.games.game import CHANCE, Position
from kilt.games.holdem import Holdem
from kilt_lab.reproduce.claims import Claim, Row, as_printed
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request
from kilt_lab.reproduce.table_4_1 import GAME, trunk_bytes

FLOPS = 1755  # canonical ones
USED = 10.9e12  # bytes of the thesis's files
PAPER = {
    "subgames": (110_565, ""),
    "regrets and averages, 4 bytes": (262, "TiB"),
    "regrets and averages, 8 bytes": (523, "TiB"),
    "regrets alone, 13:1": (11, "TB"),
    "regrets over 10.9 TB": (13, "to 1"),
}


def sequences(game: Holdem, rounds: int) -> int:
    """The number of ways in which the betting of the first `rounds` rounds can end with another round to come.

    >>> sequences(load_game("holdem.limit.2p"), 2)
    63
    """

    def below(position: Position, left: int) -> int:
        if position.actor == CHANCE:
            return 1 if left == 1 else below(position.after(*position.actions()), left - 1)
        return sum(below(position.after(action), left) for action in position.actions())

    return below(game.start(), rounds)


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    begun = perf_counter()
    game = load_game(GAME)
    assert isinstance(game, Holdem)
    regrets = trunk_bytes()[-1]
    counted = {
        "subgames": FLOPS * sequences(game, 2),
        "regrets and averages, 4 bytes": 2 * regrets / 2**40,
        "regrets and averages, 8 bytes": 4 * regrets / 2**40,
        "regrets alone, 13:1": regrets / 13 / 1e12,
        "regrets over 10.9 TB": regrets / USED,
    }
    rows = [
        Row(name, paper, counted[name], unit, perf_counter() - begun, {})
        for name, (paper, unit) in PAPER.items()
        if name in (asked.only or PAPER)
    ]
    return ReproductionResult(TABLE.what, rows)


TABLE = Reproduction(
    what="[Johanson16 chapter 9]: the storage of limit hold'em's solution",
    time="a second",
    rows=tuple(PAPER),
    run=_reproduce,
    options=("only",),
    claims=tuple(
        Claim(f"{name}: {size:g} {unit}".strip(), "[Johanson16 chapter 9]", as_printed(name, within))
        for (name, (size, unit)), within in zip(PAPER.items(), (0.5, 1, 1, 0.5, 0.5), strict=True)
    ),
)
