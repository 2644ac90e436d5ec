"""Where stretches of an activity begin and end in the graph.

main     ●launch──── lead ────[ activity ]──── lag ────●launch
"""

from __future__ import annotations

import numpy as np

from longpole.whatif.occurrences import Occurrence, find_occurrences
from longpole.whatif.selection import section_parts, thread_time
from longpole.whatif.selector import parse_selector
from tests.build import Script
from tests.run_graphs import Run, replayed

SAVE = "save_checkpoint"


def _run() -> Run:
    script = Script(base_ns=0)
    for step in range(3):
        at = 1000.0 * step
        script.step(step, at, at + 1000)
        script.kernel(at + 20, at + 400, script.launch(at + 10, at + 13))
        script.span(SAVE, at + 50, at + 250 + step)
        script.sync(at + 300, at + 405)
    return replayed(script)


def _found(run: Run, selector: str = "output") -> list[Occurrence]:
    draft = run.draft()
    ((track, time),) = thread_time(draft, 0, parse_selector(selector))
    return find_occurrences(draft, 0, track, time)


def test_each_lies_between_the_points_around_it() -> None:
    run = _run()
    found = _found(run)
    time_ns = run.graph.time_ns

    assert [write.dur_ns for write in found] == [200_000, 201_000, 202_000]
    assert [write.lead_ns for write in found] == [37_000] * 3
    assert [write.lag_ns for write in found] == [50_000, 49_000, 48_000]
    for write in found:
        whole = int(time_ns[write.behind] - time_ns[write.before])
        assert write.lead_ns + write.dur_ns + write.lag_ns == whole
        assert write.begin_ns == time_ns[write.before] + write.lead_ns


def test_on_a_rank_whose_clock_is_moved_they_begin_on_the_runs_clock() -> None:
    found = _found(_run())

    assert np.diff([write.begin_ns for write in found]).tolist() == [1_000_000, 1_000_000]


def test_time_before_the_first_and_behind_the_last_point_is_left_out() -> None:
    """The collected host time begins before the record; that stretch has no point in front of it."""
    found = _found(_run(), "host")

    assert all(write.lead_ns >= 0 and write.lag_ns >= 0 for write in found)


def test_earlier_changes_shorten_them() -> None:
    run = _run()
    draft = run.draft()
    threads = thread_time(draft, 0, parse_selector("output"))
    draft.shorten(0, threads, section_parts(draft, 0, threads), 0.5)

    found = find_occurrences(draft, 0, *threads[0])

    assert [write.dur_ns for write in found] == [100_000, 100_500, 101_000]
    assert [write.lead_ns for write in found] == [37_000] * 3
