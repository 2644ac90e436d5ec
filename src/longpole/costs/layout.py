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


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Parallel degrees.

    Attributes:
        tp, pp, dp, cp: Tensor, pipeline, data and context parallelism.
        ep: Expert parallelism.
        etp: Tensor parallelism of experts.
        vp: Chunks of a pipeline stage (interleaved schedule).
        sp: Sequence parallelism: what tensor parallelism leaves whole is divided along the sequence.
        zero: Stage of ZeRO; 1 is Megatron's distributed optimizer, 3 is FSDP with resharding.
        schedule: One of `SCHEDULES`.
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

    @property
    def world(self) -> int:
        """Devices that it needs."""
        return self.tp * self.pp * self.dp * self.cp

    @property
    def expert_dp(self) -> int:
        """Replicas of each expert."""
        return max(self.world // (self.ep * self.etp * self.pp), 1)

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
        dtype: Of the computation: `bf16`, `fp16` or `fp8`.
        gradient_bytes: Bytes of a gradient as it is kept and reduced: 4 in Megatron, 2 in the ZeRO paper.
        flash: Whether attention scores are never written to memory.
        fused_loss: Whether the cross-entropy keeps no copy of the logits in 32 bits.
    """

    sequence: int
    micro_batch: int
    global_batch: int
    recompute: Recompute = "none"
    dtype: str = "bf16"
    gradient_bytes: int = 4
    flash: bool = True
    fused_loss: bool = True

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
    found = [
        f"{name}: expected a positive whole number, found {getattr(layout, name)!r}"
        for name in ("tp", "pp", "dp", "cp", "ep", "etp", "vp")
        if isinstance(getattr(layout, name), bool)
        or not isinstance(getattr(layout, name), int)
        or getattr(layout, name) < 1
    ]
    if found:
        return found
    if layout.zero not in ZERO_STAGES:
        found.append(f"zero: expected one of {ZERO_STAGES}, found {layout.zero!r}")
    if layout.schedule not in SCHEDULES:
        found.append(f"schedule: expected one of {', '.join(SCHEDULES)}; found {layout.schedule!r}")
    if devices is not None and layout.world != devices:
        found.append(
            f"TP{layout.tp} · PP{layout.pp} · CP{layout.cp} · DP{layout.dp} needs {layout.world} devices, not {devices}"
        )
    return [*found, *_of_model(model, layout), *_of_batch(layout, work)]


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
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _of_model(model: Architecture, layout: Layout) -> list[str]:
    found = []
    if model.heads % layout.tp:
        found.append(f"tp={layout.tp} does not divide {model.heads} heads")
    if (
        layout.tp > 1
        and model.latent is None
        and max(model.key_value_heads, layout.tp) % min(model.key_value_heads, layout.tp)
    ):
        found.append(f"tp={layout.tp} and {model.key_value_heads} key-value heads: one must divide the other")
    if model.feed_forward % layout.tp:
        found.append(f"tp={layout.tp} does not divide the feed-forward width {model.feed_forward}")
    if layout.pp * layout.vp > model.layers:
        found.append(f"pp={layout.pp} · vp={layout.vp} is more than {model.layers} layers")
    if layout.vp > 1 and layout.pp == 1:
        found.append("vp > 1 needs pp > 1")
    if layout.ep > 1 and model.experts is None:
        found.append(f"ep={layout.ep}: the model has no experts")
    if model.experts is not None:
        if model.experts.count % layout.ep:
            found.append(f"ep={layout.ep} does not divide {model.experts.count} experts")
        if (layout.dp * layout.cp * layout.tp) % (layout.ep * layout.etp):
            found.append(f"ep={layout.ep} · etp={layout.etp} does not divide dp · cp · tp")
    return found


def _of_batch(layout: Layout, work: Work) -> list[str]:
    found = [
        f"{name}: expected a positive whole number, found {getattr(work, name)!r}"
        for name in ("sequence", "micro_batch", "global_batch")
        if not _is_count(getattr(work, name))
    ]
    if found:
        return found
    if work.recompute not in RECOMPUTE:
        found.append(f"recompute: expected one of {', '.join(RECOMPUTE)}; found {work.recompute!r}")
    if work.global_batch % (layout.dp * work.micro_batch):
        found.append(
            f"global batch {work.global_batch} is no multiple of dp · micro-batch = {layout.dp * work.micro_batch}"
        )
    if work.sequence % layout.cp:
        found.append(f"cp={layout.cp} does not divide the sequence of {work.sequence}")
    return found
