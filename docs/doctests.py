"""An extension of the API page's build: doctests in docstrings are shown as code, wherever they stand."""

from __future__ import annotations

import re
from typing import Any

from griffe import Docstring, Extension, Object

# Lines from a prompt to the next empty line, outside of numpydoc's own section of examples.
DOCTEST = re.compile(r"(?:^|(?<=\n\n))>>> .*?(?=\n\n|\Z)", re.DOTALL)


class Doctests(Extension):
    """Put fences around doctests."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if isinstance(obj.docstring, Docstring) and "Examples\n---" not in obj.docstring.value:
            obj.docstring.value = DOCTEST.sub(lambda match: f"```pycon\n{match[0]}\n```", obj.docstring.value)
