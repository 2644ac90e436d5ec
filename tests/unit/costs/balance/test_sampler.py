"""The sampler: ranks divide each global batch between them, all compute the same division, and torch takes it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longpole
from longpole.costs.balance.sampler import BalancedBatchSampler
from longpole.costs.balance.sequence_cost import BY_TOKENS, ModelCost, SequenceCost, by_crossover
from longpole.costs.conventions import convention_of
from longpole.costs.flops import flops_per_token
from longpole.costs.presets import preset
from longpole.errors import UsageError
from tests.balance_samples import chat_lengths

LENGTHS = chat_lengths(203)


def samplers(lengths: list[int] = LENGTHS, ranks: int = 4, **given: Any) -> list[BalancedBatchSampler]:
    return [
        BalancedBatchSampler(lengths, ranks=ranks, rank=rank, **({"batch_size": 32} | given)) for rank in range(ranks)
    ]


@settings(max_examples=25)
@given(
    st.lists(st.integers(0, 5000), min_size=1, max_size=60),
    st.integers(1, 5),
    st.integers(5, 20),
    st.booleans(),
    st.booleans(),
    st.integers(0, 3),
)
def test_the_ranks_batches_make_up_the_global_batch(
    lengths: list[int], ranks: int, batch_size: int, drop_last: bool, equal_counts: bool, epoch: int
) -> None:
    all_ranks = samplers(lengths, ranks, batch_size=batch_size, drop_last=drop_last, equal_counts=equal_counts)
    for sampler in all_ranks:
        sampler.set_epoch(epoch)
    batches = [list(sampler) for sampler in all_ranks]
    whole = list(all_ranks[0].global_batches())

    assert {len(of_rank) for of_rank in batches} == {len(all_ranks[0])} == {len(whole)}
    for number, places in enumerate(whole):
        of_ranks = [of_rank[number] for of_rank in batches]
        assert sorted(place for part in of_ranks for place in part) == sorted(places)
        assert all(of_ranks), "a rank without a batch leaves the others waiting"
        if equal_counts:
            assert max(map(len, of_ranks)) - min(map(len, of_ranks)) <= 1


def test_an_epoch_has_every_sequence_once() -> None:
    seen = sorted(place for sampler in samplers() for batch in sampler for place in batch)

    assert seen == list(range(len(LENGTHS)))


def test_the_order_follows_from_seed_and_epoch() -> None:
    def order(seed: int, epoch: int) -> list[list[int]]:
        sampler = samplers(seed=seed)[0]
        sampler.set_epoch(epoch)
        return list(sampler)

    assert order(1, 2) == order(1, 2)
    assert order(1, 2) != order(1, 3)
    assert order(1, 2) != order(2, 2)


def test_a_resumed_epoch_goes_on_where_it_stopped() -> None:
    sampler, resumed = samplers()[2], samplers()[2]
    sampler.set_epoch(3)
    resumed.set_epoch(3, done_batches=5)

    assert list(resumed) == list(sampler)[5:]
    assert len(resumed) == len(sampler) - 5 == 2
    resumed.set_epoch(4)
    assert len(resumed) == 7
    with pytest.raises(UsageError, match="done_batches: expected 0 to 6, found 7"):
        resumed.set_epoch(4, done_batches=7)


def test_the_order_of_an_epoch_never_changes() -> None:
    """A job that is resumed with a newer version must find the same epoch again."""
    assert next(samplers(seed=42)[0].global_batches())[:6] == [82, 63, 30, 126, 73, 28]


def test_balanced_batches_are_nearly_even() -> None:
    lengths = chat_lengths(1024, seed=3)
    lengths = [min(length, 4000) for length in lengths]
    all_ranks = samplers(lengths, 8, batch_size=256)

    for number in range(len(all_ranks[0])):
        tokens = [sum(lengths[place] for place in list(sampler)[number]) for sampler in all_ranks]
        assert max(tokens) <= 1.005 * sum(tokens) / len(tokens)


def test_it_divides_as_the_command_does() -> None:
    sampler = samplers(shuffle=False, drop_last=True, enough_share=0.0)[0]
    document = longpole.balance(LENGTHS, ranks=4, batch_size=32)

    divided = [sampler.divide(places, number) for number, places in enumerate(sampler.global_batches())]

    assert document.assignment[: len(divided)] == divided


def test_ranks_take_turns_with_the_longest_sequence() -> None:
    lengths = [1000, *[10] * 7] * 8
    batches = [list(sampler) for sampler in samplers(lengths, 4, batch_size=8, shuffle=False)]

    has_longest = [
        next(rank for rank in range(4) if any(lengths[place] == 1000 for place in batches[rank][number]))
        for number in range(8)
    ]

    assert sorted(has_longest) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_last_batch_with_too_few_sequences_is_filled_from_the_beginning_or_dropped() -> None:
    lengths = [5] * 10
    filled = samplers(lengths, 4, batch_size=8, shuffle=False)

    assert [len(list(sampler)[-1]) for sampler in filled] == [1, 1, 1, 1]
    assert sorted(place for sampler in filled for place in list(sampler)[-1]) == [0, 1, 8, 9]
    assert len(samplers(lengths, 4, batch_size=8, drop_last=True)[0]) == 1


@pytest.mark.parametrize("workers", [0])
def test_a_data_loader_takes_it(workers: int) -> None:
    torch = pytest.importorskip("torch")
    data = [torch.full((length,), place) for place, length in enumerate(LENGTHS)]
    loaders = [
        torch.utils.data.DataLoader(data, batch_sampler=sampler, num_workers=workers, collate_fn=list)
        for sampler in samplers()
    ]

    loaded = [[int(row[0]) for row in batch] for loader in loaders for batch in loader]

    assert sorted(place for batch in loaded for place in batch) == list(range(len(LENGTHS)))
    assert [len(loader) for loader in loaders] == [7, 7, 7, 7]


@pytest.mark.parametrize("lengths", [np.array(LENGTHS), np.array(LENGTHS, np.uint16), tuple(LENGTHS)])
def test_lengths_of_any_kind(lengths: Any) -> None:
    sampler = BalancedBatchSampler(lengths, ranks=4, rank=1, batch_size=32)

    assert list(sampler) == list(samplers()[1])


def test_a_tensor_of_lengths() -> None:
    torch = pytest.importorskip("torch")

    assert list(samplers(torch.tensor(LENGTHS))[1]) == list(samplers()[1])


def test_costs_by_name_by_factor_and_by_model() -> None:
    model, convention = preset("llama-2-7b"), convention_of("mcore")
    cost = ModelCost(model, convention)

    assert cost.of_all([0, 512, 512]) == [0.0, *[512 * flops_per_token(model, 512, convention)] * 2]
    assert by_crossover(100).of(100) == 200
    assert by_crossover(100).crossover_tokens == 100
    assert BY_TOKENS.crossover_tokens == float("inf")
    by_square = samplers(cost="square")[0]
    assert list(samplers(cost=SequenceCost(0.0, 3.0))[0]) == list(by_square)
    assert list(samplers(cost=cost)[0]) != list(by_square)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"rank": 4}, "rank 4 of 4"),
        ({"rank": -1}, "rank -1"),
        ({"batch_size": 3}, "at least one sequence for each of 4 ranks, found 3"),
        ({"speeds": [1, 1]}, "one for each of 4 ranks, found 2"),
        ({"speeds": [1, 1, 1, 0]}, "speed of rank 3"),
        ({"cost": "time"}, "tokens, square or a SequenceCost, found 'time'"),
        ({"lengths": [1, 2.5]}, "sequence 1 has 2.5"),
        ({"lengths": [True]}, "sequence 0 has True"),
        ({"lengths": [-1]}, "sequence 0 has -1"),
        ({"lengths": []}, "found none"),
    ],
)
def test_a_wrong_argument_is_named(given: dict[str, Any], says: str) -> None:
    arguments: dict[str, Any] = {"lengths": LENGTHS, "ranks": 4, "rank": 0, "batch_size": 32} | given

    with pytest.raises(UsageError, match=says.replace("(", r"\(")):
        BalancedBatchSampler(**arguments)


@pytest.mark.parametrize("factors", [(0.0, 0.0), (-1.0, 1.0), (float("nan"), 1.0), (1.0, float("inf"))])
def test_a_cost_that_is_none_is_refused(factors: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="cost of a sequence"):
        SequenceCost(*factors)


@pytest.mark.parametrize("tokens", [0.0, -5.0, float("nan")])
def test_a_crossover_that_is_none_is_refused(tokens: float) -> None:
    with pytest.raises(UsageError, match="crossover"):
        by_crossover(tokens)


def test_the_sampler_loads_neither_torch_nor_numpy() -> None:
    program = (
        "import longpole, sys\n"
        "sampler = longpole.BalancedBatchSampler([3, 1, 2, 5], ranks=2, rank=0, batch_size=4)\n"
        "assert len(list(sampler)) == 1\n"
        "print(*{'torch', 'numpy', 'polars', 'scipy'} & sys.modules.keys())"
    )
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert run.stdout.split() == []
