"""A record without device spans: the thread that carries the units takes the device's place (DESIGN 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longpole.analyses.idle import Gaps, host_pieces
from longpole.analyses.name_book import OBJECT_CODE
from longpole.analyses.pieces import RUNG_COLLECTIVE, RUNG_COMPUTE, Pieces, join_pieces
from longpole.analyses.services import backend_spans, host_services
from longpole.timeline.columns import Kind
from longpole.timeline.intervals import Intervals, complement, expand, intersect, subtract, union, unite

if TYPE_CHECKING:
    from longpole.analyses.name_book import NameBook
    from longpole.analyses.threads import Threads
    from longpole.timeline.timeline import Timeline


class HostRow(NamedTuple):
    """The pieces of the thread that stands in for a device, and what goes with them."""

    pieces: Pieces
    gaps: Gaps
    services: dict[str, Intervals]
    unions: dict[str, Intervals]


def operator_time(timeline: Timeline, threads: Threads) -> Intervals:
    """Return when operators run on the main thread: what counts as compute where no device was recorded."""
    return _operators(threads, timeline.main_track)


def host_row(
    timeline: Timeline, book: NameBook, threads: Threads, recorded: Intervals, activities: dict[str, Intervals]
) -> HostRow:
    """Measure the thread that carries the units.

    An operator on it is compute; while none runs there, a span of a communication library on any thread is the
    collective; what is left is explained like a device's idle time.
    """
    track = timeline.main_track
    own = intersect(operator_time(timeline, threads), recorded)
    everywhere = unite(own, *(intersect(_operators(threads, t), recorded) for t in _operator_tracks(timeline)))
    backend = intersect(backend_spans(timeline, book), recorded)
    exposed = subtract(backend, own)
    compute = _staged(threads, track, own, RUNG_COMPUTE, "compute")
    collective = _staged(threads, track, exposed, RUNG_COLLECTIVE, "collective")
    low, high = int(recorded.start_ns[0]), int(recorded.end_ns[0])
    idle = complement(unite(own, exposed), low, high)
    n = len(idle.start_ns)
    none = np.full(n, -1, np.int64)
    gaps = Gaps(idle.start_ns, idle.end_ns, none, none, np.full(n, track, np.int64))
    rest = host_pieces(threads, track, gaps, np.arange(n), idle.end_ns)
    unions = {"compute": own, "collective": backend, "copy": Intervals.none()}
    return HostRow(
        join_pieces([compute, collective, rest]),
        gaps,
        host_services(timeline, everywhere, backend, activities),
        unions,
    )


def _operator_tracks(timeline: Timeline) -> list[int]:
    host = timeline.host
    return np.unique(host.track[host.kind == Kind.OPERATOR]).tolist()


def _operators(threads: Threads, track: int) -> Intervals:
    """Return when an operator runs on a thread, calls of collectives and waits not counted."""
    if track < 0:
        return Intervals.none()
    cover = threads.cover(track)
    following_ns = np.append(cover.start_ns[1:], cover.start_ns[-1:])
    return union(cover.start_ns[cover.operator], following_ns[cover.operator])


def _staged(threads: Threads, track: int, time: Intervals, rung: int, name: str) -> Pieces:
    """Cut a set by the stages of the thread."""
    cover = threads.cover(track) if track >= 0 else None
    if cover is None or len(time.start_ns) == 0:
        from longpole.analyses.rungs import empty_pieces

        return empty_pieces()
    first = np.searchsorted(cover.start_ns, time.start_ns, side="right") - 1
    last = np.searchsorted(cover.start_ns, time.end_ns, side="left")
    span, piece = expand(first, last)
    following_ns = np.append(cover.start_ns[1:], 1 << 62)
    return Pieces(
        start_ns=np.maximum(time.start_ns[span], cover.start_ns[piece]),
        end_ns=np.minimum(time.end_ns[span], following_ns[piece]),
        rung=np.full(len(span), rung, np.int8),
        object=np.full(len(span), OBJECT_CODE[name], np.int8),
        reason=np.full(len(span), -1, np.int8),
        stage=cover.stage[piece],
        row=cover.innermost[piece],
        gap=np.full(len(span), -1, np.int64),
    )
