"""Files that processes left in disorder: what is whole stands, and the rest is counted and said."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from longpole.errors import InputError, NotATraceError
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import build_report
from tests.span_scripts import MS, SpanScript, report_of, timelines

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.document import Report


def script() -> SpanScript:
    """Four steps of 10 ms, ended in order."""
    made = SpanScript()
    for k in range(4):
        made.span("train", 10 * k, 10 * k + 8, "compute")
        made.unit(f"step {k}", 10 * k, 10 * (k + 1))
    made.close(40)
    return made


def codes(report: Report) -> dict[str, int]:
    return {f.code: f.count for f in report.integrity if f.code.startswith(("spans.", "event.", "file."))}


def report_on(path: Path, data: bytes) -> Report:
    path.write_bytes(data)
    return report_of(path)


def test_a_file_in_order_has_no_finding(tmp_path: Path) -> None:
    report = report_on(tmp_path / "a.spans.jsonl", script().encoded())

    assert codes(report) == {}
    assert report.unit.count == 4


def test_a_killed_process_leaves_everything_up_to_its_last_whole_line(tmp_path: Path) -> None:
    """The last but one line, the unit of step 3, is cut in two: step 3 becomes tail."""
    lines = script().encoded().splitlines(keepends=True)
    cut = b"".join(lines[:-2]) + lines[-2][:20]

    report = report_on(tmp_path / "a.spans.jsonl", cut)

    assert report.unit.count == 3
    assert report.ranks[0].tail_ns == 8 * MS
    assert codes(report) == {"spans.cut": 1}
    found = next(found for found in report.integrity if found.code == "spans.cut")
    assert found.example.byte == len(b"".join(lines[:-2]))


@pytest.mark.parametrize("cut", range(0, 700, 37))
def test_wherever_a_file_is_cut_it_is_read_or_refused_for_want_of_a_line(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "a.spans.jsonl"
    whole = script().encoded()
    path.write_bytes(whole[:cut])

    if cut < len(whole.splitlines(keepends=True)[1]) + whole.index(b"\n") + 1:  # no line behind the header is whole
        with pytest.raises(InputError, match=r"header|recorded nothing|empty file"):
            report_of(path)
    else:
        assert report_of(path).ranks[0].recorded_ns > 0


def test_lines_that_are_no_json_cost_only_themselves(tmp_path: Path) -> None:
    lines = script().encoded().splitlines(keepends=True)
    lines.insert(3, b'{"k": "span", "n": "half\n')
    lines.insert(5, b"\x00\xff\n")

    report = report_on(tmp_path / "a.spans.jsonl", b"".join(lines))

    assert codes(report) == {"spans.unreadable": 2}
    assert report.ledger.objects["compute"].exposed_ns == 8 * MS


def test_lines_of_a_later_version_are_left_out_and_counted(tmp_path: Path) -> None:
    data = script().encoded() + b'{"k": "power", "watts": 300}\n'

    assert codes(report_on(tmp_path / "a.spans.jsonl", data)) == {"spans.unknown_lines": 1}


def test_lost_lines_limit_what_the_host_is_said_to_have_done(tmp_path: Path) -> None:
    made = script()
    made.lost(120)

    report = report_on(tmp_path / "a.spans.jsonl", made.encoded())

    found = next(found for found in report.integrity if found.code == "spans.lost")
    assert found.count == 120
    assert found.voids == ["/ranks/0/ledger/idle_ns/host.python"]


@pytest.mark.parametrize("start_ns", [0, 1 << 61, (1 << 62)])
def test_a_span_of_another_age_is_left_out(start_ns: int, tmp_path: Path) -> None:
    line = b'{"k":"span","n":"save","s":%d,"d":1000,"t":1,"o":"output"}\n' % start_ns

    report = report_on(tmp_path / "a.spans.jsonl", script().encoded() + line)

    assert codes(report) == {"event.time.stray": 1}
    assert report.ranks[0].recorded_ns == 40 * MS


def test_a_packed_file_is_read_like_a_plain_one(tmp_path: Path) -> None:
    report = report_on(tmp_path / "a.spans.jsonl.gz", gzip.compress(script().encoded()))

    assert report.unit.count == 4


def test_another_version_is_refused_by_its_name(tmp_path: Path) -> None:
    data = script().encoded().replace(b"longpole.spans/1", b"longpole.spans/2", 1)

    with pytest.raises(InputError, match=r"longpole\.spans/2"):
        report_on(tmp_path / "a.spans.jsonl", data)


def test_a_file_that_only_is_called_so_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotATraceError, match="header"):
        report_on(tmp_path / "a.spans.jsonl", b'{"step": 1}\n')


def test_a_process_that_recorded_nothing_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="recorded nothing"):
        report_on(tmp_path / "a.spans.jsonl", SpanScript().encoded())


def test_one_unreadable_file_costs_only_itself(tmp_path: Path) -> None:
    script().write(tmp_path / "main.spans.jsonl")
    (tmp_path / "worker.spans.jsonl").write_bytes(b"\x00" * 100)

    report = report_of(tmp_path)

    assert report.unit.count == 4
    assert codes(report) == {"file.refused": 1}


def test_a_wall_clock_that_was_set_changes_no_figure_and_is_said() -> None:
    made = script()
    made.clock(20, wall_moved_ms=7_200_000)

    (timeline,) = timelines(made)

    assert [(f.code, f.severity) for f in timeline.findings] == [("spans.clock", "note")]


def test_a_workers_file_without_a_closing_line_is_no_finding() -> None:
    worker = SpanScript(pid=11, role="loader_worker", parent_pid=10)
    worker.span("load", 1, 5, "input")

    (timeline,) = timelines(script(), worker)

    assert timeline.findings == ()


def test_names_from_a_file_reach_no_terminal_as_control_characters() -> None:
    made = SpanScript()
    made.span("a\x1b[31mb", 0, 5, "compute")

    (timeline,) = timelines(made)

    assert timeline.names == ("a\\x1b[31mb",)


def test_credentials_in_names_and_environment_are_taken_out() -> None:
    made = SpanScript(environment={"torch_version": "2.13.0", "url": "https://me:secret99@host/x", "list": ["no"]})
    made.span("get https://me:secret99@host/x", 0, 5, "input")

    (timeline,) = timelines(made)

    assert "secret99" not in f"{timeline.names}{timeline.environment}"
    assert timeline.environment["torch_version"] == "2.13.0"
    assert "list" not in timeline.environment


def test_an_empty_folder_says_what_would_be_read(tmp_path: Path) -> None:
    with pytest.raises(NotATraceError, match="span files of the recorder"):
        build_report([str(tmp_path)], ReportOptions(use_cache=False))
