"""Digits of a few iterations of every kind of solver, as they were before their code was rearranged: see `golden`."""

import json

import numpy as np
import pytest

from golden import CASES, FILE, digits_of

GOLDEN = json.loads(FILE.read_text())


def test_all_combinations_are_kept():
    assert CASES.keys() == GOLDEN.keys()


@pytest.mark.parametrize("name", CASES)
def test_digits(name):
    digits = digits_of(CASES[name]())
    assert digits.keys() == GOLDEN[name].keys()
    for array, (bits, *sums) in digits.items():
        expected, *others = GOLDEN[name][array]
        if bits != expected:  # other processors round some sums another way
            np.testing.assert_allclose(sums, others, rtol=1e-9, atol=1e-9 * sums[0], err_msg=array)
