"""``kilt cards``: rank hands, and compute their equity."""

from __future__ import annotations

from typing import Annotated

import typer

from kilt.cli import options
from kilt.cli.show import AsJson, print_json, print_line, waiting

app = typer.Typer(help="Cards: how strong a hand is, and how often it wins.", no_args_is_help=True)


@app.command()
def strength(
    cards: Annotated[str, options.CARDS],
    as_json: AsJson = False,
) -> None:
    """Rank a hand of 5 to 7 cards, and print its name."""
    from kilt.cards import hands
    from kilt.cards.deck import FULL
    from kilt.errors import CardError

    numbers = FULL.cards(cards)
    if not 5 <= len(numbers) <= hands.MAX_CARDS:
        raise CardError(f"{cards!r} has {len(numbers)} cards: give 5, 6 or 7")
    value = hands.strength(numbers)
    scale = hands.hand_tables(len(numbers)).scale
    result = {
        "cards": FULL.name(numbers),
        "hand": hands.describe_hand(numbers),
        "best_five": FULL.name(hands.best_five(numbers)),
        "strength": value,
        "scale": scale,
    }
    if as_json:
        print_json(result)
        return
    print_line(f"  ({result['best_five']})", bold=hands.describe_hand(numbers))
    print_line(f"strength {value} of 0 to {scale - 1}: number {scale - value:,} of {scale:,} from the top")


@app.command()
def equity(
    hand: Annotated[str, options.CARDS],
    opponent: Annotated[
        str,
        typer.Argument(
            metavar="[HAND|RANGE]",
            help="Another hand (QdQc), or a range (QQ+,AKs,A5s-A2s,KQs:0.5).",
        ),
    ] = "random",
    board: Annotated[str, options.BOARD] = "",
    as_json: AsJson = False,
) -> None:
    """Compute the exact equity of a hand against another hand or a range."""
    from kilt.cards.deck import FULL
    from kilt.cards.equity import hand_equity, parse_hand

    public = FULL.cards(board)
    mine = parse_hand(hand, public)
    opponents = FULL.range(opponent)
    with waiting("playing out all boards …"):
        result = hand_equity(mine, opponents, public)
    if as_json:
        print_json(
            {"hand": FULL.name(mine), "opponent": opponent, "board": FULL.name(public)}
            | result._asdict()
            | {"equity": result.equity}
        )
        return
    where = f" on {FULL.name(public)}" if public else ""
    print_line(f" against {opponent}{where}", bold=FULL.name(mine))
    print_line(
        f"equity {100 * result.equity:.3f}%   win {100 * result.win:.3f}%   tie {100 * result.tie:.3f}%   "
        f"lose {100 * result.lose:.3f}%"
    )
