"""Compute best responses flop by flop, for games too large for memory [Johanson16 §2.4].

A *flop* is a canonical board of the second round, whatever its number of cards. The values of the boards that follow a
flop are a small array; the arrays of all flops are added in a fixed order, so that results do not depend on threads,
workers or interruptions. A random sample of flops gives an estimate: see `FlopResponses.estimate`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np

from kilt import __version__, artifact
from kilt.arrays import Array, FloatArray, IntArray
from kilt.engines import Crew
from kilt.errors import RunError
from kilt.evaluate.stats import student_width
from kilt.jit import cores
from kilt.solve.abstract import BucketedGame, bucket_layouts
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.problem import CPU, GPU, require_device
from kilt.tree.cardless import CardlessWalk, looks_at_cards
from kilt.tree.parts import flop_tree, following_boards
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import ANSWER, FOLLOW, RESPOND, Table, TableLayout, VectorTree
from kilt.tree.walks import Walk

KIND = "best response in parts"
CHECKPOINT_SECONDS = 5.0  # minimum seconds between two checkpoints
MEASURING_SECONDS = 2.0  # seconds of the first measurement of speed, unless one flop takes longer

# layouts of both players on the boards of a part of a tree
Layouts = Callable[[VectorTree], tuple[TableLayout, TableLayout]]


class ProgressMonitor(Protocol):
    """The interface of objects that show the progress of long computations, and can stop them."""

    def say(self, text: str, takes: float | None = None) -> None:
        """Show a message about the next step, with its estimated duration in seconds."""

    def show(self, what: str, done: float, left: float | None) -> None:
        """Show the finished share of a step, and the remaining seconds if known."""

    def stopped(self) -> bool:
        """Return whether the user has asked to stop."""


class FlopWalks:
    """Computes best responses to a strategy, with one pass over the public tree for each flop.

    Parameters
    ----------
    game : VectorGame
        The whole game, with tables that are not by board.
    table : ndarray
        The strategy: entries of a decision are proportional to its probabilities.
    layouts : callable, optional
        Returns the table layouts of both players on the boards of a part of the tree. By default, rows do not depend on
        boards.
    """

    def __init__(self, game: VectorGame, table: Table, layouts: Layouts | None = None) -> None:
        self.game, self.table, self.layouts = game, table, layouts or (lambda _: game.layouts)
        self.threads = game.threads  # parts that are started side by side
        self.abreast = game.threads  # parts that are walked at a time
        self._known: dict[int, Future[Any]] = {}
        self._lock = Lock()

    def best_response_values(self, flop: int, seat: int) -> FloatArray:
        """Return the winnings of a best response with each hand on one flop.

        The shape is (chance nodes of the first round, hands). Values are weighted by the flop's share of all boards.
        """
        tree, layouts = self.load_flop_data(flop)
        return self.game.flop_values(self._walk(seat, RESPOND, layouts), tree)

    def load_flop_data(self, flop: int) -> Any:
        """Return what best responses need to know about a flop: its boards, and where tables store them.

        The data are cached.

        A few flops are cached, so that the second seat finds the data of the first.
        """
        with self._lock:
            known = self._known.get(flop)
            if known is None:
                if len(self._known) > 2 * self.threads:
                    self._known.pop(next(iter(self._known)))
                mine = self._known[flop] = Future[Any]()
        if known is None:
            try:
                mine.set_result(self.compute_flop_data(flop))
            except BaseException as error:
                mine.set_exception(error)
        return (known or mine).result()

    def compute_flop_data(self, flop: int) -> Any:
        """Find the boards that can follow a flop, and where strategy tables store them."""
        tree = flop_tree(self.game.tree, flop)
        return tree, self.layouts(tree)

    @cached_property
    def _trunk(self) -> tuple[TableLayout, TableLayout]:
        """The layouts of both players' tables for the first round, on an arbitrary flop."""
        return self.layouts(flop_tree(self.game.tree, 0))

    def _walk(self, seat: int, task: int, layouts: tuple[TableLayout, TableLayout]) -> Walk:
        return Walk(seat, (task,), self.table, self.table, layouts[seat], layouts[1 - seat])

    def total_value(self, seat: int, values: FloatArray) -> float:
        """Return a best response's winnings in chips per game, from the sum of its values over all flops."""
        return self.game.conclude(self._walk(seat, RESPOND, self._trunk), values.copy())

    def first_round_response(self, seat: int, values: FloatArray) -> Table:
        """Return a best response's first-round strategy, computed from its values on all flops.

        The shape is (rows of the first round, hands).
        """
        table = np.zeros((int(self._own.start[1]), self.game.shape[1]))
        self.game.conclude(self._walk(seat, ANSWER, self._trunk)._replace(own=table, own_layout=self._own), values)
        return table

    def first_round_value(self, seat: int, response: Table, values: FloatArray) -> float:
        """Return the winnings of a given first-round strategy, in chips per game.

        The strategy is `response`. After the first round, the player wins `values`.
        """
        walk = self._walk(seat, FOLLOW, self._trunk)._replace(own=response, own_layout=self._own)
        return self.game.conclude(walk, values.copy())

    @property
    def _own(self) -> TableLayout:
        """The layout of a table over hands that has only the rows of the first round."""
        trunk = self._trunk[0]
        return trunk._replace(bucket=np.empty((0, 0), dtype=np.int32))


class DeviceFlopWalks(FlopWalks):
    """Computes best responses flop by flop on a GPU, while the CPU prepares the next flops."""

    def __init__(self, game: VectorGame, table: Table, layouts: Layouts | None = None) -> None:
        from kilt.tree.gpu.flops import DeviceFlops  # imports the GPU library

        super().__init__(game, table, layouts)
        self.threads, self.abreast = max(cores(), 2), 1
        self.device = DeviceFlops(game, table)

    def best_response_values(self, flop: int, seat: int) -> FloatArray:
        """Return the winnings of a best response with each hand on one flop, computed on the GPU.

        The shape is (chance nodes of the first round, hands). Values are weighted by the flop's share of all boards.
        """
        return self.device.values(self.load_flop_data(flop), seat)

    def compute_flop_data(self, flop: int) -> Any:
        """Find the boards that can follow a flop, and where strategy tables store them, for the GPU."""
        return self.device.prepare(*super().compute_flop_data(flop))


class CardlessFlopWalks(FlopWalks):
    """Computes best responses, flop by flop, to an agent that ignores its own cards."""

    def __init__(self, game: VectorGame, table: Table) -> None:
        super().__init__(game, table)
        self._seats = [CardlessWalk.against(game, seat, table) for seat in (0, 1)]

    def best_response_values(self, flop: int, seat: int) -> FloatArray:
        """Return the winnings of a best response with each hand on one flop.

        The shape is (chance nodes of the first round, hands). Values are weighted by the flop's share of all boards.
        """
        return self._seats[seat].flop_values(self.game, flop_tree(self.game.tree, flop))


WALKS: dict[str, type[FlopWalks]] = {CPU: FlopWalks, GPU: DeviceFlopWalks}


def agent_walks(game: VectorGame, table: Table, device: str = CPU) -> FlopWalks:
    """Return an object that computes best responses, flop by flop, to an agent that ignores the board.

    Best responses are computed on the CPU or a GPU.

    `table` is the agent's strategy, [row, hand].
    """
    plain = not (looks_at_cards(table) or game.tree.nodes.rake.any() or game.tree.nodes.extra.size)
    if require_device(device) == CPU and plain:
        return CardlessFlopWalks(game, table)
    return WALKS[device](game, table)


def flop_walks(problem: AbstractProblem, strategy: Array, device: str = CPU) -> FlopWalks:
    """Return an object that computes best responses, flop by flop, to a strategy of an abstract game.

    The responder sees all cards.

    `strategy` has an entry for each slot. The buckets of the boards that follow a flop are looked up just before its
    walk.

    Raises
    ------
    RunError
        What follows a flop does not fit into memory, or the game has no boards.
    """
    abstract, walk = problem.abstract, problem.walk
    if len(walk.boards) < 2:
        raise RunError(f"{problem.name} has no flop, and is walked as a whole: leave out the flops")
    walk.by_flop.require()
    game = VectorGame(abstract.game, abstract.actions, threads=problem.threads, by_board=False)
    bucketed = BucketedGame.with_abstraction(game, abstract.cards, flop_tree(game.tree, 0))
    table = bucketed.table_of(abstract, strategy)
    return WALKS[require_device(device)](game, table, lambda tree: bucket_layouts(game, abstract.cards, tree))


class FlopEstimate(NamedTuple):
    """An exploitability in chips per game, estimated from a sample of flops.

    The first round of the response is chosen on the sample too. Evaluated on the flops that chose it, its winnings are
    too high on average, and on other flops too low; the interval reaches from one to the other.
    """

    low: float  # each flop evaluates the response that the others chose; mean over both seats
    high: float  # all flops evaluate the response that they chose
    margin_low: float  # half-width of the 95% interval; inf for less than three draws
    margin_high: float

    @property
    def mean(self) -> float:
        """The midpoint of the estimated interval, in chips per game, at least 0."""
        return max((self.low + self.high) / 2, 0.0)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval, in chips per game."""
        return max(self.low - self.margin_low, 0.0), self.high + self.margin_high


@dataclass
class FlopResponses:
    """A computation of best responses in both seats, flop by flop, with checkpoints.

    The computation can be stopped and resumed.

    A *part* of the computation is one flop for one seat.
    """

    walks: FlopWalks
    name: str  # name of the strategy
    game: str  # fingerprint of the game
    path: Path  # the folder of checkpoints
    draws: IntArray | None  # [draw] flops in the order of drawing; None if all are walked
    values: FloatArray  # [seat, chance node of the first round, hand] sums; for a sample, [flop] of these
    done: int = 0  # number of parts: the first flop from both seats, then the second, …
    seconds: float = 0.0  # working time
    crew: Crew | None = None  # workers with the same walks, which compute the parts if given

    def __post_init__(self) -> None:
        rivers = count_rivers(self.walks.game)
        if self.draws is None:
            self.flops = np.arange(len(rivers))
        else:
            self.flops = np.array(list(dict.fromkeys(self.draws.tolist())))
        self.work = np.repeat(rivers[self.flops], 2)  # [part]
        self.before = np.concatenate([[0], np.cumsum(self.work)])  # [part] the work of all earlier parts

    @classmethod
    def open(cls, walks: FlopWalks, name: str, game: str, path: Path, draws: IntArray | None = None) -> FlopResponses:
        """Resume a computation of best responses from its folder, or start one.

        Parameters
        ----------
        walks : FlopWalks
            Walks against the strategy.
        name : str
            Name of the strategy; a folder with responses to another one is refused.
        game : str
            The fingerprint of the game.
        path : Path
            The folder.
        draws : ndarray of int, optional
            Flops to walk, as `draw_flops` returns them. By default, all.

        Returns
        -------
        FlopResponses

        Raises
        ------
        RunError
            The folder holds something else.
        """
        tree = walks.game.tree
        if not artifact.exists(path):
            if path.exists():
                raise RunError(f"{path} exists and holds no best responses: choose another folder, or remove it")
            shape = (2, int(np.diff(tree.entry_start)[1]), walks.game.shape[1])
            number = () if draws is None else (len({*draws.tolist()}),)
            return cls(walks, name, game, path, draws, np.zeros((*number, *shape)))
        found = artifact.read(path, KIND, check=True)
        made = found.parameters["agent"], found.inputs["game"], found.version
        wanted = name, game, __version__
        if made != wanted:
            said = [f"{who} in the game {which}, kilt {version}" for who, which, version in (made, wanted)]
            raise RunError(f"{path} holds best responses to {said[0]}; this is {said[1]}: choose another folder")
        kept = found.arrays.get("draws")
        if not np.array_equal([] if kept is None else kept, [] if draws is None else draws):
            raise RunError(f"{path} holds best responses on other flops: choose another folder")
        return cls(walks, name, game, path, draws, np.array(found.arrays["values"]), **found.figures)

    def save(self) -> None:
        """Write a checkpoint to the folder of the computation."""
        arrays: Mapping[str, Any] = {"values": self.values} | ({} if self.draws is None else {"draws": self.draws})
        artifact.write(
            self.path,
            KIND,
            arrays,
            inputs={"game": self.game},
            parameters={"agent": self.name},
            figures={"done": self.done, "seconds": self.seconds},
        )

    @property
    def complete(self) -> bool:
        """Whether all parts have been computed."""
        return self.done == len(self.work)

    @property
    def share_done(self) -> float:
        """The finished share of the work, from 0 to 1."""
        return float(self.before[self.done] / self.before[-1])

    def compute_flop(self, number: int) -> FloatArray:
        """Compute the values of a best response on one flop in one seat.

        These are the values that part `number` adds to the sum of its seat. Both parts of a flop go to the same worker.
        """
        place, seat = divmod(number, 2)
        flop = int(self.flops[place])
        if self.crew is None:
            return self.walks.best_response_values(flop, seat)
        found: FloatArray = self.crew.ask(place, "best_response_values", flop, seat)()
        return found

    @property
    def threads(self) -> int:
        """The number of flops computed at the same time. The two seats count separately."""
        return self.walks.threads if self.crew is None else 2 * self.crew.size

    def time_left(self) -> float:
        """Estimate the seconds that the remaining work takes.

        The estimate uses the speed so far or, at the start, that of a few flops.
        """
        if self.done and self.seconds > MEASURING_SECONDS:
            return self.seconds * (1 / self.share_done - 1)
        # compiles kernels before the measurement
        self.walks.total_value(0, self.values.reshape(-1, *self.values.shape[-2:])[0])
        began, work = perf_counter(), 0
        with _pool(self.threads) as pool:
            # flops with few rivers first, to be quick
            for first in (2 * np.argsort(self.work[::2], kind="stable")).tolist():
                list(pool.map(self.compute_flop, (first, first + 1)))
                work += self.work[first : first + 2].sum()
                if (seconds := perf_counter() - began) > MEASURING_SECONDS:
                    break
        # In the measurement, at most two parts ran at a time, or one if a worker had both.
        idle = 1 / self.crew.size if self.crew else min(self.walks.abreast, 2) / self.walks.abreast
        return float(idle * seconds / work * (self.before[-1] - self.before[self.done]))

    def compute(self, watcher: ProgressMonitor, what: str = "") -> None:
        """Compute the remaining flops with checkpoints, until the user asks to stop.

        `what` is the name of the work in progress reports.
        """
        began, earlier, start, threads = perf_counter(), self.seconds, self.done, self.threads
        kept = began
        coming, ahead = iter(range(start, len(self.work))), deque[Future[FloatArray]]()
        with _pool(threads) as pool:
            while True:
                if watcher.stopped():
                    ahead = deque(future for future in ahead if not future.cancel())  # running parts finish
                else:
                    free = range(2 * threads - len(ahead))
                    ahead.extend(pool.submit(self.compute_flop, part) for _, part in zip(free, coming, strict=False))
                if not ahead:
                    break
                if wait([ahead[0]], timeout=0.2).done:
                    self._add(ahead.popleft().result())
                now = perf_counter()
                self.seconds = earlier + now - began
                if now - kept > CHECKPOINT_SECONDS:
                    self.save()
                    kept = perf_counter()
                walked, rest = np.diff(self.before[[start, self.done, -1]]).tolist()
                steady = self.done - start > 4 * threads
                watcher.show(what or self.name, self.share_done, (now - began) / walked * rest if steady else None)
        self.save()

    def _add(self, found: FloatArray) -> None:
        """Add the values of the next part to the sums."""
        flop, seat = divmod(self.done, 2)
        if self.draws is None:
            self.values[seat] += found
        else:
            self.values[flop, seat] = found
        self.done += 1

    def response_values(self) -> tuple[float, float]:
        """Return a best response's winnings in each seat, in chips per game.

        All parts of all flops must be done.
        """
        first, second = (self.walks.total_value(seat, self.values[seat]) for seat in (0, 1))
        return first, second

    def estimate(self) -> FlopEstimate:
        """Estimate exploitability from a sample of flops.

        All parts of the sample must be done.
        """
        assert self.draws is not None
        weights = flop_weights(self.walks.game)
        number, times = len(self.draws), np.array([np.count_nonzero(self.draws == flop) for flop in self.flops])
        scaled = self.values / (weights[self.flops] / weights.sum())[:, None, None, None]
        total = np.tensordot(times, scaled, axes=1)  # [seat, …]
        low, high = np.zeros(len(self.flops)), np.zeros(len(self.flops))
        for seat in (0, 1):
            own = self.walks.first_round_response(seat, total[seat] / number)
            for flop, values in enumerate(scaled[:, seat]):
                high[flop] += self.walks.first_round_value(seat, own, values) / 2
                others = (total[seat] - values) / max(number - 1, 1)
                response = self.walks.first_round_response(seat, others)
                low[flop] += self.walks.first_round_value(seat, response, values) / 2
        (least, most), margins = zip(*(_mean(values, times) for values in (low, high)), strict=True)
        return FlopEstimate(least, most, *margins)


def _mean(values: FloatArray, times: IntArray) -> tuple[float, float]:
    """Return the mean of values, each weighted by its number of draws, and the half-width of its 95% interval."""
    every = np.repeat(values, times)
    return float(every.mean()), student_width(len(every)) * float(every.std(ddof=min(len(every) - 1, 1)))


def count_rivers(game: VectorGame) -> IntArray:
    """Return the number of complete boards that can follow each flop.

    The time of a walk is proportional to it.
    """
    tree = game.tree
    return np.diff(following_boards(tree, np.arange(tree.board_start[1], tree.board_start[2] + 1))[-1])


def flop_weights(game: VectorGame) -> IntArray:
    """Return the number of flops that each canonical flop stands for."""
    return game.tree.weight[slice(*game.tree.board_start[1:3])].astype(np.int64)


def draw_flops(game: VectorGame, number: int, seed: int = 0) -> IntArray:
    """Draw random flops as a dealer would, with replacement.

    Parameters
    ----------
    game : VectorGame
        A game of two or more rounds.
    number : int
        Number of draws.
    seed : int
        Seed of the draws; the first draws do not depend on `number`.

    Returns
    -------
    ndarray of int, shape (number,)
        Indices of canonical flops.
    """
    weights = flop_weights(game)
    drawn = np.random.default_rng(seed).random(number)
    found: IntArray = np.searchsorted(np.cumsum(weights) / weights.sum(), drawn, side="right")
    return found


@contextmanager
def _pool(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Yield a thread pool; if an error occurs, do not wait for its threads."""
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
