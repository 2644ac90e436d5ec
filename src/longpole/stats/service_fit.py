"""Fit `fixed latency + bytes / bandwidth` to service times, and refuse where that is not how they behave.

    time(size) = latency + size / bandwidth            one law for all sizes, or two with a break between two sizes

Ordinary least squares lets the largest size decide and gives negative latencies (bench-io B6: -3.2 ms and 2,000 % error
at small sizes). So the *relative* error is made small, both terms are at least 0, and the law is given up where one
size is off by more than 25 %.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import floor, log10
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

MIN_SIZES: Final = 6  # bench-io B6
MIN_DECADES: Final = 3.0  # bench-io B6
MIN_SIZES_A_SIDE: Final = 3  # of a break: two terms, and one size to contradict them
BREAK_MUST_WIN: Final = 0.8  # a break has to lower the error of left-out sizes by a fifth (our choice)
DRAWS: Final = 1000
SEED: Final = 42
LEVEL: Final = 0.9
_TAIL: Final = (1 - LEVEL) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The law for the sizes from one on.

    Attributes:
        from_bytes: The smallest measured size that it is fitted on.
        to_bytes: The largest.
        latency_ns: What every operation takes, at least 0.
        ns_per_byte: What every byte takes, at least 0.
        latency_interval_ns: 90 % interval, from resampling samples within sizes.
        ns_per_byte_interval: The same.
    """

    from_bytes: int
    to_bytes: int
    latency_ns: float
    ns_per_byte: float
    latency_interval_ns: tuple[float, float] = (0.0, 0.0)
    ns_per_byte_interval: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFit:
    """A law of service times, with how far it is off.

    Attributes:
        pieces: One, or two with a break between them.
        errors: Size -> (predicted - median) / median.
        left_out_errors: Size -> the same, predicted without that size.
    """

    pieces: tuple[Piece, ...]
    errors: Mapping[int, float]
    left_out_errors: Mapping[int, float] = field(default_factory=dict)

    @property
    def worst_error(self) -> float:
        """Return the largest relative error, as a share."""
        return max(abs(error) for error in self.errors.values())

    @property
    def break_bytes(self) -> int | None:
        """Return the first size of the second law, None for a single law."""
        return self.pieces[1].from_bytes if len(self.pieces) > 1 else None

    def predict_ns(self, size_bytes: float) -> float:
        """Return the service time of one operation; between the two laws the nearer size (by ratio) decides."""
        return _piece_time(self.pieces, size_bytes)

    def crossover_bytes(self) -> float | None:
        """Return the size at which the latency of the first law equals the time of its bytes.

        latency = size / bandwidth, so size = latency * bandwidth. Below it, latency rules. None where the law of small
        sizes ends before: latency rules up to the break at least.
        """
        return _half_size(self.pieces[0])

    def half_performance_bytes(self) -> float | None:
        """Return the smallest size that reaches half of the bandwidth of the largest sizes (Hockney's n½).

        size / (latency + size * t) = 1 / (2 * t_last), so size = latency / (2 * t_last - t). None where no size does.
        """
        last = self.pieces[-1]
        for piece in self.pieces:
            slope = 2 * last.ns_per_byte - piece.ns_per_byte
            if slope <= 0:
                continue
            size = piece.latency_ns / slope
            if size <= piece.to_bytes or piece is last:
                return max(size, 0.0 if piece is self.pieces[0] else float(piece.from_bytes))
        return None


def fit_service(samples: Mapping[int, Sequence[float]], *, draws: int = DRAWS, seed: int = SEED) -> ServiceFit | str:
    """Fit service times of several sizes; or say in a sentence why they are too few.

    The medians of the sizes are fitted, each error weighed by 1 / median. A break is taken where it lowers the mean
    error of left-out sizes by a fifth.

    Args:
        samples: Size in bytes -> at least one service time in ns, above 0.
        draws: Resamples for the intervals; 0 for none.
        seed: Of the resamples.

    >>> law = fit_service({s: [10_000 + s / 2] for s in (4096, 16384, 65536, 1 << 20, 1 << 22, 1 << 24)})
    >>> round(law.pieces[0].latency_ns), round(1 / law.pieces[0].ns_per_byte, 3), law.break_bytes
    (10000, 2.0, None)
    """
    sizes = np.array(sorted(samples), dtype=np.float64)
    problem = too_few(sizes)
    if problem:
        return problem
    medians = np.array([np.median(samples[int(size)]) for size in sizes], dtype=np.float64)
    cut = _best_cut(sizes, medians)
    pieces = _fit_pieces(sizes, medians, cut)
    errors = {int(size): float(_piece_time(pieces, size) / time - 1) for size, time in zip(sizes, medians, strict=True)}
    left_out = dict(zip(map(int, sizes), map(float, _left_out_errors(sizes, medians, cut)), strict=True))
    if draws:
        pieces = _with_intervals(pieces, sizes, [np.asarray(samples[int(size)]) for size in sizes], draws, seed)
    return ServiceFit(pieces=pieces, errors=errors, left_out_errors=left_out)


def too_few(sizes: Floats) -> str:
    """Say why a law cannot be fitted to these sizes, ascending; nothing where it can."""
    if len(sizes) < MIN_SIZES:
        return f"a model needs {MIN_SIZES} sizes, there are {len(sizes)}"
    decades = log10(sizes[-1] / sizes[0])
    if decades < MIN_DECADES:
        return f"a model needs sizes over {MIN_DECADES:g} powers of ten, these span {decades:.1f}"
    return ""


def decades_left_out(samples: Mapping[int, Sequence[float]]) -> dict[int, float]:
    """Return the error at each size of a law that was fitted without its whole power of ten.

    Returns:
        Size -> (predicted - median) / median; without those decades that leave too few sizes.
    """
    errors: dict[int, float] = {}
    for decade in sorted({floor(log10(size)) for size in samples}):
        kept = {size: times for size, times in samples.items() if floor(log10(size)) != decade}
        law = fit_service(kept, draws=0)
        if isinstance(law, str):
            continue
        for size in samples.keys() - kept.keys():
            errors[size] = float(law.predict_ns(size) / np.median(samples[size]) - 1)
    return dict(sorted(errors.items()))


def _half_size(piece: Piece) -> float | None:
    if piece.ns_per_byte <= 0:
        return None
    return piece.latency_ns / piece.ns_per_byte


def _piece_time(pieces: Sequence[Piece], size_bytes: float) -> float:
    piece = pieces[0]
    if len(pieces) > 1 and size_bytes > (pieces[0].to_bytes * pieces[1].from_bytes) ** 0.5:
        piece = pieces[1]
    return piece.latency_ns + piece.ns_per_byte * size_bytes


def _best_cut(sizes: Floats, medians: Floats) -> int:
    """Return how many sizes the first of two laws covers, all of them where one law does."""
    whole = len(sizes)
    of_one = float(np.abs(_left_out_errors(sizes, medians, whole)).mean())
    cuts = range(MIN_SIZES_A_SIDE, whole - MIN_SIZES_A_SIDE + 1)
    of_two = {cut: float(np.abs(_left_out_errors(sizes, medians, cut)).mean()) for cut in cuts}
    best = min(of_two, key=of_two.__getitem__, default=whole)
    return best if best != whole and of_two[best] < BREAK_MUST_WIN * of_one else whole


def _left_out_errors(sizes: Floats, medians: Floats, cut: int) -> Floats:
    """Return the error at each size of the law of its side, fitted without it."""
    errors = np.empty(len(sizes))
    for first, last in _sides(len(sizes), cut):
        for place in range(first, last):
            kept = [other for other in range(first, last) if other != place]
            latency, slope = _solve(sizes[kept], medians[kept][None, :])[0]
            errors[place] = (latency + slope * sizes[place]) / medians[place] - 1
    return errors


def _fit_pieces(sizes: Floats, medians: Floats, cut: int) -> tuple[Piece, ...]:
    pieces = []
    for first, last in _sides(len(sizes), cut):
        latency, slope = _solve(sizes[first:last], medians[None, first:last])[0]
        pieces.append(
            Piece(
                from_bytes=int(sizes[first]),
                to_bytes=int(sizes[last - 1]),
                latency_ns=float(latency),
                ns_per_byte=float(slope),
            )
        )
    return tuple(pieces)


def _with_intervals(
    pieces: tuple[Piece, ...], sizes: Floats, samples: Sequence[Floats], draws: int, seed: int
) -> tuple[Piece, ...]:
    """Return the laws with intervals: samples are drawn anew within each size, the break stays where it is."""
    rng = np.random.default_rng(seed)
    drawn = np.column_stack(
        [np.median(times[rng.integers(0, len(times), (draws, len(times)))], axis=1) for times in samples]
    )
    cut = int(np.searchsorted(sizes, pieces[0].to_bytes, side="right"))
    found = []
    for piece, (first, last) in zip(pieces, _sides(len(sizes), cut), strict=True):
        terms = _solve(sizes[first:last], drawn[:, first:last])
        low, high = np.quantile(terms, [_TAIL, 1 - _TAIL], axis=0)
        found.append(
            Piece(
                from_bytes=piece.from_bytes,
                to_bytes=piece.to_bytes,
                latency_ns=piece.latency_ns,
                ns_per_byte=piece.ns_per_byte,
                latency_interval_ns=(float(low[0]), float(high[0])),
                ns_per_byte_interval=(float(low[1]), float(high[1])),
            )
        )
    return tuple(found)


def _sides(count: int, cut: int) -> list[tuple[int, int]]:
    return [(0, count)] if cut == count else [(0, cut), (cut, count)]


def _solve(sizes: Floats, times: Floats) -> Floats:
    """Return the latency and the time of a byte that make the squared relative error smallest, both at least 0.

    For each row of `times` it solves min ||A x - 1|| over x >= 0, where A's rows are (1 / t, size / t). With two terms
    the constrained minimum is the free one where that is allowed, else the better of the two on the edges.

    Args:
        sizes: [k] bytes.
        times: [n, k] ns, above 0.

    Returns:
        [n, 2] ns and ns a byte.
    """
    ones, slopes = 1 / times, sizes / times
    a, b, c = (ones**2).sum(axis=1), (ones * slopes).sum(axis=1), (slopes**2).sum(axis=1)
    d, e = ones.sum(axis=1), slopes.sum(axis=1)
    determinant = a * c - b * b
    with np.errstate(divide="ignore", invalid="ignore"):
        latency = (c * d - b * e) / determinant
        slope = (a * e - b * d) / determinant
    free = (determinant > 1e-12 * a * c) & (latency >= 0) & (slope >= 0)
    # The sum of squares on an edge is k - d² / a or k - e² / c.
    only_latency = d * d / a >= e * e / c
    edge = np.column_stack([np.where(only_latency, d / a, 0.0), np.where(only_latency, 0.0, e / c)])
    solved: Floats = np.where(free[:, None], np.column_stack([latency, slope]), edge)
    return solved
