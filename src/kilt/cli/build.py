"""``kilt build``: build the best agent that this machine can make for a stack depth."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from kilt.cli import options
from kilt.cli.show import AsJson, print_json, say, waiting
from kilt.cli.solve import is_configured, solve
from kilt.cost import in_bytes, in_time

if TYPE_CHECKING:
    from kilt.runs.machine_fit import FittedPlan

HOURS = {"strong": 8.0, "house": 0.4}  # for each kind of agent, unless --time is given


def build(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="`strong`: the best agent that fits this machine. `house`: a small one in one file."
        ),
    ],
    bb: Annotated[
        int | None, typer.Option("--bb", metavar="N", help="Stacks in big blinds: 20, 25, 50, 100 or 200.")
    ] = None,
    game: Annotated[str | None, options.GAME] = None,
    seconds: Annotated[float | None, options.TIME] = None,
    out: Annotated[Path | None, options.OUT] = None,
    threads: Annotated[int | None, options.THREADS] = None,
    memory: Annotated[
        float | None,
        typer.Option(
            "--memory", metavar="GB", help="Memory that the run may use. Default: 80% of the available memory."
        ),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Say what would be built, and stop.")] = False,
    as_json: AsJson = False,
) -> None:
    """Build the best agent that this machine can make in the given time, for stacks of N big blinds.

    --time limits building the card abstraction and solving. Default: 8 hours, or 24 minutes for `house`.

    The command first prints the memory, disk space and time that it needs. If it was stopped or killed, the same
    command resumes the run.
    """
    from kilt import artifact
    from kilt.config import read_config
    from kilt.errors import RunError
    from kilt.runs.folder import RunFolder
    from kilt.runs.machine_fit import shipped_game
    from kilt.strategy.blueprint import STRATEGY, Blueprint

    if kind not in HOURS:
        raise RunError(f"there is no kind of agent {kind!r}: use {' or '.join(HOURS)}")
    if (bb is None) == (game is None):
        raise RunError("give the stacks as --bb N, in big blinds, or a game as --game NAME")
    if as_json and not plan:
        raise RunError("--json prints what would be built: add --plan")
    name = game or shipped_game(bb or 0)
    folder = out or Path("runs") / f"{kind}-{f'{bb}bb' if bb else Path(name).stem}"
    config = folder.with_name(f"{folder.name}.toml")
    if config.exists() and not plan:
        if (there := read_config(config).game) != name:
            raise RunError(f"{config} is for {there}, not {name}: choose another folder with --out")
        say(f"{config} was planned before: its run resumes")
    else:
        fit = _fit(kind, name, seconds, threads, folder, memory)
        if as_json:
            print_json(fit.data())
        else:
            _show(fit, folder)
        if plan:
            return
        with artifact.os_errors(f"{config} cannot be written"):
            config.parent.mkdir(parents=True, exist_ok=True)
            artifact.write_text(config, fit.plan.config.toml())
    if not (RunFolder.has_run(folder) and RunFolder.open(folder).ended and artifact.exists(folder / STRATEGY)):
        again = is_configured(folder)
        solve(str(folder if again else config), out=None if again else folder)
    packed = folder.with_name(f"{folder.name}.agent")
    if kind == "house" and not packed.exists():
        Blueprint.load(folder, check=True).pack(packed)
    agent = packed if kind == "house" else folder
    say(f"play against it: kilt play {quote(str(agent))}, or {quote(f'{agent}@resolve')} to re-solve turns and rivers")


def _fit(
    kind: str, name: str, seconds: float | None, threads: int | None, folder: Path, memory: float | None
) -> FittedPlan:
    """Return the run that fits the machine and the time, after measuring the machine's speed for some seconds."""
    from kilt.errors import RunError
    from kilt.games import load_game
    from kilt.games.holdem import Holdem
    from kilt.jit import cores
    from kilt.runs.machine_fit import KINDS

    rules = load_game(name)
    if not isinstance(rules, Holdem):
        raise RunError(f"{name} is no game of hold'em: use kilt solve {quote(name)}")
    hours = HOURS[kind] if seconds is None else seconds / 3600
    room = None if memory is None else 1e9 * memory
    with waiting("looking for the largest agent that fits …"):
        return KINDS[kind](rules, name, hours, threads or cores(), folder, room)


def _show(fit: FittedPlan, folder: Path) -> None:
    """Print the settings and the cost of a run."""
    config = fit.plan.config
    finer = f" against an opponent with {config.opponent_cards}" if config.opponent_cards else ""
    say(f"{folder}: {fit.plan.game.name}, cards {config.cards[0]}{finer}, bets {' '.join(config.actions)}")
    say(
        f"takes {in_bytes(fit.memory)} of memory and {in_bytes(fit.disk)} on disk; "
        f"{in_time(fit.cost.seconds or 0)} for the cards and {in_time(fit.seconds)} for solving, in "
        f"which each of {fit.plan.infosets:,} information sets is met {fit.visits:,.1f} times on average"
    )
