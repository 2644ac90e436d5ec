"""Figures of what a run computes, copies and communicates; `figures` names them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from longpole.digest.rank_digest import UnitDigest
from longpole.digest.steady import real_units
from longpole.records.ledger import Unknown
from longpole.vocabulary.objects import COLLECTIVE_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.digest.rank_digest import RankDigest
    from longpole.digest.steady import Steady
    from longpole.records.collectives import CollectiveEntry, OverlapEntry, PipelineEntry
    from longpole.records.tables import KernelRow

__all__ = ["UnitDigest"]

SMALL_BYTES: Final = 1 << 20
"""A collective of at most this size is small (our choice: NCCL's time hardly depends on size below it)."""

_MATMUL: Final = re.compile(r"gemm|matmul|_mm_|cutlass|cublas|conv|winograd|tensorop|wgmma|nvjet", re.IGNORECASE)
_ATTENTION: Final = re.compile(r"flash|fmha|attention|sdpa", re.IGNORECASE)
_POINTWISE: Final = re.compile(
    r"elementwise|pointwise|vectorized|reduce_kernel|softmax|layer_?norm|rms_?norm|dropout|_poi_|_red_|_per_|"
    r"multi_tensor|adam",
    re.IGNORECASE,
)
_TRANSPOSE: Final = re.compile(
    r"transpose|nchwtonhwc|nhwctonchw|permute|contiguous|CatArrayBatched|im2col", re.IGNORECASE
)
_NARROW: Final = re.compile(r"bf16|bfloat16|f16|fp16|half|s16816|h16816|h884|fp8|e4m3|e5m2|int8|_i8|s8", re.IGNORECASE)
_WIDE: Final = re.compile(r"sgemm|f32f32|tf32|f32_|_f32|s1688|float|simt|ffma|dgemm", re.IGNORECASE)
_PAGEABLE: Final = re.compile(r"pageable", re.IGNORECASE)
_RESTARTS: Final = re.compile(r"dataloader\.py.*(__init__|_reset|_shutdown_workers)|start_workers")
_SAVING: Final = re.compile(r"save|checkpoint|ckpt|state_dict|serializ", re.IGNORECASE)
_LOGGING: Final = re.compile(r"log|print|metric|tensorboard|wandb|mlflow|summary", re.IGNORECASE)
_REDUCER: Final = re.compile(r"reducer::(mul_out|copy_bucket_to_grad|copy_grad_to_bucket)")


def collective_figures(entries: Sequence[CollectiveEntry], steady: Steady, all_ns: int) -> dict[str, Any]:
    """Return the figures of collectives.

    Args:
        entries: By kind, group and element type.
        steady: The units that their sums are over.
        all_ns: Time of the steady units of all rows.
    """
    exposed = dict.fromkeys(filter(None, COLLECTIVE_KINDS), 0)
    for entry in entries:
        if entry.kind in exposed:
            exposed[entry.kind] += entry.exposed_ns
    figures: dict[str, Any] = {
        f"collective.{kind}.exposed_share": time_ns / max(all_ns, 1) for kind, time_ns in exposed.items()
    }
    figures["collective.reducing_share"] = (exposed["all_reduce"] + exposed["reduce_scatter"]) / max(all_ns, 1)
    figures["collective.gathering_share"] = (exposed["all_gather"] + exposed["broadcast"]) / max(all_ns, 1)
    units = max(len(steady.completion) - len({name for name, _, _ in steady.left_out}), 1)
    figures["collective.kinds"] = sorted({entry.kind for entry in entries if entry.kind})
    figures["collective.count"] = sum(entry.count for entry in entries) / units
    figures["collective.small_count"] = max((small_count(entry) for entry in entries), default=0) / units
    top = costliest(entries)
    if top is None:
        figures |= {"collective.costliest": "", "collective.bound": "", "collective.has_model": False}
        return figures | dict.fromkeys(
            ("collective.mean_bytes", "collective.largest_bytes", "collective.group_size"), 0
        )
    sizes = [row.bytes for row in top.by_size]
    no_sizes = Unknown("the sizes of collectives were not recorded", ["sizes of collectives"])
    return figures | {
        "collective.costliest": top.kind,
        "collective.bound": top.bound,
        "collective.has_model": not isinstance(top.model, Unknown),
        "collective.mean_bytes": top.bytes // max(top.count, 1) if isinstance(top.bytes, int) else no_sizes,
        "collective.largest_bytes": max(sizes) if sizes else no_sizes,
        "collective.group_size": len(top.members) or Unknown("the group's members were not recorded", ["groups"]),
    }


def waiting_figures(entries: Sequence[CollectiveEntry], exposed_share: float, all_ns: int) -> dict[str, Any]:
    """Return how much of the exposed time of collectives is waiting for a later rank.

    Args:
        entries: By kind, group and element type.
        exposed_share: Of the unit.
        all_ns: Time of the steady units of all rows.
    """
    waiting_ns = 0
    for entry in entries:
        if isinstance(entry.skew_ns, Unknown) or entry.split != "known":
            why = Unknown("telling waiting from moving needs all members of a collective", ["traces of all ranks"])
            return {"collective.waiting_share": why, "collective.moving_share": why}
        # What is hidden hides waiting and moving alike.
        waiting_ns += round(entry.skew_ns * min(entry.exposed_ns / max(entry.duration_ns, 1), 1.0))
    waiting = min(waiting_ns / max(all_ns, 1), exposed_share)
    return {"collective.waiting_share": waiting, "collective.moving_share": exposed_share - waiting}


def costliest(entries: Iterable[CollectiveEntry]) -> CollectiveEntry | None:
    """Return the operations of one kind and group with the most exposed time; None where none is of a known kind."""
    known = [entry for entry in entries if entry.kind]
    return max(known, key=lambda entry: (entry.exposed_ns, entry.duration_ns), default=None)


def small_count(entry: CollectiveEntry) -> int:
    """Return how many operations of an entry are small."""
    return sum(row.count for row in entry.by_size if row.bytes <= SMALL_BYTES)


def pipeline_figures(pipeline: PipelineEntry | None, overlap: Sequence[OverlapEntry]) -> dict[str, Any]:
    """Return the figures of a pipeline, zeros where there is none, and of what overlaps."""
    slowed = [entry.slowdown["compute"] for entry in overlap if "compute" in entry.slowdown]
    known = [factor for factor in slowed if not isinstance(factor, Unknown)]
    missing = Unknown("no kernel ran both beside collectives and without them", ["units with and without overlap"])
    figures: dict[str, Any] = {"overlap.slowdown": max(known) if known else missing}
    if pipeline is None:
        return figures | {"pipeline.stages": 0, "pipeline.bubble_share": 0.0, "pipeline.imbalance": 0.0}
    return figures | {
        "pipeline.stages": len(pipeline.stages),
        "pipeline.bubble_share": pipeline.bubble_share,
        "pipeline.imbalance": pipeline.imbalance,
    }


def kernel_figures(digests: Sequence[RankDigest], units: list[list[UnitDigest]]) -> dict[str, Any]:
    """Return the figures of compute kernels.

    Args:
        digests: The ranks.
        units: Steady units of each row.
    """
    names = ("matmul", "pointwise", "full_precision", "transpose", "attention")
    if all(row.device == "cpu" for digest in digests for row in digest.rows):
        why = Unknown("no kernels of a device were recorded", ["device activity"])
        return {f"kernel.{name}_share": why for name in names} | {"kernel.count": why, "kernel.mean_ns": why}
    flat = [unit for row in units for unit in row]
    kernels = sum(unit.kernels for unit in flat)
    compute_ns = sum(unit.ledger.device.compute_ns for unit in flat)
    rows = [k for digest in digests for row in digest.rows for k in row.kernels if k.object == "compute"]
    all_ns = max(sum(row.sum_ns for row in rows), 1)
    products = [row for row in rows if _MATMUL.search(row.name) and not _ATTENTION.search(row.name)]
    told = [row for row in products if _NARROW.search(row.name) or _WIDE.search(row.name)]
    wide_ns = sum(row.sum_ns for row in told if not _NARROW.search(row.name))
    return {
        "kernel.count": kernels / max(len(flat), 1),
        "kernel.mean_ns": compute_ns / kernels if kernels else 0,
        "kernel.matmul_share": sum(row.sum_ns for row in products) / all_ns,
        "kernel.pointwise_share": _share_of(rows, _POINTWISE, all_ns),
        "kernel.transpose_share": _share_of(rows, _TRANSPOSE, all_ns),
        "kernel.attention_share": _share_of(rows, _ATTENTION, all_ns),
        "kernel.full_precision_share": wide_ns / max(sum(row.sum_ns for row in told), 1)
        if told
        else Unknown("the names of the matrix products do not tell their precision", ["element types of operators"]),
    }


def _share_of(rows: list[KernelRow], pattern: re.Pattern[str], all_ns: int) -> float:
    return sum(row.sum_ns for row in rows if pattern.search(row.name)) / all_ns


def imbalance(units: list[list[UnitDigest]]) -> float:
    """Return the busiest row's compute time in steady units over the mean, less 1."""
    means = [sum(unit.ledger.objects["compute"].exposed_ns for unit in row) / len(row) for row in units if row]
    mean = sum(means) / len(means) if means else 0.0
    return max(means) / mean - 1 if mean else 0.0


def batch_figures(digests: Sequence[RankDigest], units: list[list[UnitDigest]]) -> dict[str, Any]:
    """Return how much inputs differ, and what the loader is known to be."""
    elements = [unit.elements for row in units for unit in row]
    known = bool(elements) and min(elements) >= 0 and max(elements) > 0
    seen = any(unit.ledger.idle_ns.get("input") for row in units for unit in row) or any(
        "input" in digest.services_unknown for digest in digests
    )
    seen = seen or any(_is_positive(unit.ledger.objects["input"].service_ns) for row in units for unit in row)
    return {
        "batch.size_spread": 1 - min(elements) / max(elements)
        if known
        else Unknown("input shapes were not recorded", ["input shapes"]),
        "loader.seen": seen,
    }


def _is_positive(value: object) -> bool:
    return isinstance(value, int) and value > 0


def copy_figures(digests: Sequence[RankDigest]) -> dict[str, Any]:
    """Return the figures of copies to and from devices."""
    rows = [copy for digest in digests for row in digest.rows for copy in row.copies]
    units = max(sum(len(real_units(row.units)) for digest in digests for row in digest.rows), 1)
    inward = [copy for copy in rows if copy.direction == "htod"]
    inward_ns = sum(copy.sum_ns for copy in inward)
    pageable_ns = sum(copy.sum_ns for copy in inward if _PAGEABLE.search(copy.name))
    told = any(_PAGEABLE.search(copy.name) or "pinned" in copy.name.lower() for copy in inward)
    sizes = Unknown("no copy to the device was recorded", ["copies with their sizes"])
    return {
        "copy.pageable_share": pageable_ns / inward_ns
        if told and inward_ns
        else (Unknown("the copies' names do not tell pinned from pageable memory") if inward else 0.0),
        "copy.input_bytes": sum(copy.size_bytes for copy in inward) / units if inward else sizes,
        "copy.state_bytes": sum(copy.size_bytes for copy in rows if copy.object == "state") / units,
    }


def output_figures(digests: Sequence[RankDigest]) -> dict[str, Any]:
    """Return how long devices idle under activities that save or log, as shares of the units.

    One activity contains others of its kind, so the longest counts rather than their sum.
    """
    saving_ns = logging_ns = all_ns = 0
    for digest in digests:
        for row in digest.rows:
            all_ns += sum(unit.ledger.wall_ns for unit in real_units(row.units))
            saving_ns += max((a.idle_ns for a in row.activities if _SAVING.search(a.name)), default=0)
            logging_ns += max(
                (a.idle_ns for a in row.activities if _LOGGING.search(a.name) and not _SAVING.search(a.name)), default=0
            )
    return {
        "output.checkpoint_share": saving_ns / max(all_ns, 1),
        "output.logging_share": logging_ns / max(all_ns, 1),
    }


def once_figures(digests: Sequence[RankDigest], steady: Steady) -> dict[str, Any]:
    """Return what is paid before the units and in units that no mean counts, as shares of the record."""
    out = {(name, rank) for name, why, rank in steady.left_out if why != "not_separable"}
    artifact_ns = compile_ns = recorded_ns = 0
    for digest in digests:
        recorded_ns += digest.end_ns - digest.start_ns
        for unit in digest.rows[0].units:
            if unit.kind == "head" or (unit.name, None) in out or (unit.name, digest.rank) in out:
                artifact_ns += unit.ledger.objects["artifact"].exposed_ns
                compile_ns += unit.ledger.idle_ns["host.compile"]
    return {
        "artifact.once_share": artifact_ns / max(recorded_ns, 1),
        "compile.once_share": compile_ns / max(recorded_ns, 1),
    }


def host_figures(digests: Sequence[RankDigest], names: frozenset[str] | None, all_ns: int) -> dict[str, Any]:
    """Return the figures that names of host events tell.

    Args:
        digests: The ranks.
        names: All recorded names, None where they are not at hand.
        all_ns: Time of the steady units of all rows.
    """
    operators = [row for digest in digests for device in digest.rows for row in device.operators]
    copying_ns = sum(row.union_ns for row in operators if _REDUCER.search(row.name))
    if names is None:
        why = Unknown("the names of the record are not at hand")
        keys = ("loader.has_workers", "loader.restarts", "run.rows_with_stacks")
        return dict.fromkeys(keys, why) | {"reducer.copy_share": copying_ns / max(all_ns, 1)}
    stacks = any(".py(" in name for name in names)
    restarts = any(_RESTARTS.search(name) for name in names)
    workers: bool | Unknown = Unknown(
        "the loader's events do not say whether it has worker processes", ["number of loader workers"]
    )
    if any("_MultiProcessingDataLoaderIter" in name for name in names):
        workers = True
    elif any("_SingleProcessDataLoaderIter" in name for name in names):
        workers = False
    return {
        "loader.has_workers": workers,
        "loader.restarts": restarts
        if restarts or stacks
        else Unknown("without Python frames nothing tells when a loader starts", ["Python stacks or annotations"]),
        "run.rows_with_stacks": stacks,
        "reducer.copy_share": copying_ns / max(all_ns, 1),
    }
