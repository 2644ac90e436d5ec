"""Events in CSV: a line with the keys, then a line for each event; an empty cell is a key that is left out."""

from __future__ import annotations

import csv
import io
import re
from typing import Final

from longpole.costs.declared_fields import EVENT_FIELDS
from longpole.readers.declared_events.raw import DecodingError, RawEvent, RawFile

DELIMITERS: Final = (",", ";", "\t")
_WHOLE: Final = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_WHOLE_AS_FLOAT: Final = re.compile(r"([+-]?\d{1,40})\.0*", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity|nan)", re.ASCII | re.IGNORECASE)
_FLAGS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_VALUES_OF: Final = {field.name: field.values for field in EVENT_FIELDS}


def decode_csv(text: str) -> RawFile:
    """Read events from CSV, with commas, semicolons or tabs between the cells.

    Raises:
        DecodingError: It is no CSV, or its first line holds no keys, or one twice.
    """
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(text), strict=True)
    try:
        names = [name.strip() for name in next(reader, [])]
        doubled = sorted({name for name in names if name and names.count(name) > 1})
        if doubled:
            msg = f"the column {doubled[0]!r} is there twice"
            raise DecodingError(msg, 1)
        while names and not names[-1]:
            names.pop()
        if not all(names):
            msg = "expected a key above every column; found a column without one"
            raise DecodingError(msg, 1)
        events: list[RawEvent] = []
        line = reader.line_num + 1
        for row in reader:
            if any(cell.strip() for cell in row):
                events.append(_event(names, row, line))
            line = reader.line_num + 1
    except csv.Error as error:
        msg = f"no CSV: {error}"
        raise DecodingError(msg, reader.line_num) from None
    return RawFile(events=events)


def delimiter_of(text: str) -> str:
    """Return what stands between the cells of the first line: whichever of the delimiters it has most of."""
    first = text.partition("\n")[0]
    return max(DELIMITERS, key=first.count)


def _event(names: list[str], row: list[str], line: int) -> RawEvent:
    extra = [cell for cell in row[len(names) :] if cell.strip()]
    if extra:
        found = f"{len(row)} cells below {len(names)} keys"
        return RawEvent(values={}, line=line, problem=f"expected a cell for each key; found {found}")
    cells = {name: cell.strip() for name, cell in zip(names, row, strict=False)}
    values = {name: _value(_VALUES_OF.get(name, "text"), cell) for name, cell in cells.items() if cell}
    return RawEvent(values=values, line=line)


def _value(kind: str, cell: str) -> object:
    """Read a cell as what its column holds; a text where it is none of that, which the check then names."""
    if kind in ("text", "object", "per"):
        return cell
    if kind == "flag":
        return _FLAGS.get(cell.lower(), cell)
    # Tables that pass through other programs write whole numbers as 3.0.
    whole = _WHOLE.fullmatch(cell) or (_WHOLE_AS_FLOAT.fullmatch(cell) if kind in ("count", "size") else None)
    if whole is not None:
        return int(cell.partition(".")[0])
    return float(cell) if _NUMBER.fullmatch(cell) else cell
