"""The functions behind `import kilt`: the main things, in a few lines each.

They take names as the commands do ("leduc", "cfr+", "runs/mine"), or the objects that these stand for, print nothing,
and raise `KiltError` with a remedy where something does not fit. What they return are the objects that the rest of kilt
works with: whoever wants more goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from kilt import artifact
from kilt.abstraction.buckets import AbstractionSpec, CardAbstraction
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.arrays import Array
from kilt.cards.deck import FULL, Deck
from kilt.cards.equity import Equity, duel
from kilt.config import DEFAULT_ALGORITHM, Config, CounterConfig, config_of, read_config
from kilt.errors import GameError, PlayError, RunError, file_errors
from kilt.evaluate.judge import judge_of
from kilt.evaluate.matchup import meet
from kilt.evaluate.observer import SHOWN
from kilt.games import load_game
from kilt.games.game import Game
from kilt.games.holdem import Holdem
from kilt.play.agent import Agent
from kilt.play.match import Match
from kilt.play.strategy_agent import StrategyAgent
from kilt.play.tree_agent import TreeAgent
from kilt.players.agents import game_for, load_agent, load_holdem, own_game
from kilt.players.fixed_agents import AGENTS, fixed_agent
from kilt.players.modelled import log_text, observer_for
from kilt.players.profile import Subject
from kilt.runs.budget import Budget, Step
from kilt.runs.plan import RunPlan, Tick, resolve
from kilt.runs.run import Run, StoredRun, configured_run, continued_run, new_run
from kilt.solve.counter import Against
from kilt.solve.forms import load_problem
from kilt.solve.problem import FLAT, VECTOR, FlatProblem, Problem, VectorProblem
from kilt.solve.registry import Algorithm
from kilt.solve.variants import Variant
from kilt.strategy.blueprint import STRATEGY, Blueprint
from kilt.strategy.model import OpponentModel
from kilt.strategy.naming import AVERAGE, solved_name
from kilt.strategy.table import Strategy
from kilt.strategy.vector import VectorStrategy
from kilt.tree.place import PlacedTree


def _nothing(*_: object) -> None:
    """Hear nothing."""


@dataclass(frozen=True)
class Solution:
    """What `solve_game` found: the average strategy, how good it is, and how it got there.

    Nothing is post-processed: all figures, and an agent that plays the solution, are about that one strategy.
    """

    problem: Problem
    table: Array  # the average strategy as the problem's solvers have it
    steps: tuple[Step, ...]  # where the solver stood, by the measuring schedule; the last one is that of the end
    solved: str = AVERAGE  # which strategy it is, in words: algorithms without an average give their last one
    game: str | Game | None = None  # as `solve_game` was given it

    @property
    def exploitability(self) -> float:
        """What best responses win from the strategy on average over both seats, in chips per game."""
        return self.steps[-1].exploitability

    @property
    def exploitability_mbb(self) -> float | None:
        """The exploitability in thousandths of a big blind per game; None where the game has no big blind."""
        return self.problem.mbb(self.exploitability)

    @property
    def value(self) -> float:
        """Expected winnings of player 0 when both follow the strategy, in chips per game."""
        return self.steps[-1].value

    @property
    def iterations(self) -> int:
        """Iterations that were done."""
        return self.steps[-1].iterations

    @property
    def infosets(self) -> tuple[str, ...]:
        """The names of all information sets, for games solved as flat trees; none otherwise."""
        return self.problem.tree.infosets if isinstance(self.problem, FlatProblem) else ()

    @property
    def strategy(self) -> Strategy | VectorStrategy:
        """The average strategy: by information set for small games, a table over (board, row) × hand for large ones."""
        if isinstance(self.problem, FlatProblem):
            return Strategy.of(self.problem.tree, self.table)
        assert isinstance(self.problem, VectorProblem)
        return VectorStrategy.of(self.problem.game, self.table)

    @property
    def agent(self) -> StrategyAgent | TreeAgent:
        """The agent that plays the strategy in matches; PlayError if the game is no poker."""
        if isinstance(self.problem, VectorProblem):
            if not isinstance(self.problem.game.game, Holdem):
                raise PlayError(f"{self.problem.name} is no poker: agents play games with cards and bets")
            return TreeAgent("solution", PlacedTree(self.problem.game), self.table)
        assert isinstance(self.problem, FlatProblem)
        game = self.game if isinstance(self.game, Holdem) else load_holdem(str(self.game or self.problem.name))
        return StrategyAgent("solution", game, Strategy.of(self.problem.tree, self.table))

    def __repr__(self) -> str:
        """The game and how good the solved strategy is, in one line; the table is left out."""
        return (
            f"Solution({self.problem.name!r}, {self.solved}: exploitability {self.exploitability:.6g} chips per game, "
            f"value {self.value:.6g}, {self.iterations:,} iterations)"
        )

    def __getitem__(self, infoset: str) -> dict[str, float]:
        """The probability of each action at an information set, by its name; for games solved as flat trees."""
        strategy = self.strategy
        if not isinstance(strategy, Strategy):
            raise GameError(
                f"{self.problem.name} was solved with vectors of hands, without names: use `strategy.table`"
            )
        return strategy[infoset]


def solve_game(
    game: str | Game,
    algorithm: str | Variant | Algorithm = DEFAULT_ALGORITHM,
    *,
    iterations: int | None = None,
    seconds: float | None = None,
    target: float | None = None,
    seed: int = 0,
    threads: int = 1,
    against: Against | None = None,
    folder: str | Path | None = None,
    on_step: Callable[[Step], object] = _nothing,
) -> Solution:
    """Solve a two-player game: find a strategy that no opponent can exploit, or one that answers an opponent.

    Parameters
    ----------
    game : str or Game
        A ready-made game by name, a file in ACPC format, ``openspiel:NAME``, or an object with the methods of `Game`.
    algorithm : str, Variant or Algorithm
        A name (``kilt solve --algorithms`` lists them), a row of discounts for CFR, or an entry of one's own.
    iterations, seconds, target : optional
        When to stop: whichever comes first. `target` is an exploitability in chips per game. Without any: a minute.
    seed : int
        For algorithms that draw at random.
    threads : int
        More than 1 for algorithms that walk all boards.
    against : Against, optional
        An opponent to be answered: a model of them for the same game (`model_opponent`), and how far it is trusted.
    folder : str or Path, optional
        A new folder for log, checkpoints and strategy; `resume_run` goes on with it.
    on_step : callable
        Hears a `Step` at each point of the measuring schedule.

    Returns
    -------
    Solution

    Examples
    --------
    >>> solution = solve_game("kuhn", iterations=1000)
    >>> round(18 * solution.value, 2), solution.exploitability < 1e-3
    (-1.0, True)
    >>> sorted(solution["Ks||cr"])
    ['c', 'f']
    """
    budget = Budget(iterations, seconds, target) if any((iterations, seconds, target)) else None
    if against:
        if not isinstance(algorithm, str):
            raise RunError("an opponent is answered by an algorithm with a name: use cfr, cfr+, linear or dcfr")
        algorithm = against.algorithm(algorithm)
    place = Path(folder) if folder else None
    with file_errors():
        run = new_run(game, algorithm, budget=budget, seed=seed, threads=threads, against=against, folder=place)
    steps = []
    for step in run.steps():
        on_step(step)
        steps.append(step)
    return Solution(run.problem, run.strategy(), tuple(steps), solved_name(run.identity._asdict()), game)


def equity(hand: str, opponent: str = "random", board: str = "", *, deck: Deck = FULL) -> Equity:
    """How a hand fares against another, or against a range, over all ways to complete the board.

    Parameters
    ----------
    hand : str
        Two cards, such as "AsKh".
    opponent : str
        Two cards, a range such as "QQ+,AKs,A5s-A2s,KQs:0.5", or "random" for any two cards.
    board : str
        None to five cards, such as "Qd7h2c".
    deck : Deck
        That the cards are from.

    Returns
    -------
    Equity
        Probabilities `win`, `tie` and `lose`, and `equity`, the share of the pot.

    Examples
    --------
    >>> round(equity("AsKh", "QQ+,AK", "Qd7h2c").equity, 5)
    0.27727
    """
    public = deck.cards(board)
    return duel(deck.cards(hand, 2, dead=public), deck.range(opponent), public, deck)


@file_errors()
def exploitability(
    game: str | Game | None = None,
    strategy: str | Path | Strategy | VectorStrategy | Mapping[str, Mapping[str, float]] | Solution = "uniform",
    *,
    threads: int = 1,
    as_played: bool = False,
) -> float:
    """What best responses win from a strategy, exactly: the mean over both seats, in chips per game.

    A run has two strategies where its agent post-processes: the average strategy, which this judges by default, and the
    strategy as played. Best responses can win several times as much from one as from the other.

    Parameters
    ----------
    game : str or Game
        The game; None for the strategy of a run, which knows its game.
    strategy
        A `Solution`; a `Strategy` or `VectorStrategy`; probabilities by information set and action; the name of an
        agent that looks at no cards, such as "always-call" or "uniform"; the folder of a run, for its average strategy;
        ``RUN@RULE``, for that strategy after a rule; or the folder of an exported agent, for the strategy as played.
    threads : int
        That share the boards. The result does not depend on it beyond rounding.
    as_played : bool
        For the folder of a run: judge the strategy after the post-processing that the run's configuration names.

    Returns
    -------
    float
        At least 0. Multiply by 1000 / big blind for mbb/g; NashConv is twice this.

    Examples
    --------
    >>> round(2 * exploitability("leduc", "uniform"), 7)  # NashConv of the uniform profile
    4.7472222
    >>> infosets = [f"{rank}s||{bets}" for rank in "QKA" for bets in ("", "c", "r", "cr")]
    >>> passive = {infoset: {"f" if "r" in infoset else "c": 1.0} for infoset in infosets}
    >>> exploitability("kuhn", passive)  # whoever bets takes the antes
    1.0
    """
    if isinstance(strategy, Solution):
        return judge_of(strategy.problem).exploitability(strategy.table)
    if isinstance(strategy, str) and strategy in AGENTS:
        if game is None:
            raise RunError(f"{strategy} plays many games: say which")
        problem, table = fixed_agent(game, strategy, threads)
        return judge_of(problem).exploitability(table)
    if isinstance(strategy, str | Path):
        subjects = Subject.all_of_run(Path(strategy)) if as_played else (Subject.of_run(Path(strategy)),)
        judge, table, _ = max(subjects, key=lambda subject: subject.played).load(threads)
        if not judge.exact:
            raise RunError(
                f"{judge.problem.name} is too large for memory to look for best responses: play matches against it"
            )
        return float(judge.exploitability(table))
    if game is None:
        raise RunError("a strategy by itself does not know its game: say which")
    form = VECTOR if isinstance(strategy, VectorStrategy) else FLAT
    problem = load_problem(game, form=form, threads=threads)
    if isinstance(strategy, VectorStrategy):
        assert isinstance(problem, VectorProblem)
        return judge_of(problem).exploitability(strategy.on(problem.game))
    assert isinstance(problem, FlatProblem)
    whole = strategy if isinstance(strategy, Strategy) else Strategy.from_rows(problem.tree, strategy)
    return judge_of(problem).exploitability(whole.on(problem.tree))


@file_errors()
def build_abstraction(
    name: str,
    game: str | Game = "holdem.limit.2p",
    folder: str | Path | None = None,
    *,
    threads: int = 1,
    tick: Tick = _nothing,
) -> CardAbstraction:
    """Sort the hands of a game into buckets.

    Parameters
    ----------
    name : str
        A name as in the papers, such as ``"IR-KE-KO 169-500-500-500"``, ``"lossless"``, or a plan as a .toml file.
    game : str or Game
        A game of the hold'em family: its deck and rounds.
    folder : str or Path, optional
        Where to keep it, to be opened again by `CardAbstraction.load`. Left out: in memory only.
    threads : int
        The result does not depend on it.
    tick : callable
        Hears what is being done, and what share of it is done.

    Returns
    -------
    CardAbstraction
        ``bucket(hand, board)`` looks a hand up.

    Examples
    --------
    >>> cards = build_abstraction("PR-PHS-PHS 2-2", "leduc")
    >>> cards.numbers  # of buckets, by round
    (2, 4)
    """
    rules = load_game(game) if isinstance(game, str) else game
    if not isinstance(rules, Holdem):
        raise GameError(f"{rules.name} has no cards to abstract: use a game of poker")
    spec = AbstractionSpec.named(name, Deal.of(rules))
    if folder is not None:
        return build(spec, Path(folder), cache=artifact.cache_folder(), threads=threads, tick=tick)
    with TemporaryDirectory() as place:
        return build(spec, Path(place) / "cards", cache=artifact.cache_folder(), threads=threads, tick=tick)


@file_errors()
def plan_run(config: Config | Mapping[str, Any] | str | Path) -> RunPlan:
    """Look up and check everything that a configuration names, before any work.

    Parameters
    ----------
    config : Config, mapping, or path of a TOML file
        See `Config`; ``kilt plan --example`` prints one.

    Returns
    -------
    RunPlan
        ``estimate()`` says what memory, disk and time it takes; ``size`` how large the abstract game is.

    Examples
    --------
    >>> estimate = plan_run({"game": "leduc", "cards": "lossless"}).estimate()
    >>> sum(estimate.size.slots), estimate.tables  # infoset-actions, bytes
    (1092, 8736)
    """
    return resolve(_config(config))


@file_errors()
def start_run(
    config: Config | Mapping[str, Any] | str | Path,
    folder: str | Path,
    *,
    iterations: int | None = None,
    seconds: float | None = None,
    against: Against | None = None,
    tick: Tick = _nothing,
) -> Run:
    """Begin a run: build the cards of a configuration, and make the solver that is to work on the abstract game.

    Parameters
    ----------
    config : Config, mapping, or path of a TOML file
        Game, cards, bets, solver and agent.
    folder : str or Path
        A new folder for all of it.
    iterations, seconds : optional
        When to stop; left out: as the configuration says.
    against : Against, optional
        An opponent to be answered: a model of them for the same configuration (`model_opponent`), and how far it is
        trusted. The run keeps a copy of the model.
    tick : callable
        Hears what is being built of the cards, and what share of it is done.

    Returns
    -------
    Run
        Iterate over it to solve: each `Step` says where it stands. Whoever stops early can go on later: see
        `resume_run`. At the end the folder is an agent: see `load_agent`.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp()) / "leduc"
    >>> run = start_run({"game": "leduc", "cards": "lossless"}, folder, iterations=2000)
    >>> [step.iterations for step in run][-1], load_agent(str(folder)).game.name
    (2000, 'leduc')
    """
    budget = Budget(iterations, seconds) if iterations or seconds else None
    said = _config(config)
    if against is None:
        return configured_run(resolve(said, Path(folder)), Path(folder), budget=budget, tick=tick)
    solver = replace(said.solver, algorithm=against.algorithm(said.solver.algorithm))
    with TemporaryDirectory(prefix="kilt-model-") as place:
        against.model.save(Path(place) / "model")
        asked = CounterConfig(str(Path(place) / "model"), against.p, against.confidence)
        said = replace(said, solver=solver, counter=asked)
        return configured_run(resolve(said, Path(folder)), Path(folder), budget=budget, tick=tick)


@file_errors()
def model_opponent(
    logs: str | Path | Sequence[str | Path], player: str, target: str | Path, *, mucked: str = SHOWN, skip: bool = False
) -> OpponentModel:
    r"""Count what a player did at each information set of a game, from hands that they have played.

    Parameters
    ----------
    logs : path, or sequence of paths
        Logs as ACPC dealers write them, or hands in PHH.
    player : str
        Whose actions to count, as the logs call them.
    target : str or Path
        What the model is for: a game as it is by name or file, a run, or a configuration as a TOML file.
    mucked : str
        Hands without a showdown count as the log shows them ("shown"), do not ("left-out"), or count as all that they
        could have been ("weighed").
    skip : bool
        Leave out lines that cannot be read; otherwise the first of them raises PlayError.

    Returns
    -------
    OpponentModel
        `Against` says how far it is to be trusted; `solve_game` and `start_run` answer it.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> log = Path(mkdtemp()) / "hands.log"
    >>> _ = log.write_text("STATE:0:cc/rf:Kh|As/Ah:1|-1:Ann|Bob\nSTATE:1:rc/cc:Ks|Qs/Qh:-3|3:Bob|Ann\n")
    >>> model = model_opponent(log, "Ann", "leduc")
    >>> model.figures["hands"], model.figures["decisions"]
    (2, 4.0)
    >>> round(solve_game("leduc", iterations=100, against=Against(model, 0.9)).value, 1)
    -0.1
    """
    places = [Path(log) for log in ([logs] if isinstance(logs, str | Path) else logs)]
    with observer_for(target, player, mucked) as seen:
        faults = [fault for place in places for fault in seen.add_log(log_text(place), str(place), skip=skip)]
        seen.require_hands(", ".join(map(str, places)), faults)
        return seen.model()


@file_errors()
def resume_run(
    folder: str | Path,
    *,
    iterations: int | None = None,
    seconds: float | None = None,
    target: float | None = None,
    threads: int | None = None,
    tick: Tick = _nothing,
) -> Run:
    """Go on with a run that was stopped or killed, from its last checkpoint.

    Parameters
    ----------
    folder : str or Path
        Of a run that `start_run`, `solve_game` or ``kilt solve`` began.
    iterations, seconds, target : optional
        When to stop, in total. Left out: as before.
    threads : int, optional
        Left out: as the configuration says, or 1.
    tick : callable
        Hears what is being built of the cards, where they are not finished.

    Returns
    -------
    Run
        As `start_run` makes it.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp()) / "leduc"
    >>> start_run({"game": "leduc", "cards": "lossless"}, folder, iterations=1000).finish().iterations
    1000
    >>> resume_run(folder, iterations=3000).finish().iterations
    3000
    """
    budget = Budget(iterations, seconds, target) if any((iterations, seconds, target)) else None
    return continued_run(Path(folder), budget=budget, threads=threads, tick=tick)


@file_errors()
def open_blueprint(folder: str | Path) -> Blueprint:
    """Open the strategy of a run on an abstract game, or of an exported agent; tables are mapped, not read.

    Parameters
    ----------
    folder : str or Path
        Of a run, or what ``kilt export`` made.

    Returns
    -------
    Blueprint
        ``row(node, bucket)`` has the probabilities of a decision, ``bucket(player, round, hand, board)`` the bucket.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp()) / "leduc"
    >>> _ = start_run({"game": "leduc", "cards": "lossless"}, folder, iterations=1000).finish()
    >>> blueprint = open_blueprint(folder)
    >>> king = blueprint.game.deck.cards("Ks")
    >>> len(blueprint.row(0, blueprint.bucket(0, 0, king, ()))), blueprint.labels(0)  # check or bet
    (2, ['c', 'r'])
    """
    return Blueprint.load(folder)


@file_errors()
def play_match(
    first: str | Path | Agent | Solution | Run | StoredRun,
    second: str | Path | Agent | Solution | Run | StoredRun,
    hands: int = 10_000,
    *,
    game: str | Game | None = None,
    duplicate: bool = True,
    seed: int = 0,
    processes: int = 1,
    way: str = "played",
) -> Match:
    """Play a match between two agents.

    Parameters
    ----------
    first, second : str, Path, Agent, Solution or Run
        As `load_agent` takes it: the folder of a run or of an exported agent, the name of a baseline ("always-call",
        "random", …), ``FILE.py:CLASS``. Or an object with a `name` and a method ``act(observation)``; what `solve_game`
        returned; or a run that is finished and has a folder, which plays after its post-processing.
    hands : int
        In all; a duplicate match plays each deal twice, with the seats swapped.
    game : str or Game, optional
        Needed where neither player is a run, which knows its game.
    duplicate : bool
        Whether each deal is played in both seats.
    seed : int
        Of the deals and of all that agents draw: the same seed plays the same match.
    processes : int
        More than one load the players from their folders, or pickle them.
    way : str
        How results come about: "played", "expected" or "aivat", which have less luck in them where players allow it; or
        "best", the first of these that pays. See `kilt.evaluate.matchup`.

    Returns
    -------
    Match
        `win_rate` gives what the first player wins in mbb/h, with its 95% interval.

    Examples
    --------
    >>> match = play_match("always-raise", "always-fold", hands=100, game="holdem.nolimit.2p")
    >>> float(match.results.mean()) * 1000 / match.big_blind  # mbb/h: half a blind or a whole one, by seat
    750.0
    >>> solution = solve_game("leduc", iterations=200)
    >>> bool(play_match(solution, "always-fold", hands=100).results.mean() > 0)
    True
    """
    rules = load_holdem(game) if isinstance(game, str) else game
    if rules is not None and not isinstance(rules, Holdem):
        raise PlayError(f"{rules.name} is no poker: agents play games with cards and bets")
    one, other = _player(first), _player(second)
    for player in (one, other):
        agent = load_agent(player) if isinstance(player, str) else player
        rules = own_game(agent) if rules is None else game_for(agent, rules)
    if rules is None:
        raise PlayError("both players play any poker game: say which one")
    return meet(rules, (one, other), hands, seed, way=way, duplicate=duplicate, load=load_agent, processes=processes)


def _player(player: object) -> str | Agent:
    """A player of a match: the name of an agent, or an agent."""
    if isinstance(player, Solution):
        return player.agent
    if isinstance(player, Run):
        if player.folder is None or not artifact.exists(player.folder.path / STRATEGY):
            raise PlayError(
                f"the run on {player.problem.name} has no strategy in a folder yet: give it a folder, and finish it"
            )
        return str(player.folder.path)
    if isinstance(player, StoredRun):
        return str(player.path)
    if isinstance(player, str | Path):
        return str(player)
    if not isinstance(getattr(player, "name", None), str) or not callable(getattr(player, "act", None)):
        raise PlayError(
            f"{type(player).__name__} is no player: give the name of an agent, a run, what solve_game returned, or an "
            "object with a name and a method act(observation)"
        )
    return cast("Agent", player)


def _config(config: Config | Mapping[str, Any] | str | Path) -> Config:
    if isinstance(config, Config):
        return config
    return config_of(config) if isinstance(config, Mapping) else read_config(Path(config))
