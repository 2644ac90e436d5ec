"""What other bucket caps of data-parallel gradients would come to, from recorded passes and a cost of collectives."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from longpole.costs.overlap import (
    BEST_CAP_BYTES,
    CAP_BYTES,
    FIRST_CAP_BYTES,
    SWEPT_CAPS_BYTES,
    Bucket,
    fill_buckets,
    reduce_buckets,
)
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longpole.analyses.gradients import GradientPass

Sizes: TypeAlias = Literal["recorded", "shapes", "within buckets"]
_ELEMENT_BYTES: Final = (4, 2, 8, 1)
_LATENCY_FACTORS: Final = (0.25, 1.0, 4.0)  # how far off a latency may be for the range of the best cap
_RATE_FACTORS: Final = (0.75, 1.0, 1.25)  # the median error of models that were not measured on the machine itself
_AS_GOOD: Final = 0.002  # caps whose exposed time differs by less are as good: the fewest buckets disturb the least


@dataclass(frozen=True, slots=True)
class Cost:
    """What an all-reduce takes: alpha + gamma * sqrt(S) + S / rate (DESIGN 3.8).

    Attributes:
        alpha_ns: Of no size.
        gamma: Ns per square root of a byte.
        gb_per_s: The rate that large ones approach: bytes per ns.
        factor: All of it times this, to meet what was recorded.
    """

    alpha_ns: float
    gamma: float
    gb_per_s: float
    factor: float = 1.0

    def ns(self, size_bytes: float) -> float:
        """Return what an operation takes, ns."""
        return self.factor * (self.alpha_ns + self.gamma * size_bytes**0.5 + size_bytes / self.gb_per_s)

    def seconds(self, size_bytes: float) -> float:
        """Return what an operation takes, s."""
        return self.ns(size_bytes) / NS_PER_S

    def varied(self, latency: float, rate: float) -> Cost:
        """Return the cost with latency and rate times these."""
        return Cost(self.alpha_ns * latency, self.gamma, self.gb_per_s * rate, self.factor)


@dataclass(frozen=True, slots=True)
class Gradients:
    """The gradients of the swept passes.

    Attributes:
        passes: Those with as many gradients each.
        size_bytes: `[N]` float64, in the order in which they become ready.
        sizes: How these are known: `recorded` (shapes that add up to the buckets), `shapes` (alone), or `within
            buckets`: each bucket's bytes in equal parts, or in those of shapes that do not add up to them.
        skipped: Gradients of a pass before those that are reduced: of other parts of a batch, or not reduced at all.
    """

    passes: Sequence[GradientPass]
    size_bytes: NDArray[np.float64]
    sizes: Sizes
    skipped: int = 0

    @property
    def total_bytes(self) -> float:
        """Bytes of all gradients."""
        return float(self.size_bytes.sum())

    def ready_s(self, one: GradientPass) -> list[float]:
        """Return when each was ready, from the start of the pass."""
        ready: list[float] = (np.maximum(one.ready_ns[self.skipped :] - one.start_ns, 0) / NS_PER_S).tolist()
        return ready

    def backward_s(self, one: GradientPass) -> float:
        """Return how long the pass was until its last gradient was ready."""
        return max(one.end_ns - one.start_ns, 0) / NS_PER_S

    def recorded_buckets(self, one: GradientPass) -> list[Bucket]:
        """Return a pass's buckets as they were recorded, with the sizes assigned here where none were."""
        edges = [0, *(bucket.gradients - self.skipped for bucket in one.buckets)]
        found = []
        for bucket, (low, high) in zip(one.buckets, pairwise(edges), strict=True):
            of_shapes = float(self.size_bytes[max(low, 0) : max(high, 0)].sum())
            found.append(
                Bucket(
                    ready_s=max(bucket.ready_ns - one.start_ns, 0) / NS_PER_S,
                    bytes=float(bucket.size_bytes) if bucket.size_bytes >= 0 else of_shapes,
                    gradients=max(high - low, 0),
                )
            )
        return found


@dataclass(frozen=True, slots=True)
class Point:
    """What one cap comes to: medians over the passes.

    Attributes:
        cap_bytes: From which a bucket closes.
        buckets: How many there are.
        exposed_ns: From the last gradient's readiness to the last bucket's end.
        communication_ns: What all buckets take.
        last_bytes: Of the last bucket.
    """

    cap_bytes: float
    buckets: int
    exposed_ns: int
    communication_ns: int
    last_bytes: float


@dataclass(frozen=True, slots=True)
class Sweep:
    """The curve, and where it is lowest.

    Attributes:
        recorded: The buckets of the trace under the same cost; its cap is that of the trace where known, else 0.
        curve: Ascending by cap; the last is one bucket for everything.
        best: Of the curve.
        best_low_bytes, best_high_bytes: The best caps where latency is a quarter to four times, and the rate three to
            five quarters, of what the cost says.
        is_bound: Communication takes longer than the pass: then `formula_bytes` is where the curve is lowest.
        formula_bytes: G * sqrt(alpha / T).
        least_ns: What no cap goes below: every gradient sent at once when it is ready, for one latency in all.
        late_bytes: Of gradients that become ready so late before the end.
    """

    recorded: Point
    curve: list[Point]
    best: Point
    best_low_bytes: float
    best_high_bytes: float
    is_bound: bool
    formula_bytes: float
    least_ns: int
    late_bytes: float


def assign_sizes(passes: Sequence[GradientPass], element_bytes: int | None) -> Gradients | str:
    """Find out how large each gradient is.

    Args:
        passes: Recorded passes; those with another number of gradients than most are left out.
        element_bytes: Of a gradient's element as it is reduced; None where it is not known.

    Returns:
        The gradients, or why their sizes are not known.
    """
    counts = [len(one.ready_ns) for one in passes]
    usual = max(sorted(set(counts), reverse=True), key=counts.count)
    kept = [one for one in passes if len(one.ready_ns) == usual]
    first = kept[0]
    has_shapes = bool((first.elements >= 0).all())
    buckets_bytes = sum(bucket.size_bytes for bucket in first.buckets)
    has_bytes = all(bucket.size_bytes >= 0 for bucket in first.buckets)
    if has_shapes and has_bytes:
        found = _adding_up(first, buckets_bytes, _ELEMENT_BYTES if element_bytes is None else (element_bytes,))
        if found is not None:
            skipped, size = found
            return Gradients(kept, first.elements[skipped:].astype(np.float64) * size, "recorded", skipped)
    if has_bytes:
        return Gradients(kept, _within(first, by_shape=has_shapes), "within buckets")
    if has_shapes and element_bytes is not None:
        return Gradients(kept, first.elements.astype(np.float64) * element_bytes, "shapes")
    if has_shapes:
        return "neither the buckets' bytes nor the gradients' type are recorded"
    return "neither the buckets' bytes nor the gradients' shapes are recorded"


def _adding_up(one: GradientPass, buckets_bytes: int, sizes: Sequence[int]) -> tuple[int, int] | None:
    """Return how many gradients to skip, and bytes of an element, so that the rest add up to the buckets."""
    for size in sizes:
        if int(one.elements.sum()) * size == buckets_bytes:
            return 0, size
    behind = np.cumsum(one.elements[::-1])
    for size in sizes:
        place = int(np.searchsorted(behind, buckets_bytes / size))
        skipped = len(behind) - 1 - place
        if 0 < skipped < one.buckets[0].gradients and int(behind[place]) * size == buckets_bytes:
            return skipped, size
    return None


def _within(one: GradientPass, *, by_shape: bool) -> NDArray[np.float64]:
    """Spread each bucket's bytes over its gradients; those after the last bucket have none."""
    sizes = np.zeros(len(one.ready_ns))
    low = 0
    for bucket in one.buckets:
        high = max(bucket.gradients, low + 1)
        weights = one.elements[low:high].astype(np.float64) if by_shape else np.ones(high - low)
        if weights.sum() > 0:
            sizes[low:high] = bucket.size_bytes * weights / weights.sum()
        low = high
    return sizes


def recorded_caps(gradients: Gradients) -> tuple[float, float, float, float] | None:
    """Return the caps that would have made the recorded buckets: above and up to, of the first and of the others.

    None where no caps would: gradients became ready in another order than that in which they were put into buckets, or
    their sizes are not known.
    """
    if gradients.sizes == "within buckets":
        return None
    one = gradients.passes[0]
    edges = [0, *(bucket.gradients - gradients.skipped for bucket in one.buckets)]
    if any(high <= low for low, high in pairwise(edges)) or edges[-1] != len(gradients.size_bytes):
        return None
    closed = [
        (float(gradients.size_bytes[low : high - 1].sum()), float(gradients.size_bytes[low:high].sum()))
        for low, high in pairwise(edges)
    ]
    above, until = closed[0]
    if len(closed) == 1:
        return above, float("inf"), above, float("inf")
    others_above = max(low for low, _ in closed[1:])
    others_until = min((high for _, high in closed[1:-1]), default=float("inf"))
    return (above, until, others_above, others_until) if others_above < others_until else None


def is_torch_default(caps: tuple[float, float, float, float]) -> bool:
    """Tell whether torch's own caps would have made the recorded buckets."""
    above, until, others_above, others_until = caps
    return above < FIRST_CAP_BYTES <= until and others_above < CAP_BYTES <= others_until


def sweep(gradients: Gradients, cost: Cost) -> Sweep:
    """Simulate every cap on every pass.

    Args:
        gradients: With sizes.
        cost: Of an all-reduce among the ranks that reduce them.
    """
    filled = _filled(gradients, _caps(gradients, cost))
    curve = _curve(gradients, filled, cost)
    best = _best(curve)
    others = [
        _best(_curve(gradients, filled, cost.varied(latency, rate))).cap_bytes
        for latency in _LATENCY_FACTORS
        for rate in _RATE_FACTORS
    ]
    backward_s = median(gradients.backward_s(one) for one in gradients.passes)
    sent_s = cost.factor * gradients.total_bytes / cost.gb_per_s / NS_PER_S
    least_ns = _least_ns(gradients, cost)
    return Sweep(
        recorded=recorded_point(gradients, cost),
        curve=curve,
        best=best,
        best_low_bytes=min(others),
        best_high_bytes=max(others),
        is_bound=sent_s > backward_s,
        formula_bytes=_formula_bytes(gradients, cost),
        least_ns=least_ns,
        late_bytes=_late_bytes(gradients, least_ns),
    )


def _least_ns(gradients: Gradients, cost: Cost) -> int:
    """Return what is left exposed if bytes alone take time, in any buckets: a bound, for no bucket starts earlier."""
    bytes_alone = Cost(0.0, 0.0, cost.gb_per_s, cost.factor)
    sizes: list[float] = gradients.size_bytes.tolist()
    exposed = []
    for one in gradients.passes:
        each = [
            Bucket(ready_s=at, bytes=size, gradients=1) for at, size in zip(gradients.ready_s(one), sizes, strict=True)
        ]
        exposed.append(reduce_buckets(each, bytes_alone.seconds, gradients.backward_s(one)).exposed_s)
    return _median_ns(exposed) + round(cost.factor * cost.alpha_ns)


def _late_bytes(gradients: Gradients, within_ns: int) -> float:
    """Return the bytes of gradients that become ready within some time of the end of a pass."""
    one = gradients.passes[0]
    late = one.ready_ns[gradients.skipped :] >= one.end_ns - within_ns
    return float(gradients.size_bytes[late].sum())


def recorded_point(gradients: Gradients, cost: Cost) -> Point:
    """Return what the buckets of the trace come to under a cost: beside what was recorded it says how good that is."""
    return _point(gradients, 0.0, [gradients.recorded_buckets(one) for one in gradients.passes], cost)


def _caps(gradients: Gradients, cost: Cost) -> list[float]:
    """Return the caps to try: those of torch's sizes, what the formula says, and one bucket for everything."""
    whole = gradients.total_bytes
    caps = {float(cap) for cap in SWEPT_CAPS_BYTES if cap < whole}
    formula = _formula_bytes(gradients, cost)
    mib = 1 << 20
    if mib <= formula < whole:
        caps.add(float(round(formula / mib) * mib))
    return [*sorted(caps), whole]


def _formula_bytes(gradients: Gradients, cost: Cost) -> float:
    backward_s = median(gradients.backward_s(one) for one in gradients.passes)
    if backward_s <= 0:
        return 0.0
    return BEST_CAP_BYTES(G=gradients.total_bytes, alpha=cost.factor * cost.alpha_ns / NS_PER_S, T=backward_s)


def _filled(gradients: Gradients, caps: Sequence[float]) -> dict[float, list[list[Bucket]]]:
    """Return the buckets that each cap makes of each pass."""
    sizes: list[float] = gradients.size_bytes.tolist()
    ready = [gradients.ready_s(one) for one in gradients.passes]
    return {cap: [fill_buckets(moments, sizes, cap) for moments in ready] for cap in caps}


def _curve(gradients: Gradients, filled: dict[float, list[list[Bucket]]], cost: Cost) -> list[Point]:
    return [_point(gradients, cap, buckets, cost) for cap, buckets in filled.items()]


def _point(gradients: Gradients, cap_bytes: float, buckets: Sequence[Sequence[Bucket]], cost: Cost) -> Point:
    found = [
        reduce_buckets(of_pass, cost.seconds, gradients.backward_s(one))
        for one, of_pass in zip(gradients.passes, buckets, strict=True)
    ]
    return Point(
        cap_bytes=cap_bytes,
        buckets=found[0].operations,
        exposed_ns=_median_ns([overlap.exposed_s for overlap in found]),
        communication_ns=_median_ns([overlap.communication_s for overlap in found]),
        last_bytes=found[0].last_bytes,
    )


def _best(curve: Sequence[Point]) -> Point:
    least = min(point.exposed_ns for point in curve)
    return next(point for point in reversed(curve) if point.exposed_ns <= least * (1 + _AS_GOOD))


def _median_ns(seconds: list[float]) -> int:
    return round(median(seconds) * NS_PER_S)
