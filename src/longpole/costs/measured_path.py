"""A measured path as a cost: the fixed latency and the bandwidth that hold for a size."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPiece:
    """The law `latency + bytes / bandwidth` for the sizes from one on.

    Attributes:
        from_bytes: The smallest size that it holds for; 0 for the first piece.
        latency_ms: What one operation takes whatever its size.
        bandwidth_gbps: What its bytes flow at, in decimal gigabytes per second.
    """

    from_bytes: int
    latency_ms: float
    bandwidth_gbps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPath:
    """A path of a `longpole bench io` record.

    Attributes:
        name: Such as `torch.load.warm`.
        pieces: One law, or two with a break between them, ascending; empty where it cannot be used.
        least_bytes, most_bytes: The sizes that were measured; beyond them the law is extrapolated.
        problem: Why it cannot be used; empty where it can.
    """

    name: str
    pieces: tuple[PathPiece, ...]
    least_bytes: int = 0
    most_bytes: int = 0
    problem: str = ""

    def at(self, size_bytes: float) -> PathPiece:
        """Return the law for a size: the last piece that begins at or below it."""
        return next((piece for piece in reversed(self.pieces) if size_bytes >= piece.from_bytes), self.pieces[0])

    def was_measured_at(self, size_bytes: float) -> bool:
        """Tell whether a size lies within those that were measured."""
        return self.least_bytes <= size_bytes <= self.most_bytes
