"""Plans whose pages are kept: made by hand, so that a page changes only when its words do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.records.ledger import Unknown
from longpole.report.plan import (
    MEMORY_PARTS,
    SCHEMA,
    Plan,
    PlanDefault,
    PlanFigure,
    PlanHardware,
    PlanLayout,
    PlanLimit,
    PlanLink,
    PlanMemory,
    PlanMessage,
    PlanModel,
    PlanPart,
    PlanStage,
    PlanStep,
    PlanTraining,
    PlanUtilisation,
)
from longpole.report.plan_asked import (
    PlanAgainst,
    PlanBeside,
    PlanBesideCollective,
    PlanChoice,
    PlanPass,
    PlanSaving,
    PlanSearch,
    PlanServing,
    PlanServingPoint,
)
from longpole.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable

GB: Final = 10**9
PARTS: Final = (8.8, 17.6, 13.2, 22.5, 0.0, 0.6, 0.9)
LAST_PARTS: Final = (8.8, 17.6, 13.2, 11.3, 0.3, 0.7, 0.9)


def ms(value: float) -> int:
    return round(value * NS_PER_MS)


def stage(number: int, parts_gb: tuple[float, ...]) -> PlanStage:
    parts = {name: round(size * GB) for name, size in zip(MEMORY_PARTS, parts_gb, strict=True)}
    return PlanStage(
        stage=number,
        layers=40,
        in_flight=2 - number,
        parts_bytes=parts,
        peak_bytes=sum(parts.values()),
        margin_bytes=round(0.1 * sum(parts.values())),
    )


def memory(limit_gb: float = 80, last: tuple[float, ...] = LAST_PARTS) -> PlanMemory:
    stages = [stage(0, PARTS), stage(1, last)]
    worst = stages[0]
    free = round(limit_gb * GB) - worst.peak_bytes - worst.margin_bytes
    return PlanMemory(
        verdict="fits" if free >= 0 else "tight" if worst.peak_bytes <= limit_gb * GB else "does not fit",
        worst_stage=0,
        peak_bytes=worst.peak_bytes,
        margin_bytes=worst.margin_bytes,
        limit_bytes=round(limit_gb * GB),
        free_bytes=free,
        stages=stages,
        known_error="measured allocators took 2 to 9 % more than the peak",
    )


def step() -> PlanStep:
    parts = [
        PlanPart(name="compute", says="compute", exposed_ns=ms(14_900), hidden_ns=0),
        PlanPart(name="tp", says="tensor parallel", exposed_ns=ms(3_990), hidden_ns=ms(1_010)),
        PlanPart(name="pp", says="pipeline transfers", exposed_ns=0, hidden_ns=ms(12.3)),
        PlanPart(name="contention", says="slowed by messages", exposed_ns=ms(4), hidden_ns=0),
        PlanPart(name="ep", says="expert parallel", exposed_ns=0, hidden_ns=0),
        PlanPart(name="bubble", says="pipeline bubble", exposed_ns=ms(706), hidden_ns=0),
    ]
    period = sum(part.exposed_ns for part in parts)
    return PlanStep(
        period_ns=period,
        low_ns=round(0.9 * period),
        high_ns=round(1.1 * period),
        parts=parts,
        tokens_per_s=53_498.7,
        tokens_per_s_per_device=835.9,
        known_error="±10 %: large and dense; not calibrated to your machine",
    )


def use(name: str, share: float, used_by: str, **keys: Any) -> PlanUtilisation:
    return PlanUtilisation(
        convention=name,
        counts="",
        used_by=used_by,
        hardware=keys.get("hardware", False),
        flops_per_token=share * 1.2e12,
        share=share,
        tflops_per_device=share * 989.4,
        asked=keys.get("asked", False),
        applies=keys.get("applies", True),
    )


def message(dimension: str, kind: str, count: float, size: int, each_ms: float, **keys: Any) -> PlanMessage:
    return PlanMessage(
        name="inputs of blocks",
        dimension=dimension,
        kind=kind,
        phase="forward",
        devices=keys.get("devices", 8),
        link=keys.get("link", "NVLink4"),
        bytes=size,
        count=count,
        each_ns=ms(each_ms),
        total_ns=ms(each_ms * count),
        hides_under="",
        source=keys.get("source", "shipped"),
        source_says=keys.get("says", "h100_sxm, all_gather"),
        error_share=keys.get("error", 0.03),
    )


def layout() -> PlanLayout:
    return PlanLayout(
        label="TP8·PP2·DP4", devices=64, tp=8, pp=2, dp=4, cp=1, ep=1, etp=1, vp=1, sp=True, zero=1, schedule="1f1b",
        sequence=8192, micro_batch=1, global_batch=128, micro_batches=32, tokens=1_048_576,
        recompute="full 0-7, none 8-79", optimizer="adam", gradient_bytes=4, flash=True, fused_loss=True,
    )  # fmt: skip


def training(**changes: Any) -> Plan:
    """A plan that fits, with everything that a page can show of it."""
    known: dict[str, Any] = {
        "schema": SCHEMA,
        "longpole": "0",
        "source": "plan.toml",
        "name": "",
        "says": "a step takes 19.6 s, and matrix products are most of it",
        "model": PlanModel(
            name="llama-3-70b", source="preset llama-3-70b", parameters=70_553_706_496,
            active_parameters=70_553_706_496, embedding_parameters=2_101_346_304, dimensions={},
        ),
        "hardware": PlanHardware(
            device="H100-SXM5-80GB", devices=64, devices_per_node=8, dtype="bf16", peak_tflops=989.4,
            memory_bytes=80 * GB, limit_bytes=80 * GB, memory_gb_per_s=3350, source="",
            links=[
                PlanLink(name="NVLink4", devices=8, gb_per_s=450, dimensions=["tp"]),
                PlanLink(name="network", devices=None, gb_per_s=50, dimensions=["pp", "dp"]),
            ],
        ),
        "layout": layout(),
        "memory": memory(),
        "step": step(),
        "utilisation": [
            use("6n", 0.357, "estimates by hand, the ZeRO papers"),
            use("mcore", 0.379, "Megatron-Core since 2024, DeepSeek (causal)", asked=True),
            use("sc21_hw", 0.54, "the Megatron-LM paper", hardware=True, applies=False),
            use("computed", 0.384, "this plan itself", hardware=True),
        ],
        "messages": [
            message("tp", "all_gather", 2560, 134_217_728, 0.388),
            message("tp", "all_gather", 32, 134_217_728, 0.388, error=0.04),
            message("dp", "reduce_scatter", 1, 17_600_000_000, 295, devices=4, link="network", source="nccl_model",
                    says="NCCL's own model; nothing measured was there to check it by", error=None),
        ],
        "limits": [
            PlanLimit(name="matmul", share=0.59, says="matrix products: 59% of the step", next_step="fp8"),
            PlanLimit(name="bubble", share=0.04, says="the pipeline's bubble: 4% of the step", next_step=""),
        ],
        "defaults": [
            PlanDefault(key="[training] dtype", value="bf16", source=""),
            PlanDefault(key="[training] gradient_bytes", value="4", source="as Megatron"),
            PlanDefault(key="[calibration]", value="shipped constants", source="not your machine"),
        ],
        "training": PlanTraining(tokens=15e12, steps=14_305_115, days=3248.8, device_hours=4_990_231),
        "notes": ["network_gb_per_s 400 is in gigabytes: an adapter of 400 Gb/s carries 50 GB/s"],
    }  # fmt: skip
    return Plan(**{**known, **changes})


def choice(label: str, period_ms: float, needed_gb: float, **keys: Any) -> PlanChoice:
    return PlanChoice(
        label=label,
        layout={"zero": keys.get("zero", 1)},
        micro_batch=keys.get("micro_batch", 1),
        recompute=keys.get("recompute", "none"),
        devices=64,
        period_ns=ms(period_ms),
        ns_per_token_device=period_ms * NS_PER_MS * 64 / 1_048_576,
        peak_bytes=round(needed_gb * GB),
        share=7_440 / period_ms,
        is_plan=keys.get("is_plan", False),
    )


def asked() -> Plan:
    """A plan that does not fit, with a search, saved memory and a run beside it."""
    best = choice("TP4·DP16", 17_100, 76.5, zero=3)
    none = Unknown("not even one sequence fits")
    saving: dict[str, Any] = {"micro_batch": 1, "recompute": "none", "period_ns": ms(19_600), "ns_per_token": 18_700.0}
    return training(
        memory=memory(60),
        says="63.6 + 6.4 GB margin of 60.0 GB a device",
        search=PlanSearch(
            considered=1248, divide=1152, fit=316, limit_bytes=60 * GB, best=best, near=None,
            plan=choice("TP8·PP2·DP4", 19_600, 70, is_plan=True),
            front=[
                best,
                choice("TP8·PP8", 20_500, 41.2, recompute="full 12/80"),
                choice("DP64", 29_000, 30.1, micro_batch=2),
            ],
        ),
        free_memory=[
            PlanSaving(saved="nothing", how="nothing: what is free already", saves_bytes=0, fits_at_most=0, bound=False,
                       micro_batch=none, recompute=none, period_ns=none, ns_per_token=none, change_share=none),
            PlanSaving(saved="activations", how='recompute = "full"', saves_bytes=round(21.9 * GB), fits_at_most=15,
                       bound=False, change_share=0.353, **saving),
            PlanSaving(saved="optimizer states", how="", saves_bytes=round(14.5 * GB), fits_at_most=1, bound=True,
                       change_share=0.0, **saving),
        ],
        against=PlanAgainst(
            paths=["traces/"], ranks=64, devices=64, units=10,
            planned_period_ns=ms(19_600), measured_period_ns=ms(23_000),
            measured_unit_ns=ms(23_100), error_share=-0.148, measured_tokens_per_s=45_590.3,
            planned_mfu=0.379, measured_mfu=0.323, planned_peak_bytes=round(62.7 * GB),
            measured_peak_bytes=round(65.1 * GB), notes=["the run is on A100, the plan on H100"],
            says="planned 19.6 s, measured 23.0 s: 1.17 times the plan",
            objects=[
                PlanBeside(object="compute", planned_ns=ms(14_904), measured_ns=ms(15_600), difference_ns=ms(696),
                           says="with the optimizer"),
                PlanBeside(object="collective", planned_ns=ms(4_696), measured_ns=ms(4_200), difference_ns=ms(-496),
                           says="with the bubble"),
                PlanBeside(object="host", planned_ns=0, measured_ns=ms(3_300), difference_ns=ms(3_300),
                           says="none in a plan"),
            ],
            collectives=[
                PlanBesideCollective(kind="all_gather", planned_count=2592, measured_count=2590.5, planned_bytes=348e9,
                                     measured_bytes=347e9, planned_ns=ms(1005), measured_ns=ms(1500)),
                PlanBesideCollective(kind="broadcast", planned_count=0, measured_count=1, planned_bytes=0,
                                     measured_bytes=Unknown("not said"), planned_ns=0, measured_ns=ms(2)),
            ],
        ),
    )  # fmt: skip


def serving() -> Plan:
    """A plan of serving alone."""
    times: dict[str, Any] = {"parts_ns": {}, "limits_ns": {}}
    return training(
        layout=None, memory=None, step=None, training=None, utilisation=[], messages=[], limits=[], notes=[],
        says="576 requests at once: 2,424 tokens/s on 8 devices",
        serving=PlanServing(
            says="", label="TP8", devices=8, prompt_tokens=2048, output_tokens=256, batch=576, fits=True,
            most_requests=576, weight_bytes=round(17.6 * GB), cache_bytes_per_token=40_960,
            request_cache_bytes=94_371_840, limit_bytes=80 * GB, cache_room_bytes=round(54.4 * GB),
            first_token_ns=ms(92.3),
            prefill=PlanPass(dur_ns=ms(92.3), low_ns=ms(89.1), high_ns=ms(95.5), limited_by="compute", **times),
            decode=PlanPass(dur_ns=ms(53.4), low_ns=ms(49.7), high_ns=ms(57), limited_by="cache", **times),
            tokens_per_s=2424, tokens_per_s_low=2369, tokens_per_s_high=2482, tokens_per_s_per_device=303,
            critical_batch=295.3, known_error="within 25 % of a published engine",
            curve=[PlanServingPoint(batch=1 << n, step_ns=ms(11 + n), tokens_per_s=83 * 1.9**n) for n in range(6)],
        ),
    )  # fmt: skip


def explained() -> Plan:
    """One figure, asked for by name."""
    figure = PlanFigure(
        name="MFU (mcore)", value=0.379, unit="share of peak", source="arXiv:2204.02311",
        formula="tokens_per_s*flops_per_token/(devices*peak_flops) = 5.35e+04*4.492e+11/(64*9.894e+14) = 0.379",
    )  # fmt: skip
    return training(figures=[figure])


SAMPLES: Final[dict[str, tuple[Callable[[], Plan], str]]] = {
    "training": (training, ""),
    "asked": (asked, ""),
    "serving": (serving, ""),
    "explained": (explained, "mfu"),
}
"""Name -> the plan, and which figures were asked for."""
