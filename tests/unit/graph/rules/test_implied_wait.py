"""A long silence of the main thread that ends as the device runs dry was a wait for it.

main     ├ launch ┤ ········ silent ········ ├ next call
device        ├──────── last span ────────┤  at most 20 µs
"""

from __future__ import annotations

import pytest

from longpole.graph.kinds import EdgeKind
from tests.build import LOADER, Script
from tests.run_graphs import edge_lines, graph_of

K = EdgeKind


def _job(*, ends: float = 490, resumes: float = 500, launched: float = 5, note: str = "") -> Script:
    script = Script()
    script.step(0, 0, 900)
    script.launch(0, 3)
    script.kernel(launched + 6, ends, script.launch(launched, launched + 3, thread="main" if launched < 10 else "b"))
    script.kernel(resumes + 10, resumes + 60, script.launch(resumes, resumes + 3))
    if note:
        script.span(note, 9, resumes - 1)
    return script


def _waits(script: Script) -> list[tuple[float, float]]:
    return [(src, dst) for src, dst, _, _ in edge_lines(graph_of(script), K.IMPLIED_WAIT)]


def test_it_waits_for_the_span_that_ran_last() -> None:
    script = _job()

    assert _waits(script) == [(490, 500)]
    assert (8, 500, "SILENT", 0) in edge_lines(graph_of(script), K.SILENT)


@pytest.mark.parametrize(("ends", "waits"), [(480, True), (479, False), (505, True), (511, False)])
def test_the_silence_ends_within_twenty_microseconds_and_what_clocks_allow(ends: float, waits: bool) -> None:
    assert bool(_waits(_job(ends=ends))) == waits


@pytest.mark.parametrize(
    "script",
    [_job(ends=190, resumes=200), _job(note=LOADER), _job(launched=100)],
    ids=["shorter than 200 µs", "the loader explains it", "launched during the silence"],
)
def test_other_silences_are_no_waits(script: Script) -> None:
    assert _waits(script) == []


def test_another_thread_may_be_silent_as_long_as_it_likes() -> None:
    script = Script()
    script.step(0, 0, 900)
    script.op("aten::mul", 0, 900)
    script.kernel(10, 490, script.launch(2, 5, thread="other"))
    script.launch(500, 503, thread="other")

    assert _waits(script) == []
