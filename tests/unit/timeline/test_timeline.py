"""What a record says of itself: where it begins and ends, which thread is the program's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from longpole.errors import InvariantError
from longpole.timeline.boundaries import find_units, marker_rows
from longpole.timeline.columns import DEVICE_COLUMNS, FLOW_COLUMNS, HOST_COLUMNS
from longpole.timeline.tables import DeviceTable, FlowTable, HostTable, Sparse
from longpole.timeline.timeline import Timeline, find_main_track
from tests.build import VOCABULARY, Script


def _main_thread(script: Script) -> str:
    timeline = script.timeline()
    markers = marker_rows(find_units(timeline, VOCABULARY, None))
    return timeline.tracks[find_main_track(timeline.host, timeline.tracks, markers)].name


def test_a_record_spans_all_placed_rows() -> None:
    script = Script()
    script.op("aten::mul", 10, 30)
    script.kernel(5, 90)
    script.sync_row(0, 200)

    recorded = script.timeline().recorded()

    assert (recorded.start_ns.tolist(), recorded.end_ns.tolist()) == ([5_000], [90_000])


def test_a_record_without_rows_spans_nothing() -> None:
    assert Script().timeline().recorded().total_ns() == 0


def test_devices_are_those_that_ran_something() -> None:
    script = Script()
    script.kernel(5, 90, device=3)
    script.kernel(5, 90, device=1)

    assert script.timeline().devices() == [1, 3]


def test_the_thread_with_the_units_is_the_main_thread() -> None:
    script = Script()
    script.op("aten::mul", 0, 1000)
    script.step(0, 0, 10, thread="trainer")

    assert _main_thread(script) == "trainer"


def test_without_units_the_thread_numbered_like_its_process_is_the_main_thread() -> None:
    script = Script()
    script.op("aten::mul", 0, 10)
    script.op("aten::mul", 0, 1000, thread="worker")

    assert _main_thread(script) == "main"


def test_without_any_such_thread_the_busiest_is_the_main_thread() -> None:
    """Nested spans count once: three spans of 100 µs inside one another are 100 µs.

    worker 1  ├─────────┤
               ├───────┤
                ├─────┤
    worker 2  ├──────────────┤
    """
    script = Script()
    for inset in range(3):
        script.op("aten::mul", inset, 100 - inset, thread="worker 1")
    script.op("aten::mul", 0, 150, thread="worker 2")
    timeline = script.timeline()
    tracks = tuple(replace(track, tid=1000 + place) for place, track in enumerate(timeline.tracks))

    assert tracks[find_main_track(timeline.host, tracks, np.empty(0, np.intp))].name == "worker 2"


def test_a_record_without_threads_has_no_main_thread() -> None:
    timeline = Script().timeline()

    assert find_main_track(timeline.host, timeline.tracks, np.empty(0, np.intp)) == -1


@pytest.mark.parametrize("table", [HostTable, DeviceTable, FlowTable])
def test_an_empty_table_has_all_its_columns(table: type[HostTable]) -> None:
    assert len(table.empty()) == 0


def test_a_table_refuses_columns_of_different_lengths() -> None:
    host = _some_host().host

    with pytest.raises(InvariantError, match="differ in length"):
        replace(host, name=host.name[:1])


def test_a_table_refuses_a_column_of_another_type() -> None:
    host = _some_host().host

    with pytest.raises(InvariantError, match="its spec says int64"):
        replace(host, start_ns=host.start_ns.astype(np.float64))


def test_a_table_cannot_be_changed() -> None:
    host = _some_host().host

    with pytest.raises(ValueError, match="read-only"):
        host.start_ns[0] = 7


def test_a_table_gives_some_of_its_rows() -> None:
    host = _some_host().host

    assert host.take(np.array([1])).start_ns.tolist() == [20_000]
    assert host.take(np.array([True, False])).start_ns.tolist() == [10_000]


def test_a_table_becomes_a_frame_with_the_same_columns() -> None:
    frame = _some_host().host.frame()

    assert frame.columns == [column.name for column in HOST_COLUMNS]
    assert frame["end_ns"].to_list() == [12_000, 22_000]


def test_every_column_says_what_it_means_and_what_stands_for_none() -> None:
    for column in (*HOST_COLUMNS, *DEVICE_COLUMNS, *FLOW_COLUMNS):
        assert column.meaning.endswith(".")
        assert np.dtype(column.dtype).kind in "iub"


def test_a_rare_value_is_found_by_its_row() -> None:
    shapes = Sparse(np.array([2, 5], np.int64), np.array([1, 0], np.int32), ("[4]", "[8]"))

    assert [shapes.at(row) for row in (1, 2, 5, 6)] == [None, "[8]", "[4]", None]


def _some_host() -> Timeline:
    script = Script()
    script.op("aten::mul", 10, 12)
    script.op("aten::mul", 20, 22)
    return script.timeline()


def test_a_device_that_is_not_listed_is_of_the_model_that_all_listed_ones_are() -> None:
    """ROCm's tracer counts the host's processors first: its device 9 is the header's device 0."""
    script = Script()
    script.step(0, 0, 100)
    timeline = script.timeline()
    one = replace(timeline, device_names={0: "MI300X", 1: "MI300X"})
    two = replace(timeline, device_names={0: "MI300X", 1: "H100"})

    assert [one.device_name(device) for device in (0, 9)] == ["MI300X", "MI300X"]
    assert [two.device_name(device) for device in (1, 9)] == ["H100", ""]
    assert timeline.device_name(0) == ""
