"""What a change to a declared event saves: worked out by hand, and by measuring the changed event."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from longpole.costs.declared_events import DeclaredEvent, Lifecycle, measure_event
from longpole.costs.declared_savings import CHANGES, Saving, find_savings, largest_saving
from longpole.errors import Unanswered
from tests.declared_events import events, lifecycles


def savings_of(lifecycle: Lifecycle = Lifecycle(), **given: Any) -> dict[str, Saving]:  # noqa: B008 - frozen
    declared = DeclaredEvent(**{"object": "state", "bytes": 0, "bandwidth_gbps": 1.0, **given})
    return {saving.change: saving for saving in find_savings(declared, lifecycle)}


def test_a_blocking_event_with_a_window_could_hide_under_it() -> None:
    overlap = savings_of(fixed_latency_ms=12.0, overlap_window_ms=5.0, frequency=2)["overlap"]

    assert (overlap.saves_ms, overlap.at_most_ms, overlap.needs_window_ms) == (10.0, 24.0, 12.0)


def test_without_a_window_what_overlap_saves_is_not_known() -> None:
    overlap = savings_of(fixed_latency_ms=12.0)["overlap"]

    assert overlap.saves_ms == Unanswered("no overlap window is declared", ("overlap_window_ms",))
    assert overlap.at_most_ms == 12.0


def test_a_window_of_nothing_is_known_to_hide_nothing() -> None:
    assert savings_of(fixed_latency_ms=12.0, overlap_window_ms=0.0)["overlap"].saves_ms == 0.0


def test_half_as_many_operations_pay_half_the_latencies_and_one_pays_one() -> None:
    fewer = savings_of(bytes=10**6, fixed_latency_ms=3.0, frequency=8)["fewer_operations"]

    assert fewer.saves_ms == pytest.approx(12.0)
    assert fewer.at_most_ms == pytest.approx(21.0)


def test_one_operation_cannot_be_fewer() -> None:
    assert "fewer_operations" not in savings_of(fixed_latency_ms=3.0)
    assert "fewer_operations" not in savings_of(Lifecycle(units_per_run=9), fixed_latency_ms=3.0, per="run")
    assert "fewer_operations" in savings_of(Lifecycle(tokens_per_unit=9), fixed_latency_ms=3.0, per="token")


def test_bandwidth_saves_no_latency() -> None:
    bandwidth = savings_of(bytes=10**7, fixed_latency_ms=100.0)["bandwidth"]

    assert bandwidth.saves_ms == pytest.approx(5.0)
    assert bandwidth.at_most_ms == pytest.approx(10.0)


def test_bandwidth_for_what_is_hidden_saves_nothing() -> None:
    savings = savings_of(bytes=10**7, overlap_window_ms=50.0, blocking_dependency=False)

    assert savings["bandwidth"].saves_ms == 0.0
    assert "overlap" not in savings
    assert largest_saving(list(savings.values())) is None


def test_a_faster_drain_ends_the_stall() -> None:
    """4 GB/s for 300 ms into 300 MB: 600 ms of stall at 1 GB/s, (2 · 300 - 300) / 2 = 150 ms at 2 GB/s."""
    drain = savings_of(
        object="output", production_gbps=4.0, drain_gbps=1.0, queue_bytes=300_000_000, duration_ms=300.0
    )["drain"]

    assert drain.saves_ms == pytest.approx(450.0)
    assert drain.at_most_ms == pytest.approx(600.0)


def test_the_largest_saving_is_of_the_part_that_rules() -> None:
    latency = list(savings_of(bytes=1000, fixed_latency_ms=1.0, frequency=1000).values())
    size = list(savings_of(bytes=10**9, fixed_latency_ms=1.0, frequency=2).values())
    packing = list(savings_of(bytes=10**6, serialization_ms=50.0).values())

    assert [saving.change for saving in map(largest_saving, (latency, size, packing)) if saving] == [
        "fewer_operations",
        "bandwidth",
        "serialization",
    ]


@given(events, lifecycles)
def test_no_step_saves_more_than_going_on_and_nothing_saves_more_than_the_wait(
    declared: DeclaredEvent, lifecycle: Lifecycle
) -> None:
    waits_ms = measure_event(declared, lifecycle).wait_ms
    slack = 1e-9 * max(waits_ms, 1e-9)

    savings = find_savings(declared, lifecycle)

    assert [s.change for s in savings] == [change for change in CHANGES if change in {s.change for s in savings}]
    for saving in savings:
        step_ms = saving.saves_ms if isinstance(saving.saves_ms, float) else 0.0
        assert 0 <= step_ms <= saving.at_most_ms + slack
        assert saving.at_most_ms <= waits_ms + slack


@given(events, lifecycles)
def test_the_bandwidth_step_is_the_event_measured_with_twice_the_bandwidth(
    declared: DeclaredEvent, lifecycle: Lifecycle
) -> None:
    before_ms = measure_event(declared, lifecycle).wait_ms
    after_ms = measure_event(replace(declared, bandwidth_gbps=2 * declared.bandwidth_gbps), lifecycle).wait_ms

    for saving in find_savings(declared, lifecycle):
        if saving.change == "bandwidth":
            assert saving.saves_ms == pytest.approx(before_ms - after_ms, rel=1e-6, abs=1e-9 * max(before_ms, 1e-9))


@given(events, lifecycles)
def test_hiding_takes_the_window_that_is_named(declared: DeclaredEvent, lifecycle: Lifecycle) -> None:
    for saving in find_savings(declared, lifecycle):
        if saving.change == "overlap":
            hidden = replace(declared, blocking_dependency=False, overlap_window_ms=saving.needs_window_ms)
            times = measure_event(hidden, lifecycle)
            assert times.exposed_ms + times.serialization_exposed_ms <= 1e-9 * (
                times.service_ms + times.serialization_ms
            )
