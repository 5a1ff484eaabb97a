"""``kilt dealer`` and ``kilt agent``: play matches over a network by the ACPC protocol."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from kilt.cli import options
from kilt.cli.show import say


def dealer(
    game: Annotated[str, options.GAME_RULES],
    hands: Annotated[int, options.HANDS] = 3000,
    seed: Annotated[int, options.SEED] = 0,
    names: Annotated[
        tuple[str, str], typer.Option("--names", metavar="A B", help="Names of the players, for the log.")
    ] = (
        "A",
        "B",
    ),
    host: Annotated[str, options.HOST] = "127.0.0.1",
    ports: Annotated[
        tuple[int, int], typer.Option("--ports", metavar="P1 P2", help="One for each player; 0 is any free one.")
    ] = (0, 0),
    log: Annotated[Path | None, options.LOG] = None,
    keys: Annotated[list[str] | None, options.SET] = None,
) -> None:
    """Deal a match between two players who connect over the network by the ACPC protocol.

    Prints the ports first, and the score at the end.

    --set changes limits in seconds: start=600 (until both players must have connected), response=600 (for an action),
    hand=600 (of a player in one hand), per_hand=7 (of a player per hand, on average over the match); and invalid=N, the
    number of invalid actions that a player may make, which count as calls.
    """
    from kilt.games.playable import load_holdem
    from kilt.play.logs import NewLog
    from kilt.play.net import Limits, serve
    from kilt.records import replaced

    def announce(ports: tuple[int, int]) -> None:
        typer.echo(f"{ports[0]} {ports[1]}")
        say(
            f"waiting {limits.start:g} seconds at most for both players: "
            f"`kilt agent RUN {host} {ports[0]}`, and port {ports[1]}"
        )

    rules = load_holdem(game)
    limits = replaced(Limits(), options.settings(keys))
    with nullcontext() if log is None else closing(NewLog(log)) as lines:
        score = serve(
            rules,
            hands,
            seed,
            names,
            host=host,
            ports=ports,
            log=lines,
            limits=limits,
            announce=announce,
            warn=lambda warning: say(f"warning: {warning}"),
        )
    typer.echo(str(score))


def agent(
    player: Annotated[str, options.WHO],
    host: Annotated[str, typer.Argument(metavar="HOST", help="Host of the dealer.")],
    port: Annotated[int, typer.Argument(metavar="PORT", help="Port that the dealer opened for this player.")],
    game: Annotated[str | None, options.GAME] = None,
    seed: Annotated[int | None, options.SEED] = None,
    log: Annotated[Path | None, options.LOG] = None,
) -> None:
    """Connect to an ACPC dealer and play a match.

    A start script contains this command, and the dealer appends host and port to it.
    """
    from secrets import randbits

    from kilt.games.playable import load_holdem
    from kilt.play.logs import NewLog
    from kilt.play.net import play_agent
    from kilt.players.reference import player as player_of

    who, rules = player_of(player).at(None if game is None else load_holdem(game))
    seed = randbits(63) if seed is None else seed
    with nullcontext() if log is None else closing(NewLog(log)) as lines:

        def note(number: int, text: str) -> None:
            if lines:
                lines.write(f"# hand {number}: {who.name}: {text}\n")
                lines.flush()

        hands = play_agent(who, rules, host, port, seed=seed, note=note)
    say(f"{who.name} played {hands:,} hands")
