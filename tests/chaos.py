"""Faults by the thousand: `make chaos`; the tests try a few of each.

Every trial ends in what would have been there without the fault, to the last bit, or in one clear line and an older
state that is intact. A trial is decided by its number, so that one that failed can be looked at again:

    python tests/chaos.py --only kills --trial 17
"""

import argparse
import errno
import json
import os
import random
import re
import resource
import shlex
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer.main

import kilt.cli
from kilt import artifact
from kilt.abstraction.plan import Plan, PublicPlan, plan_named
from kilt.config import read_config
from kilt.errors import KiltError
from kilt.games.gamedef import load_definition
from kilt.games.holdem import Holdem
from kilt.play.acpc import read_action, read_log, read_reply, read_state, state_for_player
from kilt.play.match import Dealer
from kilt.play.phh import read_phhs
from kilt.runs import folder as folders
from kilt.runs.check import check
from kilt.runs.folder import RunFolder
from kilt.solve.tables.disk_store import ABOUT, TRUNK, SubgameStore
from kilt.spots.saved import read_spot

GAME = """GAMEDEF
nolimit
numPlayers = 2
numRounds = 2
stack = 12 12
blind = 2 1
firstPlayer = 2 1
numSuits = 3
numRanks = 4
numHoleCards = 1
numBoardCards = 0 1
END GAMEDEF
"""
CONFIG = """game = "small.game"
cards = "IR-PHS-PHS 3-4"
actions = "1x, a"

[solver]
iterations = 3000
seed = 5
"""


class HarmDoneError(AssertionError):
    """A fault that did harm."""


# Commands in processes of their own, which share what this one has compiled


class Command(NamedTuple):
    """A command that runs."""

    process: int
    line: int  # a pipe with what it says


class Ending(NamedTuple):
    """How a command ended."""

    code: int  # the exit code; less than 0: the signal that ended it
    said: str


# Commands are made once: a process that is forked would take longest for that.
typer.main.get_command = cache(typer.main.get_command)


def begin(arguments: list[str], prepare: Callable[[], None] = lambda: None) -> Command:
    """Fork a process that runs a command after `prepare`."""
    sys.stdout.flush()
    mine, theirs = os.pipe()
    process = os.fork()
    if process:
        os.close(theirs)
        return Command(process, mine)
    code = 70
    try:
        os.dup2(theirs, 1)
        os.dup2(theirs, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        sys.argv = ["kilt", *arguments]
        folders.OFTEN = 0.0
        prepare()
        kilt.cli.main()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def ended(command: Command) -> Ending:
    """Wait for a command."""
    with os.fdopen(command.line, errors="replace") as line:
        said = line.read()
    return Ending(os.waitstatus_to_exitcode(os.waitpid(command.process, 0)[1]), said)


def outcome_of(ending: Ending) -> str:
    """How a command ended: done, killed or refused, which takes one line; HarmDoneError if in any other way."""
    if ending.code == 0:
        return "done"
    if ending.code == -signal.SIGKILL:
        return "killed"
    complaints = [line for line in ending.said.splitlines() if line.startswith("error:")]
    if ending.code == 2 and len(complaints) == 1 and "Traceback" not in ending.said:
        return "refused"
    raise HarmDoneError(f"exit code {ending.code}: {ending.said[-2000:]}")


def warm(arguments: list[str]) -> None:
    """Run a command in this process: those that are forked from it then have all modules and kernels."""
    with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        kilt.cli.app(arguments, standalone_mode=False)


def must(arguments: list[str], prepare: Callable[[], None] = lambda: None) -> None:
    """Run a command that has to work."""
    ending = ended(begin(arguments, prepare))
    if ending.code:
        raise HarmDoneError(f"{shlex.join(arguments)}: exit code {ending.code}: {ending.said[-2000:]}")


class Work(NamedTuple):
    """Something that a user does, which can be killed at any time."""

    arguments: list[str]
    resume: list[str]  # what a user types once it has begun
    made: str  # the folder that it makes
    before: Callable[[Path], None] = lambda home: None


def digest(folder: Path) -> str:
    """What all arrays and subgames of a folder hold; times and places are not in it."""
    parts = []
    for file in sorted(file for file in folder.rglob("*") if file.suffix in (".npy", ".zst")):
        relative = file.relative_to(folder)
        # What is hidden is under way; a checkpoint is as old as the last time that one was written.
        if not any(part.startswith(".") for part in relative.parts) and relative.parts[0] != "checkpoint":
            content = np.load(file) if file.suffix == ".npy" else np.frombuffer(content_of(file), np.uint8)
            parts += [str(relative), content]
    return artifact.fingerprint(*parts)


def content_of(file: Path) -> bytes:
    """What a file of subgames holds; of the trunk's file all but the id of the run, which is another one each time."""
    if file.name != TRUNK:
        return file.read_bytes()
    game = json.loads((file.parent / ABOUT).read_text())["game"]
    kept = SubgameStore.opened(file.parent, game).read_trunk()
    return b"".join([str(kept.passes).encode(), kept.values.tobytes(), *kept.packed[:-1]])


def small_game(home: Path) -> None:
    """Write a game, a configuration of a run, and one with classes of boards, which blades share."""
    (home / "small.game").write_text(GAME)
    (home / "small.toml").write_text(CONFIG)
    rounds, classes = plan_named("IR-PHS-PHS 4-3", (0, 1)).rounds, PublicPlan(2, 4, codes=0, base="IR-PHS-PHS 4-4")
    (home / "cards.toml").write_text(Plan(rounds, (classes,), bins=6, opponents=2).toml())
    (home / "blades.toml").write_text(CONFIG.replace("IR-PHS-PHS 3-4", "cards.toml"))


Swap = Callable[[Path, random.Random], list[Path]]  # which files of a run take the place of those of another
Fault = tuple[str, Callable[[list[str]], Ending]]  # its name, and what runs a command with it
WORKS = {
    "flat": Work(
        ["solve", "--game", "kuhn", "-a", "cfr+", "-n", "60", "--out", "run"], ["solve", "--resume", "run"], "run"
    ),
    "abstract": Work(["solve", "small.toml", "--out", "run"], ["solve", "--resume", "run"], "run"),
    "blades": Work(
        ["solve", "blades.toml", "--engine", "local", "--set", "engine.batch=64", "--out", "run"],
        ["solve", "--resume", "run"],
        "run",
    ),
    "subgames": Work(
        ["solve", "--game", "leduc", "-a", "cfr+disk:average", "-n", "4", "--out", "run"],
        ["solve", "--resume", "run"],
        "run",
    ),
    "workers": Work(  # which go on in one process
        ["solve", "--game", "leduc", "-a", "cfr+disk:average", "-n", "4", "--engine", "local", "--out", "run"],
        ["solve", "--resume", "run"],
        "run",
    ),
    "cards": Work(["abstraction", "build", "PR-KE-PHS 2-2", "--game", "small.game", "--out", "cards"], [], "cards"),
    "export": Work(
        ["export", "made", "agent"], [], "agent", lambda home: shutil.copytree(home.parent / "made", home / "made")
    ),
}


class Chaos:
    """Trials of every kind, in a folder for their files."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.faults = Counter[str]()
        self.outcomes = Counter[str]()
        self.wanted: dict[str, str] = {}
        self.operations: dict[str, int] = {}
        small_game(self.home)
        with self._inside(self.home):
            warm(["solve", "small.toml", "--out", "made"])
            warm(["export", "made", "agent"])
            warm([*WORKS["subgames"].arguments[:-1], "subgames"])
            warm(["match", "made", "always-raise", "--hands", "60", "--json"])

    @contextmanager
    def _inside(self, folder: Path) -> Iterator[None]:
        before = Path.cwd()
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)

    @contextmanager
    def _place(self, work: Work) -> Iterator[Path]:
        place = Path(tempfile.mkdtemp(dir=self.home))
        small_game(place)
        work.before(place)
        try:
            with self._inside(place):
                yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def undisturbed(self, name: str) -> tuple[str, int]:
        """The digest of what a piece of work makes, and the number of file operations that it takes."""
        if name not in self.wanted:
            work = WORKS[name]
            with self._place(work):
                warm(work.arguments)
            with self._place(work) as place:
                counter = place / "operations"
                must(work.arguments, lambda: at_operation(0, counter=counter))
                self.wanted[name] = digest(place / work.made)
                self.operations[name] = len(counter.read_bytes())
        return self.wanted[name], self.operations[name]

    def _disturbed(self, name: str, faults: Iterator[Fault]) -> None:
        """Do a piece of work with a fault in each attempt, and go on until it is done; then compare."""
        work, (wanted, _) = WORKS[name], self.undisturbed(name)
        with self._place(work) as place:
            arguments = work.arguments
            for fault, run in faults:
                self.faults[fault] += 1
                outcome = outcome_of(run(arguments))
                self.outcomes[outcome] += 1
                if outcome == "done":
                    break
                arguments = work.resume if RunFolder.has_run(place / work.made) else work.arguments
            else:
                ending = ended(begin(arguments))
                if outcome_of(ending) != "done":
                    if not re.search(rf"(solve|--resume) {work.made}\b", ending.said):
                        raise HarmDoneError(f"{name} cannot go on: {ending.said}")
                    self.outcomes["had to be resumed"] += 1
                    must(work.resume)
            if digest(place / work.made) != wanted:
                raise HarmDoneError(f"{name} ended with other tables than it would have had")
            check_whole(place / work.made)

    # Kinds of faults

    def kills(self, trial: int) -> None:
        """SIGKILL between two file operations, up to three times in a piece of work, or at any moment."""
        draw = random.Random(f"kills {trial}")
        name = [*WORKS][trial] if trial < len(WORKS) else draw.choice([*WORKS])  # each at least once
        _, operations = self.undisturbed(name)

        def faults() -> Iterator[Fault]:
            for _ in range(draw.randint(1, 3)):
                if draw.random() < 0.7:
                    number = draw.randint(1, operations)
                    yield "killed before a file operation", partial(prepared, partial(at_operation, number))
                else:
                    seconds, stopped = draw.uniform(0, 0.4), draw.random() < 0.3
                    fault = "stopped, then killed" if stopped else "killed at any moment"
                    yield fault, partial(killed_after, seconds=seconds, stopped=stopped)

        self._disturbed(name, faults())

    def disks(self, trial: int) -> None:
        """A disk that is full from some file operation on, or files that may not grow beyond some size."""
        draw = random.Random(f"disks {trial}")
        name = draw.choice([*WORKS])
        _, operations = self.undisturbed(name)

        def faults() -> Iterator[Fault]:
            if draw.random() < 0.7:
                number, error = draw.randint(1, operations), draw.choice([errno.ENOSPC, errno.EIO, errno.EDQUOT])
                yield "file operations that fail", partial(prepared, partial(at_operation, number, error))
            else:
                size = draw.choice([0, 100, 500, 1000, 3000, 10_000])
                limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size))
                yield "files that may not grow", partial(prepared, limit)

        self._disturbed(name, faults())

    def clocks(self, trial: int) -> None:
        """Clocks that jump, forwards and backwards, while a command runs."""
        draw = random.Random(f"clocks {trial}")
        jumping = partial(prepared, partial(jumping_clocks, draw))
        self._disturbed(draw.choice([*WORKS]), iter([("clocks that jump", jumping)]))

    def damage(self, trial: int) -> None:
        """A file of an artifact that is damaged: noticed when it is used, or of no account."""
        draw = random.Random(f"damage {trial}")
        source = self.home / draw.choice(["made", "agent", "subgames"])
        with tempfile.TemporaryDirectory(dir=self.home) as place:
            copy = shutil.copytree(source, Path(place) / "copy")
            file = draw.choice(sorted(file for file in copy.rglob("*") if file.is_file()))
            how = spoil(file, draw)
            self.faults[f"damaged: {how}"] += 1
            played = self._played(copy)
            if played.code == 0 and played.said != self._played(source).said:
                raise HarmDoneError(f"{file.relative_to(copy)} {how}: it plays on, and otherwise")
            try:
                self.outcomes["of no account" if outcome_of(played) == "done" else "refused"] += 1
            except HarmDoneError as harm:
                raise HarmDoneError(f"{file.relative_to(copy)} {how}: {harm}") from None

    @cache  # noqa: B019, there is one of us
    def _played(self, agent: Path) -> Ending:
        """What a match of an agent comes to."""
        ending = ended(begin(["match", str(agent), "always-raise", "--hands", "60", "--json"]))
        if ending.code:
            return ending
        found, _ = json.JSONDecoder().raw_decode(ending.said, ending.said.index("{"))  # it may have compiled something
        return ending._replace(said=str(found["mbb_per_hand"]))

    def swaps(self, trial: int) -> None:
        """Files of another run or of an older state of the same run; and a table of the cache without its manifest."""
        draw = random.Random(f"swaps {trial}")
        name = [*SWAPS][trial] if trial < len(SWAPS) else draw.choice([*SWAPS])  # each at least once
        self.faults[name] += 1
        source, others, files = SWAPS[name]
        if not source:
            self._without_manifest(draw)
            return
        with tempfile.TemporaryDirectory(dir=self.home) as place:
            copy = shutil.copytree(self._solved(*source), Path(place) / "run")
            there = self._solved(*draw.choice(others))
            swapped = files(there, draw)
            for file in swapped:
                target = copy / file.relative_to(there)
                target.unlink(missing_ok=True)  # it may be a link to a file that the run goes on with
                shutil.copyfile(file, target)
            said = ended(begin(["check", str(copy)]))
            if said.code != 1 or "DAMAGED" not in said.said or "Traceback" in said.said:
                raise HarmDoneError(f"{name}: the check says {said.said}")
            uses = {"played": self._played, "resumed": self._resumed}
            for use, does in uses.items():
                found = does(copy)
                outcome = outcome_of(found)
                if outcome == "done" and found.said != does(self._solved(*source)).said:
                    raise HarmDoneError(f"{name}: it is {use}, and otherwise than before")
                self.outcomes[f"{use} as before" if outcome == "done" else "refused"] += 1

    @cache  # noqa: B019, there is one of us
    def _solved(self, how: str, iterations: int) -> Path:
        """A run of subgames, or one of buckets, after some iterations."""
        run = self.home / f"{how}-{iterations}"
        with self._inside(self.home):
            if how == "older":  # what a run of 4 iterations was after 2
                return self._grown[0]
            if how == "subgames" and iterations == 4:
                return self._grown[1]
            seed = ["--seed", str(iterations)]
            arguments = {"subgames": ["--game", "leduc", "-a", "cfr+disk:average"], "buckets": ["small.toml", *seed]}
            must(["solve", *arguments[how], "-n", str(iterations), "--out", run.name])
        return run

    @cached_property
    def _grown(self) -> tuple[Path, Path]:
        """A run of subgames after 2 iterations, and the same run after 4."""
        older, run = self.home / "older", self.home / "subgames-4"
        must(["solve", "--game", "leduc", "-a", "cfr+disk:average", "-n", "2", "--out", str(run)])
        shutil.copytree(run, older)
        must(["solve", "--resume", str(run), "-n", "4"])
        return older, run

    def _resumed(self, run: Path) -> Ending:
        """What a run comes to when it is resumed: what it then has."""
        with tempfile.TemporaryDirectory(dir=self.home) as place:
            copy = shutil.copytree(run, Path(place) / "run")
            more = "4000" if (copy / "config.toml").exists() else "6"
            ending = ended(begin(["solve", "--resume", str(copy), "-n", more]))
            if ending.code == 0:
                check_whole(copy)
                return ending._replace(said=digest(copy))
            return ending

    def _without_manifest(self, draw: random.Random) -> None:
        """A table of the cache that has lost its manifest is made again."""
        work, (wanted, _) = WORKS["cards"], self.undisturbed("cards")
        with self._place(work) as place:
            cache = place / "cache"
            own = partial(os.environ.__setitem__, "KILT_CACHE", str(cache))
            must(work.arguments, own)
            shutil.rmtree(place / work.made)
            draw.choice(sorted(cache.rglob("manifest.json"))).unlink()
            must(work.arguments, own)
            if digest(place / work.made) != wanted:
                raise HarmDoneError("without a manifest in the cache, other tables were built")
            check_whole(cache)
        self.outcomes["made again"] += 1

    def lines(self, trial: int) -> None:
        """A thousand mutated lines and texts, read by everything that reads what others wrote."""
        draw = random.Random(f"lines {trial}")
        for number in range(1000):
            name, (text, read) = draw.choice([*READERS.items()])
            spoilt = mutated(text, draw)
            self.faults[f"spoilt: {name}"] += 1
            try:
                read(spoilt, self.home)
                self.outcomes["read"] += 1
            except KiltError as error:
                self.outcomes["refused"] += 1
                if len(str(error)) > 2000 or "\n" in str(error).strip():
                    raise HarmDoneError(f"{name} {number}: more than a line: {error}") from None
            except Exception as error:
                raise HarmDoneError(f"{name} {number}: {spoilt!r}: {error!r}") from error


def _file_of(where: str, pattern: str) -> Swap:
    """One of the files of another run."""
    return lambda run, draw: [draw.choice(sorted((run / where).glob(pattern)))]


def _all_of(where: str, pattern: str = "*") -> Swap:
    """All files of another run."""
    return lambda run, draw: sorted(file for file in (run / where).glob(pattern) if not file.name.startswith("."))


# By what takes the place of what: the run, the runs that it comes from, and the files; no run: the cache.
_FOUR, _OTHERS = ("subgames", 4), [("subgames", 7), ("older", 2)]
SWAPS: dict[str, tuple[tuple[str, int] | None, list[tuple[str, int]], Swap]] = {
    "a subgame of another run": (_FOUR, [("subgames", 7)], _file_of("subgames", "[0-9]*.zst")),
    "an older subgame": (_FOUR, [("older", 2)], _file_of("subgames", "[0-9]*.zst")),
    "a subgame of another strategy": (_FOUR, _OTHERS, _file_of("strategy", "[0-9]*.zst")),
    "all subgames of another run": (_FOUR, _OTHERS, _all_of("subgames")),
    "all subgames of another strategy": (_FOUR, _OTHERS, _all_of("strategy", "*.zst")),
    "a trunk of another run": (_FOUR, _OTHERS, _file_of("subgames", "trunk.zst")),
    "the strategy of another run": (_FOUR, _OTHERS, _all_of("strategy")),
    "the strategy of another seed": (("buckets", 3000), [("buckets", 3001)], _all_of("strategy")),
    "a table of the cache without its manifest": (None, [], _all_of("")),
}

# What tries a fault, how often in a campaign, and how often in the tests.
KINDS = {
    "kills": (Chaos.kills, 1000, 4),
    "disks": (Chaos.disks, 500, 3),
    "clocks": (Chaos.clocks, 50, 1),
    "damage": (Chaos.damage, 10_000, 8),
    "swaps": (Chaos.swaps, 300, len(SWAPS)),
    "lines": (Chaos.lines, 1000, 1),
}


# Faults


def at_operation(number: int, error: int | None = None, counter: Path | None = None) -> None:
    """From here on, end this process before its file operation of that number, or let that and all later ones fail.

    With `counter`, a file, only count: a byte for each.
    """
    seen = 0
    line = os.open(counter, os.O_WRONLY | os.O_CREAT) if counter else -1
    home = str(Path.cwd())

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event == "open":
            if isinstance(arguments[0], int) or not arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                return
        elif event not in ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "os.utime"):
            return
        if not str(Path(os.fsdecode(arguments[0])).absolute()).startswith(home):
            return
        seen += 1
        if line >= 0:
            os.write(line, b".")
        elif seen == number and error is None:
            os.kill(os.getpid(), signal.SIGKILL)
        elif seen >= number and error is not None:
            raise OSError(error, os.strerror(error), str(arguments[0]))

    sys.addaudithook(watch)


def prepared(prepare: Callable[[], None], arguments: list[str]) -> Ending:
    """Run a command in a process with a fault in it."""
    return ended(begin(arguments, prepare))


def killed_after(arguments: list[str], seconds: float, *, stopped: bool) -> Ending:
    """Run a command and kill it after some time, if it is still there; it may have been stopped for a while before."""
    command = begin(arguments)
    process = command.process
    time.sleep(seconds)
    if stopped:
        os.kill(process, signal.SIGSTOP)
        time.sleep(0.02)
        if seconds < 0.2:
            os.kill(process, signal.SIGCONT)
            time.sleep(0.02)
    os.kill(process, signal.SIGKILL)  # a process that has ended is still ours to wait for
    return ended(command)


def jumping_clocks(draw: random.Random) -> None:
    """Let every clock that kilt reads jump by up to a day, and the ones that may by so much backwards."""
    at = {"time": 0.0, "perf_counter": 0.0, "monotonic": 0.0}
    real = {name: getattr(time, name) for name in at}

    def jumping(name: str) -> Callable[[], float]:
        def clock() -> float:
            if draw.random() < 0.2:
                at[name] += draw.uniform(0 if name != "time" else -86400, 86400)
            return float(real[name]() + at[name])

        return clock

    clocks = {real[name]: jumping(name) for name in at}
    for module in [module for name, module in sys.modules.items() if name.startswith("kilt") or name == "time"]:
        for name, value in list(vars(module).items()):
            if callable(value) and value in clocks:
                setattr(module, name, clocks[value])


def spoil(file: Path, draw: random.Random) -> str:
    """Damage a file in some way; which."""
    content = bytearray(file.read_bytes())
    how = draw.choice(["flipped", "cut off", "longer", "zeros", "noise", "gone", "empty", "a folder", "another's"])
    if not content and how in ("flipped", "cut off", "zeros", "noise"):
        how = "longer"
    place = draw.randrange(len(content)) if content else 0
    if how == "flipped":
        content[place] ^= 1 << draw.randrange(8)
    elif how == "cut off":
        del content[place:]
    elif how == "longer":
        content += draw.randbytes(draw.randint(1, 100))
    elif how == "zeros":
        content[place:] = bytes(len(content) - place)
    elif how == "noise":
        content[place:] = draw.randbytes(len(content) - place)
    elif how == "another's":
        other = draw.choice(sorted(one for one in file.parent.rglob("*") if one.is_file()))
        content = bytearray(other.read_bytes())
    file.unlink()
    if how == "a folder":
        file.mkdir()
    elif how != "gone":
        file.write_bytes(b"" if how == "empty" else content)
    return how


def check_whole(folder: Path) -> None:
    """Everything in a folder has the checksums that it says."""
    for found in check(folder):
        if found.damage:
            raise HarmDoneError(f"{found.path}: {found.damage}")


# Texts that others wrote


def mutated(text: str, draw: random.Random) -> str:
    """A text with one to five small changes."""
    letters = list(text)
    for _ in range(draw.randint(1, 5)):
        place = draw.randrange(len(letters) + 1)
        how = draw.randrange(6)
        if how == 0:
            del letters[place : place + draw.randint(1, 6)]
        elif how == 1:
            letters[place:place] = draw.choice("0123456789:|/crf[]{}()\"'\\=,.-+eE \t\n\r\0#xé♠𝒜٣")
        elif how == 2 and letters:
            letters[place : place + 1] = draw.choice(letters)
        elif how == 3:
            letters[place:place] = letters[place : place + draw.randint(1, 12)]
        elif how == 4:
            letters[place:place] = draw.choice(["9" * 30, "1e999", "nan", "-1", "true", "null", "../..", "\ud800"])
        else:
            del letters[place:]
    return "".join(letters)


NO_LIMIT, LIMIT = (Holdem(load_definition(name)) for name in ("holdem.nolimit.2p", "holdem.limit.2p"))
ASKED = state_for_player(NO_LIMIT.start().actor, 3, NO_LIMIT.start(), Dealer(NO_LIMIT).deal(3))
LOG = (
    "# name/game/hands/seed Ann\nSTATE:0:r300c/r900c/cc/cc:As9s|Th9h/Kd8h9d/4c/5d:-900|900:Ann|Bob\n"
    "STATE:1:cr400f:2c7d|AhAd:-100|100:Bob|Ann\nSCORE:-800|800:Ann|Bob\n"
)
PHH = (
    'variant = "NT"\nantes = [0, 0]\nblinds_or_straddles = [50, 100]\nmin_bet = 100\nstarting_stacks = [20000, 20000]\n'
    'actions = ["d dh p1 AsKs", "d dh p2 QhQd", "p1 cbr 300", "p2 f"]\n'
)
SPOT = 'board = "QsJh2h"\npot = 6\nstacks = 97\nranges = ["QQ+,AKs", "TT+,AQs+"]\nbets = "50%, a"\n'


def read_file(read: Callable[[Path], object], name: str) -> Callable[[str, Path], object]:
    def reader(text: str, home: Path) -> object:
        file = home / name
        file.write_bytes(text.encode(errors="surrogatepass"))
        return read(file)

    return reader


READERS: dict[str, tuple[str, Callable[[str, Path], object]]] = {
    "states": (f"{ASKED}", lambda text, home: read_state(text, NO_LIMIT)),
    "replies": (f"{ASKED}:r300", lambda text, home: read_reply(text, ASKED, NO_LIMIT)),
    "actions": ("r300", lambda text, home: read_action(NO_LIMIT.start(), text)),
    "logs": (LOG, lambda text, home: read_log(text, NO_LIMIT)),
    "hands": (PHH, lambda text, home: read_phhs(text, NO_LIMIT)),
    "configurations": (CONFIG, read_file(read_config, "spoilt.toml")),
    "spots": (SPOT, read_file(read_spot, "spoilt-spot.toml")),
    "games": (GAME, read_file(lambda file: kilt.load_game(str(file)), "spoilt.game")),
}


def campaign(kinds: list[str], trials: Callable[[str], Iterable[int]]) -> Iterator[dict[str, Any]]:
    """Try faults of some kinds, those trials of each; what became of them, kind by kind."""
    with tempfile.TemporaryDirectory(prefix="kilt-chaos-") as home:
        os.environ["KILT_CACHE"] = str(Path(home) / "cache")
        chaos = Chaos(Path(home))
        for kind in kinds:
            chaos.faults.clear()
            chaos.outcomes.clear()
            began, done, harm = time.monotonic(), 0, 0
            for number in trials(kind):
                try:
                    KINDS[kind][0](chaos, number)
                except HarmDoneError as error:
                    harm += 1
                    print(f"{kind} {number}: {error}", file=sys.stderr, flush=True)  # noqa: T201
                done += 1
            row = {"kind": kind, "trials": done, "tried": chaos.faults.total(), "harm": harm}
            row |= {"seconds": round(time.monotonic() - began)}
            yield row | {"faults": dict(chaos.faults), "outcomes": dict(chaos.outcomes)}


def read_ledger(file: Path) -> list[dict[str, Any]]:
    """What earlier campaigns wrote down, oldest first."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def next_trial(rows: list[dict[str, Any]], kind: str) -> int:
    """The first trial of a kind that no earlier campaign has tried."""
    return sum(row["trials"] for row in rows if row["kind"] == kind)


def table(rows: list[dict[str, Any]]) -> str:
    """Faults tried, what became of them and how many did harm, over all campaigns, in Markdown."""
    lines = ["| fault | tried | ended in | harm |", "|---|---|---|---|"]
    for kind in KINDS:
        mine = [row for row in rows if row["kind"] == kind]
        faults, outcomes = Counter[str](), Counter[str]()
        for row in mine:
            faults.update(row["faults"])
            outcomes.update(row["outcomes"])
        if mine:
            tried = ", ".join(f"{name} {count:,}" for name, count in sorted(faults.items()))
            ended_in = ", ".join(f"{name} {count:,}" for name, count in sorted(outcomes.items()))
            harm = sum(row["harm"] for row in mine)
            lines.append(f"| **{kind}**: {tried} | {faults.total():,} | {ended_in} | {harm} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Try faults of every kind, and say what became of them.")
    parser.add_argument("--only", choices=[*KINDS], action="append", help="a kind; may be given again")
    parser.add_argument("--share", type=float, default=1.0, help="of the trials")
    parser.add_argument("--few", action="store_true", help="as few as the tests try")
    parser.add_argument("--trial", type=int, help="this one alone")
    parser.add_argument("--ledger", type=Path, help="a file that adds up campaigns: go on where the last one ended")
    options = parser.parse_args()
    known = read_ledger(options.ledger) if options.ledger else []

    def asked(kind: str) -> Iterable[int]:
        if options.trial is not None:
            return [options.trial]
        _, many, some = KINDS[kind]
        first = next_trial(known, kind)
        return range(first, first + (some if options.few else round(many * options.share)))

    found = []
    for row in campaign(options.only or [*KINDS], asked):
        found.append(row)
        print(json.dumps(row), flush=True)  # noqa: T201
        if options.ledger:
            with options.ledger.open("a") as ledger:
                ledger.write(json.dumps(row) + "\n")
    if options.ledger:
        print(table(known + found))  # noqa: T201
    sys.exit(1 if any(row["harm"] for row in found) else 0)
