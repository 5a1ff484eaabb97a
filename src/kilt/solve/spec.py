"""Specify an abstract game and how to solve it, before anything is built.

Neither card abstractions nor tables need to exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from kilt.abstraction.abstract_game import AbstractSize, SyntheticGame
from kilt.abstraction.actions import ActionAbstraction
from kilt.abstraction.buckets import AbstractionSpec, CardAbstraction
from kilt.abstraction.pipeline import bucket_numbers
from kilt.config import Config
from kilt.cost import Cost
from kilt.games.holdem import Holdem
from kilt.solve.abstract_problem import WalkSize, dtype_of
from kilt.solve.counter import Against
from kilt.solve.distributed.memory import PartsMemory
from kilt.solve.distributed.partition import head_rounds, shared_classes
from kilt.solve.external import SamplingOptions, words_per_action
from kilt.tree.betting import betting_size

PER_NODE = 100  # bytes per node of the betting tree: the tree itself, and records for walks

Cards: TypeAlias = Path | AbstractionSpec  # a card abstraction: the folder of an existing one, or the one to build


@dataclass(frozen=True)
class AbstractSpec:
    """A specification of an abstract game and how to solve it."""

    config: Config
    game: Holdem
    menu: ActionAbstraction | None  # None: all legal bets
    cards: tuple[Cards, ...]  # one for both players, or one for each
    against: Against | None = field(default=None, kw_only=True)  # the opponent that a counter-strategy is for
    opponent: Cards | None = field(default=None, kw_only=True)  # the opponent's cards while solving, if they differ

    @property
    def device(self) -> str:
        """The device of the algorithm: "cpu" or "gpu"."""
        return self.config.solver.device

    @property
    def description(self) -> str:
        """The names of the algorithm and the game, for messages."""
        return f"{self.config.solver.algorithm} on {self.game.name}"

    @property
    def options(self) -> SamplingOptions:
        """The options of external sampling."""
        solver = self.config.solver
        return SamplingOptions(solver.average, solver.linear, solver.prune, solver.equities, solver.compact)

    @property
    def shared_cards(self) -> AbstractionSpec:
        """The card abstraction by which workers divide boards into classes.

        Raises RunError if the players have different classes.
        """
        return shared_classes(self.specs)

    @property
    def specs(self) -> list[AbstractionSpec]:
        """The card abstractions to load or build: one for both players, or one each."""
        return [AbstractionSpec.read(one) if isinstance(one, Path) else one for one in self.cards]

    @cached_property
    def size(self) -> AbstractSize:
        """The size of the abstract game."""
        return self._synthetic(self.cards[0], self.cards[-1]).size

    @cached_property
    def made_up_games(self) -> tuple[SyntheticGame, ...]:
        """Games with made-up buckets, of the same size as the real ones, for measuring a solver's speed.

        There are two if the opponent sees finer cards: one for each player. Iterations on them take as long as on the
        games themselves.
        """
        first, second = self.cards[0], self.cards[-1]
        if self.opponent is None:
            return (self._synthetic(first, second),)
        return self._synthetic(first, self.opponent), self._synthetic(self.opponent, second)

    @property
    def infosets(self) -> int:
        """The number of information sets that the solver handles."""
        return sum(sum(game.size.infosets) for game in self.made_up_games)

    def _synthetic(self, first: Cards, second: Cards) -> SyntheticGame:
        """Return a game with as many buckets as two card abstractions, one for each player."""
        return SyntheticGame(self.game, (_numbers(first), _numbers(second)), self.menu)

    @property
    def table_bytes(self) -> int:
        """The bytes of a table with a 4-byte number per action of each information set."""
        return 4 * sum(self.size.slots)

    @cached_property
    def walk(self) -> WalkSize:
        """The estimated memory and time for evaluating the game on all boards."""
        return WalkSize.estimate(self.game, self.menu, self.size, self.config.solver.threads)

    def estimate_cost(
        self,
        tables: int,
        kept: int,
        mapped: int,
        instead: str = "external",
        *,
        iteration: float | None = None,
        device: int = 0,
    ) -> Cost:
        """Estimate the memory, disk space and time for solving the game from its tables' sizes.

        `tables`, `kept` and `mapped` are bytes: of tables, of files on disk, and of card abstractions. The cost
        includes the betting tree and a strategy of up to two bytes per slot. `instead` is a remedy that needs less
        memory.
        """
        memory = tables + PER_NODE * self.size.nodes + self.table_bytes // 2 + mapped
        remedy = f"use fewer buckets or bets, or {instead}"
        if device:
            remedy = (
                "use fewer buckets or bets, `average = false`, cards with more classes of boards, of which a few at a "
                "time are on the GPU, or the CPU"
            )
        parts = (("tables", Cost(tables)),)
        return Cost(
            memory, mapped, device, kept, iteration=iteration, what=self.description, remedy=remedy, parts=parts
        )

    def process_memory(self, blades: tuple[int, ...]) -> PartsMemory:
        """Estimate the memory of each process of a distributed run.

        `blades` has the number of workers on each level.
        """
        cards, solver = self.shared_cards, self.config.solver
        trunk, actions = head_rounds(cards.plan, cards.deal), betting_size(self.game, self.menu).actions
        bounds = [0, trunk, *(public.round - 1 for public in cards.plan.public[1 : len(blades)])]
        return PartsMemory.estimate(
            self.size,
            cards.plan,
            cards.deal,
            blades,
            words=words_per_action(self.options),
            dtype=dtype_of(sum(self.size.slots)),
            threads=solver.threads,
            places=[2 * (1 + sum(sum(each[start:end]) for each in actions)) + 2 for start, end in pairwise(bounds)],
            batch=self.config.engine.batch,
        )


def _numbers(cards: Cards) -> tuple[int, ...]:
    """Return the number of buckets in each round of a card abstraction, which need not be built yet."""
    if isinstance(cards, AbstractionSpec):
        return bucket_numbers(cards.plan, cards.deal)
    return CardAbstraction.load(cards).numbers
