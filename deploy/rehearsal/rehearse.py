#!/usr/bin/env python3
"""Rehearses a cluster on this machine: `kilt solve --engine ray` on machines that differ, fail and disappear.

    sudo env "PATH=$PATH" deploy/rehearsal/rehearse.py CONFIG OUT [--deals N] [--batch B] [--blades 3] [--acts …]

Four machines are emulated (see `lan`): the first has the head, the others the blades. Acts, each a run from its
beginning:

alike    machines of one speed on a quick network
differ   one of half that speed, two far away on lines that lose packets
gone     likewise, and the fourth disappears half-way: the run finds room on the others and goes back to its checkpoint
head     the first machine disappears half-way, and with it the head: a new one goes on from the checkpoints elsewhere

Nodes are started with deploy/cluster/node.sh, runs with deploy/cluster/solve.sh, as on a real cluster. Each strategy is
held against that of one process, bit for bit. What was seen is printed, and kept in OUT/figures.json.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lan import Lan, Machine

CLUSTER, PORT = Path(__file__).parents[1] / "cluster", 6379
ALIKE = (1.0, 0.4, 0.4, 0.4)  # cores of each machine
SLOWER = (1.0, 0.4, 0.2, 0.4)
LATENCY = (0.0, 0.0002, 0.002, 0.01)  # seconds to the switch
LOSS = (0.0, 0.0, 0.002, 0.01)  # of packets there
STARTING = 180.0  # seconds for a node of Ray
READY = "blades (ray) with"  # what a run says when blades are there
SPENT = re.compile(r"messages and the head took ([\d.]+)% of the time, waiting ([\d.]+)%")
BACK = re.compile(r"(.*was lost.*); back to the checkpoint of iteration ([\d,]+), from ([\d,]+)")


class Rehearsal:
    """A cluster that is emulated, and runs on it."""

    def __init__(self, lan: Lan, asked: argparse.Namespace) -> None:
        self.lan, self.asked, self.out = lan, asked, asked.out.resolve()
        self.machines = [lan.machine(name) for name in ("first", "second", "third", "fourth")]
        lan.begin()
        self.environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
        }
        self.head = self.machines[0]

    @property
    def address(self) -> str:
        """HOST:PORT of the cluster."""
        return f"{self.head.address}:{PORT}"

    def start(self, head: Machine, others: list[Machine]) -> None:
        """Start a cluster; its first machine has no blades."""
        self.head = head
        size = ["--node-ip-address", head.address, "--num-cpus", "0", "--temp-dir", str(self.lan.own)]
        self._node(head, "--head", "--port", str(PORT), *size)
        for machine in others:
            machine.be(1.0)  # it may be slow once it is there
            size = ["--node-ip-address", machine.address, "--num-cpus", "3", "--memory", str(3 << 30)]
            self._node(machine, "--address", self.address, *size)
        for machine in (head, *others):
            log = self.out / f"{machine.name}.log"
            _wait_until(lambda log=log: "Ray runtime started" in log.read_text(), STARTING, f"{machine.name} to start")

    def _node(self, machine: Machine, *options: str) -> None:
        waiting = f"until (: >/dev/tcp/{self.head.address}/{PORT}) 2>/dev/null; do sleep 1; done; "
        command = ("" if machine is self.head else waiting) + 'exec "$0" "$@"'
        log = self.out / f"{machine.name}.log"
        log.write_text("")
        machine.start(["bash", "-c", command, CLUSTER / "node.sh", *options], self.environment, log)

    def run(self, act: str, *, lose: Machine | None = None, nodes: int = 4) -> dict[str, Any]:
        """Solve, on the head; a machine may disappear half-way."""
        folder, log = self.out / act, self.out / f"{act}.log"
        begun = folder.exists()
        more = ["--blades", self.asked.blades, "--threads", "1", "--iterations", str(self.asked.deals)]
        more += [] if begun else ["--set", f"engine.batch={self.asked.batch}"]
        command = [CLUSTER / "solve.sh", self.asked.config.resolve(), folder, self.address, str(nodes), *more]
        traffic = self.lan.packets, self.lan.bytes, self.lan.lost
        before = len(log.read_text()) if begun else 0
        process = self.head.start(command, self.environment, log)
        ready = lost = back = None
        while process.poll() is None:
            time.sleep(0.1)
            said = log.read_text()[before:]
            if ready is None and READY in said:
                ready = time.monotonic()
            if lose is not None and lost is None and (at := _iterations(said)) >= self.asked.deals / 2:
                lost = time.monotonic()
                lose.pull_the_plug()
                if lose is self.head:
                    return {"lost_at": at, "pulled": lost}
            if lost is not None and back is None and BACK.search(said):
                back = time.monotonic() - lost
        if process.returncode:
            sys.exit(f"{act}: {log.read_text()}")
        figures: dict[str, Any] = {"act": act, "ready": ready, **_figures(log.read_text()[before:], folder)}
        packets, size, dropped = (now - then for now, then in zip(self._traffic, traffic, strict=True))
        figures |= {"packets": packets, "packets_lost": dropped, "MB": size / 1e6}
        return figures | ({"recovery_seconds": back, "lost_at": at} if lose else {})

    @property
    def _traffic(self) -> tuple[int, int, int]:
        return self.lan.packets, self.lan.bytes, self.lan.lost

    def play(self, act: str) -> dict[str, Any]:
        """One act, on a cluster of its own."""
        first, *others = self.machines
        for machine in self.machines:
            machine.plugged = True
            machine.be(1.0)
        try:
            self.start(first, others)
            self._slow_down(act)
            found = self.run(act, lose={"gone": self.machines[-1], "head": first}.get(act))
            if act == "head":
                for machine in others:
                    machine.kill()  # their Ray waits for the head that was; as when somebody starts it again
                self.start(others[0], others[1:])
                self._slow_down(act)
                found |= self.run(act, nodes=3)
                found["recovery_seconds"] = found["ready"] - found.pop("pulled")
        finally:
            for machine in self.machines:
                machine.kill()
        del found["ready"]
        return found

    def _slow_down(self, act: str) -> None:
        for machine, cores, latency, loss in zip(
            self.machines, ALIKE if act == "alike" else SLOWER, LATENCY, LOSS, strict=True
        ):
            speed = 1.0 if machine is self.head else cores
            machine.be(speed, *((0.0002, 0.0) if act == "alike" else (latency, loss)))

    def alone(self) -> Path:
        """The run of one process, with the same batches and boards."""
        folder = self.out / "alone"
        if not folder.exists():
            engine = ["--engine", "local", "--blades", self.asked.blades, "--threads", "1"]
            size = ["--iterations", str(self.asked.deals), "--set", f"engine.batch={self.asked.batch}"]
            command = ["kilt", "solve", self.asked.config.resolve(), "--out", folder, *engine, *size]
            log = self.out / "alone.log"
            if self.head.start(command, self.environment, log).wait():
                sys.exit(log.read_text())
        return folder


def _wait_until(true: Callable[[], bool], seconds: float, what: str) -> None:
    latest = time.monotonic() + seconds
    while not true():
        if time.monotonic() > latest:
            sys.exit(f"waited {seconds:g} s for {what}: see its log")
        time.sleep(0.1)


def _iterations(said: str) -> int:
    """How far a run says that it is."""
    return max([0, *(int(number.replace(",", "")) for number in re.findall(r"· ([\d,]+) iterations", said))])


def _figures(said: str, run: Path) -> dict[str, Any]:
    """What a run has said of itself."""
    last = json.loads((run / "log.jsonl").read_text().splitlines()[-1])
    talk, wait = map(float, SPENT.findall(said)[-1])
    idle = {int(blade): int(share) for blade, share in re.findall(r"blade (\d+) was idle (\d+)%", said)}
    found = {
        "iterations": last["iterations"],
        "seconds": last["seconds"],
        "messages": talk / 100,
        "waiting": wait / 100,
    }
    return found | {"idle": idle, "lost": [list(one) for one in BACK.findall(said)]}


def main() -> None:
    """Rehearse."""
    words = argparse.ArgumentParser(description="Rehearse a cluster on this machine; see the head of this file.")
    words.add_argument("config", type=Path, help="what is solved, with cards that have classes of boards")
    words.add_argument("out", type=Path, help="a folder for runs, logs and figures")
    words.add_argument("--deals", type=int, default=1_000_000)
    words.add_argument("--batch", type=int, default=16_384)
    words.add_argument("--blades", default="3")
    words.add_argument("--acts", default="alike,differ,gone,head")
    asked = words.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    asked.out.mkdir(parents=True, exist_ok=True)
    kept = asked.out / "figures.json"
    figures = json.loads(kept.read_text()) if kept.exists() else []
    with Lan() as lan:
        rehearsal = Rehearsal(lan, asked)
        alone = (rehearsal.alone() / "strategy" / "shares.npy").read_bytes()
        for act in asked.acts.split(","):
            found = rehearsal.play(act)
            found["same_bits"] = (asked.out / act / "strategy" / "shares.npy").read_bytes() == alone
            sys.stdout.write(json.dumps(found) + "\n")
            sys.stdout.flush()
            figures.append(found)
            kept.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
