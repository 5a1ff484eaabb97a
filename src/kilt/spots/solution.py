"""The solution of a spot: every hand's strategy, expected value and equity at every decision.

A line names a decision, as in `kilt.spots.line`: ``""`` is the first decision, and ``"b50% c / 7d"`` is the decision
after a bet, a call and the seven of diamonds. Expected values count chips from the decision on: winnings from the pot
minus further payments. A fold has the value 0.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from math import isnan
from typing import Any, NamedTuple

import numpy as np

from kilt.arrays import FloatArray, IntArray
from kilt.cards.equity import hand_strength
from kilt.errors import RunError, quoted
from kilt.games.game import CHANCE, REVEAL
from kilt.games.subgame import Subgame, compatible_weights
from kilt.notebook import Drawable, TextTable, html_table
from kilt.runs.budget import Step
from kilt.solve.tables.two_bytes import TwoByteGame
from kilt.spots.line import UNIT, described, line_words, word_of
from kilt.spots.spot_tree import SpotTree
from kilt.tree.navigation import TreePosition
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import Table


@dataclass(frozen=True, eq=False)
class SpotNode(Drawable):
    """A spot's solution at one decision: each hand's strategy, weight and expected value.

    Arrays over hands are in the order of the attribute `hands`.

    Attributes
    ----------
    line : str
        The line that leads to the decision.
    board : str
        The public cards.
    pot : float
        Chips in the pot.
    actor : int
        The player to act: 0 or 1.
    actions : tuple of str
        Actions as words of a line: ``x``, ``b3``, ``a``.
    words : tuple of str
        Actions in words, for display.
    hands : tuple of str
        Hands that at least one player may hold on this board, such as ``AsKh``: the higher card comes first.
    reach : ndarray, shape (2, hands)
        Weights of the players' hands: their ranges times the probabilities of their earlier actions.
    strategy : ndarray, shape (hands, actions)
        Probabilities of the actor's actions.
    ev : ndarray, shape (2, hands)
        Expected value in chips; nan if the opponent never reaches the decision with a compatible hand, or if the hand
        is not in the player's range.
    action_ev : ndarray, shape (hands, actions)
        Expected value of each of the actor's actions in chips.
    """

    line: str
    board: str
    pot: float
    actor: int
    actions: tuple[str, ...]
    words: tuple[str, ...]
    hands: tuple[str, ...]
    reach: FloatArray
    strategy: FloatArray
    ev: FloatArray
    action_ev: FloatArray
    game: Subgame
    numbers: IntArray  # [hand] index in `Deck.holes`

    def __repr__(self) -> str:
        return f"SpotNode({self.line!r}, board={self.board!r}, pot={self.pot:g}, actions={self.actions})"

    @cached_property
    def equity(self) -> FloatArray:
        """Each hand's share of the pot if all players check to the end.

        The shape is (players, hands).
        """
        rules, deck = self.game.rules, self.game.deck
        found = np.empty_like(self.reach)
        for player in (0, 1):
            theirs = np.zeros(len(deck.holes(rules.hole_cards)))
            theirs[self.numbers] = self.reach[1 - player]
            size = sum(rules.board_cards)
            every = hand_strength(deck.cards(self.board), theirs, deck, board_size=size, hole_cards=rules.hole_cards)
            found[player] = every[self.numbers]
        return found

    @cached_property
    def _met(self) -> FloatArray:
        """Total weight of the opponent's hands that have no card in common with each hand, [player, hand]."""
        holes = self.game.deck.holes(self.game.rules.hole_cards)[self.numbers]
        return np.stack([compatible_weights(self.reach[1 - player], holes, self.game.deck.size) for player in (0, 1)])

    @property
    def deals(self) -> float:
        """The probability weight with which the players reach the decision, summed over all pairs of hands.

        A pair of hands counts if they have no card in common.
        """
        return float(self.reach[0] @ self._met[0])

    @cached_property
    def chance(self) -> FloatArray:
        """The probability of each hand at the decision, given both players' ranges.

        The shape is (players, hands). Hands that share a card with the opponent's likely hands are less probable (card
        removal).
        """
        weight: FloatArray = self.reach * self._met
        total = weight.sum(axis=1, keepdims=True)
        share: FloatArray = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
        return share

    @property
    def frequencies(self) -> FloatArray:
        """The probability of each action at the decision, averaged over the range of the player to act."""
        return np.asarray(self.chance[self.actor] @ self.strategy)

    def mean(self, values: FloatArray) -> tuple[float, float]:
        """Return each player's mean of a quantity over the player's hands.

        `values` has the shape (players, hands). A hand's weight is its probability.
        """
        first, second = (
            float(np.sum(np.where(own > 0, own * one, 0.0))) if own.any() else float("nan")
            for own, one in zip(self.chance, values, strict=True)
        )
        return first, second

    def rows(self) -> list[dict[str, Any]]:
        """Return the solution at the decision as a list of dicts, one for each hand.

        Hands of the player to act come first.

        Returns
        -------
        list of dict
            Keys ``player``, ``hand``, ``weight``, ``equity``, ``ev``; for the player to act also ``strategy`` and
            ``action_ev``, both by action.
        """
        found = []
        for player in (self.actor, 1 - self.actor):
            for hand in np.flatnonzero(self.reach[player] > 0).tolist():
                row: dict[str, Any] = {
                    "player": player + 1,
                    "hand": self.hands[hand],
                    "weight": float(self.reach[player, hand]),
                    "equity": float(self.equity[player, hand]),
                    "ev": float(self.ev[player, hand]),
                }
                if player == self.actor:
                    row["strategy"] = dict(zip(self.actions, self.strategy[hand].tolist(), strict=True))
                    row["action_ev"] = dict(zip(self.actions, self.action_ev[hand].tolist(), strict=True))
                found.append(row)
        return found

    def classes(self, player: int) -> dict[str, IntArray]:
        """Group a player's hands by starting hand, such as ``AKs``, with the highest ranks first.

        Returns
        -------
        dict
            Maps a name such as ``AKs`` to indices in `hands`.
        """
        deck, found = self.game.deck, dict[str, list[int]]()
        held = np.flatnonzero(self.reach[player] > 0)
        cards = deck.holes(self.game.rules.hole_cards)[self.numbers[held]]
        for place, hand in sorted(
            zip(held.tolist(), cards.tolist(), strict=True), key=lambda one: one[1], reverse=True
        ):
            ranks = [card // deck.suits for card in sorted(hand, reverse=True)]
            alike = len({card % deck.suits for card in hand}) == 1
            suits = "" if len(set(ranks)) < 2 else "s" if alike else "o"
            found.setdefault("".join(deck.rank_names[rank] for rank in ranks) + suits, []).append(place)
        return {name: np.array(places) for name, places in found.items()}

    def table(self, hands: Collection[str] | None = None) -> TextTable:
        """Return a table of each hand's weight, equity, expected value and strategy.

        Parameters
        ----------
        hands : collection of str, optional
            Show these hands one by one, such as ``AsKh``. By default, hands of the same ranks and suitedness share a
            row.

        Returns
        -------
        TextTable
            The first row is the mean over all hands. Shares are percentages, and expected values are chips.
        """
        actor, own = self.actor, self.reach[self.actor]
        columns = ["hand", "weight", "eq %", "EV", *(f"{word} %" for word in self.actions)]
        columns += [f"EV {word}" for word in self.actions]
        ev, equity = self.mean(self.ev), self.mean(self.equity)
        rows = [["all", f"{own.sum():.3g}", percent_text(equity[actor]), chips_text(ev[actor])]]
        rows[0] += [*map(percent_text, self.frequencies.tolist()), *[""] * len(self.actions)]
        for name, places in self.classes(actor).items():
            if hands is None:
                rows.append(self._row(name, places.tolist()))
            else:
                rows += [self._row(self.hands[at], [at]) for at in places.tolist() if self.hands[at] in hands]
        return TextTable("", tuple(columns), tuple(map(tuple, rows)))

    def _row(self, name: str, places: list[int]) -> list[str]:
        """Return a row of `table`: the mean over some hands, weighted by their probabilities."""
        weight = self.chance[self.actor, places]
        weight = weight / weight.sum() if weight.any() else np.full(len(places), 1 / len(places))

        def mean(values: FloatArray) -> float:
            return float(weight @ np.nan_to_num(values))

        return [
            name,
            f"{self.reach[self.actor, places].sum():.3g}",
            percent_text(mean(self.equity[self.actor, places])),
            chips_text(mean(self.ev[self.actor, places])),
            *(percent_text(mean(self.strategy[places, a])) for a in range(len(self.actions))),
            *(chips_text(mean(self.action_ev[places, a])) for a in range(len(self.actions))),
        ]

    def _repr_html_(self) -> str:
        return self.table()._replace(title=f"{self.board} {self.line}".strip())._repr_html_()

    def __getitem__(self, hand: str) -> dict[str, float]:
        """Return the probability of each action with a hand, such as ``AsKh``.

        Raises RunError if no player holds it.
        """
        deck = self.game.deck
        name = deck.name(sorted(deck.cards(hand, self.game.rules.hole_cards), reverse=True))
        if name not in self.hands:
            raise RunError(f"neither player can hold {name} on {self.board}: it is in no range, or has a card of it")
        return dict(zip(self.actions, self.strategy[self.hands.index(name)].tolist(), strict=True))


def percent_text(share: float) -> str:
    """Format a share as a percentage with one decimal, or return an empty text for nan."""
    return "" if isnan(share) else f"{100 * share:.1f}"


def chips_text(chips: float) -> str:
    """Format chips with two decimals, or return an empty text for nan."""
    return "" if isnan(chips) else f"{round(chips, 2) + 0.0:.2f}"


class NextCards(NamedTuple):
    """A possible deal of the next public cards, with its probability and solution."""

    cards: str
    alike: int  # number of boards that this row stands for, which differ only in equivalent suits
    chance: float  # probability of these boards, given both ranges
    node: SpotNode


@dataclass(frozen=True, eq=False)
class SpotSolution(Drawable):
    """The solution of a spot: a strategy for every decision, with measurements.

    Parameters
    ----------
    evaluator : VectorGame or TwoByteGame
        The public tree, which evaluates the strategy.
    strategy : ndarray, ArrangedTable or PackedTable
        The average strategy, not normalised, as the evaluator takes it: the solution keeps the solver's own table,
        which may have two bytes per number, and no columns for hands that no player can hold.
    steps : tuple of Step
        Measurements during the solve, in chips. The last one was made at its end.
    """

    evaluator: VectorGame | TwoByteGame
    strategy: Any = field(repr=False)
    steps: tuple[Step, ...] = field(repr=False)

    @property
    def game(self) -> VectorGame:
        """The public tree."""
        return self.evaluator if isinstance(self.evaluator, VectorGame) else self.evaluator.game

    @property
    def table(self) -> Table:
        """The average strategy, not normalised, with one column per hand, shape `game.shape`."""
        return self.evaluator.on_host(self.strategy)

    @property
    def _tree(self) -> SpotTree:
        return SpotTree(self.game)

    @property
    def subgame(self) -> Subgame:
        """The game that begins at the spot: its board, pot, stacks and ranges."""
        return self._tree.subgame

    @property
    def pot(self) -> float:
        """The pot at the start of the spot's first round, in chips."""
        return 2 * self.subgame.first.opened_at / UNIT

    def _repr_html_(self) -> str:
        first, second = self.values
        rows = {
            "exploitability, % of the pot": f"{self.exploitability_percent:.4g}",
            "value out of position, chips": f"{first:.5g}",
            "value in position, chips": f"{second:.5g}",
            "iterations": f"{self.iterations:,}",
        }
        return html_table(f"spot {self.subgame.deck.name(self.subgame.board)}".strip(), rows)

    @property
    def iterations(self) -> int:
        """Number of iterations that the solver ran."""
        return self.steps[-1].iterations

    @property
    def exploitability(self) -> float:
        """A best response's gain over the strategy in chips, averaged over both players."""
        return self.steps[-1].exploitability

    @property
    def exploitability_percent(self) -> float:
        """Exploitability in per cent of the pot."""
        return 100 * self.exploitability / self.pot

    @property
    def exploitability_mbb(self) -> float:
        """Exploitability in thousandths of a big blind."""
        return 1000 * UNIT * self.exploitability / self.subgame.rules.big_blind

    @cached_property
    def values(self) -> tuple[float, float]:
        """Each player's expected share of the pot in chips, if both follow the strategy.

        Without rake, they sum to the pot.
        """
        first, second = self.evaluator.expected_values(self.strategy)
        spent = self.subgame.first.spent
        return (first + spent[0]) / UNIT, (second + spent[1]) / UNIT

    def at(self, line: str = "") -> SpotNode:
        """Return the solution at a decision, given its line of actions and cards.

        Parameters
        ----------
        line : str
            The line that leads to the decision, such as ``"b50% c / 7d"``: see `kilt.spots.line`. Empty: the first
            decision of the spot.

        Returns
        -------
        SpotNode
            Strategy, expected values and reach of all hands.

        Raises
        ------
        RunError
            If no player has a decision there, or the tree has no such action.
        """
        place = self._tree.find_position(line)
        if place.position.actor < 0:
            where = "the round is over: add / and cards" if place.position.actor == CHANCE else "the hand is over"
            raise RunError(f"no player has a decision after {quoted(line)}: {where}")
        return self._node(place, " ".join(line_words(line)))

    def next_cards(self, line: str) -> list[NextCards]:
        """Return the solution after each possible next card or flop.

        Parameters
        ----------
        line : str
            A line that ends a round, such as ``"b50% c"``.

        Returns
        -------
        list of NextCards
            A row for each board; boards that differ only in equivalent suits share a row.
        """
        line = line.strip().removesuffix("/")
        place = self._tree.find_position(line)
        if place.position.actor != CHANCE or place.position.after(REVEAL).actor < 0:
            raise RunError(f"nothing is dealt after {quoted(line)} that leads to a decision: end with a call or checks")
        rows = []
        for cards, alike in self._tree.next(place).items():
            after = self._node(self._tree.after_deal(place, cards), " ".join([*line_words(line), "/", cards]))
            rows.append(NextCards(cards, alike, alike * after.deals, after))
        total = sum(row.chance for row in rows)
        return [row._replace(chance=row.chance / total) for row in rows]

    def _node(self, place: TreePosition, line: str) -> SpotNode:
        tree, game, position = self._tree, self.subgame, place.position
        looks = self.evaluator.block_values(self.strategy, place.path)
        labels, hands, held = tree.actions(place), tree.live(place), game.weights > 0
        row = tree.row(place)
        weights = self.evaluator.read_rows(self.strategy, slice(row, row + len(labels)))

        def chips(player: int, action: int | None = None) -> FloatArray:
            values = (tree.hand_values(looks[player], place, action) + position.spent[player]) / UNIT
            return np.where(held[player], values, np.nan)[hands]

        return SpotNode(
            line=line,
            board=game.deck.name(place.board),
            pot=sum(position.spent) / UNIT,
            actor=position.actor,
            actions=tuple(word_of(position, label) for label in labels),
            words=tuple(described(position, label) for label in labels),
            hands=tuple(game.deck.name(hand[::-1]) for hand in game.holes[hands].tolist()),
            reach=np.stack([tree.reach(looks[1 - player], place)[hands] for player in (0, 1)]),
            strategy=tree.shares(weights, place)[:, hands].T,
            ev=np.stack([chips(player) for player in (0, 1)]),
            action_ev=np.stack([chips(position.actor, action) for action in range(len(labels))], axis=1),
            game=game,
            numbers=game.numbers[hands],
        )
