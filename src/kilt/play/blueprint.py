"""The agent that plays a blueprint in the real game [Brown15 §§4, 5].

The agent translates bets, looks up the probabilities of its actions, post-processes them, and draws an action.

The agent follows the real hand in the tree of the abstract game. If the tree does not have a bet, the agent translates
it to a bet of the tree with a similar size relative to the pot (see `strategy.translate`). A small bet may be
translated to a check or a call. If that call would end the round in the abstract game, the agent uses it only for bets
closer to zero than to the smallest bet of the tree, and then calls in the real game. The agent's own bets are converted
back, from multiples of the pot to chips.

The two games can get out of step: a large bet was translated to all-in although chips are left, or an all-in bet was
translated to a smaller one, so that the raise in the tree is not legal. If the tree has an action, the agent replaces
it by a legal one; if the tree has none, the agent checks and calls, like a player who is all-in in the abstract game.

An observer of a hand does not know the results of random translations. For an observer, the hand may be at several
nodes of the tree, its *branches*. The agent's `policy` is the mean over the branches. Each is weighted by the
probability of the translations that lead there and, for each private hand, by the probability of the agent's earlier
actions.
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
from kilt.play.agent import Observation, PublicPolicy, draw_action
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.postprocess import RULES, Rule, apply, apply_rows
from kilt.strategy.translate import Deterministic, Mapping, pseudo_harmonic, translations

K = TypeVar("K")
V = TypeVar("V")

KEPT_TABLES = 4096  # tables of public states in the cache: about 100 MB with a thousand buckets
KEPT_WEIGHTS = 2048  # arrays of branch weights in the cache: about 50 MB
_NEAREST = Deterministic(pseudo_harmonic)  # for the agent's own bets, which are in the tree or close to a bet of it


# legal actions without duplicates; probabilities [action, bucket]
ActionTable: TypeAlias = tuple[tuple[str, ...], FloatArray]


class AbstractState(NamedTuple):
    """The state of a hand in the abstract game: a node of its betting tree, and the chips to match."""

    node: int | None  # a decision of the player in the betting tree; None if the tree has no matching node
    level: int  # level in chips that each player has to match at that node
    acted: bool  # whether the player has acted before in this hand
    sure: bool  # whether no random number was involved: each bet had a single translation


class Branch(NamedTuple):
    """A node of the abstract betting tree at which a player may be, with its probability.

    Several nodes are possible if bets were translated at random.

    There may be several, because bets are translated at random.
    """

    state: AbstractState
    share: float  # probability, given the branch at the player's previous decision
    earlier: int  # number of the branch at the previous decision; 0 at the player's first decision


class OwnDecision(NamedTuple):
    """A past or current decision of a player in this hand.

    It has all nodes of the abstract tree at which the player may be.
    """

    position: Betting
    branches: list[Branch]
    action: str  # the action taken; "" for the decision still to be made

    @property
    def node_probabilities(self) -> FloatArray:
        """The probability of each abstract node, given the node at the previous decision.

        The shape is (branches, 1): see `Branch.share`.
        """
        return np.array([[branch.share] for branch in self.branches])


class DecisionContext(NamedTuple):
    """A player's decision at a public state, with the player's earlier decisions in the hand."""

    before: list[OwnDecision]
    turn: OwnDecision
    tables: list[ActionTable]  # [branch of the turn]
    table: ActionTable | None  # the mean over branches; None if their weights depend on the hand


OwnWay: TypeAlias = tuple[list[OwnDecision], list[Branch]]  # a player's decisions so far, and the current branches


class ChoiceSet(NamedTuple):
    """The actions at an abstract node, each with the legal action that it stands for."""

    node: int | None  # see `AbstractState`
    acted: bool  # see `AbstractState`
    labels: list[str]  # actions in the abstract game
    actions: list[str]  # actions in the real game


@dataclass(frozen=True)
class BlueprintAgent:
    """An agent that plays a blueprint: a strategy solved in an abstract game with fewer bets and hands.

    It plays the real game for which the blueprint was made.

    Parameters
    ----------
    name : str
        Name in tables and logs.
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
    _spots: dict[str, DecisionContext] = field(default_factory=dict, repr=False, compare=False)
    _ways: dict[tuple[str, int], OwnWay] = field(default_factory=dict, repr=False, compare=False)
    _tables: dict[tuple[str, int | None], ActionTable] = field(default_factory=dict, repr=False, compare=False)
    _mixes: dict[tuple[str, tuple[int, ...]], FloatArray] = field(default_factory=dict, repr=False, compare=False)
    _rows: dict[tuple[int, bool], tuple[FloatArray, BoolArray]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def game(self) -> Holdem:
        """The game that the agent plays."""
        return self.blueprint.game

    def act(self, observation: Observation) -> str:
        """Choose a legal action at random, with the agent's probabilities."""
        actions, shares = zip(*self.probabilities(observation), strict=True)
        return draw_action(actions, shares, observation.draw(action_draw(observation.position)))

    def probabilities(self, observation: Observation) -> list[tuple[str, float]]:
        """Return the agent's possible actions with their probabilities.

        The result is a list of pairs. An action may occur more than once.
        """
        menu = self._menus.get(observation.position.history) or self._menu(observation)
        if menu.node is None:
            return [(CALL, 1.0)]
        at = observation.position
        row = self.blueprint.row(
            menu.node, self.blueprint.bucket(at.actor, at.round, observation.hand, observation.board)
        )
        if not any(row):  # the information set was never reached
            return [(CALL, 1.0)]
        return list(zip(menu.actions, apply(self.rule, menu.labels, row, first=not menu.acted), strict=True))

    def policy(self, position: Betting, board: tuple[int, ...]) -> PublicPolicy:
        """Return the probability of each of the agent's actions at a public state, for every private hand.

        If bets have several possible translations, the result is the mean over these branches, given the agent's
        earlier actions with the same hand. For hands that never reach the state, only translations are weighted.
        """
        return self.policies(position, [board])[0]

    def policies(self, position: Betting, boards: Sequence[tuple[int, ...]]) -> list[PublicPolicy]:
        """Return the probability of each of the agent's actions on many boards, for every private hand.

        The buckets of all boards are looked up in one batch.
        """
        spot = self._spots.get(position.history) or self._spot(position)
        columns = self.blueprint.hand_buckets_on(position.actor, position.round, boards)
        if (alike := spot.table) is not None:
            return [PublicPolicy(*alike, column) for column in columns]
        return [self._mixed(spot, board, column) for board, column in zip(boards, columns, strict=True)]

    def table(self, position: Betting) -> ActionTable | None:
        """Return the probability of each action for every bucket, or None if it depends on the board.

        The shape of the table is (actions, buckets).

        None if hands of one bucket may have reached the decision with different probabilities.
        """
        return (self._spots.get(position.history) or self._spot(position)).table

    def _mixed(self, spot: DecisionContext, board: tuple[int, ...], column: IntArray) -> PublicPolicy:
        """Return a policy on one board: the mean over the branches of a decision.

        `column` is the bucket of each hand.
        """
        weights = self._weights(spot.before, spot.turn, board)
        apart = [(actions, table.take(column, axis=1)) for actions, table in spot.tables]
        return PublicPolicy(*mix_policies(apart, weights), np.arange(len(column)))

    def translated_bet(self, position: Betting) -> float:
        """Return the bet that the agent faces, in chips, as translated to its abstract game.

        Chips are counted over the whole hand.

        If several translations are possible, it is their geometric mean.
        """
        branches = self._spot(position).turn.branches
        levels, shares = [one.state.level for one in branches], [one.share for one in branches]
        return float(np.exp(np.average(np.log(levels), weights=shares)))

    def actions(self, position: Betting) -> tuple[str, ...]:
        """Return the actions that the agent may take at a position with any private hand."""
        return tuple(dict.fromkeys(action for actions, _ in self._spot(position).tables for action in actions))

    def probabilities_on(
        self, position: Betting, boards: Sequence[tuple[int, ...]]
    ) -> tuple[tuple[str, ...], FloatArray]:
        """Return the agent's actions on many boards, with the probabilities of every private hand.

        The shape of the probabilities is (actions, boards, hands).
        """
        policies = self.policies(position, boards)
        return policies[0].actions, np.stack([policy.probabilities for policy in policies], axis=1)

    def _spot(self, position: Betting) -> DecisionContext:
        """Return the decisions of the player to act in this hand, up to the current one, from a cache if possible."""
        return self._remembered(self._spots, position.history, lambda: self._make_spot(position))

    def _make_spot(self, position: Betting) -> DecisionContext:
        before, ways = self._way(position, position.actor)
        turn = OwnDecision(position, self._branches(ways, position), "")
        tables, alike = [self._table(position, branch.state) for branch in turn.branches], None
        if len(tables) == 1:
            alike = tables[0]
        elif all(len(decision.branches) == 1 for decision in before):
            alike = mix_policies(tables, self._weights(before, turn, ()))
        return DecisionContext(before, turn, tables, alike)

    def _weights(self, before: list[OwnDecision], last: OwnDecision, board: tuple[int, ...]) -> FloatArray:
        """Return the probability of each branch of the last decision, given the player's earlier actions.

        The shape is [branch, hand], or [branch, 1] if the player had a single branch at each earlier decision, so that
        all hands have the same probabilities.
        """
        if not before:
            return last.node_probabilities
        at = before[-1].position
        seen = board[: at.rules.board_size(at.round)]  # cards dealt after the last decision do not matter
        key = last.position.history, seen
        return self._remembered(self._mixes, key, lambda: self._make_weights(before, last, seen), KEPT_WEIGHTS)

    def _make_weights(self, before: list[OwnDecision], last: OwnDecision, board: tuple[int, ...]) -> FloatArray:
        *earlier, turn = before
        weights = self._weights(earlier, turn, board)
        if len(turn.branches) > 1:
            at = turn.position
            column = self.blueprint.hand_buckets(at.actor, at.round, board)
            tables = [PublicPolicy(*self._table(at, branch.state), column) for branch in turn.branches]
            weights = weights * [table.probability(turn.action) for table in tables]
        weights = weights[[branch.earlier for branch in last.branches]] * last.node_probabilities
        total = weights.sum(axis=0)
        scaled: FloatArray = np.where(total > 0, weights, last.node_probabilities) / np.where(
            total > 0, total, last.node_probabilities.sum()
        )
        return scaled

    def _table(self, position: Betting, state: AbstractState) -> ActionTable:
        """Return the probabilities of the agent's legal actions with every bucket, if `state` is its abstract state."""
        key = position.history, state.node
        return self._remembered(self._tables, key, lambda: self._make_table(position, state))

    def _make_table(self, position: Betting, state: AbstractState) -> ActionTable:
        if state.node is None:
            return (CALL,), np.ones((1, self.blueprint.cards.each[position.actor].numbers[position.round]))
        labels = self.blueprint.labels(state.node)
        taken = [self._legal(label, state.level, position) for label in labels]
        rows, seen = self._remembered(self._rows, (state.node, state.acted), lambda: self._make_rows(state, labels))
        actions = tuple(dict.fromkeys([*taken, CALL]))  # several abstract bets may have the same legal counterpart
        table = np.zeros((len(actions), len(rows)))
        for column, action in zip(rows.T, taken, strict=True):
            table[actions.index(action)] += column
        table[actions.index(CALL), ~seen] = 1.0  # as in `probabilities`, information sets that were never reached call
        return actions, table

    def _make_rows(self, state: AbstractState, labels: list[str]) -> tuple[FloatArray, BoolArray]:
        """Return post-processed probabilities at a node, [bucket, action], and which buckets ever reached the node."""
        assert state.node is not None
        first, last = self.blueprint.first[state.node : state.node + 2]
        rows = self.blueprint.shares[first:last].reshape(-1, len(labels)).astype(np.float64)
        total = rows.sum(axis=1, keepdims=True)
        rows /= np.maximum(total, 1)
        seen: BoolArray = total[:, 0] > 0
        rows[seen] = apply_rows(self.rule, labels, rows[seen], first=not state.acted)
        return rows, seen

    @staticmethod
    def _remembered(known: dict[K, V], key: K, make: Callable[[], V], most: int = KEPT_TABLES) -> V:
        """Return the value of a key from a cache, or compute and store it."""
        if key in known:
            with suppress(KeyError):  # another thread may clear the cache in between
                return known[key]
        made = make()
        if len(known) >= most:
            known.clear()
        known[key] = made
        return made

    def _menu(self, observation: Observation) -> ChoiceSet:
        """Return the actions that the agent chooses from. Cached if no translation on the way was random."""
        position, state = observation.position, self.follow(observation)
        menu = self.choices(state, position)
        if state.sure:
            if len(self._menus) >= KEPT:
                self._menus.clear()
            self._menus[position.history] = menu
        return menu

    def choices(self, state: AbstractState, position: Betting) -> ChoiceSet:
        """Return the agent's abstract actions, each with the legal action that it stands for."""
        labels = [] if state.node is None else self.blueprint.labels(state.node)
        actions = [self._legal(label, state.level, position) for label in labels]
        return ChoiceSet(state.node, state.acted, labels, actions)

    def follow(self, observation: Observation) -> AbstractState:
        """Follow a hand's actions in the abstract game, and return the state that they lead to.

        Bets that the abstract tree does not have are translated.
        """
        position, state = observation.position, self.start
        for before, action in self._moves(position):
            options = self.after(state, before, action, position.actor)
            drawn = len(options) > 1 and observation.draw(translation_draw(before)) >= options[0][1]
            state = options[drawn][0]
        return self.at_turn(state, position)

    def _way(self, position: Betting, me: int) -> OwnWay:
        """Return a player's decisions in a hand so far, and all branches where the player may be now. Cached."""
        return self._remembered(self._ways, (position.history, me), lambda: self._make_way(position, me))

    def _make_way(self, position: Betting, me: int) -> OwnWay:
        moves = self._moves(position)
        if not moves:
            return [], [Branch(self.start, 1.0, 0)]
        before, action = moves[-1]
        turns, ways = self._way(before, me)
        if before.actor == me:
            turns = [*turns, OwnDecision(before, self._branches(ways, before), action)]
            ways = [Branch(way.state, 1.0, number) for number, way in enumerate(ways)]
        return turns, [
            Branch(state, way.share * share, way.earlier)
            for way in ways
            for state, share in self.after(way.state, before, action, me)
        ]

    def _branches(self, ways: list[Branch], position: Betting) -> list[Branch]:
        return [way._replace(state=self.at_turn(way.state, position)) for way in ways]

    @cached_property
    def start(self) -> AbstractState:
        """The abstract game's state at the beginning of a hand."""
        return AbstractState(0, max(self.game.rules.blinds), acted=False, sure=True)

    def at_turn(self, state: AbstractState, position: Betting) -> AbstractState:
        """Return an abstract state, without its node if it does not match the real game.

        It matches if the same player is to act in the same round. Then `state` itself is returned.
        """
        nodes, node = self.blueprint.nodes, state.node
        if node is None or (nodes.actor[node] == position.actor and nodes.round[node] == position.round):
            return state
        return state._replace(node=None)

    def after(
        self, state: AbstractState, before: Betting, action: str, me: int | None
    ) -> list[tuple[AbstractState, float]]:
        """Return the abstract states that an action may lead to, with their probabilities.

        There are one or two such states.

        If `me` is None, the bets of both players are translated like those of an opponent.
        """
        node, level, acted, sure = state
        nodes, levels, mine = self.blueprint.nodes, self.blueprint.level, before.actor == me
        acted |= mine
        if node is not None:
            if action == REVEAL:
                while nodes.actor[node] >= 0:  # an illegal raise was replaced by a call
                    node = self.blueprint.after_call(node)
                node = int(nodes.first_child[node]) if nodes.actor[node] == CHANCE else None
            elif nodes.actor[node] != before.actor:
                # The opponent's small raise was translated to a call that ends the round. This action is our call.
                ours = mine or me is None
                node = node if ours and action == CALL and nodes.actor[node] == CHANCE else None
            elif action == CALL:
                node = self.blueprint.after_call(node)
            else:
                options = self._raised(node, level, before, action, mine=mine)
                sure &= len(options) == 1
                return [
                    (
                        AbstractState(to, int(levels[to]) if to is not None and levels[to] > 0 else level, acted, sure),
                        share,
                    )
                    for to, share in options
                ]
        return [(AbstractState(node, level, acted, sure), 1.0)]

    def _raised(
        self, node: int, level: int, before: Betting, action: str, *, mine: bool
    ) -> list[tuple[int | None, float]]:
        """Return the one or two nodes to which a real raise may be translated, with their probabilities."""
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
            # no random choice: see the module's docstring
            elif not sizes or (size < sizes[0] and _NEAREST(0.0, sizes[0], size)):
                return [(called, 1.0)]
        return [(places[i], share) for i, share in translations(sizes, size, _NEAREST if mine else self.mapping)]

    def _legal(self, label: str, level: int, position: Betting) -> str:
        """Return the legal action that an abstract action stands for. A bet keeps its size relative to the pot."""
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
        """Return the actions of a hand, each with the position before it.

        Raises PlayError if the hand is of another game.
        """
        if position.rules != self.game.rules:
            raise PlayError(f"{self.name} plays only {self.game.name}, and not this game")
        return self.game.positions.moves_to(position)


def mix_policies(tables: Sequence[ActionTable], weights: FloatArray) -> ActionTable:
    """Return the weighted mean of several tables of action probabilities.

    `weights` has the shape (tables, columns) or (tables, 1).
    """
    actions = tuple(dict.fromkeys(action for actions, _ in tables for action in actions))
    mixed = np.zeros((len(actions), tables[0][1].shape[1]))
    for (some, table), weight in zip(tables, weights, strict=True):
        for action, row in zip(some, table, strict=True):
            mixed[actions.index(action)] += weight * row
    return actions, mixed


def action_draw(position: Betting) -> int:
    """Return the index of the random draw with which an agent chooses its action."""
    return 2 * len(position.history)


def translation_draw(before: Betting) -> int:
    """Return the index of the random draw with which an agent translates a bet."""
    return 2 * len(before.history) + 1
