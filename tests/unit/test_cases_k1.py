"""Odd and broken inputs (K1): the expected values of every case, and the behaviour that no value states."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from longpole.errors import NotATraceError, TwoWritersError
from longpole.report.text.page import render_text
from tests.case_answers import ANSWERS, CASES, LATER_EVERYWHERE, LATER_OF_CASE, NOT_KINETO, Case, later, ns
from tests.laws import check_refusal, check_report, check_rungs, refusal_of, report_on

get_case = functools.cache(Case)


def _values(kind: str) -> list[tuple[str, str, Any]]:
    rows = []
    for path in sorted(CASES.glob("B*/expected.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["kind"] == kind:
            rows += [(document["id"], key, value) for key, value in document["values"].items()]
    return rows


K1 = _values("K1")
REFUSED = {"B011", "B015", "B035"} | set(NOT_KINETO)
REPORTED = sorted({case for case, _, _ in K1} - REFUSED)


@pytest.mark.parametrize(("case", "key", "want"), [row for row in K1 if later(*row[:2]) is None])
def test_an_expected_value_comes_out(case: str, key: str, want: Any) -> None:
    ANSWERS[key](get_case(case), want)


def test_every_value_that_waits_for_a_later_part_exists() -> None:
    values = {(case, key) for kind in ("K1", "K2") for case, key, _ in _values(kind)}

    assert {(case, key) for case, keys in LATER_OF_CASE.items() for key in keys} <= values
    assert set(LATER_EVERYWHERE) <= {key for _, key in values}


@pytest.mark.parametrize("case", REPORTED)
def test_all_laws_hold(case: str) -> None:
    report = get_case(case).report

    check_report(report)
    for row in report.ranks:
        check_rungs(row.ledger)


@pytest.mark.parametrize(("case", "what"), [row for row in NOT_KINETO.items() if row[0] != "B090"])
def test_a_file_of_another_kind_is_named(case: str, what: str) -> None:
    folder = get_case(case).input
    file = folder if folder.is_file() else sorted(folder.iterdir())[0]

    error = refusal_of(file)

    assert isinstance(error, NotATraceError)
    assert what in str(error)
    check_refusal(error, file.name)


@pytest.mark.parametrize("case", ["B015"])
def test_a_folder_with_nothing_but_another_kind_says_which(case: str) -> None:
    error = refusal_of(CASES / case)

    assert isinstance(error, NotATraceError)
    assert NOT_KINETO[case] in str(error)
    check_refusal(error, case)


def test_b001_a_name_that_decoded_into_white_space_shows_the_backslash_form() -> None:
    names = get_case("B001").timeline.names

    assert not [name for name in names if "\n" in name or "\t" in name]
    assert "C:\\new\\table\\util.py(5): f" in names


def test_b003_names_with_control_characters_keep_their_letters() -> None:
    report = get_case("B003").report

    names = [kernel.name for kernel in report.ranks[0].top.kernels]
    assert all(name.isprintable() for name in names)
    assert report.integrity[-1].code == "json.control_character"
    assert any("\\x01" in name for name in names)
    assert any("\\t" in name for name in names)


def test_b007_the_cut_list_is_marked_at_its_event() -> None:
    case = get_case("B007")

    (finding,) = [finding for finding in case.report.integrity if finding.code == "json.list.cut"]

    assert finding.count == 1
    assert finding.example.byte is not None
    text = case.input.read_bytes()
    assert text[finding.example.byte :].startswith(b'{"ph": "X", "cat": "cpu_op", "name": "record_param_comms"')


def test_b008_a_cut_file_says_where() -> None:
    case = get_case("B008")

    (finding,) = [finding for finding in case.report.integrity if finding.code == "json.cut"]

    assert finding.severity == "warn"
    assert finding.example.byte == case.input.stat().st_size
    assert finding.example.line == case.input.read_bytes().count(b"\n") + 1


def test_b009_an_open_array_draws_nothing_stronger_than_a_note() -> None:
    assert {finding.severity for finding in get_case("B009").report.integrity} <= {"note"}


def test_b011_two_writers_are_refused_with_the_byte_where_it_breaks() -> None:
    file = get_case("B011").input

    error = refusal_of(file)

    assert isinstance(error, TwoWritersError)
    assert "damaged, looks like two writers" in str(error)
    assert ", byte " in str(error)
    check_refusal(error, file.name)


def test_b054_launches_without_a_table_of_kernels_give_no_share_of_the_device() -> None:
    report = get_case("B054").report

    (finding,) = [finding for finding in report.integrity if finding.code == "launch.without_kernel"]
    assert "5 launches, and kernel activity was not recorded" in finding.message
    assert report.ranks[0].device == "cpu"
    assert report.long_pole is None


def test_b014_a_nameless_event_keeps_its_empty_name() -> None:
    assert "" in [kernel.name for kernel in get_case("B014").row.top.kernels]


@pytest.mark.parametrize("at", ["/ranks/0/ledger/device/idle_ns", "/ranks/0/device_span/idle_ns"])
def test_b017_idle_figures_carry_the_warning_that_kernels_have_no_time(at: str) -> None:
    report = get_case("B017").report

    whys = [entry.why for entry in report.unknown if entry.at == at]

    assert [why for why in whys if "kernel.time.missing" in why and "6 of 12 device spans have a time" in why]


def test_b019_the_flagged_kernel_is_named_with_its_event() -> None:
    case = get_case("B019")

    (finding,) = [finding for finding in case.report.integrity if finding.code == "kernel.duration.impossible"]

    events = json.loads(case.input.read_text(encoding="utf-8"))["traceEvents"]
    assert finding.example.event is not None
    assert events[finding.example.event]["dur"] > 1e12


def test_b020_the_ranking_is_headed_by_the_two_kernels() -> None:
    rows = get_case("B020").row.top.kernels

    assert [row.object for row in rows[:2]] == ["compute", "compute"]
    assert rows[0].sum_ns >= rows[1].sum_ns > rows[2].sum_ns


def test_b022_no_kernel_is_dropped_and_none_is_negative() -> None:
    device = get_case("B022").timeline.device

    assert len(device) == 1000
    assert int((device.end_ns - device.start_ns).min()) == int((device.end_ns - device.start_ns).max()) == ns(0.3)


def test_b025_the_units_of_both_ranks_lie_on_one_clock() -> None:
    report = get_case("B025").report

    ends_ns = [row.units[-1].start_ns + row.units[-1].wall_ns for row in report.ranks]
    assert len(set(ends_ns)) == 1
    assert [clock.method for clock in report.clock] == ["base_time", "base_time"]


def test_b027_early_kernels_are_clock_skew_and_save_nothing() -> None:
    (finding,) = [f for f in get_case("B027").report.integrity if f.code == "kernel.before_launch"]

    assert "8.30 µs" in finding.message
    assert "clock" in finding.message


def test_b028_frames_closed_by_the_stop_are_parents_of_nothing() -> None:
    case = get_case("B028")

    placed = {case.timeline.names[code] for code in case.timeline.host.name.tolist()}

    assert not [name for name in placed if name.startswith("<built-in")]
    assert not [gap for gap in case.row.top.gaps if any("<built-in" in frame for frame in gap.stack)]


def test_b031_idle_time_is_given_for_the_covered_part_only() -> None:
    case = get_case("B031")

    missing = [unit for unit in case.row.units if not unit.steady and unit.kind not in ("head", "tail")]

    assert len(missing) == 4
    assert case.row.units[:4] == missing
    assert all(unit.exposed_ns["unknown"] == unit.wall_ns for unit in missing)
    assert case.report.ledger.device.compute_ns == ns(100)
    assert "/ranks/0/ledger/device/idle_ns" in [entry.at for entry in case.report.unknown]


@pytest.mark.parametrize("name", ["hosta_21001.1718000000264.pt.trace.json", "hostb_21002.1718000000311.pt.trace.json"])
def test_b034_either_file_without_a_rank_works_alone(name: str) -> None:
    report = report_on(get_case("B034").input / name)

    assert report.run.ranks_present == [0]
    assert report.run.ranks_assumed
    assert "rank.assumed" in [finding.code for finding in report.integrity]


def test_b035_a_folder_without_any_timed_event_lists_what_each_file_lacks() -> None:
    error = refusal_of(get_case("B035").input)

    assert error is not None
    assert error.exit_code == 3
    assert str(error).count("no timed events") == 2
    assert "%" not in str(error)


def test_b036_a_record_without_steps_says_so() -> None:
    page = render_text(get_case("B036").report, width=100, color=False)

    assert "no steps marked, so the whole record is one unit" in page


def test_b038_the_equal_kernel_on_the_other_stream_stays() -> None:
    device = get_case("B038").timeline.device

    assert sorted(device.stream.tolist()) == [7, 7, 7, 7, 8]


def test_b040_correlation_ids_are_looked_up_inside_one_rank() -> None:
    for timeline in get_case("B040").timelines:
        pids = {timeline.tracks[track].pid for track in timeline.host.track.tolist()}
        assert len(pids) == 1
        launched_from = timeline.host.track[timeline.device.launch]
        assert {timeline.tracks[track].pid for track in launched_from.tolist()} == pids


def test_b041_one_of_four_ranks_stands_before_anything_else() -> None:
    page = render_text(get_case("B041").report, width=100, color=False)

    assert page.startswith("1 of 4 ranks")
    (finding,) = get_case("B041").report.integrity
    assert finding.message.startswith("1 of 4 ranks present")
    assert "transfer plus waiting, which cannot be split" in finding.message


def test_b046_synchronisation_rows_are_kept_aside() -> None:
    timeline = get_case("B046").timeline

    assert len(timeline.device) == 1
    assert len(timeline.aside) == 3


def test_b051_the_parts_of_a_collective_are_not_added_to_it() -> None:
    case = get_case("B051")

    assert [kernel.name for kernel in case.row.top.kernels if kernel.object == "collective"]
    assert not [kernel for kernel in case.row.top.kernels if "Notify" in kernel.name]
    assert {finding.severity for finding in case.report.integrity} <= {"note"}
