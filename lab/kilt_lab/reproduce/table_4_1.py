"""[Johanson16 table 4.1]: memory of CFR-BR's hybrid agent in limit hold'em, by how many rounds its trunk has.

The hybrid agent keeps regrets in the trunk, and answers with best responses below it, which are thrown away after each
iteration. A trunk of all four rounds is CFR. We count an entry of four bytes for each action of each information set up
to a renaming of suits; the thesis's own figures differ from that by 3% at most, and it does not say why.
"""

from __future__ import annotations

from itertools import accumulate
from time import perf_counter

from kilt.evaluate.flops import Watcher
from kilt.games.gamedef import ready_made
from kilt.games.size import size_of
from kilt_lab.reproduce.claims import Claim, Row, as_printed
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request

GAME, BYTES = "holdem.limit.2p", 4  # of an entry
UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
PAPER = {"1-round": (14.52, "kB"), "2-round": (936.33, "MB"), "3-round": (359.54, "GB"), "cfr": (140.26, "TB")}


def trunk_bytes(game: str = GAME) -> list[int]:
    """Bytes of the regrets of a trunk of one round, of two rounds and so on.

    >>> trunk_bytes()[:2]
    [14196, 936798772]
    """
    size = size_of(ready_made(game))
    counts = zip(size.canonical_information_sets, size.decisions, size.actions, strict=True)
    return list(accumulate(BYTES * infosets // decisions * actions for infosets, decisions, actions in counts))


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    begun, rows = perf_counter(), list[Row]()
    for (name, (paper, unit)), counted in zip(PAPER.items(), trunk_bytes(), strict=True):
        if name in (asked.only or PAPER):
            rows.append(Row(name, paper, counted / UNITS[unit], unit, perf_counter() - begun, {"bytes": counted}))
    return ReproductionResult(TABLE.what, rows)


TABLE = Reproduction(
    what="[Johanson16 table 4.1]: memory of CFR-BR's hybrid agent in limit hold'em, by rounds of its trunk",
    time="a second",
    rows=tuple(PAPER),
    run=_reproduce,
    options=("only",),
    claims=tuple(
        Claim(f"regrets of the trunk {name} take {size:g} {unit}", "[Johanson16 table 4.1]", as_printed(name, 0.005))
        for name, (size, unit) in PAPER.items()
    ),
)
