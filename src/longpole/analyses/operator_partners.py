"""Which other call tells what a call's own shapes do not: the gradient that comes back, the call around it, one inside.

Autograd numbers the nodes of its graph thread by thread. An operator is recorded with the number that the next node
will get, the node's gradient operator with the node's own. So of the operators of a number the last one made the node,
if their names fit, and the gradient has the shape of the operator's result:

    number         7          7            7         8
    forward    ├ reshape ┤ ├ cat ┤    ├─ cat ─┤   ├ relu ┤
                                          └────────────────────┐
    backward                              ├ ReluBackward 8 ┤ ├ CatBackward 7 ┤

Where more than one thread has operators of a number and a name, nothing is joined: numbers are the threads' own.

Look-ups in tables of embeddings are recorded without numbers, their gradients with them. Nodes are made in the order
of the calls, so the n-th look-up goes with the n-th number, if there are as many and each gradient follows its look-up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from longpole.costs.operator_work.call import parse_call
from longpole.costs.operator_work.count import AROUND, GRADIENT_OF, INSIDE, NODES_OF
from longpole.timeline.columns import Kind

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from longpole.analyses.threads import Threads
    from longpole.costs.operator_work.call import Tensor
    from longpole.timeline.timeline import Timeline

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Partners:
    """The partners that were found.

    Attributes:
        row: `[M]` int64, ascending: host rows of calls.
        partner: `[M]` int64: host row of each one's partner.
    """

    row: Ints
    partner: Ints

    def of(self, rows: Ints) -> Ints:
        """Return the partners of host rows, -1 for those without one: `[N]` int64."""
        if len(self.row) == 0:
            return np.full(len(rows), -1, np.int64)
        place = np.minimum(np.searchsorted(self.row, rows), len(self.row) - 1)
        return np.where(self.row[place] == rows, self.partner[place], -1)


def find_partners(timeline: Timeline, threads: Threads) -> Partners:
    """Find the partners of all calls that are counted with one.

    Args:
        timeline: The record.
        threads: What its threads did.
    """
    found = _gradients(timeline) | _look_ups(timeline) | _around(timeline, threads) | _inside(timeline)
    rows = sorted(found)
    return Partners(np.array(rows, np.int64), np.array([found[row] for row in rows], np.int64))


def _rows_named(timeline: Timeline, names: Collection[str]) -> dict[str, Ints]:
    """Return the host rows of operators of each name that occurs and has shapes, in order."""
    codes = {name: code for code, name in enumerate(timeline.names) if name in names}
    shaped = timeline.input_dims.row
    if not codes or len(shaped) == 0:
        return {}
    own = shaped[timeline.host.kind[shaped] == Kind.OPERATOR]
    found = {name: own[timeline.host.name[own] == code] for name, code in codes.items()}
    return {name: rows for name, rows in found.items() if len(rows)}


def _numbers(timeline: Timeline, rows: Ints) -> Ints:
    """Return the number that autograd had for each row's call, -1 where none was recorded."""
    texts = np.array([*(int(text) if text.isdigit() else -1 for text in timeline.sequences.texts), -1], np.int64)
    return texts[timeline.sequences.codes(rows)]


def _gradients(timeline: Timeline) -> dict[int, int]:
    """Return operator -> gradient operator, by the number of the node."""
    operators = _rows_named(timeline, NODES_OF)
    nodes = _nodes(timeline) if operators else {}
    found: dict[int, int] = {}
    host = timeline.host
    for name, of_name in operators.items():
        rows = of_name[~np.isin(of_name, timeline.backward)]
        number = _numbers(timeline, rows)
        order = np.lexsort((rows, number))
        values, first = np.unique(number[order], return_index=True)
        last = np.append(first[1:], len(order)) - 1
        for one, low, high in zip(
            values.tolist(), rows[order[first]].tolist(), rows[order[last]].tolist(), strict=True
        ):
            kinds = [nodes[key] for base in NODES_OF[name] if (key := (base, one)) in nodes and one >= 0]
            if len(kinds) != 1 or host.track[low] != host.track[high] or kinds[0] < 0:
                continue
            if host.start_ns[kinds[0]] >= host.end_ns[high]:
                found[high] = kinds[0]
    return found


def _nodes(timeline: Timeline) -> dict[tuple[str, int], int]:
    """Return (name without its version, number) -> gradient operator; -1 where several differ in their shapes."""
    bases = {base for names in NODES_OF.values() for base in names}
    names = {name for name in timeline.names if name.rstrip("0123456789") in bases}
    found: dict[tuple[str, int], int] = {}
    for name, rows in _rows_named(timeline, names).items():
        shape = timeline.input_dims.codes(rows)
        for row, number, code in zip(rows.tolist(), _numbers(timeline, rows).tolist(), shape.tolist(), strict=True):
            key = (name.rstrip("0123456789"), number)
            before = found.setdefault(key, row)
            if before >= 0 and timeline.input_dims.codes(np.array([before]))[0] != code:
                found[key] = -1
    return found


def _look_ups(timeline: Timeline) -> dict[int, int]:
    """Return look-up -> gradient operator, and back."""
    gradients = _rows_named(timeline, GRADIENT_OF)
    look_ups = _rows_named(timeline, set(GRADIENT_OF.values()))
    found: dict[int, int] = {}
    host = timeline.host
    for look_up, calls in look_ups.items():
        nodes = [rows for name, rows in gradients.items() if GRADIENT_OF[name] == look_up]
        back = np.concatenate(nodes) if nodes else np.empty(0, np.int64)
        number = _numbers(timeline, back)
        if len(back) != len(calls) or len(np.unique(number[number >= 0])) != len(back):
            continue
        back = back[np.argsort(number)]
        if len(np.unique(host.track[calls])) != 1 or (host.start_ns[back] < host.end_ns[calls]).any():
            continue
        found |= dict(zip(calls.tolist(), back.tolist(), strict=True))
        found |= dict(zip(back.tolist(), calls.tolist(), strict=True))
    return found


def _around(timeline: Timeline, threads: Threads) -> dict[int, int]:
    """Return operator -> the one that it lies in."""
    found: dict[int, int] = {}
    codes = {name: code for code, name in enumerate(timeline.names)}
    for name, rows in _rows_named(timeline, AROUND).items():
        wanted = codes.get(AROUND[name], -1)
        for row in rows.tolist():
            cover = threads.cover(int(timeline.host.track[row]))
            at = int(cover.parent[row - cover.first_row])
            if at >= 0 and timeline.host.name[at + cover.first_row] == wanted:
                found[row] = at + cover.first_row
    return found


def _inside(timeline: Timeline) -> dict[int, int]:
    """Return operator -> the first one in it of the name that tells, on a tensor like its own first one."""
    found: dict[int, int] = {}
    calls = _rows_named(timeline, INSIDE)
    tellers = _rows_named(timeline, {INSIDE[name] for name in calls})
    host = timeline.host
    for name, rows in calls.items():
        inner = tellers.get(INSIDE[name], np.empty(0, np.int64))
        for row in rows.tolist():
            own = _first_tensor(timeline, row)
            for at in inner[np.searchsorted(inner, row) :].tolist():
                if host.track[at] != host.track[row] or host.start_ns[at] >= host.end_ns[row]:
                    break
                if own is not None and _first_tensor(timeline, at) == own:
                    found[row] = at
                    break
    return found


def _first_tensor(timeline: Timeline, row: int) -> Tensor | None:
    dims, types = timeline.input_dims.at(row), timeline.input_types.at(row)
    call = parse_call(timeline.names[int(timeline.host.name[row])], dims or "", types or "")
    return call.tensor(0) if call is not None else None
