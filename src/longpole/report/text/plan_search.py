"""The parts of a plan's page that are about other layouts, and about memory that would be saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.layout import Style, pad, wrap
from longpole.units import BYTES_PER_GB, format_count, format_ns

if TYPE_CHECKING:
    from longpole.report.plan import Plan
    from longpole.report.plan_asked import PlanChoice, PlanSaving, PlanSearch

_FRONT_SHOWN: Final = 12
_WORTH: Final = 0.005  # of a token's time: less is nothing that a plan can tell
_NAME: Final = 35
_DASH: Final = "–"


def render_search(plan: Plan, style: Style) -> list[str]:
    """Write what a search found; nothing where none was asked for."""
    search = plan.search
    if search is None:
        return []
    limit = f"{search.limit_bytes / BYTES_PER_GB:,.1f} GB"
    title = (
        f"{format_count(search.considered, 'layout')}: {search.divide:,} divide, {search.fit:,} fit {limit} with margin"
    )
    lines = [style.title("SEARCH", title)]
    if search.best is None:
        return lines + _nothing_fits(search, style)
    lines.append(_choice_row("", ("step", "dev·µs/tok", "GB", "MFU", "devices"), style))
    shown = _spread(search.front)
    lines += [_choice_line(choice, ">" if choice == search.best else " ", style) for choice in shown]
    if search.plan not in shown:
        lines.append(_choice_line(search.plan, " ", style))
    if len(search.front) > len(shown):
        lines.append(style.faint(f"    and {len(search.front) - len(shown)} more in the JSON document"))
    return lines + wrap(_gain(search), style.width, first="  ", rest="  ")


def _spread(front: list[PlanChoice]) -> list[PlanChoice]:
    """Return the fastest of a front, and some of the rest at even distances, down to the one that needs least."""
    if len(front) <= _FRONT_SHOWN:
        return front
    first = _FRONT_SHOWN // 2
    rest = front[first:]
    each = (len(rest) - 1) / (_FRONT_SHOWN - first - 1)
    return [*front[:first], *(rest[round(place * each)] for place in range(_FRONT_SHOWN - first))]


def _gain(search: PlanSearch) -> str:
    what = "> is the shortest step; of the others each needs less memory or fewer devices"
    if search.best is None or search.plan == search.best:
        return f"{what}. The plan's own layout is the fastest."
    gain = 1 - search.best.period_ns / search.plan.period_ns
    than = "the plan's own layout" if search.plan.peak_bytes <= search.limit_bytes else "the plan's, which does not fit"
    return f"{what}. It is {abs(gain):.1%} {'shorter' if gain >= 0 else 'longer'} than {than}."


def _nothing_fits(search: PlanSearch, style: Style) -> list[str]:
    if search.near is None:
        return wrap("none divides: widen [search], or change the batch", style.width, first="  ", rest="  ")
    near = search.near
    says = (
        f"none fits; closest is {_choice_name(near)} with {near.peak_bytes / BYTES_PER_GB:,.1f} GB. More devices, more"
        " recompute or a higher stage of ZeRO would"
    )
    return wrap(escape(says), style.width, first="  ", rest="  ")


def _choice_name(choice: PlanChoice) -> str:
    parts = [choice.label, f"b{choice.micro_batch}"]
    parts += [f"Z{choice.layout['zero']}"] if choice.layout.get("zero") else []
    parts += [choice.recompute] if choice.recompute != "none" else []
    parts += ["= the plan"] if choice.is_plan else []
    return " ".join(parts)


def _choice_line(choice: PlanChoice, mark: str, style: Style) -> str:
    figures = (
        format_ns(choice.period_ns),
        f"{choice.ns_per_token_device / 1000:,.1f}",
        f"{choice.peak_bytes / BYTES_PER_GB:,.1f}",
        f"{100 * choice.share:.1f} %",
        f"{choice.devices:,}",
    )
    return _choice_row(escape(_choice_name(choice)), figures, style, mark=mark)


def _choice_row(name: str, figures: tuple[str, ...], style: Style, mark: str = " ") -> str:
    widths = (9, 11, 7, 8, 8)
    row = "".join(f"{text:>{width}}" for text, width in zip(figures, widths, strict=True))
    return f"{mark} {pad(name, min(style.width - sum(widths) - 2, _NAME))}{row}"


def render_free_memory(plan: Plan, style: Style) -> list[str]:
    """Write what would fit if memory were saved; nothing where that was not asked for."""
    if plan.free_memory is None or plan.layout is None:
        return []
    lines = [
        style.title("IF MEMORY WERE SAVED", "the largest micro-batch that fits, and the fastest"),
        _saving_row("", ("saves GB", "fits", "fastest", "per token"), style),
    ]
    own = plan.layout.recompute
    for bound, title in ((False, "by a change, with what it costs"), (True, "a bound: as if it took nothing")):
        rows = [saving for saving in plan.free_memory if saving.bound == bound]
        if rows:
            lines.append(style.faint(f"  {title}"))
            lines += [_saving_line(saving, own, style) for saving in rows]
    return lines + [style.faint(line) for line in wrap(_worth(plan.free_memory), style.width, first="  ", rest="  ")]


def _worth(savings: list[PlanSaving]) -> str:
    """Say what of it is worth having."""
    gains = [(one.change_share, one) for one in savings if isinstance(one.change_share, float)]
    if not savings[0].fits_at_most and isinstance(savings[0].micro_batch, Unknown):
        return "The plan as it is does not fit; what does is compared with its step as if it did."
    free_share, _ = gains[0]
    if free_share < -_WORTH:
        return (
            f"The plan leaves memory unused: the first line is {-free_share:.1%} faster, and nothing is saved for it."
        )
    best_share, best = min(((share, one) for share, one in gains if one.bound), key=lambda gain: gain[0])
    if best_share > -_WORTH:
        return "No saved memory buys time here: a larger micro-batch is no faster, and nothing is computed again."
    return f"At most {-best_share:.1%} a token, if {best.saved} took nothing."


def _saving_line(saving: PlanSaving, own_policy: str, style: Style) -> str:
    change = _DASH if isinstance(saving.change_share, Unknown) else f"{100 * saving.change_share:+.1f} %"
    used = _DASH if isinstance(saving.micro_batch, Unknown) else f"{saving.micro_batch:,}"
    lighter = isinstance(saving.recompute, str) and saving.recompute != own_policy
    if lighter and not saving.how.startswith("recompute"):
        used = f"{used} {saving.recompute}"
    figures = (
        f"{saving.saves_bytes / BYTES_PER_GB:,.1f}",
        f"{saving.fits_at_most:,}" if saving.fits_at_most else "none",
        used,
        change,
    )
    return _saving_row(escape(saving.how if not saving.bound else saving.saved), figures, style)


def _saving_row(name: str, figures: tuple[str, ...], style: Style) -> str:
    widths = (9, 7, 13, 11)
    row = "".join(f"{text:>{width}}" for text, width in zip(figures, widths, strict=True))
    return f"    {pad(name, min(style.width - sum(widths) - 4, _NAME))}{row}"
