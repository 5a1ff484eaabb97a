"""Old spellings of commands and options: each works for one release, and a hint says what to type instead.

>>> renewed(["solve", "--game", "leduc", "--minutes", "5"])
['solve', 'leduc', '--time', '5min']
>>> renewed(["crosstable", "a", "b", "c", "--processes", "2"])
['match', '--all', 'a', 'b', 'c', '--workers', '2']
>>> renewed(["solve", "leduc", "-t", "0.01"]), renewed(["solve", "leduc", "-t", "90s"])
(['solve', 'leduc', '--target', '0.01'], ['solve', 'leduc', '-t', '90s'])
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

Rewrite: TypeAlias = Callable[[str], list[str]]  # from the value of an option to words in place of both
_NUMBER = re.compile(r"[\d.]+(e-?\d+)?")


def _time(unit: str) -> Rewrite:
    """A number of a unit becomes a time."""
    return lambda value: ["--time", f"{value}{unit}"]


def _named(option: str) -> Rewrite:
    """The same value under another name."""
    return lambda value: [option, value]


def _argument(value: str) -> list[str]:
    """The value without an option."""
    return [value]


def _bare(value: str) -> list[str]:
    """-t with a bare number was --target."""
    return ["--target" if _NUMBER.fullmatch(value) else "-t", value]


_MINUTES: dict[str, Rewrite] = {"--minutes": _time("min"), "-m": _time("min")}
_WORKERS: dict[str, Rewrite] = {"--processes": _named("--workers")}
_GAME: dict[str, Rewrite] = {"--game": _argument, "-g": _argument}
# Options that have another name now, by command.
OPTIONS: Mapping[tuple[str, ...], Mapping[str, Rewrite]] = {
    ("solve",): {**_MINUTES, **_GAME, "--resume": _argument, "-t": _bare},
    ("counter",): _MINUTES,
    ("demo",): _MINUTES,
    ("abstraction", "build"): _MINUTES,
    ("spot", "solve"): {"--seconds": _time("s"), "--save": _named("--out"), "-t": _bare},
    ("match",): _WORKERS,
    ("evaluate", "lbr"): _WORKERS,
    ("evaluate", "log"): _WORKERS,
    ("evaluate", "exploitability"): {"--agent": _argument},
    ("estimate",): _GAME,
}
# Commands that have another name now, and the option that makes them what they were.
COMMANDS: Mapping[tuple[str, ...], tuple[str, ...]] = {("crosstable",): ("match", "--all"), ("plan",): ("estimate",)}


def renewed(words: Sequence[str], hint: Callable[[str], None] = lambda text: None) -> list[str]:
    """The words of a command line in today's spelling; `hint` is called with what to type instead of old spellings."""
    found = list(words)
    if found[:1] == ["plan"] and "--example" in found:
        rest = [word for word in found[1:] if word != "--example"]
        found = ["new", *(word for name in rest for word in (("--like", name) if name[:1] != "-" else (name,)))]
    for old, new in COMMANDS.items():
        if tuple(found[: len(old)]) == old:
            found[: len(old)] = new
    for command, options in OPTIONS.items():
        if tuple(found[: len(command)]) == command:
            found = [*command, *_options(found[len(command) :], options)]
    if found != list(words):
        hint(f"kilt {' '.join(words)} is now kilt {' '.join(found)}; the old spelling goes in kilt 0.3")
    return found


def _options(words: list[str], table: Mapping[str, Rewrite]) -> list[str]:
    found: list[str] = []
    left = iter(words)
    for word in left:
        name, equals, value = word.partition("=")
        short = next((one for one in table if len(one) == 2 and word.startswith(one)), None)
        if word == "--":
            return [*found, word, *left]
        if name in table and equals:
            found += table[name](value)
        elif word in table:
            following = next(left, None)
            found += [word] if following is None else table[word](following)
        elif short and not word.startswith("--"):
            found += table[short](word[2:])
        else:
            found.append(word)
    return found
