"""Play a blueprint in the first rounds, and re-solve subgames in later rounds.

At the start of each round that it re-solves, the agent builds the remaining subgame, with all private hands: the board,
the pot, and both players' *ranges*. Bayes' rule updates the ranges hand by hand after each action of either player: by
the blueprint in earlier rounds, with its translation, and by the solved subgames since. A bet of the opponent that the
blueprint lacks counts as the bets nearest to it in size.

The values of the opponent's hands against the blueprint make re-solving safe (see `solve.resolve`). A walk of the
blueprint's tree after the position computes them, with all hands on all boards.

Ranges and values come from the blueprint before post-processing. Post-processing applies only to actions that the agent
plays by its blueprint: a rule that folds more than the blueprint would make the opponent's hands look too strong, and
the re-solved strategy would inherit the error.

The agent does not translate bets in subgames. If the opponent makes a bet that the subgame's tree lacks, or that its
strategy never makes, the agent starts a new subgame after the bet: *nested* re-solving (Brown and Sandholm 2017). The
values of the opponent's hands before the bet limit what the opponent can gain by it.

A subgame that begins on the flop has too many possible boards to be solved to the end. A *limited* round is solved
alone, with the blueprint's values at its end (`continuations`); afterwards the next subgame begins, or the agent
returns to the blueprint.

With a fixed number of iterations, the agent's strategy is a function of the public state: the agent can report it, and
estimators and local best response treat the agent like a blueprint. With a time limit, the strategy depends on the
speed of the machine, but an answer always arrives in time: if nothing has been solved yet, it is the blueprint's. A
later result is discarded, and play continues from the ranges: a subgame in which the agent has already acted is not
solved any more.
"""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import log
from time import monotonic, process_time
from typing import Any, NamedTuple

import numpy as np

from kilt.arrays import FloatArray
from kilt.config import UNSAFE, ResolveConfig
from kilt.errors import KiltError, PlayError
from kilt.games.game import CHANCE, REVEAL, TERMINAL
from kilt.games.holdem import CALL, RAISE, Betting, Holdem
from kilt.games.subgame import subgame
from kilt.machine import DecisionTime
from kilt.play.agent import Observation, PublicPolicy, draw_action
from kilt.play.blueprint import BlueprintAgent, action_draw
from kilt.search.allowance import Allowance
from kilt.search.blueprint_values import blueprint_values, own_menu
from kilt.search.continuation_sequences import SequenceCache
from kilt.search.continuations import BlueprintContinuations
from kilt.search.ranges import (
    BlueprintState,
    SubgameState,
    blueprint_ranges,
    dealable_ranges,
    free_hands,
    moves_of,
    translated_share,
    update_range,
)
from kilt.search.settings import menu_of, require_settings
from kilt.solve.resolve import LeafValues, Resolved, relevant_hands, resolve
from kilt.tree.navigation import NavigableTree

SECONDS = 2.0  # per decision, if neither seconds nor iterations are given
SPARE = 0.1  # share of the seconds that is reserved: half for the solver to return, half for the blueprint's answer
LEAST_SPARE = 0.2  # minimum number of reserved seconds, but at most half of all: busy machines answer late
LEAST = 8  # minimum iterations within a time limit: with fewer, the blueprint is better (see docs/guides/agents.md)
HAND_SECONDS = 6.0  # for all decisions of a hand together: the ACPC allows 7 on average
KEPT_HANDS = 1024  # hands whose used seconds are remembered
RARE = 1e-3  # share of the opponent's range: rarer actions have had too few iterations to be trusted
KEPT_BYTES = 512 << 20  # maximum size of the cached subgames
FOR_ENDS = 0.35  # share of the remaining time for the values at the end of a limited round
PREPARED = 20.0  # maximum seconds to prepare the continuations of limited rounds, before the first hand
KEPT_POLICIES = 4096  # maximum number of cached decisions, 40 kB each in hold'em


class ResolvedPolicy(NamedTuple):
    """An agent's strategy at a public state, with and without post-processing."""

    policy: PublicPolicy  # of the blueprint without post-processing, or of a subgame: it updates the ranges
    played: PublicPolicy  # after the post-processing that the agent applies


@dataclass(frozen=True)
class ResolvingAgent:
    """A poker agent that follows a blueprint, and re-solves subgames during play.

    Parameters
    ----------
    name : str
        Its name in tables and logs.
    blueprint : BlueprintAgent
        The agent's strategy in earlier rounds.
    settings : ResolveConfig
        Rounds, method, bets and budget.

    Raises
    ------
    PlayError
        A round, bet size or method is invalid, or a subgame would not fit into memory.
    """

    name: str
    blueprint: BlueprintAgent
    settings: ResolveConfig
    _solved: OrderedDict[tuple[int, str, tuple[int, ...]], Resolved] = field(
        default_factory=OrderedDict, repr=False, compare=False
    )
    _decided: dict[tuple[str, tuple[int, ...]], ResolvedPolicy] = field(default_factory=dict, repr=False, compare=False)
    _rests: SequenceCache = field(default_factory=SequenceCache, repr=False, compare=False)
    _worker: list[ThreadPoolExecutor] = field(default_factory=list, repr=False, compare=False)
    _spent: dict[int, float] = field(default_factory=dict, repr=False, compare=False)  # used seconds by the hand's key

    _thinking: list[DecisionTime] = field(default_factory=lambda: [DecisionTime()], repr=False, compare=False)

    def __post_init__(self) -> None:
        require_settings(self.settings, self.game)

    def __reduce__(self) -> tuple[Any, ...]:
        return ResolvingAgent, (self.name, self.blueprint, self.settings)  # solved subgames stay in their process

    @property
    def game(self) -> Holdem:
        """The game that the agent plays."""
        return self.blueprint.game

    @cached_property
    def raw(self) -> BlueprintAgent:
        """The agent that plays the same blueprint without post-processing."""
        played = self.blueprint
        return played if played.rule.idle else BlueprintAgent(played.name, played.blueprint, mapping=played.mapping)

    @property
    def thinking(self) -> DecisionTime:
        """The number and the CPU time of the agent's decisions so far.

        A decision that is repeated is counted once.
        """
        return self._thinking[0]

    @property
    def first_round(self) -> int:
        """The index of the first round that the agent re-solves."""
        return min(self._rounds)

    @property
    def _rounds(self) -> list[int]:
        return [self.game.rules.round_names.index(name) for name in self.settings.rounds]

    @property
    def _limited(self) -> list[int]:
        return [self.game.rules.round_names.index(name) for name in self.settings.limited]

    def prepare(self) -> None:
        """Compile all kernels before the first hand, so that decisions keep their time limit.

        The first possible subgame is solved briefly, and the result is discarded.
        """
        if not self.settings.clock or self._worker:
            return
        self._worker.append(ThreadPoolExecutor(1))
        position = self.game.start()
        while position.round < self.first_round:
            position = position.after(REVEAL if position.actor == CHANCE else CALL)
        board, me = tuple(range(self.game.rules.board_size(position.round))), position.actor
        at = self.hand_state(position, board, me, monotonic())
        self._told(at)
        self._values(at, me)
        self._followed(position, board)
        self._solved.clear()
        self._prepare_limits()

    def _prepare_limits(self) -> None:
        """Prepare the values at the end of limited rounds for the bets that the blueprint makes.

        What is prepared does not depend on the board.
        """
        below, begun = [self.game.start()] if self._limited else [], monotonic()
        while below and monotonic() - begun < PREPARED:
            position = below.pop(0)
            if position.actor != TERMINAL and position.round < min(self._limited):
                actions = (REVEAL,) if position.actor == CHANCE else self.raw.actions(position)
                below += [self.game.positions.after(position, action) for action in actions]
            elif position.actor >= 0:
                board = tuple(range(self.game.rules.board_size(position.round)))
                rest = subgame(self.game, position, board, np.ones((2, len(self.game.holes))))
                for me in (0, 1):
                    limit = self._limit(position, me, Allowance())
                    menu = menu_of(self.settings, position.round, self.game)
                    limit.prepare(rest, menu, own_menu(self.raw, position))

    def act(self, observation: Observation) -> str:
        """Choose a legal action at random, with the probabilities of the blueprint or of a re-solved subgame."""
        position, board = observation.position, observation.board
        if position.round < self.first_round:
            return self.blueprint.act(observation)
        if self.settings.clock:
            policy = self._in_time(position, board, observation.key).played
        else:
            policy = self._decide(position, board, Allowance()).played
        hand = self.game.deck.hole_index(observation.hand)
        shares = policy.table[:, policy.column[hand]].tolist()
        return draw_action(policy.actions, shares, observation.draw(action_draw(position)))

    def policy(self, position: Betting, board: tuple[int, ...]) -> PublicPolicy:
        """Return the probability of each action at a public state, for every private hand.

        Raises PlayError if the agent plays with a time limit.
        """
        if self.settings.clock:
            raise PlayError(
                f"{self.name} solves for {self.settings.clock:g} seconds, so its strategy is not reproducible: give "
                "iterations, as "
                "in RUN@resolve:iterations=100"
            )
        if position.round < self.first_round:
            return self.blueprint.policy(position, board)
        return self._decide(position, board, Allowance()).played

    def _in_time(self, position: Betting, board: tuple[int, ...], key: int) -> ResolvedPolicy:
        """Return the strategy that was solved within the time limit, or the blueprint's if there is none.

        A decision takes at most half of the time that is left to the hand, so that later decisions have some.
        """
        began, spent = monotonic(), self._spent.get(key, 0.0)
        clock = self.settings.clock
        seconds = min(clock, (HAND_SECONDS - spent) / 2) if clock <= HAND_SECONDS else clock
        if not self._worker:
            self._worker.append(ThreadPoolExecutor(1))
        spare = max(SPARE * seconds, min(LEAST_SPARE, seconds / 2))
        time = Allowance(began + seconds - spare, LEAST)
        asked = self._worker[0].submit(self._decide, position, board, time)
        otherwise = self._followed(position, board)  # computed before the time is up
        try:
            return asked.result(max(began + seconds - spare / 2 - monotonic(), 0.0))
        except (LateError, KiltError, MemoryError):
            asked.cancel()
            time.drop()
            # Later ranges must be updated with the strategy that is returned here.
            return self._keep(position, board, otherwise)
        finally:
            if len(self._spent) >= KEPT_HANDS:
                self._spent.clear()
            self._spent[key] = spent + monotonic() - began

    def _decide(self, position: Betting, board: tuple[int, ...], time: Allowance) -> ResolvedPolicy:
        """Return the strategy at a decision in a re-solved round."""
        if (known := self._decided.get((position.history, board))) is not None:
            return known
        began = process_time()
        at = self._stands(position, board, position.actor, time)
        if isinstance(at, SubgameState):
            policy = self._told(at)
            decided = ResolvedPolicy(policy, policy)
        else:
            decided = self._followed(position, board)
        self._thinking[0] += DecisionTime(1, process_time() - began)
        return self._keep(position, board, decided)

    def _followed(self, position: Betting, board: tuple[int, ...]) -> ResolvedPolicy:
        """Return the blueprint's strategy at a decision, before and after post-processing."""
        return ResolvedPolicy(self.raw.policy(position, board), self.blueprint.policy(position, board))

    def _keep(self, position: Betting, board: tuple[int, ...], decided: ResolvedPolicy) -> ResolvedPolicy:
        if len(self._decided) >= KEPT_POLICIES:
            self._decided.clear()
        return self._decided.setdefault((position.history, board), decided)

    # Ranges ----------------------------------------------------------------------------------------------------------

    def hand_state(
        self, position: Betting, board: tuple[int, ...], me: int, until: float | None = None
    ) -> SubgameState:
        """Return both players' ranges and the current subgame at a position.

        Parameters
        ----------
        position : Betting
            The betting so far, in a re-solved round or a later one.
        board : tuple of int
            The public cards so far.
        me : int
            The agent's seat.
        until : float, optional
            Time to stop, by `time.monotonic`; subgames that must be solved first share the time.

        Returns
        -------
        SubgameState

        Raises
        ------
        PlayError
            The agent follows its blueprint at this position.
        """
        at = self._stands(position, board, me, Allowance(until))
        if not isinstance(at, SubgameState):
            raise PlayError(f"{self.name} follows its blueprint at {position.history!r}: no subgame has begun")
        return at

    def _stands(
        self, position: Betting, board: tuple[int, ...], me: int, time: Allowance
    ) -> SubgameState | BlueprintState | None:
        """Return what `hand_state` returns, or the ranges alone if the agent follows its blueprint again.

        Returns None before the first re-solved round.
        """
        at: SubgameState | BlueprintState | None = None
        moves = list(moves_of(self.game, position))
        for number, (before, action, after) in enumerate(moves):
            seen = board[: self.game.rules.board_size(after.round)]
            given = time.for_earlier_subgame(moves[number + 1 :], me, half=action == REVEAL)
            if at is not None:
                at = (
                    self._deal(at, after, seen, me, given)
                    if action == REVEAL
                    else self._act(at, before, action, after, seen, me, given)
                )
            elif after.round == self.first_round:
                at = self._begin(blueprint_ranges(self.raw, after, seen), None, after, seen, me, given)
        return at

    def _deal(
        self, at: SubgameState | BlueprintState, after: Betting, board: tuple[int, ...], me: int, time: Allowance
    ) -> SubgameState | BlueprintState:
        """Return the state after public cards are dealt: a subgame continues, ends, or begins in a re-solved round."""
        reach, now = at.reach * free_hands(self.game, board), None
        if isinstance(at, SubgameState) and after.round - 1 not in self._limited:
            now = SubgameState(
                reach, at.solved, at.tree.deal(at.tree_position, board[self.game.rules.board_size(after.round - 1) :])
            )
        if after.round in self._rounds and after.actor >= 0:
            return self._begin(reach, now, after, board, me, time)
        return now or BlueprintState(reach)

    def _act(
        self,
        at: SubgameState | BlueprintState,
        before: Betting,
        action: str,
        after: Betting,
        board: tuple[int, ...],
        me: int,
        time: Allowance,
    ) -> SubgameState | BlueprintState:
        """Return the state after an action: update the actor's range, and begin a subgame if the tree lacks the action.

        A subgame also begins if the agent is to act, and the previous subgame was not solved in time.
        """
        player, reach = before.actor, at.reach.copy()
        answered = self._decided.get((before.history, board)) if player == me else None
        if answered:
            policy = answered.policy
        else:
            policy = self._told(at) if isinstance(at, SubgameState) else self.raw.policy(before, board)
        share = update_range(reach, before, translated_share(policy, before, action, self.raw.mapping))
        if isinstance(at, BlueprintState):
            late = after.actor == me and after.round in self._rounds
            return self._begin(reach, None, after, board, me, time) if late else BlueprintState(reach)
        rare = player != me and share < RARE
        if after.actor >= 0 and (rare or action not in at.tree.actions(at.tree_position)):
            return self._begin(reach, at, after, board, me, time)
        return SubgameState(reach, at.solved, at.tree.act(at.tree_position, action))

    def _told(self, at: SubgameState) -> PublicPolicy:
        """Return the strategy of the player to act in a subgame, for every hand."""
        actions = at.tree.actions(at.tree_position)
        table = np.zeros((len(actions), len(self.game.holes)))
        table[actions.index(CALL)] = 1.0  # for hands that neither player holds
        table[:, at.tree.holdem.numbers] = at.tree.strategy(at.solved.table, at.tree_position)
        return PublicPolicy(actions, table, np.arange(table.shape[1]))

    # Subgames --------------------------------------------------------------------------------------------------------

    def _begin(
        self,
        reach: FloatArray,
        before: SubgameState | None,
        position: Betting,
        board: tuple[int, ...],
        me: int,
        time: Allowance,
    ) -> SubgameState | BlueprintState:
        """Begin and solve the subgame at a position; return the ranges alone if too little time is left.

        `before` is the state in a previous subgame, at the position or at the decision before a bet that its tree
        lacks.
        """
        key = me, position.history, board
        found = self._solved.get(key)
        if found is None:
            if time.over:
                return BlueprintState(reach)
            found = self._solve(reach, before, position, board, me, time)
            if found.iterations < min(time.least, self.settings.iterations or time.least):
                return BlueprintState(reach)
            self._solved[key] = found
            while len(self._solved) > 2 and sum(map(_bytes, self._solved.values())) > KEPT_BYTES:
                self._solved.popitem(last=False)
        self._solved.move_to_end(key)
        tree = NavigableTree(found.game)
        held = np.zeros(reach.shape[1])  # hands that were ignored stay ignored: later subgames have no values for them
        held[tree.holdem.numbers] = 1.0
        return SubgameState(reach * held, found, tree.start)

    def _solve(
        self,
        reach: FloatArray,
        before: SubgameState | None,
        position: Betting,
        board: tuple[int, ...],
        me: int,
        time: Allowance,
    ) -> Resolved:
        settings, ranges, values = self.settings, dealable_ranges(self.game, reach, board), None
        menu = menu_of(settings, position.round, self.game)
        limit = self._limit(position, me, time.for_part(FOR_ENDS)) if position.round in self._limited else None
        if settings.method != UNSAFE:
            values = (
                self._values(before, me)
                if before
                else self._blueprint_values(position, board, me, ranges, limit and limit.leaf_values(menu))
            )
        time.check()
        return resolve(
            self.game,
            position,
            board,
            me,
            ranges,
            values,
            method=settings.method,
            menu=menu,
            iterations=settings.iterations or None,
            seconds=time.left,
            threads=settings.threads,
            neglect=settings.neglect,
            trust=settings.trust,
            continued=limit,
            start=partial(self._blueprint_shares, position, board),
        )

    def _blueprint_shares(
        self, root: Betting, board: tuple[int, ...], position: Betting, actions: tuple[str, ...]
    ) -> FloatArray:
        """Return the blueprint's probabilities of some actions in the first round of a subgame, [action, hand].

        A raise of the blueprint that is not among them counts as the one that is nearest in size, or as a call.
        """
        policy = self.raw.policy(self.game.replay(root.history + position.history), board)
        levels = {action: int(action[1:]) for action in actions if action.startswith(RAISE) and action != RAISE}
        shares = np.zeros((len(actions), len(self.game.holes)))
        for action in policy.actions:
            counted = action
            if action not in actions:
                wanted = int(action[1:])
                counted = min(levels, key=lambda one: abs(log(levels[one] / wanted)), default=CALL)
            shares[actions.index(counted)] += policy.probability(action)
        return shares

    def _limit(self, position: Betting, me: int, time: Allowance) -> BlueprintContinuations:
        """Return the function that computes the values at the end of a limited round that begins at a position."""
        return BlueprintContinuations(
            self.game,
            position.history,
            1 - me,
            self.raw,
            self.settings.continuations,
            self.settings.boards,
            threads=self.settings.threads,
            time=time,
            cache=self._rests,
        )

    def _values(self, at: SubgameState, me: int) -> FloatArray:
        """Return the chips that each hand of the opponent wins after the current state of a subgame."""
        values = np.zeros(len(self.game.holes))
        look = at.solved.game.block_values(at.solved.table, at.tree_position.path)[1 - me]
        values[at.tree.holdem.numbers] = np.nan_to_num(at.tree.hand_values(look, at.tree_position))
        return values

    def _blueprint_values(
        self, position: Betting, board: tuple[int, ...], me: int, ranges: FloatArray, limit: LeafValues | None
    ) -> FloatArray:
        """Return the chips that each hand of the opponent wins after a position if both follow the blueprint."""
        ranges = ranges.copy()
        ranges[1 - me] = relevant_hands(self.game, board, me, ranges, self.settings.neglect)
        rest = subgame(self.game, position, board, ranges)
        return blueprint_values(self.raw, position, rest, 1 - me, self.settings.threads, limit)


def _bytes(solved: Resolved) -> int:
    """Return the memory in bytes that a solved subgame takes."""
    return solved.table.nbytes + solved.game.tree.pair_values.nbytes
