"""The tables of a device row: kernels, operators, copies, and idle time by what ran meanwhile."""

from __future__ import annotations

import pytest

from longpole.analyses.top import ROWS_KEPT
from tests.build import ALL_REDUCE, COPY_NAMES, LOADER, Script, measure


def test_kernels_are_listed_by_name_the_longest_first() -> None:
    """`gemm` runs twice at once, so its sum is more than its union.

    gemm   ├──────────┤
    gemm         ├─────────┤
    relu                     ├──┤
    """
    script = Script()
    script.step(0, 0, 200)
    script.kernel(0, 60)
    script.kernel(40, 100, stream=8)
    script.kernel(110, 130, name="relu_kernel")

    gemm, relu = measure(script).rows[0].kernels

    assert (gemm.name, gemm.count, gemm.sum_ns, gemm.mean_ns, gemm.union_ns) == (
        "gemm_kernel",
        2,
        120_000,
        60_000,
        100_000,
    )
    assert (relu.name, relu.count, relu.sum_ns) == ("relu_kernel", 1, 20_000)
    assert (gemm.share, relu.share) == pytest.approx((100 / 120, 20 / 120))


def test_kernels_outside_the_units_do_not_count_and_those_on_the_edge_count_in_part() -> None:
    script = Script()
    script.step(0, 100, 200)
    script.kernel(0, 50)
    script.kernel(80, 130)
    script.kernel(190, 250)

    (row,) = measure(script).rows[0].kernels

    assert (row.count, row.sum_ns) == (2, 40_000)


def test_a_kernel_says_what_it_is_charged_to_and_where_it_stands() -> None:
    script = Script()
    script.step(0, 0, 200)
    script.collective(40, 100)

    (row,) = measure(script).rows[0].kernels

    assert (row.name, row.object) == (ALL_REDUCE, "collective")
    assert (row.where.start_ns, row.where.event, row.where.track) == (40_000, 1, "stream 13")


def test_a_table_has_a_bounded_number_of_rows() -> None:
    script = Script()
    for number in range(ROWS_KEPT + 5):
        script.kernel(10 * number, 10 * number + 5 + number / 100, name=f"kernel_{number:03}")

    rows = measure(script).rows[0].kernels

    assert len(rows) == ROWS_KEPT
    assert rows[0].name == f"kernel_{ROWS_KEPT + 4:03}"


def test_operators_own_the_device_time_that_they_launch_themselves() -> None:
    """Not what an operator inside them launches.

    aten::linear   ├────────────────────┤
    aten::addmm        ├───────────┤
    launches        L1     L2
    """
    script = Script()
    script.step(0, 0, 200)
    script.op("aten::linear", 0, 60, shapes="[[4, 8]]")
    script.op("aten::addmm", 20, 50, shapes="[[4, 4]]")
    script.kernel(70, 80, script.launch(5, 8))
    script.kernel(80, 110, script.launch(30, 35))

    addmm, linear = measure(script).rows[0].operators

    assert (addmm.name, addmm.device_ns, addmm.share) == ("aten::addmm", 30_000, 0.75)
    assert (linear.name, linear.device_ns, linear.sum_ns) == ("aten::linear", 10_000, 60_000)
    assert [(shape.input_dims, shape.count, shape.device_ns) for shape in addmm.shapes] == [("[[4, 4]]", 1, 30_000)]


def test_operators_are_united_over_threads() -> None:
    script = Script()
    script.step(0, 0, 200)
    script.op("aten::mul", 0, 60)
    script.op("aten::mul", 40, 100, thread="other")

    (row,) = measure(script).rows[0].operators

    assert (row.count, row.sum_ns, row.union_ns) == (2, 120_000, 100_000)


def test_copies_are_listed_by_name_and_by_what_they_carry() -> None:
    """1 MiB in 10 µs is 104.9 GB/s, in decimal gigabytes."""
    script = Script()
    script.step(0, 0, 200)
    script.copy("htod", 20, 30, script.call("cudaMemcpyAsync", 0, 5))
    script.span("save_checkpoint", 30, 60)
    script.copy("htod", 60, 65, script.call("cudaMemcpyAsync", 40, 45))

    first, second = measure(script).rows[0].copies

    assert (first.name, first.direction, first.object, first.count) == (COPY_NAMES["htod"], "htod", "input", 1)
    assert (first.size_bytes, first.sum_ns) == (1 << 20, 10_000)
    assert first.gb_per_s == pytest.approx(104.8576)
    assert second.object == "output"


def test_the_rate_of_copies_counts_only_those_that_say_size_and_time() -> None:
    """Case B005: a copy of no time has an infinite rate, which is no rate."""
    script = Script()
    script.step(0, 0, 200)
    script.copy("htod", 20, 30, size_bytes=1000)
    script.copy("htod", 40, 40, size_bytes=1_000_000)
    script.copy("htod", 60, 90, size_bytes=-1)

    (row,) = measure(script).rows[0].copies

    assert (row.count, row.size_bytes, row.gb_per_s) == (3, 1_001_000, 0.1)


def test_copies_of_which_none_says_its_size_have_no_rate() -> None:
    script = Script()
    script.step(0, 0, 200)
    script.copy("htod", 20, 30, size_bytes=-1)

    (row,) = measure(script).rows[0].copies

    assert (row.size_bytes, row.gb_per_s) == (0, None)


def test_idle_time_is_listed_by_what_ran_meanwhile_on_any_thread() -> None:
    """Names count up to their first `#`, spans of one name once, the markers of units not at all."""
    script = Script()
    script.step(0, 0, 200)
    script.kernel(0, 50, script.launch(0, 1))
    script.span(LOADER, 40, 100)
    script.span("enumerate(DataLoader)#Other.__next__", 80, 120, thread="other")
    script.span("save_checkpoint", 150, 160)

    rows = {row.name: (row.idle_ns, row.count) for row in measure(script).rows[0].activities}

    assert rows == {"enumerate(DataLoader)": (70_000, 2), "save_checkpoint": (10_000, 1)}
