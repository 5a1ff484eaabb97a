"""Name the strategies of a run, so that each result says which one was evaluated.

A run has up to two strategies: the one that its solver found, and the one that its agent plays, after post-processing.
A best response can win several times as much from one as from the other.

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
    """Return the name of a solver's strategy, such as ``average strategy``.

    `figures` are those that the solver has saved with the strategy.

    Most algorithms return the average of their iterations; others return the last iterate or an exact solution.
    """
    return WITHOUT_AVERAGE.get(str(figures.get("algorithm")), AVERAGE)


def strategy_name(rule: Rule, figures: Mapping[str, Any], how: str = AS_PLAYED) -> str:
    """Return the name of a strategy after post-processing, such as ``as played: new-0.2``.

    `how` comes before the name of the rule. A rule that changes nothing is left out of the name.
    """
    return solved_name(figures) if rule.idle else f"{how}: {rule.name}"


def played_rule(figures: Mapping[str, Any]) -> Rule:
    """Return the post-processing rule with which a run's agent plays.

    `figures` are those that the solver has saved with the strategy.
    """
    return rule_named(str(figures.get("agent", {}).get("post", "none")))
