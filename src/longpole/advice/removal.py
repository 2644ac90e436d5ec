"""How causes are taken out of a graph: functions that alter a draft (DESIGN 3.7), made from what a rule saw."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.graph.kinds import EdgeKind
from longpole.timeline.intervals import covered_before, unite
from longpole.whatif.composition import OnThread
from longpole.whatif.release import release
from longpole.whatif.selection import BLOCKING, section_parts, waits_inside

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from longpole.advice.scene import RankView
    from longpole.timeline.intervals import Intervals
    from longpole.whatif.draft import Draft

    Removal: TypeAlias = Callable[[Draft], None]
    Rows: TypeAlias = NDArray[np.int64]


def without_time(
    times: Mapping[int, list[tuple[int, Intervals]]],
    *,
    left: Mapping[int, float] | None = None,
    keep_waits: bool = False,
) -> Removal:
    """Return a change that takes time of threads away, and the waits inside it.

    Args:
        times: Place of a rank -> (track, its time to go), in the rank's own time.
        left: Place of a rank -> the share of that time that stays; 0 where not named.
        keep_waits: Calls inside that time still wait for the device.
    """

    def change(draft: Draft) -> None:
        """Take the time of the cause away."""
        for place, threads in times.items():
            tracks = {track for track, time in threads if len(time.start_ns)}
            # One entry a thread: parts of an edge under two sets would be counted once only.
            mine = [OnThread(track, unite(*(t for own, t in threads if own == track))) for track in sorted(tracks)]
            if not mine:
                continue
            parts = section_parts(draft, place, mine)
            factor = (left or {}).get(place, 0.0)
            draft.shorten(place, mine, parts, factor)
            if not keep_waits and factor == 0:
                release(draft, place, waits_inside(draft, place, mine))
            draft.rows += sum(len(time.start_ns) for _, time in mine)

    return change


def without_activity(views: Sequence[tuple[RankView, Intervals]]) -> list[Removal]:
    """Return changes that take activities of main threads away, with the copies that they launched.

    Args:
        views: Ranks, each with the time of its main thread under the activity.
    """
    copies = {view.place: _copies_launched(view, time) for view, time in views}
    changes = [without_time({view.place: [(view.main, time)] for view, time in views})]
    copies = {place: rows for place, rows in copies.items() if len(rows)}
    return [*changes, without_spans(copies)] if copies else changes


def _copies_launched(view: RankView, time: Intervals) -> Rows:
    """Return the device rows of copies launched in some time of the main thread."""
    spans, host = view.graph.spans, view.graph.host
    rows = np.flatnonzero(spans.is_copy & (spans.launch >= 0))
    rows = rows[host.track[spans.launch[rows]] == view.main]
    begun_ns = host.start_ns[spans.launch[rows]]
    return rows[covered_before(time, begun_ns + 1) > covered_before(time, begun_ns)].astype(np.int64)


def without_waits(calls: Mapping[int, Rows]) -> Removal:
    """Return a change by which some calls no longer wait for the device.

    Args:
        calls: Place of a rank -> host rows of the calls.
    """

    def change(draft: Draft) -> None:
        """Let the calls return without waiting."""
        for place, rows in calls.items():
            rank = draft.graph.ranks[place]
            into = draft.edges_of(place, *BLOCKING, EdgeKind.IMPLIED_WAIT)
            ends = rank.call_end[rows[rank.call_end[rows] >= 0]]
            waits = into[np.isin(draft.local(place, draft.graph.edges.dst[into]), ends)]
            release(draft, place, waits)
            draft.rows += len(waits)

    return change


def span_lengths(lengths_ns: Mapping[int, tuple[Rows, Rows]]) -> Removal:
    """Return a change by which some device spans take other times.

    Args:
        lengths_ns: Place of a rank -> (device rows, their new lengths in ns).
    """

    def change(draft: Draft) -> None:
        """Give the spans their new lengths."""
        for place, (rows, new_ns) in lengths_ns.items():
            rank = draft.graph.ranks[place]
            edges = draft.edges_of(place, EdgeKind.DURATION)
            row = rank.row[draft.local(place, draft.graph.edges.src[edges])]
            order = np.argsort(rows)
            at = np.minimum(np.searchsorted(rows[order], row), max(len(rows) - 1, 0))
            mine = rows[order][at] == row if len(rows) else np.zeros(len(row), np.bool_)
            draft.set_length(edges[mine], new_ns[order][at][mine])
            draft.rows += int(mine.sum())

    return change


def without_spans(rows: Mapping[int, Rows]) -> Removal:
    """Return a change by which some device spans take no time, and nothing waits for them.

    Args:
        rows: Place of a rank -> device rows.
    """
    return span_lengths({place: (mine, np.zeros(len(mine), np.int64)) for place, mine in rows.items()})


def transfer_lengths(lengths_ns: Mapping[int, int]) -> Removal:
    """Return a change by which operations take other times once all have arrived.

    Args:
        lengths_ns: Place among the run's matched operations -> new transfer in ns.
    """

    def change(draft: Draft) -> None:
        """Give the transfers their new lengths."""
        graph = draft.graph
        into = np.flatnonzero(graph.member_of_edge >= 0)
        operation = np.searchsorted(graph.meeting.first, graph.member_of_edge[into], side="right") - 1
        wanted = np.full(len(graph.meeting.how), -1, np.int64)
        wanted[list(lengths_ns)] = list(lengths_ns.values())
        mine = wanted[operation] >= 0
        draft.set_length(into[mine], wanted[operation[mine]])
        draft.rows += int(mine.sum())

    return change
