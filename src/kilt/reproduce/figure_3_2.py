"""Figure 3.2 of [Johanson16]: chance sampling schemes on [2-1] and [2-4] hold'em. CFR+ joins in.

The paper finds PCS much faster than CS, and OPCS and SPCS slower; its curves are means of five runs.
"""

from kilt.reproduce.convergence import figure

FIGURE = figure(
    "figure-3.2",
    what="[Johanson16 figure 3.2]: convergence of chance sampling schemes and CFR+ on [2-1] hold'em",
    hint="--game holdem.2-4 for the other half of it",
    game="holdem.2-1",
    algorithms=("cs", "opcs", "spcs", "pcs", "cfr+"),
    minutes=2,
)
