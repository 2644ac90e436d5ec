"""What the units of a record took: by hand, and as laws."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.bench.spread import P95_MIN_UNITS, measure_spread, process_medians, variation
from longpole.records.run_record import SCHEMA, RecordProcess, RecordStage, RecordUnit, RunRecord
from longpole.stats.middle import half_width


def record(periods: list[list[int]], **fields: Any) -> RunRecord:
    units = [
        RecordUnit(period_ns=period, wall_ns=period, process=number)
        for number, of_process in enumerate(periods)
        for period in of_process
    ]
    return RunRecord(schema=SCHEMA, units=units, **fields)


def test_a_process_counts_once_however_many_units_it_has() -> None:
    found = measure_spread(record([[10, 10, 10, 10, 10], [20], [30]]))

    assert (found.median_ns, found.processes, found.units) == (20, 3, 7)
    assert found.between_cv_share == pytest.approx(0.5)
    assert found.within_cv_share == 0.0


def test_the_interval_is_a_t_interval_of_logarithms() -> None:
    """Two processes of 1 and e²: s = √2, t(0.95, 1) = 6.3138, so half the interval is 6.3138 · √2 / √2."""
    assert half_width([1.0, 7.38905609893065]) == pytest.approx(6.313751514675)
    assert half_width([5.0]) is None
    assert variation([5.0]) is None


def test_a_95th_percentile_needs_twenty_units() -> None:
    few, enough = ([[*range(1, n + 1)]] for n in (P95_MIN_UNITS - 1, P95_MIN_UNITS))

    assert measure_spread(record(few)).p95_ns is None
    assert measure_spread(record(enough)).p95_ns == 19


def test_units_left_out_are_counted_by_their_reason_and_nothing_else() -> None:
    made = record([[5, 6]])
    made.units[0].left_out = "warm-up"

    found = measure_spread(made)

    assert (found.median_ns, found.left_out) == (6, {"warm-up": 1})
    made.units[1].left_out = "failed"
    assert measure_spread(made).median_ns is None


def test_flags_of_a_process_are_those_of_its_units() -> None:
    made = record([[5, 5], [5, 5]], processes=[RecordProcess(0, flags=["stolen-time"]), RecordProcess(1)])
    made.units[3].flags = ["io-pressure"]

    assert measure_spread(made).flags == {"io-pressure": 0.25, "stolen-time": 0.5}


def test_a_unit_without_a_stage_spent_nothing_in_it() -> None:
    made = record([[10, 30]])
    made.units[0].stages = {"save": RecordStage(8), "residual": RecordStage(2)}
    made.units[1].stages = {"residual": RecordStage(30)}

    found = measure_spread(made)

    assert [(stage.name, stage.mean_ns) for stage in found.stages] == [("save", 4), ("residual", 16)]
    assert found.mean_ns == 20


@given(st.lists(st.lists(st.integers(10**6, 10**9), min_size=1, max_size=5), min_size=2, max_size=6), st.integers(2, 9))
def test_a_longer_clock_scales_times_and_no_share(periods: list[list[int]], factor: int) -> None:
    one = measure_spread(record(periods))
    other = measure_spread(record([[factor * period for period in of_process] for of_process in periods]))

    assert other.median_ns == pytest.approx(factor * (one.median_ns or 0), abs=factor)
    assert other.half_width_share == pytest.approx(one.half_width_share, rel=1e-3, abs=1e-5)
    assert other.largest_ns == factor * (one.largest_ns or 0)


@given(st.lists(st.integers(1, 10**9), min_size=2, max_size=8))
def test_the_order_of_processes_changes_nothing(medians: list[int]) -> None:
    one, other = (measure_spread(record([[m] for m in values])) for values in (medians, medians[::-1]))

    assert (one.median_ns, one.p95_ns) == (other.median_ns, other.p95_ns)
    assert one.half_width_share == pytest.approx(other.half_width_share, abs=1e-12)
    assert sorted(process_medians(record([[m] for m in medians])).values()) == sorted(medians)
