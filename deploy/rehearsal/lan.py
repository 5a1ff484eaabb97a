"""Machines that are emulated on this one, and the network between them.

A machine is a network namespace with one device, a control group that gives it a share of a core, and a folder that no
other machine sees; all other files are shared, as on NFS. All packets go through this process, which holds each back
for the latency of both ends and loses some: what TCP makes of that is what it makes of a real line. (The kernel's netem
would do it too, but kernels of small virtual machines often lack it.) When the plug of a machine is pulled, it neither
sends nor hears anything from then on, and its processes are killed: nobody is told, no connection is closed.

Linux and root are needed, and nothing else: all is made here, and removed at the end.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import random
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

NET, MTU, QUEUE = "10.87.0", 1500, 10_000  # addresses are NET.1, NET.2, …; bytes of a packet; packets that may wait
TUNSETIFF, TUN, PLAIN = 0x400454CA, 0x0001, 0x1000  # <linux/if_tun.h>: a device of packets without a header
CLONE_NEWNET = 0x40000000
PERIOD = 20_000  # microseconds in which a machine gets its share of a core
GROUPS = Path("/sys/fs/cgroup")


class Machine:
    """A machine: see `Lan.machine`."""

    def __init__(self, lan: Lan, name: str, number: int) -> None:
        self.lan, self.name, self.address = lan, name, f"{NET}.{number}"
        self.space = f"kilt-{os.getpid()}-{name}"
        self.speed, self.latency, self.loss, self.plugged = 1.0, 0.0, 0.0, True
        self.disk = lan.folder / name
        self.disk.mkdir()
        device = f"kilt{number}"
        _ip("netns", "add", self.space)
        self.line = _device(device, self.space)
        _ip("-n", self.space, "addr", "add", f"{self.address}/24", "dev", device)
        _ip("-n", self.space, "link", "set", device, "mtu", str(MTU), "txqueuelen", str(QUEUE), "up")
        _ip("-n", self.space, "link", "set", "lo", "up")
        self._old = (GROUPS / "cpu").is_dir()  # control groups of version 1
        self.group = (GROUPS / "cpu" if self._old else GROUPS) / self.space
        if not self._old:
            (GROUPS / "cgroup.subtree_control").write_text("+cpu")
        self.group.mkdir()
        weight = ("cpu.shares", "4096") if self._old else ("cpu.weight", "400")  # four times that of other processes,
        (self.group / weight[0]).write_text(weight[1])  # so that a machine gets its share where others are busy

    def be(self, speed: float, latency: float = 0.0, loss: float = 0.0) -> None:
        """Have a `speed` of so many cores, seconds of `latency` to the next switch, and a `loss` of packets there."""
        self.speed, self.latency, self.loss = speed, latency, loss
        quota = str(int(speed * PERIOD))
        if self._old:
            (self.group / "cpu.cfs_period_us").write_text(str(PERIOD))
            (self.group / "cpu.cfs_quota_us").write_text(quota)
        else:
            (self.group / "cpu.max").write_text(f"{quota} {PERIOD}")

    def start(self, command: Sequence[str | Path], environment: Mapping[str, str], log: Path) -> subprocess.Popen[str]:
        """Start a process on this machine; what it says goes to a file."""
        # In this order: inside of the namespace, control groups cannot be seen, and nobody else sees what is mounted.
        into = 'echo $$ >"$0"/cgroup.procs; exec ip netns exec "$1" bash -c "$2" "${@:3}"'
        own = 'mount --bind "$0" "$1"; exec "${@:2}"'
        whole = ["bash", "-c", into, self.group, self.space, own, self.disk, self.lan.own, *command]
        with log.open("a") as file:
            return subprocess.Popen(whole, env=environment, stdout=file, stderr=file, start_new_session=True, text=True)

    def kill(self) -> None:
        """End all processes of this machine at once."""
        while found := (self.group / "cgroup.procs").read_text().split():
            for process in map(int, found):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.05)

    def pull_the_plug(self) -> None:
        """Be gone, without a word to anybody."""
        self.plugged = False
        self.kill()

    def remove(self) -> None:
        """End all processes, and leave nothing behind."""
        self.kill()
        os.close(self.line)
        self.group.rmdir()
        _ip("netns", "del", self.space)


class Lan:
    """A network of emulated machines. A context: at its end nothing of it is left."""

    def __init__(self) -> None:
        self.machines: list[Machine] = []
        self.folder = Path(tempfile.mkdtemp(prefix="kilt-lan-", dir="/tmp"))  # Ray's sockets have to have short names
        self.own = self.folder / "own"  # each machine sees its own
        self.own.mkdir()
        self.packets = self.bytes = self.lost = 0
        self._random, self._over = random.Random(0), False
        self._thread = threading.Thread(target=self._pass_on, daemon=True)

    def __enter__(self) -> Lan:
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        if self._thread.is_alive():
            self._thread.join()
        for machine in self.machines:
            machine.remove()
        shutil.rmtree(self.folder)

    def machine(self, name: str) -> Machine:
        """Add a machine; all of them before the first is used."""
        self.machines.append(Machine(self, name, len(self.machines) + 1))
        return self.machines[-1]

    def begin(self) -> None:
        """Let packets travel."""
        self._thread.start()

    def _pass_on(self) -> None:
        """The switch."""
        os.setpriority(os.PRIO_PROCESS, 0, -15)  # of this thread alone: lines do not wait for whoever is busy here
        lines = {machine.line: machine for machine in self.machines}
        addresses = {socket.inet_aton(machine.address): machine for machine in self.machines}
        waiting: list[tuple[float, int, Machine, bytes]] = []
        number = 0
        while not self._over:
            pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 0.1
            for line in select.select(list(lines), [], [], min(pause, 0.1))[0]:
                with suppress(BlockingIOError):
                    while True:
                        packet = os.read(line, MTU)
                        sender, receiver = lines[line], addresses.get(packet[16:20])
                        if packet[0] >> 4 != 4 or receiver is None:
                            continue  # not of IPv4, or for nobody here
                        self.packets, self.bytes = self.packets + 1, self.bytes + len(packet)
                        arrives = (1 - sender.loss) * (1 - receiver.loss)
                        if not (sender.plugged and receiver.plugged and self._random.random() < arrives):
                            self.lost += 1
                            continue
                        number += 1
                        due = time.monotonic() + sender.latency + receiver.latency
                        heapq.heappush(waiting, (due, number, receiver, packet))
            now = time.monotonic()
            while waiting and waiting[0][0] <= now:
                _, _, receiver, packet = heapq.heappop(waiting)
                with suppress(OSError):
                    os.write(receiver.line, packet)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def _device(name: str, space: str) -> int:
    """Make a network device inside a namespace; what is sent there can be read here, and the other way."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open() as home, Path(f"/run/netns/{space}").open() as there:
        if libc.setns(there.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            line = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(line, TUNSETIFF, struct.pack("16sH22x", name.encode(), TUN | PLAIN))
        finally:
            libc.setns(home.fileno(), CLONE_NEWNET)
    return line
