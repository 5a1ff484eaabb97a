"""What the library knows about its own speed comes from a data file, which says where each number is from."""

import re
from datetime import date
from pathlib import Path

import pytest

import kilt
from kilt.paces import curve, paces
from kilt.solve.tables.disk import USUAL_PACE
from kilt.solve.tables.disk_plan import CURVE, iterations_to

SECTIONS = [(name, section) for name, section in paces().items()]
SECTIONS += [
    (f"{name}.{part}", inner)
    for name, each in paces().items()
    for part, inner in each.items()
    if isinstance(inner, dict)
]


@pytest.mark.parametrize(("name", "section"), SECTIONS)
def test_each_number_has_an_origin(name, section):
    """A published number has its source; a measured one the commit, the day and the machine."""
    if "source" not in section:
        assert (
            re.fullmatch("[0-9a-f]{7}", section["commit"]) and isinstance(section["date"], date) and section["machine"]
        )
    numbers = [value for value in section.values() if isinstance(value, float | int)]
    assert numbers or "iterations" in section
    assert all(value > 0 for value in numbers)


def test_curves_fall():
    assert curve("disk", "curve") == CURVE and len(CURVE) == 10
    assert sorted(CURVE) == CURVE and [mbb for _, mbb in CURVE] == sorted((mbb for _, mbb in CURVE), reverse=True)
    assert [round(iterations_to(mbb)) for iterations, mbb in CURVE] == [iterations for iterations, _ in CURVE]
    assert tuple(USUAL_PACE) == (4.0e-9, 4.3e-9, 2.3e-9)


def test_no_number_is_there_that_nobody_reads():
    """Each name of the file stands in the library."""
    source = "".join(path.read_text(encoding="utf-8") for path in Path(kilt.__file__).parent.rglob("*.py"))
    names = {name for _, section in SECTIONS for name, value in section.items() if isinstance(value, float | int)}
    assert not [name for name in names if f'"{name}"' not in source and name not in USUAL_PACE._fields]
