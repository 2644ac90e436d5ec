"""The figures that are gated: what each process says of them, and what the rule makes of both sides."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.advice.verify.sides import part_of_run, part_of_unit
from longpole.bench.gate.asked import METRICS, MIN_PAIRS, TAIL_MIN_UNITS
from longpole.bench.gate.difference import (
    FigureValues,
    find_amount,
    find_difference,
    resample_mean,
    resample_median,
    share_of,
    widened,
)
from longpole.bench.gate.sides import PAIRED, SINGLE_RUN, UNPAIRED
from longpole.records.gate import GateFigure
from longpole.records.ledger import Unknown
from longpole.stats import percentile_ns
from longpole.stats.resampling import Resampled
from longpole.stats.three_way import (
    IMPROVED,
    INCONCLUSIVE,
    REGRESSED,
    SAME,
    Bounds,
    judge,
    pairs_to_settle,
    smallest_worsening,
)
from longpole.units import NS_PER_S, format_bytes, format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.advice.verify.sides import Side
    from longpole.bench.gate.asked import Asked, Metric
    from longpole.bench.gate.difference import Found
    from longpole.bench.gate.sides import Gated, Process
    from longpole.records.run_record import RunRecord
    from longpole.settings import Settings

INVALID: Final = "invalid"
_P95: Final = 0.95
_SHAPE_SHARE: Final = 0.5  # of the threshold: bench-io A7


@dataclass(frozen=True, slots=True)
class _OneProcess:
    """What one process says.

    Attributes:
        value: The figure.
        units: Its units to draw from, where it is the only process of a side; None where units do not make the figure.
    """

    value: float
    units: Resampled | None


def judge_figure(name: str, gated: Gated, asked: Asked, settings: Settings, tail: float) -> GateFigure:
    """Judge one figure.

    Args:
        name: One of `METRICS`.
        gated: Both sides, which may be compared.
        asked: Thresholds.
        settings: `verify_min_units`, `verify_runs_max`.
        tail: How often each end of the interval may be missed.
    """
    metric = METRICS[name]
    values = values_of(metric, gated, settings)
    threshold, came_from = asked.threshold_of(name)
    if isinstance(values, Unknown):
        return _not_known(metric, gated, (threshold, came_from), tail, values)
    bounds = Bounds.of_share(threshold, higher_is_better=metric.higher_is_better, proven=asked.proven)
    found = find_difference(values, tail, higher_is_better=metric.higher_is_better)
    if gated.design == SINGLE_RUN:
        found = widened(found, asked.run_spread, higher_is_better=metric.higher_is_better)
    answer = str(judge(found.seen, bounds)[0])
    notes = _notes(metric, gated, asked, found, answer)
    if answer == REGRESSED and gated.design == UNPAIRED and gated.count() < MIN_PAIRS:
        answer = INCONCLUSIVE
    figure = _figure(metric, gated, values, found, bounds, (threshold, came_from))
    figure.tail_share = tail
    figure.verdict = answer
    figure.notes = notes
    figure.pairs_needed = _needed(found, bounds, answer, settings)
    figure.says = _says(metric, figure)
    return figure


def values_of(metric: Metric, gated: Gated, settings: Settings) -> FigureValues | Unknown:
    """Return a figure of every process, or why it is not known."""
    found: list[list[_OneProcess]] = []
    of_process = _OF_PROCESS[metric.name]
    for side, processes in zip(gated.sides(), gated.processes, strict=True):
        own = []
        for process, run in zip(processes, side.runs, strict=True):
            one = of_process(side, run, process)
            if isinstance(one, Unknown):
                return one
            if one.value <= 0:
                return Unknown(f"{metric.words} is 0 in {run.label}, and a change of 0 has no share")
            own.append(one)
        found.append(own)
    values = [[one.value for one in side] for side in found]
    if gated.design != SINGLE_RUN:
        return FigureValues(values[0], values[1], gated.design)
    fewest = min(len(side.runs[0].counted()) for side in gated.sides())
    if fewest < settings.verify_min_units:
        units = format_count(fewest, "unit")
        return Unknown(f"{units} with a period; one process a side needs {settings.verify_min_units}", ["more units"])
    units_of = [side[0].units or _constant(side[0].value) for side in found]
    return FigureValues(values[0], values[1], SINGLE_RUN, (units_of[0], units_of[1]))


def _constant(value: float) -> Resampled:
    """Return a figure that the units do not make: every draw is the same."""
    return Resampled(2, lambda draw: np.full(len(draw), log(value)))


def _time(side: Side, run: RunRecord, process: Process) -> _OneProcess | Unknown:
    del process
    times = side.times(run)
    return _OneProcess(float(np.median(times)), resample_median(times))


def _throughput(side: Side, run: RunRecord, process: Process) -> _OneProcess | Unknown:
    del process
    periods = [float(unit.period_ns) for unit in run.counted() if isinstance(unit.period_ns, int)]
    weights = side.weights(run)
    mean = resample_mean(periods, weights)
    items = side.items / side.ratio if side.per_item and isinstance(side.items, float) else 1.0
    per_s = items * NS_PER_S * sum(weights) / sum(periods)
    return _OneProcess(per_s, Resampled(mean.count, lambda draw: -mean.statistic(draw)))


def _latency(side: Side, run: RunRecord, process: Process) -> _OneProcess | Unknown:
    del side, process
    lengths = _lengths(run)
    if not lengths:
        return Unknown(f"{run.label}: no unit says its length (wall_ns)", ["wall_ns"])
    return _OneProcess(float(np.median(lengths)), resample_median([float(length) for length in lengths]))


def _latency_p95(side: Side, run: RunRecord, process: Process) -> _OneProcess | Unknown:
    del side, process
    lengths = _lengths(run)
    if len(lengths) < TAIL_MIN_UNITS:
        says = f"{run.label}: {len(lengths)} units say their length; a P95 is gated from {TAIL_MIN_UNITS} a process on"
        return Unknown(says, ["more units"])
    ordered = np.array(lengths, dtype=float)
    drawn = Resampled(
        len(lengths), lambda draw: np.log(np.quantile(ordered[draw], _P95, axis=1, method="inverted_cdf"))
    )
    return _OneProcess(float(percentile_ns(lengths, _P95)), drawn)


def _peak_memory(side: Side, run: RunRecord, process: Process) -> _OneProcess | Unknown:
    del side
    for value in (process.entry.peak_bytes, run.limits.get("peak_bytes")):
        if isinstance(value, int | float):
            return _OneProcess(float(value), None)
    return Unknown(f"{run.label}: peak memory was not recorded", ["peak_bytes"])


def _collective(side: Side, run: RunRecord, process: Process) -> _OneProcess | Unknown:
    del process
    exposed_ns = part_of_run(side, run, "collective")
    if exposed_ns is not None:
        units = [float(part_of_unit(unit, "collective") or 0) for unit in run.counted()]
        return _OneProcess(exposed_ns, resample_mean(units, side.weights(run)))
    by_kind = [part_of_run(side, run, f"collective:{entry.kind}") for entry in run.collectives]
    if not by_kind or None in by_kind:
        return Unknown(f"{run.label}: what collectives took is not recorded", ["objects of the units, or collectives"])
    return _OneProcess(float(sum(time for time in by_kind if time is not None)), None)


_OF_PROCESS: Final[dict[str, Callable[[Side, RunRecord, Process], _OneProcess | Unknown]]] = {
    "time": _time,
    "throughput": _throughput,
    "latency": _latency,
    "latency_p95": _latency_p95,
    "peak_memory": _peak_memory,
    "collective": _collective,
}


def _lengths(run: RunRecord) -> list[int]:
    return [unit.wall_ns for unit in run.counted() if isinstance(unit.wall_ns, int) and unit.wall_ns]


def _figure(
    metric: Metric,
    gated: Gated,
    values: FigureValues,
    found: Found,
    bounds: Bounds,
    threshold: tuple[float, str],
) -> GateFigure:
    base, new = (_typical(metric, side, own) for side, own in zip(gated.sides(), _both(values), strict=True))
    amount = find_amount(values)
    sign = -1.0 if metric.higher_is_better else 1.0
    least = sign * share_of(sign * float(smallest_worsening(found.seen, bounds)[0]))
    n = gated.count() if gated.design != SINGLE_RUN else min(len(side.runs[0].counted()) for side in gated.sides())
    return GateFigure(
        metric=metric.name,
        better="higher" if metric.higher_is_better else "lower",
        unit=metric.unit,
        statistic=metric.statistic,
        threshold_share=threshold[0],
        threshold_from=threshold[1],
        base=base,
        new=new,
        change_share=share_of(found.interval.estimate),
        interval_share=[share_of(found.interval.low), share_of(found.interval.high)],
        difference=amount.estimate if amount is not None else new - base,
        tail_share=0.0,
        method=found.interval.method,
        n=n,
        spread_share=share_of(found.interval.pair_spread),
        smallest_seen_share=least,
        pairs_needed=Unknown("settled"),
        rank_p=Unknown("signed ranks are asked of 8 pairs and more") if found.rank_p is None else found.rank_p,
        verdict="",
        says="",
    )


def _both(values: FigureValues) -> tuple[Sequence[float], Sequence[float]]:
    return values.base, values.new


def _typical(metric: Metric, side: Side, own: Sequence[float]) -> float:
    """Return what a table shows of a side: the median process; of a percentile, that of all units together."""
    if metric.name == "latency_p95":
        return float(percentile_ns([length for run in side.runs for length in _lengths(run)], _P95))
    return float(np.median(own))


def _not_known(metric: Metric, gated: Gated, threshold: tuple[float, str], tail: float, why: Unknown) -> GateFigure:
    return GateFigure(
        metric=metric.name,
        better="higher" if metric.higher_is_better else "lower",
        unit=metric.unit,
        statistic=metric.statistic,
        threshold_share=threshold[0],
        threshold_from=threshold[1],
        base=why,
        new=why,
        change_share=why,
        interval_share=why,
        difference=why,
        tail_share=tail,
        method="none",
        n=gated.count(),
        spread_share=why,
        smallest_seen_share=why,
        pairs_needed=why,
        rank_p=why,
        verdict=INVALID,
        says=f"{metric.words} cannot be gated: {why.unknown}",
    )


def invalid_figure(name: str, gated: Gated, asked: Asked, tail: float) -> GateFigure:
    """Return a figure of sides that may not be compared."""
    why = Unknown("the sides may not be compared", [])
    return _not_known(METRICS[name], gated, asked.threshold_of(name), tail, why)


def _notes(metric: Metric, gated: Gated, asked: Asked, found: Found, answer: str) -> list[str]:
    notes = []
    if answer == REGRESSED and gated.design == UNPAIRED and gated.count() < MIN_PAIRS:
        notes.append(
            f"{format_count(gated.count(), 'process', 'processes')} of the smaller side:"
            f" fewer than {MIN_PAIRS} do not make a regression"
        )
    if gated.design == SINGLE_RUN:
        notes.append(
            f"single run: how much one run differs from the next is not seen here"
            f" (±{100 * asked.run_spread:g} % assumed)"
        )
    if metric.name == "time" and gated.design == PAIRED:
        notes += _shape_note(gated, asked, found)
    return notes


def _shape_note(gated: Gated, asked: Asked, found: Found) -> list[str]:
    """Notice that all units together say something else than the processes: the distribution has another shape."""
    pooled = [np.median([time for run in side.runs for time in side.times(run)]) for side in gated.sides()]
    apart = abs(log(pooled[1] / pooled[0]) - found.interval.estimate)
    threshold, _ = asked.threshold_of("time")
    if apart <= _SHAPE_SHARE * log(1 + threshold) + found.interval.half_width():
        return []
    ratio = signed(pooled[1] / pooled[0] - 1)
    return [f"the median of all units changed by {ratio}: the distribution has another shape, perhaps two modes"]


def _needed(found: Found, bounds: Bounds, answer: str, settings: Settings) -> int | Unknown:
    if answer != INCONCLUSIVE:
        return Unknown("settled")
    most = settings.verify_runs_max
    pairs = pairs_to_settle(float(found.seen.estimate[0]), float(found.seen.spread[0]), bounds, most)
    if pairs is None:
        return Unknown(f"more than {most} pairs: it lies near the threshold, or the noise is large")
    return max(pairs, MIN_PAIRS)


def _says(metric: Metric, figure: GateFigure) -> str:
    assert isinstance(figure.change_share, float)
    assert isinstance(figure.interval_share, list)
    assert isinstance(figure.smallest_seen_share, float)
    low, high = figure.interval_share
    level = f"{100 * (1 - 2 * figure.tail_share):.4g} %"
    change = f"{signed(figure.change_share)} ({level}: {signed(low)} to {signed(high)})"
    threshold = f"{100 * figure.threshold_share:.3g} %"
    seen = f"could have seen {abs(100 * figure.smallest_seen_share):.1f} %"
    worse = "less" if metric.higher_is_better else "more"
    return {
        REGRESSED: f"{metric.words} became worse: {change}, beyond the threshold of {threshold}",
        IMPROVED: f"{metric.words} became better: {change}",
        SAME: f"{metric.words} did not become worse by {threshold}: {change}; {seen} {worse}",
        INCONCLUSIVE: f"whether {metric.words} changed by {threshold} cannot be told: {change}; {_settles(figure)}",
    }[figure.verdict]


def _settles(figure: GateFigure) -> str:
    """Say what would settle it."""
    if isinstance(figure.pairs_needed, Unknown):
        return f"settling it takes {figure.pairs_needed.unknown}"
    return f"about {figure.pairs_needed} pairs in all would settle it, if it is what it seems"


def signed(share: float) -> str:
    """Write a change with its sign.

    >>> signed(-0.0312), signed(0.2)
    ('-3.1 %', '+20.0 %')
    """
    return "any" if share > exp(20) else f"{100 * share:+.1f} %"


def write_amount(unit: str, value: float) -> str:
    """Write a figure with its unit.

    >>> write_amount("per_s", 1234.5)
    '1,234 /s'
    """
    if unit == "bytes":
        return f"-{format_bytes(-value)}" if value < 0 else format_bytes(value)
    if unit == "per_s":
        return f"{value:,.0f} /s" if abs(value) >= 1000 else f"{value:.4g} /s"
    return f"-{format_ns(-value)}" if value < 0 else format_ns(value)
