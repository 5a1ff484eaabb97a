"""Digits of all experiments with budgets of iterations: what each seed came to before the runner measured cells.

`golden_lab.json` was written by the modules that had a loop over seeds each. Settings are small.
"""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from kilt.abstraction.plan import PublicPlan, plan_named
from kilt.games.gamedef import shipped_definitions
from kilt_lab.cells import CellBudget
from kilt_lab.menu import EXPERIMENTS
from kilt_lab.papers.brown15 import algorithm_4, over_time, post_processing
from kilt_lab.papers.johanson16 import chapter_2, chapter_3, chapter_5, chapter_6, chapter_7, chapter_8, chapter_11
from kilt_lab.papers.more import differences, post_processing_safety, public_classes
from kilt_lab.papers.schmid15 import distances, figure_5, flop_classes
from kilt_lab.pieces import logs, ranked_leduc, tilts
from kilt_lab.runner import run

GOLDEN = json.loads((Path(__file__).parent / "golden_lab.json").read_text(encoding="utf-8"))
LIMIT = """GAMEDEF
limit
numPlayers = 2
numRounds = 3
blind = 10 5
raiseSize = 10 10 20
firstPlayer = 2 1 1
maxRaises = 1 1 1
numSuits = 2
numRanks = 4
numHoleCards = 1
numBoardCards = 0 1 1
END GAMEDEF
"""
NO_LIMIT = """GAMEDEF
nolimit
numPlayers = 2
numRounds = 4
stack = 8 8
blind = 2 1
firstPlayer = 2 1 1 1
numSuits = 3
numRanks = 4
numHoleCards = 2
numBoardCards = 0 3 1 1
END GAMEDEF
"""
GAMES = {
    "four rounds": shipped_definitions()["short.4-1"]
    .replace("Ranks = 5", "Ranks = 4")
    .replace("Suits = 4", "Suits = 2")
    .replace("0 3 1 1", "0 1 1 1"),
    "four rounds, 12 cards": shipped_definitions()["short.4-1"]
    .replace("numSuits = 4", "numSuits = 3")
    .replace("Ranks = 5", "Ranks = 4"),
    "six ranks": shipped_definitions()["leduc"].replace("numRanks = 3", "numRanks = 6"),
    "three rounds": shipped_definitions()["holdem.3-1"]
    .replace("numRanks = 13", "numRanks = 3")
    .replace("0 3 1", "0 1 1"),
    "20 cards": shipped_definitions()["holdem.2-1"].replace("numRanks = 13", "numRanks = 5"),
    "limit": LIMIT,
    "no limit": NO_LIMIT,
}
PLANS = "IR-PHS-PHS 5-2-2-2", "IR-PHS-PHS 2-1-1-1", "IR-PHS-PHS 3-2-1-1"
RULES = "none", "purification-after-first", "new-0", "bets-0-1-1", "bets-1-0-0.15"
FAMILY = "bets-1-0-0", "bets-0.2-1-1", "bets-1-0-0.15"
POINTS = [over_time.Checkpoint(9000, times, name) for times in (1, 9) for name in ("A", over_time.DIRECT)]
POINTS.append(POINTS[-1]._replace(rule=over_time.PURE))
MEET = {"ACTIONS": "", "DEALS": 500}
TILTS = {tilts: {"KINDS": ("PHS-PHS",), "FEWEST": 1, "MOST": 2}, chapter_2: {"ITERATIONS": 5, "FIRST": 0, "LAST": 2}}
SOLUTION = logs.Style("IR-PHS-PHS 3-3")
LOGS = {
    logs: {
        "AGENTS": {
            "S2298": SOLUTION,
            "CFR8": logs.Style("IR-PHS-PHS 2-2"),
            "Orange": SOLUTION._replace(tilt=(70, 0, 0, 70)),
        },
        "OPPONENT_STYLE": SOLUTION._replace(tilt=(0, 0, -50, 0)),
    },
    chapter_7: {"HANDS": 60, "DEALS": 256},
    chapter_8: {"DEALS": 10, "MATCHES": 2},
}
SAFETY = post_processing_safety
APART = np.abs(np.random.default_rng(0).random((95, 2))[:, None] - np.random.default_rng(0).random((95, 2))).sum(axis=2)
FEW = {name: (partial(case.exploitability, 2000), "mbb/g") for name, case in differences.CASES.items()}
FEW["in play"] = (partial(differences.won_by_linear, 20_000), "mbb/h")

# By experiment: what is patched, and what is asked for. `rows` takes the place of its rows.
SMALL = {
    "figure-3.2": ({}, {"game": "leduc", "iterations": 400, "runs": 2}),
    "figure-3.5": ({}, {"game": "bluff-1-1", "iterations": 50, "runs": 2}),
    "figure-4.3": ({}, {"game": "leduc", "iterations": 100, "runs": 2}),
    "figure-9.3": ({}, {"game": "leduc", "iterations": 200, "runs": 2}),
    "figure-3.3": (
        {},
        {
            "game": "20 cards",
            "iterations": 60,
            "runs": 2,
            "only": ("2 buckets, cs", "2 buckets, pcs", "5 buckets, pcs"),
        },
    ),
    "figure-3.4": ({chapter_3: {"SMALL": 10}}, {"game": "20 cards", "iterations": 160, "runs": 2}),
    "figure-3.6": ({chapter_3: {"SMALL": 10}}, {"game": "kuhn", "iterations": 160, "runs": 2}),
    "tartanian7-pure": ({}, {"iterations": 500, "runs": 2}),
    "figure-4.4": ({}, {"game": "20 cards", "iterations": 200, "runs": 2, "jobs": 1}),
    "table-5.4-small": (
        {},
        {
            "game": "four rounds, 12 cards",
            "iterations": 200,
            "runs": 1,
            "jobs": 1,
            "only": ("PR-KE-KO 5-3-3-3 both", "PR-KE-KO 5-3-3-3 cfr-br"),
        },
    ),
    "figure-2.5": (TILTS, {"game": "leduc", "runs": 3, "only": ("+7%", "-25%")}),
    "table-2.3": (TILTS, {"game": "leduc", "runs": 2}),
    "figure-2.6": (TILTS, {"game": "leduc", "runs": 3}),
    "table-4.1": ({}, {}),
    "storage": ({}, {}),
    "tartanian7-sizes": ({}, {}),
    "table-2.1": ({}, {"game": "limit", "threads": 1}),
    "figure-4.11": ({}, {"game": "three rounds", "iterations": 100, "threads": 1, "only": ("PR-2",)}),
    "figure-9.4": ({}, {"game": "20 cards", "iterations": 30, "threads": 1}),
    "table-5.3-small": (
        {chapter_5: {"DEALS": 500, "PLANS": PLANS}},
        {"rows": PLANS, "game": "four rounds", "nodes": 2000, "runs": 2},
    ),
    "tartanian7-figure-1": (
        {
            over_time: MEET
            | {
                "LARGE": "IR-PHS-PHS {}-3",
                "SMALL": "IR-PHS-PHS {}-2",
                "OPPONENTS": {"A": "IR-PHS-PHS {}-4"},
                "CLASSES": PublicPlan(2, 3, base="IR-PHS-PHS 6-6", codes=0),
                "LEARNT": 20_000,
                "ROWS": {str(point): point for point in POINTS},
            }
        },
        {"rows": tuple(map(str, POINTS)), "game": "six ranks", "runs": 2},
    ),
    "public-classes": (
        {public_classes: MEET | {"PLAIN": "IR-PHS-PHS {}-4", "INSIDE": "IR-PHS-PHS {}-2", "CLASSES": 2}},
        {"game": "six ranks", "nodes": 20_000, "only": ("schmid, medoids", "schmid, average"), "runs": 2},
    ),
    "tartanian7-bets": (
        {
            post_processing: MEET
            | {
                "FINE_AGENT": "IR-PHS-PHS {}-3",
                "FINE_OPPONENTS": {"A": "IR-PHS-PHS {}-4"},
                "VARIATIONS": ("bets-0-1-1", "bets-1-0-0.15"),
            }
        },
        {"rows": tuple(f"{rule} against A" for rule in RULES), "game": "six ranks", "nodes": 20_000, "runs": 2},
    ),
    "tartanian7-post": (
        {post_processing: {"FAMILY": FAMILY}},
        {"rows": tuple(f"{rule}, rough" for rule in FAMILY), "runs": 2},
    ),
    "tartanian7-algorithm-4": (
        {ranked_leduc: {"DEALS": 2000}},
        {"nodes": 40_000, "only": (*algorithm_4.ROWS[:2], *algorithm_4.ROWS[-2:]), "runs": 2},
    ),
    "differences": (
        {differences: MEET | {"ROWS": FEW, "GAME": "leduc", "CARDS": "IR-PHS-PHS {}-3"}},
        {"rows": tuple(FEW), "runs": 2},
    ),
    "schmid-stud": (
        {distances: {"ITERATIONS": 5}},
        {"only": ("earth mover, 2 classes", "random, 2 classes", "strength, 2 classes", distances.UNSEEN), "runs": 2},
    ),
    "tartanian7-algorithm-3": (
        {flop_classes: {"compared": lambda *_: (None, APART.astype(np.float32))}},
        {"game": "short.nolimit.2p", "runs": 2},
    ),
    "schmid-figure-4": ({flop_classes: {"RESTARTS": 3}}, {"game": "no limit", "threads": 1, "runs": 2}),
    "figure-6.1": ({chapter_6: {"ITERATIONS": 20}}, {"game": "kuhn", "only": ("a", "c"), "runs": 2}),
    "figure-6.2": ({chapter_6: {"ITERATIONS": 20}}, {"game": "kuhn", "only": ("c",), "runs": 2}),
    "resolving": ({}, {"only": tuple(f"two rounds, rough: {way}" for way in ("blueprint", "gadget", "unsafe"))}),
    "figure-11.1": (
        {chapter_11: {"FEWER": 3}},
        {
            "game": "four rounds",
            "iterations": 33,
            "threads": 1,
            "runs": 2,
            "only": ("trunk 2, at first", "trunk 2, in the end", "trunk 3, in the end"),
        },
    ),
    "tartanian7-table-2": (
        {
            post_processing: {
                "HANDS": 200,
                "AGENT": ("IR-PHS-PHS 10-4-4-4", "1x, a"),
                "CLASSES": PublicPlan(2, 3, base="IR-PHS-PHS 10-6-6-6", codes=6),
                "OPPONENTS": {"A": ("IR-PHS-PHS 10-5-5-5", "75%, a"), "B": ("IR-KE-KO 10-6-6-6", "50%, 2x, a")},
            }
        },
        {
            "game": "no limit",
            "iterations": 10_000,
            "threads": 1,
            "runs": 2,
            "only": ("none against A", "new-0.2 against B"),
        },
    ),
    "schmid-figure-5": (
        {
            figure_5: {
                "CLASSES": 2,
                "PACE": 10_000,
                "DEALS": 1000,
                "HANDS": 200,
                "plan_named": lambda name, cards: plan_named(name.replace("169", "10"), cards),
            }
        },
        {"rows": ("6 buckets",), "game": "no limit", "iterations": 10_000, "threads": 1, "runs": 2},
    ),
    **{
        name: (LOGS, {"game": "leduc", "iterations": 500, "threads": 1, "runs": 2})
        for name in ("table-7.1", "table-7.2", "table-7.3", "table-7.4", "table-8")
    },
    "post-processing-safety": (
        {SAFETY: {"HANDS": 100, "DEALS": 5000}},
        {
            "game": "short.nolimit.2p",
            "iterations": 10_000,
            "threads": 1,
            "runs": 1,
            "only": tuple(
                SAFETY.row_name("demo", rule, measure)
                for rule in ("none", "new-0.2")
                for measure in (SAFETY.MATCH, SAFETY.TREE)
            ),
        },
    ),
    "figure-5.2": ({}, {}),
    "schmid-figure-2": ({}, {}),
}


class Quiet:
    """Nobody before the screen."""

    def say(self, text, takes=None):
        """Hear a line."""

    def show(self, what, done, left):
        assert 0 <= done <= 1 and (left is None or left >= 0)

    def stopped(self):
        return False


def small(name, folder, monkeypatch):
    """Patch the modules of an experiment; returns it and the setting that is asked for."""
    patches, asked = SMALL[name]
    for module, values in patches.items():
        for constant, value in values.items():
            monkeypatch.setattr(module, constant, value)
    asked, experiment = dict(asked), EXPERIMENTS[name]
    names = asked.pop("rows", None)
    if names:
        known = {row.name: row for row in experiment.rows}
        derived = [row for row in experiment.rows if row.cases and len(row.cases) > 1 and name.startswith("tartanian7")]
        rows = [known.get(row, experiment.rows[0]._replace(name=row, paper=None)) for row in names]
        experiment = replace(experiment, rows=(*rows, *(row._replace(cases=names) for row in derived)))
    clocks = {clock: asked.pop(clock) for clock in ("iterations", "nodes") if clock in asked}
    if clocks:
        asked["budget"] = CellBudget.of(**clocks)
    if asked.get("game") in GAMES:
        file = folder / f"{asked['game'].replace(' ', '-')}.game"
        file.write_text(GAMES[asked["game"]])
        asked["game"] = str(file)
    setting = experiment.setting({}, asked)
    return experiment, setting._replace(only=()) if names else setting


def test_every_experiment_has_digits():
    """But for those that differ from another one in data alone."""
    assert EXPERIMENTS.keys() - SMALL.keys() == {"figure-4.5", "figure-5.4-small", "table-5.5-small"}
    assert SMALL.keys() == GOLDEN.keys()


# Those that take five seconds or more run in `make test-long`.
LONG = {
    "post-processing-safety",
    "schmid-figure-2",
    "schmid-figure-5",
    "schmid-stud",
    "table-5.4-small",
    "table-7.4",
    "tartanian7-algorithm-4",
    "tartanian7-figure-1",
    "tartanian7-pure",
    "tartanian7-table-2",
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in SMALL])
def test_digits(name, tmp_path, monkeypatch):
    """Each seed comes to what it came to before; a second run measures nothing, and gives the same rows."""
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    experiment, setting = small(name, tmp_path, monkeypatch)
    found = run(experiment, setting, tmp_path / "here", Quiet())
    assert found.complete
    rows = {row.name: row for row in found.rows}
    assert rows.keys() >= GOLDEN[name].keys()
    for row, wanted in GOLDEN[name].items():
        values = list(rows[row].runs) or [rows[row].ours]
        assert values[: len(wanted) if isinstance(wanted, list) else 1] == pytest.approx(
            wanted if isinstance(wanted, list) else [wanted], rel=1e-9, abs=1e-9
        ), row
    monkeypatch.setattr(type(experiment), "measure", None)
    again = run(experiment, setting, tmp_path / "here", Quiet())
    assert again.rows == found.rows and again.complete
    assert (found.picture is None) == (not experiment.picture or not found.picture)
