"""Published tables and figures, found again: a module for each. `REPRODUCTIONS` is the menu.

>>> REPRODUCTIONS["table-2.1"].rows
('always-fold', 'always-call', 'always-raise', 'call-or-raise')
"""

from __future__ import annotations

from kilt.errors import RunError
from kilt_lab.reproduce import (
    algorithm_4,
    differences,
    figure_2_6,
    figure_3_2,
    figure_3_3,
    figure_3_4,
    figure_3_5,
    figure_4_4,
    figure_4_11,
    figure_5_2,
    figure_6,
    figure_9_3,
    figure_9_4,
    figure_11_1,
    fine_bets,
    flop_classes,
    post_processing_safety,
    postprocessing,
    public_classes,
    resolving,
    sampling,
    schmid_figure_5,
    schmid_stud,
    storage,
    table_2_1,
    table_4_1,
    table_5_3,
    table_5_4,
    table_7,
    table_8,
    tartanian7_figure_1,
    tartanian7_sizes,
    tartanian7_table_2,
    tilts,
)
from kilt_lab.reproduce.reproduction import Reproduction

REPRODUCTIONS: dict[str, Reproduction] = {
    "table-2.1": table_2_1.TABLE,
    "table-2.3": tilts.TABLE_2_3,
    "figure-2.5": tilts.FIGURE_2_5,
    "figure-2.6": figure_2_6.FIGURE,
    "figure-3.2": figure_3_2.FIGURE,
    "figure-3.3": figure_3_3.FIGURE,
    "figure-3.4": figure_3_4.FIGURE_3_4,
    "figure-3.5": figure_3_5.FIGURE,
    "figure-3.6": figure_3_4.FIGURE_3_6,
    "table-4.1": table_4_1.TABLE,
    "figure-4.3": sampling.FIGURE_4_3,
    "figure-4.4": figure_4_4.FIGURE,
    "figure-4.5": figure_4_4.FIGURE_4_5,
    "figure-4.11": figure_4_11.FIGURE,
    "figure-5.2": figure_5_2.FIGURE,
    **figure_6.FIGURES,
    "schmid-figure-2": figure_5_2.SCHMID,
    "schmid-figure-4": flop_classes.SCHMID,
    "schmid-figure-5": schmid_figure_5.FIGURE,
    "schmid-stud": schmid_stud.TABLE,
    "table-5.3-small": table_5_3.TABLE,
    "table-5.4-small": table_5_4.TABLE,
    "figure-5.4-small": table_5_4.FIGURE_5_4,
    "table-5.5-small": table_5_4.TABLE_5_5,
    "table-7.1": table_7.TABLE_7_1,
    "table-7.2": table_7.TABLE_7_2,
    "table-7.3": table_7.TABLE_7_3,
    "table-7.4": table_7.TABLE_7_4,
    "table-8": table_8.TABLE,
    "figure-9.3": figure_9_3.FIGURE,
    "figure-9.4": figure_9_4.FIGURE,
    "figure-11.1": figure_11_1.FIGURE,
    "storage": storage.TABLE,
    "public-classes": public_classes.TABLE,
    "differences": differences.TABLE,
    "tartanian7-figure-1": tartanian7_figure_1.FIGURE,
    "tartanian7-table-2": tartanian7_table_2.TABLE,
    "tartanian7-bets": fine_bets.TABLE,
    "tartanian7-algorithm-3": flop_classes.PRINTED,
    "tartanian7-algorithm-4": algorithm_4.TABLE,
    "tartanian7-post": postprocessing.TABLE,
    "tartanian7-pure": sampling.PURE,
    "tartanian7-sizes": tartanian7_sizes.TABLE,
    "post-processing-safety": post_processing_safety.TABLE,
    "resolving": resolving.TABLE,
}


def reproduction_named(name: str) -> Reproduction:
    """An entry of the menu."""
    if name not in REPRODUCTIONS:
        raise RunError(f"unknown reproduction {name!r}: use one of {', '.join(REPRODUCTIONS)}")
    return REPRODUCTIONS[name]
