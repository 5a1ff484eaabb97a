"""``kilt solve``: run a solver, watch it, stop it, go on with it."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from itertools import count
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from kilt.cli.show import AsJson, duration, errors, interrupts, print_json, print_table, say, ticking

if TYPE_CHECKING:
    from kilt.config import Config
    from kilt.engines import Engine
    from kilt.solve.folder import RunFolder, RunIdentity
    from kilt.solve.problem import Problem
    from kilt.solve.run import Budget, Step
    from kilt.solve.solver import Solver

DEFAULT_ALGORITHM = "cfr+"
DEFAULT_MINUTES = 1

GameOption = Annotated[
    str | None,
    typer.Option(
        "--game",
        "-g",
        metavar="NAME",
        help="A ready-made game (see `kilt game list`), an ACPC .game file, or openspiel:NAME for one of open_spiel's.",
    ),
]

ThreadsOption = Annotated[
    int,
    typer.Option("--threads", metavar="T", help="How many threads; more than 1 for algorithms that walk all boards."),
]


def solve(
    config: Annotated[
        Path | None,
        typer.Argument(
            metavar="[CONFIG]",
            help="A .toml file that says game, cards, bets and solver of an abstract game: `kilt plan --example`.",
        ),
    ] = None,
    game: GameOption = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            "--algorithm",
            "-a",
            metavar="A",
            help=f"How to solve it: --algorithms lists the ways. Left out: {DEFAULT_ALGORITHM}, or what CONFIG says.",
        ),
    ] = None,
    iterations: Annotated[
        int | None, typer.Option("--iterations", "-n", metavar="N", help="Stop after N iterations.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes", "-m", metavar="M", help=f"Stop after M minutes. No budget at all: {DEFAULT_MINUTES}."
        ),
    ] = None,
    target: Annotated[
        float | None,
        typer.Option("--target", "-t", metavar="E", help="Stop when exploitability is at most E chips per game."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="S", help="For algorithms that draw at random. Left out: 0.")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads", metavar="T", help="How many threads; more than 1 with CONFIG, or to walk all boards."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="RUN",
            help="A new folder for the strategy, a log, a plot, and checkpoints to resume from.",
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="RUN",
            help="Go on with a run that was stopped or killed, to its old budget or to a new one (in total).",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="E",
            help="With CONFIG: `local` or `ray`, blades share the classes of its boards. Left out: as it says.",
        ),
    ] = None,
    blades: Annotated[
        int | None, typer.Option("--blades", metavar="N", help="How many blades, each with --threads. Left out: 2.")
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            "--address", metavar="A", help="HOST:PORT of a Ray cluster that is there. Left out: one of its own, here."
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option("--batch", metavar="D", help="Deals in a message to a blade. Left out: as latency asks for."),
    ] = None,
    as_json: AsJson = False,
    list_algorithms: Annotated[bool, typer.Option("--algorithms", help="List the algorithms, and stop.")] = False,
) -> None:
    """Solve a two-player game: look for a strategy that no opponent can exploit.

    Exploitability is what perfect opponents would win against it, mean over both seats. Small games are written out
    as trees; large ones need an algorithm that walks over public boards with all hands at once (see --algorithms).
    Games that are too large for that are abstracted first: a CONFIG says how, and `kilt plan` what that takes.

    Give one of --iterations, --minutes and --target. Ctrl-C stops a run so that --resume can go on with it.
    """
    from kilt.errors import RunError
    from kilt.solve.abstract_problem import CONFIG
    from kilt.solve.folder import RunFolder, size_of
    from kilt.solve.run import run
    from kilt.solve.solver import InParts

    if list_algorithms:
        _print_algorithms(as_json=as_json)
        return
    given = _budget(iterations, minutes, target)
    if resume and out:
        raise RunError(f"--resume {resume} goes on in its own folder: leave out --out {out}")
    if config and (game or resume):
        raise RunError(f"{config} says which game it is: leave out --game and --resume")
    where = {"name": engine, "blades": blades, "address": address, "batch": batch}
    asked = Asked(given, game, algorithm, seed, threads, out, resume, where)
    if config or (resume and (resume / CONFIG).is_file()):
        ready = _abstracted(asked, config)
    else:
        ready = _whole(asked)
    solver, problem, identity, budget, folder, exact, _ = ready

    steps: list[Step] = []
    with (
        closing(solver) if isinstance(solver, InParts) else nullcontext(),
        interrupts(at_once=exact) as stopped,
        _progress(identity, budget, steps, solver) as tick,
    ):
        for step in run(solver, problem, budget, folder=folder, stop=lambda: bool(stopped), tick=tick, warn=say):
            steps.append(step)  # noqa: PERF402, the bar reads it meanwhile
    if stopped:
        if folder is None:
            folder = RunFolder.create(_new_folder(identity), identity, budget, size_of(solver))
            folder.keep(steps, solver, problem)
        say(
            f"stopped after {steps[-1].iterations:,} iterations, with {_standing(steps[-1])}; to go on: "
            f"kilt solve --resume {quote(str(folder.path))}"
        )
        raise typer.Exit(128 + stopped[0])
    if isinstance(solver, InParts):
        say(solver.spent())
    if folder and not exact:  # there is nothing to see of one step
        from kilt.viz.convergence import plot_convergence
        from kilt.viz.winrates import plot_win_rates

        title, picture = f"{problem.name}, {identity.algorithm}", folder.path / "convergence.png"
        if problem.exact:
            plot_convergence({identity.algorithm: folder.steps()}, title, picture)
        else:
            plot_win_rates(folder.steps(), title, picture)
    _print_result(steps[-1], identity, problem, folder.path if folder else None, as_json=as_json)


class Asked(NamedTuple):
    """What the command line says about a run."""

    budget: Budget | None
    game: str | None
    algorithm: str | None
    seed: int | None
    threads: int | None
    out: Path | None
    resume: Path | None
    engine: dict[str, str | int | None]


class Ready(NamedTuple):
    """A run that can begin, or go on."""

    solver: Solver
    problem: Problem
    identity: RunIdentity
    budget: Budget
    folder: RunFolder | None
    exact: bool = False  # done after one step
    asked_for: bool = False  # whether the budget is what somebody asked for


def _whole(asked: Asked) -> Ready:
    """A run on a game as it is."""
    from kilt.errors import RunError
    from kilt.solve import algorithm_named
    from kilt.solve.folder import RunFolder, RunIdentity
    from kilt.solve.problem import load_problem, make_solver
    from kilt.solve.run import Budget

    folder = RunFolder.open(asked.resume) if asked.resume else None
    game, algorithm, seed = asked.game, asked.algorithm, asked.seed
    if folder:
        game, algorithm = game or folder.identity.game, algorithm or folder.identity.algorithm
        seed = folder.identity.seed if seed is None else seed
    if any(value is not None for value in asked.engine.values()):
        raise RunError("blades share the classes of boards of an abstract game: give a CONFIG, or leave out --engine")
    if game is None:
        raise RunError(
            "no game is given: add --game NAME (`kilt game list` has the names), a CONFIG file, or --resume RUN"
        )
    algorithm, seed = algorithm or DEFAULT_ALGORITHM, seed or 0
    exact = algorithm_named(algorithm).exact
    if exact and asked.budget:
        raise RunError(
            f"{algorithm} solves a game exactly, in one step: leave out --iterations, --minutes and --target"
        )
    form = folder.identity.form if folder and algorithm == folder.identity.algorithm else None
    with errors.status(f"writing out {game} …"):
        problem = load_problem(game, algorithm, form=form, threads=1 if asked.threads is None else asked.threads)
        solver = make_solver(problem, algorithm, seed)
    identity = RunIdentity(_lasting(game), algorithm, seed, problem.form, problem.fingerprint)
    default = Budget(iterations=1) if exact else Budget(seconds=60 * DEFAULT_MINUTES)
    return _begun(asked, Ready(solver, problem, identity, default, folder, exact, asked_for=exact), asked.out)


def _abstracted(asked: Asked, config: Path | None) -> Ready:
    """A run on an abstract game, in a folder of its own: its cards are there too."""
    from dataclasses import replace

    from kilt.cli.plan import say_estimate
    from kilt.config import read_config
    from kilt.errors import RunError
    from kilt.evaluate.head_to_head import FixedOpponents
    from kilt.solve.abstract_problem import CONFIG, keep_config, prepare
    from kilt.solve.distributed.solver import Distributed
    from kilt.solve.folder import RunFolder, RunIdentity
    from kilt.solve.problem import make_solver
    from kilt.solve.run import Budget

    said = read_config(config or asked.resume / CONFIG)  # type: ignore[operator]
    solving = replace(
        said.solver,
        algorithm=asked.algorithm or said.solver.algorithm,
        seed=said.solver.seed if asked.seed is None else asked.seed,
        threads=said.solver.threads if asked.threads is None else asked.threads,
    )
    given = {name: value for name, value in asked.engine.items() if value is not None}
    said = replace(said, solver=solving, engine=replace(said.engine, **given))  # type: ignore[arg-type]
    if given and not said.engine.name:
        raise RunError(f"--{next(iter(given))} is about blades, and there is no engine: add --engine ray, or local")
    path = asked.resume or asked.out or _free(config.stem if config else "")
    if not asked.resume and path.exists() and any(path.iterdir()):
        raise RunError(f"{path} is there already: go on with --resume {quote(str(path))}, or choose another folder")
    say_estimate(said, path)
    place = _blades(said, path) if said.engine.name else None
    if not asked.resume:
        keep_config(said, path)
    try:
        with ticking() as tick:
            problem = replace(prepare(said, path, tick=tick, judge=FixedOpponents), place=place)
    except KeyboardInterrupt:
        say(f"stopped; what is built of the cards is kept: kilt solve --resume {quote(str(path))} goes on")
        raise typer.Exit(130) from None
    waiting = "writing out the abstract game …" if not said.engine.name else "looking for blades …"
    with errors.status(waiting):
        solver = make_solver(problem, solving.algorithm, solving.seed)
    if isinstance(solver, Distributed):
        say(solver.described())
    name = f"{problem.name}, {problem.abstract.cards.name}"
    algorithm = f"{solving.algorithm} in parts" if said.engine.name else solving.algorithm
    identity = RunIdentity(name, algorithm, solving.seed, problem.form, problem.fingerprint)
    minutes = solving.minutes or (0 if solving.iterations else DEFAULT_MINUTES)
    default = Budget(solving.iterations or None, 60 * minutes or None)
    folder = RunFolder.open(path) if RunFolder.begun(path) else None
    asked_for = bool(solving.iterations or solving.minutes)
    return _begun(asked, Ready(solver, problem, identity, default, folder, asked_for=asked_for), path)


def _blades(said: Config, path: Path) -> Engine:
    """The engine of a run, where there is room for its blades."""
    from kilt.abstraction.buckets import AbstractionSpec
    from kilt.engines import engine_named
    from kilt.solve.abstract_problem import asked_for, options_of, takes
    from kilt.solve.distributed.partition import one_for_both
    from kilt.solve.distributed.solver import look_for_blades

    with errors.status("looking for blades …"):
        _, _, both = asked_for(said, path)
        cards = one_for_both(both)
        known = AbstractionSpec.read(cards) if isinstance(cards, Path) else cards
        engine = engine_named(said.engine.name, said.engine.address, said.solver.threads)
        try:
            look_for_blades(engine, said.engine, takes(said, path).size, known, options_of(said))
        except BaseException:
            engine.close()
            raise
    return engine


def _begun(asked: Asked, ready: Ready, out: Path | None) -> Ready:
    """The same with its budget, and in its folder if it has one."""
    from kilt.solve.folder import RunFolder, size_of

    folder, budget = ready.folder, asked.budget or (ready.folder.budget if ready.folder else ready.budget)
    ready.problem.require_measurable(budget.target)
    if folder:
        folder.identity.require(ready.identity, folder.path)
        if any(budget.spent(step.iterations, step.seconds) for step in folder.steps()):
            say(f"the budget of {budget} is spent already: give a larger one, in total, to go on")
    else:
        if not asked.budget and not ready.asked_for:
            say(f"no budget is given: stopping after {budget}")
        if out:
            folder = RunFolder.create(out, ready.identity, budget, size_of(ready.solver))
    return ready._replace(budget=budget, folder=folder)


def _print_algorithms(*, as_json: bool) -> None:
    from kilt.solve import ALGORITHMS, FORMS, Algorithm

    if as_json:
        print_json(
            {
                name: {"what": entry.what, "forms": list(filter(entry.works_on, FORMS)), "threads": entry.threads}
                for name, entry in ALGORITHMS.items()
            }
        )
        return

    def row(name: str, entry: Algorithm) -> list[str]:
        served = *map(entry.works_on, FORMS), entry.threads
        return [name, entry.what, *("yes" if whether else "" for whether in served)]

    columns = ["name", "what it is", "small games", "large games", "abstract games", "threads"]
    print_table("Algorithms", columns, [row(name, entry) for name, entry in ALGORITHMS.items()])


def _budget(iterations: int | None, minutes: float | None, target: float | None) -> Budget | None:
    """What was asked for, if anything."""
    from kilt.errors import RunError
    from kilt.solve.run import Budget

    given = {"--iterations": iterations, "--minutes": minutes, "--target": target}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise RunError(f"{' and '.join(names)} are given: use one of them")
    return Budget(iterations, None if minutes is None else 60 * minutes, target) if names else None


def _lasting(game: str) -> str:
    """The name of a game, good in any folder: files by their full path."""
    from kilt.games import ready_made_games

    return str(Path(game).resolve()) if game not in ready_made_games() and Path(game).exists() else game


def _new_folder(identity: RunIdentity) -> Path:
    """A folder for a run that was given none: it is needed when the run is stopped."""
    return _free(re.sub(r"[^\w.+-]+", "-", f"kilt-{Path(identity.game).stem}-{identity.algorithm}").strip("-"))


def _free(name: str) -> Path:
    """A folder of that name, or with a number after it, that is not there yet."""
    return next(path for n in count(1) if not (path := Path(name if n == 1 else f"{name}-{n}")).exists())


def _standing(step: Step) -> str:
    """How good a strategy is, in a few words.

    >>> from kilt.solve.run import Step
    >>> _standing(Step(1, 1.0, 0.25, 0.5, 0.0)), _standing(Step(1, 1.0, 0.0, 0.0, 0.0, {"always-call": 512.3}))
    ('an exploitability of 0.25 chips per game', '+512 mbb/h against always-call')
    """
    from kilt.solve.problem import UNIT

    if step.others:
        return ", ".join(f"{rate:+.0f} mbb/h against {name}" for name, rate in step.others.items())
    return f"an exploitability of {step.exploitability:.4g} {UNIT}"


@contextmanager
def _progress(
    identity: RunIdentity, budget: Budget, steps: list[Step], solver: Solver
) -> Iterator[Callable[[int, float], None]]:
    """A bar on the terminal, and one for each part of a solver in parts; gives what `run` calls to move them."""
    from kilt.solve.run import time_left
    from kilt.solve.solver import InParts

    seen: deque[tuple[int, float]] = deque(maxlen=25)  # iterations and seconds of the last moments
    columns = TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[said]}")
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task(f"{identity.game}, {identity.algorithm}", total=None, said="starting …")
        parts: list[TaskID] = []

        def tick(iterations: int, seconds: float) -> None:
            seen.append((iterations, seconds))
            said = [f"{iterations:,} iterations"]
            if seconds > seen[0][1]:
                said.append(_rate((iterations - seen[0][0]) / (seconds - seen[0][1])))
            if steps:
                said.append(_standing(steps[-1]))
            left = time_left(budget, steps, iterations, seconds)
            if left is not None:
                said.append(f"{duration(left)} left")
            total = None if left is None else seconds + left
            bar.update(task, total=total, completed=seconds, said=" · ".join(said))
            for number, (where, busy) in enumerate(solver.parts() if isinstance(solver, InParts) else []):
                if number == len(parts):
                    parts.append(bar.add_task("", total=1.0, said=""))
                what, working = f"blade {number + 1}, {where}", f"at work {busy:.0%} of the time"
                bar.update(parts[number], description=what, completed=busy, said=working)

        yield tick


def _rate(per_second: float) -> str:
    """Whole numbers, or two digits where they are few.

    >>> _rate(12345.6), _rate(0.3333)
    ('12,346/s', '0.33/s')
    """
    return f"{per_second:,.0f}/s" if per_second >= 10 else f"{per_second:.2g}/s"


def exploitability_rows(chips: float, problem: Problem) -> list[list[str]]:
    """Rows of a table, one per unit."""
    from kilt.solve.problem import UNIT

    mbb = problem.mbb(chips)
    rows = [["exploitability", f"{chips:.6g}", UNIT]]
    return rows if mbb is None else [*rows, ["", f"{mbb:.6g}", "mbb/g"]]


def _print_result(step: Step, identity: RunIdentity, problem: Problem, run: Path | None, *, as_json: bool) -> None:
    from kilt.solve.problem import UNIT

    mbb = problem.mbb(step.exploitability)
    if as_json:
        said = {what: getattr(identity, what) for what in ("game", "algorithm", "seed", "form")}
        print_json(
            said
            | step._asdict()
            | {"unit": UNIT}
            | ({} if mbb is None else {"exploitability_mbb": mbb})
            | ({} if run is None else {"run": str(run)})
        )
        return
    if problem.exact:
        rows = [
            *exploitability_rows(step.exploitability, problem),
            ["… of the current strategy", f"{step.current_exploitability:.6g}", UNIT],
            ["value to player 1", f"{step.value:.9g}", UNIT],
        ]
    else:
        rows = [[f"wins against {name}", f"{rate:+.0f}", "mbb/h"] for name, rate in step.others.items()]
    rows += [["iterations", f"{step.iterations:,}", ""], ["time", f"{step.seconds:.2f}", "s"]]
    print_table(f"{identity.game}, {identity.algorithm}", ["", "seen", "unit"], rows)
    if run:
        again = "evaluate exploitability" if problem.exact else "evaluate sanity"
        say(f"all of it is in {run}; judge it again with: kilt {again} {quote(str(run))}")
