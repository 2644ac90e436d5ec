"""Operators of serving engines, which write into tensors that they are handed: vLLM's `_C`, SGLang's, AITER's.

Only those whose arguments tell their work. A mixture of experts reads as many weights as tokens were routed to, and
neither weights nor routes are arguments; attention over a paged cache is in `attention`.

*Source:* the argument orders that recorded calls show, and the operators' definitions in those engines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.costs.operator_work.work import Work, bytes_of, sum_known

if TYPE_CHECKING:
    from longpole.costs.operator_work.call import Call
    from longpole.costs.operator_work.work import Counter, Family

_RMS: Final = 5  # FLOPs an element, see `normalisations`
_GATE: Final = 4  # SiLU 3, and the product
_ROTATION: Final = 3  # two products and a sum for each of a pair


def _vector(family: Family, dtype: str, flops: int, moved_bytes: int | None) -> Work:
    return Work(family=family, processor="vector", dtype=dtype, flops=flops, moved_bytes=moved_bytes)


def _gated(call: Call) -> Work | None:
    """Return the work of `silu(gate) · up`: a result, and an input twice as wide."""
    result, source = call.tensor(0), call.tensor(1)
    if result is None or source is None or source.elements != 2 * result.elements:
        return None
    return _vector("elementwise", source.dtype, _GATE * result.elements, bytes_of(source, result))


def _rms_norm(call: Call) -> Work | None:
    """Return the work of a norm: result, input, weight."""
    result, source, weight = (call.tensor(place) for place in range(3))
    if result is None or source is None or weight is None or result.elements != source.elements:
        return None
    return _vector("normalisation", source.dtype, _RMS * source.elements, bytes_of(result, source, weight))


def _added_norm(call: Call) -> Work | None:
    """Return the work of a sum and its norm, in place: input, residual, weight; both are read and written."""
    source, residual, weight = (call.tensor(place) for place in range(3))
    if source is None or residual is None or weight is None or source.shape != residual.shape:
        return None
    moved_bytes = bytes_of(source, residual, source, residual, weight)
    return _vector("normalisation", source.dtype, (_RMS + 1) * source.elements, moved_bytes)


def _added_norm_apart(call: Call) -> Work | None:
    """Return the work of a sum and its norm into results of their own: result, input, residual, sum, weight."""
    parts = [call.tensor(place) for place in range(5)]
    if any(one is None for one in parts):
        return None
    source = parts[1]
    if source is None:
        return None
    return _vector("normalisation", source.dtype, (_RMS + 1) * source.elements, bytes_of(*parts))


def _rotated(call: Call) -> Work | None:
    """Return the work of rotary positions, in place: positions, queries, keys."""
    positions, query, key = (call.tensor(place) for place in range(3))
    if positions is None or query is None:
        return None
    once = [one for one in (query, key) if one is not None]
    flops = _ROTATION * sum(one.elements for one in once)
    return _vector("elementwise", query.dtype, flops, bytes_of(positions, *once, *once))


def _cached(call: Call) -> Work | None:
    """Return the work of putting keys and values into their cache: each is read, and written in the cache's type."""
    key, value, cache = (call.tensor(place) for place in range(3))
    if key is None or value is None or cache is None:
        return None
    written = bytes_of(key.of_type(cache.dtype), value.of_type(cache.dtype))
    return _vector("move", key.dtype, 0, sum_known((bytes_of(key, value), written)))


def _quantised(call: Call) -> Work | None:
    """Return the work of a division by a given scale: result, input."""
    result, source = call.tensor(0), call.tensor(1)
    if result is None or source is None or result.elements != source.elements:
        return None
    return _vector("elementwise", source.dtype, source.elements, bytes_of(result, source))


OPAQUE: Final = frozenset({"vllm::moe_forward", "vllm::moe_forward_shared"})
"""Mixtures of experts behind one operator: hidden states and scores are arguments, experts are not."""
COUNTERS: Final[dict[str, Counter]] = {
    "_C::silu_and_mul": _gated,
    "sgl_kernel::silu_and_mul": _gated,
    "_C::rms_norm": _rms_norm,
    "aiter::rmsnorm": _rms_norm,
    "_C::fused_add_rms_norm": _added_norm,
    "aiter::add_rmsnorm": _added_norm_apart,
    "_C::rotary_embedding": _rotated,
    "sgl_kernel::rotary_embedding": _rotated,
    "_C_cache_ops::reshape_and_cache_flash": _cached,
    "_C::static_scaled_fp8_quant": _quantised,
}
