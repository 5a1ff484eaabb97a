"""Agents for experiments: runs like any other, each in its folder, or solved in memory where that takes seconds.

Runs go on where they stopped when the same command is given again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from kilt import artifact
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import actions_of
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build as build_cards
from kilt.abstraction.plan import PublicPlan, plan_named
from kilt.arrays import Array
from kilt.config import Config, SolverConfig
from kilt.errors import AbstractionError
from kilt.evaluate.flops import Watcher
from kilt.evaluate.head_to_head import SEED, AbstractStrategy, expected_winnings
from kilt.games.holdem import Holdem
from kilt.jit import cores
from kilt.runs.budget import time_left
from kilt.runs.build import build
from kilt.runs.folder import RunFolder
from kilt.runs.plan import resolve
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.distributed.solver import Distributed
from kilt.solve.external import External, SamplingOptions
from kilt.strategy.blueprint import STRATEGY, card_folders
from kilt_lab.cells import ITERATIONS
from kilt_lab.experiment import Lab, Stopped

SPARES = range(0, 6_000, 1_000)  # what is added to a seed where another one takes its place
Made = TypeVar("Made")


class SolvedAgent(NamedTuple):
    """An agent that is ready."""

    problem: AbstractProblem
    strategy: Array  # [slot]
    folder: Path
    seconds: float  # of solving
    cpu_seconds: float  # of it
    iterations: int


def solved_agent(config: Config, folder: Path, watcher: Watcher, like: SolvedAgent | None = None) -> SolvedAgent:
    """The agent of a configuration, in a folder of its own. Raises `Stopped` after Ctrl-C; it goes on from there.

    Rounds whose hands are sorted as those of another agent, if one is named, are taken from it.
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
            kept, threads = artifact.cache_folder(), config.solver.threads
            build_cards(cards, own, cache=kept, threads=threads, tick=building, like=theirs)
    run = build(plan, folder, resumes=True, budget=plan.budget, tick=building)
    assert isinstance(run.problem, AbstractProblem)
    run.schedule = lambda iterations: sys.maxsize  # nobody looks at how it got there
    if not run.ended:
        watcher.say(f"solving {name}", run.budget.seconds)
        for _ in run.solving(stop=watcher.stopped, tick=solving):
            pass
    if watcher.stopped():
        raise Stopped
    strategy, figures = run.problem.load(folder / STRATEGY)
    spent = RunFolder.open(folder).steps()[-1].cpu_seconds
    return SolvedAgent(run.problem, strategy, folder, figures["seconds"], spent, figures["iterations"])


def solver_config(lab: Lab, seed: int, longer: float = 1.0) -> SolverConfig:
    """How a run solves for the budget of a lab, or `longer` times that: CPU time is divided among its threads."""
    budget = lab.budget._replace(amount=longer * lab.budget.amount)
    if budget.clock == ITERATIONS:
        return SolverConfig(iterations=budget.whole, threads=lab.threads, seed=seed)
    return SolverConfig(minutes=budget.amount / 60 / lab.threads, threads=lab.threads, seed=seed)


def share_of(lab: Lab) -> float:
    """The share of the default budget that a lab has, at most 1; 1 where it has another clock."""
    plain = lab.experiment.defaults.budget
    assert plain is not None
    return min(1.0, lab.budget.amount / plain.amount) if plain.clock == lab.budget.clock else 1.0


def game_in_buckets(
    game: Holdem, actions: str, plan: str, folder: Path, seed: int, public: PublicPlan | None = None
) -> AbstractGame:
    """A game through buckets that are built in a folder, and bets: every legal raise where no `actions` are named.

    A plan is named with `{}` for all starting hands up to suits. Where boards have classes, its buckets are those of
    each class.
    """
    deal = Deal.of(game)
    whole = replace(plan_named(plan.format(len(deal.holdings((0,)))), deal.board_cards), seed=seed)
    if public:
        whole = replace(whole, public=(replace(public, seed=seed),))
    cards = build_cards(AbstractionSpec(plan, deal, whole), folder, cache=artifact.cache_folder(), threads=cores())
    return AbstractGame(game, cards, actions_of(actions) if actions else None)


def with_spare_seeds(make: Callable[[int], Made], seed: int, watcher: Watcher) -> Made:
    """What is made of cards that a seed clusters, or another one in its place where its clusters cannot be cut further.

    With perfect recall, a cluster is cut into buckets in the next round; in small games it may have fewer different
    hands than these are.
    """
    for spare in SPARES[:-1]:
        try:
            return make(seed + spare)
        except AbstractionError as error:
            watcher.say(f"another seed takes the place of {seed + spare}: {error}")
    return make(seed + SPARES[-1])


def visit(solver: External | Distributed, nodes: int) -> None:
    """Let a solver go on until the nodes that it has visited, trunk and leaves included, are at least `nodes`."""
    solver.step(1)
    while (seen := solver.visits + (solver.head.visits if isinstance(solver, Distributed) else 0)) < nodes:
        solver.step(max(1, int((nodes - seen) * solver.iterations / seen)))


def checkpoints(solver: External | Distributed, points: Iterable[int]) -> Iterator[tuple[int, AbstractStrategy]]:
    """What a solver plays after each of some numbers of nodes."""
    abstract = solver.abstract if isinstance(solver, External) else solver.partition.abstract
    for nodes in points:
        visit(solver, nodes)
        yield nodes, AbstractStrategy(abstract, solver.average())


def sampled_agent(
    game: Holdem,
    actions: str,
    plan: str,
    folder: Path,
    effort: int | Callable[[External], None],
    seed: int,
    public: PublicPlan | None = None,
    draws: int | None = None,
) -> AbstractStrategy:
    """What external sampling with linear weights comes to, in memory, once it has visited some nodes.

    `effort` is their number, or lets the solver go as far as it should. Cards are clustered by a seed, and dealt by the
    same one unless there is another for these `draws`.
    """
    abstract = game_in_buckets(game, actions, plan, folder, seed, public)
    solver = External(abstract, seed if draws is None else draws, SamplingOptions(linear=True))
    if isinstance(effort, int):
        visit(solver, effort)
    else:
        effort(solver)
    return AbstractStrategy(abstract, solver.average())


def won_by(one: AbstractStrategy, other: AbstractStrategy, deals: int, seed: int) -> float:
    """What one strategy wins from another in mbb/h, with all bets averaged over; one seed has one set of deals."""
    chips = expected_winnings(one, other, deals, SEED + seed, threads=cores())
    return float(chips.mean()) * 1000 / one.abstract.game.rules.big_blind
