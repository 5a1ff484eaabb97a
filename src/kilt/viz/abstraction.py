"""Draw card abstractions: the buckets of starting hands, and histograms of hand strength."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.figure import Figure

from kilt.arrays import FloatArray
from kilt.cards.deck import Deck
from kilt.viz.picture import save_figure


def plot_starting_hands(buckets: npt.NDArray[Any], deck: Deck, title: str, path: str | Path) -> None:
    """Draw the bucket of each starting hand in a grid: suited hands above the diagonal, offsuit ones below.

    Parameters
    ----------
    buckets : ndarray of int, shape (hands,)
        Bucket of each hand, by its number in `deck.holes`. The strongest rank is drawn first.
    deck : Deck
        The cards in play.
    title : str
        Title of the picture.
    path : str or Path
        File to write; the ending sets the format: ``.png``, ``.svg``, ``.pdf``.
    """
    names, ranks = deck.rank_names[::-1], deck.ranks
    figure = Figure(figsize=(6.4, 6.6), dpi=150, layout="constrained")
    figure.suptitle(title, fontweight="bold", parse_math=False)
    axes = figure.subplots()
    square, labels = np.zeros((ranks, ranks), dtype=np.int64), [[""] * ranks for _ in range(ranks)]
    for i in range(ranks):
        for j in range(ranks):
            high, low = ranks - 1 - min(i, j), ranks - 1 - max(i, j)
            suited = j > i
            cards = high * deck.suits, low * deck.suits + (0 if suited else 1)
            labels[i][j] = names[min(i, j)] + names[max(i, j)] + ("s" if suited else "o" if j < i else "")
            square[i, j] = buckets[deck.hole_index(cards)]
    colours = colormaps["tab20" if square.max() < 20 else "nipy_spectral"]
    steps = square / max(square.max(), 1) if square.max() >= 20 else square
    shown = colours(steps)
    axes.imshow(shown)
    for i in range(ranks):
        for j in range(ranks):
            dark = shown[i, j, :3] @ (0.299, 0.587, 0.114) < 0.5
            text = f"{labels[i][j]}\n{square[i, j]}"
            axes.text(j, i, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlabel("suited above the diagonal, offsuit below it")
    save_figure(figure, path)


def plot_histograms(rows: FloatArray, names: Sequence[str], title: str, path: str | Path) -> None:
    """Draw several histograms of hand strength next to each other.

    Parameters
    ----------
    rows : ndarray, shape (histograms, bins)
        Probabilities over equal bins of hand strength from 0 to 1.
    names : sequence of str
        Title of each histogram.
    title : str
        Title of the picture.
    path : str or Path
        File to write; the ending sets the format: ``.png``, ``.svg``, ``.pdf``.
    """
    columns = min(4, len(rows))
    lines = -(-len(rows) // columns)
    figure = Figure(figsize=(2.6 * columns, 1.7 * lines + 0.4), dpi=150, layout="constrained")
    figure.suptitle(title, fontweight="bold", parse_math=False)
    panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    bins = rows.shape[1]
    for place, axes in enumerate(panels.flat):
        if place >= len(rows):
            axes.set_visible(False)
            continue
        axes.bar((np.arange(bins) + 0.5) / bins, rows[place], width=0.9 / bins, color="#1f5fa8")
        axes.axvline(float(rows[place] @ (np.arange(bins) + 0.5) / bins), color="#d98c3f", linewidth=1)
        axes.set_title(names[place], fontsize=8, parse_math=False)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=7)
        axes.set_xlim(0, 1)
    save_figure(figure, path)
