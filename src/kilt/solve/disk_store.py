"""Files of compressed subgames: see `disk`.

The regrets of each player in a subgame are a file of their own: a pass changes those of one player alone. Whole numbers
below 2³² are taken apart into four planes of bytes, the high ones first, each over all rows: most high bytes are 0.
Zstandard packs them, and adds a checksum. What is written is read back as it was.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from kilt.arrays import FloatArray, IntArray
from kilt.artifact import os_errors, write_text
from kilt.errors import RunError
from kilt.solve.disk_kernels import PLANES, from_planes, to_planes
from kilt.tree.vector_arrays import Table

MARK = b"kilt subgame 1\n"
LEVEL = 1  # of compression: higher ones take longer, and pack little more
HEAD = "<u8"  # of each number before what is packed


class KeptRegrets(NamedTuple):
    """What a file has: a player's regrets in a subgame."""

    passes: int = 0  # passes over all subgames up to the one that wrote it
    values: FloatArray = np.zeros((0, 0))  # [chance node of the trunk, hand] what the subgame was worth in that pass
    packed: bytes = b""  # as `pack` gives it; empty where there is no file yet


class KeptSubgame(NamedTuple):
    """What is kept of a subgame."""

    number: int
    players: tuple[KeptRegrets, KeptRegrets]
    scale: float

    def unpack(self, player: int, rows: IntArray, table: Table) -> None:
        """Write the regrets of a player to their rows of `table` [row, hand], in chips."""
        if data := self.players[player].packed:
            try:
                unpack(data, rows, self.scale, table)
            except (ZstdError, ValueError) as error:
                raise RunError(f"subgame {self.number} is damaged: {error}; begin again in another folder") from error


def pack(table: Table, rows: IntArray, scale: float) -> bytes:
    """Some rows of regrets [row, hand] as whole numbers, `scale` to a chip, rounded down and compressed."""
    planes = np.empty((PLANES, len(rows), table.shape[1]), np.uint8)
    to_planes(table, rows, scale, planes)
    return ZstdCompressor(LEVEL, write_checksum=True).compress(planes.data)


def unpack(data: bytes, rows: IntArray, scale: float, table: Table) -> None:
    """Write to rows of `table` [row, hand] what `pack` has packed."""
    planes = np.frombuffer(ZstdDecompressor().decompress(data), np.uint8)
    from_planes(planes.reshape(PLANES, len(rows), table.shape[1]), rows, scale, table)


class SubgameStore:
    """A folder with the trunk and two files for each subgame.

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
        """What is kept of a subgame; one that nobody has come to has no files."""
        first, second = (self._read(self._file(number, player)) for player in (0, 1))
        return KeptSubgame(number, (first, second), self.scale)

    def write(self, number: int, player: int, passes: int, values: FloatArray, table: Table, rows: IntArray) -> None:
        """Keep a player's regrets in a subgame, which are `rows` of `table`, in place of those before."""
        self._write(self._file(number, player), passes, values, pack(table, rows, self.scale))

    def read_trunk(self, shape: tuple[int, int]) -> tuple[int, FloatArray]:
        """The number of passes that are complete, and [row, hand] the regrets of the trunk in chips."""
        kept = self._read(self._trunk)
        return kept.passes, kept.values if kept.passes else np.zeros(shape)

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

    def _file(self, number: int, player: int) -> Path:
        return self.folder / f"{number}-{player + 1}.zst"

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

    def _read(self, file: Path) -> KeptRegrets:
        """What a file has, or nothing where there is none."""
        try:
            data = file.read_bytes()
        except FileNotFoundError:
            return KeptRegrets()
        try:
            sizes, body = np.frombuffer(data[len(MARK) :][:16], HEAD), data[len(MARK) + 16 :]
            if not data.startswith(MARK) or len(body) != sizes.sum():
                raise ZstdError("cut off")
            first = ZstdDecompressor().decompress(body[: sizes[0]])
            passes, *shape = np.frombuffer(first[:24], HEAD).tolist()
            values = np.frombuffer(first[24:]).reshape(shape).copy()
        except (ZstdError, ValueError) as error:
            raise RunError(f"{file} is damaged: {error}; begin again in another folder") from error
        return KeptRegrets(passes, values, body[sizes[0] :])
