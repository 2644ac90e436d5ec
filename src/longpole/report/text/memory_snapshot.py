"""The page of `longpole memory`: why a request failed, what is free in which pieces, who holds the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.memory_snapshot import binary, called
from longpole.report.text.layout import Style, bar, pad, shorten, wrap
from longpole.report.text.page import NARROWEST
from longpole.units import format_count

if TYPE_CHECKING:
    from longpole.report.memory_snapshot import MemoryDevice, MemoryFailure, MemoryPool, MemorySnapshots

_LINES: Final = 4
_SITES_SHOWN: Final = 8
_POOLS_SHOWN: Final = 6
_FAILURES_SHOWN: Final = 5
_OTHERS_SHOWN: Final = 16
_NAME_WIDTH: Final = 26
_BYTES_WIDTH: Final = 12
_BAR_WIDTH: Final = 12

_TITLES: Final = {
    "fragmentation": "FREE, BUT IN PIECES",
    "out_of_memory": "TOO LITTLE MEMORY",
    "limit": "A LIMIT",
    "unknown": "A REQUEST FAILED",
    "": "MEMORY",
}


def render_memory(document: MemorySnapshots, *, width: int, color: bool) -> str:
    """Write what snapshots show; in detail the device with the gravest failure, else the fullest one.

    Args:
        document: The document.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.

    Returns:
        Lines of at most that many columns, each with its line end. Everything that comes from a file is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    device = document.devices[document.worst]
    sections = [
        _who(document, style),
        _verdict(document, style),
        _amounts(device, style),
        _pools(device, style),
        _sites(device, style),
        _failures(device, style),
        _others(document, style),
        _advice(device, style),
        _notes(document, device, style),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _who(document: MemorySnapshots, style: Style) -> list[str]:
    device = document.devices[document.worst]
    parts = [escape(document.sources[device.source].path)]
    if len(document.devices) > 1:
        parts.append(
            f"{called(device)}, one of {len(document.devices)} in {format_count(len(document.sources), 'file')}"
        )
    parts += [format_count(device.segments, "segment"), format_count(device.blocks, "block")]
    if device.history_entries:
        parts.append(format_count(device.history_entries, "entry of history", "entries of history"))
    return wrap(" · ".join(parts), style.width, rest="  ")


def _verdict(document: MemorySnapshots, style: Style) -> list[str]:
    title = _TITLES[document.cause]
    lines = wrap(escape(document.says), style.width, first=title + "  ", rest="  ", max_lines=_LINES)
    lines[0] = style.verdict(title) + lines[0][len(title) :]
    return lines


def _amounts(device: MemoryDevice, style: Style) -> list[str]:
    rows: list[tuple[str, int | Unknown, str]] = [
        ("reserved", device.reserved_bytes, "held from the driver"),
        ("  allocated", device.allocated_bytes, _rounding(device)),
        ("  awaiting another stream", device.awaiting_free_bytes, "given back, not free yet"),
        (
            "  free inside segments",
            device.free_in_segments_bytes,
            f"largest piece {binary(device.largest_free_block_bytes)}",
        ),
        ("    of it releasable", device.releasable_bytes, "by empty_cache"),
        ("outside, when it failed", device.device_free_bytes, "of the driver's"),
        ("most reserved before", device.peak_reserved_bytes, "in the recorded history"),
    ]
    lines = [style.title("WHAT IS HELD", called(device))]
    for name, amount, remark in rows:
        if isinstance(amount, Unknown) or (amount == 0 and name.startswith("  ") and "allocated" not in name):
            continue
        share = amount / device.reserved_bytes if device.reserved_bytes else 0.0
        drawn = pad(bar(min(share, 1.0), _BAR_WIDTH), _BAR_WIDTH) if name.startswith("  ") else " " * _BAR_WIDTH
        figures = f"  {pad(name, _NAME_WIDTH)}{binary(amount):>{_BYTES_WIDTH}}  {drawn}  "
        lines.append(f"{figures}{shorten(remark, max(style.width - len(figures), 1))}".rstrip())
    return lines


def _rounding(device: MemoryDevice) -> str:
    if isinstance(device.requested_bytes, Unknown):
        return "live blocks"
    rounded = device.allocated_bytes - device.requested_bytes
    return f"live blocks; {binary(rounded)} of it is rounding" if rounded > 0 else "live blocks"


def _pools(device: MemoryDevice, style: Style) -> list[str]:
    """Show the pools where there is more than the usual pair: pieces of one do not serve another."""
    shown = [pool for pool in device.pools if pool.free_bytes or pool.stream or any(pool.pool)]
    if len({(pool.stream, tuple(pool.pool)) for pool in device.pools}) < 2 or not shown:
        return []
    lines = [style.title("POOLS", "a request is served from those of its stream and size only")]
    lines.append(style.faint(shorten(f"  {pad('', 30)}{'reserved':>12}{'free':>12}{'largest piece':>15}", style.width)))
    for pool in shown[:_POOLS_SHOWN]:
        figures = (binary(pool.reserved_bytes), binary(pool.free_bytes), binary(pool.largest_free_block_bytes))
        line = f"  {pad(_pool_name(pool), 30)}{figures[0]:>12}{figures[1]:>12}{figures[2]:>15}"
        lines.append(shorten(line, style.width))
    if len(shown) > _POOLS_SHOWN:
        lines.append(style.faint(f"  and {len(shown) - _POOLS_SHOWN} more"))
    return lines


def _pool_name(pool: MemoryPool) -> str:
    stream = "default stream" if pool.stream == 0 else f"stream {pool.stream:#x}"
    own = f", pool {pool.pool[0]}:{pool.pool[1]}" if any(pool.pool) else ""
    return f"{stream}, {pool.size_class}{own}"


def _sites(device: MemoryDevice, style: Style) -> list[str]:
    if not any(site.line or site.function for site in device.sites):
        return []
    lines = [style.title("WHO HOLDS IT", "live blocks by the line that allocated them")]
    for site in device.sites[:_SITES_SHOWN]:
        who = escape(f"{site.line} {site.function}".strip()) or "(no stack recorded)"
        figures = f"{binary(site.allocated_bytes):>{_BYTES_WIDTH}}  {site.share:>4.0%}  {site.blocks:>6,} ×  "
        lines.append(f"  {figures}{shorten(who, style.width - len(figures) - 2)}")
    rest = device.sites[_SITES_SHOWN:]
    if rest:
        held = binary(sum(site.allocated_bytes for site in rest))
        lines.append(style.faint(f"  {held:>{_BYTES_WIDTH}}  in {format_count(len(rest), 'more line')}"))
    return lines


def _failures(device: MemoryDevice, style: Style) -> list[str]:
    if not device.failures:
        return []
    lines = [style.title("FAILED REQUESTS", "the last one first")]
    for failure in list(reversed(device.failures))[:_FAILURES_SHOWN]:
        lines += wrap(_failure(failure), style.width, first="  ", rest="    ", max_lines=_LINES)
    if len(device.failures) > _FAILURES_SHOWN:
        lines.append(style.faint(f"  and {len(device.failures) - _FAILURES_SHOWN} before"))
    return lines


def _failure(failure: MemoryFailure) -> str:
    parts = [binary(failure.request_bytes)]
    who = f"{failure.line} {failure.function}".strip()
    if who:
        parts.append(f"asked for by {escape(who)}")
    if failure.phase:
        parts.append(f"in {escape(failure.phase)}")
    for amount, words in (
        (failure.largest_free_block_bytes, "largest piece it could get"),
        (failure.device_free_bytes, "outside"),
    ):
        if not isinstance(amount, Unknown):
            parts.append(f"{words} {binary(amount)}")
    if failure.entries_after:
        parts.append(f"the allocator went on for {failure.entries_after:,} entries")
    return " · ".join(parts)


def _others(document: MemorySnapshots, style: Style) -> list[str]:
    if len(document.devices) < 2:
        return []
    lines = [style.title("ALL DEVICES", "reserved, allocated, free inside segments, largest piece")]
    for device in document.devices[:_OTHERS_SHOWN]:
        figures = (device.reserved_bytes, device.allocated_bytes, device.free_in_segments_bytes)
        cells = "".join(f"{binary(figure):>{_BYTES_WIDTH}}" for figure in (*figures, device.largest_free_block_bytes))
        failed = f"  {device.cause.replace('_', ' ')}" if device.cause else ""
        lines.append(shorten(f"  {pad(called(device), 18)}{cells}{failed}", style.width))
    if len(document.devices) > _OTHERS_SHOWN:
        lines.append(style.faint(f"  and {len(document.devices) - _OTHERS_SHOWN} more (--json has all)"))
    return lines


def _advice(device: MemoryDevice, style: Style) -> list[str]:
    if not device.try_next:
        return []
    lines = [style.title("TRY NEXT")]
    for number, advice in enumerate(device.try_next, 1):
        lines += wrap(escape(advice), style.width, first=f"  {number}. ", rest="     ")
    return lines


def _notes(document: MemorySnapshots, device: MemoryDevice, style: Style) -> list[str]:
    notes = [f"{escape(source.path)}: {escape(note)}" for source in document.sources for note in source.notes]
    notes += [f"not read: {escape(why)}" for why in document.refused]
    if device.cause == "fragmentation":
        notes.append("longpole explain fragmentation says what that proves, and what not")
    return [line for note in notes for line in wrap(note, style.width, rest="  ")]
