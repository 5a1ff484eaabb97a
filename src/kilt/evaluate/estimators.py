"""Estimate a strategy's win rate from logged hands, even if another strategy played them [Johanson16 §7].

Player i has played the hands with a strategy σ̂, and a strategy σ is to be evaluated. Both strategies are known; the
opponent's is not needed. An observed hand z stands for all terminal histories z' that might as well have been observed,
whatever the opponent's strategy (equation 7.3):

    V(z) = Σ V(z') · π_i^σ(z') / π_i^σ̂(U(z'))        over all z' with z in U(z')

Its mean over hands played by σ̂ is the value of σ: see `evaluate.log_estimates`. An `Estimator` is a row of three
choices:

=========  =========================================================================================================
all cards  z' may have any private cards of player i; the denominator is a sum over them (7.20)
endings    z' may end wherever player i could have ended the hand: by folding, or by calling in the last round too;
           the denominator stops before that action (7.15, and 7.25 with all cards)
value      the value of a terminal history: a row of `values.VALUES`, such as money or BC-DIVAT; or AIVAT, which is
           money with a correction for each chance event and each decision with known probabilities
=========  =========================================================================================================

With *full* information all cards are known. With *partial* information the opponent's cards are known only at
showdowns; then player i's hands may include the opponent's cards, endings that need these cards are left out, and money
replaces other values (section 7.3.1). Estimates may then be biased.

>>> estimator_named("early-folds+all-cards+bc-divat").name
'all-cards+early-folds+bc-divat'
>>> [name for name in ESTIMATORS if ESTIMATORS[name].value == "money"]
['basic', 'early-folds', 'game-endings', 'all-cards', 'all-cards+early-folds', 'all-cards+game-endings']
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from kilt.arrays import FloatArray
from kilt.errors import PlayError
from kilt.evaluate.values import VALUES, HandValues, LoggedHands, StateValues, folded_winnings
from kilt.games.game import CHANCE, TERMINAL
from kilt.games.holdem import CALL, FOLD, Betting
from kilt.play.agent import PolicyAgent, PublicPolicy

ENDINGS: dict[str, tuple[str, ...]] = {  # the imagined final actions, by the name of the rule
    "": (),
    "early-folds": (FOLD,),
    "game-endings": (FOLD, CALL),
}
# the sets of terminal histories that a hand stands for
RULES = [(cards, endings) for cards in (False, True) for endings in ENDINGS]
ALL_CARDS, BASIC, MONEY, DIVAT, AIVAT = "all-cards", "basic", "money", "divat", "aivat"


class Estimator(NamedTuple):
    """A method that estimates a strategy's winnings from logged hands, such as importance sampling with AIVAT.

    Its fields say which terminal histories a hand stands for, and how these are valued.
    """

    all_cards: bool = False
    endings: str = ""  # a row of `ENDINGS`
    value: str = MONEY  # a row of `values.VALUES`, or AIVAT

    @property
    def name(self) -> str:
        """The estimator's name: its options joined by ``+``, or ``basic``."""
        parts = [ALL_CARDS] * self.all_cards + [self.endings] * bool(self.endings)
        return "+".join(parts + [self.value] * (self.value != MONEY)) or BASIC

    @property
    def slow(self) -> bool:
        """Whether the estimator is slow, because it evaluates every private hand on many boards.

        In hold'em it evaluates some 10 hands per second.
        """
        return self.all_cards and self.value == DIVAT


ESTIMATORS: dict[str, Estimator] = {
    row.name: row
    for row in (
        *(Estimator(cards, endings, value) for value in VALUES for cards in (False, True) for endings in ENDINGS),
        *(Estimator(cards, value=AIVAT) for cards in (False, True)),
    )
}


def estimator_named(name: str) -> Estimator:
    """Return an estimator by name, such as ``all-cards+aivat``, with parts in any order.

    Raises PlayError if the name is unknown.
    """
    parts = sorted({*name.split("+")} - {BASIC, MONEY})
    for row in ESTIMATORS.values():
        if parts == sorted({*row.name.split("+")} - {BASIC}):
            return row
    known = [BASIC, ALL_CARDS, *filter(None, ENDINGS), *VALUES, AIVAT]
    raise PlayError(f"unknown estimator {name!r}: use {', '.join(known)}, several with + between them")


# Hands with the same betting -----------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """A way in which a logged hand could have ended, with its probability for each private hand.

    Estimators evaluate observed hands at such ends.

    `played` is the probability up to the state from which all hands stand for this ending: the end itself, or the
    decision before the final action. Rows are those of `LoggedHands`.
    """

    position: Betting  # at the end
    action: str  # the final action, if it is imagined at a decision of the player; "" for the observed end
    evaluated: FloatArray  # [1 or row, hand] probability that the evaluated strategy plays up to the end, π_i^σ(z')
    played: FloatArray  # [1 or row, hand] probability that the strategy that played plays up to that state


class LineStep(NamedTuple):
    """An action in logged hands, with each private hand's probability of reaching it."""

    position: Betting  # before it
    action: str
    evaluated: FloatArray  # [1 or row, hand] probability that the evaluated strategy plays up to the position
    played: FloatArray  # [1 or row, hand] probability that the strategy that played does
    policies: list[PublicPolicy] | None  # [1 or row] of the evaluated strategy, if the player acts


class Line(NamedTuple):
    """The actions that several logged hands share, and the points at which the hands are evaluated."""

    steps: list[LineStep]
    outcomes: list[Outcome]  # everything an estimator may need; the observed end comes first
    closing: str  # the action by which the player ended the hands, if the player did
    missing: dict[tuple[bool, str], FloatArray]  # [row] by cards and endings: see `LogEstimate.missing`


def follow_line(
    seen: LoggedHands, played: PolicyAgent, evaluated: PolicyAgent, endings: Collection[str] = ENDINGS["game-endings"]
) -> Line:
    """Compute each private hand's probability of reaching each action of logged hands, for two strategies.

    One strategy played the hands, the other is to be evaluated.

    The result also has the endings that the hands stand for; `endings` are the final actions that estimators may
    imagine.

    Raises
    ------
    PlayError
        The strategy that played never plays one of the hands.
    """
    agents = (played,) if evaluated is played else (played, evaluated)
    reach = [np.ones((1, seen.hands)) for _ in agents]  # the last is that of the evaluated strategy
    outcomes: list[Outcome] = []
    missing = {rule: np.zeros(len(seen)) for rule in RULES}
    steps: list[LineStep] = []
    for before, action in seen.shared_actions():
        if before.actor != seen.seat:
            steps.append(LineStep(before, action, reach[-1], reach[0], None))
            continue
        said = [seen.policies(agent, before) for agent in agents]
        steps.append(LineStep(before, action, reach[-1], reach[0], said[-1]))
        for ends in endings:
            if ends == CALL or before.facing:
                after = seen.after(before, ends)
                if after.actor == TERMINAL and (ends == action or any(policy.may_take(ends) for policy in said[-1])):
                    outcomes.append(Outcome(after, ends, reach[-1] * _shares(said[-1], ends), reach[0]))
        if len(agents) > 1:
            _add_missing(missing, seen, before, reach, said)
        reach = [upto * _shares(policies, action) for upto, policies in zip(reach, said, strict=True)]
        if not (seen.of_held_hands(reach[0]) > 0).all():
            raise PlayError(f"{played.name} never plays {seen.position.history!r} with these cards")
    closing = steps[-1].action if steps and steps[-1].position.actor == seen.seat else ""
    return Line(steps, [Outcome(seen.position, "", reach[-1], reach[0]), *outcomes], closing, missing)


def _shares(policies: Sequence[PublicPolicy], action: str) -> FloatArray:
    """Return the probability of an action with each private hand under each of several policies, [1 or row, hand]."""
    return np.stack([policy.probability(action) for policy in policies])


def _add_missing(
    missing: dict[tuple[bool, str], FloatArray],
    seen: LoggedHands,
    position: Betting,
    reach: Sequence[FloatArray],
    said: Sequence[Sequence[PublicPolicy]],
) -> None:
    """Add the weight of the actions at a decision that the strategy that played never takes.

    Only actions that the evaluated strategy takes have weight.
    """
    free = seen.possible_hands(position.round)
    for action in dict.fromkeys(action for policy in said[1] for action in policy.actions):
        theirs, mine = (upto * _shares(policies, action) for upto, policies in zip(reach, said, strict=True))
        ends = action in (FOLD, CALL) and seen.after(position, action).actor == TERMINAL
        never = {
            True: np.vecdot(theirs, free) == 0,
            False: seen.of_held_hands(theirs) == 0,
        }  # by whether all cards count
        for cards, endings in missing:
            if ends and action in ENDINGS[endings]:
                continue  # the weight of such an ending does not depend on the strategy that played here
            if never[cards].any():
                lost = seen.importance_weights(mine, reach[0], position.round, all_cards=cards)
                missing[cards, endings] += np.where(never[cards], lost, 0.0)


def hand_values(
    seen: LoggedHands,
    line: Line,
    estimators: Sequence[Estimator],
    states: StateValues | None = None,
    opponent: PolicyAgent | None = None,
) -> FloatArray:
    """Evaluate logged hands by several estimators: return each hand's value in chips, and its weight.

    Parameters
    ----------
    seen : LoggedHands
        The hands.
    line : Line
        The result of `follow_line` for these hands.
    estimators : sequence of Estimator
        Rows of `ESTIMATORS`.
    states : StateValues, optional
        State values for AIVAT.
    opponent : PolicyAgent, optional
        The opponent's strategy, if it is known: AIVAT also corrects for its actions.

    Returns
    -------
    ndarray, shape (2, estimators, rows)
        Values in chips, and weights: the values if every ending were worth 1. The mean of the values over the hands
        estimates the value of the evaluated strategy, the mean of the weights estimates 1.

    Raises
    ------
    PlayError
        AIVAT has no state values.
    """
    known: dict[tuple[int, bool, str], FloatArray] = {}  # terms of an outcome, which estimators share
    found = np.zeros((2, len(estimators), len(seen)))
    for place, row in enumerate(estimators):
        value = row.value if seen.opponents is not None and row.value != AIVAT else MONEY
        for number in _chosen(line, row, opponent_seen=seen.opponents is not None):
            (end, _, evaluated, played), cards = line.outcomes[number], row.all_cards
            if (number, cards, "") not in known:
                known[number, cards, ""] = seen.importance_weights(evaluated, played, end.round, all_cards=cards)
            if (number, cards, value) not in known:
                if value == MONEY and end.folded is not None:
                    worth = folded_winnings(seen, end) * known[number, cards, ""]
                elif cards:
                    weights = seen.hand_weights(evaluated, played, end.round, all_cards=True)
                    worth = np.vecdot(weights, VALUES[value](seen, end, True))
                else:
                    worth = VALUES[value](seen, end, False) * known[number, cards, ""]
                known[number, cards, value] = worth
            found[0, place] += known[number, cards, value]
            found[1, place] += known[number, cards, ""]
        if row.value == AIVAT and seen.opponents is not None:
            if states is None:
                raise PlayError("AIVAT needs state values: give a blueprint to learn them from")
            found[0, place] += aivat_correction(seen, line, states, opponent, all_cards=row.all_cards)
    return found


def aivat_correction(
    seen: LoggedHands, line: Line, states: StateValues, opponent: PolicyAgent | None = None, *, all_cards: bool = True
) -> FloatArray:
    """Return AIVAT's correction of each hand's raw winnings, in chips [Burch18]. Its mean is 0.

    The mean is 0 for any values `states`. For each step with known probabilities (of chance, of the evaluated player,
    and of the opponent if known), the correction adds the mean value of all possible next states, and subtracts the
    value of the actual one. Both values are means over the private hands that the player may hold, or those of the hand
    that was held.
    """
    path: list[LineStep | Outcome] = [*line.steps, line.outcomes[0]]
    weights = [seen.hand_weights(at.evaluated, at.played, at.position.round, all_cards=all_cards) for at in path]
    total = np.full(len(seen), states.value_at_start(seen.seat))
    for number in range(len(seen)):
        total[number] += _row_correction(seen, number, line, [weight[number] for weight in weights], states, opponent)
    return total


def _row_correction(
    seen: LoggedHands,
    row: int,
    line: Line,
    weights: Sequence[FloatArray],
    states: StateValues,
    opponent: PolicyAgent | None,
) -> float:
    """Return AIVAT's correction of one hand, without the value at the start of the hand.

    `weights` has an array over private hands for each state of the hand.
    """

    def value(position: Betting) -> HandValues:
        return seen.state_value(states, position, row)

    total = -value(line.steps[0].position if line.steps else seen.position).weighted_sum(weights[0])
    for place, (step, weight) in enumerate(zip(line.steps, weights, strict=False)):
        before = step.position
        if before.actor == CHANCE:
            total += float(weight @ seen.expected_value(states, before, row))
        elif step.policies is not None:
            policy = step.policies[row if len(step.policies) > 1 else 0]
            by_column = np.asarray(np.bincount(policy.column, weight, policy.table.shape[1]), dtype=np.float64)
            for action in policy.actions:
                total += value(seen.after(before, action)).action_sum(policy, action, weight, by_column)
        elif opponent is not None:
            board = seen.boards[row][: before.rules.board_size(before.round)]
            policy = opponent.policy(before, board)
            shares = policy.table[:, policy.column[seen.their_hands[row]]]
            for action, share in zip(policy.actions, shares, strict=True):
                if share:
                    total += float(share) * value(seen.after(before, action)).weighted_sum(weight)
        else:
            continue
        after = line.steps[place + 1].position if place + 1 < len(line.steps) else seen.position
        total -= value(after).weighted_sum(weights[place + 1])
    return total


def _chosen(line: Line, estimator: Estimator, *, opponent_seen: bool) -> list[int]:
    """Return the indices of the outcomes that hands stand for under an estimator's rule of endings."""
    endings = [ends for ends in ENDINGS[estimator.endings] if opponent_seen or ends == FOLD]
    imagined = [number for number, outcome in enumerate(line.outcomes) if outcome.action in endings]
    return imagined if line.closing in endings else [0, *imagined]
