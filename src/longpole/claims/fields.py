"""What may be stated: every figure with its unit, its names, and whether it is counted or measured.

A key's own unit is that of a bare number under it (`tflops = 408` are TFLOP/s); a unit that is written out wins
(`tflops = "0.4 PFLOP/s"`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["count", "amount", "time", "token_rate", "flops", "flops_rate", "bytes", "rate", "share",
                          "factor", "money"]  # fmt: skip

_DAY: Final = 86400.0
UNIT: Final[dict[str, str]] = {
    "count": "", "amount": "", "time": "s", "token_rate": "tokens/s", "flops": "FLOP", "flops_rate": "FLOP/s",
    "bytes": "B", "rate": "B/s", "share": "", "factor": "", "money": "$",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """One figure that may be stated.

    Attributes:
        name: Its key.
        kind: What is counted or measured; says which units it takes.
        what: For a reader, as in "the GPUs".
        aliases: Further keys, each with the worth of a bare number under it.
        scale: Worth of a bare number under `name`.
    """

    name: str
    kind: Kind
    what: str
    aliases: dict[str, float]
    scale: float = 1.0

    @property
    def exact(self) -> bool:
        """Whether it is counted and written out, so that it was not rounded."""
        return self.kind == "count"


def _field(name: str, kind: Kind, what: str, aliases: str = "", *, scale: float = 1.0) -> Field:
    """Make a field; an alias may carry the worth of a bare number, as in `days=86400`."""
    found = {}
    for alias in aliases.split():
        key, _, worth = alias.partition("=")
        found[key] = float(worth) if worth else scale
    return Field(name, kind, what, found, scale)


FIELDS: Final[dict[str, Field]] = {
    field.name: field
    for field in (
        # Devices and how they are divided
        _field("gpus", "count", "devices", "devices chips accelerators n_gpus num_gpus gpu_count world world_size ranks"
               " tpus n_devices num_devices total_gpus"),
        _field("nodes", "count", "nodes", "n_nodes num_nodes hosts servers"),
        _field("gpus_per_node", "count", "devices of a node", "devices_per_node gpus_per_host node_size"),
        _field("tp", "count", "TP", "tensor_parallel tensor_parallelism tp_size tensor_parallel_size"
               " tensor_model_parallel_size t"),
        _field("pp", "count", "PP", "pipeline_parallel pipeline_parallelism pp_size pipeline_parallel_size"
               " pipeline_model_parallel_size stages p"),
        _field("dp", "count", "DP", "data_parallel data_parallelism dp_size data_parallel_size replicas"),
        _field("cp", "count", "CP", "context_parallel context_parallelism cp_size context_parallel_size"),
        _field("ep", "count", "EP", "expert_parallel expert_parallelism ep_size expert_parallel_size"
               " expert_model_parallel_size"),
        _field("etp", "count", "ETP", "expert_tensor_parallel etp_size"),
        _field("vp", "count", "chunks of a stage", "vpp virtual_stages interleave v chunks"),
        _field("model_parallel", "count", "TP · PP", "model_parallel_size mp"),
        _field("zero", "count", "ZeRO stage", "zero_stage"),
        # The model
        _field("params", "amount", "parameters", "N parameters n_params num_params params_total total_params"
               " model_size params_b=1e9 params_m=1e6 parameters_b=1e9"),
        _field("active_params", "amount", "active parameters", "params_active active_parameters activated_params"
               " active_params_b=1e9 params_active_b=1e9"),
        _field("layers", "count", "layers", "L n_layers num_layers num_hidden_layers"),
        _field("hidden", "count", "hidden size", "h d_model hidden_size n_embd embedding_size"),
        _field("heads", "count", "attention heads", "a H n_heads num_heads num_attention_heads"),
        _field("kv_heads", "count", "key-value heads", "kv n_kv_heads num_key_value_heads key_value_heads"),
        _field("head_dim", "count", "head dimension", "Q d_head"),
        _field("ffn", "count", "feed-forward width", "f ffn_hidden intermediate_size feed_forward d_ff ffn_size"),
        _field("vocab", "count", "vocabulary", "V vocab_size vocabulary n_vocab"),
        # The batch
        _field("seq", "count", "sequence", "s T seq_len sequence sequence_length seqlen context context_length"
               " max_seq_len"),
        _field("mbs", "count", "micro-batch", "b micro_batch micro_batch_size microbatch micro_bsz"
               " per_device_batch_size per_device_train_batch_size device_batch_size local_batch"),
        _field("gbs", "count", "global batch", "B global_batch global_batch_size batch batch_size train_batch_size"),
        _field("ga", "count", "gradient accumulation", "grad_accum gradient_accumulation grad_accumulation grad_acc"
               " gradient_accumulation_steps micro_batches m accumulation"),
        _field("batch_per_dp", "count", "sequences of a replica", "bpd batch_per_replica batch_size_per_dp"
               " sequences_per_replica"),
        _field("tokens_step", "amount", "tokens of a step", "tokens_per_step tokens_per_batch batch_tokens"
               " global_batch_tokens tokens_batch global_batch_size_tokens tokens_per_batch_m=1e6"),
        _field("tokens", "amount", "tokens in all", "total_tokens training_tokens tokens_b=1e9 tokens_total"
               " n_tokens train_tokens"),
        _field("steps", "amount", "steps", "iterations n_steps num_steps train_steps"),
        # Times
        _field("step_s", "time", "step time", "step step_time iteration_time iter_time time_per_step step_ms=1e-3"
               " step_time_s step_time_ms=1e-3 iteration_s iteration_ms=1e-3 t_step"),
        _field("ideal_step_s", "time", "step time at full rate", "ideal_s ideal_step ideal_step_ms=1e-3"
               " time_at_peak time_at_full_rate compute_time_at_peak ideal_ms=1e-3"),
        _field("time_s", "time", "time in all", f"seconds duration time wall_time training_time elapsed"
               f" minutes=60 hours=3600 hours_total=3600 wall_hours=3600 days={_DAY} training_days={_DAY}"),
        _field("gpu_s", "time", "device time in all", f"gpu_hours=3600 device_hours=3600 gpu_days={_DAY}"
               " chip_hours=3600 h800_hours=3600 h100_hours=3600 a100_hours=3600 tpu_hours=3600 gpu_seconds"),
        _field("gpu_s_token", "time", "device time of a token", "gpu_hours_per_t=3.6e-9"
               " gpu_hours_per_1e12_tokens=3.6e-9"
               " gpu_hours_per_trillion_tokens=3.6e-9 gpu_hours_per_trillion=3.6e-9 gpu_hours_per_b=3.6e-6"),
        _field("time_s_token", "time", "time of a token", f"days_per_t={_DAY / 1e12} days_per_trillion={_DAY / 1e12}"
               f" days_per_trillion_tokens={_DAY / 1e12} days_per_1e12_tokens={_DAY / 1e12}"),
        _field("goodput", "share", "share of the time that was training", "goodput_share effective_training_time"
               " effective_training_time_ratio goodput_pct=0.01"),
        # Rates
        _field("tok_s", "token_rate", "throughput", "tokens_s tokens_per_s tokens_per_second tok_per_s"
               f" throughput tps tokens_day={1 / _DAY} tokens_per_day={1 / _DAY} total_tok_s global_tok_s"
               " tokens_per_sec"),
        _field("tok_s_gpu", "token_rate", "throughput of a device", "tok_s_per_gpu tok_per_s_per_gpu tokens_s_gpu"
               " tokens_per_s_per_gpu tps_per_gpu tokens_per_s_per_device tokens_per_second_per_gpu tgs"
               " tokens_per_gpu_per_second tokens_per_sec_per_gpu tok_s_device tok_s_chip wps"),
        _field("seq_s", "token_rate", "throughput in sequences", "seq_per_s samples_per_s sequences_per_s"
               " samples_s samples_per_second sequences_per_second"),
        _field("flops_gpu", "flops_rate", "achieved rate", "tflops=1e12 tflops_gpu=1e12 tflops_per_gpu=1e12"
               " model_tflops=1e12 model_tflops_per_gpu=1e12 achieved_tflops=1e12 tflops_per_chip=1e12"
               " tflops_per_device=1e12 achieved_flops flops_per_gpu", scale=1.0),
        _field("hw_flops_gpu", "flops_rate", "achieved rate of the hardware", "hardware_tflops=1e12 hw_tflops=1e12"
               " hardware_tflops_per_gpu=1e12"),
        _field("flops_total", "flops_rate", "achieved rate of all devices", "aggregate_pflops=1e15 pflops=1e15"
               " total_pflops=1e15 aggregate_flops aggregate_tflops=1e12 total_tflops=1e12"),
        _field("peak", "flops_rate", "peak", "peak_tflops=1e12 peak_flops theoretical_tflops=1e12"
               " peak_tflops_per_gpu=1e12"),
        _field("mfu", "share", "MFU", "bf16_mfu model_flops_utilization mfu_pct=0.01 mfu_percent=0.01"
               " bf16_mfu_pct=0.01"),
        _field("hfu", "share", "HFU", "hardware_flops_utilization hfu_pct=0.01 hfu_percent=0.01"),
        _field("utilisation", "share", "share of peak", "utilization pct_peak=0.01 percent_of_peak=0.01 share_of_peak"
               " peak_share pct_of_peak=0.01"),
        # FLOPs
        _field("flops_token", "flops", "FLOPs per token", "flops_tok flops_per_token flop_per_token"
               " gflops_per_token=1e9 gflop_per_token=1e9 gflops_token=1e9 flop_token"),
        _field("forward_flops_token", "flops", "forward FLOPs per token", "forward_flops_per_token"
               " forward_gflops_per_token=1e9 flops_token_forward"),
        _field("flops_step", "flops", "FLOPs of a step", "flops_per_step step_flops flop_step pflops_per_step=1e15"
               " flops_per_iteration"),
        _field("flops_run", "flops", "FLOPs of the training", "training_flops total_flops compute total_compute"
               " training_compute flops_training total_training_flops"),
        _field("hw_flops_run", "flops", "FLOPs of the training on the hardware", "hardware_flops_run"
               " training_hardware_flops"),
        # Collectives and links
        _field("message", "bytes", "message", "S message_bytes bytes message_size payload payload_bytes"
               " all_reduce_bytes allreduce_bytes message_mb=1e6 size_bytes"),
        _field("element_bytes", "count", "bytes of an element", "bytes_per_element dtype_bytes elem_bytes"),
        _field("collectives", "count", "collectives", "n all_reduces allreduces n_collectives collective_count"
               " n_allreduces num_allreduces"),
        _field("group", "count", "ranks of the collective", "group_size n_ranks collective_ranks"),
        _field("comm_s", "time", "communication time", "comm comm_time communication_time comm_ms=1e-3"
               " collective_time allreduce_time all_reduce_time collective_s"
               " collective_us=1e-6 collective_ms=1e-3"),
        _field("tp_step_comm_s", "time", "TP all-reduces of a micro-batch, forward and backward"),
        _field("least_comm_s", "time", "communication time at the least"),
        _field("comm_bytes", "bytes", "bytes of all collectives", "total_bytes traffic comm_gb=1e9"),
        _field("link", "rate", "link rate", "bw bandwidth link_bw link_bandwidth link_gbps=1e9 link_gb_s=1e9"
               " bandwidth_gb_s=1e9 uni_link_gbps=1e9 bw_gb_s=1e9 interconnect"),
        _field("algbw", "rate", "algorithm bandwidth", "algbw_gbps=1e9 algbw_gb_s=1e9 algorithm_bandwidth"),
        _field("busbw", "rate", "bus bandwidth", "busbw_gbps=1e9 busbw_gb_s=1e9 bus_bandwidth"),
        # Memory, pipeline, scaling
        _field("memory", "bytes", "memory of a device", "memory_bytes peak_memory memory_gb=1e9 mem_gb=1e9"
               " memory_gib=1073741824 mem_gib=1073741824 peak_memory_gb=1e9 memory_per_gpu gpu_memory"),
        _field("least_memory", "bytes", "memory of a device at the least"),
        _field("weights", "bytes", "size of the weights", "weights_bytes weights_gb=1e9 model_bytes weight_memory"
               " checkpoint"),
        _field("bytes_param", "amount", "bytes of a parameter", "bytes_per_param bytes_per_parameter"),
        _field("kv_token", "bytes", "KV cache of a token", "kv_bytes_per_token kv_cache_per_token kv_bytes_token"),
        _field("kv_cache", "bytes", "KV cache", "kv_cache_bytes kv_cache_gb=1e9 kv_gb=1e9 kv_cache_size"),
        _field("memory_rate", "rate", "memory bandwidth", "hbm hbm_bandwidth memory_bandwidth memory_tb_s=1e12"
               " hbm_tb_s=1e12"),
        _field("bubble", "share", "pipeline bubble", "bubble_share bubble_fraction bubble_ratio bubble_pct=0.01"),
        _field("least_bubble", "share", "pipeline bubble at the least"),
        _field("speedup", "factor", "speed-up", "speed_up x_faster"),
        _field("increase", "share", "increase of throughput", "throughput_increase throughput_increase_pct=0.01"
               " gain improvement throughput_gain"),
        _field("efficiency", "share", "scaling efficiency", "scaling_efficiency weak_scaling_efficiency"
               " strong_scaling_efficiency scaling"),
        _field("baseline_gpus", "count", "devices before", "base_gpus from_gpus gpus_before"),
        _field("baseline_step_s", "time", "step time before", "before_s baseline_s base_step_s full_recompute_s"
               " baseline_step_ms=1e-3 step_before step_s_before"),
        _field("baseline_tok_s", "token_rate", "tokens/s before", "before_tok_s base_tok_s tok_s_before"),
        _field("price", "money", "price of a device hour", "price_per_gpu_hour usd_per_gpu_hour cost_per_gpu_hour"),
        _field("cost", "money", "cost", "usd cost_usd total_cost dollars"),
        _field("r_tok", "factor", "ratio of tokens/s", "tok_ratio throughput_ratio tok_s_ratio"),
        _field("r_mfu", "factor", "ratio of MFU", "mfu_ratio"),
    )
}  # fmt: skip
WORDS: Final = {
    "model": "model", "model_name": "model", "config": "model",
    "device": "device", "hw": "device", "hardware": "device", "gpu": "device", "accelerator": "device",
    "gpu_type": "device", "chip": "device",
    "dtype": "dtype", "precision": "dtype",
    "convention": "convention", "flop_convention": "convention", "flops_convention": "convention",
    "recompute": "recompute", "activation_checkpointing": "recompute", "act_ckpt": "recompute", "ac": "recompute",
    "collective": "collective", "algo": "algorithm", "algorithm": "algorithm",
    "schedule": "schedule", "optimizer": "optimizer",
    "kind": "purpose", "purpose": "purpose", "mode": "purpose",
}  # fmt: skip
REMARKS: Final = frozenset(
    {
        "name", "id", "label", "case_id", "title", "statement", "quote", "text", "note", "notes", "source", "url",
        "link_to", "comment", "claim", "says", "date", "who", "paper", "table", "row", "explanation",
    }
)  # fmt: skip
# Keys that say what the collective is as well as how many there are.
OF_COLLECTIVE: Final = {
    "all_reduces": "all_reduce", "allreduces": "all_reduce", "n_allreduces": "all_reduce",
    "num_allreduces": "all_reduce", "allreduce_time": "all_reduce", "all_reduce_time": "all_reduce",
    "all_reduce_bytes": "all_reduce", "allreduce_bytes": "all_reduce",
}  # fmt: skip


@cache
def _keys() -> dict[str, tuple[Field, float]]:
    found: dict[str, tuple[Field, float]] = {}
    for field in FIELDS.values():
        for key, scale in {field.name: field.scale, **field.aliases}.items():
            if key in found:
                msg = f"two figures are called {key}"
                raise ValueError(msg)
            found[key] = (field, scale)
    return found


def find_field(key: str) -> tuple[Field, float] | None:
    """Return the figure that a key means, and the worth of a bare number under it; None for no figure.

    A single letter means what it does in the papers, capital or not.
    """
    keys = _keys()
    return keys.get(key) or keys.get(plain_key(key))


def plain_key(key: str) -> str:
    """Return a key as it is looked up: lower case, words joined by underscores.

    >>> plain_key("Tokens per second")
    'tokens_per_second'
    """
    if len(key) == 1:
        return key
    return re.sub(r"[^a-z0-9]+", "_", key.strip().lower()).strip("_")


def close_keys(key: str) -> list[str]:
    """Return the keys that are spelled most like one that is none."""
    known = [*_keys(), *WORDS]
    return get_close_matches(plain_key(key), known, n=3, cutoff=0.6)
