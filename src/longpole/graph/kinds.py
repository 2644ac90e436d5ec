"""The kinds of edges as data: what each says, how sure it is, and whether its length is kept or a constant."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from longpole.units import NS_PER_US

GRADES: Final = ("recorded", "ordered", "inferred", "guess")
"""How sure an edge is, the surest first (DESIGN 3.6)."""


class PointKind(IntEnum):
    """What happens at a point."""

    CALL_START = 0
    CALL_END = 1
    MARK = 2
    DEVICE_START = 3
    DEVICE_END = 4
    COMPLETION = 5
    ARRIVED = 6  # the last member of a collective has arrived


class EdgeKind(IntEnum):
    """Why one point waits for another."""

    SECTION = 0
    FLOOR = 1
    SILENT = 2
    LAUNCH = 3
    LAUNCH_IN_ORDER = 4
    DURATION = 5
    STREAM = 6
    GRAPH_NODE = 7
    GRAPH_END = 8
    EVENT_RECORDED = 9
    EVENT_CONFIRMED = 10
    EVENT_UNTESTED = 11
    COINCIDENT = 12
    RETURN_RECORDED = 13
    RETURN = 14
    LAUNCH_QUEUE = 15
    HAND_OVER = 16
    IMPLIED_WAIT = 17
    ISSUE = 18
    MEMBER = 19
    ARRIVAL = 20
    TRANSFER = 21
    COMPLETION = 22
    WORKER = 23
    ALLOCATION = 24


@dataclass(frozen=True, slots=True)
class EdgeSpec:
    """One kind of edge.

    Attributes:
        name: In output.
        grade: One of GRADES.
        default_ns: Length where too few clean samples exist; None for edges whose recorded length is kept.
        fitted_with: The kind whose samples set the constant; kinds that mean one mechanism share it.
        reason: What a piece of the path that runs over such an edge means.
    """

    name: str
    grade: str
    default_ns: int | None
    fitted_with: EdgeKind | None
    reason: str


_K = EdgeKind
# Defaults: DESIGN 3.7 (launch 6, stream 1, return 8, wait 3 µs).
EDGES: Final[dict[EdgeKind, EdgeSpec]] = {
    _K.SECTION: EdgeSpec("host section", "ordered", None, None, "the thread went on"),
    _K.FLOOR: EdgeSpec("blocking call", "ordered", None, None, "the call itself"),
    _K.SILENT: EdgeSpec("silent thread", "ordered", None, None, "the thread waited for another"),
    _K.LAUNCH: EdgeSpec("launch", "recorded", 6 * NS_PER_US, _K.LAUNCH, "launched by this call"),
    _K.LAUNCH_IN_ORDER: EdgeSpec("launch by order", "ordered", 6 * NS_PER_US, _K.LAUNCH, "launched by this call"),
    _K.DURATION: EdgeSpec("device span", "recorded", None, None, "runs"),
    _K.STREAM: EdgeSpec("stream order", "ordered", NS_PER_US, _K.STREAM, "waits for the span before it on its stream"),
    _K.GRAPH_NODE: EdgeSpec("graph node", "ordered", None, None, "follows inside a captured graph"),
    _K.GRAPH_END: EdgeSpec("graph end", "ordered", NS_PER_US, _K.STREAM, "waits for the end of a captured graph"),
    _K.EVENT_RECORDED: EdgeSpec("event wait", "recorded", 3 * NS_PER_US, _K.EVENT_RECORDED, "waits for an event"),
    _K.EVENT_CONFIRMED: EdgeSpec(
        "event wait (confirmed)", "inferred", 3 * NS_PER_US, _K.EVENT_RECORDED, "waits for an event on another stream"
    ),
    _K.EVENT_UNTESTED: EdgeSpec(
        "event wait (untested)", "inferred", 3 * NS_PER_US, _K.EVENT_RECORDED, "may wait for an event on another stream"
    ),
    _K.COINCIDENT: EdgeSpec("coincident start", "guess", 3 * NS_PER_US, _K.EVENT_RECORDED, "starts as another ends"),
    _K.RETURN_RECORDED: EdgeSpec(
        "return (recorded)", "recorded", 8 * NS_PER_US, _K.RETURN, "the call waited for the device"
    ),
    _K.RETURN: EdgeSpec("return", "ordered", 8 * NS_PER_US, _K.RETURN, "the call waited for the device"),
    _K.LAUNCH_QUEUE: EdgeSpec("launch queue", "inferred", 8 * NS_PER_US, _K.RETURN, "the launch queue was full"),
    _K.HAND_OVER: EdgeSpec("hand-over", "inferred", None, None, "the thread waited for another thread"),
    _K.IMPLIED_WAIT: EdgeSpec("implied wait", "inferred", 8 * NS_PER_US, _K.RETURN, "the host waited for the device"),
    _K.ISSUE: EdgeSpec("issue", "ordered", None, None, "issued by this call"),
    _K.MEMBER: EdgeSpec("collective", "recorded", None, None, "waits and moves bytes; the two cannot be told apart"),
    _K.ARRIVAL: EdgeSpec("arrival", "recorded", None, None, "arrives at the collective"),
    _K.TRANSFER: EdgeSpec("transfer", "recorded", None, None, "moves bytes"),
    _K.COMPLETION: EdgeSpec("completion", "recorded", None, None, "ends the unit"),
    _K.ALLOCATION: EdgeSpec("allocation", "inferred", None, None, "the allocator waited for the device"),
    _K.WORKER: EdgeSpec("loader worker", "recorded", None, None, "waits for a loader worker"),
}
"""Every kind of edge."""

KIND_NAMES: Final = tuple(EDGES[kind].name for kind in EdgeKind)
GRADE_OF_KIND: Final = tuple(GRADES.index(EDGES[kind].grade) for kind in EdgeKind)
CONSTANT_KINDS: Final = tuple(int(kind) for kind in EdgeKind if EDGES[kind].default_ns is not None)
CONTROL_GROUPS: Final[dict[str, tuple[EdgeKind, ...]]] = {
    "launch": (_K.LAUNCH, _K.LAUNCH_IN_ORDER),
    "stream order": (_K.STREAM, _K.GRAPH_END),
    "event wait": (_K.EVENT_RECORDED, _K.EVENT_CONFIRMED, _K.EVENT_UNTESTED),
    "coincident start": (_K.COINCIDENT,),
    "blocking call": (_K.RETURN_RECORDED, _K.RETURN),
    "launch queue": (_K.LAUNCH_QUEUE,),
    "hand-over": (_K.HAND_OVER,),
    "implied wait": (_K.IMPLIED_WAIT,),
    "allocation": (_K.ALLOCATION,),
    "issue": (_K.ISSUE,),
    "arrival": (_K.ARRIVAL,),
}
"""Kinds that the control law deletes together (DESIGN 3.7)."""
