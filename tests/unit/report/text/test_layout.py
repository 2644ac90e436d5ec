"""Lines of bounded width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.report.escape import escape
from longpole.report.text.layout import Style, bar, columns_of, join_wrapped, pad, shorten, wrap

texts = st.text(alphabet=st.characters(), max_size=60).map(escape)


@given(texts, st.integers(0, 40))
def test_a_shortened_text_fits(text: str, width: int) -> None:
    assert columns_of(shorten(text, width)) <= width


@given(texts)
def test_a_text_that_fits_is_not_shortened(text: str) -> None:
    assert shorten(text, columns_of(text)) == text


def test_the_middle_is_left_out_since_both_ends_tell_names_apart() -> None:
    assert shorten("void at::native::elementwise_kernel<128, 4>", 20) == "void at::n…l<128, 4>"


def test_a_wide_character_takes_two_columns() -> None:
    assert columns_of("矩阵 a") == 6
    assert shorten("矩阵乘法", 5) == "矩…法"


@given(texts, st.integers(1, 30))
def test_a_padded_text_has_exactly_its_width(text: str, width: int) -> None:
    assert columns_of(pad(text, width)) == width


@given(texts, st.integers(12, 40), st.integers(1, 3))
def test_wrapped_lines_fit_and_are_no_more_than_asked_for(text: str, width: int, most: int) -> None:
    lines = wrap(text, width, first="  - ", rest="    ", max_lines=most)

    assert all(columns_of(line) <= width for line in lines)
    assert len(lines) <= most
    assert lines[0].startswith("  - ")


def test_wrapping_keeps_every_word() -> None:
    lines = wrap("one two three four five", 12, first="> ", rest="  ")

    assert lines == ["> one two", "  three four", "  five"]


def test_what_is_cut_off_is_marked() -> None:
    assert wrap("one two three four five", 12, max_lines=1) == ["one two …"]


def test_parts_stay_whole_on_a_line() -> None:
    assert join_wrapped(["8 of 8 ranks", "12 steps", "torch 2.9"], 25) == ["8 of 8 ranks · 12 steps", "torch 2.9"]


@pytest.mark.parametrize(("share", "drawn"), [(0, ""), (1, "████"), (0.25, "█"), (0.5, "██"), (1e-9, "▏"), (7, "████")])
def test_a_bar_is_as_long_as_its_share(share: float, drawn: str) -> None:
    assert bar(share, 4) == drawn


@given(st.floats(0, 1), st.integers(1, 40))
def test_a_bar_fits(share: float, width: int) -> None:
    assert columns_of(bar(share, width)) <= width


def test_without_colour_there_is_no_control_character() -> None:
    style = Style(80, color=False)

    assert style.alarm("x") + style.verdict("x") + style.bar("x") == "xxx"


def test_colour_ends_where_it_began() -> None:
    style = Style(80, color=True)

    for painted in (style.alarm("x"), style.warning("x"), style.faint("x"), style.bar("x"), style.verdict("x")):
        assert painted.startswith("\x1b[")
        assert painted.endswith("x\x1b[0m")


def test_a_title_line_fits_whatever_stands_beside_it() -> None:
    line = Style(30, color=False).title("WORST GAPS", "a long explanation of what is to be seen")

    assert columns_of(line) == 30
    assert line.startswith("WORST GAPS   a long")
