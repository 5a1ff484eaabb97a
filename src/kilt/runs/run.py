"""A run solves a game with a solver and a budget, and stores the results in a folder.

`kilt.runs.build.build` makes runs. To solve, iterate over a run; it yields one measurement after another:

>>> from kilt.runs.build import build, spec_of
>>> run = build(spec_of("kuhn"), budget=Budget(iterations=100))
>>> for step in run:
...     last = step
>>> last.iterations, last.exploitability < 0.01
(100, True)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kilt import artifact
from kilt.arrays import Array
from kilt.compiling import clock
from kilt.config import Config, read_config
from kilt.errors import GameError, RunError
from kilt.evaluate.evaluator import Evaluator
from kilt.games import load_game
from kilt.games.game import Game
from kilt.play.strategy_agent import StrategyAgent
from kilt.play.tree_agent import TreeAgent
from kilt.records import replaced
from kilt.runs.budget import Budget, Step
from kilt.runs.figures import RunFigures
from kilt.runs.folder import CONFIG, RunFolder, RunIdentity, disk_space_for
from kilt.runs.loop import run as run_solver
from kilt.runs.plan import resolve, with_built_cards
from kilt.runs.solved import agent_for_strategy, strategy_from_table
from kilt.runs.spec import Spec, silent
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.forms import OPENSPIEL, load_problem, stored_form
from kilt.solve.problem import (
    ABSTRACT,
    CPU,
    VECTOR,
    FlatProblem,
    Problem,
    big_blind_of,
)
from kilt.solve.solver import Solver, scheduled, with_workers
from kilt.strategy.blueprint import STRATEGY
from kilt.strategy.naming import solved_name
from kilt.strategy.table import Strategy
from kilt.strategy.vector import VectorStrategy


@dataclass
class Run(RunFigures):
    """A run that solves a game. Iterate over it to start or resume the work.

    Attributes
    ----------
    problem : Problem
        The game in the form that its solver works on.
    solver : Solver
    identity : RunIdentity
        The identity of the run: game, algorithm, seed, form, fingerprint, version.
    budget : Budget
        The limits of the run.
    evaluator : Evaluator
        Evaluates the strategies of the run.
    spec : Spec
        What is solved and how, as `build` was told.
    folder : RunFolder or None
        Folder with log, checkpoints and strategy; None if nothing is stored.
    schedule : callable
        Maps a number of iterations to the next iteration to measure.
    clock : callable
        Returns the seconds that the budget counts, from any moment on. Default: `kilt.compiling.clock`, wall time.
    """

    problem: Problem
    solver: Solver
    identity: RunIdentity
    budget: Budget
    evaluator: Evaluator[Any]
    spec: Spec
    folder: RunFolder | None = None
    schedule: Callable[[int], int] = scheduled
    clock: Callable[[], float] = clock
    _measured: list[Step] = field(init=False, default_factory=list)
    _average: tuple[int, Array] | None = field(
        init=False, default=None
    )  # number of iterations, and the average strategy then

    def __repr__(self) -> str:
        """Return the game, the solver, the folder, and how good the strategy is."""
        folder = f", folder={str(self.folder.path)!r}" if self.folder else ""
        if not self.steps:
            return f"Run({self.problem.name!r}, {self.identity.algorithm!r}{folder}, not begun)"
        return (
            f"Run({self.problem.name!r}, {self.identity.algorithm!r}{folder}, {self.solved}: exploitability "
            f"{self.exploitability:.6g} chips per game, value {self.value:.6g}, {self.iterations:,} iterations)"
        )

    @property
    def judge(self) -> Evaluator[Any]:
        """The old name of `evaluator`, from kilt 0.1.

        This name is removed in kilt 0.3.
        """
        warnings.warn("Run.judge is now Run.evaluator; the old name is removed in kilt 0.3", DeprecationWarning, 2)
        return self.evaluator

    @property
    def game(self) -> str | Game | None:
        """Return the game as the caller gave it, or None if it is abstract or a spot."""
        return self.spec.given

    @property
    def title(self) -> str:
        """Return the names of the game and the algorithm, as a title for reports."""
        return f"{self.problem.name}, {self.identity.algorithm}"

    @property
    def steps(self) -> tuple[Step, ...]:
        """Return the run's measurements in order; the last one was taken at the end."""
        return tuple(self.folder.steps() if self.folder else self._measured)

    @property
    def solved(self) -> str:
        """Name the strategy behind the results: the average strategy or the last iterate."""
        return solved_name(self.identity._asdict())

    @property
    def exploitability_mbb(self) -> float | None:
        """Return the exploitability in thousandths of a big blind per game, or None if the game has no big blind."""
        return self.exploitability.mbb

    def mbb(self, chips: float) -> float | None:
        """Convert chips to thousandths of a big blind, or return None if the game has no big blind."""
        return self.problem.mbb(chips)

    @property
    def infosets(self) -> tuple[str, ...]:
        """Return the names of all information sets of a small game.

        Games that are not stored as flat trees have no such names.
        """
        return self.problem.tree.infosets if isinstance(self.problem, FlatProblem) else ()

    @property
    def table(self) -> Array:
        """Return the average strategy so far, as an array in the solver's layout."""
        done = self.solver.iterations
        if self._average is None or self._average[0] != done:
            self._average = done, self.solver.average()
        return self._average[1]

    @property
    def strategy(self) -> Strategy | VectorStrategy:
        """Return the average strategy: by information set in small games, by hand in others."""
        return strategy_from_table(self.problem, self.table)

    @property
    def agent(self) -> StrategyAgent | TreeAgent:
        """Return the agent that plays this run's strategy.

        Raises PlayError if the game is abstract, or not poker.
        """
        return agent_for_strategy(self.problem, self.table, self.game)

    def __getitem__(self, infoset: str) -> dict[str, float]:
        """Return the probability of each action at a named information set of a small game."""
        strategy = self.strategy
        if not isinstance(strategy, Strategy):
            raise GameError(
                f"{self.problem.name} was solved with vectors of hands, without names: use `strategy.table`"
            )
        return strategy[infoset]

    def solving(
        self,
        *,
        stop: Callable[[], bool] = lambda: False,
        tick: Callable[[int, float], None] = silent,
        warn: Callable[[str], None] = silent,
    ) -> Iterator[Step]:
        """Solve the game, and yield each measurement.

        The last measurement is taken at the end.

        Parameters
        ----------
        stop : callable
            Called several times a second; True stops the run, which can be resumed later.
        tick : callable
            Called several times a second with the iterations and seconds so far.
        warn : callable
            Called with a message if a part of the solver was lost and is recovered.
        """
        loop = run_solver(
            self.solver,
            self.evaluator,
            self.budget,
            folder=self.folder,
            stop=stop,
            tick=tick,
            warn=warn,
            schedule=self.schedule,
            clock=self.clock,
        )
        workers = with_workers(self.solver)
        with closing(workers) if workers else nullcontext():
            for step in loop:
                self._measured.append(step)
                yield step

    def __iter__(self) -> Iterator[Step]:
        return self.solving()

    def finish(self) -> Step:
        """Solve the game until the budget is spent, and return the last measurement."""
        *_, last = self.solving()
        return last

    @property
    def spent(self) -> bool:
        """Return whether the run's budget was already spent when its folder was opened."""
        done = self.folder.steps() if self.folder else []
        return any(self.budget.spent(step.iterations, step.seconds) for step in done)

    @property
    def ended(self) -> bool:
        """Return whether the run is finished, with its budget spent and its strategy stored."""
        return self.spent and self.folder is not None and artifact.exists(self.folder.path / STRATEGY)

    def keep(self, folder: Path, steps: list[Step]) -> RunFolder:
        """Create a folder for this run, and write the run to it."""
        begun = self.begin(folder)
        begun.keep(steps, self.solver, self.evaluator.problem)
        return begun

    def begin(self, folder: Path) -> RunFolder:
        """Create the run's folder and files.

        It contains the opponent model if the run computes a counter-strategy in a game without abstraction.
        """
        model = self.problem.against.model if self.problem.against else None
        self.folder = RunFolder.create(folder, self.identity, self.budget, disk_space_for(self.solver), model)
        for name, text in self.spec.files.items():
            artifact.write_text(folder / name, text)
        return self.folder


@dataclass(frozen=True)
class StoredRun(RunFigures):
    """A finished run, opened from its folder with its strategy and results.

    The function `open_run` makes it.
    """

    path: Path
    game: str  # the path that the user gave
    algorithm: str = ""

    def load(self, threads: int = 1, device: str = CPU) -> tuple[Problem, Array, dict[str, Any]]:
        """Load the run's game, strategy and results from its folder."""
        stored = self.path / STRATEGY
        form = stored_form(stored)
        problem: Problem
        if device != CPU and form not in (VECTOR, ABSTRACT):
            raise RunError(f"{self.path} is in {form} form, and walks on a GPU take vectors of hands: use the CPU")
        if form == ABSTRACT:
            problem = self._abstract(threads)
        else:
            problem = load_problem(self.game, form=form, threads=threads, device=device)
        return problem, *problem.load(stored)

    def _abstract(self, threads: int) -> AbstractProblem:
        config = with_built_cards(read_config(self.path / CONFIG), self.path)
        config = replaced(config, {"solver.threads": threads, "solver.device": CPU})
        return resolve(config, self.path).build(self.path)

    @property
    def title(self) -> str:
        """Return the names of the game and the algorithm, as a title for reports."""
        return f"{self.game}, {self.algorithm}"

    @property
    def solved(self) -> str:
        """Name the stored strategy: the average strategy or the last iterate."""
        return solved_name({"algorithm": self.algorithm})

    def mbb(self, chips: float) -> float | None:
        """Convert chips to thousandths of a big blind, if the game has one.

        Returns None if the game has no big blind, or if the file with its rules is missing.
        """
        game = self.config.game if self.config else self.game
        with suppress(GameError):
            blind = None if game.startswith(OPENSPIEL) else big_blind_of(load_game(game))
            return None if blind is None else 1000 * chips / blind
        return None

    @property
    def steps(self) -> tuple[Step, ...]:
        """Return the measurements in the run's log."""
        return tuple(RunFolder.open(self.path).steps())

    @property
    def config(self) -> Config | None:
        """Return the run's configuration, or None if its game is not abstract."""
        return read_config(self.path / CONFIG) if (self.path / CONFIG).is_file() else None


def open_run(path: str | Path) -> StoredRun:
    """Open a finished run to evaluate or play its strategy.

    Parameters
    ----------
    path : str or Path
        Folder of a run by `kilt solve --out RUN` or a `Run`.
    """
    path = Path(path)
    folder = RunFolder.open(path)
    if not artifact.exists(path / STRATEGY):
        raise RunError(f"{path} has not come to its end and has no strategy yet: resume it")
    return StoredRun(path, folder.identity.game, folder.identity.algorithm)
