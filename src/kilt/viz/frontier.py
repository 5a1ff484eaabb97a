"""Draw how much counter-strategies win against an opponent, and how exploitable they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from kilt.viz.convergence import COLOURS
from kilt.viz.picture import save_figure

LINEAR = 10  # the axis of exploitability is linear up to this value, and logarithmic above it


class Curve(NamedTuple):
    """A curve in a picture of counter-strategies: its name, points and line style."""

    name: str
    points: Sequence[tuple[float, float]]  # exploitability, exploitation
    style: str = "-"


def plot_frontier(
    panels: Mapping[str, Sequence[Curve]], beside: Sequence[Curve], title: str, path: str | Path, unit: str = "mbb/g"
) -> None:
    """Draw strategies' winnings against an opponent over their own exploitability.

    Each group of curves has its own panel.

    Parameters
    ----------
    panels : mapping of str to sequence of Curve
        The curves of each panel, by its title.
    beside : sequence of Curve
        Curves drawn in grey in all panels: bounds and baselines.
    title : str
        Title of the picture.
    path : str or Path
        File to write; the ending sets the format.
    unit : str
        Unit of both axes.
    """
    figure = Figure(figsize=(5.2 * len(panels), 4.6), dpi=150, layout="constrained")
    figure.suptitle(title, fontweight="bold", parse_math=False)
    for axes, (name, curves) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        for curve in beside:
            axes.plot(*zip(*curve.points, strict=True), curve.style, color="0.55", linewidth=1.2, label=curve.name)
        for number, curve in enumerate(curves):
            colour = COLOURS[number % len(COLOURS)]
            marks = {"marker": "o", "markersize": 3.5, "linewidth": 1.4}
            axes.plot(*zip(*curve.points, strict=True), curve.style, color=colour, label=curve.name, **marks)
        axes.set_title(name)
        axes.set_xscale("symlog", linthresh=LINEAR)
        axes.set_xlabel(f"exploitability [{unit}]")
        axes.set_ylabel(f"exploitation [{unit}]")
        axes.grid(linewidth=0.5, color="0.88")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=7)
    save_figure(figure, path)
