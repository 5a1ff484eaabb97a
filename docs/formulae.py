"""A hook of the documentation's build: formulae in LaTeX become MathML, which needs neither scripts nor fonts."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

# What the extension arithmatex makes of $…$ and $$…$$.
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(html: str, **_: Any) -> str:
    """Replace every formula of a page."""
    return FORMULA.sub(_mathml, html)


def _mathml(match: re.Match[str]) -> str:
    return convert(unescape(match[3]), display="inline" if match[2] == "(" else "block")
