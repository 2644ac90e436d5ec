"""When a unit is complete: its host end, the one before it, and the ends of all that it launched.

host     ├─ unit 0 ─┤├─ unit 1 ─┤
device     ├──── launched by 0 ────┤├ by 1 ┤
"""

from __future__ import annotations

from longpole.graph.kinds import EdgeKind
from tests.build import Script, measure
from tests.build import units as measured_units
from tests.run_graphs import edge_lines, graph_of

K = EdgeKind


def _job() -> Script:
    script = Script()
    script.step(0, 0, 100)
    script.step(1, 100, 200)
    script.step(2, 200, 400)
    script.kernel(10, 150, script.launch(1, 2))
    script.kernel(160, 350, script.launch(101, 102))
    script.kernel(355, 360, script.launch(201, 202))
    return script


def test_it_is_the_latest_of_the_three() -> None:
    graph = graph_of(_job())

    assert (graph.time_ns[graph.completion] / 1000).tolist() == [150, 350, 400]


def test_digest_and_graph_agree() -> None:
    script, graph = _job(), graph_of(_job())

    assert [unit.completion_ns for unit in measured_units(measure(script))] == graph.time_ns[graph.completion].tolist()


def test_a_completion_waits_for_host_end_device_ends_and_the_one_before() -> None:
    lines = edge_lines(graph_of(_job()), K.COMPLETION)

    assert [(src, dst) for src, dst, _, _ in lines] == [
        (100, 150),
        (150, 150),
        (150, 350),
        (200, 350),
        (350, 350),
        (350, 400),
        (360, 400),
        (400, 400),
    ]
    assert {length for _, _, _, length in lines} == {0}


def test_of_one_stream_the_last_span_is_enough() -> None:
    script = Script()
    script.step(0, 0, 100)
    for at in range(5):
        script.kernel(10 + 10 * at, 19 + 10 * at, script.launch(1 + at, 1.5 + at))

    assert [src for src, _, _, _ in edge_lines(graph_of(script), K.COMPLETION)] == [59, 100]


def test_a_span_that_nothing_follows_is_waited_for_on_whatever_stream() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.kernel(10, 30, script.launch(1, 2), stream=7)
    script.kernel(10, 140, script.launch(3, 4), stream=8)

    graph = graph_of(script)

    assert (30, 140, "COMPLETION", 0) in edge_lines(graph, K.COMPLETION)
    assert graph.time_ns[graph.completion].tolist() == [140_000]


def test_what_was_launched_before_the_first_unit_belongs_to_none() -> None:
    script = Script()
    script.step(0, 100, 200)
    script.kernel(60, 250, script.launch(50, 52))

    assert graph_of(script).time_ns[graph_of(script).completion].tolist() == [200_000]
