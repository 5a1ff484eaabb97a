"""How results show themselves in notebooks.

>>> html_table("Leduc", {"value": "-0.0856"})
'<table><caption>Leduc</caption><tr><th>value</th><td>-0.0856</td></tr></table>'
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def html_table(title: str, rows: Mapping[str, str]) -> str:
    """A table of two columns: what, and how much."""
    cells = "".join(f"<tr><th>{escape(what)}</th><td>{escape(value)}</td></tr>" for what, value in rows.items())
    return f"<table><caption>{escape(title)}</caption>{cells}</table>"
