"""Draw convergence curves: exploitability against iterations and time, on logarithmic axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from kilt.arrays import FloatArray
from kilt.evaluate.evaluator import UNIT
from kilt.runs.budget import Step
from kilt.viz.picture import save_figure

AVERAGE, CURRENT, ABSTRACT = "#1f5fa8", "#d98c3f", "#3a8f5c"
# Margins as fractions of the picture, with room for labels such as 6 × 10⁻¹. They are fixed because every run ends with
# a picture, and an automatic layout, which measures all labels, takes as long as drawing.
MARGINS = {"left": 0.11, "right": 0.985, "bottom": 0.125, "top": 0.9, "wspace": 0.07}
COLOURS = (AVERAGE, CURRENT, ABSTRACT, "#b5495b", "#7a5aa6", "#8a6d3b", "#4d4d4d")


def plot_convergence(
    runs: Mapping[str, Sequence[Step]],
    title: str,
    path: str | Path,
    unit: str = UNIT,
    margins: Mapping[str, Sequence[float]] | None = None,
) -> None:
    """Draw exploitability against iterations and time, on logarithmic axes, and write the picture to a file.

    Parameters
    ----------
    runs : mapping of str to sequence of Step
        The measurements of each run. A single run is drawn with its average and its current strategies, several runs
        with their averages. Values that are 0 or unknown cannot be drawn on logarithmic axes, and are omitted.
    title : str
        Title of the picture.
    path : str or Path
        File to write; the ending sets the format: ``.png``, ``.svg``, ``.pdf``.
    unit : str
        Unit of exploitability.
    margins : mapping of str to sequence of float, optional
        Half-widths of intervals around exploitability, for each step of some runs: drawn as bands.
    """
    save_figure(convergence_figure(runs, title, unit, margins), path)


def convergence_figure(
    runs: Mapping[str, Sequence[Step]],
    title: str,
    unit: str = UNIT,
    margins: Mapping[str, Sequence[float]] | None = None,
) -> Figure:
    """Return a figure of exploitability against iterations and time, on logarithmic axes."""
    figure = Figure(figsize=(9, 4), dpi=150)
    figure.suptitle(title, fontweight="bold", parse_math=False)
    panels = figure.subplots(1, 2, sharey=True, gridspec_kw=MARGINS)
    for axes, name, label in zip(panels, ("iterations", "seconds"), ("iterations", "time [s]"), strict=True):
        seen = np.concatenate([_draw(axes, name, *curve) for curve in _curves(runs)])
        for place, (run, reach) in enumerate((margins or {}).items()):
            _draw_band(axes, name, COLOURS[place % len(COLOURS)], runs[run], reach)
        if len(seen):  # empty axes cannot be logarithmic
            axes.set(xscale="log", yscale="log")
        axes.set_xlabel(label)
        axes.grid(linewidth=0.6, color="0.85")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels:
        _draw_fine_grid(axes)
    panels[0].set_ylabel(f"exploitability [{unit}]")
    panels[0].legend(frameon=False)
    return figure


def _curves(runs: Mapping[str, Sequence[Step]]) -> list[tuple[str, str, str, Sequence[Step]]]:
    """Return the curves of a picture: for each, the label, the colour, the field of `Step` to draw, and the steps."""
    if len(runs) == 1:
        (steps,) = runs.values()
        curves = [
            ("current strategy", CURRENT, "current_exploitability", steps),
            ("average strategy", AVERAGE, "exploitability", steps),
            ("… by opponents who see its buckets", ABSTRACT, "abstract_exploitability", steps),
        ]
        return [curve for curve in curves if any(getattr(step, curve[2]) > 0 for step in steps)] or curves[:2]
    return [(name, COLOURS[n % len(COLOURS)], "exploitability", steps) for n, (name, steps) in enumerate(runs.items())]


def _draw(axes: Axes, across: str, label: str, colour: str, upwards: str, steps: Sequence[Step]) -> FloatArray:
    """Draw a curve and return its horizontal coordinates."""
    points = np.array([(getattr(step, across), getattr(step, upwards)) for step in steps]).reshape(-1, 2)
    points = points[(points > 0).all(axis=1)]
    axes.plot(*points.T, color=colour, label=label, marker="o", markersize=3.5, linewidth=1.4)
    return points[:, 0]


def _draw_band(axes: Axes, across: str, colour: str, steps: Sequence[Step], margins: Sequence[float]) -> None:
    """Draw intervals around exploitability as a band. Its lower edge is at least a tenth of the exploitability."""
    points = [(getattr(step, across), step.exploitability, margin) for step, margin in zip(steps, margins, strict=True)]
    where, middle, reach = np.array([point for point in points if np.isfinite(point[2])]).reshape(-1, 3).T
    axes.fill_between(where, np.maximum(middle - reach, middle / 10), middle + reach, color=colour, alpha=0.2, lw=0)


def _draw_fine_grid(axes: Axes) -> None:
    """Draw unlabelled grid lines between the powers of ten, if a power of ten is in view.

    There is no room for labels. The lines are not ticks, because ticks would take half the time of the picture.
    """
    axes.autoscale(enable=False)
    for axis, lines, along in (
        (axes.xaxis, axes.vlines, axes.get_xaxis_transform()),
        (axes.yaxis, axes.hlines, axes.get_yaxis_transform()),
    ):
        low, high = axis.get_view_interval()
        if axis.get_scale() == "log" and np.ceil(np.log10(low)) <= np.log10(high):
            places = np.array(LogLocator(subs=range(2, 10)).tick_values(low, high))
            places = places[(low < places) & (places < high)]
            lines(places, 0, 1, transform=along, colors="0.93", linewidth=0.3, zorder=0.5)
            axis.set_minor_locator(NullLocator())
        else:
            axis.grid(which="minor", linewidth=0.3, color="0.93")
