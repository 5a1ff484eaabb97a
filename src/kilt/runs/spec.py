"""Specify runs: which game is solved, by which algorithm, with which limits.

`Spec` is the interface that `build` needs; `WholeSpec` specifies an unabstracted game.

An abstract game is a `kilt.runs.plan.RunPlan`, a subgame a `kilt.spots.run_spec.SpotSpec`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from kilt import gpu
from kilt.config import (
    DEFAULT_MINUTES,
    Config,
    SolverConfig,
)
from kilt.cost import Cost
from kilt.engines import Engine, engine_named
from kilt.errors import RunError
from kilt.evaluate.evaluator import Evaluator, evaluator_for
from kilt.games.game import Game
from kilt.games.tilt import parse_tilt
from kilt.records import replaced
from kilt.runs.budget import Budget
from kilt.runs.folder import RunFolder, RunIdentity, portable_name
from kilt.solve.abstract_methods import SAMPLING_KEYS, first_set
from kilt.solve.counter import Against
from kilt.solve.forms import FittedGame, choose_form
from kilt.solve.problem import CPU, FLAT, VECTOR, FlatProblem, Problem, VectorProblem, precision_of
from kilt.solve.registry import Algorithm, algorithm_of, make_solver
from kilt.solve.solver import Solver, scheduled
from kilt.solve.tables.disk_strategy import DiskProblem
from kilt.solve.variants import Variant

NOTHING: Mapping[str, object] = {}
ABSTRACT_KEYS = ("actions", "near", "agent", "resolve", "counter")  # of a configuration with cards
FIGURE = 60_000  # bytes of the figure of its convergence, and of the log
Tick: TypeAlias = Callable[[str, float], None]  # called with the current step, and the finished share of it


def silent(*_: object) -> None:
    """Accept any arguments and do nothing, as a default for callbacks."""


class Spec(ABC):
    """Base class of specifications: what a run solves, how, and for how long.

    Nothing is built yet.
    """

    schedule: Callable[[int], int] = staticmethod(scheduled)  # the next iteration to measure
    evaluator: Callable[[Problem], Evaluator[Any]] = staticmethod(evaluator_for)  # what evaluates its strategies

    @property
    @abstractmethod
    def device(self) -> str:
        """Return the device for the run, which is "cpu" or "gpu"."""

    @property
    @abstractmethod
    def description(self) -> str:
        """Return the names of the algorithm and the game, for use in messages."""

    @property
    def limits(self) -> Budget | None:
        """Return the configured limits of the run, or None if there are none."""
        return None

    @property
    def budget(self) -> Budget:
        """Return the configured limits of the run, or by default one step of an exact solver or one minute."""
        return self.limits or (Budget(iterations=1) if self.exact else Budget(seconds=60 * DEFAULT_MINUTES))

    @property
    def has_budget(self) -> bool:
        """Return whether the configuration or the algorithm limits the run."""
        return self.exact or self.limits is not None

    @property
    def exact(self) -> bool:
        """Return whether the solver finishes in one step, as linear programming does."""
        return False

    @property
    def given(self) -> str | Game | None:
        """Return the game as the user gave it: a name, a file or an object."""
        return None

    @abstractmethod
    def cost(self) -> Cost:
        """Return the memory, disk space and time of the run.

        Raises RunError if the algorithm cannot solve the game.
        """

    @abstractmethod
    def require_room(self, folder: Path | None) -> Cost:
        """Return the cost of the run. Raises RunError or ArtifactError if memory, GPU or disk do not suffice."""

    def require_new(self, folder: Path) -> None:
        """Raise RunError unless a new run can begin in the given folder."""
        RunFolder.require_new(folder)

    @abstractmethod
    def problem(self, folder: Path | None, tick: Tick, *, resumes: bool) -> Problem:
        """Build the game in the form that its solver needs.

        What takes long to build is stored in the folder.
        """

    @abstractmethod
    def solver(self, problem: Problem) -> Solver:
        """Return a new solver for the game."""

    @abstractmethod
    def identity(self, problem: Problem) -> RunIdentity:
        """Return the settings that determine the run's result, such as game and algorithm.

        They also decide whether a checkpoint can be resumed.
        """

    @property
    def files(self) -> dict[str, str]:
        """Return the text files of a new run, by file name."""
        return {}


@dataclass(frozen=True)
class WholeSpec(Spec):
    """The specification of a run that solves a game without abstraction.

    Parameters
    ----------
    config : Config
        The game, and how it is solved.
    rules : Game, optional
        Custom rules, which replace the game that the configuration names.
    custom : Variant or Algorithm, optional
        A row of discounts for CFR, or a custom algorithm, which replaces the one that the configuration names.
    against : Against, optional
        The opponent that a counter-strategy exploits, with a model for the unabstracted game.
    place : Engine, optional
        The engine, if it is open already. The run closes it.
    form : str, optional
        The form of the game. Default: the form that fits.

    Raises
    ------
    RunError
        If the configuration sets keys that apply only to abstract games.
    """

    config: Config
    rules: Game | None = None
    custom: Variant | Algorithm | None = None
    against: Against | None = None
    place: Engine | None = None
    form: str | None = None

    def __post_init__(self) -> None:
        config, plain = self.config, Config(self.config.game)
        if key := next((key for key in ABSTRACT_KEYS if getattr(config, key) != getattr(plain, key)), None):
            raise RunError(f"`{key}` is about abstract games: give `cards`, such as 'lossless', or leave out `{key}`")
        if key := first_set(config.solver, SAMPLING_KEYS):
            raise RunError(f"`{key}` in [solver] is about abstract games: give `cards`, or leave out `{key}`")

    @classmethod
    def begun(cls, folder: RunFolder, values: Mapping[str, object] = NOTHING) -> WholeSpec:
        """Create an earlier run's specification, with changes to its configuration.

        A counter-strategy keeps its opponent.

        It resumes on the device where it began, and in one thread, unless `values` contain others.
        """
        said = folder.identity
        solver = SolverConfig(algorithm=said.algorithm, seed=said.seed, device=said.device)
        config = replaced(Config(said.game, tilt=parse_tilt(said.tilt), solver=solver), values)
        form = said.form if config.solver.algorithm == said.algorithm else None
        return cls(config, against=folder.against(), form=form)

    @property
    def game(self) -> str | Game:
        """Return the game as the user gave it: a name, a file or an object."""
        return self.rules or self.config.game

    @property
    def algorithm(self) -> str | Variant | Algorithm:
        """Return the algorithm: a name, a row of discounts for CFR, or a custom algorithm."""
        return self.custom or self.config.solver.algorithm

    @property
    def device(self) -> str:
        """Return the device on which the run is solved, "cpu" or "gpu"."""
        return self.config.solver.device

    @property
    def limits(self) -> Budget | None:
        """Return the configured limits of the run, or None if there are none."""
        limits = self.config.solver.limits
        return Budget(*limits) if any(limits) else None

    @property
    def description(self) -> str:
        """Return the names of the algorithm and the game, for use in messages."""
        return f"{self.name} on {self.game if isinstance(self.game, str) else self.game.name}"

    @property
    def name(self) -> str:
        """Return the name of the algorithm, as used in messages and in the run's identity."""
        return self.algorithm if isinstance(self.algorithm, str) else algorithm_of(self.algorithm).what

    @property
    def exact(self) -> bool:
        """Return whether the algorithm finishes after one step, as linear programming does."""
        return algorithm_of(self.algorithm).exact

    given = game

    @cached_property
    def fitted(self) -> FittedGame:
        """Return the game in the first form that the algorithm can solve, such as a flat tree.

        Raises RunError if there is none.
        """
        return self._fitted(unlimited=False)

    def _fitted(self, *, unlimited: bool) -> FittedGame:
        form = self.form
        if self.against and form is None:  # that of the model
            form = VECTOR if self.against.model.counts.ndim == 2 else FLAT
        threads, tilt = self.config.solver.threads, self.config.tilt
        return choose_form(self.game, self.algorithm, form, threads, self.device, tilt, unlimited=unlimited)

    def cost(self) -> Cost:
        """Return the memory, disk space and time of the run, even if the machine has less."""
        cost = self._fitted(unlimited=True).cost
        return cost if self.exact else replace(cost, disk=cost.disk + FIGURE)

    def require_room(self, folder: Path | None) -> Cost:
        """Return the cost of the run, after checking that algorithm, device and engine can solve the game.

        Disk space is checked when the folder is created.
        """
        self._require_engine()
        cost = self.fitted.cost
        if self.device != CPU:
            gpu.require_gpu()
        return cost.require()

    def _require_engine(self) -> None:
        """Raise RunError if the algorithm has no work that workers could share."""
        asked = self.config.engine
        if not asked.name and not self.place:
            if key := first_set(asked, [one.name for one in fields(asked)]):
                raise RunError(f"[engine] sets `{key}` but names no engine: add `name`, or omit `{key}`")
            return
        if self.fitted.form != DiskProblem.form:
            raise RunError(
                f"{self.name} has no subgames on disk for workers to share: use cfr+disk, or leave out the engine"
            )
        if asked.below or asked.batch or asked.boards or asked.samples:
            raise RunError("workers that share subgames on disk have no batch, boards or samples, and none below them")

    def problem(self, folder: Path | None, tick: Tick, *, resumes: bool) -> Problem:
        """Build the game in the form that the algorithm needs.

        It includes the opponent and the workers of the run.
        """
        problem = self.fitted.problem()
        if self.against:
            assert isinstance(problem, FlatProblem | VectorProblem)
            problem = replace(problem, against=self.against)
        asked = self.config.engine
        if isinstance(problem, DiskProblem) and (self.place or asked.name):
            threads = asked.blades * self.config.solver.threads
            place = self.place or engine_named(asked.name, asked.address, threads)
            problem = replace(problem, engine=place, workers=asked.blades)
        return problem

    def solver(self, problem: Problem) -> Solver:
        """Return a new solver for this run's game.

        If that fails, the engine is closed.
        """
        try:
            return make_solver(problem, self.algorithm, self.config.solver.seed)
        except BaseException:
            if isinstance(problem, DiskProblem) and problem.engine:
                problem.engine.close()
            raise

    def identity(self, problem: Problem) -> RunIdentity:
        """Return the settings that determine the run's result, such as the game, the algorithm and the device."""
        solver, percents = self.config.solver, self.config.tilt
        tilt = ",".join(f"{percent:g}" for percent in percents) if any(percents) else ""
        against = f"{self.against.p!r} {self.against.confidence}" if self.against else ""
        identity = RunIdentity(portable_name(self.game), self.name, solver.seed, problem.form, problem.fingerprint)
        return identity._replace(tilt=tilt, against=against, device=self.device, precision=precision_of(problem))
