"""Pages from result files: ``make lab`` writes ``docs/lab/*.md``, and the blocks between markers in other pages.

A block begins with ``<!-- lab table ID -->`` and ends with ``<!-- /lab -->``; ID is the path of a result file below
``lab/results``. This module writes the lines between these markers, and a test checks that they are up to date.
A file of the same name that ends in ``.md`` is a comment on a result. In a comment, ``{row}`` is replaced by the value
of a row, and ``{claim 2}`` by the verdict on the second claim. ``experiments/NAME.md`` and ``benchmarks/NAME.md`` are
notes on a whole experiment or benchmark, with blocks like those of other pages. Their links are relative to ``docs``.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from os.path import relpath
from pathlib import Path

from kilt.errors import RunError
from kilt_lab.benchmarks.measure import LESS, MORE, better_of
from kilt_lab.claims import FAILS, HOLDS, OPEN, Claim, Verdict
from kilt_lab.experiment import Experiment
from kilt_lab.menu import EXPERIMENTS
from kilt_lab.results import (
    BENCHMARK,
    EXPERIMENT,
    MINUS,
    OBSERVATION,
    TABLE,
    TRANSCRIBED,
    Recording,
    Result,
    ResultRow,
    read_results,
)

ONLY = re.compile(r" (?:'--only=[^']*'|--only=\S+)")  # one row that a command names
BLOCK = re.compile(r"(<!-- lab table (\S+) -->\n).*?(<!-- /lab -->)", re.DOTALL)
LINK = re.compile(r"\]\(([\w/.-]+\.(?:md|png|svg))")
NOTICE = "<!-- `make lab` writes this page from lab/results: do not edit it. -->\n"
PAPERS = {"Johanson16": "johanson16", "Brown15": "brown15", "Schmid15": "schmid15"}
NOT_RUN = "not run"
QUOTED = {"+": HOLDS, "-": FAILS, "?": OPEN, ".": NOT_RUN}  # the signs of quoted.toml
Results = Mapping[str, Result]  # by id


def pages(root: Path) -> dict[Path, str]:
    """Return the text of each page with rendered parts, by path."""
    results = {result.id: result for result in read_results(root / "lab" / "results")}
    docs = root / "docs"
    lab = docs / "lab"
    rendered = {
        lab / "index.md": _index(results, root),
        lab / "speed.md": _speed(results, root),
        **{lab / f"{stem}.md": _paper(name, stem, results, root) for name, stem in [*PAPERS.items(), ("", "more")]},
    }
    for path in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        if path not in rendered and "<!-- lab table " in (text := path.read_text(encoding="utf-8")):
            rendered[path] = BLOCK.sub(partial(_block, path=path, docs=docs, results=results), text)
    return rendered


def by_hand(page: Path) -> bool:
    """Return whether a page is written by hand, without the notice of rendered pages."""
    return not page.read_text(encoding="utf-8").startswith(NOTICE)


def changed(root: Path) -> list[Path]:
    """Return the pages that `make lab` would change."""
    found = pages(root)
    stale = {path for path in (root / "docs" / "lab").glob("*.md") if path not in found and not by_hand(path)}
    return sorted(stale) + [
        path for path, text in found.items() if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def write(root: Path) -> list[Path]:
    """Write the pages that differ, and return them."""
    differing = changed(root)
    for path, text in pages(root).items():
        if path in differing:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return differing


def _block(match: re.Match[str], path: Path, docs: Path, results: Results) -> str:
    """Return a block of a page, rendered."""
    if match[2] not in results:
        raise RunError(f"{path.name} shows the result {match[2]}, which lab/results does not have")
    table = linked("\n".join(table_of(results[match[2]])), path.parent, docs)
    return match[1] + table + "\n" + match[3]


def linked(text: str, folder: Path, docs: Path) -> str:
    """Return a text with links relative to `folder` in place of links relative to ``docs``.

    >>> linked("[bits](guides/disk.md#bits), [a site](https://example.org)", Path("docs/lab"), Path("docs"))
    '[bits](../guides/disk.md#bits), [a site](https://example.org)'
    """
    return LINK.sub(lambda match: f"]({Path(relpath(docs / match[1], folder)).as_posix()}", text)


def table_of(result: Result) -> list[str]:
    """Return the lines of the table of a result."""
    if result.kind == TABLE and result.table:
        return _table(*result.table)
    if result.kind == BENCHMARK:
        return _table(("key", "what", "result", "aim"), (line[:-1] for line in _compared(result)))
    if result.kind == OBSERVATION:
        return _table(("figure", "value"), ([f"`{key}`", number(value, "")] for key, value in _flat(result.data)))
    rows = [row.as_row() for row in result.rows]
    papers = any(row.paper is not None for row in rows)
    shown = [
        [
            row.name,
            *([("" if row.paper is None else f"{row.paper:,.6g}")] if papers else []),
            row.found().replace("-", MINUS),
            row.unit,
        ]
        for row in rows
    ]
    return _table(("row", *(["paper"] if papers else []), "kilt", "unit"), shown)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    lines = [("| " + " | ".join(row) + " |").replace("|  |", "| |").replace("|  |", "| |") for row in (columns, *rows)]
    return [lines[0], "|" + "---|" * len(columns), *lines[1:]]


def _flat(data: object, before: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a JSON object, with names joined by points."""
    parts = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in parts:
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{before}{key}", value
        else:
            yield from _flat(value, f"{before}{key}.")


def number(value: float | None, unit: str) -> str:
    """Return a number in readable form, with its unit.

    >>> number(25.8e6, "1/s"), number(8192, ""), number(-0.001, "mbb/g"), number(119, "×"), number(None, "s")
    ('25.8 million', '8,192', '−0.001 mbb/g', '119×', '')
    """
    if value is None:
        return ""
    shown = (
        f"{value / 1e6:,.4g} million" if abs(value) >= 1e6 else f"{value:,.0f}" if abs(value) >= 1e3 else f"{value:.4g}"
    )
    shown = shown.replace("-", MINUS)
    return f"{shown}×" if unit == "×" else f"{shown} {unit}".strip() if unit not in ("1/s", "") else shown


@cache
def aims() -> dict[str, dict[str, float]]:
    """Return the aims of benchmarks, by benchmark and key."""
    path = Path(__file__).parent / "benchmarks" / "aims.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _aim(key: str, aim: float | None, unit: str) -> str:
    direction = {MORE: "≥ ", LESS: "≤ "}.get(better_of(key), "")
    return "" if aim is None else direction + number(aim, unit)


def met(key: str, value: float | None, aim: float | None) -> str:
    """Return whether a figure meets its aim: `yes`, `no`, or empty without an aim."""
    if value is None or aim is None or not better_of(key):
        return ""
    return "yes" if (value >= aim if better_of(key) == MORE else value <= aim) else "**no**"


def _compared(result: Result) -> Iterator[list[str]]:
    """Yield the lines of the table of a benchmark: key, subject, result, aim, and whether the aim is met."""
    known = aims().get(result.name, {})
    for row in result.rows:
        aim = known.get(row.name)
        judged = _aim(row.name, aim, row.unit), met(row.name, row.latest, aim)
        yield [f"`{row.name}`", _remarked(row), _value(row), *judged]


def _value(row: ResultRow) -> str:
    """Return the latest value of a figure, with its margin if there is one."""
    shown = number(row.latest, row.unit)
    if row.margin is None:
        return shown
    return f"{number(row.latest, '')} ± {number(row.margin, row.unit)}"


def _remarked(row: ResultRow) -> str:
    note = row.more.get("note", "")
    return f"{row.what}; {note}" if note and row.what else row.what or note


def _origin(batch: Recording) -> str:
    """Return the origin of a batch, in words."""
    if batch.origin == TRANSCRIBED:
        return f"transcribed from {batch.page}, {batch.commit}"
    dirty = ", changed files" if batch.dirty else ""
    return f"{_command(batch.command)}, {batch.commit}{dirty}, {batch.machine}, {batch.date}"


def _command(command: str) -> str:
    """Return a command as code; if it names many rows with `--only`, their number takes the place of their names."""
    rows = ONLY.findall(command)
    return f"`{command}`" if len(rows) <= 2 else f"`{ONLY.sub('', command)}` with `--only` for {len(rows)} rows"


def _speed(results: Results, root: Path) -> str:
    """Return the page of benchmarks, next to their aims."""
    of_all = [result for result in results.values() if result.kind == BENCHMARK]
    lines = [NOTICE, "# Speed", ""]
    lines += [
        "This page shows how fast kilt is, as measured by `kilt bench`. The aims are those of its developers. [Run a "
        "benchmark](../guides/benchmark.md) explains how to run one."
    ]
    verdicts = Counter(
        met(row.name, row.latest, aims().get(result.name, {}).get(row.name)) for result in of_all for row in result.rows
    )
    lines += ["", f"Of {verdicts['yes'] + verdicts['**no**']} aims, {verdicts['yes']} are met."]
    noted = {path.stem for path in (root / "lab" / "results" / "benchmarks").glob("*.md")}
    for name in sorted({result.name for result in of_all} | noted):
        lines += ["", f"## `kilt bench {name}`", "", *_note("benchmarks", name, results, root)]
        for result in (result for result in of_all if result.name == name):
            table = "\n".join(_table(("key", "what", "result", "aim", "met"), _compared(result)))
            lines += ["", linked(table, Path("lab"), Path()), "", _sources(result)]
    return _page(lines)


def _note(kind: str, name: str, results: Results, root: Path) -> list[str]:
    """Return the note on an experiment or a benchmark, for a page in ``docs/lab``; empty if there is none."""
    path, docs = root / "lab" / "results" / kind / f"{name}.md", root / "docs"
    if not path.exists():
        return []
    text = linked(path.read_text(encoding="utf-8").strip(), docs / "lab", docs)
    return [BLOCK.sub(partial(_block, path=docs / "lab" / path.name, docs=docs, results=results), text)]


def _page(lines: Sequence[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def _sources(result: Result) -> str:
    origins = list(dict.fromkeys(map(_origin, result.batches)))
    return f"From: {origins[0]}." if len(origins) == 1 else "\n".join(["From:", "", *(f"- {each}" for each in origins)])


def _paper_of(entry: Experiment) -> str:
    """Return the paper of an experiment; empty for a question of kilt's developers."""
    text = " ".join([entry.what, *(claim.source for claim in entry.claim_list)])
    found = re.search("|".join(PAPERS), text)
    return found[0] if found else ""


def _verdicts(name: str, result: Result) -> list[Verdict]:
    rows = [row.as_row() for row in result.rows]
    return [claim.verdict(rows) for claim in EXPERIMENTS[name].claim_list]


def _of(name: str, results: Results) -> list[Result]:
    return [result for result in results.values() if result.kind == EXPERIMENT and result.name == name]


def _quoted(root: Path) -> dict[str, dict[str, str]]:
    """Return verdicts that commands printed before rows were recorded: by experiment, then by setting, as signs."""
    path = root / "lab" / "results" / "quoted.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def claims_of(name: str, results: Results, root: Path) -> list[tuple[Claim, str, str, str]]:
    """Return (claim, verdict, margin, setting) for each claim of an experiment and each setting that was run.

    Verdicts of recorded settings are computed; those of other settings are the printed ones. A recorded setting without
    rows for a claim is left out.
    """
    rows: list[tuple[Claim, str, str, str]] = []
    recorded = _of(name, results)
    for place, claim in enumerate(EXPERIMENTS[name].claim_list):
        before = len(rows)
        found = [(result.setting, _verdicts(name, result)[place]) for result in recorded]
        for setting, verdict in found:
            if verdict.by:
                margin = f"{verdict.by.low:,.4g} to {verdict.by.high:,.4g}"
                rows.append((claim, verdict.verdict, margin.replace("-", MINUS), setting))
        for setting, signs in _quoted(root).get(name, {}).items():
            if signs[place] != ".":
                rows.append((claim, QUOTED[signs[place]], "", f"{setting} (quoted)"))
        if len(rows) == before:
            rows.append((claim, NOT_RUN, "", ""))
    return rows


def _claim_table(
    names: Iterable[str], results: Results, root: Path, verdicts: Container[str], page: str = ""
) -> list[str]:
    """Return a table of claims with one of the given verdicts, with links to the experiments on a page."""
    rows = [
        [claim.says, f"[{name}]({page}#{anchor(name)})", claim.source, f"**{verdict}**", margin, setting]
        for name in names
        for claim, verdict, margin, setting in claims_of(name, results, root)
        if verdict in verdicts
    ]
    titles = ("claim", "experiment", "source", "verdict", "margin, 95% (above 0: holds)", "setting")
    return _table(titles, rows) if rows else []


def anchor(heading: str) -> str:
    """Return the anchor of a heading.

    >>> anchor("figure-3.2"), anchor("Table 2")
    ('figure-32', 'table-2')
    """
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()))


def _paper(paper: str, stem: str, results: Results, root: Path) -> str:
    """Return the page of a paper: its claims, then each experiment with its method, notes and tables."""
    title = f"[{paper}]" if paper else "Experiments of kilt"
    names = [name for name, entry in EXPERIMENTS.items() if _paper_of(entry) == paper]
    lines = [NOTICE, f"# {title}", ""]
    lines += [
        "This page tests claims by experiment. The table gives a verdict on each claim: it holds, does not hold, or is "
        "not decided. The sections below describe the experiments, and `kilt reproduce NAME` repeats one. [Reproduce a "
        "figure](../guides/reproduce.md) explains verdicts.",
        "",
        "Most verdicts are computed from results in `lab/results`. Those marked *quoted* are copied from the output of "
        "older runs, whose results were not stored.",
        "",
        "Winnings and exploitability are in mbb/g or mbb/h, thousandths of a big blind per game or per hand. A number "
        "after ± is the margin of a 95% interval. The [glossary](../concepts/glossary.md) explains the terms.",
        "",
        *_claim_table(names, results, root, {*QUOTED.values()}),
    ]
    for name in names:
        entry = EXPERIMENTS[name]
        source = [f"- **Source:** {entry.source}"] if entry.source else []
        lines += ["", f"## {name}", "", *source, f"- **Subject:** {entry.title}", f"- **Time:** {entry.takes()}", ""]
        lines += _method(entry)
        lines += _note("experiments", name, results, root)
        for result in _of(name, results):
            lines += ["", f"### {name}, {result.setting}", "", *table_of(result), "", _sources(result)]
            comment = root / "lab" / "results" / f"{result.id}.md"
            if comment.exists():
                lines += ["", commented(comment.read_text(encoding="utf-8").strip(), result)]
    return _page(lines)


def _method(entry: Experiment) -> list[str]:
    """Return the method of an experiment: the docstring of its class without the first line."""
    _, _, text = (inspect.getdoc(type(entry)) or "").partition("\n\n")
    return [text.replace("``", "`"), ""] if text else []


def commented(text: str, result: Result) -> str:
    """Return a comment on a result with numbers in place of their names. Raises `RunError` for an unknown name."""
    known = {row.name: row.as_row().found().replace("-", MINUS) for row in result.rows}
    if result.name in EXPERIMENTS:
        verdicts = _verdicts(result.name, result)
        known |= {f"claim {place}": verdict.verdict for place, verdict in enumerate(verdicts, 1)}

    def value(match: re.Match[str]) -> str:
        name = " ".join(match[1].split())  # it may continue on the next line
        if name not in known:
            raise RunError(f"the comment on {result.id} names {name!r}: use one of {', '.join(known)}")
        return known[name]

    return re.sub(r"\{([^{}]+)\}", value, text)


def _index(results: Results, root: Path) -> str:
    """Return the index page: counts of claims by verdict, and all claims that do not hold or are not decided."""
    lines = [NOTICE, "# Laboratory", ""]
    lines += [
        "The laboratory repeats experiments of papers with kilt, and tests whether the papers' claims hold. It also "
        "measures kilt's speed. The tables come from files in `lab/results`, which record the command, commit, machine "
        "and date of each measurement.",
        "",
        "The table counts the claims of each paper that hold, do not hold, are not decided, or were not tested. A "
        "claim that was tested in several settings counts once for each setting.",
        "",
    ]
    by_paper = {
        stem: [name for name, entry in EXPERIMENTS.items() if _paper_of(entry) == paper]
        for paper, stem in [*PAPERS.items(), ("", "more")]
    }
    rows = []
    for (paper, stem), names in zip([*PAPERS.items(), ("", "more")], by_paper.values(), strict=True):
        found = Counter(verdict for name in names for _, verdict, _, _ in claims_of(name, results, root))
        counts = [str(found[verdict]) for verdict in QUOTED.values()]
        rows.append([f"[{paper or 'Experiments of kilt'}]({stem}.md)", *counts])
    lines += _table(("paper", *QUOTED.values()), rows)
    lines += ["", *_note(".", "pages", results, root)]
    for title, verdict in (("What does not hold", FAILS), ("What is not decided", OPEN)):
        lines += ["", f"## {title}"]
        for stem, names in by_paper.items():
            lines += ["", *_claim_table(names, results, root, {verdict}, f"{stem}.md")]
    return _page(lines)
