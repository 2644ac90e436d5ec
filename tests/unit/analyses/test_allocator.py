"""What is held, what is free in which pieces, why a request failed: on snapshots small enough to add up by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.analyses.allocator import DeviceUse, find_site, judge_failure, measure_device
from longpole.readers.memory_snapshot.decode import decode_snapshot
from longpole.records.allocator_snapshot import NOT_WRITTEN, Frame
from tests.memory_snapshots import BASE_US, LOSS, MIB, block, entry, failed, segment, snapshot


def _use(segments: list[dict[str, Any]], history: list[dict[str, Any]] | None = None, **fields: Any) -> DeviceUse:
    return measure_device(decode_snapshot(snapshot(segments, history, **fields), Path("a.pickle")), 0)


# segment  │ live 6 │ free 2 │ free 3 │ awaiting 4 │ free 1 │
ONE = segment(
    block(6), block(2, "inactive"), block(3, "inactive"), block(4, "active_awaiting_free"), block(1, "inactive")
)


def test_amounts_add_up_and_neighbouring_free_blocks_are_one_piece() -> None:
    use = _use([ONE])

    assert use.reserved_bytes == 16 * MIB
    assert (use.allocated_bytes, use.awaiting_free_bytes, use.free_bytes) == (6 * MIB, 4 * MIB, 6 * MIB)
    assert use.largest_free_bytes == 5 * MIB
    assert use.releasable_bytes == 0


def test_only_whole_free_segments_can_go_back() -> None:
    use = _use([ONE, segment(block(8, "inactive"), address=2 << 40)])

    assert (use.releasable_bytes, use.largest_free_bytes) == (8 * MIB, 8 * MIB)


def test_rounding_is_what_is_allocated_beyond_what_was_asked_for() -> None:
    use = _use([segment(block(6) | {"requested_size": 5 * MIB})])

    assert (use.allocated_bytes, use.requested_bytes) == (6 * MIB, 5 * MIB)


def test_pools_are_told_apart_by_stream_id_and_size() -> None:
    others = [
        segment(block(8, "inactive"), address=2 << 40, stream=7),
        segment(block(4, "inactive"), address=3 << 40, segment_pool_id=(0, 1)),
        segment(block(1, "inactive"), address=4 << 40, segment_type="small"),
    ]

    pools = _use([ONE, *others]).pools

    assert [(pool.stream, pool.pool, pool.is_large, pool.largest_free_bytes // MIB) for pool in pools] == [
        (0, (0, 0), True, 5),
        (7, (0, 0), True, 8),
        (0, (0, 1), True, 4),
        (0, (0, 0), False, 1),
    ]


# ----------------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("request_mib", "device_free_mib", "verdict", "gather_mib", "short_mib"),
    [
        (6, 1, "fragmentation", 5, 0),  # 6 are free in pieces of 5 and 1
        (7, 1, "fragmentation", 6, 0),
        (8, 1, "out_of_memory", 0, 1),
        (8, 9, "limit", 0, 0),
    ],
)
def test_the_sum_of_all_that_is_free_decides_why_a_request_failed(
    request_mib: int, device_free_mib: int, verdict: str, gather_mib: int, short_mib: int
) -> None:
    (failure,) = _use([ONE], [failed(request_mib, device_free_mib)]).failures

    assert failure.verdict == verdict
    assert (failure.gather_bytes, failure.short_bytes) == (gather_mib * MIB, short_mib * MIB)
    assert failure.largest_free_bytes == 5 * MIB


def test_a_failure_that_the_allocator_survived_has_no_verdict() -> None:
    """The blocks of the snapshot are those of a later moment."""
    (failure,) = _use([ONE], [failed(6, 1), entry("free_requested", 2, 200), entry("free_completed", 2, 200)]).failures

    assert (failure.verdict, failure.free_bytes, failure.entries_after) == ("unknown", NOT_WRITTEN, 2)


def test_the_piece_that_counts_is_one_of_the_streams_own_pools() -> None:
    other = segment(block(8, "inactive"), address=2 << 40, stream=7)

    (failure,) = _use([ONE, other], [failed(6, 1)]).failures

    assert (failure.largest_free_bytes, failure.pool_free_bytes, failure.free_bytes) == (5 * MIB, 6 * MIB, 14 * MIB)


def test_a_failure_names_who_asked_and_in_which_phase() -> None:
    spans = [("START", "step", 1), ("START", "forward", 10), ("END", "forward", 50), ("START", "loss", 60)]
    annotations = [{"stage": stage, "name": name, "device": 0, "time_us": BASE_US + at} for stage, name, at in spans]

    (failure,) = _use([ONE], [failed(6, 1, at_us=100, frames=LOSS)], external_annotations=annotations).failures

    assert (failure.line, failure.function, failure.phase) == ("job/train/loss.py:21", "loss_of", "loss")


@given(st.integers(1, 1 << 40), st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_a_verdict_accounts_for_every_byte(request: int, device_free: int, free: int) -> None:
    verdict, gather, short = judge_failure(request, device_free, free)

    if verdict == "fragmentation":
        assert request == device_free + gather
        assert 0 < gather <= free
    elif verdict == "out_of_memory":
        assert request == device_free + free + short
        assert short > 0
    else:
        assert (verdict, gather, short) == ("limit", 0, 0)
        assert request <= device_free


# ----------------------------------------------------------------------------------------------------- history


def test_the_peak_is_counted_back_from_what_is_held_now() -> None:
    """Held now 6: before the last release 9, before that allocation 4."""
    history = [entry("alloc", 5), entry("free_requested", 3), entry("free_completed", 3)]

    use = _use([segment(block(6))], history)

    assert use.peak_requested_bytes == 9 * MIB


def test_the_peak_of_reserved_memory_follows_segments_and_mapped_pieces() -> None:
    history = [entry("segment_map", 2), entry("segment_unmap", 9), entry("segment_alloc", 4), entry("segment_free", 1)]

    use = _use([segment(block(6))], history)

    # now 6, before: 7, 3, 12, 10
    assert use.peak_reserved_bytes == 12 * MIB


def test_a_history_that_contradicts_the_snapshot_gives_no_peak() -> None:
    assert _use([segment(block(6))], [entry("alloc", 7)]).peak_requested_bytes == NOT_WRITTEN


def test_segments_that_go_back_and_come_again_are_counted() -> None:
    moves = ["segment_alloc", "segment_free", "segment_free", "segment_alloc", "segment_free", "segment_alloc"]

    assert _use([segment(block(64))], [entry(move, 1) for move in moves]).returned == 2


# ----------------------------------------------------------------------------------------------------- sites


def test_a_block_without_a_stack_takes_that_of_the_last_allocation_at_its_address() -> None:
    history = [entry("alloc", 6, addr=1 << 40), entry("alloc", 6, addr=1 << 40, frames=LOSS)]

    (site,) = _use([segment(block(6))], history).sites

    assert (site.line, site.function, site.allocated_bytes, site.blocks) == (
        "job/train/loss.py:21",
        "loss_of",
        6 * MIB,
        1,
    )


@pytest.mark.parametrize(
    ("frames", "site"),
    [
        ((), ("", "")),
        ((Frame("unwind", "??", 0), Frame("at::empty", "??", 0)), ("", "at::empty")),
        ((Frame("linear", "/x/site-packages/torch/nn/functional.py", 5),), ("torch/nn/functional.py:5", "linear")),
        ((Frame("f", "/usr/lib/python3.11/queue.py", 5),), ("queue.py:5", "f")),
        ((Frame("f", "/home/someone/secret/job/model.py", 5),), ("secret/job/model.py:5", "f")),
        (
            (
                Frame("linear", "/x/site-packages/torch/nn/functional.py", 5),
                Frame("g", "/x/site-packages/mine/m.py", 7),
            ),
            ("mine/m.py:7", "g"),
        ),
    ],
)
def test_a_site_is_the_innermost_frame_of_the_program(frames: tuple[Frame, ...], site: tuple[str, str]) -> None:
    assert find_site(frames) == site


# ----------------------------------------------------------------------------------------------------- laws

STATES = st.sampled_from(["active_allocated", "active_awaiting_free", "inactive"])
SEGMENTS = st.lists(st.lists(st.tuples(st.integers(1, 64), STATES), min_size=1, max_size=6), min_size=1, max_size=4)


@given(SEGMENTS)
def test_reserved_is_allocated_and_awaiting_and_free(shapes: list[list[tuple[int, str]]]) -> None:
    segments = [
        segment(*(block(size, state) for size, state in shape), address=place << 40)
        for place, shape in enumerate(shapes, 1)
    ]

    use = _use(segments)

    assert use.reserved_bytes == use.allocated_bytes + use.awaiting_free_bytes + use.free_bytes
    assert use.largest_free_bytes <= use.free_bytes
    assert use.releasable_bytes <= use.free_bytes
    assert sum(site.allocated_bytes for site in use.sites) == use.allocated_bytes
    assert sum(pool.reserved_bytes for pool in use.pools) == use.reserved_bytes
