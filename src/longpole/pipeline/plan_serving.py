"""The `[serving]` of a plan: a roofline of prefill and decode on the devices of one server."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from longpole.costs.layout import Layout
from longpole.errors import UsageError
from longpole.pipeline.plan_parts import add_up
from longpole.report.plan import PlanFigure
from longpole.report.plan_asked import PlanPass, PlanServing, PlanServingPoint
from longpole.units import BYTES_PER_GB, NS_PER_S, format_ns

if TYPE_CHECKING:
    from longpole.costs.inference import PassTime, Serving
    from longpole.pipeline.plan_config import Ground
    from longpole.pipeline.plan_told import Told
    from longpole.readers.plan_file.read import PlanFile

SERVING_ERROR: Final = (
    "37 published rates of one engine: 6 % off in the median, 31 of them within 20 %; queues and schedulers are not"
    " modelled"
)
"""Decision 0037: TensorRT-LLM v0.6.1 on H100, L40S and A100; the six read a shared cache once for each head."""

_RULES: Final = {"cache": "reading caches", "weights": "reading weights", "launch": "launching kernels"}
_OF_LAYOUT: Final = ("tp", "dp", "ep", "etp")
_OF_SERVER: Final = ("weight_bytes", "cache_bytes", "dispatch_bytes", "dtype")
_OF_REQUESTS: Final = ("prompt_tokens", "output_tokens", "batch", "prefill_tokens")


def served_on(file: PlanFile) -> tuple[Layout, str]:
    """Return how one server divides the model, and the data type of its products."""
    given = file.section("serving")
    return Layout(**{name: given[name] for name in _OF_LAYOUT if name in given}), str(given.get("dtype", "bf16"))


def describe_serving(file: PlanFile, ground: Ground) -> PlanServing:
    """Say what serving takes.

    Raises:
        UsageError: The layout does not divide the model, or a figure is none.
    """
    found = _serving(file, ground)
    layout, _ = served_on(file)
    given = file.section("serving")
    rate = found.tokens_per_s
    return PlanServing(
        says=_says(found),
        label=layout.label(),
        devices=found.devices,
        prompt_tokens=given["prompt_tokens"],
        output_tokens=given["output_tokens"],
        batch=found.batch,
        fits=found.fits,
        most_requests=found.most_sequences,
        weight_bytes=round(found.weight_bytes),
        cache_bytes_per_token=found.sequence_cache_bytes / (given["prompt_tokens"] + given["output_tokens"]),
        request_cache_bytes=round(found.sequence_cache_bytes),
        limit_bytes=round(found.memory_bytes),
        cache_room_bytes=round(found.cache_room_bytes),
        first_token_ns=round(found.prefill.seconds.value * NS_PER_S),
        prefill=_pass(found.prefill),
        decode=_pass(found.decode),
        tokens_per_s=rate.value,
        tokens_per_s_low=rate.low,
        tokens_per_s_high=rate.high,
        tokens_per_s_per_device=found.tokens_per_s_per_device,
        critical_batch=found.critical_batch,
        curve=[
            PlanServingPoint(batch=point.batch, step_ns=round(point.step_s * NS_PER_S), tokens_per_s=point.tokens_per_s)
            for point in found.curve
        ],
        known_error=SERVING_ERROR,
    )


def tell_defaults(file: PlanFile, told: Told) -> None:
    """Tell what a plan's `[serving]` does not state."""
    given = file.section("serving")
    for key, value, source in (
        ("batch", "as many as fit", ""),
        ("weight_bytes", "2", ""),
        ("cache_bytes", "2", ""),
        ("prefill_tokens", "8192", "a usual setting of engines"),
        ("dtype", "bf16", ""),
    ):
        if key not in given:
            told.default(f"[serving] {key}", value, source)


def explain_serving(file: PlanFile, ground: Ground, wanted: str) -> list[PlanFigure]:
    """Return the figures of serving with their formulas; those whose name holds what is wanted, or all.

    Raises:
        UsageError: No figure has such a name; the names are listed.
    """
    figures = [
        PlanFigure(name=one.name, value=one.value.value, unit=one.unit, formula=one.formula, source=one.source)
        for one in _serving(file, ground).quantities
    ]
    found = [one for one in figures if wanted in ("", "all") or wanted.casefold() in one.name.casefold()]
    if not found:
        names = ", ".join(one.name for one in figures)
        msg = f"--explain {wanted!r}: no figure has that in its name; there are {names}; or all"
        raise UsageError(msg)
    return found


def _serving(file: PlanFile, ground: Ground) -> Serving:
    from longpole.costs.collective_time import CollectiveCosts
    from longpole.costs.inference import Requests, serving
    from longpole.costs.serving_operators import Server

    given: dict[str, Any] = dict(file.section("serving"))
    layout, _ = served_on(file)
    server = Server(layout=layout, **{name: given[name] for name in _OF_SERVER if name in given})
    requests = Requests(**{name: given[name] for name in _OF_REQUESTS if name in given})
    costs = CollectiveCosts(ground.cluster, ground.recorded)
    device = replace(ground.cluster.device, memory_bytes=ground.limit_bytes, reported_memory_bytes=None)
    cluster = replace(ground.cluster, device=device)
    try:
        return serving(ground.model, cluster, requests, server=server, costs=costs)
    except UsageError as error:
        msg = f"{file.path}: [serving]: {error}"
        raise UsageError(msg) from None


def _pass(one: PassTime) -> PlanPass:
    dur_ns = round(one.seconds.value * NS_PER_S)
    return PlanPass(
        dur_ns=dur_ns,
        low_ns=round(one.seconds.low * NS_PER_S),
        high_ns=round(one.seconds.high * NS_PER_S),
        parts_ns=add_up({name: seconds * NS_PER_S for name, seconds in one.parts_s.items()}, dur_ns),
        limits_ns=add_up({name: seconds * NS_PER_S for name, seconds in one.limits_s.items()}, dur_ns),
        limited_by=one.limited_by,
    )


def _says(found: Serving) -> str:
    if not found.most_sequences:
        need = found.weight_bytes / BYTES_PER_GB
        return f"does not fit: weights of {need:.1f} GB leave no room for one request's cache on a device"
    rate, step_ns = found.tokens_per_s, found.decode.seconds.value * NS_PER_S
    over = "" if found.fits else f" (but only {found.most_sequences:,} fit)"
    return (
        f"{found.batch:,} requests at once{over}: {rate.value:,.0f} tokens/s on {found.devices:,} devices; first"
        f" token after {format_ns(found.prefill.seconds.value * NS_PER_S)}, then one every {format_ns(step_ns)},"
        f" limited by {_RULES.get(found.decode.limited_by, found.decode.limited_by)}"
    )
