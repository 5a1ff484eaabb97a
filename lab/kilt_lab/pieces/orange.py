"""[Johanson16 figures 6.1 and 6.2] at the scale of the thesis: limit hold'em with five buckets per round.

With perfect recall and buckets by percentiles of E[HS²], there are 3,624,290 information sets [Johanson16 §6.3.1].
Tables of pairs of bucket sequences replace all cards. Games of Orange are sampled by pairs of bucket sequences.
Everything is measured inside the abstraction, as in the thesis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from kilt import artifact, machine
from kilt.abstraction.abstract_game import SyntheticGame
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.joint import JointTables, joint_tables, load_cached_tables
from kilt.abstraction.pipeline import build
from kilt.arrays import Array, FloatArray
from kilt.errors import ArtifactError, RunError
from kilt.evaluate.flops import ProgressMonitor
from kilt.games.game import CHANCE, TERMINAL, Game
from kilt.games.holdem import Holdem
from kilt.games.tilt import tilt_game
from kilt.jit import cores
from kilt.solve.cfr import Cfr
from kilt.solve.counter import Against, Restriction
from kilt.solve.joint import JointGame
from kilt.solve.problem import GPU
from kilt.solve.tables.pairs import PairTables
from kilt.strategy.model import OpponentModel
from kilt.tree.vector_arrays import FOLLOW

PLAN = "PR-PHS-PHS 5-5-5-5"
ITERATIONS, VARIANT = 250, "dcfr"  # equilibria within about 3 mbb/g
ORANGE_ITERATIONS, ORANGE_VARIANT = 1000, "cfr"  # chosen because the bound is closest to the thesis's
SEED = 6
KIND = "strategy of figures 6.1 and 6.2"
TOGETHER = 5  # iterations between checks for a stop
RNR = ""  # in place of a confidence function
PROBE, SELF = "probe", "self-play"


class CurveSetting(NamedTuple):
    """A curve: the confidence function, the number of observed games, and the other player."""

    confidence: str = RNR
    games: int = 100_000
    against: str = PROBE
    run: int = 0  # seed of the observed games

    @property
    def name(self) -> str:
        """The curve, in words."""
        return (
            f"{self.confidence or 'RNR'}, {self.games:,} games against {'Probe' if self.against == PROBE else 'Orange'}"
        )

    def row(self, share: float) -> str:
        """Return the name of the response for a p or P_max."""
        return f"{self.name}, {'P_max' if self.confidence else 'p'} = {share:g}"


class AnswerPoint(NamedTuple):
    """A response for one p or P_max: chips per game, means over both seats."""

    share: float
    risk: float  # exploitability
    won: float  # against Orange
    model: float  # against the model


class OrangeHoldem:
    """Limit hold'em in an abstraction, with Orange and the quantities of the figures.

    Parameters
    ----------
    game : Holdem
        The rules.
    joint : callable
        Returns the pair tables of an abstraction with perfect recall. Called when they are first needed.
    tilt : sequence of float
        Tilt of the game in which Orange is an equilibrium, in percent.
    device : str
        "cpu" or "gpu".
    iterations : int
        Iterations of discounted CFR for an equilibrium and for every response.
    orange : tuple of (str, int)
        Variant of CFR and number of iterations that solve for Orange.
    folder : Path, optional
        Folder that keeps Orange and an equilibrium. Default: they are not kept.
    tick : callable
        Called with the finished share of the iterations of a response; it may raise `Stopped`.
    """

    def __init__(
        self,
        game: Holdem,
        joint: Callable[[], JointTables],
        tilt: Sequence[float],
        device: str,
        iterations: int = ITERATIONS,
        *,
        orange: tuple[str, int] = (ORANGE_VARIANT, ORANGE_ITERATIONS),
        folder: Path | None = None,
        tick: Callable[[float], None] = lambda share: None,
    ) -> None:
        self.name, self.big_blind, self.iterations = game.name, float(game.rules.big_blind), iterations
        self.folder, self.tick, self._by = folder, tick, orange
        self._tables, self._device = cache(joint), device
        self._rules, self._tilted = game, tilt_game(game, tilt)
        self._held: tuple[CurveSetting | None, FloatArray, FloatArray] = None, np.empty(0), np.empty(0)
        self._models: dict[tuple[int, str, int], OpponentModel] = {}

    @cached_property
    def game(self) -> JointGame:
        """The game without tilt."""
        return _joint_game(self._rules, self._tables(), self._device)

    @cached_property
    def first(self) -> Array:
        """[slot] whether it belongs to the first player."""
        layout = self.game.layout
        first: Array = self.game.arrays.asarray(np.repeat(layout.actor, layout.actions) == 0)
        return first

    @cached_property
    def orange(self) -> FloatArray:
        """[slot] an approximate equilibrium of the tilted game."""
        return self._equilibrium("orange", self._tilted, *self._by)

    @cached_property
    def nash(self) -> FloatArray:
        """[slot] an equilibrium of the game."""
        return self._equilibrium("nash", self._rules, VARIANT, self.iterations)

    @property
    def bound(self) -> float:
        """Winnings against Orange of a best response in the abstract game, in chips per game."""
        return float(self.ends()[1, 1])

    def _equilibrium(self, name: str, rules: Game, variant: str, iterations: int) -> FloatArray:
        """[slot] an equilibrium, from the folder or newly solved."""
        place = self.folder / name if self.folder else None
        if place and artifact.exists(place):
            with suppress(ArtifactError):  # it can be solved again
                return self.game.probabilities(np.array(artifact.read(place, KIND).arrays["strategy"]))
        found = self._stepped(Cfr(PairTables(_joint_game(rules, self._tables(), self._device)), variant), iterations)
        if place:
            place.parent.mkdir(parents=True, exist_ok=True)
            artifact.write(place, KIND, {"strategy": np.asarray(_on_host(self.game, found))})
        return found

    def _stepped(self, solver: Cfr[PairTables], iterations: int) -> FloatArray:
        while solver.iterations < iterations:
            solver.step(min(TOGETHER, iterations - solver.iterations))
            self.tick(solver.iterations / iterations)
        found: FloatArray = solver.average()
        return found

    def met(self, answer: FloatArray, other: FloatArray) -> float:
        """Return winnings of a response against another strategy in chips per game, the mean over both seats."""
        pairs, where = ((answer, other), (other, answer)), self.game.arrays.where
        return sum(self.game.worth(seat, FOLLOW, where(self.first, *pair)) for seat, pair in enumerate(pairs)) / 2

    def model(self, setting: CurveSetting) -> OpponentModel:
        """Return a model of Orange from games against Probe or itself, half of them in each seat."""
        key = setting.games, setting.against, setting.run
        if key not in self._models:
            probe = self.game.probabilities(probe_weights(self.game))
            both = self.orange, self.orange if setting.against == SELF else probe
            host = [np.asarray(_on_host(self.game, table)) for table in both]
            first, rng = _on_host(self.game, self.first), np.random.default_rng(SEED + setting.run)
            counts = np.zeros(self.game.abstract.slots)
            for seat in (0, 1):
                profile = np.where(first == (seat == 0), *host)
                counts += observed(self.game, profile, seat, setting.games // 2, rng)
            self._models[key] = OpponentModel(self.name, "", "Orange", self.game.layout, counts)
        return self._models[key]

    def answer(self, setting: CurveSetting, share: float) -> AnswerPoint:
        """Return the response to a model for a p or P_max, with its exploitability and winnings."""
        if self._held[0] != setting:
            model = self.model(setting)
            fixed = Against(model, 1.0, setting.confidence).fixed()
            self._held = setting, fixed, self.game.probabilities(model.policy())
        _, fixed, policy = self._held
        if share == 0:
            found = self.nash
        elif share == 1 and not setting.confidence:
            found = self.game.responses(policy)
        else:
            held = (share * fixed,) if setting.confidence else (fixed, share)
            tables = (PairTables(self.game, Restriction(seat, *held)) for seat in (1, 0))
            answers = (self._stepped(Cfr(each, VARIANT), self.iterations) for each in tables)
            found = self.game.arrays.where(self.first, *answers)
        return AnswerPoint(
            share, self.game.exploitability(found), self.met(found, self.orange), self.met(found, policy)
        )

    def frontier(self) -> list[tuple[float, float]]:
        """Return an empty list: there are too many information sets for linear programs."""
        return []

    def ends(self) -> FloatArray:
        """Return [equilibrium, best response to Orange]: exploitability, and winnings against Orange."""
        both = self.nash, self.game.responses(self.orange)
        return np.array([(self.game.exploitability(one), self.met(one, self.orange)) for one in both])


def tables_of(game: Holdem, watcher: ProgressMonitor) -> JointTables:
    """Return the pair tables of the abstraction of the thesis, from the folder or newly built in half an hour."""
    spec = AbstractionSpec.from_name(PLAN, Deal.from_game(game))
    kept = load_cached_tables(spec.fingerprint)
    if kept:
        return kept
    watcher.say(f"building {PLAN} and its pair tables: about half an hour, once")
    with TemporaryDirectory() as folder:
        cards = build(spec, Path(folder) / "cards", cache=machine.cache_folder(), threads=cores())
        return joint_tables(cards, cores())


def _joint_game(game: object, joint: JointTables, device: str) -> JointGame:
    if not isinstance(game, Holdem) or not joint.perfect_recall:
        raise RunError("these figures are for poker with perfect recall: use leduc, or holdem.limit.2p")
    first, second = (tuple(len(one.bucket) for one in own) for own in joint.sequences)
    abstract = SyntheticGame(game, (first, second))
    if device != GPU:
        return JointGame(abstract, joint)
    from kilt.solve.joint_device import DeviceJointGame  # imports the GPU library

    return DeviceJointGame(abstract, joint)


def _on_host(game: JointGame, table: Array) -> Array:
    return table if game.arrays is np else game.arrays.asnumpy(table)


def probe_weights(game: JointGame) -> FloatArray:
    """[slot] the strategy that never folds, and calls or raises with equal probability [Johanson16 §6.3.2]."""
    layout = game.layout
    place = np.arange(int(layout.actions.sum())) - np.repeat(layout.start[:-1], layout.actions)
    return np.where(place >= np.repeat(layout.call, layout.actions), 1.0, 0.0)


def observed(game: JointGame, profile: FloatArray, seat: int, games: int, rng: np.random.Generator) -> FloatArray:
    """[slot] counts of the actions of the player in a seat, in games in which both players follow a profile.

    Cards are sampled as pairs of bucket sequences. All games are played at once, action by action.

    Parameters
    ----------
    game : JointGame
        With perfect recall.
    profile : ndarray, shape (slots,)
        Probabilities.
    seat : int
        The player whose actions are counted.
    games : int
        Number of games.
    rng : Generator
        Source of cards and actions.
    """
    nodes, joint = game.nodes, game.joint
    likely = joint.pair_probabilities[-1].ravel().cumsum()
    drawn = np.searchsorted(likely, rng.random(games) * likely[-1], side="right").clip(max=len(likely) - 1)
    held = [np.divmod(drawn, joint.pair_probabilities[-1].shape[1])]  # [round] the sequences of both
    for r in range(len(joint.pair_probabilities) - 1, 0, -1):
        held.insert(0, tuple(joint.sequences[player][r].parent[held[0][player]] for player in (0, 1)))
    bucket = [np.stack([game.bucket(player, r)[both[player]] for r, both in enumerate(held)]) for player in (0, 1)]
    counts, node, who = np.zeros(len(profile)), np.zeros(games, dtype=np.int64), np.arange(games)
    while len(who):
        actor = nodes.actor[node]
        for player in (0, 1):
            here = np.flatnonzero(actor == player)
            count = nodes.children[node[here]]
            slot = game.first[node[here]] + bucket[player][nodes.round[node[here]], who[here]] * count
            left, action = rng.random(len(here)), np.zeros(len(here), dtype=np.int64)
            for a in range(int(count.max(initial=1)) - 1):
                left -= profile[slot + np.minimum(a, count - 1)]
                action += (left >= 0) & (action == a) & (a < count - 1)
            if player == seat:
                counts += np.bincount(slot + action, minlength=len(counts))
            node[here] = nodes.first_child[node[here]] + action
        dealt = actor == CHANCE
        node[dealt] = nodes.first_child[node[dealt]]
        on = nodes.actor[node] != TERMINAL
        node, who = node[on], who[on]
    return counts
