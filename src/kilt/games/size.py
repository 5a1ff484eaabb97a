"""Count the decisions and information sets of a two-player game exactly.

The counts are integers of any length.

Betting does not depend on the cards. So the number of information sets of a round is the number of betting sequences
that end with a decision, times the number of hands and boards that the player to act may see.

Limit games have few betting sequences: a walk counts them and merges sequences with the same future. No-limit games
have too many. M. Johanson, "Measuring the size of large no-limit poker games" (2013), counts them by the remaining
chips; kilt goes further. Let the shorter stack have R chips behind the level at which a round opens, and B be the big
blind. In one round no raise is smaller than the previous one or than B, so the ways to reach level t < R in k raises
are the partitions of t into k parts of at least B, which are the partitions of m = t − kB into at most k parts,

    q_k(m) = q_{k−1}(m) + q_k(m − k),

which takes about R² / 2B additions for all of them. The other counts follow from these numbers:

- A round is opened by the first player or, after a check or call, by the second: two decisions at t = 0, and every
  sequence of raises happens twice. Each raise leaves a decision to the other player.
- A player who may raise may put the shorter stack all-in. This leaves one decision, and none in later rounds. With
  equal stacks there is one way to do it. A stack that is deeper by D has D + 1 ways, minus those too small for a raise:
  after a last raise of d to level t, min(t + d − R, D) of them if that is positive. `_too_small` sums this up.
- A round that ends at level t leaves R − t behind: the ways to begin the next round are a convolution.

As in that paper, only stacks and `maxRaises` limit the raises of a round. The ACPC's server, and with it
`games.holdem`, allows none after 63 actions.

>>> from kilt.games.gamedef import load_definition
>>> size = size_of(load_definition("holdem.limit.2p"))
>>> size.decisions, size.decisions.total
((8, 70, 630, 5670), 6378)
>>> f"{size.information_sets.total:,}"
'319,365,922,522,608'
>>> f"{size_of(load_definition('holdem.nolimit.2p.1-2')).information_sets.total:.4e}"
'7.2317e+72'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, Context, Decimal
from functools import cache, lru_cache
from heapq import heappop, heappush
from itertools import accumulate
from math import comb, isqrt, prod
from operator import add, mul
from typing import NamedTuple

from kilt.cards.isomorphism import Isomorphism
from kilt.errors import GameError
from kilt.games.bluff import FACES, Bluff
from kilt.games.gamedef import UNLIMITED_RAISES, GameDef
from kilt.games.size_kernels import count_illegal_all_ins

MOST_SECONDS = 60.0  # games that would take longer to count are refused


class Counts(tuple[int, ...]):
    """Exact counts for each betting round, such as the number of decisions, as a tuple."""

    @property
    def total(self) -> int:
        """The sum of the counts over all rounds."""
        return sum(self)

    def multiply(self, factors: Iterable[int]) -> Counts:
        """Multiply the count of each round by a given factor."""
        return Counts(map(mul, self, factors))


@dataclass(frozen=True)
class GameSize:
    """The size of a game by round: its decisions, actions, states and information sets."""

    decisions: Counts  # betting sequences that end with a decision
    actions: Counts  # sum of the legal actions at these decisions
    states: Counts  # decisions × ways to deal all cards
    information_sets: Counts  # decisions × ways to deal the cards that the player sees
    canonical_information_sets: Counts  # the same, up to a renaming of suits
    infoset_actions: Counts  # sum of the legal actions at all information sets: the entries of a strategy


@dataclass(frozen=True)
class BucketedSize:
    """The size of an abstract game by round, with buckets in place of cards."""

    buckets: Counts
    information_sets: Counts
    infoset_actions: Counts


def size_of(game: GameDef | Bluff) -> GameSize:
    """Count the decisions, states and information sets of a two-player game.

    Raises GameError if the game has more than two players, or if counting would take too long.

    >>> from kilt.games.gamedef import load_definition
    >>> size_of(load_definition("leduc")).canonical_information_sets
    (18, 450)
    >>> size_of(Bluff((2, 2))).information_sets.total  # [Johanson16 §3.2.3]: 352 million
    352321536
    """
    if isinstance(game, Bluff):
        return _bluff(game)
    decisions, actions = _betting(game)
    deck, hole = game.deck, game.hole_cards
    # Groups of cards in the order of dealing: all cards up to a round, and the cards that one player sees.
    whole = [[n for each in range(r + 1) for n in game.cards_dealt(each)] for r in range(game.rounds)]
    boards = [[n for each in range(r + 1) for n in game.cards_dealt(each)[:-1]] for r in range(game.rounds)]
    seen = [_deals(deck.size, (hole, *board)) for board in boards]
    return GameSize(
        decisions=decisions,
        actions=actions,
        states=decisions.multiply(_deals(deck.size, (hole, hole, *dealt)) for dealt in whole),
        information_sets=decisions.multiply(seen),
        canonical_information_sets=decisions.multiply(
            Isomorphism((hole, *filter(None, board)), deck).size for board in boards
        ),
        infoset_actions=actions.multiply(seen),
    )


def abstract_size(game: GameDef, buckets: str) -> BucketedSize:
    """Count the information sets of a two-player game with buckets in place of cards.

    With perfect recall (PR), numbers are the buckets into which each bucket of the previous round splits; with
    imperfect recall (IR), they are the numbers of buckets of the rounds [Johanson16 table 5.2].

    >>> from kilt.games.gamedef import load_definition
    >>> holdem = load_definition("holdem.limit.2p")
    >>> abstract_size(holdem, "PR 2-2-2-2").buckets
    (2, 4, 8, 16)
    >>> abstract_size(holdem, "IR 169-9000-9000-9000").information_sets.total
    57331352
    """
    match = re.fullmatch(r"\s*(PR|IR)[\s-]+([1-9]\d*(?:-[1-9]\d*)*)\s*", buckets.replace(",", ""), re.IGNORECASE)
    if match is None:
        raise GameError(
            f"{buckets!r} does not describe buckets: write PR or IR and a number per round, as in 'PR 10-10-10-10'"
        )
    numbers = [int(number) for number in match[2].split("-")]
    if len(numbers) != game.rounds:
        raise GameError(f"{buckets!r} is for {len(numbers)} rounds; the game has {game.rounds}: give one number each")
    per_round = Counts(accumulate(numbers, mul) if match[1].upper() == "PR" else numbers)
    decisions, actions = _betting(game)
    return BucketedSize(per_round, decisions.multiply(per_round), actions.multiply(per_round))


def _bluff(game: Bluff) -> GameSize:
    """Count the decisions and information sets of one round of Bluff.

    Bids ascend, so a history is a set of bids; in half of all sets, each player acts.
    """
    histories = 2 ** (sum(game.dice) * len(FACES))
    rolls = [len(game.hands(player)) for player in (0, 1)]
    seen = Counts([histories // 2 * sum(rolls)])
    return GameSize(
        decisions=Counts([histories]),
        # a bid leads to every history but the empty one, and a call can follow each
        actions=Counts([2 * (histories - 1)]),
        states=Counts([histories * prod(rolls)]),
        information_sets=seen,
        canonical_information_sets=seen,
        infoset_actions=Counts([(histories - 1) * sum(rolls)]),
    )


def _deals(cards: int, groups: Iterable[int]) -> int:
    """Return the number of ways to deal groups of cards, one group after another."""
    ways = 1
    for group in groups:
        ways *= comb(cards, group)
        cards -= group
    return ways


@lru_cache
def _betting(game: GameDef) -> tuple[Counts, Counts]:
    """Return the number of decisions and of legal actions in each round, without regard to cards."""
    if game.players != 2:
        raise GameError(f"the game has {game.players} players; only games of 2 can be counted: check `numPlayers`")
    return _partitions(game) if game.betting == "nolimit" and min(game.stacks) > game.big_blind else _walk(game)


def _check_time(seconds: float, remedy: str) -> None:
    if seconds > MOST_SECONDS:
        raise GameError(
            f"counting this game's betting would take about {seconds:.0e} seconds; "
            f"at most {MOST_SECONDS:.0f} are allowed: {remedy}"
        )


def _most_raises(game: GameDef) -> list[int]:
    """Return the maximum number of raises in each round, given the rules and the shorter stack."""
    behind = min(game.stacks) - game.big_blind
    sizes = game.raise_sizes or [game.big_blind] * game.rounds
    caps = [behind if cap == UNLIMITED_RAISES else cap for cap in game.max_raises]
    return [min(cap, -(-behind // size)) for cap, size in zip(caps, sizes, strict=True)]


def _partitions(game: GameDef) -> tuple[Counts, Counts]:
    """Count the betting of a no-limit game in which the blinds do not use up a stack."""
    blind = game.big_blind
    behind = min(game.stacks) - blind
    deeper = max(game.stacks) - min(game.stacks)
    rounds = _most_raises(game)
    seconds = 2e-7 * (behind**2 / blind + game.rounds * behind**1.5)  # partitions, convolutions
    if deeper:
        bounds = {most for most in rounds if most - 1 < (behind - 1) // blind}
        seconds += 5e-8 * behind**2 * (1 + sum(bounds))
    _check_time(seconds, "use smaller stacks or larger blinds")

    @cache
    def reached(most: int) -> list[int]:
        """Count the betting sequences of at most `most` raises that end at each bet level.

        The levels are t < `behind`.
        """
        parts = [1] + [0] * (behind - 1)  # partitions of m into at most k parts, from k = 0 on
        levels = parts.copy()
        for k in range(1, most + 1):
            del parts[behind - k * blind :]
            for m in range(k, len(parts), k):  # k entries at a time, computed from the row of k − 1
                parts[m : m + k] = map(add, parts[m : m + k], parts[m - k : m])
            levels[k * blind :] = map(add, levels[k * blind :], parts)
        return levels

    @cache
    def less(most: int) -> list[int]:
        return _too_small(behind, blind, deeper, most, bound=sum(reached(most)) * deeper + 1)

    decisions, actions = [], []
    ways = [1] + [0] * (behind - 1)  # number of ways to begin the round, by the chips bet in earlier rounds
    for r, most in enumerate(rounds):
        raised = reached(min(most, (behind - 1) // blind))  # the last legal raise may have to be all-in
        can_raise = reached(most - 1) if most else [0] * behind
        ruled_out = less(most - 1) if most and deeper else [0] * behind
        # After s chips in earlier rounds, every level t < behind − s is two decisions. From each, one player goes
        # all-in in one way and the other, the deeper if there is one, in one or more.
        below = (
            2 * decided + (2 + deeper) * raising - missing
            for decided, raising, missing in zip(accumulate(raised), accumulate(can_raise), ruled_out, strict=True)
        )
        decisions.append(sum(map(mul, ways, reversed(list(below)))))
        # Decisions other than the two that open a round face a raise, and each raise leads to one of them. So there are
        # as many raises as folds, in addition to a call everywhere and a fold to the larger blind.
        facing = decisions[r] - 2 * sum(ways)
        actions.append(decisions[r] + 2 * facing + (r == 0 and game.blinds[0] != game.blinds[1]))
        if r + 1 < game.rounds:
            ways = _convolve(ways, [1] + [2 * number for number in raised[1:]])
    return Counts(decisions), Counts(actions)


def _too_small(behind: int, blind: int, deeper: int, most: int, bound: int) -> list[int]:
    """Return the sums of the kernel `count_illegal_all_ins`, all of which are below `bound`.

    They are computed modulo enough primes, and combined by the Chinese remainder theorem.

    >>> _too_small(behind=4, blind=2, deeper=9, most=1, bound=1000)  # d = 2 at t = 0, 2 and d = 3 at t = 3
    [1, 0, 1, 2]
    """
    bounded = most < (behind - 1) // blind
    sums, product = [0] * behind, 1
    for prime in filter(_is_prime, range(2**30 - 1, 0, -2)):
        residues = count_illegal_all_ins(behind, blind, deeper, most, bounded, prime).tolist()
        inverse = pow(product, -1, prime)
        sums = [n + product * ((r - n) * inverse % prime) for n, r in zip(sums, residues, strict=True)]
        product *= prime
        if product > bound:
            break
    return sums


def _is_prime(n: int) -> bool:
    return all(n % k for k in range(2, isqrt(n) + 1))


def _convolve(a: Sequence[int], b: Sequence[int]) -> list[int]:
    """Return the first coefficients of a product of polynomials, as many as `a` has.

    Kronecker substitution: the coefficients, written one after another with room for the sums, are the digits of one
    large number, and one multiplication computes all sums. Decimals multiply by number-theoretic transform and integers
    do not, which makes decimals ten times faster for the competition's game.

    >>> _convolve([1, 2, 0], [1, 10, 100])
    [1, 12, 120]
    """
    width = len(str(max(a) * max(b) * len(a)))
    exact = Context(prec=MAX_PREC, Emax=MAX_EMAX)
    x, y = (Decimal("".join(f"{value:0{width}}" for value in reversed(values))) for values in (a, b))
    digits = str(exact.multiply(x, y)).zfill(width * len(a))
    return [int(digits[end - width : end]) for end in range(len(digits), len(digits) - width * len(a), -width)]


class _State(NamedTuple):
    """A decision, reduced to the facts that its future depends on.

    It sorts after all states that can lead to it.
    """

    round: int
    theirs: int  # chips that the other player has put in
    acted: bool  # whether a player has acted in this round
    player: int
    mine: int
    raise_by: int  # minimum raise; in limit games, the raise
    raises_left: int


def _walk(game: GameDef) -> tuple[Counts, Counts]:
    """Count the decisions and actions of a game by visiting one betting state after another.

    This serves limit games, and no-limit games in which a blind uses up a stack.
    """
    limit, shortest = game.betting == "limit", min(game.stacks)
    _check_time(2e-6 * _walk_steps(game), "set `maxRaises`")
    decisions, actions = [0] * game.rounds, [0] * game.rounds
    ways: dict[_State, int] = {}
    queue: list[_State] = []

    def reach(state: _State, number: int) -> None:
        """Add to the number of betting sequences that lead to a state.

        Nothing is added if the player to act has no chips left.
        """
        if state.mine < game.stacks[state.player]:
            if state not in ways:
                heappush(queue, state)
            ways[state] = ways.get(state, 0) + number

    def opening(r: int, player: int, mine: int, theirs: int) -> _State:
        raise_by = game.raise_sizes[r] if limit else game.big_blind
        return _State(r, theirs, False, player, mine, raise_by, game.max_raises[r])

    first = game.first_player[0]
    if game.blinds[first] == game.stacks[first]:  # all-in before the first action
        first = 1 - first
    reach(opening(0, first, game.blinds[first], game.blinds[1 - first]), 1)

    while queue:
        state = heappop(queue)
        number = ways.pop(state)
        r, theirs, acted, me, mine, raise_by, left = state
        level, stack, other = max(mine, theirs), game.stacks[me], 1 - me
        decisions[r] += number
        actions[r] += number * (2 if mine < theirs else 1)  # folding is legal only after a bet
        if not acted:
            reach(_State(r, level, True, other, theirs, raise_by, left), number)
        elif r + 1 < game.rounds and level < shortest:
            reach(opening(r + 1, game.first_player[r + 1], level, level), number)

        if left == 0 or level == stack or theirs == game.stacks[other]:
            continue
        left -= left != UNLIMITED_RAISES
        low = min(level + raise_by, stack)
        high = low if limit else stack
        actions[r] += number * (high - low + 1)
        for to in range(low, min(high + 1, shortest)):
            reach(_State(r, to, True, other, theirs, max(raise_by, to - level), left), number)
        # All other raises put a player all-in, whatever their size: a fold or a call follows, and no more betting.
        final = number * max(high + 1 - max(low, shortest), 0)
        decisions[r] += final
        actions[r] += 2 * final
    return Counts(decisions), Counts(actions)


def _walk_steps(game: GameDef) -> float:
    """Return a rough upper bound on the number of raises that `_walk` visits."""
    most = _most_raises(game)
    counted = [n for n, cap in zip(most, game.max_raises, strict=True) if cap != UNLIMITED_RAISES]
    levels = min(min(game.stacks) - game.big_blind + 1, prod(n + 1 for n in most))
    return 4 * game.rounds * levels * (1 + max(counted, default=0))
