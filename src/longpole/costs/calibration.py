"""What a machine reaches of its peaks: the constants of the step model, with where each comes from.

The shipped ones are round numbers, set once; decision 0034 says against what, and how far off they are elsewhere.
`calibration_fit.py` fits them to a user's own steps.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.costs.formula import Formula
from longpole.costs.operators import Rates
from longpole.errors import UsageError
from longpole.hardware.matmul_ceilings import find_ceiling

if TYPE_CHECKING:
    from longpole.hardware.devices import Device

MATMUL_FLOPS_PER_S: Final = Formula(
    "peak*ceiling*matmul_of_ceiling",
    "FLOP/s",
    "the best product that was measured on the device (mamf-finder), and the share of it that a model's products reach",
)
ATTENTION_FLOPS_PER_S: Final = Formula(
    "peak*ceiling*matmul_of_ceiling*attention_of_matmul", "FLOP/s", "attention's core against large products, 16 bits"
)
MEMORY_BYTES_PER_S: Final = Formula(
    "memory_rate*memory_share", "B/s", "what element-wise kernels reach of the peak rate"
)
UNMEASURED_CEILING: Final = 0.75
"""Of a part that was not measured: between the 0.776 of B200 and the 0.729 of GB200, the newest that were."""


class Reached(NamedTuple):
    """What training reaches on an architecture.

    Attributes:
        matmul_of_ceiling: Of the best measured product.
        attention_of_matmul: Of that, in attention that is one kernel.
        error_share: How far a step of a large dense model may be off, by the tables that were compared with.
        source: Where that comes from.
    """

    matmul_of_ceiling: float
    attention_of_matmul: float
    error_share: float
    source: str


REACHED: Final = {
    "Ampere": Reached(0.875, 0.40, 0.25, "vTrain's A100 steps; attention: llm-foundry's A100 rows; error: MT-NLG"),
    "Hopper": Reached(
        0.75, 0.40, 0.25, "llm-foundry's H100 rows; attention: between these (0.30) and Megatron-Bridge (0.50)"
    ),
    "Blackwell": Reached(
        0.65, 0.60, 0.25, "between SimuMax's B200 steps (0.57) and Megatron-Bridge's GB200 rows (0.70)"
    ),
}
"""Architecture -> what its training reaches. Newer parts reach less of their peaks: they are bound by power."""
REACHED_ELSEWHERE: Final = Reached(0.75, 0.40, 0.30, "Hopper's, for want of measurements")
UNFUSED_ATTENTION: Final = 0.60
"""Of products, where scores are written to memory: batched products of the whole square (before FlashAttention)."""

BOUNDS: Final = {
    "matmul_of_ceiling": (0.30, 1.0),
    "attention_of_matmul": (0.10, 1.0),
    "memory_share": (0.30, 1.0),
    "launch_s": (0.0, 100e-6),
    "host_s": (0.0, 300e-6),
    "half_tiles": (0.0, 400.0),
    "scale_up": (0.25, 4.0),
    "network": (0.25, 6.0),
    "scale_up_contention": (0.0, 1.0),
    "network_contention": (0.0, 1.0),
}
"""Of each constant. Without bounds least squares finds products faster than the peak, and links without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Constants of the step model.

    Attributes:
        matmul_of_ceiling: Of the best measured product, what a model's products reach; None for `REACHED`.
        attention_of_matmul: Of that, what attention's core reaches; None for `REACHED`, or `UNFUSED_ATTENTION`.
        memory_share: Of the memory's peak rate, what element-wise kernels reach.
        launch_s: Gap that a launch leaves between kernels, seconds: 4 µs launched one by one, about 1 µs in a graph.
        host_s: What the host needs for a launch; it matters where kernels are shorter than that.
        half_tiles: Tiles at which a product reaches half of its rate; 0 leaves that effect out.
        scale_up, network: Factors on what collectives take, within a node and across nodes.
        scale_up_contention, network_contention: Of communication that hides, what it slows computation by.
        source: Where the constants come from.
    """

    matmul_of_ceiling: float | None = None
    attention_of_matmul: float | None = None
    memory_share: float = 0.80
    launch_s: float = 4e-6
    host_s: float = 0.0
    half_tiles: float = 0.0
    scale_up: float = 1.0
    network: float = 1.0
    scale_up_contention: float = 0.15
    network_contention: float = 0.02
    source: str = "shipped"

    def __post_init__(self) -> None:
        """Refuse what no machine does."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "source" or value is None:
                continue
            low, high = BOUNDS[field.name]
            if isinstance(value, bool) or not isfinite(value) or not low <= value <= high:
                msg = f"calibration: {field.name}: expected {low:g} to {high:g}, found {value!r}"
                raise UsageError(msg)

    def on(self, device: Device, *, flash: bool = True) -> Calibration:
        """Return the same with every constant a number: those of the device's architecture where none was given."""
        return _completed(self, device.arch, flash)

    def rates(self, device: Device, dtype: str, *, flash: bool = True) -> Rates:
        """Return what a device reaches.

        Raises:
            UsageError: The table has no peak of this type for it, or no memory rate.
        """
        if device.memory_bytes_per_s is None:
            msg = f"no source states the rate of {device.name}'s memory: state it"
            raise UsageError(msg)
        constants = self.on(device, flash=flash)
        assert constants.matmul_of_ceiling is not None
        assert constants.attention_of_matmul is not None
        wide = "bf16" if dtype in ("fp8", "int8") else dtype
        wide_flops_per_s = device.peak(wide) * ceiling(device, wide) * constants.matmul_of_ceiling
        return Rates(
            matmul_flops_per_s=device.peak(dtype) * ceiling(device, dtype) * constants.matmul_of_ceiling,
            attention_flops_per_s=wide_flops_per_s * constants.attention_of_matmul,
            head_flops_per_s=wide_flops_per_s,
            memory_bytes_per_s=device.memory_bytes_per_s * self.memory_share,
            launch_s=self.launch_s,
            half_tiles=self.half_tiles,
            host_s=self.host_s,
        )


@lru_cache(maxsize=64)
def _completed(calibration: Calibration, arch: str, flash: bool) -> Calibration:  # noqa: FBT001 - a cache has no keywords
    reached = REACHED.get(arch, REACHED_ELSEWHERE)
    attention = reached.attention_of_matmul if flash else UNFUSED_ATTENTION
    given_matmul, given_attention = calibration.matmul_of_ceiling, calibration.attention_of_matmul
    return replace(
        calibration,
        matmul_of_ceiling=reached.matmul_of_ceiling if given_matmul is None else given_matmul,
        attention_of_matmul=attention if given_attention is None else given_attention,
    )


def shipped_error_share(device: Device) -> float:
    """Return how far a step of a large dense model may be off with the shipped constants (decision 0034)."""
    return REACHED.get(device.arch, REACHED_ELSEWHERE).error_share


def ceiling(device: Device, dtype: str) -> float:
    """Return the share of its peak that the best product reached on a device, or the one for parts not measured."""
    found = find_ceiling(device.name, dtype)
    return UNMEASURED_CEILING if found is None else found.share
