"""A run as data: which game, seen through which cards and bets, solved how, played how. It is read from TOML.

::

    game = "holdem.nolimit.2p"              # a ready-made game, or a file in ACPC format
    cards = "IR-KE-KO 169-200-200-200"      # the name of an abstraction, its folder, or its plan as a .toml file
    actions = "50%, 1x, a; 1x, a; a"        # the language of bet sizes

    [solver]
    algorithm = "external"
    minutes = 10                            # or iterations
    seed = 0
    threads = 2
    average = true                          # otherwise the current strategy is the result
    linear = true                           # weigh an iteration by its number
    prune = 0                               # most walks leave out actions that lose more than so many chips a deal

    [engine]
    name = "ray"                            # or local; left out: no blades
    blades = 4                              # that share the classes of boards
    address = ""                            # of a cluster that is there already
    batch = 0                               # deals in a message; 0: as latency asks for
    boards = 0                              # for each deal; 0: one for each thread of all blades, or of each class
    samples = 0                             # boards of each class for each deal, not `boards`: 1 is [Brown15]'s

    [agent]
    post = "new-0.2"                        # post-processing
    translation = "pseudo-harmonic"         # of bets that are not in the abstraction

Everything but `game` and `cards` may be left out. A list of two for `cards` or `actions` gives each player their own.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from kilt.errors import KiltError, RunError

T = TypeVar("T")
DEFAULT_ALGORITHM, DEFAULT_MINUTES = "cfr+", 1  # of runs on a game as it is; of any run without a budget
# What players may have their own of: how many texts there are at least, and one of them.
OF_PLAYERS = {"cards": (1, "IR-KE-KO 169-200-200-200"), "actions": (0, "50%, 1x, a")}


@dataclass(frozen=True)
class SolverConfig:
    """How to solve."""

    algorithm: str = "external"
    minutes: float = 0.0  # 0: as the command says
    iterations: int = 0
    seed: int = 0
    threads: int = 1
    average: bool = True
    linear: bool = True
    prune: float = 0.0


@dataclass(frozen=True)
class EngineConfig:
    """Where to solve, if not in this process alone."""

    name: str = ""  # "": here
    blades: int = 2
    address: str = ""
    batch: int = 0
    boards: int = 0  # for each deal; 0: one for each thread, or where there are as many of these as classes:
    samples: int = 0  # boards of each class for each deal; 0: one, or enough for all threads of a blade


@dataclass(frozen=True)
class AgentConfig:
    """How to play what was solved."""

    post: str = "none"
    translation: str = "pseudo-harmonic"


@dataclass(frozen=True)
class Config:
    """A run: see above."""

    game: str
    cards: tuple[str, ...]  # one, or one for each player
    actions: tuple[str, ...] = ()  # the same; none in limit games; in no-limit games, all raises
    near: float = 0.8
    solver: SolverConfig = field(default_factory=SolverConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)

    def toml(self) -> str:
        """As text that `read_config` understands."""
        said = asdict(self)
        sections = {name: section for name, section in said.items() if isinstance(section, dict)}
        lines = _lines({name: value for name, value in said.items() if name not in sections})
        for name, section in sections.items():
            lines += ["", f"[{name}]", *_lines(section)]
        return "\n".join(lines) + "\n"


def _lines(values: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]


def read_config(path: Path) -> Config:
    """A run from a TOML file. Files that it names are looked for beside it."""
    said = read_toml(path, RunError)
    try:
        config = config_of(said)
    except RunError as error:
        raise RunError(f"{path}: {error}") from None
    return _beside(config, path.parent)


def read_toml(path: Path, complaint: type[KiltError]) -> dict[str, Any]:
    """What a TOML file says; a complaint where it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise complaint(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise complaint(f"{path} is not TOML: {error}") from None


def config_of(said: Mapping[str, Any]) -> Config:
    """A run from plain data.

    >>> config_of({"game": "leduc", "cards": "lossless", "solver": {"seed": 3}}).solver.seed
    3
    """
    said = dict(said)
    said |= {name: _texts(name, said[name], *how) for name, how in OF_PLAYERS.items() if name in said}
    sections = {"solver": SolverConfig, "engine": EngineConfig, "agent": AgentConfig}
    made: dict[str, object] = {name: _made(kind, said.pop(name, {}), f"[{name}]") for name, kind in sections.items()}
    return _made(Config, said | made, "the run")


def _texts(name: str, said: object, least: int, example: str) -> tuple[str, ...]:
    """A text for both players, or one for each."""
    texts = [said] if isinstance(said, str) else said
    if not isinstance(texts, list) or not least <= len(texts) <= 2 or not all(isinstance(one, str) for one in texts):
        raise RunError(f"`{name}` is {said!r}: give a text such as {example!r}, or a list of one for each player")
    return tuple(dict.fromkeys(texts))


def _made(kind: type[T], said: object, where: str) -> T:
    """A dataclass from what was said, each value of the type that it has there."""
    if not isinstance(said, Mapping):
        raise RunError(f"{where} is {said!r}: it has lines such as `seed = 1`")
    known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]
    if others := set(said) - set(known):
        raise RunError(f"{where} says {', '.join(sorted(others))}, which means nothing: use {', '.join(known)}")
    if missing := {"game", "cards"} & set(known) - set(said):
        raise RunError(f"{' and '.join(sorted(missing))} must be given: `kilt plan --example` shows how")
    values = {}
    for name, value in said.items():
        wanted = str(known[name].type)
        types: dict[str, tuple[type, ...]] = {"float": (int, float), "int": (int,), "str": (str,), "bool": (bool,)}
        wrong = wanted in types and (
            not isinstance(value, types[wanted]) or (isinstance(value, bool) and wanted != "bool")
        )
        if wrong:
            raise RunError(f"`{name}` in {where} is {value!r}: it takes a value of type {wanted}")
        least = 1 if name in ("threads", "blades") else 0
        if wanted in ("int", "float") and not least <= value < inf:
            raise RunError(f"`{name}` in {where} is {value}: give {least} or more")
        values[name] = value
    return kind(**values)


def _beside(config: Config, folder: Path) -> Config:
    """The same with full paths to files and folders that lie beside the file it was read from."""
    game = folder / config.game
    return replace(
        config,
        game=str(game.resolve()) if game.is_file() else config.game,
        cards=tuple(str((folder / cards).resolve()) if (folder / cards).exists() else cards for cards in config.cards),
    )
