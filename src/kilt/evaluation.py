"""The functions behind `import kilt` that let players meet and judge them.

Each takes a player as `kilt.players.reference.player` does: a name, the folder of a run, a `Run`, a strategy, an object
with ``act(observation)``, or a policy of open_spiel.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from kilt.errors import GameError, PlayError, RunError, file_errors
from kilt.evaluate.crosstable import Crosstable
from kilt.evaluate.crosstable import crosstable as meet_all
from kilt.evaluate.judge import AbstractJudge
from kilt.evaluate.lbr import BETS, LowerBound
from kilt.evaluate.lbr import lower_bound as local_best_response
from kilt.evaluate.matchup import BEST, meet
from kilt.evaluate.sanity import DEALS, Report
from kilt.evaluate.stats import Estimate, win_rate
from kilt.games import load_game, ready_made_games
from kilt.games.game import Game
from kilt.games.holdem import Holdem
from kilt.notebook import html_table
from kilt.play.agent import Agent
from kilt.play.match import Match
from kilt.players.agents import game_for, loaded, own_game
from kilt.players.reference import Who, player
from kilt.players.reports import reports_of_run
from kilt.solve.forms import OPENSPIEL
from kilt.solve.problem import CPU, Problem


class Exploitability(float):
    """What perfect opponents win from a strategy, on average over both seats: a number of chips per game.

    Attributes
    ----------
    mbb : float or None
        The same in thousandths of a big blind; None if the game has no big blind.
    seats : tuple of float, or None
        Chips that a best response wins in seat 0 and in seat 1; None for an estimate.
    interval : tuple of float, or None
        The 95% interval in chips, if flops were drawn.
    strategy : str
        Which strategy of a run was judged, in words.
    """

    mbb: float | None
    seats: tuple[float, float] | None
    interval: tuple[float, float] | None
    strategy: str

    def __new__(
        cls,
        chips: float,
        problem: Problem,
        seats: tuple[float, float] | None = None,
        interval: tuple[float, float] | None = None,
        strategy: str = "",
    ) -> Exploitability:
        """A number of chips in the game of a problem."""
        made = super().__new__(cls, chips)
        made.mbb, made.seats, made.interval, made.strategy = problem.mbb(chips), seats, interval, strategy
        return made

    @property
    def chips(self) -> float:
        """The number itself."""
        return float(self)

    def _repr_html_(self) -> str:
        rows = {"chips per game": f"{self.chips:.6g}"}
        if self.mbb is not None:
            rows["mbb/g"] = f"{self.mbb:.6g}"
        if self.interval:
            rows["95% interval, chips"] = " to ".join(f"{end:.6g}" for end in self.interval)
        for seat, won in enumerate(self.seats or ()):
            rows[f"best response in seat {seat}, chips"] = f"{won:.6g}"
        return html_table(f"Exploitability {self.strategy}".strip(), rows)


class _SilentWatcher:
    """A watcher that says nothing and never stops."""

    def say(self, text: str, takes: float | None = None) -> None:
        """Say nothing."""

    def show(self, what: str, done: float, left: float | None) -> None:
        """Show nothing."""

    def stopped(self) -> bool:
        """Never."""
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
    """What best responses win from a strategy: the mean over both seats, in chips per game.

    A run has two strategies where its agent post-processes: the average strategy, which this judges by default, and the
    strategy as played. Best responses can win several times as much from one as from the other.

    Parameters
    ----------
    who : str, Path, Run, Strategy, mapping or agent
        A player: see `player`. The folder of a run stands for its average strategy, ``RUN@RULE`` for that strategy
        after a rule. Agents that look at cards can be judged in games that fit into a flat tree.
    game : str or Game, optional
        For players who play more than one game.
    flops : int, optional
        For runs on large abstract games: draw so many flops, and estimate. Left out: all flops are walked.
    seed : int
        What the flops are drawn from.
    threads : int
        Number of threads that share the boards. The result does not depend on it beyond rounding.
    device : str
        "cpu" or "gpu", for the strategy of a run.
    as_played : bool
        For the folder of a run: judge the strategy after the post-processing that the run's configuration names.
    strategy : optional
        What kilt 0.1 called `who`, with the game first. It warns, and goes in kilt 0.3.

    Returns
    -------
    Exploitability
        A float of at least 0, with `mbb`, `seats` and `interval`. NashConv is twice this.

    Examples
    --------
    >>> round(2 * exploitability("uniform", "leduc"), 7)  # NashConv of the uniform profile
    4.7472222
    >>> infosets = [f"{rank}s||{bets}" for rank in "QKA" for bets in ("", "c", "r", "cr")]
    >>> passive = {infoset: {"f" if "r" in infoset else "c": 1.0} for infoset in infosets}
    >>> float(exploitability(passive, "kuhn"))  # whoever bets takes the antes
    1.0
    """
    if strategy is not None or who is None or _is_game(who):
        warnings.warn("exploitability(game, strategy) is now exploitability(strategy, game)", DeprecationWarning, 3)
        who, game = (strategy if game is None else game) or "uniform", who
    refs = player(who, game).strategies(game)
    ref = max(refs, key=lambda one: one.played) if as_played else refs[0]
    judge, table, _ = ref.load(threads, device=device)
    if isinstance(judge, AbstractJudge) and ref.run and (flops or device != CPU or not judge.problem.cost.fits):
        found = ref.flop_responses(judge.problem, table, flops, seed, device)
        if not found.complete:
            found.go_on(_SilentWatcher())
        if found.draws is not None:
            rate = found.estimate()
            return Exploitability(rate.mean, judge.problem, None, rate.interval, ref.strategy)
        won = found.won()
        return Exploitability(max(sum(won) / 2, 0.0), judge.problem, won, None, ref.strategy)
    if flops is not None:
        raise RunError(f"{flops} flops are asked for, and {ref.game} is walked as a whole: leave out `flops`")
    if not judge.exact:
        raise RunError(
            f"{judge.problem.name} is too large for memory to look for best responses: play matches against it"
        )
    won = judge.response_values(table)
    return Exploitability(float(judge.exploitability(table)), judge.problem, won, None, ref.strategy)


def _is_game(who: object) -> bool:
    """Whether something is a game, as kilt 0.1 wanted it first."""
    if isinstance(who, str):
        return who in ready_made_games() or who.startswith(OPENSPIEL) or who.endswith(".game")
    return callable(getattr(who, "start", None)) and not callable(getattr(who, "act", None))


class PlayedMatch(Match):
    """A match that was played, with its win rate."""

    @property
    def win_rate(self) -> Estimate:
        """What the first player wins in mbb/h, with its 95% interval."""
        return win_rate(self)

    def __repr__(self) -> str:
        first, second = self.players
        return f"PlayedMatch({first!r} wins {self.win_rate} mbb/h from {second!r}, {self.hands:,} hands, {self.way})"

    def _repr_html_(self) -> str:
        rows = {"wins, mbb/h": str(self.win_rate), "hands": f"{self.hands:,}", "method": self.way}
        return html_table(f"{self.players[0]} against {self.players[1]}", rows)


def _together(players: Sequence[Who], game: str | Game | None) -> tuple[Holdem, list[Agent | str]]:
    """The game that all players play, and the players as matches take them: by name where they have one."""
    rules = load_game(game) if isinstance(game, str) else game
    if rules is not None and not isinstance(rules, Holdem):
        raise PlayError(f"{rules.name} is no poker: agents play games with cards and bets")
    met: list[Agent | str] = []
    for who in players:
        found = player(who, rules)
        agent = found.agent
        rules = own_game(agent) if rules is None else game_for(agent, rules)
        met.append(agent if found.spec is None else found.spec)
    if rules is None:
        raise PlayError("the players play any poker game: say which one")
    for who in met:  # the first ones, too, if the game is that of a later one
        game_for(loaded(who) if isinstance(who, str) else who, rules)
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
    processes: int | None = None,
) -> PlayedMatch:
    """Play a match between two players.

    Parameters
    ----------
    first, second : str, Path, Agent, Run, Strategy or mapping
        Players: see `player`. A run plays after its post-processing.
    hands : int
        In all; a duplicate match plays each deal twice, with the seats swapped.
    game : str or Game, optional
        Needed if neither player is a run, which knows its game.
    way : str
        How results come about: "played", "expected" or "aivat", which have less luck in them where players allow it; or
        "best", the first of these that pays. See `kilt.evaluate.matchup`.
    duplicate : bool
        Whether each deal is played in both seats.
    seed : int
        Of the deals and of all that agents draw: the same seed plays the same match.
    workers : int, optional
        Number of processes. More than one load the players from their folders, or pickle them.
    processes : int, optional
        What kilt 0.1 called `workers`. It warns, and goes in kilt 0.3.

    Returns
    -------
    PlayedMatch
        `win_rate` is what the first player wins in mbb/h, with its 95% interval.

    Examples
    --------
    >>> match = play_match("always-raise", "always-fold", hands=100, game="holdem.nolimit.2p")
    >>> match.win_rate.mean  # half a blind or a whole one, by seat
    750.0
    """
    if processes is not None:
        warnings.warn("play_match(processes=…) is now play_match(workers=…)", DeprecationWarning, 3)
    rules, (one, other) = _together((first, second), game)
    number = workers or processes or 1
    match = meet(rules, (one, other), hands, seed, way=way, duplicate=duplicate, load=loaded, processes=number)
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
    """Let any two of some players meet, all on the same deals.

    Parameters
    ----------
    players : sequence
        Two players or more: see `player`.
    hands : int
        Of each match.
    game, way, duplicate, seed, workers
        As in `play_match`.

    Returns
    -------
    Crosstable
        ``rate(i, j)`` is what player i wins from player j in mbb/h, ``mean(i)`` the mean over all others.

    Examples
    --------
    >>> table = crosstable(["always-call", "always-raise", "always-fold"], hands=200, game="leduc")
    >>> table.rate(1, 2).mean > 0
    True
    """
    rules, met = _together(players, game)
    return meet_all(rules, met, hands, seed, way=way, duplicate=duplicate, load=loaded, processes=workers)


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
    """What a local best response wins from a player: a lower bound of its exploitability, in games of any size.

    Parameters
    ----------
    who : str, Path, Agent, Run or Strategy
        A player who tells their strategy: see `player`. A run is judged as it plays.
    hands : int
        An even number.
    game : str or Game, optional
        For players who play more than one game.
    bets : str, optional
        Raises to consider in no-limit games, such as "1x, a".
    first_round : int or str
        Check and call before this round: its name, or its number from 0.
    seed : int
        Of the cards and of what the player draws.
    workers : int
        Number of processes.

    Returns
    -------
    LowerBound
        `won` is the bound in mbb/h with its 95% interval, less luck; `money` the raw winnings.

    Examples
    --------
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
    how: dict[str, Any] = {"bets": menu, "first_round": first_round, "load": loaded, "processes": workers}
    return local_best_response(rules, met, hands, seed, **how)


@file_errors()
def sanity(who: Who, deals: int = DEALS, *, seed: int = 0, as_played: bool = False) -> Report:
    """Check a strategy: aces that fold, the nuts that fold, decisions without a strategy.

    Parameters
    ----------
    who : str or Path
        A run or an exported agent: see `player`.
    deals : int
        Number of deals of self-play.
    seed : int
        Equal seeds give equal reports.
    as_played : bool
        Check the strategy after the run's post-processing, not the average strategy.

    Returns
    -------
    Report
        `ok` is False if a check failed; `off` has the checks that failed.

    Examples
    --------
    >>> sanity("house", 100).game
    'holdem.nolimit.2p.50bb'
    """
    found = player(who)
    if found.spec is None:
        raise GameError(f"{found.name} has no folder with a strategy: give a run or an exported agent")
    reports = reports_of_run(found.spec, deals, seed)
    return reports[-1 if as_played else 0]
