"""What the messages of one pipeline stage take, and what of that its passes hide.

`collective_bytes.py` says what is sent and what could run meanwhile, `collective_time.py` what it takes. Here both meet
the passes: a message hides as far as there is something to hide behind, and as far as the framework lets it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Final

from longpole.costs.collective_bytes import Wiring
from longpole.costs.formula import Formula
from longpole.costs.overlap import CAP_BYTES, equal_buckets_exposed_s, equal_units_exposed_s

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.costs.calibration import Calibration
    from longpole.costs.cluster import Dimension, Group
    from longpole.costs.collective_bytes import Message
    from longpole.costs.collective_time import CollectiveCosts
    from longpole.costs.layout import Layout
    from longpole.costs.operators import PassTime

DIMENSIONS: Final = ("tp", "cp", "ep", "pp", "dp", "fsdp")
"""What a step's communication is told by."""
CONTENTION_S: Final = Formula(
    "hidden*slowdown",
    "s",
    "communication takes processors and memory from what it runs beside; Calculon (10.1145/3581784.3607102) charges"
    " 15 % within a node and 2 % across nodes",
)
ASYNC_TP_SHARE: Final = 0.5
"""Of the messages of tensor parallelism, what split products hide: torchtitan's asynchronous TP on H100 made steps 1.09
times faster in BF16 and 1.16 times in FP8, which is 40 and 50 % of what they took."""
_OF_LAYERS: Final = ("weights of a layer", "gradients of a layer")  # by `collective_bytes`, of messages of FSDP
_TOLD_AS: Final = {"embedding": "pp", "etp": "ep", "edp": "dp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """How a framework runs a step: which communication it lets run beside computation, and how it sends.

    Attributes:
        hides_tp: Products are split so that their communication runs beside them (asynchronous tensor parallelism).
        hides_cp: Ring attention sends the next keys and values while it computes.
        hides_ep: Two micro-batches take turns: one computes while the other's tokens travel.
        hides_pp: A stage goes on while it sends; else it waits until what it sent has arrived.
        hides_dp: Gradients are reduced in buckets beside the backward pass, and divided weights gathered beside the
            forward pass (FSDP: one layer ahead); else both come after the last micro-batch, in one piece.
        bucket_bytes: Cap of a bucket.
        wiring: What is sent, and in which pieces.
        optimizer: One of `memory_states.OPTIMIZERS`.
    """

    hides_tp: bool = False
    hides_cp: bool = True
    hides_ep: bool = False
    hides_pp: bool = True
    hides_dp: bool = True
    bucket_bytes: float = CAP_BYTES
    wiring: Wiring = field(default_factory=Wiring)
    optimizer: str = "adam"


MEGATRON_2021: Final = Software(hides_pp=False, hides_dp=False, wiring=Wiring(scatter_gather=True))
"""Megatron-LM of arXiv:2104.04473 and arXiv:2205.05198: stages wait for their transfers, gradients are reduced last."""


@dataclass(slots=True)
class StageTraffic:
    """Seconds of one stage's messages.

    Attributes:
        forward_s, backward_s: What they add to the passes of one micro-batch.
        exposed_s, hidden_s: The same by dimension, and what hides beside these passes.
        last_s: By dimension, what comes once a step after the passes, and does not hide.
        hidden_last_s: By dimension, what comes once a step and hides.
        transfer_s: One message to the next stage, where a stage goes on meanwhile.
        contention_s, contention_last_s: What hidden messages cost the computation, per micro-batch and once a step.
    """

    forward_s: float = 0.0
    backward_s: float = 0.0
    exposed_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    hidden_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    last_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    hidden_last_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    transfer_s: float = 0.0
    contention_s: float = 0.0
    contention_last_s: float = 0.0


class Prices:
    """Times of messages along the dimensions of one layout."""

    def __init__(self, costs: CollectiveCosts, layout: Layout, calibration: Calibration) -> None:
        """Take where a time comes from, and the factors on it."""
        self._costs, self._layout, self._calibration = costs, layout, calibration
        self._places: dict[str, tuple[Group, float, float]] = {}
        self._known: dict[tuple[str, str, float], float] = {}

    def seconds(self, message: Message, size_bytes: float | None = None) -> float:
        """Return what one operation takes, of another size where one is given."""
        size = message.bytes if size_bytes is None else size_bytes
        key = (message.dimension, message.kind, size)
        found = self._known.get(key)
        if found is None:
            group, factor, _ = self._place(message.dimension)
            found = self._known[key] = factor * self._costs.seconds_in(message.kind, group, size)
        return found

    def slowdown(self, message: Message) -> float:
        """Return what share of it a hidden message costs the computation."""
        return self._place(message.dimension)[2]

    def _place(self, dimension: Dimension) -> tuple[Group, float, float]:
        found = self._places.get(dimension)
        if found is None:
            group = self._costs.cluster.group(self._layout, dimension)
            set_by = self._calibration
            across = self._costs.cluster.crosses_nodes(group)
            factor = set_by.network if across else set_by.scale_up
            slowdown = set_by.network_contention if across else set_by.scale_up_contention
            found = self._places[dimension] = (group, factor, slowdown)
        return found


def stage_traffic(
    messages: Iterable[Message], prices: Prices, software: Software, passes: PassTime, layers: int
) -> StageTraffic:
    """Return what a stage's messages take.

    Args:
        messages: Of the stage, as `collective_bytes.step_messages` lists them.
        prices: What they take.
        software: What it lets hide.
        passes: What the stage computes for one micro-batch.
        layers: That the stage has.
    """
    found = StageTraffic()
    cover = _Cover(passes)
    sharded: list[Message] = []
    for message in messages:
        if message.hides_behind in ("the layer before", "the layer after"):
            sharded.append(message)
        elif message.phase == "step" or message.hides_behind == "the backward pass":
            _reduce(found, message, prices, software, passes)
        else:
            _within_passes(found, message, prices, software, cover)
    if sharded:
        _gather(found, sharded, prices, software, passes, layers)
    return found


class _Cover:
    """What is left of a stage's passes to hide messages behind, seconds of one micro-batch."""

    def __init__(self, passes: PassTime) -> None:
        whole_s = passes.total_s
        forward = passes.forward_s / whole_s if whole_s else 0.0
        again = passes.recompute_s / whole_s if whole_s else 0.0
        backward = 1.0 - forward - again
        self.left_s = {
            ("attention", "forward"): passes.attention_s * forward,
            ("attention", "recompute"): passes.attention_s * again,
            ("attention", "backward"): passes.attention_s * backward,
            # Half of a product's backward pass is the gradient of its input.
            ("gradients of inputs", "backward"): passes.weight_s,
            ("computation", "forward"): passes.forward_s,
            ("computation", "recompute"): passes.recompute_s,
            ("computation", "backward"): passes.backward_s,
        }

    def hide(self, behind: str, phase: str, spent_s: float) -> float:
        """Return how much of a message hides, and take that from what is left."""
        left_s = self.left_s.get((behind, phase), 0.0)
        hidden_s = min(spent_s, left_s)
        self.left_s[behind, phase] = left_s - hidden_s
        return hidden_s


def _within_passes(found: StageTraffic, message: Message, prices: Prices, software: Software, cover: _Cover) -> None:
    """Add a message that each micro-batch sends in its passes."""
    dimension = _TOLD_AS.get(message.dimension, message.dimension)
    each_s = prices.seconds(message)
    spent_s = each_s * message.per_micro_batch
    hidden_s = 0.0
    if dimension == "pp":
        if software.hides_pp:
            found.transfer_s = max(found.transfer_s, each_s)
            hidden_s = spent_s
    else:
        behind = _behind(message, dimension, software)
        if behind:
            most_s = ASYNC_TP_SHARE * spent_s if dimension == "tp" and behind == "computation" else spent_s
            hidden_s = cover.hide(behind, message.phase, most_s)
    if hidden_s:
        found.hidden_s[dimension] += hidden_s
        found.contention_s += hidden_s * prices.slowdown(message)
    exposed_s = spent_s - hidden_s
    found.exposed_s[dimension] += exposed_s
    if message.phase == "forward":
        found.forward_s += exposed_s
    else:
        found.backward_s += exposed_s


def _behind(message: Message, dimension: str, software: Software) -> str:
    """Return what hides a message, empty for nothing."""
    if (dimension == "ep" and software.hides_ep) or (
        dimension == "tp" and software.hides_tp and not message.hides_behind
    ):
        return "computation"
    if dimension == "cp" and not software.hides_cp:
        return ""
    return message.hides_behind


def _reduce(found: StageTraffic, message: Message, prices: Prices, software: Software, passes: PassTime) -> None:
    """Add a message that comes once a step, or gradients that are reduced behind each backward pass (ZeRO-2)."""
    dimension = _TOLD_AS.get(message.dimension, message.dimension)
    spent_s = exposed_s = prices.seconds(message)
    if software.hides_dp and message.hides_behind:
        count = max(ceil(message.bytes / software.bucket_bytes), 1)
        bucket_s = prices.seconds(message, message.bytes / count)
        spent_s = count * bucket_s
        if message.hides_behind == "the next forward pass":
            # The first layers' weights are needed at once, the others' while those compute.
            cover_s = (passes.forward_s + found.forward_s) * (count - 1) / count
            exposed_s = bucket_s + max(spent_s - bucket_s - cover_s, 0.0)
        else:
            cover_s = passes.backward_s + passes.recompute_s + found.backward_s
            exposed_s = min(equal_buckets_exposed_s(count, cover_s, bucket_s), spent_s)
    hidden_s = spent_s - exposed_s
    if message.phase == "step":
        found.last_s[dimension] += exposed_s
        found.hidden_last_s[dimension] += hidden_s
        found.contention_last_s += hidden_s * prices.slowdown(message)
    else:
        found.backward_s += exposed_s
        found.exposed_s[dimension] += exposed_s
        found.hidden_s[dimension] += hidden_s
        found.contention_s += hidden_s * prices.slowdown(message)


def _gather(
    found: StageTraffic,
    messages: Iterable[Message],
    prices: Prices,
    software: Software,
    passes: PassTime,
    layers: int,
) -> None:
    """Add weights that are gathered layer by layer, and gradients that are reduced behind (FSDP)."""
    forward_s = backward_s = reduce_s = spent_s = slowed_s = around_s = 0.0
    for message in messages:
        whole_s = prices.seconds(message) * message.per_micro_batch
        spent_s += whole_s
        slowed_s += whole_s * prices.slowdown(message)
        if not message.name.startswith(_OF_LAYERS):
            around_s += whole_s
        elif message.phase == "forward":
            forward_s += whole_s / layers
        elif message.kind == "all_gather":
            backward_s += whole_s / layers
        else:
            reduce_s += whole_s / layers
    if software.hides_dp:
        # A layer's computation and its exposed messages cover; of embedding and head, one has nothing beside it.
        cover_s = (passes.forward_s + found.forward_s) / layers
        back_s = passes.backward_s + passes.recompute_s + found.backward_s
        first_s = equal_units_exposed_s(layers, cover_s, forward_s) + around_s / 4
        second_s = equal_units_exposed_s(layers, back_s / layers, backward_s, reduce_s) + around_s / 4
    else:
        first_s = layers * forward_s + around_s / 2
        second_s = layers * (backward_s + reduce_s) + around_s / 2
    exposed_s = min(first_s + second_s, spent_s)
    found.forward_s += first_s
    found.backward_s += exposed_s - first_s
    found.exposed_s["fsdp"] += exposed_s
    found.hidden_s["fsdp"] += spent_s - exposed_s
    found.contention_s += slowed_s * (spent_s - exposed_s) / spent_s if spent_s else 0.0
