"""Measurements from files: our run records, and results of other benchmark programs, as records of benchmarks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.errors import InputError
from longpole.pipeline.run_records import source_of
from longpole.readers.benchmarks.asv import read_asv
from longpole.readers.benchmarks.hyperfine import read_hyperfine
from longpole.readers.benchmarks.pytest_benchmark import read_pytest_benchmark
from longpole.readers.benchmarks.sniff import sniff_program
from longpole.records.run_record_file import decode_record, looks_like_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from longpole.records.run_record import RecordSource, RunRecord

_READERS: Final[dict[str, Callable[[Mapping[str, Any], RecordSource], tuple[list[RunRecord], list[str]]]]] = {
    "asv": read_asv,
    "hyperfine": read_hyperfine,
    "pytest-benchmark": read_pytest_benchmark,
}
_HEAD_BYTES: Final = 1 << 16
_HINT: Final = "Name a run record (longpole bench run), or JSON of pytest-benchmark, hyperfine or asv"


@dataclass(frozen=True, slots=True)
class Measurements:
    """What the files of one side hold.

    Attributes:
        paths: The files that were read.
        records: A record for each benchmark, in the order of the files.
        refused: What in those files could not be used, each with its reason.
    """

    paths: list[str]
    records: list[RunRecord]
    refused: list[str] = field(default_factory=list)


def read_measurements(path: str) -> Measurements:
    """Read what a file or folder measured.

    Args:
        path: A file, or a folder, of which every `.json` file below it is read that is a measurement.

    Raises:
        InputError: It cannot be read, or holds no measurement.
    """
    if not Path(path).is_dir():
        return _read_file(path)
    found: list[Measurements] = []
    refused: list[str] = []
    for file in sorted(Path(path).rglob("*.json")):
        try:
            found.append(_read_file(str(file)))
        except InputError as error:
            refused.append(str(error))
    if not found:
        why = refused[0] if refused else "no .json file in it"
        raise InputError.at(path, None, f"holds no measurement ({why})", _HINT)
    return Measurements(
        [path for one in found for path in one.paths],
        [record for one in found for record in one.records],
        [why for one in found for why in one.refused] + refused,
    )


def benchmark_of(record: RunRecord) -> str:
    """Return the name by which records of one benchmark are brought together."""
    return record.design.benchmark if record.design is not None and record.design.benchmark else ""


def by_benchmark(records: Iterable[RunRecord]) -> dict[str, list[RunRecord]]:
    """Return the records of each benchmark, in the order of their first appearance."""
    found: dict[str, list[RunRecord]] = {}
    for record in records:
        found.setdefault(benchmark_of(record), []).append(record)
    return found


def _read_file(path: str) -> Measurements:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError.at(path, None, f"cannot be read: {error.strerror}", _HINT) from None
    if looks_like_record(data[:_HEAD_BYTES], data[-_HEAD_BYTES:]):
        record = decode_record(data, path)
        record.label = record.label or Path(path).stem
        return Measurements([path], [record])
    document = _document(data, path)
    program = sniff_program(document)
    if program is None:
        raise InputError.at(path, None, "is no measurement that can be read", _HINT)
    records, refused = _READERS[program](document, source_of(path))
    if not records:
        why = refused[0] if refused else "it lists no benchmark"
        raise InputError.at(path, None, f"{program} kept no time in it ({why})", _HINT)
    return Measurements([path], records, [f"{path}: {why}" for why in refused])


def _document(data: bytes, path: str) -> dict[str, Any]:
    try:
        document = json.loads(data)  # asv writes Infinity, which stricter decoders refuse
    except (ValueError, RecursionError) as error:
        raise InputError.at(path, None, f"is not JSON: {error}", _HINT) from None
    if not isinstance(document, dict):
        raise InputError.at(path, None, "is no JSON object", _HINT)
    return document
