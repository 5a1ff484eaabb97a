"""``kilt counter``: from a model of an opponent to an agent that wins more from them, and stays safe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kilt.cli.show import AsJson, print_json, say
from kilt.cli.solve import asked_budget, configured, finish, free_folder, print_result, result_of

if TYPE_CHECKING:
    from kilt.evaluate.stats import Estimate
    from kilt.runs.budget import Budget
    from kilt.runs.run import Run
    from kilt.solve.counter import Against


def counter(
    config: Annotated[
        Path | None,
        typer.Argument(metavar="[CONFIG|RUN]", help="A .toml file as `kilt solve` takes it, or a run."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", metavar="MODEL", help="What `kilt model` made for the same game.")
    ] = None,
    logs: Annotated[
        list[Path] | None,
        typer.Option("--log", metavar="LOG", help="… or hands of the opponent, any number of files; needs --player."),
    ] = None,
    player: Annotated[
        str | None, typer.Option("--player", metavar="NAME", help="Who the opponent is, as the logs call them.")
    ] = None,
    game: Annotated[
        str | None,
        typer.Option("--game", "-g", metavar="GAME", help="In place of CONFIG: a game as it is, such as leduc."),
    ] = None,
    p: Annotated[
        float | None,
        typer.Option("--p", metavar="P", help="Restricted Nash response: they play the model with probability P."),
    ] = None,
    p_max: Annotated[
        float | None,
        typer.Option(
            "--p-max",
            metavar="P",
            help="Data-biased response: they play it with probability P at most, where they were seen often enough. "
            "Without --p: 0.9.",
        ),
    ] = None,
    confidence: Annotated[
        str | None,
        typer.Option(
            "--confidence",
            metavar="F",
            help="What is often enough: 1-step, 10-step, 0-10-linear or s-curve. Left out: 0-10-linear.",
        ),
    ] = None,
    iterations: Annotated[
        int | None, typer.Option("--iterations", "-n", metavar="N", help="Stop after N iterations.")
    ] = None,
    minutes: Annotated[float | None, typer.Option("--minutes", "-m", metavar="M", help="Stop after M minutes.")] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            "--algorithm", "-a", metavar="A", help="cfr, cfr+, linear, dcfr, joint or external. Left out: CONFIG's."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="S", help="Left out: CONFIG's.")] = None,
    threads: Annotated[int | None, typer.Option("--threads", metavar="T", help="Left out: CONFIG's.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="A new folder for the run.")] = None,
    as_json: AsJson = False,
) -> None:
    """Answer a model of an opponent: win more from them than an equilibrium does, without giving too much away.

    What comes out is a run like any other: `kilt match`, `kilt export` and `kilt agent` take it, and
    `kilt solve --resume DIR` goes on with it when it was stopped or killed.
    """
    from kilt.config import DEFAULT_ALGORITHM
    from kilt.errors import RunError
    from kilt.runs.folder import CONFIG
    from kilt.runs.run import new_run, open_run
    from kilt.solve.counter import DEFAULT_CONFIDENCE, Against
    from kilt.strategy.model import OpponentModel

    if p is not None and (p_max is not None or confidence is not None):
        raise RunError(
            "--p is for a restricted Nash response, --p-max and --confidence for a data-biased one: give one"
        )
    if (model is None) == (not logs) or (player is None) != (not logs):
        raise RunError("say who is answered: by --model MODEL, or by --log LOG and --player NAME")
    if (config is None) == (game is None):
        raise RunError("say what is played: give a CONFIG or a RUN, or --game GAME")
    share = (0.9 if p_max is None else p_max) if p is None else p
    trust = (confidence or DEFAULT_CONFIDENCE) if p is None else ""
    folder = out or free_folder(f"{config.stem if config else Path(game or '').stem}-counter")
    budget, target = asked_budget(iterations, minutes, None), game or str(config)
    if config and config.is_dir() and not (config / CONFIG).is_file():  # a run on a game as it is
        game, config = open_run(config).game, None
    with _opponent(model, logs or [], player or "", target, as_json=as_json) as seen:
        against = Against(OpponentModel.load(seen, check=True), share, trust)
        if config:
            run = _configured(config, seen, against, {"seed": seed, "threads": threads}, algorithm, folder, budget)
        else:
            called = against.algorithm(algorithm or DEFAULT_ALGORITHM)
            run = new_run(
                game or "",
                called,
                budget=budget,
                seed=seed or 0,
                threads=threads or 1,
                against=against,
                folder=folder,
            )
    last = finish(run)
    found = _exploitation(run)
    if as_json:
        print_json(result_of(last, run) | {"exploitation_mbb": found.mean, "exploitation_ci95": found.interval})
        return
    print_result(last, run, as_json=False)
    exact = "" if found.margin else ", exactly"
    say(f"it wins {found if found.margin else f'{found.mean:+.1f}'} mbb/h from the model that it answers{exact}")


def _configured(
    config: Path,
    model: Path,
    against: Against,
    how: dict[str, int | None],
    algorithm: str | None,
    folder: Path,
    budget: Budget | None,
) -> Run:
    """A run on an abstract game; it has a copy of the model of its own."""
    from kilt.config import CounterConfig, EngineConfig, read_config
    from kilt.runs.folder import CONFIG
    from kilt.runs.run import with_overrides
    from kilt.strategy.blueprint import card_folders

    said = read_config(config / CONFIG if config.is_dir() else config)
    if config.is_dir():  # the cards of a run are there already
        own = zip(said.cards, card_folders(config, len(said.cards)), strict=True)
        said = replace(said, cards=tuple(str(there.resolve()) if there.is_dir() else name for name, there in own))
    if said.engine.name:
        say("counter-strategies are solved in one process: the [engine] of the configuration is left out")
    called = against.algorithm(algorithm or said.solver.algorithm)
    said = with_overrides(replace(said, engine=EngineConfig()), solver={"algorithm": called, **how}, engine={})
    asked = CounterConfig(str(model), against.p, against.confidence)
    return configured(replace(said, counter=asked), folder, budget, going_on=False)


@contextmanager
def _opponent(model: Path | None, logs: list[Path], player: str, target: str, *, as_json: bool) -> Iterator[Path]:
    """The folder of a model: the one that is there, or one that is counted from logs, for as long as it is needed."""
    from tempfile import TemporaryDirectory

    from kilt.cli.model import counted, print_counted

    if model is not None:
        yield model.resolve()
        return
    found = counted(logs, player, target)
    if not as_json:
        print_counted(found, None, as_json=False)
    with TemporaryDirectory(prefix="kilt-model-") as folder:
        found.model.save(Path(folder) / "model")
        yield Path(folder) / "model"


def _exploitation(run: Run) -> Estimate:
    """What the strategy wins from the model in mbb/h, mean over both seats, with its 95% interval."""
    import numpy as np

    from kilt.evaluate.head_to_head import AGAINST_FIXED, AbstractStrategy, expected_winnings
    from kilt.evaluate.stats import Estimate, estimate
    from kilt.solve.abstract_problem import AbstractProblem

    problem = run.judge.problem
    opponent, answer = problem.opponent, run.strategy()
    policy = opponent.model.policy()
    if not isinstance(problem, AbstractProblem):  # both seats are walked
        first, second = (run.judge.expected_value(opponent.own(pair)) for pair in ((answer, policy), (policy, answer)))
        return Estimate(problem.mbb((first - second) / 2) or 0.0, 0.0)
    mine, theirs = (
        AbstractStrategy(problem.abstract, shares.astype(np.float32))  # kernels are compiled for one type
        for shares in (answer, policy)
    )
    won = expected_winnings(mine, theirs, AGAINST_FIXED)
    return estimate(won.mean(axis=1) * 1000 / problem.big_blind)
