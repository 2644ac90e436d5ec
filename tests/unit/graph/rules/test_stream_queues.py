"""The order of spans on their streams, and how late they start."""

from __future__ import annotations

import numpy as np
import pytest

from longpole.graph.rules.stream_queues import (
    last_nodes,
    late_spans,
    lateness,
    later_nodes,
    search_in_groups,
    stream_queues,
)
from tests.build import Script
from tests.grounds import lay


def _names(script: Script, rows: np.ndarray) -> list[str]:
    timeline = script.timeline()
    return [timeline.names[code] for code in timeline.device.name[rows]]


def _graph() -> Script:
    script = Script()
    graph = script.launch(10, 12, name="cudaGraphLaunch")
    script.kernel(20, 90, graph, name="long", stream=13)
    script.kernel(21, 30, graph, name="short", stream=7)
    script.kernel(100, 110, script.launch(50, 52), name="plain", stream=7)
    return script


def test_spans_are_ordered_by_stream_then_launch() -> None:
    script = Script()
    script.kernel(50, 60, script.launch(20, 21), name="second", stream=7)
    script.kernel(30, 40, script.launch(10, 11), name="first", stream=7)
    script.kernel(35, 45, script.launch(5, 6), name="other", stream=13)
    ground = lay(script.timeline())

    queues = stream_queues(ground.spans, len(ground.lanes))

    assert _names(script, queues.row) == ["first", "second", "other"]
    assert queues.first.tolist() == [0, 2, 3]


@pytest.mark.parametrize(("time_us", "place"), [(5, 0), (10, 0), (10.5, 1), (20, 1), (99, 2)])
def test_what_was_launched_before_a_time(time_us: float, place: int) -> None:
    script = Script()
    script.kernel(30, 40, script.launch(10, 11), stream=7)
    script.kernel(50, 60, script.launch(20, 21), stream=7)
    script.kernel(35, 45, script.launch(1, 2), stream=13)
    ground = lay(script.timeline())
    queues = stream_queues(ground.spans, len(ground.lanes))

    found = queues.launched_before(np.array([0], np.int32), np.array([round(time_us * 1000)]))

    assert found.tolist() == [place]


def test_searching_stays_inside_the_group() -> None:
    first, times = np.array([0, 2, 2, 5]), np.array([5, 9, 1, 2, 3])

    found = search_in_groups(first, times, np.array([2, 0, 1, 2, 0]), np.array([0, 100, 7, 3, 9]))

    assert found.tolist() == [2, 2, 2, 4, 1]


def test_lateness_counts_from_the_return_of_the_launch_or_the_end_of_the_stream() -> None:
    script = Script()
    script.kernel(40, 60, script.launch(10, 15), name="by launch", stream=7)
    script.kernel(90, 95, script.launch(20, 22), name="by stream", stream=7)
    script.kernel(50, 70, name="unlinked", stream=13)
    ground = lay(script.timeline())

    assert lateness(ground).tolist() == [25_000, 0, 30_000]
    assert late_spans(ground).tolist() == [True, False, True]


def test_an_earlier_span_of_the_stream_may_end_last() -> None:
    script = Script()
    script.kernel(20, 100, script.launch(10, 11), name="long", stream=7)
    script.kernel(30, 40, script.launch(12, 13), name="overlaps", stream=7)
    script.kernel(105, 110, script.launch(14, 15), name="after", stream=7)
    ground = lay(script.timeline())

    assert lateness(ground)[2] == 5_000


def test_later_nodes_of_a_graph_launch_are_never_late() -> None:
    script = _graph()
    ground = lay(script.timeline())

    assert _names(script, np.flatnonzero(later_nodes(ground.spans))) == ["short"]
    assert not late_spans(ground)[1]


def test_what_follows_a_graph_waits_for_its_last_node() -> None:
    script = _graph()
    ground = lay(script.timeline())

    assert _names(script, last_nodes(ground.spans)) == ["long", "long", "plain"]
