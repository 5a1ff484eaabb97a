"""CFR on a GPU, with regrets and average strategies in GPU memory."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from kilt.arrays import Array, FloatArray
from kilt.errors import ArtifactError, RunError
from kilt.solve.cfr import Tables, Turn
from kilt.solve.learning_kernels import NO_CHOICE, RootChoice, begin_game, learn_root
from kilt.solve.opponents import ABSTRACT, Opponent, with_present_names
from kilt.solve.variants import Variant
from kilt.tree.draw_kernels import draw_scope
from kilt.tree.gpu.compact import CompactGame, CompactTable
from kilt.tree.gpu.device import DeviceGame
from kilt.tree.gpu.device_arrays import learning_of
from kilt.tree.rule import Discount
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import FOLLOW, Scope
from kilt.tree.walks import FULL_WIDTH, Scheme

TOGETHER = 1024  # rows, or boards, of a table that are copied to the device at a time


def require_walkable(game: VectorGame, scheme: Scheme) -> None:
    """Raise RunError if a GPU cannot run CFR on a game with the given sampling scheme.

    It is called before the game is copied to the GPU.
    """
    last = len(game.tree.rows) - 1
    if scheme.mine or scheme.theirs:
        raise RunError("a GPU walks all hands: use no sampling, or public chance sampling (pcs)")
    if scheme.rounds not in (None, last):
        raise RunError(
            f"a GPU draws the boards of all rounds or of none, not those after a trunk of {scheme.rounds} rounds of "
            f"{last + 1}: use a trunk of {last} or of 0, or solve on the CPU"
        )


class LearningTables(NamedTuple):
    """The learning player's tables in GPU memory: regrets, and the table for regret matching."""

    strategy: Any  # the next strategy is proportional to it: the regrets, or the predicted ones
    regret: Any


class DeviceTables(Tables):
    """A game's regrets and average strategies in GPU memory, with one column per hand.

    Runs can resume from their checkpoints on a CPU or a GPU.

    Parameters
    ----------
    game : DeviceGame
        The game on the device.
    scheme : str or Scheme
        What a pass samples: nothing, or boards.
    opponent : str
        One of `opponents.OPPONENTS`.
    trunk : int
        Number of rounds in which the opponent ``response`` learns: none, or all but the last.
    seed : int
        Random seed. Samples depend only on the seed and the iteration number, as on the CPU.
    root : RootChoice, optional
        A player's decision before the game begins, which is learnt on the host: see `resolve`.
    """

    def __init__(
        self,
        game: DeviceGame,
        *,
        scheme: str | Scheme = FULL_WIDTH,
        opponent: str = ABSTRACT,
        trunk: int = 0,
        seed: int = 0,
        root: RootChoice | None = None,
    ) -> None:
        self.game, tree = game, game.tree
        self.opponent = Opponent.named(game.game, opponent, scheme, trunk, hands=True)
        self.scheme, self.groups = self.opponent.scheme, self.opponent.groups
        require_walkable(game.game, self.scheme)
        rounds = len(tree.rows)
        self.sampled = self.scheme.boards
        self.seed = np.array(seed % 2**64, dtype=np.uint64)
        self._tasks = [FOLLOW] * rounds, self.opponent.tasks.tolist()
        self._root, self._begun = root or NO_CHOICE, tree.prior.copy()
        self._begin()

    def _begin(self) -> None:
        """Copy the probability with which each hand begins the game to the GPU, as the root decision gives it."""
        if self._root.player >= 0:
            begin_game(self._root, self._begun)
        self._prior = self.game.cupy.asarray(self._begun.astype(self.game.dtype))

    def prepare(self, variant: Variant) -> None:
        """Allocate empty tables for a variant of CFR."""
        table, apart, predictive = self.game.table, self.opponent.is_separate, variant.predictive > 0
        self.regret, self.total = table(), table()
        self.next = table() if predictive else self.regret
        self.other = table() if apart else self.regret
        self.other_next = table() if apart and predictive else self.other
        self._kept = self.opponent.kept_tables(predictive=predictive)

    def _learnt(self, number: int) -> LearningTables:
        """Return the tables with a given number: a player's, or those of an opponent who sees all cards."""
        return LearningTables(self.next, self.regret) if number < 2 else LearningTables(self.other_next, self.other)

    def run(self, rows: FloatArray, predictive: float) -> None:
        """Run CFR iterations on the GPU, and wait for them to finish.

        `rows` has the discount factors of each iteration.
        """
        super().run(rows, predictive)
        self.total[0, 0].item()

    def learn(self, turn: Turn, discount: Discount) -> None:
        """Update one player's regrets and the opponent's average strategy on the GPU.

        The CPU learns the root decision.
        """
        game, player = self.game, turn.player
        own, theirs = self._learnt(turn.own), self._learnt(turn.theirs)
        learning = learning_of(discount, game.tree.noise, regrets=True, averages=turn.theirs < 2)
        scope = self._draw(turn) if self.sampled else None
        values = game.compute_values(
            player,
            self._tasks[turn.task],
            own.strategy,
            theirs.strategy,
            learning,
            own.regret,
            self.total,
            scope,
            self._prior[1 - player],
        )
        if player == self._root.player:
            learn_root(self._root, game.cupy.asnumpy(values).astype(np.float64), discount, self._begun)
            self._prior = game.cupy.asarray(self._begun.astype(game.dtype))

    def _draw(self, turn: Turn) -> Scope:
        """Sample the boards for one player's update. They are the same as on the CPU."""
        game, number = self.game.game, self.opponent.stride * self.iterations + turn.offset
        scope, rounds = game.scope(turn.player), game.rounds_drawn(self.scheme)
        draw_scope(game.tree, turn.player, False, False, rounds, np.uint64(self.seed), np.uint64(number), scope)
        return scope

    def average(self) -> Any:
        """Return the average strategy as a table in GPU memory."""
        return self.total

    def current(self) -> Any:
        """Return the strategy of the next iteration as a table in GPU memory."""
        return self.next

    def _rows(self, name: str) -> int:
        """Return how many rows of a table are stored. An opponent who best-responds needs none for the last round."""
        return int(self.opponent.layout.start[-1]) if name.startswith("other") else len(self.regret)

    def state(self) -> dict[str, Array]:
        """Return the state as arrays for a checkpoint, from which a CPU or a GPU can resume."""
        found = {name: self.game.cupy.asnumpy(getattr(self, name)[: self._rows(name)]) for name in self._kept}
        found |= {"seed": self.seed} if self.sampled else {}
        found |= {"root_regret": self._root.regret} if self._root.player >= 0 else {}
        return {**found, "iterations": np.asarray(self.iterations)}

    def restore(self, state: dict[str, Array]) -> None:
        """Restore the state from a checkpoint, even of a CPU or an older version of kilt."""
        state = with_present_names(state, self.seed)
        for name in self._kept:
            mine = getattr(self, name)[: self._rows(name)]
            if mine.shape != state[name].shape:
                raise ValueError(f"{name} has shape {state[name].shape}, not {mine.shape}")
            _copy(self.game, state[name].astype(self.game.dtype, copy=False), mine)
        if self.sampled:
            self.seed[...] = state["seed"]
        if self._root.player >= 0:
            self._root.regret[...] = state["root_regret"]
            self._begin()
        self.iterations = int(state["iterations"])


class CompactTables(Tables):
    """A game's regrets and average strategies in GPU memory, with two-byte numbers in the last round.

    Parameters
    ----------
    game : CompactGame
        The game on the device. If it stores no average, the current strategy is the result.
    """

    def __init__(self, game: CompactGame) -> None:
        self.game = game

    def prepare(self, variant: Variant) -> None:
        """Allocate tables of zeros in GPU memory.

        Raises RunError if the variant of CFR has negative regrets or discounts.
        """
        if (variant.alpha, variant.beta, variant.predictive) != (inf, -inf, 0):
            raise RunError("compact tables support only variants without negative regrets and discounts: use cfr+")
        self.regret = self.game.table()
        self.total = self.game.table() if self.game.averaged else self.regret

    def learn(self, turn: Turn, discount: Discount) -> None:
        """Update one player's regrets and the opponent's average strategy on the GPU."""
        game, number = self.game, 2 * self.iterations + turn.offset
        learning = learning_of(discount, game.tree.noise, regrets=True, averages=game.averaged)
        game.compute_values(turn.player, FOLLOW, self.regret, learning, self.total, number)

    def average(self) -> Any:
        """Return the average strategy as a `CompactTable`, or the current one if no average is stored."""
        return self.total

    def current(self) -> Any:
        """Return the strategy of the next iteration as a `CompactTable`."""
        return self.regret

    def _kept(self) -> dict[str, Any]:
        """Return the GPU arrays that a checkpoint contains, by name."""
        tables = {"regret": self.regret} | ({"total": self.total} if self.game.averaged else {})
        return {
            f"{name}_{field}": array
            for name, table in tables.items()
            for field, array in zip(CompactTable._fields, table, strict=True)
        }

    def state(self) -> dict[str, Array]:
        """Return the state as arrays for a checkpoint, copied from GPU memory."""
        arrays = {name: self.game.cupy.asnumpy(array) for name, array in self._kept().items()}
        return {**arrays, "iterations": np.asarray(self.iterations)}

    def restore(self, state: dict[str, Array]) -> None:
        """Load the arrays of a checkpoint.

        Raises ArtifactError for a CPU's state, whose tables are laid out differently.
        """
        if "regret" in state:
            raise ArtifactError("the checkpoint has two-byte tables of the CPU: resume on the CPU")
        for name, mine in self._kept().items():
            if mine.shape != state[name].shape:
                raise ValueError(f"{name} has shape {state[name].shape}, not {mine.shape}")
            _copy(self.game, state[name], mine)
        self.iterations = int(state["iterations"])


def _copy(game: DeviceGame | CompactGame, source: Array, to: Any) -> None:
    """Copy an array to the GPU a few rows at a time, because a second whole array may not fit there."""
    for first in range(0, len(to), TOGETHER):
        to[first : first + TOGETHER] = game.cupy.asarray(source[first : first + TOGETHER])
