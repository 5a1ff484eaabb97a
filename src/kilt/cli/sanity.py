"""``kilt evaluate sanity``: check a strategy for blunders before play."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from kilt.cli import options
from kilt.cli.show import AsJson, out, print_error, print_json, print_table, say, waiting

if TYPE_CHECKING:
    from kilt.evaluate.findings import Report


def sanity(
    who: Annotated[str, options.WHO],
    game: Annotated[str | None, options.GAME] = None,
    deals: Annotated[int, options.DEALS] = 20_000,
    seed: Annotated[int, options.SEED] = 0,
    as_json: AsJson = False,
) -> None:
    """Check a strategy for blunders, such as folding aces or the nuts.

    The command also finds decisions and bets without an answer, and prints how often the strategy folds to bets on
    common lines, next to the folding frequency at which a bluff     with any two cards breaks even.

    It checks the average strategy and, if post-processing changes it, the strategy as played. This takes seconds. The
    exit code is 1 if either fails a check. For a player without a card abstraction, the checks are about aces, the nuts
    and the actions of each round, on one board for every 200 deals.
    """
    from kilt.players.reports import sanity_reports
    from kilt.strategy.naming import AS_PLAYED

    with waiting("checking …"):
        found = sanity_reports(who, deals, seed, game)
    if as_json:
        each = {"as_played" if report.strategy.startswith(AS_PLAYED) else "average": report.data() for report in found}
        print_json(found[0].data() | each)
    else:
        for report in found:
            print_sanity(report, who)
    if not all(report.ok for report in found):
        raise typer.Exit(1)


def print_sanity(found: Report, who: str) -> None:
    """Print a sanity report as a table, and failed checks on standard error, too."""
    title = f"{found.game}, {who}, {found.strategy}"
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in ("check", "result", "limit", ""):
        table.add_column(column, overflow="fold")
    for finding, row in zip(found.findings, found.rows(), strict=True):
        table.add_row(*row, style="bold red" if finding.off else None)
    out.print(table)
    if found.defence:
        _print_defence(found)
    for finding in found.off:
        print_error("FAIL", f"{found.strategy}: {finding.name}: {finding.meaning}")
    if found.ok:
        say(f"{found.strategy}: all checks passed")


def _print_defence(found: Report) -> None:
    """Print how often a strategy folds to bets, with a row for each betting line."""
    rows = []
    for line, bets in groupby(found.defence, key=lambda row: row.line):
        each = [*bets]
        said = ", ".join(f"{row.bet} {row.folds:.0%}/{row.break_even:.0%}" for row in each)
        rows.append([line, said, f"{max(row.profit for row in each):+.0%} of the pot"])
    heads = ["line", "bet: folds/break-even", "profit of any two cards"]
    print_table(f"Folds to bets, {found.strategy}", heads, rows)
