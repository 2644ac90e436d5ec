"""Tables spoilt at random end in a document or in a sentence, never in anything else."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import pytest

from longpole.errors import InputError
from longpole.pipeline.operations import build_operations_report
from longpole.records.strict_json import encode_document
from longpole.report.text.operations import render_operations
from tests.operation_tables import Job, write_table

if TYPE_CHECKING:
    from pathlib import Path

    from tests.operation_tables import Row

VALUES: dict[str, list[Any]] = {
    "step": [None, -1, 2**62, 1, 2],
    "rank": [None, -1, 2**40, 0, 1, 3],
    "dp_rank": [None, -5, 0, 1, 7, 2**20],
    "stage": [None, 0, 1, 2, 900_000],
    "optype": [None, "", "all-reduce", "forward-send", "backward-recv", "params-all-gather", "\x00\u202e", "x" * 3000],
    "start_ts": [None, math.nan, -math.inf, -1.0, 0.0, 0.05, 1e9, 1e300],
    "duration": [None, math.nan, math.inf, -1.0, 0.0, 1e-9, 0.05, 1e6, 1e300],
    "seq_id": [None, -1, 0, 1, 2**40],
    "mb_id": [None, -1, 0, 2**40],
    "mc": [None, -1, 0, 1],
    "gmc": [None, -1, 0, 1, 2],
    "tp_rank": [None, -1, 0, 1],
    "kind": [None, "collective", "send", "recv", "compute", "nonsense"],
    "group": [None, "", "a", "b"],
}  # fmt: skip


def spoil(seed: int) -> list[Row]:
    """Return a job in which some cells are other ones, and some rows are missing or there twice."""
    draw = random.Random(seed)
    rows = [dict(row) for row in Job(slow={(1, 0): 2.0}, steps=(1, 2)).rows()]
    columns = draw.sample(sorted(VALUES), draw.randint(1, 4))
    for row in rows:
        for column in VALUES:
            row.setdefault(column, None)
        for column in columns:
            if draw.random() < draw.choice([0.02, 0.3]):
                row[column] = draw.choice(VALUES[column])
    rows += draw.sample(rows, draw.choice([0, 0, 5]))
    return draw.sample(rows, draw.randint(len(rows) // 2, len(rows)))


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("seed", range(60))
def test_a_spoilt_table_ends_in_a_document_or_a_sentence(tmp_path: Path, seed: int, ending: str) -> None:
    path = write_table(tmp_path / f"job.{ending}", spoil(seed))

    try:
        document = build_operations_report([path])
    except InputError:
        return

    assert encode_document(document)
    assert document.steps.measured_ns >= 0
    assert all(finding.count > 0 for finding in document.integrity)
    assert "\u202e" not in render_operations(document, width=80, color=False)
