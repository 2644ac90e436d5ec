"""Program order: what each operation of a worker had to wait for on its own worker.

Two operations of a worker that do not overlap are in order; two that do, run on different streams. A type of
communication that runs beside computation anywhere in the table is taken to have a stream of its own:

    compute   ##A##      ##B##     ##C##        B waits for A and recv1, C for B
    recv           ==1==                        recv1 waits for A
    gather    ------G--------                   asynchronous: nothing waits for it but what `_exits` finds
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.records.operations import NONE_ID, Members, OperationKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.records.operations import OperationTable
    from longpole.settings import Settings

    Rows: TypeAlias = NDArray[np.int64]
    Flags: TypeAlias = NDArray[np.bool_]

_NEAREST = 8  # predecessors are looked for among so many rows before; rows without one look on, twice as far each time


@dataclass(frozen=True, slots=True)
class ProgramOrder:
    """Edges between operations of one worker within one step.

    Attributes:
        before: `[E]` int64: rows.
        after: `[E]` int64: rows that wait for them.
        asynchronous: Names of the types that have a stream of their own.
    """

    before: Rows
    after: Rows
    asynchronous: tuple[str, ...]


def program_order(table: OperationTable, settings: Settings) -> ProgramOrder:
    """Return what every operation waited for on its own worker.

    Args:
        table: The operations, in their order.
        settings: `operation_overlap_max_ns`, `operation_async_min_share`.
    """
    lane = _lanes(table)
    beside = _async_types(table, lane, settings)
    asynchronous = beside[table.optype]
    before, after = _predecessors(table, lane, asynchronous, settings)
    edges = [(before, after), _exits(table, lane, asynchronous, settings)]
    names = tuple(kind.name for kind, is_beside in zip(table.types, beside, strict=True) if is_beside)
    return ProgramOrder(np.concatenate([b for b, _ in edges]), np.concatenate([a for _, a in edges]), names)


def _lanes(table: OperationTable) -> Rows:
    """Return `[N]` int64: one number for each worker in each step."""
    _, step = table.step_numbers()
    return step.astype(np.int64) * len(table.workers) + table.worker


def is_before(table: OperationTable, first: Rows, second: Rows, settings: Settings) -> Flags:
    """Tell whether the first of two operations ended before the second started.

    An overlap of at most half of the shorter one, and of at most the setting, is the clock's rounding.

    Args:
        table: The operations.
        first: `[M]` int64: rows.
        second: `[M]` int64: rows.
        settings: `operation_overlap_max_ns`.
    """
    shorter = np.minimum(table.duration_ns[first], table.duration_ns[second])
    allowed = np.minimum(shorter // 2, settings.operation_overlap_max_ns)
    return table.end_ns[first] <= table.start_ns[second] + allowed


def _async_types(table: OperationTable, lane: Rows, settings: Settings) -> Flags:
    """Return `[T]` bool: types of communication that run beside computation in more than a few instances."""
    n_types = len(table.types)
    is_compute = table.kind == OperationKind.COMPUTE
    beside = np.zeros(len(table), bool)
    rows = np.arange(len(table), dtype=np.int64)
    for lag in range(1, _NEAREST + 1):
        first, second = rows[:-lag], rows[lag:]
        pairs = (lane[first] == lane[second]) & (is_compute[first] != is_compute[second])
        first, second = first[pairs], second[pairs]
        overlap = ~is_before(table, first, second, settings)
        # A computation of no length beside a send says nothing of the send's stream.
        overlap &= np.minimum(table.duration_ns[first], table.duration_ns[second]) > 0
        first, second = first[overlap], second[overlap]
        beside[np.where(is_compute[first], second, first)] = True
    count = np.bincount(table.optype, minlength=n_types)
    n_beside = np.bincount(table.optype[beside], minlength=n_types)
    return n_beside > settings.operation_async_min_share * np.maximum(count, 1)


def _predecessors(table: OperationTable, lane: Rows, asynchronous: Flags, settings: Settings) -> tuple[Rows, Rows]:
    """Return the edges from each operation's latest predecessor, and from those that ran beside that one."""
    rows = np.arange(len(table), dtype=np.int64)
    latest = np.full(len(table), -1, np.int64)
    before: list[Rows] = []
    after: list[Rows] = []
    open_rows, lag, window = rows, 1, _NEAREST
    while len(open_rows):
        for step in range(lag, window + 1):
            second = open_rows[open_rows >= step]
            first = second - step
            counts = (lane[first] == lane[second]) & is_before(table, first, second, settings)
            counts &= ~asynchronous[first] | (table.optype[first] == table.optype[second])
            first, second = first[counts], second[counts]
            found = latest[second]
            # What ended before the latest predecessor began is waited for through that one.
            new = (found < 0) | ~is_before(table, first, np.maximum(found, 0), settings)
            before.append(first[new])
            after.append(second[new])
            fresh = new & (found < 0)
            latest[second[fresh]] = first[fresh]
        open_rows = open_rows[(latest[open_rows] < 0) & (open_rows >= window)]
        open_rows = open_rows[lane[open_rows - window] == lane[open_rows]]
        lag, window = window + 1, 2 * window
    return np.concatenate(before), np.concatenate(after)


def _exits(table: OperationTable, lane: Rows, asynchronous: Flags, settings: Settings) -> tuple[Rows, Rows]:
    """Return the edges from asynchronous communication to what needs its result.

    A receive is needed by the pass that has its direction and number; gathered parameters by the first forward pass
    that starts after them, of their chunk where that is written; anything else by the first operation behind it that
    belongs to no pass.
    """
    collective = asynchronous & (table.kind == OperationKind.COLLECTIVE)
    gathers = _of_types(table, [t.members is Members.DATA and t.name.lower().startswith("param") for t in table.types])
    passes = table.kind == OperationKind.COMPUTE
    forward = passes & _of_types(table, [t.direction > 0 for t in table.types])
    tail = ~asynchronous & _of_types(table, [t.direction == 0 for t in table.types])
    edges = [_to_passes(table, lane, asynchronous & (table.kind == OperationKind.RECV))]
    of_gathers = np.flatnonzero(collective & gathers)
    for chunk in np.unique(table.chunk[of_gathers]):
        of_chunk = forward if chunk == NONE_ID else forward & (table.chunk == chunk)
        edges.append(_to_next(table, lane, of_gathers[table.chunk[of_gathers] == chunk], of_chunk, settings))
    edges.append(_to_next(table, lane, np.flatnonzero(collective & ~gathers), tail, settings))
    return np.concatenate([b for b, _ in edges]), np.concatenate([a for _, a in edges])


def _of_types(table: OperationTable, wanted: list[bool]) -> Flags:
    return np.array(wanted, bool)[table.optype]


def _to_passes(table: OperationTable, lane: Rows, wanted: Flags) -> tuple[Rows, Rows]:
    """Return the edges from receives to the passes of their direction and number."""
    direction = np.array([t.direction for t in table.types], np.int64)[table.optype]
    size = int(table.sequence.max(initial=0)) + 1
    number = ((lane * 3 + direction + 1) * size) + table.sequence
    passes = np.flatnonzero((table.kind == OperationKind.COMPUTE) & (direction != 0))
    by = passes[np.argsort(number[passes], kind="stable")]
    before = np.flatnonzero(wanted)
    place = np.searchsorted(number[by], number[before])
    found = place < len(by)
    found[found] = number[by[place[found]]] == number[before[found]]
    return before[found], by[place[found]]


def _to_next(table: OperationTable, lane: Rows, before: Rows, targets: Flags, settings: Settings) -> tuple[Rows, Rows]:
    """Return the edges from rows to the first target of their lane that starts after them."""
    span_ns = int(table.end_ns.max(initial=0)) + settings.operation_overlap_max_ns + 1
    after = np.flatnonzero(targets)
    start = lane[after] * span_ns + table.start_ns[after]
    end = lane[before] * span_ns + np.maximum(table.end_ns[before] - settings.operation_overlap_max_ns, 0)
    place = np.searchsorted(start, end)
    found = place < len(after)
    found[found] = lane[after[place[found]]] == lane[before[found]]
    return before[found], after[place[found]]
