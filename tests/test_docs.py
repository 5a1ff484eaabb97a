"""The documentation: what its blocks of code say is what happens.

A block of Python is run. A block of console whose commands show what they print is run too, in a folder of its page,
and what is printed has to be what is shown: `…` stands for anything, and seconds, minutes and speeds may be others.
Console blocks that show nothing are a list of what one could type: each command has to exist, with its options.
`<!-- not run: WHY -->` before a block asks for no more than that, `<!-- run -->` for a run where nothing is shown.
A block with a title is a file that the reader writes.
"""

import ast
import doctest
import json
import re
import shlex
import tomllib
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple

import formulae
import make_notebooks
import make_pictures
import pytest
from make_notebooks import FENCE
from typer.testing import CliRunner

import kilt
from commands import check_command
from kilt.cli import app
from kilt.errors import KiltError
from test_layers import LAYERS

ROOT = Path(__file__).parents[1]
SOURCE = Path(kilt.__file__).parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
KINDS = {"", "console", "pycon", "python", "text", "toml"}

# Programs that are not ours and not on every machine: what is typed there is not looked at.
FOREIGN = {"cp", "docker", "export", "git", "kubectl", "openssl", "pip", "ray", "sbatch", "ssh", "tail", "umask", "."}
VOLATILE = re.compile(r"[\d.,:]+(?= (?:ms|s|µs|min|seconds|minutes|iterations a second|million nodes)\b)")
# What says how far a slow machine is.
PROGRESS = re.compile(r"^(?:\d+:\d\d · |compil(?:ing|ed) kernels).*\n", re.MULTILINE)
BOXES = str.maketrans(dict.fromkeys(map(chr, range(0x2500, 0x2580)), " "))


class Block(NamedTuple):
    """A fenced block of a page."""

    page: Path
    line: int
    mark: str  # "run", "not run", or nothing
    kind: str
    title: str  # the name of a file that the reader writes, or nothing
    text: str

    @property
    def commands(self):
        """What is typed, with what is shown below it."""
        found = []
        for line in self.text.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)  # a block begins with a command
        return [(typed, "\n".join(shown).strip()) for typed, shown in found]

    @property
    def shown(self):
        return self.mark == "run" or (self.mark != "not run" and any(shown for _, shown in self.commands))

    def __str__(self):
        return f"{self.page.name}:{self.line}"


def blocks_of(page):
    text = page.read_text()
    return [
        Block(page, text[: match.start()].count("\n") + 1, match[1] or "", match[2], match[3] or "", match[4])
        for match in FENCE.finditer(text)
    ]


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
CONSOLES = [block for block in BLOCKS if block.kind == "console"]
RUN = [
    page
    for page in PAGES
    if any(b.kind in ("python", "pycon") or (b.kind == "console" and b.shown) for b in blocks_of(page))
]


def plain(text):
    """Words only: how wide a table is drawn does not matter."""
    return " ".join(text.translate(BOXES).split())


def agree(shown, printed):
    """Whether what was printed is what a page shows."""
    parts = [VOLATILE.sub("0", part) for part in plain(shown).split("…")]
    pattern = ".*".join(re.escape(part.strip()) for part in parts)
    return re.fullmatch(pattern, VOLATILE.sub("0", plain(printed)), re.DOTALL)


def run_kilt(typed):
    """Run a command in this process; what a terminal would show."""
    typed, _, target = typed.partition(" > ")
    result = CliRunner().invoke(app, shlex.split(typed, comments=True)[1:])
    if target:
        Path(target.partition("#")[0].strip()).write_text(result.stdout)
        return PROGRESS.sub("", result.stderr)
    if isinstance(result.exception, KiltError):
        return f"error: {result.exception}"
    assert result.exception is None or isinstance(result.exception, SystemExit), (typed, result.exception)
    return PROGRESS.sub("", result.output)


def look_at(typed):
    """See that a command exists, with its options; it is not run."""
    program = shlex.split(typed.partition("#")[0] or typed)[0].lstrip("(")
    if program == "kilt":
        check_command(typed.partition(" > ")[0])
    elif program == "make":
        (target,) = shlex.split(typed, comments=True)[1:]
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), typed
    elif program.startswith("deploy/"):
        assert (ROOT / program).exists(), typed
    else:
        assert program in FOREIGN or program.startswith("./"), f"{typed}: what is {program}?"


@pytest.mark.parametrize("block", CONSOLES, ids=str)
def test_commands_exist(block):
    for typed, _ in block.commands:
        look_at(typed)


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_page(page, tmp_path, monkeypatch, capsys):
    """Run the blocks of a page one after another, in one folder and one namespace."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__page__"}
    for block in blocks_of(page):
        if block.title:
            Path(block.title).write_text(block.text)
        elif block.kind == "console" and block.shown:
            for typed, shown in block.commands:
                printed = run_kilt(typed)
                assert agree(shown, printed), f"{block}: {typed}\n{printed}"
        elif block.kind == "pycon":
            test = doctest.DocTestParser().get_doctest(block.text, names, str(block), str(page), block.line)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            runner.run(test, clear_globs=False)
            names.update(test.globs)
            assert not runner.failures, capsys.readouterr().out
        elif block.kind == "python":
            tree = ast.parse(block.text, str(block))
            if block.mark == "not run":  # names that it imports have to be there
                tree.body = [line for line in tree.body if isinstance(line, ast.Import | ast.ImportFrom)]
            exec(compile(tree, str(block), "exec"), names)


def test_kinds_of_blocks():
    """No block is of a kind that nobody looks at; configurations are TOML."""
    for block in BLOCKS:
        assert block.kind in KINDS, block
        if block.kind == "toml":
            tomllib.loads(block.text)


def test_fences_are_found():
    """As many blocks as there are pairs of fences: none has slipped through the pattern."""
    for page in PAGES:
        assert 2 * len(blocks_of(page)) == len(re.findall(r"^ *```", page.read_text(), re.MULTILINE)), page


def test_public_names():
    """The page about Python has all names that `import kilt` offers, and no others."""
    named = re.findall(
        r"^::: kilt\.(.*)\.(\w+)$", (ROOT / "docs" / "reference" / "python.md").read_text(), re.MULTILINE
    )
    assert {name: home for home, name in named} == kilt._HOMES
    assert len(named) == len(kilt._HOMES)


def test_names_of_modules():
    """What pages call `kilt.something` is there."""
    for page in PAGES:
        for name in re.findall(r"`(kilt\.[\w.]+)`", page.read_text()):
            assert name == "kilt.something" or resolve_name(name), (page, name)


def test_house_is_the_house():
    """The picture of the layers has those of the test of imports, and is the one that would be drawn now."""
    drawn = [{*names} for names, _, _ in make_pictures.HOUSE[::-1]]
    there = {path.stem for path in SOURCE.iterdir()} - {"__init__"}
    layers = [found & there for found in LAYERS[1:-1]]
    assert drawn[0] <= layers[0] and drawn[1:] == layers[1:]
    assert (make_pictures.PICTURES / "house.svg").read_text() == make_pictures.house()


def test_pictures():
    """All that are shown are there, small, and drawn by the command."""
    shown = {name for page in PAGES for name in re.findall(r"\]\((?:docs/|\.\./)?pictures/(.*?)\)", page.read_text())}
    there = {path.name: path.stat().st_size for path in make_pictures.PICTURES.iterdir()}
    assert shown == there.keys() == {*make_pictures.DRAWN, "house.svg"}
    assert max(there.values()) < 150_000


def test_formulae():
    page = (
        '<p><span class="arithmatex">\\(a &lt; b\\)</span> and <div class="arithmatex">\\[\n\\frac{1}{2}\n\\]</div></p>'
    )
    made = formulae.on_page_content(page)
    assert made.count("<math") == 2 and 'display="block"' in made and "<mfrac>" in made and "arithmatex" not in made


def test_notebooks():
    """They are those of the pages, whose blocks are run above; each command and each line of Python is there."""
    for path, text in make_notebooks.made().items():
        assert path.read_text() == text, f"python docs/make_notebooks.py would change {path.name}"
        page = ROOT / "docs" / "guides" / f"{path.stem}.md"
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        code = "\n".join(cell["source"] for cell in cells)
        for block in blocks_of(page):
            if block.kind == "python" or block.title:
                assert block.text.strip() in code
            elif block.kind == "console" and block.shown:
                assert code.count("!kilt") >= len(block.commands) > 0
        for cell in cells:
            if not cell["source"].startswith(("!", "%%")):
                ast.parse(cell["source"])


def test_what_agrees():
    assert agree("│ time │ 0.5 │ s │\n… all", "time   12.75 s\nmuch more\nall")
    assert not agree("equity 27.7%", "equity 27.8%")
    assert not agree("exploitability 0.1", "exploitability 0.1\nand more")


def test_commands_that_do_not_exist():
    with pytest.raises(Exception, match="No such option"):
        look_at("kilt solve --game leduc --swords 3")
    with pytest.raises(Exception, match="No such command"):
        look_at("kilt slove --game leduc")
    with pytest.raises(AssertionError, match="what is klit"):
        look_at("klit solve")


# What the papers have, by the kind of place that citations name. "§" of a chapter stands for the whole chapter.
SECTIONS = (  # of each chapter of [Johanson16], the number of sections, and those with sections inside
    *((1, 3), (2, 7), (3, 6), (4, 5), (5, 7), (6, 9), (7, 6), (8, 2), (9, 5), (10, 4), (11, 4)),
)
INSIDE = {"3.2": 3, "3.3": 3, "6.3": 3, "6.5": 2, "7.2": 3, "7.3": 1, "7.5": 2, "10.2": 2, "10.3": 2, "11.3": 3}
TABLES = {2: 3, 4: 1, 5: 5, 7: 4, 8: 2, 11: 5}  # of each chapter
PAPERS = {
    "Johanson16": {
        "§": {str(chapter) for chapter, _ in SECTIONS}
        | {f"{chapter}.{n + 1}" for chapter, count in SECTIONS for n in range(count)}
        | {f"{section}.{n + 1}" for section, count in INSIDE.items() for n in range(count)},
        "chapter": {str(chapter) for chapter, _ in SECTIONS},
        "table": {f"{chapter}.{n + 1}" for chapter, count in TABLES.items() for n in range(count)},
    },
    "Brown15": {
        "§": {*"123456", "2.1", "2.2", "2.3"},
        "footnote": {*"1234567"},
        "algorithm": {*"1234"},
        "table": {*"12"},
        "figure": {"1"},
    },
}
CITED = re.compile(r"\[(Johanson16|Brown15) ([^\]{}]*)\]")
PLACES = re.compile(r"(§|chapter|table|figure|footnote|algorithm)[s§]*\s*(\d[\d.]*(?:(?:, | and )\d[\d.]*)*)")


def test_citations_name_what_the_papers_have():
    """Sections, chapters, tables, footnotes and algorithms, cited in code and on pages."""
    seen = 0
    files = [*SOURCE.rglob("*.py"), *(ROOT / "lab").rglob("*.py"), *PAGES]
    for file in files:
        for paper, places in CITED.findall(file.read_text(encoding="utf-8").replace("\n", " ")):
            for kind, numbers in PLACES.findall(places):
                for number in re.findall(r"\d+(?:\.\d+)*", numbers):
                    there = PAPERS[paper].get(kind)
                    assert there is None or number in there, f"{file}: [{paper} {places}]"
                    seen += there is not None
    assert seen > 100


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("src/kilt/solve/counter.py", r"as a function of the number of observations .{,40}\[Johanson16 §6\.5\.2\]"),
        ("lab/kilt_lab/papers/brown15/post_processing.py", r"spares the first action .{,200}\[Brown15 footnote 5\]"),
        ("docs/guides/counter.md", r"the strategy overfits the abstraction \[Johanson16 §2\.6\]"),
    ],
)
def test_citations_that_were_wrong(file, words):
    """The choice of a confidence, purification that spares the first action, and overfitting."""
    assert re.search(words, " ".join((ROOT / file).read_text(encoding="utf-8").split()))
