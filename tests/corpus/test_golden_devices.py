"""Span, busy time and number of spans of every device equal an independent integer union, to the nanosecond."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from longpole.pipeline.discover import find_traces
from longpole.pipeline.work import WorkContext, read_timelines
from longpole.report.document import Report
from longpole.settings import Settings
from tests.corpus.recordings import FAST_MAX_MB, OUTCOMES, outcome_of

GOLDEN: Final[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "oracles" / "device_golden.json").read_text(encoding="utf-8")
)


def _by_size(path: str) -> Any:
    slow = OUTCOMES["reported"][path]["decoded_mb"] > FAST_MAX_MB
    return pytest.param(path, marks=pytest.mark.slow) if slow else path


def test_there_are_66_traces() -> None:
    assert len(GOLDEN) == 66


@pytest.mark.parametrize("path", [_by_size(path) for path in GOLDEN])
def test_span_and_busy_time_of_every_device(corpus: Path, path: str) -> None:
    report = outcome_of(corpus / path)

    assert isinstance(report, Report), report
    found = {
        row.device.rpartition(":")[2]: (row.device_span.span_ns, row.device_span.busy_ns)
        for row in report.ranks
        if row.device != "cpu"
    }
    assert found == {device: (row["span_ns"], row["busy_ns"]) for device, row in GOLDEN[path]["devices"].items()}


@pytest.mark.parametrize("path", [_by_size(path) for path in GOLDEN])
def test_number_of_spans_of_every_device(corpus: Path, path: str) -> None:
    settings = Settings()
    context = WorkContext(None, settings, None, None, None)

    found: dict[str, int] = {}
    for file in find_traces([str(corpus / path)], settings):
        for timeline in read_timelines(file, context):
            for device in timeline.devices():
                found[str(device)] = int((timeline.device.device == device).sum())

    assert found == {device: row["spans"] for device, row in GOLDEN[path]["devices"].items()}
