"""Frozen column tables: NumPy columns as attributes, checked once, never changed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from longpole.errors import InvariantError
from longpole.timeline.columns import DEVICE_COLUMNS, FLOW_COLUMNS, HOST_COLUMNS, MEMORY_COLUMNS, SYNC_COLUMNS

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from longpole.timeline.columns import Column

    Ints: TypeAlias = NDArray[np.int64]
    Codes: TypeAlias = NDArray[np.int32]
    Kinds: TypeAlias = NDArray[np.uint8]
    Flags: TypeAlias = NDArray[np.bool_]


class _Table:
    """What all tables can do; the columns are the fields of the dataclasses below."""

    __slots__ = ()
    _columns: tuple[Column, ...]

    def __len__(self) -> int:
        first: NDArray[Any] = getattr(self, self._columns[0].name)
        return len(first)

    def take(self, rows: NDArray[Any]) -> Self:
        """Return the table of the given rows: `[M]` indices, or a mask of `[N]` bools."""
        return type(self)(**{c.name: getattr(self, c.name)[rows] for c in self._columns})

    def frame(self) -> pl.DataFrame:
        """Return the table as a Polars frame, sharing memory where Polars can."""
        import polars as pl

        return pl.DataFrame({c.name: getattr(self, c.name) for c in self._columns})

    def _check(self) -> None:
        lengths = {f.name: len(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]
        if len(set(lengths.values())) > 1:
            msg = f"columns of {type(self).__name__} differ in length: {lengths}"
            raise InvariantError(msg)
        for column in self._columns:
            array: NDArray[Any] = getattr(self, column.name)
            if array.dtype != np.dtype(column.dtype):
                msg = f"{type(self).__name__}.{column.name} is {array.dtype}, its spec says {column.dtype}"
                raise InvariantError(msg)
            array.flags.writeable = False

    @classmethod
    def empty(cls) -> Self:
        """Return the table without rows."""
        return cls(**{c.name: np.empty(0, c.dtype) for c in cls._columns})


@dataclass(frozen=True, slots=True)
class HostTable(_Table):
    """Spans on CPU threads, ordered by track, then start, then the longer one first (so parents precede)."""

    start_ns: Ints
    end_ns: Ints
    name: Codes
    track: Codes
    kind: Kinds
    correlation: Ints
    external_id: Ints
    event: NDArray[np.uint32]

    _columns = HOST_COLUMNS

    def __post_init__(self) -> None:
        self._check()


@dataclass(frozen=True, slots=True)
class DeviceTable(_Table):
    """Kernels, copies and memsets, ordered by device, then start, then event number."""

    start_ns: Ints
    end_ns: Ints
    name: Codes
    device: Codes
    stream: Ints
    kind: Kinds
    correlation: Ints
    external_id: Ints
    size_bytes: Ints
    launch: Ints
    event: NDArray[np.uint32]

    _columns = DEVICE_COLUMNS

    def __post_init__(self) -> None:
        self._check()


@dataclass(frozen=True, slots=True)
class FlowTable(_Table):
    """The ends of the arrows between spans, in file order."""

    id: Ints
    time_ns: Ints
    track: Codes
    is_target: Flags
    category: Codes

    _columns = FLOW_COLUMNS

    def __post_init__(self) -> None:
        self._check()


@dataclass(frozen=True, slots=True)
class SyncTable(_Table):
    """Rows of synchronisation: who waits for which stream or event; ordered by start, then event number."""

    start_ns: Ints
    end_ns: Ints
    kind: Kinds
    device: Codes
    stream: Ints
    waited_stream: Ints
    correlation: Ints
    record: Ints
    event: NDArray[np.uint32]

    _columns = SYNC_COLUMNS

    def __post_init__(self) -> None:
        self._check()


@dataclass(frozen=True, slots=True)
class MemoryTable(_Table):
    """What was allocated and given back, on devices and on the host; ordered by time, then event number."""

    time_ns: Ints
    device: Codes
    size_bytes: Ints
    allocated_bytes: Ints
    reserved_bytes: Ints
    event: NDArray[np.uint32]

    _columns = MEMORY_COLUMNS

    def __post_init__(self) -> None:
        self._check()


@dataclass(frozen=True, slots=True)
class Sparse:
    """A value that few rows of a table have.

    Attributes:
        row: `[M]` int64, ascending: rows of the table that have a value.
        value: `[M]` int32: index into `texts`.
        texts: The distinct values.
    """

    row: Ints
    value: Codes
    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        self.row.flags.writeable = False
        self.value.flags.writeable = False

    @classmethod
    def empty(cls) -> Self:
        """Return the values of a table of which no row has one."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int32), ())

    def codes(self, rows: Ints) -> Codes:
        """Return the values' codes at rows, -1 where a row has none: `[N]` int32."""
        if len(self.row) == 0:
            return np.full(len(rows), -1, np.int32)
        place = np.minimum(np.searchsorted(self.row, rows), len(self.row) - 1)
        return np.where(self.row[place] == rows, self.value[place], -1).astype(np.int32)

    def at(self, row: int) -> str | None:
        """Return the value of one row, None where it has none."""
        place = int(np.searchsorted(self.row, row))
        if place < len(self.row) and self.row[place] == row:
            return self.texts[int(self.value[place])]
        return None


@dataclass(frozen=True, slots=True)
class Track:
    """One thread, stream or other row of the record."""

    pid: int | str
    tid: int | str
    name: str


@dataclass(frozen=True, slots=True)
class CollectiveArgs:
    """What a `record_param_comms` operator or a collective kernel says of its operation (formats.md C.4).

    Attributes:
        row: Row of the host or device table.
        on_device: Which of the two tables.
        in_elements, out_elements: Elements per rank, None where not written.
        group_ranks: The text of the member list as written (exporters cut it after 30 members).
        sequence: Sequence number within the group, None before torch 2.12.
        group_description: What the group is for, as written.
        rank_start, rank_stride: With the size, the members of a regular group, however many there are.
        source_rank, target_rank: Global ranks that a point-to-point operation names.
        comms_id: Id that all members write for one operation, from torch 2.13.
        in_bytes: Bytes per rank, where those are written and not elements.
    """

    row: int
    on_device: bool
    name: str
    in_elements: int | None
    out_elements: int | None
    group_size: int | None
    dtype: str
    group_name: str
    group_ranks: str
    sequence: int | None
    group_description: str = ""
    rank_start: int | None = None
    rank_stride: int | None = None
    source_rank: int | None = None
    target_rank: int | None = None
    comms_id: int | None = None
    in_bytes: int | None = None
