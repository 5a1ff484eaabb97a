"""Sanity: whether a blueprint is fit to play, or folds aces.

A solver that was stopped too early, buckets that do not fit or a bug leave traces that need no opponent to be seen. A
`report` looks for them: aces that fold before the flop, the nuts that fold on the river, decisions in self-play that
the solver has never been to, a seat that loses more than its blind, bets of opponents that the agent cannot answer.
Each is a `Finding` with its figures and, where there is one, a bound; whatever is beyond it is *off*. Findings without
a bound say what the strategy does, for people to judge.

What happens before the flop is computed exactly. The rest is sampled, so that it takes seconds whatever the size of the
game; equal seeds give equal reports. Where a blueprint has nothing to say, players check and call, as its agent does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import Array, FloatArray, IntArray
from kilt.cards.hands import strengths
from kilt.errors import GameError, PlayError
from kilt.evaluate.stats import estimate
from kilt.games.game import CHANCE
from kilt.games.holdem import CALL, RAISE, Betting, Holdem
from kilt.play.agent import Agent, Observation
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Dealer
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.translate import Mapping, pseudo_harmonic
from kilt.tree.betting import FOLDS

DEALS = 20_000
ACES = 0.001  # of all hands with aces: so often they may fold before the flop
NUTS = 0.01  # of all bets that the best hand faces on the river: so many it may fold to
UNSEEN = 0.01  # of all decisions in self-play: so many may be where the solver has never been
LOOKED_AT = 20_000_000  # slots of a round that are read at most
RARE = 0.005  # bet sizes that have less than this of all actions are counted together
BOARDS = 10  # one board with its best hand for so many deals
BETS, SIZES, KEYS, HANDS = 60, 12, 4, 200  # decisions, sizes and random numbers that translation is tried with; hands
TEXAS = (0, 3, 1, 1)  # cards that the rounds add where they are called flop, turn and river

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Finding:
    """Something that was looked at."""

    name: str
    meaning: str  # in a line
    figures: dict[str, float]  # by what they are of
    unit: str  # %: figures are shares of 1; mbb/h; or what is counted
    bound: str = ""  # in words; empty where there is none
    off: bool = False
    margin: float | None = None  # of figures that are estimates: their 95% interval reaches so far to each side

    @property
    def seen(self) -> str:
        """The figures in words.

        >>> Finding("", "", {"": 0.0213, "small blind": 0.0003}, "%").seen
        '2.1%, small blind 0.03%'
        """
        said = ", ".join(f"{what} {self._figure(value)}".strip() for what, value in self.figures.items())
        return said if self.margin is None else f"{said}, ± {self.margin:,.0f}"

    def _figure(self, value: float) -> str:
        if self.unit == "%":
            return "0%" if value == 0 else f"{value:.2%}" if value < 0.01 else f"{value:.1%}"
        if self.unit == "mbb/h":
            return f"{value:+,.0f} mbb/h"
        return f"{value:,.0f} {self.unit}"


@dataclass(frozen=True)
class Report:
    """What was found."""

    game: str
    deals: int
    seed: int
    findings: tuple[Finding, ...]

    @property
    def off(self) -> tuple[Finding, ...]:
        """What is beyond its bound."""
        return tuple(finding for finding in self.findings if finding.off)

    @property
    def ok(self) -> bool:
        """Whether nothing is."""
        return not self.off

    def rows(self) -> list[list[str]]:
        """A table: what was looked at, what was seen, the bound, and whether it is off."""
        verdicts = [("OFF" if this.off else "fine") if this.bound else "" for this in self.findings]
        return [
            [this.name, this.seen, this.bound, verdict] for this, verdict in zip(self.findings, verdicts, strict=True)
        ]

    def data(self) -> dict[str, Any]:
        """The same for programs."""
        return {"ok": self.ok} | asdict(self)

    def __str__(self) -> str:
        if self.ok:
            return f"{self.game}: nothing is off"
        said = [f"{this.name}: {this.seen} ({this.bound}); {this.meaning}" for this in self.off]
        return "\n".join([f"{self.game}: {len(said)} OFF", *said])


def report(blueprint: Blueprint, deals: int = DEALS, seed: int = 0, mapping: Mapping = pseudo_harmonic) -> Report:
    """Look a blueprint over, with so many deals of self-play; `mapping` is how its agent translates bets."""
    if deals < 1:
        raise PlayError(f"{deals} deals show nothing: use 1 or more, best {DEALS:,}")
    random = np.random.default_rng(seed)
    findings = [
        *aces(blueprint),
        *nuts(blueprint, max(deals // BOARDS, 1), random),
        unsolved(blueprint, random),
        *self_play(blueprint, deals, random),
        *translation(blueprint, mapping, random),
    ]
    return Report(blueprint.game.name, deals, seed, tuple(findings))


def round_names(game: Holdem) -> tuple[str, ...]:
    """What rounds are called.

    >>> from kilt.games import load_game
    >>> round_names(load_game("holdem.limit.2p")), round_names(load_game("leduc"))
    (('preflop', 'flop', 'turn', 'river'), ('round 1', 'round 2'))
    """
    added = tuple(game.rules.board_cards)
    names = ("preflop", "flop", "turn", "river")
    return names[: len(added)] if added == TEXAS[: len(added)] else tuple(f"round {r + 1}" for r in range(len(added)))


def seat_names(game: Holdem) -> tuple[str, str]:
    """What players are called, by seat.

    >>> from kilt.games import load_game
    >>> seat_names(load_game("holdem.limit.2p")), seat_names(load_game("leduc"))
    (('big blind', 'small blind'), ('player 1', 'player 2'))
    """
    first, second = game.rules.blinds
    if first == second:
        return "player 1", "player 2"
    return ("big blind", "small blind") if first > second else ("small blind", "big blind")


# Before the flop: all hands at once.


class Early(NamedTuple):
    """A decision of the first round."""

    node: int
    seat: int
    reach: FloatArray  # [seat, hand] the probability that a player with this hand plays up to here
    chance: FloatArray  # [hand, action] what the player does
    seen: Flags  # [hand] whether the solver has been there


def first_round(blueprint: Blueprint) -> Iterator[Early]:
    """All decisions of the first round, in the order of the tree."""
    nodes = blueprint.nodes
    buckets = [cards.rounds[0].row(()).astype(np.int64) for cards in blueprint.cards.each]
    hands = len(buckets[0])
    reach: dict[int, FloatArray] = {0: np.ones((2, hands))}
    for node in range(int(nodes.block[1])):
        if nodes.actor[node] < 0:
            continue
        seat, here = int(nodes.actor[node]), reach.pop(node)
        count, first = int(nodes.children[node]), int(nodes.first_child[node])
        chance, seen = _rows(blueprint, np.full(hands, node), buckets[seat])
        yield Early(node, seat, here, chance[:, :count], seen)
        for action in range(count):
            if nodes.actor[first + action] >= 0:
                after = reach[first + action] = here.copy()
                after[seat] *= chance[:, action]


def apart(game: Holdem, hands: IntArray) -> Flags:
    """[place, hand] whether a hand shares no card with one of these."""
    holes = game.deck.holes(game.rules.hole_cards)
    held = np.zeros((len(holes), game.deck.size), dtype=np.float32)
    np.put_along_axis(held, holes.astype(np.int64), 1.0, axis=1)
    return np.asarray(held[hands] @ held.T == 0)


def aces(blueprint: Blueprint) -> Iterator[Finding]:
    """How often aces fold in the first round, in each seat, when both players follow the blueprint."""
    game = blueprint.game
    holes, ace = game.deck.holes(game.rules.hole_cards), game.deck.ranks - 1
    hands = np.flatnonzero((holes // game.deck.suits == ace).all(axis=1))
    if not len(hands):  # a deck of one suit has no pairs
        return
    free = apart(game, hands)
    folded = [0.0, 0.0]
    for node, seat, reach, chance, _ in first_round(blueprint):
        if blueprint.faces_bet(node):
            theirs = (free * reach[1 - seat]).sum(axis=1) / free.sum(axis=1)
            folded[seat] += float(np.mean(reach[seat, hands] * theirs * chance[hands, 0]))
    names, first = seat_names(game), round_names(game)[0]
    worst = max(folded)
    yield Finding(
        f"aces fold {'preflop' if first == 'preflop' else f'in {first}'}",
        "the best private cards have hardly ever a reason to fold so early: solve longer",
        dict(zip(names, folded, strict=True)),
        "%",
        f"at most {ACES:.1%}",
        worst > ACES,
    )


# Many deals at once.


class Deals(NamedTuple):
    """Cards as a blueprint sees them."""

    bucket: IntArray  # [deal, round, seat]
    outcome: IntArray  # [deal] at a showdown: 1 where seat 0 wins, −1 where seat 1 does, 0 where they split


class Moves(NamedTuple):
    """The next decision of each deal in which somebody has to act."""

    deal: IntArray
    node: IntArray
    seat: IntArray
    round: IntArray
    chance: FloatArray  # [move, action] what the player does; whoever changes it changes what is drawn
    seen: Flags  # whether the solver has been there


class SelfPlay:
    """Hands that are played side by side, in the tree of the blueprint. Iterate over it for the `Moves`."""

    def __init__(self, blueprint: Blueprint, deals: Deals, random: np.random.Generator) -> None:
        self.blueprint, self.deals, self.random = blueprint, deals, random
        self.node = np.zeros(len(deals.outcome), dtype=np.int64)
        self.spent: IntArray = np.tile(np.array(blueprint.game.rules.blinds, dtype=np.int64), (len(self.node), 1))
        self.folded = np.full(len(self.node), -1)  # [deal] the seat

    def __iter__(self) -> Iterator[Moves]:
        nodes = self.blueprint.nodes
        while True:
            while (turned := nodes.actor[self.node] == CHANCE).any():
                self.node[turned] = nodes.first_child[self.node[turned]]
            deal = np.flatnonzero(nodes.actor[self.node] >= 0)
            if not len(deal):
                return
            node = self.node[deal]
            seat, r = nodes.actor[node].astype(np.int64), nodes.round[node].astype(np.int64)
            moves = Moves(deal, node, seat, r, *_rows(self.blueprint, node, self.deals.bucket[deal, r, seat]))
            yield moves
            self._take(moves)

    def _take(self, moves: Moves) -> None:
        """Draw actions."""
        upto = moves.chance.cumsum(axis=1)
        drawn = self.random.random(len(upto)) * upto[:, -1]
        action = np.minimum((upto <= drawn[:, None]).sum(axis=1), self.blueprint.nodes.children[moves.node] - 1)
        child = self.blueprint.nodes.first_child[moves.node] + action
        rules, raised = self.blueprint.game.rules, self.blueprint.level[child].astype(np.int64)
        level = self.spent[moves.deal].max(axis=1)
        to = level + np.array(rules.raise_sizes)[moves.round] if self.blueprint.limit else raised
        after = np.minimum(np.where(raised > 0, to, level), np.array(rules.stacks)[moves.seat])
        stays = raised != FOLDS
        self.spent[moves.deal[stays], moves.seat[stays]] = after[stays]
        self.folded[moves.deal[~stays]] = moves.seat[~stays]
        self.node[moves.deal] = child

    def won(self) -> FloatArray:
        """[deal] what seat 0 has won when all is over, in chips."""
        sign = np.where(self.folded == 0, -1, np.where(self.folded == 1, 1, self.deals.outcome))
        return np.asarray(sign * self.spent.min(axis=1), dtype=np.float64)


def shuffled(blueprint: Blueprint, deals: int, random: np.random.Generator) -> IntArray:
    """[deal, card] private cards of seat 0 and of seat 1, then the board."""
    rules = blueprint.game.rules
    needed = 2 * rules.hole_cards + rules.board_size(rules.rounds - 1)
    return random.random((deals, rules.deck.size)).argsort(axis=1)[:, :needed]


def seen_by(blueprint: Blueprint, cards: IntArray) -> Deals:
    """Cards that are dealt as `shuffled` says."""
    rules = blueprint.game.rules
    held = rules.hole_cards
    board = np.ascontiguousarray(cards[:, 2 * held :])
    holes = cards[:, :held], cards[:, held : 2 * held]
    hands = np.stack([_hole_index(hole) for hole in holes], axis=1)
    bucket = np.empty((len(cards), rules.rounds, 2), dtype=np.uint32)
    for r in range(rules.rounds):
        blueprint.cards.look_up(r, board[:, : rules.board_size(r)], hands, bucket[:, r])
    mine, theirs = (strengths(np.hstack([hole, board]), rules.deck).astype(np.int64) for hole in holes)
    return Deals(bucket.astype(np.int64), np.sign(mine - theirs))


def self_play(blueprint: Blueprint, deals: int, random: np.random.Generator) -> Iterator[Finding]:
    """What both players do when they follow the blueprint, and what that is worth."""
    game = blueprint.game
    walk = SelfPlay(blueprint, seen_by(blueprint, shuffled(blueprint, deals, random)), random)
    rounds = game.rules.rounds
    decisions, unseen = np.zeros(rounds), np.zeros(rounds)
    children, masses = [], []
    for moves in walk:
        decisions += np.bincount(moves.round, minlength=rounds)
        unseen += np.bincount(moves.round[~moves.seen], minlength=rounds)
        taken = moves.chance > 0
        children.append((blueprint.nodes.first_child[moves.node][:, None] + np.arange(taken.shape[1]))[taken])
        masses.append(moves.chance[taken])
    names, share = round_names(game), float(unseen.sum() / max(decisions.sum(), 1))
    yield Finding(
        "self-play without a strategy",
        "decisions of self-play that the solver has never been to: solve longer, or a smaller game",
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
            yield Finding(f"actions {name}", "what players do in self-play; bets are in pots", figures, "%")
    yield _value(game, walk.won())


def nuts(blueprint: Blueprint, boards: int, random: np.random.Generator) -> Iterator[Finding]:
    """How often the best possible hand folds to a bet on the river, in either seat.

    The one who holds it follows the blueprint. The other does so too, or tries everything but folding.
    """
    cards, held = _with_nuts(blueprint, boards, random), blueprint.game.rules.hole_cards
    swapped = np.hstack([cards[:, held : 2 * held], cards[:, :held], cards[:, 2 * held :]])
    cards, holder = np.concatenate([cards, swapped]), np.repeat([0, 1], boards)
    deals = seen_by(blueprint, cards)
    last = blueprint.game.rules.rounds - 1
    figures = {}
    for name in ("opponent follows the strategy", "opponent tries everything"):
        faced = folded = 0.0
        weight = np.ones(len(holder))  # how likely the holder plays up to here
        for moves in SelfPlay(blueprint, deals, random):
            facing, mine = blueprint.faces_bet(moves.node), moves.seat == holder[moves.deal]
            fold = np.where(facing, moves.chance[:, 0], 0.0)
            asked = mine & facing & (moves.round == last)
            faced += float(weight[moves.deal[asked]].sum())
            folded += float((weight[moves.deal[asked]] * fold[asked]).sum())
            weight[moves.deal[mine]] *= 1 - fold[mine]
            if name.endswith("everything"):
                there = np.arange(moves.chance.shape[1]) < blueprint.nodes.children[moves.node][:, None]
                moves.chance[~mine] = there[~mine]
            moves.chance[facing, 0] = 0.0  # so that all hands come to the river
            stuck = ~moves.chance.any(axis=1)
            moves.chance[stuck, facing[stuck].astype(np.int64)] = 1.0
        figures[name] = folded / faced if faced else 0.0
    yield Finding(
        f"the nuts fold {'on the river' if round_names(blueprint.game)[last] == 'river' else 'in the last round'}",
        "nobody can beat the best possible hand, so folding it is always wrong: solve longer, or post-process",
        figures,
        "%",
        f"at most {NUTS:.0%}",
        max(figures.values()) > NUTS,
    )


def unsolved(blueprint: Blueprint, random: np.random.Generator) -> Finding:
    """The share of all information sets that have no strategy, by round. In large games some of them are looked at."""
    nodes, figures = blueprint.nodes, {}
    for r, name in enumerate(round_names(blueprint.game)):
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
            reached: Flags = np.asarray(part.reshape(-1, nodes.children[node]).any(axis=1))
            rows, without = rows + len(reached), without + int(len(reached) - reached.sum())
        figures[name] = without / rows
    return Finding(
        "information sets without a strategy",
        "hands in situations that the solver has never been to; most of them are never met",
        figures,
        "%",
    )


# Bets that the tree does not have.


class _Bold(NamedTuple):
    """An opponent who never folds, and raises to any legal level every other time."""

    name: str = "bold"

    def act(self, spot: Observation) -> str:
        bounds, number = spot.position.raise_bounds(), 2 * len(spot.position.history)
        if bounds is None or spot.draw(number) < 0.5:
            return CALL
        least, most = bounds  # small raises are as likely as large ones
        return f"{RAISE}{min(int(least * (most / least) ** spot.draw(number + 1)), most)}"


def translation(blueprint: Blueprint, mapping: Mapping, random: np.random.Generator) -> Iterator[Finding]:
    """Whether the blueprint's agent has a legal answer to bets of any size, and takes larger bets for larger ones.

    With the same random number a larger bet must never be taken for a smaller one: then the probabilities of what bets
    are taken for shift upwards with their size.
    """
    if blueprint.limit:
        return
    agent = BlueprintAgent("blueprint", blueprint, mapping=mapping)
    tried = illegal = backwards = 0
    for position, hand, board in _before_bets(blueprint, random):
        for key in random.integers(2**63, size=KEYS).tolist():
            levels = []
            for to in _sizes(position):
                answering = position.after(f"{RAISE}{to}")
                spot = Observation(answering, hand, board, key)
                tried, illegal = tried + 1, illegal + (not _answers(agent, spot))
                levels.append(agent.follow(spot).level)
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
    """Positions in which a player may raise, and what the other one sees; they are from hands with random actions."""
    rules, held = blueprint.game.rules, blueprint.game.rules.hole_cards
    cards = shuffled(blueprint, BETS, random)
    met: list[tuple[int, int]] = []
    for moves in SelfPlay(blueprint, seen_by(blueprint, cards), random):
        moves.chance[:] = np.arange(moves.chance.shape[1]) < blueprint.nodes.children[moves.node][:, None]
        moves.chance[blueprint.faces_bet(moves.node), 0] = 0.0
        met += zip(moves.node.tolist(), moves.deal.tolist(), strict=True)
    known: dict[int, Betting] = {0: blueprint.game.start()}
    found = 0
    for node, deal in random.permutation(np.array(met)).tolist():
        position = _position(blueprint, node, known)
        if found == BETS:
            return
        if position.raise_bounds():
            found += 1
            other = (1 - position.actor) * held
            hand = tuple(cards[deal, other : other + held].tolist())
            yield position, hand, tuple(cards[deal, 2 * held :][: rules.board_size(position.round)].tolist())


def _position(blueprint: Blueprint, node: int, known: dict[int, Betting]) -> Betting:
    """The position at a node of the tree."""
    if node not in known:
        parent = int(blueprint.nodes.parent[node])
        before = _position(blueprint, parent, known)
        labels = ["/"] if before.actor == CHANCE else blueprint.labels(parent)
        known[node] = before.after(labels[node - int(blueprint.nodes.first_child[parent])])
    return known[node]


def _sizes(position: Betting) -> list[int]:
    """Levels to raise to, from the least to all-in, each by the same factor above the one before."""
    bounds = position.raise_bounds()
    assert bounds
    return sorted({*bounds, *np.geomspace(*bounds, SIZES).astype(int).clip(*bounds).tolist()})


def _answers(agent: BlueprintAgent, spot: Observation) -> bool:
    """Whether all that an agent may do is legal, and it does something."""
    if spot.position.actor < 0:
        return True
    shares = agent.shares(spot)
    try:
        for action, share in shares:
            if share:
                spot.position.after(action)
    except GameError:
        return False
    return abs(sum(share for _, share in shares) - 1) < 1e-6


# Small things.


def _rows(blueprint: Blueprint, node: IntArray, bucket: IntArray) -> tuple[FloatArray, Flags]:
    """[row, action] probabilities, with the agent's call where there are none; and [row] whether there are."""
    nodes = blueprint.nodes
    count = nodes.children[node].astype(np.int64)
    place = np.arange(int(count.max()))
    slot: Array = (blueprint.first[node] + bucket * count)[:, None] + np.minimum(place, count[:, None] - 1)
    row: FloatArray = np.where(place < count[:, None], blueprint.shares[slot], 0).astype(np.float64)
    seen: Flags = np.asarray(row.any(axis=1))
    row[~seen, blueprint.faces_bet(node[~seen]).astype(np.int64)] = 1.0
    return row / row.sum(axis=1, keepdims=True), seen


def _hole_index(holes: IntArray) -> IntArray:
    """[row] the numbers of hands: see `Deck.hole_index`."""
    if holes.shape[1] == 1:
        return holes[:, 0]
    low, high = holes.min(axis=1), holes.max(axis=1)
    return np.asarray(high * (high - 1) // 2 + low)


def _with_nuts(blueprint: Blueprint, boards: int, random: np.random.Generator) -> IntArray:
    """Deals in which seat 0 has the best hand of all on the last board."""
    rules = blueprint.game.rules
    held, deck = rules.hole_cards, rules.deck
    cards, holes = shuffled(blueprint, boards, random), deck.holes(rules.hole_cards).astype(np.int64)
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
    """The share of each class of actions: fold, call, and bets by their size in pots, ascending."""
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
    """What self-play is worth to each seat. Whoever folds always loses their blind and no more."""
    mbb = 1000 / game.rules.big_blind
    mean, margin = estimate(won * mbb)
    values, blinds = (mean, -mean), [blind * mbb for blind in game.rules.blinds]
    return Finding(
        "value of self-play",
        "a seat that loses more than its blind does better to fold every hand: solve longer",
        dict(zip(seat_names(game), values, strict=True)),
        "mbb/h",
        " and ".join(f"{name} at least {-blind:,.0f}" for name, blind in zip(seat_names(game), blinds, strict=True)),
        any(value + margin < -blind for value, blind in zip(values, blinds, strict=True)),
        margin,
    )
