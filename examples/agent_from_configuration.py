"""From a configuration to an agent that plays: plan, build, solve, stop, resume, play.

    python examples/agent_from_configuration.py [FOLDER]

Royal hold'em keeps it to seconds. For no-limit hold'em take another `game`, finer `cards`, a menu such as
`"actions": "50%, 1x, a"`, and more minutes: `kilt new` prints a configuration.
"""

import sys
from pathlib import Path
from tempfile import mkdtemp

import kilt

CONFIG = {
    "game": "royal.limit.2p",
    "cards": "IR-KE-KO 15-20-20-20",
    "solver": {"algorithm": "external", "iterations": 40_000, "threads": 2},
    "agent": {"post": "new-0.2"},
}


def main(folder: Path) -> None:
    """Run all steps in a folder, which is an agent in the end."""
    plan = kilt.plan_run(CONFIG)
    print(f"{sum(plan.size.slots):,} infoset-actions, {plan.cost()}")

    run = kilt.start_run(CONFIG, folder)
    for step in run:  # leaving this loop, or killing the program, loses nothing that a checkpoint has
        rates = ", ".join(f"{rate:+.0f} mbb/h from {name}" for name, rate in step.others.items())
        exploitable = f"average strategy exploitable for {step.exploitability:.4g} chips"
        print(f"after {step.iterations:,} iterations: {rates or exploitable}")

    run = kilt.resume_run(folder, iterations=60_000)
    last = run.finish()
    print(f"resumed to {last.iterations:,} iterations")

    match = kilt.play_match(folder, "always-call", hands=4_000)
    print(f"wins {kilt.win_rate(match)} mbb/h from always-call in {match.hands:,} duplicate hands")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(mkdtemp()) / "royal")
