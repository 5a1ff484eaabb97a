"""Agents for experiments: ordinary runs in their own folders, or strategies solved in memory within seconds.

A run that was stopped resumes if the same command is given again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from kilt import artifact, machine
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import actions_of
from kilt.abstraction.buckets import AbstractionSpec, CardAbstraction
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build as build_cards
from kilt.abstraction.plan import Plan, PublicPlan, plan_named
from kilt.arrays import Array
from kilt.config import Config, SolverConfig
from kilt.errors import AbstractionError
from kilt.evaluate.flops import ProgressMonitor
from kilt.evaluate.head_to_head import SEED, AbstractStrategy, expected_winnings
from kilt.games.holdem import Holdem
from kilt.jit import cores
from kilt.runs.budget import Budget, time_left
from kilt.runs.build import build
from kilt.runs.plan import resolve
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.distributed.solver import DistributedMCCFR
from kilt.solve.external import ExternalMCCFR, SamplingOptions
from kilt.strategy.blueprint import STRATEGY, card_folders
from kilt_lab.cells import ITERATIONS, clock_of
from kilt_lab.experiment import Lab, Stopped

SPARES = range(0, 6_000, 1_000)  # offsets of replacement seeds
Made = TypeVar("Made")


class SolvedAgent(NamedTuple):
    """A solved agent."""

    problem: AbstractProblem
    strategy: Array  # [slot]
    folder: Path
    seconds: float  # of solving, by the clock of its device
    iterations: int


def solved_agent(
    config: Config, folder: Path, watcher: ProgressMonitor, like: SolvedAgent | None = None
) -> SolvedAgent:
    """Return the agent of a configuration, solved in `folder`. Raises `Stopped` after Ctrl-C; the run can be resumed.

    If another agent is given as `like`, rounds with the same buckets are copied from it.
    """
    name, plan = folder.name, resolve(config, folder)

    def building(what: str, share: float) -> None:
        watcher.show(f"{name}, {what}", share, None)

    def solving(iterations: int, spent: float) -> None:
        left = time_left(run.budget, (), iterations, spent)
        share = spent / (spent + left) if left else 1.0
        watcher.show(f"{name}, {iterations:,} iterations", share, left)

    if like:
        places = (card_folders(one, len(plan.cards)) for one in (folder, like.folder))
        for cards, own, theirs in zip(plan.cards, *places, strict=True):
            assert isinstance(cards, AbstractionSpec)
            kept, threads = machine.cache_folder(), config.solver.threads
            build_cards(cards, own, cache=kept, threads=threads, tick=building, like=theirs)
    run = build(plan, folder, resumes=True, budget=plan.budget, tick=building)
    assert isinstance(run.problem, AbstractProblem)
    run.schedule = lambda iterations: sys.maxsize  # no steps are needed in between
    run.clock = clock_of(config.solver.device)
    if not run.ended:
        watcher.say(f"solving {name}", run.budget.seconds)
        for _ in run.solving(stop=watcher.stopped, tick=solving):
            pass
    if watcher.stopped():
        raise Stopped
    strategy, figures = run.problem.load(folder / STRATEGY)
    return SolvedAgent(run.problem, strategy, folder, figures["seconds"], figures["iterations"])


def fitted(plan: str, deal: Deal) -> str:
    """Return the name of a plan for another deck: 169, the starting hands of hold'em, becomes the number of its own."""
    return plan.replace(" 169-", f" {len(deal.holdings((0,)))}-")


def seeded(plan: str, deal: Deal, seed: int) -> Plan:
    """Return a plan, `fitted` to a deck, that clusters with a seed."""
    return replace(plan_named(fitted(plan, deal), deal.board_cards), seed=seed)


def plan_file(plan: Plan, file: Path) -> str:
    """Write a plan to a file, and return its path for a configuration."""
    with artifact.os_errors(f"{file.parent} cannot be written"):
        file.parent.mkdir(parents=True, exist_ok=True)
        artifact.write_text(file, plan.toml())
    return str(file.resolve())


def run_budget(lab: Lab, longer: float = 1.0) -> Budget:
    """Return the budget of a cell, or `longer` times as much, as that of a run.

    A run counts the seconds of its `Run.clock`, which should be `clock_of` its device.
    """
    amount = longer * lab.budget.amount
    return Budget(iterations=round(amount)) if lab.budget.clock == ITERATIONS else Budget(seconds=amount)


def solver_config(lab: Lab, seed: int, longer: float = 1.0) -> SolverConfig:
    """Return the solver configuration for the budget of a lab, or `longer` times that budget."""
    budget = run_budget(lab, longer)
    minutes, iterations = (budget.seconds or 0.0) / 60, budget.iterations or 0
    return SolverConfig(minutes=minutes, iterations=iterations, threads=lab.threads, seed=seed)


def share_of(lab: Lab) -> float:
    """Return the lab's budget as a share of the default budget, at most 1; 1 if the clocks differ."""
    plain = lab.experiment.defaults.budget
    assert plain is not None
    return min(1.0, lab.budget.amount / plain.amount) if plain.clock == lab.budget.clock else 1.0


def cards_in_buckets(
    game: Holdem, plan: str, folder: Path, seed: int = 0, public: PublicPlan | None = None
) -> CardAbstraction:
    """Return buckets of a plan, built in a folder. If boards have classes, the buckets are those of each class.

    In a plan, `{}` is replaced by the number of starting hands up to suit isomorphism.
    """
    deal = Deal.from_game(game)
    whole = seeded(plan.format(len(deal.holdings((0,)))), deal, seed)
    if public:
        whole = replace(whole, public=(replace(public, seed=seed),))
    return build_cards(AbstractionSpec(plan, deal, whole), folder, cache=machine.cache_folder(), threads=cores())


def game_in_buckets(
    game: Holdem, actions: str, plan: str, folder: Path, seed: int = 0, public: PublicPlan | None = None
) -> AbstractGame:
    """Return the abstract game with `cards_in_buckets`, and with all legal raises if `actions` is empty."""
    cards = cards_in_buckets(game, plan, folder, seed, public)
    return AbstractGame(game, cards, actions_of(actions) if actions else None)


def with_spare_seeds(make: Callable[[int], Made], seed: int, watcher: ProgressMonitor) -> Made:
    """Return `make(seed)`, or the result with another seed if the clusters of this one cannot be split.

    With perfect recall, each cluster is split into buckets in the next round. A small game may have fewer
    different hands than buckets.
    """
    for spare in SPARES[:-1]:
        try:
            return make(seed + spare)
        except AbstractionError as error:
            watcher.say(f"seed {seed + spare} is replaced by another one: {error}")
    return make(seed + SPARES[-1])


def visit(solver: ExternalMCCFR | DistributedMCCFR, nodes: int) -> None:
    """Run a solver until it has visited at least `nodes` nodes, including trunk and leaves."""
    solver.step(1)
    while (seen := solver.visits + (solver.head.visits if isinstance(solver, DistributedMCCFR) else 0)) < nodes:
        solver.step(max(1, int((nodes - seen) * solver.iterations / seen)))


def checkpoints(
    solver: ExternalMCCFR | DistributedMCCFR, points: Iterable[int]
) -> Iterator[tuple[int, AbstractStrategy]]:
    """Yield the strategy of a solver after each of the given numbers of nodes."""
    abstract = solver.abstract if isinstance(solver, ExternalMCCFR) else solver.partition.abstract
    for nodes in points:
        visit(solver, nodes)
        yield nodes, AbstractStrategy(abstract, solver.average())


def sampled_agent(
    game: Holdem,
    actions: str,
    plan: str,
    folder: Path,
    effort: int | Callable[[ExternalMCCFR], None],
    seed: int,
    public: PublicPlan | None = None,
    draws: int | None = None,
) -> AbstractStrategy:
    """Return the strategy of external sampling with linear weights, solved in memory.

    `effort` is the number of nodes to visit, or a function that runs the solver. `seed` clusters the cards, and also
    deals them unless `draws` is given.
    """
    abstract = game_in_buckets(game, actions, plan, folder, seed, public)
    solver = ExternalMCCFR(abstract, seed if draws is None else draws, SamplingOptions(linear=True))
    if isinstance(effort, int):
        visit(solver, effort)
    else:
        effort(solver)
    return AbstractStrategy(abstract, solver.average())


def won_by(one: AbstractStrategy, other: AbstractStrategy, deals: int, seed: int) -> float:
    """Return winnings of one strategy against another in mbb/h, averaged over all bets; a seed fixes the deals."""
    chips = expected_winnings(one, other, deals, SEED + seed, threads=cores())
    return float(chips.mean()) * 1000 / one.abstract.game.rules.big_blind
