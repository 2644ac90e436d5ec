"""Where a person should look: the row that shows a figure, with its thread or stream, its unit, and the run's time.

main     ├ loader ┤ 50 ├ launch ┤├─ sync ─┤ 195 ┤
device                     ├ gemm ┤
"""

from __future__ import annotations

import numpy as np
import pytest

from longpole.advice.places import call, longest, span, unit_at
from longpole.timeline.intervals import Intervals
from tests.build import LOADER, MAIN
from tests.scenes import loading_job, scene_of

US = 1000
SCENE = scene_of(loading_job(100, 300, 200))
VIEW = SCENE.views[0]


def test_the_longest_stretch_is_shown_with_the_longest_span_inside() -> None:
    """The second step begins at 600 µs, and its loader at 650."""
    found = longest(VIEW, VIEW.activity_time("data_loader"))

    assert (found.rank, found.name, found.start_ns) == (0, LOADER, 650 * US)
    assert (found.track, found.unit) == (MAIN, "ProfilerStep#1")


def test_a_stretch_without_a_record_has_no_name() -> None:
    """From the sync's return to the step's end nothing is recorded."""
    found = longest(VIEW, Intervals.single(350 * US, 560 * US))

    assert (found.name, found.start_ns, found.unit) == ("", 350 * US, "ProfilerStep#0")


def test_without_time_there_is_only_the_rank() -> None:
    found = longest(VIEW, Intervals.none())

    assert (found.rank, found.name, found.start_ns, found.track) == (0, "", None, "")
    assert longest(VIEW, Intervals.single(0, 10), track=-1) == found


def test_a_call_and_a_span_are_shown_where_they_are() -> None:
    rows = VIEW.rows(VIEW.call == "sync")
    waits, kernel = call(VIEW, int(rows[1])), span(VIEW, 1)

    assert (waits.name, waits.start_ns, waits.track) == ("cudaDeviceSynchronize", 1020 * US, MAIN)
    assert (kernel.name, kernel.start_ns, kernel.unit) == ("gemm_kernel", 1010 * US, "ProfilerStep#1")
    assert "7" in kernel.track


@pytest.mark.parametrize(
    ("time_us", "unit"), [(-1, ""), (0, "ProfilerStep#0"), (599, "ProfilerStep#0"), (600, "ProfilerStep#1")]
)
def test_a_moment_lies_in_the_last_unit_that_has_begun(time_us: int, unit: str) -> None:
    assert unit_at(VIEW, time_us * US) == unit


def test_times_are_told_on_the_run_s_clock() -> None:
    """Rank 1's clock shows 5 ms less than rank 0's, its base time 5 ms more."""
    late = loading_job(100, 300, 200, rank=1, world=2).shifted(-5_000_000)
    scene = scene_of(loading_job(100, 300, 200, rank=0, world=2), late)
    places = [span(scene.view_of[rank], 1).start_ns for rank in (0, 1)]

    assert places == [1010 * US, 1010 * US]
    assert np.diff([view.offset_ns for view in scene.views]).tolist() == [5_000_000]
