"""What is resident is asked, not assumed: counts, eviction, and what eviction silently does not reach."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from longpole.bench.io import residency
from longpole.bench.io.eviction import evict, make_cold, make_warm, why_resident
from longpole.bench.io.residency import PAGE_BYTES, read_residency
from longpole.bench.io.storage import read_storage
from longpole.errors import InputError

PAGES = 64


@pytest.fixture
def file(tmp_path: Path) -> Path:
    if read_storage(tmp_path).is_memory():
        pytest.skip("the folder for temporary files lies in memory, where no page leaves")
    path = tmp_path / "file"
    path.write_bytes(os.urandom(PAGES * PAGE_BYTES))
    return path


def counts_dirty(file: Path) -> bool:
    return read_residency(file).method == "cachestat"


def test_what_was_just_written_is_resident_and_dirty(file: Path) -> None:
    found = read_residency(file)

    assert (found.pages, found.resident, found.is_whole()) == (PAGES, PAGES, True)
    if counts_dirty(file):
        assert found.unwritten() == PAGES


def test_fsync_leaves_pages_resident_and_none_unwritten(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)

    found = read_residency(file)

    assert found.is_whole()
    assert not found.unwritten()


def test_a_file_goes_and_comes_back(file: Path) -> None:
    cold = make_cold(file)
    assert cold.is_empty()
    assert cold.resident_bytes == 0

    warm = make_warm(file)
    assert warm.is_whole()


def test_a_part_that_is_missing_is_brought(file: Path) -> None:
    make_cold(file)
    with file.open("rb") as opened:
        opened.read(1)

    assert make_warm(file).is_whole()


def test_a_size_that_is_no_whole_page_goes_too(file: Path) -> None:
    odd = file.with_name("odd")
    odd.write_bytes(b"x" * (3 * PAGE_BYTES + 17))

    assert read_residency(odd).pages == 4
    assert make_cold(odd).is_empty()


def test_pages_that_this_process_maps_stay_and_the_reason_says_so(file: Path) -> None:
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert sum(mapped[:: PAGE_BYTES // 2]) >= 0

        found = make_cold(file)

        assert found.is_whole()
        assert "this process still maps the file" in why_resident(file, found)
    assert make_cold(file).is_empty()


def test_a_memory_file_system_keeps_every_page() -> None:
    folder = Path("/dev/shm")
    if not folder.is_dir() or not os.access(folder, os.W_OK) or not read_storage(folder).is_memory():
        pytest.skip("no memory file system here")
    path = folder / f"longpole-test-{os.getpid()}"
    try:
        path.write_bytes(b"x" * PAGES * PAGE_BYTES)
        found = make_cold(path)
        assert found.resident == PAGES
        assert "keeps it in memory" in why_resident(path, found)
    finally:
        path.unlink()


def test_mincore_agrees_where_the_kernel_has_no_cachestat(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residency, "_CACHESTAT", 9999)  # a call that no kernel has

    assert read_residency(file) == residency.Residency(PAGES, PAGES, None, None, "mincore")
    assert read_residency(file).unwritten() is None
    evict(file)
    assert read_residency(file).resident == 0


def test_an_empty_file_has_no_pages(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()

    found = read_residency(tmp_path / "empty")

    assert (found.pages, found.resident) == (0, 0)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing.*No such file"):
        read_residency(tmp_path / "missing")
