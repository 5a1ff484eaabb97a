"""Table 2.1 of [Johanson16]: what best responses win against four trivial agents in heads-up limit Texas hold'em.

The walk of section 2.4 over the public tree, whole and exact, one flop at a time. Flops are walked side by side and
added up in their order, so that what comes out depends neither on threads nor on interruptions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from time import perf_counter

import numpy as np

from kilt import __version__, artifact
from kilt.arrays import FloatArray, IntArray
from kilt.errors import RunError
from kilt.games import load_game
from kilt.jit import cores
from kilt.reproduce.reproduction import Reproduction, ReproductionResult, Request, Row, Watcher
from kilt.solve.problem import VectorProblem
from kilt.strategy.fixed import public_table
from kilt.strategy.vector import game_fingerprint
from kilt.tree.vector import VectorGame, Walk
from kilt.tree.vector_arrays import RESPOND

WHAT = "[Johanson16 table 2.1]: exploitability of four trivial agents in heads-up limit hold'em"
GAME = "holdem.limit.2p"
PAPER = {"always-fold": 750.0, "always-call": 1163.48, "always-raise": 3697.69, "call-or-raise": 2406.55}
ON_REQUEST = ("call-or-raise",)  # it reaches all there is, so that nothing can be skipped
FOLDER = Path("kilt-table-2.1")
KIND = "best response in parts"
OFTEN = 5.0  # seconds from one saving to the next, at least
LOOK = 2.0  # seconds of a first look at the pace, unless one flop takes longer


@dataclass
class Responses:
    """Best responses to an agent from both seats, as far as they have come. A *part* is a flop from one seat."""

    game: VectorGame
    agent: str
    path: Path  # where they are kept
    values: FloatArray  # [seat, chance node of the first round, hand] sums over the parts so far
    done: int = 0  # parts: the first flop from both seats, then the second, …
    seconds: float = 0.0  # of work

    def __post_init__(self) -> None:
        table = public_table(self.game, self.agent)
        self.walks = [Walk(seat, (RESPOND,), table, table) for seat in (0, 1)]
        self.work = np.repeat(rivers(self.game), 2)  # [part]
        self.before = np.concatenate([[0], np.cumsum(self.work)])  # [part] the work of those before it

    @classmethod
    def begun(cls, game: VectorGame, agent: str, folder: Path) -> Responses:
        """What was kept in a folder, or a fresh start."""
        path, entries = folder / agent, np.diff(game.tree.entry_start)[1]
        if not artifact.exists(path):
            if path.exists():
                raise RunError(f"{path} is there and holds no best responses: choose another folder, or remove it")
            return cls(game, agent, path, np.zeros((2, entries, game.shape[1])))
        found = artifact.read(path, KIND, check=True)
        made = found.parameters["agent"], found.inputs["game"], found.version
        wanted = agent, game_fingerprint(game.game), __version__
        if made != wanted:
            said = [f"{who} in the game {which}, kilt {version}" for who, which, version in (made, wanted)]
            raise RunError(f"{path} holds best responses to {said[0]}; this is {said[1]}: choose another folder")
        return cls(game, agent, path, np.array(found.arrays["values"]), **found.figures)

    def save(self) -> None:
        """Keep what there is."""
        artifact.write(
            self.path,
            KIND,
            {"values": self.values},
            inputs={"game": game_fingerprint(self.game.game)},
            parameters={"agent": self.agent},
            figures={"done": self.done, "seconds": self.seconds},
        )

    @property
    def complete(self) -> bool:
        """Whether all parts are done."""
        return self.done == len(self.work)

    @property
    def share(self) -> float:
        """How much of the work is done."""
        return float(self.before[self.done] / self.before[-1])

    def part(self, number: int) -> FloatArray:
        """What a part adds to the values of its seat."""
        flop, seat = divmod(number, 2)
        return self.game.part(self.walks[seat], flop, len(self.work) // 2)[: self.values.shape[1]]

    def time_left(self) -> float:
        """How many seconds the rest will take: as what is done says or, at the start, a look at a few flops."""
        if self.done and self.seconds > LOOK:
            return self.seconds * (1 / self.share - 1)
        _compile(self.game)
        began, seconds, work = perf_counter(), 0.0, 0
        with _pool(self.game.threads) as pool:
            for first in (2 * np.argsort(self.work[::2], kind="stable")).tolist():  # few rivers first, to be quick
                seconds += sum(pool.map(self._timed, (first, first + 1)))
                work += self.work[first : first + 2].sum()
                if perf_counter() - began > LOOK:
                    break
        return float(seconds / work * (self.before[-1] - self.before[self.done]) / self.game.threads)

    def _timed(self, number: int) -> float:
        began = perf_counter()
        self.part(number)
        return perf_counter() - began

    def go_on(self, watcher: Watcher) -> None:
        """Walk over what is left, or until somebody wishes to stop. What is done is kept."""
        began, earlier, start = perf_counter(), self.seconds, self.done
        kept = began
        coming, ahead = iter(range(start, len(self.work))), deque[Future[FloatArray]]()
        with _pool(self.game.threads) as pool:
            while True:
                if watcher.stopped():
                    ahead = deque(future for future in ahead if not future.cancel())  # what has begun will end
                else:
                    free = range(2 * self.game.threads - len(ahead))
                    ahead.extend(pool.submit(self.part, number) for _, number in zip(free, coming, strict=False))
                if not ahead:
                    break
                if wait([ahead[0]], timeout=0.2).done:
                    self.values[self.done % 2] += ahead.popleft().result()
                    self.done += 1
                now = perf_counter()
                self.seconds = earlier + now - began
                if now - kept > OFTEN:
                    self.save()
                    kept = perf_counter()
                walked, rest = np.diff(self.before[[start, self.done, -1]]).tolist()
                steady = self.done - start > 4 * self.game.threads
                watcher.show(self.agent, self.share, (now - began) / walked * rest if steady else None)
        self.save()

    def won(self) -> tuple[float, float]:
        """What a best response wins in each seat, in chips per game, once all parts are done."""
        first, second = (self.game.conclude(self.walks[seat], self.values[seat].copy()) for seat in (0, 1))
        return first, second


def rivers(game: VectorGame) -> IntArray:
    """[flop] how many last boards follow it: what a walk over it takes is in proportion to that."""
    tree = game.tree
    edges = np.arange(tree.board_start[1], tree.board_start[2] + 1)
    for _ in range(len(tree.rows) - 2):
        edges = tree.first_board[edges]
    return np.diff(edges)


def _compile(game: VectorGame) -> None:
    """Let the first use of a kernel not count as its pace."""
    table = public_table(game, "always-fold")
    game.part(Walk(0, (RESPOND,), table, table), 0, len(rivers(game)))


@contextmanager
def _pool(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that nobody waits for when something goes wrong."""
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    """The rows that are asked for, or those that take hours and not days."""
    folder, place = asked.out or FOLDER, f" --out {quote(str(asked.out))}" if asked.out else ""
    game = VectorGame(load_game(GAME), threads=cores() if asked.threads is None else asked.threads, by_board=False)
    rows: list[Row] = []
    for agent in asked.only or PAPER:
        command = f"kilt reproduce table-2.1 --only {agent}{place}"
        with artifact.alone(folder / agent):
            responses = Responses.begun(game, agent, folder)
            if not responses.complete:
                watcher.show(f"{agent}: a look at the pace", responses.share, None)
                left = responses.time_left()
                if agent in ON_REQUEST and agent not in asked.only:
                    watcher.say(f"{agent} is left out; to ask for it: {command}", left)
                    continue
                watcher.say(f"{agent}, {responses.share:.0%} done, kept in {folder}", left)
                responses.go_on(watcher)
        if not responses.complete:
            watcher.say(f"stopped; {responses.share:.1%} of {agent} are done and kept; to go on: {command}")
            break
        rows.append(_row(responses))
    return ReproductionResult(WHAT, rows)


def _row(responses: Responses) -> Row:
    """The mean over both seats beside what the paper has."""
    seats = [VectorProblem(responses.game).mbb(chips) or 0.0 for chips in responses.won()]
    agent = responses.agent
    return Row(agent, PAPER[agent], sum(seats) / 2, "mbb/g", responses.seconds, {"seats": seats})


TABLE = Reproduction(
    what=WHAT,
    time="an hour or two for three rows, on two cores; the fourth, on request, days",
    rows=tuple(PAPER),
    run=_reproduce,
    options=("only", "threads", "out"),
)
