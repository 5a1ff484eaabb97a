"""Let a person play against an agent: parse the person's input, and describe actions in words.

A `Screen` shows the table, for example in a terminal. Chips are counted within the round, as at a real table: if each
player has put in 300 before the flop, ``bet 300`` puts in 300 more. (The ACPC writes ``r600`` for this bet, which
counts the whole hand.)

>>> from kilt.games import load_game
>>> start = load_game("holdem.nolimit.2p").start()
>>> read_action("call", start), read_action("r 300", start), read_action("1x", start), read_action("all-in", start)
('c', 'r300', 'r300', 'r20000')
>>> flop = start.after("r300").after("c").after("/")
>>> bet = flop.after("r600")
>>> read_action("bet 300", flop), describe_action(flop, "r600"), describe_action(bet, "r1500", third=True)
('r600', 'bet 300', 'raises to 1,200')
>>> read_action("150", start)
Traceback (most recent call last):
    ...
kilt.errors.PlayError: 150 is too little: raise to 200–20,000 chips
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from kilt.abstraction.actions import actions_of
from kilt.cards.hands import describe_hand
from kilt.errors import AbstractionError, KiltError, PlayError, quoted
from kilt.games.game import REVEAL
from kilt.games.gamedef import UNLIMITED
from kilt.games.holdem import CALL, FOLD, RAISE, Betting, Holdem, positions_of
from kilt.play.agent import Agent, Observation, agent_for_match
from kilt.play.dealer import Dealer, Hand

LEAVE = ("q", "quit", "exit", "leave")
ADVICE = ("?", "advice")
HELP = ("h", "help")

_CALLS = ("c", "call", "k", "check", "x")
USUAL_SIZES = ("50%", "75%", "1x", "2x")
_SIZES = {"all-in": "a", "all in": "a", "allin": "a", "min": "m", "pot": "1x"}  # words for bet sizes
_RAISE = re.compile(r"(?:(raise|bet|r|b)(?: ?to\b)? ?)?(.*)", re.DOTALL)
_CHIPS = re.compile(r"[0-9]{1,3}(?:[, _]?[0-9]{3})*|[0-9]{1,15}")
_POTS = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}) ?[%x]|[am]")


# Input -------------------------------------------------------------------------------------------------------------


def read_action(text: str, position: Betting) -> str:
    """Convert a person's input, such as ``bet 300``, to a legal action in ACPC notation.

    Raises PlayError for invalid input; its message says what the person may type. A call is accepted as a check if
    there is nothing to call. A check is refused if there is something to call, because the person might put in chips by
    mistake.
    """
    typed = " ".join(text.casefold().split())
    if typed in ("f", "fold"):
        if not position.facing:
            raise PlayError("there is nothing to fold to: checking is free, type c")
        return FOLD
    word, _, rest = typed.partition(" ")
    if word in _CALLS and (not rest or _CHIPS.fullmatch(rest)):
        return _call(word, rest, position)
    found = _RAISE.fullmatch(typed)
    assert found
    size = _SIZES.get(found[2], found[2]).replace("% ", "%").replace(" x", "x")
    if not ((size and (_CHIPS.fullmatch(size) or _POTS.fullmatch(size))) or (found[1] and not size)):
        asked = f"{quoted(text, 40)} is no action here" if typed else "nothing is typed"
        raise PlayError(f"{asked}: type {_keys(position)}, h for help or q to leave")
    return _raise(size, position)


def _call(word: str, rest: str, position: Betting) -> str:
    due = position.to_call
    if due and word in ("k", "check", "x"):
        raise PlayError(f"checking is not possible, there are {due:,} to call: type c to call or f to fold")
    if rest and _number(rest) != due:
        raise PlayError(f"{rest} is not what there is to call, {due:,}: type c alone")
    return CALL


def _raise(size: str, position: Betting) -> str:
    """Return the action for a raise.

    `size` is a number of chips or a word for a size, and may be empty in limit games.
    """
    bounds, stack = position.raise_bounds(), position.rules.stacks[position.actor]
    if bounds is None:
        if size == "a" and position.spent[position.actor] + position.to_call == stack:
            return CALL  # "all-in" is accepted as the call that puts in all chips
        raise PlayError(f"{_why_no_raise(position)}: type {_keys(position)}")
    before = position.opened_at
    least, most = bounds[0] - before, bounds[1] - before
    chips = _number(size) if _CHIPS.fullmatch(size) else None
    verb = _raise_verb(position)
    if position.rules.betting == "limit":
        if size and chips != least:
            raise PlayError(f"{size} is not possible, bets have one size here: type r to {verb} {least:,}")
        return RAISE
    if not size:
        raise PlayError(f"how much? Type r with {_span(least, most)} chips, or 50%, 1x, a")
    if chips is None:
        try:
            (level,) = actions_of(size.replace(" ", ""), near=1)(position)
        except AbstractionError:
            raise PlayError(f"{size} is nothing to bet: use more, such as 50% or 1x of the pot") from None
        return f"{RAISE}{level}"
    if not least <= chips <= most:
        much = "too little" if chips < least else "more than you have" if most + before == stack else "too much"
        raise PlayError(f"{chips:,} is {much}: {verb} {_span(least, most)} chips")
    return f"{RAISE}{before + chips}"


def _why_no_raise(position: Betting) -> str:
    stacks, me = position.rules.stacks, position.actor
    if position.spent[1 - me] == stacks[1 - me]:
        return "there is no raise, your opponent is all-in"
    if stacks[me] <= max(position.spent):
        return "there is no raise, a call takes all your chips"
    return f"there is no raise, the limit of {position.raises} raises in this round is reached"


def _number(text: str) -> int:
    return int(re.sub("[, _]", "", text))


# Messages -----------------------------------------------------------------------------------------------------------


def describe_action(position: Betting, action: str, *, third: bool = False) -> str:
    """Describe an action in words, such as ``raise to 300`` or ``raises to 300``.

    >>> from kilt.games import load_game
    >>> start = load_game("leduc").start()
    >>> describe_action(start, "c"), describe_action(start, "r", third=True), describe_action(start.after("r"), "r")
    ('check', 'bets 2', 'raise to 4')
    """
    after = position.after(action)
    me = position.actor
    rest = ""
    if action == FOLD:
        verb = "fold"
    elif action == CALL:
        due = position.to_call
        verb, rest = ("call", f" {due:,}") if due else ("check", "")
    else:
        verb, _, to = _raise_verb(position).partition(" ")
        rest = f"{' ' if to else ''}{to} {after.spent[me] - position.opened_at:,}"
    if after.spent != position.spent and after.spent[me] == position.rules.stacks[me]:
        rest += ", all-in"
    return f"{verb}{'s' if third else ''}{rest}"


def _raise_verb(position: Betting) -> str:
    return "raise to" if max(position.spent) > position.opened_at else "bet"


def _span(least: int, most: int) -> str:
    return f"{least:,}–{most:,}" if least < most else f"{least:,}"


def _keys(position: Betting) -> str:
    """Return the keys that the person may type and their meaning, for error messages."""
    return ", ".join(f"{choice.key} to {choice.words}" for choice in action_menu(position))


class Choice(NamedTuple):
    """An action in a menu from which a person chooses."""

    key: str  # the key to type
    words: str  # the action in words
    hint: str = ""  # other accepted input


def action_menu(position: Betting) -> list[Choice]:
    """Return the menu of a person's possible actions at a position.

    >>> from kilt.games import load_game
    >>> [tuple(choice) for choice in action_menu(load_game("holdem.nolimit.2p").start())]
    [('f', 'fold', ''), ('c', 'call 50', ''), ('r', 'raise to 200–20,000', '50%, 1x, a')]
    """
    choices = [Choice(action, describe_action(position, action)) for action in position.passive_actions()]
    bounds = position.raise_bounds()
    if bounds:
        before = position.opened_at
        words = f"{_raise_verb(position)} {_span(bounds[0] - before, bounds[1] - before)}"
        if position.rules.betting == "limit":
            choices.append(Choice("r", words))
        elif bounds[0] == bounds[1]:
            choices.append(Choice("a", f"{words}, all-in"))
        else:
            choices.append(Choice("r", words, "50%, 1x, a"))
    return choices


def usual_raises(position: Betting) -> list[Choice]:
    """Return common raise sizes for buttons, smallest first.

    There are none if the person cannot choose between sizes.

    >>> from kilt.games import load_game
    >>> [choice.words for choice in usual_raises(load_game("holdem.nolimit.2p").start())]
    ['raise to 200', 'raise to 250', 'raise to 300', 'raise to 500', 'raise to 20,000, all-in']
    """
    bounds = position.raise_bounds()
    if bounds is None or bounds[0] == bounds[1] or position.rules.betting == "limit":
        return []
    most = () if bounds[1] == UNLIMITED else ("a",)
    # several sizes may give the same raise
    sizes = {read_action(size, position): size for size in (*USUAL_SIZES, *most)}
    return [Choice(size, describe_action(position, action)) for action, size in sizes.items()]


# Advice --------------------------------------------------------------------------------------------------------------


@runtime_checkable
class Adviser(Protocol):
    """The interface of agents that can advise a person, since their action probabilities are known."""

    def probabilities(self, observation: Observation) -> list[tuple[str, float]]:
        """Return pairs of a legal action in ACPC notation and its probability."""


def advised_actions(agent: Agent, observation: Observation) -> list[tuple[str, float]] | None:
    """Return an agent's actions in the person's place, with their probabilities.

    The likeliest action comes first.

    Actions are in words. None if the agent has no method `probabilities` that returns probabilities.
    """
    if not isinstance(agent, Adviser):
        return None
    said: dict[str, float] = {}
    for action, share in agent.probabilities(
        observation
    ):  # several abstract actions may have the same legal counterpart
        said[action] = said.get(action, 0.0) + share
    ordered = sorted(said.items(), key=lambda item: -item[1])
    return [(describe_action(observation.position, action), share) for action, share in ordered if share > 0]


# The table -----------------------------------------------------------------------------------------------------------


class TurnView(NamedTuple):
    """What a screen shows at the person's turn: the pot, the stacks, and the possible actions."""

    pot: int
    stacks: tuple[int, int] | None  # remaining chips of the person and the opponent; None if unlimited
    choices: list[Choice]
    sizes: list[Choice]  # common raises, for buttons; `choices` has one entry for all raises


class Ending(NamedTuple):
    """What a screen shows at the end of a hand: the winnings and, after a showdown, the cards."""

    won: int  # chips that the person won; negative for a loss
    shown: list[tuple[tuple[str, ...], str]]  # cards and their rank in words, the person's first; empty after a fold
    total: int  # chips won in the session
    played: int  # hands in the session


class Screen(Protocol):
    """The interface of screens for a person, such as the terminal or the web page.

    Cards are two letters each, such as ``As``.
    """

    def begin(self, number: int, seat: str, hand: tuple[str, ...]) -> None:
        """Announce a new hand, with the person's seat and cards."""

    def acted(self, mine: bool, words: str) -> None:
        """Show an action of either player, described in words.

        `mine` is True if the person took it, and False if the opponent did.
        """

    def dealt(self, name: str, board: tuple[str, ...], hand: tuple[str, ...], made: str) -> None:
        """Show the new board, the person's hand, and the hand's category in words."""

    def ask(self, view: TurnView, *, again: bool) -> str:
        """Ask the person for an action, and return the typed text.

        `again` is True after invalid input. Raises EOFError if the input ends.
        """

    def tell(self, text: str) -> None:
        """Show what was wrong with the person's input."""

    def advise(self, advice: list[tuple[str, float]] | None) -> None:
        """Show an agent's advice after the person has asked for it."""

    def explain(self) -> None:
        """Show which input is accepted, after the person has asked for help."""

    def end(self, ending: Ending) -> None:
        """Show how a hand ended."""


@dataclass
class Person:
    """An agent that asks a person for each action.

    If the person leaves, EOFError aborts the hand.
    """

    name: str
    screen: Screen
    adviser: Agent  # the agent that gives advice
    _told: int = field(default=0, repr=False)  # number of moves of the hand that were shown

    def forget_shown_moves(self) -> None:
        """Forget which actions the screen has shown, because a new hand begins."""
        self._told = 0

    def act(self, observation: Observation) -> str:
        """Ask the person for an action until it is legal."""
        position = observation.position
        self.show_moves(position, observation.hand, observation.board, position.actor)
        view = TurnView(
            sum(position.spent), _left(position, position.actor), action_menu(position), usual_raises(position)
        )
        again = False
        while True:
            typed = self.screen.ask(view, again=again)
            again = True
            word = typed.strip().casefold()
            try:
                if word in LEAVE:
                    raise EOFError
                if word in ADVICE:
                    self.screen.advise(advised_actions(self.adviser, observation))
                elif word in HELP:
                    self.screen.explain()
                else:
                    return read_action(typed, position)
            except KiltError as error:
                self.screen.tell(str(error))

    def show_moves(self, position: Betting, hand: Sequence[int], board: Sequence[int], me: int) -> None:
        """Show the person all actions that are not yet on the screen.

        `me` is the person's seat.
        """
        rules, deck = position.rules, position.rules.deck
        played = list(positions_of(rules).moves_to(position))
        for before, action in played[self._told :]:
            if action == REVEAL:
                seen = board[: rules.board_size(before.round + 1)]
                cards = _cards(deck.name(seen)), _cards(deck.name(hand))
                self.screen.dealt(rules.round_names[before.round + 1], *cards, describe_hand([*hand, *seen], deck))
            else:
                mine = before.actor == me
                self.screen.acted(mine, describe_action(before, action, third=not mine))
        self._told = len(played)


def duplicate_deals(hands: int, seed: int = 0) -> list[int]:
    """Return the deal of each hand in a duplicate match between a person and an agent.

    The players swap seats every hand.

    The second half repeats the deals of the first half with the players swapped, in another order, so that the person
    does not recognise them.

    Parameters
    ----------
    hands : int
        Number of hands; even.
    seed : int
        Random seed of the order of deals in the second half.

    Returns
    -------
    list of int
        Number of the deal of each hand.

    Examples
    --------
    >>> duplicate_deals(8)  # deals 0 and 2: the person has seat 0 in the first half, and seat 1 in the second
    [0, 1, 2, 3, 1, 0, 3, 2]
    """
    if hands < 2 or hands % 2:
        raise PlayError(f"a duplicate match of {hands} hands cannot be played: use an even number")
    half, order = hands // 2, random.Random(f"{seed} again")
    left = [order.sample(range(seat, half, 2), len(range(seat, half, 2))) for seat in (0, 1)]  # [seat at first]
    return [*range(half), *(left[1 - number % 2].pop() for number in range(half, hands))]


class Session:
    """A session of hands between a person and an agent, who swap seats every hand.

    A hand that is aborted does not count.

    Parameters
    ----------
    game : Holdem
        The rules.
    name : str
        Name of the person.
    agent : Agent
        The opponent. If it remembers earlier hands, a copy of it plays.
    screen : Screen
        Draws the table and asks the person.
    seed : int
        Random seed of the cards and the agent.
    duplicate : sequence of int
        The deal of each hand of a duplicate match: see `duplicate_deals`. Another copy of an agent that remembers
        plays the second half. Default: new cards in each hand.

    Examples
    --------
    >>> from kilt.games import load_game
    >>> from kilt.play.agent import BASELINES
    >>> class Patient:
    ...     def ask(self, view, again):
    ...         return "call"
    ...     begin = acted = dealt = end = lambda self, *said: None
    >>> session = Session(load_game("leduc"), "Ann", BASELINES["always-call"], Patient(), seed=2)
    >>> [session.play().payoffs for _ in range(3)], session.won, session.total
    ([(0.0, 0.0), (1.0, -1.0), (0.0, 0.0)], [0, -1, 0], -1)
    """

    def __init__(
        self, game: Holdem, name: str, agent: Agent, screen: Screen, seed: int = 0, duplicate: Sequence[int] = ()
    ) -> None:
        if game.start().actor < 0:
            raise PlayError(f"the blinds of {game.name} take all chips: use a game with larger stacks")
        self.game, self.agent, self.screen = game, agent_for_match(agent, game), screen
        self.person = Person(name, screen, self.agent)
        self.won: list[int] = []  # [hand] chips that the person won
        self.hands: list[Hand] = []
        self.duplicate = duplicate
        self._dealer, self._opponent = Dealer(game, seed), agent

    @property
    def total(self) -> int:
        """The person's total winnings in the session, in chips."""
        return sum(self.won)

    @property
    def best_hand(self) -> int:
        """Return the index of the hand in which the person won most."""
        return self.won.index(max(self.won))

    @property
    def worst_hand(self) -> int:
        """The index of the hand with the person's largest loss."""
        return self.won.index(min(self.won))

    def play(self) -> Hand:
        """Play the next hand and return it."""
        number = len(self.won)
        seat = number % 2
        rules, deck = self.game.rules, self.game.deck
        deal = self.duplicate[number] if self.duplicate else number
        if self.duplicate and 2 * number == len(self.duplicate):
            self.agent = agent_for_match(self._opponent, self.game)
        mine = self._dealer.deal(deal).holes[seat]
        self.screen.begin(number, rules.seat_names[seat], _cards(deck.name(mine)))
        self.person.forget_shown_moves()
        hand = self._dealer.play(number, (self.agent, self.person) if seat else (self.person, self.agent), deal)
        self.person.show_moves(hand.position, mine, hand.board, seat)
        self.won.append(int(hand.payoffs[seat]))
        self.hands.append(hand)
        shown = []
        if hand.position.folded is None:
            both = hand.cards.holes[seat], hand.cards.holes[1 - seat]
            shown = [(_cards(deck.name(held)), describe_hand([*held, *hand.board], deck)) for held in both]
        self.screen.end(Ending(self.won[-1], shown, self.total, len(self.won)))
        return hand


def _left(position: Betting, me: int) -> tuple[int, int] | None:
    """Return the chips that seat `me` and the opponent have left; None if stacks are unlimited."""
    stacks, spent = position.rules.stacks, position.spent
    if UNLIMITED in stacks:
        return None
    return stacks[me] - spent[me], stacks[1 - me] - spent[1 - me]


def _cards(names: str) -> tuple[str, ...]:
    return tuple(names[at : at + 2] for at in range(0, len(names), 2))
