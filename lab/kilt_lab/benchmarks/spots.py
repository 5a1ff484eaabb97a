"""``kilt bench spots``: spots of TexasSolver's sample input, to 0.5% of the pot; decisions that re-solve."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

from kilt.config import ResolveConfig
from kilt.games.game import REVEAL
from kilt.games.playable import load_holdem
from kilt.play.agent import Observation
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Hand
from kilt.play.match import play_match
from kilt.search.agent import ResolvingAgent
from kilt.solve.external import ExternalMCCFR, SamplingOptions
from kilt.spots.spot import Spot
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.postprocess import rule_named
from kilt_lab.benchmarks import texas_solver
from kilt_lab.benchmarks.measure import Figure, interleaved, peak_gb
from kilt_lab.pieces.agents import game_in_buckets

THREADS = 2
TARGET = 0.5  # percent of the pot
# Board, pot, stacks and bets of resources/text/commandline_sample_input.txt of TexasSolver, and similar ranges.
FIRST = (
    "QQ:0.5,JJ:0.75,TT,99,88,77,66,55,44,33,22,AKo:0.25,AQs,AQo:0.75,AJs,AJo:0.75,ATs,ATo:0.75,A9s,A8s,A7s,A6s,A5s,"
    "A4s,A3s,A2s,KQ,KJs,KJo:0.75,KTs,KTo:0.25,K9s,K8s,K7s,K6s,K5s:0.5,QJs,QJo:0.75,QTs,Q9s,Q8s,JTs,JTo:0.25,J9s,J8s,"
    "T9s,T8s,T7s,98s,97s,96s,87s,86s,76s,75s,65s,64s,54s,53s,43s"
)
SECOND = (
    "AA,KK,QQ,JJ,TT,99:0.75,88:0.75,77:0.5,66:0.25,55:0.25,AK,AQs,AQo:0.75,AJs,AJo:0.5,ATs:0.75,A6s:0.25,A5s:0.75,"
    "A4s:0.75,A3s:0.5,A2s:0.5,KQs,KQo:0.5,KJs,KTs:0.75,K5s:0.25,K4s:0.25,QJs:0.75,QTs:0.75,Q9s:0.5,JTs:0.75,J9s:0.75,"
    "J8s:0.75,T9s:0.75,T8s:0.75,T7s:0.75,98s:0.75,97s:0.75,96s:0.5,87s:0.75,86s:0.5,85s:0.5,76s:0.75,75s:0.5,65s:0.75,"
    "64s:0.5,54s:0.75,53s:0.5,43s:0.5"
)
BOARD = ("QsJh2h", "Tc", "7d")
BETS = {"flop": (50, 50), "turn": (50, 60), "river": (50, 60)}  # bets and raises in percent of the pot, without all-in
# The agent of `kilt demo`, with buckets that are faster to build.
GAME, CARDS, ACTIONS = "holdem.nolimit.2p.50bb", "IR-PHS-PHS 169-20-20-20", "1x, a / 50%, 1x, a; 1x, a; a"
LEARNT, HANDS = 1_000_000, 200  # iterations of the blueprint, and hands of its match against itself
# Iterations of a re-solve. 12 on the turn lose as little as 16 that do not begin with the strategy of the blueprint.
DECISIONS = {"turn": 12, "river": 75}
MEASURED = 15  # decisions of each kind; the size of their trees depends on the pot


def spot(round_name: str) -> Spot:
    """Return the spot on the flop, the turn or the river."""
    first, raised = BETS[round_name]
    bets = f"{first}%, a; {raised}%, a"
    cards = "".join(BOARD[: ("flop", "turn", "river").index(round_name) + 1])
    # `near` has half the pot, like TexasSolver's threshold, so that both solve similar trees.
    return Spot(board=cards, pot=50, stacks=200, ranges=(FIRST, SECOND), bets=bets, near=0.67, big_blind=1)


def run(*, long: bool = False, peer: Path | None = None) -> list[Figure]:
    """Measure the time to solve spots to 0.5% of the pot on two threads, including the tree: wall time and CPU time.

    `peer` is the path of TexasSolver's program, which solves each spot in turn.
    """
    peer = peer and texas_solver.require(peer)
    figures = _measured(("river", "turn"), 7 if long else 5, peer)
    figures += _decisions()
    if long:
        figures += _measured(("flop",), 1, peer)
        figures.append(Figure("flop_gb", "… peak memory of the process", peak_gb(), "GB"))
    return figures


def _measured(names: Sequence[str], rounds: int, peer: Path | None) -> list[Figure]:
    """Measure medians of wall time, of CPU time of all threads, and of the peer's time."""
    spots = {name: spot(name) for name in names}
    cpu: dict[str, list[float]] = {name: [] for name in spots}
    said: dict[str, list[float]] = {name: [] for name in spots}

    def solve(name: str) -> None:
        began = process_time()
        spots[name].solve(TARGET, threads=THREADS)
        cpu[name].append(process_time() - began)

    def ask(program: Path, name: str) -> None:
        told = texas_solver.commands(spots[name], BETS[name], TARGET, THREADS)
        said[name].append(texas_solver.seconds_of(program, told, TARGET))

    contestants: dict[str, Callable[[], object]] = {name: partial(solve, name) for name in spots}
    if peer:
        contestants |= {f"peer_{name}": partial(ask, peer, name) for name in spots}
    seconds, figures = interleaved(contestants, rounds=rounds), list[Figure]()
    for name in spots:
        what = f"{name} to {TARGET}% of the pot, {THREADS} threads"
        figures.append(Figure(f"{name}_seconds", what, seconds[name], "s"))
        figures.append(Figure(f"{name}_cpu_seconds", "… CPU time of all threads", median(cpu[name][1:]), "s"))
        if peer:
            theirs = median(said[name][1:])
            figures.append(Figure(f"peer_{name}_seconds", "… TexasSolver, as it reports", theirs, "s"))
            figures.append(Figure(f"{name}_ratio", "… its time to kilt's", theirs / seconds[name], ""))
    return figures


def _decisions() -> list[Figure]:
    """Return median times of decisions that begin a subgame, from hands of a blueprint against itself."""
    game, figures = load_holdem(GAME), list[Figure]()
    with TemporaryDirectory() as folder:
        abstract = game_in_buckets(game, ACTIONS, CARDS, Path(folder) / "cards")
        solver = ExternalMCCFR(abstract, 1, SamplingOptions(linear=True))  # one thread, so that hands are reproducible
        solver.step(LEARNT)
        blueprint = BlueprintAgent("learnt", Blueprint.of(abstract, solver.average()), rule_named("new-0.2"))
        played: list[Hand] = []
        play_match(game, (blueprint, blueprint), HANDS, duplicate=False, sink=played.append)
        for name, iterations in DECISIONS.items():
            agent = ResolvingAgent(name, blueprint, ResolveConfig(name, iterations=iterations, threads=THREADS))
            seen: dict[str, list[float]] = {"ms": [], "cpu_ms": []}
            for observation in islice(_begun(agent, played), MEASURED + 1):  # the first decision compiles kernels
                began = perf_counter(), process_time()
                agent.act(observation)
                seen["ms"].append(1000 * (perf_counter() - began[0]))
                seen["cpu_ms"].append(1000 * (process_time() - began[1]))
            what = f"a decision that re-solves the {name}, three bet sizes, {iterations} iterations, {THREADS} threads"
            figures.append(Figure(f"resolve_{name}_ms", what, median(seen["ms"][1:]), "ms"))
            figures.append(Figure(f"resolve_{name}_cpu_ms", "… CPU time", median(seen["cpu_ms"][1:]), "ms"))
    return figures


def _begun(agent: ResolvingAgent, played: list[Hand]) -> Iterator[Observation]:
    """Yield the observations of the first player to act in the round that an agent re-solves."""
    positions = agent.game.positions
    for hand in played:
        for before, action in positions.moves_to(hand.position):
            after = positions.after(before, action)
            if action == REVEAL and after.round == agent.first_round and after.actor >= 0:
                board = hand.cards.board[: agent.game.rules.board_size(after.round)]
                yield Observation(after, hand.cards.holes[after.actor], board, 0)
