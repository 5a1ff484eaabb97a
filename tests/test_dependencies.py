"""Packages that kilt needs when it runs: licences that go with MIT, and no version with a known vulnerability."""

import ast
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from lowest import lowest

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
EXTRAS = ("emd", "peers", "ray", "gpu", "web")  # of which kilt imports something when it runs
# Licences that ask for no more than to be named. That of certifi, MPL 2.0, is about changes of its own files alone.
ALLOWED = {
    *("0BSD", "BSD", "BSD-2-Clause", "BSD-3-Clause", "BSD License", "3-Clause BSD License", "CC0-1.0", "Zlib"),
    *("MIT", "MIT-CMU", "MIT License", "ISC License (ISCL)", "Apache-2.0", "Apache 2.0", "Apache Software License"),
    *("PSF-2.0", "Python Software Foundation License", "Mozilla Public License 2.0 (MPL 2.0)"),
}
# The first version without a known vulnerability, and the last vulnerability before it.
FIXED = {
    "filelock": ("3.20.3", "CVE-2026-22701: lock files followed symbolic links"),
    "fonttools": ("4.60.2", "CVE-2025-66034: files of a font were written anywhere"),
    "h11": ("0.16", "CVE-2025-43859: malformed chunks were accepted, so that requests could be smuggled"),
    "idna": ("3.15", "CVE-2026-45409: quadratic time for some names"),
    "pillow": ("12.3", "CVE-2026-59199 and others: writes out of bounds"),
    "protobuf": ("6.33.5", "CVE-2026-0994: nested messages exhausted the stack"),
    "pygments": ("2.20", "CVE-2026-4539: exponential time for some texts"),
    "ray": ("2.55", "CVE-2026-32981: the dashboard gave any file away"),
    "requests": ("2.33", "CVE-2026-25645: temporary files of others were used"),
    "starlette": ("1.3.1", "CVE-2026-54283, and CVE-2025-62727: quadratic time for some Range headers"),
    "urllib3": ("2.7", "CVE-2026-44431: secret headers went to other hosts"),
}


def asked(*extras):
    """What pyproject.toml asks for."""
    lists = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][extra] for extra in extras)]
    return [Requirement(line) for lines in lists for line in lines]


def needed(requirements):
    """All packages that requirements lead to, by name: None where one is not installed, as CuPy without a GPU."""
    found, left = {}, [(one, "kilt") for one in requirements]
    seen = set()
    while left:
        one, by = left.pop()
        name = canonicalize_name(one.name)
        if (name, *sorted(one.extras)) in seen:
            continue
        seen.add((name, *sorted(one.extras)))
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            assert name.startswith("cupy"), f"{name}, which {by} needs, is not installed"
            continue
        for line in found[name].requires or ():
            more = Requirement(line)
            if not more.marker or any(more.marker.evaluate({"extra": extra}) for extra in ("", *one.extras)):
                left.append((more, name))
    return found


def licences(metadata):
    """What a package says of its licence, by the way that says most; texts of whole licences say nothing here."""
    expression, field = metadata.get("License-Expression"), metadata.get("License") or ""
    classifiers = [one.split(" :: ")[-1] for one in metadata.get_all("Classifier", []) if one.startswith("License ::")]
    return [expression] if expression else classifiers or [field.strip()]


def is_allowed(expression):
    """Whether an SPDX expression, or one name, is allowed: of alternatives one, of what comes together all."""
    choices = [[re.sub(r" WITH .*", "", part) for part in one.split(" AND ")] for one in expression.split(" OR ")]
    return expression in ALLOWED or any(all(part.strip("() ") in ALLOWED for part in parts) for parts in choices)


def test_all_dependencies_have_a_lowest_version_that_is_tested():
    known = {line.split("==")[0] for line in lowest(PROJECT)}
    assert known == {one.name for one in asked("web", "emd")}


def test_portable_tests_need_no_package_that_some_systems_lack():
    tests = Path(__file__).parent
    portable = {canonicalize_name(one.name) for one in asked("web", "emd", "portable")} | {"kilt", "numba", "pil"}
    for line in (tests / "portable.txt").read_text().splitlines():
        left, seen = [tests / Path(line).name], set()
        while left:
            for node in ast.parse(left.pop().read_text()).body:
                names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) else []
                for name in {one.split(".")[0] for one in names} - seen:
                    seen.add(name)
                    if (file := tests / f"{name}.py").exists():
                        left.append(file)
                    else:
                        assert name in sys.stdlib_module_names or canonicalize_name(name) in portable, (line, name)
        assert "resource" not in seen, line  # Windows has no such module


@pytest.mark.parametrize("name", sorted(needed(asked(*EXTRAS))))
def test_licences_of_runtime_dependencies(name):
    said = licences(distribution(name).metadata)
    assert said and all(map(is_allowed, said)), f"{name} is under {said}: replace it, or decide on its licence"


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("BSD-2-Clause AND Apache-2.0 WITH LLVM-exception", True),
        ("GPL-2.0-only OR MIT", True),
        ("GPL-3.0-or-later", False),
        ("MIT AND GPL-3.0-or-later", False),
        ("GNU Lesser General Public License v3 (LGPLv3)", False),
        ("", False),
    ],
)
def test_licences_that_are_allowed(expression, allowed):
    assert is_allowed(expression) == allowed


@pytest.mark.parametrize("name", FIXED)
def test_versions_with_known_vulnerabilities_are_excluded(name):
    """By a lower bound wherever a package is needed, and in this environment."""
    first = Version(FIXED[name][0])
    for extras in ((), *((extra,) for extra in EXTRAS if extra != "gpu")):
        direct = {canonicalize_name(one.name): one for one in asked(*extras)}
        if name in needed(asked(*extras)):
            bounds = [Version(one.version) for one in direct[name].specifier if one.operator == ">="]
            assert bounds and max(bounds) >= first, f"{name} below {first} is let in: {FIXED[name][1]}"
    assert Version(distribution(name).version) >= first, f"{name} is too old here: {FIXED[name][1]}"
