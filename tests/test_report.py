"""Hand grids, win rates and the page that has it all."""

import re
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from math import inf, nan

import numpy as np
import pytest

from kilt.abstraction.abstract_game import AbstractGame
from kilt.abstraction.actions import actions_of
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.abstraction.pipeline import build
from kilt.abstraction.plan import plan_named
from kilt.errors import ArtifactError, GameError, RunError
from kilt.evaluate.findings import Finding, Report
from kilt.evaluate.stats import Estimate
from kilt.games.gamedef import GameDef
from kilt.games.holdem import Holdem
from kilt.runs.budget import Step
from kilt.solve.external import ExternalMCCFR
from kilt.strategy.blueprint import Blueprint
from kilt.viz.ranges import action_colours, first_decisions, plot_ranges, preflop_grids
from kilt.viz.report import Contents, MatchResult, collect_contents, report_html, write_report
from kilt.viz.winrates import measured_opponents, plot_win_rates

TINY = """GAMEDEF
nolimit
numPlayers = 2
numRounds = 2
stack = 2000 2000
blind = 100 50
firstPlayer = 2 1
numSuits = {suits}
numRanks = 5
numHoleCards = {held}
numBoardCards = 0 {board}
END GAMEDEF
"""
STEPS = [
    Step(n, 0.1 * n, nan, nan, nan, {"always-call": 10.0 * n, "always-raise": -50.0 + n, "always-fold": 700.0})
    for n in (1, 2, 4, 8, 16, 32)
]
FINE = Finding("actions preflop", "frequencies of actions", {"fold": 0.25, "call": 0.75}, "%")
OFF = Finding("aces <fold>", "they & should not", {"small blind": 0.5}, "%", "at most 0.1%", True)


def blueprint_of(folder, suits=2, held=2, board=3, name="PR-PHS-PHS 5-5"):
    game = Holdem(GameDef.parse(TINY.format(suits=suits, held=held, board=board)), "tiny")
    deal = Deal.from_game(game)
    plan = plan_named(name, deal.board_cards)
    cards = build(AbstractionSpec(name, deal, plan), folder / "cards", cache=None, threads=1)
    abstract = AbstractGame(game, cards, actions_of("1x, a; a"))
    solver = ExternalMCCFR(abstract, 1)
    solver.step(5000)
    return Blueprint.of(abstract, solver.average(), algorithm="external", iterations=5000, seconds=1.25)


@pytest.fixture(scope="module")
def blueprint(tmp_path_factory):
    return blueprint_of(tmp_path_factory.mktemp("tiny"))


class Page(HTMLParser):
    """What is on a page, and whether its tags are closed."""

    VOID = ("meta", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def test_grids_have_what_the_blueprint_says(blueprint):
    opening, answer, *_ = found = preflop_grids(blueprint, first_decisions(blueprint))
    assert len(found) == 6
    assert opening.title == "small blind opens"
    assert [grid.title for grid in found[1:4]] == [
        "big blind after a call",
        "big blind facing a raise to 300",
        "big blind facing all-in",
    ]
    assert found[4].title == "small blind facing a raise to 300 after a call"
    assert opening.actions == ("fold", "call", "raise to 300", "all-in")
    assert answer.actions == ("check", "raise to 300", "all-in")
    assert [opening.hand(0, 0), opening.hand(0, 1), opening.hand(1, 0)] == ["AA", "AKs", "AKo"]
    assert (opening.reach == 1).all()
    deck = blueprint.game.deck
    for (i, j), hand in {(0, 0): "AsAh", (0, 1): "AsKs", (1, 0): "AsKh", (2, 4): "QhTh"}.items():
        row = blueprint.row(0, blueprint.bucket(0, 0, deck.cards(hand), ()))
        assert opening.share[i, j] == pytest.approx(row)
        assert found[4].reach[i, j] == pytest.approx(row[1])  # the small blind has called
    # Before anybody has acted, the share of an action is its mean over all hands.
    rows = [blueprint.row(0, blueprint.bucket(0, 0, hand, ())) for hand in deck.holes().tolist()]
    assert opening.overall == pytest.approx(np.mean(rows, axis=0))
    assert all(grid.overall.sum() == pytest.approx(1) for grid in found)


def test_raises_get_darker():
    shades = action_colours(("fold", "call", "raise to 200", "raise to 300", "all-in"))
    assert len({*shades}) == 5
    light = [sum(int(shade[place : place + 2], 16) for place in (1, 3, 5)) for shade in shades[2:]]
    assert light == sorted(light, reverse=True)
    assert shades[-1] == action_colours(("fold", "call", "all-in"))[-1]


def test_pictures_of_ranges(blueprint, tmp_path):
    found = preflop_grids(blueprint, first_decisions(blueprint))
    plot_ranges(found, "starting hands", tmp_path / "ranges.png")
    assert (tmp_path / "ranges.png").read_bytes().startswith(b"\x89PNG")
    forgotten = replace(blueprint, shares=np.zeros_like(blueprint.shares))
    plot_ranges(preflop_grids(forgotten, first_decisions(forgotten, 1)), "starting hands", tmp_path / "grey.svg")
    assert "never reached" in (tmp_path / "grey.svg").read_text()
    with pytest.raises(ArtifactError, match="cannot be written"):
        plot_ranges(found[:1], "starting hands", tmp_path / "nowhere" / "ranges.png")
    last = int(np.flatnonzero(blueprint.nodes.round == 1)[-1])
    with pytest.raises(RunError, match=rf"node {last} is no decision of the first round, which has \d+: use some"):
        preflop_grids(blueprint, [0, last])


def test_other_decks(tmp_path):
    with pytest.raises(GameError, match="tiny deals 1 private card: hand grids are for games that deal 2"):
        preflop_grids(blueprint_of(tmp_path / "one", held=1, board=1, name="lossless"), [0])
    (grid,) = preflop_grids(blueprint_of(tmp_path / "suit", suits=1, board=1, name="lossless"), [0])
    assert not grid.reach[1, 0]  # one suit: no pairs, nothing offsuit
    assert not grid.reach[0, 0]
    assert grid.reach[0, 1] == 1


def test_win_rates(tmp_path):
    assert measured_opponents(STEPS) == ["always-call", "always-raise", "always-fold"]
    plot_win_rates(STEPS, "win rates", tmp_path / "rates.png")
    plot_win_rates([Step(0, 0.0, nan, nan, nan, {"always-call": 1.0}), *STEPS[:1]], "one", tmp_path / "one.png")
    assert (tmp_path / "rates.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(RunError, match="none of 1 measurements has win rates"):
        plot_win_rates([Step(1, 0.1, 1.0, 1.0, 0.0)], "", tmp_path / "none.png")


def test_a_page_stands_alone(blueprint, tmp_path):
    contents = collect_contents(
        blueprint,
        steps=STEPS,
        matches=[
            MatchResult("mine", "<random>", Estimate(1234.5, 67.8), 10_000),
            MatchResult("a", "b", Estimate(1.0, inf), 1),
        ],
        sanity=(Report("tiny", 100, 0, (OFF, FINE)), Report("tiny", 100, 0, (FINE,), "as played: new-0.2")),
        commands=[("play against it", "kilt play 'my run' && echo done")],
    )
    path = write_report(tmp_path / "new" / "folder", contents)
    assert path == tmp_path / "new" / "folder" / "report.html"
    text = path.read_text()
    page = Page(text)
    for tag, attributes in page.tags:
        assert tag not in ("script", "link", "iframe")
        assert "href" not in attributes
        if "src" in attributes:
            kind, data = attributes["src"].split(",")
            assert kind == "data:image/png;base64"
            assert b64decode(data).startswith(b"\x89PNG")
            assert attributes["alt"]
    assert len([tag for tag, _ in page.tags if tag == "img"]) == 2  # grids and win rates
    assert not re.search(r"https?:|url\(|@import", text)
    assert "prefers-color-scheme: dark" in text
    for said in (
        "tiny: a blueprint",
        "Failed checks: aces <fold>",
        "they & should not",
        "nolimit, blinds 50 and 100, stacks of 20 big blinds",
        "PR-PHS-PHS 5-5: preflop 5, flop 25",
        "1x, a; a",
        "5,000 iterations in 1 s",
        "+320 mbb/h from always-call, -18 mbb/h from always-raise, +700 mbb/h from always-fold",
        "<random> +1,234 +1,167 to +1,302 10,000",
        "not known",
        "kilt play 'my run' && echo done",
    ):
        assert said in page.text, said


def test_what_is_not_there_is_left_out():
    page = Page(report_html(Contents("nothing")))
    assert [tag for tag, _ in page.tags if tag in ("h1", "h2", "img", "table")] == ["h1"]
    fine = Page(report_html(Contents("fine", sanity=[Report("tiny", 100, 0, (FINE,))])))
    assert "The sanity report passed all checks." in fine.text


def test_exploitability_is_drawn_where_it_is_known():
    steps = [Step(n, 0.1 * n, 1 / n, 2 / n, 0.0) for n in (1, 2, 4, 8)]
    page = Page(report_html(Contents("known", steps=steps, unit="chips/game")))
    assert "Exploitability of the average strategy at the end: 0.125 chips/game" in page.text
    assert len([tag for tag, _ in page.tags if tag == "img"]) == 1
