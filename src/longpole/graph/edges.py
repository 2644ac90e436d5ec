"""Edges of a graph as columns."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from longpole.errors import InvariantError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.kinds import EdgeKind

    Ints: TypeAlias = NDArray[np.int64]
    Places: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges, all columns of one length.

    Attributes:
        src: `[E]` int32: points that are waited for.
        dst: `[E]` int32: points that wait.
        kind: `[E]` uint8: members of EdgeKind.
        length_ns: `[E]` int64 ns: the kept length of edges that have one; for others 0 until constants are fitted.
    """

    src: Places
    dst: Places
    kind: NDArray[np.uint8]
    length_ns: Ints

    def __len__(self) -> int:
        return len(self.src)

    @classmethod
    def of(
        cls, kind: EdgeKind, src: NDArray[np.integer], dst: NDArray[np.integer], length_ns: Ints | None = None
    ) -> Self:
        """Return edges of one kind.

        Raises:
            InvariantError: An end is no point.
        """
        if len(src) and (int(src.min()) < 0 or int(dst.min()) < 0):
            msg = f"an edge of kind {kind.name} has an end that is no point"
            raise InvariantError(msg)
        return cls(
            src.astype(np.int32),
            dst.astype(np.int32),
            np.full(len(src), kind, np.uint8),
            np.zeros(len(src), np.int64) if length_ns is None else length_ns.astype(np.int64),
        )

    @classmethod
    def join(cls, parts: list[Self]) -> Self:
        """Put edges together, in the order given."""
        if not parts:
            none = np.empty(0, np.int32)
            return cls(none, none, np.empty(0, np.uint8), np.empty(0, np.int64))
        return cls(**{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)})

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Self:
        """Return some of the edges."""
        return type(self)(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})
