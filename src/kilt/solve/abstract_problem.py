"""An abstract game in the form that solvers work on: `problem.Problem` for players who see buckets and bets of a menu.

Strategies are over the slots of the abstract game, as whole numbers: see `strategy.blueprint`. Where memory holds it,
the whole game can be walked too, with all boards and hands and players who see buckets of them (`bucketed`): the CFR
family learns there, and exploitability is exact. `WalkSize` says beforehand what that takes.
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

FINE = 100_000_000  # slots up to which probabilities have two bytes
PER_ENTRY = pace("walk", "entry")  # seconds of one core that a walk takes for a row and a hand
LARGE = 1 << 31  # bytes of bucket maps from which on CFR-BR looks up those of what it draws alone
PER_BOARD = 64  # bytes of the public tree, and of what finds a board in the card abstraction


def dtype_of(slots: int) -> npt.DTypeLike:
    """The type of whole numbers that the probabilities of `slots` infoset-actions are kept in."""
    return np.uint16 if slots <= FINE else np.uint8


class WalkSize(NamedTuple):
    """How large walks of a whole game are, with vectors of hands and players who see buckets: counted beforehand."""

    name: str  # of the game

    hands: int  # private hands
    rows: tuple[int, ...]  # [round] actions of all decisions of betting
    boards: tuple[int, ...]  # [round] up to suits, in the order in which cards are dealt
    maps: int  # bytes of the bucket maps of all boards
    scratch: int  # bytes of the public tree, and of the vectors of all threads
    table: int  # bytes of a table over rows × buckets
    threads: int
    cards: int  # of the deck
    dealt: tuple[int, ...]  # [round] public cards

    @classmethod
    def of(cls, game: Holdem, menu: ActionAbstraction | None, size: AbstractSize, threads: int = 1) -> WalkSize:
        """Count betting and boards; nothing is built."""
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
        """Rows × hands over all boards: what one walk looks at."""
        return self.hands * sum(rows * boards for rows, boards in zip(self.rows, self.boards, strict=True))

    @property
    def whole(self) -> Cost:
        """What judging a strategy takes, by one walk of all boards."""
        what, memory = f"walking all boards and hands of {self.name}", self.maps + self.scratch + self.table
        return Cost(memory, iteration=self.seconds, what=what, remedy="use external")

    @property
    def by_flop(self) -> Cost:
        """What judging a strategy takes where boards are walked flop by flop; those of some flops are kept."""
        flops = self.boards[1] if len(self.boards) > 1 else 1
        maps = min(self.maps, 2 * self.maps // flops * (2 * self.threads + 2))
        what = f"looking for best responses in {self.name}"
        remedy = "find a lower bound of exploitability with `kilt evaluate lbr`"
        return Cost(maps + self.scratch + self.table, iteration=self.seconds, what=what, remedy=remedy)

    @property
    def seconds(self) -> float:
        """About how long one walk takes."""
        return PER_ENTRY * self.entries / self.threads

    @property
    def samples_drawn(self) -> bool:
        """Whether public chance sampling looks up the boards that it draws alone: memory does not hold all of them."""
        return not Cost(self.whole.memory + 3 * self.table).fits

    def draws(self, trunk: int) -> bool:
        """Whether CFR-BR with a trunk keeps what it draws alone, since the boards of the whole game are too many."""
        return trunk > 0 and self.maps > LARGE

    def drawn(self, trunk: int) -> tuple[int, int]:
        """Bytes of CFR-BR's opponent where boards are drawn: regrets of the trunk, and responses on one draw."""
        size = 4 * self.hands
        regrets = size * sum(rows * n for rows, n in zip(self.rows[:trunk], self.boards[:trunk], strict=True))
        left, boards, responses = self.cards - sum(self.dealt[: trunk + 1]), 1, size * self.rows[trunk]
        for rows, dealt in zip(self.rows[trunk + 1 :], self.dealt[trunk + 1 :], strict=True):
            boards, left = boards * comb(left, dealt), left - dealt
            responses += size * rows * boards
        return regrets, responses

    def opponent(self, trunk: int) -> int:
        """Bytes of the table of CFR-BR's opponent, who sees all cards, and learns in a trunk of some rounds.

        Where the last round is all there is after the trunk, it needs the rows of one board there.
        """
        boards = (*self.boards[:-1], 1) if trunk and trunk == len(self.boards) - 1 else self.boards
        size = 8 * self.hands * sum(rows * n for rows, n in zip(self.rows, boards, strict=True))
        return size if size <= SINGLE else size // 2


@dataclass(frozen=True)
class AbstractProblem(Problem):
    """An abstract game, how it is to be sampled, and how its strategies are to be played."""

    form: ClassVar[str] = ABSTRACT

    abstract: AbstractGame
    cards: tuple[Path, ...]  # where its card abstraction is, or that of each player
    options: SamplingOptions = SamplingOptions()  # noqa: RUF009, it is frozen
    threads: int = 1
    agent: dict[str, Any] = field(default_factory=dict)  # post-processing, translation, re-solving
    engine: EngineConfig = EngineConfig()  # noqa: RUF009, it is frozen
    place: Engine | None = None  # the engine, where it is open already
    against: Against | None = None  # the opponent that a counter-strategy is for
    device: str = CPU  # where CFR-BR, CFR by joint tables, or external sampling walks

    @property
    def name(self) -> str:
        """What the game is called."""
        return self.abstract.game.name

    @property
    def fingerprint(self) -> str:
        """A short name for the abstract game, its payoffs, and the way it is sampled."""
        tilt = [self.abstract.game.definition] if isinstance(self.abstract.game, TiltedGame) else []
        whom = [self.against.fingerprint] if self.against else []
        return artifact.fingerprint(self.abstract.fingerprint, artifact.spelled(self.options), *tilt, *whom)

    @property
    def opponent(self) -> Against:
        """Who the problem is `against`, by a model that fits the abstract game."""
        if self.against is None:
            return super().opponent
        self.against.model.on(self.name, self.abstract.fingerprint, (self.abstract.slots,))
        return self.against

    @cached_property
    def real(self) -> AbstractProblem:
        """The problem with the payoffs of the rules; itself if not tilted."""
        game = self.abstract.game
        return replace(self, abstract=replace(self.abstract, game=game.real)) if game.real is not game else self

    @property
    def big_blind(self) -> float:
        """Chips of the big blind, or of the ante."""
        return self.abstract.game.rules.big_blind

    @property
    def dtype(self) -> npt.DTypeLike:
        """The type of whole numbers that probabilities are kept in."""
        return dtype_of(self.abstract.slots)

    @cached_property
    def walk(self) -> WalkSize:
        """How large walks of the whole game are."""
        return WalkSize.of(self.abstract.game, self.abstract.actions, self.abstract.size, self.threads)

    @cached_property
    def bucketed(self) -> BucketedGame:
        """The whole game, with players who see buckets; RunError where memory does not hold it."""
        self.walk.whole.require()
        return BucketedGame.by(
            VectorGame(self.abstract.game, self.abstract.actions, threads=self.threads), self.abstract.cards
        )

    @property
    def without_boards(self) -> VectorGame:
        """The whole game with tables that are not by board, for solvers who look up the boards that they draw."""
        threads = self.threads if self.device == CPU else 1
        return VectorGame(self.abstract.game, self.abstract.actions, threads=threads, by_board=False)

    @cached_property
    def joint(self) -> JointGame:
        """The abstract game by joint tables; AbstractionError where players have too many bucket sequences."""
        return JointGame(self.abstract, joint_tables(self.abstract.cards, self.threads))

    def bucketed_restriction(self, player: int) -> Restriction:
        """How a player is held to the model that the problem is `against`, by a table over rows × buckets."""
        found = self.restriction(player)
        return found._replace(fixed=self.bucketed.table_of(self.abstract, found.fixed, calling=False))

    @cached_property
    def pairs(self) -> JointGame:
        """The abstract game by joint tables, where its solver walks it: here, or on a GPU."""
        if self.device == CPU:
            return self.joint
        from kilt.solve.joint_device import DeviceJointGame  # imports the GPU library

        return DeviceJointGame(self.abstract, self.joint.joint)

    def shares_by(self, game: BucketedGame | JointGame) -> Callable[[Any], Array]:
        """What turns tables of a game into strategies of a blueprint: [slot] in whole numbers."""
        return lambda strategy: game.shares_of(self.abstract, strategy, self.dtype)

    def uniform(self) -> Array:
        """[slot] the strategy that takes all actions of a decision with equal probability."""
        return np.ones(self.abstract.slots, dtype=self.dtype)

    def save(self, path: Path, strategy: Array | StrategyInParts, **figures: Any) -> None:
        """Write a blueprint to a folder; of a strategy in parts, without having all of it in memory."""
        parts = strategy if isinstance(strategy, StrategyInParts) else None
        shares = np.zeros(0, dtype=self.dtype) if isinstance(strategy, StrategyInParts) else strategy
        blueprint = Blueprint.of(self.abstract, shares, agent=self.agent, **figures)
        scratch = path.absolute().with_name(f".{path.name}.parts")  # blades may work in another folder
        blueprint.save(path, *self.cards, fill=(lambda shares: parts.fill(shares, scratch)) if parts else None)

    def load(self, path: Path) -> tuple[Array, dict[str, Any]]:
        """[slot] the strategy of a blueprint for this very game, and the figures beside it."""
        found = Blueprint.load(path)
        require_same((found.game.name, found.fingerprint), (self.name, self.abstract.fingerprint))
        if len(found.shares) != self.abstract.slots:
            raise ArtifactError(
                f"{path} has {len(found.shares):,} slots, and {self.name} has {self.abstract.slots:,}: solve again"
            )
        return found.shares, found.figures
