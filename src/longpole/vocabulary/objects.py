"""The closed lists of the design: objects, idle reasons, stages, and what an idle reason is charged to."""

from __future__ import annotations

from typing import Final

from longpole.errors import InvariantError

OBJECTS: Final = ("compute", "collective", "input", "artifact", "state", "output", "host", "unknown")
"""What time is spent on (DESIGN 2), in the order of REPORT-JSON."""

MOVED_OBJECTS: Final = ("input", "artifact", "state", "output")
"""The objects that a copy can carry, kept apart by their life cycles (DESIGN 2)."""

ACTIVITY_OBJECTS: Final = ("input", "artifact", "state", "output", "collective")
"""The objects that an activity of the host can be for (DESIGN 3.4)."""

IDLE_REASONS: Final = (
    "input",
    "artifact",
    "state",
    "output",
    "collective",
    "host.gc",
    "host.alloc",
    "host.compile",
    "host.sync",
    "host.dispatch",
    "host.python",
    "launch_call",
    "launch_latency",
    "kernel_gap",
    "device.unexplained",
    "unlinked",
)
"""Why a device ran nothing (DESIGN 3.4); the keys of `idle_ns`, in the order of REPORT-JSON."""

STAGES: Final = ("input", "forward", "backward", "optimizer", "other")
"""Where in a training step an instant lies (DESIGN 2)."""

SERVING_STAGES: Final = ("queue", "prefill", "handoff", "decode", "stream")
"""Where in a request an instant lies (DESIGN 2)."""

POSTTRAINING_STAGES: Final = ("rollout", "reward", "reference", "advantage", "update", "refresh")
"""Where in a post-training iteration an instant lies (DESIGN 2)."""

COLLECTIVE_KINDS: Final = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "send_recv",
    "barrier",
    "dispatch",
    "combine",
    "",
)
"""What a collective does; the empty string where the name does not say."""

CALLS: Final = (
    "gc",
    "alloc",
    "free",
    "compile",
    "sync",
    "launch",
    "graph_launch",
    "copy",
    "memset",
    "event_record",
    "stream_wait",
    "query",
    "",
)
"""What a call of the host does; the empty string for one that only dispatches."""

COPY_DIRECTIONS: Final = ("htod", "dtoh", "dtod", "ptop", "htoh", "memset", "unknown")
"""Which way bytes move: host, device, and `ptop` from one device to another."""

STEP_KINDS: Final = ("step", "request", "iteration", "engine")
"""What a marker of the unit of work counts."""

_CHARGED_TO_HOST: Final = ("launch_call", "launch_latency", "kernel_gap")
_CHARGED_TO_UNKNOWN: Final = ("device.unexplained", "unlinked")


def charged_to(reason: str) -> str:
    """Return the object that idle time of one reason is charged to.

    Source: DESIGN 3.4, last paragraph: `host.*`, `launch_call`, `launch_latency` and `kernel_gap` to `host`;
    `device.unexplained` and `unlinked` to `unknown`; the rest to the object of that name.

    Args:
        reason: One of `IDLE_REASONS`.

    Returns:
        One of `OBJECTS`.

    Raises:
        InvariantError: No idle reason has that name.

    >>> charged_to("host.gc"), charged_to("unlinked"), charged_to("input")
    ('host', 'unknown', 'input')
    """
    if reason not in IDLE_REASONS:
        msg = f"expected one of the idle reasons {', '.join(IDLE_REASONS)}; found {reason!r}"
        raise InvariantError(msg)
    if reason.startswith("host.") or reason in _CHARGED_TO_HOST:
        return "host"
    return "unknown" if reason in _CHARGED_TO_UNKNOWN else reason
