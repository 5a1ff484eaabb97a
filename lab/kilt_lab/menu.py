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

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        chapter_2.TABLE_2_1,
        chapter_2.TABLE_2_3,
        chapter_2.FIGURE_2_5,
        chapter_2.FIGURE_2_6,
        chapter_3.FIGURE_3_2,
        chapter_3.FIGURE_3_3,
        chapter_3.FIGURE_3_4,
        chapter_3.FIGURE_3_5,
        chapter_3.FIGURE_3_6,
        chapter_4.TABLE_4_1,
        chapter_4.FIGURE_4_3,
        chapter_4.FIGURE_4_4,
        chapter_4.FIGURE_4_5,
        chapter_4.FIGURE_4_11,
        chapter_5.FIGURE_5_2,
        chapter_6.FIGURE_6_1,
        chapter_6.FIGURE_6_2,
        distances.FIGURE_2,
        flop_classes.FIGURE_4,
        figure_5.FIGURE_5,
        distances.STUD,
        chapter_5.TABLE_5_3,
        chapter_5.TABLE_5_4,
        chapter_5.FIGURE_5_4,
        chapter_5.TABLE_5_5,
        chapter_7.TABLE_7_1,
        chapter_7.TABLE_7_2,
        chapter_7.TABLE_7_3,
        chapter_7.TABLE_7_4,
        chapter_8.TABLE_8,
        chapter_9.FIGURE_9_3,
        chapter_9.FIGURE_9_4,
        chapter_11.FIGURE_11_1,
        chapter_9.STORAGE,
        public_classes.TABLE,
        differences.TABLE,
        over_time.FIGURE_1,
        post_processing.TABLE_2,
        post_processing.FINE_BETS,
        flop_classes.ALGORITHM_3,
        algorithm_4.ALGORITHM_4,
        post_processing.EXACT_RULES,
        sampling.PURE_CFR,
        sampling.SIZES,
        post_processing_safety.TABLE,
        re_solving.TABLE,
    )
}


def experiment_named(name: str) -> Experiment:
    """Return an experiment of the menu."""
    if name not in EXPERIMENTS:
        raise RunError(f"unknown experiment {name!r}: use one of {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]
