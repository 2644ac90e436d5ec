"""The rows of the resource-time matrix: operators, collectives and copies, and what each asks of the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, UnsetType

from longpole.records.ledger import Unknown
from longpole.records.resources import Cell, MatrixRow
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from longpole.digest.rank_digest import RankDigest, RowDigest
    from longpole.records.collectives import CollectiveEntry
    from longpole.records.operator_work import OperatorWork
    from longpole.report.resource_peaks import Peaks

EXPLAINS_MIN: Final = 0.1  # a column that needs less of a row's time does not explain it (our choice)
POSSIBLE_MAX: Final = 1.05  # a larger share cannot be: the demand, the peak or the place it is served from is another
ROWS_KEPT: Final = 60
COPY_COLUMN: Final = {"htod": "pcie", "dtoh": "pcie", "dtod": "hbm", "memset": "hbm", "ptop": "scale_up"}
_BOUNDS: Final = ("tensor", "vector", "hbm", "scale_up", "scale_out", "pcie")
_ON_DEVICE: Final = ("tensor", "vector", "hbm")
_NO_COUNT: Final = Unknown("its shapes do not tell its FLOPs", [])
_NO_BYTES: Final = Unknown("its shapes or element types do not tell its bytes", ["record_shapes=True"])
_NO_SIZE: Final = Unknown("sizes of copies were not recorded", [])
_ONLY_BOUND: Final = Unknown("of its bytes only a lower bound is known", [])
NO_HOSTS: Final = Unknown("whether its members share a host is not recorded", ["host_name"])
NO_ADAPTER: Final = Unknown("no table holds the rate of network adapters", [])


def merged_operators(rows: Iterable[RowDigest]) -> list[OperatorWork]:
    """Add up what rows did, by operator, stage, element type and what is known; the longest first."""
    total: dict[tuple[object, ...], OperatorWork] = {}
    for row in rows:
        for one in row.work.operators:
            known = (one.flops is None, one.moved_bytes is None, one.at_least)
            key = (one.name, one.stage, one.dtype, one.processor, *known)
            mine = total.get(key)
            if mine is None:
                total[key] = msgspec.structs.replace(one)
                continue
            for name in ("calls", "kernels", "device_ns", "host_ns", "occupancy_ns", "occupied_ns"):
                setattr(mine, name, getattr(mine, name) + getattr(one, name))
            mine.flops = None if mine.flops is None or one.flops is None else mine.flops + one.flops
            if mine.moved_bytes is not None and one.moved_bytes is not None:
                mine.moved_bytes += one.moved_bytes
    return sorted(total.values(), key=lambda one: (-one.device_ns, one.name, one.stage, one.dtype))


def operator_row(one: OperatorWork, peaks: Peaks, compute_ns: int, waiting: set[str]) -> MatrixRow:
    """Return an operator's row.

    Args:
        one: What it did.
        peaks: Of its device.
        compute_ns: Durations of all compute kernels.
        waiting: Stages in which the device mostly waits: there issuing a call may bound it. Elsewhere the host is
            ahead, and what a call takes on it costs nothing.

    A call whose issuing takes no longer than its kernels does not bound them either.
    """
    cells: dict[str, Cell] = {}
    if one.flops is None:
        cells[one.processor] = Cell(_NO_COUNT)
    elif one.flops:
        cells[one.processor] = rate_cell(one.flops, one.device_ns, peaks, one.processor, one.dtype)
    if one.moved_bytes is None:
        cells["hbm"] = Cell(_NO_BYTES)
    elif one.moved_bytes:
        cells["hbm"] = rate_cell(one.moved_bytes, one.device_ns, peaks, "hbm")
        cells["hbm"].at_least = one.at_least or UNSET
    if one.occupied_ns:
        filled = one.occupancy_ns / one.occupied_ns
        cells["occupancy"] = Cell(filled, filled)
    if one.device_ns:
        issuing = one.host_ns / one.device_ns
        cells["host"] = Cell(float(one.host_ns), issuing)
    row = MatrixRow(
        name=one.name,
        kind="operator",
        family=one.family,
        stage=one.stage,
        dtype=one.dtype,
        calls=one.calls,
        device_ns=one.device_ns,
        time_share=one.device_ns / compute_ns if compute_ns else 0.0,
        cells=cells,
    )
    return name_bounds(row, peaks, by_host=one.stage in waiting)


def collective_row(entry: CollectiveEntry, peaks: Peaks, hosts: dict[int, str], compute_ns: int) -> MatrixRow:
    """Return the row of one kind of collectives in one group.

    Its demand is bus bytes (nccl-tests): what each member's link carries. The share is of the time that the bytes moved
    in; where waiting could not be told from moving, of the shortest member's whole time, which makes it a lower bound.
    Memory is read for each byte that is sent and written for each that is received: twice the bus bytes of a ring.
    """
    column, between = link_column(entry, hosts)
    rate = entry.busbw_gb_per_s
    cells = {}
    if isinstance(rate, Unknown):
        cells[column] = Cell(rate)
    else:
        moving_ns = entry.transfer_ns if isinstance(entry.transfer_ns, int) else 0
        demand: float | Unknown = rate * moving_ns if moving_ns else Unknown("its transfers are not known", [])
        cells[column] = Cell(demand, *((UNSET, UNSET) if between else _rate_shares(rate, peaks, column)))
        twice = demand if isinstance(demand, Unknown) else 2 * demand
        cells["hbm"] = Cell(twice, *_rate_shares(2 * rate, peaks, "hbm"))
    row = MatrixRow(
        name=f"{entry.kind} {entry.group}".strip(),
        kind="collective",
        family=entry.kind,
        stage=entry.by_stage[0].stage if len(entry.by_stage) == 1 else "",
        dtype=entry.dtype,
        calls=entry.count,
        device_ns=entry.duration_ns,
        time_share=entry.duration_ns / compute_ns if compute_ns else 0.0,
        cells=cells,
    )
    return name_bounds(row, peaks)


def _rate_shares(gb_per_s: float, peaks: Peaks, column: str) -> tuple[float | UnsetType, float | UnsetType]:
    peak = peaks.of_column(column)
    theory, achievable = (
        UNSET if isinstance(one, Unknown) else gb_per_s * 10**9 / one for one in (peak.per_s, peak.achievable_per_s)
    )
    return theory, achievable


def link_column(entry: CollectiveEntry, hosts: Mapping[int, str]) -> tuple[str, bool]:
    """Return which link a group's bytes cross, a host's own or that between hosts, and whether its share is unknown."""
    return link_of(entry.members or entry.members_present, hosts)


def link_of(members: Sequence[int], hosts: Mapping[int, str]) -> tuple[str, bool]:
    """Return which link bytes between ranks cross, as `link_column` does."""
    names = {hosts.get(rank, "") for rank in members}
    if "" in names or not names:
        return "scale_up", True
    return ("scale_up", False) if len(names) == 1 else ("scale_out", True)


def copy_rows(rows: Sequence[RowDigest], peaks: Peaks, compute_ns: int) -> list[MatrixRow]:
    """Return one row for each direction of copies."""
    total: dict[str, list[int]] = {}
    for row in rows:
        for one in row.copies:
            held = total.setdefault(one.direction or "unknown", [0, 0, 0])
            held[0] += one.count
            held[1] += max(one.size_bytes, 0)
            held[2] += one.sum_ns
    found = []
    for direction, (count, size_bytes, sum_ns) in total.items():
        column = COPY_COLUMN.get(direction)
        cells = {}
        if column is not None and size_bytes:
            moved = size_bytes * (2 if direction == "dtod" else 1)  # within a device bytes are read and written
            cells[column] = rate_cell(moved, sum_ns, peaks, column)
        elif column is not None:
            cells[column] = Cell(_NO_SIZE)
        row_found = MatrixRow(
            name=f"copy {direction}",
            kind="copy",
            family=direction,
            stage="",
            dtype="",
            calls=count,
            device_ns=sum_ns,
            time_share=sum_ns / compute_ns if compute_ns else 0.0,
            cells=cells,
        )
        found.append(name_bounds(row_found, peaks))
    return found


def rate_cell(demand: int, time_ns: int, peaks: Peaks, column: str, dtype: str = "") -> Cell:
    """Return a cell: the time that a demand needs at the column's peak, as a share of the time that it took."""
    peak = peaks.of_column(column, dtype)

    def share(per_s: float | Unknown) -> float | UnsetType:
        return UNSET if isinstance(per_s, Unknown) or not time_ns else demand * NS_PER_S / per_s / time_ns

    return Cell(float(demand), share(peak.per_s), share(peak.achievable_per_s))


def name_bounds(row: MatrixRow, peaks: Peaks, *, by_host: bool = False) -> MatrixRow:
    """Say what bounds a row, what bounds it next, and how much faster it would be at the peak.

    A verdict needs all columns of the device that the row asks: one that is not known may be the one.

    Args:
        row: With its cells.
        peaks: Of its device.
        by_host: Whether the host may be what bounds it.
    """
    if peaks.device is None:
        return row
    asked = {name: cell for name, cell in row.cells.items() if name in _BOUNDS}
    shares = {name: cell.share for name, cell in asked.items() if not isinstance(cell.share, UnsetType)}
    why = _why_no_bound(asked, shares, peaks, row.dtype)
    host = row.cells.get("host")
    if by_host and host is not None and isinstance(host.share, float) and host.share >= 1:
        shares["host"] = host.share  # issuing it takes longer than running it
        why = None
    if why is not None:
        row.bound_by = why
        return row
    ranked = sorted(shares, key=lambda name: -shares[name])
    row.bound_by = ranked[0]
    row.next_bound = ranked[1] if len(ranked) > 1 else UNSET
    is_whole = ranked[0] != "host" and row.cells[ranked[0]].at_least is UNSET
    row.headroom = max(1 / shares[ranked[0]], 1.0) if is_whole else UNSET
    return row


def _why_no_bound(asked: dict[str, Cell], shares: dict[str, float], peaks: Peaks, dtype: str) -> Unknown | None:
    """Return why nothing can be named that bounds a row, None where it can."""
    for name, cell in asked.items():
        if isinstance(cell.demand, Unknown) and name not in shares:
            return cell.demand
        if name not in shares:
            peak = peaks.of_column(name, dtype if name in ("tensor", "vector") else "").per_s
            return peak if isinstance(peak, Unknown) else NO_ADAPTER if name == "scale_out" else NO_HOSTS
    above = next((name for name in _ON_DEVICE if shares.get(name, 0.0) > POSSIBLE_MAX), None)
    if above is not None:
        return Unknown(SHARE_ABOVE[above], [])
    # A demand that may be larger can be named as the bound, but cannot lose to another one.
    most = max(shares, key=lambda name: shares[name], default="")
    if any(cell.at_least is True and name != most for name, cell in asked.items()):
        return _ONLY_BOUND
    if max(shares.values(), default=0.0) < EXPLAINS_MIN:
        return Unknown("no column explains a tenth of its time: short kernels, or a resource without figures here", [])
    return None


SHARE_ABOVE: Final = {
    "hbm": "its bytes need more than the memory's peak: caches served part of them",
    "tensor": "its FLOPs need more than the peak: a library computed fewer, or the peak is another",
    "vector": "its FLOPs need more than the peak: matrix units computed them, or the peak is another",
}


def hosts_of(digests: Sequence[RankDigest]) -> dict[int, str]:
    """Return each rank's host, empty where it is not recorded."""
    return {digest.rank: digest.host for digest in digests}
