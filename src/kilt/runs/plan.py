"""A configuration, resolved: the game, cards, menu of bets, solver and engine that it means, checked before any work.

Estimating, building the cards and solving all take the same `RunPlan`:

>>> from kilt.config import config_of
>>> plan = resolve(config_of({"game": "leduc", "cards": "lossless", "solver": {"algorithm": "cfr+"}}))
>>> plan.size.infosets, plan.estimate().cards is not None
((18, 450), True)
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import NamedTuple, TypeAlias

from kilt import artifact, machine
from kilt.abstraction.abstract_game import AbstractGame, AbstractSize, SyntheticGame
from kilt.abstraction.actions import ActionAbstraction
from kilt.abstraction.buckets import DESCRIPTION, AbstractionSpec, CardAbstraction, load_abstractions
from kilt.abstraction.estimate import BuildEstimate, estimate
from kilt.abstraction.features import Deal
from kilt.abstraction.joint import require_few
from kilt.abstraction.pipeline import bucket_numbers, build, require_packages
from kilt.config import DEFAULT_MINUTES, Config
from kilt.engines import ENGINES, Engine, engine_named
from kilt.errors import RunError
from kilt.games import load_game
from kilt.games.holdem import Holdem
from kilt.games.size import size_of
from kilt.games.tilt import tilted
from kilt.gpu import PINNED, free_memory, require_gpu
from kilt.records import Record
from kilt.runs.budget import Budget
from kilt.runs.folder import CONFIG, MODEL, RunIdentity
from kilt.search.settings import require_settings
from kilt.solve.abstract_problem import AbstractProblem, WalkCost, dtype_of
from kilt.solve.counter import Against
from kilt.solve.distributed.memory import PartsMemory
from kilt.solve.distributed.partition import require_boards, shared_classes, trunk_of
from kilt.solve.external import (
    Pace,
    SamplingOptions,
    probe,
    require_options,
    require_sampled_there,
    require_wide,
    words_of,
)
from kilt.solve.joint import MEMORY
from kilt.solve.problem import ABSTRACT, CPU, precision_of, require_device
from kilt.solve.registry import ALGORITHMS, EXTERNAL, Algorithm, algorithm_named
from kilt.solve.tables.disk import PACKED
from kilt.solve.tables.disk_subgames import SIZE, subgames_abreast
from kilt.strategy.blueprint import card_folders
from kilt.strategy.model import OpponentModel
from kilt.strategy.postprocess import rule_named
from kilt.strategy.translate import mapping_named
from kilt.tree.betting import MOST_NODES, betting_size

SAMPLING_KEYS = ("average", "linear", "prune", "equities", "compact")  # of [solver]: external sampling alone reads them
PER_NODE = 100  # bytes of a node of betting: the tree itself, and records that walks read

Cards: TypeAlias = Path | AbstractionSpec  # a card abstraction: the folder where it is, or what is to be built
Tick: TypeAlias = Callable[[str, float], None]  # hears what is being done, and what share of it is done


class RunEstimate(NamedTuple):
    """What a run takes, known before it begins."""

    size: AbstractSize
    tables: int  # bytes of the solver's tables, and of what its algorithm walks
    memory: int  # bytes: the resident size of the process that solves at its peak
    mapped: int  # bytes of it that are mapped from files: they need not fit
    disk: int  # bytes of two checkpoints and a strategy
    cards: BuildEstimate | None  # to build the card abstractions; None where they are there
    seconds: float | None  # of an iteration, for algorithms that walk the whole game; others are probed
    device: int = 0  # bytes of a GPU, for external sampling or joint tables there

    @property
    def peak(self) -> int:
        """Bytes: the resident size of the process at its peak, while it builds cards or while it solves."""
        return max(self.memory, self.cards.memory if self.cards else 0)

    @property
    def fits(self) -> bool:
        """Whether there is memory for solving; `cards` are asked by themselves."""
        return machine.fits_memory(self.memory - self.mapped)


@dataclass(frozen=True)
class RunPlan:
    """What a configuration means. `resolve` makes it; nothing is built yet."""

    config: Config
    game: Holdem
    menu: ActionAbstraction | None  # None: all bets that are legal
    cards: tuple[Cards, ...]  # of both players, or of each
    algorithm: Algorithm
    against: Against | None = None  # the opponent that a counter-strategy is for
    device: str = CPU  # where its algorithm walks

    @property
    def options(self) -> SamplingOptions:
        """How external sampling goes about it."""
        solver = self.config.solver
        return SamplingOptions(solver.average, solver.linear, solver.prune, solver.equities, solver.compact)

    @property
    def budget(self) -> Budget:
        """When the run stops, as far as the configuration says; otherwise after a minute."""
        solver = self.config.solver
        minutes = solver.minutes or (0 if solver.iterations else DEFAULT_MINUTES)
        return Budget(solver.iterations or None, 60 * minutes or None)

    @property
    def has_budget(self) -> bool:
        """Whether the configuration says when to stop."""
        return bool(self.config.solver.iterations or self.config.solver.minutes)

    @property
    def shared_cards(self) -> AbstractionSpec:
        """The card abstraction whose classes of boards blades share; RunError where players have other classes."""
        return shared_classes(self.specs)

    @property
    def specs(self) -> list[AbstractionSpec]:
        """What cards there are, or what is to be built: for both players, or for each."""
        return [AbstractionSpec.read(one) if isinstance(one, Path) else one for one in self.cards]

    @cached_property
    def size(self) -> AbstractSize:
        """How large the abstract game is, counted."""
        numbers = [
            bucket_numbers(cards.plan, cards.deal)
            if isinstance(cards, AbstractionSpec)
            else CardAbstraction.load(cards).numbers
            for cards in self.cards
        ]
        return SyntheticGame(self.game, (numbers[0], numbers[-1]), self.menu).size

    @cached_property
    def cost(self) -> WalkCost:
        """What it takes to walk the whole game."""
        return WalkCost.of(self.game, self.menu, self.size, self.config.solver.threads)

    def estimate(self) -> RunEstimate:
        """Memory, disk and time that the run takes with its algorithm.

        Returns
        -------
        RunEstimate
            Sizes in bytes, times in seconds.
        """
        solver = self.config.solver
        cards: BuildEstimate | None = None
        for one in self.cards:
            if isinstance(one, AbstractionSpec):
                more = estimate(one, artifact.cache_folder(), solver.threads)
                cards = more.after(cards) if cards else more
        mapped = (cards.tables if cards else 0) + sum(map(_size_of_files, set(self.cards)))
        slots = 4 * sum(self.size.slots)
        # The strategy, of two bytes a slot at most, is there beside the tables when it is judged or written.
        beside = machine.PROCESS + PER_NODE * self.size.nodes + slots // 2 + mapped
        if self.algorithm.joint:
            kept = 2 * self.algorithm.tables * slots
            pairs = 40 * max(map(max, self.size.buckets)) ** 2
            device = self._pairs_there(kept + pairs) if self.device != CPU else 0
            tables = pairs + (kept if device else kept + MEMORY)
            return RunEstimate(self.size, tables, tables + beside, mapped, 2 * kept + slots, cards, None, device)
        if not self.algorithm.walks:
            tables = slots * (2 if solver.average else 1)
            if self.device != CPU:
                from kilt.solve.external_device_classes import DeviceNeeds, apart_of

                apart = apart_of(self.specs)
                needs = DeviceNeeds.of(self.game, self.menu, self.size, apart, self.options, mapped)
                here = beside + (tables if needs.frames else min(tables, 2 * PINNED))
                return RunEstimate(self.size, tables, here, mapped, 3 * tables, cards, None, needs.memory)
            if self.config.engine.name:
                return RunEstimate(self.size, tables, self._memory_here + mapped, mapped, 3 * tables, cards, None)
            if self.algorithm.against:  # a table and a fixed strategy for each seat, and the model
                tables = 2 * (tables + slots) + 4 * slots
            return RunEstimate(self.size, tables, tables + beside, mapped, 3 * tables, cards, None)
        entry, cost = self.algorithm, self.cost
        if entry.trunk and (self.device != CPU or cost.draws(entry.trunk)):
            regrets, responses = cost.drawn(entry.trunk)
            kept = 2 * cost.table + regrets
            tables = cost.scratch + kept + cost.table + (responses if self.device == CPU else regrets)
            return RunEstimate(self.size, tables, tables + beside, mapped, 2 * kept + slots, cards, None)
        if solver.algorithm.partition(":")[0] == "pcs" and cost.samples_drawn:
            tables = cost.scratch + 3 * cost.table
            return RunEstimate(self.size, tables, tables + beside, mapped, 4 * cost.table + slots, cards, None)
        if entry.disk:  # as if subgames were of the size that is aimed at: which they are is known with the cards
            abreast = subgames_abreast(solver.threads)
            maps = min(cost.maps, 2 * cost.maps // cost.boards[min(1, len(cost.boards) - 1)] * abreast)
            tables = cost.scratch + maps + 4 * abreast * entry.disk * min(SIZE, cost.table)
            tables *= self.config.engine.blades if self.config.engine.name and not self.config.engine.address else 1
            kept = entry.disk * slots // PACKED
            return RunEstimate(self.size, tables, tables + beside, mapped, kept + slots, cards, 2 * cost.seconds)
        kept = (entry.tables - entry.opponent) * cost.table + (cost.opponent(entry.trunk) if entry.opponent else 0)
        tables = cost.memory + kept + cost.table * (1 if entry.samples else solver.threads)
        seconds = None if entry.samples else (4 if entry.opponent else 2) * cost.seconds
        return RunEstimate(self.size, tables, tables + beside, mapped, 2 * kept + slots, cards, seconds)

    def parts(self, blades: tuple[int, ...]) -> PartsMemory:
        """What the head holds, and each of the blades that share the classes of boards: their number on each level."""
        cards, solver = self.shared_cards, self.config.solver
        trunk, actions = trunk_of(cards.plan, cards.deal), betting_size(self.game, self.menu).actions
        bounds = [0, trunk, *(public.round - 1 for public in cards.plan.public[1 : len(blades)])]
        return PartsMemory.of(
            self.size,
            cards.plan,
            cards.deal,
            blades,
            words=words_of(self.options),
            dtype=dtype_of(sum(self.size.slots)),
            threads=solver.threads,
            places=[2 * (1 + sum(sum(each[start:end]) for each in actions)) + 2 for start, end in pairwise(bounds)],
            batch=self.config.engine.batch,
        )

    @property
    def _memory_here(self) -> int:
        """Bytes that head and blades take on this machine: all of them, or with an address the head alone."""
        asked = self.config.engine
        held = self.parts(asked.levels)
        return held.head.process if asked.address else held.here(one_process=asked.name == "local")

    def _pairs_there(self, tables: int) -> int:
        """Bytes of a GPU that joint tables and those of a solver take there, with vectors over sequences."""
        from kilt.solve.joint_device import MEMORY as AT_ONCE  # imports the GPU library

        return tables + min(AT_ONCE, 8 * self.size.nodes * sum(map(max, self.size.buckets)))

    def pace(self) -> Pace:
        """How quickly external sampling goes, from a walk of some seconds with synthetic buckets."""
        if self.device != CPU:
            from kilt.solve.external_device import probe_there

            return probe_there(self.game, self.menu, self.size.buckets, self.options)
        synthetic = SyntheticGame(self.game, self.size.buckets, self.menu)
        return probe(synthetic, self.options, self.config.solver.threads)

    def require_room(self, folder: Path) -> RunEstimate:
        """Raise RunError or ArtifactError where memory or disk have no room for the run; the estimate otherwise."""
        if self.algorithm.joint:
            for numbers in self.size.buckets:
                require_few(" and ".join(self.config.cards), numbers)
        for cards, own in zip(self.cards, card_folders(folder, len(self.cards)), strict=True):
            if isinstance(cards, AbstractionSpec):
                require_packages(cards.plan, own)
        found = self.estimate()
        if not found.fits:
            needed = (found.memory - found.mapped) / 1e9
            raise RunError(
                f"{self.config.solver.algorithm} on {self.game.name} takes {needed:,.1f} GB of memory, and "
                f"{machine.available_memory() / 1e9:,.1f} GB are available: use fewer buckets or bets"
                + (", or external" if self.algorithm.walks or self.algorithm.joint else ", or `average = false`")
            )
        if found.device and found.device > (there := free_memory()):
            raise RunError(
                f"{self.config.solver.algorithm} on {self.game.name} takes {found.device / 1e9:,.1f} GB of the GPU, "
                f"and {there / 1e9:,.1f} GB of it are free: use fewer buckets or bets, `average = false`, cards with "
                "more classes of boards, of which a few at a time are on the GPU, or the CPU"
            )
        if found.cards:
            found.cards.require_memory()
            artifact.require_room(artifact.cache_folder(), found.cards.features)
        artifact.require_room(folder, found.disk + (found.cards.tables if found.cards else 0))
        return found

    def on(self, device: str | None = None) -> RunPlan:
        """The plan on a device, or on its own; RunError if that is missing, or if its algorithm does not run there."""
        planned = self.planned_on(self.device if device is None else device)
        if planned.device != CPU:
            require_gpu()
        return planned

    def planned_on(self, device: str) -> RunPlan:
        """The plan on a device that may be on another machine; RunError where that is not for its algorithm."""
        if require_device(device) == CPU:
            require_wide(self.options)
        else:
            sampled = self.config.solver.algorithm == EXTERNAL
            joint = self.algorithm.joint
            if not (sampled or joint or (self.algorithm.opponent and self.algorithm.trunk)):
                raise RunError(
                    f"{self.config.solver.algorithm} on an abstract game runs on the CPU alone: leave out "
                    f"`--device {device}`, or use external, joint, or cfr-br:2"
                )
            if joint and not all(later.recall for one in self.specs for later in one.plan.rounds[1:]):
                raise RunError(
                    f"{self.config.solver.algorithm} on a GPU is for cards with perfect recall: use cards such as "
                    "PR-KE-KO, or leave out `--device gpu`"
                )
            if sampled and self.config.engine.name:
                raise RunError("blades share deals on CPUs: leave out the engine, or `--device gpu`")
            if sampled:
                require_sampled_there(self.game, self.menu, self.options)
        solver = replace(self.config.solver, device=device)
        return replace(self, config=replace(self.config, solver=solver), device=device)

    def open_engine(self) -> Engine | None:
        """The engine of the run, where there is room for its blades; None where it has none."""
        from kilt.solve.distributed.solver import look_for_blades

        asked = self.config.engine
        if not asked.name:
            return None
        engine = engine_named(asked.name, asked.address, self.config.solver.threads)
        if self.algorithm.disk:  # what its workers need is known with the cards
            return engine
        held = self.parts(asked.levels)
        try:
            look_for_blades(engine, held, self.config.solver.threads)
        except BaseException:
            engine.close()
            raise
        return engine

    def keep(self, folder: Path) -> None:
        """Write the configuration to the folder of the run, with the rules of the game where these came from a file."""
        config, file = self.config, Path(self.config.game)
        with artifact.os_errors(f"{folder} cannot be written"):
            folder.mkdir(parents=True, exist_ok=True)
            if file.is_file():
                artifact.write_text(folder / file.name, file.read_text(encoding="utf-8"))
                config = replace(config, game=file.name)
            if config.counter.model:
                new = folder / f".{MODEL}.new"
                shutil.rmtree(new, ignore_errors=True)
                shutil.copytree(config.counter.model, new)
                shutil.rmtree(folder / MODEL, ignore_errors=True)
                new.rename(folder / MODEL)
                config = replace(config, counter=replace(config.counter, model=MODEL))
            artifact.write_text(folder / CONFIG, config.toml())

    def build(
        self, folder: Path, tick: Tick = lambda what, share: None, *, place: Engine | None = None
    ) -> AbstractProblem:
        """The problem, with its card abstractions built in the folder of the run where they are not there yet.

        Parameters
        ----------
        folder : Path
            Of the run.
        tick : callable
            Hears what is being built, and what share of it is done.
        place : Engine, optional
            Where blades are to be, if the engine is open already.
        """
        solver, places = self.config.solver, []
        for cards, own in zip(self.cards, card_folders(folder, len(self.cards)), strict=True):
            if isinstance(cards, AbstractionSpec):
                build(cards, own, cache=artifact.cache_folder(), threads=solver.threads, tick=tick)
            places.append(own if isinstance(cards, AbstractionSpec) else cards)
        return AbstractProblem(
            AbstractGame(self.game, load_abstractions(places), self.menu),
            tuple(places),
            self.options,
            solver.threads,
            asdict(self.config.agent)
            | ({"resolve": asdict(self.config.resolve)} if self.config.resolve.rounds else {}),
            self.config.engine,
            place,
            self.against,
            self.device,
        )

    def identity(self, problem: AbstractProblem) -> RunIdentity:
        """What makes the run what it is."""
        solver = self.config.solver
        parts = " of ".join("parts" for _ in self.config.engine.levels)
        apart = self.config.engine.name and not self.algorithm.disk  # files of subgames are the same wherever they are
        algorithm = f"{solver.algorithm} in {parts}" if apart else solver.algorithm
        name = f"{problem.name}, {problem.abstract.cards.name}"
        return RunIdentity(
            name,
            algorithm,
            solver.seed,
            problem.form,
            problem.fingerprint,
            device=self.device,
            precision=precision_of(problem),
        )


def resolve(config: Config, folder: Path | None = None) -> RunPlan:
    """Look up and check everything that a configuration names.

    Parameters
    ----------
    config : Config
        As read from a file, or made in Python.
    folder : Path, optional
        Of a run: what it has begun to build is gone on with, whatever has become of the file that said so.

    Raises
    ------
    KiltError
        Where something that is named does not exist, or does not fit the rest; the message has a remedy.
    """
    game = load_game(config.game)
    if isinstance(game, Holdem):
        game = tilted(game, config.tilt)
    if not isinstance(game, Holdem):
        raise RunError(f"{config.game} has no cards to abstract: use `kilt solve {quote(config.game)}`")
    rule_named(config.agent.post)
    mapping_named(config.agent.translation)
    if config.resolve.rounds:
        require_settings(config.resolve, game)
    algorithm = algorithm_named(config.solver.algorithm)
    if ABSTRACT not in algorithm.make:
        able = [name for name, entry in ALGORITHMS.items() if ABSTRACT in entry.make]
        raise RunError(f"{config.solver.algorithm} does not solve abstract games: use one of {', '.join(able)}")
    if not (folder and (folder / CONFIG).is_file()):  # earlier versions began runs that had such keys
        _require_used(config, samples=not algorithm.walks and not algorithm.joint)
    if config.engine.name and (algorithm.walks or algorithm.joint or algorithm.against) and not algorithm.disk:
        raise RunError(
            f"blades share the deals of external sampling, or subgames of cfr+disk, not {config.solver.algorithm}: "
            "leave out the engine"
        )
    if algorithm.disk and (config.engine.below or config.engine.batch or config.engine.boards or config.engine.samples):
        raise RunError("workers that share subgames on disk have no batch, boards or samples, and none below them")
    if game.rules.betting == "limit" and config.actions:
        raise RunError(f"{game.name} has bets of one size: leave out `actions`")
    menu = ActionAbstraction(config.actions, config.near) if config.actions else None
    if game.rules.betting == "nolimit" and menu is None and size_of(game.rules).actions.total >= MOST_NODES:
        raise RunError(f"{game.name} has too many bets to take them all: give `actions`, such as '50%, 1x, a; 1x, a'")
    betting_size(game, menu)  # what is too large is refused before hands are counted
    deal = Deal.of(game)
    begun = card_folders(folder, len(config.cards)) if folder else [None] * len(config.cards)
    cards = tuple(_cards(name, own, deal) for name, own in zip(config.cards, begun, strict=True))
    plan = RunPlan(config, game, menu, cards, algorithm)
    if algorithm.against:
        plan = replace(plan, against=_against(plan))
    require_options(plan.options, game)
    if config.engine.name and not algorithm.disk:
        trunk_of(plan.shared_cards.plan, deal, len(config.engine.levels))
        require_boards(config.engine, plan.shared_cards.plan, deal)
    return plan if config.solver.device == CPU else plan.planned_on(config.solver.device)


def _require_used(config: Config, *, samples: bool) -> None:
    """Raise RunError if a configuration sets a key that its run would not read."""
    if not config.engine.name and (key := _first_set(config.engine, [one.name for one in fields(config.engine)])):
        raise RunError(
            f"[engine] sets `{key}` and names no engine: add `name`, one of {', '.join(ENGINES)}, or leave out `{key}`"
        )
    if not samples and (key := _first_set(config.solver, SAMPLING_KEYS)):
        value = getattr(config.solver, key)
        raise RunError(
            f"`{key}` in [solver] is {value!r}, and {config.solver.algorithm} does not use it: leave out `{key}`, or "
            f"use {EXTERNAL}"
        )


def _first_set(section: Record, keys: Sequence[str]) -> str | None:
    """The first of some keys whose value is not the default; None if all have their defaults."""
    plain = type(section)()
    return next((key for key in keys if getattr(section, key) != getattr(plain, key)), None)


def _against(plan: RunPlan) -> Against:
    """The opponent that a run answers; whatever does not fit is found out before anything is built."""
    asked = plan.config.counter
    if not asked.model:
        raise RunError(f"{plan.config.solver.algorithm} answers a model of an opponent: use `kilt counter`")
    against = Against(OpponentModel.load(asked.model, check=True), asked.p, asked.confidence)
    seen = [(AbstractionSpec.read(cards) if isinstance(cards, Path) else cards).fingerprint for cards in plan.cards]
    cards = seen[0] if len(seen) == 1 else artifact.fingerprint(*seen)
    whole = artifact.fingerprint(str(plan.game.rules), cards, artifact.spelled(plan.menu))
    against.model.on(plan.game.name, whole, (sum(plan.size.slots),))
    return against


def _size_of_files(cards: Cards) -> int:
    """Bytes of a card abstraction that is there; 0 for one that is to be built."""
    files = cards.rglob("*") if isinstance(cards, Path) else ()
    return sum(file.stat().st_size for file in files if file.is_file())


def _cards(name: str, begun: Path | None, deal: Deal) -> Cards:
    """A card abstraction by its folder, by what a run has begun to build, or by the name or file of its plan."""
    if (Path(name) / DESCRIPTION).is_file():
        return Path(name)
    return (
        AbstractionSpec.read(begun) if begun and (begun / DESCRIPTION).is_file() else AbstractionSpec.named(name, deal)
    )
