"""Compute one abstract strategy's expected winnings against another on sampled deals.

Both strategies use the same betting tree; each sees the cards through its own abstraction. Cards are sampled, actions
are not: the walk over the betting tree takes the expectation over the actions of both players. So the only variance
left is that of the cards, and swapping the seats cancels much of it. A match of sampled hands needs many more hands for
an interval of the same width.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import nan
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.abstraction.abstract_game import AbstractGame, SlotLayout, SyntheticGame
from kilt.arrays import Array, FloatArray, IntArray
from kilt.errors import GameError, PlayError
from kilt.evaluate.head_to_head_kernels import Seat, expected_chips
from kilt.evaluate.stats import Estimate, estimate_mean
from kilt.games.holdem import CALL, FOLD, RAISE, Holdem
from kilt.machine import Stopwatch
from kilt.play.agent import Agent, Fixed
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Dealer
from kilt.play.match import EXPECTED, Match, count_results, require_processes, results_in_order
from kilt.solve.distributed.shared import StrategyPart
from kilt.solve.external import DEALS, WalkWorkspace, rules_of
from kilt.solve.external_kernels import deal_cards
from kilt.solve.solver import StrategyInParts
from kilt.strategy.fixed import action_chances, raises
from kilt.strategy.postprocess import Rule
from kilt.strategy.postprocess_kernels import CLASSES, RuleNumbers, post_process_table
from kilt.tree.betting import BettingNodes, BettingTree, acted_before, after_chance, call_index, call_indices

SEED = 2**63  # different from the seeds of solvers
OPPONENTS = ("always-call", "always-raise", "always-fold")  # rows of `strategy.fixed`
MOST_SLOTS = 250_000_000  # maximum size of a blueprint whose post-processed probabilities are stored: a gigabyte
PART = 256  # deals of a match that a thread takes at a time
AGAINST_FIXED = 6 * DEALS  # number of deals in matches against `OPPONENTS`


class AbstractStrategy(NamedTuple):
    """A strategy for an abstract game: a weight for each action at each information set."""

    abstract: SlotLayout
    shares: Array  # [slot] weights; the actions of an information set are normalised. If all are 0, the player calls


def fixed_strategy(game: SlotLayout, agent: str) -> AbstractStrategy:
    """Return the strategy of a card-blind agent, such as always-call, as a table for a betting tree.

    The agent is one of `strategy.fixed`. Its strategy has one bucket in every round.
    """
    one = (1,) * game.game.rules.rounds
    abstract = SyntheticGame(game.game, (one, one), game.actions)
    vars(abstract)["betting"] = game.betting  # both have the same tree: do not build it again
    nodes, level = abstract.betting.nodes, abstract.betting.level
    shares = np.zeros(abstract.slots, dtype=np.uint8)
    decisions = np.flatnonzero(nodes.actor >= 0)
    passive = 1 + call_index(nodes, level, decisions).astype(np.int64)
    for folds, count in np.unique(np.stack([passive, nodes.children[decisions]]), axis=1).T.tolist():
        actions = (*(FOLD, CALL)[2 - folds :], *[RAISE] * (count - folds))  # the size of the raises does not matter
        alike = decisions[(passive == folds) & (nodes.children[decisions] == count)]
        shares[abstract.first[alike][:, None] + np.arange(count)] = np.round(action_chances(agent, actions) * 255)
    return AbstractStrategy(abstract, shares)


def blueprint_strategy(agent: BlueprintAgent) -> AbstractStrategy | None:
    """Return the strategy that a blueprint's agent plays, after post-processing.

    Returns None if the post-processing rule has user-defined classes.
    """
    blueprint, rule = agent.blueprint, agent.rule.numbers
    if rule is None:
        return None
    abstract = AbstractGame(blueprint.game, blueprint.cards, blueprint.actions)
    decisions = np.flatnonzero(blueprint.nodes.actor >= 0)
    call = blueprint.faces_bet(decisions).astype(np.int64)
    shares = _post_processed(agent.rule, rule, blueprint.nodes, blueprint.first, call, np.asarray(blueprint.shares))
    return AbstractStrategy(abstract, shares)


def post_processed(strategy: AbstractStrategy, rule: Rule) -> AbstractStrategy:
    """Return a copy of a strategy after post-processing.

    Raises PlayError if the rule has user-defined classes of actions.
    """
    betting, numbers = strategy.abstract.betting, rule.numbers
    if numbers is None:
        raise PlayError("the rule has user-defined classes: use `itself` or `kind` of kilt.strategy.postprocess")
    call = call_index(betting.nodes, betting.level, np.flatnonzero(betting.nodes.actor >= 0)).astype(np.int64)
    shares = np.asarray(strategy.shares, dtype=np.float32)
    first = strategy.abstract.first
    return strategy._replace(shares=_post_processed(rule, numbers, betting.nodes, first, call, shares))


def _post_processed(
    rule: Rule, numbers: RuleNumbers, nodes: BettingNodes, starts: IntArray, call: IntArray, weights: Array
) -> npt.NDArray[np.float32]:
    """Return the probabilities of all actions after a post-processing rule, given their weights.

    `starts` has each decision's first slot, `call` the index of its call. The result has an entry for each slot.
    """
    decisions = np.flatnonzero(nodes.actor >= 0)
    count, ruled = nodes.children[decisions].astype(np.int64), np.full(len(decisions), not rule.idle)
    if rule.after_first:
        ruled &= acted_before(nodes)[decisions]
    shares = np.empty(len(weights), dtype=np.float32)
    first, scratch = np.append(starts[decisions], len(shares)), np.empty(int(count.max()) + CLASSES)
    post_process_table(numbers, first, count, call, ruled, weights, scratch, shares)
    return shares


def strategies_in_one_tree(agents: tuple[Agent, Agent]) -> tuple[AbstractStrategy, AbstractStrategy] | None:
    """Return two agents' strategies as tables for one betting tree, or None if their trees differ.

    With the same tree, no bet is ever translated. This applies to two blueprints with the same bets, and to a blueprint
    and an agent of `strategy.fixed`, in limit games or if that agent never raises. The result is also None if a
    blueprint has more than `MOST_SLOTS` infoset-actions.
    """
    blueprints = [agent for agent in agents if type(agent) is BlueprintAgent]
    if not blueprints or max(len(agent.blueprint.shares) for agent in blueprints) > MOST_SLOTS:
        return None
    base = blueprint_strategy(blueprints[0])
    if base is None or not _same_bets(blueprints[0], base.abstract.betting):
        return None
    found = []
    for agent in agents:
        if agent is blueprints[0]:
            strategy: AbstractStrategy | None = base
        elif type(agent) is BlueprintAgent:
            strategy = blueprint_strategy(agent) if _same_bets(agent, base.abstract.betting) else None
            if strategy is not None:
                vars(strategy.abstract)["betting"] = base.abstract.betting
        elif type(agent) is Fixed and (blueprints[0].blueprint.limit or not raises(agent.habits)):
            habits = fixed_strategy(base.abstract, agent.habits)
            # so that kernels are compiled for one type
            strategy = habits._replace(shares=habits.shares.astype(np.float32))
        else:
            strategy = None
        found.append(strategy)
    first, second = found
    return (first, second) if first and second else None


class HeadToHead:
    """Evaluates two strategies with the same betting tree against each other on given deals.

    It is not thread-safe.

    Attributes
    ----------
    cards : ndarray of int, shape (DEALS, cards)
        Callers write the deals here: private cards of seat 0, of seat 1, then the board of all rounds.
    """

    def __init__(self, one: AbstractStrategy, other: AbstractStrategy) -> None:
        if not one.abstract.betting.same_bets(other.abstract.betting):
            raise GameError("the two strategies have different bets: play a match, which translates bets")
        self.one, self.other = one, other
        self._rules, self._theirs = rules_of(one.abstract, 1), rules_of(other.abstract, 1)
        self._call = _calls(one.abstract)
        self._mine, self._yours = WalkWorkspace(one.abstract), WalkWorkspace(other.abstract)
        self.cards = self._yours.cards = self._mine.cards

    def expected_chips(self, won: FloatArray) -> None:
        """Compute strategy `one`'s expected winnings on each deal, in each seat, in chips.

        The results are written to `won` [deal, seat], for the first deals of `cards`. The expectation is over the
        actions of both players.
        """
        bucket, _ = self._mine.look_up_deals(len(won), self.one.abstract)
        seats = (
            Seat(self._rules.nodes, bucket, self.one.shares),
            Seat(self._theirs.nodes, self._yours.look_up_deals(len(won), self.other.abstract)[0], self.other.shares),
        )
        expected_chips(self._rules, *seats, self._mine.shown[: len(won)], self._call, self._mine.queue, won)


def expected_winnings(
    one: AbstractStrategy, other: AbstractStrategy, deals: int, seed: int = SEED, threads: int = 1
) -> FloatArray:
    """Return strategy `one`'s expected winnings against strategy `other` on sampled deals, in chips.

    Parameters
    ----------
    one, other : AbstractStrategy
        Their betting trees must be the same; their card abstractions may differ.
    deals : int
        Number of deals: private cards of both seats and the whole board.
    seed : int
        Deal number i is a function of the seed and i.
    threads : int
        Number of threads that share the deals. The result does not depend on it.

    Returns
    -------
    ndarray, shape (deals, 2)
        Chips that `one` wins in seat 0 and in seat 1: the expectation over the actions of both players.

    Raises
    ------
    GameError
        The strategies have different betting trees.
    """
    won, deck = np.empty((deals, 2)), one.abstract.game.deck.size
    pairs = [HeadToHead(one, other) for _ in range(threads)]

    def work(thread: int) -> None:
        for start in range(thread * DEALS, deals, threads * DEALS):
            part = won[start : start + DEALS]
            deal_cards(np.uint64(seed), start, deck, pairs[thread].cards[: len(part)])
            pairs[thread].expected_chips(part)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    return won


def expected_match(
    game: Holdem,
    agents: tuple[Agent, Agent],
    strategies: tuple[AbstractStrategy, AbstractStrategy],
    hands: int,
    seed: int = 0,
    *,
    duplicate: bool = True,
    threads: int = 1,
    tick: Callable[[int], None] = lambda hands: None,
    stop: Callable[[], bool] = lambda: False,
) -> Match:
    """Play a match on sampled deals, where each deal counts with its expected value over all actions.

    Parameters
    ----------
    game, hands, seed, duplicate, tick, stop
        As in `kilt.play.match.play_match`.
    agents : pair of Agent
        The players.
    strategies : pair of AbstractStrategy
        Their strategies: see `strategies_in_one_tree`.
    threads : int
        Number of threads that share the deals. The result does not depend on it.

    Returns
    -------
    Match
        Its results are those of `play_match` on the same deals, averaged over all actions by their probabilities.
    """
    units, per_unit = count_results(hands, duplicate=duplicate), 2 if duplicate else 1
    require_processes(threads)
    dealer, idle, watch = Dealer(game, seed), SimpleQueue[HeadToHead](), Stopwatch()
    for _ in range(threads):
        idle.put(HeadToHead(*strategies))
    bounds = [(first, min(first + PART, units)) for first in range(0, units, PART)]

    def work(first: int, last: int) -> FloatArray:
        pair = idle.get()
        won = np.empty((last - first, 2))
        pair.cards[: len(won)] = dealer.deal_many(first, last)[0]
        pair.expected_chips(won)
        idle.put(pair)
        seats = np.arange(first, last) % 2  # the first player's seat if each deal is played once
        return won.mean(axis=1) if duplicate else won[np.arange(len(won)), seats]

    results: list[float] = []
    with ThreadPoolExecutor(threads) as pool:
        for part in results_in_order(lambda part: pool.submit(work, *part).result, bounds, threads):
            results += part.tolist()
            tick(per_unit * len(results))
            if stop():
                pool.shutdown(wait=True, cancel_futures=True)
                break
    names = agents[0].name, agents[1].name
    return Match(names, np.array(results), duplicate, game.rules.big_blind, EXPECTED, None, *watch.spent)


class FixedOpponents:
    """Measures win rates of strategies of an abstract game against simple opponents, always on the same deals.

    The opponents are `OPPONENTS`. A call with a strategy ([slot] weights) returns win rates in mbb/h by opponent, means
    over both seats.
    """

    def __init__(self, abstract: SlotLayout, threads: int = 1) -> None:
        self.abstract, self.threads = abstract, threads
        self._fixed: dict[str, AbstractStrategy] = {}

    def __call__(self, strategy: Array) -> dict[str, float]:
        """Return the win rate of a strategy against each of `OPPONENTS`, in mbb/h."""
        return {agent: self.win_rate(strategy, agent).mean for agent in OPPONENTS}

    def win_rates_from_parts(self, solver: StrategyInParts) -> dict[str, float]:
        """Return the average strategy's win rates against simple opponents in a distributed run, in mbb/h.

        The opponents are `OPPONENTS`. The strategy is split into parts, and the workers that store the parts measure
        them.
        """
        won = np.full((len(OPPONENTS), AGAINST_FIXED, 2), nan)
        for deals, mine in solver.map_parts(partial(winnings_in_part, AGAINST_FIXED)):
            won[:, deals] = mine
        return {agent: self._in_mbb(each).mean for agent, each in zip(OPPONENTS, won, strict=True)}

    def win_rate(self, strategy: Array, agent: str, deals: int = AGAINST_FIXED) -> Estimate:
        """Return a strategy's win rate against one simple opponent in mbb/h, with its 95% interval.

        It is the mean over both seats.
        """
        if agent not in self._fixed:
            self._fixed[agent] = fixed_strategy(self.abstract, agent)
        player = AbstractStrategy(self.abstract, strategy)
        won = expected_winnings(player, self._fixed[agent], deals, threads=self.threads)
        return self._in_mbb(won)

    def _in_mbb(self, won: FloatArray) -> Estimate:
        """Return the mean of winnings in chips, [deal, seat], over both seats and all deals, in mbb/h."""
        return estimate_mean(won.mean(axis=1) * 1000 / self.abstract.game.rules.big_blind)


def winnings_in_part(deals: int, part: StrategyPart) -> tuple[IntArray, FloatArray]:
    """Return the winnings of one part of a distributed strategy against simple opponents, on its own deals.

    The boards of these deals belong to the part. Returns the numbers of the deals, and expected chips [opponent, deal,
    seat] against each of `OPPONENTS`, equal to those of `expected_winnings` for the whole strategy.
    """
    rules = part.slots.game.rules
    cards = np.empty((deals, 2 * rules.hole_cards + rules.board_size(rules.rounds - 1)), dtype=np.int64)
    deal_cards(np.uint64(SEED), 0, rules.deck.size, cards)
    mine = np.flatnonzero(part.owns(cards[:, 2 * rules.hole_cards :]))
    won = np.empty((len(OPPONENTS), len(mine), 2))
    for agent, each in zip(OPPONENTS, won, strict=True):
        pair = HeadToHead(AbstractStrategy(part.slots, part.shares), fixed_strategy(part.slots, agent))
        for start in range(0, len(mine), DEALS):
            some = each[start : start + DEALS]
            pair.cards[: len(some)] = cards[mine[start : start + DEALS]]
            pair.expected_chips(some)
        del pair  # frees memory: two may not fit
    return mine, won


def _calls(abstract: SlotLayout) -> npt.NDArray[np.uint8]:
    """Return the index of the call among each node's actions.

    For a chance node, it is that of the node after it, which walks use in its place.
    """
    nodes = abstract.betting.nodes
    return call_indices(nodes, abstract.betting.level).astype(np.uint8)[after_chance(nodes)]


def _same_bets(agent: BlueprintAgent, betting: BettingTree) -> bool:
    """Return whether a blueprint's betting tree has the same nodes and actions as another tree."""
    nodes, level = agent.blueprint.nodes, agent.blueprint.level
    return np.array_equal(nodes.parent, betting.nodes.parent) and np.array_equal(level, betting.level)
