"""Opponents who see finer cards while a game is solved: `opponent_cards` (Bard, Johanson and Bowling 2014)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kilt.config import Config, config_of
from kilt.errors import RunError
from kilt.runs.budget import Budget
from kilt.runs.build import build, resume
from kilt.runs.plan import resolve
from kilt.solve.seats import SeatSolver

COARSE, FINE = "IR-PHS-PHS 3-2", "lossless"


def config(cards: object = COARSE, iterations: int = 2000, **said: object) -> Config:
    solver = {"algorithm": "external", "iterations": iterations, "linear": True, "seed": 5}
    return config_of({"game": "leduc", "cards": cards, "solver": solver} | said)


def test_a_lossless_opponent_leads_to_the_least_exploitable_strategy(tmp_path: Path) -> None:
    """CFR-BR finds the least exploitable strategy of an abstraction by another method [Johanson16 chapter 4]."""
    against = build(config(opponent_cards=FINE, iterations=1_500_000), tmp_path / "against").finish()
    alike = build(config(iterations=300_000), tmp_path / "alike").finish()
    best = build(
        config_of({"game": "leduc", "cards": COARSE, "solver": {"algorithm": "cfr-br", "iterations": 3000}}),
        tmp_path / "best",
    ).finish()
    assert against.exploitability == pytest.approx(best.exploitability, rel=0.06)
    assert alike.exploitability > 2 * best.exploitability


def test_each_player_learns_in_a_game_of_its_own(tmp_path: Path) -> None:
    run = build(config(opponent_cards=FINE), tmp_path / "run")
    run.finish()
    assert isinstance(run.solver, SeatSolver)
    whole = run.problem.abstract
    found = run.solver.average()
    for player, cards in enumerate(((COARSE, FINE), (FINE, COARSE))):
        twin = build(config(list(cards)), tmp_path / f"twin-{player}")
        twin.finish()
        theirs = twin.solver.average().astype(float)
        mine = found[whole.slots_of(player)].astype(float)
        np.testing.assert_array_equal(mine, theirs[twin.problem.abstract.slots_of(player)])


def test_a_run_resumes_to_the_bit(tmp_path: Path) -> None:
    whole = build(config(opponent_cards=FINE), tmp_path / "whole")
    whole.finish()
    build(config(opponent_cards=FINE), tmp_path / "parts", budget=Budget(iterations=700)).finish()
    again = resume(tmp_path / "parts", budget=Budget(iterations=2000))
    again.finish()
    np.testing.assert_array_equal(whole.solver.average(), again.solver.average())
    assert again.identity == whole.identity
    assert again.identity.game == f"leduc, {COARSE} against {FINE}"


def test_the_opponents_cards_are_part_of_the_identity(tmp_path: Path) -> None:
    plain, against = (
        build(config(**said), tmp_path / name) for name, said in (("a", {}), ("b", {"opponent_cards": FINE}))
    )
    assert plain.problem.fingerprint != against.problem.fingerprint
    # but the strategies are for the same game
    assert plain.problem.abstract.fingerprint == against.problem.abstract.fingerprint


def test_cost_counts_the_tables_of_both_games() -> None:
    plain, against, pair = (resolve(one) for one in (config(), config(opponent_cards=FINE), config([COARSE, FINE])))
    assert against.infosets == 2 * pair.infosets > 2 * plain.infosets
    tables = [plan.cost().part("solving").part("tables").memory for plan in (against, pair)]
    assert tables[0] == 2 * tables[1]
    assert [len(plan.all_cards) for plan in (plain, against, pair)] == [1, 2, 2]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"solver": {"algorithm": "cfr+"}}, "omit `opponent_cards`, or use external"),
        ({"engine": {"name": "local", "blades": 2}}, "omit them, or the engine"),
        ({"opponent_cards": "IR-KE"}, "is no abstraction"),
    ],
)
def test_what_cannot_work_is_refused(said: dict[str, object], why: str) -> None:
    with (
        pytest.raises(RunError, match=why)
        if "engine" in said or "solver" in said
        else pytest.raises(Exception, match=why)
    ):
        resolve(
            config_of(
                {"game": "leduc", "cards": COARSE, "opponent_cards": FINE, "solver": {"algorithm": "external"}} | said
            )
        )


def test_folders_of_abstractions_are_found_next_to_the_file(tmp_path: Path) -> None:
    from kilt.config import read_config

    build(config(opponent_cards=FINE, iterations=10), tmp_path / "run").finish()
    (tmp_path / "my.toml").write_text('game = "leduc"\ncards = "run/cards"\nopponent_cards = "run/opponent-cards"\n')
    read = read_config(tmp_path / "my.toml")
    assert Path(read.opponent_cards) == (tmp_path / "run" / "opponent-cards").resolve()
    other = build(replace(read, solver=config(iterations=10).solver), tmp_path / "other")
    assert other.problem.fingerprint == build(config(opponent_cards=FINE), tmp_path / "third").problem.fingerprint
