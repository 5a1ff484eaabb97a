"""Names of strategies in commands and pages, so that every figure states the strategy that it belongs to.

A run has up to two strategies: the one that its solver found, and that strategy after the post-processing with which
its agent plays. A best response can win several times as much from one as from the other.

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
# algorithms whose result is not an average
WITHOUT_AVERAGE = {"cfr+current": CURRENT, "cfr+disk": CURRENT, "lp": EXACT}
AS_PLAYED = "as played"


def solved_name(figures: Mapping[str, Any]) -> str:
    """Name of the strategy that a solver found, from its figures: the average of its iterations, or the last one."""
    return WITHOUT_AVERAGE.get(str(figures.get("algorithm")), AVERAGE)


def strategy_name(rule: Rule, figures: Mapping[str, Any], how: str = AS_PLAYED) -> str:
    """Name of the strategy that a solver found, after a post-processing rule; `how` precedes the rule's name."""
    return solved_name(figures) if rule.idle else f"{how}: {rule.name}"


def played_rule(figures: Mapping[str, Any]) -> Rule:
    """Return the post-processing rule in a run's configuration, from the figures of its strategy."""
    return rule_named(str(figures.get("agent", {}).get("post", "none")))
