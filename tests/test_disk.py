"""CFR+ with regrets on disk beside CFR+ in memory."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos import content_of
from commands import answer, kilt, refused
from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.buckets import AbstractionSpec, load_abstractions
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import CANONICAL, BucketStep, Plan, RoundPlan
from kilt.cards.deck import FULL
from kilt.cards.equity import hand_list, ranking_workspace
from kilt.cards.hands import hand_tables
from kilt.config import Config, EngineConfig, SolverConfig
from kilt.engines import EngineError, LocalEngine, WorkerLost
from kilt.errors import GameError, PlayError, RunError
from kilt.evaluate.evaluator import evaluator_for
from kilt.evaluate.tree_sanity import check_tree_strategy
from kilt.evaluation import play_match
from kilt.games.game import CHANCE
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.play.processed import ProcessedAgent
from kilt.play.strategy_agent import StrategyAgent
from kilt.play.tree_agent import TreeAgent
from kilt.players.agents import load_agent
from kilt.players.profile import StrategyRef
from kilt.players.reports import sanity_reports
from kilt.runs import folder
from kilt.runs.budget import Budget
from kilt.runs.build import build as build_run
from kilt.runs.build import resume, spec_in, spec_of
from kilt.runs.check import check
from kilt.runs.folder import SUBGAMES, RunFolder
from kilt.runs.run import open_run
from kilt.runs.spec import WholeSpec
from kilt.solve.abstract import BucketedGame
from kilt.solve.abstract_problem import AbstractProblem
from kilt.solve.cfr import SELF_PLAY, Cfr
from kilt.solve.forms import load_problem
from kilt.solve.problem import DISK, VectorProblem
from kilt.solve.registry import make_solver
from kilt.solve.solver import normalised
from kilt.solve.tables import disk_strategy, disk_workers
from kilt.solve.tables.disk import GOLDEN, DiskTables
from kilt.solve.tables.disk_buckets import BucketedSubgames, SubgameShares
from kilt.solve.tables.disk_files import pack, unpack
from kilt.solve.tables.disk_kernels import MOST, PartRows
from kilt.solve.tables.disk_plan import DiskPlan
from kilt.solve.tables.disk_store import COMING, TRUNK, SubgameStore
from kilt.solve.tables.disk_strategy import DiskProblem, read_subgame
from kilt.solve.tables.disk_subgames import Subgames
from kilt.solve.tables.disk_workers import WorkerTables
from kilt.solve.tables.memory import TreeTables
from kilt.solve.variants import VARIANTS, discounts
from kilt.strategy.blueprint import STRATEGY, export
from kilt.strategy.postprocess import apply, rule_named
from kilt.strategy.table import Strategy
from kilt.strategy.vector import process_table
from kilt.tree.navigation import NavigableTree
from kilt.tree.rule import Discount
from kilt.tree.vector import VectorGame
from kilt.web.library import Library
from kilt.web.views import strategy_view
from kilt_lab.benchmarks import disk as bench
from kilt_lab.claims import HOLDS
from kilt_lab.menu import EXPERIMENTS
from kilt_lab.runner import run
from test_abstract import THREE_ROUNDS
from test_lab_digits import Quiet
from test_vector import flat_tree_of, game_of
from written_out import flat_places

SCALE = 2.0**20


def in_memory(game: VectorGame | BucketedGame, iterations: int, scale: float, trunk: int) -> TreeTables:
    """CFR+ in memory, regrets rounded after each player's walk as on disk, but for those of the trunk's rows."""
    twin = Cfr(TreeTables(game), "cfr+").tables
    for number, row in enumerate(discounts(VARIANTS["cfr+"], 1, iterations)):
        for turn in SELF_PLAY:
            twin.learn(turn, Discount._make([*row.tolist(), 0.0]))
            dither = (2 * number + turn.player) * GOLDEN % 1
            twin.regret[trunk:] = np.floor(twin.regret[trunk:] * scale + dither) / scale
        twin.iterations += 1
    return twin


def disk(game: VectorGame, folder, size: int | None = None, trunk: int | None = None, **more) -> Cfr:
    """A solver on disk with a fine scale; subgames of `size` 1 are as small as they can be."""
    return Cfr(DiskTables(Subgames(game, size=size, trunk=trunk), folder, **{"scale": SCALE} | more))


def of_buckets(problem: AbstractProblem, **more) -> Cfr:
    """A solver on disk for players who see buckets."""
    cut = BucketedSubgames.of(problem.abstract, 1)
    tables = DiskTables(cut, scale=SCALE / np.pi, **more)
    return Cfr(tables, "cfr+", SubgameShares(cut, problem.abstract).strategy_shares)


@cache
def no_strengths() -> tuple:
    """What `PartRows` has at its end, where hands have no strengths."""
    return False, hand_list(), hand_tables(7), ranking_workspace(FULL, 2, 5)


@settings(max_examples=50)
@given(st.lists(st.integers(0, MOST), min_size=1, max_size=40), st.integers(1, 3))
def test_what_is_packed_is_unpacked(numbers, rows):
    table = np.tile(np.array(numbers, dtype=np.float64), (rows, 1))
    again, hands, one = np.empty_like(table), table.shape[1], np.zeros(1, np.int64)
    none = np.arange(hands, dtype=np.int32)[None], one, np.zeros(hands, np.int64), one, np.zeros((1, 5), np.int64)
    every = [PartRows(0, rows, np.arange(rows), *none, *no_strengths())]
    for kept, expected in ((table, table), (table + 2.0**33, MOST), (table / 2, table // 2), (table % 9, table % 9)):
        unpack(pack(kept, every, rows * hands, 1.0), every, rows * hands, 1.0, again)
        assert np.all(again == expected)


@pytest.mark.parametrize(
    ("name", "size", "trunk", "count"),
    [
        ("leduc", None, None, 3),
        ("leduc", 10**9, None, 1),
        ("three rounds", 1, 1, 6),
        ("three rounds", 1, None, 18),
        ("bluff-1-1", 1, None, 12),
    ],
)
def test_iterates_are_those_in_memory(name, size, trunk, count, tmp_path):
    """However the game is cut: by flops, by the betting before them, and by that of two rounds."""
    game = VectorGame(game_of(name))
    solver = disk(game, tmp_path, size, trunk, averaging=True)
    cut = solver.tables.subgames
    assert (cut.count, cut.trunk_rounds) == (count, 2 if count == 18 else 1)
    solver.step(1)
    solver.step(2)
    assert solver.iterations == 3
    twin, strategy = in_memory(game, 3, SCALE, cut.trunk_rows), solver.current()
    found, average, table = strategy.table(), solver.average(), twin.regret
    assert np.abs(found - table).max() < 1e-9 * table.max()
    np.testing.assert_allclose(solver.tables.average_trunk, twin.total[: cut.trunk_rows], atol=1e-9)
    assert average.exploitability() == pytest.approx(game.exploitability(twin.total), abs=1e-3)
    assert strategy.exploitability() == pytest.approx(game.exploitability(found), abs=1e-9)
    assert average.exploitability() == pytest.approx(game.exploitability(average.table()), abs=1e-9)
    assert strategy.expected_values()[0] == pytest.approx(game.expected_value(found), abs=1e-9)
    least, most = strategy.value_bounds()
    assert most - least == pytest.approx(2 * strategy.exploitability())
    if isinstance(game.game, Holdem):
        rule = rule_named("new-0.2-after-first")
        process_table(game, rule, found, game.tree.table_start, np.diff(game.tree.board_start))
        np.testing.assert_allclose(strategy.post_processed(rule).table(), found, atol=1e-9)
    if cut.trunk_rounds == 2:
        shared = Cfr(WorkerTables(cut, LocalEngine(), 2, scale=SCALE, averaging=True))
        shared.step(3)
        assert np.array_equal(shared.tables.trunk_tables, solver.tables.trunk_tables)
        assert shared.average().exploitability() == average.exploitability()
        shared.tables.close()


@pytest.fixture(scope="module")
def seen_cards(tmp_path_factory):
    """Buckets of three rounds that flops 0, 3, 6, 1, 4, 7 and 2, 5, 8 share, each set its own; and of all flops."""
    game, place = Holdem(GameDef.parse(THREE_ROUNDS)), tmp_path_factory.mktemp("cards")
    plan = Plan((RoundPlan(True, (BucketStep(CANONICAL),)),) * 3)
    fine = build(AbstractionSpec("fine", Deal.from_game(game), plan), place / "fine")
    shared = []
    for sets in (3, 1):
        rounds = [fine.rounds[0]]
        for this in fine.rounds[1:]:
            first = this.holdings.boards[:, :1].astype(np.int64) % sets
            table = (4 * first + np.arange(this.table.shape[1]) % 4).astype(this.table.dtype)
            rounds.append(this._replace(table=table, sizes=np.ones(4 * sets, np.int64)))
        shared.append(replace(fine, rounds=tuple(rounds)))
    return place / "fine", *shared


def test_players_who_see_buckets(seen_cards, tmp_path):
    """Flops that share buckets are one subgame: iterates are those in memory, and so is what is played."""
    folder, cards, everywhere = seen_cards
    game = VectorGame(Holdem(GameDef.parse(THREE_ROUNDS)))
    problem = AbstractProblem(AbstractGame(game.game, cards), (folder,))
    solver = of_buckets(problem, averaging=True)
    cut = solver.tables.subgames
    assert [flops.tolist() for flops in cut._flops] == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    solver.step(6)
    seen, twin = BucketedGame.with_abstraction(game, cards), TreeTables(problem.bucketed)
    Cfr(twin).step(6)
    table = in_memory(seen, 6, solver.tables.scale, cut.trunk_rows).regret
    for number, averaged in product(range(3), (False, True)):
        trunk, expected = (solver.tables.average_trunk, twin.total) if averaged else (solver.tables.trunk, table)
        read = number, trunk, cut.scratch(), solver.tables.passes
        found = read_subgame(cut, solver.tables.store, *read, averaged=averaged).regret
        for place in seen.decision_locations(problem.abstract):
            own = cut.columns[place.player][place.round][number]
            off = found[place.rows, : len(own)] - expected[place.rows][:, own]
            assert np.abs(off).max() < (2e-4 if averaged else 1e-9 * table.max())
    np.testing.assert_allclose(solver.current(), seen.shares_of(problem.abstract, table, np.uint16), atol=1)
    again = of_buckets(problem, averaging=True)
    temporary = [one.tables.store.folder for one in (solver, again)]
    solver.tables.open(tmp_path / "kept")
    again.tables.open(tmp_path / "kept")
    assert not any(map(Path.exists, temporary))
    assert again.iterations == 6 and np.array_equal(again.average(), solver.average())
    alone = AbstractProblem(AbstractGame(game.game, everywhere), (folder,))
    solver, seen = of_buckets(alone), BucketedGame.with_abstraction(game, everywhere)
    assert solver.tables.subgames.count == 5 and solver.tables.subgames.by_betting  # flops share all buckets
    solver.step(6)
    table = in_memory(seen, 6, solver.tables.scale, solver.tables.subgames.trunk_rows).regret
    np.testing.assert_allclose(solver.current(), seen.shares_of(alone.abstract, table, np.uint16), atol=1)


def test_workers_for_players_who_see_buckets(seen_cards, tmp_path):
    """They find the cards in their folder: tables and blueprints are those of one process, and are gone on with."""
    place = seen_cards[0]
    game, engine = Holdem(GameDef.parse(THREE_ROUNDS)), EngineConfig(name="local", blades=2)
    problem = AbstractProblem(AbstractGame(game, load_abstractions([place])), (place,), engine=engine)
    alone, shared = (
        make_solver(replace(problem, engine=where), "cfr+disk:average") for where in (EngineConfig(), engine)
    )
    assert isinstance(alone.tables, DiskTables) and isinstance(shared.tables, WorkerTables)
    shared.tables.open(tmp_path)
    shared.step(1)
    shared.tables.settle()
    again = make_solver(replace(problem, engine=EngineConfig()), "cfr+disk:average")
    again.tables.open(tmp_path)  # in one process
    for solver, iterations in ((shared, 1), (again, 1), (alone, 2)):
        solver.step(iterations)
    average = alone.average()
    for solver in (shared, again):
        assert np.array_equal(solver.tables.trunk_tables, alone.tables.trunk_tables) and np.array_equal(
            solver.average(), average
        )
    assert np.array_equal(shared.current(), alone.current())
    shared.tables.close()


@pytest.mark.parametrize("name", ["leduc", "three rounds", "two hole cards"])
def test_agents_play_it_as_if_it_were_in_memory(name, tmp_path, monkeypatch):
    """On any board, whatever its suits: by subgames that are unpacked one at a time, and by the rows of a flat tree."""
    monkeypatch.setattr(disk_strategy, "KEPT", 1)
    game, tree, rng = VectorGame(game_of(name)), flat_tree_of(name), np.random.default_rng(0)
    solver = disk(game, tmp_path, size=None if name == "two hole cards" else 1)
    solver.step(2)
    strategy, table = solver.current(), solver.current().table()
    for row in rng.permutation(len(table))[:30].tolist():
        assert np.array_equal(strategy[row : row + 1], table[row : row + 1])
    shares = normalised(table[flat_places(game, tree)], tree.nodes)
    twin = StrategyAgent("flat", game.game, Strategy.of(tree, shares))
    agents = [TreeAgent("tree", NavigableTree(game), rows) for rows in (strategy, table)]
    for position in (position for _, _, position in game.decisions() if rng.random() < 0.2):
        size = game.game.rules.board_size(position.round)
        board = tuple(rng.permutation(game.game.deck.size)[:size].tolist())
        expected = twin.policy(position, board)
        for agent in agents:
            found = agent.policy(position, board)
            assert found.actions == expected.actions
            np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=1e-12)
    if name == "two hole cards":
        _first_actions(solver, twin, tmp_path / "kept")


def _first_actions(solver: Cfr, twin: StrategyAgent, folder) -> None:
    """The figure of first actions, from a folder of subgames: as the flat strategy has them."""
    DiskProblem(solver.tables.subgames.game).save(folder / STRATEGY, solver.current())
    experiment = EXPERIMENTS["figure-9.4"]
    setting = experiment.setting({}, {"game": str(folder)})
    found = {row.name: row for row in run(experiment, setting, folder.with_suffix(".figure"), Quiet()).rows}
    opening = twin.policy(twin.game.start(), ())
    limps = opening.probability("c")
    assert found["dealer limps"].ours == pytest.approx(100 * limps.mean())  # all hands come to the first decision
    assert found["dealer plays"].ours == pytest.approx(100 - 100 * opening.probability("f").mean())
    assert found["hand that limps most"].ours == pytest.approx(100 * limps.max())
    assert "dealer caps with AA" not in found  # there is one raise a round
    assert (folder.with_suffix(".figure") / "figure.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("threads", [1, 2])
def test_a_pass_that_was_interrupted_goes_on(tmp_path, monkeypatch, threads):
    """Whatever the file was that could not be written, and by whom it goes on: numbers are the same in the end."""
    game, size, last = VectorGame(game_of("leduc"), threads=threads), (None, 1)[threads - 1], 4 - threads
    whole = disk(game, tmp_path / "whole", size)
    whole.step(last)
    write = SubgameStore._write
    for fatal in range(1, 26, 6 * threads):
        written = 0

        def breaks(self, file, *content, fatal=fatal):
            nonlocal written
            written += 1
            if written >= fatal:
                file.with_name(f".{file.name}").write_bytes(b"half of it")
                raise KeyboardInterrupt
            write(self, file, *content)

        folder = tmp_path / str(fatal)
        with monkeypatch.context() as patch:
            patch.setattr(SubgameStore, "_write", breaks)
            with pytest.raises(KeyboardInterrupt):
                disk(game, folder, size).step(4)
        if fatal == 13:
            again = Cfr(WorkerTables(whole.tables.subgames, LocalEngine(), 2, scale=SCALE))
            again.tables.open(folder)
        else:
            again = disk(game, folder, size)
        again.step(last - again.iterations)
        assert np.array_equal(again.current().table(), whole.current().table())


def test_damage_is_found_and_named(tmp_path):
    game = VectorGame(game_of("leduc"))
    disk(game, tmp_path / "sound").step(1)
    for name in ("1-2.zst", "trunk.zst"):
        size = (tmp_path / "sound" / name).stat().st_size
        for place in range(0, size, 37):
            folder = shutil.copytree(tmp_path / "sound", tmp_path / f"{name}-{place}")
            content = bytearray((folder / name).read_bytes())
            content[place] ^= 64
            (folder / name).write_bytes(content)
            with pytest.raises(RunError, match=r"(player 2 of subgame 1,|trunk.zst) is damaged"):
                disk(game, folder).step(1)
            if place < 60:
                (found,) = check(folder)
                assert "1-2.zst, player 2 of subgame 1, is damaged" in found.damage or "trunk.zst is" in found.damage
    (found,) = check(tmp_path / "sound")
    assert (found.what, found.damage) == ("subgames", "")
    swapped = shutil.copytree(tmp_path / "sound", tmp_path / "swapped")
    shutil.copyfile(swapped / "2-1.zst", swapped / "1-1.zst")
    with pytest.raises(RunError, match="player 1 of subgame 1, is damaged"):
        disk(game, swapped).step(1)
    old = (tmp_path / "sound" / "2-1.zst").read_bytes()
    disk(game, tmp_path / "sound").step(1)
    (tmp_path / "sound" / "2-1.zst").write_bytes(old)
    (tmp_path / "sound" / "0-2.zst").unlink()
    (found,) = check(tmp_path / "sound")
    assert "player 2 of subgame 0, is damaged (it is missing)" in found.damage
    assert "player 1 of subgame 2, is damaged (it belongs to pass 1, not to pass 3)" in found.damage
    with pytest.raises(RunError, match=r"it is missing|it belongs to pass 1"):
        disk(game, tmp_path / "sound").step(1)


def test_what_is_refused(tmp_path):
    leduc = VectorGame(game_of("leduc"))
    disk(leduc, tmp_path)
    with pytest.raises(RunError, match="another scale"):
        disk(leduc, tmp_path, scale=3)
    with pytest.raises(RunError, match="another game"):
        disk(VectorGame(game_of("three rounds")), tmp_path)
    with pytest.raises(RunError, match="cut into other subgames"):
        DiskProblem(leduc).save(tmp_path / "whole", disk(leduc, tmp_path / "one", size=10**9).current())
    with pytest.raises(GameError, match="the trunk is 2 rounds; leduc has 2: use 1 to 1"):
        disk(leduc, tmp_path / "deep", trunk=2)
    with pytest.raises(RunError, match="another game"):  # it is cut by betting
        disk(leduc, tmp_path, size=1)
    with pytest.raises(GameError, match="no subgames"):
        Subgames(VectorGame(game_of("kuhn")))


def test_runs_on_disk(tmp_path, monkeypatch):
    """Gone on with after a kill, a run ends in the same files, from which it is judged; one process works at a time."""
    whole = build_run(
        spec_of("leduc", {"solver.algorithm": "cfr+disk:average"}), tmp_path / "whole", budget=Budget(iterations=6)
    ).finish()
    first = build_run(
        spec_of("leduc", {"solver.algorithm": "cfr+disk:average"}), tmp_path / "run", budget=Budget(iterations=3)
    )
    first.finish()
    files = {file.name: file.read_bytes() for file in (tmp_path / "run" / STRATEGY).iterdir()}
    store = first.solver.tables.store
    with store.lock(), pytest.raises(RunError, match="another process is at work"):
        resume(tmp_path / "run", budget=Budget(iterations=6)).finish()
    write, written = SubgameStore._write, []

    def killed(self, file, content):
        written.append(file)
        if len(written) == 11:  # the third of the fifth iteration
            raise KeyboardInterrupt
        write(self, file, content)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(SubgameStore, "_write", killed)
        first.solver.step(2)
    assert {file.name: file.read_bytes() for file in (tmp_path / "run" / STRATEGY).iterdir()} == files
    last = resume(tmp_path / "run", budget=Budget(iterations=6)).finish()
    assert last[2:5] == whole[2:5]
    steps, expected = (
        {step.iterations: step.exploitability for step in RunFolder.open(tmp_path / name).steps()}
        for name in ("run", "whole")
    )
    assert set(steps) == {1, 2, 3, 6} and steps.items() <= expected.items()  # half of an iteration is not measured
    assert same_files(*(tmp_path / run / SUBGAMES for run in ("run", "whole")))
    problem, strategy, figures = open_run(tmp_path / "run").load()
    assert evaluator_for(problem).exploitability(strategy) == whole.exploitability == figures["exploitability"]
    table = strategy.table()
    assert problem.game.exploitability(table) == pytest.approx(whole.exploitability, abs=1e-9)
    twin = Cfr(TreeTables(problem.game, averaging=True))
    twin.step(6)
    rounded = problem.game.exploitability(twin.average())
    assert whole.exploitability == pytest.approx(rounded, abs=1e-3) != whole.current_exploitability
    with pytest.raises(GameError, match=r"another|is for"):
        load_problem("rhode-island", form=DISK).load(tmp_path / "run" / STRATEGY)
    VectorProblem(problem.game).save(tmp_path / "memory" / STRATEGY, table)
    export(tmp_path / "run", tmp_path / "exported")
    shutil.rmtree(tmp_path / "run")
    evaluator, again, _ = StrategyRef.of_run(tmp_path / "exported").load()
    assert evaluator.exploitability(again) == whole.exploitability
    for rule in ("", "@purification"):
        places = (f"{tmp_path / place}{rule}" for place in ("whole", "memory", "exported"))
        won = {play_match(place, "always-call", 12).results.sum() for place in places}
        assert len(won) == 1  # all of them play the same strategy
    checked, same = (sanity_reports(tmp_path / name, 800) for name in ("whole", "memory"))
    assert checked == same
    rules = [StrategyRef.of_run(Path(f"{tmp_path / name}@new-0.2-after-first")).load() for name in ("whole", "memory")]
    on_disk, in_one = (evaluator.exploitability(played) for evaluator, played, _ in rules)
    assert on_disk == pytest.approx(in_one, abs=1e-9) != whole.exploitability
    plain = load_agent(f"{tmp_path / 'memory'}@new-0.2-after-first")
    (_, first, _), (_, second, _) = rules
    for position in (position for _, _, position in problem.game.decisions()):
        board = tuple(range(position.round))
        expected = plain.policy(position, board).probabilities
        for played in (first, second):
            found = TreeAgent("played", NavigableTree(problem.game), played).policy(position, board).probabilities
            np.testing.assert_allclose(found, expected, atol=1e-12)
    with pytest.raises(PlayError, match="nothing to translate or re-solve"):
        load_agent(f"{tmp_path / 'whole'}@resolve")
    agent, rules = Library([tmp_path / "exported"]).policy_player("exported")
    seen = strategy_view(agent, rules, "cc/", rules.deck.cards("Kh"))
    assert seen["state"] == "decision" and len(seen["cells"]) == 5


def test_sanity_of_a_tree():
    """Aces, nuts and actions by enumeration of all deals on the boards that are drawn; and after post-processing."""
    game = VectorGame(game_of("leduc"))
    solver, holdem = Cfr(TreeTables(game)), game.game
    solver.step(3)
    plain = TreeAgent("plain", NavigableTree(game), solver.average())
    known = cache(lambda history, r, board: plain.policy(positions[history], (board,) * r))
    positions = {position.history: position for _, _, position in game.decisions()}
    for rule in ("none", "new-0.2-after-first"):
        agent = ProcessedAgent(rule, plain, holdem, rule_named(rule))
        found = {finding.name: finding.figures for finding in check_tree_strategy(agent, holdem, 3, seed=1).findings}
        random = np.random.default_rng(1)
        boards = [random.permutation(6)[:1].tolist() for _ in range(3)]
        kings, folds, faced, actions = np.zeros(2), 0.0, 0.0, Counter()
        for first, second, board in permutations(range(6), 3):
            met = boards.count([board])
            hands, best = (first, second), board // 2  # a pair
            below = [(holdem.start(), 1.0)]
            while below:
                position, reach = below.pop()
                if position.actor < 0:
                    below += [(position.after("/"), reach)] if position.actor == CHANCE else []
                    continue
                policy, hand = known(position.history, position.round, board), hands[position.actor]
                acted = any(before.actor == position.actor for before, _ in holdem.positions.moves_to(position))
                row = policy.table[:, policy.column[hand]]
                row = apply(agent.rule, policy.actions, row, first=not acted)
                for action, share in zip(policy.actions, row, strict=True):
                    if share:
                        actions[position.round, action[0]] += met * reach * share
                        below += [] if action == "f" else [(position.after(action), reach * share)]
                    if action == "f" and position.round == 0 and hand // 2 == 2:
                        kings[position.actor] += reach * share / (2 * 5 * 4)
                    if action == "f" and position.round == 1 and hand // 2 == best:
                        faced, folds = faced + met * reach, folds + met * reach * share
        first_round, second_round = holdem.rules.round_names
        np.testing.assert_allclose([*found[f"aces fold in {first_round}"].values()], kings, atol=1e-12)
        assert found["the nuts fold in the last round"]["opponent follows the strategy"] == pytest.approx(folds / faced)
        for r, name in enumerate((first_round, second_round)):
            whole = sum(share for (at, _), share in actions.items() if at == r)
            for action, kind in zip("fcr", ("fold", "call", "raise"), strict=True):
                assert found[f"actions {name}"].get(kind, 0.0) == pytest.approx(actions[r, action] / whole)


class FullEngine(LocalEngine):
    """An engine that has no room when it is asked for workers for the times of some numbers, counted from 0."""

    def __init__(self, full: set[int]) -> None:
        super().__init__()
        self.asked, self.full = -1, full

    def hire(self, jobs):
        self.asked += 1
        if self.asked in self.full:
            raise EngineError("there is no room")
        return super().hire(jobs)


@pytest.fixture
def lossy(monkeypatch):
    """Workers are lost in the walks that are added here, by passes before and subgame; and a count of all others."""
    fatal, worked, learn = [], Counter(), DiskTables._learn

    def walk(self, player, discount, subgame):
        if (place := (self.passes, subgame.number)) in fatal:
            fatal.remove(place)
            raise WorkerLost(0, "its machine is gone")
        worked[place] += 1
        return learn(self, player, discount, subgame)

    monkeypatch.setattr(DiskTables, "_learn", walk)
    return fatal, worked


def same_files(one: Path, other: Path) -> bool:
    """Whether two folders have the same files of subgames and of the trunk; the latter names the run, too."""
    both = ({file.name: content_of(file) for file in place.glob("*.zst")} for place in (one, other))
    return next(both) == next(both) != {}


def test_workers_with_disks_of_their_own(tmp_path, monkeypatch, lossy):
    """Whatever their number, and whoever is lost: files are those of one process, bit for bit, and are gone on with."""
    monkeypatch.setattr(folder, "OFTEN", 0.0)
    four, more, fatal = Budget(iterations=4), Budget(iterations=5), lossy[0]

    def run(name, engine=None, workers=1):
        where = EngineConfig(blades=workers) if engine else EngineConfig()
        config = Config("leduc", solver=SolverConfig(algorithm="cfr+disk:average"), engine=where)
        spec = WholeSpec(config, place=engine)
        return build_run(spec, tmp_path / name, budget=four)

    def going_on(name, engine=None):
        spec = replace(spec_in(tmp_path / name), place=engine)
        return build_run(spec, tmp_path / name, resumes=True, budget=more)

    alone, warned = run("alone").finish(), []
    for name, workers, lost in (("three", 3, []), ("two", 2, [(5, 2)])):
        fatal += lost
        *_, last = run(name, LocalEngine(), workers).solving(warn=warned.append)
        assert last[2:5] == alone[2:5]
        for place in (STRATEGY, SUBGAMES):
            assert same_files(tmp_path / "alone" / place, tmp_path / name / place)
        assert not any(found.damage for found in check(tmp_path / name))
    said = r"worker \d was lost: its machine is gone; its [12] subgames are worked on again from iteration [012] on"
    assert re.fullmatch(said, *warned)
    by_workers = going_on("alone", LocalEngine()).finish()
    assert going_on("three").finish()[2:5] == by_workers[2:5]
    assert same_files(*(tmp_path / name / STRATEGY for name in ("alone", "three")))
    assert "use cfr+disk" in refused("solve", "leduc", "--engine", "local", "--iterations", 2)


def test_a_lost_worker_costs_its_own_subgames(tmp_path, monkeypatch, lossy):
    """They are worked on again from the last checkpoint, whoever takes them, and whoever is lost meanwhile."""
    monkeypatch.setattr(disk_workers, "IN_MEMORY", 1000)  # bytes of strategies
    fatal, worked = lossy
    cut, warned = Subgames(VectorGame(game_of("leduc")), size=2000), []
    shared = Cfr(WorkerTables(cut, FullEngine(full={3, 4}), 3, averaging=True))
    shared.tables.open(tmp_path / "shared", warned.append)
    shared.step(1)
    shared.tables.settle()
    first, mine, third = shared.tables.share_of
    fatal += [(5, mine[1]), (3, mine[0])]  # in the third iteration, and while that is made good
    shared.step(2)
    assert not fatal and len(warned) == 2 and len(first) == len(mine) == len(third) == 2
    assert all(worked[passes, number] == 1 for passes, number in product(range(6), first + third))
    replayed = {0: 1, 1: 1, 2: 3, 4: 2}  # by passes: once, and again after the two losses, as far as these came
    assert all(worked[passes, number] == often for number in mine for passes, often in replayed.items())
    shared.tables.settle()
    fatal += [(7, mine[0])]
    shared.step(1)  # there is no room for a new worker: others take its subgames
    assert shared.tables.share_of[1] == [] and len(shared.tables.share_of[0]) == len(shared.tables.share_of[2]) == 3
    assert warned[2].endswith("from iteration 3 on, by others: there is no room")
    assert all(worked[6, number] == 1 + (number in mine) for number in range(cut.count))
    fatal += [(9, third[0]), (7, third[1])]  # and again, and whoever takes them is lost: what it has said was in vain
    shared.step(1)
    assert not fatal and sorted(shared.tables.share_of[0]) == list(range(cut.count))
    alone = Cfr(DiskTables(cut, tmp_path / "alone", averaging=True))
    alone.step(5)
    assert shared.average().exploitability() == alone.average().exploitability()
    moved = []

    def killed(self, passes, tables):
        """Be killed when half of the files are in their places."""
        self._write(self.folder / COMING / TRUNK, self.trunk_file(passes, tables))
        moved.extend(sorted((self.folder / COMING).glob("*.zst"))[:5])
        for file in moved:
            file.replace(self.folder / file.name)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(SubgameStore, "replace_files", killed)
        shared.tables.settle()
    again = Cfr(DiskTables(cut, tmp_path / "shared", averaging=True))
    assert again.iterations == 5 and same_files(tmp_path / "shared", tmp_path / "alone")
    shared.tables._sent.forget_all(10)
    (tmp_path / "shared" / COMING).mkdir()  # of somebody who was killed before all files were there
    assert Cfr(DiskTables(cut, tmp_path / "shared", averaging=True)).iterations == 5
    fatal += [(10, 0)] * 6
    with pytest.raises(EngineError, match="was lost: its machine is gone, 5 times in a row"):
        shared.step(1)
    shared.tables.close()


def test_plans_of_games_as_they_are():
    """Counts are those of the split; machines share it, as many as there are subgames."""
    said = answer("plan", "--game", "leduc", "--machines", 8, "--cores", 1, "--iterations", 10)
    cut = Subgames(VectorGame(game_of("leduc")))
    assert (said["subgames"], said["numbers"], said["fits"]) == (cut.count, cut.numbers, True)
    one, many = said["machines"]
    assert one["memory"] == cut.memory == cut.memory_of(5) > cut.memory_of(1) == one["least_memory"]
    assert one["subgames"] == cut.count and many["subgames"] == 1
    assert said["walk_seconds"] > 0 and one["total_seconds"] == [10 * one["seconds"]] > many["total_seconds"]
    guess, least, most = DiskPlan(load_problem("leduc", form=DISK)).iterations_for(0.000986)
    assert least < guess < most == 1579
    assert "cfr+ on leduc: " in kilt("plan", "--game", "leduc", "-a", "cfr+").stderr
    assert "cfr+ on leduc: " in kilt("estimate", "leduc").stderr  # what `kilt solve leduc` takes
    assert "two rounds" in refused("estimate", "kuhn", "-a", "cfr+disk")


def test_tilted_payoffs_are_left_out_when_it_is_judged(tmp_path):
    """By the payoffs of the rules, while it runs and from its folder."""
    run = build_run(
        spec_of("leduc", {"solver.algorithm": "cfr+disk", "tilt": [7, 0, 0, 7]}),
        tmp_path / "run",
        budget=Budget(iterations=3),
    )
    last = run.finish()
    problem, strategy, _ = open_run(tmp_path / "run").load()
    assert evaluator_for(problem).exploitability(strategy) == last.exploitability
    assert problem.game.exploitability(strategy.table()) == pytest.approx(last.exploitability, abs=1e-9)


def test_the_bench_and_the_counts(tmp_path):
    """What is counted of limit hold'em is what the thesis has [Johanson16 chapter 9]; the bench measures any game."""
    figures = {figure.key: figure.value for figure in bench.run(game=game_of("leduc"), iterations=3, dtype=np.float64)}
    assert {"compression_ratio", "overhead", "peak_gb"} < set(figures)
    assert figures["rounding_cost"] == pytest.approx(0, abs=0.1)
    (memory, *costs) = bench.run(game=game_of("leduc"), iterations=3, dtype=np.float64, bits=[18])
    assert memory.value == pytest.approx(figures["exploitability"] - figures["rounding_cost"])
    assert [cost.value for cost in costs] == [figures["rounding_cost"], figures["compression_ratio"]]  # bit for bit
    assert "8 to 26" in refused("bench", "disk", "--bits", "18,3x")
    larger = {figure.key: figure.value for figure in bench.larger_game("leduc", 1e-3)}
    assert larger["larger_iterations"] >= 1 and larger["larger_exploitability"] > 0 < larger["larger_peak_gb"]
    storage = EXPERIMENTS["storage"]
    found = run(storage, storage.defaults, tmp_path / "storage", Quiet())
    assert all(verdict.verdict == HOLDS for verdict in found.verdicts)
