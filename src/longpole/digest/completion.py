"""When each unit was complete, and what it launched (DESIGN 3.2).

host     ├──── unit 0 ────┤├──── unit 1 ────┤
device        ├─ … launched by 0 ─ … ─┤├ … launched by 1 … ┤
complete                              C0                   C1      period of unit 1 = C1 - C0
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.analyses.pieces import RUNG_COMPUTE
from longpole.timeline.columns import NONE_ID
from longpole.timeline.intervals import union_by_group

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.analyses.rungs import DeviceRow
    from longpole.timeline.boundaries import Unit
    from longpole.timeline.timeline import Timeline


def completions(timeline: Timeline, units: list[Unit], row: DeviceRow | None) -> list[int]:
    """Return when each unit was complete, in ns since the file's base time, never before the unit in front.

    Args:
        timeline: The record.
        units: Its units.
        row: The device, None where there is none.
    """
    done_ns = np.array([unit.end_ns for unit in units], np.int64)
    if row is not None:
        unit = launching_unit(timeline, units, row)
        mine = unit >= 0
        np.maximum.at(done_ns, unit[mine], row.spans.end_ns[mine])
    return np.maximum.accumulate(done_ns).tolist()


def launched_unions(timeline: Timeline, units: list[Unit], row: DeviceRow | None) -> list[int]:
    """Return, for each unit, the union of the device spans that it launched, in ns."""
    total_ns = np.zeros(len(units), np.int64)
    if row is not None:
        unit = launching_unit(timeline, units, row)
        mine = unit >= 0
        group, start_ns, end_ns = union_by_group(
            unit[mine].astype(np.int32), row.spans.start_ns[mine], row.spans.end_ns[mine]
        )
        np.add.at(total_ns, group, end_ns - start_ns)
    return total_ns.tolist()


def launched_kernels(timeline: Timeline, units: list[Unit], row: DeviceRow) -> list[int]:
    """Return, for each unit, how many compute kernels it launched."""
    unit = launching_unit(timeline, units, row)
    mine = (unit >= 0) & (row.rung == RUNG_COMPUTE)
    return np.bincount(unit[mine], minlength=len(units)).astype(int).tolist()


def launching_unit(timeline: Timeline, units: list[Unit], row: DeviceRow) -> NDArray[np.int64]:
    """Return, for each span of a device, the place of the unit that launched it, -1 for none.

    A span without a recorded launch belongs to the unit that it starts in.
    """
    launch = row.spans.launch
    time_ns = row.spans.start_ns.copy()
    linked = launch != NONE_ID
    time_ns[linked] = timeline.host.start_ns[launch[linked]]
    starts = np.array([unit.start_ns for unit in units], np.int64)
    unit = np.searchsorted(starts, time_ns, side="right") - 1
    return np.where(time_ns < units[-1].end_ns, unit, -1).astype(np.int64)
