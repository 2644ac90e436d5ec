"""The graph of one rank as a whole: points without an edge, circles that clocks make, spans that come too late."""

from __future__ import annotations

import numpy as np
import pytest

from longpole.graph.kinds import EdgeKind
from longpole.graph.path import UNEXPLAINED
from longpole.graph.sweep import circle_edges
from longpole.records.ledger import Unknown
from longpole.settings import Settings
from tests.build import LOADER, Script
from tests.run_graphs import attempted, edge_lines, graph_of

K = EdgeKind


def test_every_point_waits_for_something_but_the_first_of_a_thread() -> None:
    script = Script()
    script.step(0, 0, 500)
    script.kernel(10, 100, script.launch(1, 4))
    script.kernel(10, 200, script.launch(5, 8, thread="other"), stream=8)
    script.sync(20, 205)

    graph = graph_of(script)
    without = np.setdiff1d(np.arange(len(graph.time_ns)), graph.edges.dst)

    assert graph.orphans == 0
    assert sorted((graph.time_ns[without] / 1000).tolist()) == [0, 5]


def test_a_span_from_before_the_record_is_excused_and_stands_where_it_was_recorded() -> None:
    script = Script()
    script.step(0, 100, 500)
    script.kernel(50, 150, name="before")
    script.kernel(160, 200, script.launch(110, 113))

    graph = graph_of(script)
    floors = graph.floors_ns()

    assert graph.orphans == 0
    start = int(graph.spans.point[0])
    assert floors[start] == graph.time_ns[start] == 50_000


def test_an_empty_record_of_a_device_or_a_thread_breaks_nothing() -> None:
    """Spans and calls without a length leave no time in which anything runs."""
    script = Script()
    script.step(0, 0, 300)
    script.step(1, 300, 600)
    script.kernel(55, 55, script.launch(50, 50))
    script.op("aten::mul", 590, 590, thread="other")

    assert graph_of(script, Settings(silence_min_ns=1000)).orphans == 0


def test_contradicted_edges_that_close_a_circle_are_dropped_and_the_others_stay() -> None:
    """By its device's clock a span ends before the call that launches the next one begins; and the wait ends before it.

    One constant cannot mend both, so some edges point backward; none may close a circle.
    """
    script = Script()
    script.step(0, 0, 2000)
    for k in range(20):
        at = 50.0 * k
        script.kernel(at + 2, at + 60, script.launch(at + 5, at + 8), name="early")
        script.sync(at + 10, at + 45, name="cudaDeviceSynchronize")

    graph = graph_of(script)

    assert len(circle_edges(len(graph.time_ns), graph.edges.src, graph.edges.dst)) == 0
    assert graph.conflict_ns[0] > 0
    assert len(edge_lines(graph, K.DURATION)) == 20
    tolerance_ns = max(graph.conflict_ns[0], Settings().clock_tolerance_ns)
    lag_ns = graph.time_ns[graph.edges.dst] - graph.time_ns[graph.edges.src]
    assert (lag_ns >= -tolerance_ns).all()


def test_a_span_a_unit_behind_the_second_one_that_follows_is_told() -> None:
    """That of unit 0 ends 105 µs after unit 2; that of unit 1 only 95 after unit 3: a host may be so far ahead."""
    script = Script()
    for step in range(5):
        script.step(step, 100 * step, 100 * step + 100)
    script.kernel(10, 405, script.launch(1, 4))
    script.kernel(110, 495, script.launch(101, 104), stream=8)

    assert graph_of(script).late_spans == 1


@pytest.mark.parametrize("cut_us", [0.0, 0.001, 1.0])
def test_a_boundary_that_rounding_puts_into_a_call_that_waited_hides_nothing(cut_us: float) -> None:
    """Start and length of each row are rounded one by one: a step may end a hair before its last call does."""
    script = Script()
    for step in range(4):
        at = 1000.0 * step
        begun, ended = at - (cut_us if step else 0), at + 1000 - (cut_us if step < 3 else 0)
        script.step(step, begun, ended)
        script.kernel(at + 16, at + 995, script.launch(at + 10, at + 13))
        script.sync(at + 20, at + 1000)

    run = attempted(script)

    assert not isinstance(run, Unknown)
    pieces = run.replayed.observed
    assert not (pieces.kind == UNEXPLAINED).any()
    assert run.replayed.why_refused == ""


def test_a_span_knows_what_it_is() -> None:
    script = Script()
    script.step(0, 0, 500)
    script.kernel(10, 100, script.launch(1, 4), name="gemm")
    script.collective(50, 200, script.launch(5, 8))
    copy = script.call("cudaMemcpyAsync", 9, 12)
    script.copy("htod", 210, 250, copy, size_bytes=4096)

    spans = graph_of(script).spans

    assert spans.collective.tolist() == [False, True, False]
    assert spans.compute.tolist() == [True, False, False]
    assert spans.overlapped.tolist() == [True, True, False]
    assert spans.is_copy.tolist() == [False, False, True]
    assert spans.unit.tolist() == [0, 0, 0]


def test_time_without_a_record_can_be_selected_before_and_behind_it_too() -> None:
    """A thread goes on before its first and after its last record; sums over it stay within 64 bits."""
    script = Script()
    script.step(0, 0, 500)
    script.kernel(10, 100, script.launch(1, 4))
    graph = graph_of(script)

    time = graph.covered(0, np.ones(len(graph.cover.start_ns), np.bool_))

    assert time.start_ns[0] < 0
    assert time.end_ns[-1] > 500_000
    assert (time.end_ns - time.start_ns > 0).all()
    assert int((time.end_ns - time.start_ns).sum()) > 0


def test_the_cover_of_a_thread_names_its_activities() -> None:
    script = Script()
    script.step(0, 0, 500)
    script.span(LOADER, 100, 200)
    graph = graph_of(script)

    named = graph.covered(0, graph.cover.named)

    assert (named.start_ns.tolist(), named.end_ns.tolist()) == ([100_000], [200_000])
