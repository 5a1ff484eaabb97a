"""Replace old spellings of commands and options by the current ones, and print a hint.

Each old spelling works for one release.

>>> current_spelling(["solve", "--game", "leduc", "--minutes", "5"])
['solve', 'leduc', '--time', '5min']
>>> current_spelling(["crosstable", "a", "b", "c", "--processes", "2"])
['match', '--all', 'a', 'b', 'c', '--workers', '2']
>>> current_spelling(["solve", "leduc", "-t", "0.01"]), current_spelling(["solve", "leduc", "-t", "90s"])
(['solve', 'leduc', '--target', '0.01'], ['solve', 'leduc', '-t', '90s'])
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

Rewrite: TypeAlias = Callable[[str], list[str]]  # from the value of an option to words in place of both
_NUMBER = re.compile(r"[\d.]+(e-?\d+)?")


def _time(unit: str) -> Rewrite:
    """Rewrite an option whose number has the given unit to ``--time``."""
    return lambda value: ["--time", f"{value}{unit}"]


def _named(option: str) -> Rewrite:
    """Rewrite an option to another name with the same value."""
    return lambda value: [option, value]


def _argument(value: str) -> list[str]:
    """Rewrite an option to its value alone, as an argument."""
    return [value]


def _bare(value: str) -> list[str]:
    """Rewrite ``-t`` with a bare number to ``--target``."""
    return ["--target" if _NUMBER.fullmatch(value) else "-t", value]


def _key(key: str, form: str = "{}") -> Rewrite:
    """Rewrite an option to a key of a configuration, set with ``--set``."""
    return lambda value: ["--set", f"{key}={form.format(value)}"]


def _last(value: str) -> list[str]:
    """Rewrite an option to its value alone, after all other words."""
    return [value]


_MINUTES: dict[str, Rewrite] = {"--minutes": _time("min"), "-m": _time("min")}
_WORKERS: dict[str, Rewrite] = {"--processes": _named("--workers")}
_GAME: dict[str, Rewrite] = {"--game": _argument, "-g": _argument}
_HANDS: dict[str, Rewrite] = {"-n": _named("--hands")}
# Renamed options, by command.
OPTIONS: Mapping[tuple[str, ...], Mapping[str, Rewrite]] = {
    ("solve",): {
        **_MINUTES,
        **_GAME,
        "--resume": _argument,
        "-t": _bare,
        "--tilt": _key("tilt", "[{}]"),
        "--batch": _key("engine.batch"),
    },
    ("counter",): {**_MINUTES, **_GAME, "--log": _named("--model"), "--p-max": _named("--p")},
    ("model",): {"--game": _named("--for"), "-g": _named("--for")},
    ("demo",): {**_MINUTES, **_HANDS},
    ("build",): {"--hours": _time("h")},
    ("abstraction", "build"): _MINUTES,
    ("abstraction", "boards"): {
        "--clusters": _named("--classes"),
        "-b": _key("base"),
        **{f"--{key}": _key(key) for key in ("base", "clustering", "ground", "restarts")},
    },
    ("spot", "solve"): {
        "--seconds": _time("s"),
        "--save": _named("--out"),
        "-t": _bare,
        "--resume": _argument,
        **{
            f"--{key.replace('_', '-')}": _key(key)
            for key in ("all_in_threshold", "after", "big_blind", "rake", "rake_cap")
        },
    },
    ("spot", "show"): {"--hands": _named("--range"), "--grid": _named("--picture"), "-l": _named("--line")},
    ("play",): _HANDS,
    ("match",): {**_WORKERS, **_HANDS},
    ("dealer",): {
        **_HANDS,
        **{f"--{key.replace('_', '-')}-seconds": _key(key) for key in ("start", "response", "hand", "per_hand")},
        "--max-invalid": _key("invalid"),
    },
    ("slumbot",): {**_HANDS, **{f"--{key}": _key(key) for key in ("url", "timeout", "tries", "wait")}},
    ("evaluate", "lbr"): {**_WORKERS, **_HANDS, "--from": _named("--round")},
    ("evaluate", "log"): {**_WORKERS, "--player": _last, "--phh": _named("--out")},
    ("evaluate", "sanity"): {"-n": _named("--deals")},
    ("evaluate", "exploitability"): {"--agent": _argument, "--responses": _named("--out")},
    ("estimate",): _GAME,
}
# Renamed options without a value, by command.
FLAGS: Mapping[tuple[str, ...], Mapping[str, list[str]]] = {
    ("abstraction", "boards"): {"--exact": ["--set", "exact=true"]},
    ("spot", "solve"): {"--compact": ["--set", "compact=true"], "--no-compact": ["--set", "compact=false"]},
    ("slumbot",): {"--aivat": ["--way", "aivat"], "--no-aivat": ["--way", "played"]},
    ("estimate",): {"--no-probe": []},
    ("web",): {"--browser": []},
}
# Renamed commands, and the option that gives them their old meaning.
COMMANDS: Mapping[tuple[str, ...], tuple[str, ...]] = {("crosstable",): ("match", "--all"), ("plan",): ("estimate",)}


def current_spelling(words: Sequence[str], hint: Callable[[str], None] = lambda text: None) -> list[str]:
    """Return a command line with old spellings replaced by current ones.

    `hint` is called with the words to type instead of old spellings.
    """
    found = list(words)
    if found[:1] == ["plan"] and "--example" in found:
        rest = [word for word in found[1:] if word != "--example"]
        found = ["new", *(word for name in rest for word in (("--like", name) if name[:1] != "-" else (name,)))]
    for old, new in COMMANDS.items():
        if tuple(found[: len(old)]) == old:
            found[: len(old)] = new
    for command in {**OPTIONS, **FLAGS}:
        if tuple(found[: len(command)]) == command:
            found = [*command, *_options(found[len(command) :], OPTIONS.get(command, {}), FLAGS.get(command, {}))]
    if found[:1] == ["counter"] and "--p-max" in words and "--confidence" not in words:
        found += ["--confidence", "0-10-linear"]  # otherwise --p means a restricted Nash response
    if found != list(words):
        hint(f"kilt {' '.join(words)} is now kilt {' '.join(found)}; the old spelling goes in kilt 0.3")
    return found


def _options(words: list[str], table: Mapping[str, Rewrite], flags: Mapping[str, list[str]]) -> list[str]:
    found: list[str] = []
    end: list[str] = []
    left = iter(words)
    for word in left:
        name, equals, value = word.partition("=")
        short = next((one for one in table if len(one) == 2 and word.startswith(one)), None)
        if word == "--":
            return [*found, *end, word, *left]
        if word in flags:
            found += flags[word]
        elif name in table and (equals or word == name):
            given = value if equals else next(left, None)
            (end if table[name] is _last else found).extend([word] if given is None else table[name](given))
        elif short and not word.startswith("--"):
            found += table[short](word[2:])
        else:
            found.append(word)
    return [*found, *end]
