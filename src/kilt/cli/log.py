"""``kilt evaluate log``: estimate win rates from the logs of matches.

`NewLog` writes the log of a match that kilt plays.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kilt.cli import options
from kilt.cli.show import FAULTS, UNIT, AsJson, ProgressBars, print_json, print_table, say, say_skipped, waiting

if TYPE_CHECKING:
    from kilt.evaluate.log_estimates import LogEstimate, LogEstimates
    from kilt.games.holdem import Holdem


def log(
    file: Annotated[Path, options.LOGS],
    player: Annotated[str | None, options.WHO] = None,
    game: Annotated[str | None, options.GAME] = None,
    phh: Annotated[Path | None, options.OUT] = None,
    name: Annotated[str | None, options.NAME] = None,
    instead: Annotated[
        str | None,
        typer.Option("--as", metavar="OTHER", help="Judge this strategy on the hands that WHO has played."),
    ] = None,
    estimator: Annotated[
        list[str] | None,
        typer.Option(
            "--estimator",
            "-e",
            metavar="NAME",
            help="Such as all-cards+early-folds+bc-divat; may be repeated. Default: all estimators.",
        ),
    ] = None,
    opponent: Annotated[
        str | None,
        typer.Option("--opponent", metavar="PLAYER", help="Who the opponent was, where it is known: for AIVAT."),
    ] = None,
    values: Annotated[
        str | None,
        typer.Option("--values", metavar="RUN", help="The run that AIVAT learns values from. Default: WHO."),
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Take the opponent's cards as seen at showdowns alone.")
    ] = False,
    processes: Annotated[int | None, options.WORKERS] = None,
    as_json: AsJson = False,
) -> None:
    """Read a match log, and print each player's win rate with a 95% interval.

    Two hands of one deal count as one.

    With a player WHO (a run, RUN@RULE, a baseline, or the portfolio:A,B that wrote notes into the log), the command
    also estimates its luck-adjusted win rate, from its actions with all possible cards and at all possible ends of
    hands. --out writes the hands in PHH format (.phhs).
    """
    from kilt.errors import PlayError
    from kilt.games.playable import load_holdem
    from kilt.jit import cores
    from kilt.play.acpc import log_text

    if player is None and (name or instead or estimator or opponent or values or partial):
        raise PlayError(
            "--name, --as, --estimator and the like say how a player is judged: name the player after the log"
        )
    text = log_text(file)
    if player is None and game is None:
        raise PlayError(
            f"what was played in {file} is not given: say it with --game, or name the player to judge after the log"
        )
    rules = load_holdem(game) if game else None
    if player is None:
        assert rules
        _result(file, text, rules, phh, as_json=as_json)
    else:
        others = {"judged": instead, "opponent": opponent, "values": values}
        options: dict[str, Any] = {"processes": processes or cores(), "partial": partial, "as_json": as_json}
        _judge(file, text, rules, player, name, others, estimator or [], **options)


def _result(file: Path, text: str, rules: Holdem, phh: Path | None, *, as_json: bool) -> None:
    """Print each player's win rate."""
    import numpy as np

    from kilt.artifact import os_errors
    from kilt.errors import PlayError
    from kilt.evaluate.stats import are_duplicate_pairs, estimate_mean
    from kilt.play.acpc import read_log
    from kilt.play.phh import write_phhs

    text, faults = _acpc_log(text, rules)
    if faults:
        raise PlayError(f"{faults[0]}: check {file}")
    found = read_log(text, rules, source=str(file))
    complete = found.score is not None or faults is not None
    if not found.hands:
        raise PlayError(f"{file} has no hands: it is no log of a match, or of one that never began")
    names = sorted({name for hand in found.hands for name in hand.players})
    if len(names) != 2:
        raise PlayError(f"{file} has {len(names)} players ({', '.join(names)}); a match is between two with two names")
    won = [hand.payoffs[hand.players.index(names[0])] * 1000 / rules.rules.big_blind for hand in found.hands]
    duplicate = are_duplicate_pairs(found.hands)
    rate = estimate_mean(np.mean(np.reshape(won, (-1, 2)), axis=1) if duplicate else won)
    if phh:
        if phh.exists():
            raise PlayError(f"{phh} is there already: choose another name")
        text = "".join(write_phhs(found.hands))
        with os_errors(f"{phh} cannot be written"):
            phh.write_text(text, encoding="utf-8")
    if as_json:
        print_json(
            {"game": rules.name, "players": names, "mbb_per_hand": rate.mean, "ci95": rate.interval}
            | {"hands": len(won), "duplicate": duplicate, "complete": complete}
        )
        return
    row = [*names, str(rate), UNIT, f"{len(won):,}", "yes" if duplicate else "no"]
    print_table(
        str(file),
        ["player", "against", "wins", "unit", "hands", "duplicate"],
        [row],
    )
    if not complete:
        say("the log has no score: the match broke off")
    if phh:
        say(f"the hands are in {phh}")


def _acpc_log(text: str, game: Holdem) -> tuple[str, list[str] | None]:
    """Convert hands in PHH to lines of an ACPC log, and return them with error messages.

    A text that already is an ACPC log is returned unchanged, with None in place of the messages.
    """
    from kilt.play.acpc import format_log_line
    from kilt.play.phh import is_phh, read_phhs

    if not is_phh(text):
        return text, None
    hands, faults = read_phhs(text, game)
    return "".join(f"{format_log_line(hand)}\n" for hand in hands), faults


def _judge(
    file: Path,
    text: str,
    game: Holdem | None,
    player: str,
    name: str | None,
    others: dict[str, str | None],
    estimators: list[str],
    *,
    processes: int,
    partial: bool,
    as_json: bool,
) -> None:
    """Estimate a strategy's win rate from a log with several estimators, and print the results."""
    from kilt.errors import PlayError
    from kilt.evaluate.estimators import estimator_named
    from kilt.evaluate.log_estimates import LogCase, estimate_by_name
    from kilt.players.agents import describe_strategy, load_once
    from kilt.players.reference import player as player_of

    played, rules = player_of(player).at(game)
    for spec in filter(None, others.values()):
        player_of(spec).at(rules)  # it must play the same game
    called, judged = name or played.name, others["judged"] or played.name
    strategy = describe_strategy(player_of(others["judged"] or player).agent)
    rows = tuple(estimator_named(each) for each in estimators) or None
    text, unread = _acpc_log(text, rules)
    case = LogCase(
        rules,
        called,
        player,
        others["judged"],
        others["opponent"],
        others["values"],
        estimators=rows,
        partial=partial,
        load=load_once,
    )
    with waiting("loading players, and for AIVAT learning or reading values of states …"):
        _ = case.evaluator
    with ProgressBars() as bar:
        task = bar.add_task("lines", total=text.count("\n") + 1, said="")
        found = estimate_by_name(
            case, text, processes, tick=lambda done: bar.update(task, completed=done, said=f"{done:,}")
        )
    faults, names = [*(unread or ()), *found.faults], sorted(found.players)
    if called not in names:
        said = f"its players are {', '.join(names)}: say with --name who it was" if names else "no hand can be read"
        raise PlayError(f"{called} does not play in {file}; {said}{''.join(f'; {fault}' for fault in faults[:1])}")
    if as_json:
        estimates = [_figures(row) for row in found.rows]
        print_json(
            (estimates[0] if len(estimates) == 1 else {})
            | {"game": rules.name, "player": called, "judged": judged, "strategy": strategy, "unit": UNIT}
            | {"information": "partial" if partial else "full", "hands": found.hands, "duplicate": found.duplicate}
            | {"left_out": dict(found.left_out), "unreadable": len(faults), "faults": faults[:FAULTS]}
            | {"estimates": estimates}
        )
        return
    which = f" ({strategy})" if strategy else ""
    title = f"{judged}{which}, on hands of {called}" if others["judged"] else f"{called}{which}, {file}"
    _print_estimates(title, found)
    say_skipped(found.left_out, faults)


def _figures(row: LogEstimate) -> dict[str, Any]:
    """Return an estimate as a dict for JSON output."""
    return {
        "estimator": row.estimator.name,
        "mbb_per_hand": row.won.mean,
        "ci95": row.won.interval,
        "deviation": row.deviation,
        "effective_hands": row.effective,
        "mean_weight": row.weight.mean,
        "missing": row.missing,
        "warnings": row.warnings,
    }


def _print_estimates(title: str, found: LogEstimates) -> None:
    """Print the estimates as a table, followed by their warnings."""
    shown = [
        [row.estimator.name, str(row.won), f"{row.deviation:,.0f}", f"{row.effective:,.0f}", "!" * bool(row.warnings)]
        for row in found.rows
    ]
    columns = ["estimator", f"wins, {UNIT}", "deviation", "effective", ""]
    print_table(f"{title}, {found.hands:,} hands", columns, shown)
    warned: dict[str, list[str]] = {}
    for row in found.rows:
        for warning in row.warnings:
            warned.setdefault(warning, []).append(row.estimator.name)
    for warning, names in warned.items():
        say(f"{', '.join(names)}: {warning}")
