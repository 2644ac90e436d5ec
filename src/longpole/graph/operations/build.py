"""The graph of a job's operations: one point for each end, one for each instance's last arrival, one for each step.

    end of what came before ─ 0 ──▶ last arrival ─ transfer ──▶ end of each member
    end of what came before ─ duration ──▶ end of a computation

Nothing but work is kept: gaps in which a worker did nothing are not in the graph, so what they cost shows as the
replay's error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.errors import InputError
from longpole.graph.operations.instances import ALONE, Instances, arrival_ns, match_instances, transfer_ns
from longpole.graph.operations.order import ProgramOrder, program_order
from longpole.graph.sweep import circle_edges, sort_edges, sweep, topological_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.records.operations import OperationTable
    from longpole.settings import Settings

    Rows: TypeAlias = NDArray[np.int64]
    Codes: TypeAlias = NDArray[np.int32]

_NO_ROW: Final = -1  # an edge that takes no time


@dataclass(frozen=True, slots=True)
class OperationGraph:
    """A job as a graph, with what it takes to sweep it.

    Attributes:
        table: The operations, N of them.
        work_ns: `[N]` int64 ns: what each takes once it may start: a computation's duration, the transfer time of
            communication.
        src, dst: `[E]` int32: edges in the order in which `sweep` takes them.
        edge_row: `[E]` int64: the operation whose work is the edge's length, -1 for none.
        n_points: Points: a source for each step, an end for each operation, an arrival for each instance.
        step_of_row: `[N]` int32: place of each operation's step in `steps`.
        steps: `[S]` int64: the steps' numbers, ascending.
        circular_steps: `[C]` int64: steps that are left out, because their times contradict each other.
        instances: Who runs together.
        order: Program order within workers.
    """

    table: OperationTable
    work_ns: Rows
    src: Codes
    dst: Codes
    edge_row: Rows
    n_points: int
    step_of_row: Codes
    steps: Rows
    circular_steps: Rows
    instances: Instances
    order: ProgramOrder

    def replay_ends_ns(self, work_ns: Rows) -> Rows:
        """Return `[N]` int64 ns since each step's start: when every operation ends.

        Args:
            work_ns: `[N]` int64 ns: what each operation takes.
        """
        weight = np.where(self.edge_row == _NO_ROW, 0, work_ns[self.edge_row])
        times = sweep(self.n_points, self.src, self.dst, weight, np.zeros(self.n_points, np.int64))
        first = len(self.steps)
        return times[first : first + len(self.table)]

    def replay_steps_ns(self, work_ns: Rows) -> Rows:
        """Return `[S]` int64 ns: how long every step takes.

        Args:
            work_ns: `[N]` int64 ns: what each operation takes.
        """
        return self.longest_ns(self.replay_ends_ns(work_ns))

    def measured_steps_ns(self) -> Rows:
        """Return `[S]` int64 ns: from each step's first start to its last end, as recorded."""
        return self.longest_ns(self.table.end_ns)

    def longest_ns(self, ends_ns: Rows) -> Rows:
        """Return `[S]` int64 ns: the latest of the operations' ends in each step."""
        longest = np.zeros(len(self.steps), np.int64)
        np.maximum.at(longest, self.step_of_row, ends_ns)
        return longest


def build_operation_graph(table: OperationTable, settings: Settings) -> OperationGraph:
    """Draw the edges of a job; steps whose times contradict each other are left out.

    Args:
        table: The operations, in their order; at least one.
        settings: `operation_overlap_max_ns`, `operation_async_min_share`.

    Raises:
        InputError: The times of every step contradict each other, so that something would have to end before it began.
    """
    graph = _draw(table, settings)
    circular = _circular_steps(graph)
    if len(circular) == len(graph.steps):
        raise InputError(_CIRCLE)
    if len(circular):
        graph = replace(_draw(table.take(~np.isin(table.step, circular)), settings), circular_steps=circular)
    by = sort_edges(topological_order(_times_ns(graph), graph.src, graph.dst), graph.src)
    return replace(graph, src=graph.src[by], dst=graph.dst[by], edge_row=graph.edge_row[by])


_CIRCLE: Final = (
    "the operations' times contradict each other in every step: each of some waits for the next, round in a circle;"
    " expected one clock for all ranks of a step. Bring the ranks' times to one clock, or leave the wrong rank out"
)


def _draw(table: OperationTable, settings: Settings) -> OperationGraph:
    """Return the graph with its edges in no order."""
    order = program_order(table, settings)
    instances = match_instances(table, settings)
    steps, step_of_row = table.step_numbers()
    n, n_steps = len(table), len(steps)
    end = np.arange(n, dtype=np.int64) + n_steps
    together = instances.of_row != ALONE
    entry = np.where(together, instances.of_row + np.int64(n_steps + n), end)
    # Computation's own work lies on the edges into its end; a member's on the edge from the last arrival.
    own = np.where(together, _NO_ROW, np.arange(n))
    first = np.ones(n, bool)
    first[order.after] = False
    alone = np.flatnonzero(first)
    members = np.flatnonzero(together)
    unpaid = np.full(len(instances.sent), _NO_ROW)
    src = np.concatenate([end[order.before], step_of_row[alone].astype(np.int64), end[instances.sent], entry[members]])
    dst = np.concatenate([entry[order.after], entry[alone], entry[instances.received], end[members]])
    row = np.concatenate([own[order.after], own[alone], unpaid, members])
    return OperationGraph(
        table=table,
        work_ns=transfer_ns(table, instances),
        src=src.astype(np.int32),
        dst=dst.astype(np.int32),
        edge_row=row,
        n_points=n_steps + n + instances.count,
        step_of_row=step_of_row,
        steps=steps,
        circular_steps=steps[:0],
        instances=instances,
        order=order,
    )


def _times_ns(graph: OperationGraph) -> Rows:
    """Return `[P]` int64 ns: when every point happened, as recorded."""
    arrivals_ns = arrival_ns(graph.table, graph.instances)
    return np.concatenate([np.zeros(len(graph.steps), np.int64), graph.table.end_ns, arrivals_ns])


def _circular_steps(graph: OperationGraph) -> Rows:
    """Return the numbers of steps whose edges form a circle."""
    times_ns = _times_ns(graph)
    if not (times_ns[graph.src] > times_ns[graph.dst]).any():
        # Edges that all point forward in time can close a circle only at one instant.
        level = times_ns[graph.src] == times_ns[graph.dst]
        if not level.any():
            return graph.steps[:0]
    inside = circle_edges(graph.n_points, graph.src, graph.dst)
    if not len(inside):
        return graph.steps[:0]
    ends = np.concatenate([graph.src[inside], graph.dst[inside]]).astype(np.int64) - len(graph.steps)
    rows = ends[(ends >= 0) & (ends < len(graph.table))]
    return np.unique(graph.table.step[rows])
