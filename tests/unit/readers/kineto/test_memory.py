"""Memory events of Kineto: what is read of them, and that a damaged one costs nothing but itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from longpole.readers.kineto.lower import lower
from longpole.readers.kineto.read import read_raw
from longpole.settings import Settings
from longpole.timeline.columns import NONE_BYTES
from tests.trace_text import BASE_US, document, steps, write

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.timeline.timeline import Timeline

KIB = 1 << 10


def _event(at_us: float, changed: Any, allocated: Any = None, reserved: Any = None, **other: Any) -> dict[str, Any]:
    args = {
        "Bytes": changed,
        "Device Type": 1,
        "Device Id": 0,
        "Total Allocated": allocated,
        "Total Reserved": reserved,
    }
    args = {key: value for key, value in (args | other).items() if value is not None}
    return {
        "ph": "i",
        "cat": "cpu_instant_event",
        "s": "t",
        "name": "[memory]",
        "pid": 4200,
        "tid": 4200,
        "ts": BASE_US + at_us,
        "args": args,
    }


def _host(at_us: float, changed: int, allocated: int) -> dict[str, Any]:
    return _event(at_us, changed, allocated, 0, **{"Device Type": 0, "Device Id": -1})


def _read(tmp_path: Path, events: list[Any], **header: Any) -> Timeline:
    path = write(tmp_path / "trace.json", [*steps(3), *events], **header)
    return _timelines(path)[0]


def _timelines(path: Path) -> list[Timeline]:
    raw, breaks = read_raw(path, Settings())
    return lower(raw, breaks, str(path), path.stat().st_size, Settings())


def _codes(timeline: Timeline) -> dict[str, int]:
    return {finding.code: finding.count for finding in timeline.findings}


def test_events_become_rows_ordered_by_time(tmp_path: Path) -> None:
    memory = _read(tmp_path, [_event(60, -KIB, 3 * KIB, 8 * KIB), _event(30, KIB, 4 * KIB, 8 * KIB)]).memory

    assert memory.time_ns.tolist() == [1_000_030_000, 1_000_060_000]
    assert memory.size_bytes.tolist() == [KIB, -KIB]
    assert memory.allocated_bytes.tolist() == [4 * KIB, 3 * KIB]
    assert memory.reserved_bytes.tolist() == [8 * KIB, 8 * KIB]
    assert memory.device.tolist() == [0, 0]
    assert memory.event.tolist() == [10, 9]


def test_memory_of_the_host_has_no_device(tmp_path: Path) -> None:
    """ROCm's builds write device type 6, the host is 0."""
    amd = _event(40, KIB, KIB, KIB, **{"Device Type": 6, "Device Id": 3})

    memory = _read(tmp_path, [_host(30, KIB, KIB), amd]).memory

    assert memory.device.tolist() == [-1, 3]


def test_a_trace_without_events_has_an_empty_table(tmp_path: Path) -> None:
    other = _event(30, KIB, KIB, KIB) | {"name": "Iteration Start: PyTorch Profiler"}

    assert len(_read(tmp_path, []).memory) == 0
    assert len(_read(tmp_path, [other]).memory) == 0


def test_the_exporter_of_2021_writes_no_totals(tmp_path: Path) -> None:
    memory = _read(tmp_path, [_event(30, KIB)]).memory

    assert memory.size_bytes.tolist() == [KIB]
    assert memory.allocated_bytes.tolist() == [NONE_BYTES]
    assert memory.reserved_bytes.tolist() == [NONE_BYTES]


def test_epoch_times_with_a_fraction_keep_their_nanoseconds(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    events = json.dumps(document([*steps(1), _event(30, KIB, KIB, KIB)]))
    path.write_text(events.replace("1000030.0", "1718000000000030.625"), encoding="utf-8")

    raw, _ = read_raw(path, Settings())

    assert raw.memory["time_ns"].tolist() == [1_718_000_000_000_030_625]


@pytest.mark.parametrize(
    "args",
    [
        {"Bytes": "many"},
        {"Bytes": None},
        {"Bytes": 1 << 70},
        {"Device Type": None},
        {"Device Type": "cuda"},
        {"Device Id": -1},
        {"Device Id": None},
        {"Total Allocated": -5},
        {"Total Allocated": [1]},
        {"Total Reserved": "all"},
    ],
)
def test_an_event_that_says_too_little_is_counted_and_left_out(tmp_path: Path, args: dict[str, Any]) -> None:
    healthy = [_event(30, KIB, KIB, KIB), _event(50, KIB, 2 * KIB, 2 * KIB)]
    odd = _event(40, 5, 5, 5)
    odd["args"] = {key: value for key, value in (odd["args"] | args).items() if value is not None}

    timeline = _read(tmp_path, [*healthy, odd])

    assert timeline.memory.size_bytes.tolist() == [KIB, KIB]
    assert _codes(timeline) == {"event.memory_unusable": 1}
    assert timeline.source.n_skipped == 1


def test_an_event_without_a_time_or_arguments_is_counted(tmp_path: Path) -> None:
    timeline = _read(tmp_path, [_event(30, KIB) | {"ts": None}, _event(30, KIB) | {"args": None}])

    assert len(timeline.memory) == 0
    assert _codes(timeline) == {"event.no_timestamp": 1, "event.memory_unusable": 1}


def test_a_total_that_fits_neither_neighbour_is_left_out(tmp_path: Path) -> None:
    """A flipped digit would be the peak otherwise; what a lost event leaves behind is no contradiction."""
    events = [
        _event(20, KIB, KIB, 0),
        _event(30, KIB, 900 * KIB, 0),
        _event(40, KIB, 3 * KIB, 0),
        _event(60, KIB, 7 * KIB, 0),
    ]

    timeline = _read(tmp_path, events)

    assert timeline.memory.allocated_bytes.tolist() == [KIB, 3 * KIB, 7 * KIB]
    assert _codes(timeline) == {"event.memory_contradicts": 1}


def test_an_event_absurdly_far_away_is_left_out(tmp_path: Path) -> None:
    timeline = _read(tmp_path, [_event(30, KIB, KIB, 0), _event(9e12, KIB, 2 * KIB, 0)])

    assert len(timeline.memory) == 1
    assert _codes(timeline) == {"event.time.stray": 1}


def test_events_of_a_damaged_file_are_recovered(tmp_path: Path) -> None:
    """The element that is cut is lost, and nothing else."""
    path = write(tmp_path / "trace.json", [*steps(3), *(_event(30 + k, KIB, (k + 1) * KIB, 0) for k in range(4))])
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.rindex('"Bytes"')], encoding="utf-8")

    (timeline,) = _timelines(path)

    assert timeline.memory.allocated_bytes.tolist() == [KIB, 2 * KIB, 3 * KIB]
    assert len(timeline.device) == 3


def test_each_rank_of_a_merged_file_has_its_own(tmp_path: Path) -> None:
    events = []
    for rank in range(2):
        own = [*steps(3), _event(30, KIB, (rank + 1) * KIB, 0)]
        events += [event | {"pid": f"[TP0{rank}] {event['pid']}"} for event in own]

    timelines = _timelines(write(tmp_path / "merged.json", events, rank=None))

    assert [timeline.memory.allocated_bytes.tolist() for timeline in timelines] == [[KIB], [2 * KIB]]


def test_the_header_says_how_much_a_device_has(tmp_path: Path) -> None:
    properties = [{"id": 0, "totalGlobalMem": 80 << 30}, {"id": "1", "totalGlobalMem": 5}, 7, {"id": 2}]

    assert _read(tmp_path, [], deviceProperties=properties).device_bytes == {0: 80 << 30}
