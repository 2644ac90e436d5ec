"""The critical path on the page: what it runs over, on which ranks, how sure, and how far a replay may be believed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.figures import scale_for, spread_percent
from longpole.report.text.layout import bar, pad, wrap
from longpole.report.text.words import unit_noun
from longpole.units import format_ns
from longpole.vocabulary.objects import OBJECTS

if TYPE_CHECKING:
    from longpole.records.critical_path import CriticalPath
    from longpole.records.replay import Replay
    from longpole.report.document import Report
    from longpole.report.text.layout import Style

_WORDS: Final = {"compute": "computation", "collective": "communication", "unknown": "unexplained"}
_RANKS_SHOWN: Final = 6
_BAR: Final = 24
_NAME: Final = 18
_FIGURE: Final = 10
_SHARE: Final = 9


def render_path(report: Report, style: Style) -> list[str]:
    """Return the section; empty where nothing was asked of the graph."""
    path = report.critical_path
    if isinstance(path, Unknown):
        title = style.title("CRITICAL PATH", "not known")
        return [title, *wrap(escape(path.unknown), style.width, first="  ", rest="  ")]
    noun = unit_noun(report.unit.kind)
    n = len(path.units)
    walked = f"the chain that {n} steady {noun}s took, mean of each" if n > 1 else f"the chain that the one {noun} took"
    lines = [style.title("CRITICAL PATH", walked)]
    lines += _objects(path, style)
    lines += _ranks(path, style)
    lines += wrap(escape(path.says), style.width, first="  longest: " if n > 1 else "  ", rest="    ")
    lines += wrap(_grades(path), style.width, first="  ", rest="    ")
    lines += _near(path, style)
    if not isinstance(report.replay, Unknown):
        lines += wrap(_judgement(report.replay), style.width, first="  ", rest="    ")
    return lines


def _objects(path: CriticalPath, style: Style) -> list[str]:
    n = max(len(path.units), 1)
    rows = [(name, path.by_object_ns[name] // n) for name in OBJECTS if path.by_object_ns.get(name, 0)]
    rows.sort(key=lambda row: -row[1])
    total_ns = sum(part for _, part in rows)
    small = [row for row in rows if row[1] < _WORTH * total_ns]
    if len(small) > 1:
        rows = [*rows[: -len(small)], ("others", sum(part for _, part in small))]
    scale = scale_for(total_ns)
    figures = scale.spread([part for _, part in rows])
    shares = spread_percent([part for _, part in rows], total_ns)
    lines = []
    for (name, part_ns), figure, share in zip(rows, figures, shares, strict=True):
        line = f"  {pad(_WORDS.get(name, name), _NAME)}{figure:>{_FIGURE}} {scale.unit}{share:>{_SHARE}}  "
        room = min(_BAR, style.width - len(line))
        lines.append(line + style.bar(bar(part_ns / total_ns if total_ns else 0.0, room)))
    return lines


def _ranks(path: CriticalPath, style: Style) -> list[str]:
    """Say on which ranks the path lies, where there are several."""
    if len(path.by_rank_ns) < 2 and path.ranks_visited in ([], [path.anchor_rank]):
        return []
    total_ns = max(sum(path.by_object_ns.values()), 1)
    rows = sorted(path.by_rank_ns.items(), key=lambda row: -row[1])
    parts = [f"rank {rank} {time_ns / total_ns:.0%}" for rank, time_ns in rows[:_RANKS_SHOWN]]
    more = f", {len(rows) - _RANKS_SHOWN} more" if len(rows) > _RANKS_SHOWN else ""
    return wrap(f"on {', '.join(parts)}{more}", style.width, first="  ", rest="    ")


def _grades(path: CriticalPath) -> str:
    shares = [f"{share:.0%} {name}" for name, share in path.by_grade_share.items() if share >= _WORTH]
    return f"evidence: {', '.join(shares)}" if shares else "evidence: none"


_WORTH: Final = 0.005


def _near(path: CriticalPath, style: Style) -> list[str]:
    """Say what comes next: objects off the path, with how much longer they could take."""
    known = [(entry.object, entry.slack_ns) for entry in path.near_critical if isinstance(entry.slack_ns, int)]
    near = [(name, slack_ns) for name, slack_ns in known if slack_ns > 0]
    if not near:
        return []
    parts = [f"{_WORDS.get(name, name)} {format_ns(slack_ns)}" for name, slack_ns in near[:4]]
    return wrap(f"slack before it grows: {', '.join(parts)}", style.width, first="  ", rest="    ")


def _judgement(replay: Replay) -> str:
    """Say how far a what-if on this run may be believed."""
    error = replay.error_of_median
    shown = f"{error:+.1%}" if isinstance(error, float) else "?"
    if replay.verdict == "refused":
        return "what-if: refused on this run; the replay of it unchanged does not reproduce it (see `longpole whatif`)"
    if replay.verdict == "not tested":
        return (
            f"what-if: the unchanged replay is {shown} off, but so much of it is kept as recorded that this proves"
            " nothing"
        )
    return f"what-if: the unchanged replay is {shown} off the median; try `longpole whatif`"
