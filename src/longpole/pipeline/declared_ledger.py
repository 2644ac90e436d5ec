"""`longpole ledger`: read declared events, bring them to one unit of work, and say what the unit waits for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from longpole.costs.declared_events import NOTHING_SAID, DeclaredEvent, Lifecycle, measure_ledger
from longpole.costs.measured_path import MeasuredPath, PathPiece
from longpole.errors import InputError
from longpole.pipeline.version import package_version
from longpole.readers.declared_events.check import EventFile, check_file, read_events
from longpole.readers.declared_events.raw import RawEvent, RawFile
from longpole.records.bench_io import SCHEMA as IO_SCHEMA
from longpole.records.bench_io import BenchIo
from longpole.records.ledger import Unknown
from longpole.report.declared_ledger import make_declared_ledger
from longpole.units import NS_PER_MS, format_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from longpole.records.bench_io import IoPath
    from longpole.report.declared_ledger import DeclaredLedger

_CALLED_BY_A_PROGRAM: Final = "events"
_NAME_ONE: Final = "Name a record that longpole bench io wrote"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerOptions:
    """What is said beside the events.

    Attributes:
        lifecycle: Over what their file says of it, key by key.
        paths: A record of `longpole bench io`, whose paths events may name.
    """

    lifecycle: Lifecycle = NOTHING_SAID
    paths: str | None = None


def build_ledger(
    events: str | Sequence[DeclaredEvent | Mapping[str, object]], options: LedgerOptions
) -> DeclaredLedger:
    """Say what declared events take of one unit of work.

    Args:
        events: A file, `-` for standard input; or the events themselves.
        options: What else is said.

    Raises:
        InputError: The file or the record of paths cannot be read, or something that is declared is wrong: event and
            key are named.
    """
    measured = read_paths(options.paths) if options.paths is not None else None
    declared = read_events(events, measured) if isinstance(events, str) else _checked(events, measured)
    source = events if isinstance(events, str) else ""
    said = {name: getattr(options.lifecycle, name) for name in Lifecycle.__dataclass_fields__}
    lifecycle = Lifecycle(**declared.lifecycle | {name: value for name, value in said.items() if value is not None})
    try:
        ledger = measure_ledger(declared.events, lifecycle)
    except InputError as error:
        raise InputError(f"{source}: {error}" if source else str(error)) from None
    return make_declared_ledger(
        declared.events,
        ledger,
        lifecycle,
        version=package_version(),
        source=source,
        paths=declared.paths,
        notes=_beyond(declared, measured or {}),
    )


def _checked(
    events: Sequence[DeclaredEvent | Mapping[str, object]], measured: Mapping[str, MeasuredPath] | None
) -> EventFile:
    """Check events that a program hands over; those that are declared already were."""
    values = [
        {name: value for name in DeclaredEvent.__dataclass_fields__ if (value := getattr(event, name)) is not None}
        if isinstance(event, DeclaredEvent)
        else dict(event)
        for event in events
    ]
    return check_file(RawFile(events=[RawEvent(values=each) for each in values]), _CALLED_BY_A_PROGRAM, measured)


def _beyond(declared: EventFile, measured: Mapping[str, MeasuredPath]) -> list[str]:
    """Say where a path's law is used for sizes at which it was not measured."""
    notes = []
    for number, (event, name) in enumerate(zip(declared.events, declared.paths, strict=True), 1):
        moved_bytes = event.bytes if event.stored_bytes is None else event.stored_bytes
        if name and not measured[name].was_measured_at(moved_bytes):
            path = measured[name]
            sizes = f"{format_bytes(path.least_bytes)} to {format_bytes(path.most_bytes)}"
            notes.append(f"event {number}: {name} was measured from {sizes}; for this size it is extrapolated")
    return notes


def read_paths(file: str) -> dict[str, MeasuredPath]:
    """Read the paths of a record of `longpole bench io`, name -> path; those that cannot be used say why.

    Raises:
        InputError: It cannot be read, or is no such record.
    """
    try:
        record = msgspec.json.decode(Path(file).read_bytes(), type=BenchIo)
    except OSError as error:
        raise InputError.at(
            file, None, f"cannot be read: {error.strerror}", "Name a record of longpole bench io"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        found = f"expected a record of longpole bench io ({IO_SCHEMA}); found: {error}"
        raise InputError.at(file, None, found, _NAME_ONE) from None
    paths = {path.name: _measured(path) for path in record.paths}
    skipped = {
        path.name: MeasuredPath(name=path.name, pieces=(), problem=f"{path.name} was not measured: {path.reason}")
        for path in record.skipped
    }
    return skipped | paths


def _measured(path: IoPath) -> MeasuredPath:
    """Turn a path's law into a cost; one that does not hold says why."""
    if path.evidence != "measured":
        return _unusable(path, f"its samples are {path.evidence}{f': {path.reason}' if path.reason else ''}")
    if path.model.status != "fitted" or not path.model.pieces:
        why = f": {path.model.says}" if path.model.says else ""
        return _unusable(path, f"its model is {path.model.status.replace('_', ' ')}{why}")
    pieces: list[PathPiece] = []
    for piece in path.model.pieces:
        if isinstance(piece.gb_per_s, Unknown):
            return _unusable(path, f"its bandwidth is not known: {piece.gb_per_s.unknown}")
        begins = path.model.break_bytes if pieces and path.model.break_bytes is not None else piece.from_bytes
        pieces.append(
            PathPiece(
                from_bytes=begins if pieces else 0,
                latency_ms=piece.latency_ns / NS_PER_MS,
                bandwidth_gbps=piece.gb_per_s,
            )
        )
    return MeasuredPath(
        name=path.name,
        pieces=tuple(pieces),
        least_bytes=min(piece.from_bytes for piece in path.model.pieces),
        most_bytes=max(piece.to_bytes for piece in path.model.pieces),
    )


def _unusable(path: IoPath, why: str) -> MeasuredPath:
    return MeasuredPath(name=path.name, pieces=(), problem=f"{path.name} cannot be used: {why}")


def declared_ledger(
    events: str | PathLike[str] | Sequence[DeclaredEvent | Mapping[str, Any]],
    *,
    requests_per_unit: float | None = None,
    tokens_per_unit: float | None = None,
    units_per_run: float | None = None,
    paths: str | PathLike[str] | None = None,
) -> DeclaredLedger:
    """Say what declared operations take of one unit of work, and what the unit waits for.

    Args:
        events: A file of declared events (JSON, TOML or CSV), or the events: each with the keys of the file, or a
            `longpole.costs.declared_events.DeclaredEvent`.
        requests_per_unit: Requests that are served in a unit, over what the file says.
        tokens_per_unit: Tokens that are processed in a unit, over what the file says.
        units_per_run: Units of a run, over what the file says.
        paths: A record of `longpole bench io`, whose paths events may name.

    Raises:
        InputError: Something cannot be read, or is declared wrongly: event and key are named.
    """
    lifecycle = Lifecycle(
        requests_per_unit=requests_per_unit, tokens_per_unit=tokens_per_unit, units_per_run=units_per_run
    )
    options = LedgerOptions(lifecycle=lifecycle, paths=None if paths is None else os.fspath(paths))
    given = os.fspath(events) if isinstance(events, str) or hasattr(events, "__fspath__") else list(events)
    return build_ledger(given, options)
