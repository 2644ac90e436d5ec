"""What is wrong with the span files of one rank, as findings about the evidence (DESIGN 3.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.readers.recorder.processes import SAME_CLOCK_MAX_NS
from longpole.readers.recorder.rows import shown
from longpole.timeline.integrity import Example, Finding
from longpole.units import format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from longpole.readers.recorder.decode import Process
    from longpole.readers.recorder.processes import Record
    from longpole.timeline.integrity import Severity

_NOT_COVERED: Final = ["@/ledger/idle_ns/host.python"]


def complain(record: Record, n_impossible: int, n_halves: int) -> Iterator[Finding]:
    """Say what is wrong with a rank's files.

    Args:
        record: Its processes.
        n_impossible: Lines whose times cannot be.
        n_halves: Marks behind a collective without the one in front of it.
    """
    files = [member.process for member in record.members]
    yield from _cut(record, files)
    yield from _lost(record, files)
    yield from _unreadable(record, files, n_impossible)
    yield from _clocks(record)
    if n_halves:
        message = f"{format_count(n_halves, 'mark')} behind a collective without the one in front of it: left out"
        yield _finding(record, "collective.half_recorded", "note", (n_halves, record.main.path, None), message)
    if record.unplaced:
        first = record.unplaced[0].path
        n = format_count(len(record.unplaced), "span file")
        message = f"{n} of processes that worked for no recorded main process, or for one of several: left out"
        yield _finding(record, "spans.unplaced", "warn", (len(record.unplaced), first, None), message)


def _cut(record: Record, files: Iterable[Process]) -> Iterator[Finding]:
    """Complain of processes that did not end in order; a loader may end its workers by a signal."""
    cut = [one for one in files if one.is_cut or (one.file.close is None and not one.file.header.role)]
    if not cut:
        return
    inside = sum(one.is_cut for one in cut)
    first = cut[0]
    what = format_count(len(cut), "process", "processes")
    message = f"{what} did not end in order (killed, or still running): what was not flushed is missing"
    message += f"; {format_count(inside, 'file')} cut inside a line" if inside else ""
    yield _finding(record, "spans.cut", "note", (len(cut), first.path, first.file.cut_at_byte), message)


def _lost(record: Record, files: Iterable[Process]) -> Iterator[Finding]:
    losses = [(one, line) for one in files for line in one.file.lost]
    if not losses:
        return
    n = sum(line.count for _, line in losses)
    whys = ", ".join(sorted({shown(line.why) for _, line in losses})[:3])
    message = f"{format_count(n, 'line')} not kept by the recorder ({whys}): that time counts as without a record"
    yield _finding(record, "spans.lost", "warn", (n, losses[0][0].path, None), message, _NOT_COVERED)


def _unreadable(record: Record, files: Iterable[Process], n_impossible: int) -> Iterator[Finding]:
    damaged = [one for one in files if one.file.damaged_lines]
    n = sum(one.file.damaged_lines for one in damaged)
    if n:
        first = damaged[0].file
        message = f"{format_count(n, 'line')} that could not be read, the first one at byte {first.damaged_at_byte}"
        message += f": {shown(first.damaged_why)[:120]}"
        where = (n, first.path, first.damaged_at_byte)
        yield _finding(record, "spans.unreadable", "warn", where, message, _NOT_COVERED)
    if n_impossible:
        message = f"{format_count(n_impossible, 'line')} with times that lie absurdly far from all others: left out"
        yield _finding(record, "event.time.stray", "warn", (n_impossible, record.main.path, None), message)
    unknown = sum(sum(one.file.unknown_lines.values()) for one in files)
    if unknown:
        message = f"{format_count(unknown, 'line')} of a kind that this version does not know: left out"
        yield _finding(record, "spans.unknown_lines", "note", (unknown, record.main.path, None), message)


def _clocks(record: Record) -> Iterator[Finding]:
    """Complain of wall clocks that were set, and of processes whose clocks count from other moments."""
    main = record.main
    moved_ns = max((abs(c.epoch_ns - main.epoch_ns(c.clock_ns)) for c in main.file.clocks), default=0)
    if moved_ns > SAME_CLOCK_MAX_NS:
        message = f"the wall clock was set by {format_ns(moved_ns)} during the record; times go by the monotonic clock"
        yield _finding(record, "spans.clock", "note", (1, main.path, None), message)
    shifted = [member for member in record.members if member.shift_ns]
    if shifted:
        far_ns = max(abs(member.shift_ns) for member in shifted)
        message = (
            f"{format_count(len(shifted), 'process', 'processes')} with a clock of another origin, by"
            f" {format_ns(far_ns)} at most: aligned by the wall clock, which is good to milliseconds"
        )
        yield _finding(record, "spans.clock", "warn", (len(shifted), shifted[0].process.path, None), message)


def _finding(
    record: Record,
    code: str,
    severity: Severity,
    seen: tuple[int, str, int | None],
    message: str,
    voids: list[str] | None = None,
) -> Finding:
    """Make a finding; `seen` is how often, and where first: file and byte."""
    count, path, byte = seen
    return Finding(code, severity, record.rank, count, Example(path, byte=byte), message, voids or [])
