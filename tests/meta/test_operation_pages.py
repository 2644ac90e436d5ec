"""The page about operation tables lists what the code reads, and the shipped example holds what its README says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.pipeline.operation_tables import find_operation_tables
from longpole.pipeline.operations import build_operations_report
from longpole.report.operations import Culprit
from tools import render_operations

if TYPE_CHECKING:
    from pathlib import Path


def test_the_page_of_columns_and_names_is_current(root: Path) -> None:
    page = (root / render_operations.PAGE).read_text(encoding="utf-8")

    assert render_operations.render_page(page) == page, "run python -m tools.render_operations"


def test_the_code_of_the_worked_example_is_that_of_the_program(root: Path) -> None:
    page = (root / render_operations.PAGE).read_text(encoding="utf-8")
    program = (root / "examples/jobs/pipeline_timers.py").read_text(encoding="utf-8")

    lines = page.split("```python\n", 1)[1].split("```", 1)[0].split("with timers.operation", 1)[0].splitlines()

    assert len(lines) > 10
    assert [line for line in lines if line not in program] == []


def test_the_example_names_the_rank_that_was_made_slow(root: Path) -> None:
    document = build_operations_report(find_operation_tables([str(root / "examples/pipeline-timers/operations.csv")]))

    assert isinstance(document.culprit, Culprit)
    assert (document.culprit.kind, document.culprit.ranks) == ("worker", [1])
    assert abs(document.steps.error) < 0.02
    assert document.integrity == []
    assert 190_000_000 < document.steps.measured_ns < 215_000_000  # 199 ms with a millisecond for each transfer
