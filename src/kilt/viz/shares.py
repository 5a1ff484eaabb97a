"""Draw a bar for each hand or information set, split by the probabilities of its actions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from kilt.viz.convergence import COLOURS

MOST_BARS = 32  # largest number of bars in a picture


def share_figure(rows: Mapping[str, Mapping[str, float]], title: str) -> Figure:
    """Draw a bar for each hand or information set, split by the probabilities of its actions.

    Parameters
    ----------
    rows : mapping of str to mapping of str to float
        Probabilities by the name of a hand or of an information set, then by action. Only the first `MOST_BARS` are
        drawn.
    title : str
        Title of the picture.
    """
    shown = dict(list(rows.items())[:MOST_BARS])
    actions = list(dict.fromkeys(action for row in shown.values() for action in row))
    figure = Figure(figsize=(6, 0.9 + 0.22 * len(shown)), dpi=150, layout="constrained")
    more = f" (first {len(shown)} of {len(rows):,})" if len(rows) > len(shown) else ""
    figure.suptitle(title + more, fontweight="bold", fontsize=9, parse_math=False)
    axes = figure.subplots()
    places = np.arange(len(shown))
    left = np.zeros(len(shown))
    for number, action in enumerate(actions):
        width = np.array([row.get(action, 0.0) for row in shown.values()])
        axes.barh(places, width, left=left, color=COLOURS[number % len(COLOURS)], label=action, height=0.8)
        left += width
    axes.set(xlim=(0, 1), ylim=(len(shown) - 0.5, -0.5), xlabel="probability")
    axes.set_yticks(places, list(shown), fontsize=7, parse_math=False)
    axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    axes.spines[["top", "right"]].set_visible(False)
    return figure
