"""The longest gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.report.text.gaps import render_gaps
from longpole.report.text.layout import Style
from tests.report_builder import make_gap, make_ledger, make_report, make_row, make_top, ms

if TYPE_CHECKING:
    from longpole.records.tables import GapRow


def render(*gaps_of_ranks: list[GapRow]) -> list[str]:
    ledger = make_ledger({"compute": ms(50)}, {"input": ms(50)})
    rows = [make_row(rank, [ledger], top=make_top(*gaps)) for rank, gaps in enumerate(gaps_of_ranks)]
    return render_gaps(make_report(rows), Style(80, color=False))


def test_a_gap_shows_its_length_reason_unit_and_the_end_of_its_stack() -> None:
    stack = ["ProfilerStep#3", "/job/train.py(9): main", "/job/data/loader.py(70): fetch", "read"]

    assert render([make_gap("read", "input", ms(12), stack=stack)])[1:] == [
        "    12.0 ms  input · ProfilerStep#3",
        "             train.py(9): main > loader.py(70): fetch > read",
    ]


def test_the_longest_gap_of_all_ranks_stands_first() -> None:
    lines = render([make_gap("a", "input", ms(2))], [make_gap("b", "host.gc", ms(7))])

    assert lines[1] == "    7.00 ms  host.gc · rank 1 · ProfilerStep#3"
    assert lines[3] == "    2.00 ms  input · rank 0 · ProfilerStep#3"


def test_gaps_under_the_same_operation_are_shown_once() -> None:
    gaps = [make_gap(f"fetch#{place}", "input", ms(9 - place), unit=f"ProfilerStep#{place}") for place in range(4)]

    lines = render(gaps)

    assert lines[1] == "    9.00 ms  input · ProfilerStep#0 · 3 more like it"
    assert len(lines) == 3


def test_at_most_three_are_shown() -> None:
    lines = render([make_gap(name, "input", ms(9)) for name in "abcde"])

    assert len(lines) == 1 + 3 * 2


def test_a_gap_that_is_small_beside_the_unit_is_left_out_unless_it_is_the_longest() -> None:
    assert len(render([make_gap("a", "input", ms(9)), make_gap("b", "input", 90_000)])) == 3
    assert len(render([make_gap("b", "input", 90_000)])) == 3


def test_a_deep_stack_is_cut_at_its_outer_end() -> None:
    (_, _, frames) = render([make_gap("x", "input", ms(9), stack=[f"frame{place}" for place in range(9)])])

    assert frames.strip() == "… > frame6 > frame7 > frame8"


def test_a_long_frame_is_shortened_and_stands_alone() -> None:
    (_, _, frames) = render([make_gap("x", "input", ms(9), stack=["outer", "f" * 200])])

    assert len(frames) <= 80
    assert frames.strip().startswith("… > fff")


def test_without_a_stack_the_reason_is_said_in_words() -> None:
    (_, _, frames) = render([make_gap("unlinked", "unlinked", ms(9))])

    assert frames.strip() == "no launch recorded for what came next, until gemm"


def test_the_frame_of_the_unit_itself_says_nothing() -> None:
    (_, _, frames) = render([make_gap("ProfilerStep#3", "host.python", ms(9), stack=["ProfilerStep#3"])])

    assert frames.strip() == "Python between operators, until gemm"


def test_a_hostile_frame_is_escaped() -> None:
    lines = render([make_gap("x", "input", ms(9), unit="u\x1b[1m", stack=["a", "b\x1b]0;title\x07"])])

    assert "\x1b" not in "".join(lines)
    assert lines[2].endswith("b\\x1b]0;title\\x07")


def test_without_gaps_there_is_no_section() -> None:
    assert render([]) == []
