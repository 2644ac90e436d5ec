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
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from longpole.pipeline.plan_told import Told
    from longpole.readers.plan_file.read import PlanFile

_MIB: Final = 1 << 20
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
