"""``kilt evaluate``: how good a strategy is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kilt.cli.engines import AddressOption, EngineOption, opened
from kilt.cli.log import log
from kilt.cli.sanity import sanity
from kilt.cli.show import AsJson, print_json, print_table, waiting
from kilt.cli.solve import GameOption, ThreadsOption, exploitability_rows

app = typer.Typer(help="Evaluation: how good a strategy is.", no_args_is_help=True)


app.command()(sanity)
app.command()(log)


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
        typer.Option(
            "--agent",
            metavar="AGENT",
            help="With --game: uniform takes all actions alike; in poker there are always-fold, always-call, "
            "always-raise and call-or-raise, half and half, too.",
        ),
    ] = None,
    responses: Annotated[
        Path | None,
        typer.Option(
            "--responses", metavar="FOLDER", help="Also write a strategy there that takes a best response in each seat."
        ),
    ] = None,
    threads: ThreadsOption = 1,
    engine: EngineOption = None,
    address: AddressOption = "",
    as_json: AsJson = False,
) -> None:
    """What perfect opponents win against a strategy, exactly: that of a run, or --game NAME --agent AGENT.

    An engine has as many workers as there are --threads; each walks its share of the boards.
    """
    from kilt.errors import RunError
    from kilt.evaluate.agents import AGENTS
    from kilt.evaluate.judge import UNIT
    from kilt.runs.subject import Subject

    if (run is None) == (game is None):
        raise RunError(
            "give a RUN that `kilt solve --out RUN` has filled, or --game NAME --agent AGENT; one of the two"
        )
    if run and agent:
        raise RunError(f"--agent {agent} is given and the run {run} too: leave out one")
    if game and agent is None:
        raise RunError(f"the agent is not given: use --agent with one of {', '.join(AGENTS)}")

    if responses and responses.exists():
        raise RunError(f"{responses} is there already: choose another folder for the best responses")
    subject = Subject.of_run(run) if run else Subject(str(game), agent=str(agent))
    name = subject.game
    with waiting(f"writing out {name} …"):
        judge, table, figures = subject.load(threads, shared=engine is not None)
    who = {"run": str(run), "iterations": figures["iterations"]} if run else {"agent": agent}
    if not judge.exact:
        raise RunError(
            f"{name} is too large to look for best responses: `kilt match {run} always-call` plays against it, "
            f"`kilt evaluate sanity {run}` looks it over"
        )
    walks = judge.walks(table) if engine else None
    with opened(engine, address, threads) as workers, waiting("looking for best responses …"):
        if workers and walks:
            won, value = subject.response_values(walks, workers, threads)
        else:
            won, value = judge.response_values(table), judge.expected_value(table)
        if responses:
            said = {"against": str(agent or run)} | dict(zip(("value_1", "value_2"), won, strict=True))
            judge.problem.save(responses, judge.responses(table), **said)
    mean = max(sum(won) / 2, 0.0)
    mbb = judge.problem.mbb(mean)
    if as_json:
        print_json(
            {"game": name}
            | who
            | {"exploitability": mean, "value": value, "best_response_values": won, "unit": UNIT}
            | ({} if mbb is None else {"exploitability_mbb": mbb})
        )
        return
    rows = [
        *exploitability_rows(mean, judge.problem),
        *([f"best response of player {seat + 1} wins", f"{chips:.6g}", UNIT] for seat, chips in enumerate(won)),
        ["value to player 1", f"{value:.6g}", UNIT],
    ]
    print_table(f"{name}, {agent or run}", ["", "seen", "unit"], rows)
