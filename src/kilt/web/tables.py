"""Tables of the web page, where people play against agents, each with its own thread.

The session of a table works as in a terminal, but its screen records events for the page and waits for requests with
the person's input. Tables that have not been used for a while are closed. If there are too many, the one that has been
unused for longest is closed first.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, Full, Queue
from threading import Condition, Lock, Thread
from time import monotonic
from typing import Any

from kilt.errors import KiltError, PlayError
from kilt.evaluate.decisions import player_decisions, review_decision
from kilt.evaluate.deserved import DeservedScore
from kilt.evaluate.log_estimates import LogEstimate
from kilt.evaluate.stats import estimate_mean
from kilt.evaluate.values import StateValues
from kilt.games.game import CHANCE
from kilt.games.holdem import Holdem
from kilt.play.agent import Agent, PolicyAgent, has_policy, require_policy
from kilt.play.dealer import Hand
from kilt.play.person import Ending, Session, TurnView, describe_action, duplicate_deals
from kilt.play.phh import write_phhs
from kilt.web.views import json_number, review_view

MOST_TABLES = 200  # largest number of open tables
IDLE = 1800.0  # seconds without use after which a table is closed
PATIENCE = 60.0  # seconds that a request waits for an agent's answer
DEAL = "deal"  # the input that begins the next hand


class WebScreen:
    """The screen of a web table, which records events for the page and waits for input."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.turn: dict[str, Any] | None = None
        self.typed: Queue[str | None] = Queue(maxsize=8)  # None when the table is closed
        self.changed = Condition()
        self.asking = 0  # number of times that the person was asked

    def begin(self, number: int, seat: str, hand: tuple[str, ...]) -> None:
        """Record a new hand, and forget the previous hand's events."""
        self.events = []
        self._note("begin", number=number, seat=seat, hand=hand)

    def acted(self, mine: bool, words: str) -> None:
        """Record an action of either player."""
        self._note("acted", mine=mine, words=words)

    def dealt(self, name: str, board: tuple[str, ...], hand: tuple[str, ...], made: str) -> None:
        """Record the beginning of a round."""
        self._note("dealt", name=name, board=board, made=made)

    def ask(self, view: TurnView, *, again: bool) -> str:
        """Publish the possible actions, and wait for the person's input."""
        choices, sizes = ([choice._asdict() for choice in row] for row in (view.choices, view.sizes))
        return self.wait({"pot": view.pot, "stacks": view.stacks, "choices": choices, "sizes": sizes, "again": again})

    def tell(self, text: str) -> None:
        """Record an error message about the input."""
        self._note("told", words=text)

    def advise(self, advice: list[tuple[str, float]] | None) -> None:
        """Record what the agent would do in the person's place."""
        self._note("advice", rows=advice)

    def explain(self) -> None:
        """Do nothing, because the page itself explains the accepted input."""

    def end(self, ending: Ending) -> None:
        """Record the end of a hand."""
        self._note("end", **ending._asdict())

    def fail(self, error: KiltError) -> None:
        """Record the agent's failure and its reason."""
        self._note("failed", words=str(error))

    def wait(self, turn: dict[str, Any] | None) -> str:
        """Publish all events, and wait for the person's input.

        Raises EOFError if the table is closed.
        """
        with self.changed:
            self.turn = turn
            self.asking += 1
            self.changed.notify_all()
        try:
            typed = self.typed.get(timeout=IDLE)
        except Empty:
            raise EOFError from None
        if typed is None:
            raise EOFError
        self.turn = None
        return typed

    def _note(self, kind: str, **said: Any) -> None:
        self.events.append({"kind": kind, **said})


@dataclass
class WebTable:
    """A table of the web page: a session between a person and an agent in its own thread.

    Attributes
    ----------
    player : str
        The agent's name in the library.
    session : Session
        The session. Other threads read it only while its thread waits for the person.
    """

    player: str
    session: Session
    screen: WebScreen
    touched: float = field(default_factory=monotonic)
    over: bool = False
    _sending: Lock = field(default_factory=Lock, repr=False)
    _judging: Lock = field(default_factory=Lock, repr=False)
    _score: DeservedScore | None = field(default=None, repr=False)

    @classmethod
    def open(cls, player: str, agent: Agent, game: Holdem, seed: int, hands: int = 0) -> WebTable:
        """Open a new table, and begin its session.

        If `hands` is not 0, it is a duplicate match of that many hands.
        """
        screen = WebScreen()
        deals = duplicate_deals(hands, seed) if hands else ()
        table = cls(player, Session(game, "you", agent, screen, seed, deals), screen)
        Thread(target=table._run, daemon=True, name=f"table of {player}").start()
        table._settle(0)
        return table

    def _run(self) -> None:
        session = self.session
        try:
            while not session.duplicate or len(session.won) < len(session.duplicate):
                if self.screen.wait(None) != DEAL:
                    self.screen.tell("the hand is over: deal the next one")
                    continue
                session.play()
        except EOFError:
            pass
        except KiltError as error:
            self.screen.fail(error)
        finally:
            with self.screen.changed:
                self.over = True
                self.screen.changed.notify_all()

    def send(self, text: str, turn: int | None = None) -> None:
        """Pass the person's input to the session, and wait until it is processed.

        `turn` is the number of the question that the input answers. If a newer question has been asked since, the
        input is ignored, since a button may have been pressed twice.
        """
        with self._sending:
            if self.over:
                raise PlayError("this table is closed: open another")
            self.touched = monotonic()
            last = self.screen.asking
            if turn is None or turn == last:
                self.screen.typed.put(text)
                self._settle(last)

    def _settle(self, asked: int) -> None:
        """Wait until the session waits for input again."""
        with self.screen.changed:
            if not self.screen.changed.wait_for(lambda: self.over or self.screen.asking > asked, PATIENCE):
                raise PlayError("the agent takes too long: look again in a while")

    def leave(self) -> None:
        """End the session immediately."""
        with suppress(Full):
            self.screen.typed.put_nowait(None)

    def state(self) -> dict[str, Any]:
        """Return all that the page shows about the table, as JSON data."""
        self.touched = monotonic()
        session, rules = self.session, self.session.game.rules
        blind = rules.big_blind
        won = estimate_mean([1000 * chips / blind for chips in session.won]) if len(session.won) > 1 else None
        hand = session.hands[-1] if session.hands and not self.screen.turn else None
        return {
            "player": self.player,
            "game": session.game.name,
            "limit": rules.betting == "limit",
            "events": list(self.screen.events),
            "turn": self.screen.turn,
            "asked": self.screen.asking,
            "over": self.over,
            "played": len(session.won),
            "hands": len(session.duplicate),
            "total": session.total,
            "curve": session.won[-200:],
            "won": {"mean": won.mean, "margin": won.margin} if won else None,
            "last": {"board": session.game.deck.name(hand.board), "moves": _moves(session.game, hand)}
            if hand
            else None,
        }

    def review(self, states: StateValues | None) -> dict[str, Any]:
        """Review the last hand: compare the person's decisions with the agent's, and estimate results without luck.

        Parameters
        ----------
        states : StateValues or None
            State values for AIVAT; without them, BC-DIVAT removes luck.

        Returns
        -------
        dict
            ``decisions`` has the agent's probabilities at each decision of the person; None if the agent has no policy.
        The values of actions take longer: `worth` returns them. ``won`` and ``deserved`` are the person's win rates
        in mbb/h with 95% intervals, None before the second hand. ``won`` is raw. ``deserved`` is an estimate by the
        estimator ``by``, without the luck of the cards and of the agent's random choices.
        """
        session = self.session
        hands = list(session.hands)
        if not hands or not has_policy(session.agent, session.game):
            return {"hand": len(hands), "decisions": None, "won": None, "deserved": None}
        agent = require_policy(session.agent)
        found = {"hand": len(hands), "decisions": self._decisions(agent, hands[-1]), "won": None, "deserved": None}
        if len(hands) > 1:
            with self._judging:
                if self._score is None or self._score.states is not states:
                    self._score = DeservedScore(session.game, agent, states)
                won, *_, less = self._score.estimates(hands, session.duplicate[: len(hands)]).rows
            found |= {"won": _rate(won), "deserved": _rate(less)}
        return found

    def _decisions(self, agent: PolicyAgent, hand: Hand) -> list[dict[str, Any]]:
        game, seat = self.session.game, hand.number % 2
        return [
            review_view(review_decision(agent, game, hand, position, taken, worth=False))
            for position, taken in player_decisions(game, hand, seat)
        ]

    def worth(self, number: int, decision: int) -> dict[str, Any]:
        """Return each action's value at one of the person's decisions in the last hand.

        `number` is the number of hands played when the page sent the request. If another hand has been played since,
        the result is empty, so that outdated requests take no time. Raises PlayError if there is no such decision.
        """
        session, hands = self.session, list(self.session.hands)
        if len(hands) != number or not has_policy(session.agent, session.game):
            return {}
        places = player_decisions(session.game, hands[-1], hands[-1].number % 2)
        if not 0 <= decision < len(places):
            raise PlayError(f"there is no decision {decision} in this hand: it has {len(places)}")
        return review_view(review_decision(require_policy(session.agent), session.game, hands[-1], *places[decision]))

    def phhs(self) -> str:
        """Return all finished hands as PHH text."""
        return "".join(write_phhs(self.session.hands))


def _moves(game: Holdem, hand: Hand) -> list[dict[str, Any]]:
    """Return the actions of a hand, each with its player and the betting before it."""
    return [
        {"history": before.history, "words": describe_action(before, action, third=not mine), "mine": mine}
        for before, action in game.positions.moves_to(hand.position)
        if before.actor != CHANCE
        for mine in [before.actor == hand.number % 2]
    ]


def _rate(row: LogEstimate) -> dict[str, Any]:
    """Return an estimate as JSON data, with None for an infinite margin."""
    by = {"money": "money", "aivat": "AIVAT"}.get(row.estimator.value, "BC-DIVAT")
    return {"mean": row.won.mean, "margin": json_number(row.won.margin), "by": by}


class WebTables:
    """The open tables of the web page, under random names that users cannot guess."""

    def __init__(self) -> None:
        self._open: dict[str, WebTable] = {}
        self._changing = Lock()

    def add(self, table: WebTable) -> str:
        """Add a table under a new name, and close finished or unused tables."""
        name = secrets.token_urlsafe(12)
        with self._changing:
            for old, other in sorted(self._open.items(), key=lambda item: item[1].touched):
                if other.over or monotonic() - other.touched > IDLE or len(self._open) >= MOST_TABLES:
                    self._open.pop(old).leave()
            self._open[name] = table
        return name

    def __getitem__(self, name: str) -> WebTable:
        """Return the table with a given name. Raises PlayError if there is none."""
        if name not in self._open:
            raise PlayError("this table is not open any more: open another")
        return self._open[name]

    def close(self) -> None:
        """Close all tables."""
        for table in self._open.values():
            table.leave()
