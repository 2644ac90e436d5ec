"""The page about a job of timed operations: who holds it up, what that costs, and where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.figures import scale_for
from longpole.report.text.layout import Style, bar, columns_of, join_wrapped, pad, shorten, wrap
from longpole.report.text.page import NARROWEST
from longpole.report.text.record import render_findings
from longpole.report.text.words import plural
from longpole.units import format_bytes, format_count, format_ns

if TYPE_CHECKING:
    from longpole.report.operations import Operations, RankEntry, Share

_NAME: Final = 28
_BAR: Final = 12
_ROWS: Final = 8
_TURNS: Final = 5
_LEAST: Final = 1.001  # a part that slows the ideal by less than a thousandth is not shown


def render_operations(report: Operations, *, width: int, color: bool) -> str:
    """Write the page.

    Args:
        report: The document.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences; they are the only control characters beside line ends.

    Returns:
        Lines of at most that many columns, each with its line end. Everything that comes from a table is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    sections = [
        _who(report, style),
        _verdict(report, style),
        _steps(report, style),
        _types(report, style),
        _places(report, style),
        _ranks(report, style),
        _not_known(report, style),
        render_findings(report.integrity, style),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _who(report: Operations, style: Style) -> list[str]:
    layout, steps = report.layout, report.steps
    shape = f"{layout.data_parallel} data-parallel × {plural(layout.stages, 'stage')}"
    size = format_bytes(sum(source.bytes for source in report.sources))
    parts = [
        plural(len(layout.ranks), "rank"),
        shape + (f" × {layout.tensor_parallel} tensor-parallel" if layout.tensor_parallel > 1 else ""),
        *([format_count(layout.micro_batches, "micro-batch", "micro-batches")] if layout.micro_batches else []),
        plural(steps.count, "step") + (f", {len(steps.left_out)} left out" if steps.left_out else ""),
        f"{plural(len(report.sources), 'file')}, {size}, {plural(layout.operations, 'operation')}",
    ]
    return join_wrapped(parts, style.width)


def _verdict(report: Operations, style: Style) -> list[str]:
    culprit = report.culprit
    if isinstance(culprit, Unknown):
        lines = wrap(f"because {escape(culprit.unknown)}", style.width, first="NO VERDICT  ", rest="  ")
        lines[0] = style.alarm("NO VERDICT") + lines[0][len("NO VERDICT") :]
        return lines + wrap(f"To get one: {escape('; '.join(culprit.missing))}", style.width, first="  ", rest="  ")
    title = "THE LONG POLE" if culprit.kind != "none" else "NO STRAGGLER"
    lines = wrap(escape(culprit.says), style.width, first=f"{title}  ", rest="  ")
    lines[0] = style.verdict(title) + lines[0][len(title) :]
    return lines


def _steps(report: Operations, style: Style) -> list[str]:
    """Show measured, replayed and ideal times, and what explains the difference between the last two."""
    steps = report.steps
    scale = scale_for(steps.measured_ns)
    lines = [style.title("A STEP", f"{scale.unit}, mean of {plural(steps.count, 'step')}")]
    rows = [
        ("measured", steps.measured_ns, "first start to last end"),
        (
            "replayed",
            steps.replayed_ns,
            f"off by {_signed(steps.error)}, one step {_signed(steps.error_largest)}",
        ),
        ("if nobody straggled", steps.ideal_ns, f"slowdown {report.slowdown:.3f}"),
    ]
    for name, dur_ns, note in rows:
        left = f"  {pad(name, _NAME)}{scale.write(dur_ns):>9}  "
        lines.append(left + style.faint(shorten(note, style.width - len(left))))
    explained = [
        ("the worst rank alone", report.explained_by_worker),
        ("the worst few ranks", report.explained_by_workers),
        ("the last stage alone", report.explained_by_last_stage),
    ]
    shares = [(name, share) for name, share in explained if not isinstance(share, Unknown)]
    if not shares:
        return lines
    lines.append("  how much of the difference goes if only these kept pace:")
    lines += [f"    {pad(name, _NAME - 2)}{_share(share):>9}{_of_ranks(share)}" for name, share in shares]
    if not isinstance(report.persistent_share, Unknown):
        lines.append("  how much of it stays if every rank kept its own mean pace:")
        lines.append(f"    {pad('', _NAME - 2)}{_whole_percent(report.persistent_share):>9}")
    return lines


def _types(report: Operations, style: Style) -> list[str]:
    lines = [style.title("BY OPERATION", "slowdown: the ideal with only this as it was, over the ideal")]
    lines.append(f"  {'':<{_NAME}}{'slowdown':>9}{'mean':>10}{'waiting':>10}")
    shown = [entry for entry in report.by_optype if entry.slowdown >= _LEAST][:_ROWS] or report.by_optype[:1]
    for entry in shown:
        waiting = "–" if entry.kind == "compute" else format_ns(entry.waiting_ns)
        left = f"  {pad(escape(entry.name), _NAME)}{entry.slowdown:>9.3f}{format_ns(entry.mean_ns):>10}{waiting:>10}"
        lines.append(_with_bar(left, entry.slowdown, report, style))
    rest = len(report.by_optype) - len(shown)
    if rest:
        lines.append(style.faint(f"  and {rest} more, each below {min(entry.slowdown for entry in shown):.3f}"))
    return lines


def _places(report: Operations, style: Style) -> list[str]:
    lines = [style.title("BY STAGE AND DATA-PARALLEL RANK")]
    lines.append(f"  {'':<{_NAME}}{'slowdown':>9}{'explains':>10}{'computes':>10}")
    for stage in report.by_stage[:_ROWS]:
        explains = "?" if isinstance(stage.explains, Unknown) else _whole_percent(stage.explains)
        figures = f"{stage.slowdown:>9.3f}{explains:>10}{format_ns(stage.compute_ns):>10}"
        lines.append(_with_bar(f"  {pad(f'stage {stage.stage}', _NAME)}{figures}", stage.slowdown, report, style))
    for entry in report.by_dp_rank[:_TURNS]:
        worst = f"worst in {plural(entry.steps_worst, 'step')}"
        left = f"  {pad(f'data-parallel rank {entry.dp_rank}', _NAME)}{entry.slowdown:>9.3f}  {pad(worst, 18)}"
        lines.append(_with_bar(left, entry.slowdown, report, style))
    rest = len(report.by_stage[_ROWS:]) + len(report.by_dp_rank[_TURNS:])
    if rest:
        lines.append(style.faint(f"  and {rest} more; --json has them all"))
    return lines


def _ranks(report: Operations, style: Style) -> list[str]:
    lines = [style.title("RANKS", "the worst first; a rank that waits for others is not the cause")]
    lines.append(f"  {'':<{_NAME}}{'slowdown':>9}{'computes':>10}{'waits':>10}")
    lines += [
        f"  {pad(_place(entry), _NAME)}{_slowdown(entry):>9}{format_ns(entry.compute_ns):>10}"
        f"{format_ns(entry.waiting_ns):>10}"
        for entry in report.by_rank[:_TURNS]
    ]
    rest = len(report.by_rank) - _TURNS
    if rest > 0:
        lines.append(style.faint(f"  and {plural(rest, 'more rank')}; --json has them all"))
    return lines


def _not_known(report: Operations, style: Style) -> list[str]:
    left_out = report.steps.left_out
    if not left_out:
        return []
    named = "; ".join(f"step {step.step}: {escape(step.why)}" for step in left_out[:_TURNS])
    more = f"; and {len(left_out) - _TURNS} more" if len(left_out) > _TURNS else ""
    return [style.title("LEFT OUT"), *wrap(named + more, style.width, first="  ", rest="  ", max_lines=4)]


def _place(entry: RankEntry) -> str:
    tensor = f", tp {entry.tp_rank}" if entry.tp_rank else ""
    return f"rank {entry.rank} · stage {entry.stage}, dp {entry.dp_rank}{tensor}"


def _slowdown(entry: RankEntry) -> str:
    if isinstance(entry.slowdown, Unknown):
        return f"≤ {entry.slowdown_bound:.2f}"
    return f"{entry.slowdown:.3f}"


def _share(share: Share) -> str:
    return _whole_percent(share.removed)


def _of_ranks(share: Share) -> str:
    names = ", ".join(str(rank) for rank in share.ranks[:_TURNS])
    return f"  rank{'s' if len(share.ranks) > 1 else ''} {names}" if names else ""


def _whole_percent(share: float) -> str:
    return f"{100 * share:.0f} %".replace("-0 %", "0 %").replace("-", "−")


def _signed(share: float) -> str:
    return f"{100 * share:+.2f} %".replace("-", "−")


def _with_bar(left: str, slowdown: float, report: Operations, style: Style) -> str:
    """Add a bar as long as the part's slowdown, measured by the largest of the page, as far as there is room."""
    largest = max([report.slowdown, *(entry.slowdown for entry in report.by_stage)]) - 1
    room = min(style.width - columns_of(left) - 2, _BAR)
    if largest <= 0 or slowdown < _LEAST or room < 1:
        return left.rstrip()
    return f"{left}  {style.bar(bar((slowdown - 1) / largest, room))}"
