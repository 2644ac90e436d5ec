"""Who gets an instant in which the device runs something, and what a copy carries (DESIGN 3.3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from longpole.digest.digest import Selection, digest
from longpole.settings import Settings
from longpole.timeline.columns import Kind
from longpole.vocabulary.objects import OBJECTS
from tests.build import (
    COPY_NAMES,
    GC,
    LOADER,
    OPTIMIZER,
    VOCABULARY,
    DeviceSpan,
    Script,
    cut,
    exposed_us,
    measure,
    to_ns,
    units,
)


def _busy(script: Script) -> list[tuple[float, float, str]]:
    found = cut(script)
    return [line for line, reason in zip(found.lines(), found.pieces.reason.tolist(), strict=True) if reason < 0]


def _freight(script: Script) -> str:
    """Return what the record's last device span is charged to."""
    row = cut(script).row
    return OBJECTS[int(row.object[-1])]


# --- rungs --------------------------------------------------------------------------------------------------------


def test_compute_wins_over_a_collective_and_both_over_a_copy() -> None:
    """compute     ├──── k1 ────┤        ├ k2 ┤

    collective        ├──────── c1 ───────────┤
    copy                                    ├── m1 ──┤
    """
    script = Script()
    script.kernel(0, 40)
    script.kernel(70, 90, stream=8)
    script.collective(20, 100)
    script.copy("htod", 80, 120, stream=9)

    assert _busy(script) == [
        (0, 40, "compute"),
        (40, 70, "collective"),
        (70, 90, "compute"),
        (90, 100, "collective"),
        (100, 120, "input"),
    ]


def test_kernels_that_overlap_count_once() -> None:
    """Unions, never sums: also on one stream."""
    script = Script()
    script.kernel(0, 40)
    script.kernel(10, 30)
    script.kernel(20, 60, stream=8)

    assert exposed_us(script) == {"compute": 60}


def test_a_copy_under_a_kernel_exposes_only_its_ends() -> None:
    script = Script()
    script.copy("htod", 0, 50)
    script.kernel(10, 40, stream=8)

    assert exposed_us(script) == {"input": 20, "compute": 30}


def test_of_copies_that_run_at_once_input_goes_before_output() -> None:
    script = Script()
    script.copy("dtoh", 0, 50)
    script.copy("htod", 20, 40, stream=8)

    assert _busy(script) == [(0, 20, "output"), (20, 40, "input"), (40, 50, "output")]


def test_devices_do_not_hide_each_others_work() -> None:
    """Figures are per device, never summed over devices."""
    script = Script()
    script.kernel(0, 40, device=0)
    script.kernel(60, 100, device=1)

    assert [units(measure(script), row)[0].ledger.device.busy_ns for row in (0, 1)] == [40_000, 40_000]


def test_synchronisation_rows_are_no_work() -> None:
    script = Script()
    script.kernel(0, 40)
    script.kernel(60, 100)
    script.sync_row(0, 100)

    assert exposed_us(script) == {"compute": 80, "unknown": 20}


def test_a_fused_kernel_computes_and_serves_the_collective() -> None:
    """Charged to compute, counted in the collective's service."""
    script = Script()
    script.kernel(0, 40, name="void flashinfer::gemm_allreduce_kernel<float>(float*)")

    objects = units(measure(script))[0].ledger.objects

    assert (objects["compute"].exposed_ns, objects["collective"].exposed_ns) == (40_000, 0)
    assert (objects["collective"].service_ns, objects["collective"].hidden_ns) == (40_000, 40_000)


def test_a_kernel_that_only_looks_like_a_collective_computes() -> None:
    script = Script()
    script.kernel(0, 40, name="triton_poi_fused_all_gather_into_tensor_view_wait_tensor_3")

    assert exposed_us(script) == {"compute": 40}


def test_point_to_point_transfers_are_collectives() -> None:
    script = Script()
    script.kernel(0, 40, name="ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)")

    assert exposed_us(script) == {"collective": 40}


# --- freight by direction -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "carries"),
    [("htod", "input"), ("dtoh", "output"), ("dtod", "compute"), ("memset", "compute"), ("unknown", "unknown")],
)
def test_a_copy_carries_what_its_direction_implies(way: str, carries: str) -> None:
    script = Script()
    script.copy(way, 20, 60, script.call("cudaMemcpyAsync", 0, 5))

    assert _freight(script) == carries


def test_a_copy_within_the_device_is_compute_but_on_the_third_rung() -> None:
    """A collective at the same time goes before it."""
    script = Script()
    script.copy("dtod", 0, 50)
    script.collective(20, 40)

    device = units(measure(script))[0].ledger.device

    assert _busy(script) == [(0, 20, "compute"), (20, 40, "collective"), (40, 50, "compute")]
    assert (device.compute_ns, device.copy_ns, device.copy_exposed_ns) == (0, 50_000, 30_000)


# --- freight by activity ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["htod", "dtoh", "dtod", "memset", "unknown"])
@pytest.mark.parametrize(
    ("activity", "carries"),
    [
        (LOADER, "input"),
        ("load_checkpoint", "artifact"),
        ("swap_out", "state"),
        ("save_checkpoint", "output"),
    ],
)
def test_a_copy_carries_what_the_activity_around_its_launch_moves(way: str, activity: str, carries: str) -> None:
    """Whatever its direction: the staging copies of a checkpoint are output."""
    script = Script()
    script.span(activity, 0, 30)
    script.op("aten::copy_", 5, 20)
    script.copy(way, 20, 60, script.call("cudaMemcpyAsync", 10, 15))

    assert _freight(script) == carries


def test_the_innermost_activity_around_the_launch_decides() -> None:
    script = Script()
    script.span("save_checkpoint", 0, 30)
    script.span("swap_in", 5, 20)
    script.copy("htod", 20, 60, script.call("cudaMemcpyAsync", 10, 15))

    assert _freight(script) == "state"


def test_an_activity_on_another_thread_decides_nothing() -> None:
    script = Script()
    script.span("save_checkpoint", 0, 30, thread="saver")
    script.copy("htod", 20, 60, script.call("cudaMemcpyAsync", 10, 15))

    assert _freight(script) == "input"


def test_an_activity_that_runs_when_the_copy_does_decides_nothing() -> None:
    """It is the launch that counts, not the time of the copy."""
    script = Script()
    script.copy("htod", 20, 60, script.call("cudaMemcpyAsync", 0, 5))
    script.span("save_checkpoint", 15, 70)

    assert _freight(script) == "input"


@pytest.mark.parametrize("way", ["htod", "dtoh"])
def test_copies_of_the_optimizer_move_its_state(way: str) -> None:
    script = Script()
    script.span(OPTIMIZER, 0, 30)
    script.op("aten::copy_", 5, 20)
    script.copy(way, 20, 60, script.call("cudaMemcpyAsync", 10, 15))

    assert _freight(script) == "state"


@pytest.mark.parametrize("way", ["htod", "dtoh"])
@pytest.mark.parametrize("call", ["FSDP::pre_forward (layers.3)", "PartitionedParameterCoordinator.fetch_sub_module"])
def test_copies_inside_the_calls_of_sharding_move_state(way: str, call: str) -> None:
    """Parameters that a sharded model keeps on the host come to the device before each layer: no input, no output."""
    script = Script()
    script.span(call, 0, 30)
    script.op("aten::copy_", 5, 20)
    script.copy(way, 20, 60, script.call("cudaMemcpyAsync", 10, 15))

    assert _freight(script) == "state"


def test_an_activity_inside_the_calls_of_sharding_decides() -> None:
    script = Script()
    script.span("FSDP::pre_forward (layers.3)", 0, 30)
    script.span("save_checkpoint", 5, 20)
    script.copy("dtoh", 20, 60, script.call("cudaMemcpyAsync", 10, 15))

    assert _freight(script) == "output"


def test_what_moves_the_batch_in_front_of_a_sharded_model_is_input() -> None:
    script = Script()
    script.span("FSDP::root_pre_forward", 0, 30)
    script.copy("htod", 20, 60, script.call("cudaMemcpyAsync", 10, 15))

    assert _freight(script) == "input"


def test_a_memset_of_the_optimizer_is_compute() -> None:
    script = Script()
    script.span(OPTIMIZER, 0, 30)
    script.copy("memset", 20, 60, script.call("cudaMemsetAsync", 10, 15))

    assert _freight(script) == "compute"


# --- read-outs ----------------------------------------------------------------------------------------------------


def _readout(size_bytes: int = 4) -> Script:
    """`loss.item()`: a copy of four bytes down, and a call that waits for it.

    host     ├ cudaMemcpyAsync ┤├ cudaStreamSynchronize ┤
    device                          ├ copy ┤
    """
    script = Script()
    script.copy("dtoh", 30, 32, script.call("cudaMemcpyAsync", 0, 10), size_bytes=size_bytes)
    script.sync(10, 33)
    return script


def test_a_small_copy_down_that_a_blocking_call_follows_is_a_read_out() -> None:
    """Charged to the host, for it is the program that asked."""
    assert _freight(_readout()) == "host"


def test_a_read_out_holds_at_most_4_kib() -> None:
    assert _freight(_readout(4096)) == "host"
    assert _freight(_readout(4097)) == "output"


def test_a_copy_that_does_not_say_its_size_is_no_read_out() -> None:
    assert _freight(_readout(-1)) == "output"


def test_a_copy_that_another_call_follows_is_no_read_out() -> None:
    script = Script()
    script.copy("dtoh", 30, 32, script.call("cudaMemcpyAsync", 0, 10), size_bytes=4)
    script.launch(11, 13)
    script.sync(14, 33)

    assert _freight(script) == "output"


def test_a_blocking_call_of_another_thread_makes_no_read_out() -> None:
    script = Script()
    script.copy("dtoh", 30, 32, script.call("cudaMemcpyAsync", 0, 10), size_bytes=4)
    script.sync(10, 33, thread="other")

    assert _freight(script) == "output"


def test_a_copy_whose_own_call_waits_for_it_is_a_read_out() -> None:
    """`cudaMemcpy`, or one from pageable memory, returns when the copy is done."""
    script = Script()
    script.copy("dtoh", 30, 32, script.call("cudaMemcpy", 0, 33), size_bytes=4)

    assert _freight(script) == "host"


def test_the_drivers_call_inside_the_runtimes_is_not_what_follows_it() -> None:
    """Runtime  ├── cudaMemcpyAsync ──┤├ cudaStreamSynchronize ┤

    driver       ├ cuMemcpyDtoHAsync ┤
    """
    script = _readout()
    script.call("cuMemcpyDtoHAsync_v2", 1, 9)

    assert _freight(script) == "host"


def test_a_read_out_inside_an_activity_belongs_to_the_activity() -> None:
    script = _readout()
    script.span("log_metrics", 0, 40)

    assert _freight(script) == "output"


def test_a_read_out_inside_the_optimizer_is_still_one() -> None:
    """The gradient scaler asks whether an overflow was found."""
    script = _readout()
    script.span(OPTIMIZER, 0, 40)

    assert _freight(script) == "host"


def test_a_copy_that_was_launched_by_no_known_call_is_no_read_out() -> None:
    script = Script()
    script.copy("dtoh", 30, 32, size_bytes=4)

    assert _freight(script) == "output"


def test_a_record_of_operators_alone_has_no_read_out() -> None:
    """Some exporters link a span to an operator, and write no runtime calls at all."""
    script = Script()
    script.copy("dtoh", 30, 32, script.op("aten::item", 0, 10), size_bytes=4)

    assert _freight(script) == "output"


def test_the_bound_of_a_read_out_is_a_setting() -> None:
    row = cut(_readout(8), Settings(readout_max_bytes=4)).row

    assert OBJECTS[int(row.object[-1])] == "output"


# --- stages of busy time ------------------------------------------------------------------------------------------


def test_a_kernel_has_the_stage_of_the_operator_that_launched_it_whenever_it_runs() -> None:
    """host     ├ linear ┤          ├──── optimizer ────┤

    device                                ├─ k: forward ─┤
    """
    script = Script()
    script.op("aten::linear", 0, 20)
    script.kernel(60, 90, script.launch(10, 15))
    script.span(OPTIMIZER, 50, 100)

    stages = units(measure(script))[0].stages

    assert stages["forward"].busy_ns == 30_000


def test_a_kernel_without_a_known_launch_has_no_stage() -> None:
    script = Script()
    script.op("aten::linear", 0, 100)
    script.kernel(60, 90)

    assert units(measure(script))[0].stages["other"].busy_ns == 30_000


def test_of_kernels_that_run_at_once_the_first_one_decides_the_stage() -> None:
    script = Script()
    script.op("aten::linear", 0, 10)
    script.span(OPTIMIZER, 20, 30)
    script.kernel(40, 80, script.launch(2, 4))
    script.kernel(50, 90, script.launch(22, 24), stream=8)

    stages = units(measure(script))[0].stages

    assert (stages["forward"].busy_ns, stages["optimizer"].busy_ns) == (40_000, 10_000)


def test_a_collection_around_a_copy_is_no_activity() -> None:
    script = Script()
    script.frame(GC, 0, 30)
    script.copy("htod", 20, 60, script.call("cudaMemcpyAsync", 10, 15))

    assert _freight(script) == "input"


@pytest.mark.parametrize("device_type", ["npu", "mtia"])
def test_where_exporters_write_no_category_a_copy_is_known_by_its_name(device_type: str) -> None:
    script = Script()
    script.device.append(DeviceSpan("MEMCPY_ASYNC", to_ns(0), to_ns(10), Kind.KERNEL))
    script.kernel(20, 30)
    timeline = replace(script.timeline(), device_type=device_type)

    (unit,) = digest(timeline, VOCABULARY, Settings(), Selection()).rows[0].units

    assert (unit.ledger.device.copy_ns, unit.ledger.device.compute_ns) == (10_000, 10_000)


def test_a_copy_that_calls_itself_a_kernel_is_still_a_kernel() -> None:
    """The exporter's category decides, where there is one."""
    script = Script()
    script.device.append(DeviceSpan(COPY_NAMES["htod"], to_ns(0), to_ns(10), Kind.KERNEL))

    assert _busy(script) == [(0, 10, "compute")]
