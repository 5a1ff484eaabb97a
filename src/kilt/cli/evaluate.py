"""``kilt evaluate``: how good a strategy is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from kilt.cli.show import AsJson, errors, print_json, print_table
from kilt.cli.solve import GameOption, ThreadsOption, exploitability_rows

app = typer.Typer(help="Evaluation: how good a strategy is.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keep `kilt evaluate` a group, whatever the number of commands in it."""


@app.command()
def exploitability(
    run: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="A folder that `kilt solve --out RUN` has filled.")
    ] = None,
    game: GameOption = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="AGENT", help="With --game: uniform, which takes all actions alike."),
    ] = None,
    threads: ThreadsOption = 1,
    as_json: AsJson = False,
) -> None:
    """What perfect opponents win against a strategy, exactly: that of a run, or --game NAME --agent uniform."""
    from kilt import artifact
    from kilt.errors import RunError
    from kilt.solve.folder import RunFolder
    from kilt.solve.problem import UNIT, Problem, load_problem, stored_form

    agents: dict[str, Callable[[Problem], artifact.Array]] = {"uniform": lambda problem: problem.uniform()}
    if (run is None) == (game is None):
        raise RunError(
            "give a RUN that `kilt solve --out RUN` has filled, or --game NAME --agent uniform; one of the two"
        )
    if run and agent:
        raise RunError(f"--agent {agent} is given and the run {run} too: leave out one")
    if game and agent not in agents:
        raise RunError(f"the agent is {agent or 'not given'}: use --agent with one of {', '.join(agents)}")

    folder = RunFolder.open(run) if run else None
    stored = folder.path / "strategy" if folder else None
    if stored and not artifact.exists(stored):
        raise RunError(f"{run} has not come to its end and has no strategy yet: kilt solve --resume {quote(str(run))}")
    name = folder.identity.game if folder else str(game)
    with errors.status(f"writing out {name} …"):
        problem = load_problem(name, form=stored_form(stored) if stored else None, threads=threads)
    if stored:
        table, figures = problem.load(stored)
        who = {"run": str(run), "iterations": figures["iterations"]}
    else:
        table, who = agents[str(agent)](problem), {"agent": agent}
    responses, value = problem.response_values(table), problem.expected_value(table)
    mean = max(sum(responses) / 2, 0.0)
    mbb = problem.mbb(mean)
    if as_json:
        print_json(
            {"game": name}
            | who
            | {"exploitability": mean, "value": value, "best_response_values": responses, "unit": UNIT}
            | ({} if mbb is None else {"exploitability_mbb": mbb})
        )
        return
    rows = [
        *exploitability_rows(mean, problem),
        *([f"best response of player {seat + 1} wins", f"{won:.6g}", UNIT] for seat, won in enumerate(responses)),
        ["value to player 1", f"{value:.6g}", UNIT],
    ]
    print_table(f"{name}, {agent or run}", ["", "seen", "unit"], rows)
