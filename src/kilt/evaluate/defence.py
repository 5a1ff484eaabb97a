"""Measure how often an agent folds to bets, and whether betting any two cards against it is profitable.

A bet of b into a pot of p that never wins when called breaks even if the agent folds b / (p + b) of the time. An agent
that folds more often loses to an opponent who bets every hand, whatever the opponent holds: the opponent loses b if the
agent calls, and wins p if it folds. This *profit of any two cards* ignores showdowns that the bettor wins.

A profit of any two cards is not always a fault. An agent that checks a river has mostly weak hands left, and an
equilibrium then folds more than half of them to a bet of the pot. The opponent gains nothing, because a check would
also have won some pots. After a check, the report therefore also has the *gain over checking*: what a bet wins more
than a check behind, with the hands that the agent itself would check behind. In an equilibrium it is at most 0. The
bettor folds to a raise, so the true gain may be larger.

The lines of play are common ones: limped or raised before the flop, checked down, or bet in each round. The agent's
range consists of the hands that its own strategy plays along the line. Boards are sampled.

>>> from kilt.games import load_game
>>> from kilt.play.agent import BASELINES
>>> rows = measure_defence(load_game("holdem.nolimit.2p.50bb"), BASELINES["always-fold"], boards=2)
>>> [(row.bet, round(row.folds, 2), round(row.break_even, 2), round(row.profit, 2)) for row in rows][-1]
('2x', 1.0, 0.67, 1.0)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from kilt.arrays import FloatArray
from kilt.cards.equity import hand_strength
from kilt.games.game import CHANCE, REVEAL
from kilt.games.holdem import CALL, FOLD, RAISE, Betting, Holdem
from kilt.games.subgame import compatible_weights
from kilt.play.agent import PolicyAgent

SIZES = {"min": 0.0, "33%": 1 / 3, "50%": 0.5, "75%": 0.75, "1x": 1.0, "2x": 2.0}  # bets after the first round
OPENS = {"min": 0.0, "2.5 big blinds": 0.75, "3 big blinds": 1.0, "4 big blinds": 1.5}  # first raises
RERAISES = {"min": 0.0, "50%": 0.5, "1x": 1.0, "1.5x": 1.5}  # raises of a first raise
OPEN, BARREL = 1.0, 0.5  # sizes in pots: of the first raise, and of earlier bets that the agent called
BOARDS = 50
FIRST, LEADS, CHECKED, BARRELS = "first round", "opponent leads", "agent checks", "bets in each round"
KINDS = FIRST, LEADS, CHECKED, BARRELS
RARE = 1e-6  # share of all hands: an agent that takes a line less often gets no rows for it


@dataclass(frozen=True)
class Defence:
    """How often an agent folds, calls and raises against a bet size after a common betting sequence."""

    line: str  # earlier actions
    kind: str  # kind of line: one of `KINDS`
    bet: str  # its size
    pot: int  # chips before the bet
    chips: int  # chips that the bettor adds
    folds: float  # probability that the agent folds
    raises: float  # probability that it raises
    margin: float  # half-width of the 95% interval of `folds`, over boards
    # What the bet wins more than checking behind, as a share of the pot: the mean over the hands that the agent would
    # check in the bettor's place. None if a check does not end the hand, or if the agent never checks there.
    gain: float | None = None

    @property
    def break_even(self) -> float:
        """The break-even folding frequency: above it, betting any two cards is profitable."""
        return self.chips / (self.pot + self.chips)

    @property
    def profit(self) -> float:
        """The profit of betting any two cards, in pots, if the bet loses whenever it is called."""
        return self.folds - (1 - self.folds) * self.chips / self.pot


class FacedBet(NamedTuple):
    """A bet that an agent faces after a common betting sequence."""

    line: str
    kind: str
    bet: str
    size: float  # in pots; 0 for the minimum raise
    before: Betting  # the bettor's decision
    after: Betting  # the agent's


def measure_defence(game: Holdem, agent: PolicyAgent, boards: int = BOARDS, seed: int = 0) -> list[Defence]:
    """Measure how often an agent folds to bets of several sizes after common betting sequences.

    Parameters
    ----------
    game : Holdem
        A no-limit game; limit games give an empty list.
    agent : PolicyAgent
        The agent, with the strategy that it plays.
    boards : int
        Number of sampled boards.
    seed : int
        Equal seeds give equal boards.

    Returns
    -------
    list of Defence
        By line, then by the size of the bet. A line that the agent hardly ever takes has no rows.
    """
    if game.rules.betting == "limit":
        return []
    random, rules = np.random.default_rng(seed), game.rules
    drawn = [
        tuple(random.choice(game.deck.size, sum(rules.board_cards), replace=False).tolist()) for _ in range(boards)
    ]
    rows = []
    for _, spots in groupby(betting_sequences(game), key=lambda spot: (spot.line, spot.before)):
        each = [*spots]
        known = rules.board_size(each[0].before.round)
        seen = [*dict.fromkeys(board[:known] for board in drawn)]
        weights = [_range(game, agent, each[0].before, 1 - each[0].before.actor, board) for board in seen]
        if sum(one.sum() for one in weights) < RARE * len(seen) * len(game.holes):
            continue
        rows += [_answer(game, agent, spot, seen, weights) for spot in each]
    return rows


def _answer(
    game: Holdem,
    agent: PolicyAgent,
    spot: FacedBet,
    boards: Sequence[tuple[int, ...]],
    weights: Sequence[FloatArray],
) -> Defence:
    """Return the agent's response to a bet on some boards, given the weight of each of its hands on each board."""
    whole, folds, raises = (np.zeros(len(boards)) for _ in range(3))
    gains = np.zeros(2)
    for place, (board, weight) in enumerate(zip(boards, weights, strict=True)):
        policy = agent.policy(spot.after, board)
        whole[place], folds[place] = weight.sum(), weight @ policy.probability(FOLD)
        raises[place] = whole[place] - folds[place] - weight @ policy.probability(CALL)
        if spot.kind == CHECKED:
            gains += gain_over_checking(game, agent, spot, board, weight)
    mean = folds.sum() / whole.sum()
    spread = np.sqrt(np.sum((folds - mean * whole) ** 2)) / whole.sum()
    pot, chips = sum(spot.before.spent), max(spot.after.spent) - spot.before.spent[spot.before.actor]
    share = float(raises.sum() / whole.sum())
    gain = float(gains[0] / gains[1]) if gains[1] > 0 else None
    return Defence(spot.line, spot.kind, spot.bet, pot, chips, float(mean), share, 1.96 * float(spread), gain)


def gain_over_checking(
    game: Holdem, agent: PolicyAgent, spot: FacedBet, board: tuple[int, ...], weight: FloatArray
) -> tuple[float, float]:
    """Return a river bet's gain over checking behind, in pots, and the weight of the compared hands.

    Both are sums over all pairs of hands. The bettor's hands are weighted by the probability that the agent, in the
    bettor's place, has them and checks behind; the hands of the agent that faces the bet by `weight` [hand].
    """
    before, policy = spot.before, agent.policy(spot.after, board)
    own = _range(game, agent, before, before.actor, board) * agent.policy(before, board).probability(CALL)
    folds, calls = weight * policy.probability(FOLD), weight * policy.probability(CALL)

    def met(hands: FloatArray) -> FloatArray:
        return compatible_weights(hands, game.holes, game.deck.size)

    def beaten(hands: FloatArray) -> FloatArray:
        if not hands.any():
            return hands
        strength = hand_strength(board, hands, game.deck, board_size=len(board), hole_cards=game.rules.hole_cards)
        return np.nan_to_num(strength) * met(hands)

    chips = (max(spot.after.spent) - before.spent[before.actor]) / sum(before.spent)
    bet = met(folds) + (1 + 2 * chips) * beaten(calls) - chips * (met(weight) - met(folds))
    return float(own @ (bet - beaten(weight))), float(own @ met(weight))


def _range(game: Holdem, agent: PolicyAgent, at: Betting, seat: int, board: tuple[int, ...]) -> FloatArray:
    """Return the probability that the agent in a seat takes its actions so far, for each hand.

    It is 0 if a card of the hand is on the board.
    """
    weight = np.asarray(~np.isin(game.holes, board).any(axis=1), dtype=np.float64)
    for before, action in game.positions.moves_to(at):
        if before.actor == seat:
            policy = agent.policy(before, board[: at.rules.board_size(before.round)])
            np.multiply(weight, policy.probability(action), out=weight)
    return weight


def betting_sequences(game: Holdem) -> Iterator[FacedBet]:
    """Yield common betting sequences that end with a bet, one for each bet size."""
    start, names, last = game.start(), game.rules.round_names, game.rules.rounds - 1
    opened = position_after_raise(start, OPEN)
    yield from _bets(f"{names[0]}, first raise", FIRST, start, OPENS)
    if opened is None or last == 0:
        return
    yield from _bets(f"{names[0]}, raise of a first raise", FIRST, opened, RERAISES)
    for how, begun in (("limped", start.after(CALL)), ("raised", opened)):
        checked = down = _next_round(begun.after(CALL))
        while down is not None and down.round < last:
            down = _next_round(down.after(CALL).after(CALL))
        if down is not None:
            yield from _bets(f"{names[last]}, {how} and checked down, opponent leads", LEADS, down, SIZES)
            yield from _bets(f"{names[last]}, {how} and checked down, agent checks", CHECKED, down.after(CALL), SIZES)
        bet, barrels = checked if how == "raised" else None, 0
        while bet is not None and down is not bet:
            line = f"{names[bet.round]}, raised, agent checks" + (f" after calling {barrels}" if barrels else "")
            yield from _bets(line, BARRELS, bet.after(CALL), SIZES)
            made, barrels = position_after_raise(bet.after(CALL), BARREL), barrels + 1
            bet = _next_round(made.after(CALL)) if made is not None else None


def _bets(line: str, kind: str, before: Betting, sizes: dict[str, float]) -> Iterator[FacedBet]:
    """Yield a bet of each size at a decision; sizes with the same number of chips give one bet."""
    found = set()
    for name, size in sizes.items():
        after = position_after_raise(before, size)
        if after is not None and max(after.spent) not in found:
            found.add(max(after.spent))
            yield FacedBet(line, kind, name, size, before, after)


def position_after_raise(position: Betting, size: float) -> Betting | None:
    """Return the position after a raise by a multiple of the pot.

    The result is None if the raise is all-in or not legal.

    A raise below the minimum becomes the minimum raise.
    """
    bounds, level = position.raise_bounds(), max(position.spent)
    if bounds is None:
        return None
    to = max(level + round(size * 2 * level), bounds[0])
    return position.after(f"{RAISE}{to}") if to < bounds[1] else None


def _next_round(position: Betting) -> Betting | None:
    """Return the first decision of the next round; None if there is none."""
    after = position.after(REVEAL) if position.actor == CHANCE else position
    return after if after.actor >= 0 else None
