"""How a model is divided over devices, and what a step processes.

world = tp · pp · dp · cp. Expert parallelism does not multiply: its groups are carved out of dp · cp · tp, so that an
expert's own data parallelism is world / (ep · etp · pp).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from longpole.errors import UsageError

if TYPE_CHECKING:
    from longpole.costs.architecture import Architecture

Recompute: TypeAlias = Literal["none", "selective", "full"]
RECOMPUTE: Final[tuple[Recompute, ...]] = ("none", "selective", "full")
SCHEDULES: Final = ("gpipe", "1f1b", "interleaved", "zb1p", "zb2p", "zbv", "dualpipe")
ZERO_STAGES: Final = (0, 1, 2, 3)
CP_KINDS: Final = ("ring", "all_gather", "all_to_all")
WORK_DTYPES: Final = ("bf16", "fp16", "fp8", "fp32")
GRADIENT_BYTES: Final = (2, 4)
_DEGREES: Final = ("tp", "pp", "dp", "cp", "ep", "etp", "vp")
_LARGEST: Final = 1 << 40  # of any degree or size: beyond, it is a slip of the pen


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Parallel degrees.

    Attributes:
        tp, pp, dp, cp: Tensor, pipeline, data and context parallelism.
        ep: Expert parallelism.
        etp: Tensor parallelism of experts.
        vp: Chunks of a pipeline stage (interleaved schedule).
        sp: Sequence parallelism: what tensor parallelism leaves whole is divided along the sequence.
        zero: Stage of ZeRO; 1 is Megatron's distributed optimizer, 3 is FSDP, resharding but under a pipeline.
        schedule: One of `SCHEDULES`.
        cp_kind: How context parallelism brings keys and values together: one of `CP_KINDS`.
        chunk_layers: Layers of each pipeline chunk, in the order of the model; empty for as even as they come.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 1
    vp: int = 1
    sp: bool = False
    zero: int = 0
    schedule: str = "1f1b"
    cp_kind: str = "ring"
    chunk_layers: tuple[int, ...] = ()

    @property
    def world(self) -> int:
        """Devices that it needs."""
        return self.tp * self.pp * self.dp * self.cp

    @property
    def expert_dp(self) -> int:
        """Replicas of each expert."""
        return max(self.world // (self.ep * self.etp * self.pp), 1)

    @property
    def keeps_gathered(self) -> bool:
        """Whether FSDP keeps gathered weights and whole gradients until the last micro-batch is through.

        Under a pipeline, as PyTorch's stages have it: they neither shard again after a pass nor reduce before the last
        one (`torch.distributed.pipelining.stage`, `backward_maybe_with_nosync` and `_post_backward`).
        """
        return self.zero == 3 and self.pp > 1

    @property
    def divides_gradients(self) -> bool:
        """Whether gradients are divided while micro-batches are summed, and so reduced behind each of them.

        Not of ZeRO-2 under a pipeline: DeepSpeed refuses the two together, and others sum whole gradients and reduce
        them once (MegaScale, arXiv:2402.15627, section 3.2; Llama 3, arXiv:2407.21783, section 3.3.2). There it is as
        ZeRO-1.
        """
        return self.zero == 3 or (self.zero == 2 and self.pp == 1)

    def chunks(self, layers: int) -> tuple[int, ...]:
        """Return how many layers each of the pp · vp chunks has, in the order of the model.

        What does not divide goes to inner chunks first: the outer ones have the embedding and the head besides. Of
        126 layers over 16 stages the first and the last get 7 and the others 8, as in Llama 3 405B (arXiv:2407.21783,
        3.3.2).

        >>> Layout(pp=4).chunks(10), Layout(pp=2, vp=2).chunks(8)
        ((2, 3, 3, 2), (2, 2, 2, 2))
        """
        if self.chunk_layers:
            return self.chunk_layers
        count = self.pp * self.vp
        each, rest = divmod(layers, count)
        inner = sorted(range(count), key=lambda chunk: (abs(2 * chunk - count + 1), chunk))[:rest]
        return tuple(each + (chunk in inner) for chunk in range(count))

    def stages(self, layers: int) -> tuple[tuple[range, ...], ...]:
        """Return the layers that each pipeline stage holds: a range for each of its chunks.

        Chunk c is on stage c mod pp; a V schedule (`zbv`) comes back, so that the last chunk is on stage 0; `dualpipe`
        holds every stage twice, on devices i and pp - 1 - i.

        >>> Layout(pp=2, vp=2, schedule="interleaved").stages(8)
        ((range(0, 2), range(4, 6)), (range(2, 4), range(6, 8)))
        """
        counts = self.chunks(layers)
        starts = [sum(counts[:chunk]) for chunk in range(len(counts))]
        ranges = [range(start, start + count) for start, count in zip(starts, counts, strict=True)]
        if self.schedule == "dualpipe":
            return tuple((ranges[stage], ranges[self.pp - 1 - stage]) for stage in range(self.pp))
        found: list[list[range]] = [[] for _ in range(self.pp)]
        for chunk, each in enumerate(ranges):
            lap, place = divmod(chunk, self.pp)
            found[self.pp - 1 - place if self.schedule == "zbv" and lap % 2 else place].append(each)
        return tuple(tuple(chunks) for chunks in found)

    def label(self) -> str:
        """Write it the way people do: `TP4·PP2·DP2`, degrees of 1 left out."""
        names = ("tp", "pp", "dp", "cp", "ep", "vp")
        parts = [f"{name.upper()}{getattr(self, name)}" for name in names if getattr(self, name) > 1]
        return "·".join(parts) or "one device"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a step processes, and how.

    Attributes:
        sequence: Tokens of a sequence, s.
        micro_batch: Sequences that a replica processes at once, b.
        global_batch: Sequences of a step over all replicas, B.
        recompute: Which activations are computed again in the backward pass.
        recompute_layers: The same for each layer, where they differ; empty for `recompute` in all of them.
        dtype: Of the computation: one of `WORK_DTYPES`.
        gradient_bytes: Bytes of a gradient as it is kept and reduced: 4 in Megatron, 2 in the ZeRO paper.
        flash: Whether attention scores are never written to memory.
        fused_loss: Whether the cross-entropy keeps no copy of the logits in 32 bits.
        dropout: Whether there is dropout, whose masks are kept.
    """

    sequence: int
    micro_batch: int
    global_batch: int
    recompute: Recompute = "none"
    recompute_layers: tuple[Recompute, ...] = ()
    dtype: str = "bf16"
    gradient_bytes: int = 4
    flash: bool = True
    fused_loss: bool = True
    dropout: bool = False

    def policy(self, layer: int) -> Recompute:
        """Return what is computed again of a layer, counted from 0."""
        return self.recompute_layers[layer] if self.recompute_layers else self.recompute

    def micro_batches(self, layout: Layout) -> int:
        """Return how many micro-batches a replica processes in a step."""
        return self.global_batch // (layout.dp * self.micro_batch)

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.global_batch * self.sequence


def complaints(model: Architecture, layout: Layout, work: Work, devices: int | None = None) -> list[str]:
    """Return what does not divide, each as a sentence with what would be accepted; empty for a layout that fits.

    Args:
        model: What is divided.
        layout: How.
        work: What a step processes.
        devices: How many there are, None where that follows from the layout.
    """
    found = [_not_a_count(name, getattr(layout, name)) for name in _DEGREES if not _is_count(getattr(layout, name))]
    if found:
        return found
    if layout.zero not in ZERO_STAGES or isinstance(layout.zero, bool):
        found.append(f"zero: expected one of {', '.join(map(str, ZERO_STAGES))}; found {layout.zero!r}")
    if devices is not None and layout.world != devices:
        found.append(
            f"TP{layout.tp} · PP{layout.pp} · CP{layout.cp} · DP{layout.dp} needs {layout.world} devices, not {devices}"
        )
    found += _of_choices(layout, work)
    found += _of_tensors(model, layout) + _of_pipeline(model, layout) + _of_experts(model, layout)
    return [*found, *_of_batch(model, layout, work)]


def check(model: Architecture, layout: Layout, work: Work, devices: int | None = None) -> None:
    """Refuse a layout that does not divide.

    Raises:
        UsageError: With every complaint.
    """
    found = complaints(model, layout, work, devices)
    if found:
        msg = "; ".join(found)
        raise UsageError(msg)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < _LARGEST


def _not_a_count(name: str, value: object) -> str:
    return f"{name}: expected a positive whole number, found {value!r}"


def _of_choices(layout: Layout, work: Work) -> list[str]:
    """Return what is none of the names that are accepted."""
    choices: tuple[tuple[str, object, tuple[object, ...]], ...] = (
        ("schedule", layout.schedule, SCHEDULES),
        ("cp_kind", layout.cp_kind, CP_KINDS),
        ("dtype", work.dtype, WORK_DTYPES),
        ("gradient_bytes", work.gradient_bytes, GRADIENT_BYTES),
        *(("recompute", policy, RECOMPUTE) for policy in dict.fromkeys((work.recompute, *work.recompute_layers))),
    )
    return [
        f"{name}: expected one of {', '.join(map(str, accepted))}; found {value!r}"
        for name, value, accepted in choices
        if value not in accepted or isinstance(value, bool)
    ]


def _of_tensors(model: Architecture, layout: Layout) -> list[str]:
    found = []
    heads, shared = model.heads, model.key_value_heads
    if heads % layout.tp:
        found.append(f"tp={layout.tp} does not divide {heads} heads; what does: {_divisors(heads)}")
    if layout.tp > 1 and model.latent is None and max(shared, layout.tp) % min(shared, layout.tp):
        found.append(f"tp={layout.tp} and {shared} key-value heads: one must divide the other")
    if model.feed_forward % layout.tp:
        found.append(f"tp={layout.tp} does not divide the feed-forward width {model.feed_forward}")
    if layout.cp_kind == "all_to_all" and heads % (layout.tp * layout.cp):
        found.append(f"tp={layout.tp} · cp={layout.cp} does not divide {heads} heads, which an all-to-all deals out")
    return found


def _of_pipeline(model: Architecture, layout: Layout) -> list[str]:
    found = []
    if layout.pp * layout.vp > model.layers:
        found.append(f"pp={layout.pp} · vp={layout.vp} is more than {model.layers} layers")
    if layout.vp > 1 and layout.pp == 1:
        found.append("vp > 1 needs pp > 1")
    if layout.schedule == "zbv" and layout.vp != 2:
        found.append(f"schedule zbv has two chunks a stage: expected vp=2, found {layout.vp}")
    if layout.schedule in ("gpipe", "zb1p", "zb2p", "dualpipe") and layout.vp > 1:
        found.append(f"schedule {layout.schedule} has one chunk a stage: expected vp=1, found {layout.vp}")
    if layout.schedule == "dualpipe" and layout.pp % 2:
        found.append(f"schedule dualpipe pairs stages: expected an even pp, found {layout.pp}")
    counts = layout.chunk_layers
    if counts and (len(counts) != layout.pp * layout.vp or sum(counts) != model.layers or min(counts) < 0):
        found.append(
            f"chunk_layers: expected {layout.pp * layout.vp} whole numbers that add up to {model.layers} layers,"
            f" found {len(counts)} that add up to {sum(counts)}"
        )
    return found


def _of_experts(model: Architecture, layout: Layout) -> list[str]:
    if model.experts is None:
        return [f"{name}={value}: the model has no experts" for name, value in _expert_degrees(layout) if value > 1]
    found = []
    if model.experts.count % layout.ep:
        found.append(f"ep={layout.ep} does not divide {model.experts.count} experts")
    if model.experts.width % layout.etp:
        found.append(f"etp={layout.etp} does not divide the experts' width {model.experts.width}")
    if (layout.dp * layout.cp * layout.tp) % (layout.ep * layout.etp):
        found.append(f"ep={layout.ep} · etp={layout.etp} does not divide dp · cp · tp")
    return found


def _expert_degrees(layout: Layout) -> tuple[tuple[str, int], ...]:
    return ("ep", layout.ep), ("etp", layout.etp)


def _of_batch(model: Architecture, layout: Layout, work: Work) -> list[str]:
    names = ("sequence", "micro_batch", "global_batch")
    found = [_not_a_count(name, getattr(work, name)) for name in names if not _is_count(getattr(work, name))]
    if found:
        return found
    if work.global_batch % (layout.dp * work.micro_batch):
        found.append(
            f"global batch {work.global_batch} is no multiple of dp · micro-batch = {layout.dp * work.micro_batch}"
        )
    if work.sequence % layout.cp:
        found.append(f"cp={layout.cp} does not divide the sequence of {work.sequence}")
    elif layout.sp and work.sequence % (layout.cp * layout.tp):
        found.append(f"sequence parallelism: cp · tp = {layout.cp * layout.tp} does not divide {work.sequence} tokens")
    if work.recompute_layers and len(work.recompute_layers) != model.layers:
        found.append(f"recompute: {len(work.recompute_layers)} policies for {model.layers} layers")
    return found


def _divisors(number: int) -> str:
    """Write the divisors of a number of heads."""
    return ", ".join(str(divisor) for divisor in range(1, number + 1) if number % divisor == 0)
