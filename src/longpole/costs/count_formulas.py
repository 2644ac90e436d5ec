"""The counts of parameters and FLOPs as formulas, to show what they are made of.

`longpole.costs.parameters` and `longpole.costs.flops` count with plain arithmetic; here the same counts are formulas
over a model's dimensions. Tests hold the two against each other for models of every shape.

Symbols as in the papers: L layers, h hidden, a heads, k key-value heads, d head dimension (d_qk of scores, d_v of
values), f feed-forward width, m matrices of a feed-forward part (3 with a gate, else 2), V vocabulary, s sequence, E
experts of width f_e of which a token visits top, shared ones of width f_s; of latent attention q_r and kv_r ranks, d_n
and d_r widths of a score without and with position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.costs.formula import Formula, Quantity, quantity
from longpole.costs.parameters import parameters

if TYPE_CHECKING:
    from longpole.costs.architecture import Architecture
    from longpole.costs.flops import Lengths

_MATRIX: Final = "2 FLOPs a token for each entry of a matrix: a product and a sum"
_MLA: Final = "DeepSeek-V2, arXiv:2405.04434, section 2.1"
_LAYER: Final = "FLOP/token in a layer"
_TOKEN: Final = "FLOP/token"

QUERY_KEY_VALUE: Final = Formula("2*h*d*(a + 2*k)", _LAYER, _MATRIX)
LATENT: Final = Formula(
    "2*(q_r*(h + a*(d_n + d_r)) + h*(kv_r + d_r) + kv_r*a*(d_n + d_v))", _LAYER, f"{_MATRIX}; {_MLA}"
)
LATENT_PLAIN_QUERY: Final = Formula(
    "2*(h*a*(d_n + d_r) + h*(kv_r + d_r) + kv_r*a*(d_n + d_v))", _LAYER, f"{_MATRIX}; {_MLA}"
)
ATTENTION_OUTPUT: Final = Formula("2*a*d_v*h", _LAYER, _MATRIX)
CORE: Final = Formula(
    "2*a*(d_qk + d_v)*s", _LAYER, "scores of a token with s tokens, and their product with the values; of packed"
    " sequences s is the sum of squares over the sum of their lengths",
)  # fmt: skip
DENSE: Final = Formula("2*m*h*f", _LAYER, _MATRIX)
ROUTED: Final = Formula("2*m*h*f_e*top", _LAYER, f"{_MATRIX}, of the experts that a token visits")
SHARED: Final = Formula("2*m*h*f_s*shared", _LAYER, f"{_MATRIX}, of the experts that every token visits")
ROUTER: Final = Formula("2*h*E", _LAYER, _MATRIX)
JOIN: Final = Formula("4*h**2", "FLOP/token in a module", "DeepSeek-V3, arXiv:2412.19437, section 2.2: 2h by h")
LOGITS: Final = Formula("2*h*V*(1 + predicted)", _TOKEN, f"{_MATRIX}, for each token that is predicted")
LINEAR: Final = Formula(
    "L*(query_key_value + attention_output) + L_dense*dense + L_experts*(routed + shared) + predicted*join",
    _TOKEN,
    "all matrices but routers and head; L counts modules that predict further tokens as layers",
)
TOTAL: Final = Formula(
    "embedding + head + attention + dense + routed + shared + router + norms + prediction",
    "parameters",
    "tensor by tensor, from the dimensions",
)
ACTIVE: Final = Formula(
    "total - routed*(1 - top/E)", "parameters", "of the routed experts only those that a token visits"
)


def explain_counts(model: Architecture, sequence: Lengths) -> tuple[Quantity, ...]:
    """Return what parameters and FLOPs of a token are made of, each with its formula and values.

    Args:
        model: What is counted.
        sequence: Tokens of a sequence, or the lengths of packed ones.
    """
    return (*_explain_parameters(model), *_explain_flops(model, sequence))


def _explain_parameters(model: Architecture) -> list[Quantity]:
    held = parameters(model)
    kinds = {name: float(count) for name, count in held.by_kind().items()}
    found = [quantity("parameters", TOTAL, **kinds)]
    if model.experts is not None and not model.predicted_tokens:
        experts = {"routed": kinds["routed"], "top": model.experts.per_token, "E": model.experts.count}
        found.append(quantity("active parameters", ACTIVE, total=held.total, **experts))
    return found


def _explain_flops(model: Architecture, sequence: Lengths) -> list[Quantity]:
    h, a, predicted = model.hidden, model.heads, model.predicted_tokens
    d_v, matrices = model.value_dim, 3 if model.gated else 2
    lengths = (sequence,) if isinstance(sequence, int) else tuple(sequence)
    attended = sum(length * length for length in lengths) / sum(lengths)
    found = {
        "query_key_value": _query_key_value(model),
        "attention_output": quantity("attention output", ATTENTION_OUTPUT, a=a, d_v=d_v, h=h),
        "core": quantity("core of attention", CORE, a=a, d_qk=model.score_dim, d_v=d_v, s=attended),
    }
    layers = {has: _layers(model, has_experts=has) for has in (False, True)}
    if layers[False]:
        found["dense"] = quantity("feed-forward", DENSE, m=matrices, h=h, f=model.feed_forward)
    if model.experts is not None and layers[True]:
        experts = model.experts
        found["routed"] = quantity("routed experts", ROUTED, m=matrices, h=h, f_e=experts.width, top=experts.per_token)
        found["shared"] = quantity(
            "shared experts", SHARED, m=matrices, h=h, f_s=experts.shared_width, shared=experts.shared
        )
        found["router"] = quantity("router", ROUTER, h=h, E=experts.count)
    if predicted:
        found["join"] = quantity("joining matrix", JOIN, h=h)
    parts = ("query_key_value", "attention_output", "dense", "routed", "shared", "join")
    of_layer = {name: found[name].value.value if name in found else 0.0 for name in parts}
    linear = quantity(
        "matrices of all layers",
        LINEAR,
        **of_layer,
        L=model.layers + predicted,
        L_dense=layers[False],
        L_experts=layers[True],
        predicted=predicted,
    )
    logits = quantity("logits", LOGITS, h=h, V=model.vocabulary, predicted=predicted)
    return [*found.values(), linear, logits]


def _layers(model: Architecture, *, has_experts: bool) -> int:
    """Return how many layers have experts or have not, with the modules that predict further tokens."""
    layers = model.expert_layers if has_experts else model.layers - model.expert_layers
    return layers + (model.predicted_tokens if model.has_experts(model.layers - 1) == has_experts else 0)


def _query_key_value(model: Architecture) -> Quantity:
    name = "queries, keys and values"
    latent, h, a = model.latent, model.hidden, model.heads
    if latent is None:
        return quantity(name, QUERY_KEY_VALUE, h=h, d=model.head_dim, a=a, k=model.key_value_heads)
    inputs = {
        "h": h,
        "a": a,
        "d_n": latent.plain_dim,
        "d_r": latent.rope_dim,
        "d_v": latent.value_dim,
        "kv_r": latent.key_value_rank,
    }
    if not latent.query_rank:
        return quantity(name, LATENT_PLAIN_QUERY, **inputs)
    return quantity(name, LATENT, q_r=latent.query_rank, **inputs)
