"""Fused attention: two products forward, five backward, over the pairs of a query and a key that it computes.

Forward: scores are 2·D FLOPs a pair, their product with values 2·Dv. Backward computes scores again, and dV, dP, dQ and
dK: 2·(3·D + 2·Dv) (Dao, arXiv:2307.08691, section 4.1: 5 products for 2). The softmax in between is not counted.
Scores never reach memory: queries, keys, values, result and one 32-bit sum per query and head are moved.
A causal mask leaves min(i + 1, keys) pairs to query i, and kernels skip the rest.

The lengths of packed sequences lie in memory. Where n sequences may have m tokens and all have n · m together, each one
has m; otherwise their FLOPs are not known, nor are those of a window narrower than the sequence. Keys in pages hold at
least the queries' own: with a causal mask and no more keys than queries allowed, both are as many.

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
    from longpole.costs.operator_work.work import Counter, PartneredCounter

_DIMS: Final = 4
_PACKED_DIMS: Final = 3  # tokens of all sequences, heads, width


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """Where the arguments of one operator are.

    Attributes:
        query: Place of the queries; keys and values follow.
        heads_first: `[batch, heads, tokens, width]`, else heads come after tokens.
        causal: Place of the flag, or of the mask's number (0: none); -1 where there is none.
        packed: Place of the queries' cumulated lengths, -1 where sequences cannot be packed; those of the keys and
            the longest of both follow.
        window: Place of how far back a query sees, -1 where there is none.
        mask: Place of a bias that is added to scores and read once, -1 for none.
        is_backward: Whether gradients are computed.
    """

    query: int = 0
    heads_first: bool = True
    causal: int = -1
    packed: int = -1
    window: int = -1
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
        return _work(form, call, _flops(form, query, value, _packed_pairs(form, call, query, key)), (query, key, value))
    if ranks != {_DIMS}:
        return None
    token, head = (2, 1) if form.heads_first else (1, 2)
    pairs = _pairs(form, call, query.shape[token], key.shape[token])
    if pairs is not None:
        pairs *= query.shape[0] * query.shape[head]
    return _work(form, call, _flops(form, query, value, pairs), (query, key, value))


def _pairs(form: _Form, call: Call, queries: int, keys: int) -> int | None:
    """Return the pairs of one sequence and head, None where the mask is not known."""
    causal = _is_causal(form, call)
    seen = call.number(form.window) if form.window >= 0 else None
    if causal is None or (seen is not None and 0 <= seen < keys):
        return None
    return seen_pairs(queries, keys, causal=causal)


def _packed_pairs(form: _Form, call: Call, query: Tensor, key: Tensor) -> int | None:
    """Return the pairs of all sequences and heads where all sequences are as long as the longest may be."""
    longest = [call.number(form.packed + place) for place in (2, 3)]
    counts = [one.elements - 1 for place in (0, 1) if (one := call.tensor(form.packed + place)) is not None]
    if form.heads_first or None in longest or len(counts) != 2 or counts[0] != counts[1] or counts[0] < 1:
        return None
    queries, keys = (int(one or 0) for one in longest)
    # Where causal masks begin if keys are more than queries differs between libraries.
    if _is_causal(form, call) is not False and queries != keys:
        return None
    for one, tokens in ((query, queries), (key, keys)):
        if one.elements != counts[0] * tokens * one.shape[-2] * one.shape[-1]:
            return None
    pairs = _pairs(form, call, queries, keys)
    return None if pairs is None else counts[0] * query.shape[-2] * pairs


def _flops(form: _Form, query: Tensor, value: Tensor, pairs: int | None) -> int | None:
    width, value_width = query.shape[-1], value.shape[-1]
    per_pair = 2 * (3 * width + 2 * value_width) if form.is_backward else 2 * (width + value_width)
    return None if pairs is None else pairs * per_pair


def _paged(call: Call) -> Work | None:
    """Return the work of AITER's prefill over a cache: queries, keys, values, lengths, pages, longest lengths.

    Lengths of keys are counted in pages, so only the queries' tell how many sequences there are.
    """
    query, key, value, lengths = (call.tensor(place) for place in range(4))
    if query is None or key is None or value is None or lengths is None or len(query.shape) != _PACKED_DIMS:
        return None
    result = Tensor((*query.shape[:-1], value.shape[-1]), query.dtype)
    count, longest, keys = lengths.elements - 1, call.number(6), call.number(7)
    if longest is None or longest != keys or longest <= 0 or not call.flag(_PAGED.causal):
        return None  # how many keys are read is not known, nor how many queries are padding
    pairs = _pairs(_PAGED, call, int(longest), int(longest)) if count * int(longest) == query.shape[0] else None
    if pairs is None:
        return None
    read = [Tensor((query.shape[0], *one.shape[-2:]), one.dtype) for one in (key, value)]
    return Work(
        family="attention",
        processor="tensor",
        dtype=query.dtype,
        flops=_flops(_PAGED, query, value, pairs * count * query.shape[1]),
        moved_bytes=bytes_of(query, *read, result),
    )


def _cached(call: Call, used: Call) -> Work | None:
    """Return the work of vLLM's attention: queries, new keys and values, result; the queries that it uses.

    Batches are padded, and what is behind the last request is cut off (`used`, the first cut of the queries). How many
    keys are read of the cache is not known: a bound.
    """
    query, result, first, last = call.tensor(0), call.tensor(3), used.number(2), used.number(3)
    if query is None or result is None or first is None or last is None or len(query.shape) != _PACKED_DIMS:
        return None
    if used.tensor(0) != query or used.number(1) != 0 or first != 0 or last < 0:
        return None
    tokens = min(int(last), query.shape[0])
    parts = [Tensor((tokens, *one.shape[1:]), one.dtype) for one in (query, result)]
    return Work(
        family="attention",
        processor="tensor",
        dtype=query.dtype,
        flops=None,
        moved_bytes=bytes_of(*parts),
        at_least=True,
    )


def _work(form: _Form, call: Call, flops: int | None, parts: tuple[Tensor, Tensor, Tensor]) -> Work:
    query, key, value = parts
    result = Tensor((*query.shape[:-1], value.shape[-1]), query.dtype)
    sums = Tensor(query.shape[:-1], "fp32")
    once = (query, key, value, result, sums, call.tensor(form.mask) if form.mask >= 0 else None)
    # Backward: all of it is read, with the result's gradient; three gradients are written.
    again = (result, query.written, key.written, value.written) if form.is_backward else ()
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
    "aten::_flash_attention_forward": _Form(heads_first=False, causal=8, packed=3, window=11),
    "aten::_efficient_attention_forward": _Form(heads_first=False, causal=9, packed=4, mask=3),
    "aten::_scaled_dot_product_flash_attention_backward": _Form(query=1, causal=11, packed=6, is_backward=True),
    "aten::_scaled_dot_product_efficient_attention_backward": _Form(query=1, causal=11, mask=4, is_backward=True),
    "aten::_scaled_dot_product_cudnn_attention_backward": _Form(query=1, causal=14, packed=9, mask=8, is_backward=True),
    "aten::_flash_attention_backward": _Form(query=1, heads_first=False, causal=11, packed=6, is_backward=True),
    "aten::_efficient_attention_backward": _Form(
        query=1, heads_first=False, causal=14, packed=6, mask=4, is_backward=True
    ),
    "flash_attn::_flash_attn_forward": _Form(heads_first=False, causal=5, window=6),
    "flash_attn::_flash_attn_backward": _Form(query=1, heads_first=False, causal=11, window=12, is_backward=True),
    "flash_attn::_flash_attn_varlen_forward": _Form(heads_first=False, causal=9, packed=3, window=10),
    "flash_attn::_flash_attn_varlen_backward": _Form(
        query=1, heads_first=False, causal=15, packed=9, window=16, is_backward=True
    ),
    "FlashAttnFunc": _Form(heads_first=False, causal=5),
}
_PAGED: Final = _Form(heads_first=False, causal=12, window=13)
COUNTERS: Final[dict[str, Counter]] = {
    **{name: partial(_attention, form) for name, form in _FORMS.items()},
    "aiter::mha_batch_prefill": _paged,
}
PARTNERED: Final[dict[str, PartneredCounter]] = {"vllm::unified_attention_with_output": _cached}
INSIDE: Final[dict[str, str]] = {"vllm::unified_attention_with_output": "aten::slice"}
"""Operator -> one inside it, the first on the same tensor, that tells how much of it is used."""
