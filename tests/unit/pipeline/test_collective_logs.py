"""Logs as records: the kind, the ranks and the setting of each test, and what a wrong result withdraws."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from longpole.bench.collectives.fits import predict_ns
from longpole.errors import InputError, UsageError
from longpole.pipeline.bench_collectives import read_collectives
from longpole.ranks.cost_model import bus_factor
from longpole.records.bench_collectives_file import encode_collectives
from longpole.records.ledger import Unknown
from longpole.records.nccl_log import LoggedRow, LoggedSide, LoggedTest
from tests.nccl_logs import DEVICE, render_json, render_text

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.records.bench_collectives import CollectivesRecord

SIZES = tuple(1 << exponent for exponent in range(10, 29, 2))


def made_test(
    kind: str = "all_reduce", ranks: int = 8, program: str = "all_reduce_perf", slower: float = 1.0
) -> LoggedTest:
    """A test of a link of 100 GB/s and 20 µs, all results right."""
    factor = bus_factor(kind, ranks) or 0.0
    rows = []
    for size in SIZES:
        time_us = round(predict_ns(20_000, 0.0, 100.0, size) * slower / 1000, 2)
        rate = size / time_us / 1000
        side = LoggedSide(time_us, round(rate, 2), round(rate * factor, 2), 0)
        redop = "sum" if kind in ("all_reduce", "reduce_scatter") else "none"
        rows.append(LoggedRow(size, size // 4, "float", redop, -1, side, side))
    return LoggedTest(program, ranks, 1, [DEVICE], 20, 5, out_of_bounds=0, busbw=50.0, version="22807", rows=rows)


def _read(tmp_path: Path, text: str, name: str = "a.log", kind: str | None = None) -> CollectivesRecord:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_collectives([str(path)], kind=kind)


def test_text_and_json_of_one_test_are_one_record(tmp_path: Path) -> None:
    of_text, of_json = _read(tmp_path, render_text(made_test())), _read(tmp_path, render_json(made_test()), "a.json")

    assert of_text.points == of_json.points
    assert (of_text.machine, of_text.fits) == (of_json.machine, of_json.fits)
    (fit,) = of_text.fits
    assert fit.alpha_ns == pytest.approx(20_000, rel=0.02)
    assert fit.gb_per_s == pytest.approx(100.0, rel=0.02)
    assert (of_text.machine.device, of_text.machine.nodes, of_text.status) == (DEVICE, 1, "passed")


def test_a_wrong_row_is_invalid_and_the_others_are_not(tmp_path: Path) -> None:
    test = made_test()
    bad = dataclasses.replace(test.rows[3].out_of_place, wrong=7)  # type: ignore[type-var]  # there is one
    test.rows[3] = dataclasses.replace(test.rows[3], out_of_place=bad)

    record = _read(tmp_path, render_text(test))

    wrong = [point for point in record.points if point.correctness == "failed"]
    assert [(point.bytes, point.placement, point.wrong) for point in wrong] == [(SIZES[3], "out_of_place", 7)]
    assert isinstance(wrong[0].time_ns, Unknown)
    assert record.status == "invalid"
    assert record.fits[0].sizes == len(SIZES) - 1


def test_a_foot_that_says_wrong_where_no_row_does_withdraws_all(tmp_path: Path) -> None:
    """Old tables give errors instead of counts, so that nothing says which row it was."""
    test = dataclasses.replace(made_test(), out_of_bounds=3)

    record = _read(tmp_path, render_text(test, old=True), "all_reduce.log")

    assert {point.correctness for point in record.points} == {"failed"}


@pytest.mark.parametrize(
    ("kind", "program", "name", "given"),
    [
        ("all_reduce", "all_reduce_perf", "x.log", None),
        ("all_to_all", "alltoall_perf", "x.log", None),
        ("send_recv", "sendrecv_perf", "x.log", None),
        ("reduce_scatter", "", "nccl_reducescatter.log", None),
        ("all_gather", "", "x.log", "all_gather"),
        ("all_reduce", "", "x.log", None),
        ("reduce_scatter", "", "x.log", None),
    ],
)
def test_the_kind_is_found_out(tmp_path: Path, kind: str, program: str, name: str, given: str | None) -> None:
    record = _read(tmp_path, render_text(made_test(kind, 8, program)), name, given)

    assert {point.kind for point in record.points} == {kind}


def test_a_kind_that_cannot_be_told_is_asked_for(tmp_path: Path) -> None:
    """An all-gather and an all-to-all have the same columns and the same ratio of rates."""
    with pytest.raises(InputError, match="say it: --kinds NAME"):
        _read(tmp_path, render_text(made_test("all_gather", 8, "")), "x.log")


def test_ranks_that_no_line_gives_are_read_off_the_rates(tmp_path: Path) -> None:
    lines = [line for line in render_text(made_test()).splitlines() if "Rank" not in line]

    record = _read(tmp_path, "\n".join(lines))

    assert {point.ranks for point in record.points} == {8}


def test_rates_that_contradict_the_kind_are_complained_of(tmp_path: Path) -> None:
    record = _read(tmp_path, render_text(made_test("all_gather", 8, "all_reduce_perf")))

    assert any("kind or ranks may be wrong" in complaint for complaint in record.sources[0].complaints)


def test_logs_under_two_settings_are_compared(tmp_path: Path) -> None:
    paths = []
    for place in range(3):
        for setting, share in (("", 1.0), ("NCCL_PROTO=LL", 0.5)):
            test = made_test(slower=share * (1 + place / 500))
            path = tmp_path / f"{place}{setting[-2:]}.json"
            path.write_text(render_json(test, env=(setting,) if setting else ()), encoding="utf-8")
            paths.append(str(path))

    record = read_collectives(paths)

    assert {setting.name for setting in record.settings} == {"default", "NCCL_PROTO=LL"}
    assert [(band.setting, round(band.gain_high, 1)) for band in record.best] == [("NCCL_PROTO=LL", 2.0)]


def test_a_record_of_ours_is_read_back(tmp_path: Path) -> None:
    record = _read(tmp_path, render_text(made_test()))
    path = tmp_path / "record.json"
    path.write_bytes(encode_collectives(record))

    assert read_collectives([str(path)]) == record


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"loss 0.3\n", "neither a table of nccl-tests"),
        (b'{"schema": "longpole.bench-collectives/2"}', "expected 'longpole.bench-collectives/1'"),
        (b'{"schema": "longpole.bench-collectives/1"}', "missing required field"),
        (b'{"schema": "longpole.bench-collectives/1", ', "not JSON"),
        (b"", "empty"),
    ],
)
def test_what_is_neither_is_refused_with_its_name(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "odd.txt"
    path.write_bytes(content)

    with pytest.raises(InputError, match=says) as raised:
        read_collectives([str(path)])
    assert "odd.txt" in str(raised.value)


def test_records_are_not_mixed_with_logs(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(encode_collectives(_read(tmp_path, render_text(made_test()))))

    with pytest.raises(UsageError, match="expected one record"):
        read_collectives([str(tmp_path)])
    with pytest.raises(UsageError, match="no such file"):
        read_collectives([str(tmp_path / "none.log")])


def test_real_logs_of_eight_devices_are_read_and_fitted(corpus: Path) -> None:
    """Recorded with nccl-tests 2.10 on eight A100: no program, no root, errors not checked, NCCL's lines between."""
    folder = corpus / "microsoft-superbenchmark" / "tests_data"
    record = read_collectives([str(path) for path in sorted(folder.glob("nccl_*.log"))])

    by_kind = {fit.kind: fit for fit in record.fits}
    assert set(by_kind) == {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "reduce"}
    for fit in by_kind.values():
        assert fit.why_none == ""
        assert fit.error_median is not None
        assert fit.error_median < 0.1
    assert {point.ranks for point in record.points} == {8}
    assert {point.correctness for point in record.points} == {"not_checked"}
    largest = max((p for p in record.points if p.kind == "all_reduce"), key=lambda p: p.bytes)
    assert largest.busbw_gb_per_s == pytest.approx(235.1, rel=0.001)  # as the log prints it
