"""Write the logs of kilt's matches in the format of the ACPC dealer."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from kilt.artifact import os_errors
from kilt.errors import PlayError
from kilt.play.acpc import Score, format_log_entry, require_different_names
from kilt.play.dealer import Hand
from kilt.play.match import Match


class NewLog:
    """A log file that is created when its first line is written.

    A match that never begins therefore leaves no file.

    It has the methods that `kilt.play.net.serve` needs of a text file. The constructor raises PlayError if the file
    already exists, or if its folder does not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[str] | None = None
        if path.exists() or not path.absolute().parent.is_dir():
            what = "is there already" if path.exists() else "has no folder to be in"
            raise PlayError(f"the log {path} {what}: choose another `log`")

    @property
    def begun(self) -> bool:
        """Whether the file has been created."""
        return self._file is not None

    def write(self, text: str) -> None:
        """Append text to the log. The first call creates the file."""
        with os_errors(f"{self.path} cannot be written"):
            self._file = self._file or self.path.open("x", encoding="utf-8", errors="replace")
            self._file.write(text)

    def flush(self) -> None:
        """Write buffered text to the file."""
        if self._file:
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()


class MatchLog:
    """The log of a match: its settings as a comment, the hands, and the final score.

    Without a path, it writes nothing.

    Parameters
    ----------
    path : Path or None
        Path of a new file.
    settings : str
        Game, number of hands and seed of the match.
    """

    def __init__(self, path: Path | None, settings: str) -> None:
        self.file, self.settings = NewLog(path) if path else None, settings

    def __enter__(self) -> MatchLog:
        return self

    def __exit__(self, *_: object) -> None:
        if self.file:
            self.file.close()

    def write(self, hand: Hand) -> None:
        """Append a hand to the log. The first call writes the match's settings, too."""
        if self.file and not self.file.begun:
            names = require_different_names(hand.players)
            self.file.write(f"# name/game/hands/seed {'.'.join(names)} {self.settings}\n")
        if self.file:
            self.file.write(format_log_entry(hand))

    def end(self, match: Match, hands: int) -> None:
        """Append the final score, if all `hands` of the match were played."""
        results = match.results if match.played is None else match.played
        per_unit = match.hands // len(match.results)
        if self.file and per_unit * len(results) == hands:
            chips = round(float(results.sum()) * per_unit, 6)
            self.file.write(f"{Score((chips, -chips), match.players)}\n")
