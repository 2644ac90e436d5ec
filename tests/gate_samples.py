"""Gates whose pages are kept as golden files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longpole.bench.gate.asked import Asked, parse_metrics
from longpole.pipeline.gate import GateOptions, gate_records
from longpole.records.run_record import RecordEnvironment
from longpole.records.run_record_file import encode_record
from tests.gate_runs import Bench, pair

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from longpole.report.gate import Gate

BASE = Bench()


def regressed() -> Gate:
    """A slower stage and more memory, with another setting that may lie behind it."""
    sides = [
        Bench(
            stages=BASE.scaled(backward=factor),
            peak_bytes=peak_bytes,
            extra={"environment": RecordEnvironment(should_match={"NCCL_ALGO": algo}, informational={"host": "here"})},
            unit={"idle_ns": {"host.sync": sync_ns}},
        )
        for factor, peak_bytes, algo, sync_ns in ((1.0, 10**9, "Ring", 10**6), (1.15, 1_020_000_000, "Tree", 5 * 10**6))
    ]
    return _gate(*sides, metrics=parse_metrics(["time", "peak_memory=5%"]))


def inconclusive() -> Gate:
    """Processes that differ by a tenth."""
    return _gate(Bench(noise=0.1), Bench(noise=0.1))


def invalid() -> Gate:
    """A process that failed."""
    return _gate(BASE, Bench(process={3: {"exit_code": -9, "failure": "ended by signal 9"}}))


def _gate(base: Bench, new: Bench, **asked: Any) -> Gate:
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("base.json", "new.json")]
        for path, record in zip(paths, pair(base, new), strict=True):
            Path(path).write_bytes(encode_record(record))
        gate = gate_records(paths[0], [paths[1]], GateOptions(asked=Asked(**asked)))
        gate.next = gate.next.replace(f"{folder}/", "")
        return gate


SAMPLES: Mapping[str, Callable[[], Gate]] = {
    "regressed": regressed,
    "inconclusive": inconclusive,
    "invalid": invalid,
}
