"""A model is found by the names that people write, and none is guessed."""

from __future__ import annotations

import pytest

from longpole.costs.presets import all_presets, find_preset, preset, preset_names
from longpole.errors import UsageError


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Llama-3.1-8B", "llama-3-8b"),
        ("meta-llama/Meta-Llama-3-70B-Instruct", "llama-3-70b"),
        ("LLAMA3.1_405B", "llama-3-405b"),
        ("DeepSeekV3", "deepseek-v3"),
        ("Qwen3_235B_a22B", "qwen3-235b-a22b"),
        ("GPT OSS 120B", "gpt-oss-120b"),
        ("GPT-3-175B", "gpt3-175b"),
        ("Kimi_K2", "kimi-k2"),
        ("Qwen2.5-72B", "qwen2.5-72b"),
        ("mpt-7b", "mpt-7b"),
    ],
)
def test_a_preset_is_found_by_the_names_that_people_write(written: str, name: str) -> None:
    assert find_preset(written).name == name


def test_every_preset_is_found_by_its_own_names_and_no_name_stands_for_two() -> None:
    names = [name for one in all_presets() for name in (one.name, *one.aliases)]

    assert len({find_preset(name).name for name in names}) == len(preset_names())
    assert all(find_preset(name).name == one.name for one in all_presets() for name in (one.name, *one.aliases))


def test_every_preset_says_where_it_comes_from() -> None:
    assert all(one.source for one in all_presets())
    assert {"llama-3-8b", "mixtral-8x7b", "deepseek-v3", "sc21-1t", "palm-540b"} <= set(preset_names())


def test_a_model_that_is_not_in_the_table_is_refused_with_the_closest_names() -> None:
    with pytest.raises(UsageError, match=r"'llama-3-9b' is not in the table\. Closest: .*llama-3-8b"):
        preset("llama-3-9b")


@pytest.mark.parametrize("nothing", ["", "   ", "/"])
def test_no_name_is_no_model(nothing: str) -> None:
    with pytest.raises(UsageError, match="is not in the table"):
        preset(nothing)


def test_learned_positions_follow_the_sequence_where_the_table_says_so() -> None:
    assert preset("mpt-7b", sequence=65536).positions == 65536
    assert preset("gpt3-175b", sequence=65536).positions == 2048
