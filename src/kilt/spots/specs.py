"""Specify what to solve: a game, a configuration, a run or a spot.

>>> spec_for("leduc", {"solver.algorithm": "cfr+"}).cost().fits
True
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kilt.config import SPOT
from kilt.errors import RunError
from kilt.games import ready_made_games
from kilt.records import read_toml
from kilt.runs.build import What, spec_in, spec_of
from kilt.runs.folder import RunFolder
from kilt.runs.spec import NOTHING, Spec
from kilt.spots.run_spec import SpotSpec
from kilt.spots.saved import read_spot, require_kept
from kilt.spots.spot import Spot


def spec_for(what: What | Spot, values: Mapping[str, object] = NOTHING) -> Spec:
    """Return the specification of what to solve: a game, a configuration, a run or a spot.

    Nothing is built.

    Parameters
    ----------
    what : str, Path, Game, Config, mapping or Spot
        A game by name, file or rules; a configuration as an object, mapping or .toml file; a spot as an object or
        .toml file; or the folder of a run or of a spot. Names of ready-made games come before folders.
    values : mapping
        Values for keys of the configuration, such as ``{"solver.threads": 2}``. None leaves a key unchanged. A run has
        an algorithm that cannot be changed; a spot takes only "solver.algorithm", "solver.threads" and "solver.device".

    Raises
    ------
    KiltError
        If `what` does not exist or cannot be solved, or if another argument does not fit it.
    """
    path = Path(what) if isinstance(what, str | Path) and what not in ready_made_games() else None
    spot = what if isinstance(what, Spot) else _spot_at(path)
    given: dict[str, Any] = {key: value for key, value in values.items() if value is not None}
    if spot:
        if key := next(iter(given.keys() - {"solver.algorithm", "solver.threads", "solver.device"}), None):
            key = key.rpartition(".")[2]
            raise RunError(f"a spot has its own {key}: leave out `{key}`")
        begun = RunFolder.open(path) if path and path.is_dir() else None
        threads, algorithm = given.get("solver.threads", 1), given.get("solver.algorithm")
        return SpotSpec.of(spot, threads, given.get("solver.device"), begun, algorithm=algorithm)
    if path and path.is_dir():
        if "solver.algorithm" in given:
            raise RunError(f"{path} is a run, which has its algorithm: leave out `algorithm`")
        return spec_in(path, given)
    assert not isinstance(what, Spot)
    return spec_of(what, given)


def _spot_at(path: Path | None) -> Spot | None:
    """Return the spot that a folder or a file holds, or None if it holds none."""
    if path and path.is_dir() and (path / SPOT).exists():
        require_kept(path)
        return read_spot(path / SPOT, kept=True)
    if path and path.suffix == ".toml" and "pot" in read_toml(path, RunError):
        return read_spot(path)
    return None
