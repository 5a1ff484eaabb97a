"""Files of compressed subgames: see `disk`.

What is kept of each player in a subgame is a file of its own: a pass changes the regrets of one player alone. Numbers
of an action on a board come together, those of the weakest hand first: neighbours are then alike, and differences from
one to the next are kept. Hands that differ by suits alone are kept once, those that hold a card of the board never.
Differences are taken apart into planes of bytes, the low ones first, two where all are below 2¹⁶ and four elsewhere,
and Zstandard packs these. A file has a checksum of its name and of all that is in it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from kilt.arrays import FloatArray
from kilt.artifact import os_errors, write_text
from kilt.errors import KiltError, RunError
from kilt.machine import locked
from kilt.solve.disk_kernels import SHORT, PartRows, Planes, from_planes, to_planes
from kilt.tree.vector_arrays import Table

FORMAT = 4  # of the folder; goes up when older readers would not understand it
OLDER = 3  # which can be read too: checksums of its files are the same whatever they are called
MARK, OLDER_MARK = (f"kilt subgame {number}\n".encode() for number in (FORMAT, OLDER))
ABOUT, TRUNK, LOCK = "about.json", "trunk.zst", ".lock"
COMING = ".coming"  # files of a later pass, which are to take the place of those that are there
LEVEL = 1  # of compression: see docs/disk.md
HEAD = "<u8"  # of each number before what is packed
FILES = "[!.]*.zst"  # but for drafts of those who were killed
UNREADABLE = ZstdError, ValueError, TypeError, IndexError


class KeptNumbers(NamedTuple):
    """What a file has: the numbers of a player in a subgame."""

    passes: int = 0  # passes over all subgames up to the one that wrote it
    values: FloatArray = np.zeros((0, 0))  # [chance node of the trunk, hand] what the subgame was worth in that pass
    packed: tuple[bytes, ...] = ()  # tables as `pack` gives them; none where there is no file yet


def pack(table: Table, parts: list[PartRows], numbers: int, scale: float, dither: float = 0.0) -> bytes:
    """Rows of a table [row, hand] as whole numbers, `scale` to one of theirs, compressed.

    Parameters
    ----------
    table : ndarray, shape (rows, hands)
        Of a subgame.
    parts : list of PartRows
        Which rows.
    numbers : int
        How many numbers that makes.
    scale : float
        What they are multiplied by.
    dither : float
        What is added before they are rounded down, from 0 to 1.
    """
    planes = _to_planes(table, parts, numbers, scale, dither, SHORT)
    if planes is None:
        planes = _to_planes(table, parts, numbers, scale, dither, 2 * SHORT)
    assert planes is not None
    return ZstdCompressor(LEVEL).compress(planes.data)


def _to_planes(
    table: Table, parts: list[PartRows], numbers: int, scale: float, dither: float, width: int
) -> Planes | None:
    """Planes of some bytes a number; None where these are too few."""
    planes, at = np.empty((width, numbers), np.uint8), 0
    for part in parts:
        at, largest = to_planes(table, part, scale, dither, planes, at)
        if width == SHORT and largest >> 8 * SHORT:
            return None
    return planes


def unpack(data: bytes, parts: list[PartRows], numbers: int, scale: float, table: Table) -> None:
    """Write to rows of `table` [row, hand] what `pack` has packed; ValueError where it is something else."""
    planes = np.frombuffer(ZstdDecompressor().decompress(data), np.uint8)
    if planes.size not in (SHORT * numbers, 2 * SHORT * numbers):
        raise ValueError(f"it has {planes.size} bytes for {numbers} numbers")
    planes, at = planes.reshape(-1, max(numbers, 1)), 0  # there are none where a player does not act any more
    for part in parts:
        at = from_planes(planes, at, part, scale, table)


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
    averaging : bool
        Whether averages are kept too; likewise.
    count : int
        Of subgames, for whoever looks whether all are there.
    """

    def __init__(self, folder: Path, game: str, scale: float, averaging: bool = False, count: int = 0) -> None:
        self.folder, self.count = folder, count
        self.said = self.about(game, scale, averaging)
        with os_errors(f"subgames in {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            about = folder / ABOUT
            if not about.exists():
                write_text(about, json.dumps(self.said | {"subgames": count}))
            require_about(folder, self.said)

    @staticmethod
    def about(game: str, scale: float, averaging: bool) -> dict[str, Any]:
        """What a folder says about itself."""
        return {"format": FORMAT, "game": game, "scale": scale, "average": averaging}

    @classmethod
    def opened(cls, folder: Path, game: str) -> SubgameStore:
        """A folder that was filled before, with the scale that it has."""
        said = _about(folder)
        require_about(folder, {"format": FORMAT, "game": game})
        return cls(folder, game, said["scale"], said["average"], said["subgames"])

    @property
    def scale(self) -> float:
        """Whole numbers to a chip."""
        return float(self.said["scale"])

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Write to the folder while no other process does; RunError where one does."""
        with ExitStack() as held:
            try:
                held.enter_context(locked(self.folder / LOCK, wait=False))
            except BlockingIOError:
                raise RunError(f"another process is at work on {self.folder}: wait for it, or stop it") from None
            yield

    def open(self, number: int, player: int, passes: int) -> KeptNumbers:
        """What is kept of a player in a subgame; one that nobody has come to has no files.

        `passes` are complete: RunError where the file is missing that the last one of the player has written, or where
        one of an earlier pass is in its place.
        """
        file = self._file(number, player)
        kept, last = self._read(file), passes - (passes - 1 - player) % 2 if passes > player else 0
        if kept.passes < last:
            said = f"it is of pass {kept.passes:,}, not of pass {last:,}" if kept.packed else "it is missing"
            raise _damaged(file, said)
        return kept

    def begun(self, player: int, passes: int) -> bool:
        """Whether the pass of a player that follows some passes has written a file, of which heads alone are read."""
        for file in self.folder.glob(f"[0-9]*-{player + 1}.zst"):
            # What is damaged is found when it is read.
            with os_errors(f"{file} cannot be read"), file.open("rb") as data, suppress(*UNREADABLE):
                data.seek(len(MARK) + 8)
                data.seek(8 * int(np.frombuffer(data.read(8), HEAD)[0]), os.SEEK_CUR)
                if int(np.frombuffer(ZstdDecompressor().stream_reader(data).read(8), HEAD)[0]) > passes:
                    return True
        return False

    def write(self, number: int, player: int, kept: KeptNumbers) -> None:
        """Keep the numbers of a player in a subgame, in place of those before."""
        self._write(self._file(number, player), kept)

    def damaged(self, number: int, player: int, error: Exception) -> RunError:
        """What to say of a file that cannot be unpacked."""
        return _damaged(self._file(number, player), error)

    def read_trunk(self) -> KeptNumbers:
        """The number of passes that are complete and, as `values`, [row, hand] the tables of the trunk."""
        return self._read(self.folder / TRUNK)

    def write_trunk(self, passes: int, tables: Table) -> None:
        """Keep the tables of the trunk, as they are: they are small."""
        self._write(self.folder / TRUNK, KeptNumbers(passes, np.asarray(tables)))

    def coming(self) -> Path:
        """A new folder for files of a later pass: see `take_over`."""
        folder = self.folder / COMING
        with os_errors(f"{folder} cannot be written"):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        return folder

    def take_over(self, passes: int, tables: Table) -> None:
        """Put all files that are in `coming`, and the tables of the trunk, in place of those before: all or none."""
        self._write(self.folder / COMING / TRUNK, KeptNumbers(passes, np.asarray(tables)))
        self.complete()

    def complete(self) -> None:
        """Complete what `take_over` has begun, in a process that was killed perhaps: with the trunk, all are there."""
        folder = self.folder / COMING
        with os_errors(f"{self.folder} cannot be written"):
            if (folder / TRUNK).exists():
                for file in sorted(folder.glob(FILES), key=lambda file: file.name == TRUNK):  # which comes last
                    file.replace(self.folder / file.name)
        shutil.rmtree(folder, ignore_errors=True)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.stat().st_size for file in self.folder.glob(FILES))

    def copy_to(self, folder: Path, game: str) -> None:
        """Give all files to another folder as they are now: by links where the disk has them, else by copies.

        The folder says that it is for the game with the fingerprint `game`, whose payoffs may be others.
        """
        self.describe(folder, game)
        copy_files(self.folder.glob(FILES), folder)

    def describe(self, folder: Path, game: str) -> None:
        """Write to another folder that it holds subgames of this kind, for the game with the fingerprint `game`."""
        with os_errors(f"{folder} cannot be written"):
            write_text(folder / ABOUT, json.dumps(self.said | {"game": game, "subgames": self.count}))

    def files(self, numbers: Iterable[int]) -> list[Path]:
        """The files of some subgames, as far as they are there."""
        every = (self._file(number, player) for number in numbers for player in (0, 1))
        return [file for file in every if file.exists()]

    def _file(self, number: int, player: int) -> Path:
        return self.folder / f"{number}-{player + 1}.zst"

    def _write(self, file: Path, kept: KeptNumbers) -> None:
        """Replace a file in one step: a reader finds the old one or the new one, whole."""
        values = kept.values
        head = np.array([kept.passes, *values.shape, values.itemsize], HEAD).tobytes()
        first = ZstdCompressor(LEVEL).compress(head + values.tobytes())
        pieces = first, *kept.packed
        body = [np.array([len(pieces), *map(len, pieces)], HEAD).tobytes(), *pieces]
        check = crc32(file.name.encode())  # so that no file can be taken for another one
        for piece in body:
            check = crc32(piece, check)
        draft = file.with_name(f".{file.name}")
        with os_errors(f"{file} cannot be written"):
            try:
                with draft.open("wb") as out:
                    out.writelines([MARK, np.array([check], HEAD).tobytes(), *body])
                    out.flush()
                    os.fsync(out.fileno())
            except OSError:
                with suppress(OSError):
                    draft.unlink()  # a full disk has room again for what is there
                raise
            draft.replace(file)

    def _read(self, file: Path) -> KeptNumbers:
        """What a file has, or nothing where there is none."""
        if not file.exists():
            return KeptNumbers()
        with os_errors(f"{file} cannot be read"):
            data = file.read_bytes()
        try:
            if not data.startswith((MARK, OLDER_MARK)):
                raise ValueError("it does not begin as files of subgames do")
            check, count = np.frombuffer(data, HEAD, 2, len(MARK)).tolist()
            begun = crc32(file.name.encode()) if data.startswith(MARK) else 0
            if crc32(memoryview(data)[len(MARK) + 8 :], begun) != check:
                raise ValueError("its checksum is another one")
            sizes = np.frombuffer(data, HEAD, count, len(MARK) + 16)
            ends = len(MARK) + 16 + 8 * count + np.cumsum([0, *sizes.tolist()])
            pieces = [data[begin:end] for begin, end in pairwise(ends.tolist())]
            first = ZstdDecompressor().decompress(pieces[0])
            passes, *shape, width = np.frombuffer(first, HEAD, 4).tolist()
            values = np.frombuffer(first, f"<f{width}", -1, 32).reshape(shape).copy()
        except UNREADABLE as error:
            raise _damaged(file, error) from error
        return KeptNumbers(passes, values, tuple(pieces[1:]))


def copy_files(files: Iterable[Path], folder: Path) -> None:
    """Give files to a folder, in place of those of their names: by links where the disk has them, else by copies."""
    with os_errors(f"{folder} cannot be written"):
        for file in files:
            draft = folder / f".{file.name}"
            draft.unlink(missing_ok=True)
            try:
                os.link(file, draft)
            except OSError:
                shutil.copyfile(file, draft)
                with draft.open("rb+") as copy:
                    os.fsync(copy.fileno())
            draft.replace(folder / file.name)


def require_about(folder: Path, wanted: dict[str, Any]) -> None:
    """Raise RunError where a folder of subgames is of another game, scale or format than is wanted."""
    said = _about(folder)
    for what, value in wanted.items():
        if said.get(what) != value:
            raise RunError(
                f"{folder} holds subgames of another {what}, {said.get(what)}, not {value}: give another folder"
            )


def _about(folder: Path) -> dict[str, Any]:
    """What a folder says about itself."""
    with os_errors(f"{folder / ABOUT} cannot be read"):
        text = (folder / ABOUT).read_bytes()
    try:
        said = json.loads(text)
        found = {what: said[what] for what in ("format", "game", "scale", "average")}
        found["format"] = FORMAT if found["format"] == OLDER else found["format"]
        return found | {"subgames": int(said.get("subgames", 0))}  # those of kilt 0.1.0 do not say
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise _damaged(folder / ABOUT, error) from error


def require_whole(folder: Path) -> None:
    """Read all files of a folder of subgames; RunError says which are damaged or missing, and of which subgames."""
    said = _about(folder)
    require_about(folder, {"format": FORMAT})
    store = SubgameStore.opened(folder, said["game"])
    passes, faults = store.read_trunk().passes, list[str]()
    there = [int(file.name.partition("-")[0]) for file in folder.glob("[0-9]*-[12].zst")]
    for number in range(max(store.count, 1 + max(there, default=-1))):
        for player in (0, 1):
            try:
                store.open(number, player, passes)
            except KiltError as error:
                faults.append(str(error))
    if faults:
        raise RunError("; ".join(faults))


def _damaged(file: Path, error: Exception | str) -> RunError:
    number, _, player = file.stem.partition("-")
    where = f", player {player} of subgame {number}," if player else ""
    return RunError(
        f"{file}{where} is damaged ({error}): copy it from where it is whole, or begin again in another folder"
    )
