"""hyperfine's JSON (`--export-json`): `times` holds the seconds of every run, and every run is a fresh process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longpole.readers.benchmarks.samples import record_of, seconds_of, text_of, unit_of
from longpole.records.run_record import NOT_RECORDED, RecordEnvironment, RecordProcess
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.records.run_record import RecordSource, RecordUnit, RunRecord


def read_hyperfine(document: Mapping[str, Any], source: RecordSource) -> tuple[list[RunRecord], list[str]]:
    """Return a record for each command, and a sentence for each that holds no time."""
    records, refused = [], []
    for row in document["results"]:
        name = text_of(row.get("command")) or "a command without a name"
        times = row.get("times")
        found = [seconds_of(value) for value in times] if isinstance(times, list) else []
        if not any(seconds is not None for seconds in found):
            refused.append(f"{name}: has no times; only hyperfine --export-json keeps them")
            continue
        codes, peaks = _column(row, "exit_codes"), _column(row, "memory_usage_byte")
        units: list[RecordUnit] = []
        processes: list[RecordProcess] = []
        for place, seconds in enumerate(found):
            if seconds is None:
                continue
            code = codes[place] if place < len(codes) else 0
            failure = _failure(code)
            units.append(unit_of(seconds, 1, process=place, left_out=failure))
            peak = peaks[place] if place < len(peaks) else None
            processes.append(
                RecordProcess(
                    process=place,
                    place=place,
                    exit_code=code if isinstance(code, int) else 0,
                    wall_ns=round(seconds * NS_PER_S),
                    peak_bytes=peak if isinstance(peak, int) and peak > 0 else NOT_RECORDED,
                    failure=failure,
                )
            )
        records.append(
            record_of(
                name,
                units,
                source=source,
                written_by="hyperfine",
                environment=RecordEnvironment(),
                processes=processes,
                extra={"parameters": row["parameters"]} if isinstance(row.get("parameters"), dict) else {},
            )
        )
    return records, refused


def _column(row: Mapping[str, Any], key: str) -> list[Any]:
    values = row.get(key)
    return values if isinstance(values, list) else []


def _failure(code: Any) -> str:
    if code is None:
        return "ended by a signal"
    return f"exit code {code}" if code else ""
