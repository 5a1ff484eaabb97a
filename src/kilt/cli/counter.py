"""``kilt counter``: compute a counter-strategy, which exploits a modelled opponent at limited risk."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from kilt.cli import options
from kilt.cli.engines import AddressOption, EngineOption, opened
from kilt.cli.show import AsJson, print_json, print_table, say, ticking
from kilt.cli.solve import built, finish, free_folder, print_result, run_result

if TYPE_CHECKING:
    from kilt.config import Config
    from kilt.runs.answers import SolvedAnswer
    from kilt.runs.budget import Budget


def counter(
    what: Annotated[str, options.WHAT],
    models: Annotated[
        list[Path] | None,
        typer.Option(
            "--model", metavar="MODEL", help="What `kilt model` made for the same game; or logs, with --player."
        ),
    ] = None,
    player: Annotated[str | None, options.OPPONENT_NAME] = None,
    p: Annotated[
        list[float] | None,
        typer.Option(
            "--p",
            metavar="P",
            help="Probability with which the opponent plays the model: a restricted Nash response. Given several "
            "times: an answer for each, as runs inside the folder.",
        ),
    ] = None,
    confidence: Annotated[
        str | None,
        typer.Option(
            "--confidence",
            metavar="F",
            help="Data-biased response: P is a maximum, reached where the model has seen enough: 1-step, 10-step, "
            "0-10-linear or s-curve. Without --p and --confidence: 0.9 and 0-10-linear.",
        ),
    ] = None,
    iterations: Annotated[int | None, options.ITERATIONS] = None,
    seconds: Annotated[float | None, options.TIME] = None,
    algorithm: Annotated[str | None, options.ALGORITHM] = None,
    seed: Annotated[int | None, options.SEED] = None,
    threads: Annotated[int | None, options.THREADS] = None,
    out: Annotated[Path | None, options.OUT] = None,
    engine: EngineOption = None,
    address: AddressOption = "",
    as_json: AsJson = False,
) -> None:
    """Compute a counter-strategy, which exploits a modelled opponent at limited risk.

    The result is an ordinary run for `kilt match`, `kilt export` and `kilt agent`, and `kilt solve DIR` resumes it
    after it was stopped or killed. With an engine, workers solve several counter-strategies at once, each in one
    process; if a worker dies, another resumes from its checkpoint.
    """
    from kilt.cli.model import count_model, print_counted
    from kilt.errors import RunError
    from kilt.games import ready_made_games
    from kilt.runs.answers import answer_spec, exploitation
    from kilt.runs.budget import make_budget
    from kilt.runs.build import build
    from kilt.runs.plan import RunPlan
    from kilt.solve.counter import DEFAULT_CONFIDENCE, Against
    from kilt.strategy.model import OpponentModel

    if not models:
        raise RunError("say who is answered: give --model MODEL, or --model LOG and --player NAME")
    if player is None and (len(models) > 1 or models[0].is_file()):
        raise RunError("a model is one folder, and logs do not say whose hands count: give --player with logs")
    if player is not None and any(path.is_dir() for path in models):
        raise RunError("--player says whose hands of logs count, and a model is given: leave out --player")
    shares = p or [0.9]
    if len({*shares}) < len(shares):
        raise RunError("--p has a number twice: give each once")
    trust = confidence or ("" if p else DEFAULT_CONFIDENCE)
    folder = out or free_folder(f"{Path(what).stem}-counter")
    several = len(shares) > 1 or engine is not None
    if several and folder.exists():
        raise RunError(f"{folder} is there already: choose another folder for the answers")
    folders = [folder / f"p-{share:g}" for share in shares] if several else [folder]
    budget = make_budget(iterations, seconds, None, what)
    if player is None:
        seen = OpponentModel.load(models[0], check=True)
    else:
        counted = count_model(models, player, what)
        seen = counted.model
        if not as_json:
            print_counted(counted, None, as_json=False)
    base = what if what in ready_made_games() else _same_game(what)
    values = {"solver.algorithm": algorithm, "solver.seed": seed, "solver.threads": threads}
    specs = [answer_spec(base, Against(seen, share, trust), values) for share in shares]
    if several:
        for spec, place in zip(specs, folders, strict=True):
            if isinstance(spec, RunPlan):
                spec.leave(place)
            else:
                build(spec, place, budget=budget)
        _print_answers(_solved(engine, address, shares, folders, budget), as_json=as_json)
        return
    run = built(specs[0], folder, budget)
    last = finish(run)
    won = exploitation(run)
    if as_json:
        print_json(run_result(last, run) | {"exploitation_mbb": won.mean, "exploitation_ci95": won.interval})
        return
    print_result(last, run, as_json=False)
    exact = "" if won.margin else ", exactly"
    wins = str(won) if won.margin else f"{won.mean:+.1f}"
    say(f"its average strategy wins {wins} mbb/h from the model that it answers{exact}")


def _solved(
    name: str | None, address: str, shares: list[float], folders: list[Path], budget: Budget | None
) -> list[tuple[float, Path, SolvedAnswer]]:
    """Solve several counter-strategies: in parallel on the workers of an engine, or one after another without one."""
    from kilt.jit import cores
    from kilt.runs.answers import solve_answer, solve_answers

    found: list[SolvedAnswer] = []
    try:
        with opened(name, address, min(len(folders), cores())) as engine, ticking() as tick:
            if engine:
                found = solve_answers(engine, folders, budget, lambda share: tick("answers", share))
            else:
                for number, folder in enumerate(folders):
                    tick(str(folder), number / len(folders))
                    found.append(solve_answer(folder, budget))
    except KeyboardInterrupt:
        say(f"stopped; each goes on by itself: kilt solve {quote(str(folders[len(found)]))}")
        raise typer.Exit(130) from None
    return list(zip(shares, folders, found, strict=True))


def _print_answers(found: list[tuple[float, Path, SolvedAnswer]], *, as_json: bool) -> None:
    from math import isnan

    if as_json:
        print_json(
            {
                "answers": [
                    {"p": p, "run": str(folder)}
                    | one.last._asdict()
                    | {"exploitability_mbb": one.exploitability_mbb}
                    | {"exploitation_mbb": one.exploitation.mean, "exploitation_ci95": one.exploitation.interval}
                    for p, folder, one in found
                ]
            }
        )
        return
    rows = [
        [
            f"{p:g}",
            str(one.exploitation) if one.exploitation.margin else f"{one.exploitation.mean:+.1f}",
            "unknown" if isnan(one.exploitability_mbb) else f"{one.exploitability_mbb:.1f}",
            f"{one.last.iterations:,}",
            str(folder),
        ]
        for p, folder, one in found
    ]
    print_table(
        "answers, average strategies",
        ["p", "win rate against the model, mbb/h", "exploitability, mbb/g", "iterations", "run"],
        rows,
    )


def _same_game(what: str) -> str | Config:
    """Return the game of a run, or of a configuration without its engine, for counter-strategies."""
    from dataclasses import replace

    from kilt.config import EngineConfig, find_config, read_config
    from kilt.runs.folder import CONFIG
    from kilt.runs.plan import with_built_cards
    from kilt.runs.run import open_run

    run = Path(what)
    if run.is_dir() and not (run / CONFIG).is_file():  # a run on an unabstracted game
        return open_run(run).game
    config = read_config(run / CONFIG) if run.is_dir() else find_config(what)
    if config is None:
        return what
    if run.is_dir():
        config = with_built_cards(config, run)
    if config.engine.name:
        say("each counter-strategy is solved in one process: the [engine] of the configuration is left out")
    return replace(config, opponent_cards="", engine=EngineConfig())  # the opponent is the model
