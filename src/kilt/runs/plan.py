"""Plan runs: check a configuration with everything that it names, before any work begins.

The same `RunPlan` is used to estimate costs, to build card abstractions and to solve:

>>> from kilt.config import config_of
>>> plan = resolve(config_of({"game": "leduc", "cards": "lossless", "solver": {"algorithm": "cfr+"}}))
>>> plan.size.infosets, plan.cost().part("cards") is not None
((18, 450), True)
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, replace
from functools import reduce
from pathlib import Path
from types import SimpleNamespace

from kilt import artifact, gpu, machine
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import ActionAbstraction
from kilt.abstraction.buckets import AbstractionSpec, find_abstraction, load_abstractions
from kilt.abstraction.estimate import estimate_build
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build, require_packages
from kilt.config import Config
from kilt.cost import Cost
from kilt.engines import Engine, engine_named
from kilt.errors import RunError
from kilt.games import load_game
from kilt.games.holdem import Holdem
from kilt.games.tilt import tilt_game
from kilt.records import replaced
from kilt.runs.budget import Budget
from kilt.runs.folder import CONFIG, MODEL, RunFolder, RunIdentity
from kilt.runs.spec import Spec, Tick
from kilt.search.settings import require_rounds, require_settings
from kilt.solve.abstract_methods import AbstractMethod
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.counter import Against
from kilt.solve.external import Pace
from kilt.solve.problem import CPU, Problem, precision_of
from kilt.solve.registry import Algorithm, algorithm_named
from kilt.solve.solver import Solver
from kilt.solve.spec import AbstractSpec, Cards
from kilt.strategy.blueprint import OPPONENT_CARDS, card_folders
from kilt.strategy.postprocess import rule_named
from kilt.strategy.translate import mapping_named
from kilt.tree.betting import betting_size


@dataclass(frozen=True)
class RunPlan(AbstractSpec, Spec):
    """A checked plan of a run: its configuration with the game, card abstractions and bet sizes.

    Nothing is built yet.

    The function `resolve` makes it.
    """

    algorithm: Algorithm

    @property
    def method(self) -> AbstractMethod:
        """Return the method by which the plan's algorithm solves abstract games."""
        return self.algorithm.abstract

    @property
    def all_cards(self) -> tuple[Cards, ...]:
        """Return the card abstractions of the players and of the opponent model, if it has its own.

        The opponent is the one that the agent learns against.
        """
        return self.cards if self.opponent is None else (*self.cards, self.opponent)

    def card_folders(self, folder: Path) -> list[Path]:
        """Return the folders of the run's card abstractions, in the order of `all_cards`."""
        own = card_folders(folder, len(self.cards))
        return own if self.opponent is None else [*own, folder / OPPONENT_CARDS]

    @property
    def limits(self) -> Budget | None:
        """Return the configured limits of the run, or None if there are none."""
        limits = self.config.solver.limits
        return Budget(*limits) if any(limits) else None

    def estimate(self) -> SimpleNamespace:
        """Return the run's cost as an object with the attribute names of kilt 0.1."""
        warnings.warn("RunPlan.estimate() is now RunPlan.cost(); the old name goes in kilt 0.3", DeprecationWarning, 2)
        whole = self.cost()
        solving, cards = whole.part("solving") or whole, whole.part("cards")
        tables = solving.part("tables")
        built = cards and SimpleNamespace(
            seconds=cards.seconds,
            memory=cards.resident,
            mapped=cards.mapped,
            tables=cards.disk,
            features=cards.cache,
        )
        return SimpleNamespace(
            size=self.size,
            tables=tables.memory if tables else 0,
            memory=solving.resident,
            mapped=solving.mapped,
            disk=solving.disk,
            cards=built,
            seconds=solving.iteration,
            device=solving.device,
            peak=whole.resident,
            fits=solving.fits,
        )

    def cost(self) -> Cost:
        """Return the memory, disk space and time of the run, including its card abstractions.

        The part "cards" is for building card abstractions, and the part "solving" for the rest.

        The part "tables" of "solving" contains the solver's tables and the game trees that its algorithm traverses. The
        disk space is that of two checkpoints, a strategy and the card abstractions.
        """
        cards = self.all_cards
        threads, missing = self.config.solver.threads, [one for one in cards if isinstance(one, AbstractionSpec)]
        building = [estimate_build(one, machine.cache_folder(), threads) for one in missing]
        mapped = sum(one.disk for one in building) + sum(map(_size_of_files, set(cards)))
        solving = self.method.cost(self, mapped).named("solving")
        return reduce(Cost.then, building).named("cards").then(solving) if building else solving

    def pace(self) -> Pace | None:
        """Measure the algorithm's speed on this machine, in a trial of some seconds.

        Returns None if `cost` already includes the time.
        """
        return self.method.measure_pace(self)

    def require_room(self, folder: Path | None) -> Cost:
        """Return the cost of the run. Raises RunError or ArtifactError if memory, GPU or disk do not suffice."""
        if folder is None:
            raise RunError("a run on an abstract game keeps its cards and its strategy in a folder: give `folder`")
        for cards, own in zip(self.all_cards, self.card_folders(folder), strict=True):
            if isinstance(cards, AbstractionSpec):
                require_packages(cards.plan, own)
        self.method.require_device(self)
        self.method.require_cards(self)
        if self.config.resolve.rounds:
            require_settings(self.config.resolve, self.game)
        if self.device != CPU:
            gpu.require_gpu()
        return self.cost().require(folder)

    def require_new(self, folder: Path) -> None:
        """Raise RunError unless a new run can begin in the given folder.

        The folder may hold the remains of a run that was killed at its start.
        """
        if (folder / CONFIG).is_file():
            raise RunError(f"{folder} is there already: resume the run, or choose another folder")
        game = Path(self.config.game)
        for file in folder.iterdir() if folder.is_dir() else ():
            kept = file.name == game.name and game.is_file() and game.read_bytes() == file.read_bytes()
            kept = kept or (file.name == MODEL and bool(self.config.counter.model))
            if not kept and not file.name.startswith("."):
                raise RunError(f"{folder} is there already, with {file.name} in it: choose another folder")

    def leave(self, folder: Path) -> None:
        """Prepare the folder of a run that begins later, perhaps on another machine.

        `kilt.runs.build.resume` solves it.
        """
        self.require_new(folder)
        self.require_room(folder)
        with RunFolder.exclusive_access(folder):
            self._keep_config(folder)

    def problem(self, folder: Path | None, tick: Tick, *, resumes: bool) -> AbstractProblem:
        """Build the card abstractions and lookup tables of the abstract game, and return the game.

        They are stored in the folder.
        """
        assert folder
        place = self.open_engine()
        try:
            with RunFolder.exclusive_access(folder):  # first of all: if two processes begin at once, one continues
                if not resumes:
                    self.require_new(folder)
                if not (folder / CONFIG).is_file():
                    self._keep_config(folder)
                problem = self.build(folder, tick, place=place)
                self.method.prepare(problem, tick)
        except BaseException:
            if place:
                place.close()
            raise
        return problem

    def solver(self, problem: Problem) -> Solver:
        """Return a new solver for the configured algorithm."""
        return self.method.make(problem, self.config.solver.seed)

    def on(self, device: str | None = None) -> RunPlan:
        """Return the same plan for another device, "cpu" or "gpu".

        Raises RunError if the algorithm does not support the device.
        """
        planned = replace(self, config=replaced(self.config, {"solver.device": device}))
        planned.method.require_device(planned)
        return planned

    def open_engine(self) -> Engine | None:
        """Start the engine whose workers solve the run.

        Returns None if the run has no engine. Raises RunError if the workers do not have enough memory.
        """
        asked = self.config.engine
        if not asked.name:
            return None
        engine = engine_named(asked.name, asked.address, self.config.solver.threads)
        try:
            self.method.require_workers(self, engine)
        except BaseException:
            engine.close()
            raise
        return engine

    def _keep_config(self, folder: Path) -> None:
        """Write the configuration to the run's folder, with the rules of the game if they came from a file."""
        config, file = self.config, Path(self.config.game)
        with artifact.os_errors(f"{folder} cannot be written"):
            folder.mkdir(parents=True, exist_ok=True)
            if file.is_file():
                artifact.write_text(folder / file.name, file.read_text(encoding="utf-8"))
                config = replace(config, game=file.name)
            if self.against:
                self.against.model.save(folder / MODEL)
                config = replaced(config, {"counter.model": MODEL})
            artifact.write_text(folder / CONFIG, config.toml())

    def build(
        self, folder: Path, tick: Tick = lambda what, share: None, *, place: Engine | None = None
    ) -> AbstractProblem:
        """Build the run's missing card abstractions, and return the abstract game.

        Parameters
        ----------
        folder : Path
            Of the run.
        tick : callable
            Called with the current step, and the finished share of it.
        place : Engine, optional
            The engine for the workers, if it is already open.
        """
        solver, places, own_cards = self.config.solver, [], len(self.cards)
        for cards, own in zip(self.all_cards, self.card_folders(folder), strict=True):
            if isinstance(cards, AbstractionSpec):
                build(cards, own, cache=machine.cache_folder(), threads=solver.threads, tick=tick)
            places.append(own if isinstance(cards, AbstractionSpec) else cards)
        return AbstractProblem(
            AbstractGame(self.game, load_abstractions(places[:own_cards]), self.menu),
            tuple(places[:own_cards]),
            self.options,
            solver.threads,
            asdict(self.config.agent)
            | ({"resolve": asdict(self.config.resolve)} if self.config.resolve.rounds else {}),
            self.config.engine,
            place,
            self.against,
            self.device,
            places[-1] if self.opponent is not None else None,
        )

    def identity(self, problem: Problem) -> RunIdentity:
        """Return the settings that determine the run's result, such as card abstractions and precision."""
        assert isinstance(problem, AbstractProblem)
        return RunIdentity(
            problem.description,
            self.method.recorded_name(self),
            self.config.solver.seed,
            problem.form,
            problem.fingerprint,
            device=self.device,
            precision=precision_of(problem),
        )


def resolve(config: Config, folder: Path | None = None, against: Against | None = None) -> RunPlan:
    """Check everything that a configuration names, and plan its run.

    Parameters
    ----------
    config : Config
        The configuration, read from a file or made in Python.
    folder : Path, optional
        Folder of a run, whose unfinished card abstractions are continued, even if the file of the plan has changed.
    against : Against, optional
        The opponent that a counter-strategy exploits. Default: the model that the configuration names.

    Raises
    ------
    KiltError
        If something that the configuration names does not exist, or does not fit the rest. The message has a remedy.
    """
    if not config.cards:
        raise RunError(f'cards must be given for an abstract game of {config.game}, such as cards = "lossless"')
    game = load_game(config.game)
    if isinstance(game, Holdem):
        game = tilt_game(game, config.tilt)
    if not isinstance(game, Holdem):
        raise RunError(f"{config.game} has no cards to abstract: solve it without a configuration")
    rule_named(config.agent.post)
    mapping_named(config.agent.translation)
    if config.resolve.rounds:
        require_rounds(config.resolve, game)
    algorithm = algorithm_named(config.solver.algorithm)
    method = algorithm.abstract
    if not (folder and (folder / CONFIG).is_file()):  # runs of earlier versions may have such keys
        method.require_used(config)
    if game.rules.betting == "limit" and config.actions:
        raise RunError(f"{game.name} has bets of one size: leave out `actions`")
    menu = ActionAbstraction(config.actions, config.near) if config.actions else None
    betting_size(game, menu)  # abstractions that are too large are refused before hands are counted
    deal = Deal.from_game(game)
    names, players = [*config.cards, *filter(None, [config.opponent_cards])], len(config.cards)
    begun = [*card_folders(folder, players), folder / OPPONENT_CARDS] if folder else [None] * len(names)
    found = [find_abstraction(name, own, deal) for name, own in zip(names, begun, strict=False)]
    cards, opponent = tuple(found[:players]), next(iter(found[players:]), None)
    plan = method.with_opponent_model(RunPlan(config, game, menu, cards, algorithm, opponent=opponent, against=against))
    method.require(plan)
    if plan.device != CPU:
        method.require_device(plan)
    return plan


def with_built_cards(config: Config, run: Path) -> Config:
    """Return a run's configuration with its built card abstractions in place of their names."""
    own = zip(config.cards, card_folders(run, len(config.cards)), strict=True)
    cards = tuple(str(there.resolve()) if there.is_dir() else name for name, there in own)
    opponent = run / OPPONENT_CARDS
    return replace(config, cards=cards, opponent_cards=str(opponent) if opponent.is_dir() else config.opponent_cards)


def _size_of_files(cards: Cards) -> int:
    """Return the size in bytes of an existing card abstraction, or 0 if it is yet to be built."""
    files = cards.rglob("*") if isinstance(cards, Path) else ()
    return sum(file.stat().st_size for file in files if file.is_file())
