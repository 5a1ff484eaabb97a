"""Play a match against Slumbot with a log, from which an interrupted match continues.

The log is an ACPC log with comments. A comment ``# slumbot hand {…}`` holds Slumbot's last answer of a hand, from which
kilt restores the hand. The ``STATE`` line after it is for other readers, such as `kilt evaluate log`. If the process is
killed, only the current hand is lost.

>>> import tempfile
>>> from kilt.games import load_game
>>> from kilt.play.slumbot import GAME
>>> file, game = Path(tempfile.mkdtemp()) / "match.log", load_game(GAME)
>>> reply = {"client_pos": 1, "action": "f", "hole_cards": ["2c", "7d"], "bot_hole_cards": ["As", "Ah"]}
>>> reply["winnings"] = -50
>>> with SlumbotLog(file, game, "Ann") as log:
...     log.add(parse_finished_hand(reply, len(log.hands), game, "Ann"))
>>> print(file.read_text().splitlines()[-1])
STATE:0:f:AsAh|2c7d:50|-50:Slumbot|Ann
>>> with SlumbotLog(file, game, "Ann") as log:
...     log.hands[0].won
-50.0
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO

from kilt.artifact import os_errors
from kilt.errors import PlayError, quoted
from kilt.games.holdem import Holdem
from kilt.machine import locked
from kilt.play.acpc import format_log_entry
from kilt.play.agent import Agent, RememberingAgent, agent_for_match
from kilt.play.slumbot import NAME, BrokenHandError, SlumbotClient, SlumbotHand, parse_finished_hand, play_hand

MOST_BROKEN = 5  # consecutive hands that cannot be finished, after which the match stops
_MATCH, _HAND, _BROKEN = "# slumbot match ", "# slumbot hand ", "# slumbot broken hand "


def name_in_logs(player: str) -> str:
    """Convert a player's name to a form that logs accept.

    It has no ``:`` and no ``|``, and differs from Slumbot's name.

    >>> name_in_logs("house@resolve:rounds=river")
    'house@resolve;rounds=river'
    """
    name = player.translate({ord(":"): ";", ord("|"): "/"})
    return f"{name} (kilt)" if name == NAME else name


class _OtherMatchError(PlayError):
    """Raised if a log belongs to another match."""


class SlumbotLog:
    """The log of a match against Slumbot, locked against other processes while open.

    Parameters
    ----------
    file : Path
        Path of the log, which is created if it does not exist.
    game : Holdem
        The game of the match.
    player : str
        The name of Slumbot's opponent, as returned by `name_in_logs`. It must be the one in the log.

    Attributes
    ----------
    hands : list of SlumbotHand
        All hands so far, in order.
    broken : int
        Number of hands that could not be finished. They do not count for either player.
    """

    def __init__(self, file: Path, game: Holdem, player: str) -> None:
        self.file, self.game, self.player = file, game, player
        self.hands: list[SlumbotHand] = []
        self.broken = 0
        self._out: IO[bytes] | None = None
        self._held = ExitStack()

    def __enter__(self) -> SlumbotLog:
        if not self.file.absolute().parent.is_dir():
            raise PlayError(f"the folder of the log {self.file} does not exist: choose another `log`")
        with os_errors(f"the log {self.file} cannot be written"), ExitStack() as stack:
            lock = self.file.with_name(f".{self.file.name}.lock")
            try:
                stack.enter_context(locked(lock, wait=False))
            except BlockingIOError:
                raise PlayError(f"another process writes to {self.file}: wait for it, or use another `log`") from None
            text = self.file.read_bytes() if self.file.exists() else b""
            whole = text[: text.rfind(b"\n") + 1]
            lacking = self._read(whole.decode(errors="replace"))
            self._out = stack.enter_context(self.file.open("r+b" if self.file.exists() else "xb"))
            self._out.truncate(len(whole))
            self._out.seek(len(whole))
            if not whole:
                self._write(_MATCH + json.dumps({"player": self.player, "game": self.game.name}) + "\n")
            if lacking:
                self._write(_entry(lacking))
            self._held = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._held.close()

    def add(self, hand: SlumbotHand, note: str = "") -> None:
        """Append a hand with its player's note, and wait until it is on disk."""
        if hand.hand and note:
            notes = (note, "") if hand.seat == 0 else ("", note)
            hand = hand._replace(hand=hand.hand._replace(notes=notes))
        with os_errors(f"the log {self.file} cannot be written"):
            self._write(_HAND + json.dumps(hand.reply) + "\n" + _entry(hand))
        self.hands.append(hand)

    def give_up(self, reason: str) -> None:
        """Record in the log that a hand could not be finished, and why."""
        with os_errors(f"the log {self.file} cannot be written"):
            self._write(f"{_BROKEN}{' '.join(reason.split())}\n")
        self.broken += 1

    def _write(self, text: str) -> None:
        assert self._out
        self._out.write(text.encode())
        self._out.flush()
        os.fsync(self._out.fileno())

    def _read(self, text: str) -> SlumbotHand | None:
        """Read all hands of the log. Returns the last one if its line in ACPC format is missing."""
        lines = text.splitlines()
        if lines and not lines[0].startswith(_MATCH):
            raise PlayError(f"{self.file} is no log of a match with Slumbot: choose another `log`")
        for number, line in enumerate(lines, start=1):
            try:
                if line.startswith(_MATCH):
                    said = json.loads(line.removeprefix(_MATCH))
                    if (said["player"], said["game"]) != (self.player, self.game.name):
                        raise _OtherMatchError(
                            f"{self.file} has hands of {said['player']} in {said['game']}, but {self.player} is to "
                            f"play {self.game.name}: choose another `log`"
                        )
                elif line.startswith(_HAND):
                    reply = json.loads(line.removeprefix(_HAND))
                    self.hands.append(parse_finished_hand(reply, len(self.hands), self.game, self.player))
                self.broken += line.startswith(_BROKEN)
            except _OtherMatchError:
                raise
            except (PlayError, ValueError, LookupError, TypeError, AttributeError):
                raise PlayError(
                    f"{self.file} is damaged in line {number}: {quoted(line)}; correct or remove it"
                ) from None
        last = self.hands[-1] if self.hands else None
        return last if last and last.hand and lines[-1].startswith(_HAND) else None


def _entry(hand: SlumbotHand) -> str:
    """Return a hand in ACPC format, for other programs that read the log. Empty if cards are missing."""
    return format_log_entry(hand.hand) if hand.hand else ""


def continue_match(
    client: SlumbotClient,
    agent: Agent,
    log: SlumbotLog,
    hands: int,
    seed: int,
    *,
    tick: Callable[[int], object] = lambda hands: None,
    stop: Callable[[], bool] = lambda: False,
    warn: Callable[[str], object] = lambda text: None,
) -> None:
    """Start or continue a match against Slumbot, until its log has `hands` hands.

    A hand that cannot be finished is abandoned, and the next one is dealt in a new session.

    Parameters
    ----------
    client : SlumbotClient
        Connection to Slumbot.
    agent : Agent
        The player against Slumbot. An agent that remembers first gets the earlier hands of the log.
    log : SlumbotLog
        An open log. Hands are added to it.
    hands : int
        Number of hands that the log will have.
    seed : int
        Random seed of the agent, combined with the numbers of the hands.
    tick : callable
        Called after each hand with the number of hands in the log.
    stop : callable
        The match ends before the next hand once it returns True.
    warn : callable
        Called with the reason when a hand is abandoned.

    Raises
    ------
    PlayError
        If Slumbot cannot be reached, or several consecutive hands cannot be finished. The log has all earlier hands.
    """
    player, broken = agent_for_match(agent, log.game), 0
    if isinstance(player, RememberingAgent):
        for earlier in log.hands:
            if earlier.hand:
                player.observe_hand(earlier.hand.from_seat(earlier.seat))
    while len(log.hands) < hands and not stop():
        try:
            hand = play_hand(client, player, log.game, len(log.hands), seed, log.player)
        except BrokenHandError as error:
            broken += 1
            log.give_up(str(error))
            if broken == MOST_BROKEN:
                raise PlayError(f"{error}; {broken} consecutive hands could not be finished: try again later") from None
            warn(f"a hand was abandoned: {error}; the next one is dealt in a new session")
            client.forget_session()
            continue
        broken, note = 0, ""
        if isinstance(player, RememberingAgent) and hand.hand:
            note = player.observe_hand(hand.hand.from_seat(hand.seat)) or ""
        log.add(hand, note)
        tick(len(log.hands))
