"""A hook of the documentation's build: reference pages get what the code knows best.

A page has a marker such as ``<!-- generated: commands -->``. Every command with every argument and option takes its
place; likewise every key of a configuration, and so on. ``python docs/generated.py NAME`` prints one of them.
``python docs/generated.py --write`` renders the table of packages in CONTRIBUTING.md, which is read without a build.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from kilt.cli import app
from kilt.config import SECTIONS, Config
from kilt.games import ready_made_games
from kilt.records import Record, field_descriptions
from kilt.spots.spot import Spot

SOURCE = Path(inspect.getfile(Config)).parent
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
PACKAGES = re.compile(r"(?<=<!-- generated: packages -->\n).*?(?=<!-- /generated -->)", re.DOTALL)
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
    words = field_descriptions(kind)
    found = {}
    for field in dataclasses.fields(kind):
        plain = field.default is not dataclasses.MISSING
        found[field.name] = (_shown(field.default) if plain else "", words[field.name])
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


def purpose(path: Path) -> str:
    """Return the first paragraph of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("``", "`")


def layers() -> list[set[str]]:
    """Return the names in each layer, the lowest first, as ``tests/test_layers.py`` has them."""
    text = (CONTRIBUTING.parent / "tests" / "test_layers.py").read_text(encoding="utf-8")
    assigned = (each for each in ast.parse(text).body if isinstance(each, ast.Assign))
    (value,) = [each.value for each in assigned if ast.unparse(each.targets[0]) == "LAYERS"]
    found: list[set[str]] = ast.literal_eval(value)
    return found


def packages() -> list[tuple[str, Path]]:
    """Return the name and the file of each package and module at the top of kilt, the lowest layer first."""
    found = {path.stem: path for path in SOURCE.glob("*.py")} | {
        path.parent.name: path for path in SOURCE.glob("*/__init__.py")
    }
    return [(name, found[name]) for layer in layers() for name in sorted(layer)]


def table_of_packages() -> str:
    """Return the table of CONTRIBUTING.md: what each package is for."""
    rows = [f"| `{name}` | {_cell(purpose(path))} |" for name, path in packages()]
    return "\n".join(["| package or module | purpose |", "|---|---|", *rows, ""])


def reference_of_modules() -> str:
    """Return a section for each package, with a row for each of its modules."""
    lines = []
    for name, path in packages():
        lines += [f"## `{name}`", "", purpose(path), ""]
        inside = sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" and name != "__init__" else []
        rows = [(str(each.relative_to(path.parent).with_suffix("")), purpose(each)) for each in inside if each != path]
        lines += _table("module", rows) if rows else []
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
    return [f"| {title} | meaning |", "|---|---|", *shown, ""]


def _prose(text: str | None) -> str:
    """Return the help of a command as Markdown: its paragraphs, and what is indented as a block."""
    return re.sub(r"\n?\f\n?|\b\x08\n", "\n", inspect.cleandoc(text or ""))


GENERATED: Mapping[str, Callable[[], str]] = {
    "commands": reference_of_commands,
    "games": reference_of_games,
    "keys": reference_of_keys,
    "modules": reference_of_modules,
    "spots": reference_of_spots,
}


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        CONTRIBUTING.write_text(PACKAGES.sub(table_of_packages(), CONTRIBUTING.read_text(encoding="utf-8")))
    else:
        sys.stdout.write(GENERATED[sys.argv[1]]() + "\n")
