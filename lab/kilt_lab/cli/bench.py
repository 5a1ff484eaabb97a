"""``kilt bench``: how fast kilt is here, beside its peers in the same run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kilt.cli.show import AsJson, print_json, print_table, waiting

if TYPE_CHECKING:
    from kilt_lab.benchmarks.measure import Figure

app = typer.Typer(help="Benchmarks, each beside a peer in the same run.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keep `kilt bench` a group, whatever the number of benchmarks in it."""


Long = Annotated[bool, typer.Option("--long", help="Add the full-size runs.")]


@app.command()
def cards(as_json: AsJson = False, long: Long = False) -> None:
    """Hand strength, river boards, canonical indices and start-up, on one core."""
    from kilt_lab.benchmarks.cards import run

    with waiting("measuring, about a minute …"):
        figures = run(long=long)
    _print("kilt bench cards", figures, as_json=as_json)


@app.command()
def abstraction(as_json: AsJson = False, long: Long = False) -> None:
    """Features of the full deck, k-means beside scikit-learn's, and look-ups of buckets, on all cores."""
    from kilt_lab.benchmarks.abstraction import run

    with waiting("measuring, some minutes …"):
        figures = run(long=long)
    _print("kilt bench abstraction", figures, as_json=as_json)


@app.command()
def public(as_json: AsJson = False, long: Long = False) -> None:
    """Distances and classes of all flops, on all cores; with --long, whole hierarchical abstractions."""
    from kilt_lab.benchmarks.public import run

    with waiting("measuring, some minutes …"):
        figures = run(long=long)
    _print("kilt bench public", figures, as_json=as_json)


@app.command()
def agent(as_json: AsJson = False, long: Long = False) -> None:
    """External sampling on gigabytes beside random reads, an agent's decisions, and matches of blueprints."""
    from kilt_lab.benchmarks.agent import run

    with waiting("measuring, some minutes …"):
        figures = run(long=long)
    _print("kilt bench agent", figures, as_json=as_json)


@app.command()
def distributed(as_json: AsJson = False, long: Long = False) -> None:
    """Blades on Ray beside threads that share a table, on all cores; with --long, what both learn from as much work."""
    from kilt_lab.benchmarks.distributed import run

    with waiting("measuring, some minutes …"):
        figures = run(long=long)
    _print("kilt bench distributed", figures, as_json=as_json)


@app.command()
def web(as_json: AsJson = False, long: Long = False) -> None:
    """How soon the page in the browser is there, and how long its answers take; with --long, of a gigabyte."""
    from kilt_lab.benchmarks.web import run

    with waiting("measuring, about a minute …"):
        figures = run(long=long)
    _print("kilt bench web", figures, as_json=as_json)


@app.command()
def solvers(as_json: AsJson = False, long: Long = False) -> None:
    """External sampling, CFR+ and exploitability beside open_spiel's C++, and what a second thread is worth."""
    from kilt_lab.benchmarks.solvers import run

    with waiting("measuring, a minute or two …"):
        figures = run(long=long)
    _print("kilt bench solvers", figures, as_json=as_json)


@app.command()
def estimators(as_json: AsJson = False, long: Long = False) -> None:
    """Hands that estimators judge and a local best response plays per second, and how much luck AIVAT takes away."""
    from kilt_lab.benchmarks.estimators import run

    with waiting("measuring, some minutes …"):
        figures = run(long=long)
    _print("kilt bench estimators", figures, as_json=as_json)


@app.command()
def counter(as_json: AsJson = False, long: Long = False) -> None:
    """CFR and best responses inside 5-bucket limit hold'em by joint tables, and models from logs."""
    from kilt_lab.benchmarks.counter import run

    with waiting("measuring, some minutes …"):
        figures = run(long=long)
    _print("kilt bench counter", figures, as_json=as_json)


@app.command()
def disk(
    as_json: AsJson = False,
    long: Long = False,
    minutes: Annotated[
        float, typer.Option("--minutes", metavar="M", help="How long [3-1] is solved for, with --long.", min=0.01)
    ] = 120.0,
    bits: Annotated[
        str,
        typer.Option("--bits", metavar="B,B", help="Of the largest regret of a walk: what these scales cost, alone."),
    ] = "",
) -> None:
    """CFR+ with regrets on disk beside CFR+ in memory: files, time and memory, on [2-1].

    With --long, on [2-4]; and how far it comes in [3-1], which memory does not hold, with at most 6 GB of memory.
    """
    from kilt.errors import RunError
    from kilt_lab.benchmarks.disk import FEWEST_BITS, MOST_BITS, run

    asked = bits.split(",") if bits else []
    if not all(each.isascii() and each.isdigit() and FEWEST_BITS <= int(each) <= MOST_BITS for each in asked):
        raise RunError(f"--bits {bits}: give numbers from {FEWEST_BITS} to {MOST_BITS}, such as 17,18")
    with waiting("measuring, a minute; with --long, three hours …"):
        figures = run(long=long, minutes=minutes, bits=[int(each) for each in asked])
    _print("kilt bench disk", figures, as_json=as_json)


@app.command()
def spots(
    as_json: AsJson = False,
    long: Long = False,
    peer: Annotated[
        Path | None,
        typer.Option("--peer", metavar="PATH", help="TexasSolver's console_solver, which solves each spot in turn."),
    ] = None,
) -> None:
    """Seconds to 0.5% of the pot for a river and a turn of TexasSolver's sample input; with --long, its flop."""
    from kilt_lab.benchmarks.spots import run

    with waiting("measuring, a minute; with --long, some …"):
        figures = run(long=long, peer=peer)
    _print("kilt bench spots", figures, as_json=as_json)


@app.command()
def start(as_json: AsJson = False, long: Long = False) -> None:
    """CPU seconds of the ten commonest commands when nothing is compiled yet; with --long, once more when it is."""
    from kilt_lab.benchmarks.start import run

    with waiting("measuring, a minute or two …"):
        figures = run(long=long)
    _print("kilt bench start", figures, as_json=as_json)


@app.command()
def gpu(
    as_json: AsJson = False,
    long: Long = False,
    only: Annotated[
        str | None, typer.Option("--only", metavar="PART", help="One part alone: two-four, responses or royal.")
    ] = None,
) -> None:
    """[2-4] hold'em to 1 mbb/g on a GPU, and how near kernels come to its memory's limit; --long: royal hold'em."""
    from kilt_lab.benchmarks.gpu import run

    with waiting("solving and walking on the GPU …"):
        figures = run(long=long, only=only)
    _print("kilt bench gpu", figures, as_json=as_json)


def _print(title: str, figures: list[Figure], *, as_json: bool) -> None:
    if as_json:
        print_json({figure.key: figure.value for figure in figures})
        return
    rows = [[f.what, f"{f.value:,.4g}" if f.value < 1e4 else f"{f.value:,.0f}", f.unit] for f in figures]
    print_table(title, ["what", "seen", "unit"], rows)
