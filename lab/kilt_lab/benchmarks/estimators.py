"""``kilt bench estimators``: hands played and evaluated per second, and the reduction of variance by AIVAT.

Two agents play each other in limit hold'em. In no-limit hold'em, an agent without post-processing plays itself with
post-processing. Every core has a process with an equal part of the log. Rates are hands of all processes per second of
CPU time of one process, as on an otherwise idle machine. They include reading the log and exclude starting the
processes. The two agents of no-limit hold'em also play a match, including the time to build its betting tree, and a
local best response with six bet sizes in all rounds plays against the agent without post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from kilt.evaluate.estimators import estimator_named
from kilt.evaluate.lbr import lower_bound
from kilt.evaluate.log_estimates import LogCase
from kilt.games.playable import load_holdem
from kilt.jit import cores
from kilt.play.acpc import format_log_line
from kilt.play.columns import readable_hands
from kilt.play.match import MatchSetup, play_match
from kilt.players.agents import load_agent
from kilt.solve.external import ExternalMCCFR, SamplingOptions
from kilt.strategy.blueprint import Blueprint
from kilt_lab.benchmarks.measure import Figure
from kilt_lab.pieces.agents import game_in_buckets

CARDS = "IR-PHS-PHS 169-60-60-60"
LIMIT, NOLIMIT = "holdem.limit.2p", "holdem.nolimit.2p.50bb"
ACTIONS = "1x, a / 50%, 1x, a; 1x, a; a"
ITERATIONS = 1_000_000  # of external sampling: half a minute of one core
RULE = "@new-0.2"
HANDS = 10_000  # of a log, so that work per betting line counts for little
MATCH = 200_000  # hands of the match that is timed

# The key, the estimator, the game, and the share of the hands that are evaluated.
RATES = [
    ("divat_hands_per_second", "bc-divat", LIMIT, 1.0),
    ("all_cards_hands_per_second", "all-cards+early-folds", LIMIT, 1.0),
    ("all_cards_divat_hands_per_second", "all-cards+early-folds+bc-divat", LIMIT, 0.02),
    ("aivat_hands_per_second", "all-cards+aivat", NOLIMIT, 1.0),
]


def run(*, long: bool = False) -> list[Figure]:
    """Measure rates of estimators, and the standard deviation per hand of AIVAT relative to that of money."""
    hands, figures = HANDS * (5 if long else 1), []
    with TemporaryDirectory() as name:
        logs = {game: _log(Path(name), game, hands) for game in (LIMIT, NOLIMIT)}
        for key, estimator, game, share in RATES:
            run, text = logs[game]
            rate = _rate(run, game, estimator, text.splitlines()[: int(share * hands)])
            figures.append(Figure(key, f"{estimator}, {game}, all cores", rate, "hands/s"))
        run, text = logs[NOLIMIT]
        played = MATCH * (5 if long else 1)
        what = f"match of two blueprints, {NOLIMIT}, {played:,} hands, all cores"
        figures.append(Figure("match_hands_per_second", what, _match_rate(run, played), "hands/s"))
        rate = _lbr_rate(run, hands // 25)
        figures.append(Figure("lbr_hands_per_second", f"local best response, {NOLIMIT}, all cores", rate, "hands/s"))
        evaluator = _case(run, NOLIMIT, "basic", "all-cards+aivat").evaluator
        money, aivat = evaluator.summary([evaluator.evaluate(readable_hands(text, evaluator.game)[0])]).rows
        ratio = aivat.deviation / money.deviation
    return [
        *figures,
        Figure("aivat_sd_ratio", f"std. dev. per hand of AIVAT relative to money, {hands:,} hands", ratio, ""),
    ]


def _log(folder: Path, name: str, hands: int) -> tuple[str, str]:
    """Return a solved run of a game, and the log of its match with itself under another rule."""
    game, place = load_holdem(name), folder / name
    abstract = game_in_buckets(game, ACTIONS if name == NOLIMIT else "", CARDS, place / "cards")
    solver = ExternalMCCFR(abstract, 1, SamplingOptions(), cores())
    solver.step(ITERATIONS)
    Blueprint.of(abstract, solver.average()).save(place / "strategy", place / "cards")
    lines: list[str] = []
    players = load_agent(str(place)), load_agent(f"{place}{RULE}")
    play_match(game, players, hands, sink=lambda hand: lines.append(format_log_line(hand)))
    return str(place), "\n".join(lines)


def _case(run: str, game: str, *estimators: str) -> LogCase:
    estimated = tuple(map(estimator_named, estimators))
    return LogCase(load_holdem(game), run, run, estimators=estimated, load=load_agent)


def _slowest(timed: Callable[..., float], *parts: Iterable[Any]) -> float:
    """Return the CPU seconds of the slowest of as many processes as there are cores, each with one of the parts."""
    with ProcessPoolExecutor(cores(), get_context("spawn")) as pool:
        return max(pool.map(timed, *parts))


def _rate(run: str, game: str, estimator: str, lines: list[str]) -> float:
    """Return hands that one process per core evaluates while each spends a second of CPU time."""
    _timed(run, game, estimator, lines[:8])  # compiles kernels for all processes
    parts = [lines[part :: cores()] for part in range(cores())]
    return len(lines) / _slowest(partial(_timed, run, game, estimator), parts)


def _lbr_rate(run: str, hands: int) -> float:
    """Return hands that local best responses play, measured like `_rate`."""
    _timed_lbr(run, 2, 0)  # compiles kernels for all processes, and builds a table of edges
    return cores() * hands / _slowest(partial(_timed_lbr, run, hands), range(cores()))


def _timed_lbr(run: str, hands: int, seed: int) -> float:
    """Return CPU seconds of a local best response for some hands, with the agent loaded and kernels compiled."""
    agent = load_agent(run)
    for number in (2, hands):
        began = process_time()
        lower_bound(load_holdem(NOLIMIT), agent, number, seed)
    return process_time() - began


def _timed(run: str, game: str, estimator: str, lines: list[str]) -> float:
    """Return CPU seconds for some lines of a log, with the players loaded and kernels compiled."""
    evaluator = _case(run, game, estimator).evaluator
    for some in (lines[:8], lines):
        began = process_time()
        evaluator.evaluate(readable_hands("\n".join(some), evaluator.game)[0])
    return process_time() - began


def _match_rate(run: str, hands: int) -> float:
    """Return hands that one process per core plays while each spends a second of CPU time."""
    bounds = [hands // 2 * part // cores() for part in range(cores() + 1)]
    _play_timed(run, 0, 16)  # compiles kernels for all processes
    return hands / _slowest(partial(_play_timed, run), bounds[:-1], bounds[1:])


def _play_timed(run: str, first: int, last: int) -> float:
    """Return CPU seconds for some pairs of hands of a match, with the players loaded and kernels compiled."""
    table = MatchSetup(load_holdem(NOLIMIT), (load_agent(run), load_agent(f"{run}{RULE}")))
    table.play(first, first + 8, keep=False)
    began = process_time()
    for start in range(first, last, table.chunk_size):
        table.play(start, min(start + table.chunk_size, last), keep=False)
    return process_time() - began
