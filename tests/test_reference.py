"""The reference is complete: every option, key and name that a user can write is explained on one of its pages."""

import re
from dataclasses import fields
from pathlib import Path

import generated
import pytest

from kilt.abstraction.features import FEATURES
from kilt.abstraction.public import METHODS
from kilt.config import SECTIONS, Config, ResolveConfig
from kilt.evaluate.estimators import ENDINGS
from kilt.evaluate.values import VALUES
from kilt.games import ready_made_games
from kilt.play.agent import BASELINES, UNLISTED
from kilt.play.net import Limits
from kilt.play.slumbot import ClientConfig
from kilt.solve.counter import CONFIDENCES
from kilt.solve.registry import ALGORITHMS
from kilt.spots.spot import Spot
from kilt.strategy.postprocess import FAMILIES, RULES
from kilt.strategy.translate import MAPPINGS

DOCS = Path(__file__).parents[1] / "docs"
COMMANDS = list(generated.commands())


@pytest.mark.parametrize("words", [words for _, words, _ in COMMANDS])
def test_commands(words):
    """Each command says what it does, and each of its arguments and options what it means."""
    ((panel, _, command),) = [each for each in COMMANDS if each[1] == words]
    assert panel in generated.PANELS
    assert command.help
    for name, text in generated.parameters(words, command):
        assert len(text.partition("[default")[0].split()) > 1, f"{words}: {name} has no help"


def test_page_of_commands():
    page = generated.on_page_markdown((DOCS / "reference" / "commands.md").read_text())
    assert "generated:" not in page
    for _, words, command in COMMANDS:
        (section,) = [part for part in page.split("\n### ") if part.startswith(f"`{words}`\n")]
        for each in command.params:
            assert each.hidden or all(f"{name}" in section for name in each.opts if name.startswith("-")), (words, each)


SET = {words: command for _, words, command in COMMANDS if any("--set" in each.opts for each in command.params)}
KEYS = {  # a command whose `--set` takes the keys of a record that is no section of a configuration
    "kilt dealer": {field.name for field in fields(Limits)},
    "kilt slumbot": {field.name for field in fields(ClientConfig)},
    "kilt abstraction boards": {"clustering", "base", "restarts", "ground", "exact"},
}


@pytest.mark.parametrize("words", SET)
def test_keys_that_set_reaches(words):
    """A command with `--set` names all its keys, or says that they are those of a page of the reference."""
    text = SET[words].help
    named = "every key of a configuration" in text or "every key of a spot" in text
    assert named if words not in KEYS else all(re.search(rf"\b{key}\b", text) for key in KEYS[words])


@pytest.mark.parametrize("kind", [Config, *SECTIONS.values(), Spot], ids=lambda kind: kind.__name__)
def test_keys(kind):
    """Each key of a configuration and of a spot has a sentence in the docstring from which its row is made."""
    for name, (_, text) in generated.keys(kind).items():
        assert text or name in SECTIONS, f"{kind.__name__}.{name} is not described"


def test_modules():
    """Every module says what it is for; the page lists them all, and the table in CONTRIBUTING.md is that of today."""
    page = generated.on_page_markdown((DOCS / "reference" / "modules.md").read_text())
    for path in generated.SOURCE.rglob("*.py"):
        assert generated.purpose(path) and generated.purpose(path) in page, path
    shown = generated.PACKAGES.search(generated.CONTRIBUTING.read_text(encoding="utf-8"))[0]
    assert shown == generated.table_of_packages(), "python docs/generated.py --write"


def test_pages_of_keys():
    page = generated.on_page_markdown((DOCS / "reference" / "configuration.md").read_text())
    for name, kind in SECTIONS.items():
        assert f"\n### `[{name}]`\n" in page
        assert all(f"| `{key}` |" in page for key in generated.keys(kind))
    assert '| `method` | `"gadget"` |' in page and generated.keys(ResolveConfig)["trust"][0] == "0.85"
    assert "| `board` |" in generated.on_page_markdown((DOCS / "guides" / "spots.md").read_text())


@pytest.mark.parametrize(
    ("names", "page"),
    [
        (ALGORITHMS, "reference/algorithms.md"),
        (ready_made_games(), "reference/games.md"),
        (FEATURES, "reference/abstraction-names.md"),
        ({*RULES, *FAMILIES}, "reference/configuration.md"),
        ({name.removeprefix("deterministic-") for name in MAPPINGS}, "reference/configuration.md"),
        (CONFIDENCES, "guides/counter.md"),
        ({*VALUES, *ENDINGS}, "guides/logs.md"),
        (METHODS, "guides/boards.md"),
        ({*BASELINES, *UNLISTED}, "guides/matches.md"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_names(names, page):
    """Names that commands and configurations take."""
    text = generated.on_page_markdown((DOCS / page).read_text())
    assert [name for name in names if f"`{name}" not in text and f'"{name}' not in text] == []
