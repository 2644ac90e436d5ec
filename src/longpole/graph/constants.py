"""The constants of launches, stream order, event waits and returns, fitted on clean samples (DESIGN 3.7).

A sample is clean where its edge alone holds its target down: its source plus constant is at least 20 µs later than
that of every other edge into the same point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.graph.kinds import EDGES, KIND_NAMES, EdgeKind
from longpole.timeline.groups import closes, opens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.edges import Edges
    from longpole.settings import Settings

    Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Constant:
    """The length of a kind of edge, on one stream or on all that have none of their own.

    Attributes:
        kind: Name of the kind.
        lane: The stream's lane, -1 for all that have no constant of their own.
        length_ns: What is used.
        samples: Number of clean samples.
        fitted: The samples set it; else the default stands.
    """

    kind: str
    lane: int
    length_ns: int
    samples: int
    fitted: bool


def fit_constants(
    time_ns: Ints, lane: NDArray[np.int32], edges: Edges, settings: Settings
) -> dict[tuple[int, int], Constant]:
    """Return the constants, by kind and lane, of the kinds of edges that have one and occur.

    Launches and stream order are fitted for each stream where it has samples enough: a stream of collectives starts
    its kernels later than one of computation (case B071: 75 and 10 µs after the launch).

    Args:
        time_ns: `[P]` int64 ns: recorded times.
        lane: `[P]` int32: lanes of the points.
        edges: The edges; constants among them still have no length.
        settings: `clean_margin_ns`, `clean_min_count`, `constant_max_ns`.
    """
    clean = _clean(time_ns[edges.src] + with_defaults(edges), edges.dst, settings.clean_margin_ns)
    lag_ns = time_ns[edges.dst] - time_ns[edges.src]
    clean &= lag_ns >= 0
    to = lane[edges.dst]
    constants = {}
    for kind in np.unique(edges.kind).tolist():
        spec = EDGES[EdgeKind(kind)]
        if spec.default_ns is None or spec.fitted_with is None:
            continue
        alike = clean & np.isin(edges.kind, [int(k) for k, o in EDGES.items() if o.fitted_with is spec.fitted_with])
        constants[kind, -1] = _fit(kind, -1, lag_ns[alike], settings)
        if spec.fitted_with in _BY_STREAM:
            for code in np.unique(to[alike]).tolist():
                own = _fit(kind, code, lag_ns[alike & (to == code)], settings)
                if own.fitted:
                    constants[kind, code] = own
    return constants


_BY_STREAM: Final = (EdgeKind.LAUNCH, EdgeKind.STREAM)


def _fit(kind: int, lane: int, samples_ns: Ints, settings: Settings) -> Constant:
    own_ns = int(np.median(samples_ns)) if len(samples_ns) >= settings.clean_min_count else None
    if own_ns is not None and own_ns <= settings.constant_max_ns:
        return Constant(KIND_NAMES[kind], lane, own_ns, len(samples_ns), fitted=True)
    default_ns = EDGES[EdgeKind(kind)].default_ns or 0
    return Constant(KIND_NAMES[kind], lane, default_ns, len(samples_ns), fitted=False)


def with_defaults(edges: Edges) -> Ints:
    """Return the edges' lengths, with the default of each kind that has one: `[E]` int64 ns."""
    default_ns = np.array([EDGES[kind].default_ns or 0 for kind in EdgeKind], np.int64)
    constant = np.array([EDGES[kind].default_ns is not None for kind in EdgeKind], np.bool_)
    return np.where(constant[edges.kind], default_ns[edges.kind], edges.length_ns)


def with_constants(edges: Edges, lane: NDArray[np.int32], constants: dict[tuple[int, int], Constant]) -> Ints:
    """Return the edges' lengths, with the constants of their kinds and streams: `[E]` int64 ns.

    Args:
        edges: The edges.
        lane: `[P]` int32: lanes of the points.
        constants: What `fit_constants` returned.
    """
    weight_ns = with_defaults(edges)
    to = lane[edges.dst]
    for (kind, code), constant in sorted(constants.items()):  # -1, for all streams, comes first
        mine = edges.kind == kind
        weight_ns[mine if code < 0 else mine & (to == code)] = constant.length_ns
    return weight_ns


def _clean(arrival_ns: Ints, dst: NDArray[np.int32], margin_ns: int) -> NDArray[np.bool_]:
    """Return which edges arrive later than every other edge into their point by at least a margin."""
    order = np.lexsort((arrival_ns, dst))
    target, at_ns = dst[order], arrival_ns[order]
    last, alone = closes(target), opens(target)
    ahead_ns = np.full(len(order), margin_ns, np.int64)
    ahead_ns[1:] = at_ns[1:] - at_ns[:-1]
    clean = np.zeros(len(order), np.bool_)
    clean[order] = last & (alone | (ahead_ns >= margin_ns))
    return clean
