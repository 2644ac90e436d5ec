"""A write goes on beside the work that now waits for it.

main     ├ step 1 ┤├ begin 1 ┤├ step 2 ┤ … ├ begin 2: waits for write 1 if it still runs
writer              ══════ write 1 ══════╗
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.graph.kinds import EdgeKind
from longpole.timeline.intervals import union
from longpole.whatif.occurrences import find_occurrences
from longpole.whatif.release import release
from longpole.whatif.selection import section_parts, thread_time, waits_inside

if TYPE_CHECKING:
    from longpole.whatif.change import OffPath
    from longpole.whatif.draft import Draft


def off_path(draft: Draft, change: OffPath) -> None:
    """Move the selected activity to a thread of its own; the next one waits for the one before."""
    draft.worker_object = change.selector.object or "output"
    for place, rank in draft.ranks():
        for track, time in thread_time(draft, place, change.selector):
            if track != rank.main_track:
                continue
            writes = find_occurrences(draft, place, track, union(time.start_ns, time.end_ns))
            threads = [t for t in thread_time(draft, place, change.selector) if t.track == track]
            parts = section_parts(draft, place, threads)
            draft.shorten(place, threads, parts, 0.0)
            release(draft, place, waits_inside(draft, place, threads))
            before = -1
            for write in writes:
                point = draft.add_point(write.begin_ns + write.dur_ns)
                draft.add_edge(EdgeKind.WORKER, write.before, point, write.lead_ns + write.dur_ns)
                if before >= 0:
                    draft.add_edge(EdgeKind.WORKER, before, point, write.dur_ns)
                    draft.add_edge(EdgeKind.WORKER, before, write.behind, write.lag_ns)
                before = point
            draft.rows += len(writes)
    draft.refuse_idle("nothing of that name or object lies on a thread that carries the units")
