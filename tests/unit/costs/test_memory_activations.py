"""Activations: the published closed forms exactly, and what PyTorch really keeps of a layer."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.architecture import Architecture, Experts, Latent
from longpole.costs.layout import Layout, Recompute, Work
from longpole.costs.memory import layer_activation_bytes
from longpole.costs.memory_activations import in_flight, logits_term
from longpole.costs.schedules import Times, simulate
from tests.published_tables import read_table

if TYPE_CHECKING:
    from pathlib import Path

GIB = 2**30
OLD = Work(sequence=2048, micro_batch=1, global_batch=64, flash=False, dropout=True)  # of 2022: scores and dropout
NEW = Work(sequence=4096, micro_batch=1, global_batch=64)

# layers, hidden, heads, pp, vp, micro-batch: arXiv:2205.05198, table 3.
KORTHIKANTI = {
    "22B": (48, 6144, 64, 1, 1, 4),
    "175B": (96, 12288, 96, 8, 3, 1),
    "530B": (105, 20480, 128, 35, 3, 1),
    "1T": (128, 25600, 160, 64, 1, 1),
}


def gpt(layers: int, hidden: int, heads: int) -> Architecture:
    return Architecture(
        name="gpt",
        layers=layers,
        hidden=hidden,
        heads=heads,
        key_value_heads=heads,
        head_dim=hidden // heads,
        feed_forward=4 * hidden,
        vocabulary=51200,
        gated=False,
        layer_norm=True,
        biases=True,
        tied=True,
        positions=2048,
    )


LLAMA = Architecture(
    name="llama",
    layers=32,
    hidden=4096,
    heads=32,
    key_value_heads=8,
    head_dim=128,
    feed_forward=14336,
    vocabulary=128256,
)
MIXTURE = replace(LLAMA, experts=Experts(count=8, per_token=2, width=14336))
LATENT = replace(
    LLAMA,
    key_value_heads=32,
    latent=Latent(query_rank=1536, key_value_rank=512, rope_dim=64, plain_dim=128, value_dim=128),
)


# ------------------------------------------------------------------ closed forms


def closed_form(s: int, b: int, h: int, a: int, t: int, *, sp: bool, policy: Recompute) -> float:
    """Write down table 2 of arXiv:2205.05198."""
    scores = 5 * a * s / h if policy == "none" else 0
    if policy == "full":
        return s * b * h * 2 / (t if sp else 1)
    if sp:
        return s * b * h * (34 + scores) / t
    return s * b * h * (10 + 24 / t + scores / t)


@given(
    s=st.sampled_from([512, 2048, 8192]),
    b=st.integers(1, 8),
    a=st.sampled_from([16, 64, 96]),
    d=st.sampled_from([64, 128]),
    t=st.sampled_from([1, 2, 8]),
    sp=st.booleans(),
    policy=st.sampled_from(["none", "selective", "full"]),
)
def test_every_row_of_korthikantis_table_2(
    *, s: int, b: int, a: int, d: int, t: int, sp: bool, policy: Recompute
) -> None:
    work = replace(OLD, sequence=s, micro_batch=b, recompute=policy)

    found = layer_activation_bytes(gpt(2, a * d, a), Layout(tp=t, sp=sp), work)

    assert found == pytest.approx(closed_form(s, b, a * d, a, t, sp=sp, policy=policy), rel=1e-12)


@pytest.mark.parametrize("row", range(4))
def test_figure_1_comes_out_to_a_millionth(oracles: Path, row: int) -> None:
    name, (layers, hidden, heads, pp, vp, micro_batch) = list(KORTHIKANTI.items())[row]
    published = {
        (one["config"], one["quantity"]): float(one["value"])
        for one in read_table(oracles, "korthikanti_fig1_fig7_memory")
        if one["figure"] == "fig1" and one["model"] == name
    }
    model = gpt(layers, hidden, heads)
    policies: dict[str, tuple[bool, Recompute]] = {"none": (False, "none"), "seq_sel": (True, "selective")}

    for config, (sp, policy) in policies.items():
        layout = Layout(tp=8, pp=pp, vp=vp, sp=sp)
        work = replace(OLD, micro_batch=micro_batch, recompute=policy)
        layer = layer_activation_bytes(model, layout, work)
        found = layer * layers / pp * in_flight(layout, 0, micro_batches=1000)
        assert found / GIB == pytest.approx(published[config, "activations_gib"], rel=1e-6)


@pytest.mark.parametrize("name", KORTHIKANTI)
def test_figure_7_comes_out_to_a_hundredth(oracles: Path, name: str) -> None:
    layers, hidden, heads, _, _, micro_batch = KORTHIKANTI[name]
    rows = [
        row
        for row in read_table(oracles, "korthikanti_fig1_fig7_memory")
        if row["figure"] == "fig7" and row["model"] == name
    ]
    model, work = gpt(layers, hidden, heads), replace(OLD, micro_batch=micro_batch)
    configs: dict[str, tuple[bool, Recompute]] = {
        "seq": (True, "none"),
        "sel": (False, "selective"),
        "seq_sel": (True, "selective"),
        "full": (False, "full"),
    }
    base = layer_activation_bytes(model, Layout(tp=8), work)

    assert len(rows) == 4
    for row in rows:
        sp, policy = configs[row["config"]]
        found = layer_activation_bytes(model, Layout(tp=8, sp=sp), work, policy=policy)
        assert 100 * found / base == pytest.approx(float(row["value"]), rel=0.012)


def test_the_gated_closed_form() -> None:
    """s b (12h + 4kd + 6f + 4a) / t: counted by hand for a SwiGLU layer without dropout, with flash attention."""
    h, k, d, f, a, t = 4096, 8, 128, 14336, 32, 4

    found = layer_activation_bytes(LLAMA, Layout(tp=t, sp=True), NEW)

    assert found == 4096 * (12 * h + 4 * k * d + 6 * f + 4 * a) / t


# ------------------------------------------------------------------ what divides, and what does not


def test_flash_attention_keeps_a_number_per_row_instead_of_scores() -> None:
    whole = layer_activation_bytes(LLAMA, Layout(), replace(NEW, flash=False))
    flash = layer_activation_bytes(LLAMA, Layout(), NEW)

    assert whole - flash == 4096 * 32 * (2 * 4096 - 4)


def test_context_parallelism_divides_the_sequence() -> None:
    whole = layer_activation_bytes(LLAMA, Layout(), NEW)

    assert layer_activation_bytes(LLAMA, Layout(cp=4), NEW) == whole / 4


def test_an_all_to_all_keeps_the_output_once_more() -> None:
    ring, exchange = (layer_activation_bytes(LLAMA, Layout(cp=4, cp_kind=kind), NEW) for kind in ("ring", "all_to_all"))

    assert exchange - ring == 2 * 1024 * 4096


def test_a_key_value_head_is_never_divided() -> None:
    """With 8 of them on 16 ranks, each rank has one whole head."""
    eight, sixteen = (
        layer_activation_bytes(replace(LLAMA, heads=64, head_dim=64), Layout(tp=tp, sp=True), NEW) for tp in (8, 16)
    )
    keys_and_values = 4 * 4096 * 64

    assert sixteen == pytest.approx((eight - keys_and_values) / 2 + keys_and_values)


def test_expert_parallelism_does_not_shrink_routed_activations() -> None:
    """Expert-parallel ranks trade tokens, and remove none."""
    one, eight = (layer_activation_bytes(MIXTURE, Layout(dp=8, ep=ep), NEW) for ep in (1, 8))

    assert one == eight


def test_two_visits_keep_two_dispatched_tokens_and_two_inner_activations() -> None:
    dense = layer_activation_bytes(LLAMA, Layout(), NEW)
    mixture = layer_activation_bytes(MIXTURE, Layout(), NEW)
    inner, dispatched, router = 6 * 14336, 2 * 4096, 8 * 8

    assert mixture - dense == 4096 * (inner + 2 * dispatched + router)


def test_uneven_experts_keep_more() -> None:
    even, uneven = (layer_activation_bytes(MIXTURE, Layout(), NEW, imbalance=value) for value in (1.0, 1.5))

    assert uneven - even == pytest.approx(0.5 * 2 * 4096 * 2 * (4096 + 3 * 14336))


def test_norms_of_queries_and_keys_keep_their_inputs() -> None:
    plain, normed = (
        layer_activation_bytes(replace(LLAMA, query_key_norm=norm), Layout(tp=16, sp=True), NEW)
        for norm in (False, True)
    )

    assert normed - plain == 2 * 4096 * (32 / 16 + 1) * 128


def test_latent_attention_keeps_expanded_heads_and_compressed_vectors() -> None:
    queries, keys, values, output = 32 * 192, 32 * 192, 32 * 128, 32 * 128
    compressed = 2 * 1536 + 2 * 512 + 64
    usual = layer_activation_bytes(replace(LLAMA, key_value_heads=32), Layout(), NEW) / 4096 / 2

    found = layer_activation_bytes(LATENT, Layout(), NEW) / 4096 / 2

    assert found - usual == queries + keys + values + output + compressed - 4 * 4096


@given(
    tp=st.sampled_from([1, 2, 4, 8]),
    cp=st.sampled_from([1, 2, 4]),
    sp=st.booleans(),
    flash=st.booleans(),
    dropout=st.booleans(),
    model=st.sampled_from([LLAMA, MIXTURE, LATENT]),
)
def test_computing_more_again_never_keeps_more(
    tp: int, cp: int, sp: bool, flash: bool, dropout: bool, model: Architecture
) -> None:
    work, layout = replace(NEW, flash=flash, dropout=dropout), Layout(tp=tp, cp=cp, sp=sp)
    none, selective, full = (
        layer_activation_bytes(model, layout, work, policy=policy) for policy in ("none", "selective", "full")
    )

    assert none >= selective > full


# ------------------------------------------------------------------ micro-batches in flight


@given(
    schedule=st.sampled_from(["gpipe", "1f1b", "interleaved", "zb1p", "zb2p", "zbv", "dualpipe"]),
    half_stages=st.integers(1, 4),
    groups=st.integers(2, 4),
)
def test_closed_forms_hold_as_many_as_the_simulated_schedule(schedule: str, half_stages: int, groups: int) -> None:
    stages = 2 * half_stages
    micro_batches = groups * stages
    chunks = {"interleaved": 3, "zbv": 2}.get(schedule, 1)
    layout = Layout(pp=stages, vp=chunks, schedule=schedule)
    times = Times(forward_s=1, backward_s=2, weight_s=1)
    simulated = simulate(schedule, stages, micro_batches, times, chunks=chunks).peak_in_flight
    whole = 2 if schedule == "dualpipe" else 1  # a device has two stages there, and we count both as one

    found = [in_flight(layout, stage, micro_batches) for stage in range(stages)]

    assert found == pytest.approx([held / whole for held in simulated])


def test_one_stage_holds_one_micro_batch_whatever_the_schedule() -> None:
    assert {in_flight(Layout(schedule=schedule), 0, 64) for schedule in ("1f1b", "gpipe", "zb2p")} == {1}


# ------------------------------------------------------------------ what PyTorch keeps


@pytest.mark.parametrize("flash", [True, False])
def test_pytorch_keeps_of_a_layer_what_is_counted(flash: bool) -> None:
    """A pre-norm layer in plain PyTorch: storages that autograd saves, without parameters, against the count.

    In 32 bits, where SDPA's fused kernel stands for flash attention. Two norms keep a mean and a deviation per token.
    """
    torch = pytest.importorskip("torch")
    model, tokens, batch = gpt(1, 128, 4), 64, 3
    work = Work(sequence=tokens, micro_batch=batch, global_batch=batch, dtype="fp32", flash=flash)

    saved = saved_bytes(torch, model, tokens, batch, flash=flash)

    counted = layer_activation_bytes(model, Layout(), work)
    statistics = 2 * 2 * 4 * tokens * batch
    assert saved - statistics == counted


def saved_bytes(torch: Any, model: Architecture, tokens: int, batch: int, *, flash: bool) -> int:
    """Run a layer and add up the storages that are kept for its backward pass."""
    from torch.nn import functional

    hidden, heads = model.hidden, model.heads
    weights = {
        name: torch.randn(*shape, requires_grad=True)
        for name, shape in {
            "qkv": (3 * hidden, hidden),
            "out": (hidden, hidden),
            "up": (model.feed_forward, hidden),
            "down": (hidden, model.feed_forward),
            "norm": (hidden,),
        }.items()
    }
    known = {weight.untyped_storage().data_ptr() for weight in weights.values()}
    kept: dict[int, Any] = {}

    def keep(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = storage
        return tensor

    def attention(query: Any, key: Any, value: Any) -> Any:
        if flash:
            return functional.scaled_dot_product_attention(query, key, value)
        scale: float = (hidden // heads) ** -0.5
        return torch.softmax((query * scale) @ key.transpose(-1, -2), dim=-1) @ value

    hidden_state = torch.randn(batch, tokens, hidden, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        normed = functional.layer_norm(hidden_state, (hidden,), weights["norm"])
        query, key, value = (
            part.reshape(batch, tokens, heads, -1).transpose(1, 2)
            for part in (normed @ weights["qkv"].T).split(hidden, -1)
        )
        mixed = attention(query, key, value).transpose(1, 2).reshape(batch, tokens, hidden)
        hidden_state = hidden_state + mixed @ weights["out"].T
        normed = functional.layer_norm(hidden_state, (hidden,), weights["norm"])
        inner = functional.gelu(normed @ weights["up"].T)
        hidden_state = hidden_state + inner @ weights["down"].T
    return sum(storage.nbytes() for storage in kept.values())


def test_an_eager_cross_entropy_holds_what_is_counted() -> None:
    """16-bit logits and three tensors of 32 bits at once, counted operator by operator."""
    torch = pytest.importorskip("torch")
    tokens, vocabulary = 64, 1000
    model = replace(LLAMA, vocabulary=vocabulary)
    work = Work(sequence=tokens, micro_batch=1, global_batch=1, fused_loss=False)

    peak = peak_of_cross_entropy(torch, tokens, vocabulary)

    assert peak == pytest.approx(logits_term(model, Layout(), work).bytes, rel=0.01)


def peak_of_cross_entropy(torch: Any, tokens: int, vocabulary: int) -> int:
    """Return the most bytes that are alive at once from the logits to their gradient."""
    import weakref

    from torch.utils._python_dispatch import TorchDispatchMode

    class Alive(TorchDispatchMode):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.sizes: dict[int, int] = {}
            self.peak = 0

        def __torch_dispatch__(self, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = function(*args, **(kwargs or {}))
            storage = out[0].untyped_storage() if isinstance(out, tuple) else out.untyped_storage()
            if storage.data_ptr() not in self.sizes:
                self.sizes[storage.data_ptr()] = storage.nbytes()
                weakref.finalize(storage, self.sizes.pop, storage.data_ptr(), None)
            self.peak = max(self.peak, sum(self.sizes.values()))
            return out

    labels = torch.randint(0, vocabulary, (tokens,))
    hidden_state, head = torch.randn(tokens, 4, dtype=torch.bfloat16), torch.randn(4, vocabulary, dtype=torch.bfloat16)
    head.requires_grad_()
    with Alive() as alive:
        logits = hidden_state @ head
        torch.nn.functional.cross_entropy(logits.float(), labels).backward()
        assert logits.dtype == torch.bfloat16
    return alive.peak


LOSS_PARALLEL = """
import json, sys, torch
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import loss_parallel
from torch.profiler import ProfilerActivity, profile

torch.distributed.init_process_group("gloo", init_method="file://" + sys.argv[1] + "/meeting", rank=0, world_size=1)
mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
tokens, vocabulary = 512, 4096
labels = torch.randint(0, vocabulary, (tokens,))


def run():
    with loss_parallel():
        local = torch.randn(tokens, vocabulary, dtype=torch.bfloat16)
        logits = DTensor.from_local(local, mesh, [Shard(1)], run_check=False).requires_grad_()
        torch.nn.functional.cross_entropy(logits.float(), labels).backward()


run()
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
    run()
profiler.export_chrome_trace(sys.argv[1] + "/trace.json")
with open(sys.argv[1] + "/trace.json") as file:
    events = [event for event in json.load(file)["traceEvents"] if event.get("name") == "[memory]"]
held = peak = 0
for event in sorted(events, key=lambda event: event["ts"]):
    held += event["args"]["Bytes"]
    peak = max(peak, held)
print("peak", peak / (tokens * vocabulary))
"""


@pytest.mark.slow
def test_a_cross_entropy_that_is_divided_over_ranks_holds_what_is_counted(tmp_path: Path) -> None:
    """PyTorch's loss_parallel under its own profiler: 18 bytes a logit, four more than the one that is whole."""
    pytest.importorskip("torch.distributed.tensor.parallel")

    output = subprocess.run(
        [sys.executable, "-c", LOSS_PARALLEL, str(tmp_path)], check=True, capture_output=True, text=True, timeout=240
    ).stdout

    work = replace(NEW, micro_batch=1, sequence=1, fused_loss=False)
    counted = logits_term(replace(LLAMA, vocabulary=2), Layout(tp=2), work).bytes
    assert float(output.rpartition("peak ")[2]) == pytest.approx(counted, rel=0.01)


@pytest.mark.parametrize(
    ("fused", "tp", "predicted", "bytes_each"),
    [(True, 1, 0, 2), (False, 1, 0, 14), (False, 8, 0, 18), (True, 8, 1, 4)],
)
def test_logits_of_each_prediction_are_divided_along_the_vocabulary(
    fused: bool, tp: int, predicted: int, bytes_each: int
) -> None:
    """128k words and 8k tokens are 2 GB of logits in 16 bits, and 15 GB in an eager cross-entropy."""
    model, work = replace(LLAMA, predicted_tokens=predicted), replace(NEW, sequence=8192, fused_loss=fused)

    assert logits_term(model, Layout(tp=tp), work).bytes == bytes_each * 8192 * 128256 / tp
