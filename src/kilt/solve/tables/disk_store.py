"""Files of compressed subgames: see `disk`.

What is kept of each player in a subgame is a file of its own: a pass changes the regrets of one player alone. Numbers
of an action on a board come together, those of the weakest hand first: neighbours are then alike, and differences from
one to the next are kept. Hands that differ by suits alone are kept once, those that hold a card of the board never.
Differences are taken apart into planes of bytes, the low ones first, two where all are below 2¹⁶ and four elsewhere,
and Zstandard packs these. A file has a checksum of its name and of all that is in it.

The file of the trunk is the manifest of the folder: it has the number of passes that are complete, the run that made
them and the checksum of each file after them. A file that the pass under way has written is not in it yet: such a file
names the trunk that its pass began with. So a file of another run, or of another iteration of this one, is refused.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt
from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from kilt.arrays import FloatArray
from kilt.artifact import MANIFEST, os_errors, write_text
from kilt.errors import ArtifactError, KiltError, RunError
from kilt.machine import locked
from kilt.solve.tables.disk_kernels import SHORT, PartRows, Planes, from_planes, to_planes
from kilt.tree.vector_arrays import Table

FORMAT = 5  # of the folder; goes up when older readers would not understand it
NAMED = 4  # can be read too: its files do not name the trunk that they were made from, and none are recorded
OLDER = 3  # likewise: and checksums of its files are the same whatever they are called
MARKS = {number: f"kilt subgame {number}\n".encode() for number in (FORMAT, NAMED, OLDER)}  # of the same length
MARK = MARKS[FORMAT]
ABOUT, TRUNK, LOCK = "about.json", "trunk.zst", ".lock"
COMING = ".coming"  # files of a later pass, which are to take the place of those that are there
LEVEL = 1  # of compression: see docs/guides/disk.md
HEAD = "<u8"  # of each number before what is packed
FILES = "[!.]*.zst"  # but for drafts of those who were killed
FIRST = 5  # numbers at the beginning of what is packed first: passes, two of a shape, bytes, and the trunk's name
WORDS = {FORMAT: FIRST, NAMED: FIRST - 1, OLDER: FIRST - 1}  # of these in each format
UNREADABLE = ZstdError, ValueError, TypeError, IndexError
KNOWN = 1 << 32  # added to the checksums of files that are recorded; 0 stands for one that is not
ATTEMPTS = 5  # to read a file of a folder that a run may be writing to
Checksums = npt.NDArray[np.uint64]


class KeptNumbers(NamedTuple):
    """What a file has: the numbers of a player in a subgame."""

    passes: int = 0  # passes over all subgames up to the one that wrote it
    values: FloatArray = np.zeros((0, 0))  # [chance node of the trunk, hand] what the subgame was worth in that pass
    packed: tuple[bytes, ...] = ()  # tables as `pack` gives them; none where there is no file yet
    begun: int = 0  # what names the trunk that the pass began with: see `trunk_name`; 0 in files of older formats


class FileHead(NamedTuple):
    """What a file says of itself, before the numbers that it has."""

    checksum: int  # of its name and all that follows
    passes: int  # as in `KeptNumbers`
    begun: int


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


def trunk_name(passes: int, trunk: Table) -> int:
    """Return a number that identifies the state of a run by its passes and its trunk regrets [row, hand]; never 0."""
    digest = blake2b(np.ascontiguousarray(trunk).view(np.uint8).data, digest_size=8, person=b"kilt trunk")
    digest.update(np.array([passes], HEAD).tobytes())
    return int.from_bytes(digest.digest(), "little") or 1


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
    run : str, optional
        The id of the run that the folder belongs to; the files of another run are refused. Left out: of any run.

    Attributes
    ----------
    checksums : ndarray of uint64, shape (count, 2)
        Those of the files of both players in each subgame after the passes that are complete, `KNOWN` added; 0 where
        nothing is recorded, as in folders of kilt's older formats.
    """

    def __init__(
        self,
        folder: Path,
        game: str,
        scale: float,
        averaging: bool = False,
        count: int = 0,
        run: str | None = None,
    ) -> None:
        self.folder, self.count, self.run = folder, count, run
        self.said = self.about(game, scale, averaging)
        self.checksums: Checksums = np.zeros((count, 2), np.uint64)
        self.at_rest = False  # whether no pass may be under way, as in the files of a strategy
        self.repeating = False  # whether files may be of any later pass, as those of a worker that repeats passes
        self._recorded = True  # False where files may be of an older format, which do not name their trunk
        self._name: int | None = None  # of the trunk that was read, written or begun with last; None: of none yet
        self._moving = False  # whether `take_over` was killed, and some files are still in `COMING`
        with os_errors(f"subgames in {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            about = folder / ABOUT
            if not about.exists():
                write_text(about, json.dumps(self.said | {"subgames": count}))
            require_about(folder, self.said)
            self._recorded = _about(folder)["written"] == FORMAT

    @staticmethod
    def about(game: str, scale: float, averaging: bool) -> dict[str, Any]:
        """What a folder says about itself."""
        return {"format": FORMAT, "game": game, "scale": scale, "average": averaging}

    @classmethod
    def opened(cls, folder: Path, game: str, run: str | None = None) -> SubgameStore:
        """A folder that was filled before, with the scale that it has."""
        said = _about(folder)
        require_about(folder, {"format": FORMAT, "game": game})
        return cls(folder, game, said["scale"], said["average"], said["subgames"], run)

    def settled(self, trunk: str) -> int:
        """Return the number of passes behind a strategy's files; RunError if the trunk's file has another checksum.

        `trunk` is its checksum by the manifest of the strategy; empty where the manifest says nothing of it.
        """
        passes, self.at_rest = self.read_trunk().passes, True
        if trunk and self.trunk_checksum() != trunk:
            raise _damaged(self.folder / TRUNK, f"its checksum is not {trunk}, which {MANIFEST} records")
        return passes

    @property
    def scale(self) -> float:
        """Whole numbers to a chip."""
        return float(self.said["scale"])

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Lock the folder for writing. Raises RunError if another process writes to it."""
        with ExitStack() as held:
            try:
                held.enter_context(locked(self.folder / LOCK, wait=False))
            except BlockingIOError:
                raise RunError(f"another process is at work on {self.folder}: wait for it, or stop it") from None
            yield

    def open(self, number: int, player: int, passes: int) -> KeptNumbers:
        """What is kept of a player in a subgame; one that nobody has come to has no files.

        `passes` are complete: RunError where the file is not the one that the last of the player has written, nor that
        of the pass which follows.
        """
        file = self._file(number, player)
        head, kept = self._read(file)
        self._require(file, number, player, passes, head)
        return kept

    def begin(self, passes: int, trunk: Table) -> None:
        """Expect files of the pass that follows some passes, which begins with regrets of the trunk [row, hand]."""
        self._name = trunk_name(passes, trunk)

    def survey(self, passes: int) -> bool:
        """Return whether the next pass was begun. Raises RunError if a file is missing or belongs to another run.

        Heads of files are read alone: other damage is found when a file is read.
        """
        begun = False
        for number in range(self.count):
            for player in (0, 1):
                head = self.require(number, player, passes)
                begun |= head is not None and head.passes > passes
        return begun

    def require(self, number: int, player: int, passes: int) -> FileHead | None:
        """Return the head of a file, if it exists and can be read. Raises RunError if `open` would refuse the file."""
        file, head = self._file(number, player), None
        with os_errors(f"{file} cannot be read"), suppress(FileNotFoundError), file.open("rb") as data:
            try:
                head = _head(data)
            except (*UNREADABLE, OverflowError, OSError):
                return None
        try:
            self._require(file, number, player, passes, head)
        except RunError:
            self._read(file)  # it may be damaged, rather than another one
            raise
        return head

    def _require(self, file: Path, number: int, player: int, passes: int, head: FileHead | None) -> None:
        """Raise RunError unless a file belongs to the last complete pass or to the pass in progress."""
        last = passes - (passes - 1 - player) % 2 if passes > player else 0
        if head is None:
            if last:
                raise _damaged(file, "it is missing")
            return
        known = int(self.checksums[number, player]) if number < len(self.checksums) else 0
        if head.passes > passes and self.repeating:
            return
        if head.passes == passes + 1 and player == passes % 2 and not self.at_rest:
            if self._name is not None and head.begun != self._name and (head.begun or self._recorded):
                raise _damaged(file, f"it is of pass {head.passes:,} of another run")
        elif head.passes != last:
            raise _damaged(file, f"it is of pass {head.passes:,}, not of pass {last:,}")
        elif known and head.checksum + KNOWN != known:
            raise _damaged(file, f"it is of pass {last:,} of another run")
        if head.checksum + KNOWN != known and number < len(self.checksums):
            self.checksums[number, player] = head.checksum + KNOWN

    def write(self, number: int, player: int, kept: KeptNumbers) -> None:
        """Keep the numbers of a player in a subgame, in place of those before, as the pass under way has found them."""
        file = self._file(number, player)
        content = _packed_file(file.name, kept._replace(begun=self._name or 0))
        self._write(file, content)
        if number < len(self.checksums):
            self.checksums[number, player] = content.checksum + KNOWN

    def require_passes(self, passes: int, least: int) -> None:
        """Raise ArtifactError if the files have fewer passes than the checkpoint."""
        if passes < least:
            raise ArtifactError(
                f"{self.folder} is of pass {passes:,}, and the checkpoint of pass {least:,}: copy it from where it is "
                "whole, or begin again in another folder"
            )

    def damaged(self, number: int, player: int, error: Exception) -> RunError:
        """Return the error to raise for a file that cannot be unpacked."""
        return _damaged(self._file(number, player), error)

    def read_trunk(self) -> KeptNumbers:
        """The number of passes that are complete and, as `values`, [row, hand] the tables of the trunk.

        RunError where it belongs to another run. What it records of the other files is compared with them from now on.
        """
        self._moving = (self.folder / COMING / TRUNK).exists()
        file = self._found(TRUNK)
        head, kept = self._read(file)
        if head is None:
            return kept
        self._recorded = bool(kept.packed)
        if kept.packed:
            try:
                of_all, run = kept.packed
                self.checksums, made_by = np.frombuffer(of_all, HEAD).reshape(self.count, 2).copy(), run.decode()
            except UNREADABLE as error:
                raise _damaged(file, error) from error
            if self.run is not None and made_by != self.run:
                raise _damaged(file, f"run {made_by or 'without an id'} has written it, not run {self.run}")
        self._begin(kept.passes, kept.values)
        return kept

    def write_trunk(self, passes: int, tables: Table) -> None:
        """Keep the tables of the trunk, as they are: they are small; and record all files that the pass has left."""
        self._write(self.folder / TRUNK, self.trunk_file(passes, tables))
        self._begin(passes, tables)

    def trunk_file(self, passes: int, tables: Table) -> PackedFile:
        """Return the content of the trunk's file."""
        packed = self.checksums.astype(HEAD).tobytes(), (self.run or "").encode()
        self._recorded = True
        return _packed_file(TRUNK, KeptNumbers(passes, np.asarray(tables), packed))

    def _begin(self, passes: int, tables: Table) -> None:
        """`begin`, from the tables of the trunk: regrets come first, averages below them."""
        self.begin(passes, tables[: len(tables) // (2 if self.said["average"] else 1)])

    def trunk_checksum(self) -> str:
        """The checksum of the trunk's file, which covers the checksums of all other files."""
        head, _ = self._read(self.folder / TRUNK)
        return f"{head.checksum:08x}" if head else ""

    def coming(self) -> Path:
        """A new folder for files of a later pass: see `take_over`."""
        folder = self.folder / COMING
        with os_errors(f"{folder} cannot be written"):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        return folder

    def take_over(self, passes: int, tables: Table) -> None:
        """Replace files by those in `coming`, and the tables of the trunk: all of them or none."""
        self._write(self.folder / COMING / TRUNK, self.trunk_file(passes, tables))
        self.complete()
        self._begin(passes, tables)

    def complete(self) -> None:
        """Finish `take_over`, also after a process was killed during it. The trunk's file shows that all are there."""
        folder = self.folder / COMING
        with os_errors(f"{self.folder} cannot be written"):
            if (folder / TRUNK).exists():
                for file in sorted(folder.glob(FILES), key=_trunk_last):
                    file.replace(self.folder / file.name)
        shutil.rmtree(folder, ignore_errors=True)
        self._moving = False

    @property
    def size(self) -> int:
        """Total size of all files in bytes."""
        return sum(file.stat().st_size for file in self.folder.glob(FILES))

    def copy_to(self, folder: Path, game: str) -> None:
        """Give all files to another folder as they are now: by links where the disk has them, else by copies.

        The folder says that it is for the game with the fingerprint `game`, whose payoffs may be others.
        """
        self.describe(folder, game)
        copy_files(sorted(self.folder.glob(FILES), key=_trunk_last), folder)

    def describe(self, folder: Path, game: str) -> None:
        """Write to another folder that it holds subgames of this kind, for the game with the fingerprint `game`."""
        with os_errors(f"{folder} cannot be written"):
            write_text(folder / ABOUT, json.dumps(self.said | {"game": game, "subgames": self.count}))

    def files(self, numbers: Iterable[int]) -> list[Path]:
        """Return the existing files of some subgames."""
        every = (self._file(number, player) for number in numbers for player in (0, 1))
        return [file for file in every if file.exists()]

    def checksums_of(self, number: int) -> list[int]:
        """Return the checksums of both players' files of a subgame, plus `KNOWN`; 0 where there is no file."""
        found = []
        for player in (0, 1):
            known = int(self.checksums[number, player])
            if not known:
                head, _ = self._read(self._file(number, player))
                known = head.checksum + KNOWN if head else 0
            found.append(known)
        return found

    def _file(self, number: int, player: int) -> Path:
        return self._found(f"{number}-{player + 1}.zst")

    def _found(self, name: str) -> Path:
        """Return the path to read a file from: the folder, or the folder of files that are still to be moved."""
        if self._moving and (coming := self.folder / COMING / name).exists():
            return coming
        return self.folder / name

    def _write(self, file: Path, content: PackedFile) -> None:
        """Replace a file in one step: a reader finds the old one or the new one, whole."""
        draft = file.with_name(f".{file.name}")
        with os_errors(f"{file} cannot be written"):
            try:
                with draft.open("wb") as out:
                    out.writelines(content.pieces)
                    out.flush()
                    os.fsync(out.fileno())
            except OSError:
                with suppress(OSError):
                    draft.unlink()  # a full disk has room again for what is there
                raise
            draft.replace(file)

    def _read(self, file: Path) -> tuple[FileHead | None, KeptNumbers]:
        """Return the head and the numbers of a file; None and no numbers if the file does not exist."""
        if not file.exists():
            return None, KeptNumbers()
        with os_errors(f"{file} cannot be read"):
            data = file.read_bytes()
        try:
            form = _format(data)
            check, count = np.frombuffer(data, HEAD, 2, len(MARK)).tolist()
            seed = 0 if form == OLDER else crc32(file.name.encode())
            if crc32(memoryview(data)[len(MARK) + 8 :], seed) != check:
                raise ValueError("its checksum is another one")
            sizes = np.frombuffer(data, HEAD, count, len(MARK) + 16)
            ends = len(MARK) + 16 + 8 * count + np.cumsum([0, *sizes.tolist()])
            pieces = [data[begin:end] for begin, end in pairwise(ends.tolist())]
            first = ZstdDecompressor().decompress(pieces[0])
            words = WORDS[form]
            passes, *shape, width, begun = np.frombuffer(first, HEAD, words).tolist() + [0] * (FIRST - words)
            values = np.frombuffer(first, f"<f{width}", -1, 8 * words).reshape(shape).copy()
        except UNREADABLE as error:
            raise _damaged(file, error) from error
        return FileHead(check, passes, begun), KeptNumbers(passes, values, tuple(pieces[1:]), begun)


class PackedFile(NamedTuple):
    """A file that is to be written."""

    pieces: list[bytes]
    checksum: int


def _packed_file(name: str, kept: KeptNumbers) -> PackedFile:
    """Return the bytes to write to the file called `name`, with their checksum."""
    values = kept.values
    first = np.array([kept.passes, *values.shape, values.itemsize, kept.begun], HEAD).tobytes()
    pieces = ZstdCompressor(LEVEL).compress(first + values.tobytes()), *kept.packed
    body = [np.array([len(pieces), *map(len, pieces)], HEAD).tobytes(), *pieces]
    check = crc32(name.encode())  # so that no file can be taken for another one
    for piece in body:
        check = crc32(piece, check)
    return PackedFile([MARK, np.array([check], HEAD).tobytes(), *body], check)


def _format(data: bytes) -> int:
    """The format of a file; ValueError where it is none of ours."""
    found = next((number for number, mark in MARKS.items() if data.startswith(mark)), None)
    if found is None:
        raise ValueError("it does not begin as files of subgames do")
    return found


def _head(data: BinaryIO) -> FileHead:
    """What a file says of itself, of which no more is read than it takes."""
    words = WORDS[_format(data.read(len(MARK)))]
    check, count = np.frombuffer(data.read(16), HEAD).tolist()
    data.seek(8 * count, os.SEEK_CUR)
    first = np.frombuffer(ZstdDecompressor().stream_reader(data).read(8 * words), HEAD).tolist()
    return FileHead(check, first[0], first[4] if words == FIRST else 0)


def _trunk_last(file: Path) -> bool:
    """Sort key of files to be moved. The trunk's file comes last: it shows that all others are there."""
    return file.name == TRUNK


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
        found |= {"written": found["format"], "format": FORMAT if found["format"] in MARKS else found["format"]}
        return found | {"subgames": int(said.get("subgames", 0))}  # those of kilt 0.1.0 do not say
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise _damaged(folder / ABOUT, error) from error


def require_whole(folder: Path, run: str | None = None, least: int = 0, trunk: str | None = None) -> None:
    """Read all files of a folder of subgames; RunError says which are damaged or missing, and of which subgames.

    Parameters
    ----------
    folder : Path
        Of a run, which may be at work, or of a strategy.
    run : str, optional
        The id of the run that the folder belongs to. Left out: that of any.
    least : int
        Passes that were complete at the checkpoint of the run.
    trunk : str, optional
        Where these are files of a strategy: what its manifest says of that of the trunk; empty where it says nothing.
    """
    said = _about(folder)
    require_about(folder, {"format": FORMAT})
    store = SubgameStore.opened(folder, said["game"], run)
    passes, faults = store.settled(trunk) if trunk is not None else store.read_trunk().passes, list[str]()
    store.require_passes(passes, least)
    there = [int(file.name.partition("-")[0]) for file in folder.glob("[0-9]*-[12].zst")]
    for number in range(max(store.count, 1 + max(there, default=-1))):
        for player in (0, 1):
            for attempt in range(ATTEMPTS):
                try:
                    store.open(number, player, passes)
                    break
                except KiltError as error:
                    before, passes = passes, store.read_trunk().passes
                    if attempt and passes == before:  # no process is at work on it
                        faults.append(str(error))
                        break
    if faults:
        raise RunError("; ".join(faults))


def _damaged(file: Path, error: Exception | str) -> RunError:
    number, _, player = file.stem.partition("-")
    where = f", player {player} of subgame {number}," if player else ""
    return RunError(
        f"{file}{where} is damaged ({error}): copy it from where it is whole, or begin again in another folder"
    )
