"""Models of any shape that `Architecture` allows, small."""

from __future__ import annotations

from hypothesis import strategies as st

from longpole.costs.architecture import Architecture, Experts, Latent

_SMALL = st.integers(1, 9)


@st.composite
def latents(draw: st.DrawFn) -> Latent:
    """Draw multi-head latent attention, with or without compressed queries."""
    rank, rope, plain, value = (draw(_SMALL) for _ in range(4))
    return Latent(
        query_rank=draw(st.integers(0, 9)), key_value_rank=rank, rope_dim=rope, plain_dim=plain, value_dim=value
    )


@st.composite
def mixtures(draw: st.DrawFn) -> Experts:
    """Draw a mixture of experts, with or without shared ones, in all layers or some."""
    count = draw(_SMALL)
    shared = draw(st.integers(0, 3))
    return Experts(
        count=count,
        per_token=draw(st.integers(1, count)),
        width=draw(_SMALL),
        shared=shared,
        shared_width=draw(_SMALL) if shared else 0,
        first_dense=draw(st.integers(0, 3)),
        every=draw(st.integers(1, 3)),
        dense_layers=draw(st.sampled_from(((), (1,)))),
        router_bias=draw(st.booleans()),
        shared_gate=bool(shared) and draw(st.booleans()),
    )


@st.composite
def models(draw: st.DrawFn) -> Architecture:
    """Draw a model: dense or of experts, with grouped or latent attention, with what else may vary."""
    key_value_heads = draw(st.integers(1, 4))
    layers = draw(st.integers(1, 5))
    whole = draw(st.booleans())
    return Architecture(
        name="drawn",
        layers=layers,
        hidden=draw(st.integers(1, 16)),
        heads=key_value_heads * draw(st.integers(1, 4)),
        key_value_heads=key_value_heads,
        head_dim=draw(_SMALL),
        feed_forward=draw(st.integers(1, 32)),
        vocabulary=draw(st.integers(1, 64)),
        positions=draw(st.integers(0, 8)),
        gated=draw(st.booleans()),
        tied=draw(st.booleans()),
        biases=draw(st.booleans()),
        attention_biases=draw(st.booleans()),
        qkv_biases=draw(st.booleans()),
        layer_norm=draw(st.booleans()),
        window=draw(st.integers(0, 12)),
        windowed_layers=draw(st.integers(0, layers)),
        latent=draw(st.none() | latents()),
        experts=draw(st.none() | mixtures()),
        predicted_tokens=draw(st.integers(0, 2)),
        norms_per_layer=draw(st.integers(0, 4)),
        query_key_norm=whole or draw(st.booleans()),
        query_key_norm_whole=whole,
        attention_sinks=draw(st.booleans()),
    )
