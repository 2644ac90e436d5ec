"""The keys of a plan: what each holds, what it is where it is left out, and in what unit it counts.

One row a key; the reader, its messages and the reference page go by this table. Rates of links are one way and per
device, in decimal gigabytes per second: data sheets like to print both directions together, and adapters are sold in
gigabits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TOP: Final = ""
"""The section of keys that stand before the first `[section]`."""

REQUIRED: Final = "required"


@dataclass(frozen=True, slots=True)
class PlanKey:
    """A key of a plan.

    Attributes:
        section: The table that it stands in; empty for the top of the file.
        name: As it is written.
        holds: `text`, `flag`, `count` (whole, at least 1), `size` (whole, at least 0), `number` (above 0), `share`
            (above 0, at most 1), `counts` (a list of counts), `peaks`, `policy` or `policies`.
        default: What it is where it is left out, in words; `required`, or empty for none.
        meaning: One sentence.
        most: The largest value that is no slip of the pen; None where `count` and `size` have their own.
    """

    section: str
    name: str
    holds: str
    default: str
    meaning: str
    most: float | None = None


_TOP: Final = (
    PlanKey(TOP, "convention", "text", REQUIRED, "How model FLOPs are counted; the headline MFU is under it."),
    PlanKey(TOP, "name", "text", "the file's name", "What the page calls the plan."),
)

_MODEL: Final = (
    PlanKey("model", "preset", "text", "", "A model that Longpole knows by name."),
    PlanKey("model", "config", "text", "", "A Hugging Face `config.json`, relative to this file."),
    PlanKey("model", "name", "text", "", "What the page calls it."),
    PlanKey("model", "layers", "count", "", "Layers."),
    PlanKey("model", "hidden", "count", "", "Hidden width."),
    PlanKey("model", "heads", "count", "", "Attention heads."),
    PlanKey("model", "key_value_heads", "count", "`heads`", "Heads of keys and values."),
    PlanKey("model", "head_dim", "count", "`hidden / heads`", "Width of a head."),
    PlanKey("model", "feed_forward", "count", "`4 · hidden`", "Width of a dense layer's feed-forward part."),
    PlanKey("model", "vocabulary", "count", "", "Vocabulary, padded as it is computed with."),
    PlanKey("model", "gated", "flag", "true", "Whether the feed-forward part has a gate: three matrices, not two."),
    PlanKey("model", "tied", "flag", "false", "Whether embedding and head share one matrix."),
    PlanKey("model", "positions", "size", "0", "Learned positions."),
    PlanKey("model", "biases", "flag", "false", "Whether linear layers have biases."),
    PlanKey("model", "attention_biases", "flag", "false", "Whether those of attention have."),
    PlanKey("model", "qkv_biases", "flag", "false", "Whether queries, keys and values have."),
    PlanKey("model", "layer_norm", "flag", "false", "LayerNorm with a bias, in place of RMSNorm."),
    PlanKey("model", "window", "size", "0", "Sliding window of attention in tokens."),
    PlanKey("model", "windowed_layers", "size", "0", "How many layers have it."),
    PlanKey("model", "predicted_tokens", "size", "0", "Extra layers that predict further tokens."),
    PlanKey("model", "norms_per_layer", "count", "2", "Norms around attention and the feed-forward part.", 8),
    PlanKey("model", "query_key_norm", "flag", "false", "Whether queries and keys are normalised, head by head."),
    PlanKey("model", "query_key_norm_whole", "flag", "false", "Whether all heads of a token are, together."),
    PlanKey("model", "attention_sinks", "flag", "false", "Whether each head has a score that nothing is attended for."),
)
_EXPERTS: Final = (
    PlanKey("model.experts", "count", "count", REQUIRED, "Routed experts of a layer."),
    PlanKey("model.experts", "per_token", "count", REQUIRED, "Of which a token visits so many."),
    PlanKey("model.experts", "width", "count", REQUIRED, "Feed-forward width of one."),
    PlanKey("model.experts", "shared", "size", "0", "Experts that every token visits."),
    PlanKey("model.experts", "shared_width", "size", "`width`", "Width of each of these."),
    PlanKey("model.experts", "first_dense", "size", "0", "Leading layers without experts."),
    PlanKey("model.experts", "every", "count", "1", "Of the others, every so-manieth has experts."),
    PlanKey("model.experts", "router_bias", "flag", "false", "Whether the router adds a number to each score."),
    PlanKey("model.experts", "shared_gate", "flag", "false", "Whether a gate weighs what shared experts give."),
)
_LATENT: Final = (
    PlanKey("model.latent", "query_rank", "size", "0", "Rank of compressed queries; 0 where they are not."),
    PlanKey("model.latent", "key_value_rank", "count", REQUIRED, "Rank of what is cached for keys and values."),
    PlanKey("model.latent", "rope_dim", "count", REQUIRED, "The part of a score that carries the position."),
    PlanKey("model.latent", "plain_dim", "count", REQUIRED, "The rest of a score, per head."),
    PlanKey("model.latent", "value_dim", "count", REQUIRED, "Width of a value, per head."),
)

_HARDWARE: Final = (
    PlanKey("hardware", "device", "text", "", "A device of the table; an unknown one is refused, never guessed."),
    PlanKey("hardware", "name", "text", "", "What to call a device that is not in the table."),
    PlanKey("hardware", "devices", "count", "what the layout needs", "How many there are.", 10**7),
    PlanKey("hardware", "devices_per_node", "count", "the table's", "How many share the scale-up link.", 10**5),
    PlanKey("hardware", "scaleup_gb_per_s", "number", "the table's", "Scale-up link, one way, per device.", 20_000),
    PlanKey("hardware", "network_gb_per_s", "number", "", "Network between nodes, one way, per device.", 5_000),
    PlanKey("hardware", "network_share", "share", "0.9", "What large messages reach of that rate."),
    PlanKey(
        "hardware", "network_hop_us", "number", "InfiniBand's", "A hop's latency beyond it: some 50 in clouds.", 10**5
    ),
    PlanKey("hardware", "peak_tflops", "peaks", "the table's", "Dense peak: a number, or one by data type.", 10**6),
    PlanKey("hardware", "memory_gb", "number", "the table's", "Memory of a device, in decimal GB.", 10**5),
    PlanKey("hardware", "memory_gb_per_s", "number", "the table's", "Rate of that memory.", 10**6),
    PlanKey(
        "hardware", "memory_limit_gb", "number", "what it reports, else `memory_gb`", "What a plan may use.", 10**5
    ),
    PlanKey("hardware", "collective_record", "text", "", "A log of nccl-tests or a record of `bench collectives`."),
)

_LAYOUT: Final = (
    PlanKey("layout", "tp", "count", "1", "Tensor parallelism.", 10**5),
    PlanKey("layout", "pp", "count", "1", "Pipeline parallelism.", 10**5),
    PlanKey("layout", "dp", "count", "`devices / (tp · pp · cp)`", "Data parallelism.", 10**7),
    PlanKey("layout", "cp", "count", "1", "Context parallelism.", 10**5),
    PlanKey("layout", "ep", "count", "1", "Expert parallelism; it does not multiply the number of devices.", 10**5),
    PlanKey("layout", "etp", "count", "1", "Tensor parallelism of experts.", 10**5),
    PlanKey("layout", "vp", "count", "1", "Chunks of a pipeline stage (interleaved schedule).", 10**4),
    PlanKey("layout", "sp", "flag", "true where `tp` > 1", "Sequence parallelism beside tensor parallelism."),
    PlanKey(
        "layout",
        "zero",
        "size",
        "0",
        "Stage of ZeRO; 1 is a distributed optimizer, 3 FSDP; under a pipeline 2 is as 1.",
        3,
    ),
    PlanKey("layout", "schedule", "text", "`1f1b`, with `vp` > 1 `interleaved`", "Schedule of the pipeline."),
    PlanKey("layout", "cp_kind", "text", "`ring`", "How context parallelism brings keys and values together."),
    PlanKey("layout", "chunk_layers", "counts", "as even as they come", "Layers of each pipeline chunk, in order."),
)

_BATCH: Final = (
    PlanKey("batch", "sequence", "count", REQUIRED, "Tokens of a sequence.", 10**9),
    PlanKey("batch", "micro_batch", "count", REQUIRED, "Sequences that a replica processes at once.", 10**6),
    PlanKey("batch", "global_batch", "count", REQUIRED, "Sequences of a step over all replicas.", 10**9),
)

_TRAINING: Final = (
    PlanKey("training", "dtype", "text", "`bf16`", "Data type of the computation: bf16, fp16, fp8 or fp32."),
    PlanKey("training", "optimizer", "text", "`adam`", "Whose states are kept."),
    PlanKey("training", "gradient_bytes", "count", "4", "Bytes of a gradient as it is kept and reduced.", 8),
    PlanKey(
        "training",
        "recompute",
        "policies",
        "`none`",
        "What backward computes again, for all layers or by layer.",
    ),
    PlanKey("training", "flash", "flag", "true", "Attention that never writes its scores to memory."),
    PlanKey("training", "tokens", "number", "", "Tokens of the whole training, for its days.", 10**18),
    PlanKey("training", "dropout", "flag", "false", "Dropout, whose masks are kept."),
    PlanKey("training", "fused_loss", "flag", "true", "A cross-entropy that keeps no copy of the logits in 32 bits."),
)

_CALIBRATION: Final = (
    PlanKey("calibration", "steps", "text", "", "Measured steps as CSV, to fit what is not stated here to."),
    PlanKey(
        "calibration",
        "matmul_of_ceiling",
        "share",
        "0.875 on Ampere, 0.65 on Blackwell, else 0.75",
        "Of the best measured product, what a model's reach.",
    ),
    PlanKey(
        "calibration",
        "attention_of_matmul",
        "share",
        "0.4; 0.6 on Blackwell, and where scores are written to memory",
        "Of that, what attention's core reaches.",
    ),
    PlanKey("calibration", "memory_share", "share", "0.8", "Of the memory's rate, what element-wise kernels reach."),
    PlanKey(
        "calibration", "launch_us", "number", "4", "What a kernel costs besides its work; about 1 in a graph.", 100
    ),
    PlanKey(
        "calibration", "host_us", "number", "0", "What the host needs for a launch, where kernels are shorter.", 300
    ),
    PlanKey("calibration", "half_tiles", "number", "0", "Tiles at which a product reaches half of its rate.", 400),
    PlanKey("calibration", "scale_up", "number", "1", "Factor on what collectives take within a node.", 100),
    PlanKey("calibration", "network", "number", "1", "Factor on what collectives take across nodes.", 100),
    PlanKey("calibration", "scale_up_contention", "share", "0.15", "What communication slows what it hides under."),
    PlanKey("calibration", "network_contention", "share", "0.02", "The same across nodes."),
)
_SOFTWARE: Final = (
    PlanKey("software", "hides_tp", "flag", "false", "Tensor-parallel messages run beside the products."),
    PlanKey("software", "hides_cp", "flag", "true", "Ring attention sends the next keys while it computes."),
    PlanKey("software", "hides_ep", "flag", "false", "Two micro-batches take turns: one computes, one travels."),
    PlanKey("software", "hides_pp", "flag", "true", "A stage goes on while it sends."),
    PlanKey("software", "hides_dp", "flag", "true", "Gradients are reduced beside the backward pass."),
    PlanKey("software", "bucket_mib", "number", "25", "Largest bucket of gradients, in MiB.", 10**5),
    PlanKey("software", "dispatch_bytes", "number", "2", "Bytes of an element on its way to an expert.", 8),
    PlanKey("software", "combine_bytes", "number", "2", "Bytes of an element on its way back.", 8),
    PlanKey("software", "routed_nodes", "size", "0", "Nodes that a token goes to at most; 0 for any number.", 10**5),
    PlanKey("software", "scatter_gather", "flag", "false", "Ranks send shares to the next stage, gathered there."),
    PlanKey("software", "reshard", "flag", "true", "FSDP drops gathered weights after the forward pass."),
)

_SERVING: Final = (
    PlanKey("serving", "prompt_tokens", "count", REQUIRED, "Tokens of a request's prompt.", 10**9),
    PlanKey("serving", "output_tokens", "count", REQUIRED, "Tokens that a request gets.", 10**9),
    PlanKey("serving", "batch", "count", "as many as fit", "Requests that are decoded at once.", 10**7),
    PlanKey("serving", "prefill_tokens", "count", "8192", "Tokens of prompts that go into one pass.", 10**7),
    PlanKey("serving", "tp", "count", "1", "Tensor parallelism of one server.", 10**5),
    PlanKey("serving", "dp", "count", "1", "Replicas of attention that share the experts of one server.", 10**5),
    PlanKey("serving", "ep", "count", "1", "Expert parallelism of one server.", 10**5),
    PlanKey("serving", "etp", "count", "1", "Tensor parallelism of its experts.", 10**5),
    PlanKey("serving", "weight_bytes", "number", "2", "Bytes of a weight as it is stored.", 8),
    PlanKey("serving", "cache_bytes", "number", "2", "Bytes of an element of the cache.", 8),
    PlanKey("serving", "dispatch_bytes", "number", "2", "Bytes of an element on its way to an expert.", 8),
    PlanKey("serving", "dtype", "text", "`bf16`", "Data type of the products."),
)

_SEARCH: Final = (
    PlanKey("search", "tp", "counts", "divisors of the heads, up to a node", "Tensor parallelism to try.", 10**5),
    PlanKey("search", "pp", "counts", "up to the layers", "Pipeline parallelism to try.", 10**5),
    PlanKey("search", "cp", "counts", "that of the layout", "Context parallelism to try.", 10**5),
    PlanKey("search", "ep", "counts", "divisors of the experts", "Expert parallelism to try.", 10**5),
    PlanKey("search", "vp", "counts", "1, 2, 4", "Chunks of a stage to try.", 10**4),
    PlanKey("search", "zero", "counts", "that of the layout, and 1", "Stages of ZeRO to try.", 3),
    PlanKey("search", "micro_batch", "counts", "1, 2, 4, 8", "Micro-batches to try.", 10**6),
    PlanKey("search", "devices", "counts", "that of the hardware", "Numbers of devices to try.", 10**7),
    PlanKey("search", "recompute", "policies", "all", "Policies to try."),
)

SECTIONS: Final = {
    TOP: _TOP,
    "model": _MODEL,
    "model.experts": _EXPERTS,
    "model.latent": _LATENT,
    "hardware": _HARDWARE,
    "layout": _LAYOUT,
    "batch": _BATCH,
    "training": _TRAINING,
    "calibration": _CALIBRATION,
    "software": _SOFTWARE,
    "serving": _SERVING,
    "search": _SEARCH,
}
"""Section -> its keys."""

NEEDED_SECTIONS: Final = ("model", "hardware", "batch")


def key_of(section: str, name: str) -> PlanKey | None:
    """Return the row of a key, None where there is no such key."""
    return next((key for key in SECTIONS.get(section, ()) if key.name == name), None)
