"""Saves: from tensors in memory to files that are as durable as the path says when it returns."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Any

from longpole.bench.io.case import Checked, Prepared, Timing
from longpole.bench.io.catalogue import CACHE, FSYNC_FOLDER, NEW, REPLACE
from longpole.bench.io.contents import POISON, divide, find_difference
from longpole.bench.io.many import files_of_path
from longpole.bench.io.workbench import PARTIAL, expected_mode, settle_writeback

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from longpole.bench.io.catalogue import PathRow
    from longpole.bench.io.workbench import Workbench

SETTLED_BYTES = 8 << 20  # bench-io B3: what may be left to write from the sample before (our choice of the limit)
SETTLE_S = 0.05  # other programs may write all the time; what this one wrote it has synced or removed


class SaveCase:
    """One way of saving objects of one size.

    Attributes:
        row: The path.
        size_bytes: Of one object.
        objects: How many files one sample saves.
        side_effects: What else the first checked sample did: mode, size of the file.
    """

    def __init__(self, row: PathRow, size_bytes: int, bench: Workbench) -> None:
        self.row = row
        self.size_bytes = size_bytes
        self.objects = files_of_path(size_bytes, bench.many_total_bytes) if row.many else 1
        self.side_effects: dict[str, object] = {}
        self._bench = bench
        self._format = bench.formats[row.format]
        self._folder = bench.folder / f"save-{row.name}-{size_bytes}"
        self._tensors = [divide(self._part(place)) for place in range(self.objects)]
        self._mode = expected_mode()

    @property
    def files(self) -> list[Path]:
        """Return the files that a sample saves."""
        return [self._folder / f"object_{place:04d}" for place in range(self.objects)]

    def set_up(self) -> None:
        """Make the folder, durably."""
        self._folder.mkdir(exist_ok=True)
        self._bench.disk.sync_folder(self._bench.folder)

    def prepare(self) -> Prepared:
        """Remove the files, or put others of the same size there; then let the device come to rest."""
        for file in self.files:
            file.unlink(missing_ok=True)
            if self.row.target != NEW:
                file.write_bytes(bytes([POISON]) * self.size_bytes)
                self._bench.disk.sync_file(file)
        self._bench.disk.sync_folder(self._folder)
        settle_writeback(SETTLED_BYTES, SETTLE_S)
        self._bench.disk.forget()
        return Prepared()

    def prime(self) -> None:
        """Do nothing: another small file would be in the journal that the sample's fsync writes."""

    def run(self, clock_ns: Callable[[], int]) -> Timing:
        """Save every object."""
        stages: dict[str, int] = {}
        start_ns = clock_ns()
        for file, tensors in zip(self.files, self._tensors, strict=True):
            self._save(file, tensors, stages, clock_ns)
        if self.row.durability == FSYNC_FOLDER:
            began_ns = clock_ns()
            self._bench.disk.sync_folder(self._folder)
            stages["fsync-folder"] = clock_ns() - began_ns
        return Timing(service_ns=clock_ns() - start_ns, stages_ns=stages)

    def check(self) -> Checked:
        """Look whether it was as durable as it says, then at the files themselves."""
        invalid_or_failed = self._durability()
        failed = invalid_or_failed or self._files_as_expected() or self._bytes_as_saved()
        differs = "" if failed else self._unusual()
        for file in self.files:
            file.unlink(missing_ok=True)
        return Checked(failed=failed, differs=differs)

    def clean_up(self) -> None:
        """Remove what the last sample left, finished or not."""
        if self._folder.is_dir():
            for file in self._folder.iterdir():
                file.unlink(missing_ok=True)

    def _save(
        self, file: Path, tensors: dict[str, NDArray[Any]], stages: dict[str, int], clock_ns: Callable[[], int]
    ) -> None:
        disk = self._bench.disk
        target = file.with_name(file.name + PARTIAL) if self.row.target == REPLACE else file
        start_ns = clock_ns()
        self._format.save(target, tensors)
        written_ns = clock_ns()
        stages["write"] = stages.get("write", 0) + written_ns - start_ns
        if self.row.durability != CACHE:
            disk.sync_file(target)
            stages["fsync"] = stages.get("fsync", 0) + clock_ns() - written_ns
        if self.row.target == REPLACE:
            began_ns = clock_ns()
            disk.replace(target, file)
            stages["replace"] = stages.get("replace", 0) + clock_ns() - began_ns

    def _durability(self) -> str:
        """Say what speaks against the durability that the path claims.

        Two witnesses: the fsync that was called on this very file, and the pages that the kernel still has to write.
        Neither alone is enough: pages may have been written by chance, and a call may have been swallowed. That a
        folder's entries are on the device shows in the call only; the kernel cannot be asked.
        """
        disk, claim = self._bench.disk, self.row.durability
        for file in self.files:
            if not file.is_file():
                return f"no file {file.name} where one was to be saved"
            synced = disk.has_synced(file)
            if claim == CACHE:
                if synced:
                    return f"claims {CACHE}, and fsync was called on {file.name}"
                continue
            if not synced:
                return f"claims {claim}, and fsync was not called on {file.name}"
            unwritten = self._bench.instruments.read_residency(file).unwritten()
            if unwritten:
                return f"claims {claim}, and {unwritten:,} pages of {file.name} are not on the device when it returns"
        if claim == FSYNC_FOLDER and not disk.has_synced(self._folder):
            return f"claims {claim}, and fsync was not called on the folder"
        return ""

    def _files_as_expected(self) -> str:
        """Say what is wrong with which files there are, and with their sizes."""
        there = {file.name for file in self._folder.iterdir()}
        left = sorted(there - {file.name for file in self.files})
        if left:
            return f"leaves {left[0]} behind"
        for file in self.files:
            size_bytes = file.stat().st_size
            exact = self.row.format == "raw"
            if size_bytes < self.size_bytes or (exact and size_bytes != self.size_bytes):
                return f"{file.name} has {size_bytes:,} bytes, its tensors {self.size_bytes:,}"
        return ""

    def _bytes_as_saved(self) -> str:
        """Load every file again, and compare."""
        self._format.prepare_load(self.size_bytes * self.objects)
        for file, expected in zip(self.files, self._tensors, strict=True):
            try:
                found = self._format.load(file, self.size_bytes)
            except (OSError, RuntimeError, ValueError) as error:
                return f"{file.name} cannot be loaded again: {type(error).__name__}: {error}"
            failed = find_difference(found, expected)
            if failed:
                return failed
        return ""

    def _unusual(self) -> str:
        """Note mode, links and size; say where the mode is not what open(2) and the umask give."""
        status = self.files[0].stat()
        mode = stat.S_IMODE(status.st_mode)
        self.side_effects = {"mode": f"{mode:04o}", "links": status.st_nlink, "file_bytes": status.st_size}
        if mode != self._mode:
            return f"writes files of mode {mode:04o} where {self._mode:04o} is usual"
        return ""

    def _part(self, place: int) -> NDArray[Any]:
        return self._bench.content.words[place * self.size_bytes : (place + 1) * self.size_bytes]
