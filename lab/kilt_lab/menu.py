"""The menu of experiments.

>>> [row.name for row in EXPERIMENTS["table-2.1"].rows]
['always-fold', 'always-call', 'always-raise', 'call-or-raise']
"""

from __future__ import annotations

from kilt.errors import RunError
from kilt_lab.experiment import Experiment
from kilt_lab.papers.brown15 import algorithm_4, over_time, post_processing, sampling
from kilt_lab.papers.johanson16 import (
    chapter_2,
    chapter_3,
    chapter_4,
    chapter_5,
    chapter_6,
    chapter_7,
    chapter_8,
    chapter_9,
    chapter_11,
)
from kilt_lab.papers.more import differences, post_processing_safety, public_classes, re_solving
from kilt_lab.papers.schmid15 import distances, figure_5, flop_classes

# Each experiment that one of these modules defines, in their order.
_MODULES = (
    *(chapter_2, chapter_3, chapter_4, chapter_5, chapter_6, chapter_7, chapter_8, chapter_9, chapter_11),
    *(algorithm_4, over_time, post_processing, sampling, distances, figure_5, flop_classes),
    *(differences, post_processing_safety, public_classes, re_solving),
)
EXPERIMENTS = {
    known.name: known for module in _MODULES for known in vars(module).values() if isinstance(known, Experiment)
}


def experiment_named(name: str) -> Experiment:
    """Return an experiment of the menu."""
    if name not in EXPERIMENTS:
        raise RunError(f"unknown experiment {name!r}: use one of {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]
