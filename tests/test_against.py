"""`kilt bench NAME --against PLACE`: two checkouts in turn, judged by medians and a gate."""

import shutil

import pytest

from commands import refused
from kilt.errors import RunError
from kilt_lab.against import COMPILATION, WHOLE, Comparison, compare, compared
from kilt_lab.benchmarks.measure import LESS, MORE, better_of
from kilt_lab.provenance import clone, git

SIZE = ["game", "size", "leduc"]


def test_another_checkout_is_measured_in_turn(tmp_path):
    """A copy of this checkout, changed in one place: its own code runs, and equal figures are the same."""
    root = clone()
    other = tmp_path / "other"
    shutil.copytree(root / "src", other / "src", ignore=shutil.ignore_patterns("__pycache__", "static", "shipped"))
    library = other / "src" / "kilt" / "games" / "library"
    (library / "leduc.game").write_text((library / "kuhn.game").read_text())
    told = []
    found = {one.key: one for one in compare(SIZE, str(other), rounds=1, tell=told.append)}
    assert found["information_sets"].here > found["information_sets"].there == 12  # those of Kuhn poker
    assert found["information_sets"].verdict == "differs"
    assert found[WHOLE].here > 0 and found[WHOLE].better == LESS
    assert [line.split(": ")[1][:5] for line in told] == ["here ", "there", "there", "here "]


def test_compilation_is_timed(tmp_path):
    """The first process compiles a kernel, the second one finds it in the cache."""
    from kilt_lab.against import HERE, Checkout

    checkout = Checkout(HERE, clone(), tmp_path)
    code = "cards", "equity", "AsAh", "KdKc", "--board", "Ks9d2cQh3s"
    cold, warm = checkout.run(code), checkout.run(code)
    assert cold[COMPILATION] > 0.1 and warm[COMPILATION] == 0
    assert cold[WHOLE] > cold[COMPILATION]


def test_verdicts():
    def verdict(ratio, better):
        return Comparison("key", ratio, 1.0, ratio, (ratio, ratio), better, 5.0).verdict

    assert [verdict(ratio, LESS) for ratio in (0.94, 0.96, 1.04, 1.06)] == ["better", "same", "same", "worse"]
    assert [verdict(ratio, MORE) for ratio in (0.94, 1.06)] == ["worse", "better"]
    assert verdict(1.06, "") == "differs"


def test_medians_of_pairs():
    """Rounds are compared in pairs, so that a slow moment of the machine is no difference; the first does not count."""
    here = [{"a_seconds": 99.0, COMPILATION: 3.0}, *({"a_seconds": s, COMPILATION: 0.0} for s in (1.0, 5.0, 2.0))]
    there = [{"a_seconds": 1.0, COMPILATION: 2.0}, *({"a_seconds": s, COMPILATION: 0.0} for s in (1.0, 5.0, 4.0))]
    seconds, compilation = compared(here, there, 5.0)
    assert (seconds.ratio, seconds.spread, seconds.verdict) == (1.0, (0.5, 1.0), "same")
    assert (compilation.ratio, compilation.verdict) == (1.5, "worse")


def test_places_that_are_no_checkouts(tmp_path):
    assert "has no src/kilt" in refused("bench", "cards", "--against", str(tmp_path))
    assert "no folder and no commit" in refused("bench", "cards", "--against", "no-such-commit")


def test_a_commit_is_unpacked():
    from kilt_lab.against import other_checkout

    with other_checkout("HEAD") as root:
        assert (root / "src" / "kilt" / "__init__.py").is_file()
        there = root
    assert not there.exists()
    assert git("rev-parse", "HEAD", root=clone())


@pytest.mark.parametrize(
    ("key", "better"),
    [
        ("external_leduc_ratio", MORE),
        ("two_four_peak_gb", LESS),
        ("resolve_turn_ms", LESS),
        ("kmeans_inertia_ratio", LESS),
        ("rounding_cost_18", LESS),
        ("batch", ""),
        ("peer_turn_seconds", ""),
    ],
)
def test_directions(key, better):
    assert better_of(key) == better


def test_a_command_that_fails_is_named():
    with pytest.raises(RunError, match=r"`kilt game size no-such-game --json` failed"):
        compare(["game", "size", "no-such-game"], str(clone()))
