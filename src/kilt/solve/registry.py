"""All algorithms by name, with their solvers.

>>> ALGORITHMS["cfr+"].forms, ALGORITHMS["external"].forms
(('flat', 'vector', 'abstract'), ('flat', 'abstract'))
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from kilt.engines import engine_named
from kilt.errors import RunError
from kilt.solve.abstract_methods import (
    AbstractMethod,
    AnswerMethod,
    BucketDiskMethod,
    JointMethod,
    PublicSamplingMethod,
    ResponseMethod,
    SamplingMethod,
    WalkMethod,
    abstract_method,
)
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.cfr import Cfr
from kilt.solve.external import ExternalMCCFR
from kilt.solve.lp import SequenceFormLP
from kilt.solve.methods import WHOLE, DiskMethod, FlatMethod, Make, VectorMethod, WholeMethod, whole_method
from kilt.solve.opponents import RESPONSE, SCHEMES, Opponent
from kilt.solve.problem import ABSTRACT, CPU, DISK, FLAT, FORMS, VECTOR, FlatProblem, Problem, VectorProblem
from kilt.solve.sampled import FlatMCCFR
from kilt.solve.seats import SeatSolver
from kilt.solve.solver import Solver
from kilt.solve.tables.disk import DiskTables
from kilt.solve.tables.disk_buckets import BucketedSubgames, SubgameShares
from kilt.solve.tables.disk_strategy import DiskProblem
from kilt.solve.tables.drawn import SampledBoardTables
from kilt.solve.tables.flat import FlatTables
from kilt.solve.tables.memory import TreeTables
from kilt.solve.tables.pairs import PairTables
from kilt.solve.tables.two_bytes import TwoByteGame, TwoByteProblem, TwoByteTables
from kilt.solve.variants import HORIZON, STEADY, VARIANTS, Variant, variant_named
from kilt.tree.walks import FULL_WIDTH

EXTERNAL, JOINT, DEFAULT_BASE = "external", "joint", "cfr+"
UNSIGNED = tuple(name for name, row in VARIANTS.items() if row.unsigned)
_LEARNING = tuple(name for name, row in VARIANTS.items() if not row.predictive)
COUNTER_BASES = (*_LEARNING, EXTERNAL, JOINT, *(f"{JOINT}:{name}" for name in _LEARNING))  # of counter-strategies


class Algorithm(NamedTuple):
    """An algorithm in the list of all algorithms: its description, and the solvers that it creates.

    There is one function for each representation of games. Each takes a problem and a random seed. A `Method` is such a
    function that also knows which games it can solve, and what that costs.
    """

    what: str
    make: Mapping[str, Make]  # by form
    exact: bool = False  # whether it finishes in one step, like a linear programme

    @property
    def forms(self) -> tuple[str, ...]:
        """The game representations that the algorithm supports, such as "flat" and "abstract".

        Those for small games come first.
        """
        return tuple(form for form in FORMS if form in self.make)

    @property
    def threads(self) -> bool:
        """Whether several threads can share an iteration, in games without abstraction."""
        return self.supports(2)

    def supports(self, threads: int = 1, device: str = CPU) -> bool:
        """Return whether the algorithm supports a device and a number of threads, without abstraction."""
        return any(method.supports(threads, device) for method in self.whole.values())

    def shares(self, threads: int = 1, device: str = CPU) -> bool:
        """Deprecated in favour of `supports`, and removed in kilt 0.3."""
        warnings.warn("Algorithm.shares is now supports; the old name is removed in kilt 0.3", DeprecationWarning, 2)
        return self.supports(threads, device)

    @property
    def whole(self) -> dict[str, WholeMethod]:
        """The algorithm's methods for games without abstraction, by representation.

        The keys are names such as "flat".
        """
        return {form: whole_method(form, self.make[form]) for form in WHOLE if form in self.make}

    @property
    def abstract(self) -> AbstractMethod:
        """The algorithm's method for abstract games.

        Raises RunError if it does not support them.
        """
        if ABSTRACT not in self.make:
            able = [name for name, entry in ALGORITHMS.items() if ABSTRACT in entry.make]
            raise RunError(f"{self.what} does not solve abstract games: use one of {', '.join(able)}")
        return abstract_method(self.make[ABSTRACT])


def _tables_of(variant: str | Variant) -> int:
    """Return how many tables a variant of CFR stores: regrets, averages and, if it predicts, the last regrets."""
    return 2 + (variant_named(variant).predictive > 0)


def _full_width(variant: str | Variant) -> dict[str, Make]:
    """Return methods for a variant of CFR that visits the whole game in each iteration."""
    tables = _tables_of(variant)

    def flat(problem: FlatProblem, seed: int) -> Solver:
        return Cfr(FlatTables(problem.tree.nodes), variant)

    def vector(problem: VectorProblem, seed: int) -> Solver:
        if problem.device != CPU:
            return _on_gpu(problem, variant)
        return Cfr(TreeTables(problem.game, problem.dtype), variant)

    def abstract(problem: AbstractProblem, seed: int) -> Solver:
        return _bucketed(problem, variant, seed=seed)

    vectors = VectorMethod(vector, tables, threads=True, gpu=True)
    return {FLAT: FlatMethod(flat, tables), VECTOR: vectors, ABSTRACT: WalkMethod(abstract, tables)}


def _by_hand(variant: str) -> dict[str, Make]:
    """Return the method of a variant of CFR that needs tables with a column for each hand."""

    def vector(problem: VectorProblem, seed: int) -> Solver:
        return Cfr(TreeTables(problem.game, problem.dtype), variant)

    return {VECTOR: VectorMethod(vector, threads=True)}


def _bucketed(problem: AbstractProblem, variant: str | Variant, **how: Any) -> Solver:
    """Return a CFR solver on the public tree of an abstract game."""
    if problem.device != CPU:
        raise RunError(
            "walks over buckets on a GPU are those of CFR-BR on drawn boards: use cfr-br:2, joint or external, or "
            "solve on the CPU"
        )
    return Cfr(TreeTables(problem.bucketed, **how), variant, problem.shares_by(problem.bucketed))


def _pairs(problem: AbstractProblem, variant: str, held: int | None = None) -> Solver:
    """Return a CFR solver with tables for pairs of bucket sequences; a player may be restricted to a model."""
    restriction = None if held is None else problem.restriction(held)
    return Cfr(PairTables(problem.pairs, restriction), variant, problem.shares_by(problem.pairs))


def _on_gpu(problem: VectorProblem, variant: str | Variant, **how: Any) -> Solver:
    """Return a CFR solver with tables in GPU memory; `how` has further arguments of `DeviceTables`."""
    from kilt.solve.tables.device import DeviceTables, require_walkable  # imports the GPU library
    from kilt.tree.gpu.device import DeviceGame

    whom = how.get("opponent", "abstract"), how.get("scheme", FULL_WIDTH), how.get("trunk", 0)
    require_walkable(problem.game, Opponent.named(problem.game, *whom, hands=True).scheme)
    assert isinstance(problem.walker, DeviceGame)
    return Cfr(DeviceTables(problem.walker, **how), variant)


def _compact(variant: str) -> dict[str, Make]:
    """Return methods for a variant of CFR with two bytes for each number in its tables, on the CPU or a GPU."""

    def vector(problem: TwoByteProblem, seed: int) -> Solver:
        if isinstance(problem.walker, TwoByteGame):
            return Cfr(TwoByteTables(problem.walker), variant)
        from kilt.solve.tables.device import CompactTables  # imports the GPU library

        return Cfr(CompactTables(problem.walker), variant)

    return {VECTOR: VectorMethod(vector, 1, threads=True, gpu=True, compact=True)}  # two of two bytes are one of four


def _chance_sampled(scheme: str, variant: str = "cfr") -> dict[str, Make]:
    """Return methods for a variant of CFR that samples boards and, depending on `scheme`, hands."""

    def vector(problem: VectorProblem, seed: int) -> Solver:
        if problem.device != CPU:
            return _on_gpu(problem, variant, scheme=scheme, seed=seed)
        return Cfr(TreeTables(problem.game, problem.dtype, scheme=scheme, seed=seed), variant)

    def abstract(problem: AbstractProblem, seed: int) -> Solver:
        if scheme == "pcs" and problem.walk.samples_boards:
            tables = SampledBoardTables(problem.without_boards, problem.abstract.cards, seed=seed)
            return Cfr(tables, variant, problem.shares_by(tables.bucketed))
        return _bucketed(problem, variant, scheme=scheme, seed=seed)

    public, tables = scheme == "pcs", _tables_of(variant)
    walks = PublicSamplingMethod(abstract, tables) if public else WalkMethod(abstract, tables, samples=True)
    return {VECTOR: VectorMethod(vector, tables, gpu=public), ABSTRACT: walks}


def _joint(variant: str) -> dict[str, Make]:
    """Return a method for a variant of CFR with tables for pairs of bucket sequences."""

    def abstract(problem: AbstractProblem, seed: int) -> Solver:
        return _pairs(problem, variant)

    return {ABSTRACT: JointMethod(abstract, 3)}


def _sampled(scheme: str) -> dict[str, Make]:
    """Return a method for Monte Carlo CFR on flat trees."""

    def flat(problem: FlatProblem, seed: int) -> Solver:
        return FlatMCCFR(problem.tree.nodes, scheme, seed)

    return {FLAT: FlatMethod(flat)}


def _external(problem: AbstractProblem, seed: int) -> Solver:
    def alone(game: AbstractProblem) -> Solver:
        if problem.device != CPU:
            from kilt.solve.external_device_classes import gpu_solver  # imports the GPU library

            return gpu_solver(game.abstract, game.cards, seed, problem.options, problem.dtype)
        return ExternalMCCFR(game.abstract, seed, problem.options, problem.threads, problem.dtype)

    if problem.engine.name:
        from kilt.solve.distributed.solver import start

        return start(problem, seed)
    if problem.opponent_cards is None:
        return alone(problem)
    first, second = problem.seats
    return SeatSolver((alone(first), alone(second)), problem.combine_seats)


def _current(problem: VectorProblem, seed: int) -> Solver:
    return Cfr(TreeTables(problem.game, problem.dtype, averaging=False), "cfr+")


def _on_disk(variant: str, *, averaging: bool) -> dict[str, Make]:
    """Return methods for a variant of CFR whose tables are split into subgames on disk."""

    def disk(problem: DiskProblem, seed: int) -> Solver:
        if problem.engine:
            from kilt.solve.tables.disk_workers import WorkerTables

            shared = WorkerTables(problem.subgames, problem.engine, problem.workers, averaging=averaging)
            return Cfr(shared, variant)
        return Cfr(DiskTables(problem.subgames, averaging=averaging), variant)

    def abstract(problem: AbstractProblem, seed: int) -> Solver:
        cut = BucketedSubgames.of(problem.abstract, problem.threads)
        cut.require_memory(1 + averaging)
        shares = SubgameShares(cut, problem.abstract)
        if asked := problem.engine.name:
            from kilt.solve.tables.disk_workers import SharedCards, WorkerTables

            cards = SharedCards(tuple(folder.resolve() for folder in problem.cards), problem.abstract.actions)
            engine = problem.place or engine_named(asked, problem.engine.address, problem.threads)
            recipe = partial(cards.cut, problem.threads)
            shared = WorkerTables(cut, engine, problem.engine.blades, recipe=recipe, averaging=averaging)
            return Cfr(shared, variant, lambda strategy: shares.join(shared.shares(strategy, cards)))
        return Cfr(DiskTables(cut, averaging=averaging), variant, shares.strategy_shares)

    return {DISK: DiskMethod(disk, 1 + averaging), ABSTRACT: BucketDiskMethod(abstract, 1 + averaging)}


def _cfr_br(trunk: int, variant: str = "cfr") -> dict[str, Make]:
    """Return methods for CFR-BR against an opponent who learns in the first `trunk` rounds and best-responds later."""

    def flat(problem: FlatProblem, seed: int) -> Solver:
        return Cfr(FlatTables(problem.tree.nodes, responds=True), "cfr")

    def vector(problem: VectorProblem, seed: int) -> Solver:
        how: dict[str, Any] = {"opponent": RESPONSE, "trunk": trunk, "seed": seed}
        if problem.device != CPU:
            return _on_gpu(problem, variant, **how)
        return Cfr(TreeTables(problem.game, problem.dtype, **how), variant)

    def abstract(problem: AbstractProblem, seed: int) -> Solver:
        if problem.device != CPU:
            from kilt.solve.tables.drawn_device import GpuSampledBoardTables  # imports the GPU library

            drawn = GpuSampledBoardTables(problem.without_boards, problem.abstract.cards, trunk=trunk, seed=seed)
            return Cfr(drawn, variant, problem.shares_by(drawn.bucketed))
        if problem.walk.must_sample_boards(trunk):
            tables = SampledBoardTables(problem.without_boards, problem.abstract.cards, trunk=trunk, seed=seed)
            return Cfr(tables, variant, problem.shares_by(tables.bucketed))
        return _bucketed(problem, variant if trunk else "cfr+", opponent="response", trunk=trunk, seed=seed)

    vectors = VectorMethod(vector, 3, threads=True, gpu=True)
    walks = ResponseMethod(abstract, 3, samples=trunk > 0, trunk=trunk)
    return ({} if trunk else {FLAT: FlatMethod(flat, 3)}) | {VECTOR: vectors, ABSTRACT: walks}


def _counter(kind: str, base: str = DEFAULT_BASE) -> dict[str, Make]:
    """Return methods that compute counter-strategies to the problem's opponent model, for one seat at a time."""
    plain, _, variant = base.partition(":")

    def both(problem: Problem, seat: Callable[[int], Solver]) -> Solver:
        if problem.against is None:
            raise RunError("rnr and dbr answer a model of an opponent: give the problem `against`")
        return SeatSolver((seat(1), seat(0)), problem.against.combine_seats)

    def flat(problem: FlatProblem, seed: int) -> Solver:
        def seat(held: int) -> Solver:
            return Cfr(FlatTables(problem.tree.nodes, restriction=problem.restriction(held)), base)

        return both(problem, seat)

    def vector(problem: VectorProblem, seed: int) -> Solver:
        def seat(held: int) -> Solver:
            return Cfr(TreeTables(problem.game, problem.dtype, restriction=problem.restriction(held)), base)

        return both(problem, seat)

    def abstract(problem: AbstractProblem, seed: int) -> Solver:
        def seat(held: int) -> Solver:
            if plain == JOINT:
                return _pairs(problem, variant or DEFAULT_BASE, held)
            if base != EXTERNAL:
                return _bucketed(problem, base, seed=seed, restriction=problem.bucketed_restriction(held))
            how = problem.options, problem.threads, problem.dtype
            return ExternalMCCFR(problem.abstract, seed, *how, problem.restriction(held))

        return both(problem, seat)

    if plain == EXTERNAL:
        return {ABSTRACT: AnswerMethod(abstract, answers=True)}
    if plain == JOINT:  # six for each seat, those of the model, and its policy
        return {ABSTRACT: JointMethod(abstract, 14, answers=True)}
    tables = 6 if kind == "rnr" else 8  # of both seats, with those of the model
    vectors, walks = VectorMethod(vector, tables, threads=True), WalkMethod(abstract, tables, answers=True)
    return {FLAT: FlatMethod(flat, tables), VECTOR: vectors, ABSTRACT: walks}


def _exact(problem: FlatProblem, seed: int) -> Solver:
    return SequenceFormLP(problem.tree.nodes)


ALGORITHMS: dict[str, Algorithm] = {
    "cfr": Algorithm("counterfactual regret minimisation, full walks", _full_width("cfr")),
    "cfr+": Algorithm(
        "CFR+: regret matching+, average weighted by iteration; cfr+:compact with tables of two bytes an entry",
        _full_width("cfr+"),
    ),
    "cfr+current": Algorithm(
        "CFR+ without an average: the current strategy is the result",
        {VECTOR: VectorMethod(_current, 1, threads=True)},
    ),
    "cfr+disk": Algorithm(
        "CFR+ with regrets on disk, for games larger than memory; cfr+disk:average keeps an average too",
        _on_disk("cfr+", averaging=False),
    ),
    "linear": Algorithm("linear CFR", _full_width("linear")),
    "dcfr": Algorithm("discounted CFR (1.5, 0, 2)", _full_width("dcfr")),
    "dcfr+": Algorithm("discounted CFR by regret matching+ (1.5, −∞, 4)", _full_width("dcfr+")),
    "dcfr-restart": Algorithm(
        "discounted CFR (1.5, 0, 3) whose average restarts after iterations 4, 16, 64, …", _full_width("dcfr-restart")
    ),
    "hs-dcfr": Algorithm(
        f"discounted CFR whose exponents change over {HORIZON:,} iterations: HS-DCFR(30)", _full_width("hs-dcfr")
    ),
    "pcfr+": Algorithm("predictive CFR+, average weighted by the square of the iteration", _full_width("pcfr+")),
    "sapcfr+": Algorithm(
        "predictive CFR+ with asymmetric steps: a third of the last regrets is predicted", _full_width("sapcfr+")
    ),
    "pdcfr+": Algorithm("predictive discounted CFR+ (2.3, −∞, 5)", _full_width("pdcfr+")),
    "hs-pcfr+": Algorithm(
        f"predictive CFR+ whose average has an exponent that changes over {HORIZON:,} iterations: HS-PCFR+(30)",
        _full_width("hs-pcfr+"),
    ),
    "dcfr-bounded": Algorithm("discounted CFR (1, 0, 5) with bounded steps", _by_hand("dcfr-bounded")),
    "dcfr+bounded": Algorithm(
        "discounted CFR by regret matching+ (1, −∞, 5) with bounded steps", _by_hand("dcfr+bounded")
    ),
    "cfr-br": Algorithm(
        "CFR against best responses; cfr-br:1 against a hybrid that learns in the first round, cfr-br:2:linear with "
        "another variant of CFR, and so on",
        _cfr_br(0),
    ),
    "cs": Algorithm("Monte Carlo CFR with chance sampling: boards and both hands are drawn", _chance_sampled("cs")),
    "opcs": Algorithm("opponent-public chance sampling: boards and the opponent's hand", _chance_sampled("opcs")),
    "spcs": Algorithm("self-public chance sampling: boards and the player's hand", _chance_sampled("spcs")),
    "pcs": Algorithm(
        "public chance sampling: boards; pcs:cfr+ with another variant of CFR, and so on", _chance_sampled("pcs")
    ),
    "joint": Algorithm(
        "CFR+ by tables over pairs of bucket sequences, for few buckets; joint:cfr with another variant, and so on",
        _joint("cfr+"),
    ),
    "external": Algorithm(
        "Monte Carlo CFR with external sampling",
        _sampled("external") | {ABSTRACT: SamplingMethod(_external, opposed=True)},
    ),
    "outcome": Algorithm("Monte Carlo CFR with outcome sampling", _sampled("outcome")),
    "pure": Algorithm("pure CFR: strategies are sampled as pure ones", _sampled("pure")),
    "lp": Algorithm("the sequence-form linear programme: exact, in one step", {FLAT: FlatMethod(_exact)}, exact=True),
}


# Answers to a model of an opponent; the problem says which one it is `against`.
COUNTERS: dict[str, Algorithm] = {
    "rnr": Algorithm(
        "restricted Nash response to a model by CFR+; rnr:external by external sampling, rnr:joint by joint tables",
        _counter("rnr"),
    ),
    "dbr": Algorithm(
        "data-biased response to a model by CFR+; dbr:external by external sampling, dbr:joint by joint tables",
        _counter("dbr"),
    ),
}


def algorithm_of(algorithm: str | Variant | Algorithm) -> Algorithm:
    """Return an algorithm that is given by name, as a row of discounts for CFR, or as a custom `Algorithm`."""
    if isinstance(algorithm, Algorithm):
        return algorithm
    if isinstance(algorithm, Variant):
        return Algorithm(f"cfr{tuple(algorithm)}", _full_width(algorithm))
    return algorithm_named(algorithm)


def algorithm_named(name: str) -> Algorithm:
    """Return the algorithm with a given name.

    ``cfr+:compact`` is CFR+ with tables of two bytes, ``dcfr+:disk`` discounted CFR+ with tables on disk,
    ``cfr+disk:average`` CFR+ on disk with an average, ``cfr-br:2`` CFR-BR with a trunk of two rounds,
    ``cfr-br:2:linear`` the same by linear CFR, ``pcs:cfr+`` public chance sampling with CFR+, ``joint:cfr`` CFR by
    joint tables, ``dbr:external`` a data-biased response by external sampling, and so on.
    """
    plain, _, more = name.partition(":")
    trunk, colon, variant = more.partition(":")
    if (
        plain == "cfr-br"
        and trunk.isdecimal()
        and (not colon or (variant in _LEARNING and variant in STEADY and int(trunk)))
    ):
        return ALGORITHMS[plain]._replace(make=_cfr_br(int(trunk), variant or "cfr"))
    if plain in (*UNSIGNED, "dcfr+bounded") and more == "compact":
        return ALGORITHMS[plain]._replace(make=_compact(plain))
    if name == "cfr+disk:average":
        return ALGORITHMS[plain]._replace(make=_on_disk("cfr+", averaging=True))
    if plain in UNSIGNED and more in ("disk", "disk:average"):
        return ALGORITHMS["cfr+disk"]._replace(make=_on_disk(plain, averaging=more != "disk"))
    if plain == JOINT and more in VARIANTS:
        return ALGORITHMS[plain]._replace(make=_joint(more))
    if plain in SCHEMES and more in STEADY:
        return ALGORITHMS[plain]._replace(make=_chance_sampled(plain, more))
    if plain in COUNTERS and more in ("", *COUNTER_BASES):
        return COUNTERS[plain]._replace(make=_counter(plain, more or DEFAULT_BASE))
    if plain in COUNTERS:
        raise RunError(f"unknown algorithm {name!r}: after {plain}: comes one of {', '.join(COUNTER_BASES)}")
    if name not in ALGORITHMS:
        raise RunError(f"unknown algorithm {name!r}: use one of {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


def make_solver(problem: Problem, algorithm: str | Variant | Algorithm, seed: int = 0) -> Solver:
    """Return a new solver for a game.

    Parameters
    ----------
    problem : Problem
        A game in a form that the algorithm works on.
    algorithm : str, Variant or Algorithm
        A name of `ALGORITHMS`, a row of discounts for CFR, or a custom `Algorithm`.
    seed : int
        Random seed, for algorithms that sample.
    """
    entry = algorithm_of(algorithm)
    if problem.form not in entry.make:
        fitting = [name for name, other in ALGORITHMS.items() if problem.form in other.make]
        called = algorithm if isinstance(algorithm, str) else entry.what
        raise RunError(f"{called} does not come in {problem.form} form: use one of {', '.join(fitting)}")
    return entry.make[problem.form](problem, seed)
