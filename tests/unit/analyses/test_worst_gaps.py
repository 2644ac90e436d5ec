"""The longest gaps, each with what a reader needs to find it (DESIGN 3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.analyses.worst_gaps import GAPS_KEPT
from tests.build import LOADER, Script, measure

if TYPE_CHECKING:
    from longpole.records.tables import GapRow


def _gaps(script: Script) -> list[GapRow]:
    return measure(script).rows[0].gaps


def _two_gaps() -> Script:
    script = Script()
    script.step(0, 0, 200)
    script.kernel(0, 50, script.launch(0, 1))
    script.span(LOADER, 45, 110)
    script.op("aten::stack", 60, 90)
    script.kernel(125, 180, script.launch(115, 120), name="relu_kernel")
    script.kernel(190, 200, script.launch(100, 105))
    return script


def test_the_longest_gap_comes_first_with_its_reasons() -> None:
    first, second = _gaps(_two_gaps())

    assert (first.reason, first.dur_ns, first.unit) == ("input", 75_000, "ProfilerStep#0")
    assert first.idle_ns == {"input": 60_000, "host.python": 5_000, "launch_call": 5_000, "launch_latency": 5_000}
    assert (second.reason, second.dur_ns) == ("kernel_gap", 10_000)


def test_a_gap_names_the_operation_its_thread_and_what_ended_it() -> None:
    first = _gaps(_two_gaps())[0]

    assert (first.name, first.thread, first.closed_by) == (LOADER, "main", "relu_kernel")
    assert first.where.start_ns == 50_000


def test_a_gap_shows_what_was_open_from_the_outermost_span_inwards() -> None:
    assert _gaps(_two_gaps())[0].stack == ["ProfilerStep#0", LOADER]


def test_a_recorded_call_stack_is_shown_outermost_first() -> None:
    script = _two_gaps()
    script.host[2].stack = "loop.py(9): run;train.py(3): main"  # as exporters write it: the innermost first

    assert _gaps(script)[0].stack == ["train.py(3): main", "loop.py(9): run", LOADER]


def test_a_gap_in_python_names_the_threads_that_were_active_meanwhile() -> None:
    """Case B076: another thread may hold the interpreter lock."""
    script = Script()
    script.step(0, 0, 200)
    script.kernel(0, 50, script.launch(0, 1))
    script.frame("metrics.py(3): flush", 50, 150, thread="metrics")
    script.frame("metrics.py(9): encode", 60, 140, thread="metrics")
    script.kernel(180, 200, script.launch(170, 175))

    assert _gaps(script)[0].other_threads == ["metrics: metrics.py(9): encode"]


def test_a_gap_with_a_reason_of_its_own_names_no_other_threads() -> None:
    script = _two_gaps()
    script.frame("metrics.py(3): flush", 50, 150, thread="metrics")

    assert _gaps(script)[0].other_threads == []


def test_a_gap_at_the_end_of_the_record_is_ended_by_nothing() -> None:
    script = Script()
    script.step(0, 0, 200)
    script.kernel(0, 50, script.launch(0, 1))

    assert [gap.closed_by for gap in _gaps(script)] == [""]


def test_gaps_outside_the_units_are_left_out() -> None:
    script = Script()
    script.step(0, 100, 200)
    script.kernel(0, 20)
    script.kernel(90, 210)

    assert _gaps(script) == []


def test_a_gap_over_a_boundary_counts_once_in_the_unit_that_it_begins_in() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.step(1, 100, 200)
    script.kernel(0, 50, script.launch(0, 1))
    script.kernel(180, 200, script.launch(170, 175))

    assert [(gap.unit, gap.dur_ns) for gap in _gaps(script)] == [("ProfilerStep#0", 130_000)]


def test_there_is_a_bounded_number_of_gaps() -> None:
    script = Script()
    for number in range(GAPS_KEPT + 5):
        script.kernel(100 * number, 100 * number + 50)

    assert len(_gaps(script)) == GAPS_KEPT
