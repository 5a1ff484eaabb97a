"""``kilt bench``: how fast kilt is here, beside its peers in the same run."""

from __future__ import annotations

from typing import Annotated

import typer

from kilt.cli.show import AsJson, errors, print_json, print_table

app = typer.Typer(help="Benchmarks, each beside a peer in the same run.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keep `kilt bench` a group, whatever the number of benchmarks in it."""


@app.command()
def cards(
    as_json: AsJson = False,
    long: Annotated[bool, typer.Option("--long", help="Add the full-size runs.")] = False,
) -> None:
    """Hand strength, river boards, canonical indices and start-up, on one core."""
    from kilt.bench.cards import run

    with errors.status("measuring, about a minute …"):
        figures = run(long=long)
    if as_json:
        print_json({figure.key: figure.value for figure in figures})
        return
    print_table(
        "kilt bench cards",
        ["what", "seen", "unit"],
        [
            [figure.what, f"{figure.value:,.4g}" if figure.value < 1e4 else f"{figure.value:,.0f}", figure.unit]
            for figure in figures
        ],
    )
