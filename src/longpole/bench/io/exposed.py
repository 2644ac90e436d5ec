"""What a save costs a step that goes on: the step with it and without it, back to back, in random order.

    without   compute ───────────────┤
    with      block ──┤ compute (slower) ───────────────────┤ drain ──┤

    exposed = with - without = block + slowdown + drain

How long the call blocks says little: a thread that writes beside the computing slows it, and what it has not written by
the end is waited for (bench-io B7: the same call, blocking for 0.16 s both times, cost 0.06 s or 1.3 s).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from longpole.bench.conditions import conditions_between, read_now, watched_files
from longpole.bench.io.contents import divide, find_difference
from longpole.bench.io.formats import is_installed
from longpole.bench.io.peak_memory import PeakMemory
from longpole.bench.io.rounds import KEPT_CONDITIONS
from longpole.bench.io.save_case import SETTLE_S, SETTLED_BYTES
from longpole.bench.io.workbench import settle_writeback
from longpole.records.bench_io import IoCheck, IoExposure
from longpole.records.ledger import Unknown
from longpole.stats.intervals import paired_interval
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from longpole.bench.io.workbench import Workbench

DEFAULT_PAIRS: Final = 10  # bench-io A7
_FEWEST_PAIRS: Final = 5  # below, an interval is not worth its name (bench-io A7: k_min)
_COMPUTE_FACTOR: Final = 1.5  # of the save's own service time: a save that could be hidden has room to
_SHORTEST_NS: Final = NS_PER_S // 10
_LONGEST_NS: Final = 8 * NS_PER_S
_MATRIX: Final = 512  # rows and columns: its three matrices of 1 MiB fit no first-level cache


class Saver(Protocol):
    """One way of saving in a step."""

    name: str
    says: str
    form: str

    def start(self, state: dict[str, NDArray[Any]], file: Path, bench: Workbench) -> Callable[[], None]:
        """Begin a save; return what waits for its end. The state may change as soon as this returns."""

    def held_bytes(self) -> int:
        """Return the memory that it keeps between two saves."""


class SaveInStep:
    """Saves and syncs before it returns."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.name = f"{form}.save+fsync in the step"
        self.says = "save and fsync before the step goes on"

    def start(self, state: dict[str, NDArray[Any]], file: Path, bench: Workbench) -> Callable[[], None]:
        """Save; there is nothing left to wait for."""
        bench.formats[self.form].save(file, state)
        bench.disk.sync_file(file)
        return lambda: None

    def held_bytes(self) -> int:
        """Return nothing: it keeps none."""
        return 0


class SaveInThread:
    """Copies the state to a buffer that it keeps, and saves and syncs that in a thread."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.name = f"staging copy, thread does {form}.save+fsync"
        self.says = "copy the state; save and fsync the copy in a thread beside the step"
        self._staged: dict[str, NDArray[Any]] = {}

    def start(self, state: dict[str, NDArray[Any]], file: Path, bench: Workbench) -> Callable[[], None]:
        """Copy, start the thread, and return what joins it and raises what went wrong in it."""
        if self._staged.keys() != state.keys():
            self._staged = {name: np.empty_like(array) for name, array in state.items()}
        for name, array in state.items():
            np.copyto(self._staged[name], array)
        errors: list[OSError] = []

        def write() -> None:
            try:
                bench.formats[self.form].save(file, self._staged)
                bench.disk.sync_file(file)
            except OSError as error:
                errors.append(error)

        thread = threading.Thread(target=write, name="longpole-bench-io-save")
        thread.start()

        def wait() -> None:
            thread.join()
            if errors:
                raise errors[0]

        return wait

    def held_bytes(self) -> int:
        """Return the size of the copy."""
        return sum(array.nbytes for array in self._staged.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposureOptions:
    """How exposed time is measured.

    Attributes:
        size_bytes: What is saved.
        pairs: How many pairs of each way of saving.
        every_s: Time between two saves in the user's job, from which a share follows; None where not said.
        seed: Of the order.
        clock_ns: A monotonic clock.
        tell: Told how far the run is: (label, arms done, arms planned).
    """

    size_bytes: int
    pairs: int
    every_s: float | None
    seed: int
    clock_ns: Callable[[], int]
    tell: Callable[[str, int, int], None] = lambda *_: None


@dataclass
class _Arms:
    """The pairs of one way of saving."""

    saver: Saver
    block_ns: list[int] = field(default_factory=list)
    slowdown_ns: list[int] = field(default_factory=list)
    drain_ns: list[int] = field(default_factory=list)
    without_ns: list[int] = field(default_factory=list)
    service_ns: list[int] = field(default_factory=list)
    peak_bytes: list[int] = field(default_factory=list)
    conditions: list[dict[str, float]] = field(default_factory=list)
    failed: str = ""
    steps: int = 0


def usual_savers() -> list[Saver]:
    """Return the ways of saving that are compared: in the step, and by a copy and a thread."""
    form = "torch" if is_installed("torch") else "raw"
    return [SaveInStep(form), SaveInThread(form)]


def make_compute() -> Callable[[int], None]:
    """Return what multiplies float32 matrices so many times: with torch where it is installed, else with NumPy."""
    left = np.ones((_MATRIX, _MATRIX), dtype=np.float32)
    if not is_installed("torch"):
        target = np.empty_like(left)

        def multiply(steps: int) -> None:
            for _ in range(steps):
                np.matmul(left, left, out=target)

        return multiply
    import torch

    one, out = torch.from_numpy(left), torch.empty(_MATRIX, _MATRIX)

    def multiply_torch(steps: int) -> None:
        for _ in range(steps):
            torch.mm(one, one, out=out)

    return multiply_torch


def measure_exposure(
    bench: Workbench, savers: Sequence[Saver], compute: Callable[[int], None], options: ExposureOptions
) -> list[IoExposure]:
    """Measure the pairs of each way of saving.

    Args:
        bench: Folder and content.
        savers: The ways.
        compute: Does so many steps of computing.
        options: How.
    """
    state = divide(np.array(bench.content.part(options.size_bytes)))
    run = _Run(bench, state, compute, options)
    found = [_Arms(saver) for saver in savers]
    steps = run.calibrate(found)
    rng = np.random.default_rng(options.seed)
    planned, done = len(found) * options.pairs, 0
    for _ in range(options.pairs):
        for place in rng.permutation(len(found)):
            arms = found[place]
            options.tell(arms.saver.name, done, planned)
            done += 1
            if not arms.failed:
                run.take_pair(arms, steps, save_first=bool(rng.integers(2)))
    return [_written(arms, options) for arms in found]


class _Run:
    """What all pairs share."""

    def __init__(
        self,
        bench: Workbench,
        state: dict[str, NDArray[Any]],
        compute: Callable[[int], None],
        options: ExposureOptions,
    ) -> None:
        self._bench, self._state, self._compute, self._options = bench, state, compute, options
        self._file = bench.folder / "exposed"
        self._watched = watched_files()

    def calibrate(self, found: Sequence[_Arms]) -> int:
        """Return how many steps take half as long again as the longest of the saves; each way is warmed up by it."""
        services = [self._alone(arms.saver) for arms in found for _ in range(2)]
        wanted_ns = min(max(_COMPUTE_FACTOR * max(services), _SHORTEST_NS), _LONGEST_NS)
        self._compute(3)
        steps, took_ns = 4, 0
        while True:
            start_ns = self._options.clock_ns()
            self._compute(steps)
            took_ns = self._options.clock_ns() - start_ns
            if took_ns >= _SHORTEST_NS or steps >= 1 << 20:
                break
            steps *= 2
        return max(round(steps * wanted_ns / max(took_ns, 1)), 1)

    def take_pair(self, arms: _Arms, steps: int, *, save_first: bool) -> None:
        """Take the step with the save and without it, and the save alone."""
        order = ("with", "without", "alone") if save_first else ("without", "with", "alone")
        taken: dict[str, tuple[int, int, int]] = {}
        for arm in order:
            if arm == "with":
                taken[arm] = self._with(arms, steps)
            elif arm == "without":
                taken[arm] = (0, self._without(steps), 0)
            else:
                taken[arm] = (0, self._alone(arms.saver), 0)
        block_ns, computing_ns, drain_ns = taken["with"]
        arms.steps = steps
        arms.block_ns.append(block_ns)
        arms.slowdown_ns.append(computing_ns - taken["without"][1])
        arms.drain_ns.append(drain_ns)
        arms.without_ns.append(taken["without"][1])
        arms.service_ns.append(taken["alone"][1])

    def _without(self, steps: int) -> int:
        start_ns = self._options.clock_ns()
        self._compute(steps)
        return self._options.clock_ns() - start_ns

    def _alone(self, saver: Saver) -> int:
        self._rest()
        start_ns = self._options.clock_ns()
        saver.start(self._state, self._file, self._bench)()
        return self._options.clock_ns() - start_ns

    def _with(self, arms: _Arms, steps: int) -> tuple[int, int, int]:
        self._rest()
        clock_ns, peak, before = self._options.clock_ns, PeakMemory(), read_now(self._watched)
        start_ns = clock_ns()
        wait = arms.saver.start(self._state, self._file, self._bench)
        blocked_ns = clock_ns()
        self._change_state()
        computing_ns = clock_ns()
        self._compute(steps)
        computed_ns = clock_ns()
        wait()
        end_ns = clock_ns()
        found = conditions_between(before, read_now(self._watched))
        arms.conditions.append({name: found[name] for name in KEPT_CONDITIONS if name in found})
        held = peak.grown_bytes()
        if held is not None:
            arms.peak_bytes.append(held + arms.saver.held_bytes())
        self._change_state()
        arms.failed = arms.failed or self._problem(arms.saver)
        # The change of the state is the step's own work, so it is nobody's.
        return blocked_ns - start_ns, computed_ns - computing_ns, end_ns - computed_ns

    def _rest(self) -> None:
        self._file.unlink(missing_ok=True)
        settle_writeback(SETTLED_BYTES, SETTLE_S)
        self._bench.disk.forget()

    def _change_state(self) -> None:
        """Change one word of each tensor, as the next step of training would; a second time changes them back."""
        for array in self._state.values():
            array.view(np.uint32)[0] ^= np.uint32(0xFFFFFFFF)

    def _problem(self, saver: Saver) -> str:
        """Say what is wrong with the file: its bytes must be those of the moment at which the save began."""
        disk, read = self._bench.disk, self._bench.instruments.read_residency
        if not self._file.is_file():
            return "no file was written"
        if not disk.has_synced(self._file) or read(self._file).unwritten():
            return "the file is not on the device when the save says that it is done"
        form = self._bench.formats[saver.form]
        form.prepare_load(self._options.size_bytes)
        wrong = find_difference(form.load(self._file, self._options.size_bytes), self._state)
        return f"{wrong}; the state was changed while it was being saved" if wrong else ""


def _written(arms: _Arms, options: ExposureOptions) -> IoExposure:
    names = [name for name in KEPT_CONDITIONS if any(name in found for found in arms.conditions)]
    made = IoExposure(
        method=arms.saver.name,
        says=arms.saver.says,
        size_bytes=options.size_bytes,
        steps=arms.steps,
        pairs=len(arms.block_ns),
        block_ns=arms.block_ns,
        slowdown_ns=arms.slowdown_ns,
        drain_ns=arms.drain_ns,
        exposed_ns=[sum(parts) for parts in zip(arms.block_ns, arms.slowdown_ns, arms.drain_ns, strict=True)],
        without_ns=arms.without_ns,
        service_ns=arms.service_ns,
        conditions={name: [found.get(name) for found in arms.conditions] for name in names},
        correctness=IoCheck("failed" if arms.failed else "passed", arms.failed, len(arms.block_ns)),
    )
    if arms.failed:
        made.evidence, made.reason = "failed", arms.failed
        return made
    if arms.peak_bytes:
        made.peak_bytes = round(median(arms.peak_bytes))
    if made.pairs < _FEWEST_PAIRS:
        why = Unknown(f"an interval needs {_FEWEST_PAIRS} pairs, there are {made.pairs}")
        made.estimate_ns = made.interval_ns = made.overlap_efficiency = made.exposed_share = why
        return made
    interval = paired_interval([0.0] * made.pairs, made.exposed_ns)
    made.estimate_ns = round(interval.estimate)
    made.interval_ns = (round(interval.low), round(interval.high))
    made.overlap_efficiency = round(1 - median(made.exposed_ns) / max(median(made.service_ns), 1), 4)
    if options.every_s is not None:
        each = (interval.estimate, interval.low, interval.high)
        low_mid_high = [round(value / (options.every_s * NS_PER_S), 6) for value in each]
        made.exposed_share = (low_mid_high[0], low_mid_high[1], low_mid_high[2])
    else:
        made.exposed_share = Unknown("how often it is saved was not said; --every says it")
    return made
