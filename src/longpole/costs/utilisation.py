"""Model and hardware FLOP utilisation, and how long a training takes at one.

    MFU = tokens/s · model FLOPs per token / (devices · peak)
    HFU = tokens/s · hardware FLOPs per token / (devices · peak)

Both are shares of a dense peak, and both depend on the convention that the FLOPs were counted under
(`longpole.costs.flops`). Each relation is a `Formula`: called with numbers it gives a number, with ranges (`.over`) a
range, and `.explain` prints it with its values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.costs.formula import Formula, Range
from longpole.errors import UsageError

if TYPE_CHECKING:
    from longpole.costs.formula import Number

_PALM: Final = "Chowdhery et al., PaLM, arXiv:2204.02311, section 4.1 and appendix B"

MFU: Final = Formula("tokens_per_s*flops_per_token/(devices*peak_flops)", "share of peak", _PALM)
HFU: Final = Formula("tokens_per_s*hardware_flops_per_token/(devices*peak_flops)", "share of peak", _PALM)
MFU_OF_RATE: Final = Formula(
    "achieved_flops/peak_flops", "share of peak", "FLOP/s that one device achieves, of what it could: as MFU"
)
ACHIEVED_FLOPS: Final = Formula(
    "tokens_per_s*flops_per_token/devices", "FLOP/s", "FLOP/s that one device achieves: MFU without its peak"
)
TOKENS_PER_S: Final = Formula("mfu*devices*peak_flops/flops_per_token", "tokens/s", "MFU, solved for the throughput")
FULL_RATE_S: Final = Formula(
    "tokens*flops_per_token/(devices*peak_flops)", "s", "what a step would take if every device ran at its peak"
)
TRAINING_DAYS: Final = Formula(
    "tokens*flops_per_token/(devices*peak_flops*mfu*86400)",
    "days",
    "MFU, solved for the time; Narayanan et al., SC21, arXiv:2104.04473, equation 4 is 8N of it, without attention",
)
DEVICE_HOURS: Final = Formula("devices*days*24", "device hours", "devices times time")

BF16_H100_FLOPS: Final = Range(989.4e12, 989.0e12, 989.5e12)
"""What authors divide by for one and the same H100: Megatron-LM 989, NVIDIA 989.4, llm-foundry 989.5 TFLOP/s."""


def mfu(*, tokens_per_s: float, flops_per_token: float, devices: float, peak_flops: float) -> float:
    """Return the model FLOP utilisation, as a share.

    Args:
        tokens_per_s: Of all devices together.
        flops_per_token: Model FLOPs, forward and backward, under a named convention.
        devices: How many there are.
        peak_flops: Dense peak of one of them, in FLOP/s.

    Raises:
        UsageError: Something is not above 0.
    """
    _check(tokens_per_s=tokens_per_s, flops_per_token=flops_per_token, devices=devices, peak_flops=peak_flops)
    return MFU(tokens_per_s=tokens_per_s, flops_per_token=flops_per_token, devices=devices, peak_flops=peak_flops)


def hfu(*, tokens_per_s: float, hardware_flops_per_token: float, devices: float, peak_flops: float) -> float:
    """Return the hardware FLOP utilisation, as a share: with what is computed again.

    Args:
        tokens_per_s: Of all devices together.
        hardware_flops_per_token: Hardware FLOPs, forward and backward.
        devices: How many there are.
        peak_flops: Dense peak of one of them, in FLOP/s.

    Raises:
        UsageError: Something is not above 0.
    """
    inputs = {
        "tokens_per_s": tokens_per_s,
        "hardware_flops_per_token": hardware_flops_per_token,
        "devices": devices,
        "peak_flops": peak_flops,
    }
    _check(**inputs)
    return HFU(**inputs)


def training_days(*, tokens: float, flops_per_token: float, devices: float, peak_flops: float, mfu: float) -> float:
    """Return how many days a training takes at a utilisation.

    Args:
        tokens: Of the whole training.
        flops_per_token: Under the convention that the utilisation was counted under.
        devices: How many there are.
        peak_flops: Dense peak of one of them, in FLOP/s.
        mfu: Utilisation, a share.

    Raises:
        UsageError: Something is not above 0.
    """
    inputs = {
        "tokens": tokens,
        "flops_per_token": flops_per_token,
        "devices": devices,
        "peak_flops": peak_flops,
        "mfu": mfu,
    }
    _check(**inputs)
    return TRAINING_DAYS(**inputs)


def utilisation_range(*, tokens_per_s: Number, flops_per_token: Number, devices: Number, peak_flops: Number) -> Range:
    """Return MFU where some inputs are known as ranges only, such as rounded figures."""
    return MFU.over(tokens_per_s=tokens_per_s, flops_per_token=flops_per_token, devices=devices, peak_flops=peak_flops)


def _check(**inputs: float) -> None:
    for name, value in inputs.items():
        if not 0 < value < float("inf"):
            msg = f"{name}: expected a number above 0, found {value!r}"
            raise UsageError(msg)
