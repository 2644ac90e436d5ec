"""Gradients are ready when what was launched for them has run, and buckets are what their hooks issued."""

from __future__ import annotations

from longpole.analyses.gradients import ACCUMULATE, ENGINE, GradientPass, UnitSpan, gradient_passes
from tests.build import Script, measure

UNIT = UnitSpan("ProfilerStep#1", 0, 1_000_000)


def _passes(script: Script, *units: UnitSpan) -> list[GradientPass]:
    return gradient_passes(script.timeline(), units or (UNIT,), measure(script).instances)


def _gradient(script: Script, at: float, kernel: tuple[float, float], *, shapes: str = "[[2, 3]]") -> None:
    """A gradient that is computed by one kernel, launched before it is accumulated."""
    script.backward(f"{ENGINE}MmBackward0", at, at + 2)
    call = script.launch(at, at + 1, thread="autograd")
    script.kernel(*kernel, call)
    script.backward(f"{ENGINE}{ACCUMULATE}", at + 2, at + 9)
    script.op(ACCUMULATE, at + 2, at + 4, thread="autograd", shapes=shapes)


def _bucket(script: Script, at: float, ran: tuple[float, float]) -> None:
    """An all-reduce from within the hook of the gradient that is accumulated from `at` - 5 on."""
    script.op("nccl:all_reduce", at, at + 3, thread="autograd")
    script.collective(*ran, script.launch(at + 1, at + 2, thread="autograd"))


def test_a_gradient_is_ready_when_its_kernels_have_run_and_not_when_the_host_says_so() -> None:
    """The host runs ahead:  host  g g h    device  ├ 100-300 ┤├ 300-500 ┤   bucket  ├ 500-620 ┤."""
    script = Script()
    script.step(1, 0, 1000)
    _gradient(script, 10, (100, 300))
    _gradient(script, 30, (300, 500), shapes="[[]]")
    _bucket(script, 35, (500, 620))

    (found,) = _passes(script)

    assert found.start_ns == 100_000
    assert found.ready_ns.tolist() == [300_000, 500_000]
    assert found.elements.tolist() == [6, 1]
    (bucket,) = found.buckets
    assert (bucket.gradients, bucket.ready_ns, bucket.start_ns, bucket.end_ns) == (2, 500_000, 500_000, 620_000)
    assert found.exposed_ns == 120_000


def test_a_collective_is_no_computing_that_a_gradient_waits_for() -> None:
    """The first bucket still runs when the second gradient's kernel has ended."""
    script = Script()
    script.step(1, 0, 1000)
    _gradient(script, 10, (100, 200))
    _bucket(script, 15, (200, 900))
    _gradient(script, 30, (200, 300))
    _bucket(script, 35, (900, 950))

    (found,) = _passes(script)

    assert found.ready_ns.tolist() == [200_000, 300_000]
    assert [bucket.gradients for bucket in found.buckets] == [1, 2]
    assert found.exposed_ns == 650_000


def test_an_all_reduce_outside_a_gradients_hook_is_no_bucket() -> None:
    """Batch norm's statistics, a loss that is averaged: these are all-reduces too."""
    script = Script()
    script.step(1, 0, 1000)
    _gradient(script, 10, (100, 200))
    _bucket(script, 50, (300, 400))

    assert _passes(script) == []


def test_without_a_device_a_gradient_is_ready_when_it_is_accumulated() -> None:
    script = Script()
    script.step(1, 0, 1000)
    script.backward(f"{ENGINE}{ACCUMULATE}", 10, 30)
    script.op(ACCUMULATE, 10, 14, thread="autograd", shapes="[[5]]")
    script.op("c10d::allreduce_", 15, 17, thread="autograd")
    script.span("gloo:all_reduce", 20, 90, thread="gloo")

    (found,) = _passes(script)

    assert found.ready_ns.tolist() == [14_000]
    assert [(b.gradients, b.ready_ns, b.start_ns, b.end_ns) for b in found.buckets] == [(1, 15_000, 20_000, 90_000)]


def test_units_without_a_reduction_have_no_pass() -> None:
    """Gradient accumulation: only the last of several backward passes is reduced."""
    script = Script()
    script.step(1, 0, 500)
    script.step(2, 500, 1000)
    _gradient(script, 10, (100, 200))
    _gradient(script, 510, (600, 700))
    _bucket(script, 515, (700, 800))
    units = UnitSpan("ProfilerStep#1", 0, 500_000), UnitSpan("ProfilerStep#2", 500_000, 1_000_000)

    assert [found.unit for found in _passes(script, *units)] == ["ProfilerStep#2"]


def test_a_shape_that_was_not_recorded_is_not_known() -> None:
    script = Script()
    script.step(1, 0, 1000)
    _gradient(script, 10, (100, 200), shapes="")
    _bucket(script, 15, (200, 300))

    (found,) = _passes(script)

    assert found.elements.tolist() == [-1]
    assert [bucket.size_bytes for bucket in found.buckets] == [-1]
