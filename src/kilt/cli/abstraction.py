"""``kilt abstraction``: build card abstractions, examine their buckets, and look up hands."""

from __future__ import annotations

from math import inf
from pathlib import Path
from shlex import quote
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kilt.cli import options
from kilt.cli.engines import AddressOption, EngineOption, opened
from kilt.cli.show import (
    AsJson,
    count,
    print_json,
    print_line,
    print_table,
    say,
    ticking,
    waiting,
)
from kilt.config import MOST_THREADS
from kilt.cost import in_time
from kilt.errors import shortened

if TYPE_CHECKING:
    from kilt.abstraction.buckets import AbstractionSpec, CardAbstraction
    from kilt.abstraction.classes import BoardClasses
    from kilt.abstraction.features import Deal
    from kilt.abstraction.plan import PublicPlan
    from kilt.abstraction.rounds import RoundBuckets

app = typer.Typer(help="Card abstractions: buckets of hands that share a strategy.", no_args_is_help=True)

DEFAULT_GAME = "holdem.limit.2p"
PATIENCE = 60.0  # seconds: for longer builds, a quicker method is suggested
SHOWN = 12  # buckets of a round
DRAWN, NAMED = 25, 5  # hands of a bucket that are sampled, and that are printed
BINS_SHOWN = 25
SAMPLES = 4  # boards of a class

Plan = Annotated[
    str,
    typer.Argument(
        metavar="NAME|CONFIG",
        help="A name as in 'IR-KE-KO 169-500-500-500', or a .toml file (see `kilt abstraction plan`).",
    ),
]
GameOption = Annotated[str, options.GAME]
Run = Annotated[Path, options.FOLDER]
SECOND = "2"  # the round of the flop


@app.command()
def build(
    plan: Plan,
    game: GameOption = DEFAULT_GAME,
    to: Annotated[Path | None, options.OUT] = None,
    threads: Annotated[int | None, options.THREADS] = None,
    seconds: Annotated[float | None, options.TIME] = None,
    seed: Annotated[int, options.SEED] = 0,
    engine: EngineOption = None,
    address: AddressOption = "",
    as_json: AsJson = False,
) -> None:
    """Build a card abstraction, or resume an interrupted build.

    The command first prints the memory, disk space and time that it needs. Feature tables are stored in the cache
    folder ($KILT_CACHE, or the user's cache folder) for other abstractions. With an engine, workers share the
    clustering: by class of boards, or, with perfect recall, by bucket of the previous round.
    """
    from dataclasses import replace
    from os import cpu_count

    from kilt.abstraction.estimate import estimate_build, estimate_coded_build
    from kilt.abstraction.pipeline import build as build_abstraction
    from kilt.abstraction.plan import CODES
    from kilt.errors import AbstractionError
    from kilt.machine import cache_folder

    threads = threads or cpu_count() or 1
    if not 1 <= threads <= MOST_THREADS or (seconds is not None and not 0 < seconds < inf):
        raise AbstractionError(
            f"--threads is {shortened(str(threads))} and --time is {seconds} seconds: give numbers above 0, and "
            f"{MOST_THREADS} threads at most"
        )
    identity = _identity(plan, game)
    identity = replace(identity, plan=replace(identity.plan, seed=seed)) if seed else identity
    folder = to or Path(identity.name.replace(" ", "_"))
    with waiting("counting hands …"):
        takes = estimate_build(identity, cache_folder(), threads)
        less = estimate_coded_build(identity, cache_folder(), threads) if (takes.seconds or 0) > PATIENCE else None
    say(f"{identity.name}, on {threads} threads: {takes}; the disk is that of {folder}, the cache is {cache_folder()}")
    if less:
        say(f"with codes = {CODES} in [[public]] of a plan as a .toml file, for coarser buckets: {less}")
    takes.require(folder)
    began = perf_counter()
    try:
        with opened(engine, address, threads) as found, ticking() as tick:
            built = build_abstraction(
                identity,
                folder,
                cache=cache_folder(),
                threads=threads,
                seconds=seconds,
                tick=tick,
                engine=found,
            )
    except KeyboardInterrupt:
        again = f"kilt abstraction build {quote(plan)} --game {quote(game)} --out {quote(str(folder))}"
        say(f"stopped; rounds that were finished are kept: {again} goes on")
        raise typer.Exit(130) from None
    _print_rounds(built, folder, perf_counter() - began, as_json=as_json)


@app.command()
def plan(
    plan: Plan,
    game: GameOption = DEFAULT_GAME,
    classes: Annotated[int | None, options.CLASSES] = None,
    round_name: Annotated[str, options.ROUND] = SECOND,
) -> None:
    """Print the full plan of a card abstraction as TOML, for editing.

    With --classes, the boards of a round are clustered into classes, and each class has its own buckets in later
    rounds.
    """
    from dataclasses import replace

    from kilt.abstraction.pipeline import check_plan
    from kilt.abstraction.plan import PublicPlan

    identity = _identity(plan, game)
    if classes is not None:
        public = PublicPlan(_round(round_name, identity.deal), classes)
        identity = replace(identity, plan=replace(identity.plan, public=(public,)))
    check_plan(identity)
    typer.echo(identity.plan.toml(), nl=False)


@app.command()
def boards(
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="M", help="How boards are compared: tartanian7, waugh or schmid.")
    ] = "tartanian7",
    classes: Annotated[int, options.CLASSES] = 60,
    game: GameOption = DEFAULT_GAME,
    round_name: Annotated[str, options.ROUND] = SECOND,
    keys: Annotated[list[str] | None, options.SET] = None,
    curve: Annotated[
        int,
        typer.Option("--curve", metavar="K", help="Draw the error with 1 to K classes as well [Schmid15 figure 4]."),
    ] = 0,
    to: Annotated[Path | None, options.OUT] = None,
    threads: Annotated[int | None, options.THREADS] = None,
    seed: Annotated[int, options.SEED] = 0,
    engine: EngineOption = None,
    address: AddressOption = "",
    as_json: AsJson = False,
) -> None:
    """Group the boards of a round into classes of similar boards, and draw them.

    --set changes the other keys of the plan: clustering (sum, printed, average, means or medoids), base (the
    abstraction whose buckets count as different hands), restarts (keep the best of N clusterings), and for schmid
    ground (history or histogram) and exact=true (exact earth mover's distance, which takes days). Default: the values
    in the method's paper.

    The same command resumes an interrupted build, or shows the finished classes. An abstraction uses the classes if its
    plan says boards = "RUN" in its public section (see `kilt abstraction plan --classes`). With an engine, workers
    share the pairs of boards that schmid compares.
    """
    from os import cpu_count

    from kilt.abstraction.boards import measure_comparisons
    from kilt.abstraction.buckets import AbstractionSpec, load_classes
    from kilt.abstraction.features import Features
    from kilt.abstraction.pipeline import build as build_abstraction
    from kilt.abstraction.pipeline import check_plan, require_packages
    from kilt.abstraction.plan import Plan, PublicPlan
    from kilt.errors import AbstractionError
    from kilt.machine import cache_folder
    from kilt.records import replaced

    threads = threads or cpu_count() or 1
    if not 1 <= threads <= MOST_THREADS:
        raise AbstractionError(f"--threads is {shortened(str(threads))}: give a number above 0, {MOST_THREADS} at most")
    deal = _deal(game)
    public = replaced(PublicPlan(_round(round_name, deal), classes, method, seed=seed), options.settings(keys))
    identity = AbstractionSpec(f"{method} {classes}", deal, Plan((), (public,)))
    folder = to or Path(f"boards-{method}-{classes}")
    require_packages(identity.plan, folder)
    check_plan(identity)
    try:
        with opened(engine, address, threads) as found, ticking() as tick:
            if public.exact:
                each, pairs = measure_comparisons(
                    identity, public, Features(identity.deal, cache_folder(), threads, tick)
                )
                say(f"{pairs:,} pairs of boards at {each:.3g} s: about {in_time(each * pairs / threads)} in all")
            build_abstraction(identity, folder, cache=cache_folder(), threads=threads, tick=tick, engine=found)
    except KeyboardInterrupt:
        say(f"stopped; what is known is kept in {folder}: the same command goes on")
        raise typer.Exit(130) from None
    _show_classes(identity, public, folder, load_classes(folder, identity, public), curve, as_json=as_json)


def _show_classes(
    identity: AbstractionSpec, public: PublicPlan, folder: Path, classes: BoardClasses, curve: int, *, as_json: bool
) -> None:
    """Print and draw classes of boards."""
    import numpy as np

    from kilt.abstraction.classes import describe_boards
    from kilt.abstraction.partition import clustering_errors as errors_of
    from kilt.viz.boards import plot_balance, plot_classes, plot_distances, plot_errors

    deck, holdings = identity.deal.deck, classes.holdings
    deals = np.bincount(classes.labels, holdings.deal_counts) / holdings.deal_counts.sum()
    rng, samples, words = np.random.default_rng(public.seed), [], []
    for label in range(classes.number):
        mine = np.flatnonzero(classes.labels == label)
        samples.append(holdings.tables.cards[np.sort(rng.permutation(mine)[:SAMPLES])])
        words.append(describe_boards(holdings.tables.cards[mine], holdings.deal_counts[mine], deck))
    title = f"{classes.number} classes of boards: {public.method}"
    plot_classes(samples, words, deals, deck, title, folder / "classes.png")
    sizes = np.bincount(classes.labels, minlength=classes.number)
    plot_balance(sizes, deals, title, folder / "balance.png")
    if classes.distances is not None:
        plot_distances(classes.distances, classes.labels, title, folder / "distances.png")
        if curve:
            found = errors_of(classes.distances, curve, restarts=public.restarts, seed=public.seed)
            plot_errors(found, f"k-medoids, {public.method}", folder / "errors.png")
    rows: list[dict[str, Any]] = [
        {
            "class": label,
            "boards": int(sizes[label]),
            "share": float(deals[label]),
            "description": words[label],
            "examples": [deck.name(board) for board in samples[label]],
        }
        for label in range(classes.number)
    ]
    if as_json:
        print_json({"folder": str(folder), "method": public.method, **classes.figures, "classes": rows})
        return
    print_table(
        title,
        ["class", "boards", "of deals", "examples", "description"],
        [
            [
                str(row["class"]),
                str(row["boards"]),
                f"{row['share']:.2%}",
                ", ".join(row["examples"]),
                row["description"],
            ]
            for row in rows
        ],
    )
    say(f"saved to {folder}, with pictures: classes.png, distances.png, balance.png")


@app.command()
def show(
    run: Run,
    round_name: Annotated[str | None, options.ROUND] = None,
    bucket: Annotated[
        list[int] | None, typer.Option("--bucket", "-b", metavar="B", help="Only this bucket. May be repeated.")
    ] = None,
    picture: Annotated[Path | None, options.PICTURE] = None,
    as_json: AsJson = False,
) -> None:
    """Show the sizes of an abstraction's buckets, their distortion, and example hands.

    The picture is a grid of all starting hands or, for later rounds, histograms of hand strength.
    """
    from kilt.abstraction.buckets import CardAbstraction, load_classes
    from kilt.errors import AbstractionError

    found = CardAbstraction.load(run)
    if not found.rounds:
        for public in found.identity.plan.public:
            _show_classes(found.identity, public, run, load_classes(run, found.identity, public), 0, as_json=as_json)
        return
    if round_name is None and (bucket or picture):
        raise AbstractionError("buckets and pictures are those of one round: add --round R")
    if round_name is None:
        _print_rounds(found, run, None, as_json=as_json)
        return
    round_number = _round(round_name, found.identity.deal)
    this = found.rounds[round_number - 1]
    for number in bucket or ():
        if not 0 <= number < this.buckets:
            raise AbstractionError(f"there is no bucket {number}: round {round_number} has 0 to {this.buckets - 1}")
    chosen = bucket or sorted({this.buckets * place // SHOWN for place in range(SHOWN)})
    rows = [_bucket(found, this, number) for number in chosen]
    if picture:
        _draw(found, round_number, rows, picture)
    if as_json:
        print_json({"round": round_number, "buckets": rows})
        return
    title = f"{found.identity.name}, round {round_number}: {len(chosen)} of {this.buckets:,} buckets"
    print_table(
        title,
        ["bucket", "share of deals", "E[HS]", "for example"],
        [[str(row["bucket"]), f"{row['share']:.3%}", f"{row['ehs']:.3f}", ", ".join(row["examples"])] for row in rows],
    )
    if picture:
        say(f"the picture is {picture}")


@app.command()
def where(
    run: Run,
    hand: Annotated[str, options.CARDS],
    board: Annotated[str, options.BOARD_CARDS] = "",
    as_json: AsJson = False,
) -> None:
    """Print the bucket of a hand, with other hands in it."""
    from kilt.abstraction.buckets import CardAbstraction

    found = CardAbstraction.load(run)
    deal = found.identity.deal
    public = deal.deck.cards(board)
    mine = deal.deck.cards(hand, deal.hole_cards, dead=public)
    number = found.bucket(mine, public)
    r = found.round_of(public)
    row = _bucket(found, found.rounds[r], number)
    if as_json:
        print_json({"hand": deal.deck.name(mine), "board": deal.deck.name(public), "round": r + 1} | row)
        return
    where = f"of {found.rounds[r].buckets:,} in round {r + 1}"
    print_line(f" {where}: {row['share']:.4%} of all deals, E[HS] {row['ehs']:.3f}", bold=f"bucket {number:,}")
    print_line(f"with it: {', '.join(row['examples'])}")


def _identity(plan: str, game: str) -> AbstractionSpec:
    """Return the specification of the abstraction to build."""
    from kilt.abstraction.buckets import AbstractionSpec

    return AbstractionSpec.from_name(plan, _deal(game))


def _round(name: str, deal: Deal) -> int:
    """Return the number of a round, counted from 1, from its name or number."""
    from kilt.games.gamedef import name_rounds, round_from_name

    return round_from_name(name, name_rounds(deal.board_cards)) + 1


def _deal(game: str) -> Deal:
    """Return how the cards of a game are dealt."""
    from kilt.abstraction.features import Deal
    from kilt.errors import AbstractionError
    from kilt.games import load_game
    from kilt.games.holdem import Holdem

    rules = load_game(game)
    if not isinstance(rules, Holdem):
        raise AbstractionError(f"{game} has no cards: abstractions are for games of poker")
    return Deal.from_game(rules)


def _bucket(found: CardAbstraction, this: RoundBuckets, number: int) -> dict[str, Any]:
    """Return a bucket's share of all deals, and some of its hands, drawn at random."""
    import numpy as np

    from kilt.cards.equity import distribution, mean_strength, strength_histogram

    deal = found.identity.deal
    boards, hands = this.bucket_members(number)
    chosen = np.random.default_rng(number).permutation(len(boards))[:DRAWN]
    holes, names, counts = deal.deck.holes(deal.hole_cards), [], []
    for place in chosen:
        cards = boards[place]
        on = f" on {deal.deck.name(cards)}" if len(cards) else ""
        names.append(deal.deck.name(holes[hands[place]]) + on)
        ends = distribution(cards.tolist(), deal.deck, board_size=deal.board_sizes[-1], hole_cards=deal.hole_cards)
        counts.append(ends[hands[place]])
    return {
        "bucket": int(number),
        "share": float(this.sizes[number] / this.sizes.sum()),
        "ehs": float(np.mean(mean_strength(np.array(counts)))),
        "examples": names[:NAMED],
        "histogram": np.mean(strength_histogram(np.array(counts), BINS_SHOWN), axis=0).round(5).tolist(),
    }


def _draw(found: CardAbstraction, round_number: int, rows: list[dict[str, Any]], picture: Path) -> None:
    """Draw the starting hands by bucket, or histograms of the example hands of each bucket."""
    import numpy as np

    from kilt.viz.abstraction import plot_histograms, plot_starting_hands
    from kilt.viz.picture import require_drawable

    require_drawable(picture)
    deal, this = found.identity.deal, found.rounds[round_number - 1]
    title = f"{found.identity.name}, round {round_number}"
    if deal.board_sizes[round_number - 1] == 0 and deal.hole_cards == 2:
        plot_starting_hands(this.look_up_board(()), deal.deck, title, picture)
        return
    names = [f"bucket {row['bucket']}" for row in rows]
    plot_histograms(np.array([row["histogram"] for row in rows]), names, title, picture)


def _print_rounds(found: CardAbstraction, run: Path, seconds: float | None, *, as_json: bool) -> None:
    import numpy as np

    rounds = []
    for r, this in enumerate(found.rounds):
        shares = this.sizes / this.sizes.sum()
        rounds.append(
            {
                "round": r + 1,
                "buckets": this.buckets,
                "hands": len(this.holdings),
                "boards": "+".join(map(str, this.holdings.dealt)),
                "smallest": float(shares.min()),
                "median": float(np.median(shares)),
                "largest": float(shares.max()),
                "distortion": this.figures.get("distortion"),
                "seconds": this.figures["seconds"],
            }
        )
    if as_json:
        said = {"name": found.identity.name, "folder": str(run), "fingerprint": found.identity.fingerprint}
        print_json(said | ({} if seconds is None else {"seconds": seconds}) | {"rounds": rounds})
        return
    print_table(
        found.identity.name,
        ["round", "buckets", "hands", "board", "least", "median", "most", "distortion", "time"],
        [
            [
                str(row["round"]),
                f"{row['buckets']:,}",
                count(row["hands"]),
                row["boards"],
                *(f"{100 * row[what]:.2g} %" for what in ("smallest", "median", "largest")),
                "" if row["distortion"] is None else f"{row['distortion']:.5g}",
                in_time(row["seconds"]),
            ]
            for row in rounds
        ],
        numbers=True,
    )
    if seconds is not None:
        say(f"saved to {run}; look at it with: kilt abstraction show {quote(str(run))}")
