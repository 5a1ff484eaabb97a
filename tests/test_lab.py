"""Result files of the laboratory, and the pages that are rendered from them."""

import ast
import json
import re
import sys
import tomllib
from pathlib import Path

import markdown
import pytest

from commands import answer, kilt, refused
from kilt.errors import RunError
from kilt_lab import results
from kilt_lab.benchmarks.measure import Figure, optional_peer
from kilt_lab.claims import FAILS, HOLDS
from kilt_lab.cli import reproduce
from kilt_lab.menu import EXPERIMENTS
from kilt_lab.provenance import clone
from kilt_lab.render import (
    BLOCK,
    NOT_RUN,
    QUOTED,
    _command,
    aims,
    by_hand,
    changed,
    claims_of,
    commented,
    met,
    table_of,
)
from kilt_lab.results import (
    EXPERIMENT,
    OBSERVATION,
    TRANSCRIBED,
    Recording,
    Result,
    ResultRow,
    benchmark_result,
    read_result,
    read_results,
    record,
    results_folder,
)

ROOT = Path(__file__).parents[1]
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
MACHINES = r"[AHB][12]00|GH200|L40S?|RTX ?\d{4}|[TV]100|EPYC|Xeon|Ryzen|Threadripper|Core i[3579]|Graviton\d?"
MEASURED = re.compile(
    rf"[+−]?[\d.,]*\d ± [\d.,]*\d|±|\b\d{{1,2}} (?:{MONTHS}) 20\d\d|\b20\d\d-\d\d-\d\d\b|\b(?:{MACHINES})\b"
)
FENCED = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
BY_HAND = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("lab/results/**/*.md")))
    if by_hand(path)
}


def typed(text):
    """The measurements, dates and machines of a page, outside of tables that are rendered and of fenced blocks."""
    return [match[0] for match in MEASURED.finditer(BLOCK.sub("", FENCED.sub("", text)))]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of results of this test alone."""
    monkeypatch.setattr(results, "results_folder", lambda: tmp_path / "results")
    return tmp_path / "results"


def test_pages_are_rendered():
    """`make lab` would change nothing: each table on a page is the one that its result file gives."""
    assert changed(ROOT) == []
    blocks = [
        match for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")] for match in BLOCK.finditer(page.read_text())
    ]
    assert {result.id for result in read_results() if result.kind == results.TABLE} == {block[2] for block in blocks}
    assert sum("±" in match[0] for match in blocks) > 20


def test_a_page_that_was_edited_is_found(tmp_path):
    """A number that was typed into a rendered table is out of date; so is a page that has no result."""
    for name in ("docs", "lab/results"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "README.md").write_text("nothing")
    table = results.Table(("row", "kilt"), (("a", "1.5 ± 0.2"),))
    result = Result(results.TABLE, "page", "numbers", table=table)
    results.write_result(result, tmp_path / "lab" / "results")
    page = tmp_path / "docs" / "page.md"
    page.write_text(f"# Page\n\n<!-- lab table {result.id} -->\n{chr(10).join(table_of(result))}\n<!-- /lab -->\n")
    assert page not in changed(tmp_path)
    page.write_text(page.read_text().replace("1.5", "1.6"))
    assert page in changed(tmp_path)
    page.write_text("<!-- lab table pages/page/other -->\n<!-- /lab -->\n")
    with pytest.raises(RunError, match="shows the result pages/page/other, which lab/results does not have"):
        changed(tmp_path)


def test_measurements_are_recognised():
    page = "PCS comes to 305.1 ± 4.2 mbb/g (18 November 2026, on an H200)."
    assert typed(page) == ["305.1 ± 4.2", "18 November 2026", "H200"]
    assert not typed("Stacks of 200.\n<!-- lab table a/b/c -->\n| 1 ± 2 |\n<!-- /lab -->")


@pytest.mark.parametrize("page", BY_HAND)
def test_measurements_are_not_typed(page):
    """No number with a margin, date or machine stands in a page outside tables that are rendered."""
    assert not typed(BY_HAND[page]), f"{page}: record these with `--record` or `kilt lab record`, and show them"


def test_quoted_verdicts():
    """A verdict that is quoted is that of a claim, in a setting that is not recorded; no page marks it as computed."""
    quoted = tomllib.loads((results_folder() / "quoted.toml").read_text())
    for name, settings in quoted.items():
        for setting, signs in settings.items():
            assert {*signs} <= {*QUOTED} and len(signs) == len(EXPERIMENTS[name].claims), (name, setting)
    found = {result.id: result for result in read_results()}
    for name, settings in quoted.items():
        shown = [setting for _, _, margin, setting in claims_of(name, found, ROOT) if not margin and setting]
        expected = [f"{setting} (quoted)" for setting, signs in settings.items() for sign in signs if sign != "."]
        assert sorted(shown) == sorted(expected), name
    assert {verdict for _, verdict, _, _ in claims_of("table-4.1", found, ROOT)} == {FAILS}
    without_rows = {"": Result(EXPERIMENT, "table-4.1", "default")}
    assert {verdict for _, verdict, _, _ in claims_of("table-4.1", without_rows, ROOT)} == {NOT_RUN}


def test_notes_are_of_what_is_there():
    """Each note is about an experiment or a benchmark, or a comment on a result."""
    benchmarks = {path.stem for path in (ROOT / "lab/kilt_lab/benchmarks").glob("*.py")}
    for note in results_folder().rglob("*.md"):
        known = {"experiments": EXPERIMENTS.keys(), "benchmarks": benchmarks, "results": {"pages"}}
        assert note.with_suffix(".json").exists() or note.stem in known[note.parent.name], note


def test_blocks_are_tables_for_mkdocs():
    """A marker next to a table does not keep Markdown from reading the table, or the text below it."""
    text = "before\n\n<!-- lab table a/b/c -->\n| a | b |\n|---|---|\n| 1 | 2 |\n<!-- /lab -->\n\nafter"
    page = markdown.markdown(text, extensions=["tables"])
    assert page.count("<table>") == 1 and page.count("<td>") == 2 and "<p>after</p>" in page


def test_files_are_as_they_are_written():
    """Each file in the repository reads and writes the same; its name is its place; its origin is known."""
    for path in sorted(results_folder().rglob("*.json")):
        result = read_result(path)
        assert result.to_text() == path.read_text(), path
        assert results_folder() / f"{result.id}.json" == path
        assert result.batches and all(batch.commit for batch in result.batches)
        assert all(batch.origin == TRANSCRIBED or (batch.machine and not batch.dirty) for batch in result.batches)


def test_aims_are_of_figures():
    """No aim is of a figure that no benchmark has; and the code names each figure's key."""
    source = "".join(path.read_text() for path in (ROOT / "lab/kilt_lab/benchmarks").glob("*.py"))
    known: dict[str, set[str]] = {}
    for result in read_results():
        if result.kind == "benchmark":  # one for each setting
            known.setdefault(result.name, set()).update(row.name for row in result.rows)
    for name, those in aims().items():
        assert those.keys() <= known[name], name
    assert '"cold_cpu"' in source
    assert met("flop_seconds", 47, 300) == "yes" and met("flop_seconds", 301, 300) == "**no**"
    assert met("batch", 1, 2) == met("flop_seconds", 1, None) == ""


def test_keys_of_benchmarks_stay():
    """Other programs, and `--against` with older commits, read these keys. A key with braces stands for several."""
    found = {}
    for path in sorted((ROOT / "lab/kilt_lab/benchmarks").glob("*.py")):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call) and node.args]
        keys = [ast.unparse(call.args[0]) for call in calls if getattr(call.func, "id", "") == "Figure"]
        found[path.stem] = {*keys}
    for name, keys in json.loads((ROOT / "tests" / "bench_keys.json").read_text()).items():
        assert {*keys} <= found[name], f"{name} has lost a key"


def test_rounds_of_a_benchmark_join(folder):
    """A second recording adds a batch; the latest batch is shown; a new figure joins, a lost one stays."""
    first = Recording(command="kilt bench start", commit="a", machine="box", date="2026-01-01")
    record(benchmark_result("start", [Figure("a_cpu", "a", 2.0, "CPU s"), Figure("b_cpu", "b", 1.0, "CPU s")], first))
    path = record(benchmark_result("start", [Figure("a_cpu", "a", 4.0, "CPU s")], first._replace(commit="b")))
    found = read_result(path)
    assert path == folder / "benchmarks" / "start" / "box.json"
    assert [batch.commit for batch in found.batches] == ["a", "b"]
    assert found.rows[0].runs == ((0, 2.0, 0), (0, 4.0, 1)) and found.rows[0].latest == 4.0
    assert found.rows[1].latest == 1.0
    assert "| `a_cpu` | a | 4 CPU s | |" in table_of(found)


def test_verdicts_follow_from_rows():
    """Verdicts are not stored: they are those of the command, from the same runs."""
    values = {"cs": (10.0, 11.0, 12.0), "pcs": (3.0, 3.1, 3.2), "opcs": (12.0, 13.0, 14.0)}
    rows = [ResultRow(name, "mbb/g", tuple((n, v, 0) for n, v in enumerate(those))) for name, those in values.items()]
    entry = EXPERIMENTS["figure-3.2"]
    assert entry.claim_list[0].verdict([row.as_row() for row in rows]).verdict == HOLDS
    result = Result(EXPERIMENT, "figure-3.2", "tiny", rows=tuple(rows))
    assert commented("PCS came to {pcs}; that it is below half of CS {claim\n1}.", result) == (
        "PCS came to 3.1 ± 0.2; that it is below half of CS holds."
    )
    with pytest.raises(RunError, match=r"the comment on experiments/figure-3.2/tiny names .spcs."):
        commented("{spcs}", result)


def test_an_experiment_is_recorded(folder):
    out = "--out", folder / "cells"
    kilt("reproduce", "table-4.1", "--only", "1-round", "--record", *out)
    result = read_result(folder / "experiments" / "table-4.1" / "default.json")
    (batch,), (row,) = result.batches, result.rows
    assert batch.command == "kilt reproduce table-4.1 --only=1-round" and batch.origin == "run"
    (printed,) = answer("reproduce", "table-4.1", "--only", "1-round", *out)["rows"]
    assert row.exact and row.as_row().ours == printed["ours"]
    assert batch.cpu_seconds is not None and batch.machine and len(batch.date) == 10


def test_a_recording_says_at_which_commits_cells_were_measured(folder):
    """Cells of another commit are a batch with their own time, whatever this command takes."""
    command = "reproduce", "table-4.1", "--record", "--out", folder / "cells"
    kilt(*command)
    cells = folder / "cells" / "cells.jsonl"
    lines = [json.loads(line) for line in cells.read_text().splitlines()]
    first = lines[0] | {"commit": "abc1234", "seconds": 1e6}
    cells.write_text("".join(json.dumps(line) + "\n" for line in [first, *lines[1:]]))
    kilt(*command)
    earlier, here = read_result(folder / "experiments" / "table-4.1" / "default.json").batches
    assert (earlier.commit, earlier.cpu_seconds, earlier.wall_seconds) == ("abc1234", 1e6, None)
    assert here.commit != "abc1234" and here.cpu_seconds < 1e6


def test_recorded_commands_name_their_setting():
    experiment = EXPERIMENTS["figure-3.2"]
    for asked, name, quick, options in (
        ({}, None, False, ""),
        ({"runs": 7}, None, False, " --runs=7"),
        ({}, "2-4", False, " --setting 2-4"),
        ({"game": experiment.defaults.game}, "2-4", False, f" --setting 2-4 --game={experiment.defaults.game}"),
        ({"only": ("cs",)}, None, True, " --quick --only=cs"),
    ):
        chosen = experiment.setting(reproduce._base(experiment, name, quick=quick), asked)
        assert reproduce._command(experiment, chosen, name, quick=quick) == f"kilt reproduce figure-3.2{options}"
    experiment = EXPERIMENTS["table-7.1"]
    chosen = experiment.setting(experiment.quick, {"threads": 1})
    assert reproduce._command(experiment, chosen, None, quick=True) == "kilt reproduce table-7.1 --quick --threads=1"


def test_an_observation_is_recorded(folder):
    kilt("lab", "record", "sizes", "--setting", "kuhn", "--", "kilt", "game", "size", "kuhn")
    result = read_result(folder / "observations" / "sizes" / "kuhn.json")
    assert result.kind == OBSERVATION and result.data == answer("game", "size", "kuhn")
    assert result.batches[0].command == "kilt game size kuhn --json"
    assert "| `information_sets` | 12 |" in table_of(result)
    assert "nothing is recorded" in refused("lab", "record", "no", "--", "kilt", "game", "size", "no-such-game")
    assert "after two hyphens" in refused("lab", "record", "no", "--", "ls")


def test_status_lists_the_oldest_first():
    listed = answer("lab", "status")
    ages = [each["commits_since"] for each in listed.values() if each["commits_since"] is not None]
    assert ages == sorted(ages, reverse=True) and len(listed) == len(list(results_folder().rglob("*.json")))


def test_files_that_are_none(tmp_path):
    path = tmp_path / "a.json"
    for text, problem in (("{", "is not a result file"), ('{"schema": 9}', "has schema 9: this version .* reads 1")):
        path.write_text(text)
        with pytest.raises(RunError, match=problem):
            read_result(path)


def test_render_in_a_clone():
    assert clone() == ROOT
    assert kilt("lab", "render", "--check").stdout == ""


def test_a_peer_that_is_not_installed_is_named(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert optional_peer("no_such_peer.part", "no-such-peer") is None
    assert capsys.readouterr().err == (
        "no_such_peer is left out (No module named 'no_such_peer'): pip install no-such-peer\n"
    )
    assert optional_peer("math", "math").pi > 3


def test_the_source_of_a_result_is_short():
    """A command that names many rows is printed without their names."""
    rows = " ".join(f"'--only=a row, {k}'" if k % 2 else f"--only=row-{k}" for k in range(5))
    assert _command(f"kilt reproduce figure-6 {rows} --runs=3") == (
        "`kilt reproduce figure-6 --runs=3` with `--only` for 5 rows"
    )
    assert _command("kilt reproduce figure-6 --only=here") == "`kilt reproduce figure-6 --only=here`"
