"""``kilt bench gpu``: [2-4] and royal hold'em to 1 mbb/g and a spot on a GPU, and kernels relative to a memory copy.

Best responses in limit hold'em are to a strategy with 9,000 random buckets in each round after the first. That needs no
abstraction. Random buckets have no locality in memory, so a real strategy takes no longer.
"""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from math import inf
from os import cpu_count
from time import perf_counter
from typing import Any

import numpy as np

from kilt.errors import RunError, shortened
from kilt.evaluate.flops import DeviceFlopWalks, count_rivers
from kilt.games import load_game
from kilt.gpu import require_gpu
from kilt.solve.cfr import Cfr
from kilt.solve.problem import big_blind_of
from kilt.solve.tables.device import CompactTables, DeviceTables
from kilt.solve.variants import Variant
from kilt.spots.solution import SpotSolution
from kilt.tree.gpu.compact import CompactGame
from kilt.tree.gpu.device import DeviceGame
from kilt.tree.gpu.device_arrays import NODE, DeviceRound
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import DECISION, FOLD, TableLayout, VectorTree
from kilt_lab.benchmarks.gpu_blueprint import blueprint
from kilt_lab.benchmarks.gpu_learning import learning
from kilt_lab.benchmarks.measure import Figure
from kilt_lab.benchmarks.spots import TARGET as SPOT_TARGET
from kilt_lab.benchmarks.spots import spot

GAME, TARGET = "holdem.2-4", 1.0  # mbb/g
LIMIT, BUCKETS, FLOPS = "holdem.limit.2p", 9000, 60  # flops of the sample
ROYAL = "royal.limit.2p"
QUADRATIC = Variant(inf, -inf, 2)  # CFR+ with an average weighted by t², which takes fewer iterations than by t
SHOWN = (100, 200, 400, 800)  # iterations of royal hold'em at which exploitability is reported
PERIOD, ROYAL_PERIOD = 25, 50  # iterations between measurements
TIMED = 5  # iterations whose kernels are timed one by one


def run(*, long: bool = False, only: str | None = None) -> list[Figure]:
    """Measure the parts of the benchmark, one after another: see `PARTS`.

    Parameters
    ----------
    long : bool
        Whether royal hold'em is solved too, [2-4] hold'em three times, all flops of limit hold'em are walked, and
        blueprints of all sizes are sampled.
    only : str, optional
        A name of `PARTS`: nothing else is measured.
    """
    cupy = require_gpu()
    if only is not None and only not in PARTS:
        raise RunError(f"there is no part {shortened(repr(only))} of this benchmark: use one of {', '.join(PARTS)}")
    figures = []
    for name in [only] if only else [name for name in PARTS if long or name != "royal"]:
        figures += PARTS[name](long=long)
        cupy.get_default_memory_pool().free_all_blocks()
    return figures


def _two_four(*, long: bool) -> list[Figure]:
    """Solve [2-4] hold'em with CFR+ in single precision, then time each kernel."""
    cupy = require_gpu()
    begun = perf_counter()
    device = DeviceGame(VectorGame(load_game(GAME)))
    cupy.cuda.Device().synchronize()
    prepared = perf_counter() - begun
    Cfr(DeviceTables(device)).step(1)  # compiles
    found = [_solve(device) for _ in range(3 if long else 1)]
    seconds, iterations, exploitability = sorted(found)[len(found) // 2]
    share, limit = _bandwidth(device)
    return [
        Figure("two_four_seconds_to_1_mbb", f"[2-4] hold'em below {TARGET:g} mbb/g by CFR+", seconds, "s"),
        Figure("two_four_iterations", "… iterations", iterations, ""),
        Figure("two_four_mbb", "… exploitability then", exploitability, "mbb/g"),
        Figure("two_four_prepare_seconds", "… tree, and its copy on the device", prepared, "s"),
        Figure("copy_bandwidth", "memory of the device: a copy of 2 GB", limit / 1e12, "TB/s"),
        *(Figure(f"{name}_bandwidth", f"{name}: share of that", part, "") for name, part in share.items()),
    ]


def _solve(device: DeviceGame) -> tuple[float, int, float]:
    """Return seconds, iterations and exploitability in mbb/g."""
    scale = 1000 / (big_blind_of(device.game.game) or 1)
    begun, solver = perf_counter(), Cfr(DeviceTables(device), QUADRATIC)
    while True:
        solver.step(PERIOD)
        left = scale * device.exploitability(solver.average())
        if left < TARGET:
            return perf_counter() - begun, solver.iterations, left


def _royal(*, long: bool) -> list[Figure]:
    """Solve royal hold'em with CFR+ and tables of two bytes."""
    cupy = require_gpu()
    device = CompactGame(VectorGame(load_game(ROYAL)))
    mbb = 1000 / (big_blind_of(device.game.game) or 1)
    Cfr(CompactTables(device)).step(1)  # compiles
    cupy.get_default_memory_pool().free_all_blocks()
    solver, curve, spent = Cfr(CompactTables(device), QUADRATIC), dict[int, float](), 0.0
    begun = perf_counter()
    while not curve or min(curve.values()) >= TARGET:
        before = perf_counter()
        solver.step(ROYAL_PERIOD)
        cupy.cuda.Device().synchronize()
        spent += perf_counter() - before
        first, second = device.response_values(solver.average())
        curve[solver.iterations] = mbb * (first + second) / 2
    seconds = perf_counter() - begun
    bounds, memory, moved = (-mbb * second, mbb * first), device.memory_needed(), device.bytes_per_iteration()
    each = spent / max(curve)
    return [
        Figure("royal_seconds_to_1_mbb", f"royal hold'em below {TARGET:g} mbb/g by CFR+", seconds, "s"),
        Figure("royal_iterations", "… iterations", max(curve), ""),
        Figure("royal_mbb", "… exploitability then", curve[max(curve)], "mbb/g"),
        *(Figure(f"royal_mbb_{n}", f"… after {n} iterations", curve[n], "mbb/g") for n in SHOWN if n in curve),
        Figure("royal_value_at_least", "… value to the big blind, at least", bounds[0], "mbb/g"),
        Figure("royal_value_at_most", "… and at most", bounds[1], "mbb/g"),
        Figure("royal_iteration_seconds", "… an iteration", each, "s"),
        Figure("royal_bandwidth", "… tables read and written in it", moved / each / 1e12, "TB/s"),
        Figure("royal_gigabytes", "… memory of the device", memory / 1e9, "GB"),
    ]


def _spot(*, long: bool) -> list[Figure]:
    """Solve TexasSolver's sample flop on the GPU and, with as many iterations, on the CPU; compare values."""
    flop, cores = spot("flop"), cpu_count() or 1
    flop.solve(iterations=1, device="gpu")  # compiles
    wall, found = [], list[SpotSolution]()
    for _ in range(3):
        begun = perf_counter()
        found.append(flop.solve(SPOT_TARGET, device="gpu"))
        wall.append(perf_counter() - begun)
    there = sorted(found, key=lambda one: one.steps[-1].seconds)[1]
    here = flop.solve(iterations=there.iterations, threads=cores)
    first, second = there.at(), here.at()
    reached = second.chance > 0
    apart = np.abs(first.ev - second.ev)[reached].max() / flop.pot
    values = np.abs(np.subtract(there.values, here.values)).max() / flop.pot
    words = f"TexasSolver's sample flop to {SPOT_TARGET}% of the pot"
    return [
        Figure("flop_seconds", f"{words}, without the tree", there.steps[-1].seconds, "s"),
        Figure("flop_wall_seconds", "… with the tree and the solution's copy", sorted(wall)[1], "s"),
        Figure("flop_iterations", "… iterations", there.iterations, ""),
        Figure("flop_percent", "… exploitability then", there.exploitability_percent, "% of the pot"),
        Figure("flop_cpu_seconds", f"… as many iterations on {cores} cores", here.steps[-1].seconds, "s"),
        Figure("flop_values_apart", "… difference of both players' values to the CPU's", values, "of the pot"),
        Figure("flop_ev_apart", "… largest difference of a hand's EV at the first decision", apart, "of the pot"),
    ]


def _responses(*, long: bool) -> list[Figure]:
    """Walk both best responses in limit hold'em, on all flops or on some."""
    game = VectorGame(load_game(LIMIT), by_board=False)
    draw = np.random.default_rng(0)
    table = draw.random((game.shape[0], BUCKETS + 1), dtype=np.float32)
    none = np.empty(0, dtype=np.bool_)

    def layouts(part: VectorTree) -> tuple[TableLayout, TableLayout]:
        bucket = np.random.default_rng(0).integers(0, BUCKETS, (len(part.board), game.shape[1]), dtype=np.int32)
        layout = TableLayout(np.zeros_like(game.tree.rows), game.tree.table_start, bucket, none)
        return layout, layout

    walks, rivers = DeviceFlopWalks(game, table, layouts), count_rivers(game)
    flops = np.arange(len(rivers)) if long else draw.choice(len(rivers), FLOPS, replace=False)
    walks.best_response_values(0, 0)  # compiles
    begun = perf_counter()
    with ThreadPoolExecutor(walks.threads) as pool:
        list(pool.map(walks.best_response_values, np.repeat(flops, 2).tolist(), [0, 1] * len(flops)))
    seconds = (perf_counter() - begun) * float(rivers.sum() / rivers[flops].sum())
    return [
        Figure("limit_holdem_response_seconds", "both best responses in limit hold'em, all flops", seconds, "s"),
        Figure("limit_holdem_flops_walked", "flops walked, of 1,755; the rest by their rivers", len(flops), ""),
    ]


def _bandwidth(device: DeviceGame) -> tuple[dict[str, float], float]:
    """Return the bandwidth of each kernel as a share of that of a copy, and the bandwidth of a copy."""
    cupy, kernel, spent = device.cupy, device.kernel, defaultdict[str, float](float)

    def seconds(work: Any, *arguments: Any, **options: Any) -> float:
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        work(*arguments, **options)
        end.record()
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, end)) / 1000

    def timed(name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> None:
            spent[name] += seconds(kernel(name), *arguments, **options)

        return call

    solver = Cfr(DeviceTables(device))
    solver.step(1)
    device.kernel = timed
    solver.step(TIMED)
    device.kernel = kernel
    moved = defaultdict[str, float](float)
    for here in device.rounds:
        for player in (0, 1):
            for name, numbers in _numbers(device, here, player).items():
                moved[name] += TIMED * numbers * here.boards * device.hands * device.dtype.itemsize
    source = cupy.zeros(250_000_000, np.float64)
    target = cupy.empty_like(source)
    limit = 2 * source.nbytes / min(seconds(cupy.copyto, target, source) for _ in range(5))
    return {name: moved[name] / spent[name] / limit for name in moved}, limit


def _numbers(device: DeviceGame, here: DeviceRound, player: int) -> dict[str, int]:
    """Return the minimum of numbers that each kernel must read or write for each hand and board of a round."""
    walk = here.walks[player]
    nodes = np.frombuffer(device.cupy.asnumpy(walk.nodes).tobytes(), NODE)
    decides = nodes["kind"] == DECISION
    theirs, mine = decides & (nodes["actor"] != player), decides & (nodes["actor"] == player)
    rows = {who: int(nodes["count"][where].sum()) for who, where in (("theirs", theirs), ("mine", mine))}
    leaves = len(walk.slots)
    return {
        # The strategy is read; the average is read and written; reach is read at a decision and written below it.
        "push_reach": 3 * rows["theirs"] + int(theirs.sum()) + int(walk.slot.max()) + 1,
        "leaf_sums": 3 * leaves,
        # Leaves are read; values are written, and read by the parent node; regrets are read and written.
        "pull_values": int((nodes["kind"] >= FOLD).sum()) + 2 * len(nodes) + 2 * rows["mine"],
    }


PARTS = {
    "royal": _royal,
    "two-four": _two_four,
    "spot": _spot,
    "responses": _responses,
    "blueprint": blueprint,
    "learning": learning,
}
