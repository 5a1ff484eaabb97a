"""Estimators: what a strategy wins, from logs of hands that it, or another strategy, has played [Johanson16 §7].

Player i has played the hands by a strategy σ̂ and is to be judged by a strategy σ; both are known, the opponent's is not
needed. A hand that was seen, z, stands for all ends of hands z' that might as well have been seen, whatever the
opponent's strategy (equation 7.3):

    V(z) = Σ V(z') · π_i^σ(z') / π_i^σ̂(U(z'))        over all z' with z in U(z')

Its mean over hands played by σ̂ is the value of σ. An `Estimator` is a row of three choices:

==================  ================================================================================================
all cards           z' may have any private cards of player i; the denominator is a sum over them (7.20)
endings             z' may end where player i could have ended the hand: by folding, or by calling in the last round
                    too; the denominator stops before that action (7.15, and 7.25 with all cards)
value               what an end is worth: a row of `values.VALUES`, such as money or BC-DIVAT; or AIVAT, which is money
                    with a correction for each chance event and each decision whose probabilities are known
==================  ================================================================================================

With *full* information all cards are seen. With *partial* information the opponent's cards are seen at showdowns
alone; then cards of the opponent are not excluded from player i's, ends that need them are left out, and money takes
the place of other values (section 7.3.1). Estimates may then be biased.

>>> estimator_named("early-folds+all-cards+bc-divat").name
'all-cards+early-folds+bc-divat'
>>> [name for name in ESTIMATORS if ESTIMATORS[name].value == "money"]
['basic', 'early-folds', 'game-endings', 'all-cards', 'all-cards+early-folds', 'all-cards+game-endings']
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import NamedTuple

import numpy as np

from kilt.arrays import FloatArray
from kilt.errors import GameError, PlayError
from kilt.evaluate.stats import Estimate, estimate, in_pairs
from kilt.evaluate.values import VALUES, SeenHand, StateValues
from kilt.games.game import CHANCE, TERMINAL
from kilt.games.holdem import CALL, FOLD, Betting, Holdem
from kilt.play.agent import KnownAgent, PublicPolicy
from kilt.play.dealer import Hand

ENDINGS: dict[str, tuple[str, ...]] = {  # the actions that end a hand and are imagined, by the name of the rule
    "": (),
    "early-folds": (FOLD,),
    "game-endings": (FOLD, CALL),
}
ALL_CARDS, BASIC, MONEY, AIVAT = "all-cards", "basic", "money", "aivat"
FEW, SHARE = 30, 0.01  # effective hands that an estimate should rest on at least, and their share of all hands


class Estimator(NamedTuple):
    """A way to estimate what a strategy wins: which ends a hand stands for, and what they are worth."""

    all_cards: bool = False
    endings: str = ""  # a row of `ENDINGS`
    value: str = MONEY  # a row of `values.VALUES`, or AIVAT

    @property
    def name(self) -> str:
        """Its choices with ``+`` between them; ``basic`` where none is made."""
        parts = [ALL_CARDS] * self.all_cards + [self.endings] * bool(self.endings)
        return "+".join(parts + [self.value] * (self.value != MONEY)) or BASIC


ESTIMATORS: dict[str, Estimator] = {
    row.name: row
    for row in (
        *(Estimator(cards, endings, value) for value in VALUES for cards in (False, True) for endings in ENDINGS),
        *(Estimator(cards, value=AIVAT) for cards in (False, True)),
    )
}


def estimator_named(name: str) -> Estimator:
    """An estimator by name: choices in any order, with ``+`` between them; PlayError where there is none."""
    parts = sorted({*name.split("+")} - {BASIC, MONEY})
    for row in ESTIMATORS.values():
        if parts == sorted({*row.name.split("+")} - {BASIC}):
            return row
    known = [BASIC, ALL_CARDS, *filter(None, ENDINGS), *VALUES, AIVAT]
    raise PlayError(f"unknown estimator {name!r}: use {', '.join(known)}, several with + between them")


# One hand ------------------------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """An end of a hand that the seen one stands for, with every private hand of the judged player.

    `played` goes up to the state from which on all hands stand for this end: the end itself, or the decision before
    the action that ends it.
    """

    position: Betting  # at the end
    action: str  # that ends it, where it is imagined at a decision of the player; "" for the end that was seen
    judged: FloatArray  # [hand] probability that the judged strategy plays up to the end, π_i^σ(z')
    played: FloatArray  # [hand] probability that the playing strategy plays up to that state


class LineStep(NamedTuple):
    """An action of a hand, of any player or of chance, and how likely the judged player comes to it."""

    position: Betting  # before it
    action: str
    judged: FloatArray  # [hand] probability that the judged strategy plays up to the position
    played: FloatArray  # [hand] probability that the playing strategy does
    policy: PublicPolicy | None  # of the judged strategy, where the player acts


class Line(NamedTuple):
    """A seen hand as a line of play of the judged player."""

    steps: list[LineStep]
    outcomes: list[Outcome]  # all that any estimator may need; the end that was seen comes first
    closing: str  # the action by which the player has ended the hand, if it was theirs
    missing: dict[tuple[bool, str], float]  # by cards and endings: see `Estimates.missing`


def follow(seen: SeenHand, played: KnownAgent, judged: KnownAgent) -> Line:
    """Follow a hand with both strategies: reach probabilities of every private hand, and the ends that it stands for.

    PlayError is raised where the playing strategy never plays so.
    """
    hands = len(seen.free(0))
    agents = (played,) if judged is played else (played, judged)
    reach = [np.ones(hands) for _ in agents]  # the last is that of the judged strategy
    outcomes: list[Outcome] = []
    missing = dict.fromkeys(((cards, endings) for cards in (False, True) for endings in ENDINGS), 0.0)
    steps: list[LineStep] = []
    closing = ""
    for before, action in seen.moves():
        closing = ""
        if before.actor != seen.seat:
            steps.append(LineStep(before, action, reach[-1], reach[0], None))
            continue
        board = seen.board_of(before.round)
        said = [agent.policy(before, board) for agent in agents]
        steps.append(LineStep(before, action, reach[-1], reach[0], said[-1]))
        for ends in before.passive_actions():
            after = seen.after(before, ends)
            if after.actor == TERMINAL:
                closing = ends if ends == action else closing
                share = said[-1].share(ends)
                if ends == action or share.any():
                    outcomes.append(Outcome(after, ends, reach[-1] * share, reach[0]))
        if len(agents) > 1:
            _add_missing(missing, seen, before, reach, said)
        reach = [upto * policy.share(action) for upto, policy in zip(reach, said, strict=True)]
    if not reach[0][seen.own] > 0:
        raise PlayError(f"{played.name} never plays {seen.position.history!r} with these cards")
    return Line(steps, [Outcome(seen.position, "", reach[-1], reach[0]), *outcomes], closing, missing)


def _add_missing(
    missing: dict[tuple[bool, str], float],
    seen: SeenHand,
    position: Betting,
    reach: Sequence[FloatArray],
    said: Sequence[PublicPolicy],
) -> None:
    """Add the weight of what the judged strategy does at a decision and the playing one never does."""
    free = seen.free(position.round)
    for action in said[1].actions:
        theirs, mine = (before * policy.share(action) for before, policy in zip(reach, said, strict=True))
        ends = action in (FOLD, CALL) and seen.after(position, action).actor == TERMINAL
        for cards, endings in missing:
            if ends and action in ENDINGS[endings]:
                continue  # the weight of such an end does not ask what the playing strategy does here
            if cards and not theirs[free].any():
                missing[cards, endings] += float(mine[free].sum() / reach[0][free].sum())
            elif not cards and not theirs[seen.own]:
                missing[cards, endings] += float(mine[seen.own] / reach[0][seen.own])


def hand_values(
    seen: SeenHand,
    line: Line,
    estimators: Sequence[Estimator],
    states: StateValues | None = None,
    opponent: KnownAgent | None = None,
) -> FloatArray:
    """What estimators make of one hand.

    Parameters
    ----------
    seen : SeenHand
        The hand.
    line : Line
        What `follow` has found in it.
    estimators : sequence of Estimator
        Rows of `ESTIMATORS`.
    states : StateValues, optional
        Where AIVAT takes its values from.
    opponent : KnownAgent, optional
        The opponent's strategy, where it is known: AIVAT corrects for its actions too.

    Returns
    -------
    ndarray, shape (2, estimators)
        Values in chips, and weights: what the values would be if all ends were worth 1. The mean of either over hands
        that were played is an estimate: of what the judged strategy wins, and of 1.
    """
    known: dict[tuple[int, bool, str], float] = {}  # what an outcome adds; estimators have many in common
    weights: dict[tuple[int, bool], FloatArray] = {}
    found = np.zeros((2, len(estimators)))
    for place, row in enumerate(estimators):
        value = row.value if seen.opponent is not None and row.value != AIVAT else MONEY
        for number in _chosen(line, row, opponent_seen=seen.opponent is not None):
            outcome, cards = line.outcomes[number], row.all_cards
            hands = seen.free_hands(outcome.position.round) if cards else seen.own_hand
            if (number, cards) not in weights:
                weight = weights[number, cards] = outcome.judged[hands] / outcome.played[hands].sum()
                known[number, cards, ""] = float(weight.sum())
            if (number, cards, value) not in known:
                worth = VALUES[value](seen, outcome.position, hands)
                known[number, cards, value] = float(weights[number, cards] @ worth)
            found[0, place] += known[number, cards, value]
            found[1, place] += known[number, cards, ""]
        if row.value == AIVAT and seen.opponent is not None:
            if states is None:
                raise PlayError("AIVAT needs values of states: give a blueprint that they are made from")
            found[0, place] += correction(seen, line, states, opponent, all_cards=row.all_cards)
    return found


def correction(
    seen: SeenHand, line: Line, states: StateValues, opponent: KnownAgent | None = None, *, all_cards: bool = True
) -> float:
    """What AIVAT adds to the money of a hand: chips, with mean 0 whatever the values of `states` are [Burch18].

    For each step whose probabilities are known (of chance, of the judged player, of the opponent where it is known):
    the mean of the values of what may follow, less the value of what did. Both are means over the private hands that
    the player may hold, or those of the hand that was held.
    """

    def weighted(judged: FloatArray, played: FloatArray, r: int, values: FloatArray) -> float:
        hands = seen.free_hands(r) if all_cards else seen.own_hand
        return float(judged[hands] @ values[hands] / played[hands].sum())

    start = line.steps[0]
    total = states.start(seen.seat) - weighted(start.judged, start.played, 0, seen.state_value(states, start.position))
    following: list[LineStep | Outcome] = [*line.steps[1:], line.outcomes[0]]
    for step, then in zip(line.steps, following, strict=True):
        before, r = step.position, step.position.round
        value = seen.state_value(states, then.position)
        if before.actor == CHANCE:
            mean = seen.expected_value(states, before)
        elif step.policy is not None:
            after = [seen.state_value(states, seen.after(before, action)) for action in step.policy.actions]
            mean = (step.policy.shares * after).sum(axis=0)
        elif opponent is not None:
            policy = opponent.policy(before, seen.board_of(r))
            theirs = policy.shares[:, seen.their_hand]
            likely = [(share, action) for share, action in zip(theirs, policy.actions, strict=True) if share]
            mean = sum(
                (share * seen.state_value(states, seen.after(before, action)) for share, action in likely),
                np.zeros(len(value)),
            )
        else:
            continue
        total += weighted(step.judged, step.played, r, mean)
        total -= weighted(then.judged, then.played, then.position.round, value)
    return total


def _chosen(line: Line, estimator: Estimator, *, opponent_seen: bool) -> list[int]:
    """The numbers of the outcomes that a hand stands for under an estimator's rule of endings."""
    endings = [ends for ends in ENDINGS[estimator.endings] if opponent_seen or ends == FOLD]
    imagined = [number for number, outcome in enumerate(line.outcomes) if outcome.action in endings]
    return imagined if line.closing in endings else [0, *imagined]


# Many hands ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogEstimate:
    """What one estimator makes of a log.

    Attributes
    ----------
    estimator : Estimator
    won : Estimate
        What the judged strategy wins, in mbb/h, with its 95% interval.
    deviation : float
        Standard deviation of one hand, in mbb.
    effective : float
        Effective number of hands, (Σ w)² / Σ w² of their weights: as many that all count alike would do as well.
    weight : Estimate
        Mean weight of a hand. It is 1 where the playing strategy may do all that the judged one does.
    missing : float
        Estimated share of its hands in which the judged strategy does what the playing one never does. What it wins
        in them is not in the estimate.
    """

    estimator: Estimator
    won: Estimate
    deviation: float
    effective: float
    weight: Estimate
    missing: float
    hands: int

    @property
    def warnings(self) -> list[str]:
        """What is to be said about an estimate that cannot be relied on."""
        found = []
        if self.effective < max(SHARE * self.hands, min(FEW, self.hands / 2)):
            found.append(
                f"degenerate weights: {self.effective:,.0f} of {self.hands:,} hands count, the others weigh next to "
                "nothing; do not rely on the interval"
            )
        if self.missing > 0:
            found.append(
                f"missing support: in {100 * self.missing:.2g}% of its hands the judged strategy does what the one "
                "that played never does; they are not in the estimate"
            )
        return found


@dataclass
class LogEstimates:
    """Estimates from a log, and the hands that could not be judged.

    Attributes
    ----------
    rows : list of LogEstimate
        One per estimator, in the order asked for.
    hands : int
        Number of hands that were judged.
    left_out : dict
        Number of hands that were not, by the reason.
    duplicate : bool
        Whether all hands came in pairs with the same cards and the players swapped; a pair is one unit then.
    """

    rows: list[LogEstimate] = field(default_factory=list)
    hands: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    duplicate: bool = False


def estimate_from_log(
    game: Holdem,
    hands: Iterable[Hand],
    player: str,
    played: KnownAgent,
    judged: KnownAgent | None = None,
    estimators: Sequence[Estimator] | None = None,
    *,
    states: StateValues | None = None,
    opponent: KnownAgent | None = None,
    partial: bool = False,
    tick: Callable[[int], None] = lambda hands: None,
) -> LogEstimates:
    """What a strategy wins, from hands that it or another one has played [Johanson16 §7].

    Parameters
    ----------
    game : Holdem
        What was played.
    hands : iterable of Hand
        As logs have them: see `kilt.play.acpc`.
    player : str
        The name of the player in these hands whose strategy is known.
    played : KnownAgent
        The strategy that the player has played by.
    judged : KnownAgent, optional
        The strategy to be judged in its place against the same opponents; left out: `played`.
    estimators : sequence of Estimator, optional
        Rows of `ESTIMATORS`. Left out: all for which enough is given.
    states : StateValues, optional
        Where AIVAT takes its values from: see `kilt.evaluate.aivat`.
    opponent : KnownAgent, optional
        The strategy of the opponent, where it is known: AIVAT corrects for its actions too.
    partial : bool
        Take the opponent's cards as seen at showdowns alone.
    tick : callable
        Hears after each hand how many have been looked at.

    Returns
    -------
    LogEstimates
        Hands in which the player does not take part, or does what `played` never does, are counted and left out.
    """
    judged = judged or played
    if estimators is None:
        estimators = [row for row in ESTIMATORS.values() if states or row.value != AIVAT]
    result, found, kept = LogEstimates(), [], []
    missing: list[dict[tuple[bool, str], float]] = []
    for number, hand in enumerate(hands, start=1):
        tick(number)
        if player not in hand.players:
            result.left_out[f"{player} does not take part"] += 1
            continue
        try:
            seen = SeenHand(game, hand, hand.players.index(player), partial=partial)
            line = follow(seen, played, judged)
        except (PlayError, GameError) as error:
            result.left_out[_reason(error, hand)] += 1
            continue
        found.append(hand_values(seen, line, estimators, states, opponent))
        missing.append(line.missing)
        kept.append(hand)
    result.hands = len(kept)
    if kept:
        result.duplicate = in_pairs(kept)
        won, weight = np.stack(found, axis=2)
        for place, row in enumerate(estimators):
            lost = float(np.mean([each[row.all_cards, row.endings] for each in missing]))
            mbb = won[place] * (1000 / game.rules.big_blind)
            result.rows.append(_summary(row, mbb, weight[place], lost, pairs=result.duplicate))
    return result


def _summary(row: Estimator, won: FloatArray, weight: FloatArray, missing: float, *, pairs: bool) -> LogEstimate:
    """The mean of values in mbb with its interval; the two hands of a pair are one unit."""
    units, heavy = (x.reshape(-1, 2).mean(axis=1) if pairs else x for x in (won, weight))
    square = float(weight @ weight)
    return LogEstimate(
        row,
        estimate(units),
        sqrt(float(won.var(ddof=1))) if len(won) > 1 else float("inf"),
        float(weight.sum()) ** 2 / square if square else 0.0,
        estimate(heavy),
        missing,
        len(won),
    )


def _reason(error: Exception, hand: Hand) -> str:
    """Why a hand is left out, without what is its own."""
    return str(error).replace(repr(hand.position.history), "such a line")
