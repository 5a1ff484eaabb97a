"""Arguments and options that several commands share, with names, short forms and help."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from typing import Any

import typer

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}


def seconds_of(text: str | float) -> float:
    """Parse a duration such as "90s" or "2h", and return it in seconds.

    >>> seconds_of("90s"), seconds_of("1.5min"), seconds_of("2h")
    (90.0, 90.0, 7200.0)
    """
    from kilt.errors import RunError

    if not isinstance(text, str):  # a default value
        return text
    found = re.fullmatch(r"(-?[\d.]+(?:e-?\d+)?|-?inf|nan)\s*(s|min|h)", text)
    try:
        return float(found[1]) * UNITS[found[2]] if found else float("nan*")
    except ValueError:
        raise RunError(f"the time is {text!r}: give a number with a unit, such as 90s, 10min or 2h") from None


def settings(texts: Iterable[str] | None) -> dict[str, object]:
    """Parse options of the form KEY=VALUE into a dict.

    Values are parsed as TOML; what is not TOML is taken as a string.

    >>> settings(["engine.batch=8", "tilt=[7, 0, 0, 7]", "solver.algorithm=cfr+", "linear=false"])
    {'engine.batch': 8, 'tilt': [7, 0, 0, 7], 'solver.algorithm': 'cfr+', 'linear': False}
    """
    from kilt.errors import RunError

    found: dict[str, object] = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise RunError(f"--set {text} sets nothing: give KEY=VALUE, such as seed=3 or engine.batch=8")
        try:
            found[key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except ValueError:
            found[key.strip()] = value.strip()
    return found


def with_options(message: str, words: Iterable[str], command: Any) -> str:
    """Name command-line options in an error message about Python parameters.

    Parameters
    ----------
    message : str
        The library's error message.
    words : iterable of str
        The words that the user typed after ``kilt``.
    command : click.Command
        The command ``kilt``.
    """
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    by_name = {one.name: max(one.opts, key=len) for one in command.params if one.opts[0].startswith("-")}
    named = dict.fromkeys(re.findall(r"`(\w+)`(?! in \[)", message))
    found = [by_name[name] for name in named if name in by_name and by_name[name] not in message]
    return f"{message} (on the command line: {', '.join(found)})" if found else message


GAME = typer.Option(
    "--game",
    "-g",
    metavar="NAME",
    help="A ready-made game (see `kilt game list`) or an ACPC .game file. A run or a player may imply it.",
)
ALGORITHM = typer.Option(
    "--algorithm",
    "-a",
    metavar="A",
    help="How to solve it: `kilt solve --algorithms` lists the names. Default: as in the configuration.",
)
ITERATIONS = typer.Option("--iterations", "-n", metavar="N", help="Stop after N iterations in total.")
TIME = typer.Option("--time", "-t", metavar="T", parser=seconds_of, help="Stop after a time such as 90s, 10min or 2h.")
TARGET = typer.Option(
    "--target",
    metavar="E",
    help="Stop at this exploitability: chips per game, or 1mbb; for a spot, per cent of the pot.",
)
SEED = typer.Option("--seed", metavar="S", help="Random seed: the same seed gives the same result.")
THREADS = typer.Option("--threads", metavar="T", help="Number of threads that share the work.")
WORKERS = typer.Option(
    "--workers", "-w", metavar="P", help="Number of processes; the result does not depend on it. Default: all cores."
)
DEVICE = typer.Option(
    "--device",
    metavar="D",
    help="`gpu` for an NVIDIA graphics card, or `cpu`. Default: as in the configuration, or where the run began.",
)
ENGINE = typer.Option(
    "--engine",
    metavar="E",
    help="Where the work is done: `local`, in threads of this process, or `ray`, in processes, of other machines too; "
    "the result is the same. Default: this process.",
)
ADDRESS = typer.Option(
    "--address",
    metavar="A",
    help="With --engine ray: HOST:PORT of an existing Ray cluster. Default: start Ray on this machine.",
)
OUT = typer.Option("--out", "-o", metavar="PATH", help="A new folder, or file, for the result.")
HANDS = typer.Option("--hands", metavar="N", help="Number of hands.")
DEALS = typer.Option("--deals", metavar="N", min=1, max=10**8, help="Number of deals of self-play.")
LOG = typer.Option("--log", "-l", metavar="FILE", help="A new file for the hands, as the ACPC's dealer writes them.")
NAME = typer.Option("--name", metavar="NAME", help="What the player is called in the log.")
OPPONENT_NAME = typer.Option("--player", metavar="NAME", help="Whose actions to count, as the logs call the player.")
ROUND = typer.Option("--round", "-r", metavar="ROUND", help="A round by name, such as flop, or by number from 1.")
BOARD = typer.Option("--board", "-b", metavar="CARDS", help="Public cards, such as Qd7h2c.")
BETS = typer.Option("--bets", metavar="SIZES", help="Bet sizes, such as '50%, 1x, a': see the guide on bets.")
HOST = typer.Option("--host", metavar="H", help="Where to listen. Beyond this machine, anyone who can connect may.")
DUPLICATE = typer.Option("--duplicate/--no-duplicate", help="Play every deal twice, with the seats swapped.")
WAY = typer.Option(
    "--way",
    metavar="WAY",
    help="How results come about: `expected` averages over all actions, for players who bet by one tree; `aivat` takes "
    "luck out of hands that a run has played; `played` counts what is won; `best` takes the first of these that the "
    "players allow and that pays.",
)
AS_JSON = typer.Option("--json", help="Print one JSON object instead of a table.")
SET = typer.Option(
    "--set",
    metavar="KEY=VALUE",
    help="Set a key of the configuration, such as engine.batch=8 or tilt=[7,0,0,7]. May be repeated.",
)
BLADES = typer.Option(
    "--blades",
    metavar="N",
    help="Number of workers that share the classes of boards; 4x3: 3 below each of 4; 4x3x2: 2 below each of those. "
    "Default: as in the configuration.",
)
CLASSES = typer.Option("--classes", "-c", metavar="C", help="Number of classes of boards.")
PICTURE = typer.Option("--picture", "-p", metavar="FILE", help="Draw it: .png, .svg or .pdf.")

# Positional arguments.
WHO = typer.Argument(
    metavar="WHO",
    help="A player: the folder of a run or of an exported agent, RUN@RULE, a baseline such as always-call, `house`, "
    "solved:GAME, FILE.py:CLASS, seats:A,B, or portfolio:A,B, which picks one of these players for each hand.",
)
WHAT = typer.Argument(
    metavar="WHAT",
    help="A game by name (`kilt game list`), an ACPC .game file, or openspiel:NAME; a configuration (.toml), which "
    "`kilt new` makes; or the folder of a run.",
)
GAME_RULES = typer.Argument(metavar="GAME", help="A ready-made game (see `kilt game list`) or an ACPC .game file.")
FOLDER = typer.Argument(
    metavar="FOLDER", help="The folder of a run, an abstraction, a solved spot or an exported agent."
)
LOGS = typer.Argument(metavar="LOG", help="A log as ACPC dealers write it, or hands in PHH.")
FILE = typer.Argument(metavar="FILE", help="A new file or folder.")
BOARD_CARDS = typer.Argument(metavar="BOARD", help="Public cards, such as QdJd2c. Default: none.")
CARDS = typer.Argument(metavar="CARDS", help="Cards, such as AsKh.")
