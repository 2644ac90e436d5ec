"""Pair begin and end events into spans, thread by thread, with a stack."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(slots=True)
class Paired:
    """What pairing gave.

    Attributes:
        spans: (start_ns, dur_ns, name, track, category, event of the begin).
        extra_ends: Events that end nothing.
        unfinished: Events that nothing ends.
    """

    spans: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    extra_ends: list[int] = field(default_factory=list)
    unfinished: list[int] = field(default_factory=list)


def pair_edges(edges: Iterable[tuple[bool, int, int, int, int, int]]) -> Paired:
    """Pair `(is_end, event, time_ns, track, name, category)` in time order; file order breaks ties.

    B A 0   B B 10   E 30   E 50   E 60      B is 20 long, A is 50 long, the end at 60 is one too many
    """
    paired = Paired()
    stacks: dict[int, list[tuple[int, int, int, int]]] = {}
    for is_end, event, time_ns, track, name, category in sorted(edges, key=lambda edge: (edge[2], edge[1])):
        stack = stacks.setdefault(track, [])
        if not is_end:
            stack.append((time_ns, name, category, event))
        elif stack:
            start_ns, begun, begun_category, begin_event = stack.pop()
            paired.spans.append((start_ns, time_ns - start_ns, begun, track, begun_category, begin_event))
        else:
            paired.extra_ends.append(event)
    paired.unfinished = [event for stack in stacks.values() for *_, event in stack]
    return paired
