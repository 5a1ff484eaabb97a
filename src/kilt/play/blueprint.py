"""An agent that plays a blueprint: translate, look up, post-process, draw [Brown15 §§4, 5].

What has happened in the real hand is followed in the tree of the abstract game. Bets that the tree does not have are
taken for one that it has, by their size in pots (see `strategy.translate`); a small one may be taken for a check or a
call. Where that would end the round in the abstract game, it is done only if the bet is nearer to nothing than to the
smallest one of the tree, and the agent calls. The agent's own bets go the other way, from pots to chips.

The two games can fall out of step: a large bet was taken for all-in, and there are chips left; or an all-in bet was
taken for a smaller one, and the raise that the tree suggests is not legal. Where the tree has an answer it is made
legal; where it has none, the agent checks and calls, as one does who is all-in in the abstract game.

Others who look at a hand do not know what bets were taken for, where that was drawn at random. To them the hand may
stand at several places of the tree, its *branches*. The agent's `policy` is the mean over them, each weighted by the
probability of the translations that lead there and, for each private hand, of what the agent has done on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from kilt.arrays import BoolArray, FloatArray, IntArray
from kilt.errors import PlayError
from kilt.games.game import CHANCE, REVEAL
from kilt.games.holdem import CALL, FOLD, KEPT, RAISE, Betting, Holdem
from kilt.play.agent import Observation, PublicPolicy, pick
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.postprocess import RULES, Rule, apply, apply_rows
from kilt.strategy.translate import Deterministic, Mapping, pseudo_harmonic, translations

K = TypeVar("K")
V = TypeVar("V")

KEPT_TABLES = 4096  # of public states: some 100 MB with a thousand buckets
KEPT_WEIGHTS = 2048  # of branches, by hands: some 50 MB
_NEAREST = Deterministic(pseudo_harmonic)  # for the agent's own bets, which are in the tree or were made legal


ActionTable: TypeAlias = tuple[tuple[str, ...], FloatArray]  # legal actions, each once; [action, bucket] probabilities


class Place(NamedTuple):
    """Where a hand stands in the abstract game."""

    node: int | None  # a decision of the player in the betting tree; None where the tree has no answer
    level: int  # chips that each player has to match at that node
    acted: bool  # whether the player has acted before in this hand
    sure: bool  # whether no random number had a part in it: each bet can be taken for one of the tree alone


class Branch(NamedTuple):
    """A place where a hand may stand at a decision of the player, for who does not know what bets were taken for."""

    place: Place
    share: float  # probability of it, given the branch of the player's decision before that it comes from
    earlier: int  # the number of that branch; 0 at the player's first decision


class OwnDecision(NamedTuple):
    """A decision of the player on the way to a public state, or the one there."""

    position: Betting
    branches: list[Branch]
    action: str  # that was taken; "" where it is the one to come

    @property
    def shares(self) -> FloatArray:
        """[branch, 1] Probabilities of the branches: see `Branch.share`."""
        return np.array([[branch.share] for branch in self.branches])


class OwnSpot(NamedTuple):
    """A decision of the player, and all that lead to it."""

    before: list[OwnDecision]
    turn: OwnDecision
    tables: list[ActionTable]  # [branch of the turn]
    table: ActionTable | None  # the mean over branches; None where their weights are not the same for all hands


OwnWay: TypeAlias = tuple[list[OwnDecision], list[Branch]]  # a player's decisions so far, and where the hand stands


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
    _spots: dict[str, OwnSpot] = field(default_factory=dict, repr=False, compare=False)
    _ways: dict[tuple[str, int], OwnWay] = field(default_factory=dict, repr=False, compare=False)
    _tables: dict[tuple[str, int | None], ActionTable] = field(default_factory=dict, repr=False, compare=False)
    _mixes: dict[tuple[str, tuple[int, ...]], FloatArray] = field(default_factory=dict, repr=False, compare=False)
    _rows: dict[tuple[int, bool], tuple[FloatArray, BoolArray]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def game(self) -> Holdem:
        """The game that it plays."""
        return self.blueprint.game

    def act(self, observation: Observation) -> str:
        """A legal action, drawn from `shares`."""
        actions, shares = zip(*self.shares(observation), strict=True)
        return pick(actions, shares, observation.draw(action_draw(observation.position)))

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

        Where the agent may have taken bets for one or another of its tree, it is the mean over these branches, given
        what it has done so far with the same hand. Hands that never come there are weighted by translations alone.
        """
        return self.policies(position, [board])[0]

    def policies(self, position: Betting, boards: Sequence[tuple[int, ...]]) -> list[PublicPolicy]:
        """[board] `policy` on many boards, whose buckets are looked up together."""
        spot = self._spots.get(position.history) or self._spot(position)
        columns = self.blueprint.hand_buckets_on(position.actor, position.round, boards)
        if (alike := spot.table) is not None:
            return [PublicPolicy(*alike, column) for column in columns]
        return [self._mixed(spot, board, column) for board, column in zip(boards, columns, strict=True)]

    def table(self, position: Betting) -> ActionTable | None:
        """The actions of a decision, and [action, bucket] their probabilities, where they are the same on all boards.

        None where hands of a bucket may have come to the decision in different ways.
        """
        return (self._spots.get(position.history) or self._spot(position)).table

    def _mixed(self, spot: OwnSpot, board: tuple[int, ...], column: IntArray) -> PublicPolicy:
        """The mean over the branches of a spot, on a board on which hands have these buckets."""
        weights = self._weights(spot.before, spot.turn, board)
        apart = [(actions, table.take(column, axis=1)) for actions, table in spot.tables]
        return PublicPolicy(*mixture(apart, weights), np.arange(len(column)))

    def level_taken(self, position: Betting) -> float:
        """The level, in chips, that a bet before a decision of the agent is taken for: the geometric mean."""
        branches = self._spot(position).turn.branches
        levels, shares = [one.place.level for one in branches], [one.share for one in branches]
        return float(np.exp(np.average(np.log(levels), weights=shares)))

    def actions(self, position: Betting) -> tuple[str, ...]:
        """The legal actions among which the agent chooses at a position, with any hand, each once."""
        return tuple(dict.fromkeys(action for actions, _ in self._spot(position).tables for action in actions))

    def shares_on(self, position: Betting, boards: Sequence[tuple[int, ...]]) -> tuple[tuple[str, ...], FloatArray]:
        """`policy` on many boards at once: the actions, and [action, board, hand] their probabilities."""
        policies = self.policies(position, boards)
        return policies[0].actions, np.stack([policy.shares for policy in policies], axis=1)

    def _spot(self, position: Betting) -> OwnSpot:
        """The decisions of the actor of a position, and what is done at the one there; remembered."""
        return self._remembered(self._spots, position.history, lambda: self._make_spot(position))

    def _make_spot(self, position: Betting) -> OwnSpot:
        before, ways = self._way(position, position.actor)
        turn = OwnDecision(position, self._branches(ways, position), "")
        tables, alike = [self._table(position, branch.place) for branch in turn.branches], None
        if len(tables) == 1:
            alike = tables[0]
        elif all(len(decision.branches) == 1 for decision in before):
            alike = mixture(tables, self._weights(before, turn, ()))
        return OwnSpot(before, turn, tables, alike)

    def _weights(self, before: list[OwnDecision], last: OwnDecision, board: tuple[int, ...]) -> FloatArray:
        """[branch, hand] Probabilities of the branches of the last turn, given what was done at those before it.

        [branch, 1] where they are the same for all hands: nothing was done where there were several branches.
        """
        if not before:
            return last.shares
        at = before[-1].position
        seen = board[: at.rules.board_size(at.round)]  # what was dealt after the last decision tells nothing
        key = last.position.history, seen
        return self._remembered(self._mixes, key, lambda: self._make_weights(before, last, seen), KEPT_WEIGHTS)

    def _make_weights(self, before: list[OwnDecision], last: OwnDecision, board: tuple[int, ...]) -> FloatArray:
        *earlier, turn = before
        weights = self._weights(earlier, turn, board)
        if len(turn.branches) > 1:
            at = turn.position
            column = self.blueprint.hand_buckets(at.actor, at.round, board)
            tables = [PublicPolicy(*self._table(at, branch.place), column) for branch in turn.branches]
            weights = weights * [table.share(turn.action) for table in tables]
        weights = weights[[branch.earlier for branch in last.branches]] * last.shares
        total = weights.sum(axis=0)
        scaled: FloatArray = np.where(total > 0, weights, last.shares) / np.where(total > 0, total, last.shares.sum())
        return scaled

    def _table(self, position: Betting, place: Place) -> ActionTable:
        """What the agent does at a public state with every bucket, if the hand stands at `place`; remembered."""
        key = position.history, place.node
        return self._remembered(self._tables, key, lambda: self._make_table(position, place))

    def _make_table(self, position: Betting, place: Place) -> ActionTable:
        if place.node is None:
            return (CALL,), np.ones((1, self.blueprint.cards.each[position.actor].numbers[position.round]))
        labels = self.blueprint.labels(place.node)
        taken = [self._legal(label, place.level, position) for label in labels]
        rows, seen = self._remembered(self._rows, (place.node, place.acted), lambda: self._make_rows(place, labels))
        actions = tuple(dict.fromkeys([*taken, CALL]))  # several bets may have become the same
        table = np.zeros((len(actions), len(rows)))
        for column, action in zip(rows.T, taken, strict=True):
            table[actions.index(action)] += column
        table[actions.index(CALL), ~seen] = 1.0  # as `shares` has it: nobody has been there
        return actions, table

    def _make_rows(self, place: Place, labels: list[str]) -> tuple[FloatArray, BoolArray]:
        """[bucket, action] Probabilities at a decision after post-processing, and where anybody has been."""
        assert place.node is not None
        first, last = self.blueprint.first[place.node : place.node + 2]
        rows = self.blueprint.shares[first:last].reshape(-1, len(labels)).astype(np.float64)
        total = rows.sum(axis=1, keepdims=True)
        rows /= np.maximum(total, 1)
        seen: BoolArray = total[:, 0] > 0
        rows[seen] = apply_rows(self.rule, labels, rows[seen], first=not place.acted)
        return rows, seen

    @staticmethod
    def _remembered(known: dict[K, V], key: K, make: Callable[[], V], most: int = KEPT_TABLES) -> V:
        """What is known, or is made now and remembered for a while."""
        if key in known:
            with suppress(KeyError):  # another thread may clear it in between
                return known[key]
        made = make()
        if len(known) >= most:
            known.clear()
        known[key] = made
        return made

    def _menu(self, observation: Observation) -> ChoiceSet:
        """The actions to choose from; remembered where nothing was drawn."""
        position, place = observation.position, self.follow(observation)
        menu = self.choices(place, position)
        if place.sure:
            if len(self._menus) >= KEPT:
                self._menus.clear()
            self._menus[position.history] = menu
        return menu

    def choices(self, place: Place, position: Betting) -> ChoiceSet:
        """The actions at a decision of the agent, where its hand stands at `place` in the abstract game."""
        labels = [] if place.node is None else self.blueprint.labels(place.node)
        actions = [self._legal(label, place.level, position) for label in labels]
        return ChoiceSet(place.node, place.acted, labels, actions)

    def follow(self, observation: Observation) -> Place:
        """Follow a hand in the abstract game; bets that its tree does not have are translated."""
        position, place = observation.position, self.start
        for before, action in self._moves(position):
            options = self.after(place, before, action, position.actor)
            drawn = len(options) > 1 and observation.draw(translation_draw(before)) >= options[0][1]
            place = options[drawn][0]
        return self.at_turn(place, position)

    def _way(self, position: Betting, me: int) -> OwnWay:
        """Follow a hand of player `me` whatever its bets are taken for; remembered for each position on the way."""
        return self._remembered(self._ways, (position.history, me), lambda: self._make_way(position, me))

    def _make_way(self, position: Betting, me: int) -> OwnWay:
        moves = self._moves(position)
        if not moves:
            return [], [Branch(self.start, 1.0, 0)]
        before, action = moves[-1]
        turns, ways = self._way(before, me)
        if before.actor == me:
            turns = [*turns, OwnDecision(before, self._branches(ways, before), action)]
            ways = [Branch(way.place, 1.0, number) for number, way in enumerate(ways)]
        return turns, [
            Branch(place, way.share * share, way.earlier)
            for way in ways
            for place, share in self.after(way.place, before, action, me)
        ]

    def _branches(self, ways: list[Branch], position: Betting) -> list[Branch]:
        return [way._replace(place=self.at_turn(way.place, position)) for way in ways]

    @cached_property
    def start(self) -> Place:
        """Where a hand stands before anybody has acted."""
        return Place(0, max(self.game.rules.blinds), acted=False, sure=True)

    def at_turn(self, place: Place, position: Betting) -> Place:
        """Where the actor decides at a position: nowhere if the tree is not at a decision of theirs in this round."""
        nodes, node = self.blueprint.nodes, place.node
        if node is None or (nodes.actor[node] == position.actor and nodes.round[node] == position.round):
            return place
        return place._replace(node=None)

    def after(self, place: Place, before: Betting, action: str, me: int | None) -> list[tuple[Place, float]]:
        """Where player `me` may stand after an action of a hand, with probabilities: one place, or two.

        To somebody who looks on (None) the bets of both players are those of an opponent.
        """
        node, level, acted, sure = place
        nodes, levels, mine = self.blueprint.nodes, self.blueprint.level, before.actor == me
        acted |= mine
        if node is not None:
            if action == REVEAL:
                while nodes.actor[node] >= 0:  # a raise that was not legal became a call
                    node = self.blueprint.after_call(node)
                node = int(nodes.first_child[node]) if nodes.actor[node] == CHANCE else None
            elif nodes.actor[node] != before.actor:
                # Where their small raise was taken for a call, which ends the round, ours is the call of it.
                ours = mine or me is None
                node = node if ours and action == CALL and nodes.actor[node] == CHANCE else None
            elif action == CALL:
                node = self.blueprint.after_call(node)
            else:
                options = self._raised(node, level, before, action, mine=mine)
                sure &= len(options) == 1
                return [
                    (Place(to, int(levels[to]) if to is not None and levels[to] > 0 else level, acted, sure), share)
                    for to, share in options
                ]
        return [(Place(node, level, acted, sure), 1.0)]

    def _raised(
        self, node: int, level: int, before: Betting, action: str, *, mine: bool
    ) -> list[tuple[int | None, float]]:
        """The nodes after the raises that a real one may be taken for, with probabilities: one, or two."""
        nodes, levels = self.blueprint.nodes, self.blueprint.level
        child, count = int(nodes.first_child[node]), int(nodes.children[node])
        places = [place for place in range(child, child + count) if levels[place] > 0]
        if self.blueprint.limit or (mine and not places):
            return [(places[0] if places else None, 1.0)]
        real, to, stack = max(before.spent), int(action[1:]), self.game.rules.stacks[before.actor]
        if to == stack and places and levels[places[-1]] == stack:
            return [(places[-1], 1.0)]
        sizes = [(int(levels[place]) - level) / (2 * level) for place in places]
        size = (to - real) / (2 * real)
        if not mine:
            called = self.blueprint.after_call(node)
            if nodes.actor[called] == 1 - before.actor:
                places, sizes = [called, *places], [0.0, *sizes]
            elif not sizes or (size < sizes[0] and _NEAREST(0.0, sizes[0], size)):  # nothing is drawn: see above
                return [(called, 1.0)]
        return [(places[i], share) for i, share in translations(sizes, size, _NEAREST if mine else self.mapping)]

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

    def _moves(self, position: Betting) -> tuple[tuple[Betting, str], ...]:
        """Each action of a hand with the position before it, if it is a hand of the agent's game."""
        if position.rules != self.game.rules:
            raise PlayError(f"{self.name} plays {self.game.name}, and not this game: use the one it was made for")
        return self.game.positions.moves(position)


def mixture(tables: Sequence[ActionTable], weights: FloatArray) -> ActionTable:
    """The mean of the tables of some branches by `weights` [branch, column], or [branch, 1]."""
    actions = tuple(dict.fromkeys(action for actions, _ in tables for action in actions))
    mixed = np.zeros((len(actions), tables[0][1].shape[1]))
    for (some, table), weight in zip(tables, weights, strict=True):
        for action, row in zip(some, table, strict=True):
            mixed[actions.index(action)] += weight * row
    return actions, mixed


def action_draw(position: Betting) -> int:
    """Number of the draw that picks an agent's action at a decision."""
    return 2 * len(position.history)


def translation_draw(before: Betting) -> int:
    """Number of the draw that says what a bet at a decision of the opponent is taken for."""
    return 2 * len(before.history) + 1
