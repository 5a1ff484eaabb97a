"""The wheel in a new environment that has what it requires and no extra: what works, and what is said of the rest."""

import json
import os
import re
import subprocess
import sys
import venv
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def required(wanted: Distribution, found: dict[str, Distribution]) -> dict[str, Distribution]:
    """All distributions that one requires without its extras, by name."""
    for line in wanted.requires or []:
        requirement = Requirement(line)
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if name not in found and applies:
            found[name] = distribution(name)
            required(found[name], found)
    return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Runs a command of the wheel, in an environment of its own."""
    home = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(home)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = home.glob("kilt-*.whl")
    venv.create(home / "env", symlinks=True)
    (packages,) = (home / "env").glob("lib/python*/site-packages")
    with ZipFile(wheel) as archive:
        shipped = [entry for entry in archive.infolist() if entry.filename.endswith(".agent")]
        assert [Path(entry.filename).name for entry in shipped] == ["house.agent"]
        assert sum(entry.compress_size for entry in shipped) < 10_000_000
        archive.extractall(packages)
    (described,) = packages.glob("kilt-*.dist-info")
    for needed in required(PathDistribution(described), {}).values():
        for name in {file.parts[0] for file in needed.files or [] if file.parts[0] != ".."}:
            if not (packages / name).exists():
                (packages / name).symlink_to(Path(str(needed.locate_file(name))))

    def run(*command):
        own = {"PATH": os.environ["PATH"], "HOME": str(home), "NUMBA_CACHE_DIR": str(home / "kernels")}
        return subprocess.run(
            [home / "env" / "bin" / "python", *command], cwd=home, env=own, capture_output=True, text=True
        )

    return run


def test_it_is_the_wheel_and_nothing_more(installed):
    done = installed("-c", "import kilt; print(kilt.__file__)")
    assert "/env/lib/" in done.stdout, done.stderr
    for extra in ("ray", "ot", "pyspiel", "phevaluator", "sklearn", "pytest"):
        assert "No module named" in installed("-c", f"import {extra}").stderr


def test_the_first_minute(installed):
    """The first solve says that it compiles, which is no part of what solving takes; the second compiles nothing."""
    command = "-m", "kilt", "solve", "leduc", "--iterations", "1000", "--json"
    first, second = installed(*command), installed(*command)
    assert first.stderr.startswith("compiling kernels, once per installation …\n"), first.stderr
    (took,) = re.findall(r"compiled kernels for ([\d.]+) s, once per installation", first.stderr)
    cold, warm = json.loads(first.stdout), json.loads(second.stdout)
    assert cold["seconds"] < float(took)
    assert cold["exploitability"] == warm["exploitability"] < 0.001
    assert second.stderr == ""
    equity = installed("-m", "kilt", "cards", "equity", "AsKh", "QQ+,AK", "--json")
    assert 0.38 < json.loads(equity.stdout)["equity"] < 0.39, equity.stderr
    played = installed("-m", "kilt", "match", "always-call", "random", "--game", "leduc", "--hands", "200", "--json")
    assert json.loads(played.stdout)["hands"] == 200, played.stderr


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        (["match", "always-call", "random", "--game", "leduc", "--engine", "ray"], "pip install 'kilt[ray]'"),
        (["solve", "openspiel:kuhn_poker"], "pip install 'kilt[peers]'"),
        (["abstraction", "boards", "-m", "schmid", "-c", "2", "--game", "leduc"], "pip install 'kilt[emd]'"),
        (["bench", "cards", "--json"], "pip install 'kilt[lab]'"),
        (["reproduce", "figure-3.2", "--quick"], "pip install 'kilt[lab]'"),
    ],
)
def test_what_needs_an_extra_says_so_in_a_line(installed, command, remedy):
    done = installed("-m", "kilt", *command)
    assert done.returncode == 2
    assert done.stdout == ""
    assert remedy in done.stderr
    assert len(done.stderr.splitlines()) == 1
