r"""Records: frozen dataclasses that check their values and can be written as TOML.

Configurations of runs (`kilt.config`) and plans of abstractions (`kilt.abstraction.plan`) are records. A field is a
string, a number with bounds, a bool, another record, or a tuple of records. Error messages contain the name, the value
and the accepted values, whether the value came from a file, from a dict or from Python.

>>> @dataclass(frozen=True)
... class Oven(Record):
...     ERROR_CLASS, DISPLAY_NAME = KiltError, "the oven"
...     degrees: int = bounded(180, 20)
>>> record_of(Oven, {"degrees": 220}).toml()
'degrees = 220\n'
>>> Oven(7)
Traceback (most recent call last):
kilt.errors.KiltError: `degrees` in the oven is 7: give 20 or more
"""

from __future__ import annotations

import re
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, replace
from inspect import getdoc
from math import inf
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

from kilt.errors import KiltError, shortened

T = TypeVar("T", bound="Record")
# The accepted types of a scalar, its description, and that of a list of such scalars.
SCALARS: dict[type, tuple[tuple[type, ...], str, str]] = {
    str: ((str,), "a text", "a list of texts"),
    bool: ((bool,), "true or false", "a list of true and false"),
    int: ((int,), "a whole number", "a list of whole numbers"),
    float: ((int, float), "a number", "a list of numbers"),
}
MOST = 2**63 - 1
_HINTS: dict[type, dict[str, Any]] = {}  # types of fields by record and name: annotations take long to evaluate


def bounded(default: Any, least: float, most: float = MOST) -> Any:
    """Declare a field of a record whose value is a number between two bounds, or a tuple of such numbers.

    By default, `least` is 0 for a number. Integers have 64 bits, as in TOML.
    """
    return field(default=default, metadata={"least": least, "most": most})


def chosen(default: Any, among: Iterable[str]) -> Any:
    """Declare a field of a record whose value is one of several words."""
    return field(default=default, metadata={"among": tuple(among)})


def checked(default: Any, check: Callable[[Any], None]) -> Any:
    """Declare a field of a record whose value is checked by a function, which raises an error."""
    return field(default=default, metadata={"check": check})


def for_players(example: str) -> Any:
    """Declare a field of a record with one text for both players, or a list of one for each, such as `example`."""
    return field(default=(), metadata={"example": example})


@dataclass(frozen=True)
class Record:
    """Base class of records: frozen dataclasses that check their values, and can be written as TOML.

    The value of a record field may be given as a mapping, and that of a tuple as a list, or as its only element.
    """

    ERROR_CLASS: ClassVar[type[KiltError]]  # the error class
    DISPLAY_NAME: ClassVar[str]  # its name in error messages
    EXAMPLE: ClassVar[str] = ""  # the command that prints one

    def __post_init__(self) -> None:
        for one in fields(self):
            value = _stored(type(self), one, getattr(self, one.name))
            object.__setattr__(self, one.name, value)
            _require(type(self), one, value)

    def toml(self) -> str:
        """Return the record as TOML text, from which it can be parsed again."""
        import tomli_w

        return tomli_w.dumps(asdict(self))


def record_of(kind: type[T], data: object) -> T:
    """Create a record from a mapping, such as a parsed TOML file.

    Parameters
    ----------
    kind : type
        The class of the record.
    data : Mapping
        A value for each field; fields with a default may be omitted. The value of a record field is the data of a
        record; that of a tuple of records is a list of such data, or the data of a single record.

    Returns
    -------
    Record
        The record.

    Raises
    ------
    KiltError
        Of the class `kind.ERROR_CLASS`: if a key is unknown or missing, or a value has a wrong type or is out of
        bounds.
    """
    known = {one.name: one for one in fields(kind)}
    if not isinstance(data, Mapping):
        raise kind.ERROR_CLASS(f"{kind.DISPLAY_NAME} is {data!r}: it has lines such as `{next(iter(known))} = …`")
    _require_known(kind, data)
    needed = {name for name, one in known.items() if one.default is one.default_factory is MISSING}
    if missing := sorted(needed - set(data)):
        raise kind.ERROR_CLASS(
            f"{' and '.join(missing)} must be given in {kind.DISPLAY_NAME}: {kind.EXAMPLE} shows how"
        )
    return kind(**data)


def replaced(record: T, values: Mapping[str, object]) -> T:
    """Return a copy of a record with new values for some fields.

    A key such as "solver.threads" names a field of a nested record. The value None leaves a key unchanged.

    >>> from kilt.config import Config
    >>> config = replaced(Config("leduc", "lossless"), {"near": 1, "solver.seed": 3})
    >>> config.near, config.solver.seed
    (1, 3)
    """
    _require_known(type(record), {key.partition(".")[0] for key in values})
    given = {key: value for key, value in values.items() if value is not None}
    found = replace(record, **{key: value for key, value in given.items() if "." not in key})
    inner: dict[str, dict[str, object]] = {}
    for name, dot, rest in (key.partition(".") for key in given):
        if dot:
            inner.setdefault(name, {})[rest] = given[name + dot + rest]
    sections: dict[str, Any] = {}
    for name, some in inner.items():
        section = getattr(found, name)
        if not isinstance(section, Record):
            raise record.ERROR_CLASS(f"`{name}` in {record.DISPLAY_NAME} has no keys of its own: set {name} itself")
        sections[name] = replaced(section, some)
    return replace(found, **sections)


def parsed(kind: type[Record], name: str, text: str) -> object:
    """Convert text to the value of a record's field. Commas separate elements of a tuple.

    Raises KeyError if there is no such field, and ValueError if the text is no number, but the field is.

    >>> from kilt.config import ResolveConfig
    >>> parsed(ResolveConfig, "rounds", "turn,river"), parsed(ResolveConfig, "iterations", "100")
    (('turn', 'river'), 100)
    """
    hint, several = _hint(kind, name)
    return tuple(map(hint, text.split(","))) if several else hint(text)


def field_descriptions(kind: type[Record]) -> dict[str, str]:
    """Return the description of each field of a record, from the class's docstring.

    >>> from kilt.config import EngineConfig
    >>> field_descriptions(EngineConfig)["address"]
    'HOST:PORT of an existing Ray cluster; empty: start one on this machine.'
    """
    _, _, text = (getdoc(kind) or "").partition("Parameters\n----------\n")
    told = re.findall(r"^(\w+(?:, \w+)*) : .*\n((?:    .*\n?)*)", text.partition("\n\n")[0] + "\n", re.MULTILINE)
    found = {name: " ".join(words.split()) for names, words in told for name in names.split(", ")}
    return {one.name: found.get(one.name, "") for one in fields(kind)}


def commented_toml(kind: type[Record], data: Mapping[str, Any]) -> str:
    """Return a TOML text with all fields of a record, each with a comment that describes it.

    Parameters
    ----------
    kind : type
        The class of the record.
    data : Mapping
        Values that differ from the defaults. Nested records without such values are omitted.
    """
    import tomli_w

    plain, sections = [], []
    words = field_descriptions(kind)
    for one in fields(kind):
        hint, several = _hint(kind, one.name)
        if issubclass(hint, Record) and not several:
            if one.name in data:
                sections.append(f"\n[{one.name}]\n{commented_toml(hint, data[one.name])}")
            continue
        comment = textwrap.fill(words[one.name].replace("``", ""), 100, initial_indent="# ", subsequent_indent="# ")
        value = data.get(one.name, one.default)
        plain.append(f"{comment}\n{tomli_w.dumps({one.name: value})}")
    return "".join([*plain, *sections])


def read_toml(path: Path, complaint: type[KiltError]) -> dict[str, Any]:
    """Read a TOML file into a dict.

    Raises an error of class `complaint` if that fails.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise complaint(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    except ValueError as error:  # not UTF-8
        raise complaint(f"{path} is not TOML: {error}") from None
    return parse_toml(text, str(path), complaint)


def parse_toml(text: str, source: str, complaint: type[KiltError]) -> dict[str, Any]:
    """Parse TOML text into a dict.

    If that fails, raises an error of class `complaint` that names the `source`.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, or too large numbers, or too deep nesting
        raise complaint(f"{source} is not TOML: {error}") from None


def _require_known(kind: type[Record], names: Iterable[object]) -> None:
    """Raise an error for keys that a record does not have."""
    known = [one.name for one in fields(kind)]
    if others := sorted({*map(str, names)} - {*known}):
        what = "key" if len(others) == 1 else "keys"
        raise kind.ERROR_CLASS(f"{kind.DISPLAY_NAME} has no {what} {', '.join(others)}: use {', '.join(known)}")


def _hint(kind: type[Record], name: str) -> tuple[Any, bool]:
    """Return the type of a field, and whether it is a tuple of that type."""
    if kind not in _HINTS:
        _HINTS[kind] = get_type_hints(kind)
    hint = _HINTS[kind][name]
    return (get_args(hint)[0], True) if get_origin(hint) is tuple else (hint, False)


def _stored(kind: type[Record], own: Field[Any], value: object) -> object:
    """Return the value of a field as a record stores it: records from mappings, and tuples from lists.

    Values of other types are returned unchanged, and refused later.
    """
    hint, several = _hint(kind, own.name)
    if not several:
        return record_of(hint, value) if issubclass(hint, Record) and not isinstance(value, hint) else value
    if example := own.metadata.get("example"):
        texts = [value] if isinstance(value, str) else value
        if isinstance(texts, list | tuple) and len(texts) <= 2 and all(isinstance(one, str) for one in texts):
            return tuple(dict.fromkeys(texts))
        raise kind.ERROR_CLASS(
            f"`{own.name}` is {value!r}: give a text such as {example!r}, or a list of one for each player"
        )
    if isinstance(value, Mapping if issubclass(hint, Record) else SCALARS[hint][0]):
        value = [] if value == 0 else [value]
    if not isinstance(value, list | tuple):
        return value
    if not issubclass(hint, Record):
        return tuple(float(one) if hint is float and _fits(float, one) else one for one in value)
    made = []
    for number, one in enumerate(value, start=1):
        data = isinstance(value, list) or isinstance(one, Mapping)
        try:
            made.append(record_of(hint, one) if data and not isinstance(one, hint) else one)
        except hint.ERROR_CLASS as error:
            raise hint.ERROR_CLASS(f"{own.name.removesuffix('s')} {number}: {error}") from None
    return tuple(made)


def _fits(hint: Any, value: object) -> bool:
    """Return whether a value has the type of a field, or of an element of a tuple."""
    if issubclass(hint, Record):
        return isinstance(value, hint)
    return isinstance(value, SCALARS[hint][0]) and (hint is bool or not isinstance(value, bool))


def _require(kind: type[Record], own: Field[Any], value: Any) -> None:
    """Raise the error class of a record if the value of a field has a wrong type or is out of bounds."""
    hint, several = _hint(kind, own.name)
    stands = f"`{own.name}` in {kind.DISPLAY_NAME} is {shortened(repr(value))}"
    is_record, elements = issubclass(hint, Record), value if several else (value,)
    if not isinstance(elements, tuple) or not all(_fits(hint, one) for one in elements):
        one, many = (f"the values of {hint.DISPLAY_NAME}", "a list") if is_record else SCALARS[hint][1:]
        raise kind.ERROR_CLASS(f"{stands}: it takes {many if several else one}")
    if is_record:
        if len(elements) < (least := own.metadata.get("least", 0)):
            raise kind.ERROR_CLASS(f"{stands}: give {least} or more")
        return
    for one in elements:
        if hint in (int, float) and (fault := _out_of_bounds(one, hint, **own.metadata)):
            raise kind.ERROR_CLASS(f"{stands}: {fault}")
        if (among := own.metadata.get("among")) and one not in (own.default, *among):
            raise kind.ERROR_CLASS(f"{stands}: use one of {', '.join(among)}")
    if check := own.metadata.get("check"):
        check(value)


def _out_of_bounds(value: float, hint: Any, least: float = 0, most: float = MOST, **_: object) -> str:
    """Return what to give instead of a number that is out of bounds, or an empty text."""
    if hint is float and most < MOST:
        return "" if least <= value <= most else f"give {least:g} to {most:g}"
    if not least <= value < inf:
        return f"give {least} or more"
    return f"give {most:,} at most" if isinstance(value, int) and value > most else ""
