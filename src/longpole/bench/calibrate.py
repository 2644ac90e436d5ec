"""The noise floor of a benchmark on this machine, from pairs of equal processes, and what pairs can see above it.

A/A: both sides of every pair run the same command, so whatever they differ by is noise. With s the standard deviation
of the pairs' log-ratios (from 8 pairs on, of normal noise with the same interval by ranks), k pairs
leave an interval of ± t₀.₉₅,ₖ₋₁ · s / √k, and the smallest change that is called regressed in four of five cases is
max(threshold, (t₀.₉₅,ₖ₋₁ + 0.84) · s / √k) (bench-io A6).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from math import exp, log
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.bench.spread import by_process, process_medians, variation
from longpole.errors import InputError
from longpole.records.calibration import FLOOR_PAIRS, SCHEMA, Calibration, CalibrationFigure, SmallestEffect
from longpole.stats.intervals import t_quantile
from longpole.stats.three_way import measure_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.records.run_record import RunRecord

PAIRS_MIN: Final = 5
"""Fewer pairs have no spread worth the name (bench-io A7)."""

PAIR_COUNTS: Final = (5, 10, 20, 40)
_POWER_QUANTILE: Final = 0.84  # of the normal distribution: 80 % power
_OF_TIME: Final = ("time", "throughput", "latency")
_FEW_PAIRS: Final = 10
_FLAGGED_MIN_SHARE: Final = 0.2


@dataclass(frozen=True, slots=True)
class _Sides:
    """A figure of every pair: of one side and of the other."""

    a: Sequence[float]
    b: Sequence[float]

    def log_ratios(self) -> list[float]:
        return [log(b / a) for a, b in zip(self.a, self.b, strict=True)]


def calibrate(a: RunRecord, b: RunRecord, threshold: float) -> Calibration:
    """Return how noisy a benchmark is, from two records of the same command whose processes are pairs.

    Args:
        a: One side.
        b: The other.
        threshold: From which change on a gate shall fail, as a share.

    Raises:
        InputError: A process failed, or there are fewer than `PAIRS_MIN` pairs.
    """
    failure = a.failure or b.failure
    if failure:
        msg = f"no noise floor without measurements: {failure}. Mend the command, and calibrate again"
        raise InputError(msg)
    times = _paired(a, b, process_medians(a), process_medians(b))
    pairs = len(times.a)
    if pairs < PAIRS_MIN:
        msg = (
            f"expected at least {PAIRS_MIN} pairs, found {pairs}: fewer have no spread."
            " Give it more time (--budget) or a shorter command"
        )
        raise InputError(msg)
    figures = [_figure("time", "ns", times, threshold, _within(a, b))]
    peaks = _paired(a, b, _peaks(a), _peaks(b))
    if len(peaks.a) == pairs:
        figures.append(_figure("peak_memory", "bytes", peaks, threshold, None))
    floors = dict.fromkeys(_OF_TIME, figures[0].floor_share)
    floors |= {figure.metric: figure.floor_share for figure in figures}
    flags = _flags(a, b)
    design = a.design
    return Calibration(
        schema=SCHEMA,
        longpole=metadata.version("longpole"),
        benchmark=design.benchmark if design is not None else "",
        semantic_id=design.semantic_id if design is not None else "",
        pairs=pairs,
        order_seed=(design.order_seed or 0) if design is not None else 0,
        threshold_share=threshold,
        figures=figures,
        floors=floors,
        environment=a.environment,
        flags=flags,
        warnings=_warnings(pairs, flags),
        records=[a.run_id, b.run_id],
    )


def smallest_effect(spread: float, pairs: int, threshold: float) -> float:
    """Return the smallest change that so many pairs call regressed in four of five cases, as a share.

    >>> round(smallest_effect(0.02, 10, 0.03), 4), round(smallest_effect(0.1, 10, 0.03), 3)
    (0.03, 0.088)
    """
    log_share = (t_quantile(pairs - 1) + _POWER_QUANTILE) * spread / pairs**0.5
    return max(threshold, exp(log_share) - 1)


def noise_floor(spread: float, pairs: int = FLOOR_PAIRS) -> float:
    """Return what nine of ten comparisons of equal sides stay within, as a share."""
    return exp(t_quantile(pairs - 1) * spread / pairs**0.5) - 1


def _figure(metric: str, unit: str, sides: _Sides, threshold: float, within: float | None) -> CalibrationFigure:
    seen = measure_pairs(np.array([sides.log_ratios()]))
    spread = float(seen.spread[0])
    every = sorted([*sides.a, *sides.b])
    return CalibrationFigure(
        metric=metric,
        unit=unit,
        median=(every[(len(every) - 1) // 2] + every[len(every) // 2]) / 2,
        between_cv_share=variation(every) or 0.0,
        pair_spread_share=spread,
        difference_share=exp(float(seen.estimate[0])) - 1,
        floor_share=noise_floor(spread),
        smallest=[SmallestEffect(pairs, smallest_effect(spread, pairs, threshold)) for pairs in PAIR_COUNTS],
        within_cv_share=within,
    )


def _paired(a: RunRecord, b: RunRecord, of_a: Mapping[int, int], of_b: Mapping[int, int]) -> _Sides:
    """Bring a figure of every process to the order of the pairs that have it on both sides."""
    sides = []
    for record, figures in ((a, of_a), (b, of_b)):
        entries = (entry for entry in record.processes if entry.pair is not None and entry.process in figures)
        sides.append({entry.pair: figures[entry.process] for entry in entries})
    both = [pair for pair in sides[0] if pair in sides[1]]
    return _Sides([sides[0][pair] for pair in both], [sides[1][pair] for pair in both])


def _peaks(record: RunRecord) -> dict[int, int]:
    entries = record.processes
    return {entry.process: entry.peak_bytes for entry in entries if isinstance(entry.peak_bytes, int)}


def _within(a: RunRecord, b: RunRecord) -> float | None:
    """Return the median over all processes of their units' coefficient of variation; None where each is one unit."""
    found = []
    for units in (*by_process(a.counted()).values(), *by_process(b.counted()).values()):
        spread = variation([unit.period_ns for unit in units if isinstance(unit.period_ns, int)])
        if spread is not None:
            found.append(spread)
    ordered = sorted(found)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2 if ordered else None


def _flags(a: RunRecord, b: RunRecord) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in (*a.processes, *b.processes):
        for flag in entry.flags if entry.pair is not None else ():
            found[flag] = found.get(flag, 0) + 1
    return dict(sorted(found.items()))


def _warnings(pairs: int, flags: Mapping[str, int]) -> list[str]:
    found = []
    if pairs < _FEW_PAIRS:
        found.append(f"{pairs} pairs say little of a spread: it may be off by a third or more; 20 are better")
    often = [flag for flag, count in flags.items() if count > _FLAGGED_MIN_SHARE * 2 * pairs]
    if often:
        found.append(
            f"the machine was disturbed while it was calibrated ({', '.join(often)}): the floor is of that load"
        )
    return found
