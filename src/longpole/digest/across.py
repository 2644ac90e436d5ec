"""What the ranks of a run have in common: matched collectives, clocks, and who waited for whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longpole.digest.rank_digest import RankDigest
    from longpole.ranks.clocks import Clock
    from longpole.ranks.cost_model import RecordedModels
    from longpole.ranks.matching import Matched
    from longpole.ranks.split import Split
    from longpole.records.instances import Instances
    from longpole.settings import Settings
    from longpole.timeline.integrity import Finding


@dataclass(frozen=True)
class Across:
    """The collectives of a run.

    Attributes:
        matched: Operations and their members.
        clocks: Rank -> its clock.
        split: What each member waited and moved.
        instances: Rank -> its operations.
        world_size: Ranks of the job, None where not known.
        findings: About collectives and clocks.
        recorded: Cost models that the user gives; they stand behind a fit to the run, before the shipped ones.
    """

    matched: Matched
    clocks: dict[int, Clock]
    split: Split
    instances: dict[int, Instances]
    world_size: int | None
    findings: list[Finding] = field(default_factory=list)
    recorded: RecordedModels | None = None


def bring_together(
    digests: list[RankDigest], settings: Settings, recorded: RecordedModels | None = None
) -> Across | None:
    """Match, align and split the collectives of a run; None where no rank holds one and there is but one rank.

    Args:
        digests: The ranks, each once.
        settings: Thresholds.
        recorded: Cost models that the user gives.
    """
    if len(digests) == 1 and len(digests[0].instances) == 0:
        return None
    from longpole.ranks.clocks import RankTimes, estimate_clocks
    from longpole.ranks.matching import match
    from longpole.ranks.split import split

    instances = {digest.rank: digest.instances for digest in digests}
    world = max((digest.world_size or 0 for digest in digests), default=0) or None
    bases = [digest.base_ns for digest in digests]
    first_ns = min((base for base in bases if base is not None), default=0)
    offsets = {d.rank: (d.base_ns or 0) - first_ns for d in digests} if None not in bases else None
    matched, findings = match(
        instances,
        unit_names={digest.rank: [unit.name for unit in digest.rows[0].units] for digest in digests},
        world_size=world,
        offset_ns=offsets,
    )
    times = {d.rank: RankTimes(d.base_ns, d.start_ns, d.end_ns, d.host) for d in digests}
    clocks = estimate_clocks(matched, instances, times, settings)
    parts = split(matched, instances, clocks, settings)
    return Across(matched, clocks, parts, instances, world, findings, recorded)
