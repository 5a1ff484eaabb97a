"""Players who see buckets, in the whole game."""

import numpy as np
import pytest

from kilt.abstraction.actions import actions_of
from kilt.abstraction.buckets import AbstractionSpec, AsymmetricAbstraction
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import CANONICAL, BucketStep, Plan, RoundPlan, plan_named
from kilt.errors import AbstractionError
from kilt.games import load_game
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.solve.abstract import OPPONENTS, AbstractCfr, BucketedGame
from kilt.solve.vector import VectorCfr
from kilt.tree.vector import Scheme, VectorGame

LOSSLESS = Plan((RoundPlan(True, (BucketStep(CANONICAL),)), RoundPlan(True, (BucketStep(CANONICAL),))))
COARSE = Plan((RoundPlan(True, (BucketStep("ehs", 2),)), RoundPlan(True, (BucketStep("ehs", 2),))))


def abstraction(folder, game, plan, name="cards"):
    deal = Deal.of(game)
    return build(AbstractionSpec(name, deal, plan), folder / name)


@pytest.fixture(scope="module")
def leduc():
    return VectorGame(load_game("leduc"))


@pytest.fixture(scope="module")
def lossless(leduc, tmp_path_factory):
    return abstraction(tmp_path_factory.mktemp("lossless"), leduc.game, LOSSLESS)


@pytest.fixture(scope="module")
def coarse(leduc, tmp_path_factory):
    return abstraction(tmp_path_factory.mktemp("coarse"), leduc.game, COARSE)


@pytest.mark.parametrize("variant", ["cfr", "cfr+", "linear", "dcfr"])
@pytest.mark.parametrize("threads", [1, 2])
def test_without_loss_it_is_the_game_itself(leduc, lossless, variant, threads):
    game = VectorGame(leduc.game, threads=threads)
    seen, plain = AbstractCfr(BucketedGame.by(game, lossless), "abstract", variant), VectorCfr(game, variant)
    seen.step(50)
    plain.step(50)
    for table, other in ((seen.average(), plain.average()), (seen.current(), plain.current())):
        expected = leduc.exploitability(other)
        assert seen.seen.exploitability(table) == pytest.approx(expected, abs=1e-9)
        assert seen.seen.expected_value(table) == pytest.approx(leduc.expected_value(other), abs=1e-9)


@pytest.mark.parametrize("variant", ["cfr+", "linear"])
def test_without_loss_with_a_menu_of_bets(tmp_path, variant):
    """Discounts must meet each row once, whatever other bets the rules allow."""
    text = """GAMEDEF
nolimit
numPlayers = 2
numRounds = 2
stack = 16 16
blind = 2 1
firstPlayer = 2 1
numSuits = 2
numRanks = 4
numHoleCards = 1
numBoardCards = 0 1
END GAMEDEF
"""
    game = VectorGame(Holdem(GameDef.parse(text)), actions_of("50%, a"))
    seen = BucketedGame.by(game, abstraction(tmp_path, game.game, LOSSLESS))
    assert sorted(np.concatenate(seen.rows)) == list(range(len(seen.table())))
    mine, plain = AbstractCfr(seen, "abstract", variant), VectorCfr(game, variant)
    mine.step(30)
    plain.step(30)
    assert seen.exploitability(mine.average()) == pytest.approx(game.exploitability(plain.average()), abs=1e-9)


@pytest.mark.parametrize("opponent", OPPONENTS)
def test_without_loss_all_ways_lead_to_an_equilibrium(leduc, lossless, opponent):
    solver = AbstractCfr(BucketedGame.by(leduc, lossless), opponent)
    before = solver.seen.exploitability(solver.average())
    solver.step(400)
    assert solver.seen.exploitability(solver.average()) < {"response": 0.08}.get(opponent, 0.003) < before / 20


@pytest.mark.parametrize("threads", [1, 2])
def test_boards_may_be_drawn(leduc, lossless, threads):
    """Public chance sampling, and CFR-BR against a hybrid: [Johanson16 §4.3]."""
    seen = BucketedGame.by(VectorGame(leduc.game, threads=threads), lossless)
    for opponent in OPPONENTS:
        solver = AbstractCfr(seen, opponent, "cfr", Scheme(boards=True), trunk=1, seed=1)
        solver.step(1000)
        assert seen.exploitability(solver.average()) < 0.2
    again = AbstractCfr(BucketedGame.by(leduc, lossless), "response", "cfr", trunk=1, seed=1)
    again.step(1000)
    assert np.array_equal(again.average(), solver.average())
    assert len(solver.other) < len(AbstractCfr(seen, "response").other)


def test_one_side_without_abstraction_is_better_than_none(leduc, coarse):
    """[Johanson16 §4.4]: what an abstraction can express is better than what solving the abstract game finds."""
    found = {}
    for opponent in OPPONENTS:
        solver = AbstractCfr(BucketedGame.by(leduc, coarse), opponent)
        solver.step(1500)
        found[opponent] = solver.seen.exploitability(solver.average())
    assert found["real"] < found["abstract"]
    assert found["response"] == pytest.approx(found["real"], abs=0.03)
    hybrid = AbstractCfr(BucketedGame.by(leduc, coarse), "response", "cfr", trunk=1)
    hybrid.step(8000)
    assert hybrid.seen.exploitability(hybrid.average()) == pytest.approx(found["real"], abs=0.04)


def test_players_may_see_different_buckets(leduc, lossless, coarse):
    """With a coarse opponent, the one who sees all wins more than the value of the game."""
    seen = BucketedGame.by(leduc, AsymmetricAbstraction((lossless, coarse)))
    solver = AbstractCfr(seen)
    solver.step(1000)
    assert seen.expected_value(solver.average()) > -0.0856 + 0.01
    assert seen.infosets == sum(seen.columns[position.actor][r] for r, _, position in leduc.decisions())
    assert seen.columns[0] != seen.columns[1]


def test_sizes_of_the_paper(tmp_path):
    """[Johanson16 figures 4.4 and 4.5]: information sets."""
    game = VectorGame(load_game("holdem.2-4"))
    built = abstraction(tmp_path, game.game, plan_named("PR-PHS-PHS 5-5", (0, 3)))
    assert BucketedGame.by(game, built).infosets == 1790


def test_what_cannot_be(leduc, coarse):
    with pytest.raises(AbstractionError, match=r"other cards than holdem\.2-1: build it with --game holdem\.2-1"):
        BucketedGame.by(VectorGame(load_game("holdem.2-1")), coarse)
    seen = BucketedGame.by(leduc, coarse)
    with pytest.raises(AbstractionError, match=r"no abstracted player learns by 'pcfr\+': use one of cfr, cfr\+"):
        AbstractCfr(seen, "abstract", "pcfr+")
    with pytest.raises(AbstractionError, match="unknown opponent 'nobody': use one of abstract, real, response"):
        AbstractCfr(seen, "nobody")


def test_it_goes_on_where_it_was(leduc, coarse):
    seen = BucketedGame.by(leduc, coarse)
    whole, half, rest = (AbstractCfr(seen, "real") for _ in range(3))
    whole.step(20)
    half.step(10)
    rest.restore({name: table.copy() for name, table in half.state().items()})
    rest.step(10)
    assert all(np.array_equal(whole.state()[name], table) for name, table in rest.state().items())
