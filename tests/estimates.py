"""What runs of many kinds take, as kilt says before they begin: `tests/data/estimates.json` keeps the figures.

Run this file to write the table anew, and look at what has changed.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from kilt import artifact, machine
from kilt.config import config_of
from kilt.runs.plan import resolve
from kilt.solve.problem import ABSTRACT
from kilt.solve.registry import ALGORITHMS
from kilt.spots.spot import Spot, estimate_of

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
    found = resolve(config_of(config)).estimate()
    return {
        "tables": found.tables,
        "memory": found.memory - machine.PROCESS,
        "mapped": found.mapped,
        "disk": found.disk,
        "seconds": None if found.seconds is None else float(f"{found.seconds:.6g}"),
    }


def estimates():
    """The whole table."""
    found = {}
    with (
        TemporaryDirectory() as folder,  # without feature tables, which need not be made again
        patch.object(artifact, "cache_folder", lambda: Path(folder)),
        patch.object(machine, "available_memory", lambda: MEMORY),
    ):
        for name, game in GAMES.items():
            for solver in SOLVERS:
                found[f"{name}: {json.dumps(solver)}"] = estimated(game | {"solver": solver})
            for engine in ENGINES:
                disk = {"engine": engine, "solver": {"algorithm": "cfr+disk"}}
                found[f"{name}: cfr+disk on {json.dumps(engine)}"] = estimated(game | disk)
        for number, spot in enumerate(SPOTS):
            found[f"spot {number}"] = {
                k: float(f"{v:.6g}") for k, v in estimate_of(Spot(**spot).tree())._asdict().items()
            }
    return found


if __name__ == "__main__":
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(what)}" for name, what in estimates().items())
    TABLE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
