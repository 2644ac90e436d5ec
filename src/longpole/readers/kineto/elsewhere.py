"""Device rows of exporters other than Kineto: told by the process, the thread, or the device and stream they name.

JAX (xprof)            process "/device:GPU:0", thread "Stream #14(Compute)"; on a TPU the thread "XLA Ops"
PyTorch before Kineto  process "CUDA functions"
anything else          a category that is not known, and both `device` and `stream` among the arguments
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from longpole.readers.kineto.event import kind_of_category
from longpole.readers.spelling import normal_id
from longpole.timeline.columns import DEVICE_KINDS, Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.readers.kineto.raw import RawTrace

_DEVICE_PROCESS: Final = re.compile(r"^/device:(GPU|TPU):(\d{1,4})\b", re.IGNORECASE)
_STREAM_THREAD: Final = re.compile(r"^stream #\d", re.IGNORECASE)
_OPERATION_THREAD: Final = re.compile(r"^(?:async )?xla ops$", re.IGNORECASE)
_BEFORE_KINETO: Final = {"cuda functions": Kind.KERNEL, "cpu functions": Kind.OPERATOR}
_COPY: Final = re.compile(r"^(?:gpu_?|cuda_?|hip_?)?memcpy|^copy(?:host|device)to", re.IGNORECASE)
_MEMSET: Final = re.compile(r"^(?:gpu_?|cuda_?|hip_?)?memset", re.IGNORECASE)


def thread_kinds(raw: RawTrace) -> dict[int, Kind]:
    """Return the kinds of rows without a category, by their thread's code, where process and thread tell."""
    device_pids = device_processes(raw)
    names = {
        (normal_id(pid), normal_id(tid)): value for _, what, pid, tid, value in raw.metadata if what == "thread_name"
    }
    with_streams = {pid for (pid, _), name in names.items() if pid in device_pids and _STREAM_THREAD.match(name)}
    kinds: dict[int, Kind] = {}
    for code, (pid, tid) in enumerate(raw.tracks):
        if isinstance(pid, str) and pid.lower() in _BEFORE_KINETO:
            kinds[code] = _BEFORE_KINETO[pid.lower()]
        elif pid in device_pids:
            works = _STREAM_THREAD if pid in with_streams else _OPERATION_THREAD
            kinds[code] = Kind.KERNEL if works.match(names.get((pid, tid), "")) else Kind.DEVICE_ANNOTATION
    return kinds


def device_processes(raw: RawTrace) -> dict[Any, tuple[str, int]]:
    """Return the processes that stand for devices: process id -> ("gpu" or "tpu", number)."""
    found: dict[Any, tuple[str, int]] = {}
    for _, what, pid, _, value in raw.metadata:
        named = _DEVICE_PROCESS.match(value) if what == "process_name" else None
        if named:
            found[normal_id(pid)] = (named[1].lower(), int(named[2]))
    return found


def kind_on_device(name: str) -> Kind:
    """Tell a kernel from a copy and a memset by its name."""
    if _COPY.match(name):
        return Kind.COPY
    return Kind.MEMSET if _MEMSET.match(name) else Kind.KERNEL


def claim_unknown(raw: RawTrace, kind: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Take rows for device work whose category is not known, and which name both a device and a stream.

    Args:
        raw: The file.
        kind: `[N]` uint8: kinds of its spans; changed for these rows.

    Returns:
        Their rows, ascending.
    """
    having = raw.device.get("row", np.empty(0, np.int64))
    if len(having) == 0:
        return having
    placed = (raw.device["device"] >= 0) & (raw.device["stream"] >= 0)
    rows: NDArray[np.int64] = having[placed & (kind[having] == Kind.OTHER)]
    for row in rows.tolist():
        kind[row] = kind_on_device(raw.names[int(raw.span["name"][row])])
    return rows


def device_type(raw: RawTrace, kind: NDArray[np.uint8]) -> str:
    """Return how frameworks call the devices of a file: by its categories, else by its processes."""
    seen = {category.lower() for category in raw.categories}
    for begin, called in (("mtia", "mtia"), ("xpu", "xpu"), ("hpu", "hpu")):
        if any(category.startswith(begin) for category in seen):
            return called
    if any(kind_of_category(category) in DEVICE_KINDS for category in seen):
        return "cuda"
    if any(category.startswith(("cuda", "gpu")) for category in seen):
        return "cuda"
    types = {called for called, _ in device_processes(raw).values()}
    if types:
        return "tpu" if "tpu" in types else "cuda"
    on_device = np.isin(kind, [int(one) for one in DEVICE_KINDS])
    tracks = np.unique(raw.span["track"][on_device]).tolist()
    is_old = any(str(raw.tracks[track][0]).lower() in _BEFORE_KINETO for track in tracks)
    categories = np.unique(raw.span["category"][on_device]).tolist()
    is_npu = not is_old and (not categories or any(not raw.categories[code] for code in categories))
    return "npu" if is_npu else "cuda"
