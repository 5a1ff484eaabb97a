"""Write a report on a blueprint: one HTML page with its settings, results and pictures.

The page needs no other files, no network and no scripts, so that users can send it and keep it. `collect_contents`
collects its content from a blueprint as plain data, `Contents`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from kilt import __version__, artifact
from kilt.abstraction.buckets import CardAbstraction
from kilt.evaluate.findings import Report
from kilt.evaluate.stats import Estimate
from kilt.runs.budget import Step
from kilt.strategy.blueprint import Blueprint
from kilt.strategy.naming import AVERAGE, solved_name
from kilt.viz.convergence import plot_convergence
from kilt.viz.ranges import Grid, first_decisions, plot_ranges, preflop_grids
from kilt.viz.winrates import measured_opponents, plot_win_rates

PAGE = "report.html"

STYLE = """
:root { color-scheme: light dark; --ink: #1d232b; --soft: #5d6875; --paper: #fbfbf9; --card: #ffffff; --line: #dfe2e6;
  --off: #b3261e; --fine: #2b7a3d; --code: #f0f1ee; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --soft: #9aa5b1; --paper: #15181c; --card: #1d2126;
  --line: #343a42; --off: #ff8a80; --fine: #7fce91; --code: #262b31; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 2.5rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; margin: 2.75rem 0 .75rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
p { margin: .5rem 0; } .soft { color: var(--soft); }
.verdict { font-weight: 700; } .off { color: var(--off); font-weight: 700; } .fine { color: var(--fine); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; background: var(--card); font-size: .93rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .7rem; border: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1.25rem; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
img { display: block; width: 100%; height: auto; margin: .75rem 0; padding: .5rem; background: #fff;
  border: 1px solid var(--line); border-radius: 6px; }
pre { margin: .3rem 0 1rem; padding: .6rem .8rem; overflow-x: auto; background: var(--code); border-radius: 6px; }
code { font: .9rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
"""


class MatchResult(NamedTuple):
    """The result of a match, as a row of a report."""

    player: str
    against: str
    rate: Estimate  # win rate of the player in mbb/h
    hands: int


@dataclass(frozen=True)
class Contents:
    """The content of a report on a blueprint."""

    title: str
    built: tuple[tuple[str, str], ...] = ()  # what was built, with its settings
    steps: Sequence[Step] = ()  # measurements of the run's log
    unit: str = "chips/game"  # unit of exploitability
    solved: str = AVERAGE  # the strategy that the log measures
    ranges: Sequence[Grid] = ()
    matches: Sequence[MatchResult] = ()
    sanity: Sequence[Report] = ()  # a report for each strategy of the run
    commands: tuple[tuple[str, str], ...] = ()  # purpose, and the command to type next


def collect_contents(
    blueprint: Blueprint,
    title: str = "",
    *,
    steps: Sequence[Step] = (),
    plays: str = "",
    matches: Sequence[MatchResult] = (),
    sanity: Report | Sequence[Report] = (),
    commands: Sequence[tuple[str, str]] = (),
) -> Contents:
    """Collect the content of a report about a blueprint.

    Parameters
    ----------
    blueprint : Blueprint
        The blueprint that the page describes.
    title : str
        Title of the page. Default: the name of the game.
    steps : sequence of Step
        The measurements of its run.
    plays : str
        The strategy that its agent plays, in words: see `kilt.players.agents.describe_strategy`.
    matches : sequence of MatchResult
        Matches that its agent has played.
    sanity : Report or sequence of Report
        Results of `kilt.players.reports.sanity_reports`, or of `kilt.evaluate.sanity.check_blueprint`.
    commands : sequence of (str, str)
        Purpose, and the command to type next.

    Returns
    -------
    Contents
        The content, for `write_report`.
    """
    game, rules = blueprint.game, blueprint.game.rules
    names = rules.round_names
    # only once if both players share an abstraction
    seen = {cards.fingerprint: cards for cards in blueprint.cards.each}
    blinds = " and ".join(f"{blind:,}" for blind in sorted(rules.blinds))
    said = blueprint.figures
    built = {
        "game": game.name,
        "rules": f"{rules.betting}, blinds {blinds}" + ("" if blueprint.limit else f", {_depth(blueprint)}"),
        "deck": f"{rules.deck.size} cards, {rules.hole_cards} private and {rules.board_size(rules.rounds - 1)} public",
        "buckets": " | ".join(_buckets(cards, names) for cards in seen.values()),
        "bet sizes": " | ".join(blueprint.actions.text) if blueprint.actions else "all legal ones",
        "size": f"{int((blueprint.nodes.actor >= 0).sum()):,} decisions in the betting tree, "
        f"{len(blueprint.shares):,} actions of information sets",
        "solver": str(said.get("algorithm", "")),
        "work": f"{said['iterations']:,} iterations" + (f" in {_time(said['seconds'])}" if "seconds" in said else "")
        if "iterations" in said
        else "",
        "strategy in matches": plays,
    }
    return Contents(
        title or f"{game.name}: a blueprint",
        tuple((what, value) for what, value in built.items() if value),
        steps,
        ranges=preflop_grids(blueprint, first_decisions(blueprint)) if rules.hole_cards == 2 else (),
        solved=solved_name(said),
        matches=matches,
        sanity=(sanity,) if isinstance(sanity, Report) else tuple(sanity),
        commands=tuple(commands),
    )


def _buckets(cards: CardAbstraction, names: Sequence[str]) -> str:
    each = [f"{name} {number:,}" for name, number in zip(names, cards.numbers, strict=True)]
    return f"{cards.name}: {', '.join(each)}"


def write_report(folder: str | Path, contents: Contents) -> Path:
    """Write the report to ``report.html`` in a folder, and return its path."""
    path = Path(folder) / PAGE
    page = report_html(contents)
    with artifact.os_errors(f"{path} cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        artifact.write_text(path, page)
    return path


def report_html(contents: Contents) -> str:
    """Return the report as an HTML page with its pictures embedded.

    >>> page = report_html(Contents("Leduc & friends", commands=(("play against it", "kilt play RUN"),)))
    >>> "<h1>Leduc &amp; friends</h1>" in page, "<h2>" in page
    (True, True)
    """
    parts = [
        f"<h1>{escape(contents.title)}</h1>",
        _summary(contents),
        _built(contents),
        _sanity(contents),
        _convergence(contents),
        _ranges(contents),
        _matches(contents),
        _commands(contents),
        f"<footer>Made with kilt {escape(__version__)}. Win rates are in mbb/h, thousandths of a big blind per hand; "
        "divide by 10 for bb/100.</footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(contents.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(filter(None, parts))
        + "\n</body>\n</html>\n"
    )


def _summary(contents: Contents) -> str:
    if not contents.sanity:
        return ""
    off = [
        f"{', '.join(finding.name for finding in report.off)} ({report.strategy})"
        for report in contents.sanity
        if report.off
    ]
    if not off:
        return '<p class="verdict fine">The sanity report passed all checks.</p>'
    return f'<p class="verdict off">Failed checks: {escape("; ".join(off))}. See the sanity report below.</p>'


def _built(contents: Contents) -> str:
    rows = "\n".join(f"<dt>{escape(what)}</dt><dd>{escape(value)}</dd>" for what, value in contents.built)
    return f"<h2>What was built</h2>\n<dl>\n{rows}\n</dl>" if rows else ""


def _sanity(contents: Contents) -> str:
    return "\n".join(_checks(report) for report in contents.sanity)


def _checks(report: Report) -> str:
    rows = []
    for finding, (name, seen, bound, verdict) in zip(report.findings, report.rows(), strict=True):
        kind = "off" if finding.off else "fine"
        what = f'{_marked(name, finding.off)}<br><span class="soft">{escape(finding.meaning)}</span>'
        cells = what, _marked(seen, finding.off), escape(bound), f'<span class="{kind}">{verdict}</span>'
        rows.append(f'<tr class="{kind}">' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    head = "<tr><th>check</th><th>result</th><th>limit</th><th></th></tr>"
    said = f"{report.deals:,} deals of self-play, seed {report.seed}."
    return _table(f"Sanity report: {escape(report.strategy)}", head, rows, said)


def _marked(text: str, off: bool) -> str:
    return f'<span class="off">{escape(text)}</span>' if off else escape(text)


def _convergence(contents: Contents) -> str:
    steps, parts = contents.steps, []
    if any(isfinite(step.exploitability) for step in steps):
        last = next(step for step in reversed(steps) if isfinite(step.exploitability))
        said = (
            f"Exploitability of the {contents.solved} at the end: {last.exploitability:.4g} {contents.unit}, mean over "
            "both seats."
        )
        picture = _picture(
            lambda path: plot_convergence({"": steps}, "Exploitability", path, contents.unit),
            "exploitability against iterations and time",
        )
        parts += [f"<p>{escape(said)}</p>", picture]
    if names := measured_opponents(steps):
        last = next(step for step in reversed(steps) if step.others)
        won = ", ".join(f"{last.others[name]:+,.0f} mbb/h from {name}" for name in names if name in last.others)
        said = f"After {last.iterations:,} iterations in {_time(last.seconds)} the {contents.solved} wins {won}."
        picture = _picture(
            lambda path: plot_win_rates(steps, "Win rates against simple habits", path),
            "win rates against opponents with simple habits, over time",
        )
        parts += [f"<p>{escape(said)} A good strategy beats all of them.</p>", picture]
    return "\n".join(["<h2>Convergence</h2>", *parts]) if parts else ""


def _ranges(contents: Contents) -> str:
    if not contents.ranges:
        return ""
    said = (
        "Pairs are on the diagonal, suited hands above it, offsuit hands below. Red folds, blue calls, green raises: "
        "the darker, the more. The height of a bar is the probability that the player reaches the decision with the "
        f"hand. The grids show the {contents.solved}, without post-processing."
    )
    titles = "; ".join(grid.title for grid in contents.ranges)
    picture = _picture(lambda path: plot_ranges(contents.ranges, "Starting hands", path), f"hand grids: {titles}")
    return f'<h2>Before the flop</h2>\n<p class="soft">{said}</p>\n{picture}'


def _matches(contents: Contents) -> str:
    if not contents.matches:
        return ""
    head = (
        '<tr><th>player</th><th>against</th><th class="number">wins [mbb/h]</th><th class="number">95% interval</th>'
        '<th class="number">hands</th></tr>'
    )
    rows = []
    for player, against, rate, hands in contents.matches:
        low, high = rate.interval
        between = f"{low:+,.0f} to {high:+,.0f}" if isfinite(rate.margin) else "not known"
        cells = f"{rate.mean:+,.0f}", between, f"{hands:,}"
        rows.append(
            f"<tr><td>{escape(player)}</td><td>{escape(against)}</td>"
            + "".join(f'<td class="number">{cell}</td>' for cell in cells)
            + "</tr>"
        )
    return _table("Matches", head, rows)


def _table(title: str, head: str, rows: Iterable[str], said: str = "") -> str:
    inside = "\n".join([head, *rows])
    words = f'<p class="soft">{escape(said)}</p>\n' if said else ""
    return f'<h2>{title}</h2>\n{words}<div class="wide"><table>\n{inside}\n</table></div>'


def _commands(contents: Contents) -> str:
    rows = [f"<p>{escape(what)}</p>\n<pre><code>{escape(command)}</code></pre>" for what, command in contents.commands]
    return "\n".join(["<h2>What to type next</h2>", *rows]) if rows else ""


def _picture(draw: Callable[[Path], None], words: str) -> str:
    """Return a picture as HTML."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "picture.png"
        draw(path)
        data = b64encode(path.read_bytes()).decode("ascii")
    return f'<img alt="{escape(words)}" src="data:image/png;base64,{data}">'


def _depth(blueprint: Blueprint) -> str:
    stacks = {f"{stack / blueprint.game.rules.big_blind:g}" for stack in blueprint.game.rules.stacks}
    return f"stacks of {' and '.join(sorted(stacks))} big blinds"


def _time(seconds: float) -> str:
    """Return a duration in words.

    >>> _time(42.5), _time(600), _time(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
