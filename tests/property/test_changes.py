"""Every change, written and read again, is the same change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hypothesis import assume, given
from hypothesis import strategies as st

from longpole.errors import UsageError
from longpole.units import parse_bytes, parse_ns, write_bytes_exactly, write_ns_exactly
from longpole.whatif.change import (
    DELTA_MAX_NS,
    FACTOR_MAX,
    OPTIONS,
    SIZE_MAX_BYTES,
    Add,
    AsyncCopy,
    Equalise,
    Fuse,
    GraphLaunches,
    IssueEarly,
    OffPath,
    Prefetch,
    Scale,
    Split,
    parse_change,
    parse_option,
)
from longpole.whatif.selector import (
    ALL_STAGES,
    SELECTABLE_KINDS,
    SELECTABLE_OBJECTS,
    Selector,
    compile_quietly,
    parse_selector,
)

if TYPE_CHECKING:
    from longpole.whatif.change import Change


def is_regex(text: str) -> bool:
    try:
        compile_quietly(text)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


REGEXES = st.text(st.sampled_from("abc.*+?|()[]^$\\&=: <>,0123é"), min_size=1, max_size=20).filter(is_regex)
NUMBERS = st.none() | st.integers(0, 10**9 - 1)


@st.composite
def selectors(draw: st.DrawFn, /, **fixed: Any) -> Selector:
    given_parts: dict[str, Any] = {
        "object": draw(st.sampled_from(["", *SELECTABLE_OBJECTS])),
        "name_regex": draw(st.just("") | REGEXES),
        "stage": draw(st.sampled_from(["", *ALL_STAGES])),
        "rank": draw(NUMBERS),
        "stream": draw(NUMBERS),
        "kind": draw(st.sampled_from(["", *SELECTABLE_KINDS])),
    } | fixed
    assume(any(part not in ("", None) for part in given_parts.values()))
    return Selector(**given_parts)


SIZES = st.integers(1, SIZE_MAX_BYTES)
KINDS = st.sampled_from(SELECTABLE_KINDS)
CHANGES: st.SearchStrategy[Change] = st.one_of(
    st.builds(Scale, selectors(), st.floats(0, FACTOR_MAX)),
    st.builds(Add, selectors(), st.integers(-DELTA_MAX_NS, DELTA_MAX_NS).filter(bool)),
    st.just(Prefetch("input")),
    st.just(AsyncCopy()),
    st.builds(Fuse, KINDS, SIZES),
    st.builds(Split, KINDS, SIZES),
    st.builds(Equalise, st.sampled_from(["work", "speed"])),
    st.builds(IssueEarly, selectors(object="collective")),
    st.just(GraphLaunches()),
    st.builds(OffPath, selectors(object="output")),
)


@given(CHANGES)
def test_a_change_is_read_back(change: Change) -> None:
    assert parse_change(change.to_text()) == change


@given(selectors())
def test_a_selector_is_read_back(selector: Selector) -> None:
    assert parse_selector(selector.to_text()) == selector


@given(st.sampled_from(OPTIONS), st.text(max_size=40))
def test_any_text_is_a_change_or_a_sentence(option: str, text: str) -> None:
    """No input ends in anything but a change or an error for a person."""
    try:
        change = parse_option(option, text)
    except UsageError as error:
        assert str(error).startswith(option)  # noqa: PT017 - either outcome is right
    else:
        assert parse_change(change.to_text()) == change


@given(st.integers(0, 10**17))
def test_times_and_sizes_are_read_back(number: int) -> None:
    assert parse_ns(write_ns_exactly(number)) == number
    assert parse_bytes(write_bytes_exactly(number)) == number
