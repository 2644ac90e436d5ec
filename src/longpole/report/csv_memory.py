"""What each row's memories held, over the record and in every unit, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import UnsetType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from longpole.report.document import Report

T = TypeVar("T")

_MEMORY: Final = (
    "rank",
    "device",
    "memory",
    "from_start",
    "events",
    "peak_allocated_bytes",
    "peak_reserved_bytes",
    "reserved_at_peak_bytes",
    "capacity_bytes",
)
_UNIT_MEMORY: Final = (
    "rank",
    "device",
    "unit",
    "kind",
    "steady",
    "memory",
    "peak_allocated_bytes",
    "end_allocated_bytes",
    "peak_reserved_bytes",
    "largest_spare_bytes",
)


def memory_tables(report: Report, table: Callable[[tuple[str, ...], Iterator[tuple[Any, ...]]], T]) -> dict[str, T]:
    """Make the tables of what memories held; both are empty without memory records (`profile_memory=True`)."""
    return {
        "memory": table(_MEMORY, _memory_rows(report)),
        "unit_memory": table(_UNIT_MEMORY, _unit_memory_rows(report)),
    }


def _memory_rows(report: Report) -> Iterator[tuple[Any, ...]]:
    for row in report.ranks:
        for held in row.memory:
            sizes = (held.peak_reserved_bytes, held.reserved_at_peak_bytes, held.capacity_bytes)
            cells = (held.memory, held.from_start, held.events, held.peak_allocated_bytes)
            yield row.rank, row.device, *cells, *map(_written, sizes)


def _unit_memory_rows(report: Report) -> Iterator[tuple[Any, ...]]:
    for row in report.ranks:
        for unit in row.units:
            for held in unit.memory:
                which = (row.rank, row.device, unit.name, unit.kind, unit.steady, held.memory)
                sizes = (held.peak_reserved_bytes, held.largest_spare_bytes)
                yield *which, held.peak_allocated_bytes, held.end_allocated_bytes, *map(_written, sizes)


def _written(amount: int | UnsetType) -> int | None:
    return None if isinstance(amount, UnsetType) else amount
