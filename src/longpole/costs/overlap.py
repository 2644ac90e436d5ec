"""What of communication hides behind computation: gradient buckets of data parallelism, prefetched weights of FSDP.

    backward      ├─────────────────────────────┤
    gradients      · ·  ·   ·  · ·   ·   · ·  · ·
    buckets            ├──1──┤  ├──2──┤     ├──3──┤
    exposed                                     ├─┤

Both are simulated: one communication stream, in order. The closed forms stand beside, and are what a simulation of many
small gradients comes to (tests/unit/costs/test_overlap.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.costs.formula import Formula
from longpole.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MIB: Final = 1 << 20
CAP_BYTES: Final = 25 * MIB  # torch: DistributedDataParallel's bucket_cap_mb where none is given
FIRST_CAP_BYTES: Final = 1 * MIB  # torch: of the first bucket then; with a cap that is given, the first has it too
SWEPT_CAPS_BYTES: Final = tuple(
    count * MIB for count in (1, 2, 5, 10, 15, 25, 35, 50, 75, 100, 150, 200, 350, 500, 1000)
)

BEST_CAP_BYTES: Final = Formula(
    "G*sqrt(alpha/T)",
    "B",
    "the least of EXPOSED_IF_BOUND_S: more latencies against a later first start; holds where communication bounds"
    " (G/rate > T)",
)
EXPOSED_IF_BOUND_S: Final = Formula(
    "G/rate + alpha*G/b + b*T/G - T",
    "s",
    "communication bounds: it starts when the first bucket is full, at b·T/G, and never waits again",
)
EXPOSED_IF_HIDDEN_S: Final = Formula(
    "alpha + last/rate", "s", "computation bounds: only the last bucket is left when the backward pass ends"
)
LEAST_HIDING_CAP_BYTES: Final = Formula(
    "G*alpha/(T - G/rate)", "B", "below it, latencies alone make communication bound; needs G/rate < T"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """How much of some communication hides behind some computation.

    Attributes:
        communication_s: What all operations take.
        hidden_s: Of that, what runs while there is computation.
        exposed_s: From the end of the computation, or of its stalls, to the end of communication: what the step pays.
        operations: How many there are.
        compute_s: How long the computation is by itself.
        last_bytes: Of the last operation.
    """

    communication_s: float
    hidden_s: float
    exposed_s: float
    operations: int
    compute_s: float
    last_bytes: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """One bucket of gradients.

    Attributes:
        ready_s: When its last gradient is computed, from the start of the backward pass.
        bytes: Of all its gradients.
        gradients: How many it holds.
    """

    ready_s: float
    bytes: float
    gradients: int


def first_cap(cap_bytes: float) -> float:
    """Return the cap of the first bucket as torch sets it: smaller where the cap is the default, else the same.

    *Source:* `_BucketCapacityConfig.create` of torch/nn/parallel/distributed.py, torch 2.13.
    """
    return float(FIRST_CAP_BYTES if cap_bytes == CAP_BYTES else cap_bytes)


def fill_buckets(
    gradient_ready_s: Sequence[float],
    gradient_bytes: Sequence[float],
    cap_bytes: float,
    first_cap_bytes: float | None = None,
) -> list[Bucket]:
    """Put gradients into buckets in the order in which they become ready, as torch does from its second step on.

    A bucket closes with the gradient that brings it to its cap, so that it may be larger.

    >>> [bucket.bytes for bucket in fill_buckets([1, 2, 3, 4], [6, 6, 6, 6], cap_bytes=10, first_cap_bytes=5)]
    [6.0, 12.0, 6.0]

    *Source:* `compute_bucket_assignment_by_size` and `rebuildBuckets` of torch/csrc/distributed/c10d/reducer.cpp.

    Args:
        gradient_ready_s: Seconds from the start of the backward pass, in any order.
        gradient_bytes: Of each.
        cap_bytes: From which a bucket is closed.
        first_cap_bytes: The same of the first bucket; torch's choice where it is not given.

    Raises:
        UsageError: The two sequences differ in length, or a size, a time or the cap is none.
    """
    _check_gradients(gradient_ready_s, gradient_bytes, cap_bytes)
    limit = first_cap(cap_bytes) if first_cap_bytes is None else first_cap_bytes
    buckets = []
    filled, count, ready_s = 0.0, 0, 0.0
    for moment_s, size in sorted(zip(gradient_ready_s, gradient_bytes, strict=True), key=lambda pair: pair[0]):
        filled, count, ready_s = filled + size, count + 1, moment_s
        if filled >= limit:
            buckets.append(Bucket(ready_s=ready_s, bytes=filled, gradients=count))
            filled, count, limit = 0.0, 0, cap_bytes
    if count:
        buckets.append(Bucket(ready_s=ready_s, bytes=filled, gradients=count))
    return buckets


def bucket_overlap(
    gradient_ready_s: Sequence[float],
    gradient_bytes: Sequence[float],
    cap_bytes: float,
    cost: Callable[[float], float],
    *,
    first_cap_bytes: float | None = None,
    backward_s: float | None = None,
) -> Overlap:
    """Simulate the reduction of gradients in buckets beside the backward pass.

    Args:
        gradient_ready_s: Seconds from the start of the backward pass, in any order.
        gradient_bytes: Of each.
        cap_bytes: From which a bucket is closed.
        cost: Bytes of a bucket -> seconds of its collective.
        first_cap_bytes: The cap of the first bucket; torch's choice where it is not given.
        backward_s: How long the backward pass is; the last gradient's moment where it is not given.

    Raises:
        UsageError: What `fill_buckets` refuses.
    """
    end_s = max(gradient_ready_s, default=0.0) if backward_s is None else backward_s
    return reduce_buckets(fill_buckets(gradient_ready_s, gradient_bytes, cap_bytes, first_cap_bytes), cost, end_s)


def reduce_buckets(buckets: Sequence[Bucket], cost: Callable[[float], float], backward_s: float) -> Overlap:
    """Reduce buckets one after another on one stream, each not before its last gradient is ready.

    Args:
        buckets: Ascending by when they are ready.
        cost: Bytes of a bucket -> seconds of its collective.
        backward_s: When the backward pass ends, from its start.
    """
    free_s = hidden_s = spent_s = 0.0
    for bucket in buckets:
        took_s = cost(bucket.bytes)
        start_s = max(free_s, bucket.ready_s)
        free_s = start_s + took_s
        spent_s += took_s
        hidden_s += max(min(free_s, backward_s) - start_s, 0.0)
    return Overlap(
        communication_s=spent_s,
        hidden_s=hidden_s,
        exposed_s=max(free_s - backward_s, 0.0),
        operations=len(buckets),
        compute_s=backward_s,
        last_bytes=buckets[-1].bytes if buckets else 0.0,
    )


def sweep_caps(
    gradient_ready_s: Sequence[float],
    gradient_bytes: Sequence[float],
    cost: Callable[[float], float],
    caps_bytes: Iterable[float] = SWEPT_CAPS_BYTES,
    *,
    backward_s: float | None = None,
) -> dict[float, Overlap]:
    """Return what each cap comes to, ascending, with one bucket for everything as the last.

    Raises:
        UsageError: What `fill_buckets` refuses.
    """
    whole = float(sum(gradient_bytes))
    caps = sorted({float(cap) for cap in caps_bytes if cap < whole} | {whole}) if whole > 0 else []
    return {cap: bucket_overlap(gradient_ready_s, gradient_bytes, cap, cost, backward_s=backward_s) for cap in caps}


def prefetch_overlap(
    compute_s: Sequence[float], gather_s: Sequence[float], ahead: int = 1, reduce_s: Sequence[float] = ()
) -> Overlap:
    """Simulate units whose weights are gathered before they are computed, and in a backward pass reduced after.

    A unit's gather is issued when the unit `ahead` places before it begins to compute, so that no more than `ahead` + 1
    units are gathered at a time. Gathers and reductions share one stream, in the order in which they are issued. With
    `reduce_s` this is the backward pass of FSDP: a unit's gradients are reduced after it.

        gather     ├─0─┤├─1─┤     ├─2─┤
        compute         ├────0────┤├────1────┤
        reduce                         ├─0─┤

    Args:
        compute_s: Of each unit, in the order of the pass.
        gather_s: Of each unit's weights; 0 where they are there already.
        ahead: How many units ahead weights are gathered; 0 gathers a unit's when it is needed.
        reduce_s: Of each unit's gradients; empty in a forward pass.

    Raises:
        UsageError: The sequences differ in length, a time is none, or `ahead` is below 0.
    """
    reductions = list(reduce_s) or [0.0] * len(compute_s)
    _check_units(compute_s, gather_s, reductions, ahead)
    stream = _Stream()
    gathered_s: list[float] = []
    computed: list[tuple[float, float]] = []
    now_s = 0.0
    for unit, took_s in enumerate(compute_s):
        gathered_s += [stream.run(now_s, one) for one in gather_s[len(gathered_s) : unit + ahead + 1]]
        start_s = max(now_s, gathered_s[unit])
        now_s = start_s + took_s
        computed.append((start_s, now_s))
        stream.run(now_s, reductions[unit])
    busy_s = sum(compute_s)
    return Overlap(
        communication_s=sum(stop - start for start, stop in stream.spans),
        hidden_s=_common_s(computed, stream.spans),
        exposed_s=max(max(now_s, stream.free_s) - busy_s, 0.0),
        operations=len(stream.spans),
        compute_s=busy_s,
    )


def equal_units_exposed_s(units: int, compute_s: float, gather_s: float, reduce_s: float = 0.0) -> float:
    """Return what `prefetch_overlap` exposes for equal units that are gathered one ahead, in closed form.

    *Definition:* with compute c, gather g and reduction r of each of N > 1 units, the pass takes

        g + max(c, g) + (N - 2) · max(c, g + r) + max(c, r) + r

    and N · c of it is computing. *Source:* the order of issue that `prefetch_overlap` simulates; they agree exactly
    (tests/unit/costs/test_overlap.py).
    """
    if units <= 1:
        return units * (gather_s + reduce_s)
    period_s = max(compute_s, gather_s + reduce_s)
    whole_s = gather_s + max(compute_s, gather_s) + (units - 2) * period_s + max(compute_s, reduce_s) + reduce_s
    return max(whole_s - units * compute_s, 0.0)


def equal_buckets_exposed_s(count: int, backward_s: float, bucket_s: float) -> float:
    """Return what `reduce_buckets` exposes for equal buckets that become ready at an even pace, in closed form.

    *Definition:* of N buckets the first is ready at T/N and the last at T, and each takes c. Either the stream never
    waits, and ends at T/N + N · c, or the last bucket begins at T:

        max(T/N + N · c - T, c)

    *Source:* follows from the simulation, and agrees with it exactly (tests/unit/costs/test_overlap.py).
    """
    if count < 1:
        return 0.0
    return max(backward_s / count + count * bucket_s - backward_s, bucket_s)


class _Stream:
    """Communication of one device: one operation at a time, in the order of issue."""

    def __init__(self) -> None:
        """Begin idle."""
        self.free_s = 0.0
        self.spans: list[tuple[float, float]] = []

    def run(self, ready_s: float, took_s: float) -> float:
        """Run what may start from a moment on, and return when it is over; what takes no time is not there."""
        if took_s <= 0:
            return ready_s
        start_s = max(self.free_s, ready_s)
        self.free_s = start_s + took_s
        self.spans.append((start_s, self.free_s))
        return self.free_s


def _common_s(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> float:
    """Return how long two ascending lists of spans run at the same time."""
    total_s = 0.0
    left = right = 0
    while left < len(one) and right < len(other):
        total_s += max(min(one[left][1], other[right][1]) - max(one[left][0], other[right][0]), 0.0)
        if one[left][1] <= other[right][1]:
            left += 1
        else:
            right += 1
    return total_s


def _check_gradients(gradient_ready_s: Sequence[float], gradient_bytes: Sequence[float], cap_bytes: float) -> None:
    if len(gradient_ready_s) != len(gradient_bytes):
        msg = f"expected a moment for each gradient, found {len(gradient_ready_s)} for {len(gradient_bytes)}"
        raise UsageError(msg)
    if not (_is_amount(cap_bytes) and cap_bytes > 0):
        msg = f"bucket cap: expected bytes above 0, found {cap_bytes!r}"
        raise UsageError(msg)
    if not all(_is_amount(value) for value in (*gradient_ready_s, *gradient_bytes)):
        msg = "expected moments and sizes of gradients of 0 or more"
        raise UsageError(msg)


def _check_units(compute_s: Sequence[float], gather_s: Sequence[float], reduce_s: Sequence[float], ahead: int) -> None:
    if not len(compute_s) == len(gather_s) == len(reduce_s):
        msg = f"expected a gather and a reduction for each of {len(compute_s)} units, found {len(gather_s)} and"
        msg += f" {len(reduce_s)}"
        raise UsageError(msg)
    if ahead < 0 or not all(_is_amount(value) for value in (*compute_s, *gather_s, *reduce_s)):
        msg = "expected times of 0 or more, and a prefetch of 0 or more units ahead"
        raise UsageError(msg)


def _is_amount(value: float) -> bool:
    return math.isfinite(value) and value >= 0
