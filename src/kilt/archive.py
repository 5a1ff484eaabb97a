"""Read and write archives: zip files with NumPy arrays and a description.

An archive is a small file that can be sent to others, and is read into memory as a whole. Large tables are stored as an
`artifact` instead: a folder whose files are memory-mapped.

>>> import tempfile
>>> file = Path(tempfile.mkdtemp()) / "squares.zip"
>>> write(file, "example", {"squares": np.arange(4) ** 2}, {"largest": 9})
>>> arrays, metadata = read(file, "example")
>>> arrays["squares"].tolist(), metadata
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

FORMAT = 1  # raised when older versions of kilt could not read the file


def write(file: Path, kind: str, arrays: Mapping[str, Array], metadata: Mapping[str, Any]) -> None:
    """Write arrays and metadata to an archive, and replace any older file.

    Equal content gives identical files.

    Parameters
    ----------
    file : Path
        File to write.
    kind : str
        Description of the content, which `read` checks.
    arrays : mapping of str to ndarray
        Arrays by name.
    metadata : mapping
        Data that JSON can represent.
    """
    new = file.with_name(f".{file.name}.new")
    with os_errors(f"{file} cannot be written"):
        with ZipFile(new, "w", ZIP_LZMA) as archive:
            manifest = {"kind": kind, "format": FORMAT, "said": metadata}
            archive.writestr(_entry(MANIFEST), json.dumps(manifest, sort_keys=True))
            for name, array in sorted(arrays.items()):
                with archive.open(_entry(f"{name}.npy"), "w") as entry:
                    np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)
        new.replace(file)


def read(file: Path, kind: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """Read the arrays and metadata of an archive into memory.

    Raises ArtifactError if the file is damaged.
    """
    try:
        with os_errors(f"{file} cannot be read"), ZipFile(file) as archive:
            manifest = json.loads(archive.read(MANIFEST))
            if (manifest["kind"], manifest["format"]) != (kind, FORMAT):
                raise ArtifactError(
                    f"{file} holds a {manifest['kind']} of format {manifest['format']}, not a {kind} of format "
                    f"{FORMAT}: check the name, or use the version of kilt that wrote it"
                )
            arrays: dict[str, Array] = {}
            for name in archive.namelist():
                if name != MANIFEST:
                    with archive.open(name) as entry:
                        arrays[name.removesuffix(".npy")] = np.lib.format.read_array(entry, allow_pickle=False)
            return arrays, dict(manifest["said"])
    except (BadZipFile, LZMAError, LookupError, ValueError, TypeError, EOFError, NotImplementedError) as error:
        raise ArtifactError(f"{file} is no archive, or is damaged ({error}): restore an undamaged copy") from None


def _entry(name: str) -> ZipInfo:
    """Return a zip entry with a fixed date, so that equal content gives identical files."""
    entry = ZipInfo(name)
    entry.compress_type = ZIP_LZMA
    return entry
