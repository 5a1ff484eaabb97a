"""Figure 9.3 of [Johanson16]: exploitability of CFR+'s current and of its average strategy, by iterations.

In limit hold'em the current strategy was the better one, and so no average was kept. Here on [2-4] hold'em.
"""

from kilt_lab.reproduce.claims import Claim, lower
from kilt_lab.reproduce.convergence import figure
from kilt_lab.reproduce.reproduction import Request

FIGURE = figure(
    "figure-9.3",
    what="[Johanson16 figure 9.3]: convergence of CFR+'s current strategy and of its average, on [2-4] hold'em",
    hint="--game holdem.2-1 for a smaller game; nothing is drawn at random, so that there is one run of each",
    game="holdem.2-4",
    algorithms=("cfr+current", "cfr+"),
    minutes=30,
    claims=(
        Claim(
            "CFR+'s current strategy is less exploitable than its average",
            "[Johanson16 §9.4, footnote 7]",
            lower("cfr+current", "cfr+"),
        ),
    ),
    quick=Request(game="leduc", minutes=0.05, runs=3),
)
