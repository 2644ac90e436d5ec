"""Findings and candidates as tables of the library."""

from __future__ import annotations

import polars as pl
import pytest

import longpole
from longpole.pipeline.diagnosis_frames import candidates_frame, findings_frame
from longpole.records.findings import Place
from tests.case_answers import CASES


@pytest.fixture(scope="module")
def readout() -> longpole.Run:
    """One rank that reads the loss out in every step (6.008 ms)."""
    return longpole.open(CASES / "B062" / "input.json", use_cache=False)


def test_findings_are_rows_and_one_of_them_is_the_long_pole(readout: longpole.Run) -> None:
    table = readout.findings().frame

    (pole,) = table.filter("long_pole").to_dicts()
    assert (pole["cause"], pole["object"], pole["ranks"], pole["basis"]) == ("host_sync", "host", [0], "replay")
    assert pole["cost_ns_per_unit"] == pytest.approx(6_008_000, rel=0.01)
    assert table["cost_ns_per_unit"].to_list() == sorted(table["cost_ns_per_unit"].to_list(), reverse=True)


def test_a_finding_says_where_to_look(readout: longpole.Run) -> None:
    (pole,) = readout.findings().frame.filter("long_pole").to_dicts()
    places = [row.where for row in readout.report().findings[0].evidence]

    assert Place(pole["at_rank"], pole["at_name"], pole["start_ns"], pole["at_track"]) in [
        Place(place.rank, place.name, place.start_ns, place.track) for place in places
    ]


def test_candidates_are_rows_with_null_for_what_is_not_known(readout: longpole.Run) -> None:
    frame, entries = readout.candidates().frame, readout.report().candidates

    assert frame["id"].to_list() == [entry.id for entry in entries]
    for row, entry in zip(frame.to_dicts(), entries, strict=True):
        known = isinstance(entry.predicted_gain_share, float)
        assert row["predicted_gain_share"] == (entry.predicted_gain_share if known else None)
        assert bool(row["refused"]) == bool(entry.refused)
        assert row["must_record"] == entry.must_record
    assert frame["predicted_gain_share"].count() > 0
    assert frame["error_share"].dtype == pl.Float64


def test_every_field_but_evidence_is_a_column(readout: longpole.Run) -> None:
    report = readout.report()

    fields = set(report.findings[0].__struct_fields__) - {"evidence"}
    assert fields <= set(readout.findings().frame.columns)
    assert set(report.candidates[0].__struct_fields__) == set(readout.candidates().frame.columns)


def test_a_run_without_any_has_the_same_columns(readout: longpole.Run) -> None:
    bare = longpole.open(CASES / "B062" / "input.json", use_cache=False).report()
    bare.findings, bare.candidates = [], []

    assert findings_frame(bare).schema == readout.findings().frame.schema
    assert candidates_frame(bare).schema == readout.candidates().frame.schema
    assert len(findings_frame(bare)) == len(candidates_frame(bare)) == 0


def test_without_a_verdict_no_row_is_the_long_pole() -> None:
    run = longpole.open(CASES / "B085" / "input.json", use_cache=False)

    assert run.findings().frame.select("cause", "long_pole").rows() == [("unknown_incomplete_trace", False)]
    assert [entry.at for entry in run.report().unknown if entry.at == "/long_pole"] == ["/long_pole"]
