"""The order of the house: imports run one way, and heavy packages are imported in one place."""

import ast
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import kilt

ROOT = Path(kilt.__file__).parent
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
        "gpu",
        "artifact",
        "archive",
        "cancellation",
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
    {"spots"},
    {"viz"},
    {"reproduce", "bench"},
    {"api"},
    {"web"},
    {"cli", "__init__"},
    {"__main__"},
]
ONE_PLACE = {  # where a package may be imported; peers, in benchmarks too
    "cupy": ["gpu.py"],
    "filelock": ["machine.py"],
    "llvmlite": ["jit.py", "lanes.py"],
    "matplotlib": ["viz"],
    "numba": ["jit.py", "lanes.py"],
    "phevaluator": ["bench"],
    "platformdirs": ["artifact.py"],
    "psutil": ["machine.py"],
    "pyspiel": ["tree", "bench"],
    "ray": ["engines"],
    "rich": ["cli"],
    "ot": ["abstraction"],
    "scipy": ["abstraction", "bench", "evaluate", "solve"],
    "sklearn": ["bench"],
    "tomli_w": ["records.py"],
    "zstandard": ["solve"],
    "fastapi": ["web"],
    "typer": ["cli"],
    "uvicorn": ["web"],
}
MODULES = sorted(ROOT.rglob("*.py"))


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


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_one_way(path):
    mine = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for name in imports(path):
        first, *rest = name.split(".")
        if first == "kilt" and rest:
            assert layer(rest[0]) <= layer(mine), f"{mine} may not import {name}"
        if first in ONE_PLACE:
            assert path.relative_to(ROOT).parts[0] in ONE_PLACE[first], f"{name} has its own place"


def test_solvers_and_players_do_not_know_each_other():
    sides = {"solve": "play", "play": "solve", "reproduce": "bench", "bench": "reproduce"}
    for path in MODULES:
        mine = path.relative_to(ROOT).parts[0]
        for name in imports(path):
            assert mine not in sides or not name.startswith(f"kilt.{sides[mine]}")


def test_no_module_imports_itself_by_way_of_others():
    """Inside layers too, and whether an import is at the top, in a function, or for types only."""
    names = {
        ".".join(("kilt", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in MODULES
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


def test_a_class_name_occurs_once():
    found = Counter(node.name for path in MODULES for node in named(path) if isinstance(node, ast.ClassDef))
    assert not [name for name, count in found.items() if count > 1]
