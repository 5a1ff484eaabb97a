"""``kilt bench start``: CPU seconds of the ten most common commands after an installation, without compiled kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from kilt.machine import cpu_seconds
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
    """Measure CPU seconds of each command in its own process with empty caches, and their sum; with `long`, each twice.

    CPU seconds of user and system are more reliable than wall time if other programs run at the same time.
    """
    figures = list[Figure]()
    for key, command in COMMANDS.items():
        with TemporaryDirectory() as caches:
            what = "kilt " + " ".join(command)
            figures.append(Figure(f"{key}_cold_cpu", what, _cpu_seconds(command, caches), "CPU s"))
            if long:
                figures.append(Figure(f"{key}_warm_cpu", "… the second time", _cpu_seconds(command, caches), "CPU s"))
    cold = sum(figure.value for figure in figures if figure.key.endswith("_cold_cpu"))
    return [*figures, Figure("cold_cpu", "all commands, the first time", cold, "CPU s")]


def _cpu_seconds(command: list[str], caches: str) -> float:
    """Return the CPU seconds of a command in a new folder, with caches of kernels and features in another folder."""
    own = {"NUMBA_CACHE_DIR": f"{caches}/kernels", "KILT_CACHE": f"{caches}/features"}
    with TemporaryDirectory() as folder:
        Path(folder, "my.toml").write_text(CONFIG)
        before = cpu_seconds()
        subprocess.run(
            [sys.executable, "-m", "kilt", *command], cwd=folder, env=os.environ | own, capture_output=True, check=True
        )
        return cpu_seconds() - before
