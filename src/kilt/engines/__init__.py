"""Engines, which run heavy work in this process, in several processes or on a cluster. `ENGINES` lists them."""

from __future__ import annotations

from collections.abc import Callable

from kilt.engines.engine import Answer, Crew, Engine, Job, Worker, WorkerLost
from kilt.engines.local import LocalEngine
from kilt.errors import EngineError

__all__ = [
    "ENGINES",
    "Answer",
    "Crew",
    "Engine",
    "EngineError",
    "Job",
    "LocalEngine",
    "Worker",
    "WorkerLost",
    "engine_named",
    "require_engine",
]


def _local(address: str, threads: int) -> Engine:
    if address:
        raise EngineError(f"the engine `local` takes no address, but {address} is given: omit it, or use `ray`")
    return LocalEngine(threads)


def _ray(address: str, threads: int) -> Engine:
    from kilt.engines.ray_engine import RayEngine  # takes a second to import

    return RayEngine(address, threads)


ENGINES: dict[str, Callable[[str, int], Engine]] = {"local": _local, "ray": _ray}


def require_engine(name: str) -> None:
    """Raise EngineError if there is no engine of the given name."""
    if name not in ENGINES:
        raise EngineError(f"unknown engine {name!r}: use one of {', '.join(ENGINES)}")


def engine_named(name: str, address: str = "", threads: int = 1) -> Engine:
    """Return the engine with a given name.

    `address` is that of a cluster; `threads` is how many calls `map` runs at once.
    """
    require_engine(name)
    return ENGINES[name](address, threads)
