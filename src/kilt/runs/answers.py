"""Compute counter-strategies to an opponent model, or several in parallel, one in each worker process.

Of several, each run begins in this process, which writes its folder, and is finished by the next free worker. If a
worker is lost, another one resumes the run from its last checkpoint, and gets the same strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kilt.config import DEFAULT_ALGORITHM, find_config
from kilt.engines import Engine
from kilt.evaluate.head_to_head import AGAINST_FIXED, AbstractStrategy, expected_winnings
from kilt.evaluate.stats import Estimate, estimate_mean
from kilt.runs.budget import Budget, Step
from kilt.runs.build import What, resume, spec_of
from kilt.runs.folder import MODEL
from kilt.runs.plan import RunPlan
from kilt.runs.run import Run
from kilt.runs.spec import NOTHING, WholeSpec
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.counter import Against


class SolvedAnswer(NamedTuple):
    """The result of a run that computed a counter-strategy."""

    last: Step
    exploitability_mbb: float  # of its average strategy, in mbb/g; nan if unknown
    exploitation: Estimate  # win rate against the model: see `exploitation`


def answer_spec(what: What, against: Against, values: Mapping[str, object] = NOTHING) -> RunPlan | WholeSpec:
    """Return the specification of a run that computes a counter-strategy to an opponent.

    The parameters are those of `spec_of`. The algorithm of the configuration is the one that the counter-strategy is
    computed by, such as "cfr+".
    """
    config = find_config(what)
    base = values.get("solver.algorithm") or (config.solver.algorithm if config else DEFAULT_ALGORITHM)
    values = {**values, "solver.algorithm": against.algorithm(str(base))}
    if config and config.cards:
        values |= {"counter.model": MODEL, "counter.p": against.p, "counter.confidence": against.confidence}
    return spec_of(config or what, values, against=against)


def solve_answers(
    engine: Engine,
    folders: Sequence[Path],
    budget: Budget | None = None,
    tick: Callable[[float], None] = lambda share: None,
) -> list[SolvedAnswer]:
    """Compute several counter-strategies in parallel on an engine's workers.

    Parameters
    ----------
    engine : Engine
        The engine whose workers solve the runs, each in one process.
    folders : sequence of Path
        Folders of runs that have begun (see `build`, `RunPlan.leave`). All machines must see them under these paths.
    budget : Budget, optional
        Total budget of each run. Default: the run's own budget.
    tick : callable
        Called with the finished share of the runs.
    """
    return engine.map(partial(solve_answer, budget=budget), [folder.resolve() for folder in folders], tick)


def solve_answer(folder: Path, budget: Budget | None = None) -> SolvedAnswer:
    """Finish the run of one counter-strategy from its last checkpoint."""
    run = resume(folder, budget=budget)
    last = run.finish()
    mbb = run.problem.mbb(last.exploitability)
    return SolvedAnswer(last, np.nan if mbb is None else mbb, exploitation(run))


def exploitation(run: Run) -> Estimate:
    """Return a counter-strategy's win rate against the opponent that it exploits, in mbb per hand.

    It is a mean over both seats.
    """
    problem = run.evaluator.problem
    opponent, answer = problem.opponent, run.table
    policy = opponent.model.policy()
    if not isinstance(problem, AbstractProblem):  # the walk evaluates both seats
        first, second = (
            run.evaluator.expected_value(opponent.combine_seats(pair)) for pair in ((answer, policy), (policy, answer))
        )
        return Estimate(problem.mbb((first - second) / 2) or 0.0, 0.0)
    mine, theirs = (
        AbstractStrategy(problem.abstract, shares.astype(np.float32))  # kernels are compiled for one type
        for shares in (answer, policy)
    )
    won = expected_winnings(mine, theirs, AGAINST_FIXED)
    return estimate_mean(won.mean(axis=1) * 1000 / problem.big_blind)
