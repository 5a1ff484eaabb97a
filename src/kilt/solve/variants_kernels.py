"""The compiled rule that discounts regrets: what `variants` has a row of numbers for."""

from __future__ import annotations

from typing import Any

from kilt.jit import inlined


@inlined
def discounted(total: Any, above: Any, below: Any) -> Any:
    """Multiply a sum of regrets by `above` where it is positive, and by `below` elsewhere."""
    return total * (above if total > 0 else below)
