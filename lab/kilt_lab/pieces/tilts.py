"""Random abstractions of a game, for solving with tilted payoffs and evaluating without tilt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.buckets import CardAbstraction
from kilt.abstraction.joint import joint_tables
from kilt.errors import GameError
from kilt.games.holdem import Holdem
from kilt.games.playable import load_holdem
from kilt.games.tilt import tilt_game
from kilt.solve.abstract import BucketedGame
from kilt.solve.cfr import Cfr
from kilt.solve.joint import JointGame
from kilt.solve.tables.pairs import PairTables
from kilt.tree.vector import VectorGame
from kilt_lab.experiment import Lab
from kilt_lab.pieces.agents import cards_in_buckets

KINDS = ("PHS-PHS", "PHS-KO", "KE-PHS", "KE-KO")  # as in [Johanson16 table 5.4]
FEWEST, MOST = 3, 10  # buckets of a round
NO_TILT = (0.0, 0.0, 0.0, 0.0)


class Abstracted:
    """A game with a card abstraction, for solving with tilts and evaluating without tilt."""

    def __init__(self, game: Holdem, vectors: VectorGame, cards: CardAbstraction) -> None:
        self.game, self.cards, self.joint = game, cards, joint_tables(cards)
        self.abstract, self.seen = AbstractGame(game, cards), BucketedGame.with_abstraction(vectors, cards)
        self.scale = 1000 / game.rules.big_blind

    def solver(self, tilt: Sequence[float] = NO_TILT, variant: str = "cfr+") -> Cfr[PairTables]:
        """Return a new solver for the abstract game with tilted payoffs."""
        return Cfr(PairTables(JointGame(AbstractGame(self._tilted(tilt), self.cards), self.joint)), variant)

    def real(self, strategy: ArrayLike) -> float:
        """Return the exploitability in the real game, in mbb/g."""
        return self.scale * self.seen.exploitability(self.seen.table_of(self.abstract, np.asarray(strategy)))

    def inside(self, strategy: ArrayLike) -> float:
        """Return the exploitability against opponents with the same buckets, in mbb/g, without tilt."""
        return self.scale * JointGame(self.abstract, self.joint).exploitability(np.asarray(strategy))

    def _tilted(self, tilt: Sequence[float]) -> Holdem:
        game = tilt_game(self.game, tilt)
        if not isinstance(game, Holdem):
            raise GameError(f"{self.game.name} is not poker: use a game with cards and bets")
        return game


def drawn_plan(number: int) -> str:
    """Return a random abstraction of two rounds with perfect recall, uniform over kinds and buckets per round.

    >>> drawn_plan(0), drawn_plan(1)
    ('PR-KE-KO 8-7', 'PR-PHS-KO 7-9')
    """
    draws = np.random.default_rng(number)
    kind = KINDS[draws.integers(len(KINDS))]
    return f"PR-{kind} {'-'.join(str(buckets) for buckets in draws.integers(FEWEST, MOST + 1, 2))}"


def drawn_abstraction(lab: Lab, number: int) -> tuple[str, Abstracted]:
    """Return the name of abstraction `number`, from `drawn_plan`, and the game with it, clustered with that seed."""

    def loaded() -> tuple[Holdem, VectorGame]:
        game = load_holdem(lab.game)
        return game, VectorGame(game, threads=lab.threads)

    def drawn() -> tuple[str, Abstracted]:
        game, vectors = lab.shared("game", loaded, per="experiment")
        plan = drawn_plan(number)
        cards = cards_in_buckets(game, plan, lab.scratch() / "cards", number)
        return f"{plan}, seed {number}", Abstracted(game, vectors, cards)

    return lab.shared("abstraction", drawn)
