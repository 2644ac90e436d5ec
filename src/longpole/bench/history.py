"""Many records of one benchmark: one number a record, in order of time, and what became of it.

A series is one benchmark on one machine: where what must match differs, a new series begins, for a new machine is no
regression. The baseline is pinned: the first runs of the series, or those from a run on that was accepted by name.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import exp, log
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import msgspec

from longpole.bench.summary import summarise
from longpole.records.history import (
    HistoryBaseline,
    HistoryDrift,
    HistoryRun,
    HistorySeries,
    HistoryStage,
    HistoryStep,
)
from longpole.records.ledger import Unknown
from longpole.stats.drift import (
    BASELINE_MIN,
    CONFIRMED_BY,
    SPLIT_SHARE_MIN,
    baseline_of,
    find_change_points,
    find_drift,
    smallest_found,
)
from longpole.units import format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from longpole.bench.summary import Summary
    from longpole.records.run_record import RunRecord
    from longpole.stats.drift import Drift
    from longpole.stats.middle import Middle

BASELINE_RUNS: Final = 20
"""Of a series that has more: fewer make the spread, and with it the alarms, a matter of luck (bench-io A9)."""
SEEN_FACTOR: Final = 2.0
"""No series is called steady where a change of twice the threshold would be overlooked, as no gate says *same* then."""
_STARTED: Final = ("started", "date", "time")
_CHANGED_SHOWN: Final = 6
_STAGES_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Recorded:
    """A record and where it was read."""

    record: RunRecord
    path: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """A run from which on a series is held against a new baseline.

    Attributes:
        benchmark: Of the series.
        run: Run id or label.
        because: Why the new level is right.
    """

    benchmark: str
    run: str
    because: str


def build_series(
    recorded: Iterable[Recorded], threshold: float, baseline_runs: int, accepted: Sequence[Accepted] = ()
) -> list[HistorySeries]:
    """Bring records of one benchmark and machine together, and judge each series.

    Args:
        recorded: Records in any order.
        threshold: A change of this share is worth an alarm.
        baseline_runs: How many runs a baseline has where there are enough.
        accepted: Where baselines begin; the last one of a series counts.
    """
    groups: dict[tuple[str, str, bytes], list[Recorded]] = defaultdict(list)
    for one in recorded:
        design = one.record.design
        environment = msgspec.json.encode(one.record.environment.must_match, order="deterministic")
        groups[(_name(one.record), design.semantic_id if design is not None else "", environment)].append(one)
    series = [_series(name, several, threshold, baseline_runs, accepted) for (name, _, _), several in groups.items()]
    return sorted(series, key=lambda one: (one.benchmark, one.semantic_id))


def started_of(record: RunRecord) -> str:
    """Return when a record was made, as ISO 8601; empty where it does not say."""
    for key in _STARTED:
        value = record.environment.informational.get(key)
        if isinstance(value, str) and value[:4].isdigit():
            return value
    return ""


def _name(record: RunRecord) -> str:
    return record.design.benchmark if record.design is not None else ""


def _series(
    name: str, several: Sequence[Recorded], threshold: float, baseline_runs: int, accepted: Sequence[Accepted]
) -> HistorySeries:
    # Records that do not say when they were made keep the order of their files behind those that do.
    ordered = sorted(several, key=lambda one: (not started_of(one.record), started_of(one.record), one.path))
    summaries = [summarise(one.record) for one in ordered]
    runs = [_run(one, summary) for one, summary in zip(ordered, summaries, strict=True)]
    first = ordered[0].record
    places = [place for place, run in enumerate(runs) if isinstance(run.value_ns, float)]
    begin, because = _beginning(name, [runs[place] for place in places], accepted)
    values = [log(runs[place].value_ns) for place in places]  # type: ignore[arg-type]
    baseline = _baseline(values, places, begin, baseline_runs, because)
    steps = [
        HistoryStep(
            run=places[point.at],
            share=point.share,
            chance=point.chance,
            changed=_changed(ordered[places[point.at - 1]].record, ordered[places[point.at]].record),
        )
        for point in find_change_points(values, max(threshold, SPLIT_SHARE_MIN))
    ]
    drift: HistoryDrift | None = None
    if isinstance(baseline, HistoryBaseline):
        alarm = find_drift(values[begin:], baseline.count, threshold)
        drift = _drift(alarm, values, places, begin, baseline.count)
        drift = _dated(drift, steps)
    found = HistorySeries(
        benchmark=name,
        semantic_id=first.design.semantic_id if first.design is not None else "",
        environment=first.environment.must_match,
        per=next((summary.per for summary in summaries if summary is not None), first.unit_kind),
        runs=runs,
        baseline=baseline,
        drift=drift,
        steps=steps,
        stages=_stages(summaries, baseline, drift, places),
        verdict=_verdict(baseline, drift, threshold),
        says="",
    )
    found.says = _says(found, threshold)
    return found


def _verdict(baseline: HistoryBaseline | Unknown, drift: HistoryDrift | None, threshold: float) -> str:
    if isinstance(baseline, Unknown):
        return "unknown"
    if drift is not None:
        return drift.direction
    return "steady" if baseline.smallest_share <= SEEN_FACTOR * threshold else "unknown"


def _run(one: Recorded, summary: Summary | None) -> HistoryRun:
    record = one.record
    failed = record.failure or ("no unit of it counts" if summary is None else "")
    value: float | Unknown = Unknown(failed)
    spread: float | Unknown = Unknown("one process", ["several processes"])
    if summary is not None:
        value = value if failed else float(summary.time_ns.value)
        spread = spread if summary.spread_share is None else summary.spread_share
    return HistoryRun(
        run_id=record.run_id,
        label=record.label or record.run_id,
        path=one.path,
        started=started_of(record),
        value_ns=value,
        spread_share=spread,
        processes=summary.processes if summary is not None else 0,
        units=summary.units if summary is not None else 0,
        failed=failed,
    )


def _beginning(name: str, runs: Sequence[HistoryRun], accepted: Sequence[Accepted]) -> tuple[int, str]:
    """Return the first run of the baseline among those that count, and why it is that one."""
    for one in reversed(accepted):
        if one.benchmark not in ("", name):
            continue
        for place, run in enumerate(runs):
            if one.run in (run.run_id, run.label):
                return place, one.because
    return 0, ""


def _baseline(
    values: Sequence[float], places: Sequence[int], begin: int, wanted: int, because: str
) -> HistoryBaseline | Unknown:
    have = len(values) - begin
    # At least as many runs must be left to judge as an alarm needs.
    count = min(wanted, have - CONFIRMED_BY)
    if count < BASELINE_MIN:
        runs = format_count(have, "run")
        needed = BASELINE_MIN + CONFIRMED_BY
        return Unknown(f"{runs}: a baseline of {BASELINE_MIN} and {CONFIRMED_BY} to judge need {needed}", ["more runs"])
    middle, sigma = baseline_of(values[begin : begin + count])
    return HistoryBaseline(
        first=places[begin],
        count=count,
        value_ns=exp(middle),
        spread_share=exp(sigma) - 1,
        because=because,
        smallest_share=exp(smallest_found(sigma, count)) - 1,
    )


def _drift(
    found: Drift | None, values: Sequence[float], places: Sequence[int], begin: int, n_baseline: int
) -> HistoryDrift | None:
    if found is None:
        return None
    middle, _ = baseline_of(values[begin : begin + n_baseline])
    return HistoryDrift(
        direction=found.direction,
        began=places[begin + found.began_at],
        alarm=places[begin + found.alarm_at],
        share=found.share,
        now_share=exp(median(values[-CONFIRMED_BY:]) - middle) - 1,
    )


def _dated(drift: HistoryDrift | None, steps: Sequence[HistoryStep]) -> HistoryDrift | None:
    """Let a step of the drift's direction say when it began: the sum may have started to rise by chance before."""
    if drift is None:
        return None
    for step in steps:
        if drift.began <= step.run <= drift.alarm and (step.share > 0) == (drift.share > 0):
            return msgspec.structs.replace(drift, began=step.run)
    return drift


def _changed(before: RunRecord, after: RunRecord) -> list[str]:
    """Say what differs in the environment, the settings and the revision of two records."""
    found = []
    for old, new in (
        (before.environment.should_match, after.environment.should_match),
        (before.configuration, after.configuration),
        (before.environment.informational, after.environment.informational),
    ):
        keys = [key for key in sorted({*old, *new}) if key not in _STARTED and old.get(key) != new.get(key)]
        found += [f"{key}: {_plain(old, key)} → {_plain(new, key)}" for key in keys]
    return found[:_CHANGED_SHOWN]


def _plain(values: Mapping[str, Any], key: str) -> str:
    return str(values[key]) if key in values else "not recorded"


def _stages(
    summaries: Sequence[Summary | None],
    baseline: HistoryBaseline | Unknown,
    drift: HistoryDrift | None,
    places: Sequence[int],
) -> list[HistoryStage]:
    """Return what the stages contribute to a drift: their times at the end less those of the baseline."""
    if drift is None or not isinstance(baseline, HistoryBaseline):
        return []
    begin = places.index(baseline.first)
    parts = places[begin : begin + baseline.count], places[-CONFIRMED_BY:]
    before, after = ([summary.stages for p in part if (summary := summaries[p]) is not None] for part in parts)
    names = set.intersection(*(set(stages) for stages in [*before, *after]))
    pairs = {name: (_middle(before, name), _middle(after, name)) for name in names}
    whole = sum(abs(now - then) for then, now in pairs.values())
    found = [
        HistoryStage(stage=name, before_ns=then, after_ns=now, share_of_change=(now - then) / whole if whole else 0.0)
        for name, (then, now) in pairs.items()
    ]
    return sorted(found, key=lambda stage: -abs(stage.after_ns - stage.before_ns))[:_STAGES_SHOWN]


def _middle(found: Sequence[Mapping[str, Middle]], name: str) -> float:
    return float(median(one[name].value for one in found))


def _says(series: HistorySeries, threshold: float) -> str:
    name = series.benchmark or "the benchmark"
    if isinstance(series.baseline, Unknown):
        return f"{name}: {series.baseline.unknown}"
    level = f"{format_ns(series.baseline.value_ns)} per {series.per}"
    if series.drift is None and series.verdict == "unknown":
        apart, seen = 100 * series.baseline.spread_share, 100 * series.baseline.smallest_share
        return (
            f"{name}: runs differ by {apart:.0f} %, so that ten of them would show a change of {seen:.0f} % and none of"
            f" {100 * threshold:g} %. More processes a run (--processes), or a quieter machine (longpole bench doctor)"
        )
    if series.drift is None:
        return f"{name} stays at its baseline of {level}, to within {100 * threshold:g} %"
    drift = series.drift
    began, alarm = (series.runs[place].label for place in (drift.began, drift.alarm))
    more = "more" if drift.now_share > 0 else "less"
    since = f"since {began}" if began == alarm else f"since {began}, certain from {alarm} on"
    return f"{name} takes {abs(100 * drift.now_share):.1f} % {more} time than its baseline of {level}, {since}"
