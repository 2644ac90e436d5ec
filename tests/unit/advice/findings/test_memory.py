"""Memory that leaks and memory in pieces: found where they are true by construction, silent on healthy runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from longpole.advice.diagnose import diagnose
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.replays import replay_run, scene_of
from tests.trace_text import BASE_US, call, steps, write

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from longpole.advice.diagnose import Diagnosis
    from longpole.records.findings import CauseFinding

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
PERIOD_US = 100.0


class _Allocator:
    """Writes what an allocator holds as the profiler would."""

    def __init__(self, allocated: int, reserved: int, *, on_host: bool = False) -> None:
        self.allocated, self.reserved, self.on_host = allocated, reserved, on_host
        self.events: list[dict[str, Any]] = []

    def change(self, at_us: float, size: int, reserved: int | None = None) -> None:
        self.allocated += size
        self.reserved = max(self.reserved if reserved is None else reserved, self.allocated)
        args = {"Bytes": size, "Total Allocated": self.allocated, "Total Reserved": self.reserved}
        args |= {"Device Type": 0, "Device Id": -1} if self.on_host else {"Device Type": 1, "Device Id": 0}
        event = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 4200, "tid": 4200}
        self.events.append({**event, "ts": BASE_US + at_us, "args": args})


def _steps_of(kept: Sequence[int], *, on_host: bool = False, held: int = GIB, saw: int = 64 * MIB) -> _Allocator:
    """Let every step take and give back a saw, and keep something of it."""
    allocator = _Allocator(held, 2 * held, on_host=on_host)
    for number, size in enumerate(kept):
        at_us = number * PERIOD_US
        allocator.change(at_us + 10, saw)
        allocator.change(at_us + 20, size or 512)
        allocator.change(at_us + 50, -saw)
        allocator.change(at_us + 60, 0 if size else -512)
    return allocator


def _diagnose(folder: Path, *ranks: list[dict[str, Any]], n_steps: int = 8, capacity: int = 80 * GIB) -> Diagnosis:
    """Diagnose a job of small inference steps with some more events in each rank."""
    paths = [
        write(
            folder / f"rank{rank}.json",
            [*steps(n_steps), *events],
            rank,
            len(ranks),
            deviceProperties=[{"id": 0, "name": "H100", "totalGlobalMem": capacity}],
        )
        for rank, events in enumerate(ranks)
    ]
    return diagnose(scene_of(replay_run([str(path) for path in paths], ReportOptions(use_cache=False))))


def _trains(events: list[dict[str, Any]], n_steps: int = 8) -> list[dict[str, Any]]:
    """Make a training job of it: an optimizer steps at the end of each step."""
    name = "Optimizer.step#AdamW.step"
    optimizer = [
        {
            "ph": "X", "cat": "user_annotation", "name": name, "pid": 4200, "tid": 4200,
            "ts": BASE_US + number * PERIOD_US + 80, "dur": 10, "args": {},
        }
        for number in range(n_steps)
    ]  # fmt: skip
    return [*events, *optimizer]


def _of(diagnosis: Diagnosis, cause: str) -> CauseFinding | None:
    return next((finding for finding in diagnosis.findings if finding.cause == cause), None)


# ------------------------------------------------------------------------------------------------- leak


def test_memory_that_every_step_keeps_is_a_leak(tmp_path: Path) -> None:
    """What it adds per unit is exact, and so is when the device is full at its peak."""
    events = _steps_of([32 * MIB] * 8).events

    found = _of(_diagnose(tmp_path, _trains(events), capacity=2 * GIB), "leak")

    assert found is not None
    figures = {row.what: row.value for row in found.evidence}
    assert figures["bytes_per_unit"] == 32 * MIB
    assert figures["units_until_full"] == (2 * GIB - (GIB + 64 * MIB + 8 * 32 * MIB)) // (32 * MIB)
    assert found.says.startswith("memory of cuda:0 grows by 33.6 MB per unit over the last 8 units, and is full after ")
    assert found.evidence_grade == "recorded"


def test_a_leak_costs_nothing_and_is_never_the_long_pole(tmp_path: Path) -> None:
    diagnosis = _diagnose(tmp_path, _trains(_steps_of([32 * MIB] * 8).events))

    found = _of(diagnosis, "leak")

    assert found is not None
    assert (found.cost_ns_per_unit, found.cost_share, found.ceiling_ns, found.basis) == (0, 0.0, 0, "ledger")
    assert (found.cost_statistic, found.once, found.what_if) == ("median", False, [])
    assert diagnosis.long_pole != found.id


@pytest.mark.parametrize(
    "kept",
    [
        [0] * 8,
        [512 * MIB, 256 * MIB, 0, 0, 0, 0, 0, 0],
        [512 * MIB, 256 * MIB, 64 * MIB, 32 * MIB, 0, 0, 0, 0],
        [512 * MIB, 256 * MIB, 128 * MIB, 64 * MIB, 32 * MIB, 16 * MIB, 8 * MIB, 4 * MIB],
        [32 * MIB, -32 * MIB] * 4,
        [0, 0, 0, 0, 0, 0, 32 * MIB, 32 * MIB],
        [MIB // 2] * 8,
        [32 * MIB, 32 * MIB, 32 * MIB, 32 * MIB, 32 * MIB, 32 * MIB, 32 * MIB, -224 * MIB],
    ],
    ids=["steady", "warm-up", "longer warm-up", "cache that fills", "saw", "too few", "too little", "given back"],
)
def test_healthy_memory_is_silent(tmp_path: Path, kept: list[int]) -> None:
    diagnosis = _diagnose(tmp_path, _trains(_steps_of(kept).events))

    assert _of(diagnosis, "leak") is None
    assert _of(diagnosis, "fragmentation") is None


def test_a_jump_in_the_first_step_does_not_hide_the_slope_behind_it(tmp_path: Path) -> None:
    found = _of(_diagnose(tmp_path, _trains(_steps_of([GIB, GIB, *[16 * MIB] * 6]).events)), "leak")

    assert found is not None
    assert found.evidence[0].value == 16 * MIB
    assert len(found.units) == 7


def test_growth_below_a_thousandth_of_what_is_held_is_silent(tmp_path: Path) -> None:
    assert _of(_diagnose(tmp_path, _trains(_steps_of([32 * MIB] * 8, held=64 * GIB).events)), "leak") is None
    assert _of(_diagnose(tmp_path, _trains(_steps_of([96 * MIB] * 8, held=64 * GIB).events)), "leak") is not None


def test_memory_of_the_host_says_so(tmp_path: Path) -> None:
    """The same from step to step, less than a device's memory would have to grow by."""
    found = _of(_diagnose(tmp_path, _trains(_steps_of([128 * KIB] * 8, on_host=True).events)), "leak")

    assert found is not None
    assert found.says == "host memory grows by 131 kB per unit over the last 8 units"


def test_uneven_growth_of_the_host_must_be_larger(tmp_path: Path) -> None:
    uneven = [128 * KIB, 192 * KIB] * 4

    assert _of(_diagnose(tmp_path, _trains(_steps_of(uneven, on_host=True).events)), "leak") is None


def test_the_ranks_that_leak_are_named(tmp_path: Path) -> None:
    healthy, leaking = _steps_of([0] * 8), _steps_of([32 * MIB] * 8)

    found = _of(_diagnose(tmp_path, _trains(healthy.events), _trains(leaking.events)), "leak")

    assert found is not None
    assert found.ranks == [1]
    assert found.says.endswith(" on rank 1")


def test_device_and_host_may_both_grow(tmp_path: Path) -> None:
    both = [*_steps_of([32 * MIB] * 8).events, *_steps_of([4 * MIB] * 8, on_host=True).events]

    found = _of(_diagnose(tmp_path, _trains(both)), "leak")

    assert found is not None
    assert "memory of cuda:0 grows by" in found.says
    assert "and host memory grows by" in found.says


def test_in_inference_it_may_be_the_sequence_that_grows(tmp_path: Path) -> None:
    found = _of(_diagnose(tmp_path, _steps_of([32 * MIB] * 8).events), "leak")

    assert found is not None
    assert found.evidence_grade == "inferred"
    assert "a cache that grows with the sequence" in found.says


# ---------------------------------------------------------------------------------------- fragmentation


def _pieces(spare: int, *, reserved: int = 40 * GIB, retries: bool) -> list[dict[str, Any]]:
    """Hold all but `spare` of what is reserved at the peak of each step; segments go back and come again."""
    allocator = _Allocator(reserved - spare - 4 * GIB, reserved)
    for number in range(8):
        at_us = number * PERIOD_US
        allocator.change(at_us + 10, 2 * GIB, reserved - (2 * GIB if retries else 0))
        allocator.change(at_us + 12, 2 * GIB, reserved)
        allocator.change(at_us + 50, -4 * GIB)
    return _trains(allocator.events)


def test_pieces_that_make_the_allocator_give_back_and_ask_again(tmp_path: Path) -> None:
    """In the first step it is not known what was reserved before."""
    diagnosis = _diagnose(tmp_path, _pieces(10 * GIB, retries=True))

    found = _of(diagnosis, "fragmentation")
    assert found is not None
    assert "25% of what cuda:0 has reserved (10.7 GB of 42.9 GB) is free in pieces" in found.says
    assert "gives memory back to ask for it again in 7 units" in found.says
    assert (found.cost_ns_per_unit, found.evidence_grade) == (0, "recorded")
    assert diagnosis.long_pole != found.id


def test_pieces_on_a_device_that_is_all_but_full(tmp_path: Path) -> None:
    found = _of(_diagnose(tmp_path, _pieces(10 * GIB, retries=False), capacity=42 * GIB), "fragmentation")

    assert found is not None
    assert "95% of the device is reserved" in found.says
    assert found.evidence_grade == "inferred"


def test_pieces_without_harm_are_a_cache(tmp_path: Path) -> None:
    assert _of(_diagnose(tmp_path, _pieces(10 * GIB, retries=False)), "fragmentation") is None


def test_harm_without_pieces_is_a_lack_of_memory(tmp_path: Path) -> None:
    """Half of the threshold."""
    assert _of(_diagnose(tmp_path, _pieces(4 * GIB, retries=True), capacity=42 * GIB), "fragmentation") is None


@pytest.mark.parametrize(
    ("name", "harms"), [("cudaFree", True), ("hipHostFree", False), ("cudaFreeHost", False), ("empty_cache", False)]
)
def test_releases_that_the_totals_hide_show_as_calls(tmp_path: Path, name: str, harms: bool) -> None:
    """The driver gets a segment back and gives a larger one before the next event is written."""
    frees = [call(number * PERIOD_US + 11, 1, name, correlation=900 + number) for number in range(8)]

    found = _of(_diagnose(tmp_path, [*_pieces(10 * GIB, retries=False), *frees]), "fragmentation")

    assert (found is not None) is harms


def test_a_program_that_empties_its_cache_gives_back_by_itself(tmp_path: Path) -> None:
    frees = [call(number * PERIOD_US + 60, 2, "empty_cache", correlation=900 + number) for number in range(8)]

    assert _of(_diagnose(tmp_path, [*_pieces(10 * GIB, retries=True), *frees]), "fragmentation") is None
