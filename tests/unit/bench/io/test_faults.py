"""What must not pass: wrong bytes, a cold run that is warm, a save that is not as durable as it says, a lazy load."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from longpole.bench.io import eviction
from longpole.bench.io.disk import Disk
from longpole.bench.io.figures import make_path
from longpole.bench.io.formats import Raw, Torch
from longpole.bench.io.residency import read_residency
from longpole.bench.io.storage import read_storage
from longpole.bench.io.workbench import Instruments
from tests.io_benches import ROWS, SIZE, make_bench, make_case, sampled, take, ticking

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from longpole.bench.io.contents import Tensors
    from longpole.bench.io.rounds import CaseSamples
    from longpole.records.bench_io import IoPath

MEMORY_GB_PER_S = 10.0


def as_path(one: CaseSamples, memory: float = MEMORY_GB_PER_S) -> IoPath:
    return make_path(one.plan.row, [one], memory, cold_method="verified")


@pytest.fixture(autouse=True)
def on_a_disk(tmp_path: Path) -> None:
    if read_storage(tmp_path).is_memory():
        pytest.skip("the folder for temporary files lies in memory")


class FlipsAByte(Raw):
    """Writes one wrong bit, as a bad disk or a bad library would."""

    def save(self, path: Path, tensors: Tensors) -> None:
        super().save(path, tensors)
        with path.open("r+b") as file:
            file.seek(SIZE // 2)
            byte = file.read(1)[0]
            file.seek(SIZE // 2)
            file.write(bytes([byte ^ 4]))


class SaysItSyncs(Disk):
    """Reports every sync and does none."""

    def _sync(self, path: Path, flags: int) -> None:
        del flags
        stat = path.stat()
        self.synced.add((stat.st_dev, stat.st_ino))


class ForgetsToSync(Disk):
    def sync_file(self, path: Path) -> None:
        del path


class ForgetsTheFolder(Disk):
    def sync_folder(self, path: Path) -> None:
        del path


@pytest.mark.parametrize("name", ["raw.read.warm", "raw.read.cold", "files.read.warm", "raw.write.fsync"])
def test_paths_as_they_are_pass(name: str, tmp_path: Path) -> None:
    one = take(make_case(name, make_bench(tmp_path)))
    path = as_path(one, memory=1e6)

    assert (path.evidence, path.reason, path.correctness.status) == ("measured", "", "passed")
    assert path.correctness.samples == 4
    assert len(path.cases[0].service_ns) == 4
    assert path.cases[0].service is not None


def test_a_flipped_byte_fails_a_save_and_ends_its_samples(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    bench.formats["raw"] = FlipsAByte()

    path = as_path(take(make_case("raw.write.cache", bench)))

    assert path.evidence == "failed"
    assert "tensor_08: byte 0" in path.reason
    assert len(path.cases[0].service_ns) == 1
    assert path.cases[0].service is None


@pytest.mark.parametrize("name", ["raw.read.warm", "files.read.cold"])
def test_a_flipped_byte_fails_a_load(name: str, tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    case = make_case(name, bench)
    case.set_up()
    last = sorted(next(tmp_path.glob("load-*")).iterdir())[-1]
    with last.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([byte ^ 1]))

    path = as_path(take(case))

    assert path.evidence == "failed"
    assert "tensor_15" in path.reason


def test_a_page_that_stays_makes_a_cold_run_invalid(tmp_path: Path) -> None:
    """One page comes back between the eviction and the load, as it does where somebody else reads the file."""

    def leave_one(path: Path) -> Any:
        eviction.make_cold(path)
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # else the kernel reads ahead
            os.pread(file.fileno(), 1, SIZE // 2)
        return read_residency(path)

    one = take(make_case("raw.read.cold", make_bench(tmp_path, Instruments(make_cold=leave_one))))
    path = as_path(one)

    assert path.evidence == "invalid"
    assert path.reason.startswith("not guest-cold: ")
    assert "stayed in the page cache" in path.reason
    assert path.cases[0].service_ns == []


def test_a_file_that_is_still_mapped_makes_a_cold_run_invalid(tmp_path: Path) -> None:
    """bench-io E: evicting a mapped file must yield invalid; the advice itself reports success."""
    import mmap

    case = make_case("raw.read.cold", make_bench(tmp_path))
    case.set_up()
    file = next(next(tmp_path.glob("load-*")).iterdir())
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert len(mapped[:]) == SIZE
        path = as_path(take(case))

    assert path.evidence == "invalid"
    assert "this process still maps the file" in path.reason


def test_pages_that_do_not_come_make_a_warm_run_invalid(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, Instruments(make_warm=eviction.make_cold))

    path = as_path(take(make_case("raw.read.warm", bench)))

    assert path.evidence == "invalid"
    assert path.reason == f"not warm: 0 of {SIZE // 4096} pages are in the page cache"


@pytest.mark.parametrize(
    "name", ["raw.write.fsync", "raw.overwrite.fsync", "raw.replace.fsync-dir", "files.write.fsync"]
)
def test_a_save_without_the_fsync_that_it_claims_fails(name: str, tmp_path: Path) -> None:
    path = as_path(take(make_case(name, make_bench(tmp_path, disk=ForgetsToSync()))))

    assert path.evidence == "failed"
    assert "fsync was not called on object_0000" in path.reason


def test_a_sync_that_reports_success_and_writes_nothing_fails(tmp_path: Path) -> None:
    """The second witness: the kernel still has the pages to write."""
    bench = make_bench(tmp_path, disk=SaysItSyncs())
    probe = tmp_path / "probe"
    probe.write_bytes(b"x")
    if read_residency(probe).unwritten() is None:
        pytest.skip("this kernel does not count dirty pages")

    path = as_path(take(make_case("raw.write.fsync", bench)))

    assert path.evidence == "failed"
    assert f"{SIZE // 4096} pages of object_0000 are not on the device when it returns" in path.reason


def test_a_folder_that_is_not_synced_fails_where_it_is_claimed(tmp_path: Path) -> None:
    path = as_path(take(make_case("raw.replace.fsync-dir", make_bench(tmp_path, disk=ForgetsTheFolder()))))

    assert path.reason == "claims fsync+dir, and fsync was not called on the folder"


def test_a_save_that_syncs_more_than_it_says_fails_too(tmp_path: Path) -> None:
    """Its times would be held against those of saves that sync nothing."""
    bench = make_bench(tmp_path)

    class Syncs(Raw):
        def save(self, path: Path, tensors: Tensors) -> None:
            super().save(path, tensors)
            bench.disk.sync_file(path)

    bench.formats["raw"] = Syncs()

    assert "claims cache, and fsync was called" in as_path(take(make_case("raw.write.cache", bench))).reason


def test_a_file_that_is_left_behind_fails(tmp_path: Path) -> None:
    class Litters(Raw):
        def save(self, path: Path, tensors: Tensors) -> None:
            super().save(path, tensors)
            path.with_name("zz.tmp").touch()

    bench = make_bench(tmp_path)
    bench.formats["raw"] = Litters()

    assert as_path(take(make_case("raw.write.cache", bench))).reason == "leaves zz.tmp behind"


def test_a_file_that_is_too_large_fails(tmp_path: Path) -> None:
    class Pads(Raw):
        def save(self, path: Path, tensors: Tensors) -> None:
            super().save(path, tensors)
            with path.open("ab") as file:
                file.write(b"x")

    bench = make_bench(tmp_path)
    bench.formats["raw"] = Pads()

    assert "has 65,537 bytes" in as_path(take(make_case("raw.write.cache", bench))).reason


def test_another_mode_is_a_difference_and_no_failure(tmp_path: Path) -> None:
    class Private(Raw):
        def save(self, path: Path, tensors: Tensors) -> None:
            super().save(path, tensors)
            path.chmod(0o600)

    bench = make_bench(tmp_path)
    bench.formats["raw"] = Private()

    path = as_path(take(make_case("raw.write.cache", bench)))

    assert (path.evidence, path.correctness.status) == ("measured", "differs")
    assert path.correctness.says.startswith("writes files of mode 0600")
    assert path.side_effects["mode"] == "0600"
    assert path.cases[0].service is not None


def test_a_load_that_never_touches_its_bytes_is_lazy(tmp_path: Path) -> None:
    """A mapped load whose touch is skipped takes no longer for more bytes; the clock here gives it 3 µs for 64 KiB."""
    pytest.importorskip("torch")
    instruments = Instruments(touch=len)
    case = make_case("torch.mmap.warm", make_bench(tmp_path, instruments))

    path = as_path(take(case, clock_ns=ticking(1000)))

    assert path.evidence == "invalid"
    assert path.reason.startswith("lazy: 22 GB/s is more than 2 times what a memory copy reaches (10.0 GB/s)")
    assert not isinstance(path.cases[0].gb_per_s, float)


@pytest.mark.parametrize(("service_ns", "evidence"), [(3277, "measured"), (3276, "invalid")])
def test_the_bound_of_laziness_is_twice_the_memory_copy(service_ns: int, evidence: str) -> None:
    """65,536 bytes at 20 GB/s take 3276.8 ns."""
    assert as_path(sampled("raw.read.warm", SIZE, [service_ns] * 5)).evidence == evidence


def test_one_lazy_sample_among_many_is_enough() -> None:
    assert as_path(sampled("raw.read.warm", SIZE, [9000] * 19 + [100])).evidence == "invalid"


def test_what_is_returned_is_never_a_bandwidth() -> None:
    path = as_path(sampled("torch.mmap.warm", SIZE, [10_000] * 20, returned_ns=50))

    case = path.cases[0]
    assert case.gb_per_s == pytest.approx(SIZE / 10_000, rel=1e-3)
    assert case.returned is not None
    assert case.returned.median_ns == 50


def test_a_damaged_torch_file_fails_its_load_and_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("torch")

    class Cuts(Torch):
        def save(self, path: Path, tensors: Tensors) -> None:
            super().save(path, tensors)
            os.truncate(path, path.stat().st_size // 2)

    bench = make_bench(tmp_path)
    bench.formats["torch"] = Cuts()
    case = make_case("torch.load.warm", bench)

    path = as_path(take(case))

    assert path.evidence == "failed"
    assert "cannot be loaded" in path.reason


def test_a_load_that_changes_its_file_fails(tmp_path: Path) -> None:
    class Appends(Raw):
        def load(self, path: Path, size_bytes: int) -> dict[str, NDArray[Any]]:
            found = super().load(path, size_bytes)
            with path.open("ab") as file:
                file.write(b"x")
            return found

    bench = make_bench(tmp_path)
    case = make_case("raw.read.warm", bench)
    case.set_up()
    bench.formats["raw"] = Appends()

    assert as_path(take(make_case("raw.read.warm", bench))).reason == "loading changed the file"


def test_every_row_of_the_catalogue_that_needs_nothing_runs(tmp_path: Path) -> None:
    for name, row in ROWS.items():
        if row.libraries() or row.operation == "copy":
            continue
        folder = tmp_path / name
        folder.mkdir()
        path = as_path(take(make_case(name, make_bench(folder)), repeats=1), memory=1e6)
        assert (name, path.evidence, path.reason) == (name, "measured", "")
