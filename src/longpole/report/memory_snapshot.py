"""Memory snapshots as one value; the page and the JSON document pour it out (`longpole.memory/1`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from longpole.records.allocator_snapshot import NOT_WRITTEN
from longpole.records.ledger import Unknown
from longpole.report.document import UnknownEntry
from longpole.report.pointers import unknown_values
from longpole.report.schema_of import document_schema
from longpole.units import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.analyses.allocator import DeviceUse, Failure, PoolUse, SiteUse
    from longpole.records.allocator_snapshot import AllocatorSnapshot

SCHEMA: Final = "longpole.memory/1"
SITES_MAX: Final = 50

Cause: TypeAlias = Literal["fragmentation", "out_of_memory", "limit", "unknown", ""]

_NO_FAILURE: Final = Unknown("no request failed in the recorded history", ["a snapshot taken when memory runs out"])
_LATER: Final = Unknown(
    "the allocator went on after the failure, so the snapshot shows a later moment",
    ["a snapshot taken when memory runs out (torch._C._cuda_attach_out_of_memory_observer)"],
)
_NO_HISTORY: Final = Unknown(
    "the snapshot has no history, or one that contradicts it", ["torch.cuda.memory._record_memory_history()"]
)
_NO_REQUESTED: Final = Unknown("live blocks do not say what was asked for", ["torch 2.1 or later"])
_NO_DEVICE_FREE: Final = Unknown("nothing says what the driver has left", ["a snapshot taken when memory runs out"])
_NO_TOTAL: Final = Unknown("the snapshot does not say how much memory the device has", ["device_total"])
_NO_SETTINGS: Final = Unknown("the snapshot does not hold the allocator's settings", ["torch 2.1 or later"])
_NO_TIME: Final = Unknown("the history has no times", ["torch 2.2 or later"])


class MemoryPool(msgspec.Struct, frozen=True, kw_only=True):
    """One pool of a device: requests of another stream, pool or class of size are not served from it.

    Attributes:
        stream: The stream's handle; 0 is the default one.
        pool: Its id; [0, 0] is the usual pool, others belong to graphs or to the program.
        size_class: `large` above 1 MiB, else `small`.
        segments: How many.
        reserved_bytes, allocated_bytes, awaiting_free_bytes, free_bytes: As of the device.
        largest_free_block_bytes: The largest piece that a request could get.
    """

    stream: int
    pool: list[int]
    size_class: Literal["large", "small"]
    segments: int
    reserved_bytes: int
    allocated_bytes: int
    awaiting_free_bytes: int
    free_bytes: int
    largest_free_block_bytes: int


class MemorySite(msgspec.Struct, frozen=True, kw_only=True):
    """Live blocks that one line of the program allocated.

    Attributes:
        line: File and line; empty where no stack was recorded.
        function: The function.
        allocated_bytes: What they hold.
        blocks: How many.
        share: Of all that is allocated on the device.
    """

    line: str
    function: str
    allocated_bytes: int
    blocks: int
    share: float


class MemoryFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A request that could not be served (an out-of-memory error).

    Attributes:
        verdict: `fragmentation` (more is free than was asked for, in pieces), `out_of_memory` (all that is free is too
            little), `limit` (the driver alone had enough), or `unknown`.
        says: The verdict in a sentence.
        request_bytes: What was asked for.
        device_free_bytes: What the driver had left.
        free_in_segments_bytes: What was free inside segments, of all pools.
        pool_free_bytes: What of it was free in pools that serve this stream and size.
        largest_free_block_bytes: The largest piece of that.
        gather_bytes: What pieces would have to give beside what the driver had left (`fragmentation`).
        short_bytes: What is lacking even if all pieces were one (`out_of_memory`).
        time_us: Microseconds since 1970.
        line, function: Who asked; empty where no stack was recorded.
        phase: The innermost annotated range then; empty for none.
        entries_after: What the allocator did between it and the snapshot.
    """

    verdict: Cause
    says: str
    request_bytes: int
    device_free_bytes: int | Unknown
    free_in_segments_bytes: int | Unknown
    pool_free_bytes: int | Unknown
    largest_free_block_bytes: int | Unknown
    gather_bytes: int
    short_bytes: int
    time_us: int | Unknown
    line: str
    function: str
    phase: str
    entries_after: int


class MemoryDevice(msgspec.Struct, frozen=True, kw_only=True):
    """The allocator of one device when the snapshot was taken.

    Attributes:
        source: The place of its file in `sources`.
        rank: The rank that the file's name tells.
        device: Its number in the process.
        cause: The verdict on the last request that failed; empty where none did.
        says: What there is to say, in a sentence.
        segments, blocks: How many.
        reserved_bytes: All segments.
        allocated_bytes: Live blocks.
        requested_bytes: What the program asked for of that; the rest is rounding.
        awaiting_free_bytes: Given back by the program while another stream may still use it.
        free_in_segments_bytes: Blocks that nobody uses.
        releasable_bytes: Whole free segments of that, which `empty_cache` gives back.
        largest_free_block_bytes: The largest piece that one request could get.
        fragmentation_share: 1 − largest piece ÷ free; near 1 where memory is free in many pieces. By itself no harm.
        request_bytes: The last request that failed.
        device_free_bytes: What the driver had left then.
        device_total_bytes: Memory of the device.
        expandable_segments: Whether the allocator was set to grow segments.
        sizes: How many different sizes live blocks above 1 MiB have.
        history_entries: How much of the allocator's doing is recorded.
        peak_requested_bytes, peak_reserved_bytes: The most in that history.
        segments_returned: How often segments were given back and others taken directly after.
        pools: The largest first.
        sites: Who holds what is allocated, most first, 50 at most.
        failures: In order of time.
        try_next: What would help, most promising first.
    """

    source: int
    rank: int | None
    device: int
    cause: Cause
    says: str
    segments: int
    blocks: int
    reserved_bytes: int
    allocated_bytes: int
    requested_bytes: int | Unknown
    awaiting_free_bytes: int
    free_in_segments_bytes: int
    releasable_bytes: int
    largest_free_block_bytes: int
    fragmentation_share: float
    request_bytes: int | Unknown
    device_free_bytes: int | Unknown
    device_total_bytes: int | Unknown
    expandable_segments: bool | Unknown
    sizes: int
    history_entries: int
    peak_requested_bytes: int | Unknown
    peak_reserved_bytes: int | Unknown
    segments_returned: int
    pools: list[MemoryPool]
    sites: list[MemorySite]
    failures: list[MemoryFailure]
    try_next: list[str]


class MemorySource(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was read.

    Attributes:
        path: As it was given.
        skipped: Segments, blocks and entries that could not be read.
        notes: What else is odd.
    """

    path: str
    skipped: int
    notes: list[str]


class MemorySnapshots(msgspec.Struct, kw_only=True):
    """The document of `longpole memory --json`.

    Attributes:
        schema: `longpole.memory/1`.
        longpole: Version of the package.
        says: The result in a sentence: that of the device with the gravest failure, else of the fullest one.
        cause: As of that device.
        worst: Its place in `devices`.
        sources: The files.
        devices: In order of files and numbers.
        refused: Files of a folder that could not be read, with the reason.
        unknown: Everything not known, in one place; collected when the value is made.
    """

    schema: str
    longpole: str
    says: str
    cause: Cause
    worst: int
    sources: list[MemorySource]
    devices: list[MemoryDevice]
    refused: list[str] = []
    unknown: list[UnknownEntry] = []

    def __post_init__(self) -> None:
        """Collect what is not known, unless a reader brought it along."""
        if not self.unknown:
            self.unknown = unknown_values(self)


def memory_schema() -> bytes:
    """Return the JSON Schema of `longpole memory --json`."""
    return document_schema(MemorySnapshots, SCHEMA)


def make_snapshots(
    sources: list[MemorySource], devices: list[MemoryDevice], refused: list[str], *, version: str
) -> MemorySnapshots:
    """Put measured devices into a document.

    Args:
        sources: The files.
        devices: At least one.
        refused: What could not be read.
        version: Version of the package.
    """
    worst = max(range(len(devices)), key=lambda place: (_GRAVITY[devices[place].cause], devices[place].reserved_bytes))
    chosen = devices[worst]
    return MemorySnapshots(
        schema=SCHEMA,
        longpole=version,
        says=f"{called(chosen)}: {chosen.says}",
        cause=chosen.cause,
        worst=worst,
        sources=sources,
        devices=devices,
        refused=refused,
    )


_GRAVITY: Final[dict[Cause, int]] = {"": 0, "unknown": 1, "limit": 2, "out_of_memory": 3, "fragmentation": 3}


def called(device: MemoryDevice) -> str:
    """Return how a device is called: by rank and number."""
    rank = f"rank {device.rank} " if device.rank is not None else ""
    return f"{rank}device {device.device}"


def make_source(path: str, snapshot: AllocatorSnapshot) -> MemorySource:
    """Describe a file, and what of it could not be read."""
    words = {"segment": "segment", "block": "block", "entry": "entry of history"}
    plural = {"entry": "entries of history"}
    notes = [
        f"{format_count(snapshot.skipped[kind], noun, plural.get(kind, ''))} left out: size or state is missing"
        for kind, noun in words.items()
        if snapshot.skipped.get(kind)
    ]
    if odd := snapshot.skipped.get("segment_sum"):
        notes.append(f"{format_count(odd, 'segment')} whose blocks do not add up to its size; blocks count")
    return MemorySource(path=path, skipped=sum(snapshot.skipped.get(kind, 0) for kind in words), notes=notes)


def make_device(snapshot: AllocatorSnapshot, use: DeviceUse, *, source: int, rank: int | None) -> MemoryDevice:
    """Put one measured device into the document."""
    failures = [_failure(failure) for failure in use.failures]
    last = failures[-1] if failures else None
    expandable = snapshot.settings.get("expandable_segments")
    free_bytes = use.free_bytes
    return MemoryDevice(
        source=source,
        rank=rank,
        device=use.device,
        cause=last.verdict if last is not None else "",
        says=last.says if last is not None else _says(use),
        segments=use.segments,
        blocks=use.blocks,
        reserved_bytes=use.reserved_bytes,
        allocated_bytes=use.allocated_bytes,
        requested_bytes=_or(use.requested_bytes, _NO_REQUESTED),
        awaiting_free_bytes=use.awaiting_free_bytes,
        free_in_segments_bytes=free_bytes,
        releasable_bytes=use.releasable_bytes,
        largest_free_block_bytes=use.largest_free_bytes,
        fragmentation_share=1 - use.largest_free_bytes / free_bytes if free_bytes else 0.0,
        request_bytes=last.request_bytes if last is not None else _NO_FAILURE,
        device_free_bytes=last.device_free_bytes if last is not None else _NO_DEVICE_FREE,
        device_total_bytes=_or(snapshot.device_total_bytes, _NO_TOTAL),
        expandable_segments=expandable if isinstance(expandable, bool) else _NO_SETTINGS,
        sizes=use.sizes,
        history_entries=use.history,
        peak_requested_bytes=_or(use.peak_requested_bytes, _NO_HISTORY),
        peak_reserved_bytes=_or(use.peak_reserved_bytes, _NO_HISTORY),
        segments_returned=use.returned,
        pools=[_pool(pool) for pool in use.pools],
        sites=[_site(site, use) for site in use.sites[:SITES_MAX]],
        failures=failures,
        try_next=advise(use, expandable=expandable is True),
    )


def _or(value: int, why: Unknown) -> int | Unknown:
    return why if value == NOT_WRITTEN else value


def _pool(pool: PoolUse) -> MemoryPool:
    return MemoryPool(
        stream=pool.stream,
        pool=list(pool.pool),
        size_class="large" if pool.is_large else "small",
        segments=pool.segments,
        reserved_bytes=pool.reserved_bytes,
        allocated_bytes=pool.allocated_bytes,
        awaiting_free_bytes=pool.awaiting_free_bytes,
        free_bytes=pool.free_bytes,
        largest_free_block_bytes=pool.largest_free_bytes,
    )


def _site(site: SiteUse, use: DeviceUse) -> MemorySite:
    return MemorySite(
        line=site.line,
        function=site.function,
        allocated_bytes=site.allocated_bytes,
        blocks=site.blocks,
        share=site.allocated_bytes / use.allocated_bytes if use.allocated_bytes else 0.0,
    )


def _failure(failure: Failure) -> MemoryFailure:
    return MemoryFailure(
        verdict=failure.verdict,
        says=_why_failed(failure),
        request_bytes=failure.request_bytes,
        device_free_bytes=_or(failure.device_free_bytes, _NO_DEVICE_FREE),
        free_in_segments_bytes=_or(failure.free_bytes, _LATER),
        pool_free_bytes=_or(failure.pool_free_bytes, _LATER),
        largest_free_block_bytes=_or(failure.largest_free_bytes, _LATER),
        gather_bytes=failure.gather_bytes,
        short_bytes=failure.short_bytes,
        time_us=_or(failure.time_us, _NO_TIME),
        line=failure.line,
        function=failure.function,
        phase=failure.phase,
        entries_after=failure.entries_after,
    )


def _why_failed(failure: Failure) -> str:
    asked, outside = binary(failure.request_bytes), binary(max(failure.device_free_bytes, 0))
    largest = binary(failure.largest_free_bytes)
    if failure.verdict == "fragmentation" and failure.free_bytes < failure.request_bytes:
        return (
            f"a request of {asked} failed although {binary(failure.free_bytes)} inside segments and {outside} of the"
            f" driver's would hold it together: the largest piece inside is {largest}"
        )
    if failure.verdict == "fragmentation":
        return (
            f"a request of {asked} failed although {binary(failure.free_bytes)} are free inside segments: the largest"
            f" piece is {largest}, and the driver had {outside} left"
        )
    if failure.verdict == "out_of_memory":
        return (
            f"a request of {asked} failed, and all that is free would not have held it: {binary(failure.free_bytes)}"
            f" inside segments and {outside} of the driver's, {binary(failure.short_bytes)} too little"
        )
    if failure.verdict == "limit":
        return (
            f"a request of {asked} failed although the driver had {outside} left: a limit of the process was reached"
            " (set_per_process_memory_fraction), or another process took it"
        )
    return f"a request of {asked} failed; what was free then is not known"


def _says(use: DeviceUse) -> str:
    said = f"{binary(use.allocated_bytes)} of {binary(use.reserved_bytes)} reserved are allocated; no request failed"
    if use.releasable_bytes * _WORTH_RELEASING > use.reserved_bytes:
        said += f", and {binary(use.releasable_bytes)} could go back to the driver"
    return said


_WORTH_RELEASING: Final = 10  # a tenth of what is reserved


def binary(size_bytes: int) -> str:
    """Write a size in binary units, as PyTorch's own messages do.

    >>> binary(20_937_965_568), binary(536_870_912), binary(12)
    ('19.50 GiB', '512.00 MiB', '12 B')
    """
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size_bytes >= 1 << power:
            return f"{size_bytes / (1 << power):,.2f} {unit}"
    return f"{size_bytes} B"


# ------------------------------------------------------------------------------------------------------- advice


def advise(use: DeviceUse, *, expandable: bool) -> list[str]:
    """Return what would help one device, most promising first."""
    last = use.failures[-1] if use.failures else None
    said: list[str] = []
    if last is not None and last.verdict == "fragmentation":
        said += _against_pieces(use, last, expandable=expandable)
    if last is not None and last.verdict == "out_of_memory":
        said += _against_want(use, last)
    if last is not None and last.verdict == "limit":
        said.append("raise set_per_process_memory_fraction, or look what else runs on the device")
    if last is not None and last.verdict == "unknown":
        said.append("take the snapshot at the failure: torch._C._cuda_attach_out_of_memory_observer")
    if use.returned >= _MANY_RETURNS:
        said.append(
            f"segments went back to the driver and others came {format_count(use.returned, 'time')}: each time the"
            " allocator waits for the device (cause allocator_retries)"
        )
    if not use.history:
        said.append("record a history for the peak and for who asked: torch.cuda.memory._record_memory_history()")
    return said


_MANY_RETURNS: Final = 3


def _against_pieces(use: DeviceUse, last: Failure, *, expandable: bool) -> list[str]:
    gather = f"{binary(last.gather_bytes)} of the free {binary(last.free_bytes)}"
    if expandable:
        said = ["expandable_segments is on already: look which pools and streams hold the free pieces"]
    else:
        said = [
            f"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: the request needs {gather} beside what the driver had"
            " left; test it with graph pools and sleep modes, which it has conflicted with"
        ]
    if last.largest_free_bytes != NOT_WRITTEN and last.pool_free_bytes < last.gather_bytes:
        said.append("most of what is free belongs to other streams or pools, which do not serve this request")
    if use.sizes > 1:
        said.append(f"fewer sizes ({use.sizes} different ones above 1 MiB are live): pad, or sort into buckets")
    said.append("the largest batch first, so that later ones reuse its blocks; free together what was made together")
    return said


def _against_want(use: DeviceUse, last: Failure) -> list[str]:
    said = [f"{binary(last.short_bytes)} must go: a smaller batch, recomputation of activations, sharding or offload"]
    known: Sequence[SiteUse] = [site for site in use.sites if site.line]
    if known:
        said.insert(0, f"look at {known[0].line} ({known[0].function}): it holds {binary(known[0].allocated_bytes)}")
    return said
