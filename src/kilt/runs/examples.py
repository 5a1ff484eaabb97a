"""Ready-made configurations of runs, which `kilt new` prints.

`EXAMPLES` lists them.

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

_TARTANIAN7 = """\
# The agent of [Brown15], as large as 16 GB of memory can hold. The paper used 500 buckets per class of flops, and a
# betting tree of 6,104,546 nodes that it does not list. `kilt estimate THIS --blades 60` says what each of its blades
# would need.
game = "holdem.nolimit.2p"              # 200 big blinds, as in the competition of 2014
cards = "IR-KE-KO 169-70-70-70 in 60 classes"  # in each class, the features of Johanson et al. 2013
actions = "50%, 75%, 1x, 1.5x, 2x, 5x, a; 1x, a; a"  # the first bets of its section 4; fewer sizes for raises

[solver]
algorithm = "external"
minutes = 1440                          # one day; the paper ran for 50 days on 961 cores
threads = 2
linear = false                          # all iterations weigh the same, as in the paper
equities = true                         # an all-in is worth its mean over all boards to come

[engine]
name = ""                               # "ray": up to 60 blades share the classes
blades = 2
address = ""                            # HOST:PORT of a Ray cluster
samples = 0                             # 1: each deal draws one board from each class, as in the paper

[agent]
post = "new-0.2"                        # the paper's post-processing
translation = "pseudo-harmonic"         # the paper's mapping of bets that the abstraction lacks
"""

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
    """Return the configuration of the run that `kilt demo` solves."""
    return config_of(tomllib.loads(DEMO.format(minutes=minutes, threads=threads)))


EXAMPLES = {"": commented_toml(Config, _FIRST), "tartanian7": _TARTANIAN7}


def example_named(name: str) -> str:
    """Return the text of a ready-made configuration in TOML, given its name.

    An empty name stands for a template to start from.
    """
    if name not in EXAMPLES:
        known = ", ".join(filter(None, EXAMPLES))
        raise RunError(f"there is no example {name!r}: use {known}, or leave the name out")
    return EXAMPLES[name]
