"""Collectives of a rank in a few words each, for the tests of what compares ranks. Times are microseconds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.ranks.clocks import Clock, RankTimes
from longpole.records.instances import COLUMNS, RECEIVE, SEND, Group, Instances
from longpole.timeline.columns import NONE_NS
from longpole.vocabulary.objects import COLLECTIVE_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WORLD: Final = 0
UNITS: Final = ("head", "step 0", "step 1", "step 2", "tail")


@dataclass(frozen=True)
class Op:
    """One operation of one rank; `group` is a place in the table's groups, -1 for none."""

    start: float
    end: float
    kind: str = "all_reduce"
    group: int = WORLD
    sequence: int = -1
    comms_id: int = -1
    bytes: int = 1 << 20
    unit: int = 1
    peer: int = -1
    direction: int = 0
    on_device: bool = True
    issued: bool = True
    stream: int = 7
    exposed: float | None = None


def send(start: float, end: float, to: int, **rest: int) -> Op:
    return replace(Op(start, end, "send_recv", peer=to, direction=SEND), **rest)  # type: ignore[arg-type]


def receive(start: float, end: float, source: int, **rest: int) -> Op:
    return replace(Op(start, end, "send_recv", peer=source, direction=RECEIVE), **rest)  # type: ignore[arg-type]


def table(*ops: Op, groups: Sequence[Group] = ()) -> Instances:
    """Store operations as one rank's table."""
    ordered = sorted(ops, key=lambda op: (op.start, op.end))
    columns = {name: [] for name in COLUMNS}  # type: dict[str, list[int]]
    for row, op in enumerate(ordered):
        values = {
            "start_ns": round(op.start * 1000),
            "end_ns": round(op.end * 1000),
            "issue_ns": round(op.start * 1000) - 5 if op.issued and op.on_device else NONE_NS,
            "row": row,
            "on_device": int(op.on_device),
            "kind": COLLECTIVE_KINDS.index(op.kind),
            "group": op.group if groups else -1,
            "sequence": op.sequence,
            "comms_id": op.comms_id,
            "is_p2p": int(op.kind == "send_recv"),
            "peer": op.peer,
            "bytes": op.bytes,
            "dtype": 0,
            "stream": op.stream,
            "unit": op.unit,
            "exposed_ns": round((op.end - op.start if op.exposed is None else op.exposed) * 1000),
            "direction": op.direction,
            "stage": 1,
        }
        for name, value in values.items():
            columns[name].append(value)
    arrays = {name: np.array(values, np.int64) for name, values in columns.items()}
    return Instances.from_columns(groups=list(groups), dtypes=["Float"], **arrays)


def world(n: int, name: str = "0") -> list[Group]:
    """The one group of all ranks."""
    return [Group(name, "default_pg", list(range(n)), n)]


def moved(instances: Instances, by_ns: int, drift: float = 0.0) -> Instances:
    """The same operations on a clock that shows another time, and goes at another speed around time 0."""
    columns = {name: instances.column(name).copy() for name in COLUMNS}
    for name in ("start_ns", "end_ns", "issue_ns"):
        known = columns[name] != NONE_NS
        columns[name][known] += by_ns + np.rint(drift * columns[name][known]).astype(np.int64)
    return Instances.from_columns(groups=instances.groups, dtypes=instances.dtypes, **columns)


def exact_clocks(ranks: Sequence[int], uncertainty_ns: int | None = 0) -> dict[int, Clock]:
    """Clocks that all show the run's time."""
    return {rank: Clock(rank, 0, uncertainty_ns=uncertainty_ns, method="base_time") for rank in ranks}


def times_of(
    instances: Mapping[int, Instances], *, base_ns: int | None = 0, hosts: Mapping[int, str] | None = None
) -> dict[int, RankTimes]:
    """What the ranks say of their clocks."""
    return {
        rank: RankTimes(base_ns, int(mine.start_ns.min()), int(mine.end_ns.max()), (hosts or {}).get(rank, ""))
        for rank, mine in instances.items()
    }
