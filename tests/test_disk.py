"""CFR+ with regrets on disk beside CFR+ in memory."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kilt.bench import disk as bench
from kilt.cards.deck import FULL
from kilt.cards.equity import hand_list, room_to_rank
from kilt.cards.hands import hand_tables
from kilt.errors import GameError, RunError
from kilt.evaluate.judge import judge_of
from kilt.reproduce import REPRODUCTIONS
from kilt.reproduce.claims import HOLDS
from kilt.reproduce.reproduction import Request
from kilt.runs.budget import Budget
from kilt.runs.folder import SUBGAMES
from kilt.runs.run import continued_run, new_run, open_run
from kilt.solve.disk import GOLDEN, DiskCfr
from kilt.solve.disk_kernels import MOST, PartRows
from kilt.solve.disk_store import SubgameStore, pack, unpack
from kilt.solve.disk_subgames import Subgames
from kilt.solve.forms import load_problem
from kilt.solve.problem import DISK
from kilt.solve.vector import SELF_PLAY, VectorCfr
from kilt.strategy.blueprint import STRATEGY
from kilt.tree.vector import VectorGame
from test_vector import game_of

SCALE = 2.0**20


def in_memory(game: VectorGame, iterations: int, scale: float) -> np.ndarray:
    """Regrets of CFR+ in memory, rounded after each player's walk as on disk, but for those of the first round."""
    twin, trunk = VectorCfr(game, averaging=False), int(game.tree.rows[0])
    solver = DiskCfr.__new__(DiskCfr)
    for number in range(iterations):
        solver.passes = 2 * number
        for turn in SELF_PLAY:
            twin._walk(solver._discount(), (turn,))
            dither = (2 * number + turn.player) * GOLDEN % 1
            twin.regret[trunk:] = np.floor(twin.regret[trunk:] * scale + dither) / scale
        twin.iterations += 1
    return twin.regret


def disk(game: VectorGame, folder, size: int | None = 1, **more) -> DiskCfr:
    """A solver on disk with a subgame for each board, and a fine scale."""
    return DiskCfr(Subgames(game, size=size), folder, **{"scale": SCALE} | more)


@settings(deadline=None)
@given(st.lists(st.integers(0, MOST), min_size=1, max_size=40), st.integers(1, 3))
def test_what_is_packed_is_unpacked(numbers, rows):
    table = np.tile(np.array(numbers, dtype=np.float64), (rows, 1))
    again, hands, one = np.empty_like(table), table.shape[1], np.zeros(1, np.int64)
    none = np.arange(hands, dtype=np.int32)[None], one, np.zeros(hands, np.int64), one, np.zeros((1, 5), np.int64)
    no_strengths = False, hand_list(), hand_tables(7), room_to_rank(FULL, 2, 5)
    every = [PartRows(0, rows, np.arange(rows), *none, *no_strengths)]
    for kept, expected in ((table, table), (table + 2.0**33, MOST), (table / 2, table // 2), (table % 9, table % 9)):
        unpack(pack(kept, every, rows * hands, 1.0), every, rows * hands, 1.0, again)
        assert np.all(again == expected)


@pytest.mark.parametrize(("name", "size"), [("leduc", 1), ("leduc", 10**9), ("three rounds", 1)])
def test_iterates_are_those_in_memory(name, size, tmp_path):
    game = VectorGame(game_of(name))
    solver = disk(game, tmp_path, size)
    assert solver.subgames.count == (1 if size > 1 else int(game.tree.board_start[2] - 1))
    solver.step(2)
    solver.step(8)
    assert solver.iterations == 10
    found, table, strategy = solver.current().table(), in_memory(game, 10, SCALE), solver.current()
    assert np.abs(found - table).max() < 1e-9 * table.max()
    assert strategy.exploitability() == pytest.approx(game.exploitability(found), abs=1e-9)
    assert strategy.expected_values()[0] == pytest.approx(game.expected_value(found), abs=1e-9)
    least, most = strategy.value_bounds()
    assert most - least == pytest.approx(2 * strategy.exploitability())


@pytest.mark.parametrize("threads", [1, 2])
def test_a_pass_that_was_interrupted_goes_on(tmp_path, monkeypatch, threads):
    """Whatever the file was that could not be written: all numbers are the same in the end."""
    game = VectorGame(game_of("leduc"), threads=threads)
    whole = disk(game, tmp_path / "whole")
    whole.step(3)
    write = SubgameStore._write
    for fatal in range(1, 26, 6):
        written = 0

        def breaks(self, file, *content, last=fatal):
            nonlocal written
            written += 1
            if written >= last:
                file.with_name(f".{file.name}").write_bytes(b"half of it")
                raise KeyboardInterrupt
            write(self, file, *content)

        folder = tmp_path / str(fatal)
        with monkeypatch.context() as patch:
            patch.setattr(SubgameStore, "_write", breaks)
            with pytest.raises(KeyboardInterrupt):
                disk(game, folder).step(4)
        again = disk(game, folder)
        again.step(3 - again.iterations)
        assert np.array_equal(again.current().table(), whole.current().table())


def test_damage_is_found_and_named(tmp_path):
    game = VectorGame(game_of("leduc"))
    disk(game, tmp_path / "sound").step(1)
    for name in ("1-2.zst", "trunk.zst"):
        size = (tmp_path / "sound" / name).stat().st_size
        for place in range(0, size, 29):
            folder = shutil.copytree(tmp_path / "sound", tmp_path / f"{name}-{place}")
            content = bytearray((folder / name).read_bytes())
            content[place] ^= 64
            (folder / name).write_bytes(content)
            with pytest.raises(RunError, match=r"(1|trunk).* is damaged"):
                disk(game, folder).step(1)


def test_what_is_refused(tmp_path):
    leduc = VectorGame(game_of("leduc"))
    disk(leduc, tmp_path)
    with pytest.raises(RunError, match="another scale"):
        disk(leduc, tmp_path, scale=3)
    with pytest.raises(RunError, match="another game"):
        disk(VectorGame(game_of("three rounds")), tmp_path)
    with pytest.raises(GameError, match="no subgames"):
        Subgames(VectorGame(game_of("kuhn")))


def test_runs_on_disk(tmp_path):
    """Gone on with after a kill, a run ends in the same files, from which it is judged; one process works at a time."""
    whole = new_run("leduc", "cfr+disk:average", budget=Budget(iterations=6), folder=tmp_path / "whole").finish()
    first = new_run("leduc", "cfr+disk:average", budget=Budget(iterations=3), folder=tmp_path / "run")
    first.finish()
    files = {file.name: file.read_bytes() for file in (tmp_path / "run" / STRATEGY).iterdir()}
    store = first.solver.store
    with store.claimed(), pytest.raises(RunError, match="another process is at work"):
        continued_run(tmp_path / "run", budget=Budget(iterations=6)).finish()
    first.solver.step(1)  # and killed before a checkpoint
    assert {file.name: file.read_bytes() for file in (tmp_path / "run" / STRATEGY).iterdir()} == files
    last = continued_run(tmp_path / "run", budget=Budget(iterations=6)).finish()
    assert last[2:5] == whole[2:5]
    for name in ("0-1.zst", "2-2.zst", "trunk.zst"):
        same = {(tmp_path / run / SUBGAMES / name).read_bytes() for run in ("run", "whole")}
        assert len(same) == 1
    problem, strategy, figures = open_run(tmp_path / "run").load()
    assert judge_of(problem).exploitability(strategy) == whole.exploitability == figures["exploitability"]
    table = strategy.table()
    assert problem.game.exploitability(table) == pytest.approx(whole.exploitability, abs=1e-9)
    twin = VectorCfr(problem.game, averaging=True)
    twin.step(6)
    rounded = problem.game.exploitability(twin.average())
    assert whole.exploitability == pytest.approx(rounded, abs=1e-3) != whole.current_exploitability
    with pytest.raises(GameError, match=r"another|is for"):
        load_problem("rhode-island", form=DISK).load(tmp_path / "run" / STRATEGY)


def test_the_bench_and_the_counts():
    """What is counted of limit hold'em is what the thesis has [Johanson16 chapter 9]; the bench measures any game."""
    figures = {figure.key: figure.value for figure in bench.run(game=game_of("leduc"), iterations=3, dtype=np.float64)}
    assert {"compression_ratio", "overhead", "peak_gb"} < set(figures)
    assert figures["rounding_cost"] == pytest.approx(0, abs=0.1)
    found = REPRODUCTIONS["storage"]
    assert all(verdict.verdict == HOLDS for verdict in found.verdicts(found.reproduce(Request(), None)))
