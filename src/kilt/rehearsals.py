"""Compile the kernels of frequent commands ahead of time, for ``kilt setup``.

Kernels are compiled at their first call and cached on disk. A rehearsal is a tiny piece of work with public functions,
which calls the first kernels of a command; `REHEARSALS` lists them by the frequency of commands. `setup` distributes
them over several processes. Processes that need the same kernel compile it once: see `jit`.

>>> list(REHEARSALS)[:3]
['play', 'equity', 'leduc']
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

import kilt
from kilt import artifact, jit, machine
from kilt.compiling import compiled_seconds
from kilt.errors import KiltError, RunError
from kilt.machine import available_memory

# No-limit hold'em with a deck of 20 cards: all features of hold'em, with tiny tables.
TINY = """\
GAMEDEF
nolimit
numPlayers = 2
numRounds = 4
stack = 1000 1000
blind = 100 50
firstPlayer = 2 1 1 1
numSuits = 4
numRanks = 5
numHoleCards = 2
numBoardCards = 0 3 1 1
END GAMEDEF
"""
EACH = 500_000_000  # bytes of a process that compiles, including its libraries
CARDS = "IR-KE-KO 10-4-4-4"
BETS = "1x, a; a"


class Rehearsal(NamedTuple):
    """A small task whose only purpose is to compile the kernels of a command."""

    work: Callable[[Path], object]  # called with a folder for its files
    seconds: float  # approximate time to compile its kernels: the longest rehearsals begin first


class Setup(NamedTuple):
    """The result of `setup`: the seconds spent on compilation, and the number of processes."""

    seconds: float  # elapsed time
    compiling: float  # seconds of compiling, summed over processes
    workers: int  # number of processes; 0: everything was already compiled


def setup(*, workers: int | None = None, tick: Callable[[str, float], object] = lambda what, share: None) -> Setup:
    """Compile the kernels of frequent commands ahead of time, in several processes.

    Parameters
    ----------
    workers : int, optional
        Number of processes. Default: one for each core, as far as memory allows.
    tick : callable
        Called with the name of each finished rehearsal, and the finished share.

    Returns
    -------
    Setup
        Times and number of processes. If nothing has changed since the last call, nothing is compiled.

    Raises
    ------
    RunError
        If a rehearsal fails.
    """
    if workers is not None and workers < 1:
        raise RunError(f"the number of processes is {workers}: use 1 or more")
    began = perf_counter()
    if is_ready():
        return Setup(perf_counter() - began, 0.0, 0)
    order = sorted(REHEARSALS, key=lambda name: -REHEARSALS[name].seconds)
    workers = min(workers, len(order)) if workers else workers_for(len(order))
    compiling, files = 0.0, set[str]()
    with (
        TemporaryDirectory(prefix="kilt-setup-") as folder,
        ThreadPoolExecutor(workers) as pool,
        _Workers(workers, folder) as crew,
    ):
        calls = {pool.submit(crew.rehearse, name): name for name in order}
        try:
            for done, call in enumerate(as_completed(calls), start=1):
                seconds, used = call.result()
                compiling += seconds
                files |= set(used)
                tick(calls[call], done / len(order))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    _note(files)
    return Setup(perf_counter() - began, compiling, workers)


def workers_for(rehearsals: int) -> int:
    """Return the number of processes for compiling kernels on this machine.

    There is one for each core, or fewer if memory is short.
    """
    return max(1, min(jit.cores(), available_memory() // EACH, rehearsals))


def is_ready() -> bool:
    """Return whether `setup` has compiled all kernels for this version and this processor."""
    try:
        files = json.loads(_mark().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(files) and all(Path(file).exists() for file in files)


def _mark() -> Path:
    """Return the file that lists the compiled kernels: one for each installation and kind of processor."""
    root = Path(kilt.__file__).parent
    sources = [(file.relative_to(root).as_posix(), file.stat()) for file in sorted(root.rglob("*.py"))]
    stamps = [f"{name} {found.st_mtime_ns} {found.st_size}" for name, found in sources]
    kept = os.environ.get("NUMBA_CACHE_DIR", "")
    return machine.cache_folder() / "compiled" / artifact.fingerprint(str(root), kept, jit.compile_target(), *stamps)


def _note(files: set[str]) -> None:
    """Record that all kernels are compiled, and in which files they are cached."""
    with artifact.os_errors("the cache folder cannot be written to"):
        mark = _mark()
        mark.parent.mkdir(parents=True, exist_ok=True)
        artifact.write_text(mark, json.dumps(sorted(files)))


class _Workers:
    """Worker processes that run rehearsals by name, with a temporary folder for their tables."""

    def __init__(self, count: int, folder: str) -> None:
        sources, given = str(Path(kilt.__file__).parents[1]), os.environ.get("PYTHONPATH")
        own = {
            "KILT_CACHE": f"{folder}/tables",  # an empty cache: with existing tables, no kernel would be called
            "TMPDIR": folder,
            "PYTHONPATH": os.pathsep.join([sources, given] if given else [sources]),
        }
        command, pipe = [sys.executable, "-m", "kilt.rehearsals"], subprocess.PIPE
        self._idle = SimpleQueue[subprocess.Popen[str]]()
        self._all = [
            subprocess.Popen(command, env=os.environ | own, cwd=folder, stdin=pipe, stdout=pipe, text=True)
            for _ in range(count)
        ]
        for process in self._all:
            self._idle.put(process)

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._all:
            process.kill()
            process.communicate()

    def rehearse(self, name: str) -> tuple[float, list[str]]:
        """Run a small task in an idle process, to compile its kernels.

        Returns the seconds of compilation and the kernels' cache index files.
        """
        process = self._idle.get()
        assert process.stdin and process.stdout
        try:
            process.stdin.write(f"{name}\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
        except (OSError, ValueError):
            raise RunError(f"the process that compiled kernels for {name!r} ended: use fewer workers") from None
        self._idle.put(process)
        if "error" in answer:
            raise RunError(f"kernels for {name!r} cannot be compiled: {answer['error']}")
        return answer["seconds"], answer["files"]


def rehearse(names: list[str], folder: Path) -> None:
    """Run small tasks by name, to compile their kernels."""
    for name in names:
        place = folder / name
        place.mkdir()
        REHEARSALS[name].work(place)


def _serve() -> None:
    """Read names of rehearsals from standard input, run them, and answer on standard output."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        before = compiled_seconds()
        try:
            with TemporaryDirectory() as folder:
                rehearse([line.strip()], Path(folder))
            answer: dict[str, object] = {"seconds": compiled_seconds() - before, "files": jit.cache_index_files()}
        except (KiltError, OSError) as error:
            answer = {"error": str(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


# The rehearsals ------------------------------------------------------------------------------------------------------


def _play(folder: Path) -> None:
    """Play hands at a table against the agent that comes with kilt."""
    from kilt.play.person import Session
    from kilt.players.reference import player

    agent, game = player("house").at()
    session = Session(game, "you", agent, _Caller())
    for _ in range(4):
        session.play()


class _Caller:
    """A simulated person who calls every bet."""

    def ask(self, view: object, *, again: bool) -> str:
        return "call"

    def _silent(self, *_: object) -> None:
        pass

    begin = acted = dealt = tell = advise = explain = end = _silent


def _equity(folder: Path) -> None:
    """Compute the equity of a hand against a range, before and on the flop."""
    kilt.equity("AsKh", "QQ+,AK", "Qd7h2c")
    kilt.equity("AsKh", "QdQc")


def _leduc(folder: Path) -> None:
    """Solve small games with CFR+ and as a linear programme, and evaluate a fixed strategy."""
    kilt.solve("leduc", iterations=10, folder=folder / "run")
    kilt.solve("leduc", "lp")
    kilt.exploitability("always-call", "leduc")


def _plan(folder: Path) -> None:
    """Plan a configuration: count its betting tree, and sample the game for a moment to measure the speed."""
    from kilt.abstraction.abstract_game import SyntheticGame
    from kilt.config import config_of
    from kilt.runs.examples import example_named
    from kilt.solve.external import measure_speed

    plan = kilt.plan_run(config_of(tomllib.loads(example_named(""))))
    plan.cost()
    measure_speed(SyntheticGame(plan.game, plan.size.buckets, plan.menu), plan.options, 2, seconds=0.05)


def _spot(folder: Path) -> None:
    """Solve a turn and a river spot on one and on several threads, and the turn with compact tables too."""
    from kilt.spots.spot import Spot

    for board, compact in (("Qs Jh 2h 7c", False), ("Qs Jh 2h 7c", True), ("Qs Jh 2h 7c 3d", False)):
        spot = Spot(board, 10, ("QQ+,AK", "JJ,AQ"), stacks=20, bets="1x, a", compact=compact)
        for threads in (1, 2):
            spot.solve(iterations=2, threads=threads).at("")


def _royal(folder: Path) -> None:
    """Build a card abstraction."""
    kilt.build_abstraction("IR-KE-KO 20-30-30-30", "royal.limit.2p", folder / "cards")


def _demo(folder: Path) -> None:
    """Run the steps of ``kilt demo`` with a tiny deck: classes of flops, buckets, a run, a match, a sanity check."""
    from kilt.abstraction.plan import PublicPlan, plan_named
    from kilt.evaluate.evaluator import evaluator_for
    from kilt.players.reports import sanity_reports

    (folder / "tiny.game").write_text(TINY, encoding="utf-8")
    plan = replace(plan_named(CARDS, (0, 3, 1, 1)), public=(PublicPlan(2, 3, base="IR-KE-KO 10-8-8-8", codes=8),))
    (folder / "cards.toml").write_text(plan.toml(), encoding="utf-8")
    config = {
        "game": str(folder / "tiny.game"),
        "cards": str(folder / "cards.toml"),
        "actions": BETS,
        "solver": {"linear": True, "threads": 2},
    }
    begun = kilt.start_run(config, folder / "run", iterations=20_000)
    begun.evaluator = evaluator_for(
        begun.problem, patience=0.0
    )  # only win rates, as for a game too large for exact evaluation
    begun.finish()
    run = str(folder / "run")
    for opponent in ("always-call", f"{run}@new-0.2"):
        kilt.play_match(run, opponent, 20)
    sanity_reports(run, deals=20)


def _walk(folder: Path) -> None:
    """Solve a game with CFR+ on its public tree, which holds vectors over all private hands."""
    kilt.solve("rhode-island", iterations=2)


REHEARSALS = {
    "play": Rehearsal(_play, 10),
    "equity": Rehearsal(_equity, 3),
    "leduc": Rehearsal(_leduc, 5),
    "plan": Rehearsal(_plan, 9),
    "spot": Rehearsal(_spot, 25),
    "royal": Rehearsal(_royal, 12),
    "demo": Rehearsal(_demo, 30),
    "walk": Rehearsal(_walk, 25),
}

if __name__ == "__main__":
    _serve()
