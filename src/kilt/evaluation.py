"""Public functions to play matches between players, and to evaluate their strategies.

Each function accepts the same players as `kilt.players.reference.player`: a name, the folder of a run, a `Run`, a
strategy, an object with ``act(observation)``, or a policy of open_spiel.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kilt.errors import PlayError, RunError, file_errors
from kilt.evaluate.crosstable import Crosstable
from kilt.evaluate.crosstable import crosstable as meet_all
from kilt.evaluate.evaluator import AbstractEvaluator
from kilt.evaluate.exploitability import Exploitability
from kilt.evaluate.findings import Report
from kilt.evaluate.lbr import BETS, LowerBound
from kilt.evaluate.lbr import lower_bound as local_best_response
from kilt.evaluate.matchup import BEST, evaluate_matchup
from kilt.evaluate.sanity import DEALS
from kilt.evaluate.stats import Estimate, win_rate
from kilt.games import load_game, ready_made_games
from kilt.games.game import Game
from kilt.games.holdem import Holdem
from kilt.notebook import Drawable, html_table
from kilt.play.agent import Agent
from kilt.play.logs import MatchLog
from kilt.play.match import Match
from kilt.players.agents import game_for, load_once, own_game
from kilt.players.reference import Who, player
from kilt.players.reports import sanity_reports
from kilt.solve.forms import OPENSPIEL
from kilt.solve.problem import CPU


class _SilentWatcher:
    """A watcher that reports nothing and never stops the computation."""

    def say(self, text: str, takes: float | None = None) -> None:
        """Discard a message."""

    def show(self, what: str, done: float, left: float | None) -> None:
        """Discard a progress report."""

    def stopped(self) -> bool:
        """Return False: the computation is never stopped."""
        return False


@file_errors()
def exploitability(
    who: Who = None,
    game: Any = None,
    *,
    flops: int | None = None,
    seed: int = 0,
    threads: int = 1,
    device: str = CPU,
    as_played: bool = False,
    strategy: Any = None,
) -> Exploitability:
    """Return the exploitability of a strategy: the mean win of a best response over both seats, in chips per game.

    A run whose agent post-processes has two strategies: the average strategy, which this function evaluates by default,
    and the strategy as played. Best responses can win several times as much from one as from the other.

    Parameters
    ----------
    who : str, Path, Run, Strategy, mapping or agent
        A player: see `player`. The folder of a run stands for its average strategy, ``RUN@RULE`` for that strategy
        after a post-processing rule. Agents that look at cards can be evaluated in games that fit into a flat tree.
    game : str or Game, optional
        Required for players who can play more than one game.
    flops : int, optional
        For runs on large abstract games: estimate from this number of random flops. Default: all flops are used.
    seed : int
        Seed of the random flops.
    threads : int
        Number of threads that share the boards. Results differ at most by rounding.
    device : str
        "cpu" or "gpu", for the strategy of a run.
    as_played : bool
        For the folder of a run: evaluate the strategy after the post-processing in the run's configuration.
    strategy : optional
        The name of `who` in kilt 0.1, where the game was the first argument. Deprecated; removed in kilt 0.3.

    Returns
    -------
    Exploitability
        A float of at least 0, with `mbb`, `seats` and `interval`. NashConv is twice this.

    Raises
    ------
    RunError
        The game is too large, or `flops` does not apply to it.

    >>> round(2 * exploitability("uniform", "leduc"), 7)  # NashConv of the uniform profile
    4.7472222
    >>> infosets = [f"{rank}s||{bets}" for rank in "QKA" for bets in ("", "c", "r", "cr")]
    >>> passive = {infoset: {"f" if "r" in infoset else "c": 1.0} for infoset in infosets}
    >>> float(exploitability(passive, "kuhn"))  # a bet always wins the antes
    1.0
    """
    if strategy is not None or who is None or _is_game(who):
        warnings.warn("exploitability(game, strategy) is now exploitability(strategy, game)", DeprecationWarning, 3)
        who, game = (strategy if game is None else game) or "uniform", who
    refs = player(who, game).strategies(game)
    ref = max(refs, key=lambda one: one.played) if as_played else refs[0]
    evaluator, table, _ = ref.load(threads, device=device)
    if (
        isinstance(evaluator, AbstractEvaluator)
        and ref.run
        and (flops or device != CPU or not evaluator.problem.walk.in_memory.fits)
    ):
        found = ref.flop_responses(evaluator.problem, table, flops, seed, device)
        if not found.complete:
            found.compute(_SilentWatcher())
        if found.draws is not None:
            rate = found.estimate()
            return Exploitability(rate.mean, evaluator.problem.mbb(rate.mean), None, rate.interval, ref.strategy)
        won = found.response_values()
        mean = max(sum(won) / 2, 0.0)
        return Exploitability(mean, evaluator.problem.mbb(mean), won, None, ref.strategy)
    if flops is not None:
        raise RunError(f"`flops` is {flops}, but {ref.game} is walked as a whole: remove `flops`")
    if not evaluator.exact:
        raise RunError(
            f"best responses in {evaluator.problem.name} do not fit into memory: play matches against the strategy"
        )
    won, mean = evaluator.response_values(table), float(evaluator.exploitability(table))
    return Exploitability(mean, evaluator.problem.mbb(mean), won, None, ref.strategy)


def _is_game(who: object) -> bool:
    """Return whether an argument is a game; in kilt 0.1, the game was the first argument."""
    if isinstance(who, str):
        return who in ready_made_games() or who.startswith(OPENSPIEL) or who.endswith(".game")
    return callable(getattr(who, "start", None)) and not callable(getattr(who, "act", None))


class PlayedMatch(Drawable, Match):
    """The results of a match: all hands, and the first player's win rate."""

    @property
    def win_rate(self) -> Estimate:
        """The win rate of the first player in mbb/h, with its 95% confidence interval."""
        return win_rate(self)

    def __repr__(self) -> str:
        first, second = self.players
        return f"PlayedMatch({first!r} wins {self.win_rate} mbb/h from {second!r}, {self.hands:,} hands, {self.way})"

    def _repr_html_(self) -> str:
        rows = {"wins, mbb/h": str(self.win_rate), "hands": f"{self.hands:,}", "method": self.way}
        return html_table(f"{self.players[0]} against {self.players[1]}", rows)


def _together(players: Sequence[Who], game: str | Game | None) -> tuple[Holdem, list[Agent | str]]:
    """Return the game that all players play, and each player by its name, or as an agent if it has no name."""
    rules = load_game(game) if isinstance(game, str) else game
    if rules is not None and not isinstance(rules, Holdem):
        raise PlayError(f"{rules.name} is not poker: agents play games with cards and bets")
    met: list[Agent | str] = []
    for who in players:
        found = player(who, rules)
        agent = found.agent
        rules = own_game(agent) if rules is None else game_for(agent, rules)
        met.append(agent if found.spec is None else found.spec)
    if rules is None:
        raise PlayError("the players play any poker game: give `game`")
    for who in met:  # including the first ones, if a later player determined the game
        game_for(load_once(who) if isinstance(who, str) else who, rules)
    return rules, met


@file_errors()
def play_match(
    first: Who,
    second: Who,
    hands: int = 10_000,
    *,
    game: str | Game | None = None,
    way: str = "played",
    duplicate: bool = True,
    seed: int = 0,
    workers: int | None = None,
    log: str | Path | None = None,
    processes: int | None = None,
) -> PlayedMatch:
    """Play a match between two players, and return the result.

    Parameters
    ----------
    first, second : str, Path, Agent, Run, Strategy or mapping
        Players: see `player`. A run plays with its post-processing.
    hands : int
        Total number; a duplicate match plays each deal twice, with the seats swapped.
    game : str or Game, optional
        Required if neither player is a run. A run stores its game.
    way : str
        Method of evaluation: "played" hands, or with less variance "expected" or "aivat", if the players allow it;
        "best" is the most precise method that is worth its time. See `kilt.evaluate.matchup`.
    duplicate : bool
        Whether each deal is played in both seats.
    seed : int
        Seed of the deals and of all random choices of agents: the same seed plays the same match.
    workers : int, optional
        Number of processes. If it is more than one, they load the players from their folders, or unpickle them.
    log : str or Path, optional
        A new file for the hands, in the format of the ACPC's dealer. All hands are then played, whatever the method.
    processes : int, optional
        The name of `workers` in kilt 0.1. Deprecated; removed in kilt 0.3.

    Returns
    -------
    PlayedMatch
        `win_rate` is the win rate of the first player in mbb/h, with its 95% interval.

    Raises
    ------
    PlayError
        The players do not play the same game, or do not allow the method.

    >>> match = play_match("always-raise", "always-fold", hands=100, game="holdem.nolimit.2p")
    >>> match.win_rate.mean  # half a blind or a whole one, by seat
    750.0
    """
    if processes is not None:
        warnings.warn("play_match(processes=…) is now play_match(workers=…)", DeprecationWarning, 3)
    rules, (one, other) = _together((first, second), game)
    number = workers or processes or 1
    with MatchLog(Path(log) if log else None, f"{rules.name} {hands} {seed}") as lines:
        how: dict[str, Any] = {"way": way, "duplicate": duplicate, "load": load_once, "processes": number}
        match = evaluate_matchup(rules, (one, other), hands, seed, sink=lines.write if log else None, **how)
        lines.end(match, hands)
    return PlayedMatch(**vars(match))


@file_errors()
def crosstable(
    players: Sequence[Who],
    hands: int = 10_000,
    *,
    game: str | Game | None = None,
    way: str = BEST,
    duplicate: bool = True,
    seed: int = 0,
    workers: int = 1,
) -> Crosstable:
    """Play matches between all pairs of players, and return a table of win rates.

    All matches use the same deals.

    Parameters
    ----------
    players : sequence
        Two or more players: see `player`.
    hands : int
        Hands per match.
    game, way, duplicate, seed, workers
        As in `play_match`.

    Returns
    -------
    Crosstable
        ``rate(i, j)`` is the win rate of player i against player j in mbb/h, ``mean(i)`` the mean over all opponents.

    >>> table = crosstable(["always-call", "always-raise", "always-fold"], hands=200, game="leduc")
    >>> table.rate(1, 2).mean > 0
    True
    """
    rules, met = _together(players, game)
    return meet_all(rules, met, hands, seed, way=way, duplicate=duplicate, load=load_once, processes=workers)


@file_errors()
def lower_bound(
    who: Who,
    hands: int = 1000,
    *,
    game: str | Game | None = None,
    bets: str | None = None,
    first_round: int | str = 0,
    seed: int = 0,
    workers: int = 1,
) -> LowerBound:
    """Return a lower bound on a player's exploitability: the win rate of a local best response.

    It works in games of any size.

    Parameters
    ----------
    who : str, Path, Agent, Run or Strategy
        A player whose strategy can be tabulated: see `player`. A run is evaluated as it plays.
    hands : int
        An even number of hands.
    game : str or Game, optional
        Required for players who can play more than one game.
    bets : str, optional
        Raises to consider in no-limit games, such as "1x, a".
    first_round : int or str
        The local best response checks and calls before this round: its name, or its number from 0.
    seed : int
        Seed of the cards and of the player's random choices.
    workers : int
        Number of processes.

    Returns
    -------
    LowerBound
        `won` is the bound in mbb/h with its 95% interval, after variance reduction; `money` the raw winnings.

    Raises
    ------
    PlayError
        The player's strategy cannot be tabulated, or the round does not exist.

    >>> print(lower_bound("always-fold", hands=20, game="leduc").won)  # an ante of 1 in each hand
    +1000.0 ± 0.0
    """
    rules, (met,) = _together((who,), game)
    names = rules.rules.round_names
    if isinstance(first_round, str):
        if first_round not in names:
            raise PlayError(f"there is no round {first_round!r}: use one of {', '.join(names)}")
        first_round = names.index(first_round)
    menu = BETS if bets is None else bets
    how: dict[str, Any] = {"bets": menu, "first_round": first_round, "load": load_once, "processes": workers}
    return local_best_response(rules, met, hands, seed, **how)


@file_errors()
def sanity(
    who: Who,
    deals: int = DEALS,
    *,
    game: str | Game | None = None,
    seed: int = 0,
    as_played: bool = False,
) -> Report:
    """Check a strategy for blunders, such as folding the nuts.

    Parameters
    ----------
    who : str, Path, Run, Strategy or agent
        A player whose strategy can be tabulated: see `player`.
    deals : int
        Number of deals of self-play.
    game : str or Game, optional
        Required for players who can play more than one game.
    seed : int
        Equal seeds give equal reports.
    as_played : bool
        Check the strategy after the run's post-processing, not the average strategy.

    Returns
    -------
    Report
        `ok` is False if a check failed; `off` has the checks that failed.

    Raises
    ------
    KiltError
        The player's strategy cannot be tabulated, or the game has too many betting sequences to visit them all.

    >>> sanity("house", 100).game
    'holdem.nolimit.2p.50bb'
    """
    return sanity_reports(who, deals, seed, game)[-1 if as_played else 0]
