"""One job, told by two profilers: the same answer from both, to the nanosecond.

The jobs are those of tests/cases, written as the PyTorch profiler writes them, and once more as Nsight Systems would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.case_answers import Case
from tests.laws import check_report, report_on
from tests.nsys_files import export_of_kineto

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.document import Report

# Without Python frames, which Nsight Systems does not write, and told from calls, annotations and kernels alone.
JOBS = ("B059", "B062", "B069", "B074", "B081", "B082")


def _of_export(case: Case, folder: Path) -> Report:
    files = sorted(case.input.iterdir()) if case.input.is_dir() else [case.input]
    return report_on(export_of_kineto(files).write(folder / "job.sqlite"))


@pytest.mark.parametrize("name", JOBS)
def test_both_profilers_give_the_same_answer(name: str, tmp_path: Path) -> None:
    case = Case(name)

    found, wanted = _of_export(case, tmp_path), case.report

    check_report(found)
    assert [row.ledger for row in found.ranks] == [row.ledger for row in wanted.ranks]
    assert [row.device_span for row in found.ranks] == [row.device_span for row in wanted.ranks]
    assert found.unit == wanted.unit
    assert [(one.cause, one.ranks, one.cost_ns_per_unit) for one in found.findings] == [
        (one.cause, one.ranks, one.cost_ns_per_unit) for one in wanted.findings
    ]
    assert found.replay == wanted.replay


def test_what_nccl_attaches_tells_groups_and_bytes(tmp_path: Path) -> None:
    case = Case("B069")

    found, wanted = _of_export(case, tmp_path), case.report

    assert (found.run.ranks_present, found.run.ranks_assumed) == ([0, 1], True)
    assert [(one.kind, one.count, one.bytes, one.transfer_ns, one.skew_ns) for one in found.collectives] == [
        (one.kind, one.count, one.bytes, one.transfer_ns, one.skew_ns) for one in wanted.collectives
    ]
