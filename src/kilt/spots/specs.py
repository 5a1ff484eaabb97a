"""Describe what to solve: a game, a configuration, a run or a spot.

>>> spec_for("leduc", algorithm="cfr+").cost().fits
True
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from kilt.config import DEFAULT_ALGORITHM, SPOT, Config, config_in
from kilt.errors import RunError
from kilt.games import ready_made_games
from kilt.games.game import Game
from kilt.records import read_toml, replaced
from kilt.runs.build import spec_in, spec_of
from kilt.runs.folder import RunFolder
from kilt.runs.spec import Spec, WholeSpec
from kilt.solve.problem import CPU
from kilt.spots.saved import read_spot, require_kept
from kilt.spots.spot import Spot, SpotSpec

What: TypeAlias = "str | Path | Game | Config | Mapping[str, Any]"


def spec_for(
    what: What | Spot, *, algorithm: str | None = None, threads: int | None = None, device: str | None = None
) -> Spec:
    """Return a description of what to solve and how, for a game, a configuration, a run or a spot.

    Nothing is built.

    Parameters
    ----------
    what : str, Path, Game, Config, mapping or Spot
        A game by name, file or rules; a configuration as an object, mapping or .toml file; a spot as an object or
        .toml file; or the folder of a run or of a spot. Names of ready-made games come before folders.
    algorithm : str, optional
        Name of the algorithm. Default: that of the configuration or of the run, or "cfr+".
    threads : int, optional
        Number of threads. Default: as in the configuration, or 1.
    device : str, optional
        "cpu" or "gpu". Default: that of the configuration or of the run, or "cpu".

    Raises
    ------
    KiltError
        If `what` does not exist or cannot be solved, or if another argument does not fit it.
    """
    path = Path(what) if isinstance(what, str | Path) and what not in ready_made_games() else None
    spot = what if isinstance(what, Spot) else _spot_at(path)
    if spot:
        if algorithm:
            raise RunError("a spot has its own algorithm: leave out `algorithm`")
        return _of_spot(spot, path if path and path.is_dir() else None, threads or 1, device)
    if path and path.is_dir():
        if algorithm:
            raise RunError(f"{path} is a run, which has its algorithm: leave out `algorithm`")
        return spec_in(path, {"solver.threads": threads, "solver.device": device})
    config = config_in(what)
    if config is None:
        game = str(what) if isinstance(what, Path) else what
        assert not isinstance(game, Config | Mapping | Spot)
        return WholeSpec(game, algorithm or DEFAULT_ALGORITHM, threads=threads or 1, device=device or CPU)
    changed = {"solver.algorithm": algorithm, "solver.threads": threads, "solver.device": device}
    return spec_of(replaced(config, changed))


def _spot_at(path: Path | None) -> Spot | None:
    """Return the spot that a folder or a file holds, or None if it holds none."""
    if path and path.is_dir() and (path / SPOT).exists():
        require_kept(path)
        return read_spot(path / SPOT, kept=True)
    if path and path.suffix == ".toml" and "pot" in read_toml(path, RunError):
        return read_spot(path)
    return None


def _of_spot(spot: Spot, folder: Path | None, threads: int, device: str | None) -> SpotSpec:
    """Return a spot with the settings of its solver.

    If it has a folder, the algorithm and the device are from there.
    """
    if folder is None:
        return SpotSpec(spot, threads=threads, device=device or CPU)
    begun = RunFolder.open(folder)
    where = device or begun.device
    return SpotSpec(spot, begun.identity.algorithm, threads, where, stored=True, begun=True)
