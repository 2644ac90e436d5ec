"""The columns of the timeline's tables as data: name, type, unit, meaning, and what stands for "none"."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

NONE_ID: Final = -1  # correlation, external id, launch: the row has none
NONE_NS: Final = -(1 << 62)  # a time that was not recorded
NONE_BYTES: Final = -(1 << 62)  # an amount of memory that was not recorded


class Kind(IntEnum):
    """What a row of the record is."""

    OTHER = 0
    KERNEL = 1
    COPY = 2
    MEMSET = 3
    RUNTIME = 4
    OPERATOR = 5
    ANNOTATION = 6
    PYTHON = 7
    SYNC_ROW = 8
    DEVICE_ANNOTATION = 9
    OVERHEAD = 10
    DEVICE_TASK = 11


class SyncKind(IntEnum):
    """What a row of synchronisation says, by Kineto's names (`CuptiActivity.cpp`, `syncTypeString`)."""

    OTHER = 0
    STREAM_WAIT = 1  # "Stream Wait Event": a stream waits for an event
    EVENT = 2  # "Event Sync": the host waits for an event
    STREAM = 3  # "Stream Sync": the host waits for a stream
    CONTEXT = 4  # "Context Sync": the host waits for all streams of a device


DEVICE_KINDS: Final = (Kind.KERNEL, Kind.COPY, Kind.MEMSET)
HOST_KINDS: Final = (Kind.OTHER, Kind.RUNTIME, Kind.OPERATOR, Kind.ANNOTATION, Kind.PYTHON)
PLACED_KINDS: Final = (*DEVICE_KINDS, *HOST_KINDS)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        name: The attribute under which the table holds it; its unit is its end.
        dtype: The NumPy type.
        none: What stands for "none", or an empty text where every row has a value.
        meaning: One sentence.
    """

    name: str
    dtype: str
    none: str
    meaning: str


HOST_COLUMNS: Final = (
    Column("start_ns", "int64", "", "Start, in ns since the file's base time."),
    Column("end_ns", "int64", "", "End (exclusive)."),
    Column("name", "int32", "", "Index into the timeline's names."),
    Column("track", "int32", "", "Index into the timeline's tracks: the thread."),
    Column("kind", "uint8", "", "A member of Kind."),
    Column("correlation", "int64", "-1", "Id that a runtime call shares with the device spans it launched."),
    Column("external_id", "int64", "-1", "Id that an operator shares with the calls it made."),
    Column("event", "uint32", "", "Number of the event in its file, from 0."),
)

DEVICE_COLUMNS: Final = (
    Column("start_ns", "int64", "", "Start, in ns since the file's base time."),
    Column("end_ns", "int64", "", "End (exclusive)."),
    Column("name", "int32", "", "Index into the timeline's names."),
    Column("device", "int32", "", "Device number."),
    Column("stream", "int64", "", "Stream (queue) number on the device."),
    Column("kind", "uint8", "", "KERNEL, COPY or MEMSET."),
    Column("correlation", "int64", "-1", "Id shared with the launching call."),
    Column("external_id", "int64", "-1", "Id shared with the launching operator."),
    Column("size_bytes", "int64", "-1", "Bytes moved by a copy or written by a memset."),
    Column("launch", "int64", "-1", "Row of the launching call in the host table."),
    Column("event", "uint32", "", "Number of the event in its file, from 0."),
)

FLOW_COLUMNS: Final = (
    Column("id", "int64", "", "Id that the two ends of the arrow share."),
    Column("time_ns", "int64", "", "Time of this end."),
    Column("track", "int32", "", "Track of this end."),
    Column("is_target", "bool", "", "True for the end the arrow points at."),
    Column("category", "int32", "", "Index into the timeline's names: the category of the arrow."),
)

SYNC_COLUMNS: Final = (
    Column("start_ns", "int64", "", "Start, in ns since the file's base time, on the host's clock."),
    Column("end_ns", "int64", "", "End (exclusive)."),
    Column("kind", "uint8", "", "A member of SyncKind."),
    Column("device", "int32", "-1", "Device number."),
    Column("stream", "int64", "-1", "Stream that waits, of a stream's wait; stream waited for, of a Stream Sync."),
    Column("waited_stream", "int64", "-1", "Stream on which the event that is waited for was recorded."),
    Column("correlation", "int64", "-1", "Id shared with the call that waits, or that makes a stream wait."),
    Column("record", "int64", "-1", "Correlation of the call that recorded the event."),
    Column("event", "uint32", "", "Number of the event in its file, from 0."),
)

MEMORY_COLUMNS: Final = (
    Column("time_ns", "int64", "", "When, in ns since the file's base time, on the host's clock."),
    Column("device", "int32", "-1", "Device whose memory it is; none for the host's."),
    Column("size_bytes", "int64", "", "Bytes that were allocated; given back where it is negative."),
    Column("allocated_bytes", "int64", "-(1 << 62)", "Allocated in all, afterwards."),
    Column("reserved_bytes", "int64", "-(1 << 62)", "Taken from the driver in all, afterwards."),
    Column("event", "uint32", "", "Number of the event in its file, from 0."),
)
