"""Marks before and after collectives, paired into spans; what was entered and never left, by process group.

blocking    enter ├──── on the calling thread ────┤ leave
otherwise   enter ├───── a thread of its own ─────┤ leave, at the end of the wait for it
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from longpole.readers.recorder.decode import TIME_MAX_NS
from longpole.readers.recorder.rows import HostRow, shown
from longpole.records.program import GroupArrivals, OpenOperation
from longpole.records.span_file import CollectiveLine
from longpole.timeline.columns import Kind
from longpole.timeline.tables import CollectiveArgs
from longpole.vocabulary.declared import Declared

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from longpole.readers.recorder.processes import Member
    from longpole.readers.recorder.rows import Rows

    Operation: TypeAlias = tuple[str, str, int | None, int]


@dataclass(slots=True)
class Lowered:
    """The collectives of a rank's processes.

    Attributes:
        groups: What the main process entered, by group.
        n_halves: `leave` marks whose `enter` is not there.
        marks: Row before sorting -> its `enter` mark, and the members of its group.
    """

    groups: list[GroupArrivals] = field(default_factory=list)
    n_halves: int = 0
    marks: list[tuple[int, CollectiveLine, list[int]]] = field(default_factory=list)

    def args(self, place: NDArray[np.int64]) -> Iterator[CollectiveArgs]:
        """Return what the collectives say of themselves, by host row.

        Args:
            place: `[N]` int64: the host row of each row before sorting.
        """
        for row, mark, members in self.marks:
            sends = mark.kind.lower().startswith(("send", "isend"))
            yield CollectiveArgs(
                row=int(place[row]),
                on_device=False,
                name=mark.kind,
                in_elements=None,
                out_elements=None,
                group_size=len(members) or None,
                dtype=shown(mark.dtype),
                group_name=shown(mark.group),
                group_ranks=str(members) if members else "",
                sequence=mark.seq if mark.peer is None else None,
                source_rank=mark.peer if mark.peer is not None and not sends else None,
                target_rank=mark.peer if mark.peer is not None and sends else None,
                in_bytes=mark.b,
            )


def lower_collectives(rows: Rows, members: Sequence[Member]) -> Lowered:
    """Pair the marks of a rank's processes, and add a row for each operation.

    One that was never left lasts until the last time that its process's file names.

    Args:
        rows: Rows are added to it.
        members: The processes, the main one first.
    """
    found = Lowered()
    for place, member in enumerate(members):
        opened: dict[Operation, tuple[int, CollectiveLine]] = {}
        member_ranks: dict[str, list[int]] = {}
        highest: dict[str, int] = {}
        file = member.process.file
        for number, mark in zip(file.numbers.get(CollectiveLine, ()), file.collectives, strict=True):
            if mark.s > TIME_MAX_NS:
                continue
            if mark.members:
                member_ranks.setdefault(mark.group, mark.members)
            if mark.what == "enter":
                opened[_operation(mark)] = number, mark
                if mark.peer is None:
                    highest[mark.group] = max(highest.get(mark.group, 0), mark.seq)
                continue
            entered = opened.pop(_operation(mark), None)
            if entered is None:
                found.n_halves += 1
            else:
                _add(rows, found, member, entered, mark.s, member_ranks)
        for entered in opened.values():
            _add(rows, found, member, entered, member.process.last_ns, member_ranks)
        if place == 0:
            found.groups = _arrivals(opened, member_ranks, highest)
    return found


def _operation(mark: CollectiveLine) -> Operation:
    """Name the operation that a mark belongs to: sends and receives are counted apart from the group's others."""
    return mark.group, mark.kind if mark.peer is not None else "", mark.peer, mark.seq


def _add(
    rows: Rows,
    found: Lowered,
    member: Member,
    entered: tuple[int, CollectiveLine],
    end_ns: int,
    member_ranks: dict[str, list[int]],
) -> None:
    number, mark = entered
    pid = member.process.file.header.pid
    if mark.blocking:
        said = Declared(kind=mark.kind)
        track = rows.track(pid, mark.t, _name_of(member, mark.t))
    else:
        said = Declared("collective", kind=mark.kind)
        track = rows.track(pid, f"in flight {mark.group}", f"collectives in flight, group {mark.group}")
    start_ns = mark.s + member.shift_ns
    end_ns = max(end_ns + member.shift_ns, start_ns)
    found.marks.append((len(rows.host), mark, member_ranks.get(mark.group, [])))
    rows.host.append(HostRow(start_ns, end_ns, rows.name(mark.kind, said), track, Kind.ANNOTATION, number))


def _name_of(member: Member, thread: int) -> str:
    return next((line.n for line in member.process.file.threads if line.t == thread), f"thread {thread}")


def _arrivals(
    opened: dict[Operation, tuple[int, CollectiveLine]], member_ranks: dict[str, list[int]], highest: dict[str, int]
) -> list[GroupArrivals]:
    return [
        GroupArrivals(
            group=shown(group),
            members=member_ranks.get(group, []),
            entered=last,
            still_open=[
                OpenOperation(mark.seq, shown(mark.kind), mark.s, number)
                for number, mark in sorted(opened.values(), key=lambda pair: pair[1].seq)
                if mark.group == group and mark.peer is None
            ],
        )
        for group, last in sorted(highest.items())
    ]
