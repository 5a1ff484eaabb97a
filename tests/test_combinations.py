"""Every combination of representation, home of tables and sampling works or is refused, as docs/reference says."""

import pytest

from combinations import ALL_MAPS, PAGE, ROWS, SAMPLING, here, is_algorithm, page, refused, works

CELLS = [
    (row, sampling, cell) for row in filter(here, ROWS) for sampling, cell in enumerate(row[4]) if cell != ALL_MAPS
]


@pytest.mark.parametrize(
    ("row", "sampling", "cell"), CELLS, ids=lambda part: part if isinstance(part, str) and " " not in part else None
)
def test_what_the_table_says(row, sampling, cell):
    assert works(row, cell) if is_algorithm(cell) else refused(row, sampling), (row[:2], SAMPLING[sampling])


def test_the_page_has_the_table():
    """After a change, `python tests/combinations.py --write`."""
    text = PAGE.read_text()
    assert page(text) == text
