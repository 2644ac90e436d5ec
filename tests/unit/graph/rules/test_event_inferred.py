"""Event waits that nothing records, drawn small: three units of

thread     ├A┤ ├B┤ ├wait┤ ├K┤
stream 13     ├─ A ─┤├─── B ───┤
stream 7                       └→├─ K ─┤
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from longpole.graph.kinds import EdgeKind
from longpole.graph.rules import event_inferred, event_recorded
from longpole.timeline.columns import SyncKind
from tests.build import HostSpan, Script
from tests.grounds import Sync, in_order, lay, lines, with_syncs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.graph.edges import Edges
    from longpole.graph.ground import Ground

UNIT_US = 1000.0


def _unit(script: Script, k: int, b_ends: float, lag: float, *, waits: bool = True, k_name: str = "K") -> HostSpan:
    """Draw unit k: B ends at `b_ends` after its start, and K starts `lag` later."""
    at = k * UNIT_US
    script.step(k, at, at + UNIT_US)
    script.kernel(at + 20, at + 30, script.launch(at + 10, at + 12), name=f"A{k}", stream=13)
    script.kernel(at + 31, at + b_ends, script.launch(at + 13, at + 15), name=f"B{k}", stream=13)
    record = script.call("cudaEventRecord", at + 15, at + 15.5)
    if waits:
        script.call("cudaStreamWaitEvent", at + 16, at + 17)
    script.kernel(at + b_ends + lag, at + b_ends + lag + 50, script.launch(at + 18, at + 20), name=k_name, stream=7)
    return record


def _find(ground: Ground) -> Edges:
    """Return the waits of all spans but the A's and B's, whose stream is waited for and waits for nothing."""
    edges = event_inferred.find(ground, np.zeros(len(ground.spans.start_ns), np.bool_))
    waiters = [waiter for _, waiter in in_order(ground, edges)]
    return edges.take(np.array([waiter[0] not in "AB" for waiter in waiters], np.bool_))


def _drawn(ends: Sequence[float], lags: Sequence[float], **how: Any) -> Ground:
    script = Script()
    for k, (b_ends, lag) in enumerate(zip(ends, lags, strict=True)):
        _unit(script, k, b_ends, lag, **how)
    return lay(script.timeline())


def test_a_wait_that_fits_in_every_unit_is_confirmed() -> None:
    ground = _drawn([100, 160, 130], [2, 3, 2])

    edges = _find(ground)

    assert lines(ground, edges) == [("B0", "K"), ("B1", "K"), ("B2", "K")]
    assert set(edges.kind.tolist()) == {EdgeKind.EVENT_CONFIRMED}


def test_half_of_the_late_ones_are_enough() -> None:
    ground = _drawn([100, 160], [2, 400])

    assert set(_find(ground).kind.tolist()) == {EdgeKind.EVENT_CONFIRMED}


def test_less_than_half_is_no_wait() -> None:
    ground = _drawn([100, 160, 130], [2, 300, 400])

    assert len(_find(ground)) == 0


def test_a_span_that_once_started_before_the_candidate_ended_did_not_wait_for_it() -> None:
    """In unit 2, K starts 30 µs before B ends and long after A did."""
    ground = _drawn([100, 160, 130], [2, 2, -30])

    assert len(_find(ground)) == 0


def test_clocks_may_let_a_waiter_start_a_little_early() -> None:
    ground = _drawn([100, 160, 130], [-5, -6, -3])

    assert lines(ground, _find(ground)) == [("B0", "K"), ("B1", "K"), ("B2", "K")]


def test_a_lag_that_is_a_small_part_of_the_lateness_is_a_wait_for_room_behind_the_event() -> None:
    ground = _drawn([800, 803, 700], [15.5, 14, 13])
    lagging = _drawn([800, 803, 700], [35, 34, 33])

    assert len(_find(ground)) == 3
    assert len(_find(lagging)) == 0


def test_such_a_lag_is_believed_only_where_it_repeats() -> None:
    ends = [3800.0, 3800.0]
    script = Script()
    script.step(0, 0, 9000)
    for k, b_ends in enumerate(ends):
        at = 10_000.0 * k
        script.kernel(at + 31, at + b_ends, script.launch(at + 13, at + 15), name=f"B{k}", stream=13)
        script.call("cudaStreamWaitEvent", at + 16, at + 17)
        script.kernel(at + b_ends + 60, at + b_ends + 90, script.launch(at + 18, at + 20), name="K", stream=7)
    script.step(1, 9000, 20_000)
    twice = lay(script.timeline())
    only = Script(host=[row for row in script.host if row.start_ns < 9_000_000], device=script.device[:2])

    assert len(_find(twice)) == 2
    assert len(_find(lay(only.timeline()))) == 0


def test_a_span_that_is_never_late_may_wait_for_the_most_recent_candidate() -> None:
    """K's own stream is busy until long after B ended, so nothing can be told."""
    script = Script()
    for k in range(3):
        at = k * UNIT_US
        script.kernel(at + 21, at + 400, script.launch(at + 8, at + 9), name="own", stream=7)
        _unit(script, k, 100, 301)
    ground = lay(script.timeline())

    edges = _find(ground)

    assert lines(ground, edges) == [("B0", "K"), ("B1", "K"), ("B2", "K")]
    assert set(edges.kind.tolist()) == {EdgeKind.EVENT_UNTESTED}


def test_a_healthy_trace_without_stream_waits_has_none() -> None:
    ground = _drawn([100, 160, 130], [2, 3, 2], waits=False)

    assert len(_find(ground)) == 0


def test_a_slow_launch_is_not_lateness() -> None:
    """K starts 25 µs after its launch began, but 1 µs after the call returned."""
    script = Script()
    for k in range(3):
        at = k * UNIT_US
        script.step(k, at, at + UNIT_US)
        script.kernel(at + 20, at + 30, script.launch(at + 10, at + 12), name=f"B{k}", stream=13)
        script.call("cudaStreamWaitEvent", at + 300, at + 301)
        script.kernel(at + 335, at + 360, script.launch(at + 310, at + 334), name="K", stream=7)
    ground = lay(script.timeline())

    assert set(_find(ground).kind.tolist()) == {EdgeKind.EVENT_UNTESTED}


def test_the_wait_of_another_thread_is_not_this_threads() -> None:
    script = Script()
    for k in range(2):
        at = k * UNIT_US
        _unit(script, k, 100, 2, waits=False)
        script.call("cudaStreamWaitEvent", at + 16, at + 17, thread="other")
    ground = lay(script.timeline())

    assert len(_find(ground)) == 0


def test_only_the_first_span_after_the_wait_waits() -> None:
    script = Script()
    for k in range(2):
        at = k * UNIT_US
        _unit(script, k, 100, 2)
        script.kernel(at + 160, at + 170, script.launch(at + 21, at + 22), name="next", stream=7)
    ground = lay(script.timeline())

    assert {waiter for _, waiter in lines(ground, _find(ground))} == {"K"}


def test_candidates_are_launched_before_the_wait() -> None:
    """C ends right before K starts, but was launched after the wait was made."""
    script = Script()
    for k in range(2):
        at = k * UNIT_US
        _unit(script, k, 100, 100)
        script.kernel(at + 110, at + 199, script.launch(at + 17.2, at + 17.8), name="C", stream=14)
    ground = lay(script.timeline())

    assert "C" not in {waited for waited, _ in lines(ground, _find(ground))}


def test_waits_that_are_recorded_are_not_inferred_again() -> None:
    script = Script()
    records = [_unit(script, k, b_ends, 2) for k, b_ends in enumerate([100, 160, 130])]
    waits = [row for row in script.host if row.name == "cudaStreamWaitEvent"]
    rows = [
        Sync(SyncKind.STREAM_WAIT, wait, stream=7, waited_stream=13, record=record)
        for wait, record in zip(waits, records, strict=True)
    ]
    ground = lay(with_syncs(script, *rows))
    recorded = event_recorded.find(ground)

    assert lines(ground, recorded) == [("B0", "K"), ("B1", "K"), ("B2", "K")]
    assert len(_find(ground)) == 0


def test_a_row_without_a_record_narrows_the_search_to_its_streams() -> None:
    """C ends right before K starts too, on a stream that K, as the row says, did not wait for."""
    script = Script()
    for k, b_ends in enumerate([100, 160, 130]):
        at = k * UNIT_US
        script.kernel(at + 40, at + b_ends + 1, script.launch(at + 8, at + 9), name="C", stream=14)
        _unit(script, k, b_ends, 4)
    without = lay(script.timeline())
    waits = [row for row in script.host if row.name == "cudaStreamWaitEvent"]
    rows = [Sync(SyncKind.STREAM_WAIT, wait, stream=7, waited_stream=13) for wait in waits]
    ground = lay(with_syncs(script, *rows))

    assert lines(without, _find(without)) == [("C", "K")] * 3
    assert lines(ground, _find(ground)) == [("B0", "K"), ("B1", "K"), ("B2", "K")]


def test_a_row_for_another_stream_makes_this_one_wait_for_nothing() -> None:
    script = Script()
    for k, b_ends in enumerate([100, 160, 130]):
        _unit(script, k, b_ends, 2)
    waits = [row for row in script.host if row.name == "cudaStreamWaitEvent"]
    rows = [Sync(SyncKind.STREAM_WAIT, wait, stream=13, waited_stream=7) for wait in waits]
    ground = lay(with_syncs(script, *rows))

    assert len(_find(ground)) == 0


def test_later_nodes_of_a_captured_graph_are_left_alone() -> None:
    script = Script()
    for k in range(2):
        at = k * UNIT_US
        script.step(k, at, at + UNIT_US)
        script.kernel(at + 20, at + 100, script.launch(at + 10, at + 12), name=f"B{k}", stream=13)
        script.call("cudaStreamWaitEvent", at + 16, at + 17)
        graph = script.launch(at + 18, at + 20, name="cudaGraphLaunch")
        script.kernel(at + 102, at + 150, graph, name="first", stream=7)
        script.kernel(at + 104, at + 160, graph, name="second", stream=8)
    ground = lay(script.timeline())

    assert lines(ground, _find(ground)) == [("B0", "first"), ("B1", "first")]


def test_the_wait_may_be_for_an_earlier_span_of_the_stream() -> None:
    """Between A and the wait, the thread launches B on the same stream; K starts when A ends, and B runs on."""
    script = Script()
    for k, a_ends in enumerate([100, 160, 130]):
        at = k * UNIT_US
        script.step(k, at, at + UNIT_US)
        script.kernel(at + 20, at + a_ends, script.launch(at + 10, at + 12), name=f"A{k}", stream=13)
        script.kernel(at + a_ends + 1, at + 300, script.launch(at + 13, at + 15), name=f"B{k}", stream=13)
        script.call("cudaStreamWaitEvent", at + 16, at + 17)
        script.kernel(at + a_ends + 2, at + a_ends + 50, script.launch(at + 18, at + 20), name="K", stream=7)
    ground = lay(script.timeline())

    edges = _find(ground)

    assert lines(ground, edges) == [("A0", "K"), ("A1", "K"), ("A2", "K")]
    assert set(edges.kind.tolist()) == {EdgeKind.EVENT_CONFIRMED}


def test_what_starts_later_is_not_waited_for_however_short() -> None:
    """B runs for 3 µs and starts 1 µs after K: its end lies within what clocks may differ."""
    script = Script()
    for k in range(2):
        at = k * UNIT_US
        script.step(k, at, at + UNIT_US)
        script.kernel(at + 101, at + 104, script.launch(at + 13, at + 15), name="B", stream=13)
        script.call("cudaStreamWaitEvent", at + 16, at + 17)
        script.kernel(at + 100, at + 150, script.launch(at + 18, at + 20), name="K", stream=7)
    ground = lay(script.timeline())

    assert len(_find(ground)) == 0


def test_streams_of_another_device_are_no_candidates() -> None:
    script = Script()
    for k in range(2):
        at = k * UNIT_US
        script.step(k, at, at + UNIT_US)
        script.kernel(at + 20, at + 100, script.launch(at + 13, at + 15), name="B", stream=13, device=1)
        script.call("cudaStreamWaitEvent", at + 16, at + 17)
        script.kernel(at + 102, at + 150, script.launch(at + 18, at + 20), name="K", stream=7)
    ground = lay(script.timeline())

    assert len(_find(ground)) == 0


def test_the_nearest_of_two_streams_wins() -> None:
    script = Script()
    for k in range(3):
        at = k * UNIT_US
        script.kernel(at + 40, at + 88 + k, script.launch(at + 8, at + 9), name=f"near miss {k}", stream=14)
        _unit(script, k, 100, 2)
    ground = lay(script.timeline())

    assert lines(ground, _find(ground)) == [("B0", "K"), ("B1", "K"), ("B2", "K")]


def test_no_more_candidates_than_the_setting_says_are_looked_at() -> None:
    """K waited for the ninth last span of the stream; those behind it ended long before."""
    script = Script()
    for k in range(2):
        at = k * UNIT_US
        script.step(k, at, at + UNIT_US)
        script.kernel(at + 20, at + 200, script.launch(at + 10, at + 11), name="waited for", stream=13)
        for n in range(8):
            start = at + 201 + 40 * n
            script.kernel(start, start + 39, script.launch(at + 12 + n, at + 12.5 + n), name="later", stream=13)
        script.call("cudaStreamWaitEvent", at + 22, at + 23)
        script.kernel(at + 202, at + 240, script.launch(at + 24, at + 25), name="K", stream=7)
    ground = lay(script.timeline())

    assert len(_find(ground)) == 0
