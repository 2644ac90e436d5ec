"""What the operators of a device had to do, and which kernels nobody can be asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from longpole.analyses.operator_work import (
    WHY_COMPOSITE,
    WHY_GRAPH,
    WHY_NO_LAUNCH,
    WHY_NO_OPERATOR,
    WHY_NO_RULE,
    WHY_NO_SHAPES,
    WHY_ODD_SHAPES,
    WHY_OPAQUE,
)
from tests.build import Script, measure

if TYPE_CHECKING:
    from longpole.records.operator_work import RowWork

PRODUCT = "[[64, 32], [32, 16]]"
BF16 = '["c10::BFloat16", "c10::BFloat16"]'
FP32 = '["float", "float"]'
FLOPS = 2 * 64 * 32 * 16
BYTES = 2 * (64 * 32 + 32 * 16 + 64 * 16)


def work_of(script: Script) -> RowWork:
    return measure(script).rows[0].work


def why(script: Script) -> dict[str, str]:
    return {one.name: one.why for one in work_of(script).uncounted}


def test_a_call_counts_once_for_all_its_kernels() -> None:
    """A product that is split over two kernels is still one product.

    aten::mm   ├─────────────┤
    launches     L1     L2
    """
    script = Script()
    script.step(0, 0, 200)
    script.op("aten::mm", 0, 60, shapes=PRODUCT, types=BF16)
    script.kernel(70, 80, script.launch(5, 8))
    script.kernel(80, 110, script.launch(30, 35))

    (mm,) = work_of(script).operators

    assert (mm.calls, mm.kernels, mm.device_ns, mm.host_ns) == (1, 2, 40_000, 60_000)
    assert (mm.flops, mm.moved_bytes, mm.dtype, mm.processor) == (FLOPS, BYTES, "bf16", "tensor")


def test_kernels_belong_to_the_innermost_operator_that_can_be_counted() -> None:
    script = Script()
    script.step(0, 0, 200)
    script.op("aten::linear", 0, 60, shapes="[[64, 32], [16, 32]]", types=BF16)
    script.op("aten::mm", 20, 50, shapes=PRODUCT, types=BF16)
    script.op("mylib::inner", 25, 45)
    script.kernel(70, 80, script.launch(30, 35))

    (mm,) = work_of(script).operators

    assert (mm.name, mm.flops) == ("aten::mm", FLOPS)


def test_what_an_unknown_operator_does_inside_a_composite_is_not_counted_twice() -> None:
    """`aten::linear` counts through its product; its formula must not count again for the kernel beside it."""
    script = Script()
    script.step(0, 0, 200)
    script.op("aten::linear", 0, 60, shapes="[[64, 32], [16, 32]]", types=BF16)
    script.op("aten::mm", 5, 20, shapes=PRODUCT, types=BF16)
    script.op("mylib::bias", 30, 50)
    script.kernel(70, 80, script.launch(10, 12))
    script.kernel(80, 90, script.launch(35, 40))

    work = work_of(script)

    assert [(one.name, one.flops) for one in work.operators] == [("aten::mm", FLOPS)]
    assert why(script) == {"mylib::bias": WHY_COMPOSITE}


def test_what_is_not_counted_says_why() -> None:
    script = Script()
    script.step(0, 0, 400)
    script.op("mylib::thing", 0, 20, shapes="[[4]]", types='["float"]')
    script.kernel(200, 210, script.launch(5, 8))
    script.op("aten::mm", 20, 40)
    script.kernel(210, 220, script.launch(25, 28))
    script.op("aten::bmm", 40, 60, shapes=PRODUCT, types=BF16)
    script.kernel(220, 230, script.launch(45, 48))
    script.kernel(230, 240, script.launch(65, 68), name="alone")
    script.kernel(240, 250, script.launch(75, 78, name="cudaGraphLaunch"), name="replayed")
    script.kernel(250, 260, name="lost")
    script.op("vllm::moe_forward", 80, 100, shapes="[[8, 64], [8, 4]]", types=BF16)
    script.kernel(260, 270, script.launch(85, 88))

    assert why(script) == {
        "mylib::thing": WHY_NO_RULE,
        "aten::mm": WHY_NO_SHAPES,
        "alone": WHY_NO_OPERATOR,
        "replayed": WHY_GRAPH,
        "lost": WHY_NO_LAUNCH,
        "vllm::moe_forward": WHY_OPAQUE,
    }
    assert [one.name for one in work_of(script).operators] == ["aten::bmm"]


def test_shapes_that_do_not_fit_are_named_as_such() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.op("aten::mm", 0, 20, shapes="[[4, 5], [6, 7]]", types=BF16)
    script.kernel(50, 60, script.launch(5, 8))

    assert why(script) == {"aten::mm": WHY_ODD_SHAPES}


def test_32_bit_products_run_on_vector_units_unless_their_kernel_drops_bits() -> None:
    script = Script()
    script.step(0, 0, 200)
    script.op("aten::mm", 0, 20, shapes=PRODUCT, types=FP32)
    script.kernel(50, 60, script.launch(5, 8), name="ampere_sgemm_128x64_tn")
    script.op("aten::mm", 20, 40, shapes=PRODUCT, types=FP32)
    script.kernel(60, 80, script.launch(25, 28), name="sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n")

    found = {one.dtype: (one.processor, one.device_ns) for one in work_of(script).operators}

    assert found == {"fp32": ("vector", 10_000), "tf32": ("tensor", 20_000)}


def test_convolutions_by_a_transform_compute_fewer_flops_than_their_definition() -> None:
    """3 × 3 weights on 8 × 8 places, by the same call twice: one kernel's name tells of Winograd's algorithm."""
    script = Script()
    script.step(0, 0, 200)
    shapes, types = "[[2, 3, 8, 8], [4, 3, 3, 3]]", '["float", "float"]'
    values = '["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]'
    for start, name in ((0, "implicit_convolve_sgemm"), (20, "volta_scudnn_winograd_128x128_ldg1_ldg4")):
        script.op("aten::convolution", start, start + 20, shapes=shapes, types=types).values = values
        script.kernel(50 + start, 60 + start, script.launch(start + 5, start + 8), name=name)

    found = sorted(work_of(script).operators, key=lambda one: one.start_ns)

    moved_bytes = 4 * (2 * 3 * 64 + 4 * 3 * 9 + 2 * 4 * 64)
    assert [(one.flops, one.moved_bytes) for one in found] == [(2 * 2 * 64 * 108, moved_bytes), (None, moved_bytes)]


def test_lists_of_tensors_have_the_type_that_their_kernel_names() -> None:
    script = Script()
    script.step(0, 0, 200)
    lists = "[[[100], [28]], [[100], [28]], []]"
    types = '["TensorList", "TensorList", "Scalar"]'
    script.op("aten::_foreach_add_", 0, 20, shapes=lists, types=types)
    script.kernel(50, 60, script.launch(5, 8), name="multi_tensor_apply_kernel<BinaryOpListAlphaFunctor<float, 2>>")

    (add,) = work_of(script).operators

    assert (add.flops, add.moved_bytes) == (128, 3 * 4 * 128)


def test_stages_are_those_of_the_launching_calls() -> None:
    script = Script()
    script.step(0, 0, 200)
    script.op("aten::mm", 0, 20, shapes=PRODUCT, types=BF16)
    script.kernel(50, 60, script.launch(5, 8))
    script.backward("MmBackward0", 20, 45)
    script.op("aten::mm", 22, 40, shapes=PRODUCT, types=BF16, thread="autograd")
    script.kernel(60, 90, script.launch(25, 28, thread="autograd"))

    work = work_of(script)

    assert {one.stage: one.device_ns for one in work.operators} == {"forward": 10_000, "backward": 30_000}
    assert work.stage_ns == {"forward": 10_000, "backward": 30_000}


@given(
    st.lists(
        st.tuples(st.sampled_from(["aten::mm", "aten::linear", "mylib::x", ""]), st.booleans(), st.integers(1, 30)),
        min_size=1,
        max_size=12,
    )
)
def test_counted_and_uncounted_time_is_all_compute_time(calls: list[tuple[str, bool, int]]) -> None:
    script = Script()
    script.step(0, 0, 1000)
    at = 500.0
    for place, (name, has_shapes, dur) in enumerate(calls):
        start = 10 * place
        if name:
            script.op(name, start, start + 9, shapes=PRODUCT if has_shapes else "", types=BF16 if has_shapes else "")
        script.kernel(at, at + dur, script.launch(start + 1, start + 3))
        at += dur

    work = work_of(script)

    counted_ns = sum(one.device_ns for one in work.operators)
    assert counted_ns + sum(one.device_ns for one in work.uncounted) == work.compute_ns
    assert work.compute_ns == 1000 * sum(dur for _, _, dur in calls)
    assert sum(work.stage_ns.values()) == work.compute_ns
