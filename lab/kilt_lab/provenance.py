"""Where a result comes from: the clone and the machine."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from pathlib import Path

from kilt.errors import RunError


def clone() -> Path | None:
    """Return the root of the git clone that this laboratory runs from, or None if it is installed elsewhere."""
    root = Path(__file__).parents[2]
    return root if (root / ".git").exists() and (root / "lab" / "kilt_lab").is_dir() else None


def required_clone(purpose: str) -> Path:
    """Return the root of the clone. Raises `RunError`, which names the `purpose`, outside of one."""
    root = clone()
    if root is None:
        raise RunError(f"{purpose} needs a clone of kilt, and this laboratory is installed without one: clone it")
    return root


def git(*arguments: str, root: Path) -> str:
    """Return what a git command prints. Raises `RunError` if it fails."""
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise RunError(f"git {arguments[0]} failed: {last}")
    return done.stdout.strip()


@cache
def machine() -> str:
    """Return the name of this machine: `KILT_MACHINE`, or its processor and number of cores."""
    named = os.environ.get("KILT_MACHINE", "")
    return named or f"{_processor()}, {os.cpu_count() or 1} cores"


def _processor() -> str:
    """Return the model of the processor, or its architecture if Linux does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model"))]
    return next((model for model in models if model), platform.machine())
