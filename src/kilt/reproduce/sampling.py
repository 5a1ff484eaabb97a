"""Other races between solvers: external sampling and pure CFR [Brown15 §3], CFR and CFR-BR [Johanson16 figure 4.3]."""

from kilt.reproduce.claims import Claim, lower
from kilt.reproduce.convergence import figure
from kilt.reproduce.reproduction import Request
from kilt.solve.problem import FLAT

PURE = figure(
    "tartanian7-pure",
    what="[Brown15 §3]: external sampling and pure CFR on Leduc hold'em",
    hint="--game kuhn, one-card or bluff-1-1 for another one",
    game="leduc",
    algorithms=("external", "pure", "outcome"),
    minutes=0.5,
    claims=(Claim("external sampling converges faster than pure CFR", "[Brown15 §3]", lower("external", "pure")),),
    quick=Request(only=("external", "pure"), minutes=0.05, runs=5),
    form=FLAT,
)
FIGURE_4_3 = figure(
    "figure-4.3",
    what="[Johanson16 figure 4.3]: CFR and CFR-BR on [2-4] hold'em without abstraction",
    hint="--game holdem.2-1 or leduc for a smaller one",
    game="holdem.2-4",
    algorithms=("pcs", "cfr-br:1"),
    minutes=10,
    claims=(
        Claim(
            "CFR-BR's average strategy converges slower than that of public chance sampled CFR",
            "[Johanson16 figure 4.3]",
            lower("pcs", "cfr-br:1"),
        ),
    ),
    quick=Request(game="leduc", minutes=0.05, runs=3),
)
