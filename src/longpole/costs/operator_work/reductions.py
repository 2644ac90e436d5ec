"""Reductions: everything is read once, one operation an element; the result is what the named dimensions leave.

Sorting and selecting move their input and what they give; how often they pass over it is not counted.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from longpole.costs.operator_work.call import Tensor
from longpole.costs.operator_work.work import Work, bytes_of, names_of

if TYPE_CHECKING:
    from longpole.costs.operator_work.call import Call
    from longpole.costs.operator_work.work import Counter

# FLOPs an element of the input, and the place of the dimensions that are reduced.
_REDUCTIONS: Final[dict[str, tuple[int, int]]] = {
    **{f"aten::{name}": (1, 1) for name in names_of("sum mean nansum prod amax amin max min logsumexp")},
    **{f"aten::{name}": (0, 1) for name in ["argmax", "argmin", "any", "all"]},
    **{f"aten::{name}": (3, 1) for name in ["var", "std", "var_mean", "std_mean"]},
    "aten::norm": (2, 2),
    "aten::linalg_vector_norm": (2, 2),
    "aten::count_nonzero": (0, 1),
}
_SCANS: Final = ("cumsum", "cumprod", "cummax", "logcumsumexp")
_SORTS: Final = ("sort", "topk", "argsort", "kthvalue", "msort")


def _reduced(flops: int, place: int, call: Call) -> Work | None:
    source = call.tensor(0)
    if source is None:
        return None
    other = call.tensor(1)
    if other is not None:  # `max(a, b)` compares two tensors
        return _vector(source, flops * source.elements, bytes_of(source, other, source.written))
    return _vector(source, flops * source.elements, bytes_of(source, _left(source, call, place)))


def _left(source: Tensor, call: Call, place: int) -> Tensor:
    """Return what the reduced dimensions leave: one element where none is named."""
    number = call.number(place)
    dims = call.sizes(place) or ((int(number),) if number is not None else ())
    count = len(source.shape)
    if not dims or not count or any(not -count <= dim < count for dim in dims):
        return Tensor((), source.dtype)
    reduced = {dim % count for dim in dims}
    return Tensor(tuple(size for dim, size in enumerate(source.shape) if dim not in reduced), source.dtype)


def _mean_square(call: Call) -> Work | None:
    """Return the work of a mean squared error: a subtraction, a square and a sum for each pair."""
    source, target = call.tensor(0), call.tensor(1)
    if source is None or target is None or source.shape != target.shape:
        return None
    result = source.written if call.value(2) == "0" else Tensor((), source.dtype)
    return _vector(source, 3 * source.elements, bytes_of(source, target, result))


def _scanned(call: Call) -> Work | None:
    source = call.tensor(0)
    return None if source is None else _vector(source, source.elements, bytes_of(source, source.written))


def _sorted(call: Call) -> Work | None:
    source = call.tensor(0)
    if source is None:
        return None
    result = source
    if call.name == "aten::topk":
        kept = call.number(1)
        if kept is None or not source.shape:
            return None
        result = Tensor((*source.shape[:-1], int(kept)), source.dtype)
    return _vector(source, 0, bytes_of(source, result, result.of_type("int64")))


def _vector(source: Tensor, flops: int, moved_bytes: int | None) -> Work:
    return Work(family="reduction", processor="vector", dtype=source.dtype, flops=flops, moved_bytes=moved_bytes)


COUNTERS: Final[dict[str, Counter]] = {
    **{name: partial(_reduced, flops, place) for name, (flops, place) in _REDUCTIONS.items()},
    "aten::mse_loss": _mean_square,
    **{f"aten::{name}": _scanned for name in _SCANS},
    **{f"aten::{name}": _sorted for name in _SORTS},
}
