"""Limits are read strictly, and each figure means what it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.advice.verify.differences import compare_sides
from longpole.advice.verify.limits import figure_of, judge_limits, parse_limit, side_figures
from longpole.errors import UsageError
from longpole.records.ledger import Unknown
from longpole.settings import Settings
from tests.verify_runs import Job

SETTINGS = Settings()


@pytest.mark.parametrize(
    ("text", "figure", "relation", "value"),
    [
        ("p99_ms<=200", "p99_ms", "<=", 200),
        ("peak_bytes<=80e9", "peak_bytes", "<=", 80e9),
        (" peak_bytes < 80 GB ", "peak_bytes", "<", 80e9),
        ("p95_ms≤1.5s", "p95_ms", "<=", 1500),
        ("items_per_s>=1e3", "items_per_s", ">=", 1000),
        ("gpu_s_per_item<=0.02", "gpu_s_per_item", "<=", 0.02),
        ("ttft_p99_ms>-1", "ttft_p99_ms", ">", -1),
    ],
)
def test_a_limit_is_figure_relation_number(text: str, figure: str, relation: str, value: float) -> None:
    limit = parse_limit(text)
    assert (limit.figure, limit.relation, limit.value) == (figure, relation, value)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("p99_ms", "no relation"),
        ("<=200", "no figure"),
        ("p99_ms<=", "no figure"),
        ("p99_ms<=fast", "'fast'"),
        ("p99_ms=200", "'='"),
        ("p99_ms==200", "'=='"),
        ("p99_ms<=nan", "'nan'"),
        ("p99_ms<=inf", "'inf'"),
        ("peak_bytes<=80 apples", "'80 apples'"),
        ("p99_ms<=200GB", "'200GB'"),
        ("99<=1", "no figure"),
    ],
)
def test_what_is_wrong_with_a_limit_is_named(text: str, found: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_limit(text)
    assert str(caught.value).startswith(f"--limit {text!r}: expected")
    assert found in str(caught.value)


@given(st.text(max_size=20))
def test_any_text_is_a_limit_or_a_usage_error(text: str) -> None:
    try:
        value = parse_limit(text).value
    except UsageError:
        value = 0.0
    assert np.isfinite(value)


def test_figures_from_units() -> None:
    steady = Job(parts={"compute": 100}, within=0, between=0, items=50, world=4, units=60)
    side = compare_sides(steady.runs(2, 1), steady.runs(2, 2), SETTINGS).after
    for figure, value in {
        "median_ms": 100,
        "mean_ms": 100,
        "p95_ms": 100,
        "p99_ms": 100,
        "cv": 0,
        "p95_over_median": 1,
        "items_per_s": 500,
        "gpu_s_per_item": 0.1 * 4 / 50,
    }.items():
        assert figure_of(side, figure, SETTINGS) == pytest.approx(value), figure


@pytest.mark.parametrize(
    ("figure", "units", "missing"),
    [("p99_ms", 40, "more units"), ("p95_ms", 5, "more units"), ("peak_bytes", 40, "peak_bytes"), ("vram", 40, "vram")],
)
def test_a_figure_that_is_not_known_says_what_is_missing(figure: str, units: int, missing: str) -> None:
    side = compare_sides(Job(units=units).runs(1, 1), Job(units=units).runs(1, 2), SETTINGS).after
    found = figure_of(side, figure, SETTINGS)
    assert isinstance(found, Unknown)
    assert missing in found.missing


def test_device_time_needs_items_and_ranks() -> None:
    bare = replace(Job(), items=None)
    side = compare_sides(bare.runs(1, 1), bare.runs(1, 2), SETTINGS).after
    assert isinstance(figure_of(side, "gpu_s_per_item", SETTINGS), Unknown)


def test_percentiles_are_over_all_units_and_never_of_percentiles() -> None:
    """Nine quiet runs and one with a slow unit: the 99th percentile of 100 units is the slowest but one."""
    quiet = Job(parts={"compute": 100}, within=0, between=0, units=10)
    runs = quiet.runs(10, 1)
    runs[0].units[0].period_ns = 900_000_000
    side = compare_sides(runs, quiet.runs(10, 2), SETTINGS).before
    assert figure_of(side, "p99_ms", SETTINGS) == 100


@given(st.floats(1, 300), st.floats(0, 100))
def test_a_looser_limit_never_breaks(limit: float, more: float) -> None:
    comparison = compare_sides(Job().runs(1, 1), Job().runs(1, 2), SETTINGS)
    tight, loose = (parse_limit(f"median_ms<={value!r}") for value in (limit, limit + more))
    found = judge_limits(comparison, [tight, loose], SETTINGS)
    assert not (found[0].status == "met" and found[1].status == "broken")


def test_a_rise_in_memory_is_said_though_nobody_limited_it() -> None:
    comparison = compare_sides(
        Job(limits={"peak_bytes": 50e9}).runs(1, 1), Job(limits={"peak_bytes": 60e9}).runs(1, 2), SETTINGS
    )
    says = {figure.figure: figure.says for figure in side_figures(comparison, SETTINGS)}
    assert says["peak_bytes"] == "peak memory rose from 50.0 GB to 60.0 GB"
