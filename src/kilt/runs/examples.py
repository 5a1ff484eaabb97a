"""Example configurations of runs, which `kilt new` prints.

`EXAMPLES` lists them: a template, and the TOML files of this folder.

>>> sorted(EXAMPLES)
['', 'tartanian7']
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from kilt.config import Config, config_of
from kilt.errors import RunError
from kilt.records import commented_toml

# The configuration to begin with: what differs from the defaults. `kilt.config` says what each key means.
_FIRST: dict[str, Any] = {
    "game": "holdem.nolimit.2p",
    "cards": "IR-KE-KO 169-200-200-200",
    "actions": "1x, a / 50%, 1x, a; 1x, a; a",
    "solver": {"minutes": 10, "threads": 2},
    "engine": {},
    "agent": {},
    "resolve": {"seconds": 2},
}

DEMO = """\
# The agent of `kilt demo`: heads-up no-limit hold'em with 50 big blinds.
game = "holdem.nolimit.2p.50bb"
cards = "IR-KE-PHS 169-100-50-50"
opponent_cards = "IR-KE-PHS 169-500-500-1000" # the agent learns against an opponent who sees more than it does
actions = "1x, a / 50%, 1x, a; 50%, 1x, a; 1x, a"

[solver]
minutes = {minutes}
threads = {threads}
linear = true

[agent]
post = "threshold-0.1"
"""
SHIPPED_AGENT = Path(__file__).parents[1] / "strategy" / "shipped" / "house.toml"  # of the agent that comes with kilt


def demo_config(minutes: float = 4.0, threads: int = 1) -> Config:
    """Return the configuration that `kilt demo` solves."""
    return config_of(tomllib.loads(DEMO.format(minutes=minutes, threads=threads)))


EXAMPLES = {"": commented_toml(Config, _FIRST)} | {
    file.stem: file.read_text(encoding="utf-8") for file in sorted(Path(__file__).parent.glob("*.toml"))
}


def example_named(name: str) -> str:
    """Return an example configuration as TOML text, by name.

    An empty name stands for a template to start from.
    """
    if name not in EXAMPLES:
        known = ", ".join(filter(None, EXAMPLES))
        raise RunError(f"there is no example {name!r}: use {known}, or leave the name out")
    return EXAMPLES[name]
