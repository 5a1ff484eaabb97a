"""``kilt bench web``: time until the page is shown, and response times."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import numpy as np

from kilt.games.game import CHANCE, TERMINAL
from kilt.games.playable import load_holdem
from kilt.strategy.blueprint import CARDS, STRATEGY, Blueprint
from kilt_lab.benchmarks.measure import Figure
from kilt_lab.pieces.agents import game_in_buckets

STARTS, CLIENTS, HANDS, PLACES = 3, 100, 3, 300
GAME, PLAN = "holdem.nolimit.2p", "IR-PHS-PHS 169-2000-2000-1000"
MENU = "50%, 1x, 2x, a / 33%, 66%, 1x, 2x, a; 50%, 1x, 2x, a; 50%, 1x, 2x, a"
BROWSER = find_spec("playwright") and (shutil.which("chromium") or shutil.which("chromium-browser"))
PAINTED = "painted by Chromium" if BROWSER else "read (there is no Chromium to paint it)"
LEDUC = "leduc (solved here)"


def run(*, long: bool = False) -> list[Figure]:
    """Measure milliseconds until the page is shown, and of responses; with `long`, for a strategy of a gigabyte."""
    starts = _starts()
    with _server() as address:
        _ask(address, "api/strategy", player=LEDUC)  # solved once
        asked = _clients(address)
    figures = [
        Figure("first_paint_ms", f"from the command to the page, {PAINTED}, median", float(np.median(starts)), "ms"),
        Figure(
            "clients_100_p99_ms", "response time with 100 people playing Leduc, 99th percentile", _late(asked), "ms"
        ),
    ]
    if long:
        with TemporaryDirectory() as folder:
            size, seconds = _large(Path(folder))
        figures += [
            Figure("strategy_gb", "a strategy of random numbers", size / 1e9, "GB"),
            Figure("strategy_view_ms_p99", "views of it at random decisions, 99th percentile", _late(seconds), "ms"),
        ]
    return figures


def _starts() -> list[float]:
    """Return milliseconds from the command to the page: painted by a running browser, or read without one."""
    starts = []
    with _browser() as show:
        for _ in range(STARTS):
            began = perf_counter()
            with _server() as address:
                show(address)
                starts.append(1000 * (perf_counter() - began))
    return starts


@contextmanager
def _browser() -> Iterator[Callable[[str], None]]:
    """Load an address until its first content is painted; without a browser, read the page and its files."""
    if not BROWSER:
        yield _read
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])

        def show(address: str) -> None:
            page = browser.new_page()
            page.goto(address)
            page.wait_for_selector("main h1")
            while not page.evaluate("performance.getEntriesByName('first-contentful-paint').length"):
                page.wait_for_timeout(1)
            page.close()

        yield show
        browser.close()


def _read(address: str) -> None:
    text = urlopen(address).read().decode()
    for name in re.findall(r'(?:href|src)="([a-z]+\.[a-z]+)"', text):
        urlopen(address + name).read()


@contextmanager
def _server(*folders: Path) -> Iterator[str]:
    """Start a server in a separate process, and yield its address."""
    command = [sys.executable, "-m", "kilt", "web", *map(str, folders), "--no-browser", "--port", "0"]
    with TemporaryDirectory() as here, subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=here) as server:
        assert server.stderr
        found = re.search(r"http://\S+", server.stderr.readline())
        assert found
        try:
            yield found[0]
        finally:
            server.terminate()


def _ask(address: str, path: str, body: object = None, **query: str) -> dict[str, object]:
    asked = Request(f"{address}{path}?{urlencode(query)}")
    if body is not None:
        asked = Request(f"{address}{path}", json.dumps(body).encode(), {"content-type": "application/json"})
    with urlopen(asked) as answer:
        found: dict[str, object] = json.loads(answer.read())
    return found


def _clients(address: str) -> list[float]:
    """Return seconds of each response, to people who each play some hands."""

    def play(_: int) -> list[float]:
        seconds: list[float] = []
        table = _timed(seconds, address, "api/tables", {"player": LEDUC})
        for _ in range(HANDS):
            while table["turn"]:
                table = _timed(seconds, address, f"api/tables/{table['table']}", {"text": "c"})
            table = _timed(seconds, address, f"api/tables/{table['table']}", {"text": "deal"})
        return seconds

    with ThreadPoolExecutor(CLIENTS) as pool:
        return [each for seconds in pool.map(play, range(CLIENTS)) for each in seconds]


def _timed(seconds: list[float], address: str, path: str, body: object = None, **query: str) -> dict[str, object]:
    """Return the response of `_ask`, and append its duration to `seconds`."""
    began = perf_counter()
    found = _ask(address, path, body, **query)
    seconds.append(perf_counter() - began)
    return found


def _late(seconds: list[float]) -> float:
    """Return the 99th percentile of response times, in milliseconds."""
    return 1000 * float(np.quantile(seconds, 0.99))


def _large(folder: Path) -> tuple[int, list[float]]:
    """Return the bytes of a large strategy, and seconds of views of it."""
    abstract = game_in_buckets(load_holdem(GAME), MENU, PLAN, folder / CARDS)
    shares = np.random.default_rng(0).integers(0, 256, int(abstract.first[-1]), dtype=np.uint8)
    Blueprint.of(abstract, shares).save(folder / STRATEGY, folder / CARDS)
    blueprint, random, seconds = Blueprint.load(folder), Random(0), list[float]()
    places = [_place(blueprint, random) for _ in range(PLACES)]
    with _server(folder) as address:
        player = folder.name
        _ask(address, "api/strategy", player=player)
        for history, board in places:
            _timed(seconds, address, "api/strategy", player=player, history=history, board=board)
    return len(shares), seconds


def _place(blueprint: Blueprint, random: Random) -> tuple[str, str]:
    """Return the betting and the board of a decision at the end of a random walk through the blueprint's tree."""
    game, nodes, node = blueprint.game, blueprint.nodes, 0
    last = 0
    while nodes.actor[node] != TERMINAL:
        if nodes.actor[node] != CHANCE:
            last = node
        node = int(nodes.first_child[node]) + random.randrange(int(nodes.children[node]))
    position = blueprint.position(last)
    board = random.sample(range(game.deck.size), game.rules.board_size(position.round))
    return position.history, game.deck.name(board)
