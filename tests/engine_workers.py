"""Workers as engines need them: in a module that other processes find by its name."""

import os
import time
from pathlib import Path

import numpy as np

from kilt.errors import RunError
from kilt.runs import folder as folders
from kilt.runs.answers import solve_answer
from kilt.runs.build import resume


class Notebook:
    """Keeps what it is told, in the order in which it is told."""

    def __init__(self, *first):
        self.lines = list(first)

    def write(self, line, seconds=0.0):
        time.sleep(seconds)
        self.lines.append(line)
        return len(self.lines)

    def read(self):
        return self.lines

    def refuse(self, why):
        raise RunError(f"no: {why}")

    def divide(self, number):
        return 1 / number

    def process(self):
        return os.getpid()

    def total(self, array):
        return array.sum(), array.flags.writeable

    def double(self, array):
        return array * 2


class Stubborn:
    """Cannot be made."""

    def __init__(self, place):
        raise RunError(f"{place} is no place for me")


def square(number):
    if number == 13:
        raise RunError("13 brings bad luck")
    return number * number


def dies_once(place):
    """Ends its process the first time it is called."""
    if not Path(place).exists():
        Path(place).touch()
        os._exit(1)
    return 1


def answers_and_dies_once(folder):
    """Solves an answer; that with p = 0.5 loses its process after some checkpoints. What was logged is kept aside."""
    aside = folder / "before.jsonl"

    def tick(iterations, _):
        if iterations >= 20:
            aside.write_bytes((folder / "log.jsonl").read_bytes())
            os._exit(1)

    if folder.name == "0.5" and not aside.exists():
        folders.OFTEN, folders.SAVING = 0.0, 10.0
        for _ in resume(folder).solving(tick=tick):
            pass
    return solve_answer(folder)


def ones(count):
    return np.ones(count)
