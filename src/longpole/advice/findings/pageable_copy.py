"""Copies between the device and pageable memory: the call returns when the copy is done, whatever was asked for.

main     ├── cudaMemcpyAsync (waits) ──┤├ launch ┤
device     ══ Memcpy (Pageable -> Device) ══  ══ kernels
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.advice import places
from longpole.advice.removal import without_spans, without_waits
from longpole.advice.suspect import Suspect
from longpole.advice.words import on_ranks
from longpole.analyses.name_book import OBJECT_CODE
from longpole.records.findings import Evidence
from longpole.timeline.intervals import covered_before, unite

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.advice.scene import RankView, Scene

_NAMED: Final = ("output", "state", "artifact")
_AS_LONG: Final = 0.8  # a call that takes this share of its copy, or more, waited for it


def find(scene: Scene) -> list[Suspect]:
    """Suspect copies from and to pageable memory outside saving, logging and off-loading."""
    rows = {view.place: copies(view) for view in scene.views}
    rows = {place: mine for place, mine in rows.items() if len(mine)}
    if not rows:
        return []
    views = [scene.views[place] for place in rows]
    calls = {place: scene.views[place].graph.spans.launch[mine] for place, mine in rows.items()}
    calls = {place: mine[mine >= 0] for place, mine in calls.items()}
    behind = {place: _waited_after(scene.views[place], mine) for place, mine in calls.items()}
    waits = {place: np.union1d(mine, behind[place][behind[place] >= 0]) for place, mine in calls.items()}
    ranks = [view.rank for view in views]
    n = sum(len(mine) for mine in rows.values()) / max(sum(len(view.graph.units) for view in views), 1)
    evidence = []
    for view in views[:4]:
        mine = rows[view.place]
        dur_ns = view.device_end_ns[mine] - view.device_start_ns[mine]
        evidence.append(Evidence("copy_ns, longest", int(dur_ns.max()), places.span(view, int(mine[dur_ns.argmax()]))))
    return [
        Suspect(
            cause="pageable_copy",
            ranks=ranks,
            says=f"{n:.3g} copies per unit use pageable memory, so the host waits for each: {{cost}}"
            f"{on_ranks(scene, ranks)}",
            evidence=evidence,
            remove=[without_waits(waits), without_spans(rows)],
            ledger_ns=scene.exposed_ns("input"),
            stage="input",
            what_if=["--async-copy", "--set name:Pageable=0"],
        )
    ]


def copies(view: RankView) -> NDArray[np.int64]:
    """Return the device rows of copies that pageable memory makes the host wait for."""
    graph = view.graph
    spans, host = graph.spans, graph.host
    mine = np.flatnonzero(spans.is_copy & (spans.object != OBJECT_CODE["host"]) & (spans.launch >= 0))
    if len(mine) == 0:
        return mine.astype(np.int64)
    meanings = {int(code): view.scene.vocabulary.copy(graph.names[int(code)]) for code in np.unique(spans.name[mine])}
    pageable = np.array([meanings[code].pageable is True for code in spans.name[mine].tolist()], np.bool_)
    unsaid = np.array(
        [
            meanings[code].pageable is None and meanings[code].direction in ("htod", "dtoh")
            for code in spans.name[mine].tolist()
        ],
        np.bool_,
    )
    launch = spans.launch[mine]
    dur_ns = view.device_end_ns[mine] - view.device_start_ns[mine]
    call_ns = (host.end_ns - host.start_ns)[launch]
    waited = (call_ns >= _AS_LONG * dur_ns) & (call_ns > view.scene.settings.blocking_copy_min_ns)
    # PyTorch waits for the stream right behind a copy that is to block; from the device that is a read-out.
    to_device = np.array([meanings[code].direction == "htod" for code in spans.name[mine].tolist()], np.bool_)
    waited |= pageable & to_device & (_waited_after(view, launch) >= 0)
    chosen = waited & (pageable | unsaid) & ~_inside_activity(view, launch)
    return mine[chosen].astype(np.int64)


def _waited_after(view: RankView, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the call by which each copy's thread waited before it launched anything else; -1 for none."""
    graph = view.graph
    host, blocked = graph.host, np.sort(graph.blocked)
    launches = np.unique(graph.spans.launch[graph.spans.launch >= 0])
    found = np.full(len(rows), -1, np.int64)
    if len(blocked) == 0:
        return found
    at = np.searchsorted(blocked, rows, side="right")
    after = blocked[np.minimum(at, len(blocked) - 1)]
    place = np.searchsorted(launches, rows, side="right")
    same = (at < len(blocked)) & (host.track[after] == host.track[rows])
    none_between = np.searchsorted(launches, after, side="left") == place
    good = same & none_between
    found[good] = after[good]
    return found


def _inside_activity(view: RankView, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    host = view.graph.host
    inside = np.zeros(len(rows), np.bool_)
    for track in np.unique(host.track[rows]).tolist():
        mine = np.flatnonzero(host.track[rows] == track)
        named = unite(*(view.of_object(name, track) for name in _NAMED))
        begun_ns = host.start_ns[rows[mine]]
        inside[mine] = covered_before(named, begun_ns + 1) > covered_before(named, begun_ns)
    return inside
