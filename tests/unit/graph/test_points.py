"""Points of threads at one instant: what ends comes first, inner before outer; then what begins, outer before inner."""

from __future__ import annotations

import numpy as np

from longpole.graph.kinds import PointKind
from longpole.graph.points import NO_POINT, Mark, Points, place_points
from tests.build import Script

SIGN = {PointKind.CALL_START: "<", PointKind.CALL_END: ">", PointKind.MARK: "|"}


def _marks(*moments: tuple[float, int]) -> Mark:
    """Return marks of the main thread as (µs, phase)."""
    return Mark(
        np.array([round(at * 1000) for at, _ in moments], np.int64),
        np.zeros(len(moments), np.int32),
        np.array([phase for _, phase in moments], np.int8),
        np.full(len(moments), -1, np.int64),
    )


def _place(script: Script, marks: Mark | None = None, units: int = 0) -> tuple[Points, list[str]]:
    timeline = script.timeline()
    host, device = timeline.host, timeline.device
    points = place_points(
        host,
        np.arange(len(host), dtype=np.int64),
        marks or _marks(),
        (device.start_ns, device.end_ns),
        np.full(len(device), len(timeline.tracks), np.int32),
        np.arange(units, dtype=np.int64),
    )
    shown = []
    for place in range(points.n_host):
        row = int(points.row[place])
        name = timeline.names[host.name[row]] if row >= 0 else ""
        shown.append(SIGN[PointKind(int(points.kind[place]))] + name)
    return points, shown


def test_calls_that_follow_each_other_at_once() -> None:
    script = Script()
    script.call("a", 0, 10)
    script.call("b", 10, 20)

    assert _place(script)[1] == ["<a", ">a", "<b", ">b"]


def test_inner_calls_end_first_and_outer_ones_begin_first() -> None:
    script = Script()
    script.call("outer", 0, 10)
    script.call("inner", 0, 10)
    script.call("core", 5, 10)

    assert _place(script)[1] == ["<outer", "<inner", "<core", ">core", ">inner", ">outer"]


def test_an_empty_call_ends_right_behind_its_own_start() -> None:
    script = Script()
    script.call("before", 0, 10)
    script.call("empty", 10, 10)
    script.call("after", 10, 20)

    shown = _place(script)[1]

    assert shown.index("<empty") + 1 == shown.index(">empty")
    assert shown[:2] == ["<before", ">before"]
    assert shown[-1] == ">after"


def test_marks_stand_between_what_ends_and_what_begins() -> None:
    script = Script()
    script.call("a", 0, 10)
    script.call("b", 10, 20)

    assert _place(script, _marks((10, 2), (10, 1)))[1] == ["<a", ">a", "|", "|", "<b", ">b"]


def test_numbers_lead_back_to_rows() -> None:
    script = Script()
    for at in range(5):
        script.call(f"c{at}", 10 * at, 10 * at + 10)
    script.call("other", 3, 8, thread="two")
    script.kernel(7, 9)
    script.kernel(9, 12)
    marks = _marks((50, 1), (25, 1))

    points, _ = _place(script, marks, units=3)

    rows = np.arange(6)
    assert points.row[points.call_start].tolist() == points.row[points.call_end].tolist() == rows.tolist()
    assert (points.kind[points.call_start] == PointKind.CALL_START).all()
    assert points.time_ns[points.mark].tolist() == marks.time_ns.tolist()
    assert points.time_ns[points.device_start].tolist() == [7000, 9000]
    assert points.time_ns[points.device_start + 1].tolist() == [9000, 12000]
    assert points.kind[points.completion].tolist() == [PointKind.COMPLETION] * 3
    assert len(points.time_ns) == points.n_host + 2 * 2 + 3
    host = slice(0, points.n_host)
    assert np.lexsort((points.time_ns[host], points.lane[host])).tolist() == list(range(points.n_host))


def test_calls_that_are_no_points_have_none() -> None:
    script = Script()
    script.call("a", 0, 10)
    script.call("b", 10, 20)
    host = script.timeline().host
    none = np.empty(0, np.int64)

    points = place_points(host, np.array([1]), _marks(), (none, none), np.empty(0, np.int32), none)

    assert points.call_start.tolist() == [NO_POINT, 0]
    assert points.call_end.tolist() == [NO_POINT, 1]
