"""Normalisations and softmax, forward and backward: each element is read once and its result written once.

FLOPs an element, by the textbook formulas. *Forward:* mean 1, variance 3 (subtract, square, add), normalise 2,
affine 2: 8; without a mean (RMS) 5; running statistics at inference 4. *Backward:* γ·dy 1, its two sums 3, x̂ again 2,
dx 5, dγ 2, dβ 1: 14; RMS 10. *Softmax:* maximum, subtract, exponential, sum, divide: 5; backward: product, sum,
subtract, product: 4. A kernel that does not fit its row into a processor reads it again; that is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from longpole.costs.operator_work.work import Work, bytes_of

if TYPE_CHECKING:
    from longpole.costs.operator_work.call import Call, Tensor
    from longpole.costs.operator_work.work import Counter

_FORWARD: Final = 8
_RMS: Final = 5
_INFERENCE: Final = 4
_BACKWARD: Final = 14
_RMS_BACKWARD: Final = 10
_SOFTMAX: Final = 5
_SOFTMAX_BACKWARD: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """FLOPs an element, and the places of the tensors of the full size: those read, and how many are written.

    Attributes:
        full: Places of tensors as large as the result.
        written: How many tensors of that size are written.
        small: Places of weights and statistics, which are read.
        training: Place of the flag that batch statistics are computed, -1 where they always are.
    """

    flops: int
    full: tuple[int, ...] = (0,)
    written: int = 1
    small: tuple[int, ...] = ()
    training: int = -1


def _normalised(form: _Form, call: Call) -> Work | None:
    full = [call.tensor(place) for place in form.full]
    first = full[0]
    if first is None:
        return None
    flops = form.flops
    if form.training >= 0 and call.flag(form.training) is False:
        flops = _INFERENCE
    written: list[Tensor | None] = [first.written] * form.written
    small = [call.tensor(place) for place in form.small]
    return Work(
        family="normalisation",
        processor="vector",
        dtype=first.dtype,
        flops=flops * first.elements,
        moved_bytes=bytes_of(*full, *written, *small),
    )


_BATCH: Final = _Form(flops=_FORWARD, small=(1, 2, 3, 4), training=5)
_SOFT: Final = _Form(flops=_SOFTMAX)
_SOFT_BACK: Final = _Form(flops=_SOFTMAX_BACKWARD, full=(0, 1))
_FORMS: Final[dict[str, _Form]] = {
    "aten::native_layer_norm": _Form(flops=_FORWARD, small=(2, 3)),
    "aten::layer_norm": _Form(flops=_FORWARD, small=(2, 3)),
    "aten::native_layer_norm_backward": _Form(flops=_BACKWARD, full=(0, 1), small=(3, 4, 5)),
    "aten::native_group_norm": _Form(flops=_FORWARD, small=(1, 2)),
    "aten::group_norm": _Form(flops=_FORWARD, small=(2, 3)),
    "aten::native_group_norm_backward": _Form(flops=_BACKWARD, full=(0, 1), small=(2, 3, 4)),
    "aten::native_batch_norm": _BATCH,
    "aten::batch_norm": _BATCH,
    "aten::cudnn_batch_norm": _BATCH,
    "aten::miopen_batch_norm": _BATCH,
    "aten::_native_batch_norm_legit": _BATCH,
    "aten::_batch_norm_impl_index": _BATCH,
    "aten::native_batch_norm_backward": _Form(flops=_BACKWARD, full=(0, 1), small=(2, 3, 4, 5, 6)),
    "aten::cudnn_batch_norm_backward": _Form(flops=_BACKWARD, full=(0, 1), small=(2, 3, 4, 5, 6)),
    "aten::miopen_batch_norm_backward": _Form(flops=_BACKWARD, full=(0, 1), small=(2, 3, 4, 5, 6)),
    "aten::rms_norm": _Form(flops=_RMS, small=(2,)),
    "aten::_fused_rms_norm": _Form(flops=_RMS, small=(2,)),
    "aten::_fused_rms_norm_backward": _Form(flops=_RMS_BACKWARD, full=(0, 1), small=(3, 4)),
    "aten::_softmax": _SOFT,
    "aten::softmax": _SOFT,
    "aten::_log_softmax": _SOFT,
    "aten::log_softmax": _SOFT,
    "aten::_masked_softmax": _Form(flops=_SOFTMAX, full=(0, 1)),
    "aten::_softmax_backward_data": _SOFT_BACK,
    "aten::_log_softmax_backward_data": _SOFT_BACK,
}
COUNTERS: Final[dict[str, Counter]] = {name: partial(_normalised, form) for name, form in _FORMS.items()}
