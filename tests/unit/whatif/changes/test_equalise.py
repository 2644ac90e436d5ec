"""Ranks are made equal: by work, to the mean of every step; by speed, to the others' median pace.

rank 0   ├─ 400 ─┤ ··········· all-reduce, 20 after the last ┤
rank 1   ├──────── 1,000 ────────┤ all-reduce ┤
"""

from __future__ import annotations

import pytest

from tests.build import Script
from tests.run_graphs import Run, replayed

OVERHEAD_US = 10 + 1 + 20 + 5  # until the kernel starts, until the all-reduce may, its transfer, the return


def _team(*compute_us: list[float], names: tuple[str, ...] = ("gemm",), rest: float = 50.0) -> Run:
    """Draw ranks with one kernel per name in each step; `compute_us[rank][step]` is the time of each."""
    world, steps = len(compute_us), len(compute_us[0])
    scripts = [Script(rank=r, base_ns=0, world_size=world, path=f"rank{r}.json") for r in range(world)]
    at = 0.0
    for step in range(steps):
        ends = []
        for script, own in zip(scripts, compute_us, strict=True):
            begins = at + 10
            for k, name in enumerate(names):
                script.kernel(begins, begins + own[step], script.launch(at + 5 * k, at + 5 * k + 3), name=name)
                begins += own[step] + 1
            ends.append(begins)
        done = max(ends) + 20
        for script, begins in zip(scripts, ends, strict=True):
            script.collective(begins, done, script.launch(at + 20, at + 23), stream=7)
            script.sync(at + 30, done + 5, name="cudaDeviceSynchronize")
            script.step(step, at, done + 5 + rest)
        at = done + 5 + rest
    return replayed(*scripts)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_work_is_spread_evenly_over_any_number_of_ranks(ranks: int) -> None:
    compute = [[400.0 + 300 * r] * 4 for r in range(ranks)]
    slowest, mean = 400.0 + 300 * (ranks - 1), 400 + 150 * (ranks - 1)

    assert _team(*compute).saving_us("--equalise work") == pytest.approx(slowest - mean, abs=0.01)


def test_work_is_spread_within_each_step_not_over_all_of_them() -> None:
    """The rank with more work changes from step to step: sums over the run are equal, and yet half is lost."""
    run = _team([400.0, 1000.0, 400.0, 1000.0], [1000.0, 400.0, 1000.0, 400.0])

    assert run.saving_us("--equalise work") == pytest.approx(300, abs=0.01)


@pytest.mark.parametrize(
    ("paces", "others_median"), [((400, 1000), 400), ((400, 500, 1000), 450), ((400, 500, 600, 1000), 500)]
)
def test_a_slow_rank_gets_the_others_median_pace(paces: tuple[int, ...], others_median: int) -> None:
    """Ranks that are slower than the others' median become as fast; who is then the slowest holds the rest up."""
    run = _team(*([float(pace)] * 4 for pace in paces))
    others = [sorted(p for q, p in enumerate(paces) if q != r) for r in range(len(paces))]
    after = [min(pace, _median(rest)) for pace, rest in zip(paces, others, strict=True)]
    assert after[-1] == others_median

    assert run.saving_us("--equalise speed") == pytest.approx(max(paces) - max(after), abs=0.01)


def _median(values: list[int]) -> float:
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def test_speed_is_compared_kernel_by_kernel() -> None:
    """Rank 1 runs two kinds of kernels; both are slower there, and both become as fast as on rank 0."""
    run = _team([300.0] * 4, [500.0] * 4, names=("gemm", "softmax"))

    assert run.saving_us("--equalise speed") == pytest.approx(400, abs=0.01)


def test_equal_ranks_gain_nothing() -> None:
    run = _team([400.0] * 4, [400.0] * 4)

    assert run.saving_us("--equalise work") == 0
    assert run.predict("--equalise speed").predicted_ns == run.predict("--equalise work").predicted_ns


def test_the_slow_rank_alone_may_be_named_as_well() -> None:
    run = _team([400.0] * 4, [1000.0] * 4)

    assert run.saving_us("--set rank:1&compute=0.4x") == run.saving_us("--equalise speed")
    assert run.saving_us("--set rank:0&compute=0.4x") == 0


def test_one_rank_alone_is_refused() -> None:
    script = Script(base_ns=0)
    for step in range(3):
        at = 1000.0 * step
        script.step(step, at, at + 1000)
        script.kernel(at + 10, at + 900, script.launch(at, at + 5))
        script.sync(at + 20, at + 905)

    assert "one rank alone" in replayed(script).predict("--equalise work").refused


def test_operators_on_threads_are_made_equal_where_there_is_no_device() -> None:
    run = _cpu_team([[400.0] * 4, [1000.0] * 4])

    assert run.saving_us("--equalise work") == pytest.approx(300, abs=1)
    assert run.saving_us("--equalise speed") == pytest.approx(600, abs=1)
    assert run.predict("--equalise work").after_ns["compute"] == pytest.approx(700_000, rel=0.01)
    assert run.predict("--equalise speed").after_ns["compute"] == pytest.approx(400_000, rel=0.01)


def test_what_was_made_equal_can_be_made_shorter() -> None:
    run = _cpu_team([[400.0] * 4, [1000.0] * 4])

    assert run.saving_us("--equalise work", "--set compute=0.5x") == pytest.approx(1000 - 350, abs=1)
    assert run.saving_us("--set compute=0.5x", "--equalise work") == pytest.approx(1000 - 350, abs=1)
    assert run.saving_us("--equalise speed", "--set compute=0.5x") == pytest.approx(1000 - 200, abs=1)


def _cpu_team(compute_us: list[list[float]]) -> Run:
    """Draw ranks that meet in gloo's all-reduce, 30 µs after the last of them came."""
    world = len(compute_us)
    scripts = [Script(rank=r, base_ns=0, world_size=world, path=f"rank{r}.json") for r in range(world)]
    at = 0.0
    for step in range(len(compute_us[0])):
        done = at + max(own[step] for own in compute_us) + 5 + 30
        for script, own in zip(scripts, compute_us, strict=True):
            script.op("aten::linear", at, at + own[step])
            issued = at + own[step]
            script.op("c10d::allreduce_", issued, issued + 3)
            script.span("gloo:all_reduce", issued + 5, done, thread="gloo")
            script.op("c10d::wait", issued + 4, done + 10)
            script.step(step, at, done + 60)
        at = done + 60
    return replayed(*scripts)


def test_what_takes_all_ranks_as_long_is_not_evened_out() -> None:
    """The optimizer runs behind the all-reduce, 300 on both ranks: only the 400 and 1,000 before it become 700.

    rank 0   ├─ 400 ─┤ ········ all-reduce ┤├─ adamw 300 ─┤
    rank 1   ├──── 1,000 ────┤ all-reduce  ┤├─ adamw 300 ─┤

    Scaled as a whole, 700 and 1,300 would become 1,000 each, of which 429 and 231 for the optimizer.
    """
    scripts = [Script(rank=r, base_ns=0, world_size=2, path=f"rank{r}.json") for r in range(2)]
    for step in range(4):
        at = 1500.0 * step
        for script, own in zip(scripts, (400.0, 1000.0), strict=True):
            script.kernel(at + 10, at + 10 + own, script.launch(at, at + 3))
            script.collective(at + 11 + own, at + 1031, script.launch(at + 20, at + 23), stream=7)
            script.kernel(at + 1032, at + 1332, script.launch(at + 25, at + 28), name="adamw_kernel")
            script.sync(at + 30, at + 1337, name="cudaDeviceSynchronize")
            script.step(step, at, at + 1500)
    run = replayed(*scripts)

    assert run.saving_us("--equalise work") == pytest.approx(300, abs=0.01)


def test_names_that_not_all_ranks_have_are_evened_out_together() -> None:
    """Rank 0 runs 400 under one name, rank 1 the 1,000 under another: 700 each, as if they had one name."""
    scripts = [Script(rank=r, base_ns=0, world_size=2, path=f"rank{r}.json") for r in range(2)]
    for step in range(4):
        at = 1200.0 * step
        for script, own, name in zip(scripts, (400.0, 1000.0), ("gemm_128", "gemm_256"), strict=True):
            script.kernel(at + 10, at + 10 + own, script.launch(at, at + 3), name=name)
            script.collective(at + 11 + own, at + 1031, script.launch(at + 20, at + 23), stream=7)
            script.sync(at + 30, at + 1036, name="cudaDeviceSynchronize")
            script.step(step, at, at + 1200)

    assert replayed(*scripts).saving_us("--equalise work") == pytest.approx(300, abs=0.01)
