"""Points: rates by the factors of nccl-tests, and times that count only where the result was right."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from longpole.bench.collectives.points import logged_point, measured_point
from longpole.records.bench_collectives import CollectivesRound
from longpole.records.ledger import Unknown
from tests.collective_points import where

if TYPE_CHECKING:
    from pathlib import Path


def test_bus_bandwidth_is_that_of_nccl_tests(oracles: Path) -> None:
    """busbw = (S / t) * factor, for every kind and number of ranks of the published table."""
    lines = (oracles / "nccl_busbw_factors.csv").read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))

    for row in rows:
        kind = {"alltoall": "all_to_all"}.get(row["collective"], row["collective"])
        for ranks in (2, 4, 8, 16):
            point = measured_point(where(10**9, kind=kind, ranks=ranks), [CollectivesRound(0, [10**9])], 0)
            assert point.algbw_gb_per_s == 1.0
            assert point.busbw_gb_per_s == pytest.approx(float(row[f"n{ranks}"])), (kind, ranks)
    assert len(rows) == 6


def test_a_wrong_result_has_no_time() -> None:
    point = measured_point(where(1024), [CollectivesRound(0, [5, 6])], 3)

    assert point.correctness == "failed"
    for figure in (point.time_ns, point.p95_ns, point.algbw_gb_per_s, point.busbw_gb_per_s):
        assert figure == Unknown("3 elements of the result were wrong")


def test_repeats_of_all_rounds_make_the_median_and_a_percentile_from_twenty_on() -> None:
    rounds = [CollectivesRound(number, list(range(10 * number, 10 * number + 10))) for number in range(2)]

    assert measured_point(where(1024), rounds, 0).p95_ns == 18
    assert measured_point(where(1024), rounds[:1], 0).p95_ns == Unknown("n < 20")
    assert measured_point(where(1024), rounds, 0).time_ns == 10


@pytest.mark.parametrize(
    ("times", "said", "wrong", "time"),
    [
        ([56_000], "passed", 0, 56_000),
        ([56_000], "not_checked", None, 56_000),
        ([56_000], "failed", 4, Unknown("4 elements of the result were wrong")),
        ([56_000], "failed", None, Unknown("the log says: out of bounds")),
        ([0], "passed", 0, Unknown("the log gives no time")),
        ([50, 90, 60], "passed", 0, 60),
    ],
)
def test_a_row_of_a_log_counts_where_its_result_was_right(
    times: list[int], said: str, wrong: int | None, time: int | Unknown
) -> None:
    point = logged_point(where(1024), times, 20, said, wrong)  # type: ignore[arg-type]  # the table says which words

    assert point.time_ns == time
    assert point.statistic == "mean"
    assert isinstance(point.p95_ns, Unknown)


def test_a_kind_without_a_factor_has_no_bus_bandwidth() -> None:
    point = measured_point(where(1024, kind="gather"), [CollectivesRound(0, [5])], 0)

    assert isinstance(point.algbw_gb_per_s, float)
    assert isinstance(point.busbw_gb_per_s, Unknown)
