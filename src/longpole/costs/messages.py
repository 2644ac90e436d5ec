"""One message of a step, the formulas of its bytes, and how a framework may send it.

Symbols as in the papers: s sequence, b micro-batch, h hidden, e bytes of an element, t, c tensor and context degrees,
a heads and k key-value heads of a device, dk and dv their widths for scores and values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from longpole.costs.collective_time import bus_factor
from longpole.costs.formula import Formula

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from longpole.costs.architecture import Architecture
    from longpole.costs.cluster import Dimension
    from longpole.costs.layout import Layout, Work

Phase: TypeAlias = Literal["forward", "recompute", "backward", "step"]
Often: TypeAlias = "Mapping[Phase, float]"
Along: TypeAlias = "tuple[Dimension, str, int]"

ACTIVATION_BYTES: Final = Formula(
    "s/c*b*h*e", "B", "Korthikanti et al., arXiv:2205.05198, section 4.2: the hidden states of a micro-batch"
)
BOUNDARY_BYTES: Final = Formula(
    "s/c*b*h*e/t", "B", "SC21, arXiv:2104.04473, section 4.1: each rank sends its share; t = 1 where it sends all of it"
)
LOSS_BYTES: Final = Formula("s/c*b*4", "B", "vocabulary-parallel cross-entropy: one 32-bit number for each token")
RING_BYTES: Final = Formula(
    "s/c*b*k*(dk + dv)*e", "B", "Ring Attention, arXiv:2310.01889: keys and values of one share of the sequence"
)
GATHERED_BYTES: Final = Formula(
    "s*b*k*(dk + dv)*e", "B", "Llama 3, arXiv:2407.21783, section 3.3.2: keys and values of the whole sequence"
)
HEADS_IN_BYTES: Final = Formula(
    "s/c*b*(a*dk + k*(dk + dv))*e", "B", "Ulysses, arXiv:2309.14509: queries, keys and values, sequence for heads"
)
HEADS_OUT_BYTES: Final = Formula("s/c*b*a*dv*e", "B", "Ulysses, arXiv:2309.14509: what attention gives, back")
ROUTED_BYTES: Final = Formula(
    "s/(c*t)*b*visits*h*e", "B", "DeepSeek-V3, arXiv:2412.19437, section 3.2: each token to each expert that it visits"
)
EXPERT_SHARE_BYTES: Final = Formula(
    "s/(c*t)*b*visits*h*e*etp", "B", "the routed tokens of all ranks that divide an expert between them"
)
HELD_BYTES: Final = Formula("held*each", "B", "ZeRO, arXiv:1910.02054, section 7: a device's parameters, bytes of each")
NORM_BYTES: Final = Formula(
    "replicated*each", "B", "gradients of what each tensor-parallel rank holds whole: each saw only its own tokens"
)
TIED_BYTES: Final = Formula("V*h/t*each", "B", "gradient of the embedding that the first and the last stage share")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """How a framework sends what it must.

    Attributes:
        element_bytes: Of activations on the wire; None for those of the work's data type (2; fp32: 4).
        weight_bytes: Of gathered weights; None likewise.
        dispatch_bytes, combine_bytes: Of tokens on their way to experts and back; None for `element_bytes`. DeepSeek-V3
            dispatches in 1.
        routed_nodes: To how many nodes a token goes at most, experts on one node sharing its copy; 0 for no limit.
        scatter_gather: Whether tensor-parallel ranks send a share each to the next stage, and gather it there (SC21).
        reshard: Whether gathered weights are dropped after the forward pass, and gathered again for the backward pass.
    """

    element_bytes: float | None = None
    weight_bytes: float | None = None
    dispatch_bytes: float | None = None
    combine_bytes: float | None = None
    routed_nodes: int = 0
    scatter_gather: bool = False
    reshard: bool = True


@dataclass(slots=True)
class Message:
    """What a device sends of one kind. Not to be changed; it is not frozen because a search makes very many.

    Attributes:
        name: What it is for.
        dimension: That it goes along (`Cluster.group` says where its group lies).
        kind: Of the collective.
        group: Devices that take part.
        bytes: Of the full buffer of one operation.
        per_micro_batch: How often for each micro-batch; 0 for what is sent once a step.
        count: How often in a step.
        phase: `forward`, `recompute`, `backward`, or `step` for what is sent once, at its end.
        hides_behind: What can run meanwhile; empty where the next operation waits for it.
        formula: Of the bytes.
        inputs: Its values.
    """

    name: str
    dimension: Dimension
    kind: str
    group: int
    bytes: float
    per_micro_batch: float
    count: float
    phase: Phase
    hides_behind: str
    formula: Formula
    inputs: Mapping[str, float] = field(repr=False)

    @property
    def wire_bytes(self) -> float:
        """Bytes that a device sends in one operation, by a ring's factor."""
        return self.bytes * bus_factor(self.kind, self.group)

    @property
    def step_wire_bytes(self) -> float:
        """Bytes that a device sends in a step."""
        return self.wire_bytes * self.count

    def explain(self) -> str:
        """Write the formula of the bytes with its values."""
        return self.formula.explain(**self.inputs)


class Sender:
    """What the messages of a device have in common.

    Attributes:
        model, layout, work, wiring: As asked.
        micro_batches: Of a step.
        element, weight, dispatch, combine: Bytes on the wire.
        shape: The inputs of formulas that say how large a micro-batch is on a device.
        hidden: These and the width of its hidden states.
    """

    def __init__(self, model: Architecture, layout: Layout, work: Work, wiring: Wiring | None) -> None:
        """Take what is asked."""
        wiring = wiring or Wiring()
        self.model, self.layout, self.work, self.wiring = model, layout, work, wiring
        self.micro_batches = work.micro_batches(layout)
        element = 4.0 if work.dtype == "fp32" else 2.0
        self.element = wiring.element_bytes or element
        self.weight = wiring.weight_bytes or element
        self.dispatch = wiring.dispatch_bytes or self.element
        self.combine = wiring.combine_bytes or self.element
        self.shape: dict[str, float] = {"s": work.sequence, "c": layout.cp, "b": work.micro_batch}
        self.hidden: dict[str, float] = {**self.shape, "h": model.hidden, "e": self.element}

    def sent(
        self,
        name: str,
        along: Along,
        size: tuple[Formula, Mapping[str, float]],
        often: Often,
        hides_behind: str = "",
    ) -> Iterator[Message]:
        """Yield a message for each pass that has it: `often` says how many times for a micro-batch."""
        dimension, kind, group = along
        formula, inputs = size
        size_bytes = formula(**inputs)
        for phase, times in often.items():
            if times:
                count = times * self.micro_batches
                yield Message(
                    name, dimension, kind, group, size_bytes, times, count, phase, hides_behind, formula, inputs
                )

    def once(
        self, name: str, along: Along, size: tuple[Formula, Mapping[str, float]], hides_behind: str = ""
    ) -> Message:
        """Return a message that is sent once a step."""
        dimension, kind, group = along
        formula, inputs = size
        return Message(name, dimension, kind, group, formula(**inputs), 0.0, 1.0, "step", hides_behind, formula, inputs)
