"""``kilt plan``: what a run will take, before it begins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kilt.cli.show import AsJson, count, duration, errors, in_bytes, out, print_json, print_table, say

if TYPE_CHECKING:
    from kilt.config import Config
    from kilt.solve.abstract_problem import Takes

EXAMPLE = """\
game = "holdem.nolimit.2p"              # a ready-made game (`kilt game list`), or a file in ACPC format
cards = "IR-KE-KO 169-200-200-200"      # a name, a folder that `kilt abstraction build` made, or a plan as a .toml file
actions = "1x, a / 50%, 1x, a; 1x, a; a"  # bet sizes: rounds are split by /, the raises of a round by ;

[solver]
algorithm = "external"                  # or cfr, cfr+, linear, dcfr where all boards and hands can be walked
minutes = 10                            # or iterations
seed = 0
threads = 2
average = true                          # false: the current strategy is the result, in half the memory
linear = true                           # weigh an iteration by its number
prune = 0                               # most walks leave out actions that lose more than so many chips a deal

[agent]
post = "new-0.2"                        # none, purification, threshold-T or new-T (000, section 4)
translation = "pseudo-harmonic"         # of bets that are not among the actions
"""


def plan(
    config: Annotated[
        Path | None, typer.Argument(metavar="[CONFIG]", help="A .toml file as `kilt solve` takes it.")
    ] = None,
    probe: Annotated[
        bool, typer.Option("--probe/--no-probe", help="Walk the game for some seconds to see how fast that goes.")
    ] = True,
    example: Annotated[bool, typer.Option("--example", help="Print a CONFIG to begin with, and stop.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say how large an abstract game is, and what memory, disk and time it takes, before anything is built."""
    from kilt.config import read_config
    from kilt.errors import RunError
    from kilt.solve.abstract_problem import pace, takes
    from kilt.solve.problem import available_memory

    if example:
        out.print(EXAMPLE, end="", markup=False, highlight=False, soft_wrap=True)
        return
    if config is None:
        raise RunError("no CONFIG is given: `kilt plan --example > my.toml` makes one to begin with")
    said = read_config(config)
    with errors.status("counting …"):
        found = takes(said)
    fits = found.memory < available_memory()
    walked = None
    if probe and fits:
        with errors.status("walking the game for some seconds …"):
            walked = pace(said, found.size)
    if as_json:
        print_json(
            found.size._asdict()
            | {"memory_bytes": found.memory, "disk_bytes": found.disk}
            | ({} if found.cards is None else {f"cards_{name}": value for name, value in found.cards._asdict().items()})
            | ({} if walked is None else {f"{name}_per_second": value for name, value in walked._asdict().items()})
        )
        return
    size, rounds = found.size, range(len(found.size.buckets))
    titles = ["round", "decisions", "buckets", "information sets", "infoset-actions"]
    rows = [
        [str(r + 1), *(count(numbers[r]) for numbers in (size.decisions, size.buckets, size.infosets, size.slots))]
        for r in rounds
    ]
    total = ["all", count(sum(size.decisions)), "", count(sum(size.infosets)), count(sum(size.slots))]
    print_table(f"{config}: {count(size.nodes)} nodes of betting", titles, [*rows, total], numbers=True)
    say(_words(found))
    if not fits:
        say(
            f"that is more memory than the {in_bytes(available_memory())} that are available: use fewer buckets or bets"
        )
    if walked:
        each = sum(size.infosets) / walked.decisions
        say(
            f"{said.solver.threads} threads walk {walked.visits / 1e6:,.1f} million nodes and "
            f"{walked.iterations:,.0f} iterations a second: {_time(each)} for as many decisions as there are "
            "information sets; a good strategy has seen each of them a hundred times"
        )


def say_estimate(config: Config, run: Path) -> None:
    """Say what a run takes; ArtifactError or RunError where there is no room for it."""
    from kilt.artifact import cache_folder, require_room
    from kilt.errors import RunError
    from kilt.solve.abstract_problem import takes
    from kilt.solve.problem import available_memory

    with errors.status("counting …"):
        found = takes(config, run)
    say(_words(found))
    there = available_memory()
    if found.memory > there:
        raise RunError(
            f"the table of {run} takes {in_bytes(found.memory)} of memory, and {in_bytes(there)} are available: use "
            "fewer buckets or bets, or `average = false`"
        )
    if found.cards:
        require_room(cache_folder(), found.cards.features)
    require_room(run, found.disk + (found.cards.tables if found.cards else 0))


def _words(found: Takes) -> str:
    """What a run takes, in a line or two."""
    size = found.size
    words = (
        f"{count(sum(size.slots))} infoset-actions: {in_bytes(found.memory)} of memory, {in_bytes(found.disk)} on disk"
    )
    if found.cards:
        cards = found.cards
        words += (
            f"; the cards take about {_time(cards.seconds)}, {in_bytes(cards.memory)} of memory, "
            f"{in_bytes(cards.tables)} on disk and {in_bytes(cards.features)} more in the cache"
        )
    return words


def _time(seconds: float) -> str:
    """With its unit.

    >>> _time(83), _time(20000)
    ('1:23 min', '6 h')
    """
    said = duration(seconds)
    return said if said.endswith("h") else f"{said} min"
