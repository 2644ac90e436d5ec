"""What it costs to produce output faster than it drains: the queue between fills, and then the producer stalls.

    producer   runs ├──────────┤ held up ├──────────┤
    queue      grows           ┊ full               ┊ drains

A fluid model: both rates are constant, and bytes are not counted in pieces.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from longpole.units import BYTES_PER_GB, NS_PER_MS, NS_PER_S

_MS_PER_S = NS_PER_S // NS_PER_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputQueue:
    """A producer of output, the queue behind it, and what empties the queue.

    Attributes:
        production_gbps: Decimal gigabytes per second while it produces and is not held up; above 0.
        drain_gbps: Decimal gigabytes per second that leave the queue; above 0.
        queue_bytes: What the queue holds; 0 for none, so that nothing is produced faster than it drains.
        duration_ms: How long it produces at a time, if it is never held up.
        gap_ms: From the end of one such time to the start of the next; infinite where it happens once, or where the
            queue is known to be empty again.
    """

    production_gbps: float
    drain_gbps: float
    queue_bytes: int
    duration_ms: float
    gap_ms: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTime:
    """What becomes of one time of producing.

    Attributes:
        fill_ms: From its start until the queue is full; infinite where it never fills.
        stall_ms: How much longer producing takes because the queue is full.
        peak_bytes: The most that the queue holds.
        empty_after_ms: From its end until the queue is empty.
    """

    fill_ms: float
    stall_ms: float
    peak_bytes: float
    empty_after_ms: float


def measure_queue(queue: OutputQueue) -> QueueTime:
    """Say when a queue fills, and for how long its producer stalls.

    *Definition* (DESIGN 3.5), with production p, drain d, capacity Q, duration T and gap G: nothing stalls where
    p <= d. Else the queue grows at p - d. What a time of producing leaves behind drains in the gap, so that in the
    long run a time finds room for min(Q, d G) bytes, and no more. It needs room for (p - d) T; the rest leaves at the
    drain's pace while the producer stands still:

        stall = max(0, (p - d) T - min(Q, d G)) / d        fill = min(Q, d G) / (p - d), where that is below T

    For a single time G is infinite, and stall = (p T - Q) / d - T: all bytes less those that the queue still holds at
    the end, at the drain's pace, less the time that producing takes anyway. Of a burst that is repeated with a gap
    that does not empty the queue, this is the stall once the queue has become as full as it gets; the first ones
    stall less.

    *Source:* conservation of bytes; checked against a simulation in pieces in tests/unit/costs/test_output_queue.py.

    Args:
        queue: Rates above 0, everything else at least 0.
    """
    excess_gbps = queue.production_gbps - queue.drain_gbps
    room_bytes = min(float(queue.queue_bytes), _bytes_of(queue.drain_gbps, queue.gap_ms))
    if excess_gbps <= 0:
        return QueueTime(fill_ms=math.inf, stall_ms=0.0, peak_bytes=0.0, empty_after_ms=0.0)
    needed_bytes = _bytes_of(excess_gbps, queue.duration_ms)
    stall_ms = _ms_of(max(needed_bytes - room_bytes, 0.0), queue.drain_gbps)
    fills = needed_bytes > room_bytes
    # Where the gap is too short to empty the queue, it ends full; else it starts empty.
    peak_bytes = float(queue.queue_bytes) if fills else needed_bytes
    return QueueTime(
        fill_ms=_ms_of(room_bytes, excess_gbps) if fills else math.inf,
        stall_ms=stall_ms,
        peak_bytes=peak_bytes,
        empty_after_ms=_ms_of(peak_bytes, queue.drain_gbps),
    )


def _bytes_of(rate_gbps: float, dur_ms: float) -> float:
    return rate_gbps * BYTES_PER_GB * dur_ms / _MS_PER_S


def _ms_of(size_bytes: float, rate_gbps: float) -> float:
    return size_bytes / (rate_gbps * BYTES_PER_GB) * _MS_PER_S
