"""The motive of [Schmid15]: in stud, what the opponent sees of a hand tells hands apart that are worth the same.

The paper has no experiment about it. Here is one, on a game that is small enough for exact exploitability. Players of
three-card stud know their own cards, but up-cards by one of k classes alone, in four ways: classes of boards by the
earth mover's distance of their hands, as the paper has them for flops; as many of the same sizes at random; for each
hand by itself, boards on which it is about as strong; and, with k the number of boards, without loss.

The paper's example is two hands of the same cards, of which others are up. It takes players who forget which of their
cards are up, and therefore, with perfect recall, who have not seen their hole card in the first round. They are
compared with players who have not seen it either: some who know all else, and some who know classes of boards, as many
as do not tell apart more than those who forget do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

from kilt.abstraction.partition import partition
from kilt.abstraction.stud import StudBoards, Telling
from kilt.arrays import FloatArray
from kilt.errors import GameError
from kilt.evaluate.flops import Watcher
from kilt.games import load_game
from kilt.games.stud import Stud
from kilt.solve.cfr import Cfr
from kilt.solve.tables.flat import FlatTables
from kilt.tree.best_response import exploitability
from kilt.tree.flat import flat_tree
from kilt.viz.lines import plot_lines
from kilt.viz.picture import require_drawable
from kilt_lab.reproduce.claims import Claim, Row, lower
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request

GAME, SOURCE = "leduc-stud", "[Schmid15]"
CLASSES, ITERATIONS, RUNS = (2, 4, 8, 16), 100, 5
KINDS = "earth mover", "random", "strength"
ALL, UNSEEN = "every board", "every board, hole card unseen at first"
ALTOGETHER, AS_MANY = "own cards altogether, likewise", "as much told by classes, likewise"


class _Case(NamedTuple):
    """What players are told, in one of several runs."""

    tell: Callable[[int], Telling]  # by run
    hole: bool = True  # whether hole cards are seen in the first round
    drawn: bool = True  # whether runs differ


def _row(kind: str, k: int) -> str:
    return f"{kind}, {k} classes"


def _cases(boards: StudBoards, distances: FloatArray) -> dict[str, _Case]:
    def emd(k: int, run: int) -> list[int]:
        labels: list[int] = partition(distances, k, way="medoids", seed=run).labels.tolist()
        return labels

    def shuffled(k: int, run: int) -> list[int]:
        labels: list[int] = np.random.default_rng([k, run]).permutation(emd(k, run)).tolist()
        return labels

    def classes(sort: Callable[[int, int], list[int]], k: int, run: int) -> Telling:
        return boards.public(sort(k, run))

    def as_many(run: int) -> Telling:
        told = (classes(emd, k, run) for k in range(every, 0, -1))
        return next(tell for tell in told if boards.told(tell) <= boards.told(boards.altogether))

    every, found = len(boards.boards), dict[str, _Case]()
    for k in (k for k in CLASSES if k <= every):
        ways = partial(classes, emd, k), partial(classes, shuffled, k), partial(boards.by_strength, k)
        found |= {_row(kind, k): _Case(tell) for kind, tell in zip(KINDS, ways, strict=True)}
    found[ALL] = _Case(lambda run: boards.public(range(every)), drawn=False)
    found[UNSEEN] = found[ALL]._replace(hole=False)
    found[ALTOGETHER] = _Case(lambda run: boards.altogether, hole=False, drawn=False)
    found[AS_MANY] = _Case(as_many, hole=False)
    return found


def _boards(name: str) -> StudBoards:
    game = load_game(name)
    if not isinstance(game, Stud):
        raise GameError(f"{name} is no stud: use {GAME}, or a definition like it")
    return StudBoards(game)


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    path = asked.out or Path(TABLE.keeps)
    require_drawable(path)
    boards = _boards(asked.game or GAME)
    scale, runs = 1000 / boards.game.rules.big_blind, RUNS if asked.runs is None else asked.runs
    cases, rows = _cases(boards, boards.distances()), list[Row]()
    if missing := [row for row in asked.only if row not in cases]:
        raise GameError(
            f"{boards.game.name} has {len(boards.boards)} boards, too few for {missing[0]!r}: ask for fewer"
        )
    watcher.say(f"writing out {boards.game.name}")
    tree = flat_tree(boards.game)
    for row in asked.only or cases:
        case, found, inside, sets, began = cases[row], list[float](), list[float](), list[int](), perf_counter()
        for run in range(runs if case.drawn else 1):
            if watcher.stopped():
                return ReproductionResult(TABLE.what, rows)
            watcher.say(f"{row}, run {run + 1} of {runs if case.drawn else 1}")
            seen = boards.merged(tree, case.tell(run), hole=case.hole)
            solver = Cfr(FlatTables(seen.tree.nodes), "cfr+")
            solver.step(ITERATIONS)
            strategy = solver.average()
            found.append(scale * exploitability(tree, seen.lifted(strategy)))
            inside.append(scale * exploitability(seen.tree, strategy))
            sets.append(len(seen.tree.infosets))
        more = {"inside": float(np.mean(inside)), "information_sets": round(np.mean(sets))}
        whole = Row.of_runs(row, found, "mbb/g", perf_counter() - began, more)
        rows.append(whole if case.drawn else whole._replace(margin=None, runs=()))
    _draw(rows, path, boards.game.name)
    return ReproductionResult(TABLE.what, rows, path)


def _draw(rows: list[Row], path: Path, game: str) -> None:
    named = {row.name: row for row in rows}
    lines = {}
    for kind in KINDS:
        there = [(k, named[_row(kind, k)]) for k in CLASSES if _row(kind, k) in named]
        if there:
            lines[kind] = np.array([(k, row.ours, row.margin or 0.0) for k, row in there])
    says = "classes of up-cards", "exploitability [mbb/g]"
    plot_lines(lines, f"{SOURCE}: {game}", path, *says, logarithmic=(True, True))


TABLE = Reproduction(
    what="[Schmid15], the motive: classes of up-cards in three-card stud, by exact exploitability",
    time=f"some 4 s of CPU time for each of {RUNS} runs of {len(KINDS) * len(CLASSES) + 1} rows",
    rows=(*(_row(kind, k) for k in CLASSES for kind in KINDS), ALL, UNSEEN, ALTOGETHER, AS_MANY),
    run=_reproduce,
    options=("only", "game", "runs", "out"),
    hint="each of --runs has other starts of k-medoids, and other random classes of the sizes that come out",
    claims=(
        *(
            Claim(
                f"{k} classes by the earth mover's distance are less exploitable than as many at random",
                SOURCE,
                lower(_row(KINDS[0], k), _row(KINDS[1], k)),
            )
            for k in CLASSES
        ),
        *(
            Claim(
                f"{k} classes of boards are less exploitable than {k} steps of strength for each hand",
                SOURCE,
                lower(_row(KINDS[0], k), _row(KINDS[2], k)),
            )
            for k in CLASSES
        ),
        Claim(
            "players who forget which of their cards are up are more exploitable than those who know",
            f"{SOURCE}, motivation",
            lower(UNSEEN, ALTOGETHER),
        ),
        Claim(
            "… and than those who know classes of boards, which tell no more",
            f"{SOURCE}, motivation",
            lower(AS_MANY, ALTOGETHER),
        ),
    ),
    quick=Request(only=(_row(KINDS[0], 4), _row(KINDS[1], 4)), runs=3),
    keeps="kilt-schmid-stud.png",
)
