"""Events in TOML: one table `[[events]]` each."""

from __future__ import annotations

import re
import tomllib
from typing import Final

from longpole.readers.declared_events.raw import DecodingError, RawEvent, RawFile

EVENTS: Final = "events"
_TABLE: Final = re.compile(r"^[ \t]*\[\[[ \t]*(?:events|\"events\"|'events')[ \t]*\]\]", re.MULTILINE)
_AT: Final = re.compile(r"(?P<what>.*) \(at line (?P<line>\d+), column \d+\)$", re.DOTALL)


def decode_toml(text: str) -> RawFile:
    """Read events from TOML.

    Raises:
        DecodingError: It is no TOML, or `events` is no list of tables.
    """
    try:
        head = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _AT.match(str(error))
        what, line = (match["what"], int(match["line"])) if match else (str(error), None)
        msg = f"no TOML: {what}"
        raise DecodingError(msg, line) from None
    except (RecursionError, ValueError) as error:
        msg = f"no TOML that can be read: {error}"
        raise DecodingError(msg) from None
    listed = head.pop(EVENTS, None)
    if not isinstance(listed, list):
        msg = "expected events, each below a line [[events]]; found none"
        raise DecodingError(msg)
    # A text over several lines may hold such a line too; then lines are not told at all.
    lines = [text.count("\n", 0, match.start()) + 1 for match in _TABLE.finditer(text)]
    of_event = lines if len(lines) == len(listed) else [None] * len(listed)
    return RawFile(events=[_event(value, line) for value, line in zip(listed, of_event, strict=True)], head=head)


def _event(value: object, line: int | None) -> RawEvent:
    if isinstance(value, dict):
        return RawEvent(values=dict(value), line=line)
    return RawEvent(values={}, line=line, problem=f"expected a table with the keys of an event; found {value!r:.40}")
