"""Check an unabstracted strategy for blunders such as folding aces, on sampled boards.

The checks are those of `sanity`. Both players follow the agent. On each sampled board, the reach of every hand is
propagated through all betting: the first round is exact, and later rounds have only the sampling error of boards.
Boards are visited in their order, so that subgames on disk are unpacked about once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kilt.arrays import BoolArray, FloatArray
from kilt.cards.hands import strengths
from kilt.errors import PlayError
from kilt.evaluate.findings import Finding, Report
from kilt.evaluate.sanity import ACES, DEALS, NUTS
from kilt.games.game import CHANCE
from kilt.games.holdem import CALL, FOLD, Betting, Holdem
from kilt.games.subgame import compatible_weights
from kilt.play.agent import PolicyAgent

DEALS_OF_BOARD = 200  # deals of self-play to which one board with all its hands corresponds
BOARDS = DEALS // DEALS_OF_BOARD  # number of sampled boards
KINDS: tuple[str, ...] = ("fold", "call", "raise")


class BoardDecision(NamedTuple):
    """A decision on a given board, with each private hand's probability of reaching it.

    Both players follow one strategy. Arrays have an entry for each hand.
    """

    position: Betting
    actions: tuple[str, ...]
    shares: FloatArray  # [action, hand] of the actor; 0 for hands that share a card with the board
    own: FloatArray  # [hand] probability that the actor plays up to here
    met: FloatArray  # [hand] number of the opponent's hands that reach the decision and share no card with it


def reachable_decisions(agent: PolicyAgent, game: Holdem, board: tuple[int, ...]) -> Iterator[BoardDecision]:
    """Yield every decision that can be reached on a board, in all rounds."""
    holes = game.holes
    free = ~np.isin(holes, board).any(axis=1)
    below: list[tuple[Betting, FloatArray]] = [(game.start(), np.tile(free, (2, 1)).astype(np.float64))]
    while below:
        position, reach = below.pop()
        if position.actor == CHANCE:
            (dealt,) = position.actions()
            if game.rules.board_size(position.round + 1) <= len(board):
                below.append((position.after(dealt), reach))
            continue
        if position.actor < 0:
            continue
        seat = position.actor
        policy = agent.policy(position, board[: game.rules.board_size(position.round)])
        shares = policy.probabilities * free
        yield BoardDecision(
            position, policy.actions, shares, reach[seat], compatible_weights(reach[1 - seat], holes, game.deck.size)
        )
        for action, share in zip(policy.actions, shares, strict=True):
            after = reach.copy()
            after[seat] *= share
            if action != FOLD and after[seat].any():
                below.append((position.after(action), after))


def check_tree_strategy(agent: PolicyAgent, game: Holdem, boards: int = BOARDS, seed: int = 0) -> Report:
    """Run all sanity checks of an unabstracted strategy, and report the results.

    Parameters
    ----------
    agent : PolicyAgent
        An agent whose strategy is available at every public state.
    game : Holdem
        The game.
    boards : int
        Number of sampled boards, at least 1.
    seed : int
        Equal seeds give equal reports.

    Returns
    -------
    Report
        `ok` is False if a figure is beyond its bound; its `deals` are the boards.

    Raises
    ------
    PlayError
        The number of boards is less than 1.
    """
    if boards < 1:
        raise PlayError(f"{boards} boards are too few: use 1 or more; the default is {BOARDS}")
    random, rules = np.random.default_rng(seed), game.rules
    cards = sum(rules.board_cards)
    drawn = sorted(tuple(random.permutation(game.deck.size)[:cards].tolist()) for _ in range(boards))
    taken: list[dict[str, float]] = [{} for _ in range(rules.rounds)]
    faced, folded = np.zeros(2), np.zeros(2)
    for board in drawn:
        best = _best(game, board)
        for turn in reachable_decisions(agent, game, board):
            mass = (turn.shares * turn.own * turn.met).sum(axis=1)
            here = taken[turn.position.round]
            for action, part in zip(turn.actions, mass.tolist(), strict=True):
                here[_kind(action)] = here.get(_kind(action), 0.0) + part
            if turn.position.round == rules.rounds - 1 and FOLD in turn.actions:
                fold = turn.shares[turn.actions.index(FOLD)]
                for number, weight in enumerate((turn.own * turn.met, turn.own)):
                    faced[number] += weight[best].sum()
                    folded[number] += (weight * fold)[best].sum()
    findings = [*check_aces(agent, game), _nuts(game, faced, folded)]
    for name, here in zip(rules.round_names, taken, strict=True):
        if total := sum(here.values()):
            figures = {kind: here[kind] / total for kind in KINDS if kind in here}
            findings.append(Finding(f"actions {name}", "frequencies of actions in self-play", figures, "%"))
    return Report(game.name, boards, seed, tuple(findings))


def check_aces(agent: PolicyAgent, game: Holdem) -> Iterator[Finding]:
    """Check how often each player folds aces in the first round, if both follow a strategy.

    The figures are exact, one for each seat.
    """
    holes, ace = game.holes, game.deck.ranks - 1
    hands = (holes // game.deck.suits == ace).all(axis=1)
    if not hands.any():  # a deck of one suit has no pairs
        return
    everybody = compatible_weights(np.ones(len(holes)), holes, game.deck.size)
    folded = [0.0, 0.0]
    for turn in reachable_decisions(agent, game, ()):
        if FOLD in turn.actions:
            fold = turn.own * turn.shares[turn.actions.index(FOLD)] * turn.met / everybody
            folded[turn.position.actor] += float(fold[hands].mean())
    first = game.rules.round_names[0]
    yield Finding(
        f"aces fold {'preflop' if first == 'preflop' else f'in {first}'}",
        "the best private cards should hardly ever fold so early: solve longer",
        dict(zip(game.rules.seat_names, folded, strict=True)),
        "%",
        f"at most {ACES:.1%}",
        max(folded) > ACES,
    )


def _nuts(game: Holdem, faced: FloatArray, folded: FloatArray) -> Finding:
    """Return a finding that says how often the best possible hand folds to a bet in the last round."""
    shares = np.divide(folded, faced, out=np.zeros(2), where=faced > 0)
    names = ("opponent follows the strategy", "opponent tries everything")
    return Finding(
        f"the nuts fold {'on the river' if game.rules.round_names[-1] == 'river' else 'in the last round'}",
        "folding the best possible hand is never right: solve longer, or post-process",
        dict(zip(names, shares.tolist(), strict=True)),
        "%",
        f"at most {NUTS:.0%}",
        float(shares.max()) > NUTS,
    )


def _best(game: Holdem, board: tuple[int, ...]) -> BoolArray:
    """Return whether each hand is the best possible one on a board."""
    holes = game.deck.holes(game.rules.hole_cards).astype(np.int64)
    free = ~np.isin(holes, board).any(axis=1)
    strength = strengths(np.hstack([holes[free], np.tile(np.array(board, np.int64), (free.sum(), 1))]), game.deck)
    best: BoolArray = np.zeros(len(holes), dtype=np.bool_)
    best[free] = strength == strength.max()
    return best


def _kind(action: str) -> str:
    fold, call, bet = KINDS
    return {FOLD: fold, CALL: call}.get(action, bet)
