"""Players: every way to name one, what can be done with it, the same in Python, in commands and on the page."""

import numpy as np
import pytest

import kilt
from commands import answer, refused
from kilt.errors import KiltError, PlayError
from kilt.games import load_game
from kilt.play.agent import BASELINES
from kilt.players.known_tables import tabulate_policy
from kilt.players.reference import player
from kilt.solve.forms import load_problem
from kilt.strategy.openspiel import to_openspiel
from kilt.strategy.table import Strategy
from kilt.tree.flat import flat_tree
from kilt.tree.openspiel import openspiel_twin
from kilt.web.library import Library

LEDUC = load_game("leduc")
OWN = """
import numpy as np
from kilt.play.agent import PublicPolicy

class Caller:
    name = "caller"
    def act(self, observation):
        return "c"
    def policy(self, position, board):
        return PublicPolicy(("c",), np.ones((1, 1)), np.zeros(6, dtype=np.int64))

class Mute:
    name = "mute"
    def act(self, observation):
        return "c"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run on Leduc as it is, an abstract one, and a file of agents."""
    place = tmp_path_factory.mktemp("players")
    kilt.solve("leduc", iterations=50, folder=place / "flat")
    config = {"game": "leduc", "cards": "lossless", "agent": {"post": "purification"}}
    kilt.start_run(config, place / "abstract", algorithm="cfr+", iterations=50).finish()
    (place / "own.py").write_text(OWN)
    return place


# What best responses win, chips a game; None: it cannot be told.
REFERENCES = {
    "always-fold": 1.0,
    "always-call": 1.4666666667,
    "always-raise": 2.3666666667,
    "probe": 2.15,
    "call-or-raise": 2.15,
    "uniform": 2.3736111111,
    "random": 2.3736111111,
    "solved:leduc": 0.0002,
    "FOLDER/flat": 0.05,
    "FOLDER/flat@purification": None,
    "FOLDER/abstract": 0.05,
    "FOLDER/own.py:Caller": 1.4666666667,
    "FOLDER/own.py:Mute": PlayError,
    "seats:always-call,FOLDER/flat": None,
    "portfolio:always-call,probe": PlayError,
    "nobody": PlayError,
}


@pytest.mark.parametrize("name", REFERENCES)
def test_every_reference_plays_and_is_judged_where_that_is_defined(folder, name):
    """The golden table; figures that solving or post-processing makes are compared with the command's."""
    who, expected = name.replace("FOLDER", str(folder)), REFERENCES[name]
    if name == "nobody":
        for act in (lambda: player(who), lambda: kilt.exploitability(who, "leduc")):
            with pytest.raises(PlayError, match="unknown player 'nobody'"):
                act()
        return
    match = kilt.play_match(who, "always-call", 20, game="leduc", seed=1)
    assert (
        answer("match", who, "always-call", "-g", "leduc", "--hands", 20, "--seed", 1, "--way", "played")["hands"] == 20
    )
    assert match.hands == 20 and np.isfinite(match.results).all()
    if expected is PlayError:
        with pytest.raises(PlayError):
            kilt.exploitability(who, "leduc")
        return
    found = kilt.exploitability(who, "leduc")
    asked = (who,) if name.startswith(("FOLDER/flat", "FOLDER/abstract")) else ("-g", "leduc", "--agent", who)
    told = answer("evaluate", "exploitability", *asked)
    assert found == pytest.approx(told["exploitability"], rel=1e-12)
    if expected and expected > 1:
        assert found == pytest.approx(expected, abs=1e-9)
    elif expected:
        assert 0 < found < expected
    assert found.seats is None or sum(found.seats) / 2 == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize("name", REFERENCES)
def test_sanity_takes_every_reference(folder, name):
    """Agents without a policy, such as portfolios, are refused."""
    who = name.replace("FOLDER", str(folder))
    if REFERENCES[name] is PlayError:
        with pytest.raises(PlayError):
            kilt.sanity(who, 400, game="leduc")
        return
    found = kilt.sanity(who, 400, game="leduc")
    assert found.game == "leduc" and found.findings
    assert found.strategy or name.startswith("FOLDER/abstract")


def test_a_model_is_for_anything_that_is_solved_or_plays(folder, tmp_path):
    """A game, a run with a rule and an agent have information sets, of the whole game or of an abstract one."""
    log = str(tmp_path / "hands.log")
    answer("match", "probe", "random", "-g", "leduc", "--hands", 40, "--way", "played", "--log", log)
    flat, abstract = str(folder / "flat"), str(folder / "abstract")
    counts = {}
    for target in ("leduc", "solved:leduc", flat, f"{flat}@purification", abstract, f"{abstract}@none"):
        found = answer("model", log, "--player", "probe", "--for", target)
        counts[target] = found["decisions"]
        assert found["hands"] == 40
    assert len({*counts.values()}) == 1
    assert "give the `game`" in refused("model", log, "--player", "probe", "--for", "always-call")


def test_objects_are_players(folder):
    """A run, a strategy, its rows, a policy of open_spiel, an agent: the same strategy however it comes."""
    run = kilt.solve("leduc", iterations=50)
    strategy, tree = run.strategy, flat_tree(LEDUC)
    rows = {name: strategy[name] for name in strategy.infosets}
    policy = to_openspiel(openspiel_twin(tree), run.table)
    whole = folder / "flat"
    for who in (run, whole, str(whole), kilt.open_run(whole), strategy, rows, policy, run.agent, player(run)):
        assert kilt.exploitability(who, "leduc") == pytest.approx(run.exploitability, rel=1e-9)
        agent = player(who, "leduc").agent
        assert np.allclose(tabulate_policy(agent, LEDUC, tree), run.table)
    vectors = kilt.solve("leduc", iterations=50, threads=2)
    for who in (vectors, vectors.agent, vectors.strategy):
        assert kilt.exploitability(who, "leduc") == pytest.approx(vectors.exploitability, rel=1e-9)
    blueprint = player(f"{folder / 'abstract'}@none").agent
    assert kilt.exploitability(blueprint) == pytest.approx(kilt.exploitability(folder / "abstract"), rel=1e-12)
    played = kilt.exploitability(folder / "abstract", as_played=True)
    assert played == kilt.exploitability(f"{folder / 'abstract'}@purification")
    assert played == pytest.approx(kilt.exploitability(player(folder / "abstract").agent), rel=1e-6)
    with pytest.raises(PlayError, match="int is no player"):
        player(3)


def test_a_uniform_player_takes_each_action_equally_often():
    problem = load_problem("leduc")
    agent = player("uniform").agent
    assert np.allclose(tabulate_policy(agent, LEDUC, problem.tree), problem.uniform())
    seen = kilt.play_match("uniform", "always-call", 2000, game="holdem.nolimit.2p", seed=1)
    assert abs(seen.results).max() > 1000  # most of its raises are large


def test_what_an_agent_tells_is_checked():
    class Wrong:
        name = "wrong"

        def act(self, observation):
            return "c"

        def policy(self, position, board):
            found = BASELINES["always-call"].policy(position, board)
            return found._replace(table=found.table * 0.9)

    with pytest.raises(PlayError, match=r"wrong plays c, r at 'Qh\|\|' .*sum to 1"):
        kilt.exploitability(Wrong(), "leduc")


def test_the_page_takes_names_of_its_list_alone(folder):
    """Neither paths nor code, whatever the name."""
    library = Library([folder])
    names = library.players()
    assert {"leduc (solved here)", "house", "probe"} < set(names)
    for name in names[:2]:
        assert library.player(name)[1].name == "leduc"
    refused_names = [
        str(folder / "flat"),
        f"{folder / 'own.py'}:Caller",
        "seats:probe,probe",
        "solved:leduc",
        "uniform",
    ]
    for name in (*refused_names, f"{names[0]}@purification", "portfolio:probe,random", "../flat", ""):
        with pytest.raises(PlayError, match=r"there is no player .* here: choose one of the list"):
            library.player(name)
        with pytest.raises(PlayError, match="choose one of the list"):
            player(name, names=library)


def test_names_that_do_not_fit():
    assert "unknown player" in refused("match", "nobody", "probe", "-g", "leduc")
    with pytest.raises(KiltError, match="set `game`"):
        kilt.exploitability(Strategy.of(flat_tree(LEDUC), load_problem("leduc").uniform()).infosets and {"x": {}})
    with pytest.raises(PlayError, match="find a lower bound"):
        kilt.exploitability("random", "holdem.limit.2p")
