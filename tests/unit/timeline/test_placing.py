"""Which device spans have impossible times, and which legitimate overlaps stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.settings import Settings
from longpole.timeline.columns import NONE_ID, Kind
from longpole.timeline.placing import duplicates, overlong_on_stream, overrunning, strays, unclosed_frames

if TYPE_CHECKING:
    from numpy.typing import NDArray

US, MS, S = 1_000, 1_000_000, 1_000_000_000
HOUR = 3600 * S
SETTINGS = Settings()
Span = tuple[int, int]


def _columns(*spans: Span) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.array([s for s, _ in spans], np.int64), np.array([e for _, e in spans], np.int64)


def _overlong(*spans: Span, launch: list[int] | None = None, lane: list[int] | None = None) -> dict[int, int]:
    start, end = _columns(*spans)
    launches = np.array(launch or range(1, len(spans) + 1), np.int64)
    lanes = np.array(lane or [0] * len(spans), np.int32)
    found = overlong_on_stream(lanes, start, end, launches, SETTINGS)
    return dict(zip(found.row.tolist(), found.end_ns.tolist(), strict=True))


def _overrunning(*spans: Span, least_ns: int = SETTINGS.overrun_min_ns) -> list[int]:
    start, end = _columns(*spans)
    found = overrunning(start, end, np.full(len(spans), least_ns, np.int64), SETTINGS)
    return np.flatnonzero(found).tolist()


# --- spans in whose time the stream went on -----------------------------------------------------------------------


def test_a_span_of_seconds_on_a_busy_stream_is_cut_at_the_next_start() -> None:
    """Case B020: a few durations of seconds among kernels of microseconds.

    stream 0  ├ a ┤├───────────── b: 3.4 s ──────── …
                      ├ a ┤ ├ b ┤ ├ a ┤
    """
    spans = [(0, 10 * US), (20 * US, 3_400 * MS), (40 * US, 50 * US), (60 * US, 70 * US), (80 * US, 90 * US)]

    assert _overlong(*spans) == {1: 40 * US}


def test_two_bad_spans_do_not_excuse_each_other() -> None:
    """What is itself suspect is no measure of how long the spans of a stream may be."""
    bad = [(20 * US, 3_400 * MS), (60 * US, 2_100 * MS)]
    good = [(0, 10 * US), (40 * US, 50 * US), (80 * US, 90 * US), (100 * US, 110 * US), (120 * US, 130 * US)]
    spans = sorted([*bad, *good])

    assert _overlong(*spans) == {1: 40 * US, 3: 80 * US}


def test_nodes_of_one_graph_launch_may_run_side_by_side() -> None:
    """All carry the launch's correlation, and one stream number.

    graph 5  ├──────────── a: 900 µs ─────────────┤
               ├ b ┤ ├ c ┤ ├ d ┤
    """
    spans = [(0, 900 * US), (10 * US, 20 * US), (30 * US, 40 * US), (50 * US, 60 * US)]

    assert _overlong(*spans, launch=[5, 5, 5, 5]) == {}


def test_a_dependent_launch_may_start_before_its_predecessor_ends() -> None:
    """Programmatic dependent launch: one successor begins early, the one after it waits.

    stream 0  ├──── a: 500 µs ────┤
                                ├ b ┤├ c ┤
    """
    spans = [(0, 500 * US), (499 * US, 510 * US), (510 * US, 520 * US)]

    assert _overlong(*spans) == {}


def test_a_long_span_in_whose_time_nothing_else_starts_stays() -> None:
    """A kernel may last for seconds, as long as its stream waits for it."""
    spans = [(0, 10 * US), (20 * US, 5 * S), (5 * S + US, 5 * S + 9 * US), (5 * S + 20 * US, 5 * S + 30 * US)]

    assert _overlong(*spans) == {}


def test_another_stream_may_go_on_meanwhile() -> None:
    spans = [(0, 5 * S), (10 * US, 20 * US), (30 * US, 40 * US), (50 * US, 60 * US)]

    assert _overlong(*spans, lane=[0, 1, 1, 1]) == {}


def test_an_overlap_by_less_than_ten_times_the_usual_length_stays() -> None:
    """Streams of a few exporters are no queues; only what no kernel there could last is cut."""
    spans = [(0, 90 * US), (10 * US, 20 * US), (30 * US, 40 * US), (90 * US, 100 * US)]

    assert _overlong(*spans) == {}


def test_spans_without_a_known_launch_count_as_launches_of_their_own() -> None:
    spans = [(0, 10 * US), (20 * US, 3_400 * MS), (40 * US, 50 * US), (60 * US, 70 * US)]

    assert _overlong(*spans, launch=[NONE_ID] * 4) == {1: 40 * US}


# --- spans that end absurdly late ---------------------------------------------------------------------------------


def test_a_kernel_of_centuries_does_not_belong_to_the_record() -> None:
    """Case B019. Everything else ends within 10 ms."""
    spans = [(i * MS, i * MS + 100 * US) for i in range(10)]

    assert _overrunning(*spans, (5 * MS, 1 << 61)) == [10]


def test_bad_spans_of_different_sizes_are_all_found() -> None:
    """The shorter one is far beyond the record, the longer one far beyond both."""
    spans = [(i * MS, i * MS + 100 * US) for i in range(10)]

    assert _overrunning(*spans, (2 * MS, HOUR), (5 * MS, 10**6 * HOUR)) == [10, 11]


def test_a_record_that_simply_goes_on_is_not_cut() -> None:
    """A pause of a minute between two halves of a record of seconds is a pause."""
    before = [(i * S, i * S + 100 * MS) for i in range(5)]
    after = [(60 * S + i * S, 60 * S + i * S + 100 * MS) for i in range(5)]

    assert _overrunning(*before, *after) == []


def test_a_late_span_in_a_short_record_needs_at_least_a_second() -> None:
    """A record of 10 µs with one span of 2 ms: long, but possible."""
    assert _overrunning((0, 5 * US), (5 * US, 10 * US), (2 * US, 2 * MS)) == []


def test_spans_of_the_host_may_stay_open_for_long() -> None:
    """A step's annotation that was never closed ends with the job."""
    spans = [(i * MS, i * MS + 100 * US) for i in range(10)]

    assert _overrunning(*spans, (0, 600 * S), least_ns=SETTINGS.host_overrun_min_ns) == []
    assert _overrunning(*spans, (0, 600 * S)) == [10]


def test_a_single_row_is_never_overrunning() -> None:
    assert _overrunning((0, 10**6 * HOUR)) == []


# --- Python frames that the profiler's stop closed ----------------------------------------------------------------


def _unclosed(rows: list[tuple[int, Kind]], unfinished: list[bool] | None = None) -> list[int]:
    found = unclosed_frames(
        np.array([end for end, _ in rows], np.int64),
        np.array([int(kind) for _, kind in rows], np.uint8),
        np.array(unfinished or [False] * len(rows), np.bool_),
    )
    return np.flatnonzero(found).tolist()


def test_frames_that_end_at_the_very_last_stamp_were_closed_by_the_stop() -> None:
    """Case B028.

    main()      ├──────────────────────────────────┤
    train()       ├────────────────────────────────┤
    step()          ├───── ended by itself ──┤
    operator          ├──┤                     ├──┤ last one that is no frame
    """
    rows = [(100, Kind.PYTHON), (100, Kind.PYTHON), (70, Kind.PYTHON), (50, Kind.OPERATOR), (90, Kind.OPERATOR)]

    assert _unclosed(rows) == [0, 1]


def test_a_frame_that_ends_together_with_an_operator_may_have_been_the_last_thing_that_ran() -> None:
    assert _unclosed([(100, Kind.PYTHON), (100, Kind.OPERATOR)]) == []


def test_a_frame_that_the_exporter_calls_unfinished_is_believed() -> None:
    assert _unclosed([(60, Kind.PYTHON), (100, Kind.OPERATOR)], [True, False]) == [0]


def test_an_operator_that_the_exporter_calls_unfinished_is_no_frame() -> None:
    assert _unclosed([(60, Kind.PYTHON), (100, Kind.OPERATOR)], [False, True]) == []


# --- duplicates ---------------------------------------------------------------------------------------------------


def test_only_the_later_copies_of_a_row_are_duplicates() -> None:
    """Case B038. Rows that differ in one key are two events."""
    start = np.array([1, 1, 1, 2], np.int64)
    name = np.array([7, 7, 8, 7], np.int32)

    assert duplicates((start, name)).tolist() == [False, True, False, False]


# --- rows far from where the record is ----------------------------------------------------------------------------

EPOCH_NS = 1_700_000_000 * S


def _strays(*spans: Span) -> list[int]:
    return np.flatnonzero(strays(*_columns(*spans), SETTINGS)).tolist()


def _record(count: int = 400, base_ns: int = EPOCH_NS) -> list[Span]:
    return [(base_ns + i * MS, base_ns + i * MS + 100 * US) for i in range(count)]


def test_a_row_whose_clock_read_zero_is_astray() -> None:
    """├ 1970 ┤                      … 54 years …                      ├───── record ─────┤"""
    assert _strays((0, 5 * US), *_record()) == [0]


def test_many_rows_at_zero_are_astray_beside_epoch_times() -> None:
    at_zero = [(i * US, i * US + 10) for i in range(50)]

    assert _strays(*at_zero, *_record(100)) == list(range(50))


def test_rows_far_in_the_future_are_astray() -> None:
    assert _strays(*_record(), (EPOCH_NS + 1000 * HOUR, EPOCH_NS + 1000 * HOUR + US)) == [400]


def test_a_pause_of_less_than_an_hour_is_a_pause() -> None:
    assert _strays(*_record(), *_record(2, EPOCH_NS + HOUR)) == []


def test_two_recordings_in_one_file_are_both_kept() -> None:
    """The second one is no handful of rows."""
    assert _strays(*_record(), *_record(300, EPOCH_NS + 5 * HOUR)) == []


def test_a_long_span_that_reaches_the_record_is_not_astray() -> None:
    assert _strays((EPOCH_NS - 5 * HOUR, EPOCH_NS + 10), *_record()) == []


def test_a_record_that_counts_from_zero_is_where_it_is() -> None:
    assert _strays(*_record(base_ns=0)) == []
    assert _strays() == []
