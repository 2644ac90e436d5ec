"""How long the units of a record take, and how much that differs within a process and between processes.

Two samples of one process say little about a third (bench-io A2: 4 to 5 % within, 9 to 15 % between), so the interval
is that of the processes' medians: a t interval of their logarithms, of 90 %.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import fsum
from statistics import median, stdev
from typing import TYPE_CHECKING, Final

from longpole.stats import mean_ns, median_ns, percentile_ns
from longpole.stats.middle import half_width, middle_of_processes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.records.run_record import RecordUnit, RunRecord

P95_MIN_UNITS: Final = 20
"""A 95th percentile of fewer is nearly the maximum (DESIGN 3.12; bench-io A10)."""

FLAGGED_MIN_SHARE: Final = 0.2
"""Flags are worth a sentence where at least this share of the processes or units has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSpread:
    """One stage, or one object.

    Attributes:
        name: Its name.
        mean_ns: Mean over the units that count, so that stages add up to the unit.
        cv_share: Coefficient of variation of the processes' means; None for one process.
    """

    name: str
    mean_ns: int
    cv_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What the units of a record took.

    Attributes:
        processes: How many processes have a unit that counts.
        units: How many units count.
        median_ns: Median over the processes, each by the median of its units; None where no unit counts.
        low_ns, high_ns: 90 % interval of the typical process; None for fewer than two.
        half_width_share: Half of that interval, as a share.
        p95_ns: Nearest rank over all units; None below `P95_MIN_UNITS`.
        largest_ns: The largest unit.
        within_cv_share: Median over the processes of their units' coefficient of variation.
        between_cv_share: Coefficient of variation of the processes' medians.
        mean_ns: Mean length of a unit, which stages and objects add up to.
        stages, objects: Where it went, the largest first, the residual last.
        left_out: Why units do not count -> how many.
        flags: Flag -> share of the units that count which have it.
        cpu_ns, peak_bytes: Median and largest over the processes that count; None where not known.
    """

    processes: int
    units: int
    median_ns: int | None = None
    low_ns: int | None = None
    high_ns: int | None = None
    half_width_share: float | None = None
    p95_ns: int | None = None
    largest_ns: int | None = None
    within_cv_share: float | None = None
    between_cv_share: float | None = None
    mean_ns: int | None = None
    stages: Sequence[StageSpread] = ()
    objects: Sequence[StageSpread] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    flags: dict[str, float] = field(default_factory=dict)
    cpu_ns: int | None = None
    peak_bytes: int | None = None


def measure_spread(record: RunRecord) -> Spread:
    """Return what the units of a record took, and how much that differs."""
    counted = record.counted()
    left_out: dict[str, int] = {}
    for unit in record.units:
        if unit.left_out:
            left_out[unit.left_out] = left_out.get(unit.left_out, 0) + 1
    if not counted:
        return Spread(processes=0, units=0, left_out=left_out)
    groups = by_process(counted)
    periods = [period for unit in counted for period in _periods([unit])]
    medians = [median_ns(_periods(units)) for units in groups.values()]
    middle = middle_of_processes(medians)
    within = [cv for cv in (variation(_periods(units)) for units in groups.values()) if cv is not None]
    entries = [entry for entry in record.processes if entry.process in groups]
    cpu = [entry.cpu_ns for entry in entries if isinstance(entry.cpu_ns, int)]
    peaks = [entry.peak_bytes for entry in entries if isinstance(entry.peak_bytes, int)]
    walls = [unit.wall_ns for unit in counted if isinstance(unit.wall_ns, int)]
    return Spread(
        processes=len(groups),
        units=len(counted),
        median_ns=median_ns(medians),
        low_ns=None if middle.low is None else round(middle.low),
        high_ns=None if middle.high is None else round(middle.high),
        half_width_share=half_width(medians),
        p95_ns=percentile_ns(periods, 0.95) if len(periods) >= P95_MIN_UNITS else None,
        largest_ns=max(periods),
        within_cv_share=median(within) if within else None,
        between_cv_share=variation(medians),
        mean_ns=mean_ns(walls) if walls else None,
        stages=_parts(groups, {name for unit in counted for name in unit.stages}, stages=True),
        objects=_parts(groups, {name for unit in counted for name in unit.objects}, stages=False),
        left_out=left_out,
        flags=_flag_shares(counted, record),
        cpu_ns=median_ns(cpu) if cpu else None,
        peak_bytes=max(peaks) if peaks else None,
    )


def by_process(units: Iterable[RecordUnit]) -> dict[int, list[RecordUnit]]:
    """Return the units of each process."""
    groups: dict[int, list[RecordUnit]] = {}
    for unit in units:
        groups.setdefault(unit.process, []).append(unit)
    return groups


def process_medians(record: RunRecord) -> dict[int, int]:
    """Return process -> median period of its units that count."""
    return {process: median_ns(_periods(units)) for process, units in by_process(record.counted()).items()}


def variation(values: Sequence[float]) -> float | None:
    """Return the coefficient of variation, with n − 1; None for fewer than two values."""
    if len(values) < 2:
        return None
    mean = fsum(values) / len(values)
    return stdev(values) / mean if mean else None


def _periods(units: Iterable[RecordUnit]) -> list[int]:
    return [unit.period_ns for unit in units if isinstance(unit.period_ns, int)]


def _parts(groups: dict[int, list[RecordUnit]], names: set[str], *, stages: bool) -> list[StageSpread]:
    """Return means over all units; a unit without a stage spent nothing in it."""
    found = []
    for name in names:
        times = {process: [_time(unit, name, stages=stages) for unit in units] for process, units in groups.items()}
        means = [fsum(values) / len(values) for values in times.values()]
        every = [value for values in times.values() for value in values]
        found.append(StageSpread(name=name, mean_ns=mean_ns(every), cv_share=variation(means)))
    return sorted(found, key=lambda part: (part.name == "residual", -part.mean_ns, part.name))


def _time(unit: RecordUnit, name: str, *, stages: bool) -> int:
    if stages:
        return unit.stages[name].wall_ns if name in unit.stages else 0
    return unit.objects[name].exposed_ns if name in unit.objects else 0


def _flag_shares(counted: Sequence[RecordUnit], record: RunRecord) -> dict[str, float]:
    """Return flag -> share of the units that have it, themselves or by their process."""
    of_process = {entry.process: entry.flags for entry in record.processes}
    found: dict[str, int] = {}
    for unit in counted:
        for flag in {*unit.flags, *of_process.get(unit.process, ())}:
            found[flag] = found.get(flag, 0) + 1
    return {flag: count / len(counted) for flag, count in sorted(found.items())}
