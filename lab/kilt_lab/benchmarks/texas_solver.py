"""TexasSolver's command-line program as a peer of `kilt bench spots`.

It is given by its path, and nothing here depends on it. It reads commands from a file (``console_solver -i FILE``), and
prints how far it has come every few iterations, as its README shows::

    Iter: 11
    player 0 exploitability 15.374577
    player 1 exploitability 2.400461
    Total exploitability 17.775038 precent
    time used: 6.871

The seconds are those of solving. The program first reads a table of all hands of five cards, which does not count.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from kilt.errors import MissingPeerError
from kilt.spots.spot import Spot

ROUNDS = "flop", "turn", "river"
ITERATIONS = 1000  # at most
INTERVAL = 10  # iterations between measurements of exploitability, as in its sample
_TIME = re.compile(r"time used: *([0-9.eE+-]+)")
_LEFT = re.compile(r"Total exploitability *([0-9.eE+-]+)")


def require(peer: Path) -> Path:
    """Return the absolute path of the program. Raises MissingPeerError if it is not executable."""
    if not (peer.is_file() and os.access(peer, os.X_OK)):
        raise MissingPeerError(f"{peer} is not an executable program: give the path of TexasSolver's console_solver")
    return peer.resolve()


def commands(spot: Spot, bets: tuple[int, int], target: float, threads: int) -> str:
    """Return the input of the program for a spot, in which the first player to act is out of position.

    `bets` are percentages of the pot, for bets and for raises; both players may also go all-in.
    """
    cards = [spot.board[place : place + 2] for place in range(0, len(spot.board), 2)]
    told = [f"set_pot {spot.pot:g}", f"set_effective_stack {spot.stacks:g}", "set_board " + ",".join(cards)]
    told += [f"set_range_{seat} {text}" for seat, text in zip(("oop", "ip"), spot.ranges, strict=True)]
    for later, name in enumerate(ROUNDS[len(cards) - 3 :]):
        for seat in ("oop", "ip"):
            # Who is out of position and has called bets by a setting of its own in the next round.
            donk = [f"donk,{bets[0]}"] if later and seat == "oop" else []
            sizes = [f"bet,{bets[0]}", f"raise,{bets[1]}", *donk, "allin"]
            told += [f"set_bet_sizes {seat},{name},{size}" for size in sizes]
    told += [f"set_allin_threshold {spot.near:g}", "build_tree", f"set_thread_num {threads}"]
    told += [f"set_accuracy {target:g}", f"set_max_iteration {ITERATIONS}", f"set_print_interval {INTERVAL}"]
    return "\n".join([*told, "set_use_isomorphism 1", "start_solve", ""])


def seconds_of(peer: Path, told: str, target: float) -> float:
    """Return the seconds of solving that the program reports. Raises MissingPeerError if it does not finish."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "spot.txt"
        file.write_text(told)
        done = subprocess.run([peer, "-i", file], cwd=peer.parent, capture_output=True, text=True, check=False)
    times, left = _TIME.findall(done.stdout), _LEFT.findall(done.stdout)
    if done.returncode or not times or not left or float(left[-1]) > target:
        last = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        raise MissingPeerError(
            f"{peer} did not solve the spot to {target:g}% of the pot, exit code {done.returncode}; it says {last!r}"
        )
    return float(times[-1])
