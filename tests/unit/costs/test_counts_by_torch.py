"""PyTorch's own counter sees the FLOPs that are counted, forward and backward, in a model that is really computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from longpole.costs.architecture import Architecture, Experts, Latent
from longpole.costs.flops import counts, flops_per_token, hardware_flops_per_token
from longpole.costs.parameters import parameters

torch = pytest.importorskip("torch")

SEQUENCES, TOKENS = 2, 12
BASE: Final = Architecture(
    name="like llama", layers=3, hidden=16, heads=4, key_value_heads=2, head_dim=6, feed_forward=40, vocabulary=50
)
LATENT: Final = Latent(query_rank=8, key_value_rank=5, rope_dim=2, plain_dim=4, value_dim=6)
MODELS: Final = (
    replace(
        BASE,
        name="like deepseek",
        latent=LATENT,
        experts=Experts(count=6, per_token=2, width=10, shared=1, shared_width=14, first_dense=1),
    ),
    replace(
        BASE,
        name="like gpt",
        key_value_heads=4,
        gated=False,
        biases=True,
        layer_norm=True,
        tied=True,
        positions=TOKENS,
    ),
)
MORE: Final = (
    BASE,
    replace(BASE, name="like qwen", key_value_heads=1, qkv_biases=True, tied=True),
    replace(BASE, name="like mixtral", experts=Experts(count=4, per_token=2, width=20)),
    replace(BASE, name="like deepseek lite", latent=replace(LATENT, query_rank=0)),
)


@pytest.mark.parametrize(
    "model",
    [
        *(pytest.param(model, id=model.name) for model in MODELS),
        *(pytest.param(model, id=model.name, marks=pytest.mark.slow) for model in MORE),
    ],
)
def test_what_torch_counts_of_a_training_step_is_what_is_counted_here(model: Architecture) -> None:
    """Attention is computed as a full square: `korthikanti`, and the routers. Parameters are torch's too."""
    from torch.utils.flop_counter import FlopCounterMode

    from tests.torch_transformer import Transformer

    torch.manual_seed(0)
    module = Transformer(model)
    tokens = torch.randint(model.vocabulary, (SEQUENCES, TOKENS))

    with FlopCounterMode(display=False) as forward:
        logits = module(tokens)
    with FlopCounterMode(display=False) as backward:
        logits.square().mean().backward()

    counted = SEQUENCES * TOKENS * counts(model, TOKENS).router
    expected = SEQUENCES * TOKENS * flops_per_token(model, TOKENS, "korthikanti") + 3 * counted
    assert forward.get_total_flops() == pytest.approx(expected / 3, rel=1e-12)
    assert backward.get_total_flops() == 2 * forward.get_total_flops()
    hardware = SEQUENCES * TOKENS * hardware_flops_per_token(model, TOKENS, "none", flash=False)
    assert hardware == pytest.approx(expected, rel=1e-12)
    assert sum(one.numel() for one in module.parameters()) == parameters(model).total


@pytest.mark.slow
def test_recomputing_all_layers_costs_what_torch_computes_again() -> None:
    """Checkpointed layers: their forward pass a second time, and not the head's."""
    from torch.utils.checkpoint import checkpoint
    from torch.utils.flop_counter import FlopCounterMode

    from tests.torch_transformer import Transformer

    model = BASE
    module = Transformer(model)
    for layer in module.layers:
        inner = layer.forward
        layer.forward = lambda x, inner=inner: checkpoint(inner, x, use_reentrant=False)

    with FlopCounterMode(display=False) as counter:
        module(torch.randint(model.vocabulary, (1, TOKENS))).square().mean().backward()

    hardware = TOKENS * hardware_flops_per_token(model, TOKENS, "full", flash=False)
    # The last product of each layer is not computed again: nothing in the backward pass needs it.
    last = model.layers * TOKENS * 2 * model.hidden * model.feed_forward
    assert hardware - last <= counter.get_total_flops() <= hardware
