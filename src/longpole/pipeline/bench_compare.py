"""From two sides of files to a comparison, and from records to other programs' formats and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from longpole.bench.compare import compare_benchmark, geometric_mean
from longpole.bench.record_store import record_path
from longpole.bench.summary import summarise
from longpole.errors import InputError, UsageError
from longpole.pipeline.measurements import Measurements, benchmark_of, by_benchmark, read_measurements
from longpole.pipeline.version import package_version
from longpole.records.compare import SCHEMA, Compare
from longpole.records.ledger import Unknown
from longpole.records.run_record_file import encode_record
from longpole.report.bencher import render_bencher

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from longpole.bench.summary import Summary
    from longpole.records.run_record import RunRecord
    from longpole.settings import Settings


def compare_files(base: Sequence[str], new: Sequence[str], settings: Settings) -> Compare:
    """Compare every benchmark that both sides have.

    Args:
        base: Files or folders that are one side together.
        new: Those of the other side.
        settings: Thresholds of the comparison.

    Raises:
        InputError: A side holds no measurement, or nothing can be compared.
    """
    sides = _join(base), _join(new)
    groups = by_benchmark(sides[0].records), by_benchmark(sides[1].records)
    if len(groups[0]) == len(groups[1]) == 1:
        # One benchmark a side is meant to be compared, whatever either is called.
        name = next(iter(groups[0]))
        groups = groups[0], {name: next(iter(groups[1].values()))}
    common = [name for name in groups[0] if name in groups[1]]
    if not common:
        names = [", ".join(sorted(group)[:5]) for group in groups]
        msg = f"the sides share no benchmark: {names[0]} against {names[1]}. Name files of the same benchmarks"
        raise InputError(msg)
    found, refused = [], [*sides[0].refused, *sides[1].refused]
    for name in common:
        one = compare_benchmark(groups[0][name], groups[1][name], settings)
        if isinstance(one, Unknown):
            refused.append(f"{name}: {one.unknown}")
            continue
        one.row = msgspec.structs.replace(one.row, name=name)
        found.append(one)
    if not found:
        msg = f"nothing can be compared: {'; '.join(refused)}. Measure again what failed"
        raise InputError(msg)
    return Compare(
        schema=SCHEMA,
        longpole=package_version(),
        base=sides[0].paths,
        new=sides[1].paths,
        benchmarks=found,
        only_base=[name for name in groups[0] if name not in groups[1]],
        only_new=[name for name in groups[1] if name not in groups[0]],
        geomean_share=geometric_mean(found),
        refused=refused,
    )


def export_bencher(paths: Iterable[str]) -> tuple[bytes, list[str]]:
    """Return files as a document in the Bencher Metric Format, and what could not be used.

    Raises:
        InputError: A file is no measurement, or nothing in it counts.
    """
    measured = _join(list(paths))
    summaries: list[tuple[str, Summary]] = []
    refused = list(measured.refused)
    for name, records in by_benchmark(measured.records).items():
        summary = summarise(*records)
        if summary is None:
            refused.append(f"{name}: no unit of it counts")
        else:
            summaries.append((name or records[0].label or "benchmark", summary))
    if not summaries:
        msg = f"nothing to export: {'; '.join(refused)}. Name records with at least one unit that counts"
        raise InputError(msg)
    return render_bencher(summaries), refused


def import_results(paths: Sequence[str], folder: Path) -> tuple[list[Path], list[str]]:
    """Write results of other programs as run records, one file a benchmark; none is written over.

    Args:
        paths: Files of pytest-benchmark, hyperfine or asv, or folders of them.
        folder: Where the records go; made if it is not there.

    Raises:
        InputError: A file is no measurement.
        UsageError: A record is there already, or the folder cannot be written.
    """
    measured = _join(paths)
    files: list[Path] = []
    for record in measured.records:
        file = folder / record_path(_file_label(record), "", folder).name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with file.open("xb") as stream:
                stream.write(encode_record(record))
        except FileExistsError:
            msg = f"{file}: exists, and a record is never written over; name another folder (--out)"
            raise UsageError(msg) from None
        except OSError as error:
            msg = f"--out {folder}: cannot be written: {error.strerror or error}; name another folder"
            raise UsageError(msg) from None
        files.append(file)
    return files, measured.refused


def _file_label(record: RunRecord) -> str:
    started = record.environment.informational.get("started", "")
    return f"{benchmark_of(record)}-{started}" if started else benchmark_of(record)


def _join(paths: Sequence[str]) -> Measurements:
    found = [read_measurements(path) for path in paths]
    return Measurements(
        [path for one in found for path in one.paths],
        [record for one in found for record in one.records],
        [why for one in found for why in one.refused],
    )
