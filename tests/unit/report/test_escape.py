"""Text from traces cannot steer a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.report.escape import escape


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("a\nb\tc\r", "a\\x0ab\\x09c\\x0d"),
        ("\x7f", "\\x7f"),
        ("\x9b31m", "\\x9b31m"),  # C1: a control sequence introducer in one character
        ("abc\u202edef", "abc\\u202edef"),  # right-to-left override
        ("\u2066x\u2069", "\\u2066x\\u2069"),  # isolates
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("line\u2028end", "line\\u2028end"),
        ("no\u00a0break", "no\\xa0break"),
        ("\ud800", "\\ud800"),  # half a pair: cannot be encoded
        ("\U000e0041", "\\U000e0041"),  # an invisible tag
    ],
)
def test_what_moves_hides_or_reorders_text_is_written_out(hostile: str, shown: str) -> None:
    assert escape(hostile) == shown


@pytest.mark.parametrize("name", ["void at::gemm<float, 4>(T*)", "größe µs", "矩阵乘法", "naïve — “x”"])
def test_printable_text_stays_as_it_is(name: str) -> None:
    assert escape(name) == name


@given(st.text(alphabet=st.characters()))
def test_nothing_unprintable_is_left(text: str) -> None:
    assert escape(text).isprintable()


@given(st.text(alphabet=st.characters()))
def test_escaping_twice_changes_nothing_more(text: str) -> None:
    once = escape(text)

    assert escape(once) == once
