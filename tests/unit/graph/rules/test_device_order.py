"""Launches, stream order, and nodes of captured graphs.

host      ├ launch a ┤├ launch b ┤├─ graph launch ─┤
stream        └►├─ a ─┤──►├── b ──┤──►├ n1 ┤·├ n2 ┤
"""

from __future__ import annotations

from longpole.graph.kinds import EdgeKind
from tests.build import Script
from tests.run_graphs import edge_lines, graph_of

K = EdgeKind


def _lines(script: Script, *kinds: EdgeKind) -> list[tuple[float, float]]:
    return [(src, dst) for src, dst, _, _ in edge_lines(graph_of(script), *kinds)]


def test_a_span_waits_for_its_launch_and_for_the_one_before_it() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.kernel(10, 40, script.launch(2, 5))
    script.kernel(41, 60, script.launch(6, 9))

    assert _lines(script, K.LAUNCH) == [(2, 10), (6, 41)]
    assert _lines(script, K.STREAM) == [(40, 41)]
    assert edge_lines(graph_of(script), K.DURATION) == [(10, 40, "DURATION", 30), (41, 60, "DURATION", 19)]


def test_streams_do_not_wait_for_each_other() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.kernel(10, 40, script.launch(2, 5), stream=7)
    script.kernel(41, 60, script.launch(6, 9), stream=8)

    assert _lines(script, K.STREAM) == []


def test_devices_have_streams_of_their_own() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.kernel(10, 40, script.launch(2, 5), device=0)
    script.kernel(41, 60, script.launch(6, 9), device=1)

    assert _lines(script, K.STREAM) == []


def test_a_span_that_runs_beside_the_one_before_it_follows_the_last_that_had_ended() -> None:
    """Programmatic dependent launch: b starts before a ends, and waits for what came before a."""
    script = Script()
    script.step(0, 0, 100)
    script.kernel(10, 20, script.launch(1, 2), name="first")
    script.kernel(21, 60, script.launch(3, 4), name="a")
    script.kernel(50, 70, script.launch(5, 6), name="b")

    assert _lines(script, K.STREAM) == [(20, 21), (20, 50)]


def test_a_microsecond_too_early_still_follows() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.kernel(10, 20, script.launch(1, 2))
    script.kernel(19, 60, script.launch(3, 4))

    assert _lines(script, K.STREAM) == [(20, 19)]


def test_a_launch_found_by_order_is_of_lesser_grade() -> None:
    script = Script()
    script.step(0, 0, 200)
    script.kernel(10, 20, script.launch(1, 2))
    span = script.kernel(21, 30, script.launch(3, 4))
    span.linked = False
    script.kernel(31, 40, script.launch(5, 6))

    assert _lines(script, K.LAUNCH_IN_ORDER) == [(3, 21)]
    assert _lines(script, K.LAUNCH) == [(1, 10), (5, 31)]


def test_nodes_of_one_graph_keep_their_gaps_and_only_the_first_waits() -> None:
    script = Script()
    script.step(0, 0, 300)
    script.kernel(10, 20, script.launch(1, 2), name="before")
    graph = script.launch(3, 9, name="cudaGraphLaunch")
    script.kernel(30, 50, graph, name="n1")
    script.kernel(57, 70, graph, name="n2")
    script.kernel(57, 80, graph, name="n3", stream=8)
    script.kernel(82, 90, script.launch(11, 12), name="after")

    assert _lines(script, K.LAUNCH) == [(1, 10), (3, 30), (11, 82)]
    assert edge_lines(graph_of(script), K.GRAPH_NODE) == [(50, 57, "GRAPH_NODE", 7), (50, 57, "GRAPH_NODE", 7)]
    assert _lines(script, K.GRAPH_END) == [(80, 82)]
    assert (20, 30) in _lines(script, K.STREAM)
    assert not {(50, 57), (70, 57)} & set(_lines(script, K.STREAM))


def test_two_launches_of_one_graph_follow_each_other() -> None:
    script = Script()
    script.step(0, 0, 300)
    for at in (0, 100):
        graph = script.launch(at + 3, at + 9, name="cudaGraphLaunch")
        script.kernel(at + 30, at + 50, graph)
        script.kernel(at + 52, at + 70, graph)

    assert _lines(script, K.GRAPH_END) == [(70, 130)]


def test_a_span_long_before_its_launch_is_not_launched_by_it() -> None:
    """No constant move of the clock can mend it: the call that waits ends right after the span."""
    script = Script()
    script.step(0, 0, 1000)
    script.kernel(110, 190, script.launch(100, 103), name="good")
    script.sync(120, 191, name="cudaDeviceSynchronize")
    script.kernel(400, 490, script.launch(500, 503), name="early")

    graph = graph_of(script)

    assert graph.conflict_ns[0] > 0
    assert graph.orphans == 0


def test_a_span_without_a_launch_waits_for_its_stream_alone() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.kernel(10, 20, script.launch(1, 2))
    script.kernel(25, 30)

    assert _lines(script, K.LAUNCH, K.LAUNCH_IN_ORDER) == [(1, 10)]
    assert _lines(script, K.STREAM) == [(20, 25)]
