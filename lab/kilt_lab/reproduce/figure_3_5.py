"""Figure 3.5 of [Johanson16]: chance sampling and public chance sampling on Bluff(2,2). Other schemes and CFR+ join.

Bluff has no public chance events: a walk of PCS is one of CFR. The paper finds it much faster than CS.
"""

from kilt_lab.reproduce.claims import Claim, lower
from kilt_lab.reproduce.convergence import figure
from kilt_lab.reproduce.reproduction import Request

FIGURE = figure(
    "figure-3.5",
    what="[Johanson16 figure 3.5]: convergence of chance sampling schemes and CFR+ on Bluff(2,2)",
    hint="--game bluff-2-1 or bluff-1-1 for a smaller game",
    game="bluff-2-2",
    algorithms=("cs", "opcs", "spcs", "pcs", "cfr+"),
    minutes=30,
    claims=(
        Claim(
            "PCS, a walk of CFR here, converges significantly faster than CS: it is below half of it, a margin that is "
            "ours",
            "[Johanson16 figure 3.5]",
            lower("pcs", "cs", factor=0.5),
        ),
    ),
    quick=Request(only=("cs", "pcs"), game="bluff-1-1", minutes=0.05, runs=3),
)
