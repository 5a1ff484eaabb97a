"""The page: what its server answers and refuses, and what a real browser does with it."""

import asyncio
import json
import logging
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from queue import Queue
from threading import Event
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import numpy as np
import psutil
import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect, sync_playwright

from kilt import artifact, cancellation
from kilt.abstraction.classes import BoardClasses, CodeBuckets
from kilt.api import solve
from kilt.cards.equity import strengths_on_boards
from kilt.errors import ArtifactError, PlayError, RunError
from kilt.evaluate.decisions import decision_values, hand_ranges, is_exact, review_decision
from kilt.games.game import CHANCE, TERMINAL
from kilt.games.playable import load_holdem
from kilt.machine import ProcessId
from kilt.play.agent import require_policy
from kilt.play.dealer import Cards, Hand
from kilt.players.reference import player
from kilt.runs.folder import RunFolder
from kilt.spots.saved import open_spot
from kilt.spots.spot import Spot
from kilt.web import server
from kilt.web.card_views import bucket_view, classes_view
from kilt.web.connections import LOGGED, PERIOD, MessageLimit
from kilt.web.library import Library
from kilt.web.runner import Runner
from kilt.web.serve import serve
from kilt.web.server import LONGEST, Guard, State, create_app
from kilt.web.spot_views import spot_view
from kilt.web.tables import WebTable, WebTables
from kilt.web.views import abstraction_view, review_view, strategy_view
from kilt_lab.benchmarks import web as bench

BROWSER = os.environ.get("KILT_BROWSER") or shutil.which("chromium") or shutil.which("chromium-browser")
STORED = Path(__file__).parent / "data" / "0.1.0" / "abstract"
LEDUC, KUHN = "leduc (solved here)", "kuhn (solved here)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs: one that is solved, one that is broken, and something that is none."""
    folder = tmp_path_factory.mktemp("web") / "runs"
    solve("leduc", "cfr+", iterations=100, folder=folder / "leduc")
    Spot("Ks7h2d4c9s", pot=10, stacks=20, ranges=("AA,KQs", "QQ,AKo"), bets="1x").solve(
        iterations=50, folder=folder / "river"
    )
    broken = folder / "broken"
    broken.mkdir()
    broken.joinpath("run.json").write_text("{", encoding="utf-8")
    folder.joinpath("notes").mkdir()
    return folder


@pytest.fixture(scope="module")
def client(folder):
    with TestClient(create_app(State(Library([folder]))), base_url="http://localhost") as client:
        yield client


# Views


def test_ranges_are_those_of_playing_up_to_there():
    """With every hand: the product of what the strategy does, and 0 for what the board has taken."""
    leduc = load_holdem("leduc")
    library = Library([])
    agent, game = library.policy_player(LEDUC)
    assert game.rules == leduc.rules
    position, board = game.replay("crc/c"), game.deck.cards("Ks")
    expected = np.zeros((2, 6))
    for hand, name in enumerate(game.hands(0)):
        if name == "Ks":
            continue
        rows = agent.strategy
        expected[0, hand] = rows[f"{name}||"]["c"] * rows[f"{name}||cr"]["c"] * rows[f"{name}|/Ks|crc/"]["c"]
        expected[1, hand] = rows[f"{name}||c"]["r"]
    assert hand_ranges(agent, game, position, board) == pytest.approx(expected)
    view = strategy_view(agent, game, "crc/c", board)
    cell = next(cell for cell in view["cells"] if cell["name"] == "Qh")
    reach = expected[:, game.deck.hole_index(game.deck.cards("Qh"))]
    assert [cell["other"], cell["reach"]] == pytest.approx(reach, abs=1e-6)
    row = agent.strategy["Qh|/Ks|crc/c"]
    assert cell["shares"] == pytest.approx([row[action["label"]] for action in view["actions"]], abs=1e-6)
    assert len(view["cells"]) == 5
    assert [step["history"] for step in view["path"]] == ["", "c", "cr", "crc", "crc/"]


def test_shares_over_all_hands_are_those_of_all_deals():
    agent, game = Library([]).policy_player(KUHN)
    view = strategy_view(agent, game, "c", ())
    rows = {
        name: agent.strategy[f"{name}||c"] for name in ("Ks", "Qs", "As") if f"{name}||c" in agent.strategy.infosets
    }
    weights = {}
    for mine in rows:
        others = [name for name in rows if name != mine]
        weights[mine] = sum(agent.strategy[f"{theirs}||"]["c"] for theirs in others)
    whole = sum(weights.values())
    expected = {action: sum(weights[name] * rows[name][action] for name in rows) / whole for action in ("c", "r")}
    assert {action["label"]: action["share"] for action in view["actions"]} == pytest.approx(expected, abs=1e-6)


def test_hands_that_differ_in_suits_are_one_cell():
    agent, game = player("probe").at(load_holdem("holdem.nolimit.2p"))
    view = strategy_view(require_policy(agent), game, "", ())
    cells = {cell["name"]: cell for cell in view["cells"]}
    assert len(cells) == 169
    assert [cells[name]["hands"] for name in ("AA", "AKs", "AKo", "72o")] == [6, 4, 12, 12]
    assert sum(cell["hands"] for cell in view["cells"]) == 1326
    assert cells["T9s"]["shares"] == [0, 0.5, 0.5]
    flop = strategy_view(require_policy(agent), game, "cc/r200", game.deck.cards("AsAhTd"))
    cells = {cell["name"]: cell for cell in flop["cells"]}
    assert [cells[name]["hands"] for name in ("AA", "AKs", "AKo", "T9s")] == [1, 2, 6, 3]
    assert cells["AKo"]["reach"] == 0.5  # it calls half of the time
    assert flop["title"] == "small blind faces 100"


@pytest.mark.parametrize(("history", "board"), [("cr", ""), ("crc/c", "Ks")])
def test_values_of_actions_are_those_of_playing_on(history, board):
    """Against a walk over all deals, hand by hand."""
    agent, game = Library([]).policy_player(LEDUC)
    position, board = game.replay(history), game.deck.cards(board) if board else ()
    me = position.actor

    def worth(at, seen, mine, theirs):
        hands = (mine, theirs) if me == 0 else (theirs, mine)
        if at.actor == TERMINAL:
            return game.payoffs(at, hands, seen)[me]
        if at.actor == CHANCE:
            return sum(
                chance * worth(at.after("/"), more, mine, theirs) for more, chance in game.reveals(at, hands, seen)
            )
        policy = agent.policy(at, seen)
        return sum(
            policy.probability(action)[hands[at.actor]] * worth(at.after(action), seen, mine, theirs)
            for action in policy.actions
        )

    found = decision_values(agent, game, position, board)
    reach = hand_ranges(agent, game, position, board)[1 - me]
    for hand in set(range(6)) - set(board):
        others = [other for other in range(6) if other not in (hand, *board)]
        for action, values in zip(found.actions, found.values, strict=True):
            sums = sum(reach[other] * worth(position.after(action), board, hand, other) for other in others)
            assert values[hand] == pytest.approx(sums / reach[others].sum() + position.spent[me])


def test_values_are_exact_where_few_boards_are_to_come():
    game = load_holdem("holdem.nolimit.2p")
    places = ("", "cc/", "cc/cc/", "cc/cc/cc/")
    assert [is_exact(game, game.replay(history)) for history in places] == [False, False, True, True]


def test_values_on_drawn_boards_are_those_on_all(monkeypatch):
    """Within their intervals, which who would win at a showdown makes narrower; nothing drawn, nothing uncertain."""
    agent, game = player("always-call").at(load_holdem("royal.limit.2p"))
    position, board = game.replay("cc/"), game.deck.cards("AsKhTd")
    monkeypatch.setattr("kilt.evaluate.decisions.MOST_BOARDS", 10_000)
    sure = decision_values(agent, game, position, board, ("r",))
    monkeypatch.setattr("kilt.evaluate.decisions.MOST_BOARDS", 1)
    found = decision_values(agent, game, position, board, ("r",))
    known = ~np.isnan(sure.values[0])
    assert not sure.margins.any()
    # who always calls is shown down: the control variate leaves no luck at all
    assert found.values[:, known] == pytest.approx(sure.values[:, known], abs=1e-9)
    assert found.margins[:, known].max() < 1e-9
    assert sure.losses[:, known].min(axis=0) == pytest.approx(0)
    monkeypatch.setattr("kilt.evaluate.decisions._less_luck", lambda worth, *_: worth)
    plain = decision_values(agent, game, position, board, ("r",))
    off = np.abs(plain.values - sure.values)[:, known] / plain.margins[:, known]
    assert (off < 1).mean() > 0.8
    monkeypatch.setattr("kilt.evaluate.decisions.MOST_DECISIONS", 3)
    with pytest.raises(PlayError, match="more than 3 decisions"):
        decision_values(agent, game, position, board)


def test_the_agent_that_ships_plays_with_nothing_built():
    """Its river buckets go by strength: the better hand is never in a lower one."""
    agent, game = player("house").at()
    assert game.name == "holdem.nolimit.2p.50bb"
    board = game.deck.cards("Ks7h2d4c9s")
    row, strength = agent.blueprint.hand_buckets(0, 3, board), strengths_on_boards(np.array([board]))[0]
    order = np.argsort(strength[strength >= 0], kind="stable")
    assert (np.diff(row[strength >= 0][order]) >= 0).all()
    view = strategy_view(agent, game, "cc/cc/cc/", board)
    assert view["ev_known"] and abs(sum(action["share"] for action in view["actions"]) - 1) < 1e-5
    names = ("5h5s", "5d5s", "5c5s", "5d5h", "5c5h", "5c5d")
    fives = [row[game.deck.hole_index(game.deck.cards(name))] for name in names]
    cell = next(cell for cell in view["cells"] if cell["name"] == "55")
    assert cell["buckets"] == [[bucket, fives.count(bucket)] for bucket in sorted(set(fives))]


def test_buckets_of_a_board():
    agent, game = player(str(STORED)).at()
    view = abstraction_view(agent, game, ())
    first = agent.blueprint.cards.each[0].rounds[0].look_up_board(())
    assert [hand["bucket"] for hand in view["hands"]] == first.tolist()
    board = game.deck.cards("Ks")
    later = abstraction_view(agent, game, board)
    assert len(later["hands"]) == len(first) - 1
    assert all(0 <= hand["bucket"] < later["buckets"] for hand in later["hands"])

    inside = bucket_view(agent, game, board, later["hands"][0]["bucket"])
    assert sum(inside["strength"]) == pytest.approx(1, abs=1e-3) and 0 < inside["share"] <= 1
    apart = [other["distance"] for other in inside["nearest"]]
    assert apart == sorted(apart) and inside["bucket"] not in {other["bucket"] for other in inside["nearest"]}
    assert classes_view(agent, game, board) == {"classes": [], "here": None}
    with pytest.raises(PlayError, match="no bucket 99"):
        bucket_view(agent, game, board, 99)


def test_classes_of_boards_are_described(monkeypatch):
    """Distances of classes are means over their boards."""
    agent, game = player(str(STORED)).at()
    rounds = agent.blueprint.cards.each[0].rounds
    labels = np.arange(len(rounds[1].holdings.boards)) % 2
    far = np.abs(np.subtract.outer(np.arange(len(labels)), np.arange(len(labels)))).astype(np.float32)
    classes = BoardClasses(rounds[1].holdings, labels.astype(np.int32), 2, far)
    coded = (rounds[0], rounds[1]._replace(coded=CodeBuckets(classes, np.zeros((2, 1), dtype=np.int32))))
    monkeypatch.setattr(
        "kilt.web.card_views.card_abstraction_of", lambda *_: replace(agent.blueprint.cards.each[0], rounds=coded)
    )
    found = classes_view(agent, game, game.deck.cards("Ks"))
    assert found["here"] in (0, 1) and sum(one["share"] for one in found["classes"]) == pytest.approx(1)
    weights = classes.holdings.deal_counts
    mean = np.average(
        np.average(far[labels == 0][:, labels == 1], axis=1, weights=weights[labels == 1]), weights=weights[labels == 0]
    )
    assert found["classes"][0]["nearest"] == [{"number": 1, "distance": pytest.approx(mean, abs=1e-4)}]
    assert all(one["boards"] and one["words"] for one in found["classes"])


# The server


def test_what_is_there(client, folder):
    found = client.get("/api/players").json()
    assert found["players"][:4] == ["runs/leduc", "house", LEDUC, KUHN]
    for name in found["bucketed"]:
        assert client.get("/api/abstraction", params={"player": name}).status_code == 200
    assert found["bucketed"][-1] == "house" and not {*found["bucketed"]} & {LEDUC, KUHN, "always-call"}
    runs = {run["name"]: run for run in client.get("/api/runs").json()["runs"]}
    assert runs["runs/leduc"]["solved"] and runs["runs/leduc"]["last"]["iterations"] == 100
    assert "damaged" in runs["runs/broken"]["error"]
    assert runs["runs/leduc"]["elsewhere"] in (False, None)
    assert (
        runs["runs/river"]["last"]["exploitability"] == open_spot(folder / "river")[1].exploitability
    )  # its own chips
    steps = client.get("/api/steps", params={"run": "runs/leduc"}).json()["steps"]
    assert steps[-1]["iterations"] == 100
    assert steps[-1]["exploitability"] < steps[0]["exploitability"]


def test_a_spot_is_walked_with_what_hands_are_worth(client):
    assert client.get("/api/players").json()["spots"] == ["runs/river"]
    view = client.get("/api/strategy", params={"player": "runs/river", "history": "x b10"}).json()
    assert [step["words"] for step in view["path"]] == ["check", "bet 10"]
    assert [action["after"] for action in view["actions"]] == ["x b10 f", "x b10 c", "x b10 a"]
    cells = {cell["name"]: cell for cell in view["cells"]}
    assert cells.keys() == {"AA", "KQs"}
    fold, call, raised = cells["AA"]["values"]
    assert (
        fold == pytest.approx(0, abs=1e-9) and max(call, raised) > 0
    )  # queens are in the range that bets, or nobody is
    hands = client.get("/api/values", params={"player": "runs/river", "history": "x b10"}).json()["hands"]
    assert sum(hand["weight"] for hand in hands) == pytest.approx(1, abs=1e-6)
    assert {hand["cell"] for hand in hands} == {"AA", "KQs"}
    assert client.get("/api/strategy", params={"player": "runs/river", "history": "x x"}).json()["state"] == "over"


def test_the_pot_is_shown_at_chance_nodes_and_at_the_end(tmp_path):
    spot = Spot("Ks7h2d4c", pot=10, stacks=20, ranges=("AA,KQs", "QQ,AKo"), bets="1x").solve(iterations=4)
    found = [spot_view(spot, line) for line in ("x x", "b10 c", "b10 f", "b10 c / 9s x x")]
    assert [(view["state"], view["pot"]) for view in found] == [
        ("cards", 10),
        ("cards", 30),
        ("over", 20),
        ("over", 30),
    ]


def test_expected_values_of_spots_are_not_rounded_by_the_server(client, folder):
    node = open_spot(folder / "river")[1].at("x b10")
    hands = client.get("/api/values", params={"player": "runs/river", "history": "x b10"}).json()["hands"]
    values = dict(zip(node.hands, node.action_ev.tolist(), strict=True))
    assert {hand["hand"]: hand["values"] for hand in hands} == {hand["hand"]: values[hand["hand"]] for hand in hands}
    view = client.get("/api/strategy", params={"player": "runs/river", "history": "x b10"}).json()
    assert view["worth"] == list(node.mean(node.ev))


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/api/strategy?player=runs/river&history=b3", "line"),
        ("/api/values?player=house", "many boards may follow"),
        ("/api/values?player=house&cell=XYs", "no hand"),
        ("/api/tables/nobody/judged", "not open any more"),
        ("/api/strategy?player=../../etc", "there is no player"),
        ("/api/strategy?player=runs/leduc&history=rrrr", "is impossible"),
        ("/api/strategy?player=runs/leduc&history=cc/&board=Ks,Ks", "twice"),
        ("/api/strategy?player=runs/leduc&history=cc/", "choose the others"),
        ("/api/strategy?player=runs/leduc&history=cc/&board=KsQs", "use fewer"),
        ("/api/strategy?player=random", "too many to list|raises to any"),
        ("/api/abstraction?player=runs/leduc", "no buckets"),
        ("/api/steps?run=/etc", "there is no run"),
        ("/api/tables/nobody", "not open any more"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(client, path, words):
    answer = client.get(path)
    assert answer.status_code == 422
    assert re.search(words, answer.json()["error"])
    assert "\n" not in answer.json()["error"]


def test_runs_are_not_controlled_unless_that_was_asked_for(client, folder):
    for path in ("/api/stop?run=runs/leduc", "/api/resume?run=runs/leduc"):
        assert "`control`" in client.post(path).json()["error"]
    assert "`control`" in client.post("/api/runs", json={"name": "x", "config": ""}).json()["error"]
    assert {place.name for place in folder.iterdir()} == {"leduc", "river", "broken", "notes"}


def test_files_outside_the_page_are_not_served(client):
    assert client.get("/").status_code == 200
    for path in ("/../server.py", "/%2e%2e/server.py", "/..%2fserver.py", "/static/../../../pyproject.toml"):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"host": "evil.example"}, "does not answer to"),
        ({"host": "evil.example:8765"}, "does not answer to"),
        ({"origin": "http://evil.example"}, "other pages"),
        ({"origin": "null"}, "other pages"),
        ({"sec-fetch-site": "cross-site"}, "other pages"),
        ({"sec-fetch-site": "same-site"}, "other pages"),
        ({"content-length": str(LONGEST + 1)}, "too long"),
        ({"content-length": "x"}, "declare its length"),
    ],
)
def test_strangers_are_refused(client, headers, words):
    answer = client.post("/api/tables", content=b"{}", headers=headers)
    assert answer.status_code == 403
    assert words in answer.json()["error"]


def test_an_origin_includes_its_scheme_and_port(folder):
    """Another server on the same host is another origin: a page that it serves may not ask."""
    client = TestClient(create_app(State(Library([folder]))), base_url="http://localhost:8765")
    secure = TestClient(create_app(State(Library([folder]))), base_url="https://localhost:8765")
    others = ("http://localhost:9999", "http://localhost", "http://localhost:87650", "localhost:8765")
    for asking, own, foreign in (
        (client, ("http://localhost:8765", "HTTP://LOCALHOST:8765"), (*others, "https://localhost:8765")),
        (secure, ("https://localhost:8765",), (*others, "http://localhost:8765")),
    ):
        for path in ("/api/players", "/"):
            assert [asking.get(path, headers={"origin": origin}).status_code for origin in own] == [200] * len(own)
            for origin in foreign:
                assert asking.get(path, headers={"origin": origin}).status_code == 403, origin


def test_computations_are_not_started_by_other_sites(client):
    """A link from another site opens the page, and an image or script there computes nothing."""
    values = "/api/values?player=leduc (solved here)"
    for site, status in (("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403)):
        assert client.get(values, headers={"sec-fetch-site": site}).status_code == status
    assert client.get(values).status_code == 200  # programs that are no browsers do not send it
    assert client.get("/", headers={"sec-fetch-site": "cross-site"}).status_code == 200


def test_host_names_have_no_case(folder):
    app = create_app(State(Library([folder])), Guard(frozenset({"my-box"})))
    for name in ("my-box", "My-Box", "MY-BOX:8765"):
        assert TestClient(app, base_url=f"http://{name}").get("/", headers={"host": name}).status_code == 200


def test_a_token_is_needed_beyond_this_machine(folder):
    app = create_app(State(Library([folder])), Guard(frozenset({"far"}), "secret"))
    client = TestClient(app, base_url="http://far:80")
    assert client.get("/api/players").status_code == 403
    assert client.get("/?token=wrong").status_code == 403
    assert client.get("/?token=secret").status_code == 200
    assert client.get("/api/players").status_code == 200  # the cookie
    numbers = TestClient(app, base_url="http://192.0.2.7:8765")  # an address that no DNS makes point here
    assert [numbers.get(path).status_code for path in ("/", "/?token=wrong", "/?token=secret")] == [403, 403, 200]
    assert TestClient(app, base_url="http://evil.example").get("/?token=secret").status_code == 403


def test_the_page_asks_nothing_of_others(client):
    """All that it needs comes from this server, and the browser is told so."""
    assert "default-src 'none'" in client.get("/").headers["content-security-policy"]
    static = Path(create_app.__code__.co_filename).parent / "static"
    for file in static.iterdir():
        addresses = set(re.findall(r"https?://[^\s\"')]+", file.read_text(encoding="utf-8")))
        assert addresses <= {"http://www.w3.org/2000/svg"}


# Tables


def play_out(client, table, limit=40):
    """Call until the hand is over."""
    for _ in range(limit):
        if not table["turn"]:
            return table
        table = client.post(f"/api/tables/{table['table']}", json={"text": "c"}).json()
    raise AssertionError(table)


def test_a_duplicate_match_to_its_end(client):
    table = client.post("/api/tables", json={"player": "runs/leduc", "duplicate": 4}).json()
    seats = []
    for hand in range(4):
        seats.append(table["events"][0]["seat"])
        table = play_out(client, table)
        assert table["played"] == hand + 1
        assert table["events"][-1]["kind"] == "end"
        if hand < 3:
            table = client.post(f"/api/tables/{table['table']}", json={"text": "deal"}).json()
    assert table["over"]
    assert seats == ["first to act", "second to act"] * 2
    assert table["total"] == sum(table["curve"])
    judged = client.get(f"/api/tables/{table['table']}/judged").json()
    assert abs(judged["deserved"]["mean"]) < 20_000 and judged["deserved"]["margin"] >= 0
    mine = [event["words"] for event in table["events"] if event["kind"] == "acted" and event["mine"]]
    assert [decision["taken"] for decision in judged["decisions"]] == mine
    acted = [(event["mine"], event["words"]) for event in table["events"] if event["kind"] == "acted"]
    assert [(move["mine"], move["words"]) for move in table["last"]["moves"]] == acted
    assert judged["deserved"]["by"] == "AIVAT" and judged["won"]["by"] == "money"
    assert judged["won"]["mean"] == pytest.approx(1000 * table["total"] / 4)
    for place, decision in enumerate(judged["decisions"]):
        assert sum(option["share"] for option in decision["options"]) == pytest.approx(1, abs=1e-3)
        assert {option["value"] for option in decision["options"]} == {None}  # told by and by
        asked = {"hand": judged["hand"], "decision": place}
        worth = client.get(f"/api/tables/{table['table']}/worth", params=asked).json()
        assert worth["taken"] == decision["taken"]
        assert min(option["loss"] for option in worth["options"]) == 0
        assert {option["margin"] for option in worth["options"]} == {0}
    late = client.get(f"/api/tables/{table['table']}/worth", params={"hand": 3, "decision": 0})
    assert late.status_code == 200 and late.json() == {}
    assert "closed" in client.post(f"/api/tables/{table['table']}", json={"text": "deal"}).json()["error"]
    again = client.get(f"/api/tables/{table['table']}").json()
    assert again["events"] == table["events"]


def test_the_loss_of_a_decision_is_the_highest_value_less_its_own():
    """On the river of no-limit hold'em, with bets that the agent has and one that it has not."""
    agent, game = player("house").at()
    cards = Cards((game.deck.cards("AhKd"), game.deck.cards("7c7d")), game.deck.cards("Ks9h4d2c8s"))
    river = game.replay("r300c/r600c/cc/")
    hand = Hand(0, river.after("r1100"), cards, (0.0, 0.0), ("you", "house"))
    found = review_view(review_decision(agent, game, hand, river, "r1100"))
    values = [option["value"] for option in found["options"]]
    assert len(values) > 3 and len(set(values)) == len(values)
    assert [option["loss"] for option in found["options"]] == pytest.approx([max(values) - value for value in values])
    assert any(value != round(value, 3) for value in values)  # the page rounds, and once


def test_what_is_typed_wrongly_is_told_and_advice_is_given(client):
    table = client.post("/api/tables", json={"player": "always-call"}).json()
    name = table["table"]
    assert [choice["key"] for choice in table["turn"]["choices"]][-1] == "r"
    assert [choice["key"] for choice in table["turn"]["sizes"]] == ["50%", "75%", "1x", "2x", "a"]
    table = client.post(f"/api/tables/{name}", json={"text": "[bold]dance"}).json()
    assert "is no action here" in table["events"][-1]["words"]
    table = client.post(f"/api/tables/{name}", json={"text": "?"}).json()
    assert table["events"][-1]["kind"] == "advice"
    table = play_out(client, client.post(f"/api/tables/{name}", json={"text": "1x"}).json())
    phhs = client.get(f"/api/tables/{name}/hands.phhs").text
    assert "variant" in phhs and "actions" in phhs
    table = client.post(f"/api/tables/{name}", json={"text": "fold"}).json()
    assert "deal the next one" in table["events"][-1]["words"]


def test_a_button_that_is_pressed_twice_counts_once(client):
    table = client.post("/api/tables", json={"player": "always-call"}).json()
    press = {"text": "c", "asked": table["asked"]}
    once, twice = (client.post(f"/api/tables/{table['table']}", json=press).json() for _ in range(2))
    assert twice == once
    assert once["asked"] == table["asked"] + 1


def test_tables_that_are_too_many_or_idle_are_given_up(monkeypatch):
    agent, game = player("always-call").at(load_holdem("leduc"))
    monkeypatch.setattr("kilt.web.tables.MOST_TABLES", 2)
    tables = WebTables()
    names = [tables.add(WebTable.open("x", agent, game, seed)) for seed in range(4)]
    with pytest.raises(PlayError, match="not open any more"):
        tables[names[0]]
    assert tables[names[3]].state()["played"] == 0
    tables.close()


def test_many_clients_at_once(client):
    """A hundred, each of whom plays a hand."""

    def plays(_):
        table = client.post("/api/tables", json={"player": "runs/leduc"}).json()
        return play_out(client, client.get(f"/api/tables/{table['table']}").json())["played"]

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(plays, range(100))) == [1] * 100


def test_a_client_that_hangs_up_costs_nothing(address):
    """In the middle of a stream others are answered."""
    host, port = address.removeprefix("http://").strip("/").split(":")
    for _ in range(30):
        with socket.create_connection((host, int(port))) as line:
            line.sendall(f"GET /api/watch?run=runs/leduc HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            assert line.recv(15) == b"HTTP/1.1 200 OK"
    with urlopen(f"{address}api/runs") as answer:
        assert {"runs/leduc", "runs/broken"} < {run["name"] for run in json.load(answer)["runs"]}


def get(app, path, query, more=None):
    """Ask an application without a network. `more` is awaited before the client disconnects. Returns the status."""
    events, status = [{"type": "http.request", "body": b"", "more_body": False}], []

    async def receive():
        if events:
            return events.pop()
        await (more() if more else asyncio.Event().wait())
        return {"type": "http.disconnect"}

    async def send(message):
        status.append(message.get("status"))

    scope = {"type": "http", "method": "GET", "path": path, "query_string": query, "http_version": "1.1"}
    asyncio.run(app(scope | {"headers": [(b"host", b"localhost")]}, receive, send))
    return status[0]


def test_nothing_is_computed_for_a_client_that_has_left(folder, monkeypatch):
    """Neither begun, nor continued: the client leaves before the first step, or in the middle of the walk."""
    app, begun, walked, gone = create_app(State(Library([folder]))), [], [], Event()
    plain = server.values_view
    monkeypatch.setattr("kilt.web.server.values_view", lambda *asked: begun.append(asked) or plain(*asked))
    query = b"player=always-call&history=cc/&board=AsKhTd&cell=QQ"
    assert get(app, "/api/values", query) == 200
    assert len(begun) == 1

    async def at_once():
        pass

    get(app, "/api/values", query, at_once)
    assert len(begun) == 1

    def step():
        """Wait in the middle of the walk until the server knows that its client has left."""
        walked.append(len(begun))
        if len(begun) == 2:
            gone.wait(60)
        cancellation.raise_if_cancelled()

    async def in_the_middle():
        while not walked:
            await asyncio.sleep(0.01)
        asyncio.get_running_loop().call_later(0.1, gone.set)

    monkeypatch.setattr("kilt.evaluate.decisions.raise_if_cancelled", step)
    get(app, "/api/values", query, in_the_middle)
    assert len(begun) == 2 and len(walked) == 1  # of many steps


def test_a_computation_has_a_bound_on_its_time(client, monkeypatch):
    monkeypatch.setattr("kilt.web.server.LONGEST_WORK", -1.0)
    answer = client.get("/api/values", params={"player": "always-call", "history": "cc/", "cell": "QQ"})
    assert answer.status_code == 422 and "takes longer than" in answer.json()["error"]
    monkeypatch.undo()
    assert client.get("/api/values", params={"player": LEDUC}).status_code == 200  # none is stuck


# Connections


def hundreds(address, number, first=b""):
    """Open connections that send nothing, or half a request."""
    host, port = urlsplit(address).hostname, urlsplit(address).port
    opened = []
    for _ in range(number):
        line = socket.create_connection((host, port), timeout=60)
        with suppress(OSError):  # it was closed to make room already
            line.sendall(first)
        opened.append(line)
    return opened


@pytest.mark.parametrize("first", [b"", b"GET /api/players HTTP/1.1\r\nHost: local"])
def test_idle_and_half_open_connections_keep_nobody_out(first):
    """As many as a process may open files, at a limit of 8 for an address: they make room for others."""
    with serving("--connections", "8", limit=80) as (server, address):
        opened = hundreds(address, 200, first)
        try:
            for _ in range(5):
                assert asked(address, "api/players")["small"]
        finally:
            for line in opened:
                line.close()
        server.terminate()
        said = server.stderr.read()
        assert "closed to make room" in said
        assert len(said) < 4_000 and "Traceback" not in said


@pytest.mark.parametrize(
    "first", [b"", b"GET / HTTP/1.1\r\nHost: ", b"POST /api/plan HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"]
)
def test_connections_without_a_whole_request_are_closed(first):
    with serving(before="import kilt.web.connections as c; c.WAITING = 0.5") as (server, address):
        host = urlsplit(address).netloc.encode()
        (line,) = hundreds(address, 1, first.replace(b"HTTP/1.1\r\nC", b"HTTP/1.1\r\nHost: " + host + b"\r\nC"))
        with line, line.makefile("rb") as answers:
            said = answers.read()  # ends when the server closes the connection
        assert b" 200 " not in said
        assert asked(address, "api/players")["small"]
        server.kill()


def test_a_client_that_reads_nothing_is_hung_up_on():
    """It asks for more than buffers hold; the server closes the connection while it sends the answers."""
    with serving(before="import kilt.web.connections as c; c.SENDING = 0.5") as (server, address):
        (line,) = hundreds(address, 1)
        with line:
            ask = f"GET /play.js HTTP/1.1\r\nHost: {urlsplit(address).netloc}\r\n\r\n".encode()
            line.sendall(2_000 * ask)  # for 20 MB
            assert line.recv(15) == b"HTTP/1.1 200 OK"
            here = line.getsockname()
            until(lambda: here not in {each.raddr for each in psutil.Process(server.pid).net_connections("tcp4")})
        assert asked(address, "api/players")["small"]
        server.kill()


def test_the_descriptors_of_a_process_may_run_out():
    """A connection that cannot be opened is refused; nothing is printed again and again, and the next one is served."""
    code = """
import asyncio, os, resource, socket
from kilt.web.connections import Listener, limit_logs
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
limit_logs()
listener = Listener(socket.AF_INET, 8)
listener.bind(("127.0.0.1", 0))
listener.listen()
listener.setblocking(False)

async def serve():
    def answered(reader, writer):
        writer.write(b"here")
        writer.close()
    server = await asyncio.start_server(answered, sock=listener)
    clients = [socket.socket() for _ in range(20)]
    for client in clients:
        client.setblocking(False)
    files = []
    try:
        while True:
            files.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    loop, heard = asyncio.get_running_loop(), []
    for client in clients:
        await loop.sock_connect(client, listener.getsockname())
    for client in clients:
        try:
            heard.append(await loop.sock_recv(client, 4))
        except ConnectionResetError:
            heard.append(b"")
    for file in files:
        os.close(file)
    with socket.socket() as client:
        client.setblocking(False)
        await loop.sock_connect(client, listener.getsockname())
        print(heard == [b""] * 20, await loop.sock_recv(client, 4))

asyncio.run(asyncio.wait_for(serve(), 120))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "True b'here'\n", result.stderr
    assert "too many open files" in result.stderr
    assert "Traceback" not in result.stderr and len(result.stderr) < 2_000


def test_logs_are_limited(caplog):
    log = logging.Logger("some")
    log.addFilter(limit := MessageLimit())
    log.addHandler(caplog.handler)
    for number in range(10_000):
        log.warning("message %d", number)
    assert [record.getMessage() for record in caplog.records] == [f"message {n}" for n in range(LOGGED)]
    limit._began -= PERIOD
    log.warning("and %s", "another")
    assert caplog.records[-1].getMessage() == f"and another ({10_000 - LOGGED:,} earlier messages were suppressed)"


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate that signs itself, and its key."""
    if not shutil.which("openssl"):
        pytest.skip("there is no openssl: install it for the tests of TLS")
    place = tmp_path_factory.mktemp("tls")
    files = place / "cert.pem", place / "key.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names]
    subprocess.run([*command, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


@pytest.fixture(scope="module")
def secure(folder, certificate):
    """The address of a server with TLS."""
    with serving(folder, "--tls", *certificate) as (server, address):
        yield address
        server.kill()


def test_tls(secure, certificate):
    """The certificate is checked as a browser would; plain HTTP gets no answer."""
    assert secure.startswith("https://127.0.0.1:")
    trusting = ssl.create_default_context(cafile=certificate[0])
    own, port = secure.rstrip("/"), urlsplit(secure).port
    for origin, status in ((own, 200), (own.replace("https", "http"), 403), (f"https://127.0.0.1:{port + 1}", 403)):
        request = Request(f"{secure}api/players", headers={"origin": origin})
        try:
            with urlopen(request, context=trusting) as answer:
                found = answer.status
        except HTTPError as error:
            found = error.code
        assert found == status
    with pytest.raises(OSError):
        urlopen(secure.replace("https", "http"), timeout=60)
    with pytest.raises(URLError, match="CERTIFICATE_VERIFY_FAILED"):
        urlopen(secure, context=ssl.create_default_context())


def test_a_token_in_a_cookie_is_sent_by_tls_alone(folder):
    app = create_app(State(Library([folder])), Guard(frozenset({"far"}), "secret"))
    for scheme, secure in (("https", True), ("http", False)):
        answer = TestClient(app, base_url=f"{scheme}://far").get("/?token=secret")
        assert ("secure" in answer.headers["set-cookie"].lower()) is secure


def test_certificates_that_cannot_be_used(certificate, tmp_path):
    cert, key = certificate
    empty, locked = tmp_path / "empty.pem", tmp_path / "locked.pem"
    empty.touch()
    change = ["openssl", "rsa", "-in", key, "-aes256", "-passout", "pass:secret", "-out", locked]
    subprocess.run(change, check=True, capture_output=True)
    other = tmp_path / "other.pem"
    subprocess.run(["openssl", "genrsa", "-out", other, "2048"], check=True, capture_output=True)
    for pair, words in (
        ((tmp_path / "none.pem", key), "no such file"),
        ((cert, tmp_path), "is a directory"),
        ((empty, key), "PEM format"),
        ((cert, empty), "PEM format"),
        ((cert, other), "mismatch"),
        ((cert, locked), "without a passphrase"),
    ):
        with pytest.raises(PlayError, match=words) as refusal:
            serve([], "127.0.0.1", 0, tls=pair, browser=False)
        assert "\n" not in str(refusal.value)


# Control


def test_a_run_is_started_stopped_and_resumed(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    runner = Runner(folder)
    client = TestClient(create_app(State(Library([folder]), runner)), base_url="http://localhost")
    config = 'game = "leduc"\ncards = "lossless"\n[solver]\nalgorithm = "cfr+"\niterations = {}\n'
    asked = {"name": "mine", "config": config.format(1000000)}
    assert client.post("/api/plan", json=asked).json()["fits"]
    try:
        assert client.post("/api/runs", json=asked).json() == {"name": "runs/mine"}
        assert "already" in client.post("/api/runs", json=asked).json()["error"]
        until(lambda: len(client.get("/api/steps", params={"run": "runs/mine"}).json().get("steps", [])) > 1)
        assert client.get("/api/runs").json()["runs"][0]["working"]
        assert client.post("/api/stop", params={"run": "runs/mine"}).status_code == 200
        until(lambda: not client.get("/api/runs").json()["runs"][0]["working"])
        stopped = client.get("/api/steps", params={"run": "runs/mine"}).json()["steps"]
        assert client.post("/api/resume", params={"run": "runs/mine"}).status_code == 200
        until(lambda: len(client.get("/api/steps", params={"run": "runs/mine"}).json()["steps"]) > len(stopped))
    finally:
        runner.close()
    for name, text, words in (
        ("../up", config.format(1), "the run is called"),
        ("other", 'game = "/etc/passwd"\ncards = "lossless"', "ready-made"),
        ("other", 'game = "leduc"\ncards = "/etc"', "ready-made|plans of cards"),
        ("other", "game = ", ""),
    ):
        answer = client.post("/api/runs", json={"name": name, "config": text})
        assert answer.status_code == 422
        assert re.search(words, json.dumps(answer.json()))
    assert not (tmp_path / "up").exists()


SHORT_RUN = 'game = "leduc"\ncards = "lossless"\n[solver]\nalgorithm = "cfr+"\niterations = 1\n'
LONG_RUN = SHORT_RUN.replace("iterations = 1", "minutes = 10")  # longer than the tests of it; they stop it


@pytest.fixture
def controlled(tmp_path):
    """A client of a server that controls the runs of a new folder, and this folder."""
    folder = tmp_path / "runs"
    runner = Runner(folder)
    yield TestClient(create_app(State(Library([folder]), runner)), base_url="http://localhost"), folder
    runner.close()


def test_a_refused_start_says_all_that_is_wrong_and_leaves_nothing(controlled):
    client, folder = controlled
    before = set(folder.iterdir())
    wrong = SHORT_RUN.replace("cfr+", "magic")
    for name, config, words in (
        ("my run", SHORT_RUN, ["the run is called 'my run'"]),
        ("my run", wrong, ["the run is called 'my run'", "magic"]),
        ("mine", wrong, ["magic"]),
        ("mine", "game = ", ["the configuration is not TOML"]),
        ("mine\n", SHORT_RUN, [r"'mine\n'"]),
        ("", SHORT_RUN, ["the run is called ''"]),
        ("x" * 101, SHORT_RUN, ["up to 100 letters"]),
    ):
        answer = client.post("/api/runs", json={"name": name, "config": config})
        assert answer.status_code == 422
        said = answer.json()["error"]
        assert all(word in said for word in words) and "\n" not in said and "pattern" not in said
        assert set(folder.iterdir()) == before
    assert "magic" in client.post("/api/plan", json={"name": "my run", "config": wrong}).json()["error"]


def test_the_run_form_opens_no_files(controlled, monkeypatch):
    """Each of them would be opened by `kilt solve`."""
    client, folder = controlled
    monkeypatch.chdir(folder.parent)
    plan = '[[rounds]]\nsteps = [{feature = "canonical"}]\n' * 2
    for place in (folder, folder.parent):
        place.joinpath("x.toml").write_text(plan, encoding="utf-8")
    folder.joinpath("beside").mkdir()
    folder.parent.joinpath("here").mkdir()
    model = '[counter]\nmodel = "here"\n'
    for config, key in (
        ('game = "leduc"\ncards = "x.toml"', "`cards`"),
        ('game = "leduc"\ncards = ["lossless", "x.toml"]', "`cards`"),
        ('game = "leduc"\ncards = "missing.toml"', "`cards`"),
        ('game = "leduc"\ncards = "beside"', "`cards`"),
        ('game = "leduc"\ncards = "here"', "`cards`"),
        ('game = "leduc"\ncards = ".."', "`cards`"),
        ('game = "leduc"\ncards = "lossless\\u0000"', "`cards`"),
        ('game = "x.toml"\ncards = "lossless"', "`game`"),
        (f'game = "leduc"\ncards = "lossless"\n{model}', "`model`"),
    ):
        for path in ("/api/plan", "/api/runs"):
            answer = client.post(path, json={"name": "mine", "config": config})
            assert answer.status_code == 422
            assert answer.json()["error"].startswith(f"{key}"), config
            assert "opens no files" in answer.json()["error"]


@contextmanager
def serving(*options, cwd=None, before="", limit=0):
    """A server in a process of its own, and its address. `before` is Python that runs first."""
    files = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}));" if limit else ""
    code = f"{files}{before}\nimport kilt.cli; kilt.cli.main()"
    command = [sys.executable, "-c", code, "web", "--no-browser", "--port", "0", *map(str, options)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=cwd) as server:
        try:
            line = server.stderr.readline()
            found = re.search(r"https?://\S+", line)
            assert found, line + server.stderr.read()
            yield server, found[0]
        finally:
            if server.poll() is None:
                server.kill()


def asked(address, path, body=None):
    """What a server answers; a body makes it a POST."""
    request = Request(f"{address}{path}", None if body is None else json.dumps(body).encode())
    request.add_header("content-type", "application/json")
    with urlopen(request, timeout=120) as answer:
        return json.load(answer)


def started_run(address):
    """Start a run that would take ten minutes; returns once it is at work."""
    asked(address, "api/runs", {"name": "mine", "config": LONG_RUN})
    until(lambda: len(asked(address, "api/steps?run=runs/mine")["steps"]) > 1 if run_of(address) else False)


def run_of(address):
    return next(iter(asked(address, "api/runs")["runs"]), None)


def process_of(folder):
    (record,) = folder.glob(".*.job")
    return ProcessId(*json.loads(record.read_text(encoding="utf-8"))["process"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_server_that_is_told_to_end_stops_its_runs_with_a_checkpoint(tmp_path, number):
    folder = tmp_path / "runs"
    with serving("--control", cwd=tmp_path) as (server, address):
        started_run(address)
        process = process_of(folder)
        assert process.running and os.getsid(process.pid) != os.getsid(server.pid)  # Ctrl-C reaches the server alone
        server.send_signal(number)
        assert server.wait(timeout=300) == 0
        assert "stopping runs/mine" in (said := server.stderr.read()) and "Traceback" not in said
    assert not process.running
    run = RunFolder.open(folder / "mine")
    saved = artifact.read(run.path / "checkpoint", "checkpoint", check=True).figures["iterations"]
    assert saved == run.steps()[-1].iterations > 0  # of the moment at which it was stopped
    assert "stopped after" in folder.joinpath(".runs-mine.log").read_text(encoding="utf-8")
    assert not [*folder.glob(".*.job"), *folder.glob(".*.toml")]


def test_a_server_adopts_the_runs_of_one_that_was_killed(tmp_path):
    folder = tmp_path / "runs"
    with serving("--control", cwd=tmp_path) as (server, address):
        started_run(address)
        process = process_of(folder)
        server.kill()
        server.wait()
    assert process.running
    with serving(folder, cwd=tmp_path) as (other, address):  # without --control
        assert run_of(address)["working"] is False
        other.kill()
    with serving("--control", cwd=tmp_path) as (server, address):
        assert run_of(address)["working"] is True
        with pytest.raises(HTTPError):  # it is at work already
            asked(address, "api/resume?run=runs/mine", {})
        asked(address, "api/stop?run=runs/mine", {})
        until(lambda: not run_of(address)["working"])
        assert not process.running
        steps = asked(address, "api/steps?run=runs/mine")["steps"]
        asked(address, "api/resume?run=runs/mine", {})
        until(lambda: len(asked(address, "api/steps?run=runs/mine")["steps"]) > len(steps))
        process = process_of(folder)
        server.kill()
        server.wait()
    assert process.running
    with serving("--control", cwd=tmp_path) as (server, address):
        server.terminate()
        assert server.wait(timeout=300) == 0
    assert not process.running


def test_a_record_of_another_process_is_not_adopted(tmp_path):
    """The number of a process that has ended may belong to another one, which must not be stopped."""
    with subprocess.Popen(["sleep", "600"]) as bystander:
        here = ProcessId.with_number(bystander.pid)
        job = {"name": "runs/mine", "place": str(tmp_path / "mine"), "host": socket.gethostname(), "stopping": False}
        records = {
            "another": job | {"process": [here.pid, here.started - 3600]},
            "ended": job | {"process": [2**22 + 1, here.started]},
            "elsewhere": job | {"process": list(here), "host": "another.machine"},
        }
        for name, data in records.items():
            tmp_path.joinpath(f".{name}.job").write_text(json.dumps(data), encoding="utf-8")
            runner = Runner(tmp_path)
            with pytest.raises(RunError, match="nothing to stop"):
                runner.stop("runs/mine", tmp_path / "mine")
            runner.close()
            tmp_path.joinpath(f".{name}.job").unlink(missing_ok=True)
        tmp_path.joinpath(".broken.job").write_text("[", encoding="utf-8")
        Runner(tmp_path).close()
        assert bystander.poll() is None
        bystander.kill()


def test_one_server_controls_the_runs_of_a_folder(tmp_path):
    runner = Runner(tmp_path)
    with pytest.raises(RunError, match="another page controls the runs"):
        Runner(tmp_path)
    runner.close()
    Runner(tmp_path).close()


def test_a_run_that_is_stopping_is_not_stopped_twice(tmp_path):
    """A second signal would end it without a checkpoint."""
    runner = Runner(tmp_path)
    try:
        runner.start("mine", LONG_RUN)
        with pytest.raises(RunError, match="already exists"):
            runner.start("mine", LONG_RUN)
        runner.stop(f"{tmp_path.name}/mine", None)  # before its folder is there, too
        job = runner.job(tmp_path / "mine")
        assert job is None or job.stopping
        if job:
            with pytest.raises(RunError, match=r"is already stopping|nothing to stop"):
                runner.stop(job.name, job.place)
    finally:
        runner.close()
    assert not list(tmp_path.glob(".*.job"))


def until(holds, seconds=300.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("folders", "host", "error"),
    [
        (["/nowhere/at/all"], "127.0.0.1", ArtifactError),
        ([], "", PlayError),
        ([], "256.0.0.1", PlayError),
        ([], "a" * 70, PlayError),
        ([], "ü..x", PlayError),
    ],
)
def test_servers_that_cannot_be_started(folders, host, error):
    with pytest.raises(error) as refusal:
        serve([Path(folder) for folder in folders], host, 0, browser=False)
    assert "\n" not in str(refusal.value)


# A real browser


@pytest.fixture(scope="module")
def address(folder):
    command = [sys.executable, "-m", "kilt", "web", str(folder), "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        yield re.search(r"http://\S+", server.stderr.readline())[0]
        server.send_signal(2)


@pytest.fixture(scope="module")
def chromium():
    if not BROWSER:
        pytest.skip("there is no Chromium: install it (apt-get install chromium) for the tests of the page")
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


SIZES = {"phone": (390, 800), "desk": (1280, 900), "4K": (3840, 2160)}


@pytest.fixture(params=["phone", "desk"])
def page(request, chromium):
    """A page of its own, in which nothing may go wrong."""
    page = chromium.new_page(viewport=dict(zip(("width", "height"), SIZES[request.param], strict=True)))
    wrong = []
    page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    assert not wrong
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0  # nothing sticks out
    page.close()


def test_hands_in_both_seats_and_a_reload(page, address):
    page.goto(f"{address}#/play?player=runs/leduc")
    seats = []
    for number in range(5):  # ten at both sizes
        page.wait_for_selector("[data-key=c]")
        seats.append(re.search(r"you: (\w+)", page.inner_text(".felt"))[1])
        if number == 0:
            before = page.inner_text("#mine")
            page.reload()
            page.wait_for_selector("[data-key=c]")
            assert page.inner_text("#mine") == before  # the same hand
        while page.locator("[data-key=c]").count():
            asked = page.inner_text(".history")
            page.keyboard.press("c")
            expect(page.locator(".history")).not_to_have_text(asked, use_inner_text=True)
        assert re.search("you win|you lose|split pot", page.inner_text(".felt"))
        if number in (0, 4):
            page.wait_for_selector("#decisions table")
        page.keyboard.press("n")
    assert seats == ["first", "second", "first", "second", "first"]
    page.wait_for_selector("[data-key=c]")
    assert "5 hands" in page.inner_text("#score")


def test_a_tree_is_walked_and_the_way_back_leads_back(page, address):
    page.goto(f"{address}#/strategy?player=runs/leduc")
    page.wait_for_selector("tr[data-hand]")
    assert page.locator("tr[data-hand]").count() == 6
    page.click("[data-label=r]")
    page.wait_for_url(re.compile("history=r"))
    page.wait_for_selector("[data-label=f]")
    page.click("[data-label=c]")
    page.wait_for_selector(".deck")
    page.focus(".deck button[aria-label='Q of spades']")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("board=Ks"))
    expect(page.locator("tr[data-hand]")).to_have_count(5)
    page.go_back()
    page.wait_for_selector(".deck")
    page.go_forward()
    expect(page.locator("tr[data-hand]")).to_have_count(5)
    page.select_option("select >> nth=1", LEDUC)
    expect(page.locator("section[data-player]")).to_have_count(2)
    assert "with=" in page.url


@pytest.mark.parametrize("page", ["desk"], indirect=True)
def test_the_verdict_is_the_difference_of_the_values_shown(page, address):
    """To the last digit, for the decisions of fifteen hands: the highest EV less that of the person's own action."""
    page.goto(f"{address}#/play?player=runs/leduc")
    different = 0
    for number in range(15):
        for key in "rcrcrcrcrc" if number % 3 else "cccccccccc":
            page.wait_for_selector("[data-key=c], #deal")
            if page.locator("#deal").count():
                break
            key = key if page.locator(f"[data-key={key}]").count() else "c"
            asked = page.inner_text(".history")
            page.keyboard.press(key)
            expect(page.locator(".history")).not_to_have_text(asked, use_inner_text=True)
        expect(page.locator("#decisions .verdict").first).to_be_visible()
        expect(page.locator("#decisions .verdict").filter(has_text="…")).to_have_count(0)
        rows = page.locator("#decisions tr").evaluate_all(
            "all => all.map(row => [...row.cells].map(one => one.innerText))"
        )
        for mine, options, verdict in rows:
            values = dict(re.findall(r"([a-z]+(?: to)?(?: \d+)?) \d[\d.]*% \(EV (-?\d+\.\d\d)\)", options))
            values = {words: Decimal(value) for words, value in values.items()}
            less = max(values.values()) - values[mine.removeprefix("you ")]
            best = re.fullmatch(r"(\d+\.\d\d) less than (.+)", verdict)
            assert (
                verdict == "highest EV"
                if less == 0
                else (Decimal(best[1]), values[best[2]])
                == (
                    less,
                    max(values.values()),
                )
            )
            different += less > 0
        assert "if both players then follow the agent's strategy" in page.inner_text("#meaning")
        page.keyboard.press("n")
        expect(page.locator("#deal")).to_have_count(0)
    assert different > 5


@pytest.mark.parametrize("page", ["desk"], indirect=True)
def test_a_decision_of_a_spot_is_looked_at_and_trained(page, address):
    page.goto(f"{address}#/strategy?player=runs/river&hand=AA")
    page.wait_for_selector(".each")
    assert "EV" in page.inner_text(".beside")
    page.click(".train")
    for number in (1, 2):
        page.wait_for_selector("[data-answer]:not([disabled])")
        page.keyboard.press("1")
        page.wait_for_selector("#verdict")
        assert page.inner_text("#trained").startswith(f"{number} decision")
        values = [Decimal(text) for text in page.locator("#verdict td:last-child").all_inner_texts()]
        less = re.match(r"(\d+\.\d\d) chips less", page.inner_text("#verdict p"))
        assert max(values) - values[0] == (Decimal(less[1]) if less else 0)
        page.keyboard.press("n")


def test_the_page_works_with_tls(chromium, secure):
    """Its own requests, with a body or none, and its stream of events."""
    context = chromium.new_context(ignore_https_errors=True)  # nobody else has signed the certificate
    page, wrong = context.new_page(), []
    page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    page.goto(f"{secure}#/play?player=runs/leduc")
    page.wait_for_selector("[data-key=c]")
    asked = page.inner_text(".history")
    page.keyboard.press("c")
    expect(page.locator(".history")).not_to_have_text(asked, use_inner_text=True)
    page.goto(f"{secure}#/runs?run=runs/leduc")
    expect(page.locator("#stands")).to_contain_text("100 iterations")
    assert not wrong
    context.close()


def test_the_form_says_what_is_wrong_with_a_new_run(chromium, tmp_path):
    """The name, the configuration, or both; then the run starts, and stops."""
    with serving("--control", cwd=tmp_path) as (server, address):
        page = chromium.new_page()
        page.goto(f"{address}#/runs")
        page.fill("#name", "my run")
        page.fill("#config", SHORT_RUN.replace("cfr+", "magic"))
        page.click("#plan")
        expect(page.locator("#trouble")).to_contain_text("magic")
        page.fill("#config", LONG_RUN)
        page.click("#start")
        expect(page.locator("#trouble")).to_contain_text("the run is called 'my run'")
        page.fill("#name", "mine")
        page.click("#start")
        expect(page.locator("#state")).to_have_text("running", timeout=60_000)
        page.click("#stop")
        expect(page.locator("#state")).to_have_text(re.compile("solved so far|stopped"), timeout=60_000)
        page.close()
        server.terminate()
        assert server.wait(timeout=300) == 0


@pytest.mark.parametrize("page", SIZES, indirect=True)
def test_runs_are_seen_with_what_is_wrong_with_them(page, address):
    page.goto(f"{address}#/runs")
    page.wait_for_selector("tr[data-run]")
    assert "damaged" in page.inner_text("main")
    page.click("text=runs/leduc")
    page.wait_for_selector(".chart .curve")
    assert "100 iterations" in page.inner_text("#stands")


def test_what_cannot_be_shown_is_said_in_its_place(chromium, address):
    """Others can be chosen beside it, and one of two that are compared does not take the other away."""
    page = chromium.new_page()
    page.goto(f"{address}#/strategy?player=random&with=runs/leduc")
    expect(page.locator("section[data-player=random] .failure")).to_contain_text("raises to any")
    expect(page.locator("section[data-player='runs/leduc'] tr[data-hand]")).to_have_count(6)
    page.goto(f"{address}#/abstraction?player=runs/leduc")
    expect(page.locator("main .failure")).to_contain_text("no buckets")
    expect(page.locator("main select")).to_have_value("runs/leduc")
    page.close()


@pytest.mark.parametrize("page", ["desk"], indirect=True)
def test_a_run_is_followed_while_it_goes_on(page, address, folder):
    """The solver waits after each measurement until the browser shows it, at three sizes and after a reload."""
    measured, go_on = Queue(), Queue()

    def stop_and_go(step):
        measured.put(step.iterations)
        return go_on.get(timeout=300)

    with ThreadPoolExecutor(1) as pool:
        solving = pool.submit(solve, "kuhn", "cfr+", iterations=4, folder=folder / "live", on_step=stop_and_go)
        try:
            for number, (width, height) in enumerate([*SIZES.values(), SIZES["desk"]]):
                said = f"{measured.get(timeout=300)} iteration"
                if number == 0:
                    page.goto(f"{address}#/runs?run=runs/live")
                page.set_viewport_size({"width": width, "height": height})
                expect(page.locator("#stands")).to_contain_text(said, timeout=60_000)
                expect(page.locator("#state")).to_contain_text("running elsewhere")
                expect(page.locator("#log tbody tr")).to_have_count(number + 1)
                assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
                if number == 1:
                    page.reload()
                    expect(page.locator("#stands")).to_contain_text(said, timeout=60_000)
                if number == 2:
                    page.goto(f"{address}#/runs")
                    page.wait_for_selector("#run", state="hidden")
                    page.go_back()
                    expect(page.locator("#stands")).to_contain_text(said, timeout=60_000)
                go_on.put(None)
            solving.result(timeout=300)
            expect(page.locator("#state")).to_have_text("solved", timeout=60_000)
        finally:
            for _ in range(100):
                go_on.put(None)
    shutil.rmtree(folder / "live")


def test_bench(address, monkeypatch):
    monkeypatch.setattr(bench, "_server", lambda: nullcontext(address))
    monkeypatch.setattr(bench, "CLIENTS", 2)
    monkeypatch.setattr(bench, "BROWSER", "")  # Playwright is at work here already
    found = {figure.key: figure.value for figure in bench.run()}
    assert found.keys() == {"first_paint_ms", "clients_100_p99_ms"}
    assert min(found.values()) > 0
