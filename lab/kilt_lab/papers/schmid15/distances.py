"""[Schmid15]: the history-aware distance, and the paper's motivation, three-card stud."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from kilt.abstraction.partition import partition
from kilt.abstraction.stud import StudBoards, Telling
from kilt.arrays import FloatArray
from kilt.errors import GameError
from kilt.games import load_game
from kilt.games.stud import Stud
from kilt.solve.cfr import Cfr
from kilt.solve.tables.flat import FlatTables
from kilt.tree.best_response import exploitability
from kilt.tree.flat import FlatTree, flat_tree
from kilt_lab.cells import Axes, Cell, RowSpec, Setting, changes, rows
from kilt_lab.claims import as_printed, lower
from kilt_lab.experiment import Experiment, Lab
from kilt_lab.papers.johanson16.chapter_5 import emd, histograms

# Both hands have the nuts on their flop, and almost certainly at the end.
WEAK, STRONG = ("5c2h", "5d5h5s"), ("AsAh", "AcAdTh")
BEFORE, ON_FLOP = "52o and AA before the flop", "… and on flops that make both the best hand"
AWARE = "history-aware distance"
PAPER_2 = {BEFORE: 50.854, ON_FLOP: 0.0, AWARE: 25.427}  # as printed
BINS = 100


@dataclass(frozen=True)
class HistoryAware(Experiment):
    """Compute three distances between 52o and AA: before the flop, on flops that give both the nuts, and their mean."""

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Measure all three distances."""
        before = emd(*histograms([WEAK[0], STRONG[0]], "", BINS))
        weak, strong = (histograms([hand], board, BINS)[0] for hand, board in (WEAK, STRONG))
        on_flop = emd(weak, strong)
        return Cell({BEFORE: before, ON_FLOP: on_flop, AWARE: (before + on_flop) / 2}, exact=True)


FIGURE_2 = HistoryAware(
    "schmid-figure-2",
    "[Schmid15 figure 2]",
    "Distances of 52o and AA, 100 bins",
    rows=rows(PAPER_2, "bins", paper=PAPER_2, cases=("distances",)),
    claims={
        f"the {says} {PAPER_2[name]:g} bins": as_printed(name, 5e-4)
        for name, says in {
            BEFORE: "distance of 52o and AA before the flop is",
            ON_FLOP: "distance of 52o and AA on flops that give both the nuts is",
            AWARE: "history-aware distance of 52o and AA is half of that before the flop:",
        }.items()
    },
    hint="our copy lacks the paper's flops; the experiment uses two on which each hand has the nuts",
    time="seconds",
    defaults=Setting(runs=0),
)

GAME, SOURCE = "leduc-stud", "[Schmid15]"
CLASSES, ITERATIONS = (2, 4, 8, 16), 100
KINDS = "earth mover", "random", "strength"
ALL, UNSEEN = "every board", "every board, hole card unseen at first"
ALTOGETHER, AS_MANY = "own cards altogether, likewise", "as much told by classes, likewise"


class _Case(NamedTuple):
    """The information that players get, by run."""

    tell: Callable[[int], Telling]  # by run
    hole: bool = True  # whether players see their hole card in the first round
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
        return boards.observe_classes(sort(k, run))

    def as_many(run: int) -> Telling:
        told = (classes(emd, k, run) for k in range(every, 0, -1))
        return next(
            tell
            for tell in told
            if boards.count_observations(tell) <= boards.count_observations(boards.observe_all_cards)
        )

    every, found = len(boards.boards), dict[str, _Case]()
    for k in (k for k in CLASSES if k <= every):
        ways = partial(classes, emd, k), partial(classes, shuffled, k), partial(boards.observe_strength, k)
        found |= {_row(kind, k): _Case(tell) for kind, tell in zip(KINDS, ways, strict=True)}
    found[ALL] = _Case(lambda run: boards.observe_classes(range(every)), drawn=False)
    found[UNSEEN] = found[ALL]._replace(hole=False)
    found[ALTOGETHER] = _Case(lambda run: boards.observe_all_cards, hole=False, drawn=False)
    found[AS_MANY] = _Case(as_many, hole=False)
    return found


def _boards(name: str) -> StudBoards:
    game = load_game(name)
    if not isinstance(game, Stud):
        raise GameError(f"{name} is not a stud game: use {GAME}, or a definition like it")
    return StudBoards(game)


class Written(NamedTuple):
    """Data that all rows share: the game as a flat tree, and the information that players may get."""

    boards: StudBoards
    tree: FlatTree
    cases: dict[str, _Case]


def _written(game: str) -> Written:
    boards = _boards(game)
    return Written(boards, flat_tree(boards.game), _cases(boards, boards.distances()))


@dataclass(frozen=True)
class UpCards(Experiment):
    """Compare classes of up-cards in three-card stud by exact exploitability.

    In stud poker, some of each player's cards lie face up, so both players see them. There are too many boards of
    up-cards to treat each separately, so the paper proposes to sort them into classes. It does not test this idea in
    stud.

    This experiment tests classes of up-cards in a game of stud that is small enough for exact exploitability. A player
    knows its own cards, but only the class of the up-cards on the table. Four ways to make classes are compared:

    - By earth mover's distance: boards on which hands have similar strengths share a class. The paper defines this
      distance for flops.
    - At random, with classes of the same sizes.
    - By strength steps: boards are sorted for each hand separately. Boards on which the hand is about equally strong
      share a class.
    - Without loss: each board is a class of its own.

    Why does the paper want classes of up-cards? Two hands can consist of the same cards, but differ in which card lies
    face up. A player who cannot tell such hands from each other has forgotten which of its cards the opponent sees. The
    experiment tests the cost of such forgetting.

    The forgetful players of this experiment do not look at their hole card, which lies face down, in the first round. A
    player with perfect recall who saw it then would never forget which of its cards lies face up.

    Forgetful players are compared with two other kinds of players. No player looks at the hole card in the first round.
    Players of the first kind forget nothing afterwards. Players of the second kind know only the class of the up-cards,
    with so few classes that they know no more than forgetful players do.
    """

    def check(self, setting: Setting) -> None:
        """Raise GameError if a requested row needs more boards than the game has."""
        if setting.game != self.defaults.game:
            boards = _boards(setting.game)
            known = _cases(boards, boards.distances()) if setting.only else {}
            if missing := [row for row in setting.only if row not in known]:
                raise GameError(
                    f"{boards.game.name} has {len(boards.boards)} boards, too few for {missing[0]!r}: use fewer classes"
                )

    def cases(self, setting: Setting) -> list[str]:
        """Return the rows for which the game has enough boards."""
        most = len(_boards(setting.game).boards)
        few = {_row(kind, k) for kind in KINDS for k in CLASSES if k > most}
        return [case for case in super().cases(setting) if case not in few]

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Solve the game with the information of a row. The cell has exploitability in the full game, in mbb/g."""
        known = lab.shared("game", lambda: _written(lab.game), per="experiment")
        told, scale = known.cases[case], 1000 / known.boards.game.rules.big_blind
        seen = known.boards.merge_observations(known.tree, told.tell(seed), hole=told.hole)
        solver = Cfr(FlatTables(seen.tree.nodes), "cfr+")
        solver.step(ITERATIONS)
        strategy = solver.average()
        found, inside = exploitability(known.tree, seen.lifted(strategy)), exploitability(seen.tree, strategy)
        more = {"inside": scale * inside, "information_sets": len(seen.tree.infosets)}
        return Cell({case: scale * found}, not told.drawn, more)


STUD = UpCards(
    "schmid-stud",
    SOURCE,
    "Classes of up-cards in three-card stud, compared by exact exploitability",
    rows=(
        *(RowSpec(_row(kind, k), "mbb/g", at=(kind, k)) for k in CLASSES for kind in KINDS),
        *rows((ALL, UNSEEN, ALTOGETHER, AS_MANY), "mbb/g"),
    ),
    axes=Axes("classes of up-cards", "exploitability [{unit}]"),
    claims={
        **{
            f"{k} classes by the earth mover's distance are less exploitable than {k} random classes": lower(
                _row(KINDS[0], k), _row(KINDS[1], k)
            )
            for k in CLASSES
        },
        **{
            f"{k} classes of boards are less exploitable than {k} strength steps for each hand": lower(
                _row(KINDS[0], k), _row(KINDS[2], k)
            )
            for k in CLASSES
        },
        "players who forget which of their cards are up are more exploitable than players who remember": (
            f"{SOURCE}, motivation",
            lower(UNSEEN, ALTOGETHER),
        ),
        "players who forget which of their cards are up are more exploitable than players who know classes of "
        "boards that give no more information": (f"{SOURCE}, motivation", lower(AS_MANY, ALTOGETHER)),
    },
    hint="each of --runs has other starts of k-medoids, and other random classes of the same sizes",
    time=f"about 4 s of CPU time for each run of {len(KINDS) * len(CLASSES) + 1} rows",
    defaults=Setting(GAME, runs=5),
    quick=changes(only=(_row(KINDS[0], 4), _row(KINDS[1], 4)), runs=3),
)
