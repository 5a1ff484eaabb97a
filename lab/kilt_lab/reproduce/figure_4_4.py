"""Figures 4.4 and 4.5 of [Johanson16]: abstracted players in [2-4] hold'em.

The paper has five buckets with perfect recall, and 570 with imperfect recall. It does not say how they were made. Ours
were picked because they come nearest to its figures, of several that were tried: those of Texas hold'em, where two more
cards are to come after the flop, by percentiles of E[HS²] and by clusters of histograms.
"""

from kilt_lab.reproduce.abstracted import Case, cases
from kilt_lab.reproduce.claims import Claim, lower
from kilt_lab.reproduce.reproduction import Request

PERFECT = "PR-PHS-PHS 5-5"
IMPERFECT = "IR-KE-KO 169-570"
LONGER = "holdem.limit.2p"


def claims(figure: str) -> tuple[Claim, ...]:
    """What both figures claim."""
    source = f"[Johanson16 {figure}]"
    return (
        Claim("against a player without abstraction CFR finds a less exploitable one", source, lower("one", "both")),
        Claim("CFR-BR finds a less exploitable strategy than CFR", source, lower("cfr-br", "both")),
    )


FIGURE = cases(
    "figure-4.4",
    "[Johanson16 figure 4.4]: [2-4] hold'em with a perfect recall 5-bucket abstraction, 1,790 information sets",
    [Case(PERFECT, "both", 144.0), Case(PERFECT, "one", 81.0), Case(PERFECT, "cfr-br", 81.0)],
    minutes=4,
    curves=True,
    claims=claims("figure 4.4"),
    quick=Request(game="short.2-1", minutes=0.05, runs=3),
    rolled_out=LONGER,
)
FIGURE_4_5 = cases(
    "figure-4.5",
    "[Johanson16 figure 4.5]: [2-4] hold'em with an imperfect recall 570-bucket abstraction, 41,252 information sets",
    [Case(IMPERFECT, "both", 103.0), Case(IMPERFECT, "one", 25.0), Case(IMPERFECT, "cfr-br", 25.0)],
    minutes=8,
    curves=True,
    claims=claims("figure 4.5"),
    quick=Request(only=("both", "cfr-br"), game="holdem.2-1", minutes=0.03, runs=3),
    rolled_out=LONGER,
)
