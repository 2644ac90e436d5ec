"""FBGEMM's tables of embeddings: what the arguments of a look-up tell, exactly or as a bound.

A batch of T features looks N indices up in tables of widths D_t, for B bags of each feature. Widths lie in memory, not
in the record. What it tells are T, N, B·T, the elements of all tables, and the result's shape by the gradient that
comes back: [B, ΣD_t] where bags are summed, [N, D] where each index keeps its row. So widths are known where T is 1,
where ΣD_t is T times the largest, and where rows are kept; elsewhere a row counts as 4 elements, the least that the
library takes, and bytes are a bound.

    look-up    a row of a table for each index, indices, offsets, weights of indices; the result
    gradient   a row of the result's gradient for each index, indices, offsets, weights of indices

How many distinct rows an update then reads and writes is nowhere, so bytes of a gradient are always a bound, and so
are those of a look-up in tables that lie in the host's memory, whose rows may come from there.

*Source:* argument orders of FBGEMM (`fbgemm_gpu/codegen`, host code of the split and the dense backward pass), which
also requires widths to be multiples of 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from longpole.costs.operator_work.call import ELEMENT_BYTES
from longpole.costs.operator_work.work import Work, bytes_of, sum_known

if TYPE_CHECKING:
    from longpole.costs.operator_work.call import Call, Tensor
    from longpole.costs.operator_work.work import Counter, PartneredCounter

_WIDTH_MIN: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """Where the arguments of a look-up are.

    Attributes:
        device: Place of the tables on the device.
        elsewhere: Places of those in the host's memory.
        features: Place of one number for each feature; offsets, the sum and the largest of widths follow.
        indices: Place of indices; offsets of bags, how bags are pooled, and weights of indices follow.
        is_rowwise: Whether the first state holds one element for each row of the tables.
    """

    device: int
    elsewhere: tuple[int, ...]
    features: int
    indices: int
    is_rowwise: bool = False


@dataclass(frozen=True, slots=True)
class _LookUp:
    """What a look-up's arguments tell, and its result's shape where that is at hand.

    Attributes:
        read_once: Indices, offsets, weights of indices where they have any.
        n: Number of indices.
        dtype: Element type of the tables.
        width: Of all rows, None where it is not known.
        is_on_device: Whether all tables are.
        is_pooled: Whether rows are summed, None where that is not known.
    """

    read_once: tuple[Tensor | None, ...]
    n: int
    dtype: str
    width: int | None
    is_on_device: bool
    is_pooled: bool | None

    @property
    def least_width(self) -> int:
        """The width, or the least that there can be."""
        return _WIDTH_MIN if self.width is None else self.width


def _read(form: _Form, call: Call, result: Tensor | None) -> _LookUp | None:
    tables, ids, offsets = (call.tensor(place) for place in (form.device, form.indices, form.indices + 1))
    features, widths = call.tensor(form.features), call.tensor(form.features + 1)
    if tables is None or ids is None or offsets is None or features is None or widths is None:
        return None
    n_features, bags = features.elements, offsets.elements - 1
    if n_features == 0 or widths.elements != n_features + 1 or bags % n_features:
        return None
    elsewhere = [one for place in form.elsewhere if (one := call.tensor(place)) is not None and one.elements]
    is_pooled = _is_pooled(result, bags // n_features, ids.elements)
    return _LookUp(
        read_once=(ids, offsets, call.tensor(form.indices + 3)),
        n=ids.elements,
        dtype=tables.dtype,
        width=_width(form, call, n_features, result if is_pooled is not None else None, is_pooled=bool(is_pooled)),
        is_on_device=not elsewhere,
        is_pooled=is_pooled,
    )


def _is_pooled(result: Tensor | None, bags: int, n: int) -> bool | None:
    """Return whether a result has a row for each bag, not for each index; None where it does not tell."""
    if result is None or len(result.shape) != 2 or (bags == n) or result.shape[0] not in (bags, n):
        return None
    return result.shape[0] == bags


def _width(form: _Form, call: Call, n_features: int, result: Tensor | None, *, is_pooled: bool) -> int | None:
    """Return the width of all rows where it is one, and known."""
    if result is not None and (n_features == 1 or not is_pooled):
        return result.shape[1]
    total, largest = call.number(form.features + 2), call.number(form.features + 3)
    if result is not None:
        total = result.shape[1]
    if total and largest and 0 < largest == total / n_features:
        return int(largest)
    return _width_by_state(form, call) if n_features == 1 and form.is_rowwise else None


def _width_by_state(form: _Form, call: Call) -> int | None:
    """Return the width of the only table by its state, which has an element for each row.

    The state's parts on the device and elsewhere are followed by where each feature's is, and by its offset.
    """
    for place in range(form.indices + 4, len(call.inputs) - 3):
        own, other, where, start = (call.tensor(place + i) for i in range(4))
        if own is None or other is None or where is None or start is None:
            continue
        if (where.shape, start.shape, where.dtype, start.dtype) != ((1,), (1,), "int32", "int64"):
            continue
        parts = (call.tensor(one) for one in (form.device, *form.elsewhere))
        elements, rows = sum(one.elements for one in parts if one is not None), own.elements + other.elements
        is_whole = rows > 0 and elements % (rows * _WIDTH_MIN) == 0
        return elements // rows if is_whole else None
    return None


def _looked_up(form: _Form, call: Call, gradient: Call | None = None) -> Work | None:
    """Return the work of a look-up; the gradient that comes back has the shape of its result."""
    result = gradient.tensor(0) if gradient is not None else None
    found = _read(form, call, result)
    if found is None:
        return None
    row_bytes = _times(found.n * found.least_width, found.dtype) if found.is_on_device else 0
    written = bytes_of(result) if found.is_pooled is not None else None
    flops = None
    if found.width is not None and found.is_pooled is not None:
        weighted = 1 if found.read_once[2] is None else 2
        flops = found.n * found.width * (weighted if found.is_pooled else weighted - 1)
    return Work(
        family="embedding",
        processor="vector",
        dtype=found.dtype,
        flops=flops,
        moved_bytes=sum_known((row_bytes, bytes_of(*found.read_once), written or 0)),
        at_least=found.width is None or written is None or not found.is_on_device,
    )


def _gradient(form: _Form, call: Call, forward: Call) -> Work | None:
    """Return the work of a look-up's gradient, and of the tables' update in the same pass, as far as it is known."""
    gradient = call.tensor(0)
    found = _read(form, forward, gradient)
    if found is None or gradient is None or found.n == 0:
        return None  # without indices nothing must be read
    row_bytes = _times(found.n * found.least_width, gradient.dtype)
    return Work(
        family="embedding",
        processor="vector",
        dtype=found.dtype,
        flops=None,
        moved_bytes=sum_known((row_bytes, bytes_of(*found.read_once))),
        at_least=True,
    )


def _times(elements: int, dtype: str) -> int | None:
    each = ELEMENT_BYTES.get(dtype)
    return None if each is None else elements * each


_OPTIMIZERS: Final = (
    "adagrad",
    "adam",
    "approx_rowwise_adagrad",
    "lamb",
    "lars_sgd",
    "partial_rowwise_adam",
    "partial_rowwise_lamb",
    "rowwise_adagrad",
    "rowwise_adagrad_with_weight_decay",
    "rowwise_weighted_adagrad",
    "sgd",
)
_SPLIT: Final = {
    name: _Form(device=1, elsewhere=(2,), features=5, indices=11, is_rowwise=name.startswith("rowwise"))
    for name in _OPTIMIZERS
}
_DENSE: Final = _Form(device=0, elsewhere=(), features=1, indices=7)
_LOOK_UPS: Final[dict[str, _Form]] = {
    "fbgemm::dense_embedding_codegen_lookup_function": _DENSE,
    **{f"fbgemm::split_embedding_codegen_lookup_{name}_function": form for name, form in _SPLIT.items()},
}
# Versions differ in where they declare the gradient's function.
_SPACES: Final = ("", "(anonymous namespace)::")
GRADIENT_OF: Final[dict[str, str]] = {
    f"torch::autograd::CppNode<{space}SplitLookupFunction_{name}_Op>": look_up
    for space in _SPACES
    for name, look_up in zip(("Dense", *_SPLIT), _LOOK_UPS, strict=True)
}
"""Operator of a gradient -> the look-up that it belongs to."""
COUNTERS: Final[dict[str, Counter]] = {name: partial(_looked_up, form) for name, form in _LOOK_UPS.items()}
PARTNERED: Final[dict[str, PartneredCounter]] = {
    **{name: partial(_looked_up, form) for name, form in _LOOK_UPS.items()},
    **{name: partial(_gradient, _LOOK_UPS[look_up]) for name, look_up in GRADIENT_OF.items()},
}
