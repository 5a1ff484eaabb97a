"""Re-solving on games that are small enough for exact exploitability of the whole combined strategy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import nan
from typing import NamedTuple

import numpy as np

from kilt.abstraction.actions import actions_of
from kilt.arrays import FloatArray, IntArray
from kilt.config import GADGET, RESOLVE_METHODS, UNSAFE
from kilt.games.game import CHANCE, REVEAL, TERMINAL
from kilt.games.gamedef import GameDef, load_definition
from kilt.games.holdem import FOLD, RAISE, Betting, Holdem
from kilt.games.subgame import compatible_weights
from kilt.play.agent import PublicPolicy
from kilt.search.continuations import BIASES, BlueprintContinuations
from kilt.search.continuations_kernels import Singles
from kilt.solve.cfr import Cfr
from kilt.solve.resolve import LeafValues, resolve
from kilt.solve.tables.memory import TreeTables
from kilt.strategy.translate import pseudo_harmonic, translations
from kilt.tree.navigation import NavigableTree, TreePosition
from kilt.tree.vector import VectorGame
from kilt.tree.vector_arrays import RESPOND, Table

THREE_ROUNDS = """GAMEDEF
limit
numPlayers = 2
numRounds = 3
blind = 1 1
raiseSize = 2 4 4
firstPlayer = 1 1 1
maxRaises = 1 1 1
numSuits = 2
numRanks = 3
numHoleCards = 1
numBoardCards = 0 1 1
END GAMEDEF
"""
NO_LIMIT = """GAMEDEF
nolimit
numPlayers = 2
numRounds = 2
stack = 12 12
blind = 1 1
firstPlayer = 1 1
numSuits = 2
numRanks = 4
numHoleCards = 1
numBoardCards = 0 1
END GAMEDEF
"""
LEDUC = str(load_definition("leduc"))
BLUEPRINT, TRANSLATED = "blueprint", "translated"
EVERY = "every continuation"
CONTINUED = {"one continuation": 1, "four continuations": len(BIASES), EVERY: 4**4}  # four plans for each of four cards
ITERATIONS = 1000  # for each subgame


class PublicState(NamedTuple):
    """Ranges and values of both players at a public state, by hand in the order of `Deck.holes`."""

    ranges: FloatArray  # [player, hand]
    values: FloatArray  # [player, hand] chips that a best response wins against the other player's strategy


class Solved(NamedTuple):
    """A public tree, and a table of strategies for it."""

    tree: NavigableTree
    table: Table

    def state(self, place: TreePosition) -> PublicState:
        """Return ranges and best-response values at a decision of a whole game."""
        looks = self.tree.game.block_values(self.table, place.path, (RESPOND, RESPOND))
        ranges = [self.tree.reach(looks[1 - player], place) for player in (0, 1)]
        values = [np.nan_to_num(self.tree.hand_values(looks[player], place)) for player in (0, 1)]
        return PublicState(np.stack(ranges), np.stack(values))

    def read(self, place: TreePosition) -> dict[str, FloatArray]:
        """Return the probability of each action at a decision, [hand of the deck]; 0 for hands outside the tree."""
        game, actions = self.tree.holdem, self.tree.actions(place)
        shares = np.zeros((len(actions), len(game.deck.holes(game.rules.hole_cards))))
        shares[:, game.numbers] = self.tree.strategy(self.table, place)
        return dict(zip(actions, shares, strict=True))

    def write(self, place: TreePosition, shares: dict[str, FloatArray]) -> None:
        """Set the probabilities of actions [hand of the deck] at a decision; other actions get 0."""
        row = self.tree.row(place)
        for number, action in enumerate(self.tree.actions(place)):
            self.table[row + number] = (
                shares[action][self.tree.holdem.numbers[place.hands]] if action in shares else 0.0
            )

    def take_over(self, place: TreePosition, other: Solved, there: TreePosition, player: int) -> None:
        """Copy a player's strategy below a node from another tree with the same actions."""
        if there.position.actor == TERMINAL:  # end of the hand, or of a subgame with a depth limit
            return
        if place.position.actor == player:
            self.write(place, other.read(there))
        for event in events(self.tree, place):
            self.take_over(after(self.tree, place, event), other, after(other.tree, there, event), player)


class KnownStrategy(NamedTuple):
    """The strategy of a whole game as a `PublicStrategy`."""

    solved: Solved

    def table(self, position: Betting) -> None:
        """Return None: no part of the strategy is the same on all boards."""

    def policies(self, position: Betting, boards: Sequence[tuple[int, ...]]) -> list[PublicPolicy]:
        """Return the policy of the player to act with every hand, by board."""
        tree, found = self.solved.tree, list[PublicPolicy]()
        for board in boards:
            place = tree.start
            for before, action in tree.holdem.positions.moves_to(position):
                size = before.rules.board_size(before.round)
                cards = board[size : before.rules.board_size(before.round + 1)] if action == REVEAL else ()
                place = after(tree, place, cards or action)
            shares = self.solved.read(place)
            table = np.stack(list(shares.values()))
            found.append(PublicPolicy(tuple(shares), table, np.arange(table.shape[1])))
        return found


class PureContinuations(BlueprintContinuations):
    """All pure strategies for the last round of `THREE_ROUNDS`.

    In that round a player decides once without a bet and once facing a bet: four plans for each of the four possible
    cards.
    """

    def _chosen(self, at: Betting, actions: Sequence[str], shares: Singles, board: IntArray | None) -> Singles:
        assert board is not None  # no part of the strategy is the same on all boards
        *before, card = board.tolist()
        cards, own = np.setdiff1d(np.arange(self.game.deck.size), before), self.game.holes[:, 0]
        place = np.searchsorted(cards, card) - (card > own)  # [hand]
        plans = np.arange(self.ways)[:, None] // 4 ** np.maximum(place, 0) % 4  # [way, hand]
        picks = plans // 2 if FOLD in actions else plans % 2
        return np.asarray(picks[:, None] == np.arange(len(actions))[:, None], dtype=shares.dtype)


def events(tree: NavigableTree, place: TreePosition) -> Sequence[str | tuple[int, ...]]:
    """Return the next events: actions, or cards up to isomorphism of suits."""
    if place.position.actor == CHANCE:
        return [tree.holdem.deck.cards(cards) for cards in tree.next(place)]
    return tree.actions(place) if place.position.actor >= 0 else ()


def after(tree: NavigableTree, place: TreePosition, event: str | tuple[int, ...]) -> TreePosition:
    """Return the node after an event."""
    return tree.act(place, event) if isinstance(event, str) else tree.deal(place, event)


def subgames(tree: NavigableTree, first: int) -> Iterator[TreePosition]:
    """Return the nodes at which the round `first` begins with a decision, for all betting and all boards before."""
    below = [tree.start]
    while below:
        place = below.pop()
        if place.position.round < first:
            below += [after(tree, place, event) for event in events(tree, place)]
        elif place.position.actor >= 0:
            yield place


class Whole(NamedTuple):
    """A combined strategy, and a bound of its exploitability above that of the blueprint."""

    table: Table
    excess: float  # sum of the gains of hands over their alternatives, chips per game; nan without alternatives


def resolve_all(
    blueprint: Solved, first: int, method: str, iterations: int = ITERATIONS, continuations: int = 0
) -> Whole:
    """Replace both players' strategies from a round on by those of re-solved subgames.

    Parameters
    ----------
    blueprint : Solved
        Strategy of a whole game.
    first : int
        The round in which subgames begin.
    method : str
        One of `kilt.config.RESOLVE_METHODS`.
    iterations : int
        For each subgame.
    continuations : int
        Number of continuations from which the opponent chooses at the end of the round; 0: no depth limit.
        Numbers above four use `PureContinuations`.

    Returns
    -------
    Whole
        With a table for the blueprint's tree.
    """
    tree = blueprint.tree
    found, excess = Solved(tree, blueprint.table.copy()), 0.0
    for place in subgames(tree, first):
        for player in (0, 1):
            known = (tree.holdem, place.position.history, 1 - player, KnownStrategy(blueprint), continuations)
            kind = BlueprintContinuations if continuations <= len(BIASES) else PureContinuations
            limit = kind(*known) if continuations else None
            excess += take_resolved(found, place, blueprint.state(place), player, method, iterations, limit)
    return Whole(tree.game.symmetrise(found.table), excess)


def take_resolved(
    found: Solved,
    place: TreePosition,
    state: PublicState,
    player: int,
    method: str,
    iterations: int,
    continued: LeafValues | None = None,
) -> float:
    """Re-solve a subgame for one player and insert the player's strategy. Returns its share of `Whole.excess`.

    Subgames that the player never reaches keep their strategy.
    """
    tree, game, ranges = found.tree, found.tree.holdem, state.ranges.copy()
    met = compatible_weights(ranges[player], game.holes, game.deck.size)
    if not met.any():
        return 0.0
    if not (ranges[1 - player] * met).any():
        ranges[1 - player] = 1.0  # the opponent never reaches the subgame: all hands are possible
    part = resolve(
        game,
        place.position,
        place.board,
        player,
        ranges,
        state.values[1 - player],
        method=method,
        menu=tree.game.menu,
        iterations=iterations,
        dtype=np.float64,
        continued=continued,
    )
    there = NavigableTree(part.game)
    found.take_over(place, Solved(there, part.table), there.start, player)
    if method == UNSAFE or (continued is not None and not isinstance(continued, PureContinuations)):
        return nan
    arrays = tree.game.tree
    chance = np.prod([arrays.chance[r] * arrays.weight[board] for r, (_, board) in enumerate(place.path) if r > 0])
    over = met[there.holdem.numbers] @ np.maximum(-part.margins(), 0.0)
    return float(arrays.norm * chance * over) / 2  # of the mean over both seats


def meet_bets(blueprint: Solved, game: VectorGame, method: str, iterations: int = ITERATIONS) -> Whole:
    """Extend a blueprint to a tree with more bets: how to answer a bet that it lacks.

    Parameters
    ----------
    blueprint : Solved
        Strategy of the game with fewer bets.
    game : VectorGame
        That game with possibly more bets in the last round, after which each player acts at most once.
    method : str
        ``translated``: the pseudo-harmonic mapping; or a method of nested re-solving, where the alternatives are the
        values of the opponent's hands with the bets of the blueprint.
    iterations : int
        For each subgame.

    Returns
    -------
    Whole
        With a table for `game`. Neither player makes bets that the blueprint lacks.
    """
    found, excess = Solved(NavigableTree(game), game.table()), 0.0
    below = [(found.tree.start, blueprint.tree.start)]
    while below:
        place, there = below.pop()
        known = events(blueprint.tree, there)
        if place.position.actor >= 0:
            found.write(place, blueprint.read(there))
        for event in events(found.tree, place):
            behind = after(found.tree, place, event)
            if place.position.actor == CHANCE or event in known:
                below.append((behind, after(blueprint.tree, there, event)))
            elif method == TRANSLATED:
                found.write(behind, translated(blueprint, there, behind))
                excess = nan
            else:
                state, player = blueprint.state(there), behind.position.actor
                excess += take_resolved(found, behind, state, player, method, iterations)
    return Whole(game.symmetrise(found.table), excess)


def translated(blueprint: Solved, there: TreePosition, behind: TreePosition) -> dict[str, FloatArray]:
    """Return the strategy after a bet that the blueprint lacks, from the strategies after the two nearest bets."""
    tree, level = blueprint.tree, max(there.position.spent)

    def pots(place: TreePosition) -> float:
        return (max(place.position.spent) - level) / (2 * level)

    near = sorted((tree.act(there, one) for one in tree.actions(there) if one.startswith(RAISE)), key=pots)
    mixed = dict[str, FloatArray]()
    for number, chance in translations([pots(one) for one in near], pots(behind), pseudo_harmonic):
        for action, share in blueprint.read(near[number]).items():
            mixed[action] = mixed.get(action, 0.0) + chance * share
    return mixed


@dataclass(frozen=True)
class ResolvingCase:
    """A game, and a blueprint whose subgames are re-solved."""

    rules: str
    iterations: int  # of CFR+, for the blueprint
    bets: str | None = None  # of the blueprint; None in limit games
    more_bets: str | None = None  # of the opponent, if there are more
    limited: int | None = None  # the round that is re-solved with a depth limit

    def tree(self, bets: str | None) -> VectorGame:
        """Return the public tree with some bets."""
        return VectorGame(Holdem(GameDef.parse(self.rules)), None if bets is None else actions_of(bets))

    def blueprint(self) -> Solved:
        """Return the blueprint: the average strategy of CFR+."""
        game = self.tree(self.bets)
        solver = Cfr(TreeTables(game))
        solver.step(self.iterations)
        return Solved(NavigableTree(game), solver.average())

    @property
    def ways(self) -> tuple[str, ...]:
        """The rows of the case: the methods that are compared."""
        if self.limited is not None:
            return (BLUEPRINT, *(way for way in CONTINUED if way != EVERY or self.rules == THREE_ROUNDS))
        return (BLUEPRINT, *RESOLVE_METHODS) if self.more_bets is None else (TRANSLATED, *RESOLVE_METHODS[1:])

    def judge(self, blueprint: Solved, way: str, iterations: int = ITERATIONS) -> tuple[float, float]:
        """Return the exploitability of the combined strategy, in chips per game, and its excess: see `Whole`."""
        game = blueprint.tree.game
        if self.more_bets is not None:
            game = self.tree(self.more_bets)
            whole = meet_bets(blueprint, game, way, iterations)
        elif way == BLUEPRINT:
            whole = Whole(blueprint.table, 0.0)
        elif self.limited is not None:
            whole = resolve_all(blueprint, self.limited, GADGET, iterations, CONTINUED[way])
        else:
            whole = resolve_all(blueprint, 1, way, iterations)
        return game.exploitability(whole.table), whole.excess


CASES = {
    "two rounds, rough": ResolvingCase(LEDUC, 30),
    "two rounds, solved": ResolvingCase(LEDUC, 1000),
    "three rounds, rough": ResolvingCase(THREE_ROUNDS, 30),
    "three rounds, solved": ResolvingCase(THREE_ROUNDS, 1000),
    "no-limit, rough": ResolvingCase(NO_LIMIT, 30, "1x, a"),
    "no-limit, solved": ResolvingCase(NO_LIMIT, 1000, "1x, a"),
    "first of two rounds, rough": ResolvingCase(LEDUC, 30, limited=0),
    "first of two rounds, solved": ResolvingCase(LEDUC, 1000, limited=0),
    "second of three rounds, rough": ResolvingCase(THREE_ROUNDS, 30, limited=1),
    "second of three rounds, solved": ResolvingCase(THREE_ROUNDS, 1000, limited=1),
    "first of two, no-limit, rough": ResolvingCase(NO_LIMIT, 30, "1x, a", limited=0),
    "first of two, no-limit, solved": ResolvingCase(NO_LIMIT, 1000, "1x, a", limited=0),
    "other bets": ResolvingCase(NO_LIMIT, 1000, "1x, a / 50%, a; a", "1x, a / 50%, 1x, 2x, a; a"),
}
