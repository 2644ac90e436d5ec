"""Which call waited for which stream, by rows of synchronisation."""

from __future__ import annotations

from longpole.graph.rules.sync_rows import ALL_LANES, stream_waits, synced_calls, synced_lanes
from longpole.timeline.columns import SyncKind
from tests.build import Script
from tests.grounds import Sync, lay, with_syncs


def _two_streams() -> Script:
    script = Script()
    script.step(0, 0, 200)
    script.kernel(20, 90, script.launch(10, 12), name="A", stream=7)
    script.kernel(20, 50, script.launch(13, 15), name="B", stream=13)
    return script


def test_a_stream_sync_waits_for_its_stream() -> None:
    script = _two_streams()
    call = script.sync(30, 51)

    rows, lanes = synced_lanes(lay(with_syncs(script, Sync(SyncKind.STREAM, call, stream=13))))

    assert len(rows) == 1
    assert lanes.tolist() == [1]


def test_a_context_sync_waits_for_all() -> None:
    script = _two_streams()
    call = script.sync(30, 91, name="cudaDeviceSynchronize")

    _, lanes = synced_lanes(lay(with_syncs(script, Sync(SyncKind.CONTEXT, call))))

    assert lanes.tolist() == [ALL_LANES]


def test_a_stream_without_spans_is_none_of_the_lanes() -> None:
    script = _two_streams()
    call = script.sync(30, 31)
    ground = lay(with_syncs(script, Sync(SyncKind.STREAM, call, stream=99)))

    _, lanes = synced_lanes(ground)

    assert lanes.tolist() == [len(ground.lanes)]


def test_an_event_sync_waits_for_what_was_launched_before_the_record() -> None:
    script = _two_streams()
    record = script.call("cudaEventRecord", 16, 17)
    call = script.sync(30, 91, name="cudaEventSynchronize")
    row = Sync(SyncKind.EVENT, call, waited_stream=7, record=record)

    found = synced_calls(lay(with_syncs(script, row)))

    assert found.lane.tolist() == [0]
    assert found.before_ns.tolist() == [record.start_ns]


def test_an_event_sync_without_a_known_stream_is_left_out() -> None:
    script = _two_streams()
    call = script.sync(30, 91, name="cudaEventSynchronize")

    rows, _ = synced_lanes(lay(with_syncs(script, Sync(SyncKind.EVENT, call))))

    assert rows.tolist() == []


def test_a_record_after_the_wait_is_not_believed() -> None:
    """An old Kineto names the last record of an event, though it was put on a stream anew after the wait."""
    script = _two_streams()
    call = script.sync(30, 91, name="cudaEventSynchronize")
    later = script.call("cudaEventRecord", 100, 101)

    rows, _ = synced_lanes(lay(with_syncs(script, Sync(SyncKind.EVENT, call, waited_stream=7, record=later))))

    assert rows.tolist() == []


def test_a_stream_wait_names_both_streams() -> None:
    script = _two_streams()
    record = script.call("cudaEventRecord", 16, 17)
    call = script.call("cudaStreamWaitEvent", 18, 19)
    row = Sync(SyncKind.STREAM_WAIT, call, stream=7, waited_stream=13, record=record)

    waits = stream_waits(lay(with_syncs(script, row)))

    assert (waits.waiting.tolist(), waits.waited.tolist()) == ([0], [1])
    assert waits.has_record.tolist() == [True]


def test_a_stream_wait_without_a_record_says_so() -> None:
    script = _two_streams()
    call = script.call("cudaStreamWaitEvent", 18, 19)

    waits = stream_waits(lay(with_syncs(script, Sync(SyncKind.STREAM_WAIT, call, stream=7, waited_stream=13))))

    assert waits.has_record.tolist() == [False]


def test_a_stream_wait_with_a_later_record_does_not_know_the_record() -> None:
    script = _two_streams()
    call = script.call("cudaStreamWaitEvent", 18, 19)
    later = script.call("cudaEventRecord", 100, 101)
    row = Sync(SyncKind.STREAM_WAIT, call, stream=7, waited_stream=13, record=later)

    waits = stream_waits(lay(with_syncs(script, row)))

    assert waits.has_record.tolist() == [False]
    assert waits.waited.tolist() == [1]


def test_no_rows_say_nothing() -> None:
    ground = lay(_two_streams().timeline())

    assert len(synced_calls(ground).call) == 0
    assert len(stream_waits(ground).call) == 0
