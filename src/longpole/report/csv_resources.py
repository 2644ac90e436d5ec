"""The resource-time matrix, what is missing from it, pairs that ran at once and the indicators, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import UnsetType

from longpole.records.ledger import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from longpole.records.resources import Resources
    from longpole.report.document import Report

T = TypeVar("T")

_MATRIX: Final = (
    "kind",
    "name",
    "family",
    "stage",
    "dtype",
    "calls",
    "device_ns",
    "time_share",
    "bound_by",
    "bound_by_unknown",
    "next_bound",
    "headroom",
    "column",
    "unit",
    "demand",
    "demand_unknown",
    "share",
    "achievable_share",
    "at_least",
)
_UNCOUNTED: Final = ("name", "why", "kernels", "device_ns", "time_share")
_CONTENTION: Final = (
    "first",
    "second",
    "together_ns",
    "column",
    "column_unknown",
    "demand_share",
    "first_slowdown",
    "second_slowdown",
)
_INDICATORS: Final = (
    "stage",
    "wall_ns",
    "busy_share",
    *(f"{name}_{part}" for name in ("compute", "memory", "link") for part in ("share", "unknown", "achievable_share")),
    "covered_share",
    "bound_class",
    "bound_class_unknown",
)


def resource_tables(report: Report, table: Callable[[tuple[str, ...], Iterator[tuple[Any, ...]]], T]) -> dict[str, T]:
    """Make the tables; a report without a matrix gives them without rows.

    Args:
        report: The report.
        table: Makes a table of its columns and its rows.
    """
    found = report.resources if not isinstance(report.resources, Unknown) else None
    return {
        "resources": table(_MATRIX, _matrix_rows(found)),
        "uncounted": table(_UNCOUNTED, _uncounted_rows(found)),
        "contention": table(_CONTENTION, _contention_rows(found)),
        "indicators": table(_INDICATORS, _indicator_rows(found)),
    }


def _matrix_rows(found: Resources | None) -> Iterator[tuple[Any, ...]]:
    """Yield a line for each cell."""
    units = {column.name: column.unit for column in found.columns} if found else {}
    for row in found.rows if found else ():
        front = (row.kind, row.name, row.family, row.stage, row.dtype, row.calls, row.device_ns, row.time_share)
        bounds = (*_known(row.bound_by), _given(row.next_bound), _given(row.headroom))
        for column, cell in row.cells.items():
            shares = (_given(cell.share), _given(cell.achievable_share), _given(cell.at_least))
            yield *front, *bounds, column, units[column], *_known(cell.demand), *shares


def _uncounted_rows(found: Resources | None) -> Iterator[tuple[Any, ...]]:
    for one in found.uncounted if found else ():
        yield one.name, one.why, one.kernels, one.device_ns, one.time_share


def _contention_rows(found: Resources | None) -> Iterator[tuple[Any, ...]]:
    for one in found.contention if found else ():
        rest = (_given(one.demand_share), _given(one.first_slowdown), _given(one.second_slowdown))
        yield one.first, one.second, one.together_ns, *_known(one.column), *rest


def _indicator_rows(found: Resources | None) -> Iterator[tuple[Any, ...]]:
    for one in found.indicators if found else ():
        three: list[Any] = []
        for indicator in (one.compute, one.memory, one.link):
            three += [*_known(indicator.share), _given(indicator.achievable_share)]
        yield one.stage, one.wall_ns, one.busy_share, *three, one.covered_share, *_known(one.bound_class)


def _known(value: Any) -> tuple[Any, str]:
    """Return a value and why it is not known: one of the two is empty."""
    return (None, value.unknown) if isinstance(value, Unknown) else (_given(value), "")


def _given(value: Any) -> Any:
    return None if isinstance(value, UnsetType) else value
