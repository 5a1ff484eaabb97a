"""Count the actions of players in logs, as data for opponent models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kilt import artifact
from kilt.abstraction.abstract_game import AbstractGame
from kilt.config import read_config
from kilt.evaluate.observer import SHOWN, AbstractObserver, FlatObserver, Observer, VectorObserver
from kilt.games.playable import load_holdem
from kilt.play.acpc import decoded
from kilt.runs.folder import RunFolder
from kilt.runs.plan import resolve
from kilt.runs.run import open_run
from kilt.runs.spec import Tick
from kilt.solve.forms import load_problem, stored_form
from kilt.solve.problem import ABSTRACT, DISK, VECTOR, FlatProblem, VectorProblem
from kilt.strategy.blueprint import STRATEGY, Blueprint
from kilt.strategy.translate import Mapping, pseudo_harmonic


def log_text(path: Path) -> str:
    """Return the text of a log file. Raises ArtifactError if it cannot be read."""
    with artifact.os_errors(f"{path} cannot be read"):
        return decoded(path.read_bytes())


@contextmanager
def observer_for(
    target: str | Path,
    player: str,
    mucked: str = SHOWN,
    mapping: Mapping = pseudo_harmonic,
    tick: Tick = lambda what, share: None,
) -> Iterator[Observer]:
    """Make an object that counts a player's actions at the information sets of a run, a configuration or a game.

    Parameters
    ----------
    target : str or Path
        The folder of a run or of an exported agent; a configuration (``.toml``), whose card abstraction is built for
        the duration of the context if it does not exist; or a ready-made game or ``.game`` file, as a flat tree if it
        is small enough, otherwise with vectors of hands.
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
    elif path.is_dir() and not (RunFolder.begun(path) and stored_form(path / STRATEGY) != ABSTRACT):
        found = Blueprint.load(path)
        yield AbstractObserver(AbstractGame(found.game, found.cards, found.actions), player, mucked, mapping)
    else:
        game, form = str(target), None
        if path.is_dir():
            game, form = open_run(path).game, stored_form(path / STRATEGY)
            form = VECTOR if form == DISK else form  # counts are a table
        rules, problem = load_holdem(game), load_problem(game, form=form)
        if isinstance(problem, FlatProblem):
            yield FlatObserver(rules, problem.tree, player, mucked)
        else:
            assert isinstance(problem, VectorProblem)
            yield VectorObserver(problem.game, player, mucked)
