"""Two sides of benchmarks side by side: whole and stages, what is told and what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.bench.compare import compare_benchmark, geometric_mean
from longpole.bench.summary import summarise
from longpole.errors import InputError
from longpole.pipeline.bench_compare import compare_files
from longpole.records.compare import ComparedBenchmark
from longpole.records.ledger import Unknown
from longpole.records.run_record_file import encode_record
from longpole.report.text.compare import render_compare
from longpole.settings import Settings
from tests.bench_runs import bench_record

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.records.run_record import RunRecord

SETTINGS = Settings()


def _compare(base: RunRecord, new: RunRecord) -> ComparedBenchmark:
    found = compare_benchmark([base], [new], SETTINGS)
    assert isinstance(found, ComparedBenchmark)
    return found


def _write(folder: Path, *records: RunRecord) -> str:
    folder.mkdir(exist_ok=True)
    for record in records:
        (folder / f"{record.run_id}.json").write_bytes(encode_record(record))
    return str(folder)


def test_a_change_is_told_with_its_interval() -> None:
    found = _compare(
        bench_record(100e6, label="old", processes=8, noise=0.01),
        bench_record(120e6, label="new", processes=8, noise=0.01),
    )

    assert found.row.answer == "slower"
    assert found.row.change_share == pytest.approx(0.2, abs=0.02)
    assert isinstance(found.row.interval_share, list)
    assert found.row.interval_share[0] < 0.2 < found.row.interval_share[1]
    assert (found.per, found.design) == ("token", "unpaired")


def test_the_same_on_both_sides_is_no_difference() -> None:
    found = _compare(
        bench_record(100e6, label="old", processes=8, noise=0.02),
        bench_record(100.1e6, label="new", processes=8, noise=0.02),
    )

    assert found.row.answer == "~"


def test_times_are_of_an_item_and_so_are_those_of_stages() -> None:
    shares = {"input": 0.25, "forward": 0.75}
    found = _compare(
        bench_record(512e6, label="old", processes=6, stages=shares, noise=0.005),
        bench_record(512e6, label="new", processes=6, stages={"input": 0.5, "forward": 0.5}, noise=0.005),
    )

    assert found.base.value_ns == pytest.approx(1e6, rel=0.01)
    stages = {stage.name: stage for stage in found.stages}
    assert stages["input"].base_ns == pytest.approx(0.25e6, rel=0.02)
    assert stages["input"].new_ns == pytest.approx(0.5e6, rel=0.02)
    assert stages["input"].answer == "slower"
    assert stages["forward"].answer == "faster"


def test_another_machine_is_shown_first_and_compared_all_the_same() -> None:
    found = _compare(
        bench_record(100e6, label="old", processes=6, noise=0.01),
        bench_record(150e6, label="new", processes=6, noise=0.01, machine={"cpu": "Xeon"}),
    )

    assert found.differences[0].severity == "void"
    assert found.row.answer == "slower"


def test_one_process_a_side_is_marked_as_a_single_run() -> None:
    found = _compare(
        bench_record(100e6, label="old", processes=1, units=20, noise=0.01),
        bench_record(104e6, label="new", processes=1, units=20, noise=0.01),
    )

    assert found.design == "single run"
    assert any("single run" in note for note in found.notes)
    assert isinstance(found.row.interval_share, list)
    assert found.row.interval_share[0] < 0.02


def test_two_samples_have_a_change_and_no_interval() -> None:
    found = _compare(
        bench_record(100e6, label="old", processes=1, units=1), bench_record(110e6, label="new", processes=1, units=1)
    )

    assert found.row.answer == "?"
    assert found.row.change_share == pytest.approx(0.1)


def test_a_failed_process_is_no_sample() -> None:
    base, new = (bench_record(100e6, label=label, processes=6, noise=0.01) for label in ("old", "new"))
    new.processes[2].failure = "exit code 1"

    found = _compare(base, new)

    assert found.new.processes == 5


def test_the_geometric_mean_counts_each_benchmark_alike() -> None:
    twice = _compare(bench_record(1e6, label="a"), bench_record(2e6, label="b"))
    half = _compare(bench_record(2e9, label="c"), bench_record(1e9, label="d"))

    assert geometric_mean([twice, half]) == pytest.approx(0.0, abs=1e-9)
    assert isinstance(geometric_mean([twice]), Unknown)


def test_a_summary_joins_the_records_of_a_benchmark() -> None:
    one, other = bench_record(100e6, label="a", processes=2), bench_record(100e6, label="b", processes=3)

    found = summarise(one, other)

    assert found is not None
    assert (found.processes, found.units) == (5, 20)
    assert found.items_per_s == pytest.approx(5120)


def test_benchmarks_are_matched_by_name_and_the_rest_is_listed(tmp_path: Path) -> None:
    base = _write(tmp_path / "base", *(bench_record(1e8, label="old", benchmark=name) for name in ("a", "b")))
    new = _write(tmp_path / "new", *(bench_record(1e8, label="new", benchmark=name) for name in ("b", "c")))

    found = compare_files([base], [new], SETTINGS)

    assert [one.row.name for one in found.benchmarks] == ["b"]
    assert (found.only_base, found.only_new) == (["a"], ["c"])


def test_one_benchmark_a_side_is_compared_whatever_it_is_called(tmp_path: Path) -> None:
    base = _write(tmp_path / "base", bench_record(1e8, label="old", benchmark="old.py"))
    new = _write(tmp_path / "new", bench_record(1e8, label="new", benchmark="new.py"))

    assert len(compare_files([base], [new], SETTINGS).benchmarks) == 1


def test_sides_without_a_common_benchmark_are_refused(tmp_path: Path) -> None:
    base = _write(tmp_path / "base", *(bench_record(1e8, label="old", benchmark=name) for name in ("a", "b")))
    new = _write(tmp_path / "new", *(bench_record(1e8, label="new", benchmark=name) for name in ("c", "d")))

    with pytest.raises(InputError, match="share no benchmark: a, b against c, d"):
        compare_files([base], [new], SETTINGS)


def test_a_side_on_which_nothing_counts_is_refused_with_the_reason(tmp_path: Path) -> None:
    failed = bench_record(1e8, label="new", processes=1)
    failed.processes[0].failure = "exit code 1"
    sides = [_write(tmp_path / "base", bench_record(1e8, label="old")), _write(tmp_path / "new", failed)]

    with pytest.raises(InputError, match="nothing can be compared: train: no unit of it counts"):
        compare_files(sides[:1], sides[1:], SETTINGS)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_the_page_keeps_its_width_and_shows_hostile_names_as_text(tmp_path: Path, width: int) -> None:
    names = ("train\x1b[31m", "a very long name of a benchmark[with-parameters-that-go-on-and-on-and-on]")
    stages = {"input": 0.4, "forward \u202e and backward": 0.6}
    base = _write(tmp_path / "base", *(bench_record(1e8, label="old", benchmark=name, stages=stages) for name in names))
    new = _write(tmp_path / "new", *(bench_record(2e8, label="new", benchmark=name, stages=stages) for name in names))

    page = render_compare(compare_files([base], [new], SETTINGS), width=width, color=False)

    assert max(map(len, page.splitlines())) <= width
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "geometric mean" in page
