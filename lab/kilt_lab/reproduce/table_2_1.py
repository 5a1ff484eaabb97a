"""Table 2.1 of [Johanson16]: what best responses win against four trivial agents in heads-up limit Texas hold'em.

The walk of section 2.4 over the public tree, whole and exact, one flop at a time: see `evaluate.flops`. The agents look
at no cards, so that betting that goes on alike is walked once: see `tree.cardless`.
"""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from kilt import artifact
from kilt.evaluate.flops import FlopResponses, Watcher, agent_walks
from kilt.games import load_game
from kilt.gpu import require_gpu
from kilt.jit import cores
from kilt.solve.problem import CPU, GPU, VectorProblem, require_device
from kilt.strategy.fixed import public_table
from kilt.strategy.vector import game_fingerprint
from kilt.tree.vector import VectorGame
from kilt_lab.reproduce.claims import Claim, Row, as_printed
from kilt_lab.reproduce.reproduction import Reproduction, ReproductionResult, Request

WHAT = "[Johanson16 table 2.1]: exploitability of four trivial agents in heads-up limit hold'em"
GAME = "holdem.limit.2p"
PAPER = {"always-fold": 750.0, "always-call": 1163.48, "always-raise": 3697.69, "call-or-raise": 2406.55}
FOLDER = Path("kilt-table-2.1")


def responses_to(game: VectorGame, agent: str, folder: Path, device: str = CPU) -> FlopResponses:
    """Best responses to an agent, on the CPU or a GPU: what was kept in a folder, or a fresh start."""
    walks = agent_walks(game, public_table(game, agent), device)
    return FlopResponses.begun(walks, agent, game_fingerprint(game.game), folder / agent)


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    """The rows that are asked for, or all."""
    device = require_device(asked.device or CPU)
    if device == GPU:
        require_gpu()  # before anything else takes time
    folder, place = asked.out or FOLDER, f" --out {quote(str(asked.out))}" if asked.out not in (None, FOLDER) else ""
    where = f" --device {asked.device}" if asked.device else ""
    game = VectorGame(load_game(GAME), threads=cores() if asked.threads is None else asked.threads, by_board=False)
    rows: list[Row] = []
    for agent in asked.only or PAPER:
        command = f"kilt reproduce table-2.1 --only {agent}{place}{where}"
        with artifact.alone(folder / agent):
            responses = responses_to(game, agent, folder, device)
            if not responses.complete:
                watcher.show(f"{agent}: a look at the pace", responses.share, None)
                watcher.say(f"{agent}, {responses.share:.0%} done, kept in {folder}", responses.time_left())
                responses.go_on(watcher)
        if not responses.complete:
            watcher.say(f"stopped; {responses.share:.1%} of {agent} are done and kept; to go on: {command}")
            break
        rows.append(_row(responses))
    return ReproductionResult(WHAT, rows)


def _row(responses: FlopResponses) -> Row:
    """The mean over both seats beside what the paper has."""
    seats = [VectorProblem(responses.walks.game).mbb(chips) or 0.0 for chips in responses.won()]
    agent = responses.name
    return Row(agent, PAPER[agent], sum(seats) / 2, "mbb/g", responses.seconds, {"seats": seats})


TABLE = Reproduction(
    what=WHAT,
    time="some 40 minutes of one core for all rows; 6 min on a GPU for one",
    rows=tuple(PAPER),
    run=_reproduce,
    options=("only", "threads", "out", "device"),
    claims=tuple(
        Claim(f"a best response wins {won:g} mbb/g from {agent}", "[Johanson16 table 2.1]", as_printed(agent, 0.005))
        for agent, won in PAPER.items()
    ),
    quick=Request(only=("always-fold",)),
    keeps=str(FOLDER),
)
