"""Rows of the tables of a device row, as they are stored."""

from __future__ import annotations

import msgspec


class Where(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where to look in a viewer.

    Attributes:
        start_ns: Start, in ns since the run's base.
        event: Number of the event in its file.
        track: Thread or stream.
    """

    start_ns: int
    event: int | None = None
    track: str = ""


class KernelRow(msgspec.Struct, frozen=True):
    """All device spans of one name: how many, their sum, their union, and the union's share of the busy time."""

    name: str
    object: str
    count: int
    sum_ns: int
    mean_ns: int
    union_ns: int
    share: float
    where: Where


class ShapeRow(msgspec.Struct, frozen=True):
    """The calls of an operator with one set of input shapes."""

    input_dims: str
    count: int
    device_ns: int


class OperatorRow(msgspec.Struct, frozen=True):
    """All calls of one operator.

    Attributes:
        sum_ns: Time on the host, children included.
        union_ns: The same as a union over all threads.
        device_ns: Time of the device spans launched directly under it, not under an operator inside it.
        share: `device_ns` as a share of the time of all device spans.
        shapes: The input shapes with the most device time.
    """

    name: str
    count: int
    sum_ns: int
    union_ns: int
    device_ns: int
    share: float
    shapes: list[ShapeRow]
    where: Where


class CopyRow(msgspec.Struct, frozen=True):
    """All copies of one kind.

    Attributes:
        gb_per_s: Effective bandwidth in decimal GB/s, over the copies that took time and say their size; None
            where there is none.
    """

    name: str
    direction: str
    object: str
    count: int
    size_bytes: int
    sum_ns: int
    gb_per_s: float | None


class ActivityRow(msgspec.Struct, frozen=True):
    """Idle time of the device while a host event of one name (up to its `#`) runs."""

    name: str
    idle_ns: int
    count: int


class GapRow(msgspec.Struct, frozen=True):
    """One idle gap.

    Attributes:
        name: The operation charged with most of it.
        reason: The reason with most of it.
        dur_ns: Its length within the units.
        unit: Name of the unit that it begins in.
        idle_ns: Its length by reason.
        thread: The thread whose doings explain it.
        stack: What was open there, outermost first; the recorded call stack where the exporter wrote one.
        other_threads: Threads of the process that were active meanwhile, with the innermost span of each.
        closed_by: The device span that ended it, empty for none.
        where: Where to look.
    """

    name: str
    reason: str
    dur_ns: int
    unit: str
    idle_ns: dict[str, int]
    thread: str
    stack: list[str]
    other_threads: list[str]
    closed_by: str
    where: Where


class ModuleRow(msgspec.Struct, frozen=True):
    """What one module took of a row's units within one stage, and how much of that something ran."""

    stage: str
    module: str
    wall_ns: int
    busy_ns: int
