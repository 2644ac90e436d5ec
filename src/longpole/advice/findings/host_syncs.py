"""The host waits for the device, and when the wait is over the device has nothing to do until new work comes.

main     ├ launch … ┤├─── read-out: waits ───┤├ python ┤├ launch ┤
device   ══════════ kernels ═══════════════╗              ══ …
                                           ╰── idle: this is what the read-out costs, not its own length
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.advice import places
from longpole.advice.removal import without_waits
from longpole.advice.suspect import Suspect
from longpole.advice.words import on_ranks, some_names
from longpole.analyses.name_book import OBJECT_CODE
from longpole.records.findings import Evidence
from longpole.timeline.intervals import covered_before, unite
from longpole.whatif.selection import BLOCKING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.advice.scene import RankView, Scene

_EVENT: Final = re.compile(r"event_?synchronize|synchronize_?event", re.IGNORECASE)
_OBJECTS: Final = ("input", "artifact", "state", "output", "collective")


@dataclass(frozen=True, slots=True)
class _Calls:
    """Blocking calls of one sort on one rank; `waited` are those that did wait."""

    view: RankView
    rows: NDArray[np.int64]

    @property
    def waited(self) -> NDArray[np.int64]:
        """The calls that waited."""
        return np.intersect1d(self.rows, self.view.graph.blocked)


def find(scene: Scene) -> list[Suspect]:
    """Suspect read-outs, explicit synchronisation, and calls that keep the host from running ahead."""
    sorts: dict[str, list[_Calls]] = {"limiter": [], "readout": [], "explicit": []}
    for view in scene.views:
        for sort, rows in _sorted_calls(view).items():
            calls = _Calls(view, rows)
            if len(calls.waited):
                sorts[sort].append(calls)
    return [_suspect(scene, sort, calls) for sort, calls in sorts.items() if calls]


def _sorted_calls(view: RankView) -> dict[str, NDArray[np.int64]]:
    """Return the blocking calls outside named activities, by sort."""
    graph = view.graph
    rows = _waiting_calls(view)
    host = graph.host
    call = view.call[host.name[rows]] if len(rows) else np.empty(0, object)
    after_readout = _follows_readout(view, rows)
    copies = (call == "copy") & _is_readout_copy(view, rows)
    rows_kept = (call == "sync") | copies
    rows_kept &= ~_inside_activity(view, rows)
    names = [graph.names[int(code)] for code in host.name[rows].tolist()]
    event = np.array([_EVENT.search(name) is not None for name in names], np.bool_)
    readout = copies | after_readout
    return {
        "limiter": rows[rows_kept & event & ~readout],
        "readout": rows[rows_kept & readout],
        "explicit": rows[rows_kept & ~event & ~readout],
    }


def _waiting_calls(view: RankView) -> NDArray[np.int64]:
    """Return the calls that waited for a device, or would have if it had taken longer."""
    edges = view.graph.edges
    kinds = [int(kind) for kind in BLOCKING]
    return np.unique(view.graph.row[edges.dst[np.isin(edges.kind, kinds)]]).astype(np.int64)


def _is_readout_copy(view: RankView, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which calls launched a copy that the ledger charges to the host: a few bytes that are read at once."""
    spans = view.graph.spans
    readouts = spans.launch[spans.is_copy & (spans.object == OBJECT_CODE["host"])]
    return np.isin(rows, readouts[readouts >= 0])


def _follows_readout(view: RankView, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which calls wait for a read-out's copy: the last launch of their thread before them is one."""
    graph = view.graph
    spans, host = graph.spans, graph.host
    launches = np.unique(spans.launch[spans.launch >= 0])
    readouts = set(spans.launch[spans.is_copy & (spans.object == OBJECT_CODE["host"])].tolist())
    found = np.zeros(len(rows), np.bool_)
    for place, row in enumerate(rows.tolist()):
        at = int(np.searchsorted(launches, row)) - 1
        if at >= 0 and host.track[launches[at]] == host.track[row]:
            found[place] = int(launches[at]) in readouts
    return found


def _inside_activity(view: RankView, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which calls lie inside a named activity of an object, or a collection: those keep their waits."""
    host = view.graph.host
    inside = np.zeros(len(rows), np.bool_)
    collecting = np.isin(view.call, ("gc", "alloc", "free"))
    for track in np.unique(host.track[rows]).tolist():
        mine = np.flatnonzero(host.track[rows] == track)
        named = unite(*(view.of_object(name, track) for name in _OBJECTS), view.under(collecting, track))
        begun_ns = host.start_ns[rows[mine]]
        inside[mine] = covered_before(named, begun_ns + 1) > covered_before(named, begun_ns)
    return inside


_SAYS: Final = {
    "limiter": "the host may not run ahead: it waits for the device {n} per unit ({names}), {{cost}} of idle"
    " device behind that{where}",
    "readout": "the host reads the device out {n} per unit ({names}): {{cost}} until new work arrives{where}",
    "explicit": "the host waits for the device {n} per unit ({names}): {{cost}} until new work arrives{where}",
}


def _suspect(scene: Scene, sort: str, calls: list[_Calls]) -> Suspect:
    per_unit = max(_per_unit(one) for one in calls)
    cause = "host_sync"
    if sort == "limiter":
        cause = "host_sync_limiter"
    elif per_unit >= scene.settings.sync_many_per_unit:
        cause = "host_sync_many"
    ranks = [one.view.rank for one in calls]
    names = sorted({one.view.graph.names[int(c)] for one in calls for c in one.view.graph.host.name[one.rows].tolist()})
    often = "once" if round(per_unit, 1) == 1 else f"{per_unit:.3g} times"
    words = {"n": often, "names": some_names(names), "where": on_ranks(scene, ranks)}
    blocked = [Evidence("blocked_ns_per_unit", _blocked_ns(one), places.call(one.view, _longest(one))) for one in calls]
    return Suspect(
        cause=cause,
        ranks=ranks,
        says=_SAYS[sort].format(**words),
        evidence=[
            Evidence("calls per unit", round(per_unit, 3), places.call(calls[0].view, _longest(calls[0]))),
            *blocked[:4],
        ],
        remove=[without_waits({one.view.place: one.rows for one in calls})],
        ledger_ns=scene.idle_ns("host.sync"),
        what_if=[f"--set name:^{re.escape(name)}$=0" for name in names[:3]],
        grade="ordered",
        tier=2,
        holds_host=True,
    )


def _per_unit(calls: _Calls) -> float:
    unit = calls.view.unit_of(calls.view.graph.host.start_ns[calls.waited])
    steady = calls.view.steady_places
    return float(np.isin(unit, steady).sum()) / max(len(steady), 1)


def _blocked_ns(calls: _Calls) -> int:
    host = calls.view.graph.host
    waited = calls.waited
    steady = np.isin(calls.view.unit_of(host.start_ns[waited]), calls.view.steady_places)
    return int((host.end_ns - host.start_ns)[waited[steady]].sum()) // max(len(calls.view.steady_places), 1)


def _longest(calls: _Calls) -> int:
    host = calls.view.graph.host
    return int(calls.waited[np.argmax((host.end_ns - host.start_ns)[calls.waited])])
