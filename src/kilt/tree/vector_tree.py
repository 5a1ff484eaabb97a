"""Build public trees as arrays, for computations with vectors over all private hands.

In poker, a block of betting follows every chance node. Bluff has no public chance events, and its bids form a tree of
millions of nodes. There, a block begins after the first of the higher bids: the possible continuations depend only on
the last bid and on the player to act, so a few blocks serve all histories; each history has separate rows in tables.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import comb, nan
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kilt.arrays import FloatArray, IntArray
from kilt.cards.boards import (
    Boards,
    add_cards,
    canonical_boards,
    card_permutations,
    hand_permutations,
    known_board,
    suit_symmetries,
)
from kilt.cards.deck import FULL
from kilt.cards.equity import hand_list, hands_as_arrays
from kilt.cards.hands import hand_tables
from kilt.errors import GameError
from kilt.games.bluff import FACES, STAR, Bluff
from kilt.games.game import CHANCE, TERMINAL, Game
from kilt.games.holdem import Holdem
from kilt.games.stud import Stud
from kilt.games.subgame import ContinuationValues, Subgame, pair_weight
from kilt.tree import vector_arrays as kinds
from kilt.tree.betting import SHOWN, BettingTree, Menu, betting_tree, payoffs_of
from kilt.tree.vector_arrays import Dice, Flags, Nodes, VectorTree
from kilt.tree.walk_kernels import ROUNDING

NO_PAIR_VALUES = np.zeros((0, 0, 0), dtype=np.float32)
NODES_PER_BATCH = 128  # nodes of the last round whose leaves are evaluated together
LOWER_BLOCK = 12  # number of bids in each block of Bluff after the first


class ActionBlocks(NamedTuple):
    """A game's public actions as arrays, with the nodes of each betting round adjacent.

    Parents come before children, and siblings are adjacent.
    """

    actor: npt.NDArray[np.int8]  # [node] 0, 1, CHANCE where another block opens, or TERMINAL
    round: npt.NDArray[np.int8]  # [node]
    first_child: npt.NDArray[np.int32]  # [node]
    children: npt.NDArray[np.int32]  # [node]
    opens: npt.NDArray[np.int32]  # [node] the block it opens
    block: npt.NDArray[np.int32]  # [block + 1] first node
    kind: npt.NDArray[np.int8]  # [node] kind of a leaf
    stake: FloatArray  # [player, node]
    extra: FloatArray  # [player, node]
    rake: FloatArray  # [node]
    face: npt.NDArray[np.int32]  # [node]
    called: npt.NDArray[np.int32]  # [node] index in `payoffs`
    payoffs: FloatArray  # of called bids: see `Dice`


def vector_tree(game: Game, menu: Menu | None = None, *, by_board: bool = True) -> VectorTree:
    """Build a game's public tree as arrays for compiled code.

    In no-limit games, `menu` selects the raises.

    If `by_board` is False, tables have one set of rows for all boards of a round.

    Raises GameError if vectors of hands do not support the game.
    """
    if isinstance(game, Holdem):
        actions, deal = _bets(game, menu), _deal_cards(game)
        hands, strengths = hands_as_arrays(game.holes, game.deck), hand_tables(_seen(game), game.deck)
    elif isinstance(game, Bluff):
        actions, deal = _bids(game), _roll_dice(game)
        hands, strengths = hand_list(FULL), hand_tables(7)  # unused
    elif isinstance(game, Stud):
        raise GameError(f"{game.name} is a stud game, which vectors of hands do not support: use a flat tree")
    else:
        raise GameError(f"walks with vectors of hands do not support {game.name}: use a flat tree")
    boards = deal.boards
    rounds = len(boards)
    deciding, revealing = actions.actor >= 0, np.flatnonzero(actions.actor == CHANCE)
    kind = np.where(deciding, kinds.DECISION, actions.kind).astype(np.int8)
    kind[revealing] = kinds.REVEAL

    begins = np.repeat(actions.block[:-1], np.diff(actions.block))
    before = np.concatenate([[0], np.cumsum(np.where(deciding, actions.children, 0))])
    block_rows = before[actions.block[1:]] - before[actions.block[:-1]]
    last = actions.round == rounds - 1
    place = np.arange(len(kind)) - begins
    place += np.repeat(_shared_places(actions, last, isinstance(game, Holdem)), np.diff(actions.block))

    entry_node, entry_block = np.append(-1, revealing), np.append(0, actions.opens[revealing])
    entry_round = actions.round[actions.block[entry_block]]
    ends = np.cumsum(block_rows[entry_block])
    entry_start = np.searchsorted(entry_round, np.arange(rounds + 1))
    row_start = np.concatenate([[0], ends])[entry_start]
    rows = np.diff(row_start)

    numbers = np.array([len(b.weight) for b in boards])
    board_start = np.concatenate([[0], np.cumsum(numbers)])
    board = np.zeros((board_start[-1], boards[-1].cards.shape[1]), dtype=np.int8)
    first_board = np.full(board_start[-1] + 1, board_start[-1])
    for r, b in enumerate(boards):
        board[board_start[r] : board_start[r + 1], : b.cards.shape[1]] = b.cards
        if r > 0:
            first_board[board_start[r - 1] : board_start[r]] = board_start[r] + b.first_child[:-1]
    weight = np.concatenate([b.weight for b in boards])
    nodes = Nodes(
        kind=kind,
        actor=actions.actor,
        first_child=actions.first_child,
        children=actions.children,
        row=np.where(deciding, before[:-1] - before[begins], actions.called).astype(np.int32),
        place=place.astype(np.int32),
        stake=actions.stake,
        extra=actions.extra,
        rake=actions.rake,
        face=actions.face,
        block=actions.block,
    )
    return VectorTree(
        nodes=nodes,
        dice=Dice(matching=_matching(game), called=actions.payoffs),
        deck=hands,
        strengths=strengths,
        entry_start=entry_start.astype(np.int32),
        entry_node=entry_node.astype(np.int32),
        entry_block=entry_block.astype(np.int32),
        entry_row=(ends - block_rows[entry_block] - row_start[entry_round]).astype(np.int32),
        rows=(rows if by_board else np.zeros(rounds)).astype(np.int32),
        table_start=np.concatenate([[0], np.cumsum(rows * (numbers if by_board else 1))]),
        board_start=board_start,
        board=board,
        board_size=np.array([b.cards.shape[1] for b in boards], dtype=np.int32),
        first_board=first_board,
        weight=weight,
        weight_before=np.concatenate([[0], np.cumsum(weight, dtype=np.int64)]),
        symmetry=np.concatenate([b.symmetry for b in boards]),
        poker=isinstance(game, Holdem),
        hands=np.array(deal.hands, dtype=np.int32),
        noise=ROUNDING * deal.prior[0].sum() * max(1.0, np.abs(actions.stake).max(initial=0.0)),
        moved=deal.moved,
        renamed=card_permutations(game.deck) if isinstance(game, Holdem) else np.zeros((1, 0), dtype=np.int8),
        chance=deal.chance,
        odds=deal.odds,
        prior=deal.prior,
        held=deal.prior > 0,
        compatible_weight=deal.compatible_weight,
        norm=deal.norm,
        pair_values=NO_PAIR_VALUES if (known := _continued(game)) is None else known.values,
    )


def _shared_places(actions: ActionBlocks, last: Flags, poker: bool) -> IntArray:
    """Return, for each block, the place of its first node in the workspace.

    Blocks of the last round share places, but a few blocks in a row have separate ones, so that a pass can evaluate
    their leaves together. Blocks of Bluff have none, because several histories share a block.
    """
    begin, size = actions.block[:-1].astype(np.int64), np.diff(actions.block)
    first = int(np.count_nonzero(~last))
    used = 0
    for block in np.flatnonzero(last[begin]).tolist():
        if not poker or used + size[block] > NODES_PER_BATCH:
            used = 0
        begin[block], used = first + used, used + int(size[block])
    return begin


class Dealing(NamedTuple):
    """A game's chance events: its boards and hands, with their probabilities."""

    boards: Sequence[Boards]
    hands: tuple[int, ...]
    moved: npt.NDArray[np.int32]
    prior: FloatArray
    norm: float
    compatible_weight: float
    chance: FloatArray
    odds: FloatArray


def _seen(game: Holdem) -> int:
    """Return the number of cards that a player sees at a showdown."""
    return game.rules.hole_cards + sum(game.rules.board_cards)


def _deal_cards(game: Holdem) -> Dealing:
    """Return the chance events of a poker game, starting from the board that is already known."""
    rules, deck, prior, known = game.rules, game.deck, game.weights, game.known_board
    layout = rules.board_cards[game.start().round + 1 :]
    chance, odds = np.ones(len(layout) + 1), np.ones((len(layout) + 1, 3))
    left = deck.size - 2 * rules.hole_cards - len(known)
    for r, count in enumerate(layout, start=1):
        chance[r] = 1 / comb(left, count)
        odds[r] = [comb(left + unseen * rules.hole_cards, count) * chance[r] for unseen in (2, 1, 0)]
        left -= count
    moved, alike = _renamed(game)
    boards = [known_board(known, deck, alike)]
    for count in layout:
        boards.append(add_cards(boards[-1], count, deck))
    whole = pair_weight(prior, game.holes, deck.size)
    even = bool((prior == 1).all())  # otherwise the probability depends on the hand
    return Dealing(
        boards, (prior.shape[1],) * 2, moved, prior, 1 / whole, whole / len(prior[0]) if even else nan, chance, odds
    )


def _renamed(game: Holdem) -> tuple[npt.NDArray[np.int32], int]:
    """Return the hand that each hand becomes under each suit permutation, and the set of valid permutations.

    Valid permutations, a bit each, change neither the board nor the weights and marks of hands. Rows of others are
    undefined.
    """
    deck, told = game.deck, np.concatenate([game.weights, game.marks])
    every, symmetry = hand_permutations(deck, game.rules.hole_cards), suit_symmetries(deck, game.known_board)
    place = np.full(every.shape[1], -1, dtype=np.int32)
    place[game.numbers] = np.arange(len(game.numbers))
    moved = place[every[:, game.numbers]]
    kept = [
        p
        for p in range(len(moved))
        if symmetry >> p & 1 and (moved[p] >= 0).all() and (told[:, moved[p]] == told).all()
    ]
    # The same memory order for all games, so that kernels are compiled once.
    return np.maximum(moved, 0, order="C"), sum(1 << p for p in kept)


def _roll_dice(game: Bluff) -> Dealing:
    """Return the chance events of Bluff: dice instead of hands, no boards, and bids in two rounds."""
    dealt = game.deals()
    prior = np.zeros((2, max(dealt.shape)))
    prior[0, : dealt.shape[0]], prior[1, : dealt.shape[1]] = dealt.sum(axis=1), dealt.sum(axis=0)
    moved = np.arange(max(dealt.shape), dtype=np.int32)[None]
    return Dealing(canonical_boards((0, 0)), dealt.shape, moved, prior, 1.0, 1.0, np.ones(2), np.ones((2, 3)))


def _bets(game: Holdem, menu: Menu | None) -> ActionBlocks:
    """Return the betting of a poker game as arrays."""
    tree = betting_tree(game, menu)
    nodes = tree.nodes
    count = len(nodes.actor)
    kind, stake, opens = np.zeros(count, dtype=np.int8), np.zeros((2, count)), np.zeros(count, dtype=np.int32)
    ends = np.flatnonzero(nodes.leaf >= 0)
    kind[ends] = np.where(tree.folded == SHOWN, kinds.SHOWDOWN, kinds.FOLD)
    pot = np.zeros(count)
    pot[ends] = tree.stake
    extra = np.zeros((2, count if game.tilts.any() else 0))
    payoffs = payoffs_of(game, tree.stake, tree.folded)
    for player, (wins, loses) in enumerate(((2, 0), (0, 2))):
        stake[player, ends] = np.where(tree.folded == SHOWN, -payoffs[:, player, loses], payoffs[:, player, loses])
        if extra.size:
            won = payoffs[:, player, wins] + payoffs[:, player, loses]
            extra[player, ends] = np.where(tree.folded == SHOWN, won, 0.0)
    revealing = np.flatnonzero(nodes.actor == CHANCE)
    opens[revealing] = np.searchsorted(nodes.block, nodes.first_child[revealing])
    none, called = np.zeros(count, dtype=np.int32), np.zeros((2, 1, 1, 1))
    rounds = nodes.round - np.int8(game.start().round)
    fields = (nodes.actor, rounds, nodes.first_child, nodes.children, opens, nodes.block)
    blocks = ActionBlocks(*fields, kind, stake, extra, game.rake(pot), none, none, called)
    return blocks if (known := _continued(game)) is None else _continuing(blocks, tree, known)


def _continued(game: Game) -> ContinuationValues | None:
    """Return the values that replace showdowns if a game ends early, or None for other games."""
    return game.continued if isinstance(game, Subgame) else None


def _continuing(blocks: ActionBlocks, tree: BettingTree, known: ContinuationValues) -> ActionBlocks:
    """Add a decision to each showdown of a game that ends early: the choice of how the game continues."""
    shown = np.flatnonzero(blocks.kind == kinds.SHOWDOWN)
    first, ways = np.array([known.places[tree.history(node)] for node in shown.tolist()]).reshape(-1, 2).T
    kind, stake, called = blocks.kind.copy(), blocks.stake.copy(), blocks.called.copy()
    actor, first_child, children = blocks.actor.copy(), blocks.first_child.copy(), blocks.children.copy()
    kind[shown], called[shown] = kinds.CONTINUED, first
    stake[:, shown] = np.abs(stake[:, shown]) * [[1], [-1]]
    several = ways > 1
    choices, number = shown[several], ways[several]
    actor[choices], children[choices] = known.chooser, number
    first_child[choices] = len(kind) + np.cumsum(number) - number
    above, more = np.repeat(choices, number), int(number.sum())
    place = np.arange(more) - np.repeat(np.cumsum(number) - number, number)

    def extended(array: npt.NDArray[Any], values: npt.ArrayLike) -> npt.NDArray[Any]:
        return np.concatenate([array, np.broadcast_to(np.asarray(values, array.dtype), (*array.shape[:-1], more))], -1)

    return blocks._replace(
        actor=extended(actor, TERMINAL),
        round=extended(blocks.round, 0),
        first_child=extended(first_child, 0),
        children=extended(children, 0),
        opens=extended(blocks.opens, 0),
        block=np.array([0, len(kind) + more], dtype=blocks.block.dtype),
        kind=extended(kind, kinds.CONTINUED),
        stake=extended(stake, stake[:, above]),
        rake=extended(blocks.rake, 0.0),
        face=extended(blocks.face, 0),
        called=extended(called, called[above] + place),
    )


class _Bid(NamedTuple):
    """A state of Bluff: the last bid (−1 before the first), the player to act, and whether the bid was called."""

    bid: int
    actor: int
    called: bool = False


def _bids(game: Bluff) -> ActionBlocks:
    """Return the bids of Bluff: one block of all histories up to the first higher bid, and blocks for the rest."""
    bids = sum(game.dice) * len(FACES)
    higher = max(bids - LOWER_BLOCK, 0)
    openings = [_Bid(-1, 0)] + [_Bid(bid, actor) for bid in range(higher, bids) for actor in (0, 1)]
    number = {opening: block for block, opening in enumerate(openings)}
    nodes: list[tuple[int, int, int, int, int, int, int, int]] = []
    block: list[int] = []
    for opening in openings:
        block.append(len(nodes))
        first = opening.bid < 0
        queue = deque([opening])
        while queue:
            here = queue.popleft()
            bid, actor, called = here
            opens = number[here] if first and bid >= higher and not called else 0
            following: list[_Bid] = []
            if not called and not opens:
                following = [_Bid(next_bid, 1 - actor) for next_bid in range(bid + 1, bids)]
                following += [_Bid(bid, actor, called=True)] * (bid >= 0)
            child = len(nodes) + len(queue) + 1
            who = TERMINAL if called else CHANCE if opens else actor
            nodes.append(
                (
                    who,
                    int(not first),
                    child,
                    len(following),
                    opens,
                    kinds.CALL_BLUFF,
                    bid % len(FACES),
                    2 * bid + actor,
                )
            )
            queue.extend(following)
    payoffs = [_called(game, bid, 1 - actor) for bid in range(bids) for actor in (0, 1)]
    actor, rounds, first_child, children, opens, kind, face, called = np.array(nodes, dtype=np.int32).T.copy()
    return ActionBlocks(
        actor.astype(np.int8),
        rounds.astype(np.int8),
        first_child,
        children,
        opens,
        np.array([*block, len(nodes)], dtype=np.int32),
        kind.astype(np.int8),
        np.zeros((2, len(nodes))),
        np.zeros((2, 0)),
        np.zeros(len(nodes)),
        face,
        called,
        np.stack([payoffs, -np.swapaxes(payoffs, 1, 2)]),
    )


def _matching(game: Holdem | Bluff) -> npt.NDArray[np.int8]:
    """Return, for each player, face and hand, how many dice show the face or a star."""
    most = max(len(game.hands(0)), len(game.hands(1))) if isinstance(game, Bluff) else 0
    matching = np.zeros((2, len(FACES), most), dtype=np.int8)
    if isinstance(game, Bluff):
        for player in (0, 1):
            for hand, roll in enumerate(game.hands(player)):
                for face, name in enumerate(FACES):
                    matching[player, face, hand] = sum(die in (name, FACES[STAR]) for die in roll)
    return matching


def _called(game: Bluff, bid: int, bidder: int) -> FloatArray:
    """Return the winnings of player 0 when a bid is called, by each player's number of matching dice."""
    table = np.zeros((max(game.dice) + 1,) * 2)
    for mine in range(game.dice[0] + 1):
        for theirs in range(game.dice[1] + 1):
            winner = bidder if mine + theirs > bid // len(FACES) else 1 - bidder
            table[mine, theirs] = game.payoff_if_won(winner)
    return table
