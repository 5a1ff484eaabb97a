"""[Johanson16 tables 5.4, 5.5 and 11.4, figure 5.4] on a game that fits here: which abstractions are the better ones.

The paper compares abstractions of limit hold'em of 57 million information sets; here they are of [4-1] hold'em with 20
cards, four rounds with one raise each, and of about 16,000: 4 · 5 + 12 · 15 + 36 · 45 + 108 · 135 with perfect recall,
4 · 25 + (12 + 36 + 108) · 104 without, where 25 tells all hands apart. What the paper has for limit hold'em is printed
beside them: it is the order that may be compared. Iterations are weighted linearly, by which CFR-BR comes sooner to
where it ends; where that is does not depend on it.
"""

from itertools import pairwise, product

from kilt_lab.reproduce.abstracted import Case, cases
from kilt_lab.reproduce.claims import Claim, contrast, every, lower
from kilt_lab.reproduce.reproduction import Request

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
SOURCE, GAME, VARIANT = "[Johanson16 table 5.4]", "short.4-1", "linear"
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
    game=GAME,
    trunk=2,
    variant=VARIANT,
    claims=CLAIMS,
    quick=Request(only=tuple(CFR_BR["IR", *rest] for rest in product(EARLY, LATE)), minutes=0.02, runs=3),
)

PERFECT, EQUAL = NAMES["PR", "KE", "KO"], "IR-KE-KO 5-15-45-135"  # as many buckets in each round
SPREAD, EARLIER = NAMES["IR", "KE", "KO"], "IR-KE-KO 25-180-180-70"  # other buckets, as many information sets
TABLE_5_5 = cases(
    "table-5.5-small",
    "[Johanson16 tables 5.5 and 11.4], on [4-1] hold'em with 20 cards: CFR-BR by where buckets are",
    [
        Case(plan, "cfr-br", elsewhere=number)
        for plan, number in ((PERFECT, 84.039), (EQUAL, 89.7975), (SPREAD, 64.820), (EARLIER, 66.338))
    ],
    minutes=1,
    curves=False,
    game=GAME,
    trunk=2,
    variant=VARIANT,
    claims=(
        Claim(
            "imperfect recall with as many buckets in each round is worse than perfect recall",
            "[Johanson16 table 5.5]",
            lower(f"{PERFECT} cfr-br", f"{EQUAL} cfr-br"),
        ),
        Claim(
            "imperfect recall is better than perfect recall where all rounds after the first have equally many buckets",
            "[Johanson16 table 5.5]",
            lower(f"{SPREAD} cfr-br", f"{PERFECT} cfr-br"),
        ),
        Claim(
            "fewer buckets in the last round and more before it are worse than equally many, with imperfect recall",
            "[Johanson16 table 11.4]",
            lower(f"{SPREAD} cfr-br", f"{EARLIER} cfr-br"),
        ),
    ),
    quick=Request(minutes=0.02, runs=3),
)

SIZES = (13, 26, 52)  # buckets of each round after the first
BY_SIZE = {(kind, size): f"IR-{kind} 25-{size}-{size}-{size}" for size in SIZES for kind in ("PHS-PHS", "KE-KO")}
FIGURE_5_4 = cases(
    "figure-5.4-small",
    "[Johanson16 figure 5.4], on hold'em with 20 cards: CFR-BR by the size of the abstraction",
    [Case(plan, "cfr-br") for plan in BY_SIZE.values()],
    minutes=1,
    curves=False,
    game=GAME,
    trunk=2,
    variant=VARIANT,
    claims=(
        Claim(
            "larger abstractions are less exploitable, with both features",
            "[Johanson16 figure 5.4]",
            every(
                *(
                    lower(f"{BY_SIZE[kind, more]} cfr-br", f"{BY_SIZE[kind, fewer]} cfr-br")
                    for kind in ("PHS-PHS", "KE-KO")
                    for fewer, more in pairwise(SIZES)
                )
            ),
        ),
        Claim(
            "histograms and OCHS are better than percentiles at all sizes",
            "[Johanson16 figure 5.4]",
            every(*(lower(f"{BY_SIZE['KE-KO', n]} cfr-br", f"{BY_SIZE['PHS-PHS', n]} cfr-br") for n in SIZES)),
        ),
    ),
    quick=Request(game="short.2-1", minutes=0.03, runs=3),
)
