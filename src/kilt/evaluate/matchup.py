"""What one player wins from another, by the way that leaves the least luck in it and that the two players allow.

==============  ====================================================================================================
``expected``    both bet by one tree (see `head_to_head.in_one_tree`): cards are dealt, and what is expected on them
                over all actions of both is computed
``played``      hands are played, and what is won counts
==============  ====================================================================================================

All have the same mean; the 95% interval of one is as good as that of another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kilt.engines import Engine
from kilt.errors import PlayError
from kilt.evaluate.head_to_head import expected_match, in_one_tree
from kilt.games.holdem import Holdem
from kilt.play.agent import Agent
from kilt.play.dealer import Hand
from kilt.play.match import EXPECTED, PLAYED, Load, Match, play_match

BEST = "best"
WAYS = (BEST, EXPECTED, PLAYED)
SAMPLE = 2_000  # hands that are played to see how much luck they have, where they need not be


def meet(
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
    """Let two players meet.

    Parameters
    ----------
    game, players, hands, seed, duplicate, load, engine, sink, tick, stop
        As in `kilt.play.match.play_match`. With a `sink` hands are always played.
    way : str
        One of `WAYS`; ``best`` is the first of the others that the players allow. PlayError where they do not allow the
        one that is asked for.
    also_play : bool
        Play all hands, whatever the way is. Otherwise some are played, to tell how much luck they have.
    processes : int
        Number of processes, or of threads where nothing is played, at most. The result does not depend on it.

    Returns
    -------
    Match
        Its `played` has the results of hands that were played, on the same deals, where `results` are others.
    """
    if way not in WAYS:
        raise PlayError(f"unknown way {way!r}: use one of {', '.join(WAYS)}")

    def play(number: int, tick: Callable[[int], None]) -> Match:
        return play_match(
            game,
            players,
            number,
            seed,
            duplicate=duplicate,
            load=load,
            processes=processes,
            engine=engine,
            sink=sink,
            tick=tick,
            stop=stop,
        )

    strategies = None
    if way == EXPECTED or (way == BEST and not engine):
        agents = _agent(players[0], load), _agent(players[1], load)
        strategies = in_one_tree(agents)
    if strategies is None:
        if way == EXPECTED:
            raise PlayError(
                f"{agents[0].name} and {agents[1].name} do not bet by one tree, so that bets are translated: "
                "use --way played"
            )
        return play(hands, tick)
    whole = also_play or sink is not None

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


def _agent(player: Agent | str, load: Load | None) -> Agent:
    if not isinstance(player, str):
        return player
    if load is None:
        raise PlayError(f"the player {player!r} is a spec, and nothing is given to load it with: give `load`")
    return load(player)
