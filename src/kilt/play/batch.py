"""Play matches between two blueprint agents in compiled code.

The hands are the same as if they were played one by one.

Hands move through a *joint tree*. Each of its states is a position of the real game, together with the positions of
both players in their abstract games. An action leads to two states if the opponent translates the bet at random to one
of two bets. The tree grows as hands need new states: a hand whose next state is missing waits until the agents' own
functions (`BlueprintAgent.after`, `choices`) have added it. Kernels therefore need no code for menus and translation,
and most of a large tree is never built.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, IntArray
from kilt.cards.hands import hand_tables
from kilt.cards.hands_kernels import showdown_winners
from kilt.games.game import CHANCE, REVEAL, TERMINAL
from kilt.games.holdem import CALL, Betting, Holdem
from kilt.play.agent import Agent
from kilt.play.batch_kernels import EDGE, FOLDED, SHOWN, STATE, Records, Side, play_hands
from kilt.play.blueprint import AbstractState, BlueprintAgent, action_draw, translation_draw
from kilt.play.dealer import Cards, Dealer, Hand
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.postprocess_kernels import CLASSES

UNITS = 1024  # units of a match per call of the kernels
UNWRITTEN = np.array((1.0, -1, -1), dtype=EDGE)
MOST_STATES = 200_000  # largest number of states of a joint tree (200 MB); a larger tree is discarded and rebuilt


class JointTree:
    """The betting tree that two agents share, with each agent's position in its own abstract game.

    At each node, it stores the position of each agent in its own abstract game.

    It covers both seat arrangements, and grows as hands reach new states.

    Parameters
    ----------
    game : Holdem
        The game of both agents.
    agents : (BlueprintAgent, BlueprintAgent)
        The agents. They have seats 0 and 1 in the states after `roots[0]`, and seats 1 and 0 in those after `roots[1]`.
    """

    def __init__(self, game: Holdem, agents: tuple[BlueprintAgent, BlueprintAgent]) -> None:
        self.game, self.agents = game, agents
        self.states: Records = np.zeros(64, dtype=STATE)
        self.edges: Records = np.zeros(64, dtype=EDGE)
        self.positions: list[Betting] = []  # [state]
        self._places: list[
            tuple[AbstractState, AbstractState]
        ] = []  # [state][seat] position in that player's abstract game
        self._swapped: list[int] = []  # [state] 1 if the second player has seat 0
        self._origin: list[tuple[int, str]] = []  # [edge] state and action
        start = game.start()
        self.roots = [self._add(start, [agents[seat ^ swap].start for seat in (0, 1)], swap) for swap in (0, 1)]

    def add_states(self, edge: int) -> None:
        """Add the states after an action to the tree.

        `edge` is the number of the action in the tree.
        """
        state, action = self._origin[edge]
        before, swapped = self.positions[state], self._swapped[state]
        seat, position = before.actor, self.game.positions.after(before, action)
        if position.actor == TERMINAL:
            end = self._add(position, self._places[state], swapped)
            self.edges[edge] = 1.0, end, end
            return
        ((own, _),) = self._after(state, action, seat)  # a player's own actions are not translated at random
        taken = self._after(state, action, 1 - seat)
        children = [self._add(position, (own, other)[:: 1 - 2 * seat], swapped) for other, _ in taken]
        self.edges[edge] = taken[0][1], children[0], children[-1]

    def _after(self, state: int, action: str, seat: int) -> list[tuple[AbstractState, float]]:
        """Return where a seat's player may be in its abstract game after an action: see `BlueprintAgent.after`."""
        agent = self.agents[seat ^ self._swapped[state]]
        return agent.after(self._places[state][seat], self.positions[state], action, seat)

    def _add(self, position: Betting, places: Sequence[AbstractState], swapped: int) -> int:
        """Add the state at a betting position, or at the next decision or end after it.

        Returns the number of the state.
        """
        first, second = places
        while position.actor == CHANCE:
            first, second = (
                self.agents[seat ^ swapped].after(place, position, REVEAL, seat)[0][0]
                for seat, place in enumerate((first, second))
            )
            position = self.game.positions.after(position, REVEAL)
        number, edge = len(self.positions), len(self._origin)
        self.positions.append(position)
        self._places.append((first, second))
        self._swapped.append(swapped)
        self.states = _with_room(self.states, number + 1)
        if position.actor == TERMINAL:
            how = SHOWN if position.folded is None else FOLDED
            stake = -position.stake if position.folded == 0 else position.stake
            self.states[number] = 0, 0, 0, 0, 0, stake, how, 0, position.round, 0, 0, 0
            return number
        player = position.actor ^ swapped
        agent = self.agents[player]
        blueprint, rule = agent.blueprint, agent.rule
        menu = agent.choices(agent.at_turn((first, second)[position.actor], position), position)
        actions, draws = menu.actions or [CALL], (action_draw(position), translation_draw(position))
        slot, call = (0, 0) if menu.node is None else (blueprint.first[menu.node], blueprint.faces_bet(menu.node))
        ruled = not (rule.idle or (rule.after_first and not menu.acted))
        who = position.actor, player, position.round
        self.states[number] = slot, *draws, edge, len(actions), 0, *who, call, ruled, menu.node is None
        self._origin += [(number, action) for action in actions]
        self.edges = _with_room(self.edges, len(self._origin))
        self.edges[edge : len(self._origin)] = UNWRITTEN
        return number


class BatchMatch:
    """A match between two blueprint agents, played by compiled code.

    Parameters
    ----------
    dealer : Dealer
        Deals the cards.
    agents : (BlueprintAgent, BlueprintAgent)
        The first and the second player; `can_play` must be True for them.
    duplicate : bool
        Whether a unit is two hands of the same deal, with the players swapped.
    """

    def __init__(self, dealer: Dealer, agents: tuple[BlueprintAgent, BlueprintAgent], duplicate: bool) -> None:
        self.dealer, self.game, self.agents, self.duplicate = dealer, dealer.game, agents, duplicate
        self.tree = JointTree(self.game, agents)
        first, second = (agent.blueprint.cards for agent in agents)
        self._same_cards = first is second or first.fingerprint == second.fingerprint
        actions = max(int(agent.blueprint.nodes.children.max()) for agent in agents)
        self._row: FloatArray = np.empty(actions + CLASSES)

    @staticmethod
    def can_play(game: Holdem, agents: tuple[Agent, Agent]) -> bool:
        """Return whether compiled code can play a match between two given agents.

        Both must be blueprints of the game.
        """
        return all(
            type(agent) is BlueprintAgent
            and agent.game.rules == game.rules
            and agent.rule.numbers is not None
            and agent.blueprint.shares.dtype in (np.uint8, np.uint16)
            for agent in agents
        )

    def play(self, first: int, last: int, keep: bool) -> tuple[list[float], list[Hand]]:
        """Play some hands or duplicate pairs of a match.

        Returns the result of each in chips per hand.

        They have the numbers `first` to `last` − 1. If `keep` is set, the hands are returned too; otherwise, an empty
        list.
        """
        if len(self.tree.positions) > MOST_STATES:
            self.tree = JointTree(self.game, self.agents)
        cards, keys = self.dealer.deal_many(first, last)
        hands, outcome = np.empty((len(cards), 2), dtype=np.int64), np.empty(len(cards), dtype=np.float32)
        held = self.game.rules.hole_cards
        showdown_winners(cards, held, hand_tables(cards.shape[1] - held, self.game.deck), hands, outcome)
        per_unit = 2 if self.duplicate else 1
        number = np.arange(per_unit * first, per_unit * last)
        deal = number // per_unit - first
        at = np.array(self.tree.roots)[number % 2]
        self._play(self._sides(cards, hands), keys, deal, at)
        ends = self.tree.states[at]
        chips = ends["stake"] * np.where(ends["actor"] == SHOWN, outcome[deal].astype(np.int64), 1)  # chips of seat 0
        won = np.where(number % 2 == 0, chips, -chips).reshape(-1, per_unit).sum(axis=1) / per_unit
        kept = self._hands(number, at, chips, cards[deal]) if keep else []
        return won.tolist(), kept

    def _play(self, sides: tuple[Side, Side], keys: npt.NDArray[np.uint64], deal: IntArray, at: IntArray) -> None:
        """Play hands to their ends, starting from their states in the tree, which is extended as needed."""
        tree, going, wanted = self.tree, np.arange(len(at)), np.empty(len(at), dtype=np.int64)
        while True:
            waiting = play_hands(tree.states, tree.edges, *sides, keys, deal, self._row, at, going, wanted)
            if not waiting:
                return
            going = going[:waiting]
            for edge in np.unique(wanted[:waiting]).tolist():
                tree.add_states(edge)

    def _sides(self, cards: IntArray, hands: IntArray) -> tuple[Side, Side]:
        """Return, for each player, the weights of the blueprint and the buckets of the dealt hands."""
        rules = self.game.rules
        buckets = []
        for agent in self.agents[: 1 if self._same_cards else 2]:
            bucket = np.empty((len(cards), rules.rounds, 2), dtype=np.uint32)
            for r in range(rules.rounds):
                shown = cards[:, 2 * rules.hole_cards : 2 * rules.hole_cards + rules.board_size(r)]
                agent.blueprint.cards.look_up(r, shown, hands, bucket[:, r])
            buckets.append(bucket)
        first, second = (_side(agent, bucket) for agent, bucket in zip(self.agents, (buckets * 2)[:2], strict=True))
        return first, second

    def _hands(self, number: IntArray, at: IntArray, chips: IntArray, cards: IntArray) -> list[Hand]:
        """Return a record of each finished hand."""
        names, held, found = (self.agents[0].name, self.agents[1].name), self.game.rules.hole_cards, []
        for each, end, won, row in zip(number.tolist(), at.tolist(), chips.tolist(), cards.tolist(), strict=True):
            dealt = Cards((tuple(row[:held]), tuple(row[held : 2 * held])), tuple(row[2 * held :]))
            players = names if each % 2 == 0 else names[::-1]
            found.append(Hand(each, self.tree.positions[end], dealt, (float(won), float(-won)), players))
        return found


def _side(agent: BlueprintAgent, bucket: npt.NDArray[np.uint32]) -> Side:
    rule = agent.rule.numbers
    assert rule is not None
    return Side(*weights_as_bytes(agent.blueprint), rule, bucket)


def weights_as_bytes(blueprint: Blueprint) -> tuple[npt.NDArray[np.uint8], int]:
    """Return a blueprint's action weights as raw bytes, and the number of bytes per weight.

    With raw bytes, one compiled kernel works for all types of weights.
    """
    content = np.ascontiguousarray(blueprint.shares).view(np.uint8)
    content.flags.writeable = False  # like a table that is mapped from disk
    return content, blueprint.shares.dtype.itemsize


def _with_room(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return the array itself if it has at least `size` entries; otherwise a copy that is at least twice as long."""
    if size <= len(array):
        return array
    longer = np.zeros(max(size, 2 * len(array)), dtype=array.dtype)
    longer[: len(array)] = array
    return longer
