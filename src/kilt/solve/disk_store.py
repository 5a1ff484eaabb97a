"""Files of compressed subgames: see `disk`.

A table of whole numbers below 2³² is taken apart into four planes of bytes, the high ones first, each over all rows:
most high bytes are 0. Zstandard packs them, and adds a checksum. What is written is read back as it was.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from kilt.arrays import FloatArray
from kilt.artifact import os_errors, write_text
from kilt.errors import RunError
from kilt.solve.disk_kernels import PLANES, from_planes, to_planes
from kilt.tree.vector_arrays import Table

MARK = b"kilt subgame 1\n"
LEVEL = 1  # of compression: higher ones take longer, and pack little more
HEAD = "<u8"  # of each number before what is packed


class KeptSubgame(NamedTuple):
    """What is kept of a subgame."""

    number: int
    passes: int  # of players over it, so far
    values: FloatArray  # [chance node of the trunk, hand] what it was worth in the last one
    packed: bytes  # the regrets; empty before the first pass
    scale: float

    def unpack(self, table: Table) -> None:
        """Write the regrets to `table` [row, hand], in chips."""
        if self.packed:
            try:
                unpack(self.packed, self.scale, table)
            except (ZstdError, ValueError) as error:
                raise RunError(f"subgame {self.number} is damaged: {error}; begin again in another folder") from error


def pack(table: Table, scale: float) -> bytes:
    """Regrets [row, hand] as whole numbers, `scale` to a chip, rounded down and compressed."""
    planes = np.empty((PLANES, table.size), np.uint8)
    to_planes(table, scale, planes)
    return ZstdCompressor(LEVEL, write_checksum=True).compress(planes.data)


def unpack(data: bytes, scale: float, table: Table) -> None:
    """Write to `table` [row, hand] what `pack` has packed."""
    planes = np.frombuffer(ZstdDecompressor().decompress(data), np.uint8)
    from_planes(planes.reshape(PLANES, table.size), scale, table)


class SubgameStore:
    """A folder with the trunk and a file for each subgame.

    Parameters
    ----------
    folder : Path
        Made where it is not there.
    game : str
        The fingerprint of the game: a folder of another one is refused.
    scale : float
        Whole numbers to a chip; likewise.
    """

    def __init__(self, folder: Path, game: str, scale: float) -> None:
        self.folder, self.scale = folder, scale
        said = json.dumps({"game": game, "scale": scale})
        about = folder / "about.json"
        with os_errors(f"subgames in {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            if not about.exists():
                write_text(about, said)
            if about.read_text() != said:
                raise RunError(f"{folder} holds subgames of another game, or with another scale: give another folder")

    def open(self, number: int) -> KeptSubgame:
        """What is kept of a subgame; one that nobody has come to has no file."""
        data = self._read(self._file(number))
        if data is None:
            return KeptSubgame(number, 0, np.zeros((0, 0)), b"", self.scale)
        return KeptSubgame(number, *data, self.scale)

    def write(self, number: int, passes: int, values: FloatArray, table: Table) -> None:
        """Keep the regrets of a subgame in place of those before."""
        self._write(self._file(number), passes, values, pack(table, self.scale))

    def read_trunk(self, shape: tuple[int, int]) -> tuple[int, FloatArray]:
        """The number of passes that are complete, and [row, hand] the regrets of the trunk in chips."""
        data = self._read(self._trunk)
        return (0, np.zeros(shape)) if data is None else data[:2]

    def write_trunk(self, passes: int, trunk: Table) -> None:
        """Keep the regrets of the trunk, as they are: it is small."""
        self._write(self._trunk, passes, trunk.astype(np.float64), b"")

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.stat().st_size for file in self.folder.glob("*.zst"))

    @property
    def _trunk(self) -> Path:
        return self.folder / "trunk.zst"

    def _file(self, number: int) -> Path:
        return self.folder / f"{number}.zst"

    def _write(self, file: Path, passes: int, values: FloatArray, regrets: bytes) -> None:
        """Replace a file in one step: a reader finds the old one or the new one, whole."""
        first = ZstdCompressor(LEVEL, write_checksum=True).compress(
            np.array([passes, *values.shape], HEAD).tobytes() + values.tobytes()
        )
        draft = file.with_name(f".{file.name}")
        with os_errors(f"writing {file}"):
            with draft.open("wb") as out:
                out.write(MARK + np.array([len(first), len(regrets)], HEAD).tobytes())
                out.write(first)
                out.write(regrets)
                out.flush()
                os.fsync(out.fileno())
            draft.replace(file)

    def _read(self, file: Path) -> tuple[int, FloatArray, bytes] | None:
        """The passes, the values and the regrets of a file; None where there is none."""
        try:
            data = file.read_bytes()
        except FileNotFoundError:
            return None
        try:
            sizes, body = np.frombuffer(data[len(MARK) :][:16], HEAD), data[len(MARK) + 16 :]
            if not data.startswith(MARK) or len(body) != sizes.sum():
                raise ZstdError("cut off")
            first = ZstdDecompressor().decompress(body[: sizes[0]])
            passes, *shape = np.frombuffer(first[:24], HEAD).tolist()
            values = np.frombuffer(first[24:]).reshape(shape).copy()
        except (ZstdError, ValueError) as error:
            raise RunError(f"{file} is damaged: {error}; begin again in another folder") from error
        return passes, values, body[sizes[0] :]
