"""The Python API by its eight examples: what a newcomer copies runs, and notebooks show all results."""

import pytest

import kilt
from kilt.errors import RunError
from kilt.gpu import require_gpu

CONFIG = kilt.Config("leduc", "lossless", solver={"algorithm": "cfr+", "iterations": 40})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished run."""
    place = tmp_path_factory.mktemp("runs") / "mine"
    for step in kilt.start_run(CONFIG, place, iterations=40):
        assert "exploitability" in repr(step)
        if step.iterations == 8:
            break  # leave the loop
    assert kilt.resume_run(place).finish().iterations == 40
    return place


@pytest.fixture(scope="module")
def spot():
    ranges = "QQ+,AKs", "JJ-99,AQ"
    return kilt.Spot("QsJh2h7d", pot=6, stacks=20, ranges=ranges, bets="50%, a", locks="b50% = f: 99; c: rest")


@pytest.fixture(scope="module")
def solution(spot):
    return spot.solve(target="20%")


def svg(drawn):
    """The picture as a notebook gets it."""
    text = drawn._repr_svg_()
    assert text.startswith("<?xml") and "</svg>" in text
    return text


def test_solve_a_game():
    run = kilt.solve("kuhn", iterations=200)
    assert run.exploitability.mbb == 1000 * run.exploitability.chips == run.exploitability_mbb
    assert run.value == pytest.approx(-1 / 18, abs=1e-2) and sum(run["Ks||cr"].values()) == pytest.approx(1)
    assert kilt.play_match(run, "always-call", 200).win_rate.mean > 0  # a run is a player
    try:
        require_gpu()
    except RunError:
        with pytest.raises(RunError, match="there is no GPU to work on"):
            kilt.solve("leduc", "cfr+", device="gpu", iterations=3)
    else:
        assert kilt.solve("leduc", "cfr+", device="gpu", iterations=3).iterations == 3


def test_equity():
    assert round(kilt.equity("AsKh", "QQ+,AK", "Qd7h2c").equity, 5) == 0.27727


def test_a_spot(spot, solution, tmp_path):
    assert solution.exploitability_percent <= 20
    table = solution.at("b50%").table()
    assert table.columns[:4] == ("hand", "weight", "eq %", "EV") and table.rows[0][0] == "all"
    hand = solution.at("b50%").rows()[0]["hand"]
    assert [row[0] for row in solution.at("b50%").table({hand}).rows] == ["all", hand]
    assert sum(solution.at()["AhKh"].values()) == pytest.approx(1)
    again = kilt.solve(spot, target="20%", folder=tmp_path / "kept")
    assert again.exploitability == solution.exploitability
    assert kilt.open_spot(tmp_path / "kept")[1].exploitability == solution.exploitability
    with pytest.raises(RunError, match="neither `seed` nor `against`"):
        kilt.solve(spot, seed=1)
    with pytest.raises(RunError, match=r"call `kilt\.solve"):
        kilt.start_run(spot)
    with pytest.raises(RunError, match=r"the target is '3mbb': use per cent of the pot, such as 0\.5%"):
        spot.solve("3mbb")


def test_an_agent_from_a_configuration(folder):
    assert kilt.open_run(folder).steps[-1].iterations == 40


def test_a_match(folder, tmp_path):
    match = kilt.play_match(folder, f"{folder}@none", hands=200, log=tmp_path / "hands.log")
    assert match.win_rate.mean == 0 and match.way == "played"
    assert len((tmp_path / "hands.log").read_text().splitlines()) == 202  # settings, hands and the score


def test_evaluation(folder):
    found = kilt.exploitability(folder)
    assert found.interval is None and found == pytest.approx(kilt.open_run(folder).exploitability)
    assert kilt.open_run(folder).exploitability.mbb == 1000 * kilt.open_run(folder).exploitability
    assert kilt.lower_bound(folder, hands=40).won.mean < 1000 * found + 2000
    assert not kilt.sanity(folder, 50).off
    with pytest.raises(RunError, match="`flops` is 100, but leduc is walked as a whole"):
        kilt.exploitability("uniform", "leduc", flops=100)


def test_a_counter_strategy(folder, tmp_path):
    kilt.play_match("always-raise", "always-call", 100, game="leduc", log=tmp_path / "hands.log")
    model = kilt.model_opponent(tmp_path / "hands.log", "always-raise", folder)
    against = kilt.Against(model, p=0.9)
    answer = kilt.solve(kilt.open_run(folder).config, against=against, folder=tmp_path / "answer", iterations=40)
    assert kilt.play_match(answer, "always-raise", 200).win_rate.mean > 0


def test_a_notebook(folder, spot, solution, tmp_path):
    """Tables and pictures of all results."""
    run = kilt.open_run(folder)
    assert run.config.cards == ("lossless",) and run.steps[-1].iterations == 40
    solved = kilt.solve("kuhn", iterations=20)
    match = kilt.play_match("always-raise", "always-call", 100, game="leduc")
    vectors = kilt.solve("leduc", iterations=2, threads=2).strategy
    for shown in (run, solved, solved.strategy, vectors, match, spot, solution, solution.at(), run.exploitability):
        assert shown._repr_html_().startswith("<table>") and len(repr(shown)) < 2000, shown
    for drawn in (run, solved, solved.strategy, vectors, match, spot, solution, solution.at("b50%")):
        svg(drawn.plot())
    svg(run.grid(""))
    svg(solved.grid("r"))
    run.plot().save(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(RunError, match="has measured nothing yet"):
        kilt.start_run("kuhn").plot()
    assert "first 32 of 936 information sets" in kilt.solve("leduc", iterations=1).strategy._repr_html_()
