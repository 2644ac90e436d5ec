"""Element-wise operators: every input is read, the result is written, and each element of it costs a few FLOPs.

The result has the shape that the inputs broadcast to. An operator that ends in `_` writes where it reads. Elementary
functions (exp, tanh, …) count as one operation; formulas that use several count each: GELU 8 (its polynomial, tanh),
SiLU 3 (exp, add, divide), their backward passes 12 and 6.

Calls that are handed a tensor for their result are recorded by the same name with one more argument: a tensor behind an
operator's own ones is written and not read.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from longpole.costs.operator_work.call import ELEMENT_BYTES, Tensor
from longpole.costs.operator_work.products import broadcast
from longpole.costs.operator_work.work import Work, bytes_of, names_of

if TYPE_CHECKING:
    from longpole.costs.operator_work.call import Call
    from longpole.costs.operator_work.work import Counter

_FLOATS: Final = ("fp64", "fp32", "bf16", "fp16", "fp8", "complex64", "complex128")
# FLOPs an element of the result.
_FLOPS: Final[dict[str, int]] = {
    **dict.fromkeys(
        names_of(
            "add sub rsub mul div neg abs relu sqrt rsqrt exp exp2 log log2 log1p expm1 sin cos tan"
            " tanh erf erfc ceil floor round trunc frac sign sgn reciprocal pow maximum minimum fmod"
            " remainder floor_divide true_divide clamp clamp_min clamp_max threshold threshold_backward"
            " hardtanh hardtanh_backward atan2 atan asin acos square masked_scale xlogy logaddexp"
            " _conj_physical native_dropout_backward"
        ),
        1,
    ),
    **dict.fromkeys(("lerp", "addcmul", "addcdiv", "leaky_relu", "leaky_relu_backward", "hypot", "native_dropout"), 2),
    **dict.fromkeys(("sigmoid", "silu", "tanh_backward", "softplus", "mse_loss_backward", "elu", "celu", "selu"), 3),
    **dict.fromkeys(("sigmoid_backward", "logit", "mish", "hardswish", "hardsigmoid", "elu_backward"), 4),
    **dict.fromkeys(("silu_backward", "hardswish_backward", "softplus_backward"), 6),
    "gelu": 8,
    "gelu_backward": 12,
    # No arithmetic of floating point: what is chosen, compared or copied.
    **dict.fromkeys(
        names_of(
            "where masked_fill bitwise_and bitwise_or bitwise_xor bitwise_not logical_and logical_or"
            " logical_xor logical_not __and__ __or__ __xor__ __lshift__ __rshift__ bitwise_left_shift"
            " bitwise_right_shift tril triu nan_to_num angle real view_as_real"
        ),
        0,
    ),
    **dict.fromkeys(names_of("eq ne lt le gt ge isnan isinf isfinite"), 0),
}
# How many arguments may be tensors that are read, from the first on; one of those not listed.
_READ: Final[dict[str, int]] = {
    **dict.fromkeys(
        names_of(
            "add sub rsub mul div pow maximum minimum fmod remainder floor_divide true_divide clamp_min clamp_max"
            " threshold_backward hardtanh_backward leaky_relu_backward tanh_backward sigmoid_backward silu_backward"
            " hardswish_backward softplus_backward gelu_backward native_dropout_backward masked_scale atan2 xlogy"
            " logaddexp hypot bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor __and__ __or__"
            " __xor__ __lshift__ __rshift__ bitwise_left_shift bitwise_right_shift eq ne lt le gt ge"
        ),
        2,
    ),
    **dict.fromkeys(names_of("lerp addcmul addcdiv where masked_fill clamp mse_loss_backward"), 3),
    "elu_backward": 6,  # scalars stand between the gradient and what it belongs to
}
_TRUTH: Final = frozenset(
    names_of("eq ne lt le gt ge isnan isinf isfinite logical_and logical_or logical_xor logical_not")
)


def _elementwise(flops: int, call: Call, *, read: int, gives_truth: bool, in_place: bool) -> Work | None:
    inputs = [one for place in range(read) if (one := call.tensor(place)) is not None]
    shape = broadcast(*(one.shape for one in inputs)) if inputs else None
    if shape is None:
        return None
    result = inputs[0].written if in_place else Tensor(shape, "bool" if gives_truth else widest(inputs))
    is_float = widest(inputs) in _FLOATS
    return Work(
        family="elementwise",
        processor="vector",
        dtype=widest(inputs),
        flops=flops * result.elements if is_float or not widest(inputs) else 0,
        moved_bytes=bytes_of(*inputs, result),
    )


def widest(inputs: list[Tensor]) -> str:
    """Return the type that PyTorch promotes to: floats before integers, wide before narrow, dimensions before none.

    An empty text where a type is not known.
    """
    if any(one.dtype not in ELEMENT_BYTES for one in inputs):
        return ""
    ranked = sorted(inputs, key=lambda one: (one.dtype in _FLOATS, bool(one.shape), ELEMENT_BYTES[one.dtype]))
    return ranked[-1].dtype if ranked else ""


def _native_dropout(call: Call) -> Work | None:
    """Return the work of dropout: a mask of one byte is written besides."""
    source = call.tensor(0)
    if source is None:
        return None
    return Work(
        family="elementwise",
        processor="vector",
        dtype=source.dtype,
        flops=2 * source.elements,
        moved_bytes=bytes_of(source, source.written, source.of_type("bool")),
    )


COUNTERS: Final[dict[str, Counter]] = {}
for _name, _each in _FLOPS.items():
    for _end in ("", "_"):
        COUNTERS[f"aten::{_name}{_end}"] = partial(
            _elementwise, _each, read=_READ.get(_name, 1), gives_truth=_name in _TRUTH, in_place=_end == "_"
        )
COUNTERS["aten::native_dropout"] = _native_dropout
COUNTERS["aten::_fused_dropout"] = _native_dropout
