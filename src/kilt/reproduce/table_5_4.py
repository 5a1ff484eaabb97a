"""[Johanson16 table 5.4] on a game that fits here: which features make the better abstraction, with and without recall.

The paper compares abstractions of limit hold'em of 57 million information sets; here they are of [4-1] hold'em with 20
cards, four rounds with one raise each, and of about 16,000: 4 · 5 + 12 · 15 + 36 · 45 + 108 · 135 with perfect recall,
4 · 25 + (12 + 36 + 108) · 104 without, where 25 tells all hands apart. What the paper has for limit hold'em is printed
beside them: it is the order that may be compared.
"""

from itertools import product

from kilt.reproduce.abstracted import Case, cases
from kilt.reproduce.claims import Claim, contrast, every, lower
from kilt.reproduce.reproduction import Request

PAPER = {  # (recall, before the last round, last round): CFR, CFR-BR
    ("PR", "PHS", "PHS"): (288.942, 89.632),
    ("PR", "PHS", "KO"): (289.152, 90.371),
    ("PR", "KE", "PHS"): (281.63, 90.720),
    ("PR", "KE", "KO"): (282.856, 84.039),
    ("PR", "KO", "PHS"): (335.902, 105.389),
    ("PR", "KO", "KO"): (330.319, 105.523),
    ("IR", "PHS", "PHS"): (358.188, 94.841),
    ("IR", "PHS", "KO"): (318.197, 85.275),
    ("IR", "KE", "PHS"): (339.872, 80.557),
    ("IR", "KE", "KO"): (282.395, 64.820),
    ("IR", "KO", "PHS"): (355.881, 88.546),
    ("IR", "KO", "KO"): (291.574, 73.091),
}
BUCKETS = {"PR": "5-3-3-3", "IR": "25-104-104-104"}
SOURCE = "[Johanson16 table 5.4]"
NAMES = {way: f"{'-'.join(way)} {BUCKETS[way[0]]}" for way in PAPER}
EARLY, LATE = ("PHS", "KE", "KO"), ("PHS", "KO")  # features before the last round, and in it
CFR_BR = {way: f"{name} cfr-br" for way, name in NAMES.items()}
CLAIMS = (
    Claim(
        "CFR-BR finds a less exploitable strategy than CFR, in every abstraction",
        SOURCE,
        every(*(lower(f"{name} cfr-br", f"{name} both") for name in NAMES.values())),
    ),
    Claim(
        "with CFR-BR, imperfect recall is better than perfect recall, in the mean over features",
        SOURCE,
        contrast(
            {
                CFR_BR[recall, *rest]: sign / 6
                for recall, sign in (("PR", 1), ("IR", -1))
                for rest in product(EARLY, LATE)
            }
        ),
    ),
    Claim(
        "with CFR-BR and imperfect recall, histograms before the last round are better than percentiles",
        SOURCE,
        contrast({CFR_BR["IR", early, late]: sign / 2 for early, sign in (("PHS", 1), ("KE", -1)) for late in LATE}),
    ),
    Claim(
        "with CFR-BR and imperfect recall, OCHS in the last round is better than percentiles",
        SOURCE,
        contrast({CFR_BR["IR", early, late]: sign / 3 for early in EARLY for late, sign in (("PHS", 1), ("KO", -1))}),
    ),
)

TABLE = cases(
    "table-5.4-small",
    "[Johanson16 table 5.4], on [4-1] hold'em with 20 cards: exploitability of CFR and CFR-BR by abstraction",
    [
        Case(NAMES[way], name, elsewhere=number)
        for way, numbers in PAPER.items()
        for name, number in zip(("both", "cfr-br"), numbers, strict=True)
    ],
    minutes=1,
    curves=False,
    game="short.4-1",
    trunk=2,
    claims=CLAIMS,
    quick=Request(minutes=0.02, runs=3),
)
