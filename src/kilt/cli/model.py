"""``kilt model``: build an opponent model from logged hands."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from kilt.cli import options
from kilt.cli.show import FAULTS, AsJson, ProgressBars, print_json, print_table, say, say_skipped, ticking

if TYPE_CHECKING:
    from kilt.strategy.model import OpponentModel


def model(
    logs: Annotated[list[Path], options.LOGS],
    player: Annotated[str, options.OPPONENT_NAME],
    target: Annotated[
        str,
        typer.Option("--for", metavar="WHAT", help="The game that the model is for: a game, a configuration or a run."),
    ],
    out: Annotated[Path | None, options.OUT] = None,
    mucked: Annotated[
        str,
        typer.Option(
            "--mucked",
            metavar="HOW",
            help="Hands without a showdown: shown (with the cards of the log), left-out, or weighed (all possible "
            "hands by their probability).",
        ),
    ] = "shown",
    translation: Annotated[
        str, typer.Option("--translation", metavar="NAME", help="What bets off the menu count for.")
    ] = "pseudo-harmonic",
    skip: Annotated[bool, typer.Option("--skip", help="Leave out lines that cannot be read, and say so.")] = False,
    as_json: AsJson = False,
) -> None:
    """Build an opponent model: count a player's actions at each information set in logged hands.

    The model plays each action as often as the player did; at information sets without data, it calls.
    """
    from kilt.errors import PlayError

    if out is not None and out.exists():
        raise PlayError(f"{out} is there already: choose another --out")
    found = count_model(logs, player, target, mucked, translation, skip=skip)
    if out is not None:
        found.model.save(out)
    print_counted(found, out, as_json=as_json)


class CountedModel(NamedTuple):
    """An opponent model counted from logs, with the log lines that could not be read."""

    model: OpponentModel
    rounds: tuple[str, ...]  # the names of the game's rounds
    faults: list[str]  # lines that cannot be read
    seconds: float  # time for reading and counting


def count_model(
    logs: list[Path],
    player: str,
    target: str,
    mucked: str = "shown",
    translation: str = "pseudo-harmonic",
    *,
    skip: bool = False,
) -> CountedModel:
    """Count a player's actions in logs, at the information sets of a run, a configuration or a game."""
    from kilt.play.acpc import log_text
    from kilt.players.modelled import observer_for
    from kilt.strategy.translate import mapping_named

    with ticking() as tick, observer_for(target, player, mucked, mapping_named(translation), tick) as seen:
        texts = [log_text(log) for log in logs]
        faults, began = [], perf_counter()
        with ProgressBars() as bar:
            task = bar.add_task("logs", total=len(logs), said="")
            for number, (log, text) in enumerate(zip(logs, texts, strict=True), start=1):
                faults += [f"{log}, {fault}" for fault in seen.add_log(text, str(log), skip=skip)]
                bar.update(task, completed=number, said=f"{seen.hands:,} hands")
        seconds = perf_counter() - began
        seen.require_hands(", ".join(map(str, logs)), faults)
        return CountedModel(seen.model(), seen.game.rules.round_names, faults, seconds)


def print_counted(counted: CountedModel, out: Path | None, *, as_json: bool) -> None:
    """Print how many actions a model has counted, and which hands it skipped."""
    found, rounds, faults, seconds = counted
    figures, by_round = found.figures, found.rounds()
    if as_json:
        said = [
            {"round": name, "infosets": one.infosets, "seen": one.seen, "share": one.share, "decisions": one.decisions}
            for name, one in zip(rounds, by_round, strict=True)
        ]
        print_json(
            {"game": found.game, "player": found.player, **figures, "rounds": said, "unreadable": len(faults)}
            | {"faults": faults[:FAULTS], "seconds": seconds, "out": str(out) if out else None}
        )
        return
    rows = [
        [name, f"{one.decisions:,.0f}", f"{one.seen:,}", f"{one.infosets:,}", f"{one.share:.2%}"]
        for name, one in zip(rounds, by_round, strict=True)
    ]
    title = f"{found.player} in {found.game}: {figures['hands']:,} hands, {figures['decisions']:,.0f} decisions"
    print_table(title, ["round", "decisions", "information sets seen", "of", "share"], rows, numbers=True)
    if figures["off_tree"]:
        say(f"{figures['off_tree']:,.1f} decisions skipped: earlier bets left the menu for good")
    say_skipped(figures["left_out"], faults)
    if out:
        say(f"the model is in {out}")
