"""Where a result comes from: the clone, its commit, the machine and its load."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

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


class Provenance(NamedTuple):
    """The code and the machine of a measurement."""

    commit: str  # short; empty without a clone
    dirty: bool  # whether tracked files differed from that commit
    date: str  # of today, in UTC
    machine: str  # a key of machines.toml, or a description
    load: float | None  # of the last minute


def provenance() -> Provenance:
    """Return the commit, the date, the machine and its load, as of now."""
    root = clone()
    commit = git("rev-parse", "--short", "HEAD", root=root) if root else ""
    dirty = bool(root and git("status", "--porcelain", "--untracked-files=no", root=root))
    load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
    return Provenance(commit, dirty, datetime.now(UTC).date().isoformat(), machine(), load)


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
