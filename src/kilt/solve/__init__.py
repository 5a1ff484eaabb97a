"""Solving: the CFR family, linear programmes, and the loop that runs them. `ALGORITHMS` is the menu.

>>> ALGORITHMS["cfr+"].forms, ALGORITHMS["external"].forms
(('flat', 'vector'), ('flat',))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy.typing as npt

from kilt.errors import RunError
from kilt.solve.cfr import FullWidth
from kilt.solve.cfr_br import CfrBr
from kilt.solve.external import External
from kilt.solve.sampled import Sampled
from kilt.solve.solver import Solver
from kilt.solve.vector import SCHEMES, VectorCfr, VectorCfrBr, VectorSampled
from kilt.tree.flat import FlatNodes
from kilt.tree.vector import VectorGame

if TYPE_CHECKING:
    from kilt.solve.abstract_problem import AbstractProblem

# Forms of a game: its flat tree, its public tree with vectors of hands, or an abstract game.
FORMS = FLAT, VECTOR, ABSTRACT = "flat", "vector", "abstract"

Make: TypeAlias = Callable[[FlatNodes, int], Solver]  # from the nodes of a flat tree and a seed
MakeAbstract: TypeAlias = Callable[["AbstractProblem", int], Solver]  # from an abstract game and a seed
MakeVector: TypeAlias = Callable[[VectorGame, int, npt.DTypeLike], Solver]  # from a game, a seed and a type of numbers


class Algorithm(NamedTuple):
    """An entry of the menu: what it is, and how it is made for each form of a game that it works on."""

    what: str
    make: Make | None = None
    make_vector: MakeVector | None = None
    make_abstract: MakeAbstract | None = None
    tables: int = 2  # how many it keeps in vector form
    threads: bool = False  # whether several can share its walks over all boards, in vector form
    exact: bool = False  # whether it is done after one step

    @property
    def forms(self) -> tuple[str, ...]:
        """Those of the game itself that it works on, the one for small games first."""
        makers = {FLAT: self.make, VECTOR: self.make_vector}
        return tuple(form for form, maker in makers.items() if maker)

    def works_on(self, form: str) -> bool:
        """Whether it comes in a form."""
        return form in self.forms or (form == ABSTRACT and self.make_abstract is not None)


def _flat(variant: str) -> Make:
    return lambda nodes, seed: FullWidth(nodes, variant)


def _vector(variant: str) -> MakeVector:
    return lambda game, seed, dtype: VectorCfr(game, variant, dtype)


def _sampled(scheme: str) -> Make:
    return lambda nodes, seed: Sampled(nodes, scheme, seed)


def _drawn(scheme: str) -> MakeVector:
    return lambda game, seed, dtype: VectorSampled(game, scheme, seed, dtype)


def _external(problem: AbstractProblem, seed: int) -> Solver:
    if problem.engine.name:
        from kilt.solve.distributed.solver import start

        return start(problem, seed)
    return External(problem.abstract, seed, problem.options, problem.threads, problem.dtype)


def _walked(variant: str, **how: Any) -> MakeAbstract:
    def make(problem: AbstractProblem, seed: int) -> Solver:
        from kilt.solve.abstract_problem import Walked

        return Walked(problem, variant=variant, seed=seed, **how)

    return make


def _cfr_br(trunk: int) -> tuple[MakeVector, MakeAbstract]:
    walked = _walked("cfr" if trunk else "cfr+", opponent="response", trunk=trunk)
    return lambda game, seed, dtype: VectorCfrBr(game, trunk, seed, dtype), walked


def _exact(nodes: FlatNodes, seed: int) -> Solver:
    from kilt.solve.lp import Exact  # takes half a second to import, for SciPy

    return Exact(nodes)


ALGORITHMS: dict[str, Algorithm] = {
    "cfr": Algorithm(
        "counterfactual regret minimisation, full walks", _flat("cfr"), _vector("cfr"), _walked("cfr"), threads=True
    ),
    "cfr+": Algorithm(
        "CFR+: regret matching+, average weighted by iteration",
        _flat("cfr+"),
        _vector("cfr+"),
        _walked("cfr+"),
        threads=True,
    ),
    "cfr+current": Algorithm(
        "CFR+ without an average: the current strategy is the result",
        None,
        lambda game, seed, dtype: VectorCfr(game, "cfr+", dtype, averaging=False),
        tables=1,
        threads=True,
    ),
    "linear": Algorithm("linear CFR", _flat("linear"), _vector("linear"), _walked("linear"), threads=True),
    "dcfr": Algorithm("discounted CFR (1.5, 0, 2)", _flat("dcfr"), _vector("dcfr"), _walked("dcfr"), threads=True),
    "pcfr+": Algorithm(
        "predictive CFR+, average weighted by the square of the iteration",
        _flat("pcfr+"),
        _vector("pcfr+"),
        tables=3,
        threads=True,
    ),
    "cfr-br": Algorithm(
        "CFR against best responses; cfr-br:1 against a hybrid that learns in the first round, and so on",
        lambda nodes, seed: CfrBr(nodes),
        *_cfr_br(0),
        tables=3,
        threads=True,
    ),
    "cs": Algorithm("Monte Carlo CFR with chance sampling: boards and both hands are drawn", None, _drawn("cs")),
    "opcs": Algorithm("opponent-public chance sampling: boards and the opponent's hand", None, _drawn("opcs")),
    "spcs": Algorithm("self-public chance sampling: boards and the own hand", None, _drawn("spcs")),
    "pcs": Algorithm("public chance sampling: boards", None, _drawn("pcs"), _walked("cfr", scheme=SCHEMES["pcs"])),
    "external": Algorithm("Monte Carlo CFR with external sampling", _sampled("external"), None, _external),
    "outcome": Algorithm("Monte Carlo CFR with outcome sampling", _sampled("outcome")),
    "pure": Algorithm("pure CFR: strategies are sampled as pure ones", _sampled("pure")),
    "lp": Algorithm("the sequence-form linear programme: exact, in one step", _exact, exact=True),
}


def algorithm_named(name: str) -> Algorithm:
    """An entry of the menu; ``cfr-br:`` and a number is CFR-BR with a trunk of so many rounds."""
    plain, _, trunk = name.partition(":")
    if plain == "cfr-br" and trunk.isdecimal():
        vector, abstract = _cfr_br(int(trunk))
        return ALGORITHMS[plain]._replace(make=None, make_vector=vector, make_abstract=abstract)
    if name not in ALGORITHMS:
        raise RunError(f"unknown algorithm {name!r}: use one of {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]
