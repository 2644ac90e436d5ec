"""Garbage is collected, memory is given back and taken again while the device waits.

main     ├── gc.collect() ──┤├ cudaFree ┤ … ├ cudaFree ┤├ launch ┤   next unit: ├ cudaMalloc ┤ …
device   idle ─────────────────────────────────────────╯
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.advice.places import longest
from longpole.advice.removal import without_time
from longpole.advice.suspect import Suspect
from longpole.advice.words import on_ranks
from longpole.records.findings import Evidence
from longpole.timeline.intervals import Intervals, intersect, subtract, unite

if TYPE_CHECKING:
    from longpole.advice.scene import RankView, Scene

_ALLOCATING: Final = ("alloc", "free")
_NEXT_NS: Final = 50_000  # our choice: calls of one run follow each other within this
_COUNTS: Final = 0.1  # of what is spent: less of the one beside the other is the other's business


@dataclass(frozen=True, slots=True)
class _Spent:
    """What one rank's threads spend per rank on collecting and on the allocator."""

    view: RankView
    collecting: list[tuple[int, Intervals]]
    allocating: list[tuple[int, Intervals]]

    def ns(self, times: list[tuple[int, Intervals]]) -> int:
        """Return the mean per steady unit."""
        return sum(self.view.mean_ns(time) for _, time in times)


def find(scene: Scene) -> list[Suspect]:
    """Suspect garbage collection, emptying the cache, and an allocator that must give back and ask again."""
    spent = [_spent(view) for view in scene.views]
    least_ns = scene.settings.finding_min_share * scene.period_ns / 4
    gc = [one for one in spent if one.ns(one.collecting) >= least_ns]
    alloc = [one for one in spent if one.ns(one.allocating) >= least_ns]
    if gc and alloc and _together(gc, alloc):
        return [_both(scene, gc, alloc)]
    emptied = [one for one in alloc if _empties(one.view)]
    if emptied:
        return [_both(scene, [], alloc), *([_collections(scene, gc)] if gc else [])]
    return [*([_collections(scene, gc)] if gc else []), *([_retries(scene, alloc)] if alloc else [])]


def _spent(view: RankView) -> _Spent:
    collecting, allocating = [], []
    for track in range(view.graph.n_tracks):
        if view.graph.host.first[track] == view.graph.host.first[track + 1]:
            continue
        gc = view.under(view.call == "gc", track)
        calls = view.under(np.isin(view.call, _ALLOCATING), track)
        if len(gc.start_ns):
            collecting.append((track, gc))
        if len(calls.start_ns):
            allocating.append((track, subtract(_runs(view, track, calls), gc)))
    return _Spent(view, collecting, allocating)


def _runs(view: RankView, track: int, calls: Intervals) -> Intervals:
    """Join calls that follow each other closely with nothing recorded in between: the gaps go with the calls."""
    near = calls.start_ns[1:] - calls.end_ns[:-1] <= _NEXT_NS
    gaps = Intervals(calls.end_ns[:-1][near], calls.start_ns[1:][near])
    rest = view.under(~np.isin(view.call, _ALLOCATING) & (view.call != ""), track)
    gaps = subtract(gaps, intersect(gaps, rest))
    return unite(calls, gaps)


def _together(gc: list[_Spent], alloc: list[_Spent]) -> bool:
    both = {one.view.place for one in gc} & {one.view.place for one in alloc}
    if not both:
        return False
    gc_ns = max(one.ns(one.collecting) for one in gc)
    alloc_ns = max(one.ns(one.allocating) for one in alloc)
    return min(gc_ns, alloc_ns) >= _COUNTS * max(gc_ns, alloc_ns)


def _empties(view: RankView) -> bool:
    return any("empty_cache" in name or "emptyCache" in name for name in view.names_where(view.call == "free"))


def _collections(scene: Scene, spent: list[_Spent]) -> Suspect:
    ranks = [one.view.rank for one in spent]
    return Suspect(
        cause="gc",
        ranks=ranks,
        says=f"garbage collection stops the host: {{cost}}{on_ranks(scene, ranks)}",
        evidence=[_evidence("collecting_ns_per_unit", one, one.collecting) for one in spent[:4]],
        holds_host=True,
        remove=[without_time({one.view.place: one.collecting for one in spent})],
        ledger_ns=scene.idle_ns("host.gc"),
        what_if=["--set name:collect=0"],
    )


def _both(scene: Scene, gc: list[_Spent], alloc: list[_Spent]) -> Suspect:
    times: dict[int, list[tuple[int, Intervals]]] = {}
    for one in gc:
        times.setdefault(one.view.place, []).extend(one.collecting)
    for one in alloc:
        times.setdefault(one.view.place, []).extend(one.allocating)
    ranks = [scene.views[place].rank for place in times]
    what = "garbage is collected and the cache emptied" if gc else "the allocator's cache is emptied"
    return Suspect(
        cause="gc_and_empty_cache",
        ranks=ranks,
        says=f"{what}, and memory must be asked for again: {{cost}}{on_ranks(scene, ranks)}",
        evidence=[
            *(_evidence("collecting_ns_per_unit", one, one.collecting) for one in gc[:2]),
            *(_evidence("allocating_ns_per_unit", one, one.allocating) for one in alloc[:2]),
        ],
        holds_host=True,
        remove=[without_time(times)],
        ledger_ns=scene.idle_ns("host.gc") + scene.idle_ns("host.alloc"),
        what_if=["--set name:collect=0", "--set name:empty_cache=0", "--set name:Malloc=0"],
        tier=1,
    )


def _retries(scene: Scene, spent: list[_Spent]) -> Suspect:
    ranks = [one.view.rank for one in spent]
    return Suspect(
        cause="allocator_retries",
        ranks=ranks,
        says=f"the allocator gives memory back and asks for it again in every unit: {{cost}}{on_ranks(scene, ranks)}",
        evidence=[_evidence("allocating_ns_per_unit", one, one.allocating) for one in spent[:4]],
        holds_host=True,
        remove=[without_time({one.view.place: one.allocating for one in spent})],
        ledger_ns=scene.idle_ns("host.alloc"),
        what_if=["--set name:Malloc=0", "--set name:Free=0"],
        tier=1,
    )


def _evidence(what: str, one: _Spent, times: list[tuple[int, Intervals]]) -> Evidence:
    track, time = max(times, key=lambda pair: pair[1].total_ns())
    return Evidence(what, one.ns(times), longest(one.view, time, track))
