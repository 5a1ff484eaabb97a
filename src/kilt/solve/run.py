"""The loop that runs every solver: budget, evaluation, log, checkpoints, resume.

`run` steps a solver in chunks of a fraction of a second and measures its strategies at iterations 1, 2, 3, 4, 6, 8, 11,
16, …, each √2 times the one before. Chunks and measurements leave the solver as it is, so that what it finds depends on
its seed and its iterations alone, never on the clock.

>>> problem = load_problem("kuhn")
>>> for step in run(make_solver(problem, "cfr+"), problem, Budget(target=0.01)):
...     print(step.iterations, round(step.exploitability, 3))
1 0.458
2 0.264
3 0.141
4 0.1
6 0.05
8 0.028
11 0.029
16 0.009

With a `RunFolder`, what happens is logged there and the state of the solver kept; a run that was stopped or killed goes
on from its last checkpoint, bit for bit.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import count
from math import exp, inf, isnan, log, nan
from pathlib import Path
from shlex import quote
from time import perf_counter
from typing import BinaryIO, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt import __version__, artifact
from kilt.cards.deck import FloatArray
from kilt.errors import GameError, RunError
from kilt.games import load_game
from kilt.games.bluff import Bluff
from kilt.games.holdem import Holdem
from kilt.games.size import size_of
from kilt.solve import ALGORITHMS
from kilt.solve.solver import Solver
from kilt.strategy.table import Strategy, tree_fingerprint
from kilt.tree.best_response import expected_value, exploitability, uniform
from kilt.tree.flat import MOST_NODES, FlatTree, flat_tree
from kilt.tree.walk_kernels import TIE

OPENSPIEL = "openspiel:"  # before the name of a game that is open_spiel's
LP = "lp"
UNIT = "chips per game"

CHUNK = 0.2  # seconds between two looks at the budget, the progress bar and Ctrl-C
MEASURING = 0.1  # the share of the time that measurements may take, after the first FREE seconds of them
FREE = 1.0
SAVING = 0.02  # the share of the time that checkpoints may take,
OFTEN, RARELY = 1.0, 300.0  # but they are at least so many seconds apart, and at most


class Step(NamedTuple):
    """Where a run stands. Exploitability is nan where no best response can be computed."""

    iterations: int
    seconds: float  # of work, checkpoints and measurements included
    exploitability: float  # of the average strategy, mean over both seats, in chips per game
    current_exploitability: float  # of the strategy of the last iteration
    value: float  # what player 0 wins when both follow the average strategy, in chips per game

    def plain(self) -> dict[str, float | None]:
        """All of it for JSON, which has no nan."""
        return {what: None if isnan(value) else value for what, value in self._asdict().items()}


@dataclass(frozen=True)
class Budget:
    """When to stop: at whichever comes first. All are totals, of a resumed run too."""

    iterations: int | None = None
    seconds: float | None = None
    target: float | None = None  # exploitability of the average strategy, in chips per game

    _UNITS: ClassVar = {"iterations": "iterations", "seconds": "seconds", "target": f"{UNIT} of exploitability"}

    def __post_init__(self) -> None:
        for what, value in asdict(self).items():
            if value is not None and not 0 < value < inf:
                raise RunError(f"the budget is {value:g} {self._UNITS[what]}: give a number above 0")

    def __str__(self) -> str:
        parts = [
            f"{self.iterations:,} iterations" if self.iterations else "",
            f"{self.seconds / 60:g} min" if self.seconds else "",
            f"exploitability {self.target:g}" if self.target else "",
        ]
        return " or ".join(filter(None, parts)) or "no limit"

    def spent(self, iterations: int, seconds: float) -> bool:
        """Whether iterations or time are used up."""
        return iterations >= (self.iterations or inf) or seconds >= (self.seconds or inf)


@dataclass(frozen=True)
class FlatProblem:
    """A game written out as a flat tree, and how to judge strategies for it."""

    tree: FlatTree
    big_blind: float | None = None  # in chips, where the game has one: antes count

    @cached_property
    def fingerprint(self) -> str:
        """A short name for the tree."""
        return tree_fingerprint(self.tree)

    def evaluate(self, strategy: FloatArray) -> tuple[float, float]:
        """Value to player 0 and exploitability (nan where it cannot be computed), in chips per game.

        >>> problem = load_problem("kuhn")
        >>> value, exploitability = problem.evaluate(uniform(problem.tree))
        >>> round(value, 4), round(exploitability, 4)
        (0.125, 0.4583)
        """
        measured = exploitability(self.tree, strategy) if self.tree.aligned else nan
        return expected_value(self.tree, strategy), measured

    def require_measurable(self, budget: Budget) -> None:
        """Raise RunError where the target of a budget cannot be measured."""
        precision = TIE * len(self.tree.infosets)  # best responses take near-equal actions as equal
        if budget.target is not None and not self.tree.aligned:
            raise RunError(
                f"a target of {budget.target:g} cannot be measured: {self.tree.name} has information sets that come at "
                "different depths, and best responses are not supported there; give iterations or minutes instead"
            )
        if budget.target is not None and budget.target < precision:
            raise RunError(
                f"a target of {budget.target:g} {UNIT} cannot be measured: on {self.tree.name}, exploitability is "
                f"known to {precision:.2g}; give a target above that"
            )

    def mbb(self, chips: float) -> float | None:
        """Chips per game as thousandths of a big blind per game."""
        return None if self.big_blind is None else 1000 * chips / self.big_blind


def load_problem(name: str) -> FlatProblem:
    """A game by its name, its file, or ``openspiel:`` and its name in open_spiel."""
    if name.startswith(OPENSPIEL):
        from kilt.tree.openspiel import openspiel_tree

        return FlatProblem(openspiel_tree(name.removeprefix(OPENSPIEL)))
    game = load_game(name)
    rules = game.rules if isinstance(game, Holdem) else None
    counted = rules or (game if isinstance(game, Bluff) else None)
    states = size_of(counted).states.total if counted else 0
    if states > MOST_NODES:  # known before millions of nodes are written out
        raise GameError(
            f"{name} has {Decimal(states):.2e} states; the solvers of `kilt solve` work on flat trees of up to "
            f"{MOST_NODES:,} nodes: solve a smaller game, such as kuhn, leduc, one-card or bluff-1-1 (solvers for "
            "large games, with vectors of hands over the public tree, are to come)"
        )
    return FlatProblem(flat_tree(game), (rules.big_blind or None) if rules else None)


def algorithms() -> dict[str, str]:
    """The names of all algorithms, and what they are."""
    return {name: entry.what for name, entry in ALGORITHMS.items()} | {
        LP: "the sequence-form linear programme: exact, in one step, for small games"
    }


def make_solver(problem: FlatProblem, algorithm: str, seed: int = 0) -> Solver:
    """A solver by the name of its algorithm."""
    if algorithm == LP:
        return _Exact(problem.tree)
    if algorithm not in ALGORITHMS:
        raise RunError(f"unknown algorithm {algorithm!r}: use one of {', '.join(algorithms())}")
    if ALGORITHMS[algorithm].responds and not problem.tree.aligned:
        fitting = [name for name, entry in ALGORITHMS.items() if not entry.responds]
        raise RunError(
            f"{algorithm} takes best responses, and {problem.tree.name} has information sets that come at different "
            f"depths, where they are not supported: use one of {', '.join(fitting)}"
        )
    return ALGORITHMS[algorithm].make(problem.tree.nodes, seed)


class _Exact:
    """The linear programme in the clothes of an iterative solver: it is done after one step."""

    def __init__(self, tree: FlatTree) -> None:
        self.tree = tree
        self.iterations = 0
        self.strategy = uniform(tree)

    def step(self, iterations: int) -> None:
        """Solve the game, once."""
        from kilt.solve.lp import solve_lp

        if not self.iterations:
            self.strategy = solve_lp(self.tree.nodes).strategy
        self.iterations += iterations

    def average(self) -> FloatArray:
        """[slot] the solution."""
        return self.strategy

    current = average

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """The solution."""
        return {"strategy": self.strategy, "iterations": np.array(self.iterations)}

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Take over a solution."""
        self.strategy, self.iterations = np.array(state["strategy"], dtype=np.float64), int(state["iterations"])


class Identity(NamedTuple):
    """What makes a run what it is: runs that share it find the same strategy in the same number of iterations."""

    game: str  # as the user calls it
    algorithm: str
    seed: int
    fingerprint: str  # of the game
    version: str = __version__  # of kilt

    def __str__(self) -> str:
        return (
            f"{self.algorithm} on {self.game} (fingerprint {self.fingerprint}), seed {self.seed}, kilt {self.version}"
        )

    def require(self, wanted: Identity, where: Path) -> None:
        """Raise RunError where what was found is not what is wanted; the names of the games may differ."""
        remedies = {
            "fingerprint": "resume it with the game it was made for",
            "algorithm": f"resume it with --algorithm {self.algorithm}",
            "seed": f"resume it with --seed {self.seed}",
            "version": f"resume it with kilt {self.version}",
        }
        for what, remedy in remedies.items():
            if getattr(self, what) != getattr(wanted, what):
                raise RunError(f"{where} is a run of {self}; this is {wanted}: {remedy}, or start a new run")


@dataclass
class RunFolder:
    """A run on disk: ``run.json``, ``log.jsonl`` with a line per `Step`, ``checkpoint`` and at the end ``strategy``."""

    path: Path
    identity: Identity
    budget: Budget
    _log: BinaryIO | None = field(default=None, init=False)
    _saved: tuple[int, float, float] = field(default=(0, 0.0, 0.0), init=False)  # at iteration and second, in seconds

    @classmethod
    def create(cls, path: Path, identity: Identity, budget: Budget, solver: Solver) -> RunFolder:
        """Begin a run in a new or empty folder, on a disk with room for it."""
        if (path / "run.json").exists():
            raise RunError(
                f"{path} holds a run already, {cls.open(path).identity}: go on with --resume {quote(str(path))}, "
                "or choose another folder"
            )
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            raise RunError(f"{path} is there and is no run of `kilt solve`: choose another folder")
        # While a checkpoint is written there are two of them; a strategy with its names is about as large.
        artifact.require_room(path, 3 * sum(table.nbytes for table in solver.state().values()))
        folder = cls(path, identity, budget)
        folder.describe()
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """A run that was begun before."""
        try:
            said = json.loads((path / "run.json").read_text(encoding="utf-8"))
            identity = Identity._make(said[what] for what in Identity._fields)
            return cls(path, identity, Budget(**said["budget"]))
        except OSError:
            raise RunError(f"{path} is no run of `kilt solve`: it has no run.json that can be read") from None
        except (ValueError, TypeError, KeyError):
            raise RunError(f"{path / 'run.json'} is damaged: start a new run in another folder") from None

    def describe(self) -> None:
        """Write ``run.json``."""
        said = self.identity._asdict() | {"budget": asdict(self.budget)}
        with artifact.os_errors(f"{self.path} cannot be written"):
            self.path.mkdir(parents=True, exist_ok=True)
            artifact.write_text(self.path / "run.json", json.dumps(said, indent=2) + "\n")

    def steps(self) -> list[Step]:
        """What has been logged."""
        file = self.path / "log.jsonl"
        return [step for step, _ in _read_log(file.read_bytes())] if file.exists() else []

    @contextmanager
    def working(self) -> Iterator[None]:
        """Open the log, which `log` and `restore` need; one process at a time may do so."""
        with artifact.os_errors(f"{self.path} cannot be written"), (self.path / "log.jsonl").open("a+b") as self._log:
            if sys.platform != "win32":
                import fcntl

                try:
                    fcntl.flock(self._log, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise RunError(f"another process is at work on {self.path}: wait for it, or stop it") from None
            yield

    def restore(self, solver: Solver, budget: Budget) -> float:
        """Bring a new solver to the last checkpoint, to go on to a budget; the seconds of work so far.

        The log is cut back to before the checkpoint: what follows is measured again.
        """
        assert self._log is not None
        place, seconds = self.path / "checkpoint", 0.0
        if artifact.exists(place):
            found = artifact.read(place, "checkpoint", check=True)
            Identity._make(map(found.parameters.get, Identity._fields)).require(self.identity, place)
            solver.restore(found.arrays)
            seconds = float(found.figures["seconds"])
        self._saved = solver.iterations, seconds, 0.0
        self._log.seek(0)
        kept = [end for step, end in _read_log(self._log.read()) if step.iterations < solver.iterations]
        self._log.truncate(kept[-1] if kept else 0)
        if budget != self.budget:
            self.budget = budget
            self.describe()
        return seconds

    def log(self, step: Step) -> None:
        """Add a line to the log."""
        assert self._log is not None
        self._log.write(json.dumps(step.plain()).encode() + b"\n")
        self._log.flush()

    def save(self, solver: Solver, seconds: float, *, at_once: bool = False) -> None:
        """Write a checkpoint if it is time for one, or `at_once`; never the same one twice."""
        iteration, before, took = self._saved
        wait = 0.0 if at_once else min(max(took / SAVING, OFTEN), RARELY)
        if solver.iterations == iteration or seconds - before < wait:
            return
        began = perf_counter()
        artifact.write(
            self.path / "checkpoint",
            "checkpoint",
            solver.state(),
            inputs={"game": self.identity.fingerprint},
            parameters=self.identity._asdict(),
            figures={"iterations": solver.iterations, "seconds": seconds},
        )
        self._saved = solver.iterations, seconds, perf_counter() - began

    def keep(self, steps: Sequence[Step], solver: Solver, problem: FlatProblem) -> None:
        """Take over a run that had no folder so far."""
        with self.working():
            for step in steps:
                self.log(step)
            self.finish(solver, problem, steps[-1])

    def finish(self, solver: Solver, problem: FlatProblem, step: Step) -> None:
        """Write the last checkpoint, and the average strategy."""
        self.save(solver, step.seconds, at_once=True)
        said = {"algorithm": self.identity.algorithm} | step.plain()
        Strategy.of(problem.tree, solver.average(), **said).save(self.path / "strategy")


def _read_log(lines: bytes) -> Iterator[tuple[Step, int]]:
    """Every step of a log, and where its line ends, up to a line that was cut short."""
    end = 0
    for line in lines.splitlines(keepends=True):
        end += len(line)
        try:
            said = json.loads(line)
            step = Step._make(nan if said[what] is None else said[what] for what in Step._fields)
        except (ValueError, KeyError, TypeError):
            return
        yield step, end


def run(
    solver: Solver,
    problem: FlatProblem,
    budget: Budget,
    *,
    folder: RunFolder | None = None,
    stop: Callable[[], bool] = lambda: False,
    tick: Callable[[int, float], None] = lambda iterations, seconds: None,
) -> Iterator[Step]:
    """Run a new solver until the budget is spent or `stop` says so, from the last checkpoint of `folder` if it has one.

    The last `Step` is that of the end, the others are those of the schedule. `tick` hears of the iterations and seconds
    so far several times a second.
    """
    problem.require_measurable(budget)
    with folder.working() if folder else nullcontext():
        began = perf_counter() - (folder.restore(solver, budget) if folder else 0.0)
        measured, cost, pace = 0, inf, inf  # measurements, seconds for each, seconds per iteration
        while True:
            now, seconds = solver.iterations, perf_counter() - began
            over = stop() or budget.spent(now, seconds)
            if folder:
                folder.save(solver, seconds, at_once=over)
            # With a target every measurement of the schedule counts: without them the run would stop elsewhere.
            affordable = measured < 2 or (measured + 1) * cost <= max(FREE, MEASURING * seconds)
            if over or (now == _scheduled(now) and (budget.target is not None or affordable)):
                before = perf_counter()
                value, average = problem.evaluate(solver.average())
                current = problem.evaluate(solver.current())[1]
                after = perf_counter()
                measured, cost = measured + 1, min(cost, after - before)  # the first ones may include compilation
                step = Step(now, after - began, average, current, value)
                if folder:
                    folder.log(step)
                yield step
                if over or (budget.target is not None and average <= budget.target):
                    break
            ahead = min(_scheduled(now + 1), budget.iterations or sys.maxsize) - now
            chunk = max(1, min(ahead, int(CHUNK / pace)))
            before = perf_counter()
            solver.step(chunk)
            pace = max(perf_counter() - before, 1e-6) / chunk
            tick(solver.iterations, perf_counter() - began)
        if folder:
            folder.finish(solver, problem, step)


def _scheduled(iteration: int) -> int:
    """The first iteration of the schedule that is not before this one.

    >>> [_scheduled(iteration) for iteration in (0, 1, 2, 5, 9, 12)]
    [1, 1, 2, 6, 11, 16]
    """
    root = max(0, int(2 * log(max(iteration, 1), 2)) - 1)
    return next(point for k in count(root) if (point := round(2 ** (k / 2))) >= iteration)


def time_left(budget: Budget, steps: Sequence[Step], iterations: int, seconds: float) -> float | None:
    """How many seconds a run will go on, if it goes on like this; None where nobody knows.

    Exploitability is taken to fall by a power of the iterations, as it has lately.

    >>> steps = [Step(100, 1.0, 0.4, 0.4, 0.0), Step(141, 1.4, 0.3, 0.3, 0.0), Step(200, 2.0, 0.2, 0.2, 0.0)]
    >>> [round(time_left(budget, steps, 200, 2.0), 6) for budget in (Budget(iterations=800), Budget(target=0.05))]
    [6.0, 6.0]
    """
    guesses = []
    pace = seconds / max(iterations, 1)
    if budget.seconds:
        guesses.append(budget.seconds - seconds)
    if budget.iterations and iterations:
        guesses.append((budget.iterations - iterations) * pace)
    if budget.target and len(steps) > 2 and steps[-1].exploitability < steps[-3].exploitability:
        first, last = steps[-3], steps[-1]
        power = log(first.exploitability / last.exploitability) / log(last.iterations / first.iterations)
        wanted = log(last.iterations) + log(last.exploitability / budget.target) / power
        if wanted < 60:
            guesses.append((exp(wanted) - iterations) * pace)
    return max(min(guesses), 0.0) if guesses else None
