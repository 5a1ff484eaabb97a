"""``kilt solve``: run a solver with a progress bar, and stop or resume it."""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import TaskID

from kilt.cli import options
from kilt.cli.show import (
    AsJson,
    ProgressBars,
    count,
    interrupts,
    print_json,
    print_table,
    say,
    ticking,
    waiting,
)
from kilt.config import SPOT
from kilt.cost import in_time

if TYPE_CHECKING:
    from kilt.cost import Cost
    from kilt.runs.budget import Budget, Step
    from kilt.runs.run import Run
    from kilt.runs.spec import Spec
    from kilt.solve.problem import Problem


def solve(
    what: Annotated[str | None, options.WHAT] = None,
    algorithm: Annotated[str | None, options.ALGORITHM] = None,
    iterations: Annotated[int | None, options.ITERATIONS] = None,
    seconds: Annotated[float | None, options.TIME] = None,
    target: Annotated[str | None, options.TARGET] = None,
    seed: Annotated[int | None, options.SEED] = None,
    threads: Annotated[int | None, options.THREADS] = None,
    device: Annotated[str | None, options.DEVICE] = None,
    out: Annotated[Path | None, options.OUT] = None,
    engine: Annotated[str | None, options.ENGINE] = None,
    blades: Annotated[str | None, options.BLADES] = None,
    address: Annotated[str | None, options.ADDRESS] = None,
    keys: Annotated[list[str] | None, options.SET] = None,
    as_json: AsJson = False,
    list_algorithms: Annotated[bool, typer.Option("--algorithms", help="List the algorithms, and stop.")] = False,
) -> None:
    """Solve a two-player game: look for a strategy that no opponent can exploit.

    Exploitability is what a perfect opponent would win against the strategy, averaged over both seats. Small games are
    written out as trees; large ones need an algorithm that handles all hands on a board at once (see --algorithms).
    Games that are too large for that are abstracted first: a configuration says how, and `kilt estimate` what that
    takes. --set can change every key of a configuration; a game without one takes --set tilt=[W,L,F,O].

    Stops at the first of --iterations, --time and --target, or after a minute. Ctrl-C stops a run early: `kilt solve
    RUN` resumes it, with its old limits or with new ones for the whole run.
    """
    from kilt.errors import RunError
    from kilt.games import ready_made_games
    from kilt.runs.budget import make_budget
    from kilt.runs.build import spec_in, spec_of
    from kilt.runs.folder import RunFolder
    from kilt.runs.spec import WholeSpec
    from kilt.solve.distributed.forecast import blades_of

    if list_algorithms:
        _print_algorithms(as_json=as_json)
        return
    if what is None:
        raise RunError(
            "no game is given: name one (`kilt game list` has the names), a .toml file, or the folder of a run"
        )
    place = Path(what)
    resume = place if what not in ready_made_games() and place.is_dir() else None
    if resume and out:
        raise RunError(f"{resume} is a run, which is resumed in its own folder: leave out --out {out}")
    if out and not resume and (is_configured(out) or RunFolder.has_run(out)):
        raise RunError(f"{out} is there already: `kilt solve {quote(str(out))}` resumes it, or choose another folder")
    if resume and (resume / SPOT).is_file():
        raise RunError(f"{resume} is a spot: kilt spot solve {quote(str(resume))}")
    given: dict[str, object] = {
        "solver.algorithm": algorithm,
        "solver.seed": seed,
        "solver.threads": threads,
        "solver.device": device,
    }
    given |= {"engine.name": engine, "engine.address": address}
    if blades is not None:
        first, *below = blades_of(blades)
        given |= {"engine.blades": first, "engine.below": below or None}
    values = options.settings(keys) | {key: value for key, value in given.items() if value is not None}
    with waiting("counting …"):
        spec = spec_in(resume, values) if resume else spec_of(what, values)
    folder = resume or out
    if folder is None and place.suffix == ".toml":  # card abstractions are stored there
        folder = free_folder(place.stem)
    elif folder is None and isinstance(spec, WholeSpec) and spec.config.engine.name:  # workers write there
        folder = _new_folder(str(spec.game), spec.name)
    budget = make_budget(iterations, seconds, target, spec.game)
    run = built(spec, folder, budget, resumes=resume is not None)
    print_result(finish(run), run, as_json=as_json)


def is_configured(folder: Path) -> bool:
    """Return whether a folder contains a run of an abstract game."""
    from kilt.runs.folder import CONFIG

    return (folder / CONFIG).is_file()


def built(spec: Spec, folder: Path | None, budget: Budget | None, *, resumes: bool = False) -> Run:
    """Create or resume a run, and print its progress and estimated cost."""
    from kilt.runs.build import build
    from kilt.runs.plan import RunPlan
    from kilt.solve.distributed.solver import DistributedMCCFR
    from kilt.solve.tables.disk_strategy import DiskProblem

    def ready(spec: Spec, cost: Cost) -> None:
        if not (spec.has_budget or budget or resumes):
            say(f"no budget is given: stopping after {spec.budget}")
        if isinstance(spec, RunPlan):
            say(f"{spec.description}, {count(sum(spec.size.slots))} infoset-actions: {cost}")

    try:
        with ticking() as tick:
            run = build(spec, folder, resumes=resumes, budget=budget, tick=tick, ready=ready)
    except KeyboardInterrupt:
        if not folder or not is_configured(folder):
            raise
        say(f"stopped; what is built of the cards is kept: kilt solve {quote(str(folder))} goes on")
        raise typer.Exit(130) from None
    if isinstance(run.solver, DistributedMCCFR):
        say(run.solver.describe())
    if isinstance(run.problem, DiskProblem):
        cut = run.problem.subgames
        say(f"{cut.count:,} subgames, {cut.numbers:,} numbers: {spec.cost()}")
    return run


def finish(run: Run) -> Step:
    """Solve a run with a progress bar, and return the last measurement.

    A run that was stopped is stored in a folder. At the end, the measurements are drawn to a file.
    """
    from kilt.solve.solver import with_workers

    if run.spent:
        say(f"the budget of {run.budget} is spent already: give a larger one, in total, to continue")
    steps, stopped = solving(run, _standing)
    if stopped:
        kept = run.folder or run.keep(_new_folder(run.identity.game, run.identity.algorithm), steps)
        say(
            f"stopped after {steps[-1].iterations:,} iterations, with {_standing(steps[-1])}; to resume: "
            f"kilt solve {quote(str(kept.path))}"
        )
        raise typer.Exit(128 + stopped)
    if workers := with_workers(run.solver):
        say(workers.describe_load())
    if run.folder and not run.spec.exact:  # a single step has no convergence to draw
        from kilt.viz.convergence import plot_convergence
        from kilt.viz.winrates import plot_win_rates

        algorithm, measured, picture = run.identity.algorithm, run.folder.steps(), run.folder.path / "convergence.png"
        title = f"{run.problem.name}, {algorithm}"
        if run.evaluator.exact:
            plot_convergence({algorithm: measured}, title, picture)
        else:
            plot_win_rates(measured, title, picture)
    return steps[-1]


def solving(run: Run, standing: Callable[[Step], str]) -> tuple[list[Step], int]:
    """Solve a run with a progress bar that shows the latest measurement.

    Returns the measurements, and the signal that stopped the run, or 0.
    """
    steps: list[Step] = []
    with interrupts(at_once=run.spec.exact) as stopped, _progress(run, steps, standing) as tick:
        for step in run.solving(stop=lambda: bool(stopped), tick=tick, warn=say):
            steps.append(step)  # noqa: PERF402, the bar reads it meanwhile
    return steps, stopped[0] if stopped else 0


def _print_algorithms(*, as_json: bool) -> None:
    from kilt.solve.problem import FORMS
    from kilt.solve.registry import ALGORITHMS, Algorithm

    if as_json:
        print_json(
            {
                name: {"what": entry.what, "forms": list(entry.forms), "threads": entry.threads}
                for name, entry in ALGORITHMS.items()
            }
        )
        return

    def row(name: str, entry: Algorithm) -> list[str]:
        served = [
            words
            for form, words in zip(FORMS, ("small", "large", "on disk", "abstract"), strict=True)
            if form in entry.forms
        ]
        return [name, ", ".join(served), "yes" if entry.threads else "", entry.what]

    columns = ["name", "games", "threads", "description"]
    print_table("Algorithms", columns, [row(name, entry) for name, entry in ALGORITHMS.items()])


def _new_folder(game: str, algorithm: str) -> Path:
    """Return a new folder for a run without one, which is needed when the run is stopped."""
    return free_folder(re.sub(r"[^\w.+-]+", "-", f"kilt-{Path(game).stem}-{algorithm}").strip("-"))


def free_folder(name: str) -> Path:
    """Return the name of a folder that does not exist yet: the given name, with a number appended if needed."""
    return next(path for n in itertools.count(1) if not (path := Path(name if n == 1 else f"{name}-{n}")).exists())


def _standing(step: Step) -> str:
    """Describe how good a strategy is, in a few words.

    >>> from kilt.runs.budget import Step
    >>> _standing(Step(1, 1.0, 0.25, 0.5, 0.0)), _standing(Step(1, 1.0, 0.0, 0.0, 0.0, {"always-call": 512.3}))
    ('an exploitability of 0.25 chips per game', '+512 mbb/h against always-call')
    """
    from kilt.evaluate.evaluator import UNIT

    if step.others:
        return ", ".join(f"{rate:+.0f} mbb/h against {name}" for name, rate in step.others.items())
    return f"an exploitability of {step.exploitability:.4g} {UNIT}"


@contextmanager
def _progress(run: Run, steps: list[Step], standing: Callable[[Step], str]) -> Iterator[Callable[[int, float], None]]:
    """Show progress bars for a run and for its solver's parts, and provide the function that moves them."""
    from kilt.runs.budget import time_left
    from kilt.solve.external import ExternalMCCFR
    from kilt.solve.seats import SeatSolver
    from kilt.solve.solver import with_workers

    seen: deque[tuple[int, float, int]] = deque(maxlen=25)  # latest iterations, seconds and visits
    seats = run.solver.seats if isinstance(run.solver, SeatSolver) else (run.solver,)
    sampled, workers = [seat for seat in seats if isinstance(seat, ExternalMCCFR)], with_workers(run.solver)
    infosets = sum(sum(seat.abstract.size.infosets) for seat in sampled)
    with ProgressBars() as bar:
        task = bar.add_task(f"{run.identity.game}, {run.identity.algorithm}", total=None, said="starting …")
        parts: list[TaskID] = []

        def tick(iterations: int, seconds: float) -> None:
            if seen and iterations < seen[-1][0]:  # the run went back to a checkpoint, because a part was lost
                seen.clear()
            visits = sum(seat.visits for seat in sampled)
            seen.append((iterations, seconds, visits))
            said = [f"{iterations:,} iterations"]
            if seconds > seen[0][1]:
                said.append(_rate((iterations - seen[0][0]) / (seconds - seen[0][1])))
                if sampled:
                    said.append(f"{_rate((visits - seen[0][2]) / 1e6 / (seconds - seen[0][1]))} million nodes")
                    decisions = sum(seat.decisions for seat in sampled)
                    said.append(f"{decisions / infosets:,.3g} decisions per information set")
            if steps:
                said.append(standing(steps[-1]))
            left = time_left(run.budget, steps, iterations, seconds)
            if left is not None:
                said.append(f"{in_time(left)} left")
            total = None if left is None else seconds + left
            bar.update(task, total=total, completed=seconds, said=" · ".join(said))
            for number, (where, busy) in enumerate(workers.how_busy() if workers else []):
                if number == len(parts):
                    parts.append(bar.add_task("", total=1.0, said=""))
                what, working = f"blade {number + 1}, {where}", f"at work {busy:.0%} of the time"
                bar.update(parts[number], description=what, completed=busy, said=working)

        yield tick


def _rate(per_second: float) -> str:
    """Format a speed as a whole number, or with two digits if it is small.

    >>> _rate(12345.6), _rate(0.3333)
    ('12,346/s', '0.33/s')
    """
    return f"{per_second:,.0f}/s" if per_second >= 10 else f"{per_second:.2g}/s"


def exploitability_rows(chips: float, problem: Problem, what: str = "exploitability") -> list[list[str]]:
    """Return table rows with the exploitability in each unit, such as chips and mbb/g."""
    from kilt.evaluate.evaluator import UNIT

    mbb = problem.mbb(chips)
    rows = [[what, f"{chips:.6g}", UNIT]]
    return rows if mbb is None else [*rows, ["", f"{mbb:.6g}", "mbb/g"]]


def run_result(step: Step, run: Run) -> dict[str, Any]:
    """Return a run's last measurement as a dict for JSON output.

    If the strategy as played differs, its exploitability is included.
    """
    from kilt.evaluate.evaluator import UNIT
    from kilt.players.profile import measure_as_played
    from kilt.strategy.naming import solved_name

    said = {what: getattr(run.identity, what) for what in ("game", "algorithm", "seed", "form")}
    played = measure_as_played(run)
    return (
        said
        | step._asdict()
        | {"unit": UNIT, "strategy": solved_name(run.identity._asdict())}
        | _in_mbb(step.exploitability, run.problem)
        | ({} if run.folder is None else {"run": str(run.folder.path)})
        | ({} if played is None else {"as_played": played._asdict() | _in_mbb(played.exploitability, run.problem)})
    )


def _in_mbb(chips: float, problem: Problem) -> dict[str, float]:
    mbb = problem.mbb(chips)
    return {} if mbb is None else {"exploitability_mbb": mbb}


def print_result(step: Step, run: Run, *, as_json: bool) -> None:
    """Print the result of a run as a table or as JSON."""
    from math import isnan

    from kilt.evaluate.evaluator import UNIT
    from kilt.players.profile import measure_as_played
    from kilt.strategy.naming import played_rule, solved_name

    identity, problem, folder = run.identity, run.problem, run.folder
    if as_json:
        print_json(run_result(step, run))
        return
    played = measure_as_played(run)
    if run.evaluator.exact:
        rows = [
            *exploitability_rows(step.exploitability, problem),
            *(exploitability_rows(played.exploitability, problem, f"… {played.strategy}") if played else []),
            ["… of the last iterate", f"{step.current_exploitability:.6g}", UNIT],
            ["value to player 1", f"{step.value:.9g}", UNIT],
        ]
    else:
        rows = [[f"wins against {name}", f"{rate:+.0f}", "mbb/h"] for name, rate in step.others.items()]
    if not isnan(step.abstract_exploitability):
        rows.append(["exploitability inside the abstraction", f"{step.abstract_exploitability:.6g}", UNIT])
    rows += [["iterations", f"{step.iterations:,}", ""], ["time", f"{step.seconds:.2f}", "s"]]
    rows += [["CPU time", f"{step.cpu_seconds:.2f}", "s"]]
    print_table(f"{identity.game}, {identity.algorithm}", ["", "result", "unit"], rows)
    if folder:
        solved, rule = solved_name(identity._asdict()), played_rule({"agent": getattr(problem, "agent", {})})
        again = "evaluate exploitability" if run.evaluator.exact else "evaluate sanity"
        if not rule.idle:
            which = f"figures not marked '{played.strategy}'" if played else "these figures"
            say(f"{which} are of the {solved}; the agent post-processes it by {rule.name} before it plays")
        say(f"saved to {folder.path}; evaluate it with: kilt {again} {quote(str(folder.path))}")
