"""How algorithms solve abstract games: what a run takes, what it refuses, and how its solver is made.

Each method answers for itself: `AbstractMethod.cost` counts before anything is built, `require` refuses what the method
has no way for. The cards of an abstract game are looked up by walks of all boards, by walks of drawn boards, in tables
over pairs of bucket sequences, or deal by deal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, TypeVar

from kilt import artifact, machine
from kilt.abstraction.joint import joint_tables, require_few
from kilt.config import Config
from kilt.cost import Cost
from kilt.engines import ENGINES, Engine
from kilt.errors import RunError
from kilt.gpu import PINNED
from kilt.records import Record
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.counter import Against
from kilt.solve.distributed.partition import require_boards, trunk_of
from kilt.solve.external import Pace, probe, require_options, require_sampled_there, require_wide
from kilt.solve.joint import MEMORY
from kilt.solve.methods import Make, Method
from kilt.solve.problem import CPU
from kilt.solve.spec import AbstractSpec
from kilt.solve.tables.disk import PACKED
from kilt.solve.tables.disk_subgames import SIZE, subgames_abreast
from kilt.strategy.model import OpponentModel

S = TypeVar("S", bound=AbstractSpec)

SAMPLING_KEYS = ("average", "linear", "prune", "equities", "compact")  # of [solver]: external sampling alone reads them


@dataclass(frozen=True)
class AbstractMethod(Method, ABC):
    """An algorithm on abstract games, in this process and on the CPU."""

    UNUSED: ClassVar[Sequence[str]] = SAMPLING_KEYS  # keys of [solver] that it does not read

    answers: bool = field(default=False, kw_only=True)  # whether it answers a model of an opponent

    @abstractmethod
    def cost(self, spec: AbstractSpec, mapped: int) -> Cost:
        """What solving takes, with `mapped` bytes of cards, which need not fit."""

    def complete(self, spec: S) -> S:
        """The spec with the opponent that it answers, if it does; what does not fit is found out at once."""
        if not self.answers:
            return spec
        asked = spec.config.counter
        if not asked.model:
            raise RunError(f"{spec.config.solver.algorithm} answers a model of an opponent: give `model` in [counter]")
        against = Against(OpponentModel.load(asked.model, check=True), asked.p, asked.confidence)
        seen = [one.fingerprint for one in spec.specs]
        cards = seen[0] if len(seen) == 1 else artifact.fingerprint(*seen)
        whole = artifact.fingerprint(str(spec.game.rules), cards, artifact.spelled(spec.menu))
        against.model.on(spec.game.name, whole, (sum(spec.size.slots),))
        return replace(spec, against=against)

    def require(self, spec: AbstractSpec) -> None:
        """Raise RunError if it does not solve a game with the engine of its configuration."""
        require_options(spec.options, spec.game)
        if spec.config.engine.name:
            raise RunError(
                "blades share the deals of external sampling, or subgames of cfr+disk, not "
                f"{spec.config.solver.algorithm}: leave out the engine"
            )

    def require_used(self, config: Config) -> None:
        """Raise RunError if a configuration sets a key that the method does not read."""
        solver, engine = config.solver, config.engine
        if not engine.name and (key := first_set(engine, [one.name for one in fields(engine)])):
            raise RunError(
                f"[engine] sets `{key}` and names no engine: add `name`, one of {', '.join(ENGINES)}, or leave out "
                f"`{key}`"
            )
        if key := first_set(solver, self.UNUSED):
            raise RunError(
                f"`{key}` in [solver] is {getattr(solver, key)!r}, and {solver.algorithm} does not use it: leave out "
                f"`{key}`, or use external"
            )

    def require_device(self, spec: AbstractSpec) -> None:
        """Raise RunError if it does not walk on the device of the configuration."""
        if spec.device == CPU:
            require_wide(spec.options)
            return
        raise RunError(
            f"{spec.config.solver.algorithm} on an abstract game runs on the CPU alone: leave out "
            "`device`, or use external, joint, or cfr-br:2"
        )

    def require_cards(self, spec: AbstractSpec) -> None:
        """Raise AbstractionError if the cards have more buckets than it takes."""

    def require_workers(self, spec: AbstractSpec, engine: Engine) -> None:
        """Raise EngineError if an engine has no room for its workers, as far as that is known before the cards are."""

    def prepare(self, problem: AbstractProblem, tick: Callable[[str, float], None]) -> None:
        """Build what the solver looks up, once the cards are there."""

    def pace(self, spec: AbstractSpec) -> Pace | None:
        """How quickly it goes, tried for some seconds; None if `cost` tells."""
        return None

    def called(self, spec: AbstractSpec) -> str:
        """The algorithm, as the identity of a run has it."""
        return spec.config.solver.algorithm


@dataclass(frozen=True)
class WalkMethod(AbstractMethod):
    """Walks of all boards, with players who see buckets; or of a board that is drawn for each iteration."""

    tables: int = 2
    samples: bool = False

    def cost(self, spec: AbstractSpec, mapped: int) -> Cost:
        """The buckets of all boards, and tables over rows × buckets."""
        return self._walked(spec, mapped, self.tables * spec.walk.table, 2)

    def _walked(self, spec: AbstractSpec, mapped: int, kept: int, walks: int) -> Cost:
        walk = spec.walk
        tables = walk.whole.memory + kept + walk.table * (1 if self.samples else spec.config.solver.threads)
        iteration = None if self.samples else walks * walk.seconds
        return spec.takes(tables, 2 * kept + spec.slots, mapped, iteration=iteration)


@dataclass(frozen=True)
class PublicSamplingMethod(WalkMethod):
    """Public chance sampling: it looks up the boards that it draws alone where memory does not hold all of them."""

    samples: bool = True

    def cost(self, spec: AbstractSpec, mapped: int) -> Cost:
        """Without the buckets of all boards where they would not fit."""
        walk = spec.walk
        if not walk.samples_drawn:
            return super().cost(spec, mapped)
        tables = walk.scratch + 3 * walk.table
        return spec.takes(tables, 4 * walk.table + spec.slots, mapped)


@dataclass(frozen=True)
class ResponseMethod(WalkMethod):
    """CFR-BR: an opponent who sees all cards learns in a trunk of some rounds, and responds after them."""

    tables: int = 3
    trunk: int = 0

    def cost(self, spec: AbstractSpec, mapped: int) -> Cost:
        """With the opponent's table; or with what is drawn alone where the buckets of all boards would be too many."""
        walk = spec.walk
        if self.trunk and (spec.device != CPU or walk.draws(self.trunk)):
            regrets, responses = walk.drawn(self.trunk)
            kept = 2 * walk.table + regrets
            tables = walk.scratch + kept + walk.table + (responses if spec.device == CPU else regrets)
            return spec.takes(tables, 2 * kept + spec.slots, mapped)
        return self._walked(spec, mapped, (self.tables - 1) * walk.table + walk.opponent(self.trunk), 4)

    def require_device(self, spec: AbstractSpec) -> None:
        """Raise RunError on a GPU without a trunk."""
        if spec.device == CPU or not self.trunk:
            super().require_device(spec)


@dataclass(frozen=True)
class JointMethod(AbstractMethod):
    """Tables over pairs of bucket sequences, here or on a GPU."""

    tables: int = 3

    def cost(self, spec: AbstractSpec, mapped: int) -> Cost:
        """The joint tables, and those of the solver; on a GPU these are there."""
        kept, pairs, there = 2 * self.tables * spec.slots, 40 * max(map(max, spec.size.buckets)) ** 2, 0
        if spec.device != CPU:
            from kilt.solve.joint_device import MEMORY as AT_ONCE  # imports the GPU library

            there = kept + pairs + min(AT_ONCE, 8 * spec.size.nodes * sum(map(max, spec.size.buckets)))
        tables = pairs + (kept if there else kept + MEMORY)
        return spec.takes(tables, 2 * kept + spec.slots, mapped, device=there)

    def require_device(self, spec: AbstractSpec) -> None:
        """Raise RunError on a GPU if a player forgets buckets."""
        if spec.device == CPU:
            super().require_device(spec)
        elif not all(later.recall for one in spec.specs for later in one.plan.rounds[1:]):
            raise RunError(
                f"{spec.config.solver.algorithm} on a GPU is for cards with perfect recall: use cards such as "
                "PR-KE-KO, or solve on the CPU"
            )

    def require_cards(self, spec: AbstractSpec) -> None:
        """Raise AbstractionError if there are too many buckets for tables over pairs of them."""
        for numbers in spec.size.buckets:
            require_few(" and ".join(spec.config.cards), numbers)

    def prepare(self, problem: AbstractProblem, tick: Callable[[str, float], None]) -> None:
        """Build the joint tables: large ones are kept, and found there by the solver."""
        joint_tables(problem.abstract.cards, problem.threads, tick)


@dataclass(frozen=True)
class SamplingMethod(AbstractMethod):
    """External sampling: here, on a GPU, or by blades that share the classes of boards."""

    UNUSED: ClassVar[Sequence[str]] = ()

    def cost(self, spec: AbstractSpec, mapped: int) -> Cost:
        """A regret for each slot, and a count where an average is kept; or what the head and its blades hold."""
        asked, tables = spec.config.engine, self._tables(spec)
        found = spec.takes(tables, 3 * tables, mapped, "`average = false`")
        if spec.device != CPU:
            from kilt.solve.external_device_classes import DeviceNeeds, apart_of

            apart = apart_of(spec.specs)
            needs = DeviceNeeds.of(spec.game, spec.menu, spec.size, apart, spec.options, mapped)
            here = tables if needs.frames else min(tables, 2 * PINNED)
            there = spec.takes(here, 3 * tables, mapped, device=needs.memory)
            return replace(there, parts=(("tables", Cost(tables)),))
        if not asked.name:
            return found
        held = spec.parts(asked.levels)
        memory = held.head.memory if asked.address else held.here(one_process=asked.name == "local") - machine.PROCESS
        return replace(found, memory=memory + mapped)

    def _tables(self, spec: AbstractSpec) -> int:
        return spec.slots * (2 if spec.config.solver.average else 1)

    def require(self, spec: AbstractSpec) -> None:
        """Raise RunError if blades cannot share its cards."""
        require_options(spec.options, spec.game)
        if spec.config.engine.name:
            cards = spec.shared_cards
            trunk_of(cards.plan, cards.deal, len(spec.config.engine.levels))
            require_boards(spec.config.engine, cards.plan, cards.deal)

    def require_device(self, spec: AbstractSpec) -> None:
        """Raise RunError on a GPU with an engine, or with a decision of too many actions."""
        if spec.device == CPU:
            super().require_device(spec)
            return
        if spec.config.engine.name:
            raise RunError("blades share deals on CPUs: leave out the engine, or solve on the CPU")
        require_sampled_there(spec.game, spec.menu, spec.options)

    def require_workers(self, spec: AbstractSpec, engine: Engine) -> None:
        """Raise EngineError if the engine has no room for all blades."""
        from kilt.solve.distributed.solver import look_for_blades

        look_for_blades(engine, spec.parts(spec.config.engine.levels), spec.config.solver.threads)

    def pace(self, spec: AbstractSpec) -> Pace | None:
        """How quickly it goes, from a walk of some seconds with synthetic buckets."""
        if spec.device != CPU:
            from kilt.solve.external_device import probe_there

            return probe_there(spec.game, spec.menu, spec.size.buckets, spec.options)
        return probe(spec.synthetic, spec.options, spec.config.solver.threads)

    def called(self, spec: AbstractSpec) -> str:
        """With the levels of blades."""
        if not spec.config.engine.name:
            return super().called(spec)
        return f"{spec.config.solver.algorithm} in {' of '.join('parts' for _ in spec.config.engine.levels)}"


@dataclass(frozen=True)
class AnswerMethod(SamplingMethod):
    """An answer to a model by external sampling: a table and a fixed strategy for each seat, and the model."""

    def _tables(self, spec: AbstractSpec) -> int:
        return 2 * (super()._tables(spec) + spec.slots) + 4 * spec.slots

    def require(self, spec: AbstractSpec) -> None:
        """Raise RunError with an engine."""
        AbstractMethod.require(self, spec)

    def require_device(self, spec: AbstractSpec) -> None:
        """Raise RunError on a GPU."""
        AbstractMethod.require_device(self, spec)


@dataclass(frozen=True)
class BucketDiskMethod(AbstractMethod):
    """Subgames on disk, here or on the disks of workers."""

    tables: int = 1

    def cost(self, spec: AbstractSpec, mapped: int) -> Cost:
        """As if subgames were of the size that is aimed at: which they are is known with the cards."""
        walk, asked = spec.walk, spec.config.engine
        abreast = subgames_abreast(spec.config.solver.threads)
        maps = min(walk.maps, 2 * walk.maps // walk.boards[min(1, len(walk.boards) - 1)] * abreast)
        tables = walk.scratch + maps + 4 * abreast * self.tables * min(SIZE, walk.table)
        tables *= asked.blades if asked.name and not asked.address else 1
        kept = self.tables * spec.slots // PACKED
        return spec.takes(tables, kept + spec.slots, mapped, iteration=2 * walk.seconds)

    def require(self, spec: AbstractSpec) -> None:
        """Raise RunError if the engine has keys that are about deals."""
        require_options(spec.options, spec.game)
        asked = spec.config.engine
        if asked.below or asked.batch or asked.boards or asked.samples:
            raise RunError("workers that share subgames on disk have no batch, boards or samples, and none below them")


def abstract_method(make: Make) -> AbstractMethod:
    """The method that makes solvers of abstract games; a plain function of an algorithm of one's own gets walks."""
    return make if isinstance(make, AbstractMethod) else WalkMethod(make)


def first_set(section: Record, keys: Sequence[str]) -> str | None:
    """The first of some keys whose value is not the default; None if all have their defaults."""
    plain = type(section)()
    return next((key for key in keys if getattr(section, key) != getattr(plain, key)), None)
