"""Estimate a lower bound on an agent's exploitability, by an exact best response in the last round.

The responder checks and calls before the last round. There it plays a best response to the agent's range, with every
hand at once: it maximises over its actions, with a menu of bet sizes at each of its decisions, and looks ahead to the
end of the hand. A local best response (`lbr`) that begins in the last round looks only one answer ahead, so it wins no
more with the same sizes.

Hands are played only to choose boards and lines. The result of a hand is the responder's value of the public state at
the beginning of the last round, averaged over all pairs of private hands by their probability: neither player's cards
add variance.

>>> from kilt.games import load_game
>>> from kilt.play.agent import BASELINES
>>> bound = last_round_bound(load_game("leduc"), BASELINES["always-fold"], hands=8)
>>> print(bound.won)  # an ante of 1 in each hand
+1000.0 ± 0.0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kilt.abstraction.actions import ActionAbstraction, actions_of
from kilt.arrays import FloatArray
from kilt.cards.equity import hand_strength
from kilt.evaluate.lbr import BETS, LowerBound, allowed_raises
from kilt.evaluate.stats import played_rate, win_rate
from kilt.games.game import TERMINAL
from kilt.games.holdem import CALL, FOLD, Betting, Holdem
from kilt.games.subgame import compatible_weights
from kilt.play.agent import BASELINES, Agent, PolicyAgent, require_policy
from kilt.play.dealer import Hand
from kilt.play.match import Load, load_once, play_match

CALLER = "always-call"


@dataclass(frozen=True)
class LastRoundResponse:
    """Re-evaluates hands of an always-call player as if it best-responded in the last round.

    The hands are those of `CALLER` against an agent.

    Parameters
    ----------
    game : Holdem
        The rules.
    bets : ActionAbstraction
        The raises that the responder considers in no-limit games; limit games have one.
    """

    game: Holdem
    bets: ActionAbstraction

    def __call__(self, agents: tuple[Agent, Agent], hands: Sequence[Hand]) -> list[float]:
        """Return the chips that the responder, who is the first player, wins in each hand: see `value`."""
        agent = require_policy(agents[1])
        return [self.value(agent, hand, hand.number % 2) for hand in hands]

    def value(self, agent: PolicyAgent, hand: Hand, seat: int) -> float:
        """Return the mean winnings of the best response over its private hands, given the board and betting.

        The result is in chips. The board and the betting before the last round are those of the hand.
        """
        rules, board = self.game.rules, hand.cards.board
        start, reach = self.game.start(), np.ones(len(self.game.holes))
        for before, action in self.game.positions.moves_to(hand.position):
            if before.actor >= 0 and before.round == rules.rounds - 1:
                break
            if before.actor == 1 - seat:
                reach = reach * agent.policy(before, board[: rules.board_size(before.round)]).probability(action)
            start = self.game.positions.after(before, action)
        seen = board if start.folded is None else board[: rules.board_size(start.round)]
        free = ~np.isin(self.game.holes, seen).any(axis=1)
        reach = reach * free
        met = self._rivals(reach)[free].sum()
        return float(self._response(agent, start, seen, reach, seat)[free].sum() / met)

    def _response(
        self, agent: PolicyAgent, position: Betting, board: tuple[int, ...], reach: FloatArray, seat: int
    ) -> FloatArray:
        """Return the chips that each hand of the responder wins after a position against the agent's weighted hands."""
        if not reach.any():
            return np.zeros_like(reach)
        if position.folded is not None:
            return self._rivals(reach) * (position.stake if position.folded != seat else -position.stake)
        if position.actor == TERMINAL or position.round < self.game.rules.rounds - 1:  # neither player can bet any more
            return self._showdown(board, reach) * position.stake
        after = self.game.positions.after
        if position.actor != seat:
            policy = agent.policy(position, board)
            total = np.zeros_like(reach)
            for action in policy.actions:
                total += self._response(agent, after(position, action), board, reach * policy.probability(action), seat)
            return total
        best = self._response(agent, after(position, CALL), board, reach, seat)
        for action in [*([FOLD] if position.facing else []), *allowed_raises(position, self.bets)]:
            best = np.maximum(best, self._response(agent, after(position, action), board, reach, seat))
        return best

    def _showdown(self, board: tuple[int, ...], reach: FloatArray) -> FloatArray:
        """Return the weight of the opponent's hands that each hand beats at a showdown, minus that of better hands."""
        rules, met = self.game.rules, self._rivals(reach)
        strength = hand_strength(board, reach, rules.deck, board_size=len(board), hole_cards=rules.hole_cards)
        return np.where(met > 0, met * (2 * np.nan_to_num(strength) - 1), 0.0)

    def _rivals(self, reach: FloatArray) -> FloatArray:
        return compatible_weights(reach, self.game.holes, self.game.deck.size)


def last_round_bound(
    game: Holdem,
    agent: Agent | str,
    hands: int = 1000,
    seed: int = 0,
    *,
    bets: ActionAbstraction | str = BETS,
    load: Load | None = None,
    processes: int = 1,
    tick: Callable[[int], None] = lambda hands: None,
    stop: Callable[[], bool] = lambda: False,
) -> LowerBound:
    """Estimate a lower bound on an agent's exploitability, by an exact best response in the last round.

    Parameters
    ----------
    game, agent, hands, seed, bets, load, processes, tick, stop
        As in `lbr.lower_bound`.

    Returns
    -------
    LowerBound
        `won` is the bound in mbb/h; `money` is the win rate of a player who always calls, on the same hands.
    """
    menu = actions_of(bets) if isinstance(bets, str) else bets
    require_policy(load_once(agent, load))
    match = play_match(
        game,
        (BASELINES[CALLER], agent),
        hands,
        seed,
        load=load,
        processes=processes,
        evaluator=LastRoundResponse(game, menu),
        tick=tick,
        stop=stop,
    )
    return LowerBound(win_rate(match), played_rate(match), match.hands)
