"""Swept caps: sizes are what adds up, the curve is what a pass would do, and the best cap is where theory puts it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.analyses.gradients import Bucket, GradientPass
from longpole.costs.overlap import fill_buckets
from longpole.whatif.bucket_sweep import (
    Cost,
    Gradients,
    Sweep,
    assign_sizes,
    is_torch_default,
    recorded_caps,
    recorded_point,
    sweep,
)
from tests.examples import examples

MIB = 1 << 20
MS = 1_000_000


def _pass(
    ready_ns: list[int], elements: list[int], buckets: list[tuple[int, int]], *, start_ns: int = 0
) -> GradientPass:
    """A pass; buckets are (gradients so far, bytes) and take no time."""
    return GradientPass(
        unit="step",
        start_ns=start_ns,
        ready_ns=np.array(ready_ns, np.int64),
        elements=np.array(elements, np.int64),
        buckets=tuple(
            Bucket(place, count, ready_ns[count - 1], ready_ns[count - 1], ready_ns[count - 1], size)
            for place, (count, size) in enumerate(buckets)
        ),
    )


def _even(total_bytes: float, backward_ns: int, count: int = 1000) -> Gradients:
    ready_ns = [backward_ns * (place + 1) // count for place in range(count)]
    one = _pass(ready_ns, [int(total_bytes / count / 4)] * count, [(count, -1)])
    return Gradients([one], np.full(count, total_bytes / count), "shapes")


@pytest.fixture(scope="module")
def bound() -> Sweep:
    """2.6 GB of gradients in 2,480 MiB, 150 ms of backward pass, 12.5 GB/s, 60 µs."""
    return sweep(_even(2480.0 * MIB, 150 * MS, count=2480), Cost(60_000, 0.0, 12.5))


@pytest.mark.parametrize(
    ("cap_mib", "exposed_ms"), [(1, 207), (5, 88), (25, 65.5), (100, 65.5), (500, 88.5), (2480, 208)]
)
def test_the_curve_is_the_one_that_was_simulated_before(bound: Sweep, cap_mib: int, exposed_ms: float) -> None:
    """By other code, before this was written."""
    (point,) = [point for point in bound.curve if point.cap_bytes == cap_mib * MIB]

    assert point.exposed_ns / MS == pytest.approx(exposed_ms, rel=0.02)


def test_the_best_cap_of_a_pass_that_communication_bounds_is_the_formulas(bound: Sweep) -> None:
    """2.6 GB · √(60 µs / 150 ms) = 52 MB; the curve is flat around it."""
    found = bound

    assert found.is_bound
    assert found.formula_bytes == pytest.approx(52e6, rel=0.001)
    assert 0.5 < found.best.cap_bytes / found.formula_bytes < 1.5
    at_formula = min(found.curve, key=lambda point: abs(point.cap_bytes - found.formula_bytes))
    assert at_formula.exposed_ns <= 1.01 * min(point.exposed_ns for point in found.curve)


@given(
    total_mb=st.integers(200, 4000),
    backward_ms=st.integers(20, 400),
    latency_us=st.integers(10, 300),
    bound=st.floats(1.2, 4.0),
)
@examples(20)
def test_wherever_communication_bounds_no_cap_beats_the_formulas_by_much(
    total_mb: int, backward_ms: int, latency_us: int, bound: float
) -> None:
    total, backward_ns = total_mb * 1e6, backward_ms * MS
    found = sweep(_even(total, backward_ns, count=400), Cost(latency_us * 1000.0, 0.0, total / (bound * backward_ns)))

    assert found.is_bound
    if MIB <= found.formula_bytes < total:
        at_formula = min(found.curve, key=lambda point: abs(point.cap_bytes - found.formula_bytes))
        whole_ns = at_formula.exposed_ns + backward_ns
        assert whole_ns <= 1.02 * (min(point.exposed_ns for point in found.curve) + backward_ns)


def test_one_bucket_for_everything_hides_nothing() -> None:
    found = sweep(_even(100e6, 50 * MS), Cost(10_000, 0.0, 10.0))

    assert found.curve[-1].buckets == 1
    assert found.curve[-1].exposed_ns == pytest.approx(10_000 + 100e6 / 10.0, rel=1e-6)


def test_recorded_buckets_under_their_own_cost_leave_exposed_what_was_recorded() -> None:
    """Two buckets, ready at 10 and 20 ms, of 5 and 8 ms: the second ends 8 ms after the pass."""
    one = _pass([10 * MS, 20 * MS], [1, 1], [(1, 50_000_000), (2, 80_000_000)])

    found = recorded_point(Gradients([one], np.array([5e7, 8e7]), "shapes"), Cost(0, 0.0, 10.0))

    assert (found.exposed_ns, found.communication_ns, found.buckets) == (8 * MS, 13 * MS, 2)


def test_shapes_that_add_up_to_the_buckets_give_the_element_and_its_bytes() -> None:
    found = assign_sizes([_pass([1, 2, 3], [10, 20, 30], [(1, 20), (3, 100)])], None)

    assert isinstance(found, Gradients)
    assert (found.sizes, found.size_bytes.tolist(), found.skipped) == ("recorded", [20, 40, 60], 0)


def test_gradients_of_earlier_parts_of_a_batch_are_skipped() -> None:
    """Two backward passes in a unit, of which the second one is reduced."""
    found = assign_sizes([_pass([1, 2, 3, 4], [10, 20, 10, 20], [(4, 120)])], 4)

    assert isinstance(found, Gradients)
    assert (found.skipped, found.size_bytes.tolist()) == (2, [40, 80])
    assert len(found.ready_s(found.passes[0])) == 2


def test_without_shapes_a_buckets_bytes_are_spread_over_its_gradients() -> None:
    found = assign_sizes([_pass([1, 2, 3, 4], [-1] * 4, [(1, 20), (4, 90)])], None)

    assert isinstance(found, Gradients)
    assert (found.sizes, found.size_bytes.tolist()) == ("within buckets", [20, 30, 30, 30])
    assert recorded_caps(found) is None


def test_shapes_that_do_not_add_up_weigh_the_buckets_bytes() -> None:
    found = assign_sizes([_pass([1, 2, 3], [10, 10, 30], [(1, 17), (3, 120)])], None)

    assert isinstance(found, Gradients)
    assert (found.sizes, found.size_bytes.tolist()) == ("within buckets", [17, 30, 90])


def test_sizes_need_shapes_and_a_type_or_the_buckets_bytes() -> None:
    shapes_only = [_pass([1, 2], [10, 20], [(2, -1)])]

    assert assign_sizes(shapes_only, None) == "neither the buckets' bytes nor the gradients' type are recorded"
    found = assign_sizes(shapes_only, 2)
    assert isinstance(found, Gradients)
    assert (found.sizes, found.size_bytes.tolist()) == ("shapes", [20, 40])
    assert "shapes are recorded" in str(assign_sizes([_pass([1], [-1], [(1, -1)])], 4))


def test_passes_with_another_number_of_gradients_are_left_out() -> None:
    usual = _pass([1, 2], [1, 1], [(2, 8)])
    found = assign_sizes([usual, _pass([1], [1], [(1, 4)]), replace(usual, unit="other")], None)

    assert isinstance(found, Gradients)
    assert [one.unit for one in found.passes] == ["step", "other"]


@given(
    sizes=st.lists(st.integers(1, 9 * MIB), min_size=2, max_size=40),
    first_mib=st.integers(1, 12),
    cap_mib=st.integers(1, 40),
)
@examples(100)
def test_the_cap_that_made_the_buckets_is_among_those_that_they_say(
    sizes: list[int], first_mib: int, cap_mib: int
) -> None:
    made = fill_buckets([float(n) for n in range(len(sizes))], sizes, cap_mib * MIB, first_mib * MIB)
    edges = np.cumsum([bucket.gradients for bucket in made]).tolist()
    one = _pass(
        list(range(1, len(sizes) + 1)), sizes, [(edge, int(b.bytes)) for edge, b in zip(edges, made, strict=True)]
    )

    found = recorded_caps(Gradients([one], np.array(sizes, np.float64), "recorded"))

    assert found is not None
    above, until, others_above, others_until = found
    assert above < first_mib * MIB <= until
    if len(made) > 1:
        assert others_above < cap_mib * MIB <= others_until
    if (first_mib, cap_mib) == (1, 25):
        assert is_torch_default(found)


def test_a_better_cost_never_leaves_more_exposed() -> None:
    gradients = _even(500e6, 40 * MS, count=200)
    slow, fast = sweep(gradients, Cost(50_000, 3.0, 8.0)), sweep(gradients, Cost(25_000, 3.0, 16.0))

    slow_of = {point.cap_bytes: point.exposed_ns for point in slow.curve}
    both = [(point.exposed_ns, slow_of[point.cap_bytes]) for point in fast.curve if point.cap_bytes in slow_of]
    assert len(both) > 5
    assert all(quick <= long for quick, long in both)


def test_the_range_of_the_best_cap_holds_the_best_cap() -> None:
    found = sweep(_even(500e6, 40 * MS, count=200), Cost(50_000, 0.0, 8.0))

    assert found.best_low_bytes <= found.best.cap_bytes <= found.best_high_bytes
    assert found.best_low_bytes < found.best_high_bytes


@given(
    moments_ms=st.lists(st.integers(0, 100), min_size=1, max_size=30),
    data=st.data(),
    latency_us=st.integers(0, 500),
    gb_per_s=st.floats(0.5, 200),
)
@examples(60)
def test_no_cap_goes_below_what_bytes_alone_leave(
    moments_ms: list[int], data: st.DataObject, latency_us: int, gb_per_s: float
) -> None:
    sizes = data.draw(st.lists(st.integers(1, 200_000_000), min_size=len(moments_ms), max_size=len(moments_ms)))
    one = _pass([at * MS for at in sorted(moments_ms)], sizes, [(len(sizes), -1)])

    found = sweep(Gradients([one], np.array(sizes, np.float64), "shapes"), Cost(latency_us * 1000.0, 0.0, gb_per_s))

    assert all(point.exposed_ns >= found.least_ns - 2 for point in found.curve)
    assert found.late_bytes >= sizes[-1]
