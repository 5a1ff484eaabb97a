"""``kilt slumbot``: play a match against Slumbot over its public HTTP API."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kilt.cli import options
from kilt.cli.show import UNIT, AsJson, ProgressBars, interrupts, print_json, print_table, say, waiting, win_rate_data

if TYPE_CHECKING:
    from kilt.evaluate.slumbot_rates import SlumbotRates
    from kilt.evaluate.stats import Estimate
    from kilt.play.slumbot_match import SlumbotLog

PASSWORD = "KILT_SLUMBOT_PASSWORD"
DEFAULT = "runs/house-200bb"  # what `kilt build house --bb 200` builds


def slumbot(
    player: Annotated[str, options.WHO] = DEFAULT,
    hands: Annotated[int, options.HANDS] = 1000,
    log: Annotated[Path | None, options.LOG] = None,
    user: Annotated[
        str, typer.Option("--user", metavar="NAME", help=f"Log in as NAME; the password is read from {PASSWORD}.")
    ] = "",
    keys: Annotated[list[str] | None, options.SET] = None,
    seed: Annotated[int | None, options.SEED] = None,
    way: Annotated[str, options.WAY] = "best",
    as_json: AsJson = False,
) -> None:
    """Play heads-up no-limit hold'em against Slumbot, with stacks of 200 big blinds.

    Each finished hand is added to the log, by default slumbot-WHO.log. The same command continues a match that was
    stopped. --way played omits AIVAT. --set changes how requests are sent: url, timeout=30 (seconds), tries=6 and
    wait=1 (seconds until the second try, then twice as long each time).
    """
    from secrets import randbits

    from kilt.errors import PlayError
    from kilt.evaluate.matchup import BEST
    from kilt.evaluate.slumbot_rates import slumbot_rates
    from kilt.games.playable import load_holdem
    from kilt.play.match import AIVAT, PLAYED
    from kilt.play.slumbot import GAME, ClientConfig, SlumbotClient
    from kilt.play.slumbot_match import SlumbotLog, continue_match, name_in_logs
    from kilt.players.agents import describe_strategy
    from kilt.players.reference import player as player_of
    from kilt.records import replaced

    if hands < 1:
        raise PlayError(f"a match of {hands} hands cannot be played: ask for 1 or more")
    if way not in (BEST, PLAYED, AIVAT):
        raise PlayError(f"--way is {way!r}: use {BEST}, {PLAYED} or {AIVAT}")
    settings = replaced(ClientConfig(), options.settings(keys))
    client = SlumbotClient(settings, warn=lambda text: say(f"warning: {text}"))
    password = os.environ.get(PASSWORD, "")
    if player == DEFAULT and not Path(DEFAULT).exists():
        raise PlayError(f"there is no {DEFAULT}: build it with `kilt build house --bb 200`, or name another player")
    if user and not password:
        raise PlayError(f"there is no password for {user}: set the environment variable {PASSWORD}")
    with waiting("loading the player …"):
        agent, game = player_of(player).at(load_holdem(GAME))
    name = name_in_logs(agent.name)
    file = log or Path(f"slumbot-{Path(name).name}.log")
    failure: PlayError | None = None
    with SlumbotLog(file, game, name) as kept, interrupts(at_once=False) as stopped:
        if before := len(kept.hands):
            say(f"{file} has {before:,} of {hands:,} hands")
        try:
            if user and before < hands:
                client.login(user, password)
            with ProgressBars() as bar:
                task = bar.add_task(f"{name}, Slumbot", total=hands, completed=before, said="")
                continue_match(
                    client,
                    agent,
                    kept,
                    hands,
                    randbits(63) if seed is None else seed,
                    tick=lambda done: bar.update(task, completed=done, said=f"{done:,} of {hands:,} hands"),
                    stop=lambda: bool(stopped),
                    warn=lambda text: say(f"warning: {text}"),
                )
        except PlayError as error:
            failure = error
    if kept.hands:
        with waiting("estimating, and for AIVAT learning or reading values of states …"):
            rates = slumbot_rates(kept.hands, game, agent, name, aivat=way != PLAYED)
        _print(rates, kept, describe_strategy(agent), as_json=as_json)
    if failure:
        raise PlayError(f"{failure}; {file} has {len(kept.hands):,} of {hands:,} hands") from None
    if stopped:
        say(f"stopped; {file} has {len(kept.hands):,} of {hands:,} hands, and the same command continues the match")
        raise typer.Exit(128 + stopped[0])


def _print(rates: SlumbotRates, log: SlumbotLog, strategy: str, *, as_json: bool) -> None:
    """Print the player's win rate, and which strategy of its run it played, if it is a run."""
    hands, complete = len(log.hands), sum(hand.hand is not None for hand in log.hands)
    known = {"played": rates.played, "less_baseline": rates.baseline, "aivat": rates.aivat}
    if as_json:
        print_json(
            {
                "player": log.player,
                "strategy": strategy,
                "game": log.game.name,
                "unit": UNIT,
                "hands": hands,
                "log": str(log.file),
            }
            | {"complete_hands": complete, "broken_hands": log.broken, "button_hands": sum(h.seat for h in log.hands)}
            | {what: rate and win_rate_data(rate) for what, rate in known.items()}
            | {"aivat_hands": rates.aivat_hands}
        )
        return
    rows: list[tuple[str, Estimate | None, int]] = [
        ("as played", rates.played, hands),
        ("AIVAT", rates.aivat, rates.aivat_hands),
        ("less Slumbot's baseline", rates.baseline, hands),
    ]
    shown = [[what, str(rate), f"{number:,}"] for what, rate, number in rows if rate is not None]
    print_table(f"{log.player} against Slumbot", ["estimate", f"wins, {UNIT}", "hands"], shown)
    if strategy:
        say(f"strategy: {log.player} ({strategy})")
    if complete < hands:
        say(f"{hands - complete:,} hands lack cards or do not fit the rules: they count as played alone")
    if log.broken:
        say(f"{log.broken:,} hands were broken off by faults of the connection, and do not count")
