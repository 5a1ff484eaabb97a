"""The command line of kilt: its commands parse options, call one function of the library, and print the result.

Each command imports its modules when it runs, so that ``kilt --help`` answers at once.
"""

from __future__ import annotations

import json
import os
import re
import sys
from inspect import cleandoc
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kilt import __version__
from kilt.cli import (
    abstraction,
    build,
    cards,
    check,
    counter,
    demo,
    evaluate,
    game,
    lab,
    match,
    model,
    options,
    plan,
    play,
    setup,
    slumbot,
    solve,
    spot,
    table,
    web,
)
from kilt.cli.former import current_spelling
from kilt.cli.show import AsJson, announce_compilation, print_error
from kilt.errors import KiltError, about_file
from kilt.machine import LIBRARIES, too_little_address_space

HELP = ["-h", "--help"]
OF_EXTRAS = ("cupy-cuda12x", "fastapi", "kilt-lab", "open_spiel", "pot", "ray", "uvicorn")  # a package of each extra


class Commands(TyperGroup):
    """The group of all commands. It still accepts old spellings, with a hint about the new ones.

    Paragraphs of help texts flow to the width of the terminal, and flags have no type.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        every: list[Any] = [self]
        for command in every:
            every += getattr(command, "commands", {}).values()
            command.help = join_lines(command.help or "")
            hide_types_of_flags(command.get_params(command.context_class(command, help_option_names=HELP)))

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options of the command ``kilt``, with the shell completion that Typer adds late."""
        return hide_types_of_flags(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line, after replacing old spellings of commands and options."""
        return super().parse_args(ctx, current_spelling(args, lambda text: print_error("hint:", text)))

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands in the order of the help."""
        commands: dict[str, Any] = {**self.commands}  # Typer's objects, which know their panels
        return sorted(super().list_commands(ctx), key=lambda name: PANELS.index(commands[name].rich_help_panel))


def hide_types_of_flags(options: list[Any]) -> list[Any]:
    """Remove ``<bool>`` from the help of flags, because flags take no value."""
    for option in options:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    return options


def join_lines(text: str) -> str:
    r"""Join the lines of each paragraph of a help text.

    Lists and indented lines stay unchanged.

    >>> join_lines("A long\nline.\n\n- one\n- two")
    'A long line.\n\n- one\n- two'
    """
    paragraphs = cleandoc(text).split("\n\n")
    kept = re.compile("^( |- )", re.MULTILINE)
    return "\n\n".join(part if kept.search(part) else part.replace("\n", " ") for part in paragraphs)


app = typer.Typer(
    name="kilt",
    cls=Commands,
    help="From the rules of a large game of imperfect information to an agent that plays it.\n\n"
    "Start with [bold]kilt demo[/bold], [bold]kilt game list[/bold], [bold]kilt solve leduc[/bold], "
    "[bold]kilt game size holdem.limit.2p[/bold] "
    'or [bold]kilt cards equity AsKh "QQ+,AK"[/bold].',
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": HELP},
)
PLAY, SOLVE, BUILD, JUDGE, STUDY = "play", "solve", "build", "evaluate", "study"
PANELS = (PLAY, SOLVE, BUILD, JUDGE, STUDY, "lab")  # of `kilt --help`; the laboratory adds its own
for panel, commands in {
    PLAY: (demo.demo, setup.setup, table.play, web.web, match.match, play.dealer, play.agent, slumbot.slumbot),
    SOLVE: (plan.new, plan.estimate, solve.solve, counter.counter, model.model),
    BUILD: (build.build, demo.export, check.check),
}.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
for panel, name, group in (
    (SOLVE, "spot", spot.app),
    (BUILD, "abstraction", abstraction.app),
    (JUDGE, "evaluate", evaluate.app),
    (STUDY, "game", game.app),
    (STUDY, "cards", cards.app),
):
    app.add_typer(group, name=name, rich_help_panel=panel)
lab.add_commands(app)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop; with --json, what a bug report needs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    if version:
        typer.echo(json.dumps(_environment(), indent=2) if as_json else f"kilt {__version__}")
        raise typer.Exit
    if as_json:
        context.fail("--json comes after a command, or with --version")
    if context.invoked_subcommand is None:
        context.fail("Missing command.")


def _environment() -> dict[str, object]:
    """Return facts about the installation for bug reports, without names or paths of the machine."""
    import platform
    from importlib.metadata import PackageNotFoundError, requires, version

    def installed(package: str) -> str | None:
        try:
            return version(package)
        except PackageNotFoundError:
            return None

    packages = {re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in requires("kilt") or () if ";" not in line}
    return {
        "kilt": __version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "packages": {name: installed(name) for name in sorted(packages)},
        "extras": {name: installed(name) for name in OF_EXTRAS},
    }


def main() -> None:
    """Run the command line. Errors that the user can correct end it with one line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # characters that the terminal cannot show do not end a command
    if (most := too_little_address_space()) is not None:
        print_error(
            "error:",
            f"`ulimit -v` allows {most / 1e6:,.0f} MB, and kilt takes {LIBRARIES / 1e6:,.0f} MB before any work",
        )
        sys.exit(2)
    try:
        with announce_compilation():
            app()
    except KiltError as error:
        print_error("error:", options.with_options(str(error), sys.argv[1:], typer.main.get_command(app)))
        sys.exit(2)
    except MemoryError as error:
        print_error(
            "error:", f"there is not enough memory ({error or 'none is left'}): use fewer buckets, bets or threads"
        )
        sys.exit(2)
    except OSError as error:
        if error.filename is not None:  # for example, a name that is too long
            print_error("error:", about_file(error))
            sys.exit(2)
        # For example, standard output is a file on a full disk.
        print_error("error:", error.strerror or str(error))
        os._exit(1)  # the rest of the buffers cannot be written either
