r"""What the changes of a journal add up to.

The measure of an effect is its speed-up $s = t_\mathrm{before} / t_\mathrm{after}$, of time per item: with throughputs
$s = x_\mathrm{after} / x_\mathrm{before}$. Changes that were made one after the other multiply: the compound of
$s_1 \dots s_n$ is $\prod s_i$, and only $\ln s_i$ adds up, so that $\ln s_i / \sum \ln s_j$ is the share that each
contributes, whatever the order. The sum of the single gains, $1 + \sum (s_i - 1)$, stands beside it because it is what
people add up in their heads; it is too small for gains and too large for savings of time.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Final

import msgspec

from longpole.records.journal import Entry, Expected, Measured
from longpole.records.ledger import Unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CANCELLED: Final = 1e-9  # of a sum of logarithms: gains and losses that cancel out leave no whole


class Contribution(msgspec.Struct, frozen=True):
    """What one kept change is of the whole.

    Attributes:
        id: The entry.
        title: Its title.
        date: Its date.
        verdict: Its verdict.
        speedup: Of this change alone, against what it found.
        compound: Of this and all before it.
        log_share: Its share of the whole, in logarithms; the shares add up to 1.
        before: The figure that it found.
        after: The figure that it left.
    """

    id: str
    title: str
    date: str
    verdict: str
    speedup: float
    compound: float
    log_share: float | Unknown
    before: float | Unknown
    after: float | Unknown


class Gap(msgspec.Struct, frozen=True):
    """Between two entries the figure changed without one, by more than runs differ.

    Attributes:
        after_id: The entry that left one figure.
        before_id: The next one, which found another.
        left: The first figure.
        found: The second.
        speedup: What happened in between.
    """

    after_id: str
    before_id: str
    left: float
    found: float
    speedup: float


class PredictionEntry(msgspec.Struct, frozen=True):
    """Expected against measured, of one change.

    Attributes:
        id: The entry.
        source: The candidate or the command that the expectation comes from.
        expected: Speed-up.
        measured: Speed-up.
        error_share: Expected over measured, less 1; above 0 the expectation was too good.
        hit: Whether the expectation lies in the measured interval, widened by the error that it was stated with.
    """

    id: str
    source: str
    expected: float
    measured: float
    error_share: float
    hit: bool | Unknown


class Predictions(msgspec.Struct, frozen=True):
    """How good the expectations were, of kept and reverted changes alike.

    Attributes:
        each: One by one.
        hits: How many were hits.
        judged: Of how many that could be told.
        right_direction: How many said faster or slower, and it was.
        bias_share: Geometric mean of expected over measured, less 1; above 0 they are too good on the whole.
        median_error_share: Median size of the errors.
    """

    each: list[PredictionEntry]
    hits: int
    judged: int
    right_direction: int
    bias_share: float | Unknown
    median_error_share: float | Unknown


class NotCounted(msgspec.Struct, frozen=True):
    """An entry that the compound leaves out.

    Attributes:
        id: The entry.
        title: Its title.
        date: Its date.
        verdict: Its verdict.
        why: Why it does not count: `reverted`, `reverted by ID`, `a revert of ID`, `not measured`.
        speedup: What it brought, where that was measured.
    """

    id: str
    title: str
    date: str
    verdict: str
    why: str
    speedup: float | Unknown


class JobSummary(msgspec.Struct, frozen=True):
    """What the changes of one job add up to.

    Attributes:
        job: Its name; empty where entries name none.
        kept: Changes that count, in order.
        compound: Their product.
        compound_low: Lower end of its interval: errors of single changes taken as independent.
        compound_high: Upper end of it.
        sum_of_gains: 1 plus the sum of the single gains in throughput.
        time_saved: Share of the time per item that all of them save: 1 less 1 over `compound`.
        sum_of_savings: The sum of the single savings of time.
        unit: Of `before` and `after`.
        scope: `total`, `per_device`, or empty where entries do not say so.
        before: What the first change found.
        after: What the last one left.
        unaccounted: What happened between the entries, as a speed-up: `after` over `before` is `compound` times this.
        gaps: Where that happened.
        not_counted: Entries that the compound leaves out.
        predictions: Expected against measured.
        says: All of it in a sentence.
    """

    job: str
    kept: list[Contribution]
    compound: float | Unknown
    compound_low: float | Unknown
    compound_high: float | Unknown
    sum_of_gains: float | Unknown
    time_saved: float | Unknown
    sum_of_savings: float | Unknown
    unit: str
    scope: str
    before: float | Unknown
    after: float | Unknown
    unaccounted: float | Unknown
    gaps: list[Gap]
    not_counted: list[NotCounted]
    predictions: Predictions
    says: str


def summarise(entries: Sequence[Entry], gap_share: float) -> list[JobSummary]:
    """Return what the changes of each job add up to, by the names of jobs.

    Entries go by their day, and within a day by their place in the file.

    Args:
        entries: In the order of the file.
        gap_share: By how much the figure that an entry found may differ from the one that the entry before it left.
    """
    ordered = in_order(entries)
    jobs = sorted({entry.job for entry in ordered})
    return [_summary(job, [entry for entry in ordered if entry.job == job], gap_share) for job in jobs]


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Return entries by day; a merge of two branches may have put a later one first."""
    return sorted(entries, key=lambda entry: entry.date[:10])


def _summary(job: str, entries: list[Entry], gap_share: float) -> JobSummary:
    left_out = {entry.id: why for entry in entries if (why := _why_not(entry, entries))}
    counted = [(entry, entry.measured) for entry in entries if entry.id not in left_out]
    kept = [(entry, measured) for entry, measured in counted if isinstance(measured, Measured)]
    measured = [effect for _, effect in kept]
    speedups = [effect.speedup for effect in measured]
    nothing = Unknown("no change of this job is kept and measured")
    compound = math.prod(speedups) if kept else nothing
    low, high = _interval(measured, compound)
    unit, scope = _unit(measured)
    before, after = _ends(measured, unit)
    gaps = _gaps(kept, unit, gap_share)
    contributions = _contributions(kept)
    return JobSummary(
        job=job,
        kept=contributions,
        compound=compound,
        compound_low=low,
        compound_high=high,
        sum_of_gains=1 + sum(speedup - 1 for speedup in speedups) if kept else nothing,
        time_saved=1 - 1 / compound if isinstance(compound, float) else nothing,
        sum_of_savings=sum(1 - 1 / speedup for speedup in speedups) if kept else nothing,
        unit=unit,
        scope=scope,
        before=before,
        after=after,
        unaccounted=_unaccounted(before, after, compound, measured),
        gaps=gaps,
        not_counted=[_not_counted(entry, left_out[entry.id]) for entry in entries if entry.id in left_out],
        predictions=measure_predictions(entries),
        says=_sentence(contributions, compound, before, after, unit),
    )


def _why_not(entry: Entry, entries: list[Entry]) -> str:
    if entry.reverts:
        return f"a revert of {entry.reverts}"
    if entry.decision != "kept":
        return "reverted"
    taker = next((other.id for other in entries if other.reverts == entry.id), "")
    if taker:
        return f"reverted by {taker}"
    return "" if isinstance(entry.measured, Measured) else "not measured"


def _not_counted(entry: Entry, why: str) -> NotCounted:
    speedup = entry.measured.speedup if isinstance(entry.measured, Measured) else Unknown("not measured")
    return NotCounted(entry.id, entry.title, entry.date, entry.verdict, why, speedup)


def _contributions(kept: list[tuple[Entry, Measured]]) -> list[Contribution]:
    whole = sum(math.log(measured.speedup) for _, measured in kept)
    contributions = []
    compound = 1.0
    for entry, measured in kept:
        compound *= measured.speedup
        share = math.log(measured.speedup) / whole if abs(whole) > _CANCELLED else Unknown("all changes cancel out")
        before, after = _figure(measured.before), _figure(measured.after)
        contributions.append(
            Contribution(
                entry.id, entry.title, entry.date, entry.verdict, measured.speedup, compound, share, before, after
            )
        )
    return contributions


def _figure(value: object) -> float | Unknown:
    return float(value) if isinstance(value, int | float) else Unknown("the entry states a speed-up only")


def _interval(measured: list[Measured], compound: float | Unknown) -> tuple[float | Unknown, float | Unknown]:
    """Return the interval of a product, from those of its factors.

    In logarithms the factors add up, so that distances to the ends add up in squares; each end by itself, because an
    interval need not lie evenly around its estimate. Assumes that the errors of different changes are independent.
    """
    levels = {effect.level for effect in measured}
    without = sum(not (isinstance(effect.low, float) and isinstance(effect.high, float)) for effect in measured)
    if isinstance(compound, Unknown):
        return compound, compound
    if without or len(levels) != 1:
        why = f"{without} of {len(measured)} changes have no interval" if without else "intervals of different levels"
        return Unknown(why, ["an interval of one level for each change"]), Unknown(why)
    below = math.hypot(*(math.log(effect.speedup / float(effect.low)) for effect in measured))  # type: ignore[arg-type]
    above = math.hypot(*(math.log(float(effect.high) / effect.speedup) for effect in measured))  # type: ignore[arg-type]
    return compound * math.exp(-below), compound * math.exp(above)


def _unit(measured: list[Measured]) -> tuple[str, str]:
    units = {(effect.unit, effect.better) for effect in measured}
    scopes = {effect.scope for effect in measured}
    unit = next(iter(units))[0] if len(units) == 1 else ""
    return unit, (next(iter(scopes)) if len(scopes) == 1 else "")


def _ends(measured: list[Measured], unit: str) -> tuple[float | Unknown, float | Unknown]:
    if not measured or not unit:
        unknown = Unknown("the entries do not all state figures in one unit", ["before, after and unit of each entry"])
        return unknown, unknown
    return _figure(measured[0].before), _figure(measured[-1].after)


def _gaps(kept: list[tuple[Entry, Measured]], unit: str, gap_share: float) -> list[Gap]:
    """Return where an entry found another figure than the one before it left."""
    gaps = []
    for (entry, effect), (later, next_effect) in itertools.pairwise(kept):
        left, found = effect.after, next_effect.before
        if unit and isinstance(left, float) and isinstance(found, float):
            speedup = _ratio(left, found, next_effect.better)
            if abs(speedup - 1) > gap_share:
                gaps.append(Gap(entry.id, later.id, left, found, speedup))
    return gaps


def _unaccounted(
    before: float | Unknown, after: float | Unknown, compound: float | Unknown, measured: list[Measured]
) -> float | Unknown:
    if isinstance(before, Unknown) or isinstance(after, Unknown):
        return Unknown("the first and the last figure are not known")
    if isinstance(compound, Unknown):
        return compound
    return _ratio(before, after, measured[0].better) / compound


def _ratio(before: float, after: float, better: str) -> float:
    return after / before if better == "higher" else before / after


def measure_predictions(entries: Iterable[Entry]) -> Predictions:
    """Compare what was expected with what was measured, in every entry that has both."""
    each = [
        _prediction(entry, entry.expected, entry.measured)
        for entry in entries
        if isinstance(entry.expected, Expected) and isinstance(entry.measured, Measured)
    ]
    logs = [math.log(one.expected / one.measured) for one in each]
    judged = [one.hit for one in each if isinstance(one.hit, bool)]
    none = Unknown("no entry has both an expected and a measured effect")
    return Predictions(
        each=each,
        hits=sum(judged),
        judged=len(judged),
        right_direction=sum((one.expected > 1) == (one.measured > 1) for one in each),
        bias_share=math.expm1(sum(logs) / len(logs)) if logs else none,
        median_error_share=_median([abs(one.error_share) for one in each]) if each else none,
    )


def _prediction(entry: Entry, expected: Expected, measured: Measured) -> PredictionEntry:
    source = expected.candidate or expected.source
    error = expected.speedup / measured.speedup - 1
    return PredictionEntry(entry.id, source, expected.speedup, measured.speedup, error, _is_hit(expected, measured))


def _is_hit(expected: Expected, measured: Measured) -> bool | Unknown:
    """Tell whether an expectation agrees with the measurement, as far as both are certain.

    `error_share` is of the predicted time per item, so that the expected speed-up lies between
    s / (1 + e) and s / (1 − e).
    """
    if not (isinstance(measured.low, float) and isinstance(measured.high, float)):
        return Unknown("the measured effect has no interval")
    error = expected.error_share if isinstance(expected.error_share, float) else 0.0
    lowest = expected.speedup / (1 + error)
    highest = expected.speedup / (1 - error) if error < 1 else math.inf
    return lowest <= measured.high and highest >= measured.low


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _sentence(
    kept: list[Contribution],
    compound: float | Unknown,
    before: float | Unknown,
    after: float | Unknown,
    unit: str,
) -> str:
    if isinstance(compound, Unknown):
        return f"Nothing adds up yet: {compound.unknown}."
    count = f"{len(kept)} kept change{'s' if len(kept) > 1 else ''}"
    figures = ""
    if isinstance(before, float) and isinstance(after, float):
        figures = f", {before:,.6g} → {after:,.6g} {unit}"
    return f"{count}: {gain(compound)} in all{figures}"


def gain(speedup: float, digits: int | None = None) -> str:
    """Write a speed-up as the change of throughput that it is.

    Args:
        speedup: Above 0.
        digits: Behind the point; by default none from 10 % on, and one below.

    >>> gain(2200 / 1200), gain(0.969), gain(1.0)
    ('+83 %', '−3.1 %', '±0 %')
    """
    percent = 100 * (speedup - 1)
    places = digits if digits is not None else int(abs(percent) < 10)
    text = f"{abs(percent):,.{places}f}"
    if not text.strip("0."):
        return "±0 %"
    return f"{'+' if percent > 0 else '−'}{text} %"
