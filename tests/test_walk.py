"""How far a configuration travels between `kilt solve my.toml` and the first iteration.

``python tests/test_walk.py`` prints the walk of a lossless abstraction of Leduc hold'em that CFR+ solves. The rule:

- Calls of kilt's Python functions count, in the order in which they begin, if an argument carries the configuration:
  the name of its file, the configuration, one of its sections, or an object with any of them among its attributes or
  the attributes of its attributes.
- A function counts at its first call. Properties and nameless functions do not count: they only read what is there.
- A stay is a series of such calls in one module. A return is a stay in a module that was left before, and a climb a
  stay in a module that imports, directly or not, the module of the stay before.
"""

import ast
import json
import os
import subprocess
import sys
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

CONFIG = 'game = "leduc"\ncards = "lossless"\n\n[solver]\nalgorithm = "cfr+"\niterations = 1\n'
NAME = "my.toml"


class Iteration(BaseException):
    """The first iteration begins."""


def carries(value, sections, depth=2):
    """Whether a value is or holds the configuration, or its file."""
    if isinstance(value, sections) or (isinstance(value, str | Path) and str(value) == NAME):
        return True
    if not depth or not type(value).__module__.startswith("kilt."):
        return False
    held = value if isinstance(value, tuple) else getattr(value, "__dict__", {}).values()
    return any(carries(each, sections, depth - 1) for each in [*held])


def is_property(name, value):
    """Whether a function of this name is a property of a value's class."""
    found = [vars(kind)[name] for kind in type(value).__mro__ if name in vars(kind)]
    return bool(found) and isinstance(found[0], property | cached_property)


def importing(frame, root):
    """Whether a module of kilt is being imported, which is no part of the walk."""
    while frame and not (frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(str(root))):
        frame = frame.f_back
    return frame is not None


def calls(root):
    """The module and the name of each function that gets the configuration, in the order of their first calls."""
    import kilt.config
    from kilt.cli import app

    sections = tuple(one for one in vars(kilt.config).values() if getattr(one, "__module__", "") == "kilt.config")
    sections, found = tuple(one for one in sections if isinstance(one, type)), {}

    def note(frame, event, argument):
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(root)) or code.co_name.startswith("<"):
            return
        module = Path(code.co_filename).relative_to(root).with_suffix("").as_posix()
        if code.co_name == "step" and module.startswith("solve/"):
            raise Iteration
        given = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]
        if given and is_property(code.co_name, given[0]):
            return
        if any(carries(each, sections) for each in given) and not importing(frame, root):
            found[module, code.co_qualname] = True

    sys.setprofile(note)
    try:
        app(["solve", NAME], standalone_mode=False)
    except Iteration:
        return list(found)
    finally:
        sys.setprofile(None)


def imports(root):
    """All modules that each module imports, directly or not."""
    direct = {}
    for file in root.rglob("*.py"):
        tree = ast.parse(file.read_text())
        hidden = {
            inner
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        names = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node not in hidden and (node.module or "").startswith("kilt"):
                place = node.module.replace(".", "/").removeprefix("kilt").removeprefix("/")
                names |= {place, *(f"{place}/{each.name}".removeprefix("/") for each in node.names)}
        direct[file.relative_to(root).with_suffix("").as_posix().removesuffix("/__init__")] = names

    def reached(module, seen):
        for name in direct.get(module, set()) - seen:
            seen.add(name)
            reached(name, seen)
        return seen

    return {module: reached(module, set()) for module in direct}


def walk():
    """The stays of the configuration, each with its functions, and how many are returns and climbs."""
    import kilt

    root = Path(kilt.__file__).parent
    stays = [(module, [name for _, name in each]) for module, each in groupby(calls(root), key=lambda call: call[0])]
    above = imports(root)
    modules = [module.removesuffix("/__init__") for module, _ in stays]
    climbs = sum(left in above[there] for left, there in pairwise(modules))
    counts = {"stays": len(stays), "modules": len({*modules}), "climbs": climbs}
    return stays, counts | {"returns": len(stays) - len({*modules})}


def test_a_configuration_reaches_the_first_iteration_by_a_short_walk():
    told = subprocess.run([sys.executable, __file__], check=True, capture_output=True, text=True).stdout
    found = json.loads(told.splitlines()[-1])
    assert found["stays"] <= 31 and found["modules"] <= 13 and found["climbs"] <= 11, told


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        Path(NAME).write_text(CONFIG)
        stays, counts = walk()
        os.chdir("/")
    lines = [f"{number:3} {module}: {', '.join(names)}" for number, (module, names) in enumerate(stays, start=1)]
    sys.stdout.write("\n".join([*lines, json.dumps(counts), ""]))
