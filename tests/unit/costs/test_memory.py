"""Memory of a device: what allocators measured, parts that add up, and laws of what more of anything does."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean, median
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.layout import Layout, Recompute, Work
from longpole.costs.memory import (
    COMMUNICATION_BYTES,
    CONTEXT_BYTES,
    GATHERED_MARGIN_SHARE,
    MARGIN_SHARE,
    device_memory,
)
from longpole.costs.memory_explained import explain_memory
from longpole.costs.memory_states import Optimizer, held_by_stage
from longpole.errors import UsageError
from tests.measured_memory import (
    DEEPSEEK_V3,
    GIB,
    LLAMA_8B,
    MODELS,
    megatron_memory,
    pipelined_layout,
    pipelined_memory,
    torchtitan_memory,
)
from tests.published_tables import read_table

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.costs.architecture import Architecture

WORK = Work(sequence=4096, micro_batch=1, global_batch=64)


def first_layers(policy: Recompute, count: int) -> tuple[Recompute, ...]:
    return tuple(policy if layer < count else "none" for layer in range(32))


# ------------------------------------------------------------------ Megatron's allocator on eight B200


def family(row: dict[str, str]) -> str:
    return "experts" if row["model"].startswith("deepseek") else "context" if int(row["cp"]) > 1 else "dense"


def test_megatrons_allocation_is_met_within_one_per_cent_and_never_exceeded(oracles: Path) -> None:
    rows = read_table(oracles, "simumax_b200_v1_2")

    errors = {
        row["case"]: megatron_memory(row).worst.allocated_bytes / GIB / float(row["real_alloc_gib"]) - 1 for row in rows
    }

    assert len(rows) == 43
    assert all(-0.01 <= error <= 0.001 for error in errors.values()), errors
    for name, limit in {"dense": 0.0025, "context": 0.0025, "experts": 0.0095}.items():
        assert mean(abs(errors[row["case"]]) for row in rows if family(row) == name) < limit


def test_every_stage_is_met_and_not_only_the_fullest(oracles: Path) -> None:
    cases = {row["case"]: row for row in read_table(oracles, "simumax_b200_v1_2")}
    rows = read_table(oracles, "simumax_b200_memory_by_stage")

    errors = {
        (row["case"], row["stage"]): megatron_memory(cases[row["case"]]).stages[int(row["stage"])].allocated_bytes
        / GIB
        / float(row["max_allocated_gib"])
        - 1
        for row in rows
    }

    assert len(rows) == 23
    assert all(-0.01 <= error <= 0.001 for error in errors.values()), errors


def test_what_was_reserved_is_within_peak_and_margin(oracles: Path) -> None:
    """An allocator reserves more than it hands out: half as much as the margin in the median, all of it at most."""
    cases = {row["case"]: row for row in read_table(oracles, "simumax_b200_v1_2")}
    rows = read_table(oracles, "simumax_b200_memory_by_stage")

    above = []
    for row in rows:
        stage = megatron_memory(cases[row["case"]]).stages[int(row["stage"])]
        above.append(float(row["max_reserved_gib"]) * GIB / stage.allocated_bytes - 1)

    assert max(above) < MARGIN_SHARE
    assert median(above) > MARGIN_SHARE / 3


def test_more_micro_batches_than_stages_need_no_more(oracles: Path) -> None:
    """The measured figures are the same at 4, 8 and 32 micro-batches, to the last digit."""
    measured: dict[str, set[str]] = {}
    computed: dict[str, set[float]] = {}
    for row in read_table(oracles, "simumax_b200_v1_2"):
        case = row["case"].partition("_mbc")[0]
        measured.setdefault(case, set()).add(row["real_alloc_gib"])
        computed.setdefault(case, set()).add(megatron_memory(row).peak_bytes)

    assert {len(values) for values in measured.values()} == {1}
    assert {len(values) for values in computed.values()} == {1}


# ------------------------------------------------------------------ torchtitan: FSDP on H100


def test_an_8b_model_under_fsdp_with_full_recomputation_is_met_within_one_per_cent(oracles: Path) -> None:
    """Eight devices, 32k tokens on each; the sequence grows with context parallelism and the memory does not."""
    rows = [
        row
        for row in read_table(oracles, "torchtitan_h100")
        if row["model"] == "llama3.1-8B" and row["ac"] == "full" and row["mem_gib"]
    ]

    assert [row["cp"] for row in rows] == ["1", "2", "4", "8"]
    for row in rows:
        found = torchtitan_memory(row).worst.allocated_bytes / GIB
        assert -0.01 < found / float(row["mem_gib"]) - 1 <= 0


def test_a_70b_model_with_its_loss_divided_over_ranks_is_met_within_ten_per_cent(oracles: Path) -> None:
    """256 devices, micro-batches of 16: half of the memory is the cross-entropy, which is not fused."""
    rows = [row for row in read_table(oracles, "torchtitan_h100") if row["model"] == "llama3.1-70B" and row["mem_gib"]]
    reserved = {row["async_tp"]: float(row["mem_gib"]) for row in rows}
    memory = torchtitan_memory(rows[0]).worst

    assert memory.logits_bytes > 0.5 * memory.allocated_bytes
    assert -0.05 < memory.allocated_bytes / GIB / reserved["yes"] - 1 <= 0
    assert -0.10 < memory.allocated_bytes / GIB / reserved["no"] - 1 <= 0


def test_fsdp_under_a_pipeline_is_low_by_a_fifth_at_most(oracles: Path) -> None:
    """405B on 512 devices, TP 8 and PP 8; the batch of a replica is divided into as many parts as there are stages.

    What ZeRO-3 keeps without a pipeline would be less than half of it.
    """
    rows = [row for row in read_table(oracles, "torchtitan_h100") if row["model"] == "llama3.1-405B"]

    errors = []
    for row in rows:
        assert float(row["mem_gib"]) * GIB < pipelined_memory(row).worst.allocated_bytes * (1 + GATHERED_MARGIN_SHARE)
        memory = pipelined_memory(row).worst
        errors.append(memory.allocated_bytes / GIB / float(row["mem_gib"]) - 1)
        whole = 6 * held_by_stage(MODELS["llama3.1-405B"], pipelined_layout(row))[memory.stage].total
        assert (memory.allocated_bytes - whole) / GIB < 0.5 * float(row["mem_gib"])
    assert len(errors) == 6
    assert all(-0.215 < error < -0.10 for error in errors), errors


def test_sixteen_times_the_shards_save_what_they_saved(oracles: Path) -> None:
    """From 8 to 128 devices at the same local batch: 15 GiB less, all of it states."""
    rows = [
        row
        for row in read_table(oracles, "torchtitan_h100")
        if row["model"] == "llama3.1-8B" and row["ac"] == "selective" and row["date"] == "2024-12"
    ]
    few, many = ([row for row in rows if row["gpus"] == devices] for devices in ("8", "128"))

    assert len(few) == len(many) == 3
    for one, other in zip(few, many, strict=True):
        measured = float(one["mem_gib"]) - float(other["mem_gib"])
        computed = torchtitan_memory(one).peak_bytes - torchtitan_memory(other).peak_bytes
        assert computed / GIB == pytest.approx(measured, rel=0.1)


# ------------------------------------------------------------------ parts


LAYOUTS = (
    Layout(),
    Layout(tp=4, sp=True),
    Layout(tp=2, pp=4, dp=2, sp=True, zero=1),
    Layout(pp=4, vp=2, schedule="interleaved", zero=2, dp=2),
    Layout(pp=2, cp=2, dp=2, zero=3),
    Layout(pp=4, vp=2, schedule="zbv"),
    Layout(pp=4, schedule="dualpipe", dp=2, zero=1),
)


@pytest.mark.parametrize("layout", LAYOUTS, ids=Layout.label)
@pytest.mark.parametrize("model", [LLAMA_8B, replace(DEEPSEEK_V3, layers=8, predicted_tokens=1)], ids=lambda m: m.name)
def test_parts_add_up_and_none_is_negative(model: Architecture, layout: Layout) -> None:
    memory = device_memory(model, layout, WORK)

    for stage in memory.stages:
        assert sum(stage.parts().values()) == pytest.approx(stage.peak_bytes, rel=1e-12)
        assert all(part >= 0 for part in stage.parts().values()), stage
    assert memory.peak_bytes == max(stage.peak_bytes for stage in memory.stages)
    share = GATHERED_MARGIN_SHARE if layout.keeps_gathered else MARGIN_SHARE
    assert memory.needed_bytes == memory.peak_bytes + share * memory.worst.allocated_bytes


@pytest.mark.parametrize("layout", LAYOUTS, ids=Layout.label)
@pytest.mark.parametrize(
    "work", [WORK, replace(WORK, recompute="full"), replace(WORK, recompute_layers=first_layers("full", 9))]
)
def test_explained_figures_are_those_of_the_parts(layout: Layout, work: Work) -> None:
    """What is kept of a layer, tensor by tensor, adds up to the layer, and the layers to the stage."""
    for stage in device_memory(LLAMA_8B, layout, work).stages:
        figures = explain_memory(LLAMA_8B, layout, work, stage=stage.stage)
        found = {figure.name.removeprefix(f"memory of stage {stage.stage}: "): figure for figure in figures}
        values = {name: figure.value.value for name, figure in found.items()}

        explained = {name: values.get(name, 0.0) for name in (*stage.parts(), "peak", "margin")}
        explained["transient"] = values["transients"]
        assert explained == pytest.approx({**stage.parts(), "peak": stage.peak_bytes, "margin": stage.margin_bytes})
        for name, figure in found.items():
            if name == "layers" or name.startswith("layers ("):
                of_layer = [
                    value for other, value in values.items() if other.endswith(f" of a {name.replace('s', '', 1)}")
                ]
                assert figure.inputs["layer"] == pytest.approx(sum(of_layer))
                assert figure.value.value == figure.inputs["count"] * figure.inputs["layer"]
        assert all(figure.formula and figure.source for figure in figures)
        assert len(found) == len(figures)


def test_the_first_stage_holds_the_activations_and_the_last_the_logits() -> None:
    stages = device_memory(LLAMA_8B, Layout(pp=4), WORK).stages

    assert [stage.in_flight for stage in stages] == [4, 3, 2, 1]
    assert [stage.logits_bytes > 0 for stage in stages] == [False, False, False, True]
    assert stages[0].activations_bytes > 3 * stages[3].activations_bytes


def test_one_device_has_no_communicators() -> None:
    assert device_memory(LLAMA_8B, Layout(), WORK).worst.buffers_bytes == CONTEXT_BYTES
    assert device_memory(LLAMA_8B, Layout(dp=2), WORK).worst.buffers_bytes == CONTEXT_BYTES + COMMUNICATION_BYTES


def test_a_model_fits_where_peak_and_margin_do() -> None:
    memory = device_memory(LLAMA_8B, Layout(tp=8, sp=True, dp=2, zero=1), WORK)

    assert memory.fits(memory.needed_bytes)
    assert not memory.fits(memory.needed_bytes - 1)


def test_an_unfused_cross_entropy_of_a_large_vocabulary_is_what_does_not_fit() -> None:
    """128k words and 8k tokens: 2 GB of logits become 15."""
    work = replace(WORK, sequence=8192)
    fused, eager = (device_memory(LLAMA_8B, Layout(), replace(work, fused_loss=fuses)).worst for fuses in (True, False))

    assert round((eager.logits_bytes - fused.logits_bytes) / 1e9, 1) == 12.6


def test_an_optimizer_of_ones_own_is_taken() -> None:
    own = Optimizer(name="own", master_bytes=0, moment_bytes=1, source="mine")
    parameters = device_memory(LLAMA_8B, Layout(), WORK).worst.weights_bytes / 2

    assert device_memory(LLAMA_8B, Layout(), WORK, optimizer=own).worst.optimizer_bytes == parameters


def test_an_unknown_optimizer_is_refused() -> None:
    with pytest.raises(UsageError, match="expected one of adam"):
        device_memory(LLAMA_8B, Layout(), WORK, optimizer="adamw9")


# ------------------------------------------------------------------ laws


_LAYOUT = st.builds(
    Layout,
    tp=st.sampled_from([1, 2, 4, 8]),
    pp=st.sampled_from([1, 2, 4]),
    dp=st.sampled_from([1, 2, 8]),
    cp=st.sampled_from([1, 2]),
    sp=st.booleans(),
    zero=st.integers(0, 2),
)


@given(layout=_LAYOUT, micro_batch=st.sampled_from([1, 2, 4]))
def test_a_larger_micro_batch_needs_more(layout: Layout, micro_batch: int) -> None:
    small, large = (
        device_memory(LLAMA_8B, layout, replace(WORK, micro_batch=size)) for size in (micro_batch, 2 * micro_batch)
    )

    assert large.peak_bytes > small.peak_bytes


@given(layout=_LAYOUT)
def test_sequence_parallelism_keeps_less_wherever_there_is_tensor_parallelism(layout: Layout) -> None:
    whole, divided = (device_memory(LLAMA_8B, replace(layout, sp=sp), WORK).worst for sp in (False, True))

    assert (divided.activations_bytes < whole.activations_bytes) == (layout.tp > 1)
    assert divided.states_bytes == whole.states_bytes


@given(layout=_LAYOUT)
def test_a_policy_for_each_layer_that_is_the_same_everywhere_is_that_policy(layout: Layout) -> None:
    everywhere = device_memory(LLAMA_8B, layout, replace(WORK, recompute="full"))
    one_by_one = device_memory(LLAMA_8B, layout, replace(WORK, recompute_layers=("full",) * 32))

    assert one_by_one == everywhere


@given(layout=_LAYOUT, count=st.integers(0, 31))
def test_one_more_layer_computed_again_never_keeps_more(layout: Layout, count: int) -> None:
    fewer, more = (
        device_memory(LLAMA_8B, layout, replace(WORK, recompute_layers=first_layers("full", layers)))
        for layers in (count, count + 1)
    )

    for less, other in zip(more.stages, fewer.stages, strict=True):
        assert less.activations_bytes <= other.activations_bytes


@given(layout=_LAYOUT)
def test_replicas_without_zero_change_nothing_but_communicators(layout: Layout) -> None:
    layout = replace(layout, zero=0, dp=2)
    two, four = (device_memory(LLAMA_8B, replace(layout, dp=dp), WORK).peak_bytes for dp in (2, 4))

    assert two == four
