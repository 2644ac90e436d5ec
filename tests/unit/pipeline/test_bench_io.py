"""A run from its options to its record: kept however it ends, never written over, nothing left behind."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from longpole.bench.io.plan import Workload
from longpole.bench.io.storage import read_storage
from longpole.errors import InputError, UsageError
from longpole.pipeline.bench_io import BenchIoOptions, measure_bench_io, prepare_bench_io, read_bench_io

SIZE = 16 << 10
TINY = Workload(size_bytes=SIZE, sizes=(4096, SIZE), warmups=1, repeats=3)
PATHS = ("raw.read.warm", "raw.write.fsync", "memory.copy")


@pytest.fixture(autouse=True)
def on_a_disk(tmp_path: Path) -> None:
    if read_storage(tmp_path).is_memory():
        pytest.skip("the folder for temporary files lies in memory")


def options(tmp_path: Path, **changes: Any) -> BenchIoOptions:
    given: dict[str, Any] = {
        "workload": TINY,
        "paths": PATHS,
        "folder": tmp_path,
        "out": tmp_path / "out",
        "label": "a",
    }
    return BenchIoOptions(**(given | changes))


def left_in(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir() if entry.name != "out"]


def test_a_run_is_a_record_with_every_sample_that_reads_back(tmp_path: Path) -> None:
    record, file, problem = measure_bench_io(options(tmp_path))

    assert (record.status, problem, record.failure) == ("measured", "", "")
    assert file == str(tmp_path / "out" / record.semantic_id / "a.json")
    assert [path.name for path in record.paths] == list(PATHS)
    for path in record.paths:
        fewer = 3 if path.operation == "save" else 4
        assert {case.size_bytes: len(case.service_ns) for case in path.cases} == {4096: fewer, SIZE: 4}
    assert record.correctness.status == "passed"
    assert record.correctness.samples == 4 + 4 + 3 + 4 + 4 + 4
    assert record.workload.rounds == 4
    assert len(record.workload.content_blake2b) == 40
    assert read_bench_io(file) == record
    assert left_in(tmp_path) == []


def test_a_record_is_never_written_over(tmp_path: Path) -> None:
    _, file, _ = measure_bench_io(options(tmp_path))
    before = Path(file).read_bytes()

    with pytest.raises(UsageError, match="never written over"):
        measure_bench_io(options(tmp_path))

    assert Path(file).read_bytes() == before


def test_an_interrupted_run_keeps_its_samples_and_says_failed(tmp_path: Path) -> None:
    def interrupt(label: str, done: int, planned: int) -> None:
        del label, planned
        if done == 8:
            raise KeyboardInterrupt

    record, file, _ = measure_bench_io(options(tmp_path), interrupt)

    assert (record.status, record.failure) == ("failed", "interrupted by the user")
    assert sum(len(case.service_ns) for path in record.paths for case in path.cases) == 8
    assert read_bench_io(file).status == "failed"
    assert left_in(tmp_path) == []


def test_a_full_disk_keeps_the_samples_removes_the_files_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fills up at the sixth write of an object."""
    calls = 0
    write = os.writev

    def fill(descriptor: int, parts: Any) -> int:
        nonlocal calls
        calls += 1
        if calls == 6:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, parts)

    monkeypatch.setattr(os, "writev", fill)

    record, file, _ = measure_bench_io(options(tmp_path, paths=("raw.write.cache",)))

    assert record.status == "failed"
    assert record.failure == "No space left on device; the samples until then are kept"
    assert sum(len(case.service_ns) for path in record.paths for case in path.cases) > 0
    assert read_bench_io(file).failure == record.failure
    assert left_in(tmp_path) == []


def test_a_budget_ends_the_rounds_and_the_record_says_how_many_there_were(tmp_path: Path) -> None:
    record, _, _ = measure_bench_io(options(tmp_path, budget_s=1e-9))

    assert (record.workload.rounds, record.workload.rounds_planned, record.status) == (2, 4, "measured")


def test_one_wrong_path_fails_the_run_and_the_others_keep_their_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One path's fsync reports success and does nothing."""
    real = os.fsync

    def fsync_to_nowhere(descriptor: int) -> None:
        if "save-raw.write.fsync" not in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync_to_nowhere)

    record, _, _ = measure_bench_io(options(tmp_path))

    assert record.status == "failed"
    assert "not on the device when it returns" in record.correctness.says
    assert {path.name: path.evidence for path in record.paths} == {
        "raw.read.warm": "measured",
        "raw.write.fsync": "failed",
        "memory.copy": "measured",
    }


def test_what_cannot_be_cold_is_invalid_where_it_was_asked_for() -> None:
    folder = Path("/dev/shm")
    if not os.access(folder, os.W_OK) or not read_storage(folder).is_memory():
        pytest.skip("no memory file system here")
    out = folder / f"longpole-test-{os.getpid()}"
    out.mkdir()
    try:
        record, _, _ = measure_bench_io(options(out, paths=("raw.read.cold", "raw.read.warm")))
    finally:
        import shutil

        shutil.rmtree(out)

    assert record.status == "invalid"
    cold, warm = record.path_named("raw.read.cold"), record.path_named("raw.read.warm")
    assert cold is not None
    assert warm is not None
    assert (cold.evidence, warm.evidence) == ("invalid", "measured")
    assert cold.reason.startswith("not guest-cold")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"folder": Path("/nowhere")}, "expected a folder that exists"),
        ({"paths": ("ftp.*",)}, "expected names of paths"),
        ({"workload": Workload(size_bytes=1 << 50, sizes=(1 << 50,))}, "are needed on the disk"),
        ({"out": Path("/proc/nowhere")}, "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(
    changes: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=says):
        measure_bench_io(options(tmp_path, **changes))

    assert left_in(tmp_path) == []


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    found = prepare_bench_io(options(tmp_path, paths=()))

    assert found.plan.cases
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            '{"schema": "longpole.bench-io/2"}',
            r"\$\.schema: expected 'longpole.bench-io/1', found 'longpole.bench-io/2'",
        ),
        ('{"schema": "longpole.bench-io/1"}', r"missing required field"),
        ("not json", "not JSON"),
        ("{}", "missing required field `schema`"),
    ],
)
def test_a_file_of_another_kind_or_version_is_named(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(text)

    with pytest.raises(InputError, match=says):
        read_bench_io(str(tmp_path / "r.json"))


def test_a_record_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_bench_io(str(tmp_path / "none.json"))
