"""``kilt reproduce``: published tables and figures, found again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kilt.cli.show import AsJson, duration, print_json, print_table, say, watching

if TYPE_CHECKING:
    from kilt.reproduce.reproduction import ReproductionResult


def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Which table or figure. Left out: list what there is.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="ROW", help="Only this row. May be repeated.")
    ] = None,
    game: Annotated[
        str | None, typer.Option("--game", "-g", metavar="GAME", help="Figures: another game (see `kilt game list`).")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option("--minutes", "-m", metavar="M", help="Figures: minutes of solving per algorithm.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", metavar="T", help="Tables: how many threads. Left out: all cores.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="Figures: the picture to draw. Tables: a folder that keeps what is done, and from which the same "
            "command goes on. Left out: a name in the current folder.",
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", metavar="D", help="Tables: `gpu` for walks on an NVIDIA graphics card.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find published numbers again: paper, ours, difference.

    Long ones say first how long they take. Ctrl-C stops a table so that the same command goes on with it.
    """
    from kilt.errors import RunError
    from kilt.reproduce import reproduction_named
    from kilt.reproduce.reproduction import Request

    asked = Request(tuple(dict.fromkeys(only or ())), game, minutes, threads, out, device)
    if name is None:
        if asked != Request():
            raise RunError("no name is given: `kilt reproduce` lists what there is, `kilt reproduce NAME` does it")
        _print_list(as_json=as_json)
        return
    reproduction = reproduction_named(name)
    with watching() as watcher:
        found = reproduction.reproduce(asked, watcher)
    if watcher.signals:
        raise typer.Exit(128 + watcher.signals[0])
    _print(name, found, as_json=as_json)


def _print_list(*, as_json: bool) -> None:
    from kilt.reproduce import REPRODUCTIONS

    if as_json:
        said = ("what", "hint", "time", "rows", "options")
        print_json({name: {key: getattr(entry, key) for key in said} for name, entry in REPRODUCTIONS.items()})
        return
    rows = [
        [name, "; ".join(filter(None, (entry.what, entry.hint))), entry.time] for name, entry in REPRODUCTIONS.items()
    ]
    print_table("Reproductions", ["name", "what it is", "how long it takes"], rows)


def _print(name: str, found: ReproductionResult, *, as_json: bool) -> None:
    if as_json:
        said = [row.figures() for row in found.rows]
        picture = {"picture": str(found.picture)} if found.picture else {}
        print_json({"name": name, "what": found.title, "rows": said} | picture)
        return
    rows = [
        [
            row.name,
            "" if row.paper is None else f"{row.paper:,.2f}",
            row.found(),
            "" if row.paper is None else f"{round(row.ours - row.paper, 2) + 0.0:+.2f}",
            row.unit,
            duration(row.seconds),
        ]
        for row in found.rows
    ]
    print_table(found.title, ["", "paper", "ours", "difference", "unit", "time"], rows)
    if found.picture:
        say(f"the curves are in {found.picture}")
