"""From the reports of one job in several sizes to how it scales: items, efficiency, and what the loss is made of.

pace of the smallest run   P0 / i0 for each item that a rank processes
ideal period of a run      P0 · i / i0
efficiency                 ideal / P
loss                       P - ideal = Σ over parts of (taken - ideal), in whole nanoseconds
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from longpole.analyses.sums import round_shares
from longpole.records.ledger import Unknown
from longpole.report.same_job import find_differences, world_of
from longpole.report.scaling import PARTS, SCHEMA, SEVERITIES, Difference, Part, Scaling, ScalingItems, ScalingRun
from longpole.report.unit_parts import OBJECT_OF, UnitParts, measure_unit_parts
from longpole.units import NS_PER_S, format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.report.document import Report
    from longpole.settings import Settings

MODES: Final = ("weak", "strong")
PART_WORDS: Final = {
    "transfer": "moving bytes between ranks",
    "skew": "waiting for the last rank",
    "bubble": "waiting in the pipeline",
    "collective": "communication",
    "input": "input",
    "artifact": "loading artifacts",
    "state": "moving state",
    "output": "writing output",
    "host": "the host",
    "compute": "compute",
    "unknown": "time that nothing recorded explains",
    "lag": "units completing ever later",
}
_SPLIT_PARTS: Final = ("transfer", "skew", "bubble")
_MAIN_SHARE: Final = 0.1  # of the loss; a sentence does not name smaller parts
_MAIN_PARTS: Final = 3
_ROUND_FROM: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemsGiven:
    """What is known of the items that a rank processes in a unit.

    Attributes:
        per_rank: Label -> items for each unit and rank: of every run, or of none.
        mode: What to assume where nothing is known, one of `MODES`.
    """

    per_rank: Mapping[str, int]
    mode: str = "weak"

    def ratio(self, base: _Measured, other: _Measured) -> Fraction:
        """Return how many items a rank of one run processes for each item of a rank of the base."""
        if self.per_rank:
            return Fraction(self.per_rank[other.label], self.per_rank[base.label])
        return Fraction(base.ranks, other.ranks) if self.mode == "strong" else Fraction(1)

    def entry(self) -> ScalingItems:
        """Say how the items are known."""
        if self.per_rank:
            return ScalingItems("declared", "items per rank as declared")
        if self.mode == "strong":
            says = "assumed: strong scaling, the same items in every run, spread evenly over its ranks"
        else:
            says = "assumed: weak scaling, every rank processes the same items in every run"
        return ScalingItems(f"assumed {self.mode}", says)


@dataclass(frozen=True, slots=True)
class _Measured:
    label: str
    report: Report
    ranks: int
    parts: UnitParts | Unknown


def compare_runs(
    runs: Sequence[tuple[str, Report]],
    items: ItemsGiven,
    settings: Settings,
    *,
    version: str,
    refused: Sequence[Difference] = (),
) -> Scaling:
    """Say how a job scales.

    Args:
        runs: (label, report) of at least two runs, in any order; the one with the fewest ranks is the base, of several
            such the first.
        items: What is known of the items.
        settings: Thresholds of the comparison.
        version: Version of the package.
        refused: Runs that could not be read.
    """
    ordered = sorted(runs, key=lambda run: world_of(run[1]))
    measured = [_Measured(label, r, world_of(r), measure_unit_parts(r, settings)) for label, r in ordered]
    base = measured[0]
    differences = [*find_differences(ordered, settings), *refused]
    other_jobs = {label for difference in differences if difference.severity == "void" for label in difference.runs[1:]}
    same = [each for each in measured if each.label not in other_jobs]
    differences += _changed_work(base, same, items, settings)
    differences.sort(key=lambda difference: SEVERITIES.index(difference.severity))
    entries = [_run_entry(base, each, items, _obstacle(base, each, differences)) for each in measured]
    for entry in entries:
        entry.says = _say_run(entry, entries[0], settings)
    return Scaling(
        schema=SCHEMA,
        longpole=version,
        base=base.label,
        items=items.entry(),
        comparable=not any(difference.severity == "void" for difference in differences),
        says=next((entry.says for entry in reversed(entries[1:]) if isinstance(entry.loss_ns, int)), entries[-1].says),
        runs=entries,
        differences=differences,
    )


def _obstacle(base: _Measured, each: _Measured, differences: Sequence[Difference]) -> Unknown | None:
    """Return why a run cannot be compared with the base; None where it can."""
    for difference in differences:
        if difference.severity == "void" and each.label in difference.runs:
            return Unknown(difference.says)
        if difference.severity == "void" and difference.runs == [base.label]:
            return Unknown(difference.says)
    for side in (base, each):
        if isinstance(side.parts, Unknown):
            return Unknown(f"{side.label} has no period: {side.parts.unknown}", side.parts.missing)
    return None


def _run_entry(base: _Measured, each: _Measured, items: ItemsGiven, obstacle: Unknown | None) -> ScalingRun:
    period = each.report.unit.period_ns
    per_rank = items.per_rank.get(each.label, Unknown("items are not declared", ["--items or --items-of"]))
    entry = ScalingRun(
        label=each.label,
        sources=[source.path for source in each.report.run.sources],
        ranks=each.ranks,
        ranks_present=each.report.run.ranks_present,
        unit_kind=each.report.unit.kind,
        units=period.n,
        period_ns=period.mean,
        median_period_ns=period.median,
        items_per_rank=per_rank,
        items_per_s=_rate(per_rank, each.ranks, period.mean),
        efficiency=obstacle or 1.0,
        median_efficiency=obstacle or 1.0,
        speedup=obstacle or 1.0,
        ideal_ns=obstacle or 0,
        loss_ns=obstacle or 0,
        parts=[],
        by_object_ns={},
        split_range_ns=0,
        says="",
    )
    if obstacle is None and isinstance(base.parts, UnitParts) and isinstance(each.parts, UnitParts):
        _fill(entry, base, each, items.ratio(base, each))
    return entry


def _rate(per_rank: int | Unknown, ranks: int, period_ns: int | Unknown) -> float | Unknown:
    if isinstance(per_rank, Unknown):
        return per_rank
    if isinstance(period_ns, Unknown):
        return period_ns
    if period_ns <= 0:
        return Unknown("no time passes in a unit")
    return per_rank * ranks * NS_PER_S / period_ns


def _fill(entry: ScalingRun, base: _Measured, each: _Measured, ratio: Fraction) -> None:
    """Fill in what the comparison with the base says."""
    assert isinstance(base.parts, UnitParts)
    assert isinstance(each.parts, UnitParts)
    one, other = base.parts, each.parts
    unsplit = one.unsplit or other.unsplit
    names = [part for part in PARTS if unsplit is None or part not in _SPLIT_PARTS]
    before, after = (_merged(side.parts, names) for side in (one, other))
    ideal = dict(zip(names, round_shares([before[n] * ratio.numerator for n in names], ratio.denominator), strict=True))
    ideal_ns = sum(ideal.values())
    entry.ideal_ns = ideal_ns
    entry.loss_ns = other.period_ns - ideal_ns
    entry.efficiency = ideal_ns / other.period_ns
    entry.speedup = entry.efficiency * each.ranks / base.ranks
    entry.median_efficiency = _median_efficiency(base, each, ratio)
    entry.split_range_ns = one.range_ns + other.range_ns if unsplit is None else 0
    for part in PARTS:
        if part not in names and unsplit is not None:
            entry.parts.append(Part(part, "collective", unsplit, unsplit, unsplit, unsplit))
            continue
        loss_ns = after[part] - ideal[part]
        share = loss_ns / other.period_ns
        entry.parts.append(Part(part, OBJECT_OF[part], ideal[part], after[part], loss_ns, share))
    for entered in entry.parts:
        if isinstance(entered.loss_ns, int):
            name = entered.object or entered.part
            entry.by_object_ns[name] = entry.by_object_ns.get(name, 0) + entered.loss_ns


def _merged(parts: dict[str, int], names: Sequence[str]) -> dict[str, int]:
    """Return the parts under the names that are used; what has none of them is communication that is not split."""
    merged = {name: parts.get(name, 0) for name in names}
    merged["collective"] += sum(time_ns for name, time_ns in parts.items() if name not in merged)
    return merged


def _median_efficiency(base: _Measured, each: _Measured, ratio: Fraction) -> float | Unknown:
    one, other = base.report.unit.period_ns.median, each.report.unit.period_ns.median
    if isinstance(one, Unknown):
        return one
    return other if isinstance(other, Unknown) else float(one * ratio / other)


def _changed_work(
    base: _Measured, measured: Sequence[_Measured], items: ItemsGiven, settings: Settings
) -> list[Difference]:
    """Notice runs whose compute for each item is far from the base's: other items, or another job."""
    found = []
    for each in measured[1:]:
        if isinstance(base.parts, Unknown) or isinstance(each.parts, Unknown):
            continue
        before, after = base.parts.parts["compute"], each.parts.parts["compute"]
        if not before or not after:
            continue
        factor = float(after / (before * items.ratio(base, each)))
        # Without declared items, weak or strong scaling may be what was meant.
        ratios = [items.ratio(base, each)] if items.per_rank else [Fraction(1), Fraction(base.ranks, each.ranks)]
        nearest = min((float(after / (before * ratio)) for ratio in ratios), key=_distance)
        if _distance(factor) < settings.scaling_compute_factor:
            continue
        pair = [base.label, each.label]
        says = f"a rank of {each.label} computes {_times(factor)} for an item as one of {base.label}"
        if _distance(nearest) >= settings.scaling_other_job_factor:
            found.append(Difference("compute", "void", pair, f"these are not one job: {says}"))
            continue
        if not items.per_rank:
            says += "; if its ranks process other numbers of items, declare them with --items-of"
            says += ", or pass --strong" if items.mode == "weak" and factor < 1 else ""
        found.append(Difference("items", "warn", pair, says))
    return found


def _distance(factor: float) -> float:
    return max(factor, 1 / factor)


def _times(factor: float) -> str:
    return f"{factor:.2f} times as long" if factor < _ROUND_FROM else f"{factor:,.0f} times as long"


def _say_run(entry: ScalingRun, base: ScalingRun, settings: Settings) -> str:
    """Say in a sentence how a run does against the base."""
    ranks = f"{entry.label} ({format_count(entry.ranks, 'rank')})"
    if isinstance(entry.efficiency, Unknown):
        return f"{ranks}: not comparable, {entry.efficiency.unknown}"
    if entry is base:
        return f"{ranks}: what the others are compared with"
    assert isinstance(entry.loss_ns, int)
    assert isinstance(entry.period_ns, int)
    reached = f"{ranks}: a rank processes its items at {entry.efficiency:.0%} of the pace of {base.label}"
    if abs(entry.loss_ns) < settings.run_spread_share * entry.period_ns:
        return f"{reached}, which is within what one run differs from the next ({settings.run_spread_share:.0%})"
    if entry.loss_ns < 0:
        return f"{reached}, faster than the smallest run"
    known = [part for part in entry.parts if isinstance(part.loss_ns, int)]
    main = sorted(known, key=lambda part: -part.loss_ns)[:_MAIN_PARTS]  # type: ignore[operator]  # integers only
    named = [
        f"{format_ns(part.loss_ns)} {PART_WORDS[part.part]}"
        for part in main
        if isinstance(part.loss_ns, int) and part.loss_ns >= _MAIN_SHARE * entry.loss_ns
    ]
    return f"{reached}; of {format_ns(entry.loss_ns)} lost per {entry.unit_kind}: {', '.join(named)}"
