"""The catalogue of changes worth trying: its rows, and reading them from TOML (DESIGN 3.11).

Ours is `catalogue.toml`; a user's file of the same form adds rows, changes keys of a row that is there (same id), or
takes one out (`off = true`). A mistake names the file, the line and the key.
"""

from __future__ import annotations

import functools
import re
import tomllib
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from longpole.advice.conditions import Condition
from longpole.advice.fillings import PLACEHOLDERS, placeholders_of
from longpole.errors import UsageError
from longpole.vocabulary.causes import CAUSES
from longpole.vocabulary.objects import IDLE_REASONS, OBJECTS
from longpole.whatif.change import parse_change
from longpole.whatif.selector import ALL_STAGES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SHIPPED: Final = "catalogue.toml"
TABLES: Final = ("change", "layout", "scenario")
"""What a row is: a change to the program, another layout over ranks, or a path of bytes that is to be recorded."""

_ID: Final = re.compile(r"[a-z]+\.[a-z][a-z0-9_]*")
_OTHER_TABLES: Final = ("settings",)
_LAYOUT_ONLY: Final = ("spreads", "exposes", "pairs")


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One row of the catalogue: a change and its contract of evidence.

    Attributes:
        id: `object.verb`.
        object: What it is about, one of `OBJECTS`.
        stage: Where in the unit, empty for everywhere.
        says: The change in a sentence.
        answers: Causes that it answers; a finding of one of them makes it apply.
        applies_when: Without such a finding it applies where all of these hold.
        needs_figures: A finding is not enough: all of `applies_when` must hold.
        not_when: It is silent where one of these holds, each with its `why`.
        effort: `low`, `medium` or `high`.
        buys: What it is for: `time`, or `memory`, which may cost time.
        change: Options of `longpole whatif` that stand for it; placeholders in braces are filled from the run.
        of_finding: Causes that it removes altogether: the options that a finding of one of them names are replayed
            instead, and what the finding costs is the prediction where they cannot be.
        no_change: Why nothing can be replayed; required where `change` is empty.
        assumes: What the prediction assumes.
        must_record: Fields without which it cannot be judged.
        proved_by: What proves it.
        cannot_replace: The measurement that nothing can replace.
        costs: What it takes, and its side effects.
        part: What must shrink: an object, `stage:NAME` or `idle:REASON`.
        conflicts: Rows that exclude it.
        references: Where to read on: addresses.
        check_with: Commands of Longpole that say beforehand what it would bring here, or which value to choose.
        spreads: Of a layout: what it spreads over ranks.
        exposes: Of a layout: what it puts on the path instead.
        pairs: Of a layout: what must be measured together.
        off: Take the row out; of a user's file.
        table: One of `TABLES`.
    """

    id: str
    object: str
    says: str
    effort: Literal["low", "medium", "high"]
    must_record: list[str]
    proved_by: list[str]
    cannot_replace: str
    costs: list[str]
    part: str
    references: list[str]
    stage: str = ""
    answers: list[str] = []
    applies_when: list[Condition] = []
    needs_figures: bool = False
    not_when: list[Condition] = []
    buys: Literal["time", "memory"] = "time"
    change: list[str] = []
    of_finding: list[str] = []
    no_change: str = ""
    assumes: list[str] = []
    conflicts: list[str] = []
    check_with: list[str] = []
    spreads: list[str] = []
    exposes: list[str] = []
    pairs: list[str] = []
    off: bool = False
    table: str = "change"


class _Raw(msgspec.Struct, frozen=True):
    """A row as it stands in a file: its keys, and the line of each."""

    file: str
    table: str
    number: int
    line: int
    keys: dict[str, Any]
    lines: dict[str, int]

    def refuse(self, *, key: str, found: str, hint: str, whose: _Raw | None = None) -> UsageError:
        """Build the message: where, what was found, and what to do."""
        name = self.keys.get("id")
        row = f"row {name!r}" if isinstance(name, str) else f"row {self.number}"
        line = self.lines.get(key) or (whose.lines.get(key) if whose is not None else None) or self.line
        file = whose.file if whose is not None and key not in self.lines and key in whose.lines else self.file
        return UsageError(f"{file}, line {line}: {row} of [[{self.table}]], key {key!r}: found {found}; {hint}")


def load_catalogue(path: Path | None = None) -> list[Row]:
    """Return the shipped rows, with a user's file over them.

    Args:
        path: The user's file, None for none.

    Raises:
        UsageError: The file cannot be read, is not TOML, or has a mistake; the message names line and key.
    """
    if path is None:
        return list(_shipped_rows())
    return _merged([*_shipped_raws(), *_raw_rows(_read(path), str(path))])


@functools.cache
def _shipped_raws() -> tuple[_Raw, ...]:
    shipped = files("longpole.advice") / SHIPPED
    return tuple(_raw_rows(shipped.read_text(encoding="utf-8"), SHIPPED))


@functools.cache
def _shipped_rows() -> tuple[Row, ...]:
    return tuple(_merged(list(_shipped_raws())))


def parse_catalogue(text: str, file: str) -> list[Row]:
    """Return the rows of one file on its own.

    Args:
        text: The file's content.
        file: What to call it in a message.

    Raises:
        UsageError: It is not TOML, or has a mistake.
    """
    return _merged(list(_raw_rows(text, file)))


def conflicts_of(rows: Sequence[Row]) -> dict[str, set[str]]:
    """Return id -> ids that it excludes, in both directions."""
    pairs: dict[str, set[str]] = {row.id: set(row.conflicts) for row in rows}
    for row in rows:
        for other in row.conflicts:
            pairs[other].add(row.id)
    return pairs


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: expected a TOML file with rows of a catalogue, found: {error}"
        raise UsageError(msg) from None


def _raw_rows(text: str, file: str) -> Iterator[_Raw]:
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        msg = f"{file}: expected a TOML file with rows of a catalogue, found: {error}. Mend that line"
        raise UsageError(msg) from None
    places = _places(text)
    for table, rows in document.items():
        if table in _OTHER_TABLES:
            continue
        if table not in TABLES or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            known = ", ".join(f"[[{name}]]" for name in TABLES)
            line = next(
                (
                    n
                    for n, text_ in enumerate(text.splitlines(), 1)
                    if re.match(rf"\s*\[*\s*{re.escape(table)}\b", text_)
                ),
                1,
            )
            msg = f"{file}, line {line}: expected tables {known}; found {table!r}. Write each row as one such table"
            raise UsageError(msg)
        for number, row in enumerate(rows, 1):
            line, lines = places.get((table, number), (1, {}))
            yield _Raw(file, table, number, line, row, lines)


def _places(text: str) -> dict[tuple[str, int], tuple[int, dict[str, int]]]:
    """Return (table, number) -> the line of its header and those of its keys."""
    places: dict[tuple[str, int], tuple[int, dict[str, int]]] = {}
    counts: dict[str, int] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\[\s*([\w-]+)\s*\]\]", line):
            name = header[1]
            counts[name] = counts.get(name, 0) + 1
            lines = {}
            places[name, counts[name]] = (number, lines)
        elif key := re.match(r"\s*(?:\"([^\"]+)\"|'([^']+)'|([\w-]+))\s*=", line):
            lines.setdefault(key[1] or key[2] or key[3], number)
    return places


def _merged(raws: list[_Raw]) -> list[Row]:
    """Lay later rows over earlier ones of the same id, and check what comes out."""
    by_id: dict[str, _Raw] = {}
    beneath: dict[str, _Raw] = {}
    for raw in raws:
        name = raw.keys.get("id")
        if not isinstance(name, str):
            found = "nothing" if name is None else repr(name)
            raise raw.refuse(key="id", found=found, hint="give the row an id such as 'input.prefetch'")
        before = by_id.get(name)
        if before is not None and before.file == raw.file:
            hint = f"line {before.line} has a row of that id already; give it another"
            raise raw.refuse(key="id", found=repr(name), hint=hint)
        if before is not None and before.table != raw.table:
            hint = f"that row is a [[{before.table}]]; write it under that table"
            raise raw.refuse(key="id", found=repr(name), hint=hint)
        if before is not None:
            beneath[name] = before
            raw = _Raw(raw.file, raw.table, raw.number, raw.line, before.keys | raw.keys, raw.lines)  # noqa: PLW2901
        by_id[name] = raw
    rows = [(_row(raw, beneath.get(name)), raw) for name, raw in by_id.items()]
    known = {row.id for row, _ in rows if not row.off}
    gone = {row.id for row, _ in rows if row.off}
    for row, raw in rows:
        for other in row.conflicts:
            if other not in known | gone or other == row.id:
                hint = "name the id of another row"
                raise raw.refuse(key="conflicts", found=repr(other), hint=hint, whose=beneath.get(row.id))
    kept = [row for row, _ in rows if not row.off]
    return [msgspec.structs.replace(row, conflicts=[i for i in row.conflicts if i in known]) for row in kept]


def _row(raw: _Raw, beneath: _Raw | None) -> Row:
    if "table" in raw.keys:
        raise raw.refuse(key="table", found="a key that has no meaning here", hint="the table's name says it")
    try:
        row = msgspec.convert(raw.keys | {"table": raw.table}, Row)
    except msgspec.ValidationError as error:
        raise _of_type(raw, str(error), beneath) from None
    for key, found, hint in _mistakes(row):
        raise raw.refuse(key=key, found=found, hint=hint, whose=beneath)
    return row


def _of_type(raw: _Raw, text: str, beneath: _Raw | None) -> UsageError:
    """Turn what msgspec says into a message that names the key."""
    path = re.search(r"at `\$\.?([\w-]*)(.*)`$", text)
    named = re.search(r"(?:missing required|contains unknown) field `([^`]+)`", text)
    key = path[1] if path and path[1] else (named[1] if named else "id")
    problem = text.partition(" - at ")[0]
    if named and not (path and path[1]):
        if "missing" in text:
            return raw.refuse(key=key, found="nothing", hint="every row has this key", whose=beneath)
        known = ", ".join(field for field in Row.__struct_fields__ if field != "table")
        return raw.refuse(key=key, found="a key that has no meaning here", hint=f"the keys are {known}", whose=beneath)
    where = f" (at {key}{path[2]})" if path and path[2] else ""
    hint = f"{problem[:1].lower()}{problem[1:]}{where}"
    return raw.refuse(key=key, found=f"{raw.keys.get(key)!r:.120}", hint=hint, whose=beneath)


def _mistakes(row: Row) -> Iterator[tuple[str, str, str]]:
    """Yield (key, what was found, what to do) for what is wrong with a row."""
    if not _ID.fullmatch(row.id) or row.id.partition(".")[0] != row.object:
        yield "id", repr(row.id), f"an id is the row's object, a dot and a verb: '{row.object}.verb'"
    yield from _word_mistakes(row)
    if not (row.answers or row.applies_when):
        yield "applies_when", "nothing", "say when the row applies, or which causes it answers"
    for cause in row.of_finding:
        if cause not in row.answers:
            yield "of_finding", repr(cause), "expected causes that the row answers"
    yield from _condition_mistakes(row)
    yield from _change_mistakes(row)
    yield from _text_mistakes(row)
    for key in _LAYOUT_ONLY:
        if bool(getattr(row, key)) != (row.table == "layout"):
            hint = "every layout says this" if row.table == "layout" else "only a [[layout]] says this"
            yield key, repr(getattr(row, key)), hint


def _word_mistakes(row: Row) -> Iterator[tuple[str, str, str]]:
    """Check the keys whose values are words of a closed list."""
    if row.object not in OBJECTS:
        yield "object", repr(row.object), f"expected one of {', '.join(OBJECTS)}"
    if row.stage and row.stage not in ALL_STAGES:
        yield "stage", repr(row.stage), f"expected one of {', '.join(ALL_STAGES)}"
    if not _is_part(row.part):
        yield "part", repr(row.part), "expected an object, stage:NAME or idle:REASON"
    for cause in row.answers:
        if cause not in CAUSES:
            yield "answers", repr(cause), f"expected causes of the vocabulary: {', '.join(CAUSES)}"


def _text_mistakes(row: Row) -> Iterator[tuple[str, str, str]]:
    for key in ("says", "must_record", "proved_by", "cannot_replace", "references"):
        value = getattr(row, key)
        if not value or (isinstance(value, list) and not all(value)):
            yield key, repr(value), "expected a text that is not empty"
    for address in row.references:
        if not address.startswith("https://"):
            yield "references", repr(address), "expected addresses that begin with https://"


def _condition_mistakes(row: Row) -> Iterator[tuple[str, str, str]]:
    if not row.not_when:
        yield "not_when", "nothing", "say when the row is not worth trying: every change has such a case"
    for key in ("applies_when", "not_when"):
        for condition in getattr(row, key):
            if mistake := condition.mistake():
                yield key, repr(condition.figure), mistake
            if key == "not_when" and not condition.why:
                yield key, repr(condition.figure), "say why in a clause: why = '…'"


def _change_mistakes(row: Row) -> Iterator[tuple[str, str, str]]:
    if bool(row.change) == bool(row.no_change):
        yield "no_change", repr(row.no_change), "give either a change, or why nothing can be replayed"
    for text in row.change:
        unknown = sorted(placeholders_of(text) - PLACEHOLDERS.keys())
        if unknown:
            yield "change", repr(text), f"no placeholder is called {unknown[0]}; there are {', '.join(PLACEHOLDERS)}"
            continue
        filled = text
        for name in placeholders_of(text):
            filled = filled.replace(f"{{{name}}}", PLACEHOLDERS[name].example)
        try:
            parse_change(filled)
        except UsageError as error:
            yield "change", repr(text), str(error)


def _is_part(part: str) -> bool:
    sort, _, name = part.partition(":")
    if not name:
        return sort in OBJECTS
    return (sort == "stage" and name in ALL_STAGES) or (sort == "idle" and name in IDLE_REASONS)
