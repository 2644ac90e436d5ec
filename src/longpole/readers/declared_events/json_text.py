"""Events in JSON: a list, or an object whose `events` is one; walked by hand so that every event has its line."""

from __future__ import annotations

import json
from typing import Any, Final

from longpole.readers.declared_events.raw import DecodingError, RawEvent, RawFile

_BLANK: Final = " \t\r\n"
EVENTS: Final = "events"


class _Doubled(dict[str, Any]):
    """An object of which keys are there more than once."""

    keys_doubled: tuple[str, ...] = ()


def decode_json(text: str) -> RawFile:
    """Read events from JSON.

    NaN and Infinity, which JSON does not have and many programs write, are read: the check of a value names them.

    Raises:
        DecodingError: It is no JSON, or neither a list nor an object with a list `events`.
    """
    walker = _Walker(text)
    try:
        found = walker.list_of_events() if walker.next_is("[") else walker.object_with_events()
        walker.expect_end()
    except json.JSONDecodeError as error:
        msg = f"no JSON: {error.msg}"
        raise DecodingError(msg, error.lineno) from None
    except RecursionError:
        msg = "no JSON that can be read: it is nested too deeply"
        raise DecodingError(msg) from None
    except ValueError as error:
        msg = f"no JSON that can be read: {error}"
        raise DecodingError(msg, walker.line) from None
    return found


def _of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = _Doubled(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        found.keys_doubled = tuple(dict.fromkeys(name for name in names if names.count(name) > 1))
    return found


class _Walker:
    """A place in a JSON text, and the steps from there."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._decoder = json.JSONDecoder(object_pairs_hook=_of_pairs)

    @property
    def line(self) -> int:
        """The line of this place, from 1."""
        return self._text.count("\n", 0, self._at) + 1

    def next_is(self, char: str) -> bool:
        """Tell whether a character comes next, blanks aside."""
        while self._at < len(self._text) and self._text[self._at] in _BLANK:
            self._at += 1
        return self._text.startswith(char, self._at)

    def take(self, char: str) -> bool:
        """Pass a character if it comes next."""
        if self.next_is(char):
            self._at += 1
            return True
        return False

    def expect(self, char: str) -> None:
        """Pass a character that has to come next."""
        if not self.take(char):
            msg = f"expected {char!r}"
            raise json.JSONDecodeError(msg, self._text, self._at)

    def expect_end(self) -> None:
        """Make sure that nothing follows."""
        self.next_is("")
        if self._at < len(self._text):
            msg = "expected the end"
            raise json.JSONDecodeError(msg, self._text, self._at)

    def value(self) -> Any:
        """Read a whole value."""
        self.next_is("")
        value, self._at = self._decoder.raw_decode(self._text, self._at)
        return value

    def list_of_events(self) -> RawFile:
        """Read a list, element by element."""
        self.expect("[")
        events: list[RawEvent] = []
        newline_at, line = 0, 1
        while not self.take("]"):
            if events:
                self.expect(",")
            self.next_is("")
            line += self._text.count("\n", newline_at, self._at)
            newline_at = self._at
            events.append(_event(self.value(), line))
        return RawFile(events=events)

    def object_with_events(self) -> RawFile:
        """Read an object, key by key; its `events` element by element."""
        self.expect("{")
        head: dict[str, object] = {}
        events: list[RawEvent] | None = None
        first = True
        while not self.take("}"):
            if not first:
                self.expect(",")
            first = False
            if not self.next_is('"'):
                msg = "expected a key"
                raise json.JSONDecodeError(msg, self._text, self._at)
            line, key = self.line, str(self.value())
            self.expect(":")
            if key in head or (key == EVENTS and events is not None):
                msg = f"the key {key!r} is there twice"
                raise DecodingError(msg, line)
            if key == EVENTS and self.next_is("["):
                events = self.list_of_events().events
            elif key == EVENTS:
                msg = "expected a list of events behind 'events'"
                raise DecodingError(msg, line)
            else:
                head[key] = self.value()
        if events is None:
            msg = f"expected a list of events, or an object with one as 'events'; found {_found(head)}"
            raise DecodingError(msg)
        return RawFile(events=events, head=head)


def _event(value: object, line: int) -> RawEvent:
    if isinstance(value, dict):
        doubled = value.keys_doubled if isinstance(value, _Doubled) else ()
        return RawEvent(values=dict(value), line=line, doubled=doubled)
    return RawEvent(values={}, line=line, problem=f"expected an object with the keys of an event; found {value!r:.40}")


def _found(head: dict[str, object]) -> str:
    return f"an object with {', '.join(repr(key) for key in list(head)[:6])}" if head else "an empty object"
