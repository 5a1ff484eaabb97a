"""Re-solving on small games: the exploitability of a blueprint with all its subgames replaced."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any

from kilt.config import RESOLVE_METHODS, UNSAFE
from kilt_lab.cells import Cell, Setting, rows
from kilt_lab.claims import Interval, Rows, Slack, every, lower
from kilt_lab.experiment import Experiment, Lab
from kilt_lab.pieces.resolving import BLUEPRINT, CASES, EVERY, TRANSLATED, ResolvingCase, Solved


def outcome(found: float, rival: str, theirs: float, excess: float) -> str:
    """Return the result in words: exploitability compared with that of `rival`, the first row of a case."""
    rival = {BLUEPRINT: "the blueprint", TRANSLATED: "translation"}[rival]
    if found <= theirs:
        return f"less exploitable than {rival}"
    error = ", by no more than the error of its iterations" if found <= theirs + excess else ""
    return f"more exploitable than {rival}{error}"


def _rival(case: ResolvingCase) -> tuple[Solved, float]:
    """Return the blueprint, and the exploitability with which others are compared, in chips per game."""
    blueprint = case.blueprint()
    return blueprint, case.judge(blueprint, case.ways[0])[0]


@dataclass(frozen=True)
class Resolving(Experiment):
    """Measure how exploitable a strategy is after all its subgames have been re-solved.

    Is a re-solved strategy harder to beat than the *blueprint* from which it starts, a solution of the whole game? An
    agent that re-solves computes a new strategy for the rest of a hand during play. This experiment measures the exact
    exploitability of such strategies.

    The experiment re-solves every subgame that begins in a given round, once for each player, and puts the results in
    place of the blueprint. A best response to the whole new strategy then measures its exploitability.

    Two methods of re-solving are safe: the gadget of Burch, Johanson and Bowling (2014), and max-margin by Moravčík et
    al. (2016). They guarantee that the new strategy is no more exploitable than the blueprint, apart from a small error
    because the number of iterations is finite.

    Unsafe re-solving assumes that the opponent has played like the blueprint until the subgame begins, so the new
    strategy may be easier to beat than the blueprint. It may improve a bad blueprint, and it damages a good one.

    A depth limit makes re-solving cheaper. The re-solved subgame then ends after one round, with the value that each
    hand has under the blueprint. In later rounds, the player follows the blueprint.

    At a depth limit, the opponent chooses how to play the rest of the hand: there are one or four strategies to choose
    from, called continuations [Brown18]. A real opponent may play in yet another way. Re-solving may then make the
    strategy more exploitable.

    Re-solving with a depth limit is safe if the opponent may choose any pure strategy for the rest of the hand, because
    then there is no way to play that re-solving did not consider.

    The last game tests bets that the blueprint does not have. When the opponent makes such a bet in the second round,
    the player may *translate* it to a bet that the blueprint has. Or the player may solve a new subgame that begins
    with this bet, which is called nested re-solving (Brown and Sandholm 2017).
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Re-solve a game with one method. The cell has exploitability in mbb/g."""
        name, _, way = case.partition(": ")
        known = CASES[name]
        blueprint, theirs = lab.shared(name, partial(_rival, known), per="experiment")
        found, excess = known.judge(blueprint, way)
        more: dict[str, Any] = {"excess": 1000 * excess if isfinite(excess) else None}
        if way != known.ways[0]:
            more["outcome"] = outcome(found, known.ways[0], theirs, excess)
            lab.say(f"{case} is {more['outcome']}")
        return Cell({case: 1000 * found}, exact=True, more=more)


def no_worse(case: str, way: str) -> Slack:
    """Return the claim that a method makes a blueprint no more exploitable, up to the error of its iterations."""

    def slack(rows: Rows) -> Interval | None:
        if not {f"{case}: {way}", f"{case}: {BLUEPRINT}"} <= rows.keys():
            return None
        found, before = rows[f"{case}: {way}"], rows[f"{case}: {BLUEPRINT}"]
        left = before.ours + found.more["excess"] - found.ours
        return Interval(left, left)

    return slack


WHOLE = [name for name, case in CASES.items() if case.more_bets is None and case.limited is None]
LIMITED = [name for name, case in CASES.items() if case.limited is not None]
WITH_EVERY = [name for name in LIMITED if EVERY in CASES[name].ways]
CLAIMS = {
    "re-solving with CFR-D's gadget makes no blueprint more exploitable, up to the error of its iterations": (
        "[Burch14]",
        every(*(no_worse(name, "gadget") for name in WHOLE)),
    ),
    "re-solving with max-margin makes no blueprint more exploitable, up to the error of its iterations": (
        "[Moravcik16]",
        every(*(no_worse(name, "max-margin") for name in WHOLE)),
    ),
    "max-margin makes a rough blueprint less exploitable than the gadget does": (
        "[Moravcik16]",
        every(*(lower(f"{name}: max-margin", f"{name}: gadget") for name in WHOLE if name.endswith("rough"))),
    ),
    "unsafe re-solving makes a solved blueprint more exploitable": (
        "[Burch14]",
        every(*(lower(f"{name}: {BLUEPRINT}", f"{name}: {UNSAFE}") for name in WHOLE if name.endswith("solved"))),
    ),
    "against bets that the blueprint lacks, nested re-solving loses less than translation": (
        "[Brown17]",
        every(*(lower(f"other bets: {way}", f"other bets: {TRANSLATED}") for way in RESOLVE_METHODS[1:])),
    ),
    "with a depth limit, four continuations are less exploitable than one": (
        "[Brown18]",
        every(*(lower(f"{name}: four continuations", f"{name}: one continuation") for name in LIMITED)),
    ),
    "with a depth limit, every continuation makes no blueprint more exploitable, up to the error of its iterations": (
        "[Brown18]",
        every(*(no_worse(name, EVERY) for name in WITH_EVERY)),
    ),
}
TABLE = Resolving(
    "resolving",
    "",
    "Re-solving on small games: exploitability of whole strategies that are put together from subgames",
    rows=rows((f"{name}: {way}" for name, case in CASES.items() for way in case.ways), "mbb/g"),
    claims=CLAIMS,
    time="a minute",
    defaults=Setting(runs=0),
)
