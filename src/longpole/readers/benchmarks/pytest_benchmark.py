"""pytest-benchmark's JSON (`--benchmark-json`, `--benchmark-save`), as versions 3 to 5.3 write it.

`stats.data` holds the seconds of one call of every round, where the program was asked to keep them; `stats.iterations`
is the number of calls of a round. Without the data a benchmark is a single sample: its median.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longpole.readers.benchmarks.samples import count_of, record_of, seconds_of, text_of, unit_of
from longpole.records.run_record import RecordEnvironment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.records.run_record import RecordSource, RunRecord

ONLY_MEDIAN = "only the median was kept: run pytest with --benchmark-save-data to keep every round"


def read_pytest_benchmark(document: Mapping[str, Any], source: RecordSource) -> tuple[list[RunRecord], list[str]]:
    """Return a record for each benchmark, and a sentence for each that holds no time."""
    records, refused = [], []
    environment = _environment(document)
    version = text_of(document.get("version"))
    for place, row in enumerate(document["benchmarks"]):
        stats = row.get("stats") if isinstance(row, dict) else None
        if not isinstance(stats, dict):
            refused.append(f"benchmarks[{place}]: has no stats")
            continue
        name = text_of(row.get("fullname")) or text_of(row.get("name")) or f"benchmarks[{place}]"
        calls = count_of(stats.get("iterations"))
        data = stats.get("data")
        times = [seconds_of(value) for value in data] if isinstance(data, list) else []
        kept = [seconds for seconds in times if seconds is not None]
        extra: dict[str, Any] = {"rounds": stats["rounds"]} if isinstance(stats.get("rounds"), int) else {}
        median = seconds_of(stats.get("median"))
        if not kept and median is None:
            refused.append(f"{name}: has neither data nor a median")
            continue
        if not kept:
            kept = [median] if median is not None else []
            extra["samples"] = ONLY_MEDIAN
        records.append(
            record_of(
                name,
                [unit_of(seconds, calls) for seconds in kept],
                source=source,
                written_by=f"pytest-benchmark {version}".strip(),
                environment=environment,
                extra=extra,
            )
        )
    return records, refused


def _environment(document: Mapping[str, Any]) -> RecordEnvironment:
    machine = document.get("machine_info")
    machine = machine if isinstance(machine, dict) else {}
    cpu = machine.get("cpu")
    cpu = cpu if isinstance(cpu, dict) else {}
    must = {
        "cpu": text_of(cpu.get("brand_raw")) or text_of(cpu.get("brand")),
        "cpu_count": cpu.get("count"),
        "machine": text_of(machine.get("machine")),
        "python": f"{text_of(machine.get('python_implementation'))} {text_of(machine.get('python_version'))}".strip(),
        "system": text_of(machine.get("system")),
    }
    commit = document.get("commit_info")
    commit = commit if isinstance(commit, dict) else {}
    told = {
        "host": text_of(machine.get("node")),
        "git_commit": text_of(commit.get("id")),
        "git_branch": text_of(commit.get("branch")),
        "started": text_of(document.get("datetime")),
    }
    return RecordEnvironment(
        must_match={key: value for key, value in must.items() if value},
        should_match={"kernel": machine["release"]} if text_of(machine.get("release")) else {},
        informational={key: value for key, value in told.items() if value},
    )
