"""From samples to points: one kind at one size under one setting, with its rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.ranks.cost_model import bus_factor
from longpole.records.bench_collectives import CollectivesPoint, CollectivesRound
from longpole.records.ledger import Unknown
from longpole.stats import median_ns, percentile_ns
from longpole.units import gb_per_s

if TYPE_CHECKING:
    from longpole.records.bench_collectives import Correctness, Placement, Statistic

P95_FROM: Final = 20
"""Repeats from which on a 95th percentile is shown (DESIGN 3.12)."""

_NO_TIME: Final = Unknown("no time passed")
_NO_FACTOR: Final = Unknown("no factor is defined for this kind, or the number of ranks is not known")


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What a point is of."""

    kind: str
    ranks: int
    dtype: str
    setting: str
    placement: Placement
    size_bytes: int


def measured_point(where: Where, rounds: list[CollectivesRound], wrong: int) -> CollectivesPoint:
    """Make a point of what fresh processes measured, round by round.

    Args:
        where: What was measured.
        rounds: At least one.
        wrong: Elements of results that were not what they must be; times count only where there is none.
    """
    samples = [sample for one in rounds for sample in one.samples_ns]
    if wrong or not samples:
        why = Unknown(f"{wrong:,} elements of the result were wrong" if wrong else "nothing was timed")
        return _point(
            where, why, "median", correctness="failed" if wrong else "not_checked", wrong=wrong, rounds=rounds
        )
    point = _point(where, median_ns(samples), "median", correctness="passed", wrong=0, rounds=rounds)
    point.p95_ns = percentile_ns(samples, 0.95) if len(samples) >= P95_FROM else Unknown(f"n < {P95_FROM}")
    point.repeats = len(samples)
    return point


def logged_point(
    where: Where, times_ns: list[int], repeats: int | None, correctness: Correctness, wrong: int | None
) -> CollectivesPoint:
    """Make a point of rows of logs, which hold means and no samples.

    Args:
        where: What was measured.
        times_ns: Mean over the iterations, of each log or cycle; the middle one of several is taken.
        repeats: How many iterations those were.
        correctness: What the logs say of the result.
        wrong: Elements that were wrong, None where not counted.
    """
    middle_ns = median_ns(times_ns)
    time: int | Unknown = middle_ns if middle_ns > 0 else Unknown("the log gives no time")
    if correctness == "failed":
        time = Unknown(f"{wrong:,} elements of the result were wrong" if wrong else "the log says: out of bounds")
    rounds = [CollectivesRound(place, [time_ns]) for place, time_ns in enumerate(times_ns)] if len(times_ns) > 1 else []
    point = _point(where, time, "mean", correctness=correctness, wrong=wrong, rounds=rounds)
    point.p95_ns = Unknown("a log of nccl-tests keeps the mean only")
    point.repeats = repeats
    return point


def _point(
    where: Where,
    time: int | Unknown,
    statistic: Statistic,
    *,
    correctness: Correctness,
    wrong: int | None,
    rounds: list[CollectivesRound],
) -> CollectivesPoint:
    """Make a point with its rates, and without a percentile."""
    algbw, busbw = _rates(where, time)
    return CollectivesPoint(
        kind=where.kind,
        ranks=where.ranks,
        dtype=where.dtype,
        setting=where.setting,
        placement=where.placement,
        bytes=where.size_bytes,
        time_ns=time,
        statistic=statistic,
        p95_ns=time if isinstance(time, Unknown) else Unknown("not asked for"),
        repeats=None,
        algbw_gb_per_s=algbw,
        busbw_gb_per_s=busbw,
        correctness=correctness,
        wrong=wrong,
        rounds=rounds,
    )


def _rates(where: Where, time: int | Unknown) -> tuple[float | Unknown, float | Unknown]:
    """Return algorithm and bus bandwidth."""
    if isinstance(time, Unknown):
        return time, time
    rate = gb_per_s(where.size_bytes, time)
    if rate is None:
        return _NO_TIME, _NO_TIME
    factor = bus_factor(where.kind, where.ranks)
    return rate, rate * factor if factor is not None else _NO_FACTOR
