"""``kilt check``: check files on disk for damage."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kilt.cli import options
from kilt.cli.show import AsJson, errors, print_error, print_json, say
from kilt.cost import in_bytes


def check(
    path: Annotated[Path, options.FOLDER],
    as_json: AsJson = False,
) -> None:
    """Check all files of kilt in a folder for damage.

    The check compares checksums and the bounds of values. It reads every file, including large files that were checked
    before. The exit code is 1 if a file is damaged.
    """
    from kilt.runs.check import check as look

    with errors.status("reading all files …"):
        found = list(look(path))
    damaged, size = [one for one in found if one.damage], sum(one.size for one in found)
    if as_json:
        said = [{"path": str(one.path), "what": one.what, "damage": one.damage} for one in damaged]
        print_json({"checked": len(found), "bytes": size, "damaged": said})
    else:
        for one in damaged:
            print_error("DAMAGED", f"{one.what} in {one.path}: {one.damage}")
        say(f"{len(found) - len(damaged)} of {len(found)} are whole; {in_bytes(size)} were read")
    if damaged:
        raise typer.Exit(1)
