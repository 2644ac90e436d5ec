"""Batches are not ready when they are asked for: always, every n-th unit, or on some ranks only.

main     ├────── loader ──────┤├ launch ┤         ├────── loader ──────┤├ launch ┤
device   ══ last unit ══╗       ══ this unit ══╗
                        ╰ idle ╯               ╰ idle …
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.advice.places import longest
from longpole.advice.removal import without_time
from longpole.advice.stalls import find_stalls, find_uneven
from longpole.advice.suspect import Suspect
from longpole.advice.words import of_ranks
from longpole.records.findings import Evidence
from longpole.timeline.intervals import subtract

if TYPE_CHECKING:
    from longpole.advice.scene import RankView, Scene
    from longpole.advice.stalls import Uneven
    from longpole.timeline.intervals import Intervals

_COPIES: Final = ("copy_input",)
_PREPARING: Final = ("preprocess",)


def find(scene: Scene) -> list[Suspect]:
    """Suspect the loader where input is prepared on the thread that carries the units."""
    times = {view.place: loading(view) for view in scene.views}
    per_unit = {view.place: view.mean_ns(times[view.place]) for view in scene.views}
    least_ns = scene.settings.finding_min_share * scene.period_ns / 2
    if max(per_unit.values(), default=0) < least_ns:
        return []
    uneven = find_uneven(scene, per_unit, least_ns)
    if uneven is not None and _prepares(scene, uneven):
        return [_preparation(scene, times, uneven)]
    places = uneven.places if uneven is not None else [place for place, ns in per_unit.items() if ns >= least_ns]
    views = [scene.views[place] for place in places]
    stalls = find_stalls(scene, views, [times[view.place] for view in views])
    often = f" in {len(stalls.units)} of {len(scene.units)} units{stalls.rhythm}" if stalls.sporadic else ""
    return [
        Suspect(
            cause="data_loader_periodic" if stalls.sporadic else "data_loader",
            ranks=[view.rank for view in views],
            says=f"{of_ranks(scene, views)}data loader: {{cost}} of waiting for input{often}",
            evidence=_evidence(views, times),
            holds_host=True,
            remove=[without_time({view.place: [(view.main, times[view.place])] for view in views})],
            ledger_ns=scene.exposed_ns("input"),
            units=stalls.units if stalls.sporadic else (),
            stage="input",
            what_if=[f"--remove {term}input" for term in _terms(scene, views)],
        )
    ]


def _terms(scene: Scene, views: list[RankView]) -> list[str]:
    """Return what a selector begins with: nothing where all ranks are meant."""
    return [""] if len(views) == len(scene.digests) else [f"rank:{view.rank}&" for view in views]


def _prepares(scene: Scene, uneven: Uneven) -> bool:
    """Tell whether the slow ranks spend most of their input on preparing batches, not on waiting for a loader."""
    spent = prepared = 0
    for place in uneven.places:
        view = scene.views[place]
        spent += view.mean_ns(loading(view))
        prepared += view.mean_ns(view.activity_time(*_PREPARING))
    return 2 * prepared > spent


def loading(view: RankView) -> Intervals:
    """Return the main thread's time in loading and preparing batches, without the copies of finished ones."""
    time, copies = view.of_object("input"), view.under(np.isin(view.activity, _COPIES))
    return subtract(time, copies) if len(copies.start_ns) else time


def _preparation(scene: Scene, times: dict[int, Intervals], uneven: Uneven) -> Suspect:
    views = [scene.views[place] for place in uneven.places]
    left = {view.place: uneven.usual_ns / max(view.mean_ns(times[view.place]), 1) for view in views}
    return Suspect(
        cause="host_preparation",
        ranks=[view.rank for view in views],
        says=f"{of_ranks(scene, views)}batches take longer to prepare than the others', and all ranks wait: {{cost}}",
        evidence=_evidence(views, times),
        holds_host=True,
        remove=[without_time({v.place: [(v.main, times[v.place])] for v in views}, left=left)],
        ledger_ns=max(scene.exposed_ns("input", view.rank) for view in views) - uneven.usual_ns,
        stage="input",
        what_if=[f"--remove rank:{view.rank}&input" for view in views],
    )


def _evidence(views: list[RankView], times: dict[int, Intervals]) -> list[Evidence]:
    return [
        Evidence("loading_ns_per_unit", view.mean_ns(times[view.place]), longest(view, times[view.place]))
        for view in views[:4]
    ]
