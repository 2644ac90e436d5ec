"""Measure this machine's paths: look first, lay out, take the samples, check, decide, and keep the record."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.io.catalogue import choose_paths
from longpole.bench.io.plan import Plan, Workload, make_plan
from longpole.bench.io.preflight import Preflight, check_paths, check_room
from longpole.bench.io.storage import read_storage
from longpole.bench.record_store import RecordStore, record_path
from longpole.errors import InputError, UsageError
from longpole.pipeline.version import package_version
from longpole.records.bench_io import SCHEMA, BenchIo, IoSkipped, IoStorage, IoWorkload
from longpole.records.bench_io_file import decode_bench_io, encode_bench_io

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from longpole.bench.io.case import Case
    from longpole.bench.io.device import Device
    from longpole.bench.io.exposed import Saver
    from longpole.bench.io.plan import PlannedCase
    from longpole.bench.io.rounds import CaseSamples
    from longpole.bench.io.storage import Storage
    from longpole.bench.io.workbench import Workbench

INTERRUPTED: Final = "interrupted"
_PREFIX: Final = ".longpole-bench-io-"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchIoOptions:
    """What to measure.

    Attributes:
        workload: What is moved, and how often.
        paths: Names, patterns, objects; empty for all.
        folder: Whose storage is measured.
        out: Where the record goes; `benchmarks/results` unless said.
        label: What the run is called; the time unless said.
        budget_s: After this time no round begins.
        exposed: Whether the exposed time of saves is measured too.
        pairs: Pairs of each way of saving.
        every_s: Time between two saves in the user's job.
        io_budget: The share of that time that a save may cost.
    """

    workload: Workload = field(default_factory=Workload)
    paths: Sequence[str] = ()
    folder: Path = Path()
    out: Path | None = None
    label: str | None = None
    budget_s: float | None = None
    exposed: bool = False
    pairs: int = 10
    every_s: float | None = None
    io_budget: float = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What was found before anything is measured.

    Attributes:
        plan: What will be measured.
        preflight: What will not, and why.
        storage: What the folder lies on.
        device: The device, None for none.
        semantic_id: Of the workload and its paths.
    """

    plan: Plan
    preflight: Preflight
    storage: Storage
    device: Device | None
    semantic_id: str


def prepare_bench_io(options: BenchIoOptions) -> Prepared:
    """Look at the folder, the libraries, the device, the disk and the memory, and lay out what will be measured.

    Raises:
        UsageError: The folder is none or cannot be written to, a path does not exist, or disk or memory is too small.
    """
    if not options.folder.is_dir():
        msg = f"--in {options.folder}: expected a folder that exists; name one on the storage to be measured"
        raise UsageError(msg)
    storage, device = read_storage(options.folder), _device()
    rows = choose_paths(options.paths)
    preflight = check_paths(rows, storage, device, named=bool(options.paths))
    if not preflight.paths and not options.exposed:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in preflight.skipped[:4])
        msg = f"none of the paths can be measured here: {reasons}"
        raise UsageError(msg)
    plan = make_plan(options.workload, preflight.paths)
    check_room(plan, options.folder, storage)
    return Prepared(
        plan=plan,
        preflight=preflight,
        storage=storage,
        device=device,
        semantic_id=options.workload.semantic_id(preflight.paths),
    )


def measure_bench_io(
    options: BenchIoOptions, tell: Callable[[str, int, int], None] = lambda *_: None
) -> tuple[BenchIo, str, str]:
    """Measure, and keep the record, also of a run that did not come to its end.

    Args:
        options: What to measure.
        tell: Told how far the run is: (what is measured, done, planned).

    Returns:
        The record, its file, and why it is not where it should be (empty where it is).

    Raises:
        UsageError: As `prepare_bench_io`; or the record exists, or cannot be written.
    """
    prepared = prepare_bench_io(options)
    started = datetime.now(UTC)
    label = options.label or started.strftime("%Y%m%dT%H%M%SZ")
    store = RecordStore(record_path(label, prepared.semantic_id, options.out))
    record = _blank(options, prepared, label, started)
    began_s = time.monotonic()
    try:
        with _temporary_folder(options.folder) as folder, _terminated_is_interrupted():
            _measure(record, options, prepared, folder, tell)
    except KeyboardInterrupt:
        record.failure = record.failure or f"{INTERRUPTED} by the user"
    except (OSError, MemoryError) as error:
        record.failure = _sentence(error)
    except BaseException:
        store.give_up()
        raise
    record.elapsed_s = round(time.monotonic() - began_s, 3)
    return record, *_keep(record, store, options)


def _keep(record: BenchIo, store: RecordStore, options: BenchIoOptions) -> tuple[str, str]:
    """Conclude and write; return the file, and why it is not where it should be."""
    try:
        _conclude(record, options)
        data = encode_bench_io(record)
    except BaseException:
        store.give_up()
        raise
    problem = store.finish_with(data)
    return str(store.path), problem


def read_bench_io(path: str) -> BenchIo:
    """Read a record.

    Raises:
        InputError: It cannot be read, or is no record of this kind and version.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        hint = "Name a record of longpole bench io (benchmarks/results/ID/LABEL.json)"
        raise InputError.at(path, None, f"cannot be read: {error.strerror or error}", hint) from None
    return decode_bench_io(data, path)


def _measure(
    record: BenchIo, options: BenchIoOptions, prepared: Prepared, folder: Path, tell: Callable[[str, int, int], None]
) -> None:
    """Take all samples into the record; whatever ends this early leaves those that were taken."""
    from longpole.bench.io.contents import make_content
    from longpole.bench.io.copy_case import measure_memory_gb_per_s
    from longpole.bench.io.rounds import CaseSamples, RoundOptions, Rounds, take_rounds
    from longpole.bench.io.workbench import Sweep, Workbench

    workload = options.workload
    content = make_content(workload.largest_bytes(), workload.seed)
    record.workload.content_blake2b = content.blake2b()
    bench = Workbench(folder, content, workload.many_total_bytes)
    sweep, clock_ns = Sweep(), time.perf_counter_ns
    record.workload.swept_bytes = sweep.size_bytes
    with _threads(workload.threads):
        memory = measure_memory_gb_per_s(content.words, clock_ns)
        record.memory_gb_per_s = round(memory, 3)
        cases = [CaseSamples(plan, _make_case(plan, bench, prepared.device)) for plan in prepared.plan.cases]
        rounds = Rounds(cases)
        failures: list[str] = []
        try:
            settings = RoundOptions(clock_ns=clock_ns, sweep=sweep, budget_s=options.budget_s, tell=tell)
            if cases:
                take_rounds(rounds, workload, settings)
                failures = _failures_afterwards(record, bench, cases, workload)
            if options.exposed:
                _expose(record, bench, options, tell)
        finally:
            record.workload.rounds = rounds.taken
            _write_paths(record, prepared, cases, memory, failures)


def _expose(record: BenchIo, bench: Workbench, options: BenchIoOptions, tell: Callable[[str, int, int], None]) -> None:
    from longpole.bench.io.exposed import ExposureOptions, make_compute, measure_exposure, usual_savers

    savers: list[Saver] = usual_savers()
    asked = ExposureOptions(
        size_bytes=options.workload.size_bytes,
        pairs=options.pairs,
        every_s=options.every_s,
        seed=options.workload.seed,
        clock_ns=time.perf_counter_ns,
        tell=tell,
    )
    record.exposed = measure_exposure(bench, savers, make_compute(), asked)


def _failures_afterwards(
    record: BenchIo, bench: Workbench, cases: Sequence[CaseSamples], workload: Workload
) -> list[str]:
    """Load what was saved in another process, and see that the content is what it was."""
    from longpole.bench.io.formats import FILE_OF
    from longpole.bench.io.load_case import LoadCase
    from longpole.bench.io.reload import find_reload_failures

    files: dict[str, Path] = {}
    for one in cases:
        if isinstance(one.case, LoadCase) and one.plan.size_bytes == workload.size_bytes and not one.plan.row.many:
            files.setdefault(FILE_OF.get(one.plan.row.format, one.plan.row.format), one.case.files[0])
    failures = []
    if files:
        expected = bench.content.tensors(workload.size_bytes)
        failures = find_reload_failures(list(files.items()), expected, workload.size_bytes)
    if bench.content.blake2b() != record.workload.content_blake2b:
        failures.append("the content in memory changed during the run")
    return failures


def _make_case(plan: PlannedCase, bench: Workbench, device: Device | None) -> Case:
    from longpole.bench.io.copy_case import CopyCase
    from longpole.bench.io.device import DeviceCase
    from longpole.bench.io.load_case import LoadCase
    from longpole.bench.io.save_case import SaveCase

    if plan.row.device and device is not None:
        return DeviceCase(plan.row, plan.size_bytes, bench, device)
    makers: dict[str, Callable[[Any, int, Workbench], Case]] = {"load": LoadCase, "save": SaveCase, "copy": CopyCase}
    return makers[plan.row.operation](plan.row, plan.size_bytes, bench)


def _write_paths(
    record: BenchIo, prepared: Prepared, cases: Sequence[CaseSamples], memory: float, failures: Sequence[str]
) -> None:
    from longpole.bench.io.figures import check_all, make_path

    method = f"fsync, posix_fadvise(DONTNEED), verified by {record.storage.residency_method or 'nothing'}"
    for row in prepared.preflight.paths:
        own = [one for one in cases if one.plan.row is row]
        record.paths.append(make_path(row, own, memory, cold_method=method))
    record.correctness = check_all(record.paths, failures)


def _conclude(record: BenchIo, options: BenchIoOptions) -> None:
    """Say what the record is worth, and what follows."""
    from longpole.bench.io.decide import decide

    wrong = [one.reason for one in record.exposed if one.evidence == "failed"]
    if record.failure or record.correctness.status == "failed" or wrong:
        record.status = "failed"
        if wrong and record.correctness.status != "failed":
            record.correctness.status, record.correctness.says = "failed", wrong[0]
    elif any(path.evidence == "invalid" for path in record.paths):
        record.status = "invalid"
    if not record.failure:
        record.decisions = decide(record, io_budget=options.io_budget)


def _blank(options: BenchIoOptions, prepared: Prepared, label: str, started: datetime) -> BenchIo:
    workload, storage = options.workload, prepared.storage
    environment = _environment()
    return BenchIo(
        schema=SCHEMA,
        profile="default" if workload.is_default() and not options.paths else "custom",
        semantic_id=prepared.semantic_id,
        label=label,
        written_by=f"longpole {package_version()}",
        started_at=started.isoformat(timespec="seconds"),
        status="measured",
        evidence=(
            "measured in one process on this machine"
            + ("" if prepared.device else ", without a device")
            + f"; what is cold or warm is {prepared.storage.cache_scope()}"
        ),
        framework=_versions(),
        hardware=_hardware(environment, prepared.device),
        environment=environment,
        storage=_io_storage(options.folder, storage),
        workload=IoWorkload(
            size_bytes=workload.size_bytes,
            sizes=list(workload.sizes),
            dtype="float32",
            tensors=16,
            warmups=workload.warmups,
            repeats=workload.repeats,
            seed=workload.seed,
            content="random",
            content_blake2b="",
            threads=workload.threads,
            swept_bytes=0,
            rounds_planned=workload.rounds if prepared.plan.cases else 0,
            budget_s=options.budget_s,
        ),
        skipped=[IoSkipped(name, reason) for name, reason in prepared.preflight.skipped],
    )


def _io_storage(folder: Path, storage: Storage) -> IoStorage:
    from longpole.bench.io.residency import read_residency

    method = ""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=_PREFIX) as probe:
        probe.write(b"x")
        probe.flush()
        try:
            method = read_residency(Path(probe.name)).method
        except InputError:
            method = ""
    return IoStorage(
        folder=str(folder),
        filesystem=storage.filesystem,
        mount=storage.mount,
        options=list(storage.options),
        source=storage.source,
        device=storage.device,
        model=storage.model,
        rotational=storage.rotational,
        free_bytes=storage.free_bytes,
        cache_scope=storage.cache_scope(),
        residency_method=method,
    )


def _environment() -> dict[str, dict[str, Any]]:
    from longpole.bench.environment import collect_environment

    found = collect_environment()
    return {
        "must_match": found.must_match,
        "should_match": found.should_match,
        "informational": found.informational,
    }


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for name in ("numpy", "torch", "safetensors"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _hardware(environment: dict[str, dict[str, Any]], device: Device | None) -> dict[str, Any]:
    must, should = environment["must_match"], environment["should_match"]
    kept: dict[str, Any] = {
        name: must[name] for name in ("cpu", "cpu_count", "usable_cpus", "architecture", "gpus") if name in must
    }
    kept |= {name: should[name] for name in ("memory_bytes", "hypervisor") if name in should}
    return kept | {"kernel": platform.release()} | (device.describe() if device is not None else {})


def _device() -> Device | None:
    from longpole.bench.io.device import find_device

    return find_device()


@contextmanager
def _temporary_folder(parent: Path) -> Iterator[Path]:
    """Make a folder for the files of a run, and remove it however the run ends."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _terminated_is_interrupted() -> Iterator[None]:
    """Let SIGTERM end a run as Ctrl-C does: files go, the record is kept."""

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, end)
    except ValueError:  # not the main thread: signals are somebody else's
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Let torch use so many threads, where it is installed, and as many as before afterwards."""
    try:
        import torch
    except ImportError:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _sentence(error: OSError | MemoryError) -> str:
    if isinstance(error, MemoryError):
        return "memory ran out; measure smaller sizes"
    code = errno_text(error)
    return f"{code}; the samples until then are kept"


def errno_text(error: OSError) -> str:
    """Return an error of the system in words: its own text, and the file where it names one."""
    text = os.strerror(error.errno) if error.errno else str(error)
    return f"{error.filename}: {text}" if error.filename else text
