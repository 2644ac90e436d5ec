"""What a snapshot of PyTorch's caching allocator holds (`torch.cuda.memory._dump_snapshot`, torch 1.13 to 2.14)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

BlockState: TypeAlias = Literal["allocated", "awaiting_free", "free"]
Pool: TypeAlias = tuple[int, int]

DEFAULT_POOL: Pool = (0, 0)
NOT_WRITTEN = -1


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a call stack.

    Attributes:
        name: The function.
        file: The file as written; empty or `??` where it is not known.
        line: The line, 0 where it is not known.
    """

    name: str
    file: str
    line: int


Stack: TypeAlias = tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a segment that is in use or free as a whole.

    Attributes:
        address: Its first byte, NOT_WRITTEN where the snapshot does not say it.
        size_bytes: Its size.
        requested_bytes: What the program asked for; NOT_WRITTEN before torch 2.1, and 0 for a free block.
        state: `awaiting_free` is given back by the program, and another stream may still use it.
        stack: Who allocated it, innermost first; empty where that was not recorded.
    """

    address: int
    size_bytes: int
    requested_bytes: int
    state: BlockState
    stack: Stack


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of memory that the allocator holds from the driver.

    Attributes:
        device: The device's number.
        stream: The stream whose requests it serves; blocks are reused on it only.
        pool: Its pool; (0, 0) is the usual one, others belong to graphs or to the program.
        is_large: It serves requests above 1 MiB.
        is_expandable: It can grow, and free pieces of it can be given back.
        total_bytes: Its size.
        blocks: Without gaps, by address.
    """

    device: int
    stream: int
    pool: Pool
    is_large: bool
    is_expandable: bool
    total_bytes: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the allocator's own history.

    Attributes:
        action: `alloc`, `free_requested`, `free_completed`, `segment_alloc`, `segment_free`, `segment_map`,
            `segment_unmap`, `snapshot` or `oom`.
        address: Of the block or segment, NOT_WRITTEN for `oom`.
        size_bytes: How much was asked for, given or taken.
        stream: The stream of the request, NOT_WRITTEN where it is not written.
        device_free_bytes: Of `oom`: what the driver had left; else NOT_WRITTEN.
        time_us: Microseconds since 1970, NOT_WRITTEN before torch 2.2.
        stack: Who asked, innermost first.
    """

    action: str
    address: int
    size_bytes: int
    stream: int
    device_free_bytes: int
    time_us: int
    stack: Stack


@dataclass(frozen=True, slots=True)
class Phase:
    """The start or end of an annotated range on a device (`external_annotations`, torch 2.3 and later)."""

    is_start: bool
    name: str
    device: int
    time_us: int


@dataclass(frozen=True, slots=True)
class AllocatorSnapshot:
    """All that a snapshot says.

    Attributes:
        segments: Of all devices, in the order of the file.
        history: By device: what the allocator did, oldest first; the oldest may have been overwritten.
        phases: In order of time.
        settings: The allocator's settings by name; empty before torch 2.1.
        device_total_bytes: Memory of the device where the file says it, else NOT_WRITTEN.
        skipped: What was left out: reason -> how many.
    """

    segments: tuple[Segment, ...]
    history: dict[int, tuple[Entry, ...]]
    phases: tuple[Phase, ...]
    settings: dict[str, object]
    device_total_bytes: int = NOT_WRITTEN
    skipped: dict[str, int] = field(default_factory=dict)
