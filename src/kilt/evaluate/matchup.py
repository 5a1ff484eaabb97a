"""Evaluate one player against another by the lowest-variance method that both support.

============  ========================================================================================================
``expected``  Both players use one betting tree (see `head_to_head.strategies_in_one_tree`): cards are dealt, and the
expectation
              over the actions of both players is computed. Or one player re-solves the other's blueprint: see
              `resolving`
``aivat``     One player is a blueprint: hands are played, and AIVAT [Burch18] reduces their variance. It takes some
              milliseconds per hand and, once per blueprint, the time to learn state values
``played``    Hands are played, and the raw winnings count
============  ========================================================================================================

All methods have the same mean. `evaluate_matchup` chooses between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kilt.engines import Engine
from kilt.errors import PlayError
from kilt.evaluate.aivat import BlueprintValues, has_learnt_values
from kilt.evaluate.estimators import estimator_named, follow_line, hand_values
from kilt.evaluate.head_to_head import MOST_SLOTS, expected_match, strategies_in_one_tree
from kilt.evaluate.resolving import resolving_match, resolving_player
from kilt.evaluate.values import LoggedHands, group_by_betting
from kilt.games.holdem import Holdem
from kilt.play.agent import Agent, Fixed, PolicyAgent, Random, RememberingAgent, has_policy
from kilt.play.batch import BatchMatch
from kilt.play.blueprint import BlueprintAgent
from kilt.play.dealer import Hand
from kilt.play.match import AIVAT, EXPECTED, PLAYED, HandJudge, Load, Match, MatchSetup, play_match

BEST = "best"
WAYS = (BEST, EXPECTED, AIVAT, PLAYED)
WORTH_LEARNING = 8_000  # minimum hands of a match for which learning state values pays
JUDGED = 30  # minimum observations of a match that show which method varies less
SAMPLE = 2_000  # hands that are played to measure the variance of raw winnings, if they need not be played


def evaluate_matchup(
    game: Holdem,
    players: tuple[Agent | str, Agent | str],
    hands: int,
    seed: int = 0,
    *,
    way: str = BEST,
    also_play: bool = False,
    duplicate: bool = True,
    load: Load | None = None,
    processes: int = 1,
    engine: Engine | None = None,
    sink: Callable[[Hand], None] | None = None,
    tick: Callable[[int], None] = lambda hands: None,
    stop: Callable[[], bool] = lambda: False,
) -> Match:
    """Evaluate two players against each other, by default with the lowest-variance method.

    Parameters
    ----------
    game, players, hands, seed, duplicate, load, engine, sink, tick, stop
        As in `kilt.play.match.play_match`. With a `sink`, hands are always played.
    way : str
        One of `WAYS`. ``best`` chooses the first of the other methods that the players allow and that pays. AIVAT does
        not pay if it is cheaper to play more hands: against baselines, and between blueprints, whose play is compiled.
        Nor does it pay in matches of less than `WORTH_LEARNING` hands, unless values were learnt before. If AIVAT's
        results vary more than the raw winnings, ``best`` uses the raw winnings.
    also_play : bool
        Play all hands, whatever the method. Otherwise a sample is played, to measure the variance of raw winnings.
    processes : int
        Maximum number of processes, or of threads if no hands are played. The result does not depend on it.

    Returns
    -------
    Match
        If `results` are not raw winnings, `played` has the results of the played hands, on the same deals.

    Raises
    ------
    PlayError
        The method is unknown, or the players do not allow it.
    """
    if way not in WAYS:
        raise PlayError(f"unknown method {way!r}: use one of {', '.join(WAYS)}")

    def play(number: int, tick: Callable[[int], None], evaluator: HandJudge | None = None) -> Match:
        return play_match(
            game,
            players,
            number,
            seed,
            duplicate=duplicate,
            load=load,
            processes=processes,
            engine=engine,
            evaluator=evaluator,
            sink=sink,
            tick=tick,
            stop=stop,
        )

    agents = MatchSetup(game, players, load=load).agents
    whole = also_play or sink is not None
    if way in (BEST, EXPECTED) and duplicate and not engine and (place := resolving_player(agents)) is not None:
        match = resolving_match(agents[place], hands, seed, second=place == 1, tick=tick, stop=stop)  # type: ignore[arg-type]
        names = agents[0].name, agents[1].name
        return replace(match, players=names, played=play(hands, lambda done: None).results if whole else None)
    strategies = None if way in (AIVAT, PLAYED) or (way == BEST and engine) else strategies_in_one_tree(agents)
    chosen = way == BEST
    if chosen:
        way = EXPECTED if strategies else _way_to_play(game, agents, hands)
    if way == EXPECTED and strategies is None:
        raise PlayError(
            f"{agents[0].name} and {agents[1].name} do not use one betting tree, so that bets are translated, or "
            f"have more than {MOST_SLOTS:,} infoset-actions: give `way` {AIVAT} or {PLAYED}"
        )
    if way == AIVAT:
        evaluated = _blueprint_of(agents)
        if evaluated is None:
            raise PlayError(
                f"neither {agents[0].name} nor {agents[1].name} is a run, from which AIVAT could learn values: "
                f"give `way` {PLAYED}"
            )
        evaluator = AivatEvaluator(game, evaluated)
        evaluator.values(agents)  # learnt here, and read by other processes
        return _narrower(play(hands, tick, evaluator)) if chosen else play(hands, tick, evaluator)
    if strategies is None:
        return play(hands, tick)

    def half(hands: int) -> None:
        tick(hands // 2 if whole else hands)

    match = expected_match(
        game, agents, strategies, hands, seed, duplicate=duplicate, threads=processes, tick=half, stop=stop
    )
    if whole:
        played = play(hands, lambda done: tick((hands + done) // 2))
    else:
        played = play(min(hands, SAMPLE), lambda done: None)
    return replace(
        match,
        played=played.results,
        seconds=match.seconds + played.seconds,
        cpu_seconds=match.cpu_seconds + played.cpu_seconds,
    )


@dataclass(frozen=True)
class AivatEvaluator:
    """Evaluates the hands of a match by AIVAT with all cards, if a player is a blueprint.

    It is a `HandJudge`.

    Parameters
    ----------
    game : Holdem
        The rules.
    evaluated_player : int
        The index of the player that is a blueprint. If the other player's strategy is available, its actions are
        corrected for too.
    """

    game: Holdem
    evaluated_player: int

    def __call__(self, agents: tuple[Agent, Agent], hands: Sequence[Hand]) -> list[float]:
        """Return the chips to the first player in each hand, after variance reduction."""
        player, states, opponent = self.values(agents)
        found, seats = np.empty(len(hands)), [(hand.number + self.evaluated_player) % 2 for hand in hands]
        for numbers in group_by_betting(hands, seats):
            seen = LoggedHands(self.game, [hands[number] for number in numbers], seats[numbers[0]])
            line = follow_line(seen, player, player, ())
            found[numbers] = hand_values(seen, line, (ALL_CARDS_AIVAT,), states, opponent)[0, 0]
        return [float(value) for value in (found if self.evaluated_player == 0 else -found)]

    def values(self, agents: tuple[Agent, Agent]) -> tuple[BlueprintAgent, BlueprintValues, PolicyAgent | None]:
        """Return the evaluated blueprint, its state values for AIVAT, and the other player.

        The other player is None if its strategy is not available.
        """
        player, other = agents[self.evaluated_player], agents[1 - self.evaluated_player]
        assert isinstance(player, BlueprintAgent)
        if player.name not in _values or _values[player.name].blueprint is not player.blueprint:
            _values[player.name] = BlueprintValues(player.blueprint)
        known = has_policy(other, self.game) and not isinstance(other, RememberingAgent)
        return player, _values[player.name], other if known else None  # type: ignore[return-value]


ALL_CARDS_AIVAT = estimator_named("all-cards+aivat")
_values: dict[str, BlueprintValues] = {}  # state values that this process has loaded, by the name of the player


def _way_to_play(game: Holdem, agents: tuple[Agent, Agent], hands: int) -> str:
    """Return the method for players without a common betting tree: AIVAT if it pays, otherwise played hands."""
    evaluated = _blueprint_of(agents)
    if evaluated is None or BatchMatch.can_play(game, agents) or isinstance(agents[1 - evaluated], Fixed | Random):
        return PLAYED
    blueprint = agents[evaluated].blueprint  # type: ignore[attr-defined]
    return AIVAT if hands >= WORTH_LEARNING or has_learnt_values(blueprint) else PLAYED


def _narrower(match: Match) -> Match:
    """Return a match with AIVAT's results, or with the raw winnings if they vary less: bad values add variance."""
    if match.played is None or len(match.results) < JUDGED or match.results.std() <= match.played.std():
        return match
    return replace(match, results=match.played, played=None, way=PLAYED)


def _blueprint_of(agents: tuple[Agent, Agent]) -> int | None:
    """Return the index of the player that is a blueprint: the first if both are, None if neither is."""
    return next((place for place, agent in enumerate(agents) if type(agent) is BlueprintAgent), None)
