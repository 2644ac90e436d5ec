"""The collective and point-to-point operations of one rank, as they are stored: columns of little-endian bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

import msgspec

from longpole.errors import InvariantError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COLUMNS: Final = {
    "start_ns": "<i8",
    "end_ns": "<i8",
    "issue_ns": "<i8",
    "row": "<i8",
    "on_device": "<u1",
    "kind": "<i1",
    "group": "<i4",
    "sequence": "<i8",
    "comms_id": "<i8",
    "is_p2p": "<u1",
    "peer": "<i4",
    "bytes": "<i8",
    "dtype": "<i2",
    "stream": "<i8",
    "unit": "<i4",
    "exposed_ns": "<i8",
    "direction": "<i1",
    "stage": "<i1",
}
"""Column -> stored type, in the order of `Instances`; 92 bytes a row."""

Stored: TypeAlias = dict[str, bytes]
SEND: Final = 1
RECEIVE: Final = 2


class Group(msgspec.Struct):
    """A process group as one rank names it.

    Attributes:
        name: As written; several groups of a job may share one.
        description: What the group is for, empty where not written.
        members: Global ranks as written; empty where not known.
        size: How many members there are, None where not known.
    """

    name: str
    description: str = ""
    members: list[int] = []
    size: int | None = None


class Instances(msgspec.Struct):
    """One rank's collective and point-to-point operations, ordered by start; n rows.

    The columns are stored as little-endian bytes and read through the properties as NumPy arrays without a copy.
    `bytes` counts as nccl-tests does: the full buffer.

    Attributes:
        columns: Column -> its bytes, see `COLUMNS`.
        groups: What `group` counts into.
        dtypes: What `dtype` counts into.
    """

    columns: Stored = {}
    groups: list[Group] = []
    dtypes: list[str] = []

    @classmethod
    def empty(cls) -> Self:
        """Return the table without rows."""
        return cls(dict.fromkeys(COLUMNS, b""))

    @classmethod
    def from_columns(
        cls, *, groups: list[Group] | None = None, dtypes: list[str] | None = None, **arrays: NDArray[Any]
    ) -> Self:
        """Store columns.

        Args:
            groups: What the column `group` counts into.
            dtypes: What the column `dtype` counts into.
            arrays: `[n]` each, one for every name in `COLUMNS`, ordered by start.

        Raises:
            InvariantError: A column is missing, unknown, or of another length.
        """
        import numpy as np

        if set(arrays) != set(COLUMNS):
            msg = f"columns of Instances: missing or unknown {sorted(set(arrays) ^ set(COLUMNS))}"
            raise InvariantError(msg)
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) > 1:
            msg = f"columns of Instances differ in length: {lengths}"
            raise InvariantError(msg)
        stored = {name: np.asarray(arrays[name]).astype(dtype).tobytes() for name, dtype in COLUMNS.items()}
        return cls(stored, groups or [], dtypes or [])

    def __len__(self) -> int:
        """Return the number of operations."""
        return len(self.columns.get("start_ns", b"")) // 8

    def column(self, name: str) -> NDArray[Any]:
        """Return one column, `[n]`, of the type that `COLUMNS` says."""
        import numpy as np

        return np.frombuffer(self.columns.get(name, b""), COLUMNS[name])

    @property
    def start_ns(self) -> NDArray[np.int64]:
        """Start, `[n]` int64 ns since the file's base time, as recorded."""
        return self.column("start_ns")

    @property
    def end_ns(self) -> NDArray[np.int64]:
        """End, `[n]` int64 ns since the file's base time, as recorded."""
        return self.column("end_ns")

    @property
    def issue_ns(self) -> NDArray[np.int64]:
        """Start of the launching call, `[n]` int64 ns since the file's base time; NONE_NS where not known.

        On a thread of the host it is known only of an operation in flight, which ends with the wait for it.
        """
        return self.column("issue_ns")

    @property
    def row(self) -> NDArray[np.int64]:
        """Row of the timeline's device table, or of its host table where `on_device` is 0, `[n]` int64."""
        return self.column("row")

    @property
    def on_device(self) -> NDArray[np.uint8]:
        """1 for a span of a device, 0 for a span of a host thread, `[n]` uint8."""
        return self.column("on_device")

    @property
    def kind(self) -> NDArray[np.int8]:
        """Code into `vocabulary.objects.COLLECTIVE_KINDS`, `[n]` int8."""
        return self.column("kind")

    @property
    def group(self) -> NDArray[np.int32]:
        """Index into `groups`, -1 where not known, `[n]` int32."""
        return self.column("group")

    @property
    def sequence(self) -> NDArray[np.int64]:
        """Sequence number within the group, -1 where not written, `[n]` int64."""
        return self.column("sequence")

    @property
    def comms_id(self) -> NDArray[np.int64]:
        """Id that all members write for one operation, -1 where not written, `[n]` int64."""
        return self.column("comms_id")

    @property
    def is_p2p(self) -> NDArray[np.uint8]:
        """1 for a send, a receive, or both with one peer, `[n]` uint8."""
        return self.column("is_p2p")

    @property
    def peer(self) -> NDArray[np.int32]:
        """Global rank of the peer of a send or receive, -1 where not known, `[n]` int32."""
        return self.column("peer")

    @property
    def bytes(self) -> NDArray[np.int64]:
        """Size of the full buffer, `[n]` int64 bytes, -1 where not known."""
        return self.column("bytes")

    @property
    def dtype(self) -> NDArray[np.int16]:
        """Index into `dtypes`, -1 where not written, `[n]` int16."""
        return self.column("dtype")

    @property
    def stream(self) -> NDArray[np.int64]:
        """Stream of a device span, track of a host span, `[n]` int64."""
        return self.column("stream")

    @property
    def unit(self) -> NDArray[np.int32]:
        """Place of the unit in the row's list of units, head and tail included, -1 for none, `[n]` int32."""
        return self.column("unit")

    @property
    def exposed_ns(self) -> NDArray[np.int64]:
        """The part of the operation with no compute under it, `[n]` int64 ns."""
        return self.column("exposed_ns")

    @property
    def direction(self) -> NDArray[np.int8]:
        """SEND, RECEIVE, both added, or 0 where it is neither or not known, `[n]` int8."""
        return self.column("direction")

    @property
    def stage(self) -> NDArray[np.int8]:
        """Code into `vocabulary.objects.STAGES` of the launching call, -1 where not known, `[n]` int8."""
        return self.column("stage")
