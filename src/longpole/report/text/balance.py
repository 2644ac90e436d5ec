"""The page of `longpole balance`: how uneven it is, how even it can be, by which method, and what each rank gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.balance import COST_WORDS, METHOD_WORDS
from longpole.report.escape import escape
from longpole.report.text.layout import Style, pad, shorten, wrap
from longpole.report.text.page import NARROWEST
from longpole.units import format_count

if TYPE_CHECKING:
    from longpole.report.balance import Balance, BalanceLoad, BalanceRank

_LINES: Final = 5
_UNEVEN_FROM: Final = 0.005  # a share of waiting that rounds to 0 % or 1 % is even
_RANKS_SHOWN: Final = 16
_NAME_WIDTH: Final = 22
_COLUMN: Final = 14
_STEPS: Final = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"))


def render_balance(balance: Balance, *, width: int, color: bool) -> str:
    """Write how sequences are divided over ranks.

    Args:
        balance: The result.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.

    Returns:
        Lines of at most that many columns, each with its line end. Everything that comes from a file is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    sections = [
        _render_who(balance, style),
        _render_verdict(balance, style),
        _render_evenness(balance, style),
        _render_methods(balance, style),
        _render_ranks(balance, style),
        _render_notes(balance, style),
        _render_next(balance, style),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _render_who(balance: Balance, style: Style) -> list[str]:
    source = "standard input" if balance.source == "-" else escape(balance.source)
    parts = [source] if source else []
    parts += [
        format_count(balance.sequences, "sequence"),
        f"{balance.tokens:,} tokens (median {balance.median_tokens:,.0f}, longest {balance.longest_tokens:,})",
        f"{format_count(len(balance.ranks), 'rank')}{_speed_words(balance)}",
    ]
    if balance.batches > 1:
        parts.append(f"{balance.batches:,} batches of {balance.batch_size:,}")
    if balance.equal_counts:
        parts.append("equal counts")
    return [*wrap(" · ".join(parts), style.width, rest="  "), *wrap(_cost_words(balance), style.width, rest="  ")]


def _speed_words(balance: Balance) -> str:
    speeds = [rank.speed for rank in balance.ranks]
    if min(speeds) == max(speeds):
        return ", all as fast"
    return f", speeds {min(speeds):.3g} to {max(speeds):.3g}"


def _cost_words(balance: Balance) -> str:
    cost = balance.cost
    words = f"balanced by {COST_WORDS[cost.by]}: a sequence of s tokens costs {escape(cost.formula)}"
    if cost.model:
        words += f" · {escape(cost.model)}, convention {escape(cost.convention)}"
    return words


def _render_verdict(balance: Balance, style: Style) -> list[str]:
    title = "UNEVEN" if balance.before.wait_share >= _UNEVEN_FROM else "EVEN"
    lines = wrap(escape(balance.says), style.width, first=title + "  ", rest="  ", max_lines=_LINES)
    lines[0] = style.verdict(title) + lines[0][len(title) :]
    return lines


def _render_evenness(balance: Balance, style: Style) -> list[str]:
    before, after = balance.before, balance.after
    lines = [style.title("HOW EVEN", "the last rank over the mean of all; 1 is even")]
    lines.append(style.faint(f"  {pad('', _NAME_WIDTH)}{'before':>{_COLUMN}}{'after':>{_COLUMN}}"))
    rows = [("tokens", "tokens_over_mean"), ("attention's square", "squares_over_mean")]
    if balance.cost.by in ("crossover", "flops"):
        both = "both together" if balance.cost.by == "crossover" else COST_WORDS["flops"]
        rows.insert(0, (both, "over_mean"))
    for name, field in rows:
        figures = "".join(f"{getattr(side, field):>{_COLUMN}.3f}" for side in (before, after))
        lines.append(f"  {pad(name, _NAME_WIDTH)}{figures}")
    for name, field in (("most tokens of a rank", "most_tokens"), ("most sequences", "most_sequences")):
        figures = "".join(f"{getattr(side, field):>{_COLUMN},}" for side in (before, after))
        lines.append(f"  {pad(name, _NAME_WIDTH)}{figures}")
    return lines


def _render_methods(balance: Balance, style: Style) -> list[str]:
    """Show what each method reaches, against what none can be below."""
    whole = "last ranks of all batches" if balance.batches > 1 else "last rank"
    lines = [style.title("METHODS", f"{balance.cost.unit} of the {whole}, and over the bound")]
    before = balance.before
    rows = [(f"{METHOD_WORDS[before.method]} (before)", before.load)]
    rows += [(METHOD_WORDS[method.method], method.load) for method in balance.methods]
    rows.append(("bound", balance.bound))
    if not isinstance(balance.optimum, Unknown):
        rows.append(("best there is", balance.optimum))
    for name, load in rows:
        over = load / balance.bound - 1
        lines.append(f"  {pad(name, _NAME_WIDTH + 8)}{_amount(load):>{_COLUMN}}{_over(over):>{_COLUMN}}")
    if isinstance(balance.optimum, Unknown):
        lines += wrap(balance.optimum.unknown, style.width, first="  ", rest="  ")
    return lines


def _render_ranks(balance: Balance, style: Style) -> list[str]:
    shown = _shown_ranks(balance)
    lines = [style.title("RANKS", "sequences, tokens, and the share of the time that each waits")]
    has_speed = any(rank.speed != 1.0 for rank in balance.ranks)
    speed = f"{'speed':>8}" if has_speed else ""
    head = f"  {'rank':>5}{speed}{'before':>10}{'tokens':>13}{'waits':>8}   {'after':>8}{'tokens':>13}{'waits':>8}"
    lines.append(style.faint(shorten(head, style.width)))
    lines += [shorten(_rank_line(rank, has_speed=has_speed), style.width) for rank in shown]
    if len(shown) < len(balance.ranks):
        lines.append(f"  and {len(balance.ranks) - len(shown)} more; --json has them all")
    return lines


def _rank_line(rank: BalanceRank, *, has_speed: bool) -> str:
    speed = f"{rank.speed:>8.3g}" if has_speed else ""
    before = f"{rank.sequences_before:>10,}{rank.tokens_before:>13,}{rank.wait_share_before:>8.1%}"
    after = f"{rank.sequences_after:>8,}{rank.tokens_after:>13,}{rank.wait_share_after:>8.1%}"
    return f"  {rank.rank:>5}{speed}{before}   {after}"


def _shown_ranks(balance: Balance) -> list[BalanceRank]:
    """Return all ranks, or of many those that waited least and most before: the ones others waited for come first."""
    if len(balance.ranks) <= _RANKS_SHOWN:
        return balance.ranks
    ordered = sorted(balance.ranks, key=lambda rank: (rank.wait_share_before, rank.rank))
    return [*ordered[: _RANKS_SHOWN // 2], *ordered[-_RANKS_SHOWN // 2 :]]


def _render_notes(balance: Balance, style: Style) -> list[str]:
    if not balance.notes:
        return []
    lines = [style.title("TO KNOW")]
    for note in balance.notes:
        lines += wrap(escape(note), style.width, first="  ", rest="    ", max_lines=_LINES)
    return lines


def _render_next(balance: Balance, style: Style) -> list[str]:
    text = (
        "In a training loop: longpole.BalancedBatchSampler divides every batch so. Whether steps get shorter, longpole"
        " verify says of traces before and after."
    )
    if _is_left_uneven(balance.after, balance):
        text = (
            "Attention's square stays uneven: where long sequences cost more than their tokens, balance by --crossover"
            f" or by a --model. {text}"
        )
    return [style.faint(line) for line in wrap(text, style.width)]


def _is_left_uneven(after: BalanceLoad, balance: Balance) -> bool:
    return balance.cost.by == "tokens" and after.squares_over_mean > 1.1


def _amount(load: float) -> str:
    """Write a cost: whole below a million, else four figures with the letter of its power.

    >>> _amount(132951.0), _amount(1.2345e15)
    ('132,951', '1.234 P')
    """
    for step, letter in _STEPS:
        if load >= step:
            return f"{load / step:.3f} {letter}"
    return f"{load:,.0f}" if load >= 1000 else f"{load:,.4g}"


def _over(share: float) -> str:
    """Write by how much something is over the bound."""
    if share < 5e-7:
        return "0%"
    return f"{share:.2%}" if share >= 0.001 else f"{share:.4%}"
