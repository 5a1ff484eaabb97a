"""``kilt lab``: result files, and the pages that are rendered from them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Annotated

import typer

from kilt.cli.show import AsJson, print_json, print_table, say
from kilt.cost import in_time
from kilt.errors import RunError
from kilt.machine import Stopwatch

app = typer.Typer(help="Results as data: record, list and render them (in a clone of kilt).", no_args_is_help=True)


@app.command()
def render(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 if a page is out of date.")] = False,
) -> None:
    """Write docs/lab and the tables between markers in other pages from lab/results."""
    from kilt_lab.provenance import required_clone
    from kilt_lab.render import changed, write

    root = required_clone("kilt lab render")
    paths = changed(root) if check else write(root)
    for path in paths:
        say(f"{'out of date' if check else 'written'}: {path.relative_to(root)}")
    if check and paths:
        raise typer.Exit(1)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def record(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the result: lab/results/observations/NAME/….json.")
    ],
    setting: Annotated[str, typer.Option("--setting", metavar="S", help="Name of its file.")] = "default",
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="A one-line title.")] = "",
) -> None:
    """Run a command of kilt, and keep its JSON with commit, machine and date: `kilt lab record NAME -- kilt …`."""
    from kilt_lab.provenance import required_clone
    from kilt_lab.results import OBSERVATION, Recording, Result
    from kilt_lab.results import record as keep

    command = list(context.args)
    if command[:1] != ["kilt"] or len(command) < 2:
        raise RunError("give the command to record after two hyphens: kilt lab record NAME -- kilt game size leduc")
    required_clone("kilt lab record")
    asked = command[1:] if "--json" in command else [*command[1:], "--json"]
    watch = Stopwatch()
    done = subprocess.run([sys.executable, "-m", "kilt", *asked], stdout=subprocess.PIPE, text=True, check=False)
    spent = watch.spent
    if done.returncode:
        raise RunError(f"`{' '.join(command)}` ended with exit code {done.returncode}: nothing is recorded")
    try:
        data = json.loads(done.stdout)
    except ValueError:
        raise RunError(f"`{' '.join(command)}` does not print JSON: nothing is recorded") from None
    batch = Recording.of_run("kilt " + " ".join(asked), *spent)
    path = keep(Result(OBSERVATION, name, setting, title, (batch,), data=data))
    say(f"recorded in {path}; `make lab` renders the pages that show it")


@app.command()
def status(as_json: AsJson = False) -> None:
    """List results by age: commits since, where they come from, and what a new run costs."""
    from kilt_lab.provenance import git, required_clone
    from kilt_lab.results import read_results

    root = required_clone("kilt lab status")
    ages: dict[str, int] = {"": -1}
    found = []
    for result in read_results():
        batch = result.batches[-1]
        if batch.commit not in ages:
            try:
                ages[batch.commit] = int(git("rev-list", "--count", f"{batch.commit}..HEAD", root=root))
            except RunError:  # a commit that this clone does not have
                ages[batch.commit] = -1
        found.append((ages[batch.commit], result, batch))
    found.sort(key=lambda each: -each[0])
    if as_json:
        print_json({r.id: {"commits_since": None if age < 0 else age} | b._asdict() for age, r, b in found})
        return
    rows = [
        [
            result.id,
            "unknown" if age < 0 else str(age),
            batch.origin,
            batch.date,
            batch.machine,
            "" if batch.cpu_seconds is None else in_time(batch.cpu_seconds),
        ]
        for age, result, batch in found
    ]
    print_table("Results", ["result", "commits since", "origin", "date", "machine", "CPU time of a run"], rows)
