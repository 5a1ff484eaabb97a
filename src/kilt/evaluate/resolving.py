"""Measure how much an agent gains by re-solving instead of following its blueprint.

An agent that re-solves and its blueprint play the same strategy up to the first re-solved round, so neither gains
anything there on average. Hands of the blueprint against itself are followed up to that round. After that, only
public cards are sampled: the result is the expectation over both players' hands, by their ranges, and over all actions,
with the agent in each seat. The value of the cards and the line themselves cancels between the seats.

The agent must have a deterministic strategy: it re-solves for a number of iterations, not for a time.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np

from kilt.arrays import FloatArray
from kilt.cards.equity import hand_strength
from kilt.games.game import CHANCE, REVEAL, TERMINAL
from kilt.games.holdem import Betting
from kilt.games.subgame import compatible_weights, pair_weight
from kilt.machine import DecisionTime, Stopwatch
from kilt.play.agent import Agent, PolicyAgent
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Hand
from kilt.play.match import EXPECTED, Match, count_results, play_match
from kilt.search.agent import ResolvingAgent
from kilt.search.ranges import blueprint_ranges

PART = 64  # hands between two progress reports


def resolving_player(agents: tuple[Agent, Agent]) -> int | None:
    """Return which player re-solves while the other follows the same blueprint, or None.

    The player must re-solve for a number of iterations, not for a time.
    """
    for place, agent in enumerate(agents):
        other = agents[1 - place]
        if isinstance(agent, ResolvingAgent) and not agent.settings.clock and type(other) is BlueprintAgent:
            own = agent.blueprint
            alike = own.blueprint.fingerprint == other.blueprint.fingerprint and np.array_equal(
                own.blueprint.shares, other.blueprint.shares
            )
            if alike and (own.rule, own.mapping) == (other.rule, other.mapping):
                return place
    return None


def resolving_match(
    agent: ResolvingAgent,
    hands: int,
    seed: int = 0,
    *,
    second: bool = False,
    tick: Callable[[int], None] = lambda hands: None,
    stop: Callable[[], bool] = lambda: False,
) -> Match:
    """Play a match between a re-solving agent and its blueprint. Results are expected winnings.

    Parameters
    ----------
    agent : ResolvingAgent
        An agent with a number of iterations.
    hands : int
        Number of hands, even: one of each pair of hands is followed.
    seed : int
        Seed of all cards, and of the actions in earlier rounds.
    second : bool
        Whether the agent is the second player of the match.
    tick, stop
        As in `kilt.play.match.play_match`.

    Returns
    -------
    Match
        Its observations are pairs of hands, with the agent in each seat.
    """
    game, blueprint, watch = agent.game, agent.blueprint, Stopwatch()
    before = agent.thinking
    played: list[Hand] = []
    pairs = count_results(hands, duplicate=True)
    play_match(game, (blueprint, blueprint), pairs, seed, duplicate=False, sink=played.append)
    results: list[float] = []
    for number, hand in enumerate(played):
        results.append(resolver_value(agent, hand, (seed % 2**64, number)))
        if number % PART == 0 or number + 1 == len(played):
            tick(2 * len(results))
        if stop():
            break
    names = (blueprint.name, agent.name) if second else (agent.name, blueprint.name)
    found = np.array(results) * (-1 if second else 1)
    spent = agent.thinking.since(before)
    thinking = (DecisionTime(), spent) if second else (spent, DecisionTime())
    return Match(names, found, True, game.rules.big_blind, EXPECTED, None, *watch.spent, thinking)


def resolver_value(agent: ResolvingAgent, hand: Hand, key: tuple[int, int] = (0, 0)) -> float:
    """Return the re-solving agent's winnings against its blueprint after given actions, in chips per hand.

    The actions are those of `hand` up to the first re-solved round; the result is the mean over both seats. It is 0 if
    the hand ended before that round, or if no player could bet any more.
    """
    start = next(
        (
            after
            for before, action in agent.game.positions.moves_to(hand.position)
            if action == REVEAL
            and (after := agent.game.positions.after(before, action)).round == agent.first_round
            and after.actor >= 0
        ),
        None,
    )
    if start is None:
        return 0.0
    board = hand.cards.board[: agent.game.rules.board_size(start.round)]
    ranges = blueprint_ranges(agent.blueprint, start, board)
    whole = pair_weight(ranges, agent.game.holes, agent.game.deck.size)
    won = 0.0
    for seat in (0, 1):
        players: tuple[PolicyAgent, PolicyAgent] = (agent, agent.blueprint) if seat == 0 else (agent.blueprint, agent)
        won += _value(players, start, board, ranges, key) * (1 - 2 * seat)
    return won / 2 / whole


def _value(
    players: tuple[PolicyAgent, PolicyAgent],
    position: Betting,
    board: tuple[int, ...],
    reach: FloatArray,
    key: tuple[int, int],
) -> float:
    """Return player 0's expected chips after a public state, summed over all pairs of hands weighted by `reach`.

    `reach` is [player, hand]. Actions are averaged over; the key and the line determine the cards of the next round.
    """
    rules = position.rules
    holes, deck = rules.deck.holes(rules.hole_cards), rules.deck
    if not reach.any(axis=1).all():
        return 0.0
    if position.folded is not None:
        return position.stake * pair_weight(reach, holes, deck.size) * (1 if position.folded == 1 else -1)
    if position.actor == TERMINAL or (position.actor == CHANCE and position.after(REVEAL).actor < 0):
        size = sum(rules.board_cards)
        met = compatible_weights(reach[1], holes, deck.size)
        strength = hand_strength(board, reach[1], deck, board_size=size, hole_cards=rules.hole_cards)
        return float(position.stake * (reach[0] @ np.where(met > 0, met * (2 * np.nan_to_num(strength) - 1), 0.0)))
    if position.actor == CHANCE:
        after = position.after(REVEAL)
        left, count = np.setdiff1d(np.arange(deck.size), board), rules.board_cards[after.round]
        dealt = np.random.default_rng([*key, *map(ord, position.history)]).choice(left, count, replace=False)
        scale = comb(len(left), count) / comb(len(left) - 2 * rules.hole_cards, count)  # cards that no player holds
        free = ~np.isin(holes, dealt).any(axis=1)
        return scale * _value(players, after, (*board, *dealt.tolist()), reach * free, key)
    policy, total = players[position.actor].policy(position, board), 0.0
    for action in policy.actions:
        share = np.ones_like(reach)
        share[position.actor] = policy.probability(action)
        total += _value(players, position.after(action), board, reach * share, key)
    return total
