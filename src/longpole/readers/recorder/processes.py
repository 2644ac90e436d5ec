"""Which processes make up one rank: the main one that carries the units, and those that work for it.

main       header ├─ unit ─┤├─ unit ─┤├─ unit ─┤ close          one record, and the ones below are part of it
worker 1      header ├ load ┤  ├ load ┤   ├ load ┤
child            header ├──── write ────┤
restart                                            header ├─ unit ─┤ …       another job
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from longpole.readers.recorder.decode import Process

# Processes of one machine read one monotonic clock (Linux: CLOCK_MONOTONIC counts from boot in every process; macOS and
# Windows likewise). What their (clock, epoch) pairs differ by is then the wall clock's being set or slewed between the
# two readings. A difference beyond this is no correction that a time service makes while a job runs: the clocks count
# from different moments (a time namespace, another boot), and the pairs are believed.
SAME_CLOCK_MAX_NS: Final = 1_000_000_000


@dataclass(slots=True)
class Member:
    """A process, and what brings its times to the main process's clock."""

    process: Process
    shift_ns: int = 0


@dataclass(slots=True)
class Record:
    """One rank: its main process, first, and those that work for it.

    Attributes:
        members: Its processes.
        rank: As the files say, else 0.
        rank_assumed: No file says it, and other processes ran at the same time that do not say theirs either.
        unplaced: Files of processes that belong to no record.
    """

    members: list[Member]
    rank: int
    rank_assumed: bool = False
    unplaced: list[Process] = field(default_factory=list)

    @property
    def main(self) -> Process:
        """The process that carries the units."""
        return self.members[0].process


def records_of(processes: list[Process]) -> list[Record]:
    """Sort processes into records: one for each run of a main process.

    A main process is one with units, and of several that say the same rank and ran at once the one with most; where no
    process of a rank has units, the first one that began. Another process works for the one that started it, else for
    the one of its rank that it ran beside longest, else for the only one that it ran beside.

    Args:
        processes: All of one host.
    """
    begun = sorted(processes, key=lambda one: (one.epoch_ns(one.first_ns), one.path))
    own_work = [one for one in begun if not one.file.header.role] or begun
    found = []
    for rank in sorted({one.file.rank for one in own_work if one.file.rank is not None}):
        of_rank = [one for one in own_work if one.file.rank == rank]
        found += [Record([Member(one)], rank) for one in _first_of_each(_carriers(of_rank) or of_rank[:1])]
    # A program that knows no rank is a job of its own, unless others like it ran at the same time.
    nameless = [one for one in own_work if one.file.rank is None]
    carriers = _carriers(nameless) or (nameless[:1] if not found else [])
    for one in carriers:
        beside = any(_beside_ns(one, other) > 0 for other in carriers if other is not one)
        found.append(Record([Member(one)], 0, rank_assumed=beside))
    mains = {id(record.main) for record in found}
    for one in begun:
        if id(one) not in mains:
            _join(found, one)
    return found


def _carriers(processes: list[Process]) -> list[Process]:
    """Return the processes with units, but for those that another of them started."""
    carriers = [one for one in processes if one.file.units]
    pids = {one.file.header.pid for one in carriers}
    return [one for one in carriers if one.file.header.parent_pid not in pids] or carriers[:1]


def _first_of_each(carriers: list[Process]) -> list[Process]:
    """Return the main process of each run of a rank: of those that overlap the one with most units."""
    chosen: list[Process] = []
    for one in sorted(carriers, key=lambda one: -len(one.file.units)):
        if all(_beside_ns(one, other) <= 0 for other in chosen):
            chosen.append(one)
    return sorted(chosen, key=lambda one: one.epoch_ns(one.first_ns))


def _join(records: list[Record], one: Process) -> None:
    """Give a process to the record that it works for; to the likeliest one's unplaced files where none can be told."""
    beside = [record for record in records if _beside_ns(record.main, one) >= 0]
    started = [record for record in beside if one.file.header.parent_pid == record.main.file.header.pid]
    of_rank = [record for record in beside if one.file.rank == record.rank and not record.rank_assumed]
    chosen = started or of_rank or (beside if len(beside) == 1 else [])
    if not chosen:
        max(records, key=lambda record: _beside_ns(record.main, one)).unplaced.append(one)
        return
    best = max(chosen, key=lambda record: _beside_ns(record.main, one))
    best.members.append(Member(one, shift_ns(best.main, one)))


def shift_ns(main: Process, other: Process) -> int:
    """Return what brings a process's times to the main one's clock: nothing on one machine, else by their pairs."""
    apart_ns = other.epoch_ns(0) - main.epoch_ns(0)
    same_host = other.file.header.host == main.file.header.host
    return 0 if same_host and abs(apart_ns) <= SAME_CLOCK_MAX_NS else apart_ns


def _beside_ns(one: Process, other: Process) -> int:
    """Return for how long two processes ran at once; negative where they did not."""
    apart_ns = shift_ns(one, other)
    start_ns = max(one.first_ns, other.first_ns + apart_ns)
    return min(one.last_ns, other.last_ns + apart_ns) - start_ns
