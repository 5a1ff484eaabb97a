"""Matches: many hands between two players, on as many processes as there are, with the same result on any number.

Processes are started here, or are workers of an engine.

Players swap seats every hand. In a duplicate match every deal is played twice, with the players swapped, so that the
luck of the cards cancels; the pair is then one unit of the statistics, because its hands are not independent. It is as
if there were two tables, at each of which the players swap seats after every deal: of a player who remembers earlier
hands there is a copy at each table, which knows nothing of the other one. Such a match stays in one process.

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
from kilt.machine import Stopwatch, Thinking
from kilt.play.agent import BASELINES, Agent, RememberingAgent, begun
from kilt.play.batch import UNITS, BatchMatch
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Dealer, Hand

MOST_HANDS = 1_000_000_000  # of a match: hours of compiled play, and gigabytes of results
CHUNK = 64  # units that a process plays before it reports, where hands are played one by one
PLAYED, EXPECTED, AIVAT = "played", "expected", "aivat"  # how results of a match come about: see `Match`
WORTHWHILE = 4.0  # seconds of play left that pay for starting processes, which takes one or two

T = TypeVar("T")
Load: TypeAlias = Callable[[str], Agent]
HandJudge: TypeAlias = Callable[[tuple[Agent, Agent], Sequence[Hand]], Sequence[float]]  # chips to the first player


class Chunk(NamedTuple):
    """Some units of a match."""

    results: list[float]  # chips per hand that the first player won
    judged: list[float]  # what a `HandJudge` says of them, where there is one
    hands: list[Hand]  # if they are wanted
    thinking: tuple[Thinking, Thinking] = (Thinking(), Thinking())  # of both players, where they are asked one by one


@dataclass(frozen=True, eq=False)
class Match:
    """The result of a match.

    Attributes
    ----------
    players : (str, str)
        Their names.
    results : ndarray, shape (units,)
        What the first player won, in chips per hand. A unit is a hand, or a pair of hands in a duplicate match.
    duplicate : bool
        Whether units are pairs of hands with the same cards and the players swapped.
    big_blind : int
        In chips.
    way : str
        How the results came about: PLAYED, by playing; EXPECTED, on dealt cards by averaging over all actions; or
        AIVAT, from hands that were played, with much of their luck taken out. The mean is the same in each.
    played : ndarray, shape (units,), or None
        Results of hands that were played, where `results` are others.
    seconds, cpu_seconds : float
        What it took: wall time, and CPU time of all processes on this machine.
    thinking : (Thinking, Thinking)
        The decisions of both players and their CPU time; none of players whose hands are compiled.
    """

    players: tuple[str, str]
    results: FloatArray
    duplicate: bool
    big_blind: int
    way: str = PLAYED
    played: FloatArray | None = None
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    thinking: tuple[Thinking, Thinking] = (Thinking(), Thinking())

    @property
    def hands(self) -> int:
        """Number of hands that were played."""
        return len(self.results) * (2 if self.duplicate else 1)


def loaded_player(player: Agent | str, load: Load | None) -> Agent:
    """The player itself, or the agent that `load` makes from its name."""
    if not isinstance(player, str):
        return player
    if load is None:
        raise PlayError(f"the player {player!r} is a name, and nothing is given to load it with: give `load`")
    return load(player)


@dataclass(frozen=True, eq=False)
class MatchSetup:
    """All that a process needs to play any hand of a match."""

    game: Holdem
    players: tuple[Agent | str, Agent | str]  # agents, or specs that `load` makes agents from
    seed: int = 0
    duplicate: bool = True
    load: Load | None = None
    judge: HandJudge | None = None  # where more is wanted than what was won

    @cached_property
    def agents(self) -> tuple[Agent, Agent]:
        """The players; those given by name are loaded at the first hand, in each process."""
        return loaded_player(self.players[0], self.load), loaded_player(self.players[1], self.load)

    @cached_property
    def tables(self) -> list[tuple[Agent, Agent]]:
        """The players at each table of the match: two in a duplicate match, otherwise one."""
        first, second = self.agents
        return [(begun(first, self.game), begun(second, self.game)) for _ in range(2 if self.duplicate else 1)]

    @property
    def remembers(self) -> bool:
        """Whether a player remembers earlier hands: units then have to be played in order, by one process."""
        return any(isinstance(agent, RememberingAgent) for agent in self.agents)

    @cached_property
    def dealer(self) -> Dealer:
        """The dealer of the match in this process."""
        return Dealer(self.game, self.seed)

    @cached_property
    def batch(self) -> BatchMatch | None:
        """The match in compiled batches, hand for hand the same, where both players are blueprints."""
        if not BatchMatch.can_play(self.game, self.agents):
            return None
        return BatchMatch(self.dealer, cast(tuple[BlueprintAgent, BlueprintAgent], self.agents), self.duplicate)

    @property
    def chunk(self) -> int:
        """Units that a process plays before it reports."""
        return UNITS if self.batch else CHUNK

    def hands(self, unit: int, thinking: list[Thinking] | None = None) -> Iterator[Hand]:
        """Play the hands of a unit: two of the same deal in a duplicate match, otherwise one.

        Players draw at random by seat and deal: a player who meets itself plays the same hand twice. What their
        decisions take is added to `thinking` [player].
        """
        for number in (2 * unit, 2 * unit + 1) if self.duplicate else (unit,):
            agents = self.tables[(unit + number) % len(self.tables)]
            agents = agents if number % 2 == 0 else agents[::-1]
            seats = [Thinking(), Thinking()]
            yield self.dealer.play(number, agents, unit, seats)
            if thinking:
                thinking[:] = [before + seats[(number + player) % 2] for player, before in enumerate(thinking)]

    def won(self, hand: Hand) -> float:
        """Chips that the first player won in a hand."""
        return hand.payoffs[hand.number % 2]

    def play(self, first: int, last: int, keep: bool) -> Chunk:
        """Units `first` to `last` − 1, with their hands if they are to be kept."""
        wanted, thinking = keep or self.judge is not None, [Thinking(), Thinking()]
        if self.batch:
            results, hands = self.batch.play(first, last, wanted)
        else:
            results, hands = [], []
            for unit in range(first, last):
                played = list(self.hands(unit, thinking))
                results.append(sum(map(self.won, played)) / len(played))
                if wanted:
                    hands += played
        judged: list[float] = []
        if self.judge is not None:
            values = np.array(self.judge(self.agents, hands))
            judged = values.reshape(len(results), -1).mean(axis=1).tolist()
        return Chunk(results, judged, hands if keep else [], (thinking[0], thinking[1]))


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
    judge: HandJudge | None = None,
    sink: Callable[[Hand], None] | None = None,
    tick: Callable[[int], None] = lambda hands: None,
    stop: Callable[[], bool] = lambda: False,
) -> Match:
    """Play a match between two players, who swap seats every hand.

    Parameters
    ----------
    game : Holdem
        The rules, of two players.
    players : pair of Agent or str
        Agents, or names for `load`. On more than one process agents are pickled; those that hold much memory are better
        given by name, so that every process loads them for itself.
    hands : int
        Number of hands; even in a duplicate match.
    seed : int
        Of the cards and of what agents draw. The result depends on it, and not on the processes.
    duplicate : bool
        Play every deal twice, with the players swapped: most of the luck of the cards cancels.
    load : callable, optional
        Makes an agent from a name, such as `kilt.players.agents.load_agent`. For several processes it has to be a
        function of a module, or a partial of one.
    processes : int
        Number of processes at most. Short matches stay in this process, and so do those of players who remember.
    engine : Engine, optional
        Where the processes run; left out: on this machine.
    judge : callable, optional
        Says what hands are worth to the first player, in chips, where less luck is in that than in what was won: of the
        agents and some hands it makes a value for each. For several processes it is pickled.
    sink : callable, optional
        Is called with every `Hand`, in order.
    tick : callable
        Is called with the number of hands so far, now and then.
    stop : callable
        The match ends early, with fewer hands, once it returns True.

    Returns
    -------
    Match
        `kilt.evaluate.stats.win_rate` makes a win rate with its 95% interval of it.
    """
    table, watch = MatchSetup(game, players, seed, duplicate, load, judge), Stopwatch()
    units, per_unit = units_of(hands, duplicate=duplicate), 2 if duplicate else 1
    require_processes(processes)
    names = table.agents[0].name, table.agents[1].name
    results: list[float] = []
    judged: list[float] = []
    thinking = Thinking(), Thinking()
    with closing(_chunks(table, units, processes, engine, keep=sink is not None)) as chunks:
        for chunk in chunks:
            results += chunk.results
            judged += chunk.judged
            thinking = thinking[0] + chunk.thinking[0], thinking[1] + chunk.thinking[1]
            for hand in chunk.hands:
                if sink:
                    sink(hand)
            tick(per_unit * len(results))
            if stop():
                break
    said = (np.array(judged), np.array(results)) if judge else (np.array(results), None)
    way = AIVAT if judge else PLAYED
    return Match(names, said[0], duplicate, game.rules.big_blind, way, said[1], *watch.spent, thinking)


def require_few(hands: int) -> None:
    """Raise PlayError where a match has more than `MOST_HANDS` hands: it would not end, or fill the memory."""
    if hands > MOST_HANDS:
        raise PlayError(f"a match of {shortened(str(hands), 20)} hands would not end: ask for {MOST_HANDS:,} at most")


def units_of(hands: int, *, duplicate: bool) -> int:
    """Number of units of a match: hands, or pairs of them; PlayError where there can be no such match."""
    per_unit = 2 if duplicate else 1
    require_few(hands)
    if hands < 1 or hands % per_unit:
        remedy = "an even number, since duplicate matches play every deal twice" if duplicate else "1 at least"
        raise PlayError(f"a match of {hands} hands cannot be: give {remedy}")
    return hands // per_unit


def require_processes(number: int) -> None:
    """Raise PlayError unless the number of processes of a match is 1 or more."""
    if number < 1:
        raise PlayError(f"a match cannot be played on {number} processes: use 1 or more")


def _chunks(
    table: MatchSetup, units: int, processes: int, engine: Engine | None, *, keep: bool
) -> Generator[Chunk, None, None]:
    """Results of all units, in order, some at a time: in this process, or in others once that is worth their start."""
    bounds = [(first, min(first + table.chunk, units)) for first in range(0, units, table.chunk)]
    took = 0.0  # of the last chunk: the first one may have compiled or read something
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
    """The rest of a match on workers of an engine, each with a copy of the setup."""
    turns = count()
    with Crew(engine, Job(replace, (_fresh(table),)), workers) as crew:
        yield from ahead(lambda part: crew.ask(next(turns), "play", *part, keep), bounds, workers)


def _on_processes(
    table: MatchSetup, bounds: list[tuple[int, int]], processes: int, *, keep: bool
) -> Generator[Chunk, None, None]:
    """The rest of a match on processes that are started for it."""
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _sit_down, (_fresh(table),))
    try:
        yield from ahead(lambda part: pool.submit(_play, *part, keep).result, bounds, processes)
    except BrokenProcessPool:
        raise PlayError(
            "a process of the match has ended without a word: it may have run out of memory, or a script lacks "
            "`if __name__ == '__main__':`; try fewer processes"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _fresh(table: MatchSetup) -> MatchSetup:
    """A setup for other processes, without what this one has loaded."""
    fresh = replace(table)
    try:
        pickle.dumps(fresh)
    except Exception as error:
        names = " or ".join(agent.name for agent in table.agents)
        raise PlayError(
            f"{names} cannot be sent to another process ({error}): give specs and `load`, or use 1 process"
        ) from None
    # What a showdown compiles is stored now: processes that store the same code at once can crash.
    table.dealer.play(0, (BASELINES["always-call"], BASELINES["always-call"]))
    return fresh


def ahead(
    ask: Callable[[tuple[int, int]], Callable[[], T]], bounds: list[tuple[int, int]], workers: int
) -> Iterator[T]:
    """Results of all parts, in order; enough parts are asked for ahead that no worker waits."""
    waiting: deque[Callable[[], T]] = deque()
    rest = iter(bounds)
    while True:
        waiting.extend(ask(part) for part in islice(rest, 4 * workers - len(waiting)))
        if not waiting:
            return
        yield waiting.popleft()()


_seats: list[MatchSetup] = []  # in a process of a match: where it plays


def _sit_down(table: MatchSetup) -> None:
    """Begin a process of a match: it leaves Ctrl-C to its parent, and ends with it."""
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
