"""Judges of kilt's rules: hands are played in kilt and replayed, step by step, by two other implementations of poker.

open_spiel's `universal_poker` runs on the code of the ACPC server, which is the reference for these rules; pokerkit
shares no code with it. A `Table` is a game set up in one of them, a `Hand` is one hand on it. At each decision both
sides must name the same player, the same chips, the same legal actions and the same bounds of a raise; at the end, the
same payoffs. Games small enough to be walked through completely are compared with open_spiel's own versions of them.

Run ``python tests/oracles.py --hands 20000`` for a long check.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import pokerkit
import pyspiel

from kilt.cards.deck import Deck
from kilt.errors import GameError
from kilt.games.game import CHANCE, REVEAL, TERMINAL, Board, Game, Hands, Position
from kilt.games.gamedef import UNLIMITED, UNLIMITED_RAISES, GameDef, load_definition
from kilt.games.holdem import CALL, FOLD, Betting, Holdem

LISTED = 500  # raises that are compared one by one; where there are more, their bounds and number have to do


class DisagreementError(AssertionError):
    """Two implementations differ about the rules."""


class Deal(NamedTuple):
    """The cards of a hand, by number: each player's, and the board up to the last round."""

    holes: tuple[tuple[int, ...], tuple[int, ...]]
    board: Board


class Decision(NamedTuple):
    """What a player is asked."""

    actor: int
    round: int
    spent: tuple[int, ...]  # chips each player has put in
    fold: bool
    call: bool
    raises: tuple[int, int] | None  # the least and the most to raise to, in chips over the whole hand


class Hand(Protocol):
    """A hand in another implementation, with kilt's numbers for players and its labels for actions."""

    def decision(self) -> Decision | None:
        """What comes next; None when the hand is over."""

    def act(self, action: str) -> None:
        """Take an action."""

    def payoffs(self) -> tuple[float, ...]:
        """What each player has won, in chips."""

    def history(self) -> str | None:
        """The betting as an ACPC state has it, if the implementation writes that."""


Table: TypeAlias = Callable[[Deal], Hand]


# open_spiel ----------------------------------------------------------------------------------------------------------

SPIEL_FOLD, SPIEL_CALL, SPIEL_BET = 0, 1, 2


class OpenSpielTable:
    """A game in open_spiel. Its short decks have the lowest ranks, ACPC's the highest: cards match by their order."""

    def __init__(self, rules: GameDef) -> None:
        self.rules = rules
        self.game = pyspiel.load_game("universal_poker", self._parameters())

    def _parameters(self) -> dict[str, Any]:
        def row(values: tuple[int, ...], origin: int = 0) -> str:
            return " ".join(str(value + origin) for value in values)

        rules = self.rules
        parameters: dict[str, Any] = {
            "betting": rules.betting,
            "numPlayers": rules.players,
            "numRounds": rules.rounds,
            "blind": row(rules.blinds),
            "firstPlayer": row(rules.first_player, origin=1),
            "maxRaises": row(rules.max_raises),
            "numSuits": rules.suits,
            "numRanks": rules.ranks,
            "numHoleCards": rules.hole_cards,
            "numBoardCards": row(rules.board_cards),
        }
        if rules.betting == "nolimit":
            return parameters | {"stack": row(rules.stacks), "bettingAbstraction": "fullgame"}
        assert set(rules.stacks) == {UNLIMITED}, "open_spiel takes no notice of the stacks of a limit game"
        return parameters | {"raiseSize": row(rules.raise_sizes), "bettingAbstraction": "fcpa"}

    def __call__(self, deal: Deal) -> OpenSpielHand:
        """Deal the private cards."""
        return OpenSpielHand(self.game.new_initial_state(), self.rules, deal)


class OpenSpielHand:
    """A hand in open_spiel. A raise is numbered by the chips it goes to, or is `SPIEL_BET` in a limit game."""

    def __init__(self, state: pyspiel.State, rules: GameDef, deal: Deal) -> None:
        self.state = state
        self.limit = rules.betting == "limit"
        self.cards = iter((*deal.holes[0], *deal.holes[1], *deal.board))
        self._deal()

    def _deal(self) -> None:
        while self.state.is_chance_node():
            self.state.apply_action(next(self.cards))

    def decision(self) -> Decision | None:
        """What comes next; None when the hand is over."""
        if self.state.is_terminal():
            return None
        legal, actor, public = self.state.legal_actions(), self.state.current_player(), self.state.to_struct()
        fold, call = SPIEL_FOLD in legal[:2], SPIEL_CALL in legal[:2]
        sizes = legal[fold + call :]
        if self.limit and sizes:
            assert sizes == [SPIEL_BET]
            sizes = [self.state.child(SPIEL_BET).to_struct().player_contributions[actor]]
        if sizes and len(sizes) != sizes[-1] - sizes[0] + 1:
            raise DisagreementError(f"open_spiel leaves out raises between {sizes[0]} and {sizes[-1]}")
        bounds = (sizes[0], sizes[-1]) if sizes else None
        spent = tuple(public.player_contributions)
        return Decision(actor, public.betting_history.count("/"), spent, fold, call, bounds)

    def act(self, action: str) -> None:
        """Take an action, and deal what follows."""
        named = {FOLD: SPIEL_FOLD, CALL: SPIEL_CALL, "r": SPIEL_BET}
        self.state.apply_action(named[action] if action in named else int(action[1:]))
        self._deal()

    def payoffs(self) -> tuple[float, ...]:
        """What each player has won, in chips."""
        return tuple(self.state.returns())

    def history(self) -> str:
        """The betting as an ACPC state has it."""
        return str(self.state.to_struct().betting_history)


class LimitStacksTable:
    """A limit game with stacks in open_spiel, which ignores the stacks of limit games: as a no-limit game.

    No-limit betting has the same players, caps and all-ins; a limit raise goes to one of its levels.
    """

    def __init__(self, rules: GameDef) -> None:
        self.rules = rules
        self.table = OpenSpielTable(replace(rules, betting="nolimit", raise_sizes=()))

    def __call__(self, deal: Deal) -> LimitStacksHand:
        """Deal the private cards."""
        return LimitStacksHand(self.table(deal), self.rules)


class LimitStacksHand:
    """A hand of a limit game that open_spiel plays as a no-limit game."""

    def __init__(self, hand: OpenSpielHand, rules: GameDef) -> None:
        self.hand, self.rules = hand, rules

    def decision(self) -> Decision | None:
        """What comes next; the raise goes up by the size of the round, or to all-in."""
        decision = self.hand.decision()
        if decision is None or decision.raises is None:
            return decision
        to = min(max(decision.spent) + self.rules.raise_sizes[decision.round], self.rules.stacks[decision.actor])
        assert decision.raises[0] <= to <= decision.raises[1]
        return decision._replace(raises=(to, to))

    def act(self, action: str) -> None:
        """Take an action, and deal what follows."""
        decision = self.decision()
        self.hand.act(f"r{decision.raises[0]}" if action == "r" and decision and decision.raises else action)

    def payoffs(self) -> tuple[float, ...]:
        """What each player has won, in chips."""
        return self.hand.payoffs()

    def history(self) -> str:
        """The betting as an ACPC state has it: raises of limit games have no number."""
        return re.sub(r"\d+", "", self.hand.history())


# pokerkit ------------------------------------------------------------------------------------------------------------

AUTOMATIC = tuple(
    step
    for step in pokerkit.Automation
    if step not in (pokerkit.Automation.HOLE_DEALING, pokerkit.Automation.BOARD_DEALING)
)


class PokerKitTable:
    """A heads-up hold'em game in pokerkit, from its parts.

    Its own `FixedLimitTexasHoldem` allows a fourth raise before the flop; `NoLimitTexasHoldem` has the full deck only.
    """

    def __init__(self, rules: GameDef) -> None:
        # pokerkit's own order: player 0 has the big blind and speaks first in all rounds but the first one.
        assert rules.players == 2 and rules.blinds[0] > rules.blinds[1]
        assert rules.first_player == (1, *[0] * (rules.rounds - 1))
        self.rules = rules
        self.deck = tuple(pokerkit.Card.parse("".join(rules.deck.names)))
        self.streets = tuple(map(self._street, range(rules.rounds)))

    def _street(self, round: int) -> pokerkit.Street:  # noqa: A002
        rules = self.rules
        most = rules.max_raises[round]
        return pokerkit.Street(
            card_burning_status=False,
            hole_dealing_statuses=(False,) * (0 if round else rules.hole_cards),
            board_dealing_count=rules.board_cards[round],
            draw_status=False,
            opening=pokerkit.Opening.POSITION,
            min_completion_betting_or_raising_amount=(rules.raise_sizes or (rules.big_blind,) * rules.rounds)[round],
            max_completion_betting_or_raising_count=None if most == UNLIMITED_RAISES else most,
        )

    def __call__(self, deal: Deal) -> PokerKitHand:
        """Deal the private cards."""
        limit = self.rules.betting == "limit"
        state = pokerkit.State(
            AUTOMATIC,
            self.deck,  # type: ignore[arg-type]
            (pokerkit.StandardHighHand,),
            self.streets,
            pokerkit.BettingStructure.FIXED_LIMIT if limit else pokerkit.BettingStructure.NO_LIMIT,
            True,
            0,
            self.rules.blinds[::-1],  # the small blind comes first in the list, but belongs to player 1 when heads-up
            0,
            self.rules.stacks,
            2,
        )
        for player in (0, 1):
            state.deal_hole(self.rules.deck.name(deal.holes[player]), player)
        return PokerKitHand(state, self.rules.deck, deal)


class PokerKitHand:
    """A hand in pokerkit, where raises go to an amount of this round."""

    def __init__(self, state: pokerkit.State, deck: Deck, deal: Deal) -> None:
        self.state = state
        self.cards = iter(deck.names[card] for card in deal.board)
        self._deal()

    def _deal(self) -> None:
        while self.state.board_dealing_count:
            self.state.deal_board(next(self.cards))

    def _spent(self) -> tuple[int, ...]:
        return tuple(self.state.starting_stacks[p] - self.state.stacks[p] for p in (0, 1))

    def _before(self) -> int:
        """Chips that each player spent in earlier rounds."""
        first, second = (spent - bet for spent, bet in zip(self._spent(), self.state.bets, strict=True))
        assert first == second
        return first

    def decision(self) -> Decision | None:
        """What comes next; None when the hand is over."""
        state = self.state
        if state.actor_index is None:
            assert not state.status
            return None
        least = state.min_completion_betting_or_raising_to_amount
        most = state.max_completion_betting_or_raising_to_amount
        bounds = None
        if least is not None and most is not None:
            bounds = self._before() + least, self._before() + most
        assert state.street_index is not None
        return Decision(
            state.actor_index, state.street_index, self._spent(), state.can_fold(), state.can_check_or_call(), bounds
        )

    def act(self, action: str) -> None:
        """Take an action, and deal what follows."""
        if action == FOLD:
            self.state.fold()
        elif action == CALL:
            self.state.check_or_call()
        else:
            self.state.complete_bet_or_raise_to(int(action[1:]) - self._before() if action[1:] else None)
        self._deal()

    def payoffs(self) -> tuple[float, ...]:
        """What each player has won, in chips."""
        return tuple(map(float, self.state.payoffs))

    def history(self) -> None:
        """pokerkit does not write ACPC states."""


TABLES: dict[str, Callable[[GameDef], Table]] = {"open_spiel": OpenSpielTable, "pokerkit": PokerKitTable}


# kilt ----------------------------------------------------------------------------------------------------------------


def accepts(position: Betting, action: str) -> bool:
    """Whether kilt lets the actor do that."""
    try:
        position.after(action)
    except GameError:
        return False
    return True


def kilt_decision(position: Betting) -> Decision:
    """What kilt asks the actor; its three accounts of what is legal must agree: `after`, `raise_bounds`, `actions`."""
    bounds = position.raise_bounds()
    decision = Decision(
        position.actor, position.round, position.spent, accepts(position, FOLD), accepts(position, CALL), bounds
    )
    labels = [FOLD] * decision.fold + [CALL] * decision.call
    if position.rules.betting == "limit":
        legal, illegal = (["r"], ["r20"]) if bounds else ([], ["r"])
        listed = labels + legal
    else:
        least, most = bounds or (1, 0)
        level, stack = max(position.spent), position.rules.stacks[position.actor]
        legal = [f"r{least}", f"r{most}"] if bounds else []
        illegal = ["r", f"r{least - 1}", f"r{most + 1}"] if bounds else ["r", f"r{level + 1}", f"r{stack}"]
        listed = labels + [f"r{size}" for size in range(least, most + 1)] if most - least < LISTED else []
    wrong = [action for action in legal if not accepts(position, action)]
    wrong += [action for action in illegal if accepts(position, action)]
    if wrong or (listed and position.actions() != tuple(listed)):
        raise DisagreementError(
            f"kilt contradicts itself after {position.history!r}: {decision}, but {wrong or 'actions()'}"
        )
    return decision


# Replaying -----------------------------------------------------------------------------------------------------------

Choice: TypeAlias = Callable[[Betting], str]


def random_deal(rules: GameDef, rng: random.Random) -> Deal:
    """Shuffle and deal."""
    each, board = rules.hole_cards, sum(rules.board_cards)
    cards = rng.sample(range(rules.deck.size), 2 * each + board)
    return Deal((tuple(cards[:each]), tuple(cards[each : 2 * each])), tuple(cards[2 * each :]))


def random_action(position: Betting, rng: random.Random) -> str:
    """Fold seldom, and raise to where the rules have their edges: the bounds, a few chips from all-in, either stack."""
    bounds, luck = position.raise_bounds(), rng.random()
    if position.facing and luck < 0.06:
        return FOLD
    if bounds is None or luck < 0.5:
        return CALL
    if position.rules.betting == "limit":
        return "r"
    least, most = bounds
    mine, theirs = position.rules.stacks[position.actor], position.rules.stacks[1 - position.actor]
    edge = rng.choice([mine, theirs])  # where somebody is all-in
    sizes = [
        (8, least),
        (6, least + rng.randint(0, least)),
        (2, rng.randint(least, most)),
        (1, edge + rng.randint(-1, 1)),
        (1, edge - rng.randint(0, position.last_raise)),  # leaves less than what the next raise would have to be
        (1, most),
    ]
    [(_, size)] = rng.choices(sizes, weights=[weight for weight, _ in sizes])
    return f"r{min(max(size, least), most)}"


def replay(game: Holdem, table: Table, deal: Deal, choose: Choice) -> Counter[str]:
    """Play a hand in kilt and on the other table; count what happened, or raise `DisagreementError`."""
    position, board, hand = game.start(), deal.board[:0], table(deal)
    seen: Counter[str] = Counter(hands=1)

    def compare(what: str, kilt: object, other: object) -> None:
        if kilt != other:
            cards = [game.deck.name(held) for held in deal.holes]
            raise DisagreementError(
                f"{what} after {position.history!r} with {'|'.join(cards)}, board {game.deck.name(deal.board)}, "
                f"stacks {game.rules.stacks}: kilt has {kilt}, {type(hand).__name__} has {other}"
            )

    while position.actor != TERMINAL:
        if position.actor == CHANCE:
            position = position.after(REVEAL)
            board = deal.board[: game.rules.board_size(position.round)]
            continue
        compare("what may be done", kilt_decision(position), hand.decision())
        action = choose(position)
        seen.update({"decisions": 1, action[0]: 1})
        position = position.after(action)
        hand.act(action)

    compare("what comes next", None, hand.decision())
    if hand.history() is not None:
        compare("the betting", position.history, hand.history())
    hands = tuple(game.deck.hole_index(held) for held in deal.holes)
    payoffs = game.payoffs(position, hands, board)  # type: ignore[arg-type]
    compare("the payoff", payoffs, hand.payoffs())
    if position.folded is None:
        all_in = any(spent == stack for spent, stack in zip(position.spent, game.rules.stacks, strict=True))
        seen.update({"showdowns": 1, "all-ins": all_in, "ties": payoffs[0] == 0})
    return seen


def replay_many(rules: GameDef, oracle: str, hands: int, seed: int = 0) -> Counter[str]:
    """Replay random hands on a table of `oracle`; count what happened, or raise `DisagreementError`."""
    game, table = Holdem(rules), TABLES[oracle](rules)
    rng = random.Random(seed)
    seen: Counter[str] = Counter()
    for _ in range(hands):
        seen += replay(game, table, random_deal(rules, rng), lambda position: random_action(position, rng))
    return seen


def replay_all(rules: GameDef, table: Table, seed: int = 0) -> Counter[str]:
    """Replay every betting sequence of a limit game, with random cards; count what happened."""
    game, rng = Holdem(rules), random.Random(seed)
    seen: Counter[str] = Counter()
    unfinished: list[tuple[str, ...]] = [()]
    while unfinished:
        before = unfinished.pop()
        rest = iter(before)
        taken: list[str] = []

        def choose(position: Betting) -> str:
            first, *others = [next(rest, "")] if len(taken) < len(before) else position.actions()  # noqa: B023
            unfinished.extend((*taken, other) for other in others)  # noqa: B023
            taken.append(first)  # noqa: B023
            return first

        seen += replay(game, table, random_deal(rules, rng), choose)
    return seen


def compare_trees(game: Game, spiel: str, label: Callable[[Position, str], str]) -> Counter[str]:
    """Walk through all of a small game in kilt and in open_spiel; count what was seen, or raise `DisagreementError`.

    Private hands and what is revealed must be numbered alike; `label` turns open_spiel's name of an action into kilt's.
    Each public position comes with all the private hands that players may hold there.
    """
    Node: TypeAlias = tuple[Hands, Board, pyspiel.State]
    seen: Counter[str] = Counter()

    def compare(what: str, position: Position, kilt: object, other: object, *dealt: object) -> None:
        if kilt != other:
            where = f"after {position.history!r} with {dealt}"
            raise DisagreementError(f"{what} {where}: kilt has {kilt}, open_spiel has {other}")

    def outcomes(state: pyspiel.State) -> dict[int, float]:
        return {outcome: round(chance, 12) for outcome, chance in state.chance_outcomes()}

    def visit(position: Position, nodes: list[Node]) -> None:
        seen.update({{CHANCE: "chance nodes", TERMINAL: "endings"}.get(position.actor, "decisions"): len(nodes)})
        following: dict[str, list[Node]] = {action: [] for action in position.actions()}
        legal = sorted(following)
        for hands, board, state in nodes:
            actor = TERMINAL if state.is_terminal() else state.current_player()
            compare("the actor", position, position.actor, actor, hands, board)
            if actor == TERMINAL:
                payoffs = game.payoffs(position, hands, board)
                compare("the payoff", position, payoffs, tuple(state.returns()), hands, board)
            elif actor == CHANCE:
                reveals = game.reveals(position, hands, board)
                kilt = {revealed[-1]: round(chance, 12) for revealed, chance in reveals}
                compare("what may be revealed", position, kilt, outcomes(state), hands, board)
                following[REVEAL] += [(hands, revealed, state.child(revealed[-1])) for revealed, _ in reveals]
            else:
                actions = {label(position, state.action_to_string(a)): a for a in state.legal_actions()}
                compare("what may be done", position, legal, sorted(actions), hands, board)
                for action, number in actions.items():
                    following[action].append((hands, board, state.child(number)))
        for action, after in following.items():
            visit(position.after(action), after)

    root = pyspiel.load_game(spiel).new_initial_state()
    dealt = {}
    for first, chance in root.chance_outcomes():
        for second, other in root.child(first).chance_outcomes():
            dealt[first, second] = round(chance * other, 12)
    deals = {(int(i), int(j)): round(float(p), 12) for (i, j), p in np.ndenumerate(game.deals()) if p}
    compare("the deal", game.start(), deals, dealt)
    visit(game.start(), [(hands, (), root.child(hands[0]).child(hands[1])) for hands in deals])
    return seen


# Games ---------------------------------------------------------------------------------------------------------------


def no_limit(ranks: int, *stacks: int) -> GameDef:
    """No-limit hold'em with the highest ranks only, blinds 50 and 100, and given stacks: the big blind's first."""
    return GameDef.parse(
        f"""GAMEDEF
        nolimit
        numPlayers = 2
        numRounds = 4
        stack = {stacks[0]} {stacks[1]}
        blind = 100 50
        firstPlayer = 2 1 1 1
        numSuits = 4
        numRanks = {ranks}
        numHoleCards = 2
        numBoardCards = 0 3 1 1
        END GAMEDEF"""
    )


def limit(*stacks: int) -> GameDef:
    """Heads-up limit hold'em with given stacks: the big blind's first."""
    text = str(load_definition("holdem.limit.2p"))
    return GameDef.parse(text.replace("numRounds = 4", f"numRounds = 4\nstack = {stacks[0]} {stacks[1]}"))


def short_limit(*stacks: int) -> GameDef:
    """Limit hold'em with six ranks, two rounds, bets of 2 and 4, and given stacks: the big blind's first."""
    return GameDef.parse(
        f"""GAMEDEF
        limit
        numPlayers = 2
        numRounds = 2
        stack = {stacks[0]} {stacks[1]}
        blind = 2 1
        raiseSize = 2 4
        maxRaises = 3 3
        firstPlayer = 2 1
        numSuits = 4
        numRanks = 6
        numHoleCards = 2
        numBoardCards = 0 3
        END GAMEDEF"""
    )


MAIN = {
    "holdem.limit.2p": load_definition("holdem.limit.2p"),
    "holdem.nolimit.2p": load_definition("holdem.nolimit.2p"),
    "short.nolimit 1000-1000": no_limit(6, 1000, 1000),
}
EDGES = {
    "royal.limit.2p": load_definition("royal.limit.2p"),
    "holdem.2-4": load_definition("holdem.2-4"),
    "short.nolimit 1000-430": no_limit(5, 1000, 430),
    "short.nolimit 430-1000": no_limit(5, 430, 1000),
    "short.nolimit 101-101": no_limit(6, 101, 101),
    "short.nolimit 100-1000": no_limit(6, 100, 1000),  # the big blind is all of a stack
    "nolimit 150-150": no_limit(13, 150, 150),
    "nolimit 150-1000": no_limit(13, 150, 1000),
    "nolimit 1000-150": no_limit(13, 1000, 150),
    "nolimit 250-260": no_limit(13, 250, 260),
}
# open_spiel takes no notice of the stacks of a limit game.
LIMIT_STACKS = {
    "holdem.limit 47-47": limit(47, 47),
    "holdem.limit 33-64": limit(33, 64),
    "holdem.limit 118-15": limit(118, 15),
}


def cases() -> Iterator[tuple[str, GameDef, str]]:
    """Every game with every oracle that can play it."""
    for oracle in TABLES:
        games = MAIN | EDGES | (LIMIT_STACKS if oracle == "pokerkit" else {})
        for name, rules in games.items():
            yield name, rules, oracle


def main() -> None:
    """Replay many hands of each game and print what happened."""
    parser = argparse.ArgumentParser(description="Replay random hands of kilt in open_spiel and pokerkit.")
    parser.add_argument("--hands", type=int, default=20_000, help="hands of each game (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the cards and actions (default: %(default)s)")
    parser.add_argument("--oracle", choices=TABLES, help="only this one")
    parser.add_argument("--main", action="store_true", help="only the main games, not those with odd stacks")
    options = parser.parse_args()
    columns = "hands", "decisions", "f", "c", "r", "showdowns", "all-ins", "ties"
    heads = *columns[:2], "folds", "calls", "raises", *columns[5:], "seconds"
    print(f"{'game':24} {'oracle':10}", *(f"{head:>9}" for head in heads))  # noqa: T201
    for name, rules, oracle in cases():
        if (options.oracle or oracle) != oracle or (options.main and name not in MAIN):
            continue
        begun = time.perf_counter()
        seen = replay_many(rules, oracle, options.hands, options.seed)
        figures = [*(seen[column] for column in columns), round(time.perf_counter() - begun)]
        print(f"{name:24} {oracle:10}", *(f"{figure:9}" for figure in figures), flush=True)  # noqa: T201


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
