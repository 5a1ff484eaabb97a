"""Build runs from their configurations, or from the folders of earlier runs.

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
    """Accept any arguments and do nothing: the default for callbacks."""


def build(
    what: Config | Spec,
    folder: Path | None = None,
    *,
    resumes: bool = False,
    budget: Budget | None = None,
    tick: Tick = _silent,
    ready: Callable[[Any, Cost], None] = _silent,
) -> Run:
    """Return a run: either a new one, or one that resumes from its last checkpoint.

    Invalid requests are refused before anything is built: first names, then memory and disk, then room for workers.

    Parameters
    ----------
    what : Config or Spec
        The game, and how it is solved.
    folder : Path, optional
        Folder for log, checkpoints and strategy. An abstract game needs one for its card abstractions.
    resumes : bool
        Whether a run in the folder is resumed, if there is one. Otherwise the folder must be new.
    budget : Budget, optional
        Total budget. Default: that of the resumed run, that of `what`, or a minute.
    tick : callable
        Called with the current step of building card abstractions, and the finished share of it.
    ready : callable
        Called with the spec and its cost after it was found to fit, before anything is written.
    """
    spec = what if isinstance(what, Spec) else spec_of(what, folder)
    if spec.exact and budget:
        raise RunError("the algorithm solves a game exactly, in one step: leave out all limits of iterations and time")
    if folder and not resumes:
        spec.require_new(folder)
    ready(spec, spec.require_room(folder))
    problem = spec.problem(folder, tick, resumes=resumes)
    solver, identity = spec.solver(problem), spec.identity(problem)
    begun = RunFolder.open(folder) if folder and resumes and RunFolder.has_run(folder) else None
    wanted = budget or (begun.budget if begun else spec.budget)
    run = Run(
        problem,
        solver,
        identity,
        wanted,
        begun,
        spec.exact,
        spec.schedule,
        spec.given,
        evaluator=spec.evaluator(problem),
    )
    if begun:
        begun.move_to(identity)
    elif folder:
        run.begin(folder)
        for name, text in spec.files.items():
            artifact.write_text(folder / name, text)
    return run


def spec_of(config: Config, folder: Path | None = None) -> RunPlan | WholeSpec:
    """Return the specification of a run from its configuration.

    The game is abstract if the configuration has `cards`.
    """
    return resolve(config, folder) if config.cards else WholeSpec.of(config)


def spec_in(folder: Path, values: Mapping[str, object] = NOTHING) -> RunPlan | WholeSpec:
    """Return the specification of the run in a folder, with some keys of its configuration changed.

    A key is written like "solver.threads".

    The device is the one on which the run began, unless `values` contain another one.
    """
    if not (folder / CONFIG).is_file():
        return WholeSpec.begun(RunFolder.open(folder), values)
    config = read_config(folder / CONFIG)
    if RunFolder.has_run(folder):
        config = replaced(config, {"solver.device": RunFolder.open(folder).device})
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
    spec = spec_in(folder, {"solver.threads": threads, "solver.device": device})
    return build(spec, folder, resumes=True, budget=budget, tick=tick)
