"""What a folder lies on is read from the kernel's tables; what is not there stays unknown."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from longpole.bench.io.storage import Storage, read_storage
from longpole.bench.machine_files import MachineFiles

if TYPE_CHECKING:
    from pathlib import Path


def machine_with(tmp_path: Path, mounts: str) -> MachineFiles:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(mounts)
    return MachineFiles(tmp_path)


def number_of(folder: Path) -> str:
    device = folder.stat().st_dev
    return f"{os.major(device)}:{os.minor(device)}"


def test_file_system_options_and_disk_are_found(tmp_path: Path) -> None:
    number = number_of(tmp_path)
    machine = machine_with(
        tmp_path / "m",
        f"22 1 {number} / / rw,noatime shared:1 - ext4 /dev/sdb1 rw,discard\n1 1 0:5 / /dev rw - devtmpfs x rw\n",
    )
    disk = tmp_path / "m/sys/devices/sdb"
    (disk / "sdb1").mkdir(parents=True)
    (disk / "sdb1/partition").write_text("1")
    (disk / "queue").mkdir()
    (disk / "queue/rotational").write_text("0\n")
    (disk / "device").mkdir()
    (disk / "device/model").write_text("FAST 9000\n")
    (tmp_path / "m/sys/dev/block").mkdir(parents=True)
    (tmp_path / f"m/sys/dev/block/{number}").symlink_to(disk / "sdb1")

    found = read_storage(tmp_path, machine)

    assert (found.filesystem, found.device, found.model, found.rotational) == ("ext4", "sdb", "FAST 9000", False)
    assert found.options == ("discard", "noatime", "rw")
    assert found.free_bytes > 0


def test_the_innermost_mount_of_the_device_counts_and_its_name_is_decoded(tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    folder.mkdir()
    number = number_of(folder)
    inner = str(folder).replace(" ", "\\040")
    machine = machine_with(
        tmp_path / "m", f"1 0 {number} / / rw - xfs /dev/a rw\n2 1 {number} / {inner} ro - btrfs /dev/b rw\n"
    )

    assert read_storage(folder, machine).filesystem == "btrfs"
    assert read_storage(folder, machine).mount == str(folder)


def test_nothing_known_is_nothing_said(tmp_path: Path) -> None:
    found = read_storage(tmp_path, MachineFiles(tmp_path / "none"))

    assert (found.filesystem, found.device, found.rotational) == ("", "", None)


@pytest.mark.parametrize(
    ("filesystem", "memory", "says"),
    [
        ("tmpfs", True, "cannot be cold"),
        ("ext4", False, "page cache only; caches of a host"),
        ("nfs4", False, "whose state is not known"),
        ("fuse.sshfs", False, "whose state is not known"),
    ],
)
def test_the_scope_of_an_eviction_depends_on_the_file_system(filesystem: str, memory: bool, says: str) -> None:
    storage = Storage(filesystem=filesystem)

    assert storage.is_memory() is memory
    assert says in storage.cache_scope()
