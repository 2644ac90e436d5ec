"""Read rules from TOML: which keys a row may have, of which type, and what a mistake in one says.

A file holds rows of one or more themes, `[[kernel]]`, `[[copy]]`, `[[call]]`, `[[activity]]`, `[[operator]]`,
`[[stage]]`, `[[carrier]]`, `[[step]]`. Ours lie in `rules/`; a user's file has the same form. `index` makes them
searchable.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole.errors import UsageError
from longpole.vocabulary.forms import split_words
from longpole.vocabulary.objects import (
    ACTIVITY_OBJECTS,
    CALLS,
    COLLECTIVE_KINDS,
    COPY_DIRECTIONS,
    STAGES,
    STEP_KINDS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

THEMES: Final = ("kernel", "copy", "call", "activity", "operator", "stage", "carrier", "step")
DEVICE_THEMES: Final = ("kernel", "copy")

_DEVICE_SELECTORS: Final = ("exact", "match")
_HOST_SELECTORS: Final = ("exact", "prefix", "match", "whole", "phrase", "frame", "function", "builtin")
SELECTORS: Final[Mapping[str, tuple[str, ...]]] = {
    "kernel": _DEVICE_SELECTORS,
    "copy": _DEVICE_SELECTORS,
    "call": _HOST_SELECTORS,
    "activity": _HOST_SELECTORS,
    "operator": _HOST_SELECTORS,
    "stage": _HOST_SELECTORS,
    "carrier": _HOST_SELECTORS,
    "step": ("exact", "prefix", "match"),
}
"""By which keys a row of each theme chooses names."""

_TEXTS: Final = ("name", "means", "source")
_LOOKED_UP: Final = ("prefix", "begins")
_WORDS: Final = ("whole", "phrase")
LOOKED_UP_CHARS: Final = 2
"""Beginnings of names are looked up by this many characters, so no `prefix` or `begins` may be shorter."""

_LISTS: Final = ("needs", "begins", "example", "not")
_OTHER_TABLES: Final = ("settings",)  # one file of the user's may hold both


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a row stands, for messages."""

    file: str
    theme: str
    name: str

    def refuse(self, *, key: str, found: str, hint: str) -> UsageError:
        return UsageError(f"{self.file}: rule {self.name!r} of [[{self.theme}]], key {key!r}: found {found}; {hint}")


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: which names it chooses and what they mean.

    Attributes:
        theme: One of `THEMES`.
        name: The row's own name, unique in its file and theme.
        file: Where the row was read.
        means: One sentence for a person.
        source: Where the names come from: library and version.
        selectors: Key to list of values, for the keys of `SELECTORS`.
        needs: Lower-case texts; `match` is tried on names that hold one of them.
        begins: Texts; `match` is tried on names that begin with one of them. Without both it is always tried.
        values: The keys that say what the name means, by theme.
        examples: Names that the row chooses.
        look_alikes: Names that it leaves alone.
    """

    theme: str
    name: str
    file: str
    means: str
    source: str
    selectors: Mapping[str, tuple[str, ...]]
    needs: tuple[str, ...]
    begins: tuple[str, ...]
    values: Mapping[str, Any]
    examples: tuple[str, ...]
    look_alikes: tuple[str, ...]

    def refuse(self, *, key: str, found: str, hint: str) -> UsageError:
        """Build the error for one key of this row: where, what was found, and what to do."""
        return _Place(self.file, self.theme, self.name).refuse(key=key, found=found, hint=hint)


@dataclass(frozen=True, slots=True)
class _Key:
    """What the value of one key may be: a type, or one of a list of texts."""

    of: type | tuple[str, ...]
    required: bool = False

    def accepts(self, value: object) -> bool:
        if isinstance(self.of, tuple):
            return isinstance(value, str) and value in self.of
        return type(value) is self.of

    def expected(self) -> str:
        if isinstance(self.of, tuple):
            return "one of " + ", ".join(repr(text) for text in self.of)
        return {bool: "true or false", str: "a text", int: "a whole number"}[self.of]


VALUE_KEYS: Final[Mapping[str, Mapping[str, _Key]]] = {
    "kernel": {
        "collective": _Key(bool),
        "kind": _Key(COLLECTIVE_KINDS),
        "family": _Key(str),
        "task": _Key(bool),
        "fused": _Key(bool),
    },
    "copy": {"direction": _Key(COPY_DIRECTIONS, required=True), "pageable": _Key(bool), "pinned": _Key(bool)},
    "call": {"call": _Key(CALLS, required=True)},
    "activity": {
        "object": _Key((*ACTIVITY_OBJECTS, ""), required=True),
        "activity": _Key(str),
        "workers": _Key(bool),
    },
    "operator": {"kind": _Key(COLLECTIVE_KINDS), "backend": _Key(str), "collective": _Key(bool)},
    "stage": {"stage": _Key((*STAGES, ""), required=True)},
    "carrier": {"carries": _Key((*ACTIVITY_OBJECTS, ""), required=True)},
    "step": {"kind": _Key(STEP_KINDS, required=True), "priority": _Key(int, required=True)},
}
"""The keys that say what a name means, by theme."""


def parse_rules(text: str, file: str, *, themes: Iterable[str] = THEMES) -> list[Rule]:
    """Return the rows of a rules file in the file's order.

    Args:
        text: The file's content.
        file: What to call it in a message.
        themes: The tables to read; all by default.

    Raises:
        UsageError: The text is no TOML, or a table, row, key or value is not as described above.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        msg = f"{file}: expected a TOML file with rules, found: {error}. Mend that line"
        raise UsageError(msg) from None
    for table, rows in document.items():
        if table in _OTHER_TABLES:
            continue
        if table not in THEMES or not isinstance(rows, list):
            known = ", ".join(f"[[{theme}]]" for theme in THEMES)
            msg = f"{file}: expected tables {known}; found {table!r}. Write each rule as one such row"
            raise UsageError(msg)
    return [_rule(theme, row, file, number) for theme in themes for number, row in _rows(document, theme)]


def _rows(document: Mapping[str, Any], theme: str) -> Iterable[tuple[int, Any]]:
    return enumerate(document.get(theme, ()), start=1)


def _rule(theme: str, row: object, file: str, number: int) -> Rule:
    if not isinstance(row, dict):
        msg = f"{file}: row {number} of [[{theme}]]: expected a table, found {row!r}. Write [[{theme}]] above its keys"
        raise UsageError(msg)
    place = _Place(file, theme, str(row.get("name", f"number {number}")))
    for key, value in row.items():
        _check_key(place, key, value)
    _check_presence(place, row)
    return Rule(
        theme=theme,
        name=place.name,
        file=file,
        means=row.get("means", ""),
        source=row.get("source", ""),
        selectors={key: tuple(row[key]) for key in SELECTORS[theme] if key in row},
        needs=tuple(text.lower() for text in row.get("needs", ())),
        begins=tuple(row.get("begins", ())),
        values={key: row[key] for key in VALUE_KEYS[theme] if key in row},
        examples=tuple(row.get("example", ())),
        look_alikes=tuple(row.get("not", ())),
    )


def _check_key(place: _Place, key: str, value: object) -> None:
    values = VALUE_KEYS[place.theme]
    if key in _TEXTS:
        if not isinstance(value, str):
            raise place.refuse(key=key, found=repr(value), hint="write a text")
    elif key in (*SELECTORS[place.theme], *_LISTS):
        _check_list(place, key, value)
    elif key in values:
        if not values[key].accepts(value):
            raise place.refuse(key=key, found=repr(value), hint=f"expected {values[key].expected()}")
    else:
        known = ", ".join((*_TEXTS, *SELECTORS[place.theme], *_LISTS, *values))
        raise place.refuse(
            key=key, found="a key that has no meaning here", hint=f"the keys of [[{place.theme}]] are {known}"
        )


def _check_list(place: _Place, key: str, value: object) -> None:
    if not isinstance(value, list) or not all(isinstance(text, str) and text for text in value):
        raise place.refuse(key=key, found=repr(value), hint="write a list of texts that are not empty")
    if key in _LOOKED_UP and min(map(len, value), default=LOOKED_UP_CHARS) < LOOKED_UP_CHARS:
        raise place.refuse(key=key, found=repr(value), hint=f"write texts of at least {LOOKED_UP_CHARS} characters")
    if key in _WORDS and not all(map(split_words, value)):
        raise place.refuse(key=key, found=repr(value), hint="write at least one word of letters in each text")


def _check_presence(place: _Place, row: Mapping[str, Any]) -> None:
    if "name" not in row:
        raise place.refuse(key="name", found="nothing", hint="give the rule a name")
    selectors = SELECTORS[place.theme]
    if not any(row.get(key) for key in selectors):
        raise place.refuse(
            key=selectors[0], found="no key that chooses names", hint=f"give one of {', '.join(selectors)}"
        )
    for key, spec in VALUE_KEYS[place.theme].items():
        if spec.required and key not in row:
            raise place.refuse(key=key, found="nothing", hint=f"expected {spec.expected()}")


def compile_pattern(rule: Rule, pattern: str) -> re.Pattern[str]:
    """Compile one regular expression of a rule; those for device names ignore case.

    Raises:
        UsageError: It is not one.
    """
    try:
        return re.compile(pattern, re.IGNORECASE if rule.theme in DEVICE_THEMES else 0)
    except (re.error, OverflowError, RecursionError) as error:
        raise rule.refuse(key="match", found=repr(pattern), hint=f"not a regular expression: {error}") from None
