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
    from kilt.runs.run import Run


def counter(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG|RUN", help="A .toml file as `kilt solve` takes it, or a run of one.")
    ],
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
    from kilt.config import CounterConfig, read_config
    from kilt.errors import RunError
    from kilt.runs.folder import CONFIG
    from kilt.runs.run import with_overrides
    from kilt.solve.counter import DEFAULT_CONFIDENCE
    from kilt.strategy.blueprint import card_folders

    if p is not None and (p_max is not None or confidence is not None):
        raise RunError(
            "--p is for a restricted Nash response, --p-max and --confidence for a data-biased one: give one"
        )
    if (model is None) == (not logs) or (player is None) != (not logs):
        raise RunError("say who is answered: by --model MODEL, or by --log LOG and --player NAME")
    said = read_config(config / CONFIG if config.is_dir() else config)
    if config.is_dir():  # the cards of a run are there already
        own = zip(said.cards, card_folders(config, len(said.cards)), strict=True)
        said = replace(said, cards=tuple(str(there.resolve()) if there.is_dir() else name for name, there in own))
    asked = algorithm or said.solver.algorithm
    base = asked.partition(":")[2] if asked.partition(":")[0] in ("rnr", "dbr") else asked
    kind, share = ("dbr", 0.9 if p_max is None else p_max) if p is None else ("rnr", p)
    solver = {"algorithm": f"{kind}:{base}" if base else kind, "seed": seed, "threads": threads}
    said = with_overrides(said, solver=solver, engine={})
    folder = out or free_folder(f"{config.stem}-counter")
    with _opponent(model, logs or [], player or "", config, as_json=as_json) as seen:  # a run has a copy of its own
        against = CounterConfig(str(seen), share, (confidence or DEFAULT_CONFIDENCE) if kind == "dbr" else "")
        budget = asked_budget(iterations, minutes, None)
        run = configured(replace(said, counter=against), folder, budget, going_on=False)
    last = finish(run)
    found = _exploitation(run)
    if as_json:
        print_json(result_of(last, run) | {"exploitation_mbb": found.mean, "exploitation_ci95": found.interval})
        return
    print_result(last, run, as_json=False)
    say(f"it wins {found} mbb/h from the model that it answers")


@contextmanager
def _opponent(model: Path | None, logs: list[Path], player: str, config: Path, *, as_json: bool) -> Iterator[Path]:
    """The folder of a model: the one that is there, or one that is counted from logs, for as long as it is needed."""
    from tempfile import TemporaryDirectory

    from kilt.cli.model import counted, print_counted

    if model is not None:
        yield model.resolve()
        return
    found = counted(logs, player, str(config))
    if not as_json:
        print_counted(found, None, as_json=False)
    with TemporaryDirectory(prefix="kilt-model-") as folder:
        found.model.save(Path(folder) / "model")
        yield Path(folder) / "model"


def _exploitation(run: Run) -> Estimate:
    """What the strategy wins from the model in mbb/h, mean over both seats, with its 95% interval."""
    import numpy as np

    from kilt.evaluate.head_to_head import AGAINST_FIXED, AbstractStrategy, expected_winnings
    from kilt.evaluate.stats import estimate
    from kilt.solve.abstract_problem import AbstractProblem

    problem = run.judge.problem
    assert isinstance(problem, AbstractProblem)
    assert problem.against
    mine, theirs = (
        AbstractStrategy(problem.abstract, shares.astype(np.float32))  # kernels are compiled for one type
        for shares in (run.strategy(), problem.against.model.policy())
    )
    won = expected_winnings(mine, theirs, AGAINST_FIXED)
    return estimate(won.mean(axis=1) * 1000 / problem.big_blind)
