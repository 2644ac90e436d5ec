"""Matrix products: 2·M·K·N FLOPs; operands are read once and the result is written once.

*Source:* the definition of the product; argument orders are those of PyTorch's operators
(`aten/src/ATen/native/native_functions.yaml`). A bias or an addend is read, and its addition not counted, as is usual.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from longpole.costs.operator_work.call import Tensor
from longpole.costs.operator_work.work import Work, bytes_of

if TYPE_CHECKING:
    from longpole.costs.operator_work.call import Call
    from longpole.costs.operator_work.work import Counter


def _work(left: Tensor, right: Tensor, result: Tensor, inner: int, *more: Tensor | None) -> Work:
    return Work(
        family="matmul",
        processor="tensor",
        dtype=left.dtype if left.dtype == right.dtype else "",
        flops=2 * result.elements * inner,
        moved_bytes=bytes_of(left, right, result, *more),
    )


def _plain(left: Tensor | None, right: Tensor | None, addend: Tensor | None = None) -> Work | None:
    """Return the work of `[..., M, K] · [..., K, N]`, leading dimensions broadcast, vectors as PyTorch takes them."""
    if left is None or right is None or not left.shape or not right.shape:
        return None
    rows = left.shape[-2:-1]
    columns = right.shape[-1:] if len(right.shape) > 1 else ()
    inner = left.shape[-1]
    if inner != (right.shape[-2] if len(right.shape) > 1 else right.shape[-1]):
        return None
    batch = broadcast(left.shape[:-2], right.shape[:-2])
    if batch is None:
        return None
    return _work(left, right, Tensor(batch + rows + columns, left.dtype), inner, addend)


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape that shapes broadcast to, None where they do not.

    >>> broadcast((4, 1), (3,)), broadcast((2,), (3,))
    ((4, 3), None)
    """
    length = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (length - len(shape)) + shape for shape in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            return None
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def _product(call: Call) -> Work | None:
    return _plain(call.tensor(0), call.tensor(1))


def _with_addend(call: Call) -> Work | None:
    return _plain(call.tensor(1), call.tensor(2), call.tensor(0))


def _linear(call: Call) -> Work | None:
    """Return the work of `[..., K] · [N, K]ᵀ`."""
    left, weight = call.tensor(0), call.tensor(1)
    if left is None or weight is None or not left.shape or not weight.shape or left.shape[-1] != weight.shape[-1]:
        return None
    result = Tensor(left.shape[:-1] + weight.shape[:-1], left.dtype)
    return _work(left, weight, result, left.shape[-1], call.tensor(2))


def _scaled(call: Call) -> Work | None:
    """Return the work of an 8-bit product with scales; `out_dtype` says what comes out, else bf16 is written."""
    left, right = call.tensor(0), call.tensor(1)
    if left is None or right is None or len(left.shape) != 2 or len(right.shape) != 2:
        return None
    if left.shape[1] != right.shape[0]:
        return None
    result = Tensor((left.shape[0], right.shape[1]), call.dtype_at(6) or "bf16")
    return _work(left, right, result, left.shape[1], *(call.tensor(place) for place in (2, 3, 4)))


def _dot(call: Call) -> Work | None:
    left, right = call.tensor(0), call.tensor(1)
    if left is None or right is None or left.shape != right.shape:
        return None
    # A vector at a time leaves matrix units idle.
    return Work(
        family="matmul",
        processor="vector",
        dtype=left.dtype,
        flops=2 * math.prod(left.shape),
        moved_bytes=bytes_of(left, right, Tensor((), left.dtype)),
    )


COUNTERS: Final[dict[str, Counter]] = {
    "aten::mm": _product,
    "aten::bmm": _product,
    "aten::mv": _product,
    "aten::matmul": _product,
    "aten::_int_mm": _product,
    "aten::addmm": _with_addend,
    "aten::addmm_": _with_addend,
    "aten::_addmm_activation": _with_addend,
    "aten::baddbmm": _with_addend,
    "aten::baddbmm_": _with_addend,
    "aten::addmv": _with_addend,
    "aten::addmv_": _with_addend,
    "aten::linear": _linear,
    "aten::_scaled_mm": _scaled,
    "aten::dot": _dot,
    "aten::vdot": _dot,
}
