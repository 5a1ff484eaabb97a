"""The folder of files in which CFR on disk stores subgames.

Each player's numbers in a subgame have a separate file, because a pass changes the regrets of only one player;
`disk_files` packs them.

The file of the trunk is the manifest of the folder. It records the number of complete passes, the run that made them,
and the checksum of each file after them. Files written by a pass in progress are not yet in the manifest; instead, they
name the trunk with which the pass began. A file of another run, or of another iteration of the same run, is therefore
refused.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kilt.artifact import MANIFEST, os_errors, write_text
from kilt.errors import ArtifactError, KiltError, RunError
from kilt.machine import locked
from kilt.solve.tables.disk_files import (
    FORMAT,
    HEAD,
    MARKS,
    UNREADABLE,
    FileHead,
    KeptNumbers,
    PackedFile,
    packed_file,
    read_file,
    read_head,
    trunk_name,
)
from kilt.tree.vector_arrays import Table

ABOUT, TRUNK, LOCK = "about.json", "trunk.zst", ".lock"
COMING = ".coming"  # folder for files of a later pass, which will replace the current files
FILES = "[!.]*.zst"  # all but the drafts of killed processes
KNOWN = 1 << 32  # added to recorded checksums, so that 0 means: not recorded
ATTEMPTS = 5  # to read a file of a folder that a run may be writing to at the same time
Checksums = npt.NDArray[np.uint64]


class SubgameStore:
    """A folder with the files of CFR on disk: two per subgame, and one for the first rounds.

    Parameters
    ----------
    folder : Path
        Created if it is missing.
    game : str
        Fingerprint of the game. A folder of another game is refused.
    scale : float
        Integers per chip. A folder with another scale is refused.
    averaging : bool
        Whether averages are stored too. A folder that differs in this is refused.
    count : int
        Number of subgames, to check that no file is missing.
    run : str, optional
        The id of the run that the folder belongs to; the files of another run are refused. Default: accept any run.

    Attributes
    ----------
    checksums : ndarray of uint64, shape (count, 2)
        Checksums of both players' files of each subgame after the last complete pass, plus `KNOWN`; 0 if nothing is
        recorded, as in folders of older formats.
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
        self.said = self.description(game, scale, averaging)
        self.checksums: Checksums = np.zeros((count, 2), np.uint64)
        self.at_rest = False  # whether files of a pass in progress are refused, as for a saved strategy
        self.repeating = False  # whether files of any later pass are accepted: a worker that repeats passes has some
        self._recorded = True  # False if files may have an older format, without the name of their trunk
        self._name: int | None = None  # of the trunk that was last read, written or passed to `begin`; None before
        self._moving = False  # whether the process was killed in `replace_files`, and files remain in `COMING`
        with os_errors(f"subgames in {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            about = folder / ABOUT
            if not about.exists():
                write_text(about, json.dumps(self.said | {"subgames": count}))
            require_about(folder, self.said)
            self._recorded = _about(folder)["written"] == FORMAT

    @staticmethod
    def description(game: str, scale: float, averaging: bool) -> dict[str, Any]:
        """Return the description of a folder of subgames, such as its game and format."""
        return {"format": FORMAT, "game": game, "scale": scale, "average": averaging}

    @classmethod
    def opened(cls, folder: Path, game: str, run: str | None = None) -> SubgameStore:
        """Open an existing folder of subgames."""
        said = _about(folder)
        require_about(folder, {"format": FORMAT, "game": game})
        return cls(folder, game, said["scale"], said["average"], said["subgames"], run)

    def verify_strategy(self, trunk: str) -> int:
        """Check a saved strategy's files, and return the number of CFR passes that computed it.

        `trunk` is the checksum of the trunk's file according to the strategy's manifest, or an empty string if the
        manifest has none. Raises RunError if the file has another checksum.
        """
        passes, self.at_rest = self.read_trunk().passes, True
        if trunk and self.trunk_checksum() != trunk:
            raise _damaged(self.folder / TRUNK, f"its checksum is not {trunk}, which {MANIFEST} records")
        return passes

    @property
    def scale(self) -> float:
        """The factor that converts regrets in chips to the integers stored in files."""
        return float(self.said["scale"])

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder for writing.

        Raises RunError if another process writes to it.
        """
        with ExitStack() as held:
            try:
                held.enter_context(locked(self.folder / LOCK, wait=False))
            except BlockingIOError:
                raise RunError(f"another process is at work on {self.folder}: wait for it, or stop it") from None
            yield

    def open(self, number: int, player: int, passes: int) -> KeptNumbers:
        """Read a player's regrets and average strategy in a subgame from their file.

        The result is empty if the file has not been written yet. Raises RunError unless the file was written by the
        player's last of `passes` complete passes, or by the pass in progress.
        """
        file = self._file(number, player)
        head, kept = self._read(file)
        self._require(file, number, player, passes, head)
        return kept

    def begin(self, passes: int, trunk: Table) -> None:
        """Begin a pass of CFR, which will replace the subgames' files.

        From now on, files that this pass has written are accepted. The pass starts from the first-round regrets `trunk`
        after `passes` passes.
        """
        self._name = trunk_name(passes, trunk)

    def check_headers(self, passes: int) -> bool:
        """Check the headers of all files, and return whether a pass of CFR was interrupted.

        Raises RunError if a file is missing or of another run. Reads only the headers of files: other damage is
        reported when the file is read.
        """
        begun = False
        for number in range(self.count):
            for player in (0, 1):
                head = self.require(number, player, passes)
                begun |= head is not None and head.passes > passes
        return begun

    def require(self, number: int, player: int, passes: int) -> FileHead | None:
        """Return the header of a player's file for a subgame, or None if it is missing or unreadable.

        Raises RunError if `open` would refuse the file.
        """
        file, head = self._file(number, player), None
        with os_errors(f"{file} cannot be read"), suppress(FileNotFoundError), file.open("rb") as data:
            try:
                head = read_head(data)
            except (*UNREADABLE, OverflowError, OSError):
                return None
        try:
            self._require(file, number, player, passes, head)
        except RunError:
            self._read(file)  # a damaged file gets its own error message
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
                raise _damaged(file, f"it belongs to pass {head.passes:,} of another run")
        elif head.passes != last:
            raise _damaged(file, f"it belongs to pass {head.passes:,}, not to pass {last:,}")
        elif known and head.checksum + KNOWN != known:
            raise _damaged(file, f"it belongs to pass {last:,} of another run")
        if head.checksum + KNOWN != known and number < len(self.checksums):
            self.checksums[number, player] = head.checksum + KNOWN

    def write(self, number: int, player: int, kept: KeptNumbers) -> None:
        """Replace the file of a player's regrets and average strategy in a subgame."""
        file = self._file(number, player)
        content = packed_file(file.name, kept._replace(begun=self._name or 0))
        self._write(file, content)
        if number < len(self.checksums):
            self.checksums[number, player] = content.checksum + KNOWN

    def require_passes(self, passes: int, least: int) -> None:
        """Raise ArtifactError if the files are older than the run's checkpoint."""
        if passes < least:
            raise ArtifactError(
                f"{self.folder} is at pass {passes:,}, but the checkpoint is at pass {least:,}: copy the folder from "
                "an undamaged copy, or start again in another folder"
            )

    def damaged(self, number: int, player: int, error: Exception) -> RunError:
        """Return the error for a file whose content cannot be unpacked."""
        return _damaged(self._file(number, player), error)

    def read_trunk(self) -> KeptNumbers:
        """Read the tables of the first rounds, and the number of complete passes.

        The tables are `values` of the result. From now on, the other files are compared with the checksums in the
        trunk's file. Raises RunError if the trunk belongs to another run.
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
        """Write the tables of the first rounds, with the checksums of all other files.

        They are small and not compressed.
        """
        self._write(self.folder / TRUNK, self.trunk_file(passes, tables))
        self._begin(passes, tables)

    def trunk_file(self, passes: int, tables: Table) -> PackedFile:
        """Return the content of the file with the first rounds' tables."""
        packed = self.checksums.astype(HEAD).tobytes(), (self.run or "").encode()
        self._recorded = True
        return packed_file(TRUNK, KeptNumbers(passes, np.asarray(tables), packed))

    def _begin(self, passes: int, tables: Table) -> None:
        """Call `begin` with the regrets among the tables of the first rounds.

        Averages, if stored, lie below the regrets.
        """
        self.begin(passes, tables[: len(tables) // (2 if self.said["average"] else 1)])

    def trunk_checksum(self) -> str:
        """Return the checksum of the file with the first rounds' tables.

        It covers the checksums of all other files.
        """
        head, _ = self._read(self.folder / TRUNK)
        return f"{head.checksum:08x}" if head else ""

    def create_replacements(self) -> Path:
        """Create an empty folder for new versions of all files, before `replace_files`."""
        folder = self.folder / COMING
        with os_errors(f"{folder} cannot be written"):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        return folder

    def replace_files(self, passes: int, tables: Table) -> None:
        """Replace all files by their new versions from `create_replacements`.

        Either all files are replaced, or none.
        """
        self._write(self.folder / COMING / TRUNK, self.trunk_file(passes, tables))
        self.finish_replacement()
        self._begin(passes, tables)

    def finish_replacement(self) -> None:
        """Finish an interrupted replacement of files, such as after the process was killed.

        The first-rounds file is moved last.
        """
        folder = self.folder / COMING
        with os_errors(f"{self.folder} cannot be written"):
            if (folder / TRUNK).exists():
                for file in sorted(folder.glob(FILES), key=_trunk_last):
                    file.replace(self.folder / file.name)
        shutil.rmtree(folder, ignore_errors=True)
        self._moving = False

    def recover(self) -> None:
        """Finish another process's interrupted replacement of files, if there is one."""
        if (self.folder / COMING).exists():
            with self.lock():
                self.finish_replacement()

    @property
    def size(self) -> int:
        """The total size of all files in bytes."""
        return sum(file.stat().st_size for file in self.folder.glob(FILES))

    def copy_to(self, folder: Path, game: str) -> None:
        """Put all files into another folder, as hard links if possible, else as copies.

        The other folder is described as belonging to the game with fingerprint `game`, which may have other payoffs.
        """
        self.describe(folder, game)
        copy_files(sorted(self.folder.glob(FILES), key=_trunk_last), folder)

    def describe(self, folder: Path, game: str) -> None:
        """Write a description of the subgames to another folder.

        The subgames belong to the game with the fingerprint `game`.
        """
        with os_errors(f"{folder} cannot be written"):
            write_text(folder / ABOUT, json.dumps(self.said | {"game": game, "subgames": self.count}))

    def files(self, numbers: Iterable[int]) -> list[Path]:
        """Return the paths of the existing files of the given subgames."""
        every = (self._file(number, player) for number in numbers for player in (0, 1))
        return [file for file in every if file.exists()]

    def checksums_of(self, number: int) -> list[int]:
        """Return the checksums of a subgame's two files, one for each player.

        `KNOWN` is added to each; it is 0 if there is no file.
        """
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
        """Return the path to read a file from: the folder of new versions if it is still there, else the usual one."""
        if self._moving and (coming := self.folder / COMING / name).exists():
            return coming
        return self.folder / name

    def _write(self, file: Path, content: PackedFile) -> None:
        """Replace a file in one step, so that a reader finds either the old or the new content, complete."""
        draft = file.with_name(f".{file.name}")
        with os_errors(f"{file} cannot be written"):
            try:
                with draft.open("wb") as out:
                    out.writelines(content.pieces)
                    out.flush()
                    os.fsync(out.fileno())
            except OSError:
                with suppress(OSError):
                    draft.unlink()  # frees space on a full disk
                raise
            draft.replace(file)

    def _read(self, file: Path) -> tuple[FileHead | None, KeptNumbers]:
        """Return the header and the numbers of a file, or None and no numbers if the file does not exist."""
        if not file.exists():
            return None, KeptNumbers()
        with os_errors(f"{file} cannot be read"):
            data = file.read_bytes()
        try:
            return read_file(file.name, data)
        except UNREADABLE as error:
            raise _damaged(file, error) from error


def _trunk_last(file: Path) -> bool:
    """Return a sort key that puts the first-rounds file last. Its presence shows that all other files are complete."""
    return file.name == TRUNK


def copy_files(files: Iterable[Path], folder: Path) -> None:
    """Put files into a folder, as hard links if possible, else as copies."""
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
    """Raise RunError if a folder's subgames are of another game or format."""
    said = _about(folder)
    for what, value in wanted.items():
        if said.get(what) != value:
            raise RunError(
                f"{folder} holds subgames of another {what}, {said.get(what)}, not {value}: give another folder"
            )


def _about(folder: Path) -> dict[str, Any]:
    """Read the description of a folder from its file `ABOUT`."""
    with os_errors(f"{folder / ABOUT} cannot be read"):
        text = (folder / ABOUT).read_bytes()
    try:
        said = json.loads(text)
        found = {what: said[what] for what in ("format", "game", "scale", "average")}
        found |= {"written": found["format"], "format": FORMAT if found["format"] in MARKS else found["format"]}
        return found | {"subgames": int(said.get("subgames", 0))}  # kilt 0.1.0 did not record it
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise _damaged(folder / ABOUT, error) from error


def require_whole(folder: Path, run: str | None = None, least: int = 0, trunk: str | None = None) -> None:
    """Read all files in a folder of subgames, and raise RunError if one is damaged or missing.

    Parameters
    ----------
    folder : Path
        Folder of a run, which may be in progress, or of a saved strategy.
    run : str, optional
        The id of the run that the folder belongs to. Default: accept any run.
    least : int
        Passes that were complete at the checkpoint of the run.
    trunk : str, optional
        For a saved strategy: the checksum of the trunk's file according to its manifest; empty if there is none.

    Raises
    ------
    RunError
        If a file is damaged or missing. The message names the subgame.
    """
    said = _about(folder)
    require_about(folder, {"format": FORMAT})
    store = SubgameStore.opened(folder, said["game"], run)
    passes, faults = store.verify_strategy(trunk) if trunk is not None else store.read_trunk().passes, list[str]()
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
                    if attempt and passes == before:  # no other process is writing to the folder
                        faults.append(str(error))
                        break
    if faults:
        raise RunError("; ".join(faults))


def _damaged(file: Path, error: Exception | str) -> RunError:
    number, _, player = file.stem.partition("-")
    where = f", player {player} of subgame {number}," if player else ""
    return RunError(
        f"{file}{where} is damaged ({error}): restore it from an undamaged copy, or start again in another folder"
    )
