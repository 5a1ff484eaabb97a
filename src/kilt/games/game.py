"""The protocol `Game`, which every game implements, and its test `check_game`.

A game has two players. At the start, each player gets a private *hand*. Both players see all actions, which make up a
`Position`; the chance events between actions make up the *board*. Legal actions depend neither on hands nor on the
board. In most games both players see the board: poker and bluffing games are of this kind ([Johanson16 §3.2.2] names
the class), and this allows one walk to treat all hands of a player at once. In stud, some cards of the board are face
down and visible to one player; such games have only a flat tree.

So a game answers five questions: the private hands (`hands`), the probabilities of deals (`deals`), the first position
(`start`, from which `Position.after` leads to all others), the outcomes of chance (`reveals`) and the payoffs
(`payoffs`). The flat tree and the public tree are both built from these answers, and information sets are named by what
a player sees.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np

from kilt.arrays import FloatArray
from kilt.errors import GameError

CHANCE = -1  # the actor if a chance event is next
TERMINAL = -2  # the actor if the game is over
REVEAL = "/"  # the label of a chance event in a history

Hands: TypeAlias = tuple[int, int]  # the private hand of each player, by number
Board: TypeAlias = tuple[int, ...]  # the outcomes of all chance events since the start


class Position(Protocol):
    """A public position of a game: the actions so far, which both players know.

    Positions are values: `after` returns a new one.
    """

    @property
    def actor(self) -> int:
        """The player who acts next: 0, 1, CHANCE, or TERMINAL at the end of the game."""

    @property
    def round(self) -> int:
        """The number of chance events since the start of the game."""

    @property
    def history(self) -> str:
        """The labels of all actions so far, as text. No two positions have the same history."""

    def actions(self) -> tuple[str, ...]:
        """Return the labels of the legal actions: REVEAL at a chance event, and none at the end."""

    def after(self, action: str) -> Position:
        """Return the position after a legal action."""


class Game(Protocol):
    """The rules of a two-player game: hands, deals, legal actions, chance events and payoffs."""

    @property
    def name(self) -> str:
        """The name of the game."""

    def hands(self, player: int) -> Sequence[str]:
        """Return the names of all private hands that a player can be dealt."""

    def deals(self) -> FloatArray:
        """Return the probability of each deal, shape (hands of player 0, hands of player 1)."""

    def start(self) -> Position:
        """Return the position before the first action."""

    def reveals(self, position: Position, hands: Hands, board: Board) -> list[tuple[Board, float]]:
        """Return the possible boards after a chance event, with their probabilities."""

    def payoffs(self, position: Position, hands: Hands, board: Board) -> tuple[float, float]:
        """Return each player's payoff in chips at the end of the game.

        Without rake, payoffs add up to 0.
        """

    def board_name(self, board: Board, player: int) -> str:
        """Return the board as text, as a given player sees it."""


def check_game(game: Game, *, walks: int = 200, seed: int = 0, longest: int = 1000) -> None:
    """Test a game by playing it at random.

    Raises GameError if the game breaks a rule that kilt expects of every game.

    Parameters
    ----------
    game : Game
        The rules to check.
    walks : int
        Number of random walks.
    seed : int
        Seed of the walks.
    longest : int
        Maximum number of actions in a walk.

    Raises
    ------
    GameError
        The game breaks a rule; the message names the rule and the position.

    >>> from kilt.games import load_game
    >>> check_game(load_game("leduc"))
    """
    rng = random.Random(seed)

    def require(holds: bool, complaint: str) -> None:
        if not holds:
            raise GameError(f"{game.name} breaks the contract of a game: {complaint}")

    deals = game.deals()
    names = game.hands(0), game.hands(1)
    require(deals.shape == (len(names[0]), len(names[1])), f"deals have shape {deals.shape}, not one entry per pair")
    require(all(len(set(n)) == len(n) for n in names), "two hands share a name")
    require(bool(np.all(deals >= 0)) and abs(deals.sum() - 1) < 1e-9, f"deals add up to {deals.sum()}, not 1")
    flat = np.cumsum(deals.ravel())
    require(game.start() == game.start() and game.start().round == 0, "it does not start twice in the same way")
    for _ in range(walks):
        cell = int(np.searchsorted(flat, rng.random() * flat[-1], side="right"))
        hands = divmod(cell, deals.shape[1])
        position, steps = game.start(), 0
        board: Board = ()
        while position.actor != TERMINAL:
            where = f"at {position.history!r}"
            require(position.actor in (0, 1, CHANCE), f"the actor is {position.actor} {where}")
            actions = position.actions()
            require(len(actions) > 0, f"the actor has no legal action {where}")
            require(len(set(actions)) == len(actions), f"two actions share a label {where}")
            try:
                position.after("no such action")
            except GameError:
                pass
            else:
                require(False, f"an unknown action is accepted {where}")
            if position.actor == CHANCE:
                require(actions == (REVEAL,), f"the actions of chance are {actions} {where}")
                outcomes = game.reveals(position, hands, board)
                total = sum(p for _, p in outcomes)
                require(abs(total - 1) < 1e-9, f"outcomes add up to {total} {where}")
                require(all(p > 0 for _, p in outcomes), f"an outcome has no probability {where}")
                require(len({b for b, _ in outcomes}) == len(outcomes), f"two outcomes are equal {where}")
                require(all(b[: len(board)] == board for b, _ in outcomes), f"the board is not kept {where}")
                board = rng.choice(outcomes)[0]
            action = rng.choice(actions)
            following = position.after(action)
            require(following == position.after(action), f"{action!r} leads to two positions {where}")
            require(following.history.startswith(position.history), f"{action!r} changes the past {where}")
            require(following.history != position.history, f"{action!r} leaves no trace {where}")
            require(
                following.round == position.round + (position.actor == CHANCE),
                f"the round goes from {position.round} to {following.round} {where}",
            )
            position, steps = following, steps + 1
            require(steps <= longest, f"no end after {longest} steps")
        require(position.actions() == (), f"there are actions after the end, at {position.history!r}")
        payoffs = game.payoffs(position, hands, board)
        require(bool(np.all(np.isfinite(payoffs))), f"the payoffs are {payoffs} at {position.history!r}")
        require(abs(sum(payoffs)) < 1e-9, f"the payoffs {payoffs} do not add up to 0 at {position.history!r}")
