"""Many shifted copies of a real trace in one file: as large as wanted, and its figures are known multiples.

The text of every event stays as it was recorded but for its time and its numbers (correlations, external ids, flows,
steps), which are shifted from copy to copy, so that no two copies are linked or overlap.
"""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from benchmarks.synthetic.schedule import Span, union_ns
from benchmarks.synthetic.stream import open_sink

if TYPE_CHECKING:
    from pathlib import Path

DEVICE_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"})
NUMBERED = (
    "External id",
    "correlation",
    "Ev Idx",
    "Profiler Event Index",
    "Record function id",
    "Sequence number",
    "Python id",
    "Python parent id",
    "wait_on_cuda_event_record_corr_id",
)
FIELD = re.compile(
    rf'(?<!\\)"(?P<field>ts|id|{"|".join(NUMBERED)})": ?(?P<number>\d+)(?=[.,\s}}])'
    r'|(?<!\\)"name": ?"ProfilerStep#(?P<step>\d+)(?=")'
)
EVENTS_PER_BLOCK = 500
TIME, NUMBER, STEP = range(3)  # what a place in a template holds


class CopyError(Exception):
    """A trace that cannot be repeated."""


@dataclass
class Source:
    """A trace taken apart: what stands before, in and behind its events."""

    head: str
    tail: str
    once: list[str] = field(default_factory=list)
    blocks: list[tuple[str, list[tuple[int, int]]]] = field(default_factory=list)
    n_events: int = 0
    n_steps: int = 0
    step_numbers: set[int] = field(default_factory=set)
    device_spans: dict[str, list[Span]] = field(default_factory=dict)
    first_ns: int = 0
    last_ns: int = 0
    largest_number: int = 0


def to_ns(microseconds: Decimal | int) -> int:
    """Turn decimal microseconds into whole nanoseconds."""
    return int(Decimal(microseconds) * 1000)


def read_text(path: Path) -> str:
    """Read a trace, gzip or plain."""
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()


def template_of(texts: list[str]) -> tuple[str, list[tuple[int, int]]]:
    """Turn events into one text with `%d` places.

    Args:
        texts: the events.

    Returns:
        The template, and for each place what it holds and the recorded value.
    """
    parts: list[str] = []
    places: list[tuple[int, int]] = []
    joined = ",\n  ".join(texts)
    at = 0
    for match in FIELD.finditer(joined):
        name = "number" if match["number"] is not None else "step"
        parts.append(joined[at : match.start(name)].replace("%", "%%"))
        at = match.end(name)
        value = int(match[name])
        which = STEP if name == "step" else (TIME if match["field"] == "ts" else NUMBER)
        if which == NUMBER and value == 0:  # none, not a number
            parts.append("0")
            continue
        parts.append("%d")
        places.append((which, value))
    parts.append(joined[at:].replace("%", "%%"))
    return "".join(parts), places


def note(source: Source, event: dict[str, Any], text: str) -> None:
    """Take one event's part in the figures.

    Args:
        source: what is known so far.
        event: the event, times as exact decimals.
        text: its text, for the message.

    Raises:
        CopyError: its time is no plain number.
    """
    start_us, length_us = event.get("ts", 0), event.get("dur", 0)
    if not isinstance(start_us, int | Decimal) or not isinstance(length_us, int | Decimal):
        message = f"expected ts and dur as numbers, found {text[:120]!r}"
        raise CopyError(message)
    start_ns = to_ns(start_us)
    end_ns = start_ns + to_ns(length_us)
    source.first_ns = min(source.first_ns or start_ns, start_ns)
    source.last_ns = max(source.last_ns, end_ns)
    source.n_events += 1
    category = event.get("cat")
    source.n_steps += category != "gpu_user_annotation" and event["name"].startswith("ProfilerStep#")
    if category in DEVICE_CATEGORIES:
        source.device_spans.setdefault(str(event["pid"]), []).append((start_ns, end_ns))


def take_apart(text: str) -> Source:
    """Find the events of a trace and make templates of them.

    Args:
        text: the trace, an object with `traceEvents`.

    Returns:
        Its parts.

    Raises:
        CopyError: it has no `traceEvents`, or an event whose time is no plain number.
    """
    opened = re.search(r'"traceEvents": ?\[', text)
    if opened is None:
        message = "expected an object with traceEvents, found none"
        raise CopyError(message)
    decoder = json.JSONDecoder(parse_float=Decimal)
    blank = re.compile(r"[\s,]*")
    source = Source(head=text[: opened.end()], tail="")
    at, pending = opened.end(), []
    while text[(at := blank.match(text, at).end())] != "]":  # type: ignore[union-attr]  # it matches the empty string
        event, end = decoder.raw_decode(text, at)
        if event["ph"] == "M":
            source.once.append(text[at:end])
        else:
            note(source, event, text[at:end])
            pending.append(text[at:end])
        if len(pending) == EVENTS_PER_BLOCK:
            source.blocks.append(template_of(pending))
            pending = []
        at = end
    if pending:
        source.blocks.append(template_of(pending))
    source.tail = text[at:]
    numbers = [place for _, places in source.blocks for place in places]
    source.largest_number = max((value for which, value in numbers if which == NUMBER), default=0)
    source.step_numbers = {value for which, value in numbers if which == STEP}
    return source


def write_copies(source: Source, n_copies: int, path: Path, *, compressed: bool) -> dict[str, Any]:
    """Write shifted copies of a trace into one file.

    Args:
        source: the trace.
        n_copies: how many.
        path: the file to make.
        compressed: whether to write gzip.

    Returns:
        What the file holds, the device times by device; busy time is that of one copy, times the copies.
    """
    period_us = -(-(source.last_ns - source.first_ns) // 1_000) + 1
    number_stride = source.largest_number + 1
    step_stride = max(source.step_numbers) - min(source.step_numbers) + 1 if source.step_numbers else 0
    with open_sink(path, compressed=compressed) as sink:
        sink.write(source.head + "\n  " + ",\n  ".join(source.once))
        written = bool(source.once)
        for copy in range(n_copies):
            shifts = (copy * period_us, copy * number_stride, copy * step_stride)
            for template, places in source.blocks:
                filled = template % tuple([value + shifts[which] for which, value in places])
                sink.write((",\n  " if written else "") + filled)
                written = True
        sink.write("\n  " + source.tail)
    return {
        "file": path.name,
        "bytes": sink.size_bytes,
        "stored_bytes": path.stat().st_size,
        "events": source.n_events * n_copies + len(source.once),
        "steps": source.n_steps * n_copies,
        "devices": {
            device: device_figures(spans, n_copies, period_us * 1_000)
            for device, spans in sorted(source.device_spans.items())
        },
    }


def device_figures(spans: list[Span], n_copies: int, period_ns: int) -> dict[str, int]:
    """Measure one device of a repeated trace.

    Args:
        spans: its kernels, copies and memsets in one copy, in ns.
        n_copies: how many copies.
        period_ns: from one copy to the next.

    Returns:
        Span, busy and idle time of all copies together, in ns.
    """
    one_span_ns = max(end for _, end in spans) - min(start for start, _ in spans)
    span_ns = one_span_ns + (n_copies - 1) * period_ns
    busy_ns = union_ns(spans) * n_copies
    return {"span_ns": span_ns, "busy_ns": busy_ns, "idle_ns": span_ns - busy_ns}
