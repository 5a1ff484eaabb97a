"""The one constructor of runs: `build` makes a `Run` of a configuration or a `Spec`, new or from its folder.

>>> from kilt.runs.budget import Budget
>>> run = build(WholeSpec("kuhn"), budget=Budget(iterations=100))
>>> run.finish().iterations, run.exploitability < 0.01
(100, True)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kilt import artifact
from kilt.config import DEFAULT_ALGORITHM, Config, EngineConfig, read_config
from kilt.cost import Cost
from kilt.engines import Engine
from kilt.errors import RunError
from kilt.games.game import Game
from kilt.runs.budget import Budget
from kilt.runs.folder import CONFIG, RunFolder
from kilt.runs.plan import RunPlan, resolve
from kilt.runs.run import Run
from kilt.runs.spec import Spec, Tick, WholeSpec
from kilt.solve.registry import Algorithm
from kilt.solve.variants import Variant


def _silent(*_: object) -> None:
    """A callback that does nothing."""


def build(
    what: Config | Spec,
    folder: Path | None = None,
    *,
    resumes: bool = False,
    budget: Budget | None = None,
    tick: Tick = _silent,
    ready: Callable[[Any, Cost], None] = _silent,
) -> Run:
    """Make a run: a new one, or one that resumes from its last checkpoint.

    Whatever does not fit is refused before anything is built: names first, then memory and disk, then room for workers.

    Parameters
    ----------
    what : Config or Spec
        What is solved, and how.
    folder : Path, optional
        Where log, checkpoints and strategy are kept. An abstract game needs one, for its cards.
    resumes : bool
        Whether the folder may have a run of this already, which is resumed. Otherwise the folder must be new.
    budget : Budget, optional
        Total budget. Default: that of the resumed run, that of `what`, or a minute.
    tick : callable
        Called with what is being built of the cards, and what share of it is done.
    ready : callable
        Called with the spec and its cost, once that has been found to fit and before anything is written.
    """
    spec = what if isinstance(what, Spec) else spec_of(what, folder)
    if spec.exact and budget:
        raise RunError("the algorithm solves a game exactly, in one step: leave out all limits of iterations and time")
    if folder and not resumes:
        spec.require_new(folder)
    ready(spec, spec.require_room(folder))
    problem = spec.problem(folder, tick, resumes=resumes)
    solver, identity = spec.solver(problem), spec.identity(problem)
    begun = RunFolder.open(folder) if folder and resumes and RunFolder.begun(folder) else None
    wanted = budget or (begun.budget if begun else spec.budget)
    run = Run(
        problem, solver, identity, wanted, begun, spec.exact, spec.schedule, spec.given, judge=spec.judge(problem)
    )
    if begun:
        begun.move_to(identity)
    elif folder:
        run.begin(folder)
        for name, text in spec.files.items():
            artifact.write_text(folder / name, text)
    return run


def spec_of(config: Config, folder: Path | None = None) -> RunPlan | WholeSpec:
    """Return the plan of a configuration: an abstract game if it has `cards`, otherwise an unabstracted game."""
    return resolve(config, folder) if config.cards else WholeSpec.of(config)


def spec_in(folder: Path, threads: int | None = None, device: str | None = None) -> RunPlan | WholeSpec:
    """What the run in a folder solves; `threads` and `device` as the run says unless they are given."""
    begun = RunFolder.open(folder) if RunFolder.begun(folder) else None
    if not (folder / CONFIG).is_file():
        spec = WholeSpec.begun(begun or RunFolder.open(folder))
        return replace(spec, threads=threads or spec.threads, device=device or spec.device)
    config = read_config(folder / CONFIG)
    solver = replace(
        config.solver,
        threads=threads or config.solver.threads,
        device=device or (begun.device if begun else config.solver.device),
    )
    return resolve(replace(config, solver=solver), folder)


def resume(
    folder: Path,
    *,
    budget: Budget | None = None,
    threads: int | None = None,
    device: str | None = None,
    tick: Tick = _silent,
) -> Run:
    """Resume the run in a folder, on the device where it began unless another one is given."""
    return build(spec_in(folder, threads, device), folder, resumes=True, budget=budget, tick=tick)


def new_run(
    game: str | Game,
    algorithm: str | Variant | Algorithm = DEFAULT_ALGORITHM,
    *,
    begun: RunFolder | None = None,
    folder: Path | None = None,
    budget: Budget | None = None,
    device: str | None = None,
    tilt: Sequence[float] = (),
    engine: Engine | None = None,
    workers: int = 1,
    **others: Any,
) -> Run:
    """Call `build` for an unabstracted game."""
    said = WholeSpec.begun(begun) if begun else WholeSpec(game)
    spec = replace(
        said,
        game=game,
        algorithm=algorithm,
        form=said.form if said.algorithm == algorithm else None,
        device=device or said.device,
        tilt=tuple(tilt) or said.tilt,
        place=engine,
        engine=EngineConfig(blades=workers) if engine else EngineConfig(),
        **others,
    )
    return build(spec, begun.path if begun else folder, resumes=begun is not None, budget=budget)


def configured_run(plan: RunPlan, folder: Path, *, going_on: bool = False, **others: Any) -> Run:
    """`build` of an abstract game, as the commands of this commit call it."""
    return build(plan, folder, resumes=going_on, **others)
