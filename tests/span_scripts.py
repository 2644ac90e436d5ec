"""Span files of the recorder in a few words per line: times are milliseconds, so that a test reads like its picture.

file = SpanScript()
file.unit("step 0", 0, 20, items=8)
file.span("batch", 0, 5, "input", waits=True)
file.span("forward", 5, 18, "compute", stage="forward")
file.write(tmp_path / "main.spans.jsonl")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import build_report
from longpole.readers.recorder.decode import process_of
from longpole.readers.recorder.lower import lower
from longpole.records.span_file import (
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
from longpole.records.span_file_read import decode_span_file
from longpole.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.document import Report
    from longpole.timeline.timeline import Timeline

MS = 1_000_000
BOOT_NS = 5_000 * 1_000_000_000  # the machine has been up for 5,000 s
EPOCH_NS = 1_700_000_000 * 1_000_000_000  # of the monotonic clock's zero
MAIN = 1


class SpanScript:
    """The lines of one file; `**header` replaces fields of the usual header."""

    def __init__(self, at: float = 0, **header: Any) -> None:
        clock_ns = BOOT_NS + round(at * MS)
        fields: dict[str, Any] = {
            "schema": "longpole.spans/1",
            "clock_ns": clock_ns,
            "epoch_ns": EPOCH_NS + clock_ns,
            "pid": 10,
            "rank": 0,
            "world_size": 1,
            "host": "node",
            "program": "train.py",
            "main_thread": MAIN,
        }
        self.lines: list[Line] = [Header(**(fields | header))]

    def unit(self, name: str, start: float, end: float, *, thread: int = MAIN, items: int | None = None) -> None:
        """Add a unit."""
        self.lines.append(UnitLine(name, _ns(start), _ns(end) - _ns(start), thread, items=items))

    def span(self, name: str, start: float, end: float, o: str = "", *, thread: int = MAIN, **more: Any) -> None:
        """Add a span of an object, or one that only has a name."""
        self.lines.append(SpanLine(name, _ns(start), _ns(end) - _ns(start), thread, o=o, **more))  # type: ignore[arg-type]

    def on_device(self, name: str, start: float, end: float, o: str = "", **more: Any) -> None:
        """Add a span of device 0."""
        self.lines.append(DeviceLine(name, _ns(start), _ns(end) - _ns(start), 0, o=o, **more))  # type: ignore[arg-type]

    def collective(self, start: float, end: float | None, seq: int, *, thread: int = MAIN, **more: Any) -> None:
        """Add the marks of an all-reduce of 4 KiB; without an end only the first one."""
        fields: dict[str, Any] = {"kind": "all_reduce", "group": "0", "b": 4096, "dtype": "float32"} | more
        self.lines.append(CollectiveLine("enter", seq=seq, s=_ns(start), t=thread, **fields))
        if end is not None:
            self.lines.append(CollectiveLine("leave", seq=seq, s=_ns(end), t=thread, **fields))

    def queue(self, name: str, at: float, depth: int, capacity: int | None, o: str = "output") -> None:
        """Add a sample of a queue's depth."""
        self.lines.append(QueueLine(name, _ns(at), depth, capacity, o=o))  # type: ignore[arg-type]

    def thread(self, number: int, name: str) -> None:
        """Name a thread."""
        self.lines.append(ThreadLine(number, name))

    def rank(self, rank: int, world_size: int) -> None:
        """Say the rank after the header was written."""
        self.lines.append(RankLine(rank, world_size, None))

    def lost(self, count: int, why: str = "the buffer was full") -> None:
        """Say that lines were not kept."""
        self.lines.append(LostLine(count, why))

    def clock(self, at: float, *, wall_moved_ms: float = 0) -> None:
        """Add a pair of times."""
        self.lines.append(ClockLine(_ns(at), EPOCH_NS + _ns(at) + round(wall_moved_ms * MS)))

    def close(self, at: float) -> None:
        """End in order."""
        self.lines.append(CloseLine(_ns(at)))

    def encoded(self) -> bytes:
        """Return the file."""
        return b"".join(msgspec.json.encode(line) + b"\n" for line in self.lines)

    def write(self, path: Path) -> str:
        """Write the file; return its path."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.encoded())
        return str(path)

    def timeline(self) -> Timeline:
        """Lower this file alone."""
        (timeline,) = timelines(self)
        return timeline


def timelines(*scripts: SpanScript) -> list[Timeline]:
    """Lower files of one host together."""
    files = [decode_span_file(script.encoded(), f"{place}.spans.jsonl") for place, script in enumerate(scripts)]
    return lower([process_of(file) for file in files], Settings())


def report_of(folder: Path, **options: Any) -> Report:
    """Report on a folder, without the cache."""
    return build_report([str(folder)], ReportOptions(use_cache=False, **options))


def _ns(ms: float) -> int:
    return BOOT_NS + round(ms * MS)
