"""Parts of other packages that these do not promise to keep: all are named here, and new versions are tried on purpose.

A package that is used so has an upper bound in pyproject.toml. To raise it, install the new version, see that this file
and the tests of jit, lanes and engines pass, and set the bound to the next version.
"""

import ast
import importlib
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import kilt

ROOT = Path(kilt.__file__).parent
BOUNDS = {"numba": "<0.69", "llvmlite": "<0.51", "ray": "<2.61"}
# module: names that are imported from it.
IMPORTED = {
    "llvmlite": {"binding", "ir"},
    "numba.core": {"event"},
    "numba.core.analysis": {"compute_cfg_from_blocks", "compute_use_defs"},
    "numba.core.codegen": {"JITCodeLibrary"},
    "numba.core.compiler": {"Compiler"},
    "numba.core.compiler_machinery": {"register_pass"},
    "numba.core.datamodel.models": {"PrimitiveModel"},
    "numba.core.ir": {"Assign", "Expr"},
    "numba.core.lowering": {"Lower"},
    "numba.core.runtime": {"rtsys"},
    "numba.core.typed_passes": {"NativeLowering", "NopythonRewrites"},
    "ray._private": {"ray_constants", "services", "worker"},
    "ray._private.authentication.authentication_token_setup": {"maybe_enable_token_auth_if_token_available"},
}
# module: what is used of it without an underscore of its own.
USED = {
    "numba.core.event": {"Listener", "register"},
    "numba.core.codegen.JITCodeLibrary": {
        "_ensure_finalized",
        "_finalize_final_module",
        "_optimize_final_module",
        "enable_object_caching",
        "get_pointer_to_function",
    },
    "numba.core.caching.Cache": {"_guard_against_spurious_io_errors", "_load_overload", "load_overload"},
    "numba.core.compiler.Compiler": {"define_pipelines"},
    "numba.core.lowering.Lower": {"_find_singly_assigned_variable"},
    "numba.core.typed_passes.NativeLowering": {"lowering_class"},
    "numba.core.dispatcher.Dispatcher": {"compile", "get_call_template", "get_overload"},
    "numba.core.base.BaseContext": {"get_dummy_value", "make_array"},
    "ray._private.ray_constants": {"ENABLE_RAY_CLUSTER"},
    "ray._private.services": {"canonicalize_bootstrap_address"},
    "ray._private.worker": {"print_to_stdstream"},
}
# Of a dispatcher of numba and of the files of its cache, and of what makes machine code.
ATTRIBUTES = {
    "_find_singly_assigned_variable",
    "_optimize_final_module",
    "_cache",
    "_cache_file",
    "_code",
    "_guard_against_spurious_io_errors",
    "_load_overload",
    "_insert",
    "_index_path",
    "_add_module",
    "_create_empty_module",
    "_engine",
}
ARGUMENTS = {"_node_ip_address", "_temp_dir", "_system_config", "_nrt"}  # of ray.init, and of numba.njit


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        yield path, ast.parse(path.read_text())


def is_private(module):
    return any(part.startswith("_") for part in module.split(".")) or module.split(".")[:2] in (
        ["numba", "core"],
        ["llvmlite"],
    )


def test_all_that_is_imported_is_named():
    found = {}
    for _, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module != "__future__" and is_private(node.module):
                found.setdefault(node.module, set()).update(name.name for name in node.names)
    assert found == IMPORTED


def test_those_of_ray_are_in_one_file():
    using = [
        path.name
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ray._")
    ]
    assert set(using) == {"ray_private.py"}


def test_all_attributes_and_arguments_are_named():
    """Ours are looked at through `self`, or in the module that has them."""
    attributes, arguments = set(), set()
    for path, tree in modules():
        if path.name not in ("jit.py", "lanes.py", "ray_engine.py", "ray_private.py"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr):
                if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                    attributes.add(node.attr)
            elif isinstance(node, ast.keyword) and node.arg and node.arg.startswith("_"):
                arguments.add(node.arg)
    assert attributes == ATTRIBUTES
    assert arguments == ARGUMENTS


@pytest.mark.parametrize(
    ("owner", "name"), [(owner, name) for parts in (IMPORTED, USED) for owner in parts for name in sorted(parts[owner])]
)
def test_they_are_there(owner, name):
    if owner.startswith("ray"):
        pytest.importorskip("ray")
    parts = owner.split(".")
    if parts[-1][0].isupper():
        found = getattr(importlib.import_module(".".join(parts[:-1])), parts[-1])
    else:
        found = importlib.import_module(owner)
    assert hasattr(found, name) or importlib.import_module(f"{owner}.{name}")


def test_the_files_of_a_kernel_are_where_they_were():
    from kilt.jit import trailing_zeros

    files = trailing_zeros._cache._cache_file
    assert Path(files._index_path).parent.is_dir()
    assert callable(files.save) and callable(files.load)


def test_kernels_of_another_version_are_compiled_anew(tmp_path):
    """The index of a kernel names classes of its arguments: those of an older kilt may be there no more."""
    kernels = tmp_path / "kernels.py"
    code = "from kernels import first, Pair; assert first(Pair(3, 4)) == 3"
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT.parent)]), "NUMBA_CACHE_DIR": ""}
    for name in ("Couple", "Pair"):
        kernels.write_text(
            "from typing import NamedTuple\nfrom kilt.jit import kernel\n\n\n"
            f"class {name}(NamedTuple):\n    a: int\n    b: int\n\n\n"
            "@kernel\ndef first(pair):\n    return pair.a\n"
        )
        command = [sys.executable, "-c", code.replace("Pair", name)]
        subprocess.run(command, env=os.environ | environment, check=True, capture_output=True)
    assert list(tmp_path.rglob("*.nbi"))


def test_a_kernel_that_counts_no_references_is_given_no_new_arrays():
    """They would never be given back: what it calls makes arrays, and no name in it says so."""
    from kilt.jit import kernel

    @kernel
    def made(count):
        return np.zeros(count)

    @kernel
    def first(count):
        return made(count)[0]

    assert made(3).tolist() == [0, 0, 0]
    with pytest.raises(TypeError, match="first calls a function that makes arrays"):
        first(3)


def test_processes_that_want_one_kernel_compile_it_once(tmp_path):
    """The others wait for the first, and read what it has kept; that they wait is no work of theirs."""
    tmp_path.joinpath("kernels.py").write_text(
        "from kilt.jit import kernel\n\n\n@kernel\ndef doubled(number):\n    return 2 * number\n"
    )
    code = (
        "import time; from kernels import doubled; from kilt.compiling import compiled_seconds\n"
        "compiler = doubled._compiler.compile\n"
        "doubled._compiler.compile = lambda *asked: (time.sleep(0.5), compiler(*asked))[1]\n"
        "print('ready', flush=True); input(); assert doubled(3) == 6\n"
        "print(sum(doubled.stats.cache_misses.values()), compiled_seconds())"
    )
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT.parent)]), "NUMBA_CACHE_DIR": ""}
    command = [sys.executable, "-c", code]
    started = [
        subprocess.Popen(
            command, env=os.environ | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    assert [process.stdout.readline() for process in started] == ["ready\n"] * 2
    for process in started:
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate()[0].split() for process in started]
    assert sorted(misses for misses, _ in said) == ["0", "1"]
    assert all(float(seconds) > 0.4 for _, seconds in said)


@pytest.mark.parametrize(("package", "bound"), BOUNDS.items())
def test_packages_have_an_upper_bound(package, bound):
    project = Path(__file__).parents[1] / "pyproject.toml"
    said = tomllib.loads(project.read_text())["project"]
    asked = [*said["dependencies"], *(one for group in said["optional-dependencies"].values() for one in group)]
    (found,) = [one for one in asked if re.match(rf"{package}\b[^-]", one)]
    assert found.endswith(f",{bound}")
    numbers = [tuple(map(int, re.findall(r"\d+", text)[:2])) for text in (version(package), bound)]
    assert numbers[0] < numbers[1], f"{package} {version(package)} was not tried: see the top of this file"
