"""Write pictures to files, and check in advance that this is possible."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from kilt.artifact import os_errors
from kilt.errors import ArtifactError


def require_drawable(path: Path) -> None:
    """Raise ArtifactError if no picture can be written to `path`.

    Commands call it before long work begins.
    """
    known = Figure().canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        raise ArtifactError(f"{path} is no picture that can be drawn: end its name in .{', .'.join(sorted(known))}")
    if path.is_dir() or not path.parent.is_dir():
        raise ArtifactError(f"{path} cannot be written: use the name of a picture in an existing folder")


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure to a file.

    Raises ArtifactError if that is not possible.
    """
    require_drawable(Path(path))
    with os_errors(f"{path} cannot be written"):
        figure.savefig(path)
