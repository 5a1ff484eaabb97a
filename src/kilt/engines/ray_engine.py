"""The engine of many processes or machines: every worker is an actor of Ray.

Without an address, Ray is started for this process alone: it listens on the loopback device, and ends with the engine.
With one, workers live on the machines of a cluster that somebody has started, as near to one per machine as there is
room. Every machine needs the same kilt; that is looked at when workers are hired.

Arguments and answers travel by value: a worker sees an array as it was when it was asked, and may not write to it.
A worker that dies is lost for good, with what it was asked: Ray is told never to start it, or repeat anything, again.
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
os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")  # whoever asks after `close` shall not start another Ray
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

ray: Any = package  # half of it has types

NODE = "ray.io/node-id"  # the label by which Ray knows a machine
PREFIX, LOCK = "kilt-ray-own-", ".lock"  # of folders of Rays that we start; whoever holds the lock is alive
STORE = 256 << 20  # bytes of shared memory for what travels, where we start Ray; what is more goes to disk
INLINE = 1 << 20  # bytes that travel with a question or an answer, without shared memory: twice as fast for 200 kB
PATIENCE = 3.0  # seconds for a cluster to say that it is one
PROBING, PROBES = 10.0, 3  # seconds without an answer after which a machine is called, and how often, until it is lost
SETTLING = 10.0  # seconds until what was let go is known to be free again
NEAR = 3.0  # seconds to wait for room beside others, while there may be some elsewhere
STARTING = 120.0  # seconds for the processes of workers to start
DIED, MISSING = "its process died", "kilt or something that it needs is missing there"
INSTALL = "install the same version on every machine"


class Installation(NamedTuple):
    """What has to be the same on all machines."""

    version: str
    source: str  # a fingerprint
    python: str

    def __str__(self) -> str:
        return f"kilt {self.version} (source {self.source}, Python {self.python})"


@cache
def identity() -> Installation:
    """Which kilt this process runs."""
    root = Path(kilt.__file__).parent
    state = blake2b(digest_size=4)
    for path in sorted(root.rglob("*.py")):
        text = path.read_bytes()
        state.update(f"{path.relative_to(root).as_posix()} {len(text)} ".encode() + text)
    return Installation(kilt.__version__, state.hexdigest(), ".".join(map(str, sys.version_info[:3])))


class RayEngine:
    """Workers are processes, here or on the machines of a cluster. One such engine at a time.

    `address` is empty, or HOST:PORT of a cluster, or `auto` for the one that runs on this machine; `threads` is how
    many processes `map` has where we start Ray ourselves. A cluster lends all its cores.
    """

    name = "ray"

    def __init__(self, address: str = "", threads: int = 1) -> None:
        if ray.is_initialized():
            raise EngineError("this process is connected to Ray already: close the other engine first")
        self.address, self.threads = address, threads
        self._workers: list[_RayWorker] = []
        self._folder: Path | None = None  # of the Ray that we start
        self._held = ExitStack()  # the lock of that folder
        self._open = True
        atexit.register(self.close)  # before Ray's own
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
            raise EngineError(f"Ray does not start here: {_first_line(error)}") from error

    def _connect(self) -> None:
        if "://" in self.address:
            raise EngineError(f"kilt has to run on a machine of the cluster, not beyond {self.address}: give HOST:PORT")
        try:
            if self.address != "auto" and not self.address.rpartition(":")[2].isdecimal():
                raise ValueError
            found = ray_private.resolve(self.address)
        except ValueError:
            raise EngineError(f"{self.address!r} is no address of a Ray cluster: give HOST:PORT, or auto") from None
        if found is None or not _is_cluster(found):  # Ray itself would try for minutes
            place = "on this machine" if self.address == "auto" else f"at {self.address}"
            raise EngineError(
                f"there is no Ray cluster {place}: start one with `ray start --head`, or leave the address out"
            )
        ray_private.show_token()
        if not os.environ.get("RAY_AUTH_MODE") and not _is_loopback(found if self.address == "auto" else self.address):
            raise EngineError(
                f"there is no token for the Ray cluster at {self.address}, and whoever reaches it could run anything "
                "there: make one with `ray get-auth-token --generate`, give it to all machines and start Ray again "
                "with RAY_AUTH_MODE=token; or set RAY_AUTH_MODE=disabled, if nobody else is on that network"
            )
        try:
            ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, RuntimeError, ValueError, RayError) as error:
            raise EngineError(
                f"the Ray cluster at {self.address} does not let us in ({_first_line(error)}): see that Ray and Python "
                "are the same there and here, and that ~/.ray/auth_token or RAY_AUTH_TOKEN is too"
            ) from error

    def hire(self, jobs: Sequence[Job]) -> list[Worker]:
        """Make workers, all of them or none, spread over the machines."""
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
        """Call a function of a module for each item; the results, in order."""
        listed, results = list(items), list[R]()
        processes = max(1, int(ray.cluster_resources().get("CPU", 1)))
        # Workers may have taken all cores there are, and have nothing to do while we are here.
        task = _TASK.options(num_cpus=0 if self._workers else 1, scheduling_strategy="SPREAD")
        rest = iter(listed)
        going = deque[Any]()
        while len(results) < len(listed):
            for item in rest:
                going.append(task.remote(work, item))
                if len(going) > processes:
                    break
            # Where this raises, what is going runs to its end for nothing: `ray.cancel` can bring this process down.
            results.append(_get(going.popleft()))
            tick(len(results) / len(listed))
        return results

    def dismiss(self, workers: Iterable[Worker]) -> None:
        """Let workers go."""
        for worker in workers:
            if isinstance(worker, _RayWorker) and worker in self._workers:
                self._workers.remove(worker)
                ray.kill(worker.actor)

    def close(self) -> None:
        """Let all workers go. A Ray that we have started ends; a cluster of others goes on."""
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
        return job.threads if self.address else 0  # at home, workers may outnumber cores

    def _places(self, jobs: Sequence[Job]) -> list[str]:
        """A node for each job: beside whom it asks for if all such wishes have room, and anywhere if not.

        Ray reserves the room of all jobs at once, spread over the machines, in a placement group. The group goes before
        workers come: it would keep the room of a worker that is dismissed until all others are.
        """
        alive = {node["NodeID"] for node in ray.nodes() if _is_alive(node)}
        if not alive:
            raise EngineError("no machine of the cluster is left: start Ray again, and resume the run")
        needs = [{"memory": max(1, job.memory), "CPU": self._cores(job)} for job in jobs]
        anywhere = f"in({','.join(sorted(alive))})"  # Ray itself may not know yet who is not
        wishes = [job.place if job.place in alive else anywhere for job in jobs]
        found = _reserved(needs, wishes, NEAR) if {anywhere} != {*wishes} else None
        found = found or _reserved(needs, [anywhere] * len(jobs), SETTLING)
        if found is None:
            large = max(range(len(jobs)), key=lambda number: (needs[number]["memory"], needs[number]["CPU"]))
            machines = [node for node in ray.nodes() if node["NodeID"] in alive]
            rooms = "; ".join(f"{node['NodeManagerAddress']} has {_room(node['Resources'])}" for node in machines)
            raise EngineError(
                f"there is no room for worker {large} of {len(jobs)}, which needs {_room(needs[large])}, beside the "
                f"others: {rooms} in all; use fewer or smaller workers, or "
                + ("add a machine with `ray start --address`" if self.address else "a cluster of machines")
            )
        return found


def _reserved(needs: Sequence[Mapping[str, float]], places: Sequence[str], patience: float) -> list[str] | None:
    """A node for each need, of those that a label selector allows it; None if there is no room within some seconds."""
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
    """What a worker needs, or a machine has, in words."""
    memory = f"{resources.get('memory', 0) / 1e9:.1f} GB of memory"
    return f"{resources['CPU']:g} cores and {memory}" if resources.get("CPU") else memory


class _Host:
    """The process of a worker, which has the object."""

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
    """An actor, and who it is."""

    where = "not started yet"

    def __init__(self, number: int, actor: Any, place: str) -> None:
        self.number, self.actor, self.place = number, actor, place

    def introduce(self, latest: float) -> None:
        """Wait until its process is there, and see that it runs the kilt that runs here."""
        try:
            self.where, told = _get(self.actor.introduce.remote(), self.number, max(0, latest - time.monotonic()))
        except WorkerLost as error:
            if error.why not in (DIED, MISSING):
                raise
            remedy = (
                "see that RAY_AUTH_MODE, token or disabled, is that of the cluster" if error.why == DIED else INSTALL
            )
            raise EngineError(f"worker {self.number} did not start, {error.why}: {remedy}") from None
        except GetTimeoutError:
            raise EngineError(
                f"worker {self.number} did not start within {STARTING:g} seconds: see that its machine is not busy"
            ) from None
        if told != tuple(identity()):
            raise EngineError(
                f"worker {self.number} at {self.where} runs {Installation(*told)}, this is {identity()}: {INSTALL}"
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
            except GetTimeoutError:  # Ray itself would wait for more than a minute for a machine that is gone
                if not any(_is_there(self._place) for _ in range(PROBES)):
                    raise WorkerLost(self._worker, "its machine cannot be reached") from None


def _get(reference: Any, worker: int | None = None, timeout: float | None = None) -> Any:
    """What was answered. Raises what was raised there, and WorkerLost or EngineError where there is nobody any more."""
    try:
        return ray.get(reference, timeout=timeout)
    except RayTaskError as error:
        raise error.cause from error
    except GetTimeoutError:
        raise
    except RayError as error:
        why = _why(error)
    if worker is None:
        raise EngineError(f"a process that was at work was lost: {why}")
    raise WorkerLost(worker, why)


def _why(error: RayError) -> str:
    """Why somebody was lost, in a few words."""
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
    """Whether somebody at HOST:PORT speaks as Ray does: HTTP/2, whose first frame is of type 4."""
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
    """Whether HOST:PORT is on the loopback device of this machine."""
    try:
        return ip_address(socket.gethostbyname(address.rpartition(":")[0].strip("[]"))).is_loopback
    except OSError:
        return False


def _is_there(place: str) -> bool:
    """Whether a node is there, by its number."""
    return any(node["NodeID"] == place and _is_alive(node) for node in ray.nodes())


def _is_alive(node: Mapping[str, Any]) -> bool:
    """Whether a node is there, which Ray itself may not know for half a minute."""
    try:
        socket.create_connection((node["NodeManagerAddress"], node["NodeManagerPort"]), timeout=PATIENCE).close()
    except OSError:
        return False
    return bool(node["Alive"])


def _sweep() -> None:
    """Remove the folders of Rays whose processes were killed: nobody holds their locks any more."""
    for folder in Path("/tmp").glob(f"{PREFIX}*"):
        with suppress(OSError):  # it belongs to somebody else, or is in use
            if time.time() - (folder / LOCK).stat().st_mtime > SETTLING:  # a newer one may not hold its lock yet
                with locked(folder / LOCK, wait=False):
                    shutil.rmtree(folder, ignore_errors=True)


def _make_token() -> None:
    """See that there is a token, without which Ray obeys nobody. Ray would make it too, for everybody to read."""
    place = Path.home() / ".ray" / "auth_token"
    if not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys() and not place.exists():
        place.parent.mkdir(mode=0o700, exist_ok=True)
        with open(place, "x", opener=lambda path, flags: os.open(path, flags, mode=0o600)) as file:
            file.write(secrets.token_hex(32))


@contextmanager
def _path_of_this_process() -> Iterator[None]:
    """Processes that are started meanwhile find the modules that this one finds."""
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
    """Ray wants SIGTERM for itself: whoever had it before gets it back."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not signal.SIG_DFL and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
