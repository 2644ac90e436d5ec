"""The page of `longpole bench run`: the typical time and how sure it is, where it went, and what disturbed it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.escape import escape
from longpole.report.text.figures import scale_for, spread_percent
from longpole.report.text.layout import Style, bar, pad, shorten, wrap
from longpole.report.text.page import NARROWEST
from longpole.report.text.words import plural, unit_noun
from longpole.units import NS_PER_S, format_bytes, format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.bench.run_answer import BenchRunAnswer
    from longpole.bench.spread import Spread, StageSpread
    from longpole.records.run_record import RunRecord

FLAG_WORDS: Final = {
    "cpu-pressure": "something waited for a CPU",
    "io-pressure": "something waited for storage",
    "memory-pressure": "something waited for memory",
    "stolen-time": "the hypervisor ran somebody else",
    "quota-throttled": "the control group's CPU quota held it still",
    "preempted": "it was taken off its CPU again and again",
    "gpu-throttled": "a GPU lowered its clocks",
    "other-gpu-processes": "other processes used a GPU",
}
"""What each flag of a sample means."""

NOISY_CV: Final = 0.05
"""Processes that differ by more than this say little about a change of the usual threshold, 3 %."""

_LABEL: Final = 13
_NAME_WIDTH: Final = 24
_STAGES: Final = 14
_BAR: Final = 16
_TAIL_LINES: Final = 12


def render_bench_run(answer: BenchRunAnswer, *, width: int, color: bool) -> str:
    """Write what was measured.

    Args:
        answer: The record and what its units took.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.

    Returns:
        Lines of at most that many columns, each with its line end. Everything that comes from a command is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    record, spread = answer.record, answer.spread
    sections = [
        _render_who(record, style),
        _render_failure(answer, style),
        _render_figures(record, spread, style),
        _render_parts("stages", "outermost spans", spread.stages, style),
        _render_parts("objects", "exposed, as in the ledger", spread.objects, style),
        _render_disturbed(answer, style),
        _render_next(answer, style),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _render_who(record: RunRecord, style: Style) -> list[str]:
    name = record.design.benchmark if record.design is not None else ""
    lines = wrap(f"{escape(name)} · {escape(record.label)}", style.width, rest="  ", max_lines=3)
    facts = record.environment.must_match
    cpu = f"{facts.get('cpu', facts.get('architecture', ''))} × {facts.get('usable_cpus', facts.get('cpu_count', '?'))}"
    found = [*map(str, facts.get("gpus", [])), cpu]
    found += [f"{name} {facts[key]}" for name, key in _VERSIONS.items() if key in facts]
    return lines + [style.faint(line) for line in wrap(escape(" · ".join(found)), style.width, rest="  ")]


_VERSIONS: Final = {"Python": "python", "PyTorch": "torch_version", "CUDA": "cuda_runtime_version"}


def _render_failure(answer: BenchRunAnswer, style: Style) -> list[str]:
    record = answer.record
    if not record.failure:
        return []
    lines = wrap(f"the measurement failed: {escape(record.failure)}", style.width, rest="  ")
    lines[0] = style.alarm(lines[0])
    if answer.output_tail:
        lines.append("last lines of its output:")
        tail = answer.output_tail.splitlines()[-_TAIL_LINES:]
        lines += [shorten(f"  | {escape(line)}", style.width) for line in tail]
    return lines


def _render_figures(record: RunRecord, spread: Spread, style: Style) -> list[str]:
    if spread.median_ns is None:
        why = ", ".join(f"{count} {reason}" for reason, count in spread.left_out.items())
        hint = "; with --warmup 0 none is warm-up" if set(spread.left_out) == {"warm-up"} else ""
        return wrap(f"No unit counts ({escape(why) or 'none has a period'}){hint}.", style.width, rest="  ")
    noun = unit_noun(record.unit_kind)
    time = f"{format_ns(spread.median_ns, 4)} a {noun}"
    sure = f" ±{_share(spread.half_width_share)} (90 % interval)" if spread.half_width_share is not None else ""
    head = f"{time}{sure}, median of {plural(spread.processes, 'process') if spread.processes == 1 else _of(spread)}"
    lines = wrap(head, style.width, rest="  ")
    lines[0] = style.verdict(time) + lines[0][len(time) :]
    rows = [("P95", _p95(spread)), ("spread", _spread_words(spread))]
    items = record.items_per_unit
    if isinstance(items, int):
        kind = escape(record.item_kind) or "item"
        rate = format_count(round(items * NS_PER_S / spread.median_ns), kind)
        rows.append(("per item", f"{format_ns(spread.median_ns / items)} a {kind} · {rate} a second"))
    if spread.peak_bytes is not None:
        cpu = f" · CPU time {format_ns(spread.cpu_ns)} a process" if spread.cpu_ns is not None else ""
        rows.append(("memory", f"{format_bytes(spread.peak_bytes)} at most in one process{cpu}"))
    if spread.left_out:
        rows.append(("left out", ", ".join(f"{count} {escape(why)}" for why, count in spread.left_out.items())))
    for name, text in rows:
        lines += wrap(text, style.width, first=f"  {pad(name, _LABEL - 2)}", rest=" " * _LABEL)
    return lines


def _of(spread: Spread) -> str:
    units = f", {spread.units:,} units" if spread.units > spread.processes else ""
    return f"{spread.processes} processes{units}"


def _p95(spread: Spread) -> str:
    n = f"n = {spread.units:,}"
    if spread.p95_ns is None:
        return f"not given below 20 samples ({n}; the largest was {format_ns(spread.largest_ns or 0)})"
    return f"{format_ns(spread.p95_ns, 4)} (nearest rank, {n})"


def _spread_words(spread: Spread) -> str:
    """Say both coefficients of variation; one that cannot be had is left out with its reason."""
    parts = []
    if spread.within_cv_share is not None:
        parts.append(f"{_share(spread.within_cv_share)} within a process")
    if spread.between_cv_share is not None:
        parts.append(f"{_share(spread.between_cv_share)} between processes")
    if not parts:
        return "not known from one sample"
    return f"{', '.join(parts)} (coefficient of variation)"


def _render_parts(title: str, what: str, parts: Sequence[StageSpread], style: Style) -> list[str]:
    """Write means that add up to the mean unit."""
    if not parts:
        return []
    whole_ns = sum(part.mean_ns for part in parts)
    scale = scale_for(whole_ns)
    times = scale.spread([part.mean_ns for part in parts])
    shares = spread_percent([part.mean_ns for part in parts], whole_ns)
    longest = max(part.mean_ns for part in parts) or 1
    room = max(len(time) for time in times)
    lines = [style.title(title, f"mean of a unit in {scale.unit}: {what}")]
    for part, time, share in list(zip(parts, times, shares, strict=True))[:_STAGES]:
        name = pad(shorten(escape(part.name), _NAME_WIDTH), _NAME_WIDTH)
        spread = f"± {_share(part.cv_share)}" if part.cv_share is not None else ""
        line = f"  {name}{time:>{room + 2}}{share:>9}  {pad(bar(part.mean_ns / longest, _BAR), _BAR)}  {spread}"
        lines.append(shorten(line.rstrip(), style.width))
    if len(parts) > _STAGES:
        rest_ns = sum(part.mean_ns for part in parts[_STAGES:])
        lines.append(style.faint(f"  {len(parts) - _STAGES} more, {format_ns(rest_ns)} together"))
    return lines


def _render_disturbed(answer: BenchRunAnswer, style: Style) -> list[str]:
    lines: list[str] = []
    flags = answer.spread.flags
    if flags:
        said = [f"{flag} {100 * share:.0f} % ({FLAG_WORDS.get(flag, 'flagged')})" for flag, share in flags.items()]
        text = f"disturbed samples, counted all the same: {', '.join(said)}"
        lines += wrap(escape(text), style.width, rest="  ")
    for warning in answer.warnings:
        lines += wrap(escape(warning), style.width, rest="  ")
    return [style.warning(line) for line in lines]


def _render_next(answer: BenchRunAnswer, style: Style) -> list[str]:
    lines = wrap(f"record: {escape(str(answer.path))}", style.width, rest="  ")
    for step in _next_steps(answer):
        lines += wrap(step, style.width, first="next: ", rest="      ")
    return lines


def _next_steps(answer: BenchRunAnswer) -> list[str]:
    record, spread = answer.record, answer.spread
    path = escape(str(answer.path))
    if record.failure:
        return ["mend what failed, and measure again under another label; this record is not valid for a comparison"]
    found = []
    if spread.between_cv_share is not None and spread.between_cv_share > NOISY_CV:
        found.append(
            f"processes differ by {_share(spread.between_cv_share)}, too much for one run against another:"
            " longpole bench doctor says why, longpole bench gate --a … --b … compares in pairs"
        )
    if not spread.stages and spread.units:
        found.append("mark stages with longpole.record to see where the time goes")
    if answer.earlier is not None:
        found.append(f"longpole bench compare {escape(str(answer.earlier))} {path}")
    elif not found:
        found.append("after the change, run this again with another --label, and longpole bench compare the two")
    return found


def _share(share: float | None) -> str:
    """Write a share in percent with two figures."""
    if share is None:
        return "?"
    percent = 100 * share
    return f"{percent:.1f} %" if percent < 10 else f"{percent:.0f} %"
