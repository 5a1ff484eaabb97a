"""Abstract games in the form that solvers work on: `problem.Problem` for players who see buckets and a menu of bets.

Strategies are integers over the slots of the abstract game: see `strategy.blueprint`. If memory is large enough, the
whole game can also be walked with all boards and hands, and players who see only buckets (`bucketed`): the CFR family
learns there, and exploitability is exact. `WalkSize` estimates the cost beforehand.
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
PER_ENTRY = pace("walk", "entry")  # CPU seconds of a walk per row and hand
LARGE = 1 << 31  # bytes of bucket maps above which CFR-BR looks up only those of sampled boards
PER_BOARD = 64  # bytes per board of the public tree and of the card abstraction's look-up


def dtype_of(slots: int) -> npt.DTypeLike:
    """Integer type of the probabilities of a strategy with `slots` slots."""
    return np.uint16 if slots <= FINE else np.uint8


class WalkSize(NamedTuple):
    """Size of walks of a whole game with vectors of hands and players who see buckets, known before it is built."""

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
    def of(cls, game: Holdem, menu: ActionAbstraction | None, size: AbstractSize, threads: int = 1) -> WalkSize:
        """Count betting sequences and boards, without building anything."""
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
        """Rows × hands over all boards: the number of entries in one walk."""
        return self.hands * sum(rows * boards for rows, boards in zip(self.rows, self.boards, strict=True))

    @property
    def whole(self) -> Cost:
        """Cost of evaluating a strategy with one walk of all boards."""
        what, memory = f"walking all boards and hands of {self.name}", self.maps + self.scratch + self.table
        return Cost(memory, iteration=self.seconds, what=what, remedy="use external")

    @property
    def by_flop(self) -> Cost:
        """Cost of evaluating a strategy flop by flop, with some flops in memory at once."""
        flops = self.boards[1] if len(self.boards) > 1 else 1
        maps = min(self.maps, 2 * self.maps // flops * (2 * self.threads + 2))
        what = f"looking for best responses in {self.name}"
        remedy = "find a lower bound of exploitability with a local best response"
        return Cost(maps + self.scratch + self.table, iteration=self.seconds, what=what, remedy=remedy)

    @property
    def seconds(self) -> float:
        """Estimated duration of one walk in seconds."""
        return PER_ENTRY * self.entries / self.threads

    @property
    def samples_drawn(self) -> bool:
        """Whether public chance sampling looks up only sampled boards, because memory cannot hold all boards."""
        return not Cost(self.whole.memory + 3 * self.table).fits

    def draws(self, trunk: int) -> bool:
        """Whether CFR-BR with a trunk stores only sampled boards, because the game has too many."""
        return trunk > 0 and self.maps > LARGE

    def drawn(self, trunk: int) -> tuple[int, int]:
        """Bytes of CFR-BR's opponent with sampled boards: regrets of the trunk, and responses on one draw."""
        size = 4 * self.hands
        regrets = size * sum(rows * n for rows, n in zip(self.rows[:trunk], self.boards[:trunk], strict=True))
        left, boards, responses = self.cards - sum(self.dealt[: trunk + 1]), 1, size * self.rows[trunk]
        for rows, dealt in zip(self.rows[trunk + 1 :], self.dealt[trunk + 1 :], strict=True):
            boards, left = boards * comb(left, dealt), left - dealt
            responses += size * rows * boards
        return regrets, responses

    def opponent(self, trunk: int) -> int:
        """Bytes of the table of CFR-BR's opponent, who sees all cards, and learns in a trunk of `trunk` rounds.

        If only the last round follows the trunk, the table needs the rows of only one board there.
        """
        boards = (*self.boards[:-1], 1) if trunk and trunk == len(self.boards) - 1 else self.boards
        size = 8 * self.hands * sum(rows * n for rows, n in zip(self.rows, boards, strict=True))
        return size if size <= SINGLE else size // 2


@dataclass(frozen=True)
class AbstractProblem(Problem):
    """An abstract game, with settings for sampling and for playing its strategies."""

    form: ClassVar[str] = ABSTRACT

    abstract: AbstractGame
    cards: tuple[Path, ...]  # folder of the card abstraction, or one for each player
    options: SamplingOptions = SamplingOptions()  # noqa: RUF009, it is frozen
    threads: int = 1
    agent: dict[str, Any] = field(default_factory=dict)  # post-processing, translation, re-solving
    engine: EngineConfig = EngineConfig()  # noqa: RUF009, it is frozen
    place: Engine | None = None  # the engine, if it is already open
    against: Against | None = None  # the opponent that a counter-strategy is for
    device: str = CPU  # device for walks of CFR-BR, CFR by joint tables, or external sampling

    @property
    def name(self) -> str:
        """Name of the game."""
        return self.abstract.game.name

    @property
    def fingerprint(self) -> str:
        """Short hash of the abstract game, its payoffs, and the sampling options."""
        tilt = [self.abstract.game.definition] if isinstance(self.abstract.game, TiltedGame) else []
        whom = [self.against.fingerprint] if self.against else []
        return artifact.fingerprint(self.abstract.fingerprint, artifact.spelled(self.options), *tilt, *whom)

    @property
    def opponent(self) -> Against:
        """The opponent that a counter-strategy is for, with a model that fits the abstract game."""
        if self.against is None:
            return super().opponent
        self.against.model.on(self.name, self.abstract.fingerprint, (self.abstract.slots,))
        return self.against

    @cached_property
    def real(self) -> AbstractProblem:
        """The problem with the payoffs of the rules; the problem itself if payoffs are not tilted."""
        game = self.abstract.game
        return replace(self, abstract=replace(self.abstract, game=game.real)) if game.real is not game else self

    @property
    def big_blind(self) -> float:
        """Chips of the big blind, or of the ante."""
        return self.abstract.game.rules.big_blind

    @property
    def dtype(self) -> npt.DTypeLike:
        """Integer type of the probabilities."""
        return dtype_of(self.abstract.slots)

    @cached_property
    def walk(self) -> WalkSize:
        """Size of walks of the whole game."""
        return WalkSize.of(self.abstract.game, self.abstract.actions, self.abstract.size, self.threads)

    @cached_property
    def bucketed(self) -> BucketedGame:
        """The whole game, with players who see buckets. Raises RunError if memory cannot hold it."""
        self.walk.whole.require()
        return BucketedGame.by(
            VectorGame(self.abstract.game, self.abstract.actions, threads=self.threads), self.abstract.cards
        )

    @property
    def without_boards(self) -> VectorGame:
        """The whole game without tables by board, for solvers that look up the boards they sample."""
        threads = self.threads if self.device == CPU else 1
        return VectorGame(self.abstract.game, self.abstract.actions, threads=threads, by_board=False)

    @cached_property
    def joint(self) -> JointGame:
        """The abstract game by joint tables. Raises AbstractionError if players have too many bucket sequences."""
        return JointGame(self.abstract, joint_tables(self.abstract.cards, self.threads))

    def bucketed_restriction(self, player: int) -> Restriction:
        """Return the restriction of a player to the model of the opponent, with a table over rows × buckets."""
        found = self.restriction(player)
        return found._replace(fixed=self.bucketed.table_of(self.abstract, found.fixed, calling=False))

    @cached_property
    def pairs(self) -> JointGame:
        """The abstract game by joint tables, on the device where its solver runs."""
        if self.device == CPU:
            return self.joint
        from kilt.solve.joint_device import DeviceJointGame  # imports the GPU library

        return DeviceJointGame(self.abstract, self.joint.joint)

    def shares_by(self, game: BucketedGame | JointGame) -> Callable[[Any], Array]:
        """Return a function that converts tables of a game to a blueprint's strategy: integers [slot]."""
        return lambda strategy: game.shares_of(self.abstract, strategy, self.dtype)

    def uniform(self) -> Array:
        """The strategy that takes all actions of a decision with equal probability, [slot]."""
        return np.ones(self.abstract.slots, dtype=self.dtype)

    def save(self, path: Path, strategy: Array | StrategyInParts, **figures: Any) -> None:
        """Save a blueprint to a folder; a strategy in parts is never completely in memory."""
        parts = strategy if isinstance(strategy, StrategyInParts) else None
        shares = np.zeros(0, dtype=self.dtype) if isinstance(strategy, StrategyInParts) else strategy
        blueprint = Blueprint.of(self.abstract, shares, agent=self.agent, **figures)
        scratch = path.absolute().with_name(f".{path.name}.parts")  # blades may work in another folder
        blueprint.save(path, *self.cards, fill=(lambda shares: parts.fill(shares, scratch)) if parts else None)

    def load(self, path: Path) -> tuple[Array, dict[str, Any]]:
        """Return the strategy of a saved blueprint, [slot], and its figures. Raises an error for another game."""
        found = Blueprint.load(path)
        require_same((found.game.name, found.fingerprint), (self.name, self.abstract.fingerprint))
        if len(found.shares) != self.abstract.slots:
            raise ArtifactError(
                f"{path} has {len(found.shares):,} slots, but {self.name} has {self.abstract.slots:,}: solve again"
            )
        return found.shares, found.figures
