"""Arrays in one compressed file: a zip archive with an ``.npy`` file for each, and a ``manifest.json``.

An `artifact` is a folder of large tables that are mapped; an archive is small, can be sent, and is read whole.

>>> import tempfile
>>> file = Path(tempfile.mkdtemp()) / "squares.zip"
>>> write(file, "example", {"squares": np.arange(4) ** 2}, {"largest": 9})
>>> arrays, said = read(file, "example")
>>> arrays["squares"].tolist(), said
([0, 1, 4, 9], {'largest': 9})
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from lzma import LZMAError
from pathlib import Path
from typing import Any
from zipfile import ZIP_LZMA, BadZipFile, ZipFile, ZipInfo

import numpy as np

from kilt.arrays import Array
from kilt.artifact import MANIFEST, os_errors
from kilt.errors import ArtifactError

FORMAT = 1  # goes up when older readers would not understand the file


def write(file: Path, kind: str, arrays: Mapping[str, Array], said: Mapping[str, Any]) -> None:
    """Write arrays and what is said of them; equal ones make equal files. What was there before is replaced.

    Parameters
    ----------
    file : Path
        Where to.
    kind : str
        What it holds, in words.
    arrays : mapping of str to ndarray
        By name.
    said : mapping
        Whatever JSON can hold.
    """
    new = file.with_name(f".{file.name}.new")
    with os_errors(f"{file} cannot be written"):
        with ZipFile(new, "w", ZIP_LZMA) as archive:
            manifest = {"kind": kind, "format": FORMAT, "said": said}
            archive.writestr(_entry(MANIFEST), json.dumps(manifest, sort_keys=True))
            for name, array in sorted(arrays.items()):
                with archive.open(_entry(f"{name}.npy"), "w") as entry:
                    np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)
        new.replace(file)


def read(file: Path, kind: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays of an archive, in memory, and what is said of them; ArtifactError where it is damaged."""
    try:
        with os_errors(f"{file} cannot be read"), ZipFile(file) as archive:
            manifest = json.loads(archive.read(MANIFEST))
            if (manifest["kind"], manifest["format"]) != (kind, FORMAT):
                raise ArtifactError(
                    f"{file} holds a {manifest['kind']} of format {manifest['format']}, not a {kind} of format "
                    f"{FORMAT}: check the name, or use the kilt that made it"
                )
            arrays: dict[str, Array] = {}
            for name in archive.namelist():
                if name != MANIFEST:
                    with archive.open(name) as entry:
                        arrays[name.removesuffix(".npy")] = np.lib.format.read_array(entry, allow_pickle=False)
            return arrays, dict(manifest["said"])
    except (BadZipFile, LZMAError, LookupError, ValueError, TypeError, EOFError, NotImplementedError) as error:
        raise ArtifactError(f"{file} is no archive, or is damaged ({error}): take it from where it is whole") from None


def _entry(name: str) -> ZipInfo:
    """An entry without a date: the same content makes the same file."""
    entry = ZipInfo(name)
    entry.compress_type = ZIP_LZMA
    return entry
