"""An abstract game that will be solved: what a configuration says of it, before cards are built or tables are made."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
from kilt.solve.distributed.partition import shared_classes, trunk_of
from kilt.solve.external import SamplingOptions, words_of
from kilt.tree.betting import betting_size

PER_NODE = 100  # bytes of a node of betting: the tree itself, and records that walks read

Cards: TypeAlias = Path | AbstractionSpec  # a card abstraction: the folder where it is, or what is to be built


@dataclass(frozen=True)
class AbstractSpec:
    """An abstract game and how it will be solved; nothing is built yet."""

    config: Config
    game: Holdem
    menu: ActionAbstraction | None  # None: all bets that are legal
    cards: tuple[Cards, ...]  # of both players, or of each
    against: Against | None = field(default=None, kw_only=True)  # the opponent that a counter-strategy is for

    @property
    def device(self) -> str:
        """Where its algorithm walks."""
        return self.config.solver.device

    @property
    def called(self) -> str:
        """The algorithm and the game, for messages."""
        return f"{self.config.solver.algorithm} on {self.game.name}"

    @property
    def options(self) -> SamplingOptions:
        """How external sampling goes about it."""
        solver = self.config.solver
        return SamplingOptions(solver.average, solver.linear, solver.prune, solver.equities, solver.compact)

    @property
    def shared_cards(self) -> AbstractionSpec:
        """The card abstraction whose classes of boards blades share; RunError where players have other classes."""
        return shared_classes(self.specs)

    @property
    def specs(self) -> list[AbstractionSpec]:
        """What cards there are, or what is to be built: for both players, or for each."""
        return [AbstractionSpec.read(one) if isinstance(one, Path) else one for one in self.cards]

    @cached_property
    def size(self) -> AbstractSize:
        """How large the abstract game is, counted."""
        numbers = [
            bucket_numbers(cards.plan, cards.deal)
            if isinstance(cards, AbstractionSpec)
            else CardAbstraction.load(cards).numbers
            for cards in self.cards
        ]
        return SyntheticGame(self.game, (numbers[0], numbers[-1]), self.menu).size

    @property
    def synthetic(self) -> SyntheticGame:
        """The game with buckets that mean nothing: walks of it take as long."""
        return SyntheticGame(self.game, self.size.buckets, self.menu)

    @property
    def slots(self) -> int:
        """Bytes of a table over its slots, of 4 bytes each."""
        return 4 * sum(self.size.slots)

    @cached_property
    def walk(self) -> WalkSize:
        """How large walks of the whole game are."""
        return WalkSize.of(self.game, self.menu, self.size, self.config.solver.threads)

    def takes(
        self,
        tables: int,
        kept: int,
        mapped: int,
        instead: str = "external",
        *,
        iteration: float | None = None,
        device: int = 0,
    ) -> Cost:
        """What solving takes with so many bytes of tables, `kept` bytes on disk, and `mapped` bytes of cards.

        The betting tree, and the strategy of two bytes a slot at most, are there beside the tables. `instead` is what
        takes less.
        """
        memory = tables + PER_NODE * self.size.nodes + self.slots // 2 + mapped
        remedy = f"use fewer buckets or bets, or {instead}"
        if device:
            remedy = (
                "use fewer buckets or bets, `average = false`, cards with more classes of boards, of which a few at a "
                "time are on the GPU, or the CPU"
            )
        parts = (("tables", Cost(tables)),)
        return Cost(memory, mapped, device, kept, iteration=iteration, what=self.called, remedy=remedy, parts=parts)

    def parts(self, blades: tuple[int, ...]) -> PartsMemory:
        """What the head holds, and each of the blades that share the classes of boards: their number on each level."""
        cards, solver = self.shared_cards, self.config.solver
        trunk, actions = trunk_of(cards.plan, cards.deal), betting_size(self.game, self.menu).actions
        bounds = [0, trunk, *(public.round - 1 for public in cards.plan.public[1 : len(blades)])]
        return PartsMemory.of(
            self.size,
            cards.plan,
            cards.deal,
            blades,
            words=words_of(self.options),
            dtype=dtype_of(sum(self.size.slots)),
            threads=solver.threads,
            places=[2 * (1 + sum(sum(each[start:end]) for each in actions)) + 2 for start, end in pairwise(bounds)],
            batch=self.config.engine.batch,
        )

    def with_device(self, device: str) -> Config:
        """The configuration with another device."""
        return replace(self.config, solver=replace(self.config.solver, device=device))
