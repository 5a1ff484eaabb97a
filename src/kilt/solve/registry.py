"""The menus of algorithms, `ALGORITHMS` and `COUNTERS`, and how a solver is made from an entry and a problem.

>>> ALGORITHMS["cfr+"].forms, ALGORITHMS["external"].forms
(('flat', 'vector', 'abstract'), ('flat', 'abstract'))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from kilt.engines import engine_named
from kilt.errors import RunError
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.cfr import Cfr
from kilt.solve.counter import CounterSolver
from kilt.solve.external import External
from kilt.solve.opponents import RESPONSE, SCHEMES, Opponent
from kilt.solve.problem import ABSTRACT, CPU, DISK, FLAT, FORMS, VECTOR, FlatProblem, Problem, VectorProblem
from kilt.solve.sampled import Sampled
from kilt.solve.solver import Solver
from kilt.solve.tables.disk import DiskTables
from kilt.solve.tables.disk_buckets import BucketedSubgames, SubgameShares
from kilt.solve.tables.disk_strategy import DiskProblem
from kilt.solve.tables.drawn import DrawnTables
from kilt.solve.tables.flat import FlatTables
from kilt.solve.tables.memory import TreeTables
from kilt.solve.tables.pairs import PairTables
from kilt.solve.tables.two_bytes import TwoByteGame, TwoByteProblem, TwoByteTables
from kilt.solve.variants import HORIZON, STEADY, VARIANTS, Variant
from kilt.tree.vector import FULL_WIDTH

EXTERNAL, JOINT, DEFAULT_BASE = "external", "joint", "cfr+"
UNSIGNED = tuple(name for name, row in VARIANTS.items() if row.unsigned)
_LEARNING = tuple(name for name, row in VARIANTS.items() if not row.predictive)
COUNTER_BASES = (*_LEARNING, EXTERNAL, JOINT, *(f"{JOINT}:{name}" for name in _LEARNING))  # of counter-strategies

Make: TypeAlias = Callable[[Any, int], Solver]  # from a problem of a form, and a seed


class Algorithm(NamedTuple):
    """An entry of the menu: what it is, and how it is made for each form of a game that it works on."""

    what: str
    make: Mapping[str, Make]  # by form
    tables: int = 2  # that it keeps in vector form
    threads: bool = False  # whether several can share its walks over all boards, in vector form
    gpu: bool = False  # whether these can run on a GPU
    walks: bool = True  # whether it walks all boards and hands of an abstract game,
    samples: bool = False  # or those of a board that is drawn for each iteration
    opponent: bool = False  # whether it keeps a table for an opponent who sees all cards
    trunk: int = 0  # rounds in which that opponent learns
    exact: bool = False  # whether it is done after one step
    disk: int = 0  # tables that it keeps in subgames on disk
    joint: bool = False  # whether it takes the cards of an abstract game from tables over pairs of bucket sequences
    compact: bool = False  # whether its tables have two bytes an entry
    against: bool = False  # whether it answers a model of an opponent: see `counter`

    @property
    def forms(self) -> tuple[str, ...]:
        """The forms of a game that it works on, the one for small games first."""
        return tuple(form for form in FORMS if form in self.make)


def _full_width(variant: str | Variant) -> dict[str, Make]:
    """CFR and its variants on all forms."""

    def flat(problem: FlatProblem, seed: int) -> Solver:
        return Cfr(FlatTables(problem.tree.nodes), variant)

    def vector(problem: VectorProblem, seed: int) -> Solver:
        if problem.device != CPU:
            return _on_gpu(problem, variant)
        return Cfr(TreeTables(problem.game, problem.dtype), variant)

    def abstract(problem: AbstractProblem, seed: int) -> Solver:
        return _bucketed(problem, variant, seed=seed)

    return {FLAT: flat, VECTOR: vector, ABSTRACT: abstract}


def _bucketed(problem: AbstractProblem, variant: str | Variant, **how: Any) -> Solver:
    """The CFR family on an abstract game by walks of the whole one."""
    if problem.device != CPU:
        raise RunError(
            "walks over buckets on a GPU are those of CFR-BR on drawn boards: use cfr-br:2, joint or external, or "
            "leave out `--device gpu`"
        )
    return Cfr(TreeTables(problem.bucketed, **how), variant, problem.shares_by(problem.bucketed))


def _pairs(problem: AbstractProblem, variant: str, held: int | None = None) -> Solver:
    """The CFR family on an abstract game by joint tables, with a player who is held to the problem's model."""
    restriction = None if held is None else problem.restriction(held)
    return Cfr(PairTables(problem.pairs, restriction), variant, problem.shares_by(problem.pairs))


def _on_gpu(problem: VectorProblem, variant: str | Variant, **how: Any) -> Solver:
    """CFR and its variants with tables on a GPU; `how` are arguments of `DeviceTables`."""
    from kilt.solve.tables.device import DeviceTables, require_walkable  # imports the GPU library
    from kilt.tree.gpu.device import DeviceGame

    whom = how.get("opponent", "abstract"), how.get("scheme", FULL_WIDTH), how.get("trunk", 0)
    require_walkable(problem.game, Opponent.of(problem.game, *whom, hands=True).scheme)
    assert isinstance(problem.walker, DeviceGame)
    return Cfr(DeviceTables(problem.walker, **how), variant)


def _compact(variant: str) -> dict[str, Make]:
    """A variant without negative regrets with tables of two bytes an entry, on the CPU or a GPU."""

    def vector(problem: TwoByteProblem, seed: int) -> Solver:
        if isinstance(problem.walker, TwoByteGame):
            return Cfr(TwoByteTables(problem.walker), variant)
        from kilt.solve.tables.device import CompactTables  # imports the GPU library

        return Cfr(CompactTables(problem.walker), variant)

    return {VECTOR: vector}


def _chance_sampled(scheme: str, variant: str = "cfr") -> dict[str, Make]:
    """CFR or a variant of it with boards, and maybe hands, drawn for each walk."""

    def vector(problem: VectorProblem, seed: int) -> Solver:
        if problem.device != CPU:
            return _on_gpu(problem, variant, scheme=scheme, seed=seed)
        return Cfr(TreeTables(problem.game, problem.dtype, scheme=scheme, seed=seed), variant)

    def abstract(problem: AbstractProblem, seed: int) -> Solver:
        if scheme == "pcs" and problem.cost.samples_drawn:
            tables = DrawnTables(problem.without_boards, problem.abstract.cards, seed=seed)
            return Cfr(tables, variant, problem.shares_by(tables.bucketed))
        return _bucketed(problem, variant, scheme=scheme, seed=seed)

    return {VECTOR: vector, ABSTRACT: abstract}


def _joint(variant: str) -> dict[str, Make]:
    """CFR or a variant of it on an abstract game by joint tables."""

    def abstract(problem: AbstractProblem, seed: int) -> Solver:
        return _pairs(problem, variant)

    return {ABSTRACT: abstract}


def _sampled(scheme: str) -> dict[str, Make]:
    """Monte Carlo CFR on flat trees."""

    def flat(problem: FlatProblem, seed: int) -> Solver:
        return Sampled(problem.tree.nodes, scheme, seed)

    return {FLAT: flat}


def _external(problem: AbstractProblem, seed: int) -> Solver:
    if problem.engine.name:
        from kilt.solve.distributed.solver import start

        return start(problem, seed)
    if problem.device != CPU:
        from kilt.solve.external_device_classes import solver_there  # imports the GPU library

        return solver_there(problem.abstract, problem.cards, seed, problem.options, problem.dtype)
    return External(problem.abstract, seed, problem.options, problem.threads, problem.dtype)


def _current(problem: VectorProblem, seed: int) -> Solver:
    return Cfr(TreeTables(problem.game, problem.dtype, averaging=False), "cfr+")


def _on_disk(variant: str, *, averaging: bool) -> dict[str, Make]:
    """A variant without negative regrets, with tables in subgames on disk."""

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
            return Cfr(shared, variant, lambda strategy: shares.whole(shared.shares(strategy, cards)))
        return Cfr(DiskTables(cut, averaging=averaging), variant, shares.of_strategy)

    return {DISK: disk, ABSTRACT: abstract}


def _cfr_br(trunk: int, variant: str = "cfr") -> dict[str, Make]:
    """CFR-BR against a hybrid opponent that learns in the first `trunk` rounds; 0: against a full best response."""

    def flat(problem: FlatProblem, seed: int) -> Solver:
        return Cfr(FlatTables(problem.tree.nodes, responds=True), "cfr")

    def vector(problem: VectorProblem, seed: int) -> Solver:
        how: dict[str, Any] = {"opponent": RESPONSE, "trunk": trunk, "seed": seed}
        if problem.device != CPU:
            return _on_gpu(problem, variant, **how)
        return Cfr(TreeTables(problem.game, problem.dtype, **how), variant)

    def abstract(problem: AbstractProblem, seed: int) -> Solver:
        if problem.device != CPU:
            from kilt.solve.tables.drawn_device import DrawnDeviceTables  # imports the GPU library

            drawn = DrawnDeviceTables(problem.without_boards, problem.abstract.cards, trunk=trunk, seed=seed)
            return Cfr(drawn, variant, problem.shares_by(drawn.bucketed))
        if problem.cost.draws(trunk):
            tables = DrawnTables(problem.without_boards, problem.abstract.cards, trunk=trunk, seed=seed)
            return Cfr(tables, variant, problem.shares_by(tables.bucketed))
        return _bucketed(problem, variant if trunk else "cfr+", opponent="response", trunk=trunk, seed=seed)

    return ({} if trunk else {FLAT: flat}) | {VECTOR: vector, ABSTRACT: abstract}


def _counter(base: str) -> dict[str, Make]:
    """Answers to the model that a problem is against: two solves by CFR or external sampling, a seat each."""
    plain, _, variant = base.partition(":")

    def both(problem: Problem, seat: Callable[[int], Solver]) -> Solver:
        assert problem.against
        return CounterSolver((seat(1), seat(0)), problem.against)

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
            return External(problem.abstract, seed, *how, problem.restriction(held))

        return both(problem, seat)

    return {ABSTRACT: abstract} if plain in (EXTERNAL, JOINT) else {FLAT: flat, VECTOR: vector, ABSTRACT: abstract}


def _exact(problem: FlatProblem, seed: int) -> Solver:
    from kilt.solve.lp import Exact  # takes half a second to import, for SciPy

    return Exact(problem.tree.nodes)


ALGORITHMS: dict[str, Algorithm] = {
    "cfr": Algorithm("counterfactual regret minimisation, full walks", _full_width("cfr"), threads=True, gpu=True),
    "cfr+": Algorithm(
        "CFR+: regret matching+, average weighted by iteration; cfr+:compact with tables of two bytes an entry",
        _full_width("cfr+"),
        threads=True,
        gpu=True,
    ),
    "cfr+current": Algorithm(
        "CFR+ without an average: the current strategy is the result", {VECTOR: _current}, tables=1, threads=True
    ),
    "cfr+disk": Algorithm(
        "CFR+ with regrets on disk, for games larger than memory; cfr+disk:average keeps an average too",
        _on_disk("cfr+", averaging=False),
        tables=0,
        threads=True,
        disk=1,
    ),
    "linear": Algorithm("linear CFR", _full_width("linear"), threads=True, gpu=True),
    "dcfr": Algorithm("discounted CFR (1.5, 0, 2)", _full_width("dcfr"), threads=True, gpu=True),
    "dcfr+": Algorithm("discounted CFR by regret matching+ (1.5, −∞, 4)", _full_width("dcfr+"), threads=True, gpu=True),
    "dcfr-restart": Algorithm(
        "discounted CFR (1.5, 0, 3) whose average restarts after iterations 4, 16, 64, …",
        _full_width("dcfr-restart"),
        threads=True,
        gpu=True,
    ),
    "hs-dcfr": Algorithm(
        f"discounted CFR whose exponents change over {HORIZON:,} iterations: HS-DCFR(30)",
        _full_width("hs-dcfr"),
        threads=True,
        gpu=True,
    ),
    "pcfr+": Algorithm(
        "predictive CFR+, average weighted by the square of the iteration",
        _full_width("pcfr+"),
        tables=3,
        threads=True,
        gpu=True,
    ),
    "sapcfr+": Algorithm(
        "predictive CFR+ with asymmetric steps: a third of the last regrets is predicted",
        _full_width("sapcfr+"),
        tables=3,
        threads=True,
        gpu=True,
    ),
    "pdcfr+": Algorithm(
        "predictive discounted CFR+ (2.3, −∞, 5)", _full_width("pdcfr+"), tables=3, threads=True, gpu=True
    ),
    "hs-pcfr+": Algorithm(
        f"predictive CFR+ whose average has an exponent that changes over {HORIZON:,} iterations: HS-PCFR+(30)",
        _full_width("hs-pcfr+"),
        tables=3,
        threads=True,
        gpu=True,
    ),
    "cfr-br": Algorithm(
        "CFR against best responses; cfr-br:1 against a hybrid that learns in the first round, cfr-br:2:linear with "
        "another variant of CFR, and so on",
        _cfr_br(0),
        tables=3,
        threads=True,
        opponent=True,
        gpu=True,
    ),
    "cs": Algorithm(
        "Monte Carlo CFR with chance sampling: boards and both hands are drawn", _chance_sampled("cs"), samples=True
    ),
    "opcs": Algorithm(
        "opponent-public chance sampling: boards and the opponent's hand", _chance_sampled("opcs"), samples=True
    ),
    "spcs": Algorithm("self-public chance sampling: boards and the own hand", _chance_sampled("spcs"), samples=True),
    "pcs": Algorithm(
        "public chance sampling: boards; pcs:cfr+ with another variant of CFR, and so on",
        _chance_sampled("pcs"),
        samples=True,
        gpu=True,
    ),
    "joint": Algorithm(
        "CFR+ by tables over pairs of bucket sequences, for few buckets; joint:cfr with another variant, and so on",
        _joint("cfr+"),
        tables=3,
        walks=False,
        joint=True,
    ),
    "external": Algorithm(
        "Monte Carlo CFR with external sampling", _sampled("external") | {ABSTRACT: _external}, walks=False
    ),
    "outcome": Algorithm("Monte Carlo CFR with outcome sampling", _sampled("outcome")),
    "pure": Algorithm("pure CFR: strategies are sampled as pure ones", _sampled("pure")),
    "lp": Algorithm("the sequence-form linear programme: exact, in one step", {FLAT: _exact}, exact=True),
}


# Answers to a model of an opponent; the problem says which one it is `against`.
COUNTERS: dict[str, Algorithm] = {
    "rnr": Algorithm(
        "restricted Nash response to a model by CFR+; rnr:external by external sampling, rnr:joint by joint tables",
        _counter(DEFAULT_BASE),
        tables=6,
        threads=True,
        against=True,
    ),
    "dbr": Algorithm(
        "data-biased response to a model by CFR+; dbr:external by external sampling, dbr:joint by joint tables",
        _counter(DEFAULT_BASE),
        tables=8,
        threads=True,
        against=True,
    ),
}


def algorithm_named(name: str | Variant | Algorithm) -> Algorithm:
    """An entry of the menu by name, or one of one's own.

    ``cfr+:compact`` is CFR+ with tables of two bytes, ``dcfr+:disk`` discounted CFR+ with tables on disk,
    ``cfr+disk:average`` CFR+ on disk with an average, ``cfr-br:2`` CFR-BR with a trunk of two rounds,
    ``cfr-br:2:linear`` the same by linear CFR, ``pcs:cfr+`` public chance sampling with CFR+, ``joint:cfr`` CFR by
    joint tables, ``dbr:external`` a data-biased response by external sampling, and so on. A `Variant` is CFR with
    discounts of one's own.
    """
    if isinstance(name, Algorithm):
        return name
    if isinstance(name, Variant):
        return Algorithm(
            f"cfr{tuple(name)}", _full_width(name), tables=2 + (name.predictive > 0), threads=True, gpu=True
        )
    plain, _, more = name.partition(":")
    trunk, colon, variant = more.partition(":")
    if (
        plain == "cfr-br"
        and trunk.isdecimal()
        and (not colon or (variant in _LEARNING and variant in STEADY and int(trunk)))
    ):
        make = _cfr_br(int(trunk), variant or "cfr")
        return ALGORITHMS[plain]._replace(make=make, samples=int(trunk) > 0, trunk=int(trunk))
    if plain in UNSIGNED and more == "compact":  # two tables of two bytes are one of four
        return ALGORITHMS[plain]._replace(make=_compact(plain), tables=1, compact=True)
    if name == "cfr+disk:average":
        return ALGORITHMS[plain]._replace(make=_on_disk("cfr+", averaging=True), disk=2)
    if plain in UNSIGNED and more in ("disk", "disk:average"):
        averaging = more != "disk"
        return ALGORITHMS["cfr+disk"]._replace(make=_on_disk(plain, averaging=averaging), disk=1 + averaging)
    if plain == JOINT and more in VARIANTS:
        return ALGORITHMS[plain]._replace(make=_joint(more))
    if plain in SCHEMES and more in STEADY:
        return ALGORITHMS[plain]._replace(make=_chance_sampled(plain, more), tables=2 + (VARIANTS[more].predictive > 0))
    if plain in COUNTERS and more in ("", *COUNTER_BASES):
        joint = more.partition(":")[0] == JOINT
        walks = more != EXTERNAL and not joint
        tables = 14 if joint else COUNTERS[plain].tables  # six for each seat, those of the model, and its policy
        entry, make = COUNTERS[plain]._replace(tables=tables), _counter(more or DEFAULT_BASE)
        return entry._replace(make=make, threads=walks, walks=walks, joint=joint)
    if plain in COUNTERS:
        raise RunError(f"unknown algorithm {name!r}: after {plain}: comes one of {', '.join(COUNTER_BASES)}")
    if name not in ALGORITHMS:
        raise RunError(f"unknown algorithm {name!r}: use one of {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


def make_solver(problem: Problem, algorithm: str | Variant | Algorithm, seed: int = 0) -> Solver:
    """A new solver for a problem.

    Parameters
    ----------
    problem : Problem
        A game in a form that the algorithm works on.
    algorithm : str, Variant or Algorithm
        A name of `ALGORITHMS`, a row of discounts for CFR, or an entry of one's own.
    seed : int
        For algorithms that draw at random.
    """
    entry = algorithm_named(algorithm)
    if problem.form not in entry.make:
        fitting = [name for name, other in ALGORITHMS.items() if problem.form in other.make]
        called = algorithm if isinstance(algorithm, str) else entry.what
        raise RunError(f"{called} does not come in {problem.form} form: use one of {', '.join(fitting)}")
    if entry.against and problem.against is None:
        raise RunError("rnr and dbr answer a model of an opponent: use `kilt counter`, or give the problem `against`")
    return entry.make[problem.form](problem, seed)
