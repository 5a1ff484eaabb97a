"""Solve spots: subgames of hold'em with a board, a pot, stacks, two ranges and bet sizes.

>>> spot = Spot(board="Ks7h2d", pot=6, stacks=97, ranges=("AA,KQs", "QQ,AKo"), bets="50%, a")
>>> spot.subgame.start().actor, spot.hands
(0, (9, 15))
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from kilt.abstraction.actions import NEAR, ActionAbstraction
from kilt.arrays import FloatArray
from kilt.errors import CardError, GameError, KiltError, RunError, quoted, shortened
from kilt.games import load_game
from kilt.games.gamedef import UNLIMITED
from kilt.games.holdem import Betting, Holdem
from kilt.games.subgame import Subgame, subgame
from kilt.notebook import Drawable, html_table
from kilt.records import Record
from kilt.runs.budget import Step
from kilt.runs.build import build
from kilt.runs.folder import RunFolder
from kilt.runs.run import Run
from kilt.solve.problem import CPU
from kilt.spots.bets import menu_of, require_given, require_legal, require_used
from kilt.spots.line import UNIT, read_actions
from kilt.spots.locks import Lock, locked_strategies, read_lock
from kilt.spots.run_spec import SpotSpec
from kilt.spots.solution import SpotSolution
from kilt.spots.solving import (
    SpotBudget,
    in_chips,
    parse_target,
    solution_of,
)
from kilt.tree.vector import VectorGame

SEATS = ("out of position", "in position")
KEPT = ContextVar("kept", default=False)  # whether the spot being read was saved with its solution


@dataclass(frozen=True)
class Spot(Record, Drawable):
    """A subgame of hold'em that starts at a public state, with a range for each player.

    Parameters
    ----------
    board : str
        The public cards, such as ``"QsJh2h"``; their number determines the round.
    pot : float
        Chips in the pot, to a hundredth; both players have paid half of it.
    stacks : float
        Remaining chips of each player: the effective stacks. 0 in limit games means unlimited.
    ranges : sequence of two str or arrays
        The hands that each player may hold: texts such as ``"QQ+,AKs,A5s-A2s:0.5"`` (see `Deck.range`), or weights from
        0 to 1 for each row of `Deck.holes`. From the flop on, the first player is out of position and acts first.
    bets : str or sequence of two str
        Bet sizes of both players, or of each, as in `kilt.abstraction.actions`: ``"50%, 1x, a"``. A ``/`` begins the
        sizes of the next round, a ``;`` those of the next raise. Limit games need none.
    all_in_threshold : float
        A bet or raise becomes all-in if it uses at least this share, from 0 to 1, of the player's remaining chips at
        the decision. With 1, only a bet of all chips is all-in.
    near : float
        The all-in rule of earlier versions, in place of `all_in_threshold`: a raise becomes all-in if the chips that
        the player has put in, half of the pot included, are at least this share of the stack and half of the pot. With
        0, this rule is not used. Spots saved by earlier versions have it, so that they keep their trees.
    after : str
        Earlier actions in this round, such as ``"b3"`` or ``"x"`` (see `kilt.spots.line`). `ranges` describe the hands
        after these actions, and `pot` is the pot at the beginning of the round.
    big_blind : float
        Chips of the big blind: the smallest bet, and the unit of mbb.
    game : str
        The game of the spot: cards, rounds, limit or no-limit.
    rake : float
        Rake in per cent of the pot, paid by the winner.
    rake_cap : float
        Largest rake in chips; 0 for no limit.
    locks : str or sequence of str
        Fixed strategies of some decisions, such as ``"b3 = f: 22-66; c: rest"``: see `kilt.spots.locks`.
    compact : bool
        Whether tables have two bytes per entry instead of four, in rounds after the first: see
        `kilt.solve.tables.two_bytes`. Solving then takes less memory, and more time.
    """

    ERROR_CLASS: ClassVar[type[KiltError]] = RunError
    DISPLAY_NAME: ClassVar[str] = "the spot"
    EXAMPLE: ClassVar[str] = '`Spot(board="QsJh2h7d", pot=6, ranges=("QQ+", "JJ"), stacks=20, bets="a")`'

    board: str
    pot: float
    ranges: tuple[str, ...]
    stacks: float = 0.0
    bets: tuple[str, ...] = ()
    all_in_threshold: float = NEAR
    near: float = 0.0
    after: str = ""
    big_blind: float = 1.0
    game: str = "holdem.nolimit.2p"
    rake: float = 0.0
    rake_cap: float = 0.0
    locks: tuple[str, ...] = ()
    compact: bool = False

    if TYPE_CHECKING:  # callers may pass shorter forms than those that are stored

        def __init__(
            self,
            board: str,
            pot: float,
            ranges: Sequence[str | npt.ArrayLike],
            stacks: float = 0.0,
            bets: str | Sequence[str] = (),
            all_in_threshold: float = NEAR,
            near: float = 0.0,
            after: str = "",
            big_blind: float = 1.0,
            game: str = "holdem.nolimit.2p",
            rake: float = 0.0,
            rake_cap: float = 0.0,
            locks: str | Sequence[str] = (),
            compact: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "ranges", self._texts(self.ranges))
        super().__post_init__()
        if not self.limit:
            require_given(self.stacks, self.bets, self.EXAMPLE)
        for name, value in (("pot", self.pot), ("stacks", self.stacks), ("big_blind", self.big_blind)):
            if not (isfinite(value) and abs(UNIT * value - round(UNIT * value)) < 1e-6):
                raise RunError(f"`{name}` is {value:g} chips: use at most two decimals")
        if self.pot <= 0:
            raise RunError(f"the pot is {self.pot:g} chips: the pot must be above 0")
        if self.big_blind <= 0:
            raise RunError(f"the big blind is {self.big_blind:g} chips: the smallest bet must be above 0")
        if self.rake >= 100:
            raise RunError(f"the rake is {self.rake:g}% of the pot: use less than 100")
        for name, share in (("near", self.near), ("all_in_threshold", self.all_in_threshold)):
            if share > 1 or (share == 0 and name != "near"):
                raise RunError(f"`{name}` is {share:g}: use a share of the chips, above 0 and at most 1")
        if self.near and self.all_in_threshold != NEAR:
            raise RunError("the spot has both `near` and `all_in_threshold`: omit `near`, the rule of old versions")
        assert self.subgame  # raises for impossible values
        if self.menu is not None:
            require_legal(self.menu, self.subgame.start())
        if not KEPT.get():
            self._check_clear()

    def _texts(self, ranges: object) -> object:
        """Return both ranges as text. Values of other types than text and arrays are left for the type check."""
        if not isinstance(ranges, list | tuple) or len(ranges) != 2:
            raise RunError(f"`ranges` are {shortened(repr(ranges))}: use one for each of the two players")
        return tuple(self._text(own) if isinstance(own, np.ndarray) else own for own in ranges)

    def _text(self, weights: npt.NDArray[Any]) -> str:
        """Return a range as text, given the weights of all hands."""
        deck, held = self._family.deck, self._family.rules.hole_cards
        hands = len(deck.holes(held))
        if weights.shape != (hands,):
            raise RunError(f"a range has weights of shape {weights.shape}: use one for each of {hands} hands")
        return deck.range_text(weights.astype(np.float64), held)

    def toml(self) -> str:
        """Return the spot as the text of a TOML file.

        Fields that earlier versions did not have are omitted if they are not used. The text identifies runs, so that
        runs of earlier versions can be resumed.
        """
        unused = {"compact": not self.compact, "near": not self.near, "all_in_threshold": bool(self.near)}
        names = "|".join(name for name, whether in unused.items() if whether)
        return re.sub(rf"^({names}) = .*\n", "", super().toml(), flags=re.MULTILINE)

    @property
    def limit(self) -> bool:
        """Whether the game has fixed-limit betting."""
        return self._family.rules.betting == "limit"

    @cached_property
    def _family(self) -> Holdem:
        """The game of which the spot is a part, with its usual blinds and stacks."""
        found = load_game(self.game)
        if not isinstance(found, Holdem):
            raise GameError(f"{self.game} is not poker: a spot is from a game of the hold'em family")
        return found

    @cached_property
    def holdem(self) -> Holdem:
        """The hold'em game to which the spot belongs, with amounts in 1/`UNIT` chips."""
        rules = self._family.rules
        half, blind = round(UNIT * self.pot) // 2, round(UNIT * self.big_blind)
        stack = half + round(UNIT * self.stacks) if self.stacks else UNLIMITED
        sizes = tuple(size * blind // rules.big_blind for size in rules.raise_sizes)
        return Holdem(replace(rules, stacks=(stack, stack), blinds=(blind, blind), raise_sizes=sizes), self.name)

    @property
    def name(self) -> str:
        """The spot's name in tables, which contains the board."""
        return f"spot {self.board}" if self.board else f"spot of {self.game}"

    @cached_property
    def subgame(self) -> Subgame:
        """The game that begins at the spot: its board, pot, stacks and ranges."""
        game, deck = self.holdem, self._family.deck
        cards = deck.cards(self.board)
        sizes = [game.rules.board_size(r) for r in range(game.rules.rounds)]
        if len(cards) not in sizes:
            known = " or ".join(map(str, dict.fromkeys(sizes)))
            raise GameError(f"the board {self.board!r} has {len(cards)} cards: in {self.game} it has {known}")
        opening = Betting.opening(game.rules, sizes.index(len(cards)), round(UNIT * self.pot) // 2)
        position = read_actions(opening, self.after, None)
        if position.actor < 0:
            raise RunError(f"no player acts after {quoted(self.after)}: begin where a player has a decision")
        weights = [self._weights(player, strict=False) for player in (0, 1)]
        found = subgame(game, position, cards, weights)
        cap = UNIT * self.rake_cap if self.rake_cap else inf
        told = [lock.hand_labels(deck, game.rules.hole_cards) for lock in self._locks]
        return replace(
            found, rake_share=self.rake / 100, rake_cap=cap, hand_marks=np.concatenate(told) if told else None
        )

    @cached_property
    def _locks(self) -> tuple[Lock, ...]:
        """The parsed locks, whose lines have not been looked up in the tree yet."""
        return tuple(map(read_lock, self.locks))

    @cached_property
    def menu(self) -> ActionAbstraction | None:
        """The bet sizes of the spot, or None in limit games."""
        return None if self.limit else menu_of(self.bets, self.subgame.start().round, self.near, self.all_in_threshold)

    def _weights(self, player: int, *, strict: bool) -> FloatArray:
        """Return the weights of all hands in a player's range. Errors name the player."""
        try:
            return self._family.deck.range(self.ranges[player], self._family.rules.hole_cards, strict=strict)
        except CardError as error:
            raise RunError(f"the range of player {player + 1}: {error}") from None

    def _check_clear(self) -> None:
        """Raise RunError if fields contradict each other, or if a part of a field would have no effect."""
        deck, held = self._family.deck, self._family.rules.hole_cards
        for player in (0, 1):
            self._weights(player, strict=True)
        for lock in self._locks:
            lock.require_clear(deck, held)
        require_used(self.bets, self.menu, self.holdem.rules.round_names, self.subgame.start().round)

    def tree(self, threads: int = 1, *, kept: bool = False) -> VectorGame:
        """Build the spot's public tree, with fixed strategies at locked decisions.

        Passes over the tree use `threads` threads. Raises RunError if locks contradict each other. If the spot was
        saved by an earlier version (`kept`), the last of these locks counts instead.
        """
        game = VectorGame(self.subgame, self.menu, threads)
        game.fix_strategies(locked_strategies(game, self._locks, strict=not kept))
        return game

    def begin(
        self,
        budget: SpotBudget,
        *,
        threads: int = 1,
        save: Path | None = None,
        begun: RunFolder | None = None,
        device: str | None = None,
        algorithm: str | None = None,
    ) -> Run:
        """Return a run that solves the spot, either new or resumed.

        Parameters
        ----------
        budget : SpotBudget
            When to stop. Without any limit: the budget of `begun`, or `TARGET`.
        threads : int
            Number of threads, which share the boards to come.
        save : Path, optional
            A new folder for the spot, a log, checkpoints and the strategy.
        begun : RunFolder, optional
            Folder of a run on the same spot, which is resumed.
        device : str, optional
            Where the spot is solved: "cpu", or "gpu" for an NVIDIA graphics card. Default: that of `begun`, or "cpu".
        algorithm : str, optional
            A variant of CFR, such as "dcfr-bounded". Default: that of `begun`, or "dcfr+".

        Returns
        -------
        Run
            The run, which has not started yet.

        Raises
        ------
        RunError
            If the tables do not fit into memory, the folder holds something else, there is no GPU, or the algorithm is
            not supported.
        """
        spec = SpotSpec.of(self, threads, device, begun, algorithm=algorithm, stored=save is not None)
        limits = begun.budget if begun and budget == SpotBudget() else budget.with_target_in_chips(self.pot)
        return build(spec, begun.path if begun else save, resumes=begun is not None, budget=limits)

    def _repr_html_(self) -> str:
        rows = {"board": self.board or "none", "pot": f"{self.pot:g}", "stacks": f"{self.stacks:g}"}
        rows |= {f"hands {seat}": f"{number:,}" for seat, number in zip(SEATS, self.hands, strict=True)}
        rows |= {"bets": " | ".join(self.bets)} if self.bets else {}
        return html_table(self.name, rows | ({"locks": " | ".join(self.locks)} if self.locks else {}))

    def solve(
        self,
        target: float | str | None = None,
        *,
        iterations: int | None = None,
        seconds: float | None = None,
        threads: int = 1,
        folder: str | Path | None = None,
        on_step: Callable[[Step], object] = lambda step: None,
        device: str = CPU,
        save: str | Path | None = None,
        algorithm: str | None = None,
    ) -> SpotSolution:
        """Solve the spot to strategies that are close to a Nash equilibrium.

        Parameters
        ----------
        target : float or str, optional
            Exploitability to stop at, in per cent of the pot: 0.5 or "0.5%". Default without any limit: 0.5.
        iterations, seconds : optional
            Other limits; the solve stops at the first limit reached.
        threads : int
            Number of threads, which share the boards to come.
        folder : str or Path, optional
            A new folder for the solution, which `open_spot` opens again.
        on_step : callable
            Called with each measurement.
        device : str
            Where the spot is solved: "cpu", or "gpu" for an NVIDIA graphics card.
        algorithm : str, optional
            A variant of CFR, such as "dcfr-bounded". Default: "dcfr+".
        save : str or Path, optional
            The name of `folder` in kilt 0.1. Deprecated; removed in kilt 0.3.

        Returns
        -------
        SpotSolution
            Strategies and expected values of all hands at all decisions.

        Raises
        ------
        RunError
            If the tables do not fit into memory, or the folder holds something else.
        """
        if save is not None:
            warnings.warn("Spot.solve(save=…) is now Spot.solve(folder=…)", DeprecationWarning, 2)
        kept = folder or save
        budget = SpotBudget(parse_target(target), iterations, seconds)
        where = Path(kept) if kept else None
        run = self.begin(budget, threads=threads, save=where, device=device, algorithm=algorithm)
        steps = []
        for step in run:
            steps.append(step)
            on_step(in_chips(step))
        return solution_of(run, steps)

    @property
    def hands(self) -> tuple[int, int]:
        """The number of hands in each player's range."""
        first, second = np.count_nonzero(self.subgame.weights, axis=1).tolist()
        return first, second
