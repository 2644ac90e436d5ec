"""What compares ranks, as flat rows: for CSV files and for the library's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from longpole.records.ledger import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from longpole.records.collectives import CollectiveEntry, LinkRow, StragglerEntry
    from longpole.report.document import ClockEntry, Report

Cell: TypeAlias = str | int | float | bool | None
Row: TypeAlias = dict[str, Cell]
T = TypeVar("T")

_COLLECTIVES: Final = (
    "kind",
    "group",
    "role",
    "members",
    "members_present",
    "dtype",
    "count",
    "count_split",
    "bytes",
    "duration_ns",
    "exposed_ns",
    "split",
    "transfer_ns",
    "waiting_ns",
    "why_unknown",
    "algbw_gb_per_s",
    "busbw_gb_per_s",
    "rate_from",
    "bound",
    "alpha_ns",
    "gamma",
    "model_gb_per_s",
    "model_source",
    "culprit_rank",
    "culprit_share",
)
_SIZES: Final = ("kind", "group", "members", "dtype", "bytes", "count", "duration_ns", "exposed_ns", "transfer_ns")
_WAITS: Final = ("kind", "group", "members", "dtype", "rank", "for_rank", "waiting_ns", "count")
_CLOCKS: Final = ("rank", "offset_ns", "uncertainty_ns", "method", "drift", "why_unknown")
_STRAGGLERS: Final = ("rank", "reason", "caused_ns_per_unit", "late_ns", "share", "in_units", "evidence", "says")
_LINKS: Final = ("from_rank", "to_rank", "count", "bytes", "transfer_ns", "gb_per_s", "slow")


def cross_rank_tables(
    report: Report, write: Callable[[tuple[str, ...], Iterator[tuple[Cell, ...]]], T]
) -> dict[str, T]:
    """Make the tables that compare ranks: name -> table."""
    entries = report.collectives
    tables: dict[str, tuple[tuple[str, ...], list[Row]]] = {
        "collectives": (_COLLECTIVES, [collective_row(entry) for entry in entries]),
        "collective_sizes": (_SIZES, [row for entry in entries for row in size_rows(entry)]),
        "waits": (_WAITS, [row for entry in entries for row in wait_rows(entry)]),
        "clocks": (_CLOCKS, [clock_row(entry) for entry in report.clock]),
        "stragglers": (_STRAGGLERS, [straggler_row(entry) for entry in report.stragglers]),
        "links": (_LINKS, [link_row(row) for row in report.links]),
    }
    return {
        name: write(header, (tuple(row[column] for column in header) for row in rows))
        for name, (header, rows) in tables.items()
    }


def _known(value: Any) -> Any:
    return None if isinstance(value, Unknown) else value


def _ranks(ranks: list[int]) -> str:
    return " ".join(map(str, ranks))


def collective_row(entry: CollectiveEntry) -> Row:
    """Return one kind of collectives as a flat row; what is not known is None."""
    model = entry.model if not isinstance(entry.model, Unknown) else None
    return {
        "kind": entry.kind,
        "group": entry.group,
        "role": entry.role,
        "members": _ranks(entry.members),
        "members_present": _ranks(entry.members_present),
        "dtype": entry.dtype,
        "count": entry.count,
        "count_split": entry.count_split,
        "bytes": _known(entry.bytes),
        "duration_ns": entry.duration_ns,
        "exposed_ns": entry.exposed_ns,
        "split": entry.split,
        "transfer_ns": _known(entry.transfer_ns),
        "waiting_ns": _known(entry.skew_ns),
        "why_unknown": entry.skew_ns.unknown if isinstance(entry.skew_ns, Unknown) else "",
        "algbw_gb_per_s": _known(entry.algbw_gb_per_s),
        "busbw_gb_per_s": _known(entry.busbw_gb_per_s),
        "rate_from": entry.rate_from,
        "bound": entry.bound,
        "alpha_ns": model.alpha_ns if model else None,
        "gamma": model.gamma if model else None,
        "model_gb_per_s": model.gb_per_s if model else None,
        "model_source": model.source if model else "",
        "culprit_rank": _known(entry.culprit_rank),
        "culprit_share": _known(entry.culprit_share),
    }


def _of(entry: CollectiveEntry) -> Row:
    return {"kind": entry.kind, "group": entry.group, "members": _ranks(entry.members), "dtype": entry.dtype}


def size_rows(entry: CollectiveEntry) -> list[Row]:
    """Return one row for each size of one kind of collectives."""
    return [
        {
            **_of(entry),
            "bytes": row.bytes,
            "count": row.count,
            "duration_ns": row.duration_ns,
            "exposed_ns": row.exposed_ns,
            "transfer_ns": _known(row.transfer_ns),
        }
        for row in entry.by_size
    ]


def wait_rows(entry: CollectiveEntry) -> list[Row]:
    """Return who waited for whom in one kind of collectives."""
    return [
        {
            **_of(entry),
            "rank": row.rank,
            "for_rank": row.for_rank,
            "waiting_ns": row.waiting_ns,
            "count": row.count,
        }
        for row in entry.waits
    ]


def clock_row(entry: ClockEntry) -> Row:
    """Return one rank's clock."""
    unknown = [value for value in (entry.offset_ns, entry.uncertainty_ns) if isinstance(value, Unknown)]
    return {
        "rank": entry.rank,
        "offset_ns": _known(entry.offset_ns),
        "uncertainty_ns": _known(entry.uncertainty_ns),
        "method": entry.method,
        "drift": entry.drift,
        "why_unknown": unknown[0].unknown if unknown else "",
    }


def straggler_row(entry: StragglerEntry) -> Row:
    """Return one late rank."""
    return {
        "rank": entry.rank,
        "reason": entry.reason,
        "caused_ns_per_unit": entry.caused_ns_per_unit,
        "late_ns": entry.late_ns,
        "share": entry.share,
        "in_units": "; ".join(entry.in_units),
        "evidence": "; ".join(f"{name}={time_ns}" for name, time_ns in entry.evidence.items()),
        "says": entry.says,
    }


def link_row(row: LinkRow) -> Row:
    """Return what one rank sent another."""
    return {
        "from_rank": row.from_rank,
        "to_rank": row.to_rank,
        "count": row.count,
        "bytes": _known(row.bytes),
        "transfer_ns": _known(row.transfer_ns),
        "gb_per_s": _known(row.gb_per_s),
        "slow": row.slow,
    }
