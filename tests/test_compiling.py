"""Compilation is timed, and is no part of what work takes."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numba
import pytest

from kilt import compiling, jit
from kilt.cli import show
from kilt.compiling import clock, compiled_seconds


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
    with show.compilation_told():
        pass
    assert capfd.readouterr() == ("", "")
    with show.compilation_told():
        kernels()(3)
        kernels()(4)
    said = capfd.readouterr()
    assert said.out == ""
    first, last = said.err.splitlines()
    assert first == "compiling kernels, once per installation …"
    assert last.startswith("compiled kernels for ")
    assert not compiling.listeners


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
