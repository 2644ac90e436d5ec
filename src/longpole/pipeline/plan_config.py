"""From the keys of a plan to what is planned: model, devices and links, layout, batch; and what was taken for granted.

A figure that decides (a peak, the rate of a network) is stated or taken from the device table, never guessed. What is
left out and has a usual value is taken and told of, with its source.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

from longpole.costs.architecture import Architecture, Experts, Latent, read_config
from longpole.costs.cluster import Cluster, cluster_of
from longpole.costs.collective_time import CollectiveCosts
from longpole.costs.conventions import convention_of
from longpole.costs.flops import flops_per_token
from longpole.costs.layout import Layout, Work, complaints
from longpole.errors import UsageError
from longpole.hardware.devices import Device, find_device, match_device
from longpole.pipeline.plan_machine import read_calibration, read_recorded, read_software, tell_device, tell_software
from longpole.pipeline.plan_told import Told
from longpole.readers.plan_file.read import refuse_key
from longpole.readers.plan_file.values import parse_layers
from longpole.units import BYTES_PER_GB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.costs.calibration import Calibration
    from longpole.costs.collective_time import RecordedFit
    from longpole.costs.conventions import Convention
    from longpole.costs.step_traffic import Software
    from longpole.readers.plan_file.read import PlanFile

_TERA: Final = 10**12
FIT: Final = "fit"
"""As a policy: the least recomputation that fits."""
_DIMENSIONS: Final = tuple(one.name for one in fields(Architecture) if one.name not in ("experts", "latent", "name"))
_NEEDED: Final = ("layers", "hidden", "heads", "vocabulary")
_US: Final = 1e-6
_WHOLE_NETWORKS_GB_PER_S: Final = (100, 200, 400, 800)
"""Adapters are sold by these figures in gigabits; as gigabytes they are eight times too much."""
_TWICE: Final = (1.95, 2.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What serving and training have in common.

    Attributes:
        path, name: The file, and what it calls itself.
        model, model_source: What is planned for, and where its dimensions come from.
        cluster: Devices and links.
        devices: How many there are.
        limit_bytes: What may be used of a device's memory.
        recorded: What collectives take here, as the plan's record says.
        told: What was taken for granted, and what looks like a slip.
    """

    path: str
    name: str
    model: Architecture
    model_source: str
    cluster: Cluster
    devices: int
    limit_bytes: float
    recorded: tuple[RecordedFit, ...]
    told: Told


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(Ground):
    """A training that a plan describes.

    Attributes:
        layout, work, optimizer: How, and what a step processes.
        convention: Under which the headline MFU is.
        calibration, software: Constants of the step model; which messages run beside computation.
        error_share: How far a step may be off by these constants, where steps say; else None.
        search: What a search is to try, key by key; what is not there is tried as usual.
        training_tokens: Of the whole training; 0 where that is not said.
    """

    layout: Layout
    work: Work
    optimizer: str
    convention: Convention
    calibration: Calibration
    software: Software
    search: Mapping[str, Any]
    error_share: float | None = None
    training_tokens: float = 0.0

    def flops_per_token(self) -> float:
        """Return model FLOPs of a token under the plan's convention."""
        return flops_per_token(self.model, self.work.sequence, self.convention)


def read_planned(file: PlanFile) -> Planned:
    """Make what is planned out of checked keys.

    Raises:
        UsageError: The convention is left out, a device or preset is not known, the layout does not divide, or a
            network is needed and not stated; the message says what would be accepted.
        InputError: The model's `config.json` cannot be read.
    """
    told = Told()
    convention = _convention(file)
    model, model_source = _model(file, told)
    work = _work(file, model, told)
    device = _device(file, work.dtype, told)
    layout, devices = _layout(file, told)
    found = complaints(model, layout, work, devices)
    if found:
        msg = f"{file.path}: the layout does not fit the model: {'; '.join(found)}"
        raise UsageError(msg)
    _look_at(layout, work, told)
    optimizer = _optimizer(file, told)
    software = read_software(file, optimizer)
    tell_software(file, layout, software, told)
    tell_device(file, device, work.dtype, told)
    cluster = _cluster(file, device, layout, told)
    recorded = read_recorded(file)
    calibration, error_share = _calibration(file, model, CollectiveCosts(cluster, recorded), software, told)
    if file.section("training").get("recompute") == FIT:
        work = _fitted(model, layout, work, limit_bytes(file, device), optimizer, told)
    return Planned(
        path=file.path,
        name=str(file.section("").get("name", "")),
        model=model,
        model_source=model_source,
        cluster=cluster,
        devices=devices,
        limit_bytes=limit_bytes(file, device),
        recorded=recorded,
        told=told,
        layout=layout,
        work=work,
        optimizer=optimizer,
        convention=convention,
        calibration=calibration,
        error_share=error_share,
        software=software,
        search=file.section("search"),
        training_tokens=float(file.section("training").get("tokens", 0.0)),
    )


def read_ground(file: PlanFile, layout: Layout, dtype: str) -> Ground:
    """Make what serving needs out of checked keys, where a plan has no training.

    Args:
        file: The plan.
        layout: Of one server.
        dtype: Of its products.

    Raises:
        UsageError, InputError: As `read_planned`.
    """
    told = Told()
    model, model_source = _model(file, told)
    device = _device(file, dtype, told)
    tell_device(file, device, dtype, told)
    return Ground(
        path=file.path,
        name=str(file.section("").get("name", "")),
        model=model,
        model_source=model_source,
        cluster=_cluster(file, device, layout, told),
        devices=file.section("hardware").get("devices", layout.world),
        limit_bytes=limit_bytes(file, device),
        recorded=read_recorded(file),
        told=told,
    )


def _calibration(
    file: PlanFile, model: Architecture, costs: CollectiveCosts, software: Software, told: Told
) -> tuple[Calibration, float | None]:
    """Return the constants of the step model, and how far off they are where measured steps say that."""
    start = read_calibration(file, told)
    if "steps" not in file.section("calibration"):
        return start, None
    from longpole.pipeline.plan_steps import fit_to_steps

    def divide(other: PlanFile) -> tuple[Layout, Work]:
        unsaid = Told()
        return _layout(other, unsaid)[0], _work(other, model, unsaid)

    fitted = fit_to_steps(file, model, costs, software, (start, told), divide)
    return fitted.calibration, fitted.error_share


def _convention(file: PlanFile) -> Convention:
    try:
        return convention_of(str(file.section("").get("convention", "")))
    except UsageError as error:
        hint = 'Write convention = "mcore" at the top of the plan, before the first section'
        msg = f"{file.path}: {error}. {hint}"
        raise UsageError(msg) from None


def _model(file: PlanFile, told: Told) -> tuple[Architecture, str]:
    given = dict(file.section("model"))
    preset_name, config = given.pop("preset", None), given.pop("config", None)
    if preset_name is not None and config is not None:
        raise refuse_key(file.path, "model", "preset", "expected this or config, not both")
    try:
        if preset_name is not None:
            from longpole.costs.presets import preset

            return _with_keys(preset(preset_name), file, given, told), f"preset {preset_name}"
        if config is not None:
            model = read_config(file.folder / config)
            if model.note:
                told.notes.append(model.note)
            return _with_keys(model, file, given, told), str(config)
        return _of_dimensions(file, given), "the plan's own dimensions"
    except UsageError as error:
        msg = f"{file.path}: [model]: {error}"
        raise UsageError(msg) from None


def _with_keys(model: Architecture, file: PlanFile, given: Mapping[str, Any], told: Told) -> Architecture:
    """Put a plan's own keys over those of a preset or a configuration."""
    changed = {**given, **_inner(file)}
    if not changed:
        return model
    overridden = [key for key in changed if key != "name"]
    if overridden:
        told.notes.append(f"the plan's own {', '.join(overridden)} stand in place of those of {model.name}")
    return replace(model, **changed)


def _of_dimensions(file: PlanFile, given: dict[str, Any]) -> Architecture:
    missing = [key for key in _NEEDED if key not in given]
    if missing:
        msg = f"{', '.join(missing)} missing; or name a preset, or a config.json as config"
        raise UsageError(msg)
    given.setdefault("name", "own model")
    given.setdefault("key_value_heads", given["heads"])
    if "head_dim" not in given and given["hidden"] % given["heads"]:
        msg = f"{given['heads']} heads do not divide the hidden width {given['hidden']}; state head_dim"
        raise UsageError(msg)
    given.setdefault("head_dim", given["hidden"] // given["heads"])
    given.setdefault("feed_forward", 4 * given["hidden"])
    return Architecture(**given, **_inner(file))


def _inner(file: PlanFile) -> dict[str, Any]:
    found: dict[str, Any] = {}
    experts, latent = dict(file.section("model.experts")), file.section("model.latent")
    if experts:
        experts.setdefault("shared_width", experts["width"] if experts.get("shared") else 0)
        found["experts"] = Experts(**experts)
    if latent:
        found["latent"] = Latent(**{"query_rank": 0, **latent})
    return found


def _work(file: PlanFile, model: Architecture, told: Told) -> Work:
    batch, training = file.section("batch"), dict(file.section("training"))
    for elsewhere in ("optimizer", "tokens"):
        training.pop(elsewhere, None)
    policy = training.pop("recompute", "none")
    policy = "full" if policy == FIT else policy
    if isinstance(policy, dict):
        training["recompute_layers"] = _policies(file, policy, model.layers)
    elif isinstance(policy, list):
        training["recompute_layers"] = tuple(policy)
    else:
        training["recompute"] = policy
    for key, value, source in (
        ("recompute", "none", ""),
        ("dtype", "bf16", ""),
        ("gradient_bytes", "4", "as Megatron; ZeRO's paper: 2"),
        ("flash", "true", ""),
        ("fused_loss", "true", ""),
    ):
        if key not in file.section("training"):
            told.default(f"[training] {key}", value, source)
    return Work(**batch, **training)


def _fitted(model: Architecture, layout: Layout, work: Work, limit: float, optimizer: str, told: Told) -> Work:
    """Return the work with the least recomputation that fits; everything again where not even that does."""
    from longpole.costs.recompute import fit_recompute

    policies = fit_recompute(model, layout, work, limit, optimizer=optimizer)
    if policies is None:
        told.notes.append("recompute = fit: not even with every layer computed again does it fit; full is shown")
        return work
    return replace(work, recompute="none", recompute_layers=policies)


def _policies(file: PlanFile, by_policy: Mapping[str, str], layers: int) -> tuple[Any, ...]:
    """Return the policy of each layer from layers by policy; layers that none names have none."""
    found = ["none"] * layers
    named: set[int] = set()
    for policy, text in by_policy.items():
        for layer in parse_layers(text):
            if layer >= layers or layer in named:
                says = f"layer {layer} is named twice" if layer in named else f"there are layers 0 to {layers - 1}"
                raise refuse_key(file.path, "training", "recompute", f"{policy} = {text!r}: {says}")
            named.add(layer)
            found[layer] = policy
    return tuple(found)


def _optimizer(file: PlanFile, told: Told) -> str:
    optimizer = file.section("training").get("optimizer")
    if optimizer is None:
        told.default("[training] optimizer", "adam", "two moments and master weights of 32 bits")
    return str(optimizer or "adam")


def _device(file: PlanFile, dtype: str, told: Told) -> Device:
    """Return the device of the table with the plan's own figures over it, or one that the plan describes."""
    given = file.section("hardware")
    own = _own_figures(given, dtype)
    if "device" not in given:
        return _own_device(file, own)
    try:
        device = find_device(given["device"])
    except UsageError as error:
        raise refuse_key(file.path, "hardware", "device", str(error)) from None
    _look_at_figures(given, device, dtype, told)
    if not own.get("peak_flops"):
        own.pop("peak_flops", None)
    else:
        own["peak_flops"] = {**device.peak_flops, **own["peak_flops"]}
    device = replace(device, **own)
    try:
        device.peak(dtype)
    except UsageError as error:
        raise refuse_key(file.path, "training", "dtype", f"{error} in [hardware] peak_tflops") from None
    return device


def _own_figures(given: Mapping[str, Any], dtype: str) -> dict[str, Any]:
    peaks = given.get("peak_tflops", {})
    if not isinstance(peaks, dict):
        peaks = {dtype: peaks}
    found: dict[str, Any] = {"peak_flops": {name: float(value) * _TERA for name, value in peaks.items()}}
    for key, name in (
        ("memory_gb", "memory_bytes"),
        ("memory_gb_per_s", "memory_bytes_per_s"),
        ("scaleup_gb_per_s", "scaleup_bytes_per_s"),
    ):
        if key in given:
            found[name] = float(given[key]) * BYTES_PER_GB
    if "memory_gb" in given:
        found["reported_memory_bytes"] = None
    if "scaleup_gb_per_s" in given:
        found |= {"scaleup_both_bytes_per_s": 2 * found["scaleup_bytes_per_s"], "ring_bytes_per_s": None}
    return found


def _own_device(file: PlanFile, own: dict[str, Any]) -> Device:
    given = file.section("hardware")
    needed = ("name", "peak_tflops", "memory_gb", "memory_gb_per_s")
    missing = [key for key in needed if key not in given]
    if missing:
        says = f"missing; name a device of the table, or state {', '.join(missing)} of your own"
        raise refuse_key(file.path, "hardware", "device", says)
    known = match_device(given["name"])
    if known is not None:
        says = f"{given['name']!r} is in the table: name it as device, and state beside it what differs"
        raise refuse_key(file.path, "hardware", "name", says)
    node = given.get("devices_per_node", 1)
    if node > 1 and "scaleup_gb_per_s" not in given:
        raise refuse_key(file.path, "hardware", "scaleup_gb_per_s", f"missing, and {node} devices share a node")
    return Device(
        name=given["name"],
        vendor="",
        arch="",
        **{"scaleup_bytes_per_s": None, "scaleup_both_bytes_per_s": None, "ring_bytes_per_s": None} | own,
        fabric="scale-up link",
        pair_bytes_per_s=None,
        scaleup_domain=node,
        pcie_bytes_per_s=None,
        power_w=None,
        confidence="stated",
        source="the plan",
        notes="",
    )


def _look_at_figures(given: Mapping[str, Any], device: Device, dtype: str, told: Told) -> None:
    """Tell of figures that look like the one that data sheets print in place of the one that is meant."""
    peaks = given.get("peak_tflops", {})
    stated = peaks.get(dtype) if isinstance(peaks, dict) else peaks
    dense = device.peak_flops.get(dtype)
    if stated and dense and _TWICE[0] < stated * _TERA / dense < _TWICE[1]:
        told.notes.append(
            f"peak_tflops {stated:g} is twice the dense {dtype} peak of {device.name} ({dense / _TERA:g}): the sparse"
            " figure, which no dense product reaches"
        )
    link, table = given.get("scaleup_gb_per_s"), device.scaleup_bytes_per_s
    if link and table and _TWICE[0] < link * BYTES_PER_GB / table < _TWICE[1]:
        told.notes.append(
            f"scaleup_gb_per_s {link:g} is both directions of {device.name} together; one way it has"
            f" {table / BYTES_PER_GB:g}"
        )
    network = given.get("network_gb_per_s")
    if network in _WHOLE_NETWORKS_GB_PER_S:
        told.notes.append(
            f"network_gb_per_s {network:g} is in gigabytes: an adapter of {network:g} Gb/s carries {network / 8:g} GB/s"
        )


def _layout(file: PlanFile, told: Told) -> tuple[Layout, int]:
    given = dict(file.section("layout"))
    devices = file.section("hardware").get("devices")
    if "chunk_layers" in given:
        given["chunk_layers"] = tuple(given["chunk_layers"])
    if "dp" not in given:
        given["dp"] = _replicas(file, given, devices)
        told.default("[layout] dp", str(given["dp"]), "devices / (tp · pp · cp)" if devices else "one replica")
    if "sp" not in given:
        given["sp"] = given.get("tp", 1) > 1
        if given["sp"]:
            told.default("[layout] sp", "true", "usual beside tp")
    if "schedule" not in given:
        given["schedule"] = "interleaved" if given.get("vp", 1) > 1 else "1f1b"
        if given.get("pp", 1) > 1:
            told.default("[layout] schedule", given["schedule"], "")
    if "zero" not in given and given["dp"] > 1:
        told.default("[layout] zero", "0", "every replica keeps all states")
    layout = Layout(**given)
    if devices is None:
        told.default("[hardware] devices", str(layout.world), "what the layout needs")
    return layout, devices if devices is not None else layout.world


def _replicas(file: PlanFile, given: Mapping[str, Any], devices: int | None) -> int:
    others: int = given.get("tp", 1) * given.get("pp", 1) * given.get("cp", 1)
    if devices is None:
        return 1
    if devices % others:
        raise refuse_key(file.path, "layout", "dp", f"tp · pp · cp = {others} does not divide {devices} devices")
    return devices // others


def _look_at(layout: Layout, work: Work, told: Told) -> None:
    """Tell of what divides and yet is hardly meant."""
    micro_batches = work.micro_batches(layout)
    if layout.pp > 1 and micro_batches < layout.pp:
        told.notes.append(
            f"{micro_batches} micro-batches for {layout.pp} pipeline stages: most of a stage's time is bubble"
        )
    if layout.zero in (2, 3) and layout.pp > 1:
        told.notes.append(f"ZeRO-{layout.zero} beside a pipeline repeats its collectives for every micro-batch")
    if layout.zero == 3 and layout.pp > 1:
        told.notes.append(
            "ZeRO-3 is counted as sharding again after every use; PyTorch's FSDP keeps weights and gradients whole"
            " between a pipeline's micro-batches, and needs more memory than is said here"
        )


def _cluster(file: PlanFile, device: Device, layout: Layout, told: Told) -> Cluster:
    given = file.section("hardware")
    network = given.get("network_gb_per_s")
    try:
        cluster = cluster_of(
            device,
            network * BYTES_PER_GB if network else None,
            node_size=given.get("devices_per_node"),
            network_hop_s=given.get("network_hop_us", 0.0) * _US,
            network_share=given.get("network_share"),
        )
    except UsageError as error:
        raise refuse_key(file.path, "hardware", "scaleup_gb_per_s", str(error)) from None
    node = cluster.node_size
    if "devices_per_node" not in given:
        told.default("[hardware] devices_per_node", f"{node}", "device table")
    if "scaleup_gb_per_s" not in given and device.scaleup_bytes_per_s:
        told.default(
            "[hardware] scaleup_gb_per_s", f"{device.scaleup_bytes_per_s / BYTES_PER_GB:g}", "one way, device table"
        )
    if network is None and node is not None and layout.world > node:
        says = (
            f"missing: {layout.world} devices are more than one node of {node}, and no rate is guessed. State what one"
            " device gets of the network one way: 50 where each has an adapter of 400 Gb/s"
        )
        raise refuse_key(file.path, "hardware", "network_gb_per_s", says)
    return cluster


def limit_bytes(file: PlanFile, device: Device) -> float:
    """Return what may be used of a device's memory.

    Raises:
        UsageError: Neither the plan nor the table says how much there is.
    """
    limit_gb = file.section("hardware").get("memory_limit_gb")
    if limit_gb is not None:
        return float(limit_gb) * BYTES_PER_GB
    usable = device.usable_memory_bytes
    if usable is None:
        raise refuse_key(file.path, "hardware", "memory_gb", f"missing: no source states that of {device.name}")
    return usable
