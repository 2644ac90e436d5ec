"""Exports of Nsight Systems against sums taken from the databases by SQL and a sweep in plain Python."""

from __future__ import annotations

import gzip
import sqlite3
from typing import TYPE_CHECKING

import pytest

from longpole.report.document import Report
from tests.corpus.recordings import outcome_of

if TYPE_CHECKING:
    from pathlib import Path

COMPUTE = "SELECT start, end FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName WHERE {} AND {}"
COPIES = "SELECT start, end FROM CUPTI_ACTIVITY_KIND_{} WHERE {}"


def _union_ns(spans: list[tuple[int, int]]) -> int:
    """Return how long at least one of some spans lasts."""
    total, reach = 0, -(1 << 62)
    for start, end in sorted(spans):
        total += max(end - max(start, reach), 0)
        reach = max(reach, end)
    return total


@pytest.mark.parametrize("name", ["h100_2gpu_1s", "mfu_2gpu_after", "mfu_2gpu_before"])
def test_busy_times_are_those_of_the_database(corpus: Path, tmp_path: Path, name: str) -> None:
    packed = corpus / "GindaChen-nsys-ai" / f"{name}.sqlite.gz"
    plain = tmp_path / "plain.sqlite"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    database = sqlite3.connect(plain)

    report = outcome_of(packed)

    assert isinstance(report, Report), report
    processes = [
        pid
        for _, pid in sorted(
            database.execute("SELECT min(deviceId), globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL GROUP BY globalPid")
        )
    ]
    for row, process in zip(report.ranks, processes, strict=True):
        mine = f"globalPid = {process}"
        compute = database.execute(COMPUTE.format("s.value NOT LIKE 'nccl%'", mine)).fetchall()
        collective = database.execute(COMPUTE.format("s.value LIKE 'nccl%'", mine)).fetchall()
        copies = [
            span for table in ("MEMCPY", "MEMSET") for span in database.execute(COPIES.format(table, mine)).fetchall()
        ]
        device = row.ledger.device
        assert device.compute_ns == _union_ns(compute)
        assert device.collective_ns == _union_ns(collective)
        assert device.copy_ns == _union_ns(copies)
        assert device.busy_ns == _union_ns([*compute, *collective, *copies])
        assert device.collective_exposed_ns == _union_ns([*compute, *collective]) - _union_ns(compute)
    database.close()


def test_parameters_that_a_sharded_model_fetches_from_the_host_are_state(corpus: Path) -> None:
    """51 GB of pinned memory come to two devices in a second, from FSDP's hooks; half of the launches were cut off."""
    report = outcome_of(corpus / "GindaChen-nsys-ai" / "h100_2gpu_1s.sqlite.gz")

    assert isinstance(report, Report), report
    for row in report.ranks:
        assert row.ledger.objects["state"].exposed_ns > 0.5 * row.ledger.wall_ns


def test_all_to_alls_have_their_kind_from_the_annotation_around_them(corpus: Path) -> None:
    """The kernels are all called SendRecv."""
    report = outcome_of(corpus / "GindaChen-nsys-ai" / "mfu_2gpu_before.sqlite.gz")

    assert isinstance(report, Report), report
    assert [(one.kind, one.count) for one in report.collectives] == [("all_to_all", 33)]
