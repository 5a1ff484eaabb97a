"""The players and runs on the web page, by name. Names are never used as file paths.

The user names folders when the server starts. A folder that contains runs stands for all of them. It is searched at
each request, so that new runs appear at once. Each player is opened only once.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from kilt import artifact
from kilt.config import SPOT, read_config
from kilt.errors import ArtifactError, KiltError, PlayError, RunError
from kilt.evaluate.deserved import can_learn, state_values_for
from kilt.evaluate.values import StateValues
from kilt.games.holdem import Holdem
from kilt.games.playable import load_holdem
from kilt.play.agent import BASELINES, Agent, PolicyAgent, require_policy
from kilt.players.agents import SOLVED, own_game
from kilt.players.reference import player
from kilt.runs.budget import Budget, Step, time_left
from kilt.runs.folder import CONFIG, RunFolder
from kilt.runs.plan import RunPlan, resolve
from kilt.spots.line import UNIT
from kilt.spots.saved import open_spot
from kilt.spots.solution import SpotSolution
from kilt.spots.solving import in_chips
from kilt.strategy.blueprint import KIND, SHIPPED, STRATEGY
from kilt.strategy.naming import solved_name
from kilt.web.views import json_number

SMALL = {f"{game} (solved here)": f"{SOLVED}{game}" for game in ("leduc", "kuhn")}  # games that are solved on demand
LARGE = "holdem.nolimit.2p"  # the game of baselines
DEEP = 2  # levels of subfolders that are searched for runs


class Library:
    """The players and runs of the web page, each found by its name.

    Parameters
    ----------
    folders : sequence of Path
        Runs, exported agents, or folders that hold some.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = [folder.resolve() for folder in folders]
        for folder in self.folders:
            if not folder.is_dir():
                raise ArtifactError(f"{folder} is no folder: use runs, exported agents, or folders of these")
        self._opening = Lock()
        self._states: dict[tuple[str, int], StateValues | None] = {}  # (name, id) of an agent to its values
        self._at_work: set[tuple[str, int]] = set()
        self._learning, self._one_learns = Lock(), Lock()
        self._open_spot = lru_cache(maxsize=4)(lambda place, stamp: open_spot(place)[1])

    def places(self) -> dict[str, Path]:
        """Return the folders of all runs and agents, by name on the page."""
        found: dict[str, Path] = {}
        for folder in self.folders:
            for place in _places(folder, DEEP):
                name = place.name if place == folder else f"{folder.name}/{place.relative_to(folder).as_posix()}"
                while name in found:
                    name += "′"
                found[name] = place
        return found

    def players(self) -> list[str]:
        """Return the names of all players, with the user's own first."""
        own = [name for name, place in self.places().items() if _has_strategy(place) and not _is_spot(place)]
        return [*own, *SHIPPED, *SMALL, *BASELINES]

    def bucketed(self) -> list[str]:
        """Return the names of the players who use buckets, in the order of `players`."""
        places = self.places()
        return [name for name in self.players() if name in SHIPPED or (name in places and _is_blueprint(places[name]))]

    def spots(self) -> list[str]:
        """Return the names of solved spots, which users can examine and train with."""
        return [name for name, place in self.places().items() if _has_strategy(place) and _is_spot(place)]

    def spot(self, name: str) -> SpotSolution:
        """Return the solution of a spot by name. Each is opened only once."""
        place = self.place(name)
        with self._opening:
            return self._open_spot(place, _stamp(place))

    def reference(self, name: str) -> str:
        """Return the name under which kilt loads a player of the page.

        Raises PlayError for any other name.
        """
        if place := self.places().get(name):
            return str(place)
        if name not in (*SHIPPED, *SMALL, *BASELINES):
            raise PlayError(f"there is no player {name!r} here: choose one of the list")
        return SMALL.get(name, name)

    def player(self, name: str) -> tuple[Agent, Holdem]:
        """Return a player and its game, by the player's name.

        It is opened only once. Raises KiltError if that fails.
        """
        with self._opening:
            agent = player(name, names=self).agent
        return agent, own_game(agent) or load_holdem(LARGE)

    def policy_player(self, name: str) -> tuple[PolicyAgent, Holdem]:
        """Return a player whose action probabilities are known, together with the game that it plays.

        Raises PlayError for other players.
        """
        agent, game = self.player(name)
        return require_policy(agent), game

    def states(self, name: str, agent: PolicyAgent, game: Holdem) -> tuple[StateValues | None, bool]:
        """Return a player's state values for AIVAT, or None, and whether they are being learnt.

        They are learnt in the background, once for each player.
        """
        key = name, id(agent)
        with self._learning:
            if key not in self._states:
                self._states[key] = state_values_for(agent, game, learn=False)
                if self._states[key] is None and can_learn(agent):
                    Thread(target=self._learn, args=(key, agent, game), daemon=True, name=f"AIVAT of {name}").start()
                    self._at_work.add(key)
            return self._states[key], key in self._at_work

    def _learn(self, key: tuple[str, int], agent: PolicyAgent, game: Holdem) -> None:
        try:
            with self._one_learns:
                self._states[key] = state_values_for(agent, game)
        finally:
            self._at_work.discard(key)

    def run_places(self) -> dict[str, Path]:
        """Return the folders of all runs, by name on the page."""
        return {name: place for name, place in self.places().items() if RunFolder.has_run(place)}

    def run(self, name: str, place: Path | None = None) -> dict[str, Any]:
        """Return data on a run, with an `error` if the run is unreadable."""
        place = place or self.place(name)
        try:
            folder = RunFolder.open(place)
            steps, budget = _steps(folder), _budget(folder)
        except KiltError as error:
            return {"name": name, "error": str(error)}
        last = steps[-1] if steps else None
        return {
            "name": name,
            **folder.identity._asdict(),
            "strategy": solved_name(folder.identity._asdict()),  # the strategy that the log measures
            "budget": str(budget),
            "ended": folder.ended or bool(last and budget.target and last.exploitability <= budget.target),
            "solved": _has_strategy(place),
            "elsewhere": folder.is_being_solved,
            "last": _step(last) if last else None,
            "left": time_left(budget, steps, last.iterations, last.seconds) if last else None,
        }

    def estimated_cost(self, name: str) -> dict[str, Any] | None:
        """Estimate a run's cost from its configuration, as `kilt estimate` does.

        None if the run has no configuration.
        """
        file = self.place(name) / CONFIG
        try:
            return estimated_cost(resolve(read_config(file)))
        except (KiltError, OSError):
            return None

    def steps(self, name: str) -> list[dict[str, Any]]:
        """Return a run's measurements, in chips of its game or spot."""
        return [_step(step) for step in _steps(RunFolder.open(self.place(name)))]

    def place(self, name: str) -> Path:
        """Return the folder of a run by name.

        Raises RunError if there is no such run.
        """
        place = self.places().get(name)
        if place is None:
            raise RunError(f"there is no run {name!r} here: choose one of the list")
        return place


def estimated_cost(plan: RunPlan) -> dict[str, Any]:
    """Estimate a run's memory and disk space in bytes, and its time in seconds.

    The time is that of the budget, plus the time to build card abstractions. It is None if only a trial run would
    tell.
    """
    cost, budget = plan.cost(), plan.budget
    seconds = [] if budget.seconds is None else [budget.seconds]
    if cost.iteration is not None and budget.iterations:
        seconds.append(cost.iteration * budget.iterations)
    return {
        "entries": sum(plan.size.slots),
        "memory": cost.resident,
        "disk": cost.disk,
        "fits": cost.fits,
        "seconds": min(seconds) + (cost.seconds or 0.0) if seconds else None,
        "budget": str(budget),
    }


def _places(folder: Path, deep: int) -> list[Path]:
    """Return the runs and agents in a folder, or in its subfolders to a depth of `deep`."""
    if RunFolder.has_run(folder) or _has_strategy(folder):
        return [folder]
    if not deep:
        return []
    try:
        inside = sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    except OSError:
        return []
    return [place for each in inside for place in _places(each, deep - 1)]


def _has_strategy(place: Path) -> bool:
    return artifact.exists(place / STRATEGY)


def _is_blueprint(place: Path) -> bool:
    """Return whether a strategy is for an abstract game. False if its manifest is damaged."""
    with suppress(ArtifactError):
        return artifact.kind_of(place / STRATEGY) == KIND
    return False


def _is_spot(place: Path) -> bool:
    return (place / SPOT).is_file()


def _stamp(place: Path | None) -> float:
    """Return the time at which a strategy was written. The library opens a run again if this time has changed."""
    return (place / STRATEGY).stat().st_mtime if place and (place / STRATEGY).exists() else 0.0


def _steps(folder: RunFolder) -> list[Step]:
    """Return the measurements of a run. Those of spots are converted from chips of the tree to chips of the spot."""
    return [in_chips(step) for step in folder.steps()] if _is_spot(folder.path) else folder.steps()


def _budget(folder: RunFolder) -> Budget:
    """Return the budget of a run, in the same chips as the result of `_steps`."""
    budget = folder.budget
    if budget.target and _is_spot(folder.path):
        return replace(budget, target=budget.target / UNIT)
    return budget


def _step(step: Step) -> dict[str, Any]:
    """Return a measurement as JSON data, with None for infinite numbers."""
    said = {key: json_number(value) if isinstance(value, float) else value for key, value in step._asdict().items()}
    return said | {"others": {name: json_number(won) for name, won in step.others.items()}}
