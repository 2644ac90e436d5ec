"""Which edges and how much of them a selector is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.analyses.name_book import OBJECT_CODE, STAGE_CODE
from longpole.graph.kinds import EdgeKind
from longpole.timeline.intervals import covered_before, intersect, union
from longpole.vocabulary.objects import COLLECTIVE_KINDS
from longpole.whatif.composition import OnThread, Sections, time_left_ns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.rank_graph import RankGraph
    from longpole.whatif.draft import Draft
    from longpole.whatif.selector import Selector

    Ints: TypeAlias = NDArray[np.int64]
    Flags: TypeAlias = NDArray[np.bool_]

BLOCKING: frozenset[EdgeKind] = frozenset(
    (EdgeKind.RETURN_RECORDED, EdgeKind.RETURN, EdgeKind.LAUNCH_QUEUE, EdgeKind.ALLOCATION)
)


def span_edges(draft: Draft, place: int, selector: Selector) -> NDArray[np.intp]:
    """Return the edges along device spans, and the transfers of collectives, that are selected on one rank."""
    graph, rank = draft.graph, draft.graph.ranks[place]
    if selector.rank is not None and selector.rank != rank.rank:
        return np.empty(0, np.intp)
    chosen = selected_spans(draft, place, selector)
    edges = draft.edges_of(place, EdgeKind.DURATION)
    rows = rank.row[draft.local(place, graph.edges.src[edges])]
    durations = edges[chosen[rows]] if len(edges) else edges
    return np.concatenate([durations, _transfers(draft, place, selector, chosen)])


def _transfers(draft: Draft, place: int, selector: Selector, spans: Flags) -> NDArray[np.intp]:
    """Return the transfer edges into a rank's collectives that are selected, and kept durations of backend spans."""
    graph, rank = draft.graph, draft.graph.ranks[place]
    into = draft.edges_of(place, EdgeKind.TRANSFER)
    member = graph.member_of_edge[into]
    instance = graph.meeting.instance[member]
    wanted = instances_of(draft, rank, selector, spans)
    result = into[wanted[instance]] if len(into) else into
    if rank.has_device:
        return result
    kept = draft.edges_of(place, EdgeKind.MEMBER)
    entries = np.isin(draft.local(place, graph.edges.src[kept]), rank.entry[wanted])
    return np.concatenate([result, kept[entries]])


def instances_of(draft: Draft, rank: RankGraph, selector: Selector, spans: Flags | None = None) -> Flags:
    """Return which of a rank's collectives are selected: `[I]` bool."""
    own = draft.instances[rank.rank]
    n = len(rank.entry)
    if selector.rank is not None and selector.rank != rank.rank:
        return np.zeros(n, np.bool_)
    if selector.object not in ("", "collective"):
        return np.zeros(n, np.bool_)
    wanted = np.ones(n, np.bool_)
    if selector.kind:
        wanted &= own.kind == COLLECTIVE_KINDS.index(selector.kind)
    on_device = own.on_device.astype(np.bool_)
    if selector.stream is not None:
        wanted &= on_device & (own.stream == selector.stream)
    if selector.name_regex or selector.stage:
        if spans is None:
            spans = np.zeros(len(rank.spans.point), np.bool_)
        rows = np.where(on_device, own.row, 0)
        by_span = spans[rows] if len(spans) else np.zeros(n, np.bool_)
        codes = rank.host.name[np.where(on_device, 0, own.row)] if len(rank.host.name) else np.zeros(n, np.int32)
        by_name = name_mask(rank, selector)[codes] & (not selector.stage)
        wanted &= np.where(on_device, by_span, by_name)
    return wanted


def selected_spans(draft: Draft, place: int, selector: Selector) -> Flags:
    """Return which device spans of a rank are selected: `[D]` bool."""
    rank = draft.graph.ranks[place]
    spans = rank.spans
    chosen = np.ones(len(spans.point), np.bool_)
    if selector.object == "compute":
        chosen &= spans.compute
    elif selector.object:
        chosen &= (spans.object == OBJECT_CODE[selector.object]) & ~spans.compute
    if selector.name_regex:
        names = name_mask(rank, selector)
        chosen &= names[spans.name] | _launched_under(rank, names)
    if selector.stage:
        chosen &= spans.stage == STAGE_CODE[selector.stage] if selector.stage in STAGE_CODE else False
    if selector.stream is not None:
        chosen &= np.isin(spans.lane, [lane for lane, stream in enumerate(rank.streams) if stream == selector.stream])
    if selector.kind:
        kinds = np.zeros(len(chosen), np.bool_)
        own = draft.instances[rank.rank]
        mine = own.on_device.astype(np.bool_) & (own.kind == COLLECTIVE_KINDS.index(selector.kind))
        kinds[own.row[mine]] = True
        chosen &= kinds
    return chosen


def _launched_under(rank: RankGraph, names: Flags) -> Flags:
    """Return which device spans were launched inside host spans of the masked names: `[D]` bool.

    The launching calls' own names do not count: who takes `cudaLaunchKernel` away means the calls, not their kernels.
    """
    spans, host = rank.spans, rank.host
    inside = np.zeros(len(spans.point), np.bool_)
    chosen = names[host.name]
    chosen[spans.launch[spans.launch >= 0]] = False
    linked = np.flatnonzero(spans.launch >= 0)
    track = host.track[spans.launch[linked]]
    for code in np.unique(track).tolist():
        low, high = int(host.first[code]), int(host.first[code + 1])
        rows = low + np.flatnonzero(chosen[low:high])
        time = union(host.start_ns[rows], host.end_ns[rows])
        mine = linked[track == code]
        begun_ns = host.start_ns[spans.launch[mine]]
        inside[mine] = covered_before(time, begun_ns + 1) > covered_before(time, begun_ns)
    return inside


def name_mask(rank: RankGraph, selector: Selector) -> Flags:
    """Return which names fit the selector's regular expression: `[names]` bool."""
    pattern = selector.name_pattern()
    if pattern is None:
        return np.ones(len(rank.names), np.bool_)
    return np.array([pattern.search(name) is not None for name in rank.names] or [False], np.bool_)


def thread_time(draft: Draft, place: int, selector: Selector) -> list[OnThread]:
    """Return the selected time of each thread of a rank, in the rank's own time."""
    rank = draft.graph.ranks[place]
    if selector.stream is not None or selector.kind:
        return []
    if selector.rank is not None and selector.rank != rank.rank:
        return []
    result = []
    names = name_mask(rank, selector)
    for track in range(rank.n_tracks):
        if rank.cover.first[track] == rank.cover.first[track + 1]:
            continue
        chosen = np.ones(len(rank.cover.start_ns), np.bool_)
        if selector.object:
            chosen &= rank.cover.object == OBJECT_CODE[selector.object]
        if selector.stage:
            chosen &= rank.cover.stage == STAGE_CODE[selector.stage] if selector.stage in STAGE_CODE else False
        time = rank.covered(track, chosen)
        if selector.name_regex:
            time = intersect(time, rank.under_names(track, names))
        if len(time.start_ns):
            result.append(OnThread(track, time))
    return result


def section_parts(draft: Draft, place: int, threads: list[OnThread]) -> Sections:
    """Return the edges along threads that hold selected time, and how much of it earlier changes left."""
    graph, rank = draft.graph, draft.graph.ranks[place]
    edges = draft.edges_of(place, EdgeKind.SECTION, EdgeKind.FLOOR)
    src, dst = draft.local(place, graph.edges.src[edges]), draft.local(place, graph.edges.dst[edges])
    lane = rank.lane[src]
    inside_ns, begins = np.zeros(len(edges), np.int64), np.zeros(len(edges), np.int64)
    whole_ns = inside_ns.copy()
    for track, time in threads:
        mine = np.flatnonzero(lane == track)
        from_ns, to_ns = rank.time_ns[src[mine]], rank.time_ns[dst[mine]]
        whole_ns[mine] = covered_before(time, to_ns) - covered_before(time, from_ns)
        left_ns = time_left_ns(time, from_ns, to_ns, draft.earlier(place, track))
        inside_ns[mine] = np.rint(left_ns).astype(np.int64)
        begins[mine] = np.searchsorted(time.start_ns, to_ns, side="left") - np.searchsorted(
            time.start_ns, from_ns, side="left"
        )
    # Of a blocking call only its own floor is there to be shortened.
    recorded_ns = rank.time_ns[dst] - rank.time_ns[src]
    floor = graph.edges.kind[edges] == EdgeKind.FLOOR
    share = np.where(recorded_ns > 0, whole_ns / np.maximum(recorded_ns, 1), 0.0)
    inside_ns = np.where(floor, np.rint(share * draft.length_ns[edges]).astype(np.int64), inside_ns)
    some = (inside_ns > 0) | (begins > 0)
    return Sections(edges[some], inside_ns[some], begins[some])


def waits_inside(draft: Draft, place: int, threads: list[OnThread]) -> NDArray[np.intp]:
    """Return the edges by which calls that lie in selected time wait for a device, or would if they came sooner."""
    graph, rank = draft.graph, draft.graph.ranks[place]
    into = draft.edges_of(place, *BLOCKING)
    calls = rank.row[draft.local(place, graph.edges.dst[into])]
    inside = np.zeros(len(calls), np.bool_)
    for track, time in threads:
        mine = np.flatnonzero(rank.host.track[calls] == track)
        start_ns, end_ns = rank.host.start_ns[calls[mine]], rank.host.end_ns[calls[mine]]
        inside[mine] = covered_before(time, end_ns) - covered_before(time, start_ns) == end_ns - start_ns
    return into[inside]
