"""Rows take a factor of their time, or some time more or less."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.graph.kinds import EdgeKind
from longpole.whatif.issuing import issuing_sections, resumptions
from longpole.whatif.release import release
from longpole.whatif.selection import instances_of, section_parts, selected_spans, span_edges, thread_time, waits_inside

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.whatif.change import Add, Scale
    from longpole.whatif.draft import Draft
    from longpole.whatif.selector import Selector


def scale(draft: Draft, change: Scale) -> None:
    """Let the selected rows take `factor` times as long.

    Time on threads counts as far as it lies under the selected activity. Where it is removed altogether, calls inside
    it no longer wait for the device either; time that is only called `host` keeps its waits, for a wait is charged to
    what is waited for.
    """
    removes_waits = change.factor == 0 and change.selector.object != "host"
    for place, _ in draft.ranks():
        edges = span_edges(draft, place, change.selector)
        _count_overlap(draft, place, change.selector)
        old_ns = draft.length_ns[edges]
        draft.set_length(edges, np.rint(old_ns * change.factor).astype(np.int64))
        threads = thread_time(draft, place, change.selector)
        parts = section_parts(draft, place, threads)
        draft.shorten(place, threads, parts, change.factor)
        draft.rows += len(edges) + sum(len(time.start_ns) for _, time in threads)
        if removes_waits:
            release(draft, place, waits_inside(draft, place, threads))
            _drop_host_side(draft, place, change.selector)
    _refuse_unsplit(draft, change.selector)


def _drop_host_side(draft: Draft, place: int, selector: Selector) -> None:
    """Let removed collectives of the host's own threads (gloo) be neither issued nor waited for.

    Those of a device keep their launches: microseconds, and what the known savings of the cases leave in place.
    """
    rank = draft.graph.ranks[place]
    if not (selector.object == "collective" or selector.kind or selector.name_regex) or rank.has_device:
        return
    wanted = instances_of(draft, rank, selector)
    sections = issuing_sections(draft, place, wanted)
    draft.set_length(sections, np.zeros(len(sections), np.int64))
    draft.drop(resumptions(draft, place, wanted))


def add(draft: Draft, change: Add) -> None:
    """Let every occurrence of the selected rows take some time more, or less but never less than none."""
    for place, _ in draft.ranks():
        edges = span_edges(draft, place, change.selector)
        _count_overlap(draft, place, change.selector)
        draft.set_length(edges, draft.length_ns[edges] + change.delta_ns)
        threads = thread_time(draft, place, change.selector)
        parts = section_parts(draft, place, threads)
        draft.rows += len(edges) + int(parts.begins.sum())
        if change.delta_ns > 0:
            more_ns = parts.begins * change.delta_ns
        else:
            more_ns = -_less_of_each(parts.inside_ns, parts.begins, -change.delta_ns)
        draft.set_length(parts.edge, draft.length_ns[parts.edge] + more_ns)
        draft.note(place, threads, parts, more_ns)
    _refuse_unsplit(draft, change.selector)


def _less_of_each(inside_ns: NDArray[np.int64], begins: NDArray[np.int64], delta_ns: int) -> NDArray[np.int64]:
    """Take up to `delta_ns` for every occurrence off the edges that it runs over, in order."""
    less_ns = np.zeros(len(inside_ns), np.int64)
    left_ns = 0
    for place, (own_ns, new) in enumerate(zip(inside_ns.tolist(), begins.tolist(), strict=True)):
        left_ns = delta_ns * new if new else left_ns
        less_ns[place] = min(own_ns, left_ns)
        left_ns -= int(less_ns[place])
    return less_ns


def _count_overlap(draft: Draft, place: int, selector: Selector) -> None:
    """Note how much of the altered device time runs beside other spans: contention is not modelled."""
    rank = draft.graph.ranks[place]
    if selector.rank is not None and selector.rank != rank.rank:
        return
    chosen = selected_spans(draft, place, selector)
    point = rank.spans.point[chosen]
    dur_ns = rank.time_ns[point + 1] - rank.time_ns[point]
    draft.altered_ns += int(dur_ns.sum())
    draft.overlapping_ns += int(dur_ns[rank.spans.overlapped[chosen]].sum())


def _refuse_unsplit(draft: Draft, selector: Selector) -> None:
    """Refuse to alter collectives whose waiting and moving cannot be told apart, however they were selected."""
    unsplit = total = 0
    graph = draft.graph
    for place, rank in draft.ranks():
        wanted = instances_of(draft, rank, selector, selected_spans(draft, place, selector))
        split = np.zeros(len(wanted), np.bool_)
        into = draft.edges_of(place, EdgeKind.TRANSFER)
        split[graph.meeting.instance[graph.member_of_edge[into]]] = True
        unsplit += int((wanted & ~split).sum())
        total += int(wanted.sum())
    draft.refuse_unsplit(unsplit, total)
