"""Ways to divide: each gives every sequence to one rank, none beats the bound, the best is near the optimum."""

from __future__ import annotations

from itertools import product
from math import fsum

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from longpole.costs.balance.batch import Batch, Parts, in_blocks, in_rotation, in_turn
from longpole.costs.balance.bound import lower_bound
from longpole.costs.balance.choose import balance
from longpole.costs.balance.differencing import differencing
from longpole.costs.balance.exact import optimum
from longpole.costs.balance.exchange import exchange
from longpole.costs.balance.longest_first import longest_first
from longpole.costs.balance.multifit import multifit
from longpole.errors import UsageError

FEW = settings(max_examples=20)
COSTS = st.lists(st.integers(0, 2000).map(float), min_size=1, max_size=40)
SPEEDS = st.one_of(
    st.integers(1, 6).map(lambda ranks: [1.0] * ranks),
    st.lists(st.sampled_from([0.4, 0.6, 1.0, 1.3]), min_size=1, max_size=5),
)
BATCHES = st.builds(Batch, COSTS, SPEEDS, st.booleans())
SMALL = st.builds(
    Batch,
    st.lists(st.integers(1, 60).map(float), min_size=1, max_size=7),
    st.lists(st.sampled_from([0.5, 1.0, 1.0]), min_size=1, max_size=3),
    st.booleans(),
)


def brute_force(batch: Batch) -> float:
    """Try every division that the batch allows."""
    best = float("inf")
    for owners in product(range(batch.ranks), repeat=len(batch.costs)):
        counts = [owners.count(rank) for rank in range(batch.ranks)]
        if min(counts) < batch.least_count or max(counts) > batch.most_count:
            continue
        loads = [
            fsum(cost for cost, owner in zip(batch.costs, owners, strict=True) if owner == rank) / speed
            for rank, speed in enumerate(batch.speeds)
        ]
        best = min(best, max(loads))
    return best


def assert_divides(batch: Batch, parts: Parts) -> None:
    assert len(parts) == batch.ranks
    assert sorted(place for part in parts for place in part) == list(range(len(batch.costs)))
    counts = [len(part) for part in parts]
    assert min(counts) >= batch.least_count
    assert max(counts) <= batch.most_count


@given(BATCHES)
def test_every_method_gives_each_sequence_to_one_rank_and_none_is_below_the_bound(batch: Batch) -> None:
    bound = lower_bound(batch)
    greedy = longest_first(batch)
    found = {"longest first": greedy, "exchange": exchange(batch, greedy, bound), "best": balance(batch).parts}
    if batch.is_even:
        found["differencing"] = differencing(batch)
    if not batch.equal_counts:
        packed = multifit(batch, bound, batch.longest_load(greedy))
        found |= {"multifit": packed} if packed is not None else {}

    for parts in found.values():
        assert_divides(batch, parts)
        assert batch.longest_load(parts) >= bound * (1 - 1e-12)


@FEW
@given(BATCHES)
def test_the_best_is_no_worse_than_any_method_and_than_dealing_out(batch: Batch) -> None:
    best = balance(batch)

    assert best.load == batch.longest_load(best.parts)
    assert best.load <= min(best.by_method.values())
    assert best.load <= batch.longest_load(longest_first(batch))
    if len(batch.costs) >= batch.ranks and batch.equal_counts:
        # In turn obeys equal counts, too, so that the greedy method with exchange may be compared with it.
        assert best.bound <= batch.longest_load(in_turn(batch)) * (1 + 1e-12)


@given(SMALL)
def test_the_optimum_is_what_trying_all_divisions_finds(batch: Batch) -> None:
    best = balance(batch)
    searched = optimum(batch, best.parts, best.bound)
    truth = brute_force(batch)

    assert searched.parts is not None
    assert_divides(batch, searched.parts)
    assert batch.longest_load(searched.parts) == pytest.approx(truth, rel=1e-9)
    assert best.bound <= truth * (1 + 1e-9)
    assert best.load >= truth * (1 - 1e-9)


@given(st.lists(st.integers(1, 500).map(float), min_size=2, max_size=9), st.integers(2, 3))
def test_the_best_is_within_the_guarantee_of_the_greedy_method(costs: list[float], ranks: int) -> None:
    """4/3 - 1/(3·ranks) times the optimum (Graham 1969)."""
    batch = Batch(costs, [1.0] * ranks)
    best = balance(batch)
    searched = optimum(batch, best.parts, best.bound)

    assert searched.parts is not None
    assert best.load <= (4 / 3 - 1 / (3 * ranks)) * batch.longest_load(searched.parts) * (1 + 1e-9)


@FEW
@given(BATCHES, st.sampled_from([0.5, 2.0, 1024.0]))
def test_a_unit_of_cost_changes_nothing(batch: Batch, factor: float) -> None:
    scaled = Batch([cost * factor for cost in batch.costs], batch.speeds, batch.equal_counts)

    assert balance(scaled).parts == balance(batch).parts


@FEW
@given(BATCHES)
def test_faster_ranks_are_done_as_much_earlier(batch: Batch) -> None:
    faster = Batch(batch.costs, [speed * 4 for speed in batch.speeds], batch.equal_counts)

    assert balance(faster).load == balance(batch).load / 4


@FEW
@given(COSTS, st.integers(1, 5))
def test_one_more_sequence_lowers_no_bound(costs: list[float], ranks: int) -> None:
    speeds = [1.0] * ranks

    assert lower_bound(Batch([*costs, 7.0], speeds)) >= lower_bound(Batch(costs, speeds)) * (1 - 1e-12)


def single_exchanges(batch: Batch, parts: Parts, last: int) -> list[float]:
    """Return when the later of the two ranks is done, of every move and swap between the last rank and another."""
    found = []
    for other in (rank for rank in range(batch.ranks) if rank != last):
        counts_allow = len(parts[last]) > batch.least_count and len(parts[other]) < batch.most_count
        for goes in parts[last]:
            for comes in [*([None] if counts_allow else []), *parts[other]]:
                less = batch.costs[goes] - (0.0 if comes is None else batch.costs[comes])
                loads = batch.loads(parts)
                found.append(max(loads[last] - less / batch.speeds[last], loads[other] + less / batch.speeds[other]))
    return found


@FEW
@given(BATCHES)
def test_exchange_ends_where_no_single_exchange_with_the_last_rank_helps(batch: Batch) -> None:
    parts = exchange(batch, in_blocks(batch) if batch.equal_counts else longest_first(batch), 0.0)
    loads = batch.loads(parts)
    last = loads.index(max(loads))

    assert min(single_exchanges(batch, parts, last), default=loads[last]) >= loads[last] * (1 - 1e-9)


@given(st.lists(st.integers(1, 99).map(float), min_size=4, max_size=12))
def test_two_ranks_make_the_best_exchange_first(costs: list[float]) -> None:
    """`enough` is set so that the first step ends the search."""
    batch = Batch(costs, [1.0, 0.7])
    start = in_blocks(batch)
    loads = batch.loads(start)
    best = min(single_exchanges(batch, start, loads.index(max(loads))))
    assume(best < max(loads))

    assert batch.longest_load(exchange(batch, start, best)) == pytest.approx(best)


def test_the_worst_case_of_the_greedy_method_is_mended_by_exchange_or_differencing() -> None:
    """Graham's example for three ranks: 5 5 4 4 3 3 3. Greedy has 11, the optimum is 9."""
    batch = Batch([5.0, 5.0, 4.0, 4.0, 3.0, 3.0, 3.0], [1.0] * 3)

    assert batch.longest_load(longest_first(batch)) == 11
    best = balance(batch)
    searched = optimum(batch, best.parts, best.bound)
    assert searched.parts is not None
    assert batch.longest_load(searched.parts) == 9
    assert best.load < 11


def test_the_example_of_karmarkar_and_karp() -> None:
    """8 7 6 5 4 on two ranks: differencing reaches 16 and 14, exchange 15 and 15."""
    batch = Batch([8.0, 7.0, 6.0, 5.0, 4.0], [1.0, 1.0])

    assert sorted(batch.loads(differencing(batch))) == [14, 16]
    assert batch.longest_load(longest_first(batch)) == 17
    assert balance(batch).load == 15
    assert balance(batch).method == "exchange"


def test_differencing_beats_the_greedy_method_on_many_sequences() -> None:
    costs = [float((i * 7919) % 2003 + 1) for i in range(400)]
    batch = Batch(costs, [1.0] * 8)

    over = [batch.longest_load(parts) / batch.mean_load - 1 for parts in (longest_first(batch), differencing(batch))]

    assert over[1] < over[0] / 3
    assert over[0] < 0.01


def test_a_slow_rank_gets_less() -> None:
    batch = Batch([1.0] * 26, [1.0, 1.0, 0.6])

    assert [len(part) for part in balance(batch).parts] == [10, 10, 6]


def test_a_rank_is_never_left_without_a_sequence() -> None:
    """A rank without a batch would keep all others waiting in their next collective."""
    batch = Batch([100.0, 1.0, 1.0], [1.0, 1.0, 0.001])

    assert min(len(part) for part in balance(batch).parts) == 1


def test_in_turn_is_what_a_distributed_sampler_deals_out() -> None:
    pytest.importorskip("torch")
    from torch.utils.data import DistributedSampler

    batch = Batch([1.0] * 12, [1.0] * 4)
    dealt = [list(DistributedSampler(range(12), num_replicas=4, rank=rank, shuffle=False)) for rank in range(4)]

    assert in_turn(batch) == dealt


@FEW
@given(BATCHES)
def test_dealing_out_gives_each_sequence_to_one_rank(batch: Batch) -> None:
    for divide in (in_turn, in_blocks):
        parts = divide(batch)
        assert sorted(place for part in parts for place in part) == list(range(len(batch.costs)))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


@FEW
@given(BATCHES, st.integers(0, 20))
def test_ranks_take_turns_only_where_they_are_as_fast(batch: Batch, number: int) -> None:
    parts = balance(batch).parts
    turned = in_rotation(batch, parts, number)

    assert sorted(turned) == sorted(parts)
    assert batch.longest_load(turned) == batch.longest_load(parts)
    assert batch.is_even or turned == parts


@pytest.mark.parametrize("speeds", [[], [0.0], [-1.0], [float("nan")], [float("inf")]])
def test_speeds_that_are_none_are_refused(speeds: list[float]) -> None:
    with pytest.raises(UsageError, match="rank"):
        Batch([1.0], speeds)
