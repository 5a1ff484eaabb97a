"""Speeds that were measured before: the numbers of ``paces.toml``, which says where each one comes from.

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
    """Return all sections of the file."""
    return tomllib.loads((Path(__file__).parent / "paces.toml").read_text(encoding="utf-8"))


def pace(section: str, name: str) -> float:
    """Return a number of a section, such as the seconds that a part of some work takes."""
    return float(paces()[section][name])


def curve(section: str, name: str) -> list[tuple[float, float]]:
    """Return the points of a curve: iterations and exploitability in mbb/g, in their order."""
    points = paces()[section][name]
    both = points["iterations"], points["exploitability"]
    if isinstance(both[0], list):
        return list(zip(*both, strict=True))
    return [both]
