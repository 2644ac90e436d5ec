"""Lines of a journal: bytes to entries and back; a line that is none says why, and costs no other line."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass, field
from typing import Final

import msgspec

from longpole.records.journal import (
    BETTER,
    DECISIONS,
    SCOPES,
    VERSION,
    DamagedLine,
    Entry,
)
from longpole.records.strict_json import encodable
from longpole.records.verdict import VERDICTS

_MARKERS: Final = (b"<<<<<<< ", b"||||||| ", b">>>>>>> ")
_MIDDLE: Final = b"======="
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_DECODER: Final = msgspec.json.Decoder(Entry)


class _Versioned(msgspec.Struct):
    """The part of an entry that every version has."""

    v: int


_VERSION_DECODER: Final = msgspec.json.Decoder(_Versioned)


@dataclass(frozen=True, slots=True)
class Journal:
    """What a journal file holds.

    Attributes:
        entries: In the order of the file.
        lines: The line of each entry, from 1.
        damaged: Lines that are no entries.
    """

    entries: list[Entry] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    damaged: list[DamagedLine] = field(default_factory=list)


def read_lines(data: bytes) -> Journal:
    """Read the bytes of a journal; empty lines are passed over."""
    journal = Journal()
    for number, raw in enumerate(data.removeprefix(_BYTE_ORDER_MARK).split(b"\n"), start=1):
        line = raw.strip(b" \t\r")
        if not line:
            continue
        found = read_line(line)
        if isinstance(found, Entry):
            journal.entries.append(found)
            journal.lines.append(number)
        else:
            journal.damaged.append(DamagedLine(number, found))
    return journal


def read_line(line: bytes) -> Entry | str:
    """Read one line: an entry, or why it is none."""
    if line.startswith(_MARKERS) or line == _MIDDLE:
        return "a mark that a merge left behind; both sides' entries stay, so delete this line"
    try:
        version = _VERSION_DECODER.decode(line).v
        if version > VERSION:
            return f"an entry of version {version}, and this Longpole reads up to {VERSION}; update it"
        entry = _DECODER.decode(line)
    except msgspec.ValidationError as error:
        return f"not an entry: {error}; restore the line from its history"
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"not JSON: {error}; restore the line from its history"
    problem = problem_of(entry)
    return f"not an entry: {problem}; restore the line from its history" if problem else entry


def write_line(entry: Entry) -> bytes:
    """Write an entry as one line, with its line end.

    Text that UTF-8 cannot carry (a lone surrogate, as in a file name of another encoding) is written as its escape.
    """
    try:
        return msgspec.json.encode(entry) + b"\n"
    except UnicodeEncodeError:
        plain = msgspec.convert(encodable(msgspec.to_builtins(entry)), Entry)
        return msgspec.json.encode(plain) + b"\n"


def problem_of(entry: Entry) -> str:
    """Say what contradicts the form of an entry beyond its types; empty where nothing does."""
    return next((says for says in (*_problems_of_words(entry), *_problems_of_figures(entry)) if says), "")


def _problems_of_words(entry: Entry) -> tuple[str, ...]:
    return (
        "" if entry.id else "expected an id, found an empty one",
        "" if entry.title.strip() else "expected a title, found an empty one",
        "" if is_date(entry.date) else f"expected a date such as 2026-11-30, found {entry.date!r}",
        _not_one_of("decision", entry.decision, DECISIONS),
        _not_one_of("verdict", entry.verdict, VERDICTS),
        "" if entry.records or entry.no_record else "expected records, or a reason under no_record; found neither",
    )


def _problems_of_figures(entry: Entry) -> tuple[str, ...]:
    problems = []
    if isinstance(entry.expected, msgspec.Struct):
        problems.append(_not_positive("expected.speedup", entry.expected.speedup))
    if isinstance(entry.measured, msgspec.Struct):
        measured = entry.measured
        problems.append(_not_positive("measured.speedup", measured.speedup))
        problems += [
            _not_positive(f"measured.{name}", figure)
            for name in ("low", "high", "before", "after")
            if isinstance(figure := getattr(measured, name), float | int)
        ]
        if isinstance(measured.low, float) and isinstance(measured.high, float) and measured.low > measured.high:
            problems.append(f"the interval ends at {measured.high} before it begins at {measured.low}")
        problems.append(_not_one_of("measured.better", measured.better, ("", *BETTER)))
        problems.append(_not_one_of("measured.scope", measured.scope, ("", *SCOPES)))
    return tuple(problems)


def _not_one_of(name: str, value: str, words: tuple[str, ...]) -> str:
    return "" if value in words else f"expected {name} to be {' or '.join(filter(None, words))}, found {value!r}"


def _not_positive(name: str, value: float) -> str:
    return "" if math.isfinite(value) and value > 0 else f"expected {name} to be above 0, found {value}"


def is_date(text: str) -> bool:
    """Tell whether a text is a day, or an instant in UTC.

    >>> is_date("2026-11-30"), is_date("2026-11-30T12:00:00Z"), is_date("30.11.2026")
    (True, True, False)
    """
    form = "%Y-%m-%dT%H:%M:%SZ" if "T" in text else "%Y-%m-%d"
    try:
        # What is written must be what is read: `strptime` also takes 2026-1-3.
        return datetime.datetime.strptime(text, form).replace(tzinfo=datetime.UTC).strftime(form) == text
    except ValueError:
        return False
