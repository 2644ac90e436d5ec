"""The page of `longpole plan`: whether it fits, what a step takes and waits for, what limits it, what was assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.escape import escape
from longpole.report.plan import MEMORY_PARTS
from longpole.report.text.layout import Style, columns_of, pad, wrap
from longpole.report.text.plan_against import render_against
from longpole.report.text.plan_search import render_free_memory, render_search
from longpole.report.text.plan_serving import render_serving
from longpole.units import BYTES_PER_GB, format_bytes, format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.report.plan import Plan, PlanLayout, PlanMessage, PlanStage, PlanUtilisation

NARROWEST: Final = 60
_NAME: Final = 22
_FIGURE: Final = 11
_STAGES_SHOWN: Final = 4
_SMALLEST_SHARE: Final = 0.0005
_VERDICTS: Final = {"fits": "FITS", "tight": "TIGHT", "does not fit": "DOES NOT FIT"}
_SOURCES: Final = {
    "record": "your own record",
    "shipped": "fits to measured systems of this device",
    "nccl_model": "NCCL's own model",
    "generic": "line rates",
}
_LITTLE_WORDS: Final = ("since", "before", "of", "by", "the", "et", "what", "this")
_NEXT: Final = (
    "--explain FIGURE shows a figure's formula, --search other layouts, --free-memory what saved memory would buy,"
    " --against TRACE a real run beside it."
)


def render_plan(plan: Plan, *, width: int, color: bool, explain: str = "") -> str:
    """Write a plan.

    Args:
        plan: The plan.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.
        explain: Which figures were asked to be explained: then only these are written; empty for none.

    Returns:
        Lines of at most that many columns, each with its line end. Everything that comes from a file is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    sections = [_render_who(plan, style)]
    if explain:
        sections += [_render_figures(plan, style)]
    else:
        sections += [
            _render_verdict(plan, style),
            _render_step(plan, style),
            _render_memory(plan, style),
            _render_utilisation(plan, style),
            _render_messages(plan, style),
            _render_limits(plan, style),
            render_serving(plan, style),
            render_search(plan, style),
            render_free_memory(plan, style),
            render_against(plan, style),
            _render_notes(plan, style),
            _render_defaults(plan, style),
            _render_next(plan, style),
        ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _render_who(plan: Plan, style: Style) -> list[str]:
    hardware, model = plan.hardware, plan.model
    size = f"{_short(model.parameters)} parameters"
    if model.active_parameters != model.parameters:
        size += f", {_short(model.active_parameters)} active"
    node = f", {hardware.devices_per_node} a node" if hardware.devices_per_node else ""
    parts = [escape(plan.name or model.name), size, f"{hardware.devices:,} × {escape(hardware.device)}{node}"]
    lines = wrap(" · ".join(parts), style.width, rest="  ")
    if plan.layout is not None:
        lines += wrap(_work_text(plan.layout, hardware.dtype), style.width, first="  ", rest="  ")
    return lines


def _work_text(layout: PlanLayout, dtype: str) -> str:
    parts = [layout.label]
    parts += [f"ZeRO-{layout.zero}"] if layout.zero else []
    parts += ["SP"] if layout.sp else []
    parts += [layout.schedule] if layout.pp > 1 else []
    parts += [
        f"{layout.sequence:,} tokens a sequence",
        f"{layout.global_batch:,} sequences a step = {format_count(layout.dp, 'replica')} ×"
        f" {format_count(layout.micro_batches, 'micro-batch', 'micro-batches')} of {layout.micro_batch:,}",
        f"recompute {layout.recompute}",
        dtype,
    ]
    return " · ".join(parts)


def _render_verdict(plan: Plan, style: Style) -> list[str]:
    if plan.memory is None:
        return wrap(escape(plan.says), style.width, rest="  ", max_lines=6)
    verdict = _VERDICTS[plan.memory.verdict]
    lines = wrap(escape(plan.says), style.width, first=f"{verdict}  ", rest="  ", max_lines=6)
    paint = style.verdict if plan.memory.verdict == "fits" else style.alarm
    lines[0] = paint(verdict) + lines[0][len(verdict) :]
    return lines


def _render_step(plan: Plan, style: Style) -> list[str]:
    step = plan.step
    if step is None or plan.layout is None:
        return []
    lines = [style.title("STEP", f"{format_ns(step.period_ns)}: what the busiest stage spends it on")]
    lines.append(_row("", ("exposed", "share", "hidden")))
    for part in step.parts:
        if not part.exposed_ns and not part.hidden_ns:
            continue
        exposed = format_ns(part.exposed_ns) if part.exposed_ns else "0"
        hidden = format_ns(part.hidden_ns) if part.hidden_ns else ""
        lines.append(_row(part.says, (exposed, _percent(part.exposed_ns / step.period_ns), hidden)))
    lines.append(_row("step", (format_ns(step.period_ns), _percent(1.0), "")))
    rate = (
        f"{plan.layout.tokens:,} tokens a step, {step.tokens_per_s:,.0f} a second,"
        f" {step.tokens_per_s_per_device:,.0f} a second and device; {step.known_error}"
    )
    lines += _faint(rate, style)
    whole = plan.training
    if whole is not None:
        text = f"{_short(round(whole.tokens))} tokens are {whole.steps:,} steps: {whole.days:,.1f} days"
        text += f", {whole.device_hours:,.0f} device hours, if nothing interrupts them"
        lines += wrap(text, style.width, first="  ", rest="    ")
    return lines


def _render_memory(plan: Plan, style: Style) -> list[str]:
    memory = plan.memory
    if memory is None:
        return []
    shown = _stages_shown(memory.stages, memory.worst_stage, (style.width - _NAME - 2) // _FIGURE)
    lines = [style.title("MEMORY", f"GB of one device; limit {_gb(memory.limit_bytes)}")]
    if len(memory.stages) > 1:
        lines.append(_row("pipeline stage", [_stage_name(stage, memory.worst_stage) for stage in shown]))
        lines.append(_row("layers", [str(stage.layers) for stage in shown]))
    for part, says in MEMORY_PARTS.items():
        if any(stage.parts_bytes.get(part) for stage in memory.stages):
            lines.append(_row(says, [_gb(stage.parts_bytes.get(part, 0)) for stage in shown]))
    lines.append(_row("peak", [_gb(stage.peak_bytes) for stage in shown]))
    lines.append(_row("margin", [_gb(stage.margin_bytes) for stage in shown]))
    free = [memory.limit_bytes - stage.peak_bytes - stage.margin_bytes for stage in shown]
    lines.append(_row("left", [_gb(left) for left in free]))
    return lines + _faint(memory.known_error, style)


def _faint(text: str, style: Style) -> list[str]:
    tied = escape(text).replace(" %", "%")  # a line does not begin with a sign
    return [style.faint(line) for line in wrap(tied, style.width, first="  ", rest="    ")]


def _stages_shown(stages: Sequence[PlanStage], worst: int, room: int) -> list[PlanStage]:
    """Return the first, the worst and the last stages where there are more than there is room for."""
    if len(stages) <= min(room, _STAGES_SHOWN):
        return list(stages)
    chosen = sorted({0, worst, len(stages) - 1})
    return [stages[stage] for stage in chosen]


def _stage_name(stage: PlanStage, worst: int) -> str:
    return f"{stage.stage} worst" if stage.stage == worst else str(stage.stage)


def _render_utilisation(plan: Plan, style: Style) -> list[str]:
    if not plan.utilisation:
        return []
    hardware = plan.hardware
    peak = f"of {hardware.peak_tflops:g} TFLOP/s dense {hardware.dtype}; > the plan's convention"
    lines = [style.title("USE OF THE PEAK", peak), _row("", ("share", "TFLOP/s", "GFLOP/tok"))]
    shown = [one for one in plan.utilisation if one.applies or one.asked]
    for kind, of_hardware in (("MFU", False), ("HFU", True)):
        lines += [_utilisation_row(one, kind, style) for one in shown if one.hardware == of_hardware]
    return lines


def _utilisation_row(one: PlanUtilisation, kind: str, style: Style) -> str:
    mark = ">" if one.asked else " "
    figures = (_percent(one.share), f"{one.tflops_per_device:,.0f}", f"{one.flops_per_token / 1e9:,.4g}")
    row = _row(f"{kind} {one.convention}", figures, mark=mark)
    used_by = _cut(one.used_by, style.width - columns_of(row) - 2)
    return row + style.faint(f"  {used_by}" if used_by else "")


def _cut(text: str, room: int) -> str:
    """Return as many words as there is room for.

    >>> _cut("Megatron-Core since 2024", 20), _cut("torchtitan", 20)
    ('Megatron-Core …', 'torchtitan')
    """
    if columns_of(text) <= room:
        return text
    words = text.replace('"', "").split()
    while words and columns_of(" ".join(words)) + 2 > room:
        words.pop()
    while len(words) > 1 and words[-1].rstrip(",") in _LITTLE_WORDS:
        words.pop()
    return f"{' '.join(words).rstrip(',')} …" if words else ""


def _render_messages(plan: Plan, style: Style) -> list[str]:
    if not plan.messages:
        return []
    lines = [style.title("COLLECTIVES", "of one device in a step, hidden or not")]
    lines.append(_row("", ("operations", "bytes", "time")))
    groups: dict[tuple[str, str], list[PlanMessage]] = {}
    for message in plan.messages:
        groups.setdefault((message.dimension, message.kind), []).append(message)
    for (dimension, kind), messages in groups.items():
        one = max(messages, key=lambda message: message.total_ns)
        figures = (
            f"{sum(message.count for message in messages):,.0f}",
            format_bytes(sum(message.count * message.bytes for message in messages)),
            format_ns(sum(message.total_ns for message in messages)),
        )
        row = _row(f"{dimension} {kind.replace('_', '-')}", figures)
        where = _cut(f"{one.devices:,} over {escape(one.link)}", style.width - columns_of(row) - 2)
        lines.append(row + style.faint(f"  {where}" if where else ""))
    for source in dict.fromkeys(message.source for message in plan.messages):
        lines += _faint(_source_text(source, plan.messages), style)
    return lines


def _source_text(source: str, messages: Sequence[PlanMessage]) -> str:
    """Say of a cost model what it gave, how far it is off, and what to know about it."""
    own = [message for message in messages if message.source == source]
    dimensions = dict.fromkeys(message.dimension for message in own)
    errors = sorted({round(100 * message.error_share) for message in own if message.error_share is not None})
    error = "error not known"
    if errors:
        span = f"{errors[0]}" if errors[0] == errors[-1] else f"{errors[0]} to {errors[-1]}"
        error = f"±{span} % in the median"
    cautions: dict[str, dict[str, None]] = {}
    for message in own:
        _, _, caution = message.source_says.partition("; ")
        if caution:
            cautions.setdefault(caution, {})[message.dimension] = None
    told = "".join(
        f"; {caution}" if of.keys() == dimensions.keys() else f"; {', '.join(of)}: {caution}"
        for caution, of in cautions.items()
    )
    return f"{', '.join(dimensions)}: {_SOURCES.get(source, source)}, {error}{told}"


def _render_limits(plan: Plan, style: Style) -> list[str]:
    if not plan.limits:
        return []
    lines = [style.title("WHAT LIMITS")]
    for place, limit in enumerate(plan.limits, 1):
        lines += wrap(escape(limit.says), style.width, first=f"  {place}  ", rest="     ", max_lines=4)
        if limit.next_step:
            lines += wrap(escape(limit.next_step), style.width, first="     try: ", rest="       ", max_lines=4)
    return lines


def _render_notes(plan: Plan, style: Style) -> list[str]:
    if not plan.notes:
        return []
    lines = [style.warning("LOOK AGAIN")]
    for note in plan.notes:
        lines += wrap(escape(note), style.width, first="  ", rest="    ", max_lines=4)
    return lines


def _render_defaults(plan: Plan, style: Style) -> list[str]:
    if not plan.defaults:
        return []
    lines = [style.title("TAKEN FOR GRANTED", "what the plan does not state")]
    by_section: dict[str, list[str]] = {}
    for default in plan.defaults:
        section, _, key = default.key.partition("] ")
        named = f"{key} = {default.value}" if key else default.value
        by_section.setdefault(section.strip("[]"), []).append(
            f"{named} ({default.source})" if default.source else named
        )
    for section, texts in by_section.items():
        lines += wrap(escape("; ".join(texts)), style.width, first=f"  [{section}] ", rest="    ")
    return lines


def _render_figures(plan: Plan, style: Style) -> list[str]:
    lines: list[str] = []
    for figure in plan.figures:
        lines += [*([""] if lines else []), style.title(escape(figure.name), _figure_text(figure.value, figure.unit))]
        lines += wrap(escape(figure.formula), style.width, first="  ", rest="      ") if figure.formula else []
        if figure.source:
            lines += [style.faint(line) for line in wrap(escape(figure.source), style.width, first="  ", rest="  ")]
    return lines


def _render_next(plan: Plan, style: Style) -> list[str]:
    text = _NEXT if plan.step is not None else "--explain shows the figures' formulas."
    return [style.faint(line) for line in wrap(text, style.width)]


def _figure_text(value: float, unit: str) -> str:
    if unit == "B":
        return format_bytes(value)
    if unit == "s":
        return format_ns(value * 1e9)
    return f"{value:,.6g} {unit}".rstrip()


def _row(name: str, figures: Sequence[str], mark: str = " ") -> str:
    return f"{mark} {pad(name, _NAME)}{''.join(f'{figure:>{_FIGURE}}' for figure in figures)}".rstrip()


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= _SMALLEST_SHARE or share == 0 else "< 0.1 %"


def _gb(size_bytes: float) -> str:
    return f"{size_bytes / BYTES_PER_GB:,.1f}"


def _short(count: int) -> str:
    """Write a number of parameters the way people do.

    >>> _short(8_030_261_248), _short(671_026_404_352)
    ('8.03 B', '671 B')
    """
    for step, letter in ((10**12, "T"), (10**9, "B"), (10**6, "M")):
        if count >= step:
            value = count / step
            return f"{value:.{max(3 - len(str(int(value))), 0)}f} {letter}"
    return format_count(count, "").strip()
