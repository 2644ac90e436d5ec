"""What the main thread writes while the device waits: logs, what a full queue holds up, and state moved to and fro."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.advice.places import longest, span
from longpole.advice.removal import without_activity, without_spans, without_waits
from longpole.advice.suspect import Suspect
from longpole.advice.words import on_ranks, some_names
from longpole.analyses.name_book import OBJECT_CODE
from longpole.records.findings import Evidence, Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.advice.scene import RankView, Scene
    from longpole.advice.suspect import Removal


@dataclass(frozen=True, slots=True)
class _Sort:
    cause: str
    activities: tuple[str, ...]
    object: str
    says: str
    what_if: str


_SORTS: Final = (
    _Sort(
        "logging",
        ("logging", "token_output"),
        "output",
        "the host writes logs ({names}): {{cost}}",
        "--off-path output",
    ),
    _Sort(
        "backpressure",
        ("output_queue",),
        "output",
        "a full queue of output stalls the host ({names}): {{cost}}",
        "--off-path output",
    ),
    _Sort(
        "offload_exposed",
        ("offload", "onload", "weight_sync"),
        "state",
        "state is moved to and fro in the open ({names}): {{cost}}",
        "--remove state",
    ),
)


def find(scene: Scene) -> list[Suspect]:
    """Suspect logging, back-pressure, and state on the move."""
    return [suspect for sort in _SORTS for suspect in _find(scene, sort)]


def _find(scene: Scene, sort: _Sort) -> list[Suspect]:
    least_ns = scene.settings.finding_min_share * scene.period_ns / 2
    views = [view for view in scene.views if _spent_ns(view, sort) >= least_ns]
    if not views:
        return []
    ranks = [view.rank for view in views]
    names = sorted({name for view in views for name in view.names_where(np.isin(view.activity, sort.activities))})
    names = names or sorted(
        {view.graph.names[int(c)] for view in views for c in view.graph.spans.name[_copies(view, sort)].tolist()}
    )
    remove: list[Removal] = [*without_activity([(view, _time(view, sort)) for view in views])]
    copies = {view.place: _copies(view, sort) for view in views}
    if any(len(rows) for rows in copies.values()):
        calls = {p: scene.views[p].graph.spans.launch[rows] for p, rows in copies.items()}
        remove += [without_waits({p: rows[rows >= 0] for p, rows in calls.items()}), without_spans(copies)]
    return [
        Suspect(
            cause=sort.cause,
            ranks=ranks,
            says=sort.says.format(names=some_names(names)) + on_ranks(scene, ranks),
            evidence=[*(_evidence(view, sort) for view in views[:4]), *_queues(views, sort)],
            remove=remove,
            ledger_ns=max(scene.exposed_ns(sort.object, rank) for rank in ranks),
            what_if=[sort.what_if],
            holds_host=True,
        )
    ]


def _time(view: RankView, sort: _Sort):  # type: ignore[no-untyped-def]
    return view.activity_time(*sort.activities)


def _copies(view: RankView, sort: _Sort) -> np.ndarray:
    """Return the device rows of copies that carry state; what is written has its copies elsewhere."""
    spans = view.graph.spans
    if sort.object != "state":
        return np.empty(0, np.int64)
    return np.flatnonzero(spans.is_copy & (spans.object == OBJECT_CODE["state"])).astype(np.int64)


def _spent_ns(view: RankView, sort: _Sort) -> int:
    rows = _copies(view, sort)
    rows = rows[np.isin(view.graph.spans.unit[rows], view.steady_places)]
    copies_ns = int((view.device_end_ns - view.device_start_ns)[rows].sum()) // max(len(view.steady_places), 1)
    return view.mean_ns(_time(view, sort)) + copies_ns


def _queues(views: Sequence[RankView], sort: _Sort) -> list[Evidence]:
    """Return how full the queues of output were, where the program wrote that down."""
    if sort.cause != "backpressure":
        return []
    return [
        Evidence(f"full_ns of the queue {queue.name} (holds {queue.capacity})", queue.full_ns, Place(view.rank))
        for view in views[:4]
        if view.digest.program is not None
        for queue in view.digest.program.queues
        if queue.capacity and queue.object in ("output", "")
    ]


def _evidence(view: RankView, sort: _Sort) -> Evidence:
    time, rows = _time(view, sort), _copies(view, sort)
    place = longest(view, time) if len(time.start_ns) else span(view, int(rows[0]))
    return Evidence(f"{sort.object}_ns per unit", _spent_ns(view, sort), place)
