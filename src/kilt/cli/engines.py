"""The options of commands that can run work in several processes or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from kilt.cli import options
from kilt.cli.show import waiting

if TYPE_CHECKING:
    from kilt.engines import Engine

EngineOption = Annotated[str | None, options.ENGINE]
AddressOption = Annotated[str, options.ADDRESS]


@contextmanager
def opened(name: str | None, address: str, threads: int) -> Iterator[Engine | None]:
    """Start the engine that the options request, and close it at the end of the ``with`` block."""
    from kilt.engines import EngineError, engine_named

    if name is None:
        if address:
            raise EngineError(f"--address {address} is given, and no engine: add --engine ray")
        yield None
        return
    with waiting(f"starting the engine {name} …"):
        engine = engine_named(name, address, threads)
    try:
        yield engine
    finally:
        engine.close()
