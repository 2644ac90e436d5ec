"""The fields of a trace event that Longpole reads, and how categories map to kinds of rows.

Every other field of an event is skipped by the decoder without becoming an object. Fields are typed `Any` on
purpose: exporters quote numbers, leave fields out and write null, and one odd event must not cost its chunk.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from longpole.timeline.columns import Kind


class EventArgs(msgspec.Struct, gc=False):
    """The `args` of an event, as far as they are used.

    Names by exporter: Kineto of 2021 writes `external id`, later ones `External id`; Ascend writes `Stream Id`,
    `Device Id` and `connection_id` (formats.md C.4).
    """

    correlation: Any = -1
    external_id: Any = msgspec.field(default=-1, name="External id")
    external_id_2021: Any = msgspec.field(default=None, name="external id")
    stream: Any = None
    device: Any = None
    bytes: Any = None
    input_dims: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input Dims")
    forward_thread: Any = msgspec.field(default=None, name="Fwd thread id")
    node: Any = msgspec.field(default=None, name="Sequence number")
    call_stack: Any = msgspec.field(default=None, name="Call stack")
    collective: Any = msgspec.field(default=None, name="Collective name")
    in_elements: Any = msgspec.field(default=None, name="In msg nelems")
    out_elements: Any = msgspec.field(default=None, name="Out msg nelems")
    group_size: Any = msgspec.field(default=None, name="Group size")
    dtype: Any = None
    group_name: Any = msgspec.field(default=None, name="Process Group Name")
    group_ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    group_description: Any = msgspec.field(default=None, name="Process Group Description")
    rank_start: Any = msgspec.field(default=None, name="Global rank start")
    rank_stride: Any = msgspec.field(default=None, name="Global rank stride")
    source_rank: Any = msgspec.field(default=None, name="Src Rank")
    target_rank: Any = msgspec.field(default=None, name="Dst Rank")
    sequence: Any = msgspec.field(default=None, name="Seq")
    comms_id: Any = msgspec.field(default=None, name="Comms Id")
    input_type: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input type")
    input_values: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Concrete Inputs")
    input_strides: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input Strides")
    occupancy: Any = msgspec.field(default=None, name="est. achieved occupancy %")
    name: Any = None
    labels: Any = None
    ascend_stream: Any = msgspec.field(default=None, name="Stream Id")
    ascend_task_type: Any = msgspec.field(default=None, name="Task Type")
    finished: Any = None
    size: Any = None
    waited_stream: Any = msgspec.field(default=None, name="wait_on_stream")
    event_record: Any = msgspec.field(default=None, name="wait_on_cuda_event_record_corr_id")


class MemoryArgs(EventArgs, gc=False):
    """The same, of stretches that hold memory events (formats.md B.3): no other trace pays for their fields.

    In 2021 there were no totals, and device types are PyTorch's (`c10/core/DeviceType.h`: CPU 0, CUDA 1, HIP 6).
    """

    allocated: Any = msgspec.field(default=None, name="Total Allocated")
    reserved: Any = msgspec.field(default=None, name="Total Reserved")
    changed: Any = msgspec.field(default=None, name="Bytes")
    memory_device: Any = msgspec.field(default=None, name="Device Id")
    memory_type: Any = msgspec.field(default=None, name="Device Type")


class Event(msgspec.Struct, gc=False):
    """One element of `traceEvents` whose times need no more digits than a double has."""

    ph: Any = None
    cat: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    id: Any = None
    args: EventArgs | None = None


class ExactEvent(msgspec.Struct, gc=False):
    """The same, with the times left as text, for epoch microseconds with a fraction."""

    ph: Any = None
    cat: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = msgspec.Raw()
    dur: msgspec.Raw = msgspec.Raw()
    id: Any = None
    args: EventArgs | None = None


class MemoryEvent(Event, gc=False):
    """An element of a stretch that holds memory events."""

    args: MemoryArgs | None = None


class ExactMemoryEvent(ExactEvent, gc=False):
    """The same, with the times left as text."""

    args: MemoryArgs | None = None


# Category, in lower case -> kind. Kineto's own list is ActivityType in libkineto; capitalised names are from 2021.
KIND_OF_CATEGORY: Final[dict[str, Kind]] = {
    "kernel": Kind.KERNEL,
    "concurrent_kernel": Kind.KERNEL,
    "mtia_ccp_events": Kind.KERNEL,
    "mtia_counters": Kind.OVERHEAD,
    "gpu_memcpy": Kind.COPY,
    "memcpy": Kind.COPY,
    "gpu_memset": Kind.MEMSET,
    "memset": Kind.MEMSET,
    "cuda_runtime": Kind.RUNTIME,
    "cuda_driver": Kind.RUNTIME,
    "runtime": Kind.RUNTIME,
    "driver": Kind.RUNTIME,
    "mtia_runtime": Kind.RUNTIME,
    "glow_runtime": Kind.RUNTIME,
    "xpu_runtime": Kind.RUNTIME,
    "xpu_driver": Kind.RUNTIME,
    "privateuse1_runtime": Kind.RUNTIME,
    "privateuse1_driver": Kind.RUNTIME,
    "hpu_op": Kind.RUNTIME,  # of Gaudi: what the host calls, in spite of its name
    "enqueue": Kind.RUNTIME,
    "dequeue": Kind.RUNTIME,
    "cpu_op": Kind.OPERATOR,
    "operator": Kind.OPERATOR,
    "user_annotation": Kind.ANNOTATION,
    "python_function": Kind.PYTHON,
    "cuda_sync": Kind.SYNC_ROW,
    "cuda_event": Kind.SYNC_ROW,
    "xpu_sync": Kind.SYNC_ROW,
    "gpu_user_annotation": Kind.DEVICE_ANNOTATION,
    "xpu_user_annotation": Kind.DEVICE_ANNOTATION,
    "overhead": Kind.OVERHEAD,
    "cuda_profiler_range": Kind.OVERHEAD,
    "trace": Kind.DEVICE_ANNOTATION,  # the span of a whole recording
    "collective_comm": Kind.OVERHEAD,
}


def kind_of_category(category: str) -> Kind | None:
    """Return the kind that a category stands for, None for one that is not known.

    The format allows several with commas between: the first known one counts.

    >>> kind_of_category("Kernel,gpu")
    <Kind.KERNEL: 1>
    """
    found = KIND_OF_CATEGORY.get(category.lower())
    if found is not None or not category:
        return found
    parts = (KIND_OF_CATEGORY.get(part.strip().lower()) for part in category[:_CATEGORY_MAX].split(","))
    return next((kind for kind in parts if kind is not None), None)


_CATEGORY_MAX: Final = 256
