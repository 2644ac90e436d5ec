"""WHERE A STEP GOES: the ledger as a table whose figures add up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.figures import percent, spread_percent
from longpole.report.text.layout import bar, columns_of, pad, shorten
from longpole.report.text.words import plural, unit_noun, with_article
from longpole.report.worst import whole_units

if TYPE_CHECKING:
    from longpole.records.ledger import ObjectTime
    from longpole.report.document import RankEntry, Report
    from longpole.report.text.figures import Scale
    from longpole.report.text.layout import Style

_NAME, _FIGURE, _SHARE = 12, 9, 9
_BAR: Final = 16
_NO_PERIOD: Final = "not_separable"  # a unit whose period is 0 is left out of period statistics only


def render_ledger(report: Report, scale: Scale, style: Style) -> list[str]:
    """Show where the mean unit's time went, by object; every nanosecond is in exactly one row."""
    ledger = report.ledger
    noun = unit_noun(report.unit.kind)
    title = "WHERE THE TIME GOES" if report.unit.kind == "trace" else f"WHERE {with_article(noun).upper()} GOES"
    lines = [style.title(title, f"{scale.unit}, {basis_of(report)}")]
    lines.append(" " * (2 + _NAME) + f"{'exposed':>{_FIGURE}}{'':{_SHARE}}{'hidden':>{_FIGURE}}")
    figures = dict(zip(ledger.objects, scale.spread([t.exposed_ns for t in ledger.objects.values()]), strict=True))
    parts_ns = [time.exposed_ns for time in ledger.objects.values()]
    shares = dict(zip(ledger.objects, spread_percent(parts_ns, ledger.wall_ns), strict=True))
    largest_ns = max([*parts_ns, 1])
    for name in _shown(ledger.objects):
        time = ledger.objects[name]
        left = f"  {pad(escape(name), _NAME)}{figures[name]:>{_FIGURE}}{shares[name]:>{_SHARE}}"
        left += f"{_hidden(time, scale):>{_FIGURE}}"
        drawn = bar(time.exposed_ns / largest_ns, _BAR)
        room = style.width - columns_of(left) - columns_of(drawn) - 4
        note = _note(name, time, scale, room)
        lines.append(f"{left}  {style.bar(drawn)}{'  ' if drawn and note else ''}{note}".rstrip())
    total = f"  {pad('sum', _NAME)}{scale.write(ledger.wall_ns):>{_FIGURE}}{'':{_SHARE}}{'':{_FIGURE}}  "
    lines.append(total + style.faint(shorten("every nanosecond is in one row", style.width - len(total))))
    return lines


def basis_of(report: Report) -> str:
    """Say of what the table is the mean."""
    counts = [_count_in_mean(report, row) for row in report.ranks]
    ranks = plural(len({row.rank for row in report.ranks}), "rank")
    if len(report.ranks) != len({row.rank for row in report.ranks}):
        ranks = f"{plural(len(report.ranks), 'device')} of {ranks}"
    if report.unit.kind == "trace":
        return f"the whole record, mean of {ranks}" if len(report.ranks) > 1 else "the whole record"
    and_ranks = f" and {ranks}" if len(report.ranks) > 1 else ""
    if not any(counts):
        return f"mean of {plural(report.unit.count, report.unit.kind)}{and_ranks}; none is steady"
    low, high = min(counts), max(counts)
    noun = unit_noun(report.unit.kind) + ("" if high == 1 else "s")
    n_units = f"{high}" if low == high else f"{low} to {high}"
    return f"{'' if high == 1 and not and_ranks else 'mean of '}{n_units} steady {noun}{and_ranks}"


def _count_in_mean(report: Report, row: RankEntry) -> int:
    """Count a row's units that the mean is over: all but those left out, for any reason that is not their period's."""
    out = {entry.unit for entry in report.unit.left_out if entry.rank in (None, row.rank) and entry.why != _NO_PERIOD}
    return sum(unit.name not in out for unit in whole_units(row))


def _shown(objects: dict[str, ObjectTime]) -> list[str]:
    """Return the objects worth a row: the largest first, what is not known last."""
    shown = [name for name, time in objects.items() if name == "compute" or not _is_nothing(time)]
    return sorted(shown, key=lambda name: (name == "unknown", -objects[name].exposed_ns))


def _is_nothing(time: ObjectTime) -> bool:
    return not time.exposed_ns and not isinstance(time.hidden_ns, Unknown) and not _whole(time.hidden_ns)


def _hidden(time: ObjectTime, scale: Scale) -> str:
    if isinstance(time.hidden_ns, int):
        return scale.write(time.hidden_ns)
    return "?" if isinstance(time.hidden_ns, Unknown) else "–"


def _note(name: str, time: ObjectTime, scale: Scale, room: int) -> str:
    """Return the longest remark on a row that fits."""
    for remark in _remarks(name, time, scale):
        if columns_of(remark) <= room:
            return remark
    return ""


def _remarks(name: str, time: ObjectTime, scale: Scale) -> list[str]:
    if isinstance(time.waiting_ns, int) and isinstance(time.service_ns, int):
        waiting, service = scale.write(time.waiting_ns), scale.write(time.service_ns)
        share = percent(time.waiting_ns, time.service_ns)
        return [f"{waiting} of its {service} is waiting", f"{waiting} of {service} waits", f"{share} waits"]
    if isinstance(time.hidden_ns, Unknown):
        return [f"? {escape(time.hidden_ns.unknown)}", "? reason under NOT KNOWN", "? see below"]
    if name == "collective" and time.exposed_ns:
        return ["waiting and moving, not told apart", "waiting + moving"]
    return []


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0
