"""Compress the numbers of a subgame for a file, and decompress them, in CFR on disk.

The numbers of an action on a board are contiguous and ordered by hand strength, so that neighbours are similar; the
file stores the differences between neighbours. Hands that are equal up to a permutation of suits are stored once, and
hands that hold a card of the board are not stored. Differences are split into planes of bytes, low bytes first (two
planes if all numbers are below 2¹⁶, otherwise four), and Zstandard compresses the planes. Every file has a checksum of
its name and content.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from itertools import pairwise
from typing import BinaryIO, NamedTuple
from zlib import crc32

import numpy as np
from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from kilt.arrays import FloatArray
from kilt.solve.tables.disk_kernels import SHORT, PartRows, Planes, from_planes, to_planes
from kilt.tree.vector_arrays import Table

FORMAT = 5  # of the folder; raised when older versions of kilt could not read the folder
NAMED = 4  # readable: files do not name their trunk, and the manifest records no checksums
OLDER = 3  # readable: like `NAMED`, and the checksum of a file does not cover its name
MARKS = {number: f"kilt subgame {number}\n".encode() for number in (FORMAT, NAMED, OLDER)}  # all of one length
MARK = MARKS[FORMAT]
LEVEL = 1  # compression level: see docs/guides/disk.md
HEAD = "<u8"  # type of the numbers in the header of a file
FIRST = 5  # header numbers: passes, two of a shape, size in bytes, name of the trunk
WORDS = {FORMAT: FIRST, NAMED: FIRST - 1, OLDER: FIRST - 1}  # header numbers in each format
UNREADABLE = ZstdError, ValueError, TypeError, IndexError


class KeptNumbers(NamedTuple):
    """The content of a subgame's file: regrets or an average strategy, and the pass that wrote it."""

    passes: int = 0  # passes over all subgames, including the one that wrote the file
    values: FloatArray = np.zeros((0, 0))  # [chance node of the trunk, hand] in that pass
    packed: tuple[bytes, ...] = ()  # results of `pack`; empty if the file does not exist
    begun: int = 0  # `trunk_name` of the trunk before the pass; 0 in files of older formats


class FileHead(NamedTuple):
    """The header of a subgame's file: a checksum, and the pass of CFR that wrote the file."""

    checksum: int  # of the file's name and of the content after the checksum
    passes: int  # as in `KeptNumbers`
    begun: int


def pack(table: Table, parts: list[PartRows], numbers: int, scale: float, dither: float = 0.0) -> bytes:
    """Round rows of a table to integers, and compress them to bytes.

    Parameters
    ----------
    table : ndarray, shape (rows, hands)
        The table of a subgame.
    parts : list of PartRows
        The rows to convert.
    numbers : int
        Count of numbers in these rows.
    scale : float
        Factor by which the numbers are multiplied.
    dither : float
        From 0 to 1, added before the numbers are rounded down.

    Returns
    -------
    bytes
        Compressed planes, with two bytes per number if all integers are below 2¹⁶, otherwise four.
    """
    planes = _to_planes(table, parts, numbers, scale, dither, SHORT)
    if planes is None:
        planes = _to_planes(table, parts, numbers, scale, dither, 2 * SHORT)
    assert planes is not None
    return ZstdCompressor(LEVEL).compress(planes.data)


def _to_planes(
    table: Table, parts: list[PartRows], numbers: int, scale: float, dither: float, width: int
) -> Planes | None:
    """Return integers as planes of `width` bytes per number, or None if a number needs more bytes."""
    planes, at = np.empty((width, numbers), np.uint8), 0
    for part in parts:
        at, largest = to_planes(table, part, scale, dither, planes, at)
        if width == SHORT and largest >> 8 * SHORT:
            return None
    return planes


def unpack(data: bytes, parts: list[PartRows], numbers: int, scale: float, table: Table) -> None:
    """Decompress what `pack` has compressed, and write the numbers to rows of a table.

    Raises ValueError if `data` has the wrong size.
    """
    planes = np.frombuffer(ZstdDecompressor().decompress(data), np.uint8)
    if planes.size not in (SHORT * numbers, 2 * SHORT * numbers):
        raise ValueError(f"the file has {planes.size} bytes for {numbers} numbers")
    planes, at = planes.reshape(-1, max(numbers, 1)), 0  # there are no numbers if a player has no more decisions
    for part in parts:
        at = from_planes(planes, at, part, scale, table)


def trunk_name(passes: int, trunk: Table) -> int:
    """Return a number that identifies the state of the regrets before a pass of CFR on disk.

    It is a hash of the number of passes and of the regrets of the first rounds, and never 0.
    """
    digest = blake2b(np.ascontiguousarray(trunk).view(np.uint8).data, digest_size=8, person=b"kilt trunk")
    digest.update(np.array([passes], HEAD).tobytes())
    return int.from_bytes(digest.digest(), "little") or 1


class PackedFile(NamedTuple):
    """The bytes of a file to write, with their checksum."""

    pieces: list[bytes]
    checksum: int


def packed_file(name: str, kept: KeptNumbers) -> PackedFile:
    """Return the bytes of a file to write, with their checksum."""
    values = kept.values
    first = np.array([kept.passes, *values.shape, values.itemsize, kept.begun], HEAD).tobytes()
    pieces = ZstdCompressor(LEVEL).compress(first + values.tobytes()), *kept.packed
    body = [np.array([len(pieces), *map(len, pieces)], HEAD).tobytes(), *pieces]
    check = crc32(name.encode())  # so that files cannot be mistaken for each other
    for piece in body:
        check = crc32(piece, check)
    return PackedFile([MARK, np.array([check], HEAD).tobytes(), *body], check)


def format_of(data: bytes) -> int:
    """Return the format number of a subgame's file.

    Raises ValueError if the file does not contain a subgame.
    """
    found = next((number for number, mark in MARKS.items() if data.startswith(mark)), None)
    if found is None:
        raise ValueError("it does not begin like a file of subgames")
    return found


def read_head(data: BinaryIO) -> FileHead:
    """Read only the header of a file."""
    words = WORDS[format_of(data.read(len(MARK)))]
    check, count = np.frombuffer(data.read(16), HEAD).tolist()
    data.seek(8 * count, os.SEEK_CUR)
    first = np.frombuffer(ZstdDecompressor().stream_reader(data).read(8 * words), HEAD).tolist()
    return FileHead(check, first[0], first[4] if words == FIRST else 0)


def read_file(name: str, data: bytes) -> tuple[FileHead, KeptNumbers]:
    """Return the header and the numbers of a subgame's file.

    Raises one of `UNREADABLE` if the file is damaged.
    """
    form = format_of(data)
    check, count = np.frombuffer(data, HEAD, 2, len(MARK)).tolist()
    seed = 0 if form == OLDER else crc32(name.encode())
    if crc32(memoryview(data)[len(MARK) + 8 :], seed) != check:
        raise ValueError("its checksum is another one")
    sizes = np.frombuffer(data, HEAD, count, len(MARK) + 16)
    ends = len(MARK) + 16 + 8 * count + np.cumsum([0, *sizes.tolist()])
    pieces = [data[begin:end] for begin, end in pairwise(ends.tolist())]
    first = ZstdDecompressor().decompress(pieces[0])
    words = WORDS[form]
    passes, *shape, width, begun = np.frombuffer(first, HEAD, words).tolist() + [0] * (FIRST - words)
    values = np.frombuffer(first, f"<f{width}", -1, 8 * words).reshape(shape).copy()
    return FileHead(check, passes, begun), KeptNumbers(passes, values, tuple(pieces[1:]), begun)
