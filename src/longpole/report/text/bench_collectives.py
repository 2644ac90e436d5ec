"""The page of `longpole bench collectives`: what each kind takes by size, and which setting is best where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.bench_collectives import DEFAULT_SETTING
from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.layout import Style, wrap
from longpole.report.text.page import NARROWEST
from longpole.report.text.words import plural
from longpole.units import format_bytes, format_ns

if TYPE_CHECKING:
    from longpole.records.bench_collectives import (
        CollectivesBand,
        CollectivesFit,
        CollectivesPoint,
        CollectivesRecord,
    )

_SIZE: Final = 11
_TIME: Final = 11
_RATE: Final = 9
_RATIO: Final = 8
_LEAST_GB_PER_S: Final = 0.001
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_COMPLAINTS: Final = 6
_WORDS: Final = {"passed": "MEASURED", "failed": "INCOMPLETE", "invalid": "INVALID"}


def render_collectives(record: CollectivesRecord, *, width: int, color: bool, written: str = "") -> str:
    """Write the page of a record.

    Args:
        record: What was measured, or read.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.
        written: Where the record was written, empty where it was not.

    Returns:
        Lines of at most that many columns, each with its line end. Everything that comes from a file is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    sections = [_verdict(record, style), _where(record, style)]
    sections += [_kind(record, kind, ranks, style) for kind, ranks in _kinds(record)]
    sections += [_best(record, style), _left_out(record, style), _next(record, style, written)]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def write_size(size_bytes: int) -> str:
    """Write a size in binary units where it is a whole number of them, else in decimal ones.

    >>> write_size(65536), write_size(1_000_000), write_size(12)
    ('64 KiB', '1.00 MB', '12 B')
    """
    for step, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size_bytes >= step and size_bytes % step == 0:
            return f"{size_bytes // step:,} {unit}"
    return format_bytes(size_bytes)


def _kinds(record: CollectivesRecord) -> list[tuple[str, int]]:
    return list(dict.fromkeys((point.kind, point.ranks) for point in record.points))


def _verdict(record: CollectivesRecord, style: Style) -> list[str]:
    title = _WORDS[record.status] if record.origin == "bench" or record.status == "invalid" else "READ"
    lines = wrap(escape(record.says), style.width, first=f"{title}  ", rest="  ")
    paint = style.verdict if record.status == "passed" else style.alarm
    lines[0] = paint(title) + lines[0][len(title) :]
    return lines


def _where(record: CollectivesRecord, style: Style) -> list[str]:
    machine, design = record.machine, record.design
    parts = [machine.backend, escape(machine.device)] if machine.device != "cpu" else [f"{machine.backend} on the host"]
    parts += [f"{escape(name)} {escape(version)}" for name, version in machine.versions.items()]
    if machine.nodes is not None:
        parts.append(plural(machine.nodes, "machine"))
    parts.append(escape(design.dtype))
    if record.origin == "bench":
        parts.append(f"{plural(design.rounds, 'round')} of {design.repeats} repeats in fresh processes")
        parts.append(f"seed {design.seed}")
    elif design.repeats:
        parts.append(f"{design.repeats} iterations a row")
    lines = wrap(" · ".join(part for part in parts if part), style.width)
    timed = f"time: {design.timed}" + ("; P95: nearest rank" if record.origin == "bench" else "")
    lines += wrap(timed, style.width, rest="      ")
    return [style.faint(line) for line in lines]


def _kind(record: CollectivesRecord, kind: str, ranks: int, style: Style) -> list[str]:
    points = [point for point in record.points if (point.kind, point.ranks) == (kind, ranks)]
    fits = [fit for fit in record.fits if (fit.kind, fit.ranks) == (kind, ranks)]
    unchecked = sum(point.correctness == "not_checked" for point in points)
    remark = "" if not unchecked else ", results not checked" if unchecked == len(points) else ", some not checked"
    lines = [style.title(kind, plural(ranks, "rank") + remark)]
    settings = list(dict.fromkeys(point.setting for point in points))
    for setting in settings:
        fit = next((fit for fit in fits if fit.setting == setting), None)
        name = f"{escape(setting)}: " if len(settings) > 1 else ""
        lines += wrap(name + _model(fit), style.width, first="  ", rest="    ")
    if len(settings) == 1:
        return lines + _one_setting(points, style)
    return lines + _several(points, settings, record.best, style)


def _model(fit: CollectivesFit | None) -> str:
    """Say what the fitted curve is, and how far off."""
    if fit is None or fit.why_none or fit.alpha_ns is None or not fit.gb_per_s:
        return f"no cost model: {fit.why_none if fit is not None else 'not fitted'}"
    root = f" + {format_ns(fit.gamma * 1024)} × √(S / 1 MiB)" if fit.gamma and fit.gamma * 1024 >= 1 else ""
    half = f"; latency rules below {format_bytes(fit.half_bytes)}" if fit.half_bytes else ""
    return (
        f"{format_ns(fit.alpha_ns)}{root} + S / {fit.gb_per_s:.3g} GB/s, off by {fit.error_median or 0:.0%}"
        f" (worst {fit.error_max or 0:.0%}) of {plural(fit.sizes, 'size')}{half}"
    )


def _one_setting(points: list[CollectivesPoint], style: Style) -> list[str]:
    """Show sizes with their times and rates, out of place and in place side by side where a log has both."""
    by_size: dict[int, dict[str, CollectivesPoint]] = {}
    for point in points:
        by_size.setdefault(point.bytes, {})[point.placement] = point
    both = len({point.placement for point in points}) > 1
    statistic = points[0].statistic
    head = f"{'size':>{_SIZE}}{statistic:>{_TIME}}" + ("" if both else f"{'P95':>{_TIME}}{'n':>6}")
    head += f"{'algbw':>{_RATE}}{'busbw':>{_RATE}}"
    head += f"{'in place':>{_TIME}}{'algbw':>{_RATE}}{'busbw':>{_RATE}}" if both else ""
    lines = [f"{head}   GB/s", *(_row(size, by_size[size], both=both) for size in sorted(by_size))]
    return [line[: style.width] for line in lines]


def _row(size: int, sides: dict[str, CollectivesPoint], *, both: bool) -> str:
    """Write one size; a figure that is withdrawn says why."""
    text = f"{write_size(size):>{_SIZE}}"
    for placement in ("out_of_place", "in_place") if both else tuple(sides):
        point = sides.get(placement)
        if point is None:
            text += " " * (_TIME + 2 * _RATE)
        elif isinstance(point.time_ns, Unknown):
            text += f"{_time(point):>{_TIME}}" + " " * (2 * _RATE if both else _TIME + 6 + 2 * _RATE)
        else:
            text += f"{format_ns(point.time_ns):>{_TIME}}"
            if not both:
                p95 = "–" if isinstance(point.p95_ns, Unknown) else format_ns(point.p95_ns)
                text += f"{p95:>{_TIME}}{point.repeats or '–':>6}"
            text += f"{_rate(point.algbw_gb_per_s):>{_RATE}}{_rate(point.busbw_gb_per_s):>{_RATE}}"
    return text.rstrip()


def _rate(gb_per_s: float | Unknown) -> str:
    """Write a rate with three figures; what is below a megabyte a second is no rate worth reading."""
    if isinstance(gb_per_s, Unknown):
        return "?"
    if gb_per_s < _LEAST_GB_PER_S:
        return f"<{_LEAST_GB_PER_S:g}"
    return f"{gb_per_s:,.0f}" if gb_per_s >= 100 else f"{gb_per_s:#.3g}"


def _several(
    points: list[CollectivesPoint], settings: list[str], best: list[CollectivesBand], style: Style
) -> list[str]:
    """Show the first setting's times, and how many times faster each other one is; a star where beyond noise."""
    base, others = settings[0], settings[1:]
    room = max((style.width - _SIZE - _TIME - 2 * _RATE) // _RATIO, 1)
    shown = others[: min(room, len(_LETTERS))]
    lines = wrap(
        ", ".join(f"{_LETTERS[place]} = {escape(name)}" for place, name in enumerate(shown)),
        style.width,
        first=f"  times as fast as {escape(base)}: ",
        rest="    ",
    )
    if len(others) > len(shown):
        lines.append(f"  and {len(others) - len(shown)} more settings; --json has them")
    at = {(point.setting, point.bytes): point for point in points if point.placement == points[0].placement}
    head = f"{'size':>{_SIZE}}{escape(base):>{_TIME}}{'algbw':>{_RATE}}{'busbw':>{_RATE}}"
    lines.append(head + "".join(f"{_LETTERS[place]:>{_RATIO}}" for place in range(len(shown))))
    for size in sorted({point.bytes for point in points}):
        first = at.get((base, size))
        if first is None:
            continue
        text = f"{write_size(size):>{_SIZE}}{_time(first):>{_TIME}}"
        text += f"{_rate(first.algbw_gb_per_s):>{_RATE}}{_rate(first.busbw_gb_per_s):>{_RATE}}"
        chosen = next(
            (band.setting for band in best if band.kind == first.kind and band.from_bytes <= size <= band.to_bytes), ""
        )
        for name in shown:
            star = "*" if name == chosen else " "
            text += f"{_ratio(first, at.get((name, size))):>{_RATIO - 1}}{star}"
        lines.append(text.rstrip())
    return lines


def _time(point: CollectivesPoint) -> str:
    return "wrong" if isinstance(point.time_ns, Unknown) else format_ns(point.time_ns)


def _ratio(base: CollectivesPoint, other: CollectivesPoint | None) -> str:
    if other is None:
        return "–"
    if isinstance(base.time_ns, Unknown) or isinstance(other.time_ns, Unknown) or other.time_ns == 0:
        return "wrong" if other.correctness == "failed" else "?"
    return f"{base.time_ns / other.time_ns:.2f}"


def _best(record: CollectivesRecord, style: Style) -> list[str]:
    """Say which setting is best for which sizes, where two are told apart at all."""
    if not record.best:
        return []
    lines = [style.title("BEST SETTING", "per range of sizes; only what is beyond noise")]
    for band in record.best:
        reach = write_size(band.from_bytes)
        reach += f" – {write_size(band.to_bytes)}" if band.to_bytes != band.from_bytes else ""
        if band.setting:
            low, high = f"{band.gain_low:.2f}", f"{band.gain_high:.2f}"
            than = " as the next" if band.setting == DEFAULT_SETTING else ""
            says = f"{escape(band.setting)}, {low if low == high else f'{low} to {high}'} times as fast{than}"
        else:
            says = f"no difference seen: {band.why}"
        lines += wrap(says, style.width, first=f"  {band.kind:<15}{reach:<22}", rest=" " * 39)
    for one in record.crossovers:
        low, high = (write_size(size) for size in one.between_bytes)
        fitted = f", at {format_bytes(one.fitted_bytes)} by the fits" if one.fitted_bytes else ""
        says = f"{one.kind} changes from {escape(one.below)} to {escape(one.above)} between {low} and {high}{fitted}"
        lines += wrap(says, style.width, first="  ", rest="    ")
    return lines


def _left_out(record: CollectivesRecord, style: Style) -> list[str]:
    """Say what was not measured, or could not be read."""
    lines: list[str] = []
    wrong = [point for point in record.points if point.correctness == "failed"]
    for point in wrong[:_COMPLAINTS]:
        why = escape(point.time_ns.unknown) if isinstance(point.time_ns, Unknown) else "wrong"
        what = (
            f"{point.kind} of {write_size(point.bytes)}, {point.placement.replace('_', ' ')}, {escape(point.setting)}"
        )
        lines += wrap(f"{what}: {why}", style.width, rest="  ")
    for setting in record.settings:
        if setting.status == "failed":
            lines += wrap(f"{escape(setting.name)} failed: {escape(setting.failure)}", style.width, rest="  ")
    for one in record.not_run:
        lines += wrap(f"not run: {escape(one.what)}: {escape(one.why)}", style.width, rest="  ")
    complaints = [
        f"{escape(source.path.rpartition('/')[2])}: {escape(complaint)}"
        for source in record.sources
        for complaint in source.complaints
    ]
    for complaint in complaints[:_COMPLAINTS]:
        lines += wrap(complaint, style.width, rest="  ")
    if len(complaints) > _COMPLAINTS:
        lines.append(f"and {len(complaints) - _COMPLAINTS} more; --json has them")
    return lines


def _next(record: CollectivesRecord, style: Style, written: str) -> list[str]:
    """Say what can be done with it."""
    lines = wrap(f"written: {escape(written)}", style.width, rest="  ") if written else []
    if record.status != "invalid" and any(not fit.why_none for fit in record.fits):
        one = record.sources[0].path if len(record.sources) == 1 else "record.json"
        keep = "keep it with --json record.json, and " if len(record.sources) > 1 else ""
        use = f"longpole whatif traces/ --fuse all_reduce=25MB --collective-record {escape(written or one)}"
        lines += wrap(f"next: {keep}price the collectives of a trace with it: {use}", style.width, rest="  ")
    chosen = next((band.setting for band in record.best if band.setting not in ("", DEFAULT_SETTING)), "")
    if chosen:
        says = f"next: try {escape(chosen)} in the job itself, and let `longpole verify` say whether it helped"
        lines += wrap(says, style.width, rest="  ")
    return lines
