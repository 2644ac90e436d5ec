"""Ranks are made equal: by work (the same work spread evenly) or by speed (the others' pace)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from longpole.analyses.name_book import OBJECT_CODE
from longpole.timeline.intervals import Intervals, intersect
from longpole.whatif.composition import Alteration, OnThread, Sections
from longpole.whatif.selection import section_parts, span_edges, thread_time
from longpole.whatif.selector import Selector

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.rank_graph import RankGraph
    from longpole.whatif.change import Equalise
    from longpole.whatif.draft import Draft

_COMPUTE = Selector(object="compute")


def equalise(draft: Draft, change: Equalise) -> None:
    """Make ranks equal: by work, computation only; by speed, computation and what hosts take between calls."""
    if len(draft.graph.ranks) < 2:
        draft.refusals.append("one rank alone cannot be made equal to others")
        return
    if change.by == "work":
        _by_work(draft)
    else:
        _by_speed(draft)


def _by_work(draft: Draft) -> None:
    """Scale each rank's computation of each unit to the mean over the ranks."""
    work_ns: dict[str, dict[int, int]] = defaultdict(dict)
    spans: dict[tuple[int, str], NDArray[np.intp]] = {}
    sections: dict[tuple[int, str], Sections] = {}
    threads = {place: thread_time(draft, place, _COMPUTE) for place, _ in draft.ranks()}
    for place, rank in draft.ranks():
        edges, parts = span_edges(draft, place, _COMPUTE), section_parts(draft, place, threads[place])
        unit_of_span = rank.spans.unit[rank.row[draft.local(place, draft.graph.edges.src[edges])]]
        at_ns = rank.time_ns[draft.local(place, draft.graph.edges.src[parts.edge])]
        unit_of_part = np.searchsorted(rank.unit_start_ns, at_ns, side="right") - 1
        for u, name in enumerate(rank.units):
            mine = edges[unit_of_span == u]
            some = unit_of_part == u
            own = Sections(parts.edge[some], parts.inside_ns[some], parts.begins[some])
            spans[place, name], sections[place, name] = mine, own
            work_ns[name][place] = int(draft.length_ns[mine].sum() + own.inside_ns.sum())
    for name, by_rank in work_ns.items():
        if len(by_rank) < len(draft.graph.ranks):
            continue
        mean_ns = sum(by_rank.values()) / len(by_rank)
        if all(rank.has_device for _, rank in draft.ranks()):
            _even_out_spans(draft, {place: spans[place, name] for place in by_rank})
            continue
        for place, own_ns in by_rank.items():
            if own_ns:
                _stretch(draft, spans[place, name], sections[place, name], mean_ns / own_ns)
                inside = _within_unit(draft.graph.ranks[place], name, threads[place])
                draft.alterations += [Alteration(place, *some, mean_ns / own_ns) for some in inside]


def _even_out_spans(draft: Draft, spans: dict[int, NDArray[np.intp]]) -> None:
    """Scale the spans of one unit to the mean over the ranks, each name for itself where all ranks have it.

    What takes all ranks as long, such as an optimizer's kernels, stays as it is.
    """
    names: dict[int, list[str]] = {}
    total_ns: dict[str, dict[int, int]] = defaultdict(dict)
    for place, edges in spans.items():
        rank = draft.graph.ranks[place]
        rows = rank.row[draft.local(place, draft.graph.edges.src[edges])]
        names[place] = [rank.names[code] for code in rank.spans.name[rows].tolist()]
        for name, length_ns in zip(names[place], draft.length_ns[edges].tolist(), strict=True):
            total_ns[name][place] = total_ns[name].get(place, 0) + length_ns
    factors: dict[str, dict[int, float]] = {}
    rest_ns = dict.fromkeys(spans, 0)
    for name, by_rank in total_ns.items():
        if len(by_rank) == len(spans) and all(by_rank.values()):
            mean_ns = sum(by_rank.values()) / len(by_rank)
            factors[name] = {place: mean_ns / own_ns for place, own_ns in by_rank.items()}
            continue
        for place, own_ns in by_rank.items():
            rest_ns[place] += own_ns
    mean_rest_ns = sum(rest_ns.values()) / max(len(rest_ns), 1)
    for place, edges in spans.items():
        rest = mean_rest_ns / rest_ns[place] if rest_ns[place] else 1.0
        factor = np.array([factors[name][place] if name in factors else rest for name in names[place]], np.float64)
        draft.set_length(edges, np.rint(draft.length_ns[edges] * factor).astype(np.int64))
        draft.rows += len(edges)


def _within_unit(rank: RankGraph, name: str, threads: list[OnThread]) -> list[OnThread]:
    """Return the part of selected time that lies in one unit, up to where the next one begins."""
    u = rank.units.index(name)
    begin_ns = rank.unit_start_ns[u : u + 1]
    end_ns = rank.unit_start_ns[u + 1 : u + 2] if u + 1 < len(rank.units) else rank.time_ns.max(keepdims=True)
    unit = Intervals(begin_ns, np.maximum(end_ns, begin_ns))
    return [OnThread(track, intersect(time, unit)) for track, time in threads]


def _by_speed(draft: Draft) -> None:
    """Let no rank take longer for a kind of computation, or on its host in a stage, than the others' median.

    Nobody gets slower, and what differs by less than `equalise_min_ratio` is left alone: to take the faster of two
    noisy ranks for each of many kernels would promise what nobody can have.
    """
    pace: dict[str, dict[int, float]] = defaultdict(dict)
    spans: dict[tuple[int, str], NDArray[np.intp]] = {}
    for place, rank in draft.ranks():
        edges = span_edges(draft, place, _COMPUTE)
        names = rank.spans.name[rank.row[draft.local(place, draft.graph.edges.src[edges])]]
        for code in np.unique(names).tolist():
            mine = edges[names == code]
            spans[place, rank.names[code]] = mine
            pace[rank.names[code]][place] = float(draft.length_ns[mine].mean())
    for name, by_rank in pace.items():
        for place in by_rank:
            factor = _others_factor(draft, by_rank, place)
            if factor < 1:
                mine = spans[place, name]
                draft.set_length(mine, np.rint(draft.length_ns[mine] * factor).astype(np.int64))
                draft.rows += len(mine)
    _operators_by_speed(draft)
    _hosts_by_speed(draft)


def _operators_by_speed(draft: Draft) -> None:
    """Compare operators on threads, where ranks have no device: time per call of each name."""
    pace: dict[str, dict[int, float]] = defaultdict(dict)
    for place, rank in draft.ranks():
        if rank.has_device:
            continue
        cover = rank.cover
        ends = np.append(cover.start_ns[1:], cover.start_ns[-1:])
        compute = (cover.object == OBJECT_CODE["compute"]) & (cover.name >= 0)
        time_ns = np.bincount(cover.name[compute], (ends - cover.start_ns)[compute], len(rank.names))
        calls = np.bincount(rank.host.name, minlength=len(rank.names))
        for code in np.flatnonzero(time_ns).tolist():
            pace[rank.names[code]][place] = float(time_ns[code] / max(calls[code], 1))
    for place, rank in draft.ranks():
        for code, name in enumerate(rank.names):
            factor = _others_factor(draft, pace.get(name, {}), place)
            if factor < 1:
                chosen = (rank.cover.name == code) & (rank.cover.object == OBJECT_CODE["compute"])
                _shorten(draft, place, _under(rank, chosen), factor)


def _hosts_by_speed(draft: Draft) -> None:
    """Compare what the hosts take in each stage, waits left out: a rank whose host pauses is slow, too."""
    host = OBJECT_CODE["host"]
    for stage in np.unique(np.concatenate([rank.cover.stage for rank in draft.graph.ranks])).tolist():
        threads = {
            place: _under(rank, (rank.cover.object == host) & (rank.cover.stage == stage))
            for place, rank in draft.ranks()
        }
        pace = {
            place: section_parts(draft, place, some).inside_ns.sum() / max(len(draft.graph.ranks[place].units), 1)
            for place, some in threads.items()
        }
        for place, some in threads.items():
            factor = _others_factor(draft, pace, place)
            if factor < 1:
                _shorten(draft, place, some, factor)


def _under(rank: RankGraph, chosen: NDArray[np.bool_]) -> list[OnThread]:
    """Return the time of each thread in which the masked segments are in force."""
    times = [(track, rank.covered(track, chosen)) for track in range(rank.n_tracks)]
    return [OnThread(track, time) for track, time in times if len(time.start_ns)]


def _others_factor(draft: Draft, by_rank: dict[int, float], place: int) -> float:
    """Return the others' median over a rank's own, 1 where that is no clear difference."""
    own = by_rank.get(place, 0.0)
    others = [value for other, value in by_rank.items() if other != place]
    if not others or own <= 0:
        return 1.0
    factor = float(np.median(others)) / own
    return factor if factor * draft.settings.equalise_min_ratio <= 1 else 1.0


def _shorten(draft: Draft, place: int, threads: list[OnThread], factor: float) -> None:
    parts = section_parts(draft, place, threads)
    draft.shorten(place, threads, parts, factor)
    draft.rows += len(parts.edge)


def _stretch(draft: Draft, spans: NDArray[np.intp], sections: Sections, factor: float) -> None:
    draft.set_length(spans, np.rint(draft.length_ns[spans] * factor).astype(np.int64))
    less_ns = np.rint(sections.inside_ns * (1 - factor)).astype(np.int64)
    draft.set_length(sections.edge, draft.length_ns[sections.edge] - less_ns)
    draft.rows += len(spans) + len(sections.edge)
