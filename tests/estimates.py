"""What runs of many kinds take, as kilt says before they begin: `tests/data/estimates.json` keeps the figures.

Run this file to write the table anew, and look at what has changed.
"""

import json
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from kilt import machine
from kilt.config import config_of
from kilt.runs.plan import resolve
from kilt.solve.problem import ABSTRACT
from kilt.solve.registry import ALGORITHMS
from kilt.spots.solving import USUAL, cost_of
from kilt.spots.spot import Spot

TABLE = Path(__file__).parent / "data" / "estimates.json"
MEMORY = 16 * 10**9  # bytes that the machine of the table has available
GAMES = {
    "leduc": {"game": "leduc", "cards": "lossless"},
    "small": {"game": "holdem.limit.2p", "cards": "IR-KE-KE 5-20-20-20"},
    "two menus": {
        "game": "holdem.nolimit.2p.50bb",
        "cards": "IR-KE-KO 169-200-200-200",
        "actions": ["50%, 1x, a", "1x, a"],
    },
    "large": {"game": "holdem.limit.2p", "cards": "IR-KE-KO 169-9000-9000-9000"},
}
MORE = ("cfr-br:1", "cfr-br:2:linear", "cfr+disk:average", "joint:cfr", "pcs:cfr+")
SOLVERS = [
    *({"algorithm": name} for name in (*(name for name, one in ALGORITHMS.items() if ABSTRACT in one.make), *MORE)),
    {"algorithm": "external", "average": False},
    {"algorithm": "external", "threads": 4},
    {"algorithm": "cfr+", "threads": 4},
    {"algorithm": "cfr+disk", "threads": 4},
]
ENGINES = [
    {"name": "local", "blades": 4},
    {"name": "ray", "blades": 3, "address": "127.0.0.1:6379"},
]
SPOTS = [
    {"board": "QsJh2h7d", "pot": 6, "stacks": 20, "ranges": ["QQ+,AKs", "JJ-99,AQ"], "bets": "50%, a"},
    {"board": "QsJh2h", "pot": 6, "stacks": 97, "ranges": ["22+", "22+"], "bets": "50%, a"},
]


def estimated(config):
    """The bytes and seconds of a run."""
    cost = resolve(config_of(config)).cost().part("solving")
    return {
        "tables": cost.part("tables").memory,
        "memory": cost.memory,
        "mapped": cost.mapped,
        "disk": cost.disk,
        "seconds": None if cost.iteration is None else float(f"{cost.iteration:.6g}"),
    }


def estimates():
    """The whole table."""
    found = {}
    with (
        TemporaryDirectory() as folder,  # without feature tables, which need not be made again
        patch.object(machine, "cache_folder", lambda: Path(folder)),
        patch.object(machine, "available_memory", lambda: MEMORY),
    ):
        for name, game in GAMES.items():
            for solver in SOLVERS:
                found[f"{name}: {json.dumps(solver)}"] = estimated(game | {"solver": solver})
            for engine in ENGINES:
                disk = {"engine": engine, "solver": {"algorithm": "cfr+disk"}}
                found[f"{name}: cfr+disk on {json.dumps(engine)}"] = estimated(game | disk)
        for number, spot in enumerate(SPOTS):
            tree = Spot(**spot).tree()
            cost = cost_of(tree)
            sizes = {"nodes": len(tree.tree.nodes.kind), "boards": len(tree.tree.weight), "cells": prod(tree.shape)}
            sizes |= {"memory": cost.memory, "seconds": USUAL * cost.iteration, "device": cost.device}
            found[f"spot {number}"] = {name: float(f"{size:.6g}") for name, size in sizes.items()}
    return found


if __name__ == "__main__":
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(what)}" for name, what in estimates().items())
    TABLE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
