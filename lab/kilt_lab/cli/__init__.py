"""The commands that the laboratory adds to ``kilt``."""

from __future__ import annotations

import typer

from kilt_lab.cli import bench, lab, reproduce


def add_commands(app: typer.Typer) -> None:
    """Add `reproduce`, `bench` and `lab` to the command line."""
    app.command()(reproduce.reproduce)
    app.add_typer(bench.app, name="bench")
    app.add_typer(lab.app, name="lab")
