"""Utilisation is work over what could be done, and what is derived from it inverts it."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.formula import Range
from longpole.costs.utilisation import (
    ACHIEVED_FLOPS,
    BF16_H100_FLOPS,
    DEVICE_HOURS,
    FULL_RATE_S,
    HFU,
    MFU,
    TOKENS_PER_S,
    TRAINING_DAYS,
    hfu,
    mfu,
    training_days,
    utilisation_range,
)
from longpole.errors import UsageError

A100: Final = 312e12
ABOVE_0 = st.floats(1e-3, 1e15)


def test_a_step_of_13_billion_parameters_takes_512_milliseconds_at_full_rate() -> None:
    """Not 0.51: 6 FLOPs for each of 13e9 parameters and 2048 x 8 tokens, on 8 devices of 312 TFLOP/s."""
    step_s = FULL_RATE_S(tokens=2048 * 8, flops_per_token=6 * 13e9, devices=8, peak_flops=A100)

    assert step_s == pytest.approx(0.5120, abs=5e-5)
    assert FULL_RATE_S.explain(tokens=16384, flops_per_token=78e9, devices=8, peak_flops=A100) == (
        "tokens*flops_per_token/(devices*peak_flops) = 16,384*7.8e+10/(8*3.12e+14) = 0.512 s"
    )


@pytest.mark.parametrize(("tokens_per_s", "share"), [(1200, 0.020192), (2200, 0.037019)])
def test_7_billion_parameters_at_1200_and_2200_tokens_a_second_on_8_a100_are_2_and_3_7_percent(
    tokens_per_s: float, share: float
) -> None:
    found = mfu(tokens_per_s=tokens_per_s, flops_per_token=6 * 7e9, devices=8, peak_flops=A100)

    assert found == pytest.approx(share, abs=1e-6)


@given(ABOVE_0, ABOVE_0, ABOVE_0, ABOVE_0)
def test_throughput_days_and_rate_invert_utilisation(tokens_per_s: float, flops: float, n: float, peak: float) -> None:
    """Tokens/s out of MFU are those that went in; what runs a day at them takes a day."""
    share = mfu(tokens_per_s=tokens_per_s, flops_per_token=flops, devices=n, peak_flops=peak)
    inputs = {"flops_per_token": flops, "devices": n, "peak_flops": peak}

    assert TOKENS_PER_S(mfu=share, **inputs) == pytest.approx(tokens_per_s)
    assert training_days(tokens=86400 * tokens_per_s, mfu=share, **inputs) == pytest.approx(1)
    achieved = ACHIEVED_FLOPS(tokens_per_s=tokens_per_s, flops_per_token=flops, devices=n)
    assert achieved / peak == pytest.approx(share)
    assert hfu(tokens_per_s=tokens_per_s, hardware_flops_per_token=flops, devices=n, peak_flops=peak) == pytest.approx(
        share
    )


@given(st.integers(1, 10**7), st.integers(1, 10**6))
def test_whatever_was_rounded_away_the_utilisation_is_within_the_range(tokens_per_s: int, devices: int) -> None:
    printed = Range.of_rounded(str(tokens_per_s))
    found = utilisation_range(
        tokens_per_s=printed, flops_per_token=51.47e9, devices=devices, peak_flops=BF16_H100_FLOPS
    )
    for rate in (printed.low, printed.high):
        for peak in (989e12, 989.4e12, 989.5e12):
            exact = MFU(tokens_per_s=rate, flops_per_token=51.47e9, devices=devices, peak_flops=peak)
            assert found.low * (1 - 1e-12) <= exact <= found.high * (1 + 1e-12)


def test_14_8_trillion_tokens_of_deepseek_v3_are_2_664_million_device_hours() -> None:
    """From 272.8 billion tokens a day on 2048 devices: 2.667, which it prints as 180 thousand a trillion."""
    days = 14.8e12 / 272.80e9

    assert DEVICE_HOURS(devices=2048, days=days) == pytest.approx(2.664e6, rel=2e-3)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["tokens_per_s", "flops_per_token", "devices", "peak_flops"])
def test_what_is_not_above_0_is_refused(name: str, value: float) -> None:
    inputs = {"tokens_per_s": 1.0, "flops_per_token": 1.0, "devices": 1.0, "peak_flops": 1.0, name: value}
    with pytest.raises(UsageError, match=f"{name}: expected a number above 0"):
        mfu(**inputs)


def test_training_at_no_utilisation_never_ends_and_is_refused() -> None:
    with pytest.raises(UsageError, match="mfu: expected a number above 0"):
        training_days(tokens=1e12, flops_per_token=1e9, devices=8, peak_flops=A100, mfu=0)


def test_every_relation_says_where_it_comes_from() -> None:
    assert all(one.source for one in (MFU, HFU, TRAINING_DAYS, TOKENS_PER_S, ACHIEVED_FLOPS, FULL_RATE_S))
