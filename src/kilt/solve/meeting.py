"""What one abstract strategy wins from another, on deals that both are dealt in both seats.

Both see the same tree of bets, and cards each through their own abstraction. What they may bet is not drawn: the walk
takes the mean over all of it, so that the only luck is that of the cards, and much of that cancels when the seats are
swapped. A match that is played out takes many more hands to say the same.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.abstraction.abstract_game import SlotLayout, SyntheticGame
from kilt.arrays import Array, FloatArray
from kilt.errors import GameError
from kilt.games.game import CHANCE
from kilt.solve.external import DEALS, WalkWorkspace, rules_of
from kilt.solve.meeting_kernels import Seat, meet
from kilt.strategy.fixed import chances

SEED = 2**63  # far from those of solvers


class Player(NamedTuple):
    """A strategy over the slots of an abstract game."""

    abstract: SlotLayout
    shares: Array


def habitual(game: SlotLayout, habit: str) -> Player:
    """A player with one of the habits of `strategy.fixed`, who has the bets of a game: all hands are in one bucket."""
    one = (1,) * game.game.rules.rounds
    abstract = SyntheticGame(game.game, (one, one), game.actions)
    vars(abstract)["betting"] = game.betting  # they are the same
    nodes, labels = abstract.betting.nodes, abstract.betting.labels
    shares = np.zeros(abstract.slots, dtype=np.uint8)
    for node in np.flatnonzero(nodes.actor >= 0).tolist():
        child, count = int(nodes.first_child[node]), int(nodes.children[node])
        share = chances(habit, labels[child : child + count])
        shares[abstract.first[node] : abstract.first[node + 1]] = np.round(share * 255)
    return Player(abstract, shares)


def winnings(one: Player, other: Player, deals: int, seed: int = SEED, threads: int = 1) -> FloatArray:
    """[deal, seat] what one player wins from another in chips, in each seat."""
    if one.abstract.betting.labels != other.abstract.betting.labels:
        raise GameError("the two strategies have other bets: let them meet in a match, where bets are translated")
    won = np.empty((deals, 2))
    rules, theirs = rules_of(one.abstract, 1), rules_of(other.abstract, 1)
    call = _calls(one.abstract)

    def work(thread: int) -> None:
        mine, yours = WalkWorkspace(one.abstract), WalkWorkspace(other.abstract)
        for start in range(thread * DEALS, deals, threads * DEALS):
            part = won[start : start + DEALS]
            bucket, outcome = mine.deal(np.uint64(seed), start, len(part))
            seats = (
                Seat(rules.nodes, bucket, one.shares),
                Seat(theirs.nodes, yours.deal(np.uint64(seed), start, len(part))[0], other.shares),
            )
            meet(rules, *seats, outcome, call, mine.queue, part)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    return won


def _calls(abstract: SlotLayout) -> npt.NDArray[np.uint8]:
    """[node] which of its actions is the call: the first, or the second after a fold."""
    nodes, labels = abstract.betting.nodes, abstract.betting.labels
    folds = np.array([label == "f" for label in labels])
    call = folds[np.minimum(nodes.first_child, len(folds) - 1)].astype(np.uint8)
    for node in np.flatnonzero(nodes.actor == CHANCE)[::-1]:  # walks see what follows chance in its place
        call[node] = call[nodes.first_child[node]]
    return call
