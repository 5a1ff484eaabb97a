"""``kilt bench``: speed of kilt on this machine, compared with peers in the same run."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from kilt.cli.show import AsJson, print_json, print_table, say, waiting
from kilt.errors import RunError
from kilt.machine import Stopwatch

if TYPE_CHECKING:
    from kilt_lab.against import Comparison
    from kilt_lab.benchmarks.measure import Figure

app = typer.Typer(help="Benchmarks; peers are measured in the same run.", no_args_is_help=True)

# Benchmarks without special options: what they measure, and their time.
PLAIN = {
    "cards": ("Hand strength, river boards, canonical indices and start-up, on one core.", "about a minute"),
    "abstraction": (
        "Features of the full deck, k-means compared with scikit-learn, and look-ups of buckets, on all cores.",
        "a few minutes",
    ),
    "public": (
        "Distances and classes of all flops, on all cores; with --long, whole hierarchical abstractions.",
        "a few minutes",
    ),
    "agent": (
        "External sampling on gigabytes compared with random reads, an agent's decisions, and matches of blueprints.",
        "a few minutes",
    ),
    "distributed": (
        "Workers on Ray compared with threads that share a table, on all cores; with --long, a match of both.",
        "a few minutes",
    ),
    "web": (
        "Time until the browser shows the page, and response times; with --long, for a strategy of a gigabyte.",
        "about a minute",
    ),
    "solvers": (
        "External sampling, CFR+ and exploitability compared with open_spiel's C++; speed-up by a second thread.",
        "a minute or two",
    ),
    "estimators": (
        "Hands per second of estimators and of a local best response, and the variance reduction by AIVAT.",
        "a few minutes",
    ),
    "counter": (
        "CFR and best responses inside 5-bucket limit hold'em by pairs of bucket sequences, and models from logs.",
        "a few minutes",
    ),
    "start": (
        "CPU seconds of the ten most common commands without compiled kernels; with --long, also with them.",
        "a minute or two",
    ),
}

Long = Annotated[bool, typer.Option("--long", help="Add the full-size runs.")]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="PLACE",
        help="Compare with another checkout (a folder), or with a commit of this one. Both are measured in turn, in "
        "separate processes with separate caches; the CPU time to compile all kernels is compared too.",
    ),
]
Rounds = Annotated[int, typer.Option("--rounds", metavar="N", help="With --against: number of measured rounds.", min=1)]
Gate = Annotated[
    float,
    typer.Option(
        "--gate", metavar="P", help="With --against: exit 1 if a figure is worse by more than this percentage.", min=0
    ),
]
Record = Annotated[
    bool,
    typer.Option("--record", help="Record the figures in lab/results, with commit, machine and date (in a clone)."),
]


class Asked(NamedTuple):
    """The options that all benchmarks share."""

    as_json: bool
    against: str | None
    rounds: int
    gate: float
    record: bool


@app.callback()
def _group() -> None:
    """Keep `kilt bench` a group, whatever the number of benchmarks in it."""


def _plain(name: str) -> Callable[..., None]:
    """Return the command of a benchmark of `PLAIN`."""

    def command(
        as_json: AsJson = False,
        long: Long = False,
        against: Against = None,
        rounds: Rounds = 3,
        gate: Gate = 5.0,
        record: Record = False,
    ) -> None:
        def run() -> list[Figure]:
            figures: list[Figure] = import_module(f"kilt_lab.benchmarks.{name}").run(long=long)
            return figures

        _measure(name, ["--long"] * long, run, PLAIN[name][1], Asked(as_json, against, rounds, gate, record))

    return command


for _name, (_what, _) in PLAIN.items():
    app.command(_name, help=_what)(_plain(_name))


@app.command()
def disk(
    as_json: AsJson = False,
    long: Long = False,
    minutes: Annotated[
        float, typer.Option("--minutes", metavar="M", help="With --long: minutes of solving [3-1].", min=0.01)
    ] = 120.0,
    bits: Annotated[
        str,
        typer.Option(
            "--bits",
            metavar="B,B",
            help="Measure only the cost of these scales, in bits of the largest regret of a walk.",
        ),
    ] = "",
    against: Against = None,
    rounds: Rounds = 3,
    gate: Gate = 5.0,
    record: Record = False,
) -> None:
    """CFR+ with regrets on disk compared with CFR+ in memory: files, time and memory, on [2-1].

    With --long, on [2-4]; and exploitability on [3-1], whose tables exceed memory, with at most 6 GB of memory.
    """
    from kilt_lab.benchmarks.disk import FEWEST_BITS, MOST_BITS, run

    scales = bits.split(",") if bits else []
    if not all(each.isascii() and each.isdigit() and FEWEST_BITS <= int(each) <= MOST_BITS for each in scales):
        raise RunError(f"--bits {bits}: give numbers from {FEWEST_BITS} to {MOST_BITS}, such as 17,18")
    options = ["--long"] * long + [f"--minutes={minutes}"] + ([f"--bits={bits}"] if bits else [])
    _measure(
        "disk",
        options,
        lambda: run(long=long, minutes=minutes, bits=[int(each) for each in scales]),
        "a minute; with --long, three hours",
        Asked(as_json, against, rounds, gate, record),
    )


@app.command()
def spots(
    as_json: AsJson = False,
    long: Long = False,
    peer: Annotated[
        Path | None,
        typer.Option(
            "--peer", metavar="PATH", help="Path of TexasSolver's console_solver, which solves each spot too."
        ),
    ] = None,
    against: Against = None,
    rounds: Rounds = 3,
    gate: Gate = 5.0,
    record: Record = False,
) -> None:
    """Time to solve a river and a turn of TexasSolver's sample input to 0.5% of the pot; with --long, its flop too."""
    from kilt_lab.benchmarks.spots import run

    options = ["--long"] * long + ([f"--peer={peer.resolve()}"] if peer else [])
    takes = "a minute; with --long, a few"
    _measure("spots", options, lambda: run(long=long, peer=peer), takes, Asked(as_json, against, rounds, gate, record))


@app.command()
def gpu(
    as_json: AsJson = False,
    long: Long = False,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="PART", help="One part: two-four, responses, royal or blueprint."),
    ] = None,
    against: Against = None,
    rounds: Rounds = 3,
    gate: Gate = 5.0,
    record: Record = False,
) -> None:
    """[2-4] hold'em to 1 mbb/g on a GPU, and the memory bandwidth of kernels; with --long, royal hold'em too."""
    from kilt_lab.benchmarks.gpu import run

    options = ["--long"] * long + ([f"--only={only}"] if only else [])
    takes = "a few minutes, on the GPU"
    _measure("gpu", options, lambda: run(long=long, only=only), takes, Asked(as_json, against, rounds, gate, record))


def _measure(name: str, options: list[str], run: Callable[[], list[Figure]], takes: str, asked: Asked) -> None:
    """Run a benchmark and print its figures, or compare two checkouts; exit with 1 if this one is worse."""
    command = ["bench", name, *options]
    if asked.against is not None:
        if asked.record:
            raise RunError("--record and --against exclude each other: give one of them")
        from kilt_lab.against import compare

        found = compare(command, asked.against, rounds=asked.rounds, gate=asked.gate, tell=say)
        _print_comparison(f"kilt bench {name}, against {asked.against}", found, asked)
        if any(one.verdict == "worse" for one in found):
            raise typer.Exit(1)
        return
    watch = Stopwatch()
    with waiting(f"measuring, {takes} …"):
        figures = run()
    if asked.record:
        from kilt_lab.results import Recording, benchmark_result, record

        batch = Recording.of_run("kilt " + " ".join(command), *watch.spent)
        say(f"recorded in {record(benchmark_result(name, figures, batch))}")
    _print(f"kilt bench {name}", figures, as_json=asked.as_json)


def _print_comparison(title: str, found: list[Comparison], asked: Asked) -> None:
    if asked.as_json:
        print_json({one.key: one.figures() for one in found})
        return
    rows = [
        [
            one.key,
            _number(one.here),
            _number(one.there),
            f"{one.ratio:.3f}",
            f"{one.spread[0]:.3f} to {one.spread[1]:.3f}",
            one.verdict,
        ]
        for one in found
    ]
    columns = ["figure", "here", "there", "here / there", "range over rounds", f"verdict, gate {asked.gate:g}%"]
    print_table(title, columns, rows)


def _number(value: float) -> str:
    return f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}"


def _print(title: str, figures: list[Figure], *, as_json: bool) -> None:
    if as_json:
        print_json({figure.key: figure.value for figure in figures})
        return
    print_table(title, ["what", "result", "unit"], [[f.what, _number(f.value), f.unit] for f in figures])
