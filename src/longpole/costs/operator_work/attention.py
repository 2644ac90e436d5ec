"""Fused attention: two products forward, five backward, over the pairs of a query and a key that it computes.

Forward: scores are 2·D FLOPs a pair, their product with values 2·Dv. Backward computes scores again, and dV, dP, dQ and
dK: 2·(3·D + 2·Dv) (Dao, arXiv:2307.08691, section 4.1: 5 products for 2). The softmax in between is not counted.
Scores never reach memory: queries, keys, values, result and one 32-bit sum per query and head are moved.
A causal mask leaves min(i + 1, keys) pairs to query i, and kernels skip the rest. The lengths of packed sequences are
not recorded, so their FLOPs are not known.

*Source:* argument orders of PyTorch (`native_functions.yaml`) and of the flash-attn package
(`flash_attn_interface.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from longpole.costs.operator_work.call import Tensor
from longpole.costs.operator_work.work import Work, bytes_of

if TYPE_CHECKING:
    from longpole.costs.operator_work.call import Call
    from longpole.costs.operator_work.work import Counter

_DIMS: Final = 4
_PACKED_DIMS: Final = 3  # tokens of all sequences, heads, width


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """Where the arguments of one operator are.

    Attributes:
        query: Place of the queries; keys and values follow.
        heads_first: `[batch, heads, tokens, width]`, else heads come after tokens.
        causal: Place of the flag, or of the mask's number (0: none); -1 where there is none.
        packed: Place of the cumulated lengths, -1 where sequences cannot be packed.
        mask: Place of a bias that is added to scores and read once, -1 for none.
        is_backward: Whether gradients are computed.
    """

    query: int = 0
    heads_first: bool = True
    causal: int = -1
    packed: int = -1
    mask: int = -1
    is_backward: bool = False


def seen_pairs(queries: int, keys: int, *, causal: bool) -> int:
    """Return the pairs of a query and a key that are computed.

    >>> seen_pairs(4, 4, causal=False), seen_pairs(4, 4, causal=True), seen_pairs(5, 2, causal=True)
    (16, 10, 9)
    """
    if not causal:
        return queries * keys
    growing = min(queries, keys)
    return growing * (growing + 1) // 2 + (queries - growing) * keys


def _attention(form: _Form, call: Call) -> Work | None:
    query, key, value = (call.tensor(form.query + place) for place in range(3))
    if query is None or key is None or value is None:
        return None
    ranks = {len(one.shape) for one in (query, key, value)}
    if ranks not in ({_DIMS}, {_PACKED_DIMS}):
        return None
    if form.packed >= 0 and call.tensor(form.packed) is not None:
        return _work(form, call, None, (query, key, value))
    if ranks != {_DIMS}:
        return None
    batch = query.shape[0]
    token, head = (2, 1) if form.heads_first else (1, 2)
    causal = _is_causal(form, call)
    if causal is None:
        return _work(form, call, None, (query, key, value))
    pairs = batch * query.shape[head] * seen_pairs(query.shape[token], key.shape[token], causal=causal)
    width, value_width = query.shape[-1], value.shape[-1]
    per_pair = 2 * (3 * width + 2 * value_width) if form.is_backward else 2 * (width + value_width)
    return _work(form, call, pairs * per_pair, (query, key, value))


def _work(form: _Form, call: Call, flops: int | None, parts: tuple[Tensor, Tensor, Tensor]) -> Work:
    query, key, value = parts
    result = Tensor((*query.shape[:-1], value.shape[-1]), query.dtype)
    sums = Tensor(query.shape[:-1], "fp32")
    once = (query, key, value, result, sums, call.tensor(form.mask) if form.mask >= 0 else None)
    # Backward: all of it is read, with the result's gradient; three gradients are written.
    again = (result, query, key, value) if form.is_backward else ()
    return Work(
        family="attention",
        processor="tensor",
        dtype=query.dtype,
        flops=flops,
        moved_bytes=bytes_of(*once, *again),
    )


def _is_causal(form: _Form, call: Call) -> bool | None:
    """Return whether the mask is causal, None where the call's arguments were not recorded."""
    if form.causal < 0:
        return False
    flag = call.flag(form.causal)
    if flag is not None:
        return flag
    number = call.number(form.causal)
    return None if number is None else number != 0


_FORMS: Final[dict[str, _Form]] = {
    "aten::_scaled_dot_product_flash_attention": _Form(causal=4),
    "aten::_scaled_dot_product_efficient_attention": _Form(causal=6, mask=3),
    "aten::_scaled_dot_product_cudnn_attention": _Form(causal=6, mask=3),
    "aten::_scaled_dot_product_fused_attention_overrideable": _Form(causal=5, mask=3),
    "aten::_scaled_dot_product_flash_attention_for_cpu": _Form(causal=4),
    "aten::scaled_dot_product_attention": _Form(causal=5, mask=3),
    "aten::_flash_attention_forward": _Form(heads_first=False, causal=8, packed=3),
    "aten::_efficient_attention_forward": _Form(heads_first=False, causal=9, packed=4, mask=3),
    "aten::_scaled_dot_product_flash_attention_backward": _Form(query=1, causal=11, packed=6, is_backward=True),
    "aten::_scaled_dot_product_efficient_attention_backward": _Form(query=1, causal=11, mask=4, is_backward=True),
    "aten::_scaled_dot_product_cudnn_attention_backward": _Form(query=1, causal=14, packed=9, mask=8, is_backward=True),
    "aten::_flash_attention_backward": _Form(query=1, heads_first=False, causal=11, packed=6, is_backward=True),
    "aten::_efficient_attention_backward": _Form(
        query=1, heads_first=False, causal=14, packed=6, mask=4, is_backward=True
    ),
    "flash_attn::_flash_attn_forward": _Form(heads_first=False, causal=5),
    "flash_attn::_flash_attn_backward": _Form(query=1, heads_first=False, causal=11, is_backward=True),
    "FlashAttnFunc": _Form(heads_first=False, causal=5),
}
COUNTERS: Final[dict[str, Counter]] = {name: partial(_attention, form) for name, form in _FORMS.items()}
