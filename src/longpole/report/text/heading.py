"""The top of the page: who ran, and the long pole or why there is no verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.layout import join_wrapped, wrap
from longpole.report.text.memory import peak_memory
from longpole.report.text.words import is_on_cpu, plural, ranks_as_text, unit_noun, wait_words, with_article
from longpole.report.worst import whole_units
from longpole.units import format_bytes, format_ns

if TYPE_CHECKING:
    from longpole.report.document import Report
    from longpole.report.text.layout import Style

_VERSIONS: Final = (
    ("torch_version", "torch"),
    ("cuda_runtime_version", "CUDA"),
    ("hip_runtime_version", "HIP"),
    ("nccl_version", "NCCL"),
)
# 12080 is CUDA 12.8 (`cudaRuntimeGetVersion`), 70253211 is HIP 7.2.53211 (`HIP_VERSION` in hip_version.h).
_CUDA_MAJOR, _CUDA_MINOR = 1000, 10
_HIP_MAJOR, _HIP_MINOR = 10_000_000, 100_000
_TITLE: Final = "THE LONG POLE"
_NO_TITLE: Final = "NO VERDICT"
_WHOLE_PER_S: Final = 100.0
_BY_LEDGER: Final = "This is the time that the ledger charges; removing it may save less, or more."


def render_who(report: Report, style: Style) -> list[str]:
    """Say which ranks, units, devices, versions and files the page is about."""
    run = report.run
    world = run.world_size if isinstance(run.world_size, int) else None
    n_present = len(run.ranks_present)
    parts = [f"{n_present} of {plural(world, 'rank')}" if world is not None else plural(n_present, "rank")]
    if run.ranks_assumed:
        parts[0] += " (number assumed)" if n_present == 1 else " (numbers assumed)"
    parts += [_units(report), *_devices(report), *_versions(run.environment), *_period(report), *_items(report)]
    parts += _selection(report)
    parts += [peak_memory(report)] if peak_memory(report) else []
    n_events = sum(source.events for source in run.sources)
    size = format_bytes(sum(source.bytes for source in run.sources))
    parts.append(f"{plural(len(run.sources), 'file')}, {size}, {plural(n_events, 'event')}")
    return join_wrapped(parts, style.width)


def render_headline(report: Report, style: Style) -> list[str]:
    """Give the verdict in a sentence with its figure, or say why there is none and what would make one possible."""
    headline = report.headline
    if isinstance(headline, Unknown):
        lines = wrap(f"because {escape(headline.unknown)}", style.width, first=_NO_TITLE + "  ", rest="  ", max_lines=4)
        lines[0] = style.alarm(_NO_TITLE) + lines[0][len(_NO_TITLE) :]
        if headline.missing:
            need = escape("; ".join(headline.missing))
            lines += wrap(f"To get one: {need}", style.width, first="  ", rest="  ", max_lines=3)
        return lines
    lines = wrap(escape(headline.says), style.width, first=_TITLE + "  ", rest="  ", max_lines=3)
    lines[0] = style.verdict(_TITLE) + lines[0][len(_TITLE) :]
    words = wait_words(headline.object, on_cpu=is_on_cpu(report))
    sentences = [words] if words else []
    if headline.basis == "ledger":
        sentences.append(_BY_LEDGER)
    return lines + [line for text in sentences for line in wrap(text, style.width, first="  ", rest="  ")]


def _units(report: Report) -> str:
    unit = report.unit
    if unit.kind == "trace":
        return "no steps marked, so the whole record is one unit"
    # One that began before all ranks recorded belongs to the head, and is not among the units that are counted.
    counted = {own.name for row in report.ranks for own in whole_units(row)}
    n_left_out = len({entry.unit for entry in unit.left_out} & counted)
    return plural(unit.count, unit.kind) + (f", {n_left_out} left out of means" if n_left_out else "")


def _devices(report: Report) -> list[str]:
    names = list(dict.fromkeys(row.device_name for row in report.ranks if row.device_name))
    if names:
        return [escape(names[0]) if len(names) == 1 else f"{escape(names[0])} and {len(names) - 1} other models"]
    return ["no device recorded, CPU only"] if is_on_cpu(report) else []


def _versions(environment: dict[str, Any]) -> list[str]:
    found = []
    for key, name in _VERSIONS:
        value = environment.get(key)
        if isinstance(value, int) and value >= _CUDA_MAJOR:
            found.append(f"{name} {_decoded(key, value)}")
        elif isinstance(value, str | int | float) and str(value) not in ("", "0"):
            found.append(f"{name} {escape(str(value))}")
    return found


def _decoded(key: str, value: int) -> str:
    """Write a version that is coded as one number."""
    if key.startswith("hip_"):
        return f"{value // _HIP_MAJOR}.{value % _HIP_MAJOR // _HIP_MINOR}.{value % _HIP_MINOR}"
    return f"{value // _CUDA_MAJOR}.{value % _CUDA_MAJOR // _CUDA_MINOR}"


def _period(report: Report) -> list[str]:
    period = report.unit.period_ns
    noun = unit_noun(report.unit.kind)
    if not isinstance(period.median, int):
        return []
    if period.n <= 1:
        return [f"{'it' if report.unit.kind == 'trace' else 'one ' + noun} took {format_ns(period.median)}"]
    tail = f", P95 {format_ns(period.p95)}" if isinstance(period.p95, int) else ""
    return [f"{with_article(noun)} completes every {format_ns(period.median)} (median of {period.n}{tail})"]


def _items(report: Report) -> list[str]:
    """Say what a unit processes, and how fast, where the program said it."""
    items = report.unit.items
    if not isinstance(items.per_unit, int):
        return []
    kind = escape(items.kind) if isinstance(items.kind, str) else "item"
    per_s = items.per_s if isinstance(items.per_s, float) else 0.0
    rate = f", {per_s:,.0f} a second" if per_s >= _WHOLE_PER_S else f", {per_s:.3g} a second" if per_s else ""
    return [f"{plural(items.per_unit, kind)} in each{rate}"]


def _selection(report: Report) -> list[str]:
    chosen = report.run.selection
    parts = []
    if chosen.units is not None:
        parts.append(f"only units {escape(chosen.units)}")
    if chosen.ranks is not None:
        parts.append(f"only {ranks_as_text(chosen.ranks)}")
    if chosen.step is not None:
        parts.append(f"units marked by {escape(chosen.step)}")
    return parts
