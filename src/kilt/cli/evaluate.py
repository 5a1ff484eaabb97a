"""``kilt evaluate``: measure how good a strategy is."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.progress import TaskID

from kilt.cli import options
from kilt.cli.engines import AddressOption, EngineOption, opened
from kilt.cli.log import log
from kilt.cli.sanity import sanity
from kilt.cli.show import (
    UNIT,
    AsJson,
    ProgressBars,
    exit_after_signal,
    interrupts,
    print_json,
    print_table,
    say,
    waiting,
    watching,
    win_rate_data,
)
from kilt.cli.solve import exploitability_rows

if TYPE_CHECKING:
    from kilt.evaluate.flops import FlopResponses
    from kilt.evaluate.lbr import LowerBound
    from kilt.players.profile import StrategyRef
    from kilt.solve.abstract_problem import AbstractProblem

LONG = 120.0  # seconds: longer evaluations go flop by flop, so that they can be stopped and resumed

app = typer.Typer(help="Evaluation: how good a strategy is.", no_args_is_help=True)


app.command()(sanity)
app.command()(log)


@app.callback()
def _group() -> None:
    """Keep `kilt evaluate` a group of commands, even if it contained only one."""


@app.command()
def exploitability(
    who: Annotated[str | None, options.WHO] = None,
    game: Annotated[str | None, options.GAME] = None,
    responses: Annotated[Path | None, options.OUT] = None,
    flops: Annotated[
        int | None,
        typer.Option(
            "--flops",
            metavar="N",
            help="With a RUN on an abstract game: estimate from N random flops. Default: all flops.",
        ),
    ] = None,
    seed: Annotated[int, options.SEED] = 0,
    threads: Annotated[int, options.THREADS] = 1,
    device: Annotated[str, options.DEVICE] = "cpu",
    engine: EngineOption = None,
    address: AddressOption = "",
    as_json: AsJson = False,
) -> None:
    """Compute the exact exploitability of a run's strategy or of an agent.

    Agents that look at cards can be evaluated in small games. --out saves a strategy that plays a best response in each
    seat.

    A run whose agent post-processes has two strategies: the average strategy that was solved, and the strategy as
    played. Both are evaluated, each with its own best responses. Add @RULE to the run to evaluate only one.

    An engine has --threads workers, which share the boards. Large abstract games are evaluated flop by flop. The
    command first prints the expected duration; after Ctrl-C the same command resumes.
    """
    from kilt.errors import RunError
    from kilt.players.agents import uses_resolving
    from kilt.players.known_tables import AGENTS
    from kilt.players.reference import is_run_name, player

    if who is None:
        raise RunError(f"there is nothing to evaluate: name a run, or with --game an agent such as {', '.join(AGENTS)}")
    met = player(who, game)
    is_run = isinstance(met.spec, str) and is_run_name(met.spec)
    if is_run and game:
        raise RunError(f"{who} is a run, which knows its game: leave out --game {game}")
    if device != "cpu" and (not is_run or engine):
        raise RunError("a GPU walks with the strategy of a run, alone: give a RUN, and leave out --engine")

    if responses and responses.exists():
        raise RunError(f"{responses} is there already: choose another folder for the best responses")
    refs = met.strategies(warn=say)
    first = refs[0]
    how: dict[str, Any] = {
        "flops": flops,
        "seed": seed,
        "threads": threads,
        "device": device,
        "engine": engine,
        "address": address,
    }
    found = [_judged(subject, responses, **how) for subject in refs]
    run = {"run": who, "iterations": found[0].iterations, "strategy": first.strategy}
    if as_json:
        each = {
            "as_played" if subject.played else "average": {"strategy": subject.strategy} | judged.figures
            for subject, judged in zip(refs, found, strict=True)
        }
        told = run if is_run else {"agent": who}
        print_json({"game": first.game} | told | found[0].figures | (each if is_run else {}))
        return
    columns = [[value for _, value, _ in judged.rows] for judged in found]
    rows = [[what, *values, unit] for (what, _, unit), *values in zip(found[0].rows, *columns, strict=True)]
    print_table(f"{first.game}, {who}", ["", *(subject.strategy for subject in refs), "unit"], rows)
    if is_run and uses_resolving(who):
        say(f"{who} solves subgames while it plays, which changes its strategy: kilt evaluate lbr gives a lower bound")


class _Judged(NamedTuple):
    """The values of best responses to one strategy."""

    figures: dict[str, Any]  # for JSON output
    rows: list[list[str]]  # table rows: name, value, unit
    iterations: int | None = None


def _judged(
    subject: StrategyRef,
    responses: Path | None,
    *,
    flops: int | None,
    seed: int,
    threads: int,
    device: str,
    engine: str | None,
    address: str,
) -> _Judged:
    """Compute best responses to one strategy."""
    from kilt.errors import RunError
    from kilt.evaluate.evaluator import UNIT, AbstractEvaluator

    name = subject.game
    with waiting(f"writing out {name} …"):
        evaluator, table, solved = subject.load(threads, shared=engine is not None, device=device)
    iterations = solved.get("iterations")
    if isinstance(evaluator, AbstractEvaluator):
        walk = evaluator.problem.walk
        if responses:
            evaluator.best_responses(table)
        if flops is not None or device != "cpu" or not walk.in_memory.fits or walk.seconds > LONG:
            with waiting(f"writing out {name} …"):
                found = subject.flop_responses(evaluator.problem, table, flops, seed, device)
            with opened(engine, address, threads) as workers, ExitStack() as stack:
                if workers and not found.complete:
                    found.crew = stack.enter_context(subject.flop_crew(evaluator.problem, workers, threads))
                return _by_flop(found, evaluator.problem, subject.strategy, seed)._replace(iterations=iterations)
    if flops is not None:
        raise RunError(f"--flops {flops} is for runs on abstract games, and {name} is walked as a whole: leave it out")
    walks = evaluator.tree_passes(table) if engine else None
    with opened(engine, address, threads) as workers, waiting(f"looking for best responses to {subject.strategy} …"):
        if workers and walks:
            won, value = subject.response_values(walks, workers, threads)
        else:
            won, value = evaluator.response_values(table), evaluator.expected_value(table)
        if responses:
            said = {"against": subject.agent or str(subject.run)} | dict(zip(("value_1", "value_2"), won, strict=True))
            evaluator.problem.save(responses, evaluator.best_responses(table), **said)
    mean = max(sum(won) / 2, 0.0)
    mbb = evaluator.problem.mbb(mean)
    figures = {"exploitability": mean, "value": value, "best_response_values": won, "unit": UNIT}
    rows = [
        *exploitability_rows(mean, evaluator.problem),
        *([f"best response of player {seat + 1} wins", f"{chips:.6g}", UNIT] for seat, chips in enumerate(won)),
        ["value to player 1", f"{round(value, 12) + 0.0:.6g}", UNIT],
    ]
    return _Judged(figures | ({} if mbb is None else {"exploitability_mbb": mbb}), rows, iterations)


def _by_flop(found: FlopResponses, problem: AbstractProblem, strategy: str, seed: int) -> _Judged:
    """Evaluate the remaining flops, and return the values of best responses."""
    from kilt import artifact
    from kilt.evaluate.evaluator import UNIT
    from kilt.evaluate.flops import flop_weights

    with watching() as watcher, artifact.exclusive_access(found.path):
        if not found.complete:
            watcher.show("a look at the pace", found.share_done, None)
            watcher.say(f"{strategy}: {found.share_done:.0%} done, kept in {found.path}", found.time_left())
            found.compute(watcher, f"best responses to {strategy}")
    if watcher.signals:
        say(f"stopped; {found.share_done:.1%} of {strategy} are done and kept: the same command resumes")
        raise typer.Exit(128 + watcher.signals[0])
    said: dict[str, Any]
    if found.draws is None:
        won = found.response_values()
        mean, said = max(sum(won) / 2, 0.0), {"best_response_values": won}
        rows = [
            *exploitability_rows(mean, problem),
            *([f"best response of player {seat + 1} wins", f"{chips:.6g}", UNIT] for seat, chips in enumerate(won)),
        ]
    else:
        estimate = found.estimate()
        mean, ends = estimate.mean, estimate.interval
        said = {"ci95": ends, "ci95_mbb": [problem.mbb(end) for end in ends], "flops": len(found.draws), "seed": seed}
        rows = [
            *exploitability_rows(mean, problem),
            ["95% interval", " to ".join(f"{problem.mbb(end):.6g}" for end in ends), "mbb/g"],
            ["flops", f"{len(found.draws)} of {len(flop_weights(found.walks.game)):,}", ""],
        ]
    return _Judged({"exploitability": mean, **said, "unit": UNIT, "exploitability_mbb": problem.mbb(mean)}, rows)


@app.command()
def lbr(
    player: Annotated[str, options.WHO],
    game: Annotated[str | None, options.GAME] = None,
    hands: Annotated[int, options.HANDS] = 1000,
    bets: Annotated[str | None, options.BETS] = None,
    since: Annotated[str | None, options.ROUND] = None,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Play the exact best response in the last round, and check and call before it: an upper bound of "
            "LBR's win rate from that round on with the same bets. Slower.",
        ),
    ] = False,
    seed: Annotated[int, options.SEED] = 0,
    processes: Annotated[int | None, options.WORKERS] = None,
    as_json: AsJson = False,
) -> None:
    """Compute a lower bound on a player's exploitability by local best response (LBR).

    With --round, the local best response checks and calls before this round.

    LBR works in games of any size. The player is evaluated as it plays, after post-processing and translation. For a
    run that post-processes, its average strategy is evaluated too, on the same cards, which doubles the time; add @RULE
    to the run to evaluate only one.

    The first figure is luck-adjusted without bias; the second is the raw winnings. Ctrl-C ends the evaluation early,
    and the hands played so far count.
    """
    from functools import partial

    from kilt.errors import PlayError
    from kilt.evaluate.last_round import last_round_bound
    from kilt.evaluate.lbr import BETS, lower_bound
    from kilt.games.gamedef import round_from_name
    from kilt.games.playable import load_holdem
    from kilt.jit import cores
    from kilt.players.agents import describe_strategy, load_once, strategies_to_evaluate
    from kilt.players.reference import player as player_of

    agent, rules = player_of(player).at(load_holdem(game) if game else None)
    if bets is not None and rules.rules.betting == "limit":
        raise PlayError(f"--bets {bets} is given, and {rules.name} is a limit game with one size: leave it out")
    first, last = round_from_name(since, rules.rules.round_names) if since else 0, rules.rules.rounds - 1
    if exact and since is not None and first < last:
        raise PlayError(
            f"--exact is about the last round, and --round is {since}: leave out one of them, or give --round "
            f"{rules.rules.round_names[last]}"
        )
    first = last if exact else first
    bound = last_round_bound if exact else partial(lower_bound, first_round=first)
    players = {name: describe_strategy(load_once(name)) for name in strategies_to_evaluate(player, agent)}
    menu, workers = BETS if bets is None else bets, cores() if processes is None else processes
    found: dict[str, LowerBound] = {}
    with interrupts(at_once=False) as stopped, ProgressBars() as bar:
        for name, strategy in players.items():
            if found and stopped:
                break
            task = bar.add_task(strategy if len(players) > 1 else "hands", total=hands, said="")
            how: dict[str, Any] = {"bets": menu, "load": load_once, "processes": workers, "stop": lambda: bool(stopped)}
            found[name] = bound(rules, name, hands, seed, tick=partial(_tick, bar, task), **how)
    first_found = found[player]
    if as_json:
        sizes = {} if rules.rules.betting == "limit" else {"bets": menu}
        each = {
            key: {"strategy": players[name]} | _bound_figures(found[name])
            for key, name in zip(("as_played", "average"), players, strict=False)
            if len(players) > 1 and name in found
        }
        print_json(
            _bound_figures(first_found)
            | {"unit": UNIT, "game": rules.name}
            | {
                "player": agent.name,
                "strategy": players[player],
                "seed": seed,
                "from": rules.rules.round_names[first],
                "exact": exact,
                **sizes,
                **each,
            }
        )
    else:
        kind = "best response" if exact else "local best response"
        shown = f"{first_found.hands:,} hands"
        title = f"{kind} to {agent.name} from {rules.rules.round_names[first]} on, {rules.name}, {shown}"
        _print_bounds(title, {players[name] or "result": found[name] for name in found}, exact, bool(stopped))
    exit_after_signal(stopped)


def _tick(bar: ProgressBars, task: TaskID, done: int) -> None:
    """Move a progress bar to a number of hands."""
    bar.update(task, completed=done, said=f"{done:,}")


def _print_bounds(title: str, found: dict[str, LowerBound], exact: bool, stopped: bool) -> None:
    """Print lower bounds by strategy, beginning with the average strategy, as other commands do."""
    columns = list(reversed(found.values()))
    names = "wins" if exact else "wins, adjusted for luck", "raw winnings of a caller" if exact else "raw winnings"
    rows = [
        [names[0], *(str(one.won) for one in columns), UNIT],
        [names[1], *(str(one.money) for one in columns), UNIT],
    ]
    if stopped and len(columns) > 1:
        rows.append(["hands", *(f"{one.hands:,}" for one in columns), ""])
    print_table(title, ["", *reversed(found), "unit"], rows)


def _bound_figures(found: LowerBound) -> dict[str, Any]:
    """Return a lower bound as a dict for JSON output."""
    return win_rate_data(found.won) | {"money": win_rate_data(found.money), "hands": found.hands}
