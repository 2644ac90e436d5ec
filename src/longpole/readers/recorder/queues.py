"""How full the queues of a program were, from samples of their depth."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from longpole.readers.recorder.decode import TIME_MAX_NS
from longpole.readers.recorder.rows import shown
from longpole.records.program import QueueUse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.readers.recorder.processes import Member
    from longpole.records.span_file import QueueLine


def queue_uses(members: Iterable[Member]) -> list[QueueUse]:
    """Return the queues of a rank's processes, in order of their names.

    A sample holds until the next one: of three samples at 0, 10 and 30 ms that say 2, 2 and 1 entries, a queue of two
    was full for 30 ms of 30.
    """
    by_name: dict[tuple[str, str], list[QueueLine]] = {}
    for member in members:
        for sample in member.process.file.queues:
            if sample.s <= TIME_MAX_NS:
                by_name.setdefault((sample.n, sample.o), []).append(sample)
    return [_use(name, held, sorted(samples, key=lambda s: s.s)) for (name, held), samples in sorted(by_name.items())]


def _use(name: str, held: str, samples: list[QueueLine]) -> QueueUse:
    capacities = {sample.capacity for sample in samples}
    capacity = capacities.pop() if len(capacities) == 1 else None
    full_ns = sum(after.s - one.s for one, after in pairwise(samples) if capacity and one.depth >= capacity)
    return QueueUse(
        name=shown(name),
        object=held,
        capacity=capacity,
        samples=len(samples),
        max_depth=max(sample.depth for sample in samples),
        watched_ns=samples[-1].s - samples[0].s,
        full_ns=full_ns,
    )
