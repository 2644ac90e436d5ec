"""Read span files, packed ones too, and say when each process began and ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.readers.container import open_stream
from longpole.records.span_file_read import SpanFile, decode_span_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from longpole.settings import Settings

_BLOCK_BYTES: Final = 4 << 20
TIME_MAX_NS: Final = 1 << 61  # 73 years: no monotonic clock gets there, and sums of two stay whole


@dataclass(frozen=True, slots=True)
class Process:
    """What one process wrote.

    Attributes:
        path: The file, as it was given.
        file: Its lines.
        first_ns: The first time that any line names, on the process's clock: the header is written with the first
            flush, behind the first spans.
        last_ns: The last time that any of its lines names.
        is_cut: The file ends inside a line, or the packed stream does.
        size_bytes: Of the file, as stored.
    """

    path: str
    file: SpanFile
    first_ns: int
    last_ns: int
    is_cut: bool
    size_bytes: int = 0

    @property
    def n_lines(self) -> int:
        """How many lines could be used, the header among them."""
        return 1 + sum(len(numbers) for numbers in self.file.numbers.values())

    @property
    def n_left_out(self) -> int:
        """How many lines could not."""
        return self.file.damaged_lines + sum(self.file.unknown_lines.values())

    def epoch_ns(self, time_ns: int) -> int:
        """Return the time since the epoch of a time on the process's clock."""
        header = self.file.header
        return time_ns - header.clock_ns + header.epoch_ns


def decode(path: Path, shown: str, settings: Settings, member: str | None = None, *, size_bytes: int = 0) -> Process:
    """Read one file.

    Args:
        path: Plain or packed; its content decides.
        shown: What reports call it.
        settings: Bounds of archives.
        member: Which member of an archive.
        size_bytes: Its size as stored.

    Raises:
        InputError: It cannot be read, or its version is not known.
        NotATraceError: Its first line is no header.
    """
    with open_stream(path, settings, member=member) as stream:
        data = b"".join(stream.blocks(_BLOCK_BYTES))
        damaged = stream.damage is not None
    return process_of(decode_span_file(data, shown), size_bytes=size_bytes, damaged=damaged)


def process_of(file: SpanFile, *, size_bytes: int = 0, damaged: bool = False) -> Process:
    """Return what a file says of its process.

    Args:
        file: Its lines.
        size_bytes: Its size as stored.
        damaged: The packed stream that it came from broke off.
    """
    header_ns = min(file.header.clock_ns, TIME_MAX_NS)
    times = [pair for pair in _times(file) if pair[1] <= TIME_MAX_NS]
    first_ns = min((start_ns for start_ns, _ in times), default=header_ns)
    last_ns = max((end_ns for _, end_ns in times), default=header_ns)
    is_cut = damaged or file.cut_at_byte is not None
    return Process(file.path, file, first_ns, last_ns, is_cut, size_bytes)


def _times(file: SpanFile) -> Iterator[tuple[int, int]]:
    yield file.header.clock_ns, file.header.clock_ns
    yield from ((line.s, line.s + line.d) for lines in (file.units, file.spans, file.devices) for line in lines)
    yield from ((mark.s, mark.s) for mark in file.collectives)
    yield from ((sample.s, sample.s) for sample in file.queues)
    yield from ((clock.clock_ns, clock.clock_ns) for clock in file.clocks)
    if file.close is not None:
        yield file.close.clock_ns, file.close.clock_ns
