"""Read and write artifacts: folders of NumPy arrays, each with a manifest that records their origin.

The files are memory-mapped when they are read, and compared with the checksums in the manifest: large files once per
machine, see `read`. A new artifact is written to a temporary folder next to its path, with the manifest last; then the
old artifact is moved aside, the new one moved in, and the old one deleted. If the process is killed in between, either
the old or the new artifact is complete: `read` also looks in the place of the moved one. Only one process writes at a
time.

If a folder contains a ``run.json``, this file can record which artifacts belong in the folder, by the checksums of
their manifests: see `recorded_checksums`. `draft` updates the record, and an artifact from another folder is refused.

>>> import tempfile
>>> place = Path(tempfile.mkdtemp()) / "squares"
>>> write(place, "example", {"squares": np.arange(4) ** 2}, figures={"largest": 9})
>>> found = read(place, "example", check=True)
>>> found.arrays["squares"].tolist(), found.figures
([0, 1, 4, 9], {'largest': 9})
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from hashlib import blake2b
from math import inf, prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from kilt import __version__
from kilt.arrays import Array, Deferred, data_type
from kilt.checksums import BLOCK, CHECKSUM, content_of, describe, is_whole, remember, seal_of, state_of
from kilt.errors import ArtifactError, KiltError
from kilt.machine import locked

FORMAT = 1  # of the manifest and the folder; raised when older versions of kilt could not read them
MANIFEST = "manifest.json"
RUN, RECORD = "run.json", "artifacts"  # the file of a folder that records its artifacts, and the key of that record
SUFFIXES = (".npy", ".zst", ".json")  # suffixes of the files of artifacts
SPARE = 1 << 16  # bytes beyond the arrays: headers and the manifest
REMEDY = "make it again, or restore it from an undamaged copy"
SAID: dict[str, type] = {  # types of the entries of the manifest
    "kind": str,
    "kilt": str,
    "format": int,
    "inputs": dict,
    "parameters": dict,
    "figures": dict,
    "arrays": dict,
}


@dataclass(frozen=True)
class Artifact:
    """An opened artifact: its arrays, mapped from disk, and the data of its manifest."""

    kind: str
    version: str  # version of kilt that wrote it
    inputs: dict[str, str]  # fingerprints of the data it was made from
    parameters: dict[str, Any]  # how it was made
    figures: dict[str, Any]  # other data from its writer
    arrays: dict[str, Array]  # mapped from the files


def write(
    path: str | Path,
    kind: str,
    arrays: Mapping[str, Array | Deferred],
    *,
    inputs: Mapping[str, str] | None = None,
    parameters: Mapping[str, Any] | None = None,
    figures: Mapping[str, Any] | None = None,
) -> None:
    """Write arrays and metadata as an artifact, and replace any older one.

    Parameters
    ----------
    path : str or Path
        Folder of the artifact.
    kind : str
        Description of the kind, which `read` checks.
    arrays : mapping of str to ndarray
        Arrays by the names of their files. Deferred arrays are written directly to their files, and need not fit into
        memory.
    inputs : mapping of str to str, optional
        Fingerprints of the data it was made from.
    parameters, figures : mapping, optional
        How it was made, and other data that JSON can represent.
    """
    tables = {
        name: array if isinstance(array, Deferred) else np.asarray(array, order="C") for name, array in arrays.items()
    }
    with draft(path, kind, sum(table.nbytes for table in tables.values()), inputs, parameters) as new:
        for name, table in tables.items():
            if isinstance(table, Deferred):
                table.fill(new.allocate(name, table.dtype, table.shape))
            else:
                new.save(name, table)
        new.figures.update(figures or {})


@dataclass(frozen=True)
class Draft:
    """An artifact that is still being written, array by array."""

    folder: Path
    inputs: dict[str, str] = field(default_factory=dict)  # for the manifest: fingerprints of the data it was made from
    figures: dict[str, Any] = field(default_factory=dict)  # for the manifest: other data
    arrays: dict[str, Array] = field(default_factory=dict)

    def save(self, name: str, table: Array) -> None:
        """Write an array to a file of the artifact."""
        # For files opened only for writing, numpy uses its own function, which hides the reason of errors.
        with (self.folder / f"{name}.npy").open("w+b") as file:
            np.save(file, table, allow_pickle=False)
            os.fsync(file.fileno())
        self.arrays[name] = table

    def allocate(self, name: str, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
        """Create a file of zeros, and map it to a writable array that may be larger than memory.

        The disk space is reserved now, because writing to mapped memory on a full disk would kill the process.
        """
        place, dtype = self.folder / f"{name}.npy", data_type(dtype)
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        with place.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            file.flush()
            _reserve(file, prod(shape) * dtype.itemsize)
        self.arrays[name] = np.lib.format.open_memmap(place, mode="r+")
        return self.arrays[name]


@contextmanager
def draft(
    path: str | Path,
    kind: str,
    size: int,
    inputs: Mapping[str, str] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Iterator[Draft]:
    """Open a new artifact for writing its arrays, and delete it if an error occurs.

    Together, the arrays take at most `size` bytes.

    It replaces an older artifact, or the remains of one that has lost its manifest: a folder in which every file has
    the name of a file of the new artifact. Any other folder is refused.
    """
    path = Path(path)
    new, old = _beside(path)
    remains = path.exists() and not (path / MANIFEST).is_file()
    if remains and not (path.is_dir() and all(Path(name).suffix in SUFFIXES for name in _names(path))):
        raise _occupied(path)
    require_room(path, size)
    with os_errors(f"{path} cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        if old.exists() and not path.exists():  # a process was killed between the two moves
            old.rename(path)
        for leftover in (new, old):
            shutil.rmtree(leftover, ignore_errors=True)
        new.mkdir()
        pages = Draft(new, dict(inputs or {}))
        try:
            yield pages
            for array in pages.arrays.values():
                if isinstance(array, np.memmap) and array.mode == "r+":
                    array.flush()
            manifest: dict[str, Any] = {
                "kind": kind,
                "kilt": __version__,
                "format": FORMAT,
                "inputs": pages.inputs,
                "parameters": dict(parameters or {}),
                "figures": pages.figures,
                "arrays": {name: describe(array) for name, array in pages.arrays.items()},
            }
            manifest[CHECKSUM] = seal_of(manifest)
            write_text(new / MANIFEST, json.dumps(manifest, indent=2))
            if remains and not _names(path) <= _names(new):
                raise _occupied(path)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        before = recorded_checksums(path)
        # a process killed before the new artifact is in place leaves the old one, and its record
        if before is not None:
            _record(path, [*before, manifest[CHECKSUM]])
        if path.exists():
            path.rename(old)
        new.rename(path)
        _sync_folder(path.parent)
        if before is not None:
            _record(path, [manifest[CHECKSUM]])
        shutil.rmtree(old, ignore_errors=True)
        for name, said in manifest["arrays"].items():
            file = path / f"{name}.npy"
            remember(file, state_of(file, said[CHECKSUM]))


def read(path: str | Path, kind: str, *, check: bool = False, private: bool = False, remedy: str = "") -> Artifact:
    """Open an artifact, and check its files against their checksums.

    Large files are read once per machine: a correct checksum is stored in the cache folder, and remains valid as long
    as size, modification time and inode of the file do not change.

    Parameters
    ----------
    path : str or Path
        Folder of the artifact.
    kind : str
        Required kind: see `write`.
    check : bool
        Whether to read all files again, including those whose checksums were correct before.
    private : bool
        Whether the arrays are writable copies on write; the files do not change. Kernels compiled for writable arrays
        accept no others.
    remedy : str
        Remedy for error messages about damage. Default: make it again.

    Returns
    -------
    Artifact
        The opened artifact.

    Raises
    ------
    ArtifactError
        If the artifact is missing, damaged, or of another kind or format.
    """
    path, remedy = Path(path), remedy or f"make the {kind} again"
    place, manifest = _manifest(path, kind, remedy)
    if manifest["kind"] != kind:
        raise ArtifactError(f"{path} holds a {manifest['kind']}, not a {kind}: check the name")
    arrays: dict[str, Array] = {}
    for name, description in manifest["arrays"].items():
        file = path / f"{name}.npy"
        try:
            array = np.lib.format.open_memmap(place / f"{name}.npy", mode="c" if private else "r")
        except Exception as error:  # any error that a damaged header causes
            raise ArtifactError(f"{file} is missing or damaged ({error}): {remedy}") from None
        with os_errors(f"{file} cannot be read"):
            whole = is_whole(place / f"{name}.npy", array, description, again=check)
        if not whole:
            raise ArtifactError(f"{file} does not match {MANIFEST}: {remedy}")
        arrays[name] = array
    said = {what: manifest[what] for what in ("kind", "inputs", "parameters", "figures")}
    return Artifact(version=manifest["kilt"], arrays=arrays, **said)


@contextmanager
def damage_errors(path: Path, remedy: str) -> Iterator[None]:
    """Turn errors about missing or malformed data of an artifact into ArtifactError.

    >>> with damage_errors(Path("run/strategy"), "solve again"):
    ...     {}["game"]
    Traceback (most recent call last):
    kilt.errors.ArtifactError: run/strategy is damaged (it has no 'game'): solve again
    """
    try:
        yield
    except ArtifactError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, KiltError) as error:
        said = f"it has no {error}" if isinstance(error, KeyError) else error
        raise ArtifactError(f"{path} is damaged ({said}): {remedy}") from None


def recorded_checksums(path: Path) -> list[str] | None:
    """Return the checksums that a run recorded for one of its artifacts.

    There is one checksum, none before the artifact is first written, or two while it is being replaced. None means that
    there is no such record, and any artifact is accepted.

    >>> import tempfile
    >>> run = Path(tempfile.mkdtemp())
    >>> write_text(run / RUN, json.dumps({RECORD: {"squares": []}}))
    >>> recorded_checksums(run / "squares"), recorded_checksums(run / "cubes")
    ([], None)
    >>> write(run / "squares", "example", {"squares": np.arange(4) ** 2})
    >>> recorded_checksums(run / "squares") == [checksum_of(run / "squares")]
    True
    """
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        names = json.loads((path.absolute().parent / RUN).read_bytes())[RECORD][path.absolute().name]
        if isinstance(names, list):
            return names
    return None


def checksum_of(path: Path) -> str:
    """Return the checksum of an artifact, which is that of its manifest."""
    return seal_of(_manifest(path, "artifact", REMEDY)[1])


def exists(path: str | Path) -> bool:
    """Return whether a path holds an artifact, of any kind."""
    return _whole(Path(path)) is not None


def kind_of(path: str | Path) -> str:
    """Return the kind of the artifact at a path, as recorded in its manifest."""
    kind: str = _manifest(Path(path), "artifact", REMEDY)[1]["kind"]
    return kind


def fingerprint(*parts: str | Array) -> str:
    """Return a short hash of texts and arrays, to recognise equal inputs.

    >>> fingerprint("kuhn", np.arange(3))
    '4a075bfdcce8d09f'
    """
    digest = blake2b(digest_size=8)
    for part in parts:
        if isinstance(part, str):
            text = part.encode()
            digest.update(f"text {len(text)} ".encode())
            digest.update(text)
        else:
            digest.update(f"array {part.dtype.str} {part.shape} ".encode())
            digest.update(content_of(part))
    return digest.hexdigest()


def stable_repr(value: object) -> str:
    """Return a text for an object that stays the same when its class is renamed.

    It is the `repr`, with the class attribute `REPR_NAME`, if it is set, in place of the name of the class. A class can
    thus be renamed without invalidating files on disk. Fields of dataclasses and items of tuples are
    treated in the same way.

    >>> @dataclass(frozen=True)
    ... class BucketStep:
    ...     REPR_NAME = "Step"
    ...     buckets: int
    >>> stable_repr((BucketStep(5), "flop"))
    "(Step(buckets=5), 'flop')"
    """
    if is_dataclass(value) and not isinstance(value, type):
        values = ((one.name, getattr(value, one.name)) for one in fields(value) if one.repr)
        text = ", ".join(f"{name}={stable_repr(own)}" for name, own in values)
        return f"{getattr(value, 'REPR_NAME', type(value).__name__)}({text})"
    if type(value) is tuple:
        return f"({', '.join(map(stable_repr, value))}{',' * (len(value) == 1)})"
    return repr(value)


def require_room(path: Path, size: int) -> None:
    """Raise ArtifactError unless the disk that holds `path` has `size` free bytes."""
    free = free_space(path)
    if free < size + SPARE:
        raise ArtifactError(
            f"{path} needs {_megabytes(size + SPARE)}, but the disk has {_megabytes(free)} left: "
            "make room, or choose another place"
        )


def free_space(path: Path) -> float:
    """Return the number of free bytes on the disk that holds `path`."""
    folder = path.absolute()
    while not folder.exists():
        folder = folder.parent
    total, _, free = shutil.disk_usage(folder)
    return free if total else inf  # a file system without a size is no disk, and writing to it fails


def write_text(path: Path, text: str) -> None:
    """Replace the content of a small file atomically: readers see either the old text or the new one."""
    new = path.with_name(f".{path.name}.new")
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    _sync_folder(path.parent)


@contextmanager
def exclusive_access(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Lock an artifact against other processes; if it is locked, wait or raise ArtifactError."""
    with ExitStack() as held:
        with os_errors(f"{path} cannot be written"):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                held.enter_context(locked(_hidden(path, "lock"), wait=wait))
            except BlockingIOError:
                raise ArtifactError(f"another process is at work on {path}: wait for it, or stop it") from None
        yield


@contextmanager
def os_errors(what: str) -> Iterator[None]:
    """Turn operating system errors into ArtifactErrors whose messages begin with `what`."""
    try:
        yield
    except OSError as error:
        raise ArtifactError(f"{what}: {(error.strerror or str(error)).lower()}") from None


def _beside(path: Path) -> tuple[Path, Path]:
    """Return two temporary paths: one for the new artifact, and one to which the old artifact is moved."""
    return _hidden(path, "new"), _hidden(path, "old")


def _hidden(path: Path, what: str) -> Path:
    """Return the path of a hidden file next to `path`, named ``.NAME.WHAT``."""
    path = path if path.name else path.absolute()  # "." has a name
    return path.parent / f".{path.name}.{what}"


def _whole(path: Path) -> Path | None:
    """Return the complete artifact's path, which differs from `path` if a process died while replacing the artifact."""
    return next((place for place in (path, _beside(path)[1]) if (place / MANIFEST).is_file()), None)


def _names(folder: Path) -> set[str]:
    """Return the names of the files in a folder, except hidden files and the manifest."""
    return {file.name for file in folder.iterdir() if not file.name.startswith(".") and file.name != MANIFEST}


def _occupied(path: Path) -> ArtifactError:
    return ArtifactError(f"{path} exists and is no artifact of kilt: choose another place, or remove it")


def _record(path: Path, names: list[str]) -> None:
    """Record an artifact's valid manifest checksums in ``run.json``, if that file has an entry for the artifact."""
    file = path.absolute().parent / RUN
    said = json.loads(file.read_bytes())
    said[RECORD][path.absolute().name] = names
    write_text(file, json.dumps(said, indent=2) + "\n")


def _manifest(path: Path, wanted: str, remedy: str) -> tuple[Path, dict[str, Any]]:
    """Return the path and the manifest of an artifact. Manifests of kilt 0.1.0 contain no checksum of themselves."""
    place = _whole(path)
    if place is None:
        raise ArtifactError(f"there is no {wanted} at {path}: check the name, or make it first")
    with os_errors(f"{path} cannot be read"):
        text = (place / MANIFEST).read_bytes()
    try:
        manifest: dict[str, Any] = json.loads(text)
        form, version = manifest["format"], manifest["kilt"]
        if form == FORMAT and not _sound(manifest):
            raise ValueError
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ArtifactError(f"{path / MANIFEST} is damaged: {remedy}") from None
    if form != FORMAT:
        raise ArtifactError(
            f"{path} is in format {form}, written by kilt {version}; kilt {__version__} reads format {FORMAT}: "
            f"use that version, or {remedy}"
        )
    names = recorded_checksums(path)
    if names is not None and (seal := seal_of(manifest)) not in names:
        raise ArtifactError(
            f"{path} is of another run or another state of this one (its checksum is {seal}; "
            f"{path.parent / RUN} records {' or '.join(map(str, names)) or 'none'}): {remedy}"
        )
    return place, manifest


def _sound(manifest: dict[str, Any]) -> bool:
    """Return whether a manifest has all entries and, if it contains its own checksum, matches it."""
    said = all(isinstance(manifest[what], kind) for what, kind in SAID.items())
    arrays = manifest["arrays"].items()
    named = all(Path(name).name == name and isinstance(one, dict) for name, one in arrays)
    return said and named and manifest.get(CHECKSUM) in (None, seal_of(manifest))


def _reserve(file: BinaryIO, size: int) -> None:
    """Reserve disk space for the next `size` bytes of a file as zeros. Raises OSError if the disk is full."""
    start = file.tell()
    if size and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), start, size)
            return
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise
    for done in range(0, size, BLOCK):  # without support by the system: write zeros
        file.write(bytes(min(BLOCK, size - done)))


def _sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that renames in it survive a power failure. Only POSIX systems support this."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.1f} MB"
