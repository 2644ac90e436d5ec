"""Rows of activations tell the batch, and weights tell the model."""

from __future__ import annotations

import pytest

from longpole.advice.verify.shapes import batch_ratio, is_other_model

LINEAR = "[[{b}, {s}, 512], [2048, 512], [2048]]"


def linear(batch: int, length: int = 128) -> dict[str, list[str]]:
    return {"aten::linear": [LINEAR.format(b=batch, s=length), f"[[{batch}, {length}, 2048], [512, 2048], [512]]"]}


def test_a_doubled_batch_doubles_the_rows() -> None:
    assert batch_ratio(linear(8), linear(16)) == 2
    assert batch_ratio(linear(8), linear(8)) == 1


def test_a_longer_sequence_is_more_tokens() -> None:
    assert batch_ratio(linear(8, 128), linear(8, 192)) == 1.5


def test_convolutions_and_embeddings_count_too() -> None:
    conv = {"aten::conv2d": ["[[4, 3, 32, 32], [16, 3, 5, 5], [16]]"]}
    more = {"aten::conv2d": ["[[12, 3, 32, 32], [16, 3, 5, 5], [16]]"]}
    assert batch_ratio(conv, more) == 3
    assert (
        batch_ratio({"aten::embedding": ["[[1000, 64], [8, 128]]"]}, {"aten::embedding": ["[[1000, 64], [4, 128]]"]})
        == 0.5
    )


@pytest.mark.parametrize(
    "after",
    [
        {},
        {"aten::relu": ["[[16, 512]]"]},
        {"aten::linear": ["[[16, 128, 1024], [2048, 1024], [2048]]"]},
        {"aten::linear": ["nonsense", "[1, 2]", "[[[]]]", "[[16, 128, 512]]"]},
        {"aten::linear": [LINEAR.format(b=16, s=128), LINEAR.format(b=24, s=128)]},
    ],
)
def test_where_operators_do_not_agree_nothing_is_said(after: dict[str, list[str]]) -> None:
    assert batch_ratio(linear(8), after) is None


def test_two_ratios_are_no_ratio() -> None:
    other = {"aten::linear": [LINEAR.format(b=16, s=128), "[[24, 128, 2048], [512, 2048], [512]]"]}
    assert batch_ratio(linear(8), other) is None


def test_another_model_shares_no_weight() -> None:
    wide = {"aten::linear": ["[[8, 128, 1024], [4096, 1024]]", "[[8, 128, 4096], [1024, 4096]]"]}
    assert is_other_model(linear(8), wide)
    assert not is_other_model(linear(8), linear(64))
    assert not is_other_model(linear(8), {})
