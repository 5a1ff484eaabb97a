"""[Brown15 algorithm 4]: sampling of boards, as printed and as in kilt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from kilt_lab.cells import NODES, Cell, CellBudget, Setting, changes, rows
from kilt_lab.claims import Claims, contrast, every, lower
from kilt_lab.experiment import Experiment, Lab
from kilt_lab.pieces.ranked_leduc import DEALS, BoardSampling, RankedLeduc

SOURCE = "[Brown15 algorithm 4]"
RANKS = (3, 6, 12)  # of the deck; also the number of classes of boards
BIAS = 1.0  # mbb/g that may be due to chance
LEVELS = (1, 2, 3)  # of workers, in a game with as many boards as the last of these
ALIKE = 20.0  # mbb/g by which runs of different levels may differ
PRINTED, WEIGHTED, MORE, ONE = "as printed", "a board of each class", "4 boards of each class", "1 board a deal"

WAYS = {
    PRINTED: BoardSampling(weighted=False),
    WEIGHTED: BoardSampling(),
    MORE: BoardSampling(samples=4),
    ONE: BoardSampling(boards=1),
} | {f"{boards} boards a deal": BoardSampling(boards=boards) for boards in (2, 4, 8)}


def _row(classes: int, way: str) -> str:
    return f"{classes} classes, {way}"


def _level(depth: int) -> str:
    return f"{depth} of 3 levels of blades, {ONE}"


def _games() -> Iterator[tuple[int, int, int, dict[str, BoardSampling]]]:
    """Yield ranks, suits and boards of each game, and how each of its rows samples boards."""
    for ranks in RANKS:
        yield ranks, 2, 1, {_row(ranks, way): how for way, how in WAYS.items() if how.boards < ranks}
    yield 5, 1, LEVELS[-1], {_level(depth): BoardSampling(boards=1, depth=depth) for depth in LEVELS}


GAMES = {row: (ranks, suits, boards, how) for ranks, suits, boards, ways in _games() for row, how in ways.items()}


@dataclass(frozen=True)
class BoardsSampled(Experiment):
    """Compare ways to sample boards, with and without weights, by exact exploitability on small games.

    How many boards should a solver sample in each deal? This experiment compares several numbers by exact
    exploitability after the same number of visited nodes. If threads are never idle, this means after the same time.

    The games of this experiment are versions of Leduc hold'em with more ranks. The board is a single card, and all
    boards of a rank form a class. Players see their exact hands, so exploitability converges to 0 if boards are sampled
    without bias.

    The paper's algorithm samples one board of every class in each deal, and weights all updates of a strategy table
    equally. This is biased, because a player's hand may leave different numbers of possible boards in different
    classes. Weights remove the bias.

    kilt can also sample fewer boards in each deal: one for each thread instead of one for each class. The solver then
    gets through more deals with the same number of nodes. This helps the strategy for the first betting round, in which
    there is no board yet (see ``solve.distributed.blades``).

    Worker processes can direct other workers, on several levels [Brown15 §3]. The experiment compares one, two and
    three levels of workers in a game of three boards, by exploitability after the same number of deals. The sampling of
    boards is unbiased with any number of levels.

    The comparison of levels uses short batches of deals. Workers that direct other workers send batches to them, and
    learn only when the answers come back. With long batches, more levels would mean older strategies.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Solve one of the games with the sampling of a row."""
        ranks, suits, boards, how = GAMES[case]

        def made() -> RankedLeduc:
            return RankedLeduc(ranks, lab.folder / f"{ranks}-{suits}-{boards}", suits, boards)

        game = lab.shared(f"{ranks}, {suits}, {boards}", made, per="experiment", alone=True)
        found, deals = game.solved(seed, lab.budget.whole, how)
        return Cell({case: found}, more={"deals": deals} | ({"nodes": lab.budget.whole} if boards == 1 else {}))


def _with_classes(classes: int) -> Claims:
    """Return the claims about a game with so many classes of boards."""
    weighted = _row(classes, WEIGHTED)
    return {
        f"tables of classes need no weights: with {classes} classes, omitting them costs at most {BIAS:g} "
        "mbb/g (kilt's margin)": contrast({weighted: 1.0, _row(classes, PRINTED): -1.0}, -BIAS),
        f"sampling a board of each of {classes} classes is less exploitable than sampling one board per deal, "
        "after the same number of nodes": lower(weighted, _row(classes, ONE)),
        f"sampling more boards of each of {classes} classes converges more slowly, by the number of nodes": (
            "[Brown15 §3]",
            lower(weighted, _row(classes, MORE)),
        ),
    }


ROWS = tuple(GAMES)
ALGORITHM_4 = BoardsSampled(
    "tartanian7-algorithm-4",
    SOURCE,
    "Sampling of boards, weights and levels of workers, as printed and as in kilt, on small games",
    rows=rows(ROWS, "mbb/g"),
    claims={says: slack for classes in RANKS for says, slack in _with_classes(classes).items()}
    | {
        f"workers on {after} levels reach the same exploitability as on {before}, within {ALIKE:g} mbb/g (kilt's "
        "margin)": (
            "[Brown15 §3]",
            every(
                contrast({_level(after): 1.0, _level(before): -1.0}, -ALIKE),
                contrast({_level(after): -1.0, _level(before): 1.0}, -ALIKE),
            ),
        )
        for before, after in pairwise(LEVELS)
    },
    hint=f"Leduc hold'em with {', '.join(map(str, RANKS))} ranks; rows about levels use {DEALS:,} deals",
    time="a few seconds for each run of each row",
    defaults=Setting(budget=CellBudget(NODES, 4_000_000), runs=8),
    quick=changes(jobs=0, only=ROWS[:4], runs=3),
    clocks=(NODES,),
)
