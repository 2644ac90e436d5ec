"""The page of `longpole hang`: who holds the job up, what it was doing, who waits, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.advice.hang.answer import name_operation, name_ranks
from longpole.report.escape import escape
from longpole.report.text.layout import Style, wrap
from longpole.report.text.page import NARROWEST

if TYPE_CHECKING:
    from longpole.records.hang import Hang, HangGroup, HangOperation, HangRoot, HangWaiting

_TITLES: Final = {
    "host": "A PROGRAM NEVER CAME",
    "device": "A DEVICE IS STUCK",
    "mismatch": "OPERATIONS DO NOT FIT",
    "order": "RANKS WAIT IN A CIRCLE",
    "transfer": "NOTHING MOVES",
    "not_told": "NO VERDICT",
    "none": "NOTHING HANGS",
}
_NEXT: Final = {
    "host": "look at what the rank does: py-spy dump --pid PID > pyspy_rank_N.txt there, and give that file too",
    "device": "look at that device: nvidia-smi, dmesg for Xid errors, and the kernel that runs; then at its links",
    "mismatch": "look at the condition under which that rank took another path: a rank test, an uneven last batch",
    "order": "issue collectives of different groups in the same order on all ranks",
    "transfer": "look at the network between the members: NCCL_DEBUG=INFO, ncclras, nccl-tests between the nodes",
    "not_told": "collect the missing ranks' dumps",
}
_ROWS: Final = 16
_LINES: Final = 6
_GROUPS: Final = 4
_WAITS: Final = 8


def render_hang(hang: Hang, *, width: int, color: bool) -> str:
    """Write which ranks hold a job up.

    Args:
        hang: The answer.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.

    Returns:
        Lines of at most that many columns, each with its line end. Everything from the files is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    sections = [
        _heading(hang, style),
        _verdict(hang, style),
        _roots(hang, style),
        _mismatches(hang, style),
        _waiting(hang, style),
        _groups(hang, style),
        _cautions(hang, style),
        _next(hang, style),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _heading(hang: Hang, style: Style) -> list[str]:
    of = f" of {hang.world_size:,}" if hang.world_size is not None else ""
    n_stacks = sum(source.what == "stacks" for source in hang.sources)
    versions = sorted({source.version for source in hang.sources if source.version})
    parts = [f"dumps of {len(hang.ranks):,}{of} ranks"]
    if versions:
        parts.append(f"version {', '.join(escape(version) for version in versions)}")
    if n_stacks:
        parts.append(f"stacks of {n_stacks:,}")
    if hang.empty:
        parts.append(f"{name_ranks(hang.empty)} empty")
    return wrap(" · ".join(parts), style.width)


def _verdict(hang: Hang, style: Style) -> list[str]:
    title = _TITLES[hang.verdict]
    lines = wrap(escape(hang.says), style.width, first=f"{title}  ", rest="  ", max_lines=_LINES)
    paint = style.verdict if hang.verdict in ("none", "not_told") else style.alarm
    lines[0] = paint(title) + lines[0][len(title) :]
    return lines


def _roots(hang: Hang, style: Style) -> list[str]:
    if not hang.roots or hang.verdict == "transfer":
        return []
    lines = [style.title("WHO HOLDS IT UP")]
    for root in hang.roots[:_ROWS]:
        lines += _root(root, style)
    if len(hang.roots) > _ROWS:
        lines.append(f"  and {len(hang.roots) - _ROWS:,} more; --json has them all")
    return lines


def _root(root: HangRoot, style: Style) -> list[str]:
    lines = wrap(escape(root.says), style.width, first="► ", rest="    ", max_lines=_LINES)
    facts = []
    if root.waited_for_by:
        facts.append(f"{name_ranks(root.waited_for_by)} wait{'s' if len(root.waited_for_by) == 1 else ''} for it")
    if root.last is not None:
        issued = f", issued at {root.last.where}" if root.last.where else ""
        facts.append(f"its last: {_operation(root.last)}{issued}")
    for fact in facts:
        lines += wrap(escape(fact), style.width, first="    ", rest="      ", max_lines=_LINES)
    if root.stack:
        lines += wrap(escape(" < ".join(root.stack[:3])), style.width, first="    stack: ", rest="      ", max_lines=4)
    return lines


def _operation(operation: HangOperation) -> str:
    sizes = f" {operation.sizes}" if operation.sizes else ""
    dtype = f" {operation.dtype}" if operation.dtype else ""
    return f"{name_operation(operation)}{sizes}{dtype}"


def _mismatches(hang: Hang, style: Style) -> list[str]:
    if not hang.mismatches:
        return []
    lines = [style.title("WHAT DOES NOT FIT")]
    for found in hang.mismatches[:_ROWS]:
        lines += wrap(escape(f"{found.what}, {found.says}"), style.width, first="  ", rest="    ", max_lines=_LINES)
    return lines


def _waiting(hang: Hang, style: Style) -> list[str]:
    if not hang.waiting:
        return []
    lines = [style.title("WHO WAITS")]
    rows: dict[str, list[HangWaiting]] = {}
    for one in hang.waiting:
        rows.setdefault(name_operation(one.at), []).append(one)
    # What holds somebody up goes before what only waits behind it.
    ordered = sorted(rows.items(), key=lambda row: (not any(one.for_ranks for one in row[1]), -len(row[1])))
    for name, some in ordered[:_WAITS]:
        others = sorted({rank for one in some for rank in one.for_ranks})
        text = f"{name_ranks(sorted({one.rank for one in some}))} in {name}"
        text = f"{text}, for {name_ranks(others)}" if others else text
        lines += wrap(escape(text), style.width, first="  ", rest="    ", max_lines=_LINES)
    if len(rows) > _WAITS:
        lines.append(f"  and in {len(rows) - _WAITS:,} more operations; --json has them all")
    return lines


def _groups(hang: Hang, style: Style) -> list[str]:
    if not hang.groups or hang.verdict == "mismatch":
        return []
    lines = [style.title("WHERE GROUPS STAND")]
    at = {(root.at.group, root.at.description) for root in hang.roots}
    ordered = sorted(hang.groups, key=lambda group: ((group.name, group.description) not in at, not group.not_entered))
    for group in ordered[:_GROUPS]:
        lines += wrap(escape(_group(group)), style.width, first="  ", rest="    ", max_lines=_LINES)
    if len(hang.groups) > _GROUPS:
        lines.append(f"  and {len(hang.groups) - _GROUPS:,} more groups; --json has them all")
    return lines


def _group(group: HangGroup) -> str:
    name = f"{group.description} ({group.name})" if group.description else f"group {group.name}"
    parts = [f"{name}, {len(group.members):,} members, stuck at {group.stuck_at:,}"]
    for what, ranks in (
        ("in it", group.entered),
        ("done with it", group.finished),
        ("not there", group.not_entered),
        ("without a dump", group.no_dump),
    ):
        if ranks:
            parts.append(f"{what} {name_ranks(ranks)}")
    if group.compare_from is not None:
        parts.append(f"comparable from {group.compare_from:,}")
    return "; ".join(parts)


def _cautions(hang: Hang, style: Style) -> list[str]:
    if not hang.cautions:
        return []
    lines = [style.title("HOW SURE THIS IS")]
    for caution in hang.cautions[:_ROWS]:
        lines += wrap(escape(caution), style.width, first="  ", rest="    ", max_lines=_LINES)
    return lines


def _next(hang: Hang, style: Style) -> list[str]:
    if hang.verdict == "none":
        return []
    hint = _NEXT[hang.verdict]
    if hang.verdict == "host" and any(root.stack for root in hang.roots):
        hint = "the stack above says what the program did instead of coming"
    return wrap(hint, style.width, first="next: ", rest="  ", max_lines=_LINES)
