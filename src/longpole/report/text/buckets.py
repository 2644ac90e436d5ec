"""The page of `longpole buckets`: the verdict, the curve, what it rests on, and what it cannot know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.figures import scale_for
from longpole.report.text.layout import Style, bar, pad, wrap
from longpole.report.text.page import NARROWEST
from longpole.report.text.words import plural, unit_noun
from longpole.units import format_bytes, format_count, format_ns

if TYPE_CHECKING:
    from longpole.report.buckets import BucketCost, Buckets, CapPoint, CapRange
    from longpole.report.text.figures import Scale

_LINES: Final = 6
_NAME_WIDTH: Final = 18
_COLUMN: Final = 11
_BAR_WIDTH: Final = 24
_MIB: Final = 1 << 20
_SIZES_SHOWN: Final = 8
_FLOOR_SHARE: Final = 2  # the floor is worth a sentence where it is half of what is left
_NARROW: Final = 1.05  # nobody sets a cap to within five percent of what a bucket happens to hold
_SOURCES: Final = {
    "fit": "fitted to this run's own transfers",
    "record": "the record given",
    "shipped": "shipped fit",
    "stated": "as stated",
    "nccl_model": "not measured",
    "buckets": "nothing better is known",
}
_NEXT: Final = {
    "change": "try it on the job, then: longpole verify BEFORE AFTER --part collective",
    "keep": "longpole report says what else holds the {noun} up",
    "cannot tell": "measure all-reduces here (longpole bench collectives or nccl-tests), then --collective-record FILE",
    "not known": "longpole buckets --help names the options that give what is missing",
}


def render_buckets(buckets: Buckets, *, width: int, color: bool) -> str:
    """Write what bucket caps come to.

    Args:
        buckets: The result.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.

    Returns:
        Lines of at most that many columns, each with its line end. Everything that comes from a trace is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    sections = [
        _render_who(buckets, style),
        _render_verdict(buckets, style),
        _render_curve(buckets, style),
        _render_recorded(buckets, style),
        _render_cost(buckets, style),
        _render_limits(buckets, style),
        _render_next(buckets, style),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _render_who(buckets: Buckets, style: Style) -> list[str]:
    gradients = buckets.gradients
    size = "" if isinstance(gradients.bytes, Unknown) else f" of {format_bytes(gradients.bytes)} together"
    parts = [
        f"rank {buckets.rank}",
        escape(buckets.device),
        f"{format_count(gradients.count, 'gradient')}{size}",
        f"backward pass of {format_ns(gradients.backward_ns)}",
        plural(buckets.units, buckets.unit_kind),
    ]
    if not isinstance(buckets.period_ns, Unknown):
        parts.append(f"{format_ns(buckets.period_ns)} each")
    return wrap(" · ".join(parts), style.width, rest="  ")


def _render_verdict(buckets: Buckets, style: Style) -> list[str]:
    title = buckets.verdict.upper()
    lines = wrap(escape(buckets.says), style.width, first=f"{title}  ", rest="  ", max_lines=_LINES)
    paint = style.verdict if buckets.verdict in ("change", "keep") else style.warning
    lines[0] = paint(title) + lines[0][len(title) :]
    if isinstance(buckets.best, Unknown) and buckets.best.missing:
        lines += wrap(
            f"missing: {escape('; '.join(buckets.best.missing))}", style.width, first="  ", rest="  ", max_lines=_LINES
        )
    return lines


def _render_curve(buckets: Buckets, style: Style) -> list[str]:
    """Draw what each cap leaves exposed."""
    best = buckets.best
    if isinstance(best, Unknown) or not buckets.curve:
        return []
    noun = unit_noun(buckets.unit_kind)
    longest_ns = max(*(point.exposed_ns for point in buckets.curve), 1)
    scale = scale_for(max(*(point.communication_ns for point in buckets.curve), 1))
    lines = [style.title("CAPS", f"{scale.unit} per {noun}; exposed after the last gradient")]
    head = f"  {pad('bucket cap', _NAME_WIDTH)}{'buckets':>8}{'all':>{_COLUMN}}{'exposed':>{_COLUMN}}"
    lines.append(style.faint(head))
    for place, point in enumerate(buckets.curve):
        is_best = point.cap_bytes == best.cap_bytes
        name = "one bucket" if place == len(buckets.curve) - 1 else _cap(point.cap_bytes)
        lines.append(_row(name, point, scale, bar(point.exposed_ns / longest_ns, _room(style)), is_best=is_best))
    lines += wrap(_best_words(buckets), style.width, first="  ", rest="  ", max_lines=_LINES)
    return lines


def _room(style: Style) -> int:
    return max(min(_BAR_WIDTH, style.width - 2 - _NAME_WIDTH - 8 - 2 * _COLUMN - 2 - len("  best")), 4)


def _row(name: str, point: CapPoint, scale: Scale, drawn: str, *, is_best: bool) -> str:
    mark = "?" if point.assumed else ""
    cells = (
        f"{point.buckets:>8}{scale.write(point.communication_ns):>{_COLUMN}}{scale.write(point.exposed_ns):>{_COLUMN}}"
    )
    end = "  best" if is_best else ""
    return f"  {pad(name + mark, _NAME_WIDTH)}{cells}  {drawn}{end}".rstrip()


def _best_words(buckets: Buckets) -> str:
    best = buckets.best
    if isinstance(best, Unknown):
        return ""
    low, high = _cap(best.low_bytes), _cap(best.high_bytes)
    span = f"{low} to {high}" if best.low_bytes != best.high_bytes else low
    words = f"If latency is a quarter to four times, and the rate three to five quarters, of the cost: best at {span}."
    if not isinstance(best.formula_bytes, Unknown):
        words += f" Communication takes longer than the pass; then {escape(best.formula)} is best."
    else:
        words += f" {best.formula_bytes.unknown[0].upper()}{best.formula_bytes.unknown[1:]}."
    if _FLOOR_SHARE * best.least_ns >= best.exposed_ns:
        size, least = format_bytes(best.late_bytes), format_ns(best.least_ns)
        words += f" No cap leaves less than {least}: {size} of gradients become ready in the last {least} of the pass."
    if any(point.assumed for point in buckets.curve):
        words += " ?: smaller than recorded buckets whose inside is not known."
    return words


def _cap(cap_bytes: float) -> str:
    mib = cap_bytes / _MIB
    return f"{mib:.0f} MiB" if abs(mib - round(mib)) < 0.005 or mib >= 100 else f"{mib:.1f} MiB"


def _render_recorded(buckets: Buckets, style: Style) -> list[str]:
    recorded = buckets.recorded
    lines = [style.title("AS IT RAN")]
    rows = []
    if not isinstance(recorded.sizes_bytes, Unknown):
        shown = ", ".join(format_bytes(size) for size in recorded.sizes_bytes[:_SIZES_SHOWN])
        more = len(recorded.sizes_bytes) - _SIZES_SHOWN
        rows.append(("buckets", f"{len(recorded.sizes_bytes)}: {shown}{f' and {more} more' if more > 0 else ''}"))
    rows.append(("cap", _cap_words(recorded.cap)))
    waiting = ""
    if isinstance(recorded.waiting_ns, int):
        waiting = f", of which {format_ns(recorded.waiting_ns)} waiting for other ranks"
    took = f"; the buckets took {format_ns(recorded.communication_ns)}"
    rows.append(("exposed", f"{format_ns(recorded.exposed_ns)}{waiting}{took}"))
    if not isinstance(buckets.check, Unknown):
        rows.append(("under the cost", f"{format_ns(buckets.check.predicted_exposed_ns)} exposed, {_off(buckets)}"))
    for name, text in rows:
        lines += wrap(escape(text), style.width, first=f"  {pad(name, 16)}", rest=" " * 18, max_lines=_LINES)
    return lines


def _off(buckets: Buckets) -> str:
    check = buckets.check
    if isinstance(check, Unknown):
        return ""
    by = format_ns(abs(check.error_ns))
    less = " without waiting" if isinstance(buckets.recorded.waiting_ns, int) else ""
    return f"{by} {'more' if check.error_ns >= 0 else 'less'} than recorded{less}"


def _cap_words(cap: CapRange | Unknown) -> str:
    if isinstance(cap, Unknown):
        return f"not known: {cap.unknown}"
    if cap.torch_default:
        return f"above {_cap(cap.above_bytes)}: torch's own (1 MiB, then 25 MiB) fits"
    if cap.up_to_bytes is None:
        return f"above {_cap(cap.above_bytes)}"
    if cap.up_to_bytes < _NARROW * cap.above_bytes:
        between = f"between {cap.above_bytes:,} and {cap.up_to_bytes:,} bytes"
        return f"only one {between} makes these buckets: more likely several modules are wrapped each by itself"
    return f"above {format_bytes(cap.above_bytes)}, up to {format_bytes(cap.up_to_bytes)}"


def _render_cost(buckets: Buckets, style: Style) -> list[str]:
    cost = buckets.cost
    if isinstance(cost, Unknown):
        return []
    model = cost.model
    gamma = f" + {model.gamma:.3g} ns·√B" if model.gamma else ""
    words = f"{format_ns(model.alpha_ns)}{gamma} + bytes at {model.gb_per_s:.3g} GB/s"
    says = f": {escape(model.says)}" if model.says else ""
    lines = [style.title("COST OF AN ALL-REDUCE", f"{cost.ranks} ranks" if cost.ranks else "")]
    lines += wrap(f"{words} ({_SOURCES.get(model.source, model.source)}{says})", style.width, first="  ", rest="  ")
    return lines + wrap(_met(cost), style.width, first="  ", rest="  ")


def _met(cost: BucketCost) -> str:
    over = cost.recorded_over_model
    if isinstance(over, Unknown):
        return ""
    if cost.recorded_as == "transfer":
        held = ", and so it is taken here" if cost.factor != 1 else ""
        return f"The recorded transfers took {over:.2f} times that{held}."
    return f"The recorded buckets took {over:.2f} times that, waiting for other ranks included."


def _render_limits(buckets: Buckets, style: Style) -> list[str]:
    lines = [style.title("WHAT THIS CANNOT KNOW")]
    for text in buckets.cannot_know:
        lines += wrap(escape(text), style.width, first="  · ", rest="    ")
    return lines


def _render_next(buckets: Buckets, style: Style) -> list[str]:
    words = _NEXT[buckets.verdict].format(noun=unit_noun(buckets.unit_kind))
    return wrap(words, style.width, first="next  ", rest="      ")
