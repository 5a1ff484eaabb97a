"""Compilation is timed, and is no part of what work takes."""

import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import numba
import pytest

import kilt
from kilt import compiling, jit, machine
from kilt.cli import show
from kilt.compiling import clock, compiled_seconds, cpu_clock


def kernels():
    """Two kernels that are compiled at each first call, one within the other."""

    @numba.njit
    def inner(number):
        return number + 1

    @numba.njit
    def outer(number):
        return 2 * inner(number)

    return outer


def test_the_clock_stands_still_while_kernels_are_compiled():
    kernel = kernels()
    before, working, compiled, begun = time.perf_counter(), clock(), compiled_seconds(), time.perf_counter()
    assert kernel(3) == 8
    ended, worked, compiling_took = time.perf_counter(), clock() - working, compiled_seconds() - compiled
    assert 0 < compiling_took <= time.perf_counter() - before
    # The inner kernel is not counted twice, however long each line takes.
    assert ended - begun <= worked + compiling_took <= time.perf_counter() - before
    before = compiled_seconds()
    kernel(4)
    assert compiled_seconds() == before


def test_both_clocks_leave_out_compilation(monkeypatch):
    """Compilation, with another one within it, lasts from 8 to 32 s. The processor works a quarter of the time."""
    now = 0.0
    monkeypatch.setattr(compiling, "perf_counter", lambda: now)
    monkeypatch.setattr(compiling, "process_time", lambda: now / 4)
    monkeypatch.setattr(compiling, "_standing", compiling._Standing())
    clocks = []
    for change in (
        compiling.begin_compiling,
        compiling.begin_compiling,
        compiling.end_compiling,
        compiling.end_compiling,
    ):
        now += 8
        change()
        clocks.append((clock(), cpu_clock(), compiled_seconds()))
    now += 8
    assert clocks == [(8, 2, 0), (8, 2, 8), (8, 2, 16), (8, 2, 24)]
    assert (clock(), cpu_clock(), compiled_seconds()) == (16, 4, 24)


def test_a_compilation_under_way_counts_and_is_heard_once():
    heard = []
    compiling.listeners.append(lambda: heard.append(compiled_seconds()))
    try:
        before = compiled_seconds()
        compiling.begin_compiling()
        compiling.begin_compiling()
        assert compiled_seconds() > before
        assert len(heard) == 1
        compiling.end_compiling()
        one = compiled_seconds()
        assert compiled_seconds() > one
        compiling.end_compiling()
        assert compiled_seconds() == compiled_seconds() > one
    finally:
        compiling.listeners.pop()


def test_commands_say_that_they_compile(capfd):
    with show.announce_compilation():
        pass
    assert capfd.readouterr() == ("", "")
    with show.announce_compilation():
        kernels()(3)
        kernels()(4)
    said = capfd.readouterr()
    assert said.out == ""
    first, last = said.err.splitlines()
    assert first == "compiling kernels, once per installation …"
    assert last.startswith("compiled kernels for ")
    assert not compiling.listeners


def test_long_compilation_says_how_far_it_is(capfd, monkeypatch):
    monkeypatch.setattr(show, "COMPILING", 0.0)
    with show.announce_compilation():
        for number in (3, 4.0):
            kernels()(number)
    _, second, _ = capfd.readouterr().err.splitlines()
    assert re.fullmatch(r"compiling kernel 2, after \d+ s; `kilt setup` compiles on all cores …", second)


@pytest.mark.parametrize("reading", [60.0, 0.0])
def test_who_waits_for_a_kernel_says_so_unless_it_is_but_read(tmp_path, monkeypatch, reading):
    """Two threads want the same kernel, and the first takes its time."""
    monkeypatch.setattr(jit, "READING", reading)
    heard, begun, got = Event(), Event(), []
    monkeypatch.setattr(compiling, "listeners", [heard.set])

    def slow(signature):
        begun.set()
        heard.wait(0.1 if reading else 60)
        return signature

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(jit._once, slow, tmp_path / "kernels", "one")
        begun.wait(60)
        second = pool.submit(jit._once, got.append, tmp_path / "kernels", "one")
        assert first.result(60) == "one" and second.result(60) is None
    assert got == ["one"] and heard.is_set() == (reading == 0)


# ── where no kernel can be kept ──


@pytest.fixture
def unwritable(tmp_path):
    """What runs code with a package and a home folder that cannot be written to, by root neither.

    A file stands where a folder for caches would be.
    """
    copy = shutil.copytree(Path(kilt.__file__).parent, tmp_path / "kilt", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in {module.parent for module in copy.rglob("*.py")}:
        (folder / "__pycache__").touch()
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.touch()
    temporary.mkdir()

    def run(*arguments, **more):
        gone = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR", "KILT_CACHE", "NUMBA_CACHE_DIR")
        known = {name: value for name, value in os.environ.items() if name not in gone}
        own = {"PYTHONPATH": str(tmp_path), "HOME": str(home), "TMPDIR": str(temporary)}
        command = [sys.executable, *arguments]
        return subprocess.run(command, env=known | own | more, capture_output=True, text=True, cwd=temporary)

    return run, temporary


EQUITY = "-m", "kilt", "cards", "equity", "AsAh", "KdKc", "--board", "Ks9d2cQh3s"


def warnings_of(done):
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("warning:")]


def test_kernels_are_kept_in_a_temporary_folder_where_no_other_can_be_written_to(unwritable):
    """One line says so; the next command reads them there."""
    run, temporary = unwritable
    for again in (False, True):
        done = run(*EQUITY)
        assert done.stdout.startswith("AsAh against KdKc")
        (line,) = warnings_of(done)
        assert re.search("cannot be written to: .* are kept in .*kilt-cache-.*; NUMBA_CACHE_DIR and KILT_CACHE", line)
        assert ("compiled kernels for" in done.stderr) != again
    (folder,) = temporary.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [*folder.rglob("*.nbi")]


def test_the_folder_that_is_chosen_needs_no_warning(unwritable, tmp_path):
    run, temporary = unwritable
    assert warnings_of(run(*EQUITY, NUMBA_CACHE_DIR=str(tmp_path / "mine"))) == []
    assert [*(tmp_path / "mine").rglob("*.nbi")] and not [*temporary.iterdir()]


def test_a_temporary_folder_of_somebody_else_is_not_trusted(unwritable):
    """What is kept there is code: others must not be able to write it."""
    run, temporary = unwritable
    theirs = temporary / f"kilt-cache-{os.getuid()}"
    theirs.mkdir()
    theirs.chmod(0o777)
    (line,) = warnings_of(run(*EQUITY))
    assert f"kept in {theirs}-" in line and not [*theirs.iterdir()]


def test_tables_and_fonts_are_kept_in_temporary_folders_too(unwritable):
    run, temporary = unwritable
    code = "import kilt.viz.lines; from kilt.machine import cache_folder as f; print(f(), f())"
    done = run("-c", code)
    (line,) = warnings_of(done)
    place = temporary / f"kilt-cache-{os.getuid()}"
    assert done.stdout.split() == 2 * [str(place / "tables")]
    assert f"tables are kept in {place}; " in line and done.stderr.splitlines() == [line]
    assert {folder.name for folder in place.iterdir()} == {"kernels", "fonts"}
    chosen = {"KILT_CACHE": str(temporary / "mine"), "NUMBA_CACHE_DIR": str(temporary / "code")}
    assert warnings_of(run("-c", code, **chosen)) == []


def test_kernels_are_compiled_where_they_can_be_kept_nowhere(monkeypatch, capfd):
    """As where the folder for temporary files is read-only too."""

    def none(name):
        raise FileNotFoundError("no usable temporary directory")

    def refuses(*what, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available for file")
        return njit(*what, **options)

    njit = numba.njit
    monkeypatch.setattr(machine, "temporary_folder", none)
    monkeypatch.setattr(numba, "njit", refuses)
    machine.temporary_caches.cache_clear()

    @jit.kernel
    def first(number):
        return number + 1

    @jit.kernel
    def second(number):
        return number + 2

    assert (first(1), second(1)) == (2, 3)
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 1 and "are kept nowhere, and rebuilt by each command" in said[0]
    machine.temporary_caches.cache_clear()
