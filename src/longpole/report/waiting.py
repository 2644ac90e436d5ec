"""The waiting part of each unit's collectives, from the split across ranks (DESIGN 3.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown

if TYPE_CHECKING:
    from longpole.digest.across import Across
    from longpole.digest.rank_digest import RankDigest
    from longpole.digest.steady import Steady
    from longpole.settings import Settings

_DEVICES: Final = Unknown("the rank has several devices, and waiting is known by rank only", [])


def fill_waiting(digests: list[RankDigest], across: Across | None, steady: Steady, settings: Settings) -> None:
    """Fill in the waiting part of the units' collectives, in place, where an exporter did not record it.

    The waiting time of a unit is the union of the skews of its collectives within it. It is known for a row where all
    but a negligible part of the collectives of its units could be split; leading units that belong to the head do not
    count.
    """
    if across is None:
        return
    import numpy as np

    from longpole.ranks.split import what_is_missing, why_not_split
    from longpole.timeline.intervals import covered_before, union

    matched, split = across.matched, across.split
    by_rank = matched.by_rank()
    unit = matched.column(across.instances, "unit")
    for digest in digests:
        mine = by_rank.get(digest.rank, np.empty(0, np.int64))
        own = across.instances[digest.rank]
        start_ns = own.start_ns[matched.instance[mine]]
        duration_ns = split.end_ns[mine] - split.start_ns[mine]
        counted = [u.kind not in ("head", "tail") and u.name not in steady.moved for u in digest.rows[0].units]
        real = np.array([*counted, False], np.bool_)
        inside = real[np.where(unit[mine] < len(real) - 1, unit[mine], -1)]
        unsplit = (split.skew_ns[mine] < 0) & inside
        total_ns = int(duration_ns[inside].sum())
        known = int(duration_ns[unsplit].sum()) <= settings.unsplit_max_share * total_ns
        why: Unknown | None = None
        if len(digest.rows) > 1:
            why = _DEVICES
        elif not known:
            operations = np.unique(matched.operation_of_member()[mine[unsplit]])
            missing = what_is_missing(matched, split, operations)
            why = Unknown(why_not_split(matched, split, operations), missing)
        waits = union(start_ns, start_ns + np.maximum(split.skew_ns[mine], 0))
        for row in digest.rows:
            bounds = np.array([[u.start_ns, u.start_ns + u.ledger.wall_ns] for u in row.units], np.int64).reshape(-1, 2)
            waited = covered_before(waits, bounds[:, 1]) - covered_before(waits, bounds[:, 0])
            for u, waiting_ns in zip(row.units, waited.tolist(), strict=True):
                collective = u.ledger.objects["collective"]
                if isinstance(collective.waiting_ns, int):
                    continue
                if why is not None and (collective.service_ns or collective.exposed_ns):
                    collective.waiting_ns = why
                else:
                    collective.waiting_ns = int(waiting_ns)
