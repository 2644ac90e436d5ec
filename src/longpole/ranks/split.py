"""How much of a collective is waiting for the last rank, and how much is moving bytes (DESIGN 3.8).

rank 0   ├──── skew ────┼─ transfer ─┤
rank 1         ├─ skew ─┼─ transfer ─┤
rank 2                  ├─ transfer ─┤   the last to arrive waits for nobody: it is the culprit
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.ranks.clocks import WAITS_FOR_ALL
from longpole.ranks.matching import WHY_TEXT, Why
from longpole.timeline.columns import NONE_NS
from longpole.vocabulary.objects import COLLECTIVE_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longpole.ranks.clocks import Clock
    from longpole.ranks.matching import Matched
    from longpole.records.instances import Instances
    from longpole.settings import Settings

    Ints: TypeAlias = NDArray[np.int64]


class How(IntEnum):
    """By what an operation was split."""

    UNKNOWN = 0
    ALIGNED = 1  # starts and ends on aligned clocks
    SHORTEST = 2  # the shortest member waits for nobody


class WhyNot(IntEnum):
    """Why an operation is not split."""

    SPLIT = 0
    INCOMPLETE = 1
    DOES_NOT_WAIT = 2
    CLOCKS = 3
    ENDS = 4
    START = 5
    IN_FLIGHT = 6


WHY_NOT_TEXT: Final = {
    WhyNot.SPLIT: "",
    WhyNot.INCOMPLETE: "not every member is there",
    WhyNot.DOES_NOT_WAIT: "operations of this kind do not wait for all members",
    WhyNot.CLOCKS: "the members' clocks cannot be aligned well enough",
    WhyNot.START: "a member waited in it before another one's profiler had started",
    WhyNot.IN_FLIGHT: "their calls return at once, and when they were done before they were waited for is not recorded",
    WhyNot.ENDS: "members end before the last one begins, or far apart: a wrong match, or clocks that disagree",
}

NOT_SPLIT: Final = "waiting plus moving, cannot be split"


@dataclass(frozen=True)
class Split:
    """What each operation waited and moved; M operations, K members, as in Matched.

    Attributes:
        how: `[M]` uint8: a member of How.
        why_not: `[M]` uint8: a member of WhyNot.
        start_ns, end_ns: `[K]` int64: the members on the run's clock.
        transfer_ns, skew_ns: `[K]` int64, -1 where not known; together they are the member's duration.
        culprit: `[M]` int32: the rank that arrived last, by more than the clocks' uncertainty; -1 for none.
        lateness_ns: `[M]` int64: how long after the first member the last one arrived, -1 where not known.
    """

    how: NDArray[np.uint8]
    why_not: NDArray[np.uint8]
    start_ns: Ints
    end_ns: Ints
    transfer_ns: Ints
    skew_ns: Ints
    culprit: NDArray[np.int32]
    lateness_ns: Ints


def split(
    matched: Matched, instances: Mapping[int, Instances], clocks: Mapping[int, Clock], settings: Settings
) -> Split:
    """Split every operation that can be split.

    Args:
        matched: The operations.
        instances: Rank -> its operations.
        clocks: Rank -> its clock.
        settings: Thresholds.
    """
    start_ns, end_ns, doubt_ns = _on_run_clock(matched, instances, clocks)
    n_ops, n_members = len(matched), len(matched.rank)
    result = Split(
        how=np.zeros(n_ops, np.uint8),
        why_not=np.full(n_ops, int(WhyNot.CLOCKS), np.uint8),
        start_ns=start_ns,
        end_ns=end_ns,
        transfer_ns=np.full(n_members, -1, np.int64),
        skew_ns=np.full(n_members, -1, np.int64),
        culprit=np.full(n_ops, -1, np.int32),
        lateness_ns=np.full(n_ops, -1, np.int64),
    )
    if n_ops == 0:
        return result
    arrivals = _arrivals(matched, start_ns, end_ns, doubt_ns)
    waits = np.isin(matched.kind, [COLLECTIVE_KINDS.index(name) for name in WAITS_FOR_ALL])
    whole = (matched.why == int(Why.COMPLETE)) & (np.diff(matched.first) > 1)
    pairs = whole & (matched.kind == COLLECTIVE_KINDS.index("send_recv")) & (np.diff(matched.first) == 2)
    flies = _in_flight(matched, instances)
    whole &= ~flies
    pairs &= ~flies
    result.why_not[~waits & ~pairs] = int(WhyNot.DOES_NOT_WAIT)
    result.why_not[~whole] = int(WhyNot.INCOMPLETE)
    result.why_not[flies] = int(WhyNot.IN_FLIGHT)
    aligned = whole & arrivals.measured & arrivals.ends_after
    _by_ends(result, matched, arrivals, np.flatnonzero(aligned & waits))
    _by_later_start(result, matched, arrivals, np.flatnonzero(pairs & arrivals.measured))
    rest = np.flatnonzero(whole & waits & ~aligned & arrivals.aligned)
    _by_shortest(result, matched, arrivals, rest, settings)
    return result


def _in_flight(matched: Matched, instances: Mapping[int, Instances]) -> NDArray[np.bool_]:
    """Tell which operations end, on some member, with the wait for them: on a thread, with a call that issued them."""
    on_host = matched.column(instances, "on_device") == 0
    flies = on_host & (matched.column(instances, "issue_ns") != NONE_NS)
    return np.logical_or.reduceat(flies, matched.first[:-1])


def _on_run_clock(
    matched: Matched, instances: Mapping[int, Instances], clocks: Mapping[int, Clock]
) -> tuple[Ints, Ints, Ints]:
    """Return starts and ends on the run's clock, and how uncertain that is: -1 not measured, -2 not aligned."""
    start_ns, end_ns = matched.column(instances, "start_ns"), matched.column(instances, "end_ns")
    doubt_ns = np.full(len(matched.rank), -2, np.int64)
    for rank, members in matched.by_rank().items():
        clock = clocks[rank]
        start_ns[members] = clock.to_run_ns(start_ns[members])
        end_ns[members] = clock.to_run_ns(end_ns[members])
        if clock.method != "none":
            doubt_ns[members] = clock.uncertainty_ns if clock.uncertainty_ns is not None else -1
    return start_ns, end_ns, doubt_ns


@dataclass(frozen=True, slots=True)
class _Arrivals:
    """Who arrived when: `[M]` each, `latest_ns` and `last` also spread over the members."""

    low: Ints
    operation: Ints
    latest_ns: Ints
    last: Ints
    shortest_ns: Ints
    end_skew_ns: Ints
    lateness_ns: Ints
    aligned: NDArray[np.bool_]
    measured: NDArray[np.bool_]
    ends_after: NDArray[np.bool_]
    culprit: NDArray[np.int32]
    doubt_ns: Ints


def _arrivals(matched: Matched, start_ns: Ints, end_ns: Ints, doubt_ns: Ints) -> _Arrivals:
    low, operation = matched.first[:-1], matched.operation_of_member()
    latest_ns, earliest_ns = np.maximum.reduceat(start_ns, low), np.minimum.reduceat(start_ns, low)
    order = np.lexsort((-matched.rank, start_ns, operation))
    last = order[matched.first[1:] - 1]
    several = np.diff(matched.first) > 1
    before_last = order[np.maximum(matched.first[1:] - 2, 0)]
    least_doubt = np.minimum.reduceat(doubt_ns, low)
    measured = least_doubt >= 0
    both_ns = doubt_ns + doubt_ns[last][operation]
    both_ns[last] = 0
    is_after = end_ns >= latest_ns[operation] - both_ns
    margin_ns = start_ns[last] - start_ns[before_last]
    named = several & measured & (margin_ns > doubt_ns[last] + doubt_ns[before_last])
    return _Arrivals(
        low=low,
        operation=operation,
        latest_ns=latest_ns,
        last=last,
        shortest_ns=np.minimum.reduceat(end_ns - start_ns, low),
        end_skew_ns=np.maximum.reduceat(end_ns, low) - np.minimum.reduceat(end_ns, low),
        lateness_ns=latest_ns - earliest_ns,
        aligned=least_doubt > -2,
        measured=measured,
        ends_after=np.logical_and.reduceat(is_after, low),
        culprit=np.where(named, matched.rank[last], -1).astype(np.int32),
        doubt_ns=doubt_ns,
    )


def _members(matched: Matched, operations: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the member places of some operations."""
    chosen = np.zeros(len(matched), np.bool_)
    chosen[operations] = True
    return np.flatnonzero(np.repeat(chosen, np.diff(matched.first)))


def _settle(result: Split, arrivals: _Arrivals, some: NDArray[np.int64], how: How, culprit: NDArray[np.int32]) -> None:
    result.how[some] = int(how)
    result.why_not[some] = int(WhyNot.SPLIT)
    result.culprit[some] = culprit
    result.lateness_ns[some] = arrivals.lateness_ns[some]


def _by_ends(result: Split, matched: Matched, arrivals: _Arrivals, some: NDArray[np.int64]) -> None:
    """Take skew = latest start - start, transfer = end - latest start."""
    k = _members(matched, some)
    duration_ns = result.end_ns[k] - result.start_ns[k]
    transfer_ns = np.clip(result.end_ns[k] - arrivals.latest_ns[arrivals.operation[k]], 0, duration_ns)
    result.transfer_ns[k] = transfer_ns
    result.skew_ns[k] = duration_ns - transfer_ns
    _settle(result, arrivals, some, How.ALIGNED, arrivals.culprit[some])


def _by_later_start(result: Split, matched: Matched, arrivals: _Arrivals, some: NDArray[np.int64]) -> None:
    """Let a send or receive wait until the later of both begins; one that ends before that was buffered."""
    k = _members(matched, some)
    duration_ns = result.end_ns[k] - result.start_ns[k]
    later_ns = arrivals.latest_ns[arrivals.operation[k]]
    doubt_ns = arrivals.doubt_ns[k] + arrivals.doubt_ns[arrivals.last][arrivals.operation[k]]
    buffered = result.end_ns[k] < later_ns - doubt_ns
    skew_ns = np.where(buffered, 0, np.clip(later_ns - result.start_ns[k], 0, duration_ns))
    result.skew_ns[k] = skew_ns
    result.transfer_ns[k] = duration_ns - skew_ns
    waited = np.zeros(len(matched), np.int64)
    np.add.at(waited, arrivals.operation[k], skew_ns)
    _settle(
        result, arrivals, some, How.ALIGNED, np.where(waited[some] > 0, arrivals.culprit[some], -1).astype(np.int32)
    )


def _by_shortest(
    result: Split, matched: Matched, arrivals: _Arrivals, some: NDArray[np.int64], settings: Settings
) -> None:
    """Take the shortest member for the transfer where the members end together, in comparison to it."""
    result.why_not[some] = int(WhyNot.ENDS)
    alike = arrivals.end_skew_ns[some] <= settings.end_skew_max_share * arrivals.shortest_ns[some]
    some = some[alike & (arrivals.shortest_ns[some] > 0)]
    k = _members(matched, some)
    duration_ns = result.end_ns[k] - result.start_ns[k]
    result.transfer_ns[k] = arrivals.shortest_ns[arrivals.operation[k]]
    result.skew_ns[k] = duration_ns - result.transfer_ns[k]
    order = np.lexsort((matched.rank, result.end_ns - result.start_ns, arrivals.operation))
    first, second = order[matched.first[:-1]], order[np.minimum(matched.first[:-1] + 1, len(order) - 1)]
    durations_ns = result.end_ns - result.start_ns
    clear = durations_ns[second] - durations_ns[first] > arrivals.end_skew_ns
    _settle(result, arrivals, some, How.SHORTEST, np.where(clear, matched.rank[first], -1).astype(np.int32)[some])


def withdraw(result: Split, matched: Matched, operations: NDArray[np.int64]) -> None:
    """Withdraw the split of operations that members entered before another one's profiler had started."""
    k = _members(matched, operations)
    result.how[operations] = int(How.UNKNOWN)
    result.why_not[operations] = int(WhyNot.START)
    result.culprit[operations] = -1
    result.transfer_ns[k] = -1
    result.skew_ns[k] = -1


def what_is_missing(matched: Matched, result: Split, operations: NDArray[np.int64]) -> list[str]:
    """Return what would have to be recorded to split some operations, as far as recording more would do it."""
    missing = []
    if (matched.why[operations] == int(Why.NO_TRACE)).any():
        missing.append("traces of all ranks of the group")
    if (matched.why[operations] == int(Why.GROUP_UNKNOWN)).any():
        missing.append("collective metadata (torch 2.4 or later)")
    if (result.why_not[operations] == int(WhyNot.CLOCKS)).any():
        missing.append("baseTimeNanoseconds, or more collectives")
    if (result.why_not[operations] == int(WhyNot.START)).any():
        missing.append("more steps")
    return missing


def why_not_split(matched: Matched, result: Split, operations: NDArray[np.int64]) -> str:
    """Say why some operations are not split: the most frequent reason."""
    codes = result.why_not[operations]
    codes = codes[codes != int(WhyNot.SPLIT)]
    if len(codes) == 0:
        return ""
    most = int(np.bincount(codes).argmax())
    if most != int(WhyNot.INCOMPLETE):
        return f"{NOT_SPLIT}: {WHY_NOT_TEXT[WhyNot(most)]}"
    reasons = matched.why[operations]
    reasons = reasons[reasons != int(Why.COMPLETE)]
    text = WHY_TEXT[Why(int(np.bincount(reasons).argmax()))] if len(reasons) else "there is only one member"
    return f"{NOT_SPLIT}: {text}"
