"""Players who see buckets, in the whole game."""

import numpy as np
import pytest

from kilt.abstraction.actions import actions_of
from kilt.abstraction.buckets import AbstractionSpec, AsymmetricAbstraction
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import CANONICAL, BucketStep, Plan, RoundPlan, plan_named
from kilt.errors import AbstractionError, GameError
from kilt.games import load_game
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.solve.abstract import BucketedGame
from kilt.solve.cfr import Cfr
from kilt.solve.opponents import OPPONENTS
from kilt.solve.tables.drawn import SampledBoardTables
from kilt.solve.tables.memory import TreeTables
from kilt.solve.variants import STEADY, VARIANTS
from kilt.tree.vector import VectorGame

LOSSLESS = Plan((RoundPlan(True, (BucketStep(CANONICAL),)), RoundPlan(True, (BucketStep(CANONICAL),))))
COARSE = Plan((RoundPlan(True, (BucketStep("ehs", 2),)), RoundPlan(True, (BucketStep("ehs", 2),))))


def abstraction(folder, game, plan, name="cards"):
    deal = Deal.from_game(game)
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


@pytest.mark.parametrize("variant", [*VARIANTS])
@pytest.mark.parametrize("threads", [1, 2])
def test_without_loss_it_is_the_game_itself(leduc, lossless, variant, threads):
    game = VectorGame(leduc.game, threads=threads)
    seen, plain = (
        Cfr(TreeTables(BucketedGame.with_abstraction(game, lossless)), variant),
        Cfr(TreeTables(game), variant),
    )
    seen.step(50)
    plain.step(50)
    for table, other in ((seen.average(), plain.average()), (seen.current(), plain.current())):
        expected = leduc.exploitability(other)
        assert seen.tables.game.exploitability(table) == pytest.approx(expected, abs=1e-9)
        assert seen.tables.game.expected_value(table) == pytest.approx(leduc.expected_value(other), abs=1e-9)


THREE_ROUNDS = """GAMEDEF
limit
numPlayers = 2
numRounds = 3
blind = 10 5
raiseSize = 10 10 20
firstPlayer = 2 1 1
maxRaises = 2 1 1
numSuits = 1
numRanks = 9
numHoleCards = 2
numBoardCards = 0 1 1
END GAMEDEF
"""


@pytest.mark.parametrize(("trunk", "variant"), [(1, "cfr"), (1, "dcfr"), (2, "linear"), (None, "dcfr"), (None, "cfr+")])
def test_cfr_br_keeps_what_it_draws_alone(tmp_path, trunk, variant):
    """Iterations are those with all boards in memory, to the last bit where no suits are drawn [Johanson16 §4.3].

    In CFR-BR with a trunk of some rounds, and in self-play by public chance sampling.
    """
    rules = Holdem(GameDef.parse(THREE_ROUNDS))
    plan = Plan(tuple(RoundPlan(False, (BucketStep("ehs", 3),)) for _ in range(3)))
    cards = abstraction(tmp_path, rules, plan)
    how = {"opponent": "response", "trunk": trunk} if trunk else {"scheme": "pcs"}
    whole = Cfr(TreeTables(BucketedGame.with_abstraction(VectorGame(rules), cards), seed=3, **how), variant)
    game = VectorGame(rules, threads=trunk or 1, by_board=False)
    drawn, later = (Cfr(SampledBoardTables(game, cards, trunk=trunk, seed=3), variant) for _ in range(2))
    for solver in (whole, drawn):
        solver.step(20)
    later.restore(drawn.state())
    for solver in (whole, drawn, later):
        solver.step(20)
    for solver in (drawn, later):
        np.testing.assert_array_equal(solver.tables.regret, whole.tables.regret)
        np.testing.assert_array_equal(solver.tables.total, whole.tables.total)
    assert len(drawn.tables.trunk) == sum(drawn.tables.where.rows[r] * n for r, n in enumerate((1, 9)[: trunk or 0]))
    for wrong in (0, 3):
        with pytest.raises(GameError, match="boards are drawn after 1 to 2 of them"):
            Cfr(SampledBoardTables(game, cards, trunk=wrong), "cfr")


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
    seen = BucketedGame.with_abstraction(game, abstraction(tmp_path, game.game, LOSSLESS))
    assert sorted(np.concatenate(seen.rows)) == list(range(len(seen.table())))
    mine, plain = Cfr(TreeTables(seen), variant), Cfr(TreeTables(game), variant)
    mine.step(30)
    plain.step(30)
    assert seen.exploitability(mine.average()) == pytest.approx(game.exploitability(plain.average()), abs=1e-9)


@pytest.mark.parametrize("opponent", OPPONENTS)
def test_without_loss_all_ways_lead_to_an_equilibrium(leduc, lossless, opponent):
    solver = Cfr(TreeTables(BucketedGame.with_abstraction(leduc, lossless), opponent=opponent))
    before = solver.tables.game.exploitability(solver.average())
    solver.step(400)
    assert solver.tables.game.exploitability(solver.average()) < {"response": 0.08}.get(opponent, 0.003) < before / 20


@pytest.mark.parametrize("threads", [1, 2])
def test_boards_may_be_drawn(leduc, lossless, threads):
    """Public chance sampling, and CFR-BR against a hybrid: [Johanson16 §4.3]."""
    seen = BucketedGame.with_abstraction(VectorGame(leduc.game, threads=threads), lossless)
    for opponent in OPPONENTS:
        solver = Cfr(TreeTables(seen, scheme="pcs", opponent=opponent, trunk=1, seed=1), "cfr")
        solver.step(1000)
        assert seen.exploitability(solver.average()) < 0.2
    again = Cfr(TreeTables(BucketedGame.with_abstraction(leduc, lossless), opponent="response", trunk=1, seed=1), "cfr")
    again.step(1000)
    assert np.array_equal(again.average(), solver.average())
    assert len(solver.tables.other) < len(Cfr(TreeTables(seen, opponent="response")).tables.other)


def test_one_side_without_abstraction_is_better_than_none(leduc, coarse):
    """[Johanson16 §4.4]: what an abstraction can express is better than what solving the abstract game finds."""
    found = {}
    for opponent in OPPONENTS:
        solver = Cfr(TreeTables(BucketedGame.with_abstraction(leduc, coarse), opponent=opponent))
        solver.step(1500 if opponent == "response" else 300)
        found[opponent] = solver.tables.game.exploitability(solver.average())
    assert found["real"] < found["abstract"]
    assert found["response"] == pytest.approx(found["real"], abs=0.03)
    hybrid = Cfr(TreeTables(BucketedGame.with_abstraction(leduc, coarse), opponent="response", trunk=1), "cfr")
    hybrid.step(6000)
    assert hybrid.tables.game.exploitability(hybrid.average()) == pytest.approx(found["real"], abs=0.04)


def test_players_may_see_different_buckets(leduc, lossless, coarse):
    """With a coarse opponent, the one who sees all wins more than the value of the game."""
    seen = BucketedGame.with_abstraction(leduc, AsymmetricAbstraction((lossless, coarse)))
    solver = Cfr(TreeTables(seen))
    solver.step(1000)
    assert seen.expected_value(solver.average()) > -0.0856 + 0.01
    assert seen.infosets == sum(seen.columns[position.actor][r] for r, _, position in leduc.decisions())
    assert seen.columns[0] != seen.columns[1]


def test_sizes_of_the_paper(tmp_path):
    """[Johanson16 figures 4.4 and 4.5]: information sets."""
    game = VectorGame(load_game("holdem.2-4"))
    built = abstraction(tmp_path, game.game, plan_named("PR-PHS-PHS 5-5", (0, 3)))
    assert BucketedGame.with_abstraction(game, built).infosets == 1790


def test_what_cannot_be(leduc, coarse):
    with pytest.raises(AbstractionError, match=r"other cards than holdem\.2-1: build it for holdem\.2-1"):
        BucketedGame.with_abstraction(VectorGame(load_game("holdem.2-1")), coarse)
    seen = BucketedGame.with_abstraction(leduc, coarse)
    with pytest.raises(GameError, match="unknown opponent 'nobody': use one of abstract, real, response"):
        Cfr(TreeTables(seen, opponent="nobody"))
    with pytest.raises(GameError, match="unknown sampling scheme 'ps': use one of cs, opcs, spcs, pcs"):
        Cfr(TreeTables(seen, scheme="ps"))


@pytest.mark.parametrize("scheme", [None, "pcs", "cs"])
@pytest.mark.parametrize("opponent", OPPONENTS)
@pytest.mark.parametrize("variant", STEADY)
def test_any_variant_with_any_opponent_and_scheme(leduc, lossless, variant, opponent, scheme):
    """Lossless buckets: exploitability falls below the bound, in chips per game."""
    game = BucketedGame.with_abstraction(leduc, lossless)
    drawn = scheme is not None
    how = {"scheme": scheme, "seed": 1, "trunk": int(opponent == "response")} if drawn else {}
    solver = Cfr(TreeTables(game, opponent=opponent, **how), variant)
    before = game.exploitability(solver.average())
    solver.step({None: 300, "pcs": 500, "cs": 500 if opponent == "response" else 3000}[scheme])
    assert game.exploitability(solver.average()) < (0.3 if drawn else 0.15) < before


def test_it_goes_on_where_it_was(leduc, coarse):
    seen = BucketedGame.with_abstraction(leduc, coarse)
    whole, half, rest = (Cfr(TreeTables(seen, opponent="real")) for _ in range(3))
    whole.step(20)
    half.step(10)
    rest.restore({name: table.copy() for name, table in half.state().items()})
    rest.step(10)
    assert all(np.array_equal(whole.state()[name], table) for name, table in rest.state().items())
