"""Compute and verify checksums of arrays, files and manifests.

Large files are verified once per machine, as long as they do not change.

The cache folder records which files had the correct checksum, with their size, modification time and inode.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from time import time_ns
from typing import Any
from zlib import crc32

import numpy as np

from kilt.arrays import Array
from kilt.machine import cache_folder

# checksums of a file's array; the quick one, missing in kilt 0.1.0, is checked when opening
CHECKSUM, QUICK = "blake2b", "crc32"
LARGE = 1 << 22  # smallest size in bytes of files whose correct checksum is cached
SETTLED = 2 * 10**9  # nanoseconds after which a change of a file is visible in its modification time
BLOCK = 1 << 20  # bytes that are read or written in one call


def seal_of(manifest: Mapping[str, Any]) -> str:
    """Return the checksum of a manifest, not counting the entry that stores it."""
    said = {what: value for what, value in manifest.items() if what != CHECKSUM}
    plain = json.loads(json.dumps(said))  # numbers as keys become strings in JSON
    return blake2b(json.dumps(plain, sort_keys=True).encode(), digest_size=16).hexdigest()


def describe(array: Array) -> dict[str, Any]:
    """Return the entry of a manifest that describes an array."""
    content = content_of(array)
    checksums = {CHECKSUM: blake2b(content, digest_size=16).hexdigest(), QUICK: f"{crc32(content):08x}"}
    return {"dtype": array.dtype.str, "shape": list(array.shape)} | checksums


def is_whole(file: Path, array: np.memmap[Any, Any], said: Mapping[str, Any], *, again: bool) -> bool:
    """Return whether a file and its array match their checksum in the manifest.

    With `again`, cached results are ignored.
    """
    size = array.offset + array.nbytes
    seen = {"dtype": array.dtype.str, "shape": list(array.shape)}
    if any(said.get(what) != value for what, value in seen.items()) or not array.flags.c_contiguous:
        return False
    state = state_of(file, said.get(CHECKSUM))
    if int(state.split()[0]) != size:
        return False
    if not again and size >= LARGE and _remembered(file) == state:
        return True
    which = QUICK if QUICK in said and not again else CHECKSUM
    if _checksum(file, array.offset, which) != said.get(which):
        if size >= LARGE:
            with suppress(OSError):
                _mark(file).unlink(missing_ok=True)
        return False
    remember(file, state)
    return True


def _checksum(file: Path, start: int, which: str) -> str:
    """Return the checksum of a file from byte `start` on, without keeping its content in memory."""
    quick, thorough = 0, blake2b(digest_size=16)
    with file.open("rb", buffering=0) as content:
        content.seek(start)
        while block := content.read(BLOCK):
            if which == QUICK:
                quick = crc32(block, quick)
            else:
                thorough.update(block)
    return f"{quick:08x}" if which == QUICK else thorough.hexdigest()


def state_of(file: Path, checksum: object) -> str:
    """Return a text that changes whenever the file or its checksum changes."""
    now = file.stat()
    return f"{now.st_size} {now.st_mtime_ns} {now.st_ino} {checksum}"


def _mark(file: Path) -> Path:
    """Return the cache file that records in which state a file last had the correct checksum."""
    parts = (text.encode() for text in (platform.node(), str(file.resolve())))
    name = blake2b(b"".join(b"text %d %b" % (len(part), part) for part in parts), digest_size=8).hexdigest()
    return cache_folder() / "checked" / name


def _remembered(file: Path) -> str:
    with suppress(OSError, ValueError):
        return _mark(file).read_text(encoding="utf-8")
    return ""


def remember(file: Path, state: str) -> None:
    """Record that a large file's checksum was correct, to avoid verifying it again."""
    size, changed = map(int, state.split()[:2])
    if size >= LARGE and time_ns() - changed > SETTLED:
        with suppress(OSError):  # an unwritable cache only costs time
            mark = _mark(file)
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.write_text(state, encoding="utf-8")


def content_of(array: Array) -> memoryview:
    """Return the bytes of a contiguous array without copying them."""
    return array.reshape(-1).view(np.uint8).data
