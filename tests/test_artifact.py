import errno
import json
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

from kilt import artifact, checksums
from kilt.artifact import fingerprint, kind_of, read, write
from kilt.errors import ArtifactError

ARRAYS = {
    "table": np.arange(12.0).reshape(3, 4),
    "turned": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
    "number": np.array(7),
    "nothing": np.zeros((0, 3), dtype=np.uint8),
}
WRITE_FOR_EVER = """
import sys, numpy as np
from kilt.artifact import exists, read, write
k = int(read(sys.argv[1], "test").figures["k"]) if exists(sys.argv[1]) else 0
while True:
    k += 1
    write(sys.argv[1], "test", {name: np.full(5000, k) for name in "ab"}, figures={"k": k})
"""


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "thing"
    write(path, "test", ARRAYS, inputs={"game": "abc"}, parameters={"seed": 3}, figures={"seconds": 1.5})
    return path


def test_what_is_written_can_be_read(place):
    found = read(place, "test", check=True)
    assert (found.kind, found.inputs, found.parameters, found.figures) == (
        "test",
        {"game": "abc"},
        {"seed": 3},
        {"seconds": 1.5},
    )
    for name, array in ARRAYS.items():
        assert isinstance(found.arrays[name], np.memmap)
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array)
    assert {path.name for path in place.iterdir()} == {"manifest.json", *(f"{name}.npy" for name in ARRAYS)}


def test_private_arrays_can_be_written_to_and_the_files_stay_as_they_are(place):
    with pytest.raises(ValueError, match="read-only"):
        read(place, "test").arrays["table"][0, 0] = 9
    read(place, "test", private=True).arrays["table"][0, 0] = 9
    np.testing.assert_array_equal(read(place, "test", check=True).arrays["table"], ARRAYS["table"])


def test_kinds(place):
    assert kind_of(place) == "test"
    with pytest.raises(ArtifactError, match=r"no artifact at .*nowhere"):
        kind_of(place.parent / "nowhere")


def test_a_new_artifact_replaces_the_old_one(place):
    write(place, "test", {"other": np.ones(2)})
    assert list(read(place, "test").arrays) == ["other"]
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_mapped_arrays_outlive_their_replacement(place):
    old = read(place, "test").arrays["table"]
    write(place, "test", {"table": np.zeros((3, 4))})
    np.testing.assert_array_equal(old, ARRAYS["table"])


class Killed(BaseException):
    pass


@pytest.mark.parametrize("after", range(14))
def test_dying_at_any_step_leaves_one_of_the_two(place, monkeypatch, after):
    """A kill -9 runs no clean-up; neither does this exception, whichever system call it takes the place of."""
    calls = iter(range(after))

    def mortal(function):
        def call(*args, **kwargs):
            if next(calls, None) is None:
                raise Killed
            return function(*args, **kwargs)

        return call

    with monkeypatch.context() as patch:
        for where, name in ((artifact.os, "fsync"), (artifact.shutil, "rmtree"), (artifact.np, "save")):
            patch.setattr(where, name, mortal(getattr(where, name)))
        for name in ("rename", "replace", "mkdir"):
            patch.setattr(artifact.Path, name, mortal(getattr(artifact.Path, name)))
        try:
            write(place, "test", {"table": np.zeros(9)})
            assert after >= 13  # fewer system calls: the test has lost its object
        except Killed:
            pass
    assert read(place, "test", check=True).arrays["table"].shape in {(3, 4), (9,)}
    write(place, "test", {"table": np.ones(2)})
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_a_folder_can_record_which_artifact_belongs_in_it(place):
    other = shutil.copytree(place, place.with_name("other"))
    write(place, "test", {"other": np.ones(2)})
    (place.parent / "run.json").write_text(json.dumps({"artifacts": {"thing": []}}))
    with pytest.raises(ArtifactError, match=r"thing is of another run.*run\.json records none\)"):
        read(place, "test")
    write(place, "test", {"other": np.ones(2)})
    read(place, "test")
    shutil.rmtree(place)
    shutil.copytree(other, place)
    for opening in (kind_of, lambda place: read(place, "test"), artifact.checksum_of):
        with pytest.raises(ArtifactError, match=r"thing is of another run.*its checksum is \w{32}; .*records \w{32}\)"):
            opening(place)
    read(other, "test")  # nothing is recorded of it


@pytest.mark.parametrize("after", range(20))
def test_dying_at_any_step_leaves_what_is_recorded(place, monkeypatch, after):
    """The record names both while one takes the place of the other."""
    (place.parent / "run.json").write_text(json.dumps({"artifacts": {"thing": [artifact.checksum_of(place)]}}))
    calls = iter(range(after))

    def mortal(function):
        def call(*args, **kwargs):
            if next(calls, None) is None:
                raise Killed
            return function(*args, **kwargs)

        return call

    with monkeypatch.context() as patch:
        for where, name in ((artifact.os, "fsync"), (artifact.shutil, "rmtree"), (artifact.np, "save")):
            patch.setattr(where, name, mortal(getattr(where, name)))
        for name in ("rename", "replace", "mkdir"):
            patch.setattr(artifact.Path, name, mortal(getattr(artifact.Path, name)))
        try:
            write(place, "test", {"table": np.zeros(9)})
            assert after >= 17
        except Killed:
            pass
    assert read(place, "test", check=True).arrays["table"].shape in {(3, 4), (9,)}
    write(place, "test", {"table": np.ones(2)})
    assert artifact.recorded_checksums(place) == [artifact.checksum_of(place)]


@pytest.mark.parametrize("lost", ["gone", "a folder"])
def test_an_artifact_that_has_lost_its_manifest_is_made_again(place, lost):
    (place / "manifest.json").unlink()
    if lost == "a folder":
        (place / "manifest.json").mkdir()
    write(place, "test", ARRAYS)
    np.testing.assert_array_equal(read(place, "test", check=True).arrays["table"], ARRAYS["table"])
    (place / "manifest.json").unlink()
    with pytest.raises(ArtifactError, match="thing exists and is no artifact of kilt"):
        write(place, "test", {"table": np.zeros(3)})  # which has no file of the name of the others
    assert {file.name for file in place.iterdir()} == {f"{name}.npy" for name in ARRAYS}


@pytest.mark.parametrize("piece", [checksums.PIECE, checksums.BLOCK + 3])
def test_every_byte_of_a_large_file_is_read(tmp_path, monkeypatch, piece):
    """Of several blocks, and beyond the size from which on a file is `LARGE`: both checksums see the last byte."""
    monkeypatch.setattr(checksums, "PIECE", piece)  # above its size, a file has checksums of pieces
    size = checksums.LARGE + 3 * checksums.BLOCK + 5
    write(tmp_path / "large", "test", {"table": np.arange(size, dtype=np.uint8)})
    file = tmp_path / "large" / "table.npy"
    for place in (-1, -checksums.BLOCK, checksums.LARGE + 1000, checksums.LARGE // 2):
        flip(file, place)
        for check in (False, True):
            with pytest.raises(ArtifactError, match="does not match"):
                read(tmp_path / "large", "test", check=check)
        flip(file, place)
    read(tmp_path / "large", "test", check=True)


def test_pieces_are_read_by_their_own_size(tmp_path, monkeypatch):
    """A release with another size of pieces, or with none, can read what this one writes, and the other way round."""
    for piece in (1000, 10**6):
        monkeypatch.setattr(checksums, "PIECE", piece)
        write(tmp_path / str(piece), "test", {"table": np.arange(5000)})
    said = [
        json.loads((tmp_path / name / "manifest.json").read_text())["arrays"]["table"] for name in ("1000", "1000000")
    ]
    assert [one.get("piece") for one in said] == [1000, None]
    assert said[0]["blake2b"] != said[1]["blake2b"]
    for piece in (1000, 10**6):
        for check in (False, True):
            np.testing.assert_array_equal(read(tmp_path / str(piece), "test", check=check).arrays["table"], range(5000))


def test_kill_minus_nine(tmp_path):
    """A child that writes without end is killed at odd moments; what it leaves is always whole."""
    path, seen = tmp_path / "thing", 0
    for round_ in range(8):
        child = subprocess.Popen([sys.executable, "-c", WRITE_FOR_EVER, str(path)])
        try:
            deadline = time.monotonic() + 30
            while not (artifact.exists(path) and read_k(path) > seen):
                assert child.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            time.sleep(0.0137 * round_)
        finally:
            child.kill()
            child.wait()
        found = read(path, "test", check=True)
        k = found.figures["k"]
        assert k > seen
        assert all((array == k).all() for array in found.arrays.values())
        seen = k


def read_k(path):
    try:
        return read(path, "test").figures["k"]
    except ArtifactError:  # replaced while we were looking
        return 0


def spoil_manifest(place, **changes):
    manifest = json.loads((place / "manifest.json").read_text())
    (place / "manifest.json").write_text(json.dumps(manifest | changes))


def test_reading_says_what_is_wrong(place):
    with pytest.raises(ArtifactError, match=r"no strategy at .*nowhere"):
        read(place.parent / "nowhere", "strategy")
    with pytest.raises(ArtifactError, match="holds a test, not a strategy"):
        read(place, "strategy")
    spoil_manifest(place, format=99)
    with pytest.raises(ArtifactError, match=r"format 99.*reads format 1"):
        read(place, "test")
    (place / "manifest.json").write_text("{")
    with pytest.raises(ArtifactError, match=r"manifest.json is damaged"):
        read(place, "test")


def flip(file, place=-1, bit=1):
    """Flip a bit of one byte of a file; its time of modification stays as it was."""
    stat = file.stat()
    with file.open("r+b") as opened:
        opened.seek(place, 0 if place >= 0 else 2)
        byte = opened.read(1)[0]
        opened.seek(-1, 1)
        opened.write(bytes([byte ^ bit]))
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_changed_bytes_are_found(place):
    flip(place / "table.npy")
    for check in (False, True):
        with pytest.raises(ArtifactError, match=r"table\.npy does not match manifest\.json"):
            read(place, "test", check=check)


def test_no_byte_of_an_artifact_can_change_unnoticed(place):
    """A bit of every seventh byte in turn: of arrays, of their headers, of the manifest."""
    quiet, tried = [], 0
    for file in sorted(place.iterdir()):
        whole = file.read_bytes()
        for k in range(0, len(whole), 7):
            spoilt, tried = bytearray(whole), tried + 1
            spoilt[k] ^= 1 << k % 7
            file.write_bytes(spoilt)
            try:
                found = read(place, "test")
            except ArtifactError as error:
                assert file.name in str(error) or f"{place} is in format" in str(error)
            else:
                quiet.append((file.name, k))
                assert (found.kind, found.inputs, found.figures) == ("test", {"game": "abc"}, {"seconds": 1.5})
                for name, array in ARRAYS.items():
                    np.testing.assert_array_equal(found.arrays[name], array)
        file.write_bytes(whole)
    assert len(quiet) < 0.02 * tried  # blanks that are others, and a checksum that goes by another name


def test_large_files_are_read_once_until_they_change(tmp_path, monkeypatch):
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(checksums, "LARGE", 100)
    place = tmp_path / "large"
    write(place, "test", {"table": np.arange(100)})
    read(place, "test")
    assert not (tmp_path / "cache").exists()  # it was written just now: the next change may have the same time
    long_ago = time.time_ns() - 2 * checksums.SETTLED
    os.utime(place / "table.npy", ns=(long_ago, long_ago))
    read(place, "test")
    flip(place / "table.npy")
    read(place, "test")  # at once: nothing tells that it has changed
    with pytest.raises(ArtifactError, match="does not match"):
        read(place, "test", check=True)
    os.utime(place / "table.npy")
    with pytest.raises(ArtifactError, match="does not match"):
        read(place, "test")


def test_what_took_long_to_write_is_not_read_again(tmp_path, monkeypatch):
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(checksums, "LARGE", 100)
    monkeypatch.setattr(checksums, "SETTLED", -1)
    write(tmp_path / "large", "test", {"table": np.arange(100)})
    flip(tmp_path / "large" / "table.npy")
    read(tmp_path / "large", "test")


def test_a_cache_that_cannot_be_written_costs_time_alone(tmp_path, place, monkeypatch):
    (tmp_path / "cache").write_text("no folder")
    monkeypatch.setenv("KILT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(checksums, "LARGE", 1)
    monkeypatch.setattr(checksums, "SETTLED", -1)
    read(place, "test")
    flip(place / "table.npy")
    with pytest.raises(ArtifactError, match="does not match"):
        read(place, "test")


def test_missing_short_and_other_arrays_are_found(place):
    file = place / "table.npy"
    np.save(file, np.zeros(3))
    with pytest.raises(ArtifactError, match=r"table\.npy does not match"):
        read(place, "test")
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(ArtifactError, match=r"table\.npy is missing or damaged"):
        read(place, "test")
    file.unlink()
    with pytest.raises(ArtifactError, match=r"table\.npy is missing or damaged"):
        read(place, "test")


def test_no_room_is_found_before_writing(place, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: (10**9, 10**9 - 1_500_000, 1_500_000))
    with pytest.raises(ArtifactError, match=r"needs 8\.1 MB, but the disk has 1\.5 MB"):
        write(place, "test", {"table": np.zeros(1_000_000)})
    assert "number" in read(place, "test", check=True).arrays
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_a_full_disk_leaves_the_old_artifact(place, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(artifact.np, "save", full)
    with pytest.raises(ArtifactError, match=r"thing cannot be written: no space left"):
        write(place, "test", {"table": np.zeros(3)})
    assert "number" in read(place, "test", check=True).arrays
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_it_is_said_why_a_table_could_not_be_written_to_its_end(tmp_path):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, before[1]))
    try:
        with pytest.raises(ArtifactError, match=r"thing cannot be written: file too large$"):
            write(tmp_path / "thing", "test", {"table": np.zeros(100_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_space_is_taken_before_mapped_memory_is_written(tmp_path):
    """A disk that is full then is a bus error, and no exception."""
    with artifact.draft(tmp_path / "thing", "test", 0) as new:
        table = new.allocate("table", np.uint16, (1000, 1000))
        assert (tmp_path / ".thing.new" / "table.npy").stat().st_blocks * 512 >= table.nbytes
        assert not table.any()
        table[:] = 7
        assert new.allocate("nothing", np.uint8, (0, 3)).shape == (0, 3)
    assert (read(tmp_path / "thing", "test", check=True).arrays["table"] == 7).all()


@pytest.mark.parametrize("error", [errno.EOPNOTSUPP, errno.ENOSPC])
def test_space_that_cannot_be_taken(tmp_path, monkeypatch, error):
    """Where the system cannot reserve space, zeros are written; where there is none, that is said."""

    def refuse(*args):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(artifact.os, "posix_fallocate", refuse, raising=False)
    monkeypatch.setattr(artifact, "BLOCK", 1000)
    try:
        with artifact.draft(tmp_path / "thing", "test", 0) as new:
            table = new.allocate("table", np.uint8, (2500,))
            assert (tmp_path / ".thing.new" / "table.npy").stat().st_blocks * 512 >= table.nbytes
            assert not table.any()
        assert error == errno.EOPNOTSUPP
    except ArtifactError as said:
        assert error == errno.ENOSPC
        assert str(said) == f"{tmp_path / 'thing'} cannot be written: no space left on device"
        assert not any(tmp_path.iterdir())


def test_other_folders_are_not_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(ArtifactError, match="mine exists and is no artifact"):
        write(tmp_path / "mine", "test", {})
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_fingerprints_tell_things_apart():
    numbers = np.arange(6)
    things = [
        (),
        ("ab",),
        ("a", "b"),
        (numbers,),
        (numbers.astype(np.int32),),
        (numbers.reshape(2, 3),),
        (numbers[:3], numbers[3:]),
        (str(numbers),),
    ]
    assert len({fingerprint(*parts) for parts in things}) == len(things)
    assert fingerprint(np.asfortranarray(numbers.reshape(2, 3))) == fingerprint(numbers.reshape(2, 3))
