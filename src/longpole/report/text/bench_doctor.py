"""The page of `longpole bench doctor`: the verdict, the loop that was timed, and what disturbs, with what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.escape import escape
from longpole.report.text.layout import Style, join_wrapped, pad, wrap
from longpole.report.text.page import NARROWEST
from longpole.units import format_ns

if TYPE_CHECKING:
    from longpole.records.doctor import Doctor, DoctorCheck

_NAME: Final = 17
_DETAILED: Final = ("noisy", "may matter", "not known")
_TITLES: Final = {
    "noisy": "disturbs measurements now",
    "may matter": "may matter",
    "not known": "not known",
}


def render_doctor(doctor: Doctor, *, width: int, color: bool) -> str:
    """Write what makes a machine noisy.

    Args:
        doctor: What was found.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.

    Returns:
        Lines of at most that many columns, each with its line end.
    """
    style = Style(max(width, NARROWEST), color)
    sections = [_render_verdict(doctor, style), _render_loop(doctor, style)]
    sections += [_render_group(doctor, status, style) for status in _DETAILED]
    sections += [_render_quiet(doctor, style), _render_next(doctor, style)]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _render_verdict(doctor: Doctor, style: Style) -> list[str]:
    lines = wrap(escape(doctor.says), style.width, rest="  ")
    lines[0] = style.alarm(lines[0]) if doctor.noisy else style.verdict(lines[0])
    facts = doctor.environment.must_match
    machine = f"{facts.get('cpu', facts.get('architecture', ''))} × {facts.get('cpu_count', '?')}"
    found = [*map(str, facts.get("gpus", [])), machine, f"{facts.get('os', '')} {facts.get('kernel', '')}"]
    return lines + [style.faint(line) for line in wrap(escape(" · ".join(found)), style.width, rest="  ")]


def _render_loop(doctor: Doctor, style: Style) -> list[str]:
    loop = doctor.loop
    if loop is None:
        return []
    text = (
        f"{format_ns(loop.median_ns)} a round; it varied by {_percent(loop.within_cv_share)} within a process and by"
        f" {_percent(loop.between_cv_share)} between {loop.processes} processes (coefficients of variation);"
        f" the slowest round took {_percent(loop.slowest_share)} longer"
    )
    return wrap(text, style.width, first="a fixed loop: ", rest="  ")


def _render_group(doctor: Doctor, status: str, style: Style) -> list[str]:
    checks = [check for check in doctor.checks if check.status == status]
    if not checks:
        return []
    lines = [style.title(_TITLES[status])]
    for check in checks:
        lines += _render_check(check, style)
    return lines


def _render_check(check: DoctorCheck, style: Style) -> list[str]:
    indent = " " * (_NAME + 2)
    lines = wrap(escape(check.found), style.width, first=f"  {pad(check.name, _NAME)}", rest=indent)
    if check.why:
        lines += [style.faint(line) for line in wrap(escape(check.why), style.width, first=indent, rest=indent)]
    if check.remedy:
        lines += wrap(escape(check.remedy), style.width, first=f"{indent}→ ", rest=f"{indent}  ")
    return lines


def _render_quiet(doctor: Doctor, style: Style) -> list[str]:
    quiet = [f"{check.name}: {check.found}" for check in doctor.checks if check.status == "quiet"]
    if not quiet:
        return []
    lines = join_wrapped([escape(text) for text in quiet], style.width - 2)
    return [style.title("quiet"), *(style.faint(f"  {line}") for line in lines)]


def _render_next(doctor: Doctor, style: Style) -> list[str]:
    text = "longpole bench calibrate -- CMD measures what that means for your own command"
    if doctor.noisy:
        text += "; until it is quiet, trust pairs (longpole bench gate), not single runs"
    return wrap(text, style.width, first="next: ", rest="      ")


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"
