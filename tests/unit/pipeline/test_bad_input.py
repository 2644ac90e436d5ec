"""Paths, folders and options that cannot be used as they are: one clear sentence, and no rank sinks the others."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from longpole.errors import InputError, LongpoleError, NotATraceError, UsageError
from longpole.pipeline.reading import ReportOptions
from longpole.report.text.page import render_text
from tests.laws import check_listing, check_refusal, check_report, report_on
from tests.trace_text import BASE_NS, annotation, call, document, kernel, steps, write

if TYPE_CHECKING:
    from longpole.report.document import Report
    from longpole.timeline.integrity import Finding

PATTERNED = "profile_trace_rank_{rank}.json"


def _options(**chosen: Any) -> ReportOptions:
    return ReportOptions(use_cache=False, processes=1, **chosen)


def _error(*paths: Path | str, **chosen: Any) -> LongpoleError:
    with pytest.raises(LongpoleError) as caught:
        report_on(*paths, options=_options(**chosen))
    return caught.value


def _ranks(folder: Path, count: int, world_size: int | None = None) -> None:
    for rank in range(count):
        write(folder / f"rank{rank}.json", steps(3), rank=rank, world_size=world_size or count)


def _finding(report: Report, code: str) -> Finding:
    (finding,) = [finding for finding in report.integrity if finding.code == code]
    return finding


# ------------------------------------------------------------------------------------------- files and folders


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    error = _error(tmp_path / "nothing.json")

    assert isinstance(error, UsageError)
    assert "there is no such file or folder" in str(error)
    check_refusal(error, "nothing.json")


def test_an_empty_folder(tmp_path: Path) -> None:
    error = _error(tmp_path)

    assert isinstance(error, NotATraceError)
    assert "it holds nothing" in str(error)
    assert "Expected JSON traces of a profiler" in str(error)
    check_refusal(error, tmp_path.name)


def test_a_folder_of_other_things_says_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)", encoding="utf-8")
    (tmp_path / "notes.md").write_text('the key "traceEvents": [ opens the list', encoding="utf-8")
    (tmp_path / "config.json").write_text('{"lr": 0.1}', encoding="utf-8")

    error = _error(tmp_path)

    assert isinstance(error, NotATraceError)
    assert "it holds 3 files (.json, .md, .py)" in str(error)
    check_refusal(error, tmp_path.name)


def test_a_folder_of_another_kind_of_record_names_the_kind(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "trace_0").write_bytes(b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}\x94.")

    error = _error(tmp_path)

    assert "dump/trace_0: this is a pickle" in str(error)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = write(tmp_path / "rank0.json", steps(2))
    path.chmod(0)

    error = _error(path)

    assert "no permission" in str(error)
    check_refusal(error, "rank0.json")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    write(tmp_path / "closed" / "rank0.json", steps(2))
    (tmp_path / "closed").chmod(0)

    try:
        error = _error(tmp_path / "closed")
    finally:
        (tmp_path / "closed").chmod(0o700)

    assert "ermission" in str(error)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_within_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    _ranks(tmp_path, 2)
    (tmp_path / "closed").mkdir(mode=0)

    try:
        report = report_on(tmp_path)
    finally:
        (tmp_path / "closed").chmod(0o700)

    assert report.run.ranks_present == [0, 1]
    assert _finding(report, "file.refused").example.file.endswith("closed")


def test_a_trace_is_found_by_its_content_whatever_its_name(tmp_path: Path) -> None:
    text = write(tmp_path / "source" / "rank0.json", steps(2)).read_bytes()
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "rank0.log").write_bytes(text)
    (tmp_path / "mixed" / "README.md").write_text('{"traceEvents": [', encoding="utf-8")
    (tmp_path / "mixed" / ".rank1.json").write_bytes(text)

    report = report_on(tmp_path / "mixed" / "rank0.log")

    assert report.run.ranks_present == [0]
    assert [source.path.rpartition("/")[2] for source in report_on(tmp_path / "mixed").run.sources] == ["rank0.log"]


def test_a_long_header_before_the_events_hides_no_trace(tmp_path: Path) -> None:
    groups = [{"pg_name": str(i), "ranks": list(range(400))} for i in range(1200)]
    write(tmp_path / "rank0.json", steps(2), distributedInfo={"rank": 0, "world_size": 1, "pg_config": groups})
    assert (tmp_path / "rank0.json").stat().st_size > 2 << 20

    assert report_on(tmp_path).run.ranks_present == [0]


def test_the_same_file_given_twice_counts_once(tmp_path: Path) -> None:
    path = write(tmp_path / "rank0.json", steps(2))
    (tmp_path / "link.json").symlink_to(path)

    report = report_on(path, tmp_path / "link.json", tmp_path, tmp_path / "*.json")

    assert len(report.run.sources) == 1


def test_a_pattern_with_brackets_names_a_file_first(tmp_path: Path) -> None:
    path = write(tmp_path / "trace[0].json", steps(2))

    assert report_on(path).run.sources[0].path == str(path)


# --------------------------------------------------------------------------------------------- one bad rank

BROKEN = {
    "an empty file": b"",
    "a gzip that breaks in its header": b"\x1f\x8b\x08\x00\x00",
    "zeros": bytes(5000),
    "no event": b'{"traceEvents": []}',
    "an archive of another kind": b"BZh91AY&SY",
    "another document": b'{"schema": "1.1.0", "nodes": []}',
}


@pytest.mark.parametrize("what", BROKEN)
def test_one_broken_rank_does_not_sink_the_others(tmp_path: Path, what: str) -> None:
    _ranks(tmp_path, 4)
    (tmp_path / "rank2.json").unlink()
    (tmp_path / "rank2.pt.trace.json").write_bytes(BROKEN[what])

    report = report_on(tmp_path)

    assert report.run.ranks_present == [0, 1, 3]
    refused = _finding(report, "file.refused")
    assert refused.severity == "warn"
    assert refused.example.file.endswith("rank2.pt.trace.json")
    assert "rank2.pt.trace.json" in refused.message
    assert _finding(report, "rank.missing").count == 1
    check_report(report)


def test_a_broken_rank_is_on_the_first_page(tmp_path: Path) -> None:
    _ranks(tmp_path, 2)
    (tmp_path / "rank1.json").write_bytes(b"\x1f\x8b\x08\x00\x00")

    page = render_text(report_on(tmp_path), width=100, color=False)

    assert page.startswith("1 of 2 ranks")
    assert "rank1.json" in page


def test_every_rank_broken_says_why_for_each(tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / f"rank{rank}.json").write_bytes(b"\x1f\x8b\x08\x00\x00")

    error = _error(tmp_path)

    assert isinstance(error, InputError)
    assert str(error).startswith("none of 3 files could be used:")
    check_listing(error, "rank")


def test_a_cut_rank_keeps_its_complete_steps(tmp_path: Path) -> None:
    _ranks(tmp_path, 2)
    text = (tmp_path / "rank1.json").read_bytes()
    (tmp_path / "rank1.json").write_bytes(text[: text.index(b"ProfilerStep#2")])

    report = report_on(tmp_path)

    assert [unit.name for unit in report.ranks[1].units if unit.kind == "step"] == ["ProfilerStep#0", "ProfilerStep#1"]
    assert _finding(report, "json.cut").rank == 1
    check_report(report)


# ------------------------------------------------------------------------------------------- ranks and runs


def test_two_jobs_in_a_folder_are_listed_and_one_can_be_chosen(tmp_path: Path) -> None:
    _ranks(tmp_path / "a", 2)
    _ranks(tmp_path / "b", 4)

    error = _error(tmp_path)

    assert isinstance(error, UsageError)
    assert str(error).startswith("2 distinct runs here; choose one with --job N")
    check_listing(error, "rank")
    assert report_on(tmp_path, options=_options(job=1)).run.world_size == 2
    assert report_on(tmp_path, options=_options(job=2)).run.world_size == 4
    assert "--job 3: there are 2 runs here" in str(_error(tmp_path, job=3))
    assert "--job 0" in str(_error(tmp_path, job=0))


def test_two_recordings_of_one_job_hours_apart_are_two_runs(tmp_path: Path) -> None:
    for name, later_ns in (("morning", 0), ("evening", 8 * 3600 * 10**9)):
        for rank in range(2):
            path = tmp_path / name / f"rank{rank}.json"
            write(path, steps(2), rank=rank, world_size=2, baseTimeNanoseconds=BASE_NS + later_ns)

    assert isinstance(_error(tmp_path), UsageError)


def test_missing_ranks_are_counted_and_named(tmp_path: Path) -> None:
    _ranks(tmp_path, 2, world_size=8)

    report = report_on(tmp_path)

    assert report.run.ranks_present == [0, 1]
    assert report.run.world_size == 8
    assert _finding(report, "rank.missing").count == 6
    assert _finding(report, "rank.missing").message.startswith("2 of 8 ranks present, missing: 2, 3, 4, 5, 6, 7")


def test_two_files_of_one_rank_are_no_two_ranks(tmp_path: Path) -> None:
    write(tmp_path / "a.json", steps(2), rank=0, world_size=2)
    write(tmp_path / "b.json", steps(3), rank=0, world_size=2)
    write(tmp_path / "c.json", steps(2), rank=1, world_size=2)

    report = report_on(tmp_path)

    assert report.run.ranks_present == [0, 1]
    assert _finding(report, "rank.duplicate").count == 1
    assert _finding(report, "rank.duplicate").example.file.endswith("b.json")


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank3.json", 3),
        ("rank-34.Jul_15_10_52_41.1074.pt.trace.json", 34),
        ("profile_trace_rank_7.json", 7),
        ("worker12_step_12.1694128201545.pt.trace.json", 12),
        ("trace-TP-3.trace.json", 3),
        ("host_r5_x.json", 5),
    ],
)
def test_the_rank_is_read_from_the_name_where_the_file_is_silent(tmp_path: Path, name: str, rank: int) -> None:
    report = report_on(write(tmp_path / name, steps(2), rank=None))

    assert report.run.ranks_present == [rank]
    assert not report.run.ranks_assumed


def test_the_file_goes_before_its_name(tmp_path: Path) -> None:
    assert report_on(write(tmp_path / "rank3.json", steps(2), rank=1, world_size=4)).run.ranks_present == [1]


def test_files_without_a_rank_get_the_free_numbers_in_order(tmp_path: Path) -> None:
    write(tmp_path / "a.json", steps(2), rank=None)
    write(tmp_path / "b.json", steps(2), rank=None)

    report = report_on(tmp_path)

    assert report.run.ranks_present == [0, 1]
    assert [source.path.rpartition("/")[2] for source in report.run.sources] == ["a.json", "b.json"]
    assert _finding(report, "rank.assumed").count == 2
    assert "rank" in render_text(report, width=100, color=False).splitlines()[0]


def test_a_merged_file_gives_each_rank_its_own_row(tmp_path: Path) -> None:
    events = [event | {"pid": f"[TP{rank:02}] {event['pid']}"} for rank in range(3) for event in steps(2)]

    report = report_on(write(tmp_path / "merged.json", events, rank=None))

    assert report.run.ranks_present == [0, 1, 2]
    assert [row.device_span.busy_ns for row in report.ranks] == [100_000] * 3
    check_report(report)


# ---------------------------------------------------------------------------------------------------- options


def test_ranks_can_be_chosen(tmp_path: Path) -> None:
    _ranks(tmp_path, 4)

    report = report_on(tmp_path, options=_options(ranks=frozenset({1, 3})))

    assert report.run.ranks_present == [1, 3]
    assert report.run.selection.ranks == [1, 3]
    error = _error(tmp_path, ranks=frozenset({7}))
    assert isinstance(error, UsageError)
    assert "none of the ranks 7 is here; there are 0, 1, 2, 3" in str(error)


def test_units_can_be_chosen(tmp_path: Path) -> None:
    path = write(tmp_path / "rank0.json", steps(10))

    report = report_on(path, options=_options(units=(3, 7)))

    names = [unit.name for unit in report.ranks[0].units if unit.kind == "step"]
    assert names == [f"ProfilerStep#{number}" for number in range(3, 8)]
    assert report.ranks[0].head_ns == 300_000
    assert report.ranks[0].ledger.wall_ns == 500_000
    check_report(report)


@pytest.mark.parametrize("units", [(70, 80), (7, 3), (None, -1)])
def test_units_that_are_not_there(tmp_path: Path, units: tuple[int | None, int | None]) -> None:
    error = _error(write(tmp_path / "rank0.json", steps(10)), units=units)

    assert isinstance(error, UsageError)
    assert "the record has 0..9" in str(error)
    assert "None" not in str(error)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [("(", "is not a regular expression"), ("nothing_is_called_so", "no host event of")],
)
def test_a_step_pattern_that_cannot_be_used(tmp_path: Path, pattern: str, said: str) -> None:
    error = _error(write(tmp_path / "rank0.json", steps(3)), step=pattern)

    assert isinstance(error, UsageError)
    assert said in str(error)
    assert "--step" in str(error)


def test_a_step_pattern_marks_units(tmp_path: Path) -> None:
    events = [annotation(100 * k, 80, f"## batch {k} ##") for k in range(4)] + [call(0, 5), kernel(10, 50)]

    report = report_on(write(tmp_path / "rank0.json", events), options=_options(step=r"## batch \d+"))

    assert [unit.name for unit in report.ranks[0].units if unit.kind == "step"] == [
        f"## batch {k} ##" for k in range(4)
    ]
    check_report(report)


@pytest.mark.parametrize("text", ["[[kernel", '[[kernel]]\nname = "mine"\n', "\xff\x00"])
def test_a_mistake_in_the_rules_fails_the_call_and_names_the_file(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "rank0.json", steps(2))
    rules = tmp_path / "mine.toml"
    rules.write_text(text, encoding="latin-1")

    error = _error(path, rules=rules)

    assert isinstance(error, UsageError)
    assert str(error).startswith(f"{rules}: ")


def test_rules_that_are_not_there(tmp_path: Path) -> None:
    error = _error(write(tmp_path / "rank0.json", steps(2)), rules=tmp_path / "none.toml")

    assert isinstance(error, UsageError)
    assert "none.toml" in str(error)


# ------------------------------------------------------------------------------------------ archives and pipes


def test_all_ranks_in_one_zip(tmp_path: Path) -> None:
    _ranks(tmp_path / "ranks", 3)
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for rank in range(3):
            archive.write(tmp_path / "ranks" / f"rank{rank}.json", f"../../job/rank{rank}.json")
        archive.writestr("notes.txt", "nothing of interest")

    named = report_on(tmp_path / "all.zip")
    (tmp_path / "folder").mkdir()
    (tmp_path / "all.zip").rename(tmp_path / "folder" / "all.zip")
    found = report_on(tmp_path / "folder")

    assert named.run.ranks_present == found.run.ranks_present == [0, 1, 2]
    assert not (tmp_path.parent / "job").exists()


def test_an_encrypted_zip_costs_only_itself(tmp_path: Path) -> None:
    _ranks(tmp_path, 2)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("rank2.json", (tmp_path / "rank0.json").read_bytes())
    locked = bytearray(packed.getvalue())
    for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(magic) + at] |= 1
    (tmp_path / "rank2.json.zip").write_bytes(bytes(locked))

    report = report_on(tmp_path)
    named = report_on(tmp_path / "rank0.json", tmp_path / "rank2.json.zip", tmp_path / "rank1.json")

    assert report.run.ranks_present == named.run.ranks_present == [0, 1]
    assert "an encrypted zip" in _finding(report, "file.refused").message
    assert "an encrypted zip" in _finding(named, "file.refused").message


@pytest.mark.parametrize("pack", ["gzip", "zip", "gzip in gzip"])
def test_a_decompression_bomb_stops_at_the_stated_bound(tmp_path: Path, pack: str) -> None:
    settings = tmp_path / "small.toml"
    settings.write_text("[settings]\nexpansion_free_bytes = 1000000\nexpansion_max_ratio = 20\n", encoding="utf-8")
    text = b'{"traceEvents": [' + b" " * 50_000_000 + b"]}"
    packed = io.BytesIO()
    if pack == "zip":
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("rank0.json", text)
    else:
        packed.write(gzip.compress(text if pack == "gzip" else gzip.compress(text)))
    path = tmp_path / "bomb.json"
    path.write_bytes(packed.getvalue())

    error = _error(path, settings=settings)

    assert "beyond the bound of 20 times what is stored plus 1,000,000 bytes" in str(error)
    assert "expansion_max_ratio" in str(error)
    check_refusal(error, "bomb.json")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from Linux's /proc")
def test_a_pipe_is_read_within_the_bound_on_memory(tmp_path: Path) -> None:
    """50 MB of events through a pipe, in a process of its own: at most 250 MB + 120 MB per million events."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    n_steps, n_kernels = 100, 400

    def fill() -> None:
        with pipe.open("w", encoding="utf-8") as file:
            file.write(json.dumps(document([]))[:-2])
            for step in range(n_steps):
                text = json.dumps(_long_step(step, n_kernels))[1:-1]
                file.write(text if step == 0 else ",\n" + text)
            file.write("]}")

    writer = threading.Thread(target=fill, daemon=True)
    writer.start()
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(pipe)], check=True, capture_output=True, text=True, timeout=120
    )
    writer.join(timeout=10)

    events, units, peak_mb = map(int, done.stdout.split())
    assert (events, units) == (n_steps * (1 + 2 * n_kernels), n_steps)
    assert peak_mb <= 250 + 120 * events / 1e6


# A process inherits the peak that getrusage reports from the one that started it; the kernel's own mark is its alone.
_MEASURE = """
import re, sys
from pathlib import Path
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import build_report
report = build_report([sys.argv[1]], ReportOptions(processes=1))
peak_kb = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
print(report.run.sources[0].events, report.unit.count, peak_kb // 1000)
"""


def _long_step(number: int, n_kernels: int) -> list[dict[str, Any]]:
    begin = number * n_kernels * 10.0
    events = [annotation(begin, n_kernels * 10.0, f"ProfilerStep#{number}")]
    for k in range(n_kernels):
        correlation = number * n_kernels + k + 1
        events.append(call(begin + 10 * k, 2, correlation=correlation))
        events.append(kernel(begin + 10 * k + 3, 8.0, correlation=correlation, note="n" * 900))
    return events
