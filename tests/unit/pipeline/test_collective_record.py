"""The user's record as the cost model: behind a fit to the run, before the shipped ones (DESIGN 3.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from longpole.errors import InputError
from longpole.pipeline.collective_record import read_models
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import build_report
from longpole.pipeline.whatif import what_if
from longpole.records.collectives import CostModel
from longpole.whatif.change import parse_change
from tests.case_answers import CASES
from tests.nccl_logs import DEVICE, render_text
from tests.unit.pipeline.test_collective_logs import made_test

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """An all-reduce of two devices: 20 µs, 100 GB/s."""
    path = tmp_path / "all_reduce.log"
    path.write_text(render_text(made_test(ranks=2)), encoding="utf-8")
    return path


def _options(log: Path | None) -> ReportOptions:
    return ReportOptions(use_cache=False, collective_record=log)


def test_a_log_is_a_model_for_its_kind_and_number_of_ranks(log: Path) -> None:
    models = read_models(log)

    model = models.find("all_reduce", 2)
    assert model is not None
    assert model.parts_ns(np.array([100_000_000]))[1] == pytest.approx(1_000_000, rel=0.02)
    assert (model.source, models.device, models.nodes) == ("record", DEVICE, 1)
    assert "all_reduce.log: all_reduce, 2 ranks" in model.says
    assert models.find("all_reduce", 8) is models.find("all_gather", 2) is None


def test_a_record_without_a_model_is_refused(tmp_path: Path) -> None:
    test = made_test()
    del test.rows[3:]
    path = tmp_path / "short.log"
    path.write_text(render_text(test), encoding="utf-8")

    with pytest.raises(InputError, match=r"no cost model can be made of it: all_reduce: takes 4 sizes"):
        read_models(path)


def test_many_small_collectives_are_priced_by_the_record(log: Path) -> None:
    """B068: of one size only, so that without a record nothing can price the joined call."""
    change = parse_change("--fuse all_reduce=100MB")

    without = what_if([str(CASES / "B068")], [change], _options(None))
    priced = what_if([str(CASES / "B068")], [change], _options(log))

    assert without.refused is not None
    assert "--collective-record" in without.refused.why
    assert priced.refused is None
    (price,) = priced.priced_by
    assert (price.kind, price.ranks, price.model.source) == ("all_reduce", 2, "record")
    # 224 calls of 256 KiB become one of 58.7 MB: 20 µs and 587 µs, instead of 12.5 ms and what was between them.
    assert isinstance(priced.saving_ns, int)
    assert 11_800_000 < priced.saving_ns < 14_200_000


def test_a_report_says_that_the_record_is_behind_the_bound(log: Path) -> None:
    report = build_report([str(CASES / "B068")], _options(log))

    (entry,) = report.collectives
    assert isinstance(entry.model, CostModel)
    assert entry.model.source == "record"
    # 56 µs a call, of which the record gives 20 to latency and 2.6 to the bytes: neither is half.
    assert entry.bound == "mixed"


def test_a_record_of_another_device_is_complained_of(log: Path) -> None:
    report = build_report([str(CASES / "B068")], _options(log))
    answer = what_if([str(CASES / "B068")], [parse_change("--fuse all_reduce=100MB")], _options(log))

    (finding,) = [finding for finding in report.integrity if finding.code == "collective.record_differs"]
    assert DEVICE in finding.message
    assert "Synthetic GPU" in finding.message
    assert answer.priced_by[0].doubt == finding.message


def test_the_cache_tells_runs_with_and_without_a_record_apart(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    options = [ReportOptions(collective_record=record) for record in (None, log, None)]

    models = [build_report([str(CASES / "B068")], one).collectives[0].model for one in options]

    assert [isinstance(model, CostModel) for model in models] == [False, True, False]
