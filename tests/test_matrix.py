"""Every algorithm, in every form it has, on every small game reaches a stated exploitability."""

from __future__ import annotations

import pytest

from kilt.evaluate.evaluator import evaluator_for
from kilt.solve.problem import ABSTRACT, DISK
from kilt.solve.registry import ALGORITHMS, make_solver
from kilt.solve.variants import BOUNDED, VARIANTS
from written_out import problem_of

GAMES = ("kuhn", "leduc", "one-card", "bluff-1-1")
# Kinds of algorithms: iterations, and the exploitability in chips per game reached by then, for each of the games.
FULL = dict(zip(GAMES, [(1000, 2e-3), (500, 0.03), (1000, 1e-3), (100, 0.03)], strict=True))
CURRENT = dict(zip(GAMES, [(1000, 0.03), (500, 0.03), (1000, 0.01), (100, 0.03)], strict=True))
RESPONDING = dict(zip(GAMES, [(500, 0.02), (300, 0.15), (300, 0.01), (60, 0.2)], strict=True))
SAMPLED = dict(zip(GAMES, [(20_000, 0.02), (200_000, 0.12), (40_000, 0.02), (100_000, 0.1)], strict=True))
OUTCOME = dict(zip(GAMES, [(50_000, 0.02), (500_000, 0.3), (50_000, 0.04), (500_000, 0.3)], strict=True))
DRAWN = dict(zip(GAMES, [(3000, 0.03), (4000, 0.3), (4000, 0.1), (400, 0.3)], strict=True))
EXACT = dict.fromkeys(GAMES, (1, 1e-8))
KINDS = {
    **dict.fromkeys(VARIANTS | BOUNDED, FULL),
    "cfr+current": CURRENT,
    "cfr-br": RESPONDING,
    **dict.fromkeys(["external", "pure"], SAMPLED),
    "outcome": OUTCOME,
    **dict.fromkeys(["cs", "opcs", "spcs", "pcs"], DRAWN),
    "lp": EXACT,
}


def test_the_matrix_is_whole():
    assert set(KINDS) == {name for name, entry in ALGORITHMS.items() if {*entry.forms} - {DISK, ABSTRACT}}


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize(
    ("algorithm", "form"),
    [(name, form) for name, entry in ALGORITHMS.items() for form in entry.forms if form not in (DISK, ABSTRACT)],
)
def test_convergence(algorithm, form, game):
    problem = problem_of(game, form)
    solver = make_solver(problem, algorithm, seed=1)
    iterations, bound = KINDS[algorithm][game]
    solver.step(iterations)
    assert 0 <= evaluator_for(problem).exploitability(solver.average()) < bound
