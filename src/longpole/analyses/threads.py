"""What each thread did at every instant, cut into segments: the object, the call and the stage in force.

thread     ├──────────── enumerate(DataLoader) ───────────┤├─ aten::linear ─┤
                ├ aten::stack ┤                              ├ cudaLaunch… ┤
object     input  input         input                      –
call       –      dispatch      –                          dispatch (launch)
stage      input  input         input                      forward
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.analyses.name_book import CALL_CODE, OBJECT_CODE, STAGE_CODE
from longpole.timeline.columns import Kind
from longpole.timeline.nesting import Segments, inherit, nest, segment
from longpole.vocabulary.objects import IDLE_REASONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.analyses.name_book import NameBook
    from longpole.timeline.nesting import Nesting
    from longpole.timeline.timeline import Timeline

REASON_CODE: Final = {reason: code for code, reason in enumerate(IDLE_REASONS)}
NO_RECORD: Final = -1
_NEVER_NS: Final = -(1 << 62)

_REASON_OF_CALL: Final = {
    "gc": "host.gc",
    "alloc": "host.alloc",
    "free": "host.alloc",
    "compile": "host.compile",
    "sync": "host.sync",
}
# From the one that wins to the one that loses where several are open at once.
_STAGE_ORDER: Final = ("optimizer", "input", "backward", "forward", "other")


@dataclass(frozen=True, slots=True)
class ThreadCover:
    """One thread's segments; piece i ends where piece i + 1 starts.

    Attributes:
        start_ns: `[M]` int64, ascending; the first one lies before all time.
        reason: `[M]` int8: what the host part of a gap in this piece is charged to, NO_RECORD where the thread has
            no span.
        decider: `[M]` int64: host row that decided the reason; the innermost one where none did, -1 for none.
        innermost: `[M]` int64: host row of the innermost span, -1 for none.
        stage: `[M]` int8: code into STAGES.
        operator: `[M]` bool: the innermost operator-like span is an operator and no collective's call.
        row_stage: `[R]` int8: stage in force at each of the thread's own spans.
        row_object: `[R]` int8: code into OBJECTS of the activity around each span or the span itself, -1 for none.
        row_operator: `[R]` int64: host row of the innermost operator around each span or the span itself, or -1.
        parent: `[R]` int64: place among the thread's spans of each one's parent, -1 for a root.
        first_row: Host row of the first of the R spans.
    """

    start_ns: NDArray[np.int64]
    reason: NDArray[np.int8]
    decider: NDArray[np.int64]
    innermost: NDArray[np.int64]
    stage: NDArray[np.int8]
    operator: NDArray[np.bool_]
    row_stage: NDArray[np.int8]
    row_object: NDArray[np.int8]
    row_operator: NDArray[np.int64]
    parent: NDArray[np.int64]
    first_row: int

    def outwards(self, place: NDArray[np.int64], wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Walk from spans to the spans around them until a wanted one.

        Args:
            place: Places among the thread's spans, -1 for none.
            wanted: `[R]`: which of the thread's spans end the walk.

        Returns:
            The wanted spans' places, a span's own where it is wanted itself, -1 where none is.
        """
        at = place.copy()
        while True:
            on = np.flatnonzero(at >= 0)
            on = on[~wanted[at[on]]]
            if len(on) == 0:
                return at
            at[on] = self.parent[at[on]]


class Threads:
    """The covers of a timeline's threads, made when first asked for."""

    def __init__(self, timeline: Timeline, book: NameBook, setup_rows: NDArray[np.int64]) -> None:
        """Prepare.

        Args:
            timeline: The record.
            book: Meanings of its names.
            setup_rows: Host rows that were found to create a communicator, whatever their names say.
        """
        self.timeline = timeline
        self.book = book
        self._setup_rows = setup_rows
        self._covers: dict[int, ThreadCover] = {}
        host = timeline.host
        tracks = np.arange(len(timeline.tracks) + 1)
        self._first = np.searchsorted(host.track, tracks)

    def cover(self, track: int) -> ThreadCover:
        """Return what one thread did."""
        if track not in self._covers:
            self._covers[track] = self._build(track)
        return self._covers[track]

    def rows_of(self, track: int) -> slice:
        """Return the thread's rows of the host table."""
        if track < 0:
            return slice(0, 0)
        return slice(int(self._first[track]), int(self._first[track + 1]))

    def _build(self, track: int) -> ThreadCover:
        rows = self.rows_of(track)
        host = self.timeline.host
        start_ns = host.start_ns[rows]
        nesting = nest(start_ns, host.end_ns[rows])
        pieces = _with_beginning(segment(start_ns, nesting))
        name, kind = host.name[rows], host.kind[rows]
        own_object = self._own_objects(rows)
        by_object = inherit(nesting, self._own_rows(own_object))
        by_call = inherit(nesting, self._own_rows(self._is_host_call(name, kind)))
        operator = inherit(nesting, self._own_rows(kind == Kind.OPERATOR))
        acts = inherit(nesting, _operator_codes(self.book, name, kind)) == 1
        own_stage = self._own_stages(rows, track)
        stage = _dominant_stage(nesting, own_stage, start_ns, self._closure_ends(rows, track, own_stage))
        has_object = by_object >= 0
        row_object = np.where(has_object, own_object[by_object], -1).astype(np.int8)
        reason = np.full(len(name), REASON_CODE["host.python"], np.int8)
        reason = np.where(by_call >= 0, _call_reasons()[self.book.call[name[by_call]]], reason)
        reason = np.where(has_object, _object_reasons()[row_object], reason)
        decider = np.where(has_object, by_object, np.where(by_call >= 0, by_call, np.arange(len(name))))
        first = rows.start

        def at_pieces(values: NDArray[np.generic], none: int) -> NDArray[np.generic]:
            return np.append(values, values.dtype.type(none))[pieces.span]

        return ThreadCover(
            start_ns=pieces.start_ns,
            reason=at_pieces(reason, NO_RECORD).astype(np.int8),
            decider=at_pieces(decider.astype(np.int64) + first, -1).astype(np.int64),
            innermost=np.where(pieces.span >= 0, pieces.span + first, -1),
            stage=at_pieces(stage, STAGE_CODE["other"]).astype(np.int8),
            operator=at_pieces(acts, 0).astype(np.bool_),
            row_stage=stage,
            row_object=row_object,
            row_operator=np.where(operator >= 0, operator.astype(np.int64) + first, -1),
            parent=nesting.parent,
            first_row=first,
        )

    def _own_objects(self, rows: slice) -> NDArray[np.int8]:
        own = self.book.object[self.timeline.host.name[rows]]
        if len(self._setup_rows):
            own = own.copy()
            mine = self._setup_rows[(self._setup_rows >= rows.start) & (self._setup_rows < rows.stop)]
            own[mine - rows.start] = OBJECT_CODE["collective"]
        return own

    @staticmethod
    def _own_rows(codes: NDArray[np.int8] | NDArray[np.bool_]) -> NDArray[np.int32]:
        """Return each row's own number where it has the property, else -1."""
        has = codes if codes.dtype == np.bool_ else codes >= 0
        return np.where(has, np.arange(len(codes)), -1).astype(np.int32)

    def _is_host_call(self, name: NDArray[np.int32], kind: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Return which rows end the walk outwards: calls of a known sort, operators, runtime calls."""
        return (self.book.call[name] >= 0) | (kind == Kind.OPERATOR) | (kind == Kind.RUNTIME)

    def _own_stages(self, rows: slice, track: int) -> NDArray[np.int8]:
        host = self.timeline.host
        name, kind = host.name[rows], host.kind[rows]
        own = self.book.stage[name].copy()
        own[(own < 0) & (self.book.object[name] == OBJECT_CODE["input"])] = STAGE_CODE["input"]
        backward = self.timeline.backward
        mine = backward[(backward >= rows.start) & (backward < rows.stop)] - rows.start
        own[mine[own[mine] < 0]] = STAGE_CODE["backward"]
        if track != self.timeline.main_track and len(mine):
            own[own < 0] = STAGE_CODE["backward"]
        own[(own < 0) & (kind == Kind.OPERATOR) & ~self.book.is_declared[name]] = STAGE_CODE["forward"]
        return own

    def _closure_ends(self, rows: slice, track: int, own_stage: NDArray[np.int8]) -> NDArray[np.int64]:
        """Return, for each span, when the closure that it was handed ends; the beginning of all time without one.

        `optimizer.step(closure)` computes the loss and its gradients inside itself, as Lightning's automatic
        optimisation does: what begins before the last gradient in it is the forward and the backward pass. Gradients
        are computed on the thread itself (CPU), or on autograd's while the main thread waits (devices).
        """
        host = self.timeline.host
        ends_ns = np.full(len(own_stage), _NEVER_NS, np.int64)
        optimizers = np.flatnonzero(own_stage == STAGE_CODE["optimizer"])
        gradients = np.flatnonzero(own_stage == STAGE_CODE["backward"]) + rows.start
        gradients = np.union1d(gradients, self.timeline.backward)
        if track != self.timeline.main_track or not len(optimizers) or not len(gradients):
            return ends_ns  # autograd's own threads step an optimizer that is fused into the backward pass
        gradients = gradients[np.argsort(host.start_ns[gradients], kind="stable")]
        starts_ns, stops_ns = host.start_ns[gradients], host.end_ns[gradients]
        for place in optimizers.tolist():
            end_ns = host.end_ns[rows][place]
            low, high = np.searchsorted(starts_ns, [host.start_ns[rows][place], end_ns + 1])
            inside = stops_ns[low:high]
            ends_ns[place] = inside[inside <= end_ns].max(initial=_NEVER_NS)
        return ends_ns


def _with_beginning(pieces: Segments) -> Segments:
    """Put a piece without a span before the first one, so that every time lies in a piece."""
    return Segments(
        np.concatenate([np.array([_NEVER_NS], np.int64), pieces.start_ns]),
        np.concatenate([np.array([-1], np.int64), pieces.span]),
    )


def _operator_codes(book: NameBook, name: NDArray[np.int32], kind: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Return 1 for operators, 0 for what ends being one (collectives, waits, declared other work), -1 for the rest."""
    codes = np.where(kind == Kind.OPERATOR, 1, -1).astype(np.int32)
    codes[book.is_collective_op[name] | book.is_backend[name] | (book.call[name] == CALL_CODE["sync"])] = 0
    codes[book.is_other_work[name]] = 0
    return codes


def _dominant_stage(
    nesting: Nesting, own: NDArray[np.int8], start_ns: NDArray[np.int64], closure_end_ns: NDArray[np.int64]
) -> NDArray[np.int8]:
    """Give each span the strongest stage of itself and all that encloses it, but an optimizer's closure its own."""
    strength = np.full(len(_STAGE_ORDER) + 1, len(_STAGE_ORDER) - 1, np.int8)
    for place, stage in enumerate(_STAGE_ORDER):
        strength[STAGE_CODE[stage]] = place
    value = strength[own]
    optimizer = strength[STAGE_CODE["optimizer"]]
    order = np.argsort(nesting.depth, kind="stable")
    levels = np.searchsorted(nesting.depth[order], np.arange(int(nesting.depth.max(initial=0)) + 2))
    for level in range(1, len(levels) - 1):
        here = order[levels[level] : levels[level + 1]]
        parent = nesting.parent[here]
        in_closure = (value[parent] == optimizer) & (start_ns[here] < closure_end_ns[parent])
        value[here] = np.where(in_closure, value[here], np.minimum(value[here], value[parent]))
    back = np.array([STAGE_CODE[stage] for stage in _STAGE_ORDER], np.int8)
    return back[value]


def _call_reasons() -> NDArray[np.int8]:
    """Map call codes to reasons; the last place (code -1) and unnamed calls only dispatch."""
    table = np.full(len(CALL_CODE) + 1, REASON_CODE["host.dispatch"], np.int8)
    for call, reason in _REASON_OF_CALL.items():
        table[CALL_CODE[call]] = REASON_CODE[reason]
    return table


def _object_reasons() -> NDArray[np.int8]:
    table = np.full(len(OBJECT_CODE) + 1, REASON_CODE["host.python"], np.int8)
    for name, code in OBJECT_CODE.items():
        if name in REASON_CODE:
            table[code] = REASON_CODE[name]
    return table
