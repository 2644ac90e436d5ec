"""The pages of `longpole bench io` and `bench show`: what follows, then loads, saves, copies, laws and exposed time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.layout import Style, pad, wrap
from longpole.units import format_bytes, format_count, format_ns, write_binary_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.records.bench_io import BenchIo, IoCase, IoDecision, IoExposure, IoFigure, IoModel, IoPath

_NARROWEST: Final = 80
_NAME: Final = 24
_TIME: Final = 10
_RATE: Final = 11
_LINES: Final = 6
_DASH: Final = "–"
_LABEL: Final = 13
_TITLES: Final = {
    "measured": "MEASURED",
    "invalid": "INVALID",
    "failed": "FAILED",
}
_VERDICTS: Final = {"not_measured": "not measured"}
_REFUSED: Final = "invalid: use the table, extrapolate none"


def render_bench_io(record: BenchIo, *, width: int, color: bool, written: str = "") -> str:
    """Write the page of a record.

    Args:
        record: What was measured.
        width: Columns of a line; below 80 it is 80, what its tables take.
        color: Whether to use SGR sequences.
        written: Where the record is; empty where that is not to be said.

    Returns:
        Lines of at most that many columns, each with its line end. Everything that comes from a record is escaped.
    """
    style = Style(max(width, _NARROWEST), color)
    sections = [
        _verdict(record, style),
        _decisions(record, style),
        _table(record, "load", "LOADS", "to the first full touch of every byte", style),
        _table(record, "save", "SAVES", "until it is as durable as it says", style),
        _table(record, "copy", "COPIES", "", style),
        _exposed(record, style),
        _models(record, style),
        _skipped(record, style),
        _next(record, style, written),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _verdict(record: BenchIo, style: Style) -> list[str]:
    workload, storage = record.workload, record.storage
    title = _TITLES[record.status]
    why = record.failure or _why(record)
    said = f"{why}" if why else f"{format_count(len(record.paths), 'path')}, every byte of every sample checked"
    lines = wrap(escape(said), style.width, first=f"{title}  ", rest="  ", max_lines=_LINES)
    paint = style.verdict if record.status == "measured" else style.alarm
    lines[0] = paint(title) + lines[0][len(title) :]
    rounds = f"{workload.rounds} of {workload.rounds_planned} rounds" if workload.rounds_planned else "no rounds"
    facts = [
        f"{escape(record.label)} · {escape(record.semantic_id)} · {rounds} in {record.elapsed_s:,.0f} s",
        f"{write_binary_bytes(workload.size_bytes)} {workload.dtype}, {format_count(workload.tensors, 'tensor')}; "
        f"{format_count(workload.warmups, 'warm-up')}, {format_count(workload.repeats, 'repeat')}, "
        f"seed {workload.seed}, {format_count(workload.threads, 'thread')}",
        escape(f"{storage.filesystem or 'unknown file system'} on {storage.device or storage.source or 'no device'}")
        + f" ({escape(', '.join(storage.options))}), {escape(storage.folder)}",
        escape(", ".join(f"{name} {version}" for name, version in record.framework.items())),
        escape(_machine(record)),
    ]
    for fact in facts:
        lines += wrap(fact, style.width, first="  ", rest="    ", max_lines=2)
    return lines + _suspect(record, style)


def _machine(record: BenchIo) -> str:
    hardware = record.hardware
    parts = [f"{hardware.get('usable_cpus', hardware.get('cpu_count', '?'))} × {hardware.get('cpu', 'CPU')}"]
    if "hypervisor" in hardware:
        whose = hardware["hypervisor"]
        parts.append("virtual machine" if whose == "yes" else f"virtual machine ({whose})")
    parts.append(f"kernel {hardware.get('kernel', '?')}")
    parts.append(str(hardware.get("device", "no device")))
    return ", ".join(parts)


def _why(record: BenchIo) -> str:
    """Say why a record is not to be used as it is."""
    if record.status == "failed":
        return record.correctness.says
    bad = [path for path in record.paths if path.evidence == "invalid"]
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    return f"{bad[0].name}{more}: {bad[0].reason}" if bad else ""


def _decisions(record: BenchIo, style: Style) -> list[str]:
    """Write the decision table: evidence boundary, correctness, then what follows for each object."""
    check = record.correctness
    words = {"passed": "passed", "differs": "DIFFERS", "failed": "FAILED", "not_run": "not run"}
    reloaded = any(path.operation == "load" and path.format != "files" for path in record.paths)
    says = check.says or f"names, types, shapes and every byte of {format_count(check.samples, 'sample')}"
    says += ", also in another process" if reloaded and check.status == "passed" else ""
    lines = [style.title("DECISION")]
    lines += _row("evidence", record.evidence, style)
    lines += _row("correctness", f"{words[check.status]}: {says}", style)
    for decision in record.decisions:
        lines += _decision(decision, style)
    if record.failure:
        lines += _row("decisions", "none: the run did not come to its end", style)
    return lines


def _decision(decision: IoDecision, style: Style) -> list[str]:
    verdict = _VERDICTS.get(decision.verdict, decision.verdict).upper() if decision.verdict != "not_measured" else ""
    text = f"{verdict}  {decision.says}" if verdict else f"not decided  {decision.says}"
    lines = [*_row(decision.object, decision.question, style)]
    lines += wrap(escape(text), style.width, first=" " * (2 + _LABEL), rest=" " * (4 + _LABEL), max_lines=_LINES)
    if verdict:
        place = 2 + _LABEL
        paint = style.verdict if decision.verdict == "accept" else style.warning
        first = lines[-1] if len(lines) == 2 else lines[1]
        lines[1] = " " * place + paint(verdict) + first[place + len(verdict) :]
    if decision.next:
        lines += wrap(f"→ {decision.next}", style.width, first=" " * (2 + _LABEL), rest=" " * (4 + _LABEL))
    return lines


def _row(label: str, text: str, style: Style) -> list[str]:
    indent = " " * (2 + _LABEL)
    return wrap(escape(text), style.width, first=f"  {pad(label, _LABEL)}", rest=indent, max_lines=_LINES)


def _table(record: BenchIo, operation: str, title: str, what: str, style: Style) -> list[str]:
    """Show one kind of path at the workload's size; paths of many files at their own."""
    paths = [path for path in record.paths if path.operation == operation]
    if not paths:
        return []
    size = record.workload.size_bytes
    rest = f"{write_binary_bytes(size)}, {what}" if what else write_binary_bytes(size)
    lines = [style.title(title, rest)]
    last = {"load": ["returned"], "save": ["durable"]}.get(operation, [])
    columns = ["median", "P95", "GB/s", *last]
    head = "".join(f"{name:>{_RATE if name == 'GB/s' else _TIME}}" for name in columns)
    lines.append(style.faint(f"  {pad('', _NAME)}{head}{'n':>4}"))
    for path in paths:
        lines += _path_row(path, size, style)
    return lines


def _path_row(path: IoPath, size: int, style: Style) -> list[str]:
    case = path.case_of(size)
    name = path.name
    if case is None and path.format == "files" and path.cases:
        case = path.cases[len(path.cases) // 2]
        name = f"{path.name}, each of {case.objects} × {write_binary_bytes(case.size_bytes)}"
    first = f"  {pad(escape(name), _NAME)}"
    if path.evidence in ("invalid", "failed"):
        word = path.evidence.upper()
        lines = wrap(
            f"{word} {escape(path.reason)}", style.width, first=first, rest=" " * (_NAME + 4), max_lines=_LINES
        )
        lines[0] = lines[0].replace(word, style.alarm(word), 1)
        return lines
    if case is None or case.service is None:
        return [f"{first}{'not measured at this size':>{_TIME}}"]
    if len(name) > _NAME:
        lines, first = [f"  {escape(name)}"], f"  {pad('', _NAME)}"
    else:
        lines = []
    figure = case.service
    rate = f"{case.gb_per_s:.2f}" if isinstance(case.gb_per_s, float) else _DASH
    text = f"{first}{format_ns(figure.median_ns):>{_TIME}}{_p95(figure):>{_TIME}}{rate:>{_RATE}}"
    if path.operation == "load":
        text += f"{format_ns(case.returned.median_ns) if case.returned else _DASH:>{_TIME}}"
    elif path.operation == "save":
        text += f"{path.durability:>{_TIME}}"
    text += f"{figure.n:>4}"
    lines.append(text)
    if path.correctness.status == "differs":
        lines += wrap(escape(path.correctness.says), style.width, first=" " * 4, rest=" " * 4, max_lines=3)
    return lines


def _suspect(record: BenchIo, style: Style) -> list[str]:
    """Say which conditions held during most samples of how many paths."""
    size = record.workload.size_bytes
    counts: dict[str, int] = {}
    for path in record.paths:
        looked_at = [case for case in path.cases if case.size_bytes == size or path.format == "files"]
        for flag in {flag for case in looked_at for flag in _often(case)}:
            counts[flag] = counts.get(flag, 0) + 1
    if not counts:
        return []
    found = ", ".join(f"{flag} ({n} of {len(record.paths)} paths)" for flag, n in sorted(counts.items()))
    lines = wrap(
        f"during most samples: {found}. These figures describe a busy machine; longpole bench doctor says more",
        style.width,
        first="  NOISY  ",
        rest="    ",
    )
    lines[0] = "  " + style.warning("NOISY") + lines[0][7:]
    return lines


def _often(case: IoCase) -> list[str]:
    counted = len(case.service_ns) - case.warmups
    return [
        flag
        for flag, places in case.flags.items()
        if counted and 2 * sum(place >= case.warmups for place in places) > counted
    ]


def _p95(figure: IoFigure) -> str:
    return _DASH if isinstance(figure.p95_ns, Unknown) else format_ns(figure.p95_ns)


def _exposed(record: BenchIo, style: Style) -> list[str]:
    if not record.exposed:
        return []
    first = record.exposed[0]
    lines = [style.title("EXPOSED", f"{write_binary_bytes(first.size_bytes)}, medians of {first.pairs} pairs")]
    head = ("block", "slowdown", "drain", "exposed", "alone", "hidden")
    lines.append(style.faint("  " + "".join(f"{name:>{_TIME}}" for name in head)))
    for one in record.exposed:
        lines += _exposure(one, style)
    lines.append(style.faint("  exposed = block + slowdown + drain; hidden = 1 − exposed / alone"))
    return lines


def _exposure(one: IoExposure, style: Style) -> list[str]:
    lines = [f"  {escape(one.method)}"]
    if one.evidence != "measured" or not one.exposed_ns:
        why = f"{one.evidence.upper()} {escape(one.reason)}"
        return [*lines, *wrap(why, style.width, first="    ", rest="    ")]
    columns = (one.block_ns, one.slowdown_ns, one.drain_ns, one.exposed_ns, one.service_ns)
    cells = [format_ns(_median(values)) for values in columns]
    hidden = f"{one.overlap_efficiency:.0%}" if isinstance(one.overlap_efficiency, float) else _DASH
    lines.append("  " + "".join(f"{cell:>{_TIME}}" for cell in (*cells, hidden)))
    if isinstance(one.interval_ns, tuple) and isinstance(one.estimate_ns, int):
        low, high = (format_ns(end) for end in one.interval_ns)
        text = f"exposed {format_ns(one.estimate_ns)} [{low}, {high}] a save: mean, 90 % t interval over pairs"
        if isinstance(one.peak_bytes, int):
            text += f"; it held up to {format_bytes(one.peak_bytes)} of memory"
        lines += wrap(text, style.width, first="    ", rest="    ")
    return lines


def _median(values: Sequence[int]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _models(record: BenchIo, style: Style) -> list[str]:
    """Show the laws; below the crossover latency rules."""
    right = [path for path in record.paths if path.evidence == "measured"]
    paths = [path for path in right if path.model.status != "not_fitted"]
    if not paths:
        says = f"none: {right[0].model.says}" if right else ""
        return [style.title("MODELS"), *wrap(says, style.width, first="  ", rest="  ")] if says else []
    lines = [style.title("MODELS", "time = latency + bytes / bandwidth, with 90 % intervals")]
    head = f"{'latency':>{_RATE}}{'GB/s':>18}{'crossover':>{_RATE}}{'worst error':>13}"
    lines.append(style.faint(f"  {pad('', _NAME)}{head}"))
    for path in paths:
        lines += _model(path.name, path.model)
    lines.append(style.faint("  crossover: below this size latency rules"))
    return lines


def _model(name: str, model: IoModel) -> list[str]:
    error = f"{model.worst_error:.0%}" if isinstance(model.worst_error, float) else _DASH
    if model.status == "invalid":
        return [f"  {pad(escape(name), _NAME)}{_REFUSED:>{_RATE + 18 + _RATE}}{error:>13}"]
    lines = []
    for place, piece in enumerate(model.pieces):
        low, high = piece.gb_per_s_interval if isinstance(piece.gb_per_s_interval, tuple) else (0.0, 0.0)
        rate = _rate(piece.gb_per_s) if isinstance(piece.gb_per_s, float) else _DASH
        rate += f" [{_rate(low)}, {_rate(high)}]" if high else ""
        label = escape(name) if not place else f"  from {write_binary_bytes(piece.from_bytes)}"
        crossover = (
            f"{format_bytes(model.crossover_bytes)}" if isinstance(model.crossover_bytes, int | float) else _DASH
        )
        shown = (crossover, error) if not place else ("", "")
        terms = f"{format_ns(piece.latency_ns):>{_RATE}}{rate:>18}"
        lines.append(f"  {pad(label, _NAME)}{terms}{shown[0]:>{_RATE}}{shown[1]:>13}".rstrip())
    return lines


def _rate(gb_per_s: float) -> str:
    return f"{gb_per_s:.1f}" if gb_per_s >= 10 else f"{gb_per_s:.2f}"


def _skipped(record: BenchIo, style: Style) -> list[str]:
    if not record.skipped:
        return []
    lines = [style.title("NOT MEASURED")]
    reasons: dict[str, list[str]] = {}
    for one in record.skipped:
        reasons.setdefault(one.reason, []).append(one.name)
    for reason, names in reasons.items():
        lines += wrap(escape(f"{reason}: {', '.join(names)}"), style.width, first="  ", rest="    ", max_lines=_LINES)
    return lines


def _next(record: BenchIo, style: Style, written: str) -> list[str]:
    if not written:
        return []
    lines = wrap(f"Record: {escape(written)}", style.width, rest="  ")
    if record.status != "failed" and any(path.model.status == "fitted" for path in record.paths):
        lines += wrap(f"Next: longpole ledger EVENTS.toml --paths {escape(written)}", style.width, rest="  ")
    return lines
