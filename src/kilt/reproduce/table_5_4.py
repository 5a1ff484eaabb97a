"""Table 5.4 of 004 on a game that fits here: which features make the better abstraction, with and without recall.

The paper compares abstractions of limit hold'em of 57 million information sets; here they are of [2-4] hold'em with 24
cards, and of about 7,000: 8 · 10 + 70 · 100 with perfect recall, 8 · 21 + 70 · 99 without, where 21 tells all hands
apart. What the paper has for limit hold'em is printed beside them: it is the order that may be compared.
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
BUCKETS = {"PR": "10-10", "IR": "21-99"}

TABLE = cases(
    "table-5.4-small",
    "004, table 5.4, on [2-4] hold'em with 24 cards: exploitability of CFR and CFR-BR by abstraction",
    [
        Case(f"{'-'.join(way)} {BUCKETS[way[0]]}", name, elsewhere=number)
        for way, numbers in PAPER.items()
        for name, number in zip(("both", "cfr-br"), numbers, strict=True)
    ],
    minutes=1,
    curves=False,
    game="short.2-4",
)
