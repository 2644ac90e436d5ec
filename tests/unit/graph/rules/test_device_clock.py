"""The move of a device's clock: the smallest for which no span starts before its launch or ends after its wait."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from longpole.graph.device_clock import DeviceClock, fit_device_clock
from longpole.graph.kinds import EdgeKind
from tests.build import Script
from tests.run_graphs import edge_lines, graph_of, replayed


def _fit(
    launch: list[int], start: list[int], end: list[int], calls: list[tuple[int, int]] | None = None
) -> DeviceClock:
    calls = calls or []
    columns = [launch, start, end, [a for a, _ in calls], [b for _, b in calls]]
    return fit_device_clock(*(np.array(column, np.int64) for column in columns))


def test_nothing_moves_where_nothing_contradicts() -> None:
    assert _fit([0, 100], [5, 106], [50, 150], [(110, 160)]) == DeviceClock(0, 0)
    assert _fit([], [], []) == DeviceClock(0, 0)


def test_spans_before_their_launch_move_all_of_them() -> None:
    assert _fit([0, 100], [5, 88], [50, 150]) == DeviceClock(12, 0)


def test_ends_after_a_wait_move_them_the_other_way() -> None:
    """The call that waits for all returns at 160; the span ends at 170."""
    assert _fit([0, 100], [15, 130], [50, 170], [(110, 160)]) == DeviceClock(-10, 0)


def test_the_smallest_move_that_fits_both() -> None:
    """It must move by 12 at least and may by 30 at most."""
    assert _fit([0, 100], [5, 88], [50, 130], [(110, 160)]) == DeviceClock(12, 0)


def test_where_none_fits_the_middle_is_taken_and_the_conflict_told() -> None:
    """By 40 at least for the launches, by 10 at most for the wait."""
    assert _fit([0, 100], [5, 60], [50, 150], [(110, 160)]) == DeviceClock(25, 30)


def test_a_call_before_the_first_launch_waits_for_nothing() -> None:
    assert _fit([100], [110], [500], [(50, 60)]) == DeviceClock(0, 0)


@pytest.mark.parametrize("off_us", [-30, -3, 0, 3, 30])
def test_a_device_whose_clock_is_off_replays_the_same(off_us: int) -> None:
    """Spans that only seem to start too early; those that seem late look like long launches, and are refused below."""
    script = Script()
    for step in range(6):
        at = 1000.0 * step
        script.step(step, at, at + 1000)
        script.kernel(at + 10 + off_us, at + 700 + off_us, script.launch(at + 4, at + 7))
        script.sync(at + 20, at + 705, name="cudaDeviceSynchronize")

    run, graph = replayed(script), graph_of(script)

    assert run.replayed.judgement.error_of_median == pytest.approx(0, abs=0.02)
    launch, start = edge_lines(graph, EdgeKind.LAUNCH)[0][:2]
    assert launch <= start
    assert graph.conflict_ns[0] == 0


def test_the_ledgers_own_figures_are_not_moved() -> None:
    script = Script()
    script.step(0, 0, 100)
    span = script.kernel(5, 50, script.launch(10, 12))
    before = replace(script).timeline().device.start_ns.tolist()

    graph = graph_of(script)

    assert graph.shift_ns == {0: 5000}
    assert script.timeline().device.start_ns.tolist() == before == [span.start_ns]
