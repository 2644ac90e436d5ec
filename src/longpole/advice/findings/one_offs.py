"""What marked units paid once: creating communicators, searching algorithms, compiling, loading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.advice.places import longest
from longpole.advice.removal import without_time
from longpole.advice.suspect import Suspect
from longpole.advice.words import on_ranks
from longpole.analyses.one_offs import captures
from longpole.digest.steady import real_units
from longpole.records.findings import Evidence, Place
from longpole.timeline.intervals import Intervals, unite

if TYPE_CHECKING:
    from longpole.advice.scene import RankView, Scene

_SAYS: Final = {
    "communicator_setup": "creating communicators takes {cost}, in the first units only",
    "per_shape_search": "each new input shape starts a search for the best algorithm: {cost}",
    "recompilation": "something is compiled or captured again and again: {cost}",
    "cold_start": "the first units load and compile: {cost}",
}


def find(scene: Scene) -> list[Suspect]:
    """Suspect what the digests marked as paid once, by how much longer the marked units took than the others."""
    marked: dict[str, dict[str, list[int]]] = {}
    out = {(name, why) for name, why, _ in scene.steady.left_out}
    first = {real_units(d.rows[0].units)[0].name for d in scene.digests if real_units(d.rows[0].units)}
    for digest in scene.digests:
        for unit in real_units(digest.rows[0].units):
            if unit.one_off and (unit.name, unit.one_off) in out:
                marked.setdefault(unit.one_off, {}).setdefault(unit.name, []).append(digest.rank)
    found = _recurring(scene)
    for why, units in marked.items():
        cause = why
        if why == "compilation":
            cause = "cold_start" if set(units) <= first else "recompilation"
        ranks = sorted({rank for some in units.values() for rank in some})
        once_ns = sum(_excess_ns(scene, why, name) for name in units)
        names = [name for name in scene.steady.completion if name in units]
        evidence = [
            Evidence("excess_ns", _excess_ns(scene, why, name), Place(units[name][0], unit=name)) for name in names[:8]
        ]
        found.append(
            Suspect(
                cause=cause,
                ranks=ranks,
                says=_SAYS[cause] + on_ranks(scene, ranks),
                evidence=evidence,
                units=names,
                once_ns=once_ns,
            )
        )
    return found


def _recurring(scene: Scene) -> list[Suspect]:
    """Suspect compiling and capturing that most units pay for."""
    times = {view.place: unite(view.under(view.call == "compile"), _capturing(view)) for view in scene.views}
    least_ns = scene.settings.finding_min_share * scene.period_ns / 2
    views = [view for view in scene.views if view.mean_ns(times[view.place]) >= least_ns]
    if not views:
        return []
    ranks = [view.rank for view in views]
    return [
        Suspect(
            cause="recompilation",
            ranks=ranks,
            says=_SAYS["recompilation"] + on_ranks(scene, ranks),
            evidence=[
                Evidence("compiling_ns_per_unit", view.mean_ns(times[view.place]), longest(view, times[view.place]))
                for view in views[:4]
            ],
            remove=[without_time({view.place: [(view.main, times[view.place])] for view in views})],
            ledger_ns=scene.idle_ns("host.compile"),
            holds_host=True,
        )
    ]


def _capturing(view: RankView) -> Intervals:
    """Return when a main thread captured graphs."""
    host = view.graph.host
    if view.main < 0:
        return Intervals.none()
    rows = slice(int(host.first[view.main]), int(host.first[view.main + 1]))
    return captures(view.graph.names, host.name[rows], host.start_ns[rows], host.end_ns[rows])


def _excess_ns(scene: Scene, why: str, name: str) -> int:
    """Return how much longer a marked unit took than the median steady one, at most what its one-off took."""
    took_ns = max(
        (u.one_off_ns for d in scene.digests for u in d.rows[0].units if u.name == name and u.one_off == why), default=0
    )
    period_ns = _period_ns(scene, name)
    excess_ns = period_ns - scene.period_ns if period_ns is not None else took_ns
    return max(min(took_ns, excess_ns), 0)


def _period_ns(scene: Scene, name: str) -> int | None:
    """Return the run's own period of any unit; of the first one from its start."""
    names = list(scene.steady.completion)
    if name not in names:
        return None
    place = names.index(name)
    if place > 0:
        return scene.steady.completion[name] - scene.steady.completion[names[place - 1]]
    starts = [scene.steady.at(d.rank, u.start_ns) for d in scene.digests for u in d.rows[0].units if u.name == name]
    return scene.steady.completion[name] - min(starts) if starts else None
