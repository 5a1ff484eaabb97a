"""``kilt reproduce``: published tables and figures, measured again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kilt.cli.show import AsJson, print_error, print_json, print_table, say, watching
from kilt.cost import in_time
from kilt.machine import Stopwatch

if TYPE_CHECKING:
    from kilt_lab.cells import Setting
    from kilt_lab.claims import Verdict
    from kilt_lab.experiment import Experiment, Found

QUICK = "kilt-quick"  # the folder of quick looks


def _number(name: str, letter: str, text: str) -> Any:
    """Return an option that takes a number of a budget."""
    return typer.Option(f"--{name}", *[f"-{letter}"] * bool(letter), metavar=name[0].upper(), help=text)


def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Table or figure. Default: list all of them.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="ROW", help="Only this row. May be repeated.")
    ] = None,
    game: Annotated[
        str | None, typer.Option("--game", "-g", metavar="GAME", help="Another game (see `kilt game list`).")
    ] = None,
    minutes: Annotated[
        float | None, _number("minutes", "m", "Minutes of solving per cell: CPU time, or time of the GPU.")
    ] = None,
    seconds: Annotated[float | None, _number("seconds", "", "Seconds of solving per cell.")] = None,
    iterations: Annotated[int | None, _number("iterations", "", "Iterations of solving per cell.")] = None,
    nodes: Annotated[int | None, _number("nodes", "", "Visited nodes per cell.")] = None,
    runs: Annotated[
        int | None,
        typer.Option("--runs", metavar="N", help="Number of runs with different seeds; an interval needs 3 or more."),
    ] = None,
    threads: Annotated[int | None, typer.Option("--threads", metavar="T", help="Threads of each cell.")] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", metavar="J", help="Cells to measure at the same time; 0: one per core."),
    ] = None,
    device: Annotated[str | None, typer.Option("--device", metavar="D", help="`gpu` for an NVIDIA GPU.")] = None,
    setting: Annotated[
        str | None, typer.Option("--setting", metavar="S", help="A named setting, as shown in the documentation.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Folder of cells, runs and pictures, from which the same command resumes. "
            "Default: a folder named after the experiment.",
        ),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Measure cells again that the folder already has.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Run all experiments, and print which claims hold.")
    ] = False,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Use smaller games and less time, in the folder kilt-quick."),
    ] = False,
    record: Annotated[
        bool,
        typer.Option("--record", help="Record the rows in lab/results, under the setting's name (in a clone of kilt)."),
    ] = False,
    claims: Annotated[
        bool, typer.Option("--claims", help="List the time and the claims of each experiment too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure published numbers again, compare them with the paper's, and test the paper's claims.

    An experiment measures cells: cases, each with several seeds. Each cell is saved immediately. After Ctrl-C or a
    crash, the same command measures only the missing cells. So does the same command with more --runs.
    """
    from kilt.errors import RunError
    from kilt_lab.cells import CellBudget

    budget = CellBudget.of(minutes=minutes, seconds=seconds, iterations=iterations, nodes=nodes)
    asked = {"only": tuple(dict.fromkeys(only or ())), "game": game, "budget": budget, "runs": runs, "device": device}
    asked |= {"threads": threads, "jobs": jobs}
    given = {option: value for option, value in asked.items() if value not in (None, ())}
    if everything:
        if name is not None or record or setting is not None or given.keys() - {"jobs"}:
            raise RunError(
                "--all runs all experiments with their defaults: use it only with --quick, --out, --jobs and --json"
            )
        _print_all(out or Path(QUICK if quick else "."), given, quick=quick, again=again, as_json=as_json)
        return
    if name is None:
        if given or quick or record or setting is not None:
            raise RunError("no name is given: `kilt reproduce` lists experiments, `kilt reproduce NAME` runs one")
        _print_list(claims=claims, as_json=as_json)
        return
    if claims:
        raise RunError("--claims is for the list of experiments: a run of one prints its claims anyway")
    _print_one(name, out, given, setting=setting, quick=quick, again=again, record=record, as_json=as_json)


def _print_one(
    name: str,
    out: Path | None,
    given: Mapping[str, Any],
    *,
    setting: str | None,
    quick: bool,
    again: bool,
    record: bool,
    as_json: bool,
) -> None:
    """Run an experiment, and print its rows and verdicts; after Ctrl-C, only the rows measured so far."""
    from kilt_lab.menu import experiment_named
    from kilt_lab.provenance import required_clone
    from kilt_lab.results import record_experiment
    from kilt_lab.runner import run

    experiment = experiment_named(name)
    if record:
        required_clone("--record")
    chosen = experiment.setting(_base(experiment, setting, quick=quick), given)
    folder = _folder(experiment, out, Path(QUICK) if quick else Path())
    watch = Stopwatch()
    with watching() as watcher:
        found = run(experiment, chosen, folder, watcher, again=again)
    if record and found.complete:
        label = setting or ("quick" if quick else "default")
        command = _command(experiment, chosen, setting, quick=quick)
        say(f"recorded in {record_experiment(found, label, command, *watch.spent)}")
    # After Ctrl-C some rows may have fewer runs than others: they are printed, but without verdicts.
    verdicts = found.verdicts if found.complete else []
    if as_json:
        print_json(_figures(found, verdicts) | ({} if found.complete else {"stopped": True}))
    elif found.rows or found.complete:
        _print(found)
    if verdicts and not as_json:
        _print_claims("Claims", {name: verdicts})
    if not found.complete:
        say(f"stopped; measured cells are in {folder}: the same command resumes from them")
        raise typer.Exit(128 + (watcher.signals or [2])[0])


def _base(experiment: Experiment, name: str | None, *, quick: bool) -> Mapping[str, Any]:
    """Return the changes of a named setting, or those of the quick setting."""
    from kilt.errors import RunError

    if name is None:
        return experiment.quick if quick else {}
    if quick:
        raise RunError("--quick and --setting exclude each other: give one of them")
    if name not in experiment.settings:
        known = ", ".join(experiment.settings) or "none, so omit --setting"
        raise RunError(f"{experiment.name} has no setting {name!r}: it has {known}")
    return experiment.settings[name]


def _folder(experiment: Experiment, out: Path | None, within: Path) -> Path:
    """Return the folder for the cells of an experiment. Raises `RunError` if `out` cannot be a folder."""
    from kilt.errors import RunError

    if out is not None and (out.is_file() or out.suffix in (".png", ".pdf", ".svg")):
        raise RunError(
            f"--out {out} is not a folder: give the name of a folder; pictures in it are named automatically"
        )
    return out or within / experiment.folder


def _command(experiment: Experiment, chosen: Setting, name: str | None, *, quick: bool) -> str:
    """Return the command for a setting: the name of its base, and the options that differ from that base."""
    plain = experiment.defaults._replace(**_base(experiment, name, quick=quick))
    known = plain._replace(only=plain.only if plain.only == chosen.only else ()).words()
    base = ["--setting", name] if name else ["--quick"] * quick
    changed = [word for word in chosen.words() if word not in known]
    return shlex.join(["kilt", "reproduce", experiment.name, *base, *changed])


def _print_all(folder: Path, given: Mapping[str, Any], *, quick: bool, again: bool, as_json: bool) -> None:
    """Run all experiments in turn, and print a table of claims. An experiment that fails does not end the others.

    After Ctrl-C the table has the experiments that finished.
    """
    from kilt.errors import KiltError
    from kilt_lab.menu import EXPERIMENTS
    from kilt_lab.runner import run

    done: list[dict[str, Any]] = []
    verdicts: dict[str, list[Verdict]] = {}
    failed: dict[str, str] = {}
    stopped: dict[str, str] = {}
    for name, experiment in EXPERIMENTS.items():
        watch = Stopwatch()
        with watching() as watcher:
            try:
                setting = experiment.setting(experiment.quick if quick else {}, given)
                found = run(experiment, setting, folder / experiment.folder, watcher, again=again)
            except KiltError as error:
                failed[name] = str(error)
                print_error(f"{name}:", str(error))
                continue
        if not found.complete:
            stopped = {"stopped": name}
            break
        seconds, cpu = watch.spent
        say(f"{name}: done in {in_time(seconds)}, {in_time(cpu)} of CPU time")
        verdicts[name] = found.verdicts
        done.append(_figures(found, verdicts[name]) | {"wall_seconds": seconds, "cpu_seconds": cpu})
    if as_json:
        print_json({"quick": quick, "experiments": done, "failed": failed} | stopped)
    elif verdicts:
        _print_claims("Claims, quick settings" if quick else "Claims", verdicts)
    if stopped:
        raise typer.Exit(128 + (watcher.signals or [2])[0])
    if failed:
        raise typer.Exit(1)


def _print_claims(title: str, verdicts: Mapping[str, Sequence[Verdict]]) -> None:
    rows = [
        [name, f"{verdict.says} {verdict.source}", verdict.verdict]
        for name, those in verdicts.items()
        for verdict in those
    ]
    print_table(title, ["experiment", "claim", "verdict"], rows)


def _print_list(*, claims: bool, as_json: bool) -> None:
    """Print one line for each experiment or, with `claims`, a table of what each takes and of the claims it tests."""
    from kilt_lab.menu import EXPERIMENTS

    if as_json:
        print_json({name: _listed(experiment) for name, experiment in EXPERIMENTS.items()})
        return
    if not claims:
        widest = max(map(len, EXPERIMENTS))
        for name, one in EXPERIMENTS.items():
            typer.echo(f"{name:{widest}}  {one.what}")
        say("`kilt reproduce NAME` runs one of these; `kilt reproduce --claims` lists their times and claims")
        return
    rows = [
        [
            name,
            "\n".join([one.what, *filter(None, [one.hint]), *[f"· {says}" for says in one.claims]]),
            one.takes(),
        ]
        for name, one in EXPERIMENTS.items()
    ]
    print_table("Experiments", ["name", "experiment and claims", "time"], rows)


def _listed(experiment: Experiment) -> dict[str, Any]:
    """Return an entry of the menu as a JSON object."""
    return {
        "what": experiment.what,
        "hint": experiment.hint,
        "time": experiment.takes(),
        "rows": [row.name for row in experiment.rows],
        "options": experiment.options(),
        "settings": list(experiment.settings),
        "claims": [{"claim": claim.says, "source": claim.source} for claim in experiment.claim_list],
    }


def _figures(found: Found, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return the result of an experiment as a JSON object."""
    picture = {"picture": str(found.picture)} if found.picture else {}
    rows = [row.figures() for row in found.rows]
    claims = [verdict.figures() for verdict in verdicts]
    return {"name": found.experiment.name, "what": found.title, "rows": rows, "claims": claims} | picture


def _print(found: Found) -> None:
    rows = [
        [
            row.name,
            "" if row.paper is None else f"{row.paper:,.2f}" if row.paper < 1e9 else f"{row.paper:.5g}",
            row.found(),
            "" if row.paper is None else _difference(row.ours - row.paper),
            row.unit,
            in_time(row.seconds),
        ]
        for row in found.rows
    ]
    print_table(found.title, ["", "paper", "ours", "difference", "unit", "CPU time"], rows)
    if found.picture:
        say(f"the picture is {found.picture}")


def _difference(value: float) -> str:
    """Return a difference to the paper's number."""
    return f"{round(value, 2) + 0.0:+.2f}" if abs(value) < 1e6 else f"{value:+.3g}"
