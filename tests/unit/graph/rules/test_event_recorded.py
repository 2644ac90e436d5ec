"""Event waits by rows of synchronisation, drawn small.

thread     ├A┤ ├record┤ ├B┤ ├wait┤ ├K┤
stream 13     ├──── A ────┤├── B ──┤
stream 7                  └→├─ K ─┤
"""

from __future__ import annotations

from dataclasses import dataclass

from longpole.graph.kinds import EdgeKind
from longpole.graph.rules import event_recorded
from longpole.timeline.columns import SyncKind
from tests.build import HostSpan, Script
from tests.grounds import Sync, lay, lines, with_syncs


@dataclass(frozen=True)
class Drawn:
    script: Script
    record: HostSpan
    wait: HostSpan


def _draw(start_of_k: float = 52) -> Drawn:
    script = Script()
    script.step(0, 0, 200)
    script.kernel(20, 50, script.launch(10, 12), name="A", stream=13)
    record = script.call("cudaEventRecord", 13, 14)
    script.kernel(51, 90, script.launch(15, 16), name="B", stream=13)
    wait = script.call("cudaStreamWaitEvent", 17, 18)
    script.kernel(start_of_k, 70, script.launch(19, 20), name="K", stream=7)
    script.kernel(71, 80, script.launch(21, 22), name="K2", stream=7)
    return Drawn(script, record, wait)


def test_the_span_before_the_record_holds_the_first_span_after_the_wait() -> None:
    drawn = _draw()
    row = Sync(SyncKind.STREAM_WAIT, drawn.wait, stream=7, waited_stream=13, record=drawn.record)
    ground = lay(with_syncs(drawn.script, row))

    edges = event_recorded.find(ground)

    assert lines(ground, edges) == [("A", "K")]
    assert edges.kind.tolist() == [EdgeKind.EVENT_RECORDED]


def test_nothing_is_drawn_without_rows() -> None:
    ground = lay(_draw().script.timeline())

    assert len(event_recorded.find(ground)) == 0


def test_nothing_is_drawn_for_a_wait_on_the_own_stream() -> None:
    drawn = _draw()
    row = Sync(SyncKind.STREAM_WAIT, drawn.wait, stream=13, waited_stream=13, record=drawn.record)
    ground = lay(with_syncs(drawn.script, row))

    assert len(event_recorded.find(ground)) == 0


def test_nothing_is_drawn_where_the_record_names_no_call() -> None:
    drawn = _draw()
    row = Sync(SyncKind.STREAM_WAIT, drawn.wait, stream=7, waited_stream=13)
    ground = lay(with_syncs(drawn.script, row))

    assert len(event_recorded.find(ground)) == 0


def test_an_edge_that_the_clock_contradicts_is_dropped() -> None:
    """K starts 20 µs before A ends, more than clocks may differ: the row names another record of the same event."""
    drawn = _draw(start_of_k=30)
    row = Sync(SyncKind.STREAM_WAIT, drawn.wait, stream=7, waited_stream=13, record=drawn.record)
    ground = lay(with_syncs(drawn.script, row))

    assert len(event_recorded.find(ground)) == 0


def test_a_launch_of_another_thread_after_the_wait_is_held_too() -> None:
    drawn = _draw()
    drawn.script.kernel(51.5, 51.9, drawn.script.launch(18.2, 18.8, thread="other"), name="other's", stream=7)
    row = Sync(SyncKind.STREAM_WAIT, drawn.wait, stream=7, waited_stream=13, record=drawn.record)
    ground = lay(with_syncs(drawn.script, row))

    assert lines(ground, event_recorded.find(ground)) == [("A", "other's")]


def test_an_event_after_a_captured_graph_waits_for_all_of_it() -> None:
    script = Script()
    script.step(0, 0, 200)
    graph = script.launch(10, 12, name="cudaGraphLaunch")
    script.kernel(20, 30, graph, name="on 13", stream=13)
    script.kernel(20, 60, graph, name="beside it", stream=14)
    record = script.call("cudaEventRecord", 13, 14)
    wait = script.call("cudaStreamWaitEvent", 17, 18)
    script.kernel(62, 70, script.launch(19, 20), name="K", stream=7)
    row = Sync(SyncKind.STREAM_WAIT, wait, stream=7, waited_stream=13, record=record)
    ground = lay(with_syncs(script, row))

    assert lines(ground, event_recorded.find(ground)) == [("beside it", "K")]
