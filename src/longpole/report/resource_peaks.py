"""What each column of the resource-time matrix can do on a device: in theory, and the most that was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.hardware.devices import match_device
from longpole.hardware.matmul_ceilings import find_ceiling
from longpole.hardware.vector_peaks import vector_peaks
from longpole.records.ledger import Unknown
from longpole.records.resources import Peak

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.hardware.devices import Device

_NOT_MEASURED: Final = Unknown("no measured ceiling of this part is in the tables", [])
_VECTOR_TYPES: Final = ("fp32", "bf16", "fp16", "fp8")  # element-wise kernels compute them in 32 bits
_OF_TABLE: Final = ("hbm", "scale_up", "pcie")


@dataclass(frozen=True, slots=True)
class Peaks:
    """Peaks of one device by column and element type.

    Attributes:
        device: The part, None where the table has none of its name.
        device_name: What the record calls it.
    """

    device: Device | None
    device_name: str

    @classmethod
    def of(cls, device_name: str) -> Peaks:
        """Look a device up by what the record calls it."""
        return cls(match_device(device_name) if device_name else None, device_name)

    @property
    def name(self) -> str | Unknown:
        """Return the part's name in the device table."""
        return self.device.name if self.device is not None else self._no_device()

    def of_column(self, column: str, dtype: str = "") -> Peak:
        """Return what a column can do for an element type."""
        if self.device is None:
            return Peak(column, dtype, self._no_device(), self._no_device(), "")
        if column == "tensor":
            return self._tensor(self.device, dtype)
        if column == "vector":
            return self._vector(self.device, dtype)
        return self._of_table(self.device, column)

    def listed(self, asked: Iterable[tuple[str, str]]) -> list[Peak]:
        """Return the peaks of columns and element types that rows ask for, and of memory and links."""
        if self.device is None:
            return []
        wanted = sorted({*asked, *((column, "") for column in _OF_TABLE)})
        return [self.of_column(column, dtype) for column, dtype in wanted]

    def _no_device(self) -> Unknown:
        if not self.device_name:
            return Unknown("the record does not name its device", ["deviceProperties"])
        return Unknown(f"{self.device_name} is not in the device table, and no peak is guessed", [])

    @staticmethod
    def _tensor(device: Device, dtype: str) -> Peak:
        if dtype == "tf32":
            found = vector_peaks().get(device.name)
            if found is None or found.tf32_flops_per_s is None:
                return _none("tensor", dtype, f"no tf32 peak of {device.name} is in the tables")
            return Peak("tensor", dtype, found.tf32_flops_per_s, _NOT_MEASURED, found.source)
        if dtype not in device.peak_flops:
            says = f"no {dtype} peak of {device.name} is in the tables" if dtype else "element types were not recorded"
            return _none("tensor", dtype, says)
        peak = device.peak_flops[dtype]
        ceiling = find_ceiling(device.name, dtype)
        if ceiling is None:
            return Peak("tensor", dtype, peak, _NOT_MEASURED, device.source)
        return Peak("tensor", dtype, peak, peak * ceiling.share, f"{device.source}; achievable: {ceiling.says}")

    @staticmethod
    def _vector(device: Device, dtype: str) -> Peak:
        found = vector_peaks().get(device.name)
        if found is None or dtype not in _VECTOR_TYPES:
            says = f"no peak of {device.name}'s vector units for {dtype or 'unknown types'} is in the tables"
            return _none("vector", dtype, says)
        return Peak("vector", dtype, found.fp32_flops_per_s, _NOT_MEASURED, found.source)

    @staticmethod
    def _of_table(device: Device, column: str) -> Peak:
        rates = {
            "hbm": device.memory_bytes_per_s,
            "scale_up": device.scaleup_bytes_per_s,
            "pcie": device.pcie_bytes_per_s,
        }
        rate = rates.get(column)
        if rate is None:
            return _none(column, "", f"no rate of {device.name}'s {column} is in the tables")
        achievable: float | Unknown = _NOT_MEASURED
        source = device.source
        if column == "scale_up" and device.ring_bytes_per_s is not None:
            achievable = device.ring_bytes_per_s
            source += "; achievable: bus bandwidth of a ring in NCCL's own model"
        return Peak(column, "", rate, achievable, source)


def _none(column: str, dtype: str, why: str) -> Peak:
    return Peak(column, dtype, Unknown(why), Unknown(why), "")
