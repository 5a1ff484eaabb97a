"""The learning rule: what Python and CUDA have of it, on the same numbers, and a textbook's."""

import ctypes
import subprocess
from itertools import product

import numpy as np
import pytest

import naive
from cuda_on_cpu import COMPILER
from kilt.gpu import RULE
from kilt.jit import kernel
from kilt.tree import rule

FACTORS = [(1.0, 1.0), (1.0, 0.0), (0.75, 0.5), (0.75, 0.0), (1.0, 2.0)]  # of sums above 0, and of others
NUMBERS = [0.0, 1e-30, 1e-9, 0.3, 7.25]
CASES = np.array(
    [
        (sign * regret + 0.0, other * gained, least, weight, *factors)
        for regret, gained in product(NUMBERS, repeat=2)
        for sign, other in product((1, -1), repeat=2)
        for least, weight in product((0.0, 1e-9, 0.5), (1.0, 3.0))
        for factors in FACTORS
    ]
)
SOURCE = """
#define __device__
extern "C" void learn(int count, const number (*cases)[6], number (*found)[3])
{
    for (int i = 0; i < count; i++) {
        const number *c = cases[i];
        found[i][0] = updated_regret(c[0], c[1], c[2], c[3], c[4], c[5]);
        found[i][1] = updated_regret_plus(c[0], c[1], c[2], c[3], c[4]);
        found[i][2] = updated_average(c[0], c[1], c[3], c[4]);
    }
}
"""


@kernel
def learn(cases, found):
    zero = found.dtype.type(0)
    for i in range(len(cases)):
        regret, gained, least, weight, above, below = cases[i]
        found[i, 0] = rule.updated_regret(regret, gained, least, weight, above, below)
        found[i, 1] = rule.updated_regret_plus(regret, gained, least, weight, above, zero)
        found[i, 2] = rule.updated_average(regret, gained, weight, above)


@pytest.fixture(scope="module", params=["float32", "float64"])
def learnt(request):
    """[case, function] what the compiled rule makes of the cases, in a precision."""
    cases = CASES.astype(request.param)
    found = np.empty((len(cases), 3), request.param)
    learn(cases, found)
    return cases, found


def test_python_and_a_textbook(learnt):
    cases, found = learnt
    for (regret, gained, least, weight, above, below), here in zip(cases.tolist(), found, strict=True):
        expected = naive.learnt(regret, gained, least, weight, above, below)
        assert here[0] == pytest.approx(expected, rel=1e-6, abs=1e-30)
        if below == 0:
            assert here[1] == here[0]
            assert not np.signbit(here[1])
        assert here[2] == pytest.approx((regret + weight * gained) * above, rel=1e-6)


@pytest.mark.skipif(not COMPILER, reason="there is no C++ compiler")
def test_python_and_cuda(learnt, tmp_path):
    """The same bits, from the file that GPUs compile."""
    cases, found = learnt
    number = {"float32": "float", "float64": "double"}[cases.dtype.name]
    declared, kernels = SOURCE.strip().split("\n", 1)
    (tmp_path / "rule.cpp").write_text("\n".join([declared, RULE.read_text(), kernels]))
    options = "-std=c++14", "-O2", "-ffp-contract=off", "-shared", "-fPIC", f"-Dnumber={number}"
    subprocess.run([COMPILER, *options, "rule.cpp", "-o", "rule.so"], cwd=tmp_path, check=True)
    there = np.empty_like(found)
    library = ctypes.CDLL(str(tmp_path / "rule.so"))
    library.learn(len(cases), ctypes.c_void_p(cases.ctypes.data), ctypes.c_void_p(there.ctypes.data))
    np.testing.assert_array_equal(there, found)


@pytest.mark.parametrize("actions", [2, 3, 5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_regret_matching(actions, dtype):
    table = np.random.default_rng(actions).normal(size=(actions + 1, 40)).astype(dtype)
    table[:, :3] = -1.0
    scale = np.full((2, 40), np.nan, dtype)
    match(table, 1, 1, actions, np.uint64(0), np.uint64(40), scale)
    found = np.maximum(table[1:], 0) * scale[0] + scale[1]
    for column in range(40):
        expected = naive.matched(table[1:, column].tolist())
        np.testing.assert_allclose(found[:, column], expected, rtol=1e-6)


@kernel
def match(table, first, step, actions, start, end, scale):
    rule.match_columns(table, first, step, actions, start, end, scale)
