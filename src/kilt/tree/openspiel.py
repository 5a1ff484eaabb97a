"""Convert games of open_spiel to game trees, which kilt's solvers for small games can solve.

>>> tree = openspiel_tree("kuhn_poker")
>>> len(tree.nodes.parent), len(tree.infosets)
(58, 12)
>>> tree.infosets[3], tree.actions[3]
('1p', ('0:Pass', '1:Bet'))

Information sets have open_spiel's names, and the label of an action is its number and its name in open_spiel: that is
sufficient to convert a strategy back, see `kilt.strategy.openspiel`. open_spiel (M. Lanctot et al.: OpenSpiel: a
framework for reinforcement learning in games, 2019) is imported only in benchmarks and here, when a game is loaded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kilt.errors import GameError
from kilt.games.game import CHANCE, TERMINAL
from kilt.tree.flat import Expansion, FlatTree, expand_tree

MOST_NODES = 2_000_000  # fewer than for kilt's games: a queued state of open_spiel takes about a kilobyte

TWINS = {"kuhn": "kuhn_poker", "leduc": "leduc_poker", "bluff-1-1": "liars_dice"}  # kilt's name: open_spiel's


def openspiel_game(name: str) -> Any:
    """Load a game of open_spiel by name, as a `pyspiel.Game`.

    In games with simultaneous moves, players move in turn.

    Raises GameError unless it can be converted.
    """
    try:
        import pyspiel
    except ImportError:
        raise GameError(f"{name} is a game of open_spiel, which is not installed: pip install 'kilt[peers]'") from None
    short = name.partition("(")[0]
    if short not in pyspiel.registered_names():
        raise GameError(f"open_spiel has no game {short!r}: pyspiel.registered_names() lists its games")
    try:
        game = pyspiel.load_game(name)
    except pyspiel.SpielError as error:
        raise GameError(f"open_spiel cannot load {name!r}: {error}") from None
    kind, kinds = game.get_type(), pyspiel.GameType

    def require(holds: bool, complaint: str) -> None:
        if not holds:
            raise GameError(f"{name} cannot be written out: {complaint}")

    require(game.num_players() == 2, f"it has {game.num_players()} players; use a game for 2")
    zero_sum = kind.utility == kinds.Utility.ZERO_SUM
    require(zero_sum, f"its payoffs are {kind.utility.name}; use a game that is ZERO_SUM")
    listed = kind.chance_mode != kinds.ChanceMode.SAMPLED_STOCHASTIC
    require(listed, "it does not list its chance events; use a game that does, with its sampling turned off")
    require(kind.provides_information_state_string, "it has no names for information states; use a game that has")
    return game if kind.dynamics == kinds.Dynamics.SEQUENTIAL else pyspiel.convert_to_turn_based(game)


def openspiel_tree(name: str, most_nodes: int = MOST_NODES) -> FlatTree:
    """Build the tree of a two-player zero-sum game of open_spiel, such as "leduc_poker".

    If both players move simultaneously, player 0 moves first, hidden from player 1.
    """
    known: dict[str, tuple[int, list[int]]] = {}
    labels: dict[str, tuple[str, ...]] = {}

    def expand(state: Any) -> Expansion:
        if state.is_terminal():
            return Expansion(TERMINAL, payoff=state.player_return(0))
        if state.is_chance_node():
            return Expansion(CHANCE, [(p, state.child(outcome)) for outcome, p in state.chance_outcomes()])
        actor, legal, infoset = state.current_player(), state.legal_actions(), state.information_state_string()
        if infoset not in known:
            known[infoset] = actor, legal
            labels[infoset] = tuple(f"{action}:{state.action_to_string(action)}" for action in legal)
        if known[infoset] != (actor, legal):
            raise GameError(
                f"{name} cannot be written out: it gives one name, {infoset!r}, to information states that differ in "
                "their player or actions; use a game that distinguishes them"
            )
        return Expansion(actor, [(1.0, state.child(action)) for action in legal], infoset, labels[infoset])

    return expand_tree(name, openspiel_game(name).new_initial_state(), expand, most_nodes)


def openspiel_twin(tree: FlatTree) -> FlatTree:
    """Return open_spiel's tree of a game that kilt has, too, such as Leduc poker.

    Strategies fit both trees, because the nodes are the same.

    >>> from kilt.games import load_game
    >>> from kilt.tree.flat import flat_tree
    >>> kuhn = flat_tree(load_game("kuhn"))
    >>> kuhn.infosets[3], openspiel_twin(kuhn).infosets[3]
    ('Ks||c', '1p')
    """
    if tree.name not in TWINS:
        raise GameError(f"{tree.name} has no counterpart in open_spiel: use one of {', '.join(TWINS)}")
    twin = openspiel_tree(TWINS[tree.name])
    for field in tree.nodes._fields:
        mine, theirs = getattr(tree.nodes, field), getattr(twin.nodes, field)
        if mine.shape != theirs.shape or not np.allclose(mine, theirs, rtol=0, atol=1e-12):
            raise GameError(
                f"this {tree.name} is not {twin.name}, they differ in `{field}`: write out load_game({tree.name!r})"
            )
    return twin


def action_numbers(tree: FlatTree) -> list[int]:
    """Return open_spiel's number for each action of a game tree."""
    try:
        return [int(label.partition(":")[0]) for labels in tree.actions for label in labels]
    except ValueError:
        raise GameError(
            f"{tree.name} was not written out from open_spiel: use openspiel_tree, or openspiel_twin for "
            f"{', '.join(TWINS)}"
        ) from None
