"""What a model of an opponent is to be for, by where it comes from: a run, a configuration, or a game as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kilt.abstraction.abstract_game import AbstractGame
from kilt.config import read_config
from kilt.errors import RunError
from kilt.evaluate.observer import SHOWN, AbstractObserver, FlatObserver, Observer
from kilt.evaluate.players import load_holdem
from kilt.runs.folder import RunFolder
from kilt.runs.plan import Tick, resolve
from kilt.runs.run import open_run
from kilt.solve.forms import load_problem, stored_form
from kilt.solve.problem import FLAT, VECTOR, FlatProblem
from kilt.strategy.blueprint import STRATEGY, Blueprint
from kilt.strategy.translate import Mapping, pseudo_harmonic


@contextmanager
def observer_for(
    target: str | Path,
    player: str,
    mucked: str = SHOWN,
    mapping: Mapping = pseudo_harmonic,
    tick: Tick = lambda what, share: None,
) -> Iterator[Observer]:
    """Count what a player does at the information sets of a run, of a configuration, or of a game as it is.

    Parameters
    ----------
    target : str or Path
        The folder of a run or of an exported agent; a configuration (``.toml``), whose cards are built for as long as
        the context lasts where they are not there; or a ready-made game or ``.game`` file that is small enough to be
        written out.
    player : str
        The name of the player in logs.
    mucked : str
        What becomes of hands without a showdown: see `kilt.evaluate.observer.MUCKED`.
    mapping : Mapping
        How bets off the menu are translated.
    tick : callable
        Hears what is being built of the cards.
    """
    path = Path(target)
    if path.suffix == ".toml":
        with TemporaryDirectory(prefix="kilt-cards-") as folder:
            abstract = resolve(read_config(path)).build(Path(folder), tick).abstract
            yield AbstractObserver(abstract, player, mucked, mapping)
    elif path.is_dir() and not (RunFolder.begun(path) and stored_form(path / STRATEGY) in (FLAT, VECTOR)):
        found = Blueprint.load(path)
        yield AbstractObserver(AbstractGame(found.game, found.cards, found.actions), player, mucked, mapping)
    else:
        game = open_run(path).game if path.is_dir() else str(target)
        if path.is_dir() and stored_form(path / STRATEGY) == VECTOR:
            raise RunError(
                f"{path} was solved with vectors of hands, and a model is for a flat tree or for an abstract game: "
                f"solve {game} with one thread, or in an abstraction"
            )
        rules, problem = load_holdem(game), load_problem(game, form=FLAT)
        assert isinstance(problem, FlatProblem)
        yield FlatObserver(rules, problem.tree, player, mucked)
