"""Solve Leduc hold'em, evaluate the result exactly, and look at a decision.

python examples/solve_leduc.py
"""

import kilt


def main() -> None:
    """Compare three algorithms, then show what the best of them does."""
    for algorithm in ("cfr", "cfr+", "dcfr"):
        found = kilt.solve("leduc", algorithm, iterations=500)
        print(f"{algorithm:5} exploitability {found.exploitability:.6f} chips, {found.exploitability_mbb:.3f} mbb/g")

    # The solver calls `on_step` after each measurement.
    curve: list[kilt.Step] = []
    solution = kilt.solve("leduc", "cfr+", target=1e-3, on_step=curve.append)
    print(f"below 1e-3 after {solution.iterations} iterations; the game is worth {solution.value:.4f} to player 1")
    print(f"measured at iterations {', '.join(str(step.iterations) for step in curve)}")

    # An information set is named by the hand, the board and the betting: the king of spades, facing a raise.
    print("Ks facing a raise:", {action: round(share, 3) for action, share in solution["Ks||r"].items()})

    # Any strategy can be evaluated.
    print("uniform:", round(kilt.exploitability("uniform", "leduc"), 4))
    print("the solution:", round(kilt.exploitability(solution, "leduc"), 6))


if __name__ == "__main__":
    main()
