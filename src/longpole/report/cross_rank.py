"""The blocks of the report that compare ranks: clocks, collectives, who kept whom waiting."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from longpole.records.collectives import (
    CollectiveEntry,
    LinkRow,
    OverlapEntry,
    PipelineEntry,
    StragglerEntry,
)
from longpole.records.ledger import Unknown
from longpole.report.document import ClockEntry
from longpole.timeline.integrity import Example, Finding
from longpole.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.digest.across import Across
    from longpole.digest.rank_digest import RankDigest
    from longpole.digest.steady import Steady
    from longpole.settings import Settings

_FIELDS: Final = ("transfer_ns", "skew_ns", "culprit_rank", "waiting_ns_by_rank")
_NO_BASE: Final = Unknown("the file does not say what its times count from", ["baseTimeNanoseconds"])
_UNMEASURED: Final = Unknown(
    "nothing measures how far base times can be trusted: no collective of several ranks was matched",
    ["collectives on devices, in the traces of all ranks"],
)


@dataclass(slots=True)
class CrossRank:
    """What the report says of the ranks together."""

    clock: list[ClockEntry]
    collectives: list[CollectiveEntry] = field(default_factory=list)
    overlap: list[OverlapEntry] = field(default_factory=list)
    stragglers: list[StragglerEntry] = field(default_factory=list)
    links: list[LinkRow] = field(default_factory=list)
    pipeline: list[PipelineEntry] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def cross_rank(digests: list[RankDigest], across: Across | None, steady: Steady, settings: Settings) -> CrossRank:
    """Build the blocks.

    Args:
        digests: The ranks.
        across: Their collectives, None where there are none.
        steady: Their units; void findings about the recording's start get the figures that they touch.
        settings: Thresholds.
    """
    if across is None:
        return CrossRank(_clocks_by_base(digests))
    from longpole.digest.members import steady_members
    from longpole.report.collectives import collective_entries
    from longpole.report.links import link_rows, pipeline_entry
    from longpole.report.overlap import overlap_entries
    from longpole.report.stragglers import straggler_entries

    started_late = _withdraw_start(digests, across, steady)
    members = steady_members(digests, across, steady)
    result = CrossRank(
        clock=_clocks(digests, across),
        collectives=collective_entries(members, digests, settings),
        overlap=overlap_entries(digests, across),
        stragglers=[*started_late, *straggler_entries(members, digests, settings)],
        links=link_rows(members, settings),
    )
    result.findings = [*_placed(across.findings, digests), *_strangers(digests, across, result.collectives)]
    pipeline = pipeline_entry(members, digests)
    result.pipeline = [pipeline] if pipeline is not None else []
    steady.findings = [_pointed(finding, result.collectives) for finding in steady.findings]
    return result


def _placed(findings: list[Finding], digests: list[RankDigest]) -> list[Finding]:
    """Give findings of the run the first rank's file for an example."""
    return [msgspec.structs.replace(f, example=Example(digests[0].path)) if not f.example.file else f for f in findings]


def _clocks_by_base(digests: list[RankDigest]) -> list[ClockEntry]:
    known = all(digest.base_ns is not None for digest in digests)
    if known:
        first = digests[0].rank
        return [
            ClockEntry(digest.rank, 0, 0 if digest.rank == first else _UNMEASURED, "base_time") for digest in digests
        ]
    return [ClockEntry(digest.rank, _NO_BASE, _NO_BASE, "none") for digest in digests]


def _clocks(digests: list[RankDigest], across: Across) -> list[ClockEntry]:
    have_bases = all(digest.base_ns is not None for digest in digests)
    entries = []
    for digest in digests:
        clock = across.clocks[digest.rank]
        if clock.method == "none":
            entries.append(ClockEntry(digest.rank, _NO_BASE, _NO_BASE, "none"))
            continue
        offset_ns = clock.correction_ns if have_bases else clock.offset_ns
        uncertainty: int | Unknown = clock.uncertainty_ns if clock.uncertainty_ns is not None else _UNMEASURED
        entries.append(ClockEntry(digest.rank, offset_ns, uncertainty, clock.method, clock.drift))
    return entries


def _withdraw_start(digests: list[RankDigest], across: Across, steady: Steady) -> list[StragglerEntry]:
    """Withdraw the split of collectives that began before all ranks recorded, where no unit lies behind that.

    The rank that came last there is named for what it is: its profiler started late.
    """
    if not any(f.code == "rank.start_spread" and f.severity == "void" for f in steady.findings):
        return []
    import numpy as np

    from longpole.ranks.split import withdraw

    began = {digest.rank: steady.at(digest.rank, digest.start_ns) for digest in digests}
    matched, split = across.matched, across.split
    last_ns, first_ns = max(began.values()), min(began.values())
    earliest_ns = np.minimum.reduceat(split.start_ns, matched.first[:-1]) if len(matched) else np.empty(0, np.int64)
    touched = np.flatnonzero((earliest_ns < last_ns) & (np.diff(matched.first) > 1))
    late = touched[split.culprit[touched] >= 0]
    entries = []
    if len(late):
        worst = int(late[np.argmax(split.lateness_ns[late])])
        rank, late_ns = int(split.culprit[worst]), int(split.lateness_ns[worst])
        behind_ns = began[rank] - first_ns
        if 2 * behind_ns >= late_ns:
            unit = next((u.name for d in digests if d.rank == rank for u in d.rows[0].units if u.kind != "head"), "")
            says = (
                f"rank {rank} arrives {format_ns(late_ns)} late at the first collective: its profiler started"
                f" {format_ns(behind_ns)} after the first one; that is the recording, not the rank"
            )
            entries.append(
                StragglerEntry(rank, "profiler_start", late_ns, [unit], 0.0, late_ns, {"start": behind_ns}, says)
            )
    withdraw(split, matched, touched)
    return entries


def _pointed(finding: Finding, collectives: list[CollectiveEntry]) -> Finding:
    """Point a finding about starts or clocks at the collectives that could not be split because of it."""
    if finding.code == "clock.not_aligned":
        voids = [*finding.voids, *_splits_of(collectives, lambda entry: len(entry.members_present) > 1)]
    elif finding.code == "rank.start_spread" and "/collectives" in finding.voids:
        voids = [at for at in finding.voids if at != "/collectives"]
        voids += _splits_of(collectives, lambda entry: len(entry.members_present) > 1)
    else:
        return finding
    return msgspec.structs.replace(finding, voids=voids)


def _splits_of(collectives: list[CollectiveEntry], concerns: Callable[[CollectiveEntry], bool]) -> list[str]:
    """Return pointers to what is not known of the entries that were not split and that a finding concerns."""
    return [
        f"/collectives/{place}/{name}"
        for place, entry in enumerate(collectives)
        if entry.split == "unknown" and concerns(entry)
        for name in _FIELDS
    ]


def missing_voids(collectives: list[CollectiveEntry], present: list[int]) -> list[str]:
    """Return pointers to the figures that missing ranks withdraw: the split of groups with a missing member."""
    here = set(present)
    return _splits_of(collectives, lambda entry: not entry.members or not set(entry.members) <= here)


def _strangers(digests: list[RankDigest], across: Across, collectives: list[CollectiveEntry]) -> list[Finding]:
    """Complain of ranks that hold collectives of which none is any other rank's: of another job, or other steps."""
    if len(digests) < _SEVERAL:
        return []
    import numpy as np

    matched = across.matched
    shared = np.repeat(np.diff(matched.first) > 1, np.diff(matched.first))
    names = [{u.name for u in digest.rows[0].units} - {"head", "tail"} for digest in digests]
    found = []
    for digest, own in zip(digests, names, strict=True):
        mine = matched.rank == digest.rank
        groups = across.instances[digest.rank].groups
        alone = bool(groups) and all((group.size or len(group.members)) == 1 for group in groups)
        if not mine.any() or shared[mine].any() or alone:
            continue
        others = [other for other, theirs in zip(digests, names, strict=True) if other is not digest and own & theirs]
        if not any(len(other.instances) for other in others) or not _should_share(digest, digests, across):
            continue
        found.append(digest)
    if not found:
        return []
    some = ", ".join(str(digest.rank) for digest in found[:8])
    message = (
        f"rank {some} recorded the same units as other ranks but shares no collective with any of them: of another"
        " job, or of another stretch of it; nothing compares it with them"
    )
    ranks = {digest.rank for digest in found}
    voids = _splits_of(collectives, lambda entry: bool(ranks & set(entry.members_present)))
    return [Finding("rank.shares_nothing", "warn", None, len(found), Example(found[0].path), message, voids)]


_SEVERAL: Final = 2


def _should_share(digest: RankDigest, digests: list[RankDigest], across: Across) -> bool:
    """Tell whether a rank is in a group with another rank that is here."""
    here = {other.rank for other in digests} - {digest.rank}
    groups = [set(group.members) for group in across.instances[digest.rank].groups if group.members]
    return not groups or any(here & members for members in groups)
