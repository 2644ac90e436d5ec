"""A plan says what will be measured and what it takes; a preflight says what cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.bench.io.catalogue import PATHS, choose_paths
from longpole.bench.io.plan import Workload, make_plan
from longpole.bench.io.preflight import check_paths, check_room
from longpole.bench.io.storage import Storage
from longpole.bench.machine_files import MachineFiles
from longpole.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

DISK = Storage(filesystem="ext4", free_bytes=1 << 40)
MEMORY = Storage(filesystem="tmpfs", free_bytes=1 << 40)


def test_the_default_workload_is_64_mib_with_5_warm_ups_20_repeats_and_seed_42() -> None:
    workload = Workload()

    assert (workload.size_bytes, workload.warmups, workload.repeats, workload.seed) == (64 << 20, 5, 20, 42)
    assert (min(workload.sizes), max(workload.sizes)) == (4096, 64 << 20)


def test_the_id_changes_with_whatever_changes_what_a_sample_means() -> None:
    paths = choose_paths(["raw.read.warm"])
    ids = {
        Workload().semantic_id(paths),
        Workload(seed=43).semantic_id(paths),
        Workload(repeats=21).semantic_id(paths),
        Workload(size_bytes=1 << 20).semantic_id(paths),
        Workload(threads=2).semantic_id(paths),
        Workload().semantic_id(PATHS),
    }

    assert len(ids) == 6
    assert Workload().semantic_id(paths) == Workload().semantic_id(paths)


def test_paths_are_chosen_by_name_pattern_and_object() -> None:
    assert [row.name for row in choose_paths(["raw.read.warm"])] == ["raw.read.warm"]
    assert {row.format for row in choose_paths(["safetensors.*"])} == {"safetensors"}
    assert {row.object for row in choose_paths(["output"])} == {"output"}
    assert len(choose_paths([])) == len(PATHS)
    with pytest.raises(UsageError, match="'ftp'"):
        choose_paths(["ftp"])


def test_without_a_device_its_paths_say_so_and_the_others_stay() -> None:
    found = check_paths(PATHS, DISK, None, named=False)

    left_out = {name: reason for name, reason in found.skipped if name.startswith("device.")}
    assert len(left_out) == 6
    assert all("no device" in reason or "not installed" in reason for reason in left_out.values())
    assert "raw.read.cold" in {row.name for row in found.paths}


def test_in_memory_nothing_is_cold_and_nothing_durable() -> None:
    found = check_paths(PATHS, MEMORY, None, named=False)

    skipped = dict(found.skipped)
    assert "cannot be cold" in skipped["raw.read.cold"]
    assert "nothing there is durable" in skipped["raw.write.fsync"]
    assert {"raw.read.warm", "raw.write.cache", "memory.copy"} <= {row.name for row in found.paths}


def test_a_cold_path_that_is_named_is_tried_in_memory_and_found_invalid() -> None:
    rows = choose_paths(["raw.read.cold"])

    assert check_paths(rows, MEMORY, None, named=True).paths == tuple(rows)


def test_a_disk_or_a_memory_that_is_too_small_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    plan = make_plan(Workload(), choose_paths(["raw.*"]))

    with pytest.raises(UsageError, match=r"are needed on the disk, 1\.00 MB are free"):
        check_room(plan, tmp_path, Storage(free_bytes=10**6))

    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemAvailable:    1000 kB\n")
    with pytest.raises(UsageError, match=r"of memory are needed, 1\.02 MB are available"):
        check_room(plan, tmp_path, DISK, MachineFiles(tmp_path))


def test_a_path_of_many_files_moves_about_as_much_at_each_size() -> None:
    plan = make_plan(Workload(), choose_paths(["files.read.warm"]))

    assert [(case.size_bytes, case.objects) for case in plan.cases] == [
        (4 << 10, 64),
        (16 << 10, 64),
        (64 << 10, 64),
        (256 << 10, 64),
        (1 << 20, 16),
        (4 << 20, 4),
    ]


def test_huge_pages_in_the_page_cache_are_said() -> None:
    notes = check_paths([], Storage(filesystem="xfs", options=("huge=always",)), None, named=False).notes

    assert any("huge pages" in note for note in notes)
