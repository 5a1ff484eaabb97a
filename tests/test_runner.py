"""The runner of experiments: cells are kept one by one, whatever ends a run, and only missing ones are measured."""

import json
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from commands import answer, kilt, refused
from kilt.artifact import exclusive_access
from kilt.errors import ArtifactError
from kilt_lab import runner
from kilt_lab.cells import Cell, CellBudget, RowSpec, Setting, changes, rows
from kilt_lab.claims import contrast, higher
from kilt_lab.experiment import SHARED, Experiment, Lab
from kilt_lab.menu import EXPERIMENTS
from kilt_lab.runner import CELLS, run
from test_lab_digits import SMALL, Quiet, small


@dataclass(frozen=True)
class Counted(Experiment):
    """An experiment that takes no time: a cell is worth ten times its place, and its seed."""

    def measure(self, case, seed, lab):
        lab.check()
        fresh = lab.shared("of the seed", lambda: [seed])
        made = lab.shared("of all", list, per="experiment")
        made.append(case)
        if case == "both":
            return Cell({"one": 1.0 + seed, "other": 2.0 + seed})
        if case == "exact":
            return Cell({"exact": 7.0}, exact=True)
        return Cell({case: 10.0 * fresh[0]}, more={"seed": seed})

    def derive(self, found, measured):
        if {"one", "other"} <= found.keys():
            yield replace_row(found["one"], "sum", found["one"].ours + found["other"].ours)


def replace_row(row, name, ours):
    return row._replace(name=name, ours=ours)


COUNTED = Counted(
    "counted",
    "[Nobody26]",
    "numbers",
    rows=(
        *rows(("one", "other"), "", cases=("both",)),
        *rows(("exact", "alone"), "", paper={"exact": 8.0}, where="elsewhere"),
        RowSpec("sum", "", cases=("both",), groups=("totals",)),
    ),
    claims={"other is above one": higher("other", "one"), "exact": ("[Other26]", contrast({"exact": 1.0}))},
    defaults=Setting(runs=3),
)


class Watcher(Quiet):
    """Stops after so many cells; counts them."""

    def __init__(self, looks=10**9):
        self.looks, self.lines = looks, []

    def say(self, text, takes=None):
        self.lines.append(text)

    def stopped(self):
        self.looks -= 1
        return self.looks < 0


def lines_of(folder):
    return (folder / CELLS).read_text().splitlines()


def measured(found):
    """Rows without the time that they took, which differs from run to run."""
    return [row._replace(seconds=0) for row in found.rows]


def test_cells_become_rows(tmp_path):
    """A mean over seeds; nothing that is exact is measured twice; the paper's number for another game stands apart."""
    found = run(COUNTED, COUNTED.defaults, tmp_path, Watcher())
    by_name = {row.name: row for row in found.rows}
    assert by_name["one"].runs == (1.0, 2.0, 3.0) and by_name["one"].seeds == (0, 1, 2)
    assert (by_name["exact"].margin, by_name["exact"].runs, by_name["exact"].paper) == (None, (), None)
    assert by_name["exact"].more == {"paper_elsewhere": 8.0, "where": "elsewhere"}
    assert by_name["sum"].ours == 5.0
    assert len(lines_of(tmp_path)) == 3 + 1 + 3
    assert [(one.verdict, one.source) for one in found.verdicts] == [("holds", "[Nobody26]"), ("holds", "[Other26]")]


def test_more_seeds_and_other_rows_measure_what_is_missing(tmp_path):
    few = COUNTED.setting({}, {"runs": 1, "only": ("one",)})
    run(COUNTED, few, tmp_path, Watcher())
    assert [json.loads(line)["case"] for line in lines_of(tmp_path)] == ["both"]
    watcher = Watcher()
    found = run(COUNTED, COUNTED.setting({}, {"only": ("one", "totals", "alone"), "runs": 2}), tmp_path, watcher)
    assert [row.name for row in found.rows] == ["one", "alone", "sum"]
    assert len(lines_of(tmp_path)) == 1 + 4  # with another row, a cell is asked for again; the other row stays in it
    assert "1 cells were measured before" in watcher.lines[0] and "4 are missing" in watcher.lines[0]
    run(COUNTED, COUNTED.setting({}, {"only": ("one",), "runs": 2}), tmp_path, Watcher(), again=True)
    assert len(lines_of(tmp_path)) == 1 + 4 + 2


@pytest.mark.parametrize("cells", range(8))
def test_a_run_that_is_stopped_loses_one_cell(tmp_path, cells):
    """Whichever cell it is, what was measured is there, and the rest gives the rows of an unbroken run."""
    whole = run(COUNTED, COUNTED.defaults, tmp_path / "whole", Watcher())
    broken = run(COUNTED, COUNTED.defaults, tmp_path / "broken", Watcher(looks=2 * cells))
    assert broken.complete == (cells >= 7)
    assert len(lines_of(tmp_path / "broken")) == min(cells, 7) if cells else not (tmp_path / "broken" / CELLS).exists()
    assert measured(run(COUNTED, COUNTED.defaults, tmp_path / "broken", Watcher())) == measured(whole)


@pytest.mark.parametrize("left", [0, 1, 20, -1])
def test_a_torn_last_line_is_no_cell(tmp_path, left):
    """As a machine leaves the file that goes down: the cell is measured again, and the line after it is whole."""
    whole = run(COUNTED, COUNTED.defaults, tmp_path, Watcher())
    *before, last = lines_of(tmp_path)
    (tmp_path / CELLS).write_text("\n".join(before) + "\n" + last[:left])
    again = run(COUNTED, COUNTED.defaults, tmp_path, Watcher())
    assert measured(again) == measured(whole)
    assert json.loads(lines_of(tmp_path)[-1]) | {"seconds": 0} == json.loads(last) | {"seconds": 0}


def test_settings_keep_their_cells_apart(tmp_path):
    """Another game, budget or device has cells of its own, and a game's file is told by its content."""
    experiment = replace(COUNTED, defaults=Setting("leduc", CellBudget.of(seconds=1), 1, "cpu"))
    game = tmp_path / "own.game"
    for text, asked in (
        ("a", {}),
        ("a", {"budget": CellBudget.of(seconds=2)}),
        ("a", {"game": str(game)}),
        ("b", {"game": str(game)}),
    ):
        game.write_text(text)
        setting = experiment.defaults._replace(**asked)
        run(experiment, setting, tmp_path / "here", Watcher())
    keys = {json.dumps(json.loads(line)["key"]) for line in lines_of(tmp_path / "here")}
    assert len(keys) == 4 and len(lines_of(tmp_path / "here")) == 4 * 3


# A process of its own, which is killed: the experiment that it measures is one of the menu.
CHILD = """
import os, signal, sys
from kilt_lab import runner
kill, at, when = sys.argv.pop(1), int(sys.argv.pop(1)), sys.argv.pop(1)
add, count = runner.Store.add, 0
def adding(self, case, cell):
    global count
    if when == "in the middle" and count == at:
        os.kill(os.getpid(), signal.SIGKILL)  # the cell was measured, and is not kept
    add(self, case, cell)
    count += 1
    if when == "between" and count == at:
        os.kill(os.getpid(), getattr(signal, kill))
runner.Store.add = adding
import kilt.cli
kilt.cli.main()
"""


@pytest.mark.parametrize(
    ("kill", "when"), [("SIGKILL", "between"), ("SIGKILL", "in the middle"), ("SIGINT", "between")]
)
def test_a_process_that_is_killed_goes_on(tmp_path, kill, when):
    """`kill -9` and Ctrl-C, after a cell and inside one: no cell is measured again, and all digits are the same."""
    out = tmp_path / "here"
    command = ["reproduce", "tartanian7-pure", "--iterations", 200, "--runs", 3]
    command += ["--only", "external on kuhn", "--only", "pure on kuhn"]
    code = [sys.executable, "-c", CHILD, kill, 3, when, *command, "--json", "--out", out]
    done = subprocess.run(list(map(str, code)), capture_output=True, text=True, check=False)
    assert done.returncode == (130 if kill == "SIGINT" else -signal.SIGKILL), done.stderr
    before = lines_of(out)
    assert len(before) == 3
    found = answer(*command, "--out", out)["rows"]
    assert lines_of(out)[:3] == before and len(lines_of(out)) == 6
    whole = answer(*command, "--out", tmp_path / "whole")["rows"]
    assert [row["runs"] for row in found] == [row["runs"] for row in whole]


@pytest.mark.parametrize("name", SMALL)
def test_every_experiment_stops_between_cells(name, tmp_path, monkeypatch):
    """Ctrl-C before the first cell of any experiment: nothing is printed, nothing is lost, and it is not complete."""
    monkeypatch.chdir(tmp_path)
    experiment, setting = small(name, tmp_path, monkeypatch)
    found = run(experiment, setting, tmp_path / "here", Watcher(looks=0))
    assert (found.rows, found.complete) == ([], False)
    assert not (tmp_path / "here" / CELLS).exists()


def test_jobs_measure_the_same(tmp_path):
    """Cells on several processes are those of one; what a process has measured is kept as soon as it is."""
    command = ["reproduce", "tartanian7-pure", "--iterations", 200, "--runs", 2, "--only", "external on kuhn"]
    command += ["--only", "pure on kuhn"]
    one = answer(*command, "--out", tmp_path / "one")["rows"]
    two = answer(*command, "--jobs", 2, "--out", tmp_path / "two")["rows"]
    assert [row["runs"] for row in one] == [row["runs"] for row in two]
    assert sorted(json.loads(line).get("seed", 0) for line in lines_of(tmp_path / "two")) == [0, 0, 1, 1]


def test_workers_skip_what_is_exact(tmp_path, monkeypatch):
    """A worker measures no other seed of a case that another process has found to be exact, except for --again."""
    experiment = EXPERIMENTS["figure-9.3"]
    setting = experiment.setting({}, {"game": "kuhn", "budget": CellBudget.of(iterations=2), "only": ("cfr+",)})
    assert run(experiment, setting, tmp_path, Quiet(), jobs=False).complete
    for again, count in ((False, 1), (True, 2)):
        monkeypatch.setattr(runner, "_working", [experiment, setting, tmp_path, Quiet(), again])
        runner._work([("cfr+", 1)])
        assert len(lines_of(tmp_path)) == count


def test_jobs_wait_for_files_that_they_share(tmp_path):
    """Other processes wait while one makes files that all of them read."""
    lab = Lab(COUNTED, COUNTED.defaults, tmp_path, Quiet())

    def locked(name):
        with pytest.raises(ArtifactError, match="another process is at work on"), exclusive_access(lab.folder / SHARED):
            pass
        return name

    assert lab.shared("files", lambda: locked("made"), per="experiment", alone=True) == "made"
    with exclusive_access(lab.folder / SHARED):  # nobody waits for what is there, or for other objects
        assert lab.shared("files", lambda: "again", per="experiment", alone=True) == "made"
        assert lab.shared("number", lambda: 1) == 1
    command = ["tartanian7-algorithm-4", "--nodes", 1000, "--runs", 2, "--only", "3 classes, as printed", "--jobs", 2]
    assert len(answer("reproduce", *command, "--out", tmp_path / "two")["rows"][0]["runs"]) == 2


def test_two_processes_at_one_folder(tmp_path):
    """A second one is refused while the first is at work."""

    @dataclass(frozen=True)
    class Within(Counted):
        def measure(self, case, seed, lab):
            with pytest.raises(ArtifactError, match="another process is at work on"):
                run(COUNTED, COUNTED.defaults, tmp_path / "here", Watcher())
            return super().measure(case, seed, lab)

    within = Within(**vars(COUNTED))
    assert run(within, COUNTED.setting({}, {"runs": 1}), tmp_path / "here", Watcher()).complete


def test_an_experiment_of_pure_data(tmp_path):
    """The guide's example has fifteen lines at most with its imports, and runs; a named setting changes it."""
    guide = Path(__file__).parents[1] / "docs" / "guides" / "reproduce.md"
    (code,) = re.findall(r"^```python\n(.*?)^```", guide.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(code.splitlines()) <= 15
    names = {}
    exec(code, names)
    figure = names["FIGURE_0"]
    found = run(figure, figure.setting(figure.quick, {"budget": CellBudget.of(iterations=500)}), tmp_path, Quiet())
    assert [one.verdict for one in found.verdicts] == ["holds"] and found.picture
    named = replace(figure, settings={"small": changes(game="kuhn")})
    assert named.setting(named.settings["small"], {}).game == "kuhn"


def test_the_menu_names_each_experiment_once():
    assert all(name == experiment.name for name, experiment in EXPERIMENTS.items()) and len(EXPERIMENTS) == 46
    for experiment in EXPERIMENTS.values():
        names = [row.name for row in experiment.rows]
        assert len({*names}) == len(names)
        experiment.setting(experiment.quick, {})
        for settings in experiment.settings.values():
            experiment.setting(settings, {})


def test_records_have_the_commits_of_their_cells(tmp_path, monkeypatch):
    """A result names each commit at which cells were measured, not the last one alone."""
    from kilt_lab import results

    monkeypatch.setattr(results, "results_folder", lambda: tmp_path / "results")
    command = "reproduce", "tartanian7-sizes", "--out", tmp_path / "cells"
    kilt(*command)
    path = tmp_path / "cells" / CELLS
    first, rest = path.read_text().split("\n", 1)
    path.write_text(first.replace('"commit": "', '"commit": "0') + "\n" + rest)
    kilt(*command, "--record")
    found = results.read_result(tmp_path / "results" / "experiments" / "tartanian7-sizes" / "default.json")
    assert len(found.batches) == 2 and found.batches[0].commit.startswith("0")
    assert "no name is given" in refused("reproduce", "--record")
