"""The queue behind a producer: the closed form against a simulation that moves bytes in pieces."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from longpole.costs.output_queue import OutputQueue, measure_queue

_BYTES_PER_MS = 1e6  # of one GB/s


@dataclass
class Simulated:
    """What a simulation saw of the last burst.

    `took_ms` is how long the burst took, `full_ms` when a piece first found no room, since the burst's start.
    """

    took_ms: float
    full_ms: float
    peak_bytes: float


def simulate(queue: OutputQueue, *, bursts: int, piece_bytes: float) -> Simulated:
    """Move every piece on its own: it is made, waits for room, enters the queue, and leaves it when its turn comes.

    Nothing of the closed form is in here: a piece of burst k enters when it is made and, of the pieces before it, so
    many have left that it has room; the drain takes one piece after the other.
    """
    makes_ms = piece_bytes / (queue.production_gbps * _BYTES_PER_MS)
    drains_ms = piece_bytes / (queue.drain_gbps * _BYTES_PER_MS)
    n_pieces = round(queue.duration_ms / makes_ms)
    n_room = max(round(queue.queue_bytes / piece_bytes), 1)
    left_ms: list[float] = []  # when each piece has left the queue
    now_ms, began_ms, full_ms, peak, gone = 0.0, 0.0, math.inf, 0, 0
    took_ms = 0.0
    for burst in range(bursts):
        began_ms, full_ms, peak = now_ms, math.inf, 0
        for _ in range(n_pieces):
            made_ms = now_ms + makes_ms
            place = len(left_ms)
            room_ms = left_ms[place - n_room] if place >= n_room else 0.0
            now_ms = max(made_ms, room_ms)
            if room_ms > made_ms:
                full_ms = min(full_ms, made_ms - began_ms)
            left_ms.append(max(now_ms, left_ms[-1] if left_ms else 0.0) + drains_ms)
            while left_ms[gone] <= now_ms:
                gone += 1
            peak = max(peak, place + 1 - gone)
        took_ms = now_ms - began_ms
        if burst < bursts - 1:
            now_ms += queue.gap_ms
    return Simulated(took_ms, full_ms, peak * piece_bytes)


def queue_of(production: float, drain: float, capacity: int, duration: float, gap: float = math.inf) -> OutputQueue:
    return OutputQueue(
        production_gbps=production, drain_gbps=drain, queue_bytes=capacity, duration_ms=duration, gap_ms=gap
    )


def test_a_queue_that_is_worked_out_by_hand() -> None:
    """4 GB/s in, 1 GB/s out, 300 MB: full after 100 ms; the other 900 MB of 300 ms need room for 700 MB more."""
    queue = queue_of(4.0, 1.0, 300_000_000, 300.0)

    time = measure_queue(queue)

    # 300 ms make 1200 MB. At the end 300 MB are in the queue, so 900 MB have left, at 1 MB a ms.
    assert time.fill_ms == pytest.approx(100.0)
    assert time.stall_ms == pytest.approx(900.0 - 300.0)
    assert time.peak_bytes == 300_000_000
    assert time.empty_after_ms == pytest.approx(300.0)


def test_what_drains_as_fast_as_it_is_produced_never_stalls() -> None:
    time = measure_queue(queue_of(2.0, 2.0, 0, 1e6))

    assert (time.fill_ms, time.stall_ms, time.peak_bytes, time.empty_after_ms) == (math.inf, 0.0, 0.0, 0.0)


def test_a_burst_that_fits_stalls_nothing_and_says_when_the_queue_is_empty() -> None:
    time = measure_queue(queue_of(3.0, 1.0, 500_000_000, 100.0))

    assert time.fill_ms == math.inf
    assert time.stall_ms == 0.0
    assert time.peak_bytes == pytest.approx(200_000_000)
    assert time.empty_after_ms == pytest.approx(200.0)


def test_without_a_queue_a_producer_goes_at_the_drains_pace() -> None:
    time = measure_queue(queue_of(4.0, 1.0, 0, 10.0))

    assert time.fill_ms == 0.0
    assert time.stall_ms == pytest.approx(30.0)


@settings(max_examples=40)
@given(
    drain=st.floats(0.1, 20.0),
    ratio=st.floats(1.05, 8.0),
    n_room=st.integers(200, 600),
    fills=st.floats(0.2, 5.0),
)
@example(drain=1.0, ratio=4.0, n_room=300, fills=3.0)
def test_one_burst_is_within_one_per_cent_of_the_simulation(
    drain: float, ratio: float, n_room: int, fills: float
) -> None:
    """Whether the queue fills or not, and however often it would fill: time taken, time to fill, most held."""
    capacity = 100_000_000
    production = drain * ratio
    duration = fills * capacity / ((production - drain) * _BYTES_PER_MS)
    queue = queue_of(production, drain, capacity, duration)
    piece = max(capacity / n_room, production * duration * _BYTES_PER_MS / 20_000)

    seen = simulate(queue, bursts=1, piece_bytes=piece)
    time = measure_queue(queue)

    assert duration + time.stall_ms == pytest.approx(seen.took_ms, rel=0.01)
    if abs(fills - 1) > 0.05:
        assert math.isfinite(time.fill_ms) == math.isfinite(seen.full_ms)
        assert time.peak_bytes == pytest.approx(seen.peak_bytes, rel=0.01, abs=2 * piece)
    if fills > 1.05:
        assert time.fill_ms == pytest.approx(seen.full_ms, rel=0.01, abs=2 * piece / (drain * _BYTES_PER_MS))


@pytest.mark.parametrize("gap", [0.0, 20.0, 100.0, 299.0, 500.0])
@pytest.mark.parametrize("duration", [60.0, 150.0])
def test_bursts_with_a_gap_settle_at_the_closed_form(duration: float, gap: float) -> None:
    """Production every now and then: the stall of the last of many bursts, once the queue is as full as it gets."""
    queue = queue_of(4.0, 1.0, 300_000_000, duration, gap)

    seen = simulate(queue, bursts=12, piece_bytes=500_000)

    assert duration + measure_queue(queue).stall_ms == pytest.approx(seen.took_ms, rel=0.01)
    assert measure_queue(queue).peak_bytes == pytest.approx(seen.peak_bytes, rel=0.01)


@given(
    production=st.floats(0.01, 100.0),
    drain=st.floats(0.01, 100.0),
    capacity=st.integers(0, 10**12),
    duration=st.floats(0.0, 1e6),
)
def test_no_byte_is_lost(production: float, drain: float, capacity: int, duration: float) -> None:
    """What is produced has drained by the end of producing, or is still in the queue."""
    time = measure_queue(queue_of(production, drain, capacity, duration))

    produced = production * duration * _BYTES_PER_MS
    if production > drain:
        drained = drain * (duration + time.stall_ms) * _BYTES_PER_MS
        assert produced == pytest.approx(drained + time.peak_bytes, rel=1e-9, abs=1e-3)
    assert 0 <= time.peak_bytes <= capacity or production <= drain


@given(st.floats(1.1, 10.0), st.floats(1.0, 2.0))
def test_more_room_or_a_faster_drain_never_stalls_more(ratio: float, factor: float) -> None:
    plain = measure_queue(queue_of(ratio, 1.0, 10**8, 500.0)).stall_ms

    assert measure_queue(queue_of(ratio, 1.0, round(10**8 * factor), 500.0)).stall_ms <= plain
    assert measure_queue(queue_of(ratio, factor, 10**8, 500.0)).stall_ms <= plain
