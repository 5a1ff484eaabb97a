"""Build opponent models by counting the actions of players in logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kilt.abstraction.abstract_game import AbstractGame
from kilt.config import read_config
from kilt.errors import PlayError, file_errors
from kilt.evaluate.observer import SHOWN, AbstractObserver, FlatObserver, Observer, VectorObserver
from kilt.games import ready_made_games
from kilt.games.holdem import Holdem
from kilt.games.playable import load_holdem
from kilt.play.acpc import log_text
from kilt.play.blueprint import BlueprintAgent
from kilt.players.agents import game_for, is_whole_game
from kilt.players.reference import player as player_of
from kilt.runs.folder import RunFolder
from kilt.runs.plan import resolve
from kilt.runs.run import open_run
from kilt.runs.spec import Tick
from kilt.search.agent import ResolvingAgent
from kilt.solve.forms import load_problem, stored_form
from kilt.solve.problem import DISK, VECTOR, FlatProblem, VectorProblem
from kilt.strategy.blueprint import STRATEGY
from kilt.strategy.model import OpponentModel
from kilt.strategy.translate import Mapping, pseudo_harmonic


@contextmanager
def observer_for(
    target: str | Path,
    player: str,
    mucked: str = SHOWN,
    mapping: Mapping = pseudo_harmonic,
    tick: Tick = lambda what, share: None,
) -> Iterator[Observer]:
    """Return an object that counts a player's actions at the information sets of a run, a configuration or a game.

    Parameters
    ----------
    target : str or Path
        A configuration (``.toml``), whose card abstraction is built for the duration of the context if it does not
        exist; a ready-made game or ``.game`` file, as a flat tree if it is small enough, otherwise with vectors of
        hands; or a player, such as the folder of a run or of an exported agent: see `kilt.players.reference.player`.
    player : str
        Name of the player in logs.
    mucked : str
        How to treat hands without a showdown: see `kilt.evaluate.observer.MUCKED`.
    mapping : Mapping
        Translation of bets that are not on the menu.
    tick : callable
        Called with the progress of building card abstractions.

    Yields
    ------
    Observer
        Counts the hands of logs.
    """
    path = Path(target)
    if path.suffix == ".toml":
        with TemporaryDirectory(prefix="kilt-cards-") as folder:
            abstract = resolve(read_config(path)).build(Path(folder), tick).abstract
            yield AbstractObserver(abstract, player, mucked, mapping)
        return
    if RunFolder.has_run(path) and is_whole_game(path):
        form = stored_form(path / STRATEGY)
        yield _whole_game(open_run(path).game, player, VECTOR if form == DISK else form, mucked)  # counts are a table
    elif str(target) in ready_made_games() or path.suffix == ".game":
        yield _whole_game(str(target), player, None, mucked)
    else:
        try:
            agent = player_of(str(target)).agent
        except PlayError as error:
            raise PlayError(f"{target} is no game and no configuration, and {error}") from None
        agent = agent.blueprint if isinstance(agent, ResolvingAgent) else agent
        if isinstance(agent, BlueprintAgent):
            found = agent.blueprint
            yield AbstractObserver(AbstractGame(found.game, found.cards, found.actions), player, mucked, mapping)
        else:
            yield _whole_game(game_for(agent), player, None, mucked)


def _whole_game(game: str | Holdem, player: str, form: str | None, mucked: str) -> Observer:
    """Return an observer for a game without an abstraction.

    Small games are flat trees, others have vectors of hands.
    """
    rules = load_holdem(game) if isinstance(game, str) else game
    problem = load_problem(game, form=form)
    if isinstance(problem, FlatProblem):
        return FlatObserver(rules, problem.tree, player, mucked)
    assert isinstance(problem, VectorProblem)
    return VectorObserver(problem.game, player, mucked)


@file_errors()
def model_opponent(
    logs: str | Path | Sequence[str | Path], player: str, target: str | Path, *, mucked: str = SHOWN, skip: bool = False
) -> OpponentModel:
    r"""Build an opponent model by counting a player's actions at each information set of logged hands.

    Parameters
    ----------
    logs : path, or sequence of paths
        Logs in the format of ACPC dealers, or hands in PHH.
    player : str
        Name of the player in the logs.
    target : str or Path
        The game of the model: an unabstracted game by name or file, a run, or a configuration as a TOML file.
    mucked : str
        Hands without a showdown: "shown" counts those whose cards the log shows, "left-out" counts none of them, and
        "weighed" counts each as all hands that it could have been, weighted by their probability.
    skip : bool
        Whether to skip lines that cannot be read; otherwise the first of them raises PlayError.

    Returns
    -------
    OpponentModel
        The model; `Against` adds the trust in it, and `solve` and `start_run` compute counter-strategies.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> import kilt
    >>> log = Path(mkdtemp()) / "hands.log"
    >>> _ = log.write_text("STATE:0:cc/rf:Kh|As/Ah:1|-1:Ann|Bob\nSTATE:1:rc/cc:Ks|Qs/Qh:-3|3:Bob|Ann\n")
    >>> model = model_opponent(log, "Ann", "leduc")
    >>> model.figures["hands"], model.figures["decisions"]
    (2, 4.0)
    >>> round(kilt.solve("leduc", iterations=100, against=kilt.Against(model, 0.9)).value, 1)
    -0.1
    """
    places = [Path(log) for log in ([logs] if isinstance(logs, str | Path) else logs)]
    with observer_for(target, player, mucked) as seen:
        faults = [fault for place in places for fault in seen.add_log(log_text(place), str(place), skip=skip)]
        seen.require_hands(", ".join(map(str, places)), faults)
        return seen.model()
