"""Whether an item takes less time, how sure that is, and what would make it surer (DESIGN 3.12)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, log
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.records.ledger import Unknown
from longpole.records.verdict import Effect, Needs, Sides
from longpole.stats.intervals import (
    Interval,
    paired_interval,
    runs_to_settle,
    smallest_seen,
    t_quantile,
    unpaired_interval,
)
from longpole.stats.resampling import Resampled, resampled_interval
from longpole.units import format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.advice.verify.differences import Comparison
    from longpole.advice.verify.sides import Side
    from longpole.records.run_record import RunRecord
    from longpole.settings import Settings

_NORMAL_QUANTILE: Final = 1.6449
STATISTICS: Final = ("auto", "median", "mean")
"""Of a run's units; `auto` is the median, and the mean where the part lies in few of the units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How the runs are to be compared.

    Attributes:
        threshold: What a change must exceed, as a share.
        paired: Runs in order are pairs.
        statistic: One of `STATISTICS`; `settled` before anything is measured with it.
        run_spread: How much one run differs from the next where that cannot be seen.
    """

    threshold: float
    paired: bool = False
    statistic: str = "auto"
    run_spread: float = 0.03

    def settled(self, *, sporadic: bool) -> Design:
        """Return the design with a statistic: medians overlook what happens in fewer than half of the units."""
        if self.statistic != "auto":
            return self
        return replace(self, statistic="mean" if sporadic else "median")


def enough_units(comparison: Comparison, settings: Settings) -> str:
    """Say why no interval can be given; empty where one can."""
    sides = (comparison.before, comparison.after)
    if all(len(side.runs) == 1 for side in sides):
        for side in sides:
            if side.n_units() < settings.verify_min_units:
                units = format_count(side.n_units(), "unit")
                return f"{units} with a period {side.name}: one run a side needs {settings.verify_min_units}"
    return ""


def interval_of(
    comparison: Comparison,
    design: Design,
    of_run: Callable[[Side, RunRecord], float],
    resampled: Callable[[Side], Resampled],
) -> Interval:
    """Return the interval of a difference, by how many runs there are.

    Args:
        comparison: The sides.
        design: How runs are compared.
        of_run: The value of one run.
        resampled: The only run of a side, to be drawn from.
    """
    values = [[of_run(side, run) for run in side.runs] for side in (comparison.before, comparison.after)]
    if design.paired and len(values[0]) > 1:
        return paired_interval(values[0], values[1])
    if len(values[0]) == len(values[1]) == 1:
        return resampled_interval(resampled(comparison.before), resampled(comparison.after))
    return unpaired_interval(values[0], values[1])


def measure_effect(comparison: Comparison, design: Design, settings: Settings) -> tuple[Effect, Needs]:
    """Compare the time of an item.

    Args:
        comparison: Sides that can be compared.
        design: How.
        settings: Thresholds.

    Returns:
        The effect, and what would settle it where it is unsettled.
    """
    why = enough_units(comparison, settings)
    if why:
        return _too_few(comparison, design, why)
    found = time_interval(comparison, design)
    answer = _answer(found, design.threshold)
    effect = _effect(comparison, design, found, answer)
    needs = _needs(comparison, design, found, settings) if answer == "unsettled" else Needs(0, [], "")
    return effect, needs


def time_interval(comparison: Comparison, design: Design) -> Interval:
    """Return the interval of the log ratio of the time of an item."""
    by_median = design.statistic == "median"

    def of_run(side: Side, run: RunRecord) -> float:
        if by_median:
            return log(float(np.median(side.times(run))))
        return log(side.mean_of(run, _periods(run)))

    def resampled(side: Side) -> Resampled:
        run = side.runs[0]
        if by_median:
            times = np.array(side.times(run))
            return Resampled(len(times), lambda draw: np.log(np.median(times[draw], axis=1)))
        periods, weights = np.array(_periods(run)), np.array(side.weights(run))
        return Resampled(len(periods), lambda draw: np.log(periods[draw].sum(axis=1) / weights[draw].sum(axis=1)))

    found = interval_of(comparison, design, of_run, resampled)
    return _with_run_spread(found, comparison, design)


def _with_run_spread(found: Interval, comparison: Comparison, design: Design) -> Interval:
    """Widen what one run a side says by how much one run differs from the next."""
    if max(len(comparison.before.runs), len(comparison.after.runs)) > 1:
        return found
    # The assumed spread is what 90 % of pairs of runs stay within, so as a deviation it is smaller.
    between = log(1 + design.run_spread) / _NORMAL_QUANTILE
    widened = found.widened(log(1 + design.run_spread))
    return replace(widened, pair_spread=(found.pair_spread**2 + between**2) ** 0.5)


def _periods(run: RunRecord) -> list[float]:
    return [float(unit.period_ns) for unit in run.counted() if isinstance(unit.period_ns, int)]


def _answer(found: Interval, threshold: float) -> str:
    """Say what the interval says: beyond the threshold as a whole, within it, or neither."""
    faster, slower = log(1 - threshold), log(1 + threshold)
    if found.high < faster:
        return "faster"
    if found.low > 0 and found.estimate >= slower:
        return "slower"
    if faster < found.low and found.high < slower:
        return "same"
    return "unsettled"


def _effect(comparison: Comparison, design: Design, found: Interval, answer: str) -> Effect:
    one_run = len(comparison.before.runs) == len(comparison.after.runs) == 1
    other = replace_statistic(design)
    other_estimate = _plain_estimate(comparison, other)
    times = [_typical(side, design) for side in (comparison.before, comparison.after)]
    effect = Effect(
        estimate=_share(found.estimate),
        interval=[_share(found.low), _share(found.high)],
        statistic=_statistic(comparison, design),
        method=found.method,
        runs=Sides(len(comparison.before.runs), len(comparison.after.runs)),
        units=Sides(comparison.before.n_units(), comparison.after.n_units()),
        single_run=found.single_run,
        run_spread=design.run_spread if one_run else 0.0,
        threshold=design.threshold,
        smallest_seen=-_share(-smallest_seen(found, -log(1 - design.threshold))),
        answer=answer,
        per_item=comparison.before.per_item,
        before_ns=times[0],
        after_ns=times[1],
        mean_estimate=other_estimate,
        says="",
    )
    effect.says = _says(effect, comparison)
    return effect


def replace_statistic(design: Design) -> Design:
    """Return the design with the other statistic."""
    return replace(design, statistic="mean" if design.statistic == "median" else "median")


def _plain_estimate(comparison: Comparison, design: Design) -> float:
    before, after = (_typical(side, design) for side in (comparison.before, comparison.after))
    return after / before - 1


def _typical(side: Side, design: Design) -> float:
    return float(np.median(side.medians() if design.statistic == "median" else side.means()))


def _statistic(comparison: Comparison, design: Design) -> str:
    what = "time per item" if comparison.before.per_item or comparison.batch_changed else "period"
    return f"{design.statistic} {what}"


def _says(effect: Effect, comparison: Comparison) -> str:
    assert isinstance(effect.interval, list)
    assert not isinstance(effect.estimate, Unknown)
    noun = "an item" if comparison.batch_changed else _with_article(comparison.before.runs[0].unit_kind)
    low, high = effect.interval
    span = f"(90 %: {signed(low)} to {signed(high)})"
    figures = f"{format_ns(float(effect.before_ns))} → {format_ns(float(effect.after_ns))}"  # type: ignore[arg-type]
    changed = "in as many items as a unit holds before: " if comparison.batch_changed else ""
    words = {
        "faster": f"{noun} takes {abs(100 * effect.estimate):.1f} % less time",
        "slower": f"{noun} takes {abs(100 * effect.estimate):.1f} % more time",
        "same": f"{noun} takes as long as before, to within {100 * effect.threshold:g} %",
        "unsettled": f"whether {noun} takes less time cannot be told from these runs: {signed(effect.estimate)}",
    }[effect.answer]
    return f"{words} {span}; {changed}{figures}"


def _with_article(noun: str) -> str:
    return f"an {noun}" if noun[:1] in tuple("aeio") else f"a {noun}"


def signed(share: float) -> str:
    """Write a change with its sign.

    >>> signed(-0.0312), signed(0.2)
    ('-3.1 %', '+20.0 %')
    """
    if share == float("inf"):
        return "any"
    return f"{100 * share:+.1f} %"


def _share(logarithm: float) -> float:
    return exp(min(logarithm, 50.0)) - 1


def _needs(comparison: Comparison, design: Design, found: Interval, settings: Settings) -> Needs:
    """Say how many more runs would settle an estimate that stays what it is."""
    have = min(len(comparison.before.runs), len(comparison.after.runs))
    faster, slower = log(1 - design.threshold), log(1 + design.threshold)
    if found.estimate <= faster:
        gap = faster - found.estimate
    elif found.estimate >= slower:
        gap = found.estimate
    else:
        gap = min(found.estimate - faster, slower - found.estimate)
    paired = design.paired or have == 1
    wanted = runs_to_settle(found.pair_spread, gap, paired=paired, most=settings.verify_runs_max)
    unit = "pair of runs" if paired else "run"
    if wanted is None:
        says = (
            f"more than {settings.verify_runs_max} runs a side would be needed: the change lies at the threshold"
            f" of {100 * design.threshold:g} %"
        )
        return Needs(Unknown(says), [], says)
    more = max(wanted - have, 1)
    what = f"about {format_count(more, f'more {unit}', f'more {unit}s' if unit == 'run' else 'more pairs of runs')}"
    a_side = "" if paired else " a side"
    return Needs(more, [], f"{what}{a_side} would settle it, if the change is what it seems")


def _too_few(comparison: Comparison, design: Design, why: str) -> tuple[Effect, Needs]:
    unknown = Unknown(why, ["more units in each run, or more runs"])
    has_times = all(side.n_units() for side in (comparison.before, comparison.after))
    times = [_typical(side, design) if has_times else unknown for side in (comparison.before, comparison.after)]
    effect = Effect(
        estimate=_plain_estimate(comparison, design) if has_times else unknown,
        interval=unknown,
        statistic=_statistic(comparison, design),
        method="none",
        runs=Sides(len(comparison.before.runs), len(comparison.after.runs)),
        units=Sides(comparison.before.n_units(), comparison.after.n_units()),
        single_run=True,
        run_spread=design.run_spread,
        threshold=design.threshold,
        smallest_seen=unknown,
        answer="unsettled",
        per_item=comparison.before.per_item,
        before_ns=times[0],
        after_ns=times[1],
        mean_estimate=unknown,
        says=why,
    )
    between = log(1 + design.run_spread) / _NORMAL_QUANTILE
    runs = max(3, int((t_quantile(2) * between / design.threshold) ** 2) + 1)
    return effect, Needs(runs, ["at least 5 units with a period in each run"], f"{why}; or about {runs} runs a side")
