"""The order of the house: imports run one way, and heavy packages are imported in one place."""

import ast
import re
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import kilt
import kilt_lab

ROOT = Path(kilt.__file__).parent
LAB = Path(__file__).parents[1] / "lab" / "kilt_lab"
# Lowest first. A module may import from its own layer and from those before it.
LAYERS = [
    {"errors"},
    {
        "arrays",
        "records",
        "compiling",
        "jit",
        "draws",
        "lanes",
        "machine",
        "cost",
        "paces",
        "gpu",
        "artifact",
        "checksums",
        "archive",
        "cancellation",
        "notebook",
        "config",
        "engines",
    },
    {"cards"},
    {"games"},
    {"tree"},
    {"abstraction"},
    {"strategy"},
    {"solve", "play"},
    {"search"},
    {"evaluate"},
    {"runs"},
    {"players"},
    {"spots"},
    {"viz"},
    {"api", "evaluation"},
    {"rehearsals"},
    {"web"},
    {"cli", "__init__"},
    {"__main__"},
]
ONE_PLACE = {  # where a package may be imported
    "LiteEFG": ["benchmarks"],
    "cupy": ["gpu.py"],
    "eval7": ["benchmarks"],
    "filelock": ["machine.py"],
    "highspy": ["solve"],
    "llvmlite": ["jit.py", "lanes.py"],
    "matplotlib": ["viz"],
    "numba": ["jit.py", "lanes.py"],
    "phevaluator": ["benchmarks"],
    "platformdirs": ["machine.py"],
    "psutil": ["machine.py"],
    "pyspiel": ["tree", "benchmarks"],
    "ray": ["engines"],
    "rich": ["cli"],
    "ot": ["abstraction"],
    "scipy": [],  # an oracle of tests
    "sklearn": ["benchmarks"],
    "tomli_w": ["records.py"],
    "zstandard": ["solve"],
    "fastapi": ["web"],
    "typer": ["cli"],
    "uvicorn": ["web"],
}
LINES = 500  # of a module
TABLE_LINES = 150  # of a class of tables
LIBRARY = sorted(ROOT.rglob("*.py"))
LABORATORY = sorted(LAB.rglob("*.py"))
MODULES = [*LIBRARY, *LABORATORY]


def layer(part):
    (found,) = [level for level, names in enumerate(LAYERS) if part in names]
    return found


@cache
def named(path):
    """What a module imports, and its classes."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef)]


def imports(path):
    for node in named(path):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            yield node.module
            if node.module == "kilt":
                yield from (f"kilt.{name.name}" for name in node.names if name.name != "__version__")


def part(path):
    """The package or module, within the library or the laboratory, that a file belongs to."""
    return path.relative_to(ROOT if path.is_relative_to(ROOT) else LAB).parts[0]


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_one_way(path):
    mine = part(path).removesuffix(".py")
    for name in imports(path):
        first, *rest = name.split(".")
        if first == "kilt" and rest:
            assert layer(rest[0]) <= layer(mine), f"{mine} may not import {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(path.parents[2])))
def test_heavy_packages_are_imported_in_one_place(path):
    for name in imports(path):
        first = name.split(".")[0]
        assert part(path) in ONE_PLACE.get(first, [part(path)]), f"{name} has its own place"


def is_kernel(node):
    named = {ast.unparse(each).split("(")[0] for each in getattr(node, "decorator_list", ())}
    return not named.isdisjoint({"kernel", "kernel_of_slices", "subkernel", "spliced", "inlined"})


def test_kernels_call_no_linear_algebra():
    """For which numba needs SciPy, on which kilt does not depend."""
    kernels = [node for path in LIBRARY for node in ast.walk(ast.parse(path.read_text())) if is_kernel(node)]
    assert len(kernels) > 200
    for one in kernels:
        for node in ast.walk(one):
            assert not isinstance(node, ast.MatMult), one.name
            if isinstance(node, ast.Attribute):
                assert node.attr not in {"linalg", "dot", "vdot", "kron"}, (one.name, node.attr)


def test_the_library_does_not_need_the_laboratory():
    """Only the command line looks for it."""
    named = [(str(path.relative_to(ROOT)), name) for path in LIBRARY for name in imports(path)]
    assert {path for path, name in named if name.startswith("kilt_lab")} == {"cli/lab.py"}
    assert kilt.__version__ == kilt_lab.__version__


def test_solvers_and_players_do_not_know_each_other():
    sides = {"solve": "play", "play": "solve", "papers": "benchmarks", "benchmarks": "papers"}
    for path in MODULES:
        for name in imports(path):
            other = sides.get(part(path))
            assert not other or not name.startswith((f"kilt.{other}", f"kilt_lab.{other}"))


def test_no_module_imports_itself_by_way_of_others():
    """Inside layers too, and whether an import is at the top, in a function, or for types only."""
    names = {
        ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for root in (ROOT, LAB)
        for path in sorted(root.rglob("*.py"))
    }

    def imported(path):
        for node in named(path):
            if isinstance(node, ast.Import):
                yield from (name.name for name in node.names)
            elif isinstance(node, ast.ImportFrom):
                whole = [f"{node.module}.{name.name}" for name in node.names]
                yield from (one if one in names else node.module for one in whole)

    graph = {name: {one for one in imported(path) if one in names and one != name} for name, path in names.items()}
    graph["kilt"] = set()  # the front door, which opens what is asked for
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as circle:
        pytest.fail(" imports ".join(circle.args[1][::-1]))


def test_modules_are_short():
    lines = {path.relative_to(LAB.parent if path.is_relative_to(LAB) else ROOT).as_posix(): path for path in MODULES}
    long = {name for name, path in lines.items() if len(path.read_text().splitlines()) > LINES}
    assert not long, "split modules along a real seam"


def test_tables_only_keep_what_is_learned():
    """What else they need has its home elsewhere; only workers that get lost take more lines."""
    nodes = [node for path in (ROOT / "solve" / "tables").glob("*.py") for node in named(path)]
    found = [node for node in nodes if isinstance(node, ast.ClassDef) and node.name.endswith("Tables")]
    long = [node.name for node in found if node.end_lineno - node.lineno + 1 >= TABLE_LINES]
    assert len(found) > 5 and set(long) <= {"WorkerTables"}


def test_a_class_name_occurs_once():
    found = Counter(node.name for path in MODULES for node in named(path) if isinstance(node, ast.ClassDef))
    assert not [name for name, count in found.items() if count > 1]


# A product with `above` or `below`, maybe with a condition between: `x *= y > 0 ? above : below`.
DISCOUNTED = re.compile(r" \*=? \(?([\w.]+ > 0 \? )?(\w+\.)?(above|below)\b(?!\[)")


def test_the_learning_rule_has_one_place_in_each_language():
    """Only `tree/rule` adds to regrets and discounts the sums."""
    sources = (path for path in ROOT.rglob("*") if path.suffix in (".py", ".cu", ".cuh"))
    places = {path.relative_to(ROOT).as_posix() for path in sources if DISCOUNTED.search(path.read_text())}
    assert places == {"tree/rule.py", "tree/rule.cuh"}


def test_one_loop_asks_for_discounts():
    """Only `Cfr` says by which numbers an iteration discounts; all tables are handed them."""
    called = re.compile(r"(?<![.\w])(?<!def )discounts\(")
    places = {path.relative_to(ROOT).as_posix() for path in LIBRARY if called.search(_code(path))}
    assert places == {"solve/cfr.py"}


# Options and commands of `kilt`, as an error would name them, not those of Ray. A text that is all option is an
# argument of a process.
SPELT = re.compile(
    r"(?<![\w(-])--[a-z][a-z-]*\b(?!:)|"
    r"\bkilt (abstraction|agent|build|check|counter|dealer|demo|estimate|evaluate|export|game|cards|match|model|new|"
    r"play|setup|slumbot|solve|spot|web)\b"
)
FOR_PEOPLE = {"runs/examples.py", "strategy/blueprint.py"}  # comments of files that kilt writes


def test_the_library_names_no_options_or_commands():
    """Errors speak of parameters and keys; the command line adds the options: `cli.options.with_options`."""
    found = []
    for path in LIBRARY:
        place = path.relative_to(ROOT).as_posix()
        if place.startswith("cli/") or place in FOR_PEOPLE:
            continue
        for node in ast.walk(ast.parse(_code(path))):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if SPELT.search(re.sub(r"`ray .*?`", "", text)) and not re.fullmatch(r"--?[\w=+-]+", text):
                found.append(f"{place}: {text[:80]}")
    assert found == []


def _code(path):
    """A module without its docstrings."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)
