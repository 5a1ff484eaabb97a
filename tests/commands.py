"""Commands as tests run them."""

import json
import shlex
import subprocess
import sys
import time

import typer
from typer.testing import CliRunner

from kilt import artifact
from kilt.cli import app
from kilt.errors import KiltError

# The same commands in a process of their own, with an early first checkpoint.
MAIN = "import kilt.cli, kilt.runs.folder; kilt.runs.folder.OFTEN = 0.05; kilt.cli.main()"
COMMAND = typer.main.get_command(app)


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


def check_command(line):
    """See that a command is one of ours, with options that exist; it is not run."""
    words = shlex.split(line, comments=True)
    command = COMMAND
    context, rest = command.make_context("kilt", words[1:], resilient_parsing=True), words[1:]
    while hasattr(command, "commands"):
        name, command, rest = command.resolve_command(context, rest)
        assert command is not None, f"No such command: {line}"
        context = command.make_context(name, list(rest), resilient_parsing=True)
    context.resilient_parsing = False
    command.make_parser(context).parse_args(list(rest))


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
