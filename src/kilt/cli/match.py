"""``kilt match`` and ``kilt crosstable``: players against each other, and who wins how much."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kilt.cli.engines import AddressOption, EngineOption, opened
from kilt.cli.log import NewLog
from kilt.cli.show import AsJson, ProgressBars, duration, interrupts, print_json, print_table, say

if TYPE_CHECKING:
    from kilt.engines import Engine
    from kilt.evaluate.stats import Estimate
    from kilt.games.holdem import Holdem
    from kilt.play.agent import Agent
    from kilt.play.dealer import Hand
    from kilt.play.match import Match

UNIT = "mbb/h"

Players = Annotated[
    list[str],
    typer.Argument(
        metavar="PLAYER...",
        help="Two or more: baselines such as always-call, folders of runs, FILE.py:CLASS, or portfolio:A,B, which "
        "picks one of these players for each hand.",
    ),
]
GameOption = Annotated[
    str | None,
    typer.Option(
        "--game",
        "-g",
        metavar="NAME",
        help="A ready-made game (see `kilt game list`) or an ACPC .game file. Left out: that of a player who has one.",
    ),
]
HandsOption = Annotated[int, typer.Option("--hands", "-n", metavar="N", help="How many hands a match has.")]
DuplicateOption = Annotated[
    bool,
    typer.Option("--duplicate/--no-duplicate", help="Play every deal twice, with the players swapped: luck cancels."),
]
SeedOption = Annotated[int, typer.Option("--seed", metavar="S", help="What the cards are drawn from.")]
ProcessesOption = Annotated[
    int | None,
    typer.Option(
        "--processes", metavar="P", help="How many processes; the result is the same on any. Left out: all cores."
    ),
]


def match(
    players: Players,
    game: GameOption = None,
    hands: HandsOption = 10_000,
    duplicate: DuplicateOption = True,
    seed: SeedOption = 0,
    processes: ProcessesOption = None,
    engine: EngineOption = None,
    address: AddressOption = "",
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="A new file for all hands, as the ACPC's dealer writes them."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play matches: the first player meets each of the others. Win rates have their 95% interval.

    Ctrl-C ends a match early, and what was played counts.
    """
    from kilt.errors import PlayError
    from kilt.evaluate.stats import win_rate
    from kilt.jit import cores

    if log and len(players) > 2:
        raise PlayError(f"--log {log} is for one match, and {len(players)} players are given: use two")
    with opened(engine, address, processes or cores()) as found:
        rules, matches, stopped = first_meets_others(players, game, hands, duplicate, seed, processes, log, found)
    if as_json:
        said = [_figures(win_rate(played)) | {"hands": played.hands, "players": played.players} for played in matches]
        settings = {"game": rules.name, "seed": seed, "duplicate": duplicate, "unit": UNIT}
        print_json((said[0] if len(players) == 2 else {}) | settings | {"matches": said})
    else:
        print_matches(rules.name, matches)
    _end(stopped)


def first_meets_others(
    players: list[str],
    game: str | None,
    hands: int,
    duplicate: bool,
    seed: int,
    processes: int | None = None,
    log: Path | None = None,
    engine: Engine | None = None,
) -> tuple[Holdem, list[Match], list[int]]:
    """Matches of the first player with each of the others; what stopped them early comes last."""
    from kilt.jit import cores
    from kilt.play.match import play_match

    rules = _common_game(players, game)
    matches: list[Match] = []
    opponents = players[1:]
    with interrupts(at_once=False) as stopped, _progress(hands * len(opponents)) as tick:
        for done, opponent in enumerate(opponents):
            if stopped:
                break
            pair = (players[0], opponent)
            with _Log(log, f"{rules.name} {hands} {seed}") as sink:
                played = play_match(
                    rules,
                    pair,
                    hands,
                    seed,
                    duplicate=duplicate,
                    load=_load,
                    processes=cores() if processes is None else processes,
                    engine=engine,
                    sink=sink.write if log else None,
                    tick=partial(tick, f"{players[0]}, {opponent}", done * hands),
                    stop=lambda: bool(stopped),
                )
                matches.append(played)
                if played.hands == hands:
                    sink.end(played)
    return rules, matches, stopped


def print_matches(title: str, matches: list[Match]) -> None:
    """A table of win rates."""
    from kilt.evaluate.stats import win_rate

    rows = [
        [*played.players, str(win_rate(played)), UNIT, f"{played.hands:,}", "yes" if played.duplicate else "no"]
        for played in matches
    ]
    print_table(title, ["player", "against", "wins", "unit", "hands", "duplicate"], rows)


def crosstable(
    players: Players,
    game: GameOption = None,
    hands: HandsOption = 10_000,
    duplicate: DuplicateOption = True,
    seed: SeedOption = 0,
    processes: ProcessesOption = None,
    engine: EngineOption = None,
    address: AddressOption = "",
    as_json: AsJson = False,
) -> None:
    """Play a match between any two players. Rows win from columns; win rates have their 95% interval.

    Ctrl-C ends it early, and what was played counts.
    """
    from kilt.evaluate import crosstable as tables
    from kilt.jit import cores

    rules = _common_game(players, game)
    pairs = len(players) * (len(players) - 1) // 2
    with (
        opened(engine, address, processes or cores()) as found,
        interrupts(at_once=False) as stopped,
        _progress(hands * pairs) as tick,
    ):
        table = tables.crosstable(
            rules,
            players,
            hands,
            seed,
            duplicate=duplicate,
            load=_load,
            processes=cores() if processes is None else processes,
            engine=found,
            tick=partial(tick, f"{pairs} matches", 0),
            stop=lambda: bool(stopped),
        )
    everyone = range(len(players))
    rates = [[table.rate(row, column) for column in everyone] for row in everyone]
    means = [table.mean(player) for player in everyone]
    if as_json:
        print_json(
            {"game": rules.name, "seed": seed, "duplicate": duplicate, "unit": UNIT, "players": table.players}
            | {"rates": [[rate and _figures(rate) for rate in row] for row in rates]}
            | {"means": [mean and _figures(mean) for mean in means]}
            | {"hands": sum(played.hands for played in table.matches.values())}
        )
    else:
        rows = [
            [name, *("" if rate is None else f"{rate.mean:+.0f} ± {rate.margin:.0f}" for rate in (*row, mean))]
            for name, row, mean in zip(table.players, rates, means, strict=True)
        ]
        title = f"{rules.name}, {UNIT}, {hands:,} hands a match"
        print_table(title, ["", *table.players, "mean"], rows, numbers=True)
    _end(stopped)


@cache
def _load(spec: str) -> Agent:
    """An agent by name, loaded once in a process."""
    from kilt.evaluate.players import load_agent

    return load_agent(spec)


def _common_game(players: list[str], name: str | None) -> Holdem:
    """The game that all players play: the one of that name, or that of the first player who was made for one."""
    from kilt.errors import PlayError
    from kilt.evaluate.players import game_for, load_holdem, own_game
    from kilt.play.agent import RememberingAgent

    if len(players) < 2:
        raise PlayError(f"one player is given, {players[0]}; a match has two: add another one")
    agents = [_load(spec) for spec in players]
    for agent in agents:
        if isinstance(agent, RememberingAgent):
            say(f"{agent.name} remembers earlier hands: its matches are played in order, by one process")
    game = load_holdem(name) if name else next(filter(None, map(own_game, agents)), None)
    first, *_ = (game_for(agent, game) for agent in agents)  # all of them are asked
    return first


def _figures(rate: Estimate) -> dict[str, Any]:
    """A win rate for programs. The interval of a single deal is not known."""
    return {
        "mbb_per_hand": rate.mean,
        "ci95": list(rate.interval) if isfinite(rate.margin) else None,
        "margin": rate.margin if isfinite(rate.margin) else None,
    }


def _end(stopped: list[int]) -> None:
    if stopped:
        say("stopped early: the figures are of the hands that were played")
        raise typer.Exit(128 + stopped[0])


class _Log:
    """A log of a match, where one is wanted."""

    def __init__(self, path: Path | None, settings: str) -> None:
        self.file, self.settings = NewLog(path) if path else None, settings

    def __enter__(self) -> _Log:
        return self

    def __exit__(self, *_: object) -> None:
        if self.file:
            self.file.close()

    def write(self, hand: Hand) -> None:
        """Add a hand, and before the first one what the match is."""
        from kilt.play.acpc import different_names, log_entry

        if self.file and not self.file.begun:
            names = different_names(hand.players)
            self.file.write(f"# name/game/hands/seed {'.'.join(names)} {self.settings}\n")
        if self.file:
            self.file.write(log_entry(hand))

    def end(self, match: Match) -> None:
        """Add the score."""
        from kilt.play.acpc import Score

        if self.file:
            chips = round(float(match.results.sum()) * match.hands / len(match.results), 6)
            self.file.write(f"{Score((chips, -chips), match.players)}\n")


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on the terminal; gives what moves it: the match, the hands before it, and those of it."""
    with ProgressBars() as bar:
        task, begun = bar.add_task("", total=total, said="starting …"), monotonic()

        def tick(what: str, before: int, hands: int) -> None:
            done, seconds = before + hands, max(monotonic() - begun, 1e-9)
            said = f"{done:,} hands · {done / seconds:,.0f}/s · {duration((total - done) * seconds / done)} left"
            bar.update(task, description=what, completed=done, said=said)

        yield tick
