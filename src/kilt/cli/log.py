"""``kilt evaluate log``: matches that were played elsewhere. `NewLog` is the log of one that is played here."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Annotated

import typer

from kilt.cli.show import AsJson, print_json, print_table, say


class NewLog:
    """A new file for a log, made when its first line is written: what never begins leaves none behind.

    It has what `kilt.play.net.serve` needs of a text file. PlayError is raised at once where it cannot be made.
    """

    def __init__(self, path: Path) -> None:
        from kilt.errors import PlayError

        self.path = path
        self._file: IO[str] | None = None
        if path.exists() or not path.absolute().parent.is_dir():
            what = "is there already" if path.exists() else "has no folder to be in"
            raise PlayError(f"the log {path} {what}: choose another --log")

    @property
    def begun(self) -> bool:
        """Whether the file is there."""
        return self._file is not None

    def write(self, text: str) -> None:
        """Add some lines."""
        from kilt.artifact import os_errors

        with os_errors(f"{self.path} cannot be written"):
            self._file = self._file or self.path.open("x", encoding="utf-8", errors="replace")
            self._file.write(text)

    def flush(self) -> None:
        """See that what was written is in the file."""
        if self._file:
            self._file.flush()

    def close(self) -> None:
        """End the log."""
        if self._file:
            self._file.close()


def log(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A log as ACPC dealers write it.")],
    game: Annotated[
        str, typer.Option("--game", "-g", metavar="NAME", help="What was played: a ready-made game or a .game file.")
    ],
    phh: Annotated[
        Path | None,
        typer.Option("--phh", metavar="OUT", help="Also write the hands in PHH format (.phhs), a new file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read the log of a match: who won how much, with a 95% interval. Two hands of one deal count as one."""
    import numpy as np

    from kilt.artifact import os_errors
    from kilt.errors import PlayError
    from kilt.evaluate.stats import estimate
    from kilt.play.acpc import decoded, read_log
    from kilt.play.phh import write_phhs
    from kilt.play.players import load_holdem

    rules = load_holdem(game)
    with os_errors(f"{file} cannot be read"):
        data = file.read_bytes()
    found = read_log(decoded(data), rules, source=str(file))
    if not found.hands:
        raise PlayError(f"{file} has no hands: it is no log of a match, or of one that never began")
    names = sorted({name for hand in found.hands for name in hand.players})
    if len(names) != 2:
        raise PlayError(f"{file} has {len(names)} players ({', '.join(names)}); a match is between two with two names")
    won = [hand.payoffs[hand.players.index(names[0])] * 1000 / rules.rules.big_blind for hand in found.hands]
    pairs = list(zip(found.hands[::2], found.hands[1::2], strict=False))
    duplicate = 2 * len(pairs) == len(won) and all(
        one.cards.holes == other.cards.holes and one.players == other.players[::-1] for one, other in pairs
    )
    rate = estimate(np.mean(np.reshape(won, (-1, 2)), axis=1) if duplicate else won)
    if phh:
        if phh.exists():
            raise PlayError(f"{phh} is there already: choose another name")
        text = "".join(write_phhs(found.hands))
        with os_errors(f"{phh} cannot be written"):
            phh.write_text(text, encoding="utf-8")
    if as_json:
        print_json(
            {"game": rules.name, "players": names, "mbb_per_hand": rate.mean, "ci95": rate.interval}
            | {"hands": len(won), "duplicate": duplicate, "complete": found.score is not None}
        )
        return
    row = [*names, str(rate), "mbb/h", f"{len(won):,}", "yes" if duplicate else "no"]
    print_table(
        str(file),
        ["player", "against", "wins", "unit", "hands", "duplicate"],
        [row],
    )
    if found.score is None:
        say("the log has no score: the match broke off")
    if phh:
        say(f"the hands are in {phh}")
