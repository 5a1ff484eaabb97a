"""The commands that the laboratory adds to ``kilt``."""

from __future__ import annotations

import typer

from kilt_lab.cli import bench, reproduce


def add_commands(app: typer.Typer) -> None:
    """Add `reproduce` and `bench` to the command line."""
    app.command()(reproduce.reproduce)
    app.add_typer(bench.app, name="bench")
