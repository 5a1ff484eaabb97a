"""Solve games, open runs, and build card abstractions: the public functions of kilt.

The functions accept names as the commands do ("leduc", "cfr+", "runs/mine"), or the corresponding objects, and print
nothing. If an argument is invalid, they raise `KiltError`, whose message contains a remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, overload

from kilt import machine
from kilt.abstraction.buckets import AbstractionSpec, CardAbstraction
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build as build_cards
from kilt.cards.deck import FULL, Deck
from kilt.cards.equity import Equity, hand_equity, parse_hand
from kilt.config import Config, find_config
from kilt.cost import Cost
from kilt.errors import GameError, RunError, file_errors
from kilt.games import load_game, ready_made_games
from kilt.games.game import Game
from kilt.games.holdem import Holdem
from kilt.runs.answers import answer_spec
from kilt.runs.budget import Step, make_budget
from kilt.runs.build import What, build, spec_in, spec_of
from kilt.runs.plan import RunPlan, resolve
from kilt.runs.run import Run, StoredRun
from kilt.runs.run import open_run as open_stored
from kilt.runs.spec import Tick, silent
from kilt.solve.counter import Against
from kilt.solve.problem import CPU
from kilt.solve.registry import Algorithm
from kilt.solve.variants import Variant
from kilt.spots.solution import SpotSolution
from kilt.spots.specs import spec_for
from kilt.spots.spot import Spot
from kilt.strategy.blueprint import Blueprint


@overload
def solve(
    what: Spot,
    algorithm: str | None = None,
    *,
    iterations: int | None = None,
    seconds: float | None = None,
    target: float | str | None = None,
    seed: None = None,
    threads: int | None = None,
    device: str | None = None,
    against: None = None,
    folder: str | Path | None = None,
    on_step: Callable[[Step], object] = silent,
) -> SpotSolution: ...


@overload
def solve(
    what: What,
    algorithm: str | Variant | Algorithm | None = None,
    *,
    iterations: int | None = None,
    seconds: float | None = None,
    target: float | str | None = None,
    seed: int | None = None,
    threads: int | None = None,
    device: str | None = None,
    against: Against | None = None,
    folder: str | Path | None = None,
    on_step: Callable[[Step], object] = silent,
) -> Run: ...


def solve(
    what: What | Spot,
    algorithm: str | Variant | Algorithm | None = None,
    *,
    iterations: int | None = None,
    seconds: float | None = None,
    target: float | str | None = None,
    seed: int | None = None,
    threads: int | None = None,
    device: str | None = None,
    against: Against | None = None,
    folder: str | Path | None = None,
    on_step: Callable[[Step], object] = silent,
) -> Run | SpotSolution:
    """Solve a game, a configuration or a spot, up to a limit of iterations, time or exploitability.

    The result is a strategy close to an equilibrium or, `against` a model of an opponent, a counter-strategy.

    Parameters
    ----------
    what : str, Path, Game, Config, mapping or Spot
        As in `start_run`; or a spot, for which `target` is a percentage of the pot.
    algorithm, iterations, seconds, target, seed, threads, device, against, folder
        As in `start_run`.
    on_step : callable
        Called with a `Step` at each point of the measuring schedule.

    Returns
    -------
    Run or SpotSolution
        A finished run, with `exploitability`, `value`, `strategy` and `agent`; for a spot, its solution.

    Examples
    --------
    >>> run = solve("kuhn", iterations=1000)
    >>> round(18 * run.value, 2), run.exploitability < 1e-3
    (-1.0, True)
    >>> sorted(run["Ks||cr"])
    ['c', 'f']
    """
    if isinstance(what, Spot):
        if not isinstance(algorithm, str | None) or seed is not None or against is not None:
            raise RunError("a spot takes the name of an algorithm, and neither `seed` nor `against`: omit them")
        return what.solve(
            target,
            iterations=iterations,
            seconds=seconds,
            threads=threads or 1,
            folder=folder,
            on_step=on_step,
            device=device or CPU,
            algorithm=algorithm,
        )
    run = start_run(
        what,
        folder,
        algorithm=algorithm,
        iterations=iterations,
        seconds=seconds,
        target=target,
        seed=seed,
        threads=threads,
        device=device,
        against=against,
    )
    for step in run:
        on_step(step)
    return run


def equity(hand: str, opponent: str = "random", board: str = "", *, deck: Deck = FULL) -> Equity:
    """Return a hand's exact equity against another hand or a range.

    Parameters
    ----------
    hand : str
        Two cards, such as "AsKh".
    opponent : str
        Two cards, a range such as "QQ+,AKs,A5s-A2s,KQs:0.5", or "random" for any two cards.
    board : str
        Three to five cards, such as "Qd7h2c"; empty before the flop.
    deck : Deck
        The deck of the cards.

    Returns
    -------
    Equity
        Probabilities `win`, `tie` and `lose`, and `equity`, the share of the pot.

    Examples
    --------
    >>> round(equity("AsKh", "QQ+,AK", "Qd7h2c").equity, 5)
    0.27727
    """
    public = deck.cards(board)
    return hand_equity(parse_hand(hand, public, deck), deck.range(opponent), public, deck)


@file_errors()
def build_abstraction(
    name: str,
    game: str | Game = "holdem.limit.2p",
    folder: str | Path | None = None,
    *,
    threads: int = 1,
    tick: Tick = silent,
) -> CardAbstraction:
    """Build a card abstraction, which groups similar hands of a game into buckets.

    Parameters
    ----------
    name : str
        A name in the notation of the literature, such as ``"IR-KE-KO 169-500-500-500"``; ``"lossless"``; or the path of
        a plan in TOML.
    game : str or Game
        A game of the hold'em family, for its deck and rounds.
    folder : str or Path, optional
        A folder for the result, which `CardAbstraction.load` can open. Default: memory only.
    threads : int
        Number of threads. It does not affect the result.
    tick : callable
        Called with a description of the current step, and the finished share of it.

    Returns
    -------
    CardAbstraction
        The abstraction; ``bucket(hand, board)`` returns the bucket of a hand.

    Examples
    --------
    >>> cards = build_abstraction("PR-PHS-PHS 2-2", "leduc")
    >>> cards.numbers  # of buckets, by round
    (2, 4)
    """
    rules = load_game(game) if isinstance(game, str) else game
    if not isinstance(rules, Holdem):
        raise GameError(f"{rules.name} has no cards to abstract: use a poker game")
    spec = AbstractionSpec.from_name(name, Deal.from_game(rules))
    if folder is not None:
        return build_cards(spec, Path(folder), cache=machine.cache_folder(), threads=threads, tick=tick)
    with TemporaryDirectory() as place:
        return build_cards(spec, Path(place) / "cards", cache=machine.cache_folder(), threads=threads, tick=tick)


@file_errors()
def plan_run(config: Config | Mapping[str, Any] | str | Path) -> RunPlan:
    """Check a configuration with everything it refers to, and plan its run.

    Parameters
    ----------
    config : Config, mapping, or path of a TOML file
        See `Config`; ``kilt new`` prints one.

    Returns
    -------
    RunPlan
        The plan; ``cost()`` estimates memory, disk space and time; ``size`` is the size of the abstract game.

    Examples
    --------
    >>> plan = plan_run({"game": "leduc", "cards": "lossless"})
    >>> sum(plan.size.slots), plan.cost().fits  # infoset-actions, and whether memory suffices
    (1092, True)
    """
    return resolve(_require_config(config))


@file_errors()
def cost(
    what: What | Spot,
    *,
    algorithm: str | None = None,
    threads: int | None = None,
    device: str | None = None,
) -> Cost:
    """Estimate the memory, disk space and time for solving a game.

    Nothing is built. Use it to check whether a game fits this machine.

    Parameters
    ----------
    what : str, Path, Game, Config, mapping or Spot
        As in `solve`; or the folder of a run or of a spot.
    algorithm, threads, device : optional
        As in `start_run`.

    Returns
    -------
    Cost
        ``fits`` says whether memory suffices, ``require()`` raises `RunError` if it does not.

    Examples
    --------
    >>> leduc = cost("leduc", algorithm="cfr+")
    >>> leduc.fits, leduc.memory < 10_000_000
    (True, True)
    """
    return spec_for(what, {"solver.algorithm": algorithm, "solver.threads": threads, "solver.device": device}).cost()


@file_errors()
def start_run(
    what: What,
    folder: str | Path | None = None,
    *,
    algorithm: str | Variant | Algorithm | None = None,
    iterations: int | None = None,
    seconds: float | None = None,
    target: float | str | None = None,
    seed: int | None = None,
    threads: int | None = None,
    device: str | None = None,
    against: Against | None = None,
    tick: Tick = silent,
) -> Run:
    """Create a run that is ready to solve a game.

    For a configuration, its card abstraction is built first.

    Parameters
    ----------
    what : str, Path, Game, Config or mapping
        A game: a ready-made one by name, a file in ACPC format, ``openspiel:NAME``, or an object with the methods of
        `Game`. Or a configuration: a `Config`, a mapping, or the path of a TOML file.
    folder : str or Path, optional
        A new folder for log, checkpoints and strategy. A configuration with `cards` needs one.
    algorithm : str, Variant or Algorithm, optional
        A name (``kilt solve --algorithms`` lists them), a row of discounts for CFR, or a custom `Algorithm`. Default:
        that of the configuration, or "cfr+".
    iterations, seconds : optional
        Limits; the run stops at the first one reached. Without any limit: those of the configuration, or a minute.
    target : float or str, optional
        Exploitability at which the run stops: in chips per game, or in thousandths of a big blind such as "1mbb".
    seed, threads : int, optional
        Seed of algorithms that sample; number of threads. Default: those of the configuration, or 0 and 1.
    device : str, optional
        "cpu" or "gpu". Default: that of the configuration, or "cpu".
    against : Against, optional
        An opponent to exploit: a model of it for the same game (`model_opponent`), and the trust in the model. The run
        stores a copy of the model.
    tick : callable
        Called with a description of the current step of building the card abstraction, and the finished share of it.

    Returns
    -------
    Run
        A run; iterate over it to solve: each `Step` is a measurement. A run that was stopped early can be resumed with
        `resume_run`. At the end, the folder can be used as a player: see `player`.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp()) / "leduc"
    >>> run = start_run({"game": "leduc", "cards": "lossless"}, folder, iterations=2000)
    >>> [step.iterations for step in run][-1], (folder / "strategy").exists()
    (2000, True)
    """
    if isinstance(what, Spot):
        raise RunError("a spot cannot be solved in steps: call `kilt.solve(spot)` or `spot.solve()`, with `on_step`")
    name, own = (algorithm, None) if isinstance(algorithm, str | None) else (None, algorithm)
    values = {"solver.algorithm": name, "solver.seed": seed, "solver.threads": threads, "solver.device": device}
    if own and against:
        raise RunError("a counter-strategy needs an algorithm by name: use cfr, cfr+, linear or dcfr")
    spec = answer_spec(what, against, values) if against else spec_of(what, values, algorithm=own)
    budget = make_budget(iterations, seconds, target, spec.game)
    return build(spec, Path(folder) if folder else None, budget=budget, tick=tick)


@file_errors()
def resume_run(
    folder: str | Path,
    *,
    iterations: int | None = None,
    seconds: float | None = None,
    target: float | str | None = None,
    threads: int | None = None,
    device: str | None = None,
    tick: Tick = silent,
) -> Run:
    """Resume a stopped or killed run from its last checkpoint.

    Parameters
    ----------
    folder : str or Path
        Folder of a run that `start_run`, `solve` or ``kilt solve`` has started.
    iterations, seconds, target : optional
        Limits for the whole run, including the part before the resume. Default: the previous limits.
    threads : int, optional
        Number of threads. Default: that of the configuration, or 1.
    device : str, optional
        "cpu" or "gpu". Default: the device on which the run started.
    tick : callable
        Called with the progress of building card abstractions, if they are not finished.

    Returns
    -------
    Run
        The run, like that of `start_run`.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp()) / "leduc"
    >>> start_run({"game": "leduc", "cards": "lossless"}, folder, iterations=1000).finish().iterations
    1000
    >>> resume_run(folder, iterations=3000).finish().iterations
    3000
    """
    spec = spec_in(Path(folder), {"solver.threads": threads, "solver.device": device})
    budget = make_budget(iterations, seconds, target, spec.game)
    return build(spec, Path(folder), resumes=True, budget=budget, tick=tick)


@file_errors()
def open_run(folder: str | Path) -> StoredRun:
    """Open a run to read its results, without solving anything.

    Parameters
    ----------
    folder : str or Path
        Folder of a run of `start_run`, `solve` or ``kilt solve``.

    Returns
    -------
    StoredRun
        The run with `steps`, `config`, `exploitability` and `value`; it can also be used as a player.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp()) / "kuhn"
    >>> _ = solve("kuhn", iterations=100, folder=folder)
    >>> open_run(folder).steps[-1].iterations
    100
    """
    return open_stored(folder)


def games() -> dict[str, str]:
    """Return the names and descriptions of the games that ship with kilt.

    Returns
    -------
    dict of str to str
        Maps a name to a description; ``load_game(name)`` returns the rules.

    Examples
    --------
    >>> "leduc" in games()
    True
    """
    return dict(ready_made_games())


@file_errors()
def open_blueprint(folder: str | Path) -> Blueprint:
    """Open the strategy of a run or of an exported agent, for an abstract game.

    Its tables are mapped into memory.

    Parameters
    ----------
    folder : str or Path
        Folder of a run, or of an agent written by ``kilt export``.

    Returns
    -------
    Blueprint
        The strategy; ``row(node, bucket)`` returns the probabilities of a decision, ``bucket(player, round, hand,
        board)`` the bucket of a hand.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp()) / "leduc"
    >>> _ = start_run({"game": "leduc", "cards": "lossless"}, folder, iterations=1000).finish()
    >>> blueprint = open_blueprint(folder)
    >>> king = blueprint.game.deck.cards("Ks")
    >>> len(blueprint.row(0, blueprint.bucket(0, 0, king, ()))), blueprint.labels(0)  # check or bet
    (2, ['c', 'r'])
    """
    return Blueprint.load(folder)


def _require_config(what: What) -> Config:
    if (config := find_config(what)) is None:
        raise RunError(f"{what} is an unabstracted game: use a configuration, with `game` and `cards`")
    return config
