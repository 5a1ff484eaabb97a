"""``kilt evaluate sanity``: whether a strategy is fit to play."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from kilt.cli.show import AsJson, complain, out, print_json, say, waiting

if TYPE_CHECKING:
    from kilt.evaluate.sanity import Report


def sanity(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run, or what `kilt export` made.")],
    deals: Annotated[
        int,
        typer.Option("--deals", "-n", metavar="N", min=1, max=10**8, help="How many deals of self-play to look at."),
    ] = 20_000,
    seed: Annotated[int, typer.Option("--seed", metavar="S", min=0, help="What the deals are drawn from.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Look a strategy over: aces that fold, the nuts that fold, decisions without a strategy, bets without an answer.

    Takes seconds. Ends with exit code 1 where something is off. Of a game that was solved as it is, with all hands and
    bets, aces, the nuts and what is done in each round are looked at, on a board for 200 deals.
    """
    from kilt.evaluate.tree_sanity import report_of_run

    with waiting("looking it over …"):
        found = report_of_run(run, deals, seed)
    if as_json:
        print_json(found.data())
    else:
        print_sanity(found, run)
    if not found.ok:
        raise typer.Exit(1)


def print_sanity(found: Report, run: Path) -> None:
    """Print a report as a table, and on the side what is off."""
    table = Table(title=f"{found.game}, {run}", title_justify="left", title_style="bold")
    for column in ("looked at", "seen", "bound", ""):
        table.add_column(column, overflow="fold")
    for finding, row in zip(found.findings, found.rows(), strict=True):
        table.add_row(*row, style="bold red" if finding.off else None)
    out.print(table)
    for finding in found.off:
        complain("OFF", f"{finding.name}: {finding.meaning}")
    if found.ok:
        say("nothing is off")
