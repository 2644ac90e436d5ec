"""What operators are counted to do fits into the time that they took: no rate is above a device's peak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from longpole.records.resources import Resources
from longpole.report.document import Report
from longpole.report.resource_rows import POSSIBLE_MAX
from tests.corpus.recordings import outcome_of

if TYPE_CHECKING:
    from pathlib import Path

_TRACELENS: Final = "AMD-AGI-TraceLens"
_HTA: Final = "facebookresearch-HolisticTraceAnalysis"
RECORDINGS: Final = {
    f"{_TRACELENS}/b200/eager_trace.json.gz": 0.30,
    f"{_TRACELENS}/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": 0.68,
    f"{_TRACELENS}/inference/sglang_prefilldecode/sglang_Qwen3-8B_prefilldecode.json.gz": 0.99,
    f"{_TRACELENS}/mi300/ddp_resnet18_no_pool/train_resnet18.json.gz": 0.99,
    f"{_HTA}/trace_diff/control/control.json.gz": 0.94,
    f"{_HTA}/trace_diff/test/test.json.gz": 0.41,
    "facebookresearch-param/dlrm_kineto_8ranks/worker0_step_12.1694128201545.pt.trace.json.gz": 0.96,
    "pytorch-kineto/tb_plugin_samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz": 0.99,
}
"""Trace -> the part of its compute time that is known at least."""
_COLUMNS: Final = ("tensor", "vector", "hbm")
# Its input is one number for each channel, expanded; strides were not recorded in 2021.
EXPANDED: Final = {"aten::div"}


def _marked(path: str) -> Any:
    return path if "dlrm" in path else pytest.param(path, marks=pytest.mark.slow)


@pytest.mark.parametrize("path", [_marked(path) for path in RECORDINGS])
def test_no_operator_is_counted_to_do_more_than_its_device_can(corpus: Path, path: str) -> None:
    report = outcome_of(corpus / path)
    assert isinstance(report, Report)
    found = report.resources
    assert isinstance(found, Resources)
    assert isinstance(found.device, str)

    above = {
        row.name: (column, cell.share)
        for row in found.rows
        for column, cell in row.cells.items()
        if column in _COLUMNS and isinstance(cell.share, float) and cell.share > POSSIBLE_MAX
    }

    assert {name: figures for name, figures in above.items() if name not in EXPANDED} == {}
    assert found.covered_share >= RECORDINGS[path]
