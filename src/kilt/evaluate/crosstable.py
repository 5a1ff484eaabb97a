"""Play matches between all pairs of players, and show their win rates in a table.

>>> from kilt.games import load_game
>>> from kilt.play.agent import BASELINES
>>> players = [BASELINES[name] for name in ("always-fold", "always-raise", "always-call")]
>>> table = crosstable(load_game("holdem.limit.2p"), players, hands=200)
>>> str(table.rate(1, 0)), str(table.rate(0, 1))  # winnings of the row's player
('+750.0 ± 0.0', '-750.0 ± 0.0')
>>> str(table.mean(0))  # against all others
'-520.0 ± 47.1'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from kilt.engines import Engine
from kilt.errors import PlayError
from kilt.evaluate.matchup import evaluate_matchup
from kilt.evaluate.stats import Estimate, estimate_mean, win_rate
from kilt.games.holdem import Holdem
from kilt.play.agent import Agent
from kilt.play.match import PLAYED, Load, Match


@dataclass(frozen=True, eq=False)
class Crosstable:
    """The win rates of matches between all pairs of players, as a table.

    Attributes
    ----------
    players : tuple of str
        Names of the players.
    matches : dict of (int, int) to Match
        The match of each pair, by the indices of both players in `players`, the lower one first. If play was stopped
        early, some are missing.
    """

    players: tuple[str, ...]
    matches: dict[tuple[int, int], Match]

    def rate(self, row: int, column: int) -> Estimate | None:
        """Return player `row`'s win rate against player `column` in mbb/h, or None if they have not met."""
        match = self.matches.get((min(row, column), max(row, column)))
        if match is None:
            return None
        won = win_rate(match)
        return won if row < column else Estimate(0.0 - won.mean, won.margin)

    def mean(self, player: int) -> Estimate | None:
        """Return a player's mean win rate against all others in mbb/h, or None if a match is missing.

        All matches use the same deals, so players are compared on equal cards. The statistics therefore treat a deal
        against all opponents as one observation.
        """
        met = [(1 if player == pair[0] else -1, match) for pair, match in self.matches.items() if player in pair]
        if len(met) < len(self.players) - 1:
            return None
        units = min(len(match.results) for _, match in met)
        results = np.mean([sign * match.results[:units] for sign, match in met], axis=0)
        return estimate_mean(results * (1000 / met[0][1].big_blind))


def crosstable(
    game: Holdem,
    players: Sequence[Agent | str],
    hands: int,
    seed: int = 0,
    *,
    way: str = PLAYED,
    duplicate: bool = True,
    load: Load | None = None,
    processes: int = 1,
    engine: Engine | None = None,
    tick: Callable[[int], None] = lambda hands: None,
    stop: Callable[[], bool] = lambda: False,
) -> Crosstable:
    """Play a match between each pair of players, always on the same deals.

    Parameters
    ----------
    game : Holdem
        The rules.
    players : sequence of Agent or str
        At least two; names are passed to `load`.
    hands : int
        Hands per match.
    way : str
        Method of evaluation: see `kilt.evaluate.matchup.evaluate_matchup`.
    seed, duplicate, load, processes, engine, stop
        As in `kilt.play.match.play_match`.
    tick : callable
        Called with the number of hands so far, over all matches.

    Returns
    -------
    Crosstable
        `rate(row, column)` and `mean(player)` are win rates with 95% intervals.

    Raises
    ------
    PlayError
        There are fewer than two players.
    """
    if len(players) < 2:
        raise PlayError(f"a crosstable of {len(players)} players has no matches: give two or more")
    matches: dict[tuple[int, int], Match] = {}
    names = [""] * len(players)
    for done, (one, other) in enumerate(combinations(range(len(players)), 2)):
        if stop():
            break
        match = evaluate_matchup(
            game,
            (players[one], players[other]),
            hands,
            seed,
            way=way,
            duplicate=duplicate,
            load=load,
            processes=processes,
            engine=engine,
            tick=lambda played, before=done * hands: tick(before + played),  # type: ignore[misc]
            stop=stop,
        )
        matches[one, other] = match
        names[one], names[other] = match.players
    return Crosstable(tuple(names), matches)
