"""COLLECTIVES: how much of each kind waits and how much moves bytes, who waits for whom, how good the clocks are."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.layout import columns_of, pad, shorten, wrap
from longpole.report.text.words import plural, ranks_as_text, unit_noun
from longpole.report.worst import steady_units
from longpole.units import format_bytes, format_ns

if TYPE_CHECKING:
    from longpole.records.collectives import CollectiveEntry
    from longpole.report.document import Report
    from longpole.report.text.figures import Scale
    from longpole.report.text.layout import Style

_SHOWN: Final = 6
_LATE_SHOWN: Final = 4
_RANKS_NAMED: Final = 4
_NAME, _COUNT, _BYTES, _FIGURE = 30, 6, 10, 10
_PERSISTENT: Final = 0.995


def render_collectives(report: Report, scale: Scale, style: Style) -> list[str]:
    """Show the kinds of collectives, the longest first; nothing where none was recorded.

    Times are means per unit and rank, as in the ledger; calls and bytes per unit.
    """
    if not report.collectives:
        return []
    n_units = max((len(steady_units(row)) for row in report.ranks), default=0) or max(report.unit.count, 1)
    noun = unit_noun(report.unit.kind)
    title = "COLLECTIVES"
    head = f"{'calls':>{_COUNT}}{'bytes':>{_BYTES}}{'took':>{_FIGURE}}{'waiting':>{_FIGURE}}{'moving':>{_FIGURE}}"
    lines = [style.title(title, f"{scale.unit} per {noun}, mean of the ranks in them")]
    lines.append(" " * (2 + _NAME) + head)
    shown = report.collectives[:_SHOWN]
    several = Counter((entry.kind, entry.group, tuple(entry.members_present)) for entry in shown)
    for entry in shown:
        is_one = several[entry.kind, entry.group, tuple(entry.members_present)] == 1
        lines += _entry_lines(
            entry, _name(entry) if is_one else f"{_name(entry)} {escape(entry.dtype)}", n_units, scale, style
        )
    lines += _not_split(shown, style)
    if len(report.collectives) > _SHOWN:
        lines.append(f"  and {len(report.collectives) - _SHOWN} more; --json has them")
    lines += _late(report, style)
    lines += _links(report, style)
    clocks = _clocks(report)
    if clocks:
        lines += wrap(clocks, style.width, first="  ", rest="    ", max_lines=2)
    return lines


def _entry_lines(entry: CollectiveEntry, name: str, n_units: int, scale: Scale, style: Style) -> list[str]:
    shares = n_units * max(len(entry.members_present), 1)
    count = entry.count / n_units
    calls = f"{count:,.0f}" if count == int(count) else f"{count:,.1f}"
    size = format_bytes(entry.bytes // n_units) if not isinstance(entry.bytes, Unknown) else "?"
    waiting = moving = "?"
    if not isinstance(entry.skew_ns, Unknown):
        waiting, moving = scale.spread([entry.skew_ns // shares, (entry.duration_ns - entry.skew_ns) // shares])
    left = f"  {pad(name, _NAME)}{calls:>{_COUNT}}{size:>{_BYTES}}"
    left += f"{scale.write(entry.duration_ns // shares):>{_FIGURE}}{waiting:>{_FIGURE}}{moving:>{_FIGURE}}"
    remark = _remark(entry)
    room = style.width - columns_of(left) - 2
    if columns_of(remark) <= room:
        return [f"{left}  {remark}".rstrip()]
    return [left, *wrap(remark, style.width, first="      ", rest="      ", max_lines=2)]


def _name(entry: CollectiveEntry) -> str:
    """Say which operations they are: kind, role or group, and the ranks where neither tells them."""
    kind = "of unnamed kind" if entry.kind == "unknown" else escape(entry.kind)
    if entry.role:
        where = escape(entry.role)
        return f"{kind} {where}" if entry.role == "all ranks" else f"{kind} {where}, {_few(entry.members)}"
    if entry.group:
        return f"{kind} group {escape(entry.group)} {_few(entry.members)}"
    return f"{kind} {ranks_as_text(entry.members_present)}"


def _few(ranks: list[int]) -> str:
    return f"[{', '.join(map(str, ranks[:_RANKS_NAMED]))}{' …' if len(ranks) > _RANKS_NAMED else ''}]"


def _remark(entry: CollectiveEntry) -> str:
    """Say who is last, at what rate the bytes move, and what bounds that."""
    parts = []
    if not isinstance(entry.culprit_rank, Unknown):
        share = entry.culprit_share if not isinstance(entry.culprit_share, Unknown) else 0.0
        often = "always" if share > _PERSISTENT else f"in {share:.0%} of them"
        most = " and causes most of the waiting" if 2 * share < 1 else ""
        parts.append(f"rank {entry.culprit_rank} is last {often}{most}")
    if not isinstance(entry.algbw_gb_per_s, Unknown):
        least = "at least " if entry.rate_from == "duration" else ""
        parts.append(f"{least}{_rate(entry.algbw_gb_per_s)} GB/s")
    bound = {"latency": "bound by latency", "bandwidth": "bound by bandwidth"}.get(entry.bound)
    if bound is not None and not isinstance(entry.model, Unknown) and entry.model.source == "record":
        bound += " (by your record)"
    return "; ".join([*parts, *([bound] if bound else [])])


def _not_split(entries: list[CollectiveEntry], style: Style) -> list[str]:
    """Say why waiting and moving are not told apart, each reason once."""
    kinds: dict[str, list[str]] = {}
    for entry in entries:
        if isinstance(entry.skew_ns, Unknown):
            named = kinds.setdefault(entry.skew_ns.unknown, [])
            if entry.kind not in named:
                named.append(entry.kind)
    lines = []
    for why, named in kinds.items():
        whose = f"{', '.join(named)}: " if len(kinds) > 1 or len(named) < len({entry.kind for entry in entries}) else ""
        lines += wrap(f"? {escape(whose)}{escape(why)}", style.width, first="  ", rest="    ", max_lines=2)
    return lines


def _rate(gb_per_s: float) -> str:
    return f"{gb_per_s:.3g}"


def _late(report: Report, style: Style) -> list[str]:
    """Say who was late and why, but for what the headline says already."""
    said = report.headline.says if not isinstance(report.headline, Unknown) else ""
    sentences = [entry.says for entry in report.stragglers if entry.says != said]
    lines = []
    for text in sentences[:_LATE_SHOWN]:
        lines += wrap(escape(text), style.width, first="  ", rest="      ", max_lines=2)
    if len(sentences) > _LATE_SHOWN:
        lines.append(f"  and {len(sentences) - _LATE_SHOWN} more ranks; --json has them")
    return lines


def _links(report: Report, style: Style) -> list[str]:
    slow = [row for row in report.links if row.slow]
    if not slow:
        return []
    pairs = ", ".join(f"{row.from_rank}→{row.to_rank} {_rate(row.gb_per_s)} GB/s" for row in slow[:4])  # type: ignore[arg-type]
    return [shorten(f"  slow {plural(len(slow), 'link')}: {pairs}", style.width)]


def _clocks(report: Report) -> str:
    """Say how the ranks' clocks were brought together, and how far off they may be."""
    if len(report.clock) <= 1:
        return ""
    lost = [entry.rank for entry in report.clock if entry.method == "none"]
    if lost:
        return f"clocks of {ranks_as_text(lost)} cannot be aligned with the others'"
    known = [entry.uncertainty_ns for entry in report.clock if isinstance(entry.uncertainty_ns, int)]
    moved = [entry for entry in report.clock if entry.method == "matched_ends" and entry.offset_ns]
    parts = ["clocks: base times" if len(moved) < len(report.clock) - 1 else "clocks: ends of matched collectives"]
    if len(moved) == 1 and isinstance(moved[0].offset_ns, int):
        parts.append(f"rank {moved[0].rank} moved by {_signed(moved[0].offset_ns)} by ends of matched collectives")
    elif moved:
        parts.append(f"{ranks_as_text(entry.rank for entry in moved)} moved by ends of matched collectives")
    if len(known) == len(report.clock):
        parts.append(f"uncertain by at most {format_ns(max(known))}")
    else:
        parts.append("how far off they are is not known")
    return ", ".join(parts)


def _signed(offset_ns: int) -> str:
    return f"{'-' if offset_ns < 0 else '+'}{format_ns(abs(offset_ns))}"
