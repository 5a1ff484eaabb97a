"""An agent that follows a blueprint at first, and then solves the subgame it is in with all hands.

At the start of each round that it re-solves, the agent makes a subgame of what is left: the board, the pot, and both
players' *ranges*. These follow hand by hand, by Bayes' rule, from what both have done: as the blueprint plays in the
rounds before, with its translation and post-processing, and as was found in subgames since. An opponent's bet that the
blueprint does not have tells as much about their hand as the bets nearest to it in size.

What the opponent's hands are worth against the blueprint makes re-solving safe (see `solve.resolve`). It is found by a
walk of the blueprint's own tree from there on, with all hands on all boards.

Nothing is translated in a subgame. A bet that its tree does not have, or never makes, begins a new subgame after the
bet: *nested* re-solving (Brown and Sandholm 2017). What hands of the opponent are worth before the bet is what they
may not win more than by it.

The flop has too many boards to come for that. A round that is *limited* is solved by itself, with the blueprint's
values where it ends (`continuations`); then the next subgame begins, or the blueprint goes on.

With a number of iterations, all of it is a function of the public state: the agent tells its strategy, and estimators
and local best response take it as they take a blueprint. By the clock it is not. Then an answer comes in time, whatever
happens: where nothing has been solved yet, that of the blueprint.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass, field
from math import comb
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from kilt import machine
from kilt.abstraction.actions import ActionAbstraction, actions_of
from kilt.arrays import FloatArray
from kilt.config import ResolveConfig
from kilt.errors import KiltError, PlayError
from kilt.games.game import CHANCE, REVEAL
from kilt.games.holdem import CALL, RAISE, Betting, Holdem
from kilt.games.subgame import deals, first_round_of, subgame
from kilt.play.agent import Observation, PublicPolicy, pick
from kilt.play.blueprint import BlueprintAgent, action_draw
from kilt.search.continuations import BlueprintContinuations
from kilt.solve.resolve import METHODS, UNSAFE, Resolved, heeded, resolve, with_depth_limit
from kilt.strategy.translate import Mapping, pseudo_harmonic, translations
from kilt.tree.betting import betting_size, betting_tree, on_menu
from kilt.tree.place import PlacedTree, TreePlace
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import FOLLOW, Table

SECONDS = 2.0  # of a decision, where neither these nor iterations are given
SPARE = 0.1  # share of the seconds that is left after solving: half of it for the answer, half for the blueprint's
HAND_SECONDS = 6.0  # of all decisions of a hand together: the ACPC allows 7 in the mean
KEPT_HANDS = 1024  # whose seconds are remembered
RARE = 1e-3  # of the opponent's range: an action of less than this was never looked at closely
KEPT_BYTES = 512 << 20  # of solved subgames
FOR_VALUES, FOR_ENDS = 0.3, 0.5  # share of the time that is left for values of the blueprint, and for those of ends
KEPT_POLICIES = 4096  # 40 kB each in hold'em


class Standing(NamedTuple):
    """Where a hand stands for the agent in one seat."""

    reach: FloatArray  # [player, hand of the deck] probability of all that each has done with a hand
    solved: Resolved  # the subgame that play is in
    place: TreePlace  # in its tree

    @property
    def tree(self) -> PlacedTree:
        """The tree of the subgame."""
        return PlacedTree(self.solved.game)


class Following(NamedTuple):
    """Where a hand stands after a limited round, if the next one is not re-solved: the blueprint goes on."""

    reach: FloatArray  # as in `Standing`


@dataclass(frozen=True)
class ResolvingAgent:
    """The agent that follows a blueprint, and re-solves some rounds.

    Parameters
    ----------
    name : str
        What it is called in tables and logs.
    blueprint : BlueprintAgent
        What it follows before.
    settings : ResolveConfig
        Rounds, method, bets and budget.

    Raises
    ------
    PlayError
        There are no such rounds, bets or method, or a subgame would not fit into memory.
    """

    name: str
    blueprint: BlueprintAgent
    settings: ResolveConfig
    _solved: OrderedDict[tuple[int, str, tuple[int, ...]], Resolved] = field(
        default_factory=OrderedDict, repr=False, compare=False
    )
    _policies: dict[tuple[str, tuple[int, ...]], PublicPolicy] = field(default_factory=dict, repr=False, compare=False)
    _worker: list[ThreadPoolExecutor] = field(default_factory=list, repr=False, compare=False)
    _spent: dict[int, float] = field(default_factory=dict, repr=False, compare=False)  # seconds by the hand's key

    def __post_init__(self) -> None:
        require_settings(self.settings, self.game)

    def __reduce__(self) -> tuple[Any, ...]:
        return ResolvingAgent, (self.name, self.blueprint, self.settings)  # what is solved stays in its process

    @property
    def game(self) -> Holdem:
        """The game that it plays."""
        return self.blueprint.game

    @property
    def first_round(self) -> int:
        """The first round that is re-solved."""
        return min(self._rounds)

    @property
    def _rounds(self) -> list[int]:
        return [self.game.rules.round_names.index(name) for name in self.settings.rounds]

    @property
    def _limited(self) -> list[int]:
        return [self.game.rules.round_names.index(name) for name in self.settings.limited]

    def prepare(self) -> None:
        """Compile what decisions by the clock need, which may take longer than one of them.

        The first subgame that may come is solved for an instant and forgotten.
        """
        if not self.settings.clock or self._worker:
            return
        self._worker.append(ThreadPoolExecutor(1))
        position = self.game.start()
        while position.round < self.first_round:
            position = position.after(REVEAL if position.actor == CHANCE else CALL)
        board, me = tuple(range(self.game.rules.board_size(position.round))), position.actor
        at = self.standing(position, board, me, monotonic())
        self._told(at)
        self._values(at, me)
        self.blueprint.policy(position, board)
        self._solved.clear()

    def act(self, observation: Observation) -> str:
        """A legal action: the blueprint's, or one drawn from what was solved."""
        position, board = observation.position, observation.board
        if position.round < self.first_round:
            return self.blueprint.act(observation)
        if self.settings.clock:
            policy = self._in_time(position, board, observation.key)
        else:
            policy = self._policy(position, board, None)
        hand = self.game.deck.hole_index(observation.hand)
        shares = policy.table[:, policy.column[hand]].tolist()
        return pick(policy.actions, shares, observation.draw(action_draw(position)))

    def policy(self, position: Betting, board: tuple[int, ...]) -> PublicPolicy:
        """Probabilities of the actions at a public state, with every hand; PlayError where it plays by the clock."""
        if self.settings.clock:
            raise PlayError(
                f"{self.name} solves for {self.settings.clock:g} seconds, and not twice the same: give iterations, as "
                "in RUN@resolve:iterations=100"
            )
        if position.round < self.first_round:
            return self.blueprint.policy(position, board)
        return self._policy(position, board, None)

    def _in_time(self, position: Betting, board: tuple[int, ...], key: int) -> PublicPolicy:
        """What was found until the time is up: the blueprint's answer where that is nothing.

        A decision takes no more than half of what is left to the hand, so that something is left to each.
        """
        began, spent = monotonic(), self._spent.get(key, 0.0)
        clock = self.settings.clock
        seconds = min(clock, (HAND_SECONDS - spent) / 2) if clock <= HAND_SECONDS else clock
        if not self._worker:
            self._worker.append(ThreadPoolExecutor(1))
        asked = self._worker[0].submit(self._policy, position, board, began + (1 - SPARE) * seconds)
        try:
            return asked.result(max(began + (1 - SPARE / 2) * seconds - monotonic(), 0.0))
        except (LateError, KiltError, MemoryError):
            asked.cancel()
            # What was answered here is what later ranges come from.
            return self._keep(position, board, self.blueprint.policy(position, board))
        finally:
            if len(self._spent) >= KEPT_HANDS:
                self._spent.clear()
            self._spent[key] = spent + monotonic() - began

    def _policy(self, position: Betting, board: tuple[int, ...], until: float | None) -> PublicPolicy:
        """The strategy at a decision in rounds that are re-solved; `until` is when to stop."""
        if (known := self._policies.get((position.history, board))) is not None:
            return known
        at = self._stands(position, board, position.actor, until)
        policy = self._told(at) if isinstance(at, Standing) else self.blueprint.policy(position, board)
        return self._keep(position, board, policy)

    def _keep(self, position: Betting, board: tuple[int, ...], policy: PublicPolicy) -> PublicPolicy:
        if len(self._policies) >= KEPT_POLICIES:
            self._policies.clear()
        return self._policies.setdefault((position.history, board), policy)

    # Ranges ----------------------------------------------------------------------------------------------------------

    def standing(self, position: Betting, board: tuple[int, ...], me: int, until: float | None = None) -> Standing:
        """Where a hand stands for the agent in seat `me`: both ranges, and the subgame that it is in.

        Parameters
        ----------
        position : Betting
            The betting so far, in a round that is re-solved or a later one.
        board : tuple of int
            The public cards so far.
        me : int
            The agent's seat.
        until : float, optional
            When to stop, by `time.monotonic`; subgames that have to be solved on the way share the time.

        Returns
        -------
        Standing
            PlayError is raised where the agent follows its blueprint.
        """
        at = self._stands(position, board, me, until)
        if not isinstance(at, Standing):
            raise PlayError(f"{self.name} follows its blueprint at {position.history!r}: no subgame has begun")
        return at

    def _stands(
        self, position: Betting, board: tuple[int, ...], me: int, until: float | None
    ) -> Standing | Following | None:
        """`standing`, or the ranges where the blueprint goes on; None before the first round that is re-solved."""
        at: Standing | Following | None = None
        moves = list(self._moves(position))
        for number, (before, action, after) in enumerate(moves):
            seen = board[: self.game.rules.board_size(after.round)]
            rest = _part(until, moves[number + 1 :])
            if at is not None:
                at = (
                    self._deal(at, after, seen, me, rest)
                    if action == REVEAL
                    else self._act(at, before, action, after, seen, me, until)
                )
            elif after.round == self.first_round:
                at = self._begin(self.blueprint_ranges(after, seen), None, after, seen, me, rest)
        return at

    def blueprint_ranges(self, position: Betting, board: tuple[int, ...]) -> FloatArray:
        """Probabilities of all that each player has done so far with each hand, if both follow the blueprint.

        Parameters
        ----------
        position : Betting
            Not after the start of the first round that is re-solved.
        board : tuple of int
            The public cards so far.

        Returns
        -------
        ndarray, shape (2, hands of the deck)
            0 for hands with a card of the board. What a player never does with any hand tells nothing.
        """
        reach = np.stack([self._free(board)] * 2)
        for before, action, _ in self._moves(position):
            if before.actor >= 0:
                policy = self.blueprint.policy(before, board[: self.game.rules.board_size(before.round)])
                _follow(reach, before, translated(policy, before, action, self.blueprint.mapping))
        return reach

    def _moves(self, position: Betting) -> Iterator[tuple[Betting, str, Betting]]:
        """Each action of a hand, with the positions before and after it."""
        positions = self.game.positions
        for before, action in positions.moves(position):
            yield before, action, positions.after(before, action)

    def _deal(
        self, at: Standing | Following, after: Betting, board: tuple[int, ...], me: int, until: float | None
    ) -> Standing | Following:
        """Public cards were dealt: a subgame goes on or ends, and another begins where the round is re-solved."""
        reach, now = at.reach * self._free(board), None
        if isinstance(at, Standing) and after.round - 1 not in self._limited:
            now = Standing(
                reach, at.solved, at.tree.deal(at.place, board[self.game.rules.board_size(after.round - 1) :])
            )
        if after.round in self._rounds and after.actor >= 0:
            return self._begin(reach, now, after, board, me, until)
        return now or Following(reach)

    def _act(
        self,
        at: Standing | Following,
        before: Betting,
        action: str,
        after: Betting,
        board: tuple[int, ...],
        me: int,
        until: float | None,
    ) -> Standing | Following:
        """A player has acted: their range follows. Another subgame begins if the tree lacks the action."""
        player, reach = before.actor, at.reach.copy()
        answered = self._policies.get((before.history, board)) if player == me else None
        policy = answered or (self._told(at) if isinstance(at, Standing) else self.blueprint.policy(before, board))
        share = _follow(reach, before, translated(policy, before, action, self.blueprint.mapping))
        if isinstance(at, Following):
            return Following(reach)
        rare = player != me and share < RARE
        if after.actor >= 0 and (rare or action not in at.tree.actions(at.place)):
            return self._begin(reach, at, after, board, me, until)
        return Standing(reach, at.solved, at.tree.act(at.place, action))

    def _told(self, at: Standing) -> PublicPolicy:
        """What the player to act does with every hand in a subgame."""
        actions = at.tree.actions(at.place)
        table = np.zeros((len(actions), len(self.game.holes)))
        table[actions.index(CALL)] = 1.0  # hands that nobody holds
        table[:, at.tree.holdem.numbers] = at.tree.strategy(at.solved.table, at.place)
        return PublicPolicy(actions, table, np.arange(table.shape[1]))

    # Subgames --------------------------------------------------------------------------------------------------------

    def _begin(
        self,
        reach: FloatArray,
        before: Standing | None,
        position: Betting,
        board: tuple[int, ...],
        me: int,
        until: float | None,
    ) -> Standing:
        """The subgame that begins at a position, solved.

        `before` is where the hand stands in an earlier one: there, or at the decision before a bet that it lacks.
        """
        key = me, position.history, board
        found = self._solved.get(key)
        if found is None:
            found = self._solved[key] = self._solve(reach, before, position, board, me, until)
            while len(self._solved) > 2 and sum(map(_bytes, self._solved.values())) > KEPT_BYTES:
                self._solved.popitem(last=False)
        self._solved.move_to_end(key)
        tree = PlacedTree(found.game)
        held = np.zeros(reach.shape[1])  # what is neglected stays so: later subgames know no value of it
        held[tree.holdem.numbers] = 1.0
        return Standing(reach * held, found, tree.start)

    def _solve(
        self,
        reach: FloatArray,
        before: Standing | None,
        position: Betting,
        board: tuple[int, ...],
        me: int,
        until: float | None,
    ) -> Resolved:
        settings, ranges, values = self.settings, self._possible(reach, board), None
        limited = position.round in self._limited
        if settings.method != UNSAFE:
            values = (
                self._values(before, me)
                if before
                else self._blueprint_values(position, board, me, ranges, _at(until, FOR_VALUES))
            )
        return resolve(
            self.game,
            position,
            board,
            me,
            ranges,
            values,
            method=settings.method,
            menu=menu_of(settings, position.round, self.game),
            iterations=settings.iterations or None,
            seconds=None if until is None else max(until - monotonic(), 0.0),
            threads=settings.threads,
            neglect=settings.neglect,
            trust=settings.trust,
            continued=self._continued(position, me, settings.continuations, _at(until, FOR_ENDS)) if limited else None,
        )

    def _continued(self, position: Betting, me: int, ways: int, until: float | None) -> BlueprintContinuations:
        """What tells the values at the end of a limited round that begins at a position."""
        boards = self.settings.boards
        return BlueprintContinuations(self.game, position.history, 1 - me, self.blueprint, ways, boards, until)

    def _possible(self, reach: FloatArray, board: tuple[int, ...]) -> FloatArray:
        """Ranges that leave a deal: all hands, for a player who has done what they never do."""
        free = self._free(board)
        ranges = np.stack([own * free if (own * free).any() else free for own in reach])
        if deals(ranges, self.game.holes, self.game.deck.size) <= 0:
            ranges = np.stack([free, free])
        scaled: FloatArray = ranges / ranges.max(axis=1, keepdims=True)
        return scaled

    def _free(self, board: tuple[int, ...]) -> FloatArray:
        """[hand of the deck] 1 for hands that share no card with the board, 0 for others."""
        return np.asarray(~np.isin(self.game.holes, board).any(axis=1), dtype=np.float64)

    def _values(self, at: Standing, me: int) -> FloatArray:
        """[hand of the deck] chips that hands of the opponent win where play stands in a subgame."""
        values = np.zeros(len(self.game.holes))
        look = at.solved.game.look(at.solved.table, at.place.path)[1 - me]
        values[at.tree.holdem.numbers] = np.nan_to_num(at.tree.hand_values(look, at.place))
        return values

    def _blueprint_values(
        self, position: Betting, board: tuple[int, ...], me: int, ranges: FloatArray, until: float | None
    ) -> FloatArray:
        """[hand of the deck] chips that hands of the opponent win if both follow the blueprint from a position on."""
        ranges = ranges.copy()
        ranges[1 - me] = heeded(self.game, board, me, ranges, self.settings.neglect)
        rest = subgame(self.game, position, board, ranges)

        def menu(at: Betting) -> set[int]:
            return self._raises(position, at)

        if position.round in self._limited:
            rest = with_depth_limit(rest, menu, self._continued(position, me, 1, until))
        game = VectorGame(rest, menu, self.settings.threads)
        values = np.zeros(len(self.game.holes))
        values[rest.numbers] = game.hand_values(1 - me, FOLLOW, self._blueprint_table(game, position))
        return values

    def _raises(self, root: Betting, at: Betting) -> set[int]:
        """The levels to which the blueprint may raise at a position of a subgame."""
        actions = self.blueprint.actions(self.game.replay(root.history + at.history))
        return {int(action[1:]) for action in actions if action.startswith(RAISE)}

    def _blueprint_table(self, game: VectorGame, root: Betting) -> Table:
        """The blueprint as a table over (board, row) × hand of a subgame."""
        tree, table = game.tree, game.table()
        assert isinstance(game.game, Holdem)
        numbers = game.game.numbers
        decisions: list[list[tuple[int, tuple[str, ...], Betting]]] = [[] for _ in tree.rows]
        for r, row, at in game.decisions():
            assert isinstance(at, Betting)
            decisions[r].append((row, on_menu(at, game.menu), self.game.replay(root.history + at.history)))
        for r, rows in enumerate(tree.rows.tolist()):
            first, last = tree.board_start[r : r + 2]
            boards = [tuple(cards) for cards in tree.board[first:last, : tree.board_size[r]].tolist()]
            part = table[tree.table_start[r] : tree.table_start[r + 1]].reshape(len(boards), rows, -1)
            for row, labels, position in decisions[r]:
                actions, shares = self.blueprint.shares_on(position, boards)
                for place, label in enumerate(labels, start=row):
                    if label in actions:
                        part[:, place] = shares[actions.index(label)][:, numbers]
        return table


def _follow(reach: FloatArray, before: Betting, share: FloatArray) -> float:
    """Take an action of probabilities `share` [hand] into the actor's range; how often the range comes to it.

    What no hand of the range does leaves it as it is.
    """
    came, whole = reach[before.actor] * share, float(reach[before.actor].sum())
    if came.any():
        reach[before.actor] = came
    return float(came.sum()) / whole if whole else 0.0


def menu_of(settings: ResolveConfig, first_round: int, game: Holdem) -> ActionAbstraction | None:
    """The raises of a subgame that begins in a round; None in limit games, which have their own."""
    if game.rules.betting == "limit":
        return None
    return actions_of("/" * first_round + settings.bets, settings.near)


def require_settings(settings: ResolveConfig, game: Holdem) -> None:
    """Raise PlayError where a game cannot be re-solved so: rounds, method, bets, memory."""
    rules = game.rules
    later = rules.round_names[1:]
    if not later:
        raise PlayError(f"{game.name} has one round: there is no later one to re-solve; leave `resolve` out")
    for name in settings.rounds:
        if name not in later:
            raise PlayError(f"unknown round {name!r} to re-solve: {game.name} has {', '.join(later)}")
    for name in settings.limited:
        if name not in settings.rounds or name == rules.round_names[-1]:
            able = [one for one in settings.rounds if one != rules.round_names[-1]]
            raise PlayError(
                f"the round {name!r} cannot be limited: it has to be re-solved, with another round after it; here "
                f"{', '.join(able) or 'none'} can"
            )
    if not settings.rounds:
        raise PlayError(f"no round is given to re-solve: use one of {', '.join(later)}, or several")
    if settings.method not in METHODS:
        raise PlayError(f"unknown way to re-solve {settings.method!r}: use one of {', '.join(METHODS)}")
    for name in ("trust", "neglect"):
        if not 0 <= (share := getattr(settings, name)) <= 1:
            raise PlayError(f"`{name}` in the opponent's range is {share:g}: give 0 to 1")
    for r in sorted(map(rules.round_names.index, settings.rounds)):
        needed, there = memory_of(settings, game, r), machine.available_memory()
        if needed > there:
            raise PlayError(
                f"re-solving from the {rules.round_names[r]} on takes up to {needed / 1e9:,.1f} GB of memory, and "
                f"{there / 1e9:,.1f} GB are available: use fewer bets, later rounds, or a limited round"
            )


def memory_of(settings: ResolveConfig, game: Holdem, first_round: int) -> int:
    """Bytes that the largest subgame takes which begins in a round: regrets and averages, single precision.

    Of a limited round, the values of all pairs of hands.
    """
    rules, hands = game.rules, len(game.holes)
    board = tuple(range(rules.board_size(first_round)))
    opening = Betting.opening(rules, first_round, rules.big_blind)
    rest, menu = subgame(game, opening, board, np.ones((2, hands))), menu_of(settings, first_round, game)
    if rules.round_names[first_round] in settings.limited:
        ends = [leaf for leaf in betting_tree(first_round_of(rest), menu).leaves if leaf.folded is None]
        going = sum(leaf.stake < min(rules.stacks) for leaf in ends)
        return (1 + settings.continuations * going) * hands**2 * np.dtype(np.float32).itemsize
    size = betting_size(rest, menu)
    left, boards, cells = game.deck.size - len(board), 1, 0
    for r in range(first_round, rules.rounds):
        if r > first_round:
            boards *= comb(left, rules.board_cards[r])
            left -= rules.board_cards[r]
        cells += boards * hands * sum(actions[r] for actions in size.actions)
    return 2 * cells * np.dtype(np.float32).itemsize


def _bytes(solved: Resolved) -> int:
    """Memory that a solved subgame keeps."""
    return solved.table.nbytes + solved.game.tree.pair_values.nbytes


def _at(until: float | None, share: float) -> float | None:
    """When a share of the time that is left will be gone."""
    if until is None:
        return None
    now = monotonic()
    return now + share * (until - now)


def _part(until: float | None, rest: Sequence[tuple[Betting, str, Betting]]) -> float | None:
    """When to stop solving, where what has happened since may have to be solved too: half of the time is kept."""
    if until is None or not any(action.startswith(RAISE) for _, action, _ in rest):
        return until
    now = monotonic()
    return now + (until - now) / 2


def translated(policy: PublicPolicy, position: Betting, action: str, mapping: Mapping = pseudo_harmonic) -> FloatArray:
    """[hand] probability of an action; a raise that is never made counts as those nearest to it in size.

    A check or call stands for a raise of no chips.
    """
    if policy.ever(action) or not action.startswith(RAISE) or action == RAISE:
        return policy.share(action)
    level = max(position.spent)
    levels = {CALL: level} | {one: int(one[1:]) for one in policy.actions if one.startswith(RAISE) and policy.ever(one)}
    near = sorted(levels, key=levels.__getitem__)
    sizes = [(levels[one] - level) / (2 * level) for one in near]
    found = translations(sizes, (int(action[1:]) - level) / (2 * level), mapping)
    return np.asarray(sum(share * policy.share(near[place]) for place, share in found))
