"""Play matches between two players on several processes, with the same result for any number of them.

Processes are started on this machine, or are workers of an engine.

Players swap seats every hand. In a duplicate match, every deal is played twice, with the players swapped, so that the
luck of the cards cancels. The pair of hands is one unit of the statistics, because its hands are not independent. A
duplicate match therefore resembles two tables, at each of which the players swap seats after every deal. A player who
remembers earlier hands has a separate copy at each table, and one process plays all hands of the match.

>>> from kilt.games import load_game
>>> from kilt.play.agent import BASELINES
>>> game = load_game("holdem.nolimit.2p")
>>> match = play_match(game, (BASELINES["always-raise"], BASELINES["always-fold"]), hands=4)
>>> match.players, match.hands, match.results.tolist()  # the blinds that were folded, per hand: 50 and 100
(('always-raise', 'always-fold'), 4, [75.0, 75.0])
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, islice
from multiprocessing import get_context, parent_process
from typing import NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from kilt.arrays import FloatArray
from kilt.engines import Crew, Engine, Job
from kilt.errors import PlayError, shortened
from kilt.games.holdem import Holdem
from kilt.machine import DecisionTime, Stopwatch
from kilt.play.agent import BASELINES, Agent, RememberingAgent, agent_for_match, with_current_names
from kilt.play.batch import UNITS, BatchMatch
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Dealer, Hand

MOST_HANDS = 1_000_000_000  # largest number of hands of a match: hours of compiled play, gigabytes of results
CHUNK = 64  # units per report of a process, if hands are played one by one
PLAYED, EXPECTED, AIVAT = "played", "expected", "aivat"  # methods of computing results: see `Match.way`
WORTHWHILE = 4.0  # seconds of remaining play that justify starting processes, which takes one or two seconds

T = TypeVar("T")
Load: TypeAlias = Callable[[str], Agent]
# returns chips of the first player
HandJudge: TypeAlias = Callable[[tuple[Agent, Agent], Sequence[Hand]], Sequence[float]]


class Chunk(NamedTuple):
    """The results of one part of a match, for several hands or duplicate pairs."""

    results: list[float]  # chips per hand that the first player won
    estimates: list[float]  # results of the `HandJudge`, if there is one
    hands: list[Hand]  # the hands, if they are kept
    thinking: tuple[DecisionTime, DecisionTime] = (
        DecisionTime(),
        DecisionTime(),
    )  # [player] decisions; none if batches are compiled


@dataclass(frozen=True, eq=False)
class Match:
    """The result of a match between two players.

    Attributes
    ----------
    players : (str, str)
        Names of the players.
    results : ndarray, shape (units,)
        Winnings of the first player, in chips per hand. A unit is a hand, or a pair of hands in a duplicate match.
    duplicate : bool
        Whether units are pairs of hands with the same cards and the players swapped.
    big_blind : int
        Big blind in chips.
    way : str
        Method: PLAYED, by playing hands; EXPECTED, expected values over all actions on dealt cards; or AIVAT, played
        hands with variance reduction. All three have the same expectation.
    played : ndarray, shape (units,), or None
        Raw winnings of the played hands, if `results` are not these winnings.
    seconds, cpu_seconds : float
        Wall time, and CPU time of all processes on this machine.
    thinking : (DecisionTime, DecisionTime)
        Number and CPU time of both players' decisions; empty for compiled play.
    """

    players: tuple[str, str]
    results: FloatArray
    duplicate: bool
    big_blind: int
    way: str = PLAYED
    played: FloatArray | None = None
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    thinking: tuple[DecisionTime, DecisionTime] = (DecisionTime(), DecisionTime())

    @property
    def hands(self) -> int:
        """Number of hands played."""
        return len(self.results) * (2 if self.duplicate else 1)


def load_once(player: Agent | str, load: Load | None) -> Agent:
    """Return the agent with a given name, loaded once per process.

    If `player` is an agent, it is returned.
    """
    if not isinstance(player, str):
        return with_current_names(player)
    if load is None:
        raise PlayError(f"the player {player!r} is a name, which needs `load` to make an agent of it")
    return load(player)


@dataclass(frozen=True, eq=False)
class MatchSetup:
    """A match's settings: the game, the players and the random seed.

    Any process can play any hand with them.
    """

    game: Holdem
    players: tuple[Agent | str, Agent | str]  # agents, or names from which `load` makes agents
    seed: int = 0
    duplicate: bool = True
    load: Load | None = None
    evaluator: HandJudge | None = None  # computes results with less variance than the winnings

    @cached_property
    def agents(self) -> tuple[Agent, Agent]:
        """Both players' agents, loaded at first use if given by name."""
        return load_once(self.players[0], self.load), load_once(self.players[1], self.load)

    @cached_property
    def tables(self) -> list[tuple[Agent, Agent]]:
        """The two agents at each table of the match.

        A duplicate match has two tables, others have one.
        """
        first, second = self.agents
        return [
            (agent_for_match(first, self.game), agent_for_match(second, self.game))
            for _ in range(2 if self.duplicate else 1)
        ]

    @property
    def remembers(self) -> bool:
        """Whether one of the players learns from earlier hands.

        One process must then play all hands in order.
        """
        return any(isinstance(agent, RememberingAgent) for agent in self.agents)

    @cached_property
    def dealer(self) -> Dealer:
        """The dealer that this process uses."""
        return Dealer(self.game, self.seed)

    @cached_property
    def compiled_match(self) -> BatchMatch | None:
        """An object that plays this match in compiled code, or None if that is impossible."""
        if not BatchMatch.can_play(self.game, self.agents):
            return None
        return BatchMatch(self.dealer, cast(tuple[BlueprintAgent, BlueprintAgent], self.agents), self.duplicate)

    @property
    def chunk_size(self) -> int:
        """The number of hands, or duplicate pairs, that a process plays before it reports results."""
        return UNITS if self.compiled_match else CHUNK

    def hands(self, unit: int, thinking: list[DecisionTime] | None = None) -> Iterator[Hand]:
        """Play a hand, or both hands of a duplicate pair, and yield the finished hands.

        Both hands of a pair have the same deal.

        Random choices depend only on seat and deal, so that an agent that plays itself plays the same hand twice. The
        players' decisions are added to `thinking` [player].
        """
        for number in (2 * unit, 2 * unit + 1) if self.duplicate else (unit,):
            agents = self.tables[(unit + number) % len(self.tables)]
            agents = agents if number % 2 == 0 else agents[::-1]
            seats = [DecisionTime(), DecisionTime()]
            yield self.dealer.play(number, agents, unit, seats)
            if thinking:
                thinking[:] = [before + seats[(number + player) % 2] for player, before in enumerate(thinking)]

    def first_player_winnings(self, hand: Hand) -> float:
        """Return the first player's winnings in a hand, in chips."""
        return hand.payoffs[hand.number % 2]

    def play(self, first: int, last: int, keep: bool) -> Chunk:
        """Play some hands or duplicate pairs of the match, and return their results.

        They have the numbers `first` to `last` − 1. If `keep` is set, the result includes their hands.
        """
        wanted, thinking = keep or self.evaluator is not None, [DecisionTime(), DecisionTime()]
        if self.compiled_match:
            results, hands = self.compiled_match.play(first, last, wanted)
        else:
            results, hands = [], []
            for unit in range(first, last):
                played = list(self.hands(unit, thinking))
                results.append(sum(map(self.first_player_winnings, played)) / len(played))
                if wanted:
                    hands += played
        estimates: list[float] = []
        if self.evaluator is not None:
            values = np.array(self.evaluator(self.agents, hands))
            estimates = values.reshape(len(results), -1).mean(axis=1).tolist()
        return Chunk(results, estimates, hands if keep else [], (thinking[0], thinking[1]))


def play_match(
    game: Holdem,
    players: tuple[Agent | str, Agent | str],
    hands: int,
    seed: int = 0,
    *,
    duplicate: bool = True,
    load: Load | None = None,
    processes: int = 1,
    engine: Engine | None = None,
    evaluator: HandJudge | None = None,
    sink: Callable[[Hand], None] | None = None,
    tick: Callable[[int], None] = lambda hands: None,
    stop: Callable[[], bool] = lambda: False,
) -> Match:
    """Play a match between two players, who swap seats after every hand.

    Parameters
    ----------
    game : Holdem
        The rules of a two-player game.
    players : pair of Agent or str
        Agents, or names for `load`. With several processes, agents are pickled; agents with much memory are better
        given by name, so that every process loads them itself.
    hands : int
        Number of hands; even in a duplicate match.
    seed : int
        Random seed of the cards and of agents. The result depends on it, but not on the number of processes.
    duplicate : bool
        Play every deal twice, with the players swapped: most of the luck of the cards cancels.
    load : callable, optional
        Makes an agent from a name, such as `kilt.players.agents.load_agent`. With several processes, it must be a
        function at the top level of a module, or a partial of such a function.
    processes : int
        Largest number of processes. Short matches, and those of players who remember, use only this process.
    engine : Engine, optional
        Runs the processes. Default: this machine.
    evaluator : callable, optional
        Computes results with less variance than the winnings: maps the agents and some hands to a value for each hand,
        in chips of the first player. With several processes it is pickled.
    sink : callable, optional
        Called with every `Hand`, in order.
    tick : callable
        Called repeatedly with the number of hands so far.
    stop : callable
        The match ends early, with fewer hands, once it returns True.

    Returns
    -------
    Match
        The results. `kilt.evaluate.stats.win_rate` computes a win rate with a 95% interval from it.

    Raises
    ------
    PlayError
        If the number of hands is invalid, an agent fails, or a process is lost.
    """
    table, watch = MatchSetup(game, players, seed, duplicate, load, evaluator), Stopwatch()
    units, per_unit = count_results(hands, duplicate=duplicate), 2 if duplicate else 1
    require_processes(processes)
    names = table.agents[0].name, table.agents[1].name
    results: list[float] = []
    estimates: list[float] = []
    thinking = DecisionTime(), DecisionTime()
    with closing(_chunks(table, units, processes, engine, keep=sink is not None)) as chunks:
        for chunk in chunks:
            results += chunk.results
            estimates += chunk.estimates
            thinking = thinking[0] + chunk.thinking[0], thinking[1] + chunk.thinking[1]
            for hand in chunk.hands:
                if sink:
                    sink(hand)
            tick(per_unit * len(results))
            if stop():
                break
    said = (np.array(estimates), np.array(results)) if evaluator else (np.array(results), None)
    way = AIVAT if evaluator else PLAYED
    return Match(names, said[0], duplicate, game.rules.big_blind, way, said[1], *watch.spent, thinking)


def require_hand_limit(hands: int) -> None:
    """Raise PlayError if a match has more than `MOST_HANDS` hands."""
    if hands > MOST_HANDS:
        raise PlayError(f"a match of {shortened(str(hands), 20)} hands is too long: use at most {MOST_HANDS:,}")


def count_results(hands: int, *, duplicate: bool) -> int:
    """Return the number of a match's independent results: duplicate pairs or, without them, hands.

    Raises PlayError if `hands` is invalid.
    """
    per_unit = 2 if duplicate else 1
    require_hand_limit(hands)
    if hands < 1 or hands % per_unit:
        remedy = "an even number, since duplicate matches play every deal twice" if duplicate else "at least 1"
        raise PlayError(f"a match of {hands} hands cannot be played: use {remedy}")
    return hands // per_unit


def require_processes(number: int) -> None:
    """Raise PlayError if the number of processes is below 1."""
    if number < 1:
        raise PlayError(f"a match cannot be played on {number} processes: use 1 or more")


def _chunks(
    table: MatchSetup, units: int, processes: int, engine: Engine | None, *, keep: bool
) -> Generator[Chunk, None, None]:
    """Yield the results of all units in order. If enough work is left, other processes play the rest."""
    bounds = [(first, min(first + table.chunk_size, units)) for first in range(0, units, table.chunk_size)]
    took = 0.0  # seconds of the last chunk: the first one may include compilation
    for done, (first, last) in enumerate(bounds):
        left = len(bounds) - done
        if (engine or processes > 1) and not table.remembers and done > 1 and took * left > WORTHWHILE:
            rest, others = bounds[done:], min(processes, left)
            if engine:
                yield from _on_engine(table, rest, others, engine, keep=keep)
            else:
                yield from _on_processes(table, rest, others, keep=keep)
            return
        begun = time.perf_counter()
        chunk = table.play(first, last, keep)
        took = time.perf_counter() - begun
        yield chunk


def _on_engine(
    table: MatchSetup, bounds: list[tuple[int, int]], workers: int, engine: Engine, *, keep: bool
) -> Generator[Chunk, None, None]:
    """Play the rest of a match on workers of an engine, each of which gets a copy of the setup."""
    turns = count()
    with Crew(engine, Job(replace, (_fresh(table),)), workers) as crew:
        yield from results_in_order(lambda part: crew.ask(next(turns), "play", *part, keep), bounds, workers)


def _on_processes(
    table: MatchSetup, bounds: list[tuple[int, int]], processes: int, *, keep: bool
) -> Generator[Chunk, None, None]:
    """Play the rest of a match on new processes of this machine."""
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _sit_down, (_fresh(table),))
    try:
        yield from results_in_order(lambda part: pool.submit(_play, *part, keep).result, bounds, processes)
    except BrokenProcessPool:
        raise PlayError(
            "a process of the match ended without an error message: it may have run out of memory, or a script lacks "
            "`if __name__ == '__main__':`; try fewer processes"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _fresh(table: MatchSetup) -> MatchSetup:
    """Return a copy of a setup to send to other processes, without the agents that this process has loaded."""
    fresh = replace(table)
    try:
        pickle.dumps(fresh)
    except Exception as error:
        names = " or ".join(agent.name for agent in table.agents)
        raise PlayError(
            f"{names} cannot be sent to another process ({error}): use names and `load`, or 1 process"
        ) from None
    # Compile the kernels of showdowns now: processes that store the same code at the same time can crash.
    table.dealer.play(0, (BASELINES["always-call"], BASELINES["always-call"]))
    return fresh


def results_in_order(
    ask: Callable[[tuple[int, int]], Callable[[], T]], bounds: list[tuple[int, int]], workers: int
) -> Iterator[T]:
    """Yield a match's results part by part, in order, while workers play later parts.

    Enough parts are requested early to keep all workers busy.
    """
    waiting: deque[Callable[[], T]] = deque()
    rest = iter(bounds)
    while True:
        waiting.extend(ask(part) for part in islice(rest, 4 * workers - len(waiting)))
        if not waiting:
            return
        yield waiting.popleft()()


_seats: list[MatchSetup] = []  # the setup, in a process of a match


def _sit_down(table: MatchSetup) -> None:
    """Initialise a process of a match. It ignores Ctrl-C, which its parent handles, and ends when its parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:

        def watch() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()
    _seats[:] = [table]


def _play(first: int, last: int, keep: bool) -> Chunk:
    return _seats[0].play(first, last, keep)
