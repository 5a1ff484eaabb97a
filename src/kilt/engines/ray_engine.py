"""An engine that runs workers in several processes or on several machines, through Ray.

Each worker is an actor of Ray.

Without an address, Ray is started for this process only: it listens on the loopback device, and ends with the engine.
With an address, workers run on an existing cluster, spread over its machines as evenly as their memory and cores allow.
All machines need the same version of kilt, which is checked when workers are hired.

Arguments and results are passed by value: a worker gets a copy of an array at the time of the call, and may not write
to it. A worker that dies is lost for good, including its pending calls: Ray is configured never to restart workers or
repeat calls.
"""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from hashlib import blake2b
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

import kilt
from kilt.engines.engine import A, Answer, Job, R, Worker, WorkerLost
from kilt.errors import EngineError
from kilt.machine import locked

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reads these when it is imported
os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")  # calls after `close` must not start another Ray
try:
    import ray as package
    from ray.exceptions import (
        ActorUnavailableError,
        GetTimeoutError,
        NodeDiedError,
        ObjectLostError,
        OutOfMemoryError,
        RayActorError,
        RayError,
        RayTaskError,
    )
    from ray.util import placement_group, placement_group_table, remove_placement_group
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from kilt.engines import ray_private
except ImportError as error:
    raise EngineError(f"the engine `ray` needs Ray, which is missing ({error}): pip install 'kilt[ray]'") from None

ray: Any = package  # its type hints are incomplete

NODE = "ray.io/node-id"  # Ray's label of a machine
PREFIX, LOCK = "kilt-ray-own-", ".lock"  # folders of a Ray that kilt starts; the process that starts it holds the lock
STORE = 256 << 20  # bytes of shared memory for arguments and results if kilt starts Ray; more goes to disk
INLINE = 1 << 20  # arguments and results up to this many bytes are sent with the call, without shared memory
PATIENCE = 3.0  # seconds within which a cluster must answer
# seconds without an answer before a machine is probed, and number of probes before it counts as lost
PROBING, PROBES = 10.0, 3
SETTLING = 10.0  # seconds until freed resources are available again
NEAR = 3.0  # seconds to wait for room on a preferred machine before any other is used
STARTING = 120.0  # seconds for the processes of workers to start
DIED, MISSING = "its process died", "kilt or one of its dependencies is missing there"
INSTALL = "install the same version on every machine"


class Installation(NamedTuple):
    """The versions of kilt and Python, which must agree on all machines."""

    version: str
    source: str  # hash of the source files of kilt
    python: str

    def __str__(self) -> str:
        return f"kilt {self.version} (source {self.source}, Python {self.python})"


@cache
def identity() -> Installation:
    """Return this process's versions of kilt and Python."""
    root = Path(kilt.__file__).parent
    state = blake2b(digest_size=4)
    for path in sorted(root.rglob("*.py")):
        text = path.read_bytes()
        state.update(f"{path.relative_to(root).as_posix()} {len(text)} ".encode() + text)
    return Installation(kilt.__version__, state.hexdigest(), ".".join(map(str, sys.version_info[:3])))


class RayEngine:
    """An engine whose workers are processes, on this machine or on a Ray cluster.

    Only one such engine can exist at a time.

    `address` is empty, HOST:PORT of a cluster, or `auto` for the cluster that runs on this machine. `threads` is the
    number of processes of `map` if Ray is started here. On a cluster, `map` uses all cores.
    """

    name = "ray"

    def __init__(self, address: str = "", threads: int = 1) -> None:
        if ray.is_initialized():
            raise EngineError("this process is connected to Ray already: close the other engine first")
        self.address, self.threads = address, threads
        self._workers: list[_RayWorker] = []
        self._folder: Path | None = None  # files of Ray, if this engine starts it
        self._held = ExitStack()  # holds the lock of that folder
        self._open = True
        atexit.register(self.close)  # runs before Ray's own exit handler
        try:
            with _signals():
                if address:
                    self._connect()
                else:
                    self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        _make_token()
        _sweep()
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir="/tmp"))  # sockets have to have short names
        self._held.enter_context(locked(self._folder / LOCK))
        try:
            with _path_of_this_process():
                ray_private.start(self.threads, self._folder / "r", store=STORE, inline=INLINE)
        except (OSError, RuntimeError, ValueError, RayError) as error:
            raise EngineError(f"Ray cannot be started: {_first_line(error)}") from error

    def _connect(self) -> None:
        if "://" in self.address:
            raise EngineError(f"kilt has to run on a machine of the cluster, not outside {self.address}: use HOST:PORT")
        try:
            if self.address != "auto" and not self.address.rpartition(":")[2].isdecimal():
                raise ValueError
            found = ray_private.resolve(self.address)
        except ValueError:
            raise EngineError(f"{self.address!r} is no address of a Ray cluster: use HOST:PORT, or auto") from None
        if found is None or not _is_cluster(found):  # Ray itself would try for minutes
            place = "on this machine" if self.address == "auto" else f"at {self.address}"
            raise EngineError(
                f"there is no Ray cluster {place}: start one with `ray start --head`, or omit the address"
            )
        ray_private.show_token()
        if not os.environ.get("RAY_AUTH_MODE") and not _is_loopback(found if self.address == "auto" else self.address):
            raise EngineError(
                f"there is no token for the Ray cluster at {self.address}, so anyone who can reach the cluster can run "
                "code there: create a token with `ray get-auth-token --generate`, copy it to all machines, and restart "
                "Ray with RAY_AUTH_MODE=token; or set RAY_AUTH_MODE=disabled on a private network"
            )
        try:
            ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, RuntimeError, ValueError, RayError) as error:
            raise EngineError(
                f"the Ray cluster at {self.address} refuses the connection ({_first_line(error)}): check that Ray and "
                "Python have the same versions there, and that ~/.ray/auth_token or RAY_AUTH_TOKEN is the same"
            ) from error

    def hire(self, jobs: Sequence[Job]) -> list[Worker]:
        """Start one worker for each job, spread over the machines.

        If a worker has no room, none is started, and EngineError is raised.
        """
        hired = list[_RayWorker]()
        try:
            for number, (job, node) in enumerate(zip(jobs, self._places(jobs), strict=True)):
                actor = _ACTOR.options(
                    num_cpus=self._cores(job),
                    memory=job.memory or None,
                    scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
                ).remote()
                hired.append(_RayWorker(number, actor, node))
                self._workers.append(hired[-1])
            latest = time.monotonic() + STARTING
            for worker in hired:
                worker.introduce(latest)
            for answer in [worker.make(job) for worker, job in zip(hired, jobs, strict=True)]:
                answer.get()
        except BaseException:
            self.dismiss(hired)
            raise
        return list[Worker](hired)

    def map(
        self, work: Callable[[A], R], items: Iterable[A], tick: Callable[[float], None] = lambda share: None
    ) -> list[R]:
        """Call a function for each item in several processes, and return the results in order."""
        listed, results = list(items), list[R]()
        processes = max(1, int(ray.cluster_resources().get("CPU", 1)))
        # Workers may occupy all cores, but they are idle during this call.
        task = _TASK.options(num_cpus=0 if self._workers else 1, scheduling_strategy="SPREAD")
        rest = iter(listed)
        going = deque[Any]()
        while len(results) < len(listed):
            for item in rest:
                going.append(task.remote(work, item))
                if len(going) > processes:
                    break
            # After an exception, running calls are not cancelled: `ray.cancel` can crash this process.
            results.append(_get(going.popleft()))
            tick(len(results) / len(listed))
        return results

    def dismiss(self, workers: Iterable[Worker]) -> None:
        """End workers by killing their processes."""
        for worker in workers:
            if isinstance(worker, _RayWorker) and worker in self._workers:
                self._workers.remove(worker)
                ray.kill(worker.actor)

    def close(self) -> None:
        """Stop all workers, and Ray if this engine has started it.

        An existing cluster keeps running.
        """
        if self._open:
            self._open = False
            atexit.unregister(self.close)
            if ray.is_initialized():
                self.dismiss(list(self._workers))
            ray.shutdown()
            self._held.close()
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)

    def _cores(self, job: Job) -> int:
        return job.threads if self.address else 0  # without a cluster, workers may outnumber cores

    def _places(self, jobs: Sequence[Job]) -> list[str]:
        """Return a machine for each job. The preferred machines are used if all preferences can be met.

        Ray reserves the resources of all jobs at once, spread over the machines, in a placement group. The group is
        removed before the workers start: it would keep the resources of a dismissed worker until all others end.
        """
        alive = {node["NodeID"] for node in ray.nodes() if _is_alive(node)}
        if not alive:
            raise EngineError("the cluster has no machine left: start Ray again, and resume the run")
        needs = [{"memory": max(1, job.memory), "CPU": self._cores(job)} for job in jobs]
        anywhere = f"in({','.join(sorted(alive))})"  # Ray may not yet know which machines are lost
        wishes = [job.place if job.place in alive else anywhere for job in jobs]
        found = _reserved(needs, wishes, NEAR) if {anywhere} != {*wishes} else None
        found = found or _reserved(needs, [anywhere] * len(jobs), SETTLING)
        if found is None:
            large = max(range(len(jobs)), key=lambda number: (needs[number]["memory"], needs[number]["CPU"]))
            machines = [node for node in ray.nodes() if node["NodeID"] in alive]
            rooms = "; ".join(f"{node['NodeManagerAddress']} has {_room(node['Resources'])}" for node in machines)
            raise EngineError(
                f"there is no room for worker {large} of {len(jobs)}, which needs {_room(needs[large])} in addition to "
                f"the other workers: {rooms} in all; use fewer or smaller workers, or "
                + ("add a machine with `ray start --address`" if self.address else "a cluster of machines")
            )
        return found


def _reserved(needs: Sequence[Mapping[str, float]], places: Sequence[str], patience: float) -> list[str] | None:
    """Return a machine with room for each need, among those that its label selector allows.

    None if there is no room in time.
    """
    bundles = [{name: amount for name, amount in need.items() if amount} for need in needs]
    group = placement_group(bundles, "SPREAD", bundle_label_selector=[{NODE: place} for place in places])
    latest = time.monotonic() + patience
    try:
        while True:
            table = placement_group_table(group)
            if table["state"] == "CREATED":
                return [table["bundles_to_node_id"][number] for number in range(len(needs))]
            if table["stats"]["scheduling_state"] == "INFEASIBLE" or time.monotonic() > latest:
                return None
            time.sleep(0.02)
    finally:
        remove_placement_group(group)


def _room(resources: Mapping[str, float]) -> str:
    """Return a description of the resources that a worker needs or a machine has."""
    memory = f"{resources.get('memory', 0) / 1e9:.1f} GB of memory"
    return f"{resources['CPU']:g} cores and {memory}" if resources.get("CPU") else memory


class _Host:
    """The process of a worker, which holds the worker's object."""

    def introduce(self) -> tuple[str, tuple[str, ...]]:
        return f"{ray.util.get_node_ip_address()}, process {os.getpid()}", tuple(identity())

    def make(self, make: Callable[..., Any], *arguments: Any) -> None:
        self._object = make(*arguments)

    def call(self, method: str, *arguments: Any) -> Any:
        return getattr(self._object, method)(*arguments)


def _call(work: Callable[[A], R], item: A) -> R:
    return work(item)


_ACTOR = ray.remote(max_restarts=0, max_task_retries=0)(_Host)
_TASK = ray.remote(_call)


class _RayWorker:
    """A worker that is an actor of Ray, with its number and its machine."""

    where = "not started yet"

    def __init__(self, number: int, actor: Any, place: str) -> None:
        self.number, self.actor, self.place = number, actor, place

    def introduce(self, latest: float) -> None:
        """Wait until the worker has started, and check that it runs the same version of kilt."""
        try:
            self.where, told = _get(self.actor.introduce.remote(), self.number, max(0, latest - time.monotonic()))
        except WorkerLost as error:
            if error.why not in (DIED, MISSING):
                raise
            remedy = "check that RAY_AUTH_MODE is the same as on the cluster" if error.why == DIED else INSTALL
            raise EngineError(f"worker {self.number} did not start, {error.why}: {remedy}") from None
        except GetTimeoutError:
            raise EngineError(
                f"worker {self.number} did not start within {STARTING:g} seconds: check the load of its machine"
            ) from None
        if told != tuple(identity()):
            raise EngineError(
                f"worker {self.number} at {self.where} runs {Installation(*told)}, not {identity()} as here: {INSTALL}"
            )

    def make(self, job: Job) -> Answer:
        return _RayAnswer(self.actor.make.remote(job.make, *job.arguments), self.number, self.place)

    def ask(self, method: str, *arguments: Any) -> Answer:
        return _RayAnswer(self.actor.call.remote(method, *arguments), self.number, self.place)


class _RayAnswer:
    def __init__(self, reference: Any, worker: int, place: str) -> None:
        self._reference, self._worker, self._place = reference, worker, place

    def get(self) -> Any:
        while True:
            try:
                return _get(self._reference, self._worker, PROBING)
            except GetTimeoutError:  # Ray would wait for more than a minute for a lost machine
                if not any(_is_there(self._place) for _ in range(PROBES)):
                    raise WorkerLost(self._worker, "its machine cannot be reached") from None


def _get(reference: Any, worker: int | None = None, timeout: float | None = None) -> Any:
    """Return the result of a call.

    Raises the exception of the call, or WorkerLost or EngineError if its process is lost.
    """
    try:
        return ray.get(reference, timeout=timeout)
    except RayTaskError as error:
        raise error.cause from error
    except GetTimeoutError:
        raise
    except RayError as error:
        why = _why(error)
    if worker is None:
        raise EngineError(f"a process was lost during its work: {why}")
    raise WorkerLost(worker, why)


def _why(error: RayError) -> str:
    """Return the reason why a process was lost, in a few words."""
    told = str(error)
    if isinstance(error, OutOfMemoryError) or "NODE_OUT_OF_MEMORY" in told:
        return "its machine ran out of memory"
    if (
        isinstance(error, NodeDiedError)
        or "node has died" in told
        or "node died" in told
        or "node was terminated" in told
    ):
        return "its machine, or Ray on it, was lost"
    if isinstance(error, ActorUnavailableError):
        return "it cannot be reached"
    if isinstance(error, RayActorError):
        return "it was dismissed" if "ray.kill" in told else MISSING if "ModuleNotFoundError" in told else DIED
    return "its answer was lost" if isinstance(error, ObjectLostError) else _first_line(error)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _is_cluster(address: str) -> bool:
    """Return whether the service at HOST:PORT answers like Ray: HTTP/2, with a first frame of type 4."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE) as line:
            if os.environ.get("RAY_USE_TLS") == "1":
                return True
            line.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4" + 5 * b"\0")
            return line.recv(4)[3:] == b"\4"
    except (OSError, OverflowError, ValueError):
        return False


def _is_loopback(address: str) -> bool:
    """Return whether the host of HOST:PORT is this machine, reached by its loopback device."""
    try:
        return ip_address(socket.gethostbyname(address.rpartition(":")[0].strip("[]"))).is_loopback
    except OSError:
        return False


def _is_there(place: str) -> bool:
    """Return whether the machine with a given Ray ID is alive."""
    return any(node["NodeID"] == place and _is_alive(node) for node in ray.nodes())


def _is_alive(node: Mapping[str, Any]) -> bool:
    """Return whether a machine of Ray is alive.

    It is contacted, since Ray may notice a loss only after half a minute.
    """
    try:
        socket.create_connection((node["NodeManagerAddress"], node["NodeManagerPort"]), timeout=PATIENCE).close()
    except OSError:
        return False
    return bool(node["Alive"])


def _sweep() -> None:
    """Remove the folders that killed processes of Ray have left. No process holds their locks."""
    for folder in Path("/tmp").glob(f"{PREFIX}*"):
        with suppress(OSError):  # the folder belongs to another user, or is in use
            # the process of a new folder may not hold its lock yet
            if time.time() - (folder / LOCK).stat().st_mtime > SETTLING:
                with locked(folder / LOCK, wait=False):
                    shutil.rmtree(folder, ignore_errors=True)


def _make_token() -> None:
    """Create the token that Ray requires if there is none. Ray itself would create it readable by all users."""
    place = Path.home() / ".ray" / "auth_token"
    if not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys() and not place.exists():
        place.parent.mkdir(mode=0o700, exist_ok=True)
        with open(place, "x", opener=lambda path, flags: os.open(path, flags, mode=0o600)) as file:
            file.write(secrets.token_hex(32))


@contextmanager
def _path_of_this_process() -> Iterator[None]:
    """Let processes that are started in this context import the same modules as this process."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path)
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


@contextmanager
def _signals() -> Iterator[None]:
    """Restore the handler of SIGTERM, which Ray replaces, at the end of the context."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not signal.SIG_DFL and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
