"""The page of `longpole buckets`: the verdict first, what is not known as such, no control sequence of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from longpole.pipeline.buckets import BucketOptions, sweep_buckets
from longpole.pipeline.reading import ReportOptions
from longpole.report.buckets import Buckets, CapRange
from longpole.report.text.buckets import render_buckets
from tests.ddp_traces import MIB, Job, write_trace

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Buckets:
    return _swept(Job(cap_bytes=1000 * MIB, first_cap_bytes=1000 * MIB), tmp_path_factory.mktemp("ddp"))


def _swept(job: Job, folder: Path, cost: tuple[float, float] | None = (60e-6, 12.5e9)) -> Buckets:
    trace = write_trace(job, folder / "rank0.pt.trace.json")
    return sweep_buckets([str(trace)], BucketOptions(report=ReportOptions(use_cache=False, processes=1), cost=cost))


def test_who_then_the_verdict_then_the_curve(swept: Buckets) -> None:
    lines = render_buckets(swept, width=100, color=False).splitlines()

    assert lines[0].startswith("rank 0 · Test Device · 40 gradients of 168 MB together · backward pass of 20.0 ms")
    verdict = next(line for line in lines if line.startswith("CHANGE"))
    assert "bucket_cap_mb=2 would save 13.1 ms of a step" in verdict
    assert lines.index(verdict) < lines.index(next(line for line in lines if line.startswith("CAPS")))
    (best,) = [line for line in lines if line.endswith("best")]
    assert best.split()[:3] == ["2", "MiB", "40"]
    assert next(line for line in lines if line.lstrip().startswith("one bucket")).split()[2:5] == [
        "1",
        "13.48",
        "13.48",
    ]
    assert lines[-1].startswith("next  try it on the job, then: longpole verify")


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_wider_than_the_page(swept: Buckets, width: int, tmp_path: Path) -> None:
    unknown = _swept(Job(shapes=False, bytes_written=False), tmp_path)
    for document in (swept, unknown):
        assert max(map(len, render_buckets(document, width=width, color=False).splitlines())) <= width


def test_what_is_not_known_is_said_with_what_is_missing(tmp_path: Path) -> None:
    page = render_buckets(_swept(Job(shapes=False, bytes_written=False), tmp_path), width=100, color=False)

    assert "NOT KNOWN  neither the buckets' bytes nor the gradients' shapes are recorded" in page
    assert "missing: shapes (record_shapes=True)" in page
    assert "CAPS" not in page
    assert "cap             not known" in page


def test_a_cap_that_nobody_sets_is_no_cap(swept: Buckets) -> None:
    """A DLRM's three modules, each wrapped by itself: 753,664 to 754,112 bytes would be the only cap to do it."""
    narrow = CapRange(753_664, 754_112, 528_388, 1_576_964, torch_default=False)
    document = msgspec.structs.replace(swept, recorded=msgspec.structs.replace(swept.recorded, cap=narrow))

    page = " ".join(render_buckets(document, width=100, color=False).split())

    assert "only one between 753,664 and 754,112 bytes makes these buckets: more likely several modules" in page


def test_a_device_with_control_sequences_in_its_name_is_shown_escaped(swept: Buckets) -> None:
    page = render_buckets(msgspec.structs.replace(swept, device="\x1b[31mred"), width=80, color=False)

    assert "\x1b" not in page
