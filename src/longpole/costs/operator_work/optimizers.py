"""Optimizers over lists of tensors: fused steps, and the list operators that unfused ones are made of.

A fused step reads parameter, gradient and states, and writes parameter and states. FLOPs an element: Adam's first
moment 3, second 4, denominator 3, update 2, weight decay 1: 13; SGD with momentum 4; Adagrad 6.
Older recorders write lists of tensors without their shapes: such calls are not counted.

*Source:* the update rules (arXiv:1412.6980, arXiv:1711.05101); argument orders are PyTorch's (`native_functions.yaml`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from longpole.costs.operator_work.work import Work, bytes_of, names_of, sum_known

if TYPE_CHECKING:
    from longpole.costs.operator_work.call import Call, Tensor
    from longpole.costs.operator_work.work import Counter

_GRADIENT: Final = 1  # place of the gradients among the lists of a fused step


def _fused(flops: int, states: int, call: Call) -> Work | None:
    """Return the work of a fused step: lists are parameters, gradients, then states; further ones hold step counts."""
    lists = call.lists()[: 2 + states]
    if len(lists) < 2 or len({_elements(one) for one in lists}) != 1:
        return None
    written = [one for place, one in enumerate(lists) if place != _GRADIENT]
    moved_bytes = sum_known(bytes_of(*one) for one in (*lists, *written))
    return _work(lists[0], flops * _elements(lists[0]), moved_bytes)


def _each(flops: int, call: Call, *, reads_target: bool, writes: bool) -> Work | None:
    """Return the work of a list operator: all lists are read, and one as large as the first is written."""
    lists = call.lists()
    if not lists or (not reads_target and len(lists) < 2 and "copy" in call.name):
        return None
    read = lists if reads_target else lists[1:]
    parts = [*read, lists[0]] if writes else read
    return _work(lists[0], flops * _elements(lists[0]), sum_known(bytes_of(*one) for one in parts))


def _elements(tensors: tuple[Tensor, ...]) -> int:
    return sum(one.elements for one in tensors)


def _work(tensors: tuple[Tensor, ...], flops: int, moved_bytes: int | None) -> Work:
    dtype = tensors[0].dtype if tensors else ""
    return Work(family="optimizer", processor="vector", dtype=dtype, flops=flops, moved_bytes=moved_bytes)


# FLOPs an element of what list operators do.
_LISTS: Final[dict[str, int]] = {
    **dict.fromkeys(
        names_of("add sub mul div sqrt rsqrt neg abs exp log reciprocal pow maximum minimum clamp_min clamp_max sign"),
        1,
    ),
    **dict.fromkeys(("lerp", "addcmul", "addcdiv"), 3),
}
COUNTERS: Final[dict[str, Counter]] = {
    "aten::_fused_adam_": partial(_fused, 12, 2),
    "aten::_fused_adamw_": partial(_fused, 13, 2),
    "aten::_fused_sgd_": partial(_fused, 4, 1),
    "aten::_fused_adagrad_": partial(_fused, 6, 1),
    "aten::_foreach_norm": partial(_each, 2, reads_target=True, writes=False),
    "aten::_foreach_zero_": partial(_each, 0, reads_target=False, writes=True),
    "aten::_foreach_copy_": partial(_each, 0, reads_target=False, writes=True),
    "aten::_amp_foreach_non_finite_check_and_unscale_": partial(_each, 1, reads_target=True, writes=True),
}
for _name, _flops in _LISTS.items():
    for _end in ("", "_"):
        COUNTERS[f"aten::_foreach_{_name}{_end}"] = partial(_each, _flops, reads_target=True, writes=True)
