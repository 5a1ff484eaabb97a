"""Players and loaders of players as processes need them: in a module that can be found by its name."""

import os
from dataclasses import dataclass

from kilt.errors import PlayError
from kilt.play.agent import BASELINES


def baseline(name):
    return BASELINES[name]


def here_only(name, home):
    if os.getpid() != home:
        raise PlayError(f"{name} cannot be played elsewhere")
    return BASELINES[name]


def dies_elsewhere(name, home):
    if os.getpid() != home:
        os._exit(1)
    return BASELINES[name]


@dataclass(frozen=True)
class Rooted:
    """Says in which process it plays, by the size of its raises."""

    name: str = "rooted"

    def act(self, observation):
        return f"r{1000 + os.getpid() % 1000}" if observation.position.history in ("", "c") else "c"


class Diary:
    """Raises after a hand that it has won, otherwise calls; keeps all that it saw."""

    name = "diary"

    def __init__(self):
        self.seen, self.notes, self.copies = [], [], []

    def begin(self, game):
        self.copies.append(Diary())
        return self.copies[-1]

    def act(self, observation):
        bold = self.seen and self.seen[-1].won > 0
        return "r" if bold and observation.position.raise_bounds() else "c"

    def observe_hand(self, hand):
        self.seen.append(hand)
        self.notes.append(f"{len(self.seen)} hands, {hand.won:+g}")
        return self.notes[-1]
