"""What one record of a benchmark says in a few numbers: its middle, its spread, its stages."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import log
from statistics import median, stdev
from typing import TYPE_CHECKING

from longpole.bench.gate.sides import split_processes
from longpole.stats.middle import Middle, middle_of_processes, middle_of_samples
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.records.run_record import RecordUnit, RunRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A benchmark in a few numbers.

    Attributes:
        time_ns: Of an item where items are known, else of a unit.
        per: What the time is of.
        processes, units: How many count.
        spread_share: Standard deviation between processes, as a share; None with one.
        items_per_s: Rate; None where items are not known.
        peak_bytes: The most memory that any process held; None where not recorded.
        stages: Stage -> its middle, of an item or a unit.
    """

    time_ns: Middle
    per: str
    processes: int
    units: int
    spread_share: float | None
    items_per_s: float | None
    peak_bytes: int | None
    stages: dict[str, Middle]


def summarise(*records: RunRecord) -> Summary | None:
    """Return the summary of the records of one benchmark; None where no unit of them counts."""
    processes = [process for record in records for process in split_processes(record)]
    runs = [process.run for process in processes if not process.why_left_out]
    if not runs:
        return None
    first = records[0]
    per_item = all(isinstance(run.items_of(unit), int) for run in runs for unit in run.counted())
    times = [[of_item(run, unit, unit.period_ns, per_item=per_item) for unit in run.counted()] for run in runs]
    medians = [median(of_run) for of_run in times]
    peaks = [process.entry.peak_bytes for process in processes if isinstance(process.entry.peak_bytes, int)]
    middle = _middle(times)
    return Summary(
        time_ns=middle,
        per=(first.item_kind or "item") if per_item else first.unit_kind,
        processes=len(runs),
        units=sum(map(len, times)),
        spread_share=stdev(map(log, medians)) if len(medians) > 1 else None,
        items_per_s=NS_PER_S / middle.value if per_item and middle.value > 0 else None,
        peak_bytes=max(peaks, default=None),
        stages=_stages(runs, per_item=per_item),
    )


def of_item(run: RunRecord, unit: RecordUnit, time_ns: object, *, per_item: bool) -> float:
    """Return a time of a unit, divided by its items where those are asked for and known."""
    items = run.items_of(unit)
    whole = float(time_ns) if isinstance(time_ns, int | float) else 0.0
    return whole / items if per_item and isinstance(items, int) else whole


def _middle(times: Sequence[Sequence[float]]) -> Middle:
    if len(times) == 1:
        return middle_of_samples(times[0])
    return middle_of_processes([max(median(of_run), 1e-9) for of_run in times])


def _stages(runs: Sequence[RunRecord], *, per_item: bool) -> dict[str, Middle]:
    """Return the middle of each stage that every process has."""
    found: dict[str, list[list[float]]] = defaultdict(list)
    for run in runs:
        of_run: dict[str, list[float]] = defaultdict(list)
        for unit in run.counted():
            for name, stage in unit.stages.items():
                of_run[name].append(of_item(run, unit, stage.wall_ns, per_item=per_item))
        for name, values in of_run.items():
            found[name].append(values)
    return {name: _middle(values) for name, values in found.items() if len(values) == len(runs)}
