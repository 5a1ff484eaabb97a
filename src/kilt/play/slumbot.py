"""A client for Slumbot's HTTP API: Slumbot is a public agent for no-limit hold'em with 200 big blinds.

A request is a POST of JSON to ``URL/login`` (optional), ``URL/new_hand`` or ``URL/act``. The answer describes the state
of the hand: `client_pos` (0 for the big blind, 1 for the button), `hole_cards`, `board` and `action`, and, at the end
of the hand, `winnings`, `bot_hole_cards` and `baseline_winnings`. A `token` identifies the session. In `action`, ``k``
checks, ``c`` calls, ``f`` folds, ``b300`` bets or raises to 300 chips in this round, and ``/`` ends a round.

>>> from kilt.games import load_game
>>> game = load_game(GAME)
>>> river = read_actions("b300c/kk/kb450c/", game)
>>> river.history, river.actor, to_slumbot_notation(river, "r900"), to_slumbot_notation(river, "c")
('r300c/cc/cr750c/', 0, 'b150', 'k')
"""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

from kilt.errors import GameError, KiltError, PlayError, quoted
from kilt.games.game import CHANCE, REVEAL, TERMINAL
from kilt.games.holdem import CALL, FOLD, RAISE, Betting, Holdem
from kilt.play.acpc import MatchState
from kilt.play.agent import Agent
from kilt.play.dealer import Cards, Dealer, Hand
from kilt.records import Record, bounded

URL = "https://slumbot.com/slumbot/api"
GAME = "holdem.nolimit.2p"  # the only game that Slumbot plays
NAME = "Slumbot"
LONGEST = 1 << 20  # largest number of bytes of an answer
LONGEST_WAIT = 30.0  # longest pause in seconds between two tries
BUSY = (408, 425, 429)  # HTTP codes after which a request is repeated, in addition to those from 500 on

_ACTION = re.compile(r"[kcf/]|b[1-9][0-9]{0,8}")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

Reply = dict[str, Any]  # an answer, as a JSON object


class RequestError(PlayError):
    """Raised if a request to Slumbot failed, but may succeed if repeated."""


class RefusedError(PlayError):
    """Raised if Slumbot refused a request, so that a repetition would not help."""


class BrokenHandError(PlayError):
    """Raised if a hand cannot be finished because Slumbot and this client disagree about its actions."""


# Actions -------------------------------------------------------------------------------------------------------------


def read_actions(text: str, game: Holdem) -> Betting:
    """Parse actions in Slumbot's notation, and return the position after them.

    Raises PlayError if an action is not legal.
    """
    position, at = game.start(), 0
    while at < len(text):
        action = _ACTION.match(text, at)
        if action is None:
            raise PlayError(f"the actions {quoted(text)} have {text[at]!r} where k, c, f, bN or / belongs")
        at = action.end()
        if action[0] != "/":  # rounds end automatically
            position = _dealt(_after(position, action[0], text, game), game)
    return position


def _after(position: Betting, action: str, text: str, game: Holdem) -> Betting:
    """Return the position after one action in Slumbot's notation."""
    free = position.actor >= 0 and not position.facing
    if action in ("k", "c") and free != (action == "k"):
        raise PlayError(f"the actions {quoted(text)} cannot be: {action} does not fit after {position.history!r}")
    label = f"{RAISE}{position.opened_at + int(action[1:])}" if action[0] == "b" else FOLD if action == "f" else CALL
    try:
        return game.positions.after(position, label)
    except GameError as error:
        raise PlayError(f"the actions {quoted(text)} cannot be: {error}") from None


def _dealt(position: Betting, game: Holdem) -> Betting:
    """Return the position after all public cards that are due have been dealt."""
    while position.actor == CHANCE:
        position = game.positions.after(position, REVEAL)
    return position


def to_slumbot_notation(position: Betting, action: str) -> str:
    """Convert an action from ACPC notation to Slumbot's notation."""
    if action == FOLD:
        return "f"
    if action == CALL:
        return "c" if position.facing else "k"
    return f"b{int(action[1:]) - position.opened_at}"


# Hands ---------------------------------------------------------------------------------------------------------------


class SlumbotHand(NamedTuple):
    """A finished hand against Slumbot.

    Attributes
    ----------
    reply : dict
        Slumbot's last answer.
    seat : int
        Seat of the player: 0 has the big blind.
    won : float
        Chips that the player won.
    baseline : float or None
        Chips that Slumbot's own strategy would have won in the same seat with these cards, according to Slumbot.
    hand : Hand or None
        The hand with all cards. None if the answer lacks cards, or if its winnings contradict the rules.
    """

    reply: Reply
    seat: int
    won: float
    baseline: float | None
    hand: Hand | None


def parse_state(reply: Reply, number: int, game: Holdem) -> MatchState:
    """Parse a hand's state from Slumbot's reply.

    `number` is the number of the hand.

    Raises PlayError if it is inconsistent.
    """
    seat = reply.get("client_pos")
    if seat not in (0, 1) or not isinstance(reply.get("action", ""), str):
        raise PlayError(f"an answer lacks `client_pos` or `action`: {_shortened(reply)}")
    position = read_actions(reply.get("action", ""), game)
    rules, deck = game.rules, game.deck
    try:
        mine = deck.cards("".join(reply.get("hole_cards", ())), rules.hole_cards)
        size = rules.board_size(position.round)
        board = deck.cards("".join(reply.get("board", ())[:size]), size, dead=mine)
    except (KiltError, TypeError) as error:
        raise PlayError(f"the cards of an answer cannot be ({error}): {_shortened(reply)}") from None
    if position.actor not in (seat, TERMINAL):
        raise PlayError(f"it is Slumbot's turn in an answer, but the hand is not over: {_shortened(reply)}")
    return MatchState(seat, number, position, (mine, ()) if seat == 0 else ((), mine), board)


def parse_finished_hand(reply: Reply, number: int, game: Holdem, name: str) -> SlumbotHand:
    """Parse a finished hand from Slumbot's last reply.

    Raises PlayError if the answer is inconsistent.
    """
    state, won, baseline = parse_state(reply, number, game), reply["winnings"], reply.get("baseline_winnings")
    if not isinstance(won, int | float) or not state.over:
        raise PlayError(f"an answer has winnings, but the hand is not over: {_shortened(reply)}")
    hand = None
    try:
        dead = (*state.hand, *state.board)
        theirs = game.deck.cards("".join(reply.get("bot_hole_cards") or ()), game.rules.hole_cards, dead=dead)
        holes = (state.hand, theirs) if state.viewer == 0 else (theirs, state.hand)
        names = (name, NAME) if state.viewer == 0 else (NAME, name)
        played = Dealer(game).finish_hand(number, state.position, Cards(holes, state.board), names)
        hand = played if played.payoffs[state.viewer] == won else None
    except (KiltError, TypeError):
        pass  # without these cards the hand still counts
    return SlumbotHand(reply, state.viewer, float(won), None if baseline is None else float(baseline), hand)


def play_hand(client: SlumbotClient, agent: Agent, game: Holdem, number: int, seed: int, name: str) -> SlumbotHand:
    """Play one hand against Slumbot.

    Parameters
    ----------
    client : SlumbotClient
        Connection to Slumbot.
    agent : Agent
        The player against Slumbot.
    game : Holdem
        The game `GAME`.
    number : int
        Number of the hand in the match.
    seed : int
        Random seed of the agent, combined with the number.
    name : str
        Name of the agent in a log.

    Returns
    -------
    SlumbotHand
        The finished hand.

    Raises
    ------
    BrokenHandError
        If the hand cannot be finished.
    PlayError
        If Slumbot cannot be reached.
    """
    reply, before = client.new_hand(), ""
    try:
        while reply.get("winnings") is None:
            state, before = parse_state(reply, number, game), str(reply.get("action", ""))
            if state.over:
                raise PlayError(f"the hand is over, but the answer has no winnings: {_shortened(reply)}")
            action = agent.act(state.observation(seed))
            try:
                state.position.after(action)
            except GameError as error:
                raise AgentError(f"{agent.name} has no legal answer in hand {number}: {error}") from None
            reply = client.act(to_slumbot_notation(state.position, action), before)
        return parse_finished_hand(reply, number, game, name)
    except (RequestError, RefusedError, BrokenHandError, AgentError):
        raise
    except PlayError as error:
        raise BrokenHandError(str(error)) from None


class AgentError(PlayError):
    """Raised if kilt's agent takes an illegal action against Slumbot.

    It would do so again in other hands.
    """


# Requests ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClientConfig(Record):
    """Settings of `SlumbotClient`: the API's URL, the time limit, and the number of retries.

    Parameters
    ----------
    url : str
        URL of the API, without the name of a request.
    timeout : float
        Time limit of an answer in seconds.
    tries : int
        Largest number of attempts for a request.
    wait : float
        Seconds before the second attempt; each further pause is twice as long, up to `LONGEST_WAIT`.
    """

    ERROR_CLASS: ClassVar[type[KiltError]] = PlayError
    DISPLAY_NAME: ClassVar[str] = "the client"

    url: str = URL
    timeout: float = 30.0
    tries: int = bounded(6, 1)
    wait: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise PlayError(f"{quoted(self.url)} is no address of an API: use https:// and a host, such as {URL}")
        if not self.timeout > 0:
            raise PlayError(f"`timeout` of the client is {self.timeout:g}: use more than 0 seconds")


class SlumbotClient:
    """A client that plays hands against Slumbot over its HTTP API.

    It retries requests that fail, and stores the token of the session.

    Parameters
    ----------
    config : ClientConfig
        Where requests are sent, and how often.
    warn : callable
        Called with the reason each time a request is repeated.
    """

    def __init__(
        self, config: ClientConfig | None = None, *, warn: Callable[[str], object] = lambda text: None
    ) -> None:
        config = config or ClientConfig()
        parts = urlsplit(config.url)
        self.url, self.timeout, self.tries, self.wait = asdict(config).values()
        self.url, self.warn = self.url.rstrip("/"), warn
        self.host, self.token = parts.netloc, ""
        self._login: tuple[str, str] | None = None
        # Proxy settings of the environment do not apply to this machine itself.
        proxies = (urllib.request.ProxyHandler({}),) if parts.hostname in _LOOPBACK else ()
        self._opener = urllib.request.build_opener(*proxies)

    def login(self, user: str, password: str) -> None:
        """Log in to a Slumbot account, under which the next hands are played.

        Later sessions log in again.
        """
        self._login = user, password
        self.token = ""
        reply = self._retried("login", {"username": user, "password": password})
        self._keep_token(reply)
        if not self.token:
            raise RefusedError(f"{self.host} gave no token at login: {_shortened(reply)}")

    def new_hand(self) -> Reply:
        """Start a hand and return Slumbot's answer.

        If Slumbot refuses the session, perhaps as too old, a new one is opened.
        """
        try:
            return self._keep_token(self._retried("new_hand", self._session()))
        except RefusedError as error:
            if not self.token:
                raise
            self.warn(f"{error}: opening a new session")
            self.forget_session()
            return self._keep_token(self._retried("new_hand", self._session()))

    def act(self, increment: str, before: str) -> Reply:
        """Send this player's action to Slumbot, and return its reply.

        The action is in Slumbot's notation. `before` are the earlier actions of the hand.

        If an answer is lost, the request is repeated, although Slumbot may have executed it already. `old_action` in
        the answer shows whether the action was executed only once. Raises BrokenHandError if it was not, or if Slumbot
        refuses the action.
        """
        try:
            reply = self._retried("act", self._session() | {"incr": increment})
        except RefusedError as error:
            raise BrokenHandError(str(error)) from None
        old = reply.get("old_action")
        if not isinstance(old, str) or old.strip("/") != before.strip("/"):
            raise BrokenHandError(
                f"{increment} was sent to {self.host} after {before!r}, and taken after {old!r}: an answer was lost"
            )
        return self._keep_token(reply)

    def forget_session(self) -> None:
        """Forget the session's token, so that the next hand opens a new session.

        Logs in again if there is an account.
        """
        self.token = ""
        if self._login:
            self.login(*self._login)

    def _session(self) -> Reply:
        return {"token": self.token} if self.token else {}

    def _keep_token(self, reply: Reply) -> Reply:
        """Move the token from an answer to this object. Tokens can change, and must not appear in logs."""
        token = reply.pop("token", None)
        self.token = token if isinstance(token, str) and token else self.token
        return reply

    def _retried(self, what: str, body: Mapping[str, Any]) -> Reply:
        """Send a request up to `tries` times, until Slumbot answers."""
        wait = self.wait
        for attempt in range(1, self.tries + 1):
            try:
                return self._sent(what, body)
            except RequestError as error:
                if attempt == self.tries:
                    times = "once" if attempt == 1 else f"{attempt} times"
                    raise RequestError(f"{error}; asked {times}: try again later, with the same command") from None
                self.warn(f"{error}: asking again in {wait:g} s ({attempt + 1} of {self.tries})")
            time.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)
        raise AssertionError

    def _sent(self, what: str, body: Mapping[str, Any]) -> Reply:
        """Send a request once and return Slumbot's answer."""
        headers = {"Content-Type": "application/json", "User-Agent": "kilt"}
        request = urllib.request.Request(f"{self.url}/{what}", json.dumps(body).encode(), headers, method="POST")
        refusal = 0
        try:
            try:
                with self._opener.open(request, timeout=self.timeout) as answer:
                    data = answer.read(LONGEST + 1)
            except urllib.error.HTTPError as error:
                refusal, data = error.code, error.read(LONGEST + 1)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            reason = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            raise RequestError(f"{self.host} did not answer {what} ({reason})") from None
        if refusal in BUSY or refusal >= 500:
            raise RequestError(f"{self.host} answered {what} with HTTP code {refusal}")
        try:
            reply = json.loads(data)
            if not isinstance(reply, dict) or len(data) > LONGEST:
                raise ValueError
        except ValueError:
            kind = RefusedError if refusal else RequestError
            said = f"HTTP code {refusal}" if refusal else f"no JSON object: {quoted(data.decode(errors='replace'), 60)}"
            raise kind(f"{self.host} answered {what} with {said}") from None
        if refusal or reply.get("error_msg"):
            said = reply.get("error_msg") or f"HTTP code {refusal}"
            raise RefusedError(f"{self.host} refused {what}: {quoted(str(said), 200)}")
        return reply


def _shortened(reply: Reply) -> str:
    """Return an answer of Slumbot as text for an error message, without the token."""
    return quoted(json.dumps({key: value for key, value in reply.items() if key != "token"}), 300)
