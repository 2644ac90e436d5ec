"""Which call tells what another one's shapes do not, and when none is trusted to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.analyses.operator_work import WHY_ODD_SHAPES
from tests.build import Script, measure

if TYPE_CHECKING:
    from longpole.records.operator_work import RowWork
    from tests.build import HostSpan

LIST = {"shapes": "[[], []]", "types": '["TensorList", "Scalar"]'}
FLOAT = '["float"]'
LOOK_UP = "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function"
GRADIENT = "torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>"


def work_of(script: Script) -> RowWork:
    return measure(script).rows[0].work


def numbered(row: HostSpan, number: int) -> HostSpan:
    row.sequence = str(number)
    return row


def node(script: Script, name: str, start: float, shape: str, number: int) -> None:
    """Add a gradient operator of the backward pass with its input's shape."""
    row = numbered(script.backward(name, start, start + 5), number)
    row.shapes, row.types = f"[{shape}]", FLOAT


def test_of_the_operators_of_a_number_the_last_made_the_node() -> None:
    """Only the second `cat` of number 7 has the gradient's shape: the first one's result needed none.

    main      ├ cat 7 ┤ ├ cat 7 ┤
    autograd                       ├ CatBackward0 7 ┤
    """
    script = Script()
    script.step(0, 0, 400)
    for start in (0, 20):
        numbered(script.op("aten::cat", start, start + 10, **LIST), 7)
        script.kernel(200 + start, 210 + start, script.launch(start + 2, start + 4))
    node(script, "CatBackward0", 100, "[1000, 8]", 7)

    work = work_of(script)

    assert [(one.name, one.calls, one.moved_bytes) for one in work.operators] == [("aten::cat", 1, 2 * 4 * 8000)]
    assert [(one.name, one.why, one.kernels) for one in work.uncounted] == [("aten::cat", WHY_ODD_SHAPES, 1)]


def test_nodes_of_other_operators_and_numbers_are_not_joined() -> None:
    script = Script()
    script.step(0, 0, 400)
    numbered(script.op("aten::cat", 0, 10, **LIST), 7)
    script.kernel(200, 210, script.launch(2, 4))
    node(script, "StackBackward0", 100, "[1000, 8]", 7)
    node(script, "CatBackward0", 110, "[1000, 8]", 8)

    assert work_of(script).operators == []


def test_numbers_of_two_threads_are_not_told_apart_and_join_nothing() -> None:
    script = Script()
    script.step(0, 0, 400)
    for thread in ("main", "other"):
        numbered(script.op("aten::cat", 0, 10, thread=thread, **LIST), 7)
    script.kernel(200, 210, script.launch(2, 4))
    node(script, "CatBackward0", 100, "[1000, 8]", 7)

    assert work_of(script).operators == []


def test_a_node_that_ran_with_two_shapes_tells_none() -> None:
    script = Script()
    script.step(0, 0, 400)
    numbered(script.op("aten::cat", 0, 10, **LIST), 7)
    script.kernel(200, 210, script.launch(2, 4))
    node(script, "CatBackward0", 100, "[1000, 8]", 7)
    node(script, "CatBackward0", 120, "[1000, 9]", 7)

    assert work_of(script).operators == []


def test_parts_of_a_convolutions_backward_pass_ask_the_call_around_them() -> None:
    script = Script()
    script.step(0, 0, 400)
    types = '["float", "float", "float"]'
    shapes = "[[2, 3, 8, 8], [2, 4, 8, 8], [4, 3, 1, 1]]"
    script.op("aten::cudnn_convolution_backward", 0, 40, shapes=shapes, types=types)
    part = {"shapes": "[[], [2, 4, 8, 8], [2, 3, 8, 8]]", "types": '["GenericList", "float", "float"]'}
    script.op("aten::cudnn_convolution_backward_weight", 10, 30, **part)
    script.kernel(200, 210, script.launch(12, 14))

    (found,) = work_of(script).operators

    assert (found.flops, found.moved_bytes) == (2 * 2 * 64 * 12, 4 * (2 * 4 * 64 + 2 * 3 * 64 + 12))


def look_up(script: Script, start: float, n: int) -> None:
    shapes = f"[[0], [9600], [0], [0, 0], [1], [1], [2], [], [], [2], [], [{n}], [9]]"
    plain = ["float"] * 4 + ["int", "long", "int", "Scalar", "Scalar", "long", "Scalar", "long", "long"]
    script.op(LOOK_UP, start, start + 10, shapes=shapes, types="[" + ", ".join(f'"{one}"' for one in plain) + "]")
    script.kernel(200 + start, 210 + start, script.launch(start + 2, start + 4))


def test_look_ups_go_with_their_gradients_in_the_order_of_the_numbers() -> None:
    """The backward pass runs in the opposite order; 8 bags of width 96, then of 32."""
    script = Script()
    script.step(0, 0, 400)
    look_up(script, 0, 10)
    look_up(script, 20, 50)
    node(script, GRADIENT, 100, "[8, 32]", 42)
    node(script, GRADIENT, 110, "[8, 96]", 41)

    (found,) = work_of(script).operators

    rest = 8 * (10 + 9 + 50 + 9)
    assert (found.calls, found.at_least) == (2, False)
    assert found.moved_bytes == 4 * (10 * 96 + 8 * 96 + 50 * 32 + 8 * 32) + rest


def test_without_a_gradient_for_each_look_up_none_is_joined() -> None:
    script = Script()
    script.step(0, 0, 400)
    look_up(script, 0, 10)
    look_up(script, 20, 50)
    node(script, GRADIENT, 100, "[8, 96]", 41)

    (found,) = work_of(script).operators

    assert (found.calls, found.at_least, found.moved_bytes) == (2, True, (4 * 4 + 8) * (10 + 50) + 2 * 8 * 9)


def test_vllms_attention_asks_the_first_cut_of_its_queries() -> None:
    script = Script()
    script.step(0, 0, 400)
    shapes = "[[16, 8, 64], [16, 1, 64], [16, 1, 64], [16, 8, 64]]"
    half = '["c10::Half", "c10::Half", "c10::Half", "c10::Half"]'
    script.op("vllm::unified_attention_with_output", 0, 60, shapes=shapes, types=half)
    cut = {"types": '["c10::Half", "Scalar", "Scalar", "Scalar", "Scalar"]'}
    script.op("aten::slice", 5, 8, shapes="[[16, 1, 64], [], [], [], []]", **cut).values = '["", "0", "0", "3", "1"]'
    script.op("aten::slice", 10, 14, shapes="[[16, 8, 64], [], [], [], []]", **cut).values = '["", "0", "0", "9", "1"]'
    script.op("aten::slice", 15, 18, shapes="[[16, 8, 64], [], [], [], []]", **cut).values = '["", "0", "0", "4", "1"]'
    script.kernel(200, 210, script.launch(50, 55))

    (found,) = work_of(script).operators

    assert (found.flops, found.moved_bytes, found.at_least) == (None, 2 * 9 * 8 * 64 * 2, True)
