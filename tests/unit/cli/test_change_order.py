"""Changes keep the order in which they were typed."""

from __future__ import annotations

import pytest

from longpole.cli.change_order import in_typed_order


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["--set", "a=0", "--remove", "b", "--set", "c=0"], ["a=0", "b", "c=0"]),
        (["--remove=b", "--set=a=0", "--set=c=0"], ["b", "a=0", "c=0"]),
        (["--set", "a=0", "--set", "c=0", "--remove", "b"], ["a=0", "c=0", "b"]),
    ],
)
def test_values_of_several_options_stand_as_typed(typed: list[str], expected: list[str]) -> None:
    given = in_typed_order({"--set": ["a=0", "c=0"], "--remove": ["b"], "--async-copy": False}, typed)

    assert [value for _, value in given] == expected


def test_a_flag_counts_where_it_stands() -> None:
    given = in_typed_order({"--set": ["a=0"], "--async-copy": True}, ["traces/", "--async-copy", "--set", "a=0"])

    assert given == [("--async-copy", ""), ("--set", "a=0")]


def test_nothing_is_lost_where_the_order_cannot_be_told() -> None:
    given = in_typed_order({"--set": ["a=0"], "--async-copy": True}, [])

    assert given == [("--set", "a=0"), ("--async-copy", "")]
