"""Units from spans: what they add up to, against an oracle that looks at every nanosecond."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.bench.span_units import FAILED, RESIDUAL, WARM_UP, SpanViews, Window, units_of_spans
from longpole.records.ledger import Unknown
from longpole.records.span_file import CollectiveLine, Header, SpanLine, UnitLine
from longpole.records.span_file_read import SpanFile

if TYPE_CHECKING:
    from collections.abc import Sequence

MAIN, OTHER = 1, 2


def span_file(units: Sequence[UnitLine] = (), spans: Sequence[SpanLine] = (), marks: Sequence[Any] = ()) -> SpanFile:
    header = Header("longpole.spans/1", clock_ns=0, epoch_ns=0, pid=1, main_thread=MAIN)
    return SpanFile("main.spans.jsonl", header, units=list(units), spans=list(spans), collectives=list(marks))


def unit(start: int, end: int, name: str = "step", *, thread: int = MAIN, failed: bool = False) -> UnitLine:
    return UnitLine(name, start, end - start, thread, failed=failed)


def span(name: str, start: int, end: int, obj: Any = "", *, stage: str = "", thread: int = MAIN) -> SpanLine:
    return SpanLine(name, start, end - start, thread, obj, stage=stage)


def test_stages_are_outermost_spans_and_the_residual_is_what_lies_between() -> None:
    """The picture of the module, in numbers.

    unit      ├──────────────────┤ 0..20
    spans       ├input┤ ├forward┤  2..6, 8..18
                          ├save┤   10..14
    """
    recorded = span_file(
        [unit(0, 20)],
        [
            span("input", 2, 6, "input"),
            span("model", 8, 18, "compute", stage="forward"),
            span("save", 10, 14, "output"),
        ],
    )

    (found,) = units_of_spans(recorded)

    assert {name: stage.wall_ns for name, stage in found.stages.items()} == {"input": 4, "forward": 10, RESIDUAL: 6}
    assert {name: time.exposed_ns for name, time in found.objects.items()} == {
        "input": 4,
        "compute": 6,
        "output": 4,
        "host": 6,
    }


def test_a_collective_of_another_thread_takes_what_is_not_compute() -> None:
    recorded = span_file(
        [unit(0, 20)],
        [span("forward", 0, 8, "compute"), span("batch", 8, 12, "input")],
        [
            CollectiveLine("enter", "all_reduce", "dp", 0, 4, OTHER),
            CollectiveLine("leave", "all_reduce", "dp", 0, 10, OTHER),
            CollectiveLine("enter", "all_reduce", "dp", 1, 15, OTHER),  # never came back
        ],
    )

    (found,) = units_of_spans(recorded)

    assert {name: time.exposed_ns for name, time in found.objects.items()} == {
        "compute": 8,
        "collective": 2,
        "input": 2,
        "host": 8,
    }


def test_a_period_runs_from_completion_to_completion_and_holds_what_lies_between_units() -> None:
    recorded = span_file([unit(0, 10, "0"), unit(14, 20, "1"), unit(20, 31, "2")], [span("next", 10, 14, "input")])

    first, second, third = units_of_spans(recorded)

    assert isinstance(first.period_ns, Unknown)
    assert (second.period_ns, second.wall_ns, third.period_ns) == (10, 10, 11)
    assert {name: stage.wall_ns for name, stage in second.stages.items()} == {"next": 4, RESIDUAL: 6}


def test_a_single_unit_has_its_own_length_as_period() -> None:
    (found,) = units_of_spans(span_file([unit(5, 12)]))

    assert found.period_ns == 7
    assert found.stages == {}


def test_units_that_overlap_keep_their_own_time() -> None:
    """Requests on two threads: each has its stages from its own thread, and periods count completions."""
    recorded = span_file(
        [unit(0, 10, "a", thread=MAIN), unit(4, 16, "b", thread=OTHER)],
        [span("prefill", 4, 9, thread=OTHER)],
    )

    found = {one.name: one for one in units_of_spans(recorded)}

    assert (found["b"].wall_ns, found["b"].period_ns) == (12, 6)
    assert {name: stage.wall_ns for name, stage in found["b"].stages.items()} == {"prefill": 5, RESIDUAL: 7}
    assert found["a"].stages == {}


def test_warm_up_and_failed_units_are_left_out() -> None:
    recorded = span_file([unit(0, 5), unit(5, 9), unit(9, 14, failed=True), unit(14, 18)])

    assert [one.left_out for one in units_of_spans(recorded, warmup_units=1)] == [WARM_UP, "", FAILED, ""]


@st.composite
def crossing_spans(draw: st.DrawFn) -> list[SpanLine]:
    """Spans that may nest, touch or cross."""
    spans = []
    for number in range(draw(st.integers(0, 8))):
        start = draw(st.integers(0, 40))
        obj = draw(st.sampled_from(["", "input", "output", "compute", "collective", "state"]))
        spans.append(span(f"s{number}", start, start + draw(st.integers(0, 20)), obj))
    return spans


def charged_stage(spans: Sequence[SpanLine], at: int) -> str:
    """Who holds one nanosecond: of the open spans the one that began first, and of those the longest."""
    running = [one for one in spans if one.s <= at < one.s + one.d]
    return min(running, key=lambda one: (one.s, -one.d)).n if running else RESIDUAL


@given(crossing_spans(), st.integers(0, 40), st.integers(1, 30), st.integers(1, 7))
def test_stages_and_objects_add_up_to_the_unit(spans: list[SpanLine], start: int, length: int, calls: int) -> None:
    views = SpanViews.of(span_file(spans=spans), MAIN)
    window = Window(start_ns=start, end_ns=start + length, period_ns=length, calls=calls)

    found = views.unit(window, process=0)

    assert found.wall_ns == (2 * length + calls) // (2 * calls)
    for parts in (
        [stage.wall_ns for stage in found.stages.values()],
        [time.exposed_ns for time in found.objects.values()],
    ):
        assert not parts or sum(parts) == found.wall_ns
        assert all(part >= 0 for part in parts)


@given(crossing_spans(), st.integers(0, 40), st.integers(1, 30))
def test_stages_are_those_of_every_nanosecond(spans: list[SpanLine], start: int, length: int) -> None:
    unlike = {(one.s, one.d): one for one in spans if one.d}.values()  # equal spans may be told apart by neither
    views = SpanViews.of(span_file(spans=list(unlike)), MAIN)

    found = views.unit(Window(start_ns=start, end_ns=start + length, period_ns=length), process=0)

    slow: dict[str, int] = {}
    for at in range(start, start + length):
        name = charged_stage(list(unlike), at)
        slow[name] = slow.get(name, 0) + 1
    fast = {name: stage.wall_ns for name, stage in found.stages.items() if stage.wall_ns}
    assert fast == (slow if unlike else {})


@pytest.mark.parametrize("calls", [1, 3])
def test_a_sample_of_several_calls_is_divided_by_them(calls: int) -> None:
    views = SpanViews.of(span_file(spans=[span("work", 0, 60)]), MAIN)

    found = views.unit(Window(start_ns=0, end_ns=90, period_ns=90 // calls, calls=calls), process=0)

    assert found.wall_ns == 90 // calls
    assert {name: stage.wall_ns for name, stage in found.stages.items()} == {
        "work": 60 // calls,
        RESIDUAL: 30 // calls,
    }
