"""CFR+ with regrets on disk beside CFR+ in memory."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kilt.errors import GameError, RunError
from kilt.solve.disk import DiskCfr
from kilt.solve.disk_kernels import MOST
from kilt.solve.disk_store import SubgameStore, pack, unpack
from kilt.solve.vector import SELF_PLAY, VectorCfr
from kilt.tree.vector import VectorGame
from test_vector import game_of

SCALE = 2.0**20


def in_memory(game: VectorGame, iterations: int, scale: float) -> np.ndarray:
    """Regrets of CFR+ in memory, rounded down after each player's walk, but for those of the first round."""
    twin, trunk = VectorCfr(game, averaging=False), int(game.tree.rows[0])
    solver = DiskCfr.__new__(DiskCfr)
    for number in range(iterations):
        solver.passes = 2 * number
        for turn in SELF_PLAY:
            twin._walk(solver._discount(), (turn,))
            twin.regret[trunk:] = np.floor(twin.regret[trunk:] * scale) / scale
        twin.iterations += 1
    return twin.regret


@settings(deadline=None)
@given(st.lists(st.integers(0, MOST), min_size=1, max_size=40), st.integers(1, 3))
def test_what_is_packed_is_unpacked(numbers, rows):
    table = np.tile(np.array(numbers, dtype=np.float64), (rows, 1))
    again, every = np.empty_like(table), np.arange(rows)
    for kept, expected in ((table, table), (table + 2.0**33, MOST), (table / 2, table // 2)):
        unpack(pack(kept, every, 1.0), every, 1.0, again)
        assert np.all(again == expected)


@pytest.mark.parametrize(("name", "size"), [("leduc", 1), ("leduc", 10**9), ("three rounds", 1)])
def test_iterates_are_those_in_memory(name, size, tmp_path):
    game = VectorGame(game_of(name))
    solver = DiskCfr(game, tmp_path, scale=SCALE, size=size)
    assert solver.subgames == (1 if size > 1 else int(game.tree.board_start[2] - 1))
    solver.step(2)
    solver.step(8)
    assert solver.iterations == 10
    found, table = solver.table(), in_memory(game, 10, SCALE)
    assert np.abs(found - table).max() < 1e-9 * table.max()
    assert solver.exploitability() == pytest.approx(game.exploitability(found), abs=1e-9)
    least, most = solver.value_bounds()
    assert most - least == pytest.approx(2 * solver.exploitability())


@pytest.mark.parametrize("threads", [1, 2])
def test_a_pass_that_was_interrupted_goes_on(tmp_path, monkeypatch, threads):
    """Whatever the file was that could not be written: all numbers are the same in the end."""
    game = VectorGame(game_of("leduc"), threads=threads)
    whole = DiskCfr(game, tmp_path / "whole", scale=SCALE, size=1)
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
                DiskCfr(game, folder, scale=SCALE, size=1).step(4)
        again = DiskCfr(game, folder, scale=SCALE, size=1)
        again.step(3 - again.iterations)
        assert np.array_equal(again.table(), whole.table())


def test_damage_is_found_and_named(tmp_path):
    game = VectorGame(game_of("leduc"))
    DiskCfr(game, tmp_path / "sound", size=1).step(1)
    for name in ("1-2.zst", "trunk.zst"):
        size = (tmp_path / "sound" / name).stat().st_size
        for place in range(0, size, 13):
            folder = shutil.copytree(tmp_path / "sound", tmp_path / f"{name}-{place}")
            content = bytearray((folder / name).read_bytes())
            content[place] ^= 64
            (folder / name).write_bytes(content)
            with pytest.raises(RunError, match=r"(1|trunk).* is damaged"):
                DiskCfr(game, folder, size=1).step(1)


def test_what_is_refused(tmp_path):
    leduc = VectorGame(game_of("leduc"))
    DiskCfr(leduc, tmp_path)
    with pytest.raises(RunError, match="another game, or with another scale"):
        DiskCfr(leduc, tmp_path, scale=3)
    with pytest.raises(RunError, match="another game"):
        DiskCfr(VectorGame(game_of("three rounds")), tmp_path)
    with pytest.raises(GameError, match="no subgames"):
        DiskCfr(VectorGame(game_of("kuhn")), tmp_path / "kuhn")
