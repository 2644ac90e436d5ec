"""The resource-time matrix and the three indicators of a run, from its digests (DESIGN 3.9, 3.10).

Demands come from recorded shapes and sizes, peaks from the device table. Sums are over the units of all rows with
devices of one model, the model with the most compute time; a device that the table does not know has demands and no
shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType

from longpole.digest.steady import real_units
from longpole.ranks.cost_model import bus_factor
from longpole.records.ledger import Unknown
from longpole.records.resources import (
    COLUMNS,
    UNITS,
    ColumnEntry,
    Indicator,
    Resources,
    StageIndicators,
    UncountedRow,
)
from longpole.report.contention import contentions
from longpole.report.resource_peaks import Peaks
from longpole.report.resource_rows import (
    ROWS_KEPT,
    collective_row,
    copy_rows,
    hosts_of,
    merged_operators,
    operator_row,
)
from longpole.units import NS_PER_S
from longpole.vocabulary.objects import COLLECTIVE_KINDS, STAGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.digest.rank_digest import RankDigest, RowDigest
    from longpole.records.collectives import CollectiveEntry
    from longpole.records.operator_work import OperatorWork
    from longpole.records.resources import MatrixRow

NO_DEVICE: Final = Unknown("the trace holds no device spans", ["device activities"])
_NO_SHAPES: Final = Unknown("shapes of operators were not recorded", ["record_shapes=True"])
CLASS_MIN_COVER: Final = 0.5  # DESIGN 3.9: an indicator that covers less names no class
WAITING_BELOW: Final = 0.5  # a device that runs for less of a stage waits in it, whatever it does while it runs
_UNCOUNTED_KEPT: Final = 30
_ALL: Final = "all"
_EMPTY_COLUMNS: Final = {
    "l2": "needs hardware counters, which traces of this kind do not hold",
    "scale_out": "no collective between hosts was recorded",
    "storage": "no bytes of storage were recorded",
    "occupancy": "the profiler estimated none",
}
_NOT_ASKED: Final = "nothing recorded asks for it"


def resources_of(digests: Sequence[RankDigest], collectives: list[CollectiveEntry]) -> Resources | Unknown:
    """Build the matrix of a run.

    Args:
        digests: Its ranks.
        collectives: What the report says of its collectives.
    """
    name, rows = _of_one_model([row for digest in digests for row in digest.rows])
    compute_ns = sum(row.work.compute_ns for row in rows)
    if not compute_ns:
        return NO_DEVICE
    if not any(row.work.shapes for row in rows):
        return _NO_SHAPES
    peaks = Peaks.of(name)
    work = merged_operators(rows)
    times = _stage_times(rows).items()
    waiting = {stage for stage, (wall_ns, busy_ns) in times if busy_ns < WAITING_BELOW * wall_ns}
    found = [operator_row(one, peaks, compute_ns, waiting) for one in work]
    asked = {(one.processor, one.dtype) for one in work if one.flops}
    hosts = hosts_of(digests)
    found += [collective_row(entry, peaks, hosts, compute_ns) for entry in collectives if entry.duration_ns]
    found += copy_rows(rows, peaks, compute_ns)
    found.sort(key=lambda row: (-row.device_ns, row.name, row.stage, row.dtype))
    return Resources(
        device=peaks.name,
        device_name=name,
        basis="shapes",
        columns=[_column(column, found) for column in COLUMNS],
        peaks=peaks.listed(asked),
        compute_ns=compute_ns,
        covered_share=_share(work, compute_ns, flops=True, moved=True),
        flops_covered_share=_share(work, compute_ns, flops=True, moved=False),
        bytes_covered_share=_share(work, compute_ns, flops=False, moved=True),
        rows=found[:ROWS_KEPT],
        uncounted=_uncounted(rows, compute_ns),
        contention=contentions(rows, found),
        indicators=_indicators(digests, rows, work, peaks),
        at_least_share=sum(one.device_ns for one in work if _is_bound(one)) / compute_ns,
    )


def _of_one_model(rows: Iterable[RowDigest]) -> tuple[str, list[RowDigest]]:
    """Return the device model with the most compute time, and its rows."""
    by_name: dict[str, list[RowDigest]] = {}
    for row in rows:
        by_name.setdefault(row.device_name, []).append(row)
    name = max(by_name, key=lambda one: sum(row.work.compute_ns for row in by_name[one]), default="")
    return name, by_name.get(name, [])


def _column(name: str, rows: list[MatrixRow]) -> ColumnEntry:
    if any(name in row.cells for row in rows):
        return ColumnEntry(name, UNITS[name])
    return ColumnEntry(name, UNITS[name], _EMPTY_COLUMNS.get(name, _NOT_ASKED))


def _share(work: list[OperatorWork], compute_ns: int, *, flops: bool, moved: bool) -> float:
    covered_ns = sum(
        one.device_ns for one in work if (flops and one.flops is not None) or (moved and one.moved_bytes is not None)
    )
    return covered_ns / compute_ns


def _is_bound(work: OperatorWork) -> bool:
    """Return whether nothing but a lower bound is known of what an operator does."""
    return work.at_least and work.flops is None


def _uncounted(rows: list[RowDigest], compute_ns: int) -> list[UncountedRow]:
    total: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        for one in row.work.uncounted:
            held = total.setdefault((one.name, one.why), [0, 0])
            held[0] += one.kernels
            held[1] += one.device_ns
    found = [
        UncountedRow(name, why, kernels, device_ns, device_ns / compute_ns)
        for (name, why), (kernels, device_ns) in total.items()
    ]
    return sorted(found, key=lambda one: (-one.device_ns, one.name, one.why))[:_UNCOUNTED_KEPT]


def _stage_times(rows: list[RowDigest]) -> dict[str, tuple[int, int]]:
    """Return how long each stage took and the device ran in it, `all` first; those that took time."""
    total = dict.fromkeys((_ALL, *STAGES), (0, 0))
    for row in rows:
        for unit in real_units(row.units):
            parts = {name: (time.wall_ns, time.busy_ns) for name, time in unit.stages.items() if name in total}
            parts[_ALL] = (unit.ledger.wall_ns, unit.ledger.device.busy_ns)
            for name, (wall_ns, busy_ns) in parts.items():
                total[name] = (total[name][0] + wall_ns, total[name][1] + busy_ns)
    return {stage: times for stage, times in total.items() if times[0]}


def _indicators(
    digests: Sequence[RankDigest], rows: list[RowDigest], work: list[OperatorWork], peaks: Peaks
) -> list[StageIndicators]:
    """Return the indicators of the whole unit, then of each stage that took time."""
    mine = {id(row) for row in rows}
    owners = [digest for digest in digests if any(id(row) in mine for row in digest.rows)]
    found = []
    for stage, (wall_ns, busy_ns) in _stage_times(rows).items():
        compute_ns = sum(row.work.compute_ns if stage == _ALL else row.work.stage_ns.get(stage, 0) for row in rows)
        here = [one for one in work if stage in (_ALL, one.stage)]
        link = _link(owners, stage, wall_ns, peaks)
        found.append(_stage(stage, (wall_ns, busy_ns, compute_ns), here, peaks, link))
    return found


def _stage(
    stage: str, times: tuple[int, int, int], work: list[OperatorWork], peaks: Peaks, link: Indicator
) -> StageIndicators:
    wall_ns, busy_ns, compute_ns = times
    entry = StageIndicators(
        stage=stage,
        wall_ns=wall_ns,
        busy_share=busy_ns / wall_ns,
        compute=_compute(work, wall_ns, peaks) if compute_ns else Indicator(0.0),
        memory=_memory(work, wall_ns, peaks) if compute_ns else Indicator(0.0),
        link=link,
        covered_share=_share(work, compute_ns, flops=True, moved=True) if compute_ns else 0.0,
    )
    if peaks.device is not None:
        whole = [one for one in work if not _is_bound(one)]
        known = _share(whole, compute_ns, flops=True, moved=True) if compute_ns else 0.0
        entry.bound_class = _class(entry, known, _hidden(work, wall_ns, peaks), has_compute=compute_ns > 0)
    return entry


def _hidden(work: list[OperatorWork], wall_ns: int, peaks: Peaks) -> dict[str, float]:
    """Return what an indicator lacks at most: no work needs more of a unit's time than it took.

    Only of work of which something else is known: how much more there is, coverage says.
    """
    rate = peaks.of_column("hbm").per_s
    bounds = [one for one in work if one.moved_bytes is None or one.at_least]
    counted_ns = [0.0 if isinstance(rate, Unknown) else (one.moved_bytes or 0) * NS_PER_S / rate for one in bounds]
    left_ns = [max(one.device_ns - known_ns, 0.0) for one, known_ns in zip(bounds, counted_ns, strict=True)]
    return {
        "compute": sum(one.device_ns for one in work if one.flops is None and one.family in _MANY_FLOPS) / wall_ns,
        "memory": sum(left_ns) / wall_ns,
    }


_MANY_FLOPS: Final = ("matmul", "attention", "convolution")


def _compute(work: list[OperatorWork], wall_ns: int, peaks: Peaks) -> Indicator:
    """Return the time that the FLOPs need at their units' peaks, as a share: a lower bound where not all are known."""
    if peaks.device is None:
        return Indicator()
    needs = [(one.flops, peaks.of_column(one.processor, one.dtype)) for one in work if one.flops]
    if not needs:
        none = Unknown("no FLOPs are known in it", ["record_shapes=True"])
        return Indicator(none)
    theory = _time_share([(flops, peak.per_s) for flops, peak in needs], wall_ns)
    # Where a unit's ceiling was not measured its peak stands in, and the sum is still no lower than the truth allows.
    tensor = [(flops, peak) for flops, peak in needs if peak.column == "tensor"]
    if not tensor or all(isinstance(peak.achievable_per_s, Unknown) for _, peak in tensor):
        return Indicator(theory)
    achievable = [
        (flops, peak.per_s if isinstance(peak.achievable_per_s, Unknown) else peak.achievable_per_s)
        for flops, peak in needs
    ]
    return Indicator(theory, _or_unset(_time_share(achievable, wall_ns)))


def _memory(work: list[OperatorWork], wall_ns: int, peaks: Peaks) -> Indicator:
    if peaks.device is None:
        return Indicator()
    moved_bytes = sum(one.moved_bytes or 0 for one in work)
    if not moved_bytes:
        none = Unknown("no bytes are known in it", ["record_shapes=True"])
        return Indicator(none)
    peak = peaks.of_column("hbm")
    return Indicator(
        _time_share([(moved_bytes, peak.per_s)], wall_ns),
        _or_unset(_time_share([(moved_bytes, peak.achievable_per_s)], wall_ns)),
    )


def _or_unset(share: float | Unknown) -> float | UnsetType:
    return UNSET if isinstance(share, Unknown) else share


def _time_share(needs: Sequence[tuple[int | float, float | Unknown]], wall_ns: int) -> float | Unknown:
    """Return what demands take at their peaks, one after the other, as a share of a time.

    Demands whose peak is not known are left out while they are under a twentieth of all; else the share is not known.
    """
    left_out = sum(demand for demand, peak in needs if isinstance(peak, Unknown))
    if left_out > _LEFT_OUT_MAX * sum(demand for demand, _ in needs):
        return next(peak for _, peak in needs if isinstance(peak, Unknown))
    return sum(0.0 if isinstance(peak, Unknown) else demand * NS_PER_S / peak for demand, peak in needs) / wall_ns


_LEFT_OUT_MAX: Final = 0.05


def _link(digests: list[RankDigest], stage: str, wall_ns: int, peaks: Peaks) -> Indicator:
    """Return the time that bus bytes need at the scale-up link's peak, as a share; 0 where nothing was communicated."""
    bus_bytes = 0.0
    for digest in digests:
        own = digest.instances
        for kind, group, size, at in zip(
            own.column("kind").tolist(),
            own.column("group").tolist(),
            own.column("bytes").tolist(),
            own.column("stage").tolist(),
            strict=True,
        ):
            if stage not in (_ALL, STAGES[at] if at >= 0 else "other"):
                continue
            n = own.groups[group].size if 0 <= group < len(own.groups) else None
            factor = bus_factor(COLLECTIVE_KINDS[kind], n) if kind >= 0 else None
            if factor is None or size <= 0:
                why = Unknown("sizes or groups of its collectives are not known", ["collective metadata"])
                return Indicator(why)
            bus_bytes += size * factor
    if not bus_bytes:
        return Indicator(0.0, 0.0)
    if peaks.device is None:
        return Indicator()
    hosts = {digest.host for digest in digests}
    if len(hosts) != 1 or hosts == {""}:
        why = Unknown("whether its collectives stay within a host is not recorded", ["host_name"])
        return Indicator(why)
    peak = peaks.of_column("scale_up")
    return Indicator(
        _time_share([(bus_bytes, peak.per_s)], wall_ns),
        _or_unset(_time_share([(bus_bytes, peak.achievable_per_s)], wall_ns)),
    )


def _class(entry: StageIndicators, known_share: float, hidden: dict[str, float], *, has_compute: bool) -> str | Unknown:
    """Name what a stage is bound by, where enough of it is known, and what is not known of that cannot change it."""
    if entry.busy_share < WAITING_BELOW:
        return "waiting"
    if not has_compute:
        return "link" if isinstance(entry.link.share, float) and entry.link.share else Unknown("nothing was computed")
    if known_share < CLASS_MIN_COVER:
        return Unknown(
            f"FLOPs or bytes are known of {known_share:.0%} of its compute time, less than half",
            ["record_shapes=True"],
        )
    shares: dict[str, float] = {}
    for name, indicator in (("compute", entry.compute), ("memory", entry.memory), ("link", entry.link)):
        share = indicator.share if isinstance(indicator.achievable_share, UnsetType) else indicator.achievable_share
        if isinstance(share, Unknown):
            return share
        shares[name] = 0.0 if isinstance(share, UnsetType) else share
    best = max(shares, key=lambda name: shares[name])
    rival = next((name for name, more in hidden.items() if name != best and shares[name] + more > shares[best]), None)
    if rival is not None:
        lacks = "FLOPs" if rival == "compute" else "bytes"
        return Unknown(f"it may be {rival}: not all {lacks} are known, of up to {hidden[rival]:.0%} of its time", [])
    return best
