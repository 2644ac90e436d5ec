"""Memory that allocators measured, and ours of the same configurations: Megatron-LM on B200, torchtitan on H100."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from longpole.costs.architecture import Architecture, Experts, Latent
from longpole.costs.layout import Layout, Work, check
from longpole.costs.memory import DeviceMemory, device_memory

GIB: Final = 2**30
LLAMA_8B = Architecture(
    name="llama3-8b", layers=32, hidden=4096, heads=32, key_value_heads=8, head_dim=128, feed_forward=14336,
    vocabulary=128256,
)  # fmt: skip
LLAMA_70B = Architecture(
    name="llama3-70b", layers=80, hidden=8192, heads=64, key_value_heads=8, head_dim=128, feed_forward=28672,
    vocabulary=128256,
)  # fmt: skip
# Megatron ran it with 16 key-value heads: configs/models/llama3-405b_padding_128.json beside the table's source.
LLAMA_405B = Architecture(
    name="llama3-405b", layers=128, hidden=16384, heads=128, key_value_heads=16, head_dim=128, feed_forward=53248,
    vocabulary=128256,
)  # fmt: skip
_LATENT = Latent(query_rank=1536, key_value_rank=512, rope_dim=64, plain_dim=128, value_dim=128)
DEEPSEEK_V2 = Architecture(
    name="deepseek-v2", layers=60, hidden=5120, heads=128, key_value_heads=128, head_dim=128, feed_forward=12288,
    vocabulary=102400, latent=_LATENT,
    experts=Experts(count=160, per_token=6, width=1536, shared=2, shared_width=1536, first_dense=1),
)  # fmt: skip
DEEPSEEK_V3 = Architecture(  # one dense layer, as the rows with four layers have
    name="deepseek-v3", layers=61, hidden=7168, heads=128, key_value_heads=128, head_dim=128, feed_forward=18432,
    vocabulary=129280, latent=_LATENT,
    experts=Experts(count=256, per_token=8, width=2048, shared=1, shared_width=2048, first_dense=1),
)  # fmt: skip
MODELS = {
    "llama3_70b": LLAMA_70B,
    "llama3_405b": LLAMA_405B,
    "deepseekv2": DEEPSEEK_V2,
    "deepseekv3": DEEPSEEK_V3,
    "llama3.1-8B": LLAMA_8B,
    "llama3.1-70B": LLAMA_70B,
    "llama3.1-405B": replace(LLAMA_405B, layers=126, key_value_heads=8),
}


def megatron_memory(row: dict[str, str]) -> DeviceMemory:
    """Compute a row: distributed optimizer, sequence parallelism, a fused cross-entropy, nothing computed again."""
    tp, pp, ep, cp = (int(row[name]) for name in ("tp", "pp", "ep", "cp"))
    dp = int(row["dp"] or 8 // (tp * pp * cp))
    model = replace(MODELS[row["model"]], layers=int(row["layers"]))
    layout = Layout(tp=tp, pp=pp, dp=dp, cp=cp, ep=ep, sp=True, zero=1, cp_kind="all_to_all")
    work = Work(sequence=int(row["seq_len"]), micro_batch=1, global_batch=dp * int(row["micro_batches"]))
    check(model, layout, work, devices=8)
    return device_memory(model, layout, work)


def torchtitan_memory(row: dict[str, str]) -> DeviceMemory:
    replicas, local = int(row["fsdp"]), int(row["local_batch"])
    layout = Layout(tp=int(row["tp"]), cp=int(row["cp"]), dp=replicas, sp=True, zero=3)
    work = Work(
        sequence=int(row["seq_len"]),
        micro_batch=local,
        global_batch=local * replicas,
        recompute="full" if row["ac"] == "full" else "none",
        fused_loss=False,
    )
    return device_memory(MODELS[row["model"]], layout, work, optimizer="adam-fsdp")


def pipelined_layout(row: dict[str, str]) -> Layout:
    """Return the layout of one of torchtitan's rows with a pipeline; "fsdp" counts the replicas beside CP."""
    chunks = 2 if row["schedule"].startswith("Interleaved") else 1
    tp, pp, cp = int(row["tp"]), int(row["pp"]), int(row["cp"])
    return Layout(
        tp=tp, pp=pp, cp=cp, dp=int(row["gpus"]) // (tp * pp * cp), sp=True, zero=3, vp=chunks,
        schedule="1f1b" if chunks == 1 else "interleaved",
    )  # fmt: skip


def pipelined_memory(row: dict[str, str]) -> DeviceMemory:
    """Compute such a row; the batch of a replica is divided into as many micro-batches as the model has parts."""
    layout, local = pipelined_layout(row), int(row["local_batch"])
    parts = layout.pp * layout.vp
    work = Work(
        sequence=int(row["seq_len"]),
        micro_batch=local // parts,
        global_batch=local * layout.dp,
        recompute="full",
        fused_loss=False,
    )
    check(MODELS[row["model"]], layout, work, devices=int(row["gpus"]))
    return device_memory(MODELS[row["model"]], layout, work, optimizer="adam-fsdp")
