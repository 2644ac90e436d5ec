"""From one rank's timeline to its digest: the analyses in order, nothing of another rank needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.analyses.collectives import device_instances, host_instances
from longpole.analyses.evidence import Evidence, check_evidence, empty_units
from longpole.analyses.host_row import host_row, operator_time
from longpole.analyses.idle import find_gaps, idle_pieces
from longpole.analyses.ledger import unit_ledgers, unit_stages
from longpole.analyses.memory import rank_memory
from longpole.analyses.modules import module_rows
from longpole.analyses.name_book import OBJECT_CODE, STAGE_CODE, NameBook
from longpole.analyses.one_offs import find_one_offs, setup_rows
from longpole.analyses.operator_work import kernel_owners, measure_work
from longpole.analyses.overlap import compute_overlap
from longpole.analyses.pieces import RUNG_IDLE, Pieces, join_pieces
from longpole.analyses.rungs import busy_pieces, device_row
from longpole.analyses.services import (
    activity_sets,
    device_services,
    device_unions,
    loader_unknown,
    waiting_set,
)
from longpole.analyses.threads import REASON_CODE, Threads
from longpole.analyses.together import find_together
from longpole.analyses.top import activity_rows, copy_rows, kernel_rows, operator_rows
from longpole.analyses.work import declared_items, unit_elements, unit_operators, unit_products
from longpole.analyses.worst_gaps import gap_rows
from longpole.digest.completion import completions, launched_kernels, launched_unions
from longpole.digest.rank_digest import DIGEST_VERSION, DeviceSpan, RankDigest, RowDigest, UnitDigest
from longpole.records.ledger import Unknown
from longpole.timeline.boundaries import Unit, count_marks, find_units, marker_rows
from longpole.timeline.integrity import Example, Finding
from longpole.timeline.intervals import Intervals, complement, covered_before, intersect, union
from longpole.timeline.timeline import find_main_track
from longpole.units import format_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.analyses.idle import Gaps
    from longpole.analyses.one_offs import OneOff
    from longpole.analyses.rungs import DeviceRow
    from longpole.graph.rank_graph import RankGraph
    from longpole.records.instances import Instances
    from longpole.records.ledger import Ledger
    from longpole.records.operator_work import RowWork
    from longpole.records.tables import GapRow
    from longpole.settings import Settings
    from longpole.timeline.timeline import Timeline
    from longpole.vocabulary.matcher import Vocabulary

_NO_DEVICE: Final = "the trace holds no device spans"
_DEVICE_ACTIVITIES: Final = "device activities (ProfilerActivity.CUDA or the like)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which part of a record is asked for.

    Attributes:
        step_pattern: A regular expression for the markers of units, None for the usual ones.
        first_unit, last_unit: Range of unit numbers, both included, None for all.
    """

    step_pattern: str | None = None
    first_unit: int | None = None
    last_unit: int | None = None


@dataclass(frozen=True, slots=True)
class Laid:
    """What the rows of a rank have in common."""

    timeline: Timeline
    book: NameBook
    threads: Threads
    recorded: Intervals
    units: list[Unit]
    bounds_ns: NDArray[np.int64]
    activities: dict[str, Intervals]
    one_offs: dict[int, OneOff]
    evidence: Evidence
    settings: Settings


def digest(timeline: Timeline, vocabulary: Vocabulary, settings: Settings, selection: Selection) -> RankDigest:
    """Measure one rank.

    Raises:
        UsageError: The selection's pattern or range matches nothing.
        InvariantError: A law does not hold; the input is not at fault.
    """
    rank, device_rows = lay_out(timeline, vocabulary, settings, selection)
    return _digest(rank, device_rows)


def digest_with_graph(
    timeline: Timeline, vocabulary: Vocabulary, settings: Settings, selection: Selection
) -> tuple[RankDigest, RankGraph]:
    """Measure one rank, and build the graph of what waited for what in it.

    Raises:
        UsageError: The selection's pattern or range matches nothing.
        InvariantError: A law does not hold; the input is not at fault.
    """
    from longpole.graph.build import Entries, build_graph
    from longpole.graph.ground import lay_ground

    rank, device_rows = lay_out(timeline, vocabulary, settings, selection)
    measured = _digest(rank, device_rows)
    ground = lay_ground(rank.timeline, rank.book, rank.threads, rank.units, device_rows, settings)
    own = measured.instances
    return measured, build_graph(ground, Entries(own.row, own.on_device.astype(np.bool_)))


def lay_out(
    timeline: Timeline, vocabulary: Vocabulary, settings: Settings, selection: Selection
) -> tuple[Laid, list[DeviceRow]]:
    """Find a rank's units, what its names mean, what its threads did, and what each device span is.

    Raises:
        UsageError: The selection's pattern or range matches nothing.
    """
    found = find_units(timeline, vocabulary, selection.step_pattern)
    units = _selected(found, selection)
    if selection.step_pattern is None:
        elsewhere = [*_units_elsewhere(timeline, found), *_marks_left_out(timeline, vocabulary, found)]
        timeline = replace(timeline, findings=(*timeline.findings, *elsewhere))
    timeline = replace(timeline, main_track=_main_track(timeline, units))
    book = NameBook(timeline, vocabulary)
    setups = setup_rows(timeline, book, settings)
    recorded = timeline.recorded()
    rank = Laid(
        timeline,
        book,
        Threads(timeline, book, setups),
        recorded,
        units,
        _bounds(recorded, units),
        activity_sets(timeline, book, setups),
        find_one_offs(timeline, book, units, setups, settings),
        check_evidence(timeline, book, units),
        settings,
    )
    device_rows = [device_row(timeline, book, rank.threads, device, settings) for device in timeline.devices()]
    return rank, device_rows


def _units_elsewhere(timeline: Timeline, units: list[Unit]) -> list[Finding]:
    """Complain of declared units that are not counted: those of other threads, and those inside others."""
    n_left_out = len(timeline.told.units) - len(marker_rows(units)) if timeline.told is not None else 0
    if n_left_out <= 0:
        return []
    message = (
        f"{format_count(n_left_out, 'unit')} of other threads, or inside others: not counted, for units that overlap do"
        " not tile the time of one thread"
    )
    example, rank = Example(timeline.source.path), timeline.identity.rank
    return [Finding("spans.units_elsewhere", "warn", rank, n_left_out, example, message)]


def _marks_left_out(timeline: Timeline, vocabulary: Vocabulary, units: list[Unit]) -> list[Finding]:
    """Complain of the profiler's step marks that make no unit, for they overlap others on some thread."""
    markers = marker_rows(units)
    n_left_out = count_marks(timeline, vocabulary) - len(markers) if timeline.told is None and len(markers) else 0
    if n_left_out <= 0:
        return []
    message = (
        f"{format_count(n_left_out, 'step mark')} half inside another one: not counted as units; what ran there"
        " belongs to the units around, or to head and tail"
    )
    example = Example(timeline.source.path)
    return [Finding("unit.mark_left_out", "warn", timeline.identity.rank, n_left_out, example, message)]


def _main_track(timeline: Timeline, units: list[Unit]) -> int:
    """Return the thread that carries the units; without units the one that the program calls its main one."""
    markers = marker_rows(units)
    if timeline.told is not None and len(markers) == 0:
        return timeline.told.main_track
    return find_main_track(timeline.host, timeline.tracks, markers)


def _digest(rank: Laid, device_rows: list[DeviceRow]) -> RankDigest:
    timeline, book, recorded, units = rank.timeline, rank.book, rank.recorded, rank.units
    rows = [_measure_device(rank, row) for row in device_rows] or [_measure_host(rank)]
    unknown = {name: why for name, why in (("input", loader_unknown(timeline, book)),) if why is not None}
    return RankDigest(
        version=DIGEST_VERSION,
        kind=_run_kind(timeline, rows, units),
        rank=timeline.identity.rank,
        rank_assumed=timeline.identity.rank_assumed,
        world_size=timeline.identity.world_size,
        host=timeline.identity.host,
        base_ns=timeline.base_ns,
        start_ns=int(recorded.start_ns[0]),
        end_ns=int(recorded.end_ns[0]),
        path=timeline.source.path,
        format=timeline.source.format,
        format_version=timeline.source.version,
        size_bytes=timeline.source.size_bytes,
        n_events=timeline.source.n_events,
        n_skipped=timeline.source.n_skipped,
        n_repaired=timeline.source.n_repaired,
        environment=dict(timeline.environment),
        findings=[*timeline.findings, *rank.evidence.findings, *_empty(rank), *_without_object(rank, rows)],
        rows=rows,
        services_unknown=unknown,
        withheld=rank.evidence.verdict_withheld,
        group_sizes=sorted({c.group_size for c in timeline.collectives if c.group_size}),
        instances=_instances(rank, device_rows),
        memory=rank_memory(timeline, units, rank.bounds_ns),
        program=timeline.told.program if timeline.told is not None else None,
    )


def _selected(units: list[Unit], selection: Selection) -> list[Unit]:
    from longpole.errors import UsageError

    low, high = selection.first_unit, selection.last_unit
    if low is None and high is None:
        return units
    chosen = [u for u in units if (low is None or u.ordinal >= low) and (high is None or u.ordinal <= high)]
    if not chosen:
        have = f"{units[0].ordinal}..{units[-1].ordinal}" if units else "none"
        asked = f"{'' if low is None else low}..{'' if high is None else high}"
        msg = f"--units {asked}: no such unit of work; the record has {have}"
        raise UsageError(msg)
    return chosen


def _bounds(recorded: Intervals, units: list[Unit]) -> NDArray[np.int64]:
    """Return where head, units and tail begin and end: `[U + 3]` int64 ns."""
    inner = [unit.start_ns for unit in units] + [units[-1].end_ns]
    low, high = int(recorded.start_ns[0]), int(recorded.end_ns[0])
    return np.array([low, *inner, max(high, inner[-1])], np.int64)


def _instances(rank: Laid, rows: list[DeviceRow]) -> Instances:
    """Collect the collectives, placed in the units that the rows list: head and tail only where they have time."""
    bounds_ns = rank.bounds_ns
    bounds_ns = bounds_ns[1:] if bounds_ns[0] == bounds_ns[1] else bounds_ns
    bounds_ns = bounds_ns[:-1] if bounds_ns[-1] == bounds_ns[-2] else bounds_ns
    if rows:
        return device_instances(rank.timeline, rank.book, rows, bounds_ns)
    compute = operator_time(rank.timeline, rank.threads)
    return host_instances(rank.timeline, rank.book, compute, bounds_ns)


def row_pieces(rank: Laid, row: DeviceRow | None) -> Pieces:
    """Return what each instant of a row is charged to, as its ledger sums it: cut at the units' bounds.

    Args:
        rank: The rank.
        row: The device; None for the thread that stands in for one where none was recorded.
    """
    if row is None:
        pieces = host_row(rank.timeline, rank.book, rank.threads, rank.recorded, rank.activities).pieces
    else:
        busy = busy_pieces(row, rank.recorded)
        pieces = join_pieces([busy, idle_pieces(rank.threads, row, _gaps(rank, row), rank.settings)])
    return _with_unexplained(pieces.cut_at(rank.bounds_ns), rank)


def _gaps(rank: Laid, row: DeviceRow) -> Gaps:
    ran = union(row.spans.start_ns, row.spans.end_ns)
    free = complement(ran, int(rank.recorded.start_ns[0]), int(rank.recorded.end_ns[0]))
    return find_gaps(rank.threads, row, free)


def _measure_device(rank: Laid, row: DeviceRow) -> RowDigest:
    timeline, device = rank.timeline, row.device
    busy = busy_pieces(row, rank.recorded)
    ran = union(row.spans.start_ns, row.spans.end_ns)
    gaps = _gaps(rank, row)
    idle = idle_pieces(rank.threads, row, gaps, rank.settings)
    services = device_services(row, rank.activities)
    units = _units(rank, join_pieces([busy, idle]), services, device_unions(row), row)
    window = _window(rank)
    inside = _inside(_with_unexplained(join_pieces([busy, idle]).cut_at(rank.bounds_ns), rank), rank)
    return RowDigest(
        device=f"{timeline.device_type}:{device}",
        device_name=timeline.device_name(device),
        device_span=_device_span(ran),
        units=units,
        kernels=kernel_rows(timeline, row, window, intersect(ran, window).total_ns()),
        operators=operator_rows(timeline, rank.threads, row, window),
        copies=copy_rows(timeline, rank.book, row, window),
        gaps=_worst(rank, gaps, inside),
        activities=activity_rows(timeline, _idle_inside(ran, window), marker_rows(rank.units)),
        modules=module_rows(timeline, rank.threads, inside),
        overlap=compute_overlap(timeline, row),
        work=_work(rank, row, window),
    )


def _work(rank: Laid, row: DeviceRow, window: Intervals) -> RowWork:
    owners = kernel_owners(rank.timeline, rank.threads, row, window)
    work = measure_work(rank.timeline, row, owners)
    work.together = find_together(rank.timeline, rank.book, row, owners, window)
    return work


def _measure_host(rank: Laid) -> RowDigest:
    timeline = rank.timeline
    measured = host_row(timeline, rank.book, rank.threads, rank.recorded, rank.activities)
    units = _units(rank, measured.pieces, measured.services, measured.unions, None)
    window = _window(rank)
    busy = measured.pieces.covering(measured.pieces.rung != RUNG_IDLE)
    inside = _inside(measured.pieces, rank)
    told = timeline.told is not None
    missing = "spans of the device (device=True on a stage)" if told else _DEVICE_ACTIVITIES
    unknown = Unknown(_NO_DEVICE, [missing])
    return RowDigest(
        device="cpu",
        device_name="",
        device_span=DeviceSpan(unknown, unknown, unknown),
        units=units,
        kernels=[],
        operators=operator_rows(timeline, rank.threads, None, window),
        copies=[],
        gaps=_worst(rank, measured.gaps, inside),
        activities=activity_rows(timeline, _idle_inside(busy, window), marker_rows(rank.units)),
        modules=module_rows(timeline, rank.threads, inside),
    )


def _units(
    rank: Laid, pieces: Pieces, services: dict[str, Intervals], unions: dict[str, Intervals], row: DeviceRow | None
) -> list[UnitDigest]:
    """Sum the pieces into head, units and tail."""
    pieces.check_tiling(int(rank.recorded.start_ns[0]), int(rank.recorded.end_ns[0]))
    bounds_ns = rank.bounds_ns
    cut = _with_unexplained(pieces.cut_at(bounds_ns), rank)
    ledgers = unit_ledgers(cut, services, bounds_ns, unions)
    _add_waiting(rank, ledgers, unions)
    stages = unit_stages(cut, bounds_ns)
    done_ns = completions(rank.timeline, rank.units, row)
    by_launch_ns = launched_unions(rank.timeline, rank.units, row)
    elements = unit_elements(rank.timeline, rank.units)
    products = unit_products(rank.timeline, rank.units)
    items = declared_items(rank.timeline, rank.units)
    kernels = (
        launched_kernels(rank.timeline, rank.units, row)
        if row is not None
        else unit_operators(rank.timeline, rank.units)
    )
    result = []
    for place, (ledger, stage) in enumerate(zip(ledgers, stages, strict=True)):
        ledger.check()
        u = place - 1
        if place in (0, len(ledgers) - 1):
            name = "head" if place == 0 else "tail"
            if ledger.wall_ns:
                start_ns, end_ns = int(bounds_ns[place]), int(bounds_ns[place + 1])
                result.append(UnitDigest(name, name, -1, start_ns, 0, end_ns, ledger.device.busy_ns, 0, ledger, stage))
            continue
        unit = rank.units[u]
        result.append(
            UnitDigest(
                name=unit.name,
                kind=unit.kind,
                ordinal=unit.ordinal,
                start_ns=unit.start_ns,
                between_ns=unit.between_ns,
                completion_ns=done_ns[u],
                device_by_time_ns=ledger.device.busy_ns,
                device_by_launch_ns=by_launch_ns[u] if row is not None else ledger.device.busy_ns,
                ledger=ledger,
                stages=stage,
                one_off=rank.one_offs[u].why if u in rank.one_offs else "",
                one_off_ns=rank.one_offs[u].dur_ns if u in rank.one_offs else 0,
                incomplete=u in rank.evidence.incomplete,
                kernels=kernels[u],
                elements=elements[u],
                items=items[u],
                products=products[u],
            )
        )
    return result


def _with_unexplained(pieces: Pieces, rank: Laid) -> Pieces:
    """Charge idle time to nothing known where device spans are missing from the record: it may not have been idle."""
    unit = np.searchsorted(rank.bounds_ns, pieces.start_ns, side="right") - 2
    doubtful = np.isin(unit, list(rank.evidence.incomplete)) & (pieces.rung == RUNG_IDLE)
    if rank.evidence.verdict_withheld and len(rank.timeline.device):
        doubtful = pieces.rung == RUNG_IDLE
    if not doubtful.any():
        return pieces
    reason = np.where(doubtful, REASON_CODE["device.unexplained"], pieces.reason).astype(np.int8)
    charged = np.where(doubtful, OBJECT_CODE["unknown"], pieces.object).astype(np.int8)
    return replace(pieces, reason=reason, object=charged)


def _add_waiting(rank: Laid, ledgers: list[Ledger], unions: dict[str, Intervals]) -> None:
    """Fill in the waiting part of collectives where the exporter recorded it."""
    waits = waiting_set(rank.timeline)
    if waits is None:
        return
    inside = np.diff(covered_before(intersect(waits, unions["collective"]), rank.bounds_ns)).tolist()
    for ledger, waiting_ns in zip(ledgers, inside, strict=True):
        ledger.objects["collective"].waiting_ns = int(waiting_ns)


def _window(rank: Laid) -> Intervals:
    return Intervals.single(int(rank.bounds_ns[1]), int(rank.bounds_ns[-2]))


def _inside(pieces: Pieces, rank: Laid) -> Pieces:
    cut = pieces.cut_at(rank.bounds_ns[[1, -2]])
    return cut.take((cut.start_ns >= rank.bounds_ns[1]) & (cut.end_ns <= rank.bounds_ns[-2]))


def _idle_inside(ran: Intervals, window: Intervals) -> Intervals:
    if len(window.start_ns) == 0:
        return window
    return complement(ran, int(window.start_ns[0]), int(window.end_ns[0]))


def _worst(rank: Laid, gaps: Gaps, inside: Pieces) -> list[GapRow]:
    starts = np.array([unit.start_ns for unit in rank.units], np.int64)
    unit_of = np.maximum(np.searchsorted(starts, inside.start_ns, side="right") - 1, 0)
    names = [unit.name for unit in rank.units]
    return gap_rows(rank.timeline, rank.threads, gaps, inside, unit_of, names)


def _device_span(ran: Intervals) -> DeviceSpan:
    if len(ran.start_ns) == 0:
        return DeviceSpan(0, 0, 0)
    span_ns = int(ran.end_ns[-1] - ran.start_ns[0])
    busy_ns = ran.total_ns()
    return DeviceSpan(span_ns, busy_ns, span_ns - busy_ns)


def _empty(rank: Laid) -> list[Finding]:
    """Complain of units in which a device ran nothing, where it ran something in others."""
    findings = []
    for device in rank.timeline.devices():
        empty = empty_units(rank.timeline, device, rank.units)
        if not empty or len(empty) == len(rank.units):
            continue
        first = rank.units[empty[0]].name
        message = f"{len(empty)} of {len(rank.units)} units hold no span of device {device}, the first one {first}"
        example = Example(rank.timeline.source.path, None)
        findings.append(
            Finding(
                "unit.empty",
                "warn",
                rank.timeline.identity.rank,
                len(empty),
                example,
                message,
                ["@/ledger/device/idle_ns"],
            )
        )
    return findings


def _without_object(rank: Laid, rows: list[RowDigest]) -> list[Finding]:
    """Complain where a program's own record leaves most of its units without a span that names an object."""
    if rank.timeline.told is None or len(rank.timeline.device):
        return []
    units = [unit for unit in rows[0].units if unit.kind not in ("head", "tail")]
    wall_ns = sum(unit.ledger.wall_ns for unit in units)
    plain_ns = sum(unit.ledger.idle_ns["host.python"] for unit in units)
    if wall_ns == 0 or plain_ns < _WITHOUT_OBJECT_SHARE * wall_ns:
        return []
    message = (
        f"{plain_ns / wall_ns:.0%} of the units lies under no span that names an object, and counts as host:"
        ' say what it is, as in stage("forward", object="compute")'
    )
    example = Example(rank.timeline.source.path)
    return [Finding("spans.without_object", "note", rank.timeline.identity.rank, len(units), example, message)]


_WITHOUT_OBJECT_SHARE: Final = 0.5  # from here on "host" says more of the record than of the program


def _run_kind(timeline: Timeline, rows: list[RowDigest], units: list[Unit]) -> str:
    """Tell what kind of job it is: training where something ran backwards or an optimizer stepped."""
    names = STAGE_CODE.keys()
    seen = {s for row in rows for unit in row.units for s in unit.stages if s in names}
    if len(timeline.backward) or "backward" in seen or "optimizer" in seen:
        return "training"
    if "forward" in seen:
        return "inference"
    del units
    return "unknown"
