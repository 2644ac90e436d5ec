"""Which call issued a collective that a library's own thread carries out.

main     ├ c10d::allreduce_ ┤
worker          ├──────── gloo:all_reduce ────────┤
"""

from __future__ import annotations

from longpole.graph.kinds import EdgeKind
from tests.build import Script
from tests.run_graphs import edge_lines, graph_of

K = EdgeKind


def _issues(script: Script) -> list[tuple[float, float, float]]:
    return [(src, dst, length) for src, dst, _, length in edge_lines(graph_of(script), K.ISSUE)]


def _job(*pairs: tuple[float, float], op: str = "c10d::allreduce_") -> Script:
    """Draw (issued, begun) pairs on the main and the library's thread."""
    script = Script()
    script.step(0, 0, 1000)
    for issued, begun in pairs:
        script.op(op, issued, issued + 5)
        script.span("gloo:all_reduce", begun, begun + 40, thread="gloo")
    return script


def test_calls_and_spans_are_paired_in_order_and_the_wake_up_is_kept() -> None:
    assert _issues(_job((10, 30), (100, 107))) == [(10, 30, 20), (100, 107, 7)]


def test_of_nested_operators_the_outer_one_issues() -> None:
    script = _job((10, 30))
    script.op("c10d::allreduce_", 11, 14)

    assert _issues(script) == [(10, 30, 20)]


def test_a_wait_issues_nothing() -> None:
    script = _job((10, 30))
    script.op("c10d::wait", 50, 75)

    assert _issues(script) == [(10, 30, 20)]


def test_where_numbers_differ_nothing_is_paired() -> None:
    script = _job((10, 30))
    script.op("c10d::allreduce_", 300, 305)

    assert _issues(script) == []


def test_a_span_before_its_call_makes_the_order_doubtful() -> None:
    assert _issues(_job((50, 30))) == []


def test_the_librarys_thread_does_nothing_between_its_spans() -> None:
    lines = edge_lines(graph_of(_job((10, 30), (100, 107))), K.SILENT, K.MEMBER)

    assert (30, 70, "MEMBER", 40) in lines
    assert (70, 107, "SILENT", 0) in lines
