"""Arrays on disk: a folder with one ``.npy`` file for each, and ``manifest.json``, which says where they came from.

The files are memory-mapped when they are read. Writing goes to a folder beside the place, the manifest last; then the
old artifact is moved aside, the new one moved in, and the old one deleted. Whoever is killed in the middle leaves the
old artifact or the new one, whole: `read` looks aside where the place itself is empty. One process writes at a time.

>>> import tempfile
>>> place = Path(tempfile.mkdtemp()) / "squares"
>>> write(place, "example", {"squares": np.arange(4) ** 2}, figures={"largest": 9})
>>> found = read(place, "example", check=True)
>>> found.arrays["squares"].tolist(), found.figures
([0, 1, 4, 9], {'largest': 9})
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kilt import __version__
from kilt.arrays import Array
from kilt.errors import ArtifactError
from kilt.machine import locked

FORMAT = 1  # of the manifest and the folder; goes up when older readers would not understand them
MANIFEST = "manifest.json"
# On Windows neither an author nor a folder "Cache" around and in it: where caches of kilt 0.1.0 are.
PLACE: dict[str, Any] = {"appauthor": False, "opinion": False}
SPARE = 1 << 16  # bytes beyond the arrays: headers and the manifest


@dataclass(frozen=True)
class Artifact:
    """What `read` found."""

    kind: str
    version: str  # of the kilt that wrote it
    inputs: dict[str, str]  # what it was made from, by fingerprint
    parameters: dict[str, Any]  # how it was made
    figures: dict[str, Any]  # whatever else its writer wanted to say
    arrays: dict[str, Array]  # mapped from the files


def write(
    path: str | Path,
    kind: str,
    arrays: Mapping[str, Array],
    *,
    inputs: Mapping[str, str] | None = None,
    parameters: Mapping[str, Any] | None = None,
    figures: Mapping[str, Any] | None = None,
) -> None:
    """Write an artifact, in the place of an older one if there is one.

    Parameters
    ----------
    path : str or Path
        The folder.
    kind : str
        What it is, in words: `read` asks for the same.
    arrays : mapping of str to ndarray
        By the names of their files.
    inputs : mapping of str to str, optional
        Fingerprints of what it was made from.
    parameters, figures : mapping, optional
        How it was made, and what else is to be said: data that JSON can hold.
    """
    tables = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    with draft(path, kind, sum(table.nbytes for table in tables.values()), inputs, parameters) as new:
        for name, table in tables.items():
            new.save(name, table)
        new.figures.update(figures or {})


@dataclass(frozen=True)
class Draft:
    """An artifact that is being written."""

    folder: Path
    figures: dict[str, Any] = field(default_factory=dict)  # to be said in the manifest
    arrays: dict[str, Array] = field(default_factory=dict)

    def save(self, name: str, table: Array) -> None:
        """Write an array."""
        with (self.folder / f"{name}.npy").open("wb") as file:
            np.save(file, table, allow_pickle=False)
            os.fsync(file.fileno())
        self.arrays[name] = table

    def room(self, name: str, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
        """An array of zeros in its file, to be filled: for what memory has no room for."""
        place = self.folder / f"{name}.npy"
        self.arrays[name] = np.lib.format.open_memmap(place, mode="w+", dtype=np.dtype(dtype), shape=shape)
        return self.arrays[name]


@contextmanager
def draft(
    path: str | Path,
    kind: str,
    size: int,
    inputs: Mapping[str, str] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Iterator[Draft]:
    """Write an artifact of at most `size` bytes piece by piece; where that fails, nothing of it stays."""
    path = Path(path)
    new, old = _beside(path)
    if path.exists() and not (path / MANIFEST).is_file():
        raise ArtifactError(f"{path} is there and is no artifact of kilt: choose another place, or remove it")
    require_room(path, size)
    with os_errors(f"{path} cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        if old.exists() and not path.exists():  # somebody was killed between the two moves
            old.rename(path)
        for leftover in (new, old):
            shutil.rmtree(leftover, ignore_errors=True)
        new.mkdir()
        pages = Draft(new)
        try:
            yield pages
            for array in pages.arrays.values():
                if isinstance(array, np.memmap) and array.mode == "w+":
                    array.flush()
            manifest = {
                "kind": kind,
                "kilt": __version__,
                "format": FORMAT,
                "inputs": dict(inputs or {}),
                "parameters": dict(parameters or {}),
                "figures": pages.figures,
                "arrays": {name: _description(array) for name, array in pages.arrays.items()},
            }
            write_text(new / MANIFEST, json.dumps(manifest, indent=2))
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        if path.exists():
            path.rename(old)
        new.rename(path)
        _sync_folder(path.parent)
        shutil.rmtree(old, ignore_errors=True)


def read(path: str | Path, kind: str, *, check: bool = False, private: bool = False) -> Artifact:
    """Open an artifact; with `check`, read all of it and compare checksums.

    Its arrays are read-only. With `private` they can be written to, and the files stay as they are: kernels that could
    write take no other arrays.
    """
    path = Path(path)
    place, manifest = _manifest(path, kind)
    if manifest["kind"] != kind:
        raise ArtifactError(f"{path} holds a {manifest['kind']}, not a {kind}: check the name")
    if manifest["format"] != FORMAT:
        raise ArtifactError(
            f"{path} is in format {manifest['format']}, written by kilt {manifest.get('kilt')}; kilt {__version__} "
            f"reads format {FORMAT}: use that version, or make the {kind} again"
        )
    arrays = {}
    for name, description in manifest["arrays"].items():
        file = path / f"{name}.npy"
        try:
            array = np.load(place / f"{name}.npy", mmap_mode="c" if private else "r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise ArtifactError(f"{file} is missing or damaged ({error}): make the {kind} again") from None
        seen = _description(array, checksum=check)
        if any(description.get(what) != value for what, value in seen.items()):
            raise ArtifactError(f"{file} is not what {MANIFEST} says it is: make the {kind} again")
        arrays[name] = array
    said = {what: manifest[what] for what in ("kind", "inputs", "parameters", "figures")}
    return Artifact(version=manifest["kilt"], arrays=arrays, **said)


def exists(path: str | Path) -> bool:
    """Whether there is an artifact, of any kind."""
    return _whole(Path(path)) is not None


def kind_of(path: str | Path) -> str:
    """What kind of artifact there is."""
    kind: str = _manifest(Path(path), "artifact")[1]["kind"]
    return kind


def cache_folder() -> Path:
    """Where tables are kept that can be made again: ``$KILT_CACHE``, or the user's own cache folder."""
    import platformdirs  # dear to import

    given = os.environ.get("KILT_CACHE")
    return Path(given) if given else platformdirs.user_cache_path("kilt", **PLACE)


def fingerprint(*parts: str | Array) -> str:
    """A short name for strings and arrays: equal for equal ones, and for no others.

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
            digest.update(_content(part))
    return digest.hexdigest()


def spelled(value: object) -> str:
    """The text of a dataclass for `fingerprint`: its `repr`, but a class that says `SPELLED` goes by that name.

    So a class can be renamed and what is on disk still belongs to it. Fields of dataclasses and items of tuples are
    spelled likewise.

    >>> @dataclass(frozen=True)
    ... class BucketStep:
    ...     SPELLED = "Step"
    ...     buckets: int
    >>> spelled((BucketStep(5), "flop"))
    "(Step(buckets=5), 'flop')"
    """
    if is_dataclass(value) and not isinstance(value, type):
        values = ((one.name, getattr(value, one.name)) for one in fields(value) if one.repr)
        text = ", ".join(f"{name}={spelled(own)}" for name, own in values)
        return f"{getattr(value, 'SPELLED', type(value).__name__)}({text})"
    if type(value) is tuple:
        return f"({', '.join(map(spelled, value))}{',' * (len(value) == 1)})"
    return repr(value)


def require_room(path: Path, size: int) -> None:
    """Raise ArtifactError where the disk that holds `path` has no room for `size` bytes more."""
    folder = path.absolute()
    while not folder.exists():
        folder = folder.parent
    total, _, free = shutil.disk_usage(folder)
    if total and free < size + SPARE:  # what has no size at all is no disk, and fails when written to
        raise ArtifactError(
            f"{path} needs {_megabytes(size + SPARE)}, but the disk has {_megabytes(free)} left: "
            "make room, or choose another place"
        )


def write_text(path: Path, text: str) -> None:
    """Write a small file so that it is whole at any moment: the old text or the new."""
    new = path.with_name(f".{path.name}.new")
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    _sync_folder(path.parent)


@contextmanager
def alone(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Work on an artifact while no other process does; where one does, wait for it, or raise ArtifactError."""
    with ExitStack() as held:
        with os_errors(f"{path} cannot be written"):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                held.enter_context(locked(path.with_name(f".{path.name}.lock"), wait=wait))
            except BlockingIOError:
                raise ArtifactError(f"another process is at work on {path}: wait for it, or stop it") from None
        yield


@contextmanager
def os_errors(what: str) -> Iterator[None]:
    """Turn errors of the operating system into ArtifactErrors that begin with `what`."""
    try:
        yield
    except OSError as error:
        raise ArtifactError(f"{what}: {(error.strerror or str(error)).lower()}") from None


def _beside(path: Path) -> tuple[Path, Path]:
    """Where a new artifact is written, and where the old one waits until it is in place."""
    path = path if path.name else path.absolute()  # "." has a name
    return path.parent / f".{path.name}.new", path.parent / f".{path.name}.old"


def _whole(path: Path) -> Path | None:
    """Where the artifact is: in its place, or aside if somebody was killed between the two moves."""
    return next((place for place in (path, _beside(path)[1]) if (place / MANIFEST).is_file()), None)


def _manifest(path: Path, wanted: str) -> tuple[Path, dict[str, Any]]:
    """Where the artifact is, and what its manifest says."""
    place = _whole(path)
    if place is None:
        raise ArtifactError(f"there is no {wanted} at {path}: check the name, or make it first")
    with os_errors(f"{path} cannot be read"):
        text = (place / MANIFEST).read_text(encoding="utf-8")
    try:
        manifest: dict[str, Any] = json.loads(text)
        said = {"kind", "kilt", "format", "inputs", "parameters", "figures", "arrays"}
        if not isinstance(manifest["kind"], str) or said - set(manifest):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise ArtifactError(f"{path / MANIFEST} is damaged: make the {wanted} again") from None
    return place, manifest


def _description(array: Array, *, checksum: bool = True) -> dict[str, Any]:
    """What the manifest says of an array."""
    seen: dict[str, Any] = {"dtype": array.dtype.str, "shape": list(array.shape)}
    if checksum:
        seen["blake2b"] = blake2b(_content(array), digest_size=16).hexdigest()
    return seen


def _content(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _sync_folder(folder: Path) -> None:
    """Make moves in a folder last through a power cut; only POSIX can."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
