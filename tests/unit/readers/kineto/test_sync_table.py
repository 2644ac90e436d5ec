"""What rows of synchronisation say, as Kineto writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longpole.readers.kineto.lower import lower
from longpole.readers.kineto.read import read_raw
from longpole.settings import Settings
from longpole.timeline.columns import Kind, SyncKind
from tests.trace_text import BASE_US, call, kernel, write

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.timeline.timeline import Timeline


def _sync(start_us: float, name: str, stream: int, correlation: int, **args: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "cuda_sync",
        "name": name,
        "pid": 0,
        "tid": stream,
        "ts": BASE_US + start_us,
        "dur": 2,
        "args": {"cuda_sync_kind": name, "stream": stream, "correlation": correlation, "device": 0, **args},
    }


def _read(path: Path, events: list[dict[str, Any]]) -> Timeline:
    written = write(path / "rank0.json", [call(1, 3), kernel(5, 20), *events])
    (timeline,) = lower(*read_raw(written, Settings()), str(written), 1, Settings())
    return timeline


def test_each_kind_of_row_is_told_from_the_others(tmp_path: Path) -> None:
    names = ["Stream Wait Event", "Event Sync", "Stream Sync", "Context Sync", "Unknown Sync"]

    syncs = _read(tmp_path, [_sync(30 + k, name, 7, k) for k, name in enumerate(names)]).syncs

    kinds = [SyncKind.STREAM_WAIT, SyncKind.EVENT, SyncKind.STREAM, SyncKind.CONTEXT, SyncKind.OTHER]
    assert syncs.kind.tolist() == kinds
    assert syncs.correlation.tolist() == [0, 1, 2, 3, 4]


def test_a_stream_wait_names_both_streams_and_the_record(tmp_path: Path) -> None:
    args = {"wait_on_stream": 20, "wait_on_cuda_event_record_corr_id": 1385, "wait_on_cuda_event_id": 19}

    syncs = _read(tmp_path, [_sync(30, "Stream Wait Event", 24, 1389, **args)]).syncs

    assert (syncs.device.tolist(), syncs.stream.tolist(), syncs.waited_stream.tolist()) == ([0], [24], [20])
    assert (syncs.correlation.tolist(), syncs.record.tolist()) == ([1389], [1385])
    assert (syncs.end_ns - syncs.start_ns).tolist() == [2000]


def test_streams_and_records_that_do_not_exist_are_none(tmp_path: Path) -> None:
    """Kineto writes -1, as 64 bits or, in 2023, as 32 without a sign; a field may be missing."""
    old = _sync(30, "Context Sync", 4294967295, 5)
    new = _sync(31, "Event Sync", -1, 6, wait_on_stream=-1, wait_on_cuda_event_record_corr_id=-1)

    syncs = _read(tmp_path, [old, new]).syncs

    assert syncs.stream.tolist() == [-1, -1]
    assert syncs.waited_stream.tolist() == [-1, -1]
    assert syncs.record.tolist() == [-1, -1]


def test_rows_are_ordered_by_time(tmp_path: Path) -> None:
    syncs = _read(tmp_path, [_sync(40, "Stream Sync", 7, 2), _sync(30, "Stream Sync", 13, 1)]).syncs

    assert syncs.correlation.tolist() == [1, 2]
    assert syncs.event.tolist() == [3, 2]


def test_the_rows_themselves_stand_aside(tmp_path: Path) -> None:
    timeline = _read(tmp_path, [_sync(30, "Stream Sync", 7, 1)])

    assert timeline.aside.kind.tolist() == [Kind.SYNC_ROW]
    assert len(timeline.host) == 1


def test_a_record_of_an_event_is_no_work_either(tmp_path: Path) -> None:
    """Kineto of 2025 also writes when each event was put on its stream, in a category of its own."""
    row = _sync(30, "cudaEventRecord", 7, 9) | {"cat": "cuda_event"}

    timeline = _read(tmp_path, [row])

    assert timeline.aside.kind.tolist() == [Kind.SYNC_ROW]
    assert timeline.syncs.kind.tolist() == [SyncKind.OTHER]


def test_a_trace_without_rows_has_an_empty_table(tmp_path: Path) -> None:
    assert len(_read(tmp_path, []).syncs) == 0


def test_odd_values_cost_nothing_but_themselves(tmp_path: Path) -> None:
    row = _sync(30, "Stream Wait Event", 7, 1, wait_on_stream="twenty", wait_on_cuda_event_record_corr_id=None)

    syncs = _read(tmp_path, [row]).syncs

    assert syncs.stream.tolist() == [7]
    assert syncs.record.tolist() == [-1]
