"""Collectives and copies start as soon as what they need is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind, PointKind
from longpole.vocabulary.objects import COLLECTIVE_KINDS
from longpole.whatif.selection import instances_of, selected_spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.whatif.change import IssueEarly
    from longpole.whatif.draft import Draft

_EVENTS: Final = (EdgeKind.EVENT_RECORDED, EdgeKind.EVENT_CONFIRMED, EdgeKind.EVENT_UNTESTED, EdgeKind.COINCIDENT)
_LAUNCHES: Final = (EdgeKind.LAUNCH, EdgeKind.LAUNCH_IN_ORDER)
_READS_PARAMETERS: Final = ("all_gather", "broadcast")


def issue_early(draft: Draft, change: IssueEarly) -> None:
    """Let the selected device spans wait only for their inputs and for their stream.

    On a device, what gathers or broadcasts parameters needs nothing that was computed in this unit: its event waits
    go. What reduces or exchanges results needs them: its event waits stay, and the host's launch no longer holds it
    up. A span without an event wait keeps its launch: nothing says what it needs. On the host's own threads (gloo)
    what gathers is issued as the unit begins.
    """
    graph = draft.graph
    for place, rank in draft.ranks():
        spans = selected_spans(draft, place, change.selector)
        own = draft.instances[rank.rank]
        wanted = instances_of(draft, rank, change.selector, spans) & own.on_device.astype(np.bool_)
        rows = np.union1d(np.flatnonzero(spans & (rank.spans.collective | rank.spans.is_copy)), own.row[wanted])
        _issue_on_host(draft, place, change)
        if len(rows) == 0:
            continue
        gathers = np.zeros(len(rank.spans.point), np.bool_)
        codes = [COLLECTIVE_KINDS.index(kind) for kind in _READS_PARAMETERS]
        gathers[own.row[own.on_device.astype(np.bool_) & np.isin(own.kind, codes)]] = True
        events = draft.edges_of(place, *_EVENTS)
        launches = draft.edges_of(place, *_LAUNCHES)
        event_row = rank.row[draft.local(place, graph.edges.dst[events])]
        launch_row = rank.row[draft.local(place, graph.edges.dst[launches])]
        chosen = np.zeros(len(rank.spans.point), np.bool_)
        chosen[rows] = True
        has_event = np.zeros(len(chosen), np.bool_)
        has_event[event_row] = True
        draft.drop(events[(chosen & gathers)[event_row]])
        draft.drop(launches[(chosen & ~gathers & has_event)[launch_row]])
        draft.rows += int((chosen & (gathers | has_event)).sum())
    draft.refuse_idle("nothing recorded says what the selected operations need before they can begin")


def _issue_on_host(draft: Draft, place: int, change: IssueEarly) -> None:
    """Issue what a library's own thread gathers or broadcasts when the unit begins; the issuing calls stay."""
    graph, rank = draft.graph, draft.graph.ranks[place]
    own = draft.instances[rank.rank]
    codes = [COLLECTIVE_KINDS.index(kind) for kind in _READS_PARAMETERS]
    wanted = instances_of(draft, rank, change.selector) & ~own.on_device.astype(np.bool_) & np.isin(own.kind, codes)
    if not wanted.any():
        return
    issues = draft.edges_of(place, EdgeKind.ISSUE)
    chosen = issues[np.isin(draft.local(place, graph.edges.dst[issues]), rank.entry[wanted])]
    begins = _unit_begins(draft, place)
    unit = np.searchsorted(rank.unit_start_ns, rank.time_ns[draft.local(place, graph.edges.src[chosen])], "right") - 1
    some = (unit >= 0) & (begins[np.maximum(unit, 0)] >= 0)
    draft.drop(chosen[some])
    draft.added.append(
        Edges.of(
            EdgeKind.ISSUE,
            begins[unit[some]],
            graph.edges.dst[chosen[some]],
            draft.length_ns[chosen[some]],
        )
    )
    draft.rows += int(some.sum())


def _unit_begins(draft: Draft, place: int) -> NDArray[np.int64]:
    """Return the run's point at which each unit of a rank begins on its thread, -1 for none."""
    rank = draft.graph.ranks[place]
    marks = np.flatnonzero((rank.point_kind == PointKind.MARK) & (rank.lane == rank.main_track))
    begins = np.full(len(rank.unit_start_ns), -1, np.int64)
    at = np.searchsorted(rank.time_ns[marks], rank.unit_start_ns, side="right") - 1
    exact = (at >= 0) & (rank.time_ns[marks[np.maximum(at, 0)]] == rank.unit_start_ns)
    begins[exact] = marks[at[exact]] + int(draft.graph.base[place])
    return begins
