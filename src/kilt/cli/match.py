"""``kilt match``: play matches between players, and print their win rates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kilt.cli import options
from kilt.cli.engines import AddressOption, EngineOption, opened
from kilt.cli.show import (
    UNIT,
    AsJson,
    ProgressBars,
    exit_after_signal,
    interrupts,
    print_json,
    print_table,
    say,
    win_rate_data,
)
from kilt.cost import in_time

if TYPE_CHECKING:
    from kilt.games.holdem import Holdem
    from kilt.play.match import Match

WORDS = {  # methods of evaluation, in words
    "played": "raw winnings",
    "expected": "exact over all actions of both players, on sampled cards",
    "aivat": "winnings without luck, by AIVAT",
}


def match(
    players: Annotated[list[str], options.WHO],
    game: Annotated[str | None, options.GAME] = None,
    hands: Annotated[int, options.HANDS] = 10_000,
    duplicate: Annotated[bool, options.DUPLICATE] = True,
    seed: Annotated[int, options.SEED] = 0,
    way: Annotated[str, options.WAY] = "best",
    played: Annotated[
        bool, typer.Option("--played", help="Also play all hands, whatever the method, and print the raw winnings.")
    ] = False,
    processes: Annotated[int | None, options.WORKERS] = None,
    engine: EngineOption = None,
    address: AddressOption = "",
    log: Annotated[Path | None, options.LOG] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="LEVEL",
            help="End a match as soon as a winner is shown at this level, such as 95% (or `significant`, the same), "
            "however often that is checked; after --hands at the latest.",
        ),
    ] = None,
    everyone: Annotated[
        bool, typer.Option("--all", help="A match between any two of the players, as a table.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Play matches between the first player and each of the others, or between all pairs with --all.

    Win rates are printed with 95% intervals.

    Ctrl-C ends a match early, and the hands played so far count.
    """
    from kilt.errors import PlayError
    from kilt.jit import cores

    if log and len(players) > 2:
        raise PlayError(f"--log {log} is for one match, and {len(players)} players are given: use two")
    if everyone and (log or until or played):
        raise PlayError("--all prints a table of win rates: leave out --log, --until and --played")
    error = None if until is None else _error_rate(until)
    if error is not None and log:
        raise PlayError("--until plays a match in parts, and --log keeps one: leave out one of them")
    workers = cores() if processes is None else processes
    with opened(engine, address, workers) as found:
        how: dict[str, Any] = {"way": way, "duplicate": duplicate, "processes": workers, "engine": found}
        if everyone:
            _print_crosstable(players, game, hands, seed, how, as_json=as_json)
            return
        rules, matches, stopped = first_meets_others(players, game, hands, seed, log, error, also_play=played, **how)
    if as_json:
        said = [_match_figures(each, with_played=played or log is not None) | _verdict(each, error) for each in matches]
        settings = {"game": rules.name, "seed": seed, "duplicate": duplicate, "unit": UNIT}
        settings["strategies"] = _strategies(players)
        print_json((said[0] if len(players) == 2 else {}) | settings | {"matches": said})
    else:
        print_matches(rules.name, matches, with_played=played or log is not None)
        if error is not None:
            for each in matches:
                _say_verdict(each, error)
        print_strategies(players)
    exit_after_signal(stopped)


def _error_rate(level: str) -> float:
    """Return the error rate for a significance level, such as 0.05 for 95%."""
    from kilt.errors import PlayError

    with suppress(ValueError):
        share = 0.95 if level == "significant" else float(level.removesuffix("%")) / 100
        if 0.5 <= share < 1:
            return round(1 - share, 12)
    raise PlayError(f"--until is {level!r}: give a level from 50% to less than 100%, such as 95%, or `significant`")


def _verdict(match: Match, error: float | None) -> dict[str, Any]:
    """Return the result of the sequential test of a match as a dict for JSON output."""
    from kilt.evaluate.sequential import apply_sequential_test

    if error is None:
        return {}
    found = apply_sequential_test(match, error)
    return {"winner": found.winner, "error_rate": error, "sequential_margin": found.margin}


def _say_verdict(match: Match, error: float) -> None:
    """Print the result of the sequential test of a match in one line."""
    from kilt.evaluate.sequential import apply_sequential_test

    found, names = apply_sequential_test(match, error), ", ".join(match.players)
    won = f"{found.winner} wins" if found.winner else "not decided"
    level = f"± {found.margin:.1f} at any look, error rate {error:.3g}"
    say(f"{names}: {won} after {match.hands:,} hands ({level})")


def first_meets_others(
    players: list[str],
    game: str | None,
    hands: int,
    seed: int,
    log: Path | None = None,
    error: float | None = None,
    **how: Any,
) -> tuple[Holdem, list[Match], list[int]]:
    """Play matches between the first player and each of the others.

    Returns the game, the matches, and any signals that stopped them early.

    With an `error` rate, a match ends as soon as a sequential test shows a winner. `how` are further arguments of
    `evaluate_matchup`, such as `way`.
    """
    from kilt.evaluate.matchup import evaluate_matchup
    from kilt.evaluate.sequential import play_until_decided
    from kilt.jit import cores
    from kilt.play.logs import MatchLog
    from kilt.players.agents import load_once

    rules = _common_game(players, game)
    matches: list[Match] = []
    opponents = players[1:]
    with interrupts(at_once=False) as stopped, _progress(hands * len(opponents)) as tick:
        for done, opponent in enumerate(opponents):
            if stopped:
                break
            pair = (players[0], opponent)
            with MatchLog(log, f"{rules.name} {hands} {seed}") as sink:
                part: Callable[..., Match] = partial(
                    evaluate_matchup,
                    rules,
                    pair,
                    **{"processes": cores(), "load": load_once, **how},
                    sink=sink.write if log else None,
                    tick=partial(tick, f"{players[0]}, {opponent}", done * hands),
                    stop=lambda: bool(stopped),
                )
                if error is None:
                    played = part(hands, seed)
                else:
                    played = play_until_decided(part, hands, seed, error, lambda: bool(stopped)).match
                matches.append(played)
                sink.end(played, hands)
    return rules, matches, stopped


def print_matches(title: str, matches: list[Match], *, with_played: bool = False) -> None:
    """Print a table of win rates and times, with raw winnings if requested."""
    from kilt.evaluate.stats import played_rate, win_rate

    with_played = any(each.way == "aivat" or (with_played and each.way != "played") for each in matches)
    heads = ["player", "against", f"wins, {UNIT}", "hands", "duplicate", "way"]
    rows = []
    for each in matches:
        row = [*each.players, str(win_rate(each)), f"{each.hands:,}", "yes" if each.duplicate else "no", each.way]
        rows.append([*row, str(played_rate(each))] if with_played else row)
    print_table(title, [*heads, "played"] if with_played else heads, rows)
    for each in matches:
        _say_how(each)


def print_strategies(players: list[str]) -> None:
    """Print which strategy each player follows, such as its run's average strategy."""
    if said := _strategies(players):
        say(f"strategies: {', '.join(f'{name} ({strategy})' for name, strategy in said.items())}")


def _strategies(players: list[str]) -> dict[str, str]:
    """Return which strategy each player plays, by player name: see `kilt.players.agents.describe_strategy`."""
    from kilt.players.agents import describe_strategy, load_once

    return {agent.name: strategy for agent in map(load_once, players) if (strategy := describe_strategy(agent))}


def _say_how(match: Match) -> None:
    """Print the time of a match, and how many raw hands an interval of the same width would need."""
    from kilt.evaluate.stats import played_hands

    number = played_hands(match)
    same = f"as precise as raw winnings of {number:,.0f} hands; " if number > 1.05 * match.hands else ""
    took = f"{match.seconds:.1f} s, {match.cpu_seconds:.1f} s of CPU time"
    each = [
        f"{name} {one.milliseconds:,.3g} ms"
        for name, one in zip(match.players, match.thinking, strict=True)
        if one.decisions
    ]
    took += f"; per decision: {', '.join(each)}" if each else ""
    say(f"{match.players[0]}, {match.players[1]}: {WORDS[match.way]}; {same}{took}")


def _print_crosstable(
    players: list[str],
    game: str | None,
    hands: int,
    seed: int,
    how: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Play a match between each pair of players, and print the win rates of rows against columns."""
    from kilt.evaluate.crosstable import crosstable
    from kilt.players.agents import load_once

    rules = _common_game(players, game)
    pairs = len(players) * (len(players) - 1) // 2
    with interrupts(at_once=False) as stopped, _progress(hands * pairs) as tick:
        how |= {"tick": partial(tick, f"{pairs} matches", 0), "stop": lambda: bool(stopped)}
        table = crosstable(rules, players, hands, seed, load=load_once, **how)
    everyone = range(len(players))
    rates = [[table.rate(row, column) for column in everyone] for row in everyone]
    means = [table.mean(player) for player in everyone]
    if as_json:
        print_json(
            {"game": rules.name, "seed": seed, "duplicate": how["duplicate"], "unit": UNIT, "players": table.players}
            | {"strategies": _strategies(players)}
            | {"rates": [[rate and win_rate_data(rate) for rate in row] for row in rates]}
            | {"means": [mean and win_rate_data(mean) for mean in means]}
            | {"hands": sum(played.hands for played in table.matches.values())}
            | {"matches": [_match_figures(each, with_played=False) for each in table.matches.values()]}
        )
    else:
        rows = [
            [name, *("" if rate is None else f"{rate.mean:+.0f} ± {rate.margin:.0f}" for rate in (*row, mean))]
            for name, row, mean in zip(table.players, rates, means, strict=True)
        ]
        title = f"{rules.name}, {UNIT}, {hands:,} hands a match"
        print_table(title, ["", *table.players, "mean"], rows, numbers=True)
        for each in table.matches.values():
            _say_how(each)
        print_strategies(players)
    exit_after_signal(stopped)


def _common_game(players: list[str], name: str | None) -> Holdem:
    """Return the game that all players play: the named game, or that of the first player made for one game."""
    from kilt.errors import PlayError
    from kilt.games.playable import load_holdem
    from kilt.play.agent import RememberingAgent
    from kilt.players.agents import game_for, load_once, own_game

    if len(players) < 2:
        raise PlayError(f"one player is given, {players[0]}; a match has two: add another one")
    agents = [load_once(spec) for spec in players]
    for agent in agents:
        if isinstance(agent, RememberingAgent):
            say(f"{agent.name} remembers earlier hands: its matches are played in order, by one process")
    game = load_holdem(name) if name else next(filter(None, map(own_game, agents)), None)
    first, *_ = (game_for(agent, game) for agent in agents)  # all of them are asked
    return first


def _match_figures(match: Match, *, with_played: bool) -> dict[str, Any]:
    """Return a match as a dict for JSON output. If `with_played` is set, it includes raw winnings."""
    from kilt.evaluate.stats import played_hands, played_rate, win_rate

    same = played_hands(match)
    return {
        **win_rate_data(win_rate(match)),
        "hands": match.hands,
        "players": match.players,
        "way": match.way,
        "played": win_rate_data(played_rate(match)) if with_played or match.way == "aivat" else None,
        "played_hands": same if isfinite(same) else None,
        "seconds": match.seconds,
        "cpu_seconds": match.cpu_seconds,
        "decision_cpu_ms": [one.milliseconds if one.decisions else None for one in match.thinking],
    }


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar, and provide a function that moves it.

    The function takes the match, the hands before this match, and the hands played in it.
    """
    with ProgressBars() as bar:
        task, begun = bar.add_task("", total=total, said="starting …"), monotonic()

        def tick(what: str, before: int, hands: int) -> None:
            done, seconds = before + hands, max(monotonic() - begun, 1e-9)
            said = f"{done:,} hands · {done / seconds:,.0f}/s · {in_time((total - done) * seconds / done)} left"
            bar.update(task, description=what, completed=done, said=said)

        yield tick
