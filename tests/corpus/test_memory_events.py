"""Memory events of real traces: what was known of them beforehand, and that healthy jobs have no finding."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from longpole.digest.steady import real_units
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import report_on
from longpole.records.memory import peak_of

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.digest.rank_digest import RankDigest
    from longpole.report.document import Report

OWN = "own-torch-cpu/kineto/single"
HEALTHY = (
    f"{OWN}/mem_steady.pt.trace.json.gz",
    "facebookresearch-HolisticTraceAnalysis/df_index_resolver/df_index_resolver.json.gz",
    "pytorch-ao/trace.json.gz",
    "AMD-AGI-TraceLens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "AMD-AGI-TraceLens/mi300/ddp_resnet18_no_pool/train_resnet18.json.gz",
)


def _read(path: Path) -> tuple[RankDigest, Report]:
    run, report = report_on([str(path)], ReportOptions(use_cache=False))
    return run.digests[0], report


def _ends(digest: RankDigest) -> list[int]:
    (memory,) = digest.memory
    return [memory.units[unit.name].end_allocated_bytes for unit in real_units(digest.rows[0].units)]


def test_a_list_that_is_kept_grows_by_the_same_in_every_step(corpus: Path) -> None:
    """The recording's own README: 131,072 B a step, exactly."""
    digest, report = _read(corpus / OWN / "mem_leak.pt.trace.json.gz")

    ends = _ends(digest)
    assert {after - before for before, after in pairwise(ends)} == {131_072}
    (finding,) = [finding for finding in report.findings if finding.cause == "leak"]
    assert finding.evidence[0].value == 131_072
    assert report.long_pole != finding.id


def test_a_steady_job_ends_every_step_with_the_same(corpus: Path) -> None:
    """The recording's own README: 546,856 B."""
    digest, _ = _read(corpus / OWN / "mem_steady.pt.trace.json.gz")

    assert set(_ends(digest)) == {546_856}


def test_a_job_of_2021_has_changes_and_no_totals(corpus: Path) -> None:
    path = "pytorch-kineto/tb_plugin_samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz"

    digest, report = _read(corpus / path)

    assert [(memory.memory, memory.from_start, memory.n_events) for memory in digest.memory] == [
        ("cuda:0", True, 8220),
        ("cpu", True, 4618),
    ]
    assert digest.memory[0].capacity_bytes == 34_084_028_416
    assert not [finding for finding in report.findings if finding.cause in ("leak", "fragmentation")]


def test_half_of_what_is_reserved_may_be_a_cache(corpus: Path) -> None:
    """6.63 of 12.8 GB at the peak, and nothing goes back to the driver."""
    digest, _ = _read(corpus / HEALTHY[1])

    peak = peak_of(digest.memory[0])
    assert (peak.peak_allocated_bytes, peak.reserved_at_peak_bytes) == (6_629_508_096, 12_782_141_440)
    assert peak.reserved_falls == 0


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_jobs_are_silent_and_whole(corpus: Path, name: str) -> None:
    _, report = _read(corpus / name)

    assert not [finding for finding in report.findings if finding.cause in ("leak", "fragmentation")]
    assert not [finding for finding in report.integrity if finding.code.startswith("event.memory")]
