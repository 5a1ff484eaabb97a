"""From a configuration to an agent that plays, by the commands."""

import json
import re
import signal
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from commands import answer, kilt, refused, start, wait_for_checkpoint
from kilt import machine
from kilt.abstraction.abstract_game import SyntheticGame
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.plan import load_plan
from kilt.config import AgentConfig, Config, EngineConfig, SolverConfig, config_of, read_config
from kilt.errors import RunError
from kilt.games import load_game
from kilt.players.agents import describe_strategy, load_agent
from kilt.players.reports import sanity_reports
from kilt.runs.examples import EXAMPLES
from kilt.runs.folder import RunFolder
from kilt.runs.plan import resolve
from kilt.solve.external import ExternalMCCFR
from kilt.strategy.blueprint import Blueprint

GAME = """GAMEDEF
nolimit
numPlayers = 2
numRounds = 2
stack = 20 20
blind = 2 1
firstPlayer = 2 1
numSuits = 3
numRanks = 4
numHoleCards = 1
numBoardCards = 0 1
END GAMEDEF
"""
CONFIG = """game = "small.game"
cards = "lossless"
actions = "1x, a"

[solver]
iterations = 20000
seed = 5

[agent]
post = "purification"
"""


@pytest.fixture
def config(tmp_path):
    (tmp_path / "small.game").write_text(GAME)
    (tmp_path / "small.toml").write_text(CONFIG)
    return tmp_path / "small.toml"


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("solved")
    (folder / "small.game").write_text(GAME)
    (folder / "small.toml").write_text(CONFIG)
    kilt("solve", folder / "small.toml", "--out", folder / "run")
    return folder / "run"


# Configurations


def test_a_configuration_is_read_and_written(config):
    found = read_config(config)
    assert found == Config(
        str(config.parent / "small.game"),
        ("lossless",),
        ("1x, a",),
        solver=SolverConfig(iterations=20000, seed=5),
        agent=AgentConfig(post="purification"),
    )
    config.write_text(found.toml())
    assert read_config(config) == found


def test_equal_cards_are_one():
    assert config_of({"game": "leduc", "cards": ["lossless"] * 2}).cards == ("lossless",)


def test_the_example_can_be_read(tmp_path):
    (tmp_path / "example.toml").write_text(kilt("plan", "--example").stdout)
    assert (tmp_path / "example.toml").read_text() == EXAMPLES[""]
    assert read_config(tmp_path / "example.toml").agent.post == "none"
    assert kilt("plan", "--example", "tartanian7").stdout == EXAMPLES["tartanian7"]
    assert "use tartanian7, or leave the name out" in refused("plan", "--example", "tartanian8")


def test_the_ready_made_agent_fits_into_16_gb(tmp_path):
    (tmp_path / "mine.toml").write_text(EXAMPLES["tartanian7"])
    config = read_config(tmp_path / "mine.toml")
    plan = load_plan(config.cards[0], (0, 3, 1, 1))
    assert [plan.classes_at(r) for r in range(4)] == [1, 60, 60, 60]
    assert [this.buckets for this in plan.rounds] == [169, 70, 70, 70]
    assert [this.steps[-1].feature for this in plan.rounds[1:]] == ["histogram", "histogram", "ochs"]  # not potential
    assert resolve(replace(config, engine=EngineConfig("ray", blades=60))).options.equities
    size = resolve(config).size
    assert size.buckets[0] == (169, 4200, 4200, 4200)
    assert 10 * sum(size.slots) < 12.3e9


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({}, "game must be given"),
        ({"game": 1, "cards": "lossless"}, "`game` in the run is 1"),
        ({"game": "leduc", "cards": "lossless", "stakes": 1}, "has no key stakes"),
        ({"game": "leduc", "cards": "lossless", "solver": {"seed": True}}, "`seed` in .solver. is True"),
        ({"game": "leduc", "cards": "lossless", "solver": {"minutes": -1}}, "`minutes` in .solver. is -1"),
        ({"game": "leduc", "cards": "lossless", "solver": 3}, "lines such as"),
        ({"game": "leduc", "cards": "lossless", "actions": [1]}, "`actions` is"),
        ({"game": "leduc", "cards": ["lossless"] * 3}, "`cards` is .*: give a text such as 'IR-KE-KO"),
        ({"game": "leduc", "cards": 3}, "`cards` is 3"),
    ],
)
def test_what_is_wrong_with_a_configuration_is_said(said, complaint):
    with pytest.raises(RunError, match=complaint):
        config_of(said)


def test_files_that_cannot_be_read(tmp_path):
    assert "cannot be read" in refused("solve", tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("game = ")
    assert "is not TOML" in refused("plan", tmp_path / "bad.toml")


# Plans


def test_a_plan_is_known_before_anything_is_built(config):
    """Decisions of the tree times hands up to suits: 4 ranks, then 4 pairs and 12 hands of two ranks, suited or not."""
    said = answer("plan", config, "--no-probe")
    assert said["buckets"] == [[4, 28], [4, 28]]
    assert said["infosets"] == [4 * said["decisions"][0], 28 * said["decisions"][1]]
    assert said["tables_bytes"] == 8 * sum(said["slots"])
    assert said["peak_bytes"] >= said["memory_bytes"] > said["tables_bytes"] + machine.PROCESS and said["fits"]
    assert not list(config.parent.glob("small"))
    assert "visits_per_second" not in said
    assert "1 thread usually takes" in kilt("plan", config).stderr
    said = answer("plan", config, "--probe")
    assert said["visits_per_second"] > said["decisions_per_second"] > said["iterations_per_second"] > 0
    shown = kilt("plan", config)
    assert f"{sum(said['slots']):,}" in shown.stdout


@pytest.mark.parametrize(
    ("cards", "complaint"),
    [
        ("IR-PHS-PHS 5-10-10-160", "the plan asks for 160 buckets by ehs in round 4, which has at most 157 values"),
        ("IR-KE-KO 5-10-10-1000000", "different hands: use fewer"),
        ("PR-PHS-PHS 3-3", "3 buckets in round 2 need as many different values, but there are only 2: use fewer"),
        ("IR-KE-KE 3-8", "there are fewer different points than the 8 clusters: use fewer"),
    ],
)
def test_plans_refuse_buckets_that_cannot_be_built(config, cards, complaint):
    """What takes no time to build is tried: values of hands may be too few inside a group."""
    config.write_text(f'game = "{"leduc" if cards.count("-") == 3 else "royal.limit.2p"}"\ncards = "{cards}"\n')
    for command in ("plan", "solve"):
        assert complaint in refused(command, config)


def test_plans_have_no_more_clusters_of_opponents_than_there_are_hands(config):
    """A name takes as many as there are; a plan that says how many is refused before anything is built."""
    deal = Deal.from_game(load_game("leduc"))
    spec = AbstractionSpec.from_name("IR-KE-KO 2-3", deal)
    assert spec.plan.opponents == 3
    plan = config.with_name("cards.toml")
    plan.write_text(replace(spec.plan, opponents=8).toml())
    config.write_text('game = "leduc"\ncards = "cards.toml"\n')
    assert "8 clusters of opponents, but there are only 3 different hands" in refused("plan", config)


@pytest.mark.parametrize("average", [True, False])
def test_the_memory_of_a_plan_is_what_solving_takes(average):
    """Without the process itself: arrays of the tree, the tables and what walks and strategies need, within 15%."""
    said = {"game": "royal.limit.2p", "cards": "IR-KE-KE 5-300-300-300", "solver": {"average": average, "threads": 2}}
    plan = resolve(config_of(said))
    cost = plan.cost().part("solving")
    synthetic = SyntheticGame(plan.game, plan.size.buckets, plan.menu)
    small = ExternalMCCFR(SyntheticGame(plan.game, ((5, 5, 5, 5),) * 2, plan.menu), 0, plan.options)
    small.step(2)  # kernels are loaded or compiled, which takes memory by itself
    small.average(), small.current()
    tracemalloc.start()
    try:
        solver = ExternalMCCFR(synthetic, 0, plan.options, threads=2)
        solver.step(50)
        kept = solver.average(), solver.current()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept[0]) == sum(plan.size.slots)
    assert cost.needed == pytest.approx(peak, rel=0.15)


def test_no_limit_games_need_a_menu(config):
    config.write_text('game = "holdem.nolimit.2p"\ncards = "IR-PHS-PHS 10-10-10-10"\n')
    assert "give `actions`" in refused("plan", config)
    config.write_text('game = "bluff-1-1"\ncards = "lossless"\n')
    assert "no cards" in refused("solve", config)


def test_too_little_memory_is_said_first(config, monkeypatch, tmp_path):
    monkeypatch.setattr("kilt.machine.available_memory", lambda: 1000.0)
    assert "of memory" in refused("solve", config, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert "more memory than" in kilt("plan", config, "--no-probe", code=1).stderr
    assert not json.loads(kilt("plan", config, "--no-probe", "--json", code=1).stdout)["fits"]


def test_cards_that_memory_has_no_room_for_are_not_begun(config, monkeypatch, tmp_path):
    """The run itself would fit: a few slots, and buckets of which the build draws many points."""
    config.write_text('game = "royal.limit.2p"\ncards = "IR-KE-KO 2-2-2-2"\n')
    cost = resolve(read_config(config)).cost()
    takes = cost.part("cards").needed
    assert takes > cost.part("solving").needed
    monkeypatch.setattr("kilt.machine.available_memory", lambda: takes - 1.0)
    for command in (("solve", config), ("abstraction", "build", "IR-KE-KO 2-2-2-2", "--game", "royal.limit.2p")):
        assert "building the cards takes" in refused(*command, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


# Runs


def test_from_a_configuration_to_a_strategy(solved):
    said = kilt("evaluate", "exploitability", solved, "--json")
    assert json.loads(said.stdout)["exploitability_mbb"] < 200
    blueprint = Blueprint.load(solved)
    assert blueprint.figures["iterations"] == 20000
    assert blueprint.figures["agent"]["post"] == "purification"
    assert blueprint.row(0, 0) == pytest.approx(np.array(blueprint.row(0, 0)))
    assert {file.name for file in solved.iterdir() if not file.name.startswith(".")} == {
        "cards",
        "checkpoint",
        "config.toml",
        "convergence.png",
        "log.jsonl",
        "run.json",
        "small.game",
        "strategy",
    }


def test_runs_are_not_overwritten(solved):
    assert "resumes it" in refused("solve", solved.parent / "small.toml", "--out", solved)


def test_of_two_who_begin_in_one_folder_one_goes_on(config, tmp_path):
    """The other writes nothing, neither on an abstract game nor on one as it is."""
    run = tmp_path / "run"
    with RunFolder.exclusive_access(run):
        for game in ((config,), ("--game", "kuhn")):
            assert "another process is at work" in refused("solve", *game, "--iterations", 2, "--out", run)
        assert [file.name for file in run.iterdir()] == [".lock"]


def test_a_run_that_was_killed_before_its_configuration_was_kept_can_begin(config, tmp_path):
    run = tmp_path / "run"
    with RunFolder.exclusive_access(run):
        (run / "small.game").write_text(GAME)
    kilt("solve", config, "--iterations", 2, "--out", run)
    other = tmp_path / "other"
    other.mkdir()
    (other / "small.game").write_text("mine")
    assert "with small.game in it" in refused("solve", config, "--out", other)
    assert (other / "small.game").read_text() == "mine"


def test_a_refused_resume_leaves_the_run_as_it_was(config, tmp_path):
    kilt("solve", config, "--out", tmp_path / "run")
    for arguments in (("--seed", 6), ("--algorithm", "cfr+")):
        assert "start a new run" in refused("solve", "--resume", tmp_path / "run", *arguments)
    kilt("solve", "--resume", tmp_path / "run", "--iterations", 21000)
    said = tmp_path / "run" / "config.toml"
    said.write_text(said.read_text().replace("linear = true", "linear = false"))
    assert "start a new run" in refused("solve", "--resume", tmp_path / "run", "--iterations", 22000)


def test_a_run_can_be_moved_with_all_that_made_it_gone(config, tmp_path):
    kilt("solve", config, "--out", tmp_path / "run")
    config.unlink()
    (tmp_path / "small.game").unlink()
    (tmp_path / "run").rename(tmp_path / "a@b c")
    kilt("solve", "--resume", tmp_path / "a@b c", "--iterations", 21000)
    kilt("evaluate", "exploitability", tmp_path / "a@b c")
    assert answer("match", f"{tmp_path / 'a@b c'}@none", tmp_path / "a@b c", "--hands", 20)["hands"] == 20


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ('[agent]\npost = "nwe-0.2"', "unknown post-processing"),
        ('[agent]\ntranslation = "odd"', "unknown translation"),
        ('[solver]\nalgorithm = "odd"', "unknown algorithm"),
        ("[solver]\nthreads = 0", "`threads` in .solver. is 0"),
    ],
)
def test_slips_are_found_before_the_work(config, tmp_path, said, complaint):
    config.write_text(f'game = "small.game"\ncards = "lossless"\n{said}\n')
    for command in ("plan", "solve"):
        assert re.search(complaint, refused(command, config))
    config.write_text('game = "leduc"\ncards = "lossless"\nactions = "1x"\n')
    assert "leave out `actions`" in refused("plan", config)


def test_a_killed_run_goes_on_as_if_nothing_had_happened(config, tmp_path):
    config.write_text(CONFIG.replace("20000", "150000"))
    kilt("solve", config, "--out", tmp_path / "whole")
    child = start("solve", config, "--out", tmp_path / "broken")
    wait_for_checkpoint(tmp_path / "broken", child)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    kilt("solve", "--resume", tmp_path / "broken")
    whole, broken = (Blueprint.load(tmp_path / name) for name in ("whole", "broken"))
    assert whole.figures["iterations"] == broken.figures["iterations"] == 150000
    assert np.array_equal(whole.shares, broken.shares)


def test_full_walks_are_an_algorithm_too(config, tmp_path):
    found = answer("solve", config, "--out", tmp_path / "run", "--algorithm", "cfr+", "--iterations", 200)
    assert found["exploitability_mbb"] < 5
    drawn = answer("solve", config, "--out", tmp_path / "pcs", "--algorithm", "pcs", "--iterations", 5000)
    assert drawn["exploitability_mbb"] < 60
    for algorithm, iterations, bound in (("cfr-br", 200, 120), ("cfr-br:1", 2000, 120)):
        out = tmp_path / algorithm.replace(":", "-")
        found = answer("solve", config, "--out", out, "--algorithm", algorithm, "--iterations", iterations)
        assert found["exploitability_mbb"] < bound
    no = tmp_path / "no"
    assert "does not solve abstract games" in refused("solve", config, "--out", no, "--algorithm", "pure")
    assert not no.exists()


# Players


def test_each_player_may_have_their_own_cards(config, solved, tmp_path):
    """Built side by side, solved, resumed, judged, exported and played; whoever sees less loses."""
    config.write_text(CONFIG.replace('"lossless"', '["lossless", "IR-PHS-PHS 2-3"]'))
    said = answer("plan", config, "--no-probe")
    assert said["buckets"] == [[4, 28], [2, 3]]
    assert "28 and 3" in kilt("plan", config, "--no-probe").stdout
    run = tmp_path / "run"
    kilt("solve", config, "--out", run)
    kilt("solve", "--resume", run, "--iterations", 40000)
    found = answer("evaluate", "exploitability", run)
    assert found["game"].endswith("lossless and IR-PHS-PHS 2-3")
    assert found["value"] > answer("evaluate", "exploitability", solved)["value"] + 0.1
    kilt("export", run, tmp_path / "agent")
    assert answer("match", tmp_path / "agent", f"{run}@purification", "--hands", 100)["mbb_per_hand"] == 0
    assert "no classes of boards" in refused("solve", config, "--engine", "local", "--out", tmp_path / "blades")


def test_agents_play_matches(solved):
    said = answer("match", solved, "always-fold", "--hands", 400)
    assert said["mbb_per_hand"] > 0
    assert said["ci95"][0] < said["mbb_per_hand"] < said["ci95"][1]
    assert said["hands"] == 400
    same = answer("match", f"{solved}@none", f"{solved}@none@arithmetic", "--hands", 100)
    assert same["mbb_per_hand"] == 0  # no bet is outside of the menu, and duplicate deals are played alike
    assert "unknown post-processing" in refused("match", f"{solved}@odd", "random")
    assert "unknown translation" in refused("match", f"{solved}@none@odd", "random")


def test_matches_say_which_way_they_went(solved, tmp_path):
    players, log = (f"{solved}@none", solved), tmp_path / "match.log"
    said = answer("match", *players, "--hands", 100)
    assert (said["way"], said["played"], said["hands"]) == ("expected", None, 100)
    assert said["cpu_seconds"] > 0 and said["seconds"] > 0 and said["played_hands"] > 100
    both = answer("match", *players, "--hands", 100, "--log", log)
    played = answer("match", *players, "--hands", 100, "--way", "played")
    assert both["mbb_per_hand"] == said["mbb_per_hand"] and played["way"] == "played"
    assert both["played"]["mbb_per_hand"] == played["mbb_per_hand"] != said["mbb_per_hand"]
    assert answer("evaluate", "log", log, "--game", solved.parent / "small.game")["players"]
    shown = kilt("match", *players, "--hands", 100, "--played")
    assert "expected" in shown.stdout and "as precise as raw winnings of" in shown.stderr and "CPU time" in shown.stderr
    table = answer("crosstable", *players, "random", "--hands", 100)
    assert [match["way"] for match in table["matches"]] == ["expected", "played", "played"]
    assert table["rates"][0][1]["mbb_per_hand"] == said["mbb_per_hand"]


def test_agents_play_their_own_game_only(solved):
    assert "use the game it was made for" in refused("match", solved, "random", "--game", "leduc")


def test_agents_can_be_moved(solved, tmp_path):
    kilt("export", solved, tmp_path / "agent")
    (tmp_path / "agent").rename(tmp_path / "elsewhere")
    assert answer("match", tmp_path / "elsewhere", solved, "--hands", 100)["mbb_per_hand"] == 0
    assert (tmp_path / "elsewhere" / "startme.sh").stat().st_mode & 0o777 == 0o755  # what the validator asks for
    assert "an agent for small, solved with external" in (tmp_path / "elsewhere" / "README").read_text()
    assert "is there already" in refused("export", solved, tmp_path / "elsewhere")


def test_sanity_of_a_run(solved):
    """A menu of the pot and all-in lacks small raises, and purification folds too much; no other check fails."""
    said, menu = sanity_of(solved), {"raise taken for another size", "one answer with every hand"}
    average, played = (
        {finding["name"] for finding in said[key]["findings"] if finding["off"]} for key in ("average", "as_played")
    )
    leads, checks = "profit of betting any two cards, opponent leads", "gain of betting over checking, agent checks"
    assert menu <= average <= menu | {checks} and not said["ok"]
    assert leads in played - average
    assert "FAIL as played: purification: profit of" in kilt("evaluate", "sanity", solved, code=1).stderr


def sanity_of(run):
    """What a report says of a strategy that fails a check."""
    return json.loads(kilt("evaluate", "sanity", run, "--deals", 500, "--json", code=1).stdout)


def test_sanity_is_that_of_both_strategies(solved, monkeypatch):
    """Of the average strategy, and of the one that is played; either may fail alone."""
    both = sanity_of(solved)
    assert both["average"].items() <= both.items() and both["strategy"] == "average strategy"
    assert both["as_played"]["strategy"] == "as played: purification"
    assert both["as_played"]["findings"] != both["findings"]
    for rule, key in (("none", "average"), ("purification", "as_played")):
        one = sanity_of(f"{solved}@{rule}")
        assert one[key] == both[key] and not {"average", "as_played"} <= set(one)
    assert "solves subgames while it plays" in refused("evaluate", "sanity", f"{solved}@resolve")
    fine = [replace(one, findings=one.findings[:3]) for one in sanity_reports(solved, 500)]
    monkeypatch.setattr("kilt.players.reports.sanity_reports", lambda *_: tuple(fine))
    said = kilt("evaluate", "sanity", solved).stderr
    assert said == "average strategy: all checks passed\nas played: purification: all checks passed\n"
    fine[1] = replace(fine[1], findings=tuple(replace(finding, off=True) for finding in fine[1].findings[:1]))
    assert "FAIL as played: purification: " in kilt("evaluate", "sanity", solved, code=1).stderr


def test_solving_ends_with_the_exploitability_of_both_strategies(config):
    """As `kilt evaluate exploitability` finds them afterwards; an agent without post-processing has one strategy."""
    run, plain = config.parent / "run", config.with_name("plain.toml")
    said = answer("solve", config, "--out", run)
    both = answer("evaluate", "exploitability", run)
    assert (said["strategy"], said["as_played"]["strategy"]) == ("average strategy", "as played: purification")
    assert said["exploitability"] == pytest.approx(both["average"]["exploitability"], abs=1e-6)
    assert said["as_played"]["exploitability"] == pytest.approx(both["as_played"]["exploitability"], abs=1e-6)
    assert said["as_played"]["exploitability_mbb"] > 1.1 * said["exploitability_mbb"]
    shown = kilt("solve", "--resume", run)
    assert f"{said['as_played']['exploitability']:.6g}" in re.search("as played: purification.*", shown.stdout)[0]
    assert "figures not marked 'as played: purification' are of the average strategy" in shown.stderr

    plain.write_text(CONFIG.replace("purification", "none"))
    assert "as_played" not in answer("solve", plain, "--iterations", 200, "--out", run.with_name("plain"))
    shown = kilt("solve", "--resume", run.with_name("plain"))
    assert "as played" not in shown.stdout + shown.stderr


def test_the_table_of_a_run_that_re_solves_is_named_as_such(config):
    """Its agent plays by more than the table: a lower bound is all that is known of that."""
    config.write_text(CONFIG.replace("20000", "200") + '\n[resolve]\nrounds = ["round 2"]\niterations = 1\n')
    run = config.parent / "run"
    kilt("solve", config, "--out", run)
    name = "as played without re-solving: purification"
    shown = kilt("evaluate", "exploitability", run)
    assert f"{run} solves subgames while it plays" in shown.stderr and "without" in shown.stdout
    assert answer("evaluate", "exploitability", run)["as_played"]["strategy"] == name
    assert [report.strategy for report in sanity_reports(run, 100)] == ["average strategy", name]
    assert describe_strategy(load_agent(str(run))) == "as played: purification, round 2 re-solved"


def test_local_best_responses_judge_the_average_strategy_and_the_strategy_as_played(solved):
    """On the same cards; RUN@RULE chooses one of them, and keys outside are about the strategy as played."""
    lbr = ("evaluate", "lbr", "--hands", 40, "--processes", 1)
    both, average, played = (answer(*lbr, run) for run in (solved, f"{solved}@none", f"{solved}@purification"))
    assert both["average"]["strategy"] == average["strategy"] == "average strategy"
    assert both["as_played"]["strategy"] == both["strategy"] == played["strategy"] == "as played: purification"
    for key in ("mbb_per_hand", "ci95", "money", "hands"):
        assert both["average"][key] == average[key]
        assert both["as_played"][key] == both[key] == played[key]
        assert not {"average", "as_played"} & (set(average) | set(played))
    assert both["average"]["mbb_per_hand"] != both["mbb_per_hand"]
    shown = kilt(*lbr, solved).stdout
    assert shown.index("average strategy") < shown.index("as played: purification")


def test_matches_say_which_strategies_met(solved, tmp_path):
    """On the side, and for programs; players without a solved strategy have none to name."""
    players = solved, f"{solved}@none", "always-call"
    names = {str(solved): "as played: purification", f"{solved}@none": "average strategy"}
    said = kilt("match", *players, "--hands", 20)
    assert f"strategies: {solved} (as played: purification), {solved}@none (average strategy)\n" in said.stderr
    assert answer("match", *players, "--hands", 20)["strategies"] == names
    assert answer("crosstable", *players, "--hands", 20)["strategies"] == names
    assert "strategies:" not in kilt("match", "probe", "random", "-g", "leduc", "--hands", 20).stderr
    kilt("match", solved, "probe", "--hands", 20, "--log", tmp_path / "log")
    assert answer("evaluate", "log", tmp_path / "log", "--player", solved)["strategy"] == "as played: purification"
    assert (
        answer(
            "evaluate",
            "log",
            tmp_path / "log",
            "--player",
            "probe",
            "--as",
            f"{solved}@none",
            "-g",
            solved.parent / "small.game",
        )["strategy"]
        == "average strategy"
    )
    seated = f"seats:{solved},{solved}@none"
    assert answer("match", seated, "probe", "--hands", 20)["strategies"] == {
        load_agent(seated).name: f"{solved} (as played: purification), {solved}@none (average strategy)"
    }
    assert describe_strategy(load_agent(f"{solved}@none@resolve:iterations=1")).endswith(
        "average strategy, round 2 re-solved"
    )
