"""Choose a representation for a game: a flat tree for small games, else a public tree.

>>> load_problem("kuhn", "cfr+").form, load_problem("kuhn", "cfr+", threads=2).form
('flat', 'vector')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kilt import artifact
from kilt.arrays import data_type
from kilt.config import MOST_THREADS
from kilt.cost import Cost
from kilt.errors import ArtifactError, RunError, shortened
from kilt.games import load_game
from kilt.games.bluff import Bluff
from kilt.games.game import Game
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem, Poker
from kilt.games.size import GameSize, size_of
from kilt.games.stud import Stud
from kilt.games.tilt import TiltedGame, tilt_game
from kilt.solve.methods import JUDGING, DiskMethod, WholeMethod, evaluation_only, walk_cost
from kilt.solve.problem import (
    ABSTRACT,
    CPU,
    DISK,
    FLAT,
    VECTOR,
    FlatProblem,
    Problem,
    VectorProblem,
    big_blind_of,
    float_type,
    require_device,
)
from kilt.solve.registry import ALGORITHMS, Algorithm, algorithm_of
from kilt.solve.tables.disk import PACKED
from kilt.solve.tables.disk_strategy import DiskProblem
from kilt.solve.tables.two_bytes import TwoByteProblem
from kilt.solve.variants import Variant
from kilt.strategy import blueprint
from kilt.strategy import table as flat_strategy
from kilt.strategy import vector as vector_strategy
from kilt.tree import betting, flat
from kilt.tree.flat import flat_tree
from kilt.tree.vector import VectorGame

PER_STATE = 550  # bytes per state of a flat tree at the peak, while the tree is built
OPENSPIEL = "openspiel:"  # prefix of the names of open_spiel's games


def load_problem(
    game: str | Game,
    algorithm: str | Variant | Algorithm | None = None,
    *,
    form: str | None = None,
    threads: int = 1,
    device: str = CPU,
    tilt: Sequence[float] = (),
) -> Problem:
    """Load a game in a representation that an algorithm supports.

    Without an algorithm, the representation suits the evaluation of strategies.

    Parameters
    ----------
    game : str or Game
        The name of a ready-made game, a file in ACPC format, ``openspiel:NAME``, or a custom `Game`.
    algorithm : str, Variant or Algorithm, optional
        A name in `registry.ALGORITHMS`, a variant of CFR, or a custom algorithm. Default: strategies of the game are
        only evaluated.
    form : str, optional
        "flat" or "vector". Default: "flat" if the algorithm supports it, the game fits and one thread is enough.
    threads : int
        Number of threads, which share the boards. More than one needs the vector form.
    device : str
        "cpu", or "gpu" to run on a graphics card, which needs the vector form.
    tilt : sequence of float
        Percentages by which payoffs are changed while the game is solved: see `kilt.games.tilt`.

    Raises
    ------
    RunError
        If no form fits. The message says what is missing, and what to use instead.
    """
    return choose_form(game, algorithm, form, threads, device, tilt).problem()


class FittedGame(NamedTuple):
    """A game in a chosen representation, with the algorithm's method for solving it.

    Tables are not yet allocated.
    """

    source: _Source
    form: str
    method: WholeMethod
    called: str | None  # name of the algorithm

    def problem(self) -> Problem:
        """Return the game in the chosen representation."""
        return self.method.problem(self.source)

    @property
    def cost(self) -> Cost:
        """The memory and time for solving the game."""
        cost, remedy = self.method.cost(self.source), "use a smaller game, or abstract it in a configuration"
        if self.source.unlimited and not cost.fits:
            remedy = _remedy(replace(self.source, unlimited=False), self.called, None)
        return replace(cost, what=f"{self.called} on {self.source.name}", remedy=remedy)


def choose_form(
    game: str | Game,
    algorithm: str | Variant | Algorithm | None,
    form: str | None = None,
    threads: int = 1,
    device: str = CPU,
    tilt: Sequence[float] = (),
    *,
    unlimited: bool = False,
) -> FittedGame:
    """Choose a representation of a game that a given algorithm supports.

    Raises RunError if there is none. The parameters are those of `load_problem`. With `unlimited`, for estimates,
    memory is not checked.
    """
    if not 1 <= threads <= MOST_THREADS:
        raise RunError(f"the number of threads is {shortened(str(threads))}: use 1 or more, and {MOST_THREADS} at most")
    entry = None if algorithm is None else algorithm_of(algorithm)
    called = algorithm if isinstance(algorithm, str) else entry and entry.what
    if entry and not entry.whole:
        raise RunError(f"{called} solves abstract games alone: give a configuration with `cards`")
    if entry and threads > 1 and not entry.supports(threads):
        able = [name for name, other in ALGORITHMS.items() if other.supports(threads)]
        raise RunError(f"{called} runs in 1 thread, not in {threads}: use 1, or one of {', '.join(able)}")
    if require_device(device) != CPU:
        form = VECTOR
    if entry and not entry.supports(device=device):
        able = [name for name, other in ALGORITHMS.items() if other.supports(device=device)]
        raise RunError(f"{called} runs only on the CPU: use one of {', '.join(able)}, or omit `device`")
    if isinstance(game, str) and game.startswith(OPENSPIEL):
        from kilt.tree.openspiel import openspiel_game

        openspiel_game(game.removeprefix(OPENSPIEL))  # refuses an unknown name, and a missing package, before any work
    given = None if isinstance(game, str) else game
    name = game if isinstance(game, str) else game.name
    source = _Source(name, threads, given, device, tuple(tilt), unlimited)
    on_disk: dict[str, WholeMethod] = {DISK: DiskMethod(evaluation_only)}
    methods = entry.whole if entry else on_disk if form == DISK else JUDGING
    missing = []
    for candidate, method in methods.items():
        if form in (None, candidate):
            lack = method.missing_requirement(source)
            if lack is None:
                return FittedGame(source, candidate, method, called)
            missing.append(lack)
    needed = ", or ".join(missing) or f"{' or '.join(methods)} form, not {form}"
    remedy = _remedy(replace(source, unlimited=False), called, form)
    raise RunError(f"{called or 'judging a strategy'} needs {needed}: {remedy}")


def stored_form(path: Path) -> str:
    """Return the representation of a saved strategy: flat, vector, disk or abstract."""
    forms = {
        flat_strategy.KIND: FLAT,
        vector_strategy.KIND: VECTOR,
        vector_strategy.IN_SUBGAMES: DISK,
        blueprint.KIND: ABSTRACT,
    }
    kind = artifact.kind_of(path)
    if kind not in forms:
        raise ArtifactError(f"{path} holds a {kind}, not a strategy: check the name")
    return forms[kind]


def stored_problem(path: Path, threads: int = 1) -> Problem:
    """Load the game of a saved strategy.

    The rules are those saved with the strategy, or those that the game's name stands for. Available memory is not
    checked: tables are mapped from their files, and subgames are unpacked one by one. Raises ArtifactError for a
    blueprint, which has an abstract game.
    """
    form = stored_form(path)
    if form == ABSTRACT:
        raise ArtifactError(f"{path} is for an abstract game: open it as a blueprint")
    found = artifact.read(path, artifact.kind_of(path), remedy=flat_strategy.REMEDY)
    with artifact.damage_errors(path, flat_strategy.REMEDY):
        name, rules = str(found.parameters["game"]), str(found.parameters.get("rules", ""))
        given = Holdem(GameDef.parse(rules, source=str(path)), name) if rules else None
    return _Source(name, threads, given).problem(form, tables=0)


def disk_problem(game: str | Game, threads: int = 1) -> DiskProblem:
    """Split a game into subgames on disk, in order to estimate its cost.

    Raises RunError if the game cannot be split.
    """
    source = _Source(game if isinstance(game, str) else game.name, threads, None if isinstance(game, str) else game)
    if lack := source.missing_for_subgames():
        remedy = _remedy(source, None, DISK) if source.too_many_bets else "use another game, such as holdem.limit.2p"
        raise RunError(f"a plan for subgames on disk needs {lack}: {remedy}")
    return source.on_disk


@dataclass(frozen=True)
class _Source:
    """A game before its representation is chosen."""

    name: str  # the name that the user gave
    threads: int
    given: Game | None = None  # the rules, if they cannot be looked up by name
    device: str = CPU
    tilt: tuple[float, ...] = ()
    unlimited: bool = False  # whether memory is left out of account

    @cached_property
    def game(self) -> Game | None:
        """The rules of the game, with modified payoffs if requested.

        It is None for a game of open_spiel.
        """
        if self.given is None and self.name.startswith(OPENSPIEL):
            if any(self.tilt):
                raise RunError(f"{self.name} has no showdowns or folds: leave out the tilt")
            return None
        return tilt_game(self.given or load_game(self.name), self.tilt)

    @cached_property
    def size(self) -> GameSize | None:
        """The number of states and information sets of the game, or None if it is unknown."""
        if isinstance(self.game, Poker):
            return size_of(self.game.rules)
        return size_of(self.game) if isinstance(self.game, Bluff) else None

    @cached_property
    def vectors(self) -> VectorGame:
        """The public tree of the game, without strategy tables."""
        assert self.game
        return VectorGame(self.game, threads=self.threads)

    def missing_for_flat(self) -> str | None:
        most, states = flat.MOST_NODES, self.size.states.total if self.size else 0
        if states > most:  # checked before millions of nodes are built
            return f"a flat tree of up to {most:,} nodes, and {self.name} has {Decimal(states):.2e} states"
        if self.threads > 1:
            return f"1 thread for a flat tree, not {self.threads}"
        return None

    def missing_for_subgames(self) -> str | None:
        """Return why the game cannot be split into subgames, or None if it can.

        Memory is not considered.
        """
        lack = self.missing_for_vector(0)
        if lack is None and len(self.vectors.tree.rows) < 2:
            return f"a game of two rounds or more, and {self.name} has one"
        return lack

    def missing_for_disk(self) -> str | None:
        lack = self.missing_for_subgames()
        if lack:
            return lack
        return None if self.unlimited else Cost(self.on_disk.subgames.memory).lack(f"subgames of {self.name}")

    @cached_property
    def on_disk(self) -> DiskProblem:
        """The game on its public tree, split into subgames on disk."""
        return DiskProblem(self.vectors, self._dtype(1))

    @property
    def too_many_bets(self) -> bool:
        """Whether the game has too many betting sequences for a tree in memory."""
        counted = self.size if isinstance(self.game, Holdem) else None
        return counted is not None and counted.actions.total >= betting.MOST_NODES

    def missing_for_vector(self, tables: int) -> str | None:
        if isinstance(self.game, Stud):
            return f"private hands that are whole at the start, and {self.name} is stud, which deals more later on"
        if self.size is None:
            return f"a public tree, and {self.name} does not come with one"
        if self.too_many_bets:  # every action leads to a node
            actions, most = Decimal(self.size.actions.total), betting.MOST_NODES
            return f"a betting tree of up to {most:,} nodes, and that of {self.name} has {actions:.2e}"
        if self.device != CPU or self.unlimited:  # a GPU's memory is checked later: see `DeviceGame`
            return None
        return Cost(self._bytes(tables, self._dtype(tables))).lack(f"the tables of {self.name}")

    def flat_cost(self, tables: int) -> Cost:
        """Return the memory and disk space for solving on a flat tree."""
        if self.size is None:  # the size is known only after the tree is built
            return Cost()
        return Cost(self.size.states.total * PER_STATE, disk=3 * 8 * tables * self.size.infoset_actions.total)

    def vector_cost(self, tables: int) -> Cost:
        """Return the memory, disk space and time for solving on a public tree."""
        dtype = self._dtype(tables)
        kept = self._bytes(tables, dtype)
        if self.device == CPU:
            return replace(walk_cost(self.vectors, kept, dtype), disk=3 * kept)
        there = self._bytes(VectorProblem.tables, dtype)  # `DeviceGame` counts the vectors
        return replace(walk_cost(self.vectors, 3 * kept, dtype), disk=3 * kept, device=there, iteration=None)

    def disk_cost(self, tables: int) -> Cost:
        """Return the memory, disk space and time for solving with subgames on disk.

        Compression is assumed to shrink the subgames to a quarter.
        """
        cut = self.on_disk.subgames
        return Cost(cut.memory * tables, disk=4 * cut.numbers * tables // PACKED, iteration=cut.seconds)

    def _dtype(self, tables: int) -> npt.DTypeLike:
        return np.float32 if self.device != CPU else float_type(tables * prod(self.vectors.shape))

    def _bytes(self, tables: int, dtype: npt.DTypeLike) -> int:
        return tables * prod(self.vectors.shape) * data_type(dtype).itemsize

    def problem(self, form: str, tables: int, *, compact: bool = False) -> Problem:
        """Return the game in a given representation."""
        if form == DISK:
            return self.on_disk
        if form == VECTOR:
            kind = TwoByteProblem if compact else VectorProblem
            return kind(self.vectors, self._dtype(tables), self.device)
        if self.game is None:
            from kilt.tree.openspiel import openspiel_tree

            return FlatProblem(openspiel_tree(self.name.removeprefix(OPENSPIEL)))
        real = flat_tree(self.game.real) if isinstance(self.game, TiltedGame) else None
        return FlatProblem(flat_tree(self.game), big_blind_of(self.game), real)


def _remedy(source: _Source, algorithm: str | None, form: str | None) -> str:
    """Return advice for an error message: which algorithm, threads or game to use instead."""
    fitting = _fitting(source, form)
    alone = fitting if source.threads == 1 else _fitting(replace(source, threads=1), form)
    if algorithm and len(fitting) == 1:
        return f"use {fitting[0]} (see its estimate), or a smaller game"
    if algorithm and fitting:
        return f"use one of {', '.join(fitting)}"
    if source.threads > 1 and alone:
        return "use 1 thread" if algorithm in (None, *alone) else f"use 1 thread, and one of {', '.join(alone)}"
    if source.too_many_bets:
        return (
            "give it a menu of bets, in a configuration with `actions`, such as '50%, 1x, a', and `cards`, such as "
            "'lossless'"
        )
    return "use a smaller game, such as kuhn, leduc, one-card or bluff-1-1, or abstract it in a configuration"


def _fitting(source: _Source, form: str | None) -> list[str]:
    """Return the names of the algorithms that can solve a game."""
    return [
        name
        for name, entry in ALGORITHMS.items()
        if entry.supports(source.threads)
        and any(
            form in (None, own) and method.missing_requirement(source) is None for own, method in entry.whole.items()
        )
    ]
