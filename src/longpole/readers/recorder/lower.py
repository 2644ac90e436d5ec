"""From the processes of a host to the timelines of the ranks that ran on it.

The main process's main thread carries the units. A span is a row of its thread with what the program said of it; a
collective of which the recorder saw both marks is a span of its thread, or of a thread of its own where the call
returned before the collective was done. Nothing is guessed from names here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from longpole.readers.recorder.collectives import lower_collectives
from longpole.readers.recorder.complaints import complain
from longpole.readers.recorder.decode import TIME_MAX_NS
from longpole.readers.recorder.processes import Member, Record, records_of
from longpole.readers.recorder.queues import queue_uses
from longpole.readers.recorder.rows import DeviceRow, HostRow, Rows, shown
from longpole.records.credentials import redact
from longpole.records.program import ProcessFile, ProgramRecord
from longpole.records.span_file import DeviceLine, SpanLine, UnitLine
from longpole.timeline.columns import NONE_ID, Kind
from longpole.timeline.placing import strays
from longpole.timeline.tables import DeviceTable, FlowTable, HostTable, Sparse
from longpole.timeline.timeline import Identity, Source, Timeline
from longpole.timeline.told import Told
from longpole.vocabulary.declared import MARKER, Declared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.readers.recorder.decode import Process
    from longpole.settings import Settings

FORMAT: Final = "longpole.spans"
_VERSION: Final = "1"
_STREAM_MAX: Final = 1 << 62
_DEVICE_MAX: Final = 1 << 31


def lower(processes: Sequence[Process], settings: Settings) -> list[Timeline]:
    """Build the timelines of the ranks that some processes of one host make up.

    Args:
        processes: What each wrote, at least one.
        settings: Thresholds of placing.

    Returns:
        One timeline for each run of a rank; a job that was started again in the same folder makes two of one rank.
    """
    made = (_timeline(record, settings) for record in records_of(list(processes)))
    return [timeline for timeline in made if len(timeline.host) or len(timeline.device)]


@dataclass(slots=True)
class _Unit:
    """A unit of the main process: its row before sorting, and its items."""

    row: int
    items: int


def _timeline(record: Record, settings: Settings) -> Timeline:
    rows = Rows()
    units: list[_Unit] = []
    main = record.main
    header = main.file.header
    main_track = rows.track(header.pid, header.main_thread, _thread_name(main, header.main_thread, is_main=True))
    impossible = 0
    for member in record.members:
        impossible += _lower_process(rows, member, units if member.process is main else None)
    n_strays = _drop_strays(rows, units, settings)
    said = lower_collectives(rows, record.members)
    host, place = rows.host_table()
    unit_rows = np.array([place[unit.row] for unit in units], np.int64)
    order = np.argsort(unit_rows)
    program = ProgramRecord(
        item_kind=shown(header.item_kind),
        beside=[_beside(member.process) for member in record.members[1:]],
        closed=main.file.close is not None,
        last_ns=main.last_ns,
        whole=not (main.file.lost or main.file.damaged_lines),
        queues=queue_uses(record.members),
        groups=said.groups,
    )
    return Timeline(
        identity=Identity(record.rank, record.rank_assumed, _world_size(record), shown(header.host)),
        source=_source(main),
        base_ns=main.epoch_ns(0),
        names=tuple(rows.names),
        tracks=tuple(rows.tracks),
        host=host,
        device=rows.device_table(),
        tasks=DeviceTable.empty(),
        aside=HostTable.empty(),
        flows=FlowTable.empty(),
        input_dims=_nothing(),
        call_stacks=_nothing(),
        backward=np.empty(0, np.int64),
        collectives=tuple(said.args(place)),
        main_track=main_track,
        environment=_environment(header.environment, header.program),
        findings=tuple(complain(record, impossible + n_strays, said.n_halves)),
        told=Told(
            names=rows.said,
            units=unit_rows[order],
            items=np.array([unit.items for unit in units], np.int64)[order],
            main_track=main_track,
            program=program,
        ),
    )


def _lower_process(rows: Rows, member: Member, units: list[_Unit] | None) -> int:
    """Lower a process's units, spans and device spans; return how many have impossible times."""
    file, shift_ns = member.process.file, member.shift_ns
    impossible = 0
    for number, unit in zip(file.numbers.get(UnitLine, ()), file.units, strict=True):
        if unit.s + unit.d > TIME_MAX_NS:
            impossible += 1
            continue
        # Units of a process that works for another one are spans that only have a name.
        said = Declared(MARKER) if units is not None else Declared()
        if units is not None:
            units.append(_Unit(len(rows.host), unit.items if unit.items is not None else -1))
        rows.host.append(_row(rows, member, unit, (said, Kind.ANNOTATION), number))
    for number, span in zip(file.numbers.get(SpanLine, ()), file.spans, strict=True):
        if span.s + span.d > TIME_MAX_NS:
            impossible += 1
            continue
        said = Declared(span.o, span.stage, span.waits)
        kind = Kind.OPERATOR if span.o == "compute" else Kind.ANNOTATION
        rows.host.append(_row(rows, member, span, (said, kind), number))
    stages = {span.n: span.stage for span in file.spans if span.stage}
    for number, line in zip(file.numbers.get(DeviceLine, ()), file.devices, strict=True):
        if line.s + line.d > TIME_MAX_NS or not 0 <= line.device < _DEVICE_MAX or not 0 <= line.stream < _STREAM_MAX:
            impossible += 1
            continue
        said = Declared(line.o, stages.get(line.n, ""))
        rows.device.append(
            DeviceRow(
                line.s + shift_ns,
                line.s + line.d + shift_ns,
                rows.name(line.n, said),
                line.device,
                line.stream,
                Kind.KERNEL if line.o in ("", "compute", "collective", "host") else Kind.COPY,
                line.b if line.b is not None else NONE_ID,
                number,
            )
        )
    return impossible


def _row(rows: Rows, member: Member, line: UnitLine | SpanLine, what: tuple[Declared, Kind], number: int) -> HostRow:
    process = member.process
    thread = rows.track(process.file.header.pid, line.t, _thread_name(process, line.t))
    start_ns = line.s + member.shift_ns
    return HostRow(start_ns, start_ns + line.d, rows.name(line.n, what[0]), thread, what[1], number)


def _thread_name(process: Process, thread: int, *, is_main: bool = False) -> str:
    """Return the name of a thread, with its process where that is not the main one."""
    header = process.file.header
    name = next((line.n for line in process.file.threads if line.t == thread), "")
    if is_main:
        return name or "main thread"
    if header.role:
        number = f" {header.worker}" if header.worker is not None else ""
        return f"{header.role.replace('_', ' ')}{number}: {name or thread}"
    return name or f"thread {thread}"


def _drop_strays(rows: Rows, units: list[_Unit], settings: Settings) -> int:
    """Leave out rows that lie absurdly far from the record; return how many."""
    spans = [*((row.start_ns, row.end_ns) for row in rows.host), *((row.start_ns, row.end_ns) for row in rows.device)]
    times = np.array(spans, np.int64).reshape(-1, 2)
    far = strays(times[:, 0].copy(), times[:, 1].copy(), settings)
    if not far.any():
        return 0
    kept = ~far[: len(rows.host)]
    new_place = np.cumsum(kept) - 1
    units[:] = [_Unit(int(new_place[unit.row]), unit.items) for unit in units if kept[unit.row]]
    rows.drop(far[: len(rows.host)], far[len(rows.host) :])
    return int(far.sum())


def _world_size(record: Record) -> int | None:
    """Return how many ranks the job has; one that knows no rank, and is alone, has one."""
    said = record.main.file.world_size
    return 1 if said is None and record.main.file.rank is None and not record.rank_assumed else said


def _source(main: Process) -> Source:
    return Source(
        path=main.path,
        format=FORMAT,
        version=_VERSION,
        size_bytes=main.size_bytes,
        n_events=main.n_lines,
        n_skipped=main.n_left_out,
        n_repaired=0,
    )


def _beside(process: Process) -> ProcessFile:
    return ProcessFile(process.path, process.size_bytes, process.n_lines, process.n_left_out)


def _environment(written: dict[str, Any], program: str) -> dict[str, Any]:
    """Return what a header says of versions and devices, and nothing that is not plain."""
    plain = {
        shown(key): redact(value)[:_VALUE_CHARS] if isinstance(value, str) else value
        for key, value in written.items()
        if isinstance(value, str | int | float | bool)
    }
    return plain | ({"program": shown(program)} if program else {})


_VALUE_CHARS: Final = 256


def _nothing() -> Sparse:
    return Sparse(np.empty(0, np.int64), np.empty(0, np.int32), ())
