"""What rules look at: one run's digests, cross-rank tables and graph, and the meanings of the names in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from longpole.analyses.name_book import OBJECT_CODE
from longpole.digest.steady import real_units
from longpole.timeline.intervals import Intervals, covered_before
from longpole.vocabulary.declared import declared_meaning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longpole.digest.across import Across
    from longpole.digest.rank_digest import RankDigest, RowDigest, UnitDigest
    from longpole.digest.steady import Steady
    from longpole.graph.rank_graph import RankGraph
    from longpole.graph.run_graph import RunGraph
    from longpole.records.collectives import CollectiveEntry, LinkRow, OverlapEntry, PipelineEntry, StragglerEntry
    from longpole.records.instances import Instances
    from longpole.settings import Settings
    from longpole.vocabulary.matcher import Vocabulary
    from longpole.vocabulary.meanings import HostMeaning
    from longpole.whatif.predict import Ground

    Flags: TypeAlias = NDArray[np.bool_]
    Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tables:
    """What the report says of the ranks together."""

    collectives: Sequence[CollectiveEntry] = ()
    stragglers: Sequence[StragglerEntry] = ()
    links: Sequence[LinkRow] = ()
    pipeline: Sequence[PipelineEntry] = ()
    overlap: Sequence[OverlapEntry] = ()


@dataclass(frozen=True)
class Scene:
    """One run as rules see it.

    Attributes:
        digests: The ranks, ascending.
        steady: Their units.
        across: Their collectives, None where a rank is alone and holds none.
        tables: What the report says of the ranks together.
        ground: The graph with its unchanged replay, None where there is none.
        settings: Thresholds.
        vocabulary: What names mean.
        kept: What was computed once for several rules.
    """

    digests: list[RankDigest]
    steady: Steady
    across: Across | None
    tables: Tables
    ground: Ground | None
    settings: Settings
    vocabulary: Vocabulary
    kept: dict[str, Any] = field(default_factory=dict, repr=False)
    _meanings: dict[str, HostMeaning] = field(default_factory=dict, repr=False)

    @property
    def graph(self) -> RunGraph | None:
        """The run's graph, None where there is none."""
        return self.ground.graph if self.ground is not None else None

    @cached_property
    def views(self) -> list[RankView]:
        """The ranks' graphs with the meanings of their names; empty where there is no graph."""
        if self.ground is None:
            return []
        graph = self.ground.graph
        by_rank = {digest.rank: digest for digest in self.digests}
        return [RankView(self, place, rank, by_rank[rank.rank]) for place, rank in enumerate(graph.ranks)]

    @cached_property
    def view_of(self) -> dict[int, RankView]:
        """The same by rank."""
        return {view.rank: view for view in self.views}

    @cached_property
    def units(self) -> list[str]:
        """Names of the steady units that have a period, in order."""
        if self.ground is not None:
            return list(self.ground.replayed.window.names)
        return list(self.steady.periods)

    @cached_property
    def period_ns(self) -> int:
        """Median period of the steady units, else their mean length, at least 1."""
        periods = sorted(self.steady.periods.values())
        if periods:
            return max((periods[(len(periods) - 1) // 2] + periods[len(periods) // 2]) // 2, 1)
        walls = [u.ledger.wall_ns for d in self.digests for u in real_units(d.rows[0].units)]
        return max(sum(walls) // max(len(walls), 1), 1)

    @cached_property
    def mean_period_ns(self) -> int:
        """Mean period of the steady units, else the median one."""
        periods = list(self.steady.periods.values())
        return max(sum(periods) // len(periods), 1) if periods else self.period_ns

    @property
    def withheld(self) -> str:
        """Why no bottleneck can be named, empty where one can."""
        withheld = next((digest.withheld for digest in self.digests if digest.withheld), "")
        return withheld or next((why for why in map(self._lost, self.digests) if why), "")

    def _lost(self, digest: RankDigest) -> str:
        """Return why too much of a rank's record is lost, empty where it is not."""
        units = real_units(digest.rows[0].units)
        lost = [unit for unit in units if unit.incomplete]
        if len(lost) <= self.settings.incomplete_max_share * len(units):
            return ""
        return f"device spans are missing from {len(lost)} of {len(units)} units of rank {digest.rank}"

    def meaning(self, name: str) -> HostMeaning:
        """Return what a host name means."""
        if name not in self._meanings:
            self._meanings[name] = self.vocabulary.host(name)
        return self._meanings[name]

    def counted(self, row: RowDigest) -> list[UnitDigest]:
        """Return the units of a row that means count; all of them where none is steady."""
        out = {name for name, _, _ in self.steady.left_out}
        real = [unit for unit in real_units(row.units) if unit.name not in self.steady.moved]
        return [unit for unit in real if unit.name not in out] or real

    def idle_ns(self, reason: str) -> int:
        """Return the idle time for one reason: mean per counted unit, mean over rows, in ns."""
        rows = [row for digest in self.digests for row in digest.rows]
        means = [sum(u.ledger.idle_ns[reason] for u in self.counted(r)) // max(len(self.counted(r)), 1) for r in rows]
        return sum(means) // max(len(means), 1)

    def exposed_ns(self, name: str, rank: int | None = None) -> int:
        """Return the exposed time of an object: mean per counted unit, mean over rows (of one rank), in ns."""
        rows = [row for digest in self.digests for row in digest.rows if rank in (None, digest.rank)]
        means = []
        for row in rows:
            units = self.counted(row)
            means.append(sum(u.ledger.objects[name].exposed_ns for u in units) // max(len(units), 1))
        return sum(means) // max(len(means), 1)


class RankView:
    """One rank's graph, with the meanings of its names.

    Attributes:
        place: Its place in the run's graph.
        rank: Its number.
        graph: Its graph.
        digest: Its digest.
        activity: `[names]` object array: the activity that a host name is, empty for none.
        call: `[names]` object array: the call that a host name is, empty for none.
        object: `[names]` int8: code into OBJECTS of the activity, -1 for none.
    """

    def __init__(self, scene: Scene, place: int, graph: RankGraph, digest: RankDigest) -> None:
        """Look the names up."""
        self.scene, self.place, self.graph, self.digest, self.rank = scene, place, graph, digest, graph.rank
        n = len(graph.names)
        self.activity = np.full(n, "", object)
        self.call = np.full(n, "", object)
        self.object = np.full(n, -1, np.int8)
        for code in np.unique(graph.host.name).tolist():
            meaning = self.meaning(code)
            self.activity[code], self.call[code] = meaning.activity, meaning.call
            self.object[code] = OBJECT_CODE.get(meaning.object, -1)
        run = scene.graph
        first = int(run.base[place]) if run is not None else 0
        self.offset_ns = int(run.time_ns[first] - graph.time_ns[0]) if run is not None and len(graph.time_ns) else 0

    @property
    def main(self) -> int:
        """The thread that carries the units, -1 for none."""
        return self.graph.main_track

    def meaning(self, code: int) -> HostMeaning:
        """Return what one of its host names means."""
        said = self.graph.said.get(code)
        if said is None:
            return self.scene.meaning(self.graph.names[code])
        return declared_meaning(self.scene.vocabulary, self.graph.names[code], said)

    def names_where(self, chosen: Sequence[bool] | Flags) -> list[str]:
        """Return the chosen names that occur on threads."""
        used = np.unique(self.graph.host.name)
        mask = np.asarray(chosen, np.bool_)
        return [self.graph.names[code] for code in used[mask[used]].tolist()]

    def under(self, names: Flags, track: int | None = None) -> Intervals:
        """Return the time of a thread (the main one) under spans whose name is masked."""
        track = self.main if track is None else track
        return self.graph.under_names(track, names) if track >= 0 else Intervals.none()

    def of_object(self, name: str, track: int | None = None) -> Intervals:
        """Return the time of a thread (the main one) under an activity of an object."""
        track = self.main if track is None else track
        if track < 0:
            return Intervals.none()
        cover = self.graph.cover
        return self.graph.covered(track, (cover.object == OBJECT_CODE[name]) & cover.named)

    def activity_time(self, *activities: str, track: int | None = None) -> Intervals:
        """Return the time of a thread (the main one) that is charged to some activities: the outermost named one."""
        track = self.main if track is None else track
        if track < 0:
            return Intervals.none()
        cover = self.graph.cover
        chosen = np.append(np.isin(self.activity, activities), False)
        return self.graph.covered(track, cover.named & chosen[cover.name])

    def rows(self, names: Flags, track: int | None = None) -> NDArray[np.int64]:
        """Return host rows of a thread (the main one; -1 for all) whose name is masked."""
        chosen = names[self.graph.host.name] if len(self.graph.host.name) else np.zeros(0, np.bool_)
        if track != -1:
            chosen = chosen & (self.graph.host.track == (self.main if track is None else track))
        return np.flatnonzero(chosen).astype(np.int64)

    def by_unit_ns(self, time: Intervals) -> Ints:
        """Return how much of some time lies in each unit of the rank: `[U]` int64 ns."""
        starts = self.graph.unit_start_ns
        if len(starts) == 0:
            return np.zeros(0, np.int64)
        ends = np.append(starts[1:], max(int(self.graph.time_ns.max()), int(starts[-1])) + 1)
        return covered_before(time, ends) - covered_before(time, starts)

    def unit_of(self, time_ns: Ints) -> Ints:
        """Return the place of the unit in which each moment lies, -1 before the first: `[N]` int64."""
        return np.asarray(np.searchsorted(self.graph.unit_start_ns, time_ns, side="right") - 1, np.int64)

    @cached_property
    def steady_places(self) -> NDArray[np.int64]:
        """Places of the units that count."""
        wanted = set(self.scene.units)
        return np.array([u for u, name in enumerate(self.graph.units) if name in wanted], np.int64)

    def mean_ns(self, time: Intervals) -> int:
        """Return some time's mean per steady unit, in ns."""
        if len(self.steady_places) == 0:
            return 0
        return int(self.by_unit_ns(time)[self.steady_places].sum()) // len(self.steady_places)

    def on_run(self, time_ns: int) -> int:
        """Return a time of the rank on the run's clock."""
        return time_ns + self.offset_ns

    @property
    def instances(self) -> Instances:
        """The rank's collectives, in the order of the graph's entries."""
        ground = self.scene.ground
        return ground.instances[self.rank] if ground is not None else self.digest.instances

    @cached_property
    def device_start_ns(self) -> Ints:
        """Start of each device span, on the host's clock: `[D]` int64 ns."""
        return np.asarray(self.graph.time_ns[self.graph.spans.point])

    @cached_property
    def device_end_ns(self) -> Ints:
        """End of each device span, on the host's clock: `[D]` int64 ns."""
        return np.asarray(self.graph.time_ns[self.graph.spans.point + 1])
