"""`longpole bench collectives`: measure, or read what was measured, and keep it."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.bench.collectives.build import About, build_record
from longpole.bench.collectives.run import TIMED, measure, probe
from longpole.bench.environment import collect_environment
from longpole.errors import UsageError
from longpole.pipeline.collective_logs import read_logs
from longpole.pipeline.version import package_version
from longpole.readers.container import open_stream
from longpole.records.bench_collectives import CollectivesDesign, CollectivesMachine
from longpole.records.bench_collectives_file import (
    decode_collectives,
    encode_collectives,
    looks_like_collectives,
)
from longpole.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from longpole.bench.collectives.plan import Plan
    from longpole.pipeline.collective_logs import Logs
    from longpole.records.bench_collectives import CollectivesRecord

RESULTS: Final = Path("benchmarks/results")
_HEAD_BYTES: Final = 4096
_LOG_TIMED: Final = "mean over the iterations, which were queued one behind the other; of several logs the middle one"


def measure_collectives(
    plan: Plan,
    *,
    label: str | None = None,
    results: Path = RESULTS,
    settings: Path | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[CollectivesRecord, Path]:
    """Measure what collectives take on this machine, and write the record.

    Args:
        plan: What to measure.
        label: What to call the record; the time where None.
        results: The record goes to `<results>/<semantic id>/<label>.json`, and never over another one.
        settings: The user's own thresholds.
        progress: Hears (what runs, sets of processes done, in all) now and then.

    Returns:
        The record, and where it was written.

    Raises:
        UsageError: The backend is not there, or the record cannot be written.
        MissingExtraError: torch is not installed.
    """
    thresholds = read_settings(settings)
    facts = probe(plan)
    created = datetime.now(UTC)
    name = label or created.strftime("%Y%m%dT%H%M%SZ")
    semantic_id = plan.semantic_id(facts.backend)
    path = _reserve(results / semantic_id / f"{name}.json")
    try:
        measured = measure(plan, facts, progress)
        about = About(
            origin="bench",
            longpole=package_version(),
            label=name,
            created=created.isoformat(timespec="seconds"),
            machine=CollectivesMachine(facts.backend, facts.device, 1, facts.versions),
            design=CollectivesDesign(plan.repeats, plan.warmup, plan.rounds, plan.seed, plan.dtype, TIMED, semantic_id),
            environment=collect_environment(),
            not_run=measured.not_run,
        )
        record = build_record(measured.points, measured.settings, about, thresholds)
        _write(path, encode_collectives(record))
    except BaseException:
        with suppress(OSError):
            if path.stat().st_size == 0:
                path.unlink()
        raise
    return record, path


def _reserve(path: Path) -> Path:
    """Make the file before anything is measured: what is there is never written over.

    Raises:
        UsageError: It is there already, or cannot be made.
    """
    if path.name.startswith(".") or "/" in path.stem:
        msg = f"--label {path.stem}: expected a name for a file"
        raise UsageError(msg)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(exist_ok=False)
    except FileExistsError:
        msg = f"{path} is there already, and no record is written over: choose another --label, or another --out"
        raise UsageError(msg) from None
    except OSError as error:
        msg = f"--out: {path} cannot be written: {error.strerror or error}; name another folder"
        raise UsageError(msg) from None
    return path


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        msg = f"--out: {path} cannot be written: {error.strerror or error}; name another folder"
        raise UsageError(msg) from None


def read_collectives(
    paths: Sequence[str], *, kind: str | None = None, label: str | None = None, settings: Path | None = None
) -> CollectivesRecord:
    """Read what was measured before: a record of ours, or logs of nccl-tests, which together make one.

    Args:
        paths: Files, or folders of them.
        kind: Of tests that nothing names.
        label: What to call the record of logs; the first file's name where None.
        settings: The user's own thresholds.

    Raises:
        UsageError: A path does not exist, or records are mixed with others.
        InputError: A file is none of them, or holds nothing.
    """
    thresholds = read_settings(settings)
    files = _files(paths)
    heads = {file: _head(file) for file in files}
    records = [file for file in files if looks_like_collectives(heads[file])]
    if records and len(files) > 1:
        msg = f"--read: expected one record, or logs of nccl-tests; found {records[0]} with {len(files) - 1} more files"
        raise UsageError(msg)
    if records:
        with open_stream(records[0], thresholds) as stream:
            return decode_collectives(b"".join(stream.blocks()), str(records[0]))
    logs = read_logs(files, thresholds, kind)
    about = About(
        origin="nccl-tests",
        longpole=package_version(),
        label=label or files[0].name,
        machine=_machine(logs),
        design=_design(logs),
        sources=logs.sources,
    )
    return build_record(logs.points, logs.settings, about, thresholds)


def _files(paths: Sequence[str]) -> list[Path]:
    found: list[Path] = []
    for shown in paths:
        path = Path(shown)
        if path.is_dir():
            found += sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
        elif path.exists():
            found.append(path)
        else:
            msg = f"--read {shown}: there is no such file or folder; name a log of nccl-tests or a record"
            raise UsageError(msg)
    if not found:
        msg = f"--read {paths[0]}: the folder holds no file; name a log of nccl-tests or a record"
        raise UsageError(msg)
    return list(dict.fromkeys(found))


def _head(path: Path) -> bytes:
    with suppress(OSError), path.open("rb") as file:
        return file.read(_HEAD_BYTES)
    return b""


def _machine(logs: Logs) -> CollectivesMachine:
    tests = logs.tests
    devices = dict.fromkeys(device for test in tests for device in test.devices)
    nodes = {test.nodes for test in tests if test.nodes is not None}
    versions = [test.version for test in tests if test.version]
    return CollectivesMachine(
        backend="nccl",
        device=", ".join(devices),
        nodes=nodes.pop() if len(nodes) == 1 else None,
        versions={"nccl": ", ".join(dict.fromkeys(versions))} if versions else {},
    )


def _design(logs: Logs) -> CollectivesDesign:
    return CollectivesDesign(
        repeats=_one(test.repeats for test in logs.tests),
        warmup=_one(test.warmup for test in logs.tests),
        rounds=max((len(point.rounds) for point in logs.points), default=0) or 1,
        dtype=", ".join(dict.fromkeys(point.dtype for point in logs.points)),
        timed=_LOG_TIMED,
    )


def _one(values: Iterable[int | None]) -> int | None:
    """Return the value that all share, None where they differ."""
    found = set(values)
    return found.pop() if len(found) == 1 else None
