"""``kilt spot``: solve a subgame of hold'em and show its strategies."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kilt.cli import options
from kilt.cli.show import (
    AsJson,
    print_json,
    print_line,
    print_table,
    say,
    waiting,
)
from kilt.cli.solve import free_folder, solving
from kilt.config import SPOT
from kilt.cost import in_time

if TYPE_CHECKING:
    from kilt.cost import Cost
    from kilt.runs.run import Run
    from kilt.spots.solution import SpotNode, SpotSolution
    from kilt.spots.spot import Spot

app = typer.Typer(help="Spots: solve a subgame of hold'em with all hands, and look at it.", no_args_is_help=True)


@app.command()
def solve(
    what: Annotated[
        Path | None,
        typer.Argument(
            metavar="SPOT",
            help="A .toml file with the spot, whose keys options override; or the folder of a spot that was stopped, "
            "to resume it.",
        ),
    ] = None,
    board: Annotated[str | None, options.BOARD] = None,
    pot: Annotated[float | None, typer.Option("--pot", metavar="P", help="Chips in the pot.")] = None,
    stacks: Annotated[
        float | None, typer.Option("--stacks", metavar="S", help="Chips that each player has left (effective).")
    ] = None,
    ranges: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--ranges",
            "-r",
            metavar="R R",
            help="Hands of the player out of position, then in position: 'QQ+,AKs,A5s-A2s:0.5'.",
        ),
    ] = None,
    bets: Annotated[list[str] | None, options.BETS] = None,
    game: Annotated[str | None, options.GAME] = None,
    locks: Annotated[
        list[str] | None,
        typer.Option(
            "--lock", metavar="LOCK", help="A strategy that is given: 'b50% = f: 22-66; c: rest'. May be repeated."
        ),
    ] = None,
    keys: Annotated[list[str] | None, options.SET] = None,
    algorithm: Annotated[str | None, options.ALGORITHM] = None,
    target: Annotated[str | None, options.TARGET] = None,
    iterations: Annotated[int | None, options.ITERATIONS] = None,
    seconds: Annotated[float | None, options.TIME] = None,
    threads: Annotated[int, options.THREADS] = 1,
    device: Annotated[str | None, options.DEVICE] = None,
    save: Annotated[Path | None, options.OUT] = None,
    as_json: AsJson = False,
) -> None:
    """Solve a spot: a board with a pot, stacks, two ranges and bet sizes.

    --set can change every key of a spot: after=x (earlier actions of this round), rake=5 and rake_cap=3 (per cent of
    the pot, and chips at most), big_blind=2, all_in_threshold=0.7, compact=true (tables of two bytes).

    Exploitability is what a perfect opponent would win in addition, averaged over both players, in per cent of the pot.
    After Ctrl-C, `kilt spot solve FOLDER` resumes.
    """
    from kilt.errors import RunError
    from kilt.records import record_of
    from kilt.runs.folder import RunFolder
    from kilt.spots.saved import read_spot, require_kept
    from kilt.spots.solving import TARGET, USUAL, SpotBudget, cost_of_run, in_chips, parse_target, solution_of
    from kilt.spots.spot import Spot

    if ranges and (option := next((text for text in ranges if text.startswith("-")), None)):
        raise RunError(f"--ranges takes {option} as a range: give two ranges, the first for player 1")
    said: dict[str, Any] = {
        "board": board,
        "pot": pot,
        "stacks": stacks,
        "ranges": ranges,
        "bets": bets or None,
        "game": game,
        "locks": locks or None,
    }
    said = options.settings(keys) | {name: value for name, value in said.items() if value is not None}
    resume, file = (what, None) if what and what.is_dir() else (None, what)
    if resume and (said or save or algorithm):
        raise RunError(f"{resume} says which spot it is: leave out everything but --target, --iterations and --time")
    if resume:
        require_kept(resume)
    whole = asdict(read_spot(file)) if file else {}
    if "all_in_threshold" in said:
        whole.pop("near", None)
    spot = read_spot(resume / SPOT, kept=True) if resume else record_of(Spot, whole | said)
    begun = RunFolder.open(resume) if resume else None
    budget = SpotBudget(parse_target(target), iterations, seconds)
    with waiting("writing out the tree …"):
        run = spot.begin(budget, threads=threads, save=save, begun=begun, device=device, algorithm=algorithm)
    cost = cost_of_run(run)
    usual = in_time(USUAL * (cost.iteration or 0))
    say(f"{run.spec.description}: {cost}, usually {usual} to {TARGET:g}% of the pot")
    if run.spent:
        say("the iterations or the time are spent already: give larger limits, in total, to continue")
    steps, stopped = solving(
        run, lambda step: f"exploitability {100 * in_chips(step).exploitability / spot.pot:.3g}% of the pot"
    )
    if stopped:
        kept = run.folder or run.keep(free_folder(f"kilt-spot-{spot.board or spot.game}"), steps)
        say(f"stopped; to resume: kilt spot solve {quote(str(kept.path))}")
    solution = solution_of(run, steps)
    _print_solution(spot, solution, run, cost, as_json=as_json)
    if stopped:
        raise typer.Exit(128 + stopped)


def _print_solution(spot: Spot, solution: SpotSolution, run: Run, cost: Cost, *, as_json: bool) -> None:
    with waiting("computing the values …"):
        node, values, folder = solution.at(), solution.values, run.folder
    frequencies = dict(zip(node.actions, node.frequencies.tolist(), strict=True))
    if as_json:
        print_json(
            {
                "board": spot.board,
                "pot": spot.pot,
                "exploitability_percent": solution.exploitability_percent,
                "exploitability": solution.exploitability,
                "exploitability_mbb": solution.exploitability_mbb,
                "values": values,
                "iterations": solution.iterations,
                "seconds": solution.steps[-1].seconds,
                "actor": node.actor + 1,
                "actions": frequencies,
                "memory": cost.resident,
            }
            | ({"device_bytes": cost.device} if cost.device else {})
            | ({} if folder is None else {"folder": str(folder.path)})
        )
        return
    rows = [
        ["exploitability", f"{solution.exploitability_percent:.4g}", "% of the pot"],
        ["", f"{solution.exploitability:.4g}", "chips"],
        ["", f"{solution.exploitability_mbb:.4g}", "mbb"],
        *[[f"value to player {n}", f"{value:.5g}", "chips of the pot"] for n, value in enumerate(values, 1)],
        *[
            [f"player {node.actor + 1}: {words}", f"{share:.1%}", ""]
            for words, share in zip(node.words, frequencies.values(), strict=True)
        ],
        ["iterations", f"{solution.iterations:,}", ""],
        ["time", f"{solution.steps[-1].seconds:.2f}", "s"],
    ]
    print_table(spot.name, ["", "result", "unit"], rows)
    if folder:
        say(f"saved to {folder.path}; look at it with: kilt spot show {quote(str(folder.path))}")


@app.command()
def show(
    folder: Annotated[Path, options.FOLDER],
    line: Annotated[
        str,
        typer.Option(
            "--line",
            metavar="LINE",
            help="Which decision: 'b50% c / 7d x'. One that ends with / reports on all cards that may come.",
        ),
    ] = "",
    hands: Annotated[
        str,
        typer.Option(
            "--range", metavar="RANGE", help="Show these hands one by one. Default: all hands, grouped by their ranks."
        ),
    ] = "",
    to_csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write all hands to a file.")] = None,
    grid: Annotated[Path | None, options.PICTURE] = None,
    threads: Annotated[int, options.THREADS] = 1,
    as_json: AsJson = False,
) -> None:
    """Show the strategy, equity and expected value (EV) of every hand at a decision of a solved spot.

    EV is in chips from this decision on: a fold is worth 0. A line that ends with / shows the strategy after each card.
    """
    from kilt.errors import RunError
    from kilt.spots.saved import open_spot

    if grid:
        from kilt.viz.picture import require_drawable

        require_drawable(grid)
    with waiting("opening the spot …"):
        spot, solution = open_spot(folder, threads)
    if line.strip().endswith("/"):
        if hands or grid:
            raise RunError("--range and --picture are about one decision: name the cards after the / in --line")
        _report(solution, line, to_csv, as_json=as_json)
        return
    with waiting("looking …"):
        node = solution.at(line)
    wanted = _wanted(node, hands, (0, 1) if as_json else (node.actor,)) if hands else None
    if to_csv:
        _write_csv(to_csv, _flat_rows(node))
    if grid:
        from kilt.viz.ranges import plot_ranges
        from kilt.viz.spots import spot_grid

        plot_ranges([spot_grid(node, _title(node))], spot.name, grid)
    if as_json:
        rows = [row for row in node.rows() if wanted is None or row["hand"] in wanted]
        print_json(
            {"line": node.line, "board": node.board, "pot": node.pot, "actor": node.actor + 1}
            | {"actions": dict(zip(node.actions, node.frequencies.tolist(), strict=True))}
            | {"ev": node.mean(node.ev), "equity": node.mean(node.equity), "hands": rows}
        )
        return
    _print_node(node, wanted)


def _title(node: SpotNode) -> str:
    from kilt.spots.spot import SEATS

    return f"player {node.actor + 1} ({SEATS[node.actor]})" + (f" after {node.line}" if node.line else "")


def _wanted(node: SpotNode, hands: str, players: Sequence[int]) -> set[str]:
    """Return the names of the hands in a range. Raises RunError if none of the players can hold any of them."""
    from kilt.errors import RunError

    deck, held = node.game.deck, node.game.rules.hole_cards
    wanted = deck.range(hands, held)[node.numbers] > 0
    if not (wanted & (node.reach[list(players)] > 0)).any():
        who = " or ".join(f"player {player + 1}" for player in players)
        raise RunError(f"{who} has no hand of {hands} at this decision: use hands that the table shows without --range")
    return {name for name, one in zip(node.hands, wanted, strict=True) if one}


def _print_node(node: SpotNode, wanted: set[str] | None) -> None:
    from kilt.spots.solution import chips_text

    ev, equity = node.mean(node.ev), node.mean(node.equity)
    print_line(f" · {_title(node)} · pot {node.pot:g}", bold=node.board or "no board")
    for player in (0, 1):
        print_line(f"player {player + 1}: equity {equity[player]:.1%}, EV {chips_text(ev[player])} chips")
    table = node.table(wanted)
    print_table("", table.columns, table.rows, numbers=True)


def _report(solution: SpotSolution, line: str, to_csv: Path | None, *, as_json: bool) -> None:
    """Print the strategy after each possible next card."""
    from kilt.spots.solution import chips_text, percent_text

    with waiting("looking at all cards …"):
        found = solution.next_cards(line)
    rows: list[dict[str, Any]] = []
    for cards, alike, chance, node in found:
        ev, equity = node.mean(node.ev), node.mean(node.equity)
        rows.append(
            {"cards": cards, "alike": alike, "chance": chance}
            | dict(zip(node.actions, node.frequencies.tolist(), strict=True))
            | {"ev_1": ev[0], "ev_2": ev[1], "equity_1": equity[0], "equity_2": equity[1]}
        )
    if to_csv:
        _write_csv(to_csv, rows)
    if as_json:
        print_json({"line": line, "actor": found[0].node.actor + 1, "cards": rows})
        return
    actions = found[0].node.actions
    whole = {"cards": "all", "alike": sum(row["alike"] for row in rows)}
    whole |= {name: sum(row["chance"] * row[name] for row in rows) for name in rows[0] if name not in whole}
    columns = ["card", "alike", *(f"{word} %" for word in actions), "EV 1", "EV 2", "eq 1 %", "eq 2 %"]
    print_table(
        f"player {found[0].node.actor + 1} after {line}",
        columns,
        [
            [
                row["cards"],
                str(row["alike"]),
                *(percent_text(row[word]) for word in actions),
                *(chips_text(row[name]) for name in ("ev_1", "ev_2")),
                *(percent_text(row[name]) for name in ("equity_1", "equity_2")),
            ]
            for row in (whole, *rows)
        ],
        numbers=True,
    )


def _flat_rows(node: SpotNode) -> list[dict[str, Any]]:
    """Return table rows of hands, with a column for each action."""
    rows = []
    for row in node.rows():
        strategy, action_ev = row.pop("strategy", {}), row.pop("action_ev", {})
        rows.append(row | strategy | {f"ev {word}": value for word, value in action_ev.items()})
    return rows


def _write_csv(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows to a CSV file below the names of their values."""
    from kilt.artifact import os_errors

    rows = list(rows)
    columns = dict.fromkeys(name for row in rows for name in row)
    with os_errors(f"{path} cannot be written"), path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
