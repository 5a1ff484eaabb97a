"""An agent that plays a blueprint: translate, look up, post-process, draw [Brown15 §§4, 5].

What has happened in the real hand is followed in the tree of the abstract game. Bets that the tree does not have are
taken for one that it has, by their size in pots (see `strategy.translate`); a small one may be taken for a check or a
call. Where that would end the round in the abstract game, it is done only if the bet is nearer to nothing than to the
smallest one of the tree, and the agent calls. The agent's own bets go the other way, from pots to chips.

The two games can fall out of step: a large bet was taken for all-in, and there are chips left; or an all-in bet was
taken for a smaller one, and the raise that the tree suggests is not legal. Where the tree has an answer it is made
legal; where it has none, the agent checks and calls, as one does who is all-in in the abstract game.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kilt.arrays import FloatArray
from kilt.errors import PlayError
from kilt.games.game import CHANCE, REVEAL
from kilt.games.holdem import CALL, FOLD, KEPT, RAISE, Betting, Holdem
from kilt.play.agent import Observation, PublicPolicy, pick
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.postprocess import RULES, Rule, apply
from kilt.strategy.translate import Deterministic, Mapping, pseudo_harmonic, translate

KEPT_TABLES = 4096  # of public states: some 100 MB with a thousand buckets
_NEAREST = Deterministic(pseudo_harmonic)  # for the agent's own bets, which are in the tree or were made legal


class Place(NamedTuple):
    """Where a hand stands in the abstract game."""

    node: int | None  # a decision of the player in the betting tree; None where the tree has no answer
    level: int  # chips that each player has to match at that node
    acted: bool  # whether the player has acted before in this hand
    sure: bool  # whether no random number had a part in it: no bet had to be translated


class ChoiceSet(NamedTuple):
    """The actions of a decision in the abstract game, and what each becomes in the real one."""

    node: int | None  # as in `Place`
    acted: bool  # as in `Place`
    labels: list[str]  # in the abstract game
    actions: list[str]  # in the real one


@dataclass(frozen=True)
class BlueprintAgent:
    """The agent that plays a blueprint, in the game it was made for.

    Parameters
    ----------
    name : str
        What it is called in tables and logs.
    blueprint : Blueprint
        The strategy.
    rule : Rule
        Post-processing of its probabilities: see `strategy.postprocess`.
    mapping : Mapping
        Translation of bets that its betting tree does not have: see `strategy.translate`.
    """

    name: str
    blueprint: Blueprint
    rule: Rule = RULES["none"]
    mapping: Mapping = pseudo_harmonic
    _menus: dict[str, ChoiceSet] = field(default_factory=dict, repr=False, compare=False)
    _tables: dict[str, tuple[tuple[str, ...], FloatArray]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def game(self) -> Holdem:
        """The game that it plays."""
        return self.blueprint.game

    def act(self, observation: Observation) -> str:
        """A legal action, drawn from `shares`."""
        actions, shares = zip(*self.shares(observation), strict=True)
        return pick(actions, shares, observation.draw(2 * len(observation.position.history)))

    def shares(self, observation: Observation) -> list[tuple[str, float]]:
        """Legal actions, as the ACPC writes them, and the probability of each; an action may occur more than once."""
        menu = self._menus.get(observation.position.history) or self._menu(observation)
        if menu.node is None:
            return [(CALL, 1.0)]
        at = observation.position
        row = self.blueprint.row(
            menu.node, self.blueprint.bucket(at.actor, at.round, observation.hand, observation.board)
        )
        if not any(row):  # nobody has been there
            return [(CALL, 1.0)]
        return list(zip(menu.actions, apply(self.rule, menu.labels, row, first=not menu.acted), strict=True))

    def policy(self, position: Betting, board: tuple[int, ...]) -> PublicPolicy:
        """Probabilities of the actions at a public state, with every hand.

        PlayError where bets before it are translated at random: what the agent took them for is not known then.
        """
        if position.history not in self._tables:
            if len(self._tables) >= KEPT_TABLES:
                self._tables.clear()
            self._tables[position.history] = self._table(position)
        actions, table = self._tables[position.history]
        return PublicPolicy(actions, table, self.blueprint.hand_buckets(position.actor, position.round, board))

    def _table(self, position: Betting) -> tuple[tuple[str, ...], FloatArray]:
        """The legal actions at a public state, each once, and [action, bucket] their probabilities."""
        menu = self._menus.get(position.history) or self._menu(Observation(position, (), (), 0))
        if position.history not in self._menus and not isinstance(self.mapping, Deterministic):
            raise PlayError(
                f"{self.name} translates bets of {position.history!r} at random, so that its strategy cannot be told: "
                "use a deterministic translation, such as RUN@RULE@deterministic-pseudo-harmonic"
            )
        buckets = self.blueprint.cards.each[position.actor].numbers[position.round]
        if menu.node is None:
            return (CALL,), np.ones((1, buckets))
        first, last = self.blueprint.first[menu.node : menu.node + 2]
        rows = self.blueprint.shares[first:last].reshape(buckets, -1).astype(np.float64)
        seen = rows.any(axis=1)
        rows[seen] /= rows[seen].sum(axis=1, keepdims=True)
        if not self.rule.idle:
            for bucket in np.flatnonzero(seen):
                rows[bucket] = apply(self.rule, menu.labels, rows[bucket], first=not menu.acted)
        actions = tuple(dict.fromkeys([*menu.actions, CALL]))  # several bets may have become the same
        table = np.zeros((len(actions), buckets))
        for column, action in zip(rows.T, menu.actions, strict=True):
            table[actions.index(action)] += column
        table[actions.index(CALL), ~seen] = 1.0  # as `shares` has it: nobody has been there
        return actions, table

    def _menu(self, observation: Observation) -> ChoiceSet:
        """The actions to choose from; remembered where no bet had to be translated."""
        position, place = observation.position, self.follow(observation)
        labels = [] if place.node is None else self.blueprint.labels(place.node)
        actions = [self._legal(label, place.level, position) for label in labels]
        menu = ChoiceSet(place.node, place.acted, labels, actions)
        if place.sure:
            if len(self._menus) >= KEPT:
                self._menus.clear()
            self._menus[position.history] = menu
        return menu

    def follow(self, observation: Observation) -> Place:
        """Follow a hand in the abstract game; bets that its tree does not have are translated."""
        nodes, levels = self.blueprint.nodes, self.blueprint.level
        me = observation.position.actor
        node: int | None = 0
        level, acted, sure = max(self.game.rules.blinds), False, True
        for before, action in self._moves(observation.position):
            mine = before.actor == me
            acted |= mine
            if node is None:
                continue
            if action == REVEAL:
                while nodes.actor[node] >= 0:  # a raise that was not legal became a call
                    node = self.blueprint.after_call(node)
                node = int(nodes.first_child[node]) if nodes.actor[node] == CHANCE else None
            elif nodes.actor[node] != before.actor:
                # Where their small raise was taken for a call, which ends the round, ours is the call of it.
                node = node if mine and action == CALL and nodes.actor[node] == CHANCE else None
            elif action == CALL:
                node = self.blueprint.after_call(node)
            else:
                node, plain = self._raised(node, level, before, action, observation)
                level = int(levels[node]) if node is not None and levels[node] > 0 else level
                sure &= plain
        if node is not None and (nodes.actor[node] != me or nodes.round[node] != observation.position.round):
            node = None
        return Place(node, level, acted, sure)

    def _raised(
        self, node: int, level: int, before: Betting, action: str, observation: Observation
    ) -> tuple[int | None, bool]:
        """The node after the raise that a real one is taken for, and whether that is so whatever is drawn."""
        nodes, levels = self.blueprint.nodes, self.blueprint.level
        child, count = int(nodes.first_child[node]), int(nodes.children[node])
        places = [place for place in range(child, child + count) if levels[place] > 0]
        theirs = before.actor != observation.position.actor
        if self.blueprint.limit or not (places or theirs):
            return (places[0] if places else None), True
        real, to, stack = max(before.spent), int(action[1:]), self.game.rules.stacks[before.actor]
        if to == stack and places and levels[places[-1]] == stack:
            return places[-1], True
        sizes = [(int(levels[place]) - level) / (2 * level) for place in places]
        size = (to - real) / (2 * real)
        if theirs:
            called = self.blueprint.after_call(node)
            if nodes.actor[called] == observation.position.actor:
                places, sizes = [called, *places], [0.0, *sizes]
            elif not sizes or (size < sizes[0] and _NEAREST(0.0, sizes[0], size)):  # nothing is drawn: see above
                return called, True
        draw = observation.draw(2 * len(before.history) + 1)
        return places[translate(sizes, size, self.mapping if theirs else _NEAREST, draw)], size in sizes

    def _legal(self, label: str, level: int, position: Betting) -> str:
        """An abstract action as a legal one of the real game; a bet keeps its size in pots."""
        if label == FOLD:
            return FOLD if position.facing else CALL
        bounds = position.raise_bounds()
        if label == CALL or bounds is None:
            return CALL
        if self.blueprint.limit:
            return RAISE
        to, real = int(label[1:]), max(position.spent)
        if to == self.game.rules.stacks[position.actor]:
            return f"{RAISE}{bounds[1]}"
        if real != level:
            to = real + round((to - level) / level * real)
        return f"{RAISE}{min(max(to, bounds[0]), bounds[1])}"

    def _moves(self, position: Betting) -> Iterator[tuple[Betting, str]]:
        """Each action of a hand with the position before it, if it is a hand of the agent's game."""
        if position.rules != self.game.rules:
            raise PlayError(f"{self.name} plays {self.game.name}, and not this game: use the one it was made for")
        return self.game.positions.moves(position)
