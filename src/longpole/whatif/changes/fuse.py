"""Collectives are joined into larger ones, or cut into smaller ones, at the cost model's price (DESIGN 3.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.graph.kinds import EdgeKind
from longpole.vocabulary.objects import COLLECTIVE_KINDS
from longpole.whatif.issuing import issuing_sections

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.whatif.change import Fuse, Split
    from longpole.whatif.draft import Draft


def fuse(draft: Draft, change: Fuse) -> None:
    """Join successive collectives of a kind, group and unit until their buffers reach the size.

    The joined one begins when the last of its parts would have, and takes what the cost model says for the sum. What
    stood between them and needed an earlier part's result no longer waits for it: joining assumes that the results are
    needed only behind the last one.
    """
    buckets = _buckets(draft, change)
    for bucket in buckets:
        size_bytes = sum(_bytes(draft, m) for m in bucket)
        cost_ns = draft.cost(bucket[-1], size_bytes)
        if cost_ns is None:
            draft.refusals.append(_no_model(change.kind))
            return
        _join(draft, bucket, cost_ns)
        draft.rows += len(bucket)
    if buckets:
        _drop_issuing(draft, buckets)
    draft.refuse_idle(f"no two successive {change.kind} of one group that could be split are smaller than that")


def split(draft: Draft, change: Split) -> None:
    """Cut collectives of a kind into parts of at most the size; the parts follow each other."""
    for m in _operations(draft, change.kind):
        size_bytes = _bytes(draft, m)
        parts = -(-size_bytes // change.size_bytes)
        if parts < 2:
            continue
        part_ns = draft.cost(m, -(-size_bytes // parts))
        if part_ns is None:
            draft.refusals.append(_no_model(change.kind))
            return
        edges = _transfers(draft, m)
        draft.set_length(edges, np.full(len(edges), parts * part_ns, np.int64))
        draft.rows += 1
    draft.refuse_idle(f"no {change.kind} that could be split from its waiting is larger than that")


def _no_model(kind: str) -> str:
    return f"there is no cost model for {kind}: it takes at least 4 sizes over two decades, or --collective-record FILE"


def _operations(draft: Draft, kind: str) -> list[int]:
    """Return the operations of a kind that were split, in order of arrival."""
    graph = draft.graph
    code = COLLECTIVE_KINDS.index(kind)
    chosen = []
    for m in np.flatnonzero(graph.meeting.how > 0).tolist():
        k = int(graph.meeting.first[m])
        own = draft.instances[int(graph.meeting.rank[k])]
        if own.kind[graph.meeting.instance[k]] == code and own.bytes[graph.meeting.instance[k]] > 0:
            chosen.append(m)
    return chosen


def _bytes(draft: Draft, m: int) -> int:
    k = int(draft.graph.meeting.first[m])
    return int(draft.instances[int(draft.graph.meeting.rank[k])].bytes[draft.graph.meeting.instance[k]])


def _buckets(draft: Draft, change: Fuse) -> list[list[int]]:
    """Gather successive operations of one group and unit, as long as the sum stays within the size."""
    graph = draft.graph
    open_: dict[tuple[int, ...], tuple[list[int], int]] = {}
    result = []
    for m in _operations(draft, change.kind):
        low, high = int(graph.meeting.first[m]), int(graph.meeting.first[m + 1])
        own = draft.instances[int(graph.meeting.rank[low])]
        unit = int(own.unit[graph.meeting.instance[low]])
        key = (unit, int(own.group[graph.meeting.instance[low]]), *graph.meeting.rank[low:high].tolist())
        bucket, total = open_.get(key, ([], 0))
        size = _bytes(draft, m)
        if bucket and total + size > change.size_bytes:
            result.append(bucket)
            bucket, total = [], 0
        bucket.append(m)
        open_[key] = (bucket, total + size)
    result += [bucket for bucket, _ in open_.values()]
    return [bucket for bucket in result if len(bucket) > 1]


def _transfers(draft: Draft, m: int) -> NDArray[np.intp]:
    graph = draft.graph
    low, high = int(graph.meeting.first[m]), int(graph.meeting.first[m + 1])
    return np.flatnonzero((graph.member_of_edge >= low) & (graph.member_of_edge < high))


def _join(draft: Draft, bucket: list[int], cost_ns: int) -> None:
    """Let all members of a bucket arrive at its last operation and leave together."""
    graph = draft.graph
    last = _transfers(draft, bucket[-1])
    arrived = int(graph.edges.src[last[0]])
    draft.set_length(last, np.full(len(last), cost_ns, np.int64))
    for m in bucket[:-1]:
        edges = _transfers(draft, m)
        entries = np.flatnonzero(graph.edges.dst == graph.edges.src[edges[0]])
        draft.drop(edges)
        for entry in graph.edges.src[entries].tolist():
            draft.add_edge(EdgeKind.ARRIVAL, entry, arrived, 0)
        for edge in edges.tolist():
            leave = int(graph.edges.dst[edge])
            draft.add_edge(EdgeKind.TRANSFER, arrived, leave, cost_ns)
            # What an earlier part's end held up before the last part began would close a circle.
            leaving = np.flatnonzero(graph.edges.src == leave)
            early = graph.time_ns[graph.edges.dst[leaving]] <= graph.time_ns[arrived]
            draft.drop(leaving[early])


def _drop_issuing(draft: Draft, buckets: list[list[int]]) -> None:
    """Take away the calls that issued all but the last part of each bucket: the joined one is issued once."""
    graph = draft.graph
    parts = np.array([m for bucket in buckets for m in bucket[:-1]], np.int64)
    members = np.concatenate([np.arange(graph.meeting.first[m], graph.meeting.first[m + 1]) for m in parts.tolist()])
    for place, rank in draft.ranks():
        mine = members[graph.meeting.rank[members] == rank.rank]
        wanted = np.zeros(len(rank.entry), np.bool_)
        wanted[graph.meeting.instance[mine]] = True
        edges = issuing_sections(draft, place, wanted)
        draft.set_length(edges, np.zeros(len(edges), np.int64))
