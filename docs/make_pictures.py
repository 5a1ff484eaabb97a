"""Draw the pictures of the documentation again: ``make pictures``, a few minutes on two cores.

All pictures except the house and the measurements on a GPU come from commands that a reader can type, on a small game:
hold'em with the full deck that ends on the flop. They are the same on every run, except for times, which need an
otherwise idle machine. The house of layers is drawn from `HOUSE`; a test compares it with the order of imports.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import sync_playwright

from kilt.runs.budget import Step
from kilt.runs.folder import RunFolder
from kilt.strategy.blueprint import Blueprint
from kilt.viz.convergence import plot_convergence
from kilt.viz.ranges import first_decisions, plot_ranges, preflop_grids

PICTURES = Path(__file__).parent / "pictures"
# Cells of figures 6.1 and 6.2 in the game of the thesis: see lab/results/experiments/figure-6.1/thesis.json.
ANSWERS = Path(__file__).parents[1] / "lab" / "results" / "cells" / "figure-6.jsonl"
GAME = """\
# Hold'em that ends on the flop: no limit, stacks of 20 big blinds
GAMEDEF
nolimit
numPlayers = 2
numRounds = 2
stack = 2000 2000
blind = 100 50
firstPlayer = 2 1
numSuits = 4
numRanks = 13
numHoleCards = 2
numBoardCards = 0 3
END GAMEDEF
"""
CONFIGURATION = """\
game = "flop.game"
cards = "IR-KE-KO 169-300"
actions = "1x, a"
"""

# Royal hold'em on an H200, 16 November 2026: iterations, seconds, exploitability of the average and of the current
# strategy in mbb/g. `kilt bench gpu --only royal` measures it again, on a GPU with 114 GB.
ROYAL = """\
10 2.1 1074.0 1210.0
25 5.2 219.6 363.8
50 10.3 81.05 215.2
75 15.3 43.7 127.6
100 20.4 27.94 139.5
150 30.3 15.85 nan
200 40.1 12.79 35.94
250 50.0 10.49 nan
300 59.8 7.019 15.89
350 69.7 5.473 nan
400 79.5 4.489 9.076
450 89.4 3.787 nan
500 99.2 3.24 8.17
550 109.1 2.827 nan
600 118.9 2.502 5.178
650 128.8 2.25 nan
700 138.5 2.046 4.033
750 148.4 1.872 nan
800 158.2 1.716 4.157
850 168.1 1.569 nan
900 177.9 1.442 3.593
950 187.8 1.347 nan
1000 197.6 1.269 2.856
1050 207.5 1.198 nan
1100 217.3 1.13 3.063
1200 233.3 0.9894 nan
"""

# [3-1] hold'em from disk, 17 November 2026: iterations, CPU seconds with measuring, and exploitability of the current
# strategy in mbb/g. `kilt solve --game holdem.3-1 -a cfr+disk --threads 2` has logged it on two cores that others used.
THREE_ONE = """\
1 138 414.9
2 339 478.7
8 1189 207.3
11 1714 102.7
16 2513 53.2
23 3579 27.0
33 5204 13.8
45 6876 7.45
61 9291 4.39
"""

# Highest layer first: packages of a layer, and their purpose.
HOUSE = [
    (("cli",), "commands: parse, call one function, print", ""),
    (("web",), "the page in the browser", ""),
    (("rehearsals",), "compilation ahead of the first use", ""),
    (("api", "evaluation"), "the functions of import kilt", ""),
    (("viz",), "data to pictures", ""),
    (("spots",), "single subgames of hold'em", ""),
    (("players",), "players, by name or as an object", ""),
    (("runs",), "from a configuration to a blueprint on disk; stop and resume", ""),
    (("evaluate",), "exploitability, matches, estimators, sanity checks", ""),
    (("search",), "agents that re-solve the current subgame", ""),
    (("solve", "play"), "CFR and its family; agents at a table", "Agent"),
    (("strategy",), "probabilities on disk; post-processing, translation", "Strategy"),
    (("abstraction",), "hands to buckets, boards to classes, bets to menus", "Abstraction"),
    (("tree",), "the rules as flat arrays, which kernels walk", "Tree"),
    (("games",), "the rules: who acts, legal actions, payoffs", "Game"),
    (("cards",), "decks, ranges, strength, suits, equity", ""),
    (("config", "artifact", "engines", "jit"), "runs as data, arrays on disk, processes, the compiler", ""),
]


def house() -> str:
    """Draw the layers as an SVG picture, with imports downwards only."""
    width, row, top = 860, 42, 44
    height = top + row * len(HOUSE) + 14
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<path d="M20 {top - 4} L{width / 2} 8 L{width - 20} {top - 4} Z" fill="#00796b"/>',
        f'<text x="{width / 2}" y="34" text-anchor="middle" font-size="17" font-weight="bold" fill="white">kilt</text>',
    ]
    for level, (names, meaning, noun) in enumerate(HOUSE):
        y = top + row * level
        shade = "#e0f2f1" if level % 2 else "#f3faf9"
        lines += [
            f'<rect x="20" y="{y}" width="{width - 40}" height="{row - 4}" rx="3" fill="{shade}" stroke="#80cbc4"/>',
            f'<text x="34" y="{y + 24}" font-size="15" font-weight="bold" fill="#004d40">{" · ".join(names)}</text>',
            f'<text x="300" y="{y + 24}" font-size="14" fill="#263238">{escape(meaning)}</text>',
        ]
        if noun:
            lines.append(
                f'<text x="{width - 34}" y="{y + 24}" text-anchor="end" font-size="14" font-style="italic" '
                f'fill="#bf360c">{noun}</text>'
            )
    return "\n".join([*lines, "</svg>"]) + "\n"


def kilt(command: str, folder: Path, **settings: str) -> None:
    """Run a command in a folder, with environment variables set, and print it."""
    sys.stderr.write(f"$ kilt {command}\n")
    called = [sys.executable, "-m", "kilt", *shlex.split(command)]
    subprocess.run(called, cwd=folder, check=True, stdout=sys.stderr, env=os.environ | settings)


def convergence(folder: Path, to: Path) -> None:
    """Convergence of variants of CFR in Leduc hold'em."""
    names = ("cfr", "linear", "dcfr", "cfr+", "pcfr+")
    for name in names:
        kilt(f"solve --game leduc --algorithm {name} --iterations 10000 --out {name}", folder)
    runs = {name: RunFolder.open(folder / name).steps() for name in names}
    plot_convergence(runs, "Leduc hold'em: average strategies", to)


def answers(figure: str, folder: Path, to: Path) -> None:
    """Counter-strategies in Leduc hold'em: winnings over exploitability."""
    kilt(f"reproduce {figure} --runs 1 --out cells", folder)
    (folder / "cells" / "figure.png").rename(to)


def answers_in_holdem(figure: str, folder: Path, to: Path) -> None:
    """Counter-strategies in limit hold'em, from cells that were measured on a GPU: see `ANSWERS`."""
    (folder / "cells").mkdir()
    shutil.copy(ANSWERS, folder / "cells" / "cells.jsonl")
    kilt(f"reproduce {figure} --setting thesis --device gpu --out cells", folder)
    (folder / "cells" / "figure.png").rename(to)


def hand_grids(folder: Path, to: Path) -> None:
    """The strategy of a blueprint for every starting hand."""
    kilt("solve agent.toml --iterations 5000000", folder)
    blueprint = Blueprint.load(folder / "agent")
    chosen = first_decisions(blueprint, 3)
    plot_ranges(preflop_grids(blueprint, chosen), "Hold'em to the flop, 20 big blinds: starting hands", to)


def board_classes(folder: Path, to: Path) -> None:
    """Flops in classes."""
    kilt('abstraction boards --game flop.game --classes 12 --set "base=IR-KE-KO 169-500" --out classes', folder)
    (folder / "classes" / "classes.png").rename(to)


def schemes(folder: Path, to: Path) -> None:
    """Convergence of CS and PCS in abstract games of growing size."""
    kilt("reproduce figure-3.3 --minutes 0.1 --out schemes", folder)
    (folder / "schemes" / "figure.png").rename(to)


def overtaking(folder: Path, to: Path) -> None:
    """Winnings of a larger abstraction less those of a smaller one, over time."""
    kilt("reproduce tartanian7-figure-1 --out who-leads", folder)
    (folder / "who-leads" / "figure.png").rename(to)


SPOT = (
    '--board Ks7h2d4c9s --pot 10 --stacks 40 --bets "50%, 1x, a" '
    '--ranges "22+,A2s+,K9s+,QTs+,AJo+,KQo" "22-QQ,A2s-AQs,K9s+,Q9s+,T9s,AQo,KQo"'
)


def page(folder: Path, to: Path, place: str, presses: Sequence[str], again: str = "") -> None:
    """Take a screenshot of a page of `kilt web` after pressing some buttons."""
    (folder / "runs").mkdir()
    kilt(f"spot solve {SPOT} --iterations 100 --save runs/river", folder)
    command = [sys.executable, "-m", "kilt", "web", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as server, sync_playwright() as tools:
        assert server.stderr
        address = server.stderr.readline().split()[4]
        browser = tools.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": 1100, "height": 860})
        shown.goto(address + place)
        for press in presses:
            shown.click(press)
            shown.wait_for_timeout(1000)
        if again:
            shown.wait_for_selector(again)
        while again and shown.locator(again).count():
            shown.click(again)
            shown.wait_for_timeout(1000)
        shown.wait_for_timeout(5000)
        while "…" in shown.locator(".verdict").all_inner_texts():  # what decisions were worth takes longer
            shown.wait_for_timeout(1000)
        shown.screenshot(path=to, full_page=bool(again))
        browser.close()
        server.terminate()


def royal(_: Path, drawn: Path) -> None:
    """Exploitability of royal hold'em, measured on a GPU."""
    measured = [Step(int(row[0]), *map(float, row[1:]), nan) for row in map(str.split, ROYAL.splitlines())]
    plot_convergence({"cfr+": measured}, "Royal hold'em by CFR+ on an H200, tables of two bytes", drawn, "mbb/g")


def three_one(_: Path, drawn: Path) -> None:
    """Exploitability of [3-1] hold'em, solved from disk."""
    rows = (map(float, row.split()) for row in THREE_ONE.splitlines())
    measured = [Step(int(iterations), seconds, nan, found, nan) for iterations, seconds, found in rows]
    plot_convergence({"cfr+disk": measured}, "[3-1] hold'em by CFR+ from disk, CPU time", drawn, "mbb/g")


DRAWN: dict[str, Callable[[Path, Path], None]] = {
    "convergence.png": convergence,
    "hand-grids.png": hand_grids,
    "board-classes.png": board_classes,
    "royal.png": royal,
    "three-one.png": three_one,
    "figure-3.3.png": schemes,
    "tartanian7-figure-1.png": overtaking,
    "figure-6.1.png": partial(answers, "figure-6.1"),
    "figure-6.2.png": partial(answers, "figure-6.2"),
    "figure-6.1-holdem.png": partial(answers_in_holdem, "figure-6.1"),
    "figure-6.2-holdem.png": partial(answers_in_holdem, "figure-6.2"),
    "web-play.png": partial(page, place="#/play?player=house", presses=(), again="[data-key=c]"),
    "web-train.png": partial(
        page, place="#/train?player=runs/river", presses=("[data-answer]", "#next", "[data-answer]")
    ),
    "web-strategy.png": partial(page, place="#/strategy?player=house", presses=("[data-hand=A5s]",)),
    "web-abstraction.png": partial(page, place="#/abstraction?player=house&board=AsKh7d", presses=("[data-hand=QJs]",)),
    "web-runs.png": partial(page, place="#/runs?run=runs/river", presses=()),
}


def main() -> None:
    """Draw all pictures, or those that are named."""
    chosen = sys.argv[1:] or [*DRAWN, "house.svg"]
    PICTURES.mkdir(exist_ok=True)
    if "house.svg" in chosen:
        (PICTURES / "house.svg").write_text(house())
    for name in DRAWN.keys() & {*chosen}:
        with TemporaryDirectory() as place:
            folder = Path(place)
            (folder / "flop.game").write_text(GAME)
            (folder / "agent.toml").write_text(CONFIGURATION)
            drawn = folder / "drawn.png"
            DRAWN[name](folder, drawn)
            Image.open(drawn).convert("RGB").quantize(256).save(PICTURES / name, optimize=True)


if __name__ == "__main__":
    main()
