"""The one constructor of runs: `build` makes a `Run` of a configuration or a `Spec`, new or from its folder.

>>> from kilt.runs.budget import Budget
>>> run = build(WholeSpec("kuhn"), budget=Budget(iterations=100))
>>> run.finish().iterations, run.exploitability < 0.01
(100, True)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kilt import artifact
from kilt.config import Config, read_config
from kilt.cost import Cost
from kilt.errors import RunError
from kilt.records import replaced
from kilt.runs.budget import Budget
from kilt.runs.folder import CONFIG, RunFolder
from kilt.runs.plan import RunPlan, resolve
from kilt.runs.run import Run
from kilt.runs.spec import NOTHING, Spec, Tick, WholeSpec


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


def spec_in(folder: Path, values: Mapping[str, object] = NOTHING) -> RunPlan | WholeSpec:
    """What the run in a folder solves, with other `values` of some keys of its configuration, such as "solver.threads".

    It is solved on the device where it began unless `values` say otherwise.
    """
    if not (folder / CONFIG).is_file():
        return WholeSpec.begun(RunFolder.open(folder), values)
    config = read_config(folder / CONFIG)
    if RunFolder.begun(folder):
        values = {"solver.device": RunFolder.open(folder).device} | dict(values)
    config = replaced(config, values)
    if not config.engine.name and any(key.startswith("engine.") for key in values):
        raise RunError("[engine] names no engine, but sets its workers: give `name` too")
    return resolve(config, folder)


def resume(
    folder: Path,
    *,
    budget: Budget | None = None,
    threads: int | None = None,
    device: str | None = None,
    tick: Tick = _silent,
) -> Run:
    """Resume the run in a folder, on the device where it began unless another one is given."""
    values = {"solver.threads": threads, "solver.device": device}
    spec = spec_in(folder, {key: value for key, value in values.items() if value is not None})
    return build(spec, folder, resumes=True, budget=budget, tick=tick)
