"""The keys of a declared event: what each holds, and what is wrong with a value that it does not hold.

One row a key; the reader, the library and the reference page go by this table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from typing import TYPE_CHECKING, Final

from longpole.vocabulary.objects import MOVED_OBJECTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

PERIODS: Final = ("unit", "request", "token", "run")
"""What an event's figures may be counted for; all are brought to one unit."""

MOST: Final = 1 << 62
"""The most bytes, operations, and units of anything."""
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class EventField:
    """A key of an event.

    Attributes:
        name: As it is written.
        values: `object`, `per`, `text`, `flag`, `count` (whole, at least 1), `size` (whole bytes, at least 0), `rate`
            (above 0) or `time` (at least 0).
        default: What it is where it is left out, in words; `required`, or empty for none.
        meaning: One sentence.
    """

    name: str
    values: str
    default: str
    meaning: str


EVENT_FIELDS: Final = (
    EventField("object", "object", "required", "What is moved."),
    EventField("bytes", "size", "required", "Bytes of one operation, as the program sees them."),
    EventField("bandwidth_gbps", "rate", "required", "What the path really carries, in decimal gigabytes per second."),
    EventField("fixed_latency_ms", "time", "0", "What one operation takes before its bytes move."),
    EventField("frequency", "count", "1", "How many operations there are in what `per` names."),
    EventField("overlap_window_ms", "time", "0", "Independent work beside one operation, under which it can hide."),
    EventField("blocking_dependency", "flag", "true", "Whether the next work waits for it; then nothing hides it."),
    EventField("name", "text", "", "What pages and messages call it."),
    EventField("serialization_ms", "time", "0", "Packing, unpacking and (de)compressing of one operation."),
    EventField("stored_bytes", "size", "`bytes`", "Bytes of one operation that are really moved, when compressed."),
    EventField("per", "per", "unit", "What `frequency` counts in."),
    EventField("production_gbps", "rate", "", "How fast the producer of an output makes it."),
    EventField("drain_gbps", "rate", "", "How fast the queue behind the producer empties."),
    EventField("queue_bytes", "size", "", "What that queue holds."),
    EventField("duration_ms", "time", "", "How long the producer produces in one operation, if never held up."),
    EventField("path", "text", "", "A measured path (`--paths`), in place of `bandwidth_gbps` and `fixed_latency_ms`."),
)
FIELD_OF: Final = {field.name: field for field in EVENT_FIELDS}
QUEUE_FIELDS: Final = ("production_gbps", "drain_gbps", "queue_bytes", "duration_ms")
PATH_FIELDS: Final = ("bandwidth_gbps", "fixed_latency_ms")
"""What a measured path takes the place of."""

LIFECYCLE_FIELDS: Final = {"requests_per_unit": "request", "tokens_per_unit": "token", "units_per_run": "run"}
"""Key of the file -> the `per` that it brings to one unit."""

_EXPECTED: Final = {
    "object": f"one of {', '.join(MOVED_OBJECTS)}",
    "per": f"one of {', '.join(PERIODS)}",
    "text": "a text",
    "flag": "true or false",
    "count": "a whole number of at least 1",
    "size": "a whole number of bytes, at least 0",
    "rate": "a finite number above 0, in decimal gigabytes per second",
    "time": "a finite number of milliseconds, at least 0",
}


def find_complaints(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Find what is wrong with an event, as (key, what was expected and what was found).

    Args:
        values: Key -> value of the keys that are given.
    """
    by_path = bool(values.get("path"))
    meant = {nearest(name, FIELD_OF) for name in values if name not in FIELD_OF}
    for name, value in values.items():
        field = FIELD_OF.get(name)
        if field is None:
            yield name, f"no key of an event{hint_of(name, FIELD_OF)}"
        elif not _holds(field.values, value):
            yield name, f"expected {_EXPECTED[field.values]}; found {show(value)}"
    for field in EVENT_FIELDS:
        is_there = field.name in values or field.name in meant or (by_path and field.name in PATH_FIELDS)
        if field.default == "required" and not is_there:
            yield field.name, f"missing; expected {_EXPECTED[field.values]}"
    for name in PATH_FIELDS:
        if by_path and name in values:
            yield name, f"expected this or path, not both; found {show(values['path'])} beside it"
    yield from _queue_complaints(values)


def finite_number(value: object) -> int | float | None:
    """Return a value as a plain number, None for one that is none: a truth value, a text, infinity, not-a-number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = int(value) if isinstance(value, Integral) else float(value)
        return number if math.isfinite(number) else None
    except OverflowError:  # an integer that no float holds
        return None


def hint_of(name: str, known: Collection[str]) -> str:
    """Return `; did you mean …?` for a mistyped key, else which keys there are."""
    near = nearest(name, known)
    return f"; did you mean {near}?" if near else f"; there are {', '.join(known)}"


def nearest(name: str, known: Collection[str]) -> str:
    """Return the key that a mistyped one is closest to, empty where none is close."""
    near = get_close_matches(name.strip().lower().replace("-", "_").replace(" ", "_"), known, n=1)
    return near[0] if near else ""


def show(value: object) -> str:
    """Return a value as messages show it, shortened.

    >>> show("x"), show(True), show(1.5)
    ("the text 'x'", 'true', '1.5')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {_short(repr(value))}"
    if isinstance(value, int) and abs(value) > MOST:
        return "a number beyond 2^62"
    return _short(repr(value))


def _queue_complaints(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    given = [name for name in QUEUE_FIELDS if name in values]
    if not given:
        return
    for name in QUEUE_FIELDS:
        if name not in values:
            yield name, f"missing; a queue needs it beside {', '.join(given)}"
    if values.get("object") in MOVED_OBJECTS and values["object"] != "output":
        yield given[0], f"only an output has a queue that its producer fills; found object {values['object']}"


def _holds(kind: str, value: object) -> bool:
    if kind in ("object", "per"):
        return isinstance(value, str) and value in (MOVED_OBJECTS if kind == "object" else PERIODS)
    if kind == "text":
        return isinstance(value, str)
    if kind == "flag":
        return isinstance(value, bool)
    number = finite_number(value)
    return number is not None and _is_in_range(kind, number)


def _is_in_range(kind: str, number: float) -> bool:
    if kind == "count":
        return isinstance(number, int) and 1 <= number <= MOST
    if kind == "size":
        return 0 <= number <= MOST and number == int(number)
    return number > 0 if kind == "rate" else number >= 0


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
