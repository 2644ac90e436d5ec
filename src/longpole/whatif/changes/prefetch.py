"""The next batches are prepared by workers while this one is worked on.

main      ├ take 0 ┤── step 0 ──├ take 1 ┤── step 1 ──
worker a  ══ load 0 ═══╗ ══ load 2 ══╗          load k + N begins when its worker is free …
worker b     ══ load 1 ═══╗ ══ load 3 ══        … and batch k - N · (depth - 1) was taken
take k    waits for load k
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.graph.kinds import EdgeKind
from longpole.graph.sweep import NEVER_NS
from longpole.timeline.intervals import union
from longpole.whatif.composition import Alteration
from longpole.whatif.occurrences import find_occurrences
from longpole.whatif.release import release
from longpole.whatif.selection import section_parts, thread_time, waits_inside
from longpole.whatif.selector import Selector

if TYPE_CHECKING:
    from longpole.whatif.change import Prefetch
    from longpole.whatif.draft import Draft
    from longpole.whatif.occurrences import Occurrence


def prefetch(draft: Draft, change: Prefetch) -> None:
    """Move the preparation of input from the thread that carries the units to workers.

    As many workers and batches ahead as `prefetch_workers` and `prefetch_depth` say. A running job has the first batch
    ready when it is asked for, and its workers are evenly out of step.
    """
    selector = Selector(object=change.object)
    for place, rank in draft.ranks():
        threads = [t for t in thread_time(draft, place, selector) if t.track == rank.main_track]
        for track, time in threads:
            joined = union(time.start_ns, time.end_ns)
            taken = find_occurrences(draft, place, track, joined)
            parts = section_parts(draft, place, threads)
            draft.set_length(parts.edge, draft.length_ns[parts.edge] - parts.inside_ns)
            release(draft, place, waits_inside(draft, place, threads))
            handed_ns = _add_workers(draft, taken)
            inside_ns = max(int(parts.inside_ns.sum()), 1)
            draft.alterations.append(Alteration(place, track, time, min(handed_ns / inside_ns, 1.0)))
            draft.rows += len(taken)
    draft.refuse_idle(f"no activity of {change.object} lies on a thread that carries the units")


def _add_workers(draft: Draft, taken: list[Occurrence]) -> int:
    """Add the workers' batches; return what taking them over costs in all, ns."""
    workers = max(int(draft.settings.prefetch_workers), 1)
    ahead = workers * max(int(draft.settings.prefetch_depth), 1)
    ready: list[int] = []
    in_all_ns = 0
    for k, batch in enumerate(taken):
        first_ns = taken[0].begin_ns + k * batch.dur_ns // workers
        point = draft.add_point(batch.begin_ns, first_ns if k < workers else NEVER_NS)
        if k >= workers:
            draft.add_edge(EdgeKind.WORKER, ready[k - workers], point, batch.dur_ns)
        if k >= ahead:
            asked = taken[k - ahead]
            draft.add_edge(EdgeKind.WORKER, asked.before, point, asked.lead_ns + batch.dur_ns)
        handed_ns = min(draft.settings.prefetch_handover_ns, batch.dur_ns)
        draft.add_edge(EdgeKind.WORKER, point, batch.behind, handed_ns + batch.lag_ns)
        _take(draft, batch, handed_ns)
        in_all_ns += handed_ns
        ready.append(point)
    return in_all_ns


def _take(draft: Draft, batch: Occurrence, handed_ns: int) -> None:
    """Let the thread spend the time of taking a batch over; points of a thread stand side by side."""
    edges = draft.graph.edges
    along = np.flatnonzero((edges.src == batch.before) & (edges.dst == batch.before + 1))[:1]
    draft.set_length(along, draft.length_ns[along] + handed_ns)
