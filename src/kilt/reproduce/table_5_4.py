"""[Johanson16 table 5.4] on a game that fits here: which features make the better abstraction, with and without recall.

The paper compares abstractions of limit hold'em of 57 million information sets; here they are of [4-1] hold'em with 20
cards, four rounds with one raise each, and of about 16,000: 4 · 5 + 12 · 15 + 36 · 45 + 108 · 135 with perfect recall,
4 · 25 + (12 + 36 + 108) · 104 without, where 25 tells all hands apart. What the paper has for limit hold'em is printed
beside them: it is the order that may be compared.
"""

from kilt.reproduce.abstracted import Case, cases

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

TABLE = cases(
    "table-5.4-small",
    "[Johanson16 table 5.4], on [4-1] hold'em with 20 cards: exploitability of CFR and CFR-BR by abstraction",
    [
        Case(f"{'-'.join(way)} {BUCKETS[way[0]]}", name, elsewhere=number)
        for way, numbers in PAPER.items()
        for name, number in zip(("both", "cfr-br"), numbers, strict=True)
    ],
    minutes=1,
    curves=False,
    game="short.4-1",
    trunk=2,
)
