"""FLOPs and bytes of operators against values worked out by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.operator_work.attention import seen_pairs
from longpole.costs.operator_work.call import Tensor, parse_call
from longpole.costs.operator_work.count import COUNTERS, count_work
from longpole.costs.operator_work.products import broadcast

if TYPE_CHECKING:
    from longpole.costs.operator_work.work import Work

BF16, FP32, INT64, NUMBER = "c10::BFloat16", "float", "long int", "Scalar"


def work(
    name: str,
    dims: list[object],
    types: list[str],
    values: list[str] | None = None,
    list_dtype: str = "",
    strides: list[object] | None = None,
) -> Work | None:
    """Return what a call as a trace writes it has to do."""
    shapes, kinds, others = (json.dumps(one) for one in (dims, types, values or []))
    call = parse_call(name, shapes, kinds, others, list_dtype, json.dumps(strides or []))
    assert call is not None
    return count_work(call)


def figures(found: Work | None) -> tuple[int | None, int | None]:
    """Return FLOPs and bytes."""
    assert found is not None
    return found.flops, found.moved_bytes


class TestProducts:
    def test_a_product_takes_two_flops_for_each_triple_of_indices(self) -> None:
        # 2 · 128 · 512 · 256; (128·512 + 512·256 + 128·256) · 2 bytes
        found = work("aten::mm", [[128, 512], [512, 256]], [BF16, BF16])
        assert figures(found) == (33_554_432, 458_752)
        assert found is not None
        assert (found.processor, found.dtype, found.family) == ("tensor", "bf16", "matmul")

    def test_a_bias_is_read_and_not_counted_as_arithmetic(self) -> None:
        found = work("aten::addmm", [[256], [128, 512], [512, 256], [], []], [BF16, BF16, BF16, NUMBER, NUMBER])
        assert figures(found) == (33_554_432, 458_752 + 512)

    def test_a_batch_multiplies_all_of_it(self) -> None:
        # 12 · 2 · 128 · 64 · 128
        found = work("aten::bmm", [[12, 128, 64], [12, 64, 128]], [FP32, FP32])
        assert figures(found) == (25_165_824, 4 * 12 * (128 * 64 * 2 + 128 * 128))

    def test_a_linear_layer_takes_its_weight_transposed(self) -> None:
        found = work("aten::linear", [[4, 128, 512], [256, 512], [256]], [BF16, BF16, BF16])
        assert found is not None
        assert found.flops == 2 * 4 * 128 * 512 * 256

    def test_an_8_bit_product_writes_the_type_that_is_asked_for(self) -> None:
        fp8 = "c10::Float8_e4m3fn"
        dims: list[object] = [[64, 32], [32, 16], [], [], [], [], [], []]
        types = [fp8, fp8, FP32, FP32, "", "", NUMBER, NUMBER]
        found = work("aten::_scaled_mm", dims, types, ["", "", "", "", "", "", "6", "False"])
        assert figures(found) == (2 * 64 * 32 * 16, 64 * 32 + 32 * 16 + 64 * 16 * 4 + 4 + 4)

    @pytest.mark.parametrize("dims", [[[2, 3], [4, 5]], [[2, 3]], [[], []]])
    def test_shapes_that_do_not_fit_count_as_nothing_known(self, dims: list[object]) -> None:
        assert work("aten::mm", dims, [FP32] * len(dims)) is None

    def test_without_element_types_flops_are_known_and_bytes_are_not(self) -> None:
        assert figures(work("aten::mm", [[2, 3], [3, 4]], [])) == (48, None)

    @given(st.lists(st.integers(1, 8), min_size=3, max_size=3))
    def test_a_product_costs_the_same_transposed(self, sizes: list[int]) -> None:
        m, k, n = sizes
        one = work("aten::mm", [[m, k], [k, n]], [FP32, FP32])
        other = work("aten::mm", [[n, k], [k, m]], [FP32, FP32])
        assert figures(one) == figures(other)


class TestAttention:
    FORWARD = "aten::_scaled_dot_product_flash_attention"
    VALUES = ("", "", "", "0.", "False", "False", "0.125")

    def test_forward_is_two_products(self) -> None:
        # 4 · B·H·S²·D = 4 · 1·8·141²·64; q, k, v, result in bf16 and a 32-bit sum per query
        shape = [1, 8, 141, 64]
        found = work(self.FORWARD, [shape, shape, shape, [], [], [], []], [BF16] * 3 + [NUMBER] * 4, list(self.VALUES))
        assert figures(found) == (40_716_288, 4 * 2 * 8 * 141 * 64 + 4 * 8 * 141)

    def test_a_causal_mask_leaves_each_query_the_keys_before_it_and_its_own(self) -> None:
        shape = [2, 4, 16, 8]
        values = ["", "", "", "0.", "True"]
        found = work(self.FORWARD, [shape, shape, shape, [], []], [BF16] * 3 + [NUMBER] * 2, values)
        assert found is not None
        assert found.flops == 4 * 2 * 4 * (16 * 17 // 2) * 8

    def test_grouped_queries_read_few_keys_and_compute_as_many_pairs(self) -> None:
        dims: list[object] = [[1, 32, 64, 128], [1, 8, 64, 128], [1, 8, 64, 128], [], []]
        found = work(self.FORWARD, dims, [BF16] * 3 + [NUMBER] * 2, ["", "", "", "0.", "False"])
        one_head = 64 * 128 * 2
        assert figures(found) == (4 * 32 * 64 * 64 * 128, (32 + 8 + 8 + 32) * one_head + 32 * 64 * 4)

    def test_backward_is_two_and_a_half_times_forward(self) -> None:
        shape = [1, 8, 64, 64]
        dims: list[object] = [shape, shape, shape, shape, shape, [1, 8, 64], [], [], [], [], [], []]
        types = [BF16] * 5 + [FP32, "", "", NUMBER, NUMBER, NUMBER, NUMBER]
        found = work("aten::_scaled_dot_product_flash_attention_backward", dims, types, [""] * 10 + ["0.", "False"])
        assert found is not None
        assert found.flops == 10 * 8 * 64 * 64 * 64

    def test_the_operator_inside_has_heads_behind_tokens(self) -> None:
        shape = [1, 141, 8, 64]
        dims: list[object] = [shape, shape, shape, [], [], [], [], [], []]
        types = [BF16] * 3 + ["", ""] + [NUMBER] * 4
        found = work("aten::_flash_attention_forward", dims, types, ["", "", "", "", "", "141", "141", "0.", "False"])
        assert found is not None
        assert found.flops == 40_716_288

    def test_packed_sequences_have_bytes_and_no_flops(self) -> None:
        shape = [4096, 8, 64]
        dims: list[object] = [shape, shape, shape, [5], [5], [], [], [], []]
        types = [BF16] * 3 + ["int", "int"] + [NUMBER] * 4
        found = work("aten::_flash_attention_forward", dims, types, [""] * 7 + ["0.", "True"])
        assert figures(found) == (None, 4 * 4096 * 8 * 64 * 2 + 4096 * 8 * 4)

    def test_without_its_flag_a_mask_is_not_guessed(self) -> None:
        shape = [1, 8, 64, 64]
        found = work(self.FORWARD, [shape, shape, shape], [BF16] * 3)
        assert found is not None
        assert found.flops is None
        assert found.moved_bytes is not None

    @given(st.integers(0, 30), st.integers(0, 30))
    def test_pairs_are_those_that_the_mask_leaves(self, queries: int, keys: int) -> None:
        counted = sum(1 for i in range(queries) for j in range(keys) if j <= i)
        assert seen_pairs(queries, keys, causal=True) == counted


class TestConvolutions:
    DIMS: tuple[object, ...] = ([8, 3, 224, 224], [64, 3, 7, 7], [], [], [], [], [], [], [])
    TYPES = (FP32, FP32, "", "ScalarList", "ScalarList", "ScalarList", NUMBER, "ScalarList", NUMBER)

    def forward(self, *, transposed: str = "False") -> Work | None:
        """Return the work of ResNet's first convolution."""
        values = ["", "", "", "[2, 2]", "[3, 3]", "[1, 1]", transposed, "[0, 0]", "1"]
        return work("aten::convolution", list(self.DIMS), list(self.TYPES), values)

    def test_resnets_first_layer(self) -> None:
        # 112² places of 64 channels, each of 3·7·7 products: 0.236 GFLOP an image, as published
        found = self.forward()
        assert figures(found) == (
            8 * 2 * 112 * 112 * 64 * 147,
            4 * (8 * 3 * 224 * 224 + 64 * 147 + 8 * 64 * 112 * 112),
        )

    def test_groups_divide_the_products(self) -> None:
        values = ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "64"]
        found = work("aten::convolution", [[1, 64, 10, 10], [64, 1, 3, 3], *self.DIMS[2:]], list(self.TYPES), values)
        assert found is not None
        assert found.flops == 2 * 64 * 9 * 100

    def test_backward_counts_the_gradients_that_are_asked_for(self) -> None:
        dims: list[object] = [[8, 64, 112, 112], [8, 3, 224, 224], [64, 3, 7, 7], *([[]] * 8)]
        types = [FP32] * 3 + ["ScalarList"] * 8
        values = ["", "", "", "[0]", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1"]
        once = 8 * 2 * 112 * 112 * 64 * 147
        both = work("aten::convolution_backward", dims, types, [*values, "[True, True, False]"])
        weight = work("aten::convolution_backward", dims, types, [*values, "[False, True, False]"])
        assert both is not None
        assert weight is not None
        assert (both.flops, weight.flops) == (2 * once, once)

    def test_libraries_order_their_arguments_otherwise(self) -> None:
        values = ["", "", "", "[3, 3]", "[2, 2]", "[1, 1]", "1", "False", "False"]
        found = work("aten::miopen_convolution", list(self.DIMS), list(self.TYPES), values)
        assert figures(found) == figures(self.forward())

    def test_a_transposed_one_works_on_each_place_of_its_input(self) -> None:
        values = ["", "", "", "[2, 2]", "[0, 0]", "[1, 1]", "True", "[0, 0]", "1"]
        found = work("aten::convolution", [[1, 16, 5, 5], [16, 8, 2, 2], *self.DIMS[2:]], list(self.TYPES), values)
        # result 10 · 10 of 8 channels
        assert figures(found) == (2 * 25 * 16 * 8 * 4, 4 * (16 * 25 + 16 * 8 * 4 + 8 * 100))

    def test_without_stride_and_padding_nothing_is_known(self) -> None:
        assert work("aten::convolution", list(self.DIMS), list(self.TYPES)) is None


class TestOthers:
    def test_a_layer_norm_reads_and_writes_each_element_once(self) -> None:
        dims: list[object] = [[4, 128, 512], [], [512], [512], []]
        found = work("aten::native_layer_norm", dims, [BF16, "ScalarList", BF16, BF16, NUMBER])
        elements = 4 * 128 * 512
        assert figures(found) == (8 * elements, 2 * (2 * elements + 2 * 512))

    def test_an_addition_broadcasts(self) -> None:
        found = work("aten::add", [[4, 1, 8], [3, 8], []], [FP32, FP32, NUMBER])
        assert figures(found) == (96, 4 * (32 + 24 + 96))

    def test_in_place_writes_where_it_reads(self) -> None:
        found = work("aten::add_", [[4, 8], [1], []], [FP32, FP32, NUMBER])
        assert figures(found) == (32, 4 * (32 + 1 + 32))

    def test_a_comparison_writes_a_byte_an_element(self) -> None:
        assert figures(work("aten::eq", [[10], []], [INT64, NUMBER])) == (0, 80 + 10)

    def test_a_tensor_for_the_result_is_written_and_not_read(self) -> None:
        given = work("aten::clamp_min", [[10], [], [10]], [FP32, NUMBER, FP32])
        assert given == work("aten::clamp_min", [[10], []], [FP32, NUMBER])
        assert figures(given) == (10, 80)
        assert figures(work("aten::sqrt", [[10], [10]], [FP32, FP32])) == (10, 80)
        assert figures(work("aten::add", [[10], [10], [], [10]], [FP32, FP32, NUMBER, FP32])) == (10, 120)
        assert figures(work("aten::where", [[10], [10], [10]], ["bool", FP32, FP32])) == (0, 10 + 120)

    def test_a_copy_reads_one_type_and_writes_another(self) -> None:
        found = work("aten::copy_", [[10], [10], []], [BF16, FP32, NUMBER])
        assert figures(found) == (0, 20 + 40)

    def test_an_embedding_moves_rows_and_not_its_table(self) -> None:
        found = work("aten::embedding", [[30522, 512], [1, 141], [], [], []], [BF16, INT64] + [NUMBER] * 3)
        assert figures(found) == (0, 2 * 141 * 512 * 2 + 141 * 8)

    def test_a_sum_keeps_what_its_dimensions_leave(self) -> None:
        found = work("aten::sum", [[8, 16, 4], [], [], []], [FP32, "ScalarList", NUMBER, ""], ["", "[0, 1]", "False"])
        assert figures(found) == (512, 4 * (512 + 4))

    def test_adamw_moves_seven_values_a_parameter(self) -> None:
        lists = [[100, 10], [24]]
        dims: list[object] = [lists, lists, lists, lists, [], [[], []], []]
        types = ["TensorList"] * 6 + [NUMBER]
        found = work("aten::_fused_adamw_", dims, types, list_dtype="fp32")
        assert figures(found) == (13 * 1024, 7 * 4 * 1024)

    def test_lists_of_unknown_type_have_no_bytes(self) -> None:
        lists = [[100, 10], [24]]
        found = work("aten::_foreach_add_", [lists, lists, []], ["TensorList", "TensorList", NUMBER])
        assert figures(found) == (1024, None)

    def test_lists_without_shapes_are_not_counted(self) -> None:
        assert work("aten::_foreach_add_", [[], [], []], ["TensorList", "TensorList", NUMBER]) is None

    def test_a_fused_kernel_moves_its_buffers(self) -> None:
        found = work("triton_poi_fused_add_0", [[16], [16], []], [FP32, FP32, NUMBER])
        assert figures(found) == (None, 128)

    def test_a_fused_kernel_that_takes_parts_of_its_buffers_is_not_counted(self) -> None:
        for name in ("triton_poi_fused_clone_slice_13", "triton_red_fused_embedding", "triton_per_fused_split_add_2"):
            assert work(name, [[16], [16], []], [FP32, FP32, NUMBER]) is None
        assert work("triton_poi_fused_slicer_0", [[16], [16], []], [FP32, FP32, NUMBER]) is not None

    def test_an_operator_of_no_known_name_is_not_counted(self) -> None:
        assert work("mylib::thing", [[4, 4]], [FP32]) is None


class TestExpandedTensors:
    """A stride of 0 repeats what lies in memory once."""

    def test_what_is_repeated_is_read_once_and_the_result_is_written_whole(self) -> None:
        found = work("aten::clone", [[8, 16, 4], []], [FP32, NUMBER], strides=[[4, 0, 1], []])
        assert figures(found) == (0, 4 * (8 * 4 + 8 * 16 * 4))

    def test_a_gather_of_whole_rows_reads_one_index_a_row(self) -> None:
        # 15 rows of 4096 elements; the index of each row is expanded over them.
        dims: list[object] = [[15360, 4096], [], [15, 4096], []]
        types = [BF16, NUMBER, INT64, NUMBER]
        found = work("aten::gather", dims, types, strides=[[4096, 1], [], [1, 0], []])
        assert figures(found) == (0, 2 * 2 * 15 * 4096 + 15 * 8)

    def test_flops_are_those_of_all_elements(self) -> None:
        dims: list[object] = [[12, 128, 64], [12, 64, 128]]
        found = work("aten::bmm", dims, [FP32, FP32], strides=[[8192, 64, 1], [0, 128, 1]])
        assert figures(found) == (25_165_824, 4 * (12 * 128 * 64 + 64 * 128 + 12 * 128 * 128))

    def test_strides_that_do_not_fit_tell_nothing(self) -> None:
        plain = work("aten::clone", [[8], []], [FP32, NUMBER])
        odd: tuple[list[object], ...] = ([[0, 0], []], ["0", []], [None, 0, 0, 0], [[1]])
        for strides in odd:
            assert work("aten::clone", [[8], []], [FP32, NUMBER], strides=strides) == plain


class TestCalls:
    def test_a_tensor_without_dimensions_is_told_from_a_number_by_its_type(self) -> None:
        call = parse_call("aten::add_", "[[], [], []]", '["long int", "float", "Scalar"]')
        assert call is not None
        assert call.inputs == (Tensor((), "int64"), Tensor((), "fp32"), None)

    @pytest.mark.parametrize("dims", ["", "[[2,", "{}", "7"])
    def test_what_is_no_list_of_shapes_is_no_call(self, dims: str) -> None:
        assert parse_call("aten::mm", dims) is None

    @given(
        st.sampled_from(sorted(COUNTERS)),
        st.recursive(st.none() | st.integers(-3, 1 << 50) | st.text(max_size=2), st.lists, max_leaves=12),
        st.lists(st.sampled_from([BF16, FP32, INT64, NUMBER, "TensorList", "", "ScalarList"]), max_size=12),
        st.lists(st.sampled_from(["", "True", "1", "-1", "[1, 1]", "[0]", "[True]", "nan", "inf"]), max_size=12),
    )
    def test_nothing_that_a_trace_may_hold_breaks_a_count(
        self, name: str, dims: object, types: list[str], values: list[str]
    ) -> None:
        call = parse_call(name, json.dumps(dims), json.dumps(types), json.dumps(values))
        found = count_work(call) if call is not None else None
        assert found is None or (found.flops or 0) >= 0

    @given(
        st.sampled_from(sorted(COUNTERS)),
        st.lists(st.lists(st.integers(0, 4), max_size=4), min_size=1, max_size=11),
        st.lists(st.sampled_from(["", "True", "False", "1", "[1, 1]", "[0]", "[True, True, True]"]), max_size=12),
    )
    def test_figures_are_never_negative(self, name: str, dims: list[list[int]], values: list[str]) -> None:
        call = parse_call(name, json.dumps(dims), json.dumps([FP32] * len(dims)), json.dumps(values))
        assert call is not None
        found = count_work(call)
        assert found is None or ((found.flops or 0) >= 0 and (found.moved_bytes or 0) >= 0)

    @given(st.lists(st.lists(st.integers(1, 3), max_size=3), min_size=1, max_size=3))
    def test_broadcasting_is_numpys(self, shapes: list[list[int]]) -> None:
        import numpy as np

        try:
            expected: tuple[int, ...] | None = np.broadcast_shapes(*map(tuple, shapes))
        except ValueError:
            expected = None
        assert broadcast(*map(tuple, shapes)) == expected
