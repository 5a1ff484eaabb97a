"""Figures and tables about abstracted players: how exploitable they are in the whole game.

Three ways to make an abstracted player: both players of the game are abstracted; one is, and learns against one who is
not; one is, and learns against best responses, by CFR-BR with a hybrid opponent [Johanson16 §§4.3, 4.4, 5.5].
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from kilt import artifact
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import Plan, plan_named
from kilt.errors import AbstractionError
from kilt.evaluate.flops import Watcher
from kilt.games import load_game
from kilt.games.holdem import Holdem
from kilt.jit import cores
from kilt.reproduce.claims import Claim, Row
from kilt.reproduce.convergence import BRIEF, mean_curve, seldom
from kilt.reproduce.reproduction import Reproduction, ReproductionResult, Request
from kilt.runs.budget import Step
from kilt.runs.loop import CHUNK
from kilt.solve.abstract import BucketedGame
from kilt.solve.vector import VectorCfr
from kilt.tree.vector import VectorGame
from kilt.viz.convergence import plot_convergence
from kilt.viz.picture import require_drawable

GAME = "holdem.2-4"
WAYS = {"both": "abstract", "one": "real", "cfr-br": "response"}


@dataclass(frozen=True)
class Case:
    """An abstraction, a way to solve it, and what the paper has."""

    plan: str
    way: str
    paper: float | None = None
    elsewhere: float | None = None  # what the paper has for another game

    def name(self, *, short: bool) -> str:
        """As a row."""
        return self.way if short else f"{self.plan} {self.way}"


def seen_by(plan: str, game: VectorGame, threads: int, rolled_out: str | None = None, seed: int = 0) -> BucketedGame:
    """A game as players with an abstraction see it, which is built for that.

    Where another game is named, hands are sorted as in its first rounds, as if its other rounds were to come. A plan
    that has more buckets before the flop than there are hands tells all of these apart, and one of more rounds is cut.
    """
    rules = game.game
    if not isinstance(rules, Holdem):
        raise AbstractionError(f"{rules.name} has no cards: use a game of poker")
    longer = load_game(rolled_out) if rolled_out else rules
    assert isinstance(longer, Holdem)
    own, deal = Deal.of(rules), Deal.of(longer)
    kept, (kind, first, *others) = len(own.board_cards), re.split("[ -](?=[0-9])", plan)
    plan = f"{kind} {'-'.join([str(min(int(first), len(own.holdings((0,))))), *others[: kept - 1]])}"
    rounds = plan_named(plan + "-1" * (len(deal.board_cards) - kept), deal.board_cards).rounds
    with TemporaryDirectory() as folder:
        unseen = (replace(later, recall=False) for later in rounds[kept:])
        identity = AbstractionSpec(plan, deal, Plan((*rounds[:kept], *unseen), seed=seed))
        cards = build(identity, Path(folder) / "cards", cache=artifact.cache_folder(), threads=threads)
        return BucketedGame.by(game, cards.of_first_rounds(own))


def converge(
    seen: BucketedGame, way: str, seconds: float, watcher: Watcher, *, trunk: int = 1, curve: bool = True, seed: int = 0
) -> list[Step]:
    """Where a solver stands in the end and, for a curve, after 1, 2, 4, 8, … iterations, in mbb/g of the whole game.

    Brief runs are measured after 1, 8, 64, … iterations, or in the end by their average strategy alone. Measuring is
    not counted, nor is the first iteration, in which kernels may be compiled. As in the paper boards are drawn for each
    iteration.
    """
    rules = seen.game.game
    assert isinstance(rules, Holdem)
    scale = 1000 / rules.rules.big_blind
    solver = VectorCfr(seen, "cfr", scheme="pcs", opponent=WAYS[way], trunk=trunk, seed=seed)
    steps, spent, pace = list[Step](), 0.0, CHUNK
    while not watcher.stopped():
        before, began = solver.iterations, perf_counter()
        due = seldom(before + 1) if seconds < BRIEF else 1 << before.bit_length()
        solver.step(max(1, min(due - before, int(CHUNK / pace))))
        took = perf_counter() - began
        pace, spent = took / (solver.iterations - before), spent + (took if before else 0.0)
        over = spent + pace > seconds
        watcher.show(way, min(1.0, spent / seconds), max(0.0, seconds - spent))
        if over or (curve and solver.iterations == due):
            average, more = solver.average(), (nan, nan)
            if curve or seconds >= BRIEF:
                more = seen.exploitability(solver.current()), seen.expected_value(average)
            figures = scale * np.array([seen.exploitability(average), *more])
            steps.append(Step(solver.iterations, spent, *figures.tolist()))
        if over:
            break
    return steps


def cases(
    name: str,
    what: str,
    rows: Sequence[Case],
    minutes: float,
    *,
    curves: bool,
    game: str = GAME,
    rolled_out: str | None = None,
    trunk: int = 1,
    claims: tuple[Claim, ...],
    quick: Request,
) -> Reproduction:
    """A table or figure of some cases, `minutes` for each run; a picture of their curves where they belong together.

    Unless `asked` for another game, hands may be sorted as in one with more rounds: see `seen_by`.
    """
    named = {case.name(short=curves): case for case in rows}

    def reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
        path = asked.out or Path(f"kilt-{name}.png")
        if curves:
            require_drawable(path)
        threads = cores() if asked.threads is None else asked.threads
        real = VectorGame(load_game(asked.game or game), threads=threads)
        found, drawn, seen = list[Row](), dict[str, list[Step]](), dict[tuple[str, int], BucketedGame]()
        budget, runs = 60 * (minutes if asked.minutes is None else asked.minutes), asked.runs or 1
        for row in asked.only or named:
            case, done = named[row], list[list[Step]]()
            seen = {key: game for key, game in seen.items() if key[0] == case.plan}
            for seed in range(runs):
                if watcher.stopped():
                    break
                if (case.plan, seed) not in seen:
                    watcher.say(f"building {case.plan}")
                    rounds = None if asked.game else rolled_out
                    seen[case.plan, seed] = seen_by(case.plan, real, threads, rounds, seed)
                watcher.say(f"{case.plan}, {case.way}, run {seed + 1} of {runs}", budget)
                depth = min(trunk, len(real.tree.rows) - 1)
                here = seen[case.plan, seed]
                done.append(converge(here, case.way, budget, watcher, trunk=depth, curve=curves, seed=seed))
            if not done or not all(done):
                break
            ends = [steps[-1] for steps in done]
            drawn[row] = mean_curve(done).steps
            last = drawn[row][-1]
            more = {
                "current": last.current_exploitability,
                "iterations": last.iterations,
                "information_sets": here.infosets,
                "limit_holdem": case.elsewhere,
            }
            spent, printed = sum(end.seconds for end in ends), case.paper if asked.game in (None, game) else None
            found.append(Row.of_runs(row, [end.exploitability for end in ends], "mbb/g", spent, more, printed))
            if curves:
                plot_convergence(drawn, f"{what.partition(':')[0]}: {case.plan}", path, "mbb/g")
        return ReproductionResult(what, found, path if curves and found else None)

    return Reproduction(
        what=what,
        time=f"{minutes:g} min for each of {len(named)} rows, and time to measure",
        rows=tuple(named),
        run=reproduce,
        options=("only", "game", "minutes", "threads", "runs", *["out"] * curves),
        hint="each of --runs has buckets and seeds of its own",
        claims=claims,
        quick=quick,
        keeps=f"kilt-{name}.png" if curves else "",
    )
