"""Ranks hold each other up: more work on some, slower work on some, a slow stage of a pipeline, a late profiler."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.advice.removal import span_lengths
from longpole.advice.suspect import Suspect
from longpole.advice.words import listed
from longpole.records.findings import Evidence, Place
from longpole.units import format_ns
from longpole.whatif.change import Equalise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from longpole.advice.scene import RankView, Scene
    from longpole.advice.suspect import Removal
    from longpole.records.collectives import PipelineEntry, StragglerEntry

    Ints: TypeAlias = NDArray[np.int64]

_IMBALANCE_MIN: Final = 0.1
_KERNELS: Final = "kernels"
_AMOUNTS: Final = {"elements of inputs": "elements", "multiplications": "products", _KERNELS: "kernels"}
_ALWAYS: Final = 0.8  # of the units: a rank that is slowest in so many is the slow one
_START_MIN: Final = 0.5  # of the period: profilers that start closer together mislead nobody


def find(scene: Scene) -> list[Suspect]:
    """Suspect the ranks that others wait for, where computing is why."""
    stages = [suspect for entry in scene.tables.pipeline for suspect in _stage(scene, entry)]
    if stages:
        return [*stages, *_profiler(scene)]
    apart = _computing(scene)
    if apart is not None:
        return [*_apart(scene, apart), *_profiler(scene)]
    late: dict[str, list[StragglerEntry]] = {"more_work": [], "slower_work": []}
    for entry in scene.tables.stragglers:
        if entry.reason in late:
            late[entry.reason].append(entry)
    return [*_work(scene, late["more_work"]), *_speed(scene, late["slower_work"]), *_profiler(scene)]


@dataclass(frozen=True, slots=True)
class _Computing:
    """What ranks compute in each steady unit, of what each launched; rows are ranks, columns units.

    Attributes:
        ranks: `[R]` their numbers.
        units: `[U]` names.
        work_ns: `[R, U]` int64 ns.
        amounts: What a slow device does not change, each `[R, U]`: multiplications in products of matrices and elements
            of the operators' inputs, else kernels.
        told: `amounts` come from shapes.
    """

    ranks: list[int]
    units: list[str]
    work_ns: Ints
    amounts: dict[str, Ints]
    told: bool

    @property
    def slowest(self) -> Ints:
        """Place of the rank that computes longest in each unit: `[U]`."""
        return self.work_ns.argmax(axis=0)

    @property
    def excess_ns(self) -> Ints:
        """How much longer that one computes than the mean: `[U]` int64 ns."""
        return (self.work_ns.max(axis=0) - self.work_ns.mean(axis=0)).astype(np.int64)


def _computing(scene: Scene) -> _Computing | None:
    """Return what ranks with devices compute in each unit; None where there are not two of them."""
    views = [view for view in scene.views if view.graph.has_device]
    if len(views) < 2 or not scene.units:
        return None
    work = np.zeros((len(views), len(scene.units)), np.int64)
    counted = {what: work.copy() for what in _AMOUNTS}
    for r, view in enumerate(views):
        spans = view.graph.spans
        mine = spans.compute & (spans.unit >= 0)
        dur_ns = (view.device_end_ns - view.device_start_ns)[mine]
        by_unit = np.bincount(spans.unit[mine], dur_ns, len(view.graph.units)).astype(np.int64)
        place = [view.graph.units.index(name) for name in scene.units]
        work[r] = by_unit[place]
        own = {unit.name: unit for unit in view.digest.rows[0].units}
        for what, attribute in _AMOUNTS.items():
            counted[what][r] = [getattr(own[name], attribute) for name in scene.units]
    known = {what: amount for what, amount in counted.items() if what != _KERNELS and bool((amount > 0).all())}
    amounts = known or {_KERNELS: counted[_KERNELS]}
    return _Computing([view.rank for view in views], list(scene.units), work, amounts, bool(known))


def _apart(scene: Scene, found: _Computing) -> list[Suspect]:
    """Suspect uneven amounts of work where amounts say so or ranks are slowest in turn, else uneven speed."""
    least_ns = scene.settings.finding_min_share * scene.period_ns
    struck = found.excess_ns >= least_ns
    if not struck.any():
        return []
    slowest = found.slowest[struck]
    units = [name for name, hit in zip(found.units, struck.tolist(), strict=True) if hit]
    columns = np.flatnonzero(struck)
    ratios = {what: _over_others(amount, columns, slowest) for what, amount in found.amounts.items()}
    what, ratio = max(ratios.items(), key=lambda pair: pair[1])
    longer = _over_others(found.work_ns, columns, slowest)
    # Weights are among the inputs, so that elements differ by less than the work does; of equal work they do not.
    more = ratio - 1 >= scene.settings.more_work_min_share * ((longer - 1) if found.told else 1.0)
    counts = np.bincount(slowest, minlength=len(found.ranks))
    in_turn = counts.max() < _ALWAYS * len(slowest)
    ranks = [found.ranks[place] for place in np.flatnonzero(counts).tolist()]
    worst = int(counts.argmax())
    evidence = [
        Evidence(
            "compute_ns beyond the mean, in its slowest unit",
            int(found.excess_ns[columns][slowest == place].max()),
            Place(found.ranks[place], unit=units[int(np.flatnonzero(slowest == place)[0])]),
        )
        for place in np.flatnonzero(counts).tolist()[:8]
    ]
    evidence.append(Evidence(f"{what}, slowest rank over the others", round(ratio, 3), Place(found.ranks[worst])))
    mean_ns = int(found.excess_ns.mean())
    if more or in_turn:
        turn = " in turn" if len(ranks) > 1 else ""
        verb = "has" if len(ranks) == 1 else "have"
        says = f"{listed(ranks)} {verb}{turn} more work than the others, who wait: {{cost}}"
        return [_uneven("work_imbalance", ranks, says, evidence, mean_ns, units)]
    ranks = [found.ranks[place] for place in np.flatnonzero(2 * counts >= len(slowest)).tolist()] or ranks
    slow = _uneven("slow_rank", ranks, _says_slow(ranks, told=found.told), evidence, mean_ns, units)
    otherwise = () if found.told else (Equalise("work"),)
    return [replace(slow, remove=[_at_others_pace(scene, ranks)], otherwise=otherwise)]


def _says_slow(ranks: list[int], *, told: bool) -> str:
    """Say that ranks are slow; `told` where their work is known to be the others'."""
    verb = "does" if len(ranks) == 1 else "do"
    more = "" if told else ", or more of it that was not recorded (then the lower price holds)"
    return f"{listed(ranks)} {verb} the same work more slowly than the others{more}, who wait: {{cost}}"


def _at_others_pace(scene: Scene, ranks: list[int], share: float = 1.0) -> Removal:
    """Return the change by which some ranks' kernels take no longer than the others' of the same name.

    Kernel by kernel the pace is that of the whole run, unit by unit that of the unit: a clock that drops half way is
    given back where it dropped.

    Args:
        scene: The run.
        ranks: The slow ones.
        share: What is left of all that they compute, at most: a stage with more kernels is evened out as a whole.
    """
    others = [view for view in scene.views if view.rank not in ranks]
    usual, in_units = _median_pace(others, by_unit=False), _median_pace(others, by_unit=True)
    lengths: dict[int, tuple[Ints, Ints]] = {}
    for view in scene.views:
        if view.rank not in ranks:
            continue
        spans = view.graph.spans
        rows = np.flatnonzero(spans.compute).astype(np.int64)
        dur_ns = (view.device_end_ns - view.device_start_ns)[rows].astype(np.float64)
        factor, pace_ns = _pace_of_kernels(view, rows, usual, in_units)
        new_ns, wanted_ns = dur_ns * factor, np.where(pace_ns > 0, pace_ns, dur_ns)
        for u in np.unique(spans.unit[rows]).tolist():
            mine = spans.unit[rows] == u
            again = float(wanted_ns[mine].sum()) / max(float(new_ns[mine].sum()), 1.0)
            new_ns[mine] = np.minimum(new_ns[mine] * again, dur_ns[mine])
        new_ns *= min(1.0, share * float(dur_ns.sum()) / max(float(new_ns.sum()), 1.0))
        lengths[view.place] = rows, np.rint(new_ns).astype(np.int64)
    return span_lengths(lengths)


def _pace_of_kernels(
    view: RankView, rows: Ints, usual: Mapping[tuple[str, str], float], in_units: Mapping[tuple[str, str], float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return by what each device row would get shorter at the others' pace, and that pace in its unit, 0 for none."""
    graph, own = view.graph, _paces(view, by_unit=False)
    keys, which = np.unique(np.stack([graph.spans.name, graph.spans.unit])[:, rows], axis=1, return_inverse=True)
    factor, pace_ns = np.ones(keys.shape[1]), np.zeros(keys.shape[1])
    for at, (code, u) in enumerate(keys.T.tolist()):
        name = graph.names[code]
        pace = usual.get((name, ""))
        if pace is not None:
            factor[at] = min(pace / max(own[name, ""], 1.0), 1.0)
            pace_ns[at] = in_units.get((name, graph.units[u] if u >= 0 else ""), pace)
    return factor[which.reshape(-1)], pace_ns[which.reshape(-1)]


def _median_pace(views: Sequence[RankView], *, by_unit: bool) -> dict[tuple[str, str], float]:
    """Return the ranks' median of the mean length of each kernel, in ns; `by_unit` in each unit, else in all."""
    found: dict[tuple[str, str], list[float]] = {}
    for view in views:
        for key, mean_ns in _paces(view, by_unit=by_unit).items():
            found.setdefault(key, []).append(mean_ns)
    return {key: float(np.median(means)) for key, means in found.items()}


def _paces(view: RankView, *, by_unit: bool) -> dict[tuple[str, str], float]:
    """Return the mean length of each kernel's spans in ns: (kernel, unit) -> mean, the unit empty for all of them."""
    spans, graph = view.graph.spans, view.graph
    rows = np.flatnonzero(spans.compute)
    unit = spans.unit[rows] if by_unit else np.full(len(rows), -1)
    keys, which = np.unique(np.stack([spans.name[rows], unit]), axis=1, return_inverse=True)
    dur_ns = (view.device_end_ns - view.device_start_ns)[rows]
    means = np.bincount(which.reshape(-1), dur_ns) / np.maximum(np.bincount(which.reshape(-1)), 1)
    return {
        (graph.names[code], graph.units[u] if u >= 0 else ""): mean
        for code, u, mean in zip(*keys.tolist(), means.tolist(), strict=True)
    }


def _uneven(
    cause: str, ranks: list[int], says: str, evidence: list[Evidence], mean_ns: int, units: list[str]
) -> Suspect:
    by = "work" if cause == "work_imbalance" else "speed"
    return Suspect(
        cause=cause,
        ranks=ranks,
        says=says,
        evidence=evidence,
        remove=[Equalise(by)],
        ledger_ns=mean_ns,
        units=units,
        what_if=[f"--equalise {by}"],
    )


def _over_others(values: Ints, columns: Ints, slowest: Ints) -> float:
    """Return the slowest rank's value over the others' median, median over some units."""
    ratios = []
    for column, place in zip(columns.tolist(), slowest.tolist(), strict=True):
        others = float(np.median(np.delete(values[:, column], place)))
        ratios.append(float(values[place, column]) / max(others, 1.0))
    return float(np.median(ratios))


def _work(scene: Scene, late: Sequence[StragglerEntry]) -> list[Suspect]:
    if not late:
        return []
    ranks = [entry.rank for entry in late]
    turn = " in turn" if len(ranks) > 1 else ""
    verb = "has" if len(ranks) == 1 else "have"
    return [
        Suspect(
            cause="work_imbalance",
            ranks=ranks,
            says=f"{listed(ranks)} {verb}{turn} more work than the others, who wait: {{cost}}",
            evidence=_evidence(late),
            remove=[Equalise("work")],
            ledger_ns=sum(entry.caused_ns_per_unit for entry in late),
            units=_units(scene, late),
            what_if=["--equalise work"],
        )
    ]


def _speed(scene: Scene, late: Sequence[StragglerEntry]) -> list[Suspect]:
    if not late:
        return []
    ranks = [entry.rank for entry in late]
    return [
        Suspect(
            cause="slow_rank",
            ranks=ranks,
            says=_says_slow(ranks, told=False),
            evidence=_evidence(late),
            remove=[Equalise("speed")],
            # What a thread does between operators, or inside one, shows in no count of operators and elements.
            otherwise=[Equalise("work")],
            ledger_ns=sum(entry.caused_ns_per_unit for entry in late),
            units=_units(scene, late),
            what_if=["--equalise speed"],
        )
    ]


def _stage(scene: Scene, entry: PipelineEntry) -> list[Suspect]:
    if entry.imbalance < _IMBALANCE_MIN:
        return []
    slowest = max(range(len(entry.compute_ns)), key=lambda stage: entry.compute_ns[stage])
    ranks = entry.stages[slowest]
    others = sorted(ns for stage, ns in enumerate(entry.compute_ns) if stage != slowest)
    usual_ns = others[(len(others) - 1) // 2]
    return [
        Suspect(
            cause="slow_stage",
            ranks=ranks,
            says=f"stage {slowest} of the pipeline ({listed(ranks)}) takes longer than the others: {{cost}}",
            evidence=[
                Evidence("compute_ns per unit", entry.compute_ns[slowest], Place(ranks[0])),
                Evidence("compute_ns per unit, other stages, median", usual_ns, Place()),
            ],
            remove=[_at_others_pace(scene, ranks, usual_ns / max(entry.compute_ns[slowest], 1))],
            ledger_ns=entry.compute_ns[slowest] - usual_ns,
            what_if=["--equalise speed"],
        )
    ]


def _profiler(scene: Scene) -> list[Suspect]:
    """Name a profiler that started late for what it is: the recording, not the job."""
    named = [entry for entry in scene.tables.stragglers if entry.reason == "profiler_start"]
    if named:
        return [_start(entry.rank, entry.late_ns, entry.says, entry.in_units) for entry in named]
    return _moved(scene)


def _start(rank: int, late_ns: int, says: str, units: Sequence[str]) -> Suspect:
    return Suspect(
        cause="profiler_start_skew",
        ranks=[rank],
        says=says,
        evidence=[Evidence("late_ns at the first collective", late_ns, Place(rank, unit=units[0] if units else ""))],
        units=units,
        once_ns=late_ns,
        always=True,
    )


def _moved(scene: Scene) -> list[Suspect]:
    """Suspect the profiler that started last where the others' first recorded collective waits for its rank.

    The units concerned were moved into the head, so no figure rests on them; but who looks at the trace sees a rank
    that keeps all others waiting.
    """
    if scene.across is None or not scene.steady.moved or len(scene.digests) < 2:
        return []
    began = {d.rank: scene.steady.at(d.rank, d.start_ns) for d in scene.digests}
    last = max(began, key=lambda rank: began[rank])
    spread_ns = began[last] - min(began.values())
    matched, split = scene.across.matched, scene.across.split
    early = np.minimum.reduceat(split.start_ns, matched.first[:-1]) < began[last] if len(matched) else None
    if early is None or spread_ns < _START_MIN * scene.period_ns:
        return []
    late = np.flatnonzero(early & (split.culprit == last))
    if len(late) == 0:
        return []
    late_ns = int(split.lateness_ns[late].max())
    says = (
        f"rank {last} arrives {format_ns(late_ns)} late at the first recorded collective because its profiler started"
        f" {format_ns(spread_ns)} after the first one: the recording, not the job"
    )
    return [_start(last, late_ns, says, scene.steady.moved)] if 2 * spread_ns >= late_ns else []


def _units(scene: Scene, late: Sequence[StragglerEntry]) -> list[str]:
    struck = {name for entry in late for name in entry.in_units}
    return [name for name in scene.units if name in struck]


def _evidence(late: Sequence[StragglerEntry]) -> list[Evidence]:
    return [Evidence(entry.says, entry.late_ns, Place(entry.rank, unit=entry.in_units[0])) for entry in late[:8]]
