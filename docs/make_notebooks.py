"""Notebooks of the tutorials, from their pages: ``python docs/make_notebooks.py`` writes docs/notebooks.

Prose becomes a Markdown cell, a block of Python a code cell, commands a cell of ``!kilt …`` lines, and a block with a
title a cell that writes the file. Tests run the blocks of the pages, and hold the notebooks to the pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TUTORIALS = ("tutorial", "tutorial-players")
FENCE = re.compile(
    r'(?:^<!-- (not run|run)(?:: [^\n]*)? -->\n)?^```(\w*)(?: title="([^"\n]*)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"(?<!\!)\[([^]]+)\]\((?!https?:)[^)]*\)")  # to another page: a notebook stands alone
CONTINUED = re.compile(r" *\\\n *")  # a command of several lines
PICTURE = re.compile(r"!\[[^]]*\]\([^)]*\)\n*")


def notebook(page: str) -> dict[str, Any]:
    """Return a page as a notebook."""
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    cells = [_cell(f"{number}", *each) for number, each in enumerate(_cells(page))]
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _cells(page: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each cell."""
    place = 0
    for match in FENCE.finditer(page):
        yield "markdown", page[place : match.start()]
        place = match.end()
        mark, kind, title, text = match.groups()
        if title:
            yield "code", f"%%writefile {title}\n{text}"
        elif kind == "console" and mark != "not run" and "kilt web" not in text:
            typed = re.findall(r"^\$ ((?:.*\\\n)*.*)", text, re.MULTILINE)
            yield "code", "\n".join("!" + CONTINUED.sub(" ", command) for command in typed)
        else:
            yield ("code", text) if kind == "python" else ("markdown", match[0])
    yield "markdown", page[place:]


def _cell(name: str, kind: str, text: str) -> dict[str, Any]:
    if kind == "markdown":
        return {"cell_type": kind, "id": name, "metadata": {}, "source": LINK.sub(r"\1", PICTURE.sub("", text)).strip()}
    return {
        "cell_type": kind,
        "execution_count": None,
        "id": name,
        "metadata": {},
        "outputs": [],
        "source": text.strip(),
    }


def made() -> dict[Path, str]:
    """Return the notebooks as they should be, by their places."""
    return {
        HERE / "notebooks" / f"{name}.ipynb": json.dumps(
            notebook((HERE / "guides" / f"{name}.md").read_text(encoding="utf-8")), indent=1, ensure_ascii=False
        )
        + "\n"
        for name in TUTORIALS
    }


if __name__ == "__main__":
    for path, text in made().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
