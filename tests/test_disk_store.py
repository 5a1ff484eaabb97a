"""Files of subgames belong to one run and one iteration of it: others are refused, on every way that leads to them."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from chaos import content_of
from commands import answer, kilt, refused
from kilt.artifact import RECORD, RUN
from kilt.engines import LocalEngine
from kilt.errors import KiltError, RunError
from kilt.runs.budget import Budget
from kilt.runs.build import build, resume, spec_of
from kilt.runs.check import check
from kilt.runs.folder import SUBGAMES, RunFolder
from kilt.runs.run import open_run
from kilt.solve.cfr import SELF_PLAY, Cfr
from kilt.solve.tables.disk import DiskTables
from kilt.solve.tables.disk_store import COMING, TRUNK, SubgameStore
from kilt.solve.tables.disk_subgames import Subgames
from kilt.solve.tables.disk_workers import SubgameWorker, WorkerTables, cut_game
from kilt.solve.variants import VARIANTS, discounts
from kilt.strategy.blueprint import STRATEGY
from kilt.tree.rule import Discount
from kilt.tree.vector import VectorGame
from test_vector import game_of

OLD = Path(__file__).parent / "data" / "0.1.0" / "disk"
ALGORITHM = "cfr+disk:average"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of the same game, of 4 and of 7 iterations, and the first as it was after 2."""
    home = tmp_path_factory.mktemp("runs")
    build(spec_of("leduc", {"solver.algorithm": ALGORITHM}), home / "four", budget=Budget(iterations=2)).finish()
    shutil.copytree(home / "four", home / "two")
    resume(home / "four", budget=Budget(iterations=4)).finish()
    build(spec_of("leduc", {"solver.algorithm": ALGORITHM}), home / "seven", budget=Budget(iterations=7)).finish()
    return home


@pytest.fixture
def run(runs, tmp_path):
    """The run of 4 iterations, to be spoilt."""
    return shutil.copytree(runs / "four", tmp_path / "run")


def files_of(folder):
    """What all files of subgames hold."""
    return {file.name: content_of(file) for file in folder.glob("*.zst")}


def damage_of(path):
    return "; ".join(one.damage for one in check(path) if one.damage)


# what is copied from which run, and what is said of it
FOREIGN = [
    ("seven", "2-1.zst", r"2-1\.zst, player 1 of subgame 2, is damaged \(it belongs to pass 13, not to pass 7\)"),
    ("two", "2-1.zst", r"2-1\.zst, player 1 of subgame 2, is damaged \(it belongs to pass 3, not to pass 7\)"),
    ("seven", "[0-9]*.zst", r"player . of subgame 0, is damaged \(it belongs to pass 1[34], not to pass [78]\)"),
]


@pytest.mark.parametrize(
    ("source", "names", "said"),
    [
        *FOREIGN,
        ("seven", "trunk.zst", r"trunk\.zst is damaged \(run \w{16} has written it, not run \w{16}\)"),
        ("seven", "*", r"trunk\.zst is damaged \(run \w{16} has written it, not run \w{16}\)"),
        ("two", "trunk.zst", r"is damaged \(it belongs to pass 7, not to pass 3\)|subgames is at pass 4"),
        ("two", "*", r"subgames is at pass 4, but the checkpoint is at pass 8: copy the folder from an undamaged copy"),
    ],
)
def test_a_run_resumes_from_its_own_files_alone(runs, run, source, names, said):
    for file in (runs / source / SUBGAMES).glob(names):
        shutil.copyfile(file, run / SUBGAMES / file.name)
    before = {file: file.read_bytes() for file in (run / SUBGAMES).glob("*.zst")}
    for iterations in (4, 6):
        with pytest.raises(KiltError, match=said):
            resume(run, budget=Budget(iterations=iterations)).finish()
    assert all(file.read_bytes() == content for file, content in before.items())  # nothing was worked on
    with pytest.raises(RunError, match=said):
        raise RunError(damage_of(run))
    with pytest.raises(RunError, match=said):
        raise RunError(refused("solve", "--resume", run, "--iterations", 6))


@pytest.mark.parametrize(
    ("source", "names", "said"),
    [
        *FOREIGN,
        *((source, "*.zst", r"trunk\.zst is damaged \(its checksum is not \w{8}") for source in ("seven", "two")),
    ],
)
def test_a_strategy_is_read_from_its_own_files_alone(runs, run, source, names, said):
    """And the run, which has its own, writes it again."""
    for file in (runs / source / STRATEGY).glob(names):
        shutil.copyfile(file, run / STRATEGY / file.name)
    for path in (run, run / STRATEGY):
        with pytest.raises(RunError, match=said):
            raise RunError(damage_of(path))
    with pytest.raises(RunError, match=said):
        open_run(run).load()[1].exploitability()
    for command in (("evaluate", "exploitability", run), ("match", run, "always-call"), ("evaluate", "lbr", run)):
        assert "is damaged" in refused(*command)
    assert "is damaged" in refused("export", run, run.with_name("exported"))
    assert not run.with_name("exported").exists()
    assert answer("solve", "--resume", run)["iterations"] == 4
    assert not damage_of(run) and files_of(run / STRATEGY) == files_of(runs / "four" / STRATEGY)


def test_the_pass_under_way_is_known_by_the_trunk_that_it_began_with(runs, run, tmp_path, monkeypatch):
    """Its files are in no record yet: one of the same pass of another game is not taken for one of them."""
    game, write = game_of("leduc"), SubgameStore._write

    def killed(self, file, content):
        """Write two files alone; threads write in any order, so what was written before the kill is fixed here."""
        if file.name in ("0-1.zst", "1-1.zst"):
            write(self, file, content)
        elif file.name == TRUNK:
            raise KeyboardInterrupt

    interrupted = []
    for tilt in ((), (7.0, 0.0, 0.0, 7.0)):
        folder = tmp_path / f"tilted {bool(tilt)}"
        begun = build(
            spec_of("leduc", {"solver.algorithm": ALGORITHM, "tilt": tilt}), folder, budget=Budget(iterations=2)
        )
        begun.finish()
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(SubgameStore, "_write", killed)
            begun.solver.step(1)
        interrupted.append(folder)
    mine, other = interrupted
    assert not damage_of(mine)
    spoilt = shutil.copytree(mine, tmp_path / "spoilt")
    shutil.copyfile(other / SUBGAMES / "1-1.zst", spoilt / SUBGAMES / "1-1.zst")
    said = r"1-1\.zst, player 1 of subgame 1, is damaged \(it belongs to pass 5 of another run\)"
    for folder in (spoilt, spoilt / SUBGAMES):
        with pytest.raises(RunError, match=said):
            raise RunError(damage_of(folder))
    with pytest.raises(RunError, match=said):
        resume(spoilt, budget=Budget(iterations=4)).finish()
    resume(mine, budget=Budget(iterations=4)).finish()
    assert files_of(mine / STRATEGY) == files_of(runs / "four" / STRATEGY)
    assert game.name == "leduc"


def test_files_are_recorded_by_whoever_writes_them(tmp_path, monkeypatch):
    """A run that was killed while it took over the files of workers is whole, and says so."""
    cut = Subgames(VectorGame(game_of("leduc")))
    shared, alone = Cfr(WorkerTables(cut, LocalEngine(), 2)), Cfr(DiskTables(cut, tmp_path / "alone"))
    shared.tables.open(tmp_path / "shared")
    for solver in (shared, alone):
        solver.step(2)
    shared.tables.settle()
    assert (shared.tables.store.checksums == alone.tables.store.checksums).all() and shared.tables.store.checksums.all()
    shared.step(1)

    def killed(self):
        first, *_ = sorted((self.folder / COMING).glob("[0-9]*.zst"))
        first.replace(self.folder / first.name)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(SubgameStore, "finish_replacement", killed)
        shared.tables.settle()
    assert not damage_of(tmp_path / "shared")
    alone.step(1)
    Cfr(DiskTables(cut, tmp_path / "shared"))
    assert files_of(tmp_path / "shared") == files_of(tmp_path / "alone")
    assert not damage_of(tmp_path / "shared")
    shared.tables.close()


def test_a_worker_can_be_asked_again_for_passes_that_it_has_done():
    """When another worker is lost meanwhile, all that were brought back repeat the passes since the checkpoint."""
    cut = Subgames(VectorGame(game_of("leduc")))
    alone, sent = DiskTables(cut), []
    worker = SubgameWorker(partial(cut_game, "<f8", None, 1, 1), cut.game.game, alone.scale, averaging=False)
    rows = discounts(VARIANTS["dcfr+"], 1, 3).tolist()
    for passes in range(5):
        discount = Discount._make([*rows[passes // 2], 0.0])
        sent.append((alone.trunk.copy(), discount))
        alone.learn(SELF_PLAY[passes % 2], discount)
    for last in (3, 5):
        for passes in range(last):
            worker.replay([*range(cut.count)], passes, *sent[passes])
    mine, theirs = files_of(alone.store.folder), files_of(worker.tables.store.folder)
    assert theirs == {name: content for name, content in mine.items() if name != "trunk.zst"}


def test_a_run_that_is_at_work_is_no_damage(tmp_path, monkeypatch):
    """Files that are ahead of the trunk that was read are looked at again, beside the new trunk."""
    solver = Cfr(DiskTables(Subgames(VectorGame(game_of("leduc"))), tmp_path))
    solver.step(1)
    opened, steps = SubgameStore.open, iter([1, 1])

    def opened_later(self, number, player, passes):
        if number == 1 and next(steps, 0):
            solver.step(1)
        return opened(self, number, player, passes)

    monkeypatch.setattr(SubgameStore, "open", opened_later)
    with monkeypatch.context() as patch:  # the solver itself reads as ever
        patch.setattr(solver.tables.store, "open", lambda *what: opened(solver.tables.store, *what))
        assert not damage_of(tmp_path)
    assert solver.iterations == 3


def test_runs_of_the_last_release_are_resumed_and_then_recorded(runs, tmp_path):
    """One that was killed in the middle of an iteration; nothing is said of records that it cannot have."""
    run = shutil.copytree(OLD, tmp_path / "run")
    assert not damage_of(run)
    assert kilt("evaluate", "exploitability", run).stderr == kilt("evaluate", "exploitability", runs / "two").stderr
    assert answer("evaluate", "exploitability", run)["exploitability"] == pytest.approx(2.332047889115485)
    resume(run).finish()
    assert RunFolder.open(run).run_id == ""
    assert json.loads((run / RUN).read_text())[RECORD][STRATEGY]
    assert files_of(run / STRATEGY) == files_of(runs / "four" / STRATEGY)
    assert not damage_of(run)
    shutil.copyfile(runs / "seven" / SUBGAMES / "2-1.zst", run / SUBGAMES / "2-1.zst")
    with pytest.raises(KiltError, match="it belongs to pass 13, not to pass 7"):
        resume(run, budget=Budget(iterations=6)).finish()
