"""Predict the period of a changed run, and say where the saving comes from and what holds it up next (DESIGN 3.7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

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

    @property
    def why_refused(self) -> str:
        """Return why the unchanged replay is refused, empty where it is not."""
        return self.replayed.why_refused

    @property
    def replayed_ns(self) -> Ints:
        """Return the unchanged replay's periods: `[N]` int64 ns."""
        return self.replayed.replayed_ns

    def effect(self, changes: Sequence[Change | Callable[[Draft], None]]) -> Effect:
        """Make changes, replay, and return what becomes of the periods."""
        return measure_effect(self, changes)


class Replayable(Protocol):
    """A run that changes can be tried on: joined (`Ground`) or rank by rank (`PartsReplay`)."""

    @property
    def why_refused(self) -> str:
        """Why the unchanged replay is refused, empty where it is not."""

    @property
    def replayed_ns(self) -> Ints:
        """The unchanged replay's periods: `[N]` int64 ns."""

    def effect(self, changes: Sequence[Change | Callable[[Draft], None]]) -> Effect:
        """Make changes, replay, and return what becomes of the periods."""


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
    refused = why_unreached(ground.replayed.why_refused, draft.refusals, rows)
    return effect_of(ground.replayed.replayed_ns, periods_ns, refused)


def effect_of(replayed_ns: Ints, periods_ns: Ints, refused: str) -> Effect:
    """Compare periods with the unchanged replay's.

    Args:
        replayed_ns: `[N]` int64 ns: the unchanged replay's.
        periods_ns: `[N]` int64 ns: those with the changes.
        refused: Why nothing can be said of the changes, empty where something can.
    """
    return Effect(
        periods_ns=periods_ns,
        saving_ns=median_ns(replayed_ns) - median_ns(periods_ns),
        mean_saving_ns=round(float(replayed_ns.mean() - periods_ns.mean())),
        refused=refused,
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
    refused = why_unreached(ground.replayed.why_refused, draft.refusals, rows) or why_too_small(
        ground.replayed.replayed_ns, periods_ns, ground.replayed.error_ns, draft.reaches_completion
    )
    return told(
        Outcome(ground.replayed.replayed_ns, periods_ns, rows, refused),
        ground.replayed.path,
        _changed_path(ground, draft, changed, time_ns),
        [rank.rank for rank in graph.ranks],
        draft.overlapping_ns / draft.altered_ns if draft.altered_ns else None,
    )


class Outcome(NamedTuple):
    """What came of changes.

    Attributes:
        replayed_ns: `[N]` int64 ns: the unchanged replay's periods.
        periods_ns: `[N]` int64 ns: the periods with the changes.
        rows: Rows that each change altered.
        refused: Why the prediction is withheld, empty where it is not.
    """

    replayed_ns: Ints
    periods_ns: Ints
    rows: list[int]
    refused: str


def told(
    outcome: Outcome, before: Composition, after: Composition, ranks: Sequence[int], overlapping_share: float | None
) -> Prediction:
    """Put a prediction together.

    Args:
        outcome: What came of the changes.
        before: What the unchanged replay's path is made of.
        after: What the changed one's is made of.
        ranks: Numbers of the ranks, by their places in both.
        overlapping_share: Share of the altered device time that runs beside other spans, None where none was altered.
    """
    pole, pole_ranks, share = _next_pole(ranks, after)
    n = len(outcome.periods_ns)
    return Prediction(
        predicted_ns=median_ns(outcome.periods_ns),
        predicted_mean_ns=round(float(outcome.periods_ns.mean())),
        replayed_mean_ns=round(float(outcome.replayed_ns.mean())),
        rows=outcome.rows,
        before_ns=_means(before, n),
        after_ns=_means(after, n),
        overlapping_share=overlapping_share,
        pole=pole,
        pole_ranks=pole_ranks,
        pole_share=share,
        refused=outcome.refused,
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
    return compose_changed(draft, changed, walk_back(len(changed.floor_ns), changed.edges, time_ns, ends))


def compose_changed(draft: Draft, changed: Changed, steps: Steps) -> Composition:
    """Say what steps over a changed graph's own edges are made of, added ones included.

    Args:
        draft: The changes.
        changed: What they made of the graph.
        steps: Steps over its edges.
    """
    graph = draft.graph
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


def _next_pole(numbers: Sequence[int], path: Composition) -> tuple[str, list[int], float]:
    """Return the object that most of the waiting on the changed path is for, its ranks, and its share of the path."""
    sums = path.by_object_ns()
    total = max(float(sums.sum()), 1.0)
    waits = {name: float(sums[OBJECT_CODE[name]]) for name in OBJECTS if name not in _NO_WAIT}
    pole = max(waits, key=lambda name: waits[name])
    if waits[pole] < _SMALL * total:
        pole = "compute"
    mine = path.object == OBJECT_CODE[pole]
    by_rank = np.bincount(path.rank[mine & (path.rank >= 0)], path.part_ns[mine & (path.rank >= 0)], len(numbers))
    ranks = [numbers[place] for place in np.flatnonzero(by_rank >= _MAIN * max(by_rank.max(initial=0), 1)).tolist()]
    return pole, ranks, float(sums[OBJECT_CODE[pole]] / total)


_SMALL: Final = 0.05  # REPORT-JSON: waits below 5 % of the period are no long pole
_MAIN: Final = 0.5  # a rank is named where it has at least half of what the foremost one has


def why_too_small(replayed_ns: Ints, periods_ns: Ints, error_ns: int, reaches: Callable[[], bool]) -> str:
    """Return why what changes bring is too small to be told from the replay's error, empty where it is not.

    Args:
        replayed_ns: `[N]` int64 ns: the unchanged replay's periods.
        periods_ns: `[N]` int64 ns: the periods with the changes.
        error_ns: By how much the unchanged replay misses the measured period.
        reaches: Tells whether any changed row leads to the end of a unit.
    """
    saving_ns = abs(median_ns(replayed_ns) - median_ns(periods_ns))
    # Of a stall in fewer than half of the units a median shows nothing; the mean does.
    saving_ns = max(saving_ns, abs(round(float(replayed_ns.mean() - periods_ns.mean()))))
    if saving_ns == 0:
        return "" if reaches() else "no changed row leads to the end of a unit: nothing waits for it"
    if saving_ns < error_ns:
        return (
            f"the change moves the period by {format_ns(saving_ns)}, less than the replay of the unchanged run misses"
            f" it by ({format_ns(error_ns)})"
        )
    return ""


def why_unreached(why_refused: str, refusals: Sequence[str], rows: Sequence[int]) -> str:
    """Return why a replay cannot carry changes at all, empty where it can.

    Args:
        why_refused: Why the unchanged replay is refused, empty where it is not.
        refusals: What the changes said.
        rows: Rows that each change altered.
    """
    if why_refused:
        return why_refused
    if refusals:
        return "; ".join(dict.fromkeys(refusals))
    if rows and not any(rows):
        return "nothing that was recorded fits the change"
    return ""
