"""Check a blueprint for blunders that show without an opponent, such as folding aces.

A solver that was stopped too early, unsuitable buckets or a bug leave traces that show without an opponent.
`check_blueprint` looks for them: aces that fold before the flop, the nuts that fold on the river, decisions in self-
play that the solver never visited, a seat that loses more than its blind, bets of opponents that the agent cannot
answer. Each is a `Finding` with its figures and, if there is one, a bound; a finding beyond its bound is *off*.
Findings without a bound describe the strategy, for people to judge.

Figures for the first round are computed exactly. The rest is sampled, so that a report takes seconds whatever the size
of the game; equal seeds give equal reports. `self_play` plays the hands.

A report is about one strategy, and names it: the average strategy of a run, or that strategy after the post-processing
with which its agent plays. Either can fail a check that the other passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

import numpy as np

from kilt.arrays import BoolArray, FloatArray, IntArray
from kilt.cards.hands import strengths
from kilt.errors import GameError, PlayError
from kilt.evaluate.defence import CHECKED, FIRST, LEADS, Defence, betting_sequences, measure_defence
from kilt.evaluate.findings import Finding, Report
from kilt.evaluate.self_play import (
    AS_SOLVED,
    SelfPlay,
    buckets_and_results,
    draw_deals,
    first_round_decisions,
    no_shared_card,
)
from kilt.evaluate.stats import estimate_mean
from kilt.games.holdem import CALL, RAISE, Betting, Holdem
from kilt.play.agent import Agent, Observation
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Dealer
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.naming import strategy_name
from kilt.strategy.postprocess import Rule
from kilt.strategy.translate import Mapping, pseudo_harmonic
from kilt.tree.betting import FOLDS

DEALS = 20_000
PROFIT = 0.1  # bound: share of a checked-down pot that leading with any two cards may win
GAIN = 0.05  # bound: share of a checked-down pot that a bet may win more than a check, after the agent checked
TAKEN = 0.25  # bound: relative difference between a raise in the first round and its translation
SAME = 0.99  # bound: share of hands that respond to a raise in the first round with the same action
ACES = 0.001  # bound: share of hands with aces that fold before the flop
NUTS = 0.01  # bound: share of the bets on the river to which the best possible hand folds
UNSEEN = 0.01  # bound: share of the decisions in self-play that the solver never visited
LOOKED_AT = 20_000_000  # maximum number of slots of a round that are read
RARE = 0.005  # bet sizes with a smaller share of all actions are counted together
BOARDS = 10  # deals of self-play for each board with its best hand
BETS, SIZES, KEYS, HANDS = 60, 12, 4, 200  # decisions, sizes, random numbers and hands for the checks of translation


def check_blueprint(
    blueprint: Blueprint,
    deals: int = DEALS,
    seed: int = 0,
    mapping: Mapping = pseudo_harmonic,
    rule: Rule = AS_SOLVED,
) -> Report:
    """Run all sanity checks of a blueprint, and report the results.

    Parameters
    ----------
    blueprint : Blueprint
        The strategy to check.
    deals : int
        Number of hands of self-play that the sampled findings are estimated from, at least 1.
    seed : int
        Equal seeds give equal reports.
    mapping : Mapping
        How the blueprint's agent translates bets that its tree does not have: see `strategy.translate`.
    rule : Rule
        Post-processing of the strategy that is checked. By default none: the average strategy.

    Returns
    -------
    Report
        `ok` is False if a figure is beyond its bound.

    Raises
    ------
    PlayError
        The number of deals is less than 1.
    """
    if deals < 1:
        raise PlayError(f"{deals} deals are too few: use 1 or more; the default is {DEALS:,}")
    random = np.random.default_rng(seed)
    findings = [
        *check_aces(blueprint, rule),
        *check_nuts(blueprint, max(deals // BOARDS, 1), random, rule),
        check_visits(blueprint, random),
        *check_self_play(blueprint, deals, random, rule),
        *check_translation(blueprint, mapping, random, rule),
    ]
    agent = BlueprintAgent("blueprint", blueprint, rule, mapping)
    rows = tuple(measure_defence(blueprint.game, agent, seed=seed))
    name = strategy_name(rule, blueprint.figures)
    findings += [*check_bluffs(rows), *check_first_raises(agent, rows)]
    return Report(blueprint.game.name, deals, seed, tuple(findings), name, rows)


def check_bluffs(rows: Sequence[Defence]) -> Iterator[Finding]:
    """Look for bluffs that win too much: last-round bets after rounds without a bet.

    There is a figure for each line of play: the maximum over bet sizes.
    """
    leads, gains = dict[str, float](), dict[str, float]()
    for row in rows:
        if row.kind == LEADS:
            leads[row.line] = max(row.profit, leads.get(row.line, -inf))
        elif row.gain is not None:
            gains[row.line] = max(row.gain, gains.get(row.line, -inf))
    remedy = "play it without post-processing, or solve longer"
    for name, meaning, found, bound in (
        (f"profit of betting any two cards, {LEADS}", "bets every hand wins this share of the pot", leads, PROFIT),
        (f"gain of betting over checking, {CHECKED}", "bets hands to check wins this share more", gains, GAIN),
    ):
        if found:
            yield Finding(
                name,
                f"the agent folds so often that an opponent who {meaning}: {remedy}",
                found,
                "%",
                f"at most {bound:.0%} of the pot",
                max(found.values()) > bound,
            )


def check_first_raises(agent: BlueprintAgent, rows: Sequence[Defence]) -> Iterator[Finding]:
    """Check an agent's responses to first-round raises up to the pot.

    One check compares each raise with its translation, the other asks if the agent responds alike with all hands.
    """
    spots = [spot for spot in betting_sequences(agent.game) if spot.kind == FIRST and spot.size <= 1] if rows else []
    if not spots:
        return
    apart = {f"{spot.line}, {spot.bet}": agent.translated_bet(spot.after) / max(spot.after.spent) - 1 for spot in spots}
    worst = max(apart, key=lambda name: abs(apart[name]))
    yield Finding(
        "raise taken for another size",
        "the betting tree lacks a size that opponents use in the first round: add it to `actions`",
        {worst: apart[worst]},
        "%",
        f"at most {TAKEN:.0%} larger or smaller",
        abs(apart[worst]) > TAKEN,
    )
    alike = {
        f"{row.line}, {row.bet}": max(row.folds, row.raises, 1 - row.folds - row.raises)
        for row in rows
        if row.kind == FIRST
    }
    same = max(alike, key=alike.__getitem__)
    yield Finding(
        "one answer with every hand",
        "the agent responds to a raise in the first round with the same action for all hands: add smaller raises to "
        "`actions`",
        {same: alike[same]},
        "%",
        f"less than {SAME:.0%} of hands",
        alike[same] >= SAME,
    )


def check_aces(blueprint: Blueprint, rule: Rule = AS_SOLVED) -> Iterator[Finding]:
    """Check how often each player folds aces in the first round, if both follow the blueprint.

    The figures are exact, one for each seat.
    """
    game = blueprint.game
    holes, ace = game.deck.holes(game.rules.hole_cards), game.deck.ranks - 1
    hands = np.flatnonzero((holes // game.deck.suits == ace).all(axis=1))
    if not len(hands):  # a deck of one suit has no pairs
        return
    free = no_shared_card(game, hands)
    folded = [0.0, 0.0]
    for node, seat, reach, chance, _ in first_round_decisions(blueprint, rule):
        if blueprint.faces_bet(node):
            theirs = (free * reach[1 - seat]).sum(axis=1) / free.sum(axis=1)
            folded[seat] += float(np.mean(reach[seat, hands] * theirs * chance[hands, 0]))
    names, first = game.rules.seat_names, game.rules.round_names[0]
    worst = max(folded)
    yield Finding(
        f"aces fold {'preflop' if first == 'preflop' else f'in {first}'}",
        "the best private cards should hardly ever fold so early: solve longer",
        dict(zip(names, folded, strict=True)),
        "%",
        f"at most {ACES:.1%}",
        worst > ACES,
    )


def check_self_play(
    blueprint: Blueprint, deals: int, random: np.random.Generator, rule: Rule = AS_SOLVED
) -> Iterator[Finding]:
    """Play the blueprint against itself, and report action frequencies, unsolved decisions and each seat's value."""
    game = blueprint.game
    walk = SelfPlay(blueprint, buckets_and_results(blueprint, draw_deals(blueprint, deals, random)), random, rule)
    rounds = game.rules.rounds
    decisions, unseen = np.zeros(rounds), np.zeros(rounds)
    children, masses = [], []
    for moves in walk:
        decisions += np.bincount(moves.round, minlength=rounds)
        unseen += np.bincount(moves.round[~moves.seen], minlength=rounds)
        taken = moves.chance > 0
        children.append((blueprint.nodes.first_child[moves.node][:, None] + np.arange(taken.shape[1]))[taken])
        masses.append(moves.chance[taken])
    names, share = game.rules.round_names, float(unseen.sum() / max(decisions.sum(), 1))
    yield Finding(
        "self-play without a strategy",
        "decisions in self-play that the solver never visited: solve longer, or a smaller game",
        {"": share} | dict(zip(names, (unseen / np.maximum(decisions, 1)).tolist(), strict=True)),
        "%",
        f"at most {UNSEEN:.0%}",
        share > UNSEEN,
    )
    child, place = np.unique(np.concatenate(children), return_inverse=True)
    mass = np.bincount(place, np.concatenate(masses))
    for r, name in enumerate(names):
        if decisions[r]:
            here = blueprint.nodes.round[blueprint.nodes.parent[child]] == r
            figures = _classes(blueprint, child[here], mass[here])
            yield Finding(f"actions {name}", "frequencies of actions in self-play; bets are in pots", figures, "%")
    yield _value(game, walk.winnings())


def check_nuts(
    blueprint: Blueprint, boards: int, random: np.random.Generator, rule: Rule = AS_SOLVED
) -> Iterator[Finding]:
    """Check how often each player folds the nuts to a river bet.

    The player with the best hand follows the blueprint. The opponent follows it too, or takes every action except
    folding.
    """
    cards, held = _with_nuts(blueprint, boards, random), blueprint.game.rules.hole_cards
    swapped = np.hstack([cards[:, held : 2 * held], cards[:, :held], cards[:, 2 * held :]])
    cards, holder = np.concatenate([cards, swapped]), np.repeat([0, 1], boards)
    deals = buckets_and_results(blueprint, cards)
    last = blueprint.game.rules.rounds - 1
    figures = {}
    for name in ("opponent follows the strategy", "opponent tries everything"):
        faced = folded = 0.0
        weight = np.ones(len(holder))  # probability that the holder plays up to here
        for moves in SelfPlay(blueprint, deals, random, rule):
            facing, mine = blueprint.faces_bet(moves.node), moves.seat == holder[moves.deal]
            fold = np.where(facing, moves.chance[:, 0], 0.0)
            asked = mine & facing & (moves.round == last)
            faced += float(weight[moves.deal[asked]].sum())
            folded += float((weight[moves.deal[asked]] * fold[asked]).sum())
            weight[moves.deal[mine]] *= 1 - fold[mine]
            if name.endswith("everything"):
                there = np.arange(moves.chance.shape[1]) < blueprint.nodes.children[moves.node][:, None]
                moves.chance[~mine] = there[~mine]
            moves.chance[facing, 0] = 0.0  # so that all hands reach the river
            stuck = ~moves.chance.any(axis=1)
            moves.chance[stuck, facing[stuck].astype(np.int64)] = 1.0
        figures[name] = folded / faced if faced else 0.0
    yield Finding(
        f"the nuts fold {'on the river' if blueprint.game.rules.round_names[last] == 'river' else 'in the last round'}",
        "folding the best possible hand is never right: solve longer, use more buckets, or post-process",
        figures,
        "%",
        f"at most {NUTS:.0%}",
        max(figures.values()) > NUTS,
    )


def check_visits(blueprint: Blueprint, random: np.random.Generator) -> Finding:
    """Report the share of each round's information sets that the solver has never visited.

    If the table is large, the share is estimated from a sample.
    """
    nodes, figures = blueprint.nodes, {}
    for r, name in enumerate(blueprint.game.rules.round_names):
        decisions = np.flatnonzero((nodes.round == r) & (nodes.actor >= 0))
        if not len(decisions):
            continue
        slots = np.cumsum(blueprint.first[decisions + 1] - blueprint.first[decisions])
        if slots[-1] > LOOKED_AT:
            decisions = random.permutation(decisions)
            slots = np.cumsum(blueprint.first[decisions + 1] - blueprint.first[decisions])
            decisions = decisions[: max(int(np.searchsorted(slots, LOOKED_AT)), 1)]
        rows = without = 0
        for node in decisions.tolist():
            part = blueprint.shares[blueprint.first[node] : blueprint.first[node + 1]]
            reached: BoolArray = np.asarray(part.reshape(-1, nodes.children[node]).any(axis=1))
            rows, without = rows + len(reached), without + int(len(reached) - reached.sum())
        figures[name] = without / rows
    return Finding(
        "information sets without a strategy",
        "information sets that the solver never visited; most of them never occur in play",
        figures,
        "%",
    )


# Bets that the betting tree lacks.


class _Bold(NamedTuple):
    """An opponent who never folds, and half of the time raises by a random amount."""

    name: str = "bold"

    def act(self, observation: Observation) -> str:
        bounds, number = observation.position.raise_bounds(), 2 * len(observation.position.history)
        if bounds is None or observation.draw(number) < 0.5:
            return CALL
        least, most = bounds  # small raises are as likely as large ones
        return f"{RAISE}{min(int(least * (most / least) ** observation.draw(number + 1)), most)}"


def check_translation(
    blueprint: Blueprint, mapping: Mapping, random: np.random.Generator, rule: Rule = AS_SOLVED
) -> Iterator[Finding]:
    """Check that an agent answers any bet legally, and never translates a larger bet to a smaller size.

    With the same random number, a larger bet must never be translated to a smaller one: then the translation
    probabilities shift upwards with the size of the bet.
    """
    if blueprint.limit:
        return
    agent = BlueprintAgent("blueprint", blueprint, rule, mapping)
    tried = illegal = backwards = 0
    for position, hand, board in _before_bets(blueprint, random):
        for key in random.integers(2**63, size=KEYS).tolist():
            levels = []
            for to in _sizes(position):
                answering = position.after(f"{RAISE}{to}")
                observation = Observation(answering, hand, board, key)
                tried, illegal = tried + 1, illegal + (not _answers(agent, observation))
                levels.append(agent.follow(observation).level)
            backwards += sum(later < before for before, later in pairwise(levels))
    dealer, bold = Dealer(blueprint.game, int(random.integers(2**31))), _Bold()
    for number in range(HANDS):
        seats: tuple[Agent, Agent] = (agent, bold) if number % 2 else (bold, agent)
        try:
            dealer.play(number, seats)
        except (PlayError, GameError):
            illegal += 1
    yield Finding(
        "answers that are not legal",
        f"to {tried:,} bets of any size, and in {HANDS} hands against an opponent who bets any amount",
        {"": illegal},
        "answers",
        "none",
        illegal > 0,
    )
    yield Finding(
        "larger bets taken for smaller ones",
        "translation has to keep the order of bets",
        {"": backwards},
        "pairs of bets",
        "none",
        backwards > 0,
    )


def _before_bets(
    blueprint: Blueprint, random: np.random.Generator
) -> Iterator[tuple[Betting, tuple[int, ...], tuple[int, ...]]]:
    """Yield positions before a possible raise, and the cards that the opponent of the raiser sees, from random play."""
    rules, held = blueprint.game.rules, blueprint.game.rules.hole_cards
    cards = draw_deals(blueprint, BETS, random)
    met: list[tuple[int, int]] = []
    for moves in SelfPlay(blueprint, buckets_and_results(blueprint, cards), random):
        moves.chance[:] = np.arange(moves.chance.shape[1]) < blueprint.nodes.children[moves.node][:, None]
        moves.chance[blueprint.faces_bet(moves.node), 0] = 0.0
        met += zip(moves.node.tolist(), moves.deal.tolist(), strict=True)
    found = 0
    for node, deal in random.permutation(np.array(met)).tolist():
        position = blueprint.position(node)
        if found == BETS:
            return
        if position.raise_bounds():
            found += 1
            other = (1 - position.actor) * held
            hand = tuple(cards[deal, other : other + held].tolist())
            yield position, hand, tuple(cards[deal, 2 * held :][: rules.board_size(position.round)].tolist())


def _sizes(position: Betting) -> list[int]:
    """Return levels to raise to, in a geometric sequence from the minimum raise to all-in."""
    bounds = position.raise_bounds()
    assert bounds
    return sorted({*bounds, *np.geomspace(*bounds, SIZES).astype(int).clip(*bounds).tolist()})


def _answers(agent: BlueprintAgent, observation: Observation) -> bool:
    """Return whether all actions of an agent are legal, and their probabilities add up to 1."""
    if observation.position.actor < 0:
        return True
    shares = agent.probabilities(observation)
    try:
        for action, share in shares:
            if share:
                observation.position.after(action)
    except GameError:
        return False
    return abs(sum(share for _, share in shares) - 1) < 1e-6


def _with_nuts(blueprint: Blueprint, boards: int, random: np.random.Generator) -> IntArray:
    """Return deals in which seat 0 has the best possible hand on the board of the last round."""
    rules = blueprint.game.rules
    held, deck = rules.hole_cards, rules.deck
    cards, holes = draw_deals(blueprint, boards, random), deck.holes(rules.hole_cards).astype(np.int64)
    for row in cards:
        taken, board = np.zeros(deck.size, dtype=bool), row[2 * held :]
        taken[board] = True
        free = holes[~taken[holes].any(axis=1)]
        strength = strengths(np.hstack([free, np.broadcast_to(board, (len(free), len(board)))]), deck)
        best = random.choice(free[strength == strength.max()])
        taken[best] = True
        row[: 2 * held] = *best, *random.choice(free[~taken[free].any(axis=1)])
    return cards


def _classes(blueprint: Blueprint, child: IntArray, mass: FloatArray) -> dict[str, float]:
    """Return the share of each class of actions: fold, call, and bets by ascending size in pots."""
    nodes, raised = blueprint.nodes, blueprint.level[child]
    before = nodes.parent[child].astype(np.int64)
    stack = np.array(blueprint.game.rules.stacks)[nodes.actor[before]]
    while (called := (blueprint.level[before] <= 0) & (before > 0)).any():
        before[called] = nodes.parent[before[called]]
    level = np.where(before > 0, blueprint.level[before], max(blueprint.game.rules.blinds))
    pots = (raised - level) / (2 * level)
    shares: dict[tuple[float, str], float] = {}
    for to, size, most, part in zip(raised.tolist(), pots.tolist(), stack.tolist(), mass.tolist(), strict=True):
        if to <= 0:
            kind = (-2.0, "fold") if to == FOLDS else (-1.0, "call")
        elif blueprint.limit:
            kind = (0.0, "raise")
        else:
            kind = (np.inf, "all-in") if to == most else (round(size, 2), f"{size:.2g}x")
        shares[kind] = shares.get(kind, 0.0) + part
    total = sum(shares.values())
    rest = 0.0
    said: dict[str, float] = {}
    for (size, name), part in sorted(shares.items()):
        if part / total < RARE and 0 < size < np.inf:
            rest += part / total
        else:
            said[name] = part / total
    return said | ({"other sizes": rest} if rest else {})


def _value(game: Holdem, won: FloatArray) -> Finding:
    """Return a finding with the value of self-play to each seat.

    A player who always folds loses only the blind.
    """
    mbb = 1000 / game.rules.big_blind
    mean, margin = estimate_mean(won * mbb)
    seats, values, blinds = game.rules.seat_names, (mean, -mean), [blind * mbb for blind in game.rules.blinds]
    return Finding(
        "value of self-play",
        "a seat that loses more than its blind does better to fold every hand: solve longer",
        dict(zip(seats, values, strict=True)),
        "mbb/h",
        " and ".join(f"{name} at least {-blind:,.0f}" for name, blind in zip(seats, blinds, strict=True)),
        any(value + margin < -blind for value, blind in zip(values, blinds, strict=True)),
        margin,
    )
