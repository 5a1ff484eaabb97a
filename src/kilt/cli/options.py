"""Options that several commands have, each declared once: its spelling, its letter, and what it means."""

from __future__ import annotations

import re

import typer

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}


def seconds_of(text: str | float) -> float:
    """A time in seconds.

    >>> seconds_of("90s"), seconds_of("1.5min"), seconds_of("2h")
    (90.0, 90.0, 7200.0)
    """
    from kilt.errors import RunError

    if not isinstance(text, str):  # a default
        return text
    found = re.fullmatch(r"(-?[\d.]+(?:e-?\d+)?|-?inf|nan)\s*(s|min|h)", text)
    try:
        return float(found[1]) * UNITS[found[2]] if found else float("nan*")
    except ValueError:
        raise RunError(f"the time is {text!r}: give a number with a unit, such as 90s, 10min or 2h") from None


GAME = typer.Option(
    "--game",
    "-g",
    metavar="NAME",
    help="A ready-made game (see `kilt game list`) or an ACPC .game file. Left out: the game of the run or player.",
)
ALGORITHM = typer.Option(
    "--algorithm",
    "-a",
    metavar="A",
    help="How to solve it: `kilt solve --algorithms` lists the names. Left out: as the configuration says.",
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
    "--workers", metavar="P", help="Number of processes; the result does not depend on it. Left out: all cores."
)
DEVICE = typer.Option(
    "--device",
    metavar="D",
    help="`gpu` for an NVIDIA graphics card, or `cpu`. Left out: as the configuration says, or where the run began.",
)
ENGINE = typer.Option(
    "--engine",
    metavar="E",
    help="Where the work is done: `local`, in threads of this process, or `ray`, in processes, of other machines too; "
    "the result is the same. Left out: here.",
)
ADDRESS = typer.Option(
    "--address",
    metavar="A",
    help="With --engine ray: HOST:PORT of a Ray cluster that is there. Left out: one of its own, here.",
)
OUT = typer.Option("--out", "-o", metavar="FOLDER", help="A new folder for the result.")
HANDS = typer.Option("--hands", "-n", metavar="N", help="Number of hands.")
DEALS = typer.Option("--deals", "-n", metavar="N", min=1, max=10**8, help="Number of deals of self-play.")
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
