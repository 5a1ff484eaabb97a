"""Abstract games in the form that solvers need, with buckets of hands and few bet sizes.

Strategies are integer probabilities of the abstract game's actions: see `strategy.blueprint`. If memory is large
enough, the whole game can also be evaluated with all boards and hands, for players who see only buckets (`bucketed`).
Algorithms of the CFR family then learn in the whole game, and exploitability is exact. `WalkSize` estimates the cost
beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import comb
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt import artifact
from kilt.abstraction.abstract_game import AbstractGame, AbstractSize
from kilt.abstraction.actions import ActionAbstraction
from kilt.abstraction.buckets import CardAbstraction, load_abstractions
from kilt.abstraction.joint import joint_tables
from kilt.arrays import Array
from kilt.cards.isomorphism import Isomorphism
from kilt.config import EngineConfig
from kilt.cost import Cost
from kilt.engines import Engine
from kilt.errors import ArtifactError
from kilt.games.holdem import Holdem
from kilt.games.tilt import TiltedGame
from kilt.paces import pace
from kilt.solve.abstract import BucketedGame
from kilt.solve.counter import Against, Restriction
from kilt.solve.external import SamplingOptions
from kilt.solve.joint import JointGame
from kilt.solve.problem import ABSTRACT, CPU, SINGLE, Problem
from kilt.solve.solver import StrategyInParts
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.table import require_same
from kilt.tree.betting import betting_size
from kilt.tree.vector import VectorGame

FINE = 100_000_000  # largest number of slots for which probabilities have two bytes
PER_ENTRY = pace("walk", "entry")  # CPU seconds of a pass per row and hand
LARGE = 1 << 31  # bytes of bucket maps above which CFR-BR looks up only those of sampled boards
PER_BOARD = 64  # bytes per board of the public tree and of the card abstraction's look-up


def dtype_of(slots: int) -> npt.DTypeLike:
    """Return the integer type of stored probabilities: two bytes, or one byte in large strategies."""
    return np.uint16 if slots <= FINE else np.uint8


class WalkSize(NamedTuple):
    """The estimated cost of evaluating an abstract game on all boards.

    The estimate needs no game tree and no card abstraction.
    """

    name: str  # name of the game

    hands: int  # number of private hands
    rows: tuple[int, ...]  # [round] number of actions of all decisions of the betting
    boards: tuple[int, ...]  # [round] number of boards up to suits, as ordered deals
    maps: int  # bytes of the bucket maps of all boards
    scratch: int  # bytes of the public tree, and of the vectors of all threads
    table: int  # bytes of a table over rows × buckets
    threads: int
    cards: int  # number of cards of the deck
    dealt: tuple[int, ...]  # [round] number of public cards dealt

    @classmethod
    def estimate(cls, game: Holdem, menu: ActionAbstraction | None, size: AbstractSize, threads: int = 1) -> WalkSize:
        """Estimate the cost of evaluating a game, from its numbers of boards and betting sequences.

        No game tree is built.
        """
        rules = game.rules
        hands = comb(game.deck.size, rules.hole_cards)
        dealt = [tuple(filter(None, rules.board_cards[: r + 1])) for r in range(rules.rounds)]
        boards = tuple(Isomorphism(cards, game.deck).size if cards else 1 for cards in dealt)
        rows = tuple(sum(both) for both in zip(*betting_size(game, menu).actions, strict=True))
        maps = sum(boards) * 4 * hands * len(set(size.buckets))
        scratch = sum(boards) * PER_BOARD + 16 * size.nodes * hands * threads
        buckets = max(map(max, size.buckets)) + 1
        table, deck = 8 * sum(rows) * buckets, game.deck.size
        return cls(game.name, hands, rows, boards, maps, scratch, table, threads, deck, rules.board_cards)

    @property
    def entries(self) -> int:
        """The number of table entries on all boards, with one for each action and hand."""
        return self.hands * sum(rows * boards for rows, boards in zip(self.rows, self.boards, strict=True))

    @property
    def in_memory(self) -> Cost:
        """The estimated memory and time for evaluating a strategy with all boards in memory."""
        what, memory = f"walking all boards and hands of {self.name}", self.maps + self.scratch + self.table
        return Cost(memory, iteration=self.seconds, what=what, remedy="use external")

    @property
    def by_flop(self) -> Cost:
        """The estimated memory and time for evaluating a strategy with a few flops in memory at a time."""
        flops = self.boards[1] if len(self.boards) > 1 else 1
        maps = min(self.maps, 2 * self.maps // flops * (2 * self.threads + 2))
        what = f"looking for best responses in {self.name}"
        remedy = "find a lower bound of exploitability with a local best response"
        return Cost(maps + self.scratch + self.table, iteration=self.seconds, what=what, remedy=remedy)

    @property
    def seconds(self) -> float:
        """The estimated seconds of one pass over all boards and hands."""
        return PER_ENTRY * self.entries / self.threads

    @property
    def samples_boards(self) -> bool:
        """Whether boards must be sampled because the buckets of all boards exceed memory.

        Public chance sampling then looks up the buckets of one board at a time.
        """
        return not Cost(self.in_memory.memory + 3 * self.table).fits

    def must_sample_boards(self, trunk: int) -> bool:
        """Return whether CFR-BR must sample boards because all of them exceed memory.

        CFR-BR then stores only boards that it samples.
        """
        return trunk > 0 and self.maps > LARGE

    def sampled_opponent_bytes(self, trunk: int) -> tuple[int, int]:
        """Return how many bytes of memory the opponent's tables take in CFR-BR with sampled boards.

        The opponent has regrets in the first `trunk` rounds, and responses on one sample of boards.
        """
        size = 4 * self.hands
        regrets = size * sum(rows * n for rows, n in zip(self.rows[:trunk], self.boards[:trunk], strict=True))
        left, boards, responses = self.cards - sum(self.dealt[: trunk + 1]), 1, size * self.rows[trunk]
        for rows, dealt in zip(self.rows[trunk + 1 :], self.dealt[trunk + 1 :], strict=True):
            boards, left = boards * comb(left, dealt), left - dealt
            responses += size * rows * boards
        return regrets, responses

    def opponent_bytes(self, trunk: int) -> int:
        """Return the memory for the opponent's strategy in CFR-BR, in bytes. The opponent sees all cards.

        The opponent learns in the first `trunk` rounds, and best-responds afterwards. If only the last round follows
        the trunk, the table needs the rows of only one board there.
        """
        boards = (*self.boards[:-1], 1) if trunk and trunk == len(self.boards) - 1 else self.boards
        size = 8 * self.hands * sum(rows * n for rows, n in zip(self.rows, boards, strict=True))
        return size if size <= SINGLE else size // 2


@dataclass(frozen=True)
class AbstractProblem(Problem):
    """An abstract game to solve, with options for the solver and for the agent."""

    form: ClassVar[str] = ABSTRACT

    abstract: AbstractGame
    cards: tuple[Path, ...]  # folder of the card abstraction, or one for each player
    options: SamplingOptions = SamplingOptions()  # noqa: RUF009, it is frozen
    threads: int = 1
    agent: dict[str, Any] = field(default_factory=dict)  # post-processing, translation, re-solving
    engine: EngineConfig = EngineConfig()  # noqa: RUF009, it is frozen
    place: Engine | None = None  # the engine, if it is already open
    against: Against | None = None  # the opponent that a counter-strategy is for
    device: str = CPU  # device for CFR-BR, CFR on pairs of buckets, or external sampling
    opponent_cards: Path | None = None  # folder of the opponent's finer abstraction, while solving

    @property
    def name(self) -> str:
        """The name of the game."""
        return self.abstract.game.name

    @property
    def description(self) -> str:
        """The game's name and the names of its card abstractions, for messages."""
        cards = self.abstract.cards.name
        if self.opponent_cards:
            cards += f" against {CardAbstraction.load(self.opponent_cards).name}"
        return f"{self.name}, {cards}"

    @property
    def fingerprint(self) -> str:
        """A short hash of the abstract game, its payoffs, and the sampling options."""
        tilt = [self.abstract.game.definition] if isinstance(self.abstract.game, TiltedGame) else []
        whom = [self.against.fingerprint] if self.against else []
        if self.opponent_cards:
            whom.append(CardAbstraction.load(self.opponent_cards).fingerprint)
        return artifact.fingerprint(self.abstract.fingerprint, artifact.stable_repr(self.options), *tilt, *whom)

    @property
    def opponent(self) -> Against:
        """The opponent that a counter-strategy exploits.

        Raises an error if the model of the opponent is for another abstract game.
        """
        if self.against is None:
            return super().opponent
        self.against.model.on(self.name, self.abstract.fingerprint, (self.abstract.slots,))
        return self.against

    @cached_property
    def seats(self) -> tuple[AbstractProblem, AbstractProblem]:
        """Two games to solve, one per player, for opponents with another card abstraction.

        A player learns with the players' card abstraction, against an opponent who has another one. In the first game,
        player 0 has the players' abstraction and player 1 the opponent's; in the second game, vice versa.
        """
        assert self.opponent_cards

        def game(*cards: Path) -> AbstractProblem:
            abstract = replace(self.abstract, cards=load_abstractions(cards))
            return replace(self, abstract=abstract, cards=cards, opponent_cards=None)

        return game(self.cards[0], self.opponent_cards), game(self.opponent_cards, self.cards[-1])

    def combine_seats(self, strategies: tuple[Array, Array]) -> Array:
        """Combine two strategies: player 0's part of the first, and player 1's part of the second.

        The games are those of `seats`, in which these players use their own card abstraction.
        """
        shares = np.zeros(self.abstract.slots, dtype=self.dtype)
        for player, (game, strategy) in enumerate(zip(self.seats, strategies, strict=True)):
            shares[self.abstract.slots_of(player)] = strategy[game.abstract.slots_of(player)]
        return shares

    @cached_property
    def real(self) -> AbstractProblem:
        """The game with its original payoffs, for evaluating strategies learnt with modified ones.

        Payoffs while solving may be modified by a tilt.
        """
        game = self.abstract.game
        return replace(self, abstract=replace(self.abstract, game=game.real)) if game.real is not game else self

    @property
    def big_blind(self) -> float:
        """The big blind, or the ante, in chips."""
        return self.abstract.game.rules.big_blind

    @property
    def dtype(self) -> npt.DTypeLike:
        """The integer type of the strategy's probabilities."""
        return dtype_of(self.abstract.slots)

    @cached_property
    def walk(self) -> WalkSize:
        """The estimated memory and time for evaluating the game on all boards."""
        return WalkSize.estimate(self.abstract.game, self.abstract.actions, self.abstract.size, self.threads)

    @cached_property
    def bucketed(self) -> BucketedGame:
        """The game with all boards and hands in memory, where players see buckets.

        Raises RunError if memory cannot hold it.
        """
        self.walk.in_memory.require()
        return BucketedGame.with_abstraction(
            VectorGame(self.abstract.game, self.abstract.actions, threads=self.threads), self.abstract.cards
        )

    @property
    def without_boards(self) -> VectorGame:
        """The game with strategy tables that do not depend on the board.

        Solvers with such tables look up buckets when they sample boards.
        """
        threads = self.threads if self.device == CPU else 1
        return VectorGame(self.abstract.game, self.abstract.actions, threads=threads, by_board=False)

    @cached_property
    def joint(self) -> JointGame:
        """The abstract game as a probability and a payoff for each pair of bucket sequences.

        Raises AbstractionError if there are too many.
        """
        return JointGame(self.abstract, joint_tables(self.abstract.cards, self.threads))

    def bucketed_restriction(self, player: int) -> Restriction:
        """Return the opponent model's fixed strategy as a table with one column per bucket."""
        found = self.restriction(player)
        return found._replace(fixed=self.bucketed.table_of(self.abstract, found.fixed, calling=False))

    @cached_property
    def pairs(self) -> JointGame:
        """The abstract game as a table over pairs of bucket sequences, in the solver's memory."""
        if self.device == CPU:
            return self.joint
        from kilt.solve.joint_device import DeviceJointGame  # imports the GPU library

        return DeviceJointGame(self.abstract, self.joint.joint)

    def shares_by(self, game: BucketedGame | JointGame) -> Callable[[Any], Array]:
        """Return a function that converts a strategy table to the integers of a saved strategy."""
        return lambda strategy: game.shares_of(self.abstract, strategy, self.dtype)

    def uniform(self) -> Array:
        """Return the uniform strategy, which takes all actions of a decision with equal probability."""
        return np.ones(self.abstract.slots, dtype=self.dtype)

    def save(self, path: Path, strategy: Array | StrategyInParts, **figures: Any) -> None:
        """Save a strategy to a folder.

        If workers store its parts, the whole strategy is never in memory.
        """
        parts = strategy if isinstance(strategy, StrategyInParts) else None
        shares = np.zeros(0, dtype=self.dtype) if isinstance(strategy, StrategyInParts) else strategy
        blueprint = Blueprint.of(self.abstract, shares, agent=self.agent, **figures)
        scratch = path.absolute().with_name(f".{path.name}.parts")  # workers may run in another folder
        blueprint.save(path, *self.cards, fill=(lambda shares: parts.write_average(shares, scratch)) if parts else None)

    def load(self, path: Path) -> tuple[Array, dict[str, Any]]:
        """Return a saved strategy, with the results saved with it.

        Raises an error if the strategy is for another game.
        """
        found = Blueprint.load(path)
        require_same((found.game.name, found.fingerprint), (self.name, self.abstract.fingerprint))
        if len(found.shares) != self.abstract.slots:
            raise ArtifactError(
                f"{path} has {len(found.shares):,} slots, but {self.name} has {self.abstract.slots:,}: solve again"
            )
        return found.shares, found.figures
