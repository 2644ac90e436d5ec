"""Findings and candidates of a report as Polars frames, with the same columns whether there are any or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longpole.records.findings import Place

if TYPE_CHECKING:
    import polars as pl

    from longpole.records.findings import CandidateEntry, CauseFinding
    from longpole.report.document import Report


def findings_frame(report: Report) -> pl.DataFrame:
    """Return a row for each finding, the most costly first."""
    import polars as pl

    texts, numbers = pl.List(pl.String), pl.List(pl.Int64)
    schema: dict[str, Any] = {
        "id": pl.String,
        "long_pole": pl.Boolean,
        "cause": pl.String,
        "object": pl.String,
        "stage": pl.String,
        "ranks": numbers,
        "units": texts,
        "cost_ns_per_unit": pl.Int64,
        "cost_between_ns": numbers,
        "cost_statistic": pl.String,
        "cost_share": pl.Float64,
        "basis": pl.String,
        "ceiling_ns": pl.Int64,
        "once": pl.Boolean,
        "cost_once_ns": pl.Int64,
        "evidence_grade": pl.String,
        "rests_on": pl.Float64,
        "says": pl.String,
        "what_if": texts,
        "page": pl.String,
        "at_rank": pl.Int64,
        "at_name": pl.String,
        "at_track": pl.String,
        "start_ns": pl.Int64,
    }
    return pl.DataFrame([_finding_row(report, finding) for finding in report.findings], schema=schema)


def candidates_frame(report: Report) -> pl.DataFrame:
    """Return a row for each change worth trying; null where a figure is not known."""
    import polars as pl

    texts = pl.List(pl.String)
    schema: dict[str, Any] = {
        "id": pl.String,
        "object": pl.String,
        "stage": pl.String,
        "says": pl.String,
        "predicted_period_ns": pl.Int64,
        "predicted_gain_share": pl.Float64,
        "ceiling_ns": pl.Int64,
        "error_share": pl.Float64,
        "refused": pl.String,
        "effort": pl.String,
        "costs": texts,
        "because": texts,
        "findings": texts,
        "must_record": texts,
        "missing": texts,
        "proved_by": texts,
        "cannot_replace": pl.String,
        "assumptions": texts,
        "changes": texts,
        "command": pl.String,
        "part": pl.String,
        "references": texts,
        "check_with": texts,
    }
    return pl.DataFrame([_candidate_row(entry, schema) for entry in report.candidates], schema=schema)


def _finding_row(report: Report, finding: CauseFinding) -> dict[str, Any]:
    import msgspec

    row = msgspec.structs.asdict(finding)
    evidence = row.pop("evidence")
    # Sums have no place of their own: the first row that a viewer can show is where to look.
    place = next((one.where for one in evidence if one.where.start_ns is not None), Place())
    row |= {"at_rank": place.rank, "at_name": place.name or None, "at_track": place.track or None}
    return row | {"start_ns": place.start_ns, "long_pole": finding.id == report.long_pole}


def _candidate_row(entry: CandidateEntry, columns: dict[str, Any]) -> dict[str, Any]:
    from longpole.records.ledger import Unknown

    values = {name: getattr(entry, name) for name in columns}
    return {name: None if isinstance(value, Unknown) else value for name, value in values.items()}
