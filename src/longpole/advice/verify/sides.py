"""The two sides of a comparison: their runs, the items of their units, and parts of a unit for equally many items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.records.ledger import Unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.records.run_record import RecordUnit, RunRecord

PREFIXES: Final = ("stage:", "idle:", "collective:", "waiting:")
"""What a part may begin with; without one it is an object."""


@dataclass(frozen=True, slots=True)
class Side:
    """The runs before, or after.

    Attributes:
        name: `before` or `after`.
        runs: At least one.
        items: Items of a unit where every unit of every run says them.
        ratio: Items of a unit for each item of a unit before; 1 on the before side.
        per_item: Whether items are known, so that time per item is compared and not periods.
    """

    name: str
    runs: Sequence[RunRecord]
    items: float | Unknown
    ratio: float = 1.0
    per_item: bool = False

    def times(self, run: RunRecord) -> list[float]:
        """Return, for each unit that counts, the time for as many items as a unit has before, in ns."""
        return [_period(unit) * self._scale(run, unit) for unit in run.counted()]

    def _scale(self, run: RunRecord, unit: RecordUnit) -> float:
        """Return what to multiply a unit's times by, so that units of both sides hold the same items.

        Where items are known, a unit of twice the mean items counts half; else all units of a side count alike.
        """
        items = run.items_of(unit)
        if self.per_item and isinstance(items, int) and isinstance(self.items, float):
            return self.items / items / self.ratio
        return 1 / self.ratio

    def medians(self) -> list[float]:
        """Return each run's median time, in ns."""
        return [float(np.median(self.times(run))) for run in self.runs]

    def means(self) -> list[float]:
        """Return each run's time of all units over their items, in ns."""
        return [self.mean_of(run, [float(_period(unit)) for unit in run.counted()]) for run in self.runs]

    def mean_of(self, run: RunRecord, values: Sequence[float]) -> float:
        """Return the sum over the units that count for as many items as a unit has before."""
        return sum(values) / sum(1 / self._scale(run, unit) for unit in run.counted())

    def weights(self, run: RunRecord) -> list[float]:
        """Return how much each unit counts in a mean: its items, in units of the before side."""
        return [1 / self._scale(run, unit) for unit in run.counted()]

    def pooled_ns(self) -> list[int]:
        """Return the periods of all units of all runs; of requests their latency, which is what is limited."""
        return [_latency(run, unit) for run in self.runs for unit in run.counted()]

    def n_units(self) -> int:
        """Return how many units count, over all runs."""
        return sum(len(run.counted()) for run in self.runs)


def _period(unit: RecordUnit) -> int:
    assert isinstance(unit.period_ns, int)  # units that count have one
    return unit.period_ns


def _latency(run: RunRecord, unit: RecordUnit) -> int:
    is_request = run.unit_kind == "request" and isinstance(unit.wall_ns, int)
    return unit.wall_ns if is_request and isinstance(unit.wall_ns, int) else _period(unit)


def items_of_side(runs: Sequence[RunRecord]) -> float | Unknown:
    """Return the mean items of a unit, of the units that count; unknown where one does not say."""
    found: list[int] = []
    for run in runs:
        for unit in run.counted():
            items = run.items_of(unit)
            if isinstance(items, Unknown):
                declared = run.contract.global_batch
                if declared is None:
                    return Unknown(f"{run.label or run.run_id}: the items of a unit are {items.unknown}", ["items"])
                items = declared
            found.append(items)
    if not found:
        return Unknown("no unit has a period", ["at least two steady units after one another"])
    return float(sum(found)) / len(found)


def part_of_unit(unit: RecordUnit, part: str) -> int | None:
    """Return what a part took of a unit; None where the unit does not say what it is made of.

    What is not there took no time, where others of its kind are.
    """
    prefix, _, name = part.partition(":")
    if not name:
        time = unit.objects.get(part)
        return (time.exposed_ns if time is not None else 0) if unit.objects else None
    if prefix == "stage":
        stage = unit.stages.get(name)
        return (stage.wall_ns if stage is not None else 0) if unit.stages else None
    if prefix == "idle":
        return unit.idle_ns.get(name, 0) if unit.idle_ns or unit.objects else None
    return None


def part_of_run(side: Side, run: RunRecord, part: str) -> float | None:
    """Return the mean of a part over the units that count, for as many items as a unit has before, in ns."""
    prefix, _, name = part.partition(":")
    if prefix in ("collective", "waiting") and name:
        return _collective_of_run(side, run, part)
    values = [part_of_unit(unit, part) for unit in run.counted()]
    known = [float(value) for value in values if value is not None]
    return side.mean_of(run, known) if known and len(known) == len(values) else None


def _collective_of_run(side: Side, run: RunRecord, part: str) -> float | None:
    """Return what collectives of one kind took: a mean that the record holds, brought to the items of a unit before."""
    prefix, _, kind = part.partition(":")
    entries = [entry for entry in run.collectives if entry.kind == kind]
    if not run.collectives:
        return None
    times = [entry.exposed_ns if prefix == "collective" else entry.waiting_ns for entry in entries]
    if any(isinstance(time, Unknown) for time in times):
        return None
    units = run.counted()
    return sum(time for time in times if isinstance(time, int)) * len(units) / sum(side.weights(run)) if units else None


def part_of_side(side: Side, part: str) -> float | None:
    """Return the mean of a part over the runs, None where one of them does not know it."""
    values = [part_of_run(side, run, part) for run in side.runs]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def parts_known(side: Side) -> list[str]:
    """Return every part that the units of a side are divided into, in the order of the records."""
    names: dict[str, None] = {}
    for run in side.runs:
        for unit in run.counted():
            names.update(dict.fromkeys(unit.objects))
            names.update(dict.fromkeys(f"idle:{reason}" for reason in unit.idle_ns))
            names.update(dict.fromkeys(f"stage:{stage}" for stage in unit.stages))
        names.update(dict.fromkeys(f"collective:{entry.kind}" for entry in run.collectives))
        names.update(dict.fromkeys(f"waiting:{entry.kind}" for entry in run.collectives))
    return list(names)
