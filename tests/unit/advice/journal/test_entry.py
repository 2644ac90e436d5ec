"""What an entry is made of: ids, configurations, effects in one measure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from longpole.advice.journal.entry import (
    HIDDEN,
    better_of,
    compare_configs,
    flatten_config,
    last_config,
    make_id,
    measured_from_figures,
    overlay_config,
)
from longpole.errors import UsageError
from longpole.records.journal import ConfigChange, ConfigValue
from tests.journals import entry, positive, texts, values

configs = st.dictionaries(texts, values, max_size=4)


@given(configs, configs)
def test_a_difference_turns_one_configuration_into_the_other(
    before: dict[str, ConfigValue], after: dict[str, ConfigValue]
) -> None:
    rebuilt = dict(before)
    for change in compare_configs(before, after):
        rebuilt.pop(change.key, None)
        if change.after is not UNSET:
            rebuilt[change.key] = change.after

    assert rebuilt == after


@given(configs)
def test_equal_configurations_have_no_difference(config: dict[str, ConfigValue]) -> None:
    assert compare_configs(config, dict(config)) == []


def test_true_is_not_one() -> None:
    assert compare_configs({"pin": True}, {"pin": 1}) == [ConfigChange("pin", True, 1)]


def test_a_secret_is_hidden_and_a_count_of_tokens_is_none() -> None:
    config = {"hub": {"hf_token": "x", "api_key": "y"}, "tokens_per_step": 4, "eos_token": "</s>", "token": "z"}

    flat = flatten_config(config)

    assert flat == {
        "hub.hf_token": HIDDEN,
        "hub.api_key": HIDDEN,
        "tokens_per_step": 4,
        "eos_token": "</s>",
        "token": HIDDEN,
    }


def test_what_json_cannot_carry_becomes_text() -> None:
    assert flatten_config({"clip": float("inf"), "when": {1: (2, 3)}}) == {"clip": "inf", "when.1": "[2,3]"}


def test_a_key_may_be_set_to_any_value_and_taken_away() -> None:
    texts_given = ["a=true", "b=null", "c=1e-4", "d=[1, 2]", "e=x=y", "gone=", "f=NaN"]

    config = overlay_config({"gone": 1, "kept": 2}, texts_given)

    assert config == {"kept": 2, "a": True, "b": None, "c": 1e-4, "d": "[1, 2]", "e": "x=y", "f": "NaN"}


@pytest.mark.parametrize("text", ["workers", "=8", " =8"])
def test_a_setting_without_a_key_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--config: expected KEY=VALUE"):
        overlay_config({}, [text])


@given(st.text(max_size=90), st.sets(st.text(max_size=5)))
def test_an_id_is_new_short_and_plain(title: str, taken: set[str]) -> None:
    first = make_id("2026-11-30", title, taken)
    second = make_id("2026-11-30", title, {*taken, first})

    assert first not in taken
    assert second not in {*taken, first}
    assert first.isascii()
    assert len(first) < 60
    assert not set(first) - set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_an_id_is_cut_between_words() -> None:
    title = "Gradient buckets of 100 MB, reduced during backward"

    assert make_id("2026-11-30", title, set()) == "2026-11-30-gradient-buckets-of-100-mb-reduced"


@given(positive, positive)
def test_a_speedup_does_not_depend_on_the_side_that_a_unit_measures(before: float, after: float) -> None:
    throughput = measured_from_figures(before, after, "tokens/s", "", "")
    time = measured_from_figures(1 / before, 1 / after, "s/token", "", "")

    assert throughput.speedup == pytest.approx(time.speedup)
    assert (throughput.better, time.better) == ("higher", "lower")


@pytest.mark.parametrize(
    ("unit", "way"), [("tokens/s/GPU", "higher"), ("µs/token", "lower"), ("GB", ""), ("ms", "lower")]
)
def test_a_unit_says_what_is_better(unit: str, way: str) -> None:
    assert better_of(unit) == way


@pytest.mark.parametrize(
    ("figures", "says"),
    [
        ((0.0, 1.0, "tokens/s", "", ""), "--before: expected a figure above 0"),
        ((1.0, float("inf"), "tokens/s", "", ""), "--after: expected a figure above 0"),
        ((1.0, 2.0, "", "", ""), "expected their --unit"),
        ((1.0, 2.0, "points", "", ""), "Say --better higher or lower"),
        ((1.0, 2.0, "points", "more", ""), "--better: expected higher or lower"),
        ((1.0, 2.0, "tokens/s", "", "half"), "--scope: expected total or per_device"),
    ],
)
def test_figures_that_say_nothing_are_refused(figures: tuple[float, float, str, str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        measured_from_figures(*figures)


def test_the_last_configuration_is_that_of_the_last_change_that_stayed() -> None:
    entries = [
        entry("a", config={"n": 1}),
        entry("b", config={"n": 2}),
        entry("c", config={"n": 3}, decision="reverted"),
        entry("d", decision="reverted", reverts="b"),
        entry("e", config={"n": 9}, job="other"),
        entry("f"),
    ]

    assert last_config(entries, "") == ({"n": 1}, "a")
    assert last_config(entries, "other") == ({"n": 9}, "e")
    assert last_config(entries, "none") == ({}, "")
