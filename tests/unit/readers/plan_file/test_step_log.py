"""Measured steps as CSV: rows with a plan's keys, and what cannot be used is said and left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.errors import InputError
from longpole.readers.plan_file.step_log import read_step_log

if TYPE_CHECKING:
    from pathlib import Path


def written(folder: Path, text: str) -> Path:
    """A file with this text."""
    path = folder / "steps.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_row_is_a_time_and_keys_of_a_plan(tmp_path: Path) -> None:
    text = "# a comment\nstep_ms, tp, recompute, flash, sequence, devices\n\n1500.5, 8, full, false, 4096, 64\n"

    log = read_step_log(written(tmp_path, text))

    (step,) = log.steps
    assert log.complaints == ()
    assert (step.line, step.step_s) == (4, 1.5005)
    assert step.keys == {
        ("layout", "tp"): 8,
        ("training", "recompute"): "full",
        ("training", "flash"): False,
        ("batch", "sequence"): 4096,
        ("hardware", "devices"): 64,
    }


def test_an_empty_cell_leaves_the_plans_own_key(tmp_path: Path) -> None:
    (step,) = read_step_log(written(tmp_path, "step_ms,tp,pp\n10,,2\n")).steps

    assert step.keys == {("layout", "pp"): 2}


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("10", "line 2: expected 2 values, found 1"),
        ("0,1", "line 2: step_ms: expected milliseconds above 0"),
        ("nan,1", "line 2: step_ms: expected milliseconds above 0"),
        ("ten,1", "line 2: step_ms: expected milliseconds above 0"),
        ("10,0", "line 2: tp: expected a whole number of at least 1"),
        ("10,two", "line 2: tp: expected a whole number of at least 1"),
    ],
)
def test_a_row_that_cannot_be_used_costs_only_itself(tmp_path: Path, row: str, says: str) -> None:
    log = read_step_log(written(tmp_path, f"step_ms,tp\n{row}\n20,2\n"))

    assert [step.step_s for step in log.steps] == [0.02]
    assert log.complaints[0].startswith(says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "found nothing"),
        ("# nothing else\n", "found nothing"),
        ("tp,pp\n1,1\n", "no column step_ms"),
        ("step_ms,tpp\n1,1\n", "column 'tpp' is no key"),
        ("step_ms,preset\n1,x\n", "column 'preset' is no key"),
        ("step_ms,tp,tp\n1,1,1\n", "column tp is there twice"),
    ],
)
def test_a_file_without_usable_columns_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_step_log(written(tmp_path, text))


def test_what_is_no_text_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    path.write_bytes(b"step_ms\n\xff\xfe")

    with pytest.raises(InputError, match="no text in UTF-8"):
        read_step_log(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_step_log(tmp_path / "none.csv")
