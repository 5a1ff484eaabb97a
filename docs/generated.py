"""A hook of the documentation's build: reference pages get what the code knows best.

A page has a marker such as ``<!-- generated: commands -->``. Every command with every argument and option takes its
place; likewise every key of a configuration, and so on.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import typer

from kilt.cli import app
from kilt.config import SECTIONS, Config
from kilt.games import ready_made_games
from kilt.records import Record
from kilt.spots.spot import Spot

MARKER = re.compile(r"<!-- generated: (\w+) -->")
PANELS = ("play", "solve", "build", "evaluate", "study", "lab")  # in the order of `kilt --help`


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the markers of a page."""
    return MARKER.sub(lambda match: GENERATED[match[1]](), markdown)


def commands() -> Iterator[tuple[str, str, Any]]:
    """Yield the panel, the words and the object of each command that `kilt --help` shows."""
    root = typer.main.get_command(app)
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", {"": command})
        for second, each in inner.items():
            if not command.hidden and not each.hidden:
                yield command.rich_help_panel or "", f"kilt {name} {second}".strip(), each


def parameters(words: str, command: Any) -> list[tuple[str, str]]:
    """Return how each argument and option of a command is written, and its help."""
    context = type(command).context_class(command, info_name=words)
    records = (each.get_help_record(context) for each in command.params if not getattr(each, "hidden", False))
    return [record for record in records if record]


def reference_of_commands() -> str:
    """Return a section for each command, by panel."""
    lines = []
    for panel in PANELS:
        lines += [f"## {panel.capitalize()}", ""]
        for _, words, command in (each for each in commands() if each[0] == panel):
            lines += [f"### `{words}`", "", _prose(command.help), ""]
            lines += _table("argument or option", parameters(words, command))
    return "\n".join(lines)


def keys(kind: type[Record]) -> dict[str, tuple[str, str]]:
    """Return the default and the description of each key of a record, from its fields and its docstring."""
    _, _, text = (inspect.getdoc(kind) or "").partition("Parameters\n----------\n")
    described = dict(re.findall(r"^(\w+) : .*\n((?:    .*\n?)*)", text.partition("\n\n")[0] + "\n", re.MULTILINE))
    found = {}
    for field in dataclasses.fields(kind):
        plain = field.default is not dataclasses.MISSING
        found[field.name] = (_shown(field.default) if plain else "", " ".join(described.get(field.name, "").split()))
    return found


def reference_of_keys() -> str:
    """Return a table of the keys of each section of a configuration."""
    lines = []
    kinds: dict[str, type[Record]] = {"At the top": Config, **{f"`[{name}]`": kind for name, kind in SECTIONS.items()}}
    for title, kind in kinds.items():
        rows = [
            (f"`{name}`", f"`{default}`" if default else "", text)
            for name, (default, text) in keys(kind).items()
            if name not in SECTIONS
        ]
        lines += [f"### {title}", "", "| key | default | what it says |", "|---|---|---|"]
        lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in rows] + [""]
    return "\n".join(lines)


def reference_of_games() -> str:
    """Return a table of the games that kilt includes."""
    rows = [f"| `{name}` | {_cell(text)} |" for name, text in ready_made_games().items()]
    return "\n".join(["| name | game |", "|---|---|", *rows])


def reference_of_spots() -> str:
    """Return a table of the keys of a spot."""
    lines = ["| key | default | what it says |", "|---|---|---|"]
    lines += [
        "| " + " | ".join(map(_cell, (f"`{name}`", f"`{default}`" if default else "", text))) + " |"
        for name, (default, text) in keys(Spot).items()
    ]
    return "\n".join(lines)


def _shown(value: object) -> str:
    """Return a default as TOML has it."""
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else f"{value:g}"


def _cell(text: str) -> str:
    return re.sub(r"``(.+?)``", r"`\1`", text).replace("|", "\\|")


def _table(title: str, rows: list[tuple[str, str]]) -> list[str]:
    shown = [f"| `{_cell(name)}` | {_cell(' '.join(text.split()))} |" for name, text in rows]
    return [f"| {title} | what it does |", "|---|---|", *shown, ""]


def _prose(text: str | None) -> str:
    """Return the help of a command as Markdown: its paragraphs, and what is indented as a block."""
    return re.sub(r"\n?\f\n?|\b\x08\n", "\n", inspect.cleandoc(text or ""))


GENERATED: Mapping[str, Callable[[], str]] = {
    "commands": reference_of_commands,
    "games": reference_of_games,
    "keys": reference_of_keys,
    "spots": reference_of_spots,
}
