"""Commands as tests run them."""

import json
import subprocess
import sys
import time

from typer.testing import CliRunner

from kilt import artifact
from kilt.cli import app
from kilt.errors import KiltError

# The same commands in a process of their own, with an early first checkpoint.
MAIN = "import kilt.cli, kilt.solve.folder; kilt.solve.folder.OFTEN = 0.05; kilt.cli.main()"


def kilt(*arguments, code=0):
    """Run a command that must work."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def answer(*arguments):
    """The JSON object that a command prints."""
    return json.loads(kilt(*arguments, "--json").stdout)


def refused(*arguments):
    """Run a command that must fail with something that the user can mend. Returns what is said."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert isinstance(result.exception, KiltError), result.output + repr(result.exception)
    assert result.stdout == ""
    return str(result.exception)


def start(*arguments, cwd=None):
    """The same in a process of its own."""
    command = [sys.executable, "-c", MAIN, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd)


def wait_for_checkpoint(run, child):
    """Wait until a run has written one."""
    deadline = time.monotonic() + 120
    while not artifact.exists(run / "checkpoint"):
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
