"""What exporters, mergers and clocks get wrong in files that are sound JSON: no wrong figure, and nothing silent."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from longpole.errors import InputError, LongpoleError, NotATraceError
from tests.laws import check_refusal, check_report, report_on
from tests.trace_text import BASE_NS, annotation, call, document, kernel, steps, write

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.document import Report
    from longpole.timeline.integrity import Finding

EPOCH_US = 1.718e15


def _finding(report: Report, code: str) -> Finding:
    (finding,) = [finding for finding in report.integrity if finding.code == code]
    return finding


def _refused(path: Path) -> LongpoleError:
    with pytest.raises(LongpoleError) as caught:
        report_on(path)
    return caught.value


def _in_epoch(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event | {"ts": event["ts"] + EPOCH_US} for event in events]


def _text(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# ------------------------------------------------------------------------------------------------------- times


@pytest.mark.parametrize("ts", [0.0, 9e15, -5e12])
@pytest.mark.parametrize("which", [1, 2], ids=["a launch", "a kernel"])
def test_one_event_at_an_absurd_time_does_not_stretch_the_record(tmp_path: Path, ts: float, which: int) -> None:
    """
    ├ 1970 ┤                      … 54 years …                      ├───── 300 µs ─────┤
    """
    events = _in_epoch(steps(3)) if ts == 0.0 else steps(3)
    events[which]["ts"] = ts

    report = report_on(write(tmp_path / "rank0.json", events, baseTimeNanoseconds=None))

    assert report.ranks[0].recorded_ns == 300_000
    assert report.ranks[0].ledger.wall_ns == 300_000
    assert _finding(report, "event.time.stray").example.event == which
    check_report(report)


def test_kernels_whose_clock_read_zero_are_strays_however_many(tmp_path: Path) -> None:
    events = _in_epoch(steps(6))
    for place in range(2, len(events), 6):
        events[place]["ts"] = 0.0

    report = report_on(write(tmp_path / "rank0.json", events, baseTimeNanoseconds=None))

    assert _finding(report, "event.time.stray").count == 3
    assert report.ranks[0].device_span.busy_ns == 150_000
    assert "/ranks/0/device_span/idle_ns" in _finding(report, "event.time.stray").voids


def test_a_span_that_reaches_the_record_is_no_stray(tmp_path: Path) -> None:
    report = report_on(write(tmp_path / "rank0.json", [*steps(3), annotation(-7.3e9, 8e9, "training loop")]))

    assert "event.time.stray" not in [finding.code for finding in report.integrity]
    assert report.ranks[0].head_ns == 7_300_000_000_000


def test_two_recordings_hours_apart_in_one_file_are_no_strays(tmp_path: Path) -> None:
    later = [event | {"ts": event["ts"] + 4 * 3600e6} for event in steps(3)]

    report = report_on(write(tmp_path / "rank0.json", [*steps(3), *later]))

    assert "event.time.stray" not in [finding.code for finding in report.integrity]
    assert report.ranks[0].device_span.busy_ns == 300_000


def test_durations_beyond_a_month_are_impossible_and_sums_stay_in_range(tmp_path: Path) -> None:
    events = [{**annotation(k, 2e15, "aten::mm"), "cat": "cpu_op"} for k in range(9)]

    error = _refused(write(tmp_path / "rank0.json", events))
    report = report_on(write(tmp_path / "rank1.json", [*events, *steps(3)], rank=1, world_size=2))

    assert isinstance(error, NotATraceError)
    assert _finding(report, "host.duration.impossible").count == 9
    check_report(report)


@pytest.mark.parametrize("category", ["overhead", "cuda_sync", "gpu_user_annotation"])
def test_a_file_of_rows_that_are_no_work_has_nothing_to_report(tmp_path: Path, category: str) -> None:
    path = write(tmp_path / "rank0.json", [{**annotation(0, 5, "x"), "cat": category}])

    error = _refused(path)

    assert isinstance(error, NotATraceError)
    assert "no timed events of host or device" in str(error)
    check_refusal(error, "rank0.json")


# ------------------------------------------------------------------------------------------------------- links


def test_an_id_that_is_used_again_links_to_the_launch_before_its_kernel(tmp_path: Path) -> None:
    events = [call(0, 5, correlation=7), kernel(20, 50, correlation=7)]
    events += [call(1000, 5, correlation=7), kernel(1020, 50, correlation=7)]

    report = report_on(write(tmp_path / "rank0.json", events))

    assert report.ranks[0].ledger.idle_ns["device.unexplained"] == 0
    assert report.ranks[0].ledger.idle_ns["launch_latency"] == 30_000


def test_of_a_call_within_a_call_of_one_id_the_outer_one_launched(tmp_path: Path) -> None:
    events = [call(0, 40), call(10, 20, name="cuLaunchKernel"), kernel(60, 50)]

    report = report_on(write(tmp_path / "rank0.json", events))

    assert report.ranks[0].ledger.idle_ns["launch_call"] == 40_000


def test_arrows_without_targets_link_nothing(tmp_path: Path) -> None:
    arrow = {"ph": "s", "id": 1, "pid": 4200, "tid": 4200, "ts": 1_000_000.0, "cat": "ac2g", "name": "ac2g"}
    bare = kernel(20, 50)
    del bare["args"]["correlation"]

    report = report_on(write(tmp_path / "rank0.json", [call(0, 5), arrow, bare]))

    assert _finding(report, "kernel.unlinked").count == 1


def test_launches_without_any_kernel_give_no_verdict(tmp_path: Path) -> None:
    events = [event for event in steps(5) if event["cat"] != "kernel"]

    report = report_on(write(tmp_path / "rank0.json", events))

    finding = _finding(report, "launch.without_kernel")
    assert finding.count == 5
    assert finding.message.startswith("5 launches, and kernel activity was not recorded")
    assert not hasattr(report.headline, "says")
    assert not isinstance(report.ranks[0].device_span.busy_ns, int)
    assert report.ranks[0].ledger.objects["unknown"].exposed_ns == 0
    check_report(report)


# ------------------------------------------------------------------------------------------------ merged files


def test_ranks_merged_by_an_added_number_are_told_apart(tmp_path: Path) -> None:
    """
    pids  4200  0   |   104200  100000
    """
    events = [event | {"pid": event["pid"] + 100_000 * rank} for rank in range(3) for event in steps(2)]

    report = report_on(write(tmp_path / "merged.json", events, rank=None))

    assert report.run.ranks_present == [0, 1, 2]
    assert report.run.ranks_assumed
    assert [row.device_span.busy_ns for row in report.ranks] == [100_000] * 3
    check_report(report)


def test_programs_that_share_the_device_rows_are_refused(tmp_path: Path) -> None:
    events = [event | {"pid": event["pid"] and event["pid"] + rank} for rank in range(2) for event in steps(2)]

    error = _refused(write(tmp_path / "merged.json", events, rank=None))

    assert isinstance(error, InputError)
    assert "2 programs in one file (processes 4200, 4201)" in str(error)
    check_refusal(error, "merged.json")


def test_one_flipped_digit_of_a_process_id_is_no_second_program(tmp_path: Path) -> None:
    events = steps(20)
    events[0]["pid"] = 4201

    report = report_on(write(tmp_path / "rank0.json", events))

    assert report.run.ranks_present == [0]


def test_rows_of_a_merged_file_that_name_no_rank_are_counted(tmp_path: Path) -> None:
    named = [event | {"pid": f"[TP{rank:02}] {event['pid']}"} for rank in range(2) for event in steps(2)]

    report = report_on(write(tmp_path / "merged.json", [*named, *steps(2)], rank=None))

    assert report.run.ranks_present == [0, 1]
    for finding in [finding for finding in report.integrity if finding.code == "event.no_rank"]:
        assert finding.count == 6
        assert f"/ranks/{finding.rank}/device_span/idle_ns" in finding.voids
    check_report(report)


def test_a_file_in_which_only_host_rows_name_the_rank_keeps_its_device(tmp_path: Path) -> None:
    events = [event if event["cat"] == "kernel" else event | {"pid": "[TP03] 4200"} for event in steps(2)]

    report = report_on(write(tmp_path / "rank.json", events, rank=None))

    assert report.run.ranks_present == [3]
    assert report.ranks[0].device_span.busy_ns == 100_000


# --------------------------------------------------------------------------------------------------- documents


def test_a_key_of_the_header_that_is_called_like_the_event_list_is_passed_over(tmp_path: Path) -> None:
    text = json.dumps({"metadata": {"traceEvents": [1, 2, 3]}, **document(steps(3))})

    report = report_on(_text(tmp_path / "rank0.json", text))

    assert report.run.sources[0].events == 9
    assert report.run.sources[0].skipped == 0


def test_of_two_event_lists_in_one_object_both_are_read(tmp_path: Path) -> None:
    text = json.dumps(document(steps(3))).replace('"traceEvents"', '"traceEvents": [], "traceEvents"')

    report = report_on(_text(tmp_path / "rank0.json", text))

    assert report.run.sources[0].events == 9
    assert _finding(report, "json.documents").count == 1


def test_traces_of_two_ranks_glued_together_are_refused(tmp_path: Path) -> None:
    text = "\n".join(json.dumps(document(steps(2), rank=rank, world_size=2)) for rank in range(2))

    error = _refused(_text(tmp_path / "both.json", text))

    assert isinstance(error, InputError)
    assert "found another one of another rank or recording" in str(error)
    check_refusal(error, "both.json")


def test_traces_of_two_recordings_glued_together_are_refused(tmp_path: Path) -> None:
    parts = [document(steps(2)), {**document(steps(2)), "baseTimeNanoseconds": BASE_NS + 1}]

    error = _refused(_text(tmp_path / "both.json", "".join(map(json.dumps, parts))))

    assert "baseTimeNanoseconds differs" in str(error)


def test_reading_many_glued_documents_takes_time_in_proportion(tmp_path: Path) -> None:
    def take(count: int) -> float:
        parts = []
        for part in range(count):
            later = [event | {"ts": event["ts"] + 1000 * part} for event in steps(10)]
            parts.append(json.dumps(document([event for event in later if event["cat"] != "user_annotation"])))
        path = _text(tmp_path / f"glued_{count}.json", "\n".join(parts))
        begun = time.process_time()
        report = report_on(path)
        assert _finding(report, "json.documents").count == count - 1
        return time.process_time() - begun

    take(2)

    assert take(200) < 12 * max(take(20), 0.1)


def test_many_repairs_take_time_in_proportion(tmp_path: Path) -> None:
    """Each repair is told with its line; counting lines from the start of a block for each took minutes."""

    def take(count: int) -> float:
        events = [kernel(10 * k, 5, name="C:BACKSLASHcuda.py", correlation=k) for k in range(count)]
        text = json.dumps(document(events), indent=0).replace("BACKSLASH", "\\")
        path = _text(tmp_path / f"repairs_{count}.json", text)
        begun = time.process_time()
        report = report_on(path)
        assert _finding(report, "json.string.repaired").count == count
        return time.process_time() - begun

    take(10)

    assert take(10_000) < 15 * max(take(1_000), 0.1)


def test_a_cut_is_told_with_its_line(tmp_path: Path) -> None:
    text = json.dumps(document(steps(3)), indent=1)
    cut = text[: text.rindex('"dur"')]

    finding = _finding(report_on(_text(tmp_path / "rank0.json", cut)), "json.cut")

    assert finding.example.line == cut.count("\n") + 1
    assert finding.example.byte == len(cut)


# ------------------------------------------------------------------------------------------------------- names


def test_a_name_of_a_megabyte_is_cut_and_stays_apart_from_its_like(tmp_path: Path) -> None:
    names = ["n" * 1_000_000 + end for end in "ab"]
    events = [kernel(100 * k, 50, name=name, correlation=k + 1) for k, name in enumerate(names)]

    report = report_on(write(tmp_path / "rank0.json", events))

    shown = [row.name for row in report.ranks[0].top.kernels]
    assert len(set(shown)) == 2
    assert all(len(name) < 17_000 and "1,000,001 characters" in name for name in shown)


def test_the_names_of_threads_and_devices_are_bounded_and_harmless(tmp_path: Path) -> None:
    name = {
        "ph": "M",
        "name": "thread_name",
        "pid": 4200,
        "tid": 4200,
        "ts": 0,
        "args": {"name": "\x1b[31m" + "t" * 9999},
    }

    report = report_on(
        write(tmp_path / "rank0.json", [name, *steps(3)], deviceProperties=[{"id": 0, "name": "\x1b[31m" + "d" * 9999}])
    )

    assert report.ranks[0].device_name.startswith("\\x1b[31mddd")
    assert len(report.ranks[0].device_name) == 128
    assert {gap.thread[:11] for gap in report.ranks[0].top.gaps} == {"\\x1b[31mttt"}
    check_report(report)


# --------------------------------------------------------------------------------------------------- findings


def test_a_finding_of_the_reader_limits_the_figures_of_its_rank(tmp_path: Path) -> None:
    events = _in_epoch(steps(3))
    events[2] |= {"ts": 0.0, "dur": 0.0}

    report = report_on(write(tmp_path / "rank0.json", events, baseTimeNanoseconds=None))

    finding = _finding(report, "kernel.time.missing")
    assert finding.rank == 0
    assert finding.voids == ["/ranks/0/ledger/device/idle_ns", "/ranks/0/device_span/idle_ns"]
    assert finding.message.endswith("2 of 3 device spans have a time")


def test_a_run_of_thousands_of_units_takes_time_in_proportion(tmp_path: Path) -> None:
    def take(count: int) -> float:
        path = write(tmp_path / f"{count}.json", steps(count))
        begun = time.process_time()
        assert report_on(path).unit.count == count
        return time.process_time() - begun

    take(10)

    assert take(4000) < 15 * max(take(400), 0.1)
