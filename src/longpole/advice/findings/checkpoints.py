"""Saving holds the job up: on one rank, on all, or by the shadow that staging throws on later units.

rank 0   ══ step ══├──── save ────┤══ step ══        one rank: the others wait in the next collective
writer                  ├── write, after a staging copy ──┤     staging: units beside it take longer
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.advice.places import longest, span
from longpole.advice.removal import without_activity, without_spans, without_time, without_waits
from longpole.advice.stalls import find_uneven
from longpole.advice.suspect import Suspect
from longpole.advice.words import of_ranks, some_names
from longpole.records.findings import Evidence, Place
from longpole.timeline.intervals import Intervals, covered_before, intersect, unite

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.advice.scene import RankView, Scene

_SAVES: Final = ("checkpoint_save", "write")
_STAGING_MIN: Final = 0.8  # of the time that saving takes: the rest are the calls around
_STAGES: Final = re.compile(
    r"stag|snapshot|async|copy_state_dict|offload_state_dict|state[ _]dict|to_cpu", re.IGNORECASE
)


def find(scene: Scene) -> list[Suspect]:
    """Suspect saving on the main threads, and writers that slow the units beside them."""
    staged = _staged(scene)
    # A main thread that waits for staging by name waits for those copies: they say more, and their removal holds both.
    on_main = [suspect for suspect in _on_main(scene) if not staged or suspect.cause != "checkpoint_staging"]
    return [*on_main, *staged, *_shadow(scene)]


def _on_main(scene: Scene) -> list[Suspect]:
    times = {view.place: saving(view) for view in scene.views}
    per_unit = {view.place: view.mean_ns(times[view.place]) for view in scene.views}
    least_ns = scene.settings.finding_min_share * scene.period_ns / 2
    if max(per_unit.values(), default=0) < least_ns:
        return []
    uneven = find_uneven(scene, per_unit, least_ns)
    places = uneven.places if uneven is not None else [p for p, ns in per_unit.items() if ns >= least_ns]
    views = [scene.views[place] for place in places]
    names = sorted({name for view in views for name in view.names_where(np.isin(view.activity, _SAVES))})
    if uneven is not None:
        cause, how = "checkpoint_on_one_rank", "saves while the others wait"
    elif _is_staging(views, times):
        cause, how = "checkpoint_staging", "state is staged for saving before the next unit begins"
    else:
        cause, how = "checkpoint_blocking", "nothing runs while it saves"
    units = sorted({name for view in views for name in _units(view, times[view.place])}, key=scene.units.index)
    who = of_ranks(scene, views)
    what = "checkpoint" if any(view.names_where(view.activity == "checkpoint_save") for view in views) else "writing"
    return [
        Suspect(
            cause=cause,
            ranks=[view.rank for view in views],
            says=f"{who}{what} ({some_names(names)}): {{cost}}; {how}, in {len(units)} of {len(scene.units)} units",
            evidence=[
                Evidence("saving_ns_per_unit", per_unit[view.place], longest(view, times[view.place]))
                for view in views[:4]
            ],
            holds_host=True,
            remove=without_activity([(view, times[view.place]) for view in views]),
            ledger_ns=max(scene.exposed_ns("output", view.rank) for view in views),
            units=units,
            what_if=["--off-path output"],
        )
    ]


def _is_staging(views: list[RankView], times: dict[int, Intervals]) -> bool:
    """Tell whether nearly all of the saving is staging, by the names inside it, whatever the call around it is."""
    spent_ns = staging_ns = 0
    for view in views:
        chosen = np.isin(view.activity, _SAVES)
        chosen &= np.array([_STAGES.search(name) is not None for name in view.graph.names], np.bool_)
        spent_ns += times[view.place].total_ns()
        staging_ns += intersect(times[view.place], view.under(chosen)).total_ns()
    return staging_ns >= _STAGING_MIN * spent_ns


def saving(view: RankView) -> Intervals:
    """Return the main thread's time in saving."""
    return view.activity_time(*_SAVES)


def _units(view: RankView, time: Intervals) -> list[str]:
    inside = view.by_unit_ns(time)
    wanted = set(view.scene.units)
    return [name for name, ns in zip(view.graph.units, inside.tolist(), strict=True) if ns > 0 and name in wanted]


def _staged(scene: Scene) -> list[Suspect]:
    """Suspect the staging copies of writers' threads, for which later units wait."""
    copies = {view.place: _staging_copies(view) for view in scene.views}
    views = [view for view in scene.views if len(copies[view.place])]
    if not views:
        return []
    behind = {view.place: _with_main(view) for view in views}
    waits = {v.place: v.graph.spans.launch[copies[v.place]] for v in views}
    first = views[0]
    dur_ns = {v.place: int((v.device_end_ns - v.device_start_ns)[copies[v.place]].sum()) for v in views}
    units = sorted({int(u) for v in views for u in v.graph.spans.unit[copies[v.place]].tolist() if u >= 0})
    return [
        Suspect(
            cause="checkpoint_staging",
            ranks=[view.rank for view in views],
            says="copies that stage a checkpoint are not done when later units need what they hold: {cost} on average",
            evidence=[
                Evidence("copied_ns in all", dur_ns[view.place], span(view, int(copies[view.place][0])))
                for view in views[:4]
            ],
            holds_host=True,
            remove=[
                without_time(
                    {place: [pair for pair in threads if len(pair[1].start_ns)] for place, threads in behind.items()}
                ),
                without_waits({place: rows[rows >= 0] for place, rows in waits.items()}),
                without_spans(copies),
            ],
            ledger_ns=max(dur_ns.values()) // max(len(scene.units), 1),
            units=[first.graph.units[u] for u in units if first.graph.units[u] in scene.units],
            grade="inferred",
        )
    ]


def _with_main(view: RankView) -> list[tuple[int, Intervals]]:
    """Return the time in which other threads save, and that in which the main one saves, or waits for it, meanwhile."""
    tracks = [track for track in range(view.graph.n_tracks) if track != view.main]
    behind = [(track, view.activity_time(*_SAVES, track=track)) for track in tracks]
    return [*behind, (view.main, intersect(saving(view), unite(*(time for _, time in behind))))]


def _staging_copies(view: RankView) -> NDArray[np.int64]:
    """Return the device rows of copies that threads other than the main one launched while they saved."""
    spans, host = view.graph.spans, view.graph.host
    rows = np.flatnonzero(spans.is_copy & (spans.launch >= 0))
    rows = rows[host.track[spans.launch[rows]] != view.main]
    inside = np.zeros(len(rows), np.bool_)
    for track in np.unique(host.track[spans.launch[rows]]).tolist():
        mine = np.flatnonzero(host.track[spans.launch[rows]] == track)
        time, begun_ns = view.activity_time(*_SAVES, track=track), host.start_ns[spans.launch[rows[mine]]]
        inside[mine] = covered_before(time, begun_ns + 1) > covered_before(time, begun_ns)
    return rows[inside].astype(np.int64)


def _shadow(scene: Scene) -> list[Suspect]:
    """Compare the units beside which a writer works in the background with the others: no replay reaches contention."""
    busy = {view.place: _behind(view) for view in scene.views}
    beside: set[str] = set()
    for view in scene.views:
        covered = view.by_unit_ns(busy[view.place])
        main = view.by_unit_ns(saving(view))
        for place, name in enumerate(view.graph.units):
            if covered[place] > scene.settings.pause_min_ns and main[place] == 0:
                beside.add(name)
    periods = scene.steady.periods
    quiet = [ns for name, ns in periods.items() if name not in beside]
    shadowed = [name for name in periods if name in beside]
    if not shadowed or len(quiet) < 2:
        return []
    usual_ns = sorted(quiet)[(len(quiet) - 1) // 2]
    excess_ns = sum(max(periods[name] - usual_ns, 0) for name in shadowed)
    per_unit_ns = excess_ns // max(len(periods), 1)
    views = [view for view in scene.views if len(busy[view.place].start_ns)]
    return [
        Suspect(
            cause="checkpoint_staging",
            ranks=[view.rank for view in views],
            says="a checkpoint written in the background slows the units beside it: {cost} on average",
            evidence=[
                Evidence("period_ns beside a writer, median", _median([periods[n] for n in shadowed]), Place()),
                Evidence("period_ns otherwise, median", usual_ns, Place()),
            ],
            ledger_ns=per_unit_ns,
            units=shadowed,
            grade="inferred",
        )
    ]


def _behind(view: RankView) -> Intervals:
    """Return when other threads save, and when copies that saving launched run."""
    chosen = np.isin(view.activity, _SAVES)
    threads = [view.under(chosen, track) for track in range(view.graph.n_tracks) if track != view.main]
    spans = view.graph.spans
    rows = np.flatnonzero(spans.is_copy & (spans.launch >= 0))
    if len(rows):
        launch_ns = view.graph.host.start_ns[spans.launch[rows]]
        main = saving(view)
        mine = rows[covered_before(main, launch_ns + 1) > covered_before(main, launch_ns)]
        if len(mine):
            order = np.argsort(view.device_start_ns[mine])
            threads.append(Intervals(view.device_start_ns[mine][order], view.device_end_ns[mine][order]))
    return unite(*threads) if threads else Intervals.none()


def _median(values: list[int]) -> int:
    return sorted(values)[(len(values) - 1) // 2]
