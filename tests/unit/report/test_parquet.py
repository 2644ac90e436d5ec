"""The tables as Parquet files: the same figures as in CSV files, with types, and null for what is not known."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pytest

from longpole.report.csv import render_csv
from longpole.report.parquet import render_parquet
from tests.report_builder import SAMPLES, make_ledger, make_report, make_row

if TYPE_CHECKING:
    import polars as pl

    from longpole.report.document import Report


def read_all(report: Report) -> dict[str, pl.DataFrame]:
    import polars as pl

    return {name: pl.read_parquet(io.BytesIO(data)) for name, data in render_parquet(report).items()}


def read(report: Report, name: str) -> pl.DataFrame:
    return read_all(report)[name]


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_cell_is_that_of_the_csv_table(sample: str) -> None:
    report = SAMPLES[sample]()
    tables = {name.removesuffix(".csv"): text for name, text in render_csv(report).items()}
    frames = read_all(report)
    assert [f"{name}.parquet" for name in tables] == list(frames)

    for name, text in tables.items():
        header, *rows = csv.reader(io.StringIO(text))
        frame = frames[f"{name}.parquet"]
        assert frame.columns == header, name
        assert [[_as_text(value) for value in row] for row in frame.iter_rows()] == [
            [cell.removeprefix("'") for cell in row] for row in rows
        ], name


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def test_types_do_not_depend_on_what_a_run_holds() -> None:
    """Tables of several runs can be put below each other, also where one has no rows or knows less."""
    full = read_all(SAMPLES["typical"]())
    bare = read_all(make_report([make_row(0, [make_ledger({"compute": 1}, {})])]))

    for name, frame in full.items():
        assert bare[name].schema == frame.schema, name


def test_a_time_is_an_integer_and_a_share_a_float() -> None:
    import polars as pl

    schema = read(SAMPLES["typical"](), "kernels.parquet").schema
    assert [schema[name] for name in ("sum_ns", "share", "name")] == [pl.Int64(), pl.Float64(), pl.String()]
    assert read(SAMPLES["typical"](), "units.parquet").schema["steady"] == pl.Boolean()


def test_what_is_not_known_is_null_and_says_why() -> None:
    rows = read(SAMPLES["typical"](), "ledger.parquet").rows(named=True)
    by_object = {row["object"]: row for row in rows if row["rank"] == 0}

    assert by_object["input"]["service_ns"] is None
    assert "worker processes" in by_object["input"]["service_unknown"]
    assert by_object["compute"]["service_unknown"] is None
    assert sum(row["exposed_ns"] for row in by_object.values()) == SAMPLES["typical"]().ranks[0].ledger.wall_ns


def test_a_formula_stays_a_name_and_control_characters_are_shown() -> None:
    name = "=HYPERLINK(1)\x1b[2J"
    row = make_row(0, [make_ledger({"compute": 1}, {})])
    row.host, row.device = "h", name

    assert set(read(make_report([row]), "ledger.parquet")["device"]) == {"=HYPERLINK(1)\\x1b[2J"}
