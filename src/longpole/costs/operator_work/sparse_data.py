"""FBGEMM's operators on sparse features, pooled embeddings and quantised rows: bytes in and out.

Features come as lengths `[T, B]` and N indices. A permutation of P = T features moves all of them; with another P, how
many indices come out is an argument that older recorders left out, and only lengths are counted: a bound.

*Source:* argument orders of FBGEMM (`fbgemm_gpu/src`: `sparse_ops`, `permute_pooled_embedding_ops`, `quantize_ops`,
`split_embeddings_utils`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from longpole.costs.operator_work.call import Tensor
from longpole.costs.operator_work.work import Work, bytes_of

if TYPE_CHECKING:
    from longpole.costs.operator_work.call import Call
    from longpole.costs.operator_work.work import Counter

_SCALE_BYTES: Final = 8  # a 32-bit scale and a 32-bit offset close each row of 8-bit numbers
_ROW_ALIGN: Final = 4  # rows of 8-bit numbers are padded to multiples of it
_FP32_OUT: Final = 0  # FBGEMM's number of fp32 among the types of a result
_RANKS_PLACE: Final = 5  # of `block_bucketize_sparse_features`: for how many ranks


def _move(dtype: str, moved_bytes: int | None, *, flops: int = 0, at_least: bool = False) -> Work:
    return Work(family="move", processor="vector", dtype=dtype, flops=flops, moved_bytes=moved_bytes, at_least=at_least)


def _permuted(sum_place: int, call: Call) -> Work | None:
    """Return the work of reordering features: permutation, lengths, indices, their weights if any."""
    order, lengths, ids, weights = (call.tensor(place) for place in range(4))
    if order is None or lengths is None or ids is None or not lengths.shape or not lengths.shape[0]:
        return None
    batch = lengths.elements // lengths.shape[0]
    moved_lengths = Tensor((order.elements, batch), lengths.dtype)
    total = call.number(sum_place) if sum_place >= 0 else None
    if order.elements == lengths.shape[0]:
        count: int | None = ids.elements
    else:
        count = None if total is None or total < 0 else int(total)
    if count is None:
        return _move(ids.dtype, bytes_of(order, moved_lengths, moved_lengths), at_least=True)
    taken = [Tensor((count,), one.dtype) for one in (ids, weights) if one is not None]
    return _move(ids.dtype, bytes_of(order, moved_lengths, moved_lengths, *taken, *taken))


def _bucketized(call: Call) -> Work | None:
    """Return the work of splitting features by the rank that holds their rows.

    Without the number of ranks and the flags: results are lengths for at least one, and as many indices.
    """
    lengths, ids, sizes, weights = (call.tensor(place) for place in (0, 1, 4, 6))
    if lengths is None or ids is None:
        return None
    ranks = call.number(_RANKS_PLACE)
    flags = [call.flag(place) for place in (2, 3)]  # whether positions are kept, and the way back
    is_told = ranks is not None and ranks >= 1 and None not in flags
    new_lengths = Tensor((int(ranks) if ranks is not None and is_told else 1, lengths.elements), lengths.dtype)
    more = [ids] * sum(flag is True for flag in flags)
    moved_bytes = bytes_of(lengths, ids, sizes, weights, new_lengths, ids, weights, *more)
    return _move(ids.dtype, moved_bytes, at_least=not is_told)


def _cumulated(call: Call) -> Work | None:
    """Return the work of running sums that begin with 0."""
    source = call.tensor(0)
    if source is None:
        return None
    result = Tensor((source.elements + 1,), source.dtype)
    return _move(source.dtype, bytes_of(source, result))


def _checked(call: Call) -> Work | None:
    """Return the work of comparing indices with the rows of their tables: rows, indices, offsets are read."""
    rows, ids, offsets = (call.tensor(place) for place in range(3))
    if rows is None or ids is None or offsets is None:
        return None
    return _move(ids.dtype, bytes_of(rows, ids, offsets))


def _reordered(call: Call) -> Work | None:
    """Return the work of writing all elements to other places: duplicates are another operator's."""
    source = call.tensor(0)
    return None if source is None else _move(source.dtype, bytes_of(source, source.written))


def _to_bytes(extra_bytes: int, align: int, call: Call) -> Work | None:
    """Return the work of quantising each row to 8-bit numbers."""
    source = call.tensor(0)
    if source is None or not source.shape:
        return None
    width = -(-source.shape[-1] // align) * align + extra_bytes
    result = Tensor((*source.shape[:-1], width), "int8")
    return _move(source.dtype, bytes_of(source, result), flops=source.elements)


def _from_bytes(extra_bytes: int, call: Call) -> Work | None:
    """Return the work of the way back to 32 bits; another type of the result is an argument."""
    source = call.tensor(0)
    if source is None or not source.shape or source.shape[-1] < extra_bytes:
        return None
    if extra_bytes and len(call.inputs) > 2 and call.number(2) != _FP32_OUT:
        return None
    result = Tensor((*source.shape[:-1], source.shape[-1] - extra_bytes), "fp32")
    return _move("fp32", bytes_of(source, result), flops=result.elements)


COUNTERS: Final[dict[str, Counter]] = {
    "fbgemm::permute_1D_sparse_data": partial(_permuted, 4),
    "fbgemm::permute_2D_sparse_data": partial(_permuted, 4),
    "fbgemm::permute_sparse_features": partial(_permuted, -1),
    "fbgemm::block_bucketize_sparse_features": _bucketized,
    "fbgemm::asynchronous_complete_cumsum": _cumulated,
    "fbgemm::bounds_check_indices": _checked,
    "fbgemm::permute_pooled_embs": _reordered,
    "fbgemm::permute_pooled_embs_auto_grad": _reordered,
    "torch::autograd::CppNode<fbgemm_gpu::PermutePooledEmbsFunction<&fbgemm_gpu::permute_pooled_embs_gpu> >": (
        _reordered
    ),
    "fbgemm::recat_embedding_grad_output_mixed_D": _reordered,
    "fbgemm::recat_embedding_grad_output_mixed_D_batch": _reordered,
    "fbgemm::FloatToFP8RowwiseQuantized": partial(_to_bytes, _SCALE_BYTES, _ROW_ALIGN),
    "fbgemm::FP8RowwiseQuantizedToFloat": partial(_from_bytes, _SCALE_BYTES),
    "fbgemm::FloatToHFP8Quantized": partial(_to_bytes, 0, 1),
    "fbgemm::HFP8QuantizedToFloat": partial(_from_bytes, 0),
}
