"""``kilt demo`` builds an agent in one command; ``kilt export`` copies it for use on another machine."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from kilt.cli import options
from kilt.cli.match import first_meets_others, print_matches, print_strategies
from kilt.cli.sanity import print_sanity
from kilt.cli.show import say
from kilt.cli.solve import is_configured, solve
from kilt.cli.web import web as open_page

OTHER_RULE = "@new-0.2"  # the run after the post-processing of [Brown15]


def demo(
    out: Annotated[Path, options.OUT] = Path("runs/demo"),
    seconds: Annotated[float | None, options.TIME] = None,
    hands: Annotated[int, options.HANDS] = 20_000,
    seed: Annotated[int, options.SEED] = 0,
    device: Annotated[str, options.DEVICE] = "cpu",
    web: Annotated[
        bool, typer.Option("--web", help="Open the page in the browser at the end: see `kilt web`.")
    ] = False,
) -> None:
    """Build a small agent for no-limit hold'em, play it against simple opponents, and write a report.

    It prints each step as a command that you can run yourself. After an interruption, the same command continues.
    --time limits solving. Default: 4 minutes.
    """
    from os import cpu_count

    from kilt import artifact
    from kilt.evaluate.stats import win_rate
    from kilt.play.agent import BASELINES
    from kilt.players.agents import blueprint_agent, describe_strategy
    from kilt.players.reports import sanity_reports
    from kilt.runs.examples import DEMO
    from kilt.runs.folder import RunFolder
    from kilt.solve.problem import require_device
    from kilt.strategy.blueprint import STRATEGY, Blueprint
    from kilt.viz.report import MatchResult, collect_contents, write_report

    require_device(device)
    seconds = 240.0 if seconds is None else seconds
    config, run = out.with_name(f"{out.name}.toml"), quote(str(out))
    if not config.exists():
        with artifact.os_errors(f"{config} cannot be written"):
            config.parent.mkdir(parents=True, exist_ok=True)
            artifact.write_text(config, DEMO.format(minutes=seconds / 60, threads=cpu_count() or 1))
    begun = RunFolder.has_run(out)
    if not (begun and RunFolder.open(out).ended and artifact.exists(out / STRATEGY)):
        again = is_configured(out)
        where = "" if device == "cpu" else f" --device {quote(device)}"
        command = f"kilt solve {run}" if again else f"kilt solve {quote(str(config))} --out {run}"
        _show(command + where)
        solve(str(out if again else config), out=None if again else out, device=device)
    blueprint = Blueprint.load(out)

    players = [str(out), *BASELINES, f"{out}{OTHER_RULE}"]
    _show(f"kilt match {' '.join(map(quote, players))} --hands {hands} --duplicate --way played")
    rules, matches, stopped = first_meets_others(players, None, hands, seed, way="played")
    print_matches(f"{rules.name}: what the agent wins", matches)
    print_strategies(players)
    if stopped:
        raise typer.Exit(128 + stopped[0])

    _show(f"kilt evaluate sanity {run}")
    looked = sanity_reports(out)
    for report in looked:
        print_sanity(report, str(out))
    commands = (
        ("play against it and look at it in the browser", f"kilt web {run}"),
        ("play against it in the terminal", f"kilt play {run}"),
        ("solve turns and rivers as they come", f"kilt match {run}@resolve:iterations=20 {run} --hands 20"),
        ("… and play against that", f"kilt play {run}@resolve"),
        ("all hands of a match, to read", f"kilt match {run} random --hands 2000 --log hands.log"),
        ("an ACPC dealer for it …", f"kilt dealer {blueprint.game.name} --hands 100 --ports 20000 20001"),
        ("… and in two other terminals", f"kilt agent {run} localhost 20000"),
        ("solve longer", f"kilt solve {run} --time {5 * seconds / 60:g}min"),
        ("take it elsewhere", f"kilt export {run} my-agent"),
        ("build a larger one", "kilt new mine.toml && kilt estimate mine.toml"),
    )
    results = [MatchResult(*played.players, win_rate(played), played.hands) for played in matches]
    plays = describe_strategy(blueprint_agent(str(out)))
    steps = RunFolder.open(out).steps()
    contents = collect_contents(blueprint, steps=steps, plays=plays, matches=results, sanity=looked, commands=commands)
    page = write_report(out, contents)
    say(f"\nthe report is {page}; what to type next:")
    for what, command in commands:
        say(f"  {command:70} # {what}")
    if web:
        open_page([out])
    if not all(report.ok for report in looked):
        raise typer.Exit(1)


def export(
    run: Annotated[Path, options.FOLDER],
    out: Annotated[Path, options.FILE],
    packed: Annotated[
        bool, typer.Option("--packed", help="One compressed file in place of a folder, for small agents.")
    ] = False,
) -> None:
    """Copy an agent to a folder or file that can play on another machine."""
    from kilt import artifact
    from kilt.errors import ArtifactError
    from kilt.runs.check import require_whole_subgames
    from kilt.strategy.blueprint import KIND, STRATEGY, Blueprint
    from kilt.strategy.blueprint import export as copy

    if packed:
        if out.exists():
            raise ArtifactError(f"{out} is there already: choose another file")
        strategy = run / STRATEGY if artifact.exists(run / STRATEGY) else run
        if artifact.exists(strategy) and artifact.kind_of(strategy) != KIND:
            raise ArtifactError(f"{run} has a strategy without an abstraction, which cannot be packed: omit --packed")
        Blueprint.load(run, check=True).pack(out)
    else:
        require_whole_subgames(run)
        copy(run, out)
    say(f"the agent is complete in {out}; play against it with: kilt play {quote(str(out))}")


def _show(command: str) -> None:
    """Print a step as the command that the user could type."""
    from kilt.cli.show import out

    out.print(f"\n$ {command}", style="bold", markup=False, highlight=False, soft_wrap=True)
