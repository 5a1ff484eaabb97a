"""Draw hand grids: a player's strategy for every starting hand, in the usual square.

Each cell is a hand: pairs are on the diagonal, suited hands above it, offsuit hands below it, with the highest ranks
first. The bar in a cell is split by action: fold is red, call is blue, raises are green, and larger raises are darker.
The height of the bar is the probability that the player reaches the decision with the hand. A bar is grey if the solver
has never reached the decision with the hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Patch

from kilt.arrays import FloatArray
from kilt.cards.deck import Deck
from kilt.errors import GameError, RunError
from kilt.evaluate.decisions import hand_ranges
from kilt.evaluate.self_play import FirstRoundDecision, first_round_decisions, no_shared_card
from kilt.games.holdem import CALL, FOLD, Betting, Holdem, positions_of
from kilt.play.agent import PolicyAgent
from kilt.strategy.blueprint import Blueprint
from kilt.viz.picture import save_figure

FOLD_COLOUR, CALL_COLOUR, UNSEEN_COLOUR, EMPTY_COLOUR = "#d9534f", "#4a86c8", "#9a9a9a", "#f1f1ee"
GREENS = ((0.72, 0.89, 0.68), (0.03, 0.35, 0.17))  # colours of the smallest and of the largest raise
PANELS = 6  # default number of panels in a picture
COLUMNS = 3  # largest number of panels in a row


@dataclass(frozen=True)
class Grid:
    """A hand grid: the strategy for each starting hand at one decision, highest ranks first.

    Attributes
    ----------
    title : str
        The decision in words.
    ranks : str
        Names of the ranks, highest first.
    actions : tuple of str
        Actions in words, such as ``raise to 300``.
    share : ndarray, shape (ranks, ranks, actions)
        Probabilities by row and column of the square; all 0 if the solver has never reached the decision.
    reach : ndarray, shape (ranks, ranks)
        Probability that the player reaches the decision with the hand.
    overall : ndarray, shape (actions,)
        Probabilities over all hands that reach the decision.
    """

    title: str
    ranks: str
    actions: tuple[str, ...]
    share: FloatArray
    reach: FloatArray
    overall: FloatArray

    def hand(self, i: int, j: int) -> str:
        """Return the starting hand in row `i` and column `j`, such as ``AKs``."""
        high, low = self.ranks[min(i, j)], self.ranks[max(i, j)]
        return high + low + ("s" if j > i else "o" if j < i else "")


def first_decisions(blueprint: Blueprint, count: int = PANELS) -> list[int]:
    """Return the nodes of the first `count` decisions before the flop, such as the opening."""
    return [early.node for early in first_round_decisions(blueprint)][:count]


def preflop_grids(blueprint: Blueprint, decisions: Sequence[int]) -> list[Grid]:
    """Return hand grids of a blueprint's strategy at several decisions before the flop.

    Parameters
    ----------
    blueprint : Blueprint
        A blueprint for a game with two private cards.
    decisions : sequence of int
        Nodes of its betting tree, such as those of `first_decisions`.

    Returns
    -------
    list of Grid
        One for each decision; `plot_ranges` draws them.
    """
    _require_two_cards(blueprint.game)
    found = {early.node: early for early in first_round_decisions(blueprint)}
    strange = [node for node in decisions if node not in found]
    if strange:
        raise RunError(
            f"node {strange[0]} is no decision of the first round, which has {len(found)}: use some of those that "
            "`first_decisions` names"
        )
    return [_grid(blueprint.game, blueprint.position(node), blueprint.labels(node), found[node]) for node in decisions]


def plot_ranges(panels: Sequence[Grid], title: str, path: str | Path) -> None:
    """Draw hand grids next to each other, and write the picture to a file.

    Parameters
    ----------
    panels : sequence of Grid
        At least one; a row has up to three.
    title : str
        Title of the picture.
    path : str or Path
        File to write; the ending sets the format: ``.png``, ``.svg``, ``.pdf``.
    """
    save_figure(range_figure(panels, title), path)


def range_figure(panels: Sequence[Grid], title: str) -> Figure:
    """Return a figure with several hand grids next to each other."""
    columns = min(COLUMNS, len(panels))
    lines = -(-len(panels) // columns)
    size = max(len(grid.ranks) for grid in panels)
    side = max(3.7, 0.33 * size)  # inches, including the legend
    figure = Figure(figsize=(side * columns + 0.3, (side + 0.85) * lines + 0.5), dpi=150)
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.06))
    figure.suptitle(title, fontweight="bold", parse_math=False)
    axes = figure.subplots(lines, columns, squeeze=False)
    for place, panel in enumerate(axes.flat):
        if place < len(panels):
            _draw(panel, panels[place])
        else:
            panel.set_visible(False)
    return figure


def describe_decision(position: Betting) -> str:
    """Describe a decision before the flop in words: who acts, and what happened before.

    >>> from kilt.games import load_game
    >>> game = load_game("holdem.nolimit.2p")
    >>> [describe_decision(game.replay(history)) for history in ("", "c", "r300")]
    ['small blind opens', 'big blind after a call', 'big blind facing a raise to 300']
    """
    actor = position.rules.seat_names[position.actor]
    words = [_words(before, action) for before, action in positions_of(position.rules).moves_to(position)]
    if not words:
        return f"{actor} opens"
    *earlier, last = [word if word == "all-in" else f"a {word}" for word in words]
    if words[-1] in ("call", "check"):
        earlier, facing = [*earlier, last], ""
    else:
        facing = f" facing {last}"
    return f"{actor}{facing}" + (f" after {' and '.join(earlier)}" if earlier else "")


def _words(position: Betting, action: str) -> str:
    """Return an action in words."""
    if action in (FOLD, CALL):
        return "fold" if action == FOLD else "call" if position.facing else "check"
    if position.rules.betting == "limit":
        return "raise"
    return "all-in" if int(action[1:]) == position.rules.stacks[position.actor] else f"raise to {int(action[1:]):,}"


def policy_grid(agent: PolicyAgent, game: Holdem, position: Betting) -> Grid:
    """Return a hand grid of an agent's strategy at one decision before the flop.

    Parameters
    ----------
    agent : PolicyAgent
        An agent with a policy, such as a blueprint, a solved game or a baseline. It plays in both seats.
    game : Holdem
        The game, with two private cards.
    position : Betting
        The decision.

    Returns
    -------
    Grid
        `plot_ranges` draws it.
    """
    _require_two_cards(game)
    policy = agent.policy(position, ())
    chance, reach = policy.probabilities.T, hand_ranges(agent, game, position, ())
    early = FirstRoundDecision(0, position.actor, reach, chance, np.ones(len(chance), np.bool_))
    return _grid(game, position, policy.actions, early)


def _require_two_cards(game: Holdem) -> None:
    held = game.rules.hole_cards
    if held != 2:
        raise GameError(f"{game.name} deals {held} private card: hand grids are for games that deal 2")


def _grid(game: Holdem, position: Betting, labels: Sequence[str], early: FirstRoundDecision) -> Grid:
    chance = early.chance * early.seen[:, None]
    # reach of the opponent's compatible hands
    theirs = no_shared_card(game, np.arange(len(chance))) @ early.reach[1 - early.seat]
    weight = early.reach[early.seat] * theirs
    ranks = game.deck.ranks
    share, reach = np.zeros((ranks, ranks, chance.shape[1])), np.zeros((ranks, ranks))
    for i in range(ranks):
        for j in range(ranks):
            hand = _hand(game.deck, i, j)
            if hand is not None:
                share[i, j], reach[i, j] = chance[hand], early.reach[early.seat, hand]
    overall = weight @ early.chance / max(weight.sum(), 1e-300)
    words = tuple(_words(position, label) for label in labels)
    return Grid(describe_decision(position), game.deck.rank_names[::-1], words, share, reach, overall)


def _hand(deck: Deck, i: int, j: int) -> int | None:
    """Return one hand of a cell, since all its hands have the same strategy before the flop.

    None if the cell is empty.
    """
    high, low, suited = deck.ranks - 1 - min(i, j), deck.ranks - 1 - max(i, j), j > i
    if deck.suits == 1 and not suited:
        return None
    return deck.hole_index((high * deck.suits, low * deck.suits + (0 if suited else 1)))


def action_colours(actions: Sequence[str]) -> list[str]:
    """Return a colour for each action at a decision, darker for larger raises."""
    raises = [place for place, action in enumerate(actions) if action not in ("fold", "call", "check")]
    low, high = np.array(GREENS)
    found: list[str] = []
    for place, action in enumerate(actions):
        if place in raises:
            step = 1.0 if action == "all-in" else (raises.index(place) + 0.5) / len(raises)
            found.append(to_hex(tuple((low + step * (high - low)).tolist())))
        else:
            found.append(FOLD_COLOUR if action == "fold" else CALL_COLOUR)
    return found


def _dark(colour: str) -> bool:
    red, green, blue = to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue < 0.4


def _draw(axes: Axes, grid: Grid) -> None:
    size, shades = len(grid.ranks), action_colours(grid.actions)
    seen = grid.share.any(axis=2)
    rows, columns = np.indices((size, size), dtype=np.float64)
    bottom: FloatArray = rows + 1.0
    height: FloatArray = np.clip(grid.reach, 0, 1)
    axes.set(xlim=(0, size), ylim=(size, 0), aspect="equal", xticks=[], yticks=[], facecolor=EMPTY_COLOUR)
    left: FloatArray = columns
    for action, shade in enumerate(shades):
        width = grid.share[:, :, action]
        _bars(axes, left, bottom, width, height, shade)
        left = left + width
    _bars(axes, columns, bottom, np.asarray(~seen, dtype=np.float64), height, UNSEEN_COLOUR)
    for line in range(size + 1):
        axes.axhline(line, color="white", lw=0.8)
        axes.axvline(line, color="white", lw=0.8)
    middle = (grid.share.cumsum(axis=2) < 0.5).sum(axis=2)  # the action drawn behind the name
    for i in range(size):
        for j in range(size):
            behind = middle[i, j] < len(shades) and height[i, j] > 0.5 and _dark(shades[middle[i, j]])
            ink = "white" if behind else "black" if height[i, j] > 0.005 else "#b0b0aa"
            name = axes.text(j + 0.5, i + 0.52, grid.hand(i, j), ha="center", va="center", fontsize=5.6, color=ink)
            name.set_in_layout(False)  # the layout of a thousand names would take seconds
    title = grid.title if len(grid.title) < 36 else grid.title.replace(" after ", "\nafter ", 1)
    axes.set_title(title, fontsize=8.5, fontweight="bold", parse_math=False)
    said = [f"{action} {part:.1%}" for action, part in zip(grid.actions, grid.overall, strict=True)]
    patches = [Patch(facecolor=shade, label=label) for shade, label in zip(shades, said, strict=True)]
    if (~seen & (grid.reach > 0)).any():
        patches.append(Patch(facecolor=UNSEEN_COLOUR, label="never reached"))
    axes.legend(
        handles=patches,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.01),
        ncols=min(3, len(patches)),
        fontsize=6.5,
        frameon=False,
        handlelength=1.0,
        handleheight=1.0,
        columnspacing=1.2,
    )
    axes.spines[:].set_visible(False)


def _bars(
    axes: Axes,
    left: FloatArray,
    bottom: FloatArray,
    width: FloatArray,
    height: FloatArray,
    colour: str,
) -> None:
    """Draw a rectangle in each cell where it has a positive area."""
    some = (width > 0) & (height > 0)
    x, y, w, h = left[some], bottom[some], width[some], height[some]
    corners = np.stack([(x, y), (x + w, y), (x + w, y - h), (x, y - h)], axis=0).transpose(2, 0, 1)
    axes.add_collection(PolyCollection(list(corners), facecolors=[colour], linewidths=0))
