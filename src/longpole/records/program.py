"""What a program told the recorder beside its spans: items, queues, and which collectives it entered."""

from __future__ import annotations

import msgspec


class QueueUse(msgspec.Struct):
    """How full a queue was over a record.

    Attributes:
        name: As the program calls it.
        object: What it holds, empty where not said.
        capacity: How many entries it holds; None without a bound, or where it changed.
        samples: How often its depth was written down.
        max_depth: The deepest.
        watched_ns: From the first sample to the last.
        full_ns: How much of that it was full, as far as samples tell; a sample holds until the next one.
    """

    name: str
    object: str
    capacity: int | None
    samples: int
    max_depth: int
    watched_ns: int
    full_ns: int


class OpenOperation(msgspec.Struct):
    """A collective that was entered and not left.

    Attributes:
        sequence: How many operations of the group the process issued before it.
        kind: As its library calls it.
        since_ns: When it was entered, in ns since the file's base time.
        line: Number of the line in the file, from 1.
    """

    sequence: int
    kind: str
    since_ns: int
    line: int


class GroupArrivals(msgspec.Struct):
    """What one process did in one process group.

    Attributes:
        group: Name of the group.
        members: Global ranks; empty where not written.
        entered: The highest sequence number that it entered.
        still_open: What it entered and never left, by sequence.
    """

    group: str
    members: list[int]
    entered: int
    still_open: list[OpenOperation] = []


class ProcessFile(msgspec.Struct):
    """The file of a process that worked for the main one: its path, size as stored, lines, and those left out."""

    path: str
    size_bytes: int
    lines: int
    left_out: int


class ProgramRecord(msgspec.Struct):
    """What the program itself says of one rank.

    Attributes:
        item_kind: What items count, empty where not said.
        beside: Files of the processes that worked for the main one.
        closed: The main process ended in order.
        last_ns: The last time that the main process's file names, in ns since the file's base time.
        whole: No line of the main process is known to be lost.
        queues: Its queues.
        groups: Its process groups.
    """

    item_kind: str = ""
    beside: list[ProcessFile] = []
    closed: bool = False
    last_ns: int = 0
    whole: bool = True
    queues: list[QueueUse] = []
    groups: list[GroupArrivals] = []


class NeverEntered(msgspec.Struct):
    """A collective in which ranks waited until their record ended, because others had not come.

    Attributes:
        group: Name of the process group.
        members: Its global ranks; empty where not written.
        kind: What it does, as its library calls it.
        sequence: How many operations of the group were issued before it.
        waiting: Ranks that entered it and did not leave it.
        since_ns: When the first of them entered, in ns since the epoch.
        waited_ns: From then to the last time in any of their files.
        never: Ranks whose record goes on behind that, or ended in order, without entering.
        not_known: Ranks whose file is not here, ends before that, or has lost lines.
    """

    group: str
    members: list[int]
    kind: str
    sequence: int
    waiting: list[int]
    since_ns: int
    waited_ns: int
    never: list[int]
    not_known: list[int]
