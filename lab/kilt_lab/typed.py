"""Measurements that are typed into pages: numbers with a margin, dates, and names of machines outside rendered tables.

>>> typed("PCS comes to 305.1 ± 4.2 mbb/g (18 November 2026, on an H200).")
['305.1 ± 4.2', '18 November 2026', 'H200']
>>> typed("Stacks of 200 big blinds. <!-- lab table a/b/c -->| 1 ± 2 |<!-- /lab -->")
[]
"""

from __future__ import annotations

import re
from pathlib import Path

from kilt_lab.render import by_hand

RENDERED = re.compile(r"<!-- lab table .*?<!-- /lab -->", re.DOTALL)
FENCED = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
MACHINES = r"[AHB][12]00|GH200|L40S?|RTX ?\d{4}|[TV]100|EPYC|Xeon|Ryzen|Threadripper|Core i[3579]|Graviton\d?"
SIGNS = re.compile(
    rf"[+−]?[\d.,]*\d ± [\d.,]*\d|±|\b\d{{1,2}} (?:{MONTHS}) 20\d\d|\b20\d\d-\d\d-\d\d\b|\b(?:{MACHINES})\b"
)


def typed(text: str) -> list[str]:
    """Return the measurements, dates and machines of a page, in their order.

    Tables that are rendered do not count, nor do fenced blocks: commands print those, and tests run them.
    """
    return [match[0] for match in SIGNS.finditer(RENDERED.sub("", FENCED.sub("", text)))]


def pages_of(root: Path) -> dict[str, str]:
    """Return the text of all pages and notes that are written by hand, by their place in a clone."""
    paths = [root / "README.md", *sorted((root / "docs").rglob("*.md")), *sorted((root / "lab/results").rglob("*.md"))]
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in paths if by_hand(path)}
