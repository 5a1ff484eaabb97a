"""Draw classes of boards: example boards, distances, and class sizes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from kilt.abstraction.cluster_kernels import Labels
from kilt.arrays import Array, FloatArray, IntArray
from kilt.cards.deck import Deck
from kilt.viz.picture import save_figure

SUIT_COLOURS = {"c": "#2e8b57", "d": "#2f6fd6", "h": "#c8102e", "s": "black"}
SUIT_SIGNS = {"c": "♣", "d": "♦", "h": "♥", "s": "♠"}
ROW = 0.26  # inches


def plot_classes(
    samples: Sequence[Array], words: Sequence[str], shares: FloatArray, deck: Deck, title: str, path: str | Path
) -> None:
    """Draw some boards of each class, like [Schmid15 figure 3].

    Parameters
    ----------
    samples : sequence of ndarray of int, shape (boards, cards)
        Some boards of each class, by card number.
    words : sequence of str
        A description of each class.
    shares : ndarray, shape (classes,)
        Share of each class among all deals, from 0 to 1.
    deck : Deck
        The cards in play.
    title : str
        Title of the picture.
    path : str or Path
        File to write; the ending sets the format: ``.png``, ``.svg``, ``.pdf``.
    """
    most = max(len(boards) for boards in samples)
    step = 0.14 + 0.22 * samples[0].shape[1]  # a card, and a gap after a board
    figure = Figure(figsize=(5.6 + step * most, 0.9 + ROW * len(samples)), dpi=150)
    figure.suptitle(title, fontweight="bold", parse_math=False)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0 - 0.7 / figure.get_figheight()))
    axes.set_xlim(0, figure.get_figwidth())
    axes.set_ylim(len(samples), -1)
    axes.axis("off")
    for x, name in ((0.55, "class"), (1.25, "of deals"), (1.55, "for example")):
        axes.text(x, -0.5, name, ha="left" if x > 1.5 else "right", va="center", fontsize=7, color="grey")
    for label, boards in enumerate(samples):
        if label % 2:
            axes.axhspan(label, label + 1, color="#f2f2f2", lw=0)
        axes.text(0.55, label + 0.5, str(label), ha="right", va="center", fontsize=8)
        axes.text(1.25, label + 0.5, f"{shares[label]:.1%}", ha="right", va="center", fontsize=8)
        for place, board in enumerate(boards):
            for k, card in enumerate(np.sort(board)[::-1]):
                rank, suit = tuple(deck.name([int(card)]))
                x = 1.55 + step * place + 0.22 * k
                text = f"{rank}{SUIT_SIGNS[suit]}"
                axes.text(x, label + 0.5, text, va="center", fontsize=8, color=SUIT_COLOURS[suit])
        axes.text(1.75 + step * most, label + 0.5, words[label], va="center", fontsize=8)
    save_figure(figure, path)


def plot_distances(distances: Array, labels: Labels, title: str, path: str | Path) -> None:
    """Draw the distances between boards as a matrix, with boards sorted by class.

    Parameters
    ----------
    distances : ndarray, shape (boards, boards)
        Symmetric matrix of distances.
    labels : ndarray of int, shape (boards,)
        The class of each board.
    title : str
        Title of the picture.
    path : str or Path
        File to write; the ending sets the format: ``.png``, ``.svg``, ``.pdf``.
    """
    order = np.argsort(labels, kind="stable")
    figure = Figure(figsize=(7.2, 6.4), dpi=150, layout="constrained")
    figure.suptitle(title, fontweight="bold", parse_math=False)
    axes = figure.subplots()
    image = axes.imshow(distances[np.ix_(order, order)], cmap="viridis", interpolation="nearest")
    ends = np.cumsum(np.bincount(labels))[:-1] - 0.5
    for end in ends if len(ends) < 100 else ():
        axes.axhline(end, color="white", lw=0.3)
        axes.axvline(end, color="white", lw=0.3)
    axes.set_xlabel("boards, class by class")
    figure.colorbar(image, label="distance")
    save_figure(figure, path)


def plot_balance(boards: IntArray, deals: FloatArray, title: str, path: str | Path) -> None:
    """Draw the size of each class of boards.

    Parameters
    ----------
    boards : ndarray of int, shape (classes,)
        Number of boards up to suits.
    deals : ndarray, shape (classes,)
        Share of all deals.
    title : str
        Title of the picture.
    path : str or Path
        File to write; the ending sets the format: ``.png``, ``.svg``, ``.pdf``.
    """
    figure = Figure(figsize=(8.4, 4.2), dpi=150, layout="constrained")
    figure.suptitle(title, fontweight="bold", parse_math=False)
    place = np.arange(len(boards))
    above, below = figure.subplots(2, 1, sharex=True)
    for axes, sizes, name in ((above, boards, "boards up to suits"), (below, 100 * deals, "% of deals")):
        axes.bar(place, sizes, color="#4477aa")
        axes.axhline(np.mean(sizes), color="grey", lw=0.8, ls="--")
        axes.set_ylabel(name)
    below.xaxis.get_major_locator().set_params(integer=True)
    below.set_xlabel("class (the dashed line is the mean)")
    save_figure(figure, path)


def plot_errors(errors: FloatArray, title: str, path: str | Path) -> None:
    """Draw the clustering error against the number of classes of boards, like [Schmid15 figure 4].

    Parameters
    ----------
    errors : ndarray, shape (n,)
        Mean distance from the medoid with 1, 2, … n classes.
    title : str
        Title of the picture.
    path : str or Path
        File to write; the ending sets the format: ``.png``, ``.svg``, ``.pdf``.
    """
    figure = Figure(figsize=(6.4, 4.2), dpi=150, layout="constrained")
    figure.suptitle(title, fontweight="bold", parse_math=False)
    axes = figure.subplots()
    axes.plot(np.arange(1, len(errors) + 1), errors, marker="o", ms=3)
    axes.set_xlabel("classes")
    axes.set_ylabel("mean distance from the medoid")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    save_figure(figure, path)
