"""Activations that a device keeps for the backward pass, tensor by tensor.

What is kept of a layer, per token, in elements (e bytes each):

    norm input, twice; norm output = input of a linear layer, twice     4h        whole on every rank, or /t with SP
    queries, attention's output                                         a(d_k + d_v)             /t
    keys, values                                                        k(d_k + d_v)             /t
    feed-forward: before and after the activation, with a gate also that   2f or 3f              /t
    a mixture of experts: for each expert visited its input, and 2f or 3f   h + 3f               /t with SP
    scores, where attention writes them: s a, and with dropout a mask and its result             /t
    masks of dropout after attention and feed-forward: 2h bytes                                  as norms

With GELU, f = 4h, dropout and 16 bits these add up to Korthikanti's s b h (10 + 24/t + 5 a s / (h t)).

*Source:* Korthikanti et al. 2022, arXiv:2205.05198, sections 4.1 to 4.3 and table 2; the gated form and latent
attention follow from the same count. Whether that is what frameworks keep was checked against Megatron-LM's allocator
on 43 configurations (decision 0032).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.costs.formula import Formula
from longpole.costs.memory_states import ELEMENT_BYTES

if TYPE_CHECKING:
    from longpole.costs.architecture import Architecture, Experts
    from longpole.costs.layout import Layout, Recompute, Work

_KORTHIKANTI: Final = "arXiv:2205.05198, section 4.1"
NORMS: Final = Formula(
    "b*s*h*((norms + 2)*e + 2*dropout)/q",
    "B",
    f"{_KORTHIKANTI}: inputs of norms and of linear layers, two masks of 1 B; q = t with sequence parallelism, else 1",
)
QUERIES: Final = Formula("e*b*s*a*(dk + dv)/t", "B", f"{_KORTHIKANTI}: queries, and the output projection's input")
KEYS_VALUES: Final = Formula("e*b*s*max(k/t, 1)*(dk + dv)", "B", f"{_KORTHIKANTI}; a head is never divided")
QUERY_KEY_NORMS: Final = Formula("e*b*s*(a/t + max(k/t, 1))*dk", "B", "inputs of the norms of queries and keys")
LATENTS: Final = Formula(
    "e*b*s*(2*query_rank + 2*key_value_rank + rope_dim)/q",
    "B",
    "arXiv:2405.04434, section 2.1: compressed queries, keys and values before and after their norms",
)
SCORES: Final = Formula(
    "b*s*keys*a*(e + dropout*(1 + e))/t",
    "B",
    f"{_KORTHIKANTI}: 5as per token with dropout: softmax, mask, and what is left of it",
)
LOGSUMEXP: Final = Formula("4*b*s*a/t", "B", "arXiv:2205.14135, algorithm 1: one number of 32 bits per row of scores")
EXCHANGED_OUTPUT: Final = Formula(
    "e*b*s*a*dv/t",
    "B",
    "attention's output before the all-to-all of context parallelism, kept by Transformer Engine from 2.8",
)
FEED_FORWARD: Final = Formula("e*b*s*matrices*f/t", "B", f"{_KORTHIKANTI}; 3 with a gate, else 2")
ROUTED: Final = Formula(
    "e*b*s*visits*imbalance*(h*etp + matrices*f)/q",
    "B",
    "every visit keeps the dispatched token and the expert's inner activations. Expert parallelism trades tokens and"
    " removes none",
)
ROUTER: Final = Formula("8*b*s*experts/q", "B", "scores and probabilities in 32 bits")
LAYER_INPUT: Final = Formula(
    "e*b*s*h/q", "B", "arXiv:2205.05198, table 2: 2sbh where a layer is computed again in full"
)
EMBEDDING: Final = Formula("b*s*h*dropout/q", "B", "arXiv:2205.05198, section 4.3: the mask after the embedding")
HEAD_INPUT: Final = Formula("2*e*b*s*h/q", "B", "arXiv:2205.05198, section 4.3: inputs of the final norm and the head")
LOGITS: Final = Formula(
    "b*s*V*predictions*(e + unfused*(12 + 4*divided))/t",
    "B",
    "arXiv:2205.05198, section 4.3. A cross-entropy in 32 bits that is not fused holds, in PyTorch, three tensors of 4"
    " B at once, and four where it is divided over ranks (loss_parallel); Megatron's own holds two",
)

IN_FLIGHT_1F1B: Final = Formula("min(m, p - stage)", "micro-batches", "arXiv:2104.04473, section 2.2.1")
IN_FLIGHT_INTERLEAVED: Final = Formula(
    "min(m*v, 2*(p - 1 - stage) + (v - 1)*p + 1)/v",
    "micro-batches",
    "arXiv:2104.04473, section 2.2.2; on stage 0, 1 + (p - 1)/(pv) times that of one chunk: arXiv:2205.05198, 4.2.3",
)
IN_FLIGHT_ZB1P: Final = Formula(
    "min(m, p)",
    "micro-batches",
    "arXiv:2401.10241, section 2.2: inputs are kept until the weights' gradients are computed",
)
IN_FLIGHT_ZB2P: Final = Formula("min(m, 2*p - 1)", "micro-batches", "arXiv:2401.10241, section 2.3 (ZB-H2)")
IN_FLIGHT_ZBV: Final = Formula("min(m, p)", "micro-batches", "arXiv:2405.15362, table 1: as 1F1B, on every stage")
IN_FLIGHT_DUALPIPE: Final = Formula(
    "min(m, p + 1)/2", "micro-batches", "arXiv:2412.19437, table 2: p + 1 of one of its two stages"
)
IN_FLIGHT_GPIPE: Final = Formula("m", "micro-batches", "arXiv:1811.06965: all of a step")
_IN_FLIGHT: Final = {
    "gpipe": IN_FLIGHT_GPIPE,
    "zb1p": IN_FLIGHT_ZB1P,
    "zb2p": IN_FLIGHT_ZB2P,
    "zbv": IN_FLIGHT_ZBV,
    "dualpipe": IN_FLIGHT_DUALPIPE,
}
_IN_FLIGHT_INPUTS: Final = {
    IN_FLIGHT_1F1B.text: ("m", "p", "stage"),
    IN_FLIGHT_INTERLEAVED.text: ("m", "p", "v", "stage"),
    IN_FLIGHT_ZB1P.text: ("m", "p"),
    IN_FLIGHT_ZB2P.text: ("m", "p"),
    IN_FLIGHT_DUALPIPE.text: ("m", "p"),
    IN_FLIGHT_GPIPE.text: ("m",),
}


class Term(NamedTuple):
    """One addend: what it is, its formula, and what goes into it."""

    name: str
    formula: Formula
    inputs: dict[str, float]

    @property
    def bytes(self) -> float:
        """Its value."""
        return self.formula(**self.inputs)


def layer_terms(
    model: Architecture, layout: Layout, work: Work, policy: Recompute, *, has_experts: bool, imbalance: float = 1.0
) -> list[Term]:
    """Return what a device keeps of one layer for one micro-batch, tensor by tensor, in bytes.

    Args:
        model: Its dimensions.
        layout: How it is divided.
        work: Sequence, micro-batch and types.
        policy: What is computed again.
        has_experts: Whether the layer's feed-forward part is a mixture of experts.
        imbalance: Tokens that the busiest expert rank gets, over the mean.
    """
    size = size_of(layout, work)
    if policy == "full":
        return [Term("layer's input", LAYER_INPUT, {**size.whole, "h": model.hidden})]
    norms = {**size.whole, "h": model.hidden, "norms": model.norms_per_layer, "dropout": work.dropout}
    terms = [Term("norms and inputs", NORMS, norms), *_attention_terms(model, layout, work, policy)]
    if has_experts and model.experts is not None:
        return terms + _expert_terms(model, model.experts, layout, work, imbalance)
    feed_forward = {**size.divided, "matrices": matrices_of(model), "f": model.feed_forward}
    return [*terms, Term("feed-forward", FEED_FORWARD, feed_forward)]


def outer_terms(model: Architecture, layout: Layout, work: Work, *, first: bool, last: bool) -> list[Term]:
    """Return what is kept around the layers for one micro-batch: after the embedding, and before the head."""
    size = size_of(layout, work)
    terms = []
    if first and work.dropout:
        terms.append(Term("embedding's mask", EMBEDDING, _without_e(size.whole) | {"h": model.hidden, "dropout": 1}))
    if last:
        terms.append(Term("final norm and head's input", HEAD_INPUT, {**size.whole, "h": model.hidden}))
    return terms


def logits_term(model: Architecture, layout: Layout, work: Work) -> Term:
    """Return what the logits of one micro-batch take, with what the cross-entropy keeps beside them."""
    inputs = {
        **size_of(layout, work).divided,
        "V": model.vocabulary,
        "predictions": 1 + model.predicted_tokens,
        "unfused": not work.fused_loss,
        "divided": layout.tp > 1,
    }
    return Term("logits", LOGITS, inputs)


def in_flight(layout: Layout, stage: int, micro_batches: int) -> float:
    """Return of how many micro-batches a stage keeps all activations at once.

    Closed forms; for stages of unequal speed and for schedules in detail there is `schedules.simulate`.
    """
    formula, inputs = in_flight_formula(layout, stage, micro_batches)
    return formula(**inputs)


def in_flight_formula(layout: Layout, stage: int, micro_batches: int) -> tuple[Formula, dict[str, float]]:
    """Return the closed form for a layout's schedule, and its inputs."""
    inputs: dict[str, float] = {"m": micro_batches, "p": layout.pp, "stage": stage, "v": layout.vp}
    if layout.pp == 1:
        formula = IN_FLIGHT_1F1B
        inputs["m"] = 1
    elif layout.schedule in _IN_FLIGHT:
        formula = _IN_FLIGHT[layout.schedule]
    else:
        formula = IN_FLIGHT_INTERLEAVED if layout.vp > 1 else IN_FLIGHT_1F1B
    return formula, {name: inputs[name] for name in _IN_FLIGHT_INPUTS[formula.text]}


class Size(NamedTuple):
    """Inputs that many formulas share: for what sequence parallelism divides, and for what tensor parallelism does."""

    whole: dict[str, float]
    divided: dict[str, float]


def size_of(layout: Layout, work: Work) -> Size:
    """Return element size, micro-batch and this rank's tokens, with what divides them."""
    shared = {"e": ELEMENT_BYTES[work.dtype], "b": work.micro_batch, "s": work.sequence / layout.cp}
    return Size({**shared, "q": layout.tp if layout.sp else 1}, {**shared, "t": layout.tp})


def _without_e(inputs: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in inputs.items() if name != "e"}


def matrices_of(model: Architecture) -> int:
    """Return how many inner activations a feed-forward part keeps: as many as it has matrices."""
    return 3 if model.gated else 2


def heads_of(model: Architecture) -> dict[str, float]:
    """Return heads as attention computes with them: latent keys and values are expanded to all heads."""
    keys = model.heads if model.latent is not None else model.key_value_heads
    return {"a": model.heads, "k": keys, "dk": model.score_dim, "dv": model.value_dim}


def _attention_terms(model: Architecture, layout: Layout, work: Work, policy: Recompute) -> list[Term]:
    size, heads = size_of(layout, work), heads_of(model)
    queries = {name: value for name, value in heads.items() if name != "k"}
    keys = {name: value for name, value in heads.items() if name != "a"}
    terms = [
        Term("queries and attention's output", QUERIES, {**size.divided, **queries}),
        Term("keys and values", KEYS_VALUES, {**size.divided, **keys}),
    ]
    if model.latent is not None:
        latent = model.latent
        ranks = {"query_rank": latent.query_rank, "key_value_rank": latent.key_value_rank, "rope_dim": latent.rope_dim}
        terms.append(Term("compressed queries, keys and values", LATENTS, {**size.whole, **ranks}))
    if model.query_key_norm:
        inputs = {name: heads[name] for name in ("a", "k", "dk")}
        terms.append(Term("norms of queries and keys", QUERY_KEY_NORMS, {**size.divided, **inputs}))
    if layout.cp > 1 and layout.cp_kind == "all_to_all":
        inputs = {name: heads[name] for name in ("a", "dv")}
        terms.append(Term("output before its exchange", EXCHANGED_OUTPUT, {**size.divided, **inputs}))
    if policy == "selective":
        return terms
    if work.flash:
        inputs = {**_without_e(size.divided), "a": model.heads}
        return [*terms, Term("log-sum-exp of scores", LOGSUMEXP, inputs)]
    inputs = {**size.divided, "a": model.heads, "keys": work.sequence, "dropout": work.dropout}
    return [*terms, Term("scores", SCORES, inputs)]


def _expert_terms(model: Architecture, experts: Experts, layout: Layout, work: Work, imbalance: float) -> list[Term]:
    size = size_of(layout, work)
    terms = [
        Term("router", ROUTER, {**_without_e(size.whole), "experts": experts.count}),
        Term("routed experts", ROUTED, {**size.whole, **visits_of(model, experts, layout, imbalance)}),
    ]
    if experts.shared:
        width = experts.shared * experts.shared_width
        shared = {**size.divided, "matrices": matrices_of(model), "f": width}
        terms.append(Term("shared experts", FEED_FORWARD, shared))
    return terms


def visits_of(model: Architecture, experts: Experts, layout: Layout, imbalance: float) -> dict[str, float]:
    """Return what the formulas of routed experts ask for."""
    return {
        "visits": experts.per_token,
        "imbalance": imbalance,
        "h": model.hidden,
        "etp": layout.etp,
        "matrices": matrices_of(model),
        "f": experts.width,
    }
