import subprocess
import sys
import threading

import psutil
import pytest

from kilt import machine
from kilt.machine import available_memory, is_locked, locked


def test_one_process_holds_a_lock(tmp_path):
    place = tmp_path / ".lock"
    code = (
        "import sys; from pathlib import Path; from kilt.machine import locked\n"
        "try:\n  with locked(Path(sys.argv[1]), wait=False): pass\n"
        "except BlockingIOError: sys.exit(5)"
    )
    assert is_locked(place) in (False, None)
    with locked(place):
        assert is_locked(place) in (True, None)  # None where Linux does not list it
        assert subprocess.run([sys.executable, "-c", code, str(place)]).returncode == 5
    assert is_locked(place) in (False, None)
    assert subprocess.run([sys.executable, "-c", code, str(place)]).returncode == 0


def test_a_lock_is_waited_for(tmp_path):
    place, order = tmp_path / ".lock", []

    def second():
        with locked(place):
            order.append("second")

    with locked(place):
        waiting = threading.Thread(target=second)
        waiting.start()
        waiting.join(0.2)
        order.append("first")
    waiting.join(30)
    assert order == ["first", "second"]


def test_where_no_file_can_be_there_is_no_lock(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError), locked(tmp_path / "file" / ".lock"):
        pass


def written(root, files):
    for name, text in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


V2 = "sys/fs/cgroup/memory.{}"
JOB = "sys/fs/cgroup/batch/job/memory.{}"
V1 = "sys/fs/cgroup/memory/docker/memory.{}"
UNLIMITED_V1 = "9223372036854771712\n"


@pytest.mark.parametrize(
    ("files", "left"),
    [
        pytest.param({}, None, id="no control groups"),
        pytest.param(
            {"proc/self/cgroup": "0::/\n", V2.format("max"): "max\n", V2.format("current"): "1000\n"},
            None,
            id="no limit",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/\n",
                V2.format("max"): "3000000\n",
                V2.format("current"): "2500000\n",
                V2.format("stat"): "anon 1\ninactive_file 200000\nactive_file 300000\n",
            },
            700_000,
            id="a container",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/system/of/the/host\n",
                V2.format("max"): "3000000\n",
                V2.format("current"): "1000000\n",
                V2.format("stat"): "inactive_file 0\n",
            },
            2_000_000,
            id="a container that sees the path of the host",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/batch/job\n",
                JOB.format("max"): "max\n",
                JOB.format("current"): "100\n",
                JOB.format("stat"): "inactive_file 0\n",
                "sys/fs/cgroup/batch/memory.max": "5000000\n",
                "sys/fs/cgroup/batch/memory.current": "4000000\n",
                "sys/fs/cgroup/batch/memory.stat": "inactive_file 1\n",
            },
            1_000_001,
            id="a limit of the group around it",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "4:memory:/docker\n3:cpu,cpuacct:/other\n0::/\n",
                V1.format("limit_in_bytes"): "4000000\n",
                V1.format("usage_in_bytes"): "3500000\n",
                V1.format("stat"): "cache 7\ninactive_file 1\ntotal_inactive_file 400000\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": UNLIMITED_V1,
                "sys/fs/cgroup/memory/memory.usage_in_bytes": "9000000\n",
                "sys/fs/cgroup/memory/memory.stat": "total_inactive_file 0\n",
            },
            900_000,
            id="version 1",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/\n",
                V2.format("max"): "1000\n",
                V2.format("current"): "2000\n",
                V2.format("stat"): "inactive_file 0\n",
            },
            0,
            id="above its limit",
        ),
    ],
)
def test_limits_of_containers_are_respected(tmp_path, files, left):
    found = available_memory(written(tmp_path, files))
    if left is None:
        assert found == pytest.approx(psutil.virtual_memory().available, rel=0.5)
    else:
        assert found == left


def test_the_limit_of_the_address_space_is_respected():
    code = (
        "import resource, psutil; from kilt.machine import available_memory\n"
        "used = psutil.Process().memory_info().vms\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 50_000_000, resource.RLIM_INFINITY))\n"
        "print(available_memory())"
    )
    found = int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert 30_000_000 < found <= 50_000_000


def test_this_machine_has_memory():
    assert 2**20 < available_memory() <= psutil.virtual_memory().total


def test_a_tiny_address_space_is_said_to_be_one(monkeypatch):
    """Libraries that find no room for their threads would wait for ever."""
    monkeypatch.setattr(machine, "_address_space", lambda: 400_000_000)
    assert machine.too_little_address_space() == 400_000_000
    monkeypatch.setattr(machine, "_address_space", lambda: None)
    assert machine.too_little_address_space() is None


def test_memory_that_a_process_has_already_counts_once(monkeypatch):
    monkeypatch.setattr(machine, "available_memory", lambda: 1e9)
    monkeypatch.setattr(machine, "PROCESS", psutil.Process().memory_info().rss // 2)
    assert machine.fits_memory(machine.PROCESS + 1_000_000_000)
    assert not machine.fits_memory(machine.PROCESS + 1_000_000_001)
