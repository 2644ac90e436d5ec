"""Steps of the user's own, marked with `@benchmark`: samples, checks, seeds, and what is left of one that fails."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

import longpole
from longpole.bench.process_run import Command, ProcessResult, run_process
from longpole.bench.step import MARK, StepOptions, benchmark
from longpole.bench.step_process import SAMPLE_MIN_NS, SAMPLES_MAX, SAMPLES_MIN, Sampler
from longpole.records.run_record import RecordCheck
from longpole.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
import random, sys
from longpole import benchmark

@benchmark(warmup=2, samples=3, items=8, item_kind="token", setup=lambda: [random.random()], correct=lambda r: r > 0)
def step(state):
    assert "numpy" not in sys.modules and "polars" not in sys.modules
    return sum(range(100)) + state[0]

@benchmark(samples=4)
def half():
    half.calls = getattr(half, "calls", 0) + 1
    if half.calls > 5:
        raise ValueError("out of data, password=abcdefgh1")
    import time; time.sleep(0.002)

def wrong_later(result):
    wrong_later.asked = getattr(wrong_later, "asked", 0) + 1
    assert wrong_later.asked < 2, "the sum drifted"

@benchmark(samples=2, correct=wrong_later)
def drifting():
    pass

@benchmark(correct=lambda result: False)
def wrong():
    pass

def plain():
    pass
"""


def run_step(folder: Path, name: str, **env: str) -> ProcessResult:
    (folder / "bench_step.py").write_text(FILE)
    argv = [sys.executable, "-m", "longpole.bench.step_process", f"{folder}/bench_step.py::{name}"]
    return run_process(Command(argv=argv, env=env), Settings())


def test_a_marked_step_is_sampled_after_its_warm_up_and_its_result_checked(tmp_path: Path) -> None:
    result = run_step(tmp_path, "step", LONGPOLE_SEED="7")

    assert result.process.failure == ""
    assert [unit.left_out for unit in result.units] == ["warm-up", "warm-up", "", "", ""]
    assert all(isinstance(unit.period_ns, int) and unit.period_ns == unit.wall_ns for unit in result.units)
    assert result.checks == [RecordCheck("correct", "passed"), RecordCheck("correct", "passed")]
    assert result.facts["seeds"] == {"random": 7}
    assert (result.facts["items"], result.facts["item_kind"]) == (8, "token")
    assert result.facts["calls_per_sample"] > 1, "a microsecond is no sample"


def test_a_step_that_fails_half_way_keeps_its_samples(tmp_path: Path) -> None:
    result = run_step(tmp_path, "half", LONGPOLE_BENCH_WARMUP="1")

    assert result.process.failure == "the step raised ValueError: out of data, password=[redacted]"
    assert [unit.left_out for unit in result.units] == ["warm-up", "", ""]


def test_a_wrong_result_leaves_no_time_that_counts(tmp_path: Path) -> None:
    result = run_step(tmp_path, "wrong")

    assert result.process.failure == "check correct failed: the step's result is wrong"
    assert [unit.left_out for unit in result.units] == ["failed"]
    assert result.checks == [RecordCheck("correct", "failed", "the step's result is wrong")]


def test_a_result_that_goes_wrong_later_is_noticed(tmp_path: Path) -> None:
    result = run_step(tmp_path, "drifting")

    assert result.process.failure == "check wrong_later failed: the sum drifted"


@pytest.mark.parametrize(
    ("name", "says"), [("plain", ""), ("stepp", "no function is called stepp; marked are drifting, half, step, wrong")]
)
def test_an_unmarked_function_is_a_step_too_and_a_missing_one_is_named(tmp_path: Path, name: str, says: str) -> None:
    result = run_step(tmp_path, name, LONGPOLE_BENCH_SAMPLES="1", LONGPOLE_BENCH_WARMUP="0")

    assert result.process.failure.endswith(says)
    assert bool(result.process.failure) == bool(says)


def test_the_mark_changes_nothing() -> None:
    def double(number: int) -> int:
        return 2 * number

    assert longpole.benchmark is benchmark
    assert benchmark(double) is double
    assert getattr(double, MARK) == StepOptions()
    assert benchmark(warmup=0, items=3)(double)(4) == 8
    assert getattr(double, MARK) == StepOptions(warmup=0, items=3)


@pytest.mark.parametrize("options", [{"warmup": -1}, {"samples": 0}, {"items": 0}])
def test_numbers_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        benchmark(**options)


class FakeClock:
    """Moves on by what a call takes, each time that it is asked."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


def sampler(call_ns: int) -> Sampler:
    clock = FakeClock()

    def call() -> None:
        clock.now_ns += call_ns

    return Sampler(call, clock)


@pytest.mark.parametrize(
    ("call_ns", "calls"), [(2 * SAMPLE_MIN_NS, 1), (SAMPLE_MIN_NS // 3, 4), (SAMPLE_MIN_NS // 1000, 1024)]
)
def test_a_sample_holds_so_many_calls_that_a_clock_can_tell(call_ns: int, calls: int) -> None:
    found = sampler(call_ns)
    found.calibrate()

    line = found.sample()

    assert (found.calls, line.calls) == (calls, calls)
    assert line.duration_ns == calls * call_ns


@pytest.mark.parametrize(("call_ns", "samples"), [(1_000_000, SAMPLES_MAX), (50_000_000, 20), (10**10, SAMPLES_MIN)])
def test_as_many_samples_are_taken_as_fit_into_a_second(call_ns: int, samples: int) -> None:
    found = sampler(call_ns)
    found.calibrate()

    assert found.fitting() == samples
