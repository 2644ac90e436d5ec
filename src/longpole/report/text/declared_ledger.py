"""The page of `longpole ledger`: what a unit waits for, by object and by event, and what would save most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.declared_ledger import PART_WORDS
from longpole.report.escape import escape
from longpole.report.text.figures import scale_for
from longpole.report.text.layout import Style, pad, shorten, wrap
from longpole.report.text.page import NARROWEST
from longpole.units import NS_PER_MS, format_bytes, format_count, format_ns

if TYPE_CHECKING:
    from longpole.report.declared_ledger import DeclaredLedger, LedgerEvent, LedgerFigures, LedgerSaving

_LINES: Final = 4
_NAME_WIDTH: Final = 10
_BYTES_WIDTH: Final = 10
_COLUMN: Final = 9
_EVENTS_SHOWN: Final = 8
_EVENT_NAME_WIDTH: Final = 26
_SHARES_FROM: Final = 0.005  # below, a part rounds to 0 %

_COLUMNS: Final = (
    ("service_ms", "service"),
    ("hidden_ms", "hidden"),
    ("exposed_ms", "exposed"),
    ("serialization_exposed_ms", "serial."),
    ("back_pressure_ms", "stalled"),
    ("wait_ms", "waits"),
)
_LEFT_OUT_WHERE_NARROW: Final = ("service", "hidden")
_ONLY_WHERE_THERE: Final = ("serialization_exposed_ms", "back_pressure_ms")


def render_declared_ledger(ledger: DeclaredLedger, *, width: int, color: bool) -> str:
    """Write what declared events take of a unit of work.

    Args:
        ledger: The ledger.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.

    Returns:
        Lines of at most that many columns, each with its line end. Everything that comes from a file is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    sections = [
        _render_who(ledger, style),
        _render_verdict(ledger, style),
        _render_objects(ledger, style),
        _render_parts(ledger, style),
        _render_events(ledger, style),
        _render_notes(ledger, style),
        _render_next(ledger, style),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _render_who(ledger: DeclaredLedger, style: Style) -> list[str]:
    brought = [
        f"{number:,.9g} {noun}{'' if number == 1 else 's'} a {whole}"
        for number, noun, whole in (
            (ledger.requests_per_unit, "request", "unit"),
            (ledger.tokens_per_unit, "token", "unit"),
            (ledger.units_per_run, "unit", "run"),
        )
        if number is not None
    ]
    parts = [escape(ledger.source)] if ledger.source else []
    parts += [f"{format_count(len(ledger.events), 'declared event')}, for one unit of work", *brought]
    return wrap(" · ".join(parts), style.width, rest="  ")


def _render_verdict(ledger: DeclaredLedger, style: Style) -> list[str]:
    title = "EXPOSED" if ledger.total.wait_ms > 0 else "HIDDEN"
    lines = wrap(escape(ledger.says), style.width, first=title + "  ", rest="  ", max_lines=_LINES)
    lines[0] = style.verdict(title) + lines[0][len(title) :]
    return lines


def _render_objects(ledger: DeclaredLedger, style: Style) -> list[str]:
    """Show each object that has events; figures are rounded together, so that each column adds up."""
    shown = {name: entry for name, entry in ledger.by_object.items() if entry.events}
    total = ledger.total
    scale = scale_for(_ns(max(total.service_ms + total.serialization_ms, total.wait_ms)))
    rows: dict[str, list[str]] = {name: [] for name in (*shown, "all")}
    columns = _columns(total)
    for field, _ in columns:
        figures_ns = [_ns(getattr(entry, field)) for entry in shown.values()]
        for row, cell in zip(rows.values(), [*scale.spread(figures_ns), scale.write(sum(figures_ns))], strict=True):
            row.append(cell)
    if len(shown) == 1:
        del rows["all"]
    sizes = {**{name: format_bytes(entry.bytes) for name, entry in shown.items()}, "all": format_bytes(total.bytes)}
    heads = [title for _, title in columns]
    column = max(_COLUMN, *(len(cell) + 1 for row in rows.values() for cell in row))
    kept = [head not in _LEFT_OUT_WHERE_NARROW for head in heads]
    has_room = 2 + _NAME_WIDTH + _BYTES_WIDTH + column * len(heads) <= style.width
    lines = [style.title("BY OBJECT", f"{scale.unit} a unit; what is exposed, serialised and stalled is waited for")]
    for name, cells in {"": heads, **rows}.items():
        size = f"{sizes.get(name, 'bytes'):>{_BYTES_WIDTH}}" if has_room else ""
        texts = [f"{cell:>{column}}" for cell, keep in zip(cells, kept, strict=True) if keep or has_room]
        line = shorten(f"  {pad(name, _NAME_WIDTH)}{size}{''.join(texts)}", style.width)
        lines.append(line if name else style.faint(line))
    return lines


def _columns(total: LedgerFigures) -> list[tuple[str, str]]:
    """Return field and title of each column: serialisation and stalls only where there are some."""
    found = [(field, title) for field, title in _COLUMNS if field not in _ONLY_WHERE_THERE or getattr(total, field) > 0]
    # Without them, what is waited for is what is exposed.
    return found[:-1] if len(found) + len(_ONLY_WHERE_THERE) == len(_COLUMNS) else found


def _render_parts(ledger: DeclaredLedger, style: Style) -> list[str]:
    """Say what the time of each object is made of, hidden or not."""
    shown = {name: entry for name, entry in ledger.by_object.items() if entry.events and entry.dominant_part}
    if not shown:
        return []
    lines = [style.title("MADE OF", "hidden or not; frequency: fixed latency paid again and again")]
    for name, entry in shown.items():
        lines += wrap(_parts(entry), style.width, first=f"  {pad(name, _NAME_WIDTH)}  ", rest=" " * (_NAME_WIDTH + 4))
    return lines


def _parts(figures: LedgerFigures) -> str:
    """Write the parts with their shares, the largest first."""
    whole_ms = sum(figures.parts_ms.values())
    if whole_ms <= 0:
        return "no time"
    ordered = sorted(figures.parts_ms.items(), key=lambda item: -item[1])
    texts = [f"{PART_WORDS[part]} {ms / whole_ms:.0%}" for part, ms in ordered if ms / whole_ms >= _SHARES_FROM]
    return ", ".join(texts)


def _render_events(ledger: DeclaredLedger, style: Style) -> list[str]:
    ordered = sorted(ledger.events, key=lambda event: -event.wait_ms)
    shown = ordered[:_EVENTS_SHOWN]
    lines = [style.title("EVENTS", "the longest wait first, with what one change to it alone would save")]
    for event in shown:
        lines += _event_lines(event, style)
    if len(shown) < len(ordered):
        left_ms = sum(event.wait_ms for event in ordered[_EVENTS_SHOWN:])
        lines.append(f"  and {len(ordered) - len(shown)} more, {_ms(left_ms)} together; --json has them all")
    return lines


def _event_lines(event: LedgerEvent, style: Style) -> list[str]:
    name = shorten(escape(event.name), _EVENT_NAME_WIDTH)
    waits = f"waits {_ms(event.wait_ms)}" if event.wait_ms > 0 else "waits for none of it"
    title = pad(name or "(no name)", _EVENT_NAME_WIDTH)
    head = shorten(f"  {event.event:>3}  {title}  {pad(event.object, 8)}  {waits}", style.width)
    told = [f"made of {_parts(event)}"]
    told += [] if event.wait_ms <= 0 else _saving_texts(event)
    if event.path:
        told.insert(1, f"as measured on {escape(event.path)}")
    if event.moved_bytes != event.bytes:
        told.insert(1, f"moves {format_bytes(event.moved_bytes)} for {format_bytes(event.bytes)}")
    if event.queue is not None:
        told.append(_queue_text(event))
    return [head] + [line for text in told for line in wrap(text, style.width, first=" " * 7, rest=" " * 9)]


def _saving_texts(event: LedgerEvent) -> list[str]:
    """Say which change saves most, and what hiding all of it would take."""
    by_change = {saving.change: saving for saving in event.savings}
    texts = []
    largest = by_change.get(event.largest_saving)
    if largest is not None:
        texts.append(f"saves most: {largest.step}, {_saved(largest)}")
    overlap = by_change.get("overlap")
    if overlap is not None and overlap.at_most_ms > 0:
        beside = f"{_ms(overlap.needs_window_ms)} of independent work beside {_each(event)}"
        declared = "; none is declared" if isinstance(overlap.saves_ms, Unknown) else ""
        texts.append(f"hidden in full: by {beside}{declared}")
    return texts


def _each(event: LedgerEvent) -> str:
    return "it" if event.frequency == 1 and event.per in ("unit", "run") else "each operation"


def _saved(saving: LedgerSaving) -> str:
    saves_ms = saving.saves_ms if isinstance(saving.saves_ms, float) else 0.0
    more = f" (going on: at most {_ms(saving.at_most_ms)})" if _ms(saving.at_most_ms) != _ms(saves_ms) else ""
    return f"{_ms(saves_ms)}{more}"


def _queue_text(event: LedgerEvent) -> str:
    queue = event.queue
    if queue is None:
        return ""
    if isinstance(queue.fill_ms, Unknown):
        return f"its queue holds {format_bytes(queue.peak_bytes)} at most and is never full"
    full = f"its queue is full after {_ms(queue.fill_ms)}, then the producer stalls {_ms(queue.stall_ms)}"
    return f"{full}; the queue is empty again {_ms(queue.empty_after_ms)} later"


def _render_notes(ledger: DeclaredLedger, style: Style) -> list[str]:
    if not ledger.notes:
        return []
    lines = [style.title("TAKEN AS DECLARED")]
    for note in ledger.notes:
        lines += wrap(escape(note), style.width, first="  ", rest="    ", max_lines=_LINES)
    return lines


def _render_next(ledger: DeclaredLedger, style: Style) -> list[str]:
    if all(event.path for event in ledger.events):
        return []
    text = "These figures are declared, not measured: longpole bench io measures what the paths of a machine carry."
    return [style.faint(line) for line in wrap(text, style.width)]


def _ns(dur_ms: float) -> int:
    return round(dur_ms * NS_PER_MS)


def _ms(dur_ms: float) -> str:
    return format_ns(dur_ms * NS_PER_MS)
