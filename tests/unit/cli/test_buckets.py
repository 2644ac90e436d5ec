"""`longpole buckets` from the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from longpole.cli.main import main
from tests.ddp_traces import Job, write_trace

if TYPE_CHECKING:
    from pathlib import Path


def test_the_document_is_written_and_the_page_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, out = write_trace(Job(), tmp_path / "rank0.pt.trace.json"), tmp_path / "buckets.json"

    code = main(["buckets", str(trace), "--cost", "60:12.5", "--no-cache", "--json", str(out)])

    assert code == 0
    assert capsys.readouterr().out.startswith("rank 0 · Test Device")
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["schema"] == "longpole.buckets/1"
    assert document["cost"]["model"] == {
        "alpha_ns": 60_000, "gamma": 0.0, "gb_per_s": 12.5, "source": "stated", "says": "--cost",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--cost", "60"], "--cost: expected latency in µs and a rate above 0 in GB/s, such as 60:12.5; found '60'"),
        (["--cost", "60:0"], "found '60:0'"),
        (["--cost", "-1:5"], "found '-1:5'"),
        (["--cost", "nan:5"], "found 'nan:5'"),
        (["--of", "two"], "--of: expected the number of a rank; found 'two'"),
        (["--gradient-type", "fp12"], "--gradient-type: expected one of fp32, bf16, fp16, fp64; found 'fp12'"),
    ],
)
def test_a_slip_of_the_pen_is_answered_before_anything_is_read(
    options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["buckets", "no/such/trace", *options]) == 2
    assert says in capsys.readouterr().err


def test_a_trace_without_gradients_is_an_error_of_the_input(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = root / "examples" / "loader-bound" / "rank0.pt.trace.json.gz"

    assert main(["buckets", str(trace), "--no-cache", "-q"]) == 3
    assert "DistributedDataParallel" in capsys.readouterr().err
