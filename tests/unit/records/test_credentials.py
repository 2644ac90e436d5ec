"""Credentials are taken out, whatever form they have; what only looks like one stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.records.credentials import REDACTED, redact, redact_all, redact_arguments, redact_variable

# Put together here, so that no scanner takes this file for a leak.
TOKENS = [
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "hf" + "_" + "a1B2" * 9,
    "ghp" + "_" + "a1B2" * 9,
    "github" + "_pat_" + "a1B2" * 9,
    "glpat" + "-" + "a1B2" * 6,
    "sk" + "-" + "a1B2" * 6,
    "xoxb" + "-" + "1234567890-abc",
    "AIza" + "a1B2" * 8 + "xyz",
    "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".c2lnbmF0dXJl",
]


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("around", ["{}", "get {} now", "https://host/?q={}", '"{}"', "a,{};b"])
def test_a_token_of_a_known_form_is_taken_out_wherever_it_stands(token: str, around: str) -> None:
    found = redact(around.format(token))

    assert token not in found
    assert REDACTED in found


@pytest.mark.parametrize(
    "text",
    [
        "aten::mm",
        "model.layers.3.self_attn.k_proj",
        "key_value_heads=8",
        "tokens: 4096",
        "num_tokens=16384",
        "9b1bdca24b929b1a775b0d2cd898c3930fd12345",
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
        "https://host/path?page=3",
        "--lr=0.1",
    ],
)
def test_what_is_no_credential_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("name", ["HF_TOKEN", "WANDB_API_KEY", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "my.auth"])
def test_a_variable_whose_name_is_of_a_secret_keeps_its_name_alone(name: str) -> None:
    assert redact_variable(name, "1") == REDACTED
    assert redact_variable(name, "") == ""


@pytest.mark.parametrize("name", ["NCCL_ALGO", "OMP_NUM_THREADS", "TOKENIZERS_PARALLELISM", "KEYBOARD"])
def test_a_variable_of_another_name_keeps_its_value(name: str) -> None:
    assert redact_variable(name, "8") == "8"


def test_an_option_hides_the_word_behind_it_and_not_the_next_option() -> None:
    assert redact_arguments(["x", "--password", "p", "--lr", "1"]) == ["x", "--password", REDACTED, "--lr", "1"]
    assert redact_arguments(["x", "--auth", "--verbose", "y"]) == ["x", "--auth", "--verbose", "y"]


@given(st.lists(st.sampled_from([*TOKENS, "aten::mm", "Bearer abcdefgh1", "https://u:pass1234@h/x", "plain"])))
def test_many_texts_at_once_are_what_each_is_alone(texts: list[str]) -> None:
    assert redact_all(texts) == [redact(text) for text in texts]


@given(st.text(max_size=60))
def test_what_was_redacted_once_does_not_change_again(text: str) -> None:
    once = redact(text)

    assert redact(once) == once
