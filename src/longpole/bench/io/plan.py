"""What will be measured, how often, and what that takes: the plan that `--dry-run` prints."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from longpole.bench.io.contents import DTYPE, TENSORS
from longpole.bench.io.formats import FILE_OF
from longpole.bench.io.many import FEWEST_FILES, files_of_path
from longpole.records.bench_io import SCHEMA
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.bench.io.catalogue import PathRow

DEFAULT_SIZE_BYTES: Final = 64 << 20
DEFAULT_SIZES: Final = tuple(4096 * 4**power for power in range(8))
"""4 KiB to 64 MiB, each four times the one before: eight sizes over more than four powers of ten."""
DEFAULT_WARMUPS: Final = 5
DEFAULT_REPEATS: Final = 20
DEFAULT_SEED: Final = 42
FEWEST_REPEATS: Final = 5  # of sizes other than the workload's, unless fewer are asked for
_MANY_SHARE: Final = 4  # files of a path of many hold a quarter of the workload's size together

# What a plan's estimate reckons with: a middling machine. ns an operation, and bytes a ns, of load, save and copy.
_RATES: Final = {"load": (50_000, 1.5), "save": (1_000_000, 0.8), "copy": (1_000, 5.0)}
_AROUND_NS: Final = 4_000_000  # preparing, sweeping and reading conditions
_CHECK_BYTES_PER_NS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is moved, and how often.

    Attributes:
        size_bytes: The object that decisions look at.
        sizes: All sizes, ascending; `size_bytes` is one of them.
        warmups: Samples of each case that no figure counts.
        repeats: Samples that count, at `size_bytes`; of other sizes fewer.
        seed: Of the content and of the order.
        threads: Threads that libraries may use.
    """

    size_bytes: int = DEFAULT_SIZE_BYTES
    sizes: tuple[int, ...] = DEFAULT_SIZES
    warmups: int = DEFAULT_WARMUPS
    repeats: int = DEFAULT_REPEATS
    seed: int = DEFAULT_SEED
    threads: int = 1

    @property
    def many_total_bytes(self) -> int:
        """Return about how many bytes the files of a path of many files hold together."""
        return self.size_bytes // _MANY_SHARE

    @property
    def rounds(self) -> int:
        """Return how many rounds there are: one sample of each case in each."""
        return self.warmups + self.repeats

    def samples_of(self, size_bytes: int, operation: str) -> tuple[int, int]:
        """Return warm-ups and repeats of one size: all of them at the workload's own.

        The other sizes are there for the law, which is fitted to medians. Saves, which take longest, have half as many
        below; above, there are as few as move as many bytes, at least 1 + 5.

        >>> Workload().samples_of(4096, "load"), Workload().samples_of(4096, "save")
        ((5, 20), (2, 10))
        >>> Workload().samples_of(64 << 20, "save"), Workload().samples_of(1 << 30, "load")
        ((5, 20), (1, 5))
        """
        if size_bytes == self.size_bytes or (size_bytes < self.size_bytes and operation != "save"):
            return self.warmups, self.repeats
        fewest = min(FEWEST_REPEATS, self.repeats)
        if size_bytes < self.size_bytes:
            return self.warmups // 2, max(self.repeats // 2, fewest)
        return min(1, self.warmups), min(max(self.repeats * self.size_bytes // size_bytes, fewest), self.repeats)

    def largest_bytes(self) -> int:
        """Return the size of the largest object."""
        return max(self.sizes)

    def semantic_id(self, paths: Sequence[PathRow]) -> str:
        """Return what two runs must share for their samples to mean the same, as a readable hash.

        The machine is no part of it: the same workload on two machines has the same id.
        """
        parts = {
            "schema": SCHEMA,
            "size": self.size_bytes,
            "sizes": self.sizes,
            "warmups": self.warmups,
            "repeats": self.repeats,
            "seed": self.seed,
            "threads": self.threads,
            "dtype": DTYPE,
            "tensors": TENSORS,
            "paths": [row.name for row in paths],
        }
        mark = hashlib.blake2b(msgspec.json.encode(parts, order="sorted"), digest_size=5).hexdigest()
        return f"io-{self.size_bytes >> 10}k-{DTYPE}-{mark}"

    def is_default(self) -> bool:
        """Tell whether this is the workload that is used where nothing is said."""
        return self == Workload()


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """One path at one size.

    Attributes:
        row: The path.
        size_bytes: Of one object.
        objects: How many one sample moves.
        warmups: Samples that no figure counts.
        repeats: Samples that count.
    """

    row: PathRow
    size_bytes: int
    objects: int
    warmups: int
    repeats: int

    @property
    def samples(self) -> int:
        """Return how many samples there are to be."""
        return self.warmups + self.repeats

    def estimate_ns(self) -> float:
        """Return about what all its samples take, with preparing and checking."""
        latency, rate = _RATES[self.row.operation]
        moved = self.size_bytes * self.objects
        once = latency * self.objects + moved / rate + moved / _CHECK_BYTES_PER_NS + _AROUND_NS
        return once * self.samples


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that will be measured.

    Attributes:
        workload: What is moved, and how often.
        cases: By path, then by size.
    """

    workload: Workload
    cases: tuple[PlannedCase, ...]

    def disk_bytes(self) -> int:
        """Return about what lies on the disk at most: the files of all loads, and one save, twice where it replaces."""
        loads = {
            (FILE_OF.get(case.row.format, case.row.format), case.row.many, case.size_bytes): case.objects
            for case in self.cases
            if case.row.operation == "load"
        }
        kept = sum(size * objects for (_, _, size), objects in loads.items())
        saves = [case.size_bytes * case.objects for case in self.cases if case.row.operation == "save"]
        return kept + 2 * max(saves, default=0)

    def written_bytes(self) -> int:
        """Return about what is written in all."""
        saves = (case for case in self.cases if case.row.operation == "save")
        return self.disk_bytes() + sum(case.size_bytes * case.objects * case.samples for case in saves)

    def memory_bytes(self) -> int:
        """Return about what memory is held: the content, a load's copy of it, a buffer, its file's pages."""
        return 4 * self.workload.largest_bytes()

    def estimate_s(self) -> float:
        """Return about what it takes, within a factor of two or so."""
        return sum(case.estimate_ns() for case in self.cases) / NS_PER_S


def make_plan(workload: Workload, paths: Sequence[PathRow]) -> Plan:
    """Lay out the cases of the paths."""
    return Plan(workload, tuple(case for row in paths for case in _cases(workload, row)))


def _cases(workload: Workload, row: PathRow) -> Iterator[PlannedCase]:
    for size_bytes in workload.sizes:
        if row.many and size_bytes * FEWEST_FILES > workload.many_total_bytes:
            continue
        objects = files_of_path(size_bytes, workload.many_total_bytes) if row.many else 1
        yield PlannedCase(row, size_bytes, objects, *workload.samples_of(size_bytes, row.operation))
