"""The part of a plan's page that is about serving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.report.text.layout import Style, join_wrapped, pad, wrap
from longpole.units import BYTES_PER_GB, format_bytes, format_ns

if TYPE_CHECKING:
    from longpole.report.plan import Plan
    from longpole.report.plan_asked import PlanPass, PlanServing


def render_serving(plan: Plan, style: Style) -> list[str]:
    """Write what serving takes; nothing where the plan has no `[serving]`."""
    serving = plan.serving
    if serving is None:
        return []
    rest = f"{serving.label} · requests of {serving.prompt_tokens:,} + {serving.output_tokens:,} tokens"
    lines = [style.title("SERVING", rest)]
    for name, value in _rows(serving):
        lines += wrap(value, style.width, first=f"  {pad(name, 24)}", rest=" " * 26)
    lines += _curve(serving, style)
    return lines + [
        style.faint(line) for line in wrap(serving.known_error.replace(" %", "%"), style.width, first="  ", rest="    ")
    ]


def _rows(serving: PlanServing) -> list[tuple[str, str]]:
    low, high = serving.tokens_per_s_low, serving.tokens_per_s_high
    room = f"{serving.cache_room_bytes / BYTES_PER_GB:,.1f} GB left for caches"
    each = f"{format_bytes(serving.cache_bytes_per_token)} a token"
    return [
        ("at once", f"{serving.batch:,} requests; {serving.most_requests:,} fit"),
        ("output", f"{serving.tokens_per_s:,.0f} tokens/s ({low:,.0f} to {high:,.0f}), of all devices"),
        ("", f"{serving.tokens_per_s_per_device:,.0f} a device"),
        ("first token", _pass_text(serving.prefill)),
        ("each further token", _pass_text(serving.decode)),
        (
            "weights",
            f"{serving.weight_bytes / BYTES_PER_GB:,.1f} GB of {serving.limit_bytes / BYTES_PER_GB:,.1f}, {room}",
        ),
        ("cache", f"{each}, {format_bytes(serving.request_cache_bytes)} a request at its full length"),
        ("critical batch", f"{serving.critical_batch:,.0f} rows: below, a product waits for its weights to be read"),
    ]


def _pass_text(one: PlanPass) -> str:
    return f"{format_ns(one.dur_ns)} ({format_ns(one.low_ns)} to {format_ns(one.high_ns)}), limited by {one.limited_by}"


def _curve(serving: PlanServing, style: Style) -> list[str]:
    points = [f"{point.batch:,}: {point.tokens_per_s:,.0f}/s at {format_ns(point.step_ns)}" for point in serving.curve]
    if len(points) < 2:
        return []
    lines = join_wrapped(points, style.width - 26)
    return [f"  {pad('by batch' if not place else '', 24)}{line}" for place, line in enumerate(lines)]
