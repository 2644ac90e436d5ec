"""The longest idle gaps, each with what the host did under it: operation, call stack, other threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.analyses.top import track_label
from longpole.records.tables import GapRow, Where
from longpole.timeline.columns import Kind
from longpole.vocabulary.objects import IDLE_REASONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.analyses.idle import Gaps
    from longpole.analyses.pieces import Pieces
    from longpole.analyses.threads import Threads
    from longpole.timeline.timeline import Timeline

GAPS_KEPT: Final = 20
_STACK_KEPT: Final = 24
_THREADS_KEPT: Final = 4


def gap_rows(
    timeline: Timeline, threads: Threads, gaps: Gaps, pieces: Pieces, unit_of: NDArray[np.intp], unit_names: list[str]
) -> list[GapRow]:
    """Return the longest gaps, the longest first.

    Args:
        timeline: The record.
        threads: Covers of its threads.
        gaps: All gaps of the device row.
        pieces: The row's pieces inside the units.
        unit_of: `[N]`: place of the unit of each piece.
        unit_names: Names of the units.
    """
    idle = np.flatnonzero(pieces.gap >= 0)
    if len(idle) == 0:
        return []
    length_ns = np.zeros(len(gaps.start_ns), np.int64)
    np.add.at(length_ns, pieces.gap[idle], pieces.dur_ns[idle])
    worst = np.argsort(-length_ns, kind="stable")[:GAPS_KEPT]
    rows = []
    for gap in worst[length_ns[worst] > 0].tolist():
        mine = idle[pieces.gap[idle] == gap]
        rows.append(_gap_row(timeline, threads, gaps, pieces, (gap, mine), unit_names[int(unit_of[mine[0]])]))
    return rows


def _gap_row(
    timeline: Timeline,
    threads: Threads,
    gaps: Gaps,
    pieces: Pieces,
    found: tuple[int, NDArray[np.intp]],
    unit: str,
) -> GapRow:
    gap, mine = found
    idle_ns: dict[str, int] = {}
    for piece in mine.tolist():
        reason = IDLE_REASONS[int(pieces.reason[piece])]
        idle_ns[reason] = idle_ns.get(reason, 0) + int(pieces.end_ns[piece] - pieces.start_ns[piece])
    main_reason = max(idle_ns, key=lambda reason: idle_ns[reason])
    of_reason = [p for p in mine.tolist() if IDLE_REASONS[int(pieces.reason[p])] == main_reason]
    longest = max(of_reason, key=lambda p: int(pieces.end_ns[p] - pieces.start_ns[p]))
    row = int(pieces.row[longest])
    name = timeline.names[int(timeline.host.name[row])] if row >= 0 else main_reason
    closer = int(gaps.closer[gap])
    span_ns = (int(pieces.start_ns[longest]), int(pieces.end_ns[longest]))
    thread = int(timeline.host.track[row]) if row >= 0 else int(gaps.thread[gap])
    return GapRow(
        name=name,
        reason=main_reason,
        dur_ns=sum(idle_ns.values()),
        unit=unit,
        idle_ns=dict(sorted(idle_ns.items(), key=lambda item: -item[1])),
        thread=track_label(timeline, thread),
        stack=_stack(timeline, threads, row),
        other_threads=_others(timeline, thread, span_ns) if main_reason == "host.python" else [],
        closed_by=timeline.names[int(timeline.device.name[closer])] if closer >= 0 else "",
        where=Where(int(gaps.start_ns[gap]), int(timeline.host.event[row]) if row >= 0 else None),
    )


def _stack(timeline: Timeline, threads: Threads, row: int) -> list[str]:
    """Return the names from the thread's outermost span down to the row's."""
    if row < 0:
        return []
    recorded = timeline.call_stacks.at(row)
    if recorded:
        # Exporters write the innermost frame first.
        frames = recorded.split(";")[:_STACK_KEPT]
        return [*reversed(frames), timeline.names[int(timeline.host.name[row])]]
    cover = threads.cover(int(timeline.host.track[row]))
    names = []
    place = row - cover.first_row
    while place >= 0:
        names.append(timeline.names[int(timeline.host.name[place + cover.first_row])])
        place = int(cover.parent[place])
    names.reverse()
    return names if len(names) <= _STACK_KEPT else [*names[:4], "…", *names[-(_STACK_KEPT - 5) :]]


def _others(timeline: Timeline, thread: int, span_ns: tuple[int, int]) -> list[str]:
    """Name the other threads that were active during a span of time, the busiest first."""
    host = timeline.host
    rows = np.flatnonzero((host.start_ns < span_ns[1]) & (host.end_ns > span_ns[0]) & (host.track != thread))
    if len(rows) == 0:
        return []
    inside_ns = np.minimum(host.end_ns[rows], span_ns[1]) - np.maximum(host.start_ns[rows], span_ns[0])
    by_thread: dict[int, tuple[int, int]] = {}
    for row, length_ns in zip(rows.tolist(), inside_ns.tolist(), strict=True):
        track = int(host.track[row])
        innermost = by_thread.get(track, (-1, row))[1]
        shorter = host.end_ns[row] - host.start_ns[row] <= host.end_ns[innermost] - host.start_ns[innermost]
        keep = row if shorter and host.kind[row] != Kind.OTHER else innermost
        by_thread[track] = (max(by_thread.get(track, (0, row))[0], length_ns), keep)
    busiest = sorted(by_thread.items(), key=lambda item: -item[1][0])[:_THREADS_KEPT]
    return [f"{track_label(timeline, track)}: {timeline.names[int(host.name[row])]}" for track, (_, row) in busiest]
