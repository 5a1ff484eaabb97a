"""Query the operating system: processes, locks, time, memory and cache folders."""

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

# Bytes of a process that solves or builds, without its tables: Python, libraries, compiled kernels. A process that has
# to compile kernels first takes about 130 MB more.
PROCESS = 235_000_000
LIBRARIES = 700_000_000  # bytes of address space for Python, NumPy, the compiler and plotting, before any work
SAME = 2.0  # tolerance in seconds of a process's start time: the clock may be adjusted in between
# On Windows, without folders for the author and "Cache": the location of kilt 0.1.0's caches.
PLACE: dict[str, Any] = {"appauthor": False, "opinion": False}
POLL = 0.01  # seconds between attempts to take a lock that another process holds


def cpu_seconds() -> float:
    """Return the CPU time in seconds of this process and its finished child processes."""
    ended = os.times()
    return process_time() + ended.children_user + ended.children_system


class ProcessId(NamedTuple):
    """The identity of a process: its number and its start time, because numbers are reused.

    >>> here = ProcessId.with_number(os.getpid())
    >>> here.running, here._replace(started=0.0).running
    (True, False)
    """

    pid: int
    started: float  # seconds since 1970

    @classmethod
    def with_number(cls, pid: int) -> ProcessId:
        """Return the running process that has the given number."""
        import psutil

        return cls(pid, psutil.Process(pid).create_time())

    @property
    def running(self) -> bool:
        """Return whether the process is still running."""
        return self._found() is not None

    def terminate(self) -> None:
        """Ask the process to end, by the signal SIGTERM.

        Does nothing if it has already ended.
        """
        import psutil

        if found := self._found():
            with suppress(psutil.NoSuchProcess):
                found.terminate()

    def _found(self) -> Any:
        """Return the process as a psutil object, or None if it has ended."""
        import psutil

        try:
            found = psutil.Process(self.pid)
            same = abs(found.create_time() - self.started) < SAME
            return found if same and found.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


class Stopwatch:
    """A stopwatch for wall time and CPU time since its creation."""

    def __init__(self) -> None:
        self._began = perf_counter(), cpu_seconds()

    @property
    def spent(self) -> tuple[float, float]:
        """The wall time and CPU time since the start, in seconds."""
        return perf_counter() - self._began[0], cpu_seconds() - self._began[1]


class DecisionTime(NamedTuple):
    """The number of decisions that a player has made, and their CPU time."""

    decisions: int = 0
    cpu_seconds: float = 0.0

    def __add__(self, other: DecisionTime) -> DecisionTime:  # type: ignore[override]
        """Return the sum of two counts."""
        return DecisionTime(self.decisions + other.decisions, self.cpu_seconds + other.cpu_seconds)

    def since(self, before: DecisionTime) -> DecisionTime:
        """Return the number and CPU time of decisions since an earlier count."""
        return DecisionTime(self.decisions - before.decisions, self.cpu_seconds - before.cpu_seconds)

    @property
    def milliseconds(self) -> float:
        """The mean CPU time per decision in milliseconds, or nan without decisions."""
        return 1000 * self.cpu_seconds / self.decisions if self.decisions else nan


@contextmanager
def locked(file: Path, *, wait: bool | float = True) -> Iterator[None]:
    """Hold a lock file during a ``with`` block, to keep other processes out.

    The lock is released even if the process is killed.

    Parameters
    ----------
    file : Path
        The lock file, created if it is missing. Its content is irrelevant, and it is never deleted.
    wait : bool or float
        Whether to wait for another process, or thread, that holds the lock; or for how many seconds.

    Raises
    ------
    BlockingIOError
        If another process or thread holds the lock and `wait` is False, or its time is over.
    OSError
        If the file cannot be created or opened.
    """
    from filelock import FileLock, Timeout  # slow to import

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
    """Return whether a process holds a lock file, or None if that is unknown.

    Linux lists the locks of all processes. On file systems without a device of their own, such as those of containers,
    a file may be listed under another name: if it is not found, the result is None.
    """
    try:
        found, held = file.stat(), Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return False if Path("/proc/locks").exists() else None
    except OSError:
        return None
    names = {words.split()[-3] for words in held if "->" not in words}  # device:inode; arrows mark waiting processes
    if f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}" in names:
        return True
    return False if os.major(found.st_dev) else None


class _Controller(NamedTuple):
    """The names of the memory files of one version of Linux control groups."""

    key: str  # the name of the controllers in /proc/self/cgroup
    mount: str
    limit: str
    used: str
    freeable: str  # the entry of memory.stat for page cache that can be freed


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
    """Return whether files can be created in a folder, which need not exist yet."""
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def cache_folder() -> Path:
    """Return the folder for cached tables: ``$KILT_CACHE``, or the user's cache folder."""
    given = os.environ.get("KILT_CACHE")
    return Path(given) if given else _usual_cache()


@cache
def _usual_cache() -> Path:
    """Return the user's cache folder, or a temporary folder if it is not writable."""
    import platformdirs  # takes a while to import

    usual = platformdirs.user_cache_path("kilt", **PLACE)
    instead = None if is_writable(usual) else temporary_caches()
    return usual if instead is None else instead / "tables"


@cache
def temporary_caches() -> Path | None:
    """Return a temporary folder for caches if the usual folder is not writable.

    The first call prints a warning.

    Later commands of the same user find the same folder. None if the system has no writable folder for temporary files.
    """
    folder, where = None, "nowhere, and rebuilt by each command"
    with suppress(OSError):
        folder = temporary_folder("cache")
        where = f"in {folder}"
    sys.stderr.write(
        f"warning: the user's cache folder cannot be written to: compiled kernels and tables are kept {where}; "
        "NUMBA_CACHE_DIR and KILT_CACHE choose folders for them\n"
    )
    return folder


def temporary_folder(name: str) -> Path:
    """Return the user's temporary folder with a given name, or a new one if others can write to it."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"kilt-{name}-{user}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()  # a link could lead to another user's folder
    mine = os.name != "posix" or (found.st_uid == user and not found.st_mode & 0o077)
    return folder if stat.S_ISDIR(found.st_mode) and mine else Path(tempfile.mkdtemp(prefix=f"{folder.name}-"))


def available_memory(root: Path = Path("/")) -> int:
    """Return the number of bytes of memory that this process can still allocate.

    The result is the minimum of the machine's free memory, of the memory limits of its container or batch job (control
    groups of either version, up to the root), and of `ulimit -v`.

    Parameters
    ----------
    root : Path
        Folder that contains ``proc`` and ``sys``.

    Returns
    -------
    int
        Bytes.
    """
    import psutil  # slow to import

    return max(0, min([psutil.virtual_memory().available, *_left_in_groups(root), *_left_in_address_space()]))


def too_little_address_space() -> int | None:
    """Return the limit of `ulimit -v` in bytes if it is so low that libraries hang, or None."""
    most = _address_space()
    return most if most is not None and most < LIBRARIES else None


def fits_memory(size: int) -> bool:
    """Return whether this process can grow to `size` bytes of memory.

    The size includes `PROCESS` bytes for the process without its tables.
    """
    import psutil

    return size - min(psutil.Process().memory_info().rss, PROCESS) <= available_memory()


def _left_in_groups(root: Path) -> Iterator[int]:
    """Yield the free memory in bytes of each control group of this process that has a limit."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, keys, group = line.split(":", 2)
        for own in (own for own in _CONTROLLERS if own.key in keys.split(",")):
            top = root / own.mount
            folder = top / group.strip("/")
            # Inside a container, the path may be that of the host: then the top group is the container's.
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
    """Yield the bytes of address space left under `ulimit -v`, if that limit is set."""
    import psutil

    most = _address_space()
    if most is not None:
        yield most - psutil.Process().memory_info().vms


def _address_space() -> int | None:
    """Return the limit of `ulimit -v` in bytes, or None if there is no limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if most == resource.RLIM_INFINITY else most
