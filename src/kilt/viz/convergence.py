"""Convergence curves: exploitability against iterations and against time, on logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from kilt.artifact import os_errors
from kilt.solve.problem import UNIT
from kilt.solve.run import Step

AVERAGE, CURRENT = "#1f5fa8", "#d98c3f"


def plot_convergence(steps: Sequence[Step], title: str, path: str | Path) -> None:
    """Draw a run into a picture file. What is 0 or unknown has no place on logarithmic axes and is left out."""
    table = np.array(
        [step for step in steps if step.iterations and (step.exploitability > 0 or step.current_exploitability > 0)]
    ).reshape(-1, len(Step._fields))
    table[table <= 0] = np.nan
    column = {name: table[:, place] for place, name in enumerate(Step._fields)}
    figure = Figure(figsize=(9, 4), dpi=150, layout="constrained")
    figure.suptitle(title, fontweight="bold", parse_math=False)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, name, label in zip(panels, ("iterations", "seconds"), ("iterations", "time [s]"), strict=True):
        dots = {"marker": "o", "markersize": 3.5, "linewidth": 1.4}
        axes.plot(column[name], column["current_exploitability"], color=CURRENT, label="current strategy", **dots)
        axes.plot(column[name], column["exploitability"], color=AVERAGE, label="average strategy", **dots)
        if len(table):  # the axes of an empty picture cannot be logarithmic
            axes.set(xscale="log", yscale="log")
            low, high = np.log10([np.nanmin(column[name]), np.nanmax(column[name])])
            if np.ceil(low) <= high:  # a power of ten is in view: other labels would only crowd it
                axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(label)
        axes.grid(which="major", linewidth=0.6, color="0.85")
        axes.grid(which="minor", linewidth=0.3, color="0.93")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(f"exploitability [{UNIT}]")
    panels[0].legend(frameon=False)
    with os_errors(f"{path} cannot be written"):
        figure.savefig(path)
