"""Predict the period of a changed run, and say where the saving comes from and what holds it up next (DESIGN 3.7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.analyses.name_book import OBJECT_CODE
from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind
from longpole.graph.walk import Steps, walk_back
from longpole.units import format_ns
from longpole.vocabulary.objects import OBJECTS
from longpole.whatif.apply import apply
from longpole.whatif.composition import Composition, compose
from longpole.whatif.draft import Draft
from longpole.whatif.replay import ends_of, median_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from longpole.graph.run_graph import RunGraph
    from longpole.records.instances import Instances
    from longpole.settings import Settings
    from longpole.whatif.change import Change
    from longpole.whatif.draft import Changed, TransferCost
    from longpole.whatif.replay import Replayed

    Ints: TypeAlias = NDArray[np.int64]

_NO_WAIT: Final = ("compute",)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a run would take with changes.

    Attributes:
        predicted_ns: Median period with the changes.
        predicted_mean_ns: Mean period with the changes.
        replayed_mean_ns: Mean period of the unchanged replay.
        rows: Rows that each change altered.
        before_ns: Mean replayed path of a unit by object, unchanged.
        after_ns: The same with the changes.
        overlapping_share: Of the altered device time, what runs beside other spans; None where none was altered.
        pole: Object with the most waiting on the changed path, `compute` where nothing waits.
        pole_ranks: Ranks it lies on.
        pole_share: Its share of the changed path.
        refused: Why the prediction is withheld, empty where it is not.
    """

    predicted_ns: int
    predicted_mean_ns: int
    replayed_mean_ns: int
    rows: list[int]
    before_ns: dict[str, int]
    after_ns: dict[str, int]
    overlapping_share: float | None
    pole: str
    pole_ranks: list[int]
    pole_share: float
    refused: str


@dataclass(frozen=True, slots=True)
class Ground:
    """What predictions of one run stand on.

    Attributes:
        graph: The run.
        replayed: Its unchanged replay.
        instances: Rank -> its collectives.
        cost: What collectives of other sizes would take.
        settings: Thresholds.
    """

    graph: RunGraph
    replayed: Replayed
    instances: Mapping[int, Instances]
    cost: TransferCost
    settings: Settings


@dataclass(frozen=True, slots=True)
class Effect:
    """What changes do to the periods, without what the changed path is made of.

    Attributes:
        periods_ns: `[N]` int64 ns: the steady units' periods with the changes.
        saving_ns: By how much the median period falls.
        mean_saving_ns: By how much the mean falls over units that have a unit before them.
        refused: Why nothing can be said of the changes, empty where something can: however small.
    """

    periods_ns: Ints
    saving_ns: int
    mean_saving_ns: int
    refused: str


def measure_effect(ground: Ground, changes: Sequence[Change | Callable[[Draft], None]]) -> Effect:
    """Make changes, replay, and return what becomes of the periods; `predict` says more, and takes longer.

    Args:
        ground: The run and its replay.
        changes: Made in order and replayed together.
    """
    draft = Draft.of(ground.graph, ground.instances, ground.cost, ground.settings)
    rows = [apply(draft, change) for change in changes]
    time_ns = _keep_beginning(ground, draft.finish()).replay()
    periods_ns = ground.replayed.window.periods_ns(ground.graph, time_ns)
    replayed_ns = ground.replayed.replayed_ns
    return Effect(
        periods_ns=periods_ns,
        saving_ns=median_ns(replayed_ns) - median_ns(periods_ns),
        mean_saving_ns=round(float(replayed_ns.mean() - periods_ns.mean())),
        refused=_why_unreached(ground, draft, rows),
    )


def predict(ground: Ground, changes: Sequence[Change | Callable[[Draft], None]]) -> Prediction:
    """Make changes, replay, and compare with the unchanged replay.

    Args:
        ground: The run and its replay.
        changes: Made in order and replayed together.
    """
    draft = Draft.of(ground.graph, ground.instances, ground.cost, ground.settings)
    rows = [apply(draft, change) for change in changes]
    changed = _keep_beginning(ground, draft.finish())
    time_ns = changed.replay()
    window, graph = ground.replayed.window, ground.graph
    periods_ns = window.periods_ns(graph, time_ns)
    path = _changed_path(ground, draft, changed, time_ns)
    pole, ranks, share = _next_pole(graph, path)
    n = len(periods_ns)
    return Prediction(
        predicted_ns=median_ns(periods_ns),
        predicted_mean_ns=round(float(periods_ns.mean())),
        replayed_mean_ns=round(float(ground.replayed.replayed_ns.mean())),
        rows=rows,
        before_ns=_means(ground.replayed.path, n),
        after_ns=_means(path, n),
        overlapping_share=draft.overlapping_ns / draft.altered_ns if draft.altered_ns else None,
        pole=pole,
        pole_ranks=ranks,
        pole_share=share,
        refused=_why_refused(ground, draft, rows, periods_ns),
    )


def _keep_beginning(ground: Ground, changed: Changed) -> Changed:
    """Let a unit that is alone begin when it did: what is saved in front of it is none of its time."""
    if (ground.replayed.window.before >= 0).all():
        return changed
    floor_ns, points = changed.floor_ns.copy(), ground.graph.beginnings
    floor_ns[points] = np.maximum(floor_ns[points], ground.replayed.time_ns[points])
    return replace(changed, floor_ns=floor_ns)


def _changed_path(ground: Ground, draft: Draft, changed: Changed, time_ns: Ints) -> Composition:
    graph = ground.graph
    ends = ends_of(graph, ground.replayed.window, time_ns)
    if not draft.added:
        edges = Edges(graph.edges.src, graph.edges.dst, graph.edges.kind, draft.length_ns)
        dropped = draft.dropped if draft.dropped.any() else None
        steps = walk_back(graph.n_points, edges, time_ns, ends, graph.incoming, dropped)
        return compose(graph, steps, draft.alterations)
    steps = walk_back(len(changed.floor_ns), changed.edges, time_ns, ends)
    at = np.maximum(steps.edge, 0)
    origin = np.where(steps.edge >= 0, changed.origin[at], -1) if len(changed.origin) else steps.edge
    path = compose(graph, Steps(steps.unit, origin, steps.start_ns, steps.end_ns), draft.alterations)
    added = np.flatnonzero((steps.edge >= 0) & (origin < 0))
    if len(added) == 0:
        return path
    # Steps without a recorded edge come last, in order.
    bare = np.flatnonzero(origin < 0)
    place = len(path.part_ns) - len(bare) + np.searchsorted(bare, added)
    charged = path.object.copy()
    charged[place] = [_object_of(draft, EdgeKind(kind)) for kind in changed.edges.kind[steps.edge[added]].tolist()]
    return Composition(path.unit, path.part_ns, charged, path.rank, path.kept, path.named, path.kind)


def _object_of(draft: Draft, kind: EdgeKind) -> int:
    if kind == EdgeKind.WORKER:
        return OBJECT_CODE[draft.worker_object]
    return OBJECT_CODE["collective" if kind in (EdgeKind.ARRIVAL, EdgeKind.TRANSFER) else "host"]


def _means(path: Composition, n_units: int) -> dict[str, int]:
    sums = path.by_object_ns() / max(n_units, 1)
    return {name: round(float(sums[code])) for name, code in OBJECT_CODE.items() if sums[code] >= 1}


def _next_pole(graph: RunGraph, path: Composition) -> tuple[str, list[int], float]:
    """Return the object that most of the waiting on the changed path is for, its ranks, and its share of the path."""
    sums = path.by_object_ns()
    total = max(float(sums.sum()), 1.0)
    waits = {name: float(sums[OBJECT_CODE[name]]) for name in OBJECTS if name not in _NO_WAIT}
    pole = max(waits, key=lambda name: waits[name])
    if waits[pole] < _SMALL * total:
        pole = "compute"
    mine = path.object == OBJECT_CODE[pole]
    by_rank = np.bincount(path.rank[mine & (path.rank >= 0)], path.part_ns[mine & (path.rank >= 0)], len(graph.ranks))
    ranks = [graph.ranks[place].rank for place in np.flatnonzero(by_rank >= _MAIN * max(by_rank.max(initial=0), 1))]
    return pole, ranks, float(sums[OBJECT_CODE[pole]] / total)


_SMALL: Final = 0.05  # REPORT-JSON: waits below 5 % of the period are no long pole
_MAIN: Final = 0.5  # a rank is named where it has at least half of what the foremost one has


def _why_refused(ground: Ground, draft: Draft, rows: list[int], periods_ns: Ints) -> str:
    unreached = _why_unreached(ground, draft, rows)
    if unreached:
        return unreached
    saving_ns = abs(median_ns(ground.replayed.replayed_ns) - median_ns(periods_ns))
    # Of a stall in fewer than half of the units a median shows nothing; the mean does.
    saving_ns = max(saving_ns, abs(round(float(ground.replayed.replayed_ns.mean() - periods_ns.mean()))))
    if saving_ns == 0:
        return "" if _reaches_completion(draft) else "no changed row leads to the end of a unit: nothing waits for it"
    if saving_ns < ground.replayed.error_ns:
        return (
            f"the change moves the period by {format_ns(saving_ns)}, less than the replay of the unchanged run misses"
            f" it by ({format_ns(ground.replayed.error_ns)})"
        )
    return ""


def _why_unreached(ground: Ground, draft: Draft, rows: list[int]) -> str:
    """Return why the replay cannot carry the changes at all, empty where it can."""
    if ground.replayed.why_refused:
        return ground.replayed.why_refused
    if draft.refusals:
        return "; ".join(dict.fromkeys(draft.refusals))
    if rows and not any(rows):
        return "nothing that was recorded fits the change"
    return ""


def _reaches_completion(draft: Draft) -> bool:
    """Tell whether any altered edge leads to the end of a unit."""
    graph = draft.graph
    return bool(graph.leads_to_completion[graph.edges.dst[draft.touched]].any())
