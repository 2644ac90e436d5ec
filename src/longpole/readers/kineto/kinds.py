"""What kind of row each span is: from its category, else from the row it stands on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from longpole.readers.kineto.elsewhere import kind_on_device, thread_kinds
from longpole.readers.kineto.event import kind_of_category
from longpole.readers.spelling import normal_id
from longpole.timeline.columns import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.readers.kineto.raw import RawTrace

STEP: Final = re.compile(r"ProfilerStep[#*]")
_HCCL_OPERATION: Final = re.compile(r"^hcom_", re.IGNORECASE)
_COPY_TASK: Final = re.compile(r"MEMCPY|SDMA|PCIE_DMA", re.IGNORECASE)
_WAIT_TASK: Final = re.compile(r"EVENT|NOTIFY|WAIT|RECORD|PROFIL|PLACE_HOLDER|MODEL_MAINTAIN", re.IGNORECASE)


def row_kinds(raw: RawTrace) -> NDArray[np.uint8]:
    """Return `[N]` kinds of all spans of a file.

    Kineto writes a category; in 2021 step annotations were operators. Ascend's exporter writes none for device rows:
    there the process's name tells, and without names a task type (formats.md). So do others (`elsewhere.py`).
    """
    by_category = [kind_of_category(category) or Kind.OTHER for category in raw.categories]
    kind = np.array(by_category or [Kind.OTHER], np.uint8)[raw.span["category"]]
    steps = [code for code, name in enumerate(raw.names) if STEP.match(name)]
    if steps:
        is_step = np.isin(raw.span["name"], steps) & (kind == Kind.OPERATOR)
        kind[is_step] = Kind.ANNOTATION
    bare = [code for code, category in enumerate(raw.categories) if not category]
    if bare:
        _kinds_without_category(raw, kind, np.flatnonzero(np.isin(raw.span["category"], bare)))
    return kind


def _kinds_without_category(raw: RawTrace, kind: NDArray[np.uint8], rows: NDArray[np.intp]) -> None:
    processes, threads = _process_kinds(raw), thread_kinds(raw)
    task_type = _task_types(raw)
    operations = {code for code, name in enumerate(raw.names) if _HCCL_OPERATION.match(name)}
    collective_pids = {
        raw.tracks[track][0]
        for track, name in zip(raw.span["track"][rows].tolist(), raw.span["name"][rows].tolist(), strict=True)
        if name in operations
    }
    for row, track, name in zip(
        rows.tolist(), raw.span["track"][rows].tolist(), raw.span["name"][rows].tolist(), strict=True
    ):
        pid = raw.tracks[track][0]
        if name in operations:
            kind[row] = Kind.KERNEL
        elif pid in collective_pids:
            kind[row] = Kind.DEVICE_TASK
        elif row in task_type:
            kind[row] = _task_kind(task_type[row])
        elif track in threads:
            of_thread = threads[track]
            kind[row] = kind_on_device(raw.names[name]) if of_thread == Kind.KERNEL else of_thread
        else:
            kind[row] = processes.get(pid, Kind.OTHER)


def _task_types(raw: RawTrace) -> dict[int, str]:
    if "task_type" not in raw.sparse:
        return {}
    rows, codes = raw.sparse["task_type"]
    return {row: raw.texts[code] for row, code in zip(rows.tolist(), codes.tolist(), strict=True)}


def _task_kind(task_type: str) -> Kind:
    if _WAIT_TASK.search(task_type):
        return Kind.SYNC_ROW
    return Kind.COPY if _COPY_TASK.search(task_type) else Kind.KERNEL


def _process_kinds(raw: RawTrace) -> dict[Any, Kind]:
    """Map a process to the kind of its rows, from its name."""
    kinds: dict[Any, Kind] = {}
    for _, what, pid, _, value in raw.metadata:
        if what != "process_name":
            continue
        name = value.lower()
        if name == "ascend hardware":
            kinds[normal_id(pid)] = Kind.KERNEL
        elif name == "cann":
            kinds[normal_id(pid)] = Kind.RUNTIME
        elif name in ("overlap analysis", "ai core freq", "npu_mem", "hbm", "llc", "pcie", "hccs", "stars soc info"):
            kinds[normal_id(pid)] = Kind.DEVICE_ANNOTATION
    return kinds
