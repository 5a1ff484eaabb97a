"""Draw how a run's win rates against simple opponents develop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from kilt.errors import RunError
from kilt.runs.budget import Step
from kilt.viz.convergence import COLOURS
from kilt.viz.picture import save_figure


def measured_opponents(steps: Sequence[Step]) -> list[str]:
    """Return the names of the opponents in a run's measured win rates.

    >>> measured_opponents([Step(1, 0.5, 0, 0, 0, {"always-call": 120.0, "always-fold": 600.0})])
    ['always-call', 'always-fold']
    """
    return list(dict.fromkeys(name for step in steps for name in step.others))


def plot_win_rates(steps: Sequence[Step], title: str, path: str | Path) -> None:
    """Draw a run's win rates over time, with a panel for each opponent.

    Parameters
    ----------
    steps : sequence of Step
        The measurements of a run; their `others` are win rates in mbb/h by opponent.
    title : str
        Title of the picture.
    path : str or Path
        File to write; the ending sets the format: ``.png``, ``.svg``, ``.pdf``.
    """
    save_figure(win_rate_figure(steps, title), path)


def win_rate_figure(steps: Sequence[Step], title: str) -> Figure:
    """Return a figure of win rates over time, with a panel for each opponent."""
    names = measured_opponents(steps)
    if not names:
        raise RunError(
            f"none of {len(steps)} measurements has win rates against opponents: draw the exploitability instead"
        )
    figure = Figure(figsize=(max(3.1 * len(names), 4.5), 3.3), dpi=150, layout="constrained")
    figure.suptitle(title, fontweight="bold", parse_math=False)
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    for place, (axes, name) in enumerate(zip(panels, names, strict=True)):
        points = np.array([(step.seconds, step.others[name]) for step in steps if name in step.others])
        colour = COLOURS[place % len(COLOURS)]
        axes.plot(*points.T, color=colour, marker="o", markersize=3.5, linewidth=1.4)
        axes.axhline(0, color="0.5", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_title(f"{name}: {points[-1, 1]:+,.0f} at the end", fontsize=9, parse_math=False)
        axes.set_xlabel("time [s]")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.grid(which="major", linewidth=0.6, color="0.85")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("wins [mbb/h]")
    return figure
