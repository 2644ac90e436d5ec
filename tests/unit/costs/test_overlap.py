"""What hides behind computation: gradient buckets and gathered weights, simulated, beside their closed forms."""

from __future__ import annotations

from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longpole.costs.overlap import (
    BEST_CAP_BYTES,
    CAP_BYTES,
    EXPOSED_IF_BOUND_S,
    EXPOSED_IF_HIDDEN_S,
    FIRST_CAP_BYTES,
    LEAST_HIDING_CAP_BYTES,
    MIB,
    Bucket,
    bucket_overlap,
    equal_buckets_exposed_s,
    equal_units_exposed_s,
    fill_buckets,
    prefetch_overlap,
    reduce_buckets,
    sweep_caps,
)
from longpole.errors import UsageError

# The example of the notes: 2.6 GB of gradients over a backward pass of 150 ms, small gradients at an even pace.
G_BYTES, T_S, COUNT = 2.6e9, 0.150, 26_000
READY_S = [T_S * (one + 1) / COUNT for one in range(COUNT)]
SIZES_BYTES = [G_BYTES / COUNT] * COUNT
seconds = st.floats(0.0, 10.0)


def network(size_bytes: float) -> float:
    """60 µs, and 12.5 GB/s."""
    return 60e-6 + size_bytes / 12.5e9


def nvlink(size_bytes: float) -> float:
    """24 µs, and 104 GB/s."""
    return 24e-6 + size_bytes / 104e9


@pytest.mark.parametrize(
    ("cap_mib", "exposed_ms"), [(5, 88.0), (25, 65.5), (100, 65.5), (500, 88.5), (G_BYTES / MIB, 208.0)]
)
def test_over_a_network_buckets_expose_what_the_notes_say(cap_mib: float, exposed_ms: float) -> None:
    """Too small pays latencies, too large starts late; one bucket hides nothing."""
    cap_bytes = cap_mib * MIB
    found = bucket_overlap(READY_S, SIZES_BYTES, cap_bytes, network, first_cap_bytes=cap_bytes)

    assert found.exposed_s * 1e3 == pytest.approx(exposed_ms, abs=0.3)
    assert found.hidden_s + found.exposed_s == pytest.approx(found.communication_s)


def test_one_mebibyte_buckets_pay_for_their_number() -> None:
    """207 ms by the notes with gradients that fill them exactly; 100 kB gradients make them 1.1 MB."""
    found = bucket_overlap(READY_S, SIZES_BYTES, MIB, network, first_cap_bytes=MIB)

    assert found.operations == 2364
    assert found.exposed_s * 1e3 == pytest.approx(EXPOSED_IF_BOUND_S(**_named(1.1e6)) * 1e3, abs=0.1)
    assert EXPOSED_IF_BOUND_S(**_named(MIB)) * 1e3 == pytest.approx(207, abs=0.5)


@pytest.mark.parametrize(("cap_mib", "exposed_ms"), [(500, 4.9), (G_BYTES / MIB, 25.0)])
def test_over_nvlink_only_the_last_bucket_is_exposed(cap_mib: float, exposed_ms: float) -> None:
    cap_bytes = cap_mib * MIB
    found = bucket_overlap(READY_S, SIZES_BYTES, cap_bytes, nvlink, first_cap_bytes=cap_bytes)

    assert found.exposed_s * 1e3 == pytest.approx(exposed_ms, abs=0.05)
    assert found.exposed_s == pytest.approx(EXPOSED_IF_HIDDEN_S(alpha=24e-6, last=found.last_bytes, rate=104e9))


def _named(cap_bytes: float) -> dict[str, float]:
    return {"G": G_BYTES, "rate": 12.5e9, "alpha": 60e-6, "b": cap_bytes, "T": T_S}


def test_the_best_bucket_is_g_times_the_root_of_alpha_over_t() -> None:
    """52 MB here: no other cap is better, and each exposes what the closed form says."""
    best_bytes = BEST_CAP_BYTES(G=G_BYTES, alpha=60e-6, T=T_S)
    assert best_bytes == pytest.approx(52e6)

    caps = [best_bytes * factor for factor in (0.25, 0.5, 1.0, 2.0, 4.0)]
    exposed_s = [bucket_overlap(READY_S, SIZES_BYTES, cap, network, first_cap_bytes=cap).exposed_s for cap in caps]

    assert min(exposed_s) == exposed_s[2]
    for cap, found_s in zip(caps, exposed_s, strict=True):
        assert found_s == pytest.approx(EXPOSED_IF_BOUND_S(**_named(cap)), abs=1.5e-4)


@settings(max_examples=20)
@given(alpha_s=st.floats(1e-4, 1e-3), over=st.floats(1.2, 3.0))
def test_where_communication_bounds_the_best_of_a_fine_sweep_is_the_closed_form(alpha_s: float, over: float) -> None:
    """Over any latency and rate: the best simulated bucket is within one step of the sweep of G * sqrt(alpha / T)."""
    count, total_bytes, backward_s = 500, 1e9, 0.1
    rate = total_bytes / (over * backward_s)
    ready_s = [backward_s * (one + 1) / count for one in range(count)]
    best_bytes = total_bytes * sqrt(alpha_s / backward_s)
    caps = [best_bytes * 2 ** (step / 2) for step in range(-6, 7)]

    exposed = [
        bucket_overlap(
            ready_s, [total_bytes / count] * count, cap, lambda size: alpha_s + size / rate, first_cap_bytes=cap
        ).exposed_s
        for cap in caps
    ]

    assert exposed[6] <= min(exposed) * 1.02


def test_a_bucket_too_small_to_hide_makes_communication_bound() -> None:
    least_bytes = LEAST_HIDING_CAP_BYTES(G=G_BYTES, alpha=24e-6, T=T_S, rate=104e9)

    def exposed_s(cap_bytes: float) -> float:
        return bucket_overlap(READY_S, SIZES_BYTES, cap_bytes, nvlink, first_cap_bytes=cap_bytes).exposed_s

    assert exposed_s(2 * least_bytes) < 1e-4
    assert exposed_s(0.5 * least_bytes) > 50e-3


def test_only_the_default_cap_has_a_smaller_first_bucket() -> None:
    """As torch does; with a cap that the user states, the first bucket has it too."""
    sizes = [float(MIB)] * 60
    moments = [float(one) for one in range(60)]

    assert [bucket.gradients for bucket in fill_buckets(moments, sizes, CAP_BYTES)] == [1, 25, 25, 9]
    assert [bucket.gradients for bucket in fill_buckets(moments, sizes, 26 * MIB)] == [26, 26, 8]
    assert FIRST_CAP_BYTES == MIB


@pytest.mark.slow
def test_buckets_are_those_of_torch() -> None:
    """Torch's own function puts the same tensors into the same buckets."""
    torch = pytest.importorskip("torch")
    import torch.distributed as dist

    sizes = [300, 5_000, 40, 700_000, 1_200, 260_000, 90_000, 262_144, 8, 8, 400_000]
    tensors = [torch.zeros(size) for size in sizes]

    theirs, _ = dist._compute_bucket_assignment_by_size(tensors, [FIRST_CAP_BYTES, 2 * MIB])  # noqa: SLF001

    moments = [float(one) for one in range(len(sizes))]
    ours = fill_buckets(moments, [4.0 * size for size in sizes], 2 * MIB, FIRST_CAP_BYTES)
    assert [bucket.gradients for bucket in ours] == [len(bucket) for bucket in theirs]


@given(
    gradients=st.lists(st.tuples(seconds, st.floats(1.0, 1e6)), min_size=1, max_size=40),
    cap_bytes=st.floats(1.0, 1e7),
    alpha_s=st.floats(0.0, 1.0),
)
def test_what_is_exposed_is_at_least_the_last_bucket_and_at_most_everything(
    gradients: list[tuple[float, float]], cap_bytes: float, alpha_s: float
) -> None:
    moments, sizes = [moment for moment, _ in gradients], [size for _, size in gradients]
    found = bucket_overlap(moments, sizes, cap_bytes, lambda size: alpha_s + size / 1e6)

    assert found.communication_s == pytest.approx(found.operations * alpha_s + sum(sizes) / 1e6)
    assert found.hidden_s + found.exposed_s <= found.communication_s * (1 + 1e-9) + 1e-12
    assert found.exposed_s >= (alpha_s + found.last_bytes / 1e6) * (1 - 1e-9)


@given(count=st.integers(1, 50), backward_s=st.floats(0.01, 10.0), bucket_s=st.floats(1e-4, 1.0))
def test_equal_buckets_expose_what_their_closed_form_says(count: int, backward_s: float, bucket_s: float) -> None:
    buckets = [Bucket(ready_s=backward_s * (one + 1) / count, bytes=1.0, gradients=1) for one in range(count)]

    found = reduce_buckets(buckets, lambda _: bucket_s, backward_s)

    assert equal_buckets_exposed_s(count, backward_s, bucket_s) == pytest.approx(found.exposed_s, abs=1e-9)


@given(units=st.integers(1, 30), compute_s=seconds, gather_s=seconds, reduce_s=seconds)
def test_equal_units_expose_what_their_closed_form_says(
    units: int, compute_s: float, gather_s: float, reduce_s: float
) -> None:
    found = prefetch_overlap([compute_s] * units, [gather_s] * units, 1, [reduce_s] * units)

    closed_s = equal_units_exposed_s(units, compute_s, gather_s, reduce_s)
    assert closed_s == pytest.approx(found.exposed_s, abs=1e-7)


def test_weights_gathered_one_layer_ahead_hide_behind_the_layer_before() -> None:
    """Only the first gather is exposed where computing takes longer; one by one, all of them are.

    gather   ├─0─┤├─1─┤     ├─2─┤
    compute       ├────0───┤├────1───┤├────2───┤
    """
    ahead = prefetch_overlap([3.0, 3.0, 3.0], [1.0, 1.0, 1.0])
    one_by_one = prefetch_overlap([3.0, 3.0, 3.0], [1.0, 1.0, 1.0], ahead=0)

    assert (ahead.exposed_s, ahead.hidden_s) == (1.0, 2.0)
    assert (one_by_one.exposed_s, one_by_one.hidden_s) == (3.0, 0.0)


def test_where_gathering_takes_longer_it_sets_the_pace() -> None:
    found = prefetch_overlap([1.0] * 4, [3.0] * 4)

    assert found.exposed_s == 3.0 + 3 * (3.0 - 1.0)


@given(units=st.lists(st.tuples(seconds, seconds, seconds), min_size=1, max_size=12), ahead=st.integers(0, 4))
def test_gathering_further_ahead_never_exposes_more_of_a_forward_pass(
    units: list[tuple[float, float, float]], ahead: int
) -> None:
    computed, gathered = [unit[0] for unit in units], [unit[1] for unit in units]

    near, far = prefetch_overlap(computed, gathered, ahead), prefetch_overlap(computed, gathered, ahead + 1)

    assert far.exposed_s <= near.exposed_s + 1e-9


def test_a_sweep_ends_with_one_bucket_and_keeps_to_the_caps_below_it() -> None:
    found = sweep_caps([1.0, 2.0], [40.0 * MIB, 60.0 * MIB], network, (25 * MIB, 50 * MIB, 500 * MIB))

    assert list(found) == [25.0 * MIB, 50.0 * MIB, 100.0 * MIB]
    assert found[100.0 * MIB].operations == 1


@pytest.mark.parametrize(
    ("moments", "sizes", "cap", "says"),
    [
        ([1.0], [1.0, 2.0], 10.0, "found 1 for 2"),
        ([1.0], [1.0], 0.0, "bytes above 0"),
        ([1.0], [-1.0], 10.0, "0 or more"),
        ([float("nan")], [1.0], 10.0, "0 or more"),
    ],
)
def test_what_is_no_gradient_is_refused(moments: list[float], sizes: list[float], cap: float, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        bucket_overlap(moments, sizes, cap, network)


def test_what_is_no_unit_is_refused() -> None:
    with pytest.raises(UsageError, match="a gather and a reduction for each of 2"):
        prefetch_overlap([1.0, 1.0], [1.0])
    with pytest.raises(UsageError, match="0 or more units ahead"):
        prefetch_overlap([1.0], [1.0], ahead=-1)
