"""Read measured speeds from ``paces.toml``, which are used to estimate times.

The file says where each number comes from.

>>> pace("disk", "read") < pace("disk", "walk")
True
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def paces() -> dict[str, Any]:
    """Return all sections of ``paces.toml``."""
    return tomllib.loads((Path(__file__).parent / "paces.toml").read_text(encoding="utf-8"))


def pace(section: str, name: str) -> float:
    """Return a measured speed, such as the seconds per step, from ``paces.toml``."""
    return float(paces()[section][name])


def curve(section: str, name: str) -> list[tuple[float, float]]:
    """Return a measured convergence curve as pairs of iterations and exploitability in mbb/g."""
    points = paces()[section][name]
    both = points["iterations"], points["exploitability"]
    if isinstance(both[0], list):
        return list(zip(*both, strict=True))
    return [both]
