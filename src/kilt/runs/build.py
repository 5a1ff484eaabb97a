"""Create runs from configurations, or reopen earlier runs in their folders.

>>> from kilt.runs.budget import Budget
>>> run = build(spec_of("kuhn"), budget=Budget(iterations=100))
>>> run.finish().iterations, run.exploitability < 0.01
(100, True)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from kilt.config import DEFAULT_ALGORITHM, Config, SolverConfig, find_config, read_config
from kilt.cost import Cost
from kilt.engines import ENGINES
from kilt.errors import RunError
from kilt.games.game import Game
from kilt.records import replaced
from kilt.runs.budget import Budget
from kilt.runs.folder import CONFIG, RunFolder
from kilt.runs.plan import RunPlan, resolve
from kilt.runs.run import Run
from kilt.runs.spec import NOTHING, Spec, Tick, WholeSpec, silent
from kilt.solve.counter import Against
from kilt.solve.registry import Algorithm
from kilt.solve.variants import Variant

What: TypeAlias = "str | Path | Game | Config | Mapping[str, Any]"  # a game or a configuration


def build(
    what: Config | Spec,
    folder: Path | None = None,
    *,
    resumes: bool = False,
    budget: Budget | None = None,
    tick: Tick = silent,
    ready: Callable[[Any, Cost], None] = silent,
) -> Run:
    """Return a run that is ready to start, either new or resumed from its last checkpoint.

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
    spec = what if isinstance(what, Spec) else spec_of(what, folder=folder)
    if spec.exact and budget:
        raise RunError("the algorithm solves a game exactly, in one step: leave out all limits of iterations and time")
    if folder and not resumes:
        spec.require_new(folder)
    ready(spec, spec.require_room(folder))
    problem = spec.problem(folder, tick, resumes=resumes)
    solver, identity = spec.solver(problem), spec.identity(problem)
    begun = RunFolder.open(folder) if folder and resumes and RunFolder.has_run(folder) else None
    if begun:
        begun.identity.require(identity, begun.path)
    wanted = budget or (begun.budget if begun else spec.budget)
    evaluator = spec.evaluator(problem)
    evaluator.require_measurable(wanted.target)
    run = Run(problem, solver, identity, wanted, evaluator, spec, begun, spec.schedule)
    if begun:
        begun.move_to(identity)
    elif folder:
        run.begin(folder)
    return run


def spec_of(
    what: What,
    values: Mapping[str, object] = NOTHING,
    *,
    algorithm: Variant | Algorithm | None = None,
    against: Against | None = None,
    folder: Path | None = None,
) -> RunPlan | WholeSpec:
    """Return the specification of a run for a game or a configuration: what to solve, and how.

    The game is abstract if the configuration has `cards`.

    Parameters
    ----------
    what : str, Path, Game, Config or mapping
        A game by name, file or rules; or a configuration as an object, a mapping or a .toml file.
    values : mapping
        Values for keys of the configuration, such as ``{"solver.seed": 3}``. None leaves a key unchanged.
    algorithm : Variant or Algorithm, optional
        A row of discounts for CFR, or a custom algorithm, to solve a game without abstraction.
    against : Against, optional
        The opponent that a counter-strategy exploits: see `kilt.runs.answers.answer_spec`.
    folder : Path, optional
        Folder of a run that was killed at its start, whose card abstractions are continued.
    """
    config = find_config(what)
    if config and algorithm:
        raise RunError("a configuration needs an algorithm by name, so that its run can be resumed")
    game = None if config or isinstance(what, str | Path) else what
    if config is None:
        config = Config("" if game else str(what), solver=SolverConfig(algorithm=DEFAULT_ALGORITHM))
    config = _changed(config, values)
    if config.cards:
        return resolve(config, folder, against)
    return WholeSpec(config, game, algorithm, against)  # type: ignore[arg-type]


def spec_in(folder: Path, values: Mapping[str, object] = NOTHING) -> RunPlan | WholeSpec:
    """Return the specification of a folder's run, with changes to its configuration.

    A key is written like "solver.threads".

    The device is the one on which the run began, unless `values` contain another one.
    """
    if not (folder / CONFIG).is_file():
        return WholeSpec.begun(RunFolder.open(folder), values)
    config = read_config(folder / CONFIG)
    if RunFolder.has_run(folder):
        config = replaced(config, {"solver.device": RunFolder.open(folder).device})
    return resolve(_changed(config, values), folder)


def _changed(config: Config, values: Mapping[str, object]) -> Config:
    """Return a configuration with other values for some keys. Raises RunError for workers without an engine."""
    config = replaced(config, values)
    key = next((key for key, value in values.items() if key.startswith("engine.") and value is not None), None)
    if key and not config.engine.name:
        key, names = key.removeprefix("engine."), ", ".join(ENGINES)
        raise RunError(f"`{key}` in [engine] needs an `engine`: give its `name`, one of {names}")
    return config


def resume(folder: Path, *, budget: Budget | None = None) -> Run:
    """Resume the run in a folder, on the same device as before."""
    return build(spec_in(folder), folder, resumes=True, budget=budget)
