"""The commands that the laboratory adds to ``kilt``."""

from __future__ import annotations

import typer

from kilt_lab.cli import bench, lab, reproduce


def add_commands(app: typer.Typer) -> None:
    """Add `reproduce`, `bench` and `lab` to the command line."""
    panel = "lab"  # of `kilt --help`
    app.command(rich_help_panel=panel)(reproduce.reproduce)
    app.add_typer(bench.app, name="bench", rich_help_panel=panel)
    app.add_typer(lab.app, name="lab", rich_help_panel=panel)
