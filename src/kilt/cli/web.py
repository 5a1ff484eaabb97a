"""``kilt web``: open kilt's page in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kilt.cli import options
from kilt.cli.show import say
from kilt.errors import KiltError
from kilt.web import PER_ADDRESS

EXTRA = "the page needs FastAPI and uvicorn: pip install 'kilt[web]'"


def web(
    runs: Annotated[list[Path] | None, options.FOLDER] = None,
    host: Annotated[str, options.HOST] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", "-p", metavar="P", min=0, max=65535, help="0 is any free one.")] = 8765,
    control: Annotated[bool, typer.Option("--control", help="Let the page start, stop and resume runs.")] = False,
    tls: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            "--tls",
            metavar="CERT KEY",
            help="Serve HTTPS with this certificate (chain) and private key, in PEM format. Without it, traffic is "
            "plain HTTP.",
        ),
    ] = None,
    connections: Annotated[
        int,
        typer.Option("--connections", metavar="N", min=8, max=400, help="Most connections from one address."),
    ] = PER_ADDRESS,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address of the page.")] = False,
) -> None:
    """Open a page in the browser to play against agents, examine strategies and buckets, and watch runs.

    Each FOLDER may hold several runs and exported agents. Default: the folder `runs`, if it exists.
    """
    try:
        from kilt.web.serve import serve
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette", "pydantic", "anyio"):
            raise
        raise KiltError(EXTRA) from None

    usual = Path("runs")
    folders = runs or ([usual] if usual.is_dir() else [])
    serve(
        folders,
        host,
        port,
        control=usual if control else None,
        tls=tls,
        connections=connections,
        browser=not no_browser,
        announce=say,
    )
