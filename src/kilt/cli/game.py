"""``kilt game``: list kilt's games, and show their rules and sizes."""

from __future__ import annotations

from typing import Annotated

import typer

from kilt.cli import options
from kilt.cli.show import AsJson, count, print_json, print_line, print_table

app = typer.Typer(help="Games: list them, show their rules, and count their size.", no_args_is_help=True)

GameName = Annotated[str, options.GAME_RULES]


@app.command("list")
def list_games(as_json: AsJson = False) -> None:
    """List the ready-made games."""
    from kilt.games import ready_made_games

    games = ready_made_games()
    if as_json:
        print_json(games)
    else:
        print_table("Ready-made games", ["name", "description"], games.items())


@app.command()
def show(name: GameName, as_json: AsJson = False) -> None:
    """Show the rules of a game."""
    from dataclasses import asdict

    from kilt.games import load_game, ready_made_games
    from kilt.games.holdem import Poker

    game = load_game(name)
    if as_json:
        rules = asdict(game.rules) if isinstance(game, Poker) else {}
        counts = {"hands": [len(game.hands(0)), len(game.hands(1))], "first_player": game.start().actor + 1}
        print_json({"name": game.name, "what": ready_made_games().get(name, "from a file")} | counts | {"rules": rules})
        return
    print_line(f"  {ready_made_games().get(name, 'from a file')}", bold=game.name)
    if isinstance(game, Poker):
        deck = game.deck
        print_line(f"{deck.size} cards: ranks {deck.rank_names}, suits {deck.suit_names}")
    print_line(f"{len(game.hands(0)):,} private hands for player 1, {len(game.hands(1)):,} for player 2")
    start = game.start()
    actions = start.actions()
    shown = ", ".join(actions) if len(actions) <= 12 else f"{', '.join(actions[:4])}, … {actions[-1]}"
    print_line(f"player {start.actor + 1} acts first and can: {shown}")
    if isinstance(game, Poker):
        print_line(f"\n{str(game.rules).rstrip()}")


@app.command()
def size(
    name: GameName,
    abstraction: Annotated[
        list[str] | None,
        typer.Option(
            "--abstraction",
            "-a",
            metavar="SPEC",
            help="Also count an abstract game: 'PR 10-10-10-10' (perfect recall) or 'IR 169-9000-9000-9000' "
            "(imperfect recall), buckets per round. May be repeated.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Count the states, information sets and actions of a game exactly, without enumerating them."""
    from kilt.errors import GameError
    from kilt.games import load_game
    from kilt.games.bluff import Bluff
    from kilt.games.holdem import Poker
    from kilt.games.size import BucketedSize, GameSize, abstract_size, size_of

    game = load_game(name)
    sizes: list[GameSize | BucketedSize]
    if isinstance(game, Poker):
        sizes = [size_of(game.rules), *(abstract_size(game.rules, spec) for spec in abstraction or [])]
    elif isinstance(game, Bluff) and not abstraction:
        sizes = [size_of(game)]
    else:
        raise GameError(f"{name} has no cards to put into buckets: leave out --abstraction")
    names = [name, *(abstraction or [])]
    if as_json:
        totals = [
            {"name": n} | {what: counts.total for what, counts in vars(size).items()}
            for n, size in zip(names, sizes, strict=True)
        ]
        print_json(totals[0] | {"rounds": vars(sizes[0]), "abstractions": totals[1:]})
        return
    rounds = [f"round {r + 1}" for r in range(len(sizes[0].information_sets))]
    for n, size in zip(names, sizes, strict=True):
        rows = [
            [what.replace("_", " "), *map(count, counts), count(counts.total)] for what, counts in vars(size).items()
        ]
        print_table(n, ["", *rounds, "total"], rows, numbers=True)
