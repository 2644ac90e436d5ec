"""`longpole.balance`: the document, whose figures follow from the assignment that it holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longpole
from longpole.errors import InputError, UsageError
from longpole.pipeline.balance import BalanceOptions, balance_lengths
from longpole.records.ledger import Unknown
from longpole.records.strict_json import encode_document
from longpole.report.balance import balance_schema
from longpole.report.schema import read_schema
from longpole.report.schema_of import written_type
from tests.balance_samples import SAMPLES, chat_lengths
from tests.scaling_runs import write_run

if TYPE_CHECKING:
    from pathlib import Path


def loads(document: Any, cost: Any, parts: list[list[int]], lengths: list[int]) -> list[float]:
    speeds = [rank.speed for rank in document.ranks]
    return [sum(cost(lengths[place]) for place in part) / speed for part, speed in zip(parts, speeds, strict=True)]


@settings(max_examples=30)
@given(
    st.lists(st.integers(0, 9000), min_size=6, max_size=60).filter(any),
    st.lists(st.sampled_from([0.5, 1.0, 1.0]), min_size=1, max_size=4),
    st.integers(4, 30),
    st.sampled_from(["tokens", "square"]),
    st.booleans(),
)
def test_every_figure_follows_from_the_assignment(
    lengths: list[int], speeds: list[float], batch_size: int, cost: str, equal_counts: bool
) -> None:
    document = balance_lengths(
        lengths, BalanceOptions(speeds=speeds, batch_size=batch_size, cost=cost, equal_counts=equal_counts)
    )
    of = (lambda tokens: tokens) if cost == "tokens" else (lambda tokens: tokens**2)
    by_batch = [loads(document, of, parts, lengths) for parts in document.assignment]
    begun = [number * batch_size for number in range(document.batches)]
    before = [
        loads(document, of, [list(range(len(lengths)))[begin : begin + batch_size][rank :: len(speeds)]
                             for rank in range(len(speeds))], lengths)
        for begin in begun
    ]  # fmt: skip

    assert document.after.load == pytest.approx(sum(map(max, by_batch)))
    assert document.before.load == pytest.approx(sum(map(max, before)))
    assert document.bound <= document.after.load * (1 + 1e-9)
    assert isinstance(document.optimum, Unknown) or document.bound <= document.optimum * (1 + 1e-9)
    assert isinstance(document.optimum, Unknown) or document.optimum <= document.after.load * (1 + 1e-9)
    assert document.methods[-1].load == pytest.approx(document.after.load)
    assert document.faster_share == pytest.approx(1 - document.after.load / document.before.load)
    for place, rank in enumerate(document.ranks):
        own = [parts[place] for parts in document.assignment]
        assert rank.sequences_after == sum(map(len, own))
        assert rank.tokens_after == sum(lengths[at] for part in own for at in part)
        waits = 1 - sum(of_rank[place] for of_rank in by_batch) / document.after.load
        assert rank.wait_share_after == pytest.approx(waits, abs=1e-9)
    assert document.after.most_tokens == max(
        sum(lengths[at] for at in part) for parts in document.assignment for part in parts
    )


def test_sequences_of_a_last_batch_that_cannot_go_round_are_left_out_and_counted() -> None:
    document = longpole.balance([5] * 10, ranks=4, batch_size=8)

    assert document.batches == 1
    assert document.notes[0] == "the last 2 sequences cannot go to all ranks: left out"


def test_one_long_sequence_is_named_as_what_no_division_helps_against() -> None:
    document = longpole.balance([100, 10, 10, 10], ranks=2)

    assert any("the longest sequence alone takes longer than the mean" in note for note in document.notes)
    assert document.optimum == 100
    assert document.after.over_mean == pytest.approx(100 / 65)


def test_what_is_even_already_is_said_to_be() -> None:
    document = longpole.balance([7] * 12, ranks=4)

    assert document.says.endswith("no other division is better")
    assert document.faster_share == 0
    assert document.before.wait_share == pytest.approx(0, abs=1e-12)


def test_balancing_by_tokens_leaves_attention_uneven_and_says_so() -> None:
    document = longpole.balance(chat_lengths(512), ranks=4)

    assert document.after.tokens_over_mean == pytest.approx(1, abs=1e-4)
    assert document.after.squares_over_mean > 1.1


def test_a_models_flops_are_balanced_under_a_named_convention() -> None:
    document = balance_lengths(
        chat_lengths(200), BalanceOptions(ranks=4, model="llama-3-8b", convention="Megatron-Core")
    )

    assert document.cost.by == "flops"
    assert document.cost.convention == "mcore"
    assert "linear + core/2 + logits" in document.cost.formula
    assert document.after.over_mean == pytest.approx(1, abs=1e-3)


def test_a_model_may_be_a_configuration(tmp_path: Path) -> None:
    config = {
        "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
        "intermediate_size": 128, "vocab_size": 100,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    options = BalanceOptions(ranks=2, model=str(tmp_path / "config.json"), convention="mcore")

    assert balance_lengths([9, 8, 7, 6], options).cost.model == tmp_path.name


def test_speeds_come_from_a_trace(tmp_path: Path) -> None:
    """Rank 1 takes 120 µs for the kernel that takes rank 0 and 2 80 µs."""
    for rank, busy_us in enumerate((80, 120, 80)):
        write_run(tmp_path / str(rank), 3, busy_us=busy_us, idle_us=200 - busy_us)
    traces = [str(tmp_path / str(rank) / f"rank{rank}.json") for rank in range(3)]

    document = balance_lengths([6] * 64, BalanceOptions(trace=traces))

    assert [rank.speed for rank in document.ranks] == [1.0, pytest.approx(2 / 3), 1.0]
    assert [rank.sequences_after for rank in document.ranks] == [24, 16, 24]
    assert document.speeds_from == " ".join(traces)
    assert any("equal numbers of kernels" in note for note in document.notes)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_document_decodes_into_its_written_type(name: str) -> None:
    document = SAMPLES[name]()
    decoded = msgspec.json.decode(encode_document(document), type=written_type(type(document)))

    assert json.loads(msgspec.json.encode(decoded)) == json.loads(msgspec.json.encode(document))


def test_what_is_not_known_is_listed() -> None:
    document = SAMPLES["slow-rank"]()

    assert [entry.at for entry in document.unknown] == ["/optimum"]


def test_the_shipped_schema_is_that_of_the_code() -> None:
    assert read_schema("balance") == balance_schema(), "run python -m tools.write_generated"


def test_a_file_and_its_lengths_give_the_same(tmp_path: Path) -> None:
    lengths = chat_lengths(40)
    (tmp_path / "lengths.txt").write_text("\n".join(map(str, lengths)))

    from_file, given_here = longpole.balance(tmp_path / "lengths.txt", ranks=4), longpole.balance(lengths, ranks=4)

    assert from_file.assignment == given_here.assignment
    assert from_file.source == str(tmp_path / "lengths.txt")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "over how many ranks is not said"),
        ({"ranks": 0}, "--ranks: expected 1 to"),
        ({"ranks": 3, "speeds": [1.0, 1.0]}, "--ranks 3: there are speeds of 2 ranks"),
        ({"speeds": [1.0, -1.0]}, "speed of rank 1: expected a number above 0, found -1.0"),
        ({"speeds": [1.0], "trace": ["x"]}, "expected --speed or --from, found both"),
        ({"ranks": 9}, "8 sequences of a batch cannot go to 9 ranks"),
        ({"ranks": 4, "batch_size": 3}, "3 sequences of a batch cannot go to 4 ranks"),
        ({"ranks": 2, "cost": "time"}, "--cost: expected one of tokens, square; found 'time'"),
        ({"ranks": 2, "cost": "tokens", "crossover": 3.0}, "found --cost and --crossover"),
        ({"ranks": 2, "crossover": -3.0}, "crossover: expected a number of tokens above 0"),
        ({"ranks": 2, "model": "llama-3-8b"}, "no convention is named"),
        ({"ranks": 2, "convention": "6n"}, "found no --model"),
        ({"ranks": 2, "model": "no such model", "convention": "6n"}, "is not in the table"),
    ],
)
def test_a_wrong_option_is_named(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        balance_lengths([3, 4, 5, 6, 7, 8, 9, 10], BalanceOptions(**given))

    assert says in str(caught.value)


def test_sequences_of_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="expected tokens to divide"):
        longpole.balance([0, 0, 0], ranks=2)
