"""Figure 3.2 of [Johanson16]: chance sampling schemes on [2-1] and [2-4] hold'em. CFR+ joins in.

The paper finds PCS much faster than CS, and OPCS and SPCS slower; its curves are means of five runs.
"""

from kilt_lab.reproduce.claims import Claim, lower
from kilt_lab.reproduce.convergence import figure
from kilt_lab.reproduce.reproduction import Request

SOURCE = "[Johanson16 figure 3.2]"

FIGURE = figure(
    "figure-3.2",
    what="[Johanson16 figure 3.2]: convergence of chance sampling schemes and CFR+ on [2-1] hold'em",
    hint="--game holdem.2-4 for the other half of it",
    game="holdem.2-1",
    algorithms=("cs", "opcs", "spcs", "pcs", "cfr+"),
    minutes=2,
    claims=(
        Claim(
            "PCS converges much more quickly than CS: it is below half of it, a margin that is ours",
            SOURCE,
            lower("pcs", "cs", factor=0.5),
        ),
        Claim("OPCS converges slower than CS", SOURCE, lower("cs", "opcs")),
        Claim("SPCS converges slower than CS", SOURCE, lower("cs", "spcs")),
    ),
    quick=Request(only=("cs", "opcs", "spcs", "pcs"), game="short.2-1", minutes=0.05, runs=3),
)
