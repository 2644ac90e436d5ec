"""Rows that other exporters write, or that lie where none should: what they are is told, or said not to be known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from longpole.records.ledger import Unknown
from tests.laws import check_report, report_on
from tests.trace_text import BASE_NS, BASE_US, annotation, call, document, kernel, steps, write

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.document import RankEntry, Report

# ├─ launch ─┤ ├───── gemm 100 ─────┤   ├─ launch ─┤ ├─ relu 50 ─┤       of a step of 300 µs
ONE_STEP = (
    annotation(0, 300, "ProfilerStep#0"),
    call(5, 5, correlation=1),
    kernel(20, 100, correlation=1),
    call(130, 5, correlation=2),
    kernel(150, 50, "relu", correlation=2),
)


def _row(report: Report) -> RankEntry:
    check_report(report)
    (row,) = report.ranks
    return row


def _codes(report: Report) -> dict[str, int]:
    return {finding.code: finding.count for finding in report.integrity}


def _categories(of_kernels: object, of_calls: str = "cuda_runtime") -> list[dict[str, Any]]:
    changed = {"kernel": of_kernels, "cuda_runtime": of_calls}
    return [event | {"cat": changed.get(event["cat"], event["cat"])} for event in ONE_STEP]


# -------------------------------------------------------------------------------------------------- categories


@pytest.mark.parametrize("category", ["kernel,gpu", " Kernel ", "in_house,kernel"])
def test_the_first_known_of_several_categories_counts(tmp_path: Path, category: str) -> None:
    row = _row(report_on(write(tmp_path / "a.json", _categories(category))))

    assert (row.device, row.ledger.device.compute_ns) == ("cuda:0", 150_000)


@pytest.mark.parametrize("category", ["gpu_op", "hpu_kernel", None])
def test_rows_of_an_unknown_category_with_a_device_and_a_stream_are_device_work(
    tmp_path: Path, category: object
) -> None:
    events = _categories(category)
    copy = kernel(210, 20, "Memcpy HtoD (Pinned -> Device)", correlation=3)
    events += [call(205, 2, "cudaMemcpyAsync", 3), copy | {"cat": category}]

    report = report_on(write(tmp_path / "a.json", events))

    device = _row(report).ledger.device
    assert (device.compute_ns, device.copy_ns, device.idle_ns) == (150_000, 20_000, 130_000)
    assert _codes(report) == {"event.category.unknown": 3}


def test_rows_of_an_unknown_category_without_a_stream_stay_on_the_host(tmp_path: Path) -> None:
    extra = annotation(40, 30, "my span") | {"cat": "in_house", "args": {"device": 0}}

    report = report_on(write(tmp_path / "a.json", [*ONE_STEP, extra]))

    assert _row(report).ledger.device.compute_ns == 150_000
    assert _codes(report) == {}


def test_what_gaudi_calls_an_operation_is_a_call_of_the_host(tmp_path: Path) -> None:
    report = report_on(write(tmp_path / "a.json", _categories("kernel", "hpu_op")))

    assert (_row(report).device, _codes(report)) == ("hpu:0", {})


# --------------------------------------------------------------------------------------------- other exporters


def _named(pid: int, process: str, threads: dict[int, str]) -> list[dict[str, Any]]:
    names = [{"ph": "M", "pid": pid, "name": "process_name", "args": {"name": process}}]
    return names + [
        {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}
        for tid, name in threads.items()
    ]


def _bare(pid: int | str, tid: int, start_us: float, dur_us: float, name: str) -> dict[str, Any]:
    return {"ph": "X", "pid": pid, "tid": tid, "ts": start_us, "dur": dur_us, "name": name}


def _write_list(path: Path, events: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return path


def test_jax_on_gpus_each_device_is_a_process_and_each_stream_a_thread(tmp_path: Path) -> None:
    """The lines that xprof derives from them (`XLA Modules`) are no work."""
    events = [*_named(701, "/host:CPU", {}), _bare(701, 9, 0, 400, "PjitFunction(step)")]
    for device in (0, 1):
        events += _named(1 + device, f"/device:GPU:{device}", {14: "Stream #14(MemcpyH2D,Compute)", 20: "XLA Modules"})
        events += [
            _bare(1 + device, 14, 10, 100, "gemm_fusion"),
            _bare(1 + device, 14, 120, 50 + device, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
            _bare(1 + device, 14, 200, 20, "MemcpyH2D"),
            _bare(1 + device, 20, 10, 300, "jit_step(1)"),
        ]

    report = report_on(_write_list(tmp_path / "a.json", events))

    check_report(report)
    assert [row.device for row in report.ranks] == ["cuda:0", "cuda:1"]
    for row in report.ranks:
        assert (row.ledger.device.compute_ns, row.ledger.device.copy_ns) == (100_000, 20_000)
    assert [row.ledger.device.collective_ns for row in report.ranks] == [50_000, 51_000]


def test_jax_on_tpus_the_thread_of_operations_is_the_work(tmp_path: Path) -> None:
    events = [
        *_named(3, "/device:TPU:0", {1: "Steps", 2: "XLA Modules", 3: "XLA Ops"}),
        _bare(3, 1, 10, 300, "0"),
        _bare(3, 2, 10, 200, "jit_step(1)"),
        _bare(3, 3, 10, 100, "fusion.1"),
        _bare(3, 3, 120, 50, "all-reduce.3"),
    ]

    row = _row(report_on(_write_list(tmp_path / "a.json", events)))

    assert row.device == "tpu:0"
    assert (row.ledger.device.compute_ns, row.ledger.device.collective_ns) == (100_000, 50_000)


def test_pytorch_before_kineto_names_host_and_device_by_process(tmp_path: Path) -> None:
    events = [_bare("CPU functions", 1, 10, 20, "aten::add"), _bare("CUDA functions", 0, 40, 30, "gemm")]

    row = _row(report_on(_write_list(tmp_path / "a.json", events)))

    assert (row.device, row.ledger.wall_ns, row.ledger.device.compute_ns) == ("cuda:0", 60_000, 30_000)


# ------------------------------------------------------------------------------------------------------- times


@pytest.mark.parametrize("count", [1, 2])
def test_rows_at_exactly_zero_are_strays_where_the_record_begins_a_second_later(tmp_path: Path, count: int) -> None:
    lost = [kernel(0, 7, f"lost {place}", correlation=7) | {"ts": 0.0} for place in range(count)]

    report = report_on(write(tmp_path / "a.json", [*ONE_STEP, *lost]))

    row = _row(report)
    assert row.recorded_ns == 300_000
    assert row.device_span.busy_ns == 150_000
    assert _codes(report)["event.time.stray"] == count


def test_a_record_that_begins_at_zero_keeps_its_first_row(tmp_path: Path) -> None:
    events = [event | {"ts": event["ts"] - BASE_US} for event in steps(3)]

    report = report_on(write(tmp_path / "a.json", events))

    assert _codes(report) == {}
    assert _row(report).ledger.wall_ns == 300_000


def test_a_base_time_with_a_decimal_point_is_a_base_time(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / f"rank{rank}.json", steps(3), rank, 2, baseTimeNanoseconds=base)
        for rank, base in enumerate((float(BASE_NS), BASE_NS))
    ]

    report = report_on(*paths)

    assert [clock.method for clock in report.clock] == ["base_time", "base_time"]


# ------------------------------------------------------------------------------------------------------- marks


def test_steps_that_move_to_another_thread_stay_steps(tmp_path: Path) -> None:
    events = [
        event | ({"tid": 4300} if event["pid"] == 4200 and event["ts"] >= BASE_US + 200 else {}) for event in steps(4)
    ]

    row = _row(report_on(write(tmp_path / "a.json", events)))

    assert [unit.name for unit in row.units] == [f"ProfilerStep#{k}" for k in range(4)]
    assert (row.ledger.wall_ns, row.ledger.device.compute_ns) == (400_000, 200_000)


def test_steps_of_a_second_loop_at_the_same_time_are_counted_as_left_out(tmp_path: Path) -> None:
    """Units of one row tile its time, so marks that overlap others make none."""
    beside = [annotation(k * 100 + 10, 80, f"ProfilerStep#{k + 50}") | {"tid": 4300} for k in range(3)]

    report = report_on(write(tmp_path / "a.json", [*steps(4), *beside]))

    assert len(_row(report).units) == 4
    assert _codes(report) == {"unit.mark_left_out": 3}


def test_a_clock_that_jumps_back_costs_only_the_steps_that_overlap(tmp_path: Path) -> None:
    """
    0   ├─ 0 ─┤├─ 1 ─┤├─ 2 ─┤
    150           ├─ 3 ─┤├─ 4 ─┤      the clock went back by 150 µs behind step 2
    """
    events = steps(5)
    events = [event | ({"ts": event["ts"] - 150} if event["ts"] >= BASE_US + 300 else {}) for event in events]

    report = report_on(write(tmp_path / "a.json", events))

    assert [unit.name for unit in _row(report).units if unit.kind == "step"] == [f"ProfilerStep#{k}" for k in range(3)]
    assert _codes(report)["unit.mark_left_out"] == 2


# ------------------------------------------------------------------------------------------------------- ranks


def test_a_rank_beyond_the_world_is_not_counted_as_one_of_it(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{rank}.json", steps(3), rank, 2) for rank in (1, 5)]

    report = report_on(*paths)

    (finding,) = [finding for finding in report.integrity if finding.code == "rank.missing"]
    assert finding.message.startswith("1 of 2 ranks present, missing: 0, and rank 5 is none of the 2;")


def test_files_that_all_call_themselves_the_only_rank_go_by_their_names(tmp_path: Path) -> None:
    """The profiler was made before the process group, so every header says rank 0 of 1."""
    paths = [write(tmp_path / f"job-TP-{rank}.trace.json", steps(3), 0, 1) for rank in (0, 1, 2)]

    report = report_on(*paths)

    assert report.run.ranks_present == [0, 1, 2]
    assert isinstance(report.run.world_size, Unknown)
    assert "rank.duplicate" not in _codes(report)


def test_a_header_that_knows_of_other_ranks_is_believed_before_the_name(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"rank{1 - rank}.json", steps(3), rank, 2) for rank in (0, 1)]

    report = report_on(*paths)

    assert [(entry.rank, entry.source) for entry in report.ranks] == [(0, 0), (1, 1)]
    assert [source.path.endswith(f"rank{1 - n}.json") for n, source in enumerate(report.run.sources)] == [True, True]


def test_a_rank_with_a_decimal_point_is_a_rank(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    text = document(list(ONE_STEP)) | {"distributedInfo": {"rank": 3.0, "world_size": 4.0}}
    path.write_text(json.dumps(text), encoding="utf-8")

    report = report_on(path)

    assert (report.run.ranks_present, report.run.world_size) == ([3], 4)


def test_a_line_of_a_log_behind_the_document_is_no_second_document(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document(list(ONE_STEP))) + "\n[INFO] done\n", encoding="utf-8")

    report = report_on(path)

    assert _row(report).ledger.device.compute_ns == 150_000
    assert _codes(report) == {"json.syntax.repaired": 1}


# ----------------------------------------------------------------------------------------------- hardly anything


def test_kernels_without_a_length_are_no_idle_device(tmp_path: Path) -> None:
    events = [event | ({"dur": 0} if event["cat"] == "kernel" else {}) for event in steps(4)]

    report = report_on(write(tmp_path / "a.json", events))

    assert _row(report).ledger.device.compute_ns == 0
    (finding,) = [finding for finding in report.integrity if finding.code == "kernel.time.missing"]
    assert finding.count == 4
    assert "4 of 4 kernels have a start and no length" in finding.message
    assert "/ranks/0/ledger/device/idle_ns" in [entry.at for entry in report.unknown]


def test_few_kernels_without_a_length_are_short_ones(tmp_path: Path) -> None:
    events = steps(4)
    events[2]["dur"] = 0

    assert "kernel.time.missing" not in _codes(report_on(write(tmp_path / "a.json", events)))


@pytest.mark.parametrize("category", ["kernel", "gpu_memcpy", "gpu_memset"])
def test_a_single_device_span_without_any_host_row_is_a_record(tmp_path: Path, category: str) -> None:
    name = {"kernel": "gemm", "gpu_memcpy": "Memcpy HtoD (Pageable -> Device)", "gpu_memset": "Memset (Device)"}

    row = _row(report_on(write(tmp_path / "a.json", [kernel(0, 5, name[category]) | {"cat": category}])))

    assert (row.ledger.wall_ns, row.device_span.busy_ns) == (5_000, 5_000)
