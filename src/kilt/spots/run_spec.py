"""What a run on a spot needs to know: the spot, the algorithm, the device, the number of threads and what is stored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kilt import artifact
from kilt.config import SPOT
from kilt.cost import Cost
from kilt.errors import RunError
from kilt.gpu import require_gpu
from kilt.runs.budget import Budget
from kilt.runs.folder import RunFolder, RunIdentity
from kilt.runs.spec import Spec, Tick
from kilt.solve.cfr import Cfr
from kilt.solve.problem import CPU, Problem, VectorProblem, precision_of, require_device
from kilt.solve.registry import make_solver
from kilt.solve.solver import Solver
from kilt.solve.tables.two_bytes import TwoByteGame, TwoByteProblem, TwoByteTables
from kilt.solve.variants import BOUNDED, VARIANTS
from kilt.spots.solving import ALGORITHM, SMALL, TABLES, SpotBudget, SpotEvaluator, cost_of, next_measurement
from kilt.tree.vector import VectorGame

# The variants of CFR that need a table of regrets and one of averages.
SUPPORTED = {name: variant for name, variant in (VARIANTS | BOUNDED).items() if not variant.predictive}


@dataclass(frozen=True)
class SpotSpec(Spec):
    """A spot to solve, with the algorithm, the device and the number of threads.

    Parameters
    ----------
    spot : kilt.spots.spot.Spot
    algorithm : str
    threads : int
        Number of threads, which share the boards to come.
    device : str
        "cpu", or "gpu" for an NVIDIA graphics card.
    stored : bool
        Whether the solution is written to a folder.
    begun : bool
        Whether an earlier run on the spot is resumed. Its locks may contradict each other.
    """

    spot: Any
    algorithm: str = ALGORITHM
    threads: int = 1
    device: str = CPU
    stored: bool = False
    begun: bool = False

    @classmethod
    def of(
        cls,
        spot: Any,
        threads: int = 1,
        device: str | None = None,
        begun: RunFolder | None = None,
        *,
        algorithm: str | None = None,
        stored: bool = False,
    ) -> SpotSpec:
        """Create the specification of a new run, or of an earlier one, which keeps its algorithm and its device.

        Raises RunError if the algorithm, the device and the precision of the spot do not go together.
        """
        usual, where = (begun.identity.algorithm, begun.device) if begun else (ALGORITHM, CPU)
        if begun and algorithm not in (None, usual):
            raise RunError(f"{begun.path} is a run, which has its algorithm: leave out `algorithm`")
        name, device, resumes = algorithm or usual, require_device(device or where), begun is not None
        if name not in SUPPORTED:
            raise RunError(f"the algorithm of a spot is {name!r}: use one of {', '.join(SUPPORTED)}")
        if SUPPORTED[name].inertia and device != CPU:
            raise RunError(f"a GPU does not support {name}: use {ALGORITHM}, or solve the spot on the CPU")
        if spot.compact and not SUPPORTED[name].unsigned:
            raise RunError(f"compact tables hold no negative regrets, which {name} needs: use {ALGORITHM}")
        return cls(spot, name, threads, device, stored or resumes, resumes)

    @property
    def description(self) -> str:
        """A description for messages: the algorithm, the spot and the size of its tree."""
        (first, second), tree, (rows, hands) = self.spot.hands, self.tree.tree, self.tree.shape
        return (
            f"{self.algorithm} on {self.spot.name}: {first} and {second} hands, {len(tree.nodes.kind):,} nodes, "
            f"{(boards := len(tree.weight)):,} board{'s' * (boards > 1)} up to suits, {rows * hands:,} infoset-actions"
        )

    @property
    def budget(self) -> Budget:
        """The run's default limit, which is an exploitability below `TARGET` per cent of the pot."""
        return SpotBudget().with_target_in_chips(self.spot.pot)

    def schedule(self, iteration: int) -> int:
        """Return the next iteration at which exploitability is measured."""
        return next_measurement(iteration)

    @cached_property
    def tree(self) -> VectorGame:
        """The public tree of the spot."""
        tree: VectorGame = self.spot.tree(self.threads, kept=self.begun)
        return tree

    @property
    def compact(self) -> bool:
        """Whether the solver stores each number in two bytes. On the river it never does."""
        return self.spot.compact and len(self.tree.tree.rows) > 1

    def cost(self) -> Cost:
        """Estimate the memory, disk space and time for solving the spot."""
        return cost_of(self.tree, compact=self.compact, kept=self.stored, device=self.device)

    def require_room(self, folder: Path | None) -> Cost:
        """Check that memory, disk space and GPU suffice for the spot, and return the estimated cost.

        For small spots, memory is not checked, since the check takes as long as solving a river.
        """
        if self.device != CPU and self.spot.compact:
            raise RunError(
                "compact tables on a GPU need betting that is the same in all blocks of the last round, which spots do "
                "not have: leave out `compact`, or solve it on the CPU"
            )
        if self.device != CPU:
            require_gpu()
        cost = self.cost()
        return cost.require() if cost.memory > SMALL else cost

    def problem(self, folder: Path | None, tick: Tick, *, resumes: bool) -> Problem:
        """Return the game to solve: the spot's public tree, and its tables' precision."""
        if self.compact:
            return TwoByteProblem(self.tree, TABLES)
        return VectorProblem(self.tree, TABLES, self.device, tables=2)

    def solver(self, problem: Problem) -> Solver:
        """Return a solver for the spot, in the problem's precision."""
        if isinstance(problem, TwoByteProblem):
            assert isinstance(problem.walker, TwoByteGame)
            return Cfr(TwoByteTables(problem.walker), self.algorithm)
        return make_solver(problem, self.algorithm)

    def identity(self, problem: Problem) -> RunIdentity:
        """Return the run's identity: the spot's text, the algorithm, the device and the precision."""
        known, where = artifact.fingerprint(self.spot.toml()), {"device": self.device}
        identity = RunIdentity(self.spot.name, self.algorithm, 0, problem.form, known, **where)
        return identity._replace(precision=precision_of(problem))

    def evaluator(self, problem: Problem) -> SpotEvaluator:
        """Return an object that measures the average strategy's exploitability."""
        assert isinstance(problem, VectorProblem)
        return SpotEvaluator(problem)

    @property
    def files(self) -> dict[str, str]:
        """The files of a new run's folder, with the spot as a TOML file."""
        return {SPOT: self.spot.toml()}
