"""Calls whose own shapes do not tell, counted with another call, by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longpole.costs.operator_work.call import parse_call
from longpole.costs.operator_work.count import PARTNERED, count_work

if TYPE_CHECKING:
    from longpole.costs.operator_work.call import Call
    from longpole.costs.operator_work.work import Work

FLOAT, BF16, LIST, NUMBER, INT = "float", "c10::BFloat16", "GenericList", "Scalar", "int"


def call(name: str, dims: list[object], types: list[str], values: list[str] | None = None) -> Call:
    found = parse_call(name, json.dumps(dims), json.dumps(types), json.dumps(values or []))
    assert found is not None
    return found


def figures(found: Work | None) -> tuple[int | None, int | None]:
    assert found is not None
    return found.flops, found.moved_bytes


class TestConvolutionsOf2021:
    """Strides were not recorded: a 7 × 7 kernel on 224 × 224 places, whose result has 112 × 112."""

    FORWARD = call("aten::cudnn_convolution", [[32, 3, 224, 224], [64, 3, 7, 7], [], []], [FLOAT, FLOAT, LIST, LIST])
    FLOPS = 2 * 32 * 112 * 112 * 64 * 3 * 7 * 7
    SOURCE, WEIGHT, RESULT = 32 * 3 * 224 * 224, 64 * 3 * 7 * 7, 32 * 64 * 112 * 112

    def test_the_results_gradient_tells_how_many_places_there_are(self) -> None:
        gradient = call("CudnnConvolutionBackward", [[32, 64, 112, 112]], [FLOAT])
        assert count_work(self.FORWARD) is None
        assert figures(count_work(self.FORWARD, gradient)) == (
            self.FLOPS,
            4 * (self.SOURCE + self.WEIGHT + self.RESULT),
        )

    @pytest.mark.parametrize("shape", [[32, 63, 112, 112], [31, 64, 112, 112], [32, 64, 112], []])
    def test_a_gradient_of_another_result_is_not_taken(self, shape: list[int]) -> None:
        assert count_work(self.FORWARD, call("CudnnConvolutionBackward", [shape], [FLOAT])) is None

    def test_parts_of_a_backward_pass_have_the_sizes_of_the_whole(self) -> None:
        around = call(
            "aten::cudnn_convolution_backward",
            [[32, 3, 224, 224], [32, 64, 112, 112], [64, 3, 7, 7], []],
            [FLOAT, FLOAT, FLOAT, LIST],
        )
        of_input = call(
            "aten::cudnn_convolution_backward_input",
            [[], [32, 64, 112, 112], [64, 3, 7, 7], []],
            [LIST, FLOAT, FLOAT, LIST],
        )
        of_weight = call(
            "aten::cudnn_convolution_backward_weight",
            [[], [32, 64, 112, 112], [32, 3, 224, 224], []],
            [LIST, FLOAT, FLOAT, LIST],
        )
        moved = 4 * (self.SOURCE + self.WEIGHT + self.RESULT)
        assert figures(count_work(of_input, around)) == (self.FLOPS, moved)
        assert figures(count_work(of_weight, around)) == (self.FLOPS, moved)
        assert figures(count_work(of_input)) == (self.FLOPS, None)
        assert count_work(of_weight) is None


class TestJoins:
    def test_a_list_without_shapes_is_as_large_as_its_gradient(self) -> None:
        joined = call("aten::cat", [[], []], ["TensorList", NUMBER])
        gradient = call("CatBackward0", [[1024, 70904]], [FLOAT])
        assert count_work(joined) is None
        assert figures(count_work(joined, gradient)) == (0, 2 * 1024 * 70904 * 4)

    def test_what_its_own_shapes_tell_goes_first(self) -> None:
        joined = call("aten::cat", [[[4, 8], [4, 8]], []], [FLOAT, NUMBER])
        gradient = call("CatBackward0", [[4, 99]], [FLOAT])
        assert figures(count_work(joined, gradient)) == (0, 2 * 64 * 4)


class TestAttentionOverACache:
    def test_vllm_reads_the_queries_that_it_uses(self) -> None:
        """The batch is padded to 896 tokens, of which 888 are cut off."""
        query: list[object] = [896, 8, 64]
        types = ["c10::Float8_e4m3fn", BF16, BF16, BF16, "", "", ""]
        attention = call(
            "vllm::unified_attention_with_output", [query, [896, 1, 64], [896, 1, 64], query, [], [], []], types
        )
        used = call("aten::slice", [query, [], [], [], []], [types[0], *[NUMBER] * 4], ["", "0", "0", "888", "1"])
        found = count_work(attention, used)
        assert figures(found) == (None, 888 * 8 * 64 * (1 + 2))
        assert found is not None
        assert found.at_least
        assert count_work(attention) is None

    @pytest.mark.parametrize("longest", ["1024", "1100"])
    def test_aiters_sequences_are_known_where_all_are_as_long_as_they_may_be(self, longest: str) -> None:
        dims: list[object] = [[15360, 32, 128], [835874, 8, 128], [835874, 8, 128], [16], [16], [15616], *[[]] * 9]
        types = [BF16, BF16, BF16, INT, INT, INT, *[NUMBER] * 9]
        values = ["", "", "", "", "", "", longest, longest, "0.", "0.08", "0.", "False", "True", "-1", "-1"]
        found = count_work(call("aiter::mha_batch_prefill", dims, types, values))
        if longest != "1024":
            assert found is None
            return
        pairs = 15 * 32 * (1024 * 1025 // 2)
        assert figures(found) == (pairs * 2 * (128 + 128), 2 * 15360 * 128 * (32 + 8 + 8 + 32))


class TestPackedSequences:
    DIMS: tuple[object, ...] = ([4096, 16, 64], [4096, 4, 64], [4096, 4, 64], [5], [5], [], [], [], [], [], [], [], [])
    TYPES = (BF16, BF16, BF16, INT, INT, *[NUMBER] * 8)

    def attention(self, longest: str, causal: str = "True", window: str = "-1") -> Work | None:
        values = ["", "", "", "", "", longest, longest, "0.", causal, "False", "", window, "-1"]
        return count_work(call("aten::_flash_attention_forward", list(self.DIMS), list(self.TYPES), values))

    def test_four_sequences_of_at_most_1024_with_4096_tokens_have_1024_each(self) -> None:
        found = self.attention("1024")
        assert found is not None
        assert found.flops == 4 * 16 * (1024 * 1025 // 2) * 2 * 128

    def test_other_lengths_and_windows_leave_flops_unknown(self) -> None:
        for found in (self.attention("1500"), self.attention("1024", window="256"), self.attention("1024", "")):
            assert found is not None
            assert found.flops is None
            assert found.moved_bytes is not None

    def test_a_window_as_wide_as_the_sequence_cuts_nothing(self) -> None:
        assert self.attention("1024", window="1024") == self.attention("1024")


SHAPES = st.lists(st.lists(st.integers(0, 4), max_size=4), min_size=1, max_size=25)
VALUES = st.lists(st.sampled_from(["", "True", "1", "-1", "2", "[1, 1]", "[0]", "nan"]), max_size=20)


@settings(max_examples=50)
@given(st.sampled_from(sorted(PARTNERED)), SHAPES, SHAPES, VALUES, VALUES)
def test_no_partner_breaks_a_count(
    name: str, dims: list[list[int]], others: list[list[int]], values: list[str], more: list[str]
) -> None:
    one = call(name, list(dims), [FLOAT] * len(dims), values)
    other = call("partner", list(others), [FLOAT] * len(others), more)
    found = count_work(one, other)
    assert found is None or ((found.flops or 0) >= 0 and (found.moved_bytes or 0) >= 0)
