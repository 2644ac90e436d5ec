"""Which digests belong to one run: a folder may hold several jobs, recordings of one job, and files without rank."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

import msgspec

from longpole.errors import UsageError
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from longpole.digest.rank_digest import RankDigest
    from longpole.ranks.cost_model import RecordedModels
    from longpole.settings import Settings


@dataclass(frozen=True, slots=True)
class Run:
    """The digests of one run.

    Attributes:
        digests: By rank.
        displaced: Those that a better one of the same rank displaced.
        recorded: Cost models of collectives that the user gives along.
    """

    digests: list[RankDigest]
    displaced: list[RankDigest]
    recorded: RecordedModels | None = None


def choose_run(digests: list[RankDigest], job: int | None, settings: Settings) -> Run:
    """Return the one run that the digests make up, with provisional ranks where files say none.

    Args:
        digests: In order of their files' names.
        job: The number of the run to take where there are several, from 1.
        settings: `job_gap_min_ns`.

    Raises:
        UsageError: There are several runs and none was chosen, or the chosen one does not exist.
    """
    jobs = _split(_with_ranks(digests), settings)
    if job is None:
        if len(jobs) > 1:
            raise UsageError(_listing(jobs))
        job = 1
    if not 1 <= job <= len(jobs):
        msg = f"--job {job}: there are {len(jobs)} runs here"
        raise UsageError(msg)
    kept: dict[int, RankDigest] = {}
    displaced = []
    for digest in jobs[job - 1]:
        if digest.rank in kept:
            displaced.append(digest)
        else:
            kept[digest.rank] = digest
    return Run([kept[rank] for rank in sorted(kept)], displaced)


def _with_ranks(digests: list[RankDigest]) -> list[RankDigest]:
    """Give files without a rank the lowest free ones, in order of their names."""
    taken = {digest.rank for digest in digests if not digest.rank_assumed}
    result = []
    following = 0
    for digest in digests:
        if digest.rank_assumed:
            while following in taken:
                following += 1
            taken.add(following)
            result.append(_renumbered(digest, following))
        else:
            result.append(digest)
    return result


def _renumbered(digest: RankDigest, rank: int) -> RankDigest:
    findings = [msgspec.structs.replace(finding, rank=rank) for finding in digest.findings]
    return msgspec.structs.replace(digest, rank=rank, findings=findings)


def _split(digests: list[RankDigest], settings: Settings) -> list[list[RankDigest]]:
    """Split where a rank occurs twice (by world, folder, time, host), and at long pauses between recordings."""
    jobs = []
    for world in _by_world(digests):
        for folder in _by_folder(world):
            for part in _by_time(folder, 0 if _repeats(folder) else settings.job_gap_min_ns):
                jobs += _by_host(part)
    return jobs


def _by_world(digests: list[RankDigest]) -> list[list[RankDigest]]:
    """Split by world size; a file that does not say it belongs to the only world there is."""
    worlds = {digest.world_size for digest in digests if digest.world_size and not digest.rank_assumed}
    if len(worlds) <= 1:
        return [digests]
    return _grouped(digests, lambda digest: digest.world_size if not digest.rank_assumed else None)


def _by_folder(digests: list[RankDigest]) -> list[list[RankDigest]]:
    """Split by folder where a rank occurs twice, at the highest level at which none does any more."""
    depths = range(max((len(PurePath(digest.path).parts) for digest in digests), default=0))
    groups = [digests]
    for depth in depths:
        if not any(map(_repeats, groups)):
            break
        groups = _grouped(digests, lambda digest, depth=depth: PurePath(digest.path).parent.parts[: depth + 1])  # type: ignore[misc]
    return groups


def _by_host(digests: list[RankDigest]) -> list[list[RankDigest]]:
    """Split ranks that occur twice on other hosts: hosts join a job in turn, as long as no rank repeats in it."""
    hosts = {digest.host for digest in digests}
    if not _repeats(digests) or len(hosts) < 2 or "" in hosts:
        return [digests]
    jobs: list[list[RankDigest]] = []
    for group in _grouped(digests, lambda digest: digest.host):
        home = next((job for job in jobs if not _repeats([*job, *group])), None)
        if home is None:
            jobs.append(group)
        else:
            home += group
    return jobs


def _grouped(digests: list[RankDigest], key: Callable[[RankDigest], Hashable]) -> list[list[RankDigest]]:
    groups: dict[Hashable, list[RankDigest]] = {}
    for digest in digests:
        groups.setdefault(key(digest), []).append(digest)
    return list(groups.values())


def _repeats(digests: list[RankDigest]) -> bool:
    return len({digest.rank for digest in digests}) < len(digests)


def _by_time(digests: list[RankDigest], gap_ns: int) -> list[list[RankDigest]]:
    """Split where no recording runs for longer than the gap; files without a clock stay with the first part."""
    timed = sorted((d for d in digests if d.base_ns is not None), key=lambda d: (d.base_ns or 0) + d.start_ns)
    untimed = [d for d in digests if d.base_ns is None]
    parts: list[list[RankDigest]] = []
    reach_ns = 0
    for digest in timed:
        start_ns, end_ns = (digest.base_ns or 0) + digest.start_ns, (digest.base_ns or 0) + digest.end_ns
        if not parts or start_ns > reach_ns + gap_ns:
            parts.append([])
        parts[-1].append(digest)
        reach_ns = max(reach_ns, end_ns)
    if not parts:
        return [untimed]
    parts[0] += untimed
    return parts


def _listing(jobs: list[list[RankDigest]]) -> str:
    lines = [f"{len(jobs)} distinct runs here; choose one with --job N, or name its files:"]
    for number, job in enumerate(jobs, 1):
        ranks = sorted(digest.rank for digest in job)
        world = next((digest.world_size for digest in job if digest.world_size), None)
        bases = [(d.base_ns + d.start_ns) // NS_PER_S for d in job if d.base_ns is not None]
        when = f", recorded at {_clock(min(bases))}" if bases else ""
        of_world = f" of {world}" if world else ""
        lines.append(f"  {number}  {len(ranks)}{of_world} ranks{when}: {job[0].path}{' …' if len(job) > 1 else ''}")
    return "\n".join(lines)


def _clock(epoch_s: int) -> str:
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{epoch_s} s"
