"""Copies, fills, gathers, embeddings, pooling: bytes in and out, and hardly any arithmetic.

A gather reads the rows it takes and its indices, and writes the rows. What falls into a cache twice is counted twice.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final

from longpole.costs.operator_work.call import Tensor
from longpole.costs.operator_work.convolutions import result_places
from longpole.costs.operator_work.products import broadcast
from longpole.costs.operator_work.work import Work, bytes_of, names_of, sum_known

if TYPE_CHECKING:
    from longpole.costs.operator_work.call import Call
    from longpole.costs.operator_work.work import Counter, Family, PartneredCounter


def _move(dtype: str, moved_bytes: int | None, flops: int = 0, family: Family = "move") -> Work:
    return Work(family=family, processor="vector", dtype=dtype, flops=flops, moved_bytes=moved_bytes)


def _copied(call: Call) -> Work | None:
    """Return the work of a copy into a given tensor, which is written and not read."""
    target, source = call.tensor(0), call.tensor(1)
    if target is None or source is None:
        return None
    return _move(target.dtype, bytes_of(target, source))


def _cloned(call: Call) -> Work | None:
    source = call.tensor(0)
    return None if source is None else _move(source.dtype, bytes_of(source, source.written))


def _filled(call: Call) -> Work | None:
    target = call.tensor(0)
    return None if target is None else _move(target.dtype, bytes_of(target))


def _joined(call: Call) -> Work | None:
    """Return the work of putting tensors together: all are read and written."""
    lists = call.lists()
    if not lists:
        return None
    parts = bytes_of(*lists[0])
    return _move(lists[0][0].dtype if lists[0] else "", None if parts is None else 2 * parts)


def _joined_of_result(_call: Call, gradient: Call) -> Work | None:
    """Return the work of putting tensors together whose shapes were not recorded, by the gradient of the result."""
    result = gradient.tensor(0)
    return None if result is None else _move(result.dtype, bytes_of(result, result))


def _taken(source_place: int, index_place: int, call: Call) -> Work | None:
    """Return the work of taking rows by a tensor of indices along a dimension."""
    source, index = call.tensor(source_place), call.tensor(index_place)
    number = call.number(1)
    if source is None or index is None or number is None or not source.shape:
        return None
    dim = int(number) % len(source.shape)
    shape = (*source.shape[:dim], index.elements, *source.shape[dim + 1 :])
    result = Tensor(shape, source.dtype)
    return _move(source.dtype, bytes_of(result, result, index))


def _gathered(call: Call) -> Work | None:
    """Return the work of a gather: as many elements as indices."""
    source, index = call.tensor(0), call.tensor(2)
    if source is None or index is None:
        return None
    result = Tensor(index.shape, source.dtype)
    return _move(source.dtype, bytes_of(result, result, index))


def _scattered(call: Call) -> Work | None:
    """Return the work of scattering a source into places: read, and read and written there."""
    target, index, source = call.tensor(0), call.tensor(2), call.tensor(3)
    if target is None or index is None:
        return None
    moved = Tensor(index.shape, target.dtype)
    return _move(target.dtype, bytes_of(source, moved, moved, index), flops=index.elements)


def _indexed(call: Call) -> Work | None:
    """Return the work of `tensor[indices]`: dimensions in front are replaced by what the indices broadcast to."""
    source, lists = call.tensor(0), call.lists()
    if source is None or not lists or any(len(one.shape) == 0 for one in lists[0]):
        return None
    front = broadcast(*(one.shape for one in lists[0]))
    if front is None or len(lists[0]) > len(source.shape):
        return None
    result = Tensor((*front, *source.shape[len(lists[0]) :]), source.dtype)
    indices = bytes_of(*(one if one.dtype else one.of_type("int64") for one in lists[0]))
    return _move(source.dtype, sum_known((bytes_of(result, result), indices)))


def _put(call: Call) -> Work | None:
    """Return the work of `tensor[indices] = values`."""
    values = call.tensor(2)
    return None if values is None else _move(values.dtype, bytes_of(values, values.written))


def _embedded(call: Call) -> Work | None:
    """Return the work of a look-up: a row is read and written for each index."""
    weight, index = call.tensor(0), call.tensor(1)
    if weight is None or index is None or len(weight.shape) != 2:
        return None
    result = Tensor((*index.shape, weight.shape[1]), weight.dtype)
    return _move(weight.dtype, bytes_of(result, result, index), family="embedding")


def _embedded_backward(call: Call) -> Work | None:
    """Return the work of a look-up's gradient: a matrix of zeros is written, and rows are added to it."""
    gradient, index, rows = call.tensor(0), call.tensor(1), call.number(2)
    if gradient is None or index is None or rows is None or not gradient.shape:
        return None
    weight = Tensor((int(rows), gradient.shape[-1]), gradient.dtype)
    moved_bytes = bytes_of(gradient, gradient.written, index, weight)
    return _move(gradient.dtype, moved_bytes, flops=gradient.elements, family="embedding")


def _bagged(call: Call) -> Work | None:
    """Return the work of summed look-ups: a row is read for each index, and one written for each bag."""
    weight, index, offsets = call.tensor(0), call.tensor(1), call.tensor(2)
    if weight is None or index is None or offsets is None or len(weight.shape) != 2:
        return None
    read = Tensor((index.elements, weight.shape[1]), weight.dtype)
    written = Tensor((offsets.elements, weight.shape[1]), weight.dtype)
    return _move(weight.dtype, bytes_of(read, written, index, offsets), flops=read.elements, family="embedding")


def _pooled(call: Call) -> Work | None:
    """Return the work of pooling: the input is read, the result written, one operation for each element of a window."""
    source, kernel = call.tensor(0), call.sizes(1)
    if source is None or not kernel or len(source.shape) <= len(kernel):
        return None
    stride, padding = call.sizes(2) or kernel, call.sizes(3) or (0,)
    if 0 in stride:
        return None
    spatial = result_places(source.shape[-len(kernel) :], kernel, (stride, padding, (1,)))
    result = Tensor((*source.shape[: -len(kernel)], *spatial), source.dtype)
    places = result.of_type("int64") if call.name.endswith("with_indices") else None
    return _move(source.dtype, bytes_of(source, result, places), result.elements * math.prod(kernel), "reduction")


def _resized(call: Call) -> Work | None:
    """Return the work of a change of resolution to given spatial sizes."""
    source, sizes = call.tensor(0), call.sizes(1)
    if source is None or not sizes or len(source.shape) <= len(sizes):
        return None
    result = Tensor((*source.shape[: -len(sizes)], *sizes), source.dtype)
    return _move(source.dtype, bytes_of(source, result), flops=result.elements)


def _pooled_backward(call: Call) -> Work | None:
    """Return the work of pooling's gradient: the result's is read, the input's written."""
    gradient, source = call.tensor(0), call.tensor(1)
    if gradient is None or source is None:
        return None
    indices = next((one for one in call.tensors()[2:] if one.dtype == "int64"), None)
    return _move(gradient.dtype, bytes_of(gradient, source.written, indices), gradient.elements, "reduction")


_FILLS: Final = names_of(
    "fill_ zero_ uniform_ normal_ bernoulli_ random_ exponential_ log_normal_ cauchy_ fill zeros_like"
)
_JOINS: Final = ("cat", "stack", "_cat", "concat")
_POOLS: Final = names_of("max_pool2d_with_indices max_pool3d_with_indices avg_pool2d avg_pool3d max_pool2d avg_pool1d")
_RESIZES: Final = names_of(
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_bilinear2d"
    " upsample_bicubic2d upsample_linear1d upsample_trilinear3d _upsample_nearest_exact2d"
    " _upsample_bilinear2d_aa _upsample_bicubic2d_aa _adaptive_avg_pool2d adaptive_avg_pool2d"
    " _adaptive_avg_pool3d"
)
_POOLS_BACK: Final = [
    "max_pool2d_with_indices_backward",
    "avg_pool2d_backward",
    "_adaptive_avg_pool2d_backward",
    "max_pool3d_with_indices_backward",
]
COUNTERS: Final[dict[str, Counter]] = {
    "aten::copy_": _copied,
    **{
        f"aten::{name}": _cloned
        for name in ("clone", "contiguous", "flip", "roll", "_reshape_copy", "_unsafe_view_copy")
    },
    **{f"aten::{name}": _filled for name in _FILLS},
    **{f"aten::{name}": _joined for name in _JOINS},
    "aten::index_select": partial(_taken, 0, 2),
    "aten::gather": _gathered,
    **{f"aten::{name}": _scattered for name in ("scatter", "scatter_", "scatter_add", "scatter_add_")},
    "aten::index": _indexed,
    **{f"aten::{name}": _put for name in ("index_put_", "_index_put_impl_", "index_put")},
    "aten::embedding": _embedded,
    "aten::embedding_dense_backward": _embedded_backward,
    "aten::_embedding_bag": _bagged,
    "aten::_embedding_bag_forward_only": _bagged,
    **{f"aten::{name}": _pooled for name in _POOLS},
    **{f"aten::{name}": _resized for name in _RESIZES},
    **{f"aten::{name}": _pooled_backward for name in _POOLS_BACK},
}
NODES_OF: Final[dict[str, tuple[str, ...]]] = {
    **{f"aten::{name}": ("CatBackward",) for name in ("cat", "_cat", "concat")},
    "aten::stack": ("StackBackward",),
}
"""Operator -> nodes of autograd whose gradient has the shape of its result."""
PARTNERED: Final[dict[str, PartneredCounter]] = dict.fromkeys(NODES_OF, _joined_of_result)
