"""An abstract game to be solved and judged: `problem.Problem` for players who see buckets and bets of a menu.

Strategies are over the slots of the abstract game, as whole numbers: see `strategy.blueprint`. Where all boards and
hands of the real game can be walked, exploitability is exact: the opponent sees all cards, and has the bets of the
menu. Elsewhere it is not known; a `Judge` measures instead what the strategy wins from some opponents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import nan
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt import artifact
from kilt.abstraction.abstract_game import AbstractGame, AbstractSize, SyntheticGame
from kilt.abstraction.actions import ActionAbstraction
from kilt.abstraction.buckets import DESCRIPTION, AbstractionSpec, CardAbstraction, load_abstractions
from kilt.abstraction.features import Deal, Tick
from kilt.abstraction.pipeline import BuildEstimate, bucket_numbers, build, estimate
from kilt.arrays import Array
from kilt.config import Config, EngineConfig
from kilt.engines import Engine
from kilt.errors import RunError
from kilt.games import load_game
from kilt.games.holdem import Holdem
from kilt.games.size import size_of
from kilt.solve import ABSTRACT, ALGORITHMS, Algorithm, algorithm_named
from kilt.solve.abstract import AbstractCfr, BucketedGame
from kilt.solve.external import Pace, SamplingOptions, probe
from kilt.solve.problem import VECTOR_PRECISION, Problem
from kilt.solve.solver import Solver
from kilt.strategy.blueprint import Blueprint, card_folders
from kilt.strategy.postprocess import rule_named
from kilt.strategy.table import require_same
from kilt.strategy.translate import mapping_named
from kilt.tree.betting import MOST_NODES
from kilt.tree.vector import VectorGame, Walks

CONFIG = "config.toml"  # in the folder of a run: what its abstract game was made from
EXACT = 30_000_000  # entries of a public tree's table up to which all of it is walked
FINE = 100_000_000  # slots up to which probabilities have two bytes

Judge: TypeAlias = Callable[[Array], dict[str, float]]  # [slot] a strategy → its win rates in mbb/h, by opponent


def prepare(
    config: Config,
    run: Path,
    threads: int | None = None,
    tick: Tick = lambda what, share: None,
    judge: Callable[[AbstractGame, int], Judge] | None = None,
) -> AbstractProblem:
    """The problem that a configuration says. Its card abstractions are built in the folder of the run, if need be.

    `judge` makes what measures strategies where exploitability is not known, from the game and a number of threads.
    """
    game, actions, cards = asked_for(config, run)
    threads = threads or config.solver.threads
    places = []
    for found, own in zip(cards, card_folders(run, len(cards)), strict=True):
        if isinstance(found, AbstractionSpec):
            build(found, own, cache=artifact.cache_folder(), threads=threads, tick=tick)
        places.append(own if isinstance(found, AbstractionSpec) else found)
    abstract = AbstractGame(game, load_abstractions(places), actions)
    rates = judge(abstract, threads) if judge else None
    agent = asdict(config.agent)
    return AbstractProblem(abstract, tuple(places), options_of(config), threads, agent, config.engine, judge=rates)


class Takes(NamedTuple):
    """What a run takes, known before it begins."""

    size: AbstractSize
    cards: BuildEstimate | None  # to build the card abstractions; None where they are there
    memory: int  # bytes of the solver's table
    disk: int  # bytes of two checkpoints and a strategy


def takes(config: Config, run: Path | None = None) -> Takes:
    """What a configuration takes; nothing is built yet but what is in the folder of the run."""
    game, actions, cards = asked_for(config, run)
    estimated: BuildEstimate | None = None
    numbers = []
    for found in cards:
        if isinstance(found, Path):
            numbers.append(CardAbstraction.load(found).numbers)
        else:
            numbers.append(bucket_numbers(found.plan, found.deal))
            more = estimate(found, artifact.cache_folder(), config.solver.threads)
            estimated = more.after(estimated) if estimated else more
    size = SyntheticGame(game, (numbers[0], numbers[-1]), actions).size
    memory = 4 * sum(size.slots) * (2 if config.solver.average else 1)
    return Takes(size, estimated, memory, 3 * memory)


def pace(config: Config, size: AbstractSize) -> Pace:
    """How quickly external sampling will go, from a short walk with made-up cards."""
    game, actions, _ = asked_for(config)
    return probe(SyntheticGame(game, size.buckets, actions), options_of(config), config.solver.threads)


def options_of(config: Config) -> SamplingOptions:
    """How to sample."""
    return SamplingOptions(config.solver.average, config.solver.linear, config.solver.prune)


Asked: TypeAlias = Path | AbstractionSpec  # a card abstraction: where it is, or what is to be built


def asked_for(config: Config, run: Path | None = None) -> tuple[Holdem, ActionAbstraction | None, tuple[Asked, ...]]:
    """The game, the menu, and the card abstraction of a configuration, or that of each player.

    What the folder of a run has begun to build is gone on with, whatever has become of the file that said so.
    """
    game = load_game(config.game)
    if not isinstance(game, Holdem):
        raise RunError(f"{config.game} has no cards to abstract: use `kilt solve --game {config.game}`")
    rule_named(config.agent.post)
    mapping_named(config.agent.translation)
    if not algorithm_named(config.solver.algorithm).works_on(ABSTRACT):
        able = [name for name, entry in ALGORITHMS.items() if entry.works_on(ABSTRACT)]
        raise RunError(f"{config.solver.algorithm} does not solve abstract games: use one of {', '.join(able)}")
    if game.rules.betting == "limit" and config.actions:
        raise RunError(f"{game.name} has bets of one size: leave out `actions`")
    actions = ActionAbstraction(config.actions, config.near) if config.actions else None
    if game.rules.betting == "nolimit" and actions is None and size_of(game.rules).actions.total >= MOST_NODES:
        raise RunError(f"{game.name} has too many bets to take them all: give `actions`, such as '50%, 1x, a; 1x, a'")
    begun = card_folders(run, len(config.cards)) if run else [None] * len(config.cards)
    return game, actions, tuple(_cards(*one, Deal.of(game)) for one in zip(config.cards, begun, strict=True))


def _cards(name: str, begun: Path | None, deal: Deal) -> Asked:
    if (Path(name) / DESCRIPTION).is_file():
        return Path(name)
    return (
        AbstractionSpec.read(begun) if begun and (begun / DESCRIPTION).is_file() else AbstractionSpec.named(name, deal)
    )


def keep_config(config: Config, run: Path) -> None:
    """Write a configuration to the folder of a run, with the rules of the game where these came from a file."""
    file = Path(config.game)
    with artifact.os_errors(f"{run} cannot be written"):
        run.mkdir(parents=True, exist_ok=True)
        if file.is_file():
            artifact.write_text(run / file.name, file.read_text(encoding="utf-8"))
            config = replace(config, game=file.name)
        artifact.write_text(run / CONFIG, config.toml())


@dataclass(frozen=True)
class AbstractProblem(Problem):
    """An abstract game, and how to judge strategies for it."""

    form: ClassVar[str] = ABSTRACT
    precision: ClassVar[float] = VECTOR_PRECISION

    abstract: AbstractGame
    cards: tuple[Path, ...]  # where its card abstraction is, or that of each player
    options: SamplingOptions = SamplingOptions()  # noqa: RUF009, it is frozen
    threads: int = 1
    agent: dict[str, str] = field(default_factory=dict)  # how its strategies are to be played
    engine: EngineConfig = EngineConfig()  # noqa: RUF009, it is frozen
    place: Engine | None = None  # the engine, where it is open already
    judge: Judge | None = None

    @property
    def name(self) -> str:
        """What the game is called."""
        return self.abstract.game.name

    @property
    def fingerprint(self) -> str:
        """A short name for the abstract game and the way it is sampled."""
        return artifact.fingerprint(self.abstract.fingerprint, artifact.spelled(self.options))

    @property
    def big_blind(self) -> float:
        """In chips."""
        return self.abstract.game.rules.big_blind

    @property
    def dtype(self) -> npt.DTypeLike:
        """Of probabilities."""
        return np.uint16 if self.abstract.slots <= FINE else np.uint8

    @property
    def exact(self) -> bool:
        """Whether best responses can be found."""
        return self.seen is not None

    @cached_property
    def seen(self) -> BucketedGame | None:
        """The whole game, where it can be walked."""
        actions, game = self.abstract.betting.nodes, self.abstract.game
        rounds = zip(*(cards.rounds for cards in self.abstract.cards.each), strict=True)
        boards = [max(len(this.spots.boards) for this in both) for both in rounds]
        rows = np.bincount(actions.round[actions.actor >= 0], actions.children[actions.actor >= 0], len(boards))
        hands = len(game.deck.holes(game.rules.hole_cards))
        if hands * float(rows @ boards) > EXACT:
            return None
        return BucketedGame.by(VectorGame(game, self.abstract.actions, threads=self.threads), self.abstract.cards)

    def solver(self, algorithm: Algorithm, seed: int) -> Solver:
        """A solver for the abstract game."""
        assert algorithm.make_abstract
        return algorithm.make_abstract(self, seed)

    def uniform(self) -> Array:
        """[slot] the strategy that takes all actions alike."""
        return np.ones(self.abstract.slots, dtype=self.dtype)

    def expected_value(self, strategy: Array) -> float:
        """What player 0 wins when both follow a strategy, in chips per game; nan where that is not known."""
        return self.seen.expected_value(self.seen.table_of(self.abstract, strategy)) if self.seen else nan

    def response_values(self, strategy: Array) -> tuple[float, float]:
        """What an opponent who sees all cards wins in each seat, in chips per game; nan where that is not known."""
        return self.seen.response_values(self.seen.table_of(self.abstract, strategy)) if self.seen else (nan, nan)

    def responses(self, strategy: Array) -> Array:
        """Best responses see more than buckets: they are no strategies of the abstract game."""
        raise RunError("best responses to an abstract strategy look at all cards: they cannot be written as one")

    def walks(self, strategy: Array) -> Walks:
        """The walks that judge a strategy, where the whole game can be walked and has several rounds."""
        if self.seen is None or len(self.seen.game.tree.rows) == 1:
            return super().walks(strategy)
        seen, table = self.seen, self.seen.table_of(self.abstract, strategy)
        return Walks(seen.game, lambda player, task: seen.walk(player, task, table))

    def others(self, strategy: Array) -> dict[str, float]:
        """Win rates of a strategy in mbb/h by opponent, where exploitability is not known and there is a judge."""
        return {} if self.exact or self.judge is None else self.judge(strategy)

    def save(self, path: Path, strategy: Array, **figures: Any) -> None:
        """Write a blueprint to a folder."""
        Blueprint.of(self.abstract, strategy, agent=self.agent, **figures).save(path, *self.cards)

    def load(self, path: Path) -> tuple[Array, dict[str, Any]]:
        """The strategy of a blueprint for this very game."""
        found = Blueprint.load(path)
        require_same((found.game.name, found.fingerprint), (self.name, self.abstract.fingerprint))
        return found.shares, found.figures


class Walked(AbstractCfr):
    """CFR by walks of the whole game, or of one board of each round, for players who see buckets."""

    def __init__(self, problem: AbstractProblem, **how: Any) -> None:
        if problem.seen is None:
            raise RunError(f"{problem.name} has too many boards and hands to walk with all of them: use external")
        super().__init__(problem.seen, **how)
        self.problem = problem

    def average(self) -> Array:
        """[slot] the average strategy."""
        return self.seen.shares_of(self.problem.abstract, super().average(), self.problem.dtype)

    def current(self) -> Array:
        """[slot] what regret matching plays now."""
        return self.seen.shares_of(self.problem.abstract, super().current(), self.problem.dtype)
