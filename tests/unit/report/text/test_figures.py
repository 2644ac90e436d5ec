"""What is shown adds up to the sum that is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.report.text.figures import percent, scale_for, spread_percent

parts = st.lists(st.integers(0, 10**12), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("total_ns", "shown"),
    [
        (0, "0.000 µs"),
        (850, "0.850 µs"),
        (12_345, "12.35 µs"),
        (1_000_000, "1.000 ms"),
        (255_100_000, "255.1 ms"),
        (9_999_949_000, "9,999.9 ms"),
        (10_000_000_000, "10.00 s"),
        (4_000_000_000_000, "4,000.0 s"),
    ],
)
def test_a_total_is_shown_in_the_unit_that_suits_it(total_ns: int, shown: str) -> None:
    scale = scale_for(total_ns)

    assert f"{scale.write(total_ns)} {scale.unit}" == shown


@given(parts)
def test_spread_figures_add_up_to_the_written_sum(parts_ns: list[int]) -> None:
    scale = scale_for(sum(parts_ns))

    ticks = [round(_number(figure) * 10**scale.decimals) for figure in scale.spread(parts_ns)]

    assert sum(ticks) == round(_number(scale.write(sum(parts_ns))) * 10**scale.decimals)


@given(parts)
def test_a_spread_figure_is_less_than_one_digit_off(parts_ns: list[int]) -> None:
    scale = scale_for(sum(parts_ns))

    for part_ns, figure in zip(parts_ns, scale.spread(parts_ns), strict=True):
        ticks = round(_number(figure) * 10**scale.decimals)
        assert abs(ticks * scale.tick_ns - part_ns) < scale.tick_ns


@given(parts.filter(lambda values: sum(values) > 0))
def test_shares_of_a_whole_add_up_to_one_hundred(parts_ns: list[int]) -> None:
    shares = spread_percent(parts_ns, sum(parts_ns))

    assert sum(round(float(share.removesuffix(" %")) * 10) for share in shares) == 1000


def test_there_is_no_share_of_nothing() -> None:
    assert spread_percent([0, 0], 0) == ["", ""]
    assert percent(0, 0) == ""


@pytest.mark.parametrize(
    ("part_ns", "shown"), [(0, "0 %"), (1, "0.1 %"), (94, "9.4 %"), (99, "9.9 %"), (100, "10 %"), (1000, "100 %")]
)
def test_a_share_has_two_figures(part_ns: int, shown: str) -> None:
    assert percent(part_ns, 1000) == shown


def _number(figure: str) -> float:
    return float(figure.replace(",", ""))
