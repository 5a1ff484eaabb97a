r"""Play matches over a network by the ACPC protocol: a dealer for two players, and a client for an agent.

A dealer listens on one port for each player, and announces the ports. A player connects, sends ``VERSION:2.0.0``, and
receives the state of the match after every action; see `play.acpc` for the lines. Lines end with ``\r\n``; those that
begin with ``#`` or ``;`` are comments.

>>> import io, threading
>>> from kilt.games import load_game
>>> from kilt.play.agent import BASELINES
>>> game, log, players = load_game("leduc"), io.StringIO(), []
>>> def start_players(ports):
...     for name, port in zip(("always-raise", "always-call"), ports):
...         player = threading.Thread(target=play_agent, args=(BASELINES[name], game, "127.0.0.1", port))
...         player.start()
...         players.append(player)
>>> print(serve(game, hands=2, seed=1, names=("Ann", "Bob"), log=log, announce=start_players))
SCORE:0|0:Ann|Bob
>>> for player in players:
...     player.join()
>>> print(log.getvalue().splitlines()[-3])
STATE:0:rc/rc:Kh|Ks/Qs:0|0:Ann|Bob
"""

from __future__ import annotations

import re
import socket
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass
from typing import ClassVar, Protocol

from kilt.errors import GameError, KiltError, PlayError
from kilt.games.game import CHANCE, REVEAL, TERMINAL
from kilt.games.holdem import CALL, Betting, Holdem
from kilt.play.acpc import (
    MatchState,
    Score,
    correct_action,
    format_log_line,
    read_action,
    read_reply,
    read_state,
    require_different_names,
    state_for_player,
)
from kilt.play.agent import Agent, RememberingAgent, agent_for_match
from kilt.play.connection import Lines
from kilt.play.dealer import Cards, Dealer, Hand
from kilt.records import MOST, Record

LOOPBACK = "127.0.0.1"
VERSION = "VERSION:2.0.0"
MOST_PORTS = 65535
WARNINGS = 100  # the first warnings about a player are all reported; later ones if their number is a power of ten
MOST_IGNORED = 10_000  # largest number of unrelated lines that a player may send in one turn
MOST_SECONDS = 1e9  # largest limit: clocks and sockets support some billions of seconds

_VERSIONS = re.compile(r"VERSION:2\.0\.[0-9]+")


@dataclass(frozen=True)
class Limits(Record):
    """A dealer's limits on each player's time and illegal actions.

    The defaults are the competition's.
    """

    ERROR_CLASS: ClassVar[type[KiltError]] = PlayError
    DISPLAY_NAME: ClassVar[str] = "the limits of the dealer"

    start: float = 600.0  # until both players have connected
    response: float = 600.0  # for one action of a player
    hand: float = 600.0  # for all actions of a player in one hand
    per_hand: float = 7.0  # for all actions of a player in one hand, on average over the match
    invalid: int = MOST  # illegal actions of a player in the match; by default, no limit

    def __post_init__(self) -> None:
        super().__post_init__()
        for what in ("start", "response", "hand", "per_hand"):
            seconds: float = getattr(self, what)
            if not 0 < seconds <= MOST_SECONDS:
                raise PlayError(
                    f"the limit for {what} is {seconds:g} seconds; it must be above 0, and at most {MOST_SECONDS:g}"
                )


class LogWriter(Protocol):
    """The interface of the logs to which a dealer writes."""

    def write(self, text: str, /) -> object:
        """Add text, which may be several lines."""

    def flush(self) -> object:
        """Make the text written so far visible to the log's readers."""


# The dealer ----------------------------------------------------------------------------------------------------------


def serve(
    game: Holdem,
    hands: int,
    seed: int = 0,
    names: tuple[str, str] = ("A", "B"),
    *,
    host: str = LOOPBACK,
    ports: tuple[int, int] = (0, 0),
    log: LogWriter | None = None,
    limits: Limits | None = None,
    announce: Callable[[tuple[int, int]], object] = lambda ports: None,
    warn: Callable[[str], object] = lambda warning: None,
) -> Score:
    """Run a dealer: wait for two players to connect, and play a match by the ACPC protocol.

    Parameters
    ----------
    game : Holdem
        The rules.
    hands : int
        Number of hands. The first player has position 0 (the big blind) in the first and every other hand.
    seed : int
        Random seed of the cards.
    names : (str, str)
        Different names of the players for the log, in the order of the ports.
    host : str
        Network address to listen on.
    ports : (int, int)
        One port for each player; 0 is any free one.
    log : text file, optional
        Receives a line after each hand.
    limits : Limits, optional
        Time and error limits for each player. Default: those of the competition.
    announce : callable
        Called with the ports once players can connect.
    warn : callable
        Called with warnings about corrected actions and ignored lines: the first `WARNINGS` about each player, and
        then those whose number is a power of ten.

    Returns
    -------
    Score
        Chips of each player.

    Raises
    ------
    PlayError
        If a player exceeds a limit or disconnects, which ends the match.
    """
    limits = limits or Limits()
    names = require_different_names(names)
    if hands < 1:
        raise PlayError(f"a match of {hands} hands cannot be played; use at least 1")
    with ExitStack() as stack:
        doors = [stack.enter_context(_listen(host, port)) for port in ports]
        announce((doors[0].getsockname()[1], doors[1].getsockname()[1]))
        deadline = time.monotonic() + limits.start
        first, second = (
            stack.enter_context(_welcome(door, name, deadline, limits)) for door, name in zip(doors, names, strict=True)
        )
        for door in doors:
            door.close()
        lines = Lines(first, names[0]), Lines(second, names[1])
        for line in lines:
            _check_version(line, deadline, limits)
        return NetworkMatch(game, hands, seed, lines, log, limits, warn).play()


def _listen(host: str, port: int) -> socket.socket:
    _check_port(port, 0)
    if not host.strip():
        raise PlayError(f"the host is empty, which means all networks: use {LOOPBACK}, or 0.0.0.0 for all")
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PlayError(f"cannot listen on {host} port {port} ({reason}): choose another port, or 0 for any") from None


def _check_port(port: int, least: int) -> None:
    if not least <= port <= MOST_PORTS:
        raise PlayError(f"port {port} cannot be; use {least} to {MOST_PORTS}")


def _welcome(door: socket.socket, name: str, deadline: float, limits: Limits) -> socket.socket:
    """Wait for a player to connect, and return the connection."""
    door.settimeout(max(deadline - time.monotonic(), 0.001))
    try:
        connection, _ = door.accept()
    except TimeoutError:
        port = door.getsockname()[1]
        raise PlayError(
            f"{name} did not connect to port {port} within {limits.start:g} seconds: start it sooner, or allow more"
        ) from None
    return connection


def _check_version(lines: Lines, deadline: float, limits: Limits) -> None:
    """Check the version of the protocol, which every player sends first. Raises PlayError if it is missing or wrong."""
    try:
        said = lines.receive(deadline)
    except TimeoutError:
        raise PlayError(f"{lines.who} connected, but did not say {VERSION} within {limits.start:g} seconds") from None
    if said is None:
        raise PlayError(f"{lines.who} hung up before it said {VERSION}: check how it ended")
    if not _VERSIONS.fullmatch(said.strip()):
        raise PlayError(f"{lines.who} began with {said[:80]!r}; kilt speaks version 2.0: it must begin with {VERSION}")


@dataclass
class _Account:
    """What a player has used of the dealer's limits: seconds, and invalid actions."""

    in_hand: float = 0.0  # seconds
    in_match: float = 0.0
    invalid: int = 0


class _Warnings:
    """Reports warnings about each player, but only some of them if there are many."""

    def __init__(self, report: Callable[[str], object]) -> None:
        self._report, self._counts = report, Counter[str]()

    def add(self, player: str, text: str) -> None:
        """Report a warning about a player, or only count it if there were many before."""
        self._counts[player] += 1
        count = self._counts[player]
        if count <= WARNINGS:
            self._report(text)
        elif count == 10 ** (len(str(count)) - 1):
            self._report(f"{text} (number {count:,} about {player}; not all are reported)")

    def finish(self) -> None:
        """Report for each player how many warnings were only counted."""
        for player, count in self._counts.items():
            if count > WARNINGS:
                self._report(f"there were {count:,} warnings about {player}")


class NetworkMatch:
    """A match between two players who are connected to this dealer.

    Their protocol versions must have been checked.
    """

    def __init__(
        self,
        game: Holdem,
        hands: int,
        seed: int,
        lines: tuple[Lines, Lines],
        log: LogWriter | None = None,
        limits: Limits | None = None,
        warn: Callable[[str], object] = lambda warning: None,
    ) -> None:
        self.game, self.hands, self.dealer = game, hands, Dealer(game, seed)
        self.lines, self.limits, self._warnings = lines, limits or Limits(), _Warnings(warn)
        self._log = log
        self._accounts = (_Account(), _Account())

    def play(self) -> Score:
        """Play all hands and return the score.

        Raises PlayError if a player fails; the log then has all earlier hands.
        """
        limits, chips = self.limits, [0.0, 0.0]
        names = self.lines[0].who, self.lines[1].who
        milliseconds = {"response": limits.response, "hand": limits.hand, "per_hand": limits.per_hand}
        self._write(f"# name/game/hands/seed {'.'.join(names)} {self.game.name} {self.hands} {self.dealer.seed}")
        for what, seconds in milliseconds.items():
            self._write(f"#--t_{what} {seconds * 1000:.0f}")
        for number in range(self.hands):
            try:
                hand = self._play_hand(number)
            except PlayError as error:
                fault = f"{error}: the match ends in hand {number}"
                self._write(f"# {fault}")
                self._warnings.finish()
                raise PlayError(fault) from None
            for position, won in enumerate(hand.payoffs):
                chips[self._player(number, position)] += won
        score = Score((chips[0], chips[1]), names)
        self._write(str(score))
        self._warnings.finish()
        return score

    def _player(self, number: int, position: int) -> int:
        """Convert a position in a hand to the number of the player there, or back.

        Players swap positions after every hand.
        """
        return (position + number) % 2

    def _play_hand(self, number: int) -> Hand:
        cards, position = self.dealer.deal(number), self._dealt(self.game.start())
        for account in self._accounts:
            account.in_hand = 0.0
        while position.actor != TERMINAL:
            states = self._tell(number, position, cards)
            action = self._ask(self._player(number, position.actor), states[position.actor])
            position = self._dealt(self.game.positions.after(position, action))
        names = (self.lines[self._player(number, seat)].who for seat in (0, 1))
        hand = self.dealer.finish_hand(number, position, cards, (next(names), next(names)))
        self._write(format_log_line(hand))
        self._tell(number, position, cards)
        return hand

    def _dealt(self, position: Betting) -> Betting:
        """Return the position after all public cards that are due have been dealt."""
        while position.actor == CHANCE:
            position = self.game.positions.after(position, REVEAL)
        return position

    def _tell(self, number: int, position: Betting, cards: Cards) -> tuple[MatchState, MatchState]:
        """Send the state of the hand to both players, and return what was sent."""
        states = state_for_player(0, number, position, cards), state_for_player(1, number, position, cards)
        finished = position.actor == TERMINAL and number == self.hands - 1
        for player in (0, 1):
            with suppress(PlayError) if finished else nullcontext():  # a player may disconnect after the last action
                self.lines[player].send(str(states[self._player(number, player)]), self.limits.response)
        return states

    def _ask(self, player: int, asked: MatchState) -> str:
        """Wait for a player's action and return it, corrected if it is illegal."""
        line, account, limits = self.lines[player], self._accounts[player], self.limits
        begun = time.monotonic()
        left = {
            f"{limits.response:g} seconds for a response": limits.response,
            f"{limits.hand:g} seconds for a hand": limits.hand - account.in_hand,
            f"{limits.per_hand:g} seconds a hand for the match": limits.per_hand * self.hands - account.in_match,
        }
        rule, seconds = min(left.items(), key=lambda item: item[1])
        action, ignored = None, 0
        try:
            while action is None:
                reply = line.receive(begun + seconds)
                if reply is None:
                    raise PlayError(f"{line.who} hung up when it was its turn")
                action = read_reply(reply, asked, self.game)
                if action is None:
                    ignored += 1
                    text = f"{line.who} said {reply[:200]!r}, which does not answer {asked}"
                    if ignored > MOST_IGNORED:
                        raise PlayError(f"{text}, as {MOST_IGNORED:,} lines before it")
                    self._warnings.add(line.who, f"{text}: ignored")
        except TimeoutError:
            raise PlayError(f"{line.who} took longer than {rule}") from None
        used = time.monotonic() - begun
        account.in_hand += used
        account.in_match += used
        return self._judged(line.who, account, asked, action)

    def _judged(self, who: str, account: _Account, asked: MatchState, said: str) -> str:
        """Return the legal action that a player's answer counts as. Raises PlayError after too many invalid answers."""
        try:
            meant = read_action(asked.position, said)
        except PlayError as error:
            action, reason, invalid = CALL, str(error), True
        else:
            action = correct_action(asked.position, meant)
            if action == meant:
                return action
            reason = f"{meant!r} is not legal after {asked.position.history!r}"
            invalid = action[0] != meant[0]  # a raise to an illegal size does not count as invalid
        account.invalid += invalid
        if invalid and account.invalid > self.limits.invalid:
            raise PlayError(
                f"{who} made {account.invalid} invalid actions, {self.limits.invalid} are allowed: {reason}"
            )
        self._warnings.add(who, f"hand {asked.number}: {action} is taken as the action of {who}: {reason}")
        return action

    def _write(self, line: str) -> None:
        if self._log is not None:
            self._log.write(f"{line}\n")
            self._log.flush()


# The player ----------------------------------------------------------------------------------------------------------


def play_agent(
    agent: Agent,
    game: Holdem,
    host: str,
    port: int,
    *,
    seed: int = 0,
    connect_seconds: float = 10.0,
    note: Callable[[int, str], object] = lambda number, text: None,
) -> int:
    """Connect to an ACPC dealer, and let an agent play a whole match.

    Parameters
    ----------
    agent : Agent
        The player.
    game : Holdem
        The game of the dealer.
    host : str
        The dealer's machine.
    port : int
        The dealer's port for this player.
    seed : int
        Random seed of the agent.
    connect_seconds : float
        Seconds to wait for a dealer that does not listen yet.
    note : callable
        Called with the number of a hand and the note of an agent that remembers.

    Returns
    -------
    int
        Number of hands played.

    Raises
    ------
    PlayError
        If the dealer does not answer, or disconnects during a hand.
    """
    _check_port(port, 1)
    try:
        connection = _connected(host, port, connect_seconds)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PlayError(
            f"no dealer answers at {host} port {port} ({reason}): check both, and start the dealer"
        ) from None
    with connection:
        return play_over_connection(agent, game, connection, seed=seed, note=note)


def _connected(host: str, port: int, seconds: float) -> socket.socket:
    """Connect to a dealer. If it does not listen yet, try again until the time limit."""
    until = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection((host, port), timeout=max(until - time.monotonic(), 0.1))
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def play_over_connection(
    agent: Agent,
    game: Holdem,
    connection: socket.socket,
    *,
    seed: int = 0,
    note: Callable[[int, str], object] = lambda number, text: None,
) -> int:
    """Let an agent play a match over an open connection, and return the number of hands.

    See `play_agent`.
    """
    player = agent_for_match(agent, game)
    lines = Lines(connection, "the dealer")
    lines.send(VERSION)
    state: MatchState | None = None
    hands = 0
    while (line := lines.receive()) is not None:
        state = read_state(line, game)
        if state.over:
            hands += 1
            if isinstance(player, RememberingAgent) and (said := player.observe_hand(state.played_hand(game))):
                note(state.number, said)
        elif state.my_turn:
            lines.send(f"{line}:{_legal(player, game, state, seed)}")
    if state is None or not state.over:
        when = f"in hand {state.number}, after {state.position.history!r}" if state else "before the first hand"
        raise PlayError(f"the dealer hung up {when}: check its messages, and start the match again")
    return hands


def _legal(agent: Agent, game: Holdem, state: MatchState, seed: int) -> str:
    """Return an agent's action. Raises PlayError if it is illegal, because a dealer would silently replace it."""
    action = agent.act(state.observation(seed))
    try:
        state.position.after(action)
    except GameError as error:
        raise PlayError(f"{agent.name} failed in hand {state.number}: {error}") from None
    return action
