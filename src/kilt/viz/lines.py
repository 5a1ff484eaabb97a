"""Draw measured results with error bars against a varied quantity."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

from kilt.arrays import FloatArray
from kilt.viz.convergence import COLOURS, MARGINS
from kilt.viz.picture import save_figure


def plot_lines(
    lines: Mapping[str, FloatArray],
    title: str,
    path: str | Path,
    across: str,
    upwards: str,
    *,
    logarithmic: tuple[bool, bool] = (False, False),
) -> None:
    """Draw lines with error bars, and write the picture to a file.

    Parameters
    ----------
    lines : mapping of str to ndarray, shape (points, 2) or (points, 3)
        The points of each line, by its name: position, value and, optionally, half-width of the interval.
    title : str
        Title of the picture.
    path : str or Path
        File to write; the ending sets the format: ``.png``, ``.svg``, ``.pdf``.
    across, upwards : str
        Labels of the axes, with units.
    logarithmic : (bool, bool)
        Whether the horizontal and the vertical axis are logarithmic.
    """
    figure = Figure(figsize=(9, 4), dpi=150)
    figure.suptitle(title, fontweight="bold", fontsize=9, parse_math=False)
    axes = figure.subplots(gridspec_kw={side: MARGINS[side] for side in ("left", "right", "bottom", "top")})
    for place, (name, points) in enumerate(lines.items()):
        error = points[:, 2] if points.shape[1] > 2 else None
        colour = COLOURS[place % len(COLOURS)]
        axes.errorbar(
            points[:, 0], points[:, 1], error, label=name, capsize=2, color=colour, marker="o", markersize=3.5
        )
    axes.set(xlabel=across, ylabel=upwards)
    if logarithmic[0]:
        axes.set_xscale("log")
    if logarithmic[1]:
        axes.set_yscale("log")
    if len(lines) > 1:
        axes.legend(frameon=False, fontsize=8)
    axes.grid(linewidth=0.6, color="0.85")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    save_figure(figure, path)
