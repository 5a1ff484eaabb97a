"""``kilt bench start``: what the ten commonest commands cost after an installation, when nothing is compiled yet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from kilt_lab.benchmarks.measure import Figure

CONFIG = """\
game = "holdem.nolimit.2p"
cards = "IR-KE-KO 169-200-200-200"
actions = "1x, a / 50%, 1x, a; 1x, a; a"

[solver]
threads = 2
"""
COMMANDS: dict[str, list[str]] = {
    "help": ["--help"],
    "game_list": ["game", "list"],
    "game_size": ["game", "size", "holdem.limit.2p"],
    "equity": ["cards", "equity", "AsKh", "QQ+,AK"],
    "solve": ["solve", "--game", "leduc", "--iterations", "1000"],
    "lp": ["solve", "--game", "leduc", "-a", "lp"],
    "exploitability": ["evaluate", "exploitability", "--game", "leduc", "--agent", "always-call"],
    "abstraction": ["abstraction", "build", "IR-KE-KO 20-30-30-30", "--game", "royal.limit.2p", "--threads", "1"],
    "match": ["match", "always-call", "random", "--game", "holdem.nolimit.2p", "--hands", "1000"],
    "plan": ["plan", "my.toml"],
}


def run(*, long: bool = False) -> list[Figure]:
    """CPU seconds of each command in its own process with empty caches, and their sum; with `long`, each once more.

    CPU seconds, of user and system, tell more than those of a clock where other programs run beside it.
    """
    figures = list[Figure]()
    for key, command in COMMANDS.items():
        with TemporaryDirectory() as caches:
            what = "kilt " + " ".join(command)
            figures.append(Figure(f"{key}_cold_cpu", what, _cpu_seconds(command, caches), "CPU s"))
            if long:
                figures.append(Figure(f"{key}_warm_cpu", "… once more", _cpu_seconds(command, caches), "CPU s"))
    cold = sum(figure.value for figure in figures if figure.key.endswith("_cold_cpu"))
    return [*figures, Figure("cold_cpu", "all of them, the first time", cold, "CPU s")]


def _cpu_seconds(command: list[str], caches: str) -> float:
    """What a command takes in a new folder, with the caches of kernels and of features in another."""
    own = {"NUMBA_CACHE_DIR": f"{caches}/kernels", "KILT_CACHE": f"{caches}/features"}
    with TemporaryDirectory() as folder:
        Path(folder, "my.toml").write_text(CONFIG)
        before = os.times()
        subprocess.run(
            [sys.executable, "-m", "kilt", *command], cwd=folder, env=os.environ | own, capture_output=True, check=True
        )
        after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
