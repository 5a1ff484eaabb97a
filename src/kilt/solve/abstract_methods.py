"""Solve abstract games: each algorithm's requirements, cost and solver.

`AbstractMethod.cost` computes the cost before anything is built, and `require` refuses what the method does not
support. Methods differ in how they look up the cards of an abstract game: by walks of all boards, by walks of sampled
boards, in tables over pairs of bucket sequences, or deal by deal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, TypeVar

from kilt import artifact, machine
from kilt.abstraction.joint import joint_tables, require_few_buckets
from kilt.config import Config
from kilt.cost import Cost
from kilt.engines import ENGINES, Engine
from kilt.errors import RunError
from kilt.gpu import PINNED
from kilt.records import Record
from kilt.solve.abstract_problem import AbstractProblem, WalkSize
from kilt.solve.counter import Against
from kilt.solve.distributed.partition import head_rounds, require_boards
from kilt.solve.external import (
    Pace,
    measure_speed,
    require_gpu_sampling,
    require_no_compact,
    require_options,
    words_per_action,
)
from kilt.solve.joint import MEMORY
from kilt.solve.methods import Make, Method
from kilt.solve.problem import CPU
from kilt.solve.spec import AbstractSpec
from kilt.solve.tables.disk import PACKED
from kilt.solve.tables.disk_subgames import SIZE, subgames_abreast
from kilt.strategy.model import OpponentModel

S = TypeVar("S", bound=AbstractSpec)

# keys of [solver] that only external sampling reads
SAMPLING_KEYS = ("average", "linear", "prune", "equities", "compact")


@dataclass(frozen=True)
class AbstractMethod(Method, ABC):
    """Base class of methods for abstract games, which create an algorithm's solver and estimate its cost."""

    UNUSED: ClassVar[Sequence[str]] = SAMPLING_KEYS  # keys of [solver] that the method ignores

    answers: bool = field(default=False, kw_only=True)  # whether it computes counter-strategies
    opposed: bool = field(default=False, kw_only=True)  # whether the opponent may have other cards while solving

    @abstractmethod
    def cost(self, spec: AbstractSpec, mapped: int) -> Cost:
        """Return the memory, disk space and time for solving.

        `mapped` is the size in bytes of the card abstractions on disk, which are mapped into memory.
        """

    def with_opponent_model(self, spec: S) -> S:
        """Load the opponent model for a counter-strategy, unless it is loaded already.

        The result is the specification with the model that its configuration names, or the unchanged specification.
        """
        if not self.answers:
            return spec
        asked, against = spec.config.counter, spec.against
        if not asked.model:
            raise RunError(f"{spec.config.solver.algorithm} answers a model of an opponent: give `model` in [counter]")
        if against is None:
            against = Against(OpponentModel.load(asked.model, check=True), asked.p, asked.confidence)
        seen = [one.fingerprint for one in spec.specs]
        cards = seen[0] if len(seen) == 1 else artifact.fingerprint(*seen)
        whole = artifact.fingerprint(str(spec.game.rules), cards, artifact.stable_repr(spec.menu))
        against.model.on(spec.game.name, whole, (sum(spec.size.slots),))
        return replace(spec, against=against)

    def require(self, spec: AbstractSpec) -> None:
        """Raise RunError if the algorithm does not support a configuration's options.

        These are the engine, the options for sampling, and the card abstraction of the opponent.
        """
        require_options(spec.options, spec.game)
        if spec.opponent is not None and not self.opposed:
            raise RunError(
                f"{spec.config.solver.algorithm} solves one game for both players: omit `opponent_cards`, or use "
                "external"
            )
        if spec.config.engine.name:
            raise RunError(
                "blades share the deals of external sampling, or subgames of cfr+disk, not "
                f"{spec.config.solver.algorithm}: omit the engine"
            )

    def require_used(self, config: Config) -> None:
        """Raise RunError if a configuration sets an option that the algorithm would ignore."""
        solver, engine = config.solver, config.engine
        if not engine.name and (key := first_set(engine, [one.name for one in fields(engine)])):
            raise RunError(
                f"[engine] sets `{key}` but names no engine: add `name`, one of {', '.join(ENGINES)}, or omit `{key}`"
            )
        if key := first_set(solver, self.UNUSED):
            raise RunError(
                f"`{key}` in [solver] is {getattr(solver, key)!r}, but {solver.algorithm} does not use it: omit "
                f"`{key}`, or use external"
            )

    def require_device(self, spec: AbstractSpec) -> None:
        """Raise RunError if the algorithm cannot run on the configured device, CPU or GPU."""
        if spec.device == CPU:
            require_no_compact(spec.options)
            return
        raise RunError(
            f"{spec.config.solver.algorithm} on an abstract game runs only on the CPU: omit "
            "`device`, or use external, joint, or cfr-br:2"
        )

    def require_cards(self, spec: AbstractSpec) -> None:
        """Raise AbstractionError if a card abstraction has too many buckets for the algorithm."""

    def require_workers(self, spec: AbstractSpec, engine: Engine) -> None:
        """Raise EngineError if the engine cannot run all workers."""

    def prepare(self, problem: AbstractProblem, tick: Callable[[str, float], None]) -> None:
        """Build the lookup tables that the solver needs, once the card abstractions are built."""

    def measure_pace(self, spec: AbstractSpec) -> Pace | None:
        """Measure the solver's speed in a short trial.

        Returns None if `cost` already includes the time.
        """
        return None

    def recorded_name(self, spec: AbstractSpec) -> str:
        """Return the algorithm's name as runs record it."""
        return spec.config.solver.algorithm


@dataclass(frozen=True)
class WalkMethod(AbstractMethod):
    """Solve abstract games by CFR that visits all boards, or one sampled board, in each iteration."""

    WALKS: ClassVar[int] = 2  # of an iteration

    tables: int = 2
    samples: bool = False

    def cost(self, spec: AbstractSpec, mapped: int) -> Cost:
        """Return the memory, disk space and time for solving with the buckets of all boards in memory."""
        walk, kept = spec.walk, self._kept(spec.walk)
        tables = walk.in_memory.memory + kept + walk.table * (1 if self.samples else spec.config.solver.threads)
        iteration = None if self.samples else self.WALKS * walk.seconds
        return spec.estimate_cost(tables, 2 * kept + spec.table_bytes, mapped, iteration=iteration)

    def _kept(self, walk: WalkSize) -> int:
        """Return the size in bytes of the tables in a checkpoint."""
        return self.tables * walk.table


@dataclass(frozen=True)
class PublicSamplingMethod(WalkMethod):
    """Solve abstract games by CFR with sampled boards.

    If memory is short, the buckets of hands are looked up for one board at a time.
    """

    samples: bool = True

    def cost(self, spec: AbstractSpec, mapped: int) -> Cost:
        """Return the memory, disk space and time for solving with sampled boards.

        If memory cannot hold the buckets of all boards, the cost is that with the buckets of one board.
        """
        walk = spec.walk
        if not walk.samples_boards:
            return super().cost(spec, mapped)
        tables = walk.scratch + 3 * walk.table
        return spec.estimate_cost(tables, 4 * walk.table + spec.table_bytes, mapped)


@dataclass(frozen=True)
class ResponseMethod(WalkMethod):
    """Solve abstract games by CFR-BR, against an opponent who sees all cards and best-responds."""

    WALKS: ClassVar[int] = 4

    tables: int = 3
    trunk: int = 0

    def cost(self, spec: AbstractSpec, mapped: int) -> Cost:
        """Return the memory, disk space and time of CFR-BR, with the opponent's table."""
        walk = spec.walk
        if self.trunk and (spec.device != CPU or walk.must_sample_boards(self.trunk)):
            regrets, responses = walk.sampled_opponent_bytes(self.trunk)
            kept = 2 * walk.table + regrets
            tables = walk.scratch + kept + walk.table + (responses if spec.device == CPU else regrets)
            return spec.estimate_cost(tables, 2 * kept + spec.table_bytes, mapped)
        return super().cost(spec, mapped)

    def _kept(self, walk: WalkSize) -> int:
        return (self.tables - 1) * walk.table + walk.opponent_bytes(self.trunk)

    def require_device(self, spec: AbstractSpec) -> None:
        """Raise RunError if CFR-BR is to run on a GPU against an opponent who best-responds from the first round."""
        if spec.device == CPU or not self.trunk:
            super().require_device(spec)


@dataclass(frozen=True)
class JointMethod(AbstractMethod):
    """Solve abstract games by CFR with a table entry for each pair of the players' bucket sequences.

    It runs on the CPU or on a GPU.
    """

    tables: int = 3

    def cost(self, spec: AbstractSpec, mapped: int) -> Cost:
        """Return the memory, disk space and time for solving with tables of pairs of bucket sequences."""
        kept, pairs, there = 2 * self.tables * spec.table_bytes, 40 * max(map(max, spec.size.buckets)) ** 2, 0
        if spec.device != CPU:
            from kilt.solve.joint_device import MEMORY as AT_ONCE  # imports the GPU library

            there = kept + pairs + min(AT_ONCE, 8 * spec.size.nodes * sum(map(max, spec.size.buckets)))
        tables = pairs + (kept if there else kept + MEMORY)
        return spec.estimate_cost(tables, 2 * kept + spec.table_bytes, mapped, device=there)

    def require_device(self, spec: AbstractSpec) -> None:
        """Raise RunError for a card abstraction with imperfect recall on a GPU."""
        if spec.device == CPU:
            super().require_device(spec)
        elif not all(later.recall for one in spec.specs for later in one.plan.rounds[1:]):
            raise RunError(
                f"{spec.config.solver.algorithm} on a GPU needs cards with perfect recall: use cards such as "
                "PR-KE-KO, or solve on the CPU"
            )

    def require_cards(self, spec: AbstractSpec) -> None:
        """Raise AbstractionError if there are too many buckets for a table of pairs."""
        for numbers in spec.size.buckets:
            require_few_buckets(" and ".join(spec.config.cards), numbers)

    def prepare(self, problem: AbstractProblem, tick: Callable[[str, float], None]) -> None:
        """Compute the probability and payoff of each pair of the players' bucket sequences.

        Large tables are cached on disk for the solver.
        """
        joint_tables(problem.abstract.cards, problem.threads, tick)


@dataclass(frozen=True)
class SamplingMethod(AbstractMethod):
    """Solve abstract games by external-sampling CFR in one process, on a GPU, or on several workers.

    Workers share the game by classes of similar boards.
    """

    UNUSED: ClassVar[Sequence[str]] = ()

    def cost(self, spec: AbstractSpec, mapped: int) -> Cost:
        """Return the memory, disk space and time of external sampling.

        If workers share the work, the memory is that of the head process, and of workers on the same machine.
        """
        asked, tables = spec.config.engine, self._tables(spec)
        found = spec.estimate_cost(tables, 3 * tables, mapped, "`average = false`")
        if spec.device != CPU:
            from kilt.solve.external_device_classes import DeviceNeeds, trunk_and_classes

            apart = trunk_and_classes(spec.specs) if spec.opponent is None else None
            sizes = [game.size for game in spec.made_up_games]
            needs = [DeviceNeeds.estimate(spec.game, spec.menu, size, apart, spec.options, mapped) for size in sizes]
            here = tables if any(one.frames for one in needs) else min(tables, 2 * PINNED)
            there = spec.estimate_cost(here, 3 * tables, mapped, device=sum(one.memory for one in needs))
            return replace(there, parts=(("tables", Cost(tables)),))
        if not asked.name:
            return found
        held = spec.process_memory(asked.levels)
        memory = (
            held.head.memory
            if asked.address
            else held.on_one_machine(one_process=asked.name == "local") - machine.PROCESS
        )
        return replace(found, memory=memory + mapped)

    def _tables(self, spec: AbstractSpec) -> int:
        slots = sum(sum(game.size.slots) for game in spec.made_up_games)
        if spec.device == CPU:
            return 4 * words_per_action(spec.options) * slots
        from kilt.solve.external_device import slot_bytes

        return int(slot_bytes(spec.options) * slots)

    def require(self, spec: AbstractSpec) -> None:
        """Raise RunError if the game has no classes of boards by which workers can divide it."""
        require_options(spec.options, spec.game)
        if spec.config.engine.name:
            if spec.opponent is not None:
                raise RunError(
                    "blades share the deals of one game, and `opponent_cards` make two: omit them, or the engine"
                )
            cards = spec.shared_cards
            head_rounds(cards.plan, cards.deal, len(spec.config.engine.levels))
            require_boards(spec.config.engine, cards.plan, cards.deal)

    def require_device(self, spec: AbstractSpec) -> None:
        """Raise RunError if the game cannot be solved on a GPU.

        The GPU does not support engines, or decisions with many actions.
        """
        if spec.device == CPU:
            super().require_device(spec)
            return
        if spec.config.engine.name:
            raise RunError("blades share deals on CPUs: omit the engine, or solve on the CPU")
        require_gpu_sampling(spec.game, spec.menu, spec.options)

    def require_workers(self, spec: AbstractSpec, engine: Engine) -> None:
        """Raise EngineError if the engine cannot run all workers."""
        from kilt.solve.distributed.solver import require_blades

        require_blades(engine, spec.process_memory(spec.config.engine.levels), spec.config.solver.threads)

    def measure_pace(self, spec: AbstractSpec) -> Pace | None:
        """Measure the speed of external sampling in a short trial on a made-up game of the same size."""
        game = spec.made_up_games[0]
        if spec.device != CPU:
            from kilt.solve.external_device import measure_speed_on_gpu

            found = measure_speed_on_gpu(spec.game, spec.menu, game.buckets, spec.options)
        else:
            found = measure_speed(game, spec.options, spec.config.solver.threads)
        return found._replace(
            iterations=found.iterations / len(spec.made_up_games)
        )  # an iteration has a deal in each game

    def recorded_name(self, spec: AbstractSpec) -> str:
        """Return the algorithm's name as runs record it.

        With workers, it includes the number of their levels.
        """
        if not spec.config.engine.name:
            return super().recorded_name(spec)
        return f"{spec.config.solver.algorithm} in {' of '.join('parts' for _ in spec.config.engine.levels)}"


@dataclass(frozen=True)
class AnswerMethod(SamplingMethod):
    """Compute a counter-strategy to an opponent model by external-sampling CFR.

    It solves a separate game for each seat.
    """

    def _tables(self, spec: AbstractSpec) -> int:
        return 2 * (super()._tables(spec) + spec.table_bytes) + 4 * spec.table_bytes

    def require(self, spec: AbstractSpec) -> None:
        """Raise RunError if an engine is configured, because this algorithm runs in one process."""
        AbstractMethod.require(self, spec)

    def require_device(self, spec: AbstractSpec) -> None:
        """Raise RunError if a GPU is configured."""
        AbstractMethod.require_device(self, spec)


@dataclass(frozen=True)
class BucketDiskMethod(AbstractMethod):
    """Solve abstract games by CFR with the tables of subgames in files on disk.

    One process or several workers update the subgames.
    """

    tables: int = 1

    def cost(self, spec: AbstractSpec, mapped: int) -> Cost:
        """Estimate the memory, disk space and time for solving with subgames on disk.

        The sizes of the subgames are not yet known.
        """
        walk, asked = spec.walk, spec.config.engine
        abreast = subgames_abreast(spec.config.solver.threads)
        maps = min(walk.maps, 2 * walk.maps // walk.boards[min(1, len(walk.boards) - 1)] * abreast)
        tables = walk.scratch + maps + 4 * abreast * self.tables * min(SIZE, walk.table)
        tables *= asked.blades if asked.name and not asked.address else 1
        kept = self.tables * spec.table_bytes // PACKED
        return spec.estimate_cost(tables, kept + spec.table_bytes, mapped, iteration=2 * walk.seconds)

    def require(self, spec: AbstractSpec) -> None:
        """Raise RunError for options that need sampled deals, such as a batch size."""
        require_options(spec.options, spec.game)
        asked = spec.config.engine
        if asked.below or asked.batch or asked.boards or asked.samples:
            raise RunError("workers that share subgames on disk have no batch, boards or samples, and none below them")


def abstract_method(make: Make) -> AbstractMethod:
    """Return an algorithm's method for abstract games.

    A plain function that makes a solver is wrapped in a `WalkMethod`.
    """
    return make if isinstance(make, AbstractMethod) else WalkMethod(make)


def first_set(section: Record, keys: Sequence[str]) -> str | None:
    """Return the first option whose value differs from its default, or None."""
    plain = type(section)()
    return next((key for key in keys if getattr(section, key) != getattr(plain, key)), None)
