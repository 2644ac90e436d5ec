"""Convolutions: 2 FLOPs for each place of the result, each channel of it, and each weight that feeds it.

With a weight of `[out, in / groups, k…]`, one result place costs 2 · (all weights) over all channels. A transposed
convolution does the same for each place of its input. Backward does it once for the input's gradient and once for the
weight's, as far as its mask asks for them.

*Source:* the definition; argument orders are PyTorch's (`native_functions.yaml`). That a library uses a transform with
fewer multiplications (Winograd, FFT) only the names of its kernels say: what is counted here is not what it computes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from longpole.costs.operator_work.call import Tensor
from longpole.costs.operator_work.work import Work, bytes_of

if TYPE_CHECKING:
    from longpole.costs.operator_work.call import Call
    from longpole.costs.operator_work.work import Counter, PartneredCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """Where the arguments of one operator are; -1 where it has none."""

    stride: int
    padding: int
    dilation: int = -1
    transposed: int = -1
    is_transposed: bool = False
    bias: int = -1
    output_padding: int = -1


def result_places(
    sizes: tuple[int, ...], kernel: tuple[int, ...], steps: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
) -> tuple[int, ...]:
    """Return the spatial sizes of a convolution's result.

    *Formula:* ⌊(size + 2·padding − dilation·(kernel − 1) − 1) / stride⌋ + 1 (PyTorch, `Conv2d`).

    >>> result_places((224, 224), (7, 7), ((2,), (3,), (1,)))
    (112, 112)

    Args:
        sizes: Of the input.
        kernel: Of the weight.
        steps: Stride, padding and dilation; one value stands for all dimensions.
    """
    stride, padding, dilation = (_each(one, len(sizes)) for one in steps)
    return tuple(
        max((size + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1, 0)
        for i, size in enumerate(sizes)
    )


def _forward(form: _Form, call: Call, gradient: Call | None = None) -> Work | None:
    """Return the work of a convolution; without strides, by the shape of its result's gradient."""
    source, weight = call.tensor(0), call.tensor(1)
    if source is None or weight is None or len(source.shape) != len(weight.shape) or len(source.shape) <= 2:
        return None
    if gradient is not None:
        return _forward_of_result(
            source, weight, gradient.tensor(0), call.tensor(form.bias) if form.bias >= 0 else None
        )
    is_transposed = form.is_transposed or (form.transposed >= 0 and call.flag(form.transposed) is True)
    stride, padding = call.sizes(form.stride), call.sizes(form.padding)
    dilation = call.sizes(form.dilation) if form.dilation >= 0 else (1,)
    if not stride or not padding or not dilation or 0 in stride:
        return None
    steps = (stride, padding, dilation)
    if is_transposed:
        result = _transposed_result(source, weight, steps, call.sizes(form.output_padding) or (0,))
        places = math.prod(source.shape[2:])
    else:
        spatial = result_places(source.shape[2:], weight.shape[2:], steps)
        result = Tensor((source.shape[0], weight.shape[0], *spatial), source.dtype)
        places = math.prod(spatial)
    bias = call.tensor(form.bias) if form.bias >= 0 else None
    return _work(2 * source.shape[0] * places * weight.elements, source, bytes_of(source, weight, result, bias))


def _forward_of_result(source: Tensor, weight: Tensor, result: Tensor | None, bias: Tensor | None) -> Work | None:
    """Return the work of a convolution that is not transposed, by its result: `[batch, out, places…]`."""
    if result is None or result.shape[:2] != (source.shape[0], weight.shape[0]):
        return None
    if len(result.shape) != len(source.shape) or not weight.shape[1] or source.shape[1] % weight.shape[1]:
        return None
    flops = 2 * result.shape[0] * math.prod(result.shape[2:]) * weight.elements
    return _work(flops, source, bytes_of(source, weight, result, bias))


def _transposed_result(
    source: Tensor, weight: Tensor, steps: tuple[tuple[int, ...], ...], extra: tuple[int, ...]
) -> Tensor:
    """Return the result of a transposed convolution, of one group.

    *Formula:* (size − 1)·stride − 2·padding + dilation·(kernel − 1) + output padding + 1 (PyTorch, `ConvTranspose2d`).
    """
    count = len(source.shape) - 2
    stride, padding, dilation = (_each(one, count) for one in steps)
    more = _each(extra, count)
    spatial = [
        (source.shape[2 + i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (weight.shape[2 + i] - 1) + more[i] + 1
        for i in range(count)
    ]
    return Tensor((source.shape[0], weight.shape[1], *(max(size, 0) for size in spatial)), source.dtype)


def _backward(call: Call) -> Work | None:
    gradient, source, weight = call.tensor(0), call.tensor(1), call.tensor(2)
    asked = call.flags(10)
    if gradient is None or source is None or weight is None or not asked or len(gradient.shape) <= 2:
        return None
    places = math.prod((source if call.flag(7) else gradient).shape[2:])
    once = 2 * gradient.shape[0] * places * weight.elements
    of_input, of_weight = asked[0], len(asked) > 1 and asked[1]
    read = (gradient, weight if of_input else None, source if of_weight else None)
    written = (source.written if of_input else None, weight.written if of_weight else None)
    return _work(once * (of_input + of_weight), source, bytes_of(*read, *written))


def _input_gradient(call: Call) -> Work | None:
    """Return the work of the input's gradient alone, as PyTorch computed it until 1.9."""
    gradient, weight = call.tensor(1), call.tensor(2)
    if gradient is None or weight is None or len(gradient.shape) <= 2:
        return None
    # How large the input is was not written: FLOPs are known, bytes are not.
    return _work(_backward_flops(gradient, weight), gradient, None)


def _input_gradient_of(call: Call, around: Call) -> Work | None:
    """Return the work of the input's gradient alone, within the call that is handed the input too."""
    gradient, weight, source = call.tensor(1), call.tensor(2), around.tensor(0)
    if gradient is None or weight is None or source is None or len(gradient.shape) <= 2:
        return None
    return _work(_backward_flops(gradient, weight), gradient, bytes_of(gradient, weight, source.written))


def _weight_gradient_of(call: Call, around: Call) -> Work | None:
    """Return the work of the weight's gradient alone, within the call that is handed the weight too."""
    gradient, source, weight = call.tensor(1), call.tensor(2), around.tensor(2)
    if gradient is None or weight is None or source is None or len(gradient.shape) <= 2:
        return None
    return _work(_backward_flops(gradient, weight), gradient, bytes_of(gradient, source, weight.written))


def _backward_flops(gradient: Tensor, weight: Tensor) -> int:
    return 2 * gradient.shape[0] * math.prod(gradient.shape[2:]) * weight.elements


def _work(flops: int, source: Tensor, moved_bytes: int | None) -> Work:
    return Work(family="convolution", processor="tensor", dtype=source.dtype, flops=flops, moved_bytes=moved_bytes)


def _each(values: tuple[int, ...], count: int) -> tuple[int, ...]:
    return values if len(values) >= count else values[:1] * count


_GENERAL: Final = _Form(bias=2, stride=3, padding=4, dilation=5, transposed=6, output_padding=7)
_DIRECT: Final = _Form(bias=2, stride=3, padding=4, dilation=5)
_TRANSPOSED: Final = _Form(bias=2, stride=3, padding=4, output_padding=5, dilation=7, is_transposed=True)
_LIBRARY: Final = _Form(bias=2, padding=3, stride=4, dilation=5)
_FORMS: Final[dict[str, _Form]] = {
    "aten::convolution": _GENERAL,
    "aten::_convolution": _GENERAL,
    "aten::convolution_overrideable": _GENERAL,
    "aten::conv1d": _DIRECT,
    "aten::conv2d": _DIRECT,
    "aten::conv3d": _DIRECT,
    "aten::conv_transpose1d": _TRANSPOSED,
    "aten::conv_transpose2d": _TRANSPOSED,
    "aten::conv_transpose3d": _TRANSPOSED,
    "aten::cudnn_convolution": _Form(padding=2, stride=3, dilation=4),
    "aten::cudnn_convolution_relu": _Form(bias=2, stride=3, padding=4, dilation=5),
    "aten::cudnn_convolution_transpose": _Form(padding=2, output_padding=3, stride=4, dilation=5, is_transposed=True),
    "aten::miopen_convolution": _LIBRARY,
    "aten::miopen_depthwise_convolution": _LIBRARY,
    "aten::mkldnn_convolution": _LIBRARY,
    "aten::_slow_conv2d_forward": _Form(bias=3, stride=4, padding=5),
    "aten::thnn_conv2d": _Form(bias=3, stride=4, padding=5),
    "aten::_conv_depthwise2d": _Form(bias=3, stride=4, padding=5, dilation=6),
    "aten::conv_depthwise3d": _Form(bias=3, stride=4, padding=5, dilation=6),
}
COUNTERS: Final[dict[str, Counter]] = {
    **{name: partial(_forward, form) for name, form in _FORMS.items()},
    "aten::cudnn_convolution_backward_input": _input_gradient,
    "aten::convolution_backward": _backward,
    "aten::convolution_backward_overrideable": _backward,
}
_UNTRANSPOSED: Final = [name for name, form in _FORMS.items() if form.transposed < 0 and not form.is_transposed]
# Autograd's nodes bear the name of the operator that made them; libraries of their own have nodes of their own.
_NODES: Final = tuple(
    f"{library}Backward"
    for library in (
        "CudnnConvolution",
        "MiopenConvolution",
        "MkldnnConvolution",
        "Convolution",
        "ThnnConv2D",
        "SlowConv2D",
    )
)
NODES_OF: Final[dict[str, tuple[str, ...]]] = dict.fromkeys(_UNTRANSPOSED, _NODES)
"""Operator -> nodes whose gradient has the shape of its result."""
AROUND: Final[dict[str, str]] = dict.fromkeys(
    ("aten::cudnn_convolution_backward_input", "aten::cudnn_convolution_backward_weight"),
    "aten::cudnn_convolution_backward",
)
"""Operator -> the one around it that is handed what this one is not."""
PARTNERED: Final[dict[str, PartneredCounter]] = {
    **{name: partial(_forward, _FORMS[name]) for name in _UNTRANSPOSED},
    "aten::cudnn_convolution_backward_input": _input_gradient_of,
    "aten::cudnn_convolution_backward_weight": _weight_gradient_of,
}
