"""What a plan says of its machine and software: constants of the step model, what hides, a record of collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.costs.calibration import Calibration
from longpole.costs.collective_bytes import Wiring
from longpole.costs.collective_time import RecordedFit
from longpole.costs.memory_states import optimizer_of
from longpole.costs.step_traffic import Software
from longpole.errors import UsageError
from longpole.hardware.nccl_fits import Fit
from longpole.readers.plan_file.read import refuse_key
from longpole.units import BYTES_PER_GB, NS_PER_S

if TYPE_CHECKING:
    from longpole.costs.layout import Layout
    from longpole.hardware.devices import Device
    from longpole.pipeline.plan_told import Told
    from longpole.readers.plan_file.read import PlanFile

_MIB: Final = 1 << 20
_TERA: Final = 10**12
_US: Final = 1e-6
_OF_WIRING: Final = ("dispatch_bytes", "combine_bytes", "routed_nodes", "scatter_gather", "reshard")


def read_calibration(file: PlanFile, told: Told) -> Calibration:
    """Return the constants of the step model, the plan's own over the shipped ones.

    Raises:
        UsageError: One is what no machine has.
    """
    given: dict[str, Any] = dict(file.section("calibration"))
    if not given:
        told.default(
            "[calibration]",
            "shipped constants",
            "from published step times, not your machine: --explain calibration",
        )
        return Calibration()
    is_fitted = given.pop("steps", None) is not None
    for name in ("launch", "host"):
        if f"{name}_us" in given:
            given[f"{name}_s"] = given.pop(f"{name}_us") * _US
    try:
        return Calibration(**given, source="shipped" if is_fitted and not given else "the plan's")
    except UsageError as error:
        raise refuse_key(file.path, "calibration", "", str(error)) from None


def read_software(file: PlanFile, optimizer: str) -> Software:
    """Return which messages run beside computation, and how they are sent.

    Raises:
        UsageError: The optimizer is not known.
    """
    try:
        optimizer_of(optimizer)
    except UsageError as error:
        raise refuse_key(file.path, "training", "optimizer", str(error)) from None
    given: dict[str, Any] = dict(file.section("software"))
    wiring = Wiring(**{key: given.pop(key) for key in _OF_WIRING if key in given})
    if "bucket_mib" in given:
        given["bucket_bytes"] = given.pop("bucket_mib") * _MIB
    return Software(**given, wiring=wiring, optimizer=optimizer)


def tell_software(file: PlanFile, layout: Layout, software: Software, told: Told) -> None:
    """Tell what a plan does not say of the software, as far as its layout has messages of that kind."""
    given = file.section("software")
    sent = {
        "hides_tp": layout.tp > 1,
        "hides_cp": layout.cp > 1,
        "hides_ep": layout.ep > 1,
        "hides_pp": layout.pp > 1,
        "hides_dp": layout.dp * layout.cp > 1,
    }
    for key, is_sent in sent.items():
        if is_sent and key not in given:
            told.default(f"[software] {key}", str(getattr(software, key)).lower(), "")
    if sent["hides_dp"] and software.hides_dp and "bucket_mib" not in given:
        told.default("[software] bucket_mib", f"{software.bucket_bytes / _MIB:g}", "PyTorch's")


def tell_device(file: PlanFile, device: Device, dtype: str, told: Told) -> None:
    """Tell what a plan does not say of its device, and the table does."""
    given = file.section("hardware")
    if "peak_tflops" not in given:
        told.default("[hardware] peak_tflops", f"{device.peak(dtype) / _TERA:g}", "dense, device table")
    if not given.keys() & {"memory_gb", "memory_limit_gb"} and device.usable_memory_bytes:
        usable_gb = device.usable_memory_bytes / BYTES_PER_GB
        told.default("[hardware] memory_gb", f"{usable_gb:.1f}", "what the device reports")
    if "memory_gb_per_s" not in given and device.memory_bytes_per_s:
        told.default("[hardware] memory_gb_per_s", f"{device.memory_bytes_per_s / BYTES_PER_GB:g}", "device table")


def read_recorded(file: PlanFile) -> tuple[RecordedFit, ...]:
    """Return what collectives take on the user's own machine, nothing where the plan names no record.

    Raises:
        UsageError: There is no such file.
        InputError: It is no record, or carries no model.
    """
    name = file.section("hardware").get("collective_record")
    if name is None:
        return ()
    from longpole.pipeline.collective_record import read_models

    models = read_models(file.folder / name)
    return tuple(
        RecordedFit(
            kind=kind,
            ranks=ranks,
            nodes=models.nodes,
            fit=Fit(
                alpha_s=model.alpha_ns / NS_PER_S,
                gamma_s=model.gamma / NS_PER_S,
                bytes_per_s=model.rate * NS_PER_S,
                error_share=model.error_share,
            ),
            says=model.says,
            device=models.device,
        )
        for (kind, ranks), model in sorted(models.models.items())
    )
