"""Records of several processes: each process is a run, since a process is the unit of replication (DESIGN 3.12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from longpole.units import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.records.run_record import RecordProcess, RunRecord


@dataclass(frozen=True, slots=True)
class Replicates:
    """The runs of both sides, and how they belong together.

    Attributes:
        before: Runs before the change.
        after: Runs after it.
        paired: Runs in order are pairs of processes that ran next to each other.
        notes: What was left out, and what a reader should know of it.
    """

    before: list[RunRecord]
    after: list[RunRecord]
    paired: bool
    notes: list[str]


def replicates_of(before: Sequence[RunRecord], after: Sequence[RunRecord]) -> Replicates:
    """Make a run of every process of benchmark records; other records stay as they are.

    A process that failed, or of which no unit counts, is left out and counted. Where each side is one record and both
    say that their processes were interleaved with those of the other, only processes with a partner are kept, in the
    order of their pairs.

    Args:
        before: Records before the change.
        after: Records after it.
    """
    notes = [f"{record.label}: it did not come to its end: {record.failure}" for record in _failed(before, after)]
    split = [[(record, *_split(record)) for record in side] for side in (before, after)]
    for side in split:
        notes += [_left_out(record, left_out) for record, _, left_out in side if left_out]
    if _are_partners(before, after):
        pairs = _pairs(split[0][0][1], split[1][0][1])
        alone = len(split[0][0][1]) + len(split[1][0][1]) - 2 * len(pairs)
        if len(pairs) > 1:
            if alone:
                count = format_count(alone, "process", "processes")
                notes.append(f"{count} left out: the other of the pair is missing")
            return Replicates([a for a, _ in pairs], [b for _, b in pairs], paired=True, notes=notes)
    runs = [[run for _, found, _ in side for _, run in found] for side in split]
    # Where nothing is left of a record, it stands as a whole, so that what is missing is said of it.
    runs = [found or list(records) for found, records in zip(runs, (before, after), strict=True)]
    return Replicates(runs[0], runs[1], paired=False, notes=notes)


def _failed(*sides: Sequence[RunRecord]) -> list[RunRecord]:
    return [record for side in sides for record in side if record.failure]


def _split(record: RunRecord) -> tuple[list[tuple[int | None, RunRecord]], list[RecordProcess]]:
    """Return (pair, run) of every process that counts, and the processes that do not."""
    if not record.processes:
        return [(None, record)], []
    kept: list[tuple[int | None, RunRecord]] = []
    left_out: list[RecordProcess] = []
    for process in sorted(record.processes, key=lambda process: process.place):
        run = _run_of(record, process)
        if process.failure or process.exit_code or not run.counted():
            left_out.append(process)
        else:
            kept.append((process.pair, _without_metrics(run) if kept else run))
    return kept, left_out


def _without_metrics(run: RunRecord) -> RunRecord:
    """Leave the quality measures of a record to its first process: repeated, they would look like repetitions."""
    return msgspec.structs.replace(run, correctness=msgspec.structs.replace(run.correctness, metrics=[]))


def _run_of(record: RunRecord, process: RecordProcess) -> RunRecord:
    """Return one process as a record of its own; what was measured of it alone takes the place of the whole's."""
    limits = dict(record.limits)
    if isinstance(process.peak_bytes, int) and "peak_bytes" in limits:
        limits["peak_bytes"] = process.peak_bytes
    return msgspec.structs.replace(
        record,
        label=f"{record.label} #{process.process}",
        run_id=f"{record.run_id}/{process.process}" if record.run_id else "",
        units=[unit for unit in record.units if unit.process == process.process],
        limits=limits,
        # Means over all processes: repeated for each of them they would look like so many equal measurements.
        collectives=[] if len(record.processes) > 1 else record.collectives,
        processes=[],
    )


def without_failed(record: RunRecord) -> RunRecord:
    """Return a record without the units of processes that failed."""
    failed = {process.process for process in record.processes if process.failure or process.exit_code}
    if not failed:
        return record
    return msgspec.structs.replace(record, units=[unit for unit in record.units if unit.process not in failed])


def _left_out(record: RunRecord, processes: Sequence[RecordProcess]) -> str:
    failed = [process for process in processes if process.failure or process.exit_code]
    first = next((process.failure or f"exit code {process.exit_code}" for process in failed), "")
    why = f"failed ({first})" if failed else "has no unit that counts"
    of_all = f"{len(processes)} of {format_count(len(record.processes), 'process', 'processes')}"
    return f"{record.label}: {of_all} left out; process {(failed or processes)[0].process} {why}"


def _are_partners(before: Sequence[RunRecord], after: Sequence[RunRecord]) -> bool:
    """Tell whether both sides are one record each, whose processes were interleaved with those of the other."""
    if len(before) != 1 or len(after) != 1:
        return False
    designs = (before[0].design, after[0].design)
    partners = (after[0].run_id, before[0].run_id)
    return all(
        design is not None and design.kind == "interleaved" and design.partner == partner
        for design, partner in zip(designs, partners, strict=True)
    )


def _pairs(
    before: Sequence[tuple[int | None, RunRecord]], after: Sequence[tuple[int | None, RunRecord]]
) -> list[tuple[RunRecord, RunRecord]]:
    """Return the runs of both sides that share a pair, in the order of the pairs."""
    of_pair = {pair: run for pair, run in after if pair is not None}
    found = {pair: run for pair, run in before if pair is not None and pair in of_pair}
    return [(found[pair], of_pair[pair]) for pair in sorted(found)]
