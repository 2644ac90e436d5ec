"""When each gradient of a backward pass was ready, and the buckets in which they were reduced.

thread    ├ AccumulateGrad ┤ ├ AccumulateGrad ─ hook: all_reduce ┤     a hook inside the last gradient's span
compute    ├─ kernels ─┤          ├─ kernels ─┤                        ready when the kernels launched so far have run
stream                                          ├── bucket ──┤

Torch names the accumulation of every gradient; DistributedDataParallel reduces a bucket from the hook of its last
gradient, within that gradient's span of the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from longpole.timeline.columns import NONE_ID, NONE_NS, Kind
from longpole.timeline.shapes import count_elements
from longpole.vocabulary.objects import COLLECTIVE_KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longpole.records.instances import Instances
    from longpole.timeline.timeline import Timeline

ACCUMULATE: Final = "torch::autograd::AccumulateGrad"
ENGINE: Final = "autograd::engine::evaluate_function: "
_ISSUE: Final = "c10d::allreduce_"
_ALL_REDUCE: Final = COLLECTIVE_KINDS.index("all_reduce")


class Bucket(NamedTuple):
    """One recorded reduction of gradients, in ns since the file's base time.

    Attributes:
        instance: Its place in the rank's Instances.
        gradients: How many gradients of the pass had been accumulated when it was issued.
        ready_ns: When its gradients were ready.
        start_ns, end_ns: When it ran, waiting for other ranks included.
        size_bytes: -1 where not known.
    """

    instance: int
    gradients: int
    ready_ns: int
    start_ns: int
    end_ns: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class GradientPass:
    """The backward pass of one unit, in ns since the file's base time.

    Attributes:
        unit: Name of the unit.
        start_ns: When its first operator began: on the device where there is one.
        ready_ns: `[N]` int64, ascending: when each gradient was ready.
        elements: `[N]` int64: of each, -1 where its shape was not recorded.
        buckets: In order of issue.
    """

    unit: str
    start_ns: int
    ready_ns: NDArray[np.int64]
    elements: NDArray[np.int64]
    buckets: tuple[Bucket, ...]

    @property
    def end_ns(self) -> int:
        """When the last gradient was ready."""
        return int(self.ready_ns[-1])

    @property
    def exposed_ns(self) -> int:
        """How long the last bucket ends after the last gradient was ready."""
        return max(max(bucket.end_ns for bucket in self.buckets) - self.end_ns, 0)


class UnitSpan(NamedTuple):
    """A unit of work on the host: its name, and from when until when."""

    name: str
    start_ns: int
    end_ns: int


def gradient_passes(timeline: Timeline, units: Sequence[UnitSpan], instances: Instances) -> list[GradientPass]:
    """Collect the backward passes whose gradients are reduced from hooks.

    Args:
        timeline: The record of one rank.
        units: Its units.
        instances: Its collectives.

    Returns:
        A pass for each unit that has both; none where torch's engine was not recorded.
    """
    host = timeline.host
    code = {name: number for number, name in enumerate(timeline.names)}
    spans = _rows(timeline, code.get(ENGINE + ACCUMULATE))
    rows = _rows(timeline, code.get(ACCUMULATE))
    if len(rows) == 0:
        rows = spans  # thinned traces keep the engine's spans only
    engine = [number for name, number in code.items() if name.startswith(ENGINE)]
    ran = _Ran(timeline, instances)
    passes = []
    for unit in units:
        hooks = _of(timeline, spans, unit)
        found = _buckets(timeline, instances, hooks, code.get(_ISSUE))
        if not found:
            continue
        track = _track_of(timeline, hooks, found[-1][1])
        mine = _of(timeline, rows, unit)
        mine = mine[host.track[mine] == track]
        mine = mine[np.argsort(host.end_ns[mine], kind="stable")]
        began_ns = _first_of_engine(timeline, engine, track, unit)
        passes.append(
            GradientPass(
                unit=unit.name,
                start_ns=ran.first_since(began_ns, track),
                ready_ns=np.maximum.accumulate(ran.by(host.end_ns[mine], track, began_ns)),
                elements=_elements(timeline, mine),
                buckets=tuple(
                    Bucket(
                        instance=instance,
                        gradients=max(int(np.searchsorted(host.start_ns[mine], issue_ns, side="right")), 1),
                        ready_ns=int(ran.by(np.array([issue_ns]), track, began_ns)[0]),
                        start_ns=int(instances.start_ns[instance]),
                        end_ns=int(instances.end_ns[instance]),
                        size_bytes=int(instances.column("bytes")[instance]),
                    )
                    for instance, issue_ns in found
                ),
            )
        )
    return passes


def _of(timeline: Timeline, rows: NDArray[np.int64], unit: UnitSpan) -> NDArray[np.int64]:
    """Return the rows that begin in a unit."""
    start_ns = timeline.host.start_ns[rows]
    return rows[(start_ns >= unit.start_ns) & (start_ns < unit.end_ns)]


def _track_of(timeline: Timeline, hooks: NDArray[np.int64], issue_ns: int) -> int:
    """Return the thread whose hook issued a bucket at a time."""
    host = timeline.host
    open_then = hooks[(host.start_ns[hooks] <= issue_ns) & (host.end_ns[hooks] >= issue_ns)]
    return int(host.track[open_then[-1]])


def _rows(timeline: Timeline, name: int | None) -> NDArray[np.int64]:
    """Return the host rows of a name that are operators."""
    host = timeline.host
    if name is None:
        return np.empty(0, np.int64)
    return np.flatnonzero((host.name == name) & (host.kind == Kind.OPERATOR)).astype(np.int64)


def _buckets(
    timeline: Timeline, instances: Instances, hooks: NDArray[np.int64], issue_name: int | None
) -> list[tuple[int, int]]:
    """Return (instance, when it was issued) of the all-reduces that hooks of gradients issued, in order.

    On devices the launch tells; on the host the k-th operation of the process is what the k-th call asked for.
    """
    host = timeline.host
    reduces = np.flatnonzero(instances.column("kind") == _ALL_REDUCE)
    issues = instances.column("issue_ns")[reduces]
    on_device = (instances.column("on_device")[reduces] > 0) & (issues != NONE_NS)
    if on_device.any():
        inside = on_device & _inside(issues, host.start_ns[hooks], host.end_ns[hooks])
        found = zip(reduces[inside].tolist(), issues[inside].tolist(), strict=True)
        return sorted(found, key=lambda pair: pair[1])
    calls = np.sort(host.start_ns[_rows(timeline, issue_name)])
    starts = instances.start_ns[reduces]
    missing = len(calls) - len(reduces)  # calls before the record's first operation, counted from its end
    return [
        (int(reduces[place - missing]), int(calls[place]))
        for place in range(max(missing, 0), len(calls))
        if calls[place] <= starts[place - missing]
        and _inside(calls[place : place + 1], host.start_ns[hooks], host.end_ns[hooks])[0]
    ]


def _inside(times_ns: NDArray[np.int64], starts_ns: NDArray[np.int64], ends_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which times lie in spans that do not overlap, sorted here."""
    if len(starts_ns) == 0:
        return np.zeros(len(times_ns), bool)
    order = np.argsort(starts_ns)
    place = np.searchsorted(starts_ns[order], times_ns, side="right") - 1
    within: NDArray[np.bool_] = (place >= 0) & (times_ns <= ends_ns[order][np.maximum(place, 0)])
    return within


def _first_of_engine(timeline: Timeline, engine: Sequence[int], track: int, unit: UnitSpan) -> int:
    """Return when the engine began its first operator of a unit on a thread."""
    host = timeline.host
    mine = np.isin(host.name, engine) & (host.track == track)
    starts = host.start_ns[mine & (host.start_ns >= unit.start_ns) & (host.start_ns < unit.end_ns)]
    return int(starts.min()) if len(starts) else unit.start_ns


def _elements(timeline: Timeline, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the elements of what each row takes in; a shape without dimensions is a single number."""
    found = []
    for row in rows.tolist():
        text = timeline.input_dims.at(row)
        elements = count_elements(text) if text is not None else None
        found.append(1 if text is not None and elements is None else -1 if elements is None else elements)
    return np.array(found, np.int64)


class _Ran:
    """Until when the device was busy with what a thread had launched; the host's own time where there is no device."""

    def __init__(self, timeline: Timeline, instances: Instances) -> None:
        device, host = timeline.device, timeline.host
        is_collective = np.zeros(len(device), bool)
        rows = instances.column("row")[instances.column("on_device") > 0]
        is_collective[rows] = True
        chosen = np.flatnonzero((device.launch != NONE_ID) & ~is_collective)
        launches = device.launch[chosen]
        order = np.argsort(host.start_ns[launches], kind="stable")
        self._launch_ns = host.start_ns[launches][order]
        self._track = host.track[launches][order]
        self._start_ns, self._end_ns = device.start_ns[chosen][order], device.end_ns[chosen][order]

    def by(self, times_ns: NDArray[np.int64], track: int, since_ns: int) -> NDArray[np.int64]:
        """Return when all that a thread had launched by some times had run, and never before those times.

        Args:
            times_ns: On the host.
            track: The thread.
            since_ns: Launches before it do not count.
        """
        mine = (self._track == track) & (self._launch_ns >= since_ns)
        if not mine.any():
            return times_ns.astype(np.int64)
        until_ns = np.maximum.accumulate(self._end_ns[mine])
        place = np.searchsorted(self._launch_ns[mine], times_ns, side="right") - 1
        return np.maximum(times_ns, np.where(place >= 0, until_ns[np.maximum(place, 0)], times_ns)).astype(np.int64)

    def first_since(self, since_ns: int, track: int) -> int:
        """Return when the first work launched by a thread since a time began; that time where there is none."""
        starts = self._start_ns[(self._track == track) & (self._launch_ns >= since_ns)]
        return int(starts[0]) if len(starts) else since_ns
