"""What the programs have in common: seconds become units of whole nanoseconds, and a record around them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from longpole.records.run_record import (
    SCHEMA,
    RecordDesign,
    RecordEnvironment,
    RecordProcess,
    RecordSource,
    RecordUnit,
    RunRecord,
)
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def seconds_of(value: Any) -> float | None:
    """Return a finite time above 0 in seconds; None for anything else, a bool included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and 0 < value < 1e9 else None


def count_of(value: Any) -> int:
    """Return a count of at least 1; 1 for anything that is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 62 else 1


def text_of(value: Any) -> str:
    """Return a text, empty for anything else."""
    return value if isinstance(value, str) else ""


def unit_of(seconds: float, calls: int, *, process: int = 0, left_out: str = "") -> RecordUnit:
    """Return a sample: so many calls in a row, whose number is the unit's items.

    A unit is all the calls that were timed together, for a call of 12.4 ns is no whole number of nanoseconds.

    Args:
        seconds: Time of one call.
        calls: Calls that were timed together.
        process: In which process.
        left_out: Why it does not count.
    """
    period_ns = max(round(seconds * calls * NS_PER_S), 1)
    return RecordUnit(period_ns=period_ns, wall_ns=period_ns, items=calls, process=process, left_out=left_out)


def record_of(  # noqa: PLR0913 - a record has as many parts
    name: str,
    units: Sequence[RecordUnit],
    *,
    source: RecordSource,
    written_by: str,
    environment: RecordEnvironment,
    processes: Iterable[RecordProcess] = (),
    extra: dict[str, Any] | None = None,
) -> RunRecord:
    """Return the record of one benchmark."""
    found = list(processes)
    failed = [process for process in found if process.failure]
    return RunRecord(
        schema=SCHEMA,
        units=list(units),
        run_id=f"{source.blake2b}/{name}",
        label=name,
        written_by=written_by,
        unit_kind="sample",
        item_kind="call",
        items_from="recorded",
        environment=environment,
        sources=[source],
        processes=found or [RecordProcess(process=0)],
        design=RecordDesign(kind="sequential", benchmark=name),
        failure=f"{len(failed)} of {len(found)} processes failed: {failed[0].failure}" if failed else "",
        extra=extra or {},
    )
