"""What tests of several modules share."""

import gc
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import typer.testing
from hypothesis import HealthCheck, settings

import kilt
from machines import end, wait_until

HERE = Path(__file__).parent
GB = 1 << 30

# What is started in the background ignores Ctrl-C, and so does all that it starts: tests of Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Processes that tests start share what Python has compiled of the sources: half a second for each `kilt`.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Numba makes messages of all that it tries while it compiles; to give them colours takes 2% of that.
os.environ["NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING"] = "1"

# Examples are the same in each run, and how long one takes decides nothing: --hypothesis-profile default draws others.
settings.register_profile("kilt", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kilt")

# All that is collected stays: to look through it for cycles of objects takes an eighth of tests that compile nothing.
gc.disable()  # until `pytest_runtestloop`

# Commands are the same for all tests; Typer would make them all anew for each that is run: a tenth of a second.
typer.main.get_command = typer.testing._get_command = cache(typer.main.get_command)

# Tests that wait for other processes or compile little. Those that share a Ray come first: the last ones may be taken
# over by other processes, each of which would start another.
APART = ("engines", "stages", "distributed", "cli_distributed", "wheel", "run", "acpc", "rules", "cli_solve")


def pytest_terminal_summary(terminalreporter):
    """Say why tests were skipped, a line for each reason."""
    skipped = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", [])]
    for reason, count in Counter(skipped).items():
        terminalreporter.write_line(f"{count} skipped: {reason.removeprefix('Skipped: ')}")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Let the first of some processes collect alone; the others then read what it has compiled of tests and sources."""
    process = getattr(session.config, "workerinput", None)
    if process is None:
        return (yield)
    collected = Path(tempfile.gettempdir()) / f"kilt-collected-{process['testrunuid']}"
    if process["workerid"] != "gw0":
        wait_until(collected.exists, 600)
        return (yield)
    try:
        return (yield)
    finally:
        collected.touch()
        session.config.add_cleanup(lambda: collected.unlink(missing_ok=True))


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session):
    """Give each of some processes a folder of its own for temporary files, and take it away in the end."""
    gc.freeze()
    gc.enable()
    if not hasattr(session.config, "workerinput"):
        return (yield)
    with tempfile.TemporaryDirectory(prefix="kilt-tests-") as tempfile.tempdir:
        return (yield)


def pytest_collection_modifyitems(config, items):
    """Let the last of some processes, which share the tests out in their order, begin with those that mostly wait.

    The others meanwhile have the processor, and the kernels that they compile are there when the last one needs them.
    """
    places = {f"test_{name}.py": place for place, name in enumerate(APART)}
    apart = sorted((item for item in items if item.path.name in places), key=lambda item: places[item.path.name])
    others = [item for item in items if item.path.name not in places]
    processes = getattr(config, "workerinput", {}).get("workercount", 1)
    before = len(items) * (processes - 1) // processes
    items[:] = others[:before] + apart + others[before:]


@pytest.fixture(scope="module")
def token():
    """A token for these tests, so that none is left in somebody's home."""
    from ray._private.authentication_test_utils import reset_auth_token_state

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        patch.setenv("RAY_AUTH_MODE", "token")
        reset_auth_token_state()  # Ray may have been imported before
        yield
    reset_auth_token_state()


@pytest.fixture(scope="module")
def start(tmp_path_factory, token):
    started, logs = [], tmp_path_factory.mktemp("nodes")
    home = Path("/tmp") / f"kilt-test-{secrets.token_hex(4)}"  # sockets have to have short names

    def start(*options, modules=()):
        log = logs / str(len(started))
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
        sizes = ["--num-cpus=2", f"--memory={4 * GB}", f"--object-store-memory={100 << 20}"]
        paths = map(str, [*modules, Path(kilt.__file__).parents[1], HERE])
        with log.open("w") as file:
            node = subprocess.Popen(
                [*command, *sizes, *options],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        started.append(node)
        wait_until(lambda: "Ray runtime started" in log.read_text() or node.poll() is not None, 60)
        assert node.poll() is None, log.read_text()
        return node

    start.home = home
    yield start
    for node in reversed(started):
        end(node)
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster(start):
    """The first node, and where it is."""
    with socket.socket() as line:
        line.bind(("", 0))
        port = line.getsockname()[1]
    node = start("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={start.home}")
    return node, f"127.0.0.1:{port}"
