"""Compute and verify checksums of arrays, files and manifests.

Large files are verified once per machine, as long as they do not change.

The cache folder records which files had the correct checksum, with their size, modification time and inode.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
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
PIECE = 1 << 26  # bytes of a large array that have a checksum of their own


def seal_of(manifest: Mapping[str, Any]) -> str:
    """Return the checksum of a manifest, not counting the entry that stores it."""
    said = {what: value for what, value in manifest.items() if what != CHECKSUM}
    plain = json.loads(json.dumps(said))  # numbers as keys become strings in JSON
    return blake2b(json.dumps(plain, sort_keys=True).encode(), digest_size=16).hexdigest()


def describe(array: Array) -> dict[str, Any]:
    """Return the entry of a manifest that describes an array.

    The checksum of an array larger than `PIECE` is that of its pieces' checksums, so that several threads compute it.
    """
    content, said = content_of(array), {"dtype": array.dtype.str, "shape": list(array.shape)}
    if array.nbytes <= PIECE:
        return said | {which: _checksum(content, which) for which in (CHECKSUM, QUICK)}

    def both(start: int) -> tuple[str, str]:
        piece = content[start : start + PIECE]
        return _checksum(piece, CHECKSUM), _checksum(piece, QUICK)

    with ThreadPoolExecutor() as pool:
        found = pool.map(both, range(0, array.nbytes, PIECE))
        slow, quick = ("".join(texts).encode() for texts in zip(*found, strict=True))
    return said | {"piece": PIECE, CHECKSUM: _checksum(slow, CHECKSUM), QUICK: _checksum(quick, QUICK)}


def _checksum(content: bytes | memoryview, which: str) -> str:
    return f"{crc32(content):08x}" if which == QUICK else blake2b(content, digest_size=16).hexdigest()


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
    if _checksum_of_file(file, array.offset, size, which, said.get("piece", 0)) != said.get(which):
        if size >= LARGE:
            with suppress(OSError):
                _mark(file).unlink(missing_ok=True)
        return False
    remember(file, state)
    return True


def _checksum_of_file(file: Path, start: int, end: int, which: str, piece: int) -> str:
    """Return the checksum of the bytes from `start` to `end` of a file, without keeping them in memory.

    With a `piece`, it is that of the checksums of pieces of this size.
    """

    def part(start: int, end: int) -> str:
        quick, thorough = 0, blake2b(digest_size=16)
        with file.open("rb", buffering=0) as content:
            content.seek(start)
            while start < end and (block := content.read(min(BLOCK, end - start))):
                start += len(block)
                if which == QUICK:
                    quick = crc32(block, quick)
                else:
                    thorough.update(block)
        return f"{quick:08x}" if which == QUICK else thorough.hexdigest()

    if piece <= 0:
        return part(start, end)
    with ThreadPoolExecutor() as pool:
        starts = range(start, end, piece)
        return _checksum("".join(pool.map(part, starts, (min(end, at + piece) for at in starts))).encode(), which)


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
