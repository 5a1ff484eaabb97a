"""Figure 3.5 of [Johanson16]: chance sampling and public chance sampling on Bluff(2,2). Other schemes and CFR+ join.

Bluff has no public chance events: a walk of PCS is one of CFR. The paper finds it much faster than CS.
"""

from kilt.reproduce.convergence import figure

FIGURE = figure(
    "figure-3.5",
    what="[Johanson16 figure 3.5]: convergence of chance sampling schemes and CFR+ on Bluff(2,2)",
    hint="--game bluff-2-1 or bluff-1-1 for a smaller game",
    game="bluff-2-2",
    algorithms=("cs", "opcs", "spcs", "pcs", "cfr+"),
    minutes=30,
)
