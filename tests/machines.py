"""Processes and machines that come and go."""

import os
import signal
import time
from pathlib import Path


def gone(process):
    """Whether a process has ended; it may wait for its parent to notice."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until(true, seconds):
    latest = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < latest, "waited for nothing"
        time.sleep(0.05)


def nodes():
    import ray

    return [node for node in ray.nodes() if node["Alive"]]


def descendants(process):
    """The processes that a process has started, and so on."""
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            children.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    found, rest = set(), [process]
    while rest:
        new = children.get(rest.pop(), [])
        found.update(new)
        rest += new
    return found


def end(node):
    """Kill a node of Ray with all its processes, as if somebody pulled the plug."""
    for process in [node.pid, *descendants(node.pid)]:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
    node.wait()
