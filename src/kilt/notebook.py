"""Show results in notebooks as tables and pictures.

>>> html_table("Leduc", {"value": "-0.0856"})
'<table><caption>Leduc</caption><tr><th>value</th><td>-0.0856</td></tr></table>'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple


def html_table(title: str, rows: Mapping[str, str]) -> str:
    """Return an HTML table with two columns: names and values."""
    cells = "".join(f"<tr><th>{escape(what)}</th><td>{escape(value)}</td></tr>" for what, value in rows.items())
    return f"<table><caption>{escape(title)}</caption>{cells}</table>"


class TextTable(NamedTuple):
    """A table of texts, shown as HTML in notebooks and with aligned columns by `print`.

    >>> print(TextTable("Ks||", ("action", "share"), (("check", "0.25"), ("bet", "0.75"))))
    Ks||
    action  share
    check    0.25
    bet      0.75
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        lines = (self.columns, *self.rows)
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in lines]
        return "\n".join([self.title, *text] if self.title else text)

    def _repr_html_(self) -> str:
        def line(tag: str, cells: Iterable[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        head, body = line("th", self.columns), "".join(line("td", row) for row in self.rows)
        return f"<table><caption>{escape(self.title)}</caption>{head}{body}</table>"


class Picture:
    """A picture that notebooks show, and that can be saved to a file.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
        The figure, to be changed further.
    """

    def __init__(self, figure: Any) -> None:
        self.figure = figure

    def save(self, path: str | Path) -> None:
        """Write the picture to a file in the format of its suffix, such as ``.png``, ``.svg`` or ``.pdf``."""
        import_module("kilt.viz.picture").save_figure(self.figure, path)

    def _repr_svg_(self) -> str:
        text = StringIO()
        self.figure.savefig(text, format="svg")
        return text.getvalue()


class Drawable:
    """Base class of results that notebooks show as a picture.

    `kilt.viz.shown` draws it; matplotlib is imported when the picture is first drawn.
    """

    def plot(self) -> Picture:
        """Return a picture of the result, for a notebook or a file."""
        return Picture(import_module("kilt.viz.shown").result_figure(self))
