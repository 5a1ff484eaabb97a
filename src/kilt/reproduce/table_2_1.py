"""Table 2.1 of [Johanson16]: what best responses win against four trivial agents in heads-up limit Texas hold'em.

The walk of section 2.4 over the public tree, whole and exact, one flop at a time: see `evaluate.flops`.
"""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from kilt import artifact
from kilt.evaluate.flops import WALKS, FlopResponses, Watcher
from kilt.games import load_game
from kilt.jit import cores
from kilt.reproduce.reproduction import Reproduction, ReproductionResult, Request, Row
from kilt.solve.problem import CPU, GPU, VectorProblem, require_device
from kilt.strategy.fixed import public_table
from kilt.strategy.vector import game_fingerprint
from kilt.tree.vector import VectorGame

WHAT = "[Johanson16 table 2.1]: exploitability of four trivial agents in heads-up limit hold'em"
GAME = "holdem.limit.2p"
PAPER = {"always-fold": 750.0, "always-call": 1163.48, "always-raise": 3697.69, "call-or-raise": 2406.55}
ON_REQUEST = ("call-or-raise",)  # it reaches all there is, so that nothing can be skipped
FOLDER = Path("kilt-table-2.1")


def responses_to(game: VectorGame, agent: str, folder: Path, device: str = CPU) -> FlopResponses:
    """Best responses to an agent, on the CPU or a GPU: what was kept in a folder, or a fresh start."""
    walks = WALKS[require_device(device)](game, public_table(game, agent))
    return FlopResponses.begun(walks, agent, game_fingerprint(game.game), folder / agent)


def _reproduce(asked: Request, watcher: Watcher) -> ReproductionResult:
    """The rows that are asked for, or those that take hours and not days."""
    folder, place = asked.out or FOLDER, f" --out {quote(str(asked.out))}" if asked.out else ""
    where = f" --device {asked.device}" if asked.device else ""
    game = VectorGame(load_game(GAME), threads=cores() if asked.threads is None else asked.threads, by_board=False)
    rows: list[Row] = []
    for agent in asked.only or PAPER:
        command = f"kilt reproduce table-2.1 --only {agent}{place}{where}"
        with artifact.alone(folder / agent):
            responses = responses_to(game, agent, folder, asked.device or CPU)
            if not responses.complete:
                watcher.show(f"{agent}: a look at the pace", responses.share, None)
                left = responses.time_left()
                if agent in ON_REQUEST and agent not in asked.only and asked.device != GPU:
                    watcher.say(f"{agent} is left out; to ask for it: {command}", left)
                    continue
                watcher.say(f"{agent}, {responses.share:.0%} done, kept in {folder}", left)
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
    time="an hour or two for three rows, on two cores; the fourth, on request, days, or minutes on a GPU",
    rows=tuple(PAPER),
    run=_reproduce,
    options=("only", "threads", "out", "device"),
)
