"""What a machine reaches of its peaks: the constants of the step model, with where each comes from.

The shipped ones were set once, as round numbers, before any published step time was compared with (they are those of a
prototype that had been fitted to vTrain's measurements); decision 0034 says how far off they are. `calibration_fit.py`
fits them to a user's own steps.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

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
    "peak*ceiling*matmul_of_ceiling*attention_of_matmul", "FLOP/s", "attention's core against large products"
)
MEMORY_BYTES_PER_S: Final = Formula(
    "memory_rate*memory_share", "B/s", "what element-wise kernels reach of the peak rate"
)
UNMEASURED_CEILING: Final = 0.75
"""Of a part that was not measured: between the 0.776 of B200 and the 0.729 of GB200, the newest that were."""

BOUNDS: Final = {
    "matmul_of_ceiling": (0.30, 1.0),
    "attention_of_matmul": (0.10, 1.0),
    "memory_share": (0.30, 1.0),
    "launch_s": (0.0, 100e-6),
    "host_s": (0.0, 200e-6),
    "half_tiles": (0.0, 400.0),
    "scale_up": (0.25, 4.0),
    "network": (0.25, 6.0),
}
"""Of each constant that can be fitted. Without bounds least squares finds products faster than the peak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Constants of the step model.

    Attributes:
        matmul_of_ceiling: Of the best measured product, what a model's products reach.
        attention_of_matmul: Of that, what attention's core reaches.
        memory_share: Of the memory's peak rate, what element-wise kernels reach.
        launch_s: What a kernel costs besides its work, seconds: 4 µs launched one by one, about 1 µs in a graph.
        half_tiles: Tiles at which a product reaches half of its rate; 0 leaves that effect out.
        scale_up, network: Factors on what collectives take, within a node and across nodes.
        scale_up_contention, network_contention: Of communication that hides, what it slows computation by.
        source: Where the constants come from.
    """

    matmul_of_ceiling: float = 0.875
    attention_of_matmul: float = 0.60
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
            low, high = BOUNDS.get(field.name, (0.0, 1.0))
            if field.name != "source" and not low <= value <= high:
                msg = f"calibration: {field.name}: expected {low:g} to {high:g}, found {value!r}"
                raise UsageError(msg)

    def rates(self, device: Device, dtype: str) -> Rates:
        """Return what a device reaches.

        Raises:
            UsageError: The table has no peak of this type for it, or no memory rate.
        """
        if device.memory_bytes_per_s is None:
            msg = f"no source states the rate of {device.name}'s memory: state it"
            raise UsageError(msg)
        wide = dtype if dtype not in ("fp8", "int8") else "bf16"
        matmul = device.peak(dtype) * self.ceiling(device, dtype) * self.matmul_of_ceiling
        wide_matmul = device.peak(wide) * self.ceiling(device, wide) * self.matmul_of_ceiling
        return Rates(
            matmul_flops_per_s=matmul,
            attention_flops_per_s=wide_matmul * self.attention_of_matmul,
            head_flops_per_s=wide_matmul,
            memory_bytes_per_s=device.memory_bytes_per_s * self.memory_share,
            launch_s=self.launch_s,
            half_tiles=self.half_tiles,
            host_s=self.host_s,
        )

    def ceiling(self, device: Device, dtype: str) -> float:
        """Return the share of its peak that the best product reached on a device, or the one for parts not measured."""
        found = find_ceiling(device.name, dtype)
        return UNMEASURED_CEILING if found is None else found.share
