"""Texts keep to plain English: wording habits that made readers stumble stay out of pages, docstrings and messages."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SUFFIXES = {".md", ".py", ".js", ".html", ".cu", ".cuh", ".toml"}
# Where texts are, and how many places may be left there. Names in code count as well, such as a parameter `beside`.
TEXTS = {("README.md", "CONTRIBUTING.md", "docs", "src", "examples"): 10, ("lab/kilt_lab",): 10}

# Each habit with what to write in its place.
HABITS = {
    r"\b(go|goes|went|gone|going) on (with|from|to|where|as|in)\b": "continue, resume",
    r"\bas (it|they) (is|are|was|were)\b(?! (said|shown|described|called|written))": "unchanged, unabstracted, raw",
    r"\bfore(told|tells?)\b": "predicted, estimated",
    r"\bdear(er|est)?\b": "expensive, slow",
    r"\bof (one's|ours?) own\b|\bthe own\b": "custom, its, the player's",
    r"\bso many\b": "the number itself",
    r"\b(play|plays|played|judged|treated|taken) alike\b": "with the same strategy, in one bucket",
    r"\b(wins?|won|winning|loses?|lost) from\b": "wins against, beats",
    r"\b(are|is|was|were) (told|heard|asked for|let be)\b": "name the actor and the act",
    r"\bwhat (was|were) seen\b|\bfigures seen\b": "measured",
    r"\bwithout end\b": "unlimited",
    r"\bleft out:": "default: X",
    r"\b(can|may|could|might) be had\b": "available",
    r"\bthat (is|are) there\b": "existing",
    r"\b\w*Error where\b": "raises XError if",
    r"\bheld (to|against) (a|the|its|their)\b": "restricted to, compared with",
    r"\bbeside\b(?!s)": "next to, in addition to",
    r"\b(told|tells?) apart\b": "distinguished, distinguishes",
    r"\b(whoever|whosoever|he who|who does so)\b": "name the role",
    r"\bon (one's|its) way\b": "meanwhile, during the walk",
    r"\bby the way that\b": "with the method that",
    r"\bwhat (one|it|they|both|all) (is|are|do|does|did|wins?|takes?|learns?|has|have|knows?)\b": "name the thing",
    r"\bnobody\b": "no player, no worker",
    r"\ball of it\b|\ball that\b": "everything in X, or the noun",
    r"\b(comes?|came) (to it|to them|by itself|out so)\b": "reaches, follows",
    r"\banew\b": "again",
    r"\bit does (not )?so\b|\bdoes it that\b": "say what it does",
    r"\bin small\b(?! (games?|steps|parts|pieces))": "a small version of",
    r"\bhow (dear|large|long|good|many) (it|that|they|this)\b": "the cost, the size, the number",
    r'"""(And back|Of both|Likewise|The other way)\b': "a docstring that stands alone",
}
RULES = [(re.compile(habit, re.IGNORECASE), plain) for habit, plain in HABITS.items()]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of a page outside blocks of code; comments, docstrings and messages of a module; any other line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        fenced = False
        for number, line in enumerate(text.splitlines(), 1):
            fenced ^= line.lstrip().startswith("```")
            if not fenced:
                yield number, line
    elif path.suffix == ".py":
        kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in kinds and " " in token.string:
                yield from enumerate(token.string.splitlines(), token.start[0])
    else:
        yield from enumerate(text.splitlines(), 1)


def places(roots: tuple[str, ...]) -> list[str]:
    """Where a habit is found, with the plain wording."""
    found = []
    for root in roots:
        files = [ROOT / root] if (ROOT / root).is_file() else sorted((ROOT / root).rglob("*"))
        for path in files:
            if path.suffix in SUFFIXES and path.is_file():
                for number, line in prose(path):
                    for rule, plain in RULES:
                        if hit := rule.search(line):
                            found.append(f"{path.relative_to(ROOT)}:{number}: {hit[0]!r}, better: {plain}")
    return found


@pytest.mark.parametrize(("roots", "most"), TEXTS.items(), ids=lambda value: str(value))
def test_texts_are_in_plain_english(roots, most):
    found = places(roots)
    assert len(found) <= most, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "hits"),
    [
        ('"""PlayError where it does not."""', 1),
        ('"""Raises PlayError if it does not."""', 0),
        ("# nobody goes on with it", 2),
        ("x = beside(3)  # two rows", 0),
        ('y = f"{x} is left out: {y}"', 1),
    ],
)
def test_habits_are_found_in_comments_and_strings_alone(tmp_path, text, hits):
    path = tmp_path / "module.py"
    path.write_text(text + "\n")
    assert sum(bool(rule.search(line)) for _, line in prose(path) for rule, _ in RULES) == hits
