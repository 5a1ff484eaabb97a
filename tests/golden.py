"""Digits that solvers found before their code was rearranged: a net under changes that must not change any.

`python tests/golden.py` prints the combinations whose bits differ from those in ``data/golden.json``; with ``--write``
it writes the file anew. `test_golden` asks for ten digits, since other processors round some sums another way.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.buckets import AbstractionSpec, load_abstractions
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import BucketStep, Plan, RoundPlan
from kilt.arrays import Array
from kilt.games import load_game
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.solve import abstract_problem
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.counter import Against
from kilt.solve.problem import FlatProblem, VectorProblem
from kilt.solve.registry import make_solver
from kilt.solve.resolve import resolve
from kilt.solve.tables.disk_strategy import DiskProblem
from kilt.solve.tables.two_bytes import TwoByteProblem
from kilt.strategy.model import OpponentModel
from kilt.tree.flat import flat_tree
from kilt.tree.vector import VectorGame

FILE = Path(__file__).parent / "data" / "golden.json"
ITERATIONS = 5
THREE_ROUNDS = """GAMEDEF
limit
numPlayers = 2
numRounds = 3
blind = 10 5
raiseSize = 10 10 20
firstPlayer = 2 1 1
maxRaises = 2 1 1
numSuits = 1
numRanks = 9
numHoleCards = 2
numBoardCards = 0 1 1
END GAMEDEF
"""


@cache
def three_rounds() -> Holdem:
    """A game with a flop and a turn, small enough for any solver."""
    return Holdem(GameDef.parse(THREE_ROUNDS), "three rounds")


@cache
def folder() -> Path:
    """Where abstractions of cards are built."""
    return Path(tempfile.mkdtemp(prefix="kilt-golden-"))


def buckets(rules: str, threads: int = 1) -> AbstractProblem:
    """A game whose players see three buckets in each round."""
    return _with_cards(rules, threads, "ehs")


@cache
def _with_cards(rules: str, threads: int, feature: str) -> AbstractProblem:
    game = three_rounds() if rules == "three rounds" else load_game(rules)
    deal = Deal.from_game(game)
    plan = Plan(tuple(RoundPlan(feature == "ehs2", (BucketStep("ehs", 2),)) for _ in deal.board_sizes))
    name = f"{rules.replace(' ', '-')}-{feature}"
    place = folder() / name
    cards = load_abstractions([place]) if place.exists() else build(AbstractionSpec(name, deal, plan), place)
    return AbstractProblem(AbstractGame(game, cards), (place,), threads=threads)


def sequences(rules: str) -> AbstractProblem:
    """The same for players who remember the buckets of earlier rounds."""
    return _with_cards(rules, 1, "ehs2")


def hands(rules: str, dtype: type = np.float64, threads: int = 1) -> VectorProblem:
    """A game on its public tree."""
    game = three_rounds() if rules == "three rounds" else load_game(rules)
    return VectorProblem(VectorGame(game, threads=threads), dtype)


def flat(rules: str) -> FlatProblem:
    """A game written out."""
    return FlatProblem(flat_tree(load_game(rules)))


def against(problem: Any, confidence: str) -> Any:
    """A problem against a model of an opponent, whose counts are drawn."""
    draw = partial(np.random.default_rng(3).integers, 0, 4)
    if isinstance(problem, AbstractProblem):
        model = OpponentModel.of_abstract(problem.abstract, "Ann", draw(problem.abstract.slots).astype(float))
    elif isinstance(problem, VectorProblem):
        counts = problem.game.symmetrise(draw(problem.game.shape).astype(float))
        model = OpponentModel.of_vectors(problem.game, "Ann", counts)
    else:
        counts = draw(int(problem.tree.nodes.infoset_start[-1])).astype(float)
        model = OpponentModel.of_tree(problem.tree, "Ann", counts)
    return replace(problem, against=Against(model, 0.7, confidence))


PROBLEMS: dict[str, Callable[[], Any]] = {
    "flat kuhn": lambda: flat("kuhn"),
    "flat leduc": lambda: flat("leduc"),
    "flat leduc against": lambda: against(flat("leduc"), ""),
    "flat leduc biased": lambda: against(flat("leduc"), "0-10-linear"),
    "hands leduc": lambda: hands("leduc"),
    "hands leduc against": lambda: against(hands("leduc"), ""),
    "hands leduc biased": lambda: against(hands("leduc"), "0-10-linear"),
    "hands bluff": lambda: hands("bluff-1-1"),
    "hands three rounds": lambda: hands("three rounds"),
    "hands three rounds, single": lambda: hands("three rounds", np.float32),
    "hands three rounds, two threads": lambda: hands("three rounds", threads=2),
    "disk three rounds": lambda: DiskProblem(hands("three rounds").game),
    "buckets leduc": lambda: buckets("leduc"),
    "buckets three rounds": lambda: buckets("three rounds"),
    "buckets three rounds, two threads": lambda: buckets("three rounds", 2),
    "sequences leduc": lambda: sequences("leduc"),
    "sequences leduc against": lambda: against(sequences("leduc"), ""),
    "sequences leduc biased": lambda: against(sequences("leduc"), "0-10-linear"),
}
EVERY = ("cfr", "cfr+", "linear", "dcfr", "dcfr+", "pcfr+")
ALGORITHMS: dict[str, tuple[str, ...]] = {
    "flat kuhn": ("cfr", "pcfr+"),
    "flat leduc": (*EVERY, "cfr-br"),
    "flat leduc against": ("rnr",),
    "flat leduc biased": ("dbr",),
    "hands leduc": (*EVERY, "cfr+current", "cfr-br", "cs", "opcs", "spcs", "pcs", "pcs:dcfr", "pcs:pcfr+"),
    "hands leduc against": ("rnr",),
    "hands leduc biased": ("dbr",),
    "hands bluff": ("dcfr", "pcs"),
    "hands three rounds": ("cfr+", "cfr-br:1:dcfr", "cfr-br:2:linear"),
    "hands three rounds, single": ("dcfr", "dcfr+", "pcfr+"),
    "hands three rounds, two threads": ("dcfr+", "cfr-br:2"),
    "disk three rounds": ("cfr+disk", "cfr+disk:average"),
    "buckets leduc": ("linear", "pcfr+"),
    "buckets three rounds": ("dcfr+", "pcs", "pcs:dcfr", "cfr-br", "cfr-br:1:dcfr", "cfr+disk:average"),
    "buckets three rounds, two threads": ("dcfr",),
    "sequences leduc": ("joint", "joint:dcfr", "joint:pcfr+"),
    "sequences leduc against": ("rnr:joint",),
    "sequences leduc biased": ("dbr:joint",),
}


def solved(problem: str, algorithm: str) -> dict[str, Array]:
    """What a solver keeps and finds after a few iterations."""
    solver = make_solver(PROBLEMS[problem](), algorithm, seed=7)
    solver.step(ITERATIONS - 2)
    solver.step(2)
    return kept_by(solver)


def kept_by(solver: Any) -> dict[str, Array]:
    """All arrays of a solver: its state, its strategies, and the trunk of one that keeps the rest in files."""
    arrays = dict(solver.state())
    for name in ("average", "current"):
        strategy = getattr(solver, name)()
        if isinstance(strategy, np.ndarray):
            arrays[name] = strategy
        elif hasattr(strategy, "response_values"):
            arrays[name] = np.array([*strategy.response_values(), *strategy.expected_values()])
    return arrays


def drawn(variant: str) -> dict[str, Array]:
    """CFR-BR that keeps what it draws alone."""
    with patch.object(abstract_problem, "LARGE", 0):
        return solved("buckets three rounds", f"cfr-br:1:{variant}")


def in_two_bytes() -> dict[str, Array]:
    """CFR+ with tables of two bytes an entry."""
    problem = TwoByteProblem(hands("three rounds").game)
    solver = make_solver(problem, "cfr+:compact", seed=7)
    solver.step(ITERATIONS)
    return dict(solver.state())


def resolved(method: str) -> dict[str, Array]:
    """A subgame of Leduc that is solved anew."""
    game = load_game("leduc")
    values = np.linspace(-2, 2, 6)
    found = resolve(game, game.replay("cc/"), "Ks", 0, np.ones((2, 6)), values, method=method, iterations=ITERATIONS)
    return {"table": found.table}


CASES: dict[str, Callable[[], dict[str, Array]]] = {
    **{f"{problem}: {name}": partial(solved, problem, name) for problem, own in ALGORITHMS.items() for name in own},
    **{f"drawn: {variant}": partial(drawn, variant) for variant in ("cfr", "linear")},
    "two bytes": in_two_bytes,
    **{f"re-solved: {method}": partial(resolved, method) for method in ("gadget", "max-margin")},
}


def digits_of(arrays: dict[str, Array]) -> dict[str, list[Any]]:
    """For each array a name of its bits, −0.0 as 0.0, and three sums of its numbers."""
    found = {}
    for name, array in sorted(arrays.items()):
        bits = sha256(np.ascontiguousarray(array + 0).tobytes()).hexdigest()[:16]
        numbers = np.asarray(array, np.float64).ravel()
        weights = np.random.default_rng(len(numbers)).standard_normal((2, len(numbers)))
        found[name] = [bits, float(np.abs(numbers).sum()), *(weights @ numbers).tolist()]
    return found


def main() -> None:
    """Compare all combinations bit by bit, or write the file."""
    digits = {name: digits_of(case()) for name, case in CASES.items()}
    if "--write" in sys.argv:
        rows = (f"{json.dumps(name)}: {json.dumps(found)}" for name, found in digits.items())
        FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n")
        return
    golden = json.loads(FILE.read_text())
    for name in digits.keys() | golden.keys():
        here, there = digits.get(name, {}), golden.get(name, {})
        off = [array for array in sorted(here.keys() | there.keys()) if here.get(array) != there.get(array)]
        for array in off:
            sys.stdout.write(f"{name}, {array}: {here.get(array)}, expected {there.get(array)}\n")
    sys.stdout.write(f"{len(digits)} combinations compared\n")


if __name__ == "__main__":
    main()
