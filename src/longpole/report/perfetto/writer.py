"""Packets of a Perfetto trace: tracks, spans, counters and arrows, as `perfetto_trace.proto` numbers their fields.

Everything is written on one packet sequence, names and categories once each. What is written does not depend on when
or where: the same spans give the same bytes.
Source: https://github.com/google/perfetto/tree/main/protos/perfetto/trace (trace_packet, track_event), version 59.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final, TypeAlias

import numpy as np

from longpole.errors import InvariantError
from longpole.report.escape import escape
from longpole.report.perfetto.lanes import event_places
from longpole.report.perfetto.wire import fixed64s, interleave, message, messages, number, numbers, rows, text, width_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]

UNNAMED: Final = "(no name)"
_NAMES_A_PACKET: Final = 1000
_SPANS_AT_ONCE: Final = 1 << 15

# Trace, TracePacket
_PACKET, _TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _INTERNED, _FLAGS, _DESCRIPTOR = 1, 8, 10, 11, 12, 13, 60
_CLEARED, _NEEDS_STATE = 1, 2
# InternedData and its entries
_EVENT_NAMES, _CATEGORIES, _NOTE_NAMES, _NOTE_TEXTS, _IID, _ENTRY_NAME = 2, 1, 3, 29, 1, 2
# TrackEvent
_CATEGORY_IID, _ANNOTATION, _TYPE, _NAME_IID, _TRACK, _COUNTER_VALUE, _FLOW, _LAST_FLOW = 3, 4, 9, 10, 11, 30, 47, 48
_BEGIN, _END, _COUNTER = 1, 2, 4
# DebugAnnotation
_NOTE_NAME_IID, _NOTE_NAME, _NOTE_INT, _NOTE_TEXT_IID = 1, 10, 4, 17
# TrackDescriptor, CounterDescriptor
_UUID, _TRACK_NAME, _PARENT, _OF_COUNTER, _ORDERING, _ORDER, _ABOUT, _MERGE = 1, 2, 5, 8, 11, 12, 14, 15
_EXPLICIT, _NEVER = 3, 2
_COUNTER_UNIT, _SHARED_AXIS, _TIME_NS = 3, 7, 1

_ON_SEQUENCE: Final = number(_SEQUENCE, 1)
_KINDS: Final = {kind: number(_TYPE, kind) for kind in (_BEGIN, _END, _COUNTER)}
_WITH_STATE: Final = _ON_SEQUENCE + number(_FLAGS, _NEEDS_STATE)


@dataclass(frozen=True, slots=True)
class TrackSpans:
    """Spans of one track; columns of one length.

    Attributes:
        start_ns, end_ns: `[N]` int64: in the run's time; spans are apart or one inside the other.
        name: `[N]` int64: codes from `TraceWriter.codes_of`.
        category: `[N]` int64: codes from `TraceWriter.category_codes`.
        size_bytes: `[N]` int64: shown with the span, -1 for none.
    """

    start_ns: Ints
    end_ns: Ints
    name: Ints
    category: Ints
    size_bytes: Ints


@dataclass(frozen=True, slots=True)
class SaidSpans:
    """Spans of one track with all that is shown of them; columns of one length, in the order of their times.

    Attributes:
        start_ns, end_ns: `[N]` int64: in the run's time; spans do not overlap.
        said: `[N]` int64: codes from `TraceWriter.say`.
        arrives, leaves: `[N]` int64: number of the arrow that ends and of the one that begins here, 0 for none.
    """

    start_ns: Ints
    end_ns: Ints
    said: Ints
    arrives: Ints
    leaves: Ints

    def columns(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """Return them all."""
        return self.start_ns, self.end_ns, self.said, self.arrives, self.leaves


class TraceWriter:
    """Writes a trace, packet by packet.

    Args:
        out: Where to.
        categories: All categories that spans will have.
        shift_ns: What is added to every time, for the format has no time before 0.
    """

    def __init__(self, out: BinaryIO, categories: Sequence[str], shift_ns: int = 0) -> None:
        self._out = out
        self._shift_ns = shift_ns
        self._names: dict[str, int] = {}
        self._categories = {name: place for place, name in enumerate(categories, 1)}
        self._notes: dict[tuple[int, str], int] = {}
        self._said: dict[tuple[object, ...], int] = {}
        self._sayings: list[bytes] = []
        self._track_fields = [b""]  # number 0 is no track
        entries = [
            message(_CATEGORIES, number(_IID, code), text(_ENTRY_NAME, name)) for name, code in self._categories.items()
        ]
        self._packet(_ON_SEQUENCE, number(_FLAGS, _CLEARED | _NEEDS_STATE), message(_INTERNED, *entries))

    def add_track(
        self, name: str, parent: int = 0, order: int = 0, about: str = "", *, counts_ns_beside: str | None = None
    ) -> int:
        """Declare a track, and return its number.

        Args:
            name: What is written beside it.
            parent: The track that it is shown under, 0 for none.
            order: Where it stands among that one's tracks.
            about: What a viewer says of it when asked.
            counts_ns_beside: For a counter of nanoseconds: a key that counters on one scale have in common.
        """
        track = len(self._track_fields)
        self._track_fields.append(number(_TRACK, track))
        fields = [number(_UUID, track), text(_TRACK_NAME, escape(name))]
        fields += [number(_PARENT, parent)] if parent else []
        fields += [number(_ORDERING, _EXPLICIT), number(_ORDER, order), number(_MERGE, _NEVER)]
        fields += [text(_ABOUT, escape(about))] if about else []
        if counts_ns_beside is not None:
            axis = number(_COUNTER_UNIT, _TIME_NS) + text(_SHARED_AXIS, counts_ns_beside)
            fields.append(message(_OF_COUNTER, axis))
        self._packet(_ON_SEQUENCE, message(_DESCRIPTOR, *fields))
        return track

    def codes_of(self, names: Sequence[str]) -> Ints:
        """Return a code for each name, and write the names that are new: `[N]` int64."""
        shown = [escape(name) or UNNAMED for name in names]
        new = [name for name in dict.fromkeys(shown) if name not in self._names]
        for first in range(0, len(new), _NAMES_A_PACKET):
            entries = []
            for name in new[first : first + _NAMES_A_PACKET]:
                code = self._names[name] = len(self._names) + 1
                entries.append(message(_EVENT_NAMES, number(_IID, code), text(_ENTRY_NAME, name)))
            self._packet(_WITH_STATE, message(_INTERNED, *entries))
        return np.array([self._names[name] for name in shown], np.int64)

    def category_codes(self, names: Sequence[str]) -> Ints:
        """Return the code of each category: `[N]` int64."""
        return np.array([self._categories[name] for name in names], np.int64)

    def add_spans(self, track: int, spans: TrackSpans) -> None:
        """Write the spans of a track.

        Raises:
            InvariantError: A span lies before the trace.
        """
        if len(spans.start_ns) == 0:
            return
        start_ns, end_ns = spans.start_ns + self._shift_ns, spans.end_ns + self._shift_ns
        self._check_time(int(start_ns.min()))
        begins, ends = event_places(start_ns, end_ns)
        width = width_of(int(end_ns.max()))
        sized = spans.size_bytes >= 0
        parts = [(ends, _end_rows(track, end_ns, width))]
        for chosen in (np.flatnonzero(~sized), np.flatnonzero(sized)):
            if len(chosen):
                size_bytes = spans.size_bytes[chosen] if sized[chosen[0]] else None
                columns = start_ns[chosen], spans.name[chosen], spans.category[chosen], size_bytes
                parts.append((begins[chosen], _begin_rows(track, columns, width)))
        self._out.write(interleave(parts))

    def say(self, name: str, category: str, notes: Mapping[str, int | str]) -> int:
        """Return a code for what is shown of a span: its name, its category and its notes."""
        key = (name, category, tuple(notes.items()))
        code = self._said.get(key)
        if code is None:
            code = self._said[key] = len(self._sayings)
            self._sayings.append(
                b"".join([number(_CATEGORY_IID, self._categories[category]), *self._named(name, notes)])
            )
        return code

    def add_said(self, track: int, spans: SaidSpans) -> None:
        """Write the spans of a track with all that is shown of them.

        Raises:
            InvariantError: A span lies before the trace.
        """
        length = np.array([len(said) for said in self._sayings], np.int64)
        for first in range(0, len(spans.start_ns), _SPANS_AT_ONCE):
            part = slice(first, first + _SPANS_AT_ONCE)
            self._out.write(self._said_events(track, SaidSpans(*(column[part] for column in spans.columns())), length))

    def _said_events(self, track: int, spans: SaidSpans, length: Ints) -> bytes:
        start_ns, end_ns = spans.start_ns + self._shift_ns, spans.end_ns + self._shift_ns
        self._check_time(int(start_ns.min()))
        width = width_of(int(end_ns.max()))
        places = 2 * np.arange(len(start_ns))
        parts = [(places + 1, _end_rows(track, end_ns, width))]
        shape = 4 * length[spans.said] + 2 * (spans.arrives > 0) + (spans.leaves > 0)
        for one in np.unique(shape).tolist():
            chosen = np.flatnonzero(shape == one)
            event: list[bytes | NDArray[np.uint8]] = [_KINDS[_BEGIN], self._said_rows(spans.said[chosen])]
            event += [self._track_fields[track]]
            event += fixed64s(_FLOW, spans.leaves[chosen]) if one & 1 else []
            event += fixed64s(_LAST_FLOW, spans.arrives[chosen]) if one & 2 else []
            parts.append((places[chosen], _packet_rows(start_ns[chosen], width, event)))
        return interleave(parts)

    def add_span(
        self, track: int, times_ns: tuple[int, int], name: str, category: str, notes: Mapping[str, int | str]
    ) -> None:
        """Write one span of a track whose spans come in the order of their times and do not overlap.

        Args:
            track: The track.
            times_ns: Start and end, in the run's time.
            name: Its name.
            category: Its category.
            notes: What is shown with it.
        """
        said = self._sayings[self.say(name, category, notes)]
        self._event(track, _BEGIN, times_ns[0], said)
        self._event(track, _END, times_ns[1], b"")

    def add_count(self, track: int, time_ns: int, value: int) -> None:
        """Write what a counter shows from a time on."""
        self._event(track, _COUNTER, time_ns, number(_COUNTER_VALUE, value))

    def _said_rows(self, said: Ints) -> NDArray[np.uint8]:
        """Return what is said of spans, all of one length, side by side."""
        codes, row = np.unique(said, return_inverse=True)
        table = np.frombuffer(b"".join(self._sayings[code] for code in codes.tolist()), np.uint8)
        return table.reshape(len(codes), -1)[row]

    def _named(self, name: str, notes: Mapping[str, int | str]) -> list[bytes]:
        named = number(_NAME_IID, int(self.codes_of([name])[0]))
        return [named, *(self._note(key, value) for key, value in notes.items())]

    def _note(self, name: str, value: int | str) -> bytes:
        """Return a note; its name, and what it says, are written once."""
        said = self._note_code(_NOTE_TEXTS, escape(value)) if isinstance(value, str) else value
        field = _NOTE_TEXT_IID if isinstance(value, str) else _NOTE_INT
        return message(_ANNOTATION, number(_NOTE_NAME_IID, self._note_code(_NOTE_NAMES, name)), number(field, said))

    def _note_code(self, table: int, said: str) -> int:
        code = self._notes.get((table, said))
        if code is None:
            code = self._notes[table, said] = len(self._notes) + 1
            self._packet(_WITH_STATE, message(_INTERNED, message(table, number(_IID, code), text(_ENTRY_NAME, said))))
        return code

    def _event(self, track: int, kind: int, time_ns: int, fields: bytes) -> None:
        time_ns += self._shift_ns
        self._check_time(time_ns)
        event = message(_TRACK_EVENT, _KINDS[kind], fields, self._track_fields[track])
        self._packet(number(_TIMESTAMP, time_ns), _WITH_STATE, event)

    def _check_time(self, time_ns: int) -> None:
        if time_ns < 0:
            msg = f"a span begins {-time_ns} ns before the trace does"
            raise InvariantError(msg)

    def _packet(self, *fields: bytes) -> None:
        self._out.write(message(_PACKET, *fields))


def _begin_rows(track: int, columns: tuple[Ints, Ints, Ints, Ints | None], width: int) -> NDArray[np.uint8]:
    time_ns, name, category, size_bytes = columns
    event = [
        number(_TYPE, _BEGIN),
        *numbers(_CATEGORY_IID, category, width_of(int(category.max()))),
        *numbers(_NAME_IID, name, width_of(int(name.max()))),
        number(_TRACK, track),
    ]
    if size_bytes is not None:
        note = [text(_NOTE_NAME, "bytes"), *numbers(_NOTE_INT, size_bytes, width_of(int(size_bytes.max())))]
        event += messages(_ANNOTATION, note)
    return _packet_rows(time_ns, width, event)


def _end_rows(track: int, time_ns: Ints, width: int) -> NDArray[np.uint8]:
    return _packet_rows(time_ns, width, [number(_TYPE, _END), number(_TRACK, track)])


def _packet_rows(time_ns: Ints, width: int, event: Sequence[bytes | NDArray[np.uint8]]) -> NDArray[np.uint8]:
    packet = [*numbers(_TIMESTAMP, time_ns, width), _WITH_STATE, *messages(_TRACK_EVENT, event)]
    return rows(len(time_ns), messages(_PACKET, packet))
