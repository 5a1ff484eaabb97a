"""Commands of the separate laboratory package: `kilt reproduce`, `kilt bench` and `kilt lab`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import typer

from kilt.errors import MissingPeerError

if TYPE_CHECKING:
    from collections.abc import Callable

COMMANDS = {
    "reproduce": "Measure published results again (needs the laboratory: the extra `lab`).",
    "bench": "Benchmarks next to peers (needs the laboratory: the extra `lab`).",
    "lab": "Result files and the pages made of them (needs the laboratory: the extra `lab`).",
}
REMEDY = "install the laboratory with `pip install 'kilt[lab]'`, or in a clone of kilt with `make env`"


def add_commands(app: typer.Typer) -> None:
    """Add the laboratory's commands or, if it is not installed, commands that say how to install it."""
    if find_spec("kilt_lab") is not None:
        from kilt_lab.cli import add_commands as add_all

        add_all(app)
        return
    for name, summary in COMMANDS.items():
        anything = {"allow_extra_args": True, "ignore_unknown_options": True}
        app.command(name, help=summary, rich_help_panel="lab", context_settings=anything)(_missing(name))


def _missing(name: str) -> Callable[[typer.Context], None]:
    """Return a command that only raises an error: the laboratory is not installed."""

    def command(context: typer.Context) -> None:
        raise MissingPeerError(f"`kilt {name}` is not installed: {REMEDY}")

    return command
