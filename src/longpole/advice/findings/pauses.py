"""The main thread stands still and nothing of its own says why: another thread holds it up, or the process pauses.

main     ├ launch ┤           no record           ├ launch ┤
pinning            ├──── holds the lock ─────┤
device   ═══════════════╗                          ══ …
                        ╰── idle ──╯
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.advice.places import longest
from longpole.advice.removal import without_time
from longpole.advice.suspect import Suspect
from longpole.advice.words import listed, on_ranks
from longpole.analyses.name_book import OBJECT_CODE
from longpole.graph.kinds import EdgeKind
from longpole.records.findings import Evidence
from longpole.timeline.intervals import Intervals, covered_before, intersect, subtract, union

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longpole.advice.scene import RankView, Scene
    from longpole.advice.suspect import Removal
    from longpole.whatif.draft import Draft

_TURNS_MIN: Final = 3  # units: two pauses are no rotation
_COVERED: Final = 0.5  # of a pause: what another thread does for less of it does not explain it
_OPERATORS: Final = ("::", "cuda", "hip", "cu", "aclrt", "acl", "nccl", "rccl")


@dataclass(frozen=True, slots=True)
class _Pauses:
    """The long pauses of one rank's main thread, and those of them during which another thread was busy."""

    view: RankView
    alone: Intervals
    beside: Intervals
    other: int


def find(scene: Scene) -> list[Suspect]:
    """Suspect whatever freezes a main thread without a record of its own.

    Where the program itself wrote the record, a stretch without a span is work that it does not name, and no pause.
    """
    pauses = [_pauses(view) for view in scene.views if view.main >= 0 and not view.graph.is_told]
    return [*_contention(scene, pauses), *_rotating(scene, pauses), *_preparation(scene, pauses)]


def _pauses(view: RankView) -> _Pauses:
    quiet = quiet_time(view)
    long = (quiet.end_ns - quiet.start_ns) >= view.scene.settings.pause_min_ns
    quiet = Intervals(quiet.start_ns[long], quiet.end_ns[long])
    best, other = np.zeros(len(quiet.start_ns), np.bool_), -1
    most = 0
    for track in range(view.graph.n_tracks):
        busy = _foreign(view, track)
        if busy is None or len(busy.start_ns) == 0:
            continue
        share = covered_before(busy, quiet.end_ns) - covered_before(busy, quiet.start_ns)
        covered = share >= _COVERED * (quiet.end_ns - quiet.start_ns) if len(share) else best
        best |= covered
        if int(share[covered].sum()) > most:
            most, other = int(share[covered].sum()), track
    beside = Intervals(quiet.start_ns[best], quiet.end_ns[best])
    return _Pauses(view, Intervals(quiet.start_ns[~best], quiet.end_ns[~best]), beside, other)


def quiet_time(view: RankView, track: int | None = None) -> Intervals:
    """Return when a thread (the main one) ran no operator, call or named activity, waits for threads left out."""
    graph, cover = view.graph, view.graph.cover
    track = view.main if track is None else track
    if len(graph.unit_start_ns) == 0:
        return Intervals.none()
    plain = np.array(
        [
            not call and not any(name.startswith(o) or "::" in name for o in _OPERATORS)
            for name, call in zip(graph.names, view.call, strict=True)
        ]
        + [True],
        np.bool_,
    )
    silent = (cover.object == OBJECT_CODE["host"]) & ~cover.named & plain[cover.name]
    time = graph.covered(track, silent)
    low, high = int(graph.unit_start_ns[0]), int(graph.time_ns.max())
    time = intersect(time, Intervals.single(low, high)) if high > low else Intervals.none()
    edges = graph.edges
    waits = np.flatnonzero(edges.kind == EdgeKind.SILENT)
    waits = waits[(graph.lane[edges.src[waits]] == track) & ~np.isin(edges.dst[waits], _foreign_hand_overs(view)[1])]
    return subtract(time, union(graph.time_ns[edges.src[waits]], graph.time_ns[edges.dst[waits]]))


def _foreign_hand_overs(view: RankView) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """Return the hand-overs from threads of other business, and the points at which the main thread resumes."""
    graph, edges = view.graph, view.graph.edges
    handed = np.flatnonzero(edges.kind == EdgeKind.HAND_OVER)
    lanes = graph.lane[edges.src[handed]]
    others = [int(lane) for lane in np.unique(lanes).tolist() if _foreign(view, int(lane)) is not None]
    mine = handed[np.isin(lanes, others) & (graph.lane[edges.dst[handed]] == view.main)]
    return mine, edges.dst[mine]


def _without_hand_overs(views: Sequence[RankView]) -> Removal:
    """Return a change by which main threads wait no longer for threads of other business."""
    resumed = {view.place: np.unique(_foreign_hand_overs(view)[1]) for view in views}

    def change(draft: Draft) -> None:
        """Let the main thread go on while the other one is busy."""
        for place, points in resumed.items():
            edges = draft.edges_of(place, EdgeKind.HAND_OVER)
            mine = edges[np.isin(draft.local(place, draft.graph.edges.dst[edges]), points)]
            draft.drop(mine)
            draft.rows += len(mine)

    return change


def frozen(view: RankView, pauses: Intervals) -> list[tuple[int, Intervals]]:
    """Return pauses of the main thread, with the silence of the threads that wait for it meanwhile."""
    first = view.graph.host.first
    others = [t for t in range(view.graph.n_tracks) if t != view.main and first[t] < first[t + 1]]
    waiting = [track for track in others if _foreign(view, track) is None]
    return [(view.main, pauses), *((track, intersect(quiet_time(view, track), pauses)) for track in waiting)]


def _foreign(view: RankView, track: int) -> Intervals | None:
    """Return when a thread of other business was busy; None for the main thread and those that compute or move."""
    graph = view.graph
    if track == view.main:
        return None
    rows = slice(int(graph.host.first[track]), int(graph.host.first[track + 1]))
    if rows.start == rows.stop or np.isin(np.arange(rows.start, rows.stop), graph.spans.launch).any():
        return None
    names = np.unique(graph.host.name[rows]).tolist()
    meanings = [view.meaning(code) for code in names]
    # Without a device to launch on, operators of another thread are the work itself.
    operates = not graph.has_device and any("::" in graph.names[code] for code in names)
    if operates or any(meaning.is_collective_op or meaning.backend for meaning in meanings):
        return None  # it works for the main thread, which waits for it
    return union(graph.host.start_ns[rows], graph.host.end_ns[rows])


def _contention(scene: Scene, pauses: list[_Pauses]) -> list[Suspect]:
    struck = [one for one in pauses if len(one.beside.start_ns) and one.other >= 0]
    if not struck:
        return []
    ranks = [one.view.rank for one in struck]
    first = struck[0]
    thread = first.view.graph.lane_names[first.other]
    evidence = [
        Evidence("frozen_ns_per_unit", one.view.mean_ns(one.beside), longest(one.view, one.beside, one.other))
        for one in struck[:4]
    ]
    return [
        Suspect(
            cause="thread_contention",
            ranks=ranks,
            says=f"the main thread stands still while {thread} is busy: {{cost}}{on_ranks(scene, ranks)}",
            evidence=evidence,
            holds_host=True,
            remove=[
                without_time({one.view.place: frozen(one.view, one.beside) for one in struck}),
                _without_hand_overs([one.view for one in struck]),
            ],
            ledger_ns=scene.idle_ns("host.python"),
            grade="inferred",
        )
    ]


def _by_unit(scene: Scene, pauses: list[_Pauses]) -> dict[str, list[int]]:
    """Return, for each steady unit, the ranks whose main thread pauses for long beyond the others' pause."""
    least_ns = scene.settings.finding_min_share * scene.period_ns
    struck: dict[str, list[int]] = {name: [] for name in scene.units}
    by_rank = {
        one.view.rank: dict(zip(one.view.graph.units, one.view.by_unit_ns(one.alone).tolist(), strict=True))
        for one in pauses
    }
    for name in scene.units:
        own = {rank: units.get(name, 0) for rank, units in by_rank.items()}
        usual = sorted(own.values())[(len(own) - 1) // 2] if own else 0
        struck[name] = [rank for rank, ns in own.items() if ns - usual >= least_ns]
    return struck


def _rotating(scene: Scene, pauses: list[_Pauses]) -> list[Suspect]:
    struck = _by_unit(scene, pauses) if len(pauses) > 1 else {}
    ranks = sorted({rank for some in struck.values() for rank in some})
    units = [name for name, some in struck.items() if some]
    if len(ranks) < 2 or len(units) < _TURNS_MIN:
        return []
    if (
        max(sum(rank in some for some in struck.values()) for rank in ranks)
        > scene.settings.sporadic_max_share * len(scene.units) + 0.5
    ):
        return []
    # Only where a rank is struck: what every rank does in every unit is no pause.
    mine = [replace(one, alone=_in_units(one, struck)) for one in pauses if one.view.rank in ranks]
    return [
        Suspect(
            cause="host_pause_rotating",
            ranks=ranks,
            says=f"{listed(ranks)} pause in turn, without any record of why, and the others wait each time: {{cost}}",
            evidence=[
                Evidence(
                    "paused_ns",
                    int((one.alone.end_ns - one.alone.start_ns).max(initial=0)),
                    longest(one.view, one.alone),
                )
                for one in mine[:8]
            ],
            holds_host=True,
            remove=[without_time({one.view.place: frozen(one.view, one.alone) for one in mine})],
            ledger_ns=scene.idle_ns("host.python"),
            units=units,
            grade="ordered",
        )
    ]


def _in_units(one: _Pauses, struck: dict[str, list[int]]) -> Intervals:
    """Return a rank's pauses in the units in which it is struck."""
    graph = one.view.graph
    mine = [u for u, name in enumerate(graph.units) if one.view.rank in struck.get(name, [])]
    ends = np.append(graph.unit_start_ns[1:], graph.time_ns.max() + 1)
    return intersect(one.alone, Intervals(graph.unit_start_ns[mine], ends[mine]))


def _preparation(scene: Scene, pauses: list[_Pauses]) -> list[Suspect]:
    """Suspect what the same few ranks do on their main threads in most units, and the others do not."""
    struck = _by_unit(scene, pauses) if len(pauses) > 1 else {}
    often = {one.view.rank: sum(one.view.rank in some for some in struck.values()) for one in pauses}
    ranks = [rank for rank, n in often.items() if 2 * n > len(scene.units)]
    if not ranks:
        return []
    mine = [one for one in pauses if one.view.rank in ranks]
    names = sorted({longest(one.view, one.alone).name for one in mine} - {""})
    doing = f" ({', '.join(names[:2])})" if names else ""
    return [
        Suspect(
            cause="host_preparation",
            ranks=ranks,
            says=f"{listed(ranks)}: the host prepares for longer than the others'{doing}, and all wait: {{cost}}",
            evidence=[
                Evidence(
                    "preparing_ns_per_unit",
                    one.view.mean_ns(one.alone),
                    longest(one.view, one.alone),
                )
                for one in mine[:4]
            ],
            holds_host=True,
            remove=[without_time({one.view.place: frozen(one.view, one.alone) for one in mine})],
            ledger_ns=max(scene.exposed_ns("host", rank) for rank in ranks),
            grade="ordered",
        )
    ]
