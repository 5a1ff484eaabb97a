"""Engines: the same promises kept in this process, in others, and on machines that can be lost."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

import engine_workers
import kilt
from engine_workers import Notebook, Stubborn, dies_once, ones, square
from kilt.engines import EngineError, Job, WorkerLost, engine_named
from kilt.errors import KiltError, RunError
from machines import descendants, end, gone, nodes, wait_until

GB = 1 << 30
HERE = Path(engine_workers.__file__).parent


pytestmark = pytest.mark.usefixtures("token")


class Promises:
    """What all engines promise."""

    @pytest.fixture(scope="class")
    @classmethod
    def workers(cls, engine):
        hired = engine.hire([Job(Notebook, ("first", number)) for number in range(3)])
        yield hired
        engine.dismiss(hired)
        engine.dismiss(hired)

    def test_what_is_asked_is_done_in_order(self, workers):
        answers = [[worker.ask("write", line, 0.002) for worker in workers] for line in range(10)]
        for line in reversed(range(10)):
            assert [answer.get() for answer in answers[line]] == [3 + line] * 3
        for number, worker in enumerate(workers):
            assert worker.ask("read").get() == ["first", number, *range(10)]

    def test_an_answer_can_be_had_twice(self, workers):
        answer = workers[0].ask("write", "x")
        assert answer.get() == answer.get() > 2

    def test_errors_arrive_as_they_were(self, workers):
        answers = workers[1].ask("refuse", "not today"), workers[1].ask("divide", 0), workers[1].ask("divide", 2)
        with pytest.raises(KiltError) as caught:
            answers[0].get()
        assert type(caught.value) is RunError
        assert str(caught.value) == "no: not today"
        with pytest.raises(ZeroDivisionError, match=r"^division by zero$"):
            answers[1].get()
        assert answers[2].get() == 0.5
        with pytest.raises(AttributeError, match="fly"):
            workers[1].ask("fly").get()

    def test_arrays_travel(self, workers):
        array = np.arange(50_000.0)
        assert np.array_equal(workers[0].ask("double", array).get(), array * 2)

    def test_a_worker_that_cannot_be_made_takes_the_others_along(self, engine):
        before = len(engine._workers)
        with pytest.raises(RunError, match=r"^the moon is no place for me$"):
            engine.hire([Job(Notebook), Job(Stubborn, ("the moon",))])
        assert len(engine._workers) == before

    def test_map_keeps_the_order(self, engine):
        heard = []
        assert engine.map(square, range(12), heard.append) == [number**2 for number in range(12)]
        assert heard == [done / 12 for done in range(1, 13)]
        assert engine.map(abs, iter([])) == []
        assert engine.map(ones, [400_000])[0].sum() == 400_000

    def test_map_tells_what_went_wrong(self, engine):
        with pytest.raises(RunError, match=r"^13 brings bad luck$"):
            engine.map(square, range(100))
        assert engine.map(square, [5]) == [25]

    def test_map_while_workers_wait(self, engine, workers):
        assert engine.map(square, range(5)) == [0, 1, 4, 9, 16]
        assert workers[2].ask("read").get()[:2] == ["first", 2]


class TestLocal(Promises):
    @pytest.fixture(scope="class")
    @classmethod
    def engine(cls):
        found = engine_named("local", threads=2)
        yield found
        found.close()
        found.close()


class TestRay(Promises):
    """A Ray that the engine has started."""

    @pytest.fixture(scope="class")
    @classmethod
    def engine(cls, token):
        found = engine_named("ray", threads=2)
        yield found
        found.close()
        found.close()

    def test_workers_are_processes(self, workers):
        processes = [worker.ask("process").get() for worker in workers]
        assert len({os.getpid(), *processes}) == 4
        assert [worker.where for worker in workers] == [f"127.0.0.1, process {process}" for process in processes]

    def test_arrays_may_not_be_written_to(self, workers):
        for size in (10, 50_000):
            assert workers[0].ask("total", np.ones(size)).get() == (size, False)

    def test_nobody_else_can_reach_it(self, engine, workers):
        """Whatever listens does so on the loopback device, in those processes that we can see."""
        listening = set()
        for line in (
            Path("/proc/net/tcp").read_text().splitlines()[1:] + (Path("/proc/net/tcp6").read_text().splitlines()[1:])
        ):
            _, local, _, state, *rest = line.split()
            if state == "0A":
                listening.add((local.split(":")[0], rest[5]))
        ours = set()
        for process in descendants(os.getpid()) | {os.getpid()}:
            for link in Path(f"/proc/{process}/fd").glob("*"):
                with_name = str(link.readlink()) if link.is_symlink() else ""
                if with_name.startswith("socket:["):
                    ours.add(with_name[8:-1])
        places = {place for place, inode in listening if inode in ours}
        assert places
        assert places <= {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}

    def test_its_folder_is_ours_alone_and_those_of_killed_ones_are_removed(self, engine):
        assert engine._folder.stat().st_mode & 0o077 == 0
        from kilt.engines import ray_engine

        left, other = (Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp")) for prefix in (ray_engine.PREFIX, "kilt-ray-"))
        for folder in (left, other, engine._folder):
            (folder / ".lock").touch()
            os.utime(folder / ".lock", (0, 0))
        ray_engine._sweep()
        assert not left.exists() and other.is_dir() and engine._folder.is_dir()
        shutil.rmtree(other)

    def test_a_worker_that_is_killed_is_lost_and_the_others_are_not(self, engine, workers):
        slow = workers[1].ask("write", "never", 60)
        later = workers[1].ask("read")
        time.sleep(0.2)
        os.kill(int(workers[1].where.rpartition(" ")[2]), signal.SIGKILL)
        began = time.monotonic()
        for answer in (slow, later, workers[1].ask("read")):
            with pytest.raises(WorkerLost, match=r"^worker 1 was lost: its process died$") as caught:
                answer.get()
            assert caught.value.worker == 1
        assert time.monotonic() - began < 50  # nobody waits for what the worker was about to do
        assert workers[0].ask("write", "on").get() > 2
        assert workers[2].ask("read").get()[:2] == ["first", 2]

    def test_a_machine_that_does_not_answer_is_lost(self, engine, monkeypatch):
        """As one does whose cable was pulled: no connection is closed. One that is slow is waited for."""
        (worker,) = engine.hire([Job(Notebook)])
        monkeypatch.setattr("kilt.engines.ray_engine.PROBING", 0.1)
        assert worker.ask("write", "late", 0.5).get() == 1
        monkeypatch.setattr("kilt.engines.ray_engine._is_alive", lambda node: False)
        slow = worker.ask("write", "never", 60)
        with pytest.raises(WorkerLost, match=r"^worker 0 was lost: its machine cannot be reached$"):
            slow.get()
        engine.dismiss([worker])

    def test_whoever_was_dismissed_does_nothing_more(self, engine):
        most = int(0.6 * sum(node["Resources"]["memory"] for node in nodes()))
        (worker,) = engine.hire([Job(Notebook, memory=most)])
        process = worker.ask("process").get()
        slow = worker.ask("write", "never", 60)
        engine.dismiss([worker])
        wait_until(lambda: gone(process), 10)
        with pytest.raises(WorkerLost, match=r"^worker 0 was lost: it was dismissed$"):
            slow.get()
        (another,) = engine.hire([Job(Notebook, memory=most)])  # there is room again
        engine.dismiss([another])

    def test_no_room(self, engine):
        with pytest.raises(EngineError, match=r"no room for worker 1 of 2, which needs 1099.5 GB of memory") as caught:
            engine.hire([Job(Notebook), Job(Notebook, memory=1 << 40)])
        assert "127.0.0.1 has 2 cores and " in str(caught.value)
        assert "use fewer or smaller workers, or a cluster of machines" in str(caught.value)

    def test_a_process_of_map_that_dies_is_replaced(self, engine, tmp_path):
        assert engine.map(dies_once, [tmp_path / "mark"]) == [1]

    def test_one_at_a_time(self, engine):
        with pytest.raises(EngineError, match="connected to Ray already: close the other engine first"):
            engine_named("ray")


def test_names():
    with pytest.raises(EngineError, match="unknown engine 'warp': use one of local, ray"):
        engine_named("warp")
    with pytest.raises(EngineError, match="takes no address, but elsewhere:1 is given"):
        engine_named("local", "elsewhere:1")


def test_nothing_stays_after_an_interruption(tmp_path):
    """A driver that is interrupted like with Ctrl-C, with all that it has started."""
    script = """if True:
        from engine_workers import Notebook
        from kilt.engines import Job, engine_named
        engine = engine_named("ray")
        (worker,) = engine.hire([Job(Notebook)])
        print(engine._folder, flush=True)
        worker.ask("write", "never", 60).get()
    """
    driver = subprocess.Popen(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(kilt.__file__).parents[1]), str(HERE)])},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
    with driver:
        folder = Path(driver.stdout.readline().strip())
        started = descendants(driver.pid)
        assert folder.name.startswith("kilt-ray-")
        assert folder.is_dir()
        assert len(started) > 3
        os.killpg(driver.pid, signal.SIGINT)
        driver.wait(30)
    wait_until(lambda: all(map(gone, started)), 15)
    assert not folder.exists()


def refuse(**_):
    raise ValueError("not today")


class TestAddresses:
    @pytest.mark.parametrize("address", ["nowhere", "ray://127.0.0.1:10001", "host:port", ":6379"])
    def test_that_are_none(self, address):
        with pytest.raises(EngineError, match="use HOST:PORT"):
            engine_named("ray", address)

    def test_where_nobody_listens(self):
        with socket.socket() as line:
            line.bind(("127.0.0.1", 0))
            port = line.getsockname()[1]
        began = time.monotonic()
        with pytest.raises(EngineError, match=f"no Ray cluster at 127.0.0.1:{port}: start one with `ray start --head`"):
            engine_named("ray", f"127.0.0.1:{port}")
        assert time.monotonic() - began < 30  # Ray itself would go on trying for longer

    @pytest.mark.parametrize("address", ["192.0.2.7:6379", "auto"])
    def test_beyond_this_machine_without_a_token(self, address, monkeypatch):
        """Nobody has to show anything there; where Ray is told that it may be so, kilt goes on."""
        monkeypatch.delenv("RAY_AUTH_MODE")
        for name, answer in (
            ("ray_private.services.canonicalize_bootstrap_address", "192.0.2.7:6379"),
            ("ray_engine._is_cluster", True),
            # there is no file with one either
            ("ray_private.maybe_enable_token_auth_if_token_available", False),
        ):
            monkeypatch.setattr(f"kilt.engines.{name}", lambda *_, answer=answer, **__: answer)
        monkeypatch.setattr("kilt.engines.ray_engine.ray.init", refuse)
        with pytest.raises(EngineError, match="there is no token for the Ray cluster at"):
            engine_named("ray", address)
        monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
        with pytest.raises(EngineError, match=r"refuses the connection \(not today\)"):
            engine_named("ray", address)

    def test_where_somebody_else_listens(self, monkeypatch):
        monkeypatch.setattr("kilt.engines.ray_engine.PATIENCE", 0.5)
        with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(EngineError, match="no Ray cluster at"):
            engine_named("ray", f"127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.slow
class TestMachines:
    """Several nodes of Ray on this machine, which take part in one cluster: what is started here is ended here."""

    @pytest.fixture
    def engine(self, cluster):
        found = engine_named("ray", cluster[1])
        yield found
        found.close()
        assert cluster[0].poll() is None  # it is not ours

    def test_workers_are_spread_and_can_be_hired_again(self, start, cluster, engine, capfd):
        head, address = cluster
        other = start("--address", address)
        wait_until(lambda: len(nodes()) == 2, 20)
        jobs = [Job(Notebook, (number,), memory=GB // 2) for number in range(2)]
        workers = engine.hire(jobs)
        processes = [worker.ask("process").get() for worker in workers]
        ((lost, _),) = [found for found in enumerate(processes) if found[1] in descendants(other.pid)]
        assert processes[1 - lost] in descendants(head.pid)
        beside = [Job(Notebook, place=worker.place) for worker in workers]  # a core is left on each machine
        for jobs_beside in (beside[:1], beside[1:], [beside[1], beside[0]]):
            assert engine._places(jobs_beside) == [job.place for job in jobs_beside]
        assert sorted(engine._places([beside[0]] * 2)) == sorted(worker.place for worker in workers)
        with pytest.raises(EngineError, match=r"worker 0 of 1, which needs 3 cores and 0\.0 GB of memory"):
            engine.hire([Job(Notebook, threads=3)])

        end(other)
        began = time.monotonic()
        with pytest.raises(WorkerLost) as caught:
            workers[lost].ask("read").get()
        assert caught.value.worker == lost
        assert "\n" not in str(caught.value)
        assert workers[1 - lost].ask("read").get() == [1 - lost]
        engine.dismiss(workers)
        workers = engine.hire(jobs)
        assert all(worker.ask("process").get() in descendants(head.pid) for worker in workers)
        assert time.monotonic() - began < 120  # Ray itself would wait for the machine to come back
        assert capfd.readouterr().out == ""  # Ray says nothing among what commands print

    def test_another_kilt(self, start, cluster, engine, tmp_path):
        """A machine with a kilt that is a little different."""
        shutil.copytree(Path(kilt.__file__).parent, tmp_path / "kilt", ignore=shutil.ignore_patterns("__pycache__"))
        with (tmp_path / "kilt" / "errors.py").open("a") as file:
            file.write("# a remark\n")
        before = {node["NodeID"] for node in nodes()}  # the one that was killed may be among them for a while
        start("--address", cluster[1], modules=[tmp_path])
        wait_until(lambda: {node["NodeID"] for node in nodes()} - before, 20)
        with pytest.raises(EngineError, match="install the same version on every machine") as caught:
            engine.hire([Job(Notebook), Job(Notebook)])
        assert str(caught.value).count(f"kilt {kilt.__version__} (source ") == 2
        (tmp_path / "kilt" / "engines" / "ray_engine.py").unlink()
        with pytest.raises(EngineError, match=r"worker . did not start, kilt or one of its dependencies is missing"):
            engine.hire([Job(Notebook), Job(Notebook)])
