"""Replay a run's graph, and say how far the answer may be believed (DESIGN 3.7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np

from longpole.graph.kinds import CONTROL_GROUPS, GRADES, EdgeKind
from longpole.graph.path import UNEXPLAINED, Pieces, path_pieces
from longpole.graph.sweep import sweep
from longpole.graph.walk import walk_back
from longpole.records.ledger import Unknown
from longpole.records.replay import Replay, UnitErrors
from longpole.whatif.composition import Composition, compose

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from longpole.graph.run_graph import RunGraph
    from longpole.settings import Settings

    Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Window:
    """The steady units of a run in its graph.

    Attributes:
        names: Units that have a period, in order.
        place: `[N]` int64: their places among the graph's units.
        before: `[N]` int64: point at whose time each period begins, -1 where it begins with the run (a single unit).
        begin_ns: `[N]` int64 ns: when each period began on the record.
    """

    names: tuple[str, ...]
    place: Ints
    before: Ints
    begin_ns: Ints

    def periods_ns(self, graph: RunGraph, time_ns: Ints) -> Ints:
        """Return the periods on recorded or replayed times: `[N]` int64 ns."""
        done_ns = time_ns[graph.completion[self.place]]
        begin_ns = np.where(self.before >= 0, time_ns[np.maximum(self.before, 0)], self.begin_ns)
        return np.asarray(done_ns - begin_ns)


def find_window(graph: RunGraph, steady: list[str]) -> Window:
    """Find the steady units in a run's graph.

    Args:
        graph: The run.
        steady: Names of the units that have a period and count.
    """
    place = [graph.units.index(name) for name in steady if name in graph.units]
    starts = [
        int(graph.time_ns[int(graph.base[r])] + rank.unit_start_ns[0] - rank.time_ns[0])
        for r, rank in enumerate(graph.ranks)
    ]
    before = [int(graph.completion[u - 1]) if u > 0 else -1 for u in place]
    begin = [int(graph.time_ns[point]) if point >= 0 else min(starts) for point in before]
    return Window(
        tuple(graph.units[u] for u in place), np.array(place, np.int64), np.array(before, np.int64), np.array(begin)
    )


@dataclass(frozen=True, slots=True)
class Replayed:
    """The unchanged replay of a run.

    Attributes:
        window: Its steady units.
        measured_ns: `[N]` int64 ns: recorded periods.
        replayed_ns: `[N]` int64 ns: replayed periods.
        time_ns: `[P]` int64 ns: replayed times.
        observed: The observed path of all steady units.
        path: What the replayed path is made of.
        judgement: How far it may be believed.
        why_refused: Empty where it is not.
    """

    window: Window
    measured_ns: Ints
    replayed_ns: Ints
    time_ns: Ints
    observed: Pieces
    path: Composition
    judgement: Replay
    why_refused: str

    @property
    def error_ns(self) -> int:
        """Return by how much the median replayed period misses the median measured one, without sign."""
        return abs(median_ns(self.replayed_ns) - median_ns(self.measured_ns))


def median_ns(values: Ints) -> int:
    """Return the median, rounded to whole nanoseconds."""
    return round(float(np.median(values)))


def replay(graph: RunGraph, steady: list[str], settings: Settings) -> Replayed | Unknown:
    """Replay a run and compare it with what was recorded.

    Args:
        graph: The run.
        steady: Names of its steady units.
        settings: When a replay is refused, and when it is not tested.

    Returns:
        The replay, or why there is none.
    """
    window = find_window(graph, steady)
    if len(window.place) == 0:
        return Unknown("no steady unit has a period", ["two units of work that all ranks recorded"])
    edges = graph.edges
    time_ns = graph.plan.times_ns(edges.length_ns, graph.floor_ns)
    measured_ns = window.periods_ns(graph, graph.time_ns)
    replayed_ns = window.periods_ns(graph, time_ns)
    steps = walk_back(graph.n_points, edges, graph.time_ns, ends_of(graph, window, graph.time_ns), graph.incoming)
    observed = path_pieces(graph, steps, edges.length_ns, settings)
    replayed = replayed_path(graph, window, time_ns)
    orphans = sum(rank.orphans for rank in graph.ranks)
    judgement, why = judge(measured_ns, replayed_ns, observed, replayed, orphans, settings)
    error = abs(judged_error(measured_ns, replayed_ns))
    judgement = msgspec.structs.replace(judgement, without_effect=_without_effect(graph, window, observed, error))
    return Replayed(window, measured_ns, replayed_ns, time_ns, observed, replayed, judgement, why)


def judged_error(measured_ns: Ints, replayed_ns: Ints) -> float:
    """Return the median replayed period less the median measured one, as a share of the latter."""
    return (median_ns(replayed_ns) - median_ns(measured_ns)) / max(median_ns(measured_ns), 1)


def judge(
    measured_ns: Ints, replayed_ns: Ints, observed: Pieces, path: Composition, orphans: int, settings: Settings
) -> tuple[Replay, str]:
    """Say how far a replay may be believed, but for the control law, and why it is refused; empty where it is not.

    Args:
        measured_ns: `[N]` int64 ns: recorded periods.
        replayed_ns: `[N]` int64 ns: replayed periods.
        observed: The observed path.
        path: What the replayed path is made of.
        orphans: Points without an incoming edge that should have one.
        settings: When a replay is refused, and when it is not tested.
    """
    kept, named = _kept_shares(path)
    total_ns = max(int(observed.dur_ns.sum()), 1)
    error = judged_error(measured_ns, replayed_ns)
    off = np.abs(replayed_ns - measured_ns) / np.maximum(measured_ns, 1)
    unexplained = float(observed.dur_ns[observed.kind == UNEXPLAINED].sum() / total_ns)
    guess = float(observed.dur_ns[_guessed(observed)].sum() / total_ns)
    why = _why_refused(error, unexplained, settings)
    untested = abs(error) < settings.untested_error_share and kept > settings.untested_kept_share
    judgement = Replay(
        error_of_median=error,
        error_units=UnitErrors(float(np.median(off)), float(off.max())),
        kept_share=kept,
        kept_named_share=named,
        unexplained_share=unexplained,
        guess_share=guess,
        orphans=orphans,
        verdict="refused" if why else "not tested" if untested else "usable",
        units=len(measured_ns),
    )
    return judgement, why


def ends_of(graph: RunGraph, window: Window, time_ns: Ints) -> list[tuple[int, int, int]]:
    """Return where walks begin and stop: for each unit its place, its completion point, and the time before it."""
    ends = []
    for place, before, begin_ns in zip(
        window.place.tolist(), window.before.tolist(), window.begin_ns.tolist(), strict=True
    ):
        until_ns = int(time_ns[before]) if before >= 0 else begin_ns
        ends.append((place, int(graph.completion[place]), until_ns))
    return ends


def _guessed(pieces: Pieces) -> NDArray[np.bool_]:
    return (pieces.grade == GRADES.index("guess")) & (pieces.kind != UNEXPLAINED)


def _why_refused(error: float, unexplained: float, settings: Settings) -> str:
    if unexplained > settings.unexplained_max_share:
        return (
            f"{unexplained:.1%} of the path is explained by nothing recorded (at most"
            f" {settings.unexplained_max_share:.0%} may be)"
        )
    if abs(error) > settings.replay_error_max_share:
        return (
            f"the replay of the unchanged run misses its median period by {error:+.1%} (at most"
            f" {settings.replay_error_max_share:.0%} is allowed)"
        )
    return ""


def replayed_path(graph: RunGraph, window: Window, time_ns: Ints) -> Composition:
    """Return what the replayed path of the unchanged run is made of.

    Args:
        graph: The run.
        window: Its steady units.
        time_ns: `[P]` int64 ns: replayed times.
    """
    steps = walk_back(graph.n_points, graph.edges, time_ns, ends_of(graph, window, time_ns), graph.incoming)
    return compose(graph, steps, [])


def _kept_shares(path: Composition) -> tuple[float, float]:
    total_ns = max(float(path.part_ns.sum()), 1.0)
    return float(path.part_ns[path.kept].sum() / total_ns), float(path.part_ns[path.kept & path.named].sum() / total_ns)


def _without_effect(graph: RunGraph, window: Window, observed: Pieces, error: float) -> list[str]:
    """Apply the control law: name the kinds on the path whose removal does not raise the error (DESIGN 3.7)."""
    return without_effect(observed, error, lambda kinds: control_error(graph, window, kinds))


def without_effect(observed: Pieces, error: float, control: Callable[[tuple[EdgeKind, ...]], float]) -> list[str]:
    """Name the kinds of edges on a path whose removal does not raise the error (DESIGN 3.7).

    Args:
        observed: The observed path.
        error: Of the unchanged replay, without sign.
        control: Returns the error once all edges of some kinds are deleted.
    """
    on_path = set(np.unique(observed.kind).tolist())
    groups = [(name, kinds) for name, kinds in CONTROL_GROUPS.items() if on_path & {int(kind) for kind in kinds}]
    return [name for name, kinds in groups if control(kinds) <= error + _NO_MORE]


_NO_MORE = 1e-9


def control_error(graph: RunGraph, window: Window, kinds: tuple[EdgeKind, ...]) -> float:
    """Return the error of the median period once all edges of some kinds are deleted.

    Points left without an edge start with the replay, never at their recorded time.

    Args:
        graph: The run.
        window: Its steady units.
        kinds: What to delete.
    """
    edges = graph.edges
    keep = ~np.isin(edges.kind, kinds)
    floor_ns = graph.floor_ns.copy()
    has_edge = np.zeros(len(floor_ns), np.bool_)
    has_edge[edges.dst[keep]] = True
    had_edge = np.zeros(len(floor_ns), np.bool_)
    had_edge[edges.dst] = True
    floor_ns[had_edge & ~has_edge] = graph.time_ns.min()
    time_ns = sweep(graph.n_points, edges.src[keep], edges.dst[keep], edges.length_ns[keep], floor_ns)
    measured = median_ns(window.periods_ns(graph, graph.time_ns))
    return abs(median_ns(window.periods_ns(graph, time_ns)) - measured) / max(measured, 1)
