"""The resource-time matrix and the three indicators, as a report holds them (DESIGN 3.9, 3.10)."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from longpole.records.ledger import Unknown

COLUMNS: tuple[str, ...] = (
    "tensor",
    "vector",
    "hbm",
    "l2",
    "occupancy",
    "scale_up",
    "scale_out",
    "pcie",
    "host",
    "storage",
)
UNITS: dict[str, str] = {
    "tensor": "FLOP",
    "vector": "FLOP",
    "hbm": "byte",
    "l2": "byte",
    "occupancy": "share",
    "scale_up": "byte",
    "scale_out": "byte",
    "pcie": "byte",
    "host": "ns",
    "storage": "byte",
}


class Peak(msgspec.Struct):
    """What a column can do.

    Attributes:
        column: Its name.
        dtype: Element type that the peak holds for, empty where there is one for all.
        per_s: FLOP/s or bytes/s, in theory.
        achievable_per_s: The most that was measured on this part.
        source: Where both come from.
    """

    column: str
    dtype: str
    per_s: float | Unknown
    achievable_per_s: float | Unknown
    source: str


class Cell(msgspec.Struct):
    """What a row asks of a column.

    Attributes:
        demand: In the column's unit: FLOP, bytes or ns; for occupancy the mean share of warps.
        share: The part of the row's own time that the column needs for it at its peak; above 1 the demand or the peak
            cannot be right, or a cache served it. Left out where the demand or the peak (`peaks`) is not known.
        achievable_share: The same against what was measured to be achievable; left out where nothing was.
        at_least: True where the demand is a lower bound, and so are the shares; else left out.
    """

    demand: float | Unknown
    share: float | UnsetType = UNSET
    achievable_share: float | UnsetType = UNSET
    at_least: bool | UnsetType = UNSET


class MatrixRow(msgspec.Struct):
    """One operator, collective or copy, over all ranks and units.

    Attributes:
        name: What it is called.
        kind: `operator`, `collective` or `copy`.
        family: Sort of an operator, kind of a collective, direction of a copy.
        stage: Of the unit.
        dtype: Element type, empty where not known.
        calls: How many.
        device_ns: Durations of its device spans.
        time_share: `device_ns` as a share of that of all compute kernels.
        cells: Column -> what it asks of it. A column that is left out is asked for nothing, or nothing is known of it
            for any row (`columns` says so).
        bound_by: The column that needs the largest share of its time; left out where the device is not in the table.
        next_bound: The column that would bound it if that one were free; left out where none is known to.
        headroom: How many times faster it would be at `bound_by`'s peak; left out where that is not known.
    """

    name: str
    kind: str
    family: str
    stage: str
    dtype: str
    calls: int
    device_ns: int
    time_share: float
    cells: dict[str, Cell]
    bound_by: str | Unknown | UnsetType = UNSET
    next_bound: str | UnsetType = UNSET
    headroom: float | UnsetType = UNSET


class UncountedRow(msgspec.Struct):
    """Compute time whose FLOPs and bytes are not known, and why."""

    name: str
    why: str
    kernels: int
    device_ns: int
    time_share: float


class Contention(msgspec.Struct):
    """Two kinds of work that ran at once.

    Attributes:
        first, second: What they are.
        together_ns: How long both ran, over all ranks.
        column: The column that both ask for most; unknown where the demand of one is not.
        demand_share: What both together need of it while they run: above 1 it cannot serve both.
        first_slowdown, second_slowdown: How many times longer each takes beside the other than alone; left out where
            too few of the same spans ran both ways, and of a collective, whose length includes waiting for its peers
            (`overlap` compares transfers).
    """

    first: str
    second: str
    together_ns: int
    column: str | Unknown
    demand_share: float | UnsetType = UNSET
    first_slowdown: float | UnsetType = UNSET
    second_slowdown: float | UnsetType = UNSET


class Indicator(msgspec.Struct):
    """One of the three, over one stage: time that the demand needs at the peak, as a share of the stage's time.

    Attributes:
        share: Against the peak in theory; left out where the device is not in the table.
        achievable_share: Against what was measured to be achievable; left out where nothing was.
    """

    share: float | Unknown | UnsetType = UNSET
    achievable_share: float | UnsetType = UNSET


class StageIndicators(msgspec.Struct):
    """The three indicators of a stage, mean over ranks.

    Attributes:
        stage: `all` for the whole unit.
        wall_ns: Time of the stage over all ranks and units.
        busy_share: Part of it in which the device ran something.
        compute, memory, link: The indicators.
        covered_share: Part of its compute time whose FLOPs or bytes are known, or a lower bound of its bytes.
        bound_class: `compute`, `memory`, `link` or `waiting`; unknown where less than half is known by more than a
            bound, left out where the device is not in the table.
    """

    stage: str
    wall_ns: int
    busy_share: float
    compute: Indicator
    memory: Indicator
    link: Indicator
    covered_share: float
    bound_class: str | Unknown | UnsetType = UNSET


class ColumnEntry(msgspec.Struct):
    """A column of the matrix: its unit, and why no row has a cell in it, empty where one has."""

    name: str
    unit: str
    empty_because: str = ""


class Resources(msgspec.Struct):
    """What the run's work asked of its devices.

    Attributes:
        device: The part in the device table.
        device_name: What the record calls it.
        basis: What demands come from: `shapes`.
        columns: All columns, in order.
        peaks: What the columns can do; empty where the device is not in the table.
        compute_ns: Durations of all compute kernels in the units, over all ranks.
        covered_share: Part of it whose FLOPs or bytes are known, or a lower bound of its bytes.
        flops_covered_share, bytes_covered_share: Part of it with FLOPs, with bytes.
        rows: The matrix, the longest first.
        uncounted: What is missing from it, the longest first.
        contention: Pairs that ran at once, the longest first.
        indicators: `all`, then by stage.
        at_least_share: The part of `covered_share` of which only a lower bound of the bytes is known.
    """

    device: str | Unknown
    device_name: str
    basis: str
    columns: list[ColumnEntry]
    peaks: list[Peak]
    compute_ns: int
    covered_share: float
    flops_covered_share: float
    bytes_covered_share: float
    rows: list[MatrixRow]
    uncounted: list[UncountedRow]
    contention: list[Contention]
    indicators: list[StageIndicators]
    at_least_share: float = 0.0
