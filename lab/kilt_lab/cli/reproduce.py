"""``kilt reproduce``: published tables and figures, found again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kilt.cli.show import AsJson, complain, duration, print_json, print_table, say, watching
from kilt.machine import cpu_seconds

if TYPE_CHECKING:
    from kilt_lab.reproduce.claims import Verdict
    from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request

QUICK = "kilt-quick"  # the folder of quick looks


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
    runs: Annotated[
        int | None,
        typer.Option("--runs", metavar="N", help="How many runs with other seeds; an interval needs 3 or more."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Do all there are, and say which claims hold.")] = False,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="In small: smaller games, less time, in the folder kilt-quick."),
    ] = False,
    record: Annotated[
        str | None,
        typer.Option(
            "--record", metavar="SETTING", help="Keep the rows in lab/results, under this name (in a clone of kilt)."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find published numbers again: paper, ours, difference; and which of the paper's claims hold here.

    Long ones say first how long they take. Ctrl-C stops a table so that the same command goes on with it.
    """
    from kilt.errors import RunError
    from kilt_lab.provenance import required_clone
    from kilt_lab.reproduce import reproduction_named
    from kilt_lab.reproduce.reproduction import Request
    from kilt_lab.results import Recording, experiment_result
    from kilt_lab.results import record as keep

    asked = Request(tuple(dict.fromkeys(only or ())), game, minutes, threads, out, device, runs)
    if everything:
        if name is not None or record is not None or asked.given().keys() - {"out"}:
            raise RunError("--all does everything as it stands: it goes with --quick, --out and --json alone")
        _print_all(out or Path(QUICK if quick else "."), quick=quick, as_json=as_json)
        return
    if name is None:
        if asked != Request() or quick or record is not None:
            raise RunError("no name is given: `kilt reproduce` lists what there is, `kilt reproduce NAME` does it")
        _print_list(as_json=as_json)
        return
    reproduction = reproduction_named(name)
    if record is not None:
        required_clone("--record")
    began, before = monotonic(), cpu_seconds()
    with watching() as watcher:
        found = reproduction.reproduce(_small(reproduction, asked, Path(QUICK)) if quick else asked, watcher)
    if record is not None and not watcher.signals:
        batch = Recording.of_run(_command(name, asked, quick=quick), monotonic() - began, cpu_seconds() - before)
        say(f"recorded in {keep(experiment_result(name, record, found.title, found.rows, batch))}")
    # After Ctrl-C rows may have had less time than others: they are printed, but they decide nothing.
    verdicts = [] if watcher.signals else reproduction.verdicts(found)
    if as_json:
        print_json(_figures(name, found, verdicts) | ({"stopped": True} if watcher.signals else {}))
    elif found.rows or not watcher.signals:
        _print(found)
    if verdicts and not as_json:
        _print_claims("Claims", {name: verdicts})
    if watcher.signals:
        raise typer.Exit(128 + watcher.signals[0])


def _command(name: str, asked: Request, *, quick: bool) -> str:
    """Return the command that asks for this; where it writes is left out."""
    words = ["kilt", "reproduce", name, *["--quick"] * quick]
    for option, value in asked.given().items():
        if option != "out":
            words += [f"--{option}={each}" for each in (value if isinstance(value, tuple) else (value,))]
    return shlex.join(words)


def _small(reproduction: Reproduction, asked: Request, folder: Path) -> Request:
    """A quick look, for which a folder of its own is made."""
    from kilt import artifact

    if reproduction.keeps:
        with artifact.os_errors(f"{folder} cannot be made"):
            folder.mkdir(parents=True, exist_ok=True)
    return reproduction.in_small(asked, folder)


def _print_all(folder: Path, *, quick: bool, as_json: bool) -> None:
    """Do all reproductions, one after another, and print a table of claims; one that fails does not end the others.

    After Ctrl-C the table has those that were done.
    """
    from kilt.errors import KiltError
    from kilt_lab.reproduce import REPRODUCTIONS
    from kilt_lab.reproduce.reproduction import Request

    said: list[dict[str, Any]] = []
    verdicts: dict[str, list[Verdict]] = {}
    failed: dict[str, str] = {}
    stopped: dict[str, str] = {}
    for name, entry in REPRODUCTIONS.items():
        began, cpu = monotonic(), cpu_seconds()
        kept = Request(out=folder / entry.keeps) if entry.keeps else Request()
        with watching() as watcher:
            try:
                found = entry.reproduce(_small(entry, kept, folder) if quick else kept, watcher)
            except KiltError as error:
                failed[name] = str(error)
                complain(f"{name}:", str(error))
                continue
        if watcher.signals:
            stopped = {"stopped": name}
            break
        seconds, cpu = monotonic() - began, cpu_seconds() - cpu
        say(f"{name}: done in {duration(seconds)} min, {duration(cpu)} of CPU time")
        verdicts[name] = entry.verdicts(found)
        said.append(_figures(name, found, verdicts[name]) | {"wall_seconds": seconds, "cpu_seconds": cpu})
    if as_json:
        print_json({"quick": quick, "reproductions": said, "failed": failed} | stopped)
    elif verdicts:
        _print_claims("Claims, in small" if quick else "Claims", verdicts)
    if stopped:
        raise typer.Exit(128 + watcher.signals[0])
    if failed:
        raise typer.Exit(1)


def _print_claims(title: str, verdicts: Mapping[str, Sequence[Verdict]]) -> None:
    rows = [
        [name, f"{verdict.says} {verdict.source}", verdict.verdict]
        for name, those in verdicts.items()
        for verdict in those
    ]
    print_table(title, ["reproduction", "claim", "verdict"], rows)


def _print_list(*, as_json: bool) -> None:
    from kilt_lab.reproduce import REPRODUCTIONS

    if as_json:
        said = ("what", "hint", "time", "rows", "options")
        print_json(
            {
                name: {key: getattr(entry, key) for key in said}
                | {"claims": [{"claim": claim.says, "source": claim.source} for claim in entry.claims]}
                for name, entry in REPRODUCTIONS.items()
            }
        )
        return
    rows = [
        [
            name,
            "\n".join(["; ".join(filter(None, (entry.what, entry.hint))), *(f"· {one.says}" for one in entry.claims)]),
            entry.time,
        ]
        for name, entry in REPRODUCTIONS.items()
    ]
    print_table("Reproductions", ["name", "what it is, and what the paper claims", "how long it takes"], rows)


def _figures(name: str, found: ReproductionResult, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """A reproduction as an object for JSON."""
    picture = {"picture": str(found.picture)} if found.picture else {}
    rows = [row.figures() for row in found.rows]
    claims = [verdict.figures() for verdict in verdicts]
    return {"name": name, "what": found.title, "rows": rows, "claims": claims} | picture


def _print(found: ReproductionResult) -> None:
    rows = [
        [
            row.name,
            "" if row.paper is None else f"{row.paper:,.2f}" if row.paper < 1e9 else f"{row.paper:.5g}",
            row.found(),
            "" if row.paper is None else _difference(row.ours - row.paper),
            row.unit,
            duration(row.seconds),
        ]
        for row in found.rows
    ]
    print_table(found.title, ["", "paper", "ours", "difference", "unit", "time"], rows)
    if found.picture:
        say(f"the curves are in {found.picture}")


def _difference(value: float) -> str:
    """A difference to the paper's number."""
    return f"{round(value, 2) + 0.0:+.2f}" if abs(value) < 1e6 else f"{value:+.3g}"
