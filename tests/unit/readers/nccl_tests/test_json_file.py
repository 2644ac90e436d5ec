"""The JSON files of nccl-tests: what was written is read back; what was cut off costs only itself."""

from __future__ import annotations

import dataclasses

import pytest

from longpole.readers.nccl_tests.json_file import looks_like_nccl_json, read_nccl_json
from longpole.records.nccl_log import LoggedRow, LoggedSide, LoggedTest
from tests.nccl_logs import DEVICE, render_json

SIDE = LoggedSide(56.25, 18.64, 18.64, 0)
ROWS = [LoggedRow(1 << exponent, 1 << exponent - 2, "float", "sum", -1, SIDE, SIDE) for exponent in range(10, 20)]
TEST = LoggedTest(
    "all_reduce_perf", 8, 1, [DEVICE], 20, 5, out_of_bounds=0, busbw=18.6, version="22807", rows=list(ROWS)
)


def test_what_was_written_is_read_back() -> None:
    text = render_json(TEST)

    assert looks_like_nccl_json(text.encode())
    assert read_nccl_json(text) == TEST


@pytest.mark.parametrize("processes", [1, 2, 8])
def test_every_process_has_one_entry_whatever_it_drives(processes: int) -> None:
    read = read_nccl_json(render_json(TEST, processes=processes))

    assert read is not None
    assert read.ranks == 8


def test_only_variables_of_nccl_are_looked_at() -> None:
    """The file holds the whole environment, credentials and all."""
    env = ("HOME=/root", "AWS_SECRET_ACCESS_KEY=abc", "NCCL_ALGO=Ring", "NCCL_X=a\x1b[2Jb", "HF_TOKEN=hf_x")

    read = read_nccl_json(render_json(TEST, env=env))

    assert read is not None
    assert read.variables == {"NCCL_ALGO": "Ring"}
    assert "abc" not in repr(read)


@pytest.mark.parametrize("share", [0.45, 0.6, 0.8, 0.97])
def test_a_file_that_was_cut_off_keeps_what_is_whole(share: float) -> None:
    text = render_json(TEST)

    read = read_nccl_json(text[: int(len(text) * share)])

    assert read is not None
    assert read.ranks == 8
    assert read.rows
    assert read.rows[:-1] == ROWS[: len(read.rows) - 1]
    assert read.rows[-1].out_of_place == SIDE
    assert any("ends in the middle" in complaint for complaint in read.complaints)


def test_a_wrong_count_and_one_that_was_not_checked_are_told_apart() -> None:
    wrong, unchecked = (dataclasses.replace(SIDE, wrong=count) for count in (7, None))
    row = dataclasses.replace(ROWS[0], out_of_place=wrong, in_place=unchecked)

    read = read_nccl_json(render_json(dataclasses.replace(TEST, rows=[row])))

    assert read is not None
    assert read.rows == [row]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"results": 3}', '{"results": [{"size": "x"}]}'])
def test_what_is_no_such_file_gives_no_row(text: str) -> None:
    read = read_nccl_json(text)

    assert read is None or read.rows == []
