"""Loads: from a file that is in the page cache, or is verified not to be, to tensors of which every byte was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longpole.bench.io.case import Checked, Prepared, Timing
from longpole.bench.io.catalogue import GUEST_COLD
from longpole.bench.io.contents import divide, find_difference
from longpole.bench.io.eviction import why_resident
from longpole.bench.io.formats import FILE_OF
from longpole.bench.io.grain import GRAIN_BYTES
from longpole.bench.io.many import files_of_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from longpole.bench.io.catalogue import PathRow
    from longpole.bench.io.residency import Residency
    from longpole.bench.io.workbench import Workbench


class LoadCase:
    """One way of loading objects of one size.

    Attributes:
        row: The path.
        size_bytes: Of one object.
        objects: How many files one sample loads.
        side_effects: None of a load.
    """

    def __init__(self, row: PathRow, size_bytes: int, bench: Workbench) -> None:
        self.row = row
        self.size_bytes = size_bytes
        self.objects = files_of_path(size_bytes, bench.many_total_bytes) if row.many else 1
        self.side_effects: dict[str, object] = {}
        self._bench = bench
        self._format = bench.formats[row.format]
        form = "files" if row.many else FILE_OF.get(row.format, row.format)
        self._folder = bench.folder / f"load-{form}-{size_bytes}"
        self._small = bench.folder / f"small-{form}"
        self._stamps: list[tuple[int, int]] = []
        self._loaded: list[dict[str, NDArray[Any]]] = []

    @property
    def files(self) -> list[Path]:
        """Return the files that a sample loads."""
        return [self._folder / f"object_{place:04d}" for place in range(self.objects)]

    def set_up(self) -> None:
        """Write the files and make them durable, unless another path's case of this size has."""
        self._folder.mkdir(exist_ok=True)
        saver = self._bench.formats[FILE_OF.get(self.row.format, self.row.format)]
        for place, file in enumerate(self.files):
            if not file.exists():
                saver.save(file, divide(self._part(place)))
                self._bench.disk.sync_file(file)
        if not self._small.exists():
            saver.save(self._small, divide(self._bench.content.part(GRAIN_BYTES)))
        self._stamps = [_stamp(file) for file in self.files]

    def prepare(self) -> Prepared:
        """Fill or empty the page cache, and look whether it worked."""
        self._format.prepare_load(self.size_bytes * self.objects + GRAIN_BYTES)
        cold = self.row.cache == GUEST_COLD
        bring = self._bench.instruments.make_cold if cold else self._bench.instruments.make_warm
        states = {file: bring(file) for file in self.files}
        resident = sum(state.resident_bytes for state in states.values())
        wrong = [(file, state) for file, state in states.items() if not _is_as_wanted(state, cold=cold)]
        if not wrong:
            return Prepared(resident_before=resident)
        file, state = wrong[0]
        why = why_resident(file, state) if cold else f"{state.resident} of {state.pages} pages are in the page cache"
        return Prepared(resident_before=resident, invalid=f"not {self.row.cache}: {why}")

    def prime(self) -> None:
        """Load a small file of the same format."""
        self._bench.instruments.touch(self._format.load(self._small, GRAIN_BYTES))

    def run(self, clock_ns: Callable[[], int]) -> Timing:
        """Load every file, and read every byte of each before the next."""
        load, touch, loaded = self._format.load, self._bench.instruments.touch, self._loaded
        files = self.files
        returned_ns = 0
        start_ns = clock_ns()
        for file in files:
            began_ns = clock_ns()
            tensors = load(file, self.size_bytes)
            returned_ns += clock_ns() - began_ns
            touch(tensors)
            loaded.append(tensors)
        return Timing(service_ns=clock_ns() - start_ns, returned_ns=returned_ns)

    def check(self) -> Checked:
        """Compare every byte with what was saved, and see that the files are as they were."""
        failed = ""
        for place, tensors in enumerate(self._loaded):
            failed = failed or find_difference(tensors, divide(self._part(place)))
        self._loaded.clear()
        if not failed and [_stamp(file) for file in self.files] != self._stamps:
            failed = "loading changed the file"
        return Checked(failed=failed)

    def clean_up(self) -> None:
        """Let go of what was loaded; the files are other cases' too and go with the folder."""
        self._loaded.clear()

    def _part(self, place: int) -> NDArray[Any]:
        return self._bench.content.words[place * self.size_bytes : (place + 1) * self.size_bytes]


def _is_as_wanted(state: Residency, *, cold: bool) -> bool:
    return state.is_empty() if cold else state.is_whole()


def _stamp(file: Path) -> tuple[int, int]:
    stat = file.stat()
    return stat.st_size, stat.st_mtime_ns
