"""Ready-made configurations of runs: what `kilt new` prints. `EXAMPLES` is the menu.

>>> sorted(EXAMPLES)
['', 'tartanian7']
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from kilt.abstraction.plan import PublicPlan
from kilt.config import Config, config_of
from kilt.errors import RunError

_FIRST = """\
game = "holdem.nolimit.2p"              # a ready-made game (`kilt game list`), or a file in ACPC format
cards = "IR-KE-KO 169-200-200-200"      # a name, a folder that `kilt abstraction build` made, or a plan as a .toml file
actions = "1x, a / 50%, 1x, a; 1x, a; a"  # bet sizes: rounds are split by /, the raises of a round by ;
tilt = []                               # [7, 0, 0, 7]: percent more for winning a showdown, losing, folding, a fold

[solver]
algorithm = "external"                  # or cfr+, pcs, cfr-br:1, … where all boards and hands can be walked
minutes = 10                            # or iterations
seed = 0
threads = 2
average = true                          # false: the current strategy is the result, in half the memory
linear = true                           # weigh an iteration by its number
prune = 0                               # most walks leave out actions that lose more chips a deal than this
equities = false                        # an all-in before the last round is worth its mean over all boards
compact = false                         # with --device gpu: regrets after the first round have two bytes

[engine]
name = ""                               # local or ray: blades share classes of boards, workers subgames of cfr+disk
blades = 2                              # each has the threads that [solver] says
below = []                              # blades below each, which share the classes of the next board, and so on
address = ""                            # HOST:PORT of a Ray cluster; left out: one of its own, on this machine
batch = 0                               # deals in a message; 0: as many as latency asks for
boards = 0                              # for each deal; 0: one for each thread of all blades, or of each class
samples = 0                             # boards of each class for each deal, not `boards`: 1 is [Brown15]'s

[agent]
post = "none"                           # or purification, threshold-T, new-T, bets-F-A-I [Brown15 §4]
translation = "pseudo-harmonic"         # of bets that are not among the actions

[resolve]
rounds = []                             # such as ["turn", "river"]: whose subgames are solved while it plays
method = "gadget"                       # or unsafe, max-margin
trust = 0.85                            # in the opponent's range, from 0 to 1, with the gadget
neglect = 0.001                         # hands of the opponent with less than this share are left out
bets = "50%, 1x, a; 1x, a; a / 1x; a"    # of the round that is re-solved / of those after it
seconds = 2                             # of a decision; or iterations, of each subgame
threads = 1
limited = []                            # such as ["flop"]: subgames that end with the round, with blueprint values
continuations = 4                       # of the opponent's there
boards = 24                             # to come, which such values are means over; 0: all
"""

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
cards = "{cards}"
actions = "50%, 1x, a; 50%, 1x, a; 1x, a; a / 50%, 1x, a; 1x, a; a"

[solver]
minutes = {minutes}
threads = {threads}
linear = true

[agent]
post = "none"
"""
DEMO_CARDS = "IR-KE-KO 169-20-20-20"
# Flops are sorted into 10 classes, and hands into 20 buckets inside each class in every later round, as Tartanian7 did
# on a larger scale [Brown15 §2].
DEMO_CLASSES = PublicPlan(2, 10, base="IR-KE-KO 169-500-500-500", codes=500)
HOUSE = Path(__file__).parents[1] / "strategy" / "shipped" / "house.toml"  # of the agent that comes with kilt


def demo_config(cards: str = DEMO_CARDS, minutes: float = 2.0, threads: int = 1) -> Config:
    """The configuration of `kilt demo`; `cards` names its card abstraction, or a file with the plan of one."""
    return config_of(tomllib.loads(DEMO.format(cards=cards, minutes=minutes, threads=threads)))


EXAMPLES = {"": _FIRST, "tartanian7": _TARTANIAN7}


def example_named(name: str) -> str:
    """A configuration of the menu, as TOML; the empty name is one to begin with."""
    if name not in EXAMPLES:
        known = ", ".join(filter(None, EXAMPLES))
        raise RunError(f"there is no example {name!r}: use {known}, or leave the name out")
    return EXAMPLES[name]
