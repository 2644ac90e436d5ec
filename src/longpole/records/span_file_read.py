"""Span files as they are found: everything that is whole is kept, and what is not is counted and placed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from longpole.errors import InputError, NotATraceError
from longpole.records.span_file import (
    SCHEMA,
    ClockLine,
    CloseLine,
    CollectiveLine,
    DeviceLine,
    Header,
    Line,
    LostLine,
    QueueLine,
    RankLine,
    SpanLine,
    ThreadLine,
    UnitLine,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HINT: Final = "docs/reference/span-file.md describes the format"
_MARK: Final = re.compile(rb'"schema"\s*:\s*"longpole\.spans/')


@dataclass(slots=True)
class SpanFile:
    """One process's span file.

    Attributes:
        path: Where it was read from, for messages.
        header: Its first line.
        ranks: Later lines that say who the process is; see `rank`, `world_size`, `local_rank`.
        units, spans, devices, collectives, queues, threads, clocks, lost: Lines by kind, in the file's order.
        close: The last line of a process that ended in order, None for one that was killed or still runs.
        damaged_lines: How many whole lines could not be read.
        damaged_at_byte: Where the first of them starts.
        damaged_why: What is wrong with the first of them.
        cut_at_byte: Where a last line starts that was cut short; None where the file ends with a whole one.
        unknown_lines: Kinds of line that this version does not know, and how many there are of each.
        numbers: Kind of line -> the number of each line of the lists above, the header's being 1.
    """

    path: str
    header: Header
    ranks: list[RankLine] = field(default_factory=list)
    units: list[UnitLine] = field(default_factory=list)
    spans: list[SpanLine] = field(default_factory=list)
    devices: list[DeviceLine] = field(default_factory=list)
    collectives: list[CollectiveLine] = field(default_factory=list)
    queues: list[QueueLine] = field(default_factory=list)
    threads: list[ThreadLine] = field(default_factory=list)
    clocks: list[ClockLine] = field(default_factory=list)
    lost: list[LostLine] = field(default_factory=list)
    close: CloseLine | None = None
    damaged_lines: int = 0
    damaged_at_byte: int | None = None
    damaged_why: str = ""
    cut_at_byte: int | None = None
    unknown_lines: dict[str, int] = field(default_factory=dict)
    numbers: dict[type, list[int]] = field(default_factory=dict)

    @property
    def rank(self) -> int | None:
        """The process's rank, by the last line that says one; None where none does."""
        return next((line.rank for line in self._identities() if line.rank is not None), None)

    @property
    def world_size(self) -> int | None:
        """How many ranks the job has, by the last line that says so; None where none does."""
        return next((line.world_size for line in self._identities() if line.world_size is not None), None)

    @property
    def local_rank(self) -> int | None:
        """The process's number on its machine, by the last line that says one; None where none does."""
        return next((line.local_rank for line in self._identities() if line.local_rank is not None), None)

    @property
    def lost_lines(self) -> int:
        """How many lines the process itself says that it did not keep."""
        return sum(line.count for line in self.lost)

    def open_collectives(self) -> list[CollectiveLine]:
        """Return the `enter` marks without a `leave`: operations that were issued and never came back, as issued."""
        left = {_operation(mark) for mark in self.collectives if mark.what == "leave"}
        return [mark for mark in self.collectives if mark.what == "enter" and _operation(mark) not in left]

    def _identities(self) -> Iterator[RankLine | Header]:
        yield from reversed(self.ranks)
        yield self.header


def _operation(mark: CollectiveLine) -> tuple[str, str, int | None, int]:
    """Name the operation that a mark belongs to: sends and receives are counted apart from the group's others."""
    return mark.group, mark.kind if mark.peer is not None else "", mark.peer, mark.seq


def looks_like_span_file(head: bytes) -> bool:
    """Tell by its first bytes (a kilobyte is plenty) whether a file means to be one, of whatever version."""
    first = head.partition(b"\n")[0]
    return first.lstrip().startswith(b"{") and _MARK.search(first) is not None


def read_span_file(path: Path) -> SpanFile:
    """Read a file.

    Raises:
        InputError: It cannot be read, or is of another version.
        NotATraceError: It is empty, or its first line is not a header.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError.at(path, None, f"cannot be read: {error.strerror or error}", "Look at its name") from None
    return decode_span_file(data, str(path))


def decode_span_file(data: bytes, path: str) -> SpanFile:
    """Read the bytes of a file; errors as of `read_span_file`."""
    whole_end = data.rfind(b"\n") + 1
    first, _, _ = data.partition(b"\n")
    found = SpanFile(path, _decode_header(first, path, whole=whole_end > 0))
    body = memoryview(data)[len(first) + 1 : max(whole_end, len(first) + 1)]
    try:
        # One call for a file without damage: many times faster than a line at a time.
        lines = _LINES.decode_lines(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        lines = []
    if lines and not any(isinstance(line, Header) for line in lines):
        for number, line in enumerate(lines, 2):
            _keep(found, line, 0, number)
    else:
        _decode_line_by_line(found, data, len(first) + 1, whole_end)
    if 0 < whole_end < len(data) and data[whole_end:].strip():
        found.cut_at_byte = whole_end
    return found


def _decode_header(first: bytes, path: str, *, whole: bool) -> Header:
    if not first.strip():
        raise NotATraceError.at(path, 0, "no header in it: the process was killed before its first flush", _HINT)
    try:
        version = msgspec.json.decode(first, type=_Version).schema
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        cut = "" if whole else ", perhaps because it is cut short"
        raise NotATraceError.at(path, 0, f"expected a header as the first line, found no schema{cut}", _HINT) from None
    if version != SCHEMA:
        raise InputError.at(path, 0, f"expected the schema {SCHEMA!r}, found {version!r}", _HINT)
    try:
        return msgspec.json.decode(first, type=Header)
    except msgspec.MsgspecError as error:
        raise NotATraceError.at(path, 0, f"the header is damaged: {error}", _HINT) from None


def _decode_line_by_line(found: SpanFile, data: bytes, start: int, end: int) -> None:
    number = 2
    while start < end:
        stop = data.index(b"\n", start)
        text = data[start:stop]
        if text.strip():
            _decode_one(found, text, start, number)
        start, number = stop + 1, number + 1


def _decode_one(found: SpanFile, text: bytes, byte: int, number: int) -> None:
    try:
        _keep(found, _LINES.decode(text), byte, number)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        kind = _kind_of(text)
        if kind is not None and kind not in _KINDS:
            found.unknown_lines[kind] = found.unknown_lines.get(kind, 0) + 1
        else:
            _count_damage(found, byte, str(error))


def _kind_of(text: bytes) -> str | None:
    try:
        return msgspec.json.decode(text, type=_Kind).k
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _count_damage(found: SpanFile, byte: int, why: str) -> None:
    found.damaged_lines += 1
    if found.damaged_at_byte is None:
        found.damaged_at_byte, found.damaged_why = byte, why


def _keep(found: SpanFile, line: Line, byte: int, number: int) -> None:
    if isinstance(line, CloseLine):
        found.close = line
    elif isinstance(line, Header):
        _count_damage(found, byte, "a second header: two processes wrote into one file, or two files were joined")
    else:
        _LISTS[type(line)](found).append(line)
        found.numbers.setdefault(type(line), []).append(number)


class _Version(msgspec.Struct):
    schema: str


class _Kind(msgspec.Struct):
    k: str


_LINES: Final = msgspec.json.Decoder(Line)
_LISTS: Final = {
    RankLine: lambda found: found.ranks,
    UnitLine: lambda found: found.units,
    SpanLine: lambda found: found.spans,
    DeviceLine: lambda found: found.devices,
    CollectiveLine: lambda found: found.collectives,
    QueueLine: lambda found: found.queues,
    ThreadLine: lambda found: found.threads,
    ClockLine: lambda found: found.clocks,
    LostLine: lambda found: found.lost,
}
_KINDS: Final = frozenset(kind.__struct_config__.tag for kind in (Header, CloseLine, *_LISTS))
