"""What a snapshot of the caching allocator shows: who holds memory, what is free in which pieces, what failed and why.

    segment    ├─ live ─┤░ free ░├─ live ─┤░ free ░│      a request larger than one ░ piece ░ fails, although all pieces
                                                          together would hold it

Definitions are PyTorch's: reserved = all segments; allocated = live blocks; free = blocks that nobody uses
(reserved less allocated less what still awaits another stream).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from longpole.records.allocator_snapshot import NOT_WRITTEN, AllocatorSnapshot, Block, Entry, Pool, Segment, Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Verdict: TypeAlias = Literal["fragmentation", "out_of_memory", "limit", "unknown"]

_TAKES: Final = ("segment_alloc", "segment_map")
_GIVES_BACK: Final = ("segment_free", "segment_unmap")
_CHANGES: Final = ("alloc", "free_requested", "free_completed", *_TAKES, *_GIVES_BACK)
_LARGE_FROM_BYTES: Final = 1 << 20  # kSmallSize of CUDACachingAllocator.cpp: requests up to it share small segments


@dataclass(frozen=True, slots=True)
class PoolUse:
    """One pool of a device: only requests of its stream, pool and class of size are served from it."""

    stream: int
    pool: Pool
    is_large: bool
    segments: int
    reserved_bytes: int
    allocated_bytes: int
    awaiting_free_bytes: int
    free_bytes: int
    largest_free_bytes: int


@dataclass(frozen=True, slots=True)
class SiteUse:
    """Live blocks that one line of the program allocated; the line is empty where no stack was recorded."""

    line: str
    function: str
    allocated_bytes: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that the allocator could not serve.

    Attributes:
        request_bytes: What was asked for, rounded as the allocator rounds.
        device_free_bytes: What the driver had left; NOT_WRITTEN where it is not written.
        free_bytes, largest_free_bytes, pool_free_bytes: Free inside all segments, the largest piece of it that a
            request of this stream could get, and what is free in that stream's pools; NOT_WRITTEN where the allocator
            went on afterwards, so that the snapshot shows a later moment.
        verdict: `fragmentation`: more is free than was asked for, in pieces. `out_of_memory`: all that is free is too
            little. `limit`: the driver alone had enough, so the program's own limit, or another one, was hit.
        gather_bytes: What pieces would have to give beside what the driver has left, for `fragmentation`.
        short_bytes: What is lacking even if all pieces were one, for `out_of_memory`.
        time_us: Microseconds since 1970, NOT_WRITTEN where not recorded.
        line, function: Who asked.
        phase: The innermost annotated range then, empty for none.
        entries_after: What the allocator did after it.
    """

    request_bytes: int
    device_free_bytes: int
    free_bytes: int
    largest_free_bytes: int
    pool_free_bytes: int
    verdict: Verdict
    gather_bytes: int
    short_bytes: int
    time_us: int
    line: str
    function: str
    phase: str
    entries_after: int


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """What a device's allocator held when the snapshot was taken, and what it did before.

    Attributes:
        releasable_bytes: Whole free segments, which `empty_cache` gives back to the driver.
        requested_bytes: What the program asked for of `allocated_bytes`; NOT_WRITTEN where a live block does not say.
        sizes: How many different sizes live blocks above 1 MiB have.
        history: How many entries there are.
        peak_requested_bytes, peak_reserved_bytes: The most in the recorded history, counted back from what is held
            now; NOT_WRITTEN where there is no history, or it contradicts the snapshot.
        returned: How often the allocator gave segments back and then took new ones.
    """

    device: int
    segments: int
    blocks: int
    reserved_bytes: int
    allocated_bytes: int
    awaiting_free_bytes: int
    requested_bytes: int
    free_bytes: int
    releasable_bytes: int
    largest_free_bytes: int
    sizes: int
    history: int
    peak_requested_bytes: int
    peak_reserved_bytes: int
    returned: int
    pools: list[PoolUse]
    sites: list[SiteUse]
    failures: list[Failure] = field(default_factory=list)


def devices_of(snapshot: AllocatorSnapshot) -> list[int]:
    """Return the devices that hold segments or did something, ascending."""
    return sorted({segment.device for segment in snapshot.segments} | set(snapshot.history))


def measure_device(snapshot: AllocatorSnapshot, device: int) -> DeviceUse:
    """Measure one device of a snapshot."""
    segments = [segment for segment in snapshot.segments if segment.device == device]
    history = snapshot.history.get(device, ())
    blocks = [block for segment in segments for block in segment.blocks]
    live = [block for block in blocks if block.state == "allocated"]
    requested = [block.requested_bytes for block in live]
    requested_bytes = NOT_WRITTEN if NOT_WRITTEN in requested else sum(requested)
    reserved_bytes = sum(segment.total_bytes for segment in segments)
    allocated_bytes = _sum_of(live)
    pools = measure_pools(segments)
    asked_bytes = allocated_bytes if requested_bytes == NOT_WRITTEN else requested_bytes
    return DeviceUse(
        device=device,
        segments=len(segments),
        blocks=len(blocks),
        reserved_bytes=reserved_bytes,
        allocated_bytes=allocated_bytes,
        awaiting_free_bytes=_sum_of(block for block in blocks if block.state == "awaiting_free"),
        requested_bytes=requested_bytes,
        free_bytes=_sum_of(block for block in blocks if block.state == "free"),
        releasable_bytes=sum(segment.total_bytes for segment in segments if _is_free(segment)),
        largest_free_bytes=max((pool.largest_free_bytes for pool in pools), default=0),
        sizes=len({block.size_bytes for block in live if block.size_bytes > _LARGE_FROM_BYTES}),
        history=len(history),
        peak_requested_bytes=_peak(history, asked_bytes, _allocated_change),
        peak_reserved_bytes=_peak(history, reserved_bytes, _reserved_change),
        returned=_returned(history),
        pools=pools,
        sites=measure_sites(live, history),
        failures=[_failure(snapshot, device, place, pools) for place, e in enumerate(history) if e.action == "oom"],
    )


def _sum_of(blocks: Iterable[Block]) -> int:
    return sum(block.size_bytes for block in blocks)


def _is_free(segment: Segment) -> bool:
    return bool(segment.blocks) and all(block.state == "free" for block in segment.blocks)


# ------------------------------------------------------------------------------------------------------ pieces


def measure_pools(segments: Sequence[Segment]) -> list[PoolUse]:
    """Return what each pool holds, the one with most reserved first; neighbouring free blocks are one piece."""
    pools: dict[tuple[int, Pool, bool], list[Segment]] = {}
    for segment in segments:
        pools.setdefault((segment.stream, segment.pool, segment.is_large), []).append(segment)
    found = [_pool(key, some) for key, some in pools.items()]
    return sorted(found, key=lambda pool: (-pool.reserved_bytes, pool.stream, pool.pool, not pool.is_large))


def _pool(key: tuple[int, Pool, bool], segments: list[Segment]) -> PoolUse:
    stream, pool, is_large = key
    by_state: Counter[str] = Counter()
    for segment in segments:
        for block in segment.blocks:
            by_state[block.state] += block.size_bytes
    return PoolUse(
        stream=stream,
        pool=pool,
        is_large=is_large,
        segments=len(segments),
        reserved_bytes=sum(segment.total_bytes for segment in segments),
        allocated_bytes=by_state["allocated"],
        awaiting_free_bytes=by_state["awaiting_free"],
        free_bytes=by_state["free"],
        largest_free_bytes=max((piece for segment in segments for piece in _pieces(segment)), default=0),
    )


def _pieces(segment: Segment) -> list[int]:
    return [
        sum(block.size_bytes for block in run)
        for is_free, run in groupby(segment.blocks, lambda block: block.state == "free")
        if is_free
    ]


# ------------------------------------------------------------------------------------------------------ history


def _allocated_change(entry: Entry, frees: str) -> int:
    return entry.size_bytes if entry.action == "alloc" else -entry.size_bytes if entry.action == frees else 0


def _reserved_change(entry: Entry, _frees: str) -> int:
    return entry.size_bytes if entry.action in _TAKES else -entry.size_bytes if entry.action in _GIVES_BACK else 0


def _peak(history: Sequence[Entry], now_bytes: int, change: Callable[[Entry, str], int]) -> int:
    """Return the most there was, counted back from now; NOT_WRITTEN without history, or where it falls below 0."""
    if not any(entry.action in _CHANGES for entry in history):
        return NOT_WRITTEN
    frees = "free_requested" if any(entry.action == "free_requested" for entry in history) else "free_completed"
    peak_bytes = held_bytes = now_bytes
    for entry in reversed(history):
        held_bytes -= change(entry, frees)
        if held_bytes < 0:
            return NOT_WRITTEN
        peak_bytes = max(peak_bytes, held_bytes)
    return peak_bytes


def _returned(history: Sequence[Entry]) -> int:
    """Count how often segments were given back and others taken directly after."""
    moves = [entry.action for entry in history if entry.action in ("segment_alloc", "segment_free")]
    return sum(before == "segment_free" and after == "segment_alloc" for before, after in pairwise(moves))


# ------------------------------------------------------------------------------------------------------ failures


def _failure(snapshot: AllocatorSnapshot, device: int, place: int, pools: Sequence[PoolUse]) -> Failure:
    history = snapshot.history[device]
    entry = history[place]
    entries_after = sum(later.action in _CHANGES for later in history[place + 1 :])
    is_now = entries_after == 0
    own = [
        pool
        for pool in pools
        if pool.is_large == (entry.size_bytes > _LARGE_FROM_BYTES) and entry.stream in (pool.stream, NOT_WRITTEN)
    ]
    free_bytes = sum(pool.free_bytes for pool in pools) if is_now else NOT_WRITTEN
    verdict, gather_bytes, short_bytes = judge_failure(entry.size_bytes, entry.device_free_bytes, free_bytes)
    line, function = find_site(entry.stack)
    return Failure(
        request_bytes=entry.size_bytes,
        device_free_bytes=entry.device_free_bytes,
        free_bytes=free_bytes,
        largest_free_bytes=max((pool.largest_free_bytes for pool in own), default=0) if is_now else NOT_WRITTEN,
        pool_free_bytes=sum(pool.free_bytes for pool in own) if is_now else NOT_WRITTEN,
        verdict=verdict,
        gather_bytes=gather_bytes,
        short_bytes=short_bytes,
        time_us=entry.time_us,
        line=line,
        function=function,
        phase=_phase_at(snapshot, device, entry.time_us),
        entries_after=entries_after,
    )


def judge_failure(request_bytes: int, device_free_bytes: int, free_bytes: int) -> tuple[Verdict, int, int]:
    """Say why a request failed.

    That it failed is proof that no single piece was large enough; so what decides is the sum.

    Args:
        request_bytes: What was asked for.
        device_free_bytes: What the driver had left, NOT_WRITTEN where that is not known.
        free_bytes: What was free inside segments, NOT_WRITTEN where that is not known.

    Returns:
        The verdict; what pieces would have to give beside the driver's rest; what is lacking in all.

    >>> judge_failure(512, 100, 19_500)
    ('fragmentation', 412, 0)
    >>> judge_failure(512, 100, 300)
    ('out_of_memory', 0, 112)
    """
    if NOT_WRITTEN in (device_free_bytes, free_bytes):
        return "unknown", 0, 0
    if request_bytes <= device_free_bytes:
        return "limit", 0, 0
    short_bytes = request_bytes - device_free_bytes - free_bytes
    if short_bytes > 0:
        return "out_of_memory", 0, short_bytes
    return "fragmentation", request_bytes - device_free_bytes, 0


def _phase_at(snapshot: AllocatorSnapshot, device: int, time_us: int) -> str:
    """Return the innermost range that is open on a device at a moment."""
    if time_us == NOT_WRITTEN:
        return ""
    open_names: list[str] = []
    for phase in snapshot.phases:
        if phase.device != device or phase.time_us > time_us:
            continue
        if phase.is_start:
            open_names.append(phase.name)
        elif phase.name in open_names:
            del open_names[len(open_names) - 1 - open_names[::-1].index(phase.name) :]
    return open_names[-1] if open_names else ""


# ------------------------------------------------------------------------------------------------------ sites


def measure_sites(live: Sequence[Block], history: Sequence[Entry]) -> list[SiteUse]:
    """Return who holds live memory, most first; a block without a stack takes that of its address' last allocation."""
    by_address = {entry.address: entry.stack for entry in history if entry.action == "alloc"}
    sums: Counter[tuple[str, str]] = Counter()
    counts: Counter[tuple[str, str]] = Counter()
    known: dict[int, tuple[str, str]] = {}
    for block in live:
        stack = block.stack or by_address.get(block.address, ())
        site = known.get(id(stack))
        if site is None:
            site = known[id(stack)] = find_site(stack)
        sums[site] += block.size_bytes
        counts[site] += 1
    ordered = sorted(sums, key=lambda site: (-sums[site], site))
    return [SiteUse(*site, sums[site], counts[site]) for site in ordered]


_LIBRARY: Final = re.compile(
    r"(?:^|/)(?:torch|_pytest|importlib|concurrent|asyncio|multiprocessing|threading\.py)(?:/|$)"
)
_ROOTS: Final = ("/site-packages/", "/dist-packages/")
_UNWINDING: Final = re.compile(
    r"unwind|CapturedTraceback|gather_with_cpp|CachingAllocator|_PyEval|PyObject_|vectorcall"
)


def find_site(stack: Stack) -> tuple[str, str]:
    """Return file with line, and function, of the innermost frame that is the program's own.

    That is the first frame of Python outside of PyTorch, else its first frame of Python, else the first function of
    C++ that is neither the allocator nor what records stacks; both empty where there is none.
    """
    python = [frame for frame in stack if frame.file.endswith(".py")]
    own = next((frame for frame in python if not _LIBRARY.search(_shown_file(frame.file))), None)
    chosen = own or next(iter(python), None)
    if chosen is not None:
        return f"{_shown_file(chosen.file)}:{chosen.line}", chosen.name
    native = next((frame for frame in stack if frame.name and not _UNWINDING.search(frame.name)), None)
    return ("", native.name) if native is not None else ("", "")


def _shown_file(file: str) -> str:
    """Return a path from the packages' folder on, else its last three parts: the rest is where somebody lives."""
    for root in _ROOTS:
        _, found, rest = file.rpartition(root)
        if found:
            return rest
    library = re.search(r"/lib/python3\.\d+/(.+)$", file)
    return library[1] if library else "/".join(file.split("/")[-3:])
