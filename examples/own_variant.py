"""Write a variant of CFR: a row of numbers for discounting, compared with the published ones.

After iteration t positive regrets are multiplied by t^alpha / (t^alpha + 1), negative ones by t^beta / (t^beta + 1),
and the sum of strategies by (t / (t + 1))^gamma (Brown and Sandholm 2019). What works on Leduc need not work elsewhere:
try others.

    python examples/own_variant.py
"""

import kilt

GAMES = ("kuhn", "leduc")
CONTESTANTS: dict[str, str | kilt.Variant] = {
    "cfr+": "cfr+",
    "dcfr (1.5, 0, 2)": "dcfr",
    "mine (1.5, 0.5, 4)": kilt.Variant(alpha=1.5, beta=0.5, gamma=4.0),
    "mine, predictive": kilt.Variant(alpha=float("inf"), beta=float("-inf"), gamma=4.0, predictive=True),
}


def main() -> None:
    """Print the exploitability of each contestant after as many iterations."""
    for game in GAMES:
        print(f"{game}, 300 iterations")
        for name, algorithm in CONTESTANTS.items():
            found = kilt.solve(game, algorithm, iterations=300)
            print(f"  {name:20} {found.exploitability:.2e} chips")


if __name__ == "__main__":
    main()
