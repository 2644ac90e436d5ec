"""What programs told the recorder of themselves: items of units, and ranks that never came to a collective."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from longpole.digest.steady import real_units
from longpole.records.ledger import Unknown
from longpole.records.program import NeverEntered
from longpole.report.document import Items
from longpole.timeline.integrity import Example, Finding
from longpole.units import NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.digest.rank_digest import RankDigest, UnitDigest
    from longpole.digest.steady import Steady
    from longpole.records.program import GroupArrivals, ProgramRecord

NO_ITEMS: Final = Unknown("how many items a unit processes is not declared", ["items per unit"])


def items_of_units(digests: Sequence[RankDigest]) -> dict[str, int]:
    """Return how many items all ranks together processed in each unit; none where a rank is missing or does not say.

    Args:
        digests: The ranks that are here.
    """
    worlds = [digest.world_size for digest in digests if digest.world_size]
    if len(digests) < max(worlds, default=0):
        return {}
    by_rank = [{unit.name: unit.items for unit in real_units(d.rows[0].units) if unit.items >= 0} for d in digests]
    common = set.intersection(*map(set, by_rank)) if by_rank else set()
    return {name: sum(own[name] for own in by_rank) for name in by_rank[0] if name in common} if common else {}


def run_items(digests: Sequence[RankDigest], steady: Steady) -> Items:
    """Return what a steady unit processes: items of all ranks together, mean over the units, and their rate.

    The rate is the items of all units with a period over the sum of those periods.
    """
    by_unit = items_of_units(digests)
    counted = {name: by_unit[name] for name in steady.periods if name in by_unit}
    if not counted:
        counted = {name: n for name, n in by_unit.items() if name not in steady.moved}
        if not counted:
            return Items(NO_ITEMS, NO_ITEMS)
    kinds = {digest.program.item_kind for digest in digests if digest.program is not None} - {""}
    kind = kinds.pop() if len(kinds) == 1 else Unknown("what items count is not declared", ["item_kind"])
    total, time_ns = sum(counted.values()), sum(steady.periods.get(name, 0) for name in counted)
    return Items(kind, round(total / len(counted)), total * NS_PER_S / time_ns if time_ns else UNSET)


def unit_items(unit: UnitDigest) -> int | Unknown:
    """Return what one rank processed in a unit."""
    return unit.items if unit.items >= 0 else NO_ITEMS


def never_entered(digests: Sequence[RankDigest]) -> list[NeverEntered]:
    """Return, for each group, the first collective in which ranks waited for others until their record ended."""
    here = {digest.rank: digest for digest in digests}
    groups: dict[tuple[str, tuple[int, ...]], dict[int, GroupArrivals]] = {}
    for digest in digests:
        for group in digest.program.groups if digest.program is not None else ():
            groups.setdefault((group.group, tuple(group.members)), {})[digest.rank] = group
    found = (_never_entered(key, of_rank, here) for key, of_rank in sorted(groups.items()))
    return [one for one in found if one is not None]


def _never_entered(
    key: tuple[str, tuple[int, ...]], of_rank: dict[int, GroupArrivals], here: dict[int, RankDigest]
) -> NeverEntered | None:
    """Look at one group: who is behind the lowest sequence that was entered and not left."""
    members = list(key[1]) or sorted(of_rank)
    behind = {
        sequence: [rank for rank in members if rank not in of_rank or of_rank[rank].entered < sequence]
        for sequence in sorted({one.sequence for group in of_rank.values() for one in group.still_open})
    }
    sequence = next((sequence for sequence, absent in behind.items() if absent), None)
    if sequence is None:
        return None
    waiting = {r: o for r, group in of_rank.items() for o in group.still_open if o.sequence == sequence}
    since_ns = min(_epoch_ns(here[rank], one.since_ns) for rank, one in waiting.items())
    never = [rank for rank in behind[sequence] if _went_on(here.get(rank), since_ns)]
    last_ns = max(_epoch_ns(here[rank], _program(here[rank]).last_ns) for rank in waiting)
    return NeverEntered(
        group=key[0],
        members=list(key[1]),
        kind=next(iter(waiting.values())).kind,
        sequence=sequence,
        waiting=sorted(waiting),
        since_ns=since_ns,
        waited_ns=max(last_ns - since_ns, 0),
        never=never,
        not_known=[rank for rank in behind[sequence] if rank not in never],
    )


def _went_on(digest: RankDigest | None, since_ns: int) -> bool:
    """Tell whether a rank's record reaches a time, or ended in order, with nothing lost: then it never came."""
    if digest is None or digest.program is None or not digest.program.whole:
        return False
    return digest.program.closed or _epoch_ns(digest, digest.program.last_ns) >= since_ns


def _program(digest: RankDigest) -> ProgramRecord:
    if digest.program is None:
        msg = "a rank without a program's record has no collectives of one"
        raise AssertionError(msg)
    return digest.program


def _epoch_ns(digest: RankDigest, time_ns: int) -> int:
    return (digest.base_ns or 0) + time_ns


def never_entered_findings(found: Sequence[NeverEntered], digests: Sequence[RankDigest]) -> list[Finding]:
    """Say of each such collective who waits for whom since when."""
    path = {digest.rank: digest.path for digest in digests}
    return [
        Finding(
            "collective.never_entered",
            "warn",
            None,
            len(one.never) + len(one.not_known),
            Example(path[one.waiting[0]]),
            _says(one),
        )
        for one in found
    ]


def _says(one: NeverEntered) -> str:
    place = f"{one.kind} #{one.sequence} of group {one.group}"
    waits = "wait" if len(one.waiting) > 1 else "waits"
    if one.never:
        there = f"{_ranks(one.waiting)} {waits} there since {_clock(one.since_ns)}, {format_ns(one.waited_ns)} in all"
        unknown = f"; of {_ranks(one.not_known)} it is not known" if one.not_known else ""
        return f"{_ranks(one.never)} never entered {place}; {there}{unknown}"
    since = f"{waits} in {place} since {_clock(one.since_ns)}, {format_ns(one.waited_ns)} until their record ends"
    return (
        f"{_ranks(one.waiting)} {since}; whether {_ranks(one.not_known)} came is not known: no file, or it ends before"
    )


def _ranks(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:_RANKS_SHOWN])) + (" …" if len(ranks) > _RANKS_SHOWN else "")
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}"


_RANKS_SHOWN: Final = 8


def _clock(epoch_ns: int) -> str:
    try:
        return datetime.fromtimestamp(epoch_ns // NS_PER_S, UTC).strftime("%H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{epoch_ns} ns"
