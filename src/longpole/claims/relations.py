"""The relations that hold between figures of one run; §6.1 of what the audit is made after counts them R1 to R12."""

from __future__ import annotations

from typing import Final

from longpole.claims.algebra import Relation

_MEGATRON: Final = "Narayanan et al., SC21, arXiv:2104.04473, section 2"
_PALM: Final = "Chowdhery et al., PaLM, arXiv:2204.02311, section 4.1"
_NCCL_TESTS: Final = "nccl-tests, doc/PERFORMANCE.md"


def _relation(code: str, text: str, says: str, source: str, constant: float = 1.0) -> Relation:
    """Make a relation from `target = a*b/(c*d)`."""
    target, _, product = (part.strip() for part in text.partition("="))
    over, _, under = product.partition("/")
    factors = tuple(name.strip() for name in over.split("*") if name.strip() != "1")
    divisors = tuple(name.strip() for name in under.strip("() ").split("*")) if under else ()
    return Relation(code, target, factors, divisors, says, source, constant)


DEVICES: Final = _relation(
    "R1", "gpus = tp*pp*cp*dp", "devices are the product of TP, PP, CP and DP; EP is carved out of them", _MEGATRON
)
DEVICES_DP_HOLDS_CP: Final = _relation(
    "R1", "gpus = tp*pp*dp", "devices are TP · PP · DP where DP counts the context-parallel ranks", _MEGATRON
)
DEVICES_TIMES_EP: Final = _relation(
    "R1", "gpus = tp*pp*cp*dp*ep", "devices are TP · PP · CP · EP · DP where DP is that of one expert", "DeepSpeed-MoE"
)
MODEL_PARALLEL: Final = _relation("R1", "model_parallel = tp*pp", "model parallelism is TP · PP", _MEGATRON)
OF_NODES: Final = _relation("R1", "gpus = nodes*gpus_per_node", "devices are nodes times devices of a node", "count")
PER_REPLICA: Final = _relation(
    "R2", "batch_per_dp = mbs*ga", "a replica processes micro-batches one after the other", _MEGATRON
)
GLOBAL_BATCH: Final = _relation(
    "R2", "gbs = dp*batch_per_dp", "the global batch is DP · micro-batch · gradient accumulation", _MEGATRON
)
TOKENS_OF_STEP: Final = _relation("R2", "tokens_step = gbs*seq", "tokens of a step are batch · sequence", _MEGATRON)
TOKENS_IN_ALL: Final = _relation("R2", "tokens = steps*tokens_step", "tokens are steps · tokens of a step", _MEGATRON)
RATE_OF_STEP: Final = _relation("R3", "tok_s = tokens_step/step_s", "tokens/s are tokens of a step by its time", "rate")
RATE_OF_DEVICES: Final = _relation("R3", "tok_s = tok_s_gpu*gpus", "tokens/s are those of one device times all", "rate")
RATE_OF_SEQUENCES: Final = _relation("R3", "tok_s = seq_s*seq", "tokens/s are sequences/s times their length", "rate")
ACHIEVED: Final = _relation(
    "R4", "flops_gpu = tok_s_gpu*flops_token", "FLOP/s of a device are its tokens/s times FLOPs per token", _PALM
)
MFU: Final = _relation("R4", "mfu = flops_gpu/peak", "MFU is model FLOP/s of a device by its peak", _PALM)
HARDWARE: Final = _relation(
    "R4", "hw_flops_gpu = tok_s_gpu*hw_flops_token", "hardware FLOP/s count what is computed again", _PALM
)
HFU: Final = _relation("R4", "hfu = hw_flops_gpu/peak", "HFU is hardware FLOP/s of a device by its peak", _PALM)
PEAK: Final = _relation("R4", "peak = device_peak", "the peak is the dense one of the device", "device table")
AGGREGATE: Final = _relation("R4", "flops_total = flops_gpu*gpus", "FLOP/s of all devices", _MEGATRON)
AGGREGATE_HARDWARE: Final = _relation("R4", "flops_total = hw_flops_gpu*gpus", "FLOP/s of all devices", _MEGATRON)
OF_STEP: Final = _relation(
    "R4", "flops_step = tokens_step*flops_token", "FLOPs of a step are its tokens times FLOPs per token", _PALM
)
OF_RUN: Final = _relation(
    "R8", "flops_run = tokens*flops_token", "a training costs its tokens times FLOPs per token", _PALM
)
PARAMETERS: Final = _relation("R4", "params = counted_params", "parameters are those of the dimensions", "counted")
ACTIVE: Final = _relation(
    "R4", "active_params = counted_active", "active parameters are those a token visits", "counted"
)
KEY_VALUE: Final = _relation(
    "R10", "kv_token = counted_kv_token", "the cache of a token is keys and values of every layer", "counted"
)
CACHE: Final = _relation(
    "R10", "kv_cache = kv_token*seq*gbs", "the cache holds every token of every sequence", "counted"
)
STEPS_TIME_AND_MORE: Final = _relation(
    "R8", "time_s = steps*step_s/goodput", "the share of the time that was training is steps times the time of one",
    "count",
)  # fmt: skip
RUN_OF_HARDWARE: Final = _relation(
    "R8", "hw_flops_run = tokens*hw_flops_token", "hardware FLOPs of a training count what is computed again", _PALM
)
BACKWARD: Final = _relation(
    "R4", "flops_token = forward_flops_token", "backward is twice forward, so a token costs 3 times its forward pass",
    _PALM, 3.0,
)  # fmt: skip
FULL_RATE: Final = _relation(
    "R4", "ideal_step_s = flops_step/(gpus*peak)", "at full rate a step takes its FLOPs by the peak of all", _PALM
)
TRAINING: Final = _relation("R8", "tokens = tok_s*time_s", "tokens are tokens/s times the time", "rate")
TRAINING_OF_DEVICES: Final = _relation(
    "R8", "tokens = tok_s_gpu*gpu_s", "tokens are tokens/s of a device times the time of all devices", "rate"
)
TRAINING_AND_MORE: Final = _relation(
    "R8", "tokens = tok_s*time_s*goodput", "tokens are tokens/s times the share of the time that was training", "rate"
)
TRAINING_OF_DEVICES_AND_MORE: Final = _relation(
    "R8",
    "tokens = tok_s_gpu*gpu_s*goodput",
    "tokens are tokens/s of a device times the share of the device time that was training",
    "rate",
)
DEVICE_TIME: Final = _relation("R8", "gpu_s = gpus*time_s", "device hours are devices times hours", "count")
STEPS_TIME: Final = _relation("R8", "time_s = steps*step_s", "the time is steps times the time of one", "count")
COST: Final = _relation("R8", "cost = gpu_s*price", "the cost is device hours times their price", "count", 1 / 3600)
DEVICE_TIME_TOKEN: Final = _relation(
    "R8", "gpu_s = tokens*gpu_s_token", "device hours are tokens times those of one", "count"
)
TIME_TOKEN: Final = _relation("R8", "gpu_s_token = time_s_token*gpus", "device hours are devices times hours", "count")
MESSAGE: Final = _relation(
    "R9",
    "message = mbs*seq*hidden*element_bytes",
    "a tensor-parallel all-reduce carries a micro-batch's activations",
    "Megatron-LM, arXiv:1909.08053, section 3",
)
GRADIENTS: Final = _relation(
    "R9", "message = params*element_bytes/(tp*pp)", "the message is the gradients of a device", "ZeRO, arXiv:1910.02054"
)
ALL_REDUCES: Final = _relation(
    "R9",
    "collectives = layers/pp",
    "tensor parallelism all-reduces 2 times a layer forward and 2 times backward",
    "Megatron-LM, arXiv:1909.08053, section 3",
    4.0,
)
ALL_REDUCES_FORWARD: Final = _relation(
    "R9", "collectives = layers/pp", "2 all-reduces a layer: the forward pass only", "arXiv:1909.08053, section 3", 2.0
)
ALL_REDUCES_AGAIN: Final = _relation(
    "R9",
    "collectives = layers/pp",
    "6 all-reduces a layer: with full recomputation",
    "arXiv:1909.08053, section 3",
    6.0,
)
TENSOR_PARALLEL: Final = _relation(
    "R9",
    "tp_step_comm_s = layers*message*bus_factor/(pp*link)",
    "tensor parallelism all-reduces 4 times a layer, each by the link at the least",
    "Megatron-LM, arXiv:1909.08053, section 3",
    4.0,
)
LEAST_TIME: Final = _relation(
    "R9",
    "least_comm_s = comm_bytes*bus_factor/link",
    "a collective takes what each rank sends by the link",
    _NCCL_TESTS,
)
TRAFFIC: Final = _relation("R9", "comm_bytes = collectives*message", "bytes are collectives times their size", "count")
ALGORITHM_RATE: Final = _relation(
    "R9", "algbw = comm_bytes/comm_s", "algorithm bandwidth is bytes by time", _NCCL_TESTS
)
BUS_RATE: Final = _relation(
    "R9", "busbw = algbw*bus_factor", "bus bandwidth is algorithm bandwidth times what each link carries", _NCCL_TESTS
)
WEIGHTS: Final = _relation("R10", "weights = params*bytes_param", "weights are parameters times their bytes", "count")
FASTER_STEP: Final = _relation(
    "R12", "speedup = baseline_step_s/step_s", "a speed-up is time before by time after", "ratio"
)
FASTER_RATE: Final = _relation(
    "R12", "speedup = tok_s/baseline_tok_s", "a speed-up is rate after by rate before", "ratio"
)
EFFICIENCY: Final = _relation(
    "R12", "efficiency = speedup*baseline_gpus/gpus", "efficiency is speed-up by growth in devices", "ratio"
)
SAME_MODEL: Final = _relation(
    "R5", "r_mfu = r_tok", "of one model on the same devices, MFU grows as tokens/s do", _PALM
)

USUAL: Final[tuple[Relation, ...]] = (
    MODEL_PARALLEL, OF_NODES, PER_REPLICA, GLOBAL_BATCH, TOKENS_OF_STEP, RATE_OF_SEQUENCES, RATE_OF_STEP,
    RATE_OF_DEVICES, TOKENS_IN_ALL, STEPS_TIME, DEVICE_TIME, TRAINING,
    TRAINING_OF_DEVICES, BACKWARD,
    OF_STEP, OF_RUN, RUN_OF_HARDWARE, FULL_RATE, ACHIEVED, HARDWARE, MFU, HFU, COST, TRAFFIC, ALGORITHM_RATE, BUS_RATE,
    WEIGHTS, CACHE, FASTER_STEP, FASTER_RATE, EFFICIENCY,
    SAME_MODEL, DEVICE_TIME_TOKEN, TIME_TOKEN, TENSOR_PARALLEL, LEAST_TIME,
)  # fmt: skip
"""All but those whose form depends on how the statement is read (`DEVICES`, `AGGREGATE`)."""
