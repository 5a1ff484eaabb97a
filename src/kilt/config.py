"""Configure a run: the game, its abstraction, the solver, and the agent.

Only `game` is required; without `cards` the game is solved without an abstraction. A list of two for `cards` or
`actions` has one value for each player.

>>> config = Config("leduc", "lossless", solver=SolverConfig(minutes=0.1, seed=3))
>>> config.cards, config.solver.seed
(('lossless',), 3)
>>> config == config_of({"game": "leduc", "cards": "lossless", "solver": {"minutes": 0.1, "seed": 3}})
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from kilt.errors import KiltError, RunError
from kilt.records import MOST, Record, bounded, checked, chosen, for_players, parse_toml, read_toml, record_of

SPOT = "spot.toml"  # a spot, in the folder of the run that solves it
DEFAULT_ALGORITHM, DEFAULT_MINUTES = "cfr+", 1  # for unabstracted games; for runs without a budget
MOST_THREADS = 1024
DEVICES = CPU, GPU = "cpu", "gpu"
MOST_DEALS = 1 << 20  # per batch
RESOLVE_METHODS = UNSAFE, GADGET, MAX_MARGIN = "unsafe", "gadget", "max-margin"  # see `kilt.solve.resolve`


@dataclass(frozen=True)
class SolverConfig(Record):
    """Settings of the solver: section ``[solver]`` of a configuration.

    Parameters
    ----------
    algorithm : str
        A name that `kilt solve --algorithms` lists.
    minutes : float
        Minutes after which the run stops; 0: no time limit.
    iterations : int
        Number of iterations after which the run stops; 0: no iteration limit.
    seed : int
        Random seed.
    threads : int
        Number of threads that share the work.
    average : bool
        Whether the result is the average strategy, or the current one, which takes half the memory.
    linear : bool
        Whether iteration t counts t times in regrets and average (linear weighting).
    prune : float
        Most iterations skip actions whose mean regret is below minus this number of chips; 0: no action is skipped.
    equities : bool
        Whether the value of an early all-in is its mean over all boards, not its value on the sampled board.
    compact : bool
        Whether a GPU keeps regrets after the first round in two bytes (bfloat16).
    device : str
        ``"cpu"`` or ``"gpu"``: where the solver runs.
    """

    ERROR_CLASS: ClassVar[type[KiltError]] = RunError
    DISPLAY_NAME: ClassVar[str] = "[solver]"

    algorithm: str = "external"
    minutes: float = 0.0
    iterations: int = 0
    seed: int = 0
    threads: int = bounded(1, 1, MOST_THREADS)
    average: bool = True
    linear: bool = True
    prune: float = 0.0
    equities: bool = False
    compact: bool = False
    device: str = chosen(CPU, DEVICES)

    @property
    def limits(self) -> tuple[int | None, float | None]:
        """Return a run's limits on iterations and seconds, with None for no limit."""
        return self.iterations or None, 60 * self.minutes or None


def _require_engine(name: str) -> None:
    """Raise EngineError if there is no engine of the given name. An empty name stands for none."""
    if name:
        from kilt.engines import require_engine  # imported only by runs that use an engine

        require_engine(name)


@dataclass(frozen=True)
class EngineConfig(Record):
    """Settings for solving with several worker processes: section ``[engine]`` of a configuration.

    Parameters
    ----------
    name : str
        ``"local"`` (threads of this process) or ``"ray"`` (processes, also on other machines); empty: no engine.
    blades : int
        Number of workers that share the classes of boards [Brown15 algorithm 4], or the subgames of ``cfr+disk``.
    below : sequence of int
        Number of workers below each worker, which share the classes of the next board, then of those below each of
        these, and so on, such as [3, 2]. Empty: none.
    address : str
        HOST:PORT of an existing Ray cluster; empty: start one on this machine.
    batch : int
        Number of deals in a message to a worker; 0: measured, so that messages take at most 5% of the time.
    boards : int
        Number of boards for each deal; 0: one for each thread, or as many as `samples` gives.
    samples : int
        Number of boards of each class for each deal; 0: one, or enough for all threads of a worker.
    """

    ERROR_CLASS: ClassVar[type[KiltError]] = RunError
    DISPLAY_NAME: ClassVar[str] = "[engine]"

    name: str = checked("", _require_engine)
    blades: int = bounded(2, 1)
    address: str = ""
    batch: int = bounded(0, 0, MOST_DEALS)
    boards: int = 0
    samples: int = 0
    below: tuple[int, ...] = bounded((), 1)

    if TYPE_CHECKING:  # callers may pass simpler types than the fields hold

        def __init__(
            self,
            name: str = "",
            blades: int = 2,
            address: str = "",
            batch: int = 0,
            boards: int = 0,
            samples: int = 0,
            below: int | Sequence[int] = (),
        ) -> None: ...

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of workers on each level, such as (4, 3): four workers with three below each."""
        return (self.blades, *self.below)


@dataclass(frozen=True)
class AgentConfig(Record):
    """Settings of the agent that plays a run's strategy: section ``[agent]`` of a configuration.

    Parameters
    ----------
    post : str
        The post-processing rule, such as ``"purification"`` or ``"new-0.2"``.
    translation : str
        How bets that are not in the abstraction are mapped to ones that are.
    """

    ERROR_CLASS: ClassVar[type[KiltError]] = RunError
    DISPLAY_NAME: ClassVar[str] = "[agent]"

    post: str = "none"
    translation: str = "pseudo-harmonic"


@dataclass(frozen=True)
class ResolveConfig(Record):
    """Settings for re-solving subgames during play: section ``[resolve]`` of a configuration.

    Parameters
    ----------
    rounds : sequence of str
        Rounds at whose start the agent solves the subgame, such as ["turn", "river"]. Empty: it follows its blueprint.
    method : str
        ``"unsafe"``, ``"gadget"`` or ``"max-margin"``: see `kilt.solve.resolve`.
    trust : float
        For the method ``"gadget"``: the probability that the opponent's range is that of the blueprint, not any range.
        0, with `neglect` 0, is safe against every opponent.
    neglect : float
        Opponent hands with less than this share of the largest weight are ignored. 0: none, which takes longer.
    bets : str
        Bet sizes of both players in the round that is re-solved, and after a / in the rounds after it.
    near : float
        A raise becomes all-in if the chips that the player has put in, over the whole hand, are at least this share of
        the stack with which the hand began.
    seconds : float
        Time limit of a decision in seconds; 0: no limit, or 2 if `iterations` has no limit either.
    iterations : int
        Iterations of each subgame; 0: no limit. Without `seconds`, the result depends on the state alone.
    threads : int
        Number of threads, which share the possible boards.
    limited : sequence of str
        Rounds among `rounds` whose subgames end with the round, such as ["flop"]: blueprint values stand for the rest.
    continuations : int
        Number of strategies, 1 to 4, that the opponent chooses from where a limited subgame ends: the blueprint, and it
        biased towards folding, calling and raising.
    boards : int
        Number of possible boards over which the values of limited subgames are averaged; 0: all.
    """

    ERROR_CLASS: ClassVar[type[KiltError]] = RunError
    DISPLAY_NAME: ClassVar[str] = "[resolve]"

    rounds: tuple[str, ...] = ()
    method: str = chosen("gadget", RESOLVE_METHODS)
    trust: float = bounded(0.85, 0, 1)
    neglect: float = bounded(0.001, 0, 1)
    bets: str = "50%, 1x, a; 1x, a; a / 1x; a"
    near: float = bounded(0.8, 0, 1)
    seconds: float = 0.0
    iterations: int = 0
    threads: int = bounded(1, 1, MOST_THREADS)
    limited: tuple[str, ...] = ()
    continuations: int = bounded(4, 1, 4)
    boards: int = 24

    if TYPE_CHECKING:  # callers may pass simpler types than the fields hold

        def __init__(
            self,
            rounds: str | Sequence[str] = (),
            method: str = "gadget",
            trust: float = 0.85,
            neglect: float = 0.001,
            bets: str = ...,
            near: float = 0.8,
            seconds: float = 0.0,
            iterations: int = 0,
            threads: int = 1,
            limited: str | Sequence[str] = (),
            continuations: int = 4,
            boards: int = 24,
        ) -> None: ...

    @property
    def clock(self) -> float:
        """The time limit of a decision in seconds, or 0 for no limit."""
        return self.seconds or (0.0 if self.iterations else 2.0)


@dataclass(frozen=True)
class CounterConfig(Record):
    """The opponent model that a counter-strategy exploits: section ``[counter]`` of a configuration.

    The command `kilt counter` writes this section.

    Parameters
    ----------
    model : str
        The folder of a model; empty: no counter-strategy.
    p : float
        Probability p of a restricted Nash response, or P_max of a data-biased one: see `kilt.solve.counter`.
    confidence : str
        The confidence function of a data-biased response; empty for a restricted Nash response.
    """

    ERROR_CLASS: ClassVar[type[KiltError]] = RunError
    DISPLAY_NAME: ClassVar[str] = "[counter]"

    model: str = ""
    p: float = bounded(0.0, -MOST)  # `kilt.solve.counter` checks the range, under its own name for p
    confidence: str = ""


@dataclass(frozen=True)
class Config(Record):
    """The configuration of a run: its game, abstraction, solver, and agent.

    Settings of both players are stored as tuples, with one element if both players have the same setting.

    Parameters
    ----------
    game : str
        A ready-made game by name, or a file in ACPC format.
    cards : str or sequence of str
        The card abstraction of both players, or a list of one for each: a name such as ``"IR-KE-KO 169-200-200-200"``,
        ``"lossless"``, the folder of an abstraction, or a plan as a .toml file. Empty: the game is solved
        without an abstraction.
    opponent_cards : str
        The card abstraction of the opponent while kilt solves the game. Then kilt solves one game for each player: the
        player has `cards`, and the opponent has these cards, which should be finer. The result is a strategy for
        `cards`, which loses less to opponents who see more than it does. For external sampling in one process. Empty:
        both players have `cards`.
    actions : str or sequence of str
        Bet sizes of both players, or a list of one text for each: / separates rounds, and ; the raises of a round (see
        `kilt.abstraction.actions`). Empty: every legal raise.
    near : float
        A raise becomes all-in if the chips that the player has put in, over the whole hand, are at least this share of
        the stack with which the hand began.
    tilt : sequence of float
        Percentages by which payoffs are changed while solving, for winning a showdown, losing one, folding, and the
        opponent's folding, such as [7, 0, 0, 7]. Empty: none.
    solver : SolverConfig or Mapping
    engine : EngineConfig or Mapping
    agent : AgentConfig or Mapping
    resolve : ResolveConfig or Mapping
    counter : CounterConfig or Mapping

    Raises
    ------
    RunError
        If a value has the wrong type or is out of bounds.
    """

    ERROR_CLASS: ClassVar[type[KiltError]] = RunError
    DISPLAY_NAME: ClassVar[str] = "the run"
    EXAMPLE: ClassVar[str] = '`game = "leduc"` with `cards = "lossless"`'

    game: str
    cards: tuple[str, ...] = for_players("IR-KE-KO 169-200-200-200")
    opponent_cards: str = field(default="", kw_only=True)
    actions: tuple[str, ...] = for_players("50%, 1x, a")
    near: float = bounded(0.8, 0, 1)
    tilt: tuple[float, ...] = bounded((), -100)
    solver: SolverConfig = field(default_factory=SolverConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    resolve: ResolveConfig = field(default_factory=ResolveConfig)
    counter: CounterConfig = field(default_factory=CounterConfig)

    if TYPE_CHECKING:  # callers may pass simpler types than the fields hold

        def __init__(
            self,
            game: str,
            cards: str | Sequence[str] = (),
            actions: str | Sequence[str] = (),
            near: float = 0.8,
            tilt: Sequence[float] = (),
            solver: SolverConfig | Mapping[str, Any] = ...,
            engine: EngineConfig | Mapping[str, Any] = ...,
            agent: AgentConfig | Mapping[str, Any] = ...,
            resolve: ResolveConfig | Mapping[str, Any] = ...,
            counter: CounterConfig | Mapping[str, Any] = ...,
            *,
            opponent_cards: str = "",
        ) -> None: ...


SECTIONS: dict[str, type[Record]] = {
    "solver": SolverConfig,
    "engine": EngineConfig,
    "agent": AgentConfig,
    "resolve": ResolveConfig,
    "counter": CounterConfig,
}


def read_config(path: str | Path) -> Config:
    """Read the configuration of a run from a TOML file.

    Parameters
    ----------
    path : str or Path
        The file. Games, plans and folders that it names are relative to the file's folder; full paths are stored.

    Returns
    -------
    Config

    Raises
    ------
    RunError
        If the file cannot be read, is not TOML, or contains an unknown key or an invalid value.
    """
    path = Path(path)
    said = _beside(read_toml(path, RunError), path.parent)
    try:
        return record_of(Config, said)
    except RunError as error:
        raise RunError(f"{path}: {error}") from None


def parse_config(text: str) -> Config:
    r"""Parse the configuration of a run from TOML text.

    Unlike `read_config`, it does not look for the files that the text names.

    >>> parse_config('game = "leduc"\ncards = "lossless"').cards
    ('lossless',)
    """
    return config_of(parse_toml(text, "the configuration", RunError))


def config_of(data: Mapping[str, Any]) -> Config:
    """Create a run's configuration from a mapping, such as the content of a TOML file.

    >>> config_of({"game": "leduc", "cards": "lossless", "solver": {"seed": 3}}).solver.seed
    3
    """
    return record_of(Config, data)


def find_config(what: object) -> Config | None:
    """Return the configuration that an object, a mapping or a TOML file contains; None if `what` is a game."""
    if isinstance(what, Config):
        return what
    if isinstance(what, str | Path):
        return read_config(what) if str(what).endswith(".toml") else None
    return config_of(what) if isinstance(what, Mapping) else None


def _beside(said: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Replace the names of files in a folder by their full paths, in the content of a configuration file."""

    def there(name: Any) -> Any:
        if isinstance(name, list):
            return [there(one) for one in name]
        known = isinstance(name, str) and name and (folder / name).exists()
        return str((folder / name).resolve()) if known else name

    found = said | {key: there(said[key]) for key in ("cards", "opponent_cards") if key in said}
    game, counter = said.get("game"), said.get("counter")
    if isinstance(game, str) and (folder / game).is_file():
        found["game"] = there(game)
    if isinstance(counter, dict) and "model" in counter:
        found["counter"] = counter | {"model": there(counter["model"])}
    return found
