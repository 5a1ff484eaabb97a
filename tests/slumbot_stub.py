"""A stand-in for Slumbot on the loopback interface: its protocol over HTTP, with pokerkit for the rules.

It shares no code with the client. The bot that plays here acts at random. Faults are injected by a script: before the
request is heard, after it is heard and before it is answered, or in the answer.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pokerkit

DEALT = (pokerkit.Automation.HOLE_DEALING, pokerkit.Automation.BOARD_DEALING)
AUTOMATIC = tuple(step for step in pokerkit.Automation if step not in DEALT)


class Hand:
    """A hand in progress. Player 0 has the big blind, in pokerkit and in the protocol."""

    def __init__(self, seat, rng):
        self.state = pokerkit.NoLimitTexasHoldem.create_state(AUTOMATIC, True, 0, (50, 100), 100, (20_000,) * 2, 2)
        self.seat, self.rng, self.text, self.before = seat, rng, "", ""
        self.holes = []
        for _ in range(2):
            self.holes.append(self.drawn(2))
            self.state.deal_hole(self.holes[-1])
        self.go_on()

    def drawn(self, number):
        return tuple(self.rng.sample([*self.state.get_dealable_cards()], number))

    @property
    def over(self):
        return not self.state.status

    def take(self, word):
        """An action of either player; ValueError where it is not legal."""
        state, me = self.state, self.state.actor_index
        street, facing = state.street_index, max(state.bets) - state.bets[me]
        if word == "f" and facing:
            state.fold()
        elif word == ("c" if facing else "k"):
            state.check_or_call()
        elif word[0] == "b":
            state.complete_bet_or_raise_to(int(word[1:]))
        else:
            raise ValueError(word)
        self.text += word
        while state.status and state.can_deal_board():
            state.deal_board(self.drawn(3 if state.street_index == 1 else 1))
        ended = (state.street_index or 0) - street if state.status else 0
        if not state.status and len([*state.get_board_cards(0)]) == 5:
            ended = 3 - street  # an all-in may run through the last rounds; the river itself ends without a slash
        self.text += "/" * ended

    def go_on(self):
        """Let the bot act until the client has to, or the hand is over."""
        state = self.state
        while state.status and state.actor_index == 1 - self.seat:
            facing = max(state.bets) - state.bets[state.actor_index]
            words = ["c", "c", "f"] if facing else ["k", "k"]
            if state.can_complete_bet_or_raise_to():
                least = state.min_completion_betting_or_raising_to_amount
                most = state.max_completion_betting_or_raising_to_amount
                words += [
                    f"b{min(most, least + self.rng.randrange(300))}",
                    f"b{most}" if self.rng.random() < 0.1 else "c",
                ]
            word = self.rng.choice(words)
            self.take(word if facing or word != "c" else "k")

    def reply(self):
        names = [repr(card) for card in self.state.get_board_cards(0)]
        said = {"old_action": self.before, "action": self.text, "client_pos": self.seat, "board": names}
        said["hole_cards"] = [repr(card) for card in self.holes[self.seat]]
        if self.over:
            won = self.state.payoffs[self.seat]
            said |= {"winnings": won, "won_pot": 2 * won, "baseline_winnings": won // 2}
            said["bot_hole_cards"] = [repr(card) for card in self.holes[1 - self.seat]]
        return said


class Stub(ThreadingHTTPServer):
    """The server: `faults` names the fault of each request by its number, from 0."""

    daemon_threads = True

    def __init__(self, seed=0, faults=None, password=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.rng, self.faults, self.password = random.Random(seed), faults or {}, password
        self.requests, self.sessions, self.ended, self.crashes = 0, {}, [], []  # ended: last answers, in order
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/slumbot/api"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return super().__enter__()

    def __exit__(self, *error):
        self.shutdown()
        super().__exit__(*error)
        assert not self.crashes, self.crashes[0]

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):  # a client that was killed reads no answer
            self.crashes.append(traceback.format_exc())

    def heard(self, what, body):
        """The answer to a request."""
        if what == "login":
            if body != {"username": "kilt", "password": self.password}:
                return {"error_msg": "Unknown user or wrong password"}
            return {"token": self.session()}
        token = body.get("token")
        if token is None and self.password is None:
            token = self.session()
        if token not in self.sessions:
            return {"error_msg": "Unknown token"}
        seat, hand = self.sessions[token]
        if what == "new_hand":
            hand = Hand(1 - seat, self.rng)
            self.sessions[token] = 1 - seat, hand
        elif hand is None or hand.over:
            return {"error_msg": "No hand in progress"}
        else:
            hand.before = hand.text
            try:
                hand.take(body["incr"])
            except ValueError:
                return {"error_msg": f"Illegal action {body['incr']}"}
            hand.go_on()
        said = hand.reply()
        if hand.over:
            self.ended.append(said)
        if self.rng.random() < 0.1:  # a token may change at any time
            self.sessions[new := self.session()] = self.sessions.pop(token)
            token = new
        return said | {"token": token}

    def session(self):
        token = f"{self.rng.getrandbits(64):x}"
        self.sessions[token] = (self.rng.randrange(2), None)
        return token


class Handler(BaseHTTPRequestHandler):
    """A request, with its fault."""

    def do_POST(self):
        stub, body = self.server, json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.headers["Content-Type"] == "application/json"
        root, _, what = self.path.rpartition("/")
        with stub.lock:
            fault = stub.faults.get(stub.requests, "")
            stub.requests += 1
            said = {} if fault in ("deaf", "busy") else stub.heard(what, body)
        if root != "/slumbot/api":
            self.send_error(404)
        elif fault in ("deaf", "mute"):  # the connection ends without an answer, before or after the request counts
            self.close_connection = True
        elif fault == "busy":
            self.send_error(503)
        else:
            data = {"html": b"<html>", "list": b"[]", "torn": json.dumps(said).encode()[:-7]}.get(fault)
            data = json.dumps(said).encode() if data is None else data
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def log_message(self, *what):
        pass
