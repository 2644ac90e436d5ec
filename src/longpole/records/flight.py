"""What a flight recorder's dump says: the last operations of one rank, and where its threads stood."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class GroupKey(NamedTuple):
    """A process group as all its members know it.

    Attributes:
        name: As dumps call it; ranks that split groups give different groups the same name.
        description: What it is for, empty where nobody says.
        members: Ranks of the job, ascending; empty where no dump lists them.
    """

    name: str
    description: str
    members: tuple[int, ...]


class Frame(NamedTuple):
    """One frame of a stack."""

    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class FlightEntry:
    """One operation.

    Attributes:
        group: The group it was issued in.
        sequence: Number among the group's collectives, or among the transfers of a pair.
        operation: What the program called: `all_reduce`, `send`.
        is_p2p: A transfer between two ranks.
        peers: Of a transfer: (from, to) as places in the group.
        input_sizes, output_sizes: Shapes of what was passed.
        input_types, output_types: Element types.
        state: `scheduled`, `started` or `completed`.
        is_retired: The recorder has let go of it: on gloo the only sign of an end, on NCCL also that of a timeout.
        created_ns: When it was issued, ns since the epoch, None where the dump does not say.
        timeout_ms: After which the program gives up, None where the dump does not say.
        number: Its number in the recorder's ring.
        frames: Where the program issued it, the innermost first; empty where stacks were not dumped.
        backend: The library: `nccl`, `gloo`.
    """

    group: GroupKey
    sequence: int
    operation: str
    is_p2p: bool
    peers: tuple[int, int] | None
    input_sizes: tuple[tuple[int, ...], ...]
    output_sizes: tuple[tuple[int, ...], ...]
    input_types: tuple[str, ...]
    output_types: tuple[str, ...]
    state: str
    is_retired: bool
    created_ns: int | None
    timeout_ms: int | None
    number: int
    frames: tuple[Frame, ...] = ()
    backend: str = ""

    @property
    def is_active(self) -> bool:
        """Tell whether it had not come to its end.

        On NCCL what is retired and not completed has timed out; on gloo the state never changes, and what is retired
        is over, well or not.
        """
        return self.state != "completed" and not (self.is_retired and self.backend == "gloo")


@dataclass(frozen=True, slots=True)
class FlightDump:
    """A dump.

    Attributes:
        path: The file, as it was given.
        rank: Of the job.
        rank_from_name: The dump does not say its rank; the file's name does.
        version: Of the format; empty for the oldest, a bare list.
        library: The library's version, empty where the dump does not say.
        groups: The groups that the rank belongs to, as far as they are listed.
        entries: Its operations, the oldest first.
        is_ring_full: Older operations were overwritten.
    """

    path: str
    rank: int
    rank_from_name: bool
    version: str
    library: str
    groups: tuple[GroupKey, ...]
    entries: tuple[FlightEntry, ...]
    is_ring_full: bool = False


@dataclass(frozen=True, slots=True)
class ThreadStack:
    """Where one thread stood.

    Attributes:
        name: Of the thread, empty where not said.
        is_main: It is the program's main thread.
        holds_gil: It held the interpreter's lock; None where not said.
        frames: The innermost first.
    """

    name: str
    is_main: bool
    holds_gil: bool | None
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class StackDump:
    """Where the threads of one rank stood.

    Attributes:
        path: The file, as it was given.
        rank: Of the job.
        threads: All that were dumped.
    """

    path: str
    rank: int
    threads: tuple[ThreadStack, ...] = field(default=())
