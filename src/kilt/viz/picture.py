"""Picture files: whether one can be written, and writing it."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from kilt.artifact import os_errors
from kilt.errors import ArtifactError


def require_drawable(path: Path) -> None:
    """Raise ArtifactError where no picture can be written: commands ask before the work begins."""
    known = Figure().canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        raise ArtifactError(f"{path} is no picture that can be drawn: let its name end in .{', .'.join(sorted(known))}")
    if path.is_dir() or not path.parent.is_dir():
        raise ArtifactError(f"{path} cannot be written: give the name of a picture in a folder that is there")


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure to a file; ArtifactError where that cannot be."""
    require_drawable(Path(path))
    with os_errors(f"{path} cannot be written"):
        figure.savefig(path)
