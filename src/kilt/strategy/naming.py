"""What commands and pages call a strategy, so that every figure says which one it is about.

A run has up to two: the strategy that its solver found, and that strategy after the post-processing by which its agent
plays. A best response can win several times as much from one as from the other.

>>> strategy_name(rule_named("new-0.2"), {"algorithm": "external"})
'as played: new-0.2'
>>> strategy_name(rule_named("none"), {"algorithm": "cfr+disk"})
'current strategy'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kilt.strategy.postprocess import Rule, rule_named

AVERAGE, CURRENT, EXACT = "average strategy", "current strategy", "exact strategy"
WITHOUT_AVERAGE = {"cfr+current": CURRENT, "cfr+disk": CURRENT, "lp": EXACT}  # algorithms whose result is no average
AS_PLAYED = "as played"


def solved_name(figures: Mapping[str, Any]) -> str:
    """The strategy that a solver found, by the figures beside it: the average of its iterations, or the last one."""
    return WITHOUT_AVERAGE.get(str(figures.get("algorithm")), AVERAGE)


def strategy_name(rule: Rule, figures: Mapping[str, Any], how: str = AS_PLAYED) -> str:
    """The strategy that a solver found, or its name after a rule, with `how` before the rule."""
    return solved_name(figures) if rule.idle else f"{how}: {rule.name}"


def played_rule(figures: Mapping[str, Any]) -> Rule:
    """The post-processing that the configuration of a run asks for, by the figures beside its strategy."""
    return rule_named(str(figures.get("agent", {}).get("post", "none")))
