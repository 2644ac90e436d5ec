"""asv's result files (`results/MACHINE/COMMIT-ENVIRONMENT.json`, version 2): a row of columns for each benchmark.

Trailing columns may be missing. `result` holds one number for each combination of parameters, `samples` (kept on
`--record-samples`) the seconds of one call, `stats_number` how many calls were timed together. Only the name tells what
a benchmark measures: `time_…` and `timeraw_…` are seconds, the rest is no time and is left out.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from longpole.errors import InputError
from longpole.readers.benchmarks.samples import count_of, record_of, seconds_of, text_of, unit_of
from longpole.records.run_record import RecordEnvironment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from longpole.records.run_record import RecordSource, RunRecord

VERSION: Final = 2
ONLY_MEDIAN: Final = "only the median was kept: run asv with --record-samples to keep every sample"
_COMBINATIONS_MAX: Final = 100_000
_EPOCH_MS_MAX: Final = 1 << 47  # some thousand years; beyond, datetime refuses
_PYTHON_VERSION: Final = re.compile(r"\d[\w.]*")
_TIMES: Final = ("time_", "timeraw_", "Time")


def read_asv(document: Mapping[str, Any], source: RecordSource) -> tuple[list[RunRecord], list[str]]:
    """Return a record for each benchmark and combination of parameters, and a sentence for each that holds no time.

    Raises:
        InputError: The file is of another version than 2.
    """
    if document.get("version") != VERSION:
        found = f"an asv result of version {document.get('version')!r}, expected {VERSION}"
        raise InputError.at(source.path, None, found, "`asv update` rewrites old results")
    columns = document["result_columns"]
    names = [text_of(name) for name in columns] if isinstance(columns, list) else []
    environment = _environment(document)
    records, refused = [], []
    for name, values in document["results"].items():
        row = dict(zip(names, _listed(values), strict=False))
        if not name.rpartition(".")[2].startswith(_TIMES):
            refused.append(f"{name}: is no time, by its name")
            continue
        for label, median, samples, calls in _combinations(name, row):
            kept = [seconds for seconds in map(seconds_of, samples) if seconds is not None]
            if not kept and median is None:
                refused.append(f"{label}: failed or was skipped")
                continue
            records.append(
                record_of(
                    label,
                    [unit_of(seconds, calls) for seconds in kept or [median or 0.0]],
                    source=source,
                    written_by="asv",
                    environment=environment,
                    extra={} if kept else {"samples": ONLY_MEDIAN},
                )
            )
    return records, refused


def _combinations(name: str, row: Mapping[str, Any]) -> Iterator[tuple[str, float | None, list[Any], int]]:
    """Yield (label, median in seconds, samples in seconds, calls timed together) of each combination."""
    params = row.get("params")
    axes = [axis if isinstance(axis, list) else [axis] for axis in params] if isinstance(params, list) else []
    size = 1
    for axis in axes:
        size *= len(axis)
    if size > _COMBINATIONS_MAX:
        return
    labels = [f"{name}({', '.join(map(str, values))})" for values in product(*axes)] if axes else [name]
    results = _listed(row.get("result"))
    samples, numbers = _listed(row.get("samples")), _listed(row.get("stats_number"))
    for place, label in enumerate(labels):
        median = seconds_of(results[place]) if place < len(results) else None
        found = samples[place] if place < len(samples) else None
        calls = count_of(numbers[place]) if place < len(numbers) else 1
        yield label, median, found if isinstance(found, list) else [], calls


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _environment(document: Mapping[str, Any]) -> RecordEnvironment:
    params = document.get("params")
    params = params if isinstance(params, dict) else {}
    python = text_of(document.get("python"))
    must = {
        "cpu": text_of(params.get("cpu")),
        "cpu_count": text_of(params.get("num_cpu")),
        "machine": text_of(params.get("arch")),
        "python": python if _PYTHON_VERSION.fullmatch(python) else "",  # an existing environment is named by its path
        "system": text_of(params.get("os")),
    }
    told = {
        "host": text_of(params.get("machine")),
        "git_commit": text_of(document.get("commit_hash")),
        "environment": text_of(document.get("env_name")),
        "started": _date(document.get("date")),
    }
    return RecordEnvironment(
        must_match={key: value for key, value in must.items() if value},
        informational={key: value for key, value in told.items() if value},
    )


def _date(epoch_ms: Any) -> str:
    """Return when the commit was made, by which asv orders its results."""
    if not isinstance(epoch_ms, int) or not 0 <= epoch_ms < _EPOCH_MS_MAX:
        return ""
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat()
