"""From the digests of a run to its record (`longpole.record/1`), and records read from files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.analyses.sums import mean_ledger
from longpole.digest.across import bring_together
from longpole.digest.steady import Steady, find_steady, real_units
from longpole.errors import InputError
from longpole.pipeline.version import package_version
from longpole.records.ledger import Unknown
from longpole.records.run_record import (
    NOT_RECORDED,
    SCHEMA,
    RecordCollective,
    RecordContract,
    RecordEnvironment,
    RecordNote,
    RecordRow,
    RecordSource,
    RecordStage,
    RecordTime,
    RecordUnit,
    RunRecord,
)
from longpole.records.run_record_file import decode_record
from longpole.report.program import items_of_units
from longpole.stats import mean_ns, median_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.digest.jobs import Run
    from longpole.digest.rank_digest import RankDigest, RowDigest, UnitDigest
    from longpole.records.collectives import CollectiveEntry
    from longpole.records.ledger import Ledger, ObjectTime, StageTime
    from longpole.report.document import Report
    from longpole.settings import Settings

_MUST_MATCH: Final = (
    "devices",
    "device_kind",
    "backend",
    "torch_version",
    "cuda_runtime_version",
    "hip_runtime_version",
    "nccl_version",
)
_INFORMATIONAL: Final = ("displayTimeUnit",)
_BLOCK_BYTES: Final = 1 << 20
_SHAPE_CHARS: Final = 400  # operators over long lists of tensors would fill the record
_FIRST: Final = Unknown("when the unit before it was complete is not recorded")
_NOT_SPLIT: Final = Unknown("not all operations could be split into waiting and moving", ["traces of all ranks"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemsOfUnit:
    """What a unit processes, as it is declared.

    Attributes:
        count: Items of all ranks together.
        kind: `token`, `sample`, …; empty where it is not said.
    """

    count: int
    kind: str = ""


def make_record(
    run: Run, report: Report, settings: Settings, *, label: str = "", items: ItemsOfUnit | None = None
) -> RunRecord:
    """Write down a run that was read from traces.

    Args:
        run: Its digests, from which `report` was built.
        report: What is known of them together.
        settings: Thresholds.
        label: What pages shall call it; by default nothing.
        items: What a unit processes, where it is declared.
    """
    digests = run.digests
    across = bring_together(digests, settings)
    steady = find_steady(digests, settings, across.clocks if across is not None else None)
    by_unit = items_of_units(digests) if items is None else {}
    units = _units(digests, steady, _period_void(report), by_unit)
    counted = {unit.name for unit in units if not unit.left_out}
    sources = [source_of(path) for path in dict.fromkeys(source.path for source in report.run.sources)]
    world = report.run.world_size
    return RunRecord(
        schema=SCHEMA,
        units=units,
        run_id=_run_id(sources, report),
        label=label,
        written_by=f"longpole {package_version()}",
        kind=report.run.kind,
        unit_kind=report.unit.kind,
        item_kind=items.kind if items is not None else _recorded_kind(report),
        items_per_unit=items.count if items is not None else _recorded_items(report),
        items_from="declared" if items is not None else "recorded" if by_unit else "",
        world_size=world if isinstance(world, int) else NOT_RECORDED,
        ranks_present=report.run.ranks_present,
        rows=[_row(digest, row, counted) for digest in digests for row in digest.rows],
        collectives=_collectives(report.collectives, n_units=len(counted), n_rows=len(report.ranks)),
        environment=_environment(digests, report),
        contract=_contract(digests, steady, counted),
        limits={"peak_bytes": _peak_bytes(report)},
        integrity=[RecordNote(found.code, found.severity, found.message) for found in report.integrity],
        sources=sources,
    )


def _peak_bytes(report: Report) -> int | Unknown:
    """Return the most that was allocated on any device."""
    return report.memory if isinstance(report.memory, Unknown) else report.memory.peak_allocated_bytes


def read_record(path: str) -> RunRecord:
    """Read a record from a file.

    Raises:
        InputError: It cannot be read, or something in it is wrong: file and field are named.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError.at(path, None, f"cannot be read: {error.strerror}", "Name a run record") from None
    record = decode_record(data, path)
    record.label = record.label or Path(path).stem
    return record


def source_of(path: str) -> RecordSource:
    """Hash a file; without a hash where it is gone or cannot be read any more."""
    digest = hashlib.blake2b(digest_size=20)
    size_bytes = 0
    try:
        with Path(path.partition("!")[0]).open("rb") as file:  # a member of an archive stands behind a `!`
            while block := file.read(_BLOCK_BYTES):
                size_bytes += len(block)
                digest.update(block)
    except OSError:
        return RecordSource(path)
    return RecordSource(path, size_bytes, digest.hexdigest())


def _run_id(sources: Sequence[RecordSource], report: Report) -> str:
    """Return the same id for the same bytes and selection, wherever they lie."""
    selection = report.run.selection
    text = "|".join(sorted(source.blake2b or source.path for source in sources))
    text += f"|{selection.units}|{selection.ranks}|{selection.step}"
    return hashlib.blake2b(text.encode("utf-8", "backslashreplace"), digest_size=10).hexdigest()


def _recorded_items(report: Report) -> int | Unknown:
    per_unit = report.unit.items.per_unit
    return per_unit if isinstance(per_unit, int) and per_unit > 0 else Unknown("not declared", ["items per unit"])


def _recorded_kind(report: Report) -> str:
    kind = report.unit.items.kind
    return kind if isinstance(kind, str) else ""


def _period_void(report: Report) -> Unknown | None:
    """Return why the run's periods are withdrawn, None where they stand."""
    median = report.unit.period_ns.median
    if isinstance(median, Unknown) and any(
        found.severity == "void" and "/unit/period_ns" in found.voids for found in report.integrity
    ):
        return median
    return None


def _units(digests: list[RankDigest], steady: Steady, void: Unknown | None, items: dict[str, int]) -> list[RecordUnit]:
    """Return the run's units: periods over all ranks, the rest as means over the rows."""
    why = {name: reason for name, reason, _ in reversed(steady.left_out)}
    found: list[RecordUnit] = []
    of_name: dict[str, list[UnitDigest]] = {}
    for digest in digests:
        for row in digest.rows:
            for unit in real_units(row.units):
                of_name.setdefault(unit.name, []).append(unit)
    for name, several in of_name.items():
        ledger = mean_ledger([unit.ledger for unit in several])
        period: int | Unknown = void if void is not None else steady.periods.get(name, _FIRST)
        found.append(
            RecordUnit(
                period_ns=period,
                name=name,
                wall_ns=ledger.wall_ns,
                items=items.get(name, NOT_RECORDED),
                left_out=why.get(name, ""),
                objects=_times(ledger),
                idle_ns={reason: time_ns for reason, time_ns in ledger.idle_ns.items() if time_ns},
                stages=_mean_stages(several),
            )
        )
    return found


def _row(digest: RankDigest, row: RowDigest, counted: set[str]) -> RecordRow:
    units = [unit for unit in real_units(row.units) if unit.name in counted]
    ledger = mean_ledger([unit.ledger for unit in units])
    return RecordRow(
        rank=digest.rank,
        host=digest.host,
        device=row.device,
        device_name=row.device_name,
        wall_ns=ledger.wall_ns if units else NOT_RECORDED,
        objects=_times(ledger),
        idle_ns={reason: time_ns for reason, time_ns in ledger.idle_ns.items() if time_ns},
        stages=_mean_stages(units),
        walls_ns=[unit.ledger.wall_ns for unit in units],
    )


def _times(ledger: Ledger) -> dict[str, RecordTime]:
    """Return what the objects took; those that are not there are zero, and left out."""
    times = {name: _time(time) for name, time in ledger.objects.items()}
    return {name: time for name, time in times.items() if time.exposed_ns or _is_some(time.service_ns)}


def _time(time: ObjectTime) -> RecordTime:
    figures: dict[str, Any] = {}
    for field in ("service_ns", "hidden_ns", "waiting_ns"):
        value = getattr(time, field)
        if isinstance(value, int | Unknown):
            figures[field] = value
    return RecordTime(time.exposed_ns, **figures)


def _is_some(service: int | Unknown) -> bool:
    return bool(service) if isinstance(service, int) else service is not NOT_RECORDED


def _mean_stages(units: Sequence[UnitDigest]) -> dict[str, RecordStage]:
    names = dict.fromkeys(name for unit in units for name in unit.stages)
    return {name: _mean_stage([unit.stages.get(name) for unit in units]) for name in names}


def _mean_stage(times: Sequence[StageTime | None]) -> RecordStage:
    walls = [time.wall_ns if time is not None else 0 for time in times]
    busy = [time.busy_ns if time is not None else 0 for time in times]
    return RecordStage(mean_ns(walls), mean_ns(busy))


def _collectives(entries: Iterable[CollectiveEntry], *, n_units: int, n_rows: int) -> list[RecordCollective]:
    """Join the entries of one kind and role; the report's sums become means over units and rows."""
    joined: dict[tuple[str, str], list[CollectiveEntry]] = {}
    for entry in entries:
        joined.setdefault((entry.kind, entry.role), []).append(entry)
    if not n_units or not n_rows:
        return []
    result = []
    for (kind, role), several in joined.items():
        parts = n_units * n_rows
        waits = [entry.skew_ns for entry in several]
        sizes = [entry.bytes for entry in several]
        result.append(
            RecordCollective(
                kind=kind,
                role=role,
                count=sum(entry.count for entry in several) / n_units,
                bytes=sum(s for s in sizes if isinstance(s, int)) // n_units
                if all(isinstance(s, int) for s in sizes)
                else NOT_RECORDED,
                exposed_ns=sum(entry.exposed_ns for entry in several) // parts,
                duration_ns=sum(entry.duration_ns for entry in several) // parts,
                waiting_ns=sum(w for w in waits if isinstance(w, int)) // parts
                if all(isinstance(w, int) for w in waits)
                else _NOT_SPLIT,
            )
        )
    return sorted(result, key=lambda entry: (-entry.exposed_ns, entry.kind))


def _environment(digests: list[RankDigest], report: Report) -> RecordEnvironment:
    """Sort what is known into the three classes; what is not named here may shift figures."""
    kinds = sorted({row.device.partition(":")[0] for digest in digests for row in digest.rows})
    known = {**report.run.environment, "device_kind": kinds[0] if len(kinds) == 1 else kinds}
    hosts = sorted({digest.host for digest in digests if digest.host})
    informational = {name: known[name] for name in _INFORMATIONAL if name in known}
    return RecordEnvironment(
        must_match={name: known[name] for name in _MUST_MATCH if name in known},
        should_match={n: value for n, value in known.items() if n not in _MUST_MATCH and n not in _INFORMATIONAL},
        informational=informational | ({"hosts": hosts} if hosts else {}),
    )


def _contract(digests: list[RankDigest], steady: Steady, counted: set[str]) -> RecordContract:
    """Read from the record what a unit computes: shapes, sizes and bytes, by which a changed batch is noticed."""
    first = min(digests, key=lambda digest: digest.rank).rows[0]
    shapes = {
        row.name: sorted(shape.input_dims for shape in row.shapes)
        for row in first.operators
        # Only where all calls are told of: which three of many shapes are kept depends on their times.
        if row.shapes
        and sum(shape.count for shape in row.shapes) == row.count
        and all(len(shape.input_dims) <= _SHAPE_CHARS for shape in row.shapes)
    }
    n_units = len([unit for unit in real_units(first.units) if unit.name not in steady.moved])
    return RecordContract(
        shapes=shapes or None,
        elements_per_unit=_elements(digests, counted),
        input_bytes_per_unit=_input_bytes(digests, n_units),
    )


def _elements(digests: list[RankDigest], counted: set[str]) -> int | None:
    total = 0
    for digest in digests:
        units = [unit.elements for unit in real_units(digest.rows[0].units) if unit.name in counted]
        if not units or min(units) < 0:
            return None
        total += median_ns(units)
    return total


def _input_bytes(digests: list[RankDigest], n_units: int) -> int | None:
    copies = [
        copy.size_bytes for digest in digests for row in digest.rows for copy in row.copies if copy.object == "input"
    ]
    return sum(copies) // n_units if n_units and sum(copies) else None
