"""Solving: the CFR family, linear programmes, and the loop that runs them. `ALGORITHMS` is the menu.

>>> sorted(ALGORITHMS)[:3]
['cfr', 'cfr+', 'cfr-br']
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from kilt.solve.cfr import FullWidth
from kilt.solve.cfr_br import CfrBr
from kilt.solve.sampled import SCHEMES, Sampled
from kilt.solve.solver import Solver
from kilt.solve.variants import VARIANTS
from kilt.tree.flat import FlatNodes


class Algorithm(NamedTuple):
    """An entry of the menu."""

    make: Callable[[FlatNodes, int], Solver]  # from the nodes of a flat tree and a seed
    what: str
    responds: bool = False  # whether it takes best responses on the way


def _full_width(variant: str, nodes: FlatNodes, seed: int) -> Solver:
    return FullWidth(nodes, variant)


def _cfr_br(nodes: FlatNodes, seed: int) -> Solver:
    return CfrBr(nodes)


def _sampled(scheme: str, nodes: FlatNodes, seed: int) -> Solver:
    return Sampled(nodes, scheme, seed)


_WHAT = {
    "cfr": "counterfactual regret minimisation, full walks",
    "cfr+": "CFR+: regret matching+, average weighted by iteration",
    "linear": "linear CFR",
    "dcfr": "discounted CFR (1.5, 0, 2)",
    "pcfr+": "predictive CFR+, average weighted by the square of the iteration",
    "external": "Monte Carlo CFR with external sampling",
    "outcome": "Monte Carlo CFR with outcome sampling",
    "pure": "pure CFR: strategies are sampled as pure ones",
}
ALGORITHMS: dict[str, Algorithm] = {
    **{variant: Algorithm(partial(_full_width, variant), _WHAT[variant]) for variant in VARIANTS},
    "cfr-br": Algorithm(_cfr_br, "CFR against best responses", responds=True),
    **{scheme: Algorithm(partial(_sampled, scheme), _WHAT[scheme]) for scheme in SCHEMES},
}
