"""Tables of nccl-tests: what was printed is read back, in every layout that its versions had."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.readers.nccl_tests.text import looks_like_nccl_text, read_nccl_text
from longpole.records.nccl_log import LoggedRow, LoggedSide, LoggedTest
from tests.nccl_logs import DEVICE, render_text

_RATE = st.integers(0, 999_99).map(lambda hundredths: hundredths / 100)
_SIDES = st.builds(
    LoggedSide,
    time_us=st.integers(1, 9_999_99).map(lambda hundredths: hundredths / 100),
    algbw=_RATE,
    busbw=_RATE,
    wrong=st.integers(0, 99_999) | st.none(),
)
_ROWS = st.builds(
    LoggedRow,
    size_bytes=st.integers(0, 1 << 40),
    count=st.integers(0, 1 << 40),
    dtype=st.sampled_from(["float", "half", "bfloat16", "int32", "fp8_e4m3"]),
    redop=st.sampled_from(["sum", "max", "none"]),
    root=st.integers(-1, 63),
    out_of_place=_SIDES,
    in_place=_SIDES,
)
_TESTS = st.builds(
    LoggedTest,
    program=st.sampled_from(["all_reduce_perf", "sendrecv_perf"]),
    ranks=st.integers(1, 16),
    nodes=st.just(1),
    devices=st.just([DEVICE]),
    repeats=st.integers(1, 100),
    warmup=st.integers(0, 9),
    out_of_bounds=st.integers(0, 9) | st.none(),
    busbw=st.integers(0, 99999).map(lambda hundredths: hundredths / 100),
    version=st.just("22807"),
    rows=st.lists(_ROWS, min_size=1, max_size=5),
)
SIDE = LoggedSide(56.0, 18.72, 18.72, 0)
ROW = LoggedRow(1048576, 262144, "float", "sum", -1, SIDE, SIDE)
TEST = LoggedTest(
    "all_reduce_perf", 2, 1, [DEVICE], 20, 5, out_of_bounds=0, busbw=18.72, version="22807", rows=[ROW, ROW]
)


@given(test=_TESTS, prefix=st.sampled_from(["", "0: ", "[1,0]<stdout>:", "node-3: "]), per_iteration=st.booleans())
def test_what_was_printed_is_read_back(test: LoggedTest, prefix: str, per_iteration: bool) -> None:
    text = render_text(test, prefix=prefix, per_iteration=per_iteration)

    assert looks_like_nccl_text(text)
    assert read_nccl_text(text.splitlines()) == [test]


def test_old_tables_have_no_root_and_give_errors() -> None:
    """Before 2.13 the last column is the largest error, which is no count of wrong elements."""
    unchecked = dataclasses.replace(SIDE, wrong=None)
    old = [LoggedRow(1048576, 262144, "float", redop, None, unchecked, unchecked) for redop in ("sum", "")]
    test = dataclasses.replace(TEST, program="", version="", rows=old)

    (read,) = read_nccl_text(render_text(test, old=True).splitlines())

    assert read.reports_errors
    assert dataclasses.replace(read, reports_errors=False) == test


def test_a_row_without_its_first_half_was_measured_in_place() -> None:
    only = dataclasses.replace(ROW, out_of_place=None)

    (read,) = read_nccl_text(render_text(dataclasses.replace(TEST, rows=[only])).splitlines())

    assert read.rows == [only]


def test_several_tests_of_one_log_are_kept_apart() -> None:
    other = dataclasses.replace(TEST, program="all_gather_perf", rows=[ROW])

    read = read_nccl_text((render_text(TEST) + render_text(other)).splitlines())

    assert read == [TEST, other]


def test_programs_that_wrote_at_the_same_time_are_told_apart_by_the_launchers_labels() -> None:
    """`srun -l` labels lines; two jobs of one allocation may come line by line."""
    other = dataclasses.replace(TEST, program="all_gather_perf", rows=[ROW])
    one, two = (render_text(test, prefix=f"{place}: ").splitlines() for place, test in enumerate((TEST, other)))
    mixed = [line for pair in zip(one, two, strict=False) for line in pair] + one[len(two) :]

    assert read_nccl_text(mixed) == [TEST, other]


def test_times_that_a_collector_wrote_before_each_line_are_no_labels() -> None:
    lines = render_text(TEST).splitlines()
    stamped = [f"2026-01-01T00:00:{place:02d}.123Z {line}" for place, line in enumerate(lines)]

    assert read_nccl_text(stamped) == [TEST]


def test_lines_of_nccl_between_the_rows_are_passed_over_and_tell_settings() -> None:
    lines = render_text(TEST).splitlines()
    lines.insert(-3, "node0:41:41 [0] NCCL INFO NCCL_ALGO set by environment to Ring.".rstrip("."))
    lines.insert(-3, "node0:41:41 [0] NCCL INFO Launch mode Parallel")

    (read,) = read_nccl_text(lines)

    assert read.rows == TEST.rows
    assert read.variables == {"NCCL_ALGO": "Ring"}


@pytest.mark.parametrize("cut", [30, 60, 80])
def test_a_log_that_was_cut_off_loses_its_last_row_only(cut: int) -> None:
    lines = render_text(TEST).splitlines()
    last = next(place for place in reversed(range(len(lines))) if lines[place].lstrip()[0].isdigit())

    (read,) = read_nccl_text([*lines[:last], lines[last][:cut]])

    assert read.rows == TEST.rows[:-1]
    assert read.out_of_bounds is None
    assert any(f"line {last + 1}" in complaint for complaint in read.complaints)


def test_a_log_whose_beginning_is_missing_still_has_its_rows() -> None:
    lines = render_text(TEST).splitlines()
    columns = next(place for place, line in enumerate(lines) if "algbw" in line)

    (read,) = read_nccl_text(lines[columns:])

    assert (read.rows, read.ranks, read.program) == (TEST.rows, None, "")


def test_the_command_line_names_the_program_where_the_head_does_not() -> None:
    lines = ["+ mpirun -np 2 ./build/reduce_scatter_perf -b 8 -e 128M", *render_text(TEST, old=True).splitlines()]

    (read,) = read_nccl_text(lines)

    assert read.program == "reduce_scatter_perf"


def test_ranks_of_several_machines_are_counted() -> None:
    (read,) = read_nccl_text(render_text(dataclasses.replace(TEST, ranks=16, nodes=2)).splitlines())

    assert (read.ranks, read.nodes) == (16, 2)


@pytest.mark.parametrize("text", ["", "loss 0.3\n", "# a comment\n1024 256 float\n"])
def test_other_texts_are_no_tables(text: str) -> None:
    assert not looks_like_nccl_text(text)
    assert read_nccl_text(text.splitlines()) == []


@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(noise: str) -> None:
    lines = render_text(TEST).splitlines()

    tests = read_nccl_text([*lines[:12], *noise.splitlines(), *lines[12:]])

    assert TEST.rows[-1] in [row for test in tests for row in test.rows]
