"""Symptoms: what people come with, which figures of a report decide, and which causes follow from them.

They are data, `symptoms.toml`. A row is a `[[symptom]]` with its `[[symptom.figure]]` rows; `[language]` says which
words mean the same when a symptom is looked for (`topics`). A mistake names the file, the line and the key.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, fields
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from longpole.errors import UsageError
from longpole.settings import Settings
from longpole.vocabulary.causes import CAUSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SHIPPED: Final = "symptoms.toml"
TAKES: Final = ("value", "largest", "max", "min", "sum", "spread", "trend", "count", "names")
"""What a figure takes from the values that its pointer leads to; see `Figure`."""

_ID: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_POINTER: Final = re.compile(r"(/[^/\s]+)+")
_CANDIDATE: Final = re.compile(r"[a-z]+\.[a-z][a-z0-9_]*")
_SETTINGS: Final = frozenset(setting.name for setting in fields(Settings))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of a report that decides.

    Attributes:
        what: What it is, with its unit where the pointer does not say it.
        at: JSON Pointer into a report; `*` stands for every entry of a list or a map.
        of: Pointer to what it is a share of; empty for none.
        take: `value` as it stands; `largest` entries of a map; `max`, `min`, `sum` of all; `spread`, the largest over
            the median; `trend`, the last third's median over the first third's; `count` of entries that are neither
            0 nor false; `names` that occur, with how often.
        reads: How to read it.
        notable_from: From this value (or share) on it points at its causes: a number, or the name of a setting; None
            where it only orders other figures.
        points_to: Causes that it points at.
        when: Of `names`: a part of a name -> the cause that it points at.
    """

    what: str
    at: str
    reads: str
    of: str = ""
    take: str = "value"
    notable_from: float | str | None = None
    points_to: tuple[str, ...] = ()
    when: Mapping[str, str] = field(default_factory=dict)

    def least(self, settings: Settings) -> float | None:
        """Return the number from which on it is notable; None where there is none."""
        if isinstance(self.notable_from, str):
            return float(getattr(settings, self.notable_from))
        return self.notable_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """What somebody sees, and where it leads.

    Attributes:
        id: Words joined by hyphens.
        says: The symptom in a sentence.
        means: What is behind it, and how to tell.
        words: Phrases that lead to it.
        figures: What decides, in the order in which to look.
        causes: What it may be, the most frequent first.
        candidates: Ids of the catalogue of changes.
        record: What to record where it cannot be decided.
        next: Commands; PATH stands for the run.
    """

    id: str
    says: str
    means: str
    words: tuple[str, ...]
    figures: tuple[Figure, ...]
    causes: tuple[str, ...]
    candidates: tuple[str, ...]
    record: tuple[str, ...]
    next: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Language:
    """How symptoms are looked for.

    Attributes:
        ignore: Words that say nothing of their own.
        same: Word -> the word that stands for it.
    """

    ignore: frozenset[str]
    same: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Symptoms:
    """All symptoms, in the order of the file, and the language to look them up in."""

    rows: tuple[Symptom, ...]
    language: Language

    def by_id(self) -> dict[str, Symptom]:
        """Return id -> symptom."""
        return {row.id: row for row in self.rows}


def load_symptoms() -> Symptoms:
    """Return the shipped symptoms."""
    text = (files("longpole.advice") / SHIPPED).read_text(encoding="utf-8")
    return parse_symptoms(text, SHIPPED)


def parse_symptoms(text: str, file: str) -> Symptoms:
    """Return the symptoms of a file.

    Args:
        text: TOML.
        file: What to call it in a message.

    Raises:
        UsageError: It is not TOML, or has a mistake.
    """
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        msg = f"{file}: expected a TOML file with [[symptom]] tables, found: {error}. Mend that line"
        raise UsageError(msg) from None
    places = list(_places(text))
    for name in document:
        if name not in ("language", "symptom"):
            line = next((line for table, line, _ in places if table.partition(".")[0] == name), 1)
            msg = f"{file}, line {line}: expected [[symptom]] and [language]; found {name!r}"
            raise UsageError(msg)
    tables = document.get("symptom", [])
    if not isinstance(tables, list) or not all(isinstance(row, dict) for row in tables):
        msg = f"{file}: expected 'symptom' to be tables, each under [[symptom]]; found {tables!r:.60}"
        raise UsageError(msg)
    readers = iter([place for place in places if place[0] in ("symptom", "symptom.figure")])
    rows: list[Symptom] = []
    for table in tables:
        row = _read_symptom(table, _Row(file, readers), [seen.id for seen in rows])
        rows.append(row)
    language = _Row(file, iter([place for place in places if place[0].partition(".")[0] == "language"]))
    return Symptoms(tuple(rows), _read_language(document.get("language", {}), language))


def _places(text: str) -> Iterator[tuple[str, int, dict[str, int]]]:
    """Yield each table's name, the line of its header, and key -> line, in the order of the file."""
    current: tuple[str, int, dict[str, int]] = ("", 1, {})
    in_text = False
    for number, line in enumerate(text.splitlines(), 1):
        if in_text:
            in_text = line.count('"""') % 2 == 0
            continue
        in_text = line.count('"""') % 2 == 1
        if header := re.match(r"\s*\[\[?\s*([\w.-]+)\s*\]\]?\s*(#.*)?$", line):
            current = (header[1], number, {})
            yield current
        elif key := re.match(r"""\s*["']?([\w-]+)["']?\s*=""", line):
            current[2].setdefault(key[1], number)


class _Row:
    """One table while it is read: where it stands, for messages."""

    def __init__(self, file: str, places: Iterator[tuple[str, int, dict[str, int]]]) -> None:
        self.file = file
        self.places = places
        self.name = ""
        self.line = 1
        self.lines: dict[str, int] = {}
        self.following()

    def following(self) -> None:
        """Go on to the next table of the file."""
        self.name, self.line, self.lines = next(self.places, (self.name, self.line, {}))

    def refuse(self, *, key: str, found: str, hint: str) -> UsageError:
        """Build the message: where, what was found, and what to do."""
        line = self.lines.get(key, self.line)
        return UsageError(f"{self.file}, line {line}: [[{self.name}]], key {key!r}: found {found}; {hint}")

    def check_keys(self, table: Mapping[str, Any], known: Mapping[str, bool]) -> None:
        """Refuse unknown keys and missing required ones."""
        for key in table:
            if key not in known:
                raise self.refuse(key=key, found="a key that is not known", hint=f"there are {', '.join(known)}")
        for key, is_required in known.items():
            if is_required and key not in table:
                raise self.refuse(key=key, found="nothing", hint="write it: this key is required")

    def text(self, table: Mapping[str, Any], key: str, *, default: str = "") -> str:
        """Return a text that is not empty."""
        value = table.get(key, default)
        if not isinstance(value, str) or (key in table and not value.strip()):
            raise self.refuse(key=key, found=repr(value), hint="write a text")
        return value.strip()

    def texts(self, table: Mapping[str, Any], key: str, *, may_be_empty: bool = False) -> tuple[str, ...]:
        """Return a list of different texts."""
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(text, str) and text.strip() for text in value):
            raise self.refuse(key=key, found=repr(value), hint="write a list of texts")
        if not value and not may_be_empty and key in table:
            raise self.refuse(key=key, found="an empty list", hint="name at least one")
        if len(set(value)) != len(value):
            twice = next(text for text in value if value.count(text) > 1)
            raise self.refuse(key=key, found=f"{twice!r} twice", hint="name each once")
        return tuple(text.strip() for text in value)


_SYMPTOM_KEYS: Final = {
    "id": True,
    "says": True,
    "means": True,
    "words": True,
    "causes": True,
    "candidates": True,
    "record": True,
    "next": True,
    "figure": True,
}
_FIGURE_KEYS: Final = {
    "what": True,
    "at": True,
    "reads": True,
    "of": False,
    "take": False,
    "notable_from": False,
    "points_to": False,
    "when": False,
}


def _read_symptom(table: Mapping[str, Any], row: _Row, seen: list[str]) -> Symptom:
    row.check_keys(table, _SYMPTOM_KEYS)
    name = row.text(table, "id")
    if not _ID.fullmatch(name) or name.replace("-", "_") in CAUSES:
        raise row.refuse(key="id", found=repr(name), hint="write lower-case words with hyphens, and no name of a cause")
    if name in seen:
        raise row.refuse(key="id", found=f"{name!r} again", hint="each id stands once")
    causes = row.texts(table, "causes")
    for cause in causes:
        if cause not in CAUSES:
            raise row.refuse(key="causes", found=repr(cause), hint=f"there are {', '.join(CAUSES)}")
    candidates = row.texts(table, "candidates", may_be_empty=True)
    for candidate in candidates:
        if not _CANDIDATE.fullmatch(candidate):
            raise row.refuse(key="candidates", found=repr(candidate), hint="write ids of the catalogue, object.verb")
    commands = row.texts(table, "next")
    for command in commands:
        if not command.startswith("longpole "):
            raise row.refuse(key="next", found=repr(command), hint="write commands of longpole")
    says, means, words = row.text(table, "says"), row.text(table, "means"), row.texts(table, "words")
    record = row.texts(table, "record")
    figures = table["figure"]
    if not isinstance(figures, list) or not all(isinstance(figure, dict) for figure in figures):
        raise row.refuse(
            key="figure", found=repr(figures), hint="write each figure as a table under [[symptom.figure]]"
        )
    row.following()
    return Symptom(
        id=name,
        says=says,
        means=means,
        words=words,
        causes=causes,
        candidates=candidates,
        record=record,
        next=commands,
        figures=tuple(_read_figure(figure, row, causes) for figure in figures),
    )


def _read_figure(table: Mapping[str, Any], row: _Row, causes: tuple[str, ...]) -> Figure:
    row.check_keys(table, _FIGURE_KEYS)
    take = row.text(table, "take", default="value")
    if take not in TAKES:
        raise row.refuse(key="take", found=repr(take), hint=f"there are {', '.join(TAKES)}")
    pointers = {key: row.text(table, key) for key in ("at", "of")}
    for key, pointer in pointers.items():
        if pointer and not _POINTER.fullmatch(pointer):
            raise row.refuse(
                key=key,
                found=repr(pointer),
                hint="write a JSON Pointer, with * for every entry: /collectives/*/skew_ns",
            )
    if "/*" in pointers["at"] and take == "value":
        raise row.refuse(key="take", found="value of many entries", hint="say which of them is taken, such as max")
    figure = Figure(
        what=row.text(table, "what"),
        at=pointers["at"],
        of=pointers["of"],
        take=take,
        reads=row.text(table, "reads"),
        notable_from=_read_least(table, row),
        points_to=row.texts(table, "points_to", may_be_empty=True),
        when=_read_when(table, row, take),
    )
    for key, pointed in (("points_to", figure.points_to), ("when", tuple(figure.when.values()))):
        for cause in pointed:
            if cause not in causes:
                raise row.refuse(
                    key=key, found=repr(cause), hint="a figure points at causes of its symptom; add it there"
                )
    row.following()
    return figure


def _read_least(table: Mapping[str, Any], row: _Row) -> float | str | None:
    value = table.get("notable_from")
    if isinstance(value, str):
        if value not in _SETTINGS:
            raise row.refuse(key="notable_from", found=repr(value), hint="write a number, or the name of a setting")
        return value
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
        raise row.refuse(
            key="notable_from", found=repr(value), hint="write a number of at least 0, or the name of a setting"
        )
    return float(value) if value is not None else None


def _read_when(table: Mapping[str, Any], row: _Row, take: str) -> dict[str, str]:
    value = table.get("when", {})
    if not isinstance(value, dict) or not all(isinstance(cause, str) and name for name, cause in value.items()):
        raise row.refuse(key="when", found=repr(value), hint="write a table of names and causes")
    if value and take != "names":
        raise row.refuse(
            key="when", found=f"it beside take = {take!r}", hint="only names can be told apart; use points_to"
        )
    return value


def _read_language(table: Any, row: _Row) -> Language:
    if not isinstance(table, dict):
        raise row.refuse(key="language", found=repr(table), hint="write a table [language]")
    row.check_keys(table, {"ignore": False, "same": False})
    ignore = row.texts(table, "ignore", may_be_empty=True)
    same: dict[str, str] = {}
    groups = table.get("same", {})
    if not isinstance(groups, dict):
        raise row.refuse(key="same", found=repr(groups), hint="write a table [language.same]")
    row.following()
    for word in groups:
        for other in row.texts(groups, word):
            if other in same or other in groups:
                raise row.refuse(
                    key=word, found=f"{other!r} for {word!r} and for another word", hint="a word has one meaning here"
                )
            same[other] = word
    return Language(frozenset(ignore), same)
