"""The words of a verdict: parts of a unit, and figures before and after in one unit of measure."""

from __future__ import annotations

from typing import Final

from longpole.units import NS_PER_MS, NS_PER_S, NS_PER_US

_OBJECTS: Final = {
    "input": "the input stage",
    "artifact": "loading artifacts",
    "state": "moving state",
    "output": "writing output",
    "compute": "compute",
    "collective": "exposed communication",
    "host": "the host's part",
    "unknown": "time that nothing explains",
}
_IDLE: Final = {
    "input": "idle time under input",
    "artifact": "idle time under loading",
    "state": "idle time under moved state",
    "output": "idle time under output",
    "collective": "idle time under communicators being created",
    "host.gc": "garbage collection",
    "host.alloc": "allocation",
    "host.compile": "compilation",
    "host.sync": "waiting of the host for the device",
    "host.dispatch": "dispatch before launches",
    "host.python": "Python between operators",
    "launch_call": "launch calls",
    "launch_latency": "launch latency",
    "kernel_gap": "gaps between kernels",
    "device.unexplained": "idle time that nothing explains",
    "unlinked": "idle time without a recorded launch",
}
_KINDS: Final = {
    "all_reduce": "the all-reduce",
    "all_gather": "the all-gather",
    "reduce_scatter": "the reduce-scatter",
    "all_to_all": "the all-to-all",
    "broadcast": "the broadcast",
    "reduce": "the reduce",
    "gather": "the gather",
    "scatter": "the scatter",
    "send_recv": "sending and receiving",
    "barrier": "the barrier",
    "dispatch": "the dispatch of tokens",
    "combine": "the combination of tokens",
    "": "communication of unknown kind",
}
_STEPS: Final = ((NS_PER_S, "s"), (NS_PER_MS, "ms"), (NS_PER_US, "µs"), (1, "ns"))


def part_noun(part: str) -> str:
    """Return a part as a person says it.

    >>> part_noun("input"), part_noun("stage:backward"), part_noun("collective:all_reduce")
    ('the input stage', 'the backward stage', 'the all-reduce')
    """
    prefix, colon, name = part.partition(":")
    if not colon:
        return _OBJECTS.get(part, part)
    if prefix == "stage":
        return f"the {name} stage"
    if prefix == "idle":
        return _IDLE.get(name, name)
    if prefix == "waiting":
        return f"waiting in {_KINDS.get(name, name)}"
    return _KINDS.get(name, name)


def where_to(part: str) -> str:
    """Return a part as something that a wait moves to.

    >>> where_to("collective"), where_to("idle:host.python"), where_to("host")
    ('communication', 'the host: Python between operators', 'the host')
    """
    if part.startswith("idle:"):
        return f"the host: {part_noun(part)}"
    return {"collective": "communication", "host": "the host"}.get(part, part_noun(part))


def span_of(before_ns: float, after_ns: float) -> str:
    """Write two times in the unit that suits the larger one.

    >>> span_of(37_000_000, 9_000_000), span_of(1_250_000, 0)
    ('from 37 to 9 ms', 'from 1.25 to 0 ms')
    """
    largest = max(abs(before_ns), abs(after_ns))
    step, unit = next(((step, unit) for step, unit in _STEPS if largest >= step), (1, "ns"))
    return f"from {_plain(before_ns / step)} to {_plain(after_ns / step)} {unit}"


def _plain(value: float) -> str:
    """Write three significant figures, without zeros that say nothing."""
    whole = len(str(int(abs(value))))
    text = f"{value:.{max(3 - whole, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
