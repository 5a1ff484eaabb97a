"""The machine that kilt runs on: processes, locks between them, time, available memory, and folders for caches."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from math import nan
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

# Bytes of a process that solves or builds, without its tables: Python, libraries, kernels that are on disk. Where these
# are yet to be compiled, it is some 130 MB more.
PROCESS = 235_000_000
LIBRARIES = 700_000_000  # bytes of address space: what Python, NumPy, the compiler and pictures take beside any work
SAME = 2.0  # seconds by which the start time of a process may differ between readings: the clock may have been adjusted
POLL = 0.01  # seconds between attempts to take a lock that another process holds


def cpu_seconds() -> float:
    """Seconds of CPU time so far: of this process, on all its threads, and of those started by it that have ended."""
    ended = os.times()
    return process_time() + ended.children_user + ended.children_system


class ProcessId(NamedTuple):
    """A process of this machine, by its number and start time: another process may get the same number later.

    >>> here = ProcessId.of(os.getpid())
    >>> here.running, here._replace(started=0.0).running
    (True, False)
    """

    pid: int
    started: float  # seconds since 1970

    @classmethod
    def of(cls, pid: int) -> ProcessId:
        """The process that has a number now; it must exist."""
        import psutil

        return cls(pid, psutil.Process(pid).create_time())

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._found() is not None

    def terminate(self) -> None:
        """Send SIGTERM, unless the process has ended."""
        import psutil

        if found := self._found():
            with suppress(psutil.NoSuchProcess):
                found.terminate()

    def _found(self) -> Any:
        """The process, if it runs."""
        import psutil

        try:
            found = psutil.Process(self.pid)
            same = abs(found.create_time() - self.started) < SAME
            return found if same and found.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


class Stopwatch:
    """Wall time and CPU time from now on."""

    def __init__(self) -> None:
        self._began = perf_counter(), cpu_seconds()

    @property
    def spent(self) -> tuple[float, float]:
        """Seconds of wall time and of CPU time so far."""
        return perf_counter() - self._began[0], cpu_seconds() - self._began[1]


class Thinking(NamedTuple):
    """How many decisions a player has made, and the CPU time that they took."""

    decisions: int = 0
    cpu_seconds: float = 0.0

    def __add__(self, other: Thinking) -> Thinking:  # type: ignore[override]
        """Both together."""
        return Thinking(self.decisions + other.decisions, self.cpu_seconds + other.cpu_seconds)

    def since(self, before: Thinking) -> Thinking:
        """What came after an earlier count."""
        return Thinking(self.decisions - before.decisions, self.cpu_seconds - before.cpu_seconds)

    @property
    def milliseconds(self) -> float:
        """CPU time of a decision, on average; nan without decisions."""
        return 1000 * self.cpu_seconds / self.decisions if self.decisions else nan


@contextmanager
def locked(file: Path, *, wait: bool | float = True) -> Iterator[None]:
    """Hold the lock that a file stands for. It goes with the process: one that is killed leaves none behind.

    Parameters
    ----------
    file : Path
        The lock file, made where it is missing. Its content means nothing, and it stays.
    wait : bool or float
        Whether to wait for another process, or thread, that holds the lock; or for how many seconds.

    Raises
    ------
    BlockingIOError
        If somebody else holds it and `wait` is false or over.
    OSError
        If the file cannot be made or opened.
    """
    from filelock import FileLock, Timeout  # dear to import

    lock = FileLock(file, poll_interval=POLL)
    try:
        lock.acquire(timeout=-1 if wait is True else float(wait))
    except Timeout:
        raise BlockingIOError(f"{file} is locked by another process") from None
    try:
        yield
    finally:
        lock.release()


def is_locked(file: Path) -> bool | None:
    """Whether somebody holds the lock that a file stands for, without ever holding it; None where nobody can tell.

    Linux lists the locks of all processes. On file systems without a device of their own, such as those of containers,
    a file may be listed by another name than it has here: what is not found there is not known.
    """
    try:
        found, held = file.stat(), Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return False if Path("/proc/locks").exists() else None
    except OSError:
        return None
    names = {words.split()[-3] for words in held if "->" not in words}  # device:inode; arrows are those who wait
    if f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}" in names:
        return True
    return False if os.major(found.st_dev) else None


class _Controller(NamedTuple):
    """Where a version of Linux control groups says what memory a group has."""

    key: str  # of the controllers in /proc/self/cgroup
    mount: str
    limit: str
    used: str
    freeable: str  # of memory.stat: what the page cache gives back


_CONTROLLERS = (
    _Controller("", "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    _Controller(
        "memory",
        "sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)


def is_writable(folder: Path) -> bool:
    """Whether files can be created in a folder, or where it would be created."""
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


@cache
def temporary_caches() -> Path | None:
    """A temporary folder for all caches whose usual places cannot be written to. The first call writes a warning.

    Later commands of the same user find the same folder. None where the system has no folder for temporary files that
    can be written to.
    """
    folder, where = None, "nowhere, and made again by each command"
    with suppress(OSError):
        folder = temporary_folder("cache")
        where = f"in {folder}"
    sys.stderr.write(
        f"warning: the user's cache folder cannot be written to: compiled kernels and tables are kept {where}; "
        "NUMBA_CACHE_DIR and KILT_CACHE choose folders for them\n"
    )
    return folder


def temporary_folder(name: str) -> Path:
    """The user's own folder of a name for temporary files, or a new one if others could write to that folder."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"kilt-{name}-{user}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()  # a link could lead to a folder of somebody else
    mine = os.name != "posix" or (found.st_uid == user and not found.st_mode & 0o077)
    return folder if stat.S_ISDIR(found.st_mode) and mine else Path(tempfile.mkdtemp(prefix=f"{folder.name}-"))


def available_memory(root: Path = Path("/")) -> int:
    """How much memory this process can still take, in bytes.

    The least of what the machine has left, what the limits of its container or batch job leave (control groups of
    either version, up to the root of the tree), and what `ulimit -v` leaves.

    Parameters
    ----------
    root : Path
        Where ``proc`` and ``sys`` are found.
    """
    import psutil  # dear to import

    return max(0, min([psutil.virtual_memory().available, *_left_in_groups(root), *_left_in_address_space()]))


def too_little_address_space() -> int | None:
    """The limit of `ulimit -v` in bytes where it is below what libraries take, which wait for ever then; else None."""
    most = _address_space()
    return most if most is not None and most < LIBRARIES else None


def fits_memory(size: int) -> bool:
    """Whether this process can grow to a resident size of `size` bytes, of which `PROCESS` are for itself."""
    import psutil

    return size - min(psutil.Process().memory_info().rss, PROCESS) <= available_memory()


def _left_in_groups(root: Path) -> Iterator[int]:
    """What each control group that this process is in has left, where it has a limit."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, keys, group = line.split(":", 2)
        for own in (own for own in _CONTROLLERS if own.key in keys.split(",")):
            top = root / own.mount
            folder = top / group.strip("/")
            # Inside a container the path may be that of the host: then its own group is the top.
            for place in (folder, *folder.parents) if folder.is_dir() else (top,):
                with suppress(OSError, ValueError):  # no such group here, or "max"
                    yield _left_in_group(place, own)
                if place == top:
                    break


def _left_in_group(folder: Path, own: _Controller) -> int:
    limit, used = (int((folder / name).read_text()) for name in (own.limit, own.used))
    said = dict(line.split(" ", 1) for line in (folder / "memory.stat").read_text().splitlines())
    return limit - used + int(said.get(own.freeable, 0))


def _left_in_address_space() -> Iterator[int]:
    """What `ulimit -v` leaves, where the system has it and it is set."""
    import psutil

    most = _address_space()
    if most is not None:
        yield most - psutil.Process().memory_info().vms


def _address_space() -> int | None:
    """The limit of `ulimit -v` in bytes; None where there is none."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if most == resource.RLIM_INFINITY else most
