"""What the recorder writes in a user's program, one file a process: lines of JSON, readable up to the last whole one.

The first line is a `Header`; each further line is one of the other structs, told apart by `k`. Lines are only ever
appended, whole batches in one write, so a file that a killed process leaves holds everything up to its last flush, and
at worst one cut line. All times are nanoseconds of the process's monotonic clock (`time.perf_counter_ns`); the header
and every `Clock` line say which time since the epoch belongs to one of them.

`docs/reference/span-file.md` describes the format for other programs that want to write it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from longpole.vocabulary.objects import POSTTRAINING_STAGES, SERVING_STAGES, STAGES

SCHEMA: Final = "longpole.spans/1"
SUFFIX: Final = ".spans.jsonl"
STAGE_NAMES: Final = (*STAGES, *SERVING_STAGES, *POSTTRAINING_STAGES)
"""The stages of the design: a span of such a name is one, unless it says otherwise."""

Ns: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 62)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 62)]
SpanObject: TypeAlias = Literal["input", "artifact", "state", "output", "compute", "collective", "host", ""]


class _Line(msgspec.Struct, tag_field="k", omit_defaults=True):
    """A line of the file; a key that a reader does not know is left alone, so that later versions can add some."""


class Header(_Line, tag="header"):
    """Who recorded, and where its clock stood.

    Attributes:
        schema: `longpole.spans/1`.
        clock_ns, epoch_ns: The same instant on the process's clock and since the epoch.
        pid: The process; a forked child writes a file of its own.
        rank, world_size, local_rank: As torch.distributed or the launcher's variables say; None where nobody says.
        host: Name of the machine.
        program: Name of the script, without its arguments.
        main_thread: The thread that carries the units.
        item_kind: What `items` count: `token`, `sample`, `request`.
        environment: Versions and devices; never secrets.
        role: `loader_worker` for a process that fetches input for another; empty for one that carries units.
        worker: Number of a worker among its siblings.
        parent_pid: The process that forked or spawned it, where that was recording.
    """

    schema: Literal["longpole.spans/1"]
    clock_ns: Ns
    epoch_ns: Ns
    pid: int
    rank: Count | None = None
    world_size: Count | None = None
    local_rank: Count | None = None
    host: str = ""
    program: str = ""
    main_thread: int = 0
    item_kind: str = ""
    environment: dict[str, Any] = {}
    role: str = ""
    worker: Count | None = None
    parent_pid: int | None = None


class RankLine(_Line, tag="rank"):
    """Who the process is, where that became known after the header was written; the last one holds."""

    rank: Count | None = None
    world_size: Count | None = None
    local_rank: Count | None = None


class UnitLine(_Line, tag="unit", gc=False):
    """One unit of work: a step, a request, an iteration.

    Attributes:
        n: Its name: `step 3`.
        s, d: Start and duration.
        t: Thread.
        items: What it processed, None where not said.
        failed: It ended by an exception.
    """

    n: str
    s: Ns
    d: Ns
    t: int
    items: Count | None = None
    failed: bool = False


class SpanLine(_Line, tag="span", gc=False):
    """A stage or an operation. Spans stand in the order in which they ended.

    Those of one thread lie inside one another or apart, unless the program runs tasks of asyncio on it.

    Attributes:
        n: Its name, which profiler traces show too.
        s, d: Start and duration.
        t: Thread.
        o: What it moves or does; empty for a stage that only has a name.
        b: Bytes it moves, None where not said.
        stage: The stage of the unit, where the span is one (`input`, `forward`, …).
        failed: It ended by an exception.
        waits: It waits for what other threads or processes do for that object (an empty loader, a full queue).
        items: What it processed, None where not said.
    """

    n: str
    s: Ns
    d: Ns
    t: int
    o: SpanObject = ""
    b: Count | None = None
    stage: str = ""
    failed: bool = False
    waits: bool = False
    items: Count | None = None


class DeviceLine(_Line, tag="device", gc=False):
    """A span on a device's stream, measured by a pair of events around what the program launched.

    Attributes:
        n: Name.
        s, d: Start and duration on the process's clock, from an event that both clocks saw.
        device: Index of the device.
        stream: Stream it ran on.
        o: As of a span.
        b: As of a span.
    """

    n: str
    s: Ns
    d: Ns
    device: int
    stream: int = 0
    o: SpanObject = ""
    b: Count | None = None


class CollectiveLine(_Line, tag="collective"):
    """A mark before or after a collective of torch.distributed; `enter` without `leave` never came back.

    Attributes:
        what: `enter` or `leave`.
        kind: `all_reduce`, …
        group: Name of its process group.
        seq: How many operations of the group this process issued before it; of a send or receive, how many of that
            direction with the same peer.
        s: When.
        t: Thread.
        members: Global ranks of the group, on the first mark of each group only.
        b: Bytes of the input.
        dtype: Of the input.
        blocking: The call returns when the collective is done; else `leave` marks the end of the wait for it, on a
            device when the device was done with it.
        peer: Global rank at the other end of a send or receive.
    """

    what: Literal["enter", "leave"]
    kind: str
    group: str
    seq: Count
    s: Ns
    t: int
    members: list[int] | None = None
    b: Count | None = None
    dtype: str = ""
    blocking: bool = True
    peer: int | None = None


class QueueLine(_Line, tag="queue", gc=False):
    """How full a queue was.

    Attributes:
        n: Its name.
        s: When.
        depth: Entries waiting.
        capacity: How many it holds; None without a bound.
        b: Bytes waiting.
        o: What it holds.
    """

    n: str
    s: Ns
    depth: Count
    capacity: Count | None = None
    b: Count | None = None
    o: SpanObject = ""


class ThreadLine(_Line, tag="thread"):
    """The name of a thread, and the number by which the operating system and profilers know it."""

    t: int
    n: str
    native: Count | None = None


class ClockLine(_Line, tag="clock"):
    """The process's clock and the time since the epoch, once more: how far they moved apart."""

    clock_ns: Ns
    epoch_ns: Ns


class LostLine(_Line, tag="lost"):
    """Lines that were not kept, because the buffer was full or the disk was."""

    count: Count
    why: str


class CloseLine(_Line, tag="close"):
    """The last line of a process that ended in order."""

    clock_ns: Ns


Line: TypeAlias = (
    Header
    | RankLine
    | UnitLine
    | SpanLine
    | DeviceLine
    | CollectiveLine
    | QueueLine
    | ThreadLine
    | ClockLine
    | LostLine
    | CloseLine
)
