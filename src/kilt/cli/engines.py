"""Options of commands that can have their work done somewhere else, in one place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from kilt.cli.show import waiting

if TYPE_CHECKING:
    from kilt.engines import Engine

EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="E",
        help="Where the work is done: `local`, in threads of this process, or `ray`, in processes, of other machines "
        "too; what comes out is the same. Left out: here.",
    ),
]
AddressOption = Annotated[
    str,
    typer.Option(
        "--address",
        metavar="A",
        help="With --engine ray: HOST:PORT of a Ray cluster that is there. Left out: one of its own, here.",
    ),
]


@contextmanager
def opened(name: str | None, address: str, threads: int) -> Iterator[Engine | None]:
    """The engine that is asked for, if there is one, for as long as it is needed."""
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
