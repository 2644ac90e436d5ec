"""Which call issued a collective that a library's own thread carries out on the host (gloo, MPI).

main     ├ c10d::allreduce_ ┤
worker          ├──────── gloo:all_reduce ────────┤
edge     └─────►                                       grade: ordered

Evidence: as many issuing calls as backend spans of each kind, paired in order; no call later than its span. Where the
library's thread was idle at the call, what lies between the two is kept: a thread's wake-up is no constant. Where it
was still busy with an earlier operation, that one's end is what the span waited for, and the call only adds the usual
wake-up.

main     ├ c10d 1 ┤├ c10d 2 ┤
worker       ├──── gloo 1 ────┤├──── gloo 2 ────┤     gloo 2 waits for gloo 1, not for its call
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.timeline.columns import Kind
from longpole.timeline.groups import opens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.ground import Ground

    Ints: TypeAlias = NDArray[np.int64]


def backend_rows(ground: Ground) -> Ints:
    """Return the host rows of backend spans, in order of their starts."""
    host = ground.timeline.host
    rows = np.flatnonzero(ground.book.is_backend[host.name])
    return rows[np.lexsort((rows, host.start_ns[rows]))].astype(np.int64)


def find(ground: Ground) -> tuple[Ints, Ints]:
    """Return issuing calls and the backend spans that each issued: `[I]` host rows each."""
    host, spans = ground.timeline.host, backend_rows(ground)
    none = np.empty(0, np.int64)
    if len(spans) == 0:
        return none, none
    is_wait = np.array(["wait" in name.lower() for name in ground.timeline.names], np.bool_)
    issues = (host.kind == Kind.OPERATOR) & (ground.book.is_collective_op & ~is_wait)[host.name]
    calls = _outermost(ground, np.flatnonzero(issues))
    calls = calls[np.lexsort((calls, host.start_ns[calls]))]
    if len(calls) == len(spans) and (host.start_ns[calls] <= host.start_ns[spans]).all():
        return calls.astype(np.int64), spans
    return _by_kind(ground, calls, spans)


def lags(ground: Ground, calls: Ints, spans: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return how long each span begins after its call at least, `[I]` int64 ns, and whether its thread was busy then.

    Args:
        ground: The rank.
        calls: Issuing calls.
        spans: The backend spans that they issued.
    """
    host = ground.timeline.host
    lag_ns = host.start_ns[spans] - host.start_ns[calls]
    order = np.lexsort((host.start_ns[spans], host.track[spans]))
    before_ns = np.full(len(spans), np.iinfo(np.int64).min, np.int64)
    ends_ns, same = host.end_ns[spans[order]], ~opens(host.track[spans[order]])
    before_ns[order[1:][same[1:]]] = ends_ns[:-1][same[1:]]
    busy = before_ns > host.start_ns[calls]
    usual_ns = int(np.median(lag_ns[~busy])) if (~busy).any() else 0
    return np.where(busy, np.minimum(lag_ns, usual_ns), lag_ns), busy


def _by_kind(ground: Ground, calls: NDArray[np.intp], spans: Ints) -> tuple[Ints, Ints]:
    """Pair calls and spans of each kind in order, where their numbers agree."""
    host = ground.timeline.host
    call_kind = np.array([ground.book.host(int(code)).kind for code in host.name[calls]], object)
    span_kind = np.array([ground.book.host(int(code)).kind for code in host.name[spans]], object)
    pairs: list[tuple[int, int]] = []
    for kind in {str(kind) for kind in span_kind}:
        some, others = calls[call_kind == kind], spans[span_kind == kind]
        if len(some) == len(others) and (host.start_ns[some] <= host.start_ns[others]).all():
            pairs += zip(some.tolist(), others.tolist(), strict=True)
    pairs.sort(key=lambda pair: pair[1])
    return np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64)


def _outermost(ground: Ground, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Drop calls inside others: `c10d::allreduce_` may hold the backend's own operator."""
    host = ground.timeline.host
    keep = np.ones(len(rows), np.bool_)
    for track in np.unique(host.track[rows]).tolist():
        mine = np.flatnonzero(host.track[rows] == track)
        reach_ns = np.maximum.accumulate(host.end_ns[rows[mine]])
        keep[mine[1:]] = host.start_ns[rows[mine[1:]]] >= reach_ns[:-1]
    return rows[keep]
