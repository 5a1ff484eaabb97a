"""Find the strongest agent for given stacks that a machine can build in a given time.

`AGENT_SIZES` lists the sizes of agents, from the smallest to the largest.

A size of agent is a card abstraction and a set of bet sizes. `plan_largest_agent` takes the highest size that
fits: its tables and checkpoints have room, its card abstraction is built in a quarter of the time, and in the rest of
the time the solver visits each information set a hundred times on average. The speed of the solver is measured for some
seconds.

>>> depths()[200]
'holdem.nolimit.2p'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, inf
from pathlib import Path
from typing import NamedTuple

from kilt import artifact, machine
from kilt.abstraction.features import Deal
from kilt.config import Config, SolverConfig, read_config
from kilt.cost import Cost
from kilt.errors import AbstractionError, RunError
from kilt.games.gamedef import shipped_definitions
from kilt.games.holdem import Holdem
from kilt.runs.examples import SHIPPED_AGENT
from kilt.runs.plan import RunPlan, resolve
from kilt.solve.external import Pace


class AgentSize(NamedTuple):
    """The size of an agent: its card abstraction, its bet sizes, and the opponent's cards in training."""

    cards: str
    actions: str
    opponent_cards: str = ""  # see `Config`


_FEW = "1x, a / 1x, a; a"
_SOME = "50%, 1x, a; 50%, 1x, a; 1x, a; a / 50%, 1x, a; 1x, a; a"
_MANY = "50%, 1x, a; 50%, 1x, a; 1x, a; a / 33%, 75%, 1.5x, a; 50%, 1x, a; 1x, a; a"
# The opponent has about ten times as many buckets: the finer they are compared with the agent's own, the less a best
# response wins against the agent. The river has at most 1,900 useful buckets, which limits the agent's own.
AGENT_SIZES = (
    AgentSize("IR-PHS-PHS 169-5-5-5", _FEW, "IR-PHS-PHS 169-50-50-50"),
    AgentSize("IR-PHS-PHS 169-10-10-10", _FEW, "IR-PHS-PHS 169-100-100-100"),
    AgentSize("IR-PHS-PHS 169-20-20-20", _SOME, "IR-PHS-PHS 169-200-200-200"),
    AgentSize("IR-KE-PHS 169-50-30-30", _SOME, "IR-KE-PHS 169-500-500-1000"),
    AgentSize("IR-KE-PHS 169-100-50-50", _SOME, "IR-KE-PHS 169-1000-1000-1900"),
    AgentSize("IR-KE-PHS 169-200-100-100", _SOME, "IR-KE-PHS 169-2000-2000-1900"),
    AgentSize("IR-KE-PHS 169-500-200-100", _SOME, "IR-KE-PHS 169-5000-5000-1900"),
    AgentSize("IR-KE-PHS 169-500-300-100", _MANY, "IR-KE-PHS 169-5000-5000-1900"),
    AgentSize("IR-KE-PHS 169-900-500-100", _MANY, "IR-KE-PHS 169-9000-9000-1900"),
)
VISITS = 100  # mean visits of each information set that a good strategy takes
FOR_CARDS = 0.25  # maximum share of the time for building card abstractions
USABLE_SHARE = 0.8  # share of the available memory and disk that a run may use


@dataclass(frozen=True)
class FittedPlan:
    """A plan of a run that fits this machine, with its cost."""

    plan: RunPlan
    cost: Cost
    pace: Pace  # speed of the solver
    seconds: float  # time for solving

    @property
    def visits(self) -> float:
        """Return how often the solver visits each information set on average."""
        return self.pace.decisions * self.seconds / self.plan.infosets

    def data(self) -> dict[str, object]:
        """Return the plan as a dict, in bytes and seconds."""
        return {
            "game": self.plan.game.name,
            "cards": list(self.plan.config.cards),
            "opponent_cards": self.plan.config.opponent_cards,
            "actions": list(self.plan.config.actions),
            "infosets": sum(self.plan.size.infosets),
            "memory_bytes": self.memory,
            "disk_bytes": self.disk,
            "cards_seconds": self.cost.seconds or 0.0,
            "solve_seconds": self.seconds,
            "visits": self.visits,
        }

    @property
    def memory(self) -> int:
        """Return the peak memory in bytes, over building the card abstraction and solving."""
        return _memory(self.cost)

    @property
    def disk(self) -> int:
        """Return the finished run's disk space in bytes, with cached feature tables."""
        return _disk(self.cost)


def depths() -> dict[int, str]:
    """Return the names of kilt's heads-up no-limit games by stack depth in big blinds."""
    found = {200: "holdem.nolimit.2p"}
    for name in shipped_definitions():
        if match := re.fullmatch(r"holdem\.nolimit\.2p\.(\d+)bb", name):
            found[int(match[1])] = name
    return dict(sorted(found.items()))


def shipped_game(depth: int) -> str:
    """Return the name of kilt's no-limit game with stacks of `depth` big blinds.

    Raises RunError if there is none.
    """
    if (name := depths().get(depth)) is None:
        *most, last = map(str, depths())
        raise RunError(
            f"there is no ready-made game with stacks of {depth} big blinds: use {', '.join(most)} or {last}, or give "
            "a `game` with rules of your own"
        )
    return name


def plan_largest_agent(
    game: Holdem, name: str, hours: float, threads: int, folder: Path, memory: float | None = None
) -> FittedPlan:
    """Plan the largest agent that fits the machine and the time limit.

    Parameters
    ----------
    game : Holdem
        The game to play.
    name : str
        Name or file of the game.
    hours : float
        Time for building card abstractions and solving.
    threads : int
        Number of threads of the solver.
    folder : Path
        Folder of the future run: its disk must have room.
    memory : float, optional
        Bytes that the run may use. Default: the share `USABLE_SHARE` of the available memory.

    Returns
    -------
    Fit
        The plan. Raises RunError if not even the smallest agent fits; the message says what it needs.
    """
    return _fitted(game, name, AGENT_SIZES, hours, threads, folder, memory)


def plan_like_shipped_agent(
    game: Holdem, name: str, hours: float, threads: int, folder: Path, memory: float | None = None
) -> FittedPlan:
    """Plan an agent of the same kind as the one that ships with kilt, for another game.

    The opponent sees finer cards while the agent is solved, if the deck, the machine and the time allow it.

    The parameters are those of `plan_largest_agent`.
    """
    config = read_config(SHIPPED_AGENT)
    small = AgentSize(config.cards[0], config.actions[0])
    sizes = small, small._replace(opponent_cards=config.opponent_cards)
    return _fitted(game, name, sizes, hours, threads, folder, memory)


KINDS = {"strong": plan_largest_agent, "house": plan_like_shipped_agent}


def _fitted(
    game: Holdem, name: str, sizes: Sequence[AgentSize], hours: float, threads: int, folder: Path, memory: float | None
) -> FittedPlan:
    if not 0 < hours < inf:
        raise RunError(f"the time is {hours:g} hours: give more than 0")
    room = USABLE_SHARE * machine.available_memory() if memory is None else memory
    seconds, disk = 3600 * hours, USABLE_SHARE * artifact.free_space(folder)
    plans, costs = list[RunPlan](), list[Cost]()
    for size in sizes:
        try:
            plan, cost = _planned(size, game, name, hours, threads)
        except AbstractionError:  # a small deck has fewer values of hands than a high size has buckets
            if not plans:
                raise
            break
        plans.append(plan)
        costs.append(cost)
    _require(costs[0], hours, room, disk)
    able = [
        at
        for at, one in enumerate(costs)
        if _memory(one) <= room and _disk(one) <= disk and (one.seconds or 0.0) <= FOR_CARDS * seconds
    ]

    def fit(at: int) -> FittedPlan:
        left = seconds - (costs[at].seconds or 0.0)
        config = replace(plans[at].config, solver=replace(plans[at].config.solver, minutes=left / 60))
        pace = plans[at].pace()
        assert pace
        return FittedPlan(replace(plans[at], config=config), costs[at], pace, left)

    found = fit(able[-1])
    if found.visits < VISITS and len(able) > 1:
        often = [found.pace.decisions * seconds / plans[at].infosets for at in able]
        found = fit(max((at for at, visits in zip(able, often, strict=True) if visits >= VISITS), default=able[0]))
    if found.pace.iterations * found.seconds < 1:
        raise RunError(
            f"{hours:g} hours leave {found.seconds:.2g} s for solving, and one iteration takes "
            f"{1 / found.pace.iterations:.2g} s: give more hours"
        )
    return found


def _planned(size: AgentSize, game: Holdem, name: str, hours: float, threads: int) -> tuple[RunPlan, Cost]:
    """Return the run of a size of agent and its cost; the opponent gets the agent's cards if the deck is too small."""
    plan = _plan(size, game, name, hours, threads)
    try:
        return plan, plan.cost()
    except AbstractionError:
        plan = _plan(size._replace(opponent_cards=""), game, name, hours, threads)
        return plan, plan.cost()


def _plan(size: AgentSize, game: Holdem, name: str, hours: float, threads: int) -> RunPlan:
    """Return the run of a size of agent.

    Other decks have other numbers of hands before the first public card.
    """
    cards, finer = (
        name.replace(" 169-", f" {len(Deal.from_game(game).holdings((0,)))}-")
        for name in (size.cards, size.opponent_cards)
    )
    limit = game.rules.betting == "limit"
    solver = SolverConfig(minutes=60 * hours, threads=threads, linear=True)
    actions = () if limit else (size.actions,)
    return resolve(Config(name, (cards,), actions, solver=solver, opponent_cards=finer))


def _require(least: Cost, hours: float, room: float, disk: float) -> None:
    """Raise RunError if the smallest agent does not fit."""
    for what, needed, there in (("memory", _memory(least), room), ("disk", _disk(least), disk)):
        if needed > there:
            raise RunError(
                f"the smallest agent takes {needed / 1e9:.2f} GB of {what}, and {there / 1e9:.2f} GB may be used: "
                "free some, or use another machine"
            )
    building = least.seconds or 0.0
    if building > FOR_CARDS * 3600 * hours:
        enough = ceil(1000 * building / FOR_CARDS / 3600) / 1000
        raise RunError(
            f"the cards of the smallest agent take about {building:.2g} s to build, and {hours:g} hours are "
            f"{3600 * hours:.2g} s: give at least {enough:g} hours"
        )


def _memory(cost: Cost) -> int:
    """Return the bytes of memory that the work needs, including the process itself."""
    return cost.resident - cost.mapped


def _disk(cost: Cost) -> int:
    """Return the disk space in bytes of checkpoints, strategy, card abstraction and feature tables."""
    return cost.disk + cost.cache
